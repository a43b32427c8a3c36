//! The parameters of a cell that figures are drawn against.

use super::entry::Entry;
use super::format;
use crate::summary::{Cell, Params};

/// The parameter of a sweep.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Parameter {
    Payload,
    Rate,
    Subscribers,
    Publishers,
    Topics,
}

impl Parameter {
    pub(super) const ALL: [Parameter; 5] = [
        Parameter::Payload,
        Parameter::Rate,
        Parameter::Subscribers,
        Parameter::Publishers,
        Parameter::Topics,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Parameter::Payload => "payload",
            Parameter::Rate => "rate",
            Parameter::Subscribers => "subscribers",
            Parameter::Publishers => "publishers",
            Parameter::Topics => "topics",
        }
    }

    /// Its value; `None` for back to back and for an unknown size, which have no position on an axis.
    pub(super) fn of(self, params: &Params) -> Option<f64> {
        match self {
            Parameter::Payload => params.size().map(|bytes| bytes as f64),
            Parameter::Rate => params.rate_hz,
            Parameter::Subscribers => Some(f64::from(params.subscribers)),
            Parameter::Publishers => Some(f64::from(params.publishers)),
            Parameter::Topics => Some(f64::from(params.topics)),
        }
    }

    /// The parameters without this one, and without fields that only describe a system.
    pub(super) fn rest(self, params: &Params) -> Params {
        let mut rest = params.point();
        match self {
            Parameter::Payload => (rest.payload_bytes, rest.frame) = (0, None),
            Parameter::Rate => rest.rate_hz = None,
            Parameter::Subscribers => rest.subscribers = 1,
            Parameter::Publishers => rest.publishers = 1,
            Parameter::Topics => rest.topics = 1,
        }
        rest
    }

    /// The values in these cells, ascending, each with its label.
    pub(super) fn values<'e, 'a: 'e>(
        self,
        entries: impl IntoIterator<Item = &'e Entry<'a>>,
    ) -> Vec<(f64, String)> {
        let cells = entries.into_iter().map(|entry| entry.cell);
        let labelled = cells.filter_map(|cell| {
            let value = self.of(&cell.params)?;
            Some((value, self.label(cell, value)))
        });
        let mut values: Vec<(f64, String)> = labelled.collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        values.dedup_by_key(|(value, _)| *value);
        values
    }

    fn label(self, cell: &Cell, value: f64) -> String {
        match self {
            Parameter::Payload => format::size(&cell.params),
            Parameter::Rate if value >= 1e3 => format!("{} kHz", value / 1e3),
            Parameter::Rate => format!("{value} Hz"),
            _ => format!("{value}"),
        }
    }
}
