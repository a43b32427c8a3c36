//! The page of our own, and what it is sent: values that are read here, as JSON, and one picture.
//!
//! The page says what it shows in one request, and gets it ten times a second. A picture is sent once
//! the page has shown the one before, so a slow browser gets fewer.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use myelin::Clock;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::channel::{Channel, Message};
use super::client::{write_binary, write_frame};
use super::http::{Refusal, Request};
use super::hub::{Client, Hub};
use super::image::Picture;
use super::protocol::{PlaybackRequest, PlaybackStatus, text};
use super::queue::{Frame, Next};
use crate::document::Document;

/// What a page shows.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Wishes {
    /// Counts the page's requests, so that it knows to which one an answer belongs.
    version: u64,
    /// Channels whose last value it shows.
    watched: Vec<u64>,
    /// Numbers that it draws.
    series: Vec<Series>,
    /// The channel of the picture.
    image: Option<u64>,
    /// Whether it has shown the picture before.
    #[serde(skip, default = "yes")]
    is_ready: bool,
}

#[derive(Clone, Debug, Deserialize)]
struct Series {
    channel: u64,
    path: String,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum PageRequest {
    Show(Wishes),
    /// It has shown a picture.
    Shown,
    /// What is absent stays as it is.
    Playback {
        play: Option<bool>,
        speed: Option<f32>,
        seek_ms: Option<f64>,
    },
}

impl Default for Wishes {
    fn default() -> Self {
        let (watched, series, image) = Default::default();
        Wishes { version: 0, watched, series, image, is_ready: true }
    }
}

fn yes() -> bool {
    true
}

/// A part of the page.
pub(super) fn file(request: &Request) -> Result<(&'static str, &'static [u8]), Refusal> {
    if request.method != "GET" {
        return Err(Refusal::new(405, "only GET"));
    }
    match &*request.path {
        "/" => Ok(("text/html", include_bytes!("page/view.html"))),
        "/view.css" => Ok(("text/css", include_bytes!("page/view.css"))),
        "/view.js" => Ok(("text/javascript", include_bytes!("page/view.js"))),
        _ => Err(Refusal::new(404, "there is nothing here; the page is at /")),
    }
}

/// What a page asks for. One that is not understood is left out: the page comes from here.
pub(super) fn request(client: &Arc<Client>, text: &str, hub: &Hub) {
    match serde_json::from_str(text) {
        Ok(PageRequest::Show(mut wishes)) => {
            wishes.watched.truncate(WATCHED_MAX);
            wishes.series.truncate(SERIES_MAX);
            wishes.series.retain(|it| it.path.len() <= PATH_BYTES_MAX);
            let all = wishes.watched.iter().chain(wishes.series.iter().map(|it| &it.channel));
            let mut channels: Vec<u64> = all.chain(&wishes.image).copied().collect();
            channels.sort_unstable();
            channels.dedup();
            {
                let mut now = client.wishes.lock().unwrap_or_else(PoisonError::into_inner);
                wishes.is_ready = now.is_ready;
                *now = wishes;
            }
            hub.subscribe_page(client, &channels);
        }
        Ok(PageRequest::Shown) => {
            client.wishes.lock().unwrap_or_else(PoisonError::into_inner).is_ready = true;
        }
        Ok(PageRequest::Playback { play, speed, seek_ms }) => {
            let Some(now) = hub.playback() else { return };
            hub.request_playback(
                client,
                PlaybackRequest {
                    play: play.unwrap_or(now.status == PlaybackStatus::Playing),
                    speed: speed.unwrap_or(now.speed),
                    seek_ns: seek_ms.map(|it| (it.max(0.0) * 1e6) as u64),
                    id: String::new(),
                },
            );
        }
        Err(_) => {}
    }
}

/// Writes what the page shows until the queue is closed.
pub(super) fn write(client: &Client, hub: &Hub) -> io::Result<()> {
    let hello = json!({
        "op": "hello",
        "name": hub.name,
        "beginMs": hub.range.map(|(begin, _)| ms(begin)),
        "endMs": hub.range.map(|(_, end)| ms(end)),
    });
    write_frame(&client.stream, &text(&hello))?;
    let mut shown = Shown::default();
    let mut due = Instant::now();
    loop {
        let left = due.saturating_duration_since(Instant::now());
        match client.queue.next(left) {
            Next::Frame(frame) => write_frame(&client.stream, &frame)?,
            Next::Message(_, message) => shown.take(client, message),
            Next::Nothing => {}
            Next::Closed => return Ok(()),
        }
        if let Some(message) = shown.picture(client) {
            write_picture(client, hub, &message)?;
        }
        if due <= Instant::now() {
            due = Instant::now() + INTERVAL;
            shown.write(client, hub)?;
        }
    }
}

/// What has come for a page since the last time.
#[derive(Default)]
struct Shown {
    /// Of the wishes to which the rest belongs.
    version: u64,
    changes: Option<u64>,
    rates: u64,
    latest: BTreeMap<u64, Arc<Message>>,
    /// Of each series: times in ms, and numbers.
    points: Vec<(Vec<f64>, Vec<Option<f64>>)>,
    picture: Option<Arc<Message>>,
}

impl Shown {
    fn take(&mut self, client: &Client, message: Arc<Message>) {
        let wishes = client.wishes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.follow(&wishes);
        let id = message.channel.id;
        let mut series = wishes.series.iter().enumerate().filter(|(_, it)| it.channel == id);
        let mut next = series.next();
        if next.is_some()
            && let Ok(document) = message.channel.document.read(message.sample())
        {
            while let Some((at, of)) = next {
                let (times, numbers) = &mut self.points[at];
                if times.len() < POINTS_MAX {
                    times.push(ms(message.log_ns));
                    numbers.push(number(&document, &of.path));
                }
                next = series.next();
            }
        }
        if wishes.image == Some(id) {
            self.picture = Some(message.clone());
        }
        if wishes.watched.contains(&id) {
            self.latest.insert(id, message);
        }
    }

    /// Forgets what belongs to other wishes.
    fn follow(&mut self, wishes: &Wishes) {
        if self.version != wishes.version || self.points.len() != wishes.series.len() {
            self.version = wishes.version;
            self.points = vec![Default::default(); wishes.series.len()];
            self.latest.retain(|id, _| wishes.watched.contains(id));
            self.picture = self.picture.take().filter(|it| wishes.image == Some(it.channel.id));
        }
    }

    /// The newest picture, if the page is ready for it.
    fn picture(&mut self, client: &Client) -> Option<Arc<Message>> {
        let mut wishes = client.wishes.lock().unwrap_or_else(PoisonError::into_inner);
        if !wishes.is_ready {
            return None;
        }
        let picture = self.picture.take().filter(|it| wishes.image == Some(it.channel.id))?;
        wishes.is_ready = false;
        Some(picture)
    }

    fn write(&mut self, client: &Client, hub: &Hub) -> io::Result<()> {
        if self.changes != Some(hub.changes()) {
            let (changes, channels) = hub.channels();
            self.changes = Some(changes);
            let channels: Vec<Json> = channels.iter().map(|it| describe(it)).collect();
            let message = json!({"op": "channels", "channels": channels});
            write_frame(&client.stream, &text(&message))?;
        }
        let (version, rates) = hub.rates();
        if version != self.rates {
            self.rates = version;
            write_frame(&client.stream, &Frame::Text(rates))?;
        }
        let wishes = client.wishes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.follow(&wishes);
        let mut bytes = 0;
        let latest = std::mem::take(&mut self.latest);
        let values: Vec<Json> = latest
            .values()
            .map(|it| {
                bytes += it.bytes();
                json!({
                    "channel": it.channel.id,
                    "atMs": ms(it.log_ns),
                    "bytes": it.bytes(),
                    "text": lines(it),
                })
            })
            .collect();
        hub.count_sent(values.len() as u64, bytes);
        let points =
            std::mem::replace(&mut self.points, vec![Default::default(); wishes.series.len()]);
        let points: Vec<Json> =
            points.iter().map(|(times, numbers)| json!({"t": times, "v": numbers})).collect();
        let lost = client.losses();
        let playback = hub.playback();
        let now_ns = playback.as_ref().map_or_else(|| Clock::system().now(), |it| it.now_ns);
        let playback = playback
            .map(|it| json!({"status": it.status, "nowMs": ms(it.now_ns), "speed": it.speed}));
        let message = json!({
            "op": "samples",
            "nowMs": ms(now_ns),
            "version": self.version,
            "values": values,
            "points": points,
            "dropped": lost.client,
            "overwritten": lost.publisher,
            "playback": playback,
        });
        write_frame(&client.stream, &text(&message))
    }
}

fn describe(channel: &Channel) -> Json {
    json!({
        "id": channel.id,
        "name": channel.name,
        "type": channel.type_name,
        "numbers": channel.numbers(),
        "image": channel.image.is_some(),
        "problem": channel.wire.as_ref().err(),
    })
}

/// Sends a picture: a head of 24 bytes, then its rows.
///
/// | | |
/// |---|---|
/// | `u32` channel | `u32` width | `u32` height | `u32` bytes from row to row | `u32` [format] | 4 bytes |
///
/// [format]: super::image::PixelFormat
fn write_picture(client: &Client, hub: &Hub, message: &Message) -> io::Result<()> {
    let id = message.channel.id as u32;
    let document = message.channel.document.read(message.sample());
    let read = match (&message.channel.image, &document) {
        (Some(shape), Ok(Document::Value(value))) => shape.read(value),
        (_, Err(error)) => Err(error.clone()),
        _ => Err("its samples are no pictures".to_owned()),
    };
    match read {
        Ok(Picture { format, width, height, step, data }) => {
            let numbers = [id, width, height, step, format as u32, 0];
            let head: Vec<u8> = numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
            hub.count_sent(1, data.len());
            write_binary(&client.stream, &[&head, data])
        }
        Err(problem) => {
            let message = json!({"op": "noPicture", "channel": id, "problem": problem});
            write_frame(&client.stream, &text(&message))
        }
    }
}

/// A value for people; JSON and bytes, too.
fn lines(message: &Message) -> String {
    let mut lines = String::new();
    let written = message.channel.document.read(message.sample()).and_then(|document| {
        let pushed = document.push_lines(&mut lines, ELEMENTS_MAX, WIDTH);
        pushed.map_err(|error| error.to_string())
    });
    if let Err(problem) = written {
        return format!("cannot be read: {problem}");
    }
    if let Some((end, _)) = lines.char_indices().nth(LINES_MAX) {
        lines.truncate(end);
        lines.push_str("...");
    }
    lines
}

/// `None`: there is none, or it is no number that JSON has.
fn number(document: &Document<'_>, path: &str) -> Option<f64> {
    use myelin_value::Scalar;
    let number = match document.get(path).ok()?.scalar().ok()?? {
        Scalar::Bool(value) => f64::from(u8::from(value)),
        Scalar::Signed(value) => value as f64,
        Scalar::Unsigned(value) => value as f64,
        Scalar::F32(value) => value.into(),
        Scalar::F64(value) => value,
    };
    number.is_finite().then_some(number)
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// How often a page is sent values.
const INTERVAL: Duration = Duration::from_millis(100);
/// Of a page.
const WATCHED_MAX: usize = 32;
const SERIES_MAX: usize = 8;
const PATH_BYTES_MAX: usize = 1024;
/// Of a series in an interval.
const POINTS_MAX: usize = 4096;
/// Of an array in a value, characters of a line, and of a value.
const ELEMENTS_MAX: usize = 32;
const WIDTH: usize = 60;
const LINES_MAX: usize = 8192;
