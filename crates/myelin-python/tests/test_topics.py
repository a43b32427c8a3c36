"""Topics, samples and loans within a process."""

import asyncio
import gc
import os
import sys
import threading
import time
import unittest
import weakref

import myelin
from support import WATCHDOG, Case


class Bytes(Case):
    def test_a_sample_is_what_was_published(self):
        publisher, subscriber = self.ends()
        for number, payload in enumerate([b"", b"hello", bytearray(104), memoryview(bytes(100_000))]):
            self.assertEqual(publisher.publish(payload).sequence, number)
            with subscriber.receive(WATCHDOG) as sample:
                self.assertEqual((sample.sequence, sample.lost_before), (number, 0))
                self.assertTrue(sample)
                self.assertEqual(bytes(sample), bytes(payload))
                self.assertEqual(sample.value, bytes(payload))
                self.assertEqual((len(sample), sample.nbytes), (len(payload), len(payload)))
                self.assertEqual(memoryview(sample).tobytes(), bytes(payload))
        self.assertIsNone(subscriber.take())

    def test_what_an_ended_process_wrote_is_unread_until_it_is_taken(self):
        subscriber = self.node.topic("large").subscriber()
        self.assertFalse(subscriber.has_unread)
        process = self.start(
            """
publisher = node.topic("large").publisher()
publisher.wait_for_match(1, WATCHDOG)
for length in (8, 1_000, 100_000, 10_000_000):
    publisher.publish(bytes(length))
"""
        )
        lengths = [len(subscriber.receive(WATCHDOG))]
        process.wait(WATCHDOG)
        while subscriber.has_unread:
            lengths.append(len(subscriber.receive(WATCHDOG)))
        self.assertEqual((lengths, subscriber.lost), ([8, 1_000, 100_000, 10_000_000], 0))
        subscriber.close()

    def test_a_sample_is_read_only(self):
        publisher, subscriber = self.ends()
        publisher.publish(b"hello")
        view = memoryview(subscriber.receive(WATCHDOG))
        self.assertTrue(view.readonly)
        with self.assertRaises(TypeError):
            view[0] = 1

    def test_a_loan_is_published_as_it_is(self):
        publisher, subscriber = self.ends()
        for length in (5, 100_000):
            loan = publisher.loan(length)
            with memoryview(loan) as view:
                view[:] = b"x" * length
            loan.publish()
            self.assertEqual(bytes(subscriber.receive(WATCHDOG)), b"x" * length)

    def test_a_loan_is_published_once(self):
        publisher, subscriber = self.ends()
        loan = publisher.loan(5)
        loan.publish()
        for use in (loan.publish, lambda: memoryview(loan), lambda: loan.nbytes):
            with self.assertRaisesRegex(myelin.Closed, "published already"):
                use()
        self.assertEqual(subscriber.receive(WATCHDOG).sequence, 0)

    def test_a_loan_that_is_left_is_discarded(self):
        publisher, subscriber = self.ends(publisher={"loans_max": 1})
        for _ in range(10):
            with publisher.loan(1000) as loan:
                with self.assertRaises(myelin.TooManyLoans):
                    publisher.loan(1000)
        with self.assertRaisesRegex(myelin.Closed, "discarded already"):
            loan.publish()
        for _ in range(10):
            publisher.loan(1000)
        self.assertIsNone(subscriber.take())

    def test_a_loan_that_is_viewed_is_not_published(self):
        publisher, subscriber = self.ends(publisher={"loans_max": 1})
        loan = publisher.loan(1000)
        view = memoryview(loan)
        with self.assertRaisesRegex(BufferError, "views of this loan are in use"):
            loan.publish()
        loan.discard()
        view[:] = b"x" * 1000  # nobody else has it before the view ends
        with self.assertRaises(myelin.TooManyLoans):
            publisher.loan(1000)
        view.release()
        publisher.loan(1000).publish()
        self.assertNotEqual(bytes(subscriber.receive(WATCHDOG)), b"")

    def test_a_view_that_outlives_its_sample_holds_it(self):
        publisher, subscriber = self.ends(subscriber={"held_max": 1})
        publisher.publish(b"1" * 1000)
        publisher.publish(b"2" * 1000)
        sample = subscriber.receive(WATCHDOG)
        ends = weakref.ref(sample)
        view = memoryview(sample)[10:20]
        del sample
        gc.collect()
        self.assertIsNotNone(ends())
        with self.assertRaises(myelin.TooManyHeld):
            subscriber.take()
        self.assertEqual(view, b"1" * 10)
        del view
        gc.collect()
        self.assertIsNone(ends())
        self.assertEqual(bytes(subscriber.take()), b"2" * 1000)

    def test_a_view_outlives_all_else(self):
        publisher, subscriber = self.ends()
        publisher.publish(b"1" * 1000)
        view = memoryview(subscriber.receive(WATCHDOG))
        subscriber.close()
        publisher.close()
        self.node.close()
        gc.collect()
        self.assertEqual(view, b"1" * 1000)

    def test_a_sample_that_is_released_goes_with_its_last_view(self):
        publisher, subscriber = self.ends(subscriber={"held_max": 1})
        publisher.publish(b"1" * 1000)
        publisher.publish(b"2" * 1000)
        sample = subscriber.receive(WATCHDOG)
        view = memoryview(sample)
        sample.release()
        with self.assertRaisesRegex(myelin.Closed, "released already"):
            sample.value
        self.assertEqual(view, b"1" * 1000)
        view.release()
        self.assertEqual(bytes(subscriber.take()), b"2" * 1000)


class Errors(Case):
    def test_use_after_close(self):
        publisher, subscriber = self.ends()
        callback = self.node.topic("other").subscriber().on_sample(print)
        wait_set = self.node.wait_set()
        for it in (publisher, subscriber, callback, wait_set, self.node):
            it.close()
            it.close()
        uses = [
            lambda: publisher.publish(b""),
            lambda: publisher.loan(1),
            subscriber.take,
            lambda: subscriber.receive(0),
            subscriber.interrupt,
            lambda: subscriber.id,
            lambda: callback.calls,
            lambda: wait_set.wait(0),
            lambda: self.node.topic("other"),
        ]
        for use in uses:
            with self.assertRaisesRegex(myelin.Closed, "closed"):
                use()

    def test_a_loan_outlives_its_publisher(self):
        publisher, subscriber = self.ends()
        loan = publisher.loan(1000)
        publisher.close()
        loan.publish()
        self.assertEqual(subscriber.receive(WATCHDOG).nbytes, 1000)

    def test_another_layout(self):
        publisher, _ = self.ends("imu", myelin.f64 * 3)
        with self.assertRaisesRegex(myelin.TypeMismatch, r"carries \[f64; 3\].*not \[u8\]"):
            self.node.topic("imu").subscriber()

    def test_names_and_settings_that_are_none(self):
        with self.assertRaises(TypeError):
            self.node.topic(None)
        for name in ("", "x" * 256, "line\nbreak"):
            with self.assertRaisesRegex(myelin.WrongSetting, "1 to 255 bytes"):
                self.node.topic(name).publisher()
        with self.assertRaisesRegex(myelin.WrongSetting, "depth is 0: use 1 to 65,535"):
            self.node.topic("topic", depth=0).publisher()
        with self.assertRaisesRegex(myelin.WrongSetting, "choose one"):
            self.node.topic("topic", reliable=1, reliable_or_fail=1)
        with self.assertRaisesRegex(myelin.WrongSetting, "choose one"):
            self.node.topic("topic", reliable=1, reliable_keep_last=True)
        with self.assertRaisesRegex(myelin.WrongSetting, "not negative"):
            self.node.topic("topic", deadline=-1.0)
        with self.assertRaisesRegex(myelin.WrongSetting, "adaptive, block, poll"):
            self.node.topic("topic").subscriber(wait="asleep")
        with self.assertRaises(TypeError):
            self.node.topic("topic", dept=3)

    def test_reliable_keep_last_waits_for_nobody(self):
        publisher, subscriber = self.ends(depth=2, reliable_keep_last=True)
        for number in range(5):
            publisher.publish(bytes([number]))
        self.assertEqual([bytes(subscriber.take()) for _ in range(2)], [b"\3", b"\4"])
        self.assertEqual(subscriber.lost, 3)

    def test_a_subscriber_that_ignores_its_own_node(self):
        publisher, subscriber = self.ends()
        other = self.node.topic("topic").subscriber(ignore_own_node=True)
        self.addCleanup(other.close)
        self.assertEqual((publisher.matched, subscriber.matched, other.matched), (1, 1, 0))

    def test_every_exception_is_an_error(self):
        self.assertTrue(issubclass(myelin.Closed, (myelin.Error, ValueError)))
        self.assertTrue(issubclass(myelin.ReplyTimeout, TimeoutError))
        for name in myelin.__all__:
            it = getattr(myelin, name)
            if isinstance(it, type) and issubclass(it, Exception):
                self.assertTrue(issubclass(it, myelin.Error), name)
                self.assertTrue(it.__doc__, name)

    def test_two_threads_at_once(self):
        _, subscriber = self.ends()
        end = self.in_thread(lambda: subscriber.receive(WATCHDOG))

        def is_busy():
            try:
                subscriber.take()
            except myelin.Busy as error:
                return "one for each thread" in str(error)
            except myelin.Error as error:
                self.fail(error)
            return False

        self.until("the other thread", is_busy)
        subscriber.close()
        with self.assertRaises(myelin.Closed):
            end()

    def test_a_child_of_fork(self):
        source = """
import os
publisher, subscriber = node.topic("t").publisher(), node.topic("t").subscriber()
child = os.fork()
if child == 0:
    for use in (lambda: publisher.publish(b""), subscriber.take, lambda: node.topic("t").publisher()):
        try:
            use()
        except myelin.Forked:
            continue
        os._exit(1)
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""
        self.assertEqual(self.start(source).stdout.read(), "0\n")

    def test_memory_that_a_child_of_fork_inherits_is_zeros_of_its_own(self):
        source = """
import os
BYTES = 100_000
def ends(node, name):
    publisher, subscriber = node.topic(name).publisher(), node.topic(name).subscriber()
    assert publisher.wait_for_match(1, WATCHDOG)
    return publisher, subscriber
def passed(publisher, subscriber, byte):
    publisher.publish(bytes([byte]) * BYTES)
    return subscriber.receive(WATCHDOG)
publisher, subscriber = ends(node, "parent")
sample = passed(publisher, subscriber, 7)
loan = publisher.loan(BYTES)
view = memoryview(loan)
view[:] = b"1" * BYTES
child = os.fork()
if child == 0:
    with myelin.Node("child") as own:
        own_sample = passed(*ends(own, "child"), 3)
        assert bytes(sample) == bytes(view) == bytes(BYTES)
        view[:] = b"9" * BYTES
        assert bytes(own_sample) == b"\\3" * BYTES
    view.release()
    try:
        loan.publish()
    except myelin.Forked:
        os._exit(0)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
assert bytes(sample) == b"\\7" * BYTES and bytes(view) == b"1" * BYTES
view.release()
loan.publish()
print(bytes(subscriber.receive(WATCHDOG)) == b"1" * BYTES)
"""
        self.assertEqual(self.start(source).stdout.read(), "True\n")


class Waiting(Case):
    def test_nothing_comes(self):
        _, subscriber = self.ends()
        self.assertIsNone(subscriber.receive(0.01))
        self.assertFalse(subscriber.wait(0))

    def test_others_run_while_it_waits(self):
        publisher, subscriber = self.ends()
        for wait in ("adaptive", "block", "poll", "predictive"):
            subscriber.set_wait(wait)
            end = self.in_thread(lambda: subscriber.receive(WATCHDOG))
            publisher.publish(wait.encode())
            self.assertEqual(end().value, wait.encode())

    def test_a_wait_is_interrupted(self):
        publisher, subscriber = self.ends()
        with self.node.service("service", int, int) as service:
            for waits in (subscriber, service):
                for _ in range(50):
                    end = self.in_thread(waits.receive)
                    waits.interrupt()
                    self.assertIsNone(end())
            subscriber.interrupt()  # or else the next one
            self.assertFalse(subscriber.wait())
        publisher.publish(b"1")
        self.assertEqual(subscriber.receive(WATCHDOG).value, b"1")

    def test_it_is_iterated_until_it_is_closed(self):
        publisher, subscriber = self.ends()
        taken = []
        end = self.in_thread(lambda: taken.extend(sample.value for sample in subscriber))
        for number in range(5):
            publisher.publish(bytes([number]))
        self.until("all to be taken", lambda: len(taken) == 5)
        subscriber.close()
        end()
        self.assertEqual(taken, [bytes([number]) for number in range(5)])

    def test_a_wait_set_says_what_is_ready(self):
        publisher, subscriber = self.ends()
        _, silent = self.ends("silent")
        wait_set = self.node.wait_set()
        wait_set.add(subscriber)
        wait_set.add(silent)
        guard = wait_set.guard_condition()
        self.assertEqual(wait_set.wait(0), [])
        publisher.publish(b"1")
        self.assertEqual(wait_set.wait(WATCHDOG), [subscriber])
        self.assertEqual(wait_set.wait(WATCHDOG), [subscriber])
        subscriber.take()
        self.assertEqual(wait_set.wait(0), [])
        end = self.in_thread(lambda: wait_set.wait(WATCHDOG))
        guard.trigger()
        self.assertEqual(end(), [guard])
        timer = wait_set.timer(0.001)
        self.assertEqual(wait_set.wait(WATCHDOG), [timer])
        self.assertTrue(wait_set.remove(timer))
        self.assertFalse(wait_set.remove(timer))
        with self.assertRaisesRegex(myelin.WrongValue, "subscribers and services"):
            wait_set.add(publisher)

    def test_async_for(self):
        publisher, subscriber = self.ends(subscriber={"descriptor": True}, depth=256)

        async def take():
            taken = []
            async for sample in subscriber:
                taken.append(sample.value)
                if len(taken) == 200:
                    return taken

        async def publish():
            for number in range(200):
                publisher.publish(bytes([number]))
                if number % 7 == 0:
                    await asyncio.sleep(0)

        async def both():
            return (await asyncio.wait_for(asyncio.gather(take(), publish()), WATCHDOG))[0]

        self.assertEqual(asyncio.run(both()), [bytes([number]) for number in range(200)])

    def test_async_for_takes_a_descriptor(self):
        _, subscriber = self.ends()
        with self.assertRaisesRegex(myelin.WrongSetting, "descriptor=True"):
            subscriber.__aiter__()

    def test_a_wait_set_in_asyncio(self):
        publisher, subscriber = self.ends()
        wait_set = self.node.wait_set()
        wait_set.add(subscriber)

        async def run():
            loop, ready = asyncio.get_running_loop(), asyncio.Event()
            loop.add_reader(wait_set.fileno(), ready.set)
            publisher.publish(b"1")
            await asyncio.wait_for(ready.wait(), WATCHDOG)
            loop.remove_reader(wait_set.fileno())
            return wait_set.wait(0)

        self.assertEqual(asyncio.run(run()), [subscriber])


    def test_others_run_while_it_copies(self):
        publisher, subscriber = self.ends()
        before = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, before)
        turns, is_over = [0], threading.Event()

        def run():
            while not is_over.is_set():
                turns[0] += 1
                time.sleep(0)

        end = self.in_thread(run)
        self.until("the other thread", lambda: turns[0])
        sys.setswitchinterval(1000)  # nobody takes the GIL away: who holds it lets go
        payload = bytes(64 << 20)
        begun = turns[0]
        publisher.publish(payload)
        self.assertGreater(turns[0], begun)
        sys.setswitchinterval(before)
        is_over.set()
        end()
        self.assertEqual(subscriber.receive(WATCHDOG).nbytes, len(payload))

    def test_async_for_ends_with_the_subscriber(self):
        for closes in ("the task", "a thread", "all else first"):
            with self.subTest(closes):
                asyncio.run(self.closed_in_a_loop(closes))

    async def closed_in_a_loop(self, closes):
        publisher, subscriber = self.ends(closes, subscriber={"descriptor": True})
        taken = []

        async def take():
            async for sample in subscriber:
                taken.append(sample.value)

        task = asyncio.create_task(take())
        publisher.publish(b"1")
        while not taken:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        descriptors = len(os.listdir("/proc/self/fd"))
        if closes == "a thread":
            await asyncio.to_thread(subscriber.close)
        else:
            if closes == "all else first":
                publisher.close()
                self.node.close()
            subscriber.close()
        await asyncio.wait_for(task, WATCHDOG)
        self.assertEqual(taken, [b"1"])
        self.assertLess(len(os.listdir("/proc/self/fd")), descriptors)
        self.assertEqual([sample async for sample in myelin._asyncio.Samples(subscriber)], [])

    def test_a_task_that_is_cancelled_takes_again(self):
        publisher, subscriber = self.ends(subscriber={"descriptor": True})

        async def take():
            async for sample in subscriber:
                return sample.value

        async def run():
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(take(), 0.01)
            publisher.publish(b"1")
            return await asyncio.wait_for(take(), WATCHDOG)

        self.assertEqual(asyncio.run(run()), b"1")


class Executors(Case):
    def setUp(self):
        super().setUp()
        self.executor = self.node.executor()
        self.addCleanup(self.executor.close)

    def test_it_calls_with_samples_requests_and_time(self):
        topic, called = self.node.topic("numbers", int), []
        self.executor.on_sample(topic.subscriber(), lambda sample: called.append(sample.value))
        service = self.node.service("double", int, int)
        self.executor.on_request(service, lambda request: request.reply(2 * request.value))
        self.executor.on_timer(0.001, lambda: called.append("time"))
        publisher, client = topic.publisher(), self.node.client("double", int, int)
        self.assertTrue(publisher.wait_for_match(1, WATCHDOG))
        publisher.publish(7)
        end = self.in_thread(lambda: client.call(21, WATCHDOG).value)
        self.addCleanup(client.close)
        runs = self.in_thread(self.executor.run)
        self.assertEqual(end(), 42)
        self.until("both", lambda: 7 in called and "time" in called)
        with self.assertRaises(myelin.Busy):
            self.executor.turn(0)
        self.executor.stop()
        runs()
        self.executor.stop()  # or else the next one
        self.executor.run()

    def test_on_several_threads_different_functions_run_at_once(self):
        topics = [self.node.topic(name) for name in ("one", "other")]
        both = threading.Barrier(2, timeout=WATCHDOG)
        for topic in topics:
            self.executor.on_sample(topic.subscriber(), lambda sample: both.wait())
        publishers = [topic.publisher() for topic in topics]
        for publisher in publishers:
            self.assertTrue(publisher.wait_for_match(1, WATCHDOG))
            publisher.publish(b"")
        self.executor.on_timer(0.001, lambda: both.n_waiting or self.executor.stop())
        self.until("both to wait for each other", lambda: self.executor.run(3) is None)
        self.assertFalse(both.broken)
        with self.assertRaisesRegex(myelin.WrongSetting, "at least 1"):
            self.executor.run(0)

    def test_what_a_function_raises_ends_the_run(self):
        topic, called = self.node.topic("topic"), []

        def fail(sample):
            called.append(sample.value)
            raise RuntimeError(sample.value)

        key = self.executor.on_sample(topic.subscriber(), fail)
        publisher = topic.publisher()
        self.assertTrue(publisher.wait_for_match(1, WATCHDOG))
        for run in (self.executor.run, lambda: self.executor.run(2), self.executor.turn):
            publisher.publish(b"1")
            with self.assertRaisesRegex(RuntimeError, "b'1'"):
                run()
        self.assertEqual(called, [b"1"] * 3)
        self.assertTrue(self.executor.remove(key))
        self.assertFalse(self.executor.remove(key))
        publisher.publish(b"2")
        self.assertTrue(self.executor.turn(0))
        self.executor.stop()
        self.assertFalse(self.executor.turn(WATCHDOG))
        self.assertEqual(len(called), 3)

    def test_a_turn_in_asyncio(self):
        topic, called = self.node.topic("topic"), []
        self.executor.on_sample(topic.subscriber(), called.append)
        publisher = topic.publisher()
        self.assertTrue(publisher.wait_for_match(1, WATCHDOG))

        async def run():
            loop = asyncio.get_running_loop()
            loop.add_reader(self.executor.fileno(), self.executor.turn, 0)
            publisher.publish(b"1")
            while not called:
                await asyncio.sleep(0)
            loop.remove_reader(self.executor.fileno())

        asyncio.run(asyncio.wait_for(run(), WATCHDOG))
        self.assertEqual(bytes(called[0]), b"1")

    def test_what_is_used_up(self):
        subscriber = self.node.topic("topic").subscriber()
        self.executor.on_sample(subscriber, print)
        with self.assertRaisesRegex(myelin.Closed, "subscriber is closed"):
            subscriber.take()
        with self.assertRaisesRegex(myelin.WrongSetting, "without"):
            self.executor.on_sample(self.node.topic("t").subscriber(descriptor=True), print)
        with self.assertRaises(TypeError):
            self.executor.on_sample(self.node.service("s", int, int), print)
        self.executor.close()
        with self.assertRaisesRegex(myelin.Closed, "executor is closed"):
            self.executor.turn(0)


class Callbacks(Case):
    def test_it_is_called_inside_the_publish(self):
        topic = self.node.topic("topic")
        publisher, taken = topic.publisher(), []
        with topic.subscriber().on_sample(lambda s: taken.append((s.value, threading.get_ident()))) as it:
            self.assertTrue(it.wait_for_match(1, WATCHDOG) and publisher.wait_for_match(1, WATCHDOG))
            publisher.publish(b"1")
            self.until("the call", lambda: it.calls == 1)
        publisher.publish(b"2")
        self.assertEqual([value for value, _ in taken], [b"1"])

    def test_what_it_raises_goes_to_the_hook(self):
        hooked, before = [], sys.unraisablehook
        sys.unraisablehook = hooked.append
        self.addCleanup(setattr, sys, "unraisablehook", before)
        topic = self.node.topic("topic")

        def fail(sample):
            raise RuntimeError(sample.value)

        publisher = topic.publisher()
        callback = topic.subscriber().on_sample(fail)
        self.addCleanup(callback.close)
        self.assertTrue(publisher.wait_for_match(1, WATCHDOG))
        publisher.publish(b"1")
        publisher.publish(b"2")
        self.until("both calls", lambda: callback.calls == 2)
        self.assertEqual([str(it.exc_value) for it in hooked], ["b'1'", "b'2'"])
        self.assertIs(hooked[0].object, fail)

    def test_many_threads_publish_and_close(self):
        topic = self.node.topic("topic", int)
        taken = []
        callback = topic.subscriber().on_sample(lambda sample: taken.append(sample.value))

        def publish():
            with topic.publisher() as publisher:
                publisher.wait_for_match(1, WATCHDOG)
                for number in range(200):
                    publisher.publish(number)

        ends = [self.in_thread(publish) for _ in range(4)]
        for end in ends:
            end()
        self.until("some calls", lambda: callback.calls > 0)
        callback.close()
        self.assertLessEqual(len(taken), 800)

    def test_the_interpreter_ends_with_one_alive(self):
        source = """
topic = node.topic("topic")
callback = topic.subscriber().on_sample(lambda sample: None)
publisher = topic.publisher()
publisher.wait_for_match(1, WATCHDOG)
publisher.publish(b"")
print("end")
"""
        other = self.start(source)
        self.assertEqual(other.stdout.read(), "end\n")
        self.assertEqual(other.wait(WATCHDOG), 0)


class Services(Case):
    def serve(self, function, request=[float], reply=float):
        callback = self.node.service("sum", request, reply).on_request(function)
        self.addCleanup(callback.close)

    def test_calls(self):
        self.serve(lambda request: request.reply(sum(request.value)))
        with self.node.client("sum", [float], float) as client:
            self.assertTrue(client.wait_for_service(WATCHDOG))
            self.assertEqual(client.call([1, 2.5], WATCHDOG).value, 3.5)
            self.assertEqual((client.servers, client.late), (1, 0))

    def test_a_reply_in_place(self):
        def answer(request):
            with request.loan(100_000) as reply:
                with memoryview(reply) as view:
                    view[:] = bytes(request) * 100_000
                reply.send()

        self.serve(answer, bytes, bytes)
        client = self.node.client("sum", bytes, bytes)
        self.assertEqual(bytes(client.call(b"x", WATCHDOG)), b"x" * 100_000)

    def test_calls_that_are_not_waited_for(self):
        client = self.node.client("sum", [float], float)
        self.addCleanup(client.close)
        with self.assertRaisesRegex(myelin.NoServer, "no server now"):
            client.send([0])
        service = self.node.service("sum", [float], float)
        self.assertTrue(client.wait_for_service(WATCHDOG))
        first, second = client.send([1, 2]), client.send([3])
        self.assertIsNone(first.take())
        self.assertIsNone(first.receive(0.01))
        requests = [service.receive(WATCHDOG) for _ in range(2)]
        for request in reversed(requests):
            request.reply(sum(request.value))
        self.assertEqual((second.receive(WATCHDOG).value, first.receive(WATCHDOG).value), (3.0, 3.0))
        with self.assertRaisesRegex(myelin.Closed, "call is closed"):
            first.take()
        for _ in range(100):  # those that nobody waits for make room
            client.send([1])
            request = service.receive(WATCHDOG)
            request.reply(0.0)
        last = client.send([1])
        service.receive(WATCHDOG).release()
        with self.assertRaises(myelin.NoReply):
            last.receive(WATCHDOG)
        kept = client.send([1])
        client.close()
        with self.assertRaisesRegex(myelin.Closed, "client is closed"):
            kept.receive(WATCHDOG)

    def test_a_server_that_raises(self):
        hooked, before = [], sys.unraisablehook
        sys.unraisablehook = lambda it: hooked.append(str(it.exc_value))
        self.addCleanup(setattr, sys, "unraisablehook", before)

        def fail(request):
            raise RuntimeError("no sum")

        self.serve(fail)
        client = self.node.client("sum", [float], float)
        with self.assertRaises(myelin.NoReply):
            client.call([1], WATCHDOG)
        self.assertEqual(hooked, ["no sum"])
        client.close()
        for use in (lambda: client.call([1], 0), lambda: client.send([1]), client.events):
            with self.assertRaisesRegex(myelin.Closed, "client is closed"):
                use()

    def test_a_reply_is_sent_once(self):
        replies = []

        def answer(request):
            reply = request.loan()
            reply.value = 1.0
            reply.send()
            try:
                reply.send()
            except myelin.Closed as error:
                replies.append(str(error))

        self.serve(answer)
        with self.node.client("sum", [float], float) as client:
            self.assertEqual(client.call([1], WATCHDOG).value, 1.0)
        self.assertEqual(replies, ["this has been sent already"])

    def test_a_server_that_waits(self):
        service = self.node.service("sum", [float], float)
        client = self.node.client("sum", [float], float)
        end = self.in_thread(lambda: client.call([2, 3], WATCHDOG).value)
        request = service.receive(WATCHDOG)
        self.assertEqual((request.value, service.clients), ([2.0, 3.0], 1))
        request.reply(5.0)
        with self.assertRaisesRegex(myelin.WrongSetting, "replied to once"):
            request.reply(5.0)
        self.assertEqual(end(), 5.0)
        self.assertIsNone(service.receive(0))

    def test_what_can_go_wrong(self):
        client = self.node.client("sum", [float], float)
        with self.assertRaisesRegex(myelin.NoServer, "start one"):
            client.call([1], 0.01)
        service = self.node.service("sum", [float], float)
        end = self.in_thread(lambda: client.wait_for_service(WATCHDOG))
        while not service.clients or service.take():
            pass
        service.receive(0.5)
        self.assertTrue(end())
        with self.assertRaises(myelin.ReplyTimeout):
            client.call([1], 0.05)
        end = self.in_thread(lambda: client.call([1], WATCHDOG))
        kept = [service.receive(WATCHDOG), service.receive(WATCHDOG)]
        for request in kept:
            request.release()
        with self.assertRaises(myelin.NoReply):
            end()
        with self.assertRaises(myelin.TypeMismatch):
            self.node.client("sum", [float], int)
        service.close()
        with self.assertRaises(myelin.Closed):
            service.take()


class Knowing(Case):
    def test_timestamps_come_from_the_environment(self):
        source = """
topic = node.topic("count", float)
with topic.subscriber() as subscriber:
    for options in {}, {"timestamps": False}:
        with topic.publisher(**options) as publisher:
            publisher.publish(1.0)
            print(subscriber.receive(WATCHDOG).published_at is not None)
"""
        for value, expected in ("1", "True\nFalse\n"), ("0", "False\nFalse\n"):
            other = self.start(source, MYELIN_TIMESTAMPS=value)
            self.assertEqual(other.stdout.read(), expected)

    def test_events_and_graph(self):
        publisher, subscriber = self.ends(publisher={"timestamps": True}, type=float, depth=3)
        matched = [event for event in subscriber.events() if event.kind == "matched"]
        self.assertEqual(len(matched), 1)
        self.assertEqual(matched[0].pid, os.getpid())
        self.assertIn("matched", repr(matched[0]))
        graph = self.node.graph()
        self.assertEqual([node.name for node in graph.nodes], ["test"])
        sides = {endpoint.is_publisher for endpoint in graph.endpoints}
        self.assertEqual(sides, {True, False})
        self.assertEqual({endpoint.type_name for endpoint in graph.endpoints}, {"f64"})
        self.assertEqual({endpoint.depth for endpoint in graph.endpoints}, {3})
        self.assertEqual({each.state for each in graph.matches}, {"matched"})
        self.assertIn("EndpointInfo(id=", repr(graph))
        self.assertIn("type_name='f64'", repr(graph.endpoints[0]))
        ids = {endpoint.id: endpoint.is_publisher for endpoint in graph.endpoints}
        self.assertEqual(ids, {publisher.id: True, subscriber.id: False})
        self.assertEqual({each.name for each in graph.types}, {"f64"})
        self.assertEqual((graph.silent, graph.incomplete), ([], []))
        self.assertEqual({each.location for each in graph.nodes + graph.endpoints}, {"this_host"})
        before = myelin.now()
        publisher.publish(1.0)
        sample = subscriber.receive(WATCHDOG)
        self.assertTrue(before <= sample.published_at <= myelin.now())
        self.assertEqual(sample.publisher, publisher.id)
        with myelin.Node("asks", runtime_dir=self.folder) as other:
            self.until("the other node", lambda: len(other.graph().endpoints) == 2)
            told = {each.id: each for each in other.graph(within=WATCHDOG).endpoints}
        self.assertEqual((told[publisher.id].published, told[publisher.id].lost), (1, None))
        self.assertEqual((told[subscriber.id].published, told[subscriber.id].lost), (None, 0))
        self.assertEqual((told[publisher.id].published_bytes, told[subscriber.id].taken), (8, 1))
        self.assertEqual(told[publisher.id].last_published_at, sample.published_at)
        self.assertEqual(told[subscriber.id].last_taken_at, sample.published_at)
        lateness = told[subscriber.id].lateness
        self.assertEqual((lateness.measured, lateness.last), (1, lateness.max))
        self.assertLessEqual(lateness.percentile(50), lateness.max)
        publisher.close()
        self.until("the end", lambda: any(e.kind == "unmatched" for e in subscriber.events()))

    def test_records_are_seen_by_other_nodes(self):
        attributes = {"ros.gid": bytes([0, 255]), "empty": b""}
        with myelin.Node(
            "asks", runtime_dir=self.folder, namespace="/left", attributes={"firmware": b"2"}
        ) as other:
            topic = self.node.topic("map", int, deadline=0.5, attributes=attributes)
            publisher = topic.publisher(liveliness=2.0)
            found = lambda: {each.id: each for each in other.graph().endpoints}.get(publisher.id)
            self.until("the endpoint", lambda: found() is not None)
            endpoint = found()
            self.assertEqual(endpoint.attributes, attributes)
            self.assertEqual(self.node.endpoint(endpoint.id).attributes, attributes)
            self.assertIsNone(self.node.endpoint(1))
            self.assertEqual((endpoint.deadline, endpoint.liveliness), (0.5, 2.0))
            self.assertEqual((endpoint.lifespan, endpoint.matching), (None, "exact"))
            self.assertLess(abs(endpoint.created - time.time()), WATCHDOG)
            nodes = {node.name: node for node in other.graph().nodes}
            self.assertEqual((nodes["asks"].namespace, nodes["test"].namespace), ("/left", ""))
            self.assertEqual(nodes["asks"].attributes, {"firmware": b"2"})
            self.assertEqual((nodes["test"].language, nodes["test"].user), ("Python", os.getuid()))
            self.assertTrue(nodes["test"].program and nodes["test"].host and nodes["test"].version)
            wanted = other.topic("map", int, transient_local=1, matching="requested_offered")
            subscriber = wanted.subscriber()
            [event] = [event for event in subscriber.events() if event.kind == "incompatible"]
            reason = (event.setting, event.offered, event.requested)
            self.assertEqual(reason, ("durability", "volatile", "transient local"))
            [match] = [each for each in other.graph().matches if each.endpoint == subscriber.id]
            self.assertEqual((match.setting, match.offered, match.requested), reason)
            changes = self.node.graph_changes()
            publisher.close()
            self.assertEqual(self.node.graph_changes(), changes + 1)
        with self.assertRaisesRegex(myelin.WrongSetting, "requested_offered"):
            self.node.topic("map", int, matching="dds")
        with self.assertRaisesRegex(myelin.WrongSetting, "1,024 bytes"):
            self.node.topic("map", int, attributes={"a": bytes(2000)}).publisher()

    def test_no_descriptor_is_left(self):
        source = """
import gc, os
count = lambda: len(os.listdir("/proc/self/fd"))
def use():
    topic = node.topic("topic")
    with topic.publisher() as publisher, topic.subscriber(descriptor=True) as subscriber:
        publisher.wait_for_match(1, WATCHDOG)
        publisher.publish(bytes(1000))
        view = memoryview(subscriber.receive(WATCHDOG))
    with node.wait_set() as wait_set:
        wait_set.fileno()
    topic.subscriber().on_sample(print).close()
    with node.service("service", int, int), node.client("service", int, int):
        pass
use()
gc.collect()
import time
def settled(before):
    until = time.monotonic() + WATCHDOG
    while count() > before and time.monotonic() < until:
        time.sleep(0.01)
    return count()
before = settled(0 + count())
for _ in range(20):
    use()
gc.collect()
print(settled(before) <= before)
"""
        other = self.start(source)
        self.assertEqual(other.stdout.read(), "True\n")
        self.assertEqual(other.wait(WATCHDOG), 0)


class WithoutNumpy(Case):
    def test_it_is_not_imported(self):
        source = """
publisher, subscriber = node.topic("t", float).publisher(), node.topic("t", float).subscriber()
publisher.wait_for_match(1, WATCHDOG)
publisher.publish(1.5)
print(subscriber.receive(WATCHDOG).value, "numpy" in sys.modules)
"""
        self.assertEqual(self.start(source).stdout.read(), "1.5 False\n")


if __name__ == "__main__":
    unittest.main()
