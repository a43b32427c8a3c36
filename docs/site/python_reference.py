"""Writes the Python module's reference into the folder that is given, from its docstrings and type stubs."""

import pathlib
import sys
import typing

import pdoc

# Classes that are generic in the stubs alone would have its text.
typing.Generic.__doc__ = None
pdoc.render.configure(docformat="markdown", footer_text="Myelin", show_source=False)
pdoc.pdoc("myelin", output_directory=pathlib.Path(sys.argv[1]))
