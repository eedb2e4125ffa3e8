//! How large a drive is for a trace, and how much of it is filled.
//!
//! Invariant: what the trace writes always fits, or it is said why not.

use shelflife_ssd::{Config, Fit, Sizes};
use shelflife_trace::Usage;

use crate::Error;
use crate::target::Target;

/// How drives are sized. What has no size of its own ([`Target::has_size`]) is always scaled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// In their own size, and full.
    Own,
    /// Scaled: the pages written are so many percent of the drive, the rest was never written.
    Fit(f64),
    /// In their own size; so many percent hold data, most of which the trace does not touch.
    Live(f64),
    /// Scaled to the recorded file system, and as full as that was.
    Recorded,
}

/// What a trace does to pages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pages {
    /// Different pages written.
    pub written: u64,
    /// Of these, not discarded when the trace ends.
    pub alive: u64,
}

/// A drive in its size.
#[derive(Clone, Debug)]
pub struct Sized {
    /// Its configuration, checked.
    pub config: Config,
    /// What comes of that.
    pub sizes: Sizes,
    /// Pages that are filled before anything else.
    pub fill: u32,
    /// Whether the pages that are written are moved together, to the beginning: the drive is not the one
    /// that the offsets are of.
    pub moved: bool,
}

impl Size {
    /// As [`Size::Recorded`] if that is known, else in their own size.
    pub fn usual(usage: Option<Usage>) -> Size {
        usage.map_or(Size::Own, |_| Size::Recorded)
    }

    /// Sizes `target` for a trace that writes so many `pages`.
    ///
    /// # Errors
    ///
    /// No share of live data; more is written than the drive holds; the trace does not say how full its
    /// file system was; or whatever contradicts itself.
    pub fn of(self, target: &Target, pages: Pages, usage: Option<Usage>) -> Result<Sized, Error> {
        let Pages { written: pages, alive } = pages;
        if let Size::Fit(share) | Size::Live(share) = self
            && !(share > 0.0 && share <= 100.0)
        {
            return Err(Error::Live(share));
        }
        let scaled =
            |live_pages, live_percent| target.config(Some(Fit { live_pages, live_percent }));
        let ((config, sizes), fill, moved) = match self {
            Size::Fit(share) => (scaled(pages, share)?, pages, true),
            Size::Live(share) if !target.has_size() => (scaled(pages, share)?, pages, true),
            Size::Own if !target.has_size() => (scaled(pages, 100.0)?, pages, true),
            Size::Own => {
                let own = target.config(None)?;
                let fill = own.1.logical_pages;
                (own, fill, false)
            }
            Size::Live(share) => {
                let own = target.config(None)?;
                let fill = (own.1.logical_pages as f64 * share / 100.0) as u64;
                if fill < pages {
                    return Err(Error::LargerThanLive { pages, drive: target.name(), live: fill });
                }
                (own, fill, true)
            }
            Size::Recorded => {
                let usage = usage.ok_or(Error::NoUsage)?;
                let of = |bytes: u64| bytes / u64::from(target.page_bytes().max(1));
                // the journal and its like are no blocks of the file system to `statvfs`
                let all = of(usage.bytes).max(pages);
                // what is in use in the end and was not written is cold; what was written and freed is not in use,
                // but must have its place until it is
                let cold = of(usage.used_bytes).saturating_sub(alive);
                (scaled(all, 100.0)?, pages.saturating_add(cold).min(all), true)
            }
        };
        // drives have fewer than 2^32 pages
        Ok(Sized { config, sizes, fill: fill.min(u64::from(u32::MAX)) as u32, moved })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Rules;

    #[test]
    fn a_drive_is_as_full_as_asked() {
        let profile = Target::named("enterprise-28").unwrap();
        let rules = Target::Rules(Rules::over_provisioning(0.28));
        let pages = Pages { written: 90_000, alive: 80_000 };
        let own = profile.config(None).unwrap().1.logical_pages;
        let usage = Some(Usage { bytes: 200_000 * 4096, used_bytes: 150_000 * 4096 });
        let of = |size: Size, target: &Target| {
            let found = size.of(target, pages, usage).unwrap();
            (found.sizes.logical_pages, u64::from(found.fill), found.moved)
        };
        assert_eq!(of(Size::Own, &profile), (own, own, false));
        assert_eq!(of(Size::Own, &rules), (90_000, 90_000, true));
        for target in [&profile, &rules] {
            assert_eq!(of(Size::Fit(90.0), target), (100_000, 90_000, true));
            // 70,000 pages are cold
            assert_eq!(of(Size::Recorded, target), (200_000, 160_000, true));
        }
        assert_eq!(of(Size::Live(50.0), &profile), (own, own / 2, true));
        assert_eq!(of(Size::Live(90.0), &rules), (100_000, 90_000, true));
        // more was written than was in use at either end
        let little = Some(Usage { bytes: 80_000 * 4096, used_bytes: 1 });
        let found = Size::Recorded.of(&rules, pages, little).unwrap();
        assert_eq!((found.sizes.logical_pages, found.fill), (90_000, 90_000));
    }

    #[test]
    fn what_cannot_be_sized_is_said() {
        let profile = Target::named("enterprise-28").unwrap();
        let error = |size: Size, pages| {
            let pages = Pages { written: pages, alive: pages };
            size.of(&profile, pages, None).unwrap_err().to_string()
        };
        assert!(error(Size::Recorded, 1).contains("--fit"), "{}", error(Size::Recorded, 1));
        assert!(error(Size::Live(0.001), 90_000_000).contains("enterprise-28"));
        for share in [0.0, -1.0, f64::NAN, 101.0] {
            assert!(error(Size::Fit(share), 1).contains("live data of"));
        }
    }
}
