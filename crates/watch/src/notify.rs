//! Words for the service manager (sd_notify(3)): ready, alive, ending.
//!
//! Invariant: without `$NOTIFY_SOCKET` nothing is sent, and a manager that does not listen is no
//! error: the daemon works all the same.

use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A connection to the service manager, or to nobody.
#[derive(Debug, Default)]
pub struct Notify(Option<(UnixDatagram, SocketAddr)>);

impl Notify {
    /// The manager that started this process, if one did and wants to hear.
    pub fn from_environment() -> Notify {
        Notify::to(std::env::var_os("NOTIFY_SOCKET"))
    }

    fn to(address: Option<OsString>) -> Notify {
        let connected = address.and_then(|address| {
            let address = match address.as_bytes().strip_prefix(b"@") {
                Some(name) => SocketAddr::from_abstract_name(name).ok()?,
                None => SocketAddr::from_pathname(&address).ok()?,
            };
            Some((UnixDatagram::unbound().ok()?, address))
        });
        Notify(connected)
    }

    /// The first sweep has ended.
    pub fn ready(&self) {
        self.send("READY=1\nSTATUS=watching");
    }

    /// It is alive: the watchdog may wait on.
    pub fn alive(&self) {
        self.send("WATCHDOG=1");
    }

    /// It is starting, and takes so many seconds more if it has to.
    pub fn starting(&self, seconds: u64) {
        self.send(&format!("EXTEND_TIMEOUT_USEC={}\nSTATUS=sweeping", seconds * 1_000_000));
    }

    /// It ends.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    fn send(&self, words: &str) {
        if let Some((socket, address)) = &self.0 {
            let _ = socket.send_to_addr(words.as_bytes(), address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_arrive_by_path_and_by_abstract_name() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("socket");
        let name = format!("shelflife-test-{}", std::process::id());
        let abstract_name = SocketAddr::from_abstract_name(&name).expect("a name");
        let ends = [
            (UnixDatagram::bind(&path).expect("bound"), path.into_os_string()),
            (UnixDatagram::bind_addr(&abstract_name).expect("bound"), format!("@{name}").into()),
        ];
        for (end, address) in ends {
            Notify::to(Some(address)).ready();
            let mut buffer = [0; 100];
            let length = end.recv(&mut buffer).expect("words");
            assert!(buffer[..length].starts_with(b"READY=1\n"));
        }
        Notify::to(None).ready();
        Notify::to(Some("/nonexistent/socket".into())).alive();
    }
}
