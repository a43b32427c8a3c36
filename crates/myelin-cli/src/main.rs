//! myelin
fn main() {}
