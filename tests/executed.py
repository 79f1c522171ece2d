"""Runs the blocks of code of a page in Markdown, and compares what they print with what the page shows.

* In a block ``console`` every line ``$ detmap …`` is run. Below it stands what a terminal shows, both streams; a line ``…``
  stands for any number of lines.
* In a block ``python`` every statement is run, with the names of the blocks before it. A comment behind an expression that
  begins like a value is the value's `repr`; a tuple stands there without parentheses. What is printed stands in a block
  ``text`` that follows at once.
* Above a block that needs what is not there stands ``<!-- not run: why -->``. Its commands and options must exist, and its
  Python must be Python.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import NamedTuple

from detmap import cli

ROOT = Path(__file__).resolve().parent.parent

_BLOCK = re.compile(r"^(<!-- not run: [^\n]+ -->\n)?```(console|python|text)\n(.*?)^```$", re.M | re.S)
_VALUE = re.compile(r"""[-\d'"\[({]|(True|False|None|nan|array)\b""")
_COMPILING = re.compile(r"^detmap: compiling the kernels.*\n", re.M)  # said at the first run on a machine


class Block(NamedTuple):
    """A block of a page: whether it is run, its language, its text, and the line that it begins at."""

    run: bool
    language: str
    text: str
    line: int


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page, in their order."""
    return [
        Block(not found[1], found[2], found[3], page.count("\n", 0, found.start(3)) + 1)
        for found in _BLOCK.finditer(page)
    ]


def lines_of(path: Path, title: str) -> str:
    """The only block of Python of a section of a page, for a test that has what it needs."""
    section = path.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    (block,) = (block for block in blocks_of(section) if block.language == "python")
    return block.text


def run(path: Path) -> int:
    """Run the blocks of a page in the current directory, and return how many were run."""
    names: dict[str, object] = {"__name__": "page"}
    blocks = blocks_of(path.read_text(encoding="utf-8"))
    printed, done = "", 0
    for block in blocks:
        where = f"{path.name}:{block.line}"
        assert block.language == "text" or not printed, (
            f"{where}: before it stands no text, but this is printed:\n{printed}"
        )
        if block.language == "text":
            assert_shown(block.text, printed, where)
            printed = ""
        elif not block.run:
            _check(block, where)
        elif block.language == "python":
            printed = run_python(block.text, names, where)
        else:
            run_console(block.text, where)
        done += block.run
    assert not printed, f"{path.name}: at its end this is printed, and not shown:\n{printed}"
    return done


def run_python(text: str, names: dict[str, object], where: str) -> str:
    """Run Python, compare its values with the comments behind them, and return what it prints."""
    lines, out = text.splitlines(), io.StringIO()
    with contextlib.redirect_stdout(out):
        for node in ast.parse(text).body:
            part = ast.unparse(node)
            if not isinstance(node, ast.Expr):
                exec(part, names)
                continue
            value, said = eval(part, names), lines[node.end_lineno - 1].partition("  # ")[2]
            if _VALUE.match(said):
                shown = repr(value)[1:-1] if isinstance(value, tuple) else repr(value)
                assert re.match(re.escape(shown) + r"($|[ ;:,])", said), f"{where}: {part} is {shown}, not {said}"
    return out.getvalue()


def run_console(text: str, where: str) -> None:
    """Run the commands of a block, and compare what they print."""
    parts = re.split(r"^\$ (.*)\n", text, flags=re.M)
    assert parts[0] == "", f"{where}: a block of commands begins with one"
    for command, shown in zip(parts[1::2], parts[2::2], strict=True):
        program, *arguments = shlex.split(command, comments=True)
        assert program == "detmap", f"{where}: {program} is not run"
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = cli.main(arguments)
        printed = _COMPILING.sub("", out.getvalue())
        assert code == 0 or "error: " in printed or "gate failed: " in printed, f"{where}: {command} ended with {code}"
        assert_shown(shown, printed, f"{where}: {command}")


def assert_shown(shown: str, printed: str, where: str) -> None:
    """What stands there is what was printed; a line ``…`` stands for any lines."""
    pattern = re.sub(r"^…\\?\n", "(?:.*\n)*?", re.escape(shown), flags=re.M)
    assert re.fullmatch(pattern, printed), f"{where}\nshown:\n{shown}\nprinted:\n{printed}"


def _check(block: Block, where: str) -> None:
    """Look at a block that is not run: are its commands and options those that there are?"""
    if block.language == "python":
        ast.parse(block.text)
        return
    for command in re.findall(r"^\$ (.*)$", block.text, re.M):
        program, *arguments = shlex.split(command, comments=True)
        if program == "detmap":
            try:
                cli._parser(arguments).parse_args(arguments)
            except SystemExit:
                raise AssertionError(f"{where}: {command} is no command") from None
        elif program.startswith("scripts/"):
            assert (ROOT / program).is_file(), f"{where}: there is no {program}"
