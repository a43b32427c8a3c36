//! Recordings: written, read by others, cut, damaged, and on disks that fill up.

mod cdr;
mod copies;
mod cut;
mod damage;
mod differences;
mod full;
mod hostile_input;
mod mend;
mod message_types;
mod others;
mod packed;
mod reader;
mod refusals;
mod sensors;
mod support;
mod survive;
