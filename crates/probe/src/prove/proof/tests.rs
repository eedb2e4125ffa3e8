//! What is made of what was seen.

use super::*;
use crate::block::Drive;
use crate::fdp::Fdp;
use crate::nvme::PlacementHandle;
use crate::signal::Grid;

const DATA: u64 = (PIECE * PIECES) as u64;

fn leaf(device: &str, transport: &str, placements: &[(u16, u16)]) -> Leaf {
    let drive = Drive { device: device.into(), transport: transport.into(), ..Drive::default() };
    let placements: Vec<PlacementHandle> = placements
        .iter()
        .map(|(placement, handle)| PlacementHandle {
            placement: *placement,
            handle: *handle,
            writable: 1000,
        })
        .collect();
    let fdp = (!placements.is_empty()).then(|| Fdp { placements, ..Fdp::default() });
    Leaf { drive, fdp, arrivals: Grid::default() }
}

fn group(group: u8, bytes: u64) -> Tagged {
    Tagged { group: Some(group), placement: None, bytes }
}

fn identifier(placement: Option<u16>, bytes: u64) -> Tagged {
    Tagged { group: None, placement, bytes }
}

/// What is made of these commands for one lifetime, and the notes.
fn seen(commands: &[Tagged], moved: &[Moved], drives: &[Leaf]) -> (Observed, Vec<String>) {
    // each piece alike
    let half = |one: &Tagged| Tagged { bytes: one.bytes / 2, ..*one };
    let piece: Vec<Tagged> = commands.iter().map(half).collect();
    let sight = Sight {
        commands: vec![piece.clone(), piece],
        moved: moved.to_vec(),
        bytes: DATA,
        ..Sight::default()
    };
    let mut notes = Vec::new();
    (observe(&sight, None, true, drives, &mut notes), notes)
}

#[test]
fn the_data_decides_and_metadata_does_not() {
    let drives = [leaf("sda", "scsi", &[])];
    let (one, notes) = seen(&[group(0, 20_000), group(1, 60_000), group(5, DATA)], &[], &drives);
    assert_eq!((one.known, one.group, one.partly), (true, Some(5), false));
    assert!(notes.is_empty());
    assert_eq!(one.sent().as_deref(), Some("group 5"));
    let (plain, _) = seen(&[group(0, DATA + 9000), group(4, 80_000)], &[], &drives);
    assert_eq!((plain.known, plain.group), (true, Some(0)));
    let (journal, _) = seen(&[group(0, DATA), group(2, DATA)], &[], &drives);
    assert_eq!((journal.group, journal.partly), (Some(2), true));
    let (compressed, _) = seen(&[group(0, 60_000)], &[], &drives);
    assert_eq!((compressed.known, compressed.group), (true, Some(0)));
}

#[test]
fn too_little_and_too_much_are_unknown() {
    let drives = [leaf("sda", "scsi", &[])];
    let (nothing, notes) = seen(&[], &[], &drives);
    assert!(!nothing.known && notes[0].contains("too few"), "{notes:?}");
    let (others, notes) = seen(&[group(2, DATA), group(3, DATA)], &[], &drives);
    assert!(!others.known && notes[0].contains("others wrote"), "{notes:?}");
    let piece = vec![group(2, DATA / 2)];
    let commands = vec![piece.clone(), piece];
    let unwritten = Sight { bytes: DATA - 1, commands, ..Sight::default() };
    assert!(!observe(&unwritten, None, true, &drives, &mut Vec::new()).known);
}

/// As f2fs's cleaner does on a file system that was idle.
#[test]
fn a_burst_of_others_during_one_piece_is_not_the_data() {
    let drives = [leaf("sda", "scsi", &[])];
    let look = |pieces: [Vec<Tagged>; 2]| {
        let sight = Sight { commands: pieces.to_vec(), bytes: DATA, ..Sight::default() };
        let mut notes = Vec::new();
        (observe(&sight, None, true, &drives, &mut notes), notes)
    };
    let (own, burst) = (group(2, DATA / 2), group(5, 8 * DATA));
    let (one, notes) = look([vec![own, burst], vec![own]]);
    assert!(one.known && one.group == Some(2) && notes.is_empty(), "{notes:?}");
    assert_eq!(one.commands, [group(2, DATA), burst]);
    // of a burst alone nothing is known
    assert!(!look([vec![burst], Vec::new()]).0.known);
    let (both, notes) = look([vec![own, burst], vec![own, burst]]);
    assert!(!both.known && notes[0].contains("others wrote"), "{notes:?}");
}

#[test]
fn without_a_trace_only_what_cannot_be_is_known() {
    let sight = Sight { bytes: DATA, ..Sight::default() };
    let look = |drive| observe(&sight, None, false, &[drive], &mut Vec::new());
    assert!(look(leaf("vda", "virtio-blk", &[])).known);
    assert!(!look(leaf("sda", "scsi", &[])).known);
    assert!(!observe(&sight, None, false, &[], &mut Vec::new()).known);
}

#[test]
fn no_identifier_is_that_of_the_first_handle() {
    let drives = [leaf("nvme0n1", "nvme", &[(0, 0), (1, 1), (2, 2)])];
    let sent = |placement| seen(&[identifier(placement, DATA)], &[], &drives).0;
    let all = |short| {
        let mut all = vec![sent(None); 6];
        all[Lifetime::Short as usize] = sent(short);
        verdict(&all, &drives, Some(false))
    };
    assert_eq!(all(None), Verdict::NotDelivered);
    assert_eq!(all(Some(0)), Verdict::NotDelivered, "the handle that takes everything");
    assert_eq!(all(Some(1)), Verdict::Delivered);
    assert_eq!(verdict(&vec![sent(None); 6], &drives, Some(true)), Verdict::FileSystemOnly);
    assert_eq!(verdict(&vec![sent(None); 6], &drives, None), Verdict::Unknown);
    let mut unknown = vec![sent(None); 6];
    unknown[5].known = false;
    assert_eq!(verdict(&unknown, &drives, Some(true)), Verdict::Unknown);
}

#[test]
fn a_handle_that_did_not_move_contradicts() {
    let drives = [leaf("nvme0n1", "nvme", &[(0, 0), (1, 1)])];
    let moved = |number| Moved { device: "nvme0n1".into(), what: "handle", number, by: 96 };
    let (good, notes) = seen(&[identifier(Some(1), DATA)], &[moved(1)], &drives);
    assert!(good.known && notes.is_empty());
    let (bad, notes) = seen(&[identifier(Some(1), DATA)], &[moved(0)], &drives);
    assert!(!bad.known && notes[0].contains("did not move"), "{notes:?}");
}

#[test]
fn sums_are_by_tag() {
    let sums = sum([group(2, 10), group(3, 1), group(2, u64::MAX)].into_iter());
    assert_eq!(sums, [group(2, u64::MAX), group(3, 1)]);
}

/// With few zones XFS has none to spare for a hint: that it opened none says nothing.
#[test]
fn zones_without_a_hint_are_no_answer() {
    let zones =
        |names: &[&str]| in_zones(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
    assert_eq!(zones(&[]), Some(false), "not zoned");
    assert_eq!(zones(&["not_set"]), None);
    assert_eq!(zones(&["none", "not_set"]), None);
    for hint in ["short", "medium", "long", "extreme"] {
        assert_eq!(zones(&["none", hint]), Some(true));
    }
}
