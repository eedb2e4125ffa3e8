//! `meta.json`: where a trace comes from, what its numbers mean, and what was counted.
//!
//! Invariant: the version is looked at before anything else, so that a trace of the future is
//! called that and not damaged. Within a version fields are only added: a reader passes over those
//! that it does not know, and takes the default for those that are missing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The version of the format that is written, and the newest that is read.
pub const VERSION: u32 = 1;

/// What `format` in `meta.json` says.
const FORMAT: &str = "shelflife-trace";
/// The name of the file.
pub(crate) const META: &str = "meta.json";
/// The longest `meta.json` that is read: 65,536 devices with long names fit.
const MAX_META: u64 = 32 << 20;

/// Where a trace comes from, what its numbers mean, and what was counted.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Meta {
    /// Always `shelflife-trace`.
    pub format: String,
    /// Version of the format.
    pub version: u32,
    /// Whether the writer came to its end. If not, what it closed is there, and counts are those
    /// of the closed segments.
    #[serde(default)]
    pub complete: bool,
    /// Who made it, from what.
    #[serde(default)]
    pub source: Source,
    /// Nanoseconds since 1970 of the trace's time 0, if known.
    #[serde(default)]
    pub start_unix_ns: Option<i64>,
    /// Bytes of the pages in which this trace is counted (`counts.unaligned`).
    #[serde(default = "default_page")]
    pub page_size: u32,
    /// Release of the kernel.
    #[serde(default)]
    pub kernel: Option<String>,
    /// Type of the file system.
    #[serde(default)]
    pub file_system: Option<String>,
    /// Its mount options, as in `/proc/self/mountinfo`.
    #[serde(default)]
    pub mount_options: Option<String>,
    /// How full it was.
    #[serde(default)]
    pub usage: Option<Usage>,
    /// The policy that hints came from.
    #[serde(default)]
    pub policy: Option<String>,
    /// The devices that column `device` counts, from 0.
    #[serde(default)]
    pub devices: Vec<Device>,
    /// The units of the columns, for people.
    #[serde(default)]
    pub units: BTreeMap<String, String>,
    /// How many segments were closed.
    #[serde(default)]
    pub segments: u32,
    /// What was counted.
    #[serde(default)]
    pub counts: Counts,
}

fn default_page() -> u32 {
    4096
}

/// Who made a trace, from what.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Source {
    /// `record`, `import`, `cut` or `merge`.
    #[serde(default)]
    pub kind: String,
    /// The program and its version.
    #[serde(default)]
    pub program: String,
    /// The imported format.
    #[serde(default)]
    pub format: Option<String>,
    /// The files it was made from, or the command that was recorded.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// Whether paths and names were replaced.
    #[serde(default)]
    pub anonymized: bool,
}

/// A device, or a volume or file that has offsets of its own.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Its size, if known.
    #[serde(default)]
    pub bytes: Option<u64>,
}

impl Device {
    /// A device of this name and size.
    pub fn new(name: impl Into<String>, bytes: Option<u64>) -> Device {
        Device { name: name.into(), bytes }
    }
}

/// How full a file system was while it was recorded.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Usage {
    /// Its size in bytes, as `statvfs` has it.
    pub bytes: u64,
    /// Bytes in use: when recording began or ended, whichever is more.
    pub used_bytes: u64,
}

/// What was counted while a trace was made.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Rows of all segments.
    #[serde(default)]
    pub events: u64,
    /// Of these, writes.
    #[serde(default)]
    pub writes: u64,
    /// Of these, discards.
    #[serde(default)]
    pub discards: u64,
    /// Of these, write-zeroes.
    #[serde(default)]
    pub write_zeroes: u64,
    /// Bytes of the writes.
    #[serde(default)]
    pub written_bytes: u64,
    /// Events whose offset or length is no multiple of the page size.
    #[serde(default)]
    pub unaligned: u64,
    /// Events with an earlier time than the one before.
    #[serde(default)]
    pub backwards: u64,
    /// The largest such step, in nanoseconds.
    #[serde(default)]
    pub backwards_most_ns: u64,
    /// Flushes seen (`REQ_OP_FLUSH`); they have no range and no row.
    #[serde(default)]
    pub flushes: u64,
    /// Reads passed over by an importer.
    #[serde(default)]
    pub reads: u64,
    /// Events that a recorder lost.
    #[serde(default)]
    pub lost: u64,
    /// Bad lines passed over by an importer, by what was wrong.
    #[serde(default)]
    pub bad_lines: BTreeMap<String, u64>,
}

impl Meta {
    /// For a new trace made by `kind` (`record`, `import`, `cut`, `merge`).
    pub fn new(kind: &str, devices: Vec<Device>) -> Meta {
        let units = [
            ("time", "nanoseconds since start_unix_ns"),
            ("offset", "bytes from the start of the device"),
            ("length", "bytes"),
        ];
        Meta {
            format: FORMAT.to_owned(),
            version: VERSION,
            complete: false,
            source: Source {
                kind: kind.to_owned(),
                program: concat!("shelflife ", env!("CARGO_PKG_VERSION")).to_owned(),
                ..Source::default()
            },
            start_unix_ns: None,
            page_size: default_page(),
            kernel: None,
            file_system: None,
            mount_options: None,
            usage: None,
            policy: None,
            devices,
            units: units.map(|(column, unit)| (column.to_owned(), unit.to_owned())).into(),
            segments: 0,
            counts: Counts::default(),
        }
    }

    /// Reads `folder/meta.json`.
    ///
    /// # Errors
    ///
    /// No such file, another format, a later version, or not the fields of this one.
    pub fn read(folder: &Path) -> Result<Meta, Error> {
        let path = folder.join(META);
        let mut text = Vec::new();
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(e)
                if matches!(
                    e.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                let reason = match folder.exists() {
                    true => {
                        "it has no meta.json; `shelflife import` makes a trace of other formats"
                    }
                    false => "there is no such folder",
                };
                return Err(Error::NotATrace {
                    path: folder.to_owned(),
                    reason: reason.to_owned(),
                });
            }
            Err(e) => return Err(Error::io("read", &path)(e)),
        };
        file.take(MAX_META + 1).read_to_end(&mut text).map_err(Error::io("read", &path))?;
        Meta::parse(&text, &path)
    }

    /// The same from bytes; `path` is for messages.
    ///
    /// # Errors
    ///
    /// As [`Meta::read`].
    pub fn parse(text: &[u8], path: &Path) -> Result<Meta, Error> {
        #[derive(Deserialize)]
        struct Head {
            format: Option<String>,
            version: Option<u64>,
        }
        if text.len() as u64 > MAX_META {
            return Err(Error::TooLarge {
                path: path.to_owned(),
                what: "the file's size",
                found: text.len() as u64,
                limit: MAX_META,
            });
        }
        let bad = |reason: String| Error::Meta { path: path.to_owned(), reason };
        let head: Head = serde_json::from_slice(text).map_err(|e| bad(e.to_string()))?;
        if head.format.as_deref() != Some(FORMAT) {
            return Err(bad(format!("`format` must be \"{FORMAT}\"")));
        }
        match head.version {
            Some(found) if found > u64::from(VERSION) => {
                return Err(Error::TooNew { path: path.to_owned(), found, known: VERSION });
            }
            Some(1..) => {}
            _ => return Err(bad("`version` must be a number from 1".to_owned())),
        }
        let meta: Meta = serde_json::from_slice(text).map_err(|e| bad(e.to_string()))?;
        if meta.devices.len() > MAX_DEVICES {
            return Err(bad(format!("more than {MAX_DEVICES} devices")));
        }
        if !matches!(meta.page_size, 512..=1_048_576) || !meta.page_size.is_power_of_two() {
            return Err(bad("`page_size` must be a power of two from 512 to 1048576".to_owned()));
        }
        Ok(meta)
    }

    /// Writes `folder/meta.json` aside and renames it.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(META);
        let text = serde_json::to_vec_pretty(self)
            .map_err(|e| Error::Meta { path: path.clone(), reason: e.to_string() })?;
        write_aside(&path, |file| {
            file.write_all(&text)?;
            file.write_all(b"\n")
        })
    }
}

/// The most devices of a trace: column `device` counts them.
pub(crate) const MAX_DEVICES: usize = 1 << 16;

/// Writes a file under another name and renames it, so that it is whole or not there.
pub(crate) fn write_aside(
    path: &Path,
    write: impl FnOnce(&mut File) -> std::io::Result<()>,
) -> Result<(), Error> {
    let aside = aside(path);
    let mut file = File::create(&aside).map_err(Error::io("write", &aside))?;
    write(&mut file).map_err(Error::io("write", &aside))?;
    drop(file);
    std::fs::rename(&aside, path).map_err(Error::io("write", path))
}

/// The name that a file has while it is written.
pub(crate) fn aside(path: &Path) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Meta, Error> {
        Meta::parse(text.as_bytes(), Path::new("t/meta.json"))
    }

    #[test]
    fn the_future_is_told_from_damage() {
        let future = r#"{"format": "shelflife-trace", "version": 7, "devices": {"a": "map now"}}"#;
        let said = parse(future).unwrap_err().to_string();
        assert!(said.contains("version 7") && said.contains("t/meta.json"), "{said}");
        for bad in [
            "",
            "{}",
            "[]",
            r#"{"format": "x", "version": 1}"#,
            r#"{"format": "shelflife-trace"}"#,
            r#"{"format": "shelflife-trace", "version": 0}"#,
            r#"{"format": "shelflife-trace", "version": 1, "segments": -1}"#,
            r#"{"format": "shelflife-trace", "version": 1, "page_size": 0}"#,
        ] {
            assert!(matches!(parse(bad), Err(Error::Meta { .. })), "{bad}");
        }
    }

    #[test]
    fn fields_may_be_missing_or_new() {
        let meta =
            parse(r#"{"format": "shelflife-trace", "version": 1, "colour": "red"}"#).unwrap();
        assert_eq!((meta.page_size, meta.complete, meta.counts.lost), (4096, false, 0));
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut meta = Meta::new("import", vec![Device::new("hm_0", Some(1 << 30))]);
        meta.start_unix_ns = Some(-5);
        meta.counts.bad_lines.insert("zero length".to_owned(), 3);
        meta.write(folder.path()).unwrap();
        assert_eq!(Meta::read(folder.path()).unwrap(), meta);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
