"""Output to terminals beyond plain text: tables with a rule, bold headings, and a progress line."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO

#: Highlighted columns.
_COLOURED = ("value", "AP")

_BOLD, _CYAN = "1", "1;36"

#: Number of characters of a progress bar.
_BAR = 30


def _plain() -> bool:
    """Return whether to print without styles, see https://no-color.org."""
    legacy = os.name == "nt" and not {"WT_SESSION", "ANSICON", "TERM"} & set(os.environ)
    return legacy or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def _styled(text: str, style: str) -> str:
    return text if not style or _plain() else f"\x1b[{style}m{text}\x1b[0m"


def _can_show(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True


def width(text: str) -> int:
    """Return the width of printable text on a terminal: two for wide letters, none for combining accents."""
    if text.isascii() or all(c < "\u0300" or c in "–…" for c in text):
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(0 if category(c) in ("Mn", "Me", "Cf") else 1 + (east_asian_width(c) in "WF") for c in text)


def title(text: str) -> str:
    """Return a heading, styled in bold."""
    return _styled(text, _BOLD)


def table(
    rows: Sequence[Mapping[str, Any]], room: int | None = None, keep: Sequence[str] = (), *, styled: bool = True
) -> str:
    """Return rows as a table in plain text, or `styled` for a terminal.

    If the table is wider than `room`, texts are wrapped and long names are cut. If the table is still too wide, the
    last columns of numbers are left out, except columns in `keep`. A line below the table names these columns. Numbers
    are never cut.
    """
    from detmap.results import cell, is_words, shown

    words = {name: is_words(rows, name) for name in rows[0]}
    cells = {name: [shown(name), *(shown(cell(row[name])) for row in rows)] for name in rows[0]}
    left_out = [] if room is None else _fit(cells, words, room - (1 if styled else 0), keep)
    columns, total = [], 0
    parts = {name: [text.split("\n") for text in texts] for name, texts in cells.items()}
    heights = [max(map(len, line)) for line in zip(*parts.values(), strict=True)]
    for name, texts in parts.items():
        lines = [text for one, most in zip(texts, heights, strict=True) for text in (*one, *[""] * (most - len(one)))]
        widths = [width(text) for text in lines]
        widest = max(widths)
        spaces = [" " * (widest - one) for one in widths]
        padded = [text + space if words[name] else space + text for text, space in zip(lines, spaces, strict=True)]
        if styled:
            colour = _CYAN if name in _COLOURED else ""
            head = heights[0]
            padded = [*(_styled(one, _BOLD) for one in padded[:head]), *(_styled(one, colour) for one in padded[head:])]
        columns.append(padded)
        total += max(widths) + 2
    made = [(" " if styled else "") + "  ".join(line) for line in zip(*columns, strict=True)]
    if styled:
        rule = "─" if _can_show(sys.stdout, "─") else "-"
        made.insert(heights[0], " " + rule * (total - 2))
    if left_out:
        from textwrap import wrap

        made += ["", *wrap(f"not shown: {', '.join(left_out)}; --wide shows all columns", WIDTH)]
    return "\n".join(line.rstrip() for line in made)


#: Maximum width of a table without ``--wide``.
WIDTH = 100

#: Minimum width of a column of sentences, and of a column of names, in a table that is too wide.
_SENTENCE, _NAME = 18, 40


def _fit(cells: dict[str, list[str]], words: Mapping[str, bool], room: int, keep: Sequence[str]) -> list[str]:
    """Narrow or remove columns until a table fits, and return the names of removed columns."""

    def widths() -> dict[str, int]:
        return {name: _widest(texts) for name, texts in cells.items()}

    def excess() -> int:
        return sum(widths().values()) + 2 * (len(cells) - 1) - room

    least = {name: _least(texts) if words[name] else _widest(texts) for name, texts in cells.items()}
    left_out: list[str] = []
    for name in [*reversed(list(cells)[1:])]:
        if sum(least[one] for one in cells) + 2 * (len(cells) - 1) <= room:
            break
        if not words[name] and name not in keep:
            left_out.insert(0, name)
            del cells[name]
    stuck = set[str]()  # columns that cannot be narrowed further
    while excess() > 0:
        now = widths()
        name = max(now, key=lambda one: -1 if one in stuck else now[one] - least[one])
        if name in stuck or now[name] <= least[name]:
            break
        others = [most for one, most in now.items() if words[one] and one != name]
        to = max(least[name], now[name] - excess(), min(now[name] - 1, max(others, default=0)))
        cells[name] = [_narrow(text, to) for text in cells[name]]
        if _widest(cells[name]) >= now[name]:
            stuck.add(name)
    return left_out


def _widest(texts: Sequence[str]) -> int:
    """Return the width of the widest line in the texts."""
    return max(width(line) for text in texts for line in text.split("\n"))


def _least(texts: Sequence[str]) -> int:
    """Return the minimum width of a column of words. No name is cut if two names would then look the same."""
    most = _widest(texts)
    if any(" " in text for text in texts[1:]):
        return min(most, _SENTENCE)
    alike = len({_narrow(text, _NAME) for text in texts[1:]}) < len(set(texts[1:]))
    return most if alike else min(most, _NAME)


def _narrow(text: str, room: int) -> str:
    """Wrap text at blanks to lines of at most `room` columns. A longer word is cut in its middle."""
    if _widest([text]) <= room:
        return text
    from textwrap import wrap

    def cut(word: str) -> str:
        if width(word) <= room:
            return word
        half = (room - 1) // 2
        return word[: room - 1 - half] + "…" + word[-half:]

    joined = " ".join(cut(word) for word in text.replace("\n", " ").split(" "))
    return "\n".join(wrap(joined, room, break_on_hyphens=False))


class Line:
    """The status line of a terminal. It first shows ``text()`` after a delay of `after` seconds, and then every second."""

    def __init__(self, text: Callable[[], str], after: float) -> None:
        self._text, self._after = text, after
        self._lock = threading.RLock()
        self._shown, self._begun = 0, False
        self._over = threading.Event()
        self._ticks = threading.Thread(target=self._tick, name="detmap-line", daemon=True)

    def _tick(self) -> None:
        wait = self._after
        while not self._over.wait(wait):
            self._begun, wait = True, 1.0
            self.show()

    def show(self) -> None:
        """Show the current text, if `after` seconds have passed."""
        if not self._begun or self._over.is_set():
            return
        with self._lock:
            text = self._text()
            columns = _columns()
            while text and width(text) >= columns:
                text = text[:-1]
            self._write("\r" + text + " " * (self._shown - width(text)))
            self._shown = width(text)

    def hide(self) -> None:
        """Erase the line; `show` draws the line again."""
        with self._lock:
            if self._shown:
                self._write("\r" + " " * self._shown + "\r")
            self._shown = 0

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # the terminal was closed
            sys.stderr.write(text)
            sys.stderr.flush()

    def end(self) -> None:
        """Stop showing the line."""
        self._over.set()
        self.hide()

    @contextmanager
    def shown(self) -> Iterator[Line]:
        """Show the line within this context."""
        global _current
        _current, before = self, _current
        self._ticks.start()
        try:
            yield self
        finally:
            self.end()
            _current = before


_current: Line | None = None


@contextmanager
def aside() -> Iterator[None]:
    """Hide the line within this context, so that other text can be written."""
    line = _current
    if line is None:
        yield
        return
    with line._lock:
        line.hide()
        yield
    line.show()


def _columns() -> int:
    """Return the width of a line; 80 if the terminal does not report it."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    with suppress(OSError, ValueError):
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    return 80


class Progress:
    """A progress bar with percentage and remaining time."""

    def __init__(self, total: int, unit: str) -> None:
        self._total, self._unit = total, unit
        self._done, self._began = 0, time.monotonic()
        self._full, self._empty = ("━", "╌") if sys.stderr is not None and _can_show(sys.stderr, "━╌") else ("#", ".")

    def advance(self) -> None:
        """Count one more item."""
        self._done += 1

    def text(self) -> str:
        """Return the bar, the count, and, after the first item, the remaining time."""
        full = _BAR * self._done // max(self._total, 1)
        share = 100 * self._done // max(self._total, 1)
        line = f"{self._full * full}{self._empty * (_BAR - full)} {self._done:,} of {self._total:,} {self._unit} ({share} %)"
        if self._done >= self._total:
            return f"{line} finishing"  # for example, while the files are compared
        if not self._done:
            return line
        elapsed = max(time.monotonic() - self._began, 1e-9)
        left = round(elapsed * (self._total - self._done) / self._done)
        hours, minutes, seconds = left // 3600, left // 60 % 60, left % 60
        return f"{line}, {hours}:{minutes:02}:{seconds:02} left"
