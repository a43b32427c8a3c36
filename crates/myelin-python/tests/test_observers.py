"""Observers: tools that look at a topic without being known to its publishers."""

import threading
import unittest

import myelin
import numpy
from support import WATCHDOG, Case


class Observers(Case):
    def setUp(self):
        super().setUp()
        self.tool = myelin.Node("tool", runtime_dir=self.folder)
        self.addCleanup(self.tool.close)

    def test_samples_are_copies_and_publishers_do_not_know_it(self):
        observer = self.tool.topic("count", int).observer()
        publisher = self.node.topic("count", int).publisher(timestamps=True)
        before = myelin.now()
        publisher.publish(7)
        sample = observer.receive(WATCHDOG)
        self.assertEqual((sample.value, sample.missing, sample.nbytes, sample.length), (7, None, 8, 8))
        self.assertEqual((sample.sequence, sample.overwritten_before), (0, 0))
        self.assertEqual(sample.publisher, publisher.id)
        self.assertTrue(before <= sample.published_at <= myelin.now())
        self.assertEqual(publisher.matched, 0)
        publisher.publish(8)
        header = observer.receive_header(WATCHDOG)
        self.assertEqual((header.sequence, header.length), (1, 8))
        self.assertIn("sequence=1", repr(header))
        self.assertIsNone(observer.take())
        self.assertIsNone(observer.take_header())
        self.assertFalse(observer.wait(0))

    def test_every_sample_is_seen_or_counted(self):
        observer = self.tool.topic("count", int).observer()
        publisher = self.node.topic("count", int, depth=4).publisher()
        while not observer.publishers():
            pass
        for number in range(100):
            publisher.publish(number)
        seen = [observer.take_header() for _ in range(5)]
        seen = [(header.sequence, header.overwritten_before) for header in seen if header]
        self.assertEqual(seen[-1][0], 99)
        self.assertEqual(len(seen) + sum(missed for _, missed in seen), 100)
        (counts,) = observer.publishers()
        self.assertEqual(counts.seen + counts.overwritten, counts.published - counts.first)
        self.assertFalse(counts.has_gone)
        publisher.close()
        while not any(it.has_gone for it in observer.publishers()):
            observer.wait(0.01)
            observer.take()

    def test_a_payload_that_was_gone_is_an_error_and_its_header_is_there(self):
        observer = self.tool.topic("image").observer()
        publisher = self.node.topic("image").publisher()
        for length in (1000, 2000, 1000):
            publisher.publish(bytes(length))
        publisher.loan(1000).discard()
        publisher.loan(2000).discard()
        seen = []
        while len(seen) < 3:
            sample = observer.receive(WATCHDOG)
            seen.append((sample.length, sample.missing))
            with self.assertRaisesRegex(myelin.Closed, "another sample"):
                sample.value
        self.assertEqual(seen, [(1000, "reused"), (2000, "reused"), (1000, "reused")])

    def test_topics_of_learnt_types_and_arrays(self):
        publisher = self.node.topic("scan", [float]).publisher()
        observer = self.tool.any_topic("scan").observer()
        publisher.publish([0.5] * 1000)
        sample = observer.receive(WATCHDOG)
        self.assertEqual(sample.value, [0.5] * 1000)
        array = self.tool.topic("scan", [float]).observer
        own = array()
        publisher.publish([0.25] * 1000)
        numpy.testing.assert_array_equal(own.receive(WATCHDOG).array(), [0.25] * 1000)

    def test_close_and_interrupt_end_a_wait(self):
        observer = self.tool.topic("count", int).observer()
        self.assertGreater(observer.interval, 0)
        observer.interrupt()
        self.assertIsNone(observer.receive(WATCHDOG))
        thread = threading.Thread(target=lambda: list(observer))
        thread.start()
        observer.close()
        thread.join()
        with self.assertRaises(myelin.Closed):
            observer.take()


if __name__ == "__main__":
    unittest.main()
