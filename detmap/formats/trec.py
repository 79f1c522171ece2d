"""TREC's text files: judgements (qrels) and runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.choices import decimal, is_decimal, whole
from detmap.errors import InputError
from detmap.kernels import readonly
from detmap.kernels.texts import LENGTH_BITS, LENGTHS
from detmap.reading.scanner import QrelsColumns, RunColumns, scan_qrels, scan_run
from detmap.reading.sources import Opened, Source
from detmap.reading.unlike import refuse_foreign
from detmap.system import parallel

#: Maximum length of an id in bytes. No corpus has longer ids.
LONGEST_ID = 1024

_MARK = b"\xef\xbb\xbf"  # UTF-8 byte order mark
_WORTH_SCANNING = 1 << 20  # bytes; for a smaller file, loading the scanner takes longer than reading without it
_COMMENTS = 1000  # maximum number of comment lines at the end of a file
_BLOCK = 1 << 16  # number of ids processed together


@dataclass(frozen=True)
class Texts:
    """Byte strings within a buffer, such as a file."""

    #: The buffer, at least eight bytes; shape (bytes,).
    data: NDArray[np.uint8]
    #: Location of each string: its first byte's position, shifted left by `LENGTH_BITS`, plus its length; shape (n,).
    words: NDArray[np.uint64]

    @classmethod
    def of(cls, ids: NDArray[Any] | Sequence[bytes]) -> Texts:
        """Locate the ids in a list or array of bytes. In an array of int64, each integer is an id of eight bytes."""
        if not isinstance(ids, np.ndarray):
            return cls.joined(b"".join(ids), np.fromiter(map(len, ids), np.int64, len(ids)))
        width = ids.dtype.itemsize
        lengths = np.char.str_len(ids) if ids.dtype.kind == "S" else np.full(ids.size, width, np.int64)
        return cls._at(np.ascontiguousarray(ids).view(np.uint8), np.arange(ids.size) * width, lengths)

    @classmethod
    def joined(cls, data: bytes, lengths: NDArray[np.int64]) -> Texts:
        """Locate ids that are concatenated, given the length of each in bytes."""
        return cls._at(np.frombuffer(data, np.uint8), np.cumsum(lengths) - lengths, lengths)

    @classmethod
    def _at(cls, data: NDArray[np.uint8], begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> Texts:
        if lengths.size and int(lengths.max()) >> LENGTH_BITS:
            raise InputError(f"an id has more than {LENGTHS} bytes", source="ids")
        if data.size < 8:
            data = np.concatenate((data, np.zeros(8, np.uint8)))
        return cls(readonly(data, np.uint8), readonly(begins << LENGTH_BITS | lengths, np.uint64))

    def __getitem__(self, rows: NDArray[Any] | slice) -> Texts:
        """Return some of the strings."""
        return Texts(self.data, readonly(self.words[rows], np.uint64))

    def lengths(self) -> NDArray[np.int64]:
        """Return the length of each string in bytes."""
        lengths: NDArray[np.uint64] = self.words & LENGTHS
        return lengths.astype(np.int64)

    def tolist(self) -> list[bytes]:
        """Return the strings as bytes."""
        begins = (self.words >> np.uint64(LENGTH_BITS)).tolist()
        return [self.data[a : a + n].tobytes() for a, n in zip(begins, self.lengths().tolist(), strict=True)]


class Lines(NamedTuple):
    """The columns of a file of judgements or of a run, in the order of the file."""

    #: The query of each line as an index into `queries`; shape (n,).
    codes: NDArray[np.int32]
    #: The ids of the queries in order of first appearance.
    queries: list[bytes]
    #: The ids of the documents.
    documents: Texts
    #: Grades (int64) of judgements, scores (float64) of a run; shape (n,).
    values: NDArray[np.int64] | NDArray[np.float64]
    #: Counts of lines with text after a run's name, of comments, and of records whose query id begins with ``#``.
    notices: dict[str, int]


def read_qrels(source: Source) -> Lines:
    """Read judgements: lines of query, iteration, document and grade. Raises `InputError` for a line that cannot be
    read, with the file and the line.

    Lines end with a line feed, a carriage return, or both. Blank lines are left out; ``.gz`` is decompressed. A line that
    begins with ``#`` is a record if it has all fields, and the last field is a number. Other lines that begin with
    ``#`` are comments, which are counted. (trec_eval 9 and pytrec_eval have no comments, and trec_eval 10 skips all
    lines that begin with ``#``.)
    """
    with Opened(source, "qrels") as opened:
        found = scan_qrels(opened.data) if len(opened) >= _WORTH_SCANNING else None
        if found is not None and _plain(found):
            notices = _notices(found.query, found.queries, 0, found.comments)
            return Lines(found.query, found.queries, _documents(found), found.relevance, notices)
        lines, texts, places = _fields(opened, "qrels", 4, 3)
    grades = np.empty(len(texts), np.int64)
    for i, text in enumerate(texts):
        grade = _grade(text)
        if grade is not None and -(1 << 63) <= grade < 1 << 63:
            grades[i] = grade
        else:
            raise InputError("a grade must be an integer", source=places[i], value=text)
    return lines._replace(values=grades)


def read_run(source: Source) -> Lines:
    """Read a run: lines of query, Q0, document, rank, score and name. Raises `InputError` for a line that cannot be
    read, with the file and the line. Text after the name that looks like another record is an error too, because the
    line feed between two records seems to be missing.

    The rank is not read: documents are ordered by score, as in trec_eval. Other text after the name is ignored, as in
    trec_eval, and the lines with such text are counted. Line ends and comments are as in `read_qrels`. A line that
    begins with ``#`` is a record if it has six fields and the fifth field is a number. The line may have more fields if
    the second field is Q0 or 0.
    """
    with Opened(source, "run") as opened:
        found = scan_run(opened.data) if len(opened) >= _WORTH_SCANNING else None
        if found is not None and _plain(found):
            notices = _notices(found.query, found.queries, found.longer, found.comments)
            return Lines(found.query, found.queries, _documents(found), found.score, notices)
        lines, texts, places = _fields(opened, "run", 6, 4)
    scores = np.empty(len(texts), np.float64)
    for i, text in enumerate(texts):
        scores[i] = _score(text)
        if scores[i] != scores[i]:
            raise InputError("a score must be a number", source=places[i], value=text)
    return lines._replace(values=scores)


def run_name(source: Source) -> str | None:
    """Return the name on the last line of a run, which trec_eval takes as the run's name; None if no line has one."""
    with Opened(source, "run") as opened:
        lines = bytes(opened.whole()).rstrip().splitlines()[-_COMMENTS:]
    for line in reversed(lines):
        fields = line.split(None, 6)
        if len(fields) >= 6 and (fields[0][:1] != b"#" or _is_record(line.split(None, 6), "run", 6, 4)):
            return fields[5].decode("utf-8", "backslashreplace")
    return None


def _plain(found: RunColumns | QrelsColumns) -> bool:
    """Return whether the scanner's result can be used. If not, the file is read line by line to locate errors."""
    if not found.queries:
        return False
    documents = found.document

    def longest(begin: int, end: int) -> int:
        return int((documents[begin:end] & LENGTHS).max())

    # Blocks are small, so that the lengths stay in the processor's cache.
    blocks = [(begin, min(begin + _BLOCK, documents.size)) for begin in range(0, documents.size, _BLOCK)]
    lengths = [*map(len, found.queries), *parallel.run(longest, blocks)]
    return max(lengths) <= LONGEST_ID and not any(query.startswith(_MARK) for query in found.queries)


def _documents(found: RunColumns | QrelsColumns) -> Texts:
    return Texts(readonly(found.data, np.uint8), readonly(found.document, np.uint64))


def _fields(opened: Opened, kind: str, count: int, wanted: int) -> tuple[Lines, list[bytes], list[str]]:
    """Split lines of `count` fields into columns. Return the columns with empty `values`, the field at index `wanted` of
    each line, and each line's name for messages.
    """
    data, name = bytes(opened.whole()).removeprefix(_MARK), opened.name
    if b"\0" in data or data[:1] == b"<":
        refuse_foreign(data, name, "write lines of text")
    if b"\0" in data:
        raise InputError("holds a zero byte: not a text file", source=name)
    codes, documents, texts, places = [], [], [], []
    queries: dict[bytes, int] = {}
    longer = comments = 0
    for number, line in enumerate(data.splitlines(), 1):
        fields = line.split(None, count)
        if not fields:
            continue
        if fields[0][:1] == b"#" and not _is_record(fields, kind, count, wanted):
            comments += 1
            continue
        place = f"{name}:{number}"
        if len(fields) != count:
            if len(fields) < count or kind == "qrels" or _holds_record(fields[count].split()):
                raise _wrong_count(line, kind, count, place)
            longer += 1
        if fields[0].startswith(_MARK):
            remedy = "it belongs at the beginning of a file: were files joined?"
            raise InputError("a byte order mark", source=place, value=line, remedy=remedy)
        if max(len(fields[0]), len(fields[2])) > LONGEST_ID:
            raise InputError(f"an id has more than {LONGEST_ID} bytes", source=place, value=line)
        codes.append(queries.setdefault(fields[0], len(queries)))
        documents.append(fields[2])
        texts.append(fields[wanted])
        places.append(place)
    if not texts:
        raise InputError("holds no lines", source=name)
    owners, names = np.array(codes, np.int32), list(queries)
    notices = _notices(owners, names, longer, comments)
    return Lines(owners, names, Texts.of(documents), np.empty(0), notices), texts, places


def _notices(codes: NDArray[np.int32], queries: list[bytes], longer: int, comments: int) -> dict[str, int]:
    """Return notices on a file; `codes` holds the index of each line's query in `queries`."""
    marked = [code for code, query in enumerate(queries) if query[:1] == b"#"]
    records = int(np.isin(codes, marked).sum()) if marked else 0
    return {"text_after_name": longer, "comment_lines": comments, "marked_records": records}


def _is_record(fields: list[bytes], kind: str, count: int, wanted: int) -> bool:
    """Return whether a line that begins with ``#`` has all fields, and a number in field `wanted`."""
    if len(fields) != count and (kind == "qrels" or len(fields) < count or fields[1].upper() not in (b"Q0", b"0")):
        return False
    try:
        decimal(fields[wanted])
    except ValueError:
        return False
    return True  # an invalid grade or score raises an error later, as on other lines


def _grade(text: bytes) -> int | None:
    """Return a grade; None for text that is no integer."""
    try:
        return whole(text)
    except (ValueError, OverflowError):
        return None


def _score(text: bytes) -> float:
    """Return a score; NaN for text that is no number."""
    try:
        return decimal(text)
    except ValueError:
        return np.nan


def _wrong_count(line: bytes, kind: str, count: int, place: str) -> InputError:
    """Return the error about a line with too few fields, or with enough for two records."""
    found = len(line.split())
    remedy = "query, 0, document, grade" if kind == "qrels" else "query, Q0, document, rank, score, name"
    if found == (6 if kind == "qrels" else 4):
        remedy += "; are the arguments swapped? The qrels come first"
    # With two records on one line, the last field of the first record may be joined to the first field of the second.
    if found > count and (kind == "run" or found >= 2 * count - 1):
        remedy += "; two records on one line? A line feed is missing, as where files were joined"
    return InputError(f"{found} fields where {count} belong", source=place, value=line, remedy=remedy)


def _holds_record(words: list[bytes]) -> bool:
    """Return whether words after a run's name look like the fields Q0, document, rank and score of another record. One
    of Q0, rank and score may be damaged.
    """
    return any(
        (word.upper() in (b"Q0", b"0")) + is_decimal(rank) + is_decimal(score) >= 2
        for word, _, rank, score in zip(words, words[1:], words[2:], words[3:], strict=False)
    )
