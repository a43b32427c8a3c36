//! Standard output of commands that look at a running robot.

use std::io::{self, IsTerminal, Write};

use anyhow::{Context, Result};
use myelin_bench_lab::stderr::print_line;
use myelin_tools::text::printable;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;

/// Prints a text; false if its reader has gone (`| head`, a closed terminal), which is no error.
///
/// # Errors
/// Such as a full disk.
pub fn print(text: &str) -> Result<bool> {
    let mut output = io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error).context("standard output"),
    }
}

/// One JSON object a line.
///
/// # Errors
/// Keys that are no strings.
pub fn json_lines(values: &[impl Serialize]) -> Result<String> {
    let lines = values.iter().map(|it| Ok(serde_json::to_string(it)? + "\n"));
    lines.collect()
}

/// Prints a note to standard error. It has no characters that a terminal obeys.
pub fn note(text: &str) {
    print_line(format_args!("{}", printable(text)));
}

/// Whether the reader of standard output has gone, without writing.
pub fn has_no_reader() -> bool {
    let output = io::stdout();
    let mut fds = [PollFd::new(&output, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let found = poll(&mut fds, Some(&now));
    found.is_ok() && fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// Whether the terminal, if there is one, only adds text at its end.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|it| it.is_empty() || it == "dumb")
}

/// The width of the terminal; `None` if the output goes elsewhere, where lines may be long.
pub fn width() -> Option<usize> {
    let output = io::stdout();
    if !output.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&output).ok();
    let columns = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
    Some(columns.unwrap_or(80))
}
