//! `status`: runs, counters, and whether the hook is really there.

use serde_json::json;
use shelflife_control::{Kind, Registry};
use shelflife_report::{Table, bytes, count, figure, plain};
use shelflife_run::{
    Carries, RecordedFolder, RunStatus, ServerStatus, WatchedFolder, collect, conflicts, status,
};

use crate::args::StatusArgs;
use crate::done::{Done, Failure, NO};

pub fn run(args: &StatusArgs) -> Result<Done, Failure> {
    let registry = Registry::from_environment()?;
    let runs = match &args.run {
        Some(name) => vec![Ok(registry.run(name)?)],
        None => {
            collect(&registry)?;
            registry.runs()?
        }
    };
    let (mut out, mut notes, mut code) = (String::new(), String::new(), 0);
    let mut values = Vec::new();
    for run in runs {
        match run.map_err(shelflife_run::Error::from).and_then(|run| status(&run)) {
            Ok(status) => {
                if !carried(&status) {
                    code = NO;
                }
                if !out.is_empty() {
                    out.push('\n');
                }
                out += &in_words(&status);
                values.push(json!(status));
            }
            Err(error) if args.run.is_some() => return Err(error.into()),
            Err(error) => {
                code = NO;
                notes += &format!("shelflife: {:#}\n", anyhow::Error::from(error));
            }
        }
    }
    for conflict in conflicts(&registry)? {
        code = NO;
        notes += &format!("shelflife: {}\n", plain(&conflict.to_string()));
    }
    if values.is_empty() && notes.is_empty() {
        code = NO;
        out = format!(
            "no runs in {}; start one with `shelflife run -- CMD` or `shelflife watch DIR`\n",
            registry.dir().display()
        );
    }
    if args.json {
        return Ok(Done { notes, ..Done::json(&values)? }.with_code(code));
    }
    Ok(Done { text: out, notes, code })
}

/// Whether every server of the run that is up carries the hook.
fn carried(status: &RunStatus) -> bool {
    let servers = status.servers.iter().filter_map(|s| s.postmaster.as_ref());
    servers.map(|p| &p.carries).all(|c| *c == Carries::Yes)
}

fn in_words(status: &RunStatus) -> String {
    let policy = status.policy.as_deref().unwrap_or("(its copy of the policy is damaged)");
    let state = match (status.on, status.dry_run) {
        (false, _) => format!("off (policy {})", plain(policy)),
        (true, true) => format!("counting only (dry run), policy {}", plain(policy)),
        (true, false) => format!("on, policy {}", plain(policy)),
    };
    let by = match (status.kind, status.attached) {
        (Kind::Hook, n) => format!("{n} processes carry the hook"),
        (Kind::Watch, 0) => "its daemon is gone".to_owned(),
        (Kind::Watch, _) => "by a daemon".to_owned(),
    };
    let mut out = format!(
        "run {}: {state}, generation {}, {by}\n  command: {}\n",
        status.name,
        status.generation,
        plain(&status.command.join(" "))
    );
    for folder in status.watching.iter().flat_map(|w| &w.folders) {
        out += &folder_in_words(folder);
    }
    for server in &status.servers {
        out += &server_in_words(server);
    }
    for folder in status.recording.iter().flat_map(|recording| &recording.folders) {
        out += &recorded_in_words(folder);
    }
    if status.opens.is_empty() {
        out += match status.kind {
            Kind::Hook => "  nothing was opened for writing so far\n",
            Kind::Watch => "  nothing that the policy has a rule for was opened so far\n",
        };
    } else {
        let opened = match status.kind {
            Kind::Hook => "opened for writing",
            Kind::Watch => "opened, made or moved",
        };
        let mut table = Table::new(["  class", "hint", opened]).right([2]);
        for row in &status.opens {
            let hint = row.lifetime.unwrap_or("-").to_owned();
            table.row([format!("  {}", row.class), hint, count(row.opens)]);
        }
        out += &format!("{table}\n");
    }
    for (errno, times) in &status.refused {
        let error = std::io::Error::from_raw_os_error(*errno);
        out += &format!("  refused {} times: {error}\n", count(*times));
    }
    out
}

fn server_in_words(server: &ServerStatus) -> String {
    let folder = server.folder.to_string_lossy();
    let folder = plain(&folder);
    let Some(postmaster) = &server.postmaster else {
        return format!("  {folder}: no server runs there\n");
    };
    match &postmaster.carries {
        Carries::Yes => format!(
            "  {folder}: the postmaster ({}) and {} of its {} children carry the hook\n",
            postmaster.pid, server.children_with_hook, server.children
        ),
        Carries::No(cause) => format!(
            "  {folder}: the postmaster ({}) does NOT carry the hook: {}\n",
            postmaster.pid,
            cause.replace('\n', "\n    ")
        ),
        Carries::Unknown(cause) => format!("  {folder}: {cause}\n"),
    }
}

fn recorded_in_words(folder: &RecordedFolder) -> String {
    let path = folder.folder.to_string_lossy();
    let (all, late) = folder.bytes();
    let share = late as f64 / (all as f64).max(1.0) * 100.0;
    let mut out = format!(
        "  {}: {} of what the policy hints recorded so far, {} of it without the hint ({} %)\n",
        plain(&path),
        bytes(all),
        bytes(late),
        figure(share)
    );
    for class in folder.classes.iter().filter(|class| class.late_bytes > 0) {
        out += &format!(
            "    {}: {} of {} without {}\n",
            plain(&class.class),
            bytes(class.late_bytes),
            bytes(class.bytes),
            plain(&class.lifetime)
        );
    }
    out
}

fn folder_in_words(folder: &WatchedFolder) -> String {
    let path = folder.folder.to_string_lossy();
    let path = plain(&path);
    if !folder.present {
        return format!("  {path}: gone; it is watched again when it is back\n");
    }
    let marks = match folder.mode.as_str() {
        "filesystem" => "file systems",
        _ => "folders",
    };
    let mut out = format!(
        "  {path}: by marks on {marks}; {} files in {} folders below {} roots{}\n",
        count(folder.files),
        count(folder.folders),
        folder.roots.len(),
        if folder.swept { "" } else { "; the first sweep goes on" }
    );
    let given: u64 = folder.hints.iter().map(|h| h.hints).sum();
    out += &format!(
        "    {} hints given ({} by sweeps, {} to files that had lost theirs), {} cleared; {} sweeps, \
         {} overflows\n",
        count(given),
        count(folder.by_sweeps),
        count(folder.again),
        count(folder.cleared),
        count(folder.sweeps),
        count(folder.overflows)
    );
    if let Some(relations) = &folder.relations {
        out += &format!(
            "    {} relations known, {} not yet, by {} readings of the catalogs as {}\n",
            count(relations.known),
            count(relations.unknown),
            count(relations.readings),
            plain(&relations.role)
        );
        if let Some(failure) = &relations.failure {
            out += &format!("    catalogs not read: {}\n", plain(failure));
        }
    }
    if folder.unwatched > 0 {
        out += &format!(
            "    {} folders could not be watched (sysctl fs.fanotify.max_user_marks)\n",
            count(folder.unwatched)
        );
    }
    if folder.foreign + folder.elsewhere > 0 {
        out += &format!(
            "    left alone: {} of other owners, {} behind links or mounts\n",
            count(folder.foreign),
            count(folder.elsewhere)
        );
    }
    for refused in &folder.refused {
        let error = std::io::Error::from_raw_os_error(refused.errno);
        out += &format!("    refused {} times: {error}\n", count(refused.times));
    }
    out
}
