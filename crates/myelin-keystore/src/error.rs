//! Errors, each with its remedy.

use std::path::{Path, PathBuf};

/// Why something with a keystore failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is something already.
    #[error("{}: there is a keystore or another file already; choose another folder", .0.display())]
    Exists(PathBuf),
    /// The folder is no keystore.
    #[error(
        "{}: not a keystore, because it has no {missing}; make one with `myelin keystore create` \
         or `ros2 security create_keystore`", folder.display()
    )]
    NotAKeystore {
        /// The folder.
        folder: PathBuf,
        /// The first file that is missing.
        missing: &'static str,
    },
    /// Not the name of an enclave.
    #[error(
        "enclave {0:?}: a name is `/` and parts of letters, digits and `_`, such as /robot/camera"
    )]
    Name(String),
    /// Not a name that a topic can have.
    #[error(
        "topic {0:?}: a name has no control characters, spaces or quotes; `*` stands for any characters"
    )]
    Topic(String),
    /// A length of time that no certificate can have.
    #[error("a certificate cannot be valid for {0} days; use 1 to 36500")]
    Days(u32),
    /// There is no such enclave.
    #[error("{}: no enclave {name}; `myelin keystore list` names those there are", folder.display())]
    NoEnclave {
        /// The keystore.
        folder: PathBuf,
        /// The enclave.
        name: String,
    },
    /// A file cannot be read or written.
    #[error("{}: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// A file does not contain what it should.
    #[error("{}: {reason}", file.display())]
    Broken {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl Error {
    pub(crate) fn io(file: &Path, error: std::io::Error) -> Error {
        Error::Io { file: file.to_owned(), error }
    }

    pub(crate) fn broken(file: &Path, reason: impl ToString) -> Error {
        Error::Broken { file: file.to_owned(), reason: reason.to_string() }
    }
}
