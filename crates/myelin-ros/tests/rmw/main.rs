//! Unmodified ROS 2 nodes (`node.py`, rclpy) on `rmw_myelin` and on `rmw_fastrtps`, with each other.

mod bad;
mod beside;
#[allow(dead_code, reason = "the other test program uses the rest")]
#[path = "../interop/host.rs"]
mod host;
mod kill;
mod library;
mod node;
mod play;
mod programs;
mod soak;
mod talk;
mod tools;
mod tutorial;
