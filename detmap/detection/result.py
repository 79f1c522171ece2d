"""The result of an evaluation of detections: metrics by name, and the curves, counts and tables behind them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.data.notices import describe
from detmap.detection.metric_names import OF_CLASS, OF_IMAGES, distinct_names, find_metric, metric_table
from detmap.detection.packed import ShardedTally
from detmap.detection.precisions import (
    Curves,
    averaged,
    changed_by_zero_ids,
    mean_of_defined,
    mean_under,
    notice_of_zero_ids,
    published_mean,
    recalls,
    with_empty,
)
from detmap.detection.protocols import UNLIMITED, Protocol
from detmap.detection.rematching import chosen_thresholds
from detmap.detection.sampling import Sampled, of_class
from detmap.detection.tally import Tally
from detmap.detection.true_positives import class_errors, detection_score, mean_errors, names_of
from detmap.errors import OptionError, UnknownMetricError, shorten
from detmap.hits import SAMPLED, SAMPLES, Curve, best_f1
from detmap.kernels import readonly
from detmap.results import Intervals, Result, widened
from detmap.shapes import find


@dataclass(frozen=True)
class Counts:
    """Hits and misses of every category at one IoU threshold and minimum score."""

    #: The K categories.
    categories: tuple[tuple[Any, str], ...]
    #: Numbers of true positives, false positives and unmatched objects per category, shape (K,).
    true_positives: NDArray[np.int64]
    false_positives: NDArray[np.int64]
    false_negatives: NDArray[np.int64]


class ClassCounts(NamedTuple):
    """Counts of each category. `hits` and `ignored` have a column per threshold, shape (K, T)."""

    detections: NDArray[np.int64]
    hits: NDArray[np.int64]
    ignored: NDArray[np.int64]
    best_f1: list[dict[str, float]]

    @classmethod
    def joined(cls, parts: Sequence[ClassCounts]) -> ClassCounts:
        """Concatenate the counts of consecutive ranges of categories."""
        detections, hits, ignored, best = zip(*parts, strict=True)
        columns = np.concatenate(detections), np.concatenate(hits), np.concatenate(ignored)
        return cls(*columns, list(chain.from_iterable(best)))


class DetectionResult(Result):
    """The result of an evaluation: metrics by name, and the arrays behind them.

    Axes, as in pycocotools: T IoU thresholds, R recall thresholds, K categories, A area ranges, M caps (`max_dets`,
    maximum numbers of detections per image and category).

    Parameters
    ----------
    tally : Tally
        The outcome of matching; it may also be a `detmap.detection.packed.ShardedTally`.
    threads : int, optional
        One per processor by default.

    Attributes
    ----------
    tally : Tally
        The tally in ranking order. For a sharded tally, this attribute is assembled when it is first read.
    precision : ndarray of float64, shape (T, R, K, A, M)
        The largest precision at a recall of at least the threshold; 0 if no recall reaches the threshold, NaN without
        ground truth.
    scores : ndarray of float64, shape (T, R, K, A, M)
        The score at which the recall threshold is first reached.
    recall : ndarray of float64, shape (T, K, A, M)
        The final recall.
    average_precision : ndarray of float64, shape (T, K, A, M)
        AP under the protocol's interpolation.
    intervals : detmap.statistics.Intervals, or None
        Confidence intervals by metric, ``(low, high)``, if requested from `detmap.evaluate`: ``bootstrap=1000``.
    """

    #: Arrays whose hashes an evaluation card holds.
    HASHED = ("precision", "recall", "scores", "average_precision")

    recall: NDArray[np.float64]

    def __init__(self, tally: Tally | ShardedTally, *, threads: int | None = None) -> None:
        self._source = source = tally.in_ranking_order(threads)
        self._threads = threads
        # `frame` is the tally without detections. The detections of shards are read a few categories at a time.
        self._frame = source if isinstance(source, Tally) else source.frame
        largest, recall, counted, changed = [], [], [], []
        for part in source.parts(threads):
            recall.append(recalls(part))
            # Recall is reported for every limit of detections per image, but the other curves only for the largest limit.
            largest.append(Curves.of(part, self.protocol.max_dets[-1:], False, threads))
            changed.append(changed_by_zero_ids(part, threads))
            if part is not source:
                counted.append(self._count(part))
        if counted:
            self._counted = ClassCounts.joined(counted)
        self.recall = recall[0] if len(recall) == 1 else readonly(np.concatenate(recall, axis=1), np.float64)
        self._largest = Curves.joined(largest)
        metrics = {name: self._mean(*row) for name, row in metric_table(self.protocol, self.categories)}
        notices = {**source.every_notice(), **self._few_positives()}
        super().__init__(metrics, {**notices, **notice_of_zero_ids(self._frame, self._largest, changed)})

    @cached_property
    def tally(self) -> Tally:
        """The tally in ranking order."""
        if not isinstance(self._source, Tally):
            self._source = self._source.whole(self._threads)
        return self._source

    def described_notices(self) -> list[str]:
        """Return a sentence per notice. In the sentences, the scored items are called images, videos or samples."""
        return describe(self.notices, self.protocol.iou_type)

    @property
    def protocol(self) -> Protocol:
        """The protocol of the evaluation."""
        return self._frame.protocol

    @property
    def intervals(self) -> Intervals | None:
        """Confidence intervals by metric, ``(low, high)``, if requested from `detmap.evaluate`, else None."""
        return self._intervals

    def add_intervals(self, intervals: Intervals) -> None:
        """Add confidence intervals, which are computed after the metrics."""
        self._intervals = intervals

    @property
    def categories(self) -> tuple[tuple[Any, str], ...]:
        """The K categories as (id, name)."""
        return self._frame.categories

    @cached_property
    def _scored(self) -> Curves:
        """The curves within every cap, with their scores, computed lazily in one pass."""
        parts = self._source.parts(self._threads)
        return Curves.joined([Curves.of(part, self.protocol.max_dets, True, self._threads) for part in parts])

    @cached_property
    def _pools(self) -> Curves:
        """The curves of pooled categories, within the largest cap."""
        return Curves.of(self.tally.pools(self._threads), self.protocol.max_dets[-1:], False, self._threads)

    @cached_property
    def _crowds(self) -> dict[str, Curves]:
        """The curves of each group of images, within the largest cap."""
        tallies = {name: self.tally.crowd_group(name) for name, _ in self.protocol.crowd_groups}
        caps = self.protocol.max_dets[-1:]
        return {name: Curves.of(tally, caps, False, self._threads) for name, tally in tallies.items()}

    @cached_property
    def _errors(self) -> dict[str, NDArray[np.float64]]:
        """The errors of true positives of each class, by name of the error."""
        names = names_of(self.protocol)
        return dict(zip(names, class_errors(self.tally).T, strict=True)) if names else {}

    @property
    def _every(self) -> Curves:
        """The curves within every cap. They have no scores if there is only one cap."""
        return self._largest if len(self.protocol.max_dets) == 1 else self._scored

    @property
    def precision(self) -> NDArray[np.float64]:
        """The largest precision at a recall of at least the threshold, shape (T, R, K, A, M); NaN without ground truth."""
        return self._every.precision

    @property
    def scores(self) -> NDArray[np.float64]:
        """The score at which the recall threshold is first reached, shape (T, R, K, A, M); NaN without ground truth."""
        return self._scored.scores

    @property
    def average_precision(self) -> NDArray[np.float64]:
        """AP under the protocol's interpolation, shape (T, K, A, M); NaN without ground truth."""
        return self._every.average_precision

    def mean_precision(self, iou: float | None = None) -> NDArray[np.float64]:
        """Return the mean precision of the classes at each recall threshold, over all areas and within the largest cap.

        Parameters
        ----------
        iou : float, optional
            One of the IoU thresholds; by default 0.5, or the first threshold if 0.5 was not evaluated.

        Returns
        -------
        ndarray of float64, shape (R,)
            The mean over classes with ground truth; NaN if there are none.

        Raises
        ------
        OptionError
            If that threshold was not evaluated.
        """
        precision = self.class_precision(iou)
        precision = precision[:, ~np.isnan(precision).any(axis=0)]
        return precision.mean(axis=1) if precision.size else np.full(len(precision), np.nan)

    def class_precision(self, iou: float | None = None) -> NDArray[np.float64]:
        """Return the precision of each class at each recall threshold, over all areas and within the largest cap.

        Parameters
        ----------
        iou : float, optional
            As for `mean_precision`.

        Returns
        -------
        ndarray of float64, shape (R, K)
            NaN for a class without ground truth.

        Raises
        ------
        OptionError
            If that threshold was not evaluated.
        """
        return self._largest.precision[self._threshold(iou), :, :, 0, 0]

    def _mean(self, kind: str, iou: float | None, area: int, cap: int, category: int | str | None) -> float:
        """Return the value of a metric: the mean over thresholds and categories with ground truth, NaN if there are
        none. As in pycocotools, all values are averaged at once, because a mean of means can differ in the last bit.
        """
        if kind == "pooled":
            pool = 0 if category is None else 1 + self.protocol.groups.index(str(category))
            return mean_of_defined(averaged(self._pools, self.protocol)[:, :, pool, area])
        if kind in OF_IMAGES:
            values = averaged(self._crowds[str(category)], self.protocol)[:, :, :, area]
            return mean_of_defined(values) if kind == "group" else published_mean(values)
        if kind in OF_CLASS:
            aps = self._largest.average_precision[:, :, area, 0].T
            values = aps if kind == "percent" else self._alike[:, area]
            return of_class(values, str(category), self.protocol, self.categories, np.diff(self.tally.class_starts))
        if kind in self._errors:
            errors = self._errors[kind]
            return float(errors[category] if isinstance(category, int) else mean_errors(errors[:, None])[0])
        if kind == "score":
            means = [self._mean(name, iou, area, cap, None) for name in self._errors]
            return detection_score(self._mean("AP", None, area, cap, None), np.array(means))
        values = self._values(kind, iou, area, cap)
        chosen: Any = self._frame.in_group(category) if isinstance(category, str) else category
        if category is None and kind == "AP":
            return mean_under(self.protocol, values)
        return mean_of_defined(values if category is None else values[..., chosen])

    def _few_positives(self) -> dict[str, int]:
        """Return a notice for each metric that is based on few objects. If no category belongs to the benchmark, a
        single notice says so.
        """
        if self.protocol.interpolation not in SAMPLED:
            return {}
        names = [name.casefold() for _, name in self.categories]
        wanted = [name for name, _ in self.protocol.class_thresholds] if self.protocol.class_levels else []
        if names and wanted and not {*names} & {one.casefold() for one in wanted}:
            return {f"unnamed_classes:{'/'.join(wanted)}": 1}
        found: dict[str, int] = {}
        for metric, (kind, _, area, _, category) in metric_table(self.protocol, self.categories):
            if kind == "percent" and names.count(str(category).casefold()) == 1:
                positives = self._frame.positives[names.index(str(category).casefold()), area]
                found |= {f"few_positives:{metric}": 1} if 0 < positives < SAMPLES else {}
        return found

    @cached_property
    def _alike(self) -> NDArray[np.float64]:
        """The mean similarity of orientation, computed like AP, shape (K, A, T); NaN if angles are unknown."""
        if self._largest.alike is not None:
            return self._largest.alike
        return Sampled.of(self.tally, threads=self._threads).averages("sampled-40").alike

    def _values(self, kind: str, iou: float | None, area: int, cap: int) -> NDArray[np.float64]:
        """Return the values that a metric averages. The axes are threshold, recall (not for AR) and category."""
        if kind == "AR":
            values = with_empty(self.recall[:, :, area, cap], self.protocol)
        else:
            values = averaged(self._largest, self.protocol)[:, :, :, area]
        if iou is not None:
            t = self._find_threshold(iou)
            values = values[:0] if t is None else values[t : t + 1]
        elif kind == "AP" and self.protocol.class_thresholds:
            values = np.where(chosen_thresholds(self.protocol, self.categories)[:, None], values, np.nan)
        return values

    def _by_category(self, iou: float | None) -> NDArray[np.float64]:
        """Return the AP of every category as `_mean` computes it, for the first area range and the largest cap."""
        values = self._values("AP", iou, 0, len(self.protocol.max_dets) - 1)
        if not values.size:  # the threshold was not evaluated
            return np.full(len(self.categories), np.nan)
        # A category's values are all NaN without ground truth, else all numbers. The values are made contiguous in the
        # order that `_mean` uses, so that numpy sums in the same order.
        side_by_side = np.ascontiguousarray(np.moveaxis(values, -1, 0)).reshape(len(self.categories), -1)
        if self.protocol.class_thresholds:
            return np.array([mean_of_defined(row) for row in side_by_side])
        return np.asarray(side_by_side.mean(axis=1))

    def _find_threshold(self, iou: float) -> int | None:
        """Return the index of the threshold `iou`, up to rounding; None if there is none."""
        return self.protocol.find_threshold(iou)

    def _threshold(self, iou: float | None) -> int:
        """Return the index of a threshold; None means 0.5, or the first threshold if 0.5 was not evaluated."""
        if iou is None:
            return self._find_threshold(0.5) or 0
        found = self._find_threshold(iou)
        if found is not None:
            return found
        raise OptionError(
            f"IoU {iou} was not evaluated; these were: {', '.join(map(str, self.protocol.iou_thresholds))}"
        )

    def _category(self, category: Any) -> int:
        for part in (0, 1):  # ids take precedence over names
            for k, pair in enumerate(self.categories):
                if pair[part] == category:
                    return k
        known = ", ".join(shorten(name)[1:-1] for _, name in self.categories[:20])
        more = f" and {len(self.categories) - 20} more" if len(self.categories) > 20 else ""
        raise OptionError(f"category {shorten(category)} was not evaluated; these were: {known}{more}")

    @cached_property
    def per_category(self) -> list[dict[str, Any]]:
        """A record per category.

        ``category_id``, ``category``, ``AP``, ``AP50``, ``AP75`` (whole area range, largest cap), ``positives``, and
        ``detections`` (within the cap). ``true_positives``, ``false_positives`` and ``false_negatives`` are lists over
        the IoU thresholds. ``best_f1`` is the point with the largest F1 at IoU 0.5 (or the first threshold). Its fields
        are ``score`` (the minimum score), ``f1``, ``precision`` and ``recall``, which are NaN without ground truth. If
        the protocol measures errors of true positives, each error is a field too.
        """
        positives, counted = self._frame.positives[:, 0], self._counted
        columns: dict[str, Sequence[Any]] = {
            "category_id": [key for key, _ in self.categories],
            "category": [name for _, name in self.categories],
            **{name: self._by_category(iou).tolist() for name, iou in (("AP", None), ("AP50", 0.5), ("AP75", 0.75))},
            "positives": positives.tolist(),
            "detections": counted.detections.tolist(),
            "true_positives": counted.hits.tolist(),
            "false_positives": (counted.detections[:, None] - counted.hits - counted.ignored).tolist(),
            "false_negatives": (positives[:, None] - counted.hits).tolist(),
            "best_f1": counted.best_f1,
            **{name: values.tolist() for name, values in self._errors.items()},
        }
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    @cached_property
    def _counted(self) -> ClassCounts:
        """The counts of every category, over the whole area range and within the largest cap."""
        return self._count(self.tally)

    def _count(self, tally: Tally) -> ClassCounts:
        """Return the counts of the categories of a tally in ranking order."""
        at, positives = self._find_threshold(0.5) or 0, tally.positives[:, 0]
        best = best_f1(tally.class_starts, tally.scores, tally.hit, tally.ignored, at, positives)
        return ClassCounts(np.diff(tally.class_starts), tally.hit_counts[:, 0], tally.ignored_counts(0), best)

    def _curve(self, k: int, t: int) -> Curve:
        tally, starts = self.tally, self.tally.class_starts
        rows = slice(int(starts[k]), int(starts[k + 1]))
        counted = ~tally.bit(tally.ignored[rows], 0, t)
        return Curve.from_flags(
            tally.bit(tally.hit[rows], 0, t)[counted],
            tally.scores[rows][counted],
            int(tally.positives[k, 0]),
            self.protocol.epsilon,
        )

    def curve(self, category: Any, iou: float | None = None) -> Curve:
        """Return precision and recall after every detection of a category; ignored detections are left out.

        Parameters
        ----------
        category : int or str
            Id or name of the category.
        iou : float, optional
            One of the IoU thresholds; by default 0.5, or the first threshold if 0.5 was not evaluated.

        Raises
        ------
        OptionError
            If the category or the threshold was not evaluated.
        """
        return self._curve(self._category(category), self._threshold(iou))

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        categories: Sequence[Any] | None = None,
        iou: float | None = None,
    ) -> Any:
        """Draw interpolated precision against recall for some categories, by default all categories with ground truth.

        The mean over these categories is drawn on top. The categories with the most objects are labelled with their name
        and AP. For up to four categories the raw curves are drawn too.

        Parameters
        ----------
        path : path, optional
            Write the picture there, as .svg, .pdf or .png.
        categories : sequence of int or str, optional
            Ids or names of the categories.
        iou : float, optional
            One of the IoU thresholds; by default 0.5, or the first threshold if 0.5 was not evaluated.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from detmap import plots

        t = self._threshold(iou)
        every = range(len(self.categories)) if categories is None else [self._category(one) for one in categories]
        chosen = [k for k in dict.fromkeys(every) if self._frame.positives[k, 0]]
        chosen.sort(key=lambda k: -int(self._frame.positives[k, 0]))
        ap = self._largest.average_precision[t, :, 0, 0]
        recall = np.linspace(0, 1, 201)
        lines, means = [], np.zeros(recall.size)
        for k in chosen:
            curve = self._curve(k, t)
            reached = np.searchsorted(curve.recall, recall)
            means += np.append(curve.interpolated, 0.0)[reached]
            if curve.recall.size:
                label = str(self.categories[k][1])
                lines.append(plots.Line(label, curve.recall, curve.precision, curve.interpolated, f"AP {ap[k]:.4f}"))
        if len(chosen) > 1 and lines:
            label = f"mean of {len(chosen):,} classes"
            mean = plots.Line(label, recall, None, means / len(chosen), f"AP {ap[chosen].mean():.4f}", front=True)
            lines.insert(0, mean)
        kind, shown = find(self.protocol.iou_type), round(self.protocol.iou_thresholds[t], 9)
        at = kind.at(shown) if kind.falls else f"{kind.name} IoU {shown:g}"
        return plots.precision_recall(lines, path=path, title=f"Precision and recall at {at}")

    def counts(self, iou: float | None = None, score: float = -np.inf) -> Counts:
        """Return TP, FP and FN of every category, counting only detections of at least `score`.

        Parameters
        ----------
        iou : float, optional
            One of the IoU thresholds; by default 0.5, or the first threshold if 0.5 was not evaluated.
        score : float
            Detections of lower scores are left out. Under the rules of VOC and COCO a match depends only on detections of
            higher scores, so nothing has to be matched again.

        Raises
        ------
        OptionError
            If the threshold was not evaluated.
        """
        tally, t = self.tally, self._threshold(iou)
        kept = tally.scores >= score
        size = len(self.categories)
        true = np.bincount(tally.category[kept & tally.bit(tally.hit, 0, t)], minlength=size)
        counted = np.bincount(tally.category[kept & ~tally.bit(tally.ignored, 0, t)], minlength=size)
        return Counts(self.categories, true, counted - true, tally.positives[:, 0] - true)

    def summary(self) -> list[dict[str, Any]]:
        """Return a row per metric, for display: its value, and the thresholds, area and cap that it covers."""
        protocol, rows = self.protocol, []
        shown: list[str] = []
        low, high = (f"{round(end(protocol.iou_thresholds), 9):g}" for end in (min, max))
        every = low if low == high else f"{low}:{high}"
        table = metric_table(protocol, self.categories)
        of_all = {name for name, (*_, category) in table if not isinstance(category, int)}
        classes = distinct_names(self.categories)
        of_classes: dict[Any, str] = {
            one: f"{value:g}" for one, value in protocol.class_thresholds if protocol.find_threshold(value) is not None
        }
        measure = protocol.iou_type if find(protocol.iou_type).falls else f"{protocol.iou_type} IoU"
        errors = names_of(protocol)
        words = {
            "AR": "recall",
            "pooled": "one ranking",
            "orientation": "similarity",
            "score": "mAP and errors",
            **dict.fromkeys(errors, "error"),
        }
        for name, (kind, iou, area, cap, category) in table:
            if isinstance(category, int) and (kind in errors or iou is not None):  # shown by `class_summary`
                continue
            shown.append(name)
            most = protocol.max_dets[cap]
            row = {
                "metric": classes[category] if isinstance(category, int) and classes[category] not in of_all else name,
                "value": self[name],
                "mean of": words.get(kind, "precision"),
                measure: f"{protocol.error_threshold:g}"
                if kind in errors
                else of_classes.get(category, every)
                if iou is None
                else f"{iou:g}",
                "area": protocol.range_names[area],
                **({"images": category if kind in OF_IMAGES else "all"} if protocol.crowd_groups else {}),
                "max detections": self._cap_in_words() if most == UNLIMITED else str(most),
            }
            rows.append(row)
        return rows if self._intervals is None else widened(rows, self._intervals.of_metrics(shown), "value")

    def _cap_in_words(self) -> str:
        """Describe the maximum numbers of detections per image and per category."""
        image, category = self.protocol.max_per_image, self.protocol.max_per_category
        caps = [*([f"{category} of all images"] if category else []), *([f"{image} per image"] if image else [])]
        return ", ".join(caps) or "all"

    def class_summary(self) -> list[dict[str, Any]]:
        """Return a row per category, formatted for display; `rows` has all columns."""
        t = self._find_threshold(0.5) or 0
        least = self.protocol.iou_thresholds[t]
        iou = f"_{least:g}" if find(self.protocol.iou_type).falls else f"{100 * least:.3g}"
        rows = []
        for record in self.per_category:
            row = {"category": record["category"], "AP": record["AP"]}
            if not self.protocol.per_class_metrics:
                row |= {"AP50": record["AP50"], "AP75": record["AP75"]}
            row |= {"GT": record["positives"], "dets": record["detections"]}
            row |= {
                f"{short}{iou}": record[name][t]
                for short, name in (("TP", "true_positives"), ("FP", "false_positives"), ("FN", "false_negatives"))
            }
            row |= {name: record[name] for name in self._errors}
            rows.append(row | {"F1": record["best_f1"]["f1"], "at": record["best_f1"]["score"]})
        return rows if self._intervals is None else widened(rows, self._intervals.of_categories(), "AP")

    def __getitem__(self, name: str) -> float:
        try:
            return super().__getitem__(name)
        except UnknownMetricError:
            place = next((k for k, (_, own) in enumerate(self.categories) if own == name), None)
            if place is None:
                raise
        raise UnknownMetricError(name, self._metrics, f"the AP of this class is result.per_category[{place}]['AP']")

    def _meant(self, name: str) -> str | None:
        return find_metric(name, self.protocol, metric_table(self.protocol, self.categories))

    def _tables(self) -> dict[str, Any]:
        return {"": self.summary(), "categories": self.class_summary()}

    def rows(self) -> list[dict[str, Any]]:
        """Return the records of `per_category`, flattened to a single value per column."""
        flat = []
        for record in self.per_category:
            row = {name: value for name, value in record.items() if not isinstance(value, list | dict)}
            for name, short in (("true_positives", "TP"), ("false_positives", "FP"), ("false_negatives", "FN")):
                for iou, value in zip(self.protocol.iou_thresholds, record[name], strict=True):
                    row[f"{short}@{round(iou, 9):g}"] = value
            row.update({"best_f1" if name == "f1" else f"best_f1_{name}": v for name, v in record["best_f1"].items()})
            flat.append(row)
        return flat if self._intervals is None else widened(flat, self._intervals.of_categories(), "AP")

    def to_flat(self, prefix: str = "", *, categories: bool = False) -> dict[str, float]:
        """Return the defined metrics by name, as experiment trackers take them.

        Parameters
        ----------
        prefix : str
            Text to put before each name, such as ``"val/"``.
        categories : bool
            Add the AP of each category with ground truth, with names such as ``AP/person``.
        """
        flat = super().to_flat(prefix)
        if categories:
            of_each = zip(distinct_names(self.categories), self._by_category(None).tolist(), strict=True)
            flat |= {f"{prefix}AP/{name}": value for name, value in of_each if not np.isnan(value)}
        return flat

    def to_dict(self) -> dict[str, Any]:
        """Return protocol, metrics, per_category and notices as plain values, and ``bootstrap`` if there are intervals."""
        intervals = {} if self._intervals is None else {"bootstrap": self._intervals.to_dict()}
        return {
            # `iou_type` is included even if it is the default
            "protocol": {**self.protocol.to_dict(), "iou_type": self.protocol.iou_type},
            "metrics": dict(self),
            "per_category": [{**row, **{name: row[name].copy() for name in _NESTED}} for row in self.per_category],
            "notices": dict(self.notices),
            **intervals,
        }

    def __repr__(self) -> str:
        name = next(iter(self))
        return (
            f"<DetectionResult: {name} {self[name]:.4f} under {self.protocol.title}, {len(self.categories)} categories>"
        )

    def __getattr__(self, name: str) -> float:
        """Return a metric as an attribute: ``result.AP50``."""
        metrics: dict[str, float] = self.__dict__.get("_metrics", {})
        if name in metrics:
            return metrics[name]
        if "_frame" in self.__dict__ and (found := self._meant(name)):
            return metrics[found]
        if hasattr(type(self), name):  # a property raised AttributeError: show that error
            value: float = object.__getattribute__(self, name)
            return value
        if name in _ELSEWHERE:
            raise AttributeError(f"no attribute or metric {name!r}; there is {_ELSEWHERE[name]}")
        raise AttributeError(f"no attribute or metric {name!r}; metrics: {', '.join(list(metrics)[:20])}")


#: The fields of `DetectionResult.per_category` that are lists or dicts.
_NESTED = ("true_positives", "false_positives", "false_negatives", "best_f1")

#: Attributes of other libraries' results, and their replacements in detmap.
_ELSEWHERE = {
    "summarize": "print(result)",
    "stats": "list(result.values())",
    "eval": "result.precision, result.recall and result.scores",
    "to_pandas": "result.to_frame()",
    "to_df": "result.to_frame()",
    "per_class": "result.per_category",
    "confusion_matrix": "detmap.diagnose(ground_truth, detections).part('confusion')",
}
