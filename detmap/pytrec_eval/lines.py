"""Parse lines of runs and judgements into dicts of dicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable


def parse_run(f_run: Iterable[str]) -> dict[str, dict[str, float]]:
    """Read lines of query, Q0, document, rank, score and name.

    For files `detmap.retrieval.evaluate_run` takes the path directly, and is many times faster.

    Parameters
    ----------
    f_run : iterable of str
        The lines, such as an open file.

    Returns
    -------
    dict of dict
        Scores by query and document; rank and name are dropped.

    Raises
    ------
    ValueError
        For a line without six fields, or a score that is no number.
    AssertionError
        For a repeated document of a query.
    """
    run: dict[str, dict[str, float]] = defaultdict(dict)
    for line in f_run:
        query, _, document, _, score, _ = line.split()
        _once(document, run[query], query)
        run[query][document] = float(score)
    return run


def parse_qrel(f_qrel: Iterable[str]) -> dict[str, dict[str, int]]:
    """Read lines of query, iteration, document and grade; see `parse_run`.

    Parameters
    ----------
    f_qrel : iterable of str
        The lines.

    Returns
    -------
    dict of dict
        Grades by query and document.

    Raises
    ------
    ValueError
        For a line without four fields, or a grade that is no integer.
    AssertionError
        For a repeated document of a query.
    """
    qrel: dict[str, dict[str, int]] = defaultdict(dict)
    for line in f_qrel:
        query, _, document, grade = line.split()
        _once(document, qrel[query], query)
        qrel[query][document] = int(grade)
    return qrel


def _once(document: str, seen: dict[str, int] | dict[str, float], query: str) -> None:
    """Refuse a repeated document with the exception of pytrec_eval."""
    if document in seen:
        raise AssertionError(f"query {query} has document {document} twice")
