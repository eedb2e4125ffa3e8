//! Inside or outside: which files of a server and of its children are hinted.

use std::fs;
use std::path::{Path, PathBuf};

use shelflife_lifetime::Lifetime;

use crate::support::{Bed, for_postgres, hint_of};

const WAL: &str = "pg_wal/000000010000000000000001";

fn data_folder(bed: &Bed, name: &str) -> PathBuf {
    let dir = bed.folder(name);
    fs::create_dir_all(dir.join("base/5")).expect("a folder");
    fs::create_dir_all(dir.join("pg_wal")).expect("a folder");
    fs::write(dir.join("PG_VERSION"), "15\n").expect("a file");
    dir
}

fn step(kind: &str, path: impl AsRef<Path>) -> String {
    format!("{kind}:{}", path.as_ref().display())
}

#[test]
fn a_server_is_hinted_in_its_data_folder_and_nowhere_else() {
    let bed = Bed::new(&for_postgres(), &[]);
    let server = bed.compile("server", "postgres");
    let data = data_folder(&bed, "data");
    let second = data_folder(&bed, "second");
    let said = bed.output(
        &server,
        &[
            &step("cd", &data),
            &step("in", "base/5/16384"),
            &step("in", WAL),
            &step("fork", "base/5/16385"),
            &step("in", data.join("base/5/16386")),
            // another data folder, by any name
            &step("in", second.join("base/5/16384")),
            &step("in", "../second/base/5/16385"),
            &step("cd", &second),
            &step("in", "base/5/16386"),
            &step("cd", &data),
            &step("in", "base/5/16384"),
        ],
    );
    let hints: Vec<&str> = said.lines().map(|l| l.rsplit(' ').next().expect("a hint")).collect();
    assert_eq!(hints, ["4", "2", "4", "4", "0", "0", "0", "4"], "{said}");
}

#[test]
fn a_program_of_another_name_is_hinted_only_in_folders_that_the_run_names() {
    let scratch = tempfile::tempdir().expect("a folder");
    let data = scratch.path().canonicalize().expect("canonical").join("data");
    fs::create_dir_all(data.join("base/5")).expect("a folder");
    fs::write(data.join("PG_VERSION"), "15\n").expect("a file");
    let steps = [step("cd", &data), step("in", "base/5/16384")];
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();

    let unnamed = Bed::new(&for_postgres(), &[]);
    let program = unnamed.compile("server", "restore");
    assert_eq!(unnamed.output(&program, &steps), "base/5/16384 0\n");
    let named = Bed::new(&for_postgres(), std::slice::from_ref(&data));
    assert_eq!(named.output(&program, &steps), "base/5/16384 4\n");
}

#[test]
fn children_that_archive_or_export_are_not_hinted() {
    let bed = Bed::new(&for_postgres(), &[]);
    let server = bed.compile("server", "postgres");
    let data = data_folder(&bed, "data");
    let second = data_folder(&bed, "second");
    let archive = bed.folder("archive/pg_wal");
    let archived = archive.join("000000010000000000000001");
    let shell = format!(
        "cp {WAL} {}; cp {WAL} {}/{WAL}; cd {} && cp ../data/{WAL} base/5/16384",
        archived.display(),
        second.display(),
        second.display()
    );
    bed.output(&server, &[&step("cd", &data), &step("in", WAL), &step("sh", shell)]);
    assert_eq!(hint_of(&data.join(WAL)), Lifetime::Short);
    for outside in [archived, second.join(WAL), second.join("base/5/16384")] {
        assert_eq!(hint_of(&outside), Lifetime::NotSet, "{}", outside.display());
    }
}

#[test]
fn an_absolute_path_rule_reaches_outside() {
    let archive = tempfile::tempdir().expect("a folder");
    let archive = archive.path().canonicalize().expect("canonical");
    fs::create_dir_all(&archive).expect("a folder");
    let table = for_postgres();
    let glob = format!("{}/**", archive.display());
    table.path_rule(9, glob.as_bytes(), Lifetime::Medium).expect("room");
    let bed = Bed::new(&table, &[]);
    let server = bed.compile("server", "postgres");
    let data = data_folder(&bed, "data");
    let shell = format!("cp {WAL} {0}/a && cd {0} && cp a b", archive.display());
    bed.output(&server, &[&step("cd", &data), &step("in", WAL), &step("sh", shell)]);
    assert_eq!(hint_of(&archive.join("a")), Lifetime::Medium);
    assert_eq!(hint_of(&archive.join("b")), Lifetime::Medium);
    fs::remove_dir_all(archive).expect("removed");
}

#[test]
fn a_vfork_child_that_moves_leaves_its_parent_as_it_was() {
    let bed = Bed::new(&for_postgres(), &[]);
    let server = bed.compile("server", "postgres");
    let data = data_folder(&bed, "data");
    let second = data_folder(&bed, "second");
    let said = bed.output(
        &server,
        &[
            &step("cd", &data),
            &step("in", "base/5/16384"),
            &step("vfork-elsewhere", &second),
            &step("in", "base/5/16385"),
        ],
    );
    assert_eq!(said, "base/5/16384 4\nbase/5/16385 4\n");
    assert_eq!(hint_of(&second.join("base/5/16384")), Lifetime::NotSet);
}

#[test]
fn a_rule_for_the_data_folder_does_not_reach_outside_by_climbing() {
    let table = for_postgres();
    table.path_rule(9, b"pg_stat_tmp/*", Lifetime::Medium).expect("room");
    let bed = Bed::new(&table, &[]);
    let server = bed.compile("server", "postgres");
    let data = data_folder(&bed, "data");
    let elsewhere = bed.folder("elsewhere/pg_stat_tmp");
    bed.output(&server, &[&step("cd", &data), &step("in", "../elsewhere/pg_stat_tmp/x")]);
    assert_eq!(hint_of(&elsewhere.join("x")), Lifetime::NotSet);
}
