//! Whether write amplification has settled, with the evidence.
//!
//! Invariant: the verdict follows from the numbers shown with it.

use serde::Serialize;

use crate::outcome::Window;

/// Windows on each side of the comparison.
pub const SIDE: usize = 4;

/// The verdict and what it rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Steady {
    /// Whether the last 2·[`SIDE`] windows differ by less than the tolerance, both as halves and as
    /// a trend.
    pub reached: bool,
    /// Host pages written (since counting or ageing began) when it was judged.
    pub host_pages: u64,
    /// Windows looked at: 2·[`SIDE`], or 0 if there were fewer.
    pub windows: usize,
    /// Mean WAF of the earlier half.
    pub earlier_waf: f64,
    /// Mean WAF of the later half.
    pub later_waf: f64,
    /// |later − earlier| / later.
    pub difference: f64,
    /// |least-squares trend across the windows looked at| / mean.
    pub trend: f64,
    /// What `difference` may not exceed; `trend` may be twice that.
    pub tolerance: f64,
}

/// Judges the last windows.
pub fn judge(windows: &[Window], tolerance: f64) -> Steady {
    let host_pages = windows.iter().map(|w| w.host_pages).sum();
    let Some(start) = windows.len().checked_sub(2 * SIDE) else {
        return Steady { host_pages, tolerance, ..Steady::default() };
    };
    let last = &windows[start..];
    let mean = |side: &[Window]| side.iter().map(Window::waf).sum::<f64>() / side.len() as f64;
    let (earlier, later) = (mean(&last[..SIDE]), mean(&last[SIDE..]));
    let middle = (last.len() - 1) as f64 / 2.0;
    let (mut covariance, mut variance) = (0.0, 0.0);
    for (i, window) in last.iter().enumerate() {
        let x = i as f64 - middle;
        covariance += x * window.waf();
        variance += x * x;
    }
    let difference = (later - earlier).abs() / later;
    let trend = (covariance / variance * (last.len() - 1) as f64).abs() / mean(last);
    Steady {
        reached: difference <= tolerance && trend <= 2.0 * tolerance,
        host_pages,
        windows: last.len(),
        earlier_waf: earlier,
        later_waf: later,
        difference,
        trend,
        tolerance,
    }
}
