"""Tables in room of every width, plain and styled, and what a line of progress says, kept."""

from __future__ import annotations

import io
import sys

import kept
import pytest

from detmap.cli import terminal

NAN = float("nan")
TABLES = {
    "numbers": [
        {f"metric {at}": at / 7 for at in range(9)},
        {f"metric {at}": NAN if at % 2 else at for at in range(9)},
    ],
    "names": [
        {"name": "a_name_that_is_longer_than_forty_characters_in_all", "value": 0.5, "AP": 0.25, "count": 1234567},
        {"name": "a_name_that_is_longer_than_forty_characters_at_all", "value": 1.0, "AP": NAN, "count": 3},
        {"name": "short", "value": -0.125, "AP": 1.0, "count": 0},
    ],
    "other names": [{"name": "x" * 60, "of": "y" * 41, "value": 1}, {"name": "z" * 39, "of": "y" * 40, "value": 2}],
    "sentences": [
        {
            "code": "a_code",
            "says": "A sentence of several words, one of which-is-hyphenated, that goes on for a while.",
            "n": 1,
        },
        {"code": "b", "says": "Short.", "n": 22},
    ],
    "wide letters": [{"name": "日本語の名前" * 5, "value": 0.5}, {"name": "é" * 3 + "e\u0301", "value": 2.0}],
    "one column": [
        {"notice": "One sentence that is rather long, longer than any terminal has room for, in one column alone."}
    ],
}
ROOMS = (None, 10, 18, 20, 30, 39, 40, 41, 50, 60, 61, 62, 63, 64, 65, 66, 70, 75, 80, 90, 100)


@pytest.mark.parametrize("name", TABLES)
def test_tables_in_room_of_every_width(name, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    made = []
    for room in ROOMS:
        for keep in ((), ("count", "metric 8")):
            made.append(f"# {room} {keep}\n{terminal.table(TABLES[name], room, keep, styled=False)}")
        made.append(f"# {room} styled\n{terminal.table(TABLES[name], room)}".replace("\x1b", "ESC"))
    kept.same(f"tables/{name.replace(' ', '-')}", "\n".join(made) + "\n")


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("", 0),
        ("abc", 3),
        ("é–…", 3),
        ("日本", 4),
        ("ｗ", 2),
        ("e\u0301", 1),
        ("a\u200d", 1),
        ("a\u20dd", 1),
        ("\u0300", 0),
        ("ˮ", 1),
    ],
)
def test_widths_on_a_terminal(text, width):
    assert terminal.width(text) == width
