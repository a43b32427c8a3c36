"""Executors and wait sets that change while they run, from inside and from other threads."""

import collections
import gc
import itertools
import os
import signal
import sys
import threading
import time
import unittest
import weakref

import myelin
from support import WATCHDOG, Case


class Inside(Case):
    """A function changes the executor that calls it."""

    def run_once(self, act, threads):
        """Runs an executor whose timer calls `act` once, and then stops it."""
        executor, results, calls = self.node.executor(), [], []
        self.addCleanup(executor.close)

        def call():
            calls.append(None)
            if len(calls) == 1:
                results.append(act(executor))
                executor.on_timer(0.001, executor.stop)

        self.timer = executor.on_timer(0.001, call)
        executor.run(threads=threads)
        return results[0], len(calls)

    def test_it_removes_itself(self):
        for threads in (1, 3):
            removed, calls = self.run_once(lambda executor: executor.remove(self.timer), threads)
            self.assertTrue(removed)
            self.assertEqual(calls, 1)

    def test_it_adds_and_sets(self):
        topic = self.node.topic("late")
        acts = {
            "timer": lambda executor: executor.on_timer(1, print),
            "subscriber": lambda executor: executor.on_sample(topic.subscriber(), print),
            "service": lambda executor: executor.on_request(self.node.service("s", int, int), print),
            "wait": lambda executor: executor.set_wait("block"),
            "fileno": lambda executor: executor.fileno(),
            "stop": lambda executor: executor.stop(),
        }
        for name, act in acts.items():
            for threads in (1, 3):
                with self.subTest(name, threads=threads):
                    self.run_once(act, threads)

    def test_what_it_adds_is_called(self):
        topic, executor = self.node.topic("late"), self.node.executor()
        self.addCleanup(executor.close)
        publisher, got = topic.publisher(), []

        def take(sample):
            got.append(sample.value)
            executor.stop()

        def add():
            executor.remove(timer)
            executor.on_sample(topic.subscriber(), take)

        timer = executor.on_timer(0.001, add)
        end = self.in_thread(executor.run)
        self.assertTrue(publisher.wait_for_match(1, WATCHDOG))
        publisher.publish(b"x")
        end()
        self.assertEqual(got, [b"x"])

    def test_it_does_not_run_its_executor(self):
        for name in ("run", "turn"):
            for threads in (1, 3):

                def act(executor, name=name):
                    with self.assertRaisesRegex(myelin.Busy, "by a function of the same executor"):
                        getattr(executor, name)()

                self.run_once(act, threads)

    def test_it_closes_its_executor(self):
        for run in ("run", "run3", "turn"):
            executor, calls = self.node.executor(), []
            executor.on_timer(0.001, lambda: (calls.append(None), executor.close()))
            with self.assertRaisesRegex(myelin.Closed, "executor is closed"):
                {
                    "run": executor.run,
                    "run3": lambda: executor.run(threads=3),
                    "turn": executor.turn,
                }[run]()
            self.assertEqual(len(calls), 1)
            with self.assertRaises(myelin.Closed):
                executor.on_timer(1, print)

    def test_exits_come_out_of_the_run(self):
        for error in (KeyboardInterrupt, SystemExit, ValueError):
            for threads in (1, 3):
                executor = self.node.executor()
                self.addCleanup(executor.close)

                def fail(error=error):
                    raise error

                executor.on_timer(0.001, fail)
                with self.assertRaises(error):
                    executor.run(threads=threads)


class Outside(Case):
    """Another thread changes an executor that runs."""

    def test_it_adds_and_removes(self):
        for threads in (1, 3):
            executor = self.node.executor()
            end = self.in_thread(lambda: executor.run(threads=threads))
            for _ in range(50):
                is_removed, calls = [], []

                def call(is_removed=is_removed, calls=calls):
                    calls.append(bool(is_removed))
                    time.sleep(0)
                    calls.append(bool(is_removed))

                called = executor.on_timer(0.0005, call)
                self.until("a call", lambda: calls)
                self.assertTrue(executor.remove(called))
                is_removed.append(True)
                self.assertNotIn(True, calls)
            executor.set_wait("block")
            executor.fileno()
            with self.assertRaisesRegex(myelin.Busy, "already running"):
                executor.turn(0)
            executor.stop()
            end()
            executor.close()

    def test_it_closes(self):
        for threads in (1, 3):
            executor = self.node.executor()
            executor.on_timer(0.001, lambda: None)
            end = self.runs(executor, threads)
            executor.close()
            with self.assertRaises(myelin.Closed):
                end()

    def runs(self, executor, threads):
        def run():
            while True:
                try:
                    return executor.run(threads=threads)
                except myelin.Busy:
                    pass  # `is_run` is in it just now

        end = self.in_thread(run)
        self.until("the run", lambda: self.is_run(executor))
        return end

    def is_run(self, executor):
        try:
            executor.turn(0)
        except myelin.Busy:
            return True
        return False

    def test_what_another_executor_calls_is_not_removed(self):
        one, other = self.node.executor(), self.node.executor()
        self.addCleanup(one.close)
        self.addCleanup(other.close)
        calls = []
        one.on_timer(0.001, lambda: calls.append(None))
        self.assertFalse(one.remove(other.on_timer(1, print)))
        self.assertTrue(one.turn())
        self.assertTrue(calls)

    def test_a_signal_handler_closes_what_the_main_thread_waits_in(self):
        executor, wait_set = self.node.executor(), self.node.wait_set()
        for it, wait in (
            (executor, executor.run),
            (self.node.executor(), None),
            (wait_set, wait_set.wait),
        ):
            wait = wait or it.turn
            before = signal.signal(signal.SIGUSR1, lambda number, frame, it=it: it.close())
            try:
                timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGUSR1))
                timer.start()
                with self.assertRaises(myelin.Closed):
                    wait()
                timer.join()
            finally:
                signal.signal(signal.SIGUSR1, before)

    def test_a_child_of_fork_closes_what_a_thread_of_the_parent_is_in(self):
        executor, wait_set = self.node.executor(), self.node.wait_set()
        executor.on_timer(0.0005, lambda: time.sleep(0.0005))
        run, guard = self.runs(executor, 2), wait_set.guard_condition()
        wait = self.in_thread(wait_set.wait)
        child = os.fork()
        if child == 0:
            executor.close()
            wait_set.close()
            os._exit(7)
        ended = []
        self.until("its end", lambda: ended.extend(os.waitpid(child, os.WNOHANG)) or any(ended))
        self.assertEqual(os.waitstatus_to_exitcode(ended[-1]), 7)
        executor.stop()
        guard.trigger()
        run()
        self.assertEqual(wait(), [guard])
        executor.close()

    def test_a_node_has_many(self):
        executors = [self.node.executor() for _ in range(200)]
        sets = [self.node.wait_set() for _ in range(200)]
        calls = []
        for executor in executors:
            executor.on_timer(0.001, lambda: calls.append(None))
            self.assertTrue(executor.turn(WATCHDOG))
        self.assertGreaterEqual(len(calls), 200)
        for it in executors + sets:
            it.close()


ORDERS = ("round_robin", "oldest_first")


class Turns(Case):
    def matched(self, name, timestamps=True):
        topic = self.node.topic(name, int, depth=64)
        publisher, subscriber = topic.publisher(timestamps=timestamps), topic.subscriber()
        self.assertTrue(publisher.wait_for_match(1, WATCHDOG) and subscriber.wait_for_match(1, WATCHDOG))
        return publisher, subscriber

    def queued(self, samples, name="topic"):
        publisher, subscriber = self.matched(name)
        for sample in range(samples):
            publisher.publish(sample)
        return subscriber

    def test_the_call_that_stops_or_raises_is_the_last(self):
        hooked, before = [], sys.unraisablehook
        sys.unraisablehook = hooked.append
        self.addCleanup(setattr, sys, "unraisablehook", before)
        for number, (run, order) in enumerate(itertools.product(("run", "run3", "turn"), ORDERS)):
            for how in ("stop", "raise"):
                executor, got = self.node.executor(), []
                executor.set_order(order)

                def call(sample):
                    got.append(sample.value)
                    if how == "raise":
                        raise ValueError(sample.value)
                    executor.stop()

                executor.on_sample(self.queued(20, f"{how}{number}"), call)
                runs = {
                    "run": executor.run,
                    "run3": lambda: executor.run(threads=3),
                    "turn": executor.turn,
                }
                for sample in range(20):
                    try:
                        runs[run]()
                        self.assertEqual(how, "stop")
                    except ValueError as error:
                        self.assertEqual(error.args, (sample,))
                    self.assertEqual(got, list(range(sample + 1)), (run, order, how))
                executor.close()
        self.assertEqual(hooked, [])

    def test_timers_and_topics_take_turns(self):
        executor, got = self.node.executor(), []
        self.addCleanup(executor.close)

        def much(sample):
            got.append("much")
            if sample.value < 20:
                time.sleep(0.002)
            if sample.value == 63:
                executor.stop()

        executor.on_sample(self.queued(64, "much"), much)
        executor.on_sample(self.queued(1, "little"), lambda sample: got.append("little"))
        executor.on_timer(0.001, lambda: got.append("timer"))
        executor.run()
        self.assertIn("little", got[:4])
        topics = [name for name in got if name != "timer"]
        self.assertEqual(topics[:3], ["much", "little", "much"])
        for at, name in enumerate(got[:30]):
            if name == "much":
                self.assertEqual(got[at + 1], "timer", got)

    def test_the_oldest_sample_comes_first(self):
        executor, got = self.node.executor(), []
        self.addCleanup(executor.close)
        executor.set_order("oldest_first")
        publishers = []

        def call(sample):
            got.append(sample.value)
            if sample.value == 59:
                executor.stop()

        for name in ("a", "b"):
            publisher, subscriber = self.matched(name)
            publishers.append(publisher)
            executor.on_sample(subscriber, call)
        for sample in range(60):
            publishers[sample % 7 // 4].publish(sample)
        executor.run()
        self.assertEqual(got, list(range(60)))

    def test_nothing_starves_beside_floods(self):
        for order, threads in itertools.product(ORDERS, (1, 3)):
            executor, calls = self.node.executor(), collections.Counter()
            executor.set_order(order)

            def called(name):
                calls[name] += 1
                is_done = calls["timer"] >= 3 and all(calls[name] >= 100 for name in "abc")
                if is_done or max(calls.values()) > 300_000:
                    executor.stop()

            for name in "abc":
                topic = f"{name}/{order}/{threads}"
                publisher, subscriber = self.matched(topic, timestamps=name != "c")

                def call(sample, name=name, publisher=publisher):
                    publisher.publish(0)
                    called(name)

                for _ in range(64):
                    publisher.publish(0)
                executor.on_sample(subscriber, call)
            executor.on_timer(0.001, lambda: called("timer"))
            executor.run(threads=threads)
            executor.close()
            self.assertGreaterEqual(calls["timer"], 3, (order, threads, calls))
            for name in "abc":
                self.assertGreaterEqual(calls[name], 100, (order, threads, calls))

    def test_a_function_removes_itself_and_another_by_age(self):
        executor, got = self.node.executor(), []
        self.addCleanup(executor.close)
        executor.set_order("oldest_first")

        def once(sample):
            got.append(sample.value)
            self.assertTrue(executor.remove(other) and executor.remove(own))

        own = executor.on_sample(self.queued(5, "own"), once)
        other = executor.on_sample(self.queued(5, "other"), lambda sample: got.append("other"))
        last = self.queued(1, "last")
        executor.on_sample(last, lambda sample: executor.stop())
        executor.run()
        self.assertEqual(got, [0])

    def test_an_order_that_is_none(self):
        with self.node.executor() as executor:
            with self.assertRaisesRegex(myelin.WrongSetting, 'order is "newest"; use round_robin or oldest_first'):
                executor.set_order("newest")
        with self.assertRaises(myelin.Closed):
            executor.set_order("oldest_first")


class Garbage(Case):
    """Objects whose callbacks are their own methods are collected."""

    def test_executors_with_methods_of_their_owner(self):
        case = self

        class Owner:
            def __init__(self):
                self.executor = case.node.executor()
                self.called = [
                    self.executor.on_sample(case.node.topic("topic").subscriber(), self.call),
                    self.executor.on_request(case.node.service("service", bytes, bytes), self.call),
                    self.executor.on_timer(1, lambda: self.call(None)),
                ]
                self.executor.fileno()

            def call(self, it):
                pass

        self.is_collected(Owner, 20)

    def test_an_executor_that_has_run(self):
        case = self

        class Owner:
            def __init__(self):
                self.executor = case.node.executor()
                self.executor.on_timer(0.001, self.stop)
                self.executor.run()

            def stop(self):
                self.executor.stop()

        self.is_collected(Owner, 5)

    def test_wait_sets_with_members_that_refer_to_them(self):
        case = self

        class Owner:
            def __init__(self):
                self.wait_set = case.node.wait_set()
                self.members = [
                    case.node.topic("topic").subscriber(),
                    case.node.service("service", bytes, bytes),
                ]
                for member in self.members:
                    self.wait_set.add(member)
                self.members += [self.wait_set.guard_condition(), self.wait_set.timer(1), self]
                self.wait_set.wait(0)

        self.is_collected(Owner, 20)

    def is_collected(self, make, count):
        references = []
        for _ in range(count):
            references.append(weakref.ref(make()))
        gc.collect()
        self.assertEqual([it for it in references if it() is not None], [])

    def test_members_that_are_closed_or_forgotten_leave_nothing(self):
        wait_set, topic = self.node.wait_set(), self.node.topic("topic")
        self.addCleanup(wait_set.close)
        references = []
        for number in range(200):
            for member in (topic.subscriber(), wait_set.guard_condition()):
                if isinstance(member, myelin.Subscriber):
                    wait_set.add(member)
                    if number % 2:
                        member.close()
                references.append(weakref.ref(member))
                del member
        gc.collect()
        self.assertEqual([it for it in references if it() is not None], [])
        self.assertEqual(wait_set.wait(0), [])
        # Far more than a node has at once.
        for _ in range(40_000):
            wait_set.guard_condition()


class Sets(Case):
    """Another thread changes a wait set while one waits in it."""

    def waits(self, wait_set):
        got = []

        def wait():
            while True:
                try:
                    return got.extend(wait_set.wait(WATCHDOG))
                except myelin.Closed as error:
                    return got.append(error)
                except myelin.Busy:
                    pass  # `is_busy` is in it just now

        end = self.in_thread(wait)
        self.until("the wait", lambda: got or self.is_busy(wait_set))
        return lambda: (end(), got)[1]

    def is_busy(self, wait_set):
        try:
            wait_set.wait(0)
        except myelin.Busy:
            return True
        return False

    def test_a_wait_takes_up_what_changes(self):
        publisher, subscriber = self.ends()
        wait_set = self.node.wait_set()
        end = self.waits(wait_set)
        with self.assertRaisesRegex(myelin.Busy, "already waits in this wait set"):
            wait_set.wait(0)
        wait_set.add(subscriber)
        publisher.publish(b"1")
        self.assertEqual(end(), [subscriber])
        self.assertTrue(wait_set.remove(subscriber))
        self.assertFalse(wait_set.remove(subscriber))
        end = self.waits(wait_set)
        wait_set.set_wait("block")
        wait_set.fileno()
        guard = wait_set.guard_condition()
        guard.trigger()
        self.assertEqual(end(), [guard])
        end = self.waits(wait_set)
        timer = wait_set.timer(0.001)
        self.assertEqual(end(), [timer])
        wait_set.remove(timer)
        end = self.waits(wait_set)
        wait_set.close()
        self.assertIsInstance(end()[0], myelin.Closed)
        guard.trigger()
        for use in (wait_set.guard_condition, wait_set.fileno, lambda: wait_set.timer(1)):
            with self.assertRaisesRegex(myelin.Closed, "wait set is closed"):
                use()

    def test_a_member_that_is_closed_is_not_reported(self):
        publisher, subscriber = self.ends()
        wait_set = self.node.wait_set()
        self.addCleanup(wait_set.close)
        wait_set.add(subscriber)
        guard = wait_set.guard_condition()
        end = self.waits(wait_set)
        subscriber.close()
        publisher.publish(b"1")
        guard.trigger()
        self.assertEqual(end(), [guard])


if __name__ == "__main__":
    unittest.main()
