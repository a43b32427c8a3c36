//! The scorecard: systems scored by criteria that a user weighs. Pure arithmetic on figures that
//! `report::scorecard` has taken from the cells.
//!
//! A system's score by a criterion is 10 less one for each doubling of its figure over the best:
//! 10 − log₂(figure / best), and no less than 0. Figures are such that less is better, and are used
//! as ratios alone, so that units do not matter. Its total is the mean of its scores by weight.
//!
//! The logarithm, not 10 · best / figure: by it a system that comes or goes changes all scores by a
//! criterion by the same amount, and so no order of the others, also where it is the best itself
//! (independence of irrelevant alternatives). That holds as far as no score is cut off at 0, which
//! takes a figure 1,024 times the best.
//!
//! How far a ranking depends on the weights is [`swings`] of single weights and the
//! [`first_shares`] among all weights that there are.

mod card;
mod criterion;
mod sensitivity;
mod weights;

pub use card::{Card, Contender, Scored, points};
pub use criterion::Criterion;
pub use sensitivity::{End, Swing, first_shares, swings};
pub use weights::Weights;
