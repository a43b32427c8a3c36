//! The cost of a sample's timestamp: a loop of publishes, with and without timestamps, in turns.
//!
//! `cargo bench -p myelin --bench publish_time`; as a test it runs a few rounds.

use std::hint::black_box;

use myelin::{Error, Node, Publisher};

fn main() -> Result<(), Error> {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let rounds = if is_bench { ROUNDS } else { 3 };
    let folder = tempfile::tempdir().expect("a folder");
    let node = Node::builder("bench").runtime_dir(folder.path()).open()?;
    for bytes in [8, 4096] {
        let topic = node.topic::<[u8]>(&format!("of {bytes} B"));
        let open = |tell| topic.publisher_builder().timestamps(tell).open();
        let publishers = [open(false)?, open(true)?];
        let mut ns = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for (publisher, ns) in publishers.iter().zip(&mut ns) {
                ns.push(ns_per_publish(publisher, bytes)?);
            }
        }
        let [without, with] = ns.map(quartiles);
        println!("{bytes} B, ns a publish (quartiles of {rounds} rounds)");
        println!("  without  {without:6.1?}\n  with     {with:6.1?}");
    }
    Ok(())
}

fn ns_per_publish(publisher: &Publisher<[u8]>, bytes: usize) -> Result<f64, Error> {
    let begin = myelin::now();
    for count in 0..PUBLISHES {
        let mut loan = publisher.loan(bytes)?;
        loan[0] = black_box(count as u8);
        loan.publish()?;
    }
    Ok((myelin::now() - begin) as f64 / f64::from(PUBLISHES))
}

fn quartiles(mut ns: Vec<f64>) -> [f64; 3] {
    ns.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| ns[(ns.len() - 1) * quarter / 4])
}

const ROUNDS: usize = 201;
const PUBLISHES: u32 = 10_000;
