//! What a user holds each criterion to be worth.

use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::Criterion;
use crate::input_error::{InputError, Source};

/// A weight for each of [`Criterion::ALL`]; none is negative and their sum is 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights([f64; Criterion::ALL.len()]);

/// A file of weights: any numbers from 0 on, of which the proportions matter.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WeightsFile {
    memory: Option<Spanned<f64>>,
    latency_stability: Option<Spanned<f64>>,
    cpu: Option<Spanned<f64>>,
    simplicity: Option<Spanned<f64>>,
    start_up: Option<Spanned<f64>>,
}

impl Weights {
    /// Reads a TOML file. A criterion that it leaves out weighs nothing.
    pub fn load(path: &Path) -> Result<Self, InputError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            InputError::new(format!("--weights {name}: {error}")).remedy(EXAMPLE)
        })?;
        Self::parse(&Source::new(&name, &text))
    }

    /// As [`Weights::load`], of a text.
    pub fn parse(source: &Source) -> Result<Self, InputError> {
        let file: WeightsFile =
            toml::from_str(source.text()).map_err(|error| source.toml_error(&error))?;
        let WeightsFile { memory, latency_stability, cpu, simplicity, start_up } = file;
        let given = [memory, latency_stability, cpu, simplicity, start_up];
        let mut weights = [0.0; Criterion::ALL.len()];
        for ((weight, given), criterion) in weights.iter_mut().zip(&given).zip(Criterion::ALL) {
            let Some(given) = given else { continue };
            *weight = *given.get_ref();
            if !(weight.is_finite() && *weight >= 0.0) {
                let text = format!("{}: {weight} is no weight", criterion.key());
                return Err(source.error(given.span(), text).remedy("use a number from 0 on"));
            }
        }
        let sum: f64 = weights.iter().sum();
        if sum > 0.0 && sum.is_finite() {
            return Ok(Weights(weights.map(|weight| weight / sum)));
        }
        let keys = Criterion::ALL.map(Criterion::key).join(", ");
        let place = given.iter().flatten().next().map_or(0..0, Spanned::span);
        Err(source.error(place, format!("the sum of {keys} is {sum}")).remedy(EXAMPLE))
    }

    /// Of a criterion, as a part of 1.
    pub fn of(&self, criterion: Criterion) -> f64 {
        self.0[criterion as usize]
    }
}

impl Default for Weights {
    /// Those of the scorecard published with the figures of CycloneDDS on a Jetson Orin.
    fn default() -> Self {
        Weights([0.30, 0.25, 0.20, 0.15, 0.10])
    }
}

const EXAMPLE: &str = "for instance: memory = 30, latency_stability = 25, cpu = 20, \
                       simplicity = 15, start_up = 10, each on a line of its own";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Weights, String> {
        Weights::parse(&Source::new("w.toml", text)).map_err(|error| error.to_string())
    }

    #[test]
    fn proportions_matter_and_what_is_left_out_weighs_nothing() {
        let weights = parse("cpu = 3\nmemory = 1.0\n").unwrap();
        let found = Criterion::ALL.map(|criterion| weights.of(criterion));
        assert_eq!(found, [0.25, 0.0, 0.75, 0.0, 0.0]);
        let all = "memory = 30\nlatency_stability = 25\ncpu = 20\nsimplicity = 15\nstart_up = 10\n";
        let (read, default) = (parse(all).unwrap(), Weights::default());
        for criterion in Criterion::ALL {
            assert!((read.of(criterion) - default.of(criterion)).abs() < 1e-12);
        }
    }

    #[test]
    fn mistakes_name_line_key_and_remedy() {
        for (text, expected) in [
            ("cpu = 1\nmemori = 2\n", "w.toml:2: unknown field `memori`; did you mean `memory`?"),
            ("cpu = 1\n\nmemory = -1\n", "w.toml:3: memory: -1 is no weight; use a number"),
            ("start_up = nan\n", "w.toml:1: start_up: NaN is no weight"),
            ("simplicity = inf\n", "w.toml:1: simplicity: inf is no weight"),
            ("\ncpu = 0\nmemory = 0\n", "the sum of memory, latency_stability, cpu, simplicity"),
            ("", "w.toml:1: the sum of memory"),
            ("cpu = \"much\"\n", "w.toml:1: invalid type"),
            ("cpu = 1e308\nmemory = 1e308\n", "start_up is inf"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
