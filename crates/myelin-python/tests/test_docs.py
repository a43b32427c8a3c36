"""The Python and the TOML in the docs can be read, and the programs of the reference run."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

from support import WATCHDOG, Case

ROOT = pathlib.Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page, language="python"):
    block = rf"^```{language}\n(.*?)^```$"
    return re.findall(block, page.read_text(), re.DOTALL | re.MULTILINE)


class Docs(Case):
    def test_each_block_is_python(self):
        # Those of guide.md are pieces of programs: examples/rust/tests/guide.rs compares them.
        found = [(page, block) for page in PAGES if page.name != "guide.md" for block in blocks(page)]
        self.assertGreaterEqual(len(found), 3)
        for page, block in found:
            with self.subTest(page.name, block=block):
                compile(block, str(page), "exec")

    @unittest.skipIf(sys.version_info < (3, 11), "it has no tomllib")
    def test_each_file_of_settings_is_toml(self):
        import tomllib

        found = [(page, block) for page in PAGES for block in blocks(page, "toml")]
        self.assertGreaterEqual(len(found), 3)
        for page, block in found:
            with self.subTest(page.name, block=block):
                tomllib.loads(block)

    def test_the_programs_of_the_reference_run(self):
        programs = blocks(ROOT / "docs/reference/python.md")
        self.assertGreaterEqual(len(programs), 2)
        for program in programs:
            ran = subprocess.run(
                [sys.executable, "-c", program],
                env={**os.environ, "MYELIN_RUNTIME_DIR": self.folder},
                cwd=self.folder,
                capture_output=True,
                text=True,
                timeout=WATCHDOG,
            )
            self.assertEqual(ran.returncode, 0, program + ran.stderr)
