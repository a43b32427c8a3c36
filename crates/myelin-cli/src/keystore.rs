//! `myelin keystore`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use myelin_keystore::{Added, Error, Keystore, Rights};
use serde::Serialize;

use crate::output::{json_lines, note, print};

#[derive(Subcommand)]
pub enum Verb {
    /// Make a keystore with a new authority, in the layout of SROS 2.
    Create(Folder),
    /// Add an enclave: the identity of a robot or a process, and its rights. If there is one, it keeps
    /// its identity and gets these rights.
    Add(AddOptions),
    /// Revoke the identity of an enclave.
    Revoke(Named),
    /// List the enclaves.
    List(ListOptions),
    /// Check all files of a keystore; exits with 1 if something is wrong.
    Check(Folder),
}

#[derive(Args)]
pub struct Folder {
    /// The keystore's folder.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

#[derive(Args)]
pub struct Named {
    #[command(flatten)]
    keystore: Folder,
    /// The enclave's name, such as /robot/camera.
    enclave: String,
}

#[derive(Args)]
pub struct AddOptions {
    #[command(flatten)]
    named: Named,
    /// What it may do: publish=TOPIC or subscribe=TOPIC, several times or separated by spaces; `*` in
    /// a topic stands for any characters. Without it the enclave may publish and subscribe to
    /// everything; with it, to nothing else.
    #[arg(long, value_name = "RIGHT", num_args = 1.., value_parser = right)]
    allow: Vec<Right>,
    /// How long a new identity is valid.
    #[arg(long, value_name = "DAYS", default_value_t = 3_650)]
    days: u32,
}

#[derive(Args)]
pub struct ListOptions {
    #[command(flatten)]
    keystore: Folder,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
}

#[derive(Clone)]
enum Right {
    Publish(String),
    Subscribe(String),
}

#[derive(Serialize)]
struct Line<'a> {
    enclave: &'a str,
    valid_until: String,
    state: &'static str,
}

pub fn run(verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::Create(Folder { folder }) => {
            known(Keystore::create(&folder))?;
            note(&format!(
                "{}: made. Add enclaves (`myelin keystore add`); keep `private/` off the robots",
                folder.display()
            ));
        }
        Verb::Add(options) => add(options)?,
        Verb::Revoke(Named { keystore, enclave }) => {
            let list = known(open(&keystore.folder)?.revoke(&enclave))?;
            note(&format!(
                "{enclave}: revoked. Copy {} to the keystores of all hosts, whose nodes refuse it within \
                 seconds",
                list.display()
            ));
        }
        Verb::List(options) => list(&options)?,
        Verb::Check(Folder { folder }) => return check(&folder),
    }
    Ok(ExitCode::SUCCESS)
}

fn add(options: AddOptions) -> Result<()> {
    let AddOptions { named: Named { keystore, enclave }, allow, days } = options;
    let mut rights = Rights::default();
    if !allow.is_empty() {
        rights = Rights { publish: Vec::new(), subscribe: Vec::new() };
    }
    for right in allow {
        match right {
            Right::Publish(topic) => rights.publish.push(topic),
            Right::Subscribe(topic) => rights.subscribe.push(topic),
        }
    }
    match known(open(&keystore.folder)?.add(&enclave, &rights, days))? {
        Added::Identity => note(&format!(
            "{enclave}: made. Its program needs MYELIN_NETWORK=1 MYELIN_KEYSTORE={} \
             MYELIN_ENCLAVE={enclave}",
            keystore.folder.display()
        )),
        Added::Rights => note(&format!("{enclave}: new rights; its identity stays")),
    }
    Ok(())
}

fn list(options: &ListOptions) -> Result<()> {
    let enclaves = known(open(&options.keystore.folder)?.enclaves())?;
    let lines: Vec<_> = enclaves
        .iter()
        .map(|it| Line {
            enclave: &it.name,
            valid_until: DateTime::<Utc>::from(it.not_after)
                .format("%Y-%m-%dT%H:%M:%SZ")
                .to_string(),
            state: match (it.is_revoked, it.is_out_of_time) {
                (true, _) => "revoked",
                (false, true) => "expired",
                (false, false) => "valid",
            },
        })
        .collect();
    if options.json {
        return print(&json_lines(&lines)?).map(drop);
    }
    let width = lines.iter().map(|it| it.enclave.len()).max().unwrap_or(0);
    let text: String = lines
        .iter()
        .map(|it| format!("{:width$}  {:7}  until {}\n", it.enclave, it.state, it.valid_until))
        .collect();
    print(&text).map(drop)
}

fn check(folder: &Path) -> Result<ExitCode> {
    let findings = known(open(folder)?.check())?;
    for finding in &findings {
        print(&format!("{finding}\n"))?;
    }
    Ok(match findings.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn open(folder: &Path) -> Result<Keystore> {
    known(Keystore::open(folder))
}

/// With the exit status that fits.
fn known<T>(result: Result<T, Error>) -> Result<T> {
    use myelin_tools::Error::{BadInput, Failed, NotFound};
    result.map_err(|error| {
        let text = error.to_string();
        let known = match error {
            Error::Name(_) | Error::Topic(_) | Error::Days(_) | Error::Exists(_) => BadInput(text),
            Error::NotAKeystore { .. } | Error::NoEnclave { .. } => NotFound(text),
            _ => Failed(text),
        };
        known.into()
    })
}

fn right(text: &str) -> Result<Right, String> {
    match text.split_once('=') {
        Some(("publish", topic)) if !topic.is_empty() => Ok(Right::Publish(topic.to_owned())),
        Some(("subscribe", topic)) if !topic.is_empty() => Ok(Right::Subscribe(topic.to_owned())),
        _ => Err("use publish=TOPIC or subscribe=TOPIC".to_owned()),
    }
}
