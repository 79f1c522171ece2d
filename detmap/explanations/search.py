"""Search for protocols that reproduce quoted numbers: first named protocols, then variants. Estimate how many protocols
agree by chance.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.choices import UNLIMITED
from detmap.data.tables import Detections, GroundTruth
from detmap.decisions import varied
from detmap.detection.protocols import COCO, PRESETS, Protocol
from detmap.detection.scored_kinds import readable
from detmap.errors import InputError, OptionError, shorten
from detmap.explanations.quotes import Search, check_most, quoted_of, searched
from detmap.explanations.replay import AT, TACIT, Replay, Value, is_late, said, trimmed
from detmap.explanations.shared_work import Recent
from detmap.explanations.tries import Changes, Vocabulary
from detmap.explanations.vocabulary import ORDER, SMOOTH, USUAL, WIDER, ByImage, treated
from detmap.shapes.kinds import BOXES

#: Changes that are tried in addition to named protocols: in each row, the values of one decision, or of several
#: decisions that change together.
GRID: dict[str, tuple[dict[str, Any], ...]] = {
    "min_score": tuple({"min_score": cut} for cut in (0.001, 0.01, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5)),
    "max_dets": tuple({"max_dets": (cap,)} for cap in (1, 10, 20, 50, 100, 300, 500, UNLIMITED)),
    "max_per_image": tuple({"max_per_image": cap} for cap in (10, 50, 100, 300, None)),
    "crowds": (
        {"ignore": ("crowd",), "crowd_overlap": True, "left_out": ()},
        {"ignore": ("crowd", "difficult"), "crowd_overlap": False, "left_out": ()},
        {"ignore": (), "crowd_overlap": False, "left_out": ("crowd",)},
        {"ignore": ("difficult",), "crowd_overlap": False, "left_out": ("crowd",)},
        {"ignore": ("difficult",), "crowd_overlap": False, "left_out": ()},
        {"ignore": (), "crowd_overlap": False, "left_out": ("difficult",)},
        {"ignore": (), "crowd_overlap": False, "left_out": ()},
    ),
    "curve": tuple(
        {"interpolation": rule, "recall_thresholds": COCO.recall_thresholds, "epsilon": 0.0}
        for rule in ("grid", "all-point", "11-point", "101-linear", "101-linear-tail", "step", "trapezoid")
    ),
    "pixels": (
        {"inclusive_pixels": False, "far_corner": "x+w-1"},
        {"inclusive_pixels": True, "far_corner": "x+w-1"},
        {"inclusive_pixels": True, "far_corner": "x+w"},
    ),
    "iou_thresholds": tuple(
        {"iou_thresholds": at} for at in ((0.5,), (0.75,), COCO.iou_thresholds, (0.3,), (0.4,), (0.6,), (0.7,))
    ),
    "matching": ({"matching": "best"}, {"matching": "best-free"}),
    "strict": ({"strict": True}, {"strict": False}),
    "use_categories": ({"use_categories": False}, {"use_categories": True}),
    "scored_images": ({"scored_images": "detected"}, {"scored_images": "all"}),
    "box_decimals": ({"box_decimals": 0}, {"box_decimals": 1}, {"box_decimals": None}),
    "score_decimals": ({"score_decimals": 2}, {"score_decimals": 3}, {"score_decimals": None}),
    "box_offset": ({"box_offset": 1.0}, {"box_offset": -1.0}, {"box_offset": 0.0}),
    "numbers": ({"numbers": "float32"}, {"numbers": "float64"}),
    "ties": ({"ties": "file"}, {"ties": "image"}),
    "id_zero": ({"id_zero": "missed"}, {"id_zero": "found"}),
}

#: Transformed tables are cached up to `_KEPT` detections in total, but at least `_LEAST` pairs of tables.
_KEPT, _LEAST = 1_000_000, 4


def changed_to(base: Protocol, protocol: Protocol, change: Iterable[str]) -> str:
    """Describe the decisions among `change` in which a protocol differs from its base."""
    names = [one for one in change if getattr(protocol, one) != getattr(base, one)]
    silent = {tacit for one in names for tacit in TACIT.get(one, ())}
    return ", ".join(f"{one} {said(protocol, [one])}" for one in names if one not in silent)


def find_value(
    ground_truth: GroundTruth,
    detections: Detections,
    value: str | float | Mapping[str, str | float],
    metric: str = "AP",
    *,
    most: int = 10,
    threads: int | None = None,
) -> Search:
    """Find the rules that give a quoted number, or several numbers at once. Only rules that match boxes are searched.

    A single number of four digits nearly always agrees with some rules, so `Search` states how many rules are expected to
    agree by chance. Two numbers are nearly always enough to identify the rules.

    Parameters
    ----------
    ground_truth : GroundTruth
        The objects.
    detections : Detections
        The detections.
    value : str or float, or mapping of str to str or float
        The quoted number; all of its digits must agree. A number above 1 is a percentage. Several numbers are given as
        a mapping. Each name is a metric, a class, or both, such as ``{"AP": "0.437", "AP50": "0.612", "person": "0.51",
        "AP50/person": "0.7"}``.
    metric : str
        The metric, as for `detmap.explain`, of a number without a name and of numbers whose name is only a class.
    most : int
        Maximum number of candidates returned.
    threads : int, optional
        One per processor by default.

    Returns
    -------
    Search

    Raises
    ------
    OptionError
        For an unknown metric or class, or a value that is no number.
    InputError
        If there are no positives, or if a table has no boxes (`GroundTruth.kinds`).
    """
    quoted = quoted_of(value, metric)
    check_most(most)
    for table in (ground_truth, detections):
        if BOXES not in table.kinds:
            raise InputError(
                f"is for the iou_type {' and '.join(map(repr, table.kinds))}, and only rules for boxes are searched",
                source=table.source,
                remedy="read the files without iou_type, or give from_arrays boxes as well",
            )
    numbers = [_number(name, metric, ground_truth) for name in quoted]
    looked = _Looked((ground_truth, detections), numbers, threads)
    return searched(looked, list(looked.bases), quoted, most)


class Number(NamedTuple):
    """The meaning of a quoted number: a metric of all classes or, if `category` is an index, of one class."""

    metric: str
    category: int | None


def _number(name: str, metric: str, ground_truth: GroundTruth) -> Number:
    """Parse the name of a quoted number, which is a metric, a class, or both."""
    if name == metric or _is_metric(name):
        return Number(name, None)
    first, _, rest = name.partition("/")
    for of, known in ((metric, name), (first, rest)):
        at = [
            place
            for place, (key, said_as) in enumerate(
                zip(ground_truth.categories.ids.tolist(), ground_truth.categories.names, strict=True)
            )
            if known in (said_as, str(key))
        ]
        if at and _is_metric(of):
            return Number(of, at[0])
    classes = ", ".join(ground_truth.categories.names[:8])
    raise OptionError(
        f"{shorten(name)} is neither a metric (AP, AP50, AP75, AP_small, …) nor a class of the ground truth ({classes}"
        f"{', …' if len(ground_truth.categories.names) > 8 else ''}); a class's AP50 is AP50/CLASS"
    )


def _is_metric(name: str) -> bool:
    return name in ("AP", "mAP", *AT) or name.startswith("AP_")


@dataclass(frozen=True)
class _Made:
    """A `Replay` of tables after some transformations. If `cells` is not None, each image is scored separately."""

    replay: Replay
    cells: ByImage | None


class _Looked(Vocabulary):
    """The values of two tables under named protocols with changes from the grid."""

    usual = USUAL
    smooth = SMOOTH

    def __init__(self, tables: tuple[GroundTruth, Detections], numbers: Sequence[Number], threads: int | None) -> None:
        self.grid = {**GRID, **WIDER}
        self.numbers, self.threads, self._evaluated = numbers, threads, 0
        self._values: dict[Any, float] = {}
        self._last: tuple[Any, Any, Value | None] = (None, None, None)
        plain = Replay(*tables, numbers[0].metric, threads)
        self.tables = plain.ground_truth, plain.detections
        kept = _KEPT // max(len(plain.detections), 1)
        self._treated = Recent(max(kept, _LEAST))
        self._recent = Recent(max(kept // 4, _LEAST))  # fewer replays than tables, because replays also hold matches
        self._plain = _Made(plain, None)
        self.metrics = tuple(dict.fromkeys(one.metric for one in numbers))
        self.bases: dict[str, dict[str, Protocol]] = {}
        for name, one in readable(PRESETS, tables[0]).items():
            try:
                trims = {metric: trimmed(one, metric) for metric in self.metrics}
            except OptionError:
                continue
            if one.iou_type == BOXES:
                self.bases[name] = trims
        if not self.bases:
            for metric in self.metrics:
                trimmed(COCO, metric)  # raises for an unknown metric
            raise OptionError(f"no protocol has all of {', '.join(self.metrics)}")
        plain.value(self.bases[next(iter(self.bases))][self.metrics[0]])  # raises without positives
        self.bases = {name: one for name, one in self.bases.items() if not math.isnan(self.value(name, (), 0))}
        for at, number in enumerate(numbers):
            if all(math.isnan(self.value(name, (), at)) for name in self.bases):
                problem = f"has no objects of that class, so that {number.metric} of it is undefined"
                raise InputError(problem, source=tables[0].source)

    def value(self, name: str, changes: Changes, number: int) -> float:
        """Return the value of ``numbers[number]`` under a protocol with changes; NaN if it is undefined."""
        settings = self._settings(changes)
        metric, category = self.numbers[number]
        made, protocol = self._scene(name, settings, metric)
        if protocol is None or made is None:
            return math.nan
        mean = settings.get("mean", "")
        plain = made.replay.simplified(protocol)
        key = (self._way(settings), plain, mean, number)
        if key not in self._values:
            try:
                self._values[key] = self._mean(made, plain, mean, metric, category)
            except InputError:  # only images with detections are scored, and none of them has positives
                self._values[key] = math.nan
        return self._values[key]

    def plain(self, name: str, changes: Changes) -> Hashable:
        """Return a key that is equal for rules known to be equivalent on these tables."""
        settings = self._settings(changes)
        found: list[Any] = [settings.get("mean", "")]
        for metric in self.metrics:
            made, protocol = self._scene(name, settings, metric)
            found.append(made.replay.simplified(protocol) if made is not None and protocol is not None else None)
            found.append(() if made is self._plain else frozenset(self._way(settings)))
        return tuple(found)

    def place(self, changes: Changes) -> Any:
        """Return a sort key by which rules with shared computations are adjacent."""
        settings = self._settings(changes)
        return tuple(map(str, self._way(settings))), all(map(is_late, settings.keys() & Protocol.__dataclass_fields__))

    @property
    def evaluations(self) -> int:
        """Return the number of rules evaluated."""
        return self._evaluated

    def rules(self, name: str, changes: Changes) -> Protocol:
        """Return the protocol with its changes."""
        return replace(PRESETS[name], **self._decisions(self._settings(changes)))

    def words(self, name: str, changes: Changes) -> tuple[str, ...]:
        """Return the changes in words."""
        base, told = PRESETS[name], []
        for change in changes:
            settings = self._settings((change,))
            made = changed_to(base, self.rules(name, (change,)), self._decisions(settings))
            if change[0] == "recalls":
                made = f"{len(settings['recall_thresholds'])} recalls"
            told.append(made or ", ".join(f"{key} {value}" for key, value in settings.items()))
        return tuple(told)

    def _settings(self, changes: Changes) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for label, at in changes:
            made |= self.grid[label][at]
        return made

    def _decisions(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in settings.items() if name in Protocol.__dataclass_fields__}

    def _scene(self, name: str, settings: Mapping[str, Any], metric: str) -> tuple[_Made | None, Protocol | None]:
        """Return tables and protocol for a metric. If the metric is undefined, one or both are None."""
        decided = self._decisions(settings)
        of = metric
        if metric in AT:  # AP50 and AP75 have their own threshold; AP uses the protocol's thresholds
            decided.pop("iou_thresholds", None)
            if "AP" in self.metrics and "iou_thresholds" not in settings:
                base = self.bases[name]["AP"]
                of = "AP" if base.find_threshold(AT[metric]) is not None else metric
        elif metric.startswith("AP_") and "area_ranges" in decided:
            return None, None
        base = self.bases[name][of]
        return self._made(settings, base), varied(base, decided) if decided else base

    def _way(self, settings: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the transformations of the tables, as pairs of name and setting."""
        files = tuple((key, value) for key, value in settings.items() if key not in Protocol.__dataclass_fields__)
        return tuple(one for one in files if one[0] != "mean" or one[1] == "over images")

    def _made(self, settings: Mapping[str, Any], base: Protocol) -> _Made | None:
        way = self._way(settings)
        if not way:
            return self._plain

        def make() -> _Made | None:
            tables = self._tables(tuple((name, settings[name]) for name in ORDER if name in settings))
            if len(tables[0]) == 0 or len(tables[1]) == 0:
                return None
            cells = None
            if settings.get("mean") == "over images":
                cells = ByImage(tables)
                if not cells.few:
                    return None
                tables = cells.tables
            elif tables[0] is self.tables[0] and tables[1] is self.tables[1]:
                return self._plain
            return _Made(Replay(*tables, base.name, self.threads), cells)

        return self._recent.get_or(frozenset(way), make)

    def _tables(self, ways: tuple[tuple[str, str], ...]) -> tuple[GroundTruth, Detections]:
        """Return both tables after the transformations `ways`, applied in order; intermediate tables are cached."""
        if not ways:
            return self.tables
        return self._treated.get_or(ways, lambda: treated(self._tables(ways[:-1]), *ways[-1]))

    def _mean(self, made: _Made, plain: Protocol, mean: str, metric: str, category: int | None) -> float:
        """Return a metric for the class `category` or, if it is None, for all classes. `mean` names the kind of mean."""
        if self._last[0] is not made or self._last[1] != plain:
            self._last = (made, plain, made.replay.value(plain))
            made.replay.forget()  # keep the numbers, but free the per-class values
            self._evaluated += 1
        value = self._last[2]
        assert value is not None
        classes = value.classes
        at = plain.find_threshold(AT[metric]) if metric in AT and len(plain.iou_thresholds) > 1 else None
        if at is not None:
            classes = value.by_threshold[at]
        if made.cells is not None:
            return made.cells.mean(classes, category) if plain.use_categories else math.nan
        if category is not None:
            return float(classes[category]) if classes.size == self.tables[0].categories.ids.size else math.nan
        defined = ~np.isnan(classes)
        if mean == "by objects":
            weights = made.replay.positives(plain)[defined]
            return float(weights @ classes[defined] / weights.sum()) if weights.any() else float("nan")
        if mean.startswith("absent classes 0"):
            counted = defined | self._detected if mean.endswith("detected") else np.ones_like(defined)
            return float(np.nansum(classes) / counted.sum()) if classes.size == counted.size else math.nan
        return value.value if at is None else float(np.mean(classes[defined]))

    @cached_property
    def _detected(self) -> NDArray[np.bool_]:
        """Mask of the ground truth's categories that have detections."""
        return np.isin(self.tables[0].categories.ids, self.tables[1].categories.ids)
