//! The shipping protocol, as many nodes in one thread, through crashes, restarts, stops, shortages
//! of descriptors and memory, and any order of events on different links. When nothing happens any
//! more, `checks` verifies the final state; `memory` verifies each step.
//!
//! A world follows from its seed. `SEED` is the first world's seed, `MYELIN_WORLDS` the number of
//! worlds; a failure prints the line that runs its world again.

mod checks;
mod creations;
mod memory;
mod world;

use std::panic::AssertUnwindSafe;

use self::memory::Token;
use self::world::{World, record_of};
use crate::control_plane::message::ControlMessage;
use crate::control_plane::protocol::matches::PAUSE_NS_MIN;
use crate::control_plane::protocol::{Action, Input, Pair};
use crate::event::Event;
use crate::limits::MESSAGE_SCHEMA_BYTES_MAX;
use crate::record::{Attributes, Matching, Schema};
use crate::topic::Topic;

/// Faults that a protocol could have, to show that the simulation finds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutant {
    /// Its publishers keep looking at subscribers that have gone.
    ForgetsToDetach,
    /// A subscriber's connection is never free again.
    ForgetsToRelease,
    /// Links stay open that the other side does not know.
    ForgetsToClose,
    /// A side that was refused because of a shortage is not requested again.
    ForgetsToRequestOffer,
    /// A failed attempt is not repeated.
    HasNoClock,
    /// A side that gets no refusal waits for ever.
    ForgetsToDecline,
    /// A match is withdrawn without a message.
    ForgetsToWithdraw,
    /// Memory that samples lie in is missing.
    ForgetsSegments,
    /// Peers keep endpoints that have gone.
    ForgetsToRetract,
    /// Messages that waited for room are never sent.
    ForgetsToDrain,
    /// An answer has no end.
    ForgetsToEndAnswers,
    /// A new endpoint is used at once.
    WaitsForNobody,
    /// Endpoints are announced without their attributes.
    ForgetsAttributes,
    /// Endpoints are announced as if they matched with any settings.
    ForgetsThePolicy,
    /// The other side gets no reason.
    ForgetsTheReason,
    /// The memory of some publishers is not requested.
    ForgetsToObserve,
    /// Observers keep the memory of publishers that have gone.
    ForgetsToUnobserve,
}

impl Mutant {
    /// Whether it leaves out this action.
    fn forgets(self, action: &Action<Token>, random: &mut Random) -> bool {
        let is_it = match (self, action) {
            (Mutant::ForgetsToDetach, Action::Detach { .. })
            | (Mutant::ForgetsToRelease, Action::Release { .. })
            | (Mutant::ForgetsToClose, Action::Close { .. })
            | (Mutant::ForgetsToRequestOffer, Action::CheckRoom { .. })
            | (Mutant::ForgetsToDrain, Action::Drain { .. })
            | (Mutant::ForgetsToUnobserve, Action::Unobserve { .. }) => true,
            (_, Action::Send { message, .. }) => matches!(
                (self, message),
                (Mutant::ForgetsToDecline, ControlMessage::Declined { .. })
                    | (Mutant::ForgetsToWithdraw, ControlMessage::Withdrawn { .. })
                    | (Mutant::ForgetsSegments, ControlMessage::Segments { .. })
                    | (Mutant::ForgetsToRetract, ControlMessage::Retracted { .. })
                    | (Mutant::ForgetsToEndAnswers, ControlMessage::Answered { .. })
                    | (Mutant::ForgetsToObserve, ControlMessage::Observe { .. })
            ),
            _ => false,
        };
        is_it && random.below(4) == 0
    }

    /// The action as it performs it.
    fn alters(self, mut action: Action<Token>, random: &mut Random) -> Action<Token> {
        match (self, &mut action) {
            (
                Mutant::ForgetsAttributes | Mutant::ForgetsThePolicy,
                Action::Send { message: ControlMessage::Announced { record, .. }, .. },
            ) if random.below(4) == 0 => match self {
                Mutant::ForgetsAttributes => record.attributes = Attributes::default(),
                _ => record.matching = Matching::Exact,
            },
            (
                Mutant::ForgetsTheReason,
                Action::Deliver { event: Event::Incompatible { reason, .. }, .. },
            ) if random.below(4) == 0 => reason.clear(),
            _ => {}
        }
        action
    }

    const ALL: [Mutant; 17] = [
        Mutant::ForgetsToDetach,
        Mutant::ForgetsToRelease,
        Mutant::ForgetsToClose,
        Mutant::ForgetsToRequestOffer,
        Mutant::HasNoClock,
        Mutant::ForgetsToDecline,
        Mutant::ForgetsToWithdraw,
        Mutant::ForgetsSegments,
        Mutant::ForgetsToRetract,
        Mutant::ForgetsToDrain,
        Mutant::ForgetsToEndAnswers,
        Mutant::WaitsForNobody,
        Mutant::ForgetsAttributes,
        Mutant::ForgetsThePolicy,
        Mutant::ForgetsTheReason,
        Mutant::ForgetsToObserve,
        Mutant::ForgetsToUnobserve,
    ];
}

/// SplitMix64 (Steele, Lea, Flood 2014).
pub(super) struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to `limit`, exclusive.
    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// The plan of a world: the number of nodes, its duration, and how often things happen.
struct Plan {
    nodes: usize,
    steps: u64,
    /// Out of 1,000 steps, how many are a user's, and how many begin, end or stop a process.
    users: u64,
    processes: u64,
    failing: u64,
    topics: u64,
}

/// Most worlds are small: everything meets everything.
fn plan(seed: u64) -> Plan {
    let mut random = Random(!seed);
    let nodes = if seed.is_multiple_of(16) { 40 } else { 2 + random.below(7) as usize };
    let (steps, users) = (2_000 + 250 * nodes as u64, 5 + random.below(60));
    let (processes, failing) = (random.below(12), random.below(150));
    Plan { nodes, steps, users, processes, failing, topics: 1 + random.below(nodes as u64) }
}

/// Runs a world until it comes to rest. Returns the world, or a fault in it.
fn run(seed: u64, plan: &Plan, mutant: Option<Mutant>) -> Result<World, String> {
    let mut world = World::new(seed, mutant);
    (world.failing, world.topics) = (plan.failing, plan.topics);
    for _ in 0..plan.nodes {
        world.start_node();
    }
    while world.steps < plan.steps {
        let dice = world.random.below(1_000);
        if dice < plan.users {
            let node = any_node(&mut world);
            world.act_as_user(node);
        } else if dice < plan.users + plan.processes {
            change_processes(&mut world, plan.nodes);
        }
        if !world.step() {
            world.now_ns = world.next_ns().unwrap_or(world.now_ns).max(world.now_ns);
        }
    }
    world.failing = 0;
    world.resume_all();
    rest(&mut world)?;
    if mutant.is_none() && plan.nodes < MANY_NODES {
        world.check_requests()?;
        world.check_graph_queries()?;
    }
    Ok(world)
}

/// Runs until nothing happens any more except repeated refusals.
fn rest(world: &mut World) -> Result<(), String> {
    let end_ns = world.now_ns + REST_NS;
    let end = world.steps + REST_STEPS * world.nodes.len() as u64;
    loop {
        while world.step() {
            if world.steps > end {
                return Err("there is no end to it".to_owned());
            }
        }
        world.nodes.values_mut().for_each(|node| node.memory.read_to_the_end());
        let finding = world.check();
        match world.next_ns() {
            _ if finding.is_ok() => return Ok(()),
            Some(next_ns) if next_ns.max(world.now_ns) <= end_ns => {
                world.now_ns = next_ns.max(world.now_ns + LOOK_NS);
            }
            _ => return finding,
        }
    }
}

fn any_node(world: &mut World) -> u64 {
    let at = world.random.below(world.nodes.len() as u64) as usize;
    *world.nodes.keys().nth(at).expect("there are so many")
}

fn change_processes(world: &mut World, nodes: usize) {
    let node = any_node(world);
    match world.random.below(5) {
        0 => {
            let for_ns = world.random.below(2_000_000_000);
            world.stop(node, for_ns);
        }
        3 => {
            let for_ns = world.random.below(500_000_000);
            world.deafen(node, for_ns);
        }
        1 if world.nodes.len() > 1 => world.leave(node),
        2 if world.nodes.len() > 1 => world.crash(node),
        _ if world.nodes.len() < nodes => drop(world.start_node()),
        _ => {}
    }
}

/// Like `run`; a fault found by `memory` is a panic.
fn outcome(seed: u64, plan: &Plan, mutant: Option<Mutant>) -> Result<World, String> {
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| run(seed, plan, mutant)));
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(text
            .or(panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_default())
    })
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("it is a number"))
}

#[test]
fn every_pair_that_fits_is_matched_and_nothing_is_left() {
    let first = variable("SEED").unwrap_or(1);
    let worlds = variable("MYELIN_WORLDS").unwrap_or(WORLDS);
    let (mut steps, mut messages, mut found) = (0, 0, 0);
    for seed in first..first + worlds {
        match outcome(seed, &plan(seed), None) {
            Ok(world) => {
                (steps, messages) = (steps + world.steps, messages + world.messages);
                found += world.creations.found;
            }
            Err(finding) => panic!(
                "{finding}\nagain: SEED={seed} MYELIN_WORLDS=1 cargo test -p myelin-shm --lib \
                 every_pair_that_fits"
            ),
        }
    }
    println!("{worlds} worlds, {steps} steps, {messages} messages, {found} first matches");
    assert!(found > worlds, "new endpoints find hardly anybody: {found}");
}

#[test]
fn hundreds_of_nodes_come_to_rest() {
    let seed = variable("SEED").unwrap_or(1);
    let (nodes, steps, users, processes) = (200, 200_000, 3, 1);
    let plan = Plan { nodes, steps, users, processes, failing: 20, topics: 400 };
    let world = match outcome(seed, &plan, None) {
        Ok(world) => world,
        Err(finding) => {
            panic!("{finding}\nagain: SEED={seed} cargo test -p myelin-shm --lib hundreds_of_nodes")
        }
    };
    println!("{} nodes, {} steps, {} messages", world.nodes.len(), world.steps, world.messages);
}

#[test]
fn faulty_protocols_are_detected() {
    for mutant in Mutant::ALL {
        let found = (1..=MUTANT_WORLDS).find_map(|seed| {
            let finding = outcome(seed, &plan(seed), Some(mutant)).err()?;
            Some(format!("world {seed}: {finding}"))
        });
        let found = found.unwrap_or_else(|| panic!("{mutant:?} has not been found out"));
        println!("{mutant:?}: {found}");
    }
}

/// A publisher withdraws its offer just when the subscriber declines it, and offers itself again
/// before it receives the refusal. The refusal was for the first offer, and the second one must not
/// be lost because of it.
#[test]
fn a_message_crossed_by_an_offer_is_not_taken_for_its_answer() {
    let mut world = World::new(1, None);
    let (one, other) = (world.start_node(), world.start_node());
    let topic = || Topic { name: "t".to_owned(), type_name: "T".to_owned(), type_hash: 1 };
    world.make_endpoint_of(other, record_of(false, topic()), 1);
    rest(&mut world).expect("they are linked");
    world.make_endpoint_of(one, record_of(true, topic()), 1);
    let id = |mut ids: Vec<_>| ids.pop().expect("there is one");
    let publisher = id(world.nodes[&one].memory.publishers.keys().copied().collect());
    let subscriber = id(world.nodes[&other].memory.subscribers.keys().copied().collect());
    let pair = Pair { publisher, subscriber };
    let state = |world: &World| {
        let matches = &world.nodes[&one].protocol.publishers[&publisher].matches;
        format!("{:?}", matches.get(subscriber).expect("they fit").state)
    };
    let receive_until = |world: &mut World, id, state_after: &str| {
        while !state(world).starts_with(state_after) {
            assert!(world.read(id), "{}", state(world));
        }
    };
    // The offer, and the messages before it.
    while !world.nodes[&other].memory.subscribers[&subscriber].connections.contains_key(&publisher)
    {
        assert!(world.read(other));
    }
    // The subscriber's descriptors in its answer get lost.
    world.failing = 1_000;
    receive_until(&mut world, one, "Refused");
    world.failing = 0;
    let refusal = memory::refusal("a segment cannot be mapped");
    world.drive(other, Input::NotMapped { pair, refusal });
    // The publisher's timer is ahead of its link.
    world.now_ns += PAUSE_NS_MIN;
    world.drive(one, Input::Tick);
    assert_eq!(state(&world), "Offered");
    receive_until(&mut world, one, "Refused");
    rest(&mut world).expect("a match");
    assert_eq!(state(&world), "Matched");
}

/// The number of announcements grows with the number of endpoints, and with that of the others; no
/// faster.
#[test]
fn discovery_takes_one_message_for_each_endpoint_and_peer() {
    let count = |nodes: u64, endpoints: u64| {
        let mut world = World::new(1, None);
        let ids: Vec<_> = (0..nodes).map(|_| world.start_node()).collect();
        for (node, id) in ids.into_iter().enumerate() {
            for endpoint in 0..endpoints {
                let topic = format!("{node} {endpoint}");
                let topic = Topic { name: topic, type_name: String::new(), type_hash: 1 };
                let record = record_of(endpoint.is_multiple_of(2), topic);
                world.make_endpoint_of(id, record, 1);
            }
        }
        rest(&mut world).expect("all know all");
        world.messages
    };
    for (nodes, endpoints) in [(2, 100), (2, 1_000), (10, 100), (20, 50)] {
        let messages = count(nodes, endpoints);
        // Besides its endpoints each node sends its greeting, and that it is ready.
        let announcements = nodes * (nodes - 1) * (endpoints + 2);
        let of_links_that_gave_way = nodes * (nodes - 1) / 2;
        assert!(
            (announcements..=announcements + of_links_that_gave_way).contains(&messages),
            "{messages}, not {announcements}"
        );
    }
}

/// Each of 20 nodes has 50 types; a schema query concerns one node, and one schema.
#[test]
fn a_schema_query_takes_one_message_and_its_answer() {
    let mut world = World::new(1, None);
    let ids: Vec<_> = (0..20).map(|_| world.start_node()).collect();
    let layout = "x".repeat(2 * MESSAGE_SCHEMA_BYTES_MAX);
    for id in &ids {
        for type_hash in 1..=50 {
            let topic =
                Topic { name: format!("{id} {type_hash}"), type_name: String::new(), type_hash };
            world.make_endpoint_of(*id, record_of(true, topic), 1);
            let protocol = &mut world.nodes.get_mut(id).expect("it lives").protocol;
            protocol.describe(type_hash, Schema::of_layout(layout.clone()));
        }
    }
    rest(&mut world).expect("all know all");
    let (asking, asked, type_hash) = (ids[0], ids[19], 7);
    let before = world.messages;
    world.drive(asking, Input::QuerySchema { node: asked, type_hash });
    rest(&mut world).expect("an answer");
    let schema = world.nodes[&asking].protocol.sent_schema(asked, type_hash);
    assert_eq!(schema.expect("it has one").layout(), Some(&*layout));
    let (question, parts, end) = (1, 2, 1);
    assert_eq!(world.messages - before, question + parts + end);
    let before = world.messages;
    world.drive(asking, Input::QueryGraph);
    rest(&mut world).expect("all answers");
    assert!(world.messages - before > 19 * 50 * parts, "a graph query gets all of all");
}

/// Enough for a repeated attempt after a refusal, and for all that have waited for its place.
const REST_NS: u64 = 30_000_000_000;
/// The same in steps, for each node.
const REST_STEPS: u64 = 20_000;
/// The time between two checks for it.
const LOOK_NS: u64 = 100_000_000;
/// Where each node queries each other node at rest, there are fewer nodes.
const MANY_NODES: usize = 100;
const WORLDS: u64 = 300;
const MUTANT_WORLDS: u64 = 60;
