//! Turns observations over time into figures and columns of a run. They are of ping, pong and daemons
//! together and include the warm-up.

use super::judged::JudgedRun;
use super::part::Part;
use crate::observe::series::{Counted, Hardware, Moment, ProcessMoment, Series};
use crate::record::{Folder, RunRecord};
use crate::summary::ObservedColumns;

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

/// Time that threads waited for a CPU, in per cent of the observed time.
pub(super) fn runqueue_wait_percent(series: &Series) -> Part {
    let wait_ns: u64 = looks(series).map(wait_ns).sum();
    Part::ratio(100.0 * wait_ns as f64 * 1e-9, series.duration_s())
}

/// `None` if the kernel does not count them.
pub(super) fn migrations_per_s(series: &Series) -> Option<Part> {
    let migrations = count(series, |seen| seen.switches?.migrations)?;
    Some(Part::ratio(migrations, series.duration_s()))
}

/// `None` if the memory of a process was never read.
pub(super) fn pss_peak_bytes(series: &Series) -> Option<u64> {
    pss_bytes(series).into_iter().flatten().max()
}

/// A count of the processor for each of the messages; `None` if the processor does not provide it.
pub(super) fn hardware(
    series: &Series,
    of: fn(&Hardware) -> Option<u64>,
    messages: f64,
) -> Option<Part> {
    Some(Part::ratio(count(series, |seen| of(&seen.hardware?))?, messages))
}

fn looks(series: &Series) -> impl Iterator<Item = &ProcessMoment> {
    series.moments.iter().flat_map(|moment| &moment.processes)
}

fn wait_ns(seen: &ProcessMoment) -> u64 {
    seen.threads.iter().map(|thread| thread.wait_ns).sum()
}

/// The sum of a count; `None` if it was never read.
fn count(series: &Series, of: impl Fn(&ProcessMoment) -> Option<u64>) -> Option<f64> {
    looks(series).filter_map(of).reduce(|a, b| a + b).map(|sum| sum as f64)
}

/// The columns of a run; `None` if it was not observed over time.
pub(super) fn columns(run: &JudgedRun<'_>) -> Option<ObservedColumns> {
    run.series().map(columns_of)
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
        migrations_per_s: known(rows, migration_rates(series)),
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

fn migration_rates(series: &Series) -> Vec<Option<f64>> {
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
