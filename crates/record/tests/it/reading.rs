//! What a trace holds, in the form in which tests ask.

use std::collections::BTreeMap;
use std::path::Path;

use shelflife_lifetime::Lifetime;
use shelflife_trace::{Event, FileEntry, Op, Trace};

/// A whole trace in memory.
pub struct Whole {
    pub events: Vec<(Event, FileEntry)>,
}

impl Whole {
    pub fn read(folder: &Path) -> Whole {
        let trace = Trace::open(folder).unwrap();
        let files = trace.files().clone();
        let events = trace
            .events()
            .map(|event| {
                let event = event.unwrap();
                (event, files.get(event.file).unwrap().clone())
            })
            .collect();
        Whole { events }
    }

    /// Bytes written by path and hint; what has no path is left out.
    pub fn by_file(&self) -> BTreeMap<(String, Lifetime), u64> {
        let mut sums = BTreeMap::new();
        for (event, file) in &self.events {
            if let (Op::Write, Some(path)) = (event.op, &file.path) {
                *sums.entry((path.clone(), event.hint)).or_insert(0) += event.length;
            }
        }
        sums
    }

    /// Bytes of `op` by class.
    pub fn by_class(&self, op: Op) -> BTreeMap<&'static str, u64> {
        let mut sums = BTreeMap::new();
        for (event, file) in self.events.iter().filter(|(event, _)| event.op == op) {
            *sums.entry(file.class.name()).or_insert(0) += event.length;
        }
        sums
    }
}
