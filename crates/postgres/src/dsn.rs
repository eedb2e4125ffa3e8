//! The address of a database: what the user gave, or a throwaway cluster's socket.
//!
//! Invariant: the password never appears in a message, a process title or a debug print; programs get it
//! through their environment.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use postgres::Config;
use postgres::config::Host;

use crate::error::Error;
use crate::error::Result;

/// Where libpq looks for a server's socket if no host is given: Debian's and the source's default.
const DEFAULT_SOCKETS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// The address of a database. Connections are never encrypted: a local socket, or a network that is trusted.
#[derive(Clone)]
pub struct Dsn(Config);

impl Dsn {
    /// Reads a connection string, `key=value` pairs or a `postgresql://` URL. Without a host it is the local
    /// socket.
    ///
    /// # Errors
    /// [`Error::BadDsn`].
    pub fn parse(text: &str) -> Result<Self> {
        let bad = |why: String| Error::BadDsn { why };
        let mut config: Config = text.parse().map_err(|error: postgres::Error| {
            // The cause ("unknown option `x`") is one level down.
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            bad(cause.unwrap_or_else(|| error.to_string()))
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            let port = config.get_ports().first().copied().unwrap_or(5432);
            let name = format!(".s.PGSQL.{port}");
            let found =
                DEFAULT_SOCKETS.iter().find(|folder| Path::new(folder).join(&name).exists());
            config.host_path(found.unwrap_or(&DEFAULT_SOCKETS[0]));
        }
        Ok(Dsn(config))
    }

    /// A database behind the Unix socket in `folder`.
    pub fn unix(folder: &Path, port: u16, user: &str, database: &str) -> Self {
        let mut config = Config::new();
        config.host_path(folder).port(port).user(user).dbname(database);
        Dsn(config)
    }

    /// The same server, another database.
    pub fn with_database(&self, database: &str) -> Self {
        let mut config = self.0.clone();
        config.dbname(database);
        Dsn(config)
    }

    /// The database's name, if given; else it is the user's name.
    pub fn database(&self) -> Option<&str> {
        self.0.get_dbname()
    }

    /// The folder of the server's socket, if it is reached by one.
    pub fn socket_folder(&self) -> Option<PathBuf> {
        self.0.get_hosts().iter().find_map(|host| match host {
            Host::Unix(folder) => Some(folder.clone()),
            Host::Tcp(_) => None,
        })
    }

    /// For the client library.
    pub(crate) fn config(&self) -> Config {
        self.0.clone()
    }

    /// Gives this address to one of PostgreSQL's own client programs: as its last argument, and the
    /// password through the environment, where other users cannot see it.
    pub(crate) fn give_to(&self, command: &mut Command) {
        if let Some(password) = self.0.get_password() {
            command.env("PGPASSWORD", OsStr::from_bytes(password));
        }
        command.arg(self.conninfo());
    }

    /// `key='value'` pairs as libpq reads them, without password.
    fn conninfo(&self) -> String {
        let list = |values: Vec<String>| values.join(",");
        let hosts = self.0.get_hosts().iter().map(|host| match host {
            Host::Unix(folder) => folder.to_string_lossy().into_owned(),
            Host::Tcp(name) => name.clone(),
        });
        let addresses = self.0.get_hostaddrs().iter().map(ToString::to_string);
        let ports = self.0.get_ports().iter().map(ToString::to_string);
        let pairs = [
            ("host", list(hosts.collect())),
            ("hostaddr", list(addresses.collect())),
            ("port", list(ports.collect())),
            ("user", self.0.get_user().unwrap_or_default().to_owned()),
            ("dbname", self.0.get_dbname().unwrap_or_default().to_owned()),
            ("options", self.0.get_options().unwrap_or_default().to_owned()),
        ];
        let given = pairs.into_iter().filter(|(_, value)| !value.is_empty());
        let quoted = given.map(|(key, value)| {
            format!("{key}='{}'", value.replace('\\', r"\\").replace('\'', r"\'"))
        });
        quoted.collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Display for Dsn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.conninfo())
    }
}

impl fmt::Debug for Dsn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Dsn({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_the_password_stays_hidden() {
        for text in [
            "host=/run/x port=5433 user=me dbname=d password=secret",
            "postgresql://me:secret@%2Frun%2Fx:5433/d",
        ] {
            let dsn = Dsn::parse(text).unwrap();
            assert_eq!(dsn.to_string(), "host='/run/x' port='5433' user='me' dbname='d'");
            assert!(!format!("{dsn:?}").contains("secret"));
            assert_eq!(dsn.socket_folder().unwrap(), Path::new("/run/x"));
            let mut command = Command::new("x");
            dsn.give_to(&mut command);
            let env: Vec<_> = command.get_envs().collect();
            assert_eq!(env, [("PGPASSWORD".as_ref(), Some("secret".as_ref()))]);
        }
    }

    #[test]
    fn quotes_are_escaped() {
        let dsn = Dsn::unix(Path::new("/s"), 1, r"o'b\c", "d");
        assert_eq!(dsn.to_string(), r"host='/s' port='1' user='o\'b\\c' dbname='d'");
        assert_eq!(Dsn::parse(&dsn.to_string()).unwrap().to_string(), dsn.to_string());
        assert_eq!(dsn.with_database("e").database(), Some("e"));
    }

    #[test]
    fn a_missing_host_is_the_local_socket() {
        let folder = Dsn::parse("port=1").unwrap().socket_folder().unwrap();
        assert_eq!(folder, Path::new(DEFAULT_SOCKETS[0]));
    }

    #[test]
    fn nonsense_is_named() {
        let told = Dsn::parse("host=a nonsense=secret").unwrap_err().to_string();
        assert!(told.contains("nonsense"), "{told}");
        assert!(!told.contains("secret"), "{told}");
        assert!(Dsn::parse("'").is_err());
    }
}
