"""Mutants that are drawn at random over Python files: an operator, a comparison, a number or a condition is another one."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

#: What each operator becomes.
OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip

#: Nodes in which nothing is changed: what they hold is no behaviour, or is told by type checkers.
_LEFT = (ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Assert, ast.Raise)

#: Arguments in which nothing is changed. They set the line that a warning names, the size of a cache, the number of threads,
#: and what the garbage collector looks at, none of which changes a result. ``strict`` is an assertion on equal lengths.
_LEFT_ARGUMENTS = ("stacklevel", "maxsize", "threads", "gc", "strict")


class Drawn(NamedTuple):
    """A changed expression."""

    path: str
    line: int
    #: Where the expression begins and ends in the text, in characters.
    start: int
    stop: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.old}  ->  {self.new}"

    def applied(self, text: str) -> str:
        """Return the text of the file with the change."""
        return text[: self.start] + self.new + text[self.stop :]


def draw(root: Path, folders: Iterable[str], count: int, seed: int) -> list[Drawn]:
    """Return `count` mutants of some files, or of those in some folders, each of another expression."""
    paths = sorted(
        {
            path
            for folder in folders
            for path in ((root / folder).rglob("*.py") if (root / folder).is_dir() else [root / folder])
        }
    )
    every = [one for path in paths if "kernels" not in path.parts for one in _of_file(root, path)]
    return random.Random(seed).sample(every, min(count, len(every)))


def _of_file(root: Path, path: Path) -> Iterator[Drawn]:
    text = path.read_text("utf-8")
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    for node in _expressions(ast.parse(text)):
        if node.end_lineno != node.lineno or (made := _changed(node)) is None:
            continue
        line = text[lines[node.lineno - 1] : lines[node.lineno]].encode()
        start = lines[node.lineno - 1] + len(line[: node.col_offset].decode())
        old = line[node.col_offset : node.end_col_offset].decode()
        new = ast.unparse(ast.fix_missing_locations(made))
        yield Drawn(
            path.relative_to(root).as_posix(), node.lineno, start, start + len(old), old,
            new if isinstance(made, ast.Constant) else f"({new})",
        )  # fmt: skip


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions that are carried out, without annotations, texts and docstrings."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, _LEFT):
                continue
            if isinstance(child, ast.keyword) and (
                child.arg in _LEFT_ARGUMENTS or ast.unparse(child) == "copy=False"  # a copy has the same values
            ):
                continue
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.expr):
                yield child
            yield from _expressions(child)


def _changed(node: ast.expr) -> ast.expr | None:
    """Return another expression in place of one, None where there is nothing to change."""
    made = copy.deepcopy(node)
    if isinstance(made, ast.Compare) and len(made.ops) == 1 and type(made.ops[0]) in OPERATORS:
        made.ops[0] = OPERATORS[type(made.ops[0])]()  # type: ignore[assignment]
    elif isinstance(made, ast.BinOp | ast.BoolOp) and type(made.op) in OPERATORS:
        if isinstance(made, ast.BinOp) and any(
            isinstance(one, ast.Constant | ast.JoinedStr) and not isinstance(getattr(one, "value", ""), int | float)
            for one in (made.left, made.right)
        ):
            return None  # texts
        made.op = OPERATORS[type(made.op)]()  # type: ignore[assignment]
    elif isinstance(made, ast.UnaryOp) and isinstance(made.op, ast.Not | ast.Invert | ast.USub):
        return made.operand
    elif isinstance(made, ast.IfExp):
        made.body, made.orelse = made.orelse, made.body
    elif isinstance(made, ast.Constant) and isinstance(made.value, bool):
        made.value = not made.value
    elif isinstance(made, ast.Constant) and isinstance(made.value, int | float):
        made.value = made.value + 1 if isinstance(made.value, int) else made.value * 1.5 + 0.1 * (made.value == 0)
    else:
        return None
    return made
