//! The way to an agent.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// A process whose standard input and output are those of an agent. Standard input, output and
/// error must be pipes. Whatever carries the bytes ends when its input does.
pub(crate) struct Connection {
    /// The host, as messages name it.
    pub name: String,
    /// The agent itself, or what connects it (ssh).
    pub process: Child,
    /// The folder on that host in which drivers are, by the names of their files; `None` where the
    /// paths of the lab's host hold.
    pub drivers: Option<PathBuf>,
}

impl Connection {
    /// Starts `command`, which is or leads to an agent.
    pub(crate) fn open(name: &str, command: &mut Command) -> Result<Self> {
        use std::os::unix::process::CommandExt;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Out of reach of a Ctrl-C that is meant for the lab.
        let process = command
            .process_group(0)
            .spawn()
            .with_context(|| format!("host {name}: {}", command.get_program().to_string_lossy()))?;
        Ok(Connection { name: name.into(), process, drivers: None })
    }
}

/// The command that is an agent on this host.
pub(crate) fn agent() -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "agent"]);
    Ok(command)
}
