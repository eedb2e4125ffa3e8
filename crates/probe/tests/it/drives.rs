//! Drives of the fixtures, their replies built from the specifications.

use shelflife_probe::{NvmeCommand, ScsiCommand};

use crate::machine::Machine;

/// An NVMe namespace `nvmeNn1` with number 259:10 N.
pub fn nvme(machine: &mut Machine, n: u32, model: &str) -> String {
    let above = format!("pci0000:00/0000:00:0{}.0/nvme/nvme{n}", n + 1);
    let name = format!("nvme{n}n1");
    let folder = machine.disk(&name, (259, 10 * n), &above);
    machine.file(&format!("{folder}/nsid"), "1\n");
    machine.file(&format!("{folder}/device/model"), format!("{model:<40}\n"));
    machine.file(&format!("{folder}/device/transport"), "pcie\n");
    let group = if model.contains("FDP") { 1 } else { 0 };
    identify(machine, &name, model, group);
    folder
}

/// Identify Controller and Namespace; with an endurance group, FDP is supported.
pub fn identify(machine: &mut Machine, name: &str, model: &str, group: u16) {
    let mut page = vec![0u8; 4096];
    page[24..64].fill(b' ');
    page[24..24 + model.len()].copy_from_slice(model.as_bytes());
    page[64..72].copy_from_slice(b"1.0     ");
    let attributes: u32 = if group > 0 { 1 << 19 | 1 << 4 } else { 0 };
    page[96..100].copy_from_slice(&attributes.to_le_bytes());
    page[340..342].copy_from_slice(&group.to_le_bytes());
    machine.nvme_reply(name, NvmeCommand::identify_controller(), 0, page);
    let mut page = vec![0u8; 4096];
    page[102..104].copy_from_slice(&group.to_le_bytes());
    // Format 0: 4096 bytes.
    page[128..132].copy_from_slice(&(12u32 << 16).to_le_bytes());
    machine.nvme_reply(name, NvmeCommand::identify_namespace(1), 0, page);
}

/// FDP on with configuration 0: so many reclaim groups, 8 handles, units of 6 GiB.
pub fn fdp(machine: &mut Machine, name: &str, on: bool, groups: u32) {
    machine.nvme_reply(name, NvmeCommand::fdp_feature(1), u32::from(on), Vec::new());
    let size = 64 + 8 * 4;
    let mut log = vec![0u8; 16 + size];
    log[4..8].copy_from_slice(&((16 + size) as u32).to_le_bytes());
    let one = &mut log[16..];
    one[0..2].copy_from_slice(&(size as u16).to_le_bytes());
    one[2] = 0x80;
    one[4..8].copy_from_slice(&groups.to_le_bytes());
    one[8..10].copy_from_slice(&8u16.to_le_bytes());
    one[16..24].copy_from_slice(&(6u64 << 30).to_le_bytes());
    for handle in 0..8 {
        one[64 + 4 * handle] = 1;
    }
    let len = log.len();
    machine.nvme_reply(name, NvmeCommand::log_page(0x20, 1, 16), 0, log.clone());
    machine.nvme_reply(name, NvmeCommand::log_page(0x20, 1, len), 0, log);
    if !on {
        return;
    }
    let mut statistics = vec![0u8; 64];
    statistics[0..16].copy_from_slice(&7_000_000_000_000u128.to_le_bytes());
    statistics[16..32].copy_from_slice(&9_100_000_000_000u128.to_le_bytes());
    machine.nvme_reply(name, NvmeCommand::log_page(0x22, 1, 64), 0, statistics);
    let mut events = vec![0u8; 4096];
    events[0] = 1;
    events[64] = 3;
    machine.nvme_reply(name, NvmeCommand::log_page(0x23, 1, 4096), 0, events);
}

/// The namespace has placement handles for these reclaim unit handles, in the order of identifiers.
pub fn placements(machine: &mut Machine, name: &str, handles: &[u16]) {
    let len = 16 + 32 * 128;
    let mut status = vec![0u8; len];
    status[14..16].copy_from_slice(&(handles.len() as u16).to_le_bytes());
    for (n, handle) in handles.iter().enumerate() {
        let at = 16 + 32 * n;
        status[at..at + 2].copy_from_slice(&(n as u16).to_le_bytes());
        status[at + 2..at + 4].copy_from_slice(&handle.to_le_bytes());
        status[at + 8..at + 16].copy_from_slice(&1_572_864u64.to_le_bytes());
    }
    machine.nvme_reply(name, NvmeCommand::handle_status(1, len), 0, status);
}

/// A drive with FDP on and a placement handle for each of its 8 handles.
pub fn fdp_drive(machine: &mut Machine) -> String {
    let folder = nvme(machine, 0, "ACME FDP 1.92TB");
    machine.file(&format!("{folder}/queue/max_write_streams"), "8\n");
    fdp(machine, "nvme0n1", true, 1);
    placements(machine, "nvme0n1", &[0, 1, 2, 3, 4, 5, 6, 7]);
    folder
}

/// A disk of the SCSI driver behind a host driver, with number 8:16 N.
pub fn scsi(machine: &mut Machine, n: u32, driver: &str, names: (&str, &str)) -> String {
    let letter = char::from(b'a' + n as u8);
    let above = format!("pci0000:00/host{n}/target{n}:0:0/{n}:0:0:0/block");
    let host = format!("/sys/devices/pci0000:00/host{n}/scsi_host/host{n}/proc_name");
    machine.file(&host, format!("{driver}\n"));
    let folder = machine.disk(&format!("sd{letter}"), (8, 16 * n), &above);
    machine.file(&format!("{folder}/device/vendor"), format!("{:<8}\n", names.0));
    machine.file(&format!("{folder}/device/model"), format!("{:<16}\n", names.1));
    folder
}

/// The disk has reduced stream control and so many permanent streams of six.
pub fn streams(machine: &mut Machine, folder: &str, count: u16) {
    let name = folder.rsplit('/').next().unwrap().to_owned();
    machine.file(&format!("{folder}/device/vpd_pgb7"), [0, 0xb7, 0, 0x3c, 0, 1, 0, 0]);
    let mut page = vec![0u8; 8 + 16 + 6 * 16];
    let length = page.len() as u16 - 2;
    page[0..2].copy_from_slice(&length.to_be_bytes());
    for stream in 0..6 {
        page[8 + 16 + 16 * stream] = 4;
    }
    machine.scsi_reply(&name, ScsiCommand::advice_groups(512), page);
    for stream in 0..6 {
        let mut status = vec![0u8; 16];
        status[0..4].copy_from_slice(&8u32.to_be_bytes());
        status[8] = if stream < count { 0x80 } else { 0 };
        machine.scsi_reply(&name, ScsiCommand::stream_status(stream), status);
    }
}
