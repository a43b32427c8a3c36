//! Codes, the message of a thread's latest error, and the border that stops panics.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use myelin_bag::player::PlayError;
use myelin_bag::recorder::RecorderError;
use myelin_bag::{MessageTypeError, MessagesError, OpenError, WriteError};

/// The result of a function: 0 (`MYELIN_BAG_OK`), 1 (`MYELIN_BAG_NOTHING`), or a negative code.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum myelin_bag_code {
    /// Success.
    MYELIN_BAG_OK = 0,
    /// There is nothing more, or nothing came within the limit.
    MYELIN_BAG_NOTHING = 1,
    /// A name, an option or another argument is not valid; the message names it.
    MYELIN_BAG_ERROR_SETTING = -1,
    /// The file system refuses.
    MYELIN_BAG_ERROR_FILE = -2,
    /// What is in the file cannot be read.
    MYELIN_BAG_ERROR_CONTENT = -3,
    /// A node, topic or publisher cannot be opened, or fails.
    MYELIN_BAG_ERROR_TOPIC = -4,
    /// A mistake in the library; please report it.
    MYELIN_BAG_ERROR_BUG = -5,
}

pub use myelin_bag_code::*;

/// A code that is no success, with its message.
#[derive(Debug)]
pub struct Failure(myelin_bag_code, String);

pub fn setting(message: impl Into<String>) -> Failure {
    Failure(MYELIN_BAG_ERROR_SETTING, message.into())
}

pub fn content(message: impl Into<String>) -> Failure {
    Failure(MYELIN_BAG_ERROR_CONTENT, message.into())
}

/// The error of a file, with its name.
pub fn of_file(path: &str, error: OpenError) -> Failure {
    let code = match error {
        OpenError::Io(_) => MYELIN_BAG_ERROR_FILE,
        _ => MYELIN_BAG_ERROR_CONTENT,
    };
    Failure(code, format!("{path}: {error}"))
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure(MYELIN_BAG_ERROR_FILE, error.to_string())
    }
}

impl From<myelin::Error> for Failure {
    fn from(error: myelin::Error) -> Self {
        let code = match error {
            myelin::Error::Setting { .. } => MYELIN_BAG_ERROR_SETTING,
            _ => MYELIN_BAG_ERROR_TOPIC,
        };
        Failure(code, error.to_string())
    }
}

impl From<MessagesError> for Failure {
    fn from(error: MessagesError) -> Self {
        let code = match error {
            MessagesError::Io(_) => MYELIN_BAG_ERROR_FILE,
            _ => MYELIN_BAG_ERROR_CONTENT,
        };
        Failure(code, error.to_string())
    }
}

impl From<MessageTypeError> for Failure {
    fn from(error: MessageTypeError) -> Self {
        content(error.to_string())
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        Failure(MYELIN_BAG_ERROR_FILE, error.to_string())
    }
}

impl From<RecorderError> for Failure {
    fn from(error: RecorderError) -> Self {
        match error {
            RecorderError::Library(error) => error.into(),
            RecorderError::Write(error) => error.into(),
            other => Failure(MYELIN_BAG_ERROR_FILE, other.to_string()),
        }
    }
}

impl From<PlayError> for Failure {
    fn from(error: PlayError) -> Self {
        let code = match &error {
            PlayError::Open { error: OpenError::Io(_), .. } | PlayError::NoFile { .. } => {
                MYELIN_BAG_ERROR_FILE
            }
            PlayError::Open { .. } | PlayError::Read { .. } | PlayError::Lost { .. } => {
                MYELIN_BAG_ERROR_CONTENT
            }
            PlayError::NoTopic(_) | PlayError::Nothing | PlayError::Setting { .. } => {
                MYELIN_BAG_ERROR_SETTING
            }
            _ => MYELIN_BAG_ERROR_TOPIC,
        };
        Failure(code, error.to_string())
    }
}

/// Runs the code of a function, and keeps the message of its error.
pub fn enter(act: impl FnOnce() -> Result<myelin_bag_code, Failure>) -> myelin_bag_code {
    let result = catch_unwind(AssertUnwindSafe(act));
    let Failure(code, message) = match result {
        Ok(Ok(code)) => return code,
        Ok(Err(failure)) => failure,
        Err(_) => Failure(MYELIN_BAG_ERROR_BUG, "the library has failed".to_owned()),
    };
    let message = c_string(&message);
    MESSAGE.with(|it| it.replace(message));
    code
}

/// Text for C, up to its first zero.
pub fn c_string(text: &str) -> CString {
    let text = text.split('\0').next().unwrap_or_default();
    CString::new(text).unwrap_or_default()
}

/// What the last function of this thread that failed says, until the next one fails: a sentence
/// with the remedy.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_bag_error_message() -> *const c_char {
    MESSAGE.with(|it| it.borrow().as_ptr())
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}
