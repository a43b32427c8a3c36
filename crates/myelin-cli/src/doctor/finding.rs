//! The finding about one cause of latency, and the whole report: the shape of `--json`.

use std::collections::BTreeMap;

use myelin_tools::leftovers::Leftovers;
use serde::Serialize;
use serde_json::Value;

use super::measure::Measured;
use super::network::Path;

/// The severity; the worst first. Only [`State::Costs`] makes the exit status 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Costs latency here, or keeps programs from avoiding it.
    Costs,
    /// Costs only in the named circumstances, or is decided outside this host.
    Note,
    /// Could not be read or measured.
    Unknown,
    /// Nothing to change.
    Ok,
}

/// Whether a cost was measured just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// On this machine, by this call.
    Measured,
    /// Not measured; `source` names the source.
    Expected,
}

/// The cost of a cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Measured or expected.
    pub basis: Basis,
    /// The cost in words, with its unit and when it applies.
    pub what: String,
    /// The delay of one wake-up, call or interruption, if it can be given as a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount_us: Option<f64>,
    /// Where the cost is a share of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount_percent: Option<f64>,
    /// The source of the cost; always there if it is expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<&'static str>,
}

/// The remedy.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Mend {
    /// A command for now; its effect ends with the shell or the next boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// A command whose effect outlasts a reboot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permanent: Option<String>,
    /// Remedies without a command, and side effects of a remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

/// One cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Its stable name.
    pub cause: &'static str,
    /// The severity.
    pub state: State,
    /// What was found; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// Why it is unknown; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The raw values, units in their names.
    pub values: BTreeMap<&'static str, Value>,
    /// The cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<Mend>,
}

impl Finding {
    /// A cause that was found; the table of causes names it.
    pub fn new(state: State, found: impl Into<String>) -> Self {
        Finding {
            cause: "",
            state,
            found: Some(found.into()),
            because: None,
            values: BTreeMap::new(),
            cost: None,
            mend: None,
        }
    }

    /// A cause that could not be examined.
    pub fn unknown(cause: &'static str, because: String) -> Self {
        Finding { cause, found: None, because: Some(because), ..Self::new(State::Unknown, "") }
    }

    /// Adds a raw value.
    pub fn value(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.values.insert(name, value.into());
        self
    }

    /// Adds a cost that is not measured.
    pub fn expects(
        mut self,
        what: impl Into<String>,
        amount_us: Option<f64>,
        source: &'static str,
    ) -> Self {
        let what = what.into();
        let source = Some(source);
        let basis = Basis::Expected;
        self.cost = Some(Cost { basis, what, amount_us, amount_percent: None, source });
        self
    }

    /// Adds a cost measured in time; kept to the nanosecond.
    pub fn measures(mut self, what: impl Into<String>, amount_us: f64) -> Self {
        let amount_us = Some((amount_us * 1e3).round() / 1e3);
        let (basis, what) = (Basis::Measured, what.into());
        self.cost = Some(Cost { basis, what, amount_us, amount_percent: None, source: None });
        self
    }

    /// Adds a command for now and, where there is a short one, a permanent one.
    pub fn mend(mut self, now: &str, permanent: Option<String>) -> Self {
        let mend = self.mend.get_or_insert_default();
        mend.now = Some(now.to_owned());
        mend.permanent = permanent;
        self
    }

    /// Adds a remedy without a command, or a side effect.
    pub fn remark(mut self, remark: impl Into<String>) -> Self {
        self.mend.get_or_insert_default().remark = Some(remark.into());
        self
    }

    /// The order, the worst first: by state; then measured costs before expected ones, the highest
    /// first; then by the order of the table.
    pub fn rank(&self) -> (State, u8, i64) {
        let of = |cost: &Cost| {
            let amount = cost.amount_us.map_or(0, |amount_us| -(amount_us * 1_000.0) as i64);
            (u8::from(cost.basis == Basis::Expected), amount)
        };
        let (basis, amount) = self.cost.as_ref().map_or((2, 0), of);
        (self.state, basis, amount)
    }
}

/// The report of `myelin doctor`.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Grows when a field changes its meaning or is removed; new fields do not change it.
    pub schema: u32,
    /// Whether anything costs latency or is left behind: exit status 1.
    pub wrong: bool,
    /// The causes, the worst first; absent if not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub findings: Option<Vec<Finding>>,
    /// The measurements; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// Leftovers of dead nodes, and the live nodes; absent if not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leftovers: Option<Leftovers>,
    /// The path to another host; absent if not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Path>,
}

/// The schema of this version.
pub const SCHEMA: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_comes_first() {
        let small = Finding::new(State::Costs, "small").measures("", 2.0);
        let large = Finding::new(State::Costs, "large").measures("", 40.0);
        let guessed = Finding::new(State::Costs, "guessed").expects("", Some(1e6), "a book");
        let open = Finding::new(State::Costs, "open").expects("", None, "a book");
        let note = Finding::new(State::Note, "note").measures("", 1e9);
        let unknown = Finding::unknown("unknown", "why".into());
        let fine = Finding::new(State::Ok, "fine");
        let right = [&large, &small, &guessed, &open, &note, &unknown, &fine];
        let mut mixed = [&fine, &note, &open, &small, &guessed, &unknown, &large];
        mixed.sort_by_key(|finding| finding.rank());
        assert_eq!(mixed, right);
    }
}
