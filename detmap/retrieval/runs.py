"""Runs against judgements (TREC): dicts, columns, frames or files to rankings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap import parallel
from detmap.errors import InputError, OptionError
from detmap.formats.trec import read_qrels, read_run
from detmap.hits import Hits
from detmap.kernels import ranking, readonly
from detmap.kernels.sorting import group_by
from detmap.retrieval.conventions import Convention, convention_of
from detmap.retrieval.metrics import Ranked, parse_all
from detmap.retrieval.scoring import RankingResult, score

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


@dataclass(frozen=True)
class Table:
    """Lines of judgements or of a run, grouped by query.

    Attributes
    ----------
    queries : list
        The queries, each once, in order of appearance.
    starts : ndarray of int64, shape (q + 1,)
        The lines of query *i* are ``starts[i]:starts[i + 1]``.
    documents : sequence
        Each line's document: an array of integers or bytes, or a list of any keys.
    values : ndarray of float64 or int64
        Scores or grades.
    """

    queries: list[Any]
    starts: NDArray[np.int64]
    documents: Any
    values: NDArray[Any]


def _is_source(data: Any) -> bool:
    return isinstance(data, str | os.PathLike | bytes) or hasattr(data, "read")


def _columns(data: Any, kind: str) -> tuple[Any, Any, Any]:
    """Return the three columns of anything but a dict of dicts."""
    if _is_source(data):
        lines = read_qrels(data) if kind == "qrels" else read_run(data)
        return lines.queries, lines.documents, lines.values
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


def _ids(values: Any, source: str) -> NDArray[Any]:
    """Return ids as an array of int64 or of bytes (UTF-8, whose order is that of strcmp)."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError("expected a flat column", source=source)
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    if array.dtype.kind == "S":
        return array
    if array.dtype.kind not in "UOT":
        raise InputError(f"ids must be integers or strings, not {array.dtype}", source=source)
    texts = [v if isinstance(v, bytes) else str(v).encode("utf-8", "surrogatepass") for v in array.tolist()]
    if any(b"\0" in t for t in texts):
        raise InputError("an id holds a zero byte", source=source)
    return np.array(texts, dtype="S") if texts else np.empty(0, "S1")


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
    return array.astype(np.int64)


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
    queries, documents, values = _columns(data, kind)
    names, items = _ids(queries, f"{kind} queries"), _ids(documents, f"{kind} documents")
    if names.size == 0:
        raise InputError("is empty", source=kind)
    if items.size != names.size:
        raise InputError(f"{items.size} documents for {names.size} queries", source=kind)
    numbers = _numbers(values, kind, names.size)
    cuts = np.flatnonzero(names[1:] != names[:-1]) + 1
    first = names[np.concatenate(([0], cuts))]
    starts = np.concatenate(([0], cuts, [names.size])).astype(np.int64)
    listed = [name.decode("utf-8", "surrogatepass") if isinstance(name, bytes) else name for name in first.tolist()]
    if len(set(listed)) < len(listed):  # a query's lines are not all together: group them, in their order
        place = {name: i for i, name in enumerate(dict.fromkeys(listed))}
        codes = readonly(np.repeat([place[name] for name in listed], np.diff(starts)), np.int32)
        order, starts = np.empty(names.size, np.int32), np.empty(len(place) + 1, np.int64)
        group_by(codes, readonly(np.arange(names.size), np.int32), order, starts)
        listed, items, numbers = list(place), items[order], numbers[order]
    return Table(listed, starts, items, numbers)


def _words(documents: NDArray[Any], width: int) -> NDArray[np.uint64]:
    """Return ids as rows of unsigned words whose order is that of the ids: bytes, or decimal strings of integers."""
    if documents.dtype.kind in "iu":
        return readonly(documents.view(np.uint64)[:, None], np.uint64)
    padded = documents.astype(f"S{max(width, 1)}")
    return readonly(padded.view(np.uint8).reshape(len(padded), -1).view(">u8"), np.uint64)


def _same_kind(*columns: Any) -> list[NDArray[Any]]:
    """Return the ids of several tables as arrays of one kind: all integers, or all bytes."""
    arrays = [_ids(c, "documents") if not isinstance(c, np.ndarray) else c for c in columns]
    if len({a.dtype.kind for a in arrays}) > 1:
        arrays = [a.astype("S") if a.dtype.kind in "iu" else a for a in arrays]
    return arrays


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
    decided = convention_of(convention, choices)
    requests = parse_all(RUN_METRICS if metrics is None else metrics, decided)
    if isinstance(level, bool) or not isinstance(level, int | np.integer):
        raise OptionError(f"level must be an integer, not {level!r}")
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int) or depth < 1):
        raise OptionError(f"depth must be a positive integer, not {depth!r}")
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
            remedy=f"the judgements' queries are like {judged.queries[0]!r}",
        )
    kept = [i for i, at in enumerate(theirs) if at >= 0 or decided.missing == "zero"]
    block = _rank(judged, ranked, kept, [theirs[i] for i in kept], decided, int(level), depth, judged_only)
    names = np.array([judged.queries[i] for i in kept])
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


def _take(table: Table, which: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return starts and lines of some of the queries (-1: one without lines), in their order."""
    at = np.array(which, dtype=np.int64)
    sizes = np.where(at >= 0, table.starts[at + 1] - table.starts[at], 0)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    lines = np.arange(starts[-1]) + np.repeat(table.starts[at] - starts[:-1], sizes)
    return starts, lines


def _find(
    judged: Table, lines: NDArray[np.int64], starts: NDArray[np.int64], ranked: Table, theirs: list[int]
) -> tuple[NDArray[np.int64], Any, Any]:
    """Return for each judged line its line among its query's ranked ones (-1: not ranked), and both tables' documents."""
    if isinstance(ranked.documents, list):
        found = np.full(lines.size, -1, np.int64)
        wanted = judged.documents if isinstance(judged.documents, list) else judged.documents.tolist()
        if not isinstance(judged.documents, list) and judged.documents.dtype.kind == "S":
            wanted = [d.decode("utf-8", "surrogatepass") for d in wanted]
        for q, at in enumerate(theirs):
            if at < 0:
                continue
            place = {d: i for i, d in enumerate(ranked.documents[ranked.starts[at] : ranked.starts[at + 1]])}
            for j in range(starts[q], starts[q + 1]):
                found[j] = place.get(wanted[lines[j]], -1)
        return found, ranked.documents, wanted
    ours, docs = _same_kind(judged.documents, ranked.documents)
    width = -(-max(ours.dtype.itemsize, docs.dtype.itemsize) // 8) * 8
    rows, run_lines = _take(ranked, theirs)
    whole = theirs == list(range(len(ranked.queries)))
    words = _words(docs if whole else docs[run_lines], width)
    wanted_words = _words(ours[lines], width)
    found = np.full(lines.size, -1, np.int64)
    rows, starts = readonly(rows, np.int64), readonly(starts, np.int64)
    for repeated in parallel.run(
        lambda b, e: ranking.find_judged(words, rows, wanted_words, starts, b, e, found),
        parallel.even(len(theirs), None),
    ):
        if repeated >= 0:
            q = int(np.searchsorted(rows, repeated, side="right")) - 1
            raise InputError(
                f"document {_text(docs[run_lines[repeated]])} is there twice",
                source="run",
                record=f"query {ranked.queries[theirs[q]]}",
            )
    return found, docs, ours


def _text(document: Any) -> str:
    return repr(document.decode("utf-8", "replace") if isinstance(document, bytes) else document)


def _check_judged(judged: Table) -> None:
    """Refuse judgements with a document twice."""
    documents = judged.documents if isinstance(judged.documents, list) else judged.documents.tolist()
    for q, query in enumerate(judged.queries):
        part = documents[judged.starts[q] : judged.starts[q + 1]]
        if len(set(part)) < len(part):
            seen: set[Any] = set()
            twice = next(d for d in part if d in seen or seen.add(d))  # type: ignore[func-returns-value]
            raise InputError(f"document {_text(twice)} is judged twice", source="qrels", record=f"query {query}")


def _rank(
    judged: Table,
    ranked: Table,
    kept: list[int],
    theirs: list[int],
    convention: Convention,
    level: int,
    depth: int | None,
    judged_only: bool,
) -> tuple[Ranked, int]:
    """Rank the judged documents of the queries; return them and the number of lines taken out."""
    _check_judged(judged)
    starts, lines = _take(judged, kept)
    grades = judged.values[lines]
    found, docs, _ = _find(judged, lines, starts, ranked, theirs)
    rows, run_lines = _take(ranked, theirs)
    scores = ranked.values[run_lines]
    if convention.order == "given":
        values = (np.arange(run_lines.size) - np.repeat(rows[:-1], np.diff(rows))).astype(np.float64)
    else:
        with np.errstate(over="ignore"):  # what is too large for single precision becomes infinite, as in C
            values = -(scores.astype(np.float32) if convention.single else scores).astype(np.float64)
    owner = np.repeat(np.arange(len(kept)), np.diff(starts))
    # Which judged documents were ranked, by query and then by line: the order that the kernel asks for.
    got = np.flatnonzero(found >= 0)
    got = got[np.argsort(rows[owner[got]] + found[got], kind="stable")]
    relevant, whose, gains = found[got], owner[got], grades[got]
    out = np.zeros(run_lines.size, np.bool_)
    if convention.positive_scores:
        out |= scores <= 0
    if convention.drop_same_id:
        out |= _named_as_query(ranked, theirs, docs, rows, run_lines)
    removed = int(out.sum())
    if judged_only:
        out |= True
        out[(rows[whose] + relevant)[gains >= 0]] &= False
    if out.any():  # take the lines out, and with them the judged documents on them
        stay = ~out[rows[whose] + relevant]
        number = np.concatenate(([0], np.cumsum(~out)))
        relevant, whose, gains = (number[rows[whose] + relevant] - number[rows[whose]])[stay], whose[stay], gains[stay]
        rows, run_lines, values = number[rows], run_lines[~out], values[~out]
    hit_starts = readonly(np.concatenate(([0], np.cumsum(np.bincount(whose, minlength=len(kept))))), np.int64)
    relevant, values, rows = readonly(relevant, np.int64), readonly(values, np.float64), readonly(rows, np.int64)
    ranks, ahead, tied, which = (np.empty(relevant.size, np.int64) for _ in range(4))
    items = np.empty(len(kept), np.int64)
    none_starts, none = readonly(np.zeros(len(kept) + 1), np.int64), readonly((), np.int64)
    cuts = parallel.even(len(kept), None)
    parallel.run(
        lambda b, e: ranking.rank_relevant(
            values, rows[b : e + 1], b, hit_starts, relevant, none_starts, none, b, e, ranks, ahead, tied, which, items
        ),
        cuts,
    )
    if convention.ties == "docid" and (tied > 1).any():
        _by_document(docs, run_lines, values, rows, hit_starts, relevant, which, ahead, tied, ranks)
        order = np.lexsort((ranks, whose))
        ranks, ahead, tied, which = ranks[order], ahead[order], tied[order], which[order]
    grade = gains[which]
    positives = np.bincount(owner[grades >= level], minlength=len(kept))
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
            negatives=np.bincount(owner[(grades >= 0) & (grades < level)], minlength=len(kept)),
            ideal_starts=np.concatenate(([0], np.cumsum(np.bincount(owner[ideal], minlength=len(kept))))),
            ideal=grades[ideal],
            level=level,
            highest=int(grades.max(initial=0)),
        ),
        removed,
    )


def _named_as_query(
    ranked: Table, theirs: list[int], docs: Any, rows: NDArray[np.int64], run_lines: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which lines' documents have the name of their query."""
    out = np.zeros(run_lines.size, np.bool_)
    for q, at in enumerate(theirs):
        if at < 0:
            continue
        part = docs[ranked.starts[at] : ranked.starts[at + 1]]
        name = ranked.queries[at]
        if isinstance(part, list):
            out[rows[q] : rows[q + 1]] = [str(d) == str(name) for d in part]
        elif part.dtype.kind == "S":
            out[rows[q] : rows[q + 1]] = part == str(name).encode("utf-8", "surrogatepass")
        else:
            out[rows[q] : rows[q + 1]] = part.astype("S") == str(name).encode()
    return out


def _by_document(
    docs: Any,
    run_lines: NDArray[np.int64],
    values: NDArray[np.float64],
    rows: NDArray[np.int64],
    starts: NDArray[np.int64],
    relevant: NDArray[np.int64],
    which: NDArray[np.int64],
    ahead: NDArray[np.int64],
    tied: NDArray[np.int64],
    ranks: NDArray[np.int64],
) -> None:
    """Put tied documents in descending order of their ids, query by query, where there are ties."""
    owner = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    for q in np.unique(owner[tied > 1]).tolist():
        lines = run_lines[rows[q] : rows[q + 1]]
        names = _ids([docs[i] for i in lines.tolist()], "run") if isinstance(docs, list) else docs[lines]
        if names.dtype.kind in "iu":
            names = names.astype("S")
        words = _words(names, -(-names.dtype.itemsize // 8) * 8)
        here, hits = slice(rows[q], rows[q + 1]), slice(starts[q], starts[q + 1])
        part = np.empty(starts[q + 1] - starts[q], np.int64)
        part[:] = ranks[hits]
        ranking.order_by_document(
            values[here],
            readonly([0, lines.size], np.int64),
            words,
            readonly([0, part.size], np.int64),
            relevant[hits],
            readonly(which[hits] - starts[q], np.int64),
            readonly(ahead[hits], np.int64),
            readonly(tied[hits], np.int64),
            0,
            1,
            part,
        )
        ranks[hits] = part
