//! The thread that reads the catalogs, and hints what a reading brings.
//!
//! Invariant: a server is asked at its pace ([`Pace`]), however many files are unknown, and one that does
//! not run or refuses costs next to nothing.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use shelflife_layout::relation::{Fork, PG_DEFAULT, PG_GLOBAL, RelationKey};
use shelflife_postgres::catalog::{Databases, Reading, TAKES_NO_CONNECTIONS};
use shelflife_postgres::{Cancel, Catalog, DataFolder, Error, Pace};

use super::{Known, News, Relations, Rules};
use crate::figures::Cause;
use crate::folder::Folder;
use crate::hint::treat;
use crate::hub::{Hub, count_not};
use crate::root::{Not, Root};

/// Everything is read anew after this time.
const ANEW: Duration = Duration::from_secs(600);
/// A server that does not run is looked for again after this time.
const STARTS: Duration = Duration::from_secs(2);
/// Whoever wakes the reading thread ends its sleep; else it sleeps so long at most.
const IDLE: Duration = Duration::from_secs(60);
/// The files of so many relations are looked up one by one; with more a sweep is quicker.
const AT_ONCE: usize = 256;

fn found(catalog: &Catalog, reading: &Reading, rules: &Rules) -> HashMap<RelationKey, Known> {
    let known = |key: &RelationKey| {
        let relation = catalog.relation(*key)?;
        Some((*key, Known { class: relation.class(), rule: rules.rule_for(relation) }))
    };
    reading.news.iter().filter_map(known).collect()
}

/// What a reading was refused.
fn refusal(catalog: &Catalog) -> Option<String> {
    let (oid, why) = catalog.unreadable().find(|(_, why)| *why != TAKES_NO_CONNECTIONS)?;
    let name = catalog.database(oid).map_or_else(|| oid.to_string(), str::to_owned);
    Some(format!("database {name}: {why}"))
}

/// One server's turn among those that are read.
struct Turn<'h> {
    folder: &'h Arc<Folder>,
    relations: &'h Relations,
    pace: Pace,
    /// When everything is read anew.
    anew: Instant,
    /// Not before.
    rests: Instant,
}

impl Turn<'_> {
    fn due(&mut self, now: Instant) -> Instant {
        let mut wanted = self.relations.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut wanted.is_news) {
            self.pace.hurry();
        }
        let soon = self.pace.due().unwrap_or(now).max(self.rests);
        let asked = wanted.all || wanted.open().next().is_some();
        if asked { soon } else { soon.max(self.anew) }
    }

    fn read(&mut self, hub: &Hub, cancel: &Cancel) {
        let begun = Instant::now();
        let (all, databases) = {
            let mut wanted = self.relations.wanted.lock().unwrap_or_else(PoisonError::into_inner);
            let databases: BTreeSet<u32> = wanted.open().map(|key| key.database).collect();
            (std::mem::take(&mut wanted.all) || self.anew <= begun, databases)
        };
        let which = if all { Databases::All } else { Databases::Only(&databases) };
        let rules = hub.rules();
        let mut catalog = Catalog::new();
        let read = DataFolder::open(self.folder.base())
            .and_then(|data| catalog.read_in(&data, Some(&self.relations.role), which, cancel));
        let now = Instant::now();
        match read {
            Ok(reading) => {
                self.pace.ended(now, now - begun);
                if all {
                    self.anew = now + ANEW;
                    let unread = catalog.unreadable();
                    let closed = unread.filter(|(_, why)| *why == TAKES_NO_CONNECTIONS);
                    self.relations.close(closed.map(|(oid, _)| oid).collect());
                }
                self.relations.failed(refusal(&catalog));
                let unreadable = catalog.unreadable().map(|(oid, _)| oid).collect();
                let found = found(&catalog, &reading, &rules);
                hint(hub, self.folder, self.relations.take(found, &unreadable, all, &rules));
            }
            Err(Error::Interrupted) => {}
            Err(error) => {
                if all {
                    self.relations.wanted.lock().unwrap_or_else(PoisonError::into_inner).all = true;
                }
                match error {
                    // Seen by a look at one small file.
                    Error::NotRunning { .. } => self.rests = now + STARTS,
                    _ => self.pace.ended(now, now - begun),
                }
                self.relations.failed(Some(error.in_full()));
            }
        }
    }
}

/// Reads catalogs until the daemon ends.
pub(crate) fn read(hub: &Hub) {
    // The server goes first. Refused is no harm.
    let _ = rustix::process::setpriority_process(None, 10);
    let cancel = Cancel::new(Arc::clone(&hub.stop));
    let now = Instant::now();
    let mut turns = Vec::new();
    for folder in &hub.watched {
        if let Some(relations) = folder.relations() {
            let pace = Pace::default();
            turns.push(Turn { folder, relations, pace, anew: now, rests: now });
        }
    }
    while !hub.ends() {
        let now = Instant::now();
        let mut next = now + IDLE;
        for turn in &mut turns {
            if turn.due(now) <= now {
                turn.read(hub, &cancel);
            }
            next = next.min(turn.due(Instant::now()));
        }
        std::thread::park_timeout(next.saturating_duration_since(Instant::now()));
    }
}

fn hint(hub: &Hub, folder: &Arc<Folder>, news: News) {
    let keys = match news {
        News::These(keys) if keys.len() <= AT_ONCE => keys,
        News::These(_) | News::All => return hub.ask_to_sweep(folder),
    };
    for key in keys {
        let Some((root, below)) = folder_of(folder, key) else { return hub.ask_to_sweep(folder) };
        for name in main_names(key) {
            let segments = (0u32..).map(|segment| match segment {
                0 => format!("{below}/{name}"),
                segment => format!("{below}/{name}.{segment}"),
            });
            for rest in segments {
                let rest = rest.as_bytes();
                match root.file(rest, folder.owner()) {
                    Ok((file, facts)) => {
                        let inside = root.inside(rest);
                        treat(&hub.driver, folder, &file, &facts, &inside, Cause::Sweep);
                    }
                    Err(Not::AFile) => break,
                    Err(not) => {
                        count_not(folder, not);
                        break;
                    }
                }
            }
        }
    }
}

/// The root, and the folder below it, in which the files of `key` lie; `None` in a tablespace inside the
/// data folder.
fn folder_of(folder: &Folder, key: RelationKey) -> Option<(Arc<Root>, String)> {
    let roots = folder.roots();
    let database = key.database;
    match key.tablespace {
        PG_GLOBAL => Some((Arc::clone(roots.first()?), "global".to_owned())),
        PG_DEFAULT => Some((Arc::clone(roots.first()?), format!("base/{database}"))),
        oid => {
            let called = format!("pg_tblspc/{oid}/");
            let root = roots.iter().find(|root| root.called().starts_with(called.as_bytes()))?;
            Some((Arc::clone(root), database.to_string()))
        }
    }
}

/// The first segments of all forks.
fn main_names(key: RelationKey) -> impl Iterator<Item = String> {
    let number = match key.backend {
        Some(backend) => format!("t{backend}_{}", key.number),
        None => key.number.to_string(),
    };
    [Fork::Main, Fork::Fsm, Fork::Vm, Fork::Init].into_iter().map(move |fork| match fork {
        Fork::Main => number.clone(),
        fork => format!("{number}_{}", fork.name()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forks_have_their_names() {
        let key = RelationKey { tablespace: PG_DEFAULT, database: 5, backend: None, number: 7 };
        let names: Vec<String> = main_names(key).collect();
        assert_eq!(names, ["7", "7_fsm", "7_vm", "7_init"]);
        let temporary = RelationKey { backend: Some(3), ..key };
        assert_eq!(main_names(temporary).next().as_deref(), Some("t3_7"));
    }
}
