//! A server, its robot, and a client of the tests' own.

#[path = "../../../myelin/tests/support/cache.rs"]
mod cache;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use self::cache::cache;
use myelin::{Node, PlainData};
use myelin_tools::session::{Place, Session};
use myelin_tools::view::{Options, View};
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

#[derive(Clone, Copy, Default, PlainData)]
#[repr(C)]
pub struct Imu {
    pub stamp_ns: u64,
    pub acceleration: [f64; 3],
    pub id: u32,
    pub temperature: f32,
}

/// In front of pixels.
#[derive(Clone, Copy, Default, PlainData)]
#[repr(C)]
pub struct Frame {
    pub stamp_ns: u64,
    pub width: u32,
    pub height: u32,
}

/// A domain of a test's own, and a server that shows it.
pub struct Robot {
    pub folder: TempDir,
    pub node: Node,
    pub view: View,
}

impl Robot {
    /// `prepare` runs before the server starts.
    pub fn new<T>(prepare: impl FnOnce(&Node) -> T) -> (Robot, T) {
        Robot::with(options(), Vec::new(), prepare)
    }

    pub fn with<T>(
        options: Options,
        topics: Vec<String>,
        prepare: impl FnOnce(&Node) -> T,
    ) -> (Robot, T) {
        let folder = tempfile::tempdir().unwrap();
        let node = Node::builder("robot").runtime_dir(folder.path()).open().unwrap();
        let prepared = prepare(&node);
        let place = Place { runtime_dir: Some(folder.path().to_owned()), ..Place::default() };
        let session = Session::open("myelin view", &place).unwrap();
        let view = View::robot(session, &place, topics, &options).unwrap();
        (Robot { folder, node, view }, prepared)
    }
}

/// On a free port of this host.
pub fn options() -> Options {
    let listen = "127.0.0.1:0".parse().unwrap();
    Options { listen, origins: Vec::new(), can_publish: false }
}

pub fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + WATCHDOG;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited a minute for: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A client.
pub struct Client {
    pub socket: WebSocket<TcpStream>,
}

/// What a server sends.
#[derive(Debug)]
pub enum Received {
    Json(Json),
    /// Subscription, time, data.
    Message(u32, u64, Vec<u8>),
    Binary(Vec<u8>),
}

/// The head of a request for a WebSocket.
pub fn upgrade(view: &View, protocol: &str, more: &str) -> String {
    format!(
        "GET / HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: {protocol}\r\n{more}\r\n",
        view.address()
    )
}

/// Sends a request; the status and the whole answer up to the end of its head, or of the connection.
pub fn ask(view: &View, request: &str) -> (u16, String, TcpStream) {
    let mut stream = TcpStream::connect(view.address()).unwrap();
    stream.set_read_timeout(Some(WATCHDOG)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let status = head.split(' ').nth(1).unwrap_or_default().parse().unwrap_or(0);
    (status, head, stream)
}

impl Client {
    pub fn new(view: &View, protocol: &str) -> Client {
        let (status, head, stream) = ask(view, &upgrade(view, protocol, ""));
        assert_eq!(status, 101, "{head}");
        // The key is that of the RFC's example.
        assert!(head.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
        let big = tungstenite::protocol::WebSocketConfig::default();
        let big = big.max_frame_size(None).max_message_size(None);
        Client { socket: WebSocket::from_raw_socket(stream, Role::Client, Some(big)) }
    }

    /// A viewer behind the server's first message.
    pub fn viewer(view: &View) -> Client {
        let mut client = Client::new(view, "foxglove.sdk.v1");
        assert_eq!(client.json("serverInfo")["capabilities"][0], "connectionGraph");
        client
    }

    pub fn send(&mut self, json: Json) {
        self.socket.send(Message::text(json.to_string())).unwrap();
    }

    pub fn receive(&mut self) -> Received {
        loop {
            match self.socket.read().unwrap() {
                Message::Text(text) => return Received::Json(serde_json::from_str(&text).unwrap()),
                Message::Binary(bytes) if bytes[0] == 1 => {
                    let number = u32::from_le_bytes(bytes[1..5].try_into().unwrap());
                    let time = u64::from_le_bytes(bytes[5..13].try_into().unwrap());
                    return Received::Message(number, time, bytes[13..].to_vec());
                }
                Message::Binary(bytes) => return Received::Binary(bytes.to_vec()),
                _ => {}
            }
        }
    }

    /// The next JSON message of this kind; others before it are left out.
    pub fn json(&mut self, op: &str) -> Json {
        loop {
            if let Received::Json(json) = self.receive()
                && json["op"] == op
            {
                return json;
            }
        }
    }

    /// The next message; JSON before it is left out.
    pub fn message(&mut self) -> (u32, u64, Vec<u8>) {
        loop {
            if let Received::Message(number, time, data) = self.receive() {
                return (number, time, data);
            }
        }
    }

    /// The channel of a topic, once it is advertised.
    pub fn channel(&mut self, topic: &str) -> Json {
        loop {
            let advertise = self.json("advertise");
            let channels = advertise["channels"].as_array().unwrap();
            if let Some(channel) = channels.iter().find(|it| it["topic"] == topic) {
                return channel.clone();
            }
        }
    }

    pub fn subscribe(&mut self, id: u32, channel: &Json) {
        let channel = channel["id"].as_u64().unwrap();
        let subscriptions = json!([{"id": id, "channelId": channel}]);
        self.send(json!({"op": "subscribe", "subscriptions": subscriptions}));
    }
}

/// A script of this folder with the packages of `scripts/setup test`; `None`, with a message, without
/// them.
pub fn node_script(name: &str) -> Option<std::process::Command> {
    let modules = cache()?.join("npm/node_modules");
    if !modules.join("@foxglove/ws-protocol").exists() || !modules.join("ws").exists() {
        let text = "Node's packages are missing: run `scripts/setup test`";
        assert!(std::env::var_os("CI").is_none(), "{text}");
        println!("skipped: {text}");
        return None;
    }
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/view").join(name);
    let mut command = std::process::Command::new("node");
    command.arg(script).env("NODE_PATH", modules);
    Some(command)
}

pub const WATCHDOG: Duration = Duration::from_secs(60);
