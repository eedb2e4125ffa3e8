//! What a trial does, fixed before its first round.
//!
//! Invariant: a [`Spec`] decides everything that the rounds depend on but the machine and the
//! server's version; it is written at the head of the results, and a trial that resumes follows it
//! to the letter. One that was read from a file is checked as one that was asked for.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shelflife_postgres::pgbench::Script;

use crate::arm::{self, Arm};
use crate::error::{Error, Result};
use crate::filesystem::Wanted;
use crate::scenario::Scenario;
use crate::stats::{Metric, Plan};

/// The load of a quick trial, warm-up and ageing included, in seconds.
pub const QUICK_LOAD_S: u64 = 60;

/// The longest script of a load, in bytes.
pub(crate) const MAX_SCRIPT: u64 = 256 << 10;

/// A set of defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Eight blocks of two-minute rounds on a database of 0.75 GB.
    #[default]
    Standard,
    /// At most a minute of load in all: an interval, never a verdict.
    Quick,
    /// What this began with: `pgbench -s 200 -i`, `pgbench -T 600 -c 2 -j 2`, max_wal_size 4 GB.
    Classic,
}

/// What the user asked for; what is `None` or empty is the preset's.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// The defaults.
    pub preset: Preset,
    /// The arms, the first one being the base: `off`, shipped policies, paths of policy files.
    pub policies: Vec<String>,
    /// pgbench's scale.
    pub scale: Option<u32>,
    /// Connections.
    pub clients: Option<u32>,
    /// pgbench's threads.
    pub jobs: Option<u32>,
    /// Length of a round in seconds, without its warm-up.
    pub seconds: Option<u32>,
    /// Blocks: each arm runs once in each.
    pub rounds: Option<usize>,
    /// Transactions per second to be started; makes the mean latency the primary metric.
    pub rate: Option<f64>,
    /// Seed of the order and of pgbench's random numbers; else a random one.
    pub seed: Option<u64>,
    /// Scripts, `FILE` or `FILE@WEIGHT`; else pgbench's `tpcb-like`.
    pub scripts: Vec<String>,
    /// Settings of the server, name and value.
    pub settings: Vec<(String, String)>,
    /// A scenario, as [`Scenario::find`] takes it: its scripts and settings.
    pub scenario: Option<String>,
    /// A file system of its own for the cluster.
    pub filesystem: Option<Wanted>,
}

/// A script of the load, with its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptText {
    /// Its file name, without folder; or the name of one of pgbench's own.
    pub name: String,
    /// Its weight.
    pub weight: u32,
    /// What it does; empty for one of pgbench's own.
    pub text: String,
}

/// How the database is brought to a steady state before the first round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ageing {
    /// Length of one ageing load in seconds.
    pub seconds: u32,
    /// After so many the rounds begin, settled or not (and are marked transient if not).
    pub most_rounds: u32,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Primary {
    /// Transactions per second, without the time to connect.
    Tps,
    /// Mean latency of all transactions in ms, counted from their planned start (`--rate`).
    LatencyMean,
    /// Write amplification by the drive's own counters, over the last half of an epoch.
    Waf,
}

impl Primary {
    /// Whether more of it is better.
    pub fn metric(self) -> Metric {
        match self {
            Primary::Tps => Metric::Throughput,
            Primary::LatencyMean => Metric::Time,
            Primary::Waf => Metric::Amount,
        }
    }

    /// Its name with unit.
    pub fn name(self) -> &'static str {
        match self {
            Primary::Tps => "tps",
            Primary::LatencyMean => "mean latency (ms)",
            Primary::Waf => "write amplification",
        }
    }
}

/// A trial, fixed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Where the defaults came from.
    pub preset: Preset,
    /// The arms; the first is the base.
    pub arms: Vec<Arm>,
    /// The primary metric.
    pub primary: Primary,
    /// pgbench's scale: 100,000 accounts each.
    pub scale: u32,
    /// Connections.
    pub clients: u32,
    /// pgbench's threads.
    pub jobs: u32,
    /// Length of a round in seconds.
    pub seconds: u32,
    /// Length of the warm-up before each round in seconds.
    pub warm_up_s: u32,
    /// Blocks.
    pub blocks: usize,
    /// Transactions per second to be started.
    pub rate: Option<f64>,
    /// Seed of the order and of pgbench's random numbers.
    pub seed: u64,
    /// Scripts; none: `tpcb-like`.
    pub scripts: Vec<ScriptText>,
    /// Settings of the scenario, then those that the user gave; they win over the pinned ones.
    pub settings: Vec<(String, String)>,
    /// The scenario's name with its variant, if the load is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// The classes that the scenario is meant to write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exercises: Vec<String>,
    /// The file system that is made for the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<Wanted>,
    /// What pgbench runs once after loading its tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<ScriptText>,
    /// `max_wal_size` in MB.
    pub max_wal_mb: u32,
    /// `checkpoint_timeout` in s.
    pub checkpoint_timeout_s: u32,
    /// Bringing the database to a steady state.
    pub ageing: Ageing,
    /// Length of the fdatasync probe between blocks in ms.
    pub probe_ms: u32,
}

impl Spec {
    /// What `wishes` come to.
    ///
    /// # Errors
    ///
    /// [`Error::Policy`], [`Error::Layout`], [`Error::Spec`], [`Error::Io`] for a script.
    pub fn new(wishes: &Wishes) -> Result<Spec> {
        let arms = Arm::all(&wishes.policies)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as u32;
        let base = defaults(wishes.preset, arms.len(), cores);
        let seconds = wishes.seconds.unwrap_or(base.seconds);
        let mut scripts: Vec<ScriptText> =
            wishes.scripts.iter().map(|script| read_script(script)).collect::<Result<_>>()?;
        let scenario = wishes.scenario.as_deref().map(Scenario::find).transpose()?;
        let mut settings = wishes.settings.clone();
        let mut setup = None;
        if let Some(scenario) = &scenario {
            if !scripts.is_empty() {
                return Err(Error::Spec("a scenario brings its own scripts: no --script".into()));
            }
            scripts.clone_from(&scenario.scripts);
            settings.splice(0..0, scenario.settings.iter().cloned());
            setup.clone_from(&scenario.setup);
        }
        let filesystem = wishes.filesystem.clone().map(Wanted::sized).transpose()?;
        let primary = match (&filesystem, wishes.rate) {
            (Some(Wanted { device: Some(_), .. }), _) => Primary::Waf,
            (_, Some(_)) => Primary::LatencyMean,
            (_, None) => Primary::Tps,
        };
        let spec = Spec {
            preset: wishes.preset,
            primary,
            scale: wishes.scale.unwrap_or(base.scale),
            clients: wishes.clients.unwrap_or(base.clients),
            jobs: wishes.jobs.or(wishes.clients.map(|c| c.min(cores))).unwrap_or(base.jobs),
            seconds,
            warm_up_s: base.warm_up_s.min(seconds),
            blocks: wishes.rounds.unwrap_or(base.blocks),
            rate: wishes.rate,
            seed: match wishes.seed {
                Some(seed) => seed,
                None => random_seed()?,
            },
            scripts,
            settings,
            exercises: scenario
                .iter()
                .flat_map(|s| &s.exercises)
                .map(ToString::to_string)
                .collect(),
            scenario: scenario.map(|scenario| scenario.name),
            setup,
            filesystem,
            max_wal_mb: base.max_wal_mb,
            checkpoint_timeout_s: base.checkpoint_timeout_s.unwrap_or((seconds / 3).clamp(30, 300)),
            ageing: Ageing { seconds: base.ageing.seconds.min(seconds), ..base.ageing },
            probe_ms: base.probe_ms,
            arms,
        };
        spec.check()?;
        Ok(spec)
    }

    /// That the figures make a trial.
    ///
    /// # Errors
    ///
    /// [`Error::Spec`] and those of the arms.
    pub fn check(&self) -> Result<()> {
        let wrong = |text: String| Err(Error::Spec(text));
        arm::check(&self.arms)?;
        Plan::new(self.arms.len(), self.blocks, self.seed)?;
        for (name, value, most) in [
            ("--scale", u64::from(self.scale), 100_000),
            ("--clients", u64::from(self.clients), 10_000),
            ("--jobs", u64::from(self.jobs), 10_000),
            ("--seconds", u64::from(self.seconds), 86_400),
            ("--rounds", self.blocks as u64, 10_000),
        ] {
            if value == 0 || value > most {
                return wrong(format!("{name} {value}: 1 to {most} make sense"));
            }
        }
        let sane = self.warm_up_s <= 86_400
            && self.ageing.seconds <= 86_400
            && self.ageing.most_rounds <= 1000
            && self.probe_ms <= 60_000;
        if !sane {
            return wrong("warm-up, ageing or probe without measure".to_owned());
        }
        if let Some(filesystem) = &self.filesystem {
            filesystem.check()?;
        }
        if let Some(rate) = self.rate
            && !(rate.is_finite() && (0.01..=1e7).contains(&rate))
        {
            return wrong(format!("--rate {rate}: transactions per second, 0.01 to 10,000,000"));
        }
        let fits = match self.primary {
            Primary::Tps => self.device().is_none() && self.rate.is_none(),
            Primary::LatencyMean => self.device().is_none() && self.rate.is_some(),
            Primary::Waf => self.device().is_some(),
        };
        if !fits {
            return wrong(
                "the primary metric is write amplification exactly with --device, else the mean \
                 latency exactly with --rate"
                    .to_owned(),
            );
        }
        if self.preset == Preset::Quick && self.device().is_some() {
            return wrong("epochs on a device are never quick: no --preset quick".to_owned());
        }
        for script in self.scripts.iter().chain(&self.setup) {
            let path = Path::new(&script.name);
            let plain = path.file_name() == Some(path.as_os_str()) && !script.name.contains('\0');
            if !plain || script.text.len() as u64 > MAX_SCRIPT || script.weight > 1_000_000 {
                return wrong(format!("--script {}: not a script", script.name));
            }
        }
        if self.preset == Preset::Quick && self.load_s() > QUICK_LOAD_S {
            return wrong(format!(
                "a quick trial has at most {QUICK_LOAD_S} s of load, this would be {} s: fewer arms, \
                 --seconds or --rounds, or no --quick",
                self.load_s()
            ));
        }
        Ok(())
    }

    /// The device of the epochs, if the rounds are epochs.
    pub fn device(&self) -> Option<&Path> {
        self.filesystem.as_ref()?.device.as_deref()
    }

    /// Rounds in all.
    pub fn rounds(&self) -> usize {
        self.arms.len() * self.blocks
    }

    /// All the load in seconds: ageing at its longest, warm-ups and rounds.
    pub fn load_s(&self) -> u64 {
        let round = u64::from(self.seconds) + u64::from(self.warm_up_s);
        let ageing = u64::from(self.ageing.seconds) * u64::from(self.ageing.most_rounds);
        (self.rounds() as u64).saturating_mul(round).saturating_add(ageing)
    }

    /// The length of the probe between blocks.
    pub fn probe(&self) -> Duration {
        Duration::from_millis(u64::from(self.probe_ms))
    }

    /// Whether a round can span two whole checkpoints by time: the first begins one timeout after
    /// the checkpoint that precedes a round, the second ends 2.9 timeouts after it.
    pub fn can_span_checkpoints(&self) -> bool {
        u64::from(self.seconds) * 10 >= u64::from(self.checkpoint_timeout_s) * 29
    }

    /// Writes preparation and scripts to where [`Spec::setup_in`] and [`Spec::scripts_in`] have them.
    pub(crate) fn write_scripts(&self, folder: &Path) -> Result<()> {
        if self.scripts.is_empty() && self.setup.is_none() {
            return Ok(());
        }
        fs::create_dir_all(folder).map_err(Error::io("cannot make", folder))?;
        let files = self.setup_in(folder).into_iter().chain(self.scripts_in(folder));
        for (script, source) in files.zip(self.setup.iter().chain(&self.scripts)) {
            if let Script::File(path, _) = &script {
                fs::write(path, &source.text).map_err(Error::io("cannot write", path))?;
            }
        }
        Ok(())
    }

    /// The scenario's preparation as pgbench takes it, a file in `folder`.
    pub(crate) fn setup_in(&self, folder: &Path) -> Option<Script> {
        self.setup.as_ref().map(|setup| Script::File(folder.join(format!("0-{}", setup.name)), 1))
    }

    /// The scripts as pgbench takes them, files in `folder`.
    pub(crate) fn scripts_in(&self, folder: &Path) -> Vec<Script> {
        let numbered = self.scripts.iter().enumerate();
        numbered
            .map(|(at, script)| match script.text.is_empty() {
                true => Script::Builtin(script.name.clone(), script.weight),
                false => {
                    Script::File(folder.join(format!("{}-{}", at + 1, script.name)), script.weight)
                }
            })
            .collect()
    }
}

struct Defaults {
    scale: u32,
    clients: u32,
    jobs: u32,
    seconds: u32,
    warm_up_s: u32,
    blocks: usize,
    max_wal_mb: u32,
    /// `None`: a third of a round, so that it spans two whole checkpoints.
    checkpoint_timeout_s: Option<u32>,
    ageing: Ageing,
    probe_ms: u32,
}

fn defaults(preset: Preset, arms: usize, cores: u32) -> Defaults {
    match preset {
        Preset::Standard => Defaults {
            scale: 50,
            clients: 4 * cores.min(16),
            jobs: cores.min(16),
            seconds: 120,
            warm_up_s: 10,
            blocks: 8,
            max_wal_mb: 4096,
            checkpoint_timeout_s: None,
            ageing: Ageing { seconds: 120, most_rounds: 10 },
            probe_ms: 5000,
        },
        Preset::Classic => Defaults {
            scale: 200,
            clients: 2,
            jobs: 2,
            seconds: 600,
            warm_up_s: 30,
            blocks: 8,
            max_wal_mb: 4096,
            checkpoint_timeout_s: Some(300),
            ageing: Ageing { seconds: 600, most_rounds: 6 },
            probe_ms: 5000,
        },
        Preset::Quick => {
            // Six blocks: every arm stands at every position equally often (for two or three).
            let ageing = Ageing { seconds: 3, most_rounds: 2 };
            let left = QUICK_LOAD_S as usize - 6;
            let blocks = (left / (2 * arms)).clamp(1, 6);
            let seconds = (left / (blocks * arms)).saturating_sub(1).max(1) as u32;
            Defaults {
                scale: 10,
                clients: 2 * cores.min(8),
                jobs: cores.min(8),
                seconds,
                warm_up_s: 1,
                blocks,
                max_wal_mb: 1024,
                checkpoint_timeout_s: Some(300),
                ageing,
                probe_ms: 300,
            }
        }
    }
}

fn read_script(given: &str) -> Result<ScriptText> {
    let Ok(script) = given.parse::<Script>();
    let (path, weight) = match script {
        Script::File(path, weight) => (path, weight),
        Script::Builtin(name, weight) => {
            return Ok(ScriptText { name, weight, text: String::new() });
        }
    };
    let failed = |source| Error::Io { what: "cannot read the script", path: path.clone(), source };
    if path.metadata().map_err(failed)?.len() > MAX_SCRIPT {
        return Err(Error::Spec(format!("--script {given}: longer than {MAX_SCRIPT} bytes")));
    }
    let text = fs::read_to_string(&path).map_err(failed)?;
    if text.is_empty() {
        return Err(Error::Spec(format!("--script {given}: the script is empty")));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(ScriptText { name, weight, text })
}

/// A seed that is short enough to be typed again.
fn random_seed() -> Result<u64> {
    let mut bytes = [0; 4];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|errno| Error::io("no random seed from", "getrandom")(errno.into()))?;
    Ok(u64::from(u32::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes(preset: Preset, policies: &[&str]) -> Wishes {
        let policies = policies.iter().map(ToString::to_string).collect();
        Wishes { preset, policies, ..Wishes::default() }
    }

    fn told(wishes: &Wishes) -> String {
        Spec::new(wishes).unwrap_err().to_string()
    }

    #[test]
    fn a_quick_trial_keeps_to_its_minute_with_any_number_of_arms() {
        for arms in 2..=arm::MAX_ARMS {
            let spec = Spec::new(&wishes(Preset::Quick, &vec!["off"; arms])).unwrap();
            assert!(spec.load_s() <= QUICK_LOAD_S, "{arms} arms: {} s", spec.load_s());
            assert!(spec.load_s() >= 36, "{arms} arms: {} s", spec.load_s());
        }
        let demo =
            Spec::new(&wishes(Preset::Quick, &["off", "temp-vs-rest", "wal-first"])).unwrap();
        assert_eq!((demo.blocks, demo.seconds, demo.warm_up_s), (6, 2, 1));
        let more = Wishes { seconds: Some(20), ..wishes(Preset::Quick, &["off", "off"]) };
        assert!(told(&more).contains("at most 60 s of load"));
    }

    #[test]
    fn classic_is_what_this_began_with() {
        let spec = Spec::new(&wishes(Preset::Classic, &["off", "temp-vs-rest"])).unwrap();
        assert_eq!((spec.scale, spec.seconds, spec.clients, spec.jobs), (200, 600, 2, 2));
        assert_eq!(spec.max_wal_mb, 4096);
        assert!(!spec.can_span_checkpoints());
    }

    #[test]
    fn standard_rounds_span_two_checkpoints() {
        for seconds in [None, Some(90), Some(600)] {
            let wishes = Wishes { seconds, ..wishes(Preset::Standard, &["off", "off"]) };
            assert!(Spec::new(&wishes).unwrap().can_span_checkpoints(), "{seconds:?}");
        }
        let short = Wishes { seconds: Some(60), ..wishes(Preset::Standard, &["off", "off"]) };
        assert!(!Spec::new(&short).unwrap().can_span_checkpoints());
    }

    #[test]
    fn a_rate_makes_latency_the_metric() {
        let base = wishes(Preset::Quick, &["off", "off"]);
        let spec = Spec::new(&Wishes { rate: Some(100.0), ..base.clone() }).unwrap();
        assert_eq!(spec.primary, Primary::LatencyMean);
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(told(&Wishes { rate: Some(rate), ..base.clone() }).starts_with("--rate"));
        }
    }

    #[test]
    fn figures_out_of_measure_are_named() {
        let base = wishes(Preset::Standard, &["off", "off"]);
        assert!(told(&Wishes { scale: Some(0), ..base.clone() }).starts_with("--scale 0"));
        assert!(told(&Wishes { clients: Some(99_999), ..base.clone() }).starts_with("--clients"));
        assert!(told(&Wishes { rounds: Some(0), ..base.clone() }).contains("at least one block"));
        assert!(told(&Wishes { jobs: Some(0), ..base }).starts_with("--jobs 0"));
    }

    #[test]
    fn scripts_go_along_with_their_text() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sort.sql");
        std::fs::write(&path, "SELECT 1;\n").unwrap();
        let given = format!("{}@3", path.display());
        let wishes = |script: String| Wishes {
            scripts: vec![script],
            ..wishes(Preset::Quick, &["off", "off"])
        };
        let spec = Spec::new(&wishes(given)).unwrap();
        let script = ScriptText { name: "sort.sql".into(), weight: 3, text: "SELECT 1;\n".into() };
        assert_eq!(spec.scripts, [script]);
        let files = spec.scripts_in(Path::new("/x"));
        assert_eq!(files[0].to_string(), "/x/1-sort.sql@3");
        let own = Spec::new(&wishes("simple-update@2".into())).unwrap();
        assert_eq!(own.scripts_in(Path::new("/x"))[0].to_string(), "simple-update@2");
        std::fs::write(&path, "").unwrap();
        assert!(told(&wishes(path.display().to_string())).contains("is empty"));
        assert!(told(&wishes("/nowhere.sql".into())).starts_with("cannot read the script"));
        let mut hostile = spec;
        hostile.scripts[0].name = "../../etc/x".into();
        assert!(hostile.check().is_err());
    }

    #[test]
    fn a_spec_survives_its_file() {
        let spec = Spec::new(&wishes(Preset::Classic, &["off", "wal-first"])).unwrap();
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<Spec>(&json).unwrap(), spec);
    }
}
