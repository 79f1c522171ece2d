"""`RelevanceEvaluator`, with pytrec_eval's measures, arguments and errors, on top of `detmap.retrieval`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from operator import index
from typing import Any

import numpy as np

from detmap.errors import InputError
from detmap.retrieval import runs, trec_eval
from detmap.retrieval.conventions import CONVENTIONS
from detmap.retrieval.metrics import parse

#: All supported measures, and the measures of each nickname; three nicknames include unsupported measures.
supported_measures: set[str] = set(trec_eval.nicknames()["all_trec"])
supported_nicknames: dict[str, set[str]] = {name: set(names) for name, names in trec_eval.nicknames().items()}

_CONVENTION = CONVENTIONS.find("trec")
_NUMBERS = r"[._]([0-9]+(?:\.[0-9]+)?(?:,[0-9]+(?:\.[0-9]+)?)*)"
_NAMED = re.compile(f"({'|'.join(sorted(supported_measures, key=len, reverse=True))}){_NUMBERS}")

#: pytrec_eval's messages for a key or a value of a wrong type, in a run and in judgements.
_WRONG_RUN = "Unable to extract query/object scores."
_WRONG_DOCUMENT = "Expected mapping of document id to query relevance or matching score."


class RelevanceEvaluator:
    """Evaluate runs against judgements like trec_eval 9.

    Parameters
    ----------
    query_relevance : dict of dict
        Integer grades by query and document; ids are strings. Queries without a document are left out. The data are
        copied.
    measures : iterable of str
        Names, with cutoffs or other parameters after a dot or an underscore (``"ndcg_cut.5,10"``, ``"P_5"``), or
        nicknames (``"official"``, ``"all_trec"``, ``"set"``). The parameters of repeated names are merged.
    relevance_level : int
        The lowest grade that counts as relevant.
    judged_docs_only_flag : bool
        Whether documents without a judgement are removed from the rankings.

    Raises
    ------
    ValueError
        ``unsupported measure X``. detmap's own errors (`detmap.errors.DetmapError`) are raised for parameters that make
        pytrec_eval end the process: a cutoff of 0, two equal cutoffs, or gains for nDCG. They are also raised for ids
        with a zero byte, grades beyond 2 ** 31, and recalls above 1. At a recall above 1.1, ``iprec_at_recall`` is 0.
    TypeError
        For arguments of a wrong type, with pytrec_eval's message, and for a level below 1.
    """

    def __init__(
        self,
        query_relevance: Mapping[str, Mapping[str, int]],
        measures: Iterable[str],
        relevance_level: int = 1,
        judged_docs_only_flag: bool = False,
    ) -> None:
        asked = _asked(measures)
        judged = {query: grades for query, grades in query_relevance.items() if len(grades) > 0}
        self._rules = runs.Rules(
            _CONVENTION,
            level=_level(relevance_level),
            judged_only=bool(_integer(judged_docs_only_flag)),
            lenient=True,
        )
        self._values = [value for measure, given in asked for value in _values(measure, given)]
        self._requests = {name: parse(name) for _, name in self._values if name is not None}
        self._grades = _judgements(judged)
        self._judged = runs.table_of_dicts(self._grades, "qrels")
        self._places = {query: place for place, query in enumerate(self._judged.queries)}

    def evaluate(self, scores: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
        """Evaluate a run.

        Parameters
        ----------
        scores : dict of dict
            Scores, of type float or int, by query and document. Scores are compared in single precision; documents with
            equal scores are ranked by descending id.

        Returns
        -------
        dict of dict
            Values by query and measure. The queries are the judged queries of the run, in the order of the run; the
            measures are in trec_eval's order. All values are floats: logarithms for geometric means, and 0.0 for
            measures that trec_eval prints as text. For a query without a relevant document, or with an empty ranking,
            values are 0; for geometric means, they are the logarithm of 0.00001. The interpolated precision of an empty
            ranking at recall 0 is NaN, as in trec_eval.

        Raises
        ------
        TypeError
            For scores that are not a dict of dicts from strings to numbers, with pytrec_eval's message.
        InputError
            For a score that is NaN (pytrec_eval ranks NaN arbitrarily), and for an id with a zero byte (pytrec_eval
            truncates the id there).
        """
        if not scores:
            return {}
        if not isinstance(scores, dict):
            raise TypeError("Argument object scores should be of type dictionary.")
        run = _run(scores, self._grades)
        if not run.queries:
            return {}
        if self._requests:
            judged = self._judged.take([self._places[query] for query in run.queries])
            rows = self._rows(runs.ranked_run(judged, run, self._rules, list(self._requests.values())))
        else:
            rows = [[0.0] * len(self._values)] * len(run.queries)
        names = [name for name, _ in self._values]
        return {query: dict(zip(names, row, strict=True)) for query, row in zip(run.queries, rows, strict=True)}

    def _rows(self, ranked: runs.RankedRun) -> list[list[float]]:
        """Return a row of values per query, in the order of the requested values."""
        assert ranked.block is not None
        columns = ranked.score(list(self._requests.values())).per_query
        hits, none = ranked.block.raw, np.zeros(len(ranked.queries))
        made = [none if name is None else columns[self._requests[name].key] for _, name in self._values]
        if (hits.items == 0).any():
            for place, (_, name) in enumerate(self._values):
                if name is not None:
                    undefined = trec_eval.undefined(hits, self._requests[name], _CONVENTION)
                    made[place] = np.where(undefined, np.nan, made[place])
        rows: list[list[float]] = np.array(made).T.tolist()
        return rows


def compute_aggregated_measure(measure: str, values: list[float]) -> float:
    """Return the aggregate of a measure over all queries.

    Parameters
    ----------
    measure : str
        The measure's name. Values of ``num_…`` are summed. Values of ``gm_…`` are logarithms, and the result is the
        geometric mean. Other values are averaged.
    values : sequence of float
        A value for each query.

    Returns
    -------
    float
        The aggregate. Without values, the aggregate is 0 for ``num_…``, and NaN with numpy's warning for other
        measures.
    """
    if measure.startswith("num_"):
        return float(np.sum(values))
    if measure.startswith("gm_"):
        return float(np.exp(np.sum(values) / len(values)))
    return float(np.mean(values))


def _asked(measures: Iterable[str]) -> list[tuple[trec_eval.Measure, list[str]]]:
    """Return the requested measures in trec_eval's order. The parameters of each measure are sorted as text, as in
    pytrec_eval.
    """
    names: set[str] = set()
    for name in measures:
        names |= supported_nicknames.get(name, {name})
    found: dict[str, set[str]] = {}
    for name in names:
        if name in supported_measures:
            found.setdefault(name, set())
            continue
        named = _NAMED.match(name)  # text after the numbers is ignored
        if named is None:
            raise ValueError(f"unsupported measure {name}")
        found.setdefault(named[1], set()).update(named[2].split(","))
    return [(measure, sorted(found[measure.name])) for measure in trec_eval.ordered(found)]


def _values(measure: trec_eval.Measure, given: list[str]) -> list[trec_eval.Value]:
    """Return the values of a measure; a value's metric is None if the value is text or always 0."""
    if measure.name == "utility" and given and len(given) != 4:
        return [trec_eval.Value(measure.name, None)]
    values = trec_eval.values_of(measure, given)
    if measure.name == "iprec_at_recall":  # above recall 1.1 the value is always 0
        return [one._replace(metric=None) if float(str(one.metric).rpartition("@")[2]) > 1.1 else one for one in values]
    return values


def _integer(value: Any) -> int:
    """Return an argument as an integer; raise TypeError with pytrec_eval's message for other types."""
    try:
        number = index(value)
    except TypeError:
        number = 1 << 31
    if not -(1 << 31) <= number < 1 << 31:
        raise TypeError("Expected object_relevance_per_qid dictionary and measures set.")
    return number


def _level(value: Any) -> int:
    level = _integer(value)
    if level < 1:
        raise TypeError("Argument relevance_level should be positive.")
    return level


def _all(types: set[type], wanted: type | tuple[type, ...]) -> bool:
    return all(issubclass(one, wanted) for one in types)


def _judgements(judged: dict[Any, Any]) -> dict[str, dict[str, int]]:
    """Return a copy of judgements; raise pytrec_eval's TypeError for a wrong type."""
    for query, grades in judged.items():
        if not isinstance(query, str):
            raise TypeError("Expected string as key.")
        if not isinstance(grades, dict):
            raise TypeError("Expected dictionary as value.")
        if not _all(set(map(type, grades)), str):
            raise TypeError(_WRONG_DOCUMENT)
        if not _all(set(map(type, grades.values())), int):
            raise TypeError("Expected relevance to be integer.")
    return {query: dict(grades) for query, grades in judged.items()}


def _run(scores: dict[Any, Any], judged: Mapping[str, Mapping[str, int]]) -> runs.Table:
    """Return a table of the judged queries in a run; raise pytrec_eval's TypeError for a wrong type."""
    if not _all(set(map(type, scores)), str) or not _all(set(map(type, scores.values())), dict):
        raise TypeError(_WRONG_RUN)
    kept = {query: one for query, one in scores.items() if query in judged}
    try:
        if len(kept) < len(scores):
            runs.table_of_dicts({query: one for query, one in scores.items() if query not in judged}, "run")
        return runs.table_of_dicts(kept, "run", judged, runs.order_of(_CONVENTION))
    except TypeError:
        raise TypeError(_WRONG_RUN) from None
    except OverflowError:
        raise InputError("a score is an integer too large for a float", source="run") from None
