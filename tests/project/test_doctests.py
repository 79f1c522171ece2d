"""The examples in docstrings print what stands below them."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "detmap"

#: Integrations import the packages that they are for.
NAMES = [
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in path.read_text("utf-8") and path.parent.name != "integrations"
]


@pytest.mark.compiled
@pytest.mark.parametrize("name", NAMES)
def test_examples_print_what_they_show(name):
    failed, tried = doctest.testmod(import_module(name))
    assert not failed
    assert tried


def test_there_are_modules_with_examples():
    assert len(NAMES) >= 5
