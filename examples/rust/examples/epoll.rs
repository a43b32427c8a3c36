//! A subscriber as one of several descriptors in an epoll loop, here beside a timer.
//!
//! `cargo run -p myelin-examples --example epoll -- subscribe`, and in another terminal the same
//! with `publish`. Both end by themselves.

use std::time::Duration;

use myelin::{Error, Node};
use rustix::event::epoll;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("publish") => Ok(publish()?),
        Some("subscribe") => subscribe(),
        _ => {
            eprintln!("usage: epoll publish|subscribe");
            std::process::exit(2);
        }
    }
}

fn publish() -> Result<(), Error> {
    let publisher = Node::new("odometer")?.topic::<[f64; 2]>("odometry").publisher()?;
    if !publisher.wait_for_match(1, Duration::from_secs(30)) {
        println!("nobody is there; start `epoll subscribe` within 30 s");
        return Ok(());
    }
    for step in 0..SAMPLES {
        publisher.publish_copy(&[f64::from(step), 0.5])?;
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("published {SAMPLES} samples");
    Ok(())
}

fn subscribe() -> Result<(), Box<dyn std::error::Error>> {
    let mut odometry = Node::new("display")?.topic::<[f64; 2]>("odometry").subscriber_with_fd()?;
    let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
    let limit = Timespec { tv_sec: 30, tv_nsec: 0 };
    let once = Itimerspec { it_interval: Timespec::default(), it_value: limit };
    rustix::time::timerfd_settime(&timer, TimerfdTimerFlags::empty(), &once)?;

    let loop_fd = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&loop_fd, &odometry, epoll::EventData::new_u64(ODOMETRY), epoll::EventFlags::IN)?;
    epoll::add(&loop_fd, &timer, epoll::EventData::new_u64(TIMER), epoll::EventFlags::IN)?;
    let mut events = Vec::with_capacity(2);
    let mut taken = 0;
    // First take the samples that have come already, then wait. Take until nothing is left before
    // waiting again.
    while taken < SAMPLES {
        while let Some(sample) = odometry.take()? {
            taken += 1;
            println!("at {} m, {} m/s", sample[0], sample[1]);
        }
        if taken < SAMPLES {
            events.clear();
            epoll::wait(&loop_fd, rustix::buffer::spare_capacity(&mut events), None)?;
            if events.iter().any(|event| event.data.u64() == TIMER) {
                println!("not all came within 30 s; start `epoll publish`");
                break;
            }
        }
    }
    Ok(())
}

const SAMPLES: u32 = 10;
const ODOMETRY: u64 = 0;
const TIMER: u64 = 1;
