//! A controller: a command for each IMU sample, within 1 ms, by what the detector has seen last. Two
//! topics in one thread, by a wait set.

use std::time::{Duration, Instant};

use myelin::{Error, Event, Node, Publisher, Sample, Wait};

use crate::common::{Failure, LOOK_AROUND, Source, Stop, now_ns, report};
use crate::topics::{self, Command, Detection};

pub fn run(node: &Node, stop: &Stop) -> Result<(), Failure> {
    // Best effort, and no history: nobody is to wait for a controller, and it has no use for the past.
    let imu = topics::imu(node).best_effort().history(0).deadline(IMU_LATE);
    let mut imu = imu.subscriber()?;
    let detections = topics::detections(node).deadline(DETECTIONS_LATE);
    let mut detections = detections.subscriber()?;
    let mut either = node.wait_set()?;
    either.add(&imu)?;
    either.add(&detections)?;
    // Both are periodic: it is awake when they are due.
    either.set_wait(Wait::Predictive);

    let mut controller = Controller::new(topics::command(node).publisher()?);
    let (mut imu_source, mut detector) = (Source::default(), Source::default());
    while !stop.is_set() {
        either.wait(LOOK_AROUND)?;
        // Whichever it was. The detections come first, so that the command knows of them.
        while let Some(seen) = detections.take()? {
            detector.came_from(seen.publisher(), "controller", "detections");
            controller.see(&seen);
        }
        // If there are several, we are late. All would be integrated; to be acted on is the newest.
        let mut newest = None;
        while let Some(sample) = imu.take()? {
            imu_source.came_from(sample.publisher(), "controller", "imu");
            newest = Some(sample);
        }
        match newest {
            Some(sample) => controller.command(sample.stamp_ns)?,
            // Nothing to command; but the supervisor is to know that this is not our fault.
            None => controller.commands.assert_liveliness()?,
        }
        let (imu_events, detection_events) = (imu.events(), detections.events());
        if is_late(&imu_events) {
            controller.halt()?;
        }
        if is_late(&detection_events) {
            controller.is_blind();
        }
        report("controller", "imu", &imu_events);
        report("controller", "detections", &detection_events);
        controller.reactions.report(imu.lost(), detections.lost());
    }
    Ok(())
}

/// A publisher that has died is late as well.
fn is_late(events: &[Event]) -> bool {
    let is_late =
        |event: &Event| matches!(event, Event::DeadlineMissed { .. } | Event::Unmatched { .. });
    events.iter().any(is_late)
}

struct Controller {
    commands: Publisher<Command>,
    /// m/s
    speed: f64,
    reactions: Reactions,
}

impl Controller {
    fn new(commands: Publisher<Command>) -> Controller {
        Controller { commands, speed: SPEED_BLIND, reactions: Reactions::new() }
    }

    /// The more there is in the way, the slower.
    fn see(&mut self, seen: &Sample<[Detection]>) {
        self.speed = SPEED_MAX / (1 + seen.len()) as f64;
    }

    fn is_blind(&mut self) {
        self.speed = SPEED_BLIND;
    }

    fn command(&mut self, imu_stamp_ns: u64) -> Result<(), Error> {
        self.commands.publish_copy(&Command { stamp_ns: now_ns(), speed: self.speed })?;
        self.reactions.add(now_ns().saturating_sub(imu_stamp_ns));
        Ok(())
    }

    /// Without an IMU no step is safe.
    fn halt(&mut self) -> Result<(), Error> {
        self.commands.publish_copy(&Command { stamp_ns: now_ns(), speed: 0.0 })?;
        Ok(())
    }
}

/// How long it took from the IMU's stamp until the command was out, each second anew.
struct Reactions {
    ns: Vec<u64>,
    begun: Instant,
}

impl Reactions {
    fn new() -> Reactions {
        Reactions { ns: Vec::with_capacity(1024), begun: Instant::now() }
    }

    fn add(&mut self, ns: u64) {
        // At most what there is room for: a control loop does not ask for memory.
        if self.ns.len() < self.ns.capacity() {
            self.ns.push(ns);
        }
    }

    fn report(&mut self, imu_lost: u64, detections_lost: u64) {
        if self.begun.elapsed() < Duration::from_secs(1) {
            return;
        }
        self.begun = Instant::now();
        self.ns.sort_unstable();
        let us = |part: f64| match self.ns.len() {
            0 => 0,
            count => self.ns[(part * (count - 1) as f64) as usize] / 1000,
        };
        let late = self.ns.iter().filter(|ns| **ns > LIMIT.as_nanos() as u64).count();
        println!(
            "controller: {} commands, reaction p50 {} µs, p99 {} µs, max {} µs, {late} over {LIMIT:?}; \
             lost: imu {imu_lost}, detections {detections_lost}",
            self.ns.len(),
            us(0.5),
            us(0.99),
            us(1.0),
        );
        self.ns.clear();
    }
}

const LIMIT: Duration = Duration::from_millis(1);
/// Ten samples have not come.
const IMU_LATE: Duration = Duration::from_millis(20);
/// Five images have not come.
const DETECTIONS_LATE: Duration = Duration::from_millis(170);
const SPEED_MAX: f64 = 2.0;
const SPEED_BLIND: f64 = 0.2;
