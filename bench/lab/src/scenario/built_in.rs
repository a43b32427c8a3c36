//! Scenarios by name: those that this program carries, and files.

use std::path::Path;

use super::Scenario;
use crate::input_error::{InputError, Source};

impl Scenario {
    /// Reads a built-in scenario by its name, or a scenario file by its path.
    pub fn load(name: &str) -> Result<Self, InputError> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            let scenario = Self::parse(Source::new(&format!("{name}.toml"), text))?;
            return Ok(Scenario { is_built_in: true, ..scenario });
        }
        let is_path = name.ends_with(".toml") || name.contains('/');
        if !is_path {
            let known = BUILT_IN.iter().map(|(name, _)| *name);
            return Err(InputError::unknown("scenario", name, known)
                .remedy("`myelin bench list scenarios` shows them; a file's name ends in .toml"));
        }
        let text = std::fs::read_to_string(Path::new(name)).map_err(|error| {
            InputError::new(format!("{name}: {error}")).remedy("give a readable file")
        })?;
        Self::parse(Source::new(name, &text))
    }

    /// The scenarios that this binary carries.
    pub fn built_in() -> impl Iterator<Item = Scenario> {
        BUILT_IN.iter().map(|(name, text)| {
            Self::parse(Source::new(&format!("{name}.toml"), text)).expect("tested")
        })
    }

    /// Shortens the scenario for a first impression: fewer runs, less time.
    pub fn apply_quick(&mut self) {
        self.plan.runs = self.plan.runs.min(QUICK_RUNS);
        self.plan.precision = None;
        if self.network.as_ref().is_some_and(|link| link.cut.is_some()) {
            return; // the time of the cut is within the run
        }
        let messages = &mut self.workload.messages;
        let is_recorded = self.workload.kind == super::Kind::Replay;
        *messages = if is_recorded {
            0
        } else if *messages == 0 {
            QUICK_MESSAGES
        } else {
            (*messages).min(QUICK_MESSAGES)
        };
        let duration = &mut self.workload.duration_s;
        *duration = if *duration == 0.0 { QUICK_SECONDS } else { duration.min(QUICK_SECONDS) };
    }
}

macro_rules! texts {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../scenarios/", $name, ".toml")))),*]
    };
}

/// In the order of the list.
const BUILT_IN: &[(&str, &str)] = texts! {
    "quick" "rmw" "sanity" "sanity-discovery" "roundtrip-60s" "roundtrip-sizes" "shm-roundtrip"
    "shm-untouched" "publish" "image-30hz" "periodic" "callback" "callback-sizes" "callbacks"
    "modules" "modules-hosts" "modules-hosts-secure" "sizes-100hz" "sizes-100hz-hosts" "rates-1mb"
    "rates-1mb-hosts" "command-beside-images" "roundtrip-hosts" "cut-hosts" "lossy-hosts" "routed"
    "fan-out" "rate-curve" "topics" "flood"
    "self-test" "self-test-stream" "self-test-omission"
};

const QUICK_RUNS: u32 = 2;
const QUICK_MESSAGES: u64 = 2_000;
const QUICK_SECONDS: f64 = 2.0;
