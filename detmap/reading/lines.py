"""Text files of numbers with a line per record: convert words to columns, with errors that name the line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.errors import InputError, relocated

LONGEST = 256  # maximum number of bytes of a field


class Lines(NamedTuple):
    """The non-blank lines of some files."""

    #: Name of each file for messages.
    names: list[str]
    #: The file of each line as an index into `names`, and the line's number in its file, from 1.
    files: list[int]
    numbers: list[int]
    #: The words of each line.
    fields: list[list[bytes]]
    #: Whether each file contains an underscore, which Python accepts within numbers.
    underlined: list[bool]

    def error(self, row: int, problem: str, value: object = None, remedy: str | None = None) -> InputError:
        """Return the error about a line."""
        shown = b" ".join(self.fields[row]) if value is None else value
        return InputError(
            problem,
            source=self.names[self.files[row]],
            record=f"line {self.numbers[row]}",
            value=shown,
            remedy=remedy,
        )

    def refuse(self, bad: NDArray[np.bool_], problem: str, word: int | None = None) -> None:
        """Raise the error about the first line flagged in `bad`, if any; the message shows the line, or only its word
        at index `word`.
        """
        if bad.any():
            row = int(np.argmax(bad))
            raise self.error(row, problem, None if word is None else self.fields[row][word])

    def take(self, rows: Sequence[int]) -> Lines:
        """Return the lines at indices `rows`."""
        files, numbers = [self.files[row] for row in rows], [self.numbers[row] for row in rows]
        return Lines(self.names, files, numbers, [self.fields[row] for row in rows], self.underlined)

    def named(self, rows: NDArray[np.int64] | None = None) -> AbstractContextManager[None]:
        """Add the file and line number of a record to errors about it in this context. `rows` holds the index of each
        record's line; by default, record *i* is line *i*.
        """

        def place(record: int) -> tuple[str, str]:
            row = record if rows is None else int(rows[record])
            return self.names[self.files[row]], f"line {self.numbers[row]}"

        return relocated(place)

    def floats(self, skip: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Parse all words except the first `skip` of each line. Return the numbers and `bounds`: line *i* has the numbers
        from ``bounds[i]`` to ``bounds[i + 1]``. Raise `InputError` for a word that is not a finite number.
        """
        fields = [line[skip:] for line in self.fields] if skip else self.fields
        edges = np.cumsum([0, *map(len, fields)])
        try:
            values = np.fromiter(map(float, chain.from_iterable(fields)), np.float64, int(edges[-1]))
            marked = any(self.underlined) and any(b"_" in word for line in fields for word in line)
            good = bool(np.isfinite(values).all()) and not marked
        except ValueError:
            good = False
        if good:
            return values, edges
        for row, line in enumerate(fields):
            for word in line:
                if not is_number(word):
                    raise self.error(row, "must be a finite number", word)
        raise AssertionError  # unreachable, because one of the words is invalid


def is_number(word: bytes) -> bool:
    """Return whether a word is a finite number."""
    try:
        return bool(np.isfinite(float(word))) and b"_" not in word
    except ValueError:
        return False


def read_lines(files: Iterable[tuple[bytes, str]]) -> Lines:
    """Split files into lines and words. Each file is given as its content and its name for messages."""
    lines = Lines([], [], [], [], [])
    for data, name in files:
        lines.names.append(name)
        lines.underlined.append(b"_" in data)
        if b"\0" in data:
            raise InputError("is not a text file", source=name)
        if data[:3] == b"\xef\xbb\xbf":
            data = data[3:]
        for number, line in enumerate(data.splitlines(), 1):
            words = line.split()
            if words:
                lines.files.append(len(lines.names) - 1)
                lines.numbers.append(number)
                lines.fields.append(words)
                if len(line) > LONGEST and max(map(len, words)) > LONGEST:
                    raise lines.error(-1, "has a field of absurd length")
    return lines
