//! Scenarios by name: those that this program carries, and files.

use std::path::Path;

use super::Scenario;
use crate::input_error::{InputError, Source};

impl Scenario {
    /// Reads a scenario by the name of a built-in one, or from a file.
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

    /// Names and texts of the scenarios this binary carries.
    pub fn built_in() -> impl Iterator<Item = Scenario> {
        BUILT_IN.iter().map(|(name, text)| {
            Self::parse(Source::new(&format!("{name}.toml"), text)).expect("tested")
        })
    }

    /// The same scenario, cut down to give a first impression: fewer runs, less time.
    pub fn hasten(&mut self) {
        self.plan.runs = self.plan.runs.min(QUICK_RUNS);
        self.plan.precision = None;
        if self.network.as_ref().is_some_and(|link| link.cut.is_some()) {
            return; // the cut has its time within the run
        }
        let messages = &mut self.workload.messages;
        *messages = if *messages == 0 { QUICK_MESSAGES } else { (*messages).min(QUICK_MESSAGES) };
        let duration = &mut self.workload.duration_s;
        *duration = if *duration == 0.0 { QUICK_SECONDS } else { duration.min(QUICK_SECONDS) };
    }
}

const BUILT_IN: &[(&str, &str)] = &[
    ("quick", include_str!("../../../scenarios/quick.toml")),
    ("sanity", include_str!("../../../scenarios/sanity.toml")),
    ("sanity-discovery", include_str!("../../../scenarios/sanity-discovery.toml")),
    ("roundtrip-60s", include_str!("../../../scenarios/roundtrip-60s.toml")),
    ("roundtrip-sizes", include_str!("../../../scenarios/roundtrip-sizes.toml")),
    ("shm-roundtrip", include_str!("../../../scenarios/shm-roundtrip.toml")),
    ("shm-untouched", include_str!("../../../scenarios/shm-untouched.toml")),
    ("publish", include_str!("../../../scenarios/publish.toml")),
    ("image-30hz", include_str!("../../../scenarios/image-30hz.toml")),
    ("periodic", include_str!("../../../scenarios/periodic.toml")),
    ("callback", include_str!("../../../scenarios/callback.toml")),
    ("callback-sizes", include_str!("../../../scenarios/callback-sizes.toml")),
    ("callbacks", include_str!("../../../scenarios/callbacks.toml")),
    ("modules", include_str!("../../../scenarios/modules.toml")),
    ("modules-hosts", include_str!("../../../scenarios/modules-hosts.toml")),
    ("sizes-100hz", include_str!("../../../scenarios/sizes-100hz.toml")),
    ("sizes-100hz-hosts", include_str!("../../../scenarios/sizes-100hz-hosts.toml")),
    ("rates-1mb", include_str!("../../../scenarios/rates-1mb.toml")),
    ("rates-1mb-hosts", include_str!("../../../scenarios/rates-1mb-hosts.toml")),
    ("roundtrip-hosts", include_str!("../../../scenarios/roundtrip-hosts.toml")),
    ("cut-hosts", include_str!("../../../scenarios/cut-hosts.toml")),
    ("fan-out", include_str!("../../../scenarios/fan-out.toml")),
    ("rate-curve", include_str!("../../../scenarios/rate-curve.toml")),
    ("topics", include_str!("../../../scenarios/topics.toml")),
    ("flood", include_str!("../../../scenarios/flood.toml")),
    ("self-test", include_str!("../../../scenarios/self-test.toml")),
    ("self-test-stream", include_str!("../../../scenarios/self-test-stream.toml")),
    ("self-test-omission", include_str!("../../../scenarios/self-test-omission.toml")),
];

const QUICK_RUNS: u32 = 2;
const QUICK_MESSAGES: u64 = 2_000;
const QUICK_SECONDS: f64 = 2.0;
