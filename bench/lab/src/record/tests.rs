use super::*;
use crate::machine::Identity;
use crate::observe::Observation;

fn folder() -> (tempfile::TempDir, Folder) {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::create(&place.path().join("out"), &plan(), &host("a")).unwrap();
    (place, folder)
}

/// A plan of one cell without planned runs, so that all runs are beyond the plan.
fn plan() -> Plan {
    let cell = r#"{"scenario": 0, "system": "a.x", "tuning": "default", "payload_bytes": 8,
        "topology": "two-processes", "rate_hz": null}"#;
    let mut plan = Plan::new(Vec::new(), 1, "test".into());
    plan.cells.push(serde_json::from_str(cell).unwrap());
    plan
}

fn host(cpu_model: &str) -> Machine {
    let identity = Identity { cpu_model: cpu_model.into(), ..Identity::default() };
    Machine { identity, ..Machine::default() }
}

fn record(order: u32) -> RunRecord {
    RunRecord {
        plan: RunPlan { order, cell: 0, repeat: 0 },
        startup_ms: Some(1.5),
        directory: "runs".into(),
        ..RunRecord::default()
    }
}

#[test]
fn a_series_is_kept_beside_the_line_and_may_be_missing() {
    let (_place, mut folder) = folder();
    let series = Series { begin_ns: 5, cost_percent: 0.25, ..Series::default() };
    let observation = Observation { series: Some(series.clone()), ..Observation::default() };
    folder.keep(&record(0), &RunSamples::default()).unwrap();
    let without = folder.runs().unwrap().runs.remove(0);
    assert_eq!(folder.series(&without).unwrap(), None);
    let seen = RunRecord { observation: Some(observation), ..record(0) };
    folder.keep(&seen, &RunSamples::default()).unwrap();
    let kept = folder.runs().unwrap().runs.remove(0);
    assert_eq!(kept.observation.as_ref().unwrap().series, None);
    assert_eq!(folder.series(&kept).unwrap(), Some(series));
    fs::write(folder.path().join("runs").join(OBSERVED), b"no").unwrap();
    assert!(folder.series(&kept).unwrap_err().to_string().contains(OBSERVED));
}

#[test]
fn only_one_session_at_a_time_uses_a_folder() {
    let (_place, folder) = folder();
    let (mut second, _, _) = Folder::open(folder.path()).unwrap();
    assert!(second.in_progress() && !folder.in_progress());
    assert!(second.claim().unwrap_err().to_string().contains("another session"));
    drop(folder);
    assert!(!second.in_progress());
    second.claim().unwrap();
}

#[test]
fn the_last_record_of_a_repeated_run_counts() {
    let (_place, mut folder) = folder();
    let failed = RunRecord { failure: Some("died".into()), ..record(0) };
    folder.keep(&failed, &RunSamples::default()).unwrap();
    folder.keep(&record(0), &RunSamples::default()).unwrap();
    let runs = folder.runs().unwrap().runs;
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].failure, None);
}

#[test]
fn foreign_and_invalid_lines_are_skipped() {
    let (_place, mut folder) = folder();
    let of = |order, cpu_model: &str| {
        let identity = host(cpu_model).identity;
        RunRecord { host: Some(identity), ..record(order) }
    };
    let mut other_plan = of(3, "a");
    other_plan.plan.cell = 7;
    for run in [of(0, "a"), of(0, "b"), of(1, "b"), other_plan] {
        folder.keep(&run, &RunSamples::default()).unwrap();
    }
    folder.runs.write_all(b"{\"order\": \xff\n").unwrap();
    folder.keep(&of(4, "a"), &RunSamples::default()).unwrap();
    let Lines { runs, damage } = folder.runs().unwrap();
    let orders: Vec<u32> = runs.iter().map(|run| run.plan.order).collect();
    assert_eq!(orders, [0, 4]);
    assert_eq!(runs[0].host.as_ref().unwrap().cpu_model, "a", "not replaced by the other's");
    assert_eq!(damage.len(), 3, "{damage:?}");
    let is_of = |at: usize, words: [&str; 2]| words.iter().all(|it| damage[at].contains(it));
    assert!(is_of(0, ["runs.jsonl:2 and one more line:", "another machine"]), "{damage:?}");
    assert!(is_of(1, ["runs.jsonl:4:", "does not belong to plan.json"]), "{damage:?}");
    assert!(is_of(2, ["runs.jsonl:5:", "--resume"]), "{damage:?}");
}
