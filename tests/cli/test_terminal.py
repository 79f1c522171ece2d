"""Tables and the line of progress on a terminal."""

from __future__ import annotations

import io
import re
import time
from pathlib import Path

import pytest

from detmap import cli
from detmap.cli import output, terminal
from detmap.results import to_text

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
COCO = FIXTURES / "coco"

ROWS = [
    {"metric": "AP", "value": 0.41799, "mean of": "precision", "max": 100},
    {"metric": "AP日本é", "value": float("nan"), "mean of": "recall\x1b[2J", "max": 1},
]


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def terminal_as_stderr(monkeypatch):
    """Set it while the test runs: pytest sets its own ahead of that."""
    made = Terminal()
    monkeypatch.setattr("sys.stderr", made)
    return made


def screen(written: str) -> str:
    """Return the last line of a terminal on which this was written."""
    line = ""
    for part in re.split(r"(\r|\n)", written):
        line = "" if part == "\n" else line
        position = 0 if part in "\r\n" else len(part)
        line = part + line[position:] if part not in "\r\n" else line
    return line.rstrip()


def test_a_table_says_what_plain_text_does(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    ascii_rows = [{name: str(value) if name == "metric" else value for name, value in ROWS[0].items()}]
    made = re.sub(r"\x1b\[[0-9;]*m", "", terminal.table(ascii_rows)).splitlines()
    header, rule, *body = (line.removeprefix(" ") for line in made)
    assert [header, *body] == to_text(ascii_rows).splitlines()
    assert set(rule) == {"─"}
    assert len(rule) == len(body[0])


def test_headers_are_bold_and_values_stand_out(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    made = terminal.table(ROWS)
    assert "\x1b[1m value\x1b[0m" in made
    assert "\x1b[1;36m0.4180\x1b[0m" in made
    assert "[2J" in made
    assert "\x1b[2J" not in made  # a name of a hostile file


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_styles_where_none_are_wanted(name, value, monkeypatch):
    monkeypatch.setenv(name, value)
    assert "\x1b" not in terminal.table(ROWS) + terminal.title("title")


def test_wide_letters_and_accents_are_counted_as_they_are_shown(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert [terminal.width(text) for text in ("abc", "日本", "é", "é", "–")] == [3, 4, 1, 1, 1]
    first, second = terminal.table(ROWS).splitlines()[2:]
    assert terminal.width(first[: first.index("precision")]) == terminal.width(second[: second.index("recall")])


def test_a_terminal_without_the_rule_s_character_shows_another(monkeypatch):
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
    assert set(terminal.table(ROWS).splitlines()[1].strip()) == {"-"}


def test_every_line_of_a_narrow_table_fits():
    """What is wrapped once can be wrapped again, and a column that cannot be narrower does not end it."""
    long = "inclusive_pixels yes, far_corner x+w and interpolation 101-linear-tail"
    rows = [
        {"protocol": "voc2007", "with": "ignore crowd", "value": 0.437, "the same here": ""},
        {"protocol": "coco", "with": long, "value": 0.437, "the same here": f"torchmetrics with {long}"},
        {"protocol": "x" * 30, "with": long, "value": 0.437, "the same here": long},
    ]
    for room in (70, 80, 100):
        shown = terminal.table(rows, room, styled=False)
        assert max(map(len, shown.splitlines())) <= room
        assert ("0.4370" in shown) == (room > 70)


def test_progress_says_how_much_is_done_and_how_long_it_takes(monkeypatch):
    terminal_as_stderr(monkeypatch)
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    done = terminal.Progress(4, "files")
    assert done.text() == "╌" * 30 + " 0 of 4 files (0 %)"
    now[0] += 7322
    done.advance()
    done.advance()
    assert done.text() == "━" * 15 + "╌" * 15 + " 2 of 4 files (50 %), 2:02:02 left"
    done.advance()
    done.advance()
    assert done.text() == "━" * 30 + " 4 of 4 files (100 %) finishing"


def test_a_line_is_cut_to_the_terminal_and_leaves_nothing_behind(monkeypatch):
    stderr = terminal_as_stderr(monkeypatch)
    monkeypatch.setattr(terminal, "_columns", lambda: 20)
    text = ["matching " + "日" * 30]
    with terminal.Line(lambda: text[0], after=0.0).shown() as line:
        until = time.monotonic() + 60
        while not stderr.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
        assert screen(stderr.getvalue()) == "matching 日日日日日"
        text[0] = "short"
        line.show()
        assert screen(stderr.getvalue()) == "short"
        output.say("note: something")
        assert screen(stderr.getvalue()) == "short"
        assert re.search(r"\r +\rdetmap: note: something\n\rshort", stderr.getvalue())
    assert screen(stderr.getvalue()) == ""
    line.show()
    assert screen(stderr.getvalue()) == ""


def test_nothing_is_shown_of_what_is_quick(monkeypatch):
    stderr = terminal_as_stderr(monkeypatch)
    with terminal.Line(lambda: "matching", after=30.0).shown() as line:
        line.show()
        output.say("done")
    assert stderr.getvalue() == "detmap: done\n"


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    ("words", "truth"),
    [(["batch"], COCO / "ground_truth.json"), (["batch", "--pq"], FIXTURES / "panoptic" / "ground_truth.json")],
)
def test_a_terminal_shows_an_error_of_a_batch_once(tmp_path, monkeypatch, words, truth, together):
    (tmp_path / "bad.json").write_text('{"b": 1}')
    out, err = Terminal(), Terminal() if together else io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    cli.main([*words, str(truth), str(tmp_path / "bad.json")])
    assert "bad.json: " in out.getvalue()
    assert ("bad.json: " in err.getvalue()) == (not together)
