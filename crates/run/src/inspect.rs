//! What a run is doing, and whether its hook is really there.
//!
//! Invariant: "carries the hook" is said only of a process in which this run's page is mapped
//! (System V mappings show the segment's number as their inode in `/proc/PID/maps`).

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use shelflife_control::{COLUMN_NO_RULE, Kind, Liveness, Registry, Run, start_time};
use shelflife_layout::Class;
use shelflife_lifetime::Lifetime;

use crate::hook;
use crate::recording::{Recording, recording};
use crate::switch::data_folders_of;
use crate::watching::{Watching, watching};

/// Whether a process carries the hook with this run's page, and if not, why not.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "carries", content = "cause")]
pub enum Carries {
    /// It does.
    Yes,
    /// It does not, for this reason.
    No(String),
    /// This user may not look.
    Unknown(String),
}

/// A process of a server.
#[derive(Clone, Debug, Serialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Whether it carries the hook.
    #[serde(flatten)]
    pub carries: Carries,
}

/// The server of a data folder.
#[derive(Clone, Debug, Serialize)]
pub struct ServerStatus {
    /// The data folder.
    pub folder: PathBuf,
    /// The postmaster, if one runs.
    pub postmaster: Option<Process>,
    /// Its children that carry the hook.
    pub children_with_hook: usize,
    /// All its children.
    pub children: usize,
}

/// Opened files of a class that got the same answer.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Counted {
    /// What the files are.
    pub class: &'static str,
    /// The lifetime that the policy gives, or `null` if it has no rule.
    pub lifetime: Option<&'static str>,
    /// How often such a file was opened for writing.
    pub opens: u64,
}

/// A run as it is now.
#[derive(Clone, Debug, Serialize)]
pub struct RunStatus {
    /// Its name.
    pub name: String,
    /// Who gives the hints.
    pub kind: Kind,
    /// Whether hints are given.
    pub on: bool,
    /// Whether opens are only counted.
    pub dry_run: bool,
    /// How often it was switched.
    pub generation: u64,
    /// The policy; `None` if the page's copy is damaged.
    pub policy: Option<String>,
    /// Command and arguments.
    pub command: Vec<String>,
    /// When it was started, seconds since 1970.
    pub started: u64,
    /// Processes that have its page mapped.
    pub attached: u64,
    /// Opened files, by class and lifetime: by a hook's servers for writing, and of those that a
    /// daemon's policy has a rule for, by anyone.
    pub opens: Vec<Counted>,
    /// Calls that the kernel refused, by errno.
    pub refused: Vec<(i32, u64)>,
    /// The servers that should carry the hook; of a daemon none.
    pub servers: Vec<ServerStatus>,
    /// What a daemon says of its folders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watching: Option<Watching>,
    /// What a recorder that goes on says of its folders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<Recording>,
}

/// Looks at a run.
///
/// # Errors
///
/// [`crate::Error::Control`] if its page cannot be used.
pub fn status(run: &Run) -> Result<RunStatus, crate::Error> {
    let (page, counters) = run.look()?;
    let state = page.state();
    let mut name = [0; 64];
    let policy = page.policy_name(state, &mut name);
    let mut opens = Vec::new();
    for class in Class::ALL {
        let columns = Lifetime::ALL.map(|l| (l.raw() as usize, Some(l.name())));
        for (column, lifetime) in columns.into_iter().chain([(COLUMN_NO_RULE, None)]) {
            let count = counters.opens(*class, column);
            if count > 0 {
                opens.push(Counted { class: class.name(), lifetime, opens: count });
            }
        }
    }
    let servers = match run.kind() {
        Kind::Hook => data_folders_of(run, &page).iter().map(|f| server(run, f)).collect(),
        Kind::Watch => Vec::new(),
    };
    Ok(RunStatus {
        name: run.name().to_owned(),
        kind: run.kind(),
        on: state.is_on(),
        dry_run: state.is_dry_run(),
        generation: state.generation(),
        policy: policy.map(|p| String::from_utf8_lossy(p).into_owned()),
        command: run.summary().command.clone(),
        started: run.summary().started,
        attached: match run.liveness() {
            // this look is one of them
            Liveness::Attached(n) => n.saturating_sub(1),
            _ => 0,
        },
        opens,
        refused: counters.refused().collect(),
        servers,
        watching: watching(run)?,
        recording: recording(run)?,
    })
}

/// Of the processes of servers that runs of `registry` started: how many carry the hook, and how many
/// there are. `None` if there is no such run, or it may not be looked at.
pub fn hook_share(registry: &Registry) -> Option<(usize, usize)> {
    let hooks = registry.runs().ok()?.into_iter().flatten().filter(|r| r.kind() == Kind::Hook);
    let servers: Vec<ServerStatus> =
        hooks.filter_map(|run| status(&run).ok()).flat_map(|status| status.servers).collect();
    let postmasters = servers.iter().filter_map(|server| server.postmaster.as_ref());
    let (mut with, mut all) = (0, 0);
    for postmaster in postmasters {
        with += usize::from(postmaster.carries == Carries::Yes);
        all += 1;
    }
    with += servers.iter().map(|server| server.children_with_hook).sum::<usize>();
    all += servers.iter().map(|server| server.children).sum::<usize>();
    (!servers.is_empty()).then_some((with, all))
}

/// Whether a server runs in one of the run's data folders that was started after the run was, be
/// it under the hook or not.
pub(crate) fn has_started_a_server(run: &Run) -> bool {
    let summary = run.summary();
    let mut postmasters = summary.roots.iter().filter_map(|folder| postmaster_of(folder));
    postmasters.any(|pid| start_time(pid).is_some_and(|at| at >= summary.pid_start))
}

fn postmaster_of(folder: &Path) -> Option<u32> {
    let text = shelflife_sweep::read_small(&folder.join("postmaster.pid")).ok()?;
    let pid = text.lines().next()?.trim().parse().ok()?;
    works_in(pid, folder).then_some(pid)
}

fn server(run: &Run, folder: &Path) -> ServerStatus {
    let Some(pid) = postmaster_of(folder) else {
        return ServerStatus {
            folder: folder.to_owned(),
            postmaster: None,
            children_with_hook: 0,
            children: 0,
        };
    };
    let children: Vec<u32> = processes()
        .filter(|child| parent(*child) == Some(pid) && works_in(*child, folder))
        .collect();
    let with_hook = children.iter().filter(|c| carries(run, folder, **c) == Carries::Yes).count();
    ServerStatus {
        folder: folder.to_owned(),
        postmaster: Some(Process { pid, carries: carries(run, folder, pid) }),
        children_with_hook: with_hook,
        children: children.len(),
    }
}

/// The processes in which the run's page is mapped, as far as this user may look.
pub(crate) fn attached_processes(run: &Run) -> Vec<u32> {
    let id = run.page_segment().0;
    let me = std::process::id();
    processes().filter(|pid| *pid != me && maps_segment(*pid, id) == Some(true)).collect()
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn works_in(pid: u32, folder: &Path) -> bool {
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == folder)
}

fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|l| l.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Whether segment `id` is mapped in a process; `None` if this user may not look.
fn maps_segment(pid: u32, id: i32) -> Option<bool> {
    let maps = fs::read(format!("/proc/{pid}/maps")).ok()?;
    let inode = id.to_string();
    Some(String::from_utf8_lossy(&maps).lines().any(|line| {
        // address perms offset dev inode path
        let mut fields = line.split_whitespace().skip(4);
        fields.next() == Some(&inode) && fields.next().is_some_and(|p| p.starts_with("/SYSV"))
    }))
}

fn carries(run: &Run, folder: &Path, pid: u32) -> Carries {
    match maps_segment(pid, run.page_segment().0) {
        Some(true) => Carries::Yes,
        Some(false) => Carries::No(why_not(run, folder, pid)),
        None => Carries::Unknown(format!("process {pid} belongs to another user; look as root")),
    }
}

/// Why a process does not carry the hook: each cause from evidence in `/proc`.
fn why_not(run: &Run, folder: &Path, pid: u32) -> String {
    let proc = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let maps = proc("maps");
    if contains(&maps, hook::NAME.as_bytes()) {
        return "the hook is loaded, but for another run or for one that was gone when it started; \
                start the server anew under `shelflife run`"
            .to_owned();
    }
    if !contains(&maps, b"/ld-") && !contains(&maps, b"libc.so") {
        return "the program is statically linked: no library can be preloaded; \
                use `shelflife apply`"
            .to_owned();
    }
    if secure(&proc("auxv")) {
        return "the loader ignored LD_PRELOAD: the program gained rights when it started \
                (setuid, setgid or file capabilities)"
            .to_owned();
    }
    if contains(&proc("environ"), hook::NAME.as_bytes()) {
        let hidden = crate::hidden_from_others(&run.summary().hook);
        return match hidden {
            Some(place) => format!(
                "LD_PRELOAD names the hook, but the server's user cannot read it: {} is closed to \
                 others",
                place.display()
            ),
            None => "LD_PRELOAD names the hook, but the loader left it out (another architecture, \
                     or a hook that was removed)"
                .to_owned(),
        };
    }
    match debian_environment(folder, &proc("cmdline")) {
        Some(file) => format!(
            "Debian's pg_ctlcluster replaced the environment; put these lines into {} and restart \
             the cluster:\nLD_PRELOAD = '{}'\n{} = '{}'",
            file.display(),
            run.summary().hook.display(),
            shelflife_control::RUN_VARIABLE,
            run.dir().display()
        ),
        None => "it was started without the run's environment (by another command, or through one \
                 that clears it, such as sudo or systemctl)"
            .to_owned(),
    }
}

/// The `environment` file of the Debian cluster that a postmaster's command line names.
fn debian_environment(folder: &Path, cmdline: &[u8]) -> Option<PathBuf> {
    let cmdline = String::from_utf8_lossy(cmdline);
    let conf = cmdline.split('\0').find_map(|arg| arg.strip_prefix("config_file="))?;
    let dir = Path::new(conf).parent()?;
    let debian = dir.starts_with("/etc/postgresql") && folder.join("PG_VERSION").exists();
    debian.then(|| dir.join("environment"))
}

/// Whether `AT_SECURE` (23) is set in an auxiliary vector.
fn secure(auxv: &[u8]) -> bool {
    const AT_SECURE: u64 = 23;
    let (words, _) = auxv.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|w| u64::from_ne_bytes(*w)).collect();
    words.as_chunks::<2>().0.iter().any(|[key, value]| *key == AT_SECURE && *value != 0)
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|w| w == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_auxiliary_vector_is_read() {
        let vector = |value: u64| {
            [6u64, 4096, 23, value, 0, 0].iter().flat_map(|w| w.to_ne_bytes()).collect::<Vec<_>>()
        };
        assert!(secure(&vector(1)));
        assert!(!secure(&vector(0)));
        assert!(!secure(b"short"));
    }

    #[test]
    fn a_debian_cluster_is_known_by_its_configuration() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("PG_VERSION"), "15\n").expect("a file");
        let cmdline =
            b"postgres\0-D\0/x\0-c\0config_file=/etc/postgresql/15/main/postgresql.conf\0";
        assert_eq!(
            debian_environment(dir.path(), cmdline),
            Some(PathBuf::from("/etc/postgresql/15/main/environment"))
        );
        assert_eq!(debian_environment(dir.path(), b"postgres\0-D\0/x\0"), None);
    }
}
