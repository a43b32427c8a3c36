//! The weights and limits of a report's reader: options of `bench report` and `bench run`.

use std::path::PathBuf;

use clap::Args;
use myelin_bench_lab::advise::Budget;
use myelin_bench_lab::input_error::InputError;
use myelin_bench_lab::report;
use myelin_bench_lab::score::Weights;

/// See [`report::Options`].
#[derive(Args)]
pub struct Options {
    /// Weights of the scorecard's criteria, a TOML file: memory, latency_stability, cpu,
    /// simplicity, start_up.
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// The CPU limit for the advice, all processes together; 100 is one core.
    #[arg(long, value_name = "PERCENT", value_parser = above_zero)]
    cpu_budget: Option<f64>,
    /// The memory limit for the advice, all processes together.
    #[arg(long, value_name = "MIB", value_parser = above_zero)]
    memory_budget: Option<f64>,
}

impl Options {
    /// Reads the weights.
    pub fn read(&self) -> Result<report::Options, InputError> {
        let weights = self.weights.as_deref().map(Weights::load).transpose()?;
        Ok(report::Options {
            weights: weights.unwrap_or_default(),
            budget: Budget {
                cpu_percent: self.cpu_budget,
                memory_bytes: self.memory_budget.map(|mib| (mib * f64::from(1 << 20)) as u64),
            },
        })
    }
}

fn above_zero(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err("use a number above 0".to_owned()),
    }
}
