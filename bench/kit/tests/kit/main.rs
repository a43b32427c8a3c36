//! The kit by its interfaces. One program: each that is linked costs a second.

mod accounting;
mod c_driver;
mod damage;
mod fan;
mod strays;
#[path = "../support/mod.rs"]
mod support;
mod touch;
