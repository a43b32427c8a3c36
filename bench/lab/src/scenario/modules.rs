//! The key `modules` of streams: what the modules of a robot send, each a size and a rate with a name.

use serde::Deserialize;
use toml::Spanned;

use super::Module;
use super::file::{PAYLOAD_BYTES_MAX, WorkloadFile};
use super::limits::{Limits, Rate, plain_name};
use crate::input_error::InputError;

/// An entry of `modules`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModuleFile {
    name: Spanned<String>,
    payload_bytes: Spanned<i64>,
    rate_hz: Spanned<f64>,
}

/// The modules of `workload`, which has no sizes and rates of its own then.
pub(super) fn read(
    limits: &Limits<'_>,
    workload: &WorkloadFile,
) -> Result<Vec<Module>, InputError> {
    let Some(modules) = &workload.modules else {
        return Ok(Vec::new());
    };
    if modules.get_ref().is_empty() {
        let remedy = "for instance [{ name = \"lidar\", payload_bytes = 1048576, rate_hz = 10 }]";
        return Err(limits.missing("[workload]", "modules", remedy));
    }
    let sizes = workload.payload_bytes.as_ref().map(|sizes| ("payload_bytes", sizes.span()));
    let rates = workload.rate_hz.first().map(|rate| ("rate_hz", rate.span()));
    if let Some((key, place)) = sizes.or(rates) {
        let text = format!("{key}: modules have sizes and rates of their own");
        return Err(limits.source.error(place, text).remedy("leave one of the two out"));
    }
    let mut read: Vec<Module> = Vec::new();
    for written in modules.get_ref() {
        let (place, file) = (written.span(), written.get_ref());
        let name = plain_name(limits, "modules", &file.name)?;
        if read.iter().any(|other| other.name == name) {
            let text = format!("modules: two are named {name:?}");
            return Err(limits.source.error(place, text).remedy("give each its own name"));
        }
        let payload_bytes = Spanned::new(file.payload_bytes.span(), *file.payload_bytes.get_ref());
        let rate_hz = Spanned::new(file.rate_hz.span(), Rate::Hertz(*file.rate_hz.get_ref()));
        let module = Module {
            name,
            payload_bytes: limits.within("payload_bytes", payload_bytes, 0, PAYLOAD_BYTES_MAX)?,
            rate_hz: limits.rate(rate_hz)?.unwrap_or_default(),
        };
        let twin = |other: &&Module| {
            (other.payload_bytes, other.rate_hz) == (module.payload_bytes, module.rate_hz)
        };
        if let Some(twin) = read.iter().find(twin) {
            let text = format!("modules: {:?} sends what {:?} sends", module.name, twin.name);
            return Err(limits.source.error(place, text).remedy("leave one of the two out"));
        }
        read.push(module);
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use crate::input_error::Source;

    const MODULES: &str = "name = \"x\"\n\n[workload]\nkind = \"stream\"\nduration_s = 5\n\
        warmup_s = 0.5\nmodules = [\n  { name = \"a\", payload_bytes = 64, rate_hz = 10 },\n  \
        { name = \"b\", payload_bytes = 64, rate_hz = 100 },\n]\n\n[plan]\nsystems = [\"os.*\"]\n\
        tunings = [\"default\"]\ntopology = \"any\"\nruns = 3\n";

    fn parse(text: &str) -> Result<Scenario, String> {
        Scenario::parse(Source::new("x.toml", text)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_module_has_a_size_and_a_rate() {
        let workload = parse(MODULES).unwrap().workload;
        assert_eq!(workload.modules[1].name, "b");
        assert_eq!((workload.warmup_at(Some(10.0)), workload.warmup_at(Some(100.0))), (5, 50));
    }

    #[test]
    fn mistakes_name_line_key_and_remedy() {
        for (good, bad, expected) in [
            ("\"b\"", "\"a\"", "x.toml:9: modules: two are named \"a\""),
            ("\"b\"", "\"b c\"", "x.toml:9: modules: name \"b c\" is not a plain word"),
            ("rate_hz = 100 ", "rate_hz = 10 ", "x.toml:9: modules: \"b\" sends what \"a\" sends"),
            ("rate_hz = 100 ", "rate_hz = 0 ", "x.toml:9: rate_hz: 0 is out of range"),
            ("[plan]", "rate_hz = [1]\n[plan]", "x.toml:12: rate_hz: modules have sizes"),
            ("warmup_s", "warmup_messages = 5\nwarmup_s", "x.toml:7: warmup_s: warmup_messages is"),
            ("warmup_s", "depth = 0\nwarmup_s", "x.toml:6: depth: 0 is out of range"),
            ("warmup_s", "topics = []\nwarmup_s", "x.toml:3: topics: nothing given"),
            ("warmup_s", "publishers = [0]\nwarmup_s", "x.toml:6: publishers: 0 is out of range"),
            (
                "warmup_s",
                "reliability = \"relible\"\nwarmup_s",
                "x.toml:6: unknown variant `relible`; did you mean `reliable`?",
            ),
            ("\"stream\"", "\"flood\"", "x.toml:7: modules: not a key of kind \"flood\""),
            ("\"stream\"", "\"startup\"", "x.toml:7: modules: not a key of kind \"startup\""),
        ] {
            assert!(MODULES.contains(good), "{good}");
            let error = parse(&MODULES.replacen(good, bad, 1)).unwrap_err();
            assert!(error.starts_with(expected), "{error:?} does not start with {expected:?}");
        }
    }
}
