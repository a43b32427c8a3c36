//! Recordings of topics as [MCAP](https://mcap.dev) files: written so that they are whole at every
//! byte, read whatever state they are in, checked and repaired.
//!
//! | step | by |
//! |---|---|
//! | record topics that run | [`Recorder`], see [`recorder`] |
//! | write a file | [`Writer`] |
//! | plain data that every reader of ROS 2's messages reads | [`TopicFormat`], [`PlainCdr`] |
//! | read messages by topic and time, in order of time | [`BagReader`], [`Selection`], [`Topics`] |
//! | the values in a message | [`MessageType`] |
//! | read all messages, and know what is lost | [`Scanner`], [`Report`] |
//! | what is in a file | [`Info`] |
//! | whether everything in a file agrees | [`check()`] |
//! | a complete file of a broken one | [`repair()`] |
//! | the newest seconds of a recording, written out when something happens | [`ring`] |
//! | a part of a file, or one file of several | [`cut()`], [`merge()`] |
//! | what differs between two files | [`diff()`] |
//! | publish what was recorded | [`Recording`], [`Player`] |
//!
//! Files may come from anybody. Whatever is in them, the result is a message, a [`Loss`] or an
//! error: no panic, no endless loop, and no more memory than [`limits`] allows.

#![deny(unsafe_code)]

mod block;
mod cdr;
mod check;
mod chunk;
mod compare;
mod compression;
mod copy;
mod cut;
mod diff;
mod ending;
mod error;
mod format;
mod info;
mod latched;
pub mod limits;
mod low_priority;
mod merge;
mod message_type;
mod names;
mod packing;
pub mod player;
mod qos;
mod reader;
mod recorded_losses;
pub mod recorder;
mod repair;
pub mod ring;
mod scanner;
mod sensor_cdr;
mod sizes;
mod source;
mod storage;
mod summary;
mod topic_format;
mod topics;
mod union;
mod writer;

pub use cdr::{CDR_HEADER, PlainCdr, Unfit, UnfitReason};
pub use check::{Checked, Finding, Problem, check};
pub use compression::Compression;
pub use copy::{Copied, CopyError};
pub use cut::cut;
pub use diff::{Diff, DiffOptions, FieldDiff, Pairing, TopicDiff, diff};
pub use ending::{Definitions, OpenError, OwnedSchema};
pub use error::WriteError;
pub use format::{Attachment, Channel, MessageHead, Metadata, Statistics};
pub use info::Info;
pub use merge::merge;
pub use message_type::{Content, MessageType, MessageTypeError};
pub use myelin_value::Schema;
pub use player::{Player, Recording};
pub use reader::{BagReader, Message, Messages, MessagesError, Selection, Time};
pub use recorded_losses::RecordedLosses;
pub use recorder::Recorder;
pub use repair::{RepairError, Repaired, repair};
pub use scanner::{Cause, Item, Loss, LostMessages, Report, Scanner};
pub use sizes::Sizes;
pub use source::Source;
pub use storage::Storage;
pub use topic_format::TopicFormat;
pub use topics::{NoTopic, Topics};
pub use writer::{Options, Writer, Written};
