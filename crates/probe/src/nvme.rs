//! Replies of NVMe drives, decoded.
//!
//! Invariant: pure functions over bytes; any bytes end in a value or in [`Malformed`]. Offsets are
//! those of the NVM Express Base Specification 2.1 and the NVM Command Set Specification 1.1.

use serde::Serialize;

use crate::bytes::{Malformed, Reply};

/// What Identify Controller (CNS 01h) says, as far as it matters here.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Controller {
    /// Model number (MN).
    pub model: String,
    /// Firmware revision (FR).
    pub firmware: String,
    /// CTRATT bit 19: Flexible Data Placement is supported.
    pub fdp: bool,
    /// CTRATT bit 4: endurance groups.
    pub endurance_groups: bool,
    /// OACS bit 5: directives (the streams of kernels 4.13 to 5.17).
    pub directives: bool,
    /// ENDGIDMAX.
    pub last_endurance_group: u16,
}

impl Controller {
    /// Decodes the 4096 bytes of Identify Controller (341 are needed).
    ///
    /// # Errors
    ///
    /// [`Malformed`] if the reply is shorter.
    pub fn decode(bytes: &[u8]) -> Result<Controller, Malformed> {
        let reply = Reply::new("Identify Controller", bytes);
        let attributes = reply.le32(96)?;
        Ok(Controller {
            model: reply.text(24, 40)?,
            firmware: reply.text(64, 8)?,
            fdp: attributes >> 19 & 1 == 1,
            endurance_groups: attributes >> 4 & 1 == 1,
            directives: reply.le16(256)? >> 5 & 1 == 1,
            last_endurance_group: reply.le16(340)?,
        })
    }
}

/// What Identify Namespace (CNS 00h) says, as far as it matters here.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Namespace {
    /// ENDGID: its endurance group; 0 if there is none.
    pub endurance_group: u16,
    /// Bytes of a logical block; `None` if the format in use is not described.
    pub block: Option<u32>,
}

impl Namespace {
    /// Decodes the 4096 bytes of Identify Namespace.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if the reply is too short.
    pub fn decode(bytes: &[u8]) -> Result<Namespace, Malformed> {
        let reply = Reply::new("Identify Namespace", bytes);
        let flbas = reply.u8(26)?;
        // FLBAS: index bits 3:0, upper bits of the index in 6:5.
        let index = usize::from(flbas & 0xf | (flbas >> 5 & 3) << 4);
        let format = reply.le32(128 + 4 * index)?;
        // LBADS, a power of two; below 9 means that the format is not available.
        let block = 1u32.checked_shl(format >> 16 & 0xff).filter(|bytes| *bytes >= 512);
        Ok(Namespace { endurance_group: reply.le16(102)?, block })
    }
}

/// Feature 1Dh, Flexible Data Placement, of an endurance group.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Feature {
    /// FDPE: it is on.
    pub on: bool,
    /// Index of the configuration in use, in the order of log page 20h.
    pub configuration: u8,
}

impl Feature {
    /// Decodes completion dword 0 of Get Features.
    pub fn decode(result: u32) -> Feature {
        // Truncation is the field's width, bits 15:8.
        Feature { on: result & 1 == 1, configuration: (result >> 8) as u8 }
    }
}

/// One configuration of log page 20h.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Configuration {
    /// FDPA bit 7: the drive can use it.
    pub valid: bool,
    /// NRG: number of reclaim groups. Linux takes one only.
    pub reclaim_groups: u32,
    /// NRUH: number of reclaim unit handles.
    pub handles: u16,
    /// RUNS: bytes of a reclaim unit; 0 if not reported.
    pub reclaim_unit: u64,
    /// Isolation of each handle; at most NRUH, fewer if the reply is cut.
    pub isolation: Vec<Isolation>,
}

/// How far a reclaim unit handle keeps its data apart (RUHT).
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Type 1: apart when written, mixed by the drive's own moves.
    Initially,
    /// Type 2: apart for ever.
    Persistently,
    /// A reserved number.
    Reserved,
}

/// Decodes log page 20h, FDP Configurations.
///
/// # Errors
///
/// [`Malformed`] if the reply ends inside a descriptor's fixed part, or a descriptor says that it is
/// shorter than that.
pub fn configurations(bytes: &[u8]) -> Result<Vec<Configuration>, Malformed> {
    const WHAT: &str = "log page 20h (FDP configurations)";
    let reply = Reply::new(WHAT, bytes);
    // 0's based, so up to 65536 configurations; each takes 64 bytes of the reply or ends it.
    let count = usize::from(reply.le16(0)?) + 1;
    let (mut at, mut found) = (16usize, Vec::new());
    for _ in 0..count {
        let size = usize::from(reply.le16(at)?);
        let attributes = reply.u8(at + 2)?;
        let handles = reply.le16(at + 8)?;
        let reclaim_unit = reply.le64(at + 16)?;
        // Up to the handles' descriptors.
        reply.slice(at, 64)?;
        if size < 64 {
            return Err(Malformed { what: WHAT, need: 64, have: size });
        }
        let types = (0..usize::from(handles)).map_while(|n| {
            let offset = 64 + 4 * n;
            if offset + 4 > size { None } else { reply.u8(at + offset).ok() }
        });
        let isolation = types.map(|raw| match raw {
            1 => Isolation::Initially,
            2 => Isolation::Persistently,
            _ => Isolation::Reserved,
        });
        found.push(Configuration {
            valid: attributes >> 7 == 1,
            reclaim_groups: reply.le32(at + 4)?,
            handles,
            reclaim_unit,
            isolation: isolation.collect(),
        });
        at = at.saturating_add(size);
    }
    Ok(found)
}

/// Use of a reclaim unit handle (log page 21h).
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandleUse {
    /// Nobody uses it.
    Unused,
    /// A namespace's placement handle leads to it (host specified).
    Host,
    /// The controller uses it by itself.
    Controller,
    /// A reserved combination.
    Reserved,
}

/// Decodes log page 21h, Reclaim Unit Handle Usage.
///
/// # Errors
///
/// [`Malformed`] if the reply is shorter than its count says.
pub fn handle_usage(bytes: &[u8]) -> Result<Vec<HandleUse>, Malformed> {
    let reply = Reply::new("log page 21h (reclaim unit handle usage)", bytes);
    let count = usize::from(reply.le16(0)?);
    let raw = reply.slice(8, 8 * count)?;
    Ok(raw
        .chunks_exact(8)
        .map(|entry| match entry[0] & 7 {
            0 => HandleUse::Unused,
            1 => HandleUse::Host,
            2 => HandleUse::Controller,
            _ => HandleUse::Reserved,
        })
        .collect())
}

/// Log page 22h, FDP Statistics, of an endurance group. All in bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Statistics {
    /// HBMW: written by hosts.
    pub host_written: u128,
    /// MBMW: written to the media, including the host's.
    pub media_written: u128,
    /// MBE: erased.
    pub media_erased: u128,
}

impl Statistics {
    /// Decodes log page 22h (48 of its 64 bytes are needed).
    ///
    /// # Errors
    ///
    /// [`Malformed`] if the reply is shorter.
    pub fn decode(bytes: &[u8]) -> Result<Statistics, Malformed> {
        let reply = Reply::new("log page 22h (FDP statistics)", bytes);
        Ok(Statistics {
            host_written: reply.le128(0)?,
            media_written: reply.le128(16)?,
            media_erased: reply.le128(32)?,
        })
    }
}

/// One event of log page 23h.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Event {
    /// Its type: 0 unit not fully written, 1 time limit, 2 reset, 3 invalid placement identifier,
    /// 80h media reallocated, 81h implicit change of the unit.
    pub kind: u8,
    /// The placement identifier, if the event's flags say that it is meant.
    pub placement: Option<u16>,
    /// The reclaim unit handle, likewise.
    pub handle: Option<u16>,
}

/// Decodes log page 23h, FDP Events: at most the 63 that a page holds.
///
/// # Errors
///
/// [`Malformed`] if the reply is shorter than its count says.
pub fn events(bytes: &[u8]) -> Result<Vec<Event>, Malformed> {
    let reply = Reply::new("log page 23h (FDP events)", bytes);
    // The count is clamped first: it is the device's word.
    let count = reply.le32(0)?.min(63) as usize;
    let mut found = Vec::with_capacity(count);
    for at in (0..count).map(|n| 64 + 64 * n) {
        let flags = reply.u8(at + 1)?;
        // Flags: bit 0 placement identifier valid, bit 2 location (group and handle) valid.
        found.push(Event {
            kind: reply.u8(at)?,
            placement: (flags & 1 == 1).then_some(reply.le16(at + 2)?),
            handle: (flags >> 2 & 1 == 1).then_some(u16::from(reply.u8(at + 34)?)),
        });
    }
    Ok(found)
}

/// A placement handle of a namespace (I/O Management Receive, operation 1).
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct PlacementHandle {
    /// Placement identifier: what DSPEC of a write names.
    pub placement: u16,
    /// The reclaim unit handle behind it (RUHID).
    pub handle: u16,
    /// RUAMW: logical blocks that its reclaim unit still takes; the only counter per handle.
    pub writable: u64,
}

/// Decodes the reclaim unit handle status. The kernel's stream *n* is entry *n* − 1.
///
/// # Errors
///
/// [`Malformed`] if the reply is shorter than its count says.
pub fn handle_status(bytes: &[u8]) -> Result<Vec<PlacementHandle>, Malformed> {
    let reply = Reply::new("reclaim unit handle status", bytes);
    let count = usize::from(reply.le16(14)?);
    reply.slice(16, 32 * count)?;
    (0..count)
        .map(|n| 16 + 32 * n)
        .map(|at| {
            Ok(PlacementHandle {
                placement: reply.le16(at)?,
                handle: reply.le16(at + 2)?,
                writable: reply.le64(at + 8)?,
            })
        })
        .collect()
}

/// Log page 09h, Endurance Group Information. Units of 10⁹ bytes, as the specification has it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Endurance {
    /// Data units written by hosts.
    pub host_units: u128,
    /// Media units written, including the drive's own moves.
    pub media_units: u128,
}

impl Endurance {
    /// Decodes log page 09h (96 of its 512 bytes are needed).
    ///
    /// # Errors
    ///
    /// [`Malformed`] if the reply is shorter.
    pub fn decode(bytes: &[u8]) -> Result<Endurance, Malformed> {
        let reply = Reply::new("log page 09h (endurance group)", bytes);
        Ok(Endurance { host_units: reply.le128(64)?, media_units: reply.le128(80)? })
    }
}
