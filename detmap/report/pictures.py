"""Thumbnails of images with their boxes: found, false positive, missed (extra ``images``)."""

from __future__ import annotations

import base64
import io
import os
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from detmap.errors import MissingDependencyError, OptionError, shorten
from detmap.matches import HIT, MISS
from detmap.results import printable

if TYPE_CHECKING:
    from detmap.diagnostics import Diagnosis

#: The longer side of a thumbnail, and how well it is kept.
_SIDE, _QUALITY = 480, 70

#: What a name may lack, as an id of VOC does.
_SUFFIXES = ("", ".jpg", ".jpeg", ".png", ".JPG", ".JPEG", ".PNG", ".webp", ".bmp")

#: So many boxes of a kind are drawn on an image: those of the best scores.
_BOXES = 60


@dataclass(frozen=True)
class Gallery:
    """Pictures of a page.

    Attributes
    ----------
    pictures : list of dict
        Of each ``name``, ``uri``, ``size`` (of the thumbnail), ``width`` and ``height`` (of the image), ``says``, and
        ``boxes``.
    notes : list of str
        What is shown, and what could not be.
    """

    pictures: list[dict[str, Any]]
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
        made, absent, broken = [], 0, 0
        for row in rows:
            path = self.find(str(row["image"]))
            if path is None:
                absent += 1
                continue
            thumbnail = _thumbnail(path)
            if thumbnail is None:
                broken += 1
                continue
            uri, size, (width, height) = thumbnail
            boxes = _boxes(diagnosis, row["image_id"])
            count = Counter(box["style"] for box in boxes)
            made.append(
                {
                    "name": printable(str(row["image"])),
                    "uri": uri,
                    "size": size,
                    "width": width,
                    "height": height,
                    "says": f"costs {row['dAP']:.4f} AP; found {count['hit']}, missed {count['missed']}, "
                    f"false positives {count['wrong']}",
                    "boxes": boxes,
                }
            )
        notes = [f"Detections of scores of {diagnosis.score:.3g} or more."]
        notes += [f"{absent:,} of these images are not in the folder of images."] if absent else []
        notes += [f"{broken:,} of these images cannot be read."] if broken else []
        return Gallery(made, notes)


def _thumbnail(path: Path) -> tuple[str, tuple[int, int], tuple[int, int]] | None:
    """Return a small copy as an address of data, its size, and that of the image; None where it cannot be read."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as image:
                whole = image.size
                image.draft("RGB", (_SIDE, _SIDE))
                small = image.convert("RGB")
                small.thumbnail((_SIDE, _SIDE))
                file = io.BytesIO()
                small.save(file, "JPEG", quality=_QUALITY)
    except Exception:  # whatever a broken file makes of a decoder, the other images can be shown
        return None
    return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode(), small.size, whole


def _boxes(diagnosis: Diagnosis, image_id: Any) -> list[dict[str, Any]]:
    """Return what is found, wrong and missed on an image, of detections of the diagnosis's score or more."""
    matches, names = diagnosis.matches, diagnosis.categories
    at = int(np.flatnonzero(matches.image_ids == image_id)[0])
    here = np.flatnonzero((matches.image == at) & (matches.score >= diagnosis.score))
    here = here[np.argsort(-matches.score[here], kind="stable")]
    corners = diagnosis.corners("detections")
    boxes = []
    for outcome, style, word in ((HIT, "hit", "found"), (MISS, "wrong", "false positive")):
        for row in here[matches.outcome[here] == outcome][:_BOXES].tolist():
            label = f"{word}: {names[matches.category[row]]} {matches.score[row]:.3f}"
            boxes.append(_box(corners[matches.detection[row]].tolist(), style, label))
    truth = diagnosis.ground_truth
    hit = set(matches.ground_truth[here[matches.outcome[here] == HIT]].tolist())
    places = diagnosis.places
    own = np.flatnonzero((truth.images.codes == at) & (places >= 0))
    objects = diagnosis.corners("ground_truth")
    for row in own[diagnosis.counted[places[own]]].tolist():
        if row not in hit:
            label = f"missed: {names[diagnosis.arranged.truth.category[places[row]]]}"
            boxes.append(_box(objects[row].tolist(), "missed", label))
    return boxes


def _box(corners: list[float], style: str, label: str) -> dict[str, Any]:
    x, y, right, bottom = corners
    return {
        "x": f"{x:.1f}",
        "y": f"{y:.1f}",
        "width": f"{max(right - x, 0):.1f}",
        "height": f"{max(bottom - y, 0):.1f}",
        "style": style,
        "label": printable(label),
    }
