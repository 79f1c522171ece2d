"""Runs against judgements (TREC): dicts, columns, frames or files to rankings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap import parallel
from detmap.errors import InputError, OptionError, shorten
from detmap.formats.trec import LONGEST_ID, Texts, read_qrels, read_run
from detmap.hits import Hits
from detmap.kernels import ranking, readonly, scanning
from detmap.kernels.sorting import group_by
from detmap.retrieval.conventions import Convention, convention_of
from detmap.retrieval.metrics import DEEPEST, Ranked, parse_all
from detmap.retrieval.scoring import RankingResult, graded, int64, score

#: What is evaluated where nothing is named: trec_eval's usual measures.
RUN_METRICS = (
    "num_ret", "num_rel", "num_rel_ret", "mAP", "GMAP", "R-prec", "bpref", "MRR", "11pt",
    "P@5", "P@10", "P@20", "P@100", "R@10", "R@100", "R@1000", "nDCG", "nDCG@10", "success@1", "success@10",
)  # fmt: skip

_QUERY = ("query_id", "q_id", "qid", "query", "topic", "query-id", "queries")
_DOCUMENT = ("doc_id", "docno", "docid", "doc", "document", "document_id", "corpus-id", "documents")
_VALUE = {
    "qrels": ("relevance", "rel", "grade", "score", "label", "values"),
    "run": ("score", "sim", "scores", "values"),
}


Documents = list[Any] | NDArray[np.int64] | Texts


@dataclass(frozen=True)
class Table:
    """Lines of judgements or of a run, grouped by query.

    Attributes
    ----------
    queries : list
        The queries, each once, in order of appearance.
    starts : ndarray of int64, shape (q + 1,)
        The lines of query *i* are ``starts[i]:starts[i + 1]``.
    documents : list, ndarray of int64, or Texts
        Each line's document. In a list, of any keys, those of a query are distinct.
    values : ndarray of float64 or int64
        Scores or grades.
    """

    queries: list[Any]
    starts: NDArray[np.int64]
    documents: Documents
    values: NDArray[Any]

    def take(self, which: list[int]) -> Table:
        """Return some of the queries (-1: one without lines), in their order."""
        if which == list(range(len(self.queries))):
            return self
        starts, lines = _lines_of(self.starts, np.array(which, dtype=np.int64))
        queries = [self.queries[i] if i >= 0 else None for i in which]
        return Table(queries, starts, _pick(self.documents, lines), self.values[lines])

    def without(self, out: NDArray[np.bool_]) -> Table:
        """Return the table without some of its lines."""
        stay = np.flatnonzero(~out)
        starts = np.searchsorted(stay, self.starts).astype(np.int64)
        return Table(self.queries, starts, _pick(self.documents, stay), self.values[stay])


def _lines_of(starts: NDArray[np.int64], which: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the lines of some groups (-1: none), one group after the other, and where each starts in that list."""
    sizes = np.where(which >= 0, starts[which + 1] - starts[which], 0)
    new = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return new, np.arange(new[-1]) + np.repeat(starts[which] - new[:-1], sizes)


def _pick(documents: Documents, lines: NDArray[np.int64]) -> Documents:
    return [documents[i] for i in lines.tolist()] if isinstance(documents, list) else documents[lines]


def _is_source(data: Any) -> bool:
    return isinstance(data, str | os.PathLike | bytes) or hasattr(data, "read")


def _columns(data: Any, kind: str) -> tuple[Any, Any, Any]:
    """Return the three columns of anything but a dict of dicts or a file."""
    if isinstance(data, Mapping) or hasattr(data, "columns"):
        names = list(data.columns) if hasattr(data, "columns") else list(data)
        found = []
        for wanted in (_QUERY, _DOCUMENT, _VALUE[kind]):
            name = next((n for n in wanted if n in names), None)
            if name is None:
                raise InputError(f"no column named {', '.join(wanted[:-1])}", source=kind, value=names)
            found.append(data[name])
        return found[0], found[1], found[2]
    if isinstance(data, Sequence) and len(data) == 3:
        return data[0], data[1], data[2]
    raise InputError(
        f"cannot read a {type(data).__name__}",
        source=kind,
        remedy="give a dict of dicts, three columns (query, document, value), a data frame or a file",
    )


def _ids(values: Any, source: str) -> NDArray[Any] | list[bytes]:
    """Return ids as an array of int64, or as bytes (UTF-8, whose order is that of strcmp), in an array or a list."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError("expected a flat column", source=source)
    if array.dtype.kind in "iu":
        return int64(array, source)
    if array.dtype.kind == "S":
        return array
    if array.dtype.kind not in "UOT":
        raise InputError(f"ids must be integers or strings, not {array.dtype}", source=source)
    texts = [v if isinstance(v, bytes) else str(v).encode("utf-8", "surrogatepass") for v in array.tolist()]
    if max(map(len, texts), default=0) > LONGEST_ID:
        raise InputError(f"an id has more than {LONGEST_ID} bytes", source=source, value=max(texts, key=len))
    if any(b"\0" in t for t in texts):
        raise InputError("an id holds a zero byte", source=source)
    return texts


def _documents(values: Any, source: str) -> NDArray[np.int64] | Texts:
    """Return a column of documents, integers or strings."""
    ids = _ids(values, source)
    return ids if isinstance(ids, np.ndarray) and ids.dtype.kind == "i" else Texts.of(ids)


def _texts(documents: Documents) -> Texts:
    """Return documents as strings, integers in decimal."""
    found = _documents(documents, "documents") if isinstance(documents, list) else documents
    return found if isinstance(found, Texts) else Texts.of(found.astype("S"))


def _decoded(name: bytes) -> str:
    """Return the text of an id, printable also where it is not UTF-8."""
    try:
        return name.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return name.decode("utf-8", "backslashreplace")


def _numbers(values: Any, kind: str, count: int) -> NDArray[Any]:
    array = np.asarray(values)
    if array.shape != (count,) or array.dtype.kind not in "iufb":
        raise InputError(f"expected {count} numbers", source=kind, field="grades" if kind == "qrels" else "scores")
    if kind == "run":
        scores = array.astype(np.float64, copy=False)
        if np.isnan(scores).any():
            raise InputError("NaN is no score", source=kind, record=int(np.argmax(np.isnan(scores))))
        return scores
    if array.dtype.kind == "f" and not np.all(array == np.trunc(array)):
        raise InputError("grades must be integers", source=kind)
    return graded(array, kind)


def _table(data: Any, kind: str) -> Table:
    """Return the lines of a run or of judgements, whatever they came in."""
    if isinstance(data, Mapping) and data and all(isinstance(v, Mapping) for v in data.values()):
        sizes = [len(v) for v in data.values()]
        starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        documents = [document for v in data.values() for document in v]
        try:
            if kind == "run":
                values = np.fromiter((x for v in data.values() for x in v.values()), np.float64, int(starts[-1]))
            else:
                values = np.array([x for v in data.values() for x in v.values()])
        except (TypeError, ValueError):
            raise InputError("expected a number for each document", source=kind) from None
        return Table(list(data), starts, documents, _numbers(values, kind, int(starts[-1])))
    items: NDArray[np.int64] | Texts
    if _is_source(data):
        lines = read_qrels(data) if kind == "qrels" else read_run(data)
        names, items, numbers = lines.codes, lines.documents, lines.values
        if kind == "qrels":
            numbers = graded(numbers, kind)
    else:
        queries, documents, values = _columns(data, kind)
        ids, items = _ids(queries, f"{kind} queries"), _documents(documents, f"{kind} documents")
        names = np.array(ids, dtype="S") if isinstance(ids, list) and ids else np.asarray(ids)
        if names.size == 0:
            raise InputError("is empty", source=kind)
        count = items.words.size if isinstance(items, Texts) else items.size
        if count != names.size:
            raise InputError(f"{count} documents for {names.size} queries", source=kind)
        numbers = _numbers(values, kind, names.size)
    starts = np.concatenate(([0], np.flatnonzero(names[1:] != names[:-1]) + 1, [names.size])).astype(np.int64)
    first = names[starts[:-1]].tolist()
    if _is_source(data):
        first = [lines.queries[code] for code in first]
    listed = [_decoded(name) if isinstance(name, bytes) else name for name in first]
    if len(set(listed)) < len(listed):  # a query's lines are not all together: group them, in their order
        place = {name: i for i, name in enumerate(dict.fromkeys(listed))}
        codes = readonly(np.repeat([place[name] for name in listed], np.diff(starts)), np.int32)
        order, starts = np.empty(names.size, np.int32), np.empty(len(place) + 1, np.int64)
        group_by(codes, readonly((), np.int32), order, starts)
        listed, items, numbers = list(place), items[order], numbers[order]
    return Table(listed, starts, items, numbers)


def evaluate_run(
    qrels: Any,
    run: Any,
    metrics: Sequence[str] | str | None = None,
    convention: str | Convention = "trec",
    *,
    level: int = 1,
    depth: int | None = None,
    judged_only: bool = False,
    **choices: Any,
) -> RankingResult:
    """Evaluate a run against judgements.

    Parameters
    ----------
    qrels, run : dict of dict, three columns, mapping or frame of columns, or file
        Grades and scores by query and document: ``{query: {document: value}}``; or a tuple of arrays (query, document,
        value); or named columns; or the path, bytes or open file of a TREC file (``.gz`` too). Queries are paired by key.
    metrics : sequence of str, optional
        Names of the metric table, trec_eval's too.
    convention : str or Convention
        ``trec`` orders by score in single precision and then by document id, descending (ids that are integers as their
        decimal strings). The single decisions (``ties=``, ``missing=`` ...) can be given besides.
    level : int
        The lowest grade that counts as relevant (trec_eval's ``-l``).
    depth : int, optional
        Ranks that are looked at (``-M``).
    judged_only : bool
        Whether documents that are not judged are taken out of the ranking (``-J``).

    Returns
    -------
    RankingResult
        Its queries are those of the judgements that were evaluated, in the order of `qrels`.

    Raises
    ------
    InputError
        For NaN scores, a document ranked or judged twice, unreadable lines, or no query in common.
    """
    decided = convention_of(convention, choices, run=True)
    requests = parse_all(RUN_METRICS if metrics is None else metrics, decided)
    if isinstance(level, bool) or not isinstance(level, int | np.integer):
        raise OptionError(f"level must be an integer, not {level!r}")
    if not -(1 << 31) <= level <= 1 << 31:
        raise OptionError("level must be from -2 ** 31 to 2 ** 31")
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int) or depth < 1):
        raise OptionError(f"depth must be a positive integer, not {depth!r}")
    if depth is not None and depth > DEEPEST:
        raise OptionError("depth must be at most 2 ** 53")
    judged, ranked = _table(qrels, "qrels"), _table(run, "run")
    if any(isinstance(q, str) for q in judged.queries) != any(isinstance(q, str) for q in ranked.queries):
        judged, ranked = (Table([str(q) for q in t.queries], t.starts, t.documents, t.values) for t in (judged, ranked))
    place = {query: i for i, query in enumerate(ranked.queries)}
    theirs = [place.get(query, -1) for query in judged.queries]
    missing = theirs.count(-1)
    extra = len(ranked.queries) - (len(theirs) - missing)
    if missing == len(theirs):
        raise InputError(
            "no query of the run is judged",
            source="run",
            value=ranked.queries[0],
            remedy=f"the judgements' queries are like {shorten(judged.queries[0])}",
        )
    kept = [i for i, at in enumerate(theirs) if at >= 0 or decided.missing == "zero"]
    if not isinstance(judged.documents, list):
        none = _pick(judged.documents, np.empty(0, np.int64))
        _check(judged, _find(judged.documents, judged.starts, none, np.zeros_like(judged.starts))[1], "qrels", "judged")
    judged, ranked = judged.take(kept), ranked.take([theirs[i] for i in kept])
    block = _rank(judged, ranked, decided, int(level), depth, judged_only)
    names = np.array(judged.queries)
    return score(
        [block[0]],
        names,
        requests,
        decided,
        missing=missing,
        extra=extra,
        junk=block[1],
        reason="no document is judged relevant" + (f" at level {level}" if level != 1 else ""),
    )


def _find(
    documents: Documents, starts: NDArray[np.int64], wanted: Documents, wanted_starts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """Find, query by query, documents among documents.

    Returns
    -------
    found : ndarray of int64
        For each document that is wanted its place among those of its query, -1 where it is not there.
    repeated : int
        The first of `documents` that its query had before, -1 where none is; where one is, not all are found.
    """
    if isinstance(documents, list):
        names = wanted if isinstance(wanted, list) else wanted.tolist()
        names = [_decoded(name) if isinstance(name, bytes) and isinstance(wanted, Texts) else name for name in names]
        places: list[int] = []
        for q in range(starts.size - 1):
            place = {d: i for i, d in enumerate(documents[starts[q] : starts[q + 1]])}
            places += [place.get(name, -1) for name in names[wanted_starts[q] : wanted_starts[q + 1]]]
        return np.array(places, np.int64), -1
    sought = _documents(wanted, "documents") if isinstance(wanted, list) else wanted
    if isinstance(documents, Texts) or isinstance(sought, Texts):
        own, others = _texts(documents), _texts(sought)
    else:
        own, others = Texts.of(documents), Texts.of(sought)
    starts, wanted_starts = readonly(starts, np.int64), readonly(wanted_starts, np.int64)
    found = np.empty(others.words.size, np.int64)
    seed = np.uint64(int.from_bytes(os.urandom(8), "little"))

    def find(begin: int, end: int) -> int:
        with np.errstate(over="ignore"):  # uncompiled, words that wrap around warn
            return int(
                scanning.find_strings(
                    own.data, own.words, starts, others.data, others.words, wanted_starts, begin, end, seed, found
                )
            )

    repeated = parallel.run(find, parallel.even(starts.size - 1, None))
    return found, next((row for row in repeated if row >= 0), -1)


def _check(table: Table, repeated: int, source: str, what: str) -> None:
    """Refuse a document that is repeated."""
    if repeated >= 0:
        document = _pick(table.documents, np.array([repeated]))
        text = document.tolist()[0] if not isinstance(document, list) else document[0]
        query = table.queries[int(np.searchsorted(table.starts, repeated, side="right")) - 1]
        raise InputError(f"document {shorten(text)} is {what} twice", source=source, record=f"query {query}")


def _rank(
    judged: Table,
    ranked: Table,
    convention: Convention,
    level: int,
    depth: int | None,
    judged_only: bool,
) -> tuple[Ranked, int]:
    """Rank the judged documents of tables with the same queries; return them and the number of lines taken out."""
    count = len(judged.queries)
    starts, grades = judged.starts, judged.values
    found, repeated = _find(ranked.documents, ranked.starts, judged.documents, starts)
    _check(ranked, repeated, "run", "there")
    owner = np.repeat(np.arange(count), np.diff(starts))
    # Which judged documents were ranked, by query and then by line: the order that the kernel asks for.
    got = np.flatnonzero(found >= 0)
    lines = ranked.starts[owner[got]] + found[got]
    order = np.argsort(lines, kind="stable")
    lines, whose, gains = lines[order], owner[got][order], grades[got][order]
    out = np.zeros(ranked.values.size, np.bool_)
    if convention.positive_scores:
        out |= ranked.values <= 0
    if convention.drop_same_id:
        out |= _named_as_query(ranked)
    removed = int(out.sum())
    if judged_only:
        out |= True
        out[lines[gains >= 0]] = False
    if out.any():  # take the lines out, and with them the judged documents on them
        stay = ~out[lines]
        ranked, lines, whose, gains = ranked.without(out), lines[stay], whose[stay], gains[stay]
        lines -= np.cumsum(out)[lines]
    hit_starts = np.concatenate(([0], np.cumsum(np.bincount(whose, minlength=count)))).astype(np.int64)
    ranks, ahead, tied, which, items = _places(ranked, lines - ranked.starts[whose], hit_starts, convention)
    grade = gains[which]
    positives = np.bincount(owner[grades >= level], minlength=count)
    pool = Hits(hit_starts, ranks, np.diff(starts), items, grades=grade, ahead=ahead, tied=tied)
    if depth is not None:
        pool = replace(pool.cut(depth, pool.positives), items=np.minimum(items, depth))
    ideal = np.flatnonzero(grades > 0)
    ideal = ideal[np.lexsort((-grades[ideal], owner[ideal]))]
    return (
        Ranked(
            pool.select(pool.grades >= level, positives),
            convention,
            pool=pool,
            negatives=np.bincount(owner[(grades >= 0) & (grades < level)], minlength=count),
            ideal_starts=np.concatenate(([0], np.cumsum(np.bincount(owner[ideal], minlength=count)))),
            ideal=grades[ideal],
            level=level,
            highest=int(grades.max(initial=0)),
        ),
        removed,
    )


def _places(
    ranked: Table, relevant: NDArray[np.int64], hit_starts: NDArray[np.int64], convention: Convention
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Rank lines of a run among those of their query.

    Parameters
    ----------
    ranked : Table
        The run.
    relevant : ndarray of int64, shape (h,)
        Lines, counted from their query's first one, ascending within a query.
    hit_starts : ndarray of int64, shape (q + 1,)
        Those of query *i* are ``relevant[hit_starts[i]:hit_starts[i + 1]]``.
    convention : Convention
        Says what orders a run, and what orders ties.

    Returns
    -------
    ranks, ahead, tied, which : ndarray of int64, shape (h,)
        By query and rank: the rank; how many lines of the query have a better score, and how many the same one; and the
        element of `relevant`.
    items : ndarray of int64, shape (q,)
        How many lines were ranked.
    """
    queries = hit_starts.size - 1
    ranks, ahead, tied, which = (np.empty(relevant.size, np.int64) for _ in range(4))
    items = np.empty(queries, np.int64)
    hit_starts, relevant = readonly(hit_starts, np.int64), readonly(relevant, np.int64)
    none_starts, none = readonly(np.zeros(queries + 1), np.int64), readonly((), np.int64)

    def rank(begin: int, end: int) -> None:
        first = ranked.starts[begin]
        rows = readonly(ranked.starts[begin : end + 1] - first, np.int64)
        scores = ranked.values[first : ranked.starts[end]]
        if convention.order == "given":
            scores = np.repeat(rows[:-1], np.diff(rows)) - np.arange(scores.size)
        elif convention.single:
            with np.errstate(over="ignore"):  # what is too large for single precision becomes infinite, as in C
                scores = scores.astype(np.float32)
        values = readonly(-scores, np.float64)
        ranking.rank_relevant(
            values, rows, begin, hit_starts, relevant, none_starts, none, begin, end, ranks, ahead, tied, which, items
        )
        hits = slice(hit_starts[begin], hit_starts[end])
        if convention.ties != "docid" or not np.any(tied[hits] > 1):
            return
        # Order all lines of the queries in which a hit is tied, by score and then by document.
        owner = np.repeat(np.arange(end - begin), np.diff(hit_starts[begin : end + 1]))
        some = np.unique(owner[tied[hits] > 1])
        starts, lines = _lines_of(rows, some)
        names = _texts(_pick(ranked.documents, first + lines))
        order = np.arange(lines.size, dtype=np.int32)
        with np.errstate(over="ignore"):
            tied_scores = readonly(-values[lines], np.float64)
            starts = readonly(starts, np.int64)
            scanning.rank_rows(names.data, names.words, tied_scores, starts, 0, some.size, order)
        place = np.empty(lines.size, np.int64)
        place[order] = np.arange(lines.size)
        mine = np.flatnonzero(np.isin(owner, some))
        group = np.searchsorted(some, owner[mine])
        mine += hits.start
        ranks[mine] = place[starts[group] + relevant[which[mine]]] - starts[group] + 1
        by_rank = np.lexsort((ranks[hits], owner))
        for column in (ranks, ahead, tied, which):
            column[hits] = column[hits][by_rank]

    parallel.run(rank, parallel.even(queries, None))
    return ranks, ahead, tied, which, items


def _named_as_query(ranked: Table) -> NDArray[np.bool_]:
    """Return which lines' documents have the name of their query."""
    out = np.zeros(ranked.values.size, np.bool_)
    names = ["" if query is None else str(query) for query in ranked.queries]
    if isinstance(ranked.documents, list):
        for q, name in enumerate(names):
            lines = slice(ranked.starts[q], ranked.starts[q + 1])
            out[lines] = [str(d) == name for d in ranked.documents[lines]]
    else:
        found, _ = _find(_texts(ranked.documents), ranked.starts, _texts(names), np.arange(len(names) + 1))
        out[(ranked.starts[:-1] + found)[found >= 0]] = True
    return out
