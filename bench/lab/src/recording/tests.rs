use std::path::PathBuf;

use myelin_bag::{Channel, MessageHead, Options, Writer};

use super::*;
use crate::scenario::Scenario;

const SECOND: u64 = 1_000_000_000;
const BEGIN: u64 = 1_700_000_000 * SECOND;

/// `/fast` every 10 ms with 100 B, `/slow` every second with 1, 2, 3 … B.
fn write(folder: &Path, seconds: u64) -> PathBuf {
    let path = folder.join("drive.mcap");
    let mut writer = Writer::create(&path, Options::default()).unwrap();
    let mut add = |topic: &str| {
        let topic = topic.to_owned();
        writer.add_channel(&Channel { topic, ..Channel::default() }).unwrap()
    };
    let [fast, slow, losses] = ["/fast", "/slow", "/myelin/losses"].map(&mut add);
    let mut write = |channel, log_ns, publish_ns, bytes: usize| {
        let head = MessageHead { channel, log_ns, publish_ns, ..MessageHead::default() };
        writer.write(&head, &[&vec![7; bytes]]).unwrap();
    };
    for tick in 0..seconds * 100 {
        let at_ns = BEGIN + tick * SECOND / 100;
        // Recorded 2 ms after it was published.
        write(fast, at_ns + 2_000_000, at_ns, 100);
        if tick.is_multiple_of(100) {
            let old_ns = if tick == 0 { BEGIN - 3_600 * SECOND } else { at_ns + 5_000_000 };
            write(slow, at_ns + 5_000_000, old_ns, 1 + (tick / 100) as usize);
            write(losses, at_ns + 6_000_000, 0, 9);
        }
    }
    writer.finish().unwrap();
    path
}

fn recording(file: &Path) -> Recording {
    let (topics, start_s, end_s, speed) = (Vec::new(), 0.0, None, 1.0);
    Recording { file: file.to_str().unwrap().into(), topics, start_s, end_s, speed }
}

fn loaded(
    recording: &Recording,
    duration_s: Option<f64>,
) -> Result<(Scenario, Vec<String>), String> {
    let mut scenario =
        Scenario::of_recording(recording, duration_s).map_err(|error| error.to_string())?;
    let notes = load(&mut scenario).map_err(|error| error.to_string())?;
    Ok((scenario, notes))
}

fn replay_of(scenario: &Scenario) -> (&Replay, &Trace) {
    let replay = scenario.workload.replay.as_ref().unwrap();
    (replay, replay.trace.as_deref().unwrap())
}

#[test]
fn names_sizes_and_times_are_those_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (scenario, notes) = loaded(&recording(&write(folder.path(), 3)), None).unwrap();
    assert_eq!(notes, Vec::<String>::new());
    assert_eq!(scenario.name, "drive");
    let (replay, trace) = replay_of(&scenario);
    let topic = |name: &str, messages, payload_bytes, payload_bytes_max| RecordedTopic {
        name: name.into(),
        messages,
        payload_bytes,
        payload_bytes_max,
    };
    assert_eq!(replay.topics, [topic("/fast", 300, 100, 100), topic("/slow", 3, 2, 3)]);
    assert_eq!((replay.messages, trace.topics()), (303, 2));
    assert!((replay.seconds - 3.0).abs() < 0.02, "{}", replay.seconds);
    assert_eq!(scenario.workload.topics, [2]);
    let measured = trace.measured();
    let slow: Vec<_> = measured.iter().filter(|message| message.topic == 1).collect();
    let begin_ns = trace.begin_ns();
    // The first one is much older than the recording, and due at its begin: 2 ms after `/fast` was
    // published.
    let due_ns: Vec<u64> = slow.iter().map(|message| message.due_ns - begin_ns).collect();
    assert_eq!(due_ns, [0, SECOND + 3_000_000, 2 * SECOND + 3_000_000]);
    assert_eq!(slow.iter().map(|message| message.bytes).collect::<Vec<_>>(), [1, 2, 3]);
    // The first second once more, and the largest of each topic.
    assert_eq!(begin_ns, SECOND);
    assert_eq!(trace.warm_up().len(), 101 + 1 + 2);
    let largest = trace.warm_up().iter().filter(|it| it.topic == 1).map(|it| it.bytes).max();
    assert_eq!(largest, Some(3));
}

#[test]
fn a_part_of_the_topics_and_of_the_time_at_another_speed() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), 4);
    let part = Recording {
        topics: vec!["/f*".into()],
        start_s: 1.0,
        end_s: Some(3.0),
        speed: 2.0,
        ..recording(&file)
    };
    let (scenario, notes) = loaded(&part, None).unwrap();
    assert_eq!(notes, Vec::<String>::new());
    let (replay, trace) = replay_of(&scenario);
    assert_eq!((replay.topics.len(), replay.messages), (1, 200));
    assert!((replay.seconds - 1.0).abs() < 0.01, "{}", replay.seconds);
    let [first, second] = [0, 1].map(|at| trace.measured()[at].due_ns);
    assert_eq!(second - first, SECOND / 200);
    let (scenario, notes) = loaded(&recording(&file), Some(1.5)).unwrap();
    assert_eq!(replay_of(&scenario).0.topics[0].messages, 151);
    assert!(notes[0].contains("longer; its first 1.5 s"), "{notes:?}");
}

#[test]
fn mistakes_name_the_file_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), 1);
    let wrong = |recording: &Recording| loaded(recording, None).unwrap_err();
    let missing = wrong(&recording(&folder.path().join("none.mcap")));
    assert!(missing.contains("none.mcap: No such file"), "{missing}");
    let text = folder.path().join("text.mcap");
    std::fs::write(&text, "not a recording").unwrap();
    assert!(wrong(&recording(&text)).contains("this is not an MCAP file"));
    let unknown = Recording { topics: vec!["/fats".into()], ..recording(&file) };
    let unknown = wrong(&unknown);
    assert!(unknown.contains("no topic `/fats`; did you mean `/fast`?"), "{unknown}");
    let late = Recording { start_s: 100.0, ..recording(&file) };
    assert!(wrong(&late).contains("no messages"), "{}", wrong(&late));
    let back = Recording { start_s: 2.0, end_s: Some(1.0), ..recording(&file) };
    assert!(wrong(&back).contains("is not after start_s"), "{}", wrong(&back));
    let empty = folder.path().join("empty.mcap");
    Writer::create(&empty, Options::default()).unwrap().finish().unwrap();
    assert!(wrong(&recording(&empty)).contains("no messages"));
}

#[test]
fn of_a_broken_file_the_rest_is_replayed_and_the_loss_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), 2);
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let (scenario, notes) = loaded(&recording(&file), None).unwrap();
    let messages = replay_of(&scenario).0.messages;
    assert!((1..202).contains(&messages), "{messages}");
    assert!(notes[0].contains("damaged") && notes[0].contains("ends here"), "{notes:?}");
}
