"""No lock of the module is held while code of the user runs, wherever it is called (`PLACES`)."""

import sys
import threading
import unittest

import myelin
from support import WATCHDOG, Case


class AtEnd:
    """Calls when it goes."""

    def __init__(self, call):
        self.call = call

    def __del__(self):
        self.call()


def in_publish(case, node, call):
    topic = node.topic("main", int)
    publisher, subscriber = topic.publisher(), topic.subscriber()
    case.assertTrue(publisher.wait_for_match(1, WATCHDOG))
    callback = subscriber.on_sample(lambda _: call())
    publisher.publish(1)
    return publisher, callback


def in_concurrent_callback(case, node, call):
    topic = node.topic("main", int)
    publisher, subscriber = topic.publisher(), topic.subscriber()
    case.assertTrue(publisher.wait_for_match(1, WATCHDOG))
    callback = subscriber.on_sample(lambda _: call(), concurrent=True)
    publisher.publish(1)
    return publisher, callback


def in_callback_thread(case, node, call):
    topic = node.topic("main", int, transient_local=1)
    publisher = topic.publisher()
    publisher.publish(1)
    subscriber = topic.subscriber()
    case.assertTrue(subscriber.wait_for_match(1, WATCHDOG))
    return publisher, subscriber.on_sample(lambda _: call())


def in_executor(case, node, call):
    topic = node.topic("main", int)
    publisher, subscriber = topic.publisher(), topic.subscriber()
    case.assertTrue(publisher.wait_for_match(1, WATCHDOG))
    executor = node.executor()

    def function(_):
        executor.stop()
        call()

    executor.on_sample(subscriber, function)
    publisher.publish(1)
    executor.run()
    return publisher, executor


def in_timer(case, node, call):
    executor = node.executor()

    def function():
        executor.stop()
        call()

    executor.on_timer(0.001, function)
    executor.run()
    return executor


def in_request(case, node, call):
    def answer(request):
        call()
        request.reply(request.value)

    serving = node.service("ask", int, int).on_request(answer)
    client = node.client("ask", int, int)
    case.assertTrue(client.wait_for_service(WATCHDOG))
    client.call(1, WATCHDOG)
    return serving, client


def end_of_function(case, node, call):
    subscriber = node.topic("main", int).subscriber()
    at_end = AtEnd(call)
    callback = subscriber.on_sample(lambda _: at_end)
    del at_end
    callback.close()


def in_value(case, node, call):
    """Where a value is read before a publish."""

    class Number:
        def __index__(self):
            call()
            return 1

    publisher = node.topic("main", int).publisher()
    publisher.publish(Number())
    with publisher.loan() as loan:
        loan.value = Number()
        loan.publish()
    return publisher


def in_hook(case, node, call):
    """Where what a callback raises goes."""
    class Raised(Exception):
        pass

    def function():
        raised = Raised()
        raised.call = call
        raise raised

    case.addCleanup(setattr, sys, "unraisablehook", sys.unraisablehook)
    sys.unraisablehook = lambda unraisable: unraisable.exc_value.call()
    return in_publish(case, node, function)


PLACES = [
    in_publish,
    in_concurrent_callback,
    in_callback_thread,
    in_executor,
    in_timer,
    in_request,
    end_of_function,
    in_value,
    in_hook,
]


class UserCode(Case):
    def side(self, name):
        node = myelin.Node(name, runtime_dir=self.folder)
        self.addCleanup(node.close)
        topic = node.topic("side", bytes)
        publisher, subscriber = topic.publisher(), topic.subscriber()
        self.assertTrue(publisher.wait_for_match(1, WATCHDOG))
        return node, publisher, subscriber.on_sample(lambda _: None)

    def use(self, node, publisher, callback):
        publisher.publish(b"1")
        with publisher.loan(1000) as loan:
            loan.publish()
        publisher.loan(1000).discard()
        publisher.events(), callback.events(), node.graph()
        self.assertGreater(publisher.matched, 0)
        other = node.topic("other", int)
        with other.publisher() as publisher, other.subscriber().on_sample(lambda _: None) as callback:
            publisher.publish(1)
            callback.close()

    def test_it_may_call_anything_wherever_it_runs(self):
        for place in PLACES:
            with self.subTest(place.__name__):
                sides = [self.side("one"), self.side("two")]
                # The two functions run at the same time, if the place allows that.
                both = threading.Barrier(2)
                failed, called, kept = [], [0, 0], []

                def run(at, node):
                    def call():
                        called[at] += 1
                        if called[at] > 1:
                            return
                        try:
                            both.wait(0.1)
                        except threading.BrokenBarrierError:
                            pass
                        try:
                            for side in sides:
                                self.use(*side)
                        except BaseException as error:
                            failed.append(error)

                    kept.append(place(self, node, call))

                threads = [
                    threading.Thread(target=run, args=(at, side[0]), daemon=True)
                    for at, side in enumerate(sides)
                ]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join(WATCHDOG)
                    self.assertFalse(thread.is_alive(), "it hangs")
                self.until("both calls", lambda: all(called))
                self.assertEqual(failed, [])

    def test_threads_that_publish_on_each_others_topics(self):
        for loans in (False, True):
            (a, of_a), (b, of_b) = (
                self.ends(f"{name} {loans}", int, depth=64) for name in ("a", "b")
            )
            both = threading.Barrier(2)

            def to(other):
                first = [True]

                def function(sample):
                    if sample.value == 0:
                        if first.pop() if first else False:
                            both.wait(WATCHDOG)
                        if loans:
                            with other.loan() as loan:
                                loan.value = 1
                                loan.publish()
                        else:
                            other.publish(1)

                return function

            callbacks = of_a.on_sample(to(b)), of_b.on_sample(to(a))

            def publish(publisher):
                for _ in range(10):
                    publisher.publish(0)

            threads = [
                threading.Thread(target=publish, args=(it,), daemon=True) for it in (a, b)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(WATCHDOG)
                self.assertFalse(thread.is_alive(), "it hangs")
            self.until("all calls", lambda: all(it.calls == 20 for it in callbacks))
            for callback in callbacks:
                callback.close()

    def test_a_callback_ends_while_another_one_waits_for_that(self):
        topic = self.node.topic("main", int)
        publisher = topic.publisher()
        first, second = topic.subscriber(), topic.subscriber()
        self.assertTrue(publisher.wait_for_match(2, WATCHDOG))
        others = []

        def function(_):
            thread = threading.Thread(target=others.pop().close)
            thread.start()
            thread.join()

        callback = first.on_sample(function)
        others.append(second.on_sample(lambda _: None))
        thread = threading.Thread(target=publisher.publish, args=(1,), daemon=True)
        thread.start()
        thread.join(WATCHDOG)
        self.assertFalse(thread.is_alive(), "it hangs")
        callback.close()


if __name__ == "__main__":
    unittest.main()
