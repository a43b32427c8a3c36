//! A client that sends anything.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use myelin::Publisher;
use serde_json::json;

use crate::support::{Client, Robot, WATCHDOG, ask, upgrade, wait_for};

/// A generator of numbers by a seed (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// A frame as a client sends it, with the mask 0.
fn frame(head: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![head];
    match payload.len() {
        length @ 0..=125 => frame.push(0x80 | length as u8),
        length => {
            frame.push(0x80 | 126);
            frame.extend((length as u16).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

/// Frames that are nearly right, by chance.
fn frames(random: &mut Random) -> Vec<u8> {
    let requests = [
        json!({"op": "subscribe", "subscriptions": [{"id": 1, "channelId": 1}]}).to_string(),
        json!({"op": "unsubscribe", "subscriptionIds": [1, 2, 3]}).to_string(),
        json!({"op": "show", "version": 1, "watched": [1, 9], "series": [{"channel": 1, "path": "a[9]"}],
               "image": 1})
        .to_string(),
        json!({"op": "playback", "play": true, "speed": -1.0, "seekMs": 1e300}).to_string(),
        json!({"op": "subscribeConnectionGraph"}).to_string(),
        "[".repeat(3000),
    ];
    let mut all = Vec::new();
    for _ in 0..random.below(8) {
        let mut payload = requests[random.below(requests.len())].clone().into_bytes();
        if random.below(2) == 0 && !payload.is_empty() {
            let at = random.below(payload.len());
            payload[at] = random.next() as u8;
        }
        let head = match random.below(4) {
            0 => random.next() as u8,
            1 => 0x82,
            _ => 0x81,
        };
        all.extend(frame(head, &payload));
    }
    for _ in 0..random.below(3) {
        let at = random.below(all.len().max(1));
        if let Some(byte) = all.get_mut(at) {
            *byte = random.next() as u8;
        }
    }
    all
}

/// A publisher, and a viewer that has subscribed to it.
fn watched() -> (Robot, Publisher<[f64; 3]>, Client) {
    let (robot, publisher) =
        Robot::new(|node| node.topic::<[f64; 3]>("speed").publisher().unwrap());
    let mut bystander = Client::viewer(&robot.view);
    let channel = bystander.channel("speed");
    bystander.subscribe(1, &channel);
    (robot, publisher, bystander)
}

#[test]
fn random_frames_harm_nobody() {
    let (robot, publisher, mut bystander) = watched();
    let view = &robot.view;
    let mut random = Random(1);
    for round in 0..200 {
        let protocol = ["foxglove.sdk.v1", "foxglove.websocket.v1", "myelin.view.v1"][round % 3];
        let mut stream = match round % 10 {
            0 => {
                // Not even a request.
                let mut stream = TcpStream::connect(view.address()).unwrap();
                let bytes: Vec<u8> = (0..random.below(300)).map(|_| random.next() as u8).collect();
                stream.write_all(&bytes).unwrap();
                stream
            }
            _ => ask(view, &upgrade(view, protocol, "")).2,
        };
        let _ = stream.write_all(&frames(&mut random));
        let _ = publisher.publish_copy(&[round as f64; 3]);
        if round % 2 == 0 {
            let _ = stream.shutdown(Shutdown::Write);
            stream.set_read_timeout(Some(WATCHDOG)).unwrap();
            // The server ends it, too.
            let _ = stream.read_to_end(&mut Vec::new());
        }
    }
    wait_for("the bystander's message", || (bystander.message().2.len() == 28).then_some(()));
    assert!(view.summary().clients > 100);
}

#[test]
fn what_a_client_can_make_large_is_bounded() {
    let (robot, _publisher) = Robot::new(|node| node.topic::<f64>("speed").publisher().unwrap());
    let view = &robot.view;
    // A message of 1 GiB is refused by its head.
    let (.., mut stream) = ask(view, &upgrade(view, "foxglove.sdk.v1", ""));
    let mut head = vec![0x81, 0xff];
    head.extend((1_u64 << 30).to_be_bytes());
    head.extend([0; 4]);
    stream.write_all(&head).unwrap();
    let _ = stream.read_to_end(&mut Vec::new());

    // So is one of many parts.
    let (.., mut stream) = ask(view, &upgrade(view, "foxglove.sdk.v1", ""));
    let part = vec![b' '; 60_000];
    let mut sent = stream.write_all(&frame(0x01, &part));
    for _ in 0..40 {
        sent = sent.and_then(|()| stream.write_all(&frame(0x00, &part)));
    }
    let _ = stream.read_to_end(&mut Vec::new());

    // A frame that is not masked is no client's.
    let (.., mut stream) = ask(view, &upgrade(view, "foxglove.sdk.v1", ""));
    stream.write_all(&[0x81, 2, b'{', b'}']).unwrap();
    let _ = stream.read_to_end(&mut Vec::new());

    wait_for("no clients", || {
        view.events().iter().any(|it| it.contains("disconnected")).then_some(())
    });
    let clients: Vec<Client> = (0..32).map(|_| wait_for("room", || connect(view))).collect();
    let (status, ..) = ask(view, &upgrade(view, "foxglove.sdk.v1", ""));
    assert_eq!(status, 503);
    drop(clients);
    wait_for("room", || connect(view));
}

/// Strangers that only hold connections open, or only ask for answers.
#[test]
fn connections_of_strangers_are_bounded_and_slow_nobody() {
    let (robot, publisher, mut bystander) = watched();
    let view = &robot.view;
    assert!(publisher.wait_for_match(1, WATCHDOG));
    let stranger = |_| TcpStream::connect(view.address()).unwrap();
    let silent: Vec<TcpStream> = (0..400).map(stranger).collect();
    // Those beyond the limit are closed at once, although nothing was sent.
    let is_closed = |mut stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        matches!(stream.read(&mut [0]), Ok(0))
    };
    wait_for("the limit", || {
        (silent.iter().filter(|it| is_closed(it)).count() > 200).then_some(())
    });
    publisher.publish_copy(&[1.0; 3]).unwrap();
    assert_eq!(bystander.message().2.len(), 28);
    drop(silent);

    // A head without an end, in lines and in one line.
    for part in ["X-Y: z\r\n".repeat(100), "x".repeat(1_000)] {
        let mut stream = wait_for("room", || {
            let mut stream = TcpStream::connect(view.address()).ok()?;
            stream.write_all(b"GET / HTTP/1.1\r\nX: ").ok().map(|()| stream)
        });
        let sent = (0..100).take_while(|_| stream.write_all(part.as_bytes()).is_ok()).count();
        stream.set_read_timeout(Some(WATCHDOG)).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
        println!("{sent} parts of {} B were taken", part.len());
    }

    // Pings and nonsense, whose answers nobody reads.
    let before = resident_bytes();
    for part in [frame(0x89, &[7; 125]), frame(0x81, b"[1]")] {
        let mut flood = wait_for("room", || connect(view)).socket;
        let stream = flood.get_mut();
        stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
        let parts = part.repeat(1_000);
        let sent = (0..300).take_while(|_| stream.write_all(&parts).is_ok()).count();
        publisher.publish_copy(&[2.0; 3]).unwrap();
        assert_eq!(bystander.message().2.len(), 28);
        let grown = resident_bytes().saturating_sub(before);
        assert!(grown < 24 << 20, "{grown} B after {sent} thousand frames");
    }
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4_096
}

fn connect(view: &myelin_tools::view::View) -> Option<Client> {
    let (status, _, stream) = ask(view, &upgrade(view, "foxglove.sdk.v1", ""));
    let socket = || {
        let role = tungstenite::protocol::Role::Client;
        tungstenite::WebSocket::from_raw_socket(stream, role, None)
    };
    (status == 101).then(|| Client { socket: socket() })
}
