"""Thumbnails of images with boxes, outlines of masks, or poses drawn on them (extra ``images``)."""

from __future__ import annotations

import base64
import io
import math
import os
import warnings
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.errors import MissingDependencyError, OptionError, shorten
from detmap.results import printable
from detmap.shapes import Drawing, find

if TYPE_CHECKING:
    from detmap.diagnostics import Diagnosis

#: Longer side of a thumbnail in pixels, and quality of its JPEG.
_SIDE, _QUALITY = 440, 65

#: Suffixes appended to an image's name until a file is found; image ids of VOC, for example, have no suffix.
_SUFFIXES = ("", ".jpg", ".jpeg", ".png", ".JPG", ".JPEG", ".PNG", ".webp", ".bmp")

#: Radius of a point of a pose, and half the width of a limb, in pixels of the thumbnail.
_RADIUS, _LIMB = 2.5, 0.9


class Pictures:
    """The images in a folder.

    Raises
    ------
    OptionError
        If `folder` is not a folder.
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
        """Return the path of an image's file, or None if there is none. Names cannot lead out of the folder."""
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
                except (OSError, ValueError):  # the name is too long, or invalid
                    continue
        return None


class Notes:
    """Numbers of absent images and of unreadable images, and the total bytes of the thumbnails."""

    def __init__(self) -> None:
        self.absent = self.broken = self.bytes = 0

    def counted(self, path: Path | None, box: tuple[float, ...] | None = None) -> Thumbnail | None:
        """Return a thumbnail of an image file, or of the surroundings of `box`; None if the file is absent or unreadable."""
        if path is None:
            self.absent += 1
            return None
        made = thumbnail(path, box)
        self.broken += made is None
        self.bytes += 0 if made is None else len(made.uri)
        return made

    def said(self) -> list[str]:
        """Return sentences on the images that could not be shown."""
        said = [f"{self.absent:,} of these images are not in the folder of images."] if self.absent else []
        return said + ([f"{self.broken:,} of these images cannot be read."] if self.broken else [])


class Thumbnail(NamedTuple):
    """A thumbnail of part of an image: data URL (empty without pixels), size, and x, y, width and height of the part."""

    uri: str
    size: tuple[int, int]
    view: tuple[float, float, float, float]

    @property
    def grain(self) -> float:
        """Number of image pixels per thumbnail pixel."""
        return max(self.view[2] / max(self.size[0], 1), 1.0)


def thumbnail(path: Path, box: tuple[float, ...] | None = None) -> Thumbnail | None:
    """Return a thumbnail of an image, or of the surroundings of a box; None if the file is unreadable."""
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
    except Exception:  # decoders may raise anything for a broken file, but other images can be shown
        return None
    return Thumbnail("data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode(), small.size, view)


def _around(box: tuple[float, ...], width: int, height: int) -> tuple[int, int, int, int]:
    """Return the part of an image around a box. The margin is as wide as the longer side of the box, and at least 40
    pixels; it ends at the edges of the image.
    """
    parts = []
    margin = max(box[2] - box[0], box[3] - box[1], 40.0)
    for low, high, most in ((box[0], box[2], width), (box[1], box[3], height)):
        first = min(max(int(low - margin), 0), max(most - 1, 0))
        parts.append((first, max(min(math.ceil(high + margin), most) - first, 1)))
    return parts[0][0], parts[1][0], parts[0][1], parts[1][1]


def picture(
    name: str, shown: Thumbnail, marks: list[dict[str, Any]], says: str, cells: Iterable[str] = (), up: bool = False
) -> dict[str, Any]:
    """Return a picture of a `Gallery`. `cells` are the cells of the confusion matrix that link to it. If `up` is true,
    the y-axis points up.
    """
    return {
        "name": printable(name),
        "uri": shown.uri,
        "size": shown.size,
        "view": shown.view,
        "says": printable(says),
        "marks": marks,
        "up": up,
        "cells": " ".join(cells),
    }


class Shapes:
    """Drawings of the geometry (boxes, masks, poses) of the objects and detections of a diagnosis."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        self.diagnosis = diagnosis
        self.corners = {side: diagnosis.corners(side) for side in ("ground_truth", "detections")}
        categories = diagnosis.ground_truth.categories
        self._limbs = dict(zip(categories.ids.tolist(), categories.limbs or (), strict=False))

    def drawing(self, side: str, row: int) -> Drawing:
        """Return the drawing of a row's mask, pose or other geometry. If the geometry has no drawing, draw the row's box."""
        kind = self.diagnosis.protocol.iou_type
        draw = find(kind).draw
        if draw is not None:
            (made,) = draw(getattr(self.diagnosis, side).shape(kind).take(np.array([row])))
            if made.outlines or len(made.points):
                return made
        x, y, right, bottom = self.corners[side][row].tolist()
        right, bottom = max(right, x), max(bottom, y)
        return Drawing([np.array([[x, y], [right, y], [right, bottom], [x, bottom]])], np.empty((0, 2)))

    def limbs(self, side: str, row: int) -> NDArray[np.float64]:
        """Return the ends of the limbs of a pose, shape (l, 2, 2), by the skeleton of its category. Omit limbs to
        unlabelled points, unless no point is labelled. If the skeleton names points that the pose lacks, return no
        limbs.
        """
        kind, table = find(self.diagnosis.protocol.iou_type), getattr(self.diagnosis, side)
        categories = table.categories
        pairs = np.array(self._limbs.get(categories.ids[categories.codes[row]].item(), ()), np.int64).reshape(-1, 2)
        if kind.points is None or not pairs.size:
            return np.empty((0, 2, 2))
        pose = kind.points(table.shape(kind.name).take(np.array([row])))
        if pairs.max() >= len(pose.places):  # CrowdPose's poses have 14 points, but its skeleton has 17
            return np.empty((0, 2, 2))
        shown = (pose.flags > 0) | ~(pose.flags > 0).any()
        return np.asarray(pose.places[pairs[shown[pairs].all(axis=1)]])

    def points(self, side: str, row: int) -> NDArray[np.float64]:
        """Return all points of the drawing of an object or detection, shape (n, 2)."""
        made = self.drawing(side, row)
        return np.concatenate([*made.outlines, made.points])

    def mark(self, side: str, row: int, style: str, label: str, grain: float, **facts: Any) -> dict[str, Any]:
        """Return an object or detection as an SVG path, with `facts` for filters; `grain` is `Thumbnail.grain`."""
        made, parts = self.drawing(side, row), []
        for outline in made.outlines:
            corners = "L".join(f"{x:g} {y:g}" for x, y in np.round(_simpler(outline, grain), 1).tolist())
            parts.append(f"M{corners}Z")
        r, half = _RADIUS * grain, _LIMB * grain
        for first, second in self.limbs(side, row):
            away = second - first
            length = math.hypot(*away.tolist())
            if length > 0:
                # A limb's outline has the same orientation as the circles, so that overlaps are filled, not cut out.
                across = np.array([-away[1], away[0]]) * (half / length)
                ends = (first + across, second + across, second - across, first - across)
                parts.append("M{}Z".format("L".join(f"{x:.1f} {y:.1f}" for x, y in ends)))
        parts += [f"M{x - r:.1f} {y:.1f}a{r:.1f} {r:.1f} 0 1 0 {2 * r:.1f} 0a{r:.1f} {r:.1f} 0 1 0 {-2 * r:.1f} 0"
                  for x, y in made.points.tolist()]  # fmt: skip
        shape = "dots" if len(made.points) else ""
        return {"path": "".join(parts), "style": style, "shape": shape, "label": printable(label), "facts": facts}


def _simpler(corners: NDArray[np.float64], tolerance: float) -> NDArray[np.float64]:
    """Simplify a closed polyline by the Douglas-Peucker algorithm with a tolerance."""
    if len(corners) < 5:
        return corners
    away = ((corners - corners[0]) ** 2).sum(axis=1)
    closed = np.vstack([corners, corners[0]])
    kept = np.zeros(len(closed), np.bool_)
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
    return corners[kept[: len(corners)]]
