//! What the file of a write is: a class of `layout`, or one of those that only a recorder knows.
//!
//! Invariant: names never change; they stand in `files.parquet`.

use std::fmt;
use std::str::FromStr;

use shelflife_layout::Class;

/// The class of a file in the file table.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum FileClass {
    /// Not attributed: never a wrong name in its place.
    #[default]
    Unknown,
    /// The file system's journal or log.
    FsJournal,
    /// Other metadata of the file system.
    FsMetadata,
    /// A relation file whose creation never became visible in the catalog.
    Uncommitted,
    /// A file by its path, or by the catalog.
    File(Class),
}

impl FileClass {
    const OWN: [FileClass; 4] =
        [FileClass::Unknown, FileClass::FsJournal, FileClass::FsMetadata, FileClass::Uncommitted];

    /// The name in tables, JSON and `files.parquet`.
    pub const fn name(self) -> &'static str {
        match self {
            FileClass::Unknown => "unknown",
            FileClass::FsJournal => "fs-journal",
            FileClass::FsMetadata => "fs-metadata",
            FileClass::Uncommitted => "uncommitted",
            FileClass::File(class) => class.name(),
        }
    }

    /// All there are, own ones first.
    pub fn all() -> impl Iterator<Item = FileClass> {
        FileClass::OWN.into_iter().chain(Class::ALL.iter().copied().map(FileClass::File))
    }
}

impl From<Class> for FileClass {
    fn from(class: Class) -> FileClass {
        FileClass::File(class)
    }
}

impl fmt::Display for FileClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text was not the name of a class of files.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnknownFileClass;

impl FromStr for FileClass {
    type Err = UnknownFileClass;

    fn from_str(text: &str) -> Result<FileClass, UnknownFileClass> {
        let own = FileClass::OWN.into_iter().find(|c| c.name() == text);
        own.or_else(|| text.parse().ok().map(FileClass::File)).ok_or(UnknownFileClass)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_returns_from_its_name() {
        for class in FileClass::all() {
            assert_eq!(class.name().parse(), Ok(class));
        }
        assert_eq!("".parse::<FileClass>(), Err(UnknownFileClass));
    }
}
