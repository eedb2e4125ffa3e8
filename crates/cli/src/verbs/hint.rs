//! `hint get|set|clear`.

use serde_json::json;
use shelflife_lifetime::Lifetime;
use shelflife_report::{Table, in_full, plain};
use shelflife_sweep::{Action, raw};

use crate::args::{HintAction, HintArgs};
use crate::done::{Done, Failure, NOT_HERE, USE};

pub fn run(args: &HintArgs) -> Result<Done, Failure> {
    let (action, paths) = match &args.action {
        HintAction::Get(paths) => (Action::Get, paths),
        HintAction::Set { lifetime, paths } => (Action::Set(*lifetime), paths),
        HintAction::Clear(paths) => (Action::Set(Lifetime::NotSet), paths),
    };
    let mut answers = Vec::new();
    for path in &paths.paths {
        raw(action, path, paths.recursive, |answer| answers.push(answer));
    }
    // One code for all: what is worst, a refusal before a path that is not there.
    let code = answers
        .iter()
        .filter_map(|a| a.hint.as_ref().err())
        .fold(0, |code, error| code.max(if error.is_refusal() { NOT_HERE } else { USE }));
    if paths.json {
        let rows: Vec<_> = answers
            .iter()
            .map(|a| match &a.hint {
                Ok(hint) => json!({"path": a.path.to_string_lossy(), "hint": hint.name()}),
                Err(e) => json!({"path": a.path.to_string_lossy(), "error": in_full(e)}),
            })
            .collect();
        return Ok(Done::json(&rows)?.with_code(code));
    }
    let mut table = Table::new(["hint", "path"]);
    let mut notes = String::new();
    for answer in &answers {
        let path = answer.path.to_string_lossy();
        match &answer.hint {
            Ok(hint) => {
                table.row([hint.to_string(), plain(&path).into_owned()]);
            }
            Err(e) => notes += &format!("shelflife: {}: {}\n", plain(&path), in_full(e)),
        }
    }
    let text = if table.is_empty() { String::new() } else { format!("{table}\n") };
    Ok(Done { text, notes, code })
}
