"""Each example's two programs together, Python with Python and with Rust: both end by themselves and say
what they should."""

import os
import pathlib
import sys
import unittest

from support import WATCHDOG, Case

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples/python"
RUST = os.environ.get("MYELIN_RUST_EXAMPLES")

# Of each its name in Rust, its roles, and what it says: the number of lines and the last one.
PROGRAMS = {
    "hello": ("hello", 5, "4: hello, number 5"),
    "typed": ("typed", 5, "40000000 ns: [0.0, 0.0, 9.81] m/s², 21.5 °C"),
    "image": ("image", 10, "image 9: 4665600 B, brightness 9"),
    "queue_": ("queue", 1, "did 100000 jobs, lost 0, sum 4999950000"),
    "async_for": ("epoll", 10, "at 9 m, 0.5 m/s"),
    "two_hosts": ("two_hosts", 10, "at 9 m, 4.5 m, heading 0.25 rad"),
    "wait_set": ("wait_set", 11, None),
}


class Pairs(Case):
    def run_role(self, language, name, role):
        if language == "python":
            command = [sys.executable, "-X", "dev", str(EXAMPLES / f"{name}.py"), role]
        else:
            rust_name = PROGRAMS[name][0] if name in PROGRAMS else name
            path = pathlib.Path(RUST) / rust_name
            if not path.exists():
                self.skipTest(f"no example {rust_name} in Rust")
            command = [str(path), role]
        # Nothing leaves the host; a domain that no other test has a DDS participant in.
        network = {"MYELIN_INTERFACE": "lo", "MYELIN_PEERS": "127.0.0.1"}
        domain = str(os.getpid() % 200 + 10)
        return self.program(command, MYELIN_DOMAIN=domain, PYTHONUNBUFFERED="1", **network)

    def pair(self, name, publisher, subscriber):
        _, lines, last = PROGRAMS[name]
        takes = self.run_role(subscriber, name, "subscribe")
        gives = self.run_role(publisher, name, "publish")
        said, published = takes.stdout.read(), gives.stdout.read()
        self.assertEqual((takes.wait(WATCHDOG), gives.wait(WATCHDOG)), (0, 0), said)
        self.assertIn("published", published)
        self.assertEqual(len(said.splitlines()), lines, said)
        if last:
            self.assertEqual(said.splitlines()[-1], last)
        else:
            self.assertIn("5 m to the goal", said)

    def test_python_and_python(self):
        for name in PROGRAMS:
            with self.subTest(name):
                self.pair(name, "python", "python")

    @unittest.skipUnless(RUST, "MYELIN_RUST_EXAMPLES names the folder of the Rust programs")
    def test_python_and_rust(self):
        for name in PROGRAMS:
            for pair in [("python", "rust"), ("rust", "python")]:
                with self.subTest(name, pair=pair):
                    self.pair(name, *pair)

    def service(self, server, client):
        serves = self.run_role(server, "service", "serve")
        calls = self.run_role(client, "service", "call")
        self.assertTrue(calls.stdout.read().endswith("25601 points to 15 m, 20 m\n"))
        self.assertEqual(serves.stdout.read(), "planned 5 paths\n")

    def test_service(self):
        pairs = [("python", "python")]
        if RUST:
            pairs += [("python", "rust"), ("rust", "python")]
        for pair in pairs:
            with self.subTest(pair=pair):
                self.service(*pair)

    def test_typed_with_another_idea_of_the_type(self):
        takes = self.run_role("python", "typed", "subscribe")
        said = "no other program"
        while "no other program" in said:
            wrong = self.run_role("python", "typed", "subscribe-wrong")
            said = wrong.stdout.read()
            if takes.poll() is not None:  # who comes second is refused, and that may have been the right one
                takes = self.run_role("python", "typed", "subscribe")
        self.assertRegex(said, r"carries Imu.*not \[f32; 3\]")
        self.run_role("python", "typed", "publish")
        self.assertEqual(takes.wait(WATCHDOG), 0)


if __name__ == "__main__":
    unittest.main()
