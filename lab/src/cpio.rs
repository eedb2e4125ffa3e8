//! Writes the initramfs: a cpio archive in the "newc" format (kernel
//! Documentation/driver-api/early-userspace/buffer-format.rst).
//!
//! Invariant: an entry's parent folders come before it, as the kernel unpacks in order.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

/// An archive under construction.
pub struct Archive<W: Write> {
    out: W,
    inode: u32,
    folders: BTreeSet<PathBuf>,
}

impl<W: Write> Archive<W> {
    /// An empty archive.
    pub fn new(out: W) -> Archive<W> {
        Archive { out, inode: 0, folders: BTreeSet::new() }
    }

    /// Adds a folder and those above it.
    pub fn folder(&mut self, path: &Path) -> io::Result<()> {
        let missing: Vec<&Path> = path
            .ancestors()
            .filter(|p| !p.as_os_str().is_empty() && !self.folders.contains(*p))
            .collect();
        for folder in missing.into_iter().rev() {
            self.entry(folder, FOLDER | 0o755, &[])?;
            self.folders.insert(folder.to_owned());
        }
        Ok(())
    }

    /// Adds a file with `content`; `mode` holds its permissions.
    pub fn file(&mut self, path: &Path, mode: u32, content: &[u8]) -> io::Result<()> {
        self.folder(path.parent().unwrap_or(Path::new("")))?;
        self.entry(path, FILE | (mode & 0o7777), content)
    }

    /// Adds the file `source` (through links) under another name, with its permissions.
    pub fn copy(&mut self, path: &Path, source: &Path) -> io::Result<()> {
        let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", source.display()));
        let mode = fs::metadata(source).map_err(named)?.permissions().mode();
        self.file(path, mode, &fs::read(source).map_err(named)?)
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &Path, target: &str) -> io::Result<()> {
        self.folder(path.parent().unwrap_or(Path::new("")))?;
        self.entry(path, LINK | 0o777, target.as_bytes())
    }

    /// Closes the archive and returns the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.entry(Path::new("TRAILER!!!"), 0, &[])?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn entry(&mut self, path: &Path, mode: u32, content: &[u8]) -> io::Result<()> {
        self.inode += 1;
        let name = path.to_string_lossy();
        let size = u32::try_from(content.len())
            .map_err(|_| io::Error::other(format!("{name}: too big for an initramfs")))?;
        // magic, inode, mode, uid, gid, links, mtime, size, device and rdevice, name's size, check
        let fields = [self.inode, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name.len() as u32 + 1, 0];
        let mut header = String::from("070701");
        for field in fields {
            header += &format!("{field:08X}");
        }
        self.out.write_all(header.as_bytes())?;
        self.out.write_all(name.as_bytes())?;
        self.pad(header.len() + name.len(), 1)?;
        self.out.write_all(content)?;
        self.pad(content.len(), 0)
    }

    /// Zeros up to a multiple of four after `length` bytes, at least `least`.
    fn pad(&mut self, length: usize, least: usize) -> io::Result<()> {
        let zeros = least + (4 - (length + least) % 4) % 4;
        self.out.write_all(&[0; 4][..zeros])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_aligned_and_folders_come_first() {
        let mut archive = Archive::new(Vec::new());
        archive.file(Path::new("a/b/c"), 0o644, b"hello").unwrap();
        archive.file(Path::new("a/b/d"), 0o755, b"").unwrap();
        let bytes = archive.finish().unwrap();
        assert_eq!(bytes.len() % 4, 0);
        let mut names = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            assert_eq!(&bytes[at..at + 6], b"070701");
            let field = |n: usize| {
                let hex = &bytes[at + 6 + 8 * n..at + 14 + 8 * n];
                usize::from_str_radix(std::str::from_utf8(hex).unwrap(), 16).unwrap()
            };
            let (size, name) = (field(6), field(11));
            names.push(String::from_utf8(bytes[at + 110..at + 109 + name].to_vec()).unwrap());
            at = (at + 110 + name).next_multiple_of(4);
            at = (at + size).next_multiple_of(4);
        }
        assert_eq!(names, ["a", "a/b", "a/b/c", "a/b/d", "TRAILER!!!"]);
    }
}
