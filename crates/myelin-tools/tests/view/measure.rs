//! Figures, by hand: `cargo test --release -p myelin-tools --test view measure -- --ignored --nocapture`.
//!
//! An image of 1440 × 1080 at 30 Hz to a viewer, with and without another viewer that does not read.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use myelin::Node;
use myelin_tools::session::{Place, Session};
use myelin_tools::view::View;

use crate::support::{Frame, node_script, options};

const PIXELS: usize = 1440 * 1080 * 3;
const SECONDS: u64 = 10;

/// The server in a process of its own, so that its time is its own. It ends with its input.
#[test]
#[ignore = "a part of measure::an_image"]
fn server() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let place = Place { runtime_dir: Some(folder.into()), ..Place::default() };
    let session = Session::open("myelin view", &place).unwrap();
    let view = View::robot(session, &place, Vec::new(), &options()).unwrap();
    println!("\nurl {}", view.urls().websocket);
    std::io::stdout().flush().unwrap();
    let mut line = String::new();
    // For each line: what was used since the one before.
    let (mut cpu, mut bytes) = (cpu_s(), 0);
    while std::io::stdin().read_line(&mut line).unwrap() > 0 {
        let summary = view.summary();
        let (now, sent) = (cpu_s(), summary.bytes);
        println!("used {} {} {}", now - cpu, sent - bytes, summary.dropped);
        std::io::stdout().flush().unwrap();
        (cpu, bytes) = (now, sent);
    }
}

#[test]
#[ignore = "takes half a minute, and wants a machine of its own"]
fn an_image() {
    let scripts = (node_script("reader.js"), node_script("reader.js"));
    let (Some(mut reads), Some(mut stalls)) = scripts else { return };
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let node = Node::builder("camera").runtime_dir(folder.path()).open().unwrap();
    let publisher = node.topic::<(Frame, [u8])>("camera").publisher().unwrap();
    let mut server = Command::new(std::env::current_exe().unwrap());
    server.args(["measure::server", "--exact", "--ignored", "--nocapture"]);
    server.env(FOLDER, folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = server.spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut next = |word: &str| loop {
        let line = lines.next().unwrap().unwrap();
        if let Some(rest) = line.strip_prefix(word) {
            break rest.trim().to_owned();
        }
    };
    let url = next("url");
    let reader = reads.arg(&url).stdout(Stdio::piped()).spawn().unwrap();
    assert!(publisher.wait_for_match(1, Duration::from_secs(60)));
    let mut used = |server: &mut std::process::Child| {
        server.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        next("used").split(' ').map(|it| it.parse::<f64>().unwrap()).collect::<Vec<_>>()
    };
    let mut stalled = None;
    for with in ["one viewer", "another one that does not read"] {
        if stalled.is_none() && with.starts_with("another") {
            let stalling = stalls.arg(&url).arg("stall").stdout(Stdio::null());
            stalled = Some(stalling.spawn().unwrap());
            std::thread::sleep(Duration::from_secs(2));
        }
        used(&mut server);
        let begin = Instant::now();
        let mut longest = Duration::ZERO;
        for number in 0..SECONDS * 30 {
            let mut image = publisher.loan(PIXELS).unwrap();
            *image.header_mut() = Frame { stamp_ns: number, width: 1440, height: 1080 };
            image.slice_mut().fill(number as u8);
            let before = Instant::now();
            image.publish().unwrap();
            longest = longest.max(before.elapsed());
            let due = begin + Duration::from_nanos((number + 1) * 1_000_000_000 / 30);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        std::thread::sleep(Duration::from_millis(500));
        let used = used(&mut server);
        println!(
            "{with}: {:.2} GB sent, {:.3} s of CPU, {:.3} s/GB; {} dropped; longest publish {longest:?}",
            used[1] / 1e9,
            used[0],
            used[0] / (used[1] / 1e9),
            used[2]
        );
    }
    let mut stalled = stalled.expect("it was started");
    stalled.kill().unwrap();
    stalled.wait().unwrap();
    drop(server.stdin.take());
    server.wait().unwrap();
    let output = reader.wait_with_output().unwrap();
    let messages = String::from_utf8(output.stdout).unwrap();
    println!("the viewer that reads got {} of {} images", messages.trim(), 2 * SECONDS * 30);
}

fn cpu_s() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the struct is valid for the call.
    let usage = unsafe {
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()), 0);
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

const FOLDER: &str = "MYELIN_VIEW_MEASURED";
