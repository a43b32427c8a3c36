//! A file that is played: its messages at their times, and requests to pause, seek and change the
//! speed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use myelin_bag::{
    BagReader, CDR_HEADER, MessageType, Messages, MessagesError, OpenError, Schema, Selection,
    Topics,
};
use myelin_value::Encoding;
use serde_json::{Value as Json, json};

use super::channel::{Channel, Message};
use super::hub::Hub;
use super::protocol::{PlaybackRequest, PlaybackState, PlaybackStatus};
use crate::Error;
use crate::bag::topics::choose;
use crate::document::Format;
use crate::text::printable;

/// How a file is played.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// So many times as fast as it was recorded.
    pub rate: f64,
    /// Begins again at the end.
    pub is_loop: bool,
    /// Waits for a viewer that starts it.
    pub is_paused: bool,
}

/// The thread that plays; it ends when it is dropped.
pub(super) struct FilePlayer {
    is_stopping: Arc<AtomicBool>,
    /// Wakes the thread.
    sender: Sender<PlaybackRequest>,
    thread: Option<JoinHandle<()>>,
}

/// A file before it is played.
pub(super) struct Opened {
    reader: BagReader,
    /// Its first and last time.
    pub(super) range: (u64, u64),
}

impl Opened {
    pub(super) fn open(path: &Path) -> Result<Opened, Error> {
        let name = printable(&path.display().to_string()).into_owned();
        let reader = BagReader::open(path).map_err(|error| match error {
            OpenError::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Error::NotFound(format!("{name}: there is no such file"))
            }
            OpenError::Io(error) => Error::Io { what: name.clone(), error },
            error => Error::BadInput(format!("{name}: {error}")),
        })?;
        let range = reader.info().statistics.times;
        Ok(Opened { reader, range })
    }
}

impl FilePlayer {
    /// Plays the topics that the patterns name; all if there are none.
    pub(super) fn start(
        opened: Opened,
        patterns: &[String],
        options: FileOptions,
        hub: Arc<Hub>,
    ) -> Result<FilePlayer, Error> {
        let Opened { reader, range } = opened;
        let channels = channels(&reader, patterns, &hub)?;
        let (sender, requests) = channel();
        hub.set_playback_sender(sender.clone());
        let is_stopping = Arc::new(AtomicBool::new(false));
        let playback = Playback {
            selection: {
                let mut selection = Selection::default();
                selection.channels = Some(channels.keys().copied().collect());
                selection
            },
            reader,
            range,
            channels,
            hub,
            requests,
            is_stopping: is_stopping.clone(),
            is_loop: options.is_loop,
            status: if options.is_paused {
                PlaybackStatus::Paused
            } else {
                PlaybackStatus::Playing
            },
            speed: options.rate.clamp(SPEED_MIN, SPEED_MAX),
            now_ns: range.0,
            anchor: None,
            due_time: Instant::now(),
            due_rates: Instant::now(),
            has_begun: false,
        };
        let thread = std::thread::Builder::new().name("view file".to_owned());
        let thread = thread.spawn(move || playback.run());
        let thread = thread.map_err(|error| Error::Io { what: "a thread".to_owned(), error })?;
        Ok(FilePlayer { is_stopping, sender, thread: Some(thread) })
    }
}

impl Drop for FilePlayer {
    fn drop(&mut self) {
        // ORDER: Relaxed: the message that follows orders it.
        self.is_stopping.store(true, Ordering::Relaxed);
        let nothing = PlaybackRequest { play: false, speed: 1.0, seek_ns: None, id: String::new() };
        let _ = self.sender.send(nothing);
        self.thread.take().map(JoinHandle::join);
    }
}

/// The channels of a file, by their ids there.
fn channels(
    reader: &BagReader,
    patterns: &[String],
    hub: &Hub,
) -> Result<BTreeMap<u16, Arc<Channel>>, Error> {
    let definitions = &reader.info().definitions;
    let wanted = Topics { wanted: patterns.to_vec(), ..Topics::default() };
    let chosen = choose(&wanted, [definitions])?;
    let mut channels = BTreeMap::new();
    for (id, channel) in definitions.channels.iter().filter(|(_, it)| chosen.contains(&it.topic)) {
        let schema = definitions.schemas.get(&channel.schema);
        let (mut format, mut skipped) = (Format::Bytes, 0);
        if let Ok(ty) = MessageType::new(channel, schema) {
            format = match ty.ty() {
                Some(ty) => Format::Fields(Arc::new(ty.clone())),
                None => Format::Json,
            };
            let is_plain = ty.ty().is_some_and(|it| it.encoding() == Encoding::Plain);
            if is_plain && channel.encoding == "cdr" {
                skipped = CDR_HEADER.len();
            }
        }
        let schema =
            schema.map(|it| Schema { encoding: &it.encoding, name: &it.name, text: &it.text });
        let new = |own| Channel::recorded(own, channel, schema.as_ref(), format, skipped);
        channels.insert(*id, hub.add_channel(new));
    }
    Ok(channels)
}

struct Playback {
    reader: BagReader,
    range: (u64, u64),
    selection: Selection,
    channels: BTreeMap<u16, Arc<Channel>>,
    hub: Arc<Hub>,
    requests: Receiver<PlaybackRequest>,
    is_stopping: Arc<AtomicBool>,
    is_loop: bool,
    status: PlaybackStatus,
    speed: f64,
    /// The time in the file.
    now_ns: u64,
    /// When the time in the file was which; `None` while it stands still.
    anchor: Option<(Instant, u64)>,
    due_time: Instant,
    due_rates: Instant,
    /// A file begins with its first client.
    has_begun: bool,
}

impl Playback {
    fn run(mut self) {
        let mut messages = self.messages_from(self.range.0);
        let mut next = None;
        self.tell(false, String::new());
        loop {
            let mut limit = TICK;
            if self.status == PlaybackStatus::Playing && (self.has_begun || self.hub.has_clients())
            {
                self.has_begun = true;
                self.advance();
                while self.status == PlaybackStatus::Playing {
                    if next.is_none() {
                        next = self.next_message(&mut messages);
                    }
                    match next.take() {
                        None => {
                            self.end(&mut messages);
                            break;
                        }
                        Some(message) if message.head.log_ns > self.now_ns => {
                            let ahead = (message.head.log_ns - self.now_ns) as f64 / self.speed;
                            limit = Duration::from_nanos(ahead as u64).min(TICK);
                            next = Some(message);
                            break;
                        }
                        Some(message) => self.publish(&message),
                    }
                    // A playback that is late answers requests.
                    if let Ok(request) = self.requests.try_recv() {
                        self.obey(request, &mut messages, &mut next);
                    }
                }
            }
            self.tell_time();
            match self.requests.recv_timeout(limit) {
                // ORDER: Relaxed: as in `drop`.
                _ if self.is_stopping.load(Ordering::Relaxed) => return,
                Ok(request) => self.obey(request, &mut messages, &mut next),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Does what a viewer asks for, and answers it.
    fn obey(
        &mut self,
        request: PlaybackRequest,
        messages: &mut Option<Messages>,
        next: &mut Option<myelin_bag::Message>,
    ) {
        self.advance();
        let speed = f64::from(request.speed);
        if speed.is_finite() && speed > 0.0 {
            self.speed = speed.clamp(SPEED_MIN, SPEED_MAX);
        }
        let is_over = self.status == PlaybackStatus::Ended;
        let seek_ns = match request.seek_ns {
            None if is_over && request.play => Some(self.range.0),
            seek_ns => seek_ns,
        };
        if let Some(seek_ns) = seek_ns {
            self.now_ns = seek_ns.clamp(self.range.0, self.range.1);
            *messages = self.messages_from(self.now_ns);
            *next = None;
        }
        self.status = match (request.play, is_over && seek_ns.is_none()) {
            (_, true) => PlaybackStatus::Ended,
            (true, _) => PlaybackStatus::Playing,
            (false, _) => PlaybackStatus::Paused,
        };
        self.has_begun = true;
        self.anchor = None;
        self.tell(seek_ns.is_some(), request.id);
    }

    /// Moves the time of the file on.
    fn advance(&mut self) {
        let now = Instant::now();
        if self.status == PlaybackStatus::Playing && self.has_begun {
            let (begin, at_ns) = *self.anchor.get_or_insert((now, self.now_ns));
            let passed_ns = (now - begin).as_nanos() as f64 * self.speed;
            self.now_ns = (at_ns + passed_ns as u64).min(self.range.1);
        }
    }

    fn end(&mut self, messages: &mut Option<Messages>) {
        self.anchor = None;
        if self.is_loop && self.range.1 > self.range.0 {
            self.now_ns = self.range.0;
            *messages = self.messages_from(self.now_ns);
            self.tell(true, String::new());
            return;
        }
        self.now_ns = self.range.1;
        self.status = PlaybackStatus::Ended;
        self.tell(false, String::new());
    }

    fn messages_from(&self, begin_ns: u64) -> Option<Messages> {
        let mut selection = self.selection.clone();
        selection.start_ns = Some(begin_ns);
        match self.reader.messages(&selection) {
            Ok(messages) => Some(messages),
            Err(error) => {
                self.hub.event(format!("the file cannot be read: {error}"));
                None
            }
        }
    }

    fn next_message(&self, messages: &mut Option<Messages>) -> Option<myelin_bag::Message> {
        loop {
            match messages.as_mut()?.next()? {
                Ok(message) => return Some(message),
                Err(error) => {
                    self.hub.event(printable(&error.to_string()).into_owned());
                    if !matches!(error, MessagesError::Lost(_)) {
                        return None;
                    }
                }
            }
        }
    }

    fn publish(&self, message: &myelin_bag::Message) {
        let Some(channel) = self.channels.get(&message.head.channel) else { return };
        // ORDER: Relaxed: a count that guards nothing.
        if !self.hub.is_wanted(channel.id) {
            channel.came.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let message = Message::recorded(channel.clone(), message.clone());
        self.hub.distribute(message);
    }

    /// Tells viewers the state.
    fn tell(&mut self, did_seek: bool, request: String) {
        self.hub.set_playback(PlaybackState {
            status: self.status,
            now_ns: self.now_ns,
            speed: self.speed as f32,
            did_seek,
            request,
        });
        self.hub.set_time(self.now_ns);
    }

    /// Tells viewers the time, and pages the rates.
    fn tell_time(&mut self) {
        let now = Instant::now();
        if self.due_time <= now && self.status == PlaybackStatus::Playing && self.has_begun {
            self.due_time = now + TIME_INTERVAL;
            self.hub.set_time(self.now_ns);
        }
        if self.due_rates <= now && self.hub.has_pages() {
            let seconds = (now - self.due_rates + RATES_INTERVAL).as_secs_f64();
            self.due_rates = now + RATES_INTERVAL;
            let topic = |it: &Arc<Channel>| -> Json {
                // ORDER: Relaxed: a count that guards nothing.
                let came = it.came.swap(0, Ordering::Relaxed);
                json!({
                    "name": it.name,
                    "rateHz": came as f64 / seconds,
                    "publishers": null,
                    "subscribers": null,
                    "lost": null,
                })
            };
            let topics: Vec<Json> = self.channels.values().map(topic).collect();
            self.hub.set_rates(&json!({"op": "rates", "topics": topics}));
        }
    }
}

/// How long a wait is at most.
const TICK: Duration = Duration::from_millis(20);
/// How often viewers get the time.
const TIME_INTERVAL: Duration = Duration::from_millis(40);
const RATES_INTERVAL: Duration = Duration::from_secs(1);
const SPEED_MIN: f64 = 0.01;
const SPEED_MAX: f64 = 1000.0;
