//! RouDi, the daemon of iceoryx 2, for the drivers that need it: CycloneDDS over iceoryx, and
//! iceoryx itself. There is one RouDi on a host; who finds another running is told its process id.
//!
//! ```text
//! daemon.rs     start, watch, stop
//! pools.rs      its memory pools (TOML), stated by the scenario or made to fit
//! leftovers.rs  what a killed daemon or one of its processes leaves on the host
//! capi.rs       all of this for drivers in C and C++ (include/myelin_roudi.h)
//! ```

mod capi;
mod daemon;
mod leftovers;
mod pools;

pub use daemon::{RouDi, version};
pub use leftovers::{APPLICATION, clean, living_daemon};
pub use pools::{Need, Pool};
