//! Agents on real hosts, reached by OpenSSH. It is the user's own ssh, with the user's
//! configuration, keys, known hosts and jump hosts.
//!
//! ```text
//! lab                        ssh ── sshd ── sh                         host
//!  │ ◀── "myelin-agent <machine>" ────────── │  makes a folder
//!  │ ── program, drivers, in blocks ───────▶ │  writes them there
//!  │ ◀─────────────── frames ──────────────▶ │  runs the program as an agent; removes the folder
//! ```
//! One connection lasts as long as the agent. If it breaks, the agent's input ends or stays silent.
//! The agent then ends, and the shell that waits for it removes the folder.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail, ensure};

use super::Connection;

/// Starts an agent on `host`, with copies of `drivers`.
pub(super) fn connect(host: &str, drivers: &[PathBuf]) -> Result<Connection> {
    let program = std::env::current_exe()?;
    let mut parcels = vec![Parcel::of(&program, PROGRAM)?];
    for driver in drivers {
        let name = driver.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        parcels.push(Parcel::of(driver, name)?);
    }
    let mut command = ssh(host);
    command.arg(shell_command(&parcels));
    let mut connection =
        Connection::open(host, &mut command).map_err(|error| not_started(error, &command))?;
    match bootstrap(host, &mut connection.process, parcels) {
        Ok(folder) => {
            connection.drivers = Some(folder);
            Ok(connection)
        }
        Err(error) => {
            let _ = connection.process.kill();
            let _ = connection.process.wait();
            Err(error)
        }
    }
}

/// The ssh(1) command with the options of every connection.
fn ssh(host: &str) -> Command {
    let words = std::env::var(COMMAND).unwrap_or_default();
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("ssh"));
    command.args(words);
    for option in OPTIONS {
        command.args(["-o", option]);
    }
    let (destination, port) = destination(host);
    if let Some(port) = port {
        command.args(["-p", port]);
    }
    command.args(["-T", "--", destination]);
    command
}

/// Splits `host:port`, which ssh itself accepts only in URIs. The host part may be anything that
/// ssh accepts.
fn destination(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port))
            if !port.is_empty()
                && port.bytes().all(|byte| byte.is_ascii_digit())
                && (!name.contains(':') || name.ends_with(']')) =>
        {
            // An IPv6 address in brackets.
            let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
            (bare.unwrap_or(name), Some(port))
        }
        _ => (host, None),
    }
}

/// A file to send to a host.
struct Parcel {
    name: String,
    file: File,
    bytes: u64,
}

impl Parcel {
    fn of(path: &Path, name: &str) -> Result<Self> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        ensure!(
            !name.is_empty() && name.bytes().all(is_plain),
            "{}: the name of a driver for another host may have only letters, digits, - and _",
            path.display()
        );
        let open = || {
            let file = File::open(path)?;
            let bytes = file.metadata()?.len();
            io::Result::Ok((file, bytes))
        };
        let (file, bytes) = open().map_err(|error| anyhow!("{}: {error}", path.display()))?;
        Ok(Parcel { name: name.into(), file, bytes })
    }

    fn blocks(&self) -> u64 {
        self.bytes.div_ceil(BLOCK_BYTES)
    }

    /// Sends whole blocks. The last one is padded with zeros, which do no harm at the end of an
    /// executable.
    fn send(self, to: &mut impl Write) -> io::Result<()> {
        let whole_bytes = self.blocks() * BLOCK_BYTES;
        let bytes = self.file.take(self.bytes).chain(io::repeat(0));
        io::copy(&mut bytes.take(whole_bytes), to).map(drop)
    }
}

/// A command for the login shell there, which may be any shell: a single line for sh(1), without
/// its own quotation marks inside. `dd` reads exactly the blocks of the file and leaves the rest to
/// the agent.
fn shell_command(parcels: &[Parcel]) -> String {
    let mut script = String::from(
        "umask 077; d=$(mktemp -d \"${TMPDIR:-/tmp}/myelin.XXXXXX\") || exit 1; \
         away() { rm -rf \"$d\"; }; leave() { exit 1; }; trap away EXIT; \
         trap leave HUP INT TERM PIPE; \
         put() { dd bs=64k count=$2 iflag=fullblock of=\"$d/$1\" 2>/dev/null; \
         [ $(wc -c <\"$d/$1\") = $3 ] && chmod 700 \"$d/$1\" && return; \
         echo \"$1 could not be written to $d: is there room?\" >&2; exit 1; }; ",
    );
    script += &format!("echo \"{GREETING}$(uname -m) $d\"; ");
    for parcel in parcels {
        let (name, blocks) = (&parcel.name, parcel.blocks());
        script += &format!("put {name} {blocks} {}; ", blocks * BLOCK_BYTES);
    }
    script += &format!("\"$d/{PROGRAM}\" bench agent --folder \"$d/runs\"");
    format!("exec sh -c '{script}'")
}

/// Waits for the shell there, compares the machine, and sends the program; returns the folder
/// there.
fn bootstrap(host: &str, process: &mut Child, parcels: Vec<Parcel>) -> Result<PathBuf> {
    let mut output = process.stdout.take().expect("piped");
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let greeting = greeting(&mut output);
        let _ = sender.send((greeting, output));
    });
    let Ok((greeting, output)) = receiver.recv_timeout(GREETING_LIMIT) else {
        let seconds = GREETING_LIMIT.as_secs();
        bail!("host {host}: no answer in {seconds} s; `ssh {host} true` must end by itself");
    };
    process.stdout = Some(output);
    let Some((machine, folder)) = greeting else {
        bail!(why_closed(host, process));
    };
    let ours = rustix::system::uname().machine().to_string_lossy().into_owned();
    ensure!(
        machine == ours,
        "host {host} is {machine}, but this program is {ours}: both hosts and the host of this \
         program must have the same architecture"
    );
    let input = process.stdin.as_mut().expect("piped");
    for parcel in parcels {
        let name = parcel.name.clone();
        if let Err(error) = parcel.send(input) {
            bail!("{} (while {name} was sent: {error})", why_closed(host, process));
        }
    }
    Ok(folder.into())
}

/// The machine and the folder from the shell's greeting. Skips output of the user's start-up files
/// before it. Reads not a byte more, because what follows is the agent's.
fn greeting(output: &mut ChildStdout) -> Option<(String, String)> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    for _ in 0..GREETING_BYTES_MAX {
        if output.read(&mut byte).ok()? == 0 {
            return None;
        }
        if byte[0] != b'\n' {
            line.push(byte[0]);
            continue;
        }
        let text = String::from_utf8_lossy(&line).into_owned();
        if let Some((machine, folder)) =
            text.strip_prefix(GREETING).and_then(|rest| rest.split_once(' '))
        {
            return Some((machine.into(), folder.into()));
        }
        line.clear();
    }
    None
}

fn not_started(error: anyhow::Error, command: &Command) -> anyhow::Error {
    let program = command.get_program().to_string_lossy().into_owned();
    match error.downcast_ref::<io::Error>() {
        Some(cause) if cause.kind() == ErrorKind::NotFound => {
            anyhow!("{program} is not installed: apt-get install openssh-client")
        }
        _ => error,
    }
}

fn why_closed(host: &str, process: &mut Child) -> String {
    drop(process.stdin.take());
    let mut said = String::new();
    let ended = process.wait();
    if let Some(errors) = process.stderr.take() {
        let _ = errors.take(SAID_BYTES_MAX).read_to_string(&mut said);
    }
    let (reason, remedy) = explain(host, &said);
    match (reason, ended) {
        (Some(reason), _) => format!("host {host}: {reason}; {remedy}"),
        (None, Ok(status)) => format!("host {host}: ssh ended with {status}; {remedy}"),
        (None, Err(error)) => format!("host {host}: ssh: {error}"),
    }
}

/// The line of ssh's output with the reason, and the remedy.
fn explain(host: &str, said: &str) -> (Option<String>, String) {
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let last = lines.clone().next_back().map(str::to_owned);
    for (sign, remedy) in REMEDIES {
        if let Some(line) = lines.clone().find(|line| line.contains(sign)) {
            let line = line.trim_matches(['@', ' ']).trim_end_matches(['.', '!']);
            return (Some(line.to_owned()), remedy.replace("HOST", host));
        }
    }
    (last, format!("`ssh {host} true` must work without a prompt"))
}

/// Replacement for the ssh command, with options, for instance `ssh -F FILE`.
const COMMAND: &str = "MYELIN_SSH";
/// ssh must not ask questions, must give up a silent host within seconds, and must not forward
/// anything of the user's session.
const OPTIONS: [&str; 9] = [
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ServerAliveInterval=3",
    "ServerAliveCountMax=3",
    "LogLevel=INFO",
    "ForwardAgent=no",
    "ForwardX11=no",
    "ClearAllForwardings=yes",
    "RemoteCommand=none",
];
/// Parts of ssh's messages, the more specific ones first, and what to do.
const REMEDIES: [(&str, &str); 11] = [
    ("Could not resolve hostname", "check the name: `ssh HOST` must work"),
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "if the host was installed again, run `ssh-keygen -R HOST` and log in once by hand",
    ),
    ("key verification failed", "log in once by hand, `ssh HOST`, and compare the key"),
    ("Permission denied (", "install your key there (`ssh-copy-id HOST`), or load it (`ssh-add`)"),
    ("Too many authentication failures", "name the key in ~/.ssh/config: IdentityFile"),
    ("Connection refused", "it runs no SSH server: apt-get install openssh-server there"),
    ("timed out", "check that the host is on and that no firewall blocks ssh"),
    ("No route to host", "check that the host is on and in this network"),
    ("Network is unreachable", "check that this host is on the network"),
    ("Bad configuration option", "see ~/.ssh/config"),
    ("could not be written to", "or set TMPDIR there"),
];
const PROGRAM: &str = "myelin";
const GREETING: &str = "myelin-agent ";
/// The block size of `dd` in the script.
const BLOCK_BYTES: u64 = 64 * 1024;
const GREETING_LIMIT: Duration = Duration::from_secs(30);
/// Limit of the output before the greeting.
const GREETING_BYTES_MAX: usize = 64 * 1024;
const SAID_BYTES_MAX: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_may_follow_the_host() {
        for (text, expected) in [
            ("a", ("a", None)),
            ("robot@a:2222", ("robot@a", Some("2222"))),
            ("a:b", ("a:b", None)),
            ("fd00::22", ("fd00::22", None)),
            ("[fd00::2]:22", ("fd00::2", Some("22"))),
            ("ssh://robot@a:22", ("ssh://robot@a:22", None)),
        ] {
            assert_eq!(destination(text), expected, "{text}");
        }
    }

    #[test]
    fn ssh_errors_get_a_remedy() {
        for (said, reason, remedy) in [
            (
                "ssh: Could not resolve hostname b: Name or service not known\r\n",
                "ssh: Could not resolve hostname b: Name or service not known",
                "check the name: `ssh b` must",
            ),
            (
                "@@@@@\n@  WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!  @\n@@@@\n\
                 Host key verification failed.\n",
                "WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED",
                "ssh-keygen -R",
            ),
            ("Host key verification failed.\n", "Host key verification failed", "by hand, `ssh b`"),
            (
                "Welcome!\nu@b: Permission denied (publickey).\n",
                "u@b: Permission denied (publickey)",
                "ssh-copy-id b",
            ),
            ("first\nsomething else\n\n", "something else", "`ssh b true`"),
        ] {
            let (found, what_to_do) = explain("b", said);
            assert_eq!(found.as_deref(), Some(reason));
            assert!(what_to_do.contains(remedy), "{what_to_do}");
        }
        assert_eq!(explain("b", " \n").0, None);
    }

    #[test]
    fn the_shell_reads_exactly_its_own_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("driver");
        let script = "#!/bin/sh\necho \"$@\"; cat\n#";
        std::fs::write(&path, script).unwrap();
        let parcels = || vec![Parcel::of(&path, PROGRAM).unwrap()];
        let mut shell = Command::new("sh")
            .args(["-c", &shell_command(&parcels())])
            .env("TMPDIR", folder.path())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = shell.stdin.take().unwrap();
        for parcel in parcels() {
            parcel.send(&mut input).unwrap();
        }
        input.write_all(b"the rest").unwrap();
        drop(input);
        let mut output = shell.stdout.take().unwrap();
        let (machine, there) = greeting(&mut output).unwrap();
        assert!(!machine.is_empty());
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, format!("bench agent --folder {there}/runs\nthe rest"));
        assert!(shell.wait().unwrap().success());
        assert!(!Path::new(&there).exists(), "the folder goes with the shell");
    }
}
