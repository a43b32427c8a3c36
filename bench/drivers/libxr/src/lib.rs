//! Driver of `myelin bench` for the topics of [LibXR](https://github.com/Jiu-xiao/libxr), in one
//! process: by callback, and by a subscriber that waits in a thread of its own.
//!
//! ```text
//! systems.rs            the systems and what the kit calls
//! ends.rs               publisher, callback and waiting subscriber
//! link.rs, link.cpp     LibXR behind a table of C functions; without it, the reason why
//! ```
//! What a LibXR topic carries is an object of one C++ type, so a message is one, with a type for
//! each size. Its users have such an object, fill it and publish it, and LibXR hands on a
//! reference: therefore the publisher's loan is that object, and there is no copy that they would
//! not have either. `README.md` says how to build LibXR and what else is particular to it.

mod ends;
mod link;
mod systems;

pub use link::missing;
pub use systems::LibXr;
