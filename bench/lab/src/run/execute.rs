//! One run: daemons, clocks, pongs, pings; ready, start, done, stop; two snapshots; the samples.

use std::time::{Duration, Instant};

use myelin_bench_kit::protocol::{Command, Done, Keeping, Ready, Reliability, Role, Workload};

use super::RunSamples;
use super::cast::Cast;
use super::order::Order;
use super::watch::Watch;
use crate::observe::CutRecord;
use crate::observe::Observation;
use crate::place::{Cutting, Place, Player};

/// What a run that came to its end has yielded.
pub struct Outcome {
    /// Counts of ping.
    pub ping: Done,
    /// Counts of pong.
    pub pong: Done,
    /// What drivers remarked.
    pub notes: Vec<String>,
    /// How it came to run.
    pub startup: Startup,
    /// When the link was down.
    pub cut: Option<CutRecord>,
    /// How the clocks of two hosts were kept.
    pub keeping: Vec<[Keeping; 2]>,
    /// From start to done.
    pub observation: Observation,
    /// All records.
    pub samples: RunSamples,
}

/// How long a run's processes took to be there, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Startup {
    /// From the start of the later process until both directions matched.
    pub matched_ms: f64,
    /// From the start of the later process until pong had taken a message; of start-ups alone.
    pub first_sample_ms: Option<f64>,
    /// From the daemon's start until it answered; of systems with a daemon.
    pub daemon_ms: Option<f64>,
}

/// Why a run did not come to its end.
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

/// Executes one run, for `watch` to see, on this host or on those of ping and of pong. When it
/// returns, no process of the run is left.
pub(crate) fn execute(
    order: &Order<'_>,
    places: &mut [Box<dyn Place>],
    watch: &mut dyn Watch,
) -> Result<Outcome, Failure> {
    let mut cast = Cast::new(order, places)?;
    let outcome = go(order, &mut cast, watch).map_err(|failure| {
        watch.end();
        cast.explain(failure)
    });
    let has_failed = outcome.is_err();
    drop(cast);
    if has_failed {
        places.iter_mut().for_each(|place| place.clean(&order.entry.executable));
    }
    outcome
}

fn go(order: &Order<'_>, cast: &mut Cast<'_>, watch: &mut dyn Watch) -> Result<Outcome, Failure> {
    let startup = start(order, cast)?;
    watch.begin(cast.running());
    cast.observe()?;
    let start_ns = cast.go(&[Role::Pong, Role::Ping], START_DELAY)?;
    let across = order.across.as_ref();
    let cutting = across.and_then(|across| Some(across.pair.as_ref()?.cut(start_ns, across.cut?)));
    wait_done(order, cast)?;
    let mut observation = cast.observed()?;
    let cut = cutting.map_or(Ok(None), Cutting::end)?;
    // Whoever watches is part of what observing costs.
    let watching_ns = watch.end();
    if let Some(series) = &mut observation.series {
        series.cost_percent += 100.0 * watching_ns as f64 / observation.wall_ns.max(1) as f64;
    }

    if !order.is_one_process() {
        await_goodbye(order, cast)?;
        cast.say(Role::Pong, &Command::Stop)?;
        cast.collect(Role::Pong, DONE_LIMIT, "did not stop")?;
    }
    cast.say(Role::Ping, &Command::Stop)?;
    cast.wait_ended(Role::Ping, DONE_LIMIT)?;
    cast.wait_ended(Role::Pong, DONE_LIMIT)?;
    if order.across.is_some() {
        cast.say(Role::Clock, &Command::Stop)?;
        cast.collect(Role::Clock, DONE_LIMIT, "did not stop")?;
        cast.wait_ended(Role::Clock, DONE_LIMIT)?;
    }
    if order.entry.system.daemon {
        cast.say(Role::Daemon, &Command::Stop)?;
        cast.collect(Role::Daemon, DAEMON_LIMIT, "did not stop")?;
        cast.wait_ended(Role::Daemon, DONE_LIMIT)?;
    }
    let mut ping = cast.counts(Role::Ping);
    let pong = match ping.pong.take() {
        Some(pong) if order.is_one_process() => *pong,
        _ => cast.counts(Role::Pong),
    };
    let samples = RunSamples {
        ping: cast.records(Role::Ping)?,
        pong: cast.records(Role::Pong)?,
        exchanges: cast.asked(),
    };
    let notes = cast.notes();
    let keeping = cast.keeping();
    Ok(Outcome { ping, pong, notes, startup, cut, keeping, observation, samples })
}

/// Starts everybody and waits until all are ready.
fn start(order: &Order<'_>, cast: &mut Cast<'_>) -> Result<Startup, Failure> {
    let mut startup = Startup::default();
    if order.entry.system.daemon {
        let begin = Instant::now();
        for player in order.players(Role::Daemon) {
            cast.start(player)?;
        }
        cast.wait_ready(Role::Daemon)?;
        startup.daemon_ms = Some(begin.elapsed().as_secs_f64() * 1e3);
    }
    // Asked before the run, while it lasts, and after it.
    for player in order.players(Role::Clock) {
        cast.start(player)?;
    }
    cast.wait_ready(Role::Clock)?;
    cast.go(&[Role::Clock], Duration::ZERO)?;
    let mut later_start_ns = 0;
    // In one process there is no pong to start.
    let pongs = order.players(Role::Pong).filter(|_| !order.is_one_process());
    for player in pongs.chain(order.players(Role::Ping)) {
        later_start_ns = cast.start(player)?;
    }
    cast.wait_ready(Role::Pong)?;
    cast.wait_ready(Role::Ping)?;
    let since_ms = |at_ns: u64| at_ns.saturating_sub(later_start_ns) as f64 * 1e-6;
    // Across hosts ping's clock says it, whose process is the later one.
    let is_on_clock = |player: &Player| order.across.is_none() || player.role == Role::Ping;
    let latest = |at_ns: fn(&Ready) -> u64| {
        let ready = cast.ready().iter().filter(|(player, _)| is_on_clock(player));
        ready.map(|(_, ready)| at_ns(ready)).max().unwrap_or(0)
    };
    startup.matched_ms = since_ms(latest(|ready| ready.matched_ns));
    if order.prepare.workload == Workload::Startup {
        startup.first_sample_ms = Some(since_ms(latest(|ready| ready.first_ns)));
    }
    Ok(startup)
}

/// Until all pings are done; pings that exchange nothing for too long are given up.
fn wait_done(order: &Order<'_>, cast: &mut Cast<'_>) -> Result<(), Failure> {
    let prepare = &order.prepare;
    let period = Duration::from_secs_f64(prepare.rate_hz.map_or(0.0, |rate| 1.0 / rate));
    let answers = Duration::from_nanos(prepare.reply_timeout_ns);
    // A cut that was announced is no stall.
    let cut = order.across.as_ref().and_then(|across| across.cut);
    let cut = Duration::from_secs_f64(cut.map_or(0.0, |cut| cut.for_s));
    let patience = STALL_LIMIT + period * 2 + answers * LOST_LIMIT + cut;
    let (mut exchanges, mut since) = (0, Instant::now());
    while !cast.are_done(Role::Ping) {
        let now_exchanges = cast.exchanges();
        if now_exchanges != exchanges {
            (exchanges, since) = (now_exchanges, Instant::now());
        } else if since.elapsed() > patience {
            let text = format!("ping has exchanged nothing for {} s", patience.as_secs());
            return Err(Failure::Run(text));
        }
        cast.listen()?;
    }
    Ok(())
}

/// The last thing ping publishes in a stream tells pong that it was the last. Until pong has
/// heard it, what is on its way is not lost; but it may have been lost itself, unless the stream is
/// reliable.
fn await_goodbye(order: &Order<'_>, cast: &mut Cast<'_>) -> Result<(), Failure> {
    let is_stream = order.prepare.workload.is_one_way();
    let limit = match order.prepare.reliability {
        Reliability::Reliable => RELIABLE_GOODBYE_LIMIT,
        Reliability::BestEffort => GOODBYE_LIMIT,
    };
    let deadline = Instant::now() + limit;
    while is_stream && !cast.are_done(Role::Pong) && Instant::now() < deadline {
        cast.listen()?;
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
