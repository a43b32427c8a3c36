//! Driver of `myelin bench` for CycloneDDS 11, in C. The program begins in `driver.c`, which has `main`
//! and the table of systems; `../cyclonedds/src/link.c` calls CycloneDDS.
//! This file has the clean-up of both plug-ins, in Rust.
#![cfg_attr(not(test), no_main)]

use std::ffi::c_int;

use myelin_bench_kit::Error;
use myelin_bench_kit::capi::status;
use myelin_shm::leftovers;

/// Removes what killed processes have left behind, for both plug-ins.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_cyclonedds11_clean() -> c_int {
    status(myelin_bench_roudi::clean().and(clean_myelin()))
}

fn clean_myelin() -> Result<(), Error> {
    let said = |error: myelin_shm::Error| Error::new(error.to_string());
    let scan = leftovers::scan(None).map_err(said)?;
    scan.dead.iter().try_for_each(|left| leftovers::remove(left).map(drop)).map_err(said)
}
