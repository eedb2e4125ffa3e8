//! One sentence for each cell: why does it save, why not, why does it cost?
//!
//! Invariant: pure, and every figure in a sentence is one of the recording or of the drive's profile:
//! shares and medians are those of `shelflife lifetimes` on the trace, in sizes of the file system.

use shelflife_lifetime::Lifetime;
use shelflife_report::figure;
use shelflife_ssd::{Drive, Fit};

use crate::judged::{Flow, Judged, LEARNED, StreamFlow};
use crate::recorded::{ClassLife, Recorded};
use crate::table::Kind;

/// Streams and classes with a smaller share of the bytes explain nothing.
const SMALL: f64 = 0.005;
/// A stream with less than this may be all that is kept apart, and yet be too little to matter.
const LITTLE: f64 = 0.05;
/// Without hints up to this, hardly anything is copied.
const HARDLY: f64 = 1.05;
/// Medians that differ by less are alike.
const ALIKE: f64 = 1.5;
/// Lifetimes below this are not told apart, in drive writes.
const LEAST: f64 = 0.001;

/// What is to be explained.
pub(crate) struct Case<'a> {
    pub recorded: &'a Recorded,
    pub judged: &'a Judged,
    pub arm: &'a str,
    pub kind: Kind,
    /// Without hints.
    pub waf: f64,
    pub saving: f64,
    pub noise: f64,
}

/// The sentence.
pub(crate) fn reason(case: &Case<'_>) -> String {
    match case.kind {
        Kind::Policy => policy(case),
        Kind::Instead => instead(case),
        Kind::Bound => bound(case),
    }
}

fn percent(share: f64) -> String {
    format!("{} %", figure(share * 100.0))
}

fn policy(case: &Case<'_>) -> String {
    let Judged { saving, noise, .. } = case.judged;
    if case.arm == LEARNED && case.judged.policy.is_none() {
        let but = match saving > noise {
            true => "but it costs under some of them".to_owned(),
            false => format!("and up to {} is noise", percent(*noise)),
        };
        return format!(
            "no policy is written: on average over all rules the best grouping saves {}, {but}",
            percent(*saving)
        );
    }
    let Some(flow) = case.judged.flows.iter().find(|flow| flow.policy == case.arm) else {
        return "it names no file of this recording".to_owned();
    };
    let all = flow.streams.iter().map(|stream| stream.bytes).sum::<u64>().max(1) as f64;
    let streams: Vec<Group<'_>> =
        flow.streams.iter().map(|stream| Group::new(stream, all, case.recorded)).collect();
    let [largest, others @ ..] = streams.as_slice() else {
        return "nothing was written".to_owned();
    };
    // the largest of the others: what is kept apart
    let Some(second) = others.first().filter(|group| group.share >= SMALL) else {
        return one_stream(case, flow, largest);
    };
    let (short, long) = match largest.median() <= second.median() {
        true => (largest, second),
        false => (second, largest),
    };
    let unit = case.recorded.drive_bytes() as f64;
    let mut text = format!(
        "{} of the bytes are {}, half of {} dead {}{}; {} {}{}",
        percent(short.share),
        short.names(),
        if short.classes.len() > 1 { short.main() } else { "it" },
        short.age(unit),
        beside(case, short),
        if long.classes.len() > 1 {
            format!("{} (mostly {})", long.names(), long.main())
        } else {
            long.names()
        },
        long.age(unit),
        beside(case, long),
    );
    if cold(case) > 0.0 && !short.is_unhinted(case) && !long.is_unhinted(case) {
        text += &format!("; cold data ({} of the drive) apart from both", percent(cold(case)));
    }
    text.push_str(&verdict(case, flow, short, long, second));
    text
}

/// Nearly all goes one way.
fn one_stream(case: &Case<'_>, flow: &Flow, largest: &Group<'_>) -> String {
    let apart: Vec<&str> = flow.streams[1..]
        .iter()
        .flat_map(|stream| stream.classes.iter().map(|(class, _)| class.as_str()))
        .collect();
    let mut text = match apart.as_slice() {
        [] => format!("all that is written goes to one stream, as {}", largest.lifetimes()),
        apart => format!(
            "{} of the bytes ({}) go elsewhere, all else goes to one stream, as {}",
            percent(1.0 - largest.share),
            listed(apart),
            largest.lifetimes()
        ),
    };
    text += &match largest.is_unhinted(case) {
        true => ": nothing is kept apart".to_owned(),
        false => format!(
            ": only cold data, {} of the drive, have no hint and lie apart",
            percent(cold(case))
        ),
    };
    text
}

/// Cold data lie where data without a hint go, since before the recording, and are relocated again and
/// again.
fn beside(case: &Case<'_>, group: &Group<'_>) -> String {
    match cold(case) {
        share if share > 0.0 && group.is_unhinted(case) => {
            format!(", beside cold data ({} of the drive)", percent(share))
        }
        _ => String::new(),
    }
}

fn cold(case: &Case<'_>) -> f64 {
    case.recorded.captured.cold_bytes as f64 / case.recorded.drive_bytes() as f64
}

/// What follows of it.
fn verdict(
    case: &Case<'_>,
    flow: &Flow,
    short: &Group<'_>,
    long: &Group<'_>,
    second: &Group<'_>,
) -> String {
    let ratio = match (short.median(), long.median()) {
        (Median::Bytes(a), Median::Bytes(b)) => b as f64 / a.max(1) as f64,
        (Median::Bytes(_), Median::Later) => f64::INFINITY,
        _ => 1.0,
    };
    let spread = || match (short.life, short.life.and_then(|life| life.p10)) {
        (Some(ClassLife { p90: Some(p90), .. }), Some(p10)) => {
            let unit = case.recorded.drive_bytes() as f64;
            format!(
                " (a tenth after {}, nine tenths after {})",
                figure(p10 as f64 / unit),
                figure(*p90 as f64 / unit)
            )
        }
        _ => String::new(),
    };
    let opened = opened(case, flow);
    if case.saving > case.noise {
        if ratio >= ALIKE {
            return ": apart, neither keeps the other's units from emptying".to_owned();
        }
        return format!(
            ": as old as each other, but {} dies in the order in which it was written{}, so that its \
             units empty whole",
            short.main(),
            spread()
        );
    }
    if case.waf <= HARDLY {
        return format!(
            ": but without hints only {} page is copied for each that is written, and there is \
             nothing to save",
            figure(case.waf - 1.0)
        );
    }
    if case.saving >= -case.noise {
        if second.share < LITTLE {
            return format!(": {} of the bytes are too few to matter", percent(second.share));
        }
        if ratio < ALIKE {
            return ": too much alike for it to matter that they are apart".to_owned();
        }
        return format!(
            ": what that gains, {opened}, and relocated data no longer mixed, take back"
        );
    }
    if ratio < ALIKE {
        return format!(": alike, so that nothing is gained by keeping them apart, and {opened}");
    }
    format!(": each has to find its spare among its own units, and {opened}")
}

/// What more open units cost.
fn opened(case: &Case<'_>, flow: &Flow) -> String {
    let drive = &case.judged.drive;
    let more = flow.streams.len().saturating_sub(1) as f64;
    let live_pages = case.recorded.drive_bytes() / u64::from(drive.page_bytes.max(1));
    // a profile that was judged can be scaled
    let scaled = drive.config(Some(Fit { live_pages, live_percent: 100.0 }));
    let unit = scaled.map_or(0.0, |config| f64::from(config.geometry.ru_pages));
    let spare = (spare(drive) * live_pages as f64).max(1.0);
    let (units, verb) = if more == 1.0 { ("unit", "takes") } else { ("units", "take") };
    format!(
        "{} more open {units} {verb} {} of the spare",
        figure(more),
        percent(more * unit / spare)
    )
}

/// Over-provisioning as the profile states it, as a share of its capacity.
fn spare(drive: &Drive) -> f64 {
    drive.over_provisioning.or(drive.net_over_provisioning).unwrap_or(0.0)
}

fn instead(case: &Case<'_>) -> String {
    if case.arm.starts_with("WAL") {
        return format!(
            "wal, {} of the bytes, goes to a drive of its own with the same over-provisioning, where \
             it is alone with itself",
            percent(case.recorded.wal_share())
        );
    }
    let rho = spare(&case.judged.drive);
    format!(
        "over-provisioning is {} instead of {}, for every byte, whatever it is",
        percent(rho + 0.07),
        percent(rho)
    )
}

fn bound(case: &Case<'_>) -> String {
    let streams = case.judged.drive.streams;
    match case.arm {
        "clairvoyant by file" => format!(
            "the bound for hints by file: each file on the one of {streams} streams that suits its \
             median lifetime"
        ),
        _ => format!(
            "out of reach: each page on the one of {streams} streams that suits the time of its death"
        ),
    }
}

/// A stream, as a sentence has it.
struct Group<'a> {
    flow: &'a StreamFlow,
    /// Of all bytes.
    share: f64,
    /// Classes that are not small.
    classes: Vec<&'a str>,
    /// How long the largest lives.
    life: Option<&'a ClassLife>,
}

/// Half is dead after so many bytes, or later than was seen.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Median {
    Bytes(u64),
    Later,
}

impl<'a> Group<'a> {
    fn new(flow: &'a StreamFlow, all: f64, recorded: &'a Recorded) -> Group<'a> {
        let large = flow.classes.iter().filter(|(_, bytes)| *bytes as f64 >= SMALL * all);
        let mut classes: Vec<&str> = large.map(|(class, _)| class.as_str()).collect();
        if classes.is_empty() {
            classes.extend(flow.classes.first().map(|(class, _)| class.as_str()));
        }
        let life = classes.first().and_then(|class| recorded.class(class));
        Group { flow, share: flow.bytes as f64 / all, classes, life }
    }

    /// Whether data without a hint go there too.
    fn is_unhinted(&self, case: &Case<'_>) -> bool {
        let Judged { drive, transport, .. } = case.judged;
        self.flow.stream == transport.stream(Lifetime::NotSet, drive.streams)
    }

    fn median(&self) -> Median {
        self.life.and_then(|life| life.median).map_or(Median::Later, Median::Bytes)
    }

    fn main(&self) -> &'a str {
        self.classes.first().copied().unwrap_or("unknown")
    }

    fn names(&self) -> String {
        listed(&self.classes)
    }

    fn lifetimes(&self) -> String {
        listed(&self.flow.lifetimes.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn age(&self, unit: f64) -> String {
        match self.median() {
            Median::Bytes(bytes) if (bytes as f64) < unit * LEAST => {
                format!("after less than {LEAST} drive writes")
            }
            Median::Bytes(bytes) => format!("after {} drive writes", figure(bytes as f64 / unit)),
            Median::Later => "not before the recording ends".to_owned(),
        }
    }
}

/// `a`, `a and b`, `a, b and 2 more`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [one, two] => format!("{one} and {two}"),
        [one, two, three] => format!("{one}, {two} and {three}"),
        [one, two, rest @ ..] => format!("{one}, {two} and {} more", rest.len()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use shelflife_ssd::{Isolation, Transport, Victim};
    use shelflife_trial::filesystem;

    use super::*;
    use crate::folder::{FORMAT, VERSION};
    use crate::judged::{ArmWaf, Rules};
    use crate::recorded::Wanted;

    const GB: u64 = 1_000_000_000;

    fn class(name: &str, bytes: u64, median: Option<u64>) -> ClassLife {
        ClassLife {
            name: name.to_owned(),
            bytes,
            share: bytes as f64 / (10 * GB) as f64,
            p10: median.map(|m| m / 2),
            median,
            p90: median.map(|m| m * 2),
            share_alive: 0.1,
            longest: 5 * GB,
            curve: vec![(GB, 0.5)],
        }
    }

    /// WAL of 60 % that dies young, relations of 39 %, on 2 GB.
    pub(crate) fn recorded() -> Recorded {
        let captured = serde_json::json!({
            "scenario": "tpcb", "shows": "WAL", "not_exercised": [], "bytes": 2 * GB, "used_bytes": 1,
            "cold_bytes": GB / 2, "written_bytes": 10 * GB, "seconds": 100.0, "enough": true, "events": 1,
            "discards": 0, "lost": 0, "attributed": 1.0, "blocks": [], "scale": 40, "clients": 4,
            "machine": {
                "kernel": "6.18", "processor": null, "cores": 2, "memory": null,
                "storage": { "device": "loop0", "point": "/x", "file_system": "ext4", "options": "" },
            },
            "server": "15.18", "settings": [],
        });
        Recorded {
            format: FORMAT.to_owned(),
            version: VERSION,
            wanted: Wanted { kind: filesystem::Kind::Ext4, size: 2 << 30, fill: 0.9, writes: 5.0 },
            captured: serde_json::from_value(captured).unwrap(),
            classes: vec![
                class("wal", 6 * GB, Some(GB / 2)),
                class("relation", 39 * GB / 10, Some(2 * GB)),
                class("temp", GB / 10, None),
            ],
        }
    }

    fn stream(stream: u32, lifetime: &str, classes: &[(&str, u64)]) -> StreamFlow {
        StreamFlow {
            stream,
            lifetimes: vec![lifetime.to_owned()],
            bytes: classes.iter().map(|class| class.1).sum(),
            classes: classes.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect(),
        }
    }

    /// Two firmwares; wal-first saves a fifth under the own one, and costs a tenth under the other.
    pub(crate) fn judged() -> Judged {
        let arm = |name: &str, own: f64, other: f64| ArmWaf {
            name: name.to_owned(),
            wafs: vec![Some(own), Some(other)],
            errors: vec![Some(0.01), Some(0.02)],
            // the more is copied, the more was valid
            victims: Some(std::array::from_fn(|bin| u64::from(bin < (own * 7.0) as usize))),
        };
        let rules = |victim, own| Rules { victim, isolation: Isolation::Initial, own };
        let apart = [
            stream(1, "short", &[("wal", 6 * GB)]),
            stream(0, "not-set", &[("relation", 39 * GB / 10), ("temp", GB / 10)]),
        ];
        let flow = |policy: &str, streams: &[StreamFlow]| Flow {
            policy: policy.to_owned(),
            streams: streams.to_vec(),
        };
        Judged {
            format: FORMAT.to_owned(),
            version: VERSION,
            source: "simulated".to_owned(),
            drive: Drive::named("fdp-8-initial").unwrap(),
            transport: Transport::NvmeRaw,
            firmwares: vec![rules(Victim::Greedy, true), rules(Victim::Fifo, false)],
            arms: vec![
                arm("off", 2.5, 2.0),
                arm("temp-vs-rest", 2.5, 2.0),
                arm("wal-first", 2.0, 2.2),
                arm("WAL on a drive of its own", 1.9, 1.9),
                arm("clairvoyant by file", 1.8, 1.8),
                arm("learned", 1.9, 2.0),
                arm("learned, dealt at random", 2.6, 2.1),
            ],
            flows: vec![
                flow(
                    "temp-vs-rest",
                    &[
                        stream(4, "extreme", &[("wal", 6 * GB), ("relation", 39 * GB / 10)]),
                        stream(0, "short", &[("temp", GB / 1000)]),
                    ],
                ),
                flow("wal-first", &apart),
                flow("learned", &apart),
            ],
            saving: 0.0,
            noise: 0.006,
            policy: Some(String::new()),
            share_of_clairvoyant: vec![Some(0.9), None],
            trained_pages: 1,
            judged_pages: 1,
            notes: Vec::new(),
        }
    }

    fn told(arm: &str, kind: Kind, waf: f64, saving: f64) -> String {
        let (recorded, judged) = (recorded(), judged());
        reason(&Case { recorded: &recorded, judged: &judged, arm, kind, waf, saving, noise: 0.005 })
    }

    #[test]
    fn what_saves_is_explained_by_shares_and_medians() {
        let text = told("wal-first", Kind::Policy, 2.5, 0.2);
        assert_eq!(
            text,
            "60 % of the bytes are wal, half of it dead after 0.25 drive writes; relation and temp \
             (mostly relation) after 1 drive writes, beside cold data (25 % of the drive): apart, \
             neither keeps the other's units from emptying"
        );
    }

    #[test]
    fn cold_data_lie_where_nothing_is_hinted() {
        let (recorded, mut judged) = (recorded(), judged());
        judged.flows[1].streams[1].stream = 2;
        let (arm, kind) = ("wal-first", Kind::Policy);
        let case = Case {
            recorded: &recorded,
            judged: &judged,
            arm,
            kind,
            waf: 2.5,
            saving: 0.2,
            noise: 0.005,
        };
        let text = reason(&case);
        let told =
            "after 1 drive writes; cold data (25 % of the drive) apart from both: apart, neither";
        assert!(text.contains(told), "{text}");
    }

    #[test]
    fn what_is_written_over_at_once_is_not_dead_after_nothing() {
        let mut recorded = recorded();
        recorded.classes[0].median = Some(8192);
        let wal = stream(1, "short", &[("wal", 6 * GB)]);
        let group = Group::new(&wal, 1.0, &recorded);
        assert_eq!(group.age(2e9), "after less than 0.001 drive writes");
    }

    #[test]
    fn what_names_next_to_nothing_says_so() {
        let text = told("temp-vs-rest", Kind::Policy, 2.5, 0.0);
        assert_eq!(
            text,
            "0.01 % of the bytes (temp) go elsewhere, all else goes to one stream, as extreme: only \
             cold data, 25 % of the drive, have no hint and lie apart"
        );
        assert!(told("other", Kind::Policy, 2.5, 0.0).contains("names no file"));
    }

    #[test]
    fn what_costs_is_explained_by_spare() {
        // one unit of 16 GiB of 7 % of 7.68 TB, scaled to whole pages
        let text = told("wal-first", Kind::Policy, 2.5, -0.1);
        assert!(text.ends_with("and 1 more open unit takes 3.19 % of the spare"), "{text}");
        let text = told("wal-first", Kind::Policy, 1.02, 0.0);
        assert!(text.contains("only 0.02 page is copied"), "{text}");
        let text = told("wal-first", Kind::Policy, 2.5, 0.001);
        assert!(text.contains("take back"), "{text}");
    }

    #[test]
    fn what_is_alike_is_said_to_be() {
        let (mut recorded, judged) = (recorded(), judged());
        recorded.classes[1].median = Some(GB / 2);
        let text = |saving| {
            let kind = Kind::Policy;
            let arm = "wal-first";
            reason(&Case {
                recorded: &recorded,
                judged: &judged,
                arm,
                kind,
                waf: 2.5,
                saving,
                noise: 0.005,
            })
        };
        assert!(
            text(0.2).contains("(a tenth after 0.125, nine tenths after 0.5)"),
            "{}",
            text(0.2)
        );
        assert!(text(0.0).contains("too much alike"), "{}", text(0.0));
        assert!(text(-0.1).contains("nothing is gained"), "{}", text(-0.1));
    }

    #[test]
    fn what_is_done_instead_names_its_price() {
        let wal = told("WAL on a drive of its own", Kind::Instead, 2.5, 0.2);
        assert!(wal.starts_with("wal, 60 % of the bytes"), "{wal}");
        let more = told("7 % more over-provisioning", Kind::Instead, 2.5, 0.2);
        assert!(more.contains("14 % instead of 7 %"), "{more}");
        let bound = told("clairvoyant by file", Kind::Bound, 2.5, 0.2);
        assert!(bound.contains("one of 8 streams"), "{bound}");
    }
}
