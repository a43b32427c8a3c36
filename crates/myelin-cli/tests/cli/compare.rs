//! Two results folders: equal ones are not reported as different, different ones are, and scripts
//! learn of it by the exit status.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::own_host;
use crate::support::{bench, complaint, finish};
use serde_json::Value;

/// A folder of five runs on the virtual clock whose messages take `factor` times what is usual.
/// Without a number of messages delays are drawn: every run has medians of its own.
fn folder(place: &Path, name: &str, factor: f64, seed: u64) -> PathBuf {
    let delays = [(0.0, 10.0), (0.5, 20.0), (0.9, 40.0), (0.99, 80.0), (1.0, 500.0)];
    let delays: Vec<String> = delays
        .iter()
        .map(|(quantile, us)| format!("[{quantile:.2}, {:.1}]", us * factor))
        .collect();
    let file = place.join("delays.toml");
    let text = format!(
        "name = \"delays\"\n[workload]\nkind = \"roundtrip\"\npayload_bytes = [64]\n\
         duration_s = 0.1\nwarmup_messages = 20\n[plan]\nsystems = [\"synthetic\"]\n\
         tunings = [\"default\"]\ntopology = \"two-processes\"\nruns = 5\n\
         [options.synthetic]\nclock = \"virtual\"\ndelay_us = [{}]\n",
        delays.join(", ")
    );
    fs::write(&file, text).unwrap();
    let out = place.join(name);
    let (file, out_text) = (file.to_str().unwrap(), out.to_str().unwrap());
    let seed = seed.to_string();
    let output = finish(&mut bench(&["run", file, "--out", out_text, "--seed", &seed]));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    out
}

fn compare(a: &Path, b: &Path, more: &[&str]) -> (Option<i32>, String, String) {
    let folders = ["compare", a.to_str().unwrap(), b.to_str().unwrap()];
    let output = finish(&mut bench(&[&folders, more].concat()));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), said, complaint(&output))
}

fn json(a: &Path, b: &Path) -> Value {
    let (status, said, complaint) = compare(a, b, &["--json"]);
    assert_eq!(status, Some(0), "{complaint}");
    serde_json::from_str(&said).expect("JSON and nothing else")
}

/// The latencies of a comparison that were reported as different. CPU and memory come from real
/// processes on a machine whose other work changes between the two folders.
fn alarms(comparison: &Value) -> usize {
    let figures = comparison["cells"][0]["figures"].as_array().unwrap();
    let is_latency = |it: &&Value| it["figure"] == "p50_us" || it["figure"] == "p99_us";
    let differs = |it: &&Value| it["verdict"] == "worse" || it["verdict"] == "better";
    figures.iter().filter(is_latency).filter(differs).count()
}

/// A test of the lab (`compare_rate`) checks how often equal folders raise an alarm; here are real
/// ones.
#[test]
fn equal_folders_raise_no_alarm_and_a_slow_one_does() {
    let _alone = own_host::alone();
    let place = tempfile::tempdir().unwrap();
    let of_seed = |seed: u64| folder(place.path(), &format!("equal-{seed}"), 1.0, seed);
    let equal = [0, 1, 2].map(of_seed);
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        let comparison = json(&equal[a], &equal[b]);
        assert_eq!(comparison["error_rate"], 0.05);
        assert_eq!(comparison["comparisons"], 4, "p50, p99, CPU and memory: {comparison}");
        assert_eq!(alarms(&comparison), 0, "{comparison}");
    }

    let slow = folder(place.path(), "slow", 1.1, 77);
    for a in &equal {
        let p50 = &json(a, &slow)["cells"][0]["figures"][0];
        assert_eq!((&p50["figure"], &p50["verdict"]), (&"p50_us".into(), &"worse".into()), "{p50}");
        let ratio = p50["ratio"].as_f64().unwrap();
        assert!((1.06..1.14).contains(&ratio), "{p50}");
    }
    a_script_learns_of_it(place.path(), &equal[0], &slow);
}

/// Exit statuses, texts and the page, for the same folders.
fn a_script_learns_of_it(place: &Path, a: &Path, slow: &Path) {
    let (status, said, _) = compare(a, slow, &["--fail-on", "worse"]);
    assert_eq!(status, Some(1), "{said}");
    let places = ["Environment", "options.synthetic.delay_us", "Verdicts", "Worse in B"];
    let places = places.map(|what| said.find(what).unwrap_or_else(|| panic!("{what}: {said}")));
    assert!(places.is_sorted(), "the environment comes first: {said}");
    let (status, said, _) = compare(a, slow, &[]);
    assert_eq!(status, Some(0), "only who asks is failed: {said}");

    let (file, few) = (place.join("delays.toml"), place.join("few"));
    let words = ["run", file.to_str().unwrap(), "--runs", "4", "--out", few.to_str().unwrap()];
    let output = finish(&mut bench(&words));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let (status, said, _) = compare(a, &few, &["--fail-on", "worse"]);
    assert_eq!(status, Some(3), "four runs prove nothing: {said}");
    assert!(said.contains("nothing can be tested"), "{said}");

    let page = place.join("difference.html");
    let (status, _, complaint) = compare(a, slow, &["--html", page.to_str().unwrap()]);
    assert_eq!(status, Some(0), "{complaint}");
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("default-src 'none'") && !text.contains("src=\"http"));
    let nowhere = place.join("no/such/page.html");
    let (status, _, complaint) = compare(a, slow, &["--html", nowhere.to_str().unwrap()]);
    assert_eq!(status, Some(2), "{complaint}");
    assert!(complaint.contains("--html") && complaint.contains("page.html"), "{complaint}");
}

#[test]
fn what_cannot_be_compared_is_named_with_a_remedy() {
    let _alone = own_host::alone();
    let place = tempfile::tempdir().unwrap();
    let good = folder(place.path(), "good", 1.0, 1);
    let copy = |name: &str, damage: &dyn Fn(&Path)| {
        let path = place.path().join(name);
        fs::create_dir(&path).unwrap();
        for file in ["plan.json", "host.json", "runs.jsonl"] {
            fs::copy(good.join(file), path.join(file)).unwrap();
        }
        damage(&path);
        path
    };
    let rewrite = |path: &Path, file: &str, from: &str, to: &str| {
        let text = fs::read_to_string(path.join(file)).unwrap();
        assert!(text.contains(from), "{from} is not in {file}");
        fs::write(path.join(file), text.replace(from, to)).unwrap();
    };
    let cut = copy("cut", &|path| fs::write(path.join("plan.json"), "{\"scenarios\": [").unwrap());
    let other = copy("other", &|path| rewrite(path, "plan.json", "\"delays\"", "\"others\""));
    let missing = place.path().join("missing");
    let cases: [(&Path, &[&str]); 4] = [
        (&cut, &["cut", "damaged", "results folder"]),
        (&other, &["good holds delays (", "other holds others (", "no cell is in both"]),
        (&missing, &["missing", "results folder"]),
        (&good, &["good", "this folder is named twice", "name different"]),
    ];
    for (b, expected) in cases {
        let (status, said, complaint) = compare(&good, b, &["--fail-on", "worse"]);
        assert_eq!(status, Some(2), "{complaint}{said}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
        for part in expected {
            assert!(complaint.contains(part), "{part:?} is not in {complaint:?}");
        }
    }
    let three = [&good, &cut, &missing].map(|it| it.to_str().unwrap());
    for (more, part) in [
        (&[][..], "3 results folders, without --with"),
        (&["--with", three[0]][..], "good: this folder is named twice"),
    ] {
        let output = finish(bench(&["compare"]).args(three).args(more));
        assert_eq!(output.status.code(), Some(2));
        assert!(complaint(&output).contains(part), "{}", complaint(&output));
    }
    // A folder without samples: its cells exist, and no run of them is valid any more.
    let empty = copy("empty", &|_| ());
    let (status, said, complaint) = compare(&good, &empty, &["--fail-on", "worse"]);
    assert_eq!(status, Some(1), "{complaint}{said}");
    assert!(said.contains("no longer valid in B: synthetic"), "{said}");
}
