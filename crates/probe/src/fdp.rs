//! Flexible Data Placement of an NVMe drive, asked by the steps that the kernel itself takes
//! (`nvme_query_fdp_info`, `drivers/nvme/host/core.c`).
//!
//! Invariant: only commands that read; a reply that makes no sense is as good as none.

use std::io;

use serde::Serialize;

use crate::block::Block;
use crate::host::{Host, NvmeCommand};
use crate::nvme::{
    self, Controller, Endurance, Feature, HandleUse, Isolation, Namespace, PlacementHandle,
    Statistics,
};

/// What a drive says of its data placement.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Fdp {
    /// CTRATT bit 19.
    pub supported: bool,
    /// The namespace's endurance group.
    pub endurance_group: u16,
    /// Feature 1Dh; `None` if not supported.
    pub on: Option<bool>,
    /// Index of the configuration in use.
    pub configuration: Option<u8>,
    /// Reclaim groups of that configuration.
    pub reclaim_groups: Option<u32>,
    /// Its reclaim unit handles.
    pub handles: Option<u16>,
    /// Bytes of a reclaim unit.
    pub reclaim_unit: Option<u64>,
    /// Isolation of its first handle.
    pub isolation: Option<Isolation>,
    /// The first valid configuration with one reclaim group.
    pub single_group: Option<usize>,
    /// The namespace's placement handles; the kernel's stream *n* is entry *n* − 1.
    pub placements: Vec<PlacementHandle>,
    /// Handles in use, by whom (log page 21h).
    pub usage: Vec<HandleUse>,
    /// Log page 22h.
    pub statistics: Option<Statistics>,
    /// Log page 09h.
    pub endurance: Option<Endurance>,
    /// Bytes of a logical block.
    pub block: Option<u32>,
    /// Host events of type 3, invalid placement identifier, in log page 23h.
    pub invalid_placements: Option<usize>,
}

/// Asks the drive behind a namespace.
///
/// # Errors
///
/// Those of the first command, for most often permission is missing; later failures leave fields
/// empty.
pub(crate) fn ask(host: &Host, block: &Block) -> io::Result<Fdp> {
    let name = block.name.as_str();
    let mut page = vec![0u8; 4096];
    host.calls().nvme(name, NvmeCommand::identify_controller(), &mut page)?;
    let controller = Controller::decode(&page).map_err(io::Error::other)?;
    let mut fdp = Fdp { supported: controller.fdp, ..Fdp::default() };
    let Some(nsid) = host.number::<u32>(block.folder.join("nsid")) else { return Ok(fdp) };
    page.fill(0);
    if host.calls().nvme(name, NvmeCommand::identify_namespace(nsid), &mut page).is_ok()
        && let Ok(namespace) = Namespace::decode(&page)
    {
        fdp.endurance_group = namespace.endurance_group;
        fdp.block = namespace.block;
    }
    let group = fdp.endurance_group;
    if controller.endurance_groups && group != 0 {
        fdp.endurance = log(host, name, 0x09, group, 512).and_then(|b| Endurance::decode(&b).ok());
    }
    if !controller.fdp {
        return Ok(fdp);
    }
    let feature = host.calls().nvme(name, NvmeCommand::fdp_feature(group), &mut []);
    let feature = feature.ok().map(Feature::decode);
    fdp.on = feature.map(|feature| feature.on);
    fdp.configuration = feature.filter(|f| f.on).map(|f| f.configuration);
    configurations(host, name, &mut fdp);
    if fdp.on == Some(true) {
        fdp.placements = placements(host, name, nsid).unwrap_or_default();
        fdp.usage = log(host, name, 0x21, group, 4096)
            .and_then(|b| nvme::handle_usage(&b).ok())
            .unwrap_or_default();
        fdp.statistics = log(host, name, 0x22, group, 64).and_then(|b| Statistics::decode(&b).ok());
        let events = log(host, name, 0x23, group, 4096).and_then(|b| nvme::events(&b).ok());
        fdp.invalid_placements = events.map(|all| all.iter().filter(|e| e.kind == 3).count());
    }
    Ok(fdp)
}

fn configurations(host: &Host, name: &str, fdp: &mut Fdp) {
    // Sixteen bytes tell how long it is; the length is the device's word and clamped.
    let Some(head) = log(host, name, 0x20, fdp.endurance_group, 16) else { return };
    let size = head.get(4..8).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes);
    let size = (size as usize).clamp(16, 1 << 16).next_multiple_of(4);
    let all = log(host, name, 0x20, fdp.endurance_group, size);
    let Some(all) = all.and_then(|b| nvme::configurations(&b).ok()) else { return };
    fdp.single_group = all.iter().position(|one| one.valid && one.reclaim_groups <= 1);
    let used = fdp.configuration.and_then(|index| all.get(usize::from(index)));
    if let Some(used) = used {
        fdp.reclaim_groups = Some(used.reclaim_groups);
        fdp.handles = Some(used.handles);
        fdp.reclaim_unit = Some(used.reclaim_unit);
        fdp.isolation = used.isolation.first().copied();
    }
}

/// The namespace's placement handles, with what their reclaim units still take.
pub(crate) fn placements(host: &Host, name: &str, nsid: u32) -> io::Result<Vec<PlacementHandle>> {
    // 128 handles (NVMe allows that many placement handles a namespace).
    let mut status = vec![0u8; 16 + 32 * 128];
    let command = NvmeCommand::handle_status(nsid, status.len());
    host.calls().nvme(name, command, &mut status)?;
    nvme::handle_status(&status).map_err(io::Error::other)
}

pub(crate) fn log(host: &Host, name: &str, page: u8, group: u16, len: usize) -> Option<Vec<u8>> {
    let mut data = vec![0u8; len];
    host.calls().nvme(name, NvmeCommand::log_page(page, group, len), &mut data).ok()?;
    Some(data)
}
