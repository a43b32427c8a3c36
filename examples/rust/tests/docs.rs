//! The Rust in the docs compiles: `build.rs` makes a function of each block. None is called.
#![allow(
    dead_code,
    unused_imports,
    unused_variables,
    unused_must_use,
    clippy::all,
    clippy::pedantic
)]

use std::time::Duration;

use myelin::{NetworkState, Node, PlainData};

/// Types and functions that the pages use.
macro_rules! plain {
    ($($name:ident { $($field:ident: $kind:ty),* })*) => {$(
        #[derive(Clone, Copy, Debug, PlainData)]
        #[repr(C)]
        struct $name { $($field: $kind),* }
    )*};
}
plain! {
    Imu { stamp_ns: u64 }
    Point { x: f32, y: f32 }
    Pose { x: f64, y: f64 }
    Frame { stamp_ns: u64, width: usize, height: usize }
}
struct Camera;
impl Camera {
    fn read_into(&self, _pixels: &mut [u8]) {}
}
fn show(_width: u32, _height: u32, _pixels: &[u8]) {}

include!(concat!(env!("OUT_DIR"), "/docs.rs"));

#[test]
fn there_are_blocks() {
    assert!(BLOCKS >= 9, "{BLOCKS} blocks were found");
}
