//! How late samples are published, beside a bare timer. To be read by people, on a quiet machine:
//! `cargo test --release -p myelin-bag --test player -- --ignored --nocapture lateness`.

use myelin_bag::{Player, Recording, Schema};

use crate::robot::{MS, Robot, SECOND};

/// In turn with a bare timer of the same period and timer slack, so that both meet the same host.
#[test]
#[ignore = "it measures, for 30 s"]
fn lateness_of_1_khz() {
    let robot = Robot::new();
    let mut file = robot.file("run.mcap");
    let topic = file.topic("imu", &Schema::layout("[u64; 8]"), None);
    for number in 0..3_000_u64 {
        file.write(&topic, SECOND + number * MS, &[number as u8; 64]);
    }
    let path = file.finish();
    let mut subscriber = robot.node.topic::<[u64; 8]>("imu").depth(256).subscriber().unwrap();
    for _ in 0..5 {
        let mut bare = bare_timer(3_000);
        let recording = Recording::open([&path]).unwrap();
        let played = Player::builder(&robot.player).open(recording).unwrap().run().unwrap();
        while subscriber.take().unwrap().is_some() {}
        let lateness = played.lateness.unwrap();
        bare.sort_unstable();
        let at = |percent: usize| bare[bare.len() * percent / 100 - 1] as f64 / 1e3;
        let us = |ns: u64| ns as f64 / 1e3;
        println!(
            "bare timer p50 {:.1} p99 {:.1} max {:.1} us; play p50 {:.1} p99 {:.1} max {:.1} us; \
             p99 ratio {:.2}",
            at(50),
            at(99),
            at(100),
            us(lateness.p50_ns),
            us(lateness.p99_ns),
            us(lateness.max_ns),
            us(lateness.p99_ns) / at(99),
        );
    }
}

/// How late so many sleeps until a time end.
fn bare_timer(count: u64) -> Vec<u64> {
    std::thread::spawn(move || {
        rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)).unwrap();
        let begin = myelin::now();
        let late = |number: u64| {
            let due = begin + number * MS;
            let until = rustix::time::Timespec {
                tv_sec: (due / SECOND) as i64,
                tv_nsec: (due % SECOND) as i64,
            };
            let clock = rustix::thread::ClockId::Monotonic;
            rustix::thread::clock_nanosleep_absolute(clock, &until).unwrap();
            myelin::now() - due
        };
        (0..count).map(late).collect()
    })
    .join()
    .unwrap()
}
