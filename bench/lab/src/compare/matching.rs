//! Which cell of B is which cell of A.

use crate::summary::Analysis;

/// Places of cells in the summaries of A and of B.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Matched {
    /// In the order of A.
    pub(super) both: Vec<[usize; 2]>,
    pub(super) only_a: Vec<usize>,
    pub(super) only_b: Vec<usize>,
}

/// Cells are the same if their keys are.
pub(super) fn matched(a: &Analysis, b: &Analysis) -> Matched {
    let (a, b) = (&a.summary.cells, &b.summary.cells);
    let mut matched = Matched { only_b: (0..b.len()).collect(), ..Matched::default() };
    for (place, cell) in a.iter().enumerate() {
        let key = cell.key();
        match matched.only_b.iter().position(|&other| b[other].key() == key) {
            Some(at) => matched.both.push([place, matched.only_b.remove(at)]),
            None => matched.only_a.push(place),
        }
    }
    matched
}
