"""What a terminal shows beyond plain text: tables with a rule, bold headings, and a line on what is being done."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO

#: Columns that stand out.
_COLOURED = ("value", "AP")

_BOLD, _CYAN = "1", "1;36"

#: Characters of a bar of progress.
_BAR = 40


def _plain() -> bool:
    """Return whether the terminal shows no styles, or must not; https://no-color.org."""
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
    """Return how many places a terminal needs for printable text: two for wide letters, none for accents of their own."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(0 if category(c) in ("Mn", "Me", "Cf") else 1 + (east_asian_width(c) in "WF") for c in text)


def title(text: str) -> str:
    """Return the heading of tables."""
    return _styled(text, _BOLD)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a table, as wide as it is: a number that were cut short would be a wrong number."""
    from detmap.results import cell, is_words, shown

    columns, total = [], 0
    for name in rows[0]:
        cells = [shown(name), *(shown(cell(row[name])) for row in rows)]
        widths = [width(text) for text in cells]
        spaces = [" " * (max(widths) - one) for one in widths]
        words = is_words(rows, name)
        padded = [text + space if words else space + text for text, space in zip(cells, spaces, strict=True)]
        colour = _CYAN if name in _COLOURED else ""
        columns.append([_styled(padded[0], _BOLD), *(_styled(one, colour) for one in padded[1:])])
        total += max(widths) + 2
    rule = "─" if _can_show(sys.stdout, "─") else "-"
    lines = [" " + "  ".join(line) for line in zip(*columns, strict=True)]
    lines.insert(1, " " + rule * (total - 2))
    return "\n".join(line.rstrip() for line in lines)


class Line:
    """The last line of the terminal that stderr is: it shows `text()`, every second `after` that many, and leaves
    nothing behind.
    """

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
        """Show what there is to say now, unless it is too early."""
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
        """Leave the line empty until it is shown again."""
        with self._lock:
            if self._shown:
                self._write("\r" + " " * self._shown + "\r")
            self._shown = 0

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # the terminal is gone
            sys.stderr.write(text)
            sys.stderr.flush()

    def end(self) -> None:
        """Show nothing any more."""
        self._over.set()
        self.hide()

    @contextmanager
    def shown(self) -> Iterator[Line]:
        """Show it within this context."""
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
    """Within this context the line of this moment is hidden, so that other text can be written."""
    line = _current
    if line is None:
        yield
        return
    with line._lock:
        line.hide()
        yield
    line.show()


def _columns() -> int:
    """Return how many places a line has; a terminal that does not know has 0."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    with suppress(OSError, ValueError):
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    return 80


class Progress:
    """How much of something is done, as a bar with the rate and the time left."""

    def __init__(self, total: int, unit: str) -> None:
        self._total, self._unit = total, unit
        self._done, self._began = 0, time.monotonic()
        self._full, self._empty = ("━", "╌") if sys.stderr is not None and _can_show(sys.stderr, "━╌") else ("#", ".")

    def advance(self) -> None:
        """Count one more."""
        self._done += 1

    def text(self) -> str:
        """Return the bar, how much is done, and, once something is, the rate and the time left."""
        full = _BAR * self._done // max(self._total, 1)
        line = f"{self._full * full}{self._empty * (_BAR - full)} {self._done}/{self._total}"
        if self._done >= self._total:
            return f"{line} finishing"  # as comparing what was read
        if not self._done:
            return line
        elapsed = max(time.monotonic() - self._began, 1e-9)
        left = round(elapsed * (self._total - self._done) / self._done)
        hours, minutes, seconds = left // 3600, left // 60 % 60, left % 60
        return f"{line} {self._done / elapsed:.2f} {self._unit}/s {hours}:{minutes:02}:{seconds:02}"
