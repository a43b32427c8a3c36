"""What an example does with another one's type. Each example's two programs together, in every pair of
languages, are crates/myelin-c/tests/examples.rs."""

import pathlib
import sys
import unittest

from support import WATCHDOG, Case

TYPED = pathlib.Path(__file__).resolve().parents[3] / "examples/python/typed.py"


class Typed(Case):
    def run_role(self, role):
        return self.program([sys.executable, "-X", "dev", str(TYPED), role])

    def test_with_another_idea_of_the_type(self):
        takes = self.run_role("subscribe")
        said = "no other program"
        while "no other program" in said:
            wrong = self.run_role("subscribe-wrong")
            said = wrong.stdout.read()
            if takes.poll() is not None:  # who comes second is refused, and that may have been the right one
                takes = self.run_role("subscribe")
        self.assertRegex(said, r"carries Imu.*not \[f32; 3\]")
        self.run_role("publish")
        self.assertEqual(takes.wait(WATCHDOG), 0)


if __name__ == "__main__":
    unittest.main()
