//! What the drivers sent: write commands in a trace of its own (`tracefs`), for every kernel.
//!
//! Invariant: nothing of the machine's own tracing is touched, and the trace is gone at the end, also
//! by a panic. After a kill it stays, by the name `shelflife-PID`, until it is removed or the machine starts anew.

use std::fs;
use std::path::{Path, PathBuf};

use super::proof::Tagged;
use crate::host::Host;
use crate::leaf::Leaf;

/// A trace of write commands.
#[derive(Debug)]
pub(super) struct Tracer {
    folder: PathBuf,
}

/// A drive as the tracepoints name it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Device {
    /// `disk=` of NVMe, one for each path; `host:channel:id:lun` of SCSI; of a driver whose commands
    /// have no field for a hint, the number `254,0` that requests to it carry.
    pub(super) names: Vec<String>,
    /// Bytes of a logical block.
    pub(super) block: u64,
}

/// Events and the commands that write.
const EVENTS: [(&str, &str); 3] = [
    (
        "events/scsi/scsi_dispatch_cmd_start",
        "opcode == 0x0a || opcode == 0x2a || opcode == 0x8a || opcode == 0x7f",
    ),
    ("events/nvme/nvme_setup_cmd", "opcode == 1"),
    ("events/block/block_rq_issue", "bytes > 0"),
];

/// What is said of drives whose drivers show no commands.
pub(super) const NONE: &str = "commands: the drive's driver has no tracepoint for them";

/// The drives as the tracepoints name them, but for those that have none.
pub(super) fn devices(host: &Host, drives: &[Leaf]) -> Vec<Device> {
    drives.iter().filter_map(|leaf| device(host, leaf)).collect()
}

impl Tracer {
    pub(super) fn start() -> Result<Tracer, String> {
        let roots = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
        let root = roots.iter().map(Path::new).find(|root| root.join("instances").is_dir());
        let root = root.ok_or(
            "commands: tracefs is not mounted at /sys/kernel/tracing, or not shown without root",
        )?;
        let folder = root.join(format!("instances/shelflife-{}", std::process::id()));
        fs::create_dir(&folder)
            .map_err(|error| format!("commands: {}: {error}", folder.display()))?;
        let tracer = Tracer { folder };
        let mut any = false;
        for (event, filter) in EVENTS {
            // An older tracepoint without the field shows more than is needed, which is no harm.
            let _ = fs::write(tracer.folder.join(event).join("filter"), filter);
            any |= fs::write(tracer.folder.join(event).join("enable"), "1").is_ok();
        }
        if !any {
            return Err("commands: the kernel has no tracepoint for them".to_owned());
        }
        // By its time a command is told to belong to a piece: the clock must be that of the pieces.
        fs::write(tracer.folder.join("trace_clock"), "mono")
            .map_err(|error| format!("commands: trace_clock: {error}"))?;
        let _ = fs::write(tracer.folder.join("buffer_size_kb"), "4096");
        tracer.go_on();
        Ok(tracer)
    }

    /// The write commands to these devices since the last call, each with its time in nanoseconds of
    /// CLOCK_MONOTONIC.
    pub(super) fn take(&self, devices: &[Device]) -> Vec<(u64, Tagged)> {
        let _ = fs::write(self.folder.join("tracing_on"), "0");
        let text = fs::read(self.folder.join("trace")).unwrap_or_default();
        self.go_on();
        parse(&String::from_utf8_lossy(&text), devices)
    }

    fn go_on(&self) {
        let _ = fs::write(self.folder.join("trace"), "");
        let _ = fs::write(self.folder.join("tracing_on"), "1");
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        for (event, _) in EVENTS {
            let _ = fs::write(self.folder.join(event).join("enable"), "0");
        }
        let _ = fs::remove_dir(&self.folder);
    }
}

fn device(host: &Host, leaf: &Leaf) -> Option<Device> {
    let name = &leaf.drive.device;
    let folder = format!("/sys/block/{name}");
    let block = host.number(format!("{folder}/queue/logical_block_size")).unwrap_or(512);
    let names = if name.starts_with("nvme") {
        // Requests of a multipath namespace carry the name of the path: nvme0c1n1.
        let head: Vec<&str> = name.splitn(2, 'n').collect();
        let paths = host.names("/sys/block").into_iter().filter(|path| is_path_of(path, name));
        let own = head.first().map(|_| name.clone());
        own.into_iter().chain(paths).collect()
    } else if name.starts_with("sd") {
        let address = host.resolve(format!("{folder}/device"))?;
        vec![address.file_name()?.to_str()?.to_owned()]
    } else if crate::block::has_no_field(&leaf.drive.transport) {
        vec![host.text(format!("{folder}/dev"))?.replace(':', ",")]
    } else {
        return None;
    };
    Some(Device { names, block })
}

/// Whether `nvme0c1n1` is a path of `nvme0n1`.
fn is_path_of(path: &str, head: &str) -> bool {
    let split = |name: &str| {
        let rest = name.strip_prefix("nvme")?;
        let at = rest.find(|c: char| !c.is_ascii_digit())?;
        Some((rest[..at].to_owned(), rest[at..].to_owned()))
    };
    let (Some((subsystem, tail)), Some((other, namespace))) = (split(path), split(head)) else {
        return false;
    };
    let through = tail.strip_prefix('c').and_then(|tail| tail.find('n').map(|at| &tail[at..]));
    subsystem == other && through == Some(namespace.as_str())
}

/// The write commands to these devices, with their times.
pub(super) fn parse(trace: &str, devices: &[Device]) -> Vec<(u64, Tagged)> {
    let command = |line: &str| {
        let found = scsi(line, devices)
            .or_else(|| nvme(line, devices))
            .or_else(|| request(line, devices))?;
        Some((time(line)?, found))
    };
    trace.lines().filter_map(command).collect()
}

/// ` sh-1 [000] ..... 12.345678: event: …`, in nanoseconds.
fn time(line: &str) -> Option<u64> {
    let stamp = line.split_ascii_whitespace().filter_map(|word| word.strip_suffix(':'));
    stamp.filter_map(|stamp| stamp.split_once('.')).find_map(|(seconds, rest)| {
        let micros: u64 = rest.parse().ok().filter(|_| rest.len() == 6)?;
        seconds.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(micros)?.checked_mul(1000)
    })
}

/// The word after `key` in a line: `lba=2048 txlen=8`.
fn field<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    let at = line.find(key)? + key.len();
    line[at..].split([' ', ',', ')']).next()
}

/// `… host_no=0 channel=0 id=0 lun=0 … cmnd=(WRITE_10 lba=4 txlen=8 protect=0 raw=2a 00 …)`
fn scsi(line: &str, devices: &[Device]) -> Option<Tagged> {
    let command = &line[line.find("cmnd=(WRITE_")? + 6..];
    let address = ["host_no=", "channel=", " id=", "lun="].map(|key| field(line, key));
    let [Some(host), Some(channel), Some(id), Some(lun)] = address else { return None };
    let name = format!("{host}:{channel}:{id}:{lun}");
    let device = devices.iter().find(|device| device.names.contains(&name))?;
    let blocks: u64 = field(command, "txlen=")?.parse().ok()?;
    let raw = &command[command.find("raw=")? + 4..];
    let raw: Vec<u8> =
        raw.split([' ', ')']).map_while(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    // WRITE(10): byte 6; WRITE(16): byte 14; WRITE(32): byte 6; WRITE(6) has no field.
    let group = match raw.first()? {
        0x2a | 0x7f => *raw.get(6)?,
        0x8a => *raw.get(14)?,
        _ => 0,
    };
    let bytes = blocks.saturating_mul(device.block);
    Some(Tagged { group: Some(group & 0x3f), placement: None, bytes })
}

/// `… nvme_setup_cmd: nvme0: disk=nvme0n1, … cmd=(nvme_cmd_write slba=8, len=7, ctrl=0x20, dsmgmt=65536, reftag=0)`
fn nvme(line: &str, devices: &[Device]) -> Option<Tagged> {
    let command = &line[line.find("cmd=(nvme_cmd_write ")?..];
    let disk = field(line, "disk=")?;
    let device = devices.iter().find(|device| device.names.iter().any(|name| name == disk))?;
    let blocks: u64 = field(command, "len=")?.parse().ok()?;
    let control = u16::from_str_radix(field(command, "ctrl=0x")?, 16).ok()?;
    let management: u32 = field(command, "dsmgmt=")?.parse().ok()?;
    // DTYPE 2 is data placement; DSPEC is the identifier.
    let placement = (control >> 4 & 0xf == 2).then_some((management >> 16) as u16);
    let bytes = blocks.saturating_add(1).saturating_mul(device.block);
    Some(Tagged { group: None, placement, bytes })
}

/// `… block_rq_issue: 254,0 WS 131072 () 2048 + 256 none,0,0 [sh]`, of a driver that sends no more than that.
fn request(line: &str, devices: &[Device]) -> Option<Tagged> {
    let request = &line[line.find("block_rq_issue: ")? + 16..];
    let mut words = request.split(' ');
    let number = words.next()?;
    devices.iter().find(|device| device.names.iter().any(|name| name == number))?;
    if !words.next()?.contains('W') {
        return None;
    }
    let sectors: u64 = words.skip_while(|word| *word != "+").nth(1)?.parse().ok()?;
    Some(Tagged { group: None, placement: None, bytes: sectors.saturating_mul(512) })
}

#[cfg(test)]
mod tests {
    use super::*;

    // Lines of Linux 6.12 and 7.3.
    const TRACE: &str = "\
 sh-1 [000] ..... 9.100000: scsi_dispatch_cmd_start: host_no=0 channel=0 id=0 lun=0 data_sgl=1 prot_sgl=0 \
prot_op=SCSI_PROT_NORMAL driver_tag=3 scheduler_tag=4 cmnd=(WRITE_10 lba=1280 txlen=8 protect=0 raw=2a 00 \
00 00 05 00 05 00 08 00)
 sh-1 [000] ..... 9.200000: scsi_dispatch_cmd_start: host_no=0 channel=0 id=0 lun=0 data_sgl=1 prot_sgl=0 \
prot_op=SCSI_PROT_NORMAL driver_tag=3 scheduler_tag=4 cmnd=(WRITE_16 lba=1280 txlen=16 protect=0 raw=8a 00 \
00 00 00 00 00 00 05 00 00 00 00 10 02 00)
 sh-1 [000] ..... 9.200000: scsi_dispatch_cmd_start: host_no=1 channel=0 id=0 lun=0 data_sgl=1 prot_sgl=0 \
prot_op=SCSI_PROT_NORMAL driver_tag=3 scheduler_tag=4 cmnd=(WRITE_10 lba=1280 txlen=8 protect=0 raw=2a 00 \
00 00 05 00 05 00 08 00)
 sh-1 [000] ..... 9.300000: nvme_setup_cmd: nvme0: disk=nvme0c0n1, qid=1, cmdid=7, nsid=1, flags=0x0, meta=0x0, \
cmd=(nvme_cmd_write slba=8, len=7, ctrl=0x20, dsmgmt=65536, reftag=0)
 sh-1 [000] ..... 9.300000: nvme_setup_cmd: nvme0: disk=nvme0c0n1, qid=1, cmdid=7, nsid=1, flags=0x0, meta=0x0, \
cmd=(nvme_cmd_write slba=16, len=7, ctrl=0x4000, dsmgmt=0, reftag=0)
 sh-1 [000] ..... 9.300000: nvme_setup_cmd: nvme0: disk=nvme1n1, qid=1, cmdid=7, nsid=1, flags=0x0, meta=0x0, \
cmd=(nvme_cmd_write slba=16, len=7, ctrl=0x0, dsmgmt=0, reftag=0)
 sh-1 [000] ..... 9.400000: block_rq_issue: 254,0 WS 131072 () 2048 + 256 none,0,0 [sh]
 sh-1 [000] ..... 9.400000: block_rq_issue: 254,0 RA 131072 () 2048 + 256 none,0,0 [sh]
 sh-1 [000] ..... 9.400000: block_rq_issue: 8,0 WS 131072 () 2048 + 256 none,0,0 [sh]
";

    #[test]
    fn commands_have_tag_and_time() {
        let device = |name: &str, block| Device { names: vec![name.to_owned()], block };
        let devices = [device("0:0:0:0", 512), device("nvme0c0n1", 4096), device("254,0", 512)];
        let tagged = |group, placement, bytes| Tagged { group, placement, bytes };
        let at = |tenths: u64| 9_000_000_000 + tenths * 100_000_000;
        assert_eq!(
            parse(TRACE, &devices),
            [
                (at(1), tagged(Some(5), None, 4096)),
                (at(2), tagged(Some(2), None, 8192)),
                (at(3), tagged(None, Some(1), 32768)),
                (at(3), tagged(None, None, 32768)),
                (at(4), tagged(None, None, 131_072)),
            ]
        );
        for cut in 0..TRACE.len() {
            parse(&TRACE[..cut], &devices);
        }
    }

    #[test]
    fn paths_belong_to_their_namespace() {
        assert!(is_path_of("nvme0c1n1", "nvme0n1"));
        assert!(!is_path_of("nvme0c1n2", "nvme0n1"));
        assert!(!is_path_of("nvme1c1n1", "nvme0n1"));
        assert!(!is_path_of("nvme0n1", "nvme0n1"));
        assert!(!is_path_of("sda", "nvme0n1"));
    }
}
