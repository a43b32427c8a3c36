//! The command `myelin`. It parses arguments and calls libraries: `bench` is in `bench/lab`.
//! `topic`, `node`, `service`, `top` and `why` are in `myelin-tools`. Only `doctor` has its code here, in
//! `doctor/`.

mod attach;
mod bag;
mod bench;
mod complete;
mod doctor;
mod keystore;
mod node;
mod options;
mod output;
mod play;
mod record;
mod service;
mod top;
mod topic;
mod view;
mod why;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use myelin_bench_lab::input_error::InputError;
use myelin_bench_lab::stderr::print_line;

/// Topics for robots, and a laboratory to measure them.
#[derive(Parser)]
#[command(name = "myelin", version, about)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Measure middlewares: round trips, latency percentiles, CPU and memory.
    #[command(subcommand)]
    Bench(bench::Verb),
    /// Find the causes of latency on this host, and the files that killed processes left behind.
    Doctor(doctor::Options),
    /// Look at topics that run, and publish from the command line.
    #[command(subcommand)]
    Topic(topic::Verb),
    /// Look at nodes that run.
    #[command(subcommand)]
    Node(node::Verb),
    /// Look at services that run, and call them.
    #[command(subcommand)]
    Service(service::Verb),
    /// Watch all topics and nodes on one screen.
    Top(top::Options),
    /// Find out why nothing arrives on a topic.
    Why(why::Options),
    /// Record topics into an MCAP file.
    Record(Box<record::Options>),
    /// Publish what an MCAP file contains.
    Play(play::Options),
    /// Look at MCAP files, check, repair, cut, merge, compare and export them.
    #[command(subcommand)]
    Bag(bag::Verb),
    /// Show a running robot, or a file, in Foxglove, Lichtblick, PlotJuggler or a browser.
    View(view::Options),
    /// Make keystores, by which hosts authenticate each other and encrypt what they send.
    #[command(subcommand)]
    Keystore(keystore::Verb),
    /// Print the script that makes a shell complete options and the names of what runs.
    Completions {
        /// The shell; for bash run `source <(myelin completions bash)`.
        shell: Shell,
    },
    /// Write the manual's pages, for packages.
    #[command(hide = true)]
    Man {
        /// The folder, which exists.
        folder: PathBuf,
    },
}

fn main() -> ExitCode {
    CompleteEnv::with_factory(Arguments::command).var(COMPLETE).complete();
    let done = match Arguments::parse().verb {
        Verb::Bench(verb) => bench::run(verb),
        Verb::Doctor(options) => doctor::run(&options),
        Verb::Topic(verb) => topic::run(verb),
        Verb::Node(verb) => node::run(verb),
        Verb::Service(verb) => service::run(verb),
        Verb::Top(options) => top::run(options),
        Verb::Why(options) => why::run(options),
        Verb::Record(options) => record::run(*options),
        Verb::Play(options) => play::run(options),
        Verb::Bag(verb) => bag::run(verb),
        Verb::View(options) => view::run(options),
        Verb::Keystore(verb) => keystore::run(verb),
        Verb::Completions { shell } => completions(shell).map(|()| ExitCode::SUCCESS),
        Verb::Man { folder } => write_manual(&folder).map(|()| ExitCode::SUCCESS),
    };
    match done {
        Ok(code) => code,
        Err(error) if error.is::<InputError>() => {
            print_line(format_args!("error: {error}"));
            ExitCode::from(BAD_INPUT)
        }
        Err(error) => {
            if let Some(known) = error.downcast_ref::<myelin_tools::Error>() {
                print_line(format_args!("error: {known}"));
                return ExitCode::from(known.status());
            }
            print_line(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn write_manual(folder: &Path) -> Result<()> {
    let command = Arguments::command();
    clap_mangen::generate_to(command, folder)
        .with_context(|| format!("{}: the manual cannot be written there", folder.display()))
}

/// The script calls this program at each Tab.
fn completions(shell: Shell) -> Result<()> {
    let shells = Shells::builtins();
    let it = shells.completer(&shell.to_string()).context("this shell cannot be completed")?;
    let mut text = Vec::new();
    it.write_registration(COMPLETE, "myelin", "myelin", "myelin", &mut text)?;
    say(&String::from_utf8_lossy(&text));
    Ok(())
}

/// Prints; it is not an error if the reader has gone (`| head`, a closed terminal).
fn say(text: &str) {
    let _ = output::print(text);
}

/// The variable by which a shell's script asks for completions.
const COMPLETE: &str = "MYELIN_COMPLETE";

/// The exit status for input of the user that cannot be used.
const BAD_INPUT: u8 = 2;
