//! Drives that answer nonsense.

use proptest::prelude::*;
use shelflife_probe::{NvmeCommand, ScsiCommand, dm, nvme as decode, scsi as pages};

use crate::drives::{fdp_drive, scsi, streams};
use crate::machine::Machine;

proptest! {
    /// Any bytes end in a value or an error; the fuzz target `device` goes deeper.
    #[test]
    fn any_reply_is_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = decode::Controller::decode(&bytes);
        let _ = decode::Namespace::decode(&bytes);
        let _ = decode::configurations(&bytes);
        let _ = decode::handle_usage(&bytes);
        let _ = decode::Statistics::decode(&bytes);
        let _ = decode::events(&bytes);
        let _ = decode::handle_status(&bytes);
        let _ = decode::Endurance::decode(&bytes);
        let _ = pages::reduced_stream_control(&bytes);
        let _ = pages::advice_groups(&bytes);
        let _ = pages::is_permanent(&bytes);
        let _ = pages::group_writes(&bytes, 1);
        let _ = dm::targets(&bytes);
    }
}

#[test]
fn a_drive_of_ones_gets_an_answer() {
    let mut machine = Machine::new("7.3.4-amd64");
    fdp_drive(&mut machine);
    let ones = vec![0xff; 1 << 17];
    let commands = [
        NvmeCommand::identify_namespace(1),
        NvmeCommand::fdp_feature(0xffff),
        NvmeCommand::log_page(0x20, 0xffff, 16),
        NvmeCommand::log_page(0x20, 0xffff, 1 << 16),
        NvmeCommand::log_page(0x21, 0xffff, 4096),
        NvmeCommand::log_page(0x22, 0xffff, 64),
        NvmeCommand::log_page(0x23, 0xffff, 4096),
        NvmeCommand::handle_status(1, 16 + 32 * 128),
    ];
    for command in commands {
        machine.nvme_reply("nvme0n1", command, u32::MAX, ones.clone());
    }
    machine.mount((259, 0), "/srv/pg", "f2fs", "/dev/nvme0n1", "active_logs=6");
    let says = machine.says("/srv/pg");
    assert!(says.starts_with("Hints on /srv/pg reach nvme0n1"), "{says}");

    let disk = scsi(&mut machine, 0, "mpt3sas", ("X", "\u{1b}[2J"));
    streams(&mut machine, &disk, 5);
    machine.scsi_reply("sda", ScsiCommand::advice_groups(512), ones.clone());
    machine.scsi_reply("sda", ScsiCommand::stream_status(0), ones);
    machine.mount((8, 0), "/mnt", "xfs", "/dev/sda", "x");
    let says = machine.says("/mnt");
    assert!(!says.contains('\u{1b}'), "a model name steers the terminal: {says:?}");
}
