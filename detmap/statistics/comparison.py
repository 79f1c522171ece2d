"""Comparison of models: significance and size of the differences of their metrics."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from detmap.data.ids import Clusters
from detmap.detection.precisions import effect_of_zero_ids
from detmap.detection.tally import Tally
from detmap.errors import OptionError, check_choice, many, one_of, shorten
from detmap.results import fragment, to_text
from detmap.statistics import intervals
from detmap.statistics.bootstrap import (
    Bootstrap,
    HasTally,
    alpha_of,
    bootstrap,
    check_draws,
    check_level,
    resampled,
    tally_of,
)  # fmt: skip
from detmap.statistics.clusters import clustered, independent
from detmap.statistics.grouping import group_letters
from detmap.statistics.intervals import Method
from detmap.statistics.permutation import Permutations, check_alike, permutations_needed, permute, testable
from detmap.statistics.resampled import AnyTally, Columns
from detmap.statistics.tests import CORRECTIONS, Correction, adjust, enough_drawn, promise

#: Maximum number of untested categories named in a sentence.
_NAMED = 10


def _too_few_drawn(permutations: int, size: int, family: str, correction: Correction, alpha: float) -> list[str]:
    """Return a list with a warning if too few permutations are drawn for a significant p-value, else []."""
    if not size or enough_drawn(permutations, size, correction, alpha):
        return []
    return [
        f"too few permutations for the family of {family}: none of its p can be below {1 / (1 + permutations):.2g}, and "
        f"no such p is significant after the correction; draw {permutations_needed(size, alpha):,}"
    ]


#: The singular of each unit, with its article, for sentences.
_OF_ONE = {"images": "an image", "videos": "a video", "samples": "a sample", "clusters": "a cluster of images"}


class Difference(NamedTuple):
    """The difference of a metric between two models. ``difference`` is the value of `second` minus the value of
    `first`. ``low`` and ``high`` are the uncorrected confidence interval of the difference (NaN if there is none).
    ``p`` is the two-sided p-value of the paired permutation test (NaN if there are too few images). ``adjusted`` is
    ``p`` corrected over the family of hypotheses. ``images`` is the number of images, or clusters, with positives.
    `category` is None for a metric of all categories.
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
    images: int


class Family(NamedTuple):
    """The hypotheses that are tested together; ``size`` is the number of hypotheses. A hypothesis is tested if at least
    ``fewest`` images, or clusters, have positives. ``untested`` names the untested hypotheses.
    """

    size: int
    fewest: int
    untested: list[str]


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """The comparison of two or more models on the same images.

    Attributes
    ----------
    bootstraps : mapping of str to Bootstrap
        The bootstrap of each model, all from the same draws.
    permutations : mapping of (str, str) to Permutations
        The permutation tests of each pair of models, with the better model first in the pair.
    metric : str
        The metric by which the models are compared.
    level : float
        The level of the intervals; ``1 - level`` is the level of the tests.
    correction : {"holm", "bh"}
        The correction for multiple tests in a family.
    notices : mapping of str to mapping of str to int
        Counts of unusual features of each model's input, by code; `detmap.data.notices.NOTICES` explains the codes.
    iou_type : str
        The geometry that was matched ("bbox", "segm", …), or "panoptic".
    """

    bootstraps: Mapping[str, Bootstrap]
    permutations: Mapping[tuple[str, str], Permutations]
    metric: str
    level: float
    correction: Correction
    notices: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    iou_type: str = ""

    @property
    def alpha(self) -> float:
        """The level of the tests."""
        return alpha_of(self.level)

    def _value(self, name: str) -> float:
        one = self.bootstraps[name]
        return float(one.estimate[one.columns[self.metric]])

    @property
    def unit(self) -> str:
        """The unit of bootstrap draws and of permutations: "images", "videos" or "samples", or "clusters" of these."""
        return self._any.unit

    @property
    def _found(self) -> str:
        """The noun for predictions in sentences."""
        return "segments" if self.iou_type == "panoptic" else "detections"

    @cached_property
    def _any(self) -> Bootstrap:
        return next(iter(self.bootstraps.values()))

    @property
    def _by_test(self) -> bool:
        """Whether intervals of differences come from the permutation tests (the default), not from the bootstrap."""
        return self._any.method == "t"

    @cached_property
    def families(self) -> tuple[Family, Family]:
        """The two families of hypotheses: each pair of models by the metric, and each pair of models in each category.

        The families depend on the ground truth and not on the predictions, see `detmap.statistics.testable`.
        """
        one, pairs = self._any, len(self.permutations)
        column = one.columns[self.metric]
        made = []
        for columns, names in (
            (np.array([column]), [self.metric]),
            (one.category_columns(one.main), [name for _, name in one.categories]),
        ):
            tested, fewest = testable(one.support[columns], self.alpha, pairs)
            untested = [name for name, kept in zip(names, tested, strict=True) if not kept]
            made.append(Family(int(tested.sum()) * pairs, fewest, untested))
        return made[0], made[1]

    def _differences(self, family: Family, categories: bool) -> list[Difference]:
        found = []
        for (first, second), test in self.permutations.items():
            one = self.bootstraps[second] - self.bootstraps[first]
            p, ends = test.p_values(), test.interval(self.level)
            interval = None if self._by_test else one.interval(self.level)
            rows: list[tuple[int, int, str, str | None]] = [(one.columns[self.metric], 0, self.metric, None)]
            if categories:
                own, tested = one.category_columns(one.main), test.category_columns(one.main)
                rows = [(own[k], tested[k], one.main, name) for k, (_, name) in enumerate(one.categories)]
            elif self.metric not in one.metrics:  # a metric of one category, which VOC names after the category
                rows = [(rows[0][0], test.columns[self.metric], self.metric, None)]
            for column, at, metric, category in rows:
                images = int(one.support[column])
                low, high = map(float, ends[at] if interval is None else interval[column])
                value = float(p[at]) if images >= family.fewest else math.nan
                difference = float(one.estimate[column])
                found.append(
                    Difference(first, second, metric, category, difference, low, high, value, math.nan, images)
                )
        adjusted = adjust([one.p for one in found], self.correction).tolist()
        return [one._replace(adjusted=value) for one, value in zip(found, adjusted, strict=True)]

    @cached_property
    def differences(self) -> list[Difference]:
        """The difference of each pair of models, the better model first; p-values are corrected over the pairs."""
        return self._differences(self.families[0], categories=False)

    @cached_property
    def categories(self) -> list[Difference]:
        """The difference of each pair of models in each category; p-values are corrected over all pairs and categories."""
        return self._differences(self.families[1], categories=True)

    @property
    def changed(self) -> list[Difference]:
        """The `categories` whose difference is significant."""
        return [one for one in self.categories if one.adjusted <= self.alpha]

    def disagrees(self, one: Difference) -> bool:
        """Return whether interval and test of a difference disagree on whether the difference is 0. In this case trust
        the test, which is exact under its null hypothesis; the interval is approximate. Intervals derived from the test
        always agree with the test; intervals by ``"bca"`` and ``"percentile"`` may disagree.
        """
        if math.isnan(one.p) or math.isnan(one.low):
            return False
        return (one.low > 0 or one.high < 0) != (one.p <= self.alpha)

    @cached_property
    def groups(self) -> dict[str, str]:
        """Letters for every model: models share a letter exactly if they do not differ significantly.

        Empty if no test could be significant, see `could_tell`.
        """
        if not self.could_tell(self.families[0]):
            return {}
        models = sorted(self.bootstraps, key=lambda name: (-self._value(name), name))
        models = [name for name in models if not math.isnan(self._value(name))]
        apart = {(one.first, one.second) for one in self.differences if one.adjusted <= self.alpha}
        return group_letters(models, apart)

    def could_tell(self, family: Family) -> bool:
        """Return whether any p-value of a family can be significant.

        False if there are too few images or clusters, or too few permutations for the correction.
        """
        if not family.size:
            return False
        drawn = [one.drawn for one in self.permutations.values() if not one.exact.all()]
        return all(enough_drawn(many, family.size, self.correction, self.alpha) for many in drawn)

    def sentences(self) -> list[str]:
        """Return sentences that explain the tests and intervals, and name the missing ones."""
        one, unit = self._any, self.unit
        if not self.permutations:
            return []
        of_metric, of_category = self.families
        correction = promise(self.correction, self.alpha)
        drawn = {one.drawn for one in self.permutations.values()}
        fewer = " (all of them where there are fewer)" if len(drawn) > 1 else ""
        lines = [
            f"p: paired permutation test, {many(max(drawn), 'permutation')}{fewer}: would the models differ as "
            f"much if it were chance which of them made the {self._found} of {_OF_ONE[unit]}?",
            f"family of {self.metric}: {many(of_metric.size, 'pair')} of models; family of the categories: "
            f"{many(of_category.size, 'hypothesis')}, each with objects on {of_category.fewest} {unit} "
            f"or more; {correction}",
        ]
        if of_metric.untested:
            lines.append(f"{self.metric}: too few {unit} to tell (it takes {of_metric.fewest} with objects)")
        if of_category.untested:
            untested = of_category.untested
            more = f" and {len(untested) - _NAMED:,} more" if len(untested) > _NAMED else ""
            lines.append(f"too few {unit} to tell ({len(untested)}): {', '.join(untested[:_NAMED])}{more}")
        for number in sorted({one.drawn for one in self.permutations.values() if not one.exact.all()}):
            for name, family in ((self.metric, of_metric), ("the categories", of_category)):
                lines += _too_few_drawn(number, family.size, name, self.correction, self.alpha)
        of = f"low, high of a difference: {100 * self.level:.6g} % confidence interval, not corrected"
        if self._by_test:
            lines.append(
                f"{of}, of the test: it holds 0 exactly where p before correction is above {self.alpha:.3g}; "
                f"none where fewer than {intervals.FEWEST[unit]} {unit} hold something to find, or no difference could be "
                "significant"
            )
        else:
            lines.append(f"{of}; {intervals.METHODS[one.method]}")
        if not self.groups:
            lines.append(f"no groups: these tests could not have told any two models apart by {self.metric}")
        lines.append(one.sentence(" of a model", self.level))
        column = one.columns[self.metric]
        for name, made in self.bootstraps.items():
            if why := made.reason(column):
                lines.append(f"no interval of {self.metric} of {name}: {why}")
        every = (*self.differences, *self.categories)
        doubtful = sum(map(self.disagrees, every))
        listed = sum(map(self.disagrees, (*self.differences, *self.changed)))
        if doubtful:
            unlisted = (
                f" ({doubtful - listed:,} of them not listed above, as the category did not change significantly)"
                if doubtful > listed
                else ""
            )
            lines.append(
                f"interval and p disagree (~) for {doubtful:,} of {many(len(every), 'difference')}{unlisted}: "
                "trust p, as the interval is an approximation"
            )
        return lines

    def __repr__(self) -> str:
        values = ", ".join(f"{name} {self._value(name):.4f}" for name in self.bootstraps)
        return f"<Comparison by {self.metric} ({self.iou_type}): {values}>"

    def __str__(self) -> str:
        """Return tables of the models, their differences and the changed categories as text, with explanations."""
        tables = [self.to_dict()["models"], *self._tables().values()]
        return "\n\n".join([repr(self), *filter(None, map(to_text, tables)), "\n".join(self.sentences())])

    def _repr_html_(self) -> str:
        return fragment(f"Comparison by {self.metric} ({self.iou_type})", self._tables(), self.sentences())

    def _tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return the tables of differences over all categories, and of changed categories, by title."""
        names = ("first", "second", "category", "difference", "low", "high", "p", "adjusted", "images")
        tables = {
            f"{self.metric}: differences": [{name: getattr(one, name) for name in names} for one in self.differences],
            "categories that changed": [{name: getattr(one, name) for name in names} for one in self.changed],
        }
        for found, rows in zip((self.differences, self.changed), tables.values(), strict=True):
            doubtful = list(map(self.disagrees, found))
            for row, doubt in zip(rows, doubtful, strict=True):
                row["category"] = row["category"] or "all"
                row |= {"interval and p": "~" if doubt else ""} if any(doubtful) else {}
        return tables

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values; `models` has an element for each model, in order."""
        column = self._any.columns[self.metric]
        interval = {name: one.interval(self.level)[column] for name, one in self.bootstraps.items()}
        names = ("metric", "categories")
        return {
            "metric": self.metric,
            "iou_type": self.iou_type,
            "level": self.level,
            "test": {
                "name": "paired permutation test",
                "permutations": next((test.drawn for test in self.permutations.values()), 0),
                "correction": self.correction,
                "families": {n: family._asdict() for n, family in zip(names, self.families, strict=True)},
            },
            "models": [
                {
                    "model": name,
                    self.metric: self._value(name),
                    "low": float(interval[name][0]),
                    "high": float(interval[name][1]),
                    "bias": float(self.bootstraps[name].bias()[column]),
                    self.unit: int(self.bootstraps[name].support[column]),
                    "group": self.groups.get(name, ""),
                }
                for name in self.bootstraps
            ],
            "differences": [self._row(one) for one in self.differences],
            "categories": [self._row(one) for one in self.categories],
            "notices": {name: dict(found) for name, found in self.notices.items()},
        }

    def _row(self, one: Difference) -> dict[str, Any]:
        row = {self.unit if name == "images" else name: value for name, value in one._asdict().items()}
        return {**row, "disagrees": self.disagrees(one)}


@dataclass(frozen=True, eq=False)
class PairTests:
    """Paired permutation tests of every pair of models by one metric.

    Attributes
    ----------
    models : list of str
        The names of the models, the best first.
    metric : str
        The metric by which the models are compared.
    p : dict of (str, str) to float
        The p-value of each pair; NaN if the pair was not tested.
    permutations : int
        Number of permutations of each pair.
    fewest, images : int
        Minimum number of images (or clusters) with positives for a significant difference, and the actual number.
    level, correction
        See `compare`.
    unit : {"images", "videos", "samples", "clusters"}
        The unit that permutations exchange between models.
    """

    models: list[str]
    metric: str
    p: dict[tuple[str, str], float]
    permutations: int
    fewest: int
    images: int
    level: float
    correction: Correction
    unit: str = "images"

    @property
    def enough_images(self) -> bool:
        """Whether there are enough images, or clusters, for any test."""
        return self.images >= self.fewest

    @property
    def could_tell(self) -> bool:
        """Whether any p-value can be significant with this number of images (or clusters) and of permutations.

        This is known before any permutation is drawn; if False, no pair is tested.
        """
        enough = enough_drawn(self.permutations, max(len(self.p), 1), self.correction, alpha_of(self.level))
        return self.enough_images and enough

    @cached_property
    def groups(self) -> dict[str, str]:
        """Letters for every model: models share a letter exactly if they do not differ significantly.

        Empty if no test could be significant, see `could_tell`.
        """
        if not self.could_tell:
            return {}
        adjusted, alpha = adjust(list(self.p.values()), self.correction), alpha_of(self.level)
        apart = {pair for pair, value in zip(self.p, adjusted, strict=True) if value <= alpha}
        return group_letters(self.models, apart)

    def sentences(self, *, counted: bool = True) -> list[str]:
        """Return sentences on the tests. If `counted` is true, they state the number of images."""
        if not self.p:
            return []
        tested = sum(not math.isnan(p) for p in self.p.values())
        if not self.enough_images:
            how_few = f": {self.images}, and it takes {self.fewest}" if counted else ""
            return [f"no groups: too few {self.unit} to tell models apart{how_few}"]
        if not self.could_tell:
            needed = permutations_needed(len(self.p), alpha_of(self.level))
            return [
                f"no groups: no p could be significant after the correction over {many(len(self.p), 'pair')} with "
                f"{many(self.permutations, 'permutation')}; draw {needed:,} (--permutations)"
            ]
        images = f", {self.images:,} {self.unit} with something to find" if counted else ""
        lines = [
            "group: models that share a letter cannot be told apart; paired permutation test of every pair by "
            f"{self.metric}, {many(self.permutations, 'permutation')}{images}; {independent(self.unit)}",
            f"family: {many(tested, 'pair')}; {promise(self.correction, alpha_of(self.level))}",
        ]
        if tested < len(self.p):
            untested = many(len(self.p) - tested, "pair")
            lines.append(f"not tested, so that they share a letter: {untested} of models scored on different classes")
        return lines

    def _repr_html_(self) -> str:
        rows = [{"model": name, "group": letters} for name, letters in self.groups.items()]
        return fragment(f"Tests of every pair of models by {self.metric}", {"": rows}, self.sentences())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        adjusted = adjust(list(self.p.values()), self.correction).tolist()
        return {
            "name": "paired permutation test",
            "metric": self.metric,
            "permutations": self.permutations,
            "correction": self.correction,
            "level": self.level,
            self.unit: self.images,
            f"fewest_{self.unit}": self.fewest,
            "pairs": [
                {"first": a, "second": b, "p": p, "adjusted": q}
                for ((a, b), p), q in zip(self.p.items(), adjusted, strict=True)
            ],
        }


def pair_tests(
    truth: AnyTally,
    models: Sequence[str],
    metric: str,
    permutations: int | None,
    level: float,
    correction: Correction,
) -> PairTests:
    """Return tests of every pair of models with p-values of NaN, which the caller replaces. `truth` is the tally of any
    model on this ground truth; `models` are sorted, the best first.
    """
    check_level(level)
    check_choice("correction", correction, CORRECTIONS)
    data = resampled(truth)
    images = int(data.support[find_column(data, metric)])
    pairs = list(itertools.combinations(models, 2))
    fewest = testable([images], alpha_of(level), max(len(pairs), 1))[1]
    count = permutations or permutations_needed(len(pairs), alpha_of(level))
    unit = data.units.name
    p = dict.fromkeys(pairs, math.nan)
    return PairTests(list(models), metric, p, count, fewest, images, level, correction, unit)


def compare_tallies(
    models: Mapping[str, AnyTally | HasTally],
    replicates: int,
    seed: int,
    *,
    permutations: int | None,
    metric: str | None,
    level: float,
    correction: Correction,
    method: Method,
    clusters: Clusters | None,
    threads: int | None,
) -> Comparison:
    """Return the comparison of scored models; `detmap.compare` explains the parameters."""
    tallies = {name: clustered(tally_of(one), clusters) for name, one in models.items()}
    if len(tallies) < 2:
        raise OptionError("a comparison needs two models or more")
    check_draws(replicates, seed, level)
    check_choice("correction", correction, CORRECTIONS)
    first_name, first = next(iter(tallies.items()))
    for name, tally in tallies.items():
        check_alike(first, tally, repr(first_name), repr(name))
    tallies = {name: tally.in_ranking_order(threads) for name, tally in tallies.items()}
    data = resampled(first, threads)
    chosen = metric or data.metrics[0]
    find_column(data, chosen)
    done = {name: bootstrap(tally, replicates, seed, method=method, threads=threads) for name, tally in tallies.items()}
    made = Comparison(done, {}, chosen, level, correction)
    ordered = sorted(done, key=lambda name: (-made._value(name), name))
    ordered = [name for name in ordered if not math.isnan(made._value(name))]
    pairs = list(itertools.combinations(ordered, 2))
    of_categories = data.support[len(data.metrics) :][: len(data.categories)]
    tested, _ = testable(of_categories, alpha_of(level), len(pairs))
    count = permutations or permutations_needed(max(int(tested.sum()), 1) * len(pairs), alpha_of(level))
    tests = {
        (a, b): permute(tallies[a], tallies[b], count, seed, chosen, categories=True, threads=threads) for a, b in pairs
    }
    notices = {name: dict(tally.notices) for name, tally in tallies.items()}
    for name, tally in tallies.items():
        if isinstance(tally, Tally):
            notices[name] = {**tally.every_notice(), **effect_of_zero_ids(tally, threads)}
    kind = first.protocol.iou_type if isinstance(first, Tally) else "panoptic"
    return Comparison(done, tests, chosen, level, correction, notices, kind)


def find_column(data: Columns, metric: str) -> int:
    """Return the column of a metric; raise `OptionError` if there is none."""
    if metric not in data.columns:
        raise OptionError(f"no metric {shorten(metric)}{one_of(metric, list(data.columns)[:30])}")
    return data.columns[metric]
