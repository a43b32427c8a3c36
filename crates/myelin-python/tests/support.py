"""Shared by the tests: a node in a folder of its own, a watchdog, other processes."""

import faulthandler
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import myelin

# Nothing in these tests takes nearly so long.
WATCHDOG = 60.0


class Case(unittest.TestCase):
    def setUp(self):
        faulthandler.dump_traceback_later(4 * WATCHDOG, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.node = myelin.Node("test", runtime_dir=self.folder)
        self.addCleanup(self.node.close)

    def ends(self, name="topic", type=bytes, *, publisher={}, subscriber={}, **settings):
        """Both ends of a topic, matched."""
        topic = self.node.topic(name, type, **settings)
        ends = topic.publisher(**publisher), topic.subscriber(**subscriber)
        for end in ends:
            self.addCleanup(end.close)
            self.assertTrue(end.wait_for_match(1, WATCHDOG))
        return ends

    def start(self, source, *arguments, **environment):
        """A process of Python with `node`, `myelin` and `WATCHDOG`; its output is read by lines."""
        # Tests that run in the background of a script are deaf to Ctrl-C, and so would this process be.
        begin = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        # PR_SET_PDEATHSIG: a test that the watchdog ends takes its processes along.
        begin += "import ctypes; ctypes.CDLL(None).prctl(1, signal.SIGKILL)\n"
        begin += f"import myelin, sys; WATCHDOG = {WATCHDOG}\n"
        begin += "node = myelin.Node('other')\n"
        command = [sys.executable, "-X", "dev", "-c", begin + source, *arguments]
        return self.program(command, **environment)

    def program(self, command, **environment):
        environment = {**os.environ, "MYELIN_RUNTIME_DIR": self.folder, **environment}
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def until(self, what, is_so):
        begun = time.monotonic()
        while not is_so():
            self.assertLess(time.monotonic() - begun, WATCHDOG, f"waited in vain for: {what}")
            time.sleep(0.001)

    def in_thread(self, function):
        """Runs it beside; the returned function waits for what it returns or raises."""
        outcome = []

        def run():
            try:
                outcome.append((function(), None))
            except BaseException as error:
                outcome.append((None, error))

        thread = threading.Thread(target=run)
        thread.start()

        def end():
            thread.join(WATCHDOG)
            self.assertFalse(thread.is_alive(), "the thread has not ended")
            result, error = outcome[0]
            if error is not None:
                raise error
            return result

        return end
