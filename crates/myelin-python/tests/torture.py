"""Torture: threads that make, use and end everything at random, and at the end every message is accounted for.

    torture.py [--seconds 60] [--seed N] [--threads 16] [--only OPERATION,…]

The seed is printed first. A thread's nth step depends only on the seed, the thread and n, not on other threads: a
seed repeats the choices, though not their timing. Operations are functions with
`@operation(weight)`.

It runs in rounds. In each, a witness of each topic lives from before the first publisher to after the last
one, and takes all samples: of each publisher, what it received and what it lost are what was sent. Every other
subscriber checks the same from sample to sample. At the end of a round everything is closed, and
descriptors, threads, mappings and memory have to be those after the first rounds. A watchdog shows where the
threads are if the program does not end.
"""

import argparse
import collections
import contextlib
import ctypes
import faulthandler
import gc
import os
import random
import select
import signal
import sys
import tempfile
import threading
import time
import traceback

import myelin

WATCHDOG = 60.0
# At once, of each topic.
TOPICS, PUBLISHERS, SUBSCRIBERS = 4, 3, 3
# Errors that come when threads use the same objects at the same time.
EXPECTED = (
    myelin.Busy,
    myelin.Closed,
    myelin.Reentered,
    myelin.TooManyHeld,
    myelin.TooManyLoans,
    BufferError,
)


class Head(ctypes.Structure):
    _fields_ = [("sender", myelin.u64), ("number", myelin.u64)]


class Failure(Exception):
    """The library did what it must not do."""


class Torture(Exception):
    """Raised by functions that the library calls."""


def check(is_so, *what):
    if not is_so:
        raise Failure(*what)


class Sender:
    """A publisher, and what it has sent."""

    def __init__(self, topic):
        self.publisher = topic.publisher(memory_max=64 << 20, loans_max=64)
        self.id = self.publisher.id
        self.sequences = []

    def value(self, rng):
        number = rng.randrange(1 << 60)
        return Head(self.id, number), bytes([number % 256]) * rng.choice((0, 8, 80, 1000, 50_000))

    def publish(self, rng):
        self.sequences.append(self.publisher.publish(self.value(rng)).sequence)


class Taker:
    """A subscriber, and of each publisher the first sequence, how many were received and lost, and the next."""

    def __init__(self, topic, **settings):
        self.subscriber = topic.subscriber(publishers_max=256, **settings)
        self.id = self.subscriber.id
        self.of = {}
        self.lock = threading.Lock()

    def take(self, timeout=None):
        """The next sample; None if there is none, or if another thread is taking."""
        if not self.lock.acquire(blocking=False):
            return None
        with contextlib.ExitStack() as stack:
            stack.callback(self.lock.release)
            subscriber = self.subscriber
            sample = subscriber.take() if timeout is None else subscriber.receive(timeout)
            if sample is not None:
                self.enter(sample)
            return sample

    def enter(self, sample):
        """A sample, in the order in which they were taken."""
        sequence, lost = sample.sequence, sample.lost_before
        begin = sequence - lost
        first, received, all_lost, following = self.of.get(sample.publisher, (begin, 0, 0, begin))
        check(begin == following, "out of sequence", sequence, lost, following)
        self.of[sample.publisher] = (first, received + 1, all_lost + lost, sequence + 1)
        check_payload(sample)


def check_payload(sample):
    """Its bytes are those that its sender wrote, at once."""
    head = sample.header
    with memoryview(sample) as view:
        payload = bytes(view[16:])
    wanted = bytes([head.number % 256]) * len(payload)
    check(payload == wanted and head.sender == sample.publisher, "payload", head.number, payload[:32])


class World:
    """Objects shared by the threads of a round. Any thread fills and empties slots."""

    def __init__(self, folder):
        self.folder = folder
        self.failures, self.counts = [], collections.Counter()
        self.is_over, self.is_sent = threading.Event(), threading.Event()
        self.node = myelin.Node("torture", runtime_dir=folder)
        settings = [{}, {"reliable": 0.01}] * (TOPICS // 2)
        self.topics = [
            self.node.topic(f"topic/{at}", (Head, bytes), depth=16, **each)
            for at, each in enumerate(settings)
        ]
        self.witnesses = [Taker(topic, held_max=64) for topic in self.topics]
        # The id of every publisher, and the sequences that it has sent.
        self.sent = [{} for _ in self.topics]
        self.publishers = [[None] * PUBLISHERS for _ in self.topics]
        self.subscribers = [[None] * SUBSCRIBERS for _ in self.topics]
        self.callbacks, self.kept = [None] * 8, [None] * 16
        self.services = {name: self.serve(name) for name in ("service/0", "service/1")}

    def serve(self, name):
        def reply(request):
            with request:
                request.reply([2 * number for number in request.value])

        return self.node.service(name, [int], [int]).on_request(reply)

    def sender(self, topic, slot):
        """The publisher there; a new one is used when the witness of its topic is matched with it."""
        sender = self.publishers[topic][slot]
        if sender is None:
            sender = Sender(self.topics[topic])
            self.wait_for_match({sender.id, self.witnesses[topic].id})
            self.sent[topic][sender.id] = sender.sequences
            self.publishers[topic][slot] = sender
        return sender

    def wait_for_match(self, pair):
        begun = time.monotonic()
        while not any(
            {match.endpoint, match.other} == pair and match.state == "matched"
            for match in self.node.graph().matches
        ):
            check(time.monotonic() - begun < WATCHDOG, "no match with the witness")
            time.sleep(0.001)

    def taker(self, topic, slot):
        taker = self.subscribers[topic][slot]
        if taker is None:
            taker = self.subscribers[topic][slot] = Taker(self.topics[topic])
        return taker

    def witness(self, topic):
        """A thread: takes all of a topic."""
        taker = self.witnesses[topic]
        try:
            while taker.take(0.02) or not self.is_sent.is_set():
                pass
        except Exception:
            self.failures.append(f"the witness of topic {topic}: {traceback.format_exc()}")
            self.is_over.set()

    def account(self):
        """For each publisher: received + lost = sent, at the witness of its topic."""
        for taker, sent_of in zip(self.witnesses, self.sent):
            for publisher, sequences in sent_of.items():
                sent = len(sequences)
                check(sorted(sequences) == list(range(sent)), "sequences", sequences)
                first, received, lost, following = taker.of.get(publisher, (0, 0, 0, 0))
                is_all = (first, received + lost, following) == (0, sent, sent)
                check(is_all, "received", first, received, "lost", lost, "next", following, "sent", sent)
                self.counts["(sent)"] += sent
                self.counts["(received)"] += received
                self.counts["(lost)"] += lost

    def close_callbacks(self):
        """From then on nobody publishes."""
        for callback in filter(None, self.callbacks):
            callback.close()

    def close(self):
        rows = [*self.publishers, *self.subscribers]
        for one in filter(None, (one for row in rows for one in row)):
            (one.publisher if isinstance(one, Sender) else one.subscriber).close()
        for service in self.services.values():
            service.close()
        for taker in self.witnesses:
            taker.subscriber.close()
        self.kept.clear()
        self.node.close()


OPERATIONS = {}


def operation(weight):
    """A function `(world, rng)` that a thread calls as often as its weight says."""

    def add(function):
        OPERATIONS[function.__name__] = (function, weight)
        return function

    return add


def at(rng, slots):
    return rng.randrange(TOPICS), rng.randrange(slots)


@operation(40)
def publish(world, rng):
    world.sender(*at(rng, PUBLISHERS)).publish(rng)


@operation(2)
def publish_a_burst(world, rng):
    """More than the depth: somebody loses some."""
    sender = world.sender(*at(rng, PUBLISHERS))
    for _ in range(50):
        sender.publish(rng)


@operation(15)
def publish_loan(world, rng):
    sender = world.sender(*at(rng, PUBLISHERS))
    head, payload = sender.value(rng)
    with sender.publisher.loan(len(payload)) as loan:
        loan.value = (head, payload)
        sender.sequences.append(loan.publish().sequence)


@operation(5)
def discard_loan(world, rng):
    sender = world.sender(*at(rng, PUBLISHERS))
    with contextlib.suppress(Torture), sender.publisher.loan(1000) as loan:
        memoryview(loan)[:] = b"x" * 1016
        if rng.random() < 0.5:
            raise Torture


@operation(5)
def publish_what_does_not_fit(world, rng):
    sender = world.sender(*at(rng, PUBLISHERS))
    wrong = rng.choice((None, 3, (Head(), 3), (1, b""), "text", (Head(),)))
    try:
        sender.publisher.publish(wrong)
    except myelin.WrongValue:
        return
    raise Failure("published", wrong)


@operation(30)
def take(world, rng):
    world.taker(*at(rng, SUBSCRIBERS)).take()


@operation(10)
def receive(world, rng):
    world.taker(*at(rng, SUBSCRIBERS)).take(rng.choice((0, 0.001, 0.02)))


@operation(10)
def keep_a_sample(world, rng):
    """It outlives its subscriber, its publisher and its topic."""
    slot = rng.randrange(len(world.kept))
    sample = world.taker(*at(rng, SUBSCRIBERS)).take()
    before, world.kept[slot] = world.kept[slot], sample
    if before is not None:
        check_payload(before)


@operation(4)
def close_publisher(world, rng):
    topic, slot = at(rng, PUBLISHERS)
    sender, world.publishers[topic][slot] = world.publishers[topic][slot], None
    if sender and rng.random() < 0.7:  # the others are garbage
        sender.publisher.close()


@operation(4)
def close_subscriber(world, rng):
    topic, slot = at(rng, SUBSCRIBERS)
    taker, world.subscribers[topic][slot] = world.subscribers[topic][slot], None
    if taker and rng.random() < 0.7:
        taker.subscriber.close()


@operation(3)
def interrupt(world, rng):
    world.taker(*at(rng, SUBSCRIBERS)).subscriber.interrupt()


@operation(5)
def look(world, rng):
    taker, sender = world.taker(*at(rng, SUBSCRIBERS)), world.sender(*at(rng, PUBLISHERS))
    taker.subscriber.events(), taker.subscriber.matched, sender.publisher.events()
    sender.publisher.assert_liveliness(), world.node.graph()


@operation(3)
def add_callback(world, rng):
    topic, slot = rng.randrange(TOPICS), rng.randrange(len(world.callbacks))
    raises, concurrent = rng.random() < 0.2, rng.random() < 0.3
    taker = Taker(world.topics[topic])

    def function(sample):
        try:
            check_payload(sample) if concurrent else taker.enter(sample)
        except Exception:
            world.failures.append(traceback.format_exc())
        if raises:
            raise Torture

    callback = taker.subscriber.on_sample(function, concurrent=concurrent)
    before, world.callbacks[slot] = world.callbacks[slot], callback
    if before:
        before.close()


@operation(3)
def remove_callback(world, rng):
    slot = rng.randrange(len(world.callbacks))
    callback, world.callbacks[slot] = world.callbacks[slot], None
    if callback:
        callback.close()


@operation(3)
def wait_in_a_set(world, rng):
    takers = [Taker(world.topics[rng.randrange(TOPICS)]) for _ in range(rng.randrange(1, 4))]
    with world.node.wait_set() as wait_set:
        guard, timer = wait_set.guard_condition(), wait_set.timer(0.005)
        for taker in takers:
            wait_set.add(taker.subscriber)
        for turn in range(rng.randrange(1, 6)):
            if turn == 2:
                guard.trigger()
            for ready in wait_set.wait(0.01):
                for taker in takers:
                    if ready is taker.subscriber:
                        taker.take()
        wait_set.remove(timer)
        wait_set.remove(takers[0].subscriber)
    for taker in takers:
        taker.subscriber.close()


@operation(3)
def run_an_executor(world, rng):
    raises = rng.random() < 0.2
    with world.node.executor() as executor:

        def function(taker, sample):
            taker.enter(sample)
            if raises:
                raise Torture

        for _ in range(rng.randrange(1, 4)):
            taker = Taker(world.topics[rng.randrange(TOPICS)])
            executor.on_sample(taker.subscriber, lambda sample, taker=taker: function(taker, sample))
        executor.on_timer(0.02, executor.stop)
        with contextlib.suppress(Torture):
            if rng.random() < 0.5:
                executor.run(threads=rng.randrange(1, 3))
            else:
                executor.turn(0.01)


@operation(4)
def call(world, rng):
    numbers = [rng.randrange(1000) for _ in range(rng.choice((0, 1, 100)))]
    with world.node.client(rng.choice(list(world.services)), [int], [int]) as client:
        reply = client.call(numbers, WATCHDOG)
        check(reply.value == [2 * number for number in numbers], "reply", numbers, reply.value)
        pending = client.send(numbers)
        if rng.random() < 0.5:
            check(pending.receive(WATCHDOG).nbytes == 8 * len(numbers), "reply")


@operation(1)
def another_node(world, rng):
    with myelin.Node("another", runtime_dir=world.folder) as node:
        topic = node.topic(f"topic/{rng.randrange(TOPICS)}", (Head, bytes), depth=16)
        taker = Taker(topic)
        taker.take(0.02)
        taker.subscriber.close()
        if rng.random() < 0.5:
            topic.publisher()  # garbage


@operation(3)
def raise_a_signal(_world, rng):
    os.kill(os.getpid(), rng.choice((signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM)))


@operation(1)
def collect(_world, _rng):
    gc.collect()


@operation(1)
def fork(world, rng):
    """In the child the library is closed, and says so."""
    begun, begins = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.write(begins, b"!")
            world.node.topic("child").publisher()
        except myelin.Forked:
            status = 0
        finally:
            os._exit(status)
    # Until Python 3.12 a child may hang in CPython itself, as other threads may hold locks of it.
    has_begun = select.select([begun], [], [], 2)[0] or sys.version_info >= (3, 12)
    end = time.monotonic() + (WATCHDOG / 2 if has_begun else 0)
    while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < end:
        time.sleep(0.001)
    os.close(begun)
    os.close(begins)
    if not ended[0]:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    check(not has_begun or ended == (child, 0), "the child of a fork", ended)


@operation(3)
def publish_across(world, rng):
    """Callbacks that publish on the other topic of a pair."""
    one, other = rng.sample(range(TOPICS), 2)
    slot = rng.randrange(len(world.callbacks))
    sender = world.sender(other, rng.randrange(PUBLISHERS))
    made = random.Random(rng.random())

    def function(sample):
        with contextlib.suppress(*EXPECTED):
            if made.random() < 0.3:
                sender.publish(made)

    callback = world.topics[one].subscriber(publishers_max=256).on_sample(function)
    before, world.callbacks[slot] = world.callbacks[slot], callback
    if before:
        before.close()


def in_thread(function, *ends):
    """The returned function raises any exception of another thread that is not one of `ends`."""
    raised = []

    def run():
        try:
            function()
        except ends:
            pass
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def end():
        thread.join(WATCHDOG)
        check(not thread.is_alive(), "it has not ended", function)
        if raised:
            raise raised[0]

    return end


@operation(3)
def change_an_executor(world, rng):
    """From its own functions, and from another thread while it runs."""
    topics = [world.topics[rng.randrange(TOPICS)] for _ in range(3)]
    threads, how = rng.randrange(1, 4), rng.choice(("stop", "close", "close inside", "raise"))
    with world.node.executor() as executor:
        called = []

        def function(sample):
            with contextlib.suppress(IndexError, myelin.Closed):
                called.append(executor.on_timer(0.001, lambda: None))
                executor.remove(called.pop(0))

        def end():
            if how == "raise":
                raise Torture
            executor.close() if how == "close inside" else executor.stop()

        def add():
            with contextlib.suppress(myelin.Closed):
                executor.on_sample(topics[2].subscriber(publishers_max=256), function)

        called.append(executor.on_sample(topics[0].subscriber(publishers_max=256), function))
        executor.on_timer(0.02, end)
        ended = in_thread(lambda: executor.run(threads), myelin.Closed, Torture)
        with contextlib.suppress(myelin.Closed):
            added = executor.on_sample(topics[1].subscriber(publishers_max=256), function)
            executor.on_timer(0.002, add)
            executor.remove(added)
        if how == "close":
            executor.close()
        ended()


@operation(3)
def change_a_wait_set(world, rng):
    """While another thread waits in it."""
    closes = rng.random() < 0.5
    with world.node.wait_set() as wait_set:
        ended = in_thread(lambda: wait_set.wait(WATCHDOG), myelin.Closed)
        subscriber, guard = world.topics[rng.randrange(TOPICS)].subscriber(publishers_max=256), wait_set.guard_condition()
        wait_set.add(subscriber)
        wait_set.timer(WATCHDOG)
        if rng.random() < 0.5:
            subscriber.close()
        wait_set.remove(subscriber)
        wait_set.close() if closes else guard.trigger()
        ended()


@operation(1)
def leave_a_cycle(world, rng):
    """Garbage: an object and the callers of its methods."""

    class Owner:
        def __init__(self):
            topic = world.topics[rng.randrange(TOPICS)]
            kind = rng.randrange(3)
            if kind == 0:
                self.callback = topic.subscriber(publishers_max=256).on_sample(self.called)
                return
            self.executor = world.node.executor()
            self.executor.on_timer(0.001, self.called)
            self.executor.on_sample(topic.subscriber(publishers_max=256), self.called)
            if kind == 1:
                self.executor.turn(0.002)

        def called(self, sample=None):
            pass

    Owner()


@operation(4)
def leave_a_finalizer(world, rng):
    """Garbage that uses the library when it is collected, which is in any call of it."""
    made = random.Random(rng.random())
    acts = (publish, take, look, keep_a_sample, close_publisher, close_subscriber, remove_callback)

    class Garbage:
        def __init__(self):
            self.itself = self

        def __del__(self):
            try:
                if not world.is_over.is_set():
                    made.choice(acts)(world, made)
            except (*EXPECTED, Torture):
                pass
            except BaseException:
                world.failures.append(traceback.format_exc())

    Garbage()


@operation(1)
def close_in_a_handler(_world, _rng):
    os.kill(os.getpid(), signal.SIGHUP)


@operation(1)
def raise_in_a_handler(_world, _rng):
    os.kill(os.getpid(), signal.SIGINT)


class MainThread:
    """It waits in what is its own, while handlers run that raise, or close what it waits in."""

    waiter, is_waiting = None, False

    @classmethod
    def handle(cls, number, frame):
        if cls.is_waiting and number == signal.SIGINT:
            cls.is_waiting = False
            raise Torture
        if cls.is_waiting and number == signal.SIGHUP:
            cls.waiter.close()

    @classmethod
    def wait(cls, world, rng):
        if cls.waiter is None:
            kind = rng.randrange(3)
            if kind == 0:
                cls.waiter = world.topics[0].subscriber(publishers_max=256)
                cls.wait_once = cls.waiter.receive
            elif kind == 1:
                cls.waiter = world.node.wait_set()
                cls.wait_once = cls.waiter.wait
            else:
                cls.waiter = world.node.executor()
                cls.waiter.on_sample(world.topics[0].subscriber(publishers_max=256), lambda sample: None)
                cls.wait_once = cls.waiter.turn
        try:
            try:
                cls.is_waiting = True
                cls.wait_once(0.02)
            finally:
                cls.is_waiting = False
        except Torture:
            world.counts["(raised in the main thread)"] += 1
        except myelin.Closed:
            world.counts["(closed in the main thread)"] += 1
            cls.waiter = None


def chosen(names):
    return [(name, *OPERATIONS[name]) for name in names or OPERATIONS]


def work(world, seed, thread, operations):
    names, functions, weights = zip(*operations)
    step = 0
    while not world.is_over.is_set():
        rng = random.Random(f"{seed}/{thread}/{step}")
        (index,) = rng.choices(range(len(names)), weights)
        try:
            functions[index](world, rng)
            world.counts[names[index]] += 1
        except EXPECTED:
            world.counts[names[index]] += 1
        except BaseException:
            where = f"thread {thread}, step {step}, {names[index]}"
            world.failures.append(f"{where}: {traceback.format_exc()}")
            world.is_over.set()
        step += 1


def round_of(folder, seconds, seed, threads, operations):
    """Its counts, and its failures."""
    world = World(folder)
    witnesses = [threading.Thread(target=world.witness, args=(at,)) for at in range(TOPICS)]
    working = [
        threading.Thread(target=work, args=(world, seed, at, operations)) for at in range(threads)
    ]
    for thread in witnesses + working:
        thread.start()
    end, rng = time.monotonic() + seconds, random.Random(f"{seed}/main")
    try:
        while time.monotonic() < end and not world.is_over.is_set():
            MainThread.wait(world, rng)
    except Exception:
        world.failures.append(f"the main thread: {traceback.format_exc()}")
    world.is_over.set()
    for thread in working:
        thread.join()
    world.close_callbacks()
    world.is_sent.set()
    for thread in witnesses:
        thread.join()
    if MainThread.waiter:
        MainThread.waiter.close()
        MainThread.waiter = None
    if not world.failures:
        try:
            world.account()
        except Failure:
            world.failures.append(traceback.format_exc())
    world.close()
    return world.counts, world.failures


def used():
    """Numbers that a leak would raise: descriptors, threads, mappings, kilobytes, blocks of Python."""
    gc.collect()
    with open("/proc/self/maps") as maps, open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[1])
        return {
            "descriptors": len(os.listdir("/proc/self/fd")),
            "threads": len(os.listdir("/proc/self/task")),
            "mappings": sum(1 for _ in maps),
            "KiB": pages * os.sysconf("SC_PAGE_SIZE") // 1024,
            "blocks": sys.getallocatedblocks(),
        }


# How much more there may be after the last round than after those that warm up.
MARGINS = {"descriptors": 0, "threads": 0, "mappings": 40, "KiB": 24 << 10, "blocks": 4000}


def settled(before):
    """The resources in use, after ending threads and descriptors have gone."""
    begun = time.monotonic()
    while True:
        now = used()
        grown = {name: now[name] - before[name] for name in now if now[name] > before[name] + MARGINS[name]}
        if not grown or time.monotonic() - begun > WATCHDOG / 2:
            return now, grown
        time.sleep(0.02)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seconds", type=float, default=float(os.environ.get("MYELIN_TORTURE_S", 2)))
    arguments.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments.add_argument("--threads", type=int, default=16)
    arguments.add_argument("--only", type=lambda text: text.split(","))
    chosen_by = arguments.parse_args()
    print(f"seed {chosen_by.seed}", flush=True)
    for number in ("USR1", "USR2", "ALRM", "HUP", "INT"):
        signal.signal(signal.Signals[f"SIG{number}"], MainThread.handle)
    gc.set_threshold(50)  # often
    faulthandler.dump_traceback_later(chosen_by.seconds + WATCHDOG, exit=True)
    raised = collections.Counter()
    sys.unraisablehook = lambda raised_by: raised.update([raised_by.exc_type.__name__])
    operations = chosen(chosen_by.only)
    counts, failures, before, rounds = collections.Counter(), [], None, 0
    warm_up = 2
    length = min(max(chosen_by.seconds / 6, 0.3), 5)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        while not failures and (time.monotonic() - begun < chosen_by.seconds or rounds <= warm_up):
            seed = f"{chosen_by.seed}/{rounds}"
            of_round, failures = round_of(folder, length, seed, chosen_by.threads, operations)
            counts += of_round
            rounds += 1
            if rounds == warm_up:
                before = used()
        if before and not failures:
            after, grown = settled(before)
            print(f"used after {warm_up} rounds {before}, after {rounds} {after}")
            if grown:
                failures = [f"a leak: {grown}"]
    raised.pop("Torture", None)
    if raised:
        failures.append(f"raised where nobody catches: {dict(raised)}")
    print(", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
    for failure in failures:
        print(failure)
    print(f"{rounds} rounds, seed {chosen_by.seed}: {'FAILED' if failures else 'ok'}", flush=True)
    # Threads that a failure has left are not waited for.
    os._exit(1 if failures else 0)


if __name__ == "__main__":
    main()
