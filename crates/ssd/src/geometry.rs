//! How large a drive is, and what of it is left for closed reclaim units.
//!
//! Invariant: T is the capacity of the reclaim units (RUs) that are closed when a victim is chosen,
//! the sense in which the closed forms of the literature use it: open RUs and what the drive holds
//! back are not in it. With a single frontier T may be any number of pages (the last RU is then used
//! in part); with several it is whole RUs. ρ = T/U − 1 (over-provisioning) and S_f = 1 − U/T (spare
//! factor) are different numbers, and never interchanged here.

use serde::{Deserialize, Serialize};

use crate::Error;

/// Streams a drive can have: FDP allows 128 placement handles (NVMe 2.1 base, §3.2.4).
pub const MAX_STREAMS: u32 = 128;

/// Pages a reclaim unit can have: 2^28 (1 TiB of 4 KiB pages).
pub const MAX_RU_PAGES: u32 = 1 << 28;

/// Where relocated data go.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Initially isolated (FDP RUH type 1): relocated data of all streams share RUs.
    Initial,
    /// Persistently isolated (FDP RUH type 2): relocated data stay with their stream.
    Persistent,
}

/// Whether relocated data have write frontiers (open RUs) of their own.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Frontier {
    /// Relocated data never share an RU with host data as it is written: the honest baseline.
    Separate,
    /// Relocated data go to the open RU that host data go to: the naive drive. With initially
    /// isolated streams that is stream 0's.
    Single,
}

/// How the physical space is given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Space {
    /// ρ = T/U − 1 with T net of open and reserved RUs, as in the closed forms.
    OverProvisioning(f64),
    /// T in pages, net of open and reserved RUs.
    Net {
        /// Pages of closed RUs when a victim is chosen; rounded to RUs unless there is only one
        /// frontier.
        pages: u64,
    },
    /// All physical pages, open and reserved RUs among them: more streams cost spare.
    Physical {
        /// Physical pages; what does not fill an RU is left out.
        pages: u64,
        /// RUs that the drive holds back beside the open ones.
        reserved_rus: u32,
    },
}

/// A drive as the simulator sees it. Sizes are in pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Geometry {
    /// Bytes of a page: 4096 or 8192.
    pub page_bytes: u32,
    /// U: pages the host can address.
    pub logical_pages: u64,
    /// Pages of a reclaim unit, 1 to [`MAX_RU_PAGES`].
    pub ru_pages: u32,
    /// The physical space.
    pub space: Space,
    /// Streams the host can choose from, 1 to [`MAX_STREAMS`].
    pub streams: u32,
    /// Where relocated data go.
    pub isolation: Isolation,
    /// Whether they have frontiers of their own.
    pub frontier: Frontier,
}

impl Geometry {
    /// One stream, 4 KiB pages, a separate frontier for relocated data: the no-hint baseline.
    pub fn unhinted(logical_pages: u64, ru_pages: u32, space: Space) -> Geometry {
        Geometry {
            page_bytes: 4096,
            logical_pages,
            ru_pages,
            space,
            streams: 1,
            isolation: Isolation::Initial,
            frontier: Frontier::Separate,
        }
    }

    /// RUs held open: one per stream, and what relocated data need.
    pub fn frontiers(&self) -> u32 {
        match (self.frontier, self.isolation) {
            (Frontier::Single, _) => self.streams,
            (Frontier::Separate, Isolation::Initial) => self.streams + 1,
            (Frontier::Separate, Isolation::Persistent) => 2 * self.streams,
        }
    }

    /// Checks the numbers, and says what comes of them.
    ///
    /// # Errors
    ///
    /// Whatever contradicts itself.
    pub fn sizes(&self) -> Result<Sizes, Error> {
        Ok(self.layout()?.sizes())
    }

    /// Checks the numbers and lays out the RUs.
    pub(crate) fn layout(&self) -> Result<Layout, Error> {
        if !matches!(self.page_bytes, 4096 | 8192) {
            return Err(Error::PageSize(self.page_bytes));
        }
        if self.logical_pages == 0 {
            return Err(Error::NoPages);
        }
        if self.ru_pages == 0 || self.ru_pages > MAX_RU_PAGES {
            return Err(Error::RuPages(self.ru_pages));
        }
        if self.streams == 0 || self.streams > MAX_STREAMS {
            return Err(Error::Streams(self.streams));
        }
        let ru = u64::from(self.ru_pages);
        let frontiers = self.frontiers();
        let (net, reserved) = match self.space {
            Space::OverProvisioning(rho) => {
                if !(rho.is_finite() && rho > 0.0) {
                    return Err(Error::OverProvisioning(rho));
                }
                ((self.logical_pages as f64 * (1.0 + rho)).round() as u64, 0)
            }
            Space::Net { pages } => (pages, 0),
            Space::Physical { pages, reserved_rus } => {
                let taken = u64::from(frontiers + reserved_rus);
                ((pages / ru).saturating_sub(taken) * ru, reserved_rus)
            }
        };
        let net = if frontiers == 1 { net } else { net.saturating_add(ru / 2) / ru * ru };
        if net <= self.logical_pages {
            return Err(Error::NoSpare {
                logical_pages: self.logical_pages,
                physical_pages: net,
                open_rus: frontiers,
                reserved_rus: reserved,
            });
        }
        if net / ru < 2 {
            return Err(Error::RuTooLarge { ru_pages: self.ru_pages, physical_pages: net });
        }
        // `gc.rs` says why this many suffice.
        let rus = net.div_ceil(ru).saturating_add(u64::from(frontiers));
        // An RU's validity bits begin on a word, hence at least 64 addresses each.
        let shift = self.ru_pages.next_power_of_two().trailing_zeros().max(6);
        // The upper half of the last RU's worth of addresses stays free for `UNMAPPED`.
        if rus >= u64::from(u32::MAX) >> shift {
            return Err(Error::TooManyPages {
                physical_pages: rus.saturating_mul(ru),
                ru_pages: self.ru_pages,
            });
        }
        Ok(Layout {
            ru_pages: self.ru_pages,
            shift,
            rus: rus as u32,
            frontiers,
            reserved,
            net_pages: net,
            logical_pages: self.logical_pages,
        })
    }
}

/// The RUs of a checked geometry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub ru_pages: u32,
    /// log2 of the addresses per RU; at least 6.
    pub shift: u32,
    /// All RUs that take part: those that hold T, and one more per frontier.
    pub rus: u32,
    pub frontiers: u32,
    /// RUs held back that never take part.
    pub reserved: u32,
    /// T.
    pub net_pages: u64,
    /// U.
    pub logical_pages: u64,
}

impl Layout {
    pub fn sizes(&self) -> Sizes {
        let held = u64::from(self.frontiers + self.reserved) * u64::from(self.ru_pages);
        let (u, net) = (self.logical_pages as f64, self.net_pages as f64);
        let gross_pages = self.net_pages + held;
        let gross = gross_pages as f64;
        Sizes {
            logical_pages: self.logical_pages,
            ru_pages: self.ru_pages,
            net_pages: self.net_pages,
            over_provisioning: net / u - 1.0,
            spare_factor: 1.0 - u / net,
            physical_pages: gross_pages,
            physical_over_provisioning: gross / u - 1.0,
            physical_spare_factor: 1.0 - u / gross,
            open_rus: self.frontiers,
            reserved_rus: self.reserved,
        }
    }
}

/// The sizes behind a result: net (without open and reserved RUs) and physical (with them).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sizes {
    /// U, pages.
    pub logical_pages: u64,
    /// Pages of a reclaim unit.
    pub ru_pages: u32,
    /// T, pages: the closed RUs when a victim is chosen.
    pub net_pages: u64,
    /// ρ = T/U − 1.
    pub over_provisioning: f64,
    /// S_f = 1 − U/T.
    pub spare_factor: f64,
    /// T with open and reserved RUs, pages.
    pub physical_pages: u64,
    /// ρ with open and reserved RUs counted in.
    pub physical_over_provisioning: f64,
    /// S_f with open and reserved RUs counted in.
    pub physical_spare_factor: f64,
    /// RUs held open.
    pub open_rus: u32,
    /// RUs held back.
    pub reserved_rus: u32,
}
