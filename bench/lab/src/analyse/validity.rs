//! Whether a run is valid, and if not, why.

use myelin_bench_kit::fan::SILENT;
use myelin_bench_kit::protocol::{Arrivals, Done, System, Topology, Transport, Wait, Workload};
use myelin_bench_kit::samples::{LEAN, Record};

use super::judged::Case;
use crate::cgroup::Throttling;
use crate::machine::BACKGROUND_PACKETS_PER_S;
use crate::observe::Observation;
use crate::record::{RunRecord, RunSamples};

/// Everything that a run is judged by.
pub(super) struct Evidence<'a> {
    pub case: Case<'a>,
    pub record: &'a RunRecord,
    pub samples: &'a RunSamples,
    /// Largest disagreement between stamps of the two ends: 0 for one clock, `None` if unknown.
    pub clock_error_ns: Option<u64>,
}

impl Evidence<'_> {
    /// Whether every counted message has a record. A flood's records end where its sample file is
    /// full.
    fn keeps_all(&self) -> bool {
        self.case.scenario.workload.record_every == 1 && self.case.kind() != Workload::Flood
    }
}

/// Everything wrong with a run; empty if it is valid.
pub(super) fn faults(evidence: &Evidence<'_>) -> Vec<String> {
    if let Some(failure) = &evidence.record.failure {
        return vec![failure.clone()];
    }
    let (Some(ping), Some(pong)) = (&evidence.record.ping, &evidence.record.pong) else {
        return vec![INCOMPLETE.into()];
    };
    let observation = match (&evidence.record.observation, evidence.case.plan.imported) {
        // The import has checked the trace, and nobody observed the application.
        (_, Some(_)) => return Vec::new(),
        (Some(observation), None) => observation,
        (None, None) => return vec![INCOMPLETE.into()],
    };
    let mut faults = Vec::new();
    match evidence.case.kind() {
        Workload::Roundtrip => {
            faults.extend(counts_disagree(ping, pong, evidence));
            faults.extend(answered_by_another(evidence));
        }
        Workload::Publish => faults.extend(not_what_was_published(ping, pong, evidence)),
        Workload::Startup => {
            if evidence.record.first_sample_ms.is_none() {
                faults.push("no first message".into());
            }
        }
        Workload::Stream | Workload::Image | Workload::Flood | Workload::Replay => {
            faults.extend(not_what_was_published(ping, pong, evidence));
            faults.extend(not_the_stream(pong, evidence));
        }
    }
    faults.extend(payload_damaged(ping, pong));
    if !is_stream(evidence) {
        faults.extend(rate_missed(ping, evidence));
    }
    faults.extend(left_its_cpu(evidence));
    faults.extend(wrong_transport(evidence, ping, observation));
    faults.extend(observation.throttling.and_then(throttled));
    faults
}

/// Time in which the quota let nothing run is the machine's, not the system's.
fn throttled(counted: Throttling) -> Option<String> {
    let Throttling { periods, throttled_periods, throttled_us } = counted;
    counted.is_any().then(|| {
        let stood_ms = throttled_us / 1000;
        format!(
            "a CPU quota held it up in {throttled_periods} of {periods} periods, for {stood_ms} ms"
        )
    })
}

/// Remark that a stream did not reach its rate. The run stays valid: its latencies count from when
/// messages were due, and the rate that a system cannot carry is a result.
pub(super) fn saturation(evidence: &Evidence<'_>) -> Option<String> {
    let ping = evidence.record.ping.as_ref()?;
    is_stream(evidence).then(|| rate_missed(ping, evidence)).flatten()
}

/// Whether latencies count from when messages were due.
fn is_stream(evidence: &Evidence<'_>) -> bool {
    matches!(evidence.case.kind(), Workload::Stream | Workload::Replay)
}

fn rate_missed(ping: &Done, evidence: &Evidence<'_>) -> Option<String> {
    let asked = evidence.case.plan.rate_hz? * f64::from(evidence.case.plan.publishers);
    let is_recorded = evidence.case.kind() == Workload::Replay;
    if is_recorded || evidence.case.arrivals() != Arrivals::default() {
        return schedule_missed(&evidence.samples.ping);
    }
    let seconds = ping.end_ns.saturating_sub(ping.begin_ns) as f64 * 1e-9;
    // The last message ends a run one period early.
    let reached = ping.sent as f64 / (seconds + 1.0 / asked).max(1e-9);
    let least = asked * RATE_REACHED;
    (reached < least && ping.sent > 1)
        .then(|| format!("reached {reached:.1} of {asked} messages a second"))
}

/// Remark that the messages of an uneven schedule took longer than planned.
fn schedule_missed(records: &[Record]) -> Option<String> {
    let (first, last) = (records.first()?, records.last()?);
    let asked_ns = last.intended_ns.saturating_sub(first.intended_ns) as f64;
    let taken_ns = last.publish_entry_ns.saturating_sub(first.publish_entry_ns) as f64;
    (asked_ns < taken_ns * RATE_REACHED).then(|| {
        let (asked_s, taken_s) = (asked_ns * 1e-9, taken_ns * 1e-9);
        format!("took {taken_s:.3} s for a schedule of {asked_s:.3} s")
    })
}

fn left_its_cpu(evidence: &Evidence<'_>) -> Option<String> {
    let [ping, pong] = evidence.record.pinned?;
    let published = |record: &Record| Some(record.publish_cpu);
    let taken = |record: &Record| (record.take_return_ns != 0).then_some(record.take_cpu);
    let records = &evidence.samples.ping;
    let of_ping = match evidence.case.kind() {
        Workload::Roundtrip => strayed(records, taken, [ping; 2]),
        _ => strayed(records, published, [ping; 2]),
    };
    // A callback runs in whichever thread the system calls it in, most often the publisher's.
    let also = if evidence.case.system.wait == Wait::Callback { ping } else { pong };
    let of_pong = || strayed(&evidence.samples.pong, taken, [pong, also]);
    let found = of_ping.map(|cpu| ("ping", cpu, ping));
    let (name, cpu, pinned) = found.or_else(|| Some(("pong", of_pong()?, pong)))?;
    Some(format!("{name} ran on CPU {cpu}, pinned to {pinned}"))
}

/// The first CPU of the records that is none of these.
fn strayed(
    records: &[Record],
    cpu_of: impl Fn(&Record) -> Option<u16>,
    [one, other]: [usize; 2],
) -> Option<usize> {
    let mut cpus = records.iter().filter_map(cpu_of).map(usize::from);
    cpus.find(|cpu| *cpu != one && *cpu != other)
}

/// Loopback traffic must exist for a system that uses it and be absent otherwise. A system over
/// shared memory must have a segment that both processes have mapped. Across hosts every system
/// must have used the link.
fn wrong_transport(
    evidence: &Evidence<'_>,
    ping: &Done,
    observation: &Observation,
) -> Option<String> {
    let taken = evidence.record.pong.as_ref().map_or(0, |pong| pong.received);
    let warmup_messages = ping.warmed_up.unwrap_or(evidence.case.warmup_messages());
    let messages = match evidence.case.kind() {
        Workload::Roundtrip => 2 * (ping.sent + warmup_messages),
        // Without a subscriber nothing needs to travel, and pong has nothing open.
        Workload::Publish if evidence.case.plan.subscribers == 0 => return None,
        Workload::Publish => ping.sent + warmup_messages,
        // All messages came before observing began.
        Workload::Startup => 0,
        // A message that nobody takes need not be sent; several subscribers may take a message that
        // is sent once.
        _ => taken / u64::from(evidence.case.plan.subscribers.max(1)),
    };
    let bytes = messages * (evidence.case.plan.payload_bytes + 8);
    let packets = observation.loopback_packets;
    let seen = format!(
        "{packets} packets and {} bytes over {} for {messages} messages of {} bytes",
        observation.loopback_bytes,
        observation.link.as_deref().unwrap_or("loopback"),
        evidence.case.plan.payload_bytes + 8
    );
    let seconds = observation.wall_ns as f64 * 1e-9;
    let others = BACKGROUND_PACKETS_PER_S.max(2.0 * evidence.case.host.loopback_packets_per_s);
    let background = (others * seconds) as u64;
    // The loopback interface carries packets of up to 64 KiB whole.
    match evidence.case.system.transport {
        Transport::None => None,
        // After a cut, one packet carries many messages.
        _ if observation.link.is_some() => (observation.loopback_bytes < bytes / 2)
            .then(|| format!("did not use the link between the hosts: {seen}")),
        // Back to back, one packet carries several small messages.
        Transport::Loopback
            if evidence.case.kind() == Workload::Flood
                && observation.loopback_bytes >= bytes / 2 =>
        {
            None
        }
        Transport::Loopback => (packets < messages / 2 || observation.loopback_bytes < bytes / 2)
            .then(|| format!("did not use the loopback interface: {seen}")),
        Transport::SharedMemory if !has_segment(evidence.case.system, observation) => {
            Some("no segment of shared memory is mapped by both ping and pong".into())
        }
        Transport::SharedMemory | Transport::Kernel | Transport::Process => {
            // Discovery, heartbeats and other programs use the interface, too, at a low rate. So
            // may a notification of a message, if it is smaller than the message.
            let went_over = match evidence.case.plan.payload_bytes >= 1024 {
                true => observation.loopback_bytes > bytes / 2 + background * 65_536,
                false => packets > messages / 2 + background && observation.loopback_bytes >= bytes,
            };
            (went_over && messages > 0).then(|| {
                format!(
                    "messages went over the network stack, or other programs began to use it: \
                         {seen}"
                )
            })
        }
    }
}

fn has_segment(system: &System, observation: &Observation) -> bool {
    match system.topology {
        Topology::TwoProcesses | Topology::TwoHosts => observation.ping_and_pong_share_memory,
        Topology::OneProcess => observation.shared_bytes > 0,
    }
}

fn counts_disagree(ping: &Done, pong: &Done, evidence: &Evidence<'_>) -> Option<String> {
    if ping.received == 0 {
        return Some("no message was answered".into());
    }
    if ping.sent != ping.received + ping.lost {
        let Done { sent, received, lost, .. } = ping;
        return Some(format!("sent {sent} ≠ received {received} + lost {lost}"));
    }
    let simulated = evidence.case.system.transport == Transport::None;
    if !simulated && ping.received > pong.received {
        let (answers, taken) = (ping.received, pong.received);
        return Some(format!(
            "ping got {answers} answers, but pong took only {taken} messages: ping receives its \
             own messages"
        ));
    }
    let answered = evidence.samples.ping.iter().filter(|record| record.take_return_ns != 0);
    let recorded = answered.count() as u64;
    if evidence.case.scenario.workload.record_every == 1 && recorded != ping.received {
        let received = ping.received;
        return Some(format!("{recorded} answers recorded ≠ {received} counted"));
    }
    None
}

/// Pong takes a message after ping has begun to publish it, and answers before ping takes the
/// answer. All times are of one clock, or of two within their known error. So a violation proves
/// that ping took something else.
fn answered_by_another(evidence: &Evidence<'_>) -> Option<String> {
    if evidence.case.system.transport == Transport::None {
        return None;
    }
    let error_ns = evidence.clock_error_ns?;
    let pairs = evidence.samples.ping.iter().zip(&evidence.samples.pong);
    let both = pairs.filter(|(ping, pong)| ping.take_return_ns != 0 && pong.take_return_ns != 0);
    let wrong = both.filter(|(ping, pong)| {
        // A message without stamps in its path was taken some time before its answer was sent.
        let is_stamped = pong.flags & LEAN == 0;
        pong.take_return_ns + error_ns < ping.publish_entry_ns
            || (is_stamped && ping.take_return_ns + error_ns < pong.take_return_ns)
    });
    let count = wrong.count();
    (count > 0).then(|| {
        format!(
            "{count} answers arrived before pong took the message, so pong did \
                                 not send them"
        )
    })
}

/// Loss is a result. But a subscriber that took nothing was not connected, and a subscriber that
/// took more than was published received something else.
fn not_what_was_published(ping: &Done, pong: &Done, evidence: &Evidence<'_>) -> Option<String> {
    if ping.sent == 0 {
        return Some("nothing was published".into());
    }
    let recorded = evidence.samples.ping.len() as u64;
    if evidence.keeps_all() && recorded != ping.sent {
        return Some(format!("{recorded} calls recorded ≠ {} counted", ping.sent));
    }
    let all = ping.sent * u64::from(evidence.case.plan.subscribers);
    if pong.received > all {
        let received = pong.received;
        return Some(format!(
            "{received} messages were taken, but only {all} were sent: some came \
                             from another publisher"
        ));
    }
    let silent = pong.more.get(SILENT).copied().unwrap_or(0);
    let simulated = evidence.case.system.transport == Transport::None;
    (silent > 0 && !simulated)
        .then(|| format!("{silent} of {} subscribers took nothing", evidence.case.plan.subscribers))
}

/// A message of a stream is taken after its stamp, and its id was sent. All times are of one clock,
/// or of two within their known error. So a violation proves that something else was taken.
fn not_the_stream(pong: &Done, evidence: &Evidence<'_>) -> Option<String> {
    if pong.received == 0 {
        return Some("no message was taken".into());
    }
    let taken = evidence.samples.pong.iter().filter(|record| record.take_return_ns != 0).count();
    if evidence.keeps_all() && taken as u64 != pong.received {
        return Some(format!("{taken} messages taken recorded ≠ {} counted", pong.received));
    }
    let (mut known, mut early) = (0, 0);
    for pong in evidence.samples.pong.iter().filter(|record| record.take_return_ns != 0) {
        let sent = &evidence.samples.ping;
        let Ok(place) = sent.binary_search_by_key(&pong.id, |ping| ping.id) else { continue };
        let ping = &sent[place];
        known += 1;
        let is_early = |error_ns| pong.take_return_ns + error_ns < ping.publish_entry_ns;
        early += usize::from(evidence.clock_error_ns.is_some_and(is_early));
    }
    if known < taken {
        return Some(format!("{} messages that were taken were never sent", taken - known));
    }
    (early > 0).then(|| {
        format!(
            "{early} messages were taken before they were sent, so they came \
                                 from another publisher"
        )
    })
}

fn payload_damaged(ping: &Done, pong: &Done) -> Option<String> {
    let damaged = ping.corrupt + pong.corrupt;
    (damaged > 0).then(|| format!("{damaged} payloads differ from what was sent"))
}

pub(super) const INCOMPLETE: &str = "its line in runs.jsonl is incomplete";
/// Fraction of the requested rate that must be reached.
const RATE_REACHED: f64 = 0.99;

#[cfg(test)]
mod tests;
