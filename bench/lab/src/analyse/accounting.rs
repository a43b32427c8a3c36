//! Whether the counts and records of a run's two ends can be true of one and the same messages.

use myelin_bench_kit::fan::SILENT;
use myelin_bench_kit::protocol::{Done, Transport};
use myelin_bench_kit::samples::LEAN;

use super::validity::Evidence;

pub(super) fn counts_disagree(ping: &Done, pong: &Done, evidence: &Evidence<'_>) -> Option<String> {
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
            "ping had {answers} answers though pong took only {taken} messages: it hears itself"
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

/// A message is taken by pong after ping has begun to publish it, and answered before ping takes the
/// answer. All times are of one clock, or of two as far as they are known to agree, so a violation
/// proves that ping took something else.
pub(super) fn answered_by_another(evidence: &Evidence<'_>) -> Option<String> {
    if evidence.case.system.transport == Transport::None {
        return None;
    }
    let error_ns = evidence.clock_error_ns?;
    let pairs = evidence.samples.ping.iter().zip(&evidence.samples.pong);
    let both = pairs.filter(|(ping, pong)| ping.take_return_ns != 0 && pong.take_return_ns != 0);
    let wrong = both.filter(|(ping, pong)| {
        // Without stamps in its path a message was taken some time before its answer had gone.
        let is_stamped = pong.flags & LEAN == 0;
        pong.take_return_ns + error_ns < ping.publish_entry_ns
            || (is_stamped && ping.take_return_ns + error_ns < pong.take_return_ns)
    });
    let count = wrong.count();
    (count > 0).then(|| format!("{count} answers came before pong had the message: not its own"))
}

/// Loss is a result, but a subscriber that took nothing at all was none, and one that took more than
/// was published heard something else.
pub(super) fn not_what_was_published(
    ping: &Done,
    pong: &Done,
    evidence: &Evidence<'_>,
) -> Option<String> {
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
        return Some(format!("{received} messages taken of {all}: they hear something else"));
    }
    let silent = pong.more.get(SILENT).copied().unwrap_or(0);
    let simulated = evidence.case.system.transport == Transport::None;
    (silent > 0 && !simulated)
        .then(|| format!("{silent} of {} subscribers took nothing", evidence.case.plan.subscribers))
}

/// A message of a stream is taken after it was stamped, and has a number that was sent. All times are
/// of one clock, or of two as far as they are known to agree, so a violation proves that something
/// else was taken.
pub(super) fn not_the_stream(pong: &Done, evidence: &Evidence<'_>) -> Option<String> {
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
        return Some(format!("{} messages taken were never sent", taken - known));
    }
    (early > 0).then(|| format!("{early} messages were taken before they were sent: not its own"))
}

pub(super) fn payload_damaged(ping: &Done, pong: &Done) -> Option<String> {
    let damaged = ping.corrupt + pong.corrupt;
    (damaged > 0).then(|| format!("{damaged} payloads were not as sent"))
}
