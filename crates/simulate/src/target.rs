//! The drives that are simulated, and how they are sized.
//!
//! Invariant: over-provisioning is ρ = T/U − 1 everywhere, never the spare factor.

use shelflife_ssd::{
    Config, Drive, Fit, Frontier, Geometry, Isolation, Sizes, Space, Transport, Victim,
};

use crate::Error;

/// A drive.
#[derive(Clone, Debug)]
pub enum Target {
    /// A profile.
    Drive(Box<Drive>),
    /// A drive as large as what is written to it, by its rules.
    Rules(Rules),
}

/// A drive by its rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// ρ, net of open and reserved units; above 0, at most 10.
    pub over_provisioning: f64,
    /// Pages of a reclaim unit.
    pub ru_pages: u32,
    /// Streams.
    pub streams: u32,
    /// Where relocated data go.
    pub isolation: Isolation,
    /// Whether they have frontiers of their own.
    pub frontier: Frontier,
    /// Which unit is collected next.
    pub victim: Victim,
    /// Lifetime → stream.
    pub transport: Transport,
}

impl Rules {
    /// One stream for each lifetime, units of 256 pages, greedy, initially isolated.
    pub fn over_provisioning(rho: f64) -> Rules {
        Rules {
            over_provisioning: rho,
            ru_pages: 256,
            streams: 6,
            isolation: Isolation::Initial,
            frontier: Frontier::Separate,
            victim: Victim::Greedy,
            transport: Transport::Ideal,
        }
    }
}

impl Target {
    /// The shipped drive `name`.
    ///
    /// # Errors
    ///
    /// No such drive is shipped.
    pub fn named(name: &str) -> Result<Target, Error> {
        Ok(Target::Drive(Box::new(Drive::named(name)?)))
    }

    /// A drive by the text of its profile, which is called `origin` in errors.
    ///
    /// # Errors
    ///
    /// The profile is wrong; says where.
    pub fn parse(origin: &str, text: &str) -> Result<Target, Error> {
        Ok(Target::Drive(Box::new(Drive::parse(origin, text)?)))
    }

    /// The name in results: the profile's, or `op RHO`.
    pub fn name(&self) -> String {
        match self {
            Target::Drive(drive) => drive.name.clone(),
            Target::Rules(rules) => format!("op {}", rules.over_provisioning),
        }
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> u32 {
        match self {
            Target::Drive(drive) => drive.page_bytes,
            Target::Rules(_) => 4096,
        }
    }

    /// Whether it has a size of its own, where it is not asked to fit.
    pub fn has_size(&self) -> bool {
        matches!(self, Target::Drive(_))
    }

    /// The drive as a configuration, checked; with a fit: so large that `live_pages` are so many
    /// percent of it.
    ///
    /// # Errors
    ///
    /// Whatever contradicts itself.
    pub fn config(&self, fit: Option<Fit>) -> Result<(Config, Sizes), Error> {
        let one = |source| Error::OneDrive { drive: self.name(), source };
        if let Some(fit) = fit
            && fit.live_pages as f64 * 100.0 / fit.live_percent > f64::from(u32::MAX)
        {
            return Err(Error::TooEmpty { live_percent: fit.live_percent });
        }
        let mut config = match (self, fit) {
            (Target::Drive(drive), fit) => drive.config(fit).map_err(one)?,
            (Target::Rules(rules), fit) => {
                let rho = rules.over_provisioning;
                if !(rho > 0.0 && rho <= 10.0) {
                    return Err(Error::OverProvisioning(rho));
                }
                let pages =
                    fit.map_or(0, |fit| (fit.live_pages as f64 * 100.0 / fit.live_percent) as u64);
                let space = Space::OverProvisioning(rho);
                let geometry = Geometry {
                    streams: rules.streams,
                    isolation: rules.isolation,
                    frontier: rules.frontier,
                    ..Geometry::unhinted(pages, rules.ru_pages, space)
                };
                Config {
                    victim: rules.victim,
                    transport: rules.transport,
                    ..Config::unhinted(geometry)
                }
            }
        };
        config.by_class = true;
        let sizes = config.geometry.sizes().map_err(one)?;
        Ok((config, sizes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_drive_is_said() {
        let error = Target::named("enterprise-82").unwrap_err().to_string();
        assert!(error.contains("enterprise-28"), "{error}");
        let fit = Some(Fit { live_pages: 1000, live_percent: 100.0 });
        for rho in [0.0, -1.0, f64::NAN, f64::INFINITY, 28.0] {
            let rules = Target::Rules(Rules::over_provisioning(rho));
            assert!(matches!(rules.config(fit), Err(Error::OverProvisioning(_))), "{rho}");
        }
    }

    #[test]
    fn a_fitted_drive_is_as_full_as_asked() {
        let fit = Some(Fit { live_pages: 90_000, live_percent: 90.0 });
        for target in
            [Target::named("enterprise-28").unwrap(), Target::Rules(Rules::over_provisioning(0.28))]
        {
            assert_eq!(target.config(fit).unwrap().1.logical_pages, 100_000, "{}", target.name());
        }
    }
}
