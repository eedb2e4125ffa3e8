//! Debian packages without touching the machine: apt with lists, status and cache of its own.
//!
//! Invariant: nothing is installed and no setting of the machine changes. The mirror and the keys
//! are those of the machine's own apt configuration; no host is named here, and every package
//! comes through apt, which checks its signature chain.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::command::{output, run};
use crate::lab::CannotRun;

/// Where kernels and tools are looked for: the suites and whether the archive is the security one.
const SUITES: [(&str, bool); 9] = [
    ("bookworm", false),
    ("bookworm-security", true),
    ("bookworm-backports", false),
    (TOOLS_SUITE, false),
    ("trixie-security", true),
    ("trixie-backports", false),
    ("forky", false),
    ("sid", false),
    ("experimental", false),
];

/// The suite that QEMU and the programs of the guest come from.
pub const TOOLS_SUITE: &str = "trixie";

/// Overrides the mirror that the machine's own apt configuration names.
const MIRROR_VARIABLE: &str = "SHELFLIFE_LAB_MIRROR";

/// How long to wait before fetching is tried again.
const PAUSES: [Duration; 3] =
    [Duration::from_secs(5), Duration::from_secs(20), Duration::from_secs(60)];

/// A private apt below one folder.
pub struct Apt {
    config: PathBuf,
    archives: PathBuf,
}

/// One version of one package, as `apt-cache madison` lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The package's name.
    pub package: String,
    /// Its Debian version.
    pub version: String,
}

impl Apt {
    /// Prepares the private state below `folder`, and fetches the lists if there are none or
    /// `refresh` asks for new ones.
    pub fn open(folder: &Path, refresh: bool) -> Result<Apt> {
        let lists = folder.join("lists");
        let archives = folder.join("cache/archives");
        for part in [lists.join("partial"), archives.join("partial")] {
            std::fs::create_dir_all(&part).with_context(|| part.display().to_string())?;
        }
        let apt = Apt { config: folder.join("apt.conf"), archives };
        let done = folder.join("lists-complete");
        if done.exists() && !refresh {
            return Ok(apt);
        }
        let mirrors = Mirrors::of_this_machine()?;
        let sources: String = SUITES
            .iter()
            .filter_map(|(suite, security)| {
                let uri = if *security { mirrors.security.as_ref()? } else { &mirrors.archive };
                // the packages' lists only: a machine's configuration may want more
                Some(format!("deb [arch=amd64 target=Packages] {uri} {suite} main\n"))
            })
            .collect();
        let sources_list = folder.join("sources.list");
        std::fs::write(&sources_list, sources)?;
        std::fs::write(folder.join("status"), "")?;
        std::fs::write(&apt.config, configuration(folder, &sources_list))?;
        eprintln!("lab: fetching the lists of Debian's suites");
        patiently(apt.command("apt-get").args(["-qq", "update"]))?;
        std::fs::write(done, "")?;
        Ok(apt)
    }

    /// Every version of every package whose name begins with `prefix`.
    pub fn candidates(&self, prefix: &str) -> Result<Vec<Candidate>> {
        let names = output(self.command("apt-cache").args(["pkgnames", prefix]))?;
        let names: Vec<&str> = names.lines().collect();
        ensure!(!names.is_empty(), "no package {prefix}… in the lists; try --refresh");
        Ok(parse_madison(&output(self.command("apt-cache").arg("madison").args(names))?))
    }

    /// `packages` of the tools' suite and all that they depend on.
    pub fn closure(&self, packages: &[&str]) -> Result<Vec<Candidate>> {
        let plan = output(
            self.command("apt-get")
                .args(["-y", "--no-install-recommends", "--simulate", "-t", TOOLS_SUITE, "install"])
                .args(packages),
        )?;
        let all = parse_simulation(&plan);
        ensure!(!all.is_empty(), "apt-get --simulate install planned nothing");
        Ok(all)
    }

    /// The newest version of `package`.
    pub fn newest(&self, package: &str) -> Result<Candidate> {
        // madison lists the newest first
        let all = parse_madison(&output(self.command("apt-cache").args(["madison", package]))?);
        all.into_iter().next().with_context(|| format!("no package {package} in the lists"))
    }

    /// Fetches what is not there yet and returns the files, in the order asked for.
    pub fn fetch(&self, wanted: &[Candidate]) -> Result<Vec<PathBuf>> {
        let missing: Vec<String> = wanted
            .iter()
            .filter(|c| self.file(c).is_none())
            .map(|c| format!("{}={}", c.package, c.version))
            .collect();
        if !missing.is_empty() {
            eprintln!("lab: fetching {} packages", missing.len());
            patiently(
                self.command("apt-get")
                    .current_dir(&self.archives)
                    .args(["-qq", "download"])
                    .args(missing),
            )?;
        }
        wanted
            .iter()
            .map(|c| {
                self.file(c).with_context(|| {
                    format!("apt-get download left no file for {} {}", c.package, c.version)
                })
            })
            .collect()
    }

    /// The package's file, if it was fetched; its architecture is amd64 or all.
    fn file(&self, candidate: &Candidate) -> Option<PathBuf> {
        // apt writes the colon of a version as %3a
        let version = candidate.version.replace(':', "%3a");
        ["amd64", "all"].iter().find_map(|architecture| {
            let name = format!("{}_{version}_{architecture}.deb", candidate.package);
            Some(self.archives.join(name)).filter(|path| path.exists())
        })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", &self.config).env("LC_ALL", "C");
        // here and not in the file: configurations of containers, read after it, switch them off, and
        // every call would read all lists
        command.args(["-o", "Dir::Cache::pkgcache=pkgcache.bin"]);
        command.args(["-o", "Dir::Cache::srcpkgcache=srcpkgcache.bin"]);
        command
    }
}

/// Runs what fetches, again after a while if it fails: a mirror may be away for a moment.
fn patiently(command: &mut Command) -> Result<()> {
    for pause in PAUSES {
        match run(command) {
            Ok(()) => return Ok(()),
            Err(error) => eprintln!("lab: {error:#}\nlab: once more in {} s", pause.as_secs()),
        }
        std::thread::sleep(pause);
    }
    run(command).map_err(|error| CannotRun::because("packages could not be fetched", &error))
}

/// What `apt.conf` must say so that apt reads and writes below `folder` only.
fn configuration(folder: &Path, sources_list: &Path) -> String {
    let folder = folder.display();
    let sources_list = sources_list.display();
    format!(
        "Dir::State \"{folder}\";\n\
         Dir::State::Lists \"{folder}/lists\";\n\
         Dir::State::status \"{folder}/status\";\n\
         Dir::Cache \"{folder}/cache\";\n\
         Dir::Etc::sourcelist \"{sources_list}\";\n\
         Dir::Etc::sourceparts \"/dev/null\";\n\
         Dir::Etc::preferences \"/dev/null\";\n\
         Dir::Etc::preferencesparts \"/dev/null\";\n\
         APT::Architecture \"amd64\";\n\
         APT::Architectures {{ \"amd64\"; }};\n\
         APT::Sandbox::User \"root\";\n\
         Acquire::Languages \"none\";\n\
         APT::Update::Error-Mode \"any\";\n\
         Acquire::http::Timeout \"30\";\n\
         Acquire::https::Timeout \"30\";\n\
         Acquire::Retries \"3\";\n"
    )
}

/// Base addresses of the archive and, where the machine has it, of the security archive.
#[derive(Debug, PartialEq, Eq)]
struct Mirrors {
    archive: String,
    security: Option<String>,
}

impl Mirrors {
    fn of_this_machine() -> Result<Mirrors> {
        if let Ok(archive) = std::env::var(MIRROR_VARIABLE) {
            return Ok(Mirrors { archive, security: None });
        }
        let targets = output(Command::new("apt-get").args([
            "indextargets",
            "--format",
            "$(REPO_URI) $(ORIGIN)",
        ]))
        .map_err(|_| CannotRun("wants apt, to fetch Debian's kernels".to_owned()))?;
        Mirrors::parse(&targets)
    }

    /// Reads lines `URI ORIGIN`; the origin is missing while the machine has no lists yet.
    fn parse(targets: &str) -> Result<Mirrors> {
        let uris = || {
            targets.lines().filter_map(|line| {
                let mut words = line.split_whitespace();
                let uri = words.next()?.trim_end_matches('/');
                words.next().is_none_or(|origin| origin == "Debian").then_some(uri)
            })
        };
        let ends = |end: &str| uris().find(|uri| uri.ends_with(end)).map(str::to_owned);
        let Some(archive) = ends("/debian") else {
            let why = format!("apt knows no Debian archive here; name one in {MIRROR_VARIABLE}");
            return Err(CannotRun(why).into());
        };
        Ok(Mirrors { archive, security: ends("/debian-security") })
    }
}

/// Reads lines `package | version | source`.
fn parse_madison(text: &str) -> Vec<Candidate> {
    text.lines()
        .filter_map(|line| {
            let mut columns = line.split('|').map(str::trim);
            let (package, version, source) = (columns.next()?, columns.next()?, columns.next()?);
            source
                .ends_with("Packages")
                .then(|| Candidate { package: package.to_owned(), version: version.to_owned() })
        })
        .collect()
}

/// Reads lines `Inst package (version suite …)`.
fn parse_simulation(text: &str) -> Vec<Candidate> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.strip_prefix("Inst ")?.split_whitespace();
            let package = words.next()?.to_owned();
            let version = words.next()?.strip_prefix('(')?.to_owned();
            Some(Candidate { package, version })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_come_from_the_machines_own_sources() {
        let targets = "mirror+file:/x/ubuntu/ Ubuntu\nhttp://a.test/debian-security/ Debian\n\
                       http://a.test/debian/ Debian\nhttp://b.test/other/debian/ Other\n";
        let expected = Mirrors {
            archive: "http://a.test/debian".into(),
            security: Some("http://a.test/debian-security".into()),
        };
        assert_eq!(Mirrors::parse(targets).unwrap(), expected);
        // before the machine's first update, apt knows no origins
        let bare = Mirrors::parse("http://a.test/debian/ \n").unwrap();
        assert_eq!(bare, Mirrors { archive: "http://a.test/debian".into(), security: None });
        assert!(Mirrors::parse("http://a.test/ubuntu/ Ubuntu\n").is_err());
    }

    #[test]
    fn apt_answers_are_read() {
        let madison = " linux-image-7.0.4+deb13-amd64 | 7.0.4-1~bpo13+1 | http://m/debian \
                       trixie-backports/main amd64 Packages\n x | 1 | http://m/debian sid Sources\n";
        let package = "linux-image-7.0.4+deb13-amd64".to_owned();
        assert_eq!(
            parse_madison(madison),
            [Candidate { package, version: "7.0.4-1~bpo13+1".into() }]
        );
        let plan =
            "Reading…\nInst libc6 (2.41-12 Debian:13/stable [amd64]) []\nConf libc6 (2.41)\n";
        assert_eq!(
            parse_simulation(plan),
            [Candidate { package: "libc6".into(), version: "2.41-12".into() }]
        );
    }
}
