//! Lines for the user beside the results.

use std::fmt::Display;
use std::io::Write;

/// Prints a line on stderr. It is not an error if the reader has gone (`2>&1 | head`, a closed
/// terminal), where `eprintln!` panics.
pub fn print_line(text: impl Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
