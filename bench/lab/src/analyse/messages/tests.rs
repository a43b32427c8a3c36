//! Messages made by hand, and the quantities derived from them.

use myelin_bench_kit::samples::Taken;
use proptest::prelude::*;

use super::*;

fn ping(stamps: [u64; 5]) -> Record {
    let [intended_ns, publish_entry_ns, publish_return_ns, wake_ns, take_return_ns] = stamps;
    let (loan_ns, fill_ns, publish_cpu) = (20, 30, 1);
    Record {
        intended_ns,
        publish_entry_ns,
        publish_return_ns,
        wake_ns,
        take_return_ns,
        loan_ns,
        fill_ns,
        publish_cpu,
        ..Record::default()
    }
}

/// A message of a stream, sent 100 ns after it was due.
fn sent(id: u64, entry_ns: u64) -> Record {
    Record { id, ..ping([entry_ns - 100, entry_ns, entry_ns + 10, 0, 0]) }
}

fn taken(id: u64, at_ns: u64) -> Record {
    let (memcpy_ns, stream_copy_ns) = (700, 900);
    let wake_ns = at_ns - 3;
    Taken { id, wake_ns, take_return_ns: at_ns, memcpy_ns, stream_copy_ns, ..Taken::default() }
        .into()
}

fn bare(record: Record) -> Record {
    Record { loan_ns: 0, fill_ns: 0, wake_ns: 0, ..record }
}

fn lean(record: Record) -> Record {
    Record { flags: LEAN, wake_ns: 0, ..record }
}

fn messages(ping: &[Record], pong: &[Record], measured: Measured) -> Messages<'static> {
    let samples = RunSamples { ping: ping.into(), pong: pong.into(), ..RunSamples::default() };
    Messages::of(Box::leak(Box::new(samples)), measured)
}

fn of(kind: Kind, has_rate: bool, ping: &[Record], pong: &[Record]) -> Messages<'static> {
    messages(ping, pong, Measured::new(kind, has_rate, true))
}

#[test]
fn a_message_has_a_row_per_subscriber_and_one_if_lost() {
    let sent = [0, 2, 4].map(|id| sent(id, 1000));
    let pong = [(4, 40), (0, 10), (4, 41), (3, 30), (9, 90)].map(|(id, at)| taken(id, at));
    let found = of(Kind::Stream, true, &sent, &[&pong[..], &[Record::default()]].concat());
    let seen: Vec<(u64, Option<u64>)> =
        found.all.iter().map(|it| (it.ping.id, it.pong.map(|pong| pong.take_return_ns))).collect();
    assert_eq!(seen, [(0, Some(10)), (2, None), (4, Some(40)), (4, Some(41))]);
    assert_eq!(found.quantities().write, [10; 3], "published once each");
    let found = of(Kind::Roundtrip, false, &sent, &[taken(0, 10), Record::default()]);
    let has: Vec<bool> = found.all.iter().map(|it| it.pong.is_some()).collect();
    assert_eq!(has, [true, false, false], "joined by their place");
}

#[test]
fn lost_messages_have_a_write_time_but_no_round_trip() {
    let record = |entry: u64, taken: u64| {
        let wake_ns = if taken == 0 { 0 } else { taken - 3 };
        Record { wake_ns, ..bare(ping([entry - 5, entry, entry + 10, 0, taken])) }
    };
    let (publish_return_ns, take_return_ns) = (1060, 1040);
    let pong = Record { publish_return_ns, take_return_ns, ..Record::default() };
    let found = of(Kind::Roundtrip, true, &[record(1000, 1100), record(2000, 0)], &[pong]);
    assert_eq!(found.quantities().latency, [100]);
    assert_eq!(found.quantities().write, [10, 10]);
    assert_eq!(found.quantities().lateness, [5, 5]);
    assert_eq!(found.quantities().one_way, [40]);
    assert_eq!(found.quantities().wake, [1097 - 1060]);
    let sides = [found.quantities().same_cpu, found.quantities().cross_cpu];
    assert_eq!(sides, [vec![100], vec![]]);
    assert!(found.quantities().loan.is_empty(), "a system with loans that made none");
}

#[test]
fn latencies_are_of_lean_messages_and_parts_of_the_others() {
    let sent = |id: u64, entry: u64, taken: u64, cpu: u16| Record {
        id,
        wake_ns: taken - 3,
        take_return_ns: taken,
        take_cpu: cpu,
        ..ping([entry, entry, entry + 10, 0, 0])
    };
    let later = 2_000_000_000;
    let ping = [
        sent(0, 1000, 1900, 0),
        lean(sent(1, 2000, 2100, 0)),
        lean(sent(2, later + 3000, later + 3120, 1)),
    ];
    let pong = [
        sent(0, 1050, 1500, 0),
        lean(sent(1, 2050, 2060, 0)),
        // A lost message made the two ends disagree about which messages are lean.
        sent(2, later + 3050, later + 3055, 0),
    ];
    let found = of(Kind::Roundtrip, false, &ping, &pong);
    assert_eq!(found.quantities().latency, [100, 120]);
    assert_eq!(found.quantities().same_cpu, [100]);
    assert_eq!(found.quantities().cross_cpu, [120]);
    assert_eq!(found.quantities().write.len(), 2);
    let parts = [found.quantities().loan, found.quantities().fill, found.quantities().read];
    assert_eq!(parts, [[20], [30], [3]]);
    assert_eq!(found.quantities().one_way, [500, 55]);
    let rows = found.seconds(1);
    let seen: Vec<_> = rows.iter().map(|it| (it.count, it.round_trip_us.max)).collect();
    assert_eq!(seen, [(2, 0.1), (1, 0.12)], "of lean ones");
    assert_eq!(rows[0].read_us.map(|read| read.max), Some(0.003));
    let has: Vec<bool> = found.all.iter().map(|it| it.parts(&found.measured).is_some()).collect();
    assert_eq!(has, [true, false, false]);
    assert_eq!(found.parts().unwrap()[Stage::WakeAndTakeBack as usize], None, "they wait apart");
}

#[test]
fn rows_are_by_second_of_the_run() {
    let second = 1_000_000_000;
    let records = [(7, 107), (second - 1, second + 9), (second + 7, second + 107)]
        .into_iter()
        .chain([(3 * second + 7, 3 * second + 9)])
        .map(|(entry, taken)| ping([entry, entry, entry + 1, 0, taken]))
        .collect::<Vec<_>>();
    let rows = of(Kind::Roundtrip, false, &records, &[]).seconds(4);
    let seen: Vec<(u32, u64)> = rows.iter().map(|row| (row.second, row.count)).collect();
    assert_eq!(seen, [(1, 8), (2, 4), (4, 4)]);
}

#[test]
fn parts_of_a_frame_are_separate() {
    let sent = [sent(0, 1000), sent(1, 2000), sent(2, 3000)];
    let found = of(Kind::Image, true, &sent, &[taken(2, 3050), taken(0, 1040)]);
    assert_eq!(found.quantities().latency, [40, 50]);
    assert_eq!(found.quantities().write, [10; 3]);
    assert_eq!(found.quantities().lateness, [50; 3], "100 ns less loan and fill");
    assert_eq!(found.quantities().service, [40, 50]);
    assert_eq!(found.quantities().wake, [1037 - 1010, 3047 - 3010]);
    assert_eq!(found.quantities().read, [3, 3]);
    assert_eq!(found.quantities().memcpy, [700; 2]);
    assert_eq!(found.quantities().stream_copy, [900; 2]);
    assert_eq!(found.quantities().cross_cpu, [40, 50]);
    assert!(found.quantities().same_cpu.is_empty() && found.seconds(1).is_empty());
}

#[test]
fn what_is_not_measured_is_absent() {
    let pong = [bare(taken(0, 1040)), bare(taken(0, 1090))];
    let found = of(Kind::Stream, false, &[bare(sent(0, 1000))], &pong);
    assert_eq!(found.quantities().one_way, [40, 90], "taken by two");
    let Quantities { loan, fill, wake, memcpy, lateness, .. } = found.quantities();
    assert_eq!([loan, fill, wake, memcpy, lateness], [const { Vec::<i64>::new() }; 5]);
}

#[test]
fn each_workload_has_its_latency_in_the_order_of_sending() {
    let sent = |id: u64, entry_ns: u64, taken_ns: u64| Record {
        id,
        ..ping([entry_ns - 5, entry_ns, entry_ns + 10 + id, 0, taken_ns])
    };
    let ping = [sent(0, 1000, 1100), sent(1, 2000, 0), sent(2, 3000, 3300)];
    let pong = [taken(2, 3030), taken(0, 1050)];
    let in_order = |of: Messages<'_>| of.in_order(&of.quantities()).into_owned();
    let found = |kind, has_rate| in_order(of(kind, has_rate, &ping, &pong));
    assert_eq!(in_order(of(Kind::Roundtrip, true, &ping, &[])), [100, 300]);
    assert_eq!(found(Kind::Publish, true), [10, 11, 12]);
    assert_eq!(found(Kind::Stream, false), [50, 30]);
    assert_eq!(found(Kind::Stream, true), [55, 35]);
    assert_eq!(found(Kind::Image, true), [50, 30]);
    assert!(found(Kind::Flood, false).is_empty() && found(Kind::Startup, false).is_empty());
}

#[test]
fn without_a_clock_estimate_only_one_host_figures_are_known() {
    let unknown = |kind| Measured { crosses_ends: false, ..Measured::new(kind, true, true) };
    let stream = messages(&[sent(0, 1000)], &[taken(0, 1040)], unknown(Kind::Stream));
    let Quantities { latency, one_way, service, wake, .. } = stream.quantities();
    assert_eq!([latency, one_way, service, wake], [const { Vec::<i64>::new() }; 4]);
    assert_eq!((stream.ended().count(), stream.parts()), (0, None));
    assert_eq!(stream.quantities().read, [3]);
    let round_trip = ping([1000, 1000, 1100, 1500, 1520]);
    let found = messages(&[round_trip], &[taken(0, 1040)], unknown(Kind::Roundtrip));
    assert_eq!(found.quantities().latency, [520]);
    assert_eq!(found.all[0].parts(&found.measured), None);
}

fn part(messages: &Messages<'_>, stage: Stage) -> i64 {
    messages.all[0].parts(&messages.measured).unwrap()[stage as usize]
}

#[test]
fn a_round_trip_is_divided_at_its_stamps() {
    let pong = Record {
        wake_ns: 1250,
        take_return_ns: 1260,
        publish_return_ns: 1400,
        ..Record::default()
    };
    let found = of(Kind::Roundtrip, true, &[ping([900, 1000, 1100, 1500, 1520])], &[pong]);
    let expected = [100, 20, 30, 50, 150, 10, 0, 140, 100, 20, 0];
    assert_eq!(found.all[0].parts(&found.measured), Some(expected));
    let measured = found.parts().unwrap();
    assert_eq!(measured[0], Some(true), "it counts from the actual sending");
    assert_eq!(measured.iter().filter(|part| part.is_none()).count(), 2, "{measured:?}");
}

#[test]
fn a_receiver_awake_before_publish_returns_ends_the_publish_part() {
    let pong = Record { wake_ns: 1200, take_return_ns: 1210, ..Record::default() };
    let found = of(Kind::Image, true, &[ping([1000, 1000, 1300, 0, 0])], &[pong]);
    assert_eq!(found.quantities().latency, [210]);
    let parts = [Stage::Publish, Stage::Wake, Stage::Take, Stage::Fill];
    assert_eq!(parts.map(|it| part(&found, it)), [200, 0, 10, 30]);
    let measured = found.parts().unwrap();
    assert_eq!(measured[Stage::Fill as usize], Some(true), "before the stamp");
    assert_eq!(measured[Stage::Wake as usize], Some(false));
}

/// As two clocks show it that agree only within an error.
#[test]
fn negative_latencies_are_kept() {
    let pong = Record { wake_ns: 980, take_return_ns: 990, ..Record::default() };
    let found = of(Kind::Stream, true, &[bare(ping([1000, 1000, 1100, 0, 0]))], &[pong]);
    assert_eq!(found.quantities().latency, [-10]);
    let parts = [Stage::Publish, Stage::Wake, Stage::Take];
    assert_eq!(parts.map(|it| part(&found, it)), [0, -20, 10]);
}

#[test]
fn a_wait_inside_the_take_is_not_split() {
    let pong = Record { take_return_ns: 1210, ..Record::default() };
    let found = of(Kind::Stream, true, &[bare(ping([1000, 1040, 1100, 0, 0]))], &[pong]);
    assert_eq!(part(&found, Stage::WakeAndTake), 110);
    let measured = found.parts().unwrap();
    for stage in [Stage::Loan, Stage::Fill, Stage::Wake, Stage::Take, Stage::PublishBack] {
        assert_eq!(measured[stage as usize], None, "{stage:?}");
    }
}

proptest! {
    #[test]
    fn the_order_of_takes_and_losses_do_not_change_latencies(
        ways in prop::collection::vec(1u64..1_000_000, 1..200),
        lost in prop::collection::vec(any::<bool>(), 200),
        seed in any::<u64>(),
    ) {
        let ping: Vec<Record> =
            (0..ways.len() as u64).map(|id| sent(id, 1_000_000 + id * 1000)).collect();
        let kept = || ping.iter().zip(&ways).zip(&lost).filter(|(_, lost)| !**lost).map(|it| it.0);
        let mut pong: Vec<Record> =
            kept().map(|(ping, way)| taken(ping.id, ping.publish_entry_ns + way)).collect();
        pong.sort_by_key(|record| (record.id ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let found = of(Kind::Image, true, &ping, &pong);
        let expected: Vec<i64> = kept().map(|(_, way)| *way as i64).collect();
        prop_assert_eq!(found.quantities().one_way, expected);
        prop_assert_eq!(found.quantities().write.len(), ways.len());
    }

    #[test]
    fn parts_within_add_up_to_the_latency(
        stamps in prop::array::uniform9(1u64..1_000_000),
        image in any::<bool>(),
    ) {
        let [intended, entry, returned, wake, taken, pong_wake, pong_taken, pong_return, _] =
            stamps;
        let taken = taken.max(entry).max(pong_taken);
        let sent = ping([intended, entry, returned, wake, taken]);
        let pong = Record {
            wake_ns: if image { 0 } else { pong_wake },
            take_return_ns: pong_taken.max(entry).max(intended),
            publish_return_ns: pong_return,
            ..Record::default()
        };
        for kind in [Kind::Roundtrip, Kind::Stream, Kind::Image] {
            let found = of(kind, true, &[sent], &[pong]);
            let parts = found.all[0].parts(&found.measured).unwrap();
            let within = parts.into_iter().zip(found.parts().unwrap());
            let within = within.filter(|(_, part)| *part == Some(false));
            let sum: i64 = within.map(|(ns, _)| ns).sum();
            prop_assert_eq!(vec![sum], found.quantities().latency, "{:?}", kind);
        }
    }
}
