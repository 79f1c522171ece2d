"""Thumbnails of images with shapes drawn on them: boxes, outlines of masks, points of poses (extra ``images``)."""

from __future__ import annotations

import base64
import io
import math
import os
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.detection.matches import HIT, MISS
from detmap.errors import MissingDependencyError, OptionError, shorten
from detmap.results import printable
from detmap.shapes import Drawing, find

if TYPE_CHECKING:
    from detmap.diagnostics import Diagnosis

#: The longer side of a thumbnail, and how well it is kept.
_SIDE, _QUALITY = 480, 70

#: What a name may lack, as an id of VOC does.
_SUFFIXES = ("", ".jpg", ".jpeg", ".png", ".JPG", ".JPEG", ".PNG", ".webp", ".bmp")

#: The radius of a point of a pose, in pixels of the thumbnail.
_RADIUS = 2.5

#: So many boxes of a kind are drawn on an image: those of the best scores.
_BOXES = 60


@dataclass(frozen=True)
class Gallery:
    """Pictures of a page."""

    #: Of each ``name``, ``uri``, ``size`` (of the thumbnail), ``view`` (the part of the image that it shows: x, y,
    #: width, height), ``says``, and ``marks``, each with a ``path``, a ``style``, a ``shape`` ("dots" or nothing) and a
    #: ``label``.
    pictures: list[dict[str, Any]]
    #: What the styles of the marks stand for.
    legend: list[tuple[str, str]]
    #: What is shown, and what could not be.
    notes: list[str] = field(default_factory=list)
    kind: str = "gallery"


class Pictures:
    """The images in a folder.

    Raises
    ------
    OptionError
        Where it is none.
    MissingDependencyError
        Without Pillow.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise OptionError(f"the images must lie in a folder, and {shorten(os.fspath(folder))} is none")
        try:
            import PIL.Image  # noqa: F401
        except ImportError:
            raise MissingDependencyError("pillow", "images", "showing images") from None

    def find(self, name: str) -> Path | None:
        """Return the file of an image, None where there is none; a name never leads out of the folder."""
        given = PurePosixPath(name.replace("\\", "/"))
        tries = [PurePosixPath(given.name)]
        if not given.is_absolute() and ".." not in given.parts:
            tries.insert(0, given)
        for one in tries:
            for suffix in _SUFFIXES:
                try:
                    path = self.folder / f"{one}{suffix}"
                    if path.is_file():
                        return path
                except (OSError, ValueError):  # too long a name, or one that no file can have
                    continue
        return None

    def of(self, diagnosis: Diagnosis, rows: Sequence[Mapping[str, Any]]) -> Gallery:
        """Return pictures of the images of some rows, which have ``image`` and ``image_id``."""
        made, notes = [], _Notes()
        for row in rows:
            thumbnail = notes.counted(self.find(str(row["image"])))
            if thumbnail is None:
                continue
            marks = _marks(diagnosis, row["image_id"], thumbnail.grain)
            count = Counter(mark["style"] for mark in marks)
            says = f"costs {row['dAP']:.4f} AP; found {count['hit']}, missed {count['missed']}, "
            says += f"false positives {count['wrong']}"
            made.append(_picture(str(row["image"]), thumbnail, marks, says))
        legend = [("hit", "found"), ("wrong", "false positive"), ("missed", "missed")]
        return Gallery(made, legend, [f"Detections of scores of {diagnosis.score:.3g} or more.", *notes.said()])

    def of_suspects(self, diagnosis: Diagnosis, rows: Sequence[Mapping[str, Any]]) -> Gallery:
        """Return pictures of suspicious labels, each with what is around it; `rows` are those of the part ``suspects``."""
        made, notes = [], _Notes()
        for row in rows:
            shown = [("ground_truth", row[name], "missed", "label") for name in ("object", "other object")]
            shown.append(("detections", row["detection"], "wrong", "detection"))
            shown = [one for one in shown if one[1] >= 0]
            ends = np.concatenate([_corners(diagnosis, side, at) for side, at, _, _ in shown])
            around = (*ends.min(axis=0).tolist(), *ends.max(axis=0).tolist())
            thumbnail = notes.counted(self.find(row["image"]), around)
            if thumbnail is None:
                continue
            marks = [_mark(diagnosis, side, at, style, word, thumbnail.grain) for side, at, style, word in shown]
            made.append(_picture(row["image"], thumbnail, marks, row["reason"]))
        return Gallery(made, [("missed", "label"), ("wrong", "detection")], notes.said())


class _Notes:
    """Counts of what could not be shown."""

    def __init__(self) -> None:
        self.absent = self.broken = 0

    def counted(self, path: Path | None, box: tuple[float, ...] | None = None) -> _Thumbnail | None:
        """Return a thumbnail of a file, or of what is around a box; None where there is none or it cannot be read."""
        if path is None:
            self.absent += 1
            return None
        made = _thumbnail(path, box)
        self.broken += made is None
        return made

    def said(self) -> list[str]:
        """Return what could not be shown, in sentences."""
        said = [f"{self.absent:,} of these images are not in the folder of images."] if self.absent else []
        return said + ([f"{self.broken:,} of these images cannot be read."] if self.broken else [])


class _Thumbnail(NamedTuple):
    """A small copy of a part of an image as an address of data, its size, and the part: x, y, width, height."""

    uri: str
    size: tuple[int, int]
    view: tuple[int, int, int, int]

    @property
    def grain(self) -> float:
        """How many pixels of the image a pixel of the thumbnail shows."""
        return max(self.view[2] / max(self.size[0], 1), 1.0)


def _thumbnail(path: Path, box: tuple[float, ...] | None = None) -> _Thumbnail | None:
    """Return a small copy of an image, or of what is around a box; None where it cannot be read."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as image:
                width, height = image.size
                view = (0, 0, width, height) if box is None else _around(box, width, height)
                if box is None:
                    image.draft("RGB", (_SIDE, _SIDE))
                    small = image.convert("RGB")
                else:
                    x, y, w, h = view
                    small = image.convert("RGB").crop((x, y, x + w, y + h))
                small.thumbnail((_SIDE, _SIDE))
                file = io.BytesIO()
                small.save(file, "JPEG", quality=_QUALITY)
    except Exception:  # whatever a broken file makes of a decoder, the other images can be shown
        return None
    return _Thumbnail("data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode(), small.size, view)


def _around(box: tuple[float, ...], width: int, height: int) -> tuple[int, int, int, int]:
    """Return a part of an image with a box in its middle, three times as large along its longer side if there is room."""
    parts = []
    margin = max(box[2] - box[0], box[3] - box[1], 40.0)
    for low, high, most in ((box[0], box[2], width), (box[1], box[3], height)):
        first = min(max(int(low - margin), 0), max(most - 1, 0))
        parts.append((first, max(min(math.ceil(high + margin), most) - first, 1)))
    return parts[0][0], parts[1][0], parts[0][1], parts[1][1]


def _picture(name: str, thumbnail: _Thumbnail, marks: list[dict[str, str]], says: str) -> dict[str, Any]:
    return {
        "name": printable(name),
        "uri": thumbnail.uri,
        "size": thumbnail.size,
        "view": thumbnail.view,
        "says": printable(says),
        "marks": marks,
    }


def _marks(diagnosis: Diagnosis, image_id: Any, grain: float) -> list[dict[str, str]]:
    """Return what is found, wrong and missed on an image, of detections of the diagnosis's score or more."""
    matches, names = diagnosis.matches, diagnosis.categories
    at = int(np.flatnonzero(matches.image_ids == image_id)[0])
    here = np.flatnonzero((matches.image == at) & (matches.score >= diagnosis.score))
    here = here[np.argsort(-matches.score[here], kind="stable")]
    marks = []
    for outcome, style, word in ((HIT, "hit", "found"), (MISS, "wrong", "false positive")):
        for row in here[matches.outcome[here] == outcome][:_BOXES].tolist():
            label = f"{word}: {names[matches.category[row]]} {matches.score[row]:.3f}"
            marks.append(_mark(diagnosis, "detections", int(matches.detection[row]), style, label, grain))
    truth = diagnosis.ground_truth
    hit = set(matches.ground_truth[here[matches.outcome[here] == HIT]].tolist())
    places = diagnosis.places
    own = np.flatnonzero((truth.images.codes == at) & (places >= 0))
    for row in own[diagnosis.counted[places[own]]].tolist():
        if row not in hit:
            label = f"missed: {names[diagnosis.arranged.truth.category[places[row]]]}"
            marks.append(_mark(diagnosis, "ground_truth", row, "missed", label, grain))
    return marks


def _drawing(diagnosis: Diagnosis, side: str, row: int) -> Drawing:
    """Return how a shape is drawn: as its kind says, or as its box where that says nothing."""
    kind = diagnosis.protocol.iou_type
    draw = find(kind).draw
    if draw is not None:
        (made,) = draw(getattr(diagnosis, side).shape(kind).take(np.array([row])))
        if made.outlines or len(made.points):
            return made
    x, y, right, bottom = diagnosis.corners(side)[row].tolist()
    right, bottom = max(right, x), max(bottom, y)
    return Drawing([np.array([[x, y], [right, y], [right, bottom], [x, bottom]])], np.empty((0, 2)))


def _corners(diagnosis: Diagnosis, side: str, row: int) -> NDArray[np.float64]:
    """Return all points that a shape is drawn through, shape (n, 2)."""
    made = _drawing(diagnosis, side, row)
    return np.concatenate([*made.outlines, made.points])


def _mark(diagnosis: Diagnosis, side: str, row: int, style: str, label: str, grain: float) -> dict[str, str]:
    """Return a shape as a path of SVG."""
    made, parts = _drawing(diagnosis, side, row), []
    for outline in made.outlines:
        corners = "L".join(f"{x:g} {y:g}" for x, y in np.round(_simpler(outline, grain), 1).tolist())
        parts.append(f"M{corners}Z")
    r = _RADIUS * grain
    parts += [f"M{x - r:.1f} {y:.1f}a{r:.1f} {r:.1f} 0 1 0 {2 * r:.1f} 0a{r:.1f} {r:.1f} 0 1 0 {-2 * r:.1f} 0"
              for x, y in made.points.tolist()]  # fmt: skip
    shape = "dots" if len(made.points) else ""
    return {"path": "".join(parts), "style": style, "shape": shape, "label": printable(label)}


def _simpler(corners: NDArray[np.float64], tolerance: float) -> NDArray[np.float64]:
    """Return a closed line without corners that lie within a distance of what is left (Douglas and Peucker's rule)."""
    if len(corners) < 5:
        return corners
    away = ((corners - corners[0]) ** 2).sum(axis=1)
    kept = np.zeros(len(corners) + 1, np.bool_)
    closed = np.concatenate([corners, corners[:1]])
    far = int(np.argmax(away))
    kept[[0, far]] = True
    left = [(0, far), (far, len(corners))]
    while left:
        first, last = left.pop()
        if last - first < 2:
            continue
        along = closed[last] - closed[first]
        length = math.hypot(*along.tolist())
        between = closed[first + 1 : last] - closed[first]
        distance = (
            np.abs(between[:, 0] * along[1] - between[:, 1] * along[0]) / length
            if length
            else np.hypot(between[:, 0], between[:, 1])
        )
        worst = int(np.argmax(distance))
        if distance[worst] > tolerance:
            middle = first + 1 + worst
            kept[middle] = True
            left += [(first, middle), (middle, last)]
    return corners[kept[:-1]]
