//! Prints the validation tables of `docs/design/simulator.md`: simulated beside closed form.
//!
//! `cargo run --release -p shelflife-ssd --example validate [PAGES [OVERWRITES]]`, about a minute.

use shelflife_ssd::analytic::{Class, Death, fifo, greedy, log_apart, mixed_fifo, optimum};
use shelflife_ssd::{
    Age, Config, Frontier, Geometry, Hints, Isolation, Plan, Precondition, Space, Synthetic,
    Transport, Victim, simulate, sweep,
};

/// A drive with `streams` streams and spare factor `spare`, units of 256 pages.
fn drive(
    pages: u32,
    spare: f64,
    streams: u32,
    isolation: Isolation,
    frontier: Frontier,
) -> Geometry {
    let rho = spare / (1.0 - spare);
    let plain = Geometry::unhinted(pages.into(), 256, Space::OverProvisioning(rho));
    Geometry { streams, isolation, frontier, ..plain }
}

fn waf(pages: u32, overwrites: u64, workload: &str, victim: Victim, geometry: Geometry) -> f64 {
    let transport = if geometry.streams > 1 { Transport::F2fsScsi } else { Transport::Unhinted };
    let config = Config { victim, transport, ..Config::unhinted(geometry) };
    let half = overwrites * u64::from(pages) / 2;
    let plan = Plan {
        precondition: Precondition::None,
        age: Age::Pages(u64::from(pages) + half),
        ..Plan::overwrites(overwrites, pages.into())
    };
    let run = || {
        let mut source = Synthetic::parse(workload, pages, Hints::Exact, 1)?.with_first_pass();
        Ok::<f64, shelflife_ssd::Error>(simulate(&config, &plan, &mut source)?.waf)
    };
    run().unwrap_or_else(|error| {
        eprintln!("{workload}: {error}");
        f64::NAN
    })
}

fn main() {
    use Frontier::{Separate, Single};
    use Isolation::{Initial, Persistent};
    use Victim::{CostBenefit, Fifo, Greedy, Quota};
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (Ok(pages), Ok(overwrites)) = (number(1 << 19), number(12)) else {
        eprintln!("usage: validate [PAGES [OVERWRITES]]");
        std::process::exit(2);
    };
    let pages = pages as u32;

    let only = std::env::var("ONLY").is_ok();
    if !only {
        println!("uniform, 256 pages per unit\nS_f    FIFO form sim   greedy form sim");
        let spares = [0.05, 0.07, 0.10, 0.15, 0.20, 0.25, 0.28];
        let rows = sweep(
            spares.len(),
            |i| {
                let geometry = drive(pages, spares[i], 1, Initial, Single);
                [Fifo, Greedy].map(|victim| waf(pages, overwrites, "uniform", victim, geometry))
            },
            |_| (),
        );
        for (spare, [f, g]) in spares.iter().zip(rows) {
            let alpha = 1.0 / (1.0 - spare);
            println!("{spare:.2}  {:7.3} {f:7.3}  {:7.3} {g:7.3}", fifo(alpha), greedy(alpha, 256));
        }
    }

    println!(
        "\n                       S_f   mixed FIFO       mixed greedy  no hint greedy/CB  \
         PI greedy  PI2 greedy  II greedy  PI CB  PI2 CB  II CB  quota PI/PI2/II  optimum"
    );
    let shapes =
        ["hotcold:0.2/0.8", "hotcold:0.1/0.9", "log+random:0.3/0.02", "log+random:0.5/0.02"];
    let cases: Vec<(&str, f64)> =
        shapes.iter().flat_map(|&shape| [0.07, 0.15, 0.28].map(|spare| (shape, spare))).collect();
    let rows = sweep(
        cases.len(),
        |i| {
            let (shape, spare) = cases[i];
            let run = |victim, streams, isolation, frontier| {
                let geometry = drive(pages, spare, streams, isolation, frontier);
                waf(pages, overwrites, shape, victim, geometry)
            };
            // Two lifetimes arrive as groups 2 and 5: six streams, of which two are used.
            [
                run(Fifo, 1, Initial, Single),
                run(Greedy, 1, Initial, Single),
                run(Greedy, 1, Initial, Separate),
                run(CostBenefit, 1, Initial, Separate),
                run(Greedy, 6, Persistent, Single),
                run(Greedy, 6, Persistent, Separate),
                run(Greedy, 6, Initial, Separate),
                run(CostBenefit, 6, Persistent, Single),
                run(CostBenefit, 6, Persistent, Separate),
                run(CostBenefit, 6, Initial, Separate),
                run(Quota, 6, Persistent, Single),
                run(Quota, 6, Persistent, Separate),
                run(Quota, 6, Initial, Separate),
            ]
        },
        |_| (),
    );
    for ((shape, spare), row) in cases.iter().zip(rows) {
        let alpha = 1.0 / (1.0 - spare);
        let (space, traffic, log) = match *shape {
            "hotcold:0.2/0.8" => (0.2, 0.8, false),
            "hotcold:0.1/0.9" => (0.1, 0.9, false),
            "log+random:0.3/0.02" => (0.02, 0.3, true),
            _ => (0.02, 0.5, true),
        };
        let death = if log { Death::InOrder } else { Death::Random };
        let first = Class { space, traffic, death };
        let rest = Class { space: 1.0 - space, traffic: 1.0 - traffic, death: Death::Random };
        let best =
            if log { log_apart(alpha, first, fifo) } else { optimum(alpha, &[first, rest]).0 };
        print!("{shape:22} {spare:.2}  {:6.3}", mixed_fifo(alpha, &[first, rest]));
        for figure in row {
            print!(" {figure:6.3}");
        }
        println!(" | {best:6.3} ×P256 {:6.3}", best * greedy(alpha, 256) / fifo(alpha));
    }
}
