//! Errors of the DDS route.

use std::ffi::CStr;
use std::path::PathBuf;

use crate::ffi;

/// An error of the DDS route.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// CycloneDDS is not installed.
    #[error("CycloneDDS: {0}")]
    Missing(String),
    /// The domain's number is beyond what the ports allow.
    #[error("domain {0} cannot be opened to the network: DDS has the domains 0 to 230")]
    Domain(u32),
    /// Another node of this process has opened the domain with other settings.
    #[error(
        "another node of this process has opened domain {0} to the network with another interface, \
         other peers, another lease or another enclave; give both the same"
    )]
    Otherwise(u32),
    /// CycloneDDS has not finished closing an earlier participant.
    #[error(
        "domain {0} has been closed before, and CycloneDDS is still waiting for its network \
         interface, which does not exist any more; restart the program"
    )]
    Stuck(u32),
    /// A secured domain is open already.
    #[error(
        "other code of this process has a participant in DDS domain {0}, or one that is being closed; \
         a node with an enclave needs the domain for itself"
    )]
    Occupied(u32),
    /// A keystore that is missing or broken.
    #[error(
        "{}: {problem}; nothing is sent without it. Make the enclave (`myelin keystore add`, \
         `ros2 security create_enclave`), or find the fault (`myelin keystore check`)", file.display()
    )]
    Security {
        /// The file, or the enclave's folder.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// CycloneDDS without its plug-ins.
    #[error(
        "CycloneDDS's plug-in {library} is not beside {}; install a CycloneDDS that was built with \
         security", beside.display()
    )]
    NoPlugIn {
        /// The plug-in's file name.
        library: &'static str,
        /// CycloneDDS's own library.
        beside: PathBuf,
    },
    /// The enclave has no right to it.
    #[error(
        "{} does not allow to {} DDS topic {topic}; allow it: `myelin keystore add`, or \
         `ros2 security create_permission`",
        file.display(), if *is_publisher { "publish" } else { "subscribe to" }
    )]
    Denied {
        /// Its name in DDS.
        topic: String,
        /// Whether it may not publish it; otherwise it may not subscribe to it.
        is_publisher: bool,
        /// The enclave's permissions.
        file: PathBuf,
    },
    /// A name that DDS does not allow.
    #[error(
        "{0:?} is not a DDS name: use letters, digits, `_` and `/`, without a digit in front; set \
         another one with dds_name"
    )]
    Name(String),
    /// The sample is too large for the protocol, or there is no memory for a copy.
    #[error("a message of {0} B: there is no memory for it, or it exceeds the protocol's 4 GiB")]
    Memory(usize),
    /// Any other error of CycloneDDS.
    #[error("CycloneDDS: {doing}: {text}")]
    Other {
        /// The action that failed.
        doing: &'static str,
        /// CycloneDDS's text.
        text: String,
        /// Whether it is a time limit.
        timeout: bool,
        /// Whether security does not allow it.
        denied: bool,
    },
}

impl Error {
    /// The error of a negative code while `doing` something.
    pub(crate) fn of(doing: &'static str, code: i32) -> Error {
        // SAFETY: it returns a string without end of life for any code; codes are negative.
        let text = unsafe { CStr::from_ptr(ffi::myelin_dds_text(code)) };
        let (timeout, denied) = (code == TIMEOUT, code == NOT_ALLOWED_BY_SECURITY);
        Error::Other { doing, text: text.to_string_lossy().into_owned(), timeout, denied }
    }
}

/// The entity or count, or the error.
pub(crate) fn check(doing: &'static str, code: i32) -> Result<i32, Error> {
    if code < 0 { Err(Error::of(doing, code)) } else { Ok(code) }
}

/// `DDS_RETCODE_TIMEOUT`.
const TIMEOUT: i32 = -10;
/// `DDS_RETCODE_NOT_ALLOWED_BY_SECURITY`.
const NOT_ALLOWED_BY_SECURITY: i32 = -13;
