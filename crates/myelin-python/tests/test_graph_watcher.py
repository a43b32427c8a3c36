"""Graph watchers: rates, matches and silence, of this process and another one."""

import os
import pathlib
import signal
import sys
import threading
import unittest

import myelin
from support import WATCHDOG, Case

OTHER = """
publisher = node.topic("imu").publisher()
for sample in node.topic("more").subscriber():
    publisher.publish(bytes(sample))
"""


class GraphWatchers(Case):
    def other(self):
        """A process that publishes `imu` when it gets `more`."""
        process = self.start(OTHER)
        self.until("the process", lambda: self.more.matched == 1 and self.imu.matched == 1)
        return process

    def stop(self, process):
        os.kill(process.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, process.pid, signal.SIGCONT)
        # The signal is on its way when `kill` returns.
        stat = pathlib.Path(f"/proc/{process.pid}/stat")
        self.until("the stop", lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")

    def publish(self, samples):
        for _ in range(samples):
            self.more.publish(b"more")
            self.assertIsNotNone(self.imu.receive(WATCHDOG))

    def setUp(self):
        super().setUp()
        self.more = self.node.topic("more").publisher()
        self.imu = self.node.topic("imu").subscriber()
        self.addCleanup(self.more.close)
        self.addCleanup(self.imu.close)
        self.watcher = self.node.watch_graph("im?")

    def publisher(self, within=WATCHDOG):
        """The status, and that of the only publisher of `imu` in it."""
        status = self.watcher.update(within)
        publishers = status.topic("imu").publishers
        return status, publishers[0] if publishers else None

    def test_rates_mismatches_silence_and_ends(self):
        self.assertEqual((self.watcher.status.at_ns, self.watcher.changes()), (0, []))
        other = self.other()
        self.publish(5)
        status, publisher = self.publisher()
        self.assertEqual((status.since_ns, publisher.rate_hz, publisher.info.published), (None, None, 5))
        self.assertEqual([kind for kind, _ in self.watcher.changes()], ["found", "found"])
        self.assertIs(self.watcher.status, status)
        before_ns, first = publisher.counted_ns, publisher.info.id

        self.publish(7)
        refused = self.node.topic("imu", reliable=WATCHDOG, matching="requested_offered").subscriber()
        with refused:
            status, publisher = self.publisher()
            seconds = (publisher.counted_ns - before_ns) / 1e9
            self.assertEqual((publisher.info.published, round(publisher.rate_hz * seconds)), (12, 7))
            topic = status.topic("imu")
            self.assertEqual((topic.rate_hz, topic.refused, len(topic.subscribers)), (publisher.rate_hz, 1, 2))
            reasons = [match for match in publisher.matches if match.state == "refused"]
            self.assertEqual(len(reasons), 1)
            self.assertEqual((reasons[0].setting, reasons[0].offered), ("reliability", "best effort"))
            self.assertEqual(status.node(reasons[0].node).info.name, "test")
            self.assertIn("reliable", reasons[0].reason)
        self.assertIsNone(status.topic("odometry"))

        self.stop(other)
        status, publisher = self.publisher(0.02)
        self.assertIn(publisher.info.node, status.silent)
        node = status.node(publisher.info.node)
        self.assertEqual((node.info.pid, node.is_silent, publisher.is_silent), (other.pid, True, True))
        self.assertGreater(node.memory_bytes, 0)
        self.assertEqual((publisher.info.published, publisher.info.id), (12, first))
        self.assertIn("matched", [match.state for match in publisher.matches])
        os.kill(other.pid, signal.SIGCONT)
        self.until("an answer", lambda: not self.publisher()[1].is_silent)

        other.kill()
        self.until("the end", lambda: self.publisher()[1] is None)
        self.assertEqual([kind for kind, _ in self.watcher.changes()], ["gone"])
        self.assertEqual(self.watcher.status.topic("imu").rate_hz, 0.0)
        self.other()
        self.publish(3)
        _, publisher = self.publisher()
        self.assertEqual((publisher.info.published, publisher.rate_hz), (3, None))
        self.assertNotEqual(publisher.info.id, first)

    def test_the_supervisor_of_the_docs_names_what_is_wrong(self):
        page = pathlib.Path(__file__).parents[3] / "docs/how-to/supervise.md"
        program = page.read_text().split("```python\n")[1].split("```")[0]
        supervisor = self.program([sys.executable, "-u", "-c", program.replace("sleep(1)", "sleep(0.01)")])

        def said(line):
            while line not in (now := supervisor.stdout.readline().strip()):
                self.assertNotEqual(now, "", "it has ended")

        said("scan: 0.0 Hz, not 9")
        other = self.other()
        said("imu: found a publisher")
        said("imu: 0.0 Hz, not 90")
        with self.node.topic("imu", reliable=WATCHDOG, matching="requested_offered").subscriber():
            said("imu: reliability: the publisher offers best effort")
        self.stop(other)
        said(f"other, process {other.pid}: stopped")
        other.kill()
        said("imu: gone a publisher")

    def test_other_threads_run_while_it_waits(self):
        other = self.other()
        self.stop(other)
        ticks = threading.Event()
        end = self.in_thread(lambda: self.watcher.update(WATCHDOG))

        def is_busy():
            try:
                self.watcher.update(0)
            except myelin.Busy:
                ticks.set()
            return ticks.is_set()

        self.until("a refusal in this thread", is_busy)
        os.kill(other.pid, signal.SIGCONT)
        self.assertEqual(end().silent, [])

    def test_a_signal_handler_ends_an_update(self):
        other = self.other()
        self.stop(other)

        def interrupt(_number, _frame):
            raise KeyboardInterrupt

        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, interrupt))
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with self.assertRaises(KeyboardInterrupt):
            self.watcher.update(WATCHDOG)


if __name__ == "__main__":
    unittest.main()
