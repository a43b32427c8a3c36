"""The examples that are in Python alone, and what an example does with another one's type. The examples that are in
four languages are run in every pair of languages by crates/myelin-c/tests/examples.rs."""

import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import WATCHDOG, Case

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples"
TYPED = EXAMPLES / "python/typed.py"


def needs(module):
    return unittest.skipUnless(importlib.util.find_spec(module), f"left out: no {module}")


class Alone(Case):
    def start(self, name, *arguments):
        return self.program([sys.executable, "-X", "dev", str(EXAMPLES / "python" / name), *arguments])

    def said(self, program):
        text = program.stdout.read()
        self.assertEqual(program.wait(WATCHDOG), 0, text)
        return text.splitlines()

    def both(self, name):
        """The output of an example's subscriber."""
        subscriber = self.start(name, "subscribe")
        self.said(self.start(name, "publish"))
        return self.said(subscriber)

    def test_point_cloud(self):
        said = self.both("point_cloud.py")
        self.assertEqual(said, [f"scan {it}: {10_000 + it} points at 5.0 m, z {it} m" for it in range(10)])

    def test_topics(self):
        """It prints a topic of each language's making, and says of a silent one that it is."""
        publishers = [
            self.node.topic("imu", (float, [float]), transient_local=1).publisher(),
            self.node.topic("count", int, transient_local=1).publisher(),
            self.node.topic("silent", int).publisher(),
        ]
        publishers[0].publish((0.5, [1, 2]))
        publishers[1].publish(7)
        said = self.said(self.start("topics.py", "0.05"))
        self.assertEqual(said[:2], ["count 7", "imu {'header': 0.5, 'slice': [1.0, 2.0]}"])
        self.assertEqual(said[2:], ["silent is silent"])

    @needs("torch")
    def test_pytorch_tensor(self):
        said = self.both("pytorch_tensor.py")
        self.assertEqual(said, [f"tensor {it}: mean {it / 10}" for it in range(10)])

    @needs("cv2")
    def test_opencv_camera(self):
        import cv2
        import numpy

        with tempfile.TemporaryDirectory() as folder:
            video, last = f"{folder}/video.avi", f"{folder}/last.png"
            writer = cv2.VideoWriter(video, cv2.VideoWriter_fourcc(*"MJPG"), 30, (320, 240))
            for brightness in (0, 50, 100):
                writer.write(numpy.full((240, 320, 3), brightness, numpy.uint8))
            writer.release()
            viewer = self.start("opencv_camera.py", "view", "--save", last)
            self.until(
                "the viewer's subscriber",
                lambda: any(end.topic == "camera" for end in self.node.graph().endpoints),
            )
            self.assertEqual(self.said(self.start("opencv_camera.py", "publish", video)), ["published 3 images of 320 x 240"])
            self.assertEqual(self.said(viewer), ["the last image was number 2"])
            self.assertAlmostEqual(cv2.imread(last).mean(), 100, delta=3)  # JPEG loses a little

    @unittest.skipUnless(shutil.which("systemd-analyze"), "left out: no systemd-analyze")
    def test_systemd_units(self):
        units = [path for path in (EXAMPLES / "systemd").iterdir() if path.suffix in (".service", ".target")]
        self.assertEqual(len(units), 3)
        verify = ["systemd-analyze", "verify", "--man=no", *map(str, units)]
        verified = subprocess.run(verify, capture_output=True, text=True, timeout=WATCHDOG)
        self.assertEqual((verified.returncode, verified.stderr), (0, ""))


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
