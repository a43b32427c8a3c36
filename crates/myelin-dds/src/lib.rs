//! The parts of CycloneDDS 0.10 that Myelin's route to other hosts needs: topics of any type name
//! whose samples are messages (the RTPS encapsulation header and serialised bytes), written from
//! and taken as bytes.
//!
//! It uses the system's library (Debian: `cyclonedds-dev`), found by pkg-config. Compared with a
//! crate that compiles CycloneDDS from source: a process that is also a ROS 2 node has one
//! `libddsc` instead of two of different versions; the distribution provides security fixes; a
//! build needs neither cmake nor clang nor minutes. The price: a program is built for the installed
//! version. Without CycloneDDS everything builds, and [`Domain::claim`] says what to install.
//!
//! No program is linked with it: [`load`] loads it when a domain is claimed. It also loads OpenSSL,
//! iceoryx and the C++ library, some 4 MB resident in each process. A program that stays on one
//! host avoids all of that.
//!
//! Users take the crate `myelin`; `docs/explanation/dds.md` describes how its topics travel.
//!
//! ```text
//! cyclonedds.c   finds CycloneDDS, with all that is called of it (library.rs: where)
//! blob.c         the type whose samples are messages
//! inbox.c        passes on what comes for a reader
//! bridge.c       CycloneDDS's calls, as few and as wide as can be
//! participant.rs a process's part in a DDS domain, from interface to interface
//! endpoint.rs    writers, readers and what is discovered
//! message.rs     what has come
//! entity.rs      what these have in common
//! config.rs      CycloneDDS's configuration
//! security.rs    what DDS Security needs: files, plug-ins
//! names.rs       names of Myelin's topics in DDS
//! ```

#![cfg_attr(not(have_cyclonedds), allow(dead_code, unused_variables))]

mod config;
mod endpoint;
mod entity;
mod error;
mod exit;
mod ffi;
mod library;
mod message;
mod names;
mod package;
mod participant;
mod security;

pub use config::{Config, DATAGRAMS, LEASE, socket_buffer_bytes};
pub use endpoint::{
    Discovery, History, Participants, Reader, Release, Settings, Writer, check_topic_name,
};
pub use entity::{Endpoint, Guid, Listener, Remote};
pub use error::Error;
pub use library::{SOUND, load, version_of};
pub use message::Message;
pub use names::{TOPIC_PREFIX, private_topic};
pub use participant::{Binding, DOMAIN_MAX, Domain, Participant, has_own_configuration};
pub use security::{IdentityFiles, Security, refused_certificates, warn_by, warn_once};
