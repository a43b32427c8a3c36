//! Errors of a driver.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// Why something failed, and what the user can do about it. One word wide, so that the results of
/// calls between two stamps fit into registers.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", self.message)]
pub struct Error(Box<Reason>);

/// The contents of an [`Error`], also in the protocol.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Reason {
    /// What went wrong, in one line.
    pub message: String,
    /// What to do about it, in one line; may be empty.
    #[serde(default)]
    pub remedy: String,
    /// The key of the scenario's `[options.<driver>]` table that caused the error; may be empty.
    #[serde(default)]
    pub key: String,
}

impl Error {
    /// An error without a remedy.
    #[cold]
    pub fn new(message: impl Into<String>) -> Self {
        Reason { message: message.into(), ..Reason::default() }.into()
    }

    /// Adds a remedy.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.0.remedy = remedy.into();
        self
    }

    /// Names the key of the scenario's `[options.<driver>]` table that caused the error.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.0.key = key.into();
        self
    }

    /// The contents of the error.
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
