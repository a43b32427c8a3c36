//! The Rust side of the tests of the Python module, which start it.
//!
//! `peer hashes`: the layout hash of each type, one a line. `peer echo`: takes from `to-rust`, adds to the
//! stamp and publishes to `to-python`. `peer flood`: publishes images to `flood` until it is killed.
//! `peer serve`: a server of `scale`. `peer call`: a client of it. `peer time`: what `publish_time.py`
//! measures, in Rust.

use std::hint::black_box;
use std::time::Duration;

use myelin::{Bool, Error, FixedString, Node, Payload, PlainData};

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Imu {
    stamp_ns: u64,
    acceleration: [f64; 3],
    temperature: f32,
    _pad: [u8; 4],
}

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Part {
    id: i32,
    state: i16,
    flags: [Bool; 2],
    name: FixedString<20>,
    path: [[f32; 2]; 3],
}

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Box3 {
    imu: Imu,
    parts: [Part; 2],
    tail: [u16; 4],
}

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Frame {
    stamp_ns: u64,
    width: u32,
    height: u32,
}

fn main() -> Result<(), Error> {
    let role = std::env::args().nth(1).unwrap_or_default();
    if role == "hashes" {
        hashes();
        return Ok(());
    }
    let node = Node::new("peer")?;
    match role.as_str() {
        "echo" => echo(&node),
        "flood" => flood(&node),
        "serve" => serve(&node),
        "call" => call(&node),
        "time" => time(&node),
        _ => {
            eprintln!("usage: peer hashes|echo|flood|serve|call|time");
            std::process::exit(2);
        }
    }
}

fn hashes() {
    fn say<T: Payload + ?Sized>(node: &Node, name: &str) {
        let publisher = node.topic::<T>(name).publisher().expect("a publisher");
        let graph = node.graph().expect("a graph");
        let it = graph.endpoints.iter().find(|it| it.topic == name).expect("it is there");
        println!("{name} {} {}", it.type_hash, it.type_name);
        drop(publisher);
    }
    let node = Node::new("hashes").expect("a node");
    say::<u8>(&node, "u8");
    say::<i64>(&node, "i64");
    say::<f32>(&node, "f32");
    say::<f64>(&node, "f64");
    say::<Bool>(&node, "bool");
    say::<[f64; 3]>(&node, "array");
    say::<[[f32; 2]; 3]>(&node, "matrix");
    say::<[u8]>(&node, "bytes");
    say::<[f64]>(&node, "doubles");
    say::<[[f32; 2]]>(&node, "points");
    say::<Imu>(&node, "Imu");
    say::<[Imu]>(&node, "Imus");
    say::<Part>(&node, "Part");
    say::<Box3>(&node, "Box3");
    say::<(Frame, [u8])>(&node, "image");
    say::<(Frame, [[f64; 2]])>(&node, "scan");
}

fn echo(node: &Node) -> Result<(), Error> {
    let reliable = Duration::from_secs(30);
    let mut subscriber = node.topic::<Imu>("to-rust").reliable(reliable).subscriber()?;
    let publisher = node.topic::<Imu>("to-python").reliable(reliable).publisher()?;
    while let Some(imu) = subscriber.receive(LIMIT)? {
        publisher.publish_copy(&Imu { stamp_ns: imu.stamp_ns + 1, ..*imu })?;
    }
    Ok(())
}

fn flood(node: &Node) -> Result<(), Error> {
    let publisher = node.topic::<(Frame, [u8])>("flood").publisher()?;
    publisher.wait_for_match(1, LIMIT);
    for stamp_ns in 0.. {
        let mut image = publisher.loan(1440 * 1080)?;
        *image.header_mut() = Frame { stamp_ns, width: 1440, height: 1080 };
        image.slice_mut().fill(stamp_ns as u8);
        image.publish()?;
    }
    Ok(())
}

fn serve(node: &Node) -> Result<(), Error> {
    let mut service = node.service::<[f64], [f64]>("scale")?;
    while let Some(request) = service.receive(LIMIT)? {
        let mut reply = request.loan(request.len())?;
        reply.iter_mut().zip(request.iter()).for_each(|(to, from)| *to = 2.0 * from);
        reply.send()?;
    }
    Ok(())
}

fn call(node: &Node) -> Result<(), Error> {
    let client = node.client::<[f64], [f64]>("scale")?;
    println!("{:?}", &client.call(&[1.0, 2.5], LIMIT)?[..]);
    Ok(())
}

fn time(node: &Node) -> Result<(), Error> {
    for size in [64, 65536, 1 << 20] {
        let topic = node.topic::<[u8]>(&format!("bytes-{size}"));
        let (publisher, mut subscriber) = (topic.publisher()?, topic.subscriber()?);
        publisher.wait_for_match(1, LIMIT);
        let mut rounds = Vec::new();
        for _ in 0..300 {
            let begun = myelin::now();
            for _ in 0..EACH {
                let mut loan = publisher.loan(size)?;
                loan[0] = black_box(1);
                loan.publish()?;
                black_box(subscriber.take()?.expect("just now")[0]);
            }
            rounds.push((myelin::now() - begun) / EACH);
        }
        rounds.sort_unstable();
        println!("loan, publish, take, {size} B: {} ns (least {})", rounds[150], rounds[0]);
    }
    Ok(())
}

const EACH: u64 = 500;
const LIMIT: Duration = Duration::from_secs(60);
