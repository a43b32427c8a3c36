//! Sixteen threads of a program use the library at random: publish, take, wait, call, run
//! executors, add, remove, change, close, fork, panic, signal. Nothing hangs or is left, and each
//! subscriber has received or lost every sample that was published to it.
//!
//! A seed makes the choices of each thread, so that they can be repeated; their timing depends on
//! the machine. `MYELIN_TORTURE_SEED` is the seed, `MYELIN_TORTURE_S` the duration, and
//! `MYELIN_TORTURE_WITHOUT` names operations to leave out, separated by commas.

#[path = "../../myelin-shm/tests/itself/mod.rs"]
mod itself;
mod support;

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use myelin::{
    Callback, Client, EndpointId, Error, ExecutorHandle, GuardCondition, Interrupter, Key, Node,
    Publisher, Sample, Service, SharedPublisher, Subscriber, Topic, Wait, WaitSetHandle,
};
use support::WATCHDOG;

/// A possible next operation of a thread: its name, its weight, and its code.
type Operation = (&'static str, u32, fn(&mut Actor));

/// Each operation is independent, and does nothing where it has no object. To add one, add it here
/// only.
const OPERATIONS: &[Operation] = &[
    ("publish_copy", 60, |actor| actor.publish(false)),
    ("publish_loan", 30, |actor| actor.publish(true)),
    ("drop_loan", 4, Actor::drop_loan),
    ("publish_shared", 20, Actor::publish_shared),
    ("take", 60, Actor::take),
    ("receive", 10, Actor::receive),
    ("hold", 8, Actor::hold),
    ("release", 8, Actor::release),
    ("wait_set", 8, Actor::wait_set),
    ("change_wait_set", 12, Actor::change_wait_set),
    ("run_executor", 3, Actor::run_executor),
    ("change_executor", 12, Actor::change_executor),
    ("add_publisher", 6, Actor::add_publisher),
    ("add_subscriber", 6, Actor::add_subscriber),
    ("add_callback", 3, |actor| actor.add_callback(false)),
    ("add_panicking_callback", 1, |actor| actor.add_callback(true)),
    ("add_forwarding_callback", 2, Actor::add_forwarding_callback),
    ("add_crossing_callback", 2, Actor::add_crossing_callback),
    ("add_shared_publisher", 1, Actor::add_shared_publisher),
    ("listen_to_events", 2, Actor::listen_to_events),
    ("add_service", 1, Actor::add_service),
    ("add_called_service", 1, Actor::add_called_service),
    ("add_client", 2, Actor::add_client),
    ("serve", 10, Actor::serve),
    ("call", 4, Actor::call),
    ("remove_publisher", 3, Actor::remove_publisher),
    ("remove_subscriber", 3, Actor::remove_subscriber),
    ("remove_callback", 3, |actor| drop(actor.pick(|actor| &mut actor.callbacks))),
    ("open_node", 1, Actor::open_node),
    ("close_all", 1, Actor::close_all),
    ("interrupt", 4, Actor::interrupt),
    ("signal", 4, Actor::signal),
    ("fork", 1, Actor::fork),
];

type SharedPublishers = Vec<(EndpointId, SharedPublisher<[u8]>)>;

/// The state that all threads see.
struct World {
    folder: PathBuf,
    node: Node,
    /// How many samples each publisher has published, when a round ends.
    published: Mutex<BTreeMap<EndpointId, u64>>,
    interrupters: Mutex<Vec<Interrupter>>,
    /// For each topic the publishers that all threads use.
    shared: Mutex<[SharedPublishers; TOPICS]>,
    /// Wait sets that other threads change and close while they are in use.
    wait_sets: Mutex<Vec<WaitSetHandle>>,
    executors: Mutex<Vec<ExecutorHandle>>,
    /// The current operation of each thread, and how many operations all have done: for the
    /// watchdog.
    doing: [AtomicUsize; THREADS],
    done: AtomicU64,
    threads: Mutex<Vec<libc::pthread_t>>,
    stop: AtomicBool,
    barrier: Barrier,
}

/// The samples received by a subscriber: by publisher, the next sequence.
#[derive(Default)]
struct Ledger {
    next: HashMap<EndpointId, u64>,
    received: u64,
    lost: u64,
}

impl Ledger {
    /// Samples between two received ones of a publisher are lost, and reported as lost.
    fn enter(&mut self, sample: &Sample<[u8]>) {
        let (publisher, sequence) = (sample.publisher(), sample.sequence());
        let lost = sample.lost_before();
        if let Some(next) = self.next.get(&publisher) {
            assert_eq!(next + lost, sequence, "of {publisher:x}, of which {lost} were lost");
        }
        check(sample);
        self.next.insert(publisher, sequence + 1);
        self.received += 1;
        self.lost += lost;
    }

    fn check_end(&self, published: &BTreeMap<EndpointId, u64>) {
        for (publisher, next) in &self.next {
            if let Some(published) = published.get(publisher) {
                assert_eq!(next, published, "of {publisher:x}: received and lost are not sent");
            }
        }
    }
}

type SharedLedger = Arc<Mutex<Ledger>>;

/// A ledger of a function that may be panicking in another thread.
fn enter(ledger: &SharedLedger, sample: &Sample<[u8]>) -> u64 {
    let mut ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
    ledger.enter(sample);
    ledger.received
}

/// A payload contains its number of bytes.
fn fill(bytes: &mut [u8]) {
    let byte = bytes.len() as u8;
    bytes.fill(byte);
}

fn check(sample: &Sample<[u8]>) {
    let byte = sample.len() as u8;
    assert!(sample.iter().all(|each| *each == byte), "{} bytes are another's", sample.len());
}

/// A publisher of the first one waits for its subscribers.
fn topic(node: &Node, number: usize) -> Topic<[u8]> {
    let topic = node.topic(&format!("topic{number}")).depth(16);
    if number == 0 { topic.reliable(Duration::from_millis(2)) } else { topic }
}

/// A thread and its objects. Objects that borrow from others are dropped first.
struct Actor {
    number: usize,
    random: u64,
    world: Arc<World>,
    own_node: Option<Node>,
    held: Vec<Sample<[u8]>>,
    publishers: Vec<Publisher<[u8]>>,
    subscribers: Vec<(Subscriber<[u8]>, Ledger)>,
    callbacks: Vec<(Callback, SharedLedger)>,
    services: Vec<Service<u64, u64>>,
    clients: Vec<Client<u64, u64>>,
}

impl Actor {
    fn below(&mut self, limit: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) as usize % limit.max(1)
    }

    fn pick<T>(&mut self, of: fn(&mut Actor) -> &mut Vec<T>) -> Option<T> {
        let count = of(self).len();
        let at = self.below(count);
        (count > 0).then(|| of(self).swap_remove(at))
    }

    fn node(&mut self) -> Node {
        let own = self.own_node.clone().filter(|_| self.below(2) == 0);
        own.unwrap_or_else(|| self.world.node.clone())
    }

    fn topic(&mut self) -> Topic<[u8]> {
        let node = self.node();
        self.topic_of(&node)
    }

    fn topic_of(&mut self, node: &Node) -> Topic<[u8]> {
        topic(node, self.below(TOPICS))
    }

    fn bytes(&mut self) -> usize {
        [1, 8, 100, 105, 4_000, 40_000][self.below(6)]
    }

    fn publish(&mut self, by_loan: bool) {
        let Some(publisher) = self.pick(|actor| &mut actor.publishers) else { return };
        let bytes = self.bytes();
        let published = if by_loan {
            publisher.loan(bytes).and_then(|mut loan| {
                fill(&mut loan);
                loan.publish()
            })
        } else {
            let mut payload = vec![0; bytes];
            fill(&mut payload);
            publisher.publish_copy(&payload)
        };
        published.unwrap();
        self.publishers.push(publisher);
    }

    fn drop_loan(&mut self) {
        let bytes = self.bytes();
        if let Some(publisher) = self.publishers.first() {
            drop(publisher.loan(bytes).unwrap());
        }
    }

    fn take(&mut self) {
        let Some((mut subscriber, mut ledger)) = self.pick(|actor| &mut actor.subscribers) else {
            return;
        };
        for _ in 0..self.below(32) {
            match subscriber.take() {
                Ok(Some(sample)) => ledger.enter(&sample),
                Ok(None) => break,
                Err(Error::TooManyHeld { .. }) => self.held.clear(),
                Err(error) => panic!("{error}"),
            }
        }
        self.subscribers.push((subscriber, ledger));
    }

    fn receive(&mut self) {
        let limit = Duration::from_micros(self.below(500) as u64);
        let Some((mut subscriber, mut ledger)) = self.pick(|actor| &mut actor.subscribers) else {
            return;
        };
        match subscriber.receive(limit) {
            Ok(Some(sample)) => ledger.enter(&sample),
            Ok(None) => {}
            Err(Error::TooManyHeld { .. }) => self.held.clear(),
            Err(error) => panic!("{error}"),
        }
        self.subscribers.push((subscriber, ledger));
    }

    fn hold(&mut self) {
        if let Some((subscriber, ledger)) = self.subscribers.first_mut()
            && let Ok(Some(sample)) = subscriber.take()
        {
            ledger.enter(&sample);
            self.held.push(sample.clone());
        }
    }

    fn release(&mut self) {
        if let Some(sample) = self.pick(|actor| &mut actor.held) {
            check(&sample);
        }
    }

    fn publish_shared(&mut self) {
        let Some(publisher) = self.shared_publisher() else { return };
        let bytes = self.bytes();
        if self.below(2) == 0 {
            let mut loan = publisher.loan(bytes).unwrap();
            fill(&mut loan);
            loan.publish().unwrap();
        } else {
            let mut payload = vec![0; bytes];
            fill(&mut payload);
            publisher.publish_copy(&payload).unwrap();
        }
    }

    fn shared_publisher(&mut self) -> Option<SharedPublisher<[u8]>> {
        let (topic, at) = (self.below(TOPICS), self.below(EACH_MAX));
        self.world.shared.lock().unwrap()[topic].get(at).map(|(_, shared)| shared.clone())
    }

    /// In place of another one.
    fn add_shared_publisher(&mut self) {
        let (number, at) = (self.below(TOPICS), self.below(EACH_MAX));
        let publisher = topic(&self.world.node, number).publisher().unwrap();
        let new = (publisher.id(), publisher.shared());
        let mut shared = self.world.shared.lock().unwrap();
        let before = (shared[number].len() > at).then(|| shared[number].swap_remove(at));
        shared[number].push(new);
        drop(shared);
        drop(before);
    }

    fn wait_set(&mut self) {
        let limit = Duration::from_micros(self.below(2_000) as u64);
        let mut set = self.node().wait_set().unwrap();
        self.world.wait_sets.lock().unwrap().push(set.handle());
        // Others may close it meanwhile.
        let mut keys = Vec::new();
        for (subscriber, _) in &self.subscribers {
            match set.add(subscriber) {
                Ok(key) => keys.push(key),
                Err(Error::Setting { .. } | Error::Closed { .. }) => {} // of another node
                Err(error) => panic!("{error}"),
            }
        }
        let guard = unless_closed(set.guard_condition());
        unless_closed(set.timer(Duration::from_micros(100)));
        for _ in 0..self.below(4) {
            if self.below(2) == 0 {
                guard.iter().for_each(GuardCondition::trigger);
            }
            unless_closed(set.wait(limit).map(|_| ()));
        }
        if self.below(2) == 0 {
            drop(guard);
            keys.drain(..).for_each(|key| assert!(set.remove(key) || set.is_closed()));
        }
        drop(set);
        self.world.wait_sets.lock().unwrap().retain(|other| !other.is_closed());
    }

    /// While another thread waits in it.
    fn change_wait_set(&mut self) {
        let at = self.below(THREADS);
        let Some(set) = self.world.wait_sets.lock().unwrap().get(at).cloned() else { return };
        match self.below(6) {
            0 => _ = unless_closed(set.timer(Duration::from_micros(50))),
            1 => _ = unless_closed(set.guard_condition()).inspect(GuardCondition::trigger),
            2 => set.set_wait([Wait::Adaptive, Wait::Block][self.below(2)]),
            3 => set.close(),
            _ => {
                let subscriber = self.subscriber_of(&self.world.node.clone());
                match set.add(&subscriber) {
                    Ok(key) if self.below(2) == 0 => _ = set.remove(key),
                    Ok(_) | Err(Error::Setting { .. } | Error::Closed { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }

    /// For a few milliseconds. It ends by itself, if other threads do not end it before.
    fn run_executor(&mut self) {
        let node = self.node();
        let mut executor = node.executor().unwrap();
        let handle = executor.handle();
        for _ in 0..=self.below(3) {
            let subscriber = self.subscriber_of(&node);
            unless_closed(self.add_function(&handle, subscriber));
        }
        let (inside, end, acts) = (handle.clone(), self.below(4), AtomicUsize::new(0));
        let add = move || {
            // Its functions come and go.
            let at = acts.fetch_add(1, Ordering::Relaxed);
            let key = unless_closed(inside.on_timer(Duration::from_micros(100), || {}));
            if at.is_multiple_of(2) {
                key.inspect(|key| _ = inside.remove(*key));
            }
        };
        unless_closed(handle.on_timer(Duration::from_micros(300), add));
        let inside = handle.clone();
        let finish = move || match end {
            0 => inside.close(),
            1 => resume_unwind(Box::new(MEANT)),
            _ => inside.stop_guard().trigger(),
        };
        unless_closed(handle.on_timer(Duration::from_millis(3), finish));
        self.world.executors.lock().unwrap().push(handle.clone());
        for threads in 0..=self.below(3) {
            let run = || match threads {
                0 => executor.turn(Duration::from_micros(500)).map(|_| ()),
                _ => executor.run_on(threads),
            };
            match catch_unwind(AssertUnwindSafe(run)) {
                Ok(ran) => _ = unless_closed(ran),
                Err(panic) => assert_eq!(panic.downcast_ref(), Some(&MEANT)),
            }
        }
        drop(executor);
        self.world.executors.lock().unwrap().retain(|other| !other.is_closed());
    }

    /// A function that removes itself after a while, or panics.
    fn add_function(&mut self, to: &ExecutorHandle, from: Subscriber<[u8]>) -> Result<Key, Error> {
        let own = Arc::new(OnceLock::new());
        let (key, ledger, inside) = (own.clone(), SharedLedger::default(), to.clone());
        let panics = self.below(4) == 0;
        let added = to.on_sample(from, move |sample| {
            let received = enter(&ledger, sample);
            if received == 8 {
                key.get().inspect(|key| _ = inside.remove(**key));
            }
            if panics && received == 5 {
                resume_unwind(Box::new(MEANT));
            }
        })?;
        own.set(added).expect("set once");
        Ok(added)
    }

    /// While another thread runs it.
    fn change_executor(&mut self) {
        let at = self.below(THREADS);
        let Some(executor) = self.world.executors.lock().unwrap().get(at).cloned() else { return };
        match self.below(8) {
            0 => _ = unless_closed(executor.on_timer(Duration::from_micros(50), || {})),
            1 => executor.stop_guard().trigger(),
            2 => executor.set_wait([Wait::Adaptive, Wait::Block][self.below(2)]),
            3 => executor.close(),
            4 => drop(executor.descriptor()),
            _ => {
                let subscriber = self.subscriber_of(&self.world.node.clone());
                match self.add_function(&executor, subscriber) {
                    Ok(key) if self.below(2) == 0 => _ = executor.remove(key),
                    Ok(_) | Err(Error::Setting { .. } | Error::Closed { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }

    fn add_publisher(&mut self) {
        if self.publishers.len() < EACH_MAX {
            let builder = self.topic().publisher_builder();
            self.publishers.push(builder.open().unwrap());
        }
    }

    fn subscriber(&mut self) -> Subscriber<[u8]> {
        let node = self.node();
        self.subscriber_of(&node)
    }

    fn subscriber_of(&mut self, node: &Node) -> Subscriber<[u8]> {
        let topic = self.topic_of(node);
        topic.subscriber_builder().publishers_max(256).held_max(32).open().unwrap()
    }

    fn add_subscriber(&mut self) {
        if self.subscribers.len() < EACH_MAX {
            let subscriber = self.subscriber();
            let interrupter = subscriber.interrupter();
            self.world.interrupters.lock().unwrap().push(interrupter);
            self.subscribers.push((subscriber, Ledger::default()));
        }
    }

    fn add_callback(&mut self, panics: bool) {
        if self.callbacks.len() < EACH_MAX {
            let ledger = SharedLedger::default();
            let its = ledger.clone();
            let callback = self.subscriber().on_sample(move |sample| {
                if enter(&its, sample) % 7 == 3 && panics {
                    resume_unwind(Box::new(MEANT));
                }
            });
            self.callbacks.push((callback.unwrap(), ledger));
        }
    }

    /// It publishes large samples again as smaller ones, by a publisher of any topic that other
    /// threads are publishing with. Not while a thread checks its accounts, nor in one of the
    /// library's threads.
    fn add_crossing_callback(&mut self) {
        let Some(to) = self.shared_publisher() else { return };
        if self.callbacks.len() < EACH_MAX {
            let ledger = SharedLedger::default();
            let its = ledger.clone();
            let callback = self.subscriber().on_sample(move |sample| {
                enter(&its, sample);
                if sample.len() >= 4_000 && IS_ACTING.get() {
                    let mut payload = vec![0; if sample.len() == 4_000 { 8 } else { 4_000 }];
                    fill(&mut payload);
                    to.publish_copy(&payload).unwrap();
                }
            });
            self.callbacks.push((callback.unwrap(), ledger));
        }
    }

    /// A function that calls back, and opens and closes objects that others listen to.
    fn listen_to_events(&mut self) {
        let node = self.world.node.clone();
        if let Some((subscriber, _)) = self.subscribers.first() {
            let topic = node.topic::<u64>("of events");
            let events = move || drop((topic.publisher().unwrap(), topic.subscriber().unwrap()));
            subscriber.on_event(events).unwrap();
        }
        if let Some(publisher) = self.publishers.first() {
            publisher.on_event(move || drop(node.graph())).unwrap();
        }
        self.subscribers.first().inspect(|(subscriber, _)| _ = subscriber.events());
    }

    /// It publishes its samples on the next topic, inside the publish that calls it.
    fn add_forwarding_callback(&mut self) {
        if self.callbacks.len() < EACH_MAX {
            let (node, number) = (self.node(), self.below(TOPICS - 1));
            let (from, to) = (topic(&node, number), topic(&node, number + 1).publisher().unwrap());
            let ledger = SharedLedger::default();
            let its = ledger.clone();
            let subscriber = from.subscriber_builder().publishers_max(256).open().unwrap();
            let callback = subscriber.on_sample(move |sample| {
                enter(&its, sample);
                to.publish_copy(sample).unwrap();
            });
            self.callbacks.push((callback.unwrap(), ledger));
        }
    }

    /// In place of a service that it polls.
    fn add_called_service(&mut self) {
        if let Some(service) = self.pick(|actor| &mut actor.services) {
            let serving = service.on_request(|request| drop(request.reply(&(*request + 1))));
            self.callbacks.push((serving.unwrap(), Arc::default()));
        }
    }

    fn add_service(&mut self) {
        if self.services.is_empty() {
            let (node, number) = (self.node(), self.number);
            self.services.push(node.service(&format!("service{number}")).unwrap());
        }
    }

    fn add_client(&mut self) {
        if self.clients.len() < 2 {
            let (node, number) = (self.node(), self.below(THREADS));
            self.clients.push(node.client(&format!("service{number}")).unwrap());
        }
    }

    fn serve(&mut self) {
        let replies = self.below(8) > 0;
        for service in &mut self.services {
            if let Some(request) = service.take().unwrap()
                && replies
            {
                request.reply(&(*request + 1)).unwrap();
            }
        }
    }

    fn call(&mut self) {
        let Some(client) = self.pick(|actor| &mut actor.clients) else { return };
        let (asked, limit) = (self.below(1_000) as u64, self.below(2_000) as u64);
        match client.call(&asked, Duration::from_micros(limit)) {
            Ok(reply) => assert_eq!(*reply, asked + 1),
            Err(
                Error::NoServer { .. }
                | Error::ReplyTimeout { .. }
                | Error::ServerGone { .. }
                | Error::NoReply { .. }
                | Error::TooMany { .. },
            ) => {}
            Err(error) => panic!("{error}"),
        }
        self.clients.push(client);
    }

    fn remove_publisher(&mut self) {
        drop(self.pick(|actor| &mut actor.publishers));
    }

    fn remove_subscriber(&mut self) {
        drop(self.pick(|actor| &mut actor.subscribers));
    }

    fn open_node(&mut self) {
        let builder = Node::builder(&format!("own{}", self.number)).runtime_dir(&self.world.folder);
        self.own_node = Some(builder.open().unwrap());
    }

    fn close_all(&mut self) {
        self.own_node = None;
        self.held.clear();
        self.clients.clear();
        self.services.clear();
        self.callbacks.clear();
        self.subscribers.clear();
        self.publishers.clear();
    }

    fn interrupt(&mut self) {
        let world = self.world.clone();
        let interrupters = world.interrupters.lock().unwrap();
        let at = self.below(interrupters.len());
        interrupters.get(at).inspect(|it| it.interrupt());
    }

    /// Interrupts the system call in which a thread is.
    fn signal(&mut self) {
        let at = self.below(THREADS);
        let thread = self.world.threads.lock().unwrap().get(at).copied();
        // SAFETY: the threads live until the end of the round, as this one.
        thread.inspect(|thread| unsafe { _ = libc::pthread_kill(*thread, libc::SIGUSR1) });
    }

    /// The child acts for no other process, drops this thread's objects, and ends.
    fn fork(&mut self) {
        // SAFETY: the child calls this library and `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: no preconditions.
            unsafe { libc::alarm(WATCHDOG.as_secs() as u32) };
            let mut is_forked = true;
            for publisher in &self.publishers {
                is_forked &= matches!(publisher.publish_copy(&[1]), Err(Error::Forked));
                is_forked &= matches!(publisher.loan(1_000), Err(Error::Forked));
            }
            for (subscriber, _) in &mut self.subscribers {
                is_forked &= matches!(subscriber.take(), Err(Error::Forked));
            }
            // Objects that other threads run and wait in; one of them may have had the lock of the
            // list.
            let is_dead = |result: Result<Key, Error>| {
                matches!(result, Err(Error::Forked | Error::Closed { .. }))
            };
            for executor in self.world.executors.try_lock().iter().flat_map(|all| all.iter()) {
                is_forked &= is_dead(executor.on_timer(WATCHDOG, || {}));
                executor.remove(executor.stop_guard().key());
                executor.close();
            }
            for set in self.world.wait_sets.try_lock().iter().flat_map(|all| all.iter()) {
                is_forked &= is_dead(set.timer(WATCHDOG));
                set.close();
            }
            let mut large = self.held.iter().filter(|sample| sample.len() > 104);
            is_forked &= large.all(|sample| sample.iter().all(|byte| *byte == 0));
            self.close_all();
            // SAFETY: it ends the child.
            unsafe { libc::_exit(i32::from(!is_forked)) };
        }
        let mut status = -1;
        // SAFETY: the pointer is valid.
        while unsafe { libc::waitpid(child, &raw mut status, 0) } != child {}
        assert_eq!(status, 0, "in a child of fork");
    }

    /// A round: so many operations, then the accounts are checked.
    fn round(&mut self, operations: &[Operation]) {
        IS_ACTING.set(true);
        let likely: u32 = operations.iter().map(|(_, likely, _)| likely).sum();
        for _ in 0..ROUND {
            let mut choice = self.below(likely as usize) as u32;
            let chosen = operations.iter().position(|(_, likely, _)| {
                let is_it = choice < *likely;
                choice = choice.saturating_sub(*likely);
                is_it
            });
            let chosen = chosen.expect("it is less than their sum");
            self.world.doing[self.number].store(chosen, Ordering::Relaxed);
            (operations[chosen].2)(self);
            self.world.done.fetch_add(1, Ordering::Relaxed);
        }
        IS_ACTING.set(false);
        self.world.doing[self.number].store(usize::MAX, Ordering::Relaxed);
        self.world.barrier.wait();
        // All threads stand still. No subscriber has lost the last sample of a publisher.
        for publisher in &self.publishers {
            let published = publisher.publish_copy(&[1]).unwrap();
            let mut all = self.world.published.lock().unwrap();
            all.insert(publisher.id(), published.sequence + 1);
        }
        if self.number == 0 {
            for (id, publisher) in self.world.shared.lock().unwrap().iter().flatten() {
                let published = publisher.publish_copy(&[1]).unwrap();
                self.world.published.lock().unwrap().insert(*id, published.sequence + 1);
            }
        }
        self.world.barrier.wait();
        self.held.clear();
        let published = self.world.published.lock().unwrap().clone();
        for (subscriber, ledger) in &mut self.subscribers {
            while let Some(sample) = subscriber.take().unwrap() {
                ledger.enter(&sample);
            }
            ledger.check_end(&published);
            assert!(ledger.lost <= subscriber.lost(), "samples are lost that are not counted");
        }
        for (callback, ledger) in &self.callbacks {
            // Samples of another node reach it in a thread of its own.
            support::until("the callbacks", || {
                let ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
                let is_there = |(publisher, next)| {
                    published.get(publisher).is_none_or(|published| published == next)
                };
                ledger.next.iter().all(is_there)
            });
            assert!(callback.error().is_none());
        }
        self.world.barrier.wait();
        self.close_all();
        self.world.barrier.wait();
    }
}

fn run_threads(seed: u64, operations: &'static [Operation], until: Instant, watched: &Watched) {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::builder("torture").runtime_dir(folder.path()).open().unwrap();
    let world = Arc::new(World {
        folder: folder.path().to_owned(),
        node,
        published: Mutex::default(),
        interrupters: Mutex::default(),
        shared: Mutex::default(),
        wait_sets: Mutex::default(),
        executors: Mutex::default(),
        doing: [const { AtomicUsize::new(usize::MAX) }; THREADS],
        done: AtomicU64::new(0),
        threads: Mutex::default(),
        stop: AtomicBool::new(false),
        barrier: Barrier::new(THREADS),
    });
    *watched.0.lock().unwrap() = Some(world.clone());
    let threads: Vec<_> = (0..THREADS)
        .map(|number| {
            let world = world.clone();
            std::thread::spawn(move || act(number, seed, operations, until, &world))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a panic aborts"));
    *watched.0.lock().unwrap() = None;
}

fn act(number: usize, seed: u64, operations: &[Operation], until: Instant, world: &Arc<World>) {
    // SAFETY: no preconditions.
    world.threads.lock().unwrap().push(unsafe { libc::pthread_self() });
    let random = seed.wrapping_add((number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1;
    let mut actor = Actor {
        number,
        random,
        world: world.clone(),
        own_node: None,
        held: Vec::new(),
        publishers: Vec::new(),
        subscribers: Vec::new(),
        callbacks: Vec::new(),
        services: Vec::new(),
        clients: Vec::new(),
    };
    let mut open = Vec::new();
    loop {
        actor.round(operations);
        if number == 0 {
            world.published.lock().unwrap().clear();
            world.interrupters.lock().unwrap().clear();
            *world.shared.lock().unwrap() = Default::default();
            open.push(Open::now());
            world.stop.store(Instant::now() > until && open.len() > 1, Ordering::Relaxed);
        }
        world.barrier.wait(); // all read what this one has decided
        if world.stop.load(Ordering::Relaxed) {
            break;
        }
    }
    if let Some(last) = open.last() {
        println!(
            "{} rounds, {} operations, open: {last:?}",
            open.len(),
            open.len() * ROUND * THREADS
        );
        // A peer's mappings go when the peer has learnt of the end.
        let begun = Instant::now();
        while let now = Open::now()
            && !now.is_no_more_than(&open[0])
        {
            assert!(begun.elapsed() < WATCHDOG, "at first {:?}, now {now:?}", open[0]);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The open resources of the process.
#[derive(Debug)]
struct Open {
    descriptors: usize,
    threads: usize,
    mappings: usize,
}

impl Open {
    fn now() -> Open {
        let entries = |folder: &str| std::fs::read_dir(folder).unwrap().count();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        Open {
            descriptors: entries("/proc/self/fd"),
            threads: entries("/proc/self/task"),
            mappings: maps.lines().filter(|line| line.contains("memfd:myelin")).count(),
        }
    }

    /// Shared threads and callbacks come with the first object that needs them: a leak is something
    /// that grows with the rounds.
    fn is_no_more_than(&self, first: &Open) -> bool {
        self.descriptors <= first.descriptors + SLACK
            && self.threads <= first.threads + SLACK
            && self.mappings <= first.mappings + SLACK
    }
}

/// The data for the watchdog.
#[derive(Default)]
struct Watched(Mutex<Option<Arc<World>>>);

fn watch(watched: &Watched, seed: u64) {
    let mut seen = (0, Instant::now());
    loop {
        std::thread::sleep(Duration::from_millis(500));
        let Some(world) = watched.0.lock().unwrap().clone() else { continue };
        let done = world.done.load(Ordering::Relaxed);
        if done != seen.0 {
            seen = (done, Instant::now());
        } else if seen.1.elapsed() > WATCHDOG {
            for (number, doing) in world.doing.iter().enumerate() {
                let name = OPERATIONS.get(doing.load(Ordering::Relaxed)).map(|it| it.0);
                eprintln!("thread {number}: {}", name.unwrap_or("at the end of a round"));
            }
            eprintln!("all stand still, MYELIN_TORTURE_SEED={seed}");
            std::process::abort();
        }
    }
}

/// The value, unless another thread has closed it.
fn unless_closed<T>(result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(Error::Closed { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

extern "C" fn ignore(_signal: libc::c_int) {}

fn torture() {
    let variable = |name: &str| std::env::var(name).ok();
    let number = |name: &str| variable(name).and_then(|text| text.parse().ok());
    let seed = number("MYELIN_TORTURE_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let duration = Duration::from_secs(number("MYELIN_TORTURE_S").unwrap_or(1));
    println!("MYELIN_TORTURE_SEED={seed}, for {duration:?}");
    // Other threads would wait for that thread for ever, and the library would contain a failed
    // check in a callback. Intended panics do not come here.
    let says = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        says(panic);
        eprintln!("MYELIN_TORTURE_SEED={seed}");
        std::process::abort();
    }));
    let without = variable("MYELIN_TORTURE_WITHOUT").unwrap_or_default();
    let is_wanted = |it: &&Operation| without.split(',').all(|name| name != it.0);
    let operations: Vec<Operation> = OPERATIONS.iter().filter(is_wanted).copied().collect();
    // SAFETY: a handler that does nothing; no flags, so that system calls are interrupted.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = ignore as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()), 0);
    }
    static WATCHED: OnceLock<Watched> = OnceLock::new();
    let watched = WATCHED.get_or_init(Watched::default);
    std::thread::spawn(move || watch(watched, seed));
    run_threads(seed, operations.leak(), Instant::now() + duration, watched);
}

/// In a process of its own, because its open resources are counted.
#[test]
fn sixteen_threads_make_random_calls() {
    let mut command = itself::itself();
    command.args(["--exact", "the_other_side", "--nocapture"]).env(ROLE, "torture");
    assert!(command.status().unwrap().success());
}

#[test]
fn the_other_side() {
    if std::env::var(ROLE).is_ok_and(|role| role == "torture") {
        torture();
    }
}

thread_local! {
    /// Whether this thread is one of the sixteen, and not checking its accounts.
    static IS_ACTING: Cell<bool> = const { Cell::new(false) };
}

/// The text of intended panics.
const MEANT: &str = "as it likes";
const ROLE: &str = "MYELIN_TEST_ROLE";
const THREADS: usize = 16;
const TOPICS: usize = 4;
/// Publishers, subscribers and callbacks of each thread.
const EACH_MAX: usize = 3;
/// Operations of a thread in a round.
const ROUND: usize = 200;
/// See [`Open::is_no_more_than`].
const SLACK: usize = 8;
