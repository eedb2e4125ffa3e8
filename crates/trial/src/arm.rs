//! The arms of a trial: `off`, or a policy with its full text.
//!
//! Invariant: an arm carries the text that it runs, so that results stay true when a file changes.
//! Two arms with the same name have the same text.

use serde::{Deserialize, Serialize};
use shelflife_layout::{Layout, Table};
use shelflife_policy::Policy;
use shelflife_run::{PolicyError, policy_text};

use crate::error::{Error, Result};

/// The name of the arm that is no policy but the switch.
pub const OFF: &str = "off";

/// The most arms of a trial.
pub const MAX_ARMS: usize = 16;

/// One arm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arm {
    /// What it is called in tables: its name, with `#1`, `#2`, … where several have the same.
    pub label: String,
    /// `off` or the policy's name.
    pub name: String,
    /// Where the policy came from; absent for `off`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The policy's text; absent for `off`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
}

impl Arm {
    /// The arms named in `names`: `off`, a shipped policy, or the path of a policy file.
    ///
    /// # Errors
    ///
    /// [`Error::Policy`], [`Error::Layout`], [`Error::Spec`].
    pub fn all<T: AsRef<str>>(names: &[T]) -> Result<Vec<Arm>> {
        let mut arms = Vec::with_capacity(names.len());
        for name in names {
            arms.push(Arm::read(name.as_ref())?);
        }
        let same = |arm: &Arm| arms.iter().filter(|other| other.name == arm.name).count() > 1;
        let mut labels: Vec<String> = Vec::with_capacity(arms.len());
        for (at, arm) in arms.iter().enumerate() {
            let before = arms[..at].iter().filter(|other| other.name == arm.name).count();
            labels.push(match same(arm) {
                true => format!("{}#{}", arm.name, before + 1),
                false => arm.name.clone(),
            });
        }
        for (arm, label) in arms.iter_mut().zip(labels) {
            arm.label = label;
        }
        check(&arms)?;
        Ok(arms)
    }

    fn read(name: &str) -> Result<Arm> {
        if name == OFF {
            return Ok(Arm { label: OFF.into(), name: OFF.into(), origin: None, policy: None });
        }
        let failed =
            |source: PolicyError| Error::Policy { arm: name.to_owned(), source: source.into() };
        let (text, origin) = policy_text(name).map_err(failed)?;
        let policy = parse(&text, &origin).map_err(failed)?;
        // The parser takes text only.
        let text = String::from_utf8_lossy(&text).into_owned();
        let name = policy.name().to_owned();
        Ok(Arm { label: name.clone(), name, origin: Some(origin), policy: Some(text) })
    }

    /// The policy, parsed; `None` for `off`.
    ///
    /// # Errors
    ///
    /// [`Error::Policy`], [`Error::Layout`].
    pub fn parsed(&self) -> Result<Option<Policy>> {
        let Some(text) = &self.policy else { return Ok(None) };
        let policy = parse(text.as_bytes(), self.origin.as_deref().unwrap_or(&self.name))
            .map_err(|source| Error::Policy { arm: self.label.clone(), source: source.into() })?;
        if policy.layout() != Layout::Postgres {
            return Err(Error::Layout { arm: self.label.clone() });
        }
        Ok(Some(policy))
    }

    /// The hints that it wants: those of its policy, or none at all.
    ///
    /// # Errors
    ///
    /// As [`Arm::parsed`].
    pub fn table(&self) -> Result<Table> {
        Ok(match self.parsed()? {
            Some(policy) => policy.compile(),
            None => {
                let table = Table::default();
                table.clear(Layout::Postgres);
                table
            }
        })
    }
}

fn parse(text: &[u8], origin: &str) -> Result<Policy, PolicyError> {
    Ok(Policy::parse(text, origin)?)
}

/// That these arms can be told apart and run, also if they come from a file.
pub(crate) fn check(arms: &[Arm]) -> Result<()> {
    if !(2..=MAX_ARMS).contains(&arms.len()) {
        let found = arms.len();
        return Err(Error::Spec(format!(
            "a trial compares 2 to {MAX_ARMS} arms, got {found}: --policies off,temp-vs-rest"
        )));
    }
    for (at, arm) in arms.iter().enumerate() {
        let named = arm.parsed()?.map_or(OFF.to_owned(), |policy| policy.name().to_owned());
        if arm.name != named {
            let name = &arm.name;
            return Err(Error::Spec(format!("arm {name} holds a policy named {named}")));
        }
        for other in &arms[..at] {
            if other.label == arm.label {
                return Err(Error::Spec(format!("two arms are called {}", arm.label)));
            }
            if other.name == arm.name && other.policy != arm.policy {
                let name = &arm.name;
                return Err(Error::Spec(format!(
                    "two different policies are named {name}: give one of them another name"
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_arms_are_numbered() {
        let labels = |names: &[&str]| -> Vec<String> {
            Arm::all(names).unwrap().into_iter().map(|arm| arm.label).collect()
        };
        assert_eq!(labels(&["off", "off"]), ["off#1", "off#2"]);
        assert_eq!(
            labels(&["off", "wal-first", "temp-vs-rest", "wal-first"]),
            ["off", "wal-first#1", "temp-vs-rest", "wal-first#2"]
        );
    }

    #[test]
    fn what_makes_no_arms_is_told() {
        let told = |names: &[&str]| {
            let error = Arm::all(names).unwrap_err();
            match std::error::Error::source(&error) {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            }
        };
        assert!(told(&["off"]).contains("2 to 16 arms, got 1"));
        assert!(told(&["off", "wal-frist"]).contains("did you mean wal-first?"));
        assert!(told(&["off", "./nowhere.toml"]).contains("cannot read the policy"));
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let bad = file("bad.toml", "name = \"bad\"\nlayout = \"postgres\"\nspeed = 1\n");
        let said = told(&["off", &bad]);
        assert!(said.contains("bad.toml:3:1"), "{said}");
        let paths = file(
            "p.toml",
            "name = \"p\"\nlayout = \"paths\"\n[[rule]]\npath = \"*\"\nlifetime = \"short\"\n",
        );
        assert!(told(&["off", &paths]).contains("layout = \"postgres\""));
        let one = file("one.toml", "name = \"x\"\nlayout = \"postgres\"\ndefault = \"long\"\n");
        let two = file("two.toml", "name = \"x\"\nlayout = \"postgres\"\ndefault = \"short\"\n");
        assert!(told(&[&one, &two]).contains("two different policies are named x"));
        assert_eq!(Arm::all(&[&one, &one]).unwrap()[1].label, "x#2");
    }

    #[test]
    fn the_text_goes_along() {
        let arms = Arm::all(&["off", "temp-vs-rest"]).unwrap();
        assert_eq!(arms[0].policy, None);
        assert!(arms[1].policy.as_ref().unwrap().contains("default = \"extreme\""));
        let json = serde_json::to_string(&arms).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Arm>>(&json).unwrap(), arms);
        let lifetime =
            |arm: &Arm| arm.table().unwrap().lookup(shelflife_layout::Class::Wal, None, None);
        assert_eq!(lifetime(&arms[0]), None);
        assert_eq!(lifetime(&arms[1]), Some(shelflife_lifetime::Lifetime::Extreme));
    }
}
