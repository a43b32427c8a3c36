//! RouDi, the daemon of iceoryx 2, for the drivers that need it: CycloneDDS over iceoryx, and
//! iceoryx itself. A host has only one RouDi; if another one is running, the error names its
//! process id.
//!
//! ```text
//! daemon.rs     start, watch, stop
//! pools.rs      its memory pools (TOML), given by the scenario or made to fit
//! leftovers.rs  files that a killed daemon or one of its processes leaves on the host
//! capi.rs       all of this for drivers in C and C++ (include/myelin_roudi.h)
//! ```

mod capi;
mod daemon;
mod leftovers;
mod pools;

pub use daemon::{RouDi, version};
pub use leftovers::{APPLICATION, clean, living_daemon};
pub use pools::{Need, Pool};
