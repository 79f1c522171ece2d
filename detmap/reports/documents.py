"""The documents of single queries of a run: the first relevant documents, the first irrelevant documents, and relevant
documents that are not ranked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from detmap.results import printable
from detmap.retrieval import document_ids
from detmap.retrieval.conventions import Convention
from detmap.retrieval.runs import Table, paired, rank_run, read_tables

#: Maximum number of documents of each kind that a row names.
_NAMED = 3


class Documents(NamedTuple):
    """The documents of a query: relevant and irrelevant documents with their ranks, and relevant documents that are not
    ranked.
    """

    hits: list[tuple[str, int]]
    misses: list[tuple[str, int]]
    lost: list[str]

    def row(self) -> dict[str, str]:
        """Return the first documents of each kind as text."""
        more = len(self.lost) - _NAMED
        return {
            "first hits": _ranked(self.hits),
            "first misses": _ranked(self.misses),
            "not found": ", ".join(self.lost[:_NAMED]) + (f" and {more:,} more" if more > 0 else ""),
        }


def _ranked(found: list[tuple[str, int]]) -> str:
    return ", ".join(f"{name} at {rank:,}" for name, rank in found[:_NAMED])


def documents(
    qrels: Any, run: Any, convention: Convention, rules: Mapping[str, Any], queries: Iterable[str]
) -> dict[str, Documents]:
    """Return the documents of some queries of a run, ranked by a convention. The result is empty if the convention
    removes unjudged documents.
    """
    if rules.get("judged_only"):
        return {}
    judged, ranked, theirs = paired(*read_tables(qrels, run))
    place = {str(document_ids.printable(query)): at for at, query in enumerate(judged.queries)}
    chosen = {name: place[name] for name in queries if name in place}
    judged, ranked = judged.take(list(chosen.values())), ranked.take([theirs[at] for at in chosen.values()])
    # `rank_run` returns the grade at each rank. To get the document, line numbers are passed as grades.
    lines = np.arange(ranked.values.size)
    numbers = Table(judged.queries, ranked.starts, ranked.documents, lines + 1)
    pool = rank_run(numbers, ranked, convention, 1, rules.get("depth"), False, None)[0].pool
    assert pool is not None
    names, given = (
        [str(printable(str(document_ids.decoded(one) if isinstance(one, bytes) else one))) for one in table]
        for table in (document_ids.texts(ranked.documents).tolist(), document_ids.texts(judged.documents).tolist())
    )
    level = rules.get("level")
    relevant = judged.values > 0 if level is None else judged.values >= level
    found = {}
    for at, name in enumerate(chosen):
        own = slice(*judged.starts[at : at + 2].tolist())
        sought = [one for one, is_so in zip(given[own], relevant[own].tolist(), strict=True) if is_so]
        some, here = set(sought), slice(*pool.starts[at : at + 2].tolist())
        order = [
            (names[line - 1], rank) for line, rank in zip(pool.grades[here], pool.ranks[here].tolist(), strict=True)
        ]
        there = {one for one, _ in order}
        found[name] = Documents(
            [one for one in order if one[0] in some],
            [one for one in order if one[0] not in some],
            [one for one in sought if one not in there],
        )
    return found
