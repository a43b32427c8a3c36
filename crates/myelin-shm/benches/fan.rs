//! The cost of a publisher's polling subscribers for it, and the cost of topics for a thread that
//! polls them. Each of them has many pages of shared memory, of which the same few words are read.
//!
//! `cargo bench -p myelin-shm --bench fan`; as a test it runs a few rounds.

use std::time::Duration;

use myelin_shm::Error;
use myelin_shm::node::{Node, NodeOptions, Publisher, Subscriber};
use myelin_shm::topic::{PublisherQos, SubscriberQos, Topic};
use myelin_shm::waiting::wait::now_ns;

fn main() -> Result<(), Error> {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let rounds = if is_bench { ROUNDS } else { 3 };
    let folder = tempfile::tempdir().expect("a folder");
    let open = || {
        let folder = Some(folder.path().to_owned());
        Node::open(NodeOptions { runtime_dir: folder, ..NodeOptions::default() })
    };
    let nodes = [open()?, open()?];
    println!(
        "         a publish to so many   a look at so many topics (ns, quartiles of {rounds})"
    );
    for count in COUNTS {
        let (mut publisher, subscribers) = one_topic(&nodes, count)?;
        let publish = quartiles(rounds, || publishes(&mut publisher, is_bench))?;
        drop((publisher, subscribers));
        let (publishers, mut subscribers) = topics(&nodes, count)?;
        let look = quartiles(rounds, || looks(&mut subscribers, is_bench))?;
        drop((publishers, subscribers));
        println!("{count:5}   {publish:6.1?}   {look:6.1?}");
    }
    Ok(())
}

fn one_topic(nodes: &[Node; 2], count: usize) -> Result<(Publisher, Vec<Subscriber>), Error> {
    let publisher = nodes[0].publisher(topic(count, 0), PublisherQos::default())?;
    let subscriber = |_| nodes[1].subscriber(topic(count, 0), SubscriberQos::default());
    let subscribers = (0..count).map(subscriber).collect::<Result<Vec<_>, _>>()?;
    assert!(publisher.wait_for_match(count, LONG));
    Ok((publisher, subscribers))
}

fn topics(nodes: &[Node; 2], count: usize) -> Result<(Vec<Publisher>, Vec<Subscriber>), Error> {
    let publisher = |at| nodes[0].publisher(topic(count, at), PublisherQos::default());
    let publishers = (1..=count).map(publisher).collect::<Result<Vec<_>, _>>()?;
    let subscriber = |at| nodes[1].subscriber(topic(count, at), SubscriberQos::default());
    let subscribers = (1..=count).map(subscriber).collect::<Result<Vec<_>, _>>()?;
    assert!(publishers.iter().all(|publisher| publisher.wait_for_match(1, LONG)));
    assert!(subscribers.iter().all(|subscriber| subscriber.wait_for_match(1, LONG)));
    Ok((publishers, subscribers))
}

fn topic(count: usize, at: usize) -> Topic {
    Topic { name: format!("{count}/{at}"), type_name: "T".into(), type_hash: 1 }
}

/// One publish, in ns.
fn publishes(publisher: &mut Publisher, is_bench: bool) -> Result<f64, Error> {
    let times = if is_bench { 2_000 } else { 10 };
    let begin = now_ns();
    for _ in 0..times {
        publisher.writer.publish_copy(&[1; 64])?;
    }
    Ok((now_ns() - begin) as f64 / f64::from(times))
}

/// One empty take of each, in ns for all.
fn looks(subscribers: &mut [Subscriber], is_bench: bool) -> Result<f64, Error> {
    let times = if is_bench { 100_000 / subscribers.len() as u32 } else { 3 };
    let begin = now_ns();
    for _ in 0..times {
        for subscriber in &mut *subscribers {
            assert!(subscriber.reader.take()?.is_none());
        }
    }
    Ok((now_ns() - begin) as f64 / f64::from(times))
}

fn quartiles(
    rounds: usize,
    mut one: impl FnMut() -> Result<f64, Error>,
) -> Result<[f64; 3], Error> {
    let mut ns = (0..rounds).map(|_| one()).collect::<Result<Vec<_>, _>>()?;
    ns.sort_by(f64::total_cmp);
    Ok([1, 2, 3].map(|quarter| ns[(ns.len() - 1) * quarter / 4]))
}

const COUNTS: [usize; 6] = [1, 10, 64, 256, 512, 1000];
const ROUNDS: usize = 51;
const LONG: Duration = Duration::from_secs(60);
