//! A connection: who it is, and the two threads that read its requests and write its messages.
//!
//! The socket is written by one thread alone. What the WebSocket's reader has to say, such as the
//! answer to a ping, goes through the queue.

use std::collections::BTreeMap;
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Message as Received, WebSocket};

use super::access::Access;
use super::channel::Message;
use super::http::{Refusal, Request, answer};
use super::hub::{Client, Hub};
use super::page;
use super::protocol::{Binary, Level, Protocol, message_head, parse_binary, status};
use super::publishing::Publishing;
use super::queue::{Frame, Losses, Next};
use crate::text::counted;

/// Serves a connection until it ends.
pub(super) fn serve(mut stream: TcpStream, address: SocketAddr, hub: &Arc<Hub>, access: &Access) {
    let opened = Request::read(&mut stream).and_then(|request| {
        access.check_host(&request)?;
        if !request.is_upgrade() {
            let (media_type, body) = page::file(&request)?;
            answer(&mut stream, 200, media_type, body);
            return Ok(None);
        }
        access.check_client(&request)?;
        open(&mut stream, address, request, hub).map(Some)
    });
    match opened {
        Ok(None) => {}
        Ok(Some((client, rest))) => run(&client, rest, hub),
        Err(refusal) => {
            answer(&mut stream, refusal.status, "text/plain", refusal.reason.as_bytes());
            hub.count_refused(address, &refusal);
        }
    }
}

/// Makes it a WebSocket; also gives what the client has sent already.
fn open(
    stream: &mut TcpStream,
    address: SocketAddr,
    request: Request,
    hub: &Hub,
) -> Result<(Arc<Client>, Vec<u8>), Refusal> {
    let bad = |reason: &str| Refusal::new(400, reason);
    let key = request.header("sec-websocket-key")?;
    let version = request.header("sec-websocket-version")?;
    let (Some(key), "GET", Some("13")) = (key, &*request.method, version) else {
        return Err(bad("not a request for a WebSocket of version 13"));
    };
    let Some(protocol) = Protocol::choose(request.list("sec-websocket-protocol")) else {
        return Err(bad("no known protocol; offer foxglove.sdk.v1 or foxglove.websocket.v1"));
    };
    let broken = |error: io::Error| bad(&error.to_string());
    let written = stream.try_clone().map_err(broken)?;
    // Of the request's head.
    stream.set_read_timeout(None).map_err(broken)?;
    stream.set_nodelay(true).map_err(broken)?;
    let response = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {}\r\nSec-WebSocket-Protocol: {}\r\n\r\n",
        derive_accept_key(key.as_bytes()),
        protocol.name()
    );
    let client = hub.join(protocol, written, address)?;
    if let Err(error) = stream.write_all(response.as_bytes()) {
        hub.leave(&client);
        return Err(broken(error));
    }
    Ok((client, request.rest))
}

fn run(client: &Arc<Client>, rest: Vec<u8>, hub: &Arc<Hub>) {
    let (of_writer, its_hub) = (client.clone(), hub.clone());
    let writer = std::thread::Builder::new().name("view writer".to_owned()).spawn(move || {
        // An error is the end of the connection; there is nobody to hear of it.
        let _ = write(&of_writer, &its_hub);
        let _ = of_writer.stream.shutdown(Shutdown::Both);
    });
    if let Ok(writer) = writer {
        read(client, rest, hub);
        client.queue.close();
        let begin = Instant::now();
        while !writer.is_finished() && begin.elapsed() < CLOSE_LIMIT {
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = client.stream.shutdown(Shutdown::Both);
        let _ = writer.join();
    }
    hub.leave(client);
}

/// Reads requests until the connection ends.
fn read(client: &Arc<Client>, rest: Vec<u8>, hub: &Hub) {
    let config = WebSocketConfig::default()
        .read_buffer_size(16 * 1024)
        .write_buffer_size(0)
        .max_message_size(Some(REQUEST_BYTES_MAX))
        .max_frame_size(Some(REQUEST_BYTES_MAX));
    let socket = Socket { client: client.clone() };
    let mut socket = WebSocket::from_partially_read(socket, rest, Role::Server, Some(config));
    let mut publishing = Publishing::default();
    loop {
        match socket.read() {
            Ok(Received::Text(text)) => match client.protocol {
                Protocol::Page => page::request(client, &text, hub),
                _ => request(client, &text, &mut publishing, hub),
            },
            Ok(Received::Binary(bytes)) => match parse_binary(&bytes) {
                Ok(Binary::Playback(playback)) => hub.request_playback(client, playback),
                Ok(Binary::Message(message)) => publishing.publish(client, message),
                Err(problem) => client.problem(&problem),
            },
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

fn request(client: &Arc<Client>, text: &str, publishing: &mut Publishing, hub: &Hub) {
    use super::protocol::Request;
    match serde_json::from_str(text) {
        Ok(Request::Subscribe { subscriptions }) => hub.subscribe(client, &subscriptions),
        Ok(Request::Unsubscribe { subscription_ids }) => hub.unsubscribe(client, &subscription_ids),
        Ok(Request::Advertise { channels }) => publishing.advertise(client, &channels, hub),
        Ok(Request::Unadvertise { channel_ids }) => publishing.unadvertise(&channel_ids),
        Ok(Request::SubscribeConnectionGraph) => hub.subscribe_connections(client, true),
        Ok(Request::UnsubscribeConnectionGraph) => hub.subscribe_connections(client, false),
        Ok(Request::Other) => client.problem("the request is not supported"),
        Err(error) => client.problem(&format!("the request cannot be read: {error}")),
    }
}

/// Writes what is in the queue until it is closed.
fn write(client: &Arc<Client>, hub: &Hub) -> io::Result<()> {
    if client.protocol == Protocol::Page {
        return page::write(client, hub);
    }
    let mut reported = BTreeMap::new();
    let mut due = Instant::now();
    let mut scratch = Vec::new();
    loop {
        match client.queue.next(REPORT) {
            Next::Frame(frame) => write_frame(&client.stream, &frame)?,
            Next::Message(subscription, message) => {
                write_message(&client.stream, subscription, &message, &mut scratch)?;
                hub.count_sent(1, message.bytes());
            }
            Next::Nothing => {}
            Next::Closed => return Ok(()),
        }
        if due <= Instant::now() {
            due = Instant::now() + REPORT;
            report_losses(client, hub, &mut reported);
        }
    }
}

/// Tells a client what it has lost, if that has changed.
fn report_losses(client: &Client, hub: &Hub, reported: &mut BTreeMap<u64, Losses>) {
    let losses = client.queue.losses();
    if losses == *reported {
        return;
    }
    let channels = hub.channels().1;
    for (id, lost) in losses.iter().filter(|(id, lost)| reported.get(id) != Some(lost)) {
        let Some(channel) = channels.iter().find(|it| it.id == *id) else { continue };
        let mut parts = Vec::new();
        if lost.client > 0 {
            let lost = counted(lost.client, "message");
            parts.push(format!("{lost} dropped because this program reads too slowly"));
        }
        if lost.publisher > 0 {
            let lost = counted(lost.publisher, "message");
            parts.push(format!("{lost} overwritten before myelin view took them"));
        }
        let text = format!("{}: {}", channel.name, parts.join("; "));
        let name = format!("myelin-losses-{id}");
        client.queue.push_frame(status(Level::Warning, &text, Some(&name)));
    }
    *reported = losses;
}

/// What the reader of a WebSocket reads from and writes to.
struct Socket {
    client: Arc<Client>,
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.client.stream).read(buffer)
    }
}

impl Write for Socket {
    /// Whole frames, with their heads.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.client.queue.push_answer(Frame::Raw(bytes.to_vec()));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_message(
    stream: &TcpStream,
    subscription: u32,
    message: &Message,
    scratch: &mut Vec<u8>,
) -> io::Result<()> {
    let head = message_head(subscription, message.log_ns);
    let [one, two, three, four] = message.parts(scratch);
    write_parts(stream, BINARY, &[&head, one, two, three, four])
}

pub(super) fn write_frame(stream: &TcpStream, frame: &Frame) -> io::Result<()> {
    match frame {
        Frame::Text(text) => write_parts(stream, TEXT, &[text.as_bytes()]),
        Frame::Binary(bytes) => write_parts(stream, BINARY, &[bytes]),
        Frame::Raw(bytes) => {
            let mut stream = stream;
            stream.write_all(bytes)
        }
    }
}

pub(super) fn write_binary(stream: &TcpStream, parts: &[&[u8]]) -> io::Result<()> {
    write_parts(stream, BINARY, parts)
}

/// Writes a frame from where its parts lie: a server's frames are not masked.
fn write_parts(mut stream: &TcpStream, opcode: u8, parts: &[&[u8]]) -> io::Result<()> {
    let bytes: usize = parts.iter().map(|it| it.len()).sum();
    let mut head = [0; 10];
    head[0] = LAST | opcode;
    let head = match bytes {
        0..=125 => {
            head[1] = bytes as u8;
            &head[..2]
        }
        126..=0xffff => {
            head[1] = 126;
            head[2..4].copy_from_slice(&(bytes as u16).to_be_bytes());
            &head[..4]
        }
        _ => {
            head[1] = 127;
            head[2..].copy_from_slice(&(bytes as u64).to_be_bytes());
            &head[..]
        }
    };
    let all = [head].into_iter().chain(parts.iter().copied());
    let mut slices: Vec<IoSlice<'_>> = all.map(IoSlice::new).collect();
    let mut left = &mut slices[..];
    IoSlice::advance_slices(&mut left, 0); // Empty ones at the begin.
    while !left.is_empty() {
        match stream.write_vectored(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut left, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

const LAST: u8 = 0x80;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
/// Of a client.
const REQUEST_BYTES_MAX: usize = 1 << 20;
/// How often a client gets its losses.
const REPORT: Duration = Duration::from_secs(1);
/// How long the last frames may take.
const CLOSE_LIMIT: Duration = Duration::from_millis(200);
