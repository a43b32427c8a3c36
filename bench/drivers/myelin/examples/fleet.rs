//! One process of a fleet over Myelin with its default settings; see bench/check/fleet.py.
//!
//! ```text
//! fleet robot NUMBER TOPICS       TOPICS publishers
//! fleet operator ROBOTS TOPICS    a subscriber of each topic of each robot
//! ```
//! The operator prints how many pairs have matched, whenever that changes. Both end with their
//! input.

use std::io::Read;
use std::time::Duration;

use myelin::{Error, Node};

fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [role, counts @ ..] = &words[..] else { panic!("fleet robot|operator NUMBER TOPICS") };
    let counts: Vec<u32> = counts.iter().map(|text| text.parse().expect("a number")).collect();
    let [number, topics] = counts[..] else { panic!("fleet robot|operator NUMBER TOPICS") };
    let node = Node::builder(&format!("{role}-{number}")).network(true).open()?;
    let name = |robot: u32, at: u32| format!("robot{robot}_topic{at}");
    let topic = |robot, at| node.topic::<u64>(&name(robot, at)).reliable(Duration::from_secs(1));
    if role == "robot" {
        let publishers: Result<Vec<_>, Error> =
            (0..topics).map(|at| topic(number, at).publisher()).collect();
        println!("ready");
        std::io::stdin().read_to_end(&mut Vec::new()).expect("an input");
        drop(publishers?);
        return Ok(());
    }
    let all = (0..number).flat_map(|robot| (0..topics).map(move |at| (robot, at)));
    let subscribers: Result<Vec<_>, Error> =
        all.map(|(robot, at)| topic(robot, at).subscriber()).collect();
    let mut subscribers = subscribers?;
    println!("ready");
    let (end, ended) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        std::io::stdin().read_to_end(&mut Vec::new()).expect("an input");
        drop(end);
    });
    let mut before = usize::MAX;
    while ended.recv_timeout(Duration::from_millis(10))
        == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
    {
        let matched = subscribers.iter().map(|subscriber| subscriber.matched()).sum();
        if matched != before {
            println!("matched {matched}");
            before = matched;
            // A publisher that has gone keeps its place until its samples are taken.
            for subscriber in &mut subscribers {
                while subscriber.take()?.is_some() {}
            }
        }
    }
    Ok(())
}
