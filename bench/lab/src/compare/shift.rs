//! The shift function: by how much each part of the distribution has moved (Doksum, "Empirical
//! probability plots and statistical inference for nonlinear models", Annals of Statistics 2, 1974;
//! over repeats as by Rousselet and Wilcox, 2019).

use serde::Serialize;

use crate::stats::bootstrap::of_medians;
use crate::stats::median;
use crate::summary::{RUN_QUANTILES, RunPoint};

/// One quantile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShiftPoint {
    /// 0 to 1.
    pub quantile: f64,
    /// Median over the runs of A, of the run's own quantile.
    pub a_us: f64,
    /// B less A.
    pub difference_us: f64,
    /// 95 % bootstrap interval over runs, of this quantile alone; null with fewer than five runs.
    pub interval_us: Option<[f64; 2]>,
}

/// The quantiles that every run of both sides bears.
pub(super) fn points(a: &[&RunPoint], b: &[&RunPoint]) -> Vec<ShiftPoint> {
    let at = |place: usize| {
        let of = |runs: &[&RunPoint]| -> Option<Vec<f64>> {
            runs.iter().map(|run| run.curve_us.get(place).copied()).collect()
        };
        let (a, b) = (of(a)?, of(b)?);
        let a_us = median(a.clone())?;
        Some(ShiftPoint {
            quantile: RUN_QUANTILES[place],
            a_us,
            difference_us: median(b.clone())? - a_us,
            interval_us: of_medians(&a, &b, |a, b| b - a),
        })
    };
    (0..RUN_QUANTILES.len()).map_while(at).collect()
}
