"""The scripts of this repository: what one takes from another is there."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = {path.stem: ast.parse(path.read_text()) for path in (ROOT / "scripts").glob("*.py")}


def defined(tree):
    """The names at the top level of a script."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        else:
            yield from (
                one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
            )


@pytest.mark.parametrize("script", sorted(SCRIPTS))
def test_names_that_a_script_takes_from_another_are_defined_there(script):
    """Also those inside functions, which fail no earlier than these run."""
    nodes, used = list(ast.walk(SCRIPTS[script])), set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module in SCRIPTS:
            used |= {(node.module, alias.name) for alias in node.names}
    whole = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names} & set(SCRIPTS)
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in whole:
            used |= {(node.value.id, node.attr)} if not node.attr.startswith("__") else set()
    for other, name in used:
        assert name in set(defined(SCRIPTS[other])), f"{other} has no {name}"


def test_the_chart_of_the_benchmark_is_drawn_from_its_table(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    chart = importlib.import_module("bench_chart")
    found = chart.times(chart.PAGE.read_text("utf-8"))
    assert list(found) == list(chart.ROWS.values())
    assert all(next(iter(row)) == "detmap" and len(row) > 1 for row in found.values())
    assert chart.PICTURE.read_text("utf-8") == chart.chart(found), "scripts/bench_chart.py draws it anew"


def test_pictures_of_pages_are_there_and_small():
    """Those that the pages show are all that are kept."""
    kept = {path.name: path.stat().st_size for path in (ROOT / "docs/pictures").iterdir()}
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    shown = {
        name for page in pages for name in re.findall(r"\]\((?:docs/)?pictures/([\w.-]+)\)", page.read_text("utf-8"))
    }
    assert shown == set(kept)
    assert {name: size for name, size in kept.items() if size > 150_000} == {}
