//! Files, played under a viewer's control.

use std::path::PathBuf;

use myelin_bag::{MessageHead, Schema, TopicFormat, Writer};
use myelin_tools::view::{FileOptions, View};
use serde_json::json;
use tempfile::TempDir;

use crate::support::{Client, Received, options};

const BEGIN_NS: u64 = 1_700_000_000_000_000_000;
const STEP_NS: u64 = 10_000_000;
const MESSAGES: u64 = 50;

/// A recording of 0.49 s.
fn recording() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    let mut writer = Writer::create(&path, myelin_bag::Options::default()).unwrap();
    let mut channels = Vec::new();
    for (topic, layout) in [("speed", "Speed{x: f32 @0} 4"), ("wide", "Wide{x: u128 @0} 16")] {
        let format = TopicFormat::new(&Schema::layout(layout));
        let schema = writer.add_schema(&format.schema().as_schema()).unwrap();
        channels.push((writer.add_channel(&format.channel(topic, schema)).unwrap(), format));
    }
    for number in 0..MESSAGES {
        let log_ns = BEGIN_NS + number * STEP_NS;
        let sequence = number as u32;
        for (channel, format) in &channels {
            let sample = [(number as f32).to_le_bytes(); 4].concat();
            let bytes = if *channel == channels[0].0 { 4 } else { 16 };
            let head = MessageHead { channel: *channel, sequence, log_ns, publish_ns: log_ns };
            writer.write(&head, &format.message(&sample[..bytes], &mut Vec::new())).unwrap();
        }
    }
    writer.finish().unwrap();
    (folder, path)
}

fn play(path: &std::path::Path, file: FileOptions) -> View {
    View::file(path, &[], file, &options()).unwrap()
}

fn request(play: u8, speed: f32, seek_ns: Option<u64>, id: &str) -> tungstenite::Message {
    let mut frame = vec![3, play];
    frame.extend(speed.to_le_bytes());
    frame.push(u8::from(seek_ns.is_some()));
    frame.extend(seek_ns.unwrap_or(0).to_le_bytes());
    frame.extend((id.len() as u32).to_le_bytes());
    frame.extend(id.as_bytes());
    tungstenite::Message::binary(frame)
}

/// The next state of the playback: status, time, whether it sought, the request.
fn state(client: &mut Client) -> (u8, u64, bool, String) {
    loop {
        if let Received::Binary(frame) = client.receive()
            && frame[0] == 5
        {
            let time = u64::from_le_bytes(frame[2..10].try_into().unwrap());
            return (
                frame[1],
                time,
                frame[14] != 0,
                String::from_utf8(frame[19..].to_vec()).unwrap(),
            );
        }
    }
}

fn viewer(view: &View) -> (Client, serde_json::Value) {
    let mut client = Client::new(view, "foxglove.sdk.v1");
    let info = client.json("serverInfo");
    (client, info)
}

#[test]
fn a_viewer_plays_pauses_and_seeks() {
    let (_folder, path) = recording();
    let view = play(&path, FileOptions { rate: 1.0, is_loop: false, is_paused: true });
    let (mut client, info) = viewer(&view);
    assert_eq!(info["name"], "run.mcap");
    assert_eq!(info["capabilities"], json!(["connectionGraph", "time", "playbackControl"]));
    assert_eq!(info["dataStartTime"], json!({"sec": 1_700_000_000, "nsec": 0}));
    assert_eq!(info["dataEndTime"], json!({"sec": 1_700_000_000, "nsec": 490_000_000}));
    let channel = client.channel("speed");
    assert_eq!((&channel["encoding"], &channel["schema"]), (&json!("cdr"), &json!("float32 x\n")));
    assert_eq!(state(&mut client), (1, BEGIN_NS, false, String::new()));
    client.subscribe(3, &channel);

    let middle = BEGIN_NS + 40 * STEP_NS;
    client.socket.send(request(1, 1.0, Some(middle), "seek")).unwrap();
    assert_eq!(state(&mut client), (1, middle, true, "seek".to_owned()));
    client.socket.send(request(0, 20.0, None, "play")).unwrap();
    let (status, _, did_seek, id) = state(&mut client);
    assert_eq!((status, did_seek, &*id), (0, false, "play"));
    let (mut number, mut end) = (40, None);
    while number < MESSAGES || end.is_none() {
        match client.receive() {
            Received::Message(subscription, time_ns, data) => {
                assert_eq!((subscription, time_ns), (3, BEGIN_NS + number * STEP_NS));
                assert_eq!(data[4..], (number as f32).to_le_bytes());
                number += 1;
            }
            // The state goes ahead of messages that wait.
            Received::Binary(frame) if frame[0] == 5 => {
                end = Some((frame[1], frame[2..10].to_vec()))
            }
            _ => {}
        }
    }
    let last_ns = BEGIN_NS + (MESSAGES - 1) * STEP_NS;
    assert_eq!(end, Some((3, last_ns.to_le_bytes().to_vec())));
    // Play at the end begins again.
    client.socket.send(request(0, f32::NAN, None, "again")).unwrap();
    let (status, time_ns, did_seek, id) = state(&mut client);
    assert_eq!((status, time_ns, did_seek, &*id), (0, BEGIN_NS, true, "again"));
    assert_eq!(client.message().1, BEGIN_NS);
}

#[test]
fn a_file_begins_with_its_first_viewer_and_can_begin_again() {
    let (_folder, path) = recording();
    let view = play(&path, FileOptions { rate: 100.0, is_loop: true, is_paused: false });
    let mut client = Client::new(&view, "foxglove.websocket.v1");
    let channel = client.channel("speed");
    client.subscribe(1, &channel);
    let mut begins = 0;
    let mut times = 0;
    while begins < 3 || times == 0 {
        match client.receive() {
            Received::Message(_, BEGIN_NS, _) => begins += 1,
            // An older client knows no state of the playback.
            Received::Binary(frame) => {
                assert_eq!(frame[0], 2);
                times += 1;
            }
            _ => {}
        }
    }
    let problems = view.events();
    assert!(problems.iter().any(|it| it.starts_with("wide is not shown")), "{problems:?}");
}

#[test]
fn files_and_topics_that_are_not_there_are_errors() {
    let (folder, path) = recording();
    let file = FileOptions { rate: 1.0, is_loop: false, is_paused: false };
    let open = |path: &std::path::Path, topics: &[&str]| {
        let topics: Vec<String> = topics.iter().map(|it| (*it).to_owned()).collect();
        let error = View::file(path, &topics, file.clone(), &options()).err().unwrap();
        (error.status(), error.to_string())
    };
    assert_eq!(open(&folder.path().join("none.mcap"), &[]).0, 3);
    let (status, error) = open(&path, &["sped"]);
    assert!(status == 3 && error.contains("did you mean \"speed\""), "{error}");
    let other = folder.path().join("other.mcap");
    std::fs::write(&other, "not a recording").unwrap();
    assert_eq!(open(&other, &[]).0, 2);
}
