//! The flat table: a compiled policy, read inside `open` without allocating.
//!
//! Invariant: a reader may meet a table that is being rewritten, or that is garbage, and still
//! ends in bounded time with some answer; the control page's generation tells it afterwards
//! whether to ask again. Hence every field is an atomic and every number is checked.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering::Relaxed};

use shelflife_lifetime::Lifetime;

use crate::class::{Class, Layout};
use crate::glob::{Text, matches};

/// Bytes of all path rules together: each takes 4 bytes and its pattern.
pub const ARENA_BYTES: usize = 6 * 1024;
/// The longest pattern, in bytes.
pub const MAX_PATTERN: usize = u8::MAX as usize;
/// The most rules a policy may have.
pub const MAX_RULES: usize = u16::MAX as usize - 1;

/// Room for classes that later versions add.
const CLASS_SLOTS: usize = 64;
const NO_LIFETIME: u8 = 0xff;
/// Rule number of "no rule": it loses against every rule.
const NO_RULE: u16 = u16::MAX;

/// The policy had more path rules than the table has room for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TableFull;

impl core::fmt::Display for TableFull {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "the path rules need more than the {ARENA_BYTES} bytes of a compiled policy")
    }
}

impl core::error::Error for TableFull {}

/// A compiled policy. All zero is a valid table that hints nothing.
#[repr(C)]
#[derive(Debug)]
pub struct Table {
    layout: AtomicU8,
    /// Whether any path rule begins with `/`, so that a relative path must be made absolute.
    absolute_rules: AtomicU8,
    arena_used: AtomicU16,
    /// Per class: number of the first rule for it << 8 | lifetime.
    classes: [AtomicU32; CLASS_SLOTS],
    /// Path rules in order: number (u16, little-endian), lifetime, length, pattern.
    arena: [AtomicU8; ARENA_BYTES],
}

impl Default for Table {
    fn default() -> Table {
        let table = Table {
            layout: AtomicU8::new(0),
            absolute_rules: AtomicU8::new(0),
            arena_used: AtomicU16::new(0),
            classes: [const { AtomicU32::new(0) }; CLASS_SLOTS],
            arena: [const { AtomicU8::new(0) }; ARENA_BYTES],
        };
        table.clear(Layout::Postgres);
        table
    }
}

impl Table {
    /// Empties the table: no rule, no default.
    pub fn clear(&self, layout: Layout) {
        self.arena_used.store(0, Relaxed);
        self.absolute_rules.store(0, Relaxed);
        for slot in &self.classes {
            slot.store(u32::from(NO_RULE) << 8 | u32::from(NO_LIFETIME), Relaxed);
        }
        self.layout.store(layout.number(), Relaxed);
    }

    /// Gives `class` the lifetime of rule number `rule`. A rule with a lower number that is
    /// already there stays.
    pub fn class_rule(&self, rule: u16, class: Class, lifetime: Lifetime) {
        let slot = &self.classes[usize::from(class.number())];
        if (slot.load(Relaxed) >> 8) as u16 > rule {
            slot.store(u32::from(rule) << 8 | lifetime.raw() as u32, Relaxed);
        }
    }

    /// Gives every class of the server's own folders that has no rule yet the lifetime
    /// `default`, and leaves `outside` alone. Call it after all rules.
    pub fn default_rule(&self, lifetime: Lifetime) {
        for class in Class::ALL.iter().filter(|c| **c != Class::Outside) {
            let slot = &self.classes[usize::from(class.number())];
            if slot.load(Relaxed) as u8 == NO_LIFETIME {
                slot.store(u32::from(NO_RULE) << 8 | lifetime.raw() as u32, Relaxed);
            }
        }
    }

    /// Appends a path rule; call in order of `rule`.
    ///
    /// # Errors
    ///
    /// [`TableFull`], also for a pattern over [`MAX_PATTERN`] bytes.
    pub fn path_rule(&self, rule: u16, glob: &[u8], lifetime: Lifetime) -> Result<(), TableFull> {
        let used = usize::from(self.arena_used.load(Relaxed));
        let length = u8::try_from(glob.len()).map_err(|_| TableFull)?;
        let [low, high] = rule.to_le_bytes();
        let room = self.arena.get(used..used + 4 + glob.len()).ok_or(TableFull)?;
        let header = [low, high, lifetime.raw() as u8, length];
        for (to, from) in room.iter().zip(header.iter().chain(glob)) {
            to.store(*from, Relaxed);
        }
        if glob.first() == Some(&b'/') {
            self.absolute_rules.store(1, Relaxed);
        }
        self.arena_used.store((used + room.len()) as u16, Relaxed);
        Ok(())
    }

    /// The layout, if it is one that this build knows.
    pub fn layout(&self) -> Option<Layout> {
        Layout::from_number(self.layout.load(Relaxed))
    }

    /// Whether a rule wants to see absolute paths.
    pub fn has_absolute_rules(&self) -> bool {
        self.absolute_rules.load(Relaxed) != 0
    }

    /// Whether there is any path rule at all.
    pub fn has_path_rules(&self) -> bool {
        self.arena_used.load(Relaxed) != 0
    }

    /// The lifetime for a file of `class`: of the first rule that matches, else the default.
    ///
    /// `inside` is the path relative to the data folder, where the file lies in one (under
    /// [`Layout::Paths`]: the path as the program gave it); `absolute` the absolute path, where
    /// it is known. Rules that begin with `/` look at `absolute`, others at the tail of `inside`.
    /// `None`: no call is to be made.
    pub fn lookup(
        &self,
        class: Class,
        inside: Option<&[u8]>,
        absolute: Option<Text<'_>>,
    ) -> Option<Lifetime> {
        self.lookup_ruled(class, inside, absolute, None)
    }

    /// As [`Table::lookup`], with one rule that a table cannot hold and that is known to match the
    /// file: its number, counted as by [`Table::class_rule`], and what it gives.
    pub fn lookup_ruled(
        &self,
        class: Class,
        inside: Option<&[u8]>,
        absolute: Option<Text<'_>>,
        rule: Option<(u16, Lifetime)>,
    ) -> Option<Lifetime> {
        let slot = self.classes.get(usize::from(class.number()))?.load(Relaxed);
        let (before, lifetime) = match rule {
            Some((number, given)) if number < (slot >> 8) as u16 => (number, given.raw() as u8),
            _ => ((slot >> 8) as u16, slot as u8),
        };
        let lifetime = self.path_lookup(before, inside, absolute).unwrap_or(lifetime);
        Lifetime::from_raw(u64::from(lifetime))
    }

    fn path_lookup(
        &self,
        before: u16,
        inside: Option<&[u8]>,
        absolute: Option<Text<'_>>,
    ) -> Option<u8> {
        let used = usize::from(self.arena_used.load(Relaxed));
        let arena = self.arena.get(..used)?;
        let byte = |at: usize| arena.get(at).map(|b| b.load(Relaxed));
        let mut at = 0;
        while let (Some(low), Some(high), Some(lifetime), Some(length)) =
            (byte(at), byte(at + 1), byte(at + 2), byte(at + 3))
        {
            if u16::from_le_bytes([low, high]) >= before {
                return None;
            }
            let (begin, end) = (at + 4, at + 4 + usize::from(length));
            let pattern = |i: usize| (begin + i < end).then(|| byte(begin + i)).flatten();
            let hit = if pattern(0) == Some(b'/') {
                absolute.is_some_and(|text| matches(pattern, text, false))
            } else {
                inside.is_some_and(|path| matches(pattern, Text::whole(path), true))
            };
            if hit {
                return Some(lifetime);
            }
            at = end;
        }
        None
    }

    /// FNV-1a over the table's bytes, for the check that a table was not damaged.
    pub fn checksum(&self) -> u64 {
        let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
        hash.byte(self.layout.load(Relaxed));
        hash.byte(self.absolute_rules.load(Relaxed));
        let used = self.arena_used.load(Relaxed);
        used.to_le_bytes().into_iter().for_each(|b| hash.byte(b));
        for slot in &self.classes {
            slot.load(Relaxed).to_le_bytes().into_iter().for_each(|b| hash.byte(b));
        }
        self.arena.iter().take(usize::from(used)).for_each(|b| hash.byte(b.load(Relaxed)));
        hash.0
    }

    /// Copies `from` over this table.
    pub fn copy_from(&self, from: &Table) {
        self.layout.store(from.layout.load(Relaxed), Relaxed);
        self.absolute_rules.store(from.absolute_rules.load(Relaxed), Relaxed);
        self.arena_used.store(from.arena_used.load(Relaxed), Relaxed);
        for (to, from) in self.classes.iter().zip(&from.classes) {
            to.store(from.load(Relaxed), Relaxed);
        }
        for (to, from) in self.arena.iter().zip(&from.arena) {
            to.store(from.load(Relaxed), Relaxed);
        }
    }
}

struct Fnv(u64);

impl Fnv {
    fn byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_rule_that_matches_decides() {
        let table = Table::default();
        table.path_rule(0, b"base/5/*", Lifetime::Medium).expect("room");
        table.class_rule(1, Class::Relation, Lifetime::Extreme);
        table.path_rule(2, b"base/7/*", Lifetime::Short).expect("room");
        table.path_rule(3, b"/archive/**", Lifetime::Long).expect("room");
        table.default_rule(Lifetime::None);
        let inside = |path: &'static [u8], class| table.lookup(class, Some(path), None);
        assert_eq!(inside(b"base/5/1", Class::Relation), Some(Lifetime::Medium));
        assert_eq!(inside(b"base/7/1", Class::Relation), Some(Lifetime::Extreme));
        assert_eq!(inside(b"base/7/1_vm", Class::Vm), Some(Lifetime::Short));
        assert_eq!(inside(b"pg_xact/0000", Class::Xact), Some(Lifetime::None));
        let outside =
            |path: &'static [u8]| table.lookup(Class::Outside, None, Some(Text::whole(path)));
        assert_eq!(outside(b"/archive/a/b"), Some(Lifetime::Long));
        assert_eq!(outside(b"/archived/a"), None);
    }

    #[test]
    fn a_rule_from_elsewhere_counts_by_its_number() {
        let table = Table::default();
        table.path_rule(1, b"base/5/1", Lifetime::Medium).expect("room");
        table.class_rule(3, Class::Relation, Lifetime::Extreme);
        table.default_rule(Lifetime::Long);
        let with = |number: u16, path: &'static [u8], class| {
            table.lookup_ruled(class, Some(path), None, Some((number, Lifetime::Short)))
        };
        assert_eq!(with(0, b"base/5/1", Class::Relation), Some(Lifetime::Short));
        assert_eq!(with(2, b"base/5/1", Class::Relation), Some(Lifetime::Medium));
        assert_eq!(with(2, b"base/5/2", Class::Relation), Some(Lifetime::Short));
        assert_eq!(with(4, b"base/5/2", Class::Relation), Some(Lifetime::Extreme));
        // before the default whatever its number is
        assert_eq!(with(4, b"base/5/2_vm", Class::Vm), Some(Lifetime::Short));
    }

    #[test]
    fn the_default_never_reaches_outside() {
        let table = Table::default();
        table.default_rule(Lifetime::Extreme);
        assert_eq!(table.lookup(Class::Outside, None, None), None);
        assert_eq!(table.lookup(Class::Other, None, None), Some(Lifetime::Extreme));
    }

    #[test]
    fn a_table_that_is_full_says_so_and_stays_whole() {
        let table = Table::default();
        let glob = [b'x'; MAX_PATTERN];
        let mut rules = 0u16;
        while table.path_rule(rules, &glob, Lifetime::Short).is_ok() {
            rules += 1;
        }
        assert_eq!(usize::from(rules), ARENA_BYTES / (MAX_PATTERN + 4));
        assert_eq!(table.lookup(Class::Other, Some(&glob), None), Some(Lifetime::Short));
        assert_eq!(table.path_rule(9, &[b'x'; 256], Lifetime::Short), Err(TableFull));
    }

    #[test]
    fn a_copy_has_the_same_checksum_and_a_change_another() {
        let (table, copy) = (Table::default(), Table::default());
        table.path_rule(0, b"/a", Lifetime::Short).expect("room");
        copy.copy_from(&table);
        assert_eq!(table.checksum(), copy.checksum());
        copy.class_rule(1, Class::Wal, Lifetime::Short);
        assert_ne!(table.checksum(), copy.checksum());
    }

    proptest! {
        #[test]
        fn garbage_in_the_arena_ends(
            arena in proptest::collection::vec(any::<u8>(), 0..300), used in any::<u16>(),
        ) {
            let table = Table::default();
            for (to, from) in table.arena.iter().zip(&arena) {
                to.store(*from, Relaxed);
            }
            table.arena_used.store(used, Relaxed);
            let text = Some(Text::whole(b"/some/path/of/a/file"));
            let _ = table.lookup(Class::Relation, Some(b"base/1/2"), text);
        }
    }
}
