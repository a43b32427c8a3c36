"""The stubs say what the module has, no more and no less."""

import ast
import pathlib
import unittest

import myelin


class Stubs(unittest.TestCase):
    def setUp(self):
        source = pathlib.Path(myelin.__file__).with_suffix(".pyi").read_text()
        self.top = ast.parse(source).body
        self.classes = {it.name: it for it in self.top if isinstance(it, ast.ClassDef)}

    def members(self, name):
        """The public names of a stub, with those of its bases."""
        names = set()
        for each in self.classes[name].body:
            if isinstance(each, ast.FunctionDef):
                names.add(each.name)
            elif isinstance(each, ast.AnnAssign):
                names.add(each.target.id)
        for base in self.classes[name].bases:
            base = base.value if isinstance(base, ast.Subscript) else base
            if base.id in self.classes:
                names |= self.members(base.id)
        return {it for it in names if not it.startswith("_")}

    def test_they_have_the_module_s_names(self):
        told = {it.name for it in self.top if isinstance(it, (ast.ClassDef, ast.FunctionDef))}
        told |= {it.targets[0].id for it in self.top if isinstance(it, ast.Assign)}
        self.assertEqual({it for it in told if not it.startswith("_")} - {"T", "Q", "R"},
                         set(myelin.__all__))

    def test_they_have_each_class_s_members(self):
        for name in self.classes:
            it = getattr(myelin, name, None)
            if it is None or issubclass(it, Exception):
                continue
            has = {each for each in dir(it) if not each.startswith("_")}
            has |= set(getattr(it, "__dataclass_fields__", ()))
            self.assertEqual(self.members(name), has, name)


if __name__ == "__main__":
    unittest.main()
