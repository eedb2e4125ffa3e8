//! One connection to a server, and what Shelflife asks through it.
//!
//! Invariant: no statement outlasts the caller's wish to stop: while one runs, a second thread polls the
//! flag and sends a cancel request; the call then ends in [`Error::Interrupted`].

use std::path::Path;
use std::path::PathBuf;
use std::sync::mpsc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use postgres::Client;
use postgres::NoTls;
use postgres::Row;
use postgres::error::SqlState;
use postgres::types::ToSql;
use serde::Deserialize;
use serde::Serialize;

use crate::cancel::Cancel;
use crate::cancel::POLL;
use crate::counters::Counters;
use crate::counters::Gauges;
use crate::dsn::Dsn;
use crate::error::Error;
use crate::error::Result;
use crate::programs::Version;

/// How this crate's sessions are called in `pg_stat_activity`.
pub const APPLICATION: &str = "shelflife";

const CONNECT_LIMIT: Duration = Duration::from_secs(30);

/// How long a finished checkpoint may take to appear in the statistics.
const CHECKPOINT_LAG: Duration = Duration::from_secs(3);

/// Up to 14 a collector process writes the statistics at most every 500 ms (PGSTAT_STAT_INTERVAL).
const COLLECTOR_LAG: Duration = Duration::from_millis(600);

/// An open connection. Statements have no time limit unless one is set.
pub struct Session {
    client: Client,
    version: Version,
    target: String,
    cancel: Cancel,
}

/// A setting as `pg_settings` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value with unit, as `SHOW` prints it.
    pub value: String,
    /// Where the value comes from: `default`, `configuration file`, `command line`, …
    pub source: String,
    /// Whether a changed value waits for a restart.
    pub pending_restart: bool,
}

/// The standbys and other receivers of a server's WAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replicas {
    /// How many are connected.
    pub count: u64,
    /// How many bytes of WAL the slowest has yet to replay; `None` if none tells.
    pub lag_bytes: Option<u64>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Session({}, {})", self.target, self.version)
    }
}

impl Session {
    /// Connects, waiting 30 s at most.
    ///
    /// # Errors
    /// [`Error::Connect`], [`Error::Timeout`], [`Error::UnsupportedVersion`].
    pub fn connect(dsn: &Dsn, cancel: &Cancel) -> Result<Self> {
        cancel.check()?;
        let target = dsn.to_string();
        let mut config = dsn.config();
        config.application_name(APPLICATION);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_LIMIT);
        }
        let connected = connect(config, cancel)?;
        let client = connected
            .ok_or_else(|| Error::Timeout {
                what: format!("connection to {target}"),
                limit: CONNECT_LIMIT,
            })?
            .map_err(|source| Error::Connect { target: target.clone(), source: source.into() })?;
        let version = Version { major: 0, minor: 0 };
        let mut session = Session { client, version, target, cancel: cancel.clone() };
        let number: String = session.one("SHOW server_version_num", &[])?;
        session.version = Version::from_number(number.parse().unwrap_or(0));
        if !crate::programs::is_supported(session.version.major) {
            let program = PathBuf::from("the server");
            return Err(Error::UnsupportedVersion {
                program,
                version: session.version.to_string(),
            });
        }
        Ok(session)
    }

    /// The server's version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The client library's own connection, for what is not here. Its calls do not poll the cancel flag.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Ends every later statement that takes longer, with an error; `None` lifts the limit.
    ///
    /// # Errors
    /// [`Error::Query`].
    pub fn set_statement_timeout(&mut self, limit: Option<Duration>) -> Result<()> {
        // Zero means no limit to the server, so the shortest limit is one millisecond.
        let ms = limit.map_or(0, |limit| limit.as_millis().clamp(1, i32::MAX as u128));
        self.batch(&format!("SET statement_timeout = {ms}"))
    }

    /// Runs statements, separated by semicolons, and drops their rows.
    ///
    /// # Errors
    /// [`Error::Query`], [`Error::DiskFull`] if the server has no room left.
    pub fn batch(&mut self, sql: &str) -> Result<()> {
        self.guarded(sql, |client| client.batch_execute(sql))
    }

    /// Runs a query and gives its rows.
    ///
    /// # Errors
    /// As [`Session::batch`].
    pub fn rows(&mut self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        self.guarded(sql, |client| client.query(sql, parameters))
    }

    /// The first column of the one row that a query gives.
    ///
    /// # Errors
    /// As [`Session::batch`], also if it is not one row or the column is not a `T`.
    pub fn one<T>(&mut self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<T>
    where
        T: for<'a> postgres::types::FromSql<'a>,
    {
        self.guarded(sql, |client| client.query_one(sql, parameters)?.try_get(0))
    }

    /// A checkpoint, finished and counted when this returns. Needs superuser (since 15
    /// `pg_checkpoint`).
    ///
    /// # Errors
    /// [`Error::Query`], [`Error::DiskFull`].
    pub fn checkpoint(&mut self) -> Result<()> {
        let before = self.requested_checkpoints()?;
        self.batch("CHECKPOINT")?;
        if self.is_in_recovery()? {
            return Ok(());
        }
        // The checkpointer wakes us before it reports to the statistics.
        let cancel = self.cancel.clone();
        cancel
            .poll(CHECKPOINT_LAG, || Ok((self.requested_checkpoints()? > before).then_some(())))?;
        Ok(())
    }

    fn requested_checkpoints(&mut self) -> Result<i64> {
        if self.version.major >= 17 {
            self.one("SELECT num_requested FROM pg_stat_checkpointer", &[])
        } else {
            self.one("SELECT checkpoints_req FROM pg_stat_bgwriter", &[])
        }
    }

    /// The value of a setting as `SHOW` prints it.
    ///
    /// # Errors
    /// [`Error::Query`], also for a name that this version does not know.
    pub fn show(&mut self, name: &str) -> Result<String> {
        self.one("SELECT current_setting($1)", &[&name])
    }

    /// Those of the named settings that this version knows, in the order of `names`.
    ///
    /// # Errors
    /// [`Error::Query`].
    pub fn settings(&mut self, names: &[&str]) -> Result<Vec<Setting>> {
        let sql = "SELECT name, current_setting(name), source, pending_restart \
                   FROM pg_settings JOIN unnest($1::text[]) WITH ORDINALITY AS n(name, at) \
                   USING (name) ORDER BY at";
        self.guarded(sql, |client| {
            let rows = client.query(sql, &[&names])?;
            rows.iter()
                .map(|row| {
                    Ok(Setting {
                        name: row.try_get(0)?,
                        value: row.try_get(1)?,
                        source: row.try_get(2)?,
                        pending_restart: row.try_get(3)?,
                    })
                })
                .collect()
        })
    }

    /// Whether the server is a standby or still recovers.
    ///
    /// # Errors
    /// [`Error::Query`].
    pub fn is_in_recovery(&mut self) -> Result<bool> {
        self.one("SELECT pg_is_in_recovery()", &[])
    }

    /// Whether this session's user is a superuser.
    ///
    /// # Errors
    /// [`Error::Query`].
    pub fn is_superuser(&mut self) -> Result<bool> {
        Ok(self.show("is_superuser")? == "on")
    }

    /// The server's data folder; needs superuser or `pg_read_all_settings`.
    ///
    /// # Errors
    /// [`Error::Query`].
    pub fn data_folder(&mut self) -> Result<PathBuf> {
        self.show("data_directory").map(PathBuf::from)
    }

    /// The path of a relation's first file, relative to the data folder. `None` if there is no such relation,
    /// or it has no file (a view, a partitioned table).
    ///
    /// # Errors
    /// [`Error::Query`], also for a name that is not one.
    pub fn relation_path(&mut self, relation: &str) -> Result<Option<PathBuf>> {
        let path: Option<String> =
            self.one("SELECT pg_relation_filepath(to_regclass($1))", &[&relation])?;
        Ok(path.map(PathBuf::from))
    }

    /// The standbys of this server.
    ///
    /// # Errors
    /// [`Error::Query`].
    pub fn replicas(&mut self) -> Result<Replicas> {
        let sql = "SELECT count(*), max(pg_wal_lsn_diff( \
                     CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() \
                          ELSE pg_current_wal_lsn() END, replay_lsn))::int8 \
                   FROM pg_stat_replication";
        self.guarded(sql, |client| {
            let row = client.query_one(sql, &[])?;
            Ok(Replicas { count: count(row.try_get(0)?), lag_bytes: opt(row.try_get(1)?) })
        })
    }

    /// Waits until no other session with this application name is left, and so until all that they did is
    /// counted; false if `limit` passed before.
    ///
    /// # Errors
    /// [`Error::Query`].
    pub fn await_gone(&mut self, application: &str, limit: Duration) -> Result<bool> {
        let sql = "SELECT count(*) FROM pg_stat_activity \
                   WHERE application_name = $1 AND pid <> pg_backend_pid()";
        let cancel = self.cancel.clone();
        let gone = cancel.poll(limit, || {
            let left: i64 = self.one(sql, &[&application])?;
            Ok((left == 0).then_some(()))
        })?;
        Ok(gone.is_some())
    }

    /// The server's counters. What other sessions did is counted when they are idle for a second or have
    /// ended ([`Session::await_gone`]).
    ///
    /// # Errors
    /// [`Error::Query`].
    pub fn counters(&mut self) -> Result<Counters> {
        self.settle()?;
        let major = self.version.major;
        let mut counters = Counters::default();
        self.read_database(&mut counters)?;
        self.read_checkpoints(&mut counters)?;
        counters.wal_position = opt(self.one(
            "SELECT CASE WHEN NOT pg_is_in_recovery() \
               THEN pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::int8 END",
            &[],
        )?);
        if major >= 14 {
            let sql = "SELECT wal_records, wal_fpi, wal_bytes::int8 FROM pg_stat_wal";
            self.guarded(sql, |client| {
                let row = client.query_one(sql, &[])?;
                counters.wal_records = opt(row.try_get(0)?);
                counters.wal_full_page_images = opt(row.try_get(1)?);
                counters.wal_bytes = opt(row.try_get(2)?);
                Ok(())
            })?;
        } else {
            counters.wal_bytes = counters.wal_position;
        }
        Ok(counters)
    }

    fn read_database(&mut self, counters: &mut Counters) -> Result<()> {
        let sql = "SELECT xact_commit, xact_rollback, temp_files, temp_bytes, t.* \
                   FROM pg_stat_database, \
                     (SELECT sum(n_tup_ins)::int8, sum(n_tup_upd)::int8, \
                             sum(n_tup_hot_upd)::int8, sum(n_tup_del)::int8 \
                      FROM pg_stat_user_tables) AS t \
                   WHERE datname = current_database()";
        self.guarded(sql, |client| {
            let row = client.query_one(sql, &[])?;
            counters.commits = opt(row.try_get(0)?);
            counters.rollbacks = opt(row.try_get(1)?);
            counters.temp_files = opt(row.try_get(2)?);
            counters.temp_bytes = opt(row.try_get(3)?);
            counters.rows_inserted = opt(row.try_get(4)?);
            counters.rows_updated = opt(row.try_get(5)?);
            counters.rows_hot_updated = opt(row.try_get(6)?);
            counters.rows_deleted = opt(row.try_get(7)?);
            Ok(())
        })
    }

    fn read_checkpoints(&mut self, counters: &mut Counters) -> Result<()> {
        let sql = match self.version.major {
            18.. => {
                "SELECT num_timed, num_requested, num_done, buffers_written, \
                        write_time::int8, sync_time::int8 FROM pg_stat_checkpointer"
            }
            17 => {
                "SELECT num_timed, num_requested, NULL::int8, buffers_written, \
                        write_time::int8, sync_time::int8 FROM pg_stat_checkpointer"
            }
            _ => {
                "SELECT checkpoints_timed, checkpoints_req, NULL::int8, buffers_checkpoint, \
                        checkpoint_write_time::int8, checkpoint_sync_time::int8 \
                 FROM pg_stat_bgwriter"
            }
        };
        self.guarded(sql, |client| {
            let row = client.query_one(sql, &[])?;
            counters.checkpoints_timed = opt(row.try_get(0)?);
            counters.checkpoints_requested = opt(row.try_get(1)?);
            counters.checkpoints_done = opt(row.try_get(2)?);
            counters.checkpoint_buffers = opt(row.try_get(3)?);
            counters.checkpoint_write_ms = opt(row.try_get(4)?);
            counters.checkpoint_sync_ms = opt(row.try_get(5)?);
            Ok(())
        })
    }

    /// The connected database's size and dead rows, and the files in `pg_wal` (needs superuser or
    /// `pg_monitor`).
    ///
    /// # Errors
    /// [`Error::Query`].
    pub fn gauges(&mut self) -> Result<Gauges> {
        self.settle()?;
        let sql = "SELECT pg_database_size(current_database()), t.*, w.* FROM \
                     (SELECT sum(n_dead_tup)::int8, sum(n_live_tup)::int8 \
                      FROM pg_stat_user_tables) AS t, \
                     (SELECT count(*) FILTER (WHERE name ~ '^[0-9A-F]{24}$'), \
                             sum(size)::int8 FROM pg_ls_waldir()) AS w";
        self.guarded(sql, |client| {
            let row = client.query_one(sql, &[])?;
            let at = |index| Ok::<_, postgres::Error>(opt(row.try_get(index)?).unwrap_or(0));
            Ok(Gauges {
                database_bytes: at(0)?,
                dead_rows: at(1)?,
                live_rows: at(2)?,
                wal_files: at(3)?,
                wal_folder_bytes: at(4)?,
            })
        })
    }

    /// Brings this session's own counts into the statistics, or waits for the collector of old versions.
    fn settle(&mut self) -> Result<()> {
        if self.version.major >= 15 {
            self.batch("SELECT pg_stat_force_next_flush()")
        } else {
            self.cancel.sleep(COLLECTOR_LAG)
        }
    }

    /// Runs `call` while another thread waits for the caller's wish to stop.
    fn guarded<T>(
        &mut self,
        what: &str,
        call: impl FnOnce(&mut Client) -> Result<T, postgres::Error>,
    ) -> Result<T> {
        let cancel = &self.cancel;
        cancel.check()?;
        let token = self.client.cancel_token();
        let client = &mut self.client;
        let result = std::thread::scope(|scope| {
            // Dropping the sender ends the watch.
            let (done, watch) = mpsc::channel::<()>();
            // Without a second thread the statement runs to its own end.
            let _ = std::thread::Builder::new().spawn_scoped(scope, move || {
                while let Err(RecvTimeoutError::Timeout) = watch.recv_timeout(POLL) {
                    if cancel.is_raised() {
                        // Asked again if the request came too early for the statement.
                        let _ = token.cancel_query(NoTls);
                    }
                }
            });
            let result = call(client);
            drop(done);
            result
        });
        result.map_err(|source| self.failure(what, source))
    }

    fn failure(&self, what: &str, source: postgres::Error) -> Error {
        let code = source.code();
        if code == Some(&SqlState::QUERY_CANCELED) && self.cancel.is_raised() {
            return Error::Interrupted;
        }
        let short: String = what.split_whitespace().collect::<Vec<_>>().join(" ");
        let what = match short.char_indices().nth(80) {
            Some((end, _)) => format!("{}…", &short[..end]),
            None => short,
        };
        if code == Some(&SqlState::DISK_FULL) {
            let lines = source.as_db_error().map(|error| error.message().to_owned());
            return Error::DiskFull {
                during: what,
                path: None,
                lines: lines.into_iter().collect(),
            };
        }
        Error::Query { what, source: source.into() }
    }
}

/// Connects in a thread of its own, which the caller need not wait for: a server that hangs accepts the
/// connection and says nothing. `None` after [`CONNECT_LIMIT`].
fn connect(
    config: postgres::Config,
    cancel: &Cancel,
) -> Result<Option<Result<Client, postgres::Error>>> {
    let (send, receive) = mpsc::sync_channel(1);
    // When nobody receives any more, the late connection is closed by being dropped.
    let connect = move || drop(send.send(config.connect(NoTls)));
    std::thread::Builder::new().spawn(connect).map_err(|source| {
        Error::io("cannot start a thread in", Path::new("this process"), source)
    })?;
    cancel.poll(CONNECT_LIMIT, || Ok(receive.recv_timeout(POLL).ok()))
}

/// The server counts in signed numbers that are never negative.
fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn opt(value: Option<i64>) -> Option<u64> {
    value.map(count)
}
