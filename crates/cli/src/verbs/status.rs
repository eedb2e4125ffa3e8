//! `status`: runs, counters, and whether the hook is really there.

use serde_json::json;
use shelflife_control::Registry;
use shelflife_report::{Table, count, plain};
use shelflife_run::{Carries, RunStatus, ServerStatus, collect, status};

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
    if values.is_empty() && notes.is_empty() {
        code = NO;
        out = format!(
            "no runs in {}; start one with `shelflife run -- CMD`\n",
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
    let mut out = format!(
        "run {}: {state}, generation {}, {} processes carry the hook\n  command: {}\n",
        status.name,
        status.generation,
        status.attached,
        plain(&status.command.join(" "))
    );
    for server in &status.servers {
        out += &server_in_words(server);
    }
    if status.opens.is_empty() {
        out += "  nothing was opened for writing so far\n";
    } else {
        let mut table = Table::new(["  class", "hint", "opened for writing"]).right([2]);
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
