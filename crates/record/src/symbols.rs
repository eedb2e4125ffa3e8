//! Addresses of kernel functions, from `/proc/kallsyms`.
//!
//! Invariant: a name that stands for several functions has no address here: what is not certain
//! must not name a file.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Finds the addresses of `names`, 0 for what is not there or stands there twice. `None` if the
/// kernel shows no addresses (kernel.kptr_restrict, kernel.perf_event_paranoid; CAP_SYSLOG lifts
/// it).
pub(crate) fn addresses<const N: usize>(
    path: &Path,
    names: [&str; N],
) -> io::Result<Option<[u64; N]>> {
    find(BufReader::with_capacity(1 << 16, File::open(path)?), names)
}

fn find<const N: usize>(mut lines: impl BufRead, names: [&str; N]) -> io::Result<Option<[u64; N]>> {
    let (mut found, mut seen, mut shown) = ([0; N], [false; N], false);
    let mut line = Vec::new();
    while {
        line.clear();
        lines.read_until(b'\n', &mut line)? > 0
    } {
        // ffffffff81000000 T _stext[.llvm.123]	[module]
        let mut fields = line.split(|byte| matches!(byte, b' ' | b'\t' | b'\n'));
        let (Some(address), Some(_), Some(name)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        shown |= address.iter().any(|digit| *digit != b'0');
        let name = name.split(|byte| *byte == b'.').next().unwrap_or_default();
        let Some(at) = names.iter().position(|wanted| wanted.as_bytes() == name) else { continue };
        let address = std::str::from_utf8(address).ok();
        let address = address.and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0);
        found[at] = if seen[at] { 0 } else { address };
        seen[at] = true;
    }
    Ok(shown.then_some(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_and_single() {
        let text = b"\
ffffffff81000000 T _stext\n\
ffffffff81000010 t xfs_end_bio.llvm.4711\t[xfs]\n\
ffffffff81000020 t xfs_end_bio_more\n\
ffffffff81000030 t twice\n\
ffffffffc1000030 t twice\t[b]\n\
ffffffffc1000040 t thrice\n\
ffffffffc1000050 t thrice\n\
ffffffffc1000060 t thrice\n";
        let found = find(&text[..], ["xfs_end_bio", "twice", "absent", "thrice"]).unwrap();
        assert_eq!(found, Some([0xffff_ffff_8100_0010, 0, 0, 0]));
    }

    #[test]
    fn hidden_addresses_are_told_from_missing_ones() {
        let hidden = b"0000000000000000 T _stext\n0000000000000000 t xfs_end_bio\n";
        assert_eq!(find(&hidden[..], ["xfs_end_bio"]).unwrap(), None);
        assert_eq!(find(&b"ffffffff81000000 T a\n"[..], ["b"]).unwrap(), Some([0]));
    }
}
