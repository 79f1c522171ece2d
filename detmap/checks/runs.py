"""Checks of runs and relevance judgements before rankings are scored."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.checks.data_statistics import Figure, figure_of
from detmap.checks.findings import Finding, found
from detmap.checks.report import Report, ordered
from detmap.errors import many, shorten

if TYPE_CHECKING:
    from detmap.formats.trec import Lines

#: Number of top-ranked documents per query among which unjudged documents are counted.
_DEPTH = 10

Path = str | os.PathLike[str] | bytes


class _Side(NamedTuple):
    """The lines of a file: codes of query and document, and grade or score."""

    query: NDArray[np.int64]
    document: NDArray[np.int64]
    values: NDArray[np.float64]


def check_run(qrels: Path, run: Path) -> Report:
    """Check a run and its judgements for defects that make metrics wrong.

    Parameters
    ----------
    qrels : path
        File of judgements, with lines of query, 0, document, grade.
    run : path
        File of rankings, with lines of query, Q0, document, rank, score, name.

    Returns
    -------
    Report
        The findings, and the distributions (`figures`) of the data.

    Raises
    ------
    InputError
        If a file cannot be read.
    """
    from detmap.formats.trec import read_qrels, read_run

    judged, ranked = read_qrels(qrels), read_run(run)
    queries, documents = _Numbers(), _Numbers()
    sides = [
        _Side(
            queries.of(lines.queries)[lines.codes],
            documents.of(lines.documents.tolist()),
            np.asarray(lines.values, np.float64),
        )
        for lines in (judged, ranked)
    ]
    findings = list(_findings(sides[0], sides[1], queries.names(), documents.names()))
    subject = (
        f"{many(judged.codes.size, 'judgement')} of {many(len(judged.queries), 'query')}, "
        f"{many(ranked.codes.size, 'document')} ranked for {many(len(ranked.queries), 'query')}"
    )
    return Report(subject, ordered(findings), tuple(_figures(sides[0], sides[1], ranked)))


class _Numbers:
    """Assigns distinct numbers to distinct names."""

    def __init__(self) -> None:
        self._places: dict[bytes, int] = {}

    def of(self, given: list[bytes]) -> NDArray[np.int64]:
        """Return the number of each given name."""
        places = self._places
        return np.array([places.setdefault(name, len(places)) for name in given], np.int64)

    def names(self) -> list[str]:
        """Return the names, ordered by their numbers."""
        return [name.decode("utf-8", "replace") for name in self._places]


def _pairs(side: _Side, size: int) -> NDArray[np.int64]:
    """Return a key for each line, equal for equal pairs of query and document."""
    return side.query * size + side.document


def _findings(judged: _Side, ranked: _Side, queries: list[str], documents: list[str]) -> Iterator[Finding]:
    size = len(documents)
    mine, theirs = _pairs(ranked, size), _pairs(judged, size)
    yield from _repeats(judged, ranked, mine, theirs, queries)
    asked, known = np.unique(ranked.query), np.unique(judged.query)
    common = np.intersect1d(asked, known)
    if not common.size:
        more = _alike([queries[q] for q in asked], [queries[q] for q in known])
        yield found(
            "disjoint_queries", asked.size, "query", more=more, records=(queries[q] for q in asked), named="query"
        )
        return
    for code, left in (("missing_queries", np.setdiff1d(known, asked)), ("extra_queries", np.setdiff1d(asked, known))):
        if left.size:
            yield found(code, left.size, "query", records=(queries[q] for q in left), named="query")
    relevant = np.unique(judged.query[judged.values > 0])
    without = np.setdiff1d(common, relevant)
    if without.size:
        shown = (queries[q] for q in without)
        yield found("queries_without_relevant", without.size, "query", records=shown, named="query")
    among = np.isin(ranked.query, common)
    hit = np.isin(mine, theirs)
    if among.any() and not hit[among].any():
        used = np.unique(ranked.document[among])
        elsewhere = np.isin(used, judged.document)
        more = f"{int(elsewhere.sum()):,} of them are judged for other queries"
        if not elsewhere.any():
            more = _alike([documents[d] for d in used], [documents[d] for d in np.unique(judged.document)])
        shown = (documents[d] for d in used)
        yield found("disjoint_documents", used.size, "document", more=more, records=shown, named="document")
    else:
        yield from _unjudged(ranked, among, hit, queries)
    yield from _ties(ranked, queries)
    yield from _lengths(ranked, common, queries)


def _repeats(
    judged: _Side, ranked: _Side, mine: NDArray[np.int64], theirs: NDArray[np.int64], queries: list[str]
) -> Iterator[Finding]:
    again = _again(mine)
    if again.any():
        shown = dict.fromkeys(queries[q] for q in ranked.query[again])
        yield found("same_query_document", np.unique(mine[again]).size, "document", records=shown, named="query")
    again = _again(theirs)
    if again.any():
        order = np.lexsort((judged.values, theirs))
        differ = (theirs[order[1:]] == theirs[order[:-1]]) & (judged.values[order[1:]] != judged.values[order[:-1]])
        conflicting = np.unique(theirs[order[1:]][differ])
        same = np.setdiff1d(theirs[again], conflicting).size
        if conflicting.size:
            rows = np.isin(theirs, conflicting)
            shown = dict.fromkeys(queries[q] for q in judged.query[rows])
            yield found("conflicting_judgements", conflicting.size, "document", records=shown, named="query")
        if same:
            yield found("repeated_judgements", same, "document")


def _again(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mask of the keys that have occurred before, shape (n,)."""
    order = np.argsort(keys, kind="stable")
    out = np.zeros(keys.size, np.bool_)
    out[order[1:]] = keys[order[1:]] == keys[order[:-1]]
    return out


def _alike(given: list[str], known: list[str]) -> str:
    """Describe the difference in spelling between most ids in `given` and ids in `known`; "" if none is found."""
    ways: list[tuple[str, Callable[[str], str]]] = [
        ("but for case", str.casefold),
        ("but for zeros ahead", lambda text: text.lstrip("0") or "0"),
        ("but for folders and endings", lambda text: text.replace("\\", "/").rpartition("/")[2].partition(".")[0]),
        ("but for what stands ahead of the number", _digits),
    ]
    for says, key in ways:
        places = {key(one): one for one in known}
        hits = [(one, places[key(one)]) for one in given if key(one) and key(one) in places]
        if 2 * len(hits) > len(given):
            one, other = hits[0]
            return f"the same {says}: {shorten(one, 40)} is {shorten(other, 40)}"
    return ""


def _digits(text: str) -> str:
    """Return the number at the end of a name, without leading zeros."""
    kept = len(text) - len(text.rstrip("0123456789"))
    return text[len(text) - kept :].lstrip("0") if kept else ""


def _ranks(ranked: _Side) -> NDArray[np.int64]:
    """Return the rank of each line within its query, from 0, by descending score."""
    order = np.lexsort((-ranked.values, ranked.query))
    starts = np.searchsorted(ranked.query[order], ranked.query[order])
    out = np.empty(order.size, np.int64)
    out[order] = np.arange(order.size) - starts
    return out


def _unjudged(ranked: _Side, among: NDArray[np.bool_], hit: NDArray[np.bool_], queries: list[str]) -> Iterator[Finding]:
    top = among & (_ranks(ranked) < _DEPTH)
    missing = np.bincount(ranked.query[top & ~hit], minlength=len(queries))
    held = np.bincount(ranked.query[top], minlength=len(queries))
    some = np.flatnonzero(missing)
    if some.size:
        at = some[np.argsort(-missing[some], kind="stable")]
        share = missing.sum() / held.sum()
        more = f"{int(missing.sum()):,} documents, {share:.0%} of all that stand there"
        shown = (queries[q] for q in at)
        yield found("unjudged", some.size, "query", more=more, records=shown, named="query")


def _ties(ranked: _Side, queries: list[str]) -> Iterator[Finding]:
    order = np.lexsort((ranked.values, ranked.query))
    same = (ranked.values[order[1:]] == ranked.values[order[:-1]]) & (
        ranked.query[order[1:]] == ranked.query[order[:-1]]
    )
    tied = np.zeros(order.size, np.bool_)
    tied[order[1:][same]] = True
    tied[order[:-1][same]] = True
    if tied.any():
        most = Counter(ranked.query[tied].tolist()).most_common(10)
        shown = [queries[q] for q, _ in most]
        more = f"{tied.mean():.1%} of all"
        yield found("tied_scores", int(tied.sum()), "document", more=more, records=shown, named="query")


def _lengths(ranked: _Side, common: NDArray[np.int64], queries: list[str]) -> Iterator[Finding]:
    lengths = np.bincount(ranked.query, minlength=len(queries))[common]
    usual = float(np.median(lengths))
    short = lengths < 0.5 * usual
    if short.any():
        at = common[short]
        shown = (queries[q] for q in at)
        more = f"{int(lengths[short].min()):,} at least, where {usual:,.0f} is usual"
        yield found("short_rankings", at.size, "query", more=more, records=shown, named="query")


def _figures(judged: _Side, ranked: _Side, lines: Lines) -> Iterator[Figure]:
    made = [
        figure_of("documents ranked per query", np.unique(ranked.query, return_counts=True)[1].astype(np.float64)),
        figure_of("judgements per query", np.unique(judged.query, return_counts=True)[1].astype(np.float64)),
        figure_of("relevant per query", np.bincount(judged.query, judged.values > 0)[np.unique(judged.query)]),
        figure_of("scores", np.asarray(lines.values, np.float64)),
    ]
    yield from (one for one in made if one is not None)
