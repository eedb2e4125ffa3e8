//! Everything that Shelflife needs of PostgreSQL, and nothing of Shelflife itself.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`programs`] | finds `initdb`, `postgres`, `pgbench`, … and their version |
//! | [`user`] | the unprivileged user that a server runs as |
//! | [`cluster`] | a throwaway cluster: made, started, stopped, removed |
//! | [`datafolder`] | what a data folder says of itself, running or not |
//! | [`catalog`], [`pace`] | the names of relation files, from the catalogs of all databases; when to ask again |
//! | [`session`], [`counters`] | one connection; the server's counters and their differences |
//! | [`mod@pgbench`] | load a scale, run a load, read its summary and its latencies |
//! | [`verify`] | `pg_amcheck` and `pg_checksums` |
//! | [`procfs`] | the few facts of `/proc` by which a server's processes are known |
//!
//! ```no_run
//! use shelflife_postgres::pgbench::{self, Initialise, Length, Load};
//! use shelflife_postgres::{Cancel, Cluster, ClusterOptions, Programs};
//! use shelflife_postgres::programs::Search;
//!
//! # fn main() -> shelflife_postgres::Result<()> {
//! let programs = Programs::find(&Search::new(None))?;
//! let mut options = ClusterOptions::new(programs.clone(), "/var/tmp/trial");
//! options.set("max_wal_size", "4GB");
//! let mut cluster = Cluster::create(options)?;
//! cluster.start()?;
//!
//! let (dsn, cancel) = (cluster.dsn("postgres"), Cancel::never());
//! let load = Initialise { scale: 10, args: Vec::new() };
//! pgbench::initialise(&programs, &dsn, &load, &cancel, &mut |_| ())?;
//! let mut session = cluster.connect("postgres")?;
//! let before = session.counters()?;
//! let outcome =
//!     pgbench::run(&programs, &dsn, &Load::new(2, Length::Seconds(60)), &cancel, &mut |_| ())?;
//! let round = session.counters()?.since(&before);
//! println!("{} tps, {:?} bytes of WAL", outcome.summary.tps, round.wal_bytes);
//! cluster.close()
//! # }
//! ```
//!
//! Invariants of the whole crate: nothing is global (paths, environment and flags are handed in);
//! every wait polls the caller's [`Cancel`] and ends in [`Error::Interrupted`]; every process that was
//! started here is gone when the value that stands for it is dropped, also by a panic; and a server is
//! only ever reached through a Unix socket of its own or through the address that the user gave.

pub mod cancel;
pub mod catalog;
mod child;
pub mod cluster;
pub mod counters;
pub mod datafolder;
pub mod dsn;
pub mod error;
mod memory;
pub mod pace;
pub mod pgbench;
pub mod procfs;
pub mod programs;
pub mod session;
pub mod user;
pub mod verify;

pub use cancel::Cancel;
pub use catalog::Catalog;
pub use cluster::Cluster;
pub use cluster::ClusterOptions;
pub use cluster::StopMode;
pub use counters::Counters;
pub use counters::Gauges;
pub use datafolder::DataFolder;
pub use dsn::Dsn;
pub use error::Error;
pub use error::Result;
pub use pace::Pace;
pub use programs::Programs;
pub use programs::Version;
pub use session::Session;
pub use user::ServerUser;
