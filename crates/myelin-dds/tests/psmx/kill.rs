//! Killed processes leave nothing, and the others go on.

use std::fs;
use std::path::Path;

use crate::peer::Peer;
use crate::plug_in::on_a_host;

#[test]
fn a_killed_reader_blocks_no_writer() {
    on_a_host("kill::a_killed_reader_blocks_no_writer", || {
        let mut publisher = Peer::shared("pub Image topic all loans");
        let bystander = Peer::shared("sub Image topic all");
        for round in 0..5 {
            let mut victim = Peer::shared("sub Image topic all loans");
            publisher.matched(2);
            // It is stopped with untaken samples: the publisher would wait for it.
            victim.tell("stop");
            assert_eq!(victim.line(), "stopped");
            publisher.write(100 * round, 60);
            bystander.takes(100 * round..100 * round + 60, "own");
            victim.kill();
            publisher.write(100 * round + 60, 40);
            bystander.takes(100 * round + 60..100 * (round + 1), "own");
            // DDS notices its end after its lease; that must happen before the next one comes.
            publisher.matched(1);
        }
        // The next process finds the leftovers of the dead one, and removes them.
        let next = Peer::shared("sub Image topic");
        assert_eq!(left(), 3, "sockets of those that live");
        next.end();
        publisher.end();
        bystander.end();
        assert_eq!(left(), 0);
    });
}

#[test]
fn a_killed_writer_is_followed_by_the_next() {
    on_a_host("kill::a_killed_writer_is_followed_by_the_next", || {
        let subscriber = Peer::shared("sub Image topic all loans");
        for round in 0..5 {
            let mut victim = Peer::shared("pub Image topic all loans");
            victim.matched(1);
            victim.write(100 * round, 20);
            subscriber.takes(100 * round..100 * round + 20, "shared");
            victim.kill();
        }
        // The next process finds the leftovers of the dead one, and removes them.
        let next = Peer::shared("pub Image topic");
        assert_eq!(left(), 2, "sockets of those that live");
        next.end();
        subscriber.end();
        assert_eq!(left(), 0);
    });
}

#[test]
fn a_stopped_process_is_not_waited_for_by_every_new_endpoint() {
    on_a_host("kill::a_stopped_process_is_not_waited_for_by_every_new_endpoint", || {
        let mut publisher = Peer::shared("pub Image topic all loans");
        let stopped = Peer::shared("sub Image topic all");
        publisher.matched(1);
        stopped.signal("-STOP");
        // If the publisher waited for each of them, the watchdog would end it.
        assert_eq!(publisher.ask("others 100"), "Success");
        let subscriber = Peer::shared("sub Image topic all loans");
        publisher.matched(2);
        publisher.write(1, 10);
        subscriber.takes(1..=10, "shared");
        stopped.signal("-CONT");
        stopped.takes(1..=10, "own");
        for peer in [publisher, subscriber, stopped] {
            peer.end();
        }
    });
}

/// Files that Myelin has in `/dev/shm`.
fn left() -> usize {
    fn count(folder: &Path) -> usize {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|it| if it.path().is_dir() { count(&it.path()) } else { 1 }).sum()
    }
    count(Path::new("/dev/shm"))
}
