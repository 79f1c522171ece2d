"""AP, recall and errors of slices of the objects: by size, crowding, truncation, or attributes from a file."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.detection.matches import HIT, IGNORED, MISS
from detmap.diagnostics._errors import BKG, DUPE, ERRORS, errors
from detmap.diagnostics._pairs import Rematch
from detmap.diagnostics._ranking import mean
from detmap.diagnostics._registry import Finding, Part, Rows
from detmap.errors import InputError, OptionError, one_of, shorten
from detmap.results import printable
from detmap.shapes import find

if TYPE_CHECKING:
    from detmap.diagnostics._diagnosis import Diagnosis

Ranges = Mapping[str, Sequence[float]]

_INF = float("inf")

#: Default slices by measure: the name of each slice, with its minimum and exclusive maximum.
RANGES: dict[str, dict[str, tuple[float, float]]] = {
    "area": {"small": (0, 1024), "medium": (1024, 9216), "large": (9216, _INF)},
    "relative_area": {"below 1 %": (0, 0.01), "1 to 10 %": (0.01, 0.1), "10 % or more": (0.1, _INF)},
    "aspect": {"tall": (0, 0.5), "about square": (0.5, 2), "wide": (2, _INF)},
    "crowding": {"alone": (0, 2), "2 to 5": (2, 6), "6 to 15": (6, 16), "16 or more": (16, _INF)},
    "position": {"centre": (0, 1 / 3), "between": (1 / 3, 2 / 3), "edge": (2 / 3, _INF)},
    "truncation": {"whole": (0, 1), "at the border": (1, _INF)},
}

#: The definition of each measure.
MEANING = {
    "area": "square {unit}, as area ranges see them",
    "relative_area": "the share of the image that the box covers",
    "aspect": "width over height of the box",
    "crowding": "objects to be found in the {scene}",
    "position": "how far the centre of the box lies from that of the image: 0 is there, 1 at a border",
    "truncation": "whether the box reaches a border of the image, to 1 pixel",
}

#: Measures whose default slices are made for boxes in pixels.
_OF_PIXELS = ("area", "aspect")

_NEEDS_SIZES = ("relative_area", "position", "truncation")

#: Maximum number of distinct values of an attribute.
_MOST_VALUES = 50

#: Maximum distance in pixels between a box and the border of the image for the box to count as truncated.
_BORDER = 1.0


class _Slice(NamedTuple):
    """A slice of the objects. `objects` is a mask of the objects in the slice. `detections` is a mask of the detections
    that are false positives of the slice if unmatched; None for all detections.
    """

    by: str
    name: str
    objects: NDArray[np.bool_]
    detections: NDArray[np.bool_] | None


def slices(
    diagnosis: Diagnosis,
    *,
    by: str | Iterable[str] | None = None,
    ranges: Mapping[str, Ranges] | None = None,
    attributes: str | os.PathLike[str] | Mapping[str, ArrayLike] | None = None,
) -> Finding:
    """Return AP, recall and errors of slices of the objects.

    For the metrics of a slice, objects outside of the slice are ignored, and so are detections that match them. An
    unmatched detection counts if its own measure is in the slice, as with COCO's area ranges. If only objects have the
    measure, unmatched detections count in every slice.

    Parameters
    ----------
    by : str or iterable of str, optional
        The measures to slice by: "area", "relative_area", "aspect", "crowding", "position", "truncation", or names of
        attributes. By default all available measures. Some measures need the sizes of images, and "area" and "aspect"
        need boxes in pixels.
    ranges : mapping of str to (mapping of str to (float, float)), optional
        Custom slices, such as ``{"area": {"tiny": (0, 256), "rest": (256, inf)}}``. A slice includes its first number and
        excludes its second.
    attributes : path, or mapping of str to array, optional
        A CSV file with a column ``image_id``, ``image`` (the name of a file) or ``object`` (an object's index in the
        ground truth, from 0), and a column for each attribute. Or a mapping from the name of an attribute to an array,
        with a value per image of ``ground_truth.images.ids`` or per object. Each distinct value makes a slice; empty
        values belong to no slice.

    Returns
    -------
    Finding
        `rows` has a row per slice. If the diagnosis has ``replicates``, a row has the 95 % interval of AP, the p-value
        of the difference from the AP of all objects, and the p-value corrected by Holm's method for the number of
        slices.

    Raises
    ------
    OptionError
        For unavailable measures, or invalid ranges.
    InputError
        For a file that cannot be read.
    """
    made, notes = _slices(diagnosis, by, ranges, attributes)
    rematch = Rematch.of(diagnosis.arranged, diagnosis.iou, diagnosis.threads)
    ranking, error, ap = diagnosis.ranking, errors(diagnosis), diagnosis.ap
    # Unmatched detections outside of the first area range (COCO's "all" ends at 1e10) do not count in any slice.
    nothing = diagnosis.arranged.unmatched_outside(0)
    category = diagnosis.arranged.truth.category
    whole = _bootstrap(diagnosis, diagnosis.matches.outcome, diagnosis.counted)
    rows: Rows = []
    for at, one in enumerate(made):
        diagnosis.say(f"slices: {at + 1} of {len(made)}")
        outside = nothing if one.detections is None else nothing | ~one.detections
        counted = diagnosis.counted & one.objects
        outcome, taken = rematch.match(~counted, outside)
        positives = np.bincount(category[counted], minlength=ranking.positives.size)
        own = mean(ranking.ap_of(outcome[ranking.order], positives))
        total, found = int(positives.sum()), int(np.count_nonzero(taken))
        wrong = np.bincount(error[outcome == MISS], minlength=BKG + 1)
        # A hit among all objects can be a miss in a slice: a detection of higher score may match its object, if the
        # slice ignores the object of that detection. Count the miss as a duplicate.
        wrong[DUPE] += wrong[0]
        rows.append(
            {
                "by": one.by,
                "slice": one.name,
                "objects": total,
                "AP": own,
                "difference": own - ap,
                "recall": found / total if total else float("nan"),
                "hits": int(np.count_nonzero(outcome == HIT)),
                "false positives": int(np.count_nonzero(outcome == MISS)),
                **dict(zip(ERRORS[:BKG], wrong[1:].tolist(), strict=True)),
                "missed": total - found,
                "ignored": int(np.count_nonzero(outcome == IGNORED)),
            }
        )
        if whole is not None:
            rows[-1] |= _interval(diagnosis, outcome, counted, whole)
    if whole is not None and rows:
        from detmap.diagnostics._resampling import sentence
        from detmap.statistics.tests import adjust

        notes.append(sentence(diagnosis))
        for row, p in zip(rows, adjust([row["p"] for row in rows], "holm").tolist(), strict=True):
            row["p (Holm)"] = p
    metrics = {f"AP {row['by']} {row['slice']}": row["AP"] for row in rows}
    notes += [
        f"{by}: {MEANING[by].format(scene=diagnosis.scene, unit=find(diagnosis.protocol.iou_type).unit)}"
        for by in dict.fromkeys(one.by for one in made)
        if by in MEANING
    ]
    notes.append(f"AP of all objects is {ap:.4f} at {diagnosis.at}; objects outside of a slice are ignored there")
    settings = {"by": list(dict.fromkeys(one.by for one in made))}
    return Finding("slices", settings, {"AP": ap, **metrics}, {"slices": rows}, notes)


def _bootstrap(diagnosis: Diagnosis, outcome: NDArray[np.uint8], counted: NDArray[np.bool_]) -> Any:
    """Return the bootstrap of AP; None if no interval is requested."""
    if not diagnosis.replicates:
        return None
    from detmap.diagnostics._resampling import bootstrap_of

    return bootstrap_of(diagnosis, outcome, counted)


def _interval(
    diagnosis: Diagnosis, outcome: NDArray[np.uint8], counted: NDArray[np.bool_], whole: Any
) -> dict[str, float]:
    from detmap.diagnostics._resampling import p_value

    own = _bootstrap(diagnosis, outcome, counted)
    low, high = own.interval()[0].tolist()
    return {"low": low, "high": high, "p": p_value(own, whole)}


def _slices(
    diagnosis: Diagnosis, by: str | Iterable[str] | None, ranges: Mapping[str, Ranges] | None, attributes: Any
) -> tuple[list[_Slice], list[str]]:
    """Return the requested slices, and sentences on unavailable measures and on objects without a value."""
    given = {} if attributes is None else _attributes(diagnosis, attributes)
    every = [*RANGES, *given]
    for name in ranges or {}:
        if name not in RANGES:
            raise OptionError(f"no ranges of {shorten(name)} can be given; only of: {', '.join(RANGES)}")
    sizes, notes = diagnosis.ground_truth.images.sizes, []
    missing = [] if sizes is not None and sizes.all() else list(_NEEDS_SIZES)
    pixels = find(diagnosis.protocol.iou_type).unit == "pixels"
    if by is None:
        wanted = [name for name in every if name not in missing and (pixels or name not in _OF_PIXELS)]
        if missing and diagnosis.scene == "image":
            notes.append(f"not shown: {', '.join(missing)}, as sizes of images are not known")
    else:
        wanted = [by] if isinstance(by, str) else list(by)
    made: list[_Slice] = []
    for name in wanted:
        if name not in every:
            raise OptionError(f"nothing is known of {shorten(name)}{one_of(name, every)}")
        if name in missing:
            raise OptionError(f"{name} needs the size of every image, which the ground truth does not have")
        if name in given:
            made += given[name]
            notes += _without_value(diagnosis, name, given[name])
            continue
        objects, detections = _values(diagnosis, name)
        for title, (low, high) in _checked(name, (ranges or {}).get(name, RANGES[name])).items():
            inside = [(side >= low) & (side < high) for side in (objects, detections)]
            made.append(_Slice(name, title, inside[0], inside[1]))
    return made, notes


def _checked(by: str, given: Any) -> dict[str, tuple[float, float]]:
    """Return the ranges of a measure as pairs of numbers; raise `OptionError` if they are invalid."""
    try:
        made = {str(name): (float(low), float(high)) for name, (low, high) in given.items()}
        if made and all(low < high for low, high in made.values()):
            return made
    except (TypeError, ValueError, AttributeError):
        pass
    raise OptionError(f"ranges of {by} must be like {{'small': (0, 1024)}}, low below high, not {shorten(given)}")


def _values(diagnosis: Diagnosis, by: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the measure of every object and of every detection, by position; a measure of NaN is in no slice."""
    arranged, matches = diagnosis.arranged, diagnosis.matches
    if by == "area":
        return arranged.objects.measures[:, 0], arranged.detection_areas(0, len(matches))
    if by == "crowding":
        count = np.bincount(arranged.truth.image[diagnosis.counted], minlength=matches.image_ids.size).astype(
            np.float64
        )
        return count[arranged.truth.image], count[arranged.found.image]
    made = []
    for side, order, image in (
        ("ground_truth", arranged.truth.order, arranged.truth.image),
        ("detections", arranged.found.order, arranged.found.image),
    ):
        corners = diagnosis.corners(side)[order]
        near, far = corners[:, :2], corners[:, 2:]
        with np.errstate(divide="ignore", invalid="ignore"):
            width, height = (far - near).T
            if by == "aspect":
                made.append(width / height)
                continue
            sizes = diagnosis.ground_truth.images.sizes
            assert sizes is not None
            size = sizes[image][:, ::-1].astype(np.float64)
            if by == "relative_area":
                made.append(width * height / size.prod(axis=1))
            elif by == "position":
                made.append(np.abs((near + far) / size - 1).max(axis=1))
            else:
                made.append(((near <= _BORDER) | (far >= size - _BORDER)).any(axis=1).astype(np.float64))
    return made[0], made[1]


def _without_value(diagnosis: Diagnosis, name: str, made: Sequence[_Slice]) -> list[str]:
    """Return a list with a sentence on the number of objects in no slice of an attribute; [] if there are none."""
    within = np.any([one.objects for one in made], axis=0) if made else np.zeros(diagnosis.counted.size, np.bool_)
    left = int(np.count_nonzero(diagnosis.counted & ~within))
    return [f"{printable(name)}: {left:,} objects have no value, and are in no slice"] if left else []


def _attributes(diagnosis: Diagnosis, given: Any) -> dict[str, list[_Slice]]:
    """Return the slices of each attribute by its name."""
    truth = diagnosis.ground_truth
    if isinstance(given, Mapping):
        columns = {str(name): _texts(values) for name, values in given.items()}
    else:
        columns = _read(diagnosis, os.fspath(given))
    made = {}
    for name, values in columns.items():
        if name in RANGES:
            raise OptionError(f"an attribute cannot be called {name}, which is known already")
        if values.shape not in ((truth.images.ids.size,), (len(truth),)):
            raise OptionError(
                f"the attribute {shorten(name)} has {values.shape} values where {truth.images.ids.size} images or "
                f"{len(truth)} objects are"
            )
        found = np.unique(values[values != ""]).tolist()
        if len(found) > _MOST_VALUES:
            raise OptionError(
                f"the attribute {shorten(name)} has {len(found)} different values; at most {_MOST_VALUES}"
            )
        arranged = diagnosis.arranged
        of_images = values.size == truth.images.ids.size
        own = values[arranged.truth.image if of_images else arranged.truth.order]
        of_detections = values[arranged.found.image] if of_images else None
        made[name] = [
            _Slice(name, value, own == value, None if of_detections is None else of_detections == value)
            for value in found
        ]
    return made


def _texts(values: ArrayLike) -> NDArray[Any]:
    """Return values as text; None and NaN, which mark missing values, become ""."""
    column = np.array(values, object) if isinstance(values, list | tuple) else np.asarray(values)
    missing = np.asarray(column != column) if column.dtype.kind in "fc" else np.zeros(column.shape, np.bool_)
    if column.dtype == object:
        missing = np.array([one is None or one != one for one in column.ravel().tolist()], np.bool_).reshape(
            column.shape
        )
    return np.where(missing, "", column.astype(str))


def _read(diagnosis: Diagnosis, path: str) -> dict[str, NDArray[Any]]:
    """Read a CSV file of attributes."""
    from detmap.formats.files import read_small

    try:
        table = list(csv.reader(io.StringIO(bytes(read_small(path)).decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"is not a CSV file: {error}", source=path) from None
    truth, header = diagnosis.ground_truth, [title.strip() for title in (table or [[]])[0]]
    key = next((at for at, title in enumerate(header) if title in ("image_id", "image", "object")), None)
    if key is None or len(header) < 2 or len(set(header)) < len(header) or "" in header:
        raise InputError(
            "needs a first line with image_id, image or object and the names of attributes, each once and none empty",
            source=path,
        )
    names = truth.images.names or ()
    places = {
        "image_id": lambda: {str(one): at for at, one in enumerate(truth.images.ids.tolist())},
        "image": lambda: (
            {**{str(one): at for at, one in enumerate(truth.images.ids.tolist())}}
            | {name: at for at, name in enumerate(names) if name}
        ),
        "object": lambda: {str(at): at for at in range(len(truth))},
    }[header[key]]()
    count = len(truth) if header[key] == "object" else truth.images.ids.size
    out = {title: [""] * count for at, title in enumerate(header) if at != key}
    lines: dict[int, int] = {}
    for number, row in enumerate(table[1:], 2):
        if not row:
            continue
        if len(row) != len(header):
            raise InputError(
                f"has {len(row)} values where {len(header)} are expected", source=path, record=f"line {number}"
            )
        at = places.get(row[key].strip())
        if at is None:
            what = "an object" if header[key] == "object" else "an image"
            raise InputError(
                f"is not {what} of the ground truth",
                source=path,
                record=f"line {number}",
                field=header[key],
                value=row[key],
            )
        if at in lines:
            raise InputError(
                f"has been said in line {lines[at]}",
                source=path,
                record=f"line {number}",
                field=header[key],
                value=row[key],
                remedy="leave one of them out",
            )
        lines[at] = number
        for place, (title, value) in enumerate(zip(header, row, strict=True)):
            if place != key:
                out[title][at] = value.strip()
    return {title: np.array(values, str) for title, values in out.items()}


PART = Part(
    "slices", "AP, recall and errors by size, aspect, crowding, position and attributes", slices, ("attributes",)
)
