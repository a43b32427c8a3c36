//! The bench against known values: the summary must show the values that the synthetic driver
//! injects.

use crate::support::own_host;
use crate::support::{bench, complaint, finish, summary};

/// `bench/scenarios/self-test.toml`: the quantile function of the delays, in µs.
const DELAYS_US: [(f64, f64); 6] =
    [(0.0, 10.0), (0.5, 20.0), (0.9, 40.0), (0.99, 80.0), (0.999, 200.0), (1.0, 500.0)];
const MESSAGES: u64 = 100_000;
const RUNS: u64 = 3;
/// `bench/scenarios/self-test-stream.toml`.
const STREAM_RUNS: u64 = 5;

#[test]
fn injected_percentiles_loss_duplicates_and_reorderings_are_recovered() {
    let _alone = own_host::alone();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let output = finish(&mut bench(&["run", "self-test", "--out", out.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let cell = &summary(&out)["cells"][0];
    assert_eq!(cell["valid"], true, "{cell}");

    let every = |n: u64| MESSAGES / n;
    let both = |a: u64, b: u64| MESSAGES / (a * b);
    // Every n-th message suffers; a message that is lost suffers nothing else, and one held back
    // is not doubled. 997, 1009, 10007 and 20011 are primes: two fates meet at their product.
    let lost = every(1009);
    let reordered = every(20011) - both(20011, 1009);
    let duplicates = every(997) - both(997, 1009) - both(997, 20011);
    assert_eq!(cell["sent"], RUNS * MESSAGES);
    assert_eq!(cell["lost"], RUNS * lost, "{cell}");
    assert_eq!(cell["out_of_order"], RUNS * reordered, "{cell}");
    assert_eq!(cell["duplicates"], RUNS * duplicates, "{cell}");
    assert_eq!(cell["corrupt"], 0);
    assert_eq!(cell["received"], RUNS * (MESSAGES - lost));

    // Messages that are stalled or held back lie beyond all delays, and those that are lost beyond
    // these, so the quantiles of the delays move up by their share of what was sent.
    let beyond = reordered + every(10007) + lost;
    let within = 1.0 - beyond as f64 / MESSAGES as f64;
    for (name, at) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
        let found = cell["round_trip_us"][name].as_f64().unwrap();
        let expected = quantile(at / within);
        let tolerance = (expected * 0.01).max(1.0);
        assert!(
            (found - expected).abs() <= tolerance,
            "{name}: found {found}, injected {expected}"
        );
    }
    let p999 = cell["round_trip_us"]["p999"].as_f64().unwrap();
    assert!(
        p999 > 40_000.0,
        "99 of 100,000 never came, and the slowest that did were stalled: {p999}"
    );
}

#[test]
fn injected_one_way_latency_loss_and_duplicates_of_a_stream_are_recovered() {
    let _alone = own_host::alone();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let output = finish(&mut bench(&["run", "self-test-stream", "--out", out.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let summary = summary(&out);
    let cells = summary["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4, "two topologies by two schedules");
    for cell in cells {
        assert_eq!((&cell["valid"], &cell["workload"]), (&true.into(), &"stream".into()), "{cell}");
        assert_eq!(cell["sent"], STREAM_RUNS * MESSAGES);
        assert_eq!(cell["corrupt"], 0);
        // 997 and 1009 are primes whose product exceeds the messages: no fate meets another.
        let lost = STREAM_RUNS * (MESSAGES / 1009);
        assert_eq!(cell["lost"], lost, "{cell}");
        assert_eq!(cell["received"], STREAM_RUNS * MESSAGES - lost, "{cell}");
        assert_eq!(cell["duplicates"], STREAM_RUNS * (MESSAGES / 997), "{cell}");
        let has_own_account = cell["topology"] == "two-processes";
        assert_eq!(cell["receiver_cpu_percent"].is_number(), has_own_account, "{cell}");
        assert!(cell["round_trip_us"].is_null() && cell["memcpy_us"].is_null(), "{cell}");
        for (name, at) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
            let found = cell["one_way_us"][name].as_f64().unwrap();
            let expected = quantile(at / (1.0 - (MESSAGES / 1009) as f64 / MESSAGES as f64));
            let tolerance = expected * 0.01;
            assert!(
                (found - expected).abs() <= tolerance,
                "{} {name}: found {found}, injected {expected}",
                cell["system"]
            );
        }
        let interval = cell["one_way_p50_interval_us"].as_array().unwrap();
        let p50 = cell["one_way_us"]["p50"].as_f64().unwrap();
        assert!(interval[0].as_f64() <= Some(p50) && Some(p50) <= interval[1].as_f64(), "{cell}");
    }
    let of = |topology: &str| -> Vec<&str> {
        let cells = cells.iter().filter(|cell| cell["topology"] == topology);
        cells.map(|cell| cell["params"]["arrivals"].as_str().unwrap()).collect()
    };
    assert_eq!(of("one-process"), ["even", "jitter"]);
    assert_eq!(of("two-processes"), ["even", "jitter"]);
}

/// The injected quantile function between its points.
fn quantile(at: f64) -> f64 {
    let next = DELAYS_US.iter().position(|(q, _)| *q >= at).expect("a quantile").max(1);
    let ((q0, v0), (q1, v1)) = (DELAYS_US[next - 1], DELAYS_US[next]);
    v0 + (v1 - v0) * (at - q0) / (q1 - q0)
}

#[test]
fn stalls_count_for_every_delayed_message() {
    let _alone = own_host::alone();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let output = finish(&mut bench(&["run", "self-test-omission", "--out", out.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let cell = &summary(&out)["cells"][0];
    assert_eq!(cell["valid"], true, "{cell}");
    // `bench/scenarios/self-test-omission.toml`: every 5000th of 60,000 messages at 1 kHz holds the
    // publisher up for 50 ms, and is itself as late; all take 20 µs.
    let (mut free_us, mut injected) = (0.0f64, Vec::new());
    for id in 0..60_000u32 {
        let due_us = f64::from(id) * 1e3;
        let stall_us = if (id + 1) % 5_000 == 0 { 50_000.0 } else { 0.0 };
        let sent_us = due_us.max(free_us);
        free_us = sent_us + stall_us;
        injected.push(sent_us - due_us + stall_us + 20.0);
    }
    injected.sort_by(f64::total_cmp);
    let expected = injected[(injected.len() as f64 * 0.999).ceil() as usize - 1];
    assert!(expected > 40_000.0, "{expected}");
    let p999 = |of: &str| cell[of]["p999"].as_f64().unwrap();
    let found = p999("one_way_us");
    assert!((found / expected - 1.0).abs() < 0.02, "found {found}, injected {expected}");
    assert!(p999("service_us") < 100.0, "the naive figure shows none of it: {cell}");
    assert!(p999("lateness_us") > 40_000.0, "{cell}");
    let page = std::fs::read_to_string(out.join("report.md")).unwrap_or_default()
        + &String::from_utf8_lossy(&output.stdout);
    assert!(page.to_lowercase().contains("naive"), "the naive figure stands beside it: {page}");
}
