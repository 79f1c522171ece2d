"""`compare`: evaluate several runs, test every pair, and format the results as a table or in LaTeX."""

from __future__ import annotations

import json
import math
import os
import re
import string
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.notices import added, describe
from detmap.errors import MissingDependencyError, OptionError, shorten
from detmap.ranx.evaluation import requests_of, values_per_query
from detmap.ranx.rows import Qrels, Run
from detmap.statistics.tests import paired_t
from detmap.system.whole_files import write

_LETTERS = string.ascii_lowercase
_RAISED = "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖ۹ʳˢᵗᵘᵛʷˣʸᶻ"

_TESTS = {
    "student": "paired Student's t-test",
    "fisher": "Fisher's randomization test",
    "tukey": "Tukey's HSD test",
}

#: Number of random swaps (permutations times queries) that Fisher's test generates at a time.
_TOGETHER = 1 << 22

_LABELS = {
    "hits": "Hits", "hit_rate": "Hit Rate", "precision": "P", "recall": "Recall", "f1": "F1", "r-precision": "R-Prec",
    "mrr": "MRR", "map": "MAP", "dcg": "DCG", "dcg_burges": "DCG Burges", "ndcg": "NDCG", "ndcg_burges": "NDCG Burges",
    "bpref": "BPref",
}  # fmt: skip

Values = NDArray[np.float64]


def compare(
    qrels: Any,
    runs: Iterable[Run],
    metrics: Iterable[str] | str,
    stat_test: str = "student",
    n_permutations: int = 1000,
    max_p: float = 0.01,
    random_seed: int = 42,
    threads: int = 0,
    rounding_digits: int = 3,
    show_percentages: bool = False,
    make_comparable: bool = False,
) -> Report:
    """Evaluate runs and test every pair of runs. As in ranx, p-values are not corrected for multiple tests;
    `detmap.statistics.compare_queries` corrects them.

    Parameters
    ----------
    qrels : Qrels
        The judgements.
    runs : iterable of Run
        At most 26 runs with distinct names; the *i*-th run is called ``run_i`` if it has no name.
    metrics : str or iterable of str
        As for `evaluate`.
    stat_test : {"student", "fisher", "tukey"}
        Student's paired t-test, Fisher's randomisation test, or Tukey's HSD, which needs scipy. Fisher's p-values are
        the same in each call. In ranx, p-values vary because only one thread is seeded, and means depend on the number
        of threads.
    n_permutations, random_seed : int
        Options of Fisher's test.
    max_p : float
        Maximum p-value of a significant difference.
    threads : int
        Ignored.
    rounding_digits : int
        Number of decimals shown.
    show_percentages : bool
        Whether percentages are shown.
    make_comparable : bool
        As for `evaluate`.

    Returns
    -------
    Report

    Raises
    ------
    NotImplementedError
        For an unknown `stat_test`.
    OptionError
        If there are no runs, a run is not a `Run`, two runs have the same name, there are more than 26 runs, or a metric
        is unknown.
    """
    if stat_test not in _TESTS:
        raise NotImplementedError(f"Statistical test {shorten(stat_test)} not supported: {', '.join(_TESTS)}")
    requests = requests_of(metrics)
    values: dict[str, dict[str, Values]] = {}
    notices: dict[str, int] = {}
    for number, run in enumerate(runs, 1):
        if not isinstance(run, Run):
            raise OptionError(f"runs must be a list of Run, not of {type(run).__name__}: Run(scores, name) makes one")
        name = f"run_{number}" if run.name is None else run.name
        if name in values:
            raise OptionError(f"two runs are called {shorten(name)}: give each a name of its own")
        if number > len(_LETTERS):
            raise OptionError(f"at most {len(_LETTERS)} runs are compared, which go by letters")
        if make_comparable and isinstance(qrels, Qrels):
            run.make_comparable(qrels)
        values[name], queries, found = values_per_query(qrels, run, requests)
        notices = added(notices, found)
        for metric, column in values[name].items():  # ranx stores these results in the runs, too
            run.mean_scores[metric] = float(np.mean(column))
            run.scores[metric] = dict(zip(queries, column.tolist(), strict=True))
    if not values:
        raise OptionError("there are no runs to compare: give at least one")
    if notices:
        warnings.warn("; ".join(describe(notices)), UserWarning, stacklevel=2)
    comparisons: dict[frozenset[str], dict[str, dict[str, Any]]] = {}
    for metric in requests:
        columns = {name: of[metric] for name, of in values.items()}
        for pair, p in _p_values(columns, stat_test, n_permutations, random_seed).items():
            comparisons.setdefault(pair, {})[metric] = {"p_value": p, "significant": bool(p <= max_p)}
    outcomes = {
        (one, other): {metric: _outcomes(values[one][metric], values[other][metric]) for metric in requests}
        for one, other in permutations(values, 2)
    }
    return Report(
        list(values),
        {name: {metric: float(np.mean(column)) for metric, column in of.items()} for name, of in values.items()},
        Pairs(comparisons),
        list(requests),
        max_p,
        outcomes,
        rounding_digits,
        show_percentages,
        stat_test,
    )


def _outcomes(one: Values, other: Values) -> dict[str, int]:
    """Return the numbers of queries that the run `one` wins, ties and loses."""
    return {"W": int((one > other).sum()), "T": int((one == other).sum()), "L": int((one < other).sum())}


def _p_values(columns: Mapping[str, Values], test: str, drawn: int, seed: int) -> dict[frozenset[str], float]:
    """Return the p-value of each pair of runs under a metric."""
    pairs = list(permutations(columns, 2))  # each pair in both orders; the later p-value is kept, as in ranx
    if test == "student":
        return {frozenset(pair): _student(columns[pair[0]], columns[pair[1]]) for pair in pairs}
    if test == "fisher":
        return {frozenset(pair): _fisher(columns[pair[0]], columns[pair[1]], drawn, seed) for pair in pairs}
    if len(columns) < 2:
        return {}
    try:
        from scipy.stats import tukey_hsd
    except ImportError:
        raise MissingDependencyError("scipy", "frames", "Tukey's test") from None
    found = tukey_hsd(*columns.values()).pvalue
    place = {name: at for at, name in enumerate(columns)}
    return {frozenset(pair): float(found[place[pair[0]], place[pair[1]]]) for pair in pairs}


def _student(one: Values, other: Values) -> float:
    """Return the p-value of Student's paired t-test; NaN if no value differs, as in scipy."""
    if np.isnan(one - other).any() or not (one != other).any():
        return math.nan
    return paired_t(one, other).p


def _fisher(one: Values, other: Values, drawn: int, seed: int) -> float:
    """Return the p-value of Fisher's randomisation test with ranx's random bits."""
    bits = np.random.RandomState(seed)
    observed = abs(_mean(one) - _mean(other))
    reached = 0
    for begin in range(0, drawn, max(1, _TOGETHER // one.size)):
        count = min(drawn - begin, max(1, _TOGETHER // one.size))
        words = bits.randint(0, 1 << 32, size=(count, one.size), dtype=np.uint32)
        first, second = np.zeros(count), np.zeros(count)
        # Sum query by query, as ranx does, so that the last bits are equal.
        for a, b, column in zip(one.tolist(), other.tolist(), words.T, strict=True):
            stays = (column & 1).astype(np.bool_)
            first += np.where(stays, a, b)
            second += np.where(stays, b, a)
        reached += int((np.abs(first / one.size - second / one.size) >= observed).sum())
    return reached / drawn


def _mean(values: Values) -> float:
    """Return the mean, without numpy's pairwise summation."""
    return float(np.add.accumulate(values)[-1] / values.size)


class Pairs(Mapping[frozenset[str], dict[str, dict[str, Any]]]):
    """A mapping from a pair of run names, in either order, to values."""

    def __init__(self, found: Mapping[frozenset[str], dict[str, dict[str, Any]]]) -> None:
        self._found = found

    def __getitem__(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        return self._found[frozenset(names)]

    def __iter__(self) -> Iterator[frozenset[str]]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


@dataclass(eq=False, repr=False)
class Report:
    """The outcome of `compare`; ``print`` shows a table.

    Attributes
    ----------
    model_names, metrics : list of str
        The names of the runs and of the metrics, in the order given.
    results : dict of dict
        Means by run and metric.
    comparisons : mapping
        ``p_value`` and ``significant`` by pair of run names (in either order) and metric.
    win_tie_loss : dict
        By pair of run names and metric, the numbers of queries that the first run wins (``W``), ties (``T``) or loses
        (``L``).
    max_p : float
        Maximum p-value of a significant difference.
    rounding_digits : int
        Number of decimals shown.
    show_percentages : bool
        Whether percentages are shown.
    stat_test : str
        The name of the test, as for `compare`.
    """

    model_names: list[str]
    results: dict[str, dict[str, float]]
    comparisons: Mapping[Any, dict[str, dict[str, Any]]]
    metrics: list[str]
    max_p: float
    win_tie_loss: dict[tuple[str, str], dict[str, dict[str, int]]]
    rounding_digits: int = 3
    show_percentages: bool = False
    stat_test: str = "student"

    def format_score(self, score: float) -> str:
        """Return a number formatted for the table."""
        digits = max(0, self.rounding_digits - 2 * self.show_percentages)
        return f"{round(score * 100 if self.show_percentages else score, digits):.{digits}f}"

    def get_metric_label(self, m: str) -> str:
        """Return the label of a metric in tables."""
        name, depth, rest = re.fullmatch(r"([^@]*?)(@[0-9]+)?(-l[0-9]+)?", m).groups(default="")  # type: ignore[union-attr]
        return f"{_LABELS.get(name, name.replace('rbp', 'RBP'))}{depth}{rest}"

    def _beaten(self, model: str, metric: str) -> list[bool]:
        """Return for each run whether `model` is significantly better."""
        return [
            model != other
            and self.comparisons[model, other][metric]["significant"]
            and self.results[model][metric] > self.results[other][metric]
            for other in self.model_names
        ]

    def to_table(self) -> str:
        """Return the table as text: a row per run, where superscript letters mark significantly worse runs."""
        lines = []
        for letter, model in zip(_LETTERS, self.model_names, strict=False):
            cells = [letter, model]
            for metric in self.metrics:
                worse = (
                    raised for raised, is_worse in zip(_RAISED, self._beaten(model, metric), strict=False) if is_worse
                )
                cells.append(self.format_score(self.results[model][metric]) + "".join(worse))
            lines.append(cells)
        return _table(["#", "Model", *map(self.get_metric_label, self.metrics)], lines)

    def to_latex(self) -> str:
        """Return the table in LaTeX, with the best run of each metric in bold; needs booktabs and graphicx."""
        best = {metric: self._best(metric) for metric in self.metrics}
        rows = []
        for letter, model in zip(_LETTERS, self.model_names, strict=False):
            cells = [f"{letter}", model.replace("_", "\\_")]
            for metric in self.metrics:
                shown = self.format_score(self.results[model][metric])
                shown = f"\\textbf{{{shown}}}" if best[metric] == model else shown
                beaten = self._beaten(model, metric)
                raised = "".join(one for one, is_worse in zip(_LETTERS, beaten, strict=False) if is_worse)
                others = zip(_LETTERS, self.model_names, beaten, strict=False)
                spaced = "".join(one for one, other, is_worse in others if other != model and not is_worse)
                shown += f"$^{{{raised}}}$" if raised else ""
                cells.append(shown + (f"\\hphantom{{$^{{{spaced}}}$}}" if spaced else ""))
            rows.append(" & ".join(cells) + " \\\\")
        titles = ("\\#", "Model", *(self.get_metric_label(metric) for metric in self.metrics))
        return "\n".join(
            [
                "% needs \\usepackage{booktabs} and \\usepackage{graphicx}",
                "\\begin{table*}[ht]",
                "\\centering",
                "\\caption{Means over all queries; the best ones are bold. Raised letters: significantly better than that "
                f"run ({_TESTS[self.stat_test]}, $p \\le {self.max_p}$).}}",
                "\\resizebox{0.8\\textwidth}{!}{",
                f"\\begin{{tabular}}{{c|l{'|c' * len(self.metrics)}}}",
                "\\toprule",
                " & ".join(f"\\textbf{{{title}}}" for title in titles).replace("_", "\\_") + " \\\\",
                "\\midrule",
                *rows,
                "\\bottomrule",
                "\\end{tabular}",
                "}",
                "\\label{tab:results}",
                "\\end{table*}",
            ]
        )

    def _best(self, metric: str) -> str | None:
        """Return the first run with the highest rounded mean; None if all are 0."""
        rounded = {model: round(self.results[model][metric], self.rounding_digits) for model in self.model_names}
        best = max(rounded, key=rounded.__getitem__, default=None)
        return best if best is not None and rounded[best] > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain dicts, lists, strings and numbers."""
        found: dict[str, Any] = {
            "stat_test": self.stat_test,
            "metrics": self.metrics,
            "model_names": self.model_names,
        }
        for model in self.model_names:
            others = [other for other in self.model_names if other != model]
            found[model] = {
                "scores": self.results[model],
                "comparisons": {
                    other: {metric: self.comparisons[model, other][metric]["p_value"] for metric in self.metrics}
                    for other in others
                },
                "win_tie_loss": {other: self.win_tie_loss[model, other] for other in others},
            }
        return found

    def to_dataframe(self) -> Any:
        """Return the means as a pandas data frame, a row per run (extra ``frames``)."""
        try:
            import pandas
        except ImportError:
            raise MissingDependencyError("pandas", "frames", "a data frame") from None
        return pandas.DataFrame([{"model_names": name, **of} for name, of in self.results.items()])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `to_dict` as JSON."""
        write(os.fspath(path), json.dumps(self.to_dict(), indent=4).encode())

    def print_results(self) -> None:
        """Print the means as JSON."""
        print(json.dumps(self.results, indent=4))

    def __repr__(self) -> str:
        return self.to_table()


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as text. In columns of numbers, trailing zeros are removed, and decimal points are aligned."""
    columns = []
    for place, title in enumerate(titles):
        cells = [row[place] for row in rows]
        if numeric := all(map(_is_number, cells)):
            cells = [cell if cell.lstrip("+-").isdigit() else f"{float(cell):g}" for cell in cells]
            behind = [len(cell) - cell.find(".") - 1 if "." in cell else -1 for cell in cells]
            cells = [cell + " " * (max(behind) - after) for cell, after in zip(cells, behind, strict=True)]
        width = max(len(title) + 2, *map(len, cells))
        columns.append([(str.rjust if numeric else str.ljust)(cell, width) for cell in (title, *cells)])
        columns[-1].insert(1, "-" * width)
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
