"""The documentation's site: `make docs` makes it from the Markdown files of docs/ and of the examples."""

import pathlib
import re
import tomllib

repository = pathlib.Path(__file__).parents[2]
with open(repository / "Cargo.toml", "rb") as file:
    release = tomllib.load(file)["workspace"]["package"]["version"]

project = "Myelin"
author = "The Myelin authors"
copyright = "2026, the Myelin authors"
version = release
extensions = ["myst_parser"]
root_doc = "index"
exclude_patterns = ["README.md", "pictures", "site"]
# Headings are link targets by the names that GitHub gives them.
myst_heading_anchors = 4
nitpicky = True
# An image with a width.
myst_enable_extensions = ["html_image"]
# `…` stands for lines that are left out, which no language's lexer knows.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = f"Myelin {release}"
templates_path = ["templates"]
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}


def link_to_files_outside(app, docname, source):
    """Markdown outside docs/ is no page of the site: a link to it gives the file."""
    source[0] = re.sub(r"\]\((\.\./\.\./[^)#]+\.md)(?:#[^)]*)?\)", r"](path:\1)", source[0])


def setup(app):
    app.connect("source-read", link_to_files_outside)
    return {"parallel_read_safe": True}
