"""Evaluate two tables under many protocols, each protocol once. The tables are matched again only if a decision that
affects matching changes.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from detmap.choices import UNLIMITED, WHOLE, decimal
from detmap.data.mismatches import check_pair
from detmap.data.tables import Detections, GroundTruth
from detmap.decisions import YES_OR_NO, Decision, decisions_of, default_of, differing, varied
from detmap.detection.precisions import mean_of_defined, mean_under
from detmap.detection.preparation import prepared
from detmap.detection.protocols import COCO, Protocol, resolve
from detmap.detection.scored_kinds import scored_kind
from detmap.detection.zero_ids import OTHER, effect
from detmap.errors import InputError, OptionError, shorten
from detmap.explanations.full_evaluation import Whole
from detmap.explanations.incremental import Lean, knows
from detmap.shapes.boxes import Boxes
from detmap.shapes.kinds import BOXES

#: IoU thresholds of the metrics that use a single threshold.
AT = {"AP50": 0.5, "AP75": 0.75}

T = TypeVar("T", bound=Any)

#: A protocol or a convention.
Rules = TypeVar("Rules", bound=Any)

_Given = TypeVar("_Given", contravariant=True)


class Question(typing.Protocol[_Given]):
    """A metric of one model, which is evaluated under many protocols or conventions."""

    def number(self, rules: _Given, /) -> float:
        """Return the metric; NaN if undefined."""

    def plain(self, rules: _Given, /) -> Hashable:
        """Return a key that is equal for rules known to be equivalent."""


_DECLARED = decisions_of(Protocol)
_DEFAULTS = {name: default_of(one) for name, one in Protocol.__dataclass_fields__.items()}


def is_late(name: str) -> bool:
    """Return whether a decision applies after matching and ranking, so that a change needs neither again."""
    return set(_DECLARED[name].affects) <= {"curve", "mean"}


#: Minimum number of detections for which several threads are faster.
_FEW = 20_000


def parse(text: str, iou_type: str | None = None) -> Protocol:
    """Return a protocol from its name and changes, such as ``coco`` or ``coco+min_score=0.25+max_dets=300``. If
    `iou_type` is given, return the protocol's variant for this geometry; for example, "coco" for keypoints has a cap of
    20.
    """
    name, *changes = text.split("+")
    found = resolve(name.strip(), iou_type=iou_type)
    return with_changes(found, text, changes, _read)


def with_changes(rules: T, text: str, changes: Iterable[str], read: Callable[[str, Decision, str], Any]) -> T:
    """Apply `changes` such as ``min_score=0.25`` to rules. `read` parses a value, and `text` becomes the new name."""
    declared, given = decisions_of(type(rules)), dict[str, Any]()
    for change in changes:
        key, equals, value = (part.strip() for part in change.partition("="))
        made = declared.get(key)
        if made is None or not equals or not made.affects:
            known = ", ".join(name for name, one in declared.items() if one.affects)
            raise OptionError(f"{shorten(change)} is no decision=value; decisions: {known}")
        try:
            if made.allowed is YES_OR_NO and value not in ("yes", "no"):
                raise ValueError(f"must be yes or no, not {shorten(value)}")
            given[key] = value == "yes" if made.allowed is YES_OR_NO else read(key, made, value)
        except ValueError as error:
            raise OptionError(str(error) if isinstance(error, OptionError) else f"{key} {error}") from None
    return replace(rules, name=text, **given) if given else rules


def _read(_: str, made: Any, text: str) -> Any:
    """Parse the value of the decision `made`."""
    if text == "none" and made.reads:
        return () if made.allowed else None
    if made.flag is None:
        try:
            return decimal(text)
        except ValueError:
            raise ValueError(f"must be a number, not {shorten(text)}") from None
    if made.flag.repeated:
        return made.plain(made.flag.read(text.split("/")))
    return text if made.flag.read is None else made.flag.read(text)


def moved_to(source: T, target: T, names: Iterable[str]) -> T:
    """Return `source` with the decisions `names` taken from `target`."""
    return replace(source, **{name: getattr(target, name) for name in names})


def trimmed(protocol: Protocol, metric: str) -> Protocol:
    """Return a protocol reduced to the thresholds, area ranges and caps (maximum numbers of detections) that one metric
    needs.

    The metric is "AP" (also called "mAP"), "AP50", "AP75", or "AP_" followed by the name of an area range or level.
    This range or level becomes the last one of the protocol. Raises `OptionError` if the protocol does not have the
    metric.
    """
    whole = protocol.area_ranges[0]
    ranges = {one[0]: one for one in (*protocol.area_ranges, *protocol.levels)}
    of: dict[str, Any] = {"area_ranges": (whole,), "levels": ()}
    thresholds = protocol.iou_thresholds
    if metric in AT:
        thresholds = (AT[metric],)
    elif metric.startswith("AP_") and metric[3:] in ranges:
        one = ranges[metric[3:]]
        if one in protocol.levels:
            of["levels"] = (one,)
        else:  # the first range must be in square pixels, so another range comes second
            of["area_ranges"] = (one,) if len(one) == 3 else (whole, one)
    elif metric not in ("AP", "mAP"):
        known = ["AP", *AT, *(f"AP_{name}" for name in list(ranges)[1:])]
        raise OptionError(
            f"{shorten(metric)} is no AP of {protocol.name} that can be explained; one of: {', '.join(known)}"
        )
    changes: dict[str, Any] = {"iou_thresholds": thresholds, **of, "max_dets": protocol.max_dets[-1:]}
    return replace(protocol, per_class_metrics=False, class_levels=False, crowd_groups=(), **changes)


class Value(NamedTuple):
    """A metric under a protocol: its ``value``, and its values by category in ``classes`` (NaN for a category without
    ground truth).

    `by_threshold` has the values of the categories at each IoU threshold, shape (thresholds, categories).
    """

    value: float
    classes: NDArray[np.float64]
    by_threshold: NDArray[np.float64]


@dataclass(eq=False)
class Replay:
    """Evaluates two tables under many protocols.

    Parameters
    ----------
    ground_truth, detections : GroundTruth, Detections
        The tables to score.
    metric : str
        As for `trimmed`.
    threads : int, optional
        One per processor by default.

    Attributes
    ----------
    evaluations : int
        Number of protocols evaluated.
    notices : mapping of str to int
        Counts of unusual features of the tables, by code.
    """

    ground_truth: GroundTruth
    detections: Detections
    metric: str = "AP"
    threads: int | None = None
    evaluations: int = 0
    notices: Mapping[str, int] = field(default_factory=dict)
    _known: dict[Protocol, Value] = field(default_factory=dict)
    _simpler: dict[Protocol, Protocol] = field(default_factory=dict)
    _lean: Lean | None = None
    _whole: Whole | None = None

    def __post_init__(self) -> None:
        check_pair(self.ground_truth, self.detections)
        self.detections = self.detections.on_images_of(self.ground_truth)
        if self.threads is None and len(self.detections) < _FEW:
            self.threads = 1

    def value(self, protocol: Protocol) -> Value:
        """Return the metric under a protocol that is `trimmed` for the metric.

        Raises
        ------
        InputError
            If the metric is undefined because there are no positives.
        """
        plain = self.simplified(protocol)
        if plain not in self._known:
            self.evaluations += 1
            values = self._scored(plain).values(plain)
            value = mean_under(plain, values)
            if np.isnan(value):
                raise undefined(self.ground_truth, protocol, self.metric)
            # `detmap.evaluate` adds the values in this memory order, which affects the last bit.
            by_class = np.ascontiguousarray(np.moveaxis(values, -1, 0)).reshape(values.shape[-1], -1)
            self._known[plain] = Value(value, np.asarray(by_class.mean(axis=1)), values.mean(axis=1))
        return self._known[plain]

    def number(self, protocol: Protocol) -> float:
        """Return the metric under a protocol that is `trimmed` for the metric; NaN if undefined."""
        try:
            return self.value(protocol).value
        except InputError:
            return math.nan

    def plain(self, protocol: Protocol) -> Protocol:
        """Return the simplified protocol; equal simplified protocols give equal numbers."""
        return self.simplified(protocol)

    def forget(self) -> None:
        """Clear the cache of values; a protocol that is requested again is evaluated again."""
        self._known.clear()

    def positives(self, protocol: Protocol) -> NDArray[np.int64]:
        """Return the number of positives of each category."""
        plain = self.simplified(protocol)
        return self._scored(plain).positives(plain)

    @property
    def matchings(self) -> int:
        """Return the number of matchings."""
        return sum(one.matchings for one in (self._lean, self._whole) if one is not None)

    def _scored(self, plain: Protocol) -> Lean | Whole:
        """Return the scorer for a simplified protocol. The first call also sets `notices`."""
        first = self._lean is None and self._whole is None
        scorer: Lean | Whole
        if knows(plain):
            scorer = self._lean = self._lean or Lean(self.ground_truth, self.detections, plain, self.threads)
        else:
            scorer = self._whole = self._whole or Whole(self.ground_truth, self.detections, self.threads)
        if first:
            self.notices = scorer.notices(plain)
            if self.ground_truth.zero_ids is not None and isinstance(scorer, Lean):
                other = replace(plain, id_zero=OTHER[plain.id_zero])
                both = (mean_under(one, scorer.values(one)) for one in (plain, other))
                self.notices = {**self.notices, **effect(self.metric, plain.id_zero, *both)}
        return scorer

    def band(self, protocol: Protocol) -> tuple[float, float]:
        """Return the minimum and maximum of the metric over all orders of equal scores within a category. Without ties,
        both equal the metric. Programs with an unstable sort give a value between minimum and maximum. Detections with
        equal scores in one image are always matched in order of rows.
        """
        plain, value = self.simplified(protocol), self.value(protocol).value
        both = self._scored(plain).ends(plain)
        if both is None:
            return value, value
        ends = [float(np.mean([mean_of_defined(one) for one in values])) for values in both]
        return min(*ends, value), max(*ends, value)

    def outcomes(self, protocol: Protocol, iou: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return each detection's outcome (-1 if not scored) and overlap (NaN if unmatched) at one threshold."""
        plain = self.simplified(protocol)
        return self._scored(plain).outcomes(plain, iou)

    def simplified(self, protocol: Protocol) -> Protocol:
        """Return a protocol that gives the same numbers on these tables, with decisions that have no effect reset to
        their defaults.
        """
        if protocol not in self._simpler:
            self._simpler[protocol] = self._simplify(protocol)
        return self._simpler[protocol]

    def _simplify(self, protocol: Protocol) -> Protocol:
        if not knows(protocol):  # a decision that `Lean` does not implement may interact with any other decision
            return replace(protocol, name="")
        same: dict[str, Any] = {"name": "", "iou_type": protocol.iou_type, "result_areas": protocol.result_areas}
        flags = [flag for flag in ("crowd", "difficult") if getattr(self.ground_truth, flag).any()]
        same["left_out"] = tuple(flag for flag in flags if flag in protocol.left_out)
        same["ignore"] = tuple(flag for flag in flags if flag in protocol.ignore and flag not in protocol.left_out)
        if "crowd" not in flags or "crowd" in protocol.left_out:
            same["crowd_overlap"] = True
        if protocol.interpolation != "grid":
            same["recall_thresholds"] = (0.0,)
        boxes = protocol.iou_type == BOXES
        if boxes:
            same |= {name: _DEFAULTS[name] for name in ("dilation", "sigmas", "oks_area", "result_areas")}
        if self.ground_truth.zero_ids is None:
            same["id_zero"] = "found"
        most, largest = self._counts
        if protocol.max_per_image is not None and protocol.max_per_image >= most:
            same["max_per_image"] = None
        if protocol.max_dets[-1] >= (largest if protocol.use_categories else most):
            same["max_dets"] = (UNLIMITED,)
        ((_, low, high),) = protocol.area_ranges
        if boxes and low <= 0 and high >= 1e10:
            same |= {"area_ranges": (WHOLE,), "object_areas": "own"}
        else:
            same["area_ranges"] = (("all", low, high),)
        if not (protocol.inclusive_pixels and self._any_sizes):
            same["far_corner"] = "x+w-1"
        if self._changes_nothing(numbers=protocol.numbers):
            same["numbers"] = "float64"
        if same.get("numbers", protocol.numbers) == "float64":
            # For masks and keypoints `box_decimals` is kept, because it must raise an error even if no box changes.
            if boxes and not protocol.box_offset and self._changes_nothing(box_decimals=protocol.box_decimals):
                same["box_decimals"] = None
            if self._changes_nothing(score_decimals=protocol.score_decimals):
                same["score_decimals"] = None
                scores = self.detections.scores
                if protocol.min_score is not None and scores.size and protocol.min_score <= scores.min():
                    same["min_score"] = None
                if not self._any_ties:
                    same["ties"] = "image"
        if (
            protocol.scored_images == "detected"
            and same.get("min_score", protocol.min_score) is None
            and self._all_seen
        ):
            same["scored_images"] = "all"
        return varied(protocol, same)

    def _changes_nothing(self, **decision: Any) -> bool:
        """Return whether a decision about rounding, such as ``box_decimals=0``, leaves both tables unchanged."""
        ((name, value),) = decision.items()
        if value == _DEFAULTS[name]:
            return True
        key = (name, value)
        if key not in self._rounded:
            plain = replace(resolve("coco"), **decision)
            before = self.ground_truth, self.detections
            self._rounded[key] = all(
                np.array_equal(one.shapes[BOXES].arrays()["table"], other.shapes[BOXES].arrays()["table"])
                and np.array_equal(getattr(one, "scores", ()), getattr(other, "scores", ()))
                for one, other in zip(before, prepared(*before, plain), strict=True)
            )
        return self._rounded[key]

    @cached_property
    def _rounded(self) -> dict[Any, bool]:
        return {}

    @cached_property
    def _counts(self) -> tuple[int, int]:
        """The maximum number of detections on an image, and of detections of one category on an image."""
        images, categories = self.detections.images.codes.astype(np.int64), self.detections.categories
        cells = np.sort(images * max(categories.ids.size, 1) + categories.codes)
        starts = np.flatnonzero(np.append(True, cells[1:] != cells[:-1])[: cells.size])
        return int(np.bincount(images).max(initial=0)), int(np.diff(np.append(starts, cells.size)).max(initial=0))

    @cached_property
    def _any_sizes(self) -> bool:
        columns = self.ground_truth.shapes[BOXES], self.detections.shapes[BOXES]
        return any(isinstance(column, Boxes) and column.sizes for column in columns)

    @cached_property
    def _any_ties(self) -> bool:
        return bool(np.unique(self.detections.scores).size < self.detections.scores.size)

    @cached_property
    def _all_seen(self) -> bool:
        truth = self.ground_truth.images
        held = truth.ids[np.unique(truth.codes)]
        return bool(np.isin(held, self.detections.images.ids).all())


def undefined(ground_truth: GroundTruth, protocol: Protocol, metric: str) -> InputError:
    """Return the error for a metric that is undefined because there are no positives."""
    where = " on images with detections" if protocol.scored_images == "detected" else ""
    problem = f"has nothing to find{where} under {protocol.name}, so that {metric} is undefined"
    return InputError(problem, source=ground_truth.source)


def decided(protocol: str | Protocol, iou_type: str | None, *tables: GroundTruth | Detections) -> Protocol:
    """Return the variant of a protocol for `iou_type`, by default the geometry of the tables. The protocol may be given
    as text.
    """
    if not isinstance(protocol, str):
        return resolve(protocol, iou_type=scored_kind(protocol, iou_type, *tables))
    if iou_type is None and parse(protocol).iou_type == COCO.iou_type:
        iou_type = scored_kind(protocol.split("+")[0].strip(), None, *tables)
    return parse(protocol, iou_type)


def pair(
    source: str | Protocol,
    target: str | Protocol,
    metric: str,
    iou_type: str | None,
    *tables: GroundTruth | Detections,
) -> tuple[Protocol, Protocol]:
    """Return two protocols for the same tables, both `trimmed` for a metric."""
    both = [trimmed(decided(one, iou_type, *tables), metric) for one in (source, target)]
    if both[0].iou_type != both[1].iou_type:
        raise OptionError(
            "one protocol compares {}, the other {}: give one iou_type".format(*(one.iou_type for one in both))
        )
    return both[0], both[1]


def players(source: Protocol, target: Protocol) -> list[tuple[str, tuple[str, ...]]]:
    """Return the decisions in which two protocols differ, as groups (label, decisions), in evaluation order."""
    return grouped(source, target, {name: one.group for name, one in _DECLARED.items() if one.group})


def grouped(source: Any, target: Any, labels: Mapping[str, str]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the decisions in which two rules differ, in evaluation order, grouped by label (by default the name)."""
    declared, groups = decisions_of(type(source)), dict[str, list[str]]()
    for name in differing(source, target):
        groups.setdefault(labels.get(name, name), []).append(name)
    order = ("matching", "ranking", "curve", "mean")

    def place(item: tuple[str, list[str]]) -> tuple[bool, int]:
        made = [declared[name] for name in item[1]]
        return not any(one.reads for one in made), min(
            order.index(a) for one in made for a in one.affects if a in order
        )

    return [(label, tuple(names)) for label, names in sorted(groups.items(), key=place)]


#: Maps a decision to related decisions, which a description of the decision omits.
TACIT = {
    "interpolation": ("recall_thresholds", "epsilon"),
    "ignore": ("crowd_overlap",),
    "left_out": ("crowd_overlap",),
}


def said(rules: Any, names: Sequence[str]) -> str:
    """Describe the values of one decision, or of a group of decisions, of a protocol or convention."""
    declared = decisions_of(type(rules))
    silent = {tacit for name in names for tacit in TACIT.get(name, ())}
    told = []
    for name in names:
        if name not in silent:
            word = declared[name].words(getattr(rules, name))
            word = {"True": "yes", "False": "no", "None": "none"}.get(word, word)
            told.append(word if len(set(names) - silent) == 1 else f"{name} {word}")
    return ", ".join(told)
