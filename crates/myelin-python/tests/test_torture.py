"""The torture program for a moment; `scripts/python torture` runs it for a minute."""

import os
import subprocess
import sys
import unittest

from support import WATCHDOG


class Torture(unittest.TestCase):
    def test_every_message_is_accounted_for(self):
        program = os.path.join(os.path.dirname(__file__), "torture.py")
        # By itself: what it leaves behind is counted.
        ran = subprocess.run(
            [sys.executable, "-X", "dev", program, "--seconds", "2"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=4 * WATCHDOG,
        )
        self.assertEqual(ran.returncode, 0, ran.stdout)


if __name__ == "__main__":
    unittest.main()
