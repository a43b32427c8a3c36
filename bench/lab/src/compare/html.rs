//! The difference page: one file that needs nothing else, by the template `assets/compare.html`.

use super::Comparison;

/// The whole file.
pub fn page(_comparison: &Comparison) -> String {
    String::new()
}
