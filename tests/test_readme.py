"""Every output that the README shows is what the program prints."""

import ast
import re
from pathlib import Path

import pytest

import detmap
from detmap import cli

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)


def test_the_demo_prints_what_it_shows(capsys):
    command, shown = re.search(r"<!-- demo -->\n```console\n\$ detmap (.*?)\n(.*?)```", README, re.S).groups()
    assert cli.main(command.split()) == 0
    assert capsys.readouterr().out == shown


def test_the_python_example_runs_and_its_numbers_are_right():
    code = re.search(r"In Python:\n\n```python\n(.*?)```", README, re.S).group(1)
    names = {}
    exec(code, names)
    result = names["result"]
    assert f"{result['AP']!r}, {result.AP50!r}" in code
    assert f"# {result.per_category[0]['best_f1']['score']!r}: where" in code
    assert f"# {detmap.average_precision([1, 0, 1, 0, 0, 1, 0], interpolation='11-point')!r} (8/11)\n" in code


def test_the_example_of_rankings():
    code = re.search(r"## Rankings.*?```python\n(.*?)```", README, re.S).group(1)
    names, lines = {"detmap": detmap}, code.splitlines()
    shown = 0
    for node in ast.parse(code).body:
        part = ast.unparse(node)
        if not isinstance(node, ast.Expr):
            exec(part, names)
            continue
        value, said = eval(part, names), lines[node.end_lineno - 1].partition("# ")[2]
        assert said.startswith(repr(value)[1:-1] if isinstance(value, tuple) else repr(value)), part
        shown += 1
    assert shown == 3


def test_commands_are_commands():
    commands = re.findall(r"^\$ detmap (\S+)", README, re.M)
    parser = cli._parser()
    known = next(action.choices for action in parser._actions if action.choices)
    assert commands
    assert set(commands) <= set(known)
