//! The kit for drivers in Python: the module `myelin_bench_kit`, which `docs/how-to/drivers.md`
//! describes. A driver opens links that publish and take. The kit's own loops call them, so clock,
//! pacing and recording are the same as for every other system.
//!
//! ```text
//! lib.rs     the function that is the whole driver
//! link.rs    publisher and subscriber of a link that consists of Python functions
//! buffer.rs  memory that Python and the kit share
//! ```
//! All of it runs in the thread that calls `main`, with the GIL, which a link should release while
//! it waits.
#![cfg(feature = "module")]

mod buffer;
mod link;

use std::process::ExitCode;

use myelin_bench_kit::protocol::{Prepare, Role, System, Topology};
use myelin_bench_kit::{Driver, Error, Link, RoundTrip, Stream};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::link::{Opened, PythonPublisher, PythonSubscriber};

#[pymodule]
#[pyo3(name = "myelin_bench_kit")]
fn make(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(main, module)?)
}

/// The whole of a driver; its result is for `sys.exit`. `systems` are dicts as in the protocol's
/// description. `open` gets the protocol's `prepare` as a dict, and returns a link that is matched
/// with the other side.
#[pyfunction]
fn main(py: Python<'_>, systems: &Bound<'_, PyAny>, open: Py<PyAny>) -> PyResult<i32> {
    let text: String = py.import("json")?.call_method1("dumps", (systems,))?.extract()?;
    let systems: Vec<System> = serde_json::from_str(&text)
        .map_err(|error| PyValueError::new_err(format!("systems: {error}")))?;
    if let Some(system) = systems.iter().find(|it| it.topology == Topology::OneProcess) {
        let text = format!("{}: systems of one process are for drivers in Rust or C", system.name);
        return Err(PyValueError::new_err(text));
    }
    let arguments: Vec<String> = py.import("sys")?.getattr("argv")?.extract()?;
    let verb = arguments.get(1).map(String::as_str).unwrap_or_default();
    let status = myelin_bench_kit::act(&PythonDriver { systems, open }, verb);
    Ok(i32::from(status != ExitCode::SUCCESS))
}

struct PythonDriver {
    systems: Vec<System>,
    open: Py<PyAny>,
}

impl Driver for PythonDriver {
    fn systems(&self) -> Vec<System> {
        self.systems.clone()
    }

    fn open(&self, prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        let opened = self.opened(prepare)?;
        let publisher = PythonPublisher::new(&opened, self.has_loans(prepare))?;
        Ok(Box::new(Link::new(publisher, PythonSubscriber::new(&opened)?)))
    }

    fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        let opened = self.opened(prepare)?;
        Ok(match prepare.role {
            Role::Ping => {
                let loans = self.has_loans(prepare);
                Stream::publisher(Box::new(PythonPublisher::new(&opened, loans)?))
            }
            _ => Stream::subscriber(Box::new(PythonSubscriber::new(&opened)?)),
        })
    }
}

impl PythonDriver {
    fn has_loans(&self, prepare: &Prepare) -> bool {
        self.system(&prepare.system).is_some_and(|system| system.loans)
    }

    fn opened(&self, prepare: &Prepare) -> Result<Opened, Error> {
        let text = serde_json::to_string(prepare).expect("JSON serialises");
        let opened = Python::attach(|py| {
            let prepare = py.import("json")?.call_method1("loads", (text,))?;
            self.open.call1(py, (prepare,))
        });
        opened.map(Opened::new).map_err(raised)
    }
}

/// Converts a Python exception; prints its traceback into the run's log.
#[cold]
fn raised(error: PyErr) -> Error {
    Python::attach(|py| {
        let text = format!("{}: {}", error.get_type(py), error.value(py));
        error.print(py);
        Error::new(text)
    })
}
