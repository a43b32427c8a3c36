//! Advice: which configuration to use, and the files to use it.
//! Pure: of figures and configuration that `report::advice` has taken from the cells.
//!
//! ```text
//! choice.rs   the best configuration within a budget, and who cannot be told from it
//! files/      configuration for peers, kernel and systemd
//! ```

pub mod choice;
pub mod files;
