//! One run: daemons, clocks, pongs, pings; ready, start, done, stop; two snapshots; the samples.

use std::time::{Duration, Instant};

use myelin_bench_kit::protocol::{Command, Ready, Reliability, Role, Workload};

use super::RunSpec;
use super::Watch;
use super::processes::Processes;
use super::{RunRecord, RunSamples};
use crate::host::{Host, LinkCut, ProcessId};

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Ctrl-C or SIGTERM: the run is forgotten.
    #[error("interrupted")]
    Interrupted,
    /// The run is kept as failed.
    #[error("{0}")]
    Run(String),
    /// So it is, because a host went out of reach, which explains whatever else went wrong.
    #[error("{0}")]
    Gone(String),
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Failure::Run(reason)
    }
}

/// Executes one run, for `watch` to see, on this host or on those of ping and of pong: its samples.
/// What was measured is added to `record`; if it fails, how long its start took, perhaps. When it
/// returns, no process of the run is left.
pub(crate) fn execute(
    spec: &RunSpec<'_>,
    record: &mut RunRecord,
    hosts: &mut [&mut dyn Host],
    watch: &mut dyn Watch,
) -> Result<RunSamples, Failure> {
    let mut processes = Processes::new(spec, hosts)?;
    let outcome = go(spec, record, &mut processes, watch).map_err(|failure| {
        watch.end();
        processes.explain(failure)
    });
    let has_failed = outcome.is_err();
    drop(processes);
    if has_failed {
        hosts.iter_mut().for_each(|host| host.clean(&spec.entry.executable));
    }
    outcome
}

fn go(
    spec: &RunSpec<'_>,
    record: &mut RunRecord,
    processes: &mut Processes<'_, '_>,
    watch: &mut dyn Watch,
) -> Result<RunSamples, Failure> {
    start(spec, record, processes)?;
    watch.begin(processes.running());
    processes.observe()?;
    let start_ns = processes.go(&[Role::Pong, Role::Ping], START_DELAY)?;
    let across = spec.across.as_ref();
    let link_cut = across.and_then(|across| Some(across.link.as_ref()?.cut(start_ns, across.cut?)));
    wait_done(spec, processes)?;
    let mut observation = processes.observed()?;
    let cut = link_cut.map_or(Ok(None), LinkCut::end)?;
    // Whoever watches is part of what observing costs.
    let watching_ns = watch.end();
    if let Some(series) = &mut observation.series {
        series.cost_percent += 100.0 * watching_ns as f64 / observation.wall_ns.max(1) as f64;
    }

    // Where nobody plays a role there is nobody to wait for.
    await_goodbye(spec, processes)?;
    processes.stop(Role::Pong, DONE_LIMIT)?;
    processes.send(Role::Ping, &Command::Stop)?;
    processes.wait_ended(Role::Ping, DONE_LIMIT)?;
    processes.wait_ended(Role::Pong, DONE_LIMIT)?;
    for (role, limit) in [(Role::Clock, DONE_LIMIT), (Role::Daemon, DAEMON_LIMIT)] {
        processes.stop(role, limit)?;
        processes.wait_ended(role, DONE_LIMIT)?;
    }
    let mut ping = processes.counts(Role::Ping);
    let pong = match ping.pong.take() {
        Some(pong) if spec.is_one_process() => *pong,
        _ => processes.counts(Role::Pong),
    };
    let samples = RunSamples {
        ping: processes.records(Role::Ping)?,
        pong: processes.records(Role::Pong)?,
        exchanges: processes.clock_exchanges(),
    };
    record.notes.append(&mut processes.notes());
    record.ping = Some(ping);
    record.pong = Some(pong);
    record.cut = cut;
    record.keeping = processes.keeping();
    record.observation = Some(observation);
    Ok(samples)
}

/// Starts everybody and waits until all are ready; the record has how long that took.
fn start(
    spec: &RunSpec<'_>,
    record: &mut RunRecord,
    processes: &mut Processes<'_, '_>,
) -> Result<(), Failure> {
    if spec.entry.system.daemon {
        let begin = Instant::now();
        for id in spec.processes_of(Role::Daemon) {
            processes.start(id)?;
        }
        processes.wait_ready(Role::Daemon)?;
        record.daemon_ms = Some(begin.elapsed().as_secs_f64() * 1e3);
    }
    // Asked before the run, while it lasts, and after it.
    for id in spec.processes_of(Role::Clock) {
        processes.start(id)?;
    }
    processes.wait_ready(Role::Clock)?;
    processes.go(&[Role::Clock], Duration::ZERO)?;
    let mut later_start_ns = 0;
    // In one process there is no pong to start.
    let pongs = spec.processes_of(Role::Pong).filter(|_| !spec.is_one_process());
    for id in pongs.chain(spec.processes_of(Role::Ping)) {
        later_start_ns = processes.start(id)?;
    }
    processes.wait_ready(Role::Pong)?;
    processes.wait_ready(Role::Ping)?;
    let since_ms = |at_ns: u64| at_ns.saturating_sub(later_start_ns) as f64 * 1e-6;
    // Across hosts ping's clock says it, whose process is the later one.
    let is_on_clock = |id: &ProcessId| spec.across.is_none() || id.role == Role::Ping;
    let latest = |at_ns: fn(&Ready) -> u64| {
        let ready = processes.ready().iter().filter(|(id, _)| is_on_clock(id));
        ready.map(|(_, ready)| at_ns(ready)).max().unwrap_or(0)
    };
    record.startup_ms = since_ms(latest(|ready| ready.matched_ns));
    if spec.prepare.workload == Workload::Startup {
        record.first_sample_ms = Some(since_ms(latest(|ready| ready.first_ns)));
    }
    Ok(())
}

/// Until all pings are done; pings that exchange nothing for too long are given up.
fn wait_done(spec: &RunSpec<'_>, processes: &mut Processes<'_, '_>) -> Result<(), Failure> {
    let prepare = &spec.prepare;
    let period = Duration::from_secs_f64(prepare.rate_hz.map_or(0.0, |rate| 1.0 / rate));
    let answers = Duration::from_nanos(prepare.reply_timeout_ns);
    // A cut that was announced is no stall.
    let cut = spec.across.as_ref().and_then(|across| across.cut);
    let cut = Duration::from_secs_f64(cut.map_or(0.0, |cut| cut.for_s));
    let patience = STALL_LIMIT + period * 2 + answers * LOST_LIMIT + cut;
    let (mut exchanges, mut since) = (0, Instant::now());
    while !processes.are_done(Role::Ping) {
        let now_exchanges = processes.exchanges();
        if now_exchanges != exchanges {
            (exchanges, since) = (now_exchanges, Instant::now());
        } else if since.elapsed() > patience {
            let text = format!("ping has exchanged nothing for {} s", patience.as_secs());
            return Err(Failure::Run(text));
        }
        processes.receive()?;
    }
    Ok(())
}

/// The last thing ping publishes in a stream tells pong that it was the last. Until pong has
/// heard it, what is on its way is not lost; but it may have been lost itself, unless the stream is
/// reliable.
fn await_goodbye(spec: &RunSpec<'_>, processes: &mut Processes<'_, '_>) -> Result<(), Failure> {
    let is_stream = spec.prepare.workload.is_one_way();
    let limit = match spec.prepare.reliability {
        Reliability::Reliable => RELIABLE_GOODBYE_LIMIT,
        Reliability::BestEffort => GOODBYE_LIMIT,
    };
    let deadline = Instant::now() + limit;
    while is_stream && !processes.are_done(Role::Pong) && Instant::now() < deadline {
        processes.receive()?;
    }
    Ok(())
}

/// Between the command and the first message, so that all have read theirs.
const START_DELAY: Duration = Duration::from_millis(2);
/// Without an exchange for so long, beyond what lost answers take, ping is given up.
const STALL_LIMIT: Duration = Duration::from_secs(10);
/// As many answers in a row may be lost before ping gives up itself.
const LOST_LIMIT: u32 = myelin_bench_kit::pingpong::LOST_IN_A_ROW_MAX + 1;
/// How long a stream's last message may take to be heard.
const GOODBYE_LIMIT: Duration = Duration::from_secs(1);
/// Likewise, of a reliable stream: as long as a slow link may take for a full history.
const RELIABLE_GOODBYE_LIMIT: Duration = Duration::from_secs(10);
const DONE_LIMIT: Duration = Duration::from_secs(2);
const DAEMON_LIMIT: Duration = Duration::from_secs(10);
