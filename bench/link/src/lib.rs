//! A link between two network namespaces, as bad as a test needs it: delay, jitter, loss,
//! reordering, a limited rate, cuts.
//!
//! ```text
//! namespace A ── interface (TAP) ◀─▶ a thread of this process ◀─▶ interface (TAP) ── namespace B
//!                                     one Direction each way
//! ```
//! The kernel's netem does the same where it is built in. Many kernels of small and of virtual
//! machines lack it, so this crate does not use it: results are then the same everywhere.
//!
//! [`Direction`] decides what happens to each frame. It has no clock and no input or output, so
//! tests simulate both. The nth frame of a direction has the same fate for the same seed.
//! [`EmulatedLink`] carries frames between real interfaces. Both need Linux; making a link needs
//! CAP_NET_ADMIN and CAP_SYS_ADMIN.
//!
//! The bench and the tests of the library use it. The library itself never does.

mod conditions;
mod direction;
mod link;
mod namespace;
mod tap;

pub use conditions::Conditions;
pub use direction::{Counts, Direction};
pub use link::{EmulatedLink, End};
pub use namespace::Namespace;
