//! Whether a recording is right, and a right one of a broken one: `myelin bag check`, `repair`.

use std::path::Path;

use myelin_bag::{Checked, Options, RepairError, Repaired, Scanner, WriteError, check, repair};
use serde_json::{Value, json};

use super::{cannot_open, open_file};
use crate::Error;
use crate::output_file::OutputFile;
use crate::text::{counted, printable};

/// Reads all of a file, and looks whether everything in it agrees.
///
/// # Errors
/// One sentence with the path.
pub fn check_file(path: &Path) -> Result<Checked, Error> {
    check(open_file(path)?).map_err(|error| cannot_open(path, error))
}

/// A line for each finding, and one that sums up.
pub fn text(path: &Path, checked: &Checked) -> String {
    let path = printable(&path.display().to_string()).into_owned();
    let mut text = String::new();
    for finding in &checked.findings {
        text += &format!("{path}: {}\n", printable(&finding.to_string()));
    }
    if checked.findings_more > 0 {
        text += &format!("{path}: and {} more\n", checked.findings_more);
    }
    let warnings = checked.findings.iter().filter(|it| !it.problem.is_error()).count();
    let errors = checked.findings.len() - warnings;
    let messages = counted(checked.report.read.messages, "message");
    let of_errors = counted(errors, "error");
    let of_warnings = counted(warnings, "warning");
    text += &match (errors, warnings) {
        (0, 0) => format!("{path}: right, {messages}\n"),
        (0, _) => format!("{path}: right, {messages}, {of_warnings}\n"),
        _ => format!("{path}: {of_errors}, {of_warnings}, {messages}\n"),
    };
    text
}

/// The same as one JSON object.
pub fn json(path: &Path, checked: &Checked) -> Value {
    let findings = checked.findings.iter().map(|finding| {
        let is_error = finding.problem.is_error();
        json!({ "at": finding.at, "is_error": is_error, "text": finding.problem.to_string() })
    });
    let lost = checked.report.lost();
    json!({
        "file": path.display().to_string(),
        "is_right": checked.is_right(),
        "is_complete": checked.report.is_complete,
        "messages": checked.report.read.messages,
        "lost_messages": lost.known,
        "lost_is_exact": lost.is_exact,
        "findings": findings.collect::<Vec<_>>(),
        "findings_more": checked.findings_more,
    })
}

/// Writes all that can be read of a file to another.
///
/// # Errors
/// One sentence with a path. Then there is no new file.
pub fn repair_file(
    from: &Path,
    to: &Path,
    options: Options,
    overwrite: bool,
) -> Result<Repaired, Error> {
    let scanner = Scanner::new(open_file(from)?).map_err(|error| cannot_open(from, error))?;
    let (output, file) = OutputFile::create(to, overwrite)?;
    let repaired = repair(scanner, file, options).map_err(|error| match error {
        RepairError::Read(error) => Error::Io { what: from.display().to_string(), error },
        RepairError::Write(error) => cannot_write(to, &error),
        other => Error::Failed(format!("{}: {other}", from.display())),
    })?;
    // A disk that was full at the last moment is no error of the writer.
    if !repaired.written.lost.is_empty() {
        return Err(Error::Failed(format!("{}: the disk is full", to.display())));
    }
    output.keep()?;
    Ok(repaired)
}

/// One sentence with the path.
pub fn cannot_write(path: &Path, error: &WriteError) -> Error {
    Error::Failed(format!("{}: {error}", path.display()))
}

/// A line for each loss, and one that sums up.
pub fn repaired_text(to: &Path, repaired: &Repaired) -> String {
    let report = &repaired.report;
    let mut text = String::new();
    for loss in &report.losses {
        text += &format!("{}\n", printable(&loss.to_string()));
    }
    if report.losses_more > 0 {
        text += &format!("and {} more\n", report.losses_more);
    }
    let lost = report.lost();
    let messages = counted(repaired.written.statistics.messages, "message");
    let lost = match (repaired.is_lossless(), lost.is_exact) {
        (true, _) => "nothing is lost".to_owned(),
        (_, true) => format!("{} lost", lost.known),
        _ => format!("at least {} lost", lost.known),
    };
    text + &format!("{}: {messages}, {lost}\n", printable(&to.display().to_string()))
}

/// The same as one JSON object.
pub fn repaired_json(to: &Path, repaired: &Repaired) -> Value {
    let losses = repaired.report.losses.iter().map(|loss| {
        json!({
            "at": loss.at,
            "bytes": loss.bytes,
            "messages": loss.messages,
            "text": loss.cause.to_string(),
        })
    });
    let lost = repaired.report.lost();
    json!({
        "file": to.display().to_string(),
        "is_lossless": repaired.is_lossless(),
        "messages": repaired.written.statistics.messages,
        "lost_messages": lost.known,
        "lost_is_exact": lost.is_exact,
        "losses": losses.collect::<Vec<_>>(),
        "losses_more": repaired.report.losses_more,
    })
}
