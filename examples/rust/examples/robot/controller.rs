//! A controller: a command for each IMU sample, within 1 ms, based on the detector's latest result.
//! Two topics in one thread, by a wait set.

use std::time::{Duration, Instant};

use myelin::{Error, Event, Node, Publisher, Sample, Wait};

use crate::common::{Failure, LOOK_AROUND, Source, Stop, now_ns, report};
use crate::topics::{self, Command, Detection};

pub fn run(node: &Node, stop: &Stop) -> Result<(), Failure> {
    // Best effort, and no history: no publisher must wait for a controller, and it has no use for
    // old samples.
    let imu = topics::imu(node).best_effort().transient_local(0).deadline(IMU_LATE);
    let mut imu = imu.subscriber()?;
    let detections = topics::detections(node).deadline(DETECTIONS_LATE);
    let mut detections = detections.subscriber()?;
    let mut either = node.wait_set()?;
    either.add(&imu)?;
    either.add(&detections)?;
    // Both topics are periodic: the thread is awake when a sample is due.
    either.set_wait(Wait::Predictive);

    let mut controller = Controller::new(topics::command(node).publisher()?);
    let (mut imu_source, mut detector) = (Source::default(), Source::default());
    while !stop.is_set() {
        either.wait(LOOK_AROUND)?;
        // Whichever topic was ready, the detections come first, so that the command uses them.
        while let Some(seen) = detections.take()? {
            detector.came_from(seen.publisher(), "controller", "detections");
            controller.see(&seen);
        }
        // If there are several samples, we are late. All would be integrated; the command uses the
        // newest.
        let mut newest = None;
        while let Some(sample) = imu.take()? {
            imu_source.came_from(sample.publisher(), "controller", "imu");
            newest = Some(sample);
        }
        match newest {
            Some(sample) => controller.command(sample.stamp_ns)?,
            // There is nothing to command; this tells the supervisor that the controller is alive.
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

/// A dead publisher counts as late, too.
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

    /// The more obstacles there are, the slower.
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

/// The time from the IMU's stamp to the command, for each second.
struct Reactions {
    ns: Vec<u64>,
    begun: Instant,
}

impl Reactions {
    fn new() -> Reactions {
        Reactions { ns: Vec::with_capacity(1024), begun: Instant::now() }
    }

    fn add(&mut self, ns: u64) {
        // At most as many as fit: a control loop does not allocate.
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
/// Ten samples are missing.
const IMU_LATE: Duration = Duration::from_millis(20);
/// Five images are missing.
const DETECTIONS_LATE: Duration = Duration::from_millis(170);
const SPEED_MAX: f64 = 2.0;
const SPEED_BLIND: f64 = 0.2;
