"""TREC's text files: judgements (qrels) and runs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.errors import InputError
from detmap.formats._source import Source, read_bytes


class Lines(NamedTuple):
    """The columns of a file of judgements or of a run.

    Attributes
    ----------
    queries, documents : ndarray of bytes, shape (n,)
        Ids, in the order of the file.
    values : ndarray, shape (n,)
        Grades (int64) of judgements, scores (float64) of a run.
    """

    queries: NDArray[np.bytes_]
    documents: NDArray[np.bytes_]
    values: NDArray[np.int64] | NDArray[np.float64]


def read_qrels(source: Source) -> Lines:
    """Read judgements: lines of query, iteration, document and grade.

    Blank lines and lines that begin with ``#`` are left out, as trec_eval 10 does; ``.gz`` is decompressed.

    Raises
    ------
    InputError
        For a line that cannot be read, with the file and the line.
    """
    queries, documents, texts, lines, name = _fields(source, "qrels", 4, 4, 3)
    grades = np.empty(len(texts), np.int64)
    for i, text in enumerate(texts):
        try:
            grades[i] = int(text) if b"_" not in text else int("")
        except (ValueError, OverflowError):
            raise InputError("a grade must be an integer", source=f"{name}:{lines[i]}", value=text) from None
    return Lines(queries, documents, grades)


def read_run(source: Source) -> Lines:
    """Read a run: lines of query, Q0, document, rank, score and name; what follows the name is left out.

    The rank is not read: documents are ordered by score, as trec_eval does. Blank lines and lines that begin with ``#``
    are left out; ``.gz`` is decompressed.

    Raises
    ------
    InputError
        For a line that cannot be read, with the file and the line.
    """
    queries, documents, texts, lines, name = _fields(source, "run", 6, None, 4)
    scores = np.empty(len(texts), np.float64)
    for i, text in enumerate(texts):
        try:
            scores[i] = float(text) if b"_" not in text else float("")
        except ValueError:
            scores[i] = np.nan
        if scores[i] != scores[i]:
            raise InputError("a score must be a number", source=f"{name}:{lines[i]}", value=text)
    return Lines(queries, documents, scores)


def _fields(
    source: Source, kind: str, least: int, most: int | None, wanted: int
) -> tuple[NDArray[np.bytes_], NDArray[np.bytes_], list[bytes], list[int], str]:
    """Return queries, documents, the texts of field `wanted`, the line numbers, and the name of the file."""
    content, name = read_bytes(source, kind)
    data = bytes(content)
    if b"\0" in data:
        raise InputError("holds a zero byte: not a text file", source=name)
    queries, documents, texts, lines = [], [], [], []
    for number, line in enumerate(data.split(b"\n"), 1):
        fields = line.split(None, least)
        if not fields or line[:1] == b"#":
            continue
        if len(fields) < least or (most is not None and len(fields) > most):
            shape = "query, 0, document, grade" if kind == "qrels" else "query, Q0, document, rank, score, name"
            raise InputError(
                f"{len(fields)} fields where {least} belong", source=f"{name}:{number}", value=line, remedy=f"{shape}"
            )
        queries.append(fields[0])
        documents.append(fields[2])
        texts.append(fields[wanted])
        lines.append(number)
    if not texts:
        raise InputError("holds no lines", source=name)
    return np.array(queries), np.array(documents), texts, lines, name
