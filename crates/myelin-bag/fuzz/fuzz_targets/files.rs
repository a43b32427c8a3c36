//! The handler of `tests/bag/damage.rs`, led by coverage.
#![no_main]

#[path = "../../tests/bag/hostile_input.rs"]
mod hostile_input;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hostile_input::read(bytes));
