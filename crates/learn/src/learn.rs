//! From a trace to a policy: search on the first part, judge on the rest.
//!
//! Invariant: nothing of the second part is looked at before the policy is chosen, but which pages it
//! writes and who holds them (the drive has them from the beginning).

use shelflife_layout::Class;
use shelflife_lifetime::Lifetime;
use shelflife_policy::{Applier, Policy};
use shelflife_simulate::{Hinting, Size, Target};
use shelflife_ssd::Transport;
use shelflife_trace::{FileClass, FileTable, Trace};

use crate::Error;
use crate::compared::Compared;
use crate::drives::Variant;
use crate::judge::{Apart, Contender, Judged};
use crate::outcome::{Aim, Learned, LearnedRule, UnitShare};
use crate::passes::Part;
use crate::recording::{Recording, written};
use crate::runner::{LearnProgress, Runner, Stage};
use crate::scores::Scores;
use crate::search::{self, Distinct, Groups, Scored, assign, lifetimes, named, rules, search};
use crate::text::{Ruled, bare, write};
use crate::units::{Unit, Units};

/// Share of the page writes that is learned from.
const FIRST_PART: f64 = 0.6;
/// The largest divisor of the sample that is searched on, and what must be left of it.
const MOST_ONE_IN: u32 = 32;
const LEAST_RU_PAGES: u32 = 128;
const LEAST_PAGES: u32 = 1 << 15;
/// How many groupings are tried on all of the first part.
const FINALISTS: usize = 6;
/// What a rule (as much as the simulator is held to), and a name in it, must save: rules are to be few.
const RULE_GAIN: f64 = 0.005;
const NAME_GAIN: f64 = 0.001;
/// A saving up to this is noise; what the simulator is held to.
const ALIKE: f64 = shelflife_ssd::STEADY_TOLERANCE;
/// A policy that loses more than this on some firmware is said to.
const LOSS: f64 = 0.01;

/// What is asked.
#[derive(Clone, Debug)]
pub struct LearnRequest {
    /// The drives, all with pages of one size.
    pub targets: Vec<Target>,
    /// How hints reach them, whatever their profiles say.
    pub transport: Transport,
    /// Who will set the hints.
    pub applier: Applier,
    /// Whether rules may name single relations ([`Applier::Watch`] only).
    pub relations: bool,
    /// How drives are sized.
    pub size: Size,
    /// What the policy is to be best at.
    pub aim: Aim,
    /// Name of the policy; see [`crate::policy_name`].
    pub name: String,
    /// Seed of the sample and of hints that are dealt at random.
    pub seed: u64,
    /// Memory that may be used, in bytes, if there is a limit.
    pub memory_bytes: Option<u64>,
}

/// Learns a policy from `trace`. `progress` is told how far it is, from several threads;
/// `go_on` is asked while the trace is read.
///
/// # Errors
///
/// Whatever is wrong with the request or the trace. That nothing was found is no error: the answer
/// then has no policy.
pub fn learn(
    trace: &Trace,
    request: &LearnRequest,
    progress: &(dyn Fn(LearnProgress) + Sync),
) -> Result<Learned, Error> {
    let first = request.targets.first().ok_or(Error::NoDrive)?;
    if request.relations && request.applier == Applier::Hook {
        return Err(Error::Relations);
    }
    if request.targets.iter().any(|target| target.page_bytes() != first.page_bytes()) {
        return Err(Error::PageSizes);
    }
    let names: Vec<String> = request.targets.iter().map(Target::name).collect();
    if let Aim::Drive(wanted) = &request.aim
        && !names.contains(wanted)
    {
        return Err(Error::NoSuchDrive { wanted: wanted.clone(), there: names.join(", ") });
    }
    let events = trace.meta().counts.events.saturating_mul(2);
    let seen = |done| {
        progress(LearnProgress { stage: Stage::Reading, done, of: events.max(done) });
        true
    };
    let recording = Recording::read(trace, first.page_bytes(), request.memory_bytes, &seen)?;
    let (train, test) = recording.ops.split_at(recording.split(FIRST_PART));
    if written(train) == 0 || written(test) == 0 {
        return Err(Error::TooShort { pages: written(&recording.ops) });
    }
    let mut variants = Vec::new();
    for target in &request.targets {
        let (transport, pages) = (request.transport, recording.touched());
        variants.extend(Variant::all(target, transport, request.size, pages, trace.meta())?);
    }
    Learning::new(trace, request, &recording, variants, progress)?.run()
}

/// Everything while it is learned.
struct Learning<'a> {
    trace: &'a Trace,
    request: &'a LearnRequest,
    variants: Vec<Variant>,
    /// Positions of the variants that the aim is about.
    aimed: Vec<usize>,
    /// Lifetimes that arrive as different streams on every drive.
    lifetimes: Vec<Distinct>,
    units: Units,
    train: Part<'a>,
    recording: &'a Recording,
    /// The whole trace, of which the end counts; and where that begins.
    test: Part<'a>,
    split: usize,
    page_bytes: u32,
    runner: Runner<'a>,
}

impl<'a> Learning<'a> {
    fn new(
        trace: &'a Trace,
        request: &'a LearnRequest,
        recording: &'a Recording,
        variants: Vec<Variant>,
        progress: &'a (dyn Fn(LearnProgress) + Sync),
    ) -> Result<Learning<'a>, Error> {
        let split = recording.split(FIRST_PART);
        let train = Part::first(recording, split);
        let test = Part::all(recording).judged(train.written);
        let streams = variants.iter().map(|variant| variant.config.geometry.streams).min();
        let streams = streams.unwrap_or(1);
        let lifetimes = lifetimes(request.transport, streams);
        if lifetimes.is_empty() {
            return Err(Error::NothingArrives { transport: request.transport.name(), streams });
        }
        let (applier, relations) = (request.applier, request.relations);
        let units = Units::new(trace.files(), train.ops, recording.pages, applier, relations);
        if units.units.is_empty() {
            return Err(Error::NoFiles);
        }
        let aimed = variants.iter().enumerate().filter(|(_, variant)| match &request.aim {
            Aim::Drive(name) => variant.firmware.own && variant.firmware.drive == *name,
            _ => true,
        });
        let aimed = aimed.map(|(at, _)| at).collect();
        let page_bytes = variants.first().map_or(4096, |v| v.config.geometry.page_bytes);
        let judged = Judged { part: &test, seed: request.seed, variants: &variants };
        let longest = judged.longest();
        let needs = variants.iter().map(|variant| (variant.needs(longest), variant));
        let (needs, largest) = needs.max_by_key(|(needs, _)| *needs).ok_or(Error::NoDrive)?;
        let memory = request
            .memory_bytes
            .map(|bytes| bytes.saturating_sub(size_of_val(recording.ops.as_slice()) as u64));
        if let Some(limit) = memory
            && needs > limit
        {
            return Err(Error::DriveMemory {
                drive: largest.firmware.drive.clone(),
                needs_mib: needs >> 20,
                limit_mib: limit >> 20,
            });
        }
        let runner = Runner::new(needs, memory, progress);
        Ok(Learning {
            trace,
            request,
            variants,
            aimed,
            lifetimes,
            units,
            train,
            recording,
            test,
            split,
            page_bytes,
            runner,
        })
    }

    fn files(&self) -> &'a FileTable {
        self.trace.files()
    }

    /// The lifetime of each file under a grouping.
    fn hints(&self, groups: &[u8]) -> Vec<Lifetime> {
        let by_group = assign(groups, &self.units, &self.lifetimes);
        let of_unit = |unit: &u16| match usize::from(*unit).checked_sub(1) {
            Some(unit) => by_group[usize::from(groups[unit])],
            None => Lifetime::NotSet,
        };
        self.units.by_file.iter().map(of_unit).collect()
    }

    fn all_hints(&self, groups: &[Groups]) -> Vec<Vec<Lifetime>> {
        groups.iter().map(|groups| self.hints(groups)).collect()
    }

    fn scores<'b>(&'b self, part: &'b Part<'b>, variants: &'b [Variant]) -> Scores<'b> {
        Scores { runner: &self.runner, part, variants, aim: &self.request.aim }
    }

    /// How small the sample may be that is searched on.
    fn one_in(&self) -> u32 {
        let ru_pages = self.variants.iter().map(|variant| variant.config.geometry.ru_pages).min();
        let mut one_in = 1;
        while one_in < MOST_ONE_IN {
            let next = one_in * 2;
            let small = self.recording.pages / next;
            let is_drive = |variant: &Variant| {
                let streams = self.lifetimes.len() as u32 + 1;
                variant.scaled(small, self.recording.pages, next).hinted(streams).is_some()
            };
            if ru_pages.unwrap_or(0) / next < LEAST_RU_PAGES
                || small < LEAST_PAGES
                || !self.variants.iter().all(is_drive)
            {
                break;
            }
            one_in = next;
        }
        one_in
    }

    fn run(self) -> Result<Learned, Error> {
        let one_in = self.one_in();
        let (ranked, candidates) = self.searched(one_in)?;
        let chosen = self.compared(&ranked, one_in)?;
        self.judged(chosen, candidates, one_in)
    }

    /// Groupings by their scores on a sample of the first part.
    fn searched(&self, one_in: u32) -> Result<(Vec<Scored>, usize), Error> {
        // the sample is of the pages of the whole trace, as the drive is
        let sampled =
            (one_in > 1).then(|| self.recording.sample(self.train.ops, one_in, self.request.seed));
        let sampled = sampled.as_ref().map(|sample| (Part::all(sample), sample.pages));
        let (part, pages) = match &sampled {
            Some((part, pages)) => (part, *pages),
            None => (&self.train, self.recording.pages),
        };
        if part.written == 0 {
            return Err(Error::TooShort { pages: self.train.written });
        }
        let variants: Vec<Variant> = self
            .aimed
            .iter()
            .map(|at| self.variants[*at].scaled(pages, self.recording.pages, one_in))
            .collect();
        let scores = self.scores(part, &variants);
        self.runner.stage();
        let off = scores.off(Stage::Searching)?;
        let mut asked = 0;
        let mut evaluate = |groups: &[Groups]| {
            asked += groups.len();
            scores.of(&self.all_hints(groups), &off, Stage::Searching)
        };
        let ranked = search(self.units.units.len(), self.lifetimes.len(), &mut evaluate)?;
        Ok((ranked, asked))
    }

    /// The grouping that is best on all of the first part, where each rule must be worth it.
    fn compared(&self, ranked: &[Scored], one_in: u32) -> Result<Option<Groups>, Error> {
        let mut finalists: Vec<Groups> = Vec::new();
        let apart = |groups: &Groups| rules(groups) > 0;
        let best = ranked.iter().map(|(groups, _)| groups).filter(|groups| apart(groups));
        finalists.extend(best.take(FINALISTS / 2).cloned());
        for most in 1..=3 {
            let few = ranked.iter().map(|(groups, _)| groups);
            let few = few.filter(|groups| apart(groups) && rules(groups) <= most);
            finalists.extend(few.take(2).cloned());
        }
        finalists.sort();
        finalists.dedup();
        if finalists.is_empty() {
            return Ok(None);
        }
        let scored: Vec<Scored> = if one_in == 1 {
            ranked.iter().filter(|(groups, _)| finalists.contains(groups)).cloned().collect()
        } else {
            let variants: Vec<Variant> =
                self.aimed.iter().map(|at| self.variants[*at].clone()).collect();
            let scores = self.scores(&self.train, &variants);
            self.runner.stage();
            let off = scores.off(Stage::Comparing)?;
            let found = scores.of(&self.all_hints(&finalists), &off, Stage::Comparing)?;
            finalists.into_iter().zip(found).collect()
        };
        let cost = |(groups, score): &Scored| {
            score + RULE_GAIN * rules(groups) as f64 + NAME_GAIN * named(groups) as f64
        };
        let chosen = scored
            .into_iter()
            .min_by(|a, b| cost(a).total_cmp(&cost(b)).then_with(|| search::better(a, b)));
        Ok(chosen.map(|(groups, _)| groups))
    }

    /// The rules of a grouping: each group that gets a hint, and what must be said not to.
    fn ruled(&self, groups: &[u8]) -> Vec<Ruled<'_>> {
        let by_group = assign(groups, &self.units, &self.lifetimes);
        let units = || self.units.units.iter().zip(groups);
        let mut ruled: Vec<Ruled<'_>> = (1..by_group.len())
            .map(|group| Ruled {
                units: units()
                    .filter(|(_, own)| usize::from(**own) == group)
                    .map(|u| u.0)
                    .collect(),
                lifetime: by_group[group],
            })
            .collect();
        ruled.sort_by_key(|rule| rule.lifetime.raw());
        let hinted = |class: fn(Class) -> bool| {
            units().any(|(unit, group)| *group > 0 && unit.classes.iter().any(|c| class(*c)))
        };
        // Without a rule of its own an index is a relation, and so is a relation by its class.
        let relations = hinted(|class| class == Class::Relation);
        let any = hinted(|class| class == Class::Relation || class.needs_catalog());
        let taken = |unit: &Unit| match &unit.relation {
            Some(_) => any,
            None => relations && unit.classes.iter().any(|class| class.needs_catalog()),
        };
        let left: Vec<&Unit> =
            units().filter(|(unit, group)| **group == 0 && taken(unit)).map(|u| u.0).collect();
        if !left.is_empty() {
            ruled.push(Ruled { units: left, lifetime: Lifetime::NotSet });
        }
        ruled
    }

    /// The grouping as a policy's hints by file: what is judged is what will be written.
    fn as_policy(&self, groups: &[u8]) -> Result<Vec<Lifetime>, Error> {
        let text = bare(&self.request.name, self.request.applier, &self.ruled(groups));
        let policy = Hinting::Policy(Box::new(Policy::parse(&text, "learned")?));
        let hints = policy.by_file(self.files())?;
        Ok(hints.unwrap_or_default())
    }

    fn judged(
        &self,
        chosen: Option<Groups>,
        candidates: usize,
        one_in: u32,
    ) -> Result<Learned, Error> {
        let judged = Judged { part: &self.test, seed: self.request.seed, variants: &self.variants };
        let files = self.files();
        let is_wal = |file: u32| {
            let class = files.get(shelflife_trace::FileId(file)).map(|file| file.class);
            matches!(class, Some(FileClass::File(Class::Wal | Class::WalNew)))
        };
        let apart = Apart::new(self.test.ops, self.split, self.recording.pages, is_wal);
        let mut notes: Vec<String> = self.trace.notes().iter().map(ToString::to_string).collect();
        let mut names = vec!["off".to_owned()];
        let mut contenders = vec![Contender::Off];
        for name in ["temp-vs-rest", "wal-first"] {
            let text = shelflife_policy::find(name).unwrap_or_default();
            let policy = Hinting::Policy(Box::new(Policy::parse(text, name)?));
            match policy.by_file(files) {
                Ok(hints) => {
                    names.push(name.to_owned());
                    contenders.push(Contender::Hints(hints.unwrap_or_default()));
                }
                Err(error) => notes.push(error.to_string()),
            }
        }
        if let Some(apart) = &apart {
            names.push("WAL on a drive of its own".to_owned());
            contenders.push(Contender::Apart(apart));
        }
        names.push("7 % more over-provisioning".to_owned());
        contenders.push(Contender::Larger);
        names.push("clairvoyant by file".to_owned());
        contenders.push(Contender::ByFile);
        names.push("clairvoyant by death time".to_owned());
        contenders.push(Contender::ByDeath);
        // the learned one, the same dealt at random, and without each of its rules
        let own = contenders.len();
        let mut without = Vec::new();
        if let Some(groups) = &chosen {
            let hints = self.as_policy(groups)?;
            let bounds = self.dealt(&hints);
            names.push("learned".to_owned());
            contenders.push(Contender::Hints(hints));
            names.push("learned, dealt at random".to_owned());
            contenders.push(Contender::Dealt(bounds));
            for group in 1..=rules(groups) as u8 {
                if rules(groups) > 1 {
                    let fewer: Groups =
                        groups.iter().map(|own| if *own == group { 0 } else { *own }).collect();
                    without.push(contenders.len());
                    contenders.push(Contender::Hints(self.hints(&fewer)));
                }
            }
        }
        self.runner.stage();
        let of = contenders.len() * self.variants.len();
        let found = judged.run(&contenders, &self.runner, of)?;
        let compared = Compared {
            variants: &self.variants,
            aim: &self.request.aim,
            aimed: &self.aimed,
            found,
        };
        let arms = names.into_iter().enumerate().map(|(at, name)| compared.arm(at, name));
        let mut learned = Learned {
            source: "simulated",
            trace: self.trace.folder().display().to_string(),
            transport: self.request.transport,
            applier: self.request.applier,
            aim: self.request.aim.clone(),
            saving: 0.0,
            noise: ALIKE,
            policy: None,
            rules: Vec::new(),
            units: self.shares(),
            firmwares: self.variants.iter().map(|variant| variant.firmware.clone()).collect(),
            arms: arms.collect(),
            trained_pages: self.train.written,
            judged_pages: self.test.written - self.train.written,
            candidates,
            one_in,
            notes,
        };
        let Some(groups) = chosen else {
            learned.notes.push(format!(
                "nothing to keep apart: {} is all that writes enough to be named",
                self.units.units.iter().map(|u| u.name.as_str()).collect::<Vec<_>>().join(", ")
            ));
            return Ok(learned);
        };
        learned.saving = compared.saving(own).unwrap_or(0.0);
        let dealt = compared.saving(own + 1).unwrap_or(0.0);
        learned.noise = dealt.max(0.0) + ALIKE.max(compared.error(own).unwrap_or(0.0));
        let score = 1.0 - learned.saving;
        let gains: Vec<f64> = match without.as_slice() {
            [] => vec![learned.saving],
            without => {
                let gain = |at: &usize| {
                    compared.saving(*at).map_or(0.0, |other| 1.0 - score / (1.0 - other))
                };
                without.iter().map(gain).collect()
            }
        };
        learned.rules = self.explained(&groups, &gains);
        let loses = self.say_losses(&mut learned);
        let harmful = loses && self.request.aim == Aim::Mean;
        if harmful {
            learned.notes.push(
                "so no policy is written: what is good on average must not be bad anywhere; \
                 --for DRIVE is for a drive whose rules are known"
                    .to_owned(),
            );
        }
        if learned.saving > learned.noise && !harmful {
            learned.policy = Some(self.written(&groups, &learned)?);
        }
        Ok(learned)
    }

    /// Says on which firmwares the learned policy loses; whether there are any.
    fn say_losses(&self, learned: &mut Learned) -> bool {
        let ratio = |at: usize| {
            let (own, off) = (learned.arm("learned")?.wafs[at]?, learned.arm("off")?.wafs[at]?);
            Some(own / off - 1.0)
        };
        let losses: Vec<String> = (0..self.variants.len())
            .filter_map(|at| {
                let loss = ratio(at).filter(|loss| *loss > LOSS)?;
                let firmware = &self.variants[at].firmware;
                let isolation = format!("{:?}", firmware.isolation).to_lowercase();
                let (drive, victim) = (&firmware.drive, firmware.victim.name());
                Some(format!("{drive} {victim} {isolation} (+{:.1} %)", loss * 100.0))
            })
            .collect();
        if !losses.is_empty() {
            learned.notes.push(format!("worse than no hints on {}", losses.join(", ")));
        }
        !losses.is_empty()
    }

    /// Shares of the operations that get each lifetime, as bounds out of 2^32.
    fn dealt(&self, hints: &[Lifetime]) -> Vec<(u64, Lifetime)> {
        let mut counts = [0_u64; Lifetime::ALL.len()];
        let writes = self.train.ops.iter().filter(|op| op.written() > 0);
        for op in writes {
            let lifetime = hints.get(op.file as usize).copied().unwrap_or_default();
            counts[lifetime.raw() as usize] += 1;
        }
        let all = counts.iter().sum::<u64>().max(1) as f64;
        let mut before = 0;
        let there = Lifetime::ALL.into_iter().zip(counts).filter(|(_, count)| *count > 0);
        let bounds = there.map(|(lifetime, count)| {
            before += count;
            ((before as f64 / all * 4_294_967_296.0) as u64, lifetime)
        });
        bounds.collect()
    }

    fn bytes(&self, pages: u64) -> u64 {
        pages.saturating_mul(self.page_bytes.into())
    }

    fn shares(&self) -> Vec<UnitShare> {
        let all = self.train.written as f64;
        let share = |unit: &Unit| UnitShare {
            name: unit.name.clone(),
            share: unit.written as f64 / all,
            median_bytes: unit.median.map(|pages| self.bytes(pages)),
        };
        self.units.units.iter().map(share).collect()
    }

    /// The rules with their reasons, in the order of [`Learning::ruled`]; `gains` by group.
    fn explained(&self, groups: &[u8], gains: &[f64]) -> Vec<LearnedRule> {
        let by_group = assign(groups, &self.units, &self.lifetimes);
        let all = self.train.written as f64;
        let mut explained: Vec<LearnedRule> = (1..by_group.len())
            .map(|group| {
                let units = self.units.units.iter().zip(groups);
                let own: Vec<&Unit> =
                    units.filter(|(_, own)| usize::from(**own) == group).map(|u| u.0).collect();
                let pages: u64 = own.iter().map(|unit| unit.written).sum();
                let largest = own.iter().max_by_key(|unit| unit.written);
                LearnedRule {
                    names: own.iter().map(|unit| unit.name.clone()).collect(),
                    lifetime: by_group[group],
                    bytes: self.bytes(pages),
                    share: pages as f64 / all,
                    median_bytes: largest.and_then(|unit| unit.median).map(|m| self.bytes(m)),
                    gain: gains.get(group - 1).copied().unwrap_or(0.0),
                }
            })
            .collect();
        explained.sort_by_key(|rule| rule.lifetime.raw());
        explained
    }

    /// The policy with its reasons, checked by being parsed.
    fn written(&self, groups: &[u8], learned: &Learned) -> Result<String, Error> {
        let drives: Vec<String> = self.request.targets.iter().map(Target::name).collect();
        let size = match self.request.size {
            Size::Fit(share) => format!("scaled so that what is written is {share} % of it"),
            Size::Live(share) => format!("in its size, {share} % of it live"),
            Size::Own => "in its size, and full".to_owned(),
            Size::Recorded => "scaled to the recorded file system, and as full".to_owned(),
        };
        let aim = match &self.request.aim {
            Aim::Worst => "the worst of them".to_owned(),
            Aim::Mean => "their mean".to_owned(),
            Aim::Drive(name) => format!("{name} under its own rules"),
        };
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let head = [
            format!("Learned by `shelflife learn` from {}.", learned.trace),
            format!(
                "Simulated, on the last {} % of the page writes, from which nothing was learned:",
                ((1.0 - FIRST_PART) * 100.0).round()
            ),
            format!(
                "write amplification {} lower than without hints (noise {}), by {aim}, on {} \
                 ({size}), {} pairs of victim rule and isolation, transport {}.",
                percent(learned.saving),
                percent(learned.noise),
                drives.join(", "),
                self.variants.len(),
                self.request.transport.name()
            ),
        ];
        let description = format!(
            "learned: {} less write amplification than without hints, simulated, by {aim}",
            percent(learned.saving)
        );
        let ruled = self.ruled(groups);
        let (name, applier) = (&self.request.name, self.request.applier);
        let text = write(name, applier, &head, &description, &ruled, &learned.rules);
        Policy::parse(&text, "learned")?;
        Ok(text)
    }
}
