//! RouDi's memory pools: which ones a run needs, whether its message fits, and the TOML.
//!
//! A chunk carries, around a message, iceoryx's header, CycloneDDS's header and padding. A pool's
//! `size` counts all of it except iceoryx's own header, which RouDi adds itself:
//!
//! ```text
//! │ iceoryx 40 B │ CycloneDDS 56 B │ padding 8 B │ message, rounded up to 8 B │
//!                ╰────────────────────── a pool's `size` ──────────────────────╯
//! ```

use myelin_bench_kit::Error;
use myelin_bench_kit::protocol::Prepare;
use serde::Deserialize;

/// Chunks of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// RouDi's `size`: bytes of a chunk without iceoryx's own header.
    pub bytes: u32,
    /// How many chunks.
    pub count: u32,
}

/// The scenario's `[options.cyclonedds]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default)]
    pools: Option<Vec<Pool>>,
}

/// The pools of a run: those the scenario states, or one that fits. `shared_memory` tells whether
/// the run's messages go into them at all; the options are checked in any case.
pub fn of(prepare: &Prepare, shared_memory: bool) -> Result<Vec<Pool>, Error> {
    let options = serde_json::Value::Object(prepare.options.clone());
    let options: Options = serde_json::from_value(options).map_err(|error| {
        Error::new(format!("options.cyclonedds: {error}"))
            .remedy("for instance: pools = [{ bytes = 1024, count = 100 }]")
            .key(blamed(prepare))
    })?;
    let needed = pool_bytes(prepare.payload_bytes)?;
    let Some(pools) = options.pools else {
        return Ok(vec![Pool { bytes: needed, count: chunks(prepare) }]);
    };
    check(&pools).map_err(|error| error.key("pools"))?;
    if shared_memory {
        check_fit(&pools, needed, prepare.payload_bytes).map_err(|error| error.key("pools"))?;
    }
    Ok(pools)
}

/// The key that a failure to read the options is about: one we do not know, else the only one.
fn blamed(prepare: &Prepare) -> String {
    let unknown = prepare.options.keys().find(|key| *key != "pools");
    unknown.map_or("pools", |key| key).to_owned()
}

/// Whether RouDi can make `pools`.
fn check(pools: &[Pool]) -> Result<(), Error> {
    for Pool { bytes, count } in pools {
        if *bytes == 0 || !bytes.is_multiple_of(8) || *count == 0 {
            let text = format!("options.pools: {{ bytes = {bytes}, count = {count} }} is no pool");
            return Err(Error::new(text).remedy("bytes is a multiple of 8, and neither is 0"));
        }
    }
    match pools.len() {
        0 => Err(Error::new("options.pools: no pool").remedy("leave it out for one that fits")),
        1..=POOLS_MAX => Ok(()),
        len => Err(Error::new(format!("options.pools: {len} pools, iceoryx takes {POOLS_MAX}"))),
    }
}

/// Whether one of `pools` takes chunks of `needed` bytes.
fn check_fit(pools: &[Pool], needed: u32, payload_bytes: u64) -> Result<(), Error> {
    let largest = pools.iter().max_by_key(|pool| pool.bytes).expect("checked: there is a pool");
    if needed <= largest.bytes {
        return Ok(());
    }
    let Pool { bytes, count } = largest;
    Err(Error::new(format!(
        "a message of {payload_bytes} B payload needs chunks of {needed} B; \
         the largest stated pool, {{ bytes = {bytes}, count = {count} }}, is too small"
    ))
    .remedy(format!("options.pools: add {{ bytes = {needed}, count = {CHUNKS} }}")))
}

/// A pool's `size` for messages with `payload_bytes`.
fn pool_bytes(payload_bytes: u64) -> Result<u32, Error> {
    let bytes = payload_bytes.checked_add(SEQUENCE_BYTES);
    let bytes = bytes.and_then(|bytes| bytes.checked_next_multiple_of(8));
    let bytes = bytes.and_then(|bytes| bytes.checked_add(AROUND_BYTES));
    let bytes = bytes.and_then(|bytes| u32::try_from(bytes).ok());
    bytes.ok_or_else(|| Error::new(format!("{payload_bytes} B do not fit into a chunk of iceoryx")))
}

/// Chunks of the pool a run gets by itself. Of a stream each subscriber can lag by a full queue of
/// iceoryx and a full history of its reader, each of `depth` samples, and have one more in its
/// hands; each publisher has one on loan and one that iceoryx keeps for reuse.
fn chunks(prepare: &Prepare) -> u32 {
    if !prepare.workload.is_one_way() {
        return CHUNKS;
    }
    let lagging = prepare.depth.saturating_mul(2).saturating_add(1);
    let held = prepare.subscribers.saturating_mul(lagging);
    let held = held.saturating_add(prepare.publishers.saturating_mul(2));
    held.saturating_mul(prepare.topics).max(CHUNKS)
}

/// RouDi's configuration file.
pub fn toml(pools: &[Pool]) -> String {
    let mut text = "# Written by myelin-driver-cyclonedds for `iox-roudi -c`.\n\
                    [general]\nversion = 1\n\n[[segment]]\n"
        .to_owned();
    for Pool { bytes, count } in pools {
        text += &format!("\n[[segment.mempool]]\nsize = {bytes}\ncount = {count}\n");
    }
    text
}

/// Chunks of a round trip. A direction holds at most the 5 messages after whose loss the kit gives
/// up, one on loan, and one that iceoryx's publisher keeps for reuse: 7, twice, and two to spare.
/// RouDi touches every page of its pools, so more would only be memory.
const CHUNKS: u32 = 16;
/// Most pools in a segment (iceoryx's MAX_NUMBER_OF_MEMPOOLS).
const POOLS_MAX: usize = 32;
/// The sequence number in front of the payload.
const SEQUENCE_BYTES: u64 = 8;
/// CycloneDDS's header in a chunk (its `iceoryx_header`), and the padding that iceoryx reserves
/// between it and a message of alignment 8.
const AROUND_BYTES: u64 = 56 + 8;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn prepare(payload_bytes: u64, options: serde_json::Value) -> Prepare {
        serde_json::from_value(json!({
            "protocol": 1, "system": "cyclonedds.iceoryx", "role": "daemon", "run": "r",
            "domain": 1, "payload_bytes": payload_bytes, "messages": 1, "duration_ns": 0,
            "warmup_messages": 0, "rate_hz": null, "reply_timeout_ns": 1, "match_timeout_ns": 1,
            "record_every": 1, "samples": null, "directory": "/", "lock_memory": false, "seed": 0,
            "options": options,
        }))
        .unwrap()
    }

    /// Found by trying with iceoryx 2.0.3: each of these is enough, and 8 less is not.
    #[test]
    fn a_pool_is_as_large_as_iceoryx_needs_it() {
        let sizes = [0, 13, 1024].map(|payload_bytes| pool_bytes(payload_bytes).unwrap());
        assert_eq!(sizes, [72, 88, 1096]);
        assert!(pool_bytes(u64::from(u32::MAX) - 64).is_err());
        assert!(pool_bytes(u64::MAX).is_err());
    }

    #[test]
    fn without_options_one_pool_fits() {
        let pools = of(&prepare(1024, json!({})), true).unwrap();
        assert_eq!(pools, [Pool { bytes: 1096, count: CHUNKS }]);
        assert!(toml(&pools).ends_with("[[segment.mempool]]\nsize = 1096\ncount = 16\n"));
    }

    #[test]
    fn stated_pools_are_taken_as_they_are() {
        let options =
            json!({ "pools": [{ "bytes": 64, "count": 2 }, { "bytes": 1096, "count": 3 }] });
        let pools = of(&prepare(1024, options), true).unwrap();
        assert_eq!(pools, [Pool { bytes: 64, count: 2 }, Pool { bytes: 1096, count: 3 }]);
        assert_eq!(toml(&pools).matches("[[segment.mempool]]").count(), 2);
    }

    #[test]
    fn a_message_too_large_names_pool_and_size() {
        let options =
            json!({ "pools": [{ "bytes": 1088, "count": 9 }, { "bytes": 64, "count": 2 }] });
        let error = of(&prepare(1024, options.clone()), true).unwrap_err();
        assert!(error.message.contains("1096 B"), "{error}");
        assert!(error.message.contains("{ bytes = 1088, count = 9 }"), "{error}");
        assert_eq!(error.key, "pools");
        assert!(of(&prepare(1024, options), false).is_ok(), "UDP needs no pool");
    }

    #[test]
    fn nonsense_is_refused() {
        for (options, key) in [
            (json!({ "pool": [] }), "pool"),
            (json!({ "pools": [] }), "pools"),
            (json!({ "pools": [{ "bytes": 1024 }] }), "pools"),
            (json!({ "pools": [{ "bytes": 1025, "count": 1 }] }), "pools"),
            (json!({ "pools": [{ "bytes": 1024, "count": 0 }] }), "pools"),
            (json!({ "pools": [{ "bytes": -8, "count": 1 }] }), "pools"),
        ] {
            let error = of(&prepare(0, options.clone()), true).unwrap_err();
            assert_eq!(error.key, key, "{options}: {error}");
        }
    }
}
