"""Parse lines of runs and judgements into dicts of dicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable


def parse_run(f_run: Iterable[str]) -> dict[str, dict[str, float]]:
    """Read the lines of a run: query, Q0, document, rank, score and name.

    `detmap.retrieval.evaluate_run` takes the path of a file directly, which is many times faster.

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
        If a line does not have six fields, or a score is not a number.
    AssertionError
        If a document is repeated for a query.
    """
    run: dict[str, dict[str, float]] = defaultdict(dict)
    for line in f_run:
        query, _, document, _, score, _ = line.split()
        _once(document, run[query], query)
        run[query][document] = float(score)
    return run


def parse_qrel(f_qrel: Iterable[str]) -> dict[str, dict[str, int]]:
    """Read the lines of judgements: query, iteration, document and grade; see `parse_run`.

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
        If a line does not have four fields, or a grade is not an integer.
    AssertionError
        If a document is repeated for a query.
    """
    qrel: dict[str, dict[str, int]] = defaultdict(dict)
    for line in f_qrel:
        query, _, document, grade = line.split()
        _once(document, qrel[query], query)
        qrel[query][document] = int(grade)
    return qrel


def _once(document: str, seen: dict[str, int] | dict[str, float], query: str) -> None:
    """Raise pytrec_eval's exception for a repeated document."""
    if document in seen:
        raise AssertionError(f"query {query} has document {document} twice")
