//! How well a median is to be known: the keys `interval_percent` and `runs_max` of `[plan]`.

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::limits::Limits;
use crate::input_error::InputError;
use crate::stats::RUNS_MIN;

/// Cells are repeated beyond `runs` until their median is known as well as this, or often enough.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// The width of the median's interval asked for, in per cent of the median.
    pub interval_percent: f64,
    /// Runs of a cell at most, those that failed or are invalid included.
    pub runs_max: u32,
}

/// Checks the two keys, which go together; `runs` is the least number of runs.
pub(super) fn check(
    limits: &Limits<'_>,
    runs: u32,
    runs_max: Option<Spanned<i64>>,
    interval_percent: Option<Spanned<f64>>,
) -> Result<Option<Precision>, InputError> {
    let (most, interval) = match (runs_max, interval_percent) {
        (None, None) => return Ok(None),
        (Some(most), Some(interval)) => (most, interval),
        (Some(most), None) => {
            let text = "runs_max: nothing says when fewer are enough";
            let remedy = "add interval_percent, for instance 5, or use runs alone";
            return Err(limits.source.error(most.span(), text).remedy(remedy));
        }
        (None, Some(interval)) => {
            let text = "interval_percent: nothing limits the runs";
            let remedy = "add runs_max, for instance 15";
            return Err(limits.source.error(interval.span(), text).remedy(remedy));
        }
    };
    let (span, found) = (most.span(), *most.get_ref());
    let runs_max = limits.within("runs_max", most, 1, i64::from(super::file::RUNS_MAX))? as u32;
    if runs_max < runs {
        let text = format!("runs_max: {found} is less than runs, {runs}");
        let remedy = "runs are made in any case; use at least as many, or fewer runs";
        return Err(limits.source.error(span, text).remedy(remedy));
    }
    if (runs_max as usize) < RUNS_MIN {
        let text = format!("runs_max: {found} runs have no interval");
        let remedy = format!("use at least {RUNS_MIN}, or leave out interval_percent");
        return Err(limits.source.error(span, text).remedy(remedy));
    }
    let percent = *interval.get_ref();
    if !(PERCENT_MIN..=PERCENT_MAX).contains(&percent) {
        let remedy = format!("use {PERCENT_MIN} to {PERCENT_MAX} per cent of the median");
        return Err(limits.bad(interval.span(), "interval_percent", percent, &remedy));
    }
    Ok(Some(Precision { interval_percent: percent, runs_max }))
}

const PERCENT_MIN: f64 = 0.01;
const PERCENT_MAX: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::super::*;

    fn parse(keys: &str) -> Result<Option<Precision>, String> {
        let text = format!(
            "name = \"x\"\n\n[workload]\nkind = \"roundtrip\"\npayload_bytes = [0]\n\
             messages = 100\n\n[plan]\nsystems = [\"os.*\"]\ntunings = [\"default\"]\n\
             topology = \"any\"\n{keys}\n"
        );
        let scenario = Scenario::parse(Source::new("x.toml", &text));
        scenario.map(|scenario| scenario.plan.precision).map_err(|error| error.to_string())
    }

    #[test]
    fn the_two_keys_go_together_and_are_optional() {
        assert_eq!(parse("runs = 5"), Ok(None));
        let asked = Precision { interval_percent: 5.0, runs_max: 15 };
        assert_eq!(parse("runs = 5\nruns_max = 15\ninterval_percent = 5"), Ok(Some(asked)));
        let few = Precision { interval_percent: 0.5, runs_max: 5 };
        assert_eq!(parse("runs = 3\nruns_max = 5\ninterval_percent = 0.5"), Ok(Some(few)));
    }

    #[test]
    fn mistakes_name_line_key_and_remedy() {
        for (keys, expected) in [
            ("runs = 5\nruns_max = 15", "x.toml:13: runs_max: nothing says when fewer are enough;"),
            ("runs = 5\ninterval_percent = 5", "x.toml:13: interval_percent: nothing limits the"),
            (
                "runs = 9\nruns_max = 8\ninterval_percent = 5",
                "x.toml:13: runs_max: 8 is less than runs, 9; runs are made in any case",
            ),
            (
                "runs = 3\ninterval_percent = 5\nruns_max = 4",
                "x.toml:14: runs_max: 4 runs have no interval; use at least 5,",
            ),
            (
                "runs = 3\ninterval_percent = 0\nruns_max = 9",
                "x.toml:13: interval_percent: 0 is out of range; use 0.01 to 100 per cent",
            ),
            (
                "runs = 3\ninterval_percent = nan\nruns_max = 9",
                "x.toml:13: interval_percent: NaN is out of range",
            ),
            (
                "runs = 3\ninterval_percent = 5\nruns_max = 2000",
                "x.toml:14: runs_max: 2000 is out of range; use 1 to 1000",
            ),
            ("runs = 3\nrun_max = 9", "x.toml:13: unknown field `run_max`; did you mean `runs_max"),
        ] {
            let error = parse(keys).unwrap_err();
            assert!(error.starts_with(expected), "{error:?} does not start with {expected:?}");
            assert!(!error.contains('\n'), "{error:?}");
        }
    }

    #[test]
    fn a_first_impression_repeats_nothing() {
        let text = "runs = 5\nruns_max = 15\ninterval_percent = 5";
        assert!(parse(text).unwrap().is_some());
        let mut scenario = Scenario::load("quick").unwrap();
        scenario.plan.precision = parse(text).unwrap();
        scenario.hasten();
        assert_eq!(scenario.plan.precision, None);
    }

    #[test]
    fn a_plan_written_before_there_was_precision_is_read() {
        let scenario = Scenario::load("quick").unwrap();
        let json = serde_json::to_value(&scenario).unwrap();
        assert!(json["plan"].get("precision").is_none(), "absent, not null");
        let scenario: Scenario = serde_json::from_value(json).unwrap();
        assert_eq!(scenario.plan.precision, None);
    }
}
