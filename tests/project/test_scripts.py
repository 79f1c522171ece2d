"""The scripts of this repository: what one takes from another is there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SCRIPTS = {
    path.stem: ast.parse(path.read_text()) for path in (Path(__file__).resolve().parents[2] / "scripts").glob("*.py")
}


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
