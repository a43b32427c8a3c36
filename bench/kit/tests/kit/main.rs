//! Tests of the kit through its public interfaces. One program, because each one takes a second to
//! link.

mod accounting;
mod c_driver;
mod damage;
mod fan;
mod strays;
#[path = "../support/mod.rs"]
mod support;
mod touch;
