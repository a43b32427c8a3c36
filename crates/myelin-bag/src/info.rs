//! What is in a file, without reading all of it if it has a summary.

use crate::ending::{Definitions, Ending, Header, OpenError};
use crate::format::Statistics;
use crate::scanner::{Report, Scanner};
use crate::source::{Source, Window};

/// What is in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// The length of the file.
    pub bytes: u64,
    /// What its header says of its contents, such as `ros2`.
    pub profile: String,
    /// What wrote it.
    pub library: String,
    /// Its schemas and channels.
    pub definitions: Definitions,
    /// How many messages it has, of which channels and times.
    pub statistics: Statistics,
    /// What was found by reading all of it, if it has no summary.
    pub report: Option<Report>,
}

impl Info {
    /// Of a file with a summary, only that is read.
    ///
    /// # Errors
    /// If it is no MCAP file.
    pub fn read(source: impl Source) -> Result<Info, OpenError> {
        let mut window = Window::new(source)?;
        let header = Header::read(&mut window)?;
        let Header { profile, library } = header.clone();
        let bytes = window.source_bytes();
        let ending = Ending::read(&mut window)?;
        if let Ending::Complete { summary: Some(summary), .. } = &ending
            && let Some(statistics) = &summary.statistics
        {
            let (definitions, statistics) = (summary.definitions.clone(), statistics.clone());
            return Ok(Info { bytes, profile, library, definitions, statistics, report: None });
        }
        let mut scanner = Scanner::with_ending(window, header, ending);
        while scanner.next()?.is_some() {}
        let (definitions, report) = (scanner.definitions().clone(), scanner.report().clone());
        let (statistics, report) = (report.read.clone(), Some(report));
        Ok(Info { bytes, profile, library, definitions, statistics, report })
    }
}
