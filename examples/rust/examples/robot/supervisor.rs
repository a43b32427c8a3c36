//! Starts the parts, restarts those that die, kills those that hang, and ends all of them at
//! Ctrl-C.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use myelin::{EndpointId, Error, Event, Node, Payload, Topic};
use rustix::process::{Pid, Signal};

use crate::common::{Failure, Stop};
use crate::topics;

pub fn run(names: &[String], stop: &Stop) -> Result<(), Failure> {
    // It watches the parts of its own host, even if they use the network.
    let node = Node::builder("supervisor").network(false).open()?;
    let names = names.iter().map(String::as_str);
    let names = if names.len() == 0 { ALL.to_vec() } else { names.collect() };
    let parts = names.into_iter().map(|name| Part::new(&node, name));
    let mut parts = parts.collect::<Result<Vec<Part>, Failure>>()?;
    // Ctrl-C goes to all processes of the terminal: check `stop` before the ended processes.
    while !stop.is_set() {
        for part in &mut parts {
            part.look_after()?;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    end(parts)?;
    // The socket of a killed process stays until the next node opens: this one.
    drop(Node::builder("supervisor").network(false).open()?);
    Ok(())
}

/// The events of the topic that a part publishes.
type Watch = Box<dyn FnMut() -> Vec<Event>>;

/// A watchdog. `deadline` would show whether data comes in time, and without a camera a detector
/// has none. `liveliness` shows whether the process still runs its loop.
fn watch<T: Payload + ?Sized + 'static>(topic: Topic<T>, lease: Duration) -> Result<Watch, Error> {
    let topic = topic.depth(1).transient_local(0).best_effort();
    let mut subscriber = topic.subscriber_builder().liveliness(lease).open()?;
    Ok(Box::new(move || {
        // The samples are not needed, but those of a dead publisher keep its place until they are
        // taken. An error comes from a publisher that wrote invalid data and has been disconnected.
        while let Ok(Some(_)) = subscriber.take() {}
        subscriber.events()
    }))
}

struct Part {
    name: String,
    watch: Watch,
    child: Option<Child>,
    /// Its publisher, once it exists.
    endpoint: Option<EndpointId>,
    /// When it was started, or will be.
    start: Instant,
    /// Short lives in a row.
    failures: u32,
}

impl Part {
    fn new(node: &Node, name: &str) -> Result<Part, Failure> {
        let watch = match name {
            "camera" => watch(topics::image(node), HANGS),
            "detector" => watch(topics::detections(node), HANGS),
            "imu" => watch(topics::imu(node), HANGS),
            "controller" => watch(topics::command(node), HANGS),
            "logger" => watch(topics::log_status(node), DISK_HANGS),
            _ => return Err(format!("there is no part {name:?}, but {}", ALL.join(", ")).into()),
        };
        // The logger starts later, to show that it misses nothing.
        let delay = Duration::from_secs(u64::from(name == "logger"));
        let (name, start) = (name.to_string(), Instant::now() + delay);
        Ok(Part { name, watch: watch?, child: None, endpoint: None, start, failures: 0 })
    }

    fn look_after(&mut self) -> Result<(), Failure> {
        let events = (self.watch)();
        let Some(child) = &mut self.child else {
            if self.start <= Instant::now() {
                self.begin();
            }
            return Ok(());
        };
        if let Some(status) = child.try_wait()? {
            let delay = self.delay();
            println!("supervisor: {} has ended ({status}), again in {delay:?}", self.name);
            (self.child, self.endpoint) = (None, None);
            self.start = Instant::now() + delay;
            return Ok(());
        }
        if self.endpoint.is_none() && self.start.elapsed() > START_MAX {
            println!("supervisor: {} does not come up and is killed", self.name);
            child.kill()?;
            self.start = Instant::now();
        }
        for event in events {
            match event {
                Event::Matched { endpoint, pid } if pid == child.id() => {
                    self.endpoint = Some(endpoint);
                }
                Event::LivelinessLost { endpoint } if self.endpoint == Some(endpoint) => {
                    println!("supervisor: {} hangs and is killed", self.name);
                    child.kill()?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn begin(&mut self) {
        self.start = Instant::now();
        match self.spawn() {
            Ok(child) => {
                println!("supervisor: {} is process {}", self.name, child.id());
                self.child = Some(child);
            }
            // Out of memory or processes: the others go on, and the start is tried again.
            Err(error) => {
                let delay = self.delay();
                println!("supervisor: {} cannot start ({error}), again in {delay:?}", self.name);
                self.start += delay;
            }
        }
    }

    fn spawn(&self) -> std::io::Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(&self.name).env(SUPERVISOR, std::process::id().to_string()).spawn()
    }

    /// The time until the next start: none after a long life, and longer and longer after short
    /// ones, so that a part that cannot even start does not take all of the machine.
    fn delay(&mut self) -> Duration {
        self.failures = if self.start.elapsed() > LONG_LIFE { 0 } else { self.failures + 1 };
        DELAY_MAX.min(DELAY_MIN * 2_u32.saturating_pow(self.failures))
    }
}

/// Asks all parts to end, and kills those that do not.
fn end(parts: Vec<Part>) -> Result<(), Failure> {
    println!("supervisor: ends");
    for child in parts.iter().filter_map(|part| part.child.as_ref()) {
        // The process has not been waited for yet, so the number is still its own.
        rustix::process::kill_process(Pid::from_child(child), Signal::TERM)?;
    }
    let patience = Instant::now() + PATIENCE;
    for part in parts {
        let Some(mut child) = part.child else { continue };
        while child.try_wait()?.is_none() {
            if patience <= Instant::now() {
                println!("supervisor: {} does not end and is killed", part.name);
                child.kill()?;
                child.wait()?;
                break;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
    Ok(())
}

/// Called in a part: if the supervisor dies, for any reason, the kernel asks this process to end,
/// so that no part is left without a supervisor.
pub fn end_with_it() -> Result<(), Failure> {
    let Ok(supervisor) = std::env::var(SUPERVISOR) else { return Ok(()) };
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().to_string());
    if parent.as_deref() != Some(&*supervisor) {
        return Err("the supervisor has died meanwhile".into());
    }
    Ok(())
}

/// In the order of their start.
const ALL: [&str; 5] = ["camera", "detector", "imu", "controller", "logger"];
const SUPERVISOR: &str = "ROBOT_SUPERVISOR";
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// The limit until its publisher exists.
const START_MAX: Duration = Duration::from_secs(10);
const HANGS: Duration = Duration::from_secs(2);
/// Disks may be slow.
const DISK_HANGS: Duration = Duration::from_secs(30);
const DELAY_MIN: Duration = Duration::from_millis(50);
const DELAY_MAX: Duration = Duration::from_secs(5);
const LONG_LIFE: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(10);
