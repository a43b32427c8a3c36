//! What `Subscriber` and `Observer` have in common.

/// The methods of a class that takes samples, one by one: its `inner` is an `Exclusive`, and its
/// `sample` makes a `$sample` of what that takes.
#[macro_export]
macro_rules! samples {
    ($class:ty, $sample:ty) => {
        #[pymethods]
        impl $class {
            /// The next sample, if there is one. Never waits.
            fn take(&self) -> PyResult<Option<$sample>> {
                let taken = self.inner.with(|inner| inner.take())?;
                Ok(taken.map_err($crate::errors::raised)?.map(|sample| self.sample(sample)))
            }

            /// Takes the next sample; waits for it for at most `timeout` seconds (None: for ever).
            /// None if the time is over, if it was interrupted, or if a publisher of a subscriber
            /// has fallen silent (see `deadline` and `liveliness`).
            #[pyo3(signature = (timeout=None))]
            fn receive(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<$sample>> {
                let limit = $crate::node::limit(timeout)?;
                let received = self.inner.wait(py, |inner| inner.receive(limit))?;
                Ok(received.map(|sample| self.sample(sample)))
            }

            /// Waits until there is a sample to take, like `receive`. False if there is none.
            #[pyo3(signature = (timeout=None))]
            fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
                let limit = $crate::node::limit(timeout)?;
                let wait = self.inner.wait(py, |inner| Ok(inner.wait(limit)?.then_some(())));
                Ok(wait?.is_some())
            }

            /// Its samples, with a wait for each, until it is closed.
            fn __iter__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            fn __next__(&self, py: Python<'_>) -> PyResult<$sample> {
                loop {
                    match self.receive(py, None) {
                        Ok(Some(sample)) => return Ok(sample),
                        Ok(None) => {}
                        Err(_) if self.inner.is_closing() => {
                            return Err(pyo3::exceptions::PyStopIteration::new_err(()));
                        }
                        Err(error) => return Err(error),
                    }
                }
            }

            /// Ends the running `receive` or `wait` in another thread, or else the next one.
            fn interrupt(&self) -> PyResult<()> {
                self.inner.interrupt()
            }

            fn __enter__(slf: Py<Self>) -> Py<Self> {
                slf
            }
        }
    };
}
