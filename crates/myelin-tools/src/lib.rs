//! What the commands `myelin topic`, `node`, `service`, `top` and `why` are made of: a running robot,
//! seen from outside. Everything here looks through observers and records, so that what is looked
//! at does nothing for it. The command parses arguments, and prints.

pub mod error;
pub mod names;
pub mod session;
pub mod top;

pub use error::Error;
