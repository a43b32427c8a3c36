//! What a driver says when something failed.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// Why something failed, and what the user can do about it. One word wide: what a call between two
/// stamps returns is to fit into registers.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", self.message)]
pub struct Error(Box<Reason>);

/// What an [`Error`] says, in the protocol, too.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Reason {
    /// What went wrong, in one line.
    pub message: String,
    /// What to do about it, in one line; empty when there is nothing to say.
    #[serde(default)]
    pub remedy: String,
    /// The key of the scenario's `[options.<driver>]` table that is to blame; empty if none is.
    #[serde(default)]
    pub key: String,
}

impl Error {
    /// An error without a remedy.
    #[cold]
    pub fn new(message: impl Into<String>) -> Self {
        Reason { message: message.into(), ..Reason::default() }.into()
    }

    /// The same error with a remedy.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.0.remedy = remedy.into();
        self
    }

    /// The same error, blamed on a key of the scenario's `[options.<driver>]` table.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.0.key = key.into();
        self
    }

    /// What it says.
    pub fn into_reason(self) -> Reason {
        *self.0
    }
}

impl Deref for Error {
    type Target = Reason;

    fn deref(&self) -> &Reason {
        &self.0
    }
}

impl From<Reason> for Error {
    fn from(reason: Reason) -> Self {
        Error(Box::new(reason))
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Error::new(error.to_string())
    }
}
