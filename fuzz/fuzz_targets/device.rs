//! Any bytes as what a drive or the device mapper answers: decoding ends in a value or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shelflife_probe::{dm, nvme, scsi};

fuzz_target!(|data: &[u8]| {
    let Some((choice, reply)) = data.split_first() else { return };
    match choice % 13 {
        0 => _ = nvme::Controller::decode(reply),
        1 => _ = nvme::Namespace::decode(reply),
        2 => {
            if let Ok(all) = nvme::configurations(reply) {
                assert!(all.iter().all(|one| one.isolation.len() <= usize::from(one.handles)));
            }
        }
        3 => _ = nvme::handle_usage(reply),
        4 => _ = nvme::Statistics::decode(reply),
        5 => {
            if let Ok(all) = nvme::events(reply) {
                assert!(all.len() <= 63);
            }
        }
        6 => _ = nvme::handle_status(reply),
        7 => _ = nvme::Endurance::decode(reply),
        8 => _ = scsi::reduced_stream_control(reply),
        9 => {
            if let Ok(all) = scsi::advice_groups(reply) {
                assert!(all.len() <= reply.len() / 16);
            }
        }
        10 => _ = scsi::is_permanent(reply),
        11 => _ = scsi::group_writes(reply, choice / 13 + 1),
        _ => {
            if let Ok(all) = dm::targets(reply) {
                assert!(all.len() <= reply.len());
            }
        }
    }
});
