"""What a benchmark decides: thresholds, area ranges, caps, matching rule, interpolation, order of ties; named presets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from detmap.errors import OptionError, shorten
from detmap.hits import GRIDS, INTERPOLATIONS, Interpolation
from detmap.shapes import KINDS, find

#: No cap on the detections of an image.
UNLIMITED = 2**31 - 1

#: Decisions that the first version did not know, and what it did. Where they say just that they are not written to files.
LATER: dict[str, Any] = {
    "iou_type": "bbox",
    "result_areas": "own",
    "dilation": 0.02,
    "sigmas": None,
    "oks_area": "area",
}

Sigmas = Sequence[float] | Mapping[Any, Sequence[float]]

AreaRanges = Mapping[str, Sequence[float]]


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """Every decision of a detection benchmark. Frozen; `dataclasses.replace` makes a variant.

    Attributes
    ----------
    name : str
        For tables and files.
    iou_thresholds : tuple of float
        A detection may match where its overlap is at least the threshold.
    recall_thresholds : tuple of float
        Where the precision array is read, and averaged if `interpolation` is ``"grid"``.
    area_ranges : tuple of (str, float, float)
        Name, least and largest area in square pixels, both included. The first is the whole: metrics of it bear no name.
    max_dets : tuple of int
        Caps on the detections of one category in one image, ascending. AP is taken at the largest.
    matching : {"best-free", "best"}
        COCO's rule (a detection takes the best ground truth still free) or VOC's (it looks at the best one only).
    strict : bool
        Compare with ``>`` rather than ``>=``.
    inclusive_pixels : bool
        Corners name the last pixel inside: a box from 3 to 5 is 3 pixels wide.
    interpolation : {"grid", "11-point", "101-point", "all-point", "step", "trapezoid"}
        ``"grid"`` is COCO's: the mean over IoU thresholds, recall thresholds and categories at once. With any other each
        class has an AP of its own (see `detmap.Hits.average_precision`) and means are taken over those.
    ignore : tuple of {"crowd", "difficult"}
        Flags that make ground truth neither required nor wrong to find.
    crowd_overlap : bool
        Overlap with a crowd is taken over the detection's own area, and a crowd matches any number of detections.
    ties : {"image", "file"}
        The order of equal scores: by image id and then input order within it (COCO), or input order alone (VOC).
    epsilon : float
        Added to the number of detections where precision is taken.
    use_categories : bool
        False: one class for all, boxes are all that counts.
    per_class_metrics : bool
        Name the metrics as VOC does: ``mAP`` and an AP per class.
    iou_type : str
        The kind of shape whose overlap counts: "bbox", "segm" (masks), "keypoints", "boundary" (masks and their contours),
        or one given to `detmap.shapes.register`.
    result_areas : {"own", "shape"}
        What area ranges look at of a mask or pose that was detected: the area of its own box where it has one, as
        pycocotools does, or always that of its shape.
    dilation : float
        Of "boundary": how far from the contour a boundary reaches, as a share of the image's diagonal.
    sigmas : tuple of float, or of (str, tuple of float), or None
        Of "keypoints": how far annotators disagree on each point, for all categories or for each by its id or name. None:
        COCO's 17.
    oks_area : {"area", "bbox*0.53"}
        Of "keypoints": the area of an object is the annotation's, or this share of its box's.
    """

    name: str
    iou_thresholds: tuple[float, ...]
    recall_thresholds: tuple[float, ...] = tuple(GRIDS["101-point"].tolist())
    area_ranges: tuple[tuple[str, float, float], ...] = (("all", 0.0, 1e10),)
    max_dets: tuple[int, ...] = (UNLIMITED,)
    matching: Literal["best-free", "best"] = "best-free"
    strict: bool = False
    inclusive_pixels: bool = False
    interpolation: Interpolation | Literal["grid"] = "grid"
    ignore: tuple[str, ...] = ("crowd",)
    crowd_overlap: bool = True
    ties: Literal["image", "file"] = "image"
    epsilon: float = float(np.spacing(1))
    use_categories: bool = True
    per_class_metrics: bool = False
    iou_type: str = "bbox"
    result_areas: Literal["own", "shape"] = "own"
    dilation: float = 0.02
    sigmas: tuple[Any, ...] | None = None
    oks_area: Literal["area", "bbox*0.53"] = "area"

    def __post_init__(self) -> None:
        try:
            plain: dict[str, tuple[Any, ...]] = {
                "iou_thresholds": tuple(map(float, self.iou_thresholds)),
                "recall_thresholds": tuple(map(float, self.recall_thresholds)),
                "area_ranges": tuple((str(name), float(low), float(high)) for name, low, high in self.area_ranges),
                "max_dets": tuple(self.max_dets),
                "ignore": tuple(self.ignore),
            }
        except (TypeError, ValueError) as error:
            raise OptionError(f"cannot read the protocol: {error}") from None
        for field, numbers in plain.items():
            object.__setattr__(self, field, numbers)
        for name, values in (("iou_thresholds", self.iou_thresholds), ("recall_thresholds", self.recall_thresholds)):
            if not values or not all(math.isfinite(value) for value in values):
                raise OptionError(f"{name} must be one or more finite numbers, not {values!r}")
        if len(set(self.iou_thresholds)) != len(self.iou_thresholds):
            raise OptionError("iou_thresholds repeat a value")
        if not self.area_ranges:
            raise OptionError("at least one area range is needed; the first is the whole")
        for name, low, high in self.area_ranges:
            if not low <= high:
                raise OptionError(f"area range {name!r} must be low:high with low <= high, not {low}:{high}")
            if not name or name.isdigit():
                raise OptionError(f"an area range cannot be called {name!r}: caps give metrics such names")
        if len({name for name, _, _ in self.area_ranges}) != len(self.area_ranges):
            raise OptionError("two area ranges have one name")
        integers = all(isinstance(m, int | np.integer) and not isinstance(m, bool) for m in self.max_dets)
        if not self.max_dets or not integers or not all(1 <= m <= UNLIMITED for m in self.max_dets):
            raise OptionError(f"max_dets must be positive integers up to {UNLIMITED}, not {list(self.max_dets)!r}")
        object.__setattr__(self, "max_dets", tuple(map(int, self.max_dets)))
        if not math.isfinite(self.epsilon):
            raise OptionError(f"epsilon must be a finite number, not {self.epsilon!r}")
        if list(self.max_dets) != sorted(set(self.max_dets)):
            raise OptionError("max_dets must ascend without repeats")
        object.__setattr__(self, "sigmas", _sigmas(self.sigmas))
        if not isinstance(self.dilation, int | float | np.number) or not 0 < self.dilation < math.inf:
            raise OptionError(f"dilation must be a positive number, not {self.dilation!r}")
        object.__setattr__(self, "dilation", float(self.dilation))
        choices: tuple[tuple[str, object, tuple[str, ...]], ...] = (
            ("result_areas", self.result_areas, ("own", "shape")),
            ("oks_area", self.oks_area, ("area", "bbox*0.53")),
            ("matching", self.matching, ("best-free", "best")),
            ("interpolation", self.interpolation, ("grid", *INTERPOLATIONS)),
            ("ties", self.ties, ("image", "file")),
            ("iou_type", self.iou_type, tuple(KINDS)),
            *(("ignore", flag, ("crowd", "difficult")) for flag in self.ignore),
        )
        for name, value, allowed in choices:
            if value not in allowed:
                raise OptionError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")

    def find_threshold(self, iou: float) -> int | None:
        """Return which threshold is `iou`, but for the rounding of one that was computed; None if there is none."""
        distance = np.abs(np.array(self.iou_thresholds) - iou)
        nearest = int(np.argmin(distance))
        return nearest if distance[nearest] < 1e-9 else None

    def to_dict(self) -> dict[str, Any]:
        """Return every decision as plain lists, numbers and strings; no cap is None."""
        out = self.decisions()
        for name, value in out.items():
            if isinstance(value, tuple):
                out[name] = _listed(value)
        out["max_dets"] = [None if m == UNLIMITED else m for m in self.max_dets]
        return out

    def decisions(self) -> dict[str, Any]:
        """Return every decision by name, but for those that version 0.1.0 did not know where they are its own."""
        out = {name: getattr(self, name) for name in self.__dataclass_fields__}
        for name, value in LATER.items():
            if out[name] == value:
                del out[name]
        return out


def _listed(value: Any) -> Any:
    return [_listed(item) for item in value] if isinstance(value, tuple) else value


def _sigmas(given: Any) -> Any:
    """Return sigmas as tuples.

    Raises
    ------
    OptionError
        Where they are not positive numbers.
    """
    if given is None:
        return None
    pairs = isinstance(given, Mapping) or (
        isinstance(given, list | tuple) and bool(given) and isinstance(given[0], list | tuple)
    )
    try:
        if pairs:
            listed = given.items() if isinstance(given, Mapping) else given
            made: Any = tuple((str(key), tuple(map(float, numbers))) for key, numbers in listed)
        else:
            made = tuple(map(float, given))
    except (TypeError, ValueError):
        made = ()
    numbers = [number for _, own in made for number in own] if pairs else list(made)
    if (
        not numbers
        or not all(0 < number < math.inf for number in numbers)
        or (pairs and not all(own for _, own in made))
    ):
        raise OptionError(f"sigmas must be positive numbers, or those of each category, not {shorten(given)}")
    return made


COCO = Protocol(
    name="coco",
    iou_thresholds=tuple(np.linspace(0.5, 0.95, 10).tolist()),
    area_ranges=(("all", 0.0, 1e10), ("small", 0.0, 1024.0), ("medium", 1024.0, 9216.0), ("large", 9216.0, 1e10)),
    max_dets=(1, 10, 100),
)

VOC2007 = Protocol(
    name="voc2007",
    iou_thresholds=(0.5,),
    recall_thresholds=tuple(GRIDS["11-point"].tolist()),
    matching="best",
    inclusive_pixels=True,
    interpolation="11-point",
    ignore=("difficult", "crowd"),
    crowd_overlap=False,
    ties="file",
    epsilon=0.0,
    per_class_metrics=True,
)

VOC2012 = replace(VOC2007, name="voc2012", recall_thresholds=COCO.recall_thresholds, interpolation="all-point")

PRESETS = {protocol.name: protocol for protocol in (COCO, VOC2007, VOC2012)}


def parse_thresholds(spec: str | float | Iterable[float]) -> tuple[float, ...]:
    """Return thresholds from ``"start:stop:step"``, ``"a,b,c"``, a number, or numbers.

    A range includes its stop and is laid out by `numpy.linspace`, as pycocotools' is, so that ``"0.5:0.95:0.05"`` has
    COCO's very bits.

    Raises
    ------
    OptionError
        Where the text is neither.
    """
    if isinstance(spec, int | float | np.integer | np.floating):
        return (float(spec),)
    if not isinstance(spec, str):
        if isinstance(spec, bytes):
            raise OptionError(f"thresholds must be numbers or text, not {spec!r}")
        if isinstance(spec, np.ma.MaskedArray) and np.ma.getmaskarray(spec).any():
            raise OptionError("thresholds must not be masked")
        return tuple(float(value) for value in spec)
    try:
        if ":" not in spec:
            return tuple(float(part) for part in spec.split(","))
        start, stop, step = (float(part) for part in spec.split(":"))
        count = round((stop - start) / step) + 1
    except (ValueError, ZeroDivisionError, OverflowError):
        raise OptionError(f"thresholds must be start:stop:step or a,b,c, not {spec!r}") from None
    if not 1 <= count <= 10_000 or abs(start + (count - 1) * step - stop) > 1e-9:
        raise OptionError(f"{spec!r} does not reach its stop in whole steps")
    return tuple(np.linspace(start, stop, count).tolist())


def resolve(
    protocol: str | Protocol,
    *,
    iou_thresholds: str | float | Iterable[float] | None = None,
    recall_thresholds: str | float | Iterable[float] | None = None,
    area_ranges: AreaRanges | None = None,
    max_dets: int | Iterable[int | None] | None = None,
    use_categories: bool = True,
    iou_type: str | None = None,
    result_areas: Literal["own", "shape"] | None = None,
    dilation: float | None = None,
    sigmas: Sigmas | None = None,
    oks_area: Literal["area", "bbox*0.53"] | None = None,
) -> Protocol:
    """Return a preset, or a protocol, with the decisions that are not None replaced.

    Parameters
    ----------
    protocol : str or Protocol
        A name of `PRESETS`, or the protocol itself.
    iou_thresholds, recall_thresholds : str or float or iterable of float, optional
        See `parse_thresholds`.
    area_ranges : mapping of str to (float, float), optional
        Name to least and largest area; the first is the whole.
    max_dets : int or iterable of int or None, optional
        Caps in any order; None among them is no cap.
    use_categories : bool
        False makes one class of all.
    iou_type : str, optional
        The kind of shape. Of a preset it also replaces what COCO decides otherwise for that kind: poses have no area range
        "small", and a cap of 20.
    result_areas, dilation, sigmas, oks_area
        See `Protocol`; `sigmas` may be a mapping of category to numbers.

    Raises
    ------
    OptionError
        For an unknown name or a value that cannot be.
    """
    if not isinstance(protocol, str | Protocol):
        raise OptionError(f"protocol must be a name or a Protocol, not {type(protocol).__name__}")
    named = isinstance(protocol, str)
    if isinstance(protocol, str):
        if protocol not in PRESETS:
            raise OptionError(f"unknown protocol {protocol!r}; one of: {', '.join(PRESETS)}")
        protocol = PRESETS[protocol]
    changes: dict[str, Any] = {}
    if iou_type is not None and iou_type != protocol.iou_type:
        kind = find(iou_type)
        changes = {**(kind.decisions if named else {}), "iou_type": kind.name}
    decided = {"result_areas": result_areas, "dilation": dilation, "sigmas": sigmas, "oks_area": oks_area}
    changes.update((name, value) for name, value in decided.items() if value is not None)
    try:
        if iou_thresholds is not None:
            changes["iou_thresholds"] = parse_thresholds(iou_thresholds)
        if recall_thresholds is not None:
            changes["recall_thresholds"] = parse_thresholds(recall_thresholds)
        if area_ranges is not None:
            changes["area_ranges"] = tuple((str(k), float(low), float(high)) for k, (low, high) in area_ranges.items())
        if max_dets is not None:
            caps = [max_dets] if isinstance(max_dets, int | np.integer) else list(max_dets)
            changes["max_dets"] = tuple(sorted({UNLIMITED if cap is None else cap for cap in caps}))
    except (TypeError, ValueError, AttributeError) as error:
        if isinstance(error, OptionError):
            raise
        raise OptionError(f"cannot read the option: {error}") from None
    if not use_categories:
        changes["use_categories"] = False
    return replace(protocol, **changes) if changes else protocol
