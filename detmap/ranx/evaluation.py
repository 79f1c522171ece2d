"""`evaluate`, with ranx's names, arguments, order and errors, on top of `detmap.retrieval`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.notices import describe
from detmap.errors import InputError, OptionError, shorten
from detmap.ranx.rows import Qrels, Run, lists_as_rows
from detmap.retrieval.conventions import CONVENTIONS, Convention
from detmap.retrieval.lookups import Order
from detmap.retrieval.metrics import parse
from detmap.retrieval.ranked import Request
from detmap.retrieval.runs import RankedRun, Rules, Table, order_of, ranked_run, read_table, table_of_dicts

_CONVENTION = CONVENTIONS.find("ranx")

#: ranx's metrics that take a depth and a relevance level; ``rbp`` takes p and a level instead.
METRICS = (
    "hits", "hit_rate", "precision", "recall", "f1", "r-precision", "mrr", "map", "dcg", "dcg_burges", "ndcg",
    "ndcg_burges", "bpref",
)  # fmt: skip
_NAMED = re.compile(f"(?:(?:{'|'.join(METRICS)})(?:@[0-9]+)?|rbp[.@][0-9]+)(?:-l[0-9]+)?")

#: Maximum length of rankings for which ranx's sort is stable.
_STABLE = 15


def requests_of(metrics: Iterable[str] | str) -> dict[str, Request]:
    """Return the requests for ranx's names of metrics; raise `OptionError` for a name that ranx does not have."""
    found = {}
    for name in [metrics] if isinstance(metrics, str) else metrics:
        if not isinstance(name, str) or not _NAMED.fullmatch(name):
            raise OptionError(
                f"Metric {shorten(name)} not supported: there are {', '.join(METRICS)}, with @k and -l2, and rbp.95"
            )
        found[name] = parse(name, _CONVENTION)
    return found


def evaluate(
    qrels: Any,
    run: Any,
    metrics: Iterable[str] | str,
    return_mean: bool = True,
    return_std: bool = False,
    threads: int = 0,
    save_results_in_run: bool = True,
    make_comparable: bool = False,
) -> Any:
    """Evaluate a run as ranx does.

    Parameters
    ----------
    qrels, run : Qrels and Run, mapping of mapping, or list of arrays
        Grades and scores by query and document. A list has one array of shape (n, 2) per query, with a document
        number and its grade or score in each row. Arrays of a run must be sorted by descending score. Documents with equal
        scores keep their order, except in plain dicts, where their order is reversed, as in ranx.
    metrics : str or iterable of str
        Names such as ``"map@10"`` (``@0``: all ranks), ``"ndcg@5-l2"`` (grades from 2 on are relevant), ``"rbp.95"``.
    return_mean : bool
        Whether means are returned. Otherwise one value per query is returned, in ascending order of query ids, or in the
        given order for plain dicts and lists.
    return_std : bool
        Whether standard deviations are returned with the means, as ``{"mean": …, "std": …}``.
    threads : int
        Ignored.
    save_results_in_run : bool
        Whether ``scores``, ``mean_scores`` and ``std_scores`` of a `Run` are filled.
    make_comparable : bool
        Whether a `Run` is changed first: empty rankings are added for missing judged queries, and queries without
        judgements are removed.

    Returns
    -------
    float, ndarray or dict
        For one metric, the mean or the values of shape (q,); for several metrics, a dict by name.

    Raises
    ------
    OptionError
        For an unknown metric.
    AssertionError
        If a query is only in `qrels` or only in `run`.
    InputError
        For NaN, invalid ids, repeated documents, and empty `qrels` or `run`.

    Warns
    -----
    UserWarning
        If ranx would pair queries with different ids, or if ranx's sort decides the order of equal scores, so that ranx's
        values may differ.
    """
    requests = requests_of(metrics)
    if make_comparable and isinstance(qrels, Qrels) and isinstance(run, Run):
        run.make_comparable(qrels)
    values, queries, notices = values_per_query(qrels, run, requests)
    if notices:
        warnings.warn("; ".join(describe(notices)), UserWarning, stacklevel=2)
    means: dict[str, Any] = {name: np.mean(found) for name, found in values.items()}
    stds: dict[str, Any] = {name: np.std(found) for name, found in values.items()} if return_mean and return_std else {}
    if isinstance(run, Run) and save_results_in_run:
        run.mean_scores.update(means)
        run.std_scores.update(stds)
        for name, found in values.items():
            run.scores[name] = dict(zip(queries, found.tolist(), strict=True))
    shown: dict[str, Any] = values
    if return_mean:
        shown = {name: {"mean": mean, "std": stds[name]} if stds else mean for name, mean in means.items()}
    return next(iter(shown.values())) if len(shown) == 1 else shown


def values_per_query(
    qrels: Any, run: Any, requests: Mapping[str, Request]
) -> tuple[dict[str, NDArray[np.float64]], list[Any], dict[str, int]]:
    """Return the values per query by metric name, the queries in ranx's order, and the counts of notices about
    differences from ranx.
    """
    judged, theirs, convention = _tables(qrels, run, any(one.metric.name == "bpref" for one in requests.values()))
    _check_queries(judged.queries, theirs.queries)
    asked = list({request.key: request for request in requests.values()}.values())

    def rank() -> RankedRun:
        return ranked_run(judged, theirs, Rules(convention, level=1, all_empty=True), asked)

    # All metrics share one ranking if no metric needs another order of documents.
    reusable = isinstance(qrels, Qrels) and isinstance(run, Run) and all(one.order is None for one in asked)
    ranked = run.ranked(qrels.table, convention, rank) if reusable else rank()
    columns = ranked.score(asked).per_query
    queries = sorted(judged.queries) if isinstance(qrels, Qrels) else judged.queries
    place = {query: at for at, query in enumerate(judged.queries)}
    order = np.array([place[query] for query in queries], np.int64)
    values, empty = {}, 0
    for name, request in requests.items():
        found = columns[request.key]
        if request.metric.name == "bpref" and ranked.block is not None:
            block = ranked.block.at(request.level)
            # ranx divides 0 by 0 if a relevant document is ranked and no document is judged not relevant.
            found = np.where((block.negatives == 0) & (block.raw.counts > 0), np.nan, found)
            empty = max(empty, int((block.raw.positives == 0).sum()))
        values[name] = found[order]
    other = sorted(theirs.queries) if isinstance(run, Run) else theirs.queries
    notices = {f"paired_by_id:{a}": 1 for a, b in zip(queries, other, strict=True) if a != b}
    notices |= {"order_of_ranx": 0 if convention.order == "given" else _tied(ranked), "bpref_of_ranx": empty}
    return values, queries, {code: count for code, count in notices.items() if count}


def _tables(qrels: Any, run: Any, place: bool) -> tuple[Table, Table, Convention]:
    """Return judgements, run, and the convention that orders ties as ranx does. If bpref is requested (`place`),
    reverse the documents of the run, because bpref does not support the rule ties="reversed".
    """
    given: list[Any] = [side.table if isinstance(side, Qrels | Run) else side for side in (qrels, run)]
    convention = _CONVENTION
    named = [isinstance(side, Mapping | Table) for side in given]
    if not any(named):
        given = [lists_as_rows(side, name) for side, name in zip(given, ("qrels", "run"), strict=True)]
        convention = replace(convention, order="given")
    elif not all(named):
        raise InputError("has arrays, whose documents are numbers", source="run" if named[0] else "qrels")
    elif not isinstance(run, Run) and place:
        given[1] = {query: dict(reversed(row.items())) for query, row in run.items()}
    elif not isinstance(run, Run):
        convention = replace(convention, ties="reversed")
    judged, ranked = _plain(given[0], given[1], order_of(convention)) or tuple(map(read_table, given, ("qrels", "run")))
    # ranx treats every grade below the level, including negative ones, as not relevant.
    judged = replace(judged, values=np.where(judged.values >= 1, judged.values, 0))
    return judged, ranked, convention


def _plain(qrels: Any, run: Any, order: Order) -> tuple[Table, Table] | None:
    """Return judgements and run as tables that read the given dicts in place. Return None unless both are dicts of
    dicts from strings to numbers.
    """
    if not isinstance(qrels, dict) or not isinstance(run, dict) or qrels.keys() != run.keys():
        return None
    if not all(type(row) is dict for side in (qrels, run) for row in side.values()):
        return None
    try:
        return table_of_dicts(qrels, "qrels"), table_of_dicts(run, "run", qrels, order)
    except (TypeError, OverflowError):
        return None


def _check_queries(judged: list[Any], ranked: list[Any]) -> None:
    if not judged and not ranked:
        raise InputError("is empty: it holds no query", source="qrels")
    missing, extra = set(judged) - set(ranked), set(ranked) - set(judged)
    if missing or extra:
        side = (
            f"the run lacks {shorten(min(missing, key=str))}"
            if missing
            else f"the qrels lack {shorten(min(extra, key=str))}"
        )
        raise AssertionError(
            f"Qrels and Run query ids do not match: {side}; make_comparable=True adds and removes queries"
        )


def _tied(ranked: RankedRun) -> int:
    """Return the number of queries for which ranx's sort may be unstable: queries with a tied relevant document in a
    long ranking.
    """
    if ranked.block is None:
        return 0
    hits = ranked.block.raw
    owner = np.repeat(np.arange(len(hits)), hits.counts)
    inside = (hits.tied > 1) & (hits.items[owner] > _STABLE)
    return int(np.unique(owner[inside]).size)
