"""Ends of a wait: signals, closing from anywhere, an exception in a callback, a fork, the garbage collector."""

import gc
import os
import resource
import signal
import sys
import threading
import time
import types
import unittest
import weakref

import myelin
from support import WATCHDOG, Case

FULL = {"reliable": WATCHDOG, "depth": 1}


class Woken(Exception):
    """Raised by a handler."""


class Waits(Case):
    """Every call that waits: what to close, and the call."""

    def setUp(self):
        super().setUp()
        self.objects = []

    def tearDown(self):
        for it in self.objects:
            it.close()

    def made(self, it):
        self.objects.append(it)
        return it

    def subscriber(self, **settings):
        return self.made(self.node.topic("t").subscriber(**settings))

    def executor(self):
        executor = self.made(self.node.executor())
        executor.on_sample(self.subscriber(), print)
        return executor

    def wait_set(self):
        wait_set = self.made(self.node.wait_set())
        wait_set.add(self.subscriber())
        return wait_set

    def client(self, name="nobody"):
        return self.made(self.node.client(name, bytes, bytes))

    def pending(self):
        """A call that no one replies to."""
        name = f"deaf {len(self.objects)}"
        service, client = self.made(self.node.service(name, bytes, bytes)), self.client(name)
        taking = self.in_thread(lambda: service.receive(WATCHDOG))
        self.assertTrue(client.wait_for_service(WATCHDOG))
        pending = client.send(b"")
        self.kept = taking(), pending
        return client, pending.receive

    def full(self, loaned=False):
        topic = self.node.topic("full", **FULL)
        publisher, subscriber = self.made(topic.publisher()), self.made(topic.subscriber())
        self.assertTrue(publisher.wait_for_match(1, WATCHDOG))
        publisher.publish(b"x")
        if not loaned:
            return publisher, lambda: publisher.publish(b"x")
        loan = publisher.loan(1)
        return publisher, loan.publish

    def behind(self):
        """A publish that waits for the end of another thread's wait; a close ends both."""
        publisher, publish = self.full()
        begun = threading.Event()

        def publish_until_closed():
            begun.set()
            with self.assertRaises(myelin.Closed):
                publish()

        end = self.in_thread(publish_until_closed)
        # Before the subscriber is closed: without a subscriber the publish need not wait, and succeeds.
        self.objects.insert(len(self.objects) - 1, types.SimpleNamespace(close=end))
        begun.wait()
        return publisher, publish

    def silent(self):
        """A graph for which a stopped process is asked."""
        other = self.start("signal.pause()")
        self.until("the other node", lambda: len(self.node.graph().nodes) > 1)
        other.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, other.pid, os.WSTOPPED)
        return self.node, lambda: self.node.graph(WATCHDOG)

    def callback(self):
        callback = self.made(self.subscriber().on_sample(print))
        return callback, callback.wait_for_match

    def of(self, it, wait):
        return it, lambda: wait(it)

    WAITS = {
        "receive": lambda s: s.of(s.subscriber(), lambda it: it.receive()),
        "receive, polling": lambda s: s.of(s.subscriber(wait="poll"), lambda it: it.receive()),
        "receive, predictive": lambda s: s.of(
            s.subscriber(wait="predictive"), lambda it: it.receive(WATCHDOG)
        ),
        "wait": lambda s: s.of(s.subscriber(), lambda it: it.wait(WATCHDOG)),
        "iterate": lambda s: s.of(s.subscriber(), lambda it: next(it, None)),
        "match of a subscriber": lambda s: s.of(s.subscriber(), lambda it: it.wait_for_match()),
        "match of a publisher": lambda s: s.of(
            s.made(s.node.topic("alone").publisher()), lambda it: it.wait_for_match(1, WATCHDOG)
        ),
        "match of a callback": callback,
        "wait set": lambda s: s.of(s.wait_set(), lambda it: it.wait()),
        "executor": lambda s: s.of(s.executor(), lambda it: it.run()),
        "executor on threads": lambda s: s.of(s.executor(), lambda it: it.run(3)),
        "turn": lambda s: s.of(s.executor(), lambda it: it.turn(WATCHDOG)),
        "service": lambda s: s.of(
            s.made(s.node.service("s", bytes, bytes)), lambda it: it.receive()
        ),
        "call of nobody": lambda s: s.of(s.client(), lambda it: it.call(b"")),
        "service that is missing": lambda s: s.of(s.client(), lambda it: it.wait_for_service()),
        "pending": pending,
        "reliable publish": full,
        "reliable publish of a loan": lambda s: s.full(loaned=True),
        "reliable publish behind another": behind,
        "graph": silent,
    }

    def each(self, check):
        for name, make in self.WAITS.items():
            with self.subTest(name):
                check(name, *make(self))

    def handler(self, number, function):
        before = signal.signal(number, lambda *_: function())
        self.addCleanup(signal.signal, number, before)

    def soon(self, act):
        """Acts from another thread, most likely while this one waits."""
        is_next = threading.Event()

        def run():
            is_next.wait()  # the start of a thread takes long on a busy machine
            time.sleep(0.02)
            act()

        end = self.in_thread(run)
        self.addCleanup(end)
        is_next.set()
        return end

    def woken(self):
        raise Woken


class Signals(Waits):
    def test_the_handler_of_every_signal_runs_while_the_main_thread_waits(self):
        cannot = {signal.SIGKILL, signal.SIGSTOP}
        faults = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}
        subscriber = self.subscriber()
        for number in signal.valid_signals() - cannot - faults:
            if signal.getsignal(number) is None:
                continue  # the tools' own, as a sanitizer's
            with self.subTest(number):
                self.handler(number, self.woken)
                end = self.soon(lambda: os.kill(os.getpid(), number))
                with self.assertRaises(Woken):
                    subscriber.receive()
                end()

    def test_a_handler_that_raises_ends_every_wait(self):
        self.handler(signal.SIGVTALRM, self.woken)

        def check(_name, _it, wait):
            end = self.soon(lambda: os.kill(os.getpid(), signal.SIGVTALRM))
            with self.assertRaises(Woken):
                wait()
            end()

        self.each(check)

    def test_one_that_another_thread_got_runs_as_well(self):
        self.handler(signal.SIGVTALRM, self.woken)

        def check(_name, _it, wait):
            # Nothing in the kernel ends the sleep of the main thread.
            end = self.soon(lambda: signal.pthread_kill(threading.get_ident(), signal.SIGVTALRM))
            with self.assertRaises(Woken):
                wait()
            end()

        self.each(check)

    def test_a_handler_that_raises_nothing_is_not_seen(self):
        seen = []
        self.handler(signal.SIGVTALRM, lambda: seen.append(1))
        publisher, subscriber = self.ends()
        for number in range(20):

            def interrupt_and_publish():
                os.kill(os.getpid(), signal.SIGVTALRM)
                self.until("the handler", lambda: len(seen) > number)
                publisher.publish(b"x")

            end = self.in_thread(interrupt_and_publish)
            self.assertEqual(bytes(subscriber.receive()), b"x")
            end()

    def test_there_is_no_handler_of_ours(self):
        source = """
def actions():
    libc, got = ctypes.CDLL(None), {}
    for number in range(1, 65):
        action = ctypes.create_string_buffer(256)
        libc.sigaction(number, None, action)
        got[number] = action.raw[:8]  # the function
    return got
import faulthandler, os, threading
null = open(os.devnull, "w")
seen = []
for number in (signal.SIGUSR1, signal.SIGTERM):
    signal.signal(number, lambda *_: seen.append(1))
before = actions()
subscriber = node.topic("t").subscriber()
subscriber.receive(0.01)
print(actions() == before, flush=True)
faulthandler.register(signal.SIGUSR1, chain=True, file=null)
threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1)).start()
threading.Timer(0.10, subscriber.interrupt).start()
print(subscriber.receive(), len(seen), flush=True)
null.close()
"""
        other = self.start(source)
        self.assertEqual(other.stdout.read(), "True\nNone 1\n")
        self.assertEqual(other.wait(WATCHDOG), 0)

    def test_a_wait_costs_little(self):
        subscriber = self.subscriber()
        subscriber.receive(0.01)
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
        self.assertIsNone(subscriber.receive(0.5))
        turns = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before
        self.assertLess(turns, 20, "sleeps in half a second")


class Closes(Waits):
    def closed(self, name, wait):
        if name == "iterate":
            self.assertIsNone(wait())
        else:
            with self.assertRaises(myelin.Closed):
                wait()

    def test_in_a_handler_it_ends_every_wait(self):
        def check(name, it, wait):
            self.handler(signal.SIGVTALRM, it.close)
            end = self.soon(lambda: os.kill(os.getpid(), signal.SIGVTALRM))
            self.closed(name, wait)
            end()

        self.each(check)

    def test_in_another_thread_it_ends_every_wait(self):
        def check(name, it, wait):
            end = self.soon(it.close)
            self.closed(name, wait)
            end()

        self.each(check)

    def test_it_ends_every_wait_of_another_thread(self):
        def check(name, it, wait):
            end = self.in_thread(lambda: self.closed(name, wait))
            time.sleep(0.02)
            it.close()
            end()

        self.each(check)

    def test_in_a_finalizer_it_ends_a_wait(self):
        class Owner:
            def __init__(self, it):
                self.it = it

            def __del__(self):
                self.it.close()

        subscriber = self.subscriber()
        owners = [Owner(subscriber)]
        end = self.soon(owners.clear)
        with self.assertRaises(myelin.Closed):
            subscriber.receive()
        end()

    def test_in_a_callback_it_ends_a_wait(self):
        subscriber = self.subscriber()
        publisher = self.made(self.node.topic("stop").publisher())
        stop = self.node.topic("stop").subscriber()
        self.made(stop.on_sample(lambda _: subscriber.close()))
        end = self.soon(lambda: publisher.publish(b""))
        with self.assertRaises(myelin.Closed):
            subscriber.receive()
        end()

    def test_what_is_in_use_says_by_whom(self):
        said = []

        def take():
            try:
                subscriber.take()
            except myelin.Busy as busy:
                said.append(str(busy))
            subscriber.interrupt()

        subscriber = self.subscriber()
        self.handler(signal.SIGVTALRM, take)
        end = self.soon(lambda: os.kill(os.getpid(), signal.SIGVTALRM))
        self.assertIsNone(subscriber.receive())
        end()
        end = self.soon(take)
        self.assertIsNone(subscriber.receive())
        end()
        self.assertEqual([it.split()[0] for it in said], ["this", "another"])

    def test_an_endpoint_is_gone_once_its_wait_has_ended(self):
        publisher, subscriber = self.ends()
        end = self.in_thread(subscriber.receive)
        subscriber.close()
        with self.assertRaises(myelin.Closed):
            end()
        self.until("the end of the match", lambda: publisher.matched == 0)


class Ends(Waits):
    """A callback that is to end the program."""

    def setUp(self):
        super().setUp()
        self.unraisable = []
        hook = sys.unraisablehook
        sys.unraisablehook = lambda it: self.unraisable.append(it.exc_type)
        self.addCleanup(setattr, sys, "unraisablehook", hook)
        self.raises = None

    def function(self, argument=None):
        if self.raises is KeyboardInterrupt:
            signal.raise_signal(signal.SIGINT)
        elif self.raises is not None:
            raise self.raises

    def calls(self):
        """Every call that runs a callback in its own thread."""
        topic = self.node.topic("t")
        publisher = self.made(topic.publisher())
        self.made(topic.subscriber().on_sample(self.function))
        self.made(topic.subscriber().on_sample(self.function, concurrent=True))
        service = self.node.service("s", bytes, bytes)
        self.made(service.on_request(self.serve))
        client = self.client("s")
        self.assertTrue(client.wait_for_service(WATCHDOG))
        executor, timer = self.made(self.node.executor()), self.made(self.node.executor())
        executor.on_sample(topic.subscriber(), self.function)
        timer.on_timer(0.001, self.function)

        def run():
            publisher.publish(b"x")
            executor.run()

        return {
            "publish": lambda: publisher.publish(b"x"),
            "loan": lambda: publisher.loan(200).publish(),
            "call": lambda: client.call(b"x", WATCHDOG),
            "send": lambda: client.send(b"x"),
            "timer": timer.run,
            "executor": lambda: self.assertEqual(self.published(publisher), executor.turn(0)),
        }

    def published(self, publisher):
        raises, self.raises = self.raises, None
        publisher.publish(b"x")
        self.raises = raises
        return True

    def serve(self, request):
        request.reply(b"y")
        self.function()

    def test_its_exception_comes_out_of_the_call(self):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for name, call in self.calls().items():
            for raises in (KeyboardInterrupt, SystemExit):
                with self.subTest(name, raises=raises):
                    self.raises = raises
                    # The callback's own thread makes a call that it is busy for, and reports what is raised.
                    with self.assertRaises(raises):
                        for _ in range(100):
                            call()
                    self.raises = None
        self.assertLessEqual(set(self.unraisable), {KeyboardInterrupt, SystemExit})

    def test_others_are_reported_and_the_call_goes_on(self):
        calls = self.calls()
        self.raises = ValueError
        for name in ("publish", "loan", "call", "send"):
            self.unraisable.clear()
            calls[name]()
            self.assertLessEqual({ValueError}, set(self.unraisable), name)

    def test_in_a_thread_of_the_library_all_are_reported(self):
        source = """
publisher = node.topic("far", depth=2, transient_local=2).publisher()
publisher.publish(b"x")
publisher.publish(b"y")
signal.pause()
"""
        self.raises = SystemExit
        far = self.node.topic("far", depth=2, transient_local=2)
        callback = self.made(far.subscriber().on_sample(self.function))
        self.start(source)
        self.until("two calls", lambda: callback.calls == 2)
        self.assertEqual(self.unraisable, [SystemExit, SystemExit])


class Forks(Case):
    SOURCE = """
import gc, os, threading, time, warnings
warnings.simplefilter("ignore")
topic = node.topic("t")
subscriber, publisher, executor, beside = topic.subscriber(), topic.publisher(), node.executor(), node.executor()
wait_set, service = node.wait_set(), node.service("s", bytes, bytes)
client, callback = node.client("nobody", bytes, bytes), topic.subscriber().on_sample(print)
executor.on_sample(topic.subscriber(), print)
reliable = node.topic("r", reliable=WATCHDOG, depth=1)
full, reader = reliable.publisher(), reliable.subscriber()
full.wait_for_match(1, WATCHDOG)
full.publish(b"x")
waits = [subscriber.receive, lambda: publisher.wait_for_match(9), executor.run, lambda: beside.run(3),
         wait_set.wait, service.receive, lambda: client.call(b""), lambda: callback.wait_for_match(9),
         lambda: full.publish(b"x")]
objects = [node, subscriber, publisher, executor, beside, wait_set, service, client, callback, full]
def ended(wait):
    try: wait()
    except myelin.Closed: pass
    else: print("not closed", wait)
threads = [threading.Thread(target=ended, args=(wait,)) for wait in waits]
for thread in threads: thread.start()
time.sleep(0.1)
for mode in ("use", "close", "collect", "leave"):
    child = os.fork()
    if child == 0:
        signal.alarm(int(WATCHDOG) // 4)
        if mode == "use":
            for use in (subscriber.take, wait_set.wait, lambda: executor.turn(0), service.take,
                        lambda: client.call(b""), lambda: full.publish(b"x"), lambda: node.graph(WATCHDOG)):
                try: use()
                except myelin.Forked: pass
                else: os._exit(3)
        elif mode == "close":
            for it in [*objects, reader]: it.close()
        elif mode == "collect":
            del subscriber, publisher, executor, beside, wait_set, service, client, callback, full, reader, waits
            objects.clear()
            gc.collect()
        # The end of Python, with all that is left; not the end of threads that are not there.
        threads.clear()
        sys.exit(0)
    print(mode, os.waitpid(child, 0)[1], flush=True)
for it in objects: it.close()
for thread in threads: thread.join(WATCHDOG)
reader.close()  # before, it would make room for the publish that waits
"""

    def test_a_child_closes_what_a_thread_of_its_parent_waits_in(self):
        other = self.start(self.SOURCE)
        self.assertEqual(other.stdout.read(), "use 0\nclose 0\ncollect 0\nleave 0\n")
        self.assertEqual(other.wait(WATCHDOG), 0)

    def test_python_ends_while_daemons_wait(self):
        source = """
import threading
topic = node.topic("t")
subscriber, hasty, publisher = topic.subscriber(), topic.subscriber(), topic.publisher()
wait_set, executor = node.wait_set(), node.executor()
executor.on_sample(topic.subscriber(), id)
callback = topic.subscriber().on_sample(id)
def ever(wait):
    while True: wait()
for wait in (subscriber.receive, lambda: hasty.receive(0.0001), lambda: publisher.publish(bytes(200)),
             wait_set.wait, executor.run):
    threading.Thread(target=ever, args=(wait,), daemon=True).start()
publisher.wait_for_match(4, WATCHDOG)
"""
        others = [self.start(source) for _ in range(2)]
        self.assertEqual([other.wait(WATCHDOG) for other in others], [0, 0])


class Garbage(Case):
    """Objects whose callbacks are their own methods."""

    def kinds(self):
        node, topic = self.node, self.node.topic("garbage")

        class Method:
            def __init__(self):
                self.words = ["there"]
                self.callback = topic.subscriber().on_sample(self.function)

            def function(self, _):
                self.words[0]  # not there any more once it has been taken apart

        class Function(Method):
            def __init__(self):
                self.words = ["there"]
                self.callback = topic.subscriber().on_sample(lambda it: self.function(it))

        class Concurrent(Method):
            def __init__(self):
                self.words = ["there"]
                subscriber = topic.subscriber()
                self.callback = subscriber.on_sample(self.function, concurrent=True)

        class Server(Method):
            def __init__(self):
                service = node.service(f"of {id(self)}", bytes, bytes)
                self.callback = service.on_request(self.function)

        class Closing(Method):
            def __init__(self):
                self.subscriber = topic.subscriber()
                self.subscriber._on_close(lambda: self.subscriber)

        return Method, Function, Concurrent, Server, Closing

    def test_they_are_collected_with_threads_and_endpoints(self):
        with self.node.topic("garbage").publisher() as publisher:
            for kind in self.kinds():
                with self.subTest(kind.__name__):
                    threads = len(os.listdir("/proc/self/task"))
                    made = [weakref.ref(kind()) for _ in range(5)]
                    gc.collect()
                    self.assertEqual([it() for it in made], 5 * [None])
                    self.assertLessEqual(len(os.listdir("/proc/self/task")), threads)
                    self.until("the end of the matches", lambda: publisher.matched == 0)

    def test_they_are_whole_while_they_are_called(self):
        """No call sees an object that has been taken apart."""
        unraisable, hook = [], sys.unraisablehook
        sys.unraisablehook = lambda it: unraisable.append(it.exc_value)
        self.addCleanup(setattr, sys, "unraisablehook", hook)
        kinds = self.kinds()[:3]
        is_over = threading.Event()

        def publish():
            with myelin.Node("other", runtime_dir=self.folder) as other:
                with other.topic("garbage").publisher() as publisher:
                    while not is_over.is_set():
                        publisher.publish(b"x")

        end = self.in_thread(publish)
        try:
            for _ in range(10):
                made = [kind() for kind in kinds for _ in range(3)]
                self.until("a call", lambda: made[-1].callback.calls > 0)
                gone = [weakref.ref(it) for it in made]
                del made
                # One that is being called is in use.
                self.until("the end", lambda: gc.collect() >= 0 and not any(it() for it in gone))
        finally:
            is_over.set()
            end()
        self.assertEqual(unraisable, [])


class Finalizers(Case):
    """Garbage that uses an object is collected in a call of the same object (until CPython 3.11 in any)."""

    def setUp(self):
        super().setUp()
        self.addCleanup(gc.set_threshold, *gc.get_threshold())
        gc.collect()

    def leave(self, act):
        """Garbage; the next collection calls `act`."""

        class Garbage:
            def __init__(self):
                self.itself = self

            def __del__(self):
                calls.append(act())

        calls = self.calls = getattr(self, "calls", [])
        Garbage()

    def test_they_change_a_wait_set_that_changes(self):
        topic, kept = self.node.topic("many"), []
        members = [topic.subscriber() for _ in range(40)]
        with self.node.wait_set() as wait_set:
            gc.set_threshold(1)
            for member in members:
                self.leave(wait_set.guard_condition)
                wait_set.add(member)
                self.leave(lambda: wait_set.remove(kept[-1]) if kept else None)
                kept.append(wait_set.guard_condition())
                kept.append(wait_set.timer(WATCHDOG))
        self.until("the garbage", lambda: gc.collect() >= 0 and len(self.calls) == 2 * len(members))

    def test_they_end_views_of_what_is_used_too_late(self):
        publisher, subscriber = self.ends()
        gc.set_threshold(1)
        gc.disable()
        self.addCleanup(gc.enable)
        for _ in range(20):
            loan = publisher.loan(3)
            view = memoryview(loan)
            self.leave(lambda view=view: view.release())
            del view
            with self.assertRaises(myelin.WrongValue):
                gc.enable()
                loan.value = b"four"
            gc.disable()
            gc.collect()
            loan.value = b"abc"
            loan.publish()
            sample = subscriber.receive(WATCHDOG)
            view = memoryview(sample)
            self.leave(lambda view=view: view.release())
            del view
            sample.release()
            with self.assertRaises(myelin.Closed):
                gc.enable()
                sample.sequence
            gc.disable()
        self.until("the garbage", lambda: gc.collect() >= 0 and len(self.calls) == 40)


del Waits  # its tests are those of its heirs

if __name__ == "__main__":
    unittest.main()
