//! Scenarios: loads that are known to write much of one class of files, each a folder of SQL and
//! settings (`scenarios/`, in the program itself; or a folder of the user's own).
//!
//! Invariant: a scenario becomes part of the [`Spec`](crate::Spec) with the full text of its
//! scripts, so that results tell what ran, whatever becomes of the folder.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use shelflife_layout::Class;

use crate::error::{Error, Result};
use crate::spec::{MAX_SCRIPT, ScriptText};

/// The file that describes a scenario.
const DESCRIPTION: &str = "scenario.toml";

macro_rules! shipped {
    ($($name:literal: [$($file:literal),*]),* $(,)?) => {
        &[$(($name, &[
            (DESCRIPTION, include_str!(concat!("../../../scenarios/", $name, "/scenario.toml"))),
            $(($file, include_str!(concat!("../../../scenarios/", $name, "/", $file)))),*
        ])),*]
    };
}

/// Name and text of each file.
type Files = &'static [(&'static str, &'static str)];

const SHIPPED: &[(&str, Files)] = shipped! {
    "tpcb": [],
    "spill": ["spill.sql"],
    "bulk-load": ["setup.sql", "load.sql"],
    "rewrite": ["setup.sql", "rewrite.sql", "partition.sql"],
    "timeseries": ["setup.sql", "insert.sql"],
    "queue": ["setup.sql", "push.sql", "pop.sql"],
    "random-index": ["setup.sql", "insert.sql"],
    "freeze": ["setup.sql", "freeze.sql"],
    "unlogged": ["setup.sql", "update.sql"],
    "wal-share": [],
    "wal-retained": ["setup.sql"],
    "wal-no-recycle": [],
};

/// A scenario, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name, with the variant: `bulk-load:replica`.
    pub name: String,
    /// What it shows, in a line.
    pub shows: String,
    /// The classes that it is meant to write.
    pub exercises: Vec<Class>,
    /// The names of its variants.
    pub variants: Vec<String>,
    /// Settings of the server, the variant's last.
    pub settings: Vec<(String, String)>,
    /// Room that tables and load take, in MB (10^6 bytes) for each unit of scale.
    pub room_mb: u32,
    /// Dirty data, in MiB, that a recording of it should allow at most: what it writes would else die
    /// in the page cache.
    pub dirty_mib: Option<u32>,
    /// SQL that is run once after pgbench's tables are loaded, by pgbench itself (`:scale`).
    pub setup: Option<ScriptText>,
    /// The load.
    pub scripts: Vec<ScriptText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    shows: String,
    exercises: Vec<String>,
    setup: Option<String>,
    #[serde(default = "tables")]
    room_mb: u32,
    dirty_mib: Option<u32>,
    #[serde(default)]
    settings: Settings,
    script: Vec<ScriptAt>,
    #[serde(default)]
    variants: std::collections::BTreeMap<String, Settings>,
}

type Settings = std::collections::BTreeMap<String, String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptAt {
    file: Option<String>,
    builtin: Option<String>,
    #[serde(default = "one")]
    weight: u32,
}

fn one() -> u32 {
    1
}

/// Room of pgbench's own tables, with what updates make of them.
fn tables() -> u32 {
    18
}

impl Scenario {
    /// The scenario that `given` names: `NAME`, `NAME:VARIANT`, or the same with the path of a
    /// folder (anything with a `/`).
    ///
    /// # Errors
    ///
    /// [`Error::Spec`] with the place and what is there to choose from; [`Error::Io`].
    pub fn find(given: &str) -> Result<Scenario> {
        // a folder's path may have a colon, a variant has no slash
        let (name, variant) = match given.rsplit_once(':') {
            Some((name, variant)) if !variant.contains('/') => (name, Some(variant)),
            _ => (given, None),
        };
        let source = match SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
            Some((_, files)) => Source::Shipped(files),
            None if name.contains('/') => Source::Folder(PathBuf::from(name)),
            None => {
                return Err(Error::Spec(format!(
                    "--scenario {name}: there is {}; or the path of a folder, with a /",
                    SHIPPED.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
                )));
            }
        };
        read(&source, name, variant)
    }

    /// Every scenario that comes along, without its variants.
    ///
    /// # Errors
    ///
    /// None that a test has not excluded.
    pub fn shipped() -> Result<Vec<Scenario>> {
        SHIPPED.iter().map(|(name, files)| read(&Source::Shipped(files), name, None)).collect()
    }
}

enum Source {
    Shipped(Files),
    Folder(PathBuf),
}

impl Source {
    fn read(&self, name: &str, file: &str) -> Result<String> {
        match self {
            Source::Shipped(files) => match files.iter().find(|(shipped, _)| *shipped == file) {
                Some((_, text)) => Ok((*text).to_owned()),
                None => Err(Error::Spec(format!("scenario {name} has no file {file}"))),
            },
            Source::Folder(folder) => read_file(folder, file),
        }
    }
}

fn read_file(folder: &Path, file: &str) -> Result<String> {
    let path = folder.join(file);
    if Path::new(file).file_name() != Some(file.as_ref()) {
        return Err(Error::Spec(format!("{}: {file:?} is no plain file name", folder.display())));
    }
    let failed = || Error::io("cannot read", &path);
    let mut text = String::new();
    let opened = fs::File::open(&path).map_err(failed())?;
    opened.take(MAX_SCRIPT + 1).read_to_string(&mut text).map_err(failed())?;
    if text.len() as u64 > MAX_SCRIPT {
        return Err(Error::Spec(format!("{}: longer than {MAX_SCRIPT} bytes", path.display())));
    }
    Ok(text)
}

fn read(source: &Source, name: &str, variant: Option<&str>) -> Result<Scenario> {
    let wrong = |text: String| Error::Spec(format!("scenario {name}: {text}"));
    let description: Description = toml::from_str(&source.read(name, DESCRIPTION)?)
        .map_err(|error| wrong(format!("{DESCRIPTION}: {error}")))?;
    let exercises = description.exercises.iter().map(|class| {
        class.parse().map_err(|_| wrong(format!("{DESCRIPTION}: {class:?} is not a class")))
    });
    let variants: Vec<String> = description.variants.keys().cloned().collect();
    let mut settings = description.settings;
    if let Some(variant) = variant {
        let Some(own) = description.variants.get(variant) else {
            let list = if variants.is_empty() { "none".to_owned() } else { variants.join(", ") };
            return Err(wrong(format!("no variant {variant:?}; there is {list}")));
        };
        settings.extend(own.clone());
    }
    let file = |file: &str, weight| -> Result<ScriptText> {
        let text = source.read(name, file)?;
        if text.trim().is_empty() {
            return Err(wrong(format!("{file} is empty")));
        }
        Ok(ScriptText { name: file.to_owned(), weight, text })
    };
    let scripts = description.script.iter().map(|script| match (&script.file, &script.builtin) {
        (Some(name), None) => file(name, script.weight),
        (None, Some(name)) => {
            Ok(ScriptText { name: name.clone(), weight: script.weight, text: String::new() })
        }
        _ => Err(wrong(format!("{DESCRIPTION}: a script has either a file or is a builtin"))),
    });
    Ok(Scenario {
        name: variant.map_or_else(|| name.to_owned(), |variant| format!("{name}:{variant}")),
        shows: description.shows,
        exercises: exercises.collect::<Result<_>>()?,
        variants,
        settings: settings.into_iter().collect(),
        room_mb: description.room_mb.max(1),
        dirty_mib: description.dirty_mib,
        setup: description.setup.map(|setup| file(&setup, 1)).transpose()?,
        scripts: scripts.collect::<Result<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_scenario_and_variant_reads() {
        for scenario in Scenario::shipped().unwrap() {
            assert!(!scenario.scripts.is_empty() && !scenario.exercises.is_empty());
            for variant in &scenario.variants {
                let name = format!("{}:{variant}", scenario.name);
                assert_eq!(Scenario::find(&name).unwrap().name, name);
            }
        }
        let found = Scenario::find("bulk-load:replica").unwrap();
        assert!(found.settings.contains(&("wal_level".to_owned(), "replica".to_owned())));
    }

    #[test]
    fn every_folder_is_in_the_program() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios"));
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let (_, files) = SHIPPED.iter().find(|(shipped, _)| *shipped == name).unwrap();
            assert_eq!(files.len(), fs::read_dir(entry.path()).unwrap().count(), "{name}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let told = |given: &str| Scenario::find(given).unwrap_err().to_string();
        assert!(told("spil").contains("tpcb, spill"));
        assert!(told("bulk-load:no").contains("no variant \"no\"; there is replica"));
        let folder = tempfile::tempdir().unwrap();
        let given = format!("{}/", folder.path().display());
        assert!(told(&given).starts_with("cannot read "));
        let toml = folder.path().join(DESCRIPTION);
        for (text, expected) in [
            ("shows = 'x'\nexercises = ['heap']\nscript = []", "\"heap\" is not a class"),
            ("shows = 'x'\nexercises = []\n[[script]]\nfile = '../a'", "no plain file name"),
            ("shows = 'x'\nexercises = []\n[[script]]", "either a file or is a builtin"),
            ("shows = 'x'\nother = 1", "unknown field"),
        ] {
            fs::write(&toml, text).unwrap();
            assert!(told(&given).contains(expected), "{text}: {}", told(&given));
        }
    }
}
