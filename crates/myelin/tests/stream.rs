//! Samples for asynchronous tasks: with an executor of a few lines, and with a runtime.

mod support;

use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use futures_core::Stream;
use myelin::{Error, Payload, Sample, SampleStream};
use support::{WATCHDOG, ends, node, until};
use tokio::io::unix::AsyncFd;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

async fn next<T: Payload + ?Sized>(stream: &mut SampleStream<T>) -> Result<Sample<T>, Error> {
    poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await.expect("it never ends")
}

#[test]
fn every_sample_reaches_its_task_in_order() {
    let (_folder, node) = node();
    let ends: Vec<_> = (0..TOPICS)
        .map(|number| ends(&node.topic::<u64>(&format!("t{number}")).reliable(WATCHDOG)))
        .collect();
    std::thread::scope(|scope| {
        for (publisher, subscriber) in ends {
            let mut stream = subscriber.into_stream().unwrap();
            scope.spawn(move || {
                block_on(async {
                    for expected in 0..SAMPLES {
                        assert_eq!(*next(&mut stream).await.unwrap(), expected);
                    }
                    assert_eq!(stream.lost(), 0);
                })
            });
            scope.spawn(move || {
                for count in 0..SAMPLES {
                    publisher.publish_copy(&count).unwrap();
                }
                publisher
            });
        }
    });
}

/// Nothing is published before the task certainly sleeps: each sample has to wake it.
#[test]
fn a_task_is_woken_for_each_sample_it_sleeps_for() {
    struct Count(AtomicU64);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let (_folder, node) = node();
    let (publisher, subscriber) = ends(&node.topic::<u64>("count"));
    let mut stream = pin!(subscriber.into_stream().unwrap());
    let count = Arc::new(Count(AtomicU64::new(0)));
    let waker = Waker::from(count.clone());
    let mut context = Context::from_waker(&waker);
    assert!(stream.as_mut().poll_next(&mut context).is_pending());
    // Earlier events may have woken it, such as the match.
    for sample in 0..200 {
        let before = count.0.load(Ordering::Relaxed);
        publisher.publish_copy(&sample).unwrap();
        until("a wake-up", || count.0.load(Ordering::Relaxed) > before);
        let taken = stream.as_mut().poll_next(&mut context);
        assert!(matches!(taken, Poll::Ready(Some(Ok(taken))) if *taken == sample));
        assert!(stream.as_mut().poll_next(&mut context).is_pending());
    }
}

#[test]
fn a_stream_waits_for_the_next_publisher() {
    let (_folder, node) = node();
    let topic = node.topic::<u64>("count");
    let mut stream = topic.subscriber().unwrap().into_stream().unwrap();
    for count in 0..20 {
        let publisher = topic.publisher().unwrap();
        assert!(publisher.wait_for_match(1, WATCHDOG));
        publisher.publish_copy(&count).unwrap();
        drop(publisher);
        assert_eq!(*block_on(next(&mut stream)).unwrap(), count);
    }
}

#[test]
fn tasks_of_a_runtime_share_its_thread() {
    let (_folder, node) = node();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (ping_out, ping_in) = ends(&node.topic::<u64>("ping"));
    let (pong_out, pong_in) = ends(&node.topic::<u64>("pong"));
    let (mut ping, mut pong) = (ping_in.into_stream().unwrap(), pong_in.into_stream().unwrap());
    runtime.block_on(async {
        let answers = tokio::spawn(async move {
            for _ in 0..SAMPLES {
                let sample = next(&mut ping).await.unwrap();
                pong_out.publish_copy(&*sample).unwrap();
            }
        });
        for count in 0..SAMPLES {
            ping_out.publish_copy(&count).unwrap();
            assert_eq!(*next(&mut pong).await.unwrap(), count);
        }
        answers.await.unwrap();
    });
}

/// The other way: the runtime's own reactor watches the descriptor of a wait set.
#[test]
fn a_runtimes_reactor_watches_a_wait_set() {
    let (_folder, node) = node();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let mut set = node.wait_set().unwrap();
    let (publisher, mut subscriber) = ends(&node.topic::<u64>("count").reliable(WATCHDOG));
    let key = set.add(&subscriber).unwrap();
    let sender = std::thread::spawn(move || {
        for count in 0..SAMPLES {
            publisher.publish_copy(&count).unwrap();
        }
        publisher
    });
    runtime.block_on(async {
        let descriptor = set.descriptor().unwrap();
        // SAFETY: it is the same descriptor until it is dropped.
        let descriptor: AsyncFd<OwnedFd> = unsafe { AsyncFd::register(descriptor) }.unwrap();
        let mut expected = 0;
        while expected < SAMPLES {
            let mut readable = descriptor.readable().await.unwrap();
            if set.wait(std::time::Duration::ZERO).unwrap().is_empty() {
                readable.clear_ready();
                continue;
            }
            assert_eq!(set.wait(std::time::Duration::ZERO).unwrap(), [key]);
            while let Some(count) = subscriber.take().unwrap() {
                assert_eq!(*count, expected);
                expected += 1;
            }
        }
    });
    sender.join().unwrap();
}

const TOPICS: usize = 6;
const SAMPLES: u64 = 2_000;
