//! The fast count agrees with a slow one that is obviously right.

use std::collections::HashMap;

use proptest::prelude::*;
use shelflife_layout::Class;
use shelflife_learn::{LifetimeOptions, Spread, bin, middle};
use shelflife_trace::{Event, FileId, Op};

use crate::support::{found, trace};

const CLASSES: [Class; 2] = [Class::Wal, Class::Relation];
const NAMES: [&str; 3] = ["unknown", "wal", "relation"];

/// Lifetime by bytes and by time, and whether it ended.
type Life = ([u64; 2], bool);

/// The lives of each file's pages.
fn lives(events: &[Event]) -> [Vec<Life>; 3] {
    let mut lives: [Vec<Life>; 3] = Default::default();
    let mut pages: HashMap<(u16, u64), (u64, u64, usize)> = HashMap::new();
    let (mut clock, mut last) = ([0, 0], 0);
    for event in events {
        let now = clock[event.device as usize];
        let mut die = |birth: Option<(u64, u64, usize)>| {
            if let Some((clock, time, file)) = birth {
                lives[file].push(([now - clock, event.time.saturating_sub(time)], true));
            }
        };
        // byte by 512 bytes, as blunt as can be
        let touched = |page: u64| {
            (page * 8..page * 8 + 8).filter(|s| (event.offset..event.end()).contains(&(s * 512)))
        };
        for page in 0..64 {
            let sectors = touched(page).count();
            if event.op == Op::Write && sectors > 0 {
                let file = event.file.0 as usize;
                die(pages.insert((event.device, page), (now, event.time, file)));
            } else if event.op != Op::Write && sectors == 8 {
                die(pages.remove(&(event.device, page)));
            }
        }
        if event.op == Op::Write {
            clock[event.device as usize] += event.length;
        }
        last = last.max(event.time);
    }
    for ((device, _), (born, time, file)) in pages {
        lives[file].push(([clock[device as usize] - born, last.saturating_sub(time)], false));
    }
    lives
}

/// Kaplan and Meier as it stands in the books, on the middles of bins.
fn quantile(lives: &[Life], clock: usize, dead: f64) -> Option<u64> {
    let lives: Vec<(u64, bool)> =
        lives.iter().map(|(at, died)| (middle(bin(at[clock])), *died)).collect();
    let mut times: Vec<u64> = lives.iter().filter(|life| life.1).map(|life| life.0).collect();
    times.sort_unstable();
    times.dedup();
    let mut alive = 1.0;
    for time in times {
        let at_risk = lives.iter().filter(|life| life.0 >= time).count() as f64;
        let deaths = lives.iter().filter(|life| **life == (time, true)).count() as f64;
        alive *= (at_risk - deaths) / at_risk;
        if alive <= 1.0 - dead + 1e-9 {
            return Some(time);
        }
    }
    None
}

fn event() -> impl Strategy<Value = Event> {
    let op = prop_oneof![8 => Just(Op::Write), 1 => Just(Op::Discard), 1 => Just(Op::WriteZeroes)];
    let place = (0u64..400, 1u64..100);
    (op, place, 0u16..2, 0u32..3, 0u64..2000).prop_map(|(op, (at, many), device, file, time)| {
        Event {
            op,
            offset: at * 512,
            length: many.min(500 - at) * 512,
            device,
            file: FileId(file),
            time,
            ..Event::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn counts_and_quantiles_agree(mut events in proptest::collection::vec(event(), 1..120)) {
        events.push(Event { length: 512, ..Event::default() });
        let folder = tempfile::tempdir().unwrap();
        let found = found(&trace(folder.path(), &CLASSES, &events), LifetimeOptions::default());
        for (name, lives) in NAMES.iter().zip(lives(&events)) {
            let Some(row) = found.rows.iter().find(|row| row.name == *name) else {
                prop_assert!(lives.is_empty());
                continue;
            };
            let died = lives.iter().filter(|life| life.1).count() as u64;
            prop_assert_eq!((row.died, row.alive), (died, lives.len() as u64 - died));
            let spread = |spread: &Spread| [spread.p10, spread.median, spread.p90];
            for (clock, spread) in [spread(&row.host_bytes), spread(&row.time_ns)].iter().enumerate() {
                let expected = [0.1, 0.5, 0.9].map(|dead| quantile(&lives, clock, dead));
                prop_assert_eq!(*spread, expected, "{}", name);
            }
        }
    }
}
