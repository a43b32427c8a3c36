//! The recorder on publishers of other processes, which publish when the test says so, and on
//! storages that wait for the test, or fill up.

mod files;
mod losses;
mod measure;
mod support;
mod topics;
