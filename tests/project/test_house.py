"""What ARCHITECTURE and CONTRIBUTING say of the sources: sizes of files and kernels, and names that are there."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

import detmap

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(ROOT.glob("detmap/**/*.py"))
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
NAME = re.compile(r"(?<![\w./-])detmap((?:\.[A-Za-z_]\w*)+)(?![\w/])")
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def docstrings(path):
    tree = ast.parse(path.read_text("utf-8"))
    return [ast.get_docstring(n) or "" for n in ast.walk(tree) if isinstance(n, FUNCTIONS | ast.ClassDef | ast.Module)]


def code_lines(function):
    """How many lines a function has without its docstring."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    own = function.end_lineno - function.lineno + 1
    return own - (first.end_lineno - first.lineno + 1) if documented else own


def test_no_file_of_the_package_the_scripts_or_the_tests_has_more_than_900_lines():
    files = [*SOURCES, *ROOT.glob("scripts/**/*.py"), *ROOT.glob("tests/**/*.py")]
    assert {str(path.relative_to(ROOT)) for path in files if len(path.read_text("utf-8").splitlines()) > 900} == set()


@pytest.mark.parametrize("path", sorted(ROOT.glob("detmap/kernels/*.py")), ids=lambda path: path.stem)
def test_kernels_have_at_most_8_arguments_and_60_lines_or_say_what_less_would_cost(path):
    """The comment or docstring of a larger one has a figure: so many percent, or times as long."""
    text = path.read_text("utf-8")
    for function in (node for node in ast.parse(text).body if isinstance(node, FUNCTIONS)):
        if function.decorator_list and (len(function.args.args) > 8 or code_lines(function) > 60):
            first = function.decorator_list[0].lineno
            above = text.split("\n")[max(first - 6, 0) : function.end_lineno]
            assert re.search(r"\d %|times as long", "\n".join(above)), f"{path.name}: {function.name}"


def resolved(name):
    """What an attribute path of detmap leads to; an error where it leads nowhere."""
    found = detmap
    for part in name.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_names_on_pages_are_there_after_import_detmap(path):
    """Apart from lines that import something by themselves."""
    lines = [
        line for line in path.read_text("utf-8").split("\n") if not re.match(r"\s*(>>> )?(from|import) detmap", line)
    ]
    for name in sorted({match[1:] for line in lines for match in NAME.findall(line)}):
        first = name.split(".")[0]
        assert first in detmap.__all__ or first in detmap._PARTS or first.startswith("__"), name
        resolved(name)


@pytest.mark.parametrize("name", detmap._PARTS)
def test_parts_of_the_package_need_no_import_of_their_own(name):
    assert detmap.__getattr__(name) is import_module(f"detmap.{name}")


def test_names_in_docstrings_are_there():
    """Those inside the package may be modules that are imported by themselves."""
    missing = set()
    for path in SOURCES:
        for name in {match[1:] for text in docstrings(path) for match in NAME.findall(text)}:
            try:
                resolved(name)
            except AttributeError:
                parts = name.split(".")
                for cut in range(len(parts), 0, -1):
                    try:
                        found = import_module(".".join(["detmap", *parts[:cut]]))
                        for part in parts[cut:]:
                            found = getattr(found, part)
                        break
                    except (ImportError, AttributeError):
                        continue
                else:
                    missing.add((str(path.relative_to(ROOT)), name))
    assert missing == set()
