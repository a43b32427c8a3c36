//! The driver's messages to the lab: standard output, which is reserved for the protocol.
//!
//! Middlewares print to standard output as well. So at the start it is moved to another descriptor,
//! and prints to the usual number go to standard error, and thus to the run's log.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::OnceLock;

static LAB: OnceLock<File> = OnceLock::new();

/// From now on standard output goes to standard error, except for [`say`]. If no descriptor is
/// left, nothing changes.
pub(crate) fn keep_standard_output() {
    let (output, error) = (std::io::stdout(), std::io::stderr());
    let Ok(kept) = output.as_fd().try_clone_to_owned() else {
        return;
    };
    // SAFETY: both descriptors are open, and the first remains an output.
    if unsafe { libc::dup2(error.as_raw_fd(), output.as_raw_fd()) } >= 0 {
        // A second call would only move standard error, and changes nothing.
        let _ = LAB.set(File::from(kept));
    }
}

/// Sends one line to the lab.
pub(crate) fn say(event: &impl serde::Serialize) {
    let mut line = serde_json::to_string(event).expect("events serialise");
    line.push('\n');
    // If the lab no longer listens, it closes standard input, too; nothing to do here.
    let _ = match LAB.get() {
        Some(mut lab) => lab.write_all(line.as_bytes()),
        None => std::io::stdout().lock().write_all(line.as_bytes()),
    };
}
