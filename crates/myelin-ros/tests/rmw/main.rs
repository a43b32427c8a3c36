//! Unmodified ROS 2 nodes (`node.py`, rclpy) on `rmw_myelin` and on `rmw_fastrtps`, with each other.

mod bad;
#[path = "../interop/host.rs"]
mod host;
mod kill;
mod library;
mod node;
mod talk;
