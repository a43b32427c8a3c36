//! Comparisons of two folders: differences around them, common cells, and the reasons for a missing
//! verdict.

use myelin_bench_lab::compare::{
    Aspect, CellComparison, Comparison, Condition, FigureComparison, Outcome, Side, Unit, compare,
    markdown, sessions, terminal,
};
use myelin_bench_lab::report::Screen;
use myelin_bench_lab::scenario::Scenario;
use myelin_bench_lab::scenario::Tuning;
use myelin_bench_lab::stats::verdict::Kind;
use myelin_bench_lab::summary;

use crate::page::sides;
use summary::Placement;

fn sides() -> (Side, Side) {
    (sides::side("a", 1, 5, 64), sides::side("b", 2, 5, 64))
}

fn cell<'a>(comparison: &'a Comparison, system: &str, tuning: &str) -> &'a CellComparison {
    let is_wanted =
        |it: &&CellComparison| it.name.system == system && it.name.tuning.name() == tuning;
    comparison.cells.iter().find(is_wanted).expect("the cell")
}

fn figure<'a>(cell: &'a CellComparison, name: &str) -> &'a FigureComparison {
    cell.figures.iter().find(|it| it.figure.name == name).expect("the figure")
}

#[test]
fn equal_folders_differ_only_in_the_session() {
    let (a, b) = sides();
    let comparison = compare(&a, &b).unwrap();
    assert!(comparison.environment.iter().all(|it| it.of == Aspect::Session));
    assert_eq!(comparison.environment[0].what, "seed");
    assert_eq!((comparison.verdicts.worse, comparison.verdicts.better), (0, 0));
    assert!(!comparison.is_worse());
    let figures: usize = comparison.cells.iter().map(|cell| cell.figures.len()).sum();
    assert_eq!((comparison.cells.len(), figures), (14, 56));
    let text = terminal(&comparison, Screen::default(), false);
    assert!(text.contains("no known difference: 25 facts"), "{text}");
    assert!(text.contains("over 56 comparisons") && text.contains("--all lists them"), "{text}");
    let all = terminal(&comparison, Screen::default(), true);
    assert_eq!(all.matches("os.pipe, 64 B, tuned").count(), 4, "{all}");
}

#[test]
fn environment_differences_come_first_with_their_names() {
    let (mut a, mut b) = sides();
    b.analysis.summary.host.identity.kernel = "7.0.1".to_owned();
    b.analysis.summary.host.governor = Some("performance".to_owned());
    b.analysis.summary.host.busy_percent = 93.0;
    b.analysis.summary.notes.push("incomplete: 3 of 25 runs were done".to_owned());
    let systems = &mut b.analysis.summary.systems;
    let system = systems.iter_mut().find(|system| system.name == "cyclonedds.udp").unwrap();
    system.version = "0.11.0".to_owned();
    let detail = b.analysis.details.iter_mut().find(|it| !it.configuration.is_empty()).unwrap();
    let text = detail.configuration.get_mut("cyclonedds.xml").unwrap();
    *text = "<CycloneDDS>\n<Domain Id=\"7\">\n<MaxMessageSize>1 B</MaxMessageSize>".to_owned();
    for (side, messages) in [(&mut a, 1000), (&mut b, 2000)] {
        let mut scenario = Scenario::load("quick").unwrap();
        scenario.workload.messages = messages;
        side.plan.scenarios.push(scenario);
    }
    let comparison = compare(&a, &b).unwrap();
    let of = |part: Aspect| -> Vec<String> {
        let ours = comparison.environment.iter().filter(|it| it.of == part);
        ours.map(|it| format!("{}: {} → {}", it.what, it.a, it.b)).collect()
    };
    assert_eq!(
        of(Aspect::Host),
        ["kernel: 6.18.44 → 7.0.1", "frequency governor: unknown → performance"]
    );
    assert_eq!(of(Aspect::System), ["cyclonedds.udp, version: 0.10.2 → 0.11.0"]);
    assert_eq!(of(Aspect::Scenario), ["quick, workload.messages: 1000 → 2000"]);
    let [line] = &of(Aspect::Configuration)[..] else { panic!("{:?}", of(Aspect::Configuration)) };
    assert!(line.contains("cyclonedds.xml") && line.contains("<MaxMessageSize>"), "{line}");
    assert!(!line.contains("Domain"), "every session has a domain of its own: {line}");
    assert!(of(Aspect::Session).contains(&"CPUs busy before the start: 2 % → 93 %".to_owned()));
    let text = terminal(&comparison, Screen::default(), false);
    assert!(text.contains("B: incomplete: 3 of 25"), "{text}");
    let places = ["kernel: 6.18.44", "Verdicts"].map(|what| text.find(what).unwrap());
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn cells_of_one_folder_are_listed_and_folders_without_a_common_cell_refused() {
    let (a, mut b) = sides();
    let gone = b.analysis.summary.cells.remove(0);
    b.analysis.details.remove(0);
    b.analysis.summary.cells[0].params.rate_hz = Some(7.0);
    let comparison = compare(&a, &b).unwrap();
    assert_eq!((comparison.cells.len(), comparison.only_in_b.len()), (12, 1));
    assert_eq!(comparison.only_in_a[0].system, gone.system);
    assert_eq!(comparison.only_in_b[0].params.rate_hz, Some(7.0));
    let text = terminal(&comparison, Screen::default(), false);
    assert!(text.contains("only in A, and not compared: 2 cells"), "{text}");
    for cell in &mut b.analysis.summary.cells {
        cell.scenario = "modules".into();
    }
    let error = compare(&a, &b).unwrap_err().to_string();
    let expected = "a and b: no cell is in both; a holds roundtrip-sizes (14 cells); b holds modules \
                    (13 cells); compare folders";
    assert!(error.starts_with(expected), "{error}");
    b.analysis.summary.cells.clear();
    let error = compare(&a, &b).unwrap_err().to_string();
    assert!(error.contains("b holds nothing; "), "{error}");
}

#[test]
fn what_b_lacks_is_no_proof_that_nothing_is_worse() {
    let unanswered = |change: &dyn Fn(&mut Side)| {
        let (a, mut b) = sides();
        change(&mut b);
        let comparison = compare(&a, &b).unwrap();
        assert!(!comparison.is_worse());
        let text = terminal(&comparison, Screen::default(), false);
        let reasons = comparison.unanswered();
        let is_said = text.contains("not everything of A was compared");
        assert_eq!(is_said, !reasons.is_empty(), "{text}");
        reasons
    };
    assert!(unanswered(&|_| ()).is_empty(), "everything is there");
    let gone = |b: &mut Side| {
        b.analysis.summary.cells.remove(0);
        b.analysis.details.remove(0);
    };
    assert_eq!(unanswered(&gone), ["1 cell only in A"]);
    let withheld = |b: &mut Side| {
        sides::change(b, "os.pipe", Tuning::Tuned, |run| run.set("p99_us", None));
    };
    assert_eq!(unanswered(&withheld), ["1 figure can be tested only in A"]);
    let (a, b) = (sides::side("a", 1, 4, 64), sides::side("b", 2, 4, 64));
    assert_eq!(compare(&a, &b).unwrap().unanswered(), ["nothing can be tested"]);
}

#[test]
fn runs_with_too_few_messages_do_not_drop_out() {
    let (a, mut b) = (sides::side("a", 1, 6, 64), sides::side("b", 2, 6, 64));
    sides::change(&mut b, "os.pipe", Tuning::Tuned, |run| {
        run.set("p99_us", run.get("p99_us").filter(|_| run.order != 3));
    });
    let comparison = compare(&a, &b).unwrap();
    let p99 = figure(cell(&comparison, "os.pipe", "tuned"), "p99_us");
    assert_eq!((p99.verdict, p99.lacking_in_b), (None, true), "five of six runs are not all");
    let reason = p99.reason.as_deref().unwrap();
    assert!(reason.contains("of a run in B lie beyond the p99"), "{reason}");
}

#[test]
fn a_system_that_loses_the_messages_of_its_p99_is_worse() {
    let (a, mut b) = sides();
    sides::change(&mut b, "os.pipe", Tuning::Tuned, |run| run.set("p99_us", Some(f64::INFINITY)));
    let comparison = compare(&a, &b).unwrap();
    let p99 = figure(cell(&comparison, "os.pipe", "tuned"), "p99_us");
    assert_eq!((p99.verdict, p99.ratio), (Some(Kind::Worse), None));
    assert_eq!(p99.b, Some(f64::INFINITY));
    let text = terminal(&comparison, Screen::default(), false);
    assert!(text.contains("∞"), "{text}");
    let turned = compare(&b, &a).unwrap();
    let p99 = figure(cell(&turned, "os.pipe", "tuned"), "p99_us");
    assert_eq!(p99.verdict, Some(Kind::Better));
}

#[test]
fn a_shift_between_placements_is_reported_and_not_a_regression() {
    let (mut a, mut b) = sides();
    // Nine of ten messages of A stayed on one core, but hardly any of B, so the median changes.
    for (side, share, p50) in [(&mut a, 0.9, 3.0), (&mut b, 0.02, 50.0)] {
        sides::change(side, "os.futex", Tuning::Default, |run| run.set("p50_us", Some(p50)));
        let cells = side.analysis.summary.cells.iter_mut();
        for cell in cells.filter(|it| it.system == "os.futex" && it.tuning == Tuning::Default) {
            let mut here = cell.placements[0].clone();
            here.same_cpu = true;
            let [mut near, mut far] = [here.clone(), Placement { same_cpu: false, ..here }];
            (near.share, far.share) = (share, 1.0 - share);
            if let Some(latency) = &mut near.round_trip_us {
                latency.p50 = Some(3.0);
            }
            cell.placements = vec![near, far];
        }
    }
    let comparison = compare(&a, &b).unwrap();
    assert!(!comparison.is_worse());
    let cell = cell(&comparison, "os.futex", "default");
    let p50 = figure(cell, "p50_us");
    assert!(p50.a.unwrap() > 40.0, "those across cores: {p50:?}");
    assert_eq!(
        cell.remarks,
        ["90 % of the messages of A ran on one core, and 2 % of B; p50 and p99 count only \
             messages across cores"]
    );
    let text = terminal(&comparison, Screen::default(), true);
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("90 % of the messages of A ran on one core, and 2 % of B"), "{text}");

    // Without messages across cores in A there is nothing to compare.
    sides::change(&mut a, "os.futex", Tuning::Default, |run| run.set("cross_p50_us", None));
    let comparison = compare(&a, &b).unwrap();
    let p50 = figure(self::cell(&comparison, "os.futex", "default"), "p50_us");
    let reason = p50.reason.as_deref().unwrap();
    assert!(reason.starts_with("too few runs with messages across cores: 0 and 5"), "{reason}");
    assert_eq!(p50.verdict, None);
}

#[test]
fn figures_without_verdict_have_a_reason_and_a_newly_invalid_cell_is_worse() {
    let (mut a, mut b) = sides();
    for detail in &mut a.analysis.details[..2] {
        detail.runs.truncate(3);
    }
    for run in &mut b.analysis.details[2].runs {
        run.set("p99_us", None);
    }
    for run in &mut b.analysis.details[3].runs {
        run.set("cpu_us_per_message", Some(0.0));
    }
    b.analysis.summary.cells[4].valid = false;
    let comparison = compare(&a, &b).unwrap();
    let reason = |place: usize, wanted: &str| {
        let found = figure(&comparison.cells[place], wanted);
        assert_eq!((found.verdict, found.p), (None, None));
        found.reason.clone().unwrap()
    };
    assert_eq!(reason(0, "p50_us"), "too few runs: 3 and 5; --runs 7");
    assert!(reason(2, "p99_us").contains("a run in B"));
    assert!(reason(3, "cpu_us_per_message").starts_with("not above zero"));
    assert_eq!(reason(4, "pss_bytes"), "invalid in B");
    assert_eq!(comparison.comparisons, 56 - 2 * 4 - 1 - 1 - 4);
    assert_eq!((comparison.verdicts.worse, comparison.is_worse()), (0, true));
    let text = terminal(&comparison, Screen::default(), false);
    assert!(text.contains("no longer valid in B: "), "{text}");
    assert!(!compare(&b, &a).unwrap().is_worse(), "valid again is better");
}

#[test]
fn with_too_few_runs_there_is_no_verdict() {
    let (mut a, mut b) = (sides::side("a", 1, 3, 64), sides::side("b", 2, 5, 64));
    let comparison = compare(&a, &b).unwrap();
    assert_eq!((comparison.comparisons, comparison.verdicts.no_verdict), (0, 56));
    let text = terminal(&comparison, Screen::default(), false);
    assert!(text.contains("too few runs to test anything"), "{text}");
    assert!(text.contains("54 figures: too few runs: 3 and 5; --runs 7"), "{text}");

    // Nothing of the bench runs them.
    for side in [&mut a, &mut b] {
        side.analysis.summary.cells.iter_mut().for_each(|cell| cell.params.imported = true);
    }
    let text = terminal(&compare(&a, &b).unwrap(), Screen::default(), false);
    assert!(text.contains("too few runs: 3 and 5; import 7 traces on each side"), "{text}");
    assert!(!text.contains("--runs 7"), "{text}");
}

/// Ten sessions of one state, twice, on a machine that is another each time.
fn ten_sessions(seed: u64) -> [Vec<Side>; 2] {
    let of =
        |first: u64| (0..5).map(move |at| (format!("s{}", first + at), 1000 * seed + first + at));
    [0, 5].map(|first| of(first).map(|(name, seed)| sides::session(&name, seed)).collect())
}

fn claims(comparison: &Comparison) -> usize {
    comparison.verdicts.worse + comparison.verdicts.better
}

#[test]
fn sessions_that_differ_only_by_the_machine_raise_few_alarms() {
    let (mut of_runs, mut of_sessions) = (0, 0);
    for seed in 0..40 {
        let [a, b] = ten_sessions(seed);
        of_runs += usize::from(claims(&compare(&a[0], &b[0]).unwrap()) > 0);
        let comparison = sessions(a, b).unwrap();
        assert_eq!((comparison.unit, comparison.comparisons), (Unit::Session, 56));
        of_sessions += usize::from(claims(&comparison) > 0);
    }
    assert!(of_runs >= 10, "{of_runs} of 40: the runs of a session do not show the machine");
    // Two are expected at most; six or more would have a probability of one in a hundred.
    assert!(of_sessions <= 5, "{of_sessions} of 40");
}

#[test]
fn sessions_show_a_difference_that_they_have_in_common() {
    let [a, mut b] = ten_sessions(3);
    for side in &mut b {
        sides::change(side, "cyclonedds.udp", Tuning::Tuned, |run| {
            run.set("p50_us", run.get("p50_us").map(|us| 1.5 * us));
        });
    }
    let comparison = sessions(a, b).unwrap();
    let found = figure(cell(&comparison, "cyclonedds.udp", "tuned"), "p50_us");
    assert_eq!(found.verdict, Some(Kind::Worse), "{found:?}");
    assert_eq!((found.runs_a.len(), found.runs_b.len()), (5, 5));
    let text = terminal(&comparison, Screen::default(), false);
    assert!(text.contains("A: s0, s1, s2, s3, s4"), "{text}");
    assert!(text.contains("permutation test of the sessions"), "{text}");
    assert!(!text.contains("a hint"), "{text}");
}

#[test]
fn one_session_each_is_a_hint_and_a_few_are_refused() {
    let (a, b) = sides();
    let text = terminal(&compare(&a, &b).unwrap(), Screen::default(), false);
    assert!(text.contains("one session each: a hint"), "{text}");
    let [mut of_a, of_b] = ten_sessions(1);
    of_a.truncate(4);
    let error = sessions(of_a, of_b).unwrap_err().to_string();
    assert!(error.contains("4 and 5 sessions") && error.contains("at least 5 folders"), "{error}");
}

#[test]
fn a_script_fails_by_figure_and_size() {
    let (a, mut b) = sides();
    sides::change(&mut b, "cyclonedds.udp", Tuning::Tuned, |run| {
        run.set("p50_us", run.get("p50_us").map(|us| 1.5 * us));
    });
    let outcome = |a: &Side, b: &Side, conditions: &[&str]| {
        let conditions: Vec<Condition> = conditions.iter().map(|it| it.parse().unwrap()).collect();
        compare(a, b).unwrap().outcome(&conditions)
    };
    for conditions in [&["worse"][..], &["p50 worse by 40%"], &["p99 worse", "p50 worse by 1 %"]] {
        let Outcome::Failed(lines) = outcome(&a, &b, conditions) else { panic!("{conditions:?}") };
        assert!(lines.len() == 1 && lines[0].contains("cyclonedds.udp"), "{lines:?}");
    }
    for conditions in [["p50 worse by 60%"], ["p99 worse"]] {
        assert_eq!(outcome(&a, &b, &conditions), Outcome::Passed, "{conditions:?}");
    }
    b.analysis.details[0].runs.iter_mut().for_each(|run| run.set("p99_us", None));
    assert_eq!(outcome(&a, &b, &["CPU worse"]), Outcome::Passed, "p99 is not asked for");
    let Outcome::Unanswered(lines) = outcome(&a, &b, &["p99 worse"]) else {
        panic!("p99 is lacking")
    };
    assert_eq!(lines, ["1 figure can be tested only in A"]);
}

#[test]
fn a_comment_has_the_worse_figures_in_a_table() {
    let (a, mut b) = sides();
    sides::change(&mut b, "cyclonedds.udp", Tuning::Tuned, |run| {
        run.set("p50_us", run.get("p50_us").map(|us| 1.5 * us));
    });
    let text = markdown(&compare(&a, &b).unwrap(), false);
    assert!(text.starts_with("## Bench: 1 worse, 0 better\n"), "{text}");
    let row = |line: &&str| {
        line.starts_with("| cyclonedds\\.udp") || line.starts_with("| cyclonedds.udp")
    };
    assert_eq!(text.lines().filter(row).count(), 1, "{text}");
    assert!(!text.contains("{{") && !text.contains("| , A"), "{text}");
}

#[test]
fn what_a_session_lacks_its_side_lacks() {
    let [a, mut b] = ten_sessions(2);
    sides::change(&mut b[1], "os.pipe", Tuning::Tuned, |run| {
        run.set("p99_us", run.get("p99_us").filter(|_| run.order != 2));
    });
    b[4].analysis.summary.cells.pop();
    b[4].analysis.details.pop();
    b[2].analysis.summary.damage.push("a record is damaged".to_owned());
    let comparison = sessions(a, b).unwrap();
    let found = figure(cell(&comparison, "os.pipe", "tuned"), "p99_us");
    assert!(found.lacking_in_b && found.verdict.is_none(), "{found:?}");
    assert_eq!(comparison.only_in_a.len(), 1);
    assert!(
        comparison.b.notes.iter().any(|it| it == "s7: a record is damaged"),
        "{:?}",
        comparison.b.notes
    );
}

#[test]
fn immaterial_differences_are_no_difference() {
    let (a, mut b) = sides();
    // A twentieth of 20 MB is more than half a megabyte; a twentieth of 4 MB is less.
    let (mut small_a, mut small_b) = sides();
    sides::change(&mut b, "os.pipe", Tuning::Tuned, |run| {
        run.set("pss_bytes", run.get("pss_bytes").map(|bytes| bytes * 1.05));
    });
    for (side, percent) in [(&mut small_a, 20.0), (&mut small_b, 21.0)] {
        sides::change(side, "os.pipe", Tuning::Tuned, |run| {
            run.set("pss_bytes", run.get("pss_bytes").map(|bytes| bytes * percent / 100.0));
        });
    }
    let memory = |a: &Side, b: &Side| {
        let comparison = compare(a, b).unwrap();
        let found = figure(cell(&comparison, "os.pipe", "tuned"), "pss_bytes").clone();
        (found.verdict, found.p_adjusted.unwrap() <= 0.05, comparison.floor.worse)
    };
    assert_eq!(memory(&a, &b), (Some(Kind::Worse), true, 1));
    assert_eq!(memory(&small_a, &small_b), (Some(Kind::NoDifference), true, 0));
    let text = terminal(&compare(&a, &b).unwrap(), Screen::default(), false);
    assert!(text.contains("the floor moved"), "os.pipe is the machine's: {text}");
}
