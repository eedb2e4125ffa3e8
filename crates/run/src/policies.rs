//! Policies by name or from a file.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use shelflife_policy::Policy;

/// Why a policy could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// Neither a shipped policy nor a file.
    #[error(
        "there is no policy named {name:?}{}; `shelflife policy list` shows those that come along, \
         and a file is named by its path (./{name} or {name}.toml)",
        did_you_mean.as_ref().map(|d| format!(" (did you mean {d}?)")).unwrap_or_default()
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest name.
        did_you_mean: Option<String>,
    },
    /// `off` and `on` are the switch.
    #[error("{0:?} is the switch, not a policy")]
    Switch(String),
    /// The file could not be read.
    #[error("{}: cannot read the policy", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// The text is no policy; names file, line and column.
    #[error(transparent)]
    Policy(#[from] shelflife_policy::Error),
}

/// The text of a policy and where it came from: a shipped one by name, or a file by a path that
/// holds a `/` or ends with `.toml`.
///
/// # Errors
///
/// [`PolicyError`], but never `Policy`.
pub fn policy_text(name: &str) -> Result<(Vec<u8>, String), PolicyError> {
    if name.contains('/') || name.ends_with(".toml") {
        let path = Path::new(name);
        let read = |source| PolicyError::Read { path: path.to_owned(), source };
        let mut text = Vec::new();
        let limit = shelflife_policy::MAX_BYTES as u64 + 1;
        File::open(path).and_then(|f| f.take(limit).read_to_end(&mut text)).map_err(read)?;
        return Ok((text, name.to_owned()));
    }
    if matches!(name, "off" | "on") {
        return Err(PolicyError::Switch(name.to_owned()));
    }
    match shelflife_policy::find(name) {
        Some(text) => Ok((text.into(), format!("{name} (shipped)"))),
        None => Err(PolicyError::Unknown {
            name: name.to_owned(),
            did_you_mean: shelflife_policy::suggest(name).map(str::to_owned),
        }),
    }
}

/// The policy `name`: as [`policy_text`], parsed.
///
/// # Errors
///
/// [`PolicyError`].
pub fn load_policy(name: &str) -> Result<Policy, PolicyError> {
    let (text, origin) = policy_text(name)?;
    Ok(Policy::parse(text, &origin)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_policies_come_by_name_and_others_by_path() {
        assert_eq!(load_policy("wal-first").expect("shipped").name(), "wal-first");
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("mine");
        std::fs::write(&path, "name = \"mine\"\nlayout = \"postgres\"\ndefault = \"long\"\n")
            .expect("a file");
        let name = path.to_str().expect("text");
        assert_eq!(load_policy(name).expect("from a file").name(), "mine");
    }

    #[test]
    fn what_is_no_policy_is_said_with_a_way_out() {
        let error = load_policy("wal-frist").expect_err("unknown").to_string();
        assert!(error.contains("did you mean wal-first?"), "{error}");
        assert!(matches!(load_policy("off"), Err(PolicyError::Switch(_))));
        assert!(matches!(load_policy("./nowhere.toml"), Err(PolicyError::Read { .. })));
        assert!(matches!(load_policy("/proc/self"), Err(PolicyError::Read { .. })));
    }
}
