//! Where the driver's words to the lab go: standard output, which is the protocol's alone.
//!
//! Middlewares write there, too, as they like. So at the start standard output is kept under another
//! descriptor, and what anybody writes to its own number goes where errors go: to the run's log.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::OnceLock;

static LAB: OnceLock<File> = OnceLock::new();

/// From now on standard output is standard error, but for [`say`]. If there is no descriptor left,
/// all stays as it is.
pub(crate) fn keep_standard_output() {
    let (output, error) = (std::io::stdout(), std::io::stderr());
    let Ok(kept) = output.as_fd().try_clone_to_owned() else {
        return;
    };
    // SAFETY: both descriptors are open, and the first stays what it is for, an output.
    if unsafe { libc::dup2(error.as_raw_fd(), output.as_raw_fd()) } >= 0 {
        // A second call finds standard error and changes nothing.
        let _ = LAB.set(File::from(kept));
    }
}

/// Says one line to the lab.
pub(crate) fn say(event: &impl serde::Serialize) {
    let mut line = serde_json::to_string(event).expect("events serialise");
    line.push('\n');
    // A lab that no longer listens will close standard input too; nothing to do here.
    let _ = match LAB.get() {
        Some(mut lab) => lab.write_all(line.as_bytes()),
        None => std::io::stdout().lock().write_all(line.as_bytes()),
    };
}
