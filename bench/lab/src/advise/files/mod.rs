//! The files to use an advised configuration: the configuration that drivers wrote for the measured
//! runs, and the settings of the host.

mod myelin;
mod recorded;
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
    /// Name of the system.
    pub system: &'a str,
    /// The preparation for low latency.
    pub tuning: Tuning,
    /// How its messages travel.
    pub transport: Transport,
    /// Its parameter point.
    pub params: &'a Params,
    /// The use it is advised for: `64 KiB, 100 Hz`.
    pub point: String,
    /// Configuration files of its runs, name → text.
    pub configuration: &'a BTreeMap<String, String>,
    /// CPUs and priority of its runs.
    pub pinned: Option<Pinned>,
}

/// A file for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path within the folder of advice.
    pub name: String,
    /// Its purpose.
    pub about: String,
    /// How to use it.
    pub usage: String,
    /// Its contents.
    pub text: String,
}

/// All files that `advised` needs.
pub fn files(advised: &[Advised], host: &Machine) -> Vec<File> {
    let mut files = recorded::files(advised);
    files.extend(system::sysctl(advised, host));
    files.extend(system::drop_ins(advised, host));
    files.extend(system::awake(advised));
    files.extend(myelin::file(advised));
    files
}

impl Advised<'_> {
    /// `64 KiB, 100 Hz, tuned`.
    fn circumstances(&self) -> String {
        format!("{}, {}", self.point, self.tuning)
    }

    fn wait(&self) -> Wait {
        self.params.wait
    }

    /// Whether its messages are UDP datagrams, which pass through the kernel's socket buffers.
    fn is_udp(&self) -> bool {
        self.transport == Transport::Loopback && !self.system.ends_with(".tcp")
    }
}

/// Renders a file from its template.
fn rendered(template: &str, values: minijinja::Value) -> String {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_keep_trailing_newline(true);
    let values = context! { mark => MARK, ..values };
    environment.render_str(template, values).expect("templates name values that are there")
}

/// The points of several configurations, each once, as far as a line has room.
fn points<'a>(advised: impl Iterator<Item = &'a Advised<'a>>) -> String {
    few(&distinct(advised.map(Advised::circumstances)), POINTS_MAX)
}

/// Further points are only counted.
const POINTS_MAX: usize = 3;

/// Marks every file, so that a later report recognises its own files.
pub const MARK: &str = "Written by `myelin bench report`";
