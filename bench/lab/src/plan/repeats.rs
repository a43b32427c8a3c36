//! Blocks beyond the plan: which cells are repeated again, in which order.
//!
//! The plan is written once, at the start. The further blocks follow only from the plan and the
//! runs made so far. So an interrupted session continues with the run that would have come next,
//! even in the middle of a block.

use rand::seq::SliceRandom;
use rand::{SeedableRng, rngs::StdRng};

use super::{Plan, RunPlan};

impl Plan {
    /// The rest of the block in progress, or the next block. A block has one run of every cell
    /// whose interval is wider than its scenario asks for and that has not reached its limit of
    /// runs; it is empty if there is no such cell. `made` are the runs so far: all of the plan's,
    /// and failed ones too.
    pub fn further(&self, made: &[RunPlan], is_narrow: impl Fn(usize) -> bool) -> Vec<RunPlan> {
        let mut runs = vec![0; self.cells.len()];
        for run in made {
            runs[run.cell] += 1;
        }
        let is_open = |cell: &usize| {
            let precision = self.scenarios[self.cells[*cell].scenario].plan.precision;
            precision.is_some_and(|asked| runs[*cell] < asked.runs_max) && !is_narrow(*cell)
        };
        // How many further blocks have included the cell.
        let blocks = |cell: usize| {
            let least = self.scenarios[self.cells[cell].scenario].plan.runs;
            u32::saturating_sub(runs[cell], least)
        };
        let open: Vec<usize> = (0..self.cells.len()).filter(is_open).collect();
        let Some(block) = open.iter().map(|cell| blocks(*cell)).min() else {
            return Vec::new();
        };
        let after = made.iter().map(|run| run.order + 1).max().unwrap_or(0);
        let first = after.max(self.runs.len() as u32);
        let mut ordered = self.order_of_block(block);
        ordered.retain(|cell| open.contains(cell) && blocks(*cell) == block);
        let run = |(order, cell)| RunPlan { order, cell, repeat: runs[cell] };
        (first..).zip(ordered).map(run).collect()
    }

    /// The largest number of runs of each cell.
    pub fn runs_at_most(&self) -> impl Iterator<Item = (usize, u32)> {
        self.cells.iter().enumerate().map(|(index, cell)| {
            let plan = &self.scenarios[cell.scenario].plan;
            (index, plan.precision.map_or(plan.runs, |asked| asked.runs_max))
        })
    }

    /// All cells in the order of one further block, which the seed determines.
    fn order_of_block(&self, block: u32) -> Vec<usize> {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..12].copy_from_slice(&block.to_le_bytes());
        let mut cells: Vec<usize> = (0..self.cells.len()).collect();
        cells.shuffle(&mut StdRng::from_seed(key));
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::SystemDriver;
    use crate::scenario::{Precision, Scenario};

    fn plan(seed: u64, runs: u32, runs_max: u32) -> Plan {
        let entry = SystemDriver::named("a.x");
        let mut scenario = Scenario::load("quick").unwrap();
        scenario.plan.runs = runs;
        scenario.plan.precision = Some(Precision { interval_percent: 5.0, runs_max });
        let mut steady = scenario.clone();
        steady.plan.precision = None;
        Plan::new(vec![(scenario, vec![entry.clone()]), (steady, vec![entry])], seed, String::new())
    }

    /// Runs blocks until nothing is left; a cell is narrow once it has `enough(cell)` runs.
    fn session(plan: &Plan, enough: impl Fn(usize) -> u32) -> Vec<RunPlan> {
        let mut made = plan.runs.clone();
        loop {
            let counts = made.clone();
            let count = |cell| counts.iter().filter(|run| run.cell == cell).count() as u32;
            let block = plan.further(&made, |cell| count(cell) >= enough(cell));
            if block.is_empty() {
                return made;
            }
            made.extend(block);
        }
    }

    #[test]
    fn only_cells_with_wide_intervals_are_repeated_up_to_runs_max() {
        let plan = plan(7, 5, 9);
        let asking = plan.cells.iter().filter(|cell| cell.scenario == 0).count();
        let never = session(&plan, |_| u32::MAX);
        assert_eq!(never.len(), plan.runs.len() + 4 * asking);
        let at_once = session(&plan, |_| 5);
        assert_eq!(at_once, plan.runs, "narrow after the planned runs");
        let one = session(&plan, |cell| if cell == 2 { 7 } else { 5 });
        let further: Vec<(usize, u32)> =
            one[plan.runs.len()..].iter().map(|run| (run.cell, run.repeat)).collect();
        assert_eq!(further, [(2, 5), (2, 6)]);
        let most: u32 = plan.runs_at_most().map(|(_, runs)| runs).sum();
        assert_eq!(most as usize, never.len());
    }

    #[test]
    fn further_blocks_have_their_own_seeded_order() {
        let cells = |seed: u64| -> Vec<Vec<usize>> {
            let plan = plan(seed, 5, 9);
            let asking = plan.cells.iter().filter(|cell| cell.scenario == 0).count();
            let made = session(&plan, |_| u32::MAX);
            let blocks = made[plan.runs.len()..].chunks(asking);
            blocks.map(|block| block.iter().map(|run| run.cell).collect()).collect()
        };
        assert_eq!(cells(7), cells(7));
        assert_ne!(cells(7), cells(8));
        for block in &cells(7) {
            let mut sorted = block.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..block.len()).collect::<Vec<_>>(), "each cell once");
        }
        assert_ne!(cells(7)[0], cells(7)[1]);
    }
}
