"""The stubs say what the module has, no more and no less, and what 0.1.0 had is still there."""

import ast
import inspect
import os
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

    def test_they_have_each_function_s_arguments(self):
        compared = 0
        for path, stub in self.functions():
            owner, _, name = path.rpartition(".")
            if owner.startswith("_") or name.startswith("__") and name != "__init__":
                continue  # of a base, or what Python calls
            of = getattr(myelin, owner) if owner else myelin
            real = of if name == "__init__" else getattr(of, name)
            real = [it for it in inspect.signature(real).parameters.values() if it.name != "self"]
            told = arguments(stub)
            names = [(it.name, it.kind.name) for it in real if it.kind != it.VAR_KEYWORD]
            self.assertEqual([(name, kind) for name, kind, _ in told], names, path)
            is_one_of_several = "overload" in map(ast.unparse, stub.decorator_list)
            for (name, _, default), it in zip(told, real):
                if default != "..." and (default or not is_one_of_several):
                    is_required = it.default is it.empty
                    self.assertEqual(default, None if is_required else repr(it.default), f"{path} {name}")
            compared += 1
        self.assertGreater(compared, 80)

    def test_programs_of_0_1_0_find_what_they_call(self):
        """What goes or changes fails. `MYELIN_WRITE=1` adds what is new to the list, and never removes a line."""
        text = LIST.read_text()
        heads = [line for line in text.splitlines() if line.startswith("#")]
        kept, now = {line for line in text.splitlines() if not line.startswith("#")}, self.lines()
        self.assertFalse(
            kept - now,
            f"To break it on purpose in a minor release, delete these lines of {LIST.name} and say **Breaking** in "
            "CHANGELOG.md",
        )
        if "MYELIN_WRITE" in os.environ:
            LIST.write_text("".join(f"{line}\n" for line in [*heads, *sorted(now)]))
        else:
            self.assertFalse(now - kept, f"not in {LIST.name} yet: MYELIN_WRITE=1 scripts/python test adds it")

    def functions(self):
        """Each function of the stubs by its path; one with several forms comes several times."""
        for it in self.top:
            if isinstance(it, ast.FunctionDef):
                yield it.name, it
        for name, stub in self.classes.items():
            for it in stub.body:
                is_value = isinstance(it, ast.FunctionDef) and any(
                    ast.unparse(decorator).endswith(("property", "setter")) for decorator in it.decorator_list
                )
                if isinstance(it, ast.FunctionDef) and not is_value:
                    yield f"{name}.{it.name}", it

    def lines(self):
        """A line for each name, argument, value and word that is one of several. An optional argument that comes
        is one more line; types of arguments may be extended."""
        lines = {f"value {ast.unparse(it)}" for it in self.top if isinstance(it, ast.Assign)}
        for it in self.top:
            if isinstance(it, ast.AnnAssign):
                lines |= words(it.target.id, it)
        for name, stub in self.classes.items():
            lines.add(f"class {name}({', '.join(map(ast.unparse, stub.bases))})")
            for it in stub.body:
                if isinstance(it, ast.AnnAssign):
                    lines.add(f"value {name}.{it.target.id}: {type_of(it.annotation)}")
                elif isinstance(it, ast.FunctionDef):
                    lines |= words(f"{name}.{it.name}", it)
                    for decorator in map(ast.unparse, it.decorator_list):
                        if decorator == "property":
                            lines.add(f"value {name}.{it.name}: {type_of(it.returns)}")
                        elif decorator.endswith("setter"):
                            lines.add(f"settable {name}.{it.name}")
        for path, stub in self.functions():
            lines.add(f"function {path} -> {type_of(stub.returns)}")
            told = arguments(stub)
            for place, (name, kind, default) in enumerate(told):
                place = place if kind == "POSITIONAL_OR_KEYWORD" else kind.lower()
                lines.add(f"argument {path} {place} {name}{f' = {default}' if default else ''}")
            required = [name for name, kind, default in told if not default and not kind.startswith("VAR")]
            lines.add(f"required {path}({', '.join(required)})")
        return lines


def words(path, stub):
    """A line for each string of a Literal."""
    literals = [it for it in ast.walk(stub) if isinstance(it, ast.Subscript) and ast.unparse(it.value) == "Literal"]
    constants = [it for literal in literals for it in ast.walk(literal.slice) if isinstance(it, ast.Constant)]
    return {f"word {path} {it.value!r}" for it in constants if isinstance(it.value, str)}


def type_of(annotation):
    """As it is written; strings of a Literal may come."""
    is_words = isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Literal"
    return "Literal" if is_words else ast.unparse(annotation)


def arguments(stub):
    """Name, kind and default of each argument but `self` and settings."""
    args = stub.args
    positional = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(positional) - len(args.defaults)) + args.defaults
    kinds = ["POSITIONAL_ONLY"] * len(args.posonlyargs) + ["POSITIONAL_OR_KEYWORD"] * len(args.args)
    told = [*zip(positional, kinds, defaults)]
    told += [(args.vararg, "VAR_POSITIONAL", None)] * bool(args.vararg)
    told += [(it, "KEYWORD_ONLY", default) for it, default in zip(args.kwonlyargs, args.kw_defaults)]
    return [(it.arg, kind, default and ast.unparse(default)) for it, kind, default in told if it.arg != "self"]


# Of 0.1.0, with what came later.
LIST = pathlib.Path(__file__).resolve().parents[1] / "api.txt"


if __name__ == "__main__":
    unittest.main()
