//! Myelin and real DDS programs, `tests/peers`, talk to each other.

mod bytes;
mod host;
mod pattern;
mod peer;
