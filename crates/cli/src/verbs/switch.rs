//! `switch off|on|POLICY`.

use std::time::Instant;

use anyhow::anyhow;
use serde_json::json;
use shelflife_control::{Registry, Run};
use shelflife_policy::{Matcher, Policy, Rule};
use shelflife_report::{duration, plain};
use shelflife_run::{To, load_policy, switch};

use crate::args::SwitchArgs;
use crate::done::{Done, Failure, NO, USE};
use crate::progress::SweepProgress;
use crate::verbs::apply::{code_of, in_words};

pub fn run(args: &SwitchArgs) -> Result<Done, Failure> {
    let policy = match args.to.as_str() {
        "off" | "on" => None,
        name => Some(load_policy(name)?),
    };
    let table = policy.as_ref().map(Policy::compile);
    let to = match (&policy, &table) {
        (Some(policy), Some(table)) => To::Policy(table, policy.name()),
        _ if args.to == "on" => To::On,
        _ => To::Off,
    };
    let run = choose(args.run.as_deref())?;
    let begun = Instant::now();
    let mut progress = SweepProgress::new();
    let switched = switch(&run, to, |folder, tally| {
        progress.show(folder, tally);
        true
    })?;
    drop(progress);
    let swept = switched.swept.iter().map(|s| code_of(&s.tally)).max().unwrap_or(0);
    let code = if switched.superseded { NO } else { swept };
    if args.json {
        let value = json!({"run": run.name(), "to": args.to, "switched": switched});
        return Ok(Done::json(&value)?.with_code(code));
    }
    let mut text = format!(
        "run {} is {} (generation {}), in {}\n",
        run.name(),
        match &policy {
            Some(policy) => format!("on with {}", policy.name()),
            None => args.to.clone(),
        },
        switched.generation,
        duration(begun.elapsed())
    );
    if switched.superseded {
        text += "but it was switched again meanwhile: the later switch sweeps\n";
        return Ok(Done::text(text).with_code(code));
    }
    for swept in &switched.swept {
        let folder = swept.folder.to_string_lossy();
        text += &format!("{}: {}\n", plain(&folder), in_words(&swept.tally));
    }
    if switched.dry_run {
        text += "counting only (dry run): files are left as they are\n";
    } else if switched.left_to_daemon {
        text += "the daemon sweeps: it reads catalogs and knows what relations get\n";
        let for_one = |rule: &Rule| matches!(rule.matcher, Matcher::Relation(_));
        if policy.is_some_and(|policy| policy.rules().iter().any(for_one)) {
            text += "rules for one relation count only in the policy that it was started with\n";
        }
    } else if switched.swept.is_empty() {
        text += "no data folder to sweep: files opened from now on follow, others do not\n";
    }
    Ok(Done::text(text).with_code(code))
}

/// The run that is meant: the one that is named, or the only one there is.
fn choose(name: Option<&str>) -> Result<Run, Failure> {
    let registry = Registry::from_environment()?;
    if let Some(name) = name {
        return Ok(registry.run(name)?);
    }
    shelflife_run::collect(&registry)?;
    let mut runs: Vec<Run> = registry.runs()?.into_iter().filter_map(Result::ok).collect();
    match (runs.pop(), runs.as_slice()) {
        (Some(run), []) => Ok(run),
        (None, _) => Err(Failure {
            code: NO,
            error: anyhow!(
                "nothing to switch: no run in {}; start one with `shelflife run -- CMD` or \
                 `shelflife watch DIR`",
                registry.dir().display()
            ),
        }),
        (Some(last), others) => {
            let names: Vec<String> = others
                .iter()
                .chain([&last])
                .map(|r| format!("\n  --run {}   {}", r.name(), r.summary().command.join(" ")))
                .collect();
            Err(Failure { code: USE, error: anyhow!("which run? Name one:{}", names.concat()) })
        }
    }
}
