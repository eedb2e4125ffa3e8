//! What a simulator must do whatever the closed forms say: limits, invariances, errors.

use shelflife_lifetime::Lifetime;
use shelflife_ssd::analytic::{Class, Death, mixed_fifo};
use shelflife_ssd::{
    Age, Config, Deaths, Error, FileStreams, Frontier, Geometry, Hints, Isolation, Kind, Op,
    Outcome, PRECONDITION_CLASS, Placement, Placing, Plan, Precondition, Repeat, Simulator, Slice,
    Space, Synthetic, Transport, Victim, Workload, simulate, simulate_placed, sweep,
};

const RHO: Space = Space::OverProvisioning(0.15);

fn single(pages: u64, ru_pages: u32, space: Space) -> Config {
    let geometry = Geometry::unhinted(pages, ru_pages, space);
    Config::unhinted(Geometry { frontier: Frontier::Single, ..geometry })
}

/// A drive with a stream per lifetime.
fn ideal(pages: u64, space: Space, isolation: Isolation, victim: Victim) -> Config {
    let geometry = Geometry { streams: 6, isolation, ..Geometry::unhinted(pages, 64, space) };
    Config { victim, transport: Transport::Ideal, ..Config::unhinted(geometry) }
}

fn run(config: &Config, workload: &str, hints: Hints, overwrites: u64) -> Outcome {
    let pages = config.geometry.logical_pages;
    let mut source = Synthetic::parse(workload, pages as u32, hints, 3).unwrap();
    simulate(config, &Plan::overwrites(overwrites, pages), &mut source).unwrap()
}

#[test]
fn sequential_overwrites_cost_nothing() {
    for victim in Victim::ALL {
        for isolation in [Isolation::Initial, Isolation::Persistent] {
            let config = ideal(1 << 14, RHO, isolation, victim);
            let outcome = run(&config, "sequential", Hints::Off, 4);
            assert_eq!(outcome.waf, 1.0, "{} {isolation:?}", victim.name());
            assert_eq!(outcome.copied_pages, 0);
            assert_eq!(outcome.erases, outcome.host_pages / 64);
        }
    }
}

#[test]
fn an_aligned_extent_per_stream_costs_nothing() {
    // Streams are overwritten extent by extent, in turns, extents being whole units.
    let config = ideal(64 * 6 * 20, RHO, Isolation::Persistent, Victim::Greedy);
    let mut ops = Vec::new();
    for round in 0..200_u32 {
        for lifetime in 0..6_u8 {
            let extent = (round * (1 + u32::from(lifetime))) % 20;
            let page = (u32::from(lifetime) * 20 + extent) * 64;
            ops.push(Op { lifetime, ..Op::write(page, 64) });
        }
    }
    let plan = Plan {
        precondition: Precondition::None,
        age: Age::Pages(0),
        count: None,
        window_pages: 1 << 12,
    };
    let outcome = simulate(&config, &plan, &mut Slice::new(&ops)).unwrap();
    assert_eq!(outcome.waf, 1.0);
    assert!(outcome.erases > 0);
}

#[test]
fn trimming_everything_makes_the_drive_new() {
    for kind in [Kind::Trim, Kind::WriteZeroes] {
        for victim in Victim::ALL {
            let pages = 1_u32 << 14;
            let config = Config { victim, ..single(pages.into(), 64, RHO) };
            let mut simulator = Simulator::new(&config).unwrap();
            let mut source = Synthetic::uniform(pages, 1);
            let mut ops = Vec::new();
            for _ in 0..64 {
                source.read(&mut ops).unwrap();
            }
            simulator.feed(&[Op::write(0, pages)]).unwrap();
            simulator.feed(&ops).unwrap();
            assert!(simulator.outcome().unwrap().copied_pages > 0);
            simulator.feed(&[Op { kind, ..Op::write(0, pages) }]).unwrap();
            assert!((0..pages).all(|page| simulator.location(page).is_none()));
            simulator.begin(1 << 12);
            for _ in 0..3 {
                simulator.feed(&[Op::write(0, pages)]).unwrap();
            }
            let outcome = simulator.outcome().unwrap();
            assert_eq!((outcome.waf, outcome.trimmed_pages), (1.0, 0), "{}", victim.name());
        }
    }
}

#[test]
fn amplification_depends_on_the_ratio_and_not_on_the_size() {
    let waf = |pages: u64, overwrites| {
        let config = single(pages, 64, Space::OverProvisioning(0.1111));
        run(&config, "uniform", Hints::Off, overwrites).waf
    };
    let reference = waf(1 << 20, 8);
    for (pages, overwrites) in [(1 << 16, 60), (100_003, 60), (1 << 18, 20), (1 << 22, 5)] {
        let found = waf(pages, overwrites);
        assert!((found / reference - 1.0).abs() < 0.005, "{pages} pages: {found}, {reference}");
    }
}

#[test]
fn space_need_not_be_whole_units_with_one_frontier() {
    // 17.6 units of 4096 pages: rounding to 17 or 18 would change the spare by a tenth.
    let waf = |ru_pages| {
        let space = Space::Net { pages: 72_090 };
        run(&single(1 << 16, ru_pages, space), "uniform", Hints::Off, 60).waf
    };
    let (large, small) = (waf(4096), waf(1024));
    assert!((large / small - 1.0).abs() < 0.05, "{large} {small}");
}

#[test]
fn wrong_labels_cost_more_the_more_there_are() {
    for victim in [Victim::Quota, Victim::CostBenefit] {
        let config = ideal(1 << 17, RHO, Isolation::Persistent, victim);
        let wafs = [0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5]
            .map(|chance| run(&config, "hotcold:10/90", Hints::Flip(chance), 10).waf);
        assert!(wafs.is_sorted(), "{}: {wafs:?}", victim.name());
        assert!(wafs[6] > 1.25 * wafs[0], "{}: {wafs:?}", victim.name());
    }
}

#[test]
fn exact_streams_never_hurt_under_quota() {
    for workload in ["hotcold:20/80", "hotcold:50/50", "log+random:40/5"] {
        let config = ideal(1 << 17, RHO, Isolation::Persistent, Victim::Quota);
        let apart = run(&config, workload, Hints::Exact, 10).waf;
        let mixed = run(&config, workload, Hints::Off, 10).waf;
        assert!(apart <= mixed * 1.005, "{workload}: {apart} apart, {mixed} mixed");
    }
}

#[test]
fn zipf_in_one_fifo_meets_the_form_for_its_pages_as_classes() {
    let pages = 1_u32 << 17;
    let weights: Vec<f64> = (1..=pages).map(|rank| f64::from(rank).powf(-0.9)).collect();
    let sum: f64 = weights.iter().sum();
    let classes: Vec<Class> = weights
        .iter()
        .map(|weight| Class {
            space: 1.0 / f64::from(pages),
            traffic: weight / sum,
            death: Death::Random,
        })
        .collect();
    let config = Config { victim: Victim::Fifo, ..single(pages.into(), 64, RHO) };
    let found = run(&config, "zipf:0.9", Hints::Off, 40).waf;
    let form = mixed_fifo(1.15, &classes);
    assert!((found / form - 1.0).abs() < 0.005, "{found} {form}");
}

#[test]
fn the_same_seed_gives_the_same_with_any_number_of_threads() {
    let outcomes = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let job = |i: usize| {
            let config = ideal(1 << 14, RHO, Isolation::Persistent, Victim::ALL[i % 4]);
            let by_class = i.is_multiple_of(2);
            run(&Config { by_class, ..config }, "log+random:50/5", Hints::Exact, 4)
        };
        pool.install(|| sweep(12, job, |_| ()))
    };
    let one = outcomes(1);
    assert_eq!(one, outcomes(3));
    assert_eq!(one, outcomes(12));
}

#[test]
fn accounts_add_up() {
    let mut config = ideal(1 << 15, RHO, Isolation::Initial, Victim::Greedy);
    let without = run(&config, "hotcold:20/80", Hints::Exact, 6);
    config.by_class = true;
    let with = run(&config, "hotcold:20/80", Hints::Exact, 6);
    assert_eq!((without.waf, without.erases), (with.waf, with.erases));
    assert!(without.per_class.is_empty());
    assert!(without.per_stream.iter().all(|share| share.copied_pages.is_none()));
    let classes: Vec<u32> = with.per_class.iter().map(|share| share.id).collect();
    assert_eq!(classes, [0, 1, u32::from(PRECONDITION_CLASS)]);
    for shares in [&with.per_class, &with.per_stream] {
        let host: u64 = shares.iter().map(|share| share.host_pages).sum();
        let copied: u64 = shares.iter().filter_map(|share| share.copied_pages).sum();
        assert_eq!((host, copied), (with.host_pages, with.copied_pages));
    }
    assert_eq!(with.flash_pages, with.host_pages + with.copied_pages);
    assert_eq!(with.victims_by_valid_ratio.iter().sum::<u64>(), with.erases);
    let (mut host, mut flash) = (0, 0);
    for window in &with.windows {
        host += window.host_pages;
        flash += window.flash_pages;
    }
    assert_eq!(with.windows.len(), 16);
    assert_eq!((host, flash), (with.host_pages, with.flash_pages));
    let cold = with.per_class[1];
    let hot = with.per_class[0];
    let ratio = |s: shelflife_ssd::Share| s.copied_pages.unwrap() as f64 / s.host_pages as f64;
    assert!(ratio(cold) > 2.0 * ratio(hot), "cold {} hot {}", ratio(cold), ratio(hot));
}

#[test]
fn a_write_buffer_absorbs_what_is_written_again_at_once() {
    let pages = 1_u64 << 14;
    let mut config = single(pages, 64, RHO);
    // Every page is written three times in a row, as a commit log's last page is.
    let ops: Vec<Op> = (0..60_000_u32).map(|i| Op::write(i / 3 % pages as u32, 1)).collect();
    let plan = Plan {
        precondition: Precondition::Sequential,
        age: Age::Pages(0),
        count: None,
        window_pages: 6000,
    };
    let without = simulate(&config, &plan, &mut Slice::new(&ops)).unwrap();
    assert!(without.waf > 1.0 && without.absorbed_pages == 0);
    config.buffer_pages = 16;
    let outcome = simulate(&config, &plan, &mut Slice::new(&ops)).unwrap();
    assert_eq!(outcome.absorbed_pages, 40_000);
    assert!((outcome.waf - 1.0 / 3.0).abs() < 0.001, "{}", outcome.waf);
    assert_eq!(outcome.notes, ["write buffer of 16 pages"]);
}

#[test]
fn one_class_costs_less_than_ten_bytes_per_page() {
    let pages = 1_u64 << 22;
    let config = single(pages, 4096, Space::OverProvisioning(0.28));
    let plain = Simulator::new(&config).unwrap().memory_bytes() as f64 / pages as f64;
    assert!(plain <= 10.0, "{plain}");
    let mut tagged = Simulator::new(&Config { by_class: true, ..config }).unwrap();
    let other = Op { class: 1, ..Op::write(1, 1) };
    tagged.feed(&[Op::write(0, 1), other]).unwrap();
    let with_classes = tagged.memory_bytes() as f64 / pages as f64;
    assert!(with_classes <= 11.0, "{with_classes}");
}

#[test]
fn steadiness_is_found_when_there_is_some() {
    let config = single(1 << 16, 64, RHO);
    let pages = 1_u64 << 16;
    let plan = |at_most| Plan {
        precondition: Precondition::Random { seed: 5 },
        age: Age::UntilSteady { at_most },
        count: Some(10 * pages),
        window_pages: 2 * pages,
    };
    let mut source = Synthetic::uniform(1 << 16, 9);
    let outcome = simulate(&config, &plan(200 * pages), &mut source).unwrap();
    assert_eq!(outcome.host_pages, 10 * pages);
    let form = shelflife_ssd::analytic::greedy(1.15, 64);
    assert!((outcome.waf / form - 1.0).abs() < 0.01, "{} {form}", outcome.waf);
    // A drive that is still filling its spare is not steady.
    let rising: Vec<_> = (1..=8)
        .map(|i| shelflife_ssd::Window { host_pages: 100, flash_pages: 100 + 20 * i })
        .collect();
    let verdict = shelflife_ssd::steady::judge(&rising, 0.005);
    assert!(!verdict.reached && verdict.windows == 8 && verdict.trend > 0.5, "{verdict:?}");
    let verdict = shelflife_ssd::steady::judge(&rising[..3], 0.005);
    assert!(!verdict.reached && verdict.windows == 0);
    let flat = [rising[0]; 8];
    assert!(shelflife_ssd::steady::judge(&flat, 0.005).reached);
}

#[test]
fn clairvoyants_are_not_beaten_under_quota() {
    let pages = 1_u64 << 16;
    for workload in ["log+random:50/5", "hotcold:20/80"] {
        let config = ideal(pages, RHO, Isolation::Persistent, Victim::Quota);
        let source = || Synthetic::parse(workload, pages as u32, Hints::Exact, 3).unwrap();
        let plan = Plan::overwrites(8, pages);
        let hinted = simulate(&config, &plan, &mut source()).unwrap();
        let unhinted = run(&config, workload, Hints::Off, 8);
        let deaths = Deaths::scan(&mut source(), pages, Some(12 * pages)).unwrap();
        let oracle =
            simulate_placed(&config, &plan, &mut source(), Placing::Deaths(deaths)).unwrap();
        assert_eq!(oracle.placement, Placement::DeathTime);
        assert!(oracle.waf < hinted.waf, "{workload}: {} {}", oracle.waf, hinted.waf);
        assert!(hinted.waf < unhinted.waf);
    }
}

/// A workload whose file is its class, as if each class were a file.
struct FilePerClass(Synthetic);

impl Workload for FilePerClass {
    fn read(&mut self, ops: &mut Vec<Op>) -> Result<(), Error> {
        let before = ops.len();
        self.0.read(ops)?;
        for op in &mut ops[before..] {
            op.file = 40 + u32::from(op.class);
            op.lifetime = 0;
        }
        Ok(())
    }
}

#[test]
fn the_clairvoyant_by_file_finds_the_classes() {
    let pages = 1_u64 << 16;
    let source =
        || FilePerClass(Synthetic::parse("hotcold:10/90", pages as u32, Hints::Off, 3).unwrap());
    let files = FileStreams::scan(&mut source(), pages, Some(8 * pages), 2).unwrap();
    assert_ne!(files.stream(40), files.stream(41));
    let config = ideal(pages, RHO, Isolation::Persistent, Victim::Quota);
    let plan = Plan::overwrites(8, pages);
    let by_file = simulate_placed(&config, &plan, &mut source(), Placing::Files(files)).unwrap();
    assert_eq!(by_file.placement, Placement::File);
    let hinted = run(&config, "hotcold:10/90", Hints::Exact, 8);
    assert!((by_file.waf / hinted.waf - 1.0).abs() < 0.02, "{} {}", by_file.waf, hinted.waf);
}

#[test]
fn a_repeated_workload_goes_on_and_an_empty_one_ends() {
    let ops = [Op::write(0, 8), Op::write(4, 8)];
    let plan = Plan {
        precondition: Precondition::None,
        age: Age::Pages(3),
        count: Some(1000),
        window_pages: 100,
    };
    let mut twice = Repeat::new(|| Ok(Slice::new(&ops))).unwrap();
    let outcome = simulate(&single(64, 4, RHO), &plan, &mut twice).unwrap();
    assert_eq!(outcome.host_pages, 1000);
    assert_eq!(outcome.windows.len(), 10);
    let trims = [Op { kind: Kind::Trim, ..Op::write(0, 8) }];
    for nothing in [&[][..], &trims[..]] {
        let mut source = Repeat::new(|| Ok(Slice::new(nothing))).unwrap();
        let error = simulate(&single(64, 4, RHO), &plan, &mut source).unwrap_err();
        assert!(matches!(error, Error::Nothing), "{error}");
    }
}

#[test]
fn lifetimes_arrive_as_the_kernel_sends_them() {
    let streams = |transport: Transport, streams| {
        Lifetime::ALL.map(|lifetime| transport.stream(lifetime, streams))
    };
    // NOT_SET, NONE, SHORT, MEDIUM, LONG, EXTREME.
    assert_eq!(streams(Transport::NvmeRaw, 8), [0, 0, 1, 2, 3, 4]);
    assert_eq!(streams(Transport::NvmeRaw, 3), [0, 0, 1, 2, 0, 0]);
    assert_eq!(streams(Transport::Scsi, 6), [0, 1, 2, 3, 4, 5]);
    assert_eq!(streams(Transport::Scsi, 3), [0, 1, 2, 2, 2, 2]);
    assert_eq!(streams(Transport::F2fsFdp, 8), [1, 1, 0, 1, 1, 2]);
    assert_eq!(streams(Transport::F2fsFdp, 2), [0, 0, 0, 0, 0, 1]);
    assert_eq!(streams(Transport::F2fsScsi, 6), [0, 0, 2, 0, 0, 5]);
    assert_eq!(streams(Transport::Ideal, 6), [0, 1, 2, 3, 4, 5]);
    assert_eq!(streams(Transport::Unhinted, 8), [0; 6]);
    for transport in Transport::ALL {
        for n in 1..=128 {
            assert!(streams(transport, n).iter().all(|&stream| stream < n));
        }
    }
}

#[test]
fn f2fs_is_a_model_unless_recorded_there() {
    let mut config = ideal(1 << 12, RHO, Isolation::Initial, Victim::Greedy);
    config.transport = Transport::F2fsFdp;
    let notes = |config: &Config| run(config, "uniform", Hints::Off, 2).notes;
    assert!(notes(&config)[0].starts_with("model:"));
    config.recorded_on_f2fs = true;
    assert!(notes(&config).is_empty());
}

#[test]
fn results_name_their_conditions_in_json() {
    let config = ideal(1 << 12, RHO, Isolation::Persistent, Victim::Quota);
    let json = serde_json::to_value(run(&config, "hotcold:20/80", Hints::Exact, 2)).unwrap();
    assert_eq!(json["source"], "simulated");
    assert_eq!(json["victim"], "quota");
    assert_eq!(json["isolation"], "persistent");
    assert_eq!(json["frontier"], "separate");
    assert_eq!(json["transport"], "ideal");
    for key in ["waf", "host_pages", "flash_pages", "erases", "windows", "per_stream", "per_class"]
    {
        assert!(!json[key].is_null(), "{key}");
    }
    let sizes = &json["sizes"];
    let (rho, spare) = (&sizes["over_provisioning"], &sizes["spare_factor"]);
    let (rho, spare) = (rho.as_f64().unwrap(), spare.as_f64().unwrap());
    assert!((1.0 / (1.0 - spare) - 1.0 - rho).abs() < 1e-12);
    assert!(sizes["physical_over_provisioning"].as_f64().unwrap() > rho);
}

#[test]
fn bad_input_is_an_error_that_says_what_to_change() {
    let good = single(1 << 12, 64, RHO);
    let refused = |change: &dyn Fn(&mut Config)| {
        let mut config = good.clone();
        change(&mut config);
        Simulator::new(&config).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let says = |message: String, part: &str| assert!(message.contains(part), "{message}");
    says(refused(&|c| c.geometry.streams = 0), "0 streams: choose 1 to 128");
    says(refused(&|c| c.geometry.streams = 129), "129 streams");
    says(refused(&|c| c.geometry.ru_pages = 0), "reclaim unit of 0 pages");
    says(refused(&|c| c.geometry.ru_pages = 1 << 12), "choose smaller units");
    says(refused(&|c| c.geometry.page_bytes = 512), "choose 4096 or 8192");
    says(refused(&|c| c.geometry.logical_pages = 0), "no logical pages");
    says(refused(&|c| c.geometry.logical_pages = 1 << 33), "32-bit addresses");
    says(refused(&|c| c.buffer_pages = 1 << 12), "write buffer");
    for rho in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        says(refused(&|c| c.geometry.space = Space::OverProvisioning(rho)), "over-provisioning of");
    }
    says(refused(&|c| c.geometry.space = Space::Net { pages: 4096 }), "do not fit");
    let tight = Space::Physical { pages: 4500, reserved_rus: 1 };
    let message = refused(&|c| {
        c.geometry = Geometry { streams: 8, ..Geometry::unhinted(1 << 12, 64, tight) };
    });
    says(message, "9 open and 1 reserved units are taken off");

    let mut simulator = Simulator::new(&good).unwrap();
    assert!(matches!(simulator.outcome(), Err(Error::Nothing)));
    simulator.feed(&[Op::write(0, 4)]).unwrap();
    let message = simulator.feed(&[Op::write(5, 1), Op::write(4090, 7)]).unwrap_err().to_string();
    says(message, "operation 2 covers pages 4090 to 4097, but the drive ends at page 4096");
    let error = simulator.feed(&[Op { lifetime: 6, ..Op::write(0, 1) }]).unwrap_err();
    says(error.to_string(), "operation 3 has lifetime 6");
    // What came before the faulty operation was applied, and the drive goes on.
    assert_eq!(simulator.outcome().unwrap().host_pages, 5);
    simulator.feed(&[Op::write(u32::MAX - 4, 0)]).unwrap_err();
    simulator.feed(&[Op::write(4096, 0), Op::write(9, 1)]).unwrap();
    assert_eq!(simulator.outcome().unwrap().host_pages, 6);

    let mut many = Simulator::new(&Config { by_class: true, ..good.clone() }).unwrap();
    let ops: Vec<Op> = (0..257).map(|class| Op { class, ..Op::write(0, 1) }).collect();
    assert!(matches!(many.feed(&ops).unwrap_err(), Error::TooManyTags));
    for text in [
        "",
        "zipf",
        "zipf:x",
        "zipf:-1",
        "hotcold:20",
        "hotcold:0/80",
        "uniform:3",
        "log+random:50/0.000001",
    ] {
        let error = Synthetic::parse(text, 1 << 12, Hints::Off, 0).unwrap_err();
        assert!(matches!(error, Error::Workload { .. }), "{text}");
    }
    assert!(Synthetic::parse("uniform", 0, Hints::Off, 0).is_err());
    assert!(Synthetic::parse("hotcold:20/80", 9, Hints::Flip(1.5), 0).is_err());
}
