//! What the commands `myelin topic`, `node`, `service`, `top` and `why` are made of: a running robot,
//! seen from outside. Everything here looks through observers and records, so that what is looked
//! at does nothing for it. The command parses arguments, and prints.

pub mod discovery;
pub mod document;
pub mod duration;
pub mod echo;
pub mod error;
pub mod filter;
pub mod info;
pub mod input;
pub mod list;
pub mod leftovers;
pub mod names;
pub mod publish;
pub mod ros;
pub mod select;
pub mod session;
pub mod signals;
pub mod table;
pub mod text;
pub mod top;
pub mod why;

pub use error::Error;
pub use myelin::Graph;
