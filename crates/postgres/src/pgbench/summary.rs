//! The summary that pgbench prints at its end, in the forms of versions 13 to 19 (`printResults` in
//! `src/bin/pgbench/pgbench.c`).
//!
//! Invariant: a summary without rate or count is an error; lines that a future version adds are passed over.

use serde::Deserialize;
use serde::Serialize;

use crate::error::Error;
use crate::error::Result;

/// Everything that pgbench prints. What a version or a load does not print is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The script's name, or `multiple scripts`.
    pub transaction_type: String,
    /// The scale of the tables; 1 for foreign scripts.
    pub scale: Option<u64>,
    /// `range` or `hash`, if `pgbench_accounts` is partitioned.
    pub partition_method: Option<String>,
    /// How many partitions.
    pub partitions: Option<u64>,
    /// `simple`, `extended` or `prepared`.
    pub query_mode: Option<String>,
    /// Connections.
    pub clients: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
    /// How often a transaction is tried (15 and newer).
    pub max_tries: Option<u64>,
    /// Length in s, if it was limited by time.
    pub duration_s: Option<u64>,
    /// Length in transactions of each client, if it was limited so.
    pub transactions_per_client: Option<u64>,
    /// Transactions done.
    pub transactions: u64,
    /// Transactions that failed for good (15 and newer).
    pub failed: Option<u64>,
    /// Of these, by a serialization failure (`--failures-detailed`).
    pub serialization_failures: Option<u64>,
    /// Of these, by a deadlock.
    pub deadlock_failures: Option<u64>,
    /// Of these, by another error (19, `--continue-on-error`).
    pub other_failures: Option<u64>,
    /// Transactions that were tried again.
    pub retried: Option<u64>,
    /// How often in all.
    pub retries: Option<u64>,
    /// Transactions never started, because they were late already.
    pub skipped: Option<u64>,
    /// Transactions above the limit of `--latency-limit`.
    pub late: Option<u64>,
    /// Mean latency in ms.
    pub latency_average_ms: Option<f64>,
    /// Standard deviation of the latency in ms.
    pub latency_stddev_ms: Option<f64>,
    /// Mean delay of the start against the plan of `--rate`, in ms.
    pub schedule_lag_average_ms: Option<f64>,
    /// Longest such delay in ms.
    pub schedule_lag_max_ms: Option<f64>,
    /// Time to connect all clients in ms (14 and newer).
    pub initial_connection_ms: Option<f64>,
    /// Mean time of one of the connections made per transaction (`--connect`, 14 and newer), in ms.
    pub average_connection_ms: Option<f64>,
    /// Transactions per second, without the time to connect; with `--connect` it is included.
    pub tps: f64,
    /// Transactions per second with the time to connect (13 only).
    pub tps_with_connecting: Option<f64>,
    /// One for each script, if there are several.
    pub scripts: Vec<ScriptSummary>,
}

/// The part of one script.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptSummary {
    /// The script's name.
    pub name: String,
    /// Its weight.
    pub weight: Option<u64>,
    /// Its transactions. Since 15 skipped and failed ones are counted in.
    pub transactions: Option<u64>,
    /// Its successful transactions (17 and newer).
    pub processed: Option<u64>,
    /// Its transactions per second.
    pub tps: Option<f64>,
    /// Its failed transactions (15 and newer).
    pub failed: Option<u64>,
    /// Of these, by a serialization failure.
    pub serialization_failures: Option<u64>,
    /// Of these, by a deadlock.
    pub deadlock_failures: Option<u64>,
    /// Of these, by another error.
    pub other_failures: Option<u64>,
    /// Its transactions that were tried again.
    pub retried: Option<u64>,
    /// How often in all.
    pub retries: Option<u64>,
    /// Its transactions never started.
    pub skipped: Option<u64>,
    /// Mean latency in ms.
    pub latency_average_ms: Option<f64>,
    /// Standard deviation of the latency in ms.
    pub latency_stddev_ms: Option<f64>,
}

impl Summary {
    /// Reads pgbench's standard output.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if a known line holds no number, or rate or count is missing.
    pub fn parse(text: &str) -> Result<Self> {
        let mut summary = Summary::default();
        let (mut tps, mut transactions) = (None, None);
        for line in text.lines() {
            let line = line.trim_end();
            let read = if let Some(name) = line.strip_prefix("SQL script ") {
                let name = name.split_once(": ").map_or("", |(_, name)| name);
                let name = name.to_owned();
                summary.scripts.push(ScriptSummary { name, ..ScriptSummary::default() });
                Some(())
            } else if let Some(script) = summary.scripts.last_mut() {
                line.strip_prefix(" - ").map_or(Some(()), |line| script.take(line))
            } else {
                summary.take(line, &mut tps, &mut transactions)
            };
            if read.is_none() {
                return Err(unreadable("a number is missing", line));
            }
        }
        summary.transactions = transactions.ok_or_else(|| {
            unreadable("no line \"number of transactions actually processed\"", "")
        })?;
        summary.tps = tps.ok_or_else(|| unreadable("no line \"tps\"", ""))?;
        Ok(summary)
    }

    /// Takes one line; `None` if it is known but holds no number.
    fn take(
        &mut self,
        line: &str,
        tps: &mut Option<f64>,
        transactions: &mut Option<u64>,
    ) -> Option<()> {
        if let Some(rest) = line.strip_prefix("tps = ") {
            let value = Some(first(rest)?);
            if rest.contains("including connections establishing") {
                self.tps_with_connecting = value;
            } else {
                *tps = value;
            }
            return Some(());
        }
        if let Some(lag) = line.strip_prefix("rate limit schedule lag: avg ") {
            self.schedule_lag_average_ms = Some(first(lag)?);
            self.schedule_lag_max_ms = Some(first(lag.split_once("(max ")?.1)?);
            return Some(());
        }
        if line.starts_with("number of transactions above the ") {
            self.late = Some(first(line.split_once(": ")?.1)?);
            return Some(());
        }
        if let Some((name, value)) = line.split_once(" = ") {
            let field = match name {
                "latency average" => &mut self.latency_average_ms,
                "latency stddev" => &mut self.latency_stddev_ms,
                "initial connection time" => &mut self.initial_connection_ms,
                "average connection time" => &mut self.average_connection_ms,
                _ => return Some(()),
            };
            *field = Some(first(value)?);
            return Some(());
        }
        let Some((name, value)) = line.split_once(": ") else { return Some(()) };
        let field = match name {
            "transaction type" => {
                value.clone_into(&mut self.transaction_type);
                return Some(());
            }
            "query mode" => {
                self.query_mode = Some(value.to_owned());
                return Some(());
            }
            "partition method" => {
                self.partition_method = Some(value.to_owned());
                return Some(());
            }
            "scaling factor" => &mut self.scale,
            "partitions" => &mut self.partitions,
            "number of clients" => &mut self.clients,
            "number of threads" => &mut self.threads,
            "maximum number of tries" => &mut self.max_tries,
            "duration" => &mut self.duration_s,
            "number of transactions per client" => &mut self.transactions_per_client,
            "number of transactions actually processed" => transactions,
            "number of failed transactions" => &mut self.failed,
            "number of serialization failures" => &mut self.serialization_failures,
            "number of deadlock failures" => &mut self.deadlock_failures,
            "number of other failures" => &mut self.other_failures,
            "number of transactions retried" => &mut self.retried,
            "total number of retries" => &mut self.retries,
            "number of transactions skipped" => &mut self.skipped,
            _ => return Some(()),
        };
        *field = Some(first(value)?);
        Some(())
    }
}

impl ScriptSummary {
    /// Takes one line without its ` - `; `None` if it is known but holds no number.
    fn take(&mut self, line: &str) -> Option<()> {
        if let Some((name, value)) = line.split_once(" = ") {
            let field = match name {
                "latency average" => &mut self.latency_average_ms,
                "latency stddev" => &mut self.latency_stddev_ms,
                // `1021 transactions (51.0% of total, tps = 29.987142)`, up to 16.
                _ if name.contains(" transactions (") => {
                    self.transactions = Some(first(name)?);
                    &mut self.tps
                }
                // `number of transactions actually processed: 7 (tps = 3.5)`, since 17.
                _ if name.starts_with("number of transactions actually processed: ") => {
                    self.processed = Some(first(name.split_once(": ")?.1)?);
                    &mut self.tps
                }
                _ => return Some(()),
            };
            *field = Some(first(value)?);
            return Some(());
        }
        if line.contains(" transactions (") && line.starts_with(|c: char| c.is_ascii_digit()) {
            self.transactions = Some(first(line)?);
            return Some(());
        }
        let Some((name, value)) = line.split_once(": ") else { return Some(()) };
        let field = match name {
            "weight" => &mut self.weight,
            "number of failed transactions" => &mut self.failed,
            "number of serialization failures" => &mut self.serialization_failures,
            "number of deadlock failures" => &mut self.deadlock_failures,
            "number of other failures" => &mut self.other_failures,
            "number of transactions retried" => &mut self.retried,
            "total number of retries" => &mut self.retries,
            "number of transactions skipped" => &mut self.skipped,
            _ => return Some(()),
        };
        *field = Some(first(value)?);
        Some(())
    }
}

/// The number at the beginning of `text`; what follows it (unit, `/total`, `(share)`) is left out.
fn first<T: std::str::FromStr>(text: &str) -> Option<T> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-');
    text[..end.unwrap_or(text.len())].parse().ok()
}

fn unreadable(why: &'static str, line: &str) -> Error {
    Error::Unreadable { source_name: "pgbench's summary".to_owned(), why, line: line.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V13: &str = include_str!("fixtures/13.txt");
    const V14: &str = include_str!("fixtures/14-connect.txt");
    const V15: &str = include_str!("fixtures/15-rate.txt");
    const V16: &str = include_str!("fixtures/16-scripts.txt");
    const V17: &str = include_str!("fixtures/17-scripts.txt");
    const V18: &str = include_str!("fixtures/18.txt");
    const V19: &str = include_str!("fixtures/19-failures.txt");

    #[test]
    fn version_13_has_two_rates() {
        let found = Summary::parse(V13).unwrap();
        assert_eq!(
            found,
            Summary {
                transaction_type: "<builtin: TPC-B (sort of)>".into(),
                scale: Some(1),
                query_mode: Some("simple".into()),
                clients: Some(10),
                threads: Some(1),
                transactions_per_client: Some(1000),
                transactions: 10_000,
                latency_average_ms: Some(19.021),
                tps: 525.914_967,
                tps_with_connecting: Some(525.746_350),
                ..Summary::default()
            }
        );
    }

    #[test]
    fn version_14_with_a_connection_for_each_transaction() {
        let found = Summary::parse(V14).unwrap();
        assert_eq!((found.duration_s, found.transactions), (Some(60), 18_721));
        assert_eq!(found.latency_stddev_ms, Some(162.084));
        assert_eq!((found.average_connection_ms, found.initial_connection_ms), (Some(4.017), None));
        assert_eq!((found.tps, found.tps_with_connecting), (311.634_317, None));
        assert_eq!(found.failed, None);
    }

    #[test]
    fn version_15_with_rate_limit_and_tries() {
        let found = Summary::parse(V15).unwrap();
        assert_eq!((found.max_tries, found.failed), (Some(3), Some(1)));
        assert_eq!((found.retried, found.retries), (Some(4), Some(6)));
        assert_eq!((found.skipped, found.late), (Some(12), Some(7)));
        assert_eq!(found.schedule_lag_average_ms, Some(1.203));
        assert_eq!(found.schedule_lag_max_ms, Some(31.4));
        assert_eq!((found.partition_method.as_deref(), found.partitions), (Some("hash"), Some(4)));
        assert_eq!(found.initial_connection_ms, Some(5.120));
    }

    #[test]
    fn scripts_in_the_form_up_to_16_and_since_17() {
        let old = Summary::parse(V16).unwrap();
        assert_eq!(old.scripts.len(), 2);
        let script = &old.scripts[1];
        assert_eq!((script.name.as_str(), script.weight), ("mysql.sql", Some(1)));
        assert_eq!((script.transactions, script.processed), (Some(1021), None));
        assert_eq!((script.tps, script.failed), (Some(29.987_142), Some(0)));
        assert_eq!(script.latency_average_ms, Some(162.888));
        assert_eq!(old.latency_average_ms, Some(340.479), "not overwritten by a script's");
        assert_eq!(old.scripts[0].name, "", "a script may have no name");

        let new = Summary::parse(V17).unwrap();
        let script = &new.scripts[0];
        assert_eq!(script.name, "<builtin: simple update>");
        assert_eq!((script.transactions, script.processed), (Some(1500), Some(1499)));
        assert_eq!((script.tps, script.failed), (Some(749.5), Some(1)));
        assert_eq!(new.scripts[1].latency_stddev_ms, Some(0.5));
    }

    #[test]
    fn version_18_and_19() {
        let found = Summary::parse(V18).unwrap();
        assert_eq!((found.transactions, found.failed), (259_088, Some(0)));
        assert_eq!(found.tps, 4_318.365_445);
        let found = Summary::parse(V19).unwrap();
        assert_eq!(found.serialization_failures, Some(1));
        assert_eq!((found.deadlock_failures, found.other_failures), (Some(2), Some(3)));
        assert_eq!(found.latency_average_ms, Some(1.5), "(including failures) is no trouble");
    }

    #[test]
    fn what_is_missing_is_told() {
        let without = |word: &str| {
            let kept: Vec<&str> = V18.lines().filter(|line| !line.contains(word)).collect();
            Summary::parse(&kept.join("\n")).unwrap_err().to_string()
        };
        assert!(without("tps = ").contains("no line \"tps\""));
        assert!(without("actually processed").contains("actually processed"));
        let torn = V18.replace("tps = 4318.365445", "tps = nan");
        assert!(Summary::parse(&torn).unwrap_err().to_string().contains("tps = nan"));
        Summary::parse("").unwrap_err();
    }

    #[test]
    fn a_summary_survives_json() {
        let found = Summary::parse(V17).unwrap();
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), found);
    }
}
