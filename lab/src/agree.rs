//! Holds the answers of doctor and prove against what was seen.
//!
//! Invariant: no answer is no agreement; a cell agrees only if every answer that must be there is
//! there and says what was seen.

use serde::{Deserialize, Serialize};

use crate::observe::{self, HINTS, Probes, Seen, Tag};

/// The two ways of writing.
pub const MODES: [&str; 2] = ["buffered", "direct"];

/// What a stack did with hints, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The drive could tell lifetimes apart.
    Delivered,
    /// Only the file system could.
    FileSystemOnly,
    /// Nobody could.
    NotDelivered,
    /// Not known.
    Unknown,
}

impl Verdict {
    /// For the matrix.
    pub fn title(self) -> &'static str {
        match self {
            Verdict::Delivered => "delivered",
            Verdict::FileSystemOnly => "file system only",
            Verdict::NotDelivered => "not delivered",
            Verdict::Unknown => "unknown",
        }
    }
}

/// One mode of one cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mode {
    /// What doctor said beforehand.
    pub predicted: Option<Verdict>,
    /// What prove said to have seen.
    pub shown: Option<Verdict>,
    /// What the drive was told.
    pub seen: Verdict,
    /// Under which tags, in the order of [`HINTS`]; empty if not delivered.
    pub tags: Vec<Tag>,
    /// A copy went without its tag, too.
    pub partly: bool,
    /// What is wrong; none if all agree.
    pub trouble: Option<String>,
}

/// Judges one mode of one stack from the guest's lines. `prove` says that the program must have shown
/// it: prove writes files, so it has no answer for a raw device.
pub fn mode(lines: &[String], name: &str, prove: bool) -> Mode {
    let probes: Probes = observe::parse(lines);
    let seen = probes
        .get(name)
        .map_or(Seen::Unclear { why: "nothing was written".into() }, |p| observe::judge(name, p));
    let logs = observe::logs(lines);
    let doctor = answer(lines, "doctor");
    let predicted = doctor.as_ref().ok().and_then(|d| d.verdict(name));
    let prove = prove.then(|| answer(lines, "prove"));
    let shown = prove.as_ref().and_then(|p| p.as_ref().ok()).and_then(|p| p.verdict(name));
    let (verdict, tags, partly, mut trouble) = match seen {
        Seen::Delivered { tags, partly } => (Verdict::Delivered, tags, partly, None),
        Seen::NotDelivered if logs => (Verdict::FileSystemOnly, Vec::new(), false, None),
        Seen::NotDelivered => (Verdict::NotDelivered, Vec::new(), false, None),
        Seen::Unclear { why } => (Verdict::Unknown, Vec::new(), false, Some(why)),
    };
    if trouble.is_none() {
        let wrong = |word: &str, answer: &Result<Answers, String>| match answer {
            Err(why) => Some(why.clone()),
            Ok(answer) => answer.disagreement(word, name, verdict, &tags),
        };
        trouble = wrong("doctor", &doctor);
        trouble = trouble.or_else(|| prove.as_ref().and_then(|prove| wrong("prove", prove)));
    }
    Mode { predicted, shown, seen: verdict, tags, partly, trouble }
}

/// What the drive saw of a file on f2fs that is written and synced 16 KiB at a time, in the order of
/// [`HINTS`]; nothing if that was not tried or is not clear. Doctor has no word on it.
pub fn small(lines: &[String]) -> Option<Vec<Tag>> {
    match observe::judge(observe::SMALL, observe::parse(lines).get(observe::SMALL)?) {
        Seen::Delivered { tags, .. } => Some(tags),
        Seen::NotDelivered => Some(Vec::new()),
        Seen::Unclear { .. } => None,
    }
}

/// Doctor's verdict in the lines that it said.
pub fn predicted(lines: &[String], mode: &str) -> Result<Verdict, String> {
    answer(lines, "doctor")?.verdict(mode).ok_or_else(|| "doctor gave no answer".to_owned())
}

/// What of an answer matters here; that of prove has the same form.
#[derive(Debug, Deserialize)]
struct Answers {
    answers: Vec<Answer>,
}

#[derive(Debug, Deserialize)]
struct Answer {
    buffered: Verdict,
    direct: Verdict,
    lifetimes: Vec<Lifetime>,
}

#[derive(Debug, Deserialize)]
struct Lifetime {
    lifetime: String,
    buffered: Arrival,
    direct: Arrival,
}

/// What doctor expects the drive to see, or prove saw; null where it does not know.
#[derive(Debug, Deserialize)]
struct Arrival {
    stream: Option<u16>,
    group: Option<u16>,
    placement: Option<u16>,
    /// Prove: it saw the commands, so that no placement is none.
    #[serde(default)]
    known: bool,
}

impl Arrival {
    fn tag(&self) -> Option<Tag> {
        match (self.group, self.placement, self.stream) {
            (Some(0), ..) | (None, None, Some(0)) => Some(None),
            (Some(group), ..) => Some(Some(group)),
            (None, Some(placement), _) => Some(Some(placement)),
            // the lab's namespaces list their handles in order
            _ if self.known => Some(None),
            (None, None, Some(stream)) => Some(Some(stream - 1)),
            (None, None, None) => None,
        }
    }
}

impl Answers {
    fn verdict(&self, mode: &str) -> Option<Verdict> {
        let answer = self.answers.first()?;
        Some(if mode == "direct" { answer.direct } else { answer.buffered })
    }

    fn disagreement(&self, word: &str, mode: &str, seen: Verdict, tags: &[Tag]) -> Option<String> {
        let Some(said) = self.verdict(mode) else { return Some(format!("{word}: no answer")) };
        if said != seen {
            return Some(format!("{word} said {}", said.title()));
        }
        for (hint, seen) in HINTS.iter().zip(tags) {
            let expected = self.answers.first()?.lifetimes.iter().find(|l| l.lifetime == *hint);
            let expected = expected
                .map(|l| if mode == "direct" { &l.direct } else { &l.buffered })
                .and_then(Arrival::tag);
            match expected {
                Some(expected) if expected == *seen => {}
                Some(expected) => {
                    let (expected, seen) = (tag(expected), tag(*seen));
                    return Some(format!("{word} said {hint} as {expected}, it went as {seen}"));
                }
                None => return Some(format!("{word} does not know how {hint} arrives")),
            }
        }
        None
    }
}

/// A tag for people.
pub fn tag(tag: Tag) -> String {
    tag.map_or_else(|| "none".to_owned(), |tag| tag.to_string())
}

/// The JSON that a verb printed: the line `WORD EXIT-CODE MILLISECONDS JSON`.
fn answer(lines: &[String], word: &str) -> Result<Answers, String> {
    let found = lines.iter().find_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    let line = found.ok_or_else(|| format!("{word} said nothing"))?;
    let json = line.splitn(3, ' ').nth(2).unwrap_or_default();
    serde_json::from_str(json).map_err(|e| format!("{word}'s answer can't be read: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stack where the first `n` of the hints arrive as groups 1, 2, …
    fn stack(groups: [u16; 5], doctor: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for (hint, group) in HINTS.iter().zip(groups) {
            lines.push(format!("probe buffered {hint}"));
            lines.push(format!("write scsi {group:02x} 4096"));
        }
        lines.push(format!("doctor 0 12 {doctor}"));
        lines
    }

    fn doctor(verdict: &str, groups: [u16; 5]) -> String {
        let arrival = |g: u16| format!(r#"{{"stream":0,"group":{g},"placement":null}}"#);
        let lifetimes: Vec<String> = HINTS
            .iter()
            .zip(groups)
            .map(|(hint, g)| {
                let a = arrival(g);
                format!(r#"{{"lifetime":"{hint}","buffered":{a},"direct":{a}}}"#)
            })
            .collect();
        format!(
            r#"{{"answers":[{{"buffered":"{verdict}","direct":"{verdict}","lifetimes":[{}]}}]}}"#,
            lifetimes.join(",")
        )
    }

    #[test]
    fn agreement_is_of_verdict_and_tags() {
        let groups = [0, 2, 3, 4, 5];
        let good = mode(&stack(groups, &doctor("delivered", groups)), "buffered", false);
        assert_eq!((good.seen, good.trouble), (Verdict::Delivered, None));
        let nothing = mode(&stack([0; 5], &doctor("not-delivered", [0; 5])), "buffered", false);
        assert_eq!((nothing.seen, nothing.trouble), (Verdict::NotDelivered, None));

        for wrong in [
            doctor("not-delivered", groups),
            doctor("unknown", groups),
            doctor("delivered", [0, 2, 3, 5, 4]),
            r#"{"answers":[]}"#.to_owned(),
            "no JSON".to_owned(),
        ] {
            let cell = mode(&stack(groups, &wrong), "buffered", false);
            assert!(cell.trouble.is_some(), "{wrong}");
        }
    }

    #[test]
    fn silence_is_no_agreement() {
        assert!(mode(&[], "buffered", false).trouble.is_some());
        let lines = stack([0; 5], &doctor("not-delivered", [0; 5]));
        assert!(mode(&lines[..lines.len() - 1], "buffered", false).trouble.is_some());
        assert!(mode(&lines, "direct", false).trouble.is_some());
    }
}
