//! `policy list|show|check|explain`.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde_json::json;
use shelflife_policy::{Explanation, Policy, check_text, shipped};
use shelflife_report::{Table, plain};
use shelflife_run::{load_policy, policy_text};

use crate::args::{PolicyAction, PolicyArgs};
use crate::done::{Done, Failure, NO};

pub fn run(args: &PolicyArgs) -> Result<Done, Failure> {
    match &args.action {
        PolicyAction::List { json } => list(*json),
        PolicyAction::Show { policy, source, json } => show(policy, *source, *json),
        PolicyAction::Check { policies, json } => check(policies, *json),
        PolicyAction::Explain { policy, pgdata, paths, json } => {
            explain(policy, pgdata.as_deref(), paths, *json)
        }
    }
}

fn list(json: bool) -> Result<Done, Failure> {
    let mut policies = Vec::new();
    for (name, text) in shipped() {
        policies.push(Policy::parse(text, name)?);
    }
    if json {
        return Done::json(&policies);
    }
    let mut table = Table::new(["policy", "layout", "what it does"]);
    for policy in &policies {
        let what = policy.description().unwrap_or_default();
        table.row([policy.name(), policy.layout().name(), what].map(str::to_owned));
    }
    Ok(Done::text(format!("{table}\n")))
}

fn show(name: &str, source: bool, json: bool) -> Result<Done, Failure> {
    let (text, origin) = policy_text(name)?;
    let policy = Policy::parse(&text, &origin)?;
    if source {
        return Ok(Done::text(String::from_utf8_lossy(&text)));
    }
    if json {
        let classes: Vec<Explanation> = policy.by_class().collect();
        return Done::json(&json!({"policy": policy, "classes": classes}));
    }
    let mut out = policy.name().to_owned();
    if let Some(description) = policy.description() {
        out += &format!(": {description}");
    }
    let applier = policy.applier().map(|applier| format!(", for {}", applier.name()));
    out +=
        &format!("\nlayout {}{}, from {origin}\n\n", policy.layout(), applier.unwrap_or_default());
    let mut rules = Table::new(["rule", "line", "matches", "lifetime"]).right([0, 1]);
    for rule in policy.rules() {
        rules.row([
            rule.number.to_string(),
            rule.place.line.to_string(),
            rule.matcher.to_string(),
            rule.lifetime.to_string(),
        ]);
    }
    if let Some(default) = policy.default_lifetime() {
        let line = default.place.line.to_string();
        rules.row([String::new(), line, "every other class".into(), default.value.to_string()]);
    }
    out += &format!("{rules}\n");
    let mut classes = Table::new(["class", "lifetime", "why"]);
    for it in policy.by_class() {
        classes.row([it.class.to_string(), lifetime(&it), it.reason]);
    }
    if !classes.is_empty() {
        out += &format!("\n{classes}\n");
    }
    Ok(Done::text(out))
}

fn lifetime(explanation: &Explanation) -> String {
    explanation.lifetime.map_or_else(|| "-".to_owned(), |l| l.to_string())
}

fn check(names: &[String], json: bool) -> Result<Done, Failure> {
    let (mut out, mut all, mut fails) = (String::new(), Vec::new(), false);
    for name in names {
        let (text, origin) = policy_text(name)?;
        let findings = check_text(&text, &origin);
        fails |= findings.iter().any(|f| f.fails());
        if !findings.iter().any(|f| f.fails()) {
            out += &format!("{origin}: good\n");
        }
        for f in &findings {
            let (severity, lint) = (f.severity, f.lint.name());
            out += &format!(
                "{origin}:{}:{}: {severity}[{lint}]: {}\n",
                f.place.line, f.place.column, f.text
            );
        }
        all.push(json!({"policy": origin, "findings": findings}));
    }
    let done = if json { Done::json(&all)? } else { Done::text(out) };
    Ok(done.with_code(if fails { NO } else { 0 }))
}

fn explain(
    name: &str,
    pgdata: Option<&Path>,
    paths: &[PathBuf],
    json: bool,
) -> Result<Done, Failure> {
    let policy = load_policy(name)?;
    let given = match pgdata {
        Some(dir) => Some(shelflife_sweep::Territory::data_folder(dir)?),
        None => None,
    };
    let mut table = Table::new(["lifetime", "class", "path", "why"]);
    let mut rows = Vec::new();
    for path in paths {
        let found = match &given {
            Some(territory) => Some(territory.clone()),
            None => shelflife_sweep::Territory::around(path),
        };
        // A path by which the server does not call it (through the link of a tablespace or of
        // pg_wal) is turned into one by which it does.
        let called = found.as_ref().and_then(|t| {
            let real = path.canonicalize().ok()?;
            let inside = t.inside(real.as_os_str().as_bytes())?;
            Some([t.base().as_os_str().as_bytes(), b"/", &inside].concat())
        });
        let data = found.as_ref().map(|t| t.base().as_os_str().as_bytes());
        let bytes = called.as_deref().unwrap_or(path.as_os_str().as_bytes());
        let it = policy.explain_path(bytes, data);
        table.row([
            lifetime(&it),
            it.class.to_string(),
            plain(&path.to_string_lossy()).into_owned(),
            it.reason.clone(),
        ]);
        rows.push(json!({"path": path.to_string_lossy(), "explanation": it}));
    }
    if json { Done::json(&rows) } else { Ok(Done::text(format!("{table}\n"))) }
}
