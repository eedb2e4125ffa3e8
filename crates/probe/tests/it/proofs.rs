//! Proofs of several paths, as people and programs get them.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use shelflife_probe::prove::{Proof, ProofReport, Ruling, prove};
use shelflife_probe::{Error, Verdict};

use crate::drives::nvme;
use crate::machine::Machine;

/// What `prove` of this path alone is refused for.
fn refused(path: &str) -> Error {
    prove(&[path.into()], &AtomicBool::new(false)).unwrap_err()
}

#[test]
fn what_has_no_file_beside_it_is_refused() {
    assert!(matches!(refused("/nowhere"), Error::Path { .. }));
    // as doctor does: not "beside /dev"
    assert!(matches!(refused("/dev/null"), Error::Special { .. }));
    let error = refused("/proc");
    assert!(matches!(error, Error::NothingToSee { .. }), "{error}");
    assert!(error.to_string().contains("/proc") && error.to_string().contains("no drive"));
}

/// A proof of two paths, with these outcomes.
fn proof(rulings: [Ruling; 2]) -> Proof {
    let mut machine = Machine::new("6.18.5-amd64");
    nvme(&mut machine, 0, "Samsung SSD 990 PRO 2TB");
    machine.mount((259, 0), "/srv/pg", "xfs", "/dev/nvme0n1", "attr2");
    machine.at("/srv/wal", (259, 0));
    let doctor = machine.doctor();
    let of = |(path, ruling): (&str, Ruling)| {
        let predicted = doctor.path(Path::new(path)).unwrap().answers.remove(0);
        let seen = match ruling {
            Ruling::Proven => Verdict::Delivered,
            Ruling::Disproven => Verdict::NotDelivered,
            Ruling::Unknown => Verdict::Unknown,
        };
        ProofReport {
            path: path.into(),
            ruling,
            sentence: format!("{}: {path}.", ruling.name()),
            buffered: seen,
            direct: seen,
            agrees: (seen != Verdict::Unknown).then_some(seen == predicted.buffered),
            predicted,
            watched: true,
            traced: true,
            totals: None,
            zones: Vec::new(),
            lifetimes: Vec::new(),
            notes: Vec::new(),
        }
    };
    let kernel = doctor.path(Path::new("/srv/pg")).unwrap().kernel;
    Proof::of(kernel, ["/srv/pg", "/srv/wal"].into_iter().zip(rulings).map(of).collect())
}

#[test]
fn the_worst_of_several_rulings_counts() {
    use Ruling::{Disproven, Proven, Unknown};
    for (rulings, worst) in [
        ([Proven, Proven], Proven),
        ([Proven, Disproven], Disproven),
        ([Unknown, Disproven], Unknown),
        ([Unknown, Proven], Unknown),
    ] {
        assert_eq!(proof(rulings).ruling, worst, "{rulings:?}");
    }
}

#[test]
fn several_proofs_begin_with_how_many_are_proven() {
    let text = proof([Ruling::Disproven, Ruling::Unknown]).text();
    assert!(text.starts_with("Proven for none of the 2 paths.\n"), "{text}");
    let text = proof([Ruling::Disproven, Ruling::Proven]).text();
    assert!(text.starts_with("Proven for 1 of 2 paths.\n"), "{text}");
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} is not in\n{text}"));
    // the table, then each path's own, in the order of the question
    assert!(at("as doctor predicts") < at("disproven: /srv/pg."), "{text}");
    assert!(at("disproven: /srv/pg.") < at("\nproven: /srv/wal."), "{text}");
    assert!(proof([Ruling::Proven; 2]).text().starts_with("Proven for all 2 paths.\n"));
}

#[test]
fn every_answer_has_its_own_ruling() {
    let json = serde_json::to_value(proof([Ruling::Proven, Ruling::Disproven])).unwrap();
    assert_eq!(json["ruling"], "disproven");
    assert_eq!(json["answers"][0]["ruling"], "proven");
    assert_eq!(json["answers"][1]["ruling"], "disproven");
    assert_eq!(json["answers"][1]["path"], "/srv/wal");
}
