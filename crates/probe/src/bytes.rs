//! Fields of device replies.
//!
//! Invariant: a read outside the reply is an error that names what was read, never a panic.

/// A reply that is too short, or whose own lengths do not fit.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{what}: {have} bytes, {need} needed")]
pub struct Malformed {
    /// The reply.
    pub what: &'static str,
    /// Bytes that its content asks for.
    pub need: usize,
    /// Bytes that there are.
    pub have: usize,
}

/// A reply with its name.
#[derive(Clone, Copy)]
pub(crate) struct Reply<'a> {
    what: &'static str,
    bytes: &'a [u8],
}

impl<'a> Reply<'a> {
    pub(crate) fn new(what: &'static str, bytes: &'a [u8]) -> Reply<'a> {
        Reply { what, bytes }
    }

    pub(crate) fn len(self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn take<const N: usize>(self, at: usize) -> Result<[u8; N], Malformed> {
        let short =
            || Malformed { what: self.what, need: at.saturating_add(N), have: self.bytes.len() };
        let end = at.checked_add(N).ok_or_else(short)?;
        let field = self.bytes.get(at..end).ok_or_else(short)?;
        field.try_into().map_err(|_| short())
    }

    pub(crate) fn slice(self, at: usize, len: usize) -> Result<&'a [u8], Malformed> {
        let end = at.saturating_add(len);
        let short = || Malformed { what: self.what, need: end, have: self.bytes.len() };
        self.bytes.get(at..end).ok_or_else(short)
    }

    pub(crate) fn u8(self, at: usize) -> Result<u8, Malformed> {
        self.take::<1>(at).map(|[byte]| byte)
    }

    pub(crate) fn le16(self, at: usize) -> Result<u16, Malformed> {
        self.take(at).map(u16::from_le_bytes)
    }

    pub(crate) fn le32(self, at: usize) -> Result<u32, Malformed> {
        self.take(at).map(u32::from_le_bytes)
    }

    pub(crate) fn le64(self, at: usize) -> Result<u64, Malformed> {
        self.take(at).map(u64::from_le_bytes)
    }

    pub(crate) fn le128(self, at: usize) -> Result<u128, Malformed> {
        self.take(at).map(u128::from_le_bytes)
    }

    pub(crate) fn be16(self, at: usize) -> Result<u16, Malformed> {
        self.take(at).map(u16::from_be_bytes)
    }

    pub(crate) fn be32(self, at: usize) -> Result<u32, Malformed> {
        self.take(at).map(u32::from_be_bytes)
    }

    /// Text padded with blanks, as devices have it; what is not ASCII becomes `?`.
    pub(crate) fn text(self, at: usize, len: usize) -> Result<String, Malformed> {
        let raw = self.slice(at, len)?;
        let shown = raw.iter().take_while(|b| **b != 0).map(|b| match b {
            b' '..=b'~' => char::from(*b),
            _ => '?',
        });
        Ok(shown.collect::<String>().trim().to_owned())
    }
}
