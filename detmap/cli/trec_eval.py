"""Output in the format of trec_eval, line by line: ``detmap trec --format trec_eval``."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from detmap.errors import OptionError, shorten

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from detmap.retrieval.conventions import Convention
    from detmap.retrieval.ranked import Request
    from detmap.retrieval.runs import RankedRun
    from detmap.retrieval.scoring import RankingResult
    from detmap.retrieval.trec_eval import Measure


class Asked(NamedTuple):
    """A requested measure with its parameters. `names` are the printed names of its values, and `metrics` compute the
    values; None for a value that is text.
    """

    measure: Measure
    parameters: list[str]
    names: list[str]
    metrics: list[str | None]


def asked(given: Sequence[str] | None, version: int) -> list[Asked]:
    """Return the measures of ``-m``, or the official measures, in trec_eval's order."""
    from detmap.retrieval import trec_eval

    known, parameters = trec_eval.nicknames(version), dict[str, list[str]]()
    names: list[str] = []
    for text in given or ["official"]:
        name, dot, numbers = text.partition(".")
        if dot and not numbers:
            raise OptionError(f"-m {text}: numbers belong behind the dot, as in P.5,10")
        if name in trec_eval.ABSENT:
            raise OptionError(f"-m {text}: detmap has no measures of preferences, or of several assessors")
        for one in known.get(name, (name,)):
            if not trec_eval.known(one, version):
                every = ", ".join((*list(known)[:3], *known["all_trec"]))
                raise OptionError(
                    f"-m {shorten(text)}: is no measure of trec_eval {version} that detmap has; one of: {every}"
                )
            names.append(one)
        if dot:
            parameters.setdefault(name, numbers.split(","))  # as in trec_eval, the first list of a measure wins
    found = []
    for measure in trec_eval.ordered(names):
        own = parameters.get(measure.name, [])
        values = trec_eval.values_of(measure, own)
        printed = [value.name for value in values]
        if own and measure.takes in ("numbers", "pairs"):
            printed = [f"{measure.name}_{','.join(own)}"]
        found.append(Asked(measure, own or list(measure.defaults), printed, [value.metric for value in values]))
    return found


def version_of(convention: Convention) -> int:
    """Return the version of trec_eval that a convention reproduces."""
    return 10 if convention.recall_cutoffs == "nearest" else 9


def metrics_of(options: argparse.Namespace, convention: Convention) -> list[str]:
    """Return the metrics that ``-m`` requests, for output in other formats, without measures whose value is text."""
    every = asked(options.measures, version_of(convention))
    return [metric for one in every for metric in one.metrics if metric is not None]


def print_run(options: argparse.Namespace, convention: Convention, rules: Mapping[str, Any]) -> RankingResult:
    """Score one run and print what trec_eval prints; `rules` are further arguments of `detmap.retrieval.runs.Rules`."""
    from detmap.reading.sources import held
    from detmap.retrieval.metrics import parse
    from detmap.retrieval.runs import Rules, ranked_run

    version = version_of(convention)
    measures = asked(options.measures, version)
    requests = {name: parse(name, convention) for one in measures for name in one.metrics if name is not None}
    requests["num_q"] = parse("num_q", convention)  # at least one metric is required
    run = held(options.runs[0])
    ranked = ranked_run(held(options.qrels), run, Rules(convention, **rules, all_empty=True), list(requests.values()))
    result = ranked.score(list(requests.values()))
    columns = {name: _printed(ranked, request, result, version) for name, request in requests.items()}
    lines = _Lines(ranked, convention.missing == "zero", columns)
    text: list[str] = []
    if options.rows:
        shown = [place for place in lines.order if version > 9 or ranked.answered[place]]
        text += [line for place in shown for one in measures for line in lines.of_query(one, place)]
    for one in measures:
        if one.measure.name == "runid":
            text.append(_line("runid", "all", _run_name(run, options.runs[0])))
        elif one.measure.shown != "queries":
            text += lines.of_all(one)
    print("\n".join(text))
    return result


def _printed(ranked: RankedRun, request: Request, result: RankingResult, version: int) -> NDArray[np.float64]:
    """Return the values of a metric as trec_eval computes them: 0 / 0 is NaN, and most metrics are 0 for queries that
    the run lacks.
    """
    import numpy as np

    from detmap.retrieval import trec_eval

    values = result.per_query[request.key]
    if ranked.block is None:
        return values
    undefined = trec_eval.undefined(ranked.block.raw, request, ranked.rules.convention)
    if version == 9 or not ranked.rules.judged_only:
        undefined &= ranked.answered
    if request.metric.name == "utility":
        # If the run lacks a query, trec_eval 10 evaluates most measures as if one unjudged document were ranked.
        # Measures without parameters skip the query.
        wrong, left = request.numbers(hit=1.0, wrong=-1.0, lost=0.0, left=0.0, items=0.0)[1:4:2]
        bogus = values if ranked.rules.judged_only else values + wrong - left
        values = np.where(ranked.answered, values, bogus if version == 10 and request.options else 0.0)
    return np.where(undefined, np.nan, values)


def _line(name: str, query: str, value: str) -> str:
    return f"{name:<22}\t{query}\t{value}"


def _number(measure: Measure, value: float) -> str:
    if value != value:
        return "  -nan"  # how the C library prints 0 / 0
    return str(int(value)) if measure.counts else f"{value:6.4f}"


class _Lines:
    """The output lines of a run, per query and over all queries."""

    def __init__(self, ranked: RankedRun, complete: bool, columns: Mapping[str, Any]) -> None:
        from detmap.retrieval.document_ids import printable

        self.ranked, self.complete, self.columns = ranked, complete, columns
        self.names = [str(printable(query)) for query in ranked.queries]
        self.strings: dict[int, list[str]] = {}
        encoded = [q if isinstance(q, bytes) else str(q).encode("utf-8", "surrogatepass") for q in ranked.queries]
        self.order = sorted(range(len(encoded)), key=encoded.__getitem__)

    def of_query(self, asked: Asked, place: int) -> list[str]:
        """Return the lines of a measure for one query."""
        measure, query = asked.measure, self.names[place]
        if measure.shown == "summary":
            return []
        if measure.text:
            return [_line(asked.names[0], query, f"'{self._string(asked, place)}'")]
        found = zip(asked.names, asked.metrics, strict=True)
        return [_line(name, query, _number(measure, float(self.columns[str(metric)][place]))) for name, metric in found]

    def _string(self, asked: Asked, place: int) -> str:
        from detmap.retrieval.trec_measures import relevance_strings

        depth = int(float(asked.parameters[0]))
        if depth not in self.strings:
            assert self.ranked.block is not None
            self.strings[depth] = relevance_strings(self.ranked.block, depth)
        missing = not self.ranked.answered[place] and asked.names != ["relstring"] and not self.ranked.rules.judged_only
        return "-"[:depth] if missing else self.strings[depth][place]  # see `_printed`

    def of_all(self, asked: Asked) -> list[str]:
        """Return the lines of a measure over all queries."""
        found = zip(asked.names, asked.metrics, strict=True)
        return [_line(name, "all", _number(asked.measure, self._summary(str(metric)))) for name, metric in found]

    def _summary(self, metric: str) -> float:
        import numpy as np

        # trec_eval adds values one by one, so its mean may differ from numpy's mean in the last bit, and thus in a
        # printed digit.
        values = self.columns[metric][self.order]
        total = float(np.cumsum(values)[-1])
        if metric == "num_rel" and self.complete:  # trec_eval ignores -l here if missing queries count as 0
            ideal = None if self.ranked.block is None else self.ranked.block.ideal
            return total if ideal is None else float(ideal.size)
        if metric.startswith("num_"):
            return total
        mean = total / values.size
        return math.exp(mean) if metric.startswith("gm_") else mean


def _run_name(run: Any, path: str) -> str:
    """Return the name of a run: as in trec_eval the name in the last line, or for a table the name of the file."""
    from detmap.formats.trec import run_name

    return run_name(run) or os.path.basename(path).partition(".")[0]
