//! No way to other hosts: nothing of this can be made.

use std::sync::Arc;

use myelin_shm::node as shm;

use super::{Spec, Way};
use crate::{Error, NetworkState};

/// A node's way to other hosts.
#[derive(Debug)]
pub(crate) enum Network {}

/// A publisher's.
pub(crate) enum Outlet {}

/// A subscriber's.
pub(crate) enum Inlet {}

impl Network {
    pub(crate) fn open(_way: Way, _domain: u32, _node: &shm::Node) -> Result<Arc<Network>, Error> {
        Err(Error::Setting {
            topic: None,
            field: "network",
            value: "true".to_string(),
            remedy: "this program was built without the way to other hosts; build it with the \
                     feature `dds` of the crate `myelin`",
        })
    }

    pub(crate) fn state(&self) -> NetworkState {
        match *self {}
    }

    pub(crate) fn outlet(&self, _: &Spec, _: &shm::Publisher) -> Result<Outlet, Error> {
        match *self {}
    }

    pub(crate) fn inlet(&self, _: &Spec, _: &shm::Subscriber) -> Result<Inlet, Error> {
        match *self {}
    }
}

impl Outlet {
    pub(crate) fn make_room(&self) -> Result<u32, Error> {
        match *self {}
    }

    pub(crate) fn write(&self, _payload: &[u8]) -> Result<(), Error> {
        match *self {}
    }
}

impl Inlet {
    pub(crate) fn lost(&self) -> u64 {
        match *self {}
    }
}
