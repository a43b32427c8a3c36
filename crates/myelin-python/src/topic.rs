//! A topic: a name, a type and settings from which publishers and subscribers are made.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::errors::raised;
use crate::node::seconds;
use crate::observer::Observer;
use crate::publisher::Publisher;
use crate::released::released;
use crate::subscriber::{Inner, Subscriber, wait_of};
use crate::types::Carried;

/// A topic of a node: its name, its type, and the settings that both sides have. Made by `Node.topic`.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct Topic {
    pub topic: myelin::Topic<[u8]>,
    pub carried: Arc<Carried>,
    /// Why the schema of the type cannot be read, for a topic of `Node.any_topic`.
    #[pyo3(get)]
    pub problem: Option<String>,
}

#[pymethods]
impl Topic {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        self.topic.name()
    }

    /// Its type's name, for messages.
    #[getter]
    fn type_name(&self) -> &str {
        self.carried.of_type().dynamic_type.type_name()
    }

    /// Its type's layout hash: endpoints with different hashes do not match.
    #[getter]
    fn type_hash(&self) -> u64 {
        self.carried.of_type().dynamic_type.hash()
    }

    /// Makes a publisher. `liveliness` is the lease that it offers, in seconds.
    #[pyo3(signature = (
        *, loans_max=None, payload_bytes_max=None, memory_max=None, timestamps=None, this_host_only=false,
        liveliness=None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "named in Python")]
    fn publisher(
        &self,
        py: Python<'_>,
        loans_max: Option<u32>,
        payload_bytes_max: Option<u64>,
        memory_max: Option<u64>,
        timestamps: Option<bool>,
        this_host_only: bool,
        liveliness: Option<f64>,
    ) -> PyResult<Publisher> {
        let mut builder = self.topic.publisher_builder();
        builder = builder.this_host_only(this_host_only);
        if let Some(enabled) = timestamps {
            builder = builder.timestamps(enabled);
        }
        if let Some(lease) = liveliness {
            builder = builder.liveliness(seconds(lease)?);
        }
        if let Some(loans) = loans_max {
            builder = builder.loans_max(loans);
        }
        if let Some(bytes) = payload_bytes_max {
            builder = builder.payload_bytes_max(bytes);
        }
        if let Some(bytes) = memory_max {
            builder = builder.memory_max(bytes);
        }
        let publisher = released(py, || builder.open()).map_err(raised)?;
        Ok(Publisher::new(publisher, &self.carried))
    }

    /// Makes a subscriber. `liveliness` is in seconds.
    #[pyo3(signature = (
        *, held_max=None, publishers_max=None, memory_max=None, liveliness=None, descriptor=false,
        wait=None, ignore_own_node=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "named in Python")]
    fn subscriber(
        &self,
        py: Python<'_>,
        held_max: Option<u32>,
        publishers_max: Option<u32>,
        memory_max: Option<u64>,
        liveliness: Option<f64>,
        descriptor: bool,
        wait: Option<&str>,
        ignore_own_node: bool,
    ) -> PyResult<Subscriber> {
        let mut builder = self.topic.subscriber_builder().ignore_own_node(ignore_own_node);
        if let Some(samples) = held_max {
            builder = builder.held_max(samples);
        }
        if let Some(publishers) = publishers_max {
            builder = builder.publishers_max(publishers);
        }
        if let Some(bytes) = memory_max {
            builder = builder.memory_max(bytes);
        }
        if let Some(lease) = liveliness {
            builder = builder.liveliness(seconds(lease)?);
        }
        let wait = wait.map(|how| wait_of(how, None)).transpose()?;
        let opened = released(py, || match descriptor {
            true => builder.open_with_fd().map(Inner::WithDescriptor),
            false => builder.open().map(Inner::Plain),
        });
        let mut inner = opened.map_err(raised)?;
        if let Some(wait) = wait {
            inner.set_wait(wait);
        }
        Ok(Subscriber::new(inner, &self.carried))
    }

    /// Makes an observer: it looks at the samples of the publishers on this host without being known
    /// to them.
    fn observer(&self, py: Python<'_>) -> PyResult<Observer> {
        let observer = released(py, || self.topic.observer()).map_err(raised)?;
        Ok(Observer::new(observer, &self.carried))
    }

    fn __repr__(&self) -> String {
        format!("<Topic {:?} of {}>", self.name(), self.type_name())
    }
}
