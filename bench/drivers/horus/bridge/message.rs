//! A message of HORUS: an object without destructor, which HORUS copies bytewise.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Error as _, Serialize, Serializer};

/// As long as a message of the bench, including its sequence number.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub struct Message<const BYTES: usize>(pub [u8; BYTES]);

/// HORUS requires this of every type, but uses it only for types with a destructor.
impl<const BYTES: usize> Serialize for Message<BYTES> {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom(PLAIN))
    }
}

impl<'de, const BYTES: usize> Deserialize<'de> for Message<BYTES> {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(D::Error::custom(PLAIN))
    }
}

const PLAIN: &str = "a plain object goes as it is";
