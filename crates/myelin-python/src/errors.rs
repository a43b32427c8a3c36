//! The library's errors as the exceptions of `myelin._errors`.

use pyo3::prelude::*;

/// The exception for an error of the library.
pub fn raised(error: myelin::Error) -> PyErr {
    use myelin::Error as E;
    let name = match &error {
        E::PayloadTooLarge { .. } => "PayloadTooLarge",
        E::MemoryLimit { .. } => "MemoryLimit",
        E::NoMemory { .. } | E::NoSpace { .. } => "NoMemory",
        E::Reentered => "Reentered",
        E::NoPermission { .. } | E::LatencyGuard { .. } => "NoPermission",
        E::TypeMismatch { .. } => "TypeMismatch",
        E::LayoutVersion { .. } => "LayoutVersion",
        E::PeerCorrupt { .. } => "PeerCorrupt",
        E::TooManyHeld { .. } => "TooManyHeld",
        E::TooManyLoans { .. } => "TooManyLoans",
        E::ReliableTimeout { .. } => "ReliableTimeout",
        E::NoServer { .. } => "NoServer",
        E::ServerGone { .. } => "ServerGone",
        E::NoReply { .. } => "NoReply",
        E::ReplyTimeout { .. } => "ReplyTimeout",
        E::Setting { .. } => "WrongSetting",
        E::TooMany { .. } | E::TooManyFiles => "TooMany",
        E::Forked => "Forked",
        E::Closed { .. } => "Closed",
        E::Network { .. } => "NetworkError",
        _ => "Error",
    };
    exception(name, error.to_string())
}

/// An exception of `myelin._errors`.
pub fn exception(name: &str, message: String) -> PyErr {
    let made = Python::attach(|py| -> PyResult<PyErr> {
        let class = py.import("myelin._errors")?.getattr(name)?;
        Ok(PyErr::from_value(class.call1((message,))?))
    });
    made.unwrap_or_else(|error| error)
}

pub fn closed(what: &str) -> PyErr {
    exception("Closed", format!("this {what} is closed; make another one"))
}

/// `here`: this thread uses it.
pub fn busy(what: &str, here: bool) -> PyErr {
    let message = match here {
        true => format!(
            "this thread is inside a call of this {what}, and a signal handler, a finalizer or a \
             callback uses it again: only close or interrupt it there, or use another one"
        ),
        false => format!("another thread is using this {what}; make one for each thread"),
    };
    exception("Busy", message)
}

pub fn wrong_value(message: String) -> PyErr {
    exception("WrongValue", message)
}
