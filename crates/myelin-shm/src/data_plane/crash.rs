//! A publisher or a subscriber, with the code that ships, that ends at any of its stores, beginning
//! when it is made and matched: it dies like a killed process, or the other side overtakes it
//! before it goes on. The remaining state must be right: readers take whole samples in order or
//! learn what they miss, the nodes' clean-up frees everything, and the next endpoint goes on.
//!
//! A world follows from its seed, and is made again for each store. `SEED` is the first world's
//! seed, `MYELIN_WORLDS` the number of worlds; a failure prints the line that runs its world again.

#[path = "../../tests/support/mod.rs"]
mod support;

use std::cell::RefCell;
use std::mem::take;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use self::support::{matched, offered, topic};
use crate::data_plane::publication::{self, PublicationState, SlotSegment, Writer, address};
use crate::data_plane::remote_publisher::RemotePublisher;
use crate::data_plane::remote_subscriber;
use crate::data_plane::subscription::{self, Asleep, RawSample, Reader};
use crate::error::Error;
use crate::layout::{
    PublicationHead, SubscriptionHead, publication_bytes, subscription_begin, subscription_bytes,
};
use crate::os::segment::{Segment, Writers};
use crate::sync::steps::{dies, elsewhere, interrupted};
use crate::sync::{Ordering, Step, leave_out};
use crate::topic::{EndpointId, Late, PublisherQos, Reliability, SubscriberQos};
use crate::waiting::wait::now_ns;
use crate::waiting::wake_table::WakeTable;

/// Numbers that follow from a seed (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }
}

/// The payload of a publisher's sample: in its cell or in a slot.
fn payload(publisher: EndpointId, sequence: u64) -> Vec<u8> {
    let mut random = Random(publisher << 32 | (sequence + 1));
    let length = [8, 104, 120, 250][random.below(4) as usize];
    (0..length).map(|_| random.below(256) as u8).collect()
}

/// A subscriber with the samples that it has to see.
struct Subscribed {
    reader: Reader,
    publication: Option<Arc<PublicationState>>,
    held: Vec<RawSample>,
    /// The next sample of its publisher: it has taken all earlier ones, or learnt that they were
    /// lost.
    next: u64,
    asleep: Option<Asleep>,
}

impl Subscribed {
    fn new(id: EndpointId, qos: SubscriberQos) -> Subscribed {
        let table = WakeTable::create().unwrap();
        let (reader, _) = Reader::create(id, &topic(), qos, &table).unwrap();
        Subscribed { reader, publication: None, held: Vec::new(), next: 0, asleep: None }
    }

    /// Its first sample follows from the number published by then.
    fn begin(&mut self, publication: &Arc<PublicationState>) {
        matched(publication, self.reader.shared());
        self.expect_of(publication);
    }

    /// Expects the samples of a publisher that it has just been matched with.
    fn expect_of(&mut self, publication: &Arc<PublicationState>) {
        let (own, qos) = (self.reader.shared().qos(), publication.qos());
        let depth = match own.reliability {
            Reliability::Reliable => qos.depth,
            Reliability::BestEffort => own.depth.min(qos.depth),
        };
        let transient_local = qos.transient_local.min(own.transient_local).min(depth);
        self.next = publication.published().saturating_sub(u64::from(transient_local));
        self.publication = Some(publication.clone());
    }

    /// Maps new slot segments, as its node would pass them on.
    fn map_segments(&self) {
        let Some(publication) = &self.publication else { return };
        for SlotSegment { number, slot_bytes, slots, fd } in publication.segments() {
            let (id, fd) = (publication.id(), fd.try_clone().unwrap());
            self.reader
                .shared()
                .connections
                .map_segment(id, number, slot_bytes, slots, fd)
                .unwrap();
        }
    }

    /// The next sample, whole and in order, or `None`.
    fn take(&mut self) -> Option<RawSample> {
        self.map_segments();
        let taken = match self.reader.take() {
            Err(Error::TooManyHeld { .. }) => {
                self.held.clear();
                self.reader.take()
            }
            taken => taken,
        };
        let taken = taken.expect("nobody is corrupt")?;
        assert_eq!(taken.sequence, self.next + taken.lost_before, "order, or what was lost");
        check(&taken);
        self.next = taken.sequence + 1;
        Some(taken)
    }

    fn take_all(&mut self) {
        while self.take().is_some() {}
    }

    fn check_held(&self) {
        self.held.iter().for_each(check);
    }

    /// One of a subscriber's actions.
    fn act(&mut self, choice: u64) {
        match choice {
            0 | 1 => drop(self.take()),
            2..=4 => {
                let taken = self.take();
                self.held.extend(taken);
            }
            5 => drop(self.held.pop()),
            6 => {
                let clone = self.held.last().cloned();
                self.held.extend(clone);
            }
            _ => {
                self.asleep = self.reader.fall_asleep();
                self.reader.shared().sleeper.wake_up();
            }
        }
    }
}

fn check(taken: &RawSample) {
    assert_eq!(taken.bytes(), payload(taken.publisher, taken.sequence), "a torn sample");
}

/// One of a publisher's actions. If its memory limit forbids it, the publisher gets an error.
fn publish(writer: &mut Writer, id: EndpointId, published: &mut u64, choice: u64) {
    let payload = payload(id, *published);
    let done = match choice {
        0..=4 => writer.publish_copy(&payload),
        5..=7 => writer.loan(payload.len() as u64).and_then(|mut loan| {
            // SAFETY: its writer lives.
            unsafe { loan.bytes_mut() }.copy_from_slice(&payload);
            // SAFETY: the loan is this writer's.
            unsafe { writer.publish(loan) }
        }),
        8 => match writer.loan(200) {
            // SAFETY: the loan is this writer's.
            Ok(loan) => return unsafe { writer.discard(loan) },
            Err(error) => Err(error),
        },
        _ => return writer.assert_liveliness().unwrap(),
    };
    match done {
        Ok(done) => {
            assert_eq!(done.sequence, *published);
            *published += 1;
        }
        Err(Error::MemoryLimit { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

/// A publisher and one to three subscribers, in the middle of their work.
struct World {
    random: Random,
    writer: Writer,
    publication: Arc<PublicationState>,
    published: u64,
    subscribers: Vec<Subscribed>,
}

const PUBLISHER: EndpointId = 1;
/// The publisher before them.
const PREVIOUS: EndpointId = 8;
/// The endpoint that comes when one of the others has gone.
const NEXT: EndpointId = 9;

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let depth = 1 + random.below(4) as u32;
        let transient_local = random.below(u64::from(depth) + 1) as u32;
        let reliabilities = [Reliability::BestEffort, Reliability::Reliable];
        let qos = PublisherQos {
            depth,
            transient_local,
            reliability: reliabilities[random.below(2) as usize],
            // No subscriber has time to catch up.
            block_max: Duration::ZERO,
            late: Late::PassOver,
            memory_max: [16 * 256, 1 << 20][random.below(2) as usize],
            ..PublisherQos::default()
        };
        let (writer, publication) = Writer::create(PUBLISHER, &topic(), qos).unwrap();
        let mut world =
            World { random, writer, publication, published: 0, subscribers: Vec::new() };
        let count = 1 + world.random.below(3);
        for number in 0..count {
            world.publish_some();
            let qos = SubscriberQos {
                depth: 1 + world.random.below(6) as u32,
                transient_local: world.random.below(5) as u32,
                reliability: reliabilities[world.random.below(2) as usize],
                held_max: 1 + world.random.below(4) as u32,
                publishers_max: 1,
                ..SubscriberQos::default()
            };
            let mut subscriber = Subscribed::new(2 + number, qos);
            subscriber.begin(&world.publication);
            world.subscribers.push(subscriber);
        }
        world.publish_some();
        if world.random.below(2) == 0 {
            let sleeper = world.subscribers.last_mut().expect("there is one");
            sleeper.take_all();
            sleeper.asleep = sleeper.reader.fall_asleep();
        }
        world
    }

    /// Publishes some samples while subscribers act.
    fn publish_some(&mut self) {
        for _ in 0..self.random.below(8) {
            self.publish(1);
            for at in 0..self.subscribers.len() {
                let choice = self.random.below(16);
                self.subscribers[at].act(choice.min(8));
            }
        }
    }

    fn publish(&mut self, count: u64) {
        for _ in 0..count {
            let choice = self.random.below(10);
            publish(&mut self.writer, PUBLISHER, &mut self.published, choice);
        }
    }

    /// Each has taken all samples, or learnt what it lost, and holds none.
    fn all_have_all(&mut self) {
        for subscriber in &mut self.subscribers {
            subscriber.take_all();
            assert_eq!(subscriber.next, self.published, "all samples, or what was lost");
            subscriber.check_held();
            subscriber.held.clear();
        }
    }

    /// Nobody reads a slot: all are free except those of the history.
    fn no_slot_is_lost(&mut self) {
        let (counts, kept) =
            (self.writer.slot_counts(), self.publication.qos().transient_local as usize);
        assert!(counts.total - counts.free <= kept, "slots are lost");
    }

    /// Goes on before the end of a dead subscriber's node is known, and after it; then another
    /// takes its place.
    fn goes_on_without(&mut self, dead: EndpointId) {
        self.publish(2);
        assert!(self.publication.detach(dead).is_none(), "nobody waits for it");
        self.publish(8);
        self.all_have_all();
        self.no_slot_is_lost();
        let qos = SubscriberQos { transient_local: 2, ..SubscriberQos::default() };
        let mut next = Subscribed::new(NEXT, qos);
        next.begin(&self.publication);
        self.subscribers.push(next);
        self.publish(4);
        self.all_have_all();
        self.no_slot_is_lost();
    }

    /// Goes on with the next publisher of the topic, from which all take: connections are free
    /// again.
    fn goes_on_with_another(mut subscribers: Vec<Subscribed>) {
        let (mut writer, publication) =
            Writer::create(NEXT, &topic(), PublisherQos::default()).unwrap();
        for subscriber in &mut subscribers {
            let shared = subscriber.reader.shared();
            assert_eq!(shared.borrowed(), 0, "nothing is held");
            assert!(shared.has_room_for(NEXT), "there is no room for the next publisher");
            subscriber.begin(&publication);
        }
        for sequence in 0..4 {
            writer.publish_copy(&payload(NEXT, sequence)).unwrap();
        }
        for subscriber in &mut subscribers {
            subscriber.take_all();
            assert_eq!(subscriber.next, 4, "the next publisher's samples");
        }
        let all: Vec<_> = subscribers.iter().map(|it| it.reader.shared().id()).collect();
        drop(subscribers);
        all.into_iter().for_each(|subscriber| _ = publication.detach(subscriber));
        let counts = writer.slot_counts();
        assert_eq!(counts.free, counts.total, "slots are lost");
    }
}

/// The publisher dies at step `at`. False if it has no such step.
fn publisher_dies(seed: u64, at: u64) -> bool {
    let mut world = World::new(seed);
    let has_died = dies(at, || world.publish(3)).is_none();
    // The publisher's remaining private memory is dropped at the end, after all looks.
    let World { writer: _dead, published, mut subscribers, .. } = world;
    for subscriber in &mut subscribers {
        let shared = subscriber.reader.shared().clone();
        shared.publisher_gone(PUBLISHER);
        if let Some(asleep) = subscriber.asleep.take() {
            assert!(shared.sleeper.sleep(asleep.until(now_ns())), "it sleeps on");
            shared.sleeper.wake_up();
        }
        subscriber.take_all();
        let is_all = (published..=published + u64::from(has_died)).contains(&subscriber.next);
        assert!(is_all, "{} of {published} samples", subscriber.next);
        subscriber.check_held();
        subscriber.held.clear();
        // It notices the end.
        subscriber.take_all();
    }
    World::goes_on_with_another(subscribers);
    has_died
}

/// The publisher is overtaken at step `at` by its subscribers, which take all samples.
fn publisher_is_overtaken(seed: u64, at: u64) -> bool {
    let mut world = World::new(seed);
    let subscribers = Rc::new(RefCell::new(take(&mut world.subscribers)));
    let overtaking = subscribers.clone();
    let overtake = move || overtaking.borrow_mut().iter_mut().for_each(Subscribed::take_all);
    let ((), has_come) = interrupted(at, Box::new(overtake), || world.publish(3));
    for subscriber in &mut *subscribers.borrow_mut() {
        subscriber.take_all();
        assert_eq!(subscriber.next, world.published, "all samples, or what was lost");
        subscriber.check_held();
    }
    has_come
}

/// A subscriber's last actions.
fn last_acts(random: &mut Random) -> [u64; 6] {
    [(); 6].map(|()| random.below(8))
}

/// The first subscriber dies at step `at`.
fn subscriber_dies(seed: u64, at: u64) -> bool {
    let mut world = World::new(seed);
    let mut dying = world.subscribers.remove(0);
    let acts = last_acts(&mut world.random);
    let has_died = dies(at, || acts.into_iter().for_each(|choice| dying.act(choice))).is_none();
    let id = dying.reader.shared().id(); // dropped at the end, after all looks
    world.goes_on_without(id);
    has_died
}

/// The first subscriber is overtaken at step `at` by its publisher, which goes on to use every slot
/// again.
fn subscriber_is_overtaken(seed: u64, at: u64) -> bool {
    let mut world = World::new(seed);
    let mut overtaken = world.subscribers.remove(0);
    let acts = last_acts(&mut world.random);
    let world = Rc::new(RefCell::new(world));
    let overtaking = world.clone();
    let overtake = move || overtaking.borrow_mut().publish(40);
    let act = || acts.into_iter().for_each(|choice| overtaken.act(choice));
    let ((), has_come) = interrupted(at, Box::new(overtake), act);
    overtaken.check_held();
    overtaken.take_all();
    assert_eq!(overtaken.next, world.borrow().published, "all samples, or what was lost");
    has_come
}

/// A subscriber that has read another publisher to the end.
fn experienced(random: &mut Random, id: EndpointId) -> Subscribed {
    let qos = SubscriberQos {
        depth: 1 + random.below(6) as u32,
        transient_local: random.below(5) as u32,
        publishers_max: 1,
        ..SubscriberQos::default()
    };
    let mut subscriber = Subscribed::new(id, qos);
    let (mut writer, publication) =
        Writer::create(PREVIOUS, &topic(), PublisherQos::default()).unwrap();
    subscriber.begin(&publication);
    for sequence in 0..200 {
        writer.publish_copy(&payload(PREVIOUS, sequence)).unwrap();
    }
    subscriber.take_all();
    subscriber.reader.shared().publisher_gone(PREVIOUS);
    subscriber.take_all();
    assert!(subscriber.reader.shared().has_room_for(PUBLISHER), "it has been read to the end");
    subscriber.publication = None;
    subscriber
}

/// A publisher dies at step `at` while it is made, matched and publishes its first samples.
fn publisher_dies_at_first(seed: u64, at: u64) -> bool {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let count = 1 + random.below(3);
    let mut subscribers: Vec<_> =
        (0..count).map(|number| experienced(&mut random, 2 + number)).collect();
    let depth = 1 + random.below(4) as u32;
    let transient_local = random.below(u64::from(depth) + 1) as u32;
    let (mut published, mut begun) = (0, 0);
    let qos = PublisherQos { depth, transient_local, ..PublisherQos::default() };
    let made = dies(at, || {
        let (mut writer, publication) = Writer::create(PUBLISHER, &topic(), qos).unwrap();
        for subscriber in &mut subscribers {
            publish(&mut writer, PUBLISHER, &mut published, random.below(10));
            let shared = subscriber.reader.shared().clone();
            // Every reader of it keeps its memory.
            subscriber.publication = Some(publication.clone());
            let start = publication.attach(elsewhere(|| offered(&publication, &shared))).unwrap();
            elsewhere(|| shared.start(PUBLISHER, start));
            subscriber.expect_of(&publication);
            begun += 1;
            publish(&mut writer, PUBLISHER, &mut published, random.below(10));
        }
        (writer, publication)
    });
    for (number, subscriber) in subscribers.iter_mut().enumerate() {
        let shared = subscriber.reader.shared().clone();
        if number < begun {
            shared.publisher_gone(PUBLISHER);
            subscriber.take_all();
            let is_all = (published..=published + 1).contains(&subscriber.next);
            assert!(is_all, "{} of {published} samples", subscriber.next);
            subscriber.take_all();
        } else {
            shared.connections.publisher_never_came(PUBLISHER);
            assert!(subscriber.take().is_none(), "of whom?");
        }
    }
    World::goes_on_with_another(subscribers);
    made.is_none()
}

/// A subscriber dies at step `at` while it is made, matched and takes its first samples.
fn subscriber_dies_at_first(seed: u64, at: u64) -> bool {
    let mut world = World::new(seed);
    let transient_local = world.random.below(5) as u32;
    let acts = last_acts(&mut world.random);
    let mut published = world.published;
    let (writer, publication) = (&mut world.writer, &world.publication);
    let made = dies(at, || {
        let qos = SubscriberQos { transient_local, ..SubscriberQos::default() };
        let mut dying = Subscribed::new(NEXT, qos);
        let shared = dying.reader.shared().clone();
        let view = offered(publication, &shared);
        let start = elsewhere(|| publication.attach(view).unwrap());
        shared.start(PUBLISHER, start);
        dying.expect_of(publication);
        elsewhere(|| publish(writer, PUBLISHER, &mut published, 0));
        acts.into_iter().for_each(|choice| dying.act(choice));
        dying
    });
    world.published = published;
    let has_died = made.is_none();
    world.goes_on_without(NEXT);
    has_died
}

/// A subscriber is overtaken at step `at` while it is matched and takes its first samples, by the
/// publisher, which goes on to use every slot again.
fn subscriber_is_overtaken_at_first(seed: u64, at: u64) -> bool {
    let mut world = World::new(seed);
    let mut overtaken = experienced(&mut world.random, NEXT);
    let publication = world.publication.clone();
    let world = Rc::new(RefCell::new(world));
    let overtaking = world.clone();
    let overtake = move || {
        let mut world = overtaking.borrow_mut();
        for _ in 0..40 {
            world.publish(1);
            // Only this subscriber keeps slots from being free, and every free slot is used next.
            world.all_have_all();
            world.writer.slot_counts();
        }
    };
    let begin = || {
        let shared = overtaken.reader.shared().clone();
        let view = offered(&publication, &shared);
        let start = elsewhere(|| publication.attach(view).unwrap());
        elsewhere(|| overtaken.expect_of(&publication));
        shared.start(PUBLISHER, start);
        overtaken.take_all();
    };
    let ((), has_come) = interrupted(at, Box::new(overtake), begin);
    overtaken.take_all();
    assert_eq!(overtaken.next, world.borrow().published, "all samples, or what was lost");
    has_come
}

/// A process that makes a publication dies at step `at`: a process with its memory finds a whole
/// head, or none.
fn publication_is_half_made(seed: u64, at: u64) -> bool {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let depth = 1 + random.below(9) as u32;
    let qos = PublisherQos { depth, ..PublisherQos::default() };
    let bytes = publication_bytes(u64::from(depth) + 1);
    let (segment, fd) = Segment::create("myelin-test", bytes, Writers::Owner).unwrap();
    // SAFETY: atomics and padding, in a segment that was made for them.
    let head: &PublicationHead = unsafe { segment.at(0) };
    let made = dies(at, || publication::write_head(head, PUBLISHER, &topic(), &qos));
    let mapped = RemotePublisher::map(PUBLISHER, &topic(), 0, fd);
    is_whole_or_none(made.is_some(), mapped.map(drop))
}

/// The same for a subscription.
fn subscription_is_half_made(seed: u64, at: u64) -> bool {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let held_max = 1 + random.below(9) as u32;
    let qos = SubscriberQos { held_max, ..SubscriberQos::default() };
    let begin = subscription_begin(NEXT);
    let bytes = begin + subscription_bytes(u64::from(held_max), u64::from(qos.publishers_max));
    let (segment, _fd) = Segment::create("myelin-test", bytes, Writers::Owner).unwrap();
    let segment = segment.beginning_at(begin).unwrap();
    // SAFETY: as above.
    let head: &SubscriptionHead = unsafe { segment.at(0) };
    let made = dies(at, || subscription::write_head(head, NEXT, &topic(), &qos, bytes, 3));
    let mapped = remote_subscriber::check(&segment, NEXT, &topic(), 0);
    is_whole_or_none(made.is_some(), mapped.map(drop))
}

/// Checks the view of a head that was made completely or not; returns whether it was not.
fn is_whole_or_none(is_made: bool, found: Result<(), Error>) -> bool {
    match found {
        Err(Error::PeerCorrupt { what }) => {
            assert!(!is_made && what.starts_with("a segment that is no"), "{what}");
        }
        found => assert!(is_made && found.is_ok(), "half a head"),
    }
    !is_made
}

type Case = fn(u64, u64) -> bool;

const CASES: [(&str, Case); 9] = [
    ("a publication is half made", publication_is_half_made),
    ("a subscription is half made", subscription_is_half_made),
    ("a publisher dies at first", publisher_dies_at_first),
    ("a subscriber dies at first", subscriber_dies_at_first),
    ("a subscriber is overtaken at first", subscriber_is_overtaken_at_first),
    ("a publisher dies", publisher_dies),
    ("a publisher is overtaken", publisher_is_overtaken),
    ("a subscriber dies", subscriber_dies),
    ("a subscriber is overtaken", subscriber_is_overtaken),
];

/// The number of steps if all went well, or the first step at which something failed.
fn outcome(seed: u64, case: Case) -> Result<u64, String> {
    let run = |at| catch_unwind(AssertUnwindSafe(|| case(seed, at)));
    for at in 0..STEPS_MAX {
        match run(at) {
            Ok(true) => {}
            Ok(false) => return Ok(at),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or(panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                return Err(format!("at step {at}: {}", text.unwrap_or_default()));
            }
        }
    }
    panic!("it does not end")
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("it is a number"))
}

#[test]
fn memory_is_consistent_after_a_crash_at_every_store() {
    let first = variable("SEED").unwrap_or(1);
    let worlds = variable("MYELIN_WORLDS").unwrap_or(WORLDS);
    for (name, case) in CASES {
        let steps = (first..first + worlds).map(|seed| {
            outcome(seed, case).unwrap_or_else(|finding| {
                panic!(
                    "{name}, {finding}\nagain: SEED={seed} MYELIN_WORLDS=1 cargo test -p \
                     myelin-shm --lib crash::"
                )
            })
        });
        let steps: u64 = steps.sum();
        println!("{name}: {worlds} worlds, {steps} steps");
        assert!(steps > worlds, "{name}: hardly anything has been tried");
    }
}

#[test]
fn a_missing_step_is_detected() {
    const MUTANTS: [Step; 9] = [
        Step::Magic,
        Step::NotBegun,
        Step::P2,
        Step::P5,
        Step::P6,
        Step::R3,
        Step::T6,
        Step::Gone,
        Step::Finished,
    ];
    for step in MUTANTS {
        leave_out(Some(step));
        let found = (1..=WORLDS).find_map(|seed| {
            CASES.iter().find_map(|(name, case)| {
                let finding = outcome(seed, *case).err()?;
                Some(format!("world {seed}, {name}, {finding}"))
            })
        });
        leave_out(None);
        println!("{step:?}: {}", found.unwrap_or_else(|| panic!("{step:?} is not found out")));
    }
}

const WORLDS: u64 = 100;
/// More than anything here needs.
const STEPS_MAX: u64 = 2_000;

/// The publisher's thread is about to sleep for the subscriber, and does not run: it has a low
/// priority, or its process is stopped. The node's thread goes on.
#[test]
fn dropping_a_subscriber_does_not_wait_for_its_publisher() {
    let qos = PublisherQos { reliability: Reliability::Reliable, ..PublisherQos::default() };
    let (_writer, publication) = Writer::create(PUBLISHER, &topic(), qos).unwrap();
    let mut subscriber = Subscribed::new(NEXT, SubscriberQos::default());
    subscriber.begin(&publication);
    let mut views = Vec::new();
    publication.views_into(&mut views);
    publication.waits_for.store(address(&views[0]), Ordering::Relaxed);
    let detached = publication.detach(NEXT).expect("it is waited for");
    assert!(!detached.is_noticed(&publication));
    // It comes and goes again meanwhile, as often as it likes: one is noticed for all.
    subscriber.reader.shared().publisher_gone(PUBLISHER);
    assert!(subscriber.reader.take().unwrap().is_none());
    subscriber.begin(&publication);
    assert!(publication.detach(NEXT).is_none());
    publication.waits_for.store(0, Ordering::Relaxed);
    assert!(detached.is_noticed(&publication));
}
