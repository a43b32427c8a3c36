//! RouDi's memory pools: which pools a run needs, whether its message fits, and the TOML file.
//!
//! A chunk contains a message, iceoryx's header and what the driver's middleware adds. A pool's
//! `size` counts all of that except iceoryx's own header, which RouDi adds itself:
//!
//! ```text
//! │ iceoryx 40 B │ the middleware's own │ message, rounded up to 8 B │
//!                ╰──────────────── a pool's `size` ──────────────────╯
//! ```

use std::ffi::CStr;

use myelin_bench_kit::Error;
use myelin_bench_kit::protocol::Prepare;
use serde::Deserialize;

/// Chunks of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// RouDi's `size`: bytes of a chunk without iceoryx's own header.
    pub bytes: u32,
    /// Number of chunks.
    pub count: u32,
}

/// The scenario's `[options.<driver>]` table.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default)]
    pools: Option<Vec<Pool>>,
}

/// A run's requirements on RouDi's pools.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// Name of the driver and of its table of options.
    pub driver: &'static str,
    /// Bytes that its middleware adds to a message.
    pub around_bytes: u64,
    /// Number of chunks that a run can hold at once.
    pub chunks: u32,
    /// Whether the run's messages use pools at all; the options are checked in any case.
    pub shared_memory: bool,
}

impl Need {
    /// The pools of a run: those of the scenario (`pools` in the driver's options), or a single
    /// pool that fits.
    pub fn pools(&self, prepare: &Prepare) -> Result<Vec<Pool>, Error> {
        let options = serde_json::Value::Object(prepare.options.clone());
        let options: Options = serde_json::from_value(options).map_err(|error| {
            Error::new(format!("options.{}: {error}", self.driver))
                .remedy("for instance: pools = [{ bytes = 1024, count = 100 }]")
                .key(blamed(prepare))
        })?;
        let needed = self.pool_bytes(prepare.payload_bytes)?;
        let Some(pools) = options.pools else {
            return Ok(vec![Pool { bytes: needed, count: self.chunks }]);
        };
        check(&pools).map_err(|error| error.key("pools"))?;
        if self.shared_memory {
            let fits = self.check_fit(&pools, needed, prepare.payload_bytes);
            fits.map_err(|error| error.key("pools"))?;
        }
        Ok(pools)
    }

    /// Checks that one of `pools` takes chunks of `needed` bytes.
    fn check_fit(&self, pools: &[Pool], needed: u32, payload_bytes: u64) -> Result<(), Error> {
        let largest = pools.iter().max_by_key(|pool| pool.bytes).expect("checked: there is a pool");
        if needed <= largest.bytes {
            return Ok(());
        }
        let Pool { bytes, count } = largest;
        Err(Error::new(format!(
            "a message of {payload_bytes} B payload needs chunks of {needed} B; the largest \
             configured pool, {{ bytes = {bytes}, count = {count} }}, is too small"
        ))
        .remedy(format!("options.pools: add {{ bytes = {needed}, count = {} }}", self.chunks)))
    }

    /// A pool's `size` for messages with `payload_bytes`.
    fn pool_bytes(&self, payload_bytes: u64) -> Result<u32, Error> {
        let bytes = payload_bytes.checked_add(SEQUENCE_BYTES);
        let bytes = bytes.and_then(|bytes| bytes.checked_next_multiple_of(8));
        let bytes = bytes.and_then(|bytes| bytes.checked_add(self.around_bytes));
        let bytes = bytes.and_then(|bytes| u32::try_from(bytes).ok());
        bytes.ok_or_else(|| {
            Error::new(format!("{payload_bytes} B do not fit into a chunk of iceoryx"))
        })
    }
}

/// The key that caused an error in the options: an unknown one, else the only known one.
fn blamed(prepare: &Prepare) -> String {
    let unknown = prepare.options.keys().find(|key| *key != "pools");
    unknown.map_or("pools", |key| key).to_owned()
}

/// Checks that RouDi can make `pools`.
fn check(pools: &[Pool]) -> Result<(), Error> {
    for Pool { bytes, count } in pools {
        if *bytes == 0 || !bytes.is_multiple_of(8) || *count == 0 {
            let text = format!(
                "options.pools: {{ bytes = {bytes}, count = {count} }} is not a \
                                pool"
            );
            return Err(Error::new(text).remedy(
                "bytes must be a multiple of 8, and neither may be \
                                                0",
            ));
        }
    }
    match pools.len() {
        0 => Err(Error::new("options.pools: the list is empty").remedy(
            "leave it out; the driver \
                                                                        then chooses one that \
                                                                        fits",
        )),
        1..=POOLS_MAX => Ok(()),
        len => {
            Err(Error::new(format!("options.pools: {len} pools, but iceoryx allows {POOLS_MAX}")))
        }
    }
}

/// Checks that /dev/shm has room for `pools`. RouDi does not check; a bus error would end it.
pub(crate) fn check_room(pools: &[Pool]) -> Result<(), Error> {
    let bytes = |pool: &Pool| {
        (u64::from(pool.bytes) + CHUNK_HEADER_BYTES).saturating_mul(u64::from(pool.count))
    };
    let needed = pools.iter().map(bytes).fold(BOOKKEEPING_BYTES, u64::saturating_add);
    let Some(free) = free_bytes(SHARED_MEMORY) else {
        return Ok(());
    };
    if needed <= free {
        return Ok(());
    }
    let [needed, free] = [needed, free].map(|bytes| bytes.div_ceil(1 << 20));
    Err(Error::new(format!("RouDi's pools need {needed} MiB of /dev/shm, but {free} MiB are free"))
        .remedy(
            "use a smaller depth or payload, fewer topics, or: mount -o remount,size=… \
                 /dev/shm",
        ))
}

/// Bytes that this process may still use on the file system of `path`.
fn free_bytes(path: &CStr) -> Option<u64> {
    // SAFETY: all members of statvfs are numbers, for which zeros are valid.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path is NUL-terminated and this call may write `found`.
    let status = unsafe { libc::statvfs(path.as_ptr(), &mut found) };
    (status == 0).then(|| found.f_bavail * found.f_frsize)
}

/// RouDi's configuration file.
pub fn toml(pools: &[Pool]) -> String {
    let mut text = "# Written by `myelin bench` for `iox-roudi -c`.\n\
                    [general]\nversion = 1\n\n[[segment]]\n"
        .to_owned();
    for Pool { bytes, count } in pools {
        text += &format!("\n[[segment.mempool]]\nsize = {bytes}\ncount = {count}\n");
    }
    text
}

/// Limit of pools in a segment (iceoryx's MAX_NUMBER_OF_MEMPOOLS).
const POOLS_MAX: usize = 32;
/// The sequence number in front of the payload.
const SEQUENCE_BYTES: u64 = 8;
/// iceoryx's own header of a chunk.
const CHUNK_HEADER_BYTES: u64 = 40;
/// RouDi's own segment, some 63 MiB.
const BOOKKEEPING_BYTES: u64 = 64 << 20;
const SHARED_MEMORY: &CStr = c"/dev/shm";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The requirements of CycloneDDS.
    const NEED: Need =
        Need { driver: "cyclonedds", around_bytes: 56 + 8, chunks: 16, shared_memory: true };

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

    /// Found by experiment with iceoryx 2.0.3: each of these sizes suffices, and 8 less does not.
    #[test]
    fn the_pool_size_has_the_overhead_of_iceoryx() {
        let sizes = [0, 13, 1024].map(|payload_bytes| NEED.pool_bytes(payload_bytes).unwrap());
        assert_eq!(sizes, [72, 88, 1096]);
        assert!(NEED.pool_bytes(u64::from(u32::MAX) - 64).is_err());
        assert!(NEED.pool_bytes(u64::MAX).is_err());
    }

    #[test]
    fn without_options_one_pool_fits() {
        let pools = NEED.pools(&prepare(1024, json!({}))).unwrap();
        assert_eq!(pools, [Pool { bytes: 1096, count: 16 }]);
        assert!(toml(&pools).ends_with("[[segment.mempool]]\nsize = 1096\ncount = 16\n"));
    }

    #[test]
    fn configured_pools_are_used_unchanged() {
        let options =
            json!({ "pools": [{ "bytes": 64, "count": 2 }, { "bytes": 1096, "count": 3 }] });
        let pools = NEED.pools(&prepare(1024, options)).unwrap();
        assert_eq!(pools, [Pool { bytes: 64, count: 2 }, Pool { bytes: 1096, count: 3 }]);
        assert_eq!(toml(&pools).matches("[[segment.mempool]]").count(), 2);
    }

    #[test]
    fn a_message_too_large_names_pool_and_size() {
        let options =
            json!({ "pools": [{ "bytes": 1088, "count": 9 }, { "bytes": 64, "count": 2 }] });
        let error = NEED.pools(&prepare(1024, options.clone())).unwrap_err();
        assert!(error.message.contains("1096 B"), "{error}");
        assert!(error.message.contains("{ bytes = 1088, count = 9 }"), "{error}");
        assert_eq!(error.key, "pools");
        let udp = Need { shared_memory: false, ..NEED };
        assert!(udp.pools(&prepare(1024, options)).is_ok(), "UDP needs no pool");
    }

    #[test]
    fn invalid_pools_are_refused() {
        for (options, key) in [
            (json!({ "pool": [] }), "pool"),
            (json!({ "pools": [] }), "pools"),
            (json!({ "pools": [{ "bytes": 1024 }] }), "pools"),
            (json!({ "pools": [{ "bytes": 1025, "count": 1 }] }), "pools"),
            (json!({ "pools": [{ "bytes": 1024, "count": 0 }] }), "pools"),
            (json!({ "pools": [{ "bytes": -8, "count": 1 }] }), "pools"),
        ] {
            let error = NEED.pools(&prepare(0, options.clone())).unwrap_err();
            assert_eq!(error.key, key, "{options}: {error}");
        }
    }

    #[test]
    fn pools_beyond_the_shared_memory_are_refused() {
        assert!(check_room(&[Pool { bytes: 1024, count: 16 }]).is_ok());
        let error = check_room(&[Pool { bytes: u32::MAX - 7, count: u32::MAX }; 8]).unwrap_err();
        assert!(error.message.contains("MiB of /dev/shm"), "{error}");
        assert!(error.remedy.contains("depth"), "{}", error.remedy);
    }
}
