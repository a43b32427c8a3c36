//! Faults are reported, and the network is used if there is one.

use std::path::Path;

use crate::host::{ANOTHER_USER, OWN_SHARED_MEMORY};
use crate::peer::{Exchange, MYELIN, Peer};
use crate::plug_in::{on_a_host, plug_in};

#[test]
fn without_a_shared_dev_shm_the_network_is_the_way() {
    on_a_host("bad::without_a_shared_dev_shm_the_network_is_the_way", || {
        other_way(&OWN_SHARED_MEMORY);
    });
}

#[test]
fn between_two_users_the_network_is_the_way() {
    on_a_host("bad::between_two_users_the_network_is_the_way", || {
        other_way(&ANOTHER_USER);
    });
}

/// Between a peer that is started by a command and a peer without a command.
fn other_way(by: &[&str]) {
    let mut publisher = Peer::start_by(by, MYELIN, "pub Text topic all");
    assert_eq!(publisher.line(), "ready shared");
    let subscriber = Peer::shared("sub Text topic all");
    publisher.matched(1);
    publisher.write(1, 10);
    subscriber.takes(1..=10, "own");
    publisher.end();
    subscriber.end();
}

#[test]
fn a_bad_config_is_refused_with_the_key_and_the_remedy() {
    on_a_host("bad::a_bad_config_is_refused_with_the_key_and_the_remedy", || {
        for (config, said) in [
            ("WAIT=sometimes", "WAIT=sometimes: set it to adaptive, block, predictive or poll"),
            ("KEYED_TOPICS=1", "KEYED_TOPICS=1: set it to true or false"),
            ("COLOUR=blue", "COLOUR=blue: unknown key; the keys are WAIT"),
            ("GROUP=no-such-group", "GROUP=no-such-group"),
            ("FOLDER=/proc/nowhere", "FOLDER=/proc/nowhere"),
            ("LOCATOR=12", "LOCATOR=12: set it to 32 hexadecimal digits"),
        ] {
            let log = Peer::start(Exchange::Myelin(config), "sub Small topic").fails();
            assert!(log.contains("psmx_myelin: ") && log.contains(said), "{config}: {log}");
        }
    });
}

#[test]
fn a_cyclonedds_that_was_not_tested_is_refused() {
    on_a_host("bad::a_cyclonedds_that_was_not_tested_is_refused", || {
        let (prefix, _) = plug_in().expect("asked for before");
        // This host's own, so that no other test process reads or writes the copies.
        let folder = Path::new("/dev/shm/untested");
        std::fs::create_dir(folder).unwrap();
        // Only the file name differs; the loader uses the soname inside.
        for (version, is_refused) in [("11.0.1", false), ("11.9.0", true), ("12", true)] {
            let other = folder.join(format!("libddsc.so.{version}"));
            std::fs::copy(prefix.join("lib/libddsc.so.11"), &other).unwrap();
            // By its name alone: the loader splits the variable at the spaces of a folder.
            let preload = format!("LD_PRELOAD=libddsc.so.{version}");
            let (own, others) = (folder.display(), prefix.display());
            let path = format!("LD_LIBRARY_PATH={own}:{others}/lib");
            let peer = Peer::start_by(&["env", &preload, &path], MYELIN, "sub Small topic");
            if !is_refused {
                assert_eq!(peer.line(), "ready shared");
                peer.end();
                continue;
            }
            let log = peer.fails();
            let said = format!("the program has CycloneDDS {version} ({}", folder.display());
            assert!(log.contains(&said) && log.contains("works with CycloneDDS 11.0.1"), "{log}");
        }
    });
}

#[test]
fn all_settings_work() {
    on_a_host("bad::all_settings_work", || {
        for config in ["WAIT=block", "WAIT=Adaptive;KEYED_TOPICS=false;", "FOLDER=/tmp", "GROUP=0"]
        {
            let exchange = Exchange::Myelin(config);
            let subscriber = Peer::shared_by(exchange, "sub Image topic all loans");
            let mut publisher = Peer::shared_by(exchange, "pub Image topic all loans");
            publisher.matched(1);
            publisher.write(1, 3);
            subscriber.takes(1..=3, "shared");
            publisher.end();
            subscriber.end();
        }
    });
}
