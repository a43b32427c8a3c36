//! The program around a driver: speaks the line protocol and runs its role.

use std::io::BufRead;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::check::check;
use crate::clock::{self, Clock};
use crate::clock_discipline;
use crate::clock_exchange::{Client, Server};
use crate::driver::Driver;
use crate::enclave;
use crate::error::Error;
use crate::part::{self, Opened, Part};
use crate::process;
use crate::protocol::writer::{self, say};
use crate::protocol::{Command, Description, Done, Event, PROTOCOL, Prepare, Ready, Role};
use crate::samples::SampleFile;

/// The whole `main` of a driver: `describe`, `check`, `clean` or `run`. The lab adds the name of the
/// process after `run`, but only for readers of the process list; the protocol determines the role.
pub fn main(driver: &dyn Driver) -> ExitCode {
    act(driver, &std::env::args().nth(1).unwrap_or_default())
}

/// Like [`main`], for a program in an interpreter, whose first argument is not the verb.
pub fn act(driver: &dyn Driver, verb: &str) -> ExitCode {
    writer::keep_standard_output();
    let result = match verb {
        "describe" => {
            let systems = driver.systems();
            say(&Description { protocol: PROTOCOL, systems });
            Ok(())
        }
        "check" => answer_check(driver),
        "clean" => driver.clean().and(enclave::clean()),
        "run" => run(driver),
        _ => {
            let name = std::env::args().next().unwrap_or_default();
            eprintln!("usage: {name} describe | check | clean | run");
            eprintln!("A driver of `myelin bench`; `myelin bench run` starts it.");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            say(&Event::Error(error.into_reason()));
            ExitCode::FAILURE
        }
    }
}

fn answer_check(driver: &dyn Driver) -> Result<(), Error> {
    let Command::Prepare(prepare) = next_command()? else {
        return Err(Error::new("protocol: check takes a prepare"));
    };
    check(driver, &prepare)?;
    say(&Event::Ready(Ready::default()));
    Ok(())
}

fn run(driver: &dyn Driver) -> Result<(), Error> {
    let prepare = match next_command()? {
        Command::Prepare(prepare) => prepare,
        Command::Stop => return Ok(()),
        Command::Start { .. } => return Err(Error::new("protocol: start before prepare")),
    };
    if prepare.protocol != PROTOCOL {
        let theirs = prepare.protocol;
        return Err(Error::new(format!("the lab speaks protocol {theirs}, the driver {PROTOCOL}"))
            .remedy("rebuild both: make build"));
    }
    if prepare.record_every == 0 || prepare.parts_every == 0 {
        let text = "protocol: record_every or parts_every is 0";
        return Err(Error::new(text).remedy("1 keeps every record with all its parts"));
    }
    match prepare.role {
        Role::Daemon => run_daemon(driver, &prepare),
        Role::Clock => run_clock(driver, &prepare),
        Role::Ping | Role::Pong => run_role(driver, *prepare),
    }
}

fn run_role(driver: &dyn Driver, mut prepare: Prepare) -> Result<(), Error> {
    let system = driver.system(&prepare.system);
    let _enclave = enclave::enter(system.as_ref(), &mut prepare)?;
    let prepare = &prepare;
    let path = prepare.samples.as_ref().ok_or_else(|| Error::new("protocol: no sample file"))?;
    if prepare.lock_memory {
        process::lock_memory()?;
    }
    process::allow_open_files();
    // Started before the lab's first observation, so that the thread's stack is not counted.
    let commands = listen(prepare.role);
    let opened = Opened::new(driver, prepare)?;
    let matched_ns = clock::monotonic_ns();
    let mut samples = SampleFile::open(path)?;
    if prepare.ring {
        samples.wrap()?;
    }
    let mut part = Part::new(opened, prepare, samples)?;
    let clock = Some(clock::calibrate());
    say(&Event::Ready(Ready {
        matched_ns,
        clock,
        notes: [part::notes(prepare), driver.notes(prepare)].concat(),
        first_ns: part.first_ns(),
        ..Ready::default()
    }));
    let Ok(start_ns) = commands.start.recv() else {
        return Ok(());
    };
    let stop = commands.stop;
    // The lab only knows the host's clock.
    let start_ns = driver.clock(prepare)?.at_monotonic(start_ns);
    let mut done = part.run(prepare, start_ns, &stop)?;
    done.notes = driver.notes_at_end();
    say(&Event::Done(done));
    // The lab observes this process until it sends stop.
    while !stop.load(Ordering::Relaxed) {
        std::thread::park_timeout(Duration::from_millis(5));
    }
    Ok(())
}

fn run_daemon(driver: &dyn Driver, prepare: &Prepare) -> Result<(), Error> {
    check(driver, prepare)?;
    let mut daemon = driver.start_daemon(prepare)?;
    say(&Event::Ready(Ready { pids: daemon.pids(), ..Ready::default() }));
    let stop = listen(prepare.role).stop;
    let mut health = Ok(());
    while health.is_ok() && !stop.load(Ordering::Relaxed) {
        std::thread::park_timeout(DAEMON_CHECK);
        health = daemon.check();
    }
    let stopped = daemon.stop();
    health.and(stopped)?;
    say(&Event::Done(Done::default()));
    Ok(())
}

/// Reads the other host's clock, or answers for this host's clock.
fn run_clock(driver: &dyn Driver, prepare: &Prepare) -> Result<(), Error> {
    let network = prepare.network.as_ref().ok_or_else(|| {
        Error::new("protocol: a clock exchange without a network; only runs across hosts have one")
    })?;
    let clock = driver.clock(prepare)?;
    let commands = listen(prepare.role);
    let before = clock_discipline::observe(&clock);
    let ready = || say(&Event::Ready(Ready::default()));
    let mut done = if prepare.index == 0 {
        let client = Client::new(network, clock.clone())?;
        ready();
        let Ok(start_ns) = commands.start.recv() else {
            return Ok(());
        };
        Clock::Monotonic.sleep_until(start_ns);
        client.run(&commands.stop)
    } else {
        let server = Server::new(network, clock.clone())?;
        ready();
        // At once, because the other side may start a little earlier.
        server.run(&commands.stop)
    };
    done.clock_discipline = vec![before, clock_discipline::observe(&clock)];
    say(&Event::Done(done));
    Ok(())
}

/// The lab's commands after `prepare`.
struct Commands {
    /// The start time; closed without one if the process has to end instead.
    start: Receiver<u64>,
    /// Set when the process has to end.
    stop: Arc<AtomicBool>,
}

/// Reads standard input in a separate thread. When the input ends, the lab is gone, and a measuring
/// role ends at once. A daemon's supervisor is only stopped, because it has to clean up.
fn listen(role: Role) -> Commands {
    let (sender, start) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let main = std::thread::current();
    std::thread::spawn(move || {
        let ending = loop {
            match next_command() {
                Ok(Command::Start { at_ns }) => drop(sender.send(at_ns)),
                other => break other,
            }
        };
        if ending.is_err() && role != Role::Daemon {
            std::process::exit(1);
        }
        // ORDER: Relaxed, the flag carries nothing else.
        flag.store(true, Ordering::Relaxed);
        main.unpark();
    });
    Commands { start, stop }
}

fn next_command() -> Result<Command, Error> {
    let mut line = String::new();
    if std::io::stdin().lock().read_line(&mut line)? == 0 {
        return Err(Error::new("the lab closed the connection"));
    }
    serde_json::from_str(&line).map_err(|error| Error::new(format!("protocol: {error}: {line}")))
}

/// How often a daemon is checked.
const DAEMON_CHECK: Duration = Duration::from_millis(20);
