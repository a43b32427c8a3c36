//! What a run contributes to a figure, and how the contributions of all runs make the figure of the
//! cell.

use crate::stats::median;
use crate::summary::OverRuns;

/// An amount and, for a rate or a share, what it is divided by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub amount: f64,
    pub per: Option<f64>,
}

impl Part {
    pub(super) fn whole(amount: f64) -> Self {
        Part { amount, per: None }
    }

    pub(super) fn ratio(amount: f64, per: f64) -> Self {
        Part { amount, per: Some(per) }
    }

    /// The figure of the run; `None` if there is nothing to divide by.
    pub(super) fn value(self) -> Option<f64> {
        match self.per {
            None => Some(self.amount),
            Some(per) => (per > 0.0).then(|| self.amount / per),
        }
    }
}

/// The figure of the cell; `None` if no run has it.
pub(super) fn over_runs(over: OverRuns, parts: &[Part]) -> Option<f64> {
    let total = |of: fn(&Part) -> Option<f64>| parts.iter().filter_map(of).reduce(|a, b| a + b);
    let values = || parts.iter().filter_map(|part| part.value());
    match over {
        OverRuns::Sum => {
            Part { amount: total(|it| Some(it.amount))?, per: total(|it| it.per) }.value()
        }
        OverRuns::Mean => total(|it| it.value()).map(|sum| sum / values().count() as f64),
        OverRuns::Median => median(values().collect()),
        OverRuns::Largest => values().reduce(f64::max),
        OverRuns::Cell | OverRuns::Single | OverRuns::Pooled | OverRuns::Spread => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_how_runs_make_a_figure() {
        let parts = [Part::ratio(10.0, 1.0), Part::ratio(50.0, 3.0), Part::ratio(7.0, 0.0)];
        assert_eq!(over_runs(OverRuns::Sum, &parts[..2]), Some(15.0), "of all their time");
        assert_eq!(over_runs(OverRuns::Largest, &parts), Some(50.0 / 3.0));
        assert_eq!(parts[2].value(), None, "nothing to divide by");
        let whole = [3.0, 9.0, 4.0].map(Part::whole);
        let found = [OverRuns::Sum, OverRuns::Mean, OverRuns::Median, OverRuns::Largest]
            .map(|over| over_runs(over, &whole));
        assert_eq!(found, [16.0, 16.0 / 3.0, 4.0, 9.0].map(Some));
        for over in [OverRuns::Sum, OverRuns::Mean, OverRuns::Median, OverRuns::Largest] {
            assert_eq!(over_runs(over, &[]), None, "{over:?} of no run");
        }
    }
}
