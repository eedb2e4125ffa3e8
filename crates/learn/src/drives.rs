//! The drives that a policy is judged on: each under every victim rule and isolation.
//!
//! Invariant: all arms of a comparison have the same flash, and whoever opens a unit pays for it: T is
//! what is left when the units that an arm holds open are taken off. Without hints these are two,
//! since relocated data have a frontier of their own, so that no saving is only that.

use serde::Serialize;
use shelflife_lifetime::Lifetime;
use shelflife_simulate::{Pages, Size, Sized, Target};
use shelflife_ssd::{Config, Frontier, Geometry, Isolation, Sizes, Space, Transport, Victim};
use shelflife_trace::Meta;

use crate::Error;

/// Over-provisioning that is added for comparison: what a DBA would buy instead.
pub(crate) const MORE: f64 = 0.07;

/// Units that are open where nothing is hinted.
const OPEN_WITHOUT_HINTS: u32 = 2;

/// A drive's rules: what firmware decides.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Firmware {
    /// The drive.
    pub drive: String,
    /// Which unit is collected next.
    pub victim: Victim,
    /// Where relocated data go.
    pub isolation: Isolation,
    /// Whether these are the rules that the drive's profile states.
    pub own: bool,
}

/// One drive under one set of rules.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    pub firmware: Firmware,
    pub config: Config,
    /// Pages that are filled first, those of the trace among them.
    pub fill: u32,
}

impl Variant {
    /// `target` under all rules, for the trace of `meta`, which writes so many `pages`.
    pub fn all(
        target: &Target,
        transport: Transport,
        size: Size,
        pages: Pages,
        meta: &Meta,
    ) -> Result<Vec<Variant>, Error> {
        let on_f2fs = meta.file_system.as_deref() == Some("f2fs");
        let usage = meta.usage;
        let Sized { mut config, fill, .. } = size.of(target, pages, usage)?;
        config.transport = transport;
        config.recorded_on_f2fs = on_f2fs;
        config.by_class = false;
        let mut variants = Vec::new();
        for victim in Victim::ALL {
            for isolation in [Isolation::Initial, Isolation::Persistent] {
                let own = (victim, isolation) == (config.victim, config.geometry.isolation);
                let mut config = config.clone();
                (config.victim, config.geometry.isolation) = (victim, isolation);
                let firmware = Firmware { drive: target.name(), victim, isolation, own };
                let variant = Variant { firmware, config, fill };
                variant.unhinted().geometry.sizes().map_err(|source| {
                    shelflife_simulate::Error::OneDrive { drive: target.name(), source }
                })?;
                variants.push(variant);
            }
        }
        Ok(variants)
    }

    /// The drive that is told nothing, and keeps relocated data apart: two units are open.
    pub fn unhinted(&self) -> Config {
        let geometry =
            Geometry { frontier: Frontier::Separate, streams: 1, ..self.config.geometry };
        let space = match geometry.space {
            Space::Physical { pages, reserved_rus } => {
                let ru = u64::from(geometry.ru_pages.max(1));
                let held = u64::from(OPEN_WITHOUT_HINTS + reserved_rus);
                Space::Net { pages: (pages / ru).saturating_sub(held) * ru }
            }
            net => net,
        };
        let geometry = Geometry { space, ..geometry };
        Config { geometry, transport: Transport::Unhinted, ..self.config.clone() }
    }

    /// The drive with so many of its streams in use; `None` if too little is left.
    pub fn hinted(&self, used: u32) -> Option<Config> {
        let unhinted = space(&self.unhinted());
        let mut config = self.config.clone();
        let open = Geometry { streams: used, ..config.geometry }.frontiers();
        let ru = u64::from(config.geometry.ru_pages);
        let both = unhinted + u64::from(OPEN_WITHOUT_HINTS) * ru;
        config.geometry.space = Space::Net { pages: both.checked_sub(u64::from(open) * ru)? };
        config.geometry.sizes().is_ok().then_some(config)
    }

    /// How many streams these lifetimes, and no hint, are.
    pub fn used(&self, lifetimes: impl IntoIterator<Item = Lifetime>) -> u32 {
        let streams = self.config.geometry.streams;
        let of = |lifetime| self.config.transport.stream(lifetime, streams);
        let mut used = vec![of(Lifetime::NotSet)];
        for lifetime in lifetimes {
            if !used.contains(&of(lifetime)) {
                used.push(of(lifetime));
            }
        }
        // no more than there are lifetimes
        used.len() as u32
    }

    /// The same with more flash: ρ is [`MORE`] higher.
    pub fn larger(&self) -> Config {
        let mut config = self.unhinted();
        let more = (config.geometry.logical_pages as f64 * MORE) as u64;
        config.geometry.space = Space::Net { pages: space(&config) + more };
        config
    }

    /// The drive for `pages` of the trace's `of` pages, with units `one_in` times smaller.
    pub fn scaled(&self, pages: u32, of: u32, one_in: u32) -> Variant {
        let share = f64::from(pages) / f64::from(of.max(1));
        let scaled = |pages: u64| (pages as f64 * share).round() as u64;
        let mut variant = self.clone();
        let geometry = &mut variant.config.geometry;
        geometry.logical_pages = scaled(geometry.logical_pages).max(pages.into());
        geometry.ru_pages = (geometry.ru_pages / one_in.max(1)).max(1);
        geometry.space = match geometry.space {
            Space::OverProvisioning(rho) => Space::OverProvisioning(rho),
            Space::Net { pages } => Space::Net { pages: scaled(pages) },
            Space::Physical { pages, reserved_rus } => {
                Space::Physical { pages: scaled(pages), reserved_rus }
            }
        };
        variant.config.buffer_pages = scaled(self.config.buffer_pages.into()) as u32;
        variant.fill = pages + scaled(u64::from(self.fill.saturating_sub(of))) as u32;
        variant
    }

    /// The drive without `pages` of the trace's pages, and without their flash, told nothing.
    pub fn without(&self, pages: u32) -> (Config, u32) {
        let mut config = self.unhinted();
        let before = config.geometry.logical_pages;
        let after = before.saturating_sub(pages.into()).max(1);
        let share = after as f64 / before.max(1) as f64;
        config.geometry.space = Space::Net { pages: (space(&config) as f64 * share) as u64 };
        config.geometry.logical_pages = after;
        (config, self.fill.saturating_sub(pages))
    }

    /// A drive of its own for `pages` pages, with this one's net over-provisioning and victim rule.
    pub fn apart(&self, pages: u32, sizes: &Sizes) -> Config {
        let unit = (pages / 20).clamp(64, self.config.geometry.ru_pages.max(64));
        let space = Space::OverProvisioning(sizes.over_provisioning);
        let geometry = Geometry {
            page_bytes: self.config.geometry.page_bytes,
            ..Geometry::unhinted(pages.into(), unit, space)
        };
        Config { victim: self.firmware.victim, ..Config::unhinted(geometry) }
    }

    /// About how much memory a simulation takes, in bytes, as `shelflife_simulate` counts it, with
    /// what a clairvoyant adds.
    pub fn needs(&self, clairvoyant_writes: u64) -> u64 {
        let Ok(sizes) = self.config.geometry.sizes() else { return 0 };
        let unit = f64::from(sizes.ru_pages.next_power_of_two().max(64));
        let addresses = unit / f64::from(sizes.ru_pages.max(1));
        let physical = sizes.physical_pages as f64 * addresses * 9.25;
        sizes.logical_pages * 12 + physical as u64 + clairvoyant_writes * 12
    }
}

/// T of a configuration, in pages; 0 if it contradicts itself.
pub(crate) fn space(config: &Config) -> u64 {
    config.geometry.sizes().map_or(0, |sizes| sizes.net_pages)
}

#[cfg(test)]
mod tests {
    use shelflife_simulate::Rules;

    use super::*;

    fn variants(target: &Target, size: Size) -> Vec<Variant> {
        Variant::all(
            target,
            Transport::Scsi,
            size,
            Pages { written: 90_000, alive: 90_000 },
            &Meta::new("record", Vec::new()),
        )
        .unwrap()
    }

    #[test]
    fn whoever_opens_a_unit_pays_for_it() {
        let drives =
            [Target::named("ufs-5-groups").unwrap(), Target::Rules(Rules::over_provisioning(0.28))];
        for target in drives {
            for variant in variants(&target, Size::Fit(90.0)) {
                let ru = u64::from(variant.config.geometry.ru_pages);
                let open = |config: &Config, used| {
                    let geometry = Geometry { streams: used, ..config.geometry };
                    space(config) + u64::from(geometry.frontiers()) * ru
                };
                let all = open(&variant.unhinted(), 1);
                for used in 1..4 {
                    assert_eq!(open(&variant.hinted(used).unwrap(), used), all, "{variant:?}");
                }
            }
        }
        let [first, ..] = &variants(&Target::named("ufs-5-groups").unwrap(), Size::Fit(90.0))[..]
        else {
            panic!("no variant");
        };
        assert_eq!(first.used([Lifetime::Short, Lifetime::NotSet, Lifetime::Short]), 2);
        assert!(first.hinted(1000).is_none());
    }

    #[test]
    fn sizes_keep_their_ratios() {
        for size in [Size::Fit(90.0), Size::Live(92.0)] {
            for variant in variants(&Target::named("ufs-5-groups").unwrap(), size) {
                let small = variant.scaled(9_000, 90_000, 8);
                let ratio = |variant: &Variant| {
                    let config = variant.unhinted();
                    let live = f64::from(variant.fill) / config.geometry.logical_pages as f64;
                    (live, space(&config) as f64 / config.geometry.logical_pages as f64)
                };
                let (whole, small) = (ratio(&variant), ratio(&small));
                assert!((whole.0 - small.0).abs() < 0.001, "{variant:?}");
                assert!((whole.1 - small.1).abs() < 0.005, "{whole:?} {small:?}");
                let (rest, fill) = variant.without(10_000);
                let rho = space(&rest) as f64 / rest.geometry.logical_pages as f64;
                assert!((rho - whole.1).abs() < 0.001 && fill + 10_000 == variant.fill);
            }
        }
    }

    #[test]
    fn each_rule_and_isolation_is_there_once() {
        let variants = variants(&Target::named("fdp-8-initial").unwrap(), Size::Fit(90.0));
        assert_eq!(variants.len(), 8);
        assert_eq!(variants.iter().filter(|variant| variant.firmware.own).count(), 1);
    }
}
