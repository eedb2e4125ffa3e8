//! Which group the data of an event belong to, and what groups are called.
//!
//! Invariant: numbers of groups are below 2³¹, and each has one name.

use std::collections::HashMap;

use shelflife_trace::{Event, Events, FileEntry, FileTable, ProcessId};

use super::By;

/// Numbers and names of groups.
pub(crate) struct Naming {
    by: By,
    /// Group by file; empty if files are groups, or do not matter.
    by_file: Vec<u32>,
    names: Vec<String>,
}

impl Naming {
    pub fn new(by: By, files: &FileTable) -> Naming {
        let mut naming = Naming { by, by_file: Vec::new(), names: Vec::new() };
        let mut numbers: HashMap<String, u32> = HashMap::new();
        for (id, file) in files.iter() {
            let name = match by {
                By::Class => file.class.name().to_owned(),
                By::Relation => relation(file),
                // a table has less than 2^24 files
                By::File => {
                    let unnamed = || format!("file {} ({})", id.0, file.class);
                    naming.names.push(file.path.clone().unwrap_or_else(unnamed));
                    continue;
                }
                By::Process => return naming,
            };
            let number = *numbers.entry(name).or_insert_with_key(|name| {
                naming.names.push(name.clone());
                naming.names.len() as u32 - 1
            });
            naming.by_file.push(number);
        }
        naming
    }

    #[inline]
    pub fn group(&self, event: &Event) -> u32 {
        match self.by {
            By::File => event.file.0,
            By::Process => event.process.0.into(),
            // a reader gives no event of a file that is not in the table
            _ => self.by_file.get(event.file.0 as usize).copied().unwrap_or_default(),
        }
    }

    /// The names of the first `groups` processes that `events` came by.
    pub fn learn_processes(&mut self, events: &Events, groups: usize) {
        if self.by == By::Process {
            let numbers = (0..=u16::MAX).take(groups);
            let name = |number| events.process(ProcessId(number)).unwrap_or("unknown").to_owned();
            self.names = numbers.map(name).collect();
        }
    }

    pub fn name(&self, group: usize) -> String {
        self.names.get(group).cloned().unwrap_or_default()
    }
}

fn relation(file: &FileEntry) -> String {
    match (&file.database, &file.relation) {
        (Some(database), Some(relation)) => format!("{database}/{relation}"),
        (None, Some(relation)) => relation.clone(),
        _ => format!("({})", file.class),
    }
}
