//! Drive profiles: `drives/*.toml`, shipped with the crate or given by the caller as text.
//!
//! Invariant: a profile that parses has a source for its numbers and makes a valid configuration. A
//! profile gives either all physical space (`over_provisioning`: open and reserved RUs are in it, so
//! streams cost spare) or an effective value (`net_over_provisioning`: they are not), never both.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::config::Config;
use crate::geometry::{Frontier, Geometry, Isolation, Space};
use crate::transport::Transport;
use crate::victim::Victim;

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../drives/", $name, ".toml")))),*]
    };
}

/// Name and text of every shipped profile.
const SHIPPED: &[(&str, &str)] = shipped![
    "consumer-7",
    "enterprise-28",
    "fdp-8-initial",
    "fdp-8-persistent",
    "ufs-5-groups",
    "warp-samsung",
    "warp-fadu",
];

/// Fewest pages of an RU that fitting to a trace may leave.
const MIN_RU_PAGES: u64 = 64;

/// A drive profile.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Drive {
    /// Short name.
    pub name: String,
    /// Where the numbers come from; at least one.
    pub sources: Vec<String>,
    /// Bytes of a page: 4096 or 8192.
    pub page_bytes: u32,
    /// Bytes the host can address; rounded down to pages.
    pub logical_bytes: u64,
    /// ρ of all physical space, open and reserved RUs in it.
    pub over_provisioning: Option<f64>,
    /// ρ net of open and reserved RUs.
    pub net_over_provisioning: Option<f64>,
    /// Bytes of a reclaim unit.
    pub ru_bytes: u64,
    /// RUs held back; with `over_provisioning` only.
    #[serde(default)]
    pub reserved_rus: u32,
    /// Streams (for SCSI: groups and one).
    pub streams: u32,
    /// Where relocated data go.
    pub isolation: Isolation,
    /// Whether they have frontiers of their own.
    pub frontier: Frontier,
    /// Victim rule.
    pub victim: Victim,
    /// Lifetime → stream.
    pub transport: Transport,
    /// Bytes of the power-protected write buffer; 0 for none.
    #[serde(default)]
    pub buffer_bytes: u64,
    /// Bytes that the host may write to it by its rating (TBW); the workload and write amplification
    /// that the rating assumes are the maker's own.
    pub rated_bytes: Option<u64>,
}

/// How to scale a drive to a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Pages that are alive in the trace's file system or device.
    pub live_pages: u64,
    /// How full the real drive is, in percent, above 0 to 100.
    pub live_percent: f64,
}

impl Drive {
    /// Names of the shipped profiles.
    pub fn shipped() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    /// The shipped profile `name`.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownDrive`] with the names there are.
    pub fn named(name: &str) -> Result<Drive, Error> {
        match SHIPPED.iter().find(|(known, _)| *known == name) {
            Some((name, text)) => Drive::parse(name, text),
            None => Err(Error::UnknownDrive {
                name: name.to_owned(),
                known: Drive::shipped().collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// Parses a profile; `origin` is the file's or drive's name, for errors.
    ///
    /// # Errors
    ///
    /// [`Error::Profile`] with line and column, or what contradicts what; or whatever is wrong with
    /// the sizes.
    pub fn parse(origin: &str, text: &str) -> Result<Drive, Error> {
        let wrong = |reason: String| Error::Profile { name: origin.to_owned(), reason };
        let drive: Drive = toml::from_str(text).map_err(|error| wrong(located(text, &error)))?;
        if drive.sources.is_empty() {
            return Err(wrong("`sources` is empty: say where the numbers come from".to_owned()));
        }
        if drive.over_provisioning.is_some() == drive.net_over_provisioning.is_some() {
            return Err(wrong(
                "give one of `over_provisioning` (open and reserved units in it) and \
                 `net_over_provisioning` (without them)"
                    .to_owned(),
            ));
        }
        if drive.net_over_provisioning.is_some() && drive.reserved_rus > 0 {
            return Err(wrong(
                "`reserved_rus` is already taken off in `net_over_provisioning`: leave it out"
                    .to_owned(),
            ));
        }
        if u64::from(drive.page_bytes) > drive.ru_bytes || drive.page_bytes == 0 {
            return Err(wrong("`ru_bytes` is less than a page".to_owned()));
        }
        drive.config(None)?.geometry.layout()?;
        Ok(drive)
    }

    /// The drive as a configuration, scaled if asked to.
    ///
    /// Scaling keeps the ratios: over-provisioning, the share of an RU in the drive and of the
    /// buffer in it (RUs no smaller than 64 pages).
    ///
    /// # Errors
    ///
    /// [`Error::Profile`] if the fit makes no sense.
    pub fn config(&self, fit: Option<Fit>) -> Result<Config, Error> {
        let wrong =
            |reason: &str| Error::Profile { name: self.name.clone(), reason: reason.into() };
        let page = u64::from(self.page_bytes.max(1));
        let full = self.logical_bytes / page;
        let (logical_pages, scale) = match fit {
            None => (full, 1.0),
            Some(Fit { live_pages, live_percent }) => {
                if !(live_percent > 0.0 && live_percent <= 100.0) {
                    return Err(wrong("fit to a live share above 0 and up to 100 %"));
                }
                let pages = (live_pages as f64 * 100.0 / live_percent).ceil();
                (pages as u64, pages / full.max(1) as f64)
            }
        };
        let scaled = |bytes: u64| (bytes as f64 / page as f64 * scale).round() as u64;
        let ru_pages = if fit.is_some() {
            scaled(self.ru_bytes).max(MIN_RU_PAGES)
        } else {
            self.ru_bytes / page
        };
        let too_long = |_| wrong("`ru_bytes` or `buffer_bytes` is too large");
        let space = match (self.over_provisioning, self.net_over_provisioning) {
            (Some(rho), _) if rho > 0.0 && rho.is_finite() => Space::Physical {
                pages: (logical_pages as f64 * (1.0 + rho)) as u64,
                reserved_rus: self.reserved_rus,
            },
            (Some(rho), _) => return Err(Error::OverProvisioning(rho)),
            (None, rho) => Space::OverProvisioning(rho.unwrap_or(0.0)),
        };
        Ok(Config {
            geometry: Geometry {
                page_bytes: self.page_bytes,
                logical_pages,
                ru_pages: ru_pages.try_into().map_err(too_long)?,
                space,
                streams: self.streams,
                isolation: self.isolation,
                frontier: self.frontier,
            },
            victim: self.victim,
            transport: self.transport,
            recorded_on_f2fs: false,
            buffer_pages: scaled(self.buffer_bytes).try_into().map_err(too_long)?,
            by_class: false,
        })
    }
}

/// `line 3, column 5: what is wrong`, in one line. The parser's own text shows the profile's line as it is,
/// however long, whatever is in it.
fn located(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let message: Vec<&str> = error.message().split_whitespace().collect();
    format!("line {line}, column {column}: {}", message.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_drive_parses_under_its_own_name() {
        for name in Drive::shipped() {
            let drive = Drive::named(name).unwrap();
            assert_eq!(drive.name, name);
            assert!(drive.config(None).unwrap().geometry.layout().is_ok(), "{name}");
        }
    }

    #[test]
    fn scaling_keeps_the_ratios() {
        let drive = Drive::named("enterprise-28").unwrap();
        let whole = drive.config(None).unwrap().geometry;
        let fit = Fit { live_pages: 9_000_000, live_percent: 90.0 };
        let small = drive.config(Some(fit)).unwrap().geometry;
        assert_eq!(small.logical_pages, 10_000_000);
        let units = |g: Geometry| g.logical_pages as f64 / f64::from(g.ru_pages);
        assert!((units(small) / units(whole) - 1.0).abs() < 0.01);
        let (small, whole) = (small.layout().unwrap().sizes(), whole.layout().unwrap().sizes());
        assert!((small.over_provisioning - whole.over_provisioning).abs() < 0.002);
    }

    #[test]
    fn streams_cost_spare_on_a_profile() {
        let mut drive = Drive::named("consumer-7").unwrap();
        let spare = |drive: &Drive| {
            let layout = drive.config(None).unwrap().geometry.layout().unwrap();
            layout.sizes().over_provisioning
        };
        let one = spare(&drive);
        drive.streams = 64;
        assert!(spare(&drive) < one - 0.003);
    }

    #[test]
    fn what_is_wrong_with_a_profile_is_said() {
        let good = SHIPPED[0].1;
        let error = |text: &str| Drive::parse("mine.toml", text).unwrap_err().to_string();
        assert!(error("name = 3").contains("line 1, column"), "{}", error("name = 3"));
        let torn = error(&format!("{good}\nsour\u{1b}[2J"));
        assert!(torn.contains(", column ") && torn.lines().count() == 1, "{torn}");
        assert!(!torn.contains('\u{1b}'), "{torn}");
        assert!(error(&format!("{good}\ncolour = 1")).contains("unknown field `colour`"));
        let both = format!("{good}\nnet_over_provisioning = 0.1");
        assert!(error(&both).contains("give one of"));
        assert_eq!(Drive::parse("x", good).unwrap().rated_bytes, Some(600_000_000_000_000));
        let huge = good.replace("ru_bytes = 67_108_864", "ru_bytes = 900_000_000_000");
        assert!(error(&huge).contains("do not fit"), "{}", error(&huge));
        let none = good.replace("streams = 1", "streams = 0");
        assert!(error(&none).contains("0 streams"));
        assert!(Drive::named("nope").unwrap_err().to_string().contains("consumer-7"));
    }
}
