//! The file that a service reads: `/etc/shelflife.toml`.
//!
//! Invariant: what is not understood is an error that names line and column, never passed over.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::Error;
use crate::daemon::{Mode, Options, Role};

/// The policy of a daemon that is given none.
pub const DEFAULT_POLICY: &str = "wal-first";
/// The longest configuration, in bytes.
const LIMIT: u64 = 64 * 1024;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    folders: Vec<PathBuf>,
    #[serde(default = "default_policy")]
    policy: String,
    name: Option<String>,
    #[serde(default)]
    mode: Mode,
    metrics: Option<String>,
    relations: Option<String>,
}

fn default_policy() -> String {
    DEFAULT_POLICY.to_owned()
}

impl Options {
    /// The options that stand in the file at `path`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Config`] with line and column.
    pub fn from_file(path: &Path) -> Result<Options, Error> {
        let io =
            |source| Error::Io { what: "cannot read the configuration", path: path.into(), source };
        if fs::metadata(path).map_err(io)?.len() > LIMIT {
            return Err(io(std::io::Error::other("it is longer than 64 KiB")));
        }
        let text = fs::read_to_string(path).map_err(io)?;
        let config: Config = toml::from_str(&text)
            .map_err(|error| Error::Config { path: path.to_owned(), error: Box::new(error) })?;
        Ok(Options {
            folders: config.folders,
            policy: config.policy,
            name: config.name,
            mode: config.mode,
            metrics: config.metrics,
            relations: config.relations.map(Role::from),
            dry_run: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Options, Error> {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("shelflife.toml");
        fs::write(&path, text).expect("a file");
        Options::from_file(&path)
    }

    #[test]
    fn what_is_left_out_has_the_documented_default() {
        let options = read("folders = [\"/srv/pg\"]\n").expect("a configuration");
        assert_eq!(options.folders, [Path::new("/srv/pg")]);
        assert_eq!(options.policy, "wal-first");
        assert_eq!(options.mode, Mode::Auto);
        assert!(options.metrics.is_none() && options.name.is_none());
        assert_eq!(options.relations, None);
        let options = read("folders = []\nrelations = \"few\"\n").expect("a configuration");
        assert_eq!(options.relations, Some(Role::Named("few".to_owned())));
        let options = read("folders = []\nrelations = \"\"\n").expect("a configuration");
        assert_eq!(options.relations, Some(Role::Owner));
    }

    #[test]
    fn a_wrong_word_is_named_with_its_place() {
        let error = read("folders = []\npolice = \"wal-first\"\n").expect_err("a wrong word");
        let text = error.to_string();
        assert!(text.contains("line 2") && text.contains("police"), "{text}");
        assert!(std::error::Error::source(&error).is_none(), "it would be said twice");
        let text = read("folders = []\nmode = \"fast\"\n").expect_err("a wrong mode").to_string();
        assert!(text.contains("filesystem"), "{text}");
        read("policy = \"x\"\n").expect_err("no folders");
    }

    #[test]
    fn the_example_that_is_shipped_is_read() {
        let text = include_str!("../../../examples/shelflife.toml");
        let options = read(text).expect("a configuration");
        assert_eq!(options.folders, [Path::new("/var/lib/postgresql/15/main")]);
        assert_eq!(options.name.as_deref(), Some("watch"));
    }
}
