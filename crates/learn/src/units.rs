//! What a policy can tell apart: classes of files, and for an applier with a catalog relations.
//!
//! Invariant: unit 0 is all that no rule will name; every other unit can be named by one rule that
//! its applier follows. `wal` and `wal-new` are one unit: a segment is made as the one, renamed to
//! the other, and keeps its hint.

use std::collections::HashMap;

use shelflife_layout::Class;
use shelflife_policy::{Applier, RelationName};
use shelflife_ssd::Kind;
use shelflife_trace::{FileClass, FileEntry, FileTable};

use crate::histogram::Histogram;
use crate::recording::Packed;
use crate::survival::Survival;

/// What has less than this share of the page writes is left alone: nothing can be learned of it.
pub(crate) const LEAST_SHARE: f64 = 0.005;
/// Relations need more, and there are at most so many of them.
const LEAST_RELATION: f64 = 0.02;
const MOST_RELATIONS: usize = 8;

/// Something that a rule can name.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    pub name: String,
    pub classes: Vec<Class>,
    pub relation: Option<RelationName>,
    /// Page writes.
    pub written: u64,
    /// Half of the pages are dead after so many page writes of the host.
    pub median: Option<u64>,
}

/// All units, and which each file belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    /// By number − 1, shortest median first.
    pub units: Vec<Unit>,
    /// Unit by file, 0 for none.
    pub by_file: Vec<u16>,
    /// Median lifetime of unit 0.
    pub rest: Option<u64>,
}

/// The class that `applier` takes a file for; none if no rule can name it.
fn class(file: &FileEntry, applier: Applier) -> Option<Class> {
    match file.class {
        FileClass::Uncommitted => Some(Class::Relation),
        FileClass::File(Class::Outside) => None,
        FileClass::File(class) if applier == Applier::Hook && class.needs_catalog() => {
            Some(Class::Relation)
        }
        FileClass::File(Class::WalNew) => Some(Class::Wal),
        FileClass::File(class) => Some(class),
        _ => None,
    }
}

fn relation(file: &FileEntry) -> Option<RelationName> {
    let relation = file.relation.as_deref()?;
    let text = match &file.database {
        Some(database) => format!("{database}/{relation}"),
        None => relation.to_owned(),
    };
    RelationName::parse(&text)
}

impl Units {
    /// The units of `files` that `ops` (on `pages` pages) write enough of.
    pub fn new(
        files: &FileTable,
        ops: &[Packed],
        pages: u32,
        applier: Applier,
        relations: bool,
    ) -> Units {
        let mut written = vec![0_u64; files.len()];
        for op in ops {
            if let Some(count) = written.get_mut(op.file as usize) {
                *count += op.written();
            }
        }
        let all: u64 = written.iter().sum();
        let enough = |count: u64, share: f64| count as f64 >= share * all as f64 && count > 0;
        let mut by_relation: HashMap<RelationName, u64> = HashMap::new();
        if relations && applier == Applier::Watch {
            for ((_, file), count) in files.iter().zip(&written) {
                if let Some(name) = relation(file).filter(|_| class(file, applier).is_some()) {
                    *by_relation.entry(name).or_default() += count;
                }
            }
        }
        let mut named: Vec<(RelationName, u64)> =
            by_relation.into_iter().filter(|(_, count)| enough(*count, LEAST_RELATION)).collect();
        named.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.to_string().cmp(&b.0.to_string())));
        named.truncate(MOST_RELATIONS);
        let mut found: Vec<Unit> = named
            .into_iter()
            .map(|(name, _)| Unit {
                name: name.to_string(),
                classes: Vec::new(),
                relation: Some(name),
                written: 0,
                median: None,
            })
            .collect();
        let mut by_file = vec![0_u16; files.len()];
        for (at, ((_, file), count)) in files.iter().zip(&written).enumerate() {
            let Some(class) = class(file, applier) else { continue };
            let own = relation(file);
            let known = found.iter().position(|unit| match &unit.relation {
                Some(name) => own.as_ref() == Some(name),
                None => unit.classes.contains(&class),
            });
            let number = known.unwrap_or_else(|| {
                let classes = match class {
                    Class::Wal => vec![Class::Wal, Class::WalNew],
                    class => vec![class],
                };
                let name = class.name().to_owned();
                found.push(Unit { name, classes, relation: None, written: 0, median: None });
                found.len() - 1
            });
            found[number].written += count;
            // fewer than 64 classes and 8 relations
            by_file[at] = number as u16 + 1;
        }
        Units::measured(found, by_file, ops, pages, |count| enough(count, LEAST_SHARE))
    }

    /// Leaves out what is too little, measures the rest and puts it in order.
    fn measured(
        found: Vec<Unit>,
        by_file: Vec<u16>,
        ops: &[Packed],
        pages: u32,
        enough: impl Fn(u64) -> bool,
    ) -> Units {
        let unit_of = |file: u32| by_file.get(file as usize).copied().unwrap_or_default();
        let survivals = survivals(found.len() + 1, ops, pages, unit_of);
        let median = |at: usize| survivals[at].quantile(0.5);
        let mut order: Vec<usize> =
            (0..found.len()).filter(|at| enough(found[*at].written)).collect();
        order.sort_by_key(|at| (median(at + 1).unwrap_or(u64::MAX), *at));
        let mut numbers = vec![0_u16; found.len() + 1];
        for (number, at) in (1..).zip(&order) {
            numbers[at + 1] = number;
        }
        let units = order.iter().map(|at| Unit { median: median(at + 1), ..found[*at].clone() });
        Units {
            units: units.collect(),
            by_file: by_file.iter().map(|number| numbers[usize::from(*number)]).collect(),
            rest: median(0),
        }
    }
}

/// The survival of each unit's pages, on the clock of page writes.
fn survivals(
    units: usize,
    ops: &[Packed],
    pages: u32,
    unit_of: impl Fn(u32) -> u16,
) -> Vec<Survival> {
    const NOBODY: u16 = u16::MAX;
    let mut births = vec![(0_u64, NOBODY); pages as usize];
    let mut died = vec![Histogram::default(); units];
    let mut alive = died.clone();
    let mut clock = 0;
    for op in ops {
        let (first, unit) = (op.page as usize, unit_of(op.file));
        let range = first..first + op.pages() as usize;
        for birth in births.get_mut(range).into_iter().flatten() {
            if birth.1 != NOBODY {
                died[usize::from(birth.1)].add(clock - birth.0, 1);
            }
            *birth = match op.kind() {
                Kind::Write => (clock, unit),
                _ => (0, NOBODY),
            };
        }
        clock += op.written();
    }
    for (born, unit) in births {
        if unit != NOBODY {
            alive[usize::from(unit)].add(clock - born, 1);
        }
    }
    died.iter().zip(&alive).map(|(died, alive)| Survival::new(died, alive)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> FileTable {
        let mut files = FileTable::new();
        let mut heap = FileEntry::new(Class::Relation.into());
        heap.relation = Some("public.hot".into());
        let mut index = FileEntry::new(Class::Index.into());
        index.relation = Some("public.hot_pkey".into());
        for file in [
            FileEntry::new(Class::Wal.into()),
            FileEntry::new(Class::WalNew.into()),
            heap,
            index,
            FileEntry::new(FileClass::FsJournal),
            FileEntry::new(Class::Temp.into()),
        ] {
            files.push(file).unwrap();
        }
        files
    }

    /// The files write 400, 100, 300, 150, 49 and 1 pages, the log goes round in 20.
    fn ops() -> Vec<Packed> {
        let one = |file, n: u32, round: u32| {
            (0..n).map(move |at| Packed::new(Kind::Write, file * 1000 + at % round, 1, file))
        };
        let log = one(1, 400, 20).chain(one(2, 100, 20));
        log.chain(one(3, 300, 150))
            .chain(one(4, 150, 100))
            .chain(one(5, 49, 49))
            .chain(one(6, 1, 1))
            .collect()
    }

    fn names(applier: Applier, relations: bool) -> (Vec<String>, Vec<u16>) {
        let units = Units::new(&files(), &ops(), 10_000, applier, relations);
        let name = |unit: &Unit| format!("{} {}", unit.name, unit.written);
        (units.units.iter().map(name).collect(), units.by_file)
    }

    #[test]
    fn the_hook_sees_fewer_units_than_the_daemon() {
        let (hook, by_file) = names(Applier::Hook, true);
        assert_eq!(hook, ["wal 500", "relation 450"]);
        assert_eq!(by_file, [0, 1, 1, 2, 2, 0, 0]);
        let (watch, _) = names(Applier::Watch, false);
        assert_eq!(watch, ["wal 500", "relation 300", "index 150"]);
        let (watch, by_file) = names(Applier::Watch, true);
        assert_eq!(watch, ["wal 500", "public.hot 300", "public.hot_pkey 150"]);
        assert_eq!(by_file, [0, 1, 1, 2, 3, 0, 0]);
    }

    #[test]
    fn medians_are_in_page_writes() {
        let units = Units::new(&files(), &ops(), 10_000, Applier::Watch, false);
        let medians: Vec<_> = units.units.iter().map(|unit| unit.median).collect();
        // of the index a third has died
        assert_eq!(medians, [Some(20), Some(150), None]);
    }
}
