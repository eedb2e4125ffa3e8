//! A throwaway cluster: made by `initdb`, started, stopped and removed by one guard.
//!
//! Invariant: when a [`Cluster`] is dropped, at whatever point and also by a panic, no process of its server
//! is left, nor its folder (unless it is to be kept), its socket or its shared memory. The server listens on
//! a Unix socket only, in a folder that nobody but its user may enter.
//!
//! The server is a direct child of this process in a process group of its own: the terminal's Ctrl-C
//! does not reach it, so that the caller can end a run in order.

mod config;
mod home;
mod server;

use std::ffi::OsString;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::cancel::Cancel;
use crate::child;
use crate::cluster::home::Home;
use crate::cluster::server::Server;
use crate::datafolder::DataFolder;
use crate::dsn::Dsn;
use crate::error::Error;
use crate::error::Result;
use crate::error::is_disk_full;
use crate::error::last_lines;
use crate::error::says_disk_full;
use crate::programs::Programs;
use crate::session::Session;
use crate::user::ServerUser;

/// The port number in the name of a throwaway cluster's socket; nothing listens on it.
pub const PORT: u16 = 5432;

/// The database superuser of a throwaway cluster.
pub const SUPERUSER: &str = "postgres";

/// How a server is asked to stop (`pg_ctl stop -m`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopMode {
    /// Waits for all clients to leave, then as `Fast`.
    Smart,
    /// Ends all clients, writes a checkpoint.
    Fast,
    /// Ends at once; the next start recovers from the WAL.
    Immediate,
}

/// What a cluster shall be. [`ClusterOptions::new`] gives the defaults.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// The programs to use.
    pub programs: Programs,
    /// The cluster's own folder: new or empty for [`Cluster::create`]. Holds `data`, `server.log` and
    /// mostly the socket.
    pub folder: PathBuf,
    /// Who runs the server; see [`ServerUser::choose`].
    pub user: Option<String>,
    /// Data checksums, whatever the version's own default is (off until 17, on since 18).
    /// Default: on.
    pub checksums: bool,
    /// Further arguments of `initdb`, such as `--no-sync` or `--wal-segsize=1`. A folder that
    /// `--waldir` names is not removed with the cluster.
    pub initdb_args: Vec<OsString>,
    /// Settings of the server, name and value; the last one of a name counts.
    pub settings: Vec<(String, String)>,
    /// Environment variables for `initdb` and the servers that it runs.
    pub initdb_env: Vec<(OsString, OsString)>,
    /// Environment variables for the server, such as `LD_PRELOAD`.
    pub server_env: Vec<(OsString, OsString)>,
    /// The longest that a start may take, crash recovery included. Default: 10 minutes.
    pub start_limit: Duration,
    /// The longest that a stop may take, its checkpoint included. Default: 10 minutes.
    pub stop_limit: Duration,
    /// Whether the folder outlives the [`Cluster`]. Default: no.
    pub keep: bool,
    /// Ends every wait early.
    pub cancel: Cancel,
}

impl ClusterOptions {
    /// A cluster in `folder` with the defaults.
    pub fn new(programs: Programs, folder: impl Into<PathBuf>) -> Self {
        const LIMIT: Duration = Duration::from_secs(600);
        ClusterOptions {
            programs,
            folder: folder.into(),
            user: None,
            checksums: true,
            initdb_args: Vec::new(),
            settings: Vec::new(),
            initdb_env: Vec::new(),
            server_env: Vec::new(),
            start_limit: LIMIT,
            stop_limit: LIMIT,
            keep: false,
            cancel: Cancel::never(),
        }
    }

    /// Adds a setting.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.settings.push((name.into(), value.into()));
        self
    }
}

/// A throwaway cluster. Dropping it stops the server and removes the folder.
#[derive(Debug)]
pub struct Cluster {
    // Field order is drop order: the server's processes end before their folder goes.
    server: Option<Server>,
    home: Home,
    options: ClusterOptions,
    user: ServerUser,
    data: DataFolder,
}

impl Cluster {
    /// Makes a new cluster with `initdb`; the server is not started yet.
    ///
    /// # Errors
    /// [`Error::NotEmpty`], [`Error::Unreachable`], [`Error::DiskFull`], [`Error::ProgramFailed`] with
    /// `initdb`'s last words, the errors of [`ServerUser::choose`]. Nothing is left behind then.
    pub fn create(options: ClusterOptions) -> Result<Self> {
        options.cancel.check()?;
        config::check(&options.settings)?;
        let user = ServerUser::choose(options.user.as_deref())?;
        let home = Home::create(&options.folder, &user, &options.programs, options.keep)?;
        initdb(&options, &user, &home)?;
        let data = DataFolder::open(&home.data())?;
        config::include(data.path())?;
        let cluster = Cluster { server: None, home, options, user, data };
        cluster.write_settings()?;
        Ok(cluster)
    }

    /// Takes over the cluster that an earlier [`Cluster::create`] with `keep` made in the same folder; what
    /// `options` says about `initdb` does not matter. Unless a user is named, root runs it as its owner.
    ///
    /// # Errors
    /// [`Error::NotADataFolder`], [`Error::VersionMismatch`], [`Error::WrongOwner`], and what
    /// [`DataFolder::check_startable`] finds.
    pub fn open(options: ClusterOptions) -> Result<Self> {
        options.cancel.check()?;
        config::check(&options.settings)?;
        let data = DataFolder::open(&options.folder.join(home::DATA))?;
        let (folder, programs) = (data.major(), options.programs.version().major);
        if folder != programs {
            let bindir = options.programs.bindir().to_owned();
            return Err(Error::VersionMismatch {
                path: data.path().to_owned(),
                folder,
                bindir,
                programs,
            });
        }
        let user = match &options.user {
            None if rustix::process::geteuid().is_root() && data.uid() != 0 => {
                ServerUser::of(data.uid())?
            }
            name => ServerUser::choose(name.as_deref())?,
        };
        if user.uid() != data.uid() {
            return Err(Error::WrongOwner {
                path: data.path().to_owned(),
                owner: data.uid(),
                user: user.name().to_owned(),
                uid: user.uid(),
            });
        }
        data.check_startable()?;
        let home = Home::open(&options.folder, &user, &options.programs, options.keep)?;
        config::include(data.path())?;
        let cluster = Cluster { server: None, home, options, user, data };
        cluster.write_settings()?;
        Ok(cluster)
    }

    /// Ends the server and removes the folder of a cluster whose owner died before it could (SIGKILL, loss of
    /// power). What this crate has not made stays.
    ///
    /// # Errors
    /// [`Error::NotADataFolder`] if no cluster was made there, [`Error::Timeout`] if its server does not end,
    /// [`Error::Io`].
    pub fn discard(folder: &Path) -> Result<()> {
        let data = DataFolder::open(&folder.join(home::DATA))?;
        if !config::is_included(data.path())? {
            let why = "it was not made for a throwaway cluster".to_owned();
            return Err(Error::NotADataFolder { path: data.path().to_owned(), why });
        }
        server::end_all(&data)?;
        home::remove(folder, true)
    }

    /// Starts the server and waits until it takes connections. Nothing happens if it runs.
    ///
    /// # Errors
    /// [`Error::ServerRefused`] with the last lines of its log, [`Error::DiskFull`], [`Error::Timeout`],
    /// what [`DataFolder::check_startable`] finds.
    pub fn start(&mut self) -> Result<()> {
        self.options.cancel.check()?;
        if self.server.as_mut().is_some_and(|server| server.exit_status().is_none()) {
            return Ok(());
        }
        if let Some(server) = &mut self.server {
            server.await_family(&self.options.cancel)?;
        }
        self.data.check_startable()?;
        let memory = self.server.take().map(Server::into_memory).unwrap_or_default();
        let data = self.data.clone();
        let server = Server::spawn(&self.options, &self.user, &self.home, data, memory)?;
        let ready = self.server.insert(server).await_ready(&self.options);
        if matches!(ready, Err(Error::ServerRefused { .. } | Error::DiskFull { .. })) {
            self.server = None;
        }
        ready
    }

    /// Stops the server and waits until *all* its processes are gone. Nothing happens if none runs.
    ///
    /// # Errors
    /// [`Error::Timeout`] after [`ClusterOptions::stop_limit`]; the server goes on stopping.
    pub fn stop(&mut self, mode: StopMode) -> Result<()> {
        let Some(server) = &mut self.server else { return Ok(()) };
        server.stop(mode, self.options.stop_limit, &self.options.cancel)?;
        self.server = None;
        Ok(())
    }

    /// [`Cluster::stop`], then [`Cluster::start`].
    ///
    /// # Errors
    /// Those of both.
    pub fn restart(&mut self, mode: StopMode) -> Result<()> {
        self.stop(mode)?;
        self.start()
    }

    /// Kills the postmaster with SIGKILL, as the out-of-memory killer would, and waits until its children
    /// have noticed and are gone; those that have not after five seconds are ended too. The next
    /// [`Cluster::start`] recovers from the WAL.
    ///
    /// # Errors
    /// [`Error::NotRunning`].
    pub fn kill9(&mut self) -> Result<()> {
        let path = || self.data.path().to_owned();
        let server = self.server.as_mut().ok_or_else(|| Error::NotRunning { path: path() })?;
        server.kill(&self.options.cancel)
    }

    /// Whether the server runs and takes connections.
    pub fn is_ready(&mut self) -> bool {
        let Some(server) = &mut self.server else { return false };
        server.exit_status().is_none() && server.says_ready()
    }

    /// That the server is still alive.
    ///
    /// # Errors
    /// [`Error::ServerDied`] with the last lines of its log, [`Error::NotRunning`] if it was never started
    /// or was stopped.
    pub fn check_alive(&mut self) -> Result<()> {
        let path = self.data.path().to_owned();
        let Some(server) = &mut self.server else { return Err(Error::NotRunning { path }) };
        match server.exit_status() {
            None => Ok(()),
            Some(status) => {
                let lines = last_lines(&server.log_since_start(), child::SHOWN_LINES);
                Err(Error::ServerDied { path, status: status.to_string(), lines })
            }
        }
    }

    /// `error`, or [`Error::DiskFull`] if the server's log says or the file system shows that this was the
    /// cause: clients often only hear that the server is gone.
    pub fn explain(&self, error: Error) -> Error {
        if !matches!(
            error,
            Error::ProgramFailed { .. }
                | Error::Query { .. }
                | Error::Connect { .. }
                | Error::DiskFull { path: None, .. }
                | Error::ServerDied { .. }
        ) {
            return error;
        }
        let log = self.server.as_ref().map(Server::log_since_start).unwrap_or_default();
        let mut lines = last_lines(&log, usize::MAX);
        lines.retain(|line| says_disk_full(line));
        lines.drain(..lines.len().saturating_sub(3));
        let path = Some(self.data.path().to_owned());
        match error {
            Error::DiskFull { during, lines, .. } => Error::DiskFull { during, path, lines },
            other if lines.is_empty() && !is_disk_full(self.data.path()) => other,
            Error::ProgramFailed { program: during, .. } | Error::Query { what: during, .. } => {
                Error::DiskFull { during, path, lines }
            }
            _ => Error::DiskFull { during: "the server's work".to_owned(), path, lines },
        }
    }

    /// Replaces the settings. What needs no restart counts at once if the server runs (SIGHUP); some of the
    /// server's processes take a moment to hear of it.
    ///
    /// # Errors
    /// [`Error::BadSetting`], [`Error::Io`].
    pub fn set_settings(&mut self, settings: Vec<(String, String)>) -> Result<()> {
        config::check(&settings)?;
        self.options.settings = settings;
        self.write_settings()?;
        if let Some(server) = &mut self.server {
            server.reload();
        }
        Ok(())
    }

    /// Replaces the environment variables that count from the next start on.
    pub fn set_server_env(&mut self, env: Vec<(OsString, OsString)>) {
        self.options.server_env = env;
    }

    /// The settings in force from the next start on.
    pub fn settings(&self) -> &[(String, String)] {
        &self.options.settings
    }

    /// The postmaster's process id while one runs.
    pub fn pid(&self) -> Option<i32> {
        self.server.as_ref().map(Server::pid)
    }

    /// The cluster's own folder, absolute.
    pub fn folder(&self) -> &Path {
        self.home.folder()
    }

    /// The data folder.
    pub fn data(&self) -> &DataFolder {
        &self.data
    }

    /// The folder of the server's socket.
    pub fn socket_folder(&self) -> &Path {
        self.home.socket()
    }

    /// The server's log.
    pub fn log(&self) -> PathBuf {
        self.home.log()
    }

    /// The last `count` non-empty lines of the server's log.
    pub fn log_tail(&self, count: usize) -> Vec<String> {
        last_lines(&server::tail(&self.home.log(), 0), count)
    }

    /// Who runs the server.
    pub fn user(&self) -> &ServerUser {
        &self.user
    }

    /// The programs in use.
    pub fn programs(&self) -> &Programs {
        &self.options.programs
    }

    /// The address of a database of this cluster.
    pub fn dsn(&self, database: &str) -> Dsn {
        Dsn::unix(self.home.socket(), PORT, SUPERUSER, database)
    }

    /// A session with a database of this cluster.
    ///
    /// # Errors
    /// Those of [`Session::connect`]; [`Error::ServerDied`] if that is why.
    pub fn connect(&mut self, database: &str) -> Result<Session> {
        self.check_alive()?;
        let session = Session::connect(&self.dsn(database), &self.options.cancel);
        session.or_else(|error| self.check_alive().and(Err(error)))
    }

    /// The arguments with which any start of this server by other means must end, so that it listens on
    /// its socket only and can be found: `postgres -D DATA ARGS…`.
    pub fn server_args(&self) -> Vec<OsString> {
        server::arguments(&self.home)
    }

    /// Whether the folder outlives this value.
    pub fn keep(&mut self, keep: bool) {
        self.options.keep = keep;
        self.home.keep(keep);
    }

    /// Stops the server and removes the folder as dropping does, but says what went wrong.
    ///
    /// # Errors
    /// [`Error::Timeout`] if the server had to be killed, [`Error::Io`] if the folder could not be removed.
    pub fn close(mut self) -> Result<()> {
        let stopped = self.end_server();
        stopped.and(self.home.remove())
    }

    /// A kept cluster is stopped with a checkpoint; one that goes away needs none.
    fn end_server(&mut self) -> Result<()> {
        let Some(mut server) = self.server.take() else {
            // Nor may one that was started by other means outlive its folder.
            return if self.options.keep { Ok(()) } else { server::end_all(&self.data) };
        };
        let ended = if self.options.keep {
            server.stop(StopMode::Fast, self.options.stop_limit, &Cancel::never())
        } else {
            server.stop(StopMode::Immediate, server::IMMEDIATE_LIMIT, &Cancel::never())
        };
        // Dropping it kills what is left and frees the memory of a server that was killed.
        drop(server);
        ended
    }

    fn write_settings(&self) -> Result<()> {
        config::write(self.data.path(), &self.options.settings, &self.user)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Errors have no way out of here; `close` tells them.
        let _ = self.end_server();
    }
}

fn initdb(options: &ClusterOptions, user: &ServerUser, home: &Home) -> Result<()> {
    let mut command = Command::new(options.programs.initdb());
    command.current_dir(home.folder());
    command.arg("--pgdata").arg(home.data());
    command.args(["--username", SUPERUSER, "--auth=trust", "--encoding=UTF8", "--locale=C"]);
    if options.checksums {
        command.arg("--data-checksums");
    } else if options.programs.version().major >= 18 {
        command.arg("--no-data-checksums");
    }
    command.args(&options.initdb_args);
    user.apply(&mut command);
    child::clean_environment(&mut command);
    command.envs(options.initdb_env.iter().map(|(name, value)| (name, value)));
    let output = child::run(&mut command, &options.cancel, &mut |_| ())?;
    match output.success("initdb") {
        Err(Error::DiskFull { during, lines, .. }) => {
            Err(Error::DiskFull { during, path: Some(home.folder().to_owned()), lines })
        }
        other => other.map(drop),
    }
}
