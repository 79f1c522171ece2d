"""Which of some models differ by more than the choice of images explains."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from detmap.errors import OptionError
from detmap.statistics.bootstrap import Bootstrap, HasTally, bootstrap
from detmap.statistics.grouping import group_letters
from detmap.statistics.tests import holm
from detmap.tally import Tally


class Difference(NamedTuple):
    """How a metric of one model differs from another's.

    ``difference`` is the value of `second` minus that of `first`; ``low`` and ``high`` its confidence interval; ``p`` the
    two-sided p-value that there is none, and ``adjusted`` the same after Holm's correction over all that were tested
    together. `category` is None for a metric of all.
    """

    first: str
    second: str
    metric: str
    category: str | None
    difference: float
    low: float
    high: float
    p: float
    adjusted: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two or more models on the same images.

    Attributes
    ----------
    bootstraps : mapping of str to Bootstrap
        Each model's own, from the same draws.
    metric : str
        What the models are compared by.
    level : float
        Of the intervals; ``1 - level`` is the level of the tests.
    """

    bootstraps: Mapping[str, Bootstrap]
    metric: str
    level: float = 0.95

    @cached_property
    def _pairs(self) -> list[tuple[str, str, Bootstrap]]:
        ordered = sorted(self.bootstraps, key=lambda name: (-self._value(name), name))
        ordered = [name for name in ordered if not math.isnan(self._value(name))]
        return [(a, b, self.bootstraps[b] - self.bootstraps[a]) for a, b in itertools.combinations(ordered, 2)]

    def _value(self, name: str) -> float:
        one = self.bootstraps[name]
        return float(one.estimate[one.metrics.index(self.metric)])

    def _differences(self, categories: bool) -> list[Difference]:
        found = []
        for first, second, one in self._pairs:
            interval, p = one.interval(self.level), one.p_values()
            head = len(one.metrics)
            columns: list[tuple[int, str, str | None]] = [(one.metrics.index(self.metric), self.metric, None)]
            if categories:
                columns = [(head + k, "AP", name) for k, (_, name) in enumerate(one.categories)]
            for c, metric, category in columns:
                low, high = map(float, interval[c])
                value = float(one.estimate[c])
                found.append(Difference(first, second, metric, category, value, low, high, float(p[c]), math.nan))
        adjusted = holm([one.p for one in found]).tolist()
        return [one._replace(adjusted=value) for one, value in zip(found, adjusted, strict=True)]

    @cached_property
    def differences(self) -> list[Difference]:
        """A difference per pair of models, the better one first, with Holm's correction over the pairs."""
        return self._differences(categories=False)

    @cached_property
    def categories(self) -> list[Difference]:
        """A difference per pair of models and category, with Holm's correction over all of them."""
        return self._differences(categories=True)

    @property
    def changed(self) -> list[Difference]:
        """Those `categories` whose difference is significant."""
        return [one for one in self.categories if one.adjusted <= 1 - self.level]

    @cached_property
    def groups(self) -> dict[str, str]:
        """Letters for every model: two models that cannot be told apart share one, two that can do not."""
        models = sorted(self.bootstraps, key=lambda name: (-self._value(name), name))
        models = [name for name in models if not math.isnan(self._value(name))]
        apart = {(one.first, one.second) for one in self.differences if one.adjusted <= 1 - self.level}
        return group_letters(models, apart)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values; element *i* of `models` belongs to the *i*-th model."""
        interval = {
            name: one.interval(self.level)[one.metrics.index(self.metric)] for name, one in self.bootstraps.items()
        }
        return {
            "metric": self.metric,
            "level": self.level,
            "models": [
                {
                    "model": name,
                    self.metric: self._value(name),
                    "low": float(interval[name][0]),
                    "high": float(interval[name][1]),
                    "group": self.groups.get(name, ""),
                }
                for name in self.bootstraps
            ],
            "differences": [one._asdict() for one in self.differences],
            "categories": [one._asdict() for one in self.categories],
        }


def compare(
    models: Mapping[str, Tally | HasTally],
    replicates: int = 1000,
    seed: int = 0,
    *,
    metric: str | None = None,
    level: float = 0.95,
    bca: bool = False,
    threads: int | None = None,
) -> Comparison:
    """Say which models differ by more than the choice of images explains.

    The same images are drawn for all models, so that what is hard in an image is hard for all of them.

    Parameters
    ----------
    models : mapping of str to Tally or DetectionResult
        Two or more, scored under one protocol on the same images and categories.
    replicates, seed, bca, threads
        See `bootstrap`.
    metric : str, optional
        ``AP`` (by default), ``AP50`` or ``AP75``; ``mAP`` where the protocol says so.
    level : float
        Of the confidence intervals; tests are at ``1 - level``.

    Returns
    -------
    Comparison
        Differences with intervals and p-values, corrected by Holm's method; categories that changed; groups of models that
        cannot be told apart.

    Raises
    ------
    OptionError
        For fewer than two models, models of different images, categories or protocols, or an unknown metric.
    """
    tallies = {name: one if isinstance(one, Tally) else one.tally for name, one in models.items()}
    if len(tallies) < 2:
        raise OptionError("a comparison needs two models or more")
    first_name, first = next(iter(tallies.items()))
    for name, tally in tallies.items():
        for what, same in (
            ("protocols", tally.protocol == first.protocol),
            ("categories", tally.categories == first.categories),
            ("images", np.array_equal(tally.image_ids, first.image_ids)),
        ):
            if not same:
                raise OptionError(f"{first_name!r} and {name!r} were scored on different {what}")
    done = {name: bootstrap(tally, replicates, seed, bca=bca, threads=threads) for name, tally in tallies.items()}
    return Comparison(done, checked_metric(metric, next(iter(done.values())).metrics), level)


def checked_metric(metric: str | None, names: Sequence[str]) -> str:
    """Return `metric`, or the first of `names`.

    Raises
    ------
    OptionError
        Where it is not among them.
    """
    if metric is None:
        return names[0]
    if metric not in names:
        raise OptionError(f"no bootstrap of {metric!r}; one of: {', '.join(names)}")
    return metric
