//! When a comparison fails a script: `worse`, `p99 worse`, `p99 worse by 10%`.

use std::str::FromStr;

use super::{Comparison, FigureComparison, document};
use crate::stats::verdict::Kind;
use crate::summary::{Compared, Metric};

/// What must not be: a figure, or any of them, that is worse, or worse by more than so much.
#[derive(Clone, Debug)]
pub struct Condition {
    figure: Option<&'static Metric>,
    /// 0 for any difference.
    percent: f64,
}

/// How a comparison meets conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything that they are about was compared, and nothing is as they say.
    Passed,
    /// Something is; a line each.
    Failed(Vec<String>),
    /// Nothing is, but not everything could be compared; a line for each reason.
    Unanswered(Vec<String>),
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        let at = words.iter().position(|word| word == "worse");
        let at = at.ok_or("write `worse`, `p99 worse` or `p99 worse by 10%`")?;
        let name = words[..at].join(" ");
        let is_named = |(metric, compared): &(&Metric, Compared)| {
            [compared.words, metric.name].iter().any(|it| it.to_lowercase() == name)
        };
        let figure = Metric::compared().find(is_named).map(|(metric, _)| metric);
        if figure.is_none() && at > 0 {
            let known: Vec<&str> = Metric::compared().map(|(_, it)| it.words).collect();
            return Err(format!("no figure is called {name:?}; use one of {}", known.join(", ")));
        }
        let rest: Vec<&str> = words[at + 1..].iter().map(String::as_str).collect();
        let percent = match rest[..] {
            [] => Some(0.0),
            ["by", size] | ["by", size, "%"] => size.trim_end_matches('%').parse().ok(),
            _ => None,
        };
        let percent = percent.filter(|percent| (0.0..=1e6).contains(percent));
        let percent = percent.ok_or("after `worse` write nothing, or a size such as `by 10%`")?;
        Ok(Condition { figure, percent })
    }
}

impl Condition {
    fn is_about(&self, figure: &FigureComparison) -> bool {
        self.figure.is_none_or(|it| it.name == figure.figure.name)
    }

    /// Whether the figure is significantly worse, and by more than the condition allows. A ratio that
    /// is infinite is missing.
    fn is_met(&self, figure: &FigureComparison) -> bool {
        let is_enough = figure.ratio.is_none_or(|ratio| 100.0 * (ratio - 1.0) > self.percent);
        self.is_about(figure) && figure.verdict == Some(Kind::Worse) && is_enough
    }
}

impl Comparison {
    /// Whether one of the conditions is met. A cell that is no longer valid meets all of them.
    pub fn outcome(&self, conditions: &[Condition]) -> Outcome {
        let gone = self.no_longer_valid();
        let gone = gone.map(|cell| format!("no longer valid in B: {}", document::full(&cell.name)));
        let met = self.figures(|verdict| verdict == Some(Kind::Worse)).into_iter();
        let met = met.filter(|(_, figure)| conditions.iter().any(|it| it.is_met(figure)));
        let met = met.map(|(cell, figure)| {
            let row = self.row(cell, figure);
            format!(
                "worse: {} {} {} → {} {} ({})",
                row.cell, row.figure, row.a, row.b, row.unit, row.ratio
            )
        });
        let failed: Vec<String> = gone.chain(met).collect();
        if !failed.is_empty() {
            return Outcome::Failed(failed);
        }
        let is_about = |figure: &FigureComparison| conditions.iter().any(|it| it.is_about(figure));
        match self.unanswered_of(is_about) {
            reasons if reasons.is_empty() => Outcome::Passed,
            reasons => Outcome::Unanswered(reasons),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_have_a_figure_and_a_size() {
        let parsed = |text: &str| {
            let it: Condition = text.parse().unwrap();
            (it.figure.map(|figure| figure.name), it.percent)
        };
        assert_eq!(parsed("worse"), (None, 0.0));
        assert_eq!(parsed("p99 worse"), (Some("p99_us"), 0.0));
        assert_eq!(parsed("P50_us worse by 2.5 %"), (Some("p50_us"), 2.5));
        assert_eq!(parsed("first sample worse by 10%"), (Some("first_sample_us"), 10.0));
        assert_eq!(parsed("CPU worse by 3"), (Some("cpu_us_per_message"), 3.0));
        assert_eq!(parsed("worse by 3%"), (None, 3.0));
        for (text, part) in [
            ("better", "write `worse`"),
            ("p98 worse", "use one of p50, p99, first sample, CPU, memory"),
            ("p99 worse by much", "such as `by 10%`"),
            ("p99 worse by -1%", "such as `by 10%`"),
            ("p99 worse 10%", "such as `by 10%`"),
        ] {
            let error = text.parse::<Condition>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
