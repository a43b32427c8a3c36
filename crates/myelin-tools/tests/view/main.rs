//! `myelin view` by its public interface: real sockets, real viewers, a real browser.

mod access;
mod files;
mod hostile;
mod measure;
mod page;
mod robot;
mod slow;
mod support;
mod viewers;
