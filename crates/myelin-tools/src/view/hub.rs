//! Clients and channels. Sources add channels and distribute messages; clients subscribe.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use super::Summary;
use super::channel::{Channel, Message};
use super::http::Refusal;
use super::page::Wishes;
use super::protocol::{
    self, Level, PlaybackRequest, PlaybackState, Protocol, Subscription, advertise, status,
    unadvertise,
};
use super::queue::{Frame, Losses, Queue};
use crate::session::{Place, Session};
use crate::text::{counted, printable};

/// What all threads share.
pub(super) struct Hub {
    /// What clients call the server.
    pub(super) name: String,
    session: String,
    /// The first and the last time of a file.
    pub(super) range: Option<(u64, u64)>,
    state: Mutex<State>,
    /// Tells the source that subscriptions have changed.
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// To the playback of a file.
    playback: OnceLock<Sender<PlaybackRequest>>,
    /// Where viewers may publish.
    publishing: OnceLock<(Session, Place)>,
    events: Mutex<VecDeque<String>>,
    counts: Counts,
}

#[derive(Default)]
struct State {
    clients: BTreeMap<u64, Arc<Client>>,
    channels: BTreeMap<u64, Arc<Channel>>,
    /// By channel: who gets its messages, and for which subscription.
    targets: HashMap<u64, Vec<(Arc<Client>, u32)>>,
    next_channel: u64,
    next_client: u64,
    /// Counts the changes of channels.
    changes: u64,
    playback: Option<PlaybackState>,
    connections: Connections,
    rates: (u64, Arc<str>),
    /// Losses of clients that have gone.
    losses: Losses,
    is_closed: bool,
}

/// Who publishes and subscribes, by the names of topics and nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Connections {
    pub(super) published: BTreeMap<String, Vec<String>>,
    pub(super) subscribed: BTreeMap<String, Vec<String>>,
}

#[derive(Default)]
struct Counts {
    messages: AtomicU64,
    bytes: AtomicU64,
    refused: AtomicU64,
}

/// A connection that is open.
pub(super) struct Client {
    id: u64,
    pub(super) protocol: Protocol,
    address: SocketAddr,
    pub(super) queue: Queue,
    pub(super) stream: TcpStream,
    subscriptions: Mutex<BTreeMap<u32, u64>>,
    wants_connections: std::sync::atomic::AtomicBool,
    /// Of the page.
    pub(super) wishes: Mutex<Wishes>,
}

impl Hub {
    pub(super) fn new(name: String, session: String, range: Option<(u64, u64)>) -> Hub {
        let (state, wake, playback, publishing, events, counts) = Default::default();
        Hub { name, session, range, state, wake, playback, publishing, events, counts }
    }

    /// `wake` is called when subscriptions have changed.
    pub(super) fn on_change(&self, wake: impl Fn() + Send + Sync + 'static) {
        let _ = self.wake.set(Box::new(wake));
    }

    pub(super) fn set_playback_sender(&self, sender: Sender<PlaybackRequest>) {
        let _ = self.playback.set(sender);
    }

    /// Lets viewers publish.
    pub(super) fn allow_publishing(&self, session: Session, place: Place) {
        let _ = self.publishing.set((session, place));
    }

    /// Where viewers publish, if they may.
    pub(super) fn publishing(&self) -> Option<&(Session, Place)> {
        self.publishing.get()
    }

    /// Adds a client, and tells it what there is.
    pub(super) fn join(
        &self,
        protocol: Protocol,
        stream: TcpStream,
        address: SocketAddr,
    ) -> Result<Arc<Client>, Refusal> {
        let mut state = self.state();
        if state.is_closed || state.clients.len() >= CLIENTS_MAX {
            return Err(Refusal::new(503, format!("there are {CLIENTS_MAX} clients already")));
        }
        let id = state.next_client;
        state.next_client += 1;
        let (queue, subscriptions, wants_connections, wishes) = Default::default();
        let client = Arc::new(Client {
            id,
            protocol,
            address,
            queue,
            stream,
            subscriptions,
            wants_connections,
            wishes,
        });
        if protocol != Protocol::Page {
            let can_publish = self.publishing.get().is_some();
            let info = protocol::server_info(&self.name, &self.session, self.range, can_publish);
            client.queue.push_frame(info);
            let all = advertise(state.channels.values().map(|it| &**it));
            all.into_iter().for_each(|frame| client.queue.push_frame(frame));
        }
        if let Some(playback) = &state.playback {
            client.playback(playback);
        }
        state.clients.insert(id, client.clone());
        drop(state);
        self.event(format!("{} connected ({})", client.address, protocol.name()));
        Ok(client)
    }

    /// Removes a client.
    pub(super) fn leave(&self, client: &Client) {
        let mut state = self.state();
        state.clients.remove(&client.id);
        for channel in client.subscriptions().values() {
            if let Some(targets) = state.targets.get_mut(channel) {
                targets.retain(|(it, _)| it.id != client.id);
                if targets.is_empty() {
                    state.targets.remove(channel);
                }
            }
            state.forget_kept(*channel);
        }
        let losses = client.losses();
        state.losses.client += losses.client;
        state.losses.publisher += losses.publisher;
        drop(state);
        let lost = match losses.client {
            0 => String::new(),
            lost => format!("; it read too slowly and missed {}", counted(lost, "message")),
        };
        self.event(format!("{} disconnected{lost}", client.address));
        self.wake();
    }

    /// The answers to subscriptions that are not possible are status messages.
    pub(super) fn subscribe(&self, client: &Arc<Client>, subscriptions: &[Subscription]) {
        let mut state = self.state();
        let mut own = client.subscriptions();
        for Subscription { id, channel_id } in subscriptions {
            let problem = match state.channels.get(channel_id) {
                None => Some(format!("there is no channel {channel_id}")),
                Some(_) if own.contains_key(id) => Some(format!("subscription {id} is in use")),
                Some(channel) if own.values().any(|it| it == channel_id) => {
                    Some(format!("channel {channel_id}, {}, is subscribed already", channel.name))
                }
                Some(_) if own.len() >= SUBSCRIPTIONS_MAX => {
                    Some(format!("there are {SUBSCRIPTIONS_MAX} subscriptions already"))
                }
                Some(_) => None,
            };
            if let Some(problem) = problem {
                client.problem(&problem);
                continue;
            }
            own.insert(*id, *channel_id);
            for message in state.channels[channel_id].kept() {
                client.queue.push(*id, message);
            }
            state.targets.entry(*channel_id).or_default().push((client.clone(), *id));
        }
        drop((state, own));
        self.wake();
    }

    pub(super) fn unsubscribe(&self, client: &Client, subscriptions: &[u32]) {
        let mut state = self.state();
        let mut own = client.subscriptions();
        for id in subscriptions {
            let Some(channel) = own.remove(id) else {
                client.problem(&format!("there is no subscription {id}"));
                continue;
            };
            if let Some(targets) = state.targets.get_mut(&channel) {
                targets.retain(|(it, _)| it.id != client.id);
                if targets.is_empty() {
                    state.targets.remove(&channel);
                }
            }
            state.forget_kept(channel);
            client.queue.forget(channel);
        }
        drop((state, own));
        self.wake();
    }

    /// Makes the subscriptions of the page those to these channels.
    pub(super) fn subscribe_page(&self, client: &Arc<Client>, channels: &[u64]) {
        let known: Vec<u32> = client.subscriptions().keys().copied().collect();
        let number = |channel: &u64| u32::try_from(*channel).unwrap_or(u32::MAX);
        let wanted: Vec<u32> = channels.iter().map(number).collect();
        let gone: Vec<u32> = known.iter().filter(|it| !wanted.contains(it)).copied().collect();
        let new = wanted.iter().filter(|it| !known.contains(it));
        let new = new.map(|id| Subscription { id: *id, channel_id: u64::from(*id) });
        // A channel that has gone meanwhile is no problem.
        let there = self.channels().1;
        let new: Vec<_> =
            new.filter(|it| there.iter().any(|channel| channel.id == it.channel_id)).collect();
        self.unsubscribe(client, &gone);
        self.subscribe(client, &new);
    }

    /// Adds a channel, by its id.
    pub(super) fn add_channel(&self, new: impl FnOnce(u64) -> Channel) -> Arc<Channel> {
        let mut state = self.state();
        state.next_channel += 1;
        let channel = Arc::new(new(state.next_channel));
        state.channels.insert(channel.id, channel.clone());
        state.changes += 1;
        if let Some(frame) = advertise([&*channel].into_iter()) {
            state.send(|it| it.protocol != Protocol::Page, &frame);
        }
        if let Err(why) = &channel.wire {
            let (name, why) = (printable(&channel.name), printable(why));
            self.event(format!("{name} is not shown in Foxglove's programs: {why}"));
        }
        channel
    }

    /// Removes channels, and the subscriptions to them.
    pub(super) fn remove_channels(&self, ids: &[u64]) {
        let mut state = self.state();
        let mut advertised = Vec::new();
        for id in ids {
            let Some(channel) = state.channels.remove(id) else { continue };
            if channel.wire.is_ok() {
                advertised.push(*id);
            }
            for (client, subscription) in state.targets.remove(id).unwrap_or_default() {
                client.subscriptions().remove(&subscription);
                client.queue.forget(*id);
            }
            state.changes += 1;
        }
        if !advertised.is_empty() {
            state.send(|it| it.protocol != Protocol::Page, &unadvertise(&advertised));
        }
        drop(state);
        self.wake();
    }

    /// The number of changes so far, and all channels.
    pub(super) fn channels(&self) -> (u64, Vec<Arc<Channel>>) {
        let state = self.state();
        (state.changes, state.channels.values().cloned().collect())
    }

    /// The number of changes of channels so far.
    pub(super) fn changes(&self) -> u64 {
        self.state().changes
    }

    /// Whether somebody gets the messages of a channel.
    pub(super) fn is_wanted(&self, channel: u64) -> bool {
        self.state().targets.contains_key(&channel)
    }

    /// Whether there is a client.
    pub(super) fn has_clients(&self) -> bool {
        !self.state().clients.is_empty()
    }

    pub(super) fn has_pages(&self) -> bool {
        self.state().clients.values().any(|it| it.protocol == Protocol::Page)
    }

    /// Gives a message to all who subscribe to its channel.
    pub(super) fn distribute(&self, message: Message) {
        // ORDER: Relaxed: counts that guard nothing.
        message.channel.came.fetch_add(1, Ordering::Relaxed);
        message.channel.lost.fetch_add(message.lost_before, Ordering::Relaxed);
        let message = Arc::new(message);
        let state = self.state();
        message.channel.keep(&message);
        for (client, subscription) in state.targets.get(&message.channel.id).into_iter().flatten() {
            client.queue.push(*subscription, message.clone());
        }
    }

    /// Tells clients of the playback of a file.
    pub(super) fn set_playback(&self, playback: PlaybackState) {
        let mut state = self.state();
        for client in state.clients.values() {
            if playback.did_seek {
                client.queue.forget_all();
            }
            client.playback(&playback);
        }
        state.playback =
            Some(PlaybackState { did_seek: false, request: String::new(), ..playback });
    }

    /// Tells clients the time in a file.
    pub(super) fn set_time(&self, now_ns: u64) {
        let mut state = self.state();
        if let Some(playback) = &mut state.playback {
            playback.now_ns = now_ns;
        }
        let frame = protocol::time(now_ns);
        for client in state.clients.values().filter(|it| it.protocol != Protocol::Page) {
            client.queue.push_time(frame.clone());
        }
    }

    /// The playback of a file.
    pub(super) fn playback(&self) -> Option<PlaybackState> {
        self.state().playback.clone()
    }

    pub(super) fn request_playback(&self, client: &Client, request: PlaybackRequest) {
        let sent = self.playback.get().map(|sender| sender.send(request));
        if !matches!(sent, Some(Ok(()))) {
            client.problem("there is no file to play");
        }
    }

    /// Tells clients who publishes and subscribes, as far as that has changed.
    pub(super) fn set_connections(&self, connections: Connections) {
        let mut state = self.state();
        if state.connections == connections {
            return;
        }
        let update = connections.update(&state.connections);
        // ORDER: Relaxed: it guards nothing; the lock orders it.
        state.send(|it| it.wants_connections.load(Ordering::Relaxed), &update);
        state.connections = connections;
    }

    pub(super) fn subscribe_connections(&self, client: &Client, wants: bool) {
        let state = self.state();
        // ORDER: Relaxed: as above.
        let did_want = client.wants_connections.swap(wants, Ordering::Relaxed);
        if wants && !did_want {
            client.queue.push_frame(state.connections.update(&Connections::default()));
        }
    }

    /// What pages show of all topics.
    pub(super) fn set_rates(&self, rates: &Json) {
        let mut state = self.state();
        state.rates = (state.rates.0 + 1, rates.to_string().into());
    }

    /// Their version, and the text.
    pub(super) fn rates(&self) -> (u64, Arc<str>) {
        self.state().rates.clone()
    }

    pub(super) fn count_sent(&self, messages: u64, bytes: usize) {
        // ORDER: Relaxed: counts that guard nothing.
        self.counts.messages.fetch_add(messages, Ordering::Relaxed);
        self.counts.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Of a client that may not connect.
    pub(super) fn count_refused(&self, address: SocketAddr, refusal: &Refusal) {
        // ORDER: Relaxed: as above.
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
        self.event(format!("{address} refused: {}", refusal.reason));
    }

    pub(super) fn summary(&self) -> Summary {
        let state = self.state();
        let mut losses = state.losses;
        for client in state.clients.values() {
            let of_client = client.losses();
            losses.client += of_client.client;
            losses.publisher += of_client.publisher;
        }
        // ORDER: Relaxed: as above.
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Summary {
            clients: state.next_client,
            refused: read(&self.counts.refused),
            messages: read(&self.counts.messages),
            bytes: read(&self.counts.bytes),
            dropped: losses.client,
            overwritten: losses.publisher,
        }
    }

    /// What has happened since the last call, a line each.
    pub(super) fn events(&self) -> Vec<String> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }

    pub(super) fn event(&self, line: String) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() < EVENTS_MAX {
            events.push_back(line);
        }
    }

    /// Says good-bye to all clients; those that do not listen are disconnected.
    pub(super) fn close(&self) {
        let clients: Vec<_> = {
            let mut state = self.state();
            state.is_closed = true;
            state.clients.values().cloned().collect()
        };
        for client in &clients {
            client.queue.push_frame(Frame::Raw(GOING_AWAY.to_vec()));
            client.queue.close();
        }
        let begin = Instant::now();
        while self.has_clients() && begin.elapsed() < CLOSE_LIMIT {
            std::thread::sleep(Duration::from_millis(5));
        }
        for client in &clients {
            let _ = client.stream.shutdown(Shutdown::Both);
        }
    }

    /// Makes the source look at what clients want.
    pub(super) fn wake(&self) {
        if let Some(wake) = self.wake.get() {
            wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The source sends what a topic keeps again once somebody subscribes again.
    fn forget_kept(&self, channel: u64) {
        if let Some(channel) = self.channels.get(&channel)
            && !self.targets.contains_key(&channel.id)
        {
            channel.forget();
        }
    }

    fn send(&self, to: impl Fn(&Client) -> bool, frame: &Frame) {
        for client in self.clients.values().filter(|it| to(it)) {
            client.queue.push_frame(frame.clone());
        }
    }
}

impl Client {
    /// Something that it asked for is not possible.
    pub(super) fn problem(&self, text: &str) {
        if self.protocol != Protocol::Page {
            self.queue.push_status(status(Level::Error, text, None));
        }
    }

    fn playback(&self, playback: &PlaybackState) {
        // Clients of the older protocol do not know it; the page asks.
        if self.protocol == Protocol::Sdk {
            self.queue.push_frame(protocol::playback_state(playback));
        }
    }

    pub(super) fn losses(&self) -> Losses {
        self.queue.losses().values().fold(Losses::default(), |sum, it| Losses {
            client: sum.client + it.client,
            publisher: sum.publisher + it.publisher,
        })
    }

    fn subscriptions(&self) -> MutexGuard<'_, BTreeMap<u32, u64>> {
        self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connections {
    /// What has changed since then.
    fn update(&self, before: &Connections) -> Frame {
        type Map = BTreeMap<String, Vec<String>>;
        let changed = |now: &Map, before: &Map, ids: &str| -> Vec<Json> {
            let is_new = |(name, it): &(&String, &Vec<String>)| before.get(*name) != Some(it);
            now.iter().filter(is_new).map(|(name, it)| json!({"name": name, ids: it})).collect()
        };
        let removed: Vec<&String> = (before.published.keys().chain(before.subscribed.keys()))
            .filter(|it| !self.published.contains_key(*it) && !self.subscribed.contains_key(*it))
            .collect();
        protocol::text(&json!({
            "op": "connectionGraphUpdate",
            "publishedTopics": changed(&self.published, &before.published, "publisherIds"),
            "subscribedTopics": changed(&self.subscribed, &before.subscribed, "subscriberIds"),
            "advertisedServices": [],
            "removedTopics": removed,
            "removedServices": [],
        }))
    }
}

/// Connections that are open at once.
const CLIENTS_MAX: usize = 32;
/// Of one client.
const SUBSCRIPTIONS_MAX: usize = 4096;
/// Lines that nobody has read.
const EVENTS_MAX: usize = 256;
/// How long clients may take for the end.
const CLOSE_LIMIT: Duration = Duration::from_millis(300);
/// A frame that closes a connection because the server ends.
const GOING_AWAY: [u8; 4] = [0x88, 2, 0x03, 0xe9];
