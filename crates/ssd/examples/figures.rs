//! Prints the data of the two figures of `docs/design/simulator.md`.
//!
//! `cargo run --release -p shelflife-ssd --example figures`, about a minute.

use shelflife_ssd::analytic::greedy;
use shelflife_ssd::{
    Age, Config, Error, Frontier, Geometry, Hints, Isolation, Plan, Precondition, Space, Synthetic,
    Transport, Victim, simulate, sweep,
};

const PAGES: u32 = 1 << 19;
const SPARES: [f64; 7] = [0.05, 0.07, 0.10, 0.15, 0.20, 0.25, 0.28];

#[derive(Clone, Copy)]
struct Drive {
    streams: u32,
    isolation: Isolation,
    frontier: Frontier,
    victim: Victim,
}

fn waf(workload: &str, spare: f64, drive: Drive) -> Result<f64, Error> {
    let space = Space::OverProvisioning(spare / (1.0 - spare));
    let Drive { streams, isolation, frontier, victim } = drive;
    let unhinted = Geometry::unhinted(PAGES.into(), 256, space);
    let config = Config {
        geometry: Geometry { streams, isolation, frontier, ..unhinted },
        transport: if streams > 1 { Transport::Scsi } else { Transport::Unhinted },
        victim,
        ..Config::unhinted(unhinted)
    };
    let plan = Plan {
        precondition: Precondition::None,
        age: Age::Pages(7 * u64::from(PAGES)),
        ..Plan::overwrites(12, PAGES.into())
    };
    let source = Synthetic::parse(workload, PAGES, Hints::Exact, 1)?;
    Ok(simulate(&config, &plan, &mut source.with_first_pass())?.waf)
}

fn main() -> Result<(), Error> {
    use Isolation::{Initial, Persistent};
    let one = |frontier, victim| Drive { streams: 1, isolation: Initial, frontier, victim };
    let apart = |isolation, frontier, victim| Drive { streams: 6, isolation, frontier, victim };
    let naive = one(Frontier::Single, Victim::Greedy);
    let baseline = one(Frontier::Separate, Victim::Greedy);
    let persistent = apart(Persistent, Frontier::Single, Victim::Greedy);
    let initial = apart(Initial, Frontier::Separate, Victim::Greedy);
    let quota = apart(Persistent, Frontier::Single, Victim::Quota);
    let figures: [(&str, &[(&str, Drive)]); 2] = [
        (
            "hotcold:20/80",
            &[("mixed, greedy", naive), ("apart, greedy", persistent), ("apart, quota", quota)],
        ),
        (
            "log+random:50/2",
            &[
                ("no hints, greedy", baseline),
                ("apart, greedy, persistent", persistent),
                ("apart, greedy, initial", initial),
                ("apart, quota, persistent", quota),
            ],
        ),
    ];
    for (workload, lines) in figures {
        println!("\nsimulated: {workload}, 256 pages per unit\nS_f {SPARES:?}");
        if workload.starts_with("hot") {
            let form = SPARES.map(|spare| greedy(1.0 / (1.0 - spare), 256));
            println!("uniform, greedy (closed form): {form:.2?}");
        }
        for (name, drive) in lines {
            let row = sweep(SPARES.len(), |i| waf(workload, SPARES[i], *drive), |_| ());
            let row = row.into_iter().collect::<Result<Vec<f64>, Error>>()?;
            println!("{name}: {row:.2?}");
        }
    }
    Ok(())
}
