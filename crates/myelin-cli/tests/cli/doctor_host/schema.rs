//! The shape of `--json`, as docs/how-to/doctor.md promises it.

use serde_json::Value;

/// The promises of docs/how-to/doctor.md about the findings.
pub fn check_schema(report: &Value) {
    assert_eq!(report["schema"], 1);
    let findings = report["findings"].as_array().unwrap();
    let mut causes: Vec<&str> =
        findings.iter().map(|finding| finding["cause"].as_str().unwrap()).collect();
    causes.sort_unstable();
    assert_eq!(causes, CAUSES);
    let rank = |finding: &Value| {
        let order = ["costs", "note", "unknown", "ok"];
        order.iter().position(|state| finding["state"] == *state).expect("a known state")
    };
    assert!(findings.is_sorted_by_key(rank), "the worst first: {report:#}");
    assert_eq!(report["wrong"], findings.iter().any(|finding| rank(finding) == 0));
    for finding in findings {
        check_finding(finding);
    }
}

fn check_finding(finding: &Value) {
    let keys = ["cause", "state", "found", "because", "values", "cost", "mend"];
    for key in finding.as_object().unwrap().keys() {
        assert!(keys.contains(&key.as_str()), "{key}");
    }
    let unknown = finding["state"] == "unknown";
    assert_eq!(finding["because"].is_string(), unknown, "{finding:#}");
    assert_eq!(finding["found"].is_string(), !unknown, "{finding:#}");
    if finding["state"] == "costs" {
        let mend = finding["mend"].as_object().expect("what costs can be mended");
        assert!(mend.contains_key("now") || mend.contains_key("remark"), "{finding:#}");
        assert!(finding["cost"].is_object(), "{finding:#}");
    }
    if let Some(cost) = finding.get("cost") {
        assert!(cost["what"].as_str().is_some_and(|what| !what.is_empty()));
        match cost["basis"].as_str().unwrap() {
            "measured" => {
                assert!(cost["amount_us"].is_number() || cost["amount_percent"].is_number());
            }
            "expected" => assert!(cost["source"].is_string(), "{finding:#}"),
            other => panic!("{other}"),
        }
    }
    let counts = ["cpus", "cpus_slow", "rtprio_max"];
    let units = ["_us", "_ns", "_bytes", "_percent", "_khz"];
    for (name, value) in finding["values"].as_object().unwrap() {
        let has_unit = units.iter().any(|unit| name.ends_with(unit));
        assert!(!value.is_number() || has_unit || counts.contains(&name.as_str()), "{name}");
    }
}

const CAUSES: [&str; 15] = [
    "clocksource",
    "cpu_dma_latency",
    "cpu_quota",
    "cyclonedds",
    "governor",
    "huge_pages",
    "idle_states",
    "memlock",
    "preemption",
    "rt_throttling",
    "rtprio",
    "shared_memory",
    "smt",
    "socket_buffers",
    "steal",
];
