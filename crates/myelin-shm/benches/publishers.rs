//! The cost of a subscriber's publishers for it: a take that finds nothing, and a sample of one of
//! them with the empty take that ends a loop.
//!
//! `cargo bench -p myelin-shm --bench publishers`; as a test it runs a few rounds.

use std::time::Duration;

use myelin_shm::Error;
use myelin_shm::node::{Node, NodeOptions, Publisher, Subscriber};
use myelin_shm::topic::{PublisherQos, SubscriberQos, Topic};
use myelin_shm::waiting::wait::now_ns;

fn main() -> Result<(), Error> {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let (rounds, takes) = if is_bench { (ROUNDS, TAKES) } else { (3, 10) };
    let folder = tempfile::tempdir().expect("a folder");
    let path = Some(folder.path().to_owned());
    let node = Node::open(NodeOptions { runtime_dir: path, ..NodeOptions::default() })?;
    println!(
        "publishers   empty take   a sample and an empty take (ns, quartiles of {rounds} rounds)"
    );
    for publishers_max in PUBLISHERS {
        let topic = Topic { name: publishers_max.to_string(), type_name: "T".into(), type_hash: 1 };
        let qos = SubscriberQos { publishers_max, ..SubscriberQos::default() };
        let mut subscriber = node.subscriber(topic.clone(), qos)?;
        let made = (0..publishers_max)
            .map(|_| node.publisher(topic.clone(), PublisherQos::default()))
            .collect::<Result<Vec<_>, _>>();
        let mut publishers = made?;
        assert!(subscriber.wait_for_match(publishers.len(), LONG));
        assert!(publishers.iter().all(|publisher| publisher.wait_for_match(1, LONG)));
        let mut ns = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            ns[0].push(empty_takes(&mut subscriber, takes)?);
            ns[1].push(samples(&mut publishers, &mut subscriber, takes)?);
        }
        let [empty, sample] = ns.map(quartiles);
        println!("{publishers_max:10}   {empty:6.1?}   {sample:6.1?}");
    }
    Ok(())
}

/// One take, in ns.
fn empty_takes(subscriber: &mut Subscriber, takes: u32) -> Result<f64, Error> {
    let begin = now_ns();
    for _ in 0..takes {
        assert!(subscriber.reader.take()?.is_none());
    }
    Ok((now_ns() - begin) as f64 / f64::from(takes))
}

/// A publish, a take and a take that finds nothing, in ns; by each publisher in turn.
fn samples(
    publishers: &mut [Publisher],
    subscriber: &mut Subscriber,
    takes: u32,
) -> Result<f64, Error> {
    let publishers_max = publishers.len();
    let begin = now_ns();
    for turn in 0..takes as usize {
        publishers[turn % publishers_max].writer.publish_copy(&[1; 8])?;
        assert!(subscriber.reader.take()?.is_some());
        assert!(subscriber.reader.take()?.is_none());
    }
    Ok((now_ns() - begin) as f64 / f64::from(takes))
}

fn quartiles(mut ns: Vec<f64>) -> [f64; 3] {
    ns.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| ns[(ns.len() - 1) * quarter / 4])
}

const PUBLISHERS: [u32; 5] = [1, 4, 16, 64, 256];
const ROUNDS: usize = 101;
const TAKES: u32 = 2_000;
const LONG: Duration = Duration::from_secs(60);
