//! Which keys of `[workload]` belong to which kind: a key of another kind is a mistake, not to be
//! passed over.

use std::ops::Range;

use super::Kind;
use super::limits::Limits;
use crate::input_error::InputError;

/// Refuses the first of `given` (keys and their places) that means nothing for `kind`.
pub(super) fn check(
    limits: &Limits<'_>,
    kind: Kind,
    given: &[(&str, Option<Range<usize>>)],
) -> Result<(), InputError> {
    for (key, place) in given {
        let (Some(place), Some(rule)) = (place, RULES.iter().find(|rule| rule.key == *key)) else {
            continue;
        };
        if !rule.kinds.contains(&kind) {
            let text = format!("{key}: not a key of kind \"{}\"", kind.name());
            let remedy = format!("leave it out{}", rule.remedy);
            return Err(limits.source.error(place.clone(), text).remedy(remedy));
        }
    }
    Ok(())
}

/// A key that not every kind has.
struct Rule {
    key: &'static str,
    kinds: &'static [Kind],
    /// Behind "leave it out".
    remedy: &'static str,
}

const STREAMS: &[Kind] = &[Kind::Stream, Kind::Image];
const ONE_WAY: &[Kind] = &[Kind::Stream, Kind::Image, Kind::Flood, Kind::Startup];
const RATED: &[Kind] = &[Kind::Roundtrip, Kind::Publish, Kind::Stream, Kind::Image];
const MEASURED: &[Kind] = &[Kind::Roundtrip, Kind::Publish, Kind::Stream, Kind::Image, Kind::Flood];

const RULES: &[Rule] = &[
    Rule {
        key: "subscribers",
        kinds: &[Kind::Publish, Kind::Stream, Kind::Image],
        remedy: ", or use kind = \"publish\" or \"stream\"",
    },
    Rule { key: "publishers", kinds: &[Kind::Stream], remedy: ", or use kind = \"stream\"" },
    Rule {
        key: "topics",
        kinds: &[Kind::Stream, Kind::Startup],
        remedy: ", or use kind = \"stream\" or \"startup\"",
    },
    Rule { key: "reliability", kinds: ONE_WAY, remedy: ": it is for what goes one way" },
    Rule { key: "depth", kinds: ONE_WAY, remedy: ": it is for what goes one way" },
    Rule { key: "modules", kinds: &[Kind::Stream], remedy: ", or use kind = \"stream\"" },
    Rule { key: "reply_timeout_ms", kinds: &[Kind::Roundtrip], remedy: ": nothing is answered" },
    Rule { key: "frames", kinds: &[Kind::Image], remedy: ", or use kind = \"image\"" },
    Rule {
        key: "payload_bytes",
        kinds: &[Kind::Roundtrip, Kind::Publish, Kind::Stream, Kind::Flood, Kind::Startup],
        remedy: ": it follows from frames",
    },
    Rule {
        key: "touch",
        kinds: &[Kind::Roundtrip, Kind::Publish, Kind::Stream, Kind::Flood],
        remedy: ": a frame is filled and copied whole, a start-up measures no payload",
    },
    Rule { key: "arrivals", kinds: STREAMS, remedy: ", or use kind = \"stream\"" },
    Rule {
        key: "rate_hz",
        kinds: RATED,
        remedy: ": a flood has no rate, and finds one; a start-up has none",
    },
    Rule { key: "messages", kinds: MEASURED, remedy: ": a start-up ends with the first message" },
    Rule { key: "duration_s", kinds: MEASURED, remedy: ": a start-up ends with the first message" },
    Rule { key: "warmup_messages", kinds: MEASURED, remedy: ": a start-up is measured cold" },
    Rule {
        key: "warmup_s",
        kinds: &[Kind::Roundtrip, Kind::Stream, Kind::Image],
        remedy: ", or give warmup_messages",
    },
    Rule { key: "record_every", kinds: MEASURED, remedy: ": a start-up records one message" },
];
