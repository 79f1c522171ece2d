"""The intervals of a result: by metric, beside its tables, and in words."""

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

#: Maximum number of reasons for missing intervals that are told, and of metrics that are named for each.
_REASONS, _NAMES = 6, 8


class Intervals(Mapping[str, tuple[float, float]]):
    """Confidence intervals of the metrics of a result: ``(low, high)`` by name, NaN where there is none.

    Parameters
    ----------
    bootstrap : Bootstrap
        Of the result.
    level : float
        The confidence level.

    Attributes
    ----------
    bootstrap : Bootstrap
        As given: replicates, bias, and why a metric has no interval.
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
        """Return the columns low, high, bias and the number of images of each of some metrics, a row per metric."""
        return self._rows([self.bootstrap.columns[name] for name in names])

    def of_categories(self) -> list[dict[str, Any]]:
        """Return the same columns of the AP, or PQ, of each category, in their order."""
        return self._rows(self.bootstrap.category_columns(self.bootstrap.main).tolist())

    def _rows(self, columns: list[int]) -> list[dict[str, Any]]:
        made, bias = self.bootstrap, self.bootstrap.bias().tolist()
        ends = self._ends
        return [
            {"low": ends[at][0], "high": ends[at][1], "bias": bias[at], made.unit: int(made.support[at])}
            for at in columns
        ]

    def sentences(self, *, categories: bool = False, more: str = "to_dict() says why") -> list[str]:
        """Return in words what the intervals are, and which metrics have none.

        Parameters
        ----------
        categories : bool
            Also tell which categories have no interval of their AP or PQ.
        more : str
            Where the reasons stand that are not told.
        """
        made, why = self.bootstrap, self.bootstrap.reasons()
        without = {name: why[at] for name, at in made.columns.items()}
        if categories:
            # By VOC's rules the AP of every category is among the metrics.
            told = set(made.columns.values())
            own = zip(made.categories, made.category_columns(made.main).tolist(), strict=True)
            without |= {f"{name} ({made.main})": why[at] for (_, name), at in own if at not in told}
        return [made.sentence(level=self.level), BIAS, *without_interval(without, more)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, as `Bootstrap.to_dict` does."""
        return self.bootstrap.to_dict(self.level)


def without_interval(reasons: Mapping[str, str], more: str) -> list[str]:
    """Return why metrics have no interval, a sentence per reason; `reasons` are by metric, and empty where there is one."""
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
    """Refuse intervals that cannot be made, ahead of scoring."""
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
    """Give a result the intervals of its metrics."""
    result.add_intervals(Intervals(bootstrap(result, replicates, seed, method=method, threads=threads), level))
