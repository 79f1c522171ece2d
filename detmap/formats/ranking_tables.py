"""Runs and judgements in other layouts than TREC's lines: tables (CSV, Parquet, Feather), BEIR's folders, JSON."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, NamedTuple

from detmap.choices import decimal
from detmap.data.arrow_columns import listed
from detmap.data.frames import arrow_of
from detmap.errors import InputError, shorten
from detmap.reading.arrow_files import FORMS, form_of, table_of
from detmap.reading.opening import Held
from detmap.reading.sources import head, read_bytes
from detmap.reading.strict_json import parsed

#: Accepted titles of each column, in lower case with underscores for hyphens.
QUERY = ("query_id", "q_id", "qid", "query", "topic", "queries")
DOCUMENT = ("doc_id", "docno", "docid", "doc", "document", "document_id", "corpus_id", "documents")
VALUE = {
    "qrels": ("relevance", "rel", "grade", "score", "label", "values"),
    "run": ("score", "sim", "scores", "values"),
}

_TEST = "test.tsv"


class Columns(NamedTuple):
    """Queries, documents, and scores or grades."""

    queries: Any
    documents: Any
    values: Any


def other_layout(source: Any, kind: str) -> Any:
    """Read a table or a JSON object from a path or bytes. Return None for TREC's lines, and for objects in memory."""
    if isinstance(source, bytes) and not isinstance(source, Held):
        source = Held.of(source, kind)
    if not isinstance(source, str | os.PathLike | Held):
        return None
    if not isinstance(source, Held) and os.path.isdir(source):
        return other_layout(_of_beir(os.fspath(source), kind), kind)
    start = head(source)
    form = form_of(start)
    if form is not None:
        table, _, name = table_of(form, source, kind, partial(_is_one, _known(kind)))
        return from_frame(table, kind, name)
    first = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if first[:1] == b"{":
        return _of_json(source, kind)
    titles = [_plain(one) for one in _split(first.partition(b"\n")[0].decode("utf-8", "replace"))]
    if set(titles) & set(QUERY) and set(titles) & set(DOCUMENT):
        return _of_lines(source, kind)
    return None


def _plain(title: str) -> str:
    return title.strip(' "\r').lower().replace("-", "_")


def _known(kind: str) -> tuple[str, ...]:
    return (*QUERY, *DOCUMENT, *VALUE[kind])


def _delimiter(line: str) -> str:
    return max("\t,;", key=line.count)


def _split(line: str) -> list[str]:
    return line.split(_delimiter(line))


def _of_beir(folder: str, kind: str) -> str:
    """Return the path of a data set's judgements; if there are several splits, take the test split, which BEIR scores."""
    inside = os.path.join(folder, "qrels")
    place = inside if os.path.isdir(inside) else folder
    found = sorted(name for name in os.listdir(place) if name.endswith(".tsv"))
    if kind != "qrels" or not found:
        raise InputError(
            "is a folder",
            source=folder,
            remedy="give the file of the run"
            if kind == "run"
            else "BEIR's data sets have qrels/test.tsv; else give a file",
        )
    if _TEST not in found and len(found) > 1:
        names = ", ".join(shorten(one)[1:-1] for one in found[:8])
        remedy = "give the path of the one that is meant"
        raise InputError(f"holds {len(found)} files of judgements: {names}", source=place, remedy=remedy)
    return os.path.join(place, _TEST if _TEST in found else found[0])


def _place(titles: Sequence[str], wanted: Sequence[str], kind: str, name: str) -> int:
    """Return the index of the first wanted column; raise `InputError` if there is none."""
    plain = [_plain(one) for one in titles]
    found = next((one for one in wanted if one in plain), None)
    if found is None:
        have = ", ".join(shorten(one)[1:-1] for one in titles[:20])
        raise InputError(f"no column named {', '.join(wanted[:-1])}", source=name, remedy=f"it has: {have}")
    if plain.count(found) > 1:
        raise InputError("has two columns of one name", source=name, value=found)
    return plain.index(found)


def from_frame(data: Any, kind: str, name: str) -> Columns:
    """Return the columns of a `pyarrow.Table`, or of anything else with Arrow's interface."""
    table = arrow_of(data, name)
    places = [_place(table.column_names, wanted, kind, name) for wanted in (QUERY, DOCUMENT, VALUE[kind])]
    return Columns(*(listed(table.column(place), table.column_names[place], name) for place in places))


def _of_lines(source: Any, kind: str) -> Columns:
    """Read CSV or TSV whose first line names the columns; ids are kept as text."""
    data, name = read_bytes(source, kind)
    try:
        text = bytes(data).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("is not a text file in UTF-8", source=name) from None
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=_delimiter(text.lstrip().partition("\n")[0]), strict=True
    )
    columns: list[list[Any]] = [[], [], []]
    titles: list[str] = []
    places: list[int] = []
    try:
        for row in reader:
            if not any(row):
                continue
            if not titles:
                titles = row
                places = [_place(titles, wanted, kind, name) for wanted in (QUERY, DOCUMENT, VALUE[kind])]
                continue
            if len(row) != len(titles):
                problem = f"has {len(row)} fields where {len(titles)} are expected"
                raise InputError(problem, source=name, record=f"line {reader.line_num}")
            columns[0].append(row[places[0]])
            columns[1].append(row[places[1]])
            columns[2].append(_number(row[places[2]], kind, name, reader.line_num))
    except csv.Error as error:
        reason = str(error).replace("\t", "\\t")
        raise InputError(f"is not valid CSV: {reason}", source=name, record=f"line {reader.line_num}") from None
    return Columns(*columns)


def _number(cell: str, kind: str, name: str, line: int) -> float:
    try:
        value = decimal(cell)
    except ValueError:
        value = float("nan")
    if value != value:
        what = "a grade must be an integer" if kind == "qrels" else "a score must be a number"
        raise InputError(what, source=name, record=f"line {line}", value=cell)
    return value


def _of_json(source: Any, kind: str) -> dict[str, dict[str, Any]]:
    """Read a JSON object that maps each query to an object of values by document, as BEIR and other tools save runs."""
    data, name = read_bytes(source, kind)
    document = parsed(data, name)
    if not isinstance(document, dict) or not all(isinstance(one, dict) for one in document.values()):
        raise InputError("must hold an object of documents and values for each query", source=name)
    return document


#: For each array of neighbours, the titles that its column in a table may have.
_NEIGHBORS = {
    "indices": ("indices", "neighbors", "neighbours", "index"),
    "distances": ("distances", "distance"),
    "query_ids": ("query_ids", "query_id", "q_pids", "ids", "id", "pid"),
    "query_cameras": ("query_cameras", "query_camera", "q_camids", "cameras", "camera", "camid"),
}
_GALLERY = {
    "gallery_ids": ("gallery_ids", "gallery_id", "g_pids", "ids", "id", "pid"),
    "gallery_cameras": ("gallery_cameras", "gallery_camera", "g_camids", "cameras", "camera", "camid"),
}


def _is_one(names: Collection[str], title: str) -> bool:
    return _plain(title) in names


def read_neighbors(path: Any, gallery: Any) -> dict[str, Any]:
    """Return arrays of neighbours for `detmap.retrieval.evaluate_neighbors` from two Parquet or Feather files.

    `path` has a row per query: ``indices`` (a list of indices into the gallery), ``distances`` (a list), ``query_id``
    and ``camera``. `gallery` has a row per item, in the order of the gallery: ``id`` and ``camera``. Raises
    `InputError` if the lists differ in length.
    """
    out = {}
    for source, wanted in ((path, _NEIGHBORS), (gallery, _GALLERY)):
        form = form_of(head(source))
        if form is None:
            raise InputError(f"is neither of {', '.join(FORMS)}", source=os.fspath(source))
        every = {one for names in wanted.values() for one in names}
        table, _, name = table_of(form, source, "neighbors", partial(_is_one, every))
        titles = [_plain(one) for one in table.column_names]
        for role, names in wanted.items():
            found = next((one for one in names if one in titles), None)
            if found is not None:
                out[role] = listed(table.column(titles.index(found)), found, name)
    return out
