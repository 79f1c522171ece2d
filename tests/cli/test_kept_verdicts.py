"""What gates say of values at, above and below their limits, and what a terminal's line depends on."""

from __future__ import annotations

import argparse
import io
import itertools
import os
import sys
import time

import kept
import pytest

from detmap.cli import gates, terminal
from detmap.errors import DetmapError

NAN = float("nan")


def judged(capsys, tmp_path, models, chance=0.5, card=None, **given):
    """Return the exit code of gates, what they print, and their files."""
    options = argparse.Namespace(
        **{"fail_under": [], "max_drop": [], "against": None, "unless_chance": False, "quiet": False, **given},
        junit=str(tmp_path / "junit.xml"), gate_summary=str(tmp_path / "summary.md"), predictions=["a.json", "-"],
    )  # fmt: skip
    try:
        made = gates.Gates(options, "compare")
        made.card = card
        options.against = options.against or "folder/card.json"
        code = made.judge(models, lambda *_: chance, level=0.9)
    except DetmapError as error:
        return f"{type(error).__name__}: {error}"
    files = [(tmp_path / name).read_text() for name in ("junit.xml", "summary.md")]
    return f"{code} {capsys.readouterr().err}{''.join(files)}"


VALUES = [0.42, 0.4199999, 0.42001, 0.41, 0.40999, 0.9, 0.0, NAN]


def test_verdicts(capsys, tmp_path):
    lines = []
    for value in VALUES:
        one = {"m": {"AP": value}}
        lines.append(f"{value}: {judged(capsys, tmp_path, one, fail_under=['AP=0.42'])}")
        for limit, before in itertools.product(("0.01", "0", "0.5"), (0.42, NAN)):
            two = {"first": {"AP": before}, "second": {"AP": value}}
            lines.append(f"{value} {limit} {before}: {judged(capsys, tmp_path, two, max_drop=[f'AP={limit}'])}")
    two = {"first": {"AP": 0.5, "AP50": 0.7}, "second": {"AP": 0.25, "AP50": 0.75}, "third": {"AP": 0.49, "AP50": 0.1}}
    two = {name: {**values, "a=b": 0.5} for name, values in two.items()}
    for chance in (0.1, 0.10001, 0.00001, NAN, "no file"):
        demands = {"max_drop": ["AP=0.01", "AP50=0.05"], "fail_under": ["AP=0.3"], "unless_chance": True}
        lines.append(f"{chance}: {judged(capsys, tmp_path, two, chance, **demands)}")
        lines.append(f"quiet: {judged(capsys, tmp_path, two, chance, quiet=True, **demands)}")
    for numbers in ({"AP": {"hex": (0.5).hex()}}, {"AP": {"hex": "x"}}, {}):
        card = {"numbers": numbers}
        lines.append(f"{numbers}: {judged(capsys, tmp_path, two, card=card, max_drop=['AP=0.01'])}")
    for text in ("AP", "AP=", "=3", "AP=x", "AP=nan", "AP=inf", " AP =0.5", "a=b=0.5", "AP=-1", "AP=1e-3", "AP50=0.7"):
        for flag in ("fail_under", "max_drop"):
            lines.append(f"{flag} {text!r}: {judged(capsys, tmp_path, two, **{flag: [text]})}")
    lines.append(judged(capsys, tmp_path, two))
    lines.append(judged(capsys, tmp_path, two, against="card.json"))
    lines.append(judged(capsys, tmp_path, two, unless_chance=True, fail_under=["AP=0"]))
    kept.same("verdicts", "\n".join(lines).replace(str(tmp_path), "FOLDER") + "\n")


@pytest.mark.parametrize(
    ("columns", "reported", "width"),
    [("33", 50, 33), ("0", 50, 50), ("", 50, 50), ("x", 50, 50), ("", 0, 80), ("", None, 80), ("-5", 7, 7)],
)
def test_how_wide_a_terminal_is(monkeypatch, columns, reported, width):
    def size(_):
        if reported is None:
            raise OSError
        return os.terminal_size((reported, 20))

    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(os, "get_terminal_size", size)
    monkeypatch.setattr(sys, "stderr", argparse.Namespace(fileno=lambda: 2))
    assert terminal._columns() == width


@pytest.mark.parametrize(
    ("system", "variables", "plain"),
    [
        ("posix", {}, False),
        ("posix", {"TERM": "dumb"}, True),
        ("posix", {"NO_COLOR": "1"}, True),
        ("posix", {"NO_COLOR": "", "TERM": "xterm"}, False),
        ("nt", {}, True),
        ("nt", {"WT_SESSION": "1"}, False),
        ("nt", {"TERM": "xterm"}, False),
    ],
)
def test_where_styles_are_shown(monkeypatch, system, variables, plain):
    for name in ("NO_COLOR", "TERM", "WT_SESSION", "ANSICON"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(terminal.os, "name", system)
    shown = terminal.title("text")
    monkeypatch.undo()
    assert shown == ("text" if plain else "\x1b[1mtext\x1b[0m")


def test_progress_at_its_ends(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    none, many = terminal.Progress(0, "files"), terminal.Progress(3000, "images")
    assert none.text() == f"{'.' * 30} 0 of 0 files (0 %) finishing"
    many.advance()
    assert many.text() == f"{'.' * 30} 1 of 3,000 images (0 %), 0:00:00 left"
    now[0] = 3.0
    assert many.text().endswith(", 2:29:57 left")
    for _ in range(2998):
        many.advance()
    now[0] = 2999 * 61.0
    assert many.text() == f"{'#' * 29}. 2,999 of 3,000 images (99 %), 0:01:01 left"
