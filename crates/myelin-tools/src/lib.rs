//! What the commands `myelin topic`, `node`, `service`, `top`, `why` and `view` are made of: a running robot,
//! seen from outside. Everything here looks through observers and records, so that what is looked
//! at does nothing for it. And `myelin bag`: recordings as files. The command parses arguments, and
//! prints.

pub mod bag;
pub mod delay;
pub mod delay_watch;
pub mod discovery;
pub mod document;
pub mod duration;
pub mod echo;
pub mod error;
pub mod filter;
pub mod follow;
pub mod info;
pub mod input;
pub mod lateness_watch;
pub mod leftovers;
pub mod list;
pub mod names;
pub mod nodes;
pub mod numbers;
pub mod output_file;
pub mod protobuf;
pub mod publish;
pub mod rate;
pub mod rate_watch;
pub mod select;
pub mod services;
pub mod session;
pub mod signals;
pub mod size;
pub mod spread;
pub mod table;
pub mod text;
pub mod timestamps;
pub mod top;
pub mod view;
pub mod watch;
pub mod why;

pub use error::Error;
pub use myelin::{Graph, now, ros};
