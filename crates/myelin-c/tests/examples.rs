//! Each example's publisher in Rust, C and C++ with each one's subscriber: they say the same.

mod support;

use std::path::PathBuf;

use support::{Place, end, rust_example, said};

#[test]
fn hello() {
    pairs("hello", |said| said.ends_with("4: hello, number 5\n") && said.lines().count() == 5);
}

#[test]
fn typed() {
    pairs("typed", |said| {
        said.contains("40000000 ns: [0.0, 0.0, 9.81] m/s², 21.5 °C") && said.lines().count() == 5
    });
}

#[test]
fn image() {
    pairs("image", |said| {
        said.ends_with("image 9: 4665600 B, brightness 9\n") && said.lines().count() == 10
    });
}

#[test]
fn queue() {
    pairs("queue", |said| said == "did 100000 jobs, lost 0, sum 4999950000\n");
}

#[test]
fn epoll() {
    pairs("epoll", |said| said.ends_with("at 9 m, 0.5 m/s\n") && said.lines().count() == 10);
}

#[test]
fn wait_set() {
    pairs("wait_set", |said| {
        said.contains("wheels at 9 m, 9.5 m\n")
            && said.contains("5 m to the goal\n")
            && said.lines().count() == 11
    });
}

#[test]
fn service() {
    for_each_pair("service", |place, server, client| {
        let serving = place.start(server, &["serve"]);
        let called = place.run(client, &["call"]);
        assert!(called.ends_with("25601 points to 15 m, 20 m\n"), "{called}");
        assert_eq!(said(end(serving)), "planned 5 paths\n");
    });
}

#[test]
fn two_hosts() {
    if !std::path::Path::new("/usr/include/dds/dds.h").exists() {
        println!("skipped: CycloneDDS is not installed: apt-get install cyclonedds-dev");
        return;
    }
    pairs("two_hosts", |said| {
        said.ends_with("at 9 m, 4.5 m, heading 0.25 rad\n") && said.lines().count() == 10
    });
}

fn pairs(example: &str, is_right: impl Fn(&str) -> bool) {
    for_each_pair(example, |place, publisher, subscriber| {
        let subscribing = place.start(subscriber, &["subscribe"]);
        let published = place.run(publisher, &["publish"]);
        assert!(published.starts_with("published"), "{published}");
        let taken = said(end(subscribing));
        assert!(is_right(&taken), "{} to {}: {taken}", publisher.display(), subscriber.display());
    });
}

/// Calls `run` with a program of each language and one of each, two of Rust apart.
fn for_each_pair(example: &str, run: impl Fn(&Place, &PathBuf, &PathBuf)) {
    let (c_place, cpp_place) = (Place::new(), Place::new());
    let programs = [
        rust_example(example),
        c_place.compile(&format!("../../examples/c/{example}.c"), &[]),
        cpp_place.compile(&format!("../../examples/cpp/{example}.cpp"), &[]),
    ];
    for first in 0..programs.len() {
        for second in 0..programs.len() {
            if first + second > 0 {
                run(&Place::new(), &programs[first], &programs[second]);
            }
        }
    }
}
