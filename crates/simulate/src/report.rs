//! What was found. All of it is *simulated*.
//!
//! Invariant: rows stand in the order of the request: drives within hints.

use serde::Serialize;
use serde_json::{Value, json};
use shelflife_ssd::{Outcome, Transport};

/// The results of a request.
#[derive(Clone, Debug)]
pub struct Report {
    /// The workload as given, or the trace's folder.
    pub workload: String,
    /// What one should know of the trace.
    pub notes: Vec<String>,
    /// One per combination.
    pub rows: Vec<Row>,
}

/// One combination of hints and drive.
#[derive(Clone, Debug)]
pub struct Row {
    /// `off`, `recorded` or the policy; of a synthetic workload its hints.
    pub policy: String,
    /// The drive's name.
    pub drive: String,
    /// By class of file, or of the synthetic workload.
    pub per_class: Vec<ClassShare>,
    /// What the simulator found.
    pub outcome: Outcome,
}

/// What one class wrote in the measured part, and how much of its data was copied.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct ClassShare {
    /// Name of the class; `before` is what filled the drive first.
    pub class: String,
    /// Pages the host wrote.
    pub host_pages: u64,
    /// Pages of its data that were copied.
    pub copied_pages: Option<u64>,
}

impl Report {
    /// The combination with the least write amplification, and that with the most.
    pub fn best_and_worst(&self) -> Option<(&Row, &Row)> {
        let by_waf = |a: &&Row, b: &&Row| a.outcome.waf.total_cmp(&b.outcome.waf);
        Some((self.rows.iter().min_by(by_waf)?, self.rows.iter().max_by(by_waf)?))
    }

    /// What must be said beside the figures, in words, each thing once.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = self.notes.clone();
        let mut add = |remark: String| {
            if !remarks.contains(&remark) {
                remarks.push(remark);
            }
        };
        for Row { drive, policy, outcome, .. } in &self.rows {
            outcome.notes.iter().for_each(|note| add(format!("{drive}: {note}")));
            let policies = self.rows.iter().any(|row| row.policy != *policy);
            if outcome.transport == Transport::Unhinted && policies {
                add(format!("{drive}: no hint arrives there, so all policies are alike"));
            }
            let used = outcome.per_stream.iter().filter(|share| share.host_pages > 0).count();
            if outcome.transport != Transport::Unhinted && policy != "off" && used == 1 {
                add(format!(
                    "{drive}: all that {policy} hints goes to one of {} streams, nothing is told \
                     apart (more --streams, or another --transport)",
                    outcome.per_stream.len()
                ));
            }
        }
        if self.rows.iter().any(|row| !row.outcome.steady.reached) {
            add("not steady: WAF still moves; write more (--overwrites, or --repeat for a trace)"
                .to_owned());
        }
        remarks
    }

    /// The report as JSON: fields as `docs/simulate.md` has them.
    ///
    /// # Errors
    ///
    /// None that is known: every number is finite.
    pub fn to_json(&self) -> Result<Value, serde_json::Error> {
        let rows: Result<Vec<Value>, _> = self.rows.iter().map(Row::to_json).collect();
        Ok(json!({
            "source": "simulated", "workload": self.workload, "notes": self.remarks(),
            "results": rows?,
        }))
    }
}

impl Row {
    fn to_json(&self) -> Result<Value, serde_json::Error> {
        let mut value = serde_json::to_value(&self.outcome)?;
        value["policy"] = json!(self.policy);
        value["drive"] = json!(self.drive);
        value["per_class"] = serde_json::to_value(&self.per_class)?;
        Ok(value)
    }
}
