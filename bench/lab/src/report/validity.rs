//! Doubts about the figures: one item for each possible doubt, with a good or bad result.

use myelin_bench_kit::protocol::{Topology, Wait};

use super::document::{Finding, Part, Section, Standing};
use super::format;
use super::view::{Entry, Group, View};
use crate::analyse::steady;
use crate::lists::{distinct, grouped};
use crate::scenario::Tuning;
use crate::stats::interval::{LEVEL_PERCENT_MIN, RUNS_MIN};
use crate::stats::median;
use crate::stats::verdict::{RATIO_EQUAL, Ratio};
use crate::summary::{ClockFigures, Distribution};

/// The section on validity.
pub(super) fn section(view: &View) -> Section {
    let part = Part { findings: checks(view), ..Part::default() };
    Section { id: "validity", title: "Validity", remark: String::new(), parts: vec![part] }
}

/// An examination, its result in one line, and details, one line each.
fn check(standing: Standing, title: &str, text: String, particulars: Vec<String>) -> Finding {
    Finding { standing, subject: title.to_owned(), text, particulars }
}

fn caution_if(is_doubtful: bool) -> Standing {
    if is_doubtful { Standing::Caution } else { Standing::Good }
}

/// All checks, in the order of display.
pub(super) fn checks(view: &View) -> Vec<Finding> {
    let mut checks: Vec<Finding> = damage(view).into_iter().collect();
    checks.push(cells(view));
    checks.extend(delivery(view));
    checks.extend(floor_stability(view));
    checks.extend(below_floor(view));
    checks.extend(machine(view));
    if view.is_imported() {
        checks.extend([repeats(view), steadiness(view), withheld(view), stamps()]);
    } else {
        checks.extend([steal(view), repeats(view), steadiness(view)]);
        checks.extend([withheld(view), placements(view), clock(view)]);
    }
    checks.extend(clocks(view));
    checks.extend(remarks(view));
    checks.extend(missing(view));
    checks
}

fn damage(view: &View) -> Option<Finding> {
    let particulars = view.analysis.summary.damage.clone();
    let finding = format!(
        "{} damaged, unreadable, or from another folder: the figures use the rest",
        format::plural(particulars.len(), "place")
    );
    (!particulars.is_empty()).then(|| check(Standing::Bad, RECORDS, finding, particulars))
}

fn cells(view: &View) -> Finding {
    // A valid cell with reasons has invalid runs.
    let is_amiss = |entry: &&Entry| !entry.cell.valid || !entry.cell.invalid_reasons.is_empty();
    let mut amiss: Vec<_> = view.entries().filter(is_amiss).collect();
    amiss.sort_by_key(|entry| entry.cell.valid);
    let total = view.entries().count();
    let invalid = amiss.iter().filter(|entry| !entry.cell.valid).count();
    let level = if invalid > 0 { Standing::Bad } else { caution_if(!amiss.is_empty()) };
    let line = |entry: &&Entry| format!("{}: {}", name(view, entry), reasons(entry));
    let finding = format!("{} of {total} valid", total - invalid);
    check(level, CELLS, finding, amiss.iter().map(line).collect())
}

/// Leaves out floods, which lose messages on purpose, and start-ups, which mostly send without a
/// subscriber.
fn delivery(view: &View) -> Option<Finding> {
    view.entries().find(|entry| entry.is_steady())?;
    let steady = || view.entries().filter(|entry| entry.is_steady());
    let sum = |of: fn(&Entry) -> u64| steady().map(of).sum::<u64>();
    let kinds = [
        ("lost", sum(|entry| entry.cell.lost.unwrap_or(0))),
        ("corrupt", sum(|entry| entry.cell.corrupt.unwrap_or(0))),
        ("duplicate", sum(|entry| entry.cell.duplicates.unwrap_or(0))),
        ("out of order", sum(|entry| entry.cell.out_of_order)),
    ];
    let sent = sum(|entry| entry.cell.sent);
    // Each subscriber should take each message.
    let due = sum(|entry| entry.cell.received + entry.cell.lost.unwrap_or(0));
    let amiss: Vec<_> = kinds.iter().filter(|(_, number)| *number > 0).collect();
    let words = match amiss.is_empty() {
        true if steady().any(|entry| entry.cell.lost.is_none()) => {
            "in order; not every trace shows what was lost".to_owned()
        }
        true if view.is_imported() => "all received, in order".to_owned(),
        true if view.publish_groups.is_empty() && !view.has_one_way() => {
            "all answered once, in order, unaltered".to_owned()
        }
        true => "all delivered once, in order, unaltered".to_owned(),
        false => amiss
            .iter()
            .map(|(kind, number)| format!("{} {kind}", format::count(*number)))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let taken = (due > sent).then(|| format!(", {} expected", format::count(due)));
    let finding = format!("{} sent{}: {words}", format::count(sent), taken.unwrap_or_default());
    Some(check(caution_if(!amiss.is_empty()), MESSAGES, finding, vec![]))
}

/// The spread of the floor's medians over its runs. Bimodal cells are left out, because their
/// spread has a known cause.
fn floor_stability(view: &View) -> Option<Finding> {
    // If the kernel may move processes, runs differ by placement, which says nothing about the
    // machine's state.
    let is_pinned = |entry: &Entry| entry.cell.tuning != Tuning::Default;
    let any_pinned = view.entries().any(is_pinned);
    let steady = |entry: &&Entry| {
        let comparable = entry.cell.valid && entry.is_steady() && !entry.is_bimodal();
        entry.system.floor && comparable && is_pinned(entry) == any_pinned
    };
    let mut spreads: Vec<_> = view
        .entries()
        .filter(steady)
        .filter_map(|entry| {
            let medians = entry.detail.runs.iter().filter(|run| run.valid);
            let mut medians: Vec<_> = medians.filter_map(|run| run.get("p50_us")).collect();
            medians.sort_by(f64::total_cmp);
            let [low, .., high] = medians[..] else { return None };
            (low > 0.0).then_some((high / low - 1.0, low, high, entry))
        })
        .collect();
    spreads.sort_by(|a, b| b.0.total_cmp(&a.0));
    let middle = median(spreads.iter().map(|spread| spread.0).collect())?;
    let worst = spreads.first()?;
    let line = |(spread, low, high, entry): &(f64, f64, f64, &Entry)| {
        let (low, high) = (format::us(*low), format::us(*high));
        format!("{}: {low} to {high} µs, {}", name(view, entry), format::share_percent(*spread))
    };
    let level = Standing::of(middle, 0.15, 0.4).max(Standing::of(worst.0, 0.5, 2.0));
    let finding = format!(
        "medians spread over runs by {} typically, {} at worst",
        format::share_percent(middle),
        format::share_percent(worst.0)
    );
    let wide = spreads.iter().filter(|spread| spread.0 >= 0.15).take(5);
    Some(check(level, "Floor", finding, wide.map(line).collect()))
}

/// Systems faster than the primitive that waits as they do. Larger messages may be handed over without
/// the copy that the primitive makes, and messages on one core are faster than those across. Systems
/// that poll may be faster: how often a loop reads the line decides, and the primitive's loop is only one.
fn below_floor(view: &View) -> Option<Finding> {
    let is_pinned = |entry: &Entry| entry.cell.tuning != Tuning::Default;
    let any_pinned = view.entries().any(is_pinned);
    let on_one_core = |entry: &Entry| {
        let most = entry.cell.placements.iter().find(|placement| placement.share > 0.9);
        most.map(|placement| placement.same_cpu)
    };
    let is_fit = |entry: &Entry| {
        let comparable = entry.cell.valid && entry.is_steady() && !entry.is_bimodal();
        comparable && is_pinned(entry) == any_pinned
    };
    let of_group = |group: &Group| -> Vec<(f64, String)> {
        let small = |entry: &&Entry| entry.cell.params.payload_bytes < FLOOR_PAYLOAD_MAX;
        let sleeps = |entry: &&Entry| entry.system.wait != Wait::Poll;
        let sleeping = group.entries.iter().filter(small).filter(sleeps);
        let fit = sleeping.filter(|entry| is_fit(entry));
        let below = fit.filter_map(|entry| {
            let over = group.over_floor(entry).filter(|over| is_fit(over.floor))?;
            let key = |it: &Entry| (it.system.wait, it.system.topology);
            let places = on_one_core(entry).zip(on_one_core(over.floor));
            let is_alike = key(entry) == key(over.floor) && places.is_none_or(|(a, b)| a == b);
            let Ratio { value, interval } = over.ratio;
            let is_below = value < 1.0 / RATIO_EQUAL && interval.is_none_or(|[_, high]| high < 1.0);
            (is_below && is_alike)
                .then(|| (value, format!("{} {}", name(view, entry), over.text())))
        });
        below.collect()
    };
    let mut below: Vec<_> = view.groups.iter().flat_map(of_group).collect();
    below.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (_, lowest) = below.first()?;
    let others = match below.len() {
        1 => String::new(),
        all => format!("; {}, too", format::plural(all - 1, "other cell")),
    };
    let finding = format!("{lowest}, which cannot be: something disturbed one of them{others}");
    let particulars = below.into_iter().map(|it| it.1).collect();
    Some(check(Standing::Bad, "Below the floor", finding, particulars))
}

/// What of this machine was measured beside the systems.
fn machine(view: &View) -> Option<Finding> {
    let host = &view.analysis.summary.host;
    let found = host.disturbances();
    let level = if host.is_unfit() { Standing::Bad } else { Standing::Caution };
    (!found.is_empty()).then(|| check(level, "Machine", found.join("; "), vec![]))
}

fn steal(view: &View) -> Finding {
    let Some(percent) = view.analysis.summary.host.steal_percent else {
        return check(Standing::Caution, "Steal", "not recorded".to_owned(), vec![]);
    };
    let finding = format!("the hypervisor took {percent:.1} % of the CPU time");
    check(Standing::of(percent, 0.5, 3.0), "Steal", finding, vec![])
}

fn withheld(view: &View) -> Finding {
    type Percentile = fn(&Distribution) -> Option<f64>;
    let percentiles: [(&str, Percentile); 4] =
        [("p50", |d| d.p50), ("p90", |d| d.p90), ("p99", |d| d.p99), ("p99.9", |d| d.p999)];
    let counts: Vec<_> = percentiles
        .iter()
        .filter_map(|(name, of)| {
            let withheld = |entry: &&Entry| {
                entry.is_steady() && entry.latency().is_some_and(|d| of(d).is_none())
            };
            let number = view.entries().filter(withheld).count();
            (number > 0).then(|| format!("{name} of {}", format::plural(number, "cell")))
        })
        .collect();
    let mut finding = match counts.is_empty() {
        true => "none withheld".to_owned(),
        false => format!("{} withheld{WHY_WITHHELD}", counts.join(", ")),
    };
    let is_infinite = |latency: &Distribution| {
        percentiles.iter().any(|(_, of)| of(latency).is_some_and(f64::is_infinite))
    };
    if view.entries().filter_map(Entry::latency).any(is_infinite) {
        finding += "; ∞ where only lost messages lie beyond";
    }
    check(caution_if(!counts.is_empty()), "Percentiles", finding, vec![])
}

fn placements(view: &View) -> Finding {
    let bimodal: Vec<_> =
        view.entries().filter(|entry| entry.is_steady() && entry.is_bimodal()).collect();
    let finding = match bimodal.len() {
        0 => "no cell mixes same-core with cross-core messages".to_owned(),
        n => format!("{} bimodal: same-core and cross-core mixed", format::plural(n, "cell")),
    };
    let line =
        |entry: &&Entry| format!("{}: {}", name(view, entry), format::placements(entry.cell));
    let level = caution_if(!bimodal.is_empty());
    check(level, "Placement", finding, bimodal.iter().map(line).collect())
}

fn clock(view: &View) -> Finding {
    let host = &view.analysis.summary.host;
    let finding = format!(
        "{}; a reading costs {:.0} ns, the smallest step is {} ns",
        if host.clocksource.is_empty() { "source unknown" } else { &host.clocksource },
        host.clock_read_ns,
        host.clock_step_ns
    );
    check(Standing::of(host.clock_read_ns, 200.0, 2000.0), "Clock", finding, vec![])
}

/// What the latencies of imported traces rest on.
fn stamps() -> Finding {
    let finding =
        "times are the application’s own: latencies are right if both ends read one clock";
    check(Standing::Caution, "Clock", finding.to_owned(), vec![])
}

/// How the clocks of two hosts were compared; nothing on one host.
fn clocks(view: &View) -> Option<Finding> {
    let is_across = |entry: &Entry| entry.system.topology == Topology::TwoHosts;
    let across: Vec<_> = view.entries().filter(|entry| is_across(entry)).collect();
    let known: Vec<_> =
        across.iter().filter_map(|entry| Some((entry, entry.cell.clock.as_ref()?))).collect();
    // Without an estimate of the other clock there are no one-way figures.
    let is_one = |entry: &&&Entry| entry.cell.clock.is_none() && entry.cell.one_way_us.is_some();
    let of_one_clock = across.iter().filter(is_one).count();
    let unknown = across.len() - known.len() - of_one_clock;
    let error_us = known.iter().map(|(_, clock)| clock.error_us).reduce(f64::max);
    let finding = match error_us {
        _ if across.is_empty() => return None,
        Some(error_us) => format!(
            "one-way times between the hosts are known to {} µs at worst; the lab asked the other \
             clock over the same path before, during and after each run{}",
            format::plus_minus_us(error_us),
            match unknown {
                0 => String::new(),
                _ => format!("; for {} the error is not known", format::plural(unknown, "cell")),
            }
        ),
        None if of_one_clock == across.len() => {
            "both hosts are namespaces of one machine and share its clock".to_owned()
        }
        None => "the clocks could not be compared, so there are no one-way figures".to_owned(),
    };
    let line = |(entry, clock): &(&&Entry, &ClockFigures)| {
        format!(
            "{}: {} µs; pong's clock is ahead by {:.3} ms and gains {:.2} ± {:.2} ppm; {} answers, \
             the fastest in {} µs",
            name(view, entry),
            format::plus_minus_us(clock.error_us),
            clock.offset_us / 1e3,
            clock.drift_ppm,
            clock.drift_error_ppm,
            format::count(clock.exchanges),
            format::us(clock.least_delay_us)
        )
    };
    let particulars = known.iter().map(line).collect();
    Some(check(caution_if(unknown > 0), "Clocks of two hosts", finding, particulars))
}

/// Notes of the analysis and of its cells, each once. If many differ only in numbers, the first is
/// shown. Runs that never settled have their own check.
fn remarks(view: &View) -> Option<Finding> {
    let of_entry = |entry: &Entry| {
        let notes = entry.cell.notes.iter().filter(|note| !steady::is_remark(note));
        let whose = match entry.cell.params.imported {
            true => entry.name(),
            false => entry.configuration(),
        };
        notes.map(|note| format!("{whose}: {note}")).collect::<Vec<_>>()
    };
    // They have their own check.
    let of_machine = view.analysis.summary.host.disturbances();
    let of_all = view.analysis.summary.notes.iter().filter(|note| !of_machine.contains(note));
    let of_all = of_all.cloned();
    let lines = distinct(of_all.chain(view.entries().flat_map(of_entry)));
    let finding = format::plural(lines.len(), "thing") + " left out or not as requested";
    let particulars = one_of_a_kind(&lines);
    (!particulars.is_empty()).then(|| check(Standing::Caution, REMARKS, finding, particulars))
}

/// The lines; if more than [`ALIKE_MAX`] are alike, only the first, with the number of the others.
fn one_of_a_kind(lines: &[String]) -> Vec<String> {
    // The text before the colon says whose note it is; the rest, without numbers, is its kind.
    let note =
        |line: &String| line.split_once(": ").map_or(line.clone(), |(_, note)| note.to_owned());
    let kind = |line| note(line).replace(|c: char| c.is_ascii_digit(), "");
    let kinds = grouped(lines.iter().map(|line| (kind(line), line)));
    let shown = kinds.into_iter().flat_map(|(_, same)| match same.len() {
        ..=ALIKE_MAX => same.into_iter().cloned().collect(),
        number => {
            vec![format!("{} (and {} similar ones: notes in summary.json)", same[0], number - 1)]
        }
    });
    shown.collect()
}

fn missing(view: &View) -> Option<Finding> {
    let line = |(system, remedy): (&crate::summary::SystemInfo, &str)| {
        format!("{}: {remedy}", system.name)
    };
    let particulars: Vec<_> = view.missing().map(line).collect();
    let finding = format::plural(particulars.len(), "system") + " could not run";
    (!particulars.is_empty()).then(|| check(Standing::Caution, MISSING, finding, particulars))
}

/// The reasons of a cell in one line.
pub(super) fn reasons(entry: &Entry) -> String {
    match entry.cell.invalid_reasons.is_empty() {
        true => "no reason recorded".to_owned(),
        false => entry.cell.invalid_reasons.join("; "),
    }
}

/// A cell by name, with its scenario if there are several.
fn name(view: &View, entry: &Entry) -> String {
    match view.all().count() {
        1 => entry.name(),
        _ => format!("{} ({})", entry.name(), entry.circumstances()),
    }
}

/// A line for each number of runs after which cells of `entries` still had a wider interval of the
/// median than requested.
fn wide(entries: &[Entry]) -> Vec<String> {
    let cell = |entry: &Entry| {
        let repeats = entry.cell.repeats.filter(|repeats| !repeats.is_narrow)?;
        let asked = repeats.asked_percent;
        let width = match repeats.reached_percent {
            Some(reached) => format!("{reached:.1} % (requested: {asked} %)"),
            None => format!("has no interval (requested: {asked} %)"),
        };
        // Number of runs made, including invalid ones, as the limit counts them.
        Some((entry.detail.runs.len(), format!("{} {width}", entry.name())))
    };
    let mut wide: Vec<(usize, String)> = entries.iter().filter_map(cell).collect();
    wide.sort_by_key(|(runs, _)| *runs);
    let line = |same: &[(usize, String)]| {
        let runs = format::plural(same[0].0, "run");
        let cells: Vec<&str> = same.iter().map(|(_, cell)| cell.as_str()).collect();
        format!("interval of the median wider than requested after {runs}: {}", cells.join("; "))
    };
    wide.chunk_by(|one, next| one.0 == next.0).map(line).collect()
}

/// The number of runs, and whether there were enough.
fn repeats(view: &View) -> Finding {
    let runs = || view.entries().filter(|entry| entry.cell.valid).map(|entry| entry.cell.runs);
    let (least, most) = (runs().min().unwrap_or(0), runs().max().unwrap_or(0));
    let number = match least == most {
        true => format::plural(least as usize, "run"),
        false => format!("{least} to {most} runs"),
    };
    let enough = |runs: u32| runs as usize >= RUNS_MIN;
    let (level, consequence) = match least {
        _ if enough(least) => (Standing::Good, levels(view)),
        _ if enough(most) => (Standing::Caution, "cells with fewer than 5 have no interval".into()),
        _ if view.is_imported() => {
            (Standing::Caution, "fewer than 5: no intervals; import more traces of it".into())
        }
        _ if most == 1 => (Standing::Bad, "nothing shows how much they vary: use --runs 5".into()),
        _ => (Standing::Caution, "fewer than 5: no intervals, hence no verdicts".into()),
    };
    let lines = view.all().flat_map(|group| {
        wide(&group.entries).into_iter().map(|line| format!("{}: {line}", group.title()))
    });
    let particulars: Vec<String> = lines.collect();
    let asking = view.entries().filter_map(|entry| entry.cell.repeats);
    let (asked, narrow) = asking.fold((0, 0), |(asked, narrow), repeats| {
        (asked + 1, narrow + usize::from(repeats.is_narrow))
    });
    let reached = match asked {
        0 => String::new(),
        _ => format!("; {narrow} of {asked} intervals of medians as narrow as requested"),
    };
    let level = if narrow < asked { Standing::Caution } else { level };
    let finding = format!("{number} of each cell; {consequence}{reached}");
    check(level, "Repeats", finding, particulars)
}

/// The coverage of the intervals, in per cent.
fn levels(view: &View) -> String {
    let valid = view.entries().filter(|entry| entry.cell.valid);
    let levels: Vec<f64> = valid.filter_map(|entry| entry.cell.interval_level_percent).collect();
    match levels.split_first() {
        Some((first, others)) if others.iter().all(|it| it == first) => {
            format!("intervals over runs of {first:.2} %")
        }
        _ => format!("intervals over runs of at least {LEVEL_PERCENT_MIN} %"),
    }
}

/// Whether runs drifted until their end. On some machines one run in six does, with every system.
/// It is a doubt only if such runs are at least half of a cell's runs.
fn steadiness(view: &View) -> Finding {
    let mut drifting: Vec<&Entry> =
        view.entries().filter(|entry| entry.cell.unsettled_runs > 0).collect();
    drifting.sort_by(|a, b| unsettled_share(b).total_cmp(&unsettled_share(a)));
    let resting = drifting.iter().filter(|entry| unsettled_share(entry) >= 0.5).count();
    let mut particulars: Vec<String> =
        drifting.iter().take(CELLS_SHOWN).map(|entry| unsettled(entry)).collect();
    if let Some(more @ 1..) = drifting.len().checked_sub(CELLS_SHOWN) {
        let cells = format::plural(more, "more cell");
        particulars.push(format!("and {cells}: unsettled_runs in summary.csv"));
    }
    let sum = |of: fn(&Entry) -> u32| view.entries().map(of).sum::<u32>() as usize;
    let (all, unsettled) = (sum(|entry| entry.cell.runs), sum(|entry| entry.cell.unsettled_runs));
    let tested = sum(|entry| if is_tested(entry) { entry.cell.runs } else { 0 });
    let runs = format::plural(tested, "run");
    let (level, mut finding) = match unsettled {
        0 if tested == 0 => (Standing::Caution, "not known".to_owned()),
        0 => (Standing::Good, format!("no drift or step in {runs}")),
        some => {
            let cells = format::plural(drifting.len(), "cell");
            let finding = format!("{some} of {runs} never settled, in {cells}");
            match resting {
                0 => (Standing::Good, finding + ", fewer than half of the runs of each"),
                number => {
                    let cells = format::plural(number, "cell");
                    (Standing::Caution, format!("{finding}; half or more of the runs of {cells}"))
                }
            }
        }
    };
    if tested < all {
        finding += &format!("; {} too short for the test", format::plural(all - tested, "run"));
    }
    check(level, "Steady state", finding, particulars)
}

/// The share of unsettled runs of a cell.
fn unsettled_share(entry: &Entry) -> f64 {
    f64::from(entry.cell.unsettled_runs) / f64::from(entry.cell.runs.max(1))
}

/// `os.pipe, 64 B, default (quick): 2 of 5 runs; run 3 never settled: median drifted from …`.
fn unsettled(entry: &Entry) -> String {
    let (number, all) = (entry.cell.unsettled_runs, entry.cell.runs);
    let first = entry.cell.notes.iter().find(|note| steady::is_remark(note));
    let first = first.map(|note| format!("; {note}")).unwrap_or_default();
    format!("{} ({}): {number} of {all} runs{first}", entry.name(), entry.circumstances())
}

/// Whether its runs are long enough for the test; the runs of a cell have about the same length.
fn is_tested(entry: &Entry) -> bool {
    let samples = entry.cell.samples / u64::from(entry.cell.runs).max(1);
    steady::can_tell(entry.cell.workload, samples)
}

/// Titles of checks that the first screen uses.
pub(super) const RECORDS: &str = "Records";
pub(super) const CELLS: &str = "Cells";
pub(super) const MESSAGES: &str = "Messages";
pub(super) const REMARKS: &str = "Remarks";
pub(super) const MISSING: &str = "Missing";
const WHY_WITHHELD: &str = ": fewer than ten samples, or samples of only one run, lie beyond";
/// Messages from this size on have several stamps, which a loan renews, where a primitive copies all
/// of a message.
const FLOOR_PAYLOAD_MAX: u64 = 1024;
/// Limit of remarks that differ only in numbers and are all shown.
const ALIKE_MAX: usize = 3;
/// Number of cells with unsettled runs that are named.
const CELLS_SHOWN: usize = 5;

#[cfg(test)]
mod tests {
    use super::one_of_a_kind;

    #[test]
    fn a_hundred_remarks_of_a_kind_are_one_with_a_count() {
        let line = |system: &str, number: usize| format!("{system}: {number} of 12 not read");
        let mut lines: Vec<String> = (1..=100).map(|number| line("os.pipe", number)).collect();
        lines.push("another matter".to_owned());
        assert_eq!(
            one_of_a_kind(&lines),
            [
                "os.pipe: 1 of 12 not read (and 99 similar ones: notes in summary.json)",
                "another matter"
            ]
        );
        lines.drain(3..100);
        assert_eq!(one_of_a_kind(&lines), lines);
    }
}
