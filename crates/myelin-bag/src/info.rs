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
        let mut info = Info::of_header(window.source_bytes(), &header);
        let ending = Ending::read(&mut window)?;
        if let Ending::Complete { summary: Some(summary), .. } = &ending
            && let Some(statistics) = &summary.statistics
        {
            info.definitions = summary.definitions.clone();
            info.statistics = statistics.clone();
            return Ok(info);
        }
        let mut scanner = Scanner::with_ending(window, header, ending);
        while scanner.next()?.is_some() {}
        info.scanned(&scanner);
        Ok(info)
    }

    pub(crate) fn of_header(bytes: u64, header: &Header) -> Info {
        let Header { profile, library } = header.clone();
        Info { bytes, profile, library, ..Info::default() }
    }

    /// Takes what was found by reading all of the file.
    pub(crate) fn scanned<S: Source>(&mut self, scanner: &Scanner<S>) {
        self.definitions = scanner.definitions().clone();
        self.statistics = scanner.report().read.clone();
        self.report = Some(scanner.report().clone());
    }
}
