//! Zenoh's configuration of one process. It is made here, passed to the library, and stored in the
//! run's folder, so that anyone can repeat the run with `Config::from_file`.

use std::path::{Path, PathBuf};

use myelin_bench_kit::Error;
use myelin_bench_kit::protocol::{Prepare, Reliability, Role, Workload};
use serde_json::{Value, json};

/// Endpoints at which a process listens (pong) and to which it connects (ping).
#[derive(Clone, Debug, Default)]
pub struct Endpoints {
    /// Endpoints to listen at.
    pub listen: Vec<String>,
    /// Endpoints to connect to.
    pub connect: Vec<String>,
}

/// The configuration of `prepare.role`.
pub fn of(prepare: &Prepare, shared_memory: bool, endpoints: &Endpoints) -> Value {
    let low_latency = is_low_latency(prepare, shared_memory);
    let mut link = json!({
        "tx": { "queue": {
            "size": { "data": prepare.depth.clamp(1, QUEUE_MAX) },
            "congestion_control": { "block": { "wait_before_close": BLOCKED_US_MAX } },
        } },
    });
    if !shared_memory && prepare.payload_bytes >= LARGE_BYTES {
        link["rx"] = json!({ "buffer_size": RECEIVED_BYTES });
    }
    if let Some(enclave) = &prepare.enclave {
        link["tls"] = tls(enclave);
    }
    json!({
        "mode": "peer",
        "scouting": {
            "multicast": { "enabled": false },
            "gossip": { "enabled": false },
        },
        "listen": { "endpoints": endpoints.listen },
        "connect": {
            "endpoints": endpoints.connect,
            "timeout_ms": prepare.match_timeout_ns / 1_000_000,
            "exit_on_failure": true,
            "retry": { "period_init_ms": 1, "period_max_ms": 10, "period_increase_factor": 2 },
        },
        "transport": {
            "unicast": { "lowlatency": low_latency, "qos": { "enabled": !low_latency } },
            "link": link,
            "shared_memory": {
                "enabled": shared_memory,
                "transport_optimization": { "enabled": false },
            },
        },
    })
}

/// TLS of both sides with the certificates of an enclave, which have no names of hosts.
fn tls(enclave: &Path) -> Value {
    let [authority, certificate, key] =
        ["identity_ca.cert.pem", "cert.pem", "key.pem"].map(|name| enclave.join(name));
    json!({
        "root_ca_certificate": authority,
        "enable_mtls": true,
        "verify_name_on_connect": false,
        "listen_certificate": certificate,
        "listen_private_key": key,
        "connect_certificate": certificate,
        "connect_private_key": key,
    })
}

/// Whether to use Zenoh's low-latency transport, which writes to the socket in the publishing
/// thread instead of passing the message to another one. It has neither fragmentation nor dropping,
/// so it is for messages of one batch, if publishing may wait.
pub fn is_low_latency(prepare: &Prepare, shared_memory: bool) -> bool {
    let may_wait =
        prepare.workload == Workload::Roundtrip || prepare.reliability == Reliability::Reliable;
    may_wait && (shared_memory || prepare.payload_bytes <= WHOLE_BYTES_MAX)
}

/// Zenoh's configuration from `value`.
pub fn parse(value: &Value) -> Result<zenoh::Config, Error> {
    zenoh::Config::from_json5(&value.to_string())
        .map_err(|error| Error::new(format!("Zenoh refuses its configuration: {error}")))
}

/// Writes `value` into the run's folder, under a name of this process.
pub fn write(prepare: &Prepare, value: &Value) -> Result<(), Error> {
    let path = path(prepare);
    let text = format!("{value:#}\n");
    std::fs::write(&path, text)
        .map_err(|error| Error::new(format!("writing {}: {error}", path.display())))
}

fn path(prepare: &Prepare) -> PathBuf {
    let role = if prepare.role == Role::Ping { "ping" } else { "pong" };
    let name = match prepare.index {
        0 => format!("zenoh-{role}.json"),
        index => format!("zenoh-{role}-{index}.json"),
    };
    prepare.directory.join(name)
}

/// Zenoh's limit of batches in a queue. An express message fills one by itself.
const QUEUE_MAX: u32 = 16;
/// How long a reliable publisher waits for a subscriber that takes nothing, in microseconds. With
/// Zenoh's default, 5 s, the connection of a subscriber that only slept would end.
const BLOCKED_US_MAX: u64 = 60_000_000;
/// Certainly fits into a batch with Zenoh's additions. A batch has up to 65,535 B, of which TCP
/// uses a multiple of half its segment size; 60,000 B did not fit.
const WHOLE_BYTES_MAX: u64 = 32_000;
/// Such a payload takes many batches …
const LARGE_BYTES: u64 = 256 * 1024;
/// … so the receive buffer takes several at once, as Zenoh's documentation recommends.
const RECEIVED_BYTES: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn prepare(json: Value) -> Prepare {
        let mut base = json!({
            "protocol": 1, "system": "zenoh.tcp", "role": "ping", "run": "r", "domain": 0,
            "payload_bytes": 64, "messages": 1, "duration_ns": 0, "warmup_messages": 0,
            "rate_hz": null, "reply_timeout_ns": 1, "match_timeout_ns": 1_000_000_000,
            "record_every": 1, "samples": null, "directory": ".", "lock_memory": false, "seed": 1,
        });
        for (key, value) in json.as_object().unwrap() {
            base[key] = value.clone();
        }
        serde_json::from_value(base).unwrap()
    }

    #[test]
    fn zenoh_accepts_every_configuration() {
        let endpoints = Endpoints { listen: vec!["tcp/127.0.0.1:0".into()], ..Default::default() };
        for depth in [0, 1, 16, 1000] {
            for payload_bytes in [0, 64, 65_536, 10 << 20] {
                for shared_memory in [false, true] {
                    let fields = json!({ "depth": depth, "payload_bytes": payload_bytes });
                    parse(&of(&prepare(fields), shared_memory, &endpoints)).unwrap();
                }
            }
        }
    }

    #[test]
    fn the_low_latency_transport_is_only_for_whole_messages_that_may_wait() {
        let is = |fields, shm| is_low_latency(&prepare(fields), shm);
        assert!(is(json!({}), false));
        assert!(!is(json!({ "payload_bytes": 65_536 }), false));
        assert!(is(json!({ "payload_bytes": 65_536 }), true));
        assert!(!is(json!({ "workload": "stream" }), true));
        assert!(is(json!({ "workload": "stream", "reliability": "reliable" }), false));
    }

    #[test]
    fn each_process_has_a_file_of_its_own() {
        let name = |fields| path(&prepare(fields)).display().to_string();
        assert_eq!(name(json!({})), "./zenoh-ping.json");
        assert_eq!(name(json!({ "role": "pong", "index": 2 })), "./zenoh-pong-2.json");
    }
}
