"""Text files of numbers with a line per record: convert words to columns, with errors that name the line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import Strings
from detmap.errors import InputError, relocated

LONGEST = 256  # maximum number of bytes of a field

#: Minimum number of words that are given to a kernel.
_WORTH_SCANNING = 1 << 12


class Lines:
    """The non-blank lines of some files."""

    def __init__(
        self,
        names: list[str],
        files: NDArray[np.int64],
        numbers: NDArray[np.int64],
        firsts: NDArray[np.int64],
        counts: NDArray[np.int64],
        words: _Words,
    ) -> None:
        #: Name of each file for messages.
        self.names = names
        #: The file of each line as an index into `names`, and the line's number in its file, from 1.
        self.files, self.numbers = files, numbers
        #: Index of the first word of each line, and the number of its words.
        self._firsts, self.counts = firsts, counts
        self._words = words

    def __len__(self) -> int:
        return self.counts.size

    @cached_property
    def fields(self) -> list[list[bytes]]:
        """The words of each line."""
        lasts = self._firsts + self.counts - 1
        data = self._words.data
        spans = zip(self._words.begins[self._firsts].tolist(), self._words.ends[lasts].tolist(), strict=True)
        return [data[begin:end].split() for begin, end in spans]

    def error(self, row: int, problem: str, value: object = None, remedy: str | None = None) -> InputError:
        """Return the error about a line."""
        return InputError(
            problem,
            source=self.names[self.files[row]],
            record=f"line {self.numbers[row]}",
            value=b" ".join(self.take([row]).fields[0]) if value is None else value,
            remedy=remedy,
        )

    def refuse(self, bad: NDArray[np.bool_], problem: str, word: int | None = None) -> None:
        """Raise the error about the first line flagged in `bad`, if any; the message shows the line, or only its word
        at index `word`.
        """
        if bad.any():
            row = int(np.argmax(bad))
            raise self.error(row, problem, None if word is None else self.take([row]).fields[0][word])

    def take(self, rows: Sequence[int] | NDArray[np.int64]) -> Lines:
        """Return the lines at indices `rows`."""
        at = np.asarray(rows, np.int64)
        return Lines(self.names, self.files[at], self.numbers[at], self._firsts[at], self.counts[at], self._words)

    def check_counts(self, wanted: int | NDArray[np.int64], where: str, remedy: str) -> None:
        """Raise the error about the first line that does not have the `wanted` number of words, if any."""
        bad = self.counts != wanted
        if bad.any():
            row = int(np.argmax(bad))
            raise self.error(row, f"has {self.counts[row]} fields {where}", remedy=remedy)

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
        counts = np.maximum(self.counts - skip, 0)
        edges = np.concatenate([[0], np.cumsum(counts)])
        at = np.arange(edges[-1]) + np.repeat(self._firsts + skip - edges[:-1], counts)
        return self._numbers(at, edges), edges

    def table(self, places: Sequence[int]) -> NDArray[np.float64]:
        """Parse the words at the indices `places` of each line, shape (n, places). Raise `InputError` for a word that is
        not a finite number.
        """
        at = self._firsts[:, None] + np.array(places, np.int64)
        edges = np.arange(len(self) + 1) * len(places)
        return self._numbers(at.reshape(-1), edges).reshape(at.shape)

    def words(self, place: int) -> tuple[NDArray[np.int32], list[bytes]]:
        """Return a code for the word at index `place` of each line, and the distinct words in order of first appearance."""
        return self._words.distinct(self._firsts + place)

    def strings(self, place: int, errors: str = "strict") -> Strings:
        """Return the words at index `place` of each line as text; `errors` is an argument of `bytes.decode`. Raise
        `InputError` for a word that is not UTF-8.
        """
        codes, distinct = self.words(place)
        for code, word in enumerate(distinct):
            try:
                word.decode(errors=errors)
            except UnicodeDecodeError:
                raise self.error(int(np.argmax(codes == code)), "is not text in UTF-8") from None
        return Strings(codes, [word.decode(errors=errors) for word in distinct])

    def _numbers(self, at: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.float64]:
        """Parse the words at indices `at`; line *i* has the words from ``at[edges[i]]`` to ``at[edges[i + 1]]``."""
        values, unread = self._words.numbers(at)
        for k in unread.tolist():
            word = self._words.word(int(at[k]))
            if not is_number(word):
                raise self.error(int(np.searchsorted(edges, k, "right")) - 1, "must be a finite number", word)
            values[k] = float(word)
        return values


class _Words:
    """The words of some files: the joined files, and where each word begins and ends."""

    def __init__(self, data: bytes, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        self.data, self.begins, self.ends = data, begins, ends
        self._bytes = np.frombuffer(data, np.uint8)

    def word(self, at: int) -> bytes:
        return self.data[self.begins[at] : self.ends[at]]

    def numbers(self, at: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Parse the words at indices `at`. Return the numbers, and the ascending indices into `at` of the words that are
        left to `float`.
        """
        if at.size < _WORTH_SCANNING:
            return np.empty(at.size, np.float64), np.arange(at.size)
        from detmap.reading.scanned_columns import located, plain_numbers  # imports the scanner

        return plain_numbers(self._bytes, located(self.begins[at], self.ends[at]))

    def distinct(self, at: NDArray[np.int64]) -> tuple[NDArray[np.int32], list[bytes]]:
        """Return a code for each of the words at indices `at`, and the distinct words in order of first appearance."""
        if at.size >= _WORTH_SCANNING:
            from detmap.reading.scanned_columns import distinct_strings, located  # imports the scanner

            return distinct_strings(self._bytes, located(self.begins[at], self.ends[at]))
        places: dict[bytes, int] = {}
        codes = [places.setdefault(self.word(one), len(places)) for one in at.tolist()]
        return np.array(codes, np.int32), list(places)


def is_number(word: bytes) -> bool:
    """Return whether a word is a finite number."""
    try:
        return bool(np.isfinite(float(word))) and b"_" not in word
    except ValueError:
        return False


def read_lines(files: Iterable[tuple[bytes, str]]) -> Lines:
    """Split files into lines and words. Each file is given as its content and its name for messages."""
    names: list[str] = []
    contents = [b""]
    binary = False
    for data, name in files:
        names.append(name)
        binary = b"\0" in data
        if binary:
            break
        contents.append(data[3:] if data[:3] == b"\xef\xbb\xbf" else data)
    lines = _split(names, contents)
    if binary:
        raise InputError("is not a text file", source=names[-1])
    return lines


def _split(names: list[str], contents: list[bytes]) -> Lines:
    """Split the files after the first item of `contents`, which is empty, into lines and words."""
    joined = b"\n".join([*contents, b""])
    data = np.frombuffer(joined, np.uint8)
    blank = (data == ord(" ")) | (data - np.uint8(9) < 5)
    edges = np.flatnonzero(blank[1:] != blank[:-1]) + 1
    begins, ends = np.ascontiguousarray(edges[0::2]), np.ascontiguousarray(edges[1::2])
    # A line ends at each line feed, and at each carriage return without a line feed. The first line precedes all files.
    breaks = np.flatnonzero((data == ord("\n")) | (data == ord("\r")))
    breaks = breaks[(data[breaks] == ord("\n")) | (data[np.minimum(breaks + 1, data.size - 1)] != ord("\n"))]
    firsts = np.concatenate([np.searchsorted(begins, breaks), [begins.size]])
    counts = np.diff(firsts)
    kept = np.flatnonzero(counts)
    starts = np.cumsum([len(content) + 1 for content in contents])
    first_lines = np.searchsorted(breaks, starts)
    files = np.searchsorted(first_lines, kept + 1, "right") - 1
    numbers = kept + 2 - first_lines[files]
    lines = Lines(names, files, numbers, firsts[kept], counts[kept], _Words(joined, begins, ends))
    long = np.flatnonzero(ends - begins > LONGEST)
    if long.size:
        row = int(np.searchsorted(firsts[kept], long[0], "right")) - 1
        raise lines.error(row, "has a field of absurd length")
    return lines
