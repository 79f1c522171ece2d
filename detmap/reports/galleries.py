"""Galleries of images with hits, false positives and missed objects drawn on them, and the filters of galleries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.detection.matches import HIT, IGNORED
from detmap.diagnostics import Confusion
from detmap.diagnostics.tide import Tide
from detmap.errors import many
from detmap.reports.pictures import Notes, Pictures, Shapes, Thumbnail, picture
from detmap.results import printable
from detmap.shapes import find

if TYPE_CHECKING:
    from detmap.diagnostics import Diagnosis

#: Maximum number of images on a page with thumbnails, and on a page with outlines only.
MOST, MOST_BARE = 200, 60

#: Maximum total size in bytes of the thumbnails on a page, and of the outlines on a page.
_PIXELS, _OUTLINES = 7_500_000, 1_200_000

#: Desired number of example images of each error, each pair of confused classes, and each class.
_EXAMPLES = (12, 1, 3)

#: Maximum number of errors, of pairs and of classes with examples; the most frequent are preferred.
_KEYS = 1000

#: Maximum number of hits, and of false positives, drawn on an image; the highest-scoring detections are drawn.
_BOXES = 60

#: Short names of the errors.
IN_SHORT = {
    "Cls": "wrong class",
    "Loc": "badly placed",
    "Both": "class and place",
    "Dupe": "found twice",
    "Bkg": "background",
    "Miss": "missed",
}

#: Size classes by the area of the box in pixels.
_SIZES = (("s", "under 32²", 0.0), ("m", "32² to 96²", 32.0**2), ("l", "over 96²", 96.0**2))

#: Longer side in pixels of a drawing without a thumbnail, and the maximum ratio of its sides.
_SIDE, _FLATTEST = 440, 6.0

#: Height of a lane of a timeline, and minimum length of a bar, in pixels.
_LANE, _THIN = 16, 3.0


@dataclass(frozen=True)
class Gallery:
    """A gallery of pictures."""

    #: Pictures made by `detmap.reports.pictures.picture`.
    pictures: list[dict[str, Any]]
    #: Styles of marks with their meanings.
    legend: list[tuple[str, str]]
    #: Notes on what is shown, and on what could not be shown.
    notes: list[str] = field(default_factory=list)
    #: Choices of the filters ``errors``, ``classes``, ``found`` and ``sizes``, each as (value, name); None without filters.
    filters: dict[str, list[tuple[Any, str]]] | None = None
    kind: str = "gallery"

    @property
    def filtered(self) -> bool:
        """Whether the section's filters apply to the gallery."""
        return self.filters is not None


class Errors(NamedTuple):
    """The results of a diagnosis per detection: TIDE errors and the confusion matrix."""

    tide: Tide
    confusion: Confusion

    def cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return row, column and image of all off-diagonal entries of the confusion matrix."""
        rows, columns, images = self.confusion.entries
        wrong = rows != columns
        return rows[wrong], columns[wrong], images[wrong]


def images(
    diagnosis: Diagnosis, errors: Errors, worst: Sequence[Mapping[str, Any]], pictures: Pictures | None, share: int
) -> Gallery:
    """Return a gallery of the worst images and of examples of each error, class and confusion. The page's limits on
    images and bytes are divided by `share`, the number of galleries. `worst` has the rows of the diagnosis's part
    ``images``. Without `pictures`, only outlines are drawn.
    """
    most = max((MOST_BARE if pictures is None else MOST) // share, 1)
    costs = {row["image_id"]: float(row["dAP"]) for row in worst}
    ids = diagnosis.matches.image_ids.tolist()
    place = {identity: at for at, identity in enumerate(ids)}
    shapes, notes, outlines = Shapes(diagnosis), Notes(), 0
    unit = find(diagnosis.protocol.iou_type).unit
    made: list[dict[str, Any]] = []
    of_image: dict[int, list[str]] = {}
    for row, column, image in zip(*(one.tolist() for one in errors.cells()), strict=True):
        of_image.setdefault(image, []).append(f"{row}-{column}")
    for at in _chosen(diagnosis, errors, [place[one] for one in costs], most):
        name = str(diagnosis.image_name(at))
        shown = None
        if pictures is not None and notes.bytes <= _PIXELS / share:
            shown = notes.counted(pictures.find(name))
        marks, corners = _marks(shapes, errors, at, 1.0 if shown is None else shown.grain)
        outlines += sum(len(mark["path"]) + 150 for mark in marks)
        if outlines > _OUTLINES / share and made:
            break
        if shown is None:
            shown = _timeline(marks, corners) if unit == "seconds" else _bare(diagnosis, at, corners)
        cells, up = dict.fromkeys(of_image.get(at, ())), unit == "metres"
        made.append(picture(name, shown, marks, _said(marks, costs.get(ids[at])), cells, up))
    legend = [("hit", "found"), ("wrong", "false positive"), ("missed", "missed")]
    what = f"{many(len(made), diagnosis.scene)}: those that cost most AP, then examples of each error, class and confusion."
    told = [f"{what} Detections of scores of {diagnosis.score:.3g} or more; errors at {diagnosis.at}."]
    if pictures is None and diagnosis.scene == "image" and unit == "pixels":
        told.append("Outlines alone: --images names the folder of the images.")
    return Gallery(made, legend, [*told, *notes.said()], _filters(diagnosis, made))


def suspects(diagnosis: Diagnosis, rows: Sequence[Mapping[str, Any]], pictures: Pictures) -> Gallery:
    """Return a gallery of suspicious labels with their surroundings; `rows` are from the diagnosis's part ``suspects``."""
    made, notes, shapes = [], Notes(), Shapes(diagnosis)
    for row in rows:
        drawn = [("ground_truth", row[name], "missed", "label") for name in ("object", "other object")]
        drawn.append(("detections", row["detection"], "wrong", "detection"))
        drawn = [one for one in drawn if one[1] >= 0]
        ends = np.concatenate([shapes.points(side, at) for side, at, _, _ in drawn])
        around = (*ends.min(axis=0).tolist(), *ends.max(axis=0).tolist())
        shown = notes.counted(pictures.find(row["image"]), around)
        if shown is None:
            continue
        marks = [shapes.mark(side, at, style, word, shown.grain) for side, at, style, word in drawn]
        made.append(picture(row["image"], shown, marks, row["reason"]))
    return Gallery(made, [("missed", "label"), ("wrong", "detection")], notes.said())


def _chosen(diagnosis: Diagnosis, errors: Errors, worst: Sequence[int], most: int) -> list[int]:
    """Return indices of up to `most` images: first the worst images, then examples of errors, confusions and classes."""
    matches, truth = diagnosis.matches, diagnosis.arranged.truth
    shown = np.flatnonzero((errors.tide.error > 0) & (matches.score >= diagnosis.score))
    lost = diagnosis.places[errors.tide.missed]
    image = np.concatenate((matches.image[shown], truth.image[lost]))
    category = np.concatenate((matches.category[shown], truth.category[lost]))
    error = np.concatenate((errors.tide.error[shown], np.full(lost.size, 6)))
    rows, columns, images = errors.cells()
    pair = rows * (len(diagnosis.categories) + 1) + columns
    chosen = dict.fromkeys(worst[: most // 2])
    kinds: list[tuple[NDArray[Any], NDArray[Any]]] = [(error, image), (pair, images), (category, image)]
    for (key, of), enough in zip(kinds, _EXAMPLES, strict=True):
        for at in _examples(key, of, enough, set(chosen)):
            if len(chosen) == most:
                break
            chosen[at] = None
    for at in worst:
        if len(chosen) < most:
            chosen[at] = None
    rank = {at: place for place, at in enumerate(worst)}
    return sorted(chosen, key=lambda at: rank.get(at, len(rank)))


def _examples(key: NDArray[Any], images: NDArray[Any], enough: int, there: set[int]) -> Iterator[int]:
    """Yield images until each value of `key` has `enough` examples. Frequent values, and images with many values, come
    first.
    """
    values, code, counts = np.unique(key, return_inverse=True, return_counts=True)
    both = np.unique(np.column_stack((code, images)), axis=0)
    holds = Counter[int](both[:, 1].tolist())
    on: dict[int, list[int]] = {}
    of: dict[int, list[int]] = {}
    for k, at in both.tolist():
        on.setdefault(k, []).append(at)
        of.setdefault(at, []).append(k)
    had = Counter[int](k for at in there for k in of.get(at, ()))
    for k in np.argsort(-counts[: values.size], kind="stable")[:_KEYS].tolist():
        for at in sorted(on[k], key=lambda one: -holds[one])[: enough + len(there)]:
            if had[k] >= enough:
                break
            if at not in there:
                there.add(at)
                had.update(of[at])
                yield at


def _marks(shapes: Shapes, errors: Errors, at: int, grain: float) -> tuple[list[dict[str, Any]], NDArray[np.float64]]:
    """Return the marks of an image and the corners of each mark. Marks are the missed objects, and the detections (hits
    and false positives) with at least the diagnosis's score.
    """
    diagnosis = shapes.diagnosis
    matches, names, tide = diagnosis.matches, diagnosis.categories, errors.tide
    assert matches.other_category is not None
    none = len(names)
    here = np.flatnonzero((matches.image == at) & (matches.score >= diagnosis.score) & (matches.outcome != IGNORED))
    here = here[np.argsort(-matches.score[here], kind="stable")]
    hits, wrong = (here[(matches.outcome[here] == HIT) == hit][:_BOXES].tolist() for hit in (True, False))
    marks: list[dict[str, Any]] = []
    corners: list[NDArray[np.float64]] = []
    for row in [*hits, *wrong]:
        k, code, score = int(matches.category[row]), int(tide.error[row]), float(matches.score[row])
        error = _ERRORS[code]
        of = int(matches.other_category[row]) if error in ("Cls", "Both") else none if error == "Bkg" else k
        also = f" ({names[of]})" if error in ("Cls", "Both") else ""
        label = f"{_WORDS.get(error, error)}: {names[k]} {score:.3f}{also}"
        facts = {"e": error, "o": of, "f": k, "s": f"{score:.4g}"}
        detection = int(matches.detection[row])
        corners.append(shapes.corners["detections"][detection])
        size = _size(corners[-1])
        style = "hit" if error == "hit" else "wrong"
        marks.append(shapes.mark("detections", detection, style, label, grain, **facts, z=size))
    taken = set(matches.ground_truth[here[matches.outcome[here] == HIT]].tolist())
    codes, places = diagnosis.ground_truth.images.codes, diagnosis.places
    own = np.flatnonzero((codes == at) & (places >= 0))
    lost = set(tide.missed.tolist())
    for row in own[diagnosis.counted[places[own]]].tolist():
        if row not in taken:
            k = int(diagnosis.arranged.truth.category[places[row]])
            facts = {"e": "Miss" if row in lost else "", "o": k, "f": none}
            corners.append(shapes.corners["ground_truth"][row])
            size = _size(corners[-1])
            marks.append(shapes.mark("ground_truth", row, "missed", f"missed: {names[k]}", grain, **facts, z=size))
    return marks, np.array(corners).reshape(-1, 4)


#: Name of the error for each code in `Tide.error`; "hit" for code 0, no error.
_ERRORS = ("hit", *IN_SHORT)
_WORDS = {"hit": "found"}


def _size(corners: NDArray[np.float64]) -> str:
    area = float(np.prod(np.maximum(corners[2:] - corners[:2], 0)))
    return next(name for name, _, least in reversed(_SIZES) if area >= least)


def _said(marks: Sequence[Mapping[str, Any]], cost: float | None) -> str:
    """Return the numbers of hits, misses and false positives on an image as text, with the cost in AP."""
    style, error = Counter(mark["style"] for mark in marks), Counter(mark["facts"]["e"] for mark in marks)
    said = f"found {style['hit']}, missed {style['missed']}, false positives {style['wrong']}"
    kinds = ", ".join(f"{error[name]} {name}" for name in _ERRORS[1:6] if error[name])
    said += f" ({kinds})" if kinds else ""
    return said if cost is None else f"costs {cost:.4f} AP; {said}"


def _timeline(marks: list[dict[str, Any]], corners: NDArray[np.float64]) -> Thumbnail:
    """Draw segments of time as bars, with overlapping bars on different lanes. Return a blank thumbnail."""
    first, last = (float(corners[:, 0].min()), float(corners[:, 2].max())) if marks else (0.0, 1.0)
    scale = _SIDE / max(last - first, 1e-9)
    lanes: list[list[tuple[float, float]]] = []
    for mark, (start, _, end, _) in zip(marks, corners.tolist(), strict=True):
        left, right = (start - first) * scale, max((end - first) * scale, (start - first) * scale + _THIN)
        free = (k for k, lane in enumerate(lanes) if all(right < a or left > b for a, b in lane))
        at = next(free, len(lanes))
        if at == len(lanes):
            lanes.append([])
        lanes[at].append((left, right))
        top = at * _LANE + 3
        mark["path"] = f"M{left:.1f} {top}H{right:.1f}V{top + _LANE - 6}H{left:.1f}Z"
        mark["label"] += f", {start:g} to {end:g} s"
    height = max(len(lanes), 1) * _LANE
    return Thumbnail("", (_SIDE, height), (-1, 0, _SIDE + 2, height))


def _bare(diagnosis: Diagnosis, at: int, corners: NDArray[np.float64]) -> Thumbnail:
    """Return a blank thumbnail with the shape of the image or, if its size is unknown, of the area with marks."""
    sizes = diagnosis.ground_truth.images.sizes
    height, width = (0.0, 0.0) if sizes is None else sizes[at].tolist()
    x = y = 0.0
    if not (height > 0 and width > 0):
        corners = corners[np.isfinite(corners).all(axis=1)]
        if corners.size:
            x, y = corners[:, :2].min(axis=0).tolist()
            width, height = (corners[:, 2:].max(axis=0) - (x, y)).tolist()
    width, height = max(width, 1e-3), max(height, 1e-3)
    flat = min(max(height / width, 1 / _FLATTEST), _FLATTEST)
    side = _SIDE / max(flat, 1.0)
    return Thumbnail(
        "", (round(side), round(side * flat)), (round(x, 1), round(y, 1), round(width, 3), round(height, 3))
    )


def _filters(diagnosis: Diagnosis, made: Sequence[Mapping[str, Any]]) -> dict[str, list[tuple[Any, str]]]:
    """Return the filters of a gallery: the occurring errors, classes and sizes."""
    facts = [mark["facts"] for one in made for mark in one["marks"]]
    in_pixels = find(diagnosis.protocol.iou_type).unit == "pixels"
    there = {name: {one.get(name) for one in facts} for name in ("e", "o", "f", "z")}
    cells = {int(end) for one in made for cell in one["cells"].split() for end in cell.split("-")}
    names = [*map(printable, diagnosis.categories)]
    errors = [
        (name, "found" if name == "hit" else f"{name}, {IN_SHORT[name]}") for name in _ERRORS if name in there["e"]
    ]
    known = sorted({k for k in there["o"] | there["f"] | cells if k is not None and k < len(names)})
    classes = sorted(((k, names[k]) for k in known), key=lambda one: one[1].casefold())
    return {
        "errors": errors,
        "classes": [*classes, (len(names), "(nothing)")],
        "found": [*classes, (len(names), "(not found)")],
        "sizes": [(name, text) for name, text, _ in _SIZES if name in there["z"]] if in_pixels else [],
    }
