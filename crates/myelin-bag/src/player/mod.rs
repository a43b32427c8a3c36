//! Publishes what was recorded, at the times at which it was published.
//!
//! One thread reads ahead, one publishes: it waits for a time of the clock itself, and not for a
//! duration, so that lateness does not add up.

mod control;
mod error;
mod outlet;
mod read_ahead;
mod recording;
mod run;
mod timeline;
mod wake;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use myelin::{ClockPublisher, EndpointId, MatchInfo, MatchState, Node};

pub use self::control::{Control, Status};
pub use self::error::PlayError;
pub use self::recording::{RecordedTopic, Recording};
pub use self::run::{Lateness, Played};

use self::control::Shared;
use self::outlet::Outlet;
use self::read_ahead::Plan;
use self::timeline::Timeline;
use crate::reader::Time;
use crate::topics::Topics;

/// Settings of a [`Player`]. Made by [`Player::builder`].
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `open`"]
pub struct PlayerBuilder {
    node: Node,
    rate: f64,
    is_paused: bool,
    start_ns: Option<u64>,
    end_ns: Option<u64>,
    by: Time,
    is_loop: bool,
    topics: Topics,
    renamed: Vec<(String, String)>,
    waits: bool,
    clock_hz: Option<f64>,
}

/// Publishes a recording.
///
/// A topic gets a publisher like the one that was recorded: plain data has the type that the
/// metadata `myelin:layout` describes, so that the original programs match; messages of ROS 2 have
/// the names, settings and type hash that `rmw_myelin` gives them; anything else is bytes.
///
/// ```
/// # use myelin_bag::{Channel, MessageHead, Options, TopicFormat, Writer};
/// use myelin_bag::{Player, Recording};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("run.mcap");
/// # let mut writer = Writer::create(&path, Options::default())?;
/// # let format = TopicFormat::new(&myelin_bag::Schema::layout("f64"));
/// # let schema = writer.add_schema(&format.schema().as_schema())?;
/// # let channel = writer.add_channel(&format.channel("temperature", schema))?;
/// # for number in 0..3_u64 {
/// #     let (log_ns, publish_ns) = (number * 1_000, number * 1_000);
/// #     let head = MessageHead { channel, sequence: 0, log_ns, publish_ns };
/// #     let sample = (number as f64).to_ne_bytes();
/// #     writer.write(&head, &format.message(&sample, &mut Vec::new()))?;
/// # }
/// # writer.finish()?;
/// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
/// let mut subscriber = node.topic::<f64>("temperature").subscriber()?;
///
/// let recording = Recording::open([&path])?;
/// let mut player = Player::builder(&node).rate(2.0).open(recording)?;
/// let played = player.run()?;
///
/// assert_eq!(played.messages, 3);
/// assert_eq!(*subscriber.take()?.expect("the first sample"), 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Player {
    recording: Recording,
    /// By the index of the topic in the recording.
    outlets: Vec<Option<Outlet>>,
    refused: Vec<PlayError>,
    clock: Option<(ClockPublisher, u64)>,
    plan: Plan,
    shared: Arc<Shared>,
    timeline: Timeline,
}

impl Player {
    /// Settings of a player that publishes by this node.
    pub fn builder(node: &Node) -> PlayerBuilder {
        PlayerBuilder {
            node: node.clone(),
            rate: 1.0,
            is_paused: false,
            start_ns: None,
            end_ns: None,
            by: Time::Publish,
            is_loop: false,
            topics: Topics::default(),
            renamed: Vec::new(),
            waits: false,
            clock_hz: None,
        }
    }

    /// To pause, to seek and to stop it from other threads.
    pub fn control(&self) -> Control {
        Control(Arc::clone(&self.shared))
    }

    /// The recording.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The topics that are left out because they cannot be published here, with the reasons.
    pub fn refused(&self) -> &[PlayError] {
        &self.refused
    }

    /// The names under which topics are published.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        self.outlets.iter().flatten().map(Outlet::name)
    }

    /// How many subscribers a topic has now, by its name here; all topics together with `None`.
    pub fn matched(&self, topic: Option<&str>) -> usize {
        let outlets = self.outlets.iter().flatten();
        let of_name = |it: &&Outlet| topic.is_none_or(|name| it.name() == name);
        outlets.filter(of_name).map(Outlet::matched).sum()
    }

    /// Waits until a topic, or all topics together, have so many subscribers. False if the time is
    /// over, or the player is [stopped](Control::stop).
    pub fn wait_for_subscribers(&self, topic: Option<&str>, count: usize, limit: Duration) -> bool {
        let begin = Instant::now();
        while self.matched(topic) < count {
            if begin.elapsed() >= limit || self.shared.is_stopped() {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }
}

impl PlayerBuilder {
    /// Plays so many times as fast as it was recorded; by default 1.
    pub fn rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// Begins paused.
    pub fn paused(mut self, is_paused: bool) -> Self {
        self.is_paused = is_paused;
        self
    }

    /// Begins at this time, in ns since 1970, by default with the first message. The last samples
    /// that late joiners would have got at this time are published first.
    pub fn start_ns(mut self, start_ns: u64) -> Self {
        self.start_ns = Some(start_ns);
        self
    }

    /// Ends before this time, in ns since 1970; by default with the last message.
    pub fn end_ns(mut self, end_ns: u64) -> Self {
        self.end_ns = Some(end_ns);
        self
    }

    /// Which time counts: by default that of publication. Of a recording that
    /// [lacks](Recording::lacks_publish_times) these, it is that of the record.
    pub fn by(mut self, time: Time) -> Self {
        self.by = time;
        self
    }

    /// Begins again at the end.
    pub fn repeat(mut self, is_loop: bool) -> Self {
        self.is_loop = is_loop;
        self
    }

    /// Only topics of this name or pattern (`*`, `?`); several calls add up. By default all.
    pub fn topic(mut self, pattern: &str) -> Self {
        self.topics.wanted.push(pattern.to_owned());
        self
    }

    /// No topic of this name or pattern.
    pub fn exclude(mut self, pattern: &str) -> Self {
        self.topics.unwanted.push(pattern.to_owned());
        self
    }

    /// Publishes a topic under another name.
    pub fn rename(mut self, from: &str, to: &str) -> Self {
        self.renamed.push((from.to_owned(), to.to_owned()));
        self
    }

    /// Waits for subscribers that are reliable, however slow they are: the whole playback is then as
    /// slow as the slowest. By default nobody is waited for, as a late subscriber loses samples.
    pub fn wait_for_slow(mut self, waits: bool) -> Self {
        self.waits = waits;
        self
    }

    /// Publishes the time of the recording on `/clock` so many times a second, for programs with a
    /// [simulated clock](myelin::Node::simulated_clock). A topic `/clock` of the recording is left
    /// out.
    pub fn clock_hz(mut self, hz: f64) -> Self {
        self.clock_hz = Some(hz);
        self
    }

    /// Opens the recording's publishers.
    ///
    /// # Errors
    /// A pattern that matches no topic; nothing that can be played; a rate that is not above 0; a
    /// file that cannot be read.
    pub fn open(&self, recording: Recording) -> Result<Player, PlayError> {
        check_number("the rate", self.rate, RATE_MAX)?;
        if let Some(hz) = self.clock_hz {
            check_number("the rate of the clock", hz, CLOCK_HZ_MAX)?;
        }
        let selected = self.select(&recording)?;
        let names = self.names(&recording)?;
        // A fresh node knows nobody yet: this waits until the others have announced themselves.
        self.node.discover("*").changes()?;
        let mut outlets: Vec<Option<Outlet>> = Vec::new();
        let mut refused = Vec::new();
        for (at, topic) in recording.topics().iter().enumerate() {
            let opened = selected.contains(&at).then(|| {
                let name = names.get(&*topic.name).copied().unwrap_or(&topic.name);
                Outlet::open(&self.node, topic, name, self.waits)
            });
            outlets.push(opened.transpose().unwrap_or_else(|error| {
                refused.push(error);
                None
            }));
        }
        let by = match self.by {
            Time::Publish if recording.lacks_publish_times()? => Time::Log,
            by => by,
        };
        let (begin_ns, end_ns) = recording.times(by)?;
        self.wait_for_matches(&outlets)?;
        let start_ns = self.start_ns.unwrap_or(begin_ns);
        let of_outlet = |(at, it): (usize, &Option<Outlet>)| it.as_ref().map(|it| (at, it.latched));
        let opened = outlets.iter().enumerate().filter_map(of_outlet);
        let plan = Plan {
            topics: opened.clone().map(|(at, _)| at).collect(),
            latched: opened.filter(|(_, latched)| *latched > 0).collect(),
            start_ns,
            end_ns: self.end_ns,
            by,
            is_loop: self.is_loop,
        };
        let clock = self.clock_hz.map(|hz| {
            let period_ns = (1e9 / hz) as u64;
            self.node.clock_publisher().map(|publisher| (publisher, period_ns))
        });
        let mut timeline = Timeline::new(self.rate);
        timeline.seek(start_ns, myelin::now());
        timeline.set_paused(self.is_paused, myelin::now());
        let end_ns = self.end_ns.unwrap_or(u64::MAX).min(end_ns).max(start_ns);
        let shared = Arc::new(Shared::new(timeline.clone(), start_ns, end_ns));
        let clock = clock.transpose()?;
        Ok(Player { recording, outlets, refused, clock, plan, shared, timeline })
    }

    /// Waits until subscribers that are there are matched, so that they get the first messages; one
    /// whose process does not answer is not waited for.
    fn wait_for_matches(&self, outlets: &[Option<Outlet>]) -> Result<(), PlayError> {
        let own: BTreeSet<EndpointId> = outlets.iter().flatten().map(Outlet::id).collect();
        let begin = Instant::now();
        while begin.elapsed() < MATCH_LIMIT {
            let graph = self.node.graph()?;
            let is_pending = |it: &MatchInfo| matches!(it.state, MatchState::Pending);
            if !graph.matches.iter().any(|it| own.contains(&it.endpoint) && is_pending(it)) {
                break;
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// The topics to be played.
    fn select(&self, recording: &Recording) -> Result<BTreeSet<usize>, PlayError> {
        let names = || recording.topics().iter().map(|topic| &*topic.name);
        let mut chosen = self.topics.choose_of_robot(names())?;
        let is_clock_ours = self.clock_hz.is_some();
        if is_clock_ours && !self.topics.wanted.iter().any(|wanted| wanted == CLOCK) {
            chosen.remove(CLOCK);
        }
        let selected = names().enumerate().filter(|(_, name)| chosen.contains(name));
        let selected: BTreeSet<usize> = selected.map(|(at, _)| at).collect();
        if selected.is_empty() { Err(PlayError::Nothing) } else { Ok(selected) }
    }

    /// The names under which renamed topics are published, by the names in the recording.
    fn names<'a>(
        &'a self,
        recording: &'a Recording,
    ) -> Result<BTreeMap<&'a str, &'a str>, PlayError> {
        let mut names = BTreeMap::new();
        for (from, to) in &self.renamed {
            let from = Topics { wanted: vec![from.clone()], ..Topics::default() };
            let all = recording.topics().iter().map(|topic| &*topic.name);
            names.extend(from.choose(all)?.into_iter().map(|from| (from, &**to)));
        }
        Ok(names)
    }
}

fn check_number(field: &'static str, value: f64, max: f64) -> Result<(), PlayError> {
    if value > 0.0 && value <= max {
        return Ok(());
    }
    let remedy = "use a number above 0, and at most 1,000,000 (of the clock: 10,000)";
    Err(PlayError::Setting { field, value: value.to_string(), remedy })
}

/// The topic of the time, which a player may publish itself.
const CLOCK: &str = "/clock";
const RATE_MAX: f64 = 1e6;
const CLOCK_HZ_MAX: f64 = 1e4;
const MATCH_LIMIT: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(10);
