//! The keys that only streams and images have: frames of a camera, and schedules.

use serde::Deserialize;
use toml::Spanned;

use super::limits::{Limits, plain_name};
use super::{Arrivals, ArrivalsCase, Frame};
use crate::input_error::InputError;

/// One case of `arrivals`, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ArrivalsFile {
    name: Spanned<String>,
    jitter_percent: Option<Spanned<f64>>,
    drift_ppm_per_s: Option<Spanned<f64>>,
    missing_one_in: Option<Spanned<i64>>,
    period_factor: Option<Spanned<f64>>,
}

/// What the cases of `arrivals` are checked against.
pub(super) struct Schedules<'a> {
    pub(super) limits: &'a Limits<'a>,
    pub(super) rates_hz: &'a [Option<f64>],
}

impl Schedules<'_> {
    /// The cases, each with a name of its own.
    pub(super) fn read(
        &self,
        cases: Option<Spanned<Vec<Spanned<ArrivalsFile>>>>,
    ) -> Result<Vec<ArrivalsCase>, InputError> {
        let mut read: Vec<ArrivalsCase> = Vec::new();
        for case in cases.map(Spanned::into_inner).unwrap_or_default() {
            let span = case.span();
            let case = self.case(case.into_inner())?;
            if read.iter().any(|other| other.name == case.name) {
                let text = format!("arrivals: two cases are named {:?}", case.name);
                return Err(self.limits.source.error(span, text).remedy("give each its own name"));
            }
            let is_even = case.arrivals == Arrivals::default();
            if !is_even && self.rates_hz.contains(&None) {
                let text =
                    format!("arrivals: {:?} departs from a rate, and there is none", case.name);
                let remedy = "give rate_hz in messages a second, without \"max\"";
                return Err(self.limits.source.error(span, text).remedy(remedy));
            }
            read.push(case);
        }
        Ok(read)
    }

    fn case(&self, case: ArrivalsFile) -> Result<ArrivalsCase, InputError> {
        let name = plain_name(self.limits, "arrivals", &case.name)?;
        let missing_one_in = match case.missing_one_in {
            None => 0,
            Some(number) => {
                self.limits.within("missing_one_in", number, 2, MISSING_ONE_IN_MAX)? as u32
            }
        };
        Ok(ArrivalsCase {
            name,
            arrivals: Arrivals {
                jitter_percent: self.real("jitter_percent", case.jitter_percent, 0.0, 50.0)?,
                drift_ppm_per_s: self.real(
                    "drift_ppm_per_s",
                    case.drift_ppm_per_s,
                    0.0,
                    DRIFT_PPM_PER_S_MAX,
                )?,
                missing_one_in,
                period_factor: self.real("period_factor", case.period_factor, 0.1, 10.0)?,
            },
        })
    }

    /// A number within limits; 0, which changes nothing, if it is not given.
    fn real(
        &self,
        key: &str,
        value: Option<Spanned<f64>>,
        low: f64,
        high: f64,
    ) -> Result<f64, InputError> {
        value.map_or(Ok(0.0), |value| self.limits.real(key, value, low, high))
    }
}

/// Frames such as `1440x1080`, in pixels.
pub(super) fn frames(
    limits: &Limits<'_>,
    frames: Option<Spanned<Vec<Spanned<String>>>>,
) -> Result<Vec<Frame>, InputError> {
    let frames = frames.map(Spanned::into_inner).unwrap_or_default();
    let mut kept: Vec<Frame> = Vec::new();
    for written in frames {
        let found = written.get_ref();
        let Some(frame) = read_frame(found) else {
            let remedy = format!("give width x height in pixels, 1x1 to {SIDE_MAX}x{SIDE_MAX}");
            return Err(limits.bad(written.span(), "frames", format!("{found:?}"), &remedy));
        };
        match kept.iter().find(|other| other.bytes() == frame.bytes()) {
            Some(twin) if *twin != frame => {
                let text = format!("frames: {found} has as many bytes as {}", frame_name(*twin));
                let remedy = "leave one out: cells are told apart by size";
                return Err(limits.source.error(written.span(), text).remedy(remedy));
            }
            Some(_) => {}
            None => kept.push(frame),
        }
    }
    Ok(kept)
}

/// `1440x1080`, as scenarios have it.
pub fn frame_name(frame: Frame) -> String {
    format!("{}x{}", frame.width, frame.height)
}

fn read_frame(text: &str) -> Option<Frame> {
    let (width, height) = text.split_once('x')?;
    let side = |text: &str| text.parse().ok().filter(|side| (1..=SIDE_MAX).contains(side));
    Some(Frame { width: side(width)?, height: side(height)? })
}

/// A frame of both sides at most is 805 MB.
const SIDE_MAX: u32 = 16_384;
const MISSING_ONE_IN_MAX: i64 = 1_000_000;
/// A tenth of the period more in each second.
const DRIFT_PPM_PER_S_MAX: f64 = 100_000.0;

#[cfg(test)]
mod tests {
    use super::super::*;
    use crate::input_error::Source;

    const IMAGE: &str = "name = \"x\"\n\n[workload]\nkind = \"image\"\n\
        frames = [\"1440x1080\", \"320x240\"]\nmessages = 100\n\n[plan]\nsystems = [\"os.*\"]\n\
        tunings = [\"default\"]\ntopology = \"any\"\nruns = 3\n";

    fn parse(text: &str) -> Result<Scenario, String> {
        Scenario::parse(Source::new("x.toml", text)).map_err(|error| error.to_string())
    }

    fn stream() -> String {
        IMAGE
            .replace("\"image\"", "\"stream\"\nrate_hz = [30, 100]")
            .replace("frames = [\"1440x1080\", \"320x240\"]", "payload_bytes = [64]\narrivals = []")
    }

    #[test]
    fn frames_give_their_size_and_a_camera_its_rate() {
        let scenario = parse(IMAGE).unwrap();
        assert_eq!(scenario.workload.payload_bytes, [4_665_600, 230_400]);
        assert_eq!(scenario.workload.frames[1], Frame { width: 320, height: 240 });
        assert_eq!(scenario.workload.rate_hz, [Some(30.0)]);
        assert_eq!(scenario.plan.topology, [Topology::TwoProcesses, Topology::OneProcess]);
    }

    #[test]
    fn a_warm_up_at_a_rate_lasts_a_second_unless_said() {
        let warmup = |text: &str| {
            let workload = parse(text).unwrap().workload;
            [Some(30.0), Some(100.0), None].map(|rate_hz| workload.warmup_at(rate_hz))
        };
        assert_eq!(warmup(&stream()), [30, 100, 500]);
        assert_eq!(warmup(IMAGE)[0], 30);
        let given = stream().replace("messages =", "warmup_messages = 500\nmessages =");
        assert_eq!(warmup(&given), [500, 500, 500]);
    }

    #[test]
    fn arrivals_are_cases_with_names() {
        let text = stream().replace(
            "arrivals = []",
            "arrivals = [{ name = \"even\" }, { name = \"late\", jitter_percent = 5.0, \
             missing_one_in = 10, period_factor = 0.5 }]",
        );
        let workload = parse(&text).unwrap().workload;
        assert_eq!(workload.arrivals[0].arrivals, Arrivals::default());
        let late = workload.arrivals[1].arrivals;
        assert_eq!((late.jitter_percent, late.missing_one_in), (5.0, 10));
        let timed = Workload { messages: 0, duration_s: 1.0, ..workload };
        assert_eq!(timed.records_at_most(Some(30.0)), 62, "the period halves in the middle");
    }

    #[test]
    fn mistakes_name_line_key_and_remedy() {
        let image = |good: &str, bad: &str| {
            assert!(IMAGE.contains(good), "{good}");
            parse(&IMAGE.replace(good, bad)).unwrap_err()
        };
        let stream =
            |cases: &str| parse(&stream().replace("= []", &format!("= [{cases}]"))).unwrap_err();
        for (error, expected) in [
            (image("1440x1080", "1440"), "x.toml:5: frames: \"1440\" is out of range; give width"),
            (image("1440x1080", "0x9"), "x.toml:5: frames: \"0x9\" is out of range"),
            (
                image("1440x1080", "240x320"),
                "x.toml:5: frames: 320x240 has as many bytes as 240x320",
            ),
            (image("[\"1440x1080\", \"320x240\"]", "[]"), "x.toml:3: frames: nothing given"),
            (
                image("messages", "payload_bytes = [1]\nmessages"),
                "x.toml:6: payload_bytes: not a key",
            ),
            (image("messages", "touch = \"header\"\nmessages"), "x.toml:6: touch: not a key of"),
            (image("messages", "publishers = [1]\nmessages"), "x.toml:6: publishers: not a key"),
            (image("messages", "subscribers = [0]\nmessages"), "x.toml:6: subscribers: 0 is out"),
            (image("\"image\"", "\"stream\""), "x.toml:5: frames: not a key of kind \"stream\""),
            (image("\"any\"", "\"three\""), "x.toml:11: topology: unknown \"three\"; use \"two-"),
            (image("\"any\"", "[]"), "x.toml:11: topology: nothing given"),
            (stream("{ name = \"a b\" }"), "x.toml:7: arrivals: name \"a b\" is not a plain word"),
            (stream("{ name = \"a\" }, { name = \"a\" }"), "x.toml:7: arrivals: two cases are"),
            (stream("{ name = \"a\", jitter_percent = 60.0 }"), "x.toml:7: jitter_percent: 60 is"),
            (stream("{ name = \"a\", missing_one_in = 1 }"), "x.toml:7: missing_one_in: 1 is out"),
            (stream("{ name = \"a\", period_factor = 0.0 }"), "x.toml:7: period_factor: 0 is out"),
            (
                stream("{ name = \"a\", jiter_percent = 1 }"),
                "x.toml:7: unknown field `jiter_percent`",
            ),
        ] {
            assert!(error.starts_with(expected), "{error:?} does not start with {expected:?}");
            assert!(!error.contains('\n'), "{error:?}");
        }
    }

    #[test]
    fn a_schedule_departs_from_a_rate_alone() {
        let text = stream().replace("[30, 100]", "[30, \"max\"]");
        let even = text.replace("= []", "= [{ name = \"even\" }]");
        assert_eq!(parse(&even).unwrap().workload.arrivals.len(), 1);
        let drift = text.replace("= []", "= [{ name = \"drift\", drift_ppm_per_s = 10.0 }]");
        let error = parse(&drift).unwrap_err();
        assert!(error.starts_with("x.toml:7: arrivals: \"drift\" departs from a rate"), "{error}");
    }
}
