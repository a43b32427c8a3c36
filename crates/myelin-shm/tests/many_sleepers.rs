//! Many sleeping subscribers of one publisher: one call on its `published` wakes them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use myelin_shm::layout::{SubscriptionHead, WakeWord, subscription_begin};
use myelin_shm::node::{Node, NodeOptions, Publisher, Subscriber};
use myelin_shm::os::segment::Segment;
use myelin_shm::topic::{PublisherQos, SubscriberQos, Topic};
use myelin_shm::waiting::sleep::{Sleep, WakeBy};
use myelin_shm::waiting::wait::{NEVER, Wait, can_sleep_on_two};

const LONG: Duration = Duration::from_secs(60);
const SLEEPERS: usize = 12;

struct Ends {
    _folder: tempfile::TempDir,
    nodes: [Node; 2],
    publisher: Publisher,
    subscribers: Vec<Subscriber>,
}

fn topic() -> Topic {
    Topic { name: "t".into(), type_name: "T".into(), type_hash: 1 }
}

impl Ends {
    fn new() -> Ends {
        let folder = tempfile::tempdir().unwrap();
        let path = Some(folder.path().to_owned());
        let open =
            || Node::open(NodeOptions { runtime_dir: path.clone(), ..NodeOptions::default() });
        let nodes = [open().unwrap(), open().unwrap()];
        let publisher = nodes[0].publisher(topic(), PublisherQos::default()).unwrap();
        let subscriber = || nodes[1].subscriber(topic(), SubscriberQos::default()).unwrap();
        let subscribers: Vec<_> = (0..SLEEPERS).map(|_| subscriber()).collect();
        assert!(publisher.wait_for_match(SLEEPERS, LONG));
        assert!(subscribers.iter().all(|it| it.wait_for_match(1, LONG)));
        let mut ends = Ends { _folder: folder, nodes, publisher, subscribers };
        // At its next publish it announces how many subscribers it has.
        ends.publisher.writer.publish_copy(&[0]).unwrap();
        for subscriber in &mut ends.subscribers {
            assert!(subscriber.reader.take().unwrap().is_some());
        }
        ends
    }
}

/// The visible state of a subscriber.
struct Shown {
    head: Segment,
    wake_word: Segment,
}

impl Shown {
    fn of(subscriber: &Subscriber) -> Shown {
        let (head, wake_word) = subscriber.reader.shared().descriptors();
        let (head, wake_word) = (Segment::map_theirs(head, 1), Segment::map_shared(wake_word, 1));
        let begin = subscription_begin(subscriber.reader.shared().id());
        let head = head.unwrap().beginning_at(begin).unwrap();
        Shown { head, wake_word: wake_word.unwrap() }
    }

    fn sleep(&self) -> Sleep {
        // SAFETY: atomics and padding in a segment that was made for one; only loaded from.
        Sleep(unsafe { self.head.at::<SubscriptionHead>(0) }.asleep.load(Ordering::Relaxed))
    }

    fn wakes(&self) -> u32 {
        // SAFETY: as above.
        unsafe { self.wake_word.at::<WakeWord>(0) }.wakes.load(Ordering::Relaxed)
    }

    fn falls_asleep(&self) -> Sleep {
        while self.sleep() == Sleep::AWAKE {
            std::thread::yield_now();
        }
        self.sleep()
    }
}

#[test]
fn one_call_wakes_all_without_single_notifications() {
    if !can_sleep_on_two() {
        return; // then they sleep on their wake words, which other tests cover
    }
    let mut ends = Ends::new();
    let shown: Vec<_> = ends.subscribers.iter().map(Shown::of).collect();
    let before: Vec<_> = shown.iter().map(Shown::wakes).collect();
    let taken = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for (number, subscriber) in ends.subscribers.iter_mut().enumerate() {
            let (taken, way) =
                (&taken, [Wait::Block, Wait::Adaptive, Wait::Predictive][number % 3]);
            scope.spawn(move || {
                for sample in 1..=200 {
                    assert!(subscriber.reader.wait(way, NEVER).unwrap());
                    assert_eq!(subscriber.reader.take().unwrap().unwrap().sequence, sample);
                    taken.fetch_add(1, Ordering::Release);
                }
            });
        }
        for sample in 1..=200 {
            shown.iter().for_each(|it| assert_eq!(it.falls_asleep().wake_by(), WakeBy::Published));
            ends.publisher.writer.publish_copy(&[0]).unwrap();
            while taken.load(Ordering::Acquire) < sample * SLEEPERS as u64 {
                std::thread::yield_now();
            }
        }
    });
    assert_eq!(shown.iter().map(Shown::wakes).collect::<Vec<_>>(), before);
}

/// No sample comes: their own process, which cannot write `published`, wakes them.
#[test]
fn other_events_wake_the_sleepers_too() {
    if !can_sleep_on_two() {
        return; // as above
    }
    let mut ends = Ends::new();
    let shown: Vec<_> = ends.subscribers.iter().map(Shown::of).collect();
    let interrupters: Vec<_> =
        ends.subscribers.iter().map(|it| it.reader.shared().interrupter()).collect();
    for round in 0..100 {
        std::thread::scope(|scope| {
            for subscriber in &mut ends.subscribers {
                scope.spawn(|| assert!(!subscriber.reader.wait(Wait::Block, NEVER).unwrap()));
            }
            for (interrupter, shown) in interrupters.iter().zip(&shown) {
                if round % 2 == 0 {
                    assert_eq!(shown.falls_asleep().wake_by(), WakeBy::Published);
                }
                interrupter.interrupt();
            }
        });
    }
    // A second publisher comes while they sleep: then not only the first one may wake them.
    let mut second = None;
    std::thread::scope(|scope| {
        let waiting: Vec<_> = ends
            .subscribers
            .iter_mut()
            .map(|it| scope.spawn(|| it.reader.wait(Wait::Block, NEVER).unwrap()))
            .collect();
        shown.iter().for_each(|it| assert_eq!(it.falls_asleep().wake_by(), WakeBy::Published));
        let mut other = ends.nodes[0].publisher(topic(), PublisherQos::default()).unwrap();
        assert!(other.wait_for_match(SLEEPERS, LONG));
        other.writer.publish_copy(&[0]).unwrap();
        second = Some(other);
        assert!(waiting.into_iter().all(|it| it.join().unwrap()));
    });
    // Both go while they sleep.
    drop(second);
    for subscriber in &mut ends.subscribers {
        assert!(subscriber.reader.take().unwrap().is_some());
    }
    let Ends { publisher, mut subscribers, nodes, _folder } = ends;
    std::thread::scope(|scope| {
        let sleeping = subscribers
            .iter_mut()
            .map(|it| scope.spawn(|| it.reader.wait(Wait::Block, NEVER).unwrap()))
            .collect::<Vec<_>>();
        shown.iter().for_each(|it| assert_ne!(it.falls_asleep(), Sleep::AWAKE));
        drop(publisher);
        let mut third = nodes[0].publisher(topic(), PublisherQos::default()).unwrap();
        assert!(third.wait_for_match(SLEEPERS, LONG));
        third.writer.publish_copy(&[0]).unwrap();
        assert!(sleeping.into_iter().all(|it| it.join().unwrap()));
    });
}
