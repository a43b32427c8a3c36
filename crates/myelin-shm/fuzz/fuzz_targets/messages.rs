//! Messages from other processes to a node.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| myelin_shm::fuzz_message(bytes));
