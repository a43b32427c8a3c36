//! The command, run as a user does. One program: each that is linked costs a second.

mod advice_peers;
mod bad_input;
mod bag;
mod baseline;
mod beside;
mod by_hand;
mod clocks;
mod commands;
mod compare;
mod compatibility;
mod damaged;
mod doctor;
mod doctor_host;
mod doctor_network;
mod faults;
mod graph;
mod import;
#[path = "../../../myelin-shm/tests/itself/mod.rs"]
#[allow(dead_code)]
mod itself;
#[path = "../../../myelin/tests/support/kept_list.rs"]
mod kept_list;
mod keystore;
mod live;
#[path = "../../../../bench/kit/tests/support/namespaces.rs"]
#[allow(dead_code)]
mod namespaces;
mod packaging;
mod peers;
mod pictures;
mod play;
mod publish;
#[path = "support/python.rs"]
mod python;
mod quota;
mod rates;
mod record;
mod reference;
mod repeats;
mod replay;
mod schema;
mod self_test;
mod setup;
mod signals;
mod ssh;
mod streams;
mod support;
mod top;
mod topic;
mod traceability;
mod two_hosts;
mod view;
mod why;
