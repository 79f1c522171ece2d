"""Why one model is above another: the difference split by classes, sizes, kinds of errors and images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.tables import Detections, GroundTruth
from detmap.detection.evaluate import match
from detmap.detection.protocols import COCO, AnyProtocol, Protocol
from detmap.detection.result import DetectionResult
from detmap.detection.tally import Tally
from detmap.errors import OptionError, many
from detmap.explanations.replay import decided, trimmed, undefined
from detmap.results import fragment, signed
from detmap.shapes import IouType

if TYPE_CHECKING:
    from detmap.statistics import Bootstrap

#: Maximum number of images with effects. The two models' numbers of hits differ most on these images.
IMAGES = 1000

#: Maximum number of effects of each kind that are named in a sentence.
_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class Effect:
    """The contribution of one class, size, error or image to the difference.

    Attributes
    ----------
    name : str
        Name of the class, size, error or image.
    first, second : float
        The value of each model: the AP of a class or size, or the cost of an error; NaN for images.
    value : float
        The effect, positive in favour of the second model.
    low, high : float
        Confidence interval of the effect; NaN without an interval, as for images.
    without : float
        The difference on all images except this one; NaN for other kinds of effects.
    without_low, without_high : float
        Confidence interval of `without`; NaN if there is none.
    """

    name: str
    first: float
    second: float
    value: float
    low: float = math.nan
    high: float = math.nan
    without: float = math.nan
    without_low: float = math.nan
    without_high: float = math.nan


@dataclass(frozen=True, kw_only=True)
class Split:
    """The difference between two models, split into effects in one way.

    Attributes
    ----------
    name : str
        "classes", "sizes", "errors" or "images".
    says : str
        A sentence on how an effect is computed.
    whole : float
        The difference that is split: the second model's value minus the first's.
    effects : list of Effect
        The effects, the largest first.
    remainder : float
        `whole` minus the sum of the effects.
    """

    name: str
    says: str
    whole: float
    effects: list[Effect]
    remainder: float


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """The difference between two models, split in several ways.

    Attributes
    ----------
    metric : str
        The name of the metric.
    protocol : Protocol
        The rules, reduced to the decisions that the metric needs.
    first, second : str
        The names of the models.
    first_value, second_value : float
        The metric of each model.
    splits : dict of str to Split
        The splits of the difference, by name.
    exact : dict of str to Fraction
        The exact share of each class in the difference. The shares sum exactly to the difference of the two means over
        classes, which equal the two values up to rounding.
    replicates : int
        Number of bootstrap draws behind the intervals.
    level : float
        The level of the intervals.
    low, high : float
        Confidence interval of the difference; NaN if there is none.
    unit : {"images", "clusters"}
        The unit of the bootstrap draws. With clusters, the differences that leave out a single image have no intervals.
    """

    metric: str
    protocol: Protocol
    first: str
    second: str
    first_value: float
    second_value: float
    splits: dict[str, Split]
    exact: dict[str, Fraction]
    replicates: int
    level: float
    low: float = math.nan
    high: float = math.nan
    unit: str = "images"

    @property
    def difference(self) -> float:
        """The value of the second model minus the value of the first."""
        return self.second_value - self.first_value

    def sentences(self) -> list[str]:
        """Return the difference in sentences."""
        ends = "" if math.isnan(self.low) else f" ({signed(self.low)} to {signed(self.high)})"
        told = [
            f"{self.metric} is {self.first_value:.4f} for {self.first} and {self.second_value:.4f} for {self.second} under "
            f"{self.protocol.title}: {signed(self.difference) if self.difference else 'no difference'}{ends}."
        ]
        for split in self.splits.values():
            most = [one for one in split.effects[:_NAMED] if one.value]
            named = ", ".join(f"{one.name} {signed(one.value)}" for one in most) or "none makes a difference"
            more = len(split.effects) - len(most)
            rest = split.whole - sum(one.value for one in most) - split.remainder
            others = f", {many(more, 'other')} {signed(round(rest, 12))}" if more else ""
            left = f", interaction {signed(split.remainder)}" if abs(split.remainder) >= 5e-5 else ""
            told.append(f"{split.name.capitalize()}: {named}{others}{left}. {split.says}")
        told += self._decisive()
        if "errors" not in self.splits:
            told.append("Errors are told apart at IoU thresholds above 0.1 only.")
        draws = f"{self.replicates:,} draws of {self.unit}"
        if "images" in self.splits and self.unit == "images":
            draws += "; those in the table of images from the draws without the image"
        told.append(f"Intervals (low, high): {self.level * 100:g}%, from {draws}.")
        return told

    def _decisive(self) -> list[str]:
        """Return a list with a sentence if leaving out a single image changes whether the interval of the difference
        includes 0; else [].
        """

        def holds(low: float, high: float) -> bool:
            return low <= 0 <= high

        effects = self.splits["images"].effects if "images" in self.splits else []
        known = [one for one in effects if not math.isnan(one.without_low)]
        whole = holds(self.low, self.high)
        other = [one.name for one in known if holds(one.without_low, one.without_high) != whole]
        if math.isnan(self.low) or not other:
            return []
        named = ", ".join(other[:_NAMED]) + (", …" if len(other) > _NAMED else "")
        which = f"any one of these {len(other)} images ({named})" if len(other) > 1 else f"image {named}"
        held = "holds" if whole else "does not hold"
        return [f"The interval of the difference {held} 0; leaving out {which} changes that."]

    def _repr_html_(self) -> str:
        tables = {name: self.table(name) for name in self.splits}
        return fragment(f"Why {self.first} and {self.second} differ in {self.metric}", tables, self.sentences())

    def table(self, split: str, most: int | None = None) -> list[dict[str, Any]]:
        """Return at most `most` rows of a split for display, the largest effects first."""
        rows = []
        for one in self.splits[split].effects[:most]:
            row: dict[str, Any] = {split: one.name}
            if split == "images":
                without = one.without if math.isnan(one.without) else signed(one.without)
                row |= {"effect": signed(one.value), "without": without}
                row |= {"low": one.without_low, "high": one.without_high}
            else:
                taken = {split, "effect", "low", "high"}
                first, second = (f"{name} (model)" if name in taken else name for name in (self.first, self.second))
                row |= {first: one.first, second: one.second, "effect": signed(one.value)}
                row |= {"low": one.low, "high": one.high}
            rows.append(row)
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values; exact shares are text, such as "1/8"."""
        return {
            "metric": self.metric,
            "protocol": self.protocol.to_dict(),
            "first": self.first,
            "second": self.second,
            "first_value": self.first_value,
            "second_value": self.second_value,
            "difference": self.difference,
            "low": self.low,
            "high": self.high,
            "splits": [
                {**vars(split), "effects": [dict(vars(one)) for one in split.effects]} for split in self.splits.values()
            ],
            "exact_classes": {name: str(share) for name, share in self.exact.items()},
            "replicates": self.replicates,
            **({} if self.unit == "images" else {"unit": self.unit}),
            "level": self.level,
            "sentences": self.sentences(),
        }


def contrast(
    ground_truth: GroundTruth,
    first: Detections,
    second: Detections,
    protocol: AnyProtocol = "coco",
    *,
    metric: str = "AP",
    names: tuple[str, str] = ("first", "second"),
    iou_type: IouType | None = None,
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    threads: int | None = None,
) -> Contrast:
    """Split the difference between two models by classes, sizes, kinds of errors and images.

    * Classes: the difference in each class, divided by the number of classes. These effects sum to the whole difference.
    * Sizes: the difference in each area range, times the share of objects in this range.
    * Errors, at one threshold: the cost of each of TIDE's errors for the first model minus the cost for the second.
    * Images: the jackknife share of each image, which is the difference on all n images minus (n - 1) / n times the
      difference without this image.

    Intervals of classes, sizes and errors come from bootstrap draws of the images. Effects of images have no intervals,
    because images are the units of the draws. Instead, there is an interval for the difference without the image. This
    interval comes from the draws that do not contain the image.

    Parameters
    ----------
    ground_truth : GroundTruth
        The objects.
    first, second : Detections
        The detections of the two models.
    protocol : str or Protocol
        As for `detmap.explain`.
    metric : str
        As for `detmap.explain`.
    names : tuple of str
        Names of the models.
    iou_type : str, optional
        The kind of geometry that is matched, as for `detmap.evaluate`.
    replicates : int
        Number of bootstrap draws of images; at least 200.
    seed : int
        Seed of the draws.
    level : float
        The level of the intervals.
    threads : int, optional
        One per processor by default. The number does not affect the result.

    Returns
    -------
    Contrast

    Raises
    ------
    OptionError
        For an unknown protocol or metric, or too few replicates.
    InputError
        If there are no positives.

    Notes
    -----
    Efron, B., Jackknife-after-bootstrap standard errors and influence functions, Journal of the Royal Statistical Society B
    54 (1992), 83-127: draws that do not contain an image are draws from the data without this image.
    """
    from detmap.diagnostics import diagnose
    from detmap.diagnostics._pairs import BACKGROUND
    from detmap.diagnostics._redrawn import redrawn
    from detmap.statistics.bootstrap import bootstrap, check_draws

    check_draws(replicates, seed, level)
    named = decided(protocol, iou_type, ground_truth, first, second)
    base = trimmed(named, metric)
    if len(base.range_names) > 1:
        raise OptionError(f"{metric} cannot be split: give the metric of a range of square pixels, or AP")
    wide = replace(base, area_ranges=_ranges(named, base))
    tallies = [match(ground_truth, found, wide, iou_type=base.iou_type, threads=threads) for found in (first, second)]
    results = [DetectionResult(tally, threads=threads) for tally in tallies]
    one, other = (bootstrap(tally, replicates, seed, threads=threads) for tally in tallies)
    drawn = _gain(one, other)
    ends = drawn.interval(level)
    for result in results:
        if math.isnan(result["AP"]):
            raise undefined(ground_truth, base, metric)
    exact, classes = _classes(results, ends[drawn.category_columns("AP")])
    splits = [classes]
    if len(wide.area_ranges) > 1:
        of_sizes = [f"AP_{name}" for name, *_ in wide.area_ranges[1:]]
        splits.append(_sizes(results, of_sizes, ends[[drawn.columns[name] for name in of_sizes]]))
    iou = 0.5 if base.find_threshold(0.5) is not None else base.iou_thresholds[0]
    if iou > BACKGROUND:
        costs = [
            redrawn(
                diagnose(
                    ground_truth,
                    found,
                    base,
                    iou=iou,
                    replicates=replicates,
                    seed=seed,
                    iou_type=base.iou_type,
                    threads=threads,
                )
            )
            for found in (first, second)
        ]
        splits.append(_errors(costs, iou, level))
    if tallies[0].image_ids.size > 1:
        splits.append(_images(tallies, ground_truth, drawn, level, threads))
    low, high = ends[drawn.columns["AP"]].tolist()
    return Contrast(
        metric=metric,
        protocol=base,
        first=names[0],
        second=names[1],
        first_value=results[0]["AP"],
        second_value=results[1]["AP"],
        splits={split.name: split for split in splits},
        exact=exact,
        replicates=replicates,
        level=level,
        low=low,
        high=high,
        unit=drawn.unit,
    )


def _ranges(named: Protocol, base: Protocol) -> tuple[tuple[str, float, float], ...]:
    """Return the area range of the metric, then the smaller ranges for the split of the difference. The smaller ranges
    are the protocol's or, if it has none, COCO's. A metric of a smaller range, such as "AP_small", is not split.
    """
    (whole,) = base.area_ranges
    if whole[0] != named.area_ranges[0][0]:
        return base.area_ranges
    return (whole, *(named.area_ranges[1:] or COCO.area_ranges[1:]))


def _split(name: str, says: str, whole: float, effects: Sequence[Effect], remainder: float | None = None) -> Split:
    """Return a split with the largest effects first."""
    ordered = sorted(effects, key=lambda one: -abs(one.value))
    left = whole - math.fsum(one.value for one in effects) if remainder is None else remainder
    return Split(name=name, says=says, whole=whole, effects=ordered, remainder=left)


def _classes(results: Sequence[DetectionResult], ends: NDArray[np.float64]) -> tuple[dict[str, Fraction], Split]:
    """Return each class's exact share of the AP difference, and the resulting `Split`."""
    from detmap.detection.metric_names import distinct_names

    first, second = (result._by_category(None) for result in results)
    counts = [max(int(np.count_nonzero(~np.isnan(side))), 1) for side in (first, second)]
    pooled = not results[0].protocol.use_categories
    names = ["all"] if pooled else distinct_names(results[0].categories)
    exact, effects = {}, []
    for k, name in enumerate(names):
        sides = [Fraction(0 if math.isnan(side[k]) else float(side[k])) for side in (first, second)]
        if not (math.isnan(first[k]) and math.isnan(second[k])):
            exact[name] = sides[1] / counts[1] - sides[0] / counts[0]
            # The ends of the interval are divided by the number of classes with positives. If the models differ in this
            # number, there is no interval.
            low, high = (ends[k] / counts[1]).tolist() if counts[0] == counts[1] else (math.nan, math.nan)
            effects.append(
                Effect(
                    name=name,
                    first=float(first[k]),
                    second=float(second[k]),
                    value=float(exact[name]),
                    low=low,
                    high=high,
                )
            )
    whole = results[1]["AP"] - results[0]["AP"]
    return exact, _split("classes", "They sum to the difference.", whole, effects, 0.0)


def _sizes(results: Sequence[DetectionResult], names: Sequence[str], ends: NDArray[np.float64]) -> Split:
    """Return the split by area ranges."""
    tally = results[0].tally
    held = tally.positive_counts.sum(axis=0)
    effects = []
    for at, name in enumerate(names):
        first, second = (result[name] for result in results)
        share = held[at + 1] / max(held[0], 1)
        if held[at + 1]:
            low, high = (ends[at] * share).tolist()
            value = float((second - first) * share)
            effects.append(Effect(name=name[3:], first=first, second=second, value=value, low=low, high=high))
    says = "Each is the difference among objects of that size, times their share."
    return _split("sizes", says, results[1]["AP"] - results[0]["AP"], effects)


def _gain(first: Bootstrap, second: Bootstrap) -> Bootstrap:
    """Return the bootstrap of the differences, second minus first. `support` (the number of images with positives) is
    the minimum of the two models.
    """
    support = np.minimum(first.support, second.support)
    return replace(second, support=support) - replace(first, support=support)


def _errors(costs: Sequence[Bootstrap], iou: float, level: float) -> Split:
    """Return the split of the difference at one threshold by TIDE's errors."""
    first, second = costs
    saved = _gain(second, first)  # first minus second model, so that positive values favour the second
    ends = saved.interval(level).tolist()
    effects = [
        Effect(
            name=name[4:],
            first=float(first.estimate[at]),
            second=float(second.estimate[at]),
            value=float(saved.estimate[at]),
            low=ends[at][0],
            high=ends[at][1],
        )
        for name, at in saved.columns.items()
        if name != "AP"
    ]
    whole = -float(saved.estimate[0])
    says = f"Of {signed(whole)} at IoU {iou:g}; each is what the error costs the first, less what it costs the second."
    return _split("errors", says, whole, effects)


def _images(
    tallies: Sequence[Tally], ground_truth: GroundTruth, drawn: Bootstrap, level: float, threads: int | None
) -> Split:
    """Return the split by images; `drawn` is the bootstrap of the difference."""
    from detmap.statistics.reweighting import Reweighted

    size = tallies[0].image_ids.size
    chosen = np.arange(size)
    if size > IMAGES:
        first, second = (_hits(tally) for tally in tallies)
        chosen = np.sort(np.argsort(-np.abs(second - first), kind="stable")[:IMAGES])

    def codes(number: int) -> NDArray[np.int32]:
        weights = np.full(size, 2, np.int32)
        if number:
            weights[chosen[number - 1]] = 0
        return weights

    values = [
        Reweighted(tally.in_ranking_order(threads), ("AP",), ()).score(chosen.size + 1, codes, threads)[:, 0, 0]
        for tally in tallies
    ]
    gap = values[1] - values[0]
    # Without the only image with objects, the difference is undefined; 0 is used.
    shares = gap[0] - (size - 1) / size * np.nan_to_num(gap[1:])
    ends = _without(tallies, drawn, chosen, gap[1:], level)
    names = ground_truth.images.names or ()
    effects = [
        Effect(
            name=str((names[image] if names else "") or tallies[0].image_ids[image].item()),
            first=math.nan,
            second=math.nan,
            value=share,
            without=without,
            without_low=low,
            without_high=high,
        )
        for image, share, without, (low, high) in zip(
            chosen.tolist(), shares.tolist(), gap[1:].tolist(), ends, strict=True
        )
    ]
    says = "Each is an image's share by the jackknife; low, high are of the difference without it."
    if size > IMAGES:
        says += f" Measured: the {IMAGES:,} images of {size:,} where most differs; the others are in the remainder."
    return _split("images", says, float(gap[0]), effects)


def _without(
    tallies: Sequence[Tally],
    drawn: Bootstrap,
    images: NDArray[np.int64],
    values: NDArray[np.float64],
    level: float,
) -> list[tuple[float, float]]:
    """Return for each of `images` an interval of the difference without this image; NaN without an interval."""
    # A bootstrap draw without an image is a draw from the remaining images. Draws of clusters cannot be used, because a
    # draw without an image lacks the whole cluster.
    from detmap.statistics import draws, intervals

    if drawn.unit == "clusters":
        return [(math.nan, math.nan)] * images.size

    column, size = drawn.columns["AP"], tallies[0].image_ids.size
    absent = np.stack([draws.drawn(size, drawn.seed, r)[images] == 0 for r in range(len(drawn.replicates))])
    holds = np.zeros(size, np.bool_)
    for tally in tallies:
        holds[tally.positive_image[tally.positive_counts[:, 0] > 0]] = True
    support = int(np.count_nonzero(holds))
    groups = len(drawn.jackknife)
    ends = []
    for at, image in enumerate(images.tolist()):
        made = drawn.replicates[absent[:, at], column]
        away = np.delete(drawn.jackknife[:, column], image % groups)
        others = support - int(holds[image])
        if intervals.reason(float(values[at]), made, away, others, bounded=False):
            ends.append((math.nan, math.nan))
        else:
            ends.append(intervals.interval("t", float(values[at]), made, away, others, level, bounded=False))
    return ends


def _hits(tally: Tally) -> NDArray[np.int64]:
    """Return the number of hits of each image over all thresholds."""
    total = np.zeros(tally.image_ids.size, np.int64)
    for t in range(len(tally.protocol.iou_thresholds)):
        total += np.bincount(tally.image[tally.bit(tally.hit, 0, t)], minlength=total.size)
    return total
