//! The Python module `myelin._native`; `python/myelin` makes the module `myelin` from it.
//!
//! The GIL is released wherever the call could wait for another thread: in every wait, publish and
//! loan, and when an endpoint is made or closed. A publish runs callbacks, and callbacks take the
//! GIL; a thread that waited for their locks with the GIL would wait for ever.
#![cfg(feature = "extension-module")]

mod any;
mod bag;
mod call;
mod callback;
mod errors;
mod exclusive;
mod executor;
mod function;
mod gil_cell;
mod graph_watcher;
mod info;
mod loan;
mod memory;
mod node;
mod numpy_types;
mod observer;
mod player;
mod publisher;
mod recorder;
mod released;
mod sample;
mod samples;
mod service;
mod subscriber;
mod topic;
mod types;
mod wait_set;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let main = module.py().import("threading")?.call_method0("main_thread")?;
        super::call::install(main.getattr("ident")?.extract()?);
        Ok(())
    }

    #[pymodule_export]
    use super::any::{AnyTopic, Discovery, Numbers};
    #[pymodule_export]
    use super::bag::{BagMessage, BagReader, BagTopic, Losses};
    #[pymodule_export]
    use super::callback::Callback;
    #[pymodule_export]
    use super::executor::{Called, Executor};
    #[pymodule_export]
    use super::graph_watcher::{
        EndpointStatus, GraphStatus, GraphWatcher, MatchStatus, NodeStatus, TopicStatus,
    };
    #[pymodule_export]
    use super::info::{
        EndpointInfo, Event, Graph, Lateness, MatchInfo, NodeInfo, Published, TypeInfo,
    };
    #[pymodule_export]
    use super::loan::Loan;
    #[pymodule_export]
    use super::node::{Node, now};
    #[pymodule_export]
    use super::observer::{ObservedHeader, ObservedPublisher, ObservedSample, Observer};
    #[pymodule_export]
    use super::player::{Played, Player};
    #[pymodule_export]
    use super::publisher::Publisher;
    #[pymodule_export]
    use super::recorder::{RecordedTopic, Recorder, RecorderStatus};
    #[pymodule_export]
    use super::sample::Sample;
    #[pymodule_export]
    use super::service::{Client, Pending, Reply, ReplyLoan, Request, Service};
    #[pymodule_export]
    use super::subscriber::Subscriber;
    #[pymodule_export]
    use super::topic::Topic;
    #[pymodule_export]
    use super::types::{Layout, Type};
    #[pymodule_export]
    use super::wait_set::{GuardCondition, Timer, WaitSet};
}

/// The alignment of Python's objects.
const OBJECT_ALIGN: usize = 16;
const _: () = {
    assert!(align_of::<subscriber::Subscriber>() <= OBJECT_ALIGN);
    assert!(align_of::<publisher::Publisher>() <= OBJECT_ALIGN);
    assert!(align_of::<observer::Observer>() <= OBJECT_ALIGN);
    assert!(align_of::<observer::ObservedSample>() <= OBJECT_ALIGN);
    assert!(align_of::<sample::Sample>() <= OBJECT_ALIGN);
    assert!(align_of::<loan::Loan>() <= OBJECT_ALIGN);
    assert!(align_of::<wait_set::WaitSet>() <= OBJECT_ALIGN);
    assert!(align_of::<service::Service>() <= OBJECT_ALIGN);
    assert!(align_of::<service::Client>() <= OBJECT_ALIGN);
    assert!(align_of::<service::Reply>() <= OBJECT_ALIGN);
};
