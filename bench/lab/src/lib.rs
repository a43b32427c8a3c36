//! The laboratory behind `myelin bench`. Data flows one way:
//! scenario → plan → run → observe → record → analyse → report.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod host;
pub mod summary;
