//! `runs.jsonl`, one line per run. An unusable line is left out and reported; the other lines stay
//! valid.

use std::collections::BTreeMap;
use std::path::Path;

use super::RunRecord;
use crate::lists::grouped;
use crate::machine::Identity;
use crate::plan::Plan;

/// The contents of `runs.jsonl`.
#[derive(Debug, Default)]
pub struct Lines {
    /// The runs stored so far, in the order of execution; the last one of a repeated run.
    pub runs: Vec<RunRecord>,
    /// One message for each line left out: where, why, and what to do about it.
    pub damage: Vec<String>,
}

/// What identifies the lines of this folder.
#[derive(Debug)]
pub(super) struct Origin {
    /// The machine; `None` if `host.json` is lost.
    host: Option<Identity>,
    /// The cell of each planned run.
    cell_of: Vec<usize>,
    cells: usize,
}

impl Origin {
    pub(super) fn new(plan: &Plan, host: Option<Identity>) -> Self {
        let cell_of = plan.runs.iter().map(|run| run.cell).collect();
        Origin { host, cell_of, cells: plan.cells.len() }
    }

    /// Parses `text`, read from the file at `place`. An unfinished last line is ignored: its run is
    /// in progress, or was when the session ended.
    pub(super) fn read(&self, text: &str, place: &Path) -> Lines {
        let complete = text.rfind('\n').map_or(0, |at| at + 1);
        let mut runs = BTreeMap::new();
        let mut left_out: Vec<(String, usize)> = Vec::new();
        for (number, line) in (1..).zip(text[..complete].lines()) {
            match self.run(line) {
                Ok(run) => drop(runs.insert(run.plan.order, run)),
                Err(reason) => left_out.push((reason, number)),
            }
        }
        let say = |(reason, numbers): (String, Vec<usize>)| {
            let further = match numbers.len() - 1 {
                0 => String::new(),
                1 => " and one more line".into(),
                more => format!(" and {more} more lines"),
            };
            format!("{}:{}{further}: {reason}", place.display(), numbers[0])
        };
        Lines {
            runs: runs.into_values().collect(),
            damage: grouped(left_out).into_iter().map(say).collect(),
        }
    }

    fn run(&self, line: &str) -> Result<RunRecord, String> {
        let run: RunRecord = serde_json::from_str(line).map_err(|error| {
            format!("{error}: left out; delete it, and measure that run again with --resume")
        })?;
        if let (Some(here), Some(there)) = (&self.host, &run.host)
            && here.differs(there)
        {
            return Err(format!(
                "measured on another machine or kernel ({there}; host.json: {here}): left out, \
                 because figures of two machines must not be mixed; delete it, and compare two \
                 folders instead"
            ));
        }
        let planned = self.cell_of.get(run.plan.order as usize);
        if run.plan.cell >= self.cells || planned.is_some_and(|cell| *cell != run.plan.cell) {
            let text = "this run does not belong to plan.json: left out; delete it, and measure \
                        missing runs with --resume";
            return Err(text.into());
        }
        Ok(run)
    }
}
