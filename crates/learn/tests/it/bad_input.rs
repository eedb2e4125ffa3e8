//! Traces that have no answer, and what is said of them.

use shelflife_layout::Class;
use shelflife_learn::{Error, LifetimeOptions, lifetimes};
use shelflife_trace::{Event, Op};

use crate::support::{trace, write};

fn error(events: &[Event], options: LifetimeOptions) -> Error {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path(), &[Class::Wal], events);
    lifetimes(&trace, &options, &mut |_| true).unwrap_err()
}

#[test]
fn without_a_write_there_is_no_answer() {
    let discard = Event { op: Op::Discard, ..write(0, 1) };
    for events in [&[][..], &[discard]] {
        let error = error(events, LifetimeOptions::default());
        assert!(matches!(error, Error::NoWrites { .. }), "{error}");
        assert!(error.to_string().contains("holds no write"), "{error}");
    }
}

#[test]
fn too_many_pages_are_said_with_the_way_out() {
    // a write every gigabyte, of the longest length there is
    let far = |n: u64| Event { offset: n << 33, length: u32::MAX.into(), ..Event::default() };
    let options = LifetimeOptions { memory_bytes: Some(10 << 20), ..LifetimeOptions::default() };
    let error = error(&[far(0), far(1)], options);
    assert!(error.to_string().contains("--sample 1/64"), "{error}");
}

#[test]
fn a_sample_of_nothing_is_refused() {
    for one_in in [0, (1 << 20) + 1] {
        let error = error(&[write(0, 1)], LifetimeOptions { one_in, ..Default::default() });
        assert!(matches!(error, Error::Sample(_)), "{error}");
    }
}

#[test]
fn the_caller_can_stop() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path(), &[Class::Wal], &[write(0, 1)]);
    let error = lifetimes(&trace, &LifetimeOptions::default(), &mut |_| false).unwrap_err();
    assert!(matches!(error, Error::Trace(shelflife_trace::Error::Stopped)), "{error}");
}
