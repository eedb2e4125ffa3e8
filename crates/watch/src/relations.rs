//! What the catalogs say of relations' files, and asking for it.
//!
//! Invariant: the threads that answer events and sweep never wait for a server: they look into what
//! the last reading found, and leave a note of what it did not know. What a reading brings is hinted
//! by the thread that reads, so that a file carries its relation's hint however late its name is known.
//!
//! A file that appears is asked for soon and then more and more rarely, until its transaction is
//! visible. Everything is read anew now and then, for new names of old relations, and so
//! that what was dropped is forgotten.

mod reading;

use std::collections::{BTreeMap, BTreeSet, HashMap, btree_map};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::thread::Thread;

use shelflife_control::{Page, State};
use shelflife_layout::relation::{RelationKey, relation_file};
use shelflife_layout::{Class, Text, postgres::classify};
use shelflife_lifetime::Lifetime;
use shelflife_policy::{Lint, Policy};
use shelflife_postgres::catalog::Relation;
use shelflife_run::Cataloged;
use shelflife_sweep::decide;

pub(crate) use reading::read;

/// A file that is unknown after so many readings is an orphan, or of a transaction that takes long:
/// the next reading of everything brings it.
const TRIES: u8 = 9;

/// The relation rules of the daemon's own policy, which no page can hold. They count as long as the
/// page holds that policy.
#[derive(Debug)]
pub(crate) struct Rules {
    policy: Policy,
    checksum: u64,
    /// The state of the page that was compared last, and what came of it.
    compared: Mutex<Option<(State, bool)>>,
}

impl Rules {
    pub(crate) fn of(policy: &Policy) -> Rules {
        Rules {
            policy: policy.clone(),
            checksum: policy.compile().checksum(),
            compared: Mutex::new(None),
        }
    }

    /// Whether the policy gives some files something else where no catalog is read.
    pub(crate) fn need_catalogs(&self) -> bool {
        let found = self.policy.check();
        found.iter().any(|found| matches!(found.lint, Lint::NeedsCatalog | Lint::HookCannotTell))
    }

    /// The first rule that means this relation.
    fn rule_for(&self, relation: &Relation) -> Option<(u16, Lifetime)> {
        self.policy.relation_rule(relation.database.as_deref(), &relation.name)
    }

    /// Whether the page holds the policy that these rules are of.
    fn hold(&self, page: &Page, state: State) -> bool {
        let mut compared = self.compared.lock().unwrap_or_else(PoisonError::into_inner);
        match *compared {
            Some((at, holds)) if at == state => holds,
            _ => {
                let mut buffer = [0; 64];
                let holds = page.policy_name(state, &mut buffer)
                    == Some(self.policy.name().as_bytes())
                    && page.table(state).checksum() == self.checksum;
                *compared = Some((state, holds));
                holds
            }
        }
    }
}

/// What is known of a relation's files.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Known {
    class: Class,
    rule: Option<(u16, Lifetime)>,
}

#[derive(Debug)]
struct Book {
    known: HashMap<RelationKey, Known>,
    /// The rules that `known` was made with.
    rules: Arc<Rules>,
}

#[derive(Debug, Default)]
struct Wanted {
    /// Files that are in no catalog so far, with the readings that did not have them.
    unknown: BTreeMap<RelationKey, u8>,
    /// Databases that took no connections at the last reading of everything.
    closed: BTreeSet<u32>,
    /// Something was added since the reading thread looked last.
    is_news: bool,
    /// Everything is to be read anew.
    all: bool,
}

impl Wanted {
    fn open(&self) -> impl Iterator<Item = RelationKey> {
        self.unknown.iter().filter(|(_, tries)| **tries < TRIES).map(|(key, _)| *key)
    }
}

/// The relations of one server.
#[derive(Debug)]
pub(crate) struct Relations {
    role: String,
    book: RwLock<Book>,
    wanted: Mutex<Wanted>,
    /// Grows with every change of the book.
    edition: AtomicU64,
    /// Whether there was a reading. Before the first one everything is unknown, and nothing is noted.
    has_read: AtomicBool,
    readings: AtomicU64,
    failure: Mutex<Option<String>>,
    reader: Arc<OnceLock<Thread>>,
}

impl Relations {
    /// Nothing is known yet. `reader` is the thread that will read.
    pub(crate) fn new(role: String, rules: Arc<Rules>, reader: Arc<OnceLock<Thread>>) -> Relations {
        Relations {
            role,
            book: RwLock::new(Book { known: HashMap::new(), rules }),
            wanted: Mutex::new(Wanted { all: true, ..Wanted::default() }),
            edition: AtomicU64::new(0),
            has_read: AtomicBool::new(false),
            readings: AtomicU64::new(0),
            failure: Mutex::new(None),
            reader,
        }
    }

    /// Changes when what [`Relations::decide`] says may have changed.
    pub(crate) fn edition(&self) -> u64 {
        self.edition.load(SeqCst)
    }

    /// As [`shelflife_sweep::decide`], by the catalog where it knows the file.
    pub(crate) fn decide(
        &self,
        page: &Page,
        state: State,
        base: &[u8],
        inside: &[u8],
    ) -> (Class, Option<Lifetime>) {
        let table = page.table(state);
        let Some(file) = relation_file(inside) else { return decide(table, base, inside) };
        let (class, rule) = {
            let book = self.book.read().unwrap_or_else(PoisonError::into_inner);
            match book.known.get(&file.key) {
                Some(known) => {
                    let class = match classify(inside) {
                        Class::Relation => known.class,
                        class => class,
                    };
                    (class, known.rule.filter(|_| book.rules.hold(page, state)))
                }
                None => {
                    drop(book);
                    self.note(file.key);
                    return decide(table, base, inside);
                }
            }
        };
        let absolute = Some(Text::joined(base, inside));
        (class, table.lookup_ruled(class, Some(inside), absolute, rule))
    }

    fn note(&self, key: RelationKey) {
        // A temporary table dies soon, and each would cost a reading.
        if key.backend.is_some() || !self.has_read.load(Relaxed) {
            return;
        }
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if wanted.closed.contains(&key.database) {
            return;
        }
        if let btree_map::Entry::Vacant(entry) = wanted.unknown.entry(key) {
            entry.insert(0);
            wanted.is_news = true;
            drop(wanted);
            self.wake();
        }
    }

    /// Files of these databases are not asked for: nobody can connect to them, as to `template0`.
    fn close(&self, databases: BTreeSet<u32>) {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).closed = databases;
    }

    /// Asks for a reading of everything.
    pub(crate) fn read_anew(&self) {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).all = true;
        self.wake();
    }

    fn wake(&self) {
        if let Some(reader) = self.reader.get() {
            reader.unpark();
        }
    }

    /// What there is to say of it.
    pub(crate) fn figures(&self) -> Cataloged {
        let known = self.book.read().unwrap_or_else(PoisonError::into_inner).known.len();
        let unknown = self.wanted.lock().unwrap_or_else(PoisonError::into_inner).open().count();
        Cataloged {
            role: self.role.clone(),
            known: known as u64,
            unknown: unknown as u64,
            readings: self.readings.load(Relaxed),
            failure: self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    fn failed(&self, why: Option<String>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Takes what a reading found, of everything (`all`) or of some databases; those of `unreadable`
    /// could not be asked.
    fn take(
        &self,
        found: HashMap<RelationKey, Known>,
        unreadable: &BTreeSet<u32>,
        all: bool,
        rules: &Arc<Rules>,
    ) -> News {
        let mut book = self.book.write().unwrap_or_else(PoisonError::into_inner);
        let is_first = !self.has_read.swap(true, Relaxed);
        let news = if is_first || !Arc::ptr_eq(&book.rules, rules) {
            News::All
        } else {
            let news = found.iter().filter(|(key, known)| book.known.get(key) != Some(known));
            News::These(news.map(|(key, _)| *key).collect())
        };
        if all {
            let before = std::mem::replace(&mut book.known, found);
            for (key, known) in before {
                // What could not be asked is not gone.
                if unreadable.contains(&key.database) {
                    book.known.entry(key).or_insert(known);
                }
            }
        } else {
            book.known.extend(found);
        }
        book.rules = Arc::clone(rules);
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.unknown.retain(|key, tries| {
            // After a reading of everything an orphan may be asked for anew.
            let is_over = book.known.contains_key(key) || (all && *tries >= TRIES);
            *tries = tries.saturating_add(1);
            !is_over
        });
        drop(wanted);
        drop(book);
        self.readings.fetch_add(1, Relaxed);
        self.edition.fetch_add(1, SeqCst);
        news
    }
}

/// Of which relations something else is known after a reading: all after the first one, and when other
/// rules apply.
#[derive(Debug, Eq, PartialEq)]
enum News {
    These(Vec<RelationKey>),
    All,
}

#[cfg(test)]
mod tests;
