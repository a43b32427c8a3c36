//! Whether a run may be believed, and why not.

use myelin_bench_kit::fan::SILENT;
use myelin_bench_kit::protocol::{Done, System, Transport, Workload};
use myelin_bench_kit::samples::Record;

use crate::host::BACKGROUND_PACKETS_PER_S;
use crate::observe::Observation;
use crate::record::{RunRecord, RunSamples};

/// Everything a run is judged by.
pub struct Evidence<'a> {
    /// The facts of the run.
    pub record: &'a RunRecord,
    /// Its samples.
    pub samples: &'a RunSamples,
    /// The system it ran.
    pub system: &'a System,
    /// Bytes of payload.
    pub payload_bytes: u64,
    /// The rate asked for.
    pub rate_hz: Option<f64>,
    /// Messages of the warm-up.
    pub warmup_messages: u64,
    /// Every n-th record was kept.
    pub record_every: u64,
    /// What its processes did.
    pub workload: Workload,
    /// How many subscribers pong had.
    pub subscribers: u32,
    /// Loopback packets a second of other programs, seen before the session.
    pub others_packets_per_s: f64,
}

/// Everything that is wrong with a run; empty if it is valid.
pub fn faults(evidence: &Evidence<'_>) -> Vec<String> {
    if let Some(failure) = &evidence.record.failure {
        return vec![failure.clone()];
    }
    let (Some(ping), Some(pong), Some(observation)) =
        (&evidence.record.ping, &evidence.record.pong, &evidence.record.observation)
    else {
        return vec!["its line in runs.jsonl is incomplete".into()];
    };
    let mut faults = Vec::new();
    match evidence.workload {
        Workload::Roundtrip => {
            faults.extend(books_do_not_balance(ping, pong, evidence));
            faults.extend(answered_by_another(evidence));
        }
        Workload::Publish => faults.extend(not_what_was_published(ping, pong, evidence)),
    }
    faults.extend(payload_damaged(ping, pong));
    faults.extend(rate_missed(ping, evidence.rate_hz));
    faults.extend(left_its_cpu(evidence));
    faults.extend(wrong_transport(evidence, ping, observation));
    faults
}

fn books_do_not_balance(ping: &Done, pong: &Done, evidence: &Evidence<'_>) -> Option<String> {
    if ping.received == 0 {
        return Some("no message was answered".into());
    }
    if ping.sent != ping.received + ping.lost {
        let Done { sent, received, lost, .. } = ping;
        return Some(format!("sent {sent} ≠ received {received} + lost {lost}"));
    }
    let simulated = evidence.system.transport == Transport::None;
    if !simulated && ping.received > pong.received {
        let (answers, taken) = (ping.received, pong.received);
        return Some(format!(
            "ping had {answers} answers though pong took only {taken} messages: it hears itself"
        ));
    }
    let answered = evidence.samples.ping.iter().filter(|record| record.take_return_ns != 0);
    let recorded = answered.count() as u64;
    if evidence.record_every == 1 && recorded != ping.received {
        let received = ping.received;
        return Some(format!("{recorded} answers recorded ≠ {received} counted"));
    }
    None
}

/// A message is taken by pong after ping has begun to publish it, and answered before ping takes the
/// answer. All times are of one clock, so a violation proves that ping took something else.
fn answered_by_another(evidence: &Evidence<'_>) -> Option<String> {
    if evidence.system.transport == Transport::None {
        return None;
    }
    let pairs = evidence.samples.ping.iter().zip(&evidence.samples.pong);
    let both = pairs.filter(|(ping, pong)| ping.take_return_ns != 0 && pong.take_return_ns != 0);
    let wrong = both.filter(|(ping, pong)| {
        pong.take_return_ns < ping.publish_entry_ns || ping.take_return_ns < pong.take_return_ns
    });
    let count = wrong.count();
    (count > 0).then(|| format!("{count} answers came before pong had the message: not its own"))
}

/// Loss is a result, but a subscriber that took nothing at all was none, and one that took more than
/// was published heard something else.
fn not_what_was_published(ping: &Done, pong: &Done, evidence: &Evidence<'_>) -> Option<String> {
    if ping.sent == 0 {
        return Some("nothing was published".into());
    }
    let recorded = evidence.samples.ping.len() as u64;
    if evidence.record_every == 1 && recorded != ping.sent {
        return Some(format!("{recorded} calls recorded ≠ {} counted", ping.sent));
    }
    let all = ping.sent * u64::from(evidence.subscribers);
    if pong.received > all {
        let received = pong.received;
        return Some(format!("{received} messages taken of {all}: they hear something else"));
    }
    let silent = pong.more.get(SILENT).copied().unwrap_or(0);
    let simulated = evidence.system.transport == Transport::None;
    (silent > 0 && !simulated)
        .then(|| format!("{silent} of {} subscribers took nothing", evidence.subscribers))
}

fn payload_damaged(ping: &Done, pong: &Done) -> Option<String> {
    let damaged = ping.corrupt + pong.corrupt;
    (damaged > 0).then(|| format!("{damaged} payloads were not as sent"))
}

fn rate_missed(ping: &Done, rate_hz: Option<f64>) -> Option<String> {
    let asked = rate_hz?;
    let seconds = ping.end_ns.saturating_sub(ping.begin_ns) as f64 * 1e-9;
    // The last message ends a run one period early.
    let reached = ping.sent as f64 / (seconds + 1.0 / asked).max(1e-9);
    let least = asked * RATE_REACHED;
    (reached < least && ping.sent > 1)
        .then(|| format!("reached {reached:.1} of {asked} messages a second"))
}

fn left_its_cpu(evidence: &Evidence<'_>) -> Option<String> {
    let [ping, pong] = evidence.record.pinned?;
    let cpu_of = |record: &Record| match evidence.workload {
        Workload::Roundtrip => (record.take_return_ns != 0).then_some(record.take_cpu),
        Workload::Publish => Some(record.publish_cpu),
    };
    let strayed = |records: &[Record], cpu: usize| {
        records.iter().filter_map(cpu_of).find(|found| usize::from(*found) != cpu)
    };
    let found = [("ping", &evidence.samples.ping, ping), ("pong", &evidence.samples.pong, pong)]
        .into_iter()
        .find_map(|(name, records, cpu)| Some((name, strayed(records, cpu)?, cpu)));
    found.map(|(name, cpu, pinned)| format!("{name} ran on CPU {cpu}, pinned to {pinned}"))
}

/// Loopback traffic must be there for a system that uses it and absent for one that does not; a
/// system over shared memory must have a segment that both processes have mapped.
fn wrong_transport(
    evidence: &Evidence<'_>,
    ping: &Done,
    observation: &Observation,
) -> Option<String> {
    let directions = match evidence.workload {
        Workload::Roundtrip => 2,
        // Without a subscriber nothing need travel, and pong has nothing open.
        Workload::Publish if evidence.subscribers == 0 => return None,
        Workload::Publish => 1,
    };
    let messages = directions * (ping.sent + evidence.warmup_messages);
    let bytes = messages * (evidence.payload_bytes + 8);
    let packets = observation.loopback_packets;
    let seen = format!(
        "{packets} packets and {} bytes over loopback for {messages} messages of {} bytes",
        observation.loopback_bytes,
        evidence.payload_bytes + 8
    );
    let seconds = observation.wall_ns as f64 * 1e-9;
    let others = BACKGROUND_PACKETS_PER_S.max(2.0 * evidence.others_packets_per_s);
    let background = (others * seconds) as u64;
    // The interface takes packets of up to 64 KiB whole.
    match evidence.system.transport {
        Transport::None => None,
        Transport::Loopback => (packets < messages / 2 || observation.loopback_bytes < bytes / 2)
            .then(|| format!("did not use the loopback interface: {seen}")),
        Transport::SharedMemory if !observation.ping_and_pong_share_memory => {
            Some("no segment of shared memory is mapped by both ping and pong".into())
        }
        Transport::SharedMemory | Transport::Kernel => {
            // Discovery, heartbeats and other programs of this host use it too, at a low rate.
            let many_packets = packets > messages / 2 + background;
            let many_bytes = evidence.payload_bytes >= 1024
                && observation.loopback_bytes > bytes / 2 + background * 65_536;
            (many_packets || many_bytes).then(|| {
                format!("went over the network stack, or other programs began to use it: {seen}")
            })
        }
    }
}

/// Part of the rate asked for that must be reached.
const RATE_REACHED: f64 = 0.99;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::RunPlan;

    struct Case {
        workload: Workload,
        record: RunRecord,
        samples: RunSamples,
        system: System,
    }

    type Spoil<'a> = &'a dyn Fn(&mut Case);

    fn good() -> Case {
        let counts = Done { sent: 1000, received: 1000, end_ns: 1_000_000_000, ..Done::default() };
        let observation = Observation {
            wall_ns: 1_000_000_000,
            loopback_packets: 2200,
            loopback_bytes: 400_000,
            ..Observation::default()
        };
        let answered = Record { take_return_ns: 1, take_cpu: 1, ..Record::default() };
        Case {
            workload: Workload::Roundtrip,
            record: RunRecord {
                plan: RunPlan { order: 0, cell: 0, repeat: 0 },
                failure: None,
                notes: Vec::new(),
                ping: Some(counts.clone()),
                pong: Some(counts),
                startup_ms: 1.0,
                pinned: Some([1, 0]),
                observation: Some(observation),
                directory: String::new(),
            },
            samples: RunSamples {
                ping: vec![answered; 1000],
                pong: vec![Record { take_cpu: 0, ..answered }; 1000],
            },
            system: serde_json::from_str(
                r#"{"name": "a.b", "about": "", "wait": "block", "transport": "loopback"}"#,
            )
            .unwrap(),
        }
    }

    fn judge(case: &Case) -> String {
        faults(&Evidence {
            record: &case.record,
            samples: &case.samples,
            system: &case.system,
            payload_bytes: 64,
            rate_hz: Some(1000.0),
            warmup_messages: 100,
            record_every: 1,
            workload: case.workload,
            subscribers: 2,
            others_packets_per_s: 0.0,
        })
        .join("; ")
    }

    #[test]
    fn a_good_run_has_no_faults() {
        assert_eq!(judge(&good()), "");
    }

    #[test]
    fn each_fault_is_found_and_named() {
        let observed = |case: &mut Case, packets, bytes| {
            let observation = case.record.observation.as_mut().unwrap();
            (observation.loopback_packets, observation.loopback_bytes) = (packets, bytes);
        };
        let ping = |case: &mut Case| case.record.ping.take().unwrap();
        let cases: [(&str, Spoil); 10] = [
            ("killed", &|case| case.record.failure = Some("pong was killed by signal 9".into())),
            ("hears itself", &|case| case.record.pong.as_mut().unwrap().received = 500),
            ("not its own", &|case| case.samples.pong[7].take_return_ns = 3),
            ("were not as sent", &|case| case.record.pong.as_mut().unwrap().corrupt = 1),
            ("≠ received", &|case| {
                case.record.ping = Some(Done { received: 999, ..ping(case) });
            }),
            ("reached 500", &|case| {
                case.record.ping = Some(Done { end_ns: 1_999_000_000, ..ping(case) });
            }),
            ("ping ran on CPU 0", &|case| case.samples.ping[500].take_cpu = 0),
            ("did not use the loopback", &|case| observed(case, 10, 400_000)),
            ("went over the network stack", &|case| {
                case.system.transport = Transport::Kernel;
            }),
            ("no segment", &|case| {
                case.system.transport = Transport::SharedMemory;
                observed(case, 0, 0);
            }),
        ];
        for (expected, spoil) in cases {
            let mut case = good();
            spoil(&mut case);
            let found = judge(&case);
            assert!(found.contains(expected), "{expected:?} not in {found:?}");
        }
    }

    /// A thousand messages to two subscribers, of which one missed a hundred.
    fn good_publish() -> Case {
        let mut case = good();
        case.workload = Workload::Publish;
        case.record.ping.as_mut().unwrap().received = 0;
        case.record.pong.as_mut().unwrap().received = 1900;
        let call = Record {
            publish_entry_ns: 5,
            publish_return_ns: 9,
            publish_cpu: 1,
            ..Record::default()
        };
        case.samples = RunSamples { ping: vec![call; 1000], pong: Vec::new() };
        case
    }

    #[test]
    fn loss_is_a_result_of_a_publish_run_and_what_cannot_be_is_a_fault() {
        assert_eq!(judge(&good_publish()), "");
        let cases: [(&str, Spoil); 6] = [
            ("hear something else", &|case| case.record.pong.as_mut().unwrap().received = 2001),
            ("1 of 2 subscribers took nothing", &|case| {
                let more = &mut case.record.pong.as_mut().unwrap().more;
                more.insert(SILENT.into(), 1);
            }),
            ("999 calls recorded", &|case| case.samples.ping.truncate(999)),
            ("nothing was published", &|case| case.record.ping.as_mut().unwrap().sent = 0),
            ("ping ran on CPU 0", &|case| case.samples.ping[500].publish_cpu = 0),
            ("were not as sent", &|case| case.record.pong.as_mut().unwrap().corrupt = 1),
        ];
        for (expected, spoil) in cases {
            let mut case = good_publish();
            spoil(&mut case);
            let found = judge(&case);
            assert!(found.contains(expected), "{expected:?} not in {found:?}");
        }
    }

    #[test]
    fn heartbeats_at_a_slow_rate_are_no_evidence() {
        let mut case = good();
        case.system.transport = Transport::SharedMemory;
        let observation = case.record.observation.as_mut().unwrap();
        observation.ping_and_pong_share_memory = true;
        observation.loopback_packets = 400;
        assert_eq!(judge(&case), "");
    }
}
