//! Why a recording cannot be played.

use std::path::PathBuf;

use crate::{Loss, MessagesError, NoTopic, OpenError};

/// One sentence, with the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlayError {
    /// A file that cannot be read.
    #[error("{}: {error}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: OpenError,
    },
    /// A file that cannot be read on.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: MessagesError,
    },
    /// A part of a file that cannot be read; the messages behind it are played.
    #[error("{}: {loss}", path.display())]
    Lost {
        /// The file.
        path: PathBuf,
        /// The part.
        loss: Loss,
    },
    /// A thread cannot be started.
    #[error("no thread to read the recording can be started: {0}")]
    Thread(std::io::Error),
    /// A folder without recordings.
    #[error("{}: there is no file *.mcap in this folder", path.display())]
    NoFile {
        /// The folder.
        path: PathBuf,
    },
    /// A name or pattern of a topic that the recording does not have.
    #[error(transparent)]
    NoTopic(#[from] NoTopic),
    /// No topic is left to be played.
    #[error("nothing is left to be played: choose other topics, or exclude fewer")]
    Nothing,
    /// A setting that makes no sense.
    #[error("{field} is {value}: {remedy}")]
    Setting {
        /// The setting.
        field: &'static str,
        /// Its value.
        value: String,
        /// What is possible.
        remedy: &'static str,
    },
    /// A sample that cannot be published.
    #[error("{topic}: {error}")]
    Publish {
        /// The topic.
        topic: String,
        /// Why.
        error: myelin::Error,
    },
    /// The node refuses.
    #[error(transparent)]
    Node(#[from] myelin::Error),
}
