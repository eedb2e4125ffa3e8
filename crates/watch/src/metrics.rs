//! Figures for Prometheus, on request, over a Unix socket or on this machine's loopback.
//!
//! Invariant: one thread, one request at a time, bounded in bytes and time; nothing that a client
//! sends is more than a reason to answer with the figures.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry as Metrics;
use shelflife_control::Registry;
use shelflife_run::{Watching, hook_share};

use crate::Error;
use crate::daemon::{Mode, figures};
use crate::hub::Hub;

/// The longest request that is read, in bytes.
const REQUEST: usize = 4096;
const PATIENCE: Duration = Duration::from_secs(2);

/// A socket that listens.
#[derive(Debug)]
pub(crate) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    /// Listens at a path, or at an address of the loopback.
    pub(crate) fn bind(at: &str) -> Result<Listener, Error> {
        let refused = |source| Error::Metrics { at: at.to_owned(), source };
        if at.starts_with('/') {
            // What a killed daemon left is replaced; anything else is not.
            let path = Path::new(at);
            if path.symlink_metadata().is_ok_and(|m| m.file_type().is_socket())
                && std::os::unix::net::UnixStream::connect(path).is_err()
            {
                std::fs::remove_file(path).map_err(refused)?;
            }
            return Ok(Listener::Unix(UnixListener::bind(path).map_err(refused)?));
        }
        let address: SocketAddr =
            at.parse().map_err(|_| refused(io::Error::other("neither a path nor ADDRESS:PORT")))?;
        let ip: IpAddr = address.ip();
        if !ip.is_loopback() {
            return Err(refused(io::Error::other("only loopback addresses are served")));
        }
        Ok(Listener::Tcp(TcpListener::bind(address).map_err(refused)?))
    }

    /// Answers requests until the daemon ends; the thread is not waited for.
    pub(crate) fn serve(self, hub: &Arc<Hub>, mode: Mode, registry: &Registry) -> io::Result<()> {
        let (hub, registry) = (Arc::clone(hub), registry.clone());
        std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            while !hub.ends() {
                let answer = || text(&figures(&hub, mode), hook_share(&registry), acts(&hub));
                let answered = match &self {
                    Listener::Unix(unix) => unix.accept().and_then(|(stream, _)| {
                        stream.set_read_timeout(Some(PATIENCE))?;
                        stream.set_write_timeout(Some(PATIENCE))?;
                        respond(stream, answer)
                    }),
                    Listener::Tcp(tcp) => tcp.accept().and_then(|(stream, _)| {
                        stream.set_read_timeout(Some(PATIENCE))?;
                        stream.set_write_timeout(Some(PATIENCE))?;
                        respond(stream, answer)
                    }),
                };
                if answered.is_err() {
                    // No descriptors left, say: not a reason to burn a processor.
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        })?;
        Ok(())
    }
}

fn acts(hub: &Hub) -> bool {
    crate::hint::acts(hub.driver.page().state())
}

fn respond(mut stream: impl Read + Write, answer: impl Fn() -> String) -> io::Result<()> {
    let mut request = Vec::new();
    let mut part = [0; 512];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST {
        match stream.read(&mut part)? {
            0 => break,
            length => request.extend_from_slice(part.get(..length).unwrap_or_default()),
        }
    }
    let (status, body) = if request.starts_with(b"GET ") {
        ("200 OK", answer())
    } else {
        ("405 Method Not Allowed", String::new())
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/openmetrics-text; version=1.0.0; \
         charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Of {
    folder: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Hint {
    folder: String,
    class: String,
    lifetime: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Refusal {
    folder: String,
    errno: i32,
}

/// The figures as OpenMetrics text.
pub(crate) fn text(figures: &Watching, share: Option<(usize, usize)>, acts: bool) -> String {
    let mut metrics = Metrics::with_prefix("shelflife");
    let hints = Family::<Hint, Counter>::default();
    let refused = Family::<Refusal, Counter>::default();
    type Read = fn(&shelflife_run::WatchedFolder) -> u64;
    let counters: [(&str, &str, Read); 6] = [
        ("hints_again", "Hints given again to files that had lost theirs", |f| f.again),
        ("hints_cleared", "Hints set back to not-set", |f| f.cleared),
        ("sweeps", "Sweeps that have ended", |f| f.sweeps),
        ("overflows", "Times that the event queue was full", |f| f.overflows),
        ("foreign", "Looks at files of other owners, left alone", |f| f.foreign),
        ("elsewhere", "Looks at files behind links or mounts, left alone", |f| f.elsewhere),
    ];
    let gauges: [(&str, &str, Read); 4] = [
        ("present", "Whether the folder is there", |f| f.present.into()),
        ("files", "Files as of the last sweep", |f| f.files),
        ("folders", "Folders that are watched", |f| f.folders),
        ("folders_unwatched", "Folders that could not be watched", |f| f.unwatched),
    ];
    for (name, help, read) in counters {
        let family = Family::<Of, Counter>::default();
        for f in &figures.folders {
            family.get_or_create(&of(f)).inner().store(read(f), Relaxed);
        }
        metrics.register(name, help, family);
    }
    for (name, help, read) in gauges {
        let family = Family::<Of, Gauge>::default();
        for f in &figures.folders {
            family.get_or_create(&of(f)).set(read(f).cast_signed());
        }
        metrics.register(name, help, family);
    }
    for f in &figures.folders {
        let folder = of(f).folder;
        for h in &f.hints {
            let (class, lifetime) = (h.class.clone(), h.lifetime.clone());
            let labels = Hint { folder: folder.clone(), class, lifetime };
            hints.get_or_create(&labels).inner().store(h.hints, Relaxed);
        }
        for r in &f.refused {
            let labels = Refusal { folder: folder.clone(), errno: r.errno };
            refused.get_or_create(&labels).inner().store(r.times, Relaxed);
        }
    }
    metrics.register("hints", "Hints given, by class of file and lifetime", hints);
    metrics.register("refused", "Calls that the kernel refused, by errno", refused);
    let on = Gauge::<i64>::default();
    on.set(acts.into());
    metrics.register("on", "Whether hints are given", on);
    if let Some((with, all)) = share {
        let (carrying, processes) = (Gauge::<i64>::default(), Gauge::<i64>::default());
        carrying.set(with as i64);
        processes.set(all as i64);
        metrics.register("hook_processes", "Processes of servers that carry the hook", carrying);
        metrics.register(
            "hook_processes_expected",
            "Processes of servers that were started under the hook",
            processes,
        );
    }
    let mut out = String::new();
    match encode(&mut out, &metrics) {
        Ok(()) => out,
        // Writing to a string does not fail; an empty answer would look like one.
        Err(_) => "# EOF\n".to_owned(),
    }
}

fn of(folder: &shelflife_run::WatchedFolder) -> Of {
    Of { folder: folder.folder.display().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_served() {
        for at in ["0.0.0.0:0", "192.0.2.1:1", "nonsense", "127.0.0.1"] {
            Listener::bind(at).expect_err(at);
        }
        Listener::bind("127.0.0.1:0").expect("the loopback");
    }

    #[test]
    fn a_socket_of_a_killed_daemon_is_replaced_and_a_file_is_not() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("s").to_str().expect("text").to_owned();
        drop(Listener::bind(&path).expect("bound"));
        let second = Listener::bind(&path).expect("replaced");
        Listener::bind(&path).expect_err("one that listens is not");
        drop(second);
        let file = dir.path().join("f").to_str().expect("text").to_owned();
        std::fs::write(&file, "").expect("a file");
        Listener::bind(&file).expect_err("a file");
    }

    #[test]
    fn a_request_is_answered_and_nonsense_is_refused() {
        let ask = |request: &[u8]| {
            let (mut here, there) = std::os::unix::net::UnixStream::pair().expect("a pair");
            here.write_all(request).expect("sent");
            here.shutdown(std::net::Shutdown::Write).expect("all of it");
            respond(there, || text(&Watching { folders: vec![] }, Some((3, 4)), true))
                .expect("answered");
            let mut answer = String::new();
            // What was not read of a long request resets the connection after the answer.
            let _ = here.read_to_string(&mut answer);
            answer
        };
        let good = ask(b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(good.starts_with("HTTP/1.1 200 OK\r\n"), "{good}");
        assert!(good.contains("shelflife_on 1\n") && good.ends_with("# EOF\n"), "{good}");
        assert!(good.contains("shelflife_hook_processes 3\n"), "{good}");
        assert!(ask(&[b'x'; 100_000]).starts_with("HTTP/1.1 405"));
        assert!(ask(b"").starts_with("HTTP/1.1 405"));
    }
}
