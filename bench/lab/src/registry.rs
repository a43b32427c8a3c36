//! Finds the drivers, and the systems that they can run here.
//!
//! A driver is an executable `myelin-driver-<name>` in one of the folders of `MYELIN_DRIVERS`
//! (separated by colons), beside the `myelin` executable, or in `../libexec/myelin` from there. If
//! several have the same name, the first one is used.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use myelin_bench_kit::protocol::{self, Description, Event, PROTOCOL, Prepare, System};
use myelin_bench_kit::{Error, Reason};

use crate::input_error::InputError;
use crate::scenario::Scenario;
use crate::stderr::print_line;

/// A system and the executable that runs it.
#[derive(Clone, Debug)]
pub struct SystemDriver {
    /// The driver's description of the system.
    pub system: System,
    /// The driver's executable.
    pub executable: PathBuf,
}

impl SystemDriver {
    /// The driver's name: the key of its table of options.
    pub fn driver(&self) -> &str {
        let file = self.executable.file_name().and_then(|name| name.to_str()).unwrap_or("");
        file.strip_prefix(PREFIX).unwrap_or(file)
    }

    /// A blocking system without a driver, for tests.
    #[cfg(test)]
    pub(crate) fn named(name: &str) -> Self {
        let text =
            format!(r#"{{"name": "{name}", "about": "", "wait": "block", "transport": "kernel"}}"#);
        let system = serde_json::from_str(&text).expect("a system");
        SystemDriver { system, executable: "myelin-driver-a".into() }
    }

    /// Asks the driver whether it accepts the scenario's options for this system.
    pub fn check(&self, prepare: &Prepare) -> Result<(), Reason> {
        let line = serde_json::to_string(&protocol::Command::Prepare(Box::new(prepare.clone())))
            .expect("commands serialise");
        match ask(&self.executable, "check", &line) {
            Ok(answer) => match serde_json::from_str(answer.lines().next().unwrap_or("")) {
                Ok(Event::Error(reason)) => Err(reason),
                _ => Ok(()),
            },
            Err(error) => {
                Err(Error::new(format!("{}: {error}", self.executable.display())).into_reason())
            }
        }
    }
}

/// All systems of all drivers, floor first, then by name.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    entries: Vec<SystemDriver>,
    /// Drivers that did not answer, and why.
    pub broken: Vec<String>,
}

impl Registry {
    /// Looks for drivers and asks each for its systems.
    pub fn discover() -> Self {
        let mut registry = Registry::default();
        for executable in executables() {
            match describe(&executable) {
                Ok(systems) => registry.entries.extend(
                    systems
                        .into_iter()
                        .map(|system| SystemDriver { system, executable: executable.clone() }),
                ),
                Err(reason) => registry.broken.push(format!("{}: {reason}", executable.display())),
            }
        }
        registry
            .entries
            .sort_by(|a, b| (!a.system.floor, a.driver()).cmp(&(!b.system.floor, b.driver())));
        registry
    }

    /// A registry of these systems, for tests.
    #[cfg(test)]
    pub(crate) fn of(entries: Vec<SystemDriver>) -> Self {
        Registry { entries, broken: Vec::new() }
    }

    /// Every system, in the order of reports.
    pub fn entries(&self) -> &[SystemDriver] {
        &self.entries
    }

    /// The systems of a scenario; each pattern must match at least one. If a driver is missing, the
    /// patterns of a built-in scenario that need it are left out, and added to `notes`.
    pub fn select(
        &self,
        scenario: &Scenario,
        notes: &mut Vec<String>,
    ) -> Result<Vec<SystemDriver>, InputError> {
        self.chosen(&scenario.plan.systems, |index, pattern, error| {
            if !scenario.is_built_in {
                let place = scenario.source.place(&format!("plan.systems.{index}"));
                return Err(error.at(&scenario.source, place));
            }
            let name = &scenario.name;
            notes.push(format!("{pattern} left out of `{name}`: no driver here has such a system"));
            Ok(())
        })
    }

    /// The systems that match one of `patterns`; each pattern must match at least one.
    pub fn matching(&self, patterns: &[String]) -> Result<Vec<SystemDriver>, InputError> {
        self.chosen(patterns, |_, _, error| Err(error))
    }

    fn chosen(
        &self,
        patterns: &[String],
        mut none: impl FnMut(usize, &str, InputError) -> Result<(), InputError>,
    ) -> Result<Vec<SystemDriver>, InputError> {
        let mut chosen = BTreeSet::new();
        for (index, pattern) in patterns.iter().enumerate() {
            match self.places(pattern) {
                Ok(places) => chosen.extend(places),
                Err(error) => none(index, pattern, error)?,
            }
        }
        Ok(chosen.into_iter().map(|place| self.entries[place].clone()).collect())
    }

    /// A pattern that also matches systems that are not secure means those: a secure one is the
    /// same system at a price, and is asked for.
    fn places(&self, pattern: &str) -> Result<Vec<usize>, InputError> {
        let known: Vec<&str> =
            self.entries.iter().map(|entry| entry.system.name.as_str()).collect();
        let what = ("system", "`myelin bench list systems` shows them");
        let found = InputError::matching(what, pattern, &known)?;
        let is_secure = |place: &usize| self.entries[*place].system.secure;
        let (secure, others): (Vec<_>, Vec<_>) = found.into_iter().partition(is_secure);
        Ok(if others.is_empty() { secure } else { others })
    }
}

/// Makes a driver remove what a killed daemon of its middleware left on this host.
pub(crate) fn clean(executable: &Path) {
    if let Err(error) = ask(executable, "clean", "") {
        print_line(error);
    }
}

fn executables() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::env::var_os("MYELIN_DRIVERS")
        .map(|list| std::env::split_paths(&list).collect())
        .unwrap_or_default();
    if let Some(folder) = std::env::current_exe().ok().as_deref().and_then(Path::parent) {
        folders.push(folder.to_path_buf());
        folders.push(folder.join("../libexec/myelin"));
    }
    let mut found = BTreeMap::new();
    for folder in folders {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_driver = name.starts_with(PREFIX) && !name.contains('.');
            if is_driver && is_executable(&entry.path()) {
                found.entry(name).or_insert(entry.path());
            }
        }
    }
    found.into_values().collect()
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// The systems that a driver has on this host.
pub(crate) fn describe(executable: &Path) -> Result<Vec<System>, String> {
    let answer = ask(executable, "describe", "")?;
    let description: Description = serde_json::from_str(&answer)
        .map_err(|error| format!("its description cannot be read: {error}"))?;
    if description.protocol != PROTOCOL {
        let theirs = description.protocol;
        return Err(format!("speaks protocol {theirs}, this lab {PROTOCOL}: rebuild it"));
    }
    Ok(description.systems)
}

/// Runs a subcommand of a driver with one line of input; returns its output. The limits are
/// [`ANSWER_LIMIT`] and [`ANSWER_BYTES_MAX`]. The driver has its own process group, so that Ctrl-C
/// reaches only the lab.
fn ask(executable: &Path, verb: &str, line: &str) -> Result<String, String> {
    let mut child = Command::new(executable)
        .arg(verb)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let answer = first_of(child.stdout.take().expect("piped"), ANSWER_BYTES_MAX);
    let complaint = first_of(child.stderr.take().expect("piped"), COMPLAINT_BYTES_MAX);
    let mut input = child.stdin.take().expect("piped");
    // A driver that does not read its input has closed it; its output says why.
    let _ = writeln!(input, "{line}");
    drop(input);
    let answer = answer.recv_timeout(ANSWER_LIMIT).ok();
    // Either the driver has answered, or it never will.
    let limit = if answer.is_some() { ANSWER_LIMIT } else { Duration::ZERO };
    let status = wait_for(&mut child, limit);
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let Some(answer) = answer else {
        return Err(format!("{verb}: no answer in {} s", ANSWER_LIMIT.as_secs()));
    };
    if !answer.is_empty() || status.is_some_and(|status| status.success()) {
        return Ok(answer);
    }
    // For instance the name of a library that the loader misses.
    let complaint = complaint.recv_timeout(ANSWER_LIMIT).unwrap_or_default();
    Err(match complaint.lines().rfind(|line| !line.trim().is_empty()) {
        Some(line) => {
            let has_apt = Path::new("/usr/bin/apt-get").exists();
            format!("{verb}: {}{}", line.trim(), how_to_install(line, has_apt))
        }
        None => format!("{verb}: ended without an answer"),
    })
}

/// The first `bytes_max` bytes of `from`. The rest is read and dropped, so that the writer is not
/// blocked.
fn first_of(mut from: impl Read + Send + 'static, bytes_max: u64) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // After an error only the bytes before it count.
        let _ = from.by_ref().take(bytes_max).read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
        let _ = std::io::copy(&mut from, &mut std::io::sink());
    });
    receiver
}

/// How to install a library that the loader misses; empty if `line` says something else.
fn how_to_install(line: &str, has_apt: bool) -> String {
    let library = line.split_once(LOADER_MISSES).and_then(|(_, rest)| rest.split(':').next());
    match library {
        Some(name) if has_apt => format!(
            "; to find its package: apt-get install apt-file && apt-file update && apt-file search {name}"
        ),
        Some(name) => format!("; install the package that has {name}"),
        None => String::new(),
    }
}

/// Waits until `process` has ended, at most `limit`.
pub(crate) fn wait_for(process: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + limit;
    loop {
        let status = process.try_wait().ok().flatten();
        if status.is_some() || Instant::now() >= deadline {
            return status;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Time limit for a driver to describe, check or clean.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Longer than any description.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// The words of a loader before the name of a library.
const LOADER_MISSES: &str = "error while loading shared libraries: ";
/// Longer than any message of a loader.
const COMPLAINT_BYTES_MAX: u64 = 4096;
const PREFIX: &str = "myelin-driver-";

#[cfg(test)]
mod tests {
    use super::*;

    fn registry(names: &[&str]) -> Registry {
        Registry::of(names.iter().map(|name| SystemDriver::named(name)).collect())
    }

    #[test]
    fn a_library_that_the_loader_misses_is_searched_by_the_system_s_own_means() {
        let line = "./driver: error while loading shared libraries: libzmq.so.5: cannot open \
            shared object file: No such file or directory";
        let by_apt = how_to_install(line, true);
        assert!(by_apt.ends_with("apt-file search libzmq.so.5"), "{by_apt}");
        let elsewhere = how_to_install(line, false);
        assert_eq!(elsewhere, "; install the package that has libzmq.so.5");
        assert_eq!(how_to_install("thread 'main' panicked", true), "");
    }

    #[test]
    fn a_pattern_means_secure_systems_only_if_it_matches_no_others() {
        let mut here = registry(&["os.tcp", "os.tcp-tls", "zenoh.tls"]);
        here.entries[1..].iter_mut().for_each(|entry| entry.system.secure = true);
        let chosen = |pattern: &str| -> Vec<String> {
            let chosen = here.matching(&[pattern.into()]).unwrap();
            chosen.into_iter().map(|entry| entry.system.name).collect()
        };
        assert_eq!(chosen("os.*"), ["os.tcp"]);
        assert_eq!(chosen("os.tcp-*"), ["os.tcp-tls"]);
        assert_eq!(chosen("*tls"), ["os.tcp-tls", "zenoh.tls"]);
    }

    #[test]
    fn a_built_in_scenario_may_name_missing_drivers() {
        let here = registry(&["os.call", "os.futex"]);
        let mut scenario = Scenario::load("callback").unwrap();
        let mut notes = Vec::new();
        let chosen = here.select(&scenario, &mut notes).unwrap();
        assert_eq!(chosen.len(), 1);
        assert_eq!(notes.len(), scenario.plan.systems.len() - 1, "{notes:?}");
        assert!(notes.iter().any(|note| note.starts_with("libxr.callback left out of `callback`")));
        scenario.is_built_in = false;
        let error = here.select(&scenario, &mut notes).unwrap_err().to_string();
        assert!(error.contains("callback.toml:") && error.contains("no system"), "{error}");
        let unclosed = here.matching(&["os.{call".into()]).unwrap_err().to_string();
        assert!(unclosed.starts_with("system pattern `os.{call`: unclosed brace"), "{unclosed}");
    }
}
