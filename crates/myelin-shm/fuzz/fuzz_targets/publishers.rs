//! The handler of `tests/hostile.rs`, led by coverage.
#![no_main]

#[path = "../../tests/hostile_peer/mod.rs"]
mod hostile_peer;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    hostile_peer::publishers(bytes);
    hostile_peer::observed(bytes);
});
