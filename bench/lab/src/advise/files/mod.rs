//! The files to use what is advised, made of the configuration that the measured runs were given.
//!
//! Of peers it is their drivers' own, which is recorded with every run: what was measured is what
//! is handed over, but for what concerns the run alone. What differs is said in each file.

mod myelin;
mod peers;
mod roudi;
mod system;

use std::collections::BTreeMap;

use minijinja::{Environment, context};
use myelin_bench_kit::protocol::{Transport, Wait};

use crate::lists::{distinct, few};
use crate::machine::Machine;
use crate::scenario::Tuning;
use crate::summary::{Params, Pinned};

/// A cell whose configuration is advised.
#[derive(Clone, Debug)]
pub struct Advised<'a> {
    /// Of the system.
    pub system: &'a str,
    /// What was done for latency.
    pub tuning: Tuning,
    /// What its messages travel over.
    pub transport: Transport,
    /// Its parameter point.
    pub params: &'a Params,
    /// For what, in words: `64 KiB, 100 Hz`.
    pub point: String,
    /// Files that its runs were given, name → text.
    pub configuration: &'a BTreeMap<String, String>,
    /// Where its runs had their place.
    pub pinned: Option<Pinned>,
}

/// A file to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Within the folder of advice.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// How it is used.
    pub usage: String,
    /// What is in it.
    pub text: String,
}

/// Every file that `advised` needs, and why others could not be made.
pub fn files(advised: &[Advised], host: &Machine) -> (Vec<File>, Vec<String>) {
    let (mut files, mut failures) = peers::files(advised);
    match roudi::file(advised) {
        Ok(file) => files.extend(file),
        Err(failure) => failures.push(failure),
    }
    files.extend(system::sysctl(advised, host));
    files.extend(system::drop_ins(advised, host));
    files.extend(system::awake(advised));
    files.extend(myelin::file(advised));
    (files, failures)
}

impl Advised<'_> {
    /// `64 KiB, 100 Hz, tuned`.
    fn circumstances(&self) -> String {
        format!("{}, {}", self.point, self.tuning)
    }

    fn wait(&self) -> Wait {
        self.params.wait
    }

    /// Whether its messages are datagrams in socket buffers of the kernel.
    fn is_udp(&self) -> bool {
        self.transport == Transport::Loopback && !self.system.ends_with(".tcp")
    }
}

/// The text of a file by its template.
fn rendered(template: &str, values: minijinja::Value) -> String {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_keep_trailing_newline(true);
    let values = context! { mark => MARK, ..values };
    environment.render_str(template, values).expect("templates name values that are there")
}

/// The points of several, each once, as far as a line has room for.
fn points<'a>(advised: impl Iterator<Item = &'a Advised<'a>>) -> String {
    few(&distinct(advised.map(Advised::circumstances)), POINTS_MAX)
}

/// More are counted.
const POINTS_MAX: usize = 3;

/// In every file, so that a report made again knows its own.
pub const MARK: &str = "Written by `myelin bench report`";
