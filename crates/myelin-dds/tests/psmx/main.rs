//! Programs of CycloneDDS 11 (`dds/psmx_myelin/test/peer.c`) with `psmx_myelin`, with each other
//! and with programs without it.

mod bad;
#[allow(dead_code, reason = "other test programs use the rest")]
#[path = "../../../myelin-ros/tests/interop/host.rs"]
mod host;
mod kill;
mod peer;
mod plug_in;
mod talk;
