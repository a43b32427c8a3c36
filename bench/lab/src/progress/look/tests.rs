use std::sync::Arc;

use myelin_bench_kit::protocol::{Command, Network, Prepare};
use myelin_bench_kit::samples::{LEAN, SampleFile};
use tempfile::NamedTempFile;

use super::*;

/// A run of which this is both the lab and the drivers.
struct Run {
    files: Vec<NamedTempFile>,
    look: Look,
}

impl Run {
    fn new(pings: usize, pongs: usize, room: u64, change: impl FnOnce(&mut Prepare)) -> Self {
        let file = |_| NamedTempFile::new().unwrap();
        let files: Vec<NamedTempFile> = (0..pings + pongs).map(file).collect();
        let made = |(index, file): (usize, &NamedTempFile)| {
            let room = if index < pings { room } else { room * pings as u64 };
            Arc::new(SampleFile::create(file.as_file(), room).unwrap())
        };
        let mut made: Vec<Arc<SampleFile>> = files.iter().enumerate().map(made).collect();
        let pongs = made.split_off(pings);
        let mut prepare = prepare();
        prepare.publishers = pings as u32;
        change(&mut prepare);
        let processes = vec![("ping".to_owned(), std::process::id())];
        Run { files, look: Look::new(Running { prepare, pings: made, pongs, processes }) }
    }

    /// Process `index` writes `records`, from place `first` on.
    fn write(&self, index: usize, first: usize, records: impl IntoIterator<Item = Record>) {
        let mut file = SampleFile::look(self.files[index].path()).unwrap();
        let mut written = first;
        for record in records {
            *file.record(written).expect("room") = record;
            written += 1;
        }
        file.finish(written);
        file.beat(written as u64);
    }

    /// What the look after the next one says: records that are there now are settled by then.
    fn settled(&mut self) -> Figures {
        self.look.look();
        self.look.look()
    }
}

/// 1000 messages and no warm-up.
fn prepare() -> Prepare {
    let text = r#"{"prepare": {"protocol": 1, "system": "a.x", "role": "ping", "run": "r",
        "domain": 0, "payload_bytes": 64, "messages": 1000, "duration_ns": 0,
        "warmup_messages": 0, "rate_hz": null, "reply_timeout_ns": 0, "match_timeout_ns": 0,
        "record_every": 1, "samples": null, "directory": "", "lock_memory": false, "seed": 0}}"#;
    match serde_json::from_str(text).unwrap() {
        Command::Prepare(prepare) => *prepare,
        other => panic!("{other:?}"),
    }
}

/// Sent at `id` ms, due 1 µs before, and answered after so long; 0 for never.
fn message(id: u64, answered_us: u64) -> Record {
    let entry_ns = (id + 1) * 1_000_000;
    let taken = if answered_us == 0 { 0 } else { entry_ns + answered_us * 1000 };
    Record {
        id,
        intended_ns: entry_ns - 1000,
        publish_entry_ns: entry_ns,
        publish_return_ns: entry_ns + 300,
        take_return_ns: taken,
        ..Record::default()
    }
}

/// Within the three figures of the histogram.
fn assert_near(found: Option<f64>, expected: f64) {
    let found = found.expect("enough samples");
    assert!((found - expected).abs() <= expected * 1.1e-3, "{found}, not {expected}");
}

#[test]
fn what_ends_on_another_hosts_clock_has_no_figure_before_it_is_compared() {
    let look = |is_across: bool, workload| {
        let mut run = Run::new(1, 1, 100, |prepare| {
            prepare.workload = workload;
            prepare.network = is_across.then(|| Network {
                interface: "eth0".into(),
                own: [10, 0, 0, 1].into(),
                peer: [10, 0, 0, 2].into(),
                port: 7000,
            });
        });
        let sent = |id| Record {
            id,
            publish_entry_ns: 1_000_000,
            take_return_ns: 1_020_000,
            ..Record::default()
        };
        let taken = |id| Record { id, take_return_ns: 5, ..Record::default() };
        run.write(1, 0, (0..100).map(taken));
        run.write(0, 0, (0..100).map(sent));
        let seen = run.settled();
        (seen.p50_us.is_some(), seen.lost)
    };
    assert_eq!(look(true, Workload::Stream), (false, Some((100, 0))));
    assert_eq!(look(false, Workload::Stream), (true, Some((100, 0))));
    assert_eq!(look(true, Workload::Roundtrip), (true, Some((100, 0))));
}

#[test]
fn round_trips_count_once_they_are_settled_and_percentiles_wait_for_ten() {
    let mut run = Run::new(1, 1, 2000, |_| ());
    run.write(0, 0, (0..9).map(|id| message(id, id + 1)));
    assert_eq!(run.look.look().lost, Some((0, 0)), "an answer may be on its way");
    let figures = run.look.look();
    assert_eq!((figures.lost, figures.p50_us, figures.of), (Some((9, 0)), None, "round trip"));
    run.write(0, 9, (9..998).map(|id| message(id, id + 1)).chain([message(998, 0)]));
    let figures = run.settled();
    assert_eq!(figures.lost, Some((999, 1)));
    assert_near(figures.p50_us, 499.0);
    assert_eq!(figures.p99_us, None, "nine beyond it");
    run.write(0, 999, [message(999, 999), message(1000, 1000)]);
    assert_near(run.settled().p99_us, 990.0);
}

#[test]
fn lean_messages_stand_for_all_and_publish_calls_for_themselves() {
    let mut run = Run::new(1, 1, 100, |_| ());
    let lean = |id| Record { flags: LEAN, ..message(id, 10) };
    run.write(0, 0, (0..100).map(|id| if id % 4 == 0 { message(id, 500) } else { lean(id) }));
    assert_near(run.settled().p50_us, 10.0);

    let mut run = Run::new(1, 1, 100, |prepare| prepare.workload = Workload::Publish);
    run.write(0, 0, (0..100).map(|id| message(id, 0)));
    let figures = run.settled();
    assert_near(figures.p50_us, 0.3);
    assert_eq!((figures.lost, figures.of), (None, "publish call"));
}

/// Two pings, two pongs; the second pong misses every other message of the second ping.
fn stream(change: impl FnOnce(&mut Prepare)) -> Figures {
    const SECOND: u64 = 1 << 48;
    let mut run = Run::new(2, 2, 50, |prepare| {
        prepare.workload = Workload::Stream;
        change(prepare);
    });
    let of = |publisher: u64, place: u64| Record { id: publisher | place, ..message(place, 20) };
    let sent = |record: Record| Record { take_return_ns: 0, ..record };
    run.write(0, 0, (0..50).map(|place| sent(of(0, place))));
    run.write(1, 0, (0..50).map(|place| sent(of(SECOND, place))));
    let heard = |publisher, place| Record { publish_entry_ns: 0, ..of(publisher, place) };
    for pong in [2, 3] {
        run.write(pong, 0, (0..50).map(|place| heard(0, place)));
        let all = (0..50).map(|place| match pong == 3 && place % 2 == 1 {
            true => Record::default(),
            false => heard(SECOND, place),
        });
        run.write(pong, 50, all);
    }
    run.settled()
}

#[test]
fn one_way_joins_both_ends_and_counts_from_when_a_message_was_due() {
    let figures = stream(|prepare| prepare.rate_hz = Some(1000.0));
    assert_eq!((figures.lost, figures.of), (Some((200, 25)), "one way"));
    assert_near(figures.p50_us, 21.0);
    let figures = stream(|prepare| prepare.workload = Workload::Flood);
    assert_near(figures.p50_us, 20.0);
}

#[test]
fn a_look_at_very_many_takes_in_a_bounded_part_of_all_of_them() {
    let mut run = Run::new(1, 1, 1_000_000, |prepare| prepare.messages = 0);
    // The second half is slower: a look at the beginning alone would not see it.
    run.write(0, 0, (0..1_000_000).map(|id| message(id, if id < 400_000 { 10 } else { 90 })));
    let figures = run.settled();
    let (looked, lost) = figures.lost.unwrap();
    assert!(looked <= RECORDS_PER_LOOK as u64 && looked > RECORDS_PER_LOOK as u64 / 2);
    assert_eq!(lost, 0);
    assert_near(figures.p50_us, 90.0);
    assert_eq!((figures.messages, figures.messages_all), (1_000_000, 0));
}

#[test]
fn warm_up_and_part_done_are_told_and_cpu_is_that_of_the_process() {
    let mut run = Run::new(1, 0, 1000, |prepare| prepare.warmup_messages = 500);
    run.write(0, 0, (0..300).map(|id| message(id, 10)));
    let figures = run.look.look();
    assert_eq!((figures.is_warming_up, figures.messages), (true, 0));
    assert!((figures.part - 0.2).abs() < 1e-9);
    let mut sum = 0u64;
    for value in 0..20_000_000u64 {
        sum = std::hint::black_box(sum.wrapping_add(value));
    }
    run.write(0, 300, (300..900).map(|id| message(id, 10)));
    let figures = run.look.look();
    assert_eq!((figures.is_warming_up, figures.messages), (false, 400));
    let [(name, percent)] = &figures.cpu_percent[..] else {
        panic!("{:?}", figures.cpu_percent);
    };
    assert!(name == "ping" && *percent > 0.0);
}
