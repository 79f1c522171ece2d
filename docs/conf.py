"""What Sphinx is told; `scripts/docs` runs it with warnings as errors."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER.parent), str(FOLDER)]

import decided  # noqa: E402 - both lie beside this file or above it
from sphinx.util import logging  # noqa: E402

import detmap  # noqa: E402

project, author, copyright = "detmap", "The detmap developers", "The detmap developers"
version = release = detmap.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "_made", "notebooks"]  # what is made is included by pages
html_theme = "furo"  # light and dark, for phones too; asks for nothing from elsewhere
html_title = "detmap"
html_theme_options = {"navigation_with_keys": True}
html_show_sourcelink = False
html_copy_source = False
smartquotes = False  # quotes in docstrings are Python's
toc_object_entries_show_parents = "hide"

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
autodoc_typehints = "none"  # the docstrings say types, with shapes
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
napoleon_google_docstring = False
napoleon_use_param = napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]  # a list, as of parameters, rather than an entry each
default_role = "py:obj"  # `name` in a docstring is a link where the name has an entry
nitpicky = True

#: Modules each of whose public names has an entry in the reference.
COMPLETE = (
    "detmap",
    "detmap.batch",
    "detmap.checks",
    "detmap.formats",
    "detmap.masks",
    "detmap.diagnostics",
    "detmap.panoptic",
    "detmap.pytrec_eval",
    "detmap.ranx",
    "detmap.retrieval",
    "detmap.shapes",
    "detmap.statistics",
)


def _forgive(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Leave a name in single backticks, or a word of a type in a docstring, as it is where it has no entry."""
    return content if node["reftype"] == "obj" or node.get("refspecific") else None


def _skip(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what a named tuple says of its fields; its docstring says more."""
    return True if (getattr(member, "__doc__", None) or "").startswith("Alias for field number") else None


def _complete(app: Any, env: Any) -> None:
    """Warn of public names without an entry."""
    entries = env.get_domain("py").objects
    for module in COMPLETE:
        for name in importlib.import_module(module).__all__:
            if f"{module}.{name}" not in entries:
                logging.getLogger(__name__).warning("%s.%s has no entry in the reference", module, name)


def _reach_by_keyboard(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Let the keyboard reach what scrolls sideways on narrow windows: code and tables."""
    body = context.get("body", "").replace("<pre>", '<pre tabindex="0">')
    context["body"] = body.replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')


def setup(app: Any) -> None:
    """Make the pages that follow from declarations, and add what is above."""
    decided.write(FOLDER / "_made")
    app.connect("autodoc-skip-member", _skip)
    app.connect("missing-reference", _forgive)
    app.connect("html-page-context", _reach_by_keyboard)
    app.connect("env-check-consistency", _complete)
