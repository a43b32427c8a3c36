//! The ends of a link that consists of Python functions. Each function is looked up once.

use std::sync::Arc;

use myelin_bench_kit::{Error, Publisher, Subscriber};
use pyo3::prelude::*;

use crate::buffer::{SentBuffer, View};
use crate::raised;

/// A link that a driver has opened; closed with the last of its ends.
#[derive(Clone)]
pub struct Opened(Arc<Whole>);

struct Whole(Py<PyAny>);

impl Opened {
    pub fn new(link: Py<PyAny>) -> Self {
        Opened(Arc::new(Whole(link)))
    }

    /// A function that the link must have.
    fn function(&self, name: &str) -> Result<Py<PyAny>, Error> {
        let owes = || {
            Error::new(format!("this driver's link has no function `{name}`"))
                .remedy("docs/how-to/drivers.md says which systems need it")
        };
        self.optional(name).ok_or_else(owes)
    }

    /// A function that the link may have.
    fn optional(&self, name: &str) -> Option<Py<PyAny>> {
        Python::attach(|py| self.0.0.getattr(py, name).ok())
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        let closed = Python::attach(|py| self.0.call_method0(py, "close"));
        if let Err(error) = closed {
            eprintln!("close: {}", raised(error));
        }
    }
}

/// Publishes by `publish(message)`, or writes into the result of `loan(bytes)` and calls
/// `publish_loan()`.
pub struct PythonPublisher {
    publish: Option<Py<PyAny>>,
    loans: Option<(Py<PyAny>, Py<PyAny>)>,
    loan: Option<View>,
    _opened: Opened,
}

impl PythonPublisher {
    pub fn new(opened: &Opened, loans: bool) -> Result<Self, Error> {
        let (publish, loans) = match loans {
            true => (None, Some((opened.function("loan")?, opened.function("publish_loan")?))),
            false => (Some(opened.function("publish")?), None),
        };
        Ok(PythonPublisher { publish, loans, loan: None, _opened: opened.clone() })
    }
}

impl Publisher for PythonPublisher {
    #[inline]
    fn has_loans(&self) -> bool {
        self.loans.is_some()
    }

    fn loan(&mut self, len: usize) -> Result<&mut [u8], Error> {
        let (loan, _) =
            self.loans.as_ref().ok_or_else(|| Error::new("this system has no loans"))?;
        let buffer = Python::attach(|py| View::of(&loan.call1(py, (len,))?.into_bound(py), true));
        let memory = self.loan.insert(buffer.map_err(raised)?).bytes_mut();
        match memory.len() == len {
            true => Ok(memory),
            false => Err(Error::new(format!("a loan of {} B instead of {len}", memory.len()))),
        }
    }

    fn publish_loan(&mut self) -> Result<(), Error> {
        // Before the call, because a published loan must have no views.
        self.loan = None;
        let (_, publish) =
            self.loans.as_ref().ok_or_else(|| Error::new("this system has no loans"))?;
        Python::attach(|py| publish.call0(py)).map(drop).map_err(raised)
    }

    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        let publish = self.publish.as_ref().ok_or_else(|| Error::new("this system has loans"))?;
        Python::attach(|py| {
            let buffer = SentBuffer::new(py, message)?;
            publish.call1(py, (buffer.object(),))
        })
        .map(drop)
        .map_err(raised)
    }
}

/// Waits by `wait(until_ns)`, if it exists; takes by `take(until_ns)`, which returns None or a
/// buffer; calls `release()`, if it exists, after reading the buffer.
pub struct PythonSubscriber {
    wait: Option<Py<PyAny>>,
    take: Py<PyAny>,
    release: Option<Py<PyAny>>,
    taken: Option<View>,
    _opened: Opened,
}

impl PythonSubscriber {
    pub fn new(opened: &Opened) -> Result<Self, Error> {
        Ok(PythonSubscriber {
            wait: opened.optional("wait"),
            take: opened.function("take")?,
            release: opened.optional("release"),
            taken: None,
            _opened: opened.clone(),
        })
    }
}

impl Subscriber for PythonSubscriber {
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error> {
        let Some(wait) = &self.wait else {
            return Ok(None);
        };
        let is_there = Python::attach(|py| wait.call1(py, (until_ns,))?.extract(py));
        is_there.map(Some).map_err(raised)
    }

    fn take(&mut self, until_ns: u64) -> Result<Option<&[u8]>, Error> {
        let taken = Python::attach(|py| {
            let taken = self.take.call1(py, (until_ns,))?.into_bound(py);
            if taken.is_none() { Ok(None) } else { View::of(&taken, false).map(Some) }
        });
        self.taken = taken.map_err(raised)?;
        Ok(self.taken.as_ref().map(View::bytes))
    }

    fn release(&mut self) {
        if self.taken.take().is_none() {
            return;
        }
        if let Some(release) = &self.release
            && let Err(error) = Python::attach(|py| release.call0(py))
        {
            eprintln!("release: {}", raised(error));
        }
    }
}
