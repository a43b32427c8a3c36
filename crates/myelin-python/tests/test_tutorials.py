"""The programs of the README, the tutorials and silent-topic.md, as they stand there."""

import os
import pathlib
import re
import sys
import tempfile
import unittest

import myelin
from support import WATCHDOG, Case

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Tutorials(Case):
    def setUp(self):
        super().setUp()
        programs = tempfile.TemporaryDirectory()
        self.addCleanup(programs.cleanup)
        self.programs = pathlib.Path(programs.name)

    def save(self, page):
        """Each block in Python, in a file that the comment of its first line names."""
        for block in re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S):
            name = re.search(r"# (\w+\.py)$", block.partition("\n")[0])
            (self.programs / (name[1] if name else "program.py")).write_text(block)

    def run_program(self, name):
        # Warnings are errors, but for the handles that a short program leaves to the interpreter's end.
        command = [sys.executable, "-X", "dev", "-W", "ignore::ResourceWarning", self.programs / name]
        return self.program(list(map(str, command)), PYTHONPATH=os.pathsep.join(sys.path))

    def said(self, program):
        text = program.stdout.read()
        self.assertEqual(program.wait(WATCHDOG), 0, text)
        return text.splitlines()

    def test_readme(self):
        self.save("README.md")
        self.assertEqual(self.said(self.run_program("program.py")), ["128.0"])

    def test_first_topic(self):
        self.save("docs/tutorials/first-topic.md")
        both = [self.run_program("hello.py") for _ in range(2)]
        for program in both:
            self.assertEqual(self.said(program), ["hello from Python"] * 2)

    def test_camera_to_numpy(self):
        self.save("docs/tutorials/camera-to-numpy.md")
        # The viewer gives up after 10 s; on a busy machine the camera may take longer to start.
        viewer = self.programs / "viewer.py"
        viewer.write_text(viewer.read_text().replace("timeout=10", f"timeout={WATCHDOG}", 1))
        viewing = self.run_program("viewer.py")
        self.until(
            "the viewer's subscriber",
            lambda: any(end.topic == "image" for end in self.node.graph().endpoints),
        )
        self.said(self.run_program("camera.py"))
        # A machine that holds the viewer up may cost it images, but never the last one.
        last = next(line for line in viewing.stdout if line.startswith("89: "))
        self.assertRegex(last, r"^89: \(480, 640, 3\), mean 89, \d+\.\d\d ms after its stamp$")

    def test_silent_topic(self):
        self.save("docs/how-to/silent-topic.md")
        publisher = self.node.topic("scan", float, transient_local=1).publisher()
        publisher.publish(1.5)
        listener = myelin.Node("listener", runtime_dir=self.folder)
        self.addCleanup(listener.close)
        subscriber = listener.topic("scan", float).subscriber()
        said = [line.strip() for line in self.said(self.run_program("look.py"))]
        of_test = f"(process {os.getpid()})"
        self.assertIn(f"'scan': publisher of test {of_test}: depth 8, transient local 1, published 1", said)
        self.assertIn(f"'scan': subscriber of listener {of_test}: depth 8, transient local 0, lost 0", said)
        self.assertIn(f"matched: test {of_test}", said)
        self.assertEqual(said.count("type: f64"), 2)
        self.assertIsNone(subscriber.take())


if __name__ == "__main__":
    unittest.main()
