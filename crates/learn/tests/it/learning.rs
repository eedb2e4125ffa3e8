//! The learner finds what is known to be best, and nothing where there is nothing.

use rand::{RngExt, SeedableRng};
use shelflife_layout::Class;
use shelflife_learn::{Aim, Applier, Error, LearnRequest, Learned, Size, learn, policy_name};
use shelflife_lifetime::Lifetime;
use shelflife_policy::Policy;
use shelflife_simulate::{Error as Simulate, Rules, Target};
use shelflife_ssd::{Isolation, Transport, Victim};
use shelflife_trace::{Event, FileEntry, FileId, Op, Trace};

use crate::support::{PAGE, trace, trace_of, write};

/// A drive as large as what is written, with so small units that open ones hardly count; by its own
/// rules quota and persistent.
fn drive() -> Target {
    let rules = Rules {
        ru_pages: 16,
        streams: 4,
        victim: Victim::Quota,
        isolation: Isolation::Persistent,
        ..Rules::over_provisioning(0.12)
    };
    Target::Rules(rules)
}

fn request() -> LearnRequest {
    LearnRequest {
        targets: vec![drive()],
        transport: Transport::Ideal,
        applier: Applier::Watch,
        relations: false,
        size: Size::Fit(100.0),
        aim: Aim::Drive("op 0.12".into()),
        name: "mine".into(),
        seed: 1,
        memory_bytes: None,
    }
}

fn learned(trace: &Trace, request: &LearnRequest) -> Learned {
    learn(trace, request, &|_| ()).unwrap()
}

const CLASSES: [Class; 3] = [Class::Xact, Class::Relation, Class::Multixact];

/// A tenth of the pages each belong to two hot files, the rest to a cold one; seven writes of ten are
/// hot. All is written `times` times; `label` says whose each write is.
fn hot_and_cold(pages: u64, times: u64, label: impl Fn(u64, u64) -> u32) -> Vec<Event> {
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(3);
    let hot = pages / 5;
    let mut page = || match rng.random_range(0..10) {
        0..3 => rng.random_range(hot..pages),
        _ => rng.random_range(0..hot),
    };
    let later: Vec<u64> = (0..times * pages).map(|_| page()).collect();
    let written = (0..pages).chain(later);
    written.enumerate().map(|(n, page)| write(page, label(n as u64, page))).collect()
}

fn true_label(pages: u64) -> impl Fn(u64, u64) -> u32 {
    move |_, page| if page >= pages / 5 { 2 } else { 1 + 2 * (page % 2) as u32 }
}

#[test]
fn the_known_best_grouping_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path(), &CLASSES, &hot_and_cold(1 << 12, 20, true_label(1 << 12)));
    let learned = learned(&trace, &request());
    // the two hot files live alike: a rule for both, and none for what stays
    let [rule] = learned.rules.as_slice() else { panic!("{learned:#?}") };
    let mut names = rule.names.clone();
    names.sort();
    let hot = names == ["multixact", "xact"] && rule.lifetime == Lifetime::Short;
    assert!(hot || names == ["relation"] && rule.lifetime == Lifetime::Extreme, "{learned:#?}");
    assert!(learned.saving > 0.1 && learned.noise < 0.05, "{learned:#?}");
    let text = learned.policy.as_ref().unwrap();
    let policy = Policy::parse(text, "mine.toml").unwrap();
    assert!(policy.check().iter().all(|finding| !finding.fails()), "{text}");
    assert!(text.contains("half of it dead after"), "{text}");
    // perfect separation in two streams is all that a clairvoyant by file could do
    let own = learned.firmwares.iter().position(|firmware| firmware.own).unwrap();
    let share = learned.share_of_clairvoyant()[own].unwrap();
    assert!(share > 0.9, "{share}");
    let arms: Vec<&str> = learned.arms.iter().map(|arm| arm.name.as_str()).collect();
    for name in ["off", "temp-vs-rest", "7 % more over-provisioning", "clairvoyant by death time"] {
        assert!(arms.contains(&name), "{arms:?}");
    }
    let saves = |name: &str| learned.arm(name).unwrap().saving.unwrap();
    assert!(saves("clairvoyant by death time") > saves("learned"), "{learned:#?}");
    assert!(saves("learned, dealt at random") < learned.noise + 1e-9);
    // every arm has its error, but where one pass is judged, and so has what it collected
    for arm in &learned.arms {
        let (error, victims) = (arm.errors[own], arm.victims[own].unwrap());
        assert_eq!(error.is_none(), arm.name == "clairvoyant by death time", "{arm:?}");
        assert_eq!(arm.error, error, "the drive's own rules are aimed at");
        assert!(error.is_none_or(|error| (0.0..0.1).contains(&error)), "{arm:?}");
        assert!(victims.iter().sum::<u64>() > 0, "{arm:?}");
        let others = arm.victims.iter().enumerate().filter(|(at, _)| *at != own);
        assert!(others.into_iter().all(|(_, victims)| victims.is_none()), "{arm:?}");
    }
}

#[test]
fn in_shuffled_labels_there_is_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let shuffled = |n: u64, _| 1 + (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32 % 3;
    let trace = trace(folder.path(), &CLASSES, &hot_and_cold(1 << 11, 16, shuffled));
    let learned = learned(&trace, &LearnRequest { aim: Aim::Mean, ..request() });
    assert!(learned.policy.is_none(), "{learned:#?}");
    assert!(learned.saving <= learned.noise && !learned.rules.is_empty(), "{learned:#?}");
}

#[test]
fn threads_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path(), &CLASSES, &hot_and_cold(1 << 11, 8, true_label(1 << 11)));
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| serde_json::to_string(&learned(&trace, &request())).unwrap())
    };
    assert_eq!(with(1), with(3));
}

/// A log, and one relation of three that is hot.
fn relations(folder: &std::path::Path) -> Trace {
    let relation = |name: &str| {
        let mut file = FileEntry::new(Class::Relation.into());
        (file.database, file.relation) = (Some("app".into()), Some(format!("public.{name}")));
        file
    };
    let files = [relation("hot"), relation("a"), relation("b")];
    let by_page = |_, page| match page {
        page if page < (1 << 11) / 5 => 1,
        page => 2 + (page % 2) as u32,
    };
    trace_of(folder, files, &hot_and_cold(1 << 11, 16, by_page), |_| ())
}

#[test]
fn a_relation_is_named_where_a_catalog_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let trace = relations(folder.path());
    let request = LearnRequest { relations: true, ..request() };
    let found = learned(&trace, &request);
    let text = found.policy.as_ref().unwrap();
    assert!(text.contains("relation = \"app/public."), "{text}");
    let findings = Policy::parse(text, "mine.toml").unwrap().check();
    assert!(findings.iter().all(|finding| !finding.fails()), "it is for watch: {findings:?}");
    assert!(found.saving > 0.1, "{found:#?}");
    // without relations there is one class, and nothing to keep apart
    let found = learned(&trace, &LearnRequest { relations: false, ..request.clone() });
    assert!(found.policy.is_none() && found.saving <= found.noise, "{found:#?}");
    let hook = LearnRequest { applier: Applier::Hook, ..request };
    assert!(matches!(learn(&trace, &hook, &|_| ()), Err(Error::Relations)));
}

fn error(classes: &[Class], events: &[Event], change: impl FnOnce(&mut LearnRequest)) -> Error {
    let folder = tempfile::tempdir().unwrap();
    let mut request = request();
    change(&mut request);
    learn(&trace(folder.path(), classes, events), &request, &|_| ()).unwrap_err()
}

#[test]
fn what_cannot_be_learned_is_said() {
    let writes: Vec<Event> = (0..2000).map(|n| write(n % 500, 1)).collect();
    let discard = Event { op: Op::Discard, ..write(0, 1) };
    let none = |_: &mut LearnRequest| ();
    let no_writes = |error| matches!(error, Error::Simulate(Simulate::NoWrites));
    assert!(no_writes(error(&[Class::Wal], &[], none)));
    assert!(no_writes(error(&[Class::Wal], &[discard], none)));
    assert!(matches!(error(&[Class::Wal], &writes[..1], none), Error::TooShort { .. }));
    assert!(matches!(error(&[Class::Outside], &writes, none), Error::NoFiles));
    let other = Event { device: 1, file: FileId(1), ..write(0, 1) };
    let two = [&writes[..], &[other]].concat();
    let devices = error(&[Class::Wal], &two, none);
    assert!(matches!(devices, Error::Simulate(Simulate::Devices { .. })), "{devices}");
    let said = error(&[Class::Wal], &writes, |request| request.transport = Transport::Unhinted);
    assert!(said.to_string().contains("nothing to learn"), "{said}");
    let said = error(&[Class::Wal], &writes, |request| request.aim = Aim::Drive("x".into()));
    assert!(said.to_string().contains("op 0.12"), "{said}");
    let said = error(&[Class::Wal], &writes, |request| request.targets.clear());
    assert!(matches!(said, Error::NoDrive));
    let said = error(&[Class::Wal], &writes, |request| request.memory_bytes = Some(1000));
    assert!(matches!(said, Error::TooLong { .. }), "{said}");
    let said = error(&[Class::Wal], &writes, |request| request.memory_bytes = Some(33_000));
    assert!(matches!(said, Error::DriveMemory { .. }), "{said}");
    let said = error(&[Class::Wal], &writes, |request| request.size = Size::Fit(0.0));
    assert!(said.to_string().contains("live data of 0 %"), "{said}");
    let far = Event { offset: (1 << 33) * PAGE, ..write(0, 1) };
    let small = "name = \"small\"\nsources = [\"a test\"]\npage_bytes = 4096\n\
        logical_bytes = 1_048_576\nnet_over_provisioning = 0.3\nru_bytes = 16_384\nstreams = 2\n\
        isolation = \"initial\"\nfrontier = \"separate\"\nvictim = \"greedy\"\ntransport = \"scsi\"\n";
    let said = error(&[Class::Wal], &[&writes[..], &[far]].concat(), |request| {
        request.targets = vec![Target::parse("small.toml", small).unwrap()];
        (request.size, request.aim) = (Size::Live(50.0), Aim::Mean);
    });
    assert!(matches!(said, Error::Simulate(Simulate::LargerThanLive { live: 128, .. })), "{said}");
}

#[test]
fn one_class_alone_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let writes: Vec<Event> = (0..40_000).map(|n| write(n * 7919 % 4096, 1)).collect();
    let found = learned(&trace(folder.path(), &[Class::Relation], &writes), &request());
    assert!(found.policy.is_none(), "{found:#?}");
    assert_eq!(policy_name("off"), "learned");
}
