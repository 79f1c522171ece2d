"""The confidence intervals of a result, by metric, as columns of tables, and as sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from detmap.detection.result import DetectionResult
from detmap.errors import UnknownMetricError, check_choice
from detmap.panoptic.result import PanopticResult
from detmap.results import printable
from detmap.statistics import intervals
from detmap.statistics.bootstrap import BIAS, Bootstrap, bootstrap, check_draws, check_level
from detmap.statistics.intervals import Method

#: Maximum number of listed reasons for missing intervals, and of listed metrics for each reason.
_REASONS, _NAMES = 6, 8


class Intervals(Mapping[str, tuple[float, float]]):
    """Confidence intervals of the metrics of a result: ``(low, high)`` by name, NaN for a metric without interval.

    Parameters
    ----------
    bootstrap : Bootstrap
        The bootstrap of the result.
    level : float
        The confidence level.

    Attributes
    ----------
    bootstrap : Bootstrap
        As given. It holds the replicates, the bias, and the reasons why metrics have no interval.
    level : float
        As given.

    Raises
    ------
    OptionError
        For a level that is not between 0 and 1.
    """

    def __init__(self, bootstrap: Bootstrap, level: float = 0.95) -> None:
        check_level(level)
        self.bootstrap, self.level = bootstrap, level
        self._ends: list[list[float]] = bootstrap.interval(level).tolist()

    def __getitem__(self, name: str) -> tuple[float, float]:
        columns = self.bootstrap.columns
        if name not in columns:
            raise UnknownMetricError(name, columns)
        low, high = self._ends[columns[name]]
        return low, high

    def __iter__(self) -> Iterator[str]:
        return iter(self.bootstrap.columns)

    def __len__(self) -> int:
        return len(self.bootstrap.columns)

    def __repr__(self) -> str:
        made = self.bootstrap
        return f"<Intervals: {100 * self.level:.6g} % of {len(self)} metrics, {len(made.replicates):,} replicates>"

    def of_metrics(self, names: Iterable[str]) -> list[dict[str, Any]]:
        """Return a row for each metric in `names`, with low, high, bias and number of images."""
        return self._rows([self.bootstrap.columns[name] for name in names])

    def of_categories(self) -> list[dict[str, Any]]:
        """Return a row for the AP, or PQ, of each category in order, with low, high, bias and number of images."""
        return self._rows(self.bootstrap.category_columns(self.bootstrap.main).tolist())

    def _rows(self, columns: list[int]) -> list[dict[str, Any]]:
        made, bias = self.bootstrap, self.bootstrap.bias().tolist()
        ends = self._ends
        return [
            {"low": ends[at][0], "high": ends[at][1], "bias": bias[at], made.unit: int(made.support[at])}
            for at in columns
        ]

    def sentences(self, *, categories: bool = False, more: str = "to_dict() says why") -> list[str]:
        """Return sentences on the intervals, and on metrics without an interval.

        Parameters
        ----------
        categories : bool
            Also mention categories whose AP or PQ has no interval.
        more : str
            Text that says where to find the reasons that are left out.
        """
        made, why = self.bootstrap, self.bootstrap.reasons()
        without = {name: why[at] for name, at in made.columns.items()}
        if categories:
            # Under VOC's rules the metrics include the AP of every category.
            told = set(made.columns.values())
            own = zip(made.categories, made.category_columns(made.main).tolist(), strict=True)
            without |= {f"{name} ({made.main})": why[at] for (_, name), at in own if at not in told}
        return [made.sentence(level=self.level), BIAS, *without_interval(without, more)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, as `Bootstrap.to_dict` does."""
        return self.bootstrap.to_dict(self.level)


def without_interval(reasons: Mapping[str, str], more: str) -> list[str]:
    """Return a sentence for each reason why metrics have no interval. `reasons` maps a metric to its reason, "" if it
    has an interval.
    """
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(printable(name))
    by_reason.pop("", None)
    lines = []
    for reason, names in list(by_reason.items())[:_REASONS]:
        others = f" and {len(names) - _NAMES:,} more" if len(names) > _NAMES else ""
        lines.append(f"no interval of {', '.join(names[:_NAMES])}{others}: {reason}")
    rest = sum(map(len, list(by_reason.values())[_REASONS:]))
    return [*lines, f"no interval of {rest:,} more: {more}"] if rest else lines


def check_asked(replicates: int, seed: int, method: Method, level: float) -> None:
    """Raise `OptionError`, before scoring, for options with which no interval can be computed."""
    check_draws(replicates, seed, level)
    check_choice("interval", method, intervals.METHODS)


def add_intervals(
    result: DetectionResult | PanopticResult,
    replicates: int,
    seed: int,
    method: Method,
    level: float,
    threads: int | None,
) -> None:
    """Compute the intervals of a result's metrics, and add them to the result."""
    result.add_intervals(Intervals(bootstrap(result, replicates, seed, method=method, threads=threads), level))
