//! Why a command cannot do what it was asked for.

/// One sentence for the user, with the remedy; the command exits with [`status`](Error::status).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A mistake in what was asked.
    #[error("{0}")]
    BadInput(String),
    /// What was named is not there.
    #[error("{0}")]
    NotFound(String),
    /// It went wrong on the way.
    #[error("{0}")]
    Failed(String),
    /// The library refuses.
    #[error(transparent)]
    Library(#[from] myelin::Error),
    /// A value that cannot be read by its schema.
    #[error(transparent)]
    Value(#[from] myelin_value::ReadError),
    /// A file or a terminal.
    #[error("{what}: {error}")]
    Io {
        /// The file, or what was done.
        what: String,
        /// The system's error.
        error: std::io::Error,
    },
}

impl Error {
    /// The exit status of a command that ends with it: 2 for a mistake in what was asked, 3 if what
    /// was named is not there, otherwise 1.
    pub fn status(&self) -> u8 {
        match self {
            Error::BadInput(_) => 2,
            Error::NotFound(_) => 3,
            _ => 1,
        }
    }
}
