"""Python and Rust in processes of their own: samples both ways, services, deaths, signals."""

import os
import signal
import unittest

import myelin
from support import WATCHDOG, Case
from test_types import Frame, ImuData

PEER = os.environ.get("MYELIN_PEER")
with_peer = unittest.skipUnless(PEER, "MYELIN_PEER names the Rust program")


class Pairs(Case):
    @with_peer
    def test_there_and_back(self):
        self.program([PEER, "echo"])
        settings = {"reliable": WATCHDOG, "depth": 64}
        with (
            self.node.topic("to-rust", ImuData, **settings).publisher() as publisher,
            self.node.topic("to-python", ImuData, **settings).subscriber() as subscriber,
        ):
            self.assertTrue(publisher.wait_for_match(1, WATCHDOG))
            self.assertTrue(subscriber.wait_for_match(1, WATCHDOG))
            for stamp in range(200):
                with publisher.loan() as loan:
                    loan.value = ImuData(stamp, (0.0, 1.0, 9.81), 21.5)
                    loan.publish()
                got = subscriber.receive(WATCHDOG).value
                self.assertEqual(got, ImuData(stamp + 1, (0.0, 1.0, 9.81), 21.5))
            self.assertEqual(subscriber.lost, 0)

    @with_peer
    def test_services_both_ways(self):
        self.program([PEER, "serve"])
        client = self.node.client("scale", [float], [float])
        self.assertEqual(client.call([1.0, 2.5], WATCHDOG).value, [2.0, 5.0])
        client.close()

    @with_peer
    def test_a_client_in_rust(self):
        with self.node.service("scale", [float], [float]) as service:
            other = self.program([PEER, "call"])
            request = service.receive(WATCHDOG)
            request.reply([3 * each for each in request.value])
            self.assertEqual(other.stdout.read(), "[3.0, 7.5]\n")

    def test_what_is_published_at_once_by_a_new_publisher_arrives(self):
        source = """
topics = [node.topic(f"new {number}").subscriber() for number in range(31)]
print("open", flush=True)
topics[30].receive(WATCHDOG)
print(sum(topic.take() is not None for topic in topics[:30]), flush=True)
"""
        other = self.start(source)
        self.assertEqual(other.stdout.readline(), "open\n")
        # By default 20 ms, in which a busy machine may not run the other process.
        node = myelin.Node("patient", runtime_dir=self.folder, match_limit=WATCHDOG)
        self.addCleanup(node.close)
        publishers = []
        for number in range(31):
            publishers.append(node.topic(f"new {number}").publisher())
            if number == 30:
                self.assertTrue(publishers[-1].wait_for_match(1, WATCHDOG))
            publishers[-1].publish(b"first")
        self.assertEqual(int(other.stdout.readline()), 30)
        for publisher in publishers:
            publisher.close()

    def test_python_to_python(self):
        source = """
from_other = node.topic("there").subscriber()
back = node.topic("back").publisher()
for sample in from_other:
    back.publish(bytes(sample) * 2)
    if sample.nbytes == 100_000:
        break
"""
        with (
            self.node.topic("there").publisher() as publisher,
            self.node.topic("back").subscriber() as subscriber,
        ):
            other = self.start(source)
            self.assertTrue(publisher.wait_for_match(1, WATCHDOG))
            self.assertTrue(subscriber.wait_for_match(1, WATCHDOG))
            for length in (1, 100, 100_000):
                publisher.publish(b"x" * length)
                self.assertEqual(subscriber.receive(WATCHDOG).nbytes, 2 * length)
            self.assertEqual(other.wait(WATCHDOG), 0)


class Deaths(Case):
    def died(self, end):
        return any(event.died for event in end.events() if event.kind == "unmatched")

    @with_peer
    def test_a_publisher_of_rust_is_killed(self):
        with self.node.topic("flood", (Frame, bytes)).subscriber() as subscriber:
            for _ in range(3):
                other = self.program([PEER, "flood"])
                kept = []
                while len(kept) < 5:
                    sample = subscriber.receive(WATCHDOG)
                    kept.append((sample.header.stamp_ns, memoryview(sample)[16:]))
                other.kill()
                self.until("the word of its death", lambda: self.died(subscriber))
                for stamp, pixels in kept:
                    self.assertEqual(bytes(pixels), bytes([stamp % 256]) * (1440 * 1080))
                del kept, pixels, sample
                while subscriber.take():
                    pass

    def test_a_subscriber_of_python_is_killed_with_samples_in_hand(self):
        source = """
kept = []
for sample in node.topic("t").subscriber():
    kept = kept[-3:] + [memoryview(sample)]
    print(len(kept), flush=True)
"""
        with self.node.topic("t").publisher(memory_max=1 << 20) as publisher:
            for _ in range(3):
                other = self.start(source)
                self.assertTrue(publisher.wait_for_match(1, WATCHDOG))
                for _ in range(5):
                    publisher.publish(bytes(10_000))
                    self.assertTrue(other.stdout.readline())
                other.kill()
                self.until("the word of its death", lambda: self.died(publisher))
            for _ in range(500):  # what the dead have held is there again
                publisher.publish(bytes(10_000))

    def test_a_publisher_of_python_is_killed(self):
        source = """
publisher = node.topic("t").publisher()
publisher.wait_for_match(1, WATCHDOG)
while True:
    with publisher.loan(10_000) as loan:
        with memoryview(loan) as view:
            view[:] = b"x" * 10_000
        loan.publish()
"""
        with self.node.topic("t").subscriber() as subscriber:
            for _ in range(3):
                other = self.start(source)
                for _ in range(20):
                    self.assertEqual(bytes(subscriber.receive(WATCHDOG)), b"x" * 10_000)
                other.kill()
                self.until("the word of its death", lambda: self.died(subscriber))
                while subscriber.take():
                    pass

    def test_a_server_is_killed(self):
        source = """
import signal
service = node.service("slow", int, int)
request = service.receive(WATCHDOG)
print("asked", flush=True)
signal.pause()
"""
        with self.node.client("slow", int, int) as client:
            other = self.start(source)
            end = self.in_thread(lambda: client.call(1, WATCHDOG))
            self.assertEqual(other.stdout.readline(), "asked\n")
            other.kill()
            with self.assertRaises(myelin.ServerGone):
                end()


class Signals(Case):
    def test_ctrl_c_ends_a_wait(self):
        source = """
subscriber = node.topic("t").subscriber()
try:
    print("ready", flush=True)
    subscriber.receive()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
        other = self.start(source)
        self.assertEqual(other.stdout.readline(), "ready\n")
        other.send_signal(signal.SIGINT)
        self.assertEqual(other.stdout.readline(), "interrupted\n")
        self.assertEqual(other.wait(WATCHDOG), 0)

    def test_a_handler_that_raises_nothing_lets_the_wait_go_on(self):
        source = """
import os, signal
seen = []
signal.signal(signal.SIGUSR1, lambda *_: (seen.append(1), print("seen", flush=True)))
subscriber = node.topic("t").subscriber()
print("ready", flush=True)
print(bytes(subscriber.receive()), len(seen), flush=True)
"""
        with self.node.topic("t").publisher() as publisher:
            other = self.start(source)
            self.assertEqual(other.stdout.readline(), "ready\n")
            for _ in range(20):
                other.send_signal(signal.SIGUSR1)
                self.assertEqual(other.stdout.readline(), "seen\n")
            self.assertTrue(publisher.wait_for_match(1, WATCHDOG))
            publisher.publish(b"x")
            self.assertEqual(other.stdout.readline(), "b'x' 20\n")

    def test_signals_beside_samples_lose_neither(self):
        source = """
import signal
seen = []
signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
subscriber = node.topic("t", int, depth=10_000).subscriber()
print("ready", flush=True)
taken = [subscriber.receive(WATCHDOG).value for _ in range(2000)]
print(taken == list(range(2000)), len(seen) > 0, flush=True)
"""
        with self.node.topic("t", int, depth=10_000).publisher() as publisher:
            other = self.start(source)
            self.assertEqual(other.stdout.readline(), "ready\n")
            self.assertTrue(publisher.wait_for_match(1, WATCHDOG))
            for number in range(2000):
                if number % 3 == 0:
                    other.send_signal(signal.SIGUSR1)
                publisher.publish(number)
            self.assertEqual(other.stdout.readline(), "True True\n")


if __name__ == "__main__":
    unittest.main()
