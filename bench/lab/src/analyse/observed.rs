//! Turns observations over time into figures of a cell and columns of a run.

use super::judged::JudgedRun;
use crate::observe::series::{Counted, Hardware, Moment, ProcessMoment, Series};
use crate::record::{Folder, RunRecord};
use crate::summary::{Cell, ObservedColumns};

/// Reads a run's observations over time into its record. If they are unreadable, the record gets a
/// remark and the error text is returned.
pub(super) fn attach(record: &mut RunRecord, folder: &Folder) -> Option<String> {
    let mut damage = None;
    let series = folder.series(record).unwrap_or_else(|error| {
        let text = format!("{error:#}: left out; the run has no figures over time");
        record.notes.push(text.clone());
        damage = Some(text);
        None
    });
    if series.as_ref().is_some_and(|series| series.counted.is_some()) {
        let note = "the processor's counters were on, which makes each context switch slower";
        record.notes.push(note.into());
    }
    if series.as_ref().is_some_and(|series| series.counted == Some(Counted::User)) {
        let note = "the processor's counters do not include the kernel: kernel.perf_event_paranoid";
        record.notes.push(note.into());
    }
    if let Some(observation) = &mut record.observation {
        observation.series = series;
    }
    damage
}

/// The cell with the observed figures of ping, pong and daemons together, over the used runs and
/// including the warm-up. A figure is absent if no run was observed over time, or if kernel or
/// processor do not provide it.
pub(super) fn with_figures(cell: Cell, runs: &[&JudgedRun], warmup_messages: u64) -> Cell {
    let observed: Vec<(&Series, f64)> = runs
        .iter()
        .filter_map(|run| {
            let warmed_up = run.counts.warmed_up.unwrap_or(warmup_messages);
            Some((series_of(run)?, (run.counts.sent + warmed_up) as f64))
        })
        .collect();
    figures_of(cell, &observed)
}

fn series_of(run: &JudgedRun) -> Option<&Series> {
    let series = run.record.observation.as_ref()?.series.as_ref()?;
    series.moments.last().is_some().then_some(series)
}

/// Figures from pairs of a series and the number of messages published meanwhile.
fn figures_of(cell: Cell, runs: &[(&Series, f64)]) -> Cell {
    if runs.is_empty() {
        return cell;
    }
    let all_s: f64 = runs.iter().map(|(series, _)| series.duration_s()).sum();
    let wait_ns: u64 = runs.iter().flat_map(|(series, _)| looks(series)).map(wait_ns).sum();
    let migrations = |seen: &ProcessMoment| seen.switches?.migrations;
    let costs: f64 = runs.iter().map(|(series, _)| series.cost_percent).sum();
    let per_message = |of: fn(&Hardware) -> Option<u64>| {
        ratio(runs, |seen| of(&seen.hardware?), |(_, messages)| *messages)
    };
    Cell {
        runqueue_wait_percent: (all_s > 0.0).then(|| 100.0 * wait_ns as f64 * 1e-9 / all_s),
        migrations_per_s: ratio(runs, migrations, |(series, _)| series.duration_s()),
        pss_peak_bytes: runs.iter().flat_map(|(series, _)| pss_bytes(series)).flatten().max(),
        cycles_per_message: per_message(|hardware| Some(hardware.cycles)),
        instructions_per_message: per_message(|hardware| hardware.instructions),
        cache_misses_per_message: per_message(|hardware| hardware.cache_misses),
        observation_cpu_percent: Some(costs / runs.len() as f64),
        ..cell
    }
}

fn looks(series: &Series) -> impl Iterator<Item = &ProcessMoment> {
    series.moments.iter().flat_map(|moment| &moment.processes)
}

fn wait_ns(seen: &ProcessMoment) -> u64 {
    seen.threads.iter().map(|thread| thread.wait_ns).sum()
}

/// Sum of a count over the sum of `base`, for the runs in which the count is known.
fn ratio(
    runs: &[(&Series, f64)],
    count: impl Fn(&ProcessMoment) -> Option<u64>,
    base: impl Fn(&(&Series, f64)) -> f64,
) -> Option<f64> {
    let (mut counts, mut bases) = (0.0, 0.0);
    for run in runs {
        let known: Vec<u64> = looks(run.0).filter_map(&count).collect();
        if !known.is_empty() {
            counts += known.iter().sum::<u64>() as f64;
            bases += base(run);
        }
    }
    (bases > 0.0).then(|| counts / bases)
}

/// The columns of a run; `None` if it was not observed over time.
pub(super) fn columns(run: &JudgedRun) -> Option<ObservedColumns> {
    series_of(run).map(columns_of)
}

fn columns_of(series: &Series) -> ObservedColumns {
    let rows = rows(series);
    let all = |of: &dyn Fn(&ProcessMoment) -> f64| -> Vec<f64> {
        let rates = rates(series, |moment| Some(moment.processes.iter().map(of).sum()));
        rates.into_iter().flatten().take(rows).collect()
    };
    let percent = 1e-7;
    let steal_percent = 100.0 / (series.ticks_per_s.max(1) * u64::from(series.cpus.max(1))) as f64;
    let moments = series.moments[..rows].iter();
    ObservedColumns {
        t_s: moments.map(|moment| moment.at_ns as f64 * 1e-9).collect(),
        cpu_percent: all(&|seen| seen.cpu_ns as f64 * percent),
        runqueue_wait_percent: all(&|seen| wait_ns(seen) as f64 * percent),
        pss_bytes: known(rows, pss_bytes(series)),
        switches_per_s: all(&|seen| seen.threads.iter().map(|it| it.slices as f64).sum()),
        faults_per_s: all(&|seen| seen.faults as f64),
        migrations_per_s: known(rows, migrations_per_s(series)),
        steal_percent: known(
            rows,
            rates(series, |it| Some(it.steal_ticks? as f64 * steal_percent)),
        ),
    }
}

/// Number of rows. A last moment too close to the one before is dropped, as its rates would be
/// meaningless.
fn rows(series: &Series) -> usize {
    match series.moments.as_slice() {
        [others @ .., before, last] if last.at_ns - before.at_ns < SPAN_MIN_NS => others.len() + 1,
        all => all.len(),
    }
}

/// For each moment, the sum over processes of the latest reading of each. Unknown until every live
/// process has been read, and when none is alive.
fn pss_bytes(series: &Series) -> Vec<Option<u64>> {
    let mut last: Vec<Option<u64>> = vec![None; series.processes.len()];
    let sum = |moment: &Moment| {
        for seen in &moment.processes {
            let known = &mut last[seen.process as usize];
            *known = seen.memory.map(|memory| memory.pss_bytes).or(*known);
        }
        let alive = moment.processes.iter().map(|seen| last[seen.process as usize]);
        alive.sum::<Option<u64>>().filter(|_| !moment.processes.is_empty())
    };
    series.moments.iter().map(sum).collect()
}

/// For each moment, the mean rate per second between the readings around it.
fn rates(series: &Series, of: impl Fn(&Moment) -> Option<f64>) -> Vec<Option<f64>> {
    let mut rates = Vec::with_capacity(series.moments.len());
    let mut before_ns = 0;
    for (index, moment) in series.moments.iter().enumerate() {
        let Some(count) = of(moment) else {
            continue;
        };
        let span_s = (moment.at_ns - before_ns).max(1) as f64 * 1e-9;
        rates.resize(index + 1, Some(count / span_s));
        before_ns = moment.at_ns;
    }
    rates.resize(series.moments.len(), None);
    rates
}

fn migrations_per_s(series: &Series) -> Vec<Option<f64>> {
    let mut sum: Vec<Option<f64>> = vec![None; series.moments.len()];
    for process in 0..series.processes.len() as u32 {
        let of_process = rates(series, |moment| {
            let seen = moment.processes.iter().find(|seen| seen.process == process)?;
            Some(seen.switches?.migrations? as f64)
        });
        for (sum, rate) in sum.iter_mut().zip(of_process) {
            *sum = rate.map(|rate| rate + sum.unwrap_or(0.0)).or(*sum);
        }
    }
    sum
}

/// The column, or an empty one if it has no known value.
fn known<T>(rows: usize, mut column: Vec<Option<T>>) -> Vec<Option<T>> {
    column.truncate(if column.iter().all(Option::is_none) { 0 } else { rows });
    column
}

/// The last moment comes when the run ends; after a shorter interval than this its rates are
/// meaningless.
const SPAN_MIN_NS: u64 = 20_000_000;

#[cfg(test)]
mod tests;
