//! One run: starts daemons, clocks, pongs and pings, waits until they are ready, starts and stops
//! the measurement, takes two snapshots, collects the samples.

use std::time::{Duration, Instant};

use myelin_bench_kit::protocol::{Command, Ready, Reliability, Role, Workload};

use super::processes::Processes;
use super::{Failure, RunSpec, Watch};
use crate::host::{Host, LinkCut, ProcessId};
use crate::observe::Observation;
use crate::record::{LoadRecord, RunRecord, RunSamples};

/// Executes one run on this host, or on ping's host and pong's; `watch` looks at it meanwhile.
/// Returns the samples and adds the other results to `record`. A failed run may have set how long
/// its start took. No process of the run is left when this returns.
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
    let link_cut = across.and_then(|across| Some(across.path.as_ref()?.cut(start_ns, across.cut?)));
    let early = wait_done(spec, processes, false)?;
    record.notes.extend(early.is_some().then(|| "ended early, by an interruption".into()));
    let mut observation = early.map_or_else(|| processes.observed(), Ok)?;
    let cut = link_cut.map_or(Ok(None), LinkCut::end)?;
    // The CPU time of the observers is part of the cost of observing.
    let watching_ns = watch.end();
    if let Some(series) = &mut observation.series {
        series.cost_percent += 100.0 * watching_ns as f64 / observation.wall_ns.max(1) as f64;
    }

    // A load is as long as the run. A run that ended early has ended its load, too.
    wait_done(spec, processes, true)?;
    // A workload without roles has no processes to wait for.
    await_goodbye(spec, processes)?;
    processes.stop(Role::Pong, DONE_LIMIT)?;
    processes.send(Role::Ping, &Command::Stop)?;
    processes.wait_ended(Role::Ping, DONE_LIMIT)?;
    processes.wait_ended(Role::Pong, DONE_LIMIT)?;
    for (role, limit) in [(Role::Clock, DONE_LIMIT), (Role::Daemon, DAEMON_LIMIT)] {
        processes.stop(role, limit)?;
        processes.wait_ended(role, DONE_LIMIT)?;
    }
    let mut ping = processes.counts(Role::Ping, false);
    let pong = match ping.pong.take() {
        Some(pong) if spec.is_one_process() => *pong,
        _ => processes.counts(Role::Pong, false),
    };
    let mut samples = RunSamples {
        ping: processes.records(spec.processes_of(Role::Ping))?,
        pong: processes.records(spec.processes_of(Role::Pong))?,
        exchanges: processes.clock_exchanges(),
        load: None,
    };
    if spec.load.is_some() {
        samples.load = Some(Box::new(RunSamples {
            ping: processes.records(spec.load_of(Role::Ping))?,
            pong: processes.records(spec.load_of(Role::Pong))?,
            ..RunSamples::default()
        }));
        let [ping, pong] = [Role::Ping, Role::Pong].map(|role| processes.counts(role, true));
        record.load = Some(LoadRecord { ping, pong });
    }
    record.notes.append(&mut processes.notes());
    record.ping = Some(ping);
    record.pong = Some(pong);
    record.cut = cut;
    record.link = across.and_then(|across| across.path.as_ref()?.record());
    record.clock_discipline = processes.clock_discipline();
    record.observation = Some(observation);
    Ok(samples)
}

/// Starts all processes and waits until they are ready; stores in `record` how long that took.
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
    // The clocks answer before, during and after the run.
    for id in spec.processes_of(Role::Clock) {
        processes.start(id)?;
    }
    processes.wait_ready(Role::Clock)?;
    processes.go(&[Role::Clock], Duration::ZERO)?;
    // Its start would disturb that of the measured processes.
    for id in spec.load_of(Role::Pong).into_iter().chain(spec.load_of(Role::Ping)) {
        processes.start(id)?;
    }
    processes.wait_ready(Role::Pong)?;
    processes.wait_ready(Role::Ping)?;
    let mut later_start_ns = 0;
    // In one process there is no pong to start.
    let pongs = spec.processes_of(Role::Pong).filter(|_| !spec.is_one_process());
    for id in pongs.chain(spec.processes_of(Role::Ping)) {
        later_start_ns = processes.start(id)?;
    }
    processes.wait_ready(Role::Pong)?;
    processes.wait_ready(Role::Ping)?;
    let since_ms = |at_ns: u64| at_ns.saturating_sub(later_start_ns) as f64 * 1e-6;
    // Across hosts the clock is that of ping's host, whose process starts later.
    let is_on_clock =
        |id: &ProcessId| !id.is_load && (spec.across.is_none() || id.role == Role::Ping);
    let latest = |at_ns: fn(&Ready) -> u64| {
        let ready = processes.ready().iter().filter(|(id, _)| is_on_clock(id));
        ready.map(|(_, ready)| at_ns(ready)).max().unwrap_or(0)
    };
    record.startup_ms = Some(since_ms(latest(|ready| ready.matched_ns)));
    if spec.prepare.workload == Workload::Startup {
        record.first_sample_ms = Some(since_ms(latest(|ready| ready.first_ns)));
    }
    Ok(())
}

/// Waits until all measuring pings are done, or the load's; gives up if they exchange nothing for
/// too long. If it ends them early, it returns what was observed until then: the processes end at
/// once.
fn wait_done(
    spec: &RunSpec<'_>,
    processes: &mut Processes<'_, '_>,
    is_load: bool,
) -> Result<Option<Observation>, Failure> {
    let ping = ProcessId { is_load, ..ProcessId::first(Role::Ping) };
    let prepare = spec.prepare_of(ping);
    let period = Duration::from_secs_f64(prepare.rate_hz.map_or(0.0, |rate| 1.0 / rate));
    let answers = Duration::from_nanos(prepare.reply_timeout_ns);
    // An announced cut of the link is not a stall.
    let cut = spec.across.as_ref().and_then(|across| across.cut);
    let cut = Duration::from_secs_f64(cut.map_or(0.0, |cut| cut.for_s));
    let patience = STALL_LIMIT + period * 2 + answers * LOST_LIMIT + cut;
    let (mut exchanges, mut since) = (0, Instant::now());
    let mut early = None;
    while !processes.are_done(|id| id.role == Role::Ping && id.is_load == is_load) {
        let now_exchanges = processes.exchanges(is_load);
        if now_exchanges != exchanges {
            (exchanges, since) = (now_exchanges, Instant::now());
        } else if since.elapsed() > patience {
            let text = format!("{ping} exchanged no messages for {} s", patience.as_secs());
            return Err(Failure::Run(text));
        }
        if processes.has_to_end() {
            // When the load ends, what it is beside has been observed.
            early = (!is_load).then(|| processes.observed()).transpose()?;
            processes.end_early()?;
        }
        processes.receive()?;
    }
    Ok(early)
}

/// Waits until pong has received the last message of a stream, which marks the end. Until then the
/// missing messages are still on their way, not lost. The wait is limited: without reliability the
/// last message can be lost, too.
fn await_goodbye(spec: &RunSpec<'_>, processes: &mut Processes<'_, '_>) -> Result<(), Failure> {
    let is_stream = |id: &ProcessId| spec.prepare_of(*id).workload.is_one_way();
    let pongs = [spec.processes_of(Role::Pong).next(), spec.load_of(Role::Pong)];
    let streams = pongs.into_iter().flatten().filter(is_stream);
    let limit = streams.map(|id| match spec.prepare_of(id).reliability {
        Reliability::Reliable => RELIABLE_END_OF_STREAM_LIMIT,
        Reliability::BestEffort => END_OF_STREAM_LIMIT,
    });
    let deadline = Instant::now() + limit.max().unwrap_or_default();
    while !processes.are_done(|id| id.role == Role::Pong && is_stream(id))
        && Instant::now() < deadline
    {
        processes.receive()?;
    }
    Ok(())
}

/// From the command to the first message, so that all processes have read the command.
const START_DELAY: Duration = Duration::from_millis(2);
/// Without an exchange for this long, in addition to the time of lost answers, ping is given up.
const STALL_LIMIT: Duration = Duration::from_secs(10);
/// Ping gives up by itself when it loses this many answers in a row.
const LOST_LIMIT: u32 = myelin_bench_kit::pingpong::LOST_IN_A_ROW_MAX + 1;
/// How long the last message of a stream may take to arrive.
const END_OF_STREAM_LIMIT: Duration = Duration::from_secs(1);
/// The same for a reliable stream: a slow link may have to carry a full history.
const RELIABLE_END_OF_STREAM_LIMIT: Duration = Duration::from_secs(10);
const DONE_LIMIT: Duration = Duration::from_secs(2);
const DAEMON_LIMIT: Duration = Duration::from_secs(10);
