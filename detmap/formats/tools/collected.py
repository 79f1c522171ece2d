"""Objects or detections as a reader finds them, one after the other, and the table that they become."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import coded
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, OptionError
from detmap.formats.delimited.read import UNNAMED
from detmap.formats.file_names import matched
from detmap.formats.image_sizes import Sizes, scales
from detmap.formats.yolo.folders import names_given
from detmap.reading.options import Reading
from detmap.shapes import find
from detmap.shapes.boxes import BoxFormat
from detmap.shapes.kinds import BOXES, ROTATED

_LONGEST = 256  # characters of an id


class _Row(NamedTuple):
    """A record: its place in the file, image, class, score and box, its outline if it has one, and whether it is a crowd."""

    place: str
    image: str
    label: str
    score: float
    box: Sequence[float]
    outline: Sequence[float] | None
    crowd: bool


class Collected:
    """The images and records of a file.

    Parameters
    ----------
    source : str
        What messages call the file.
    box_format : {"xywh", "xyxy", "cxcywh"}
        How boxes are written.
    shares : bool
        Whether boxes, of detections, are shares of their image's width and height.
    """

    def __init__(self, source: str, box_format: BoxFormat, *, shares: bool = False) -> None:
        self.source, self.box_format, self.shares = source, box_format, shares
        self.sizes: dict[str, tuple[int, int]] = {}
        self.notices: dict[str, int] = {}
        self._rows: list[_Row] = []

    def __len__(self) -> int:
        return len(self._rows)

    def image(self, name: str, place: str, height: Any = None, width: Any = None) -> str:
        """Add an image, and return its name; raises `InputError` for a name that cannot be an id."""
        if not name or len(name) > _LONGEST or "\0" in name:
            problem = "is missing" if not name else "has more than 256 characters, or a null"
            raise InputError(f"the name of the image {problem}", source=self.source, record=place)
        size = (height, width) if height and width and 0 < height < 1 << 24 and 0 < width < 1 << 24 else (0, 0)
        if not self.sizes.get(name, (0, 0))[0]:
            self.sizes[name] = size
        return name

    def count(self, notice: str) -> None:
        """Count a record that is left out, or read otherwise than it may be expected."""
        self.notices[notice] = self.notices.get(notice, 0) + 1

    def add(
        self,
        place: str,
        image: str,
        label: str,
        box: Sequence[float] = (),
        *,
        score: float | None = None,
        outline: Sequence[float] | None = None,
        crowd: bool = False,
    ) -> None:
        """Add a record on an image; without a box it gets the one around its outline. Raises `InputError` for a class that
        cannot be an id, and for detections without a score.
        """
        if not label or len(label) > _LONGEST or "\0" in label:
            problem = "is missing" if not label else "has more than 256 characters, or a null"
            raise InputError(f"the class {problem}", source=self.source, record=place)
        if outline is not None and not len(box):
            xs, ys = outline[0::2], outline[1::2]
            near, far = (min(xs), min(ys)), (max(xs), max(ys))
            box = (*near, *far) if self.box_format == "xyxy" else (*near, far[0] - near[0], far[1] - near[1])
        self._rows.append(_Row(place, image, label, np.nan if score is None else score, box, outline, crowd))

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Within this context errors about a record by its number name its place in the file."""
        try:
            yield
        except InputError as error:
            if not isinstance(error.record, int):
                raise
            raise error.elsewhere(self.source, self._rows[error.record].place) from None

    def _boxes(self) -> NDArray[np.float64]:
        """Return boxes as they are written."""
        return np.array([row.box for row in self._rows], np.float64).reshape(-1, 4)

    def _labels(self, reading: Reading) -> Any:
        """Return the class of each record; that of a file without classes is called as the only one of `classes`."""
        if reading.classes is None or not {row.label for row in self._rows} <= {UNNAMED}:
            return coded([row.label for row in self._rows])
        names = list(names_given(reading.classes).values())
        if len(names) != 1:
            raise OptionError(f"{self.source} names no classes, and {len(names)} are given (--classes): give one")
        return coded(names * len(self._rows))

    def ground_truth(self, reading: Reading) -> GroundTruth:
        """Return the records as ground truth, whose images may have none."""
        shapes: dict[str, Any] = {"boxes": self._boxes(), "box_format": self.box_format}
        if reading.iou_type != BOXES:
            shapes = self._outlines(reading)
        sizes = np.array([*self.sizes.values()], np.int64).reshape(-1, 2)
        with self._named():
            return GroundTruth.from_arrays(
                image_ids=coded([row.image for row in self._rows]),
                category_ids=self._labels(reading),
                **shapes,
                crowd=np.array([row.crowd for row in self._rows], np.bool_),
                images=np.array([*self.sizes], str),
                image_sizes=sizes if sizes.any() else None,
                invalid_boxes=reading.invalid_boxes,
                notices=self.notices,
                source=self.source,
            )

    def _outlines(self, reading: Reading) -> dict[str, Any]:
        """Return the rotated boxes, or the masks, of the records' outlines; a box is an outline too. Raises `InputError`
        for an outline that cannot be one, and for masks on images of unknown size.
        """
        outlines = []
        for row in self._rows:
            x, y, far, bottom = row.box
            if self.box_format == "xywh":
                far, bottom = x + far, y + bottom
            outlines.append([x, y, far, y, far, bottom, x, bottom] if row.outline is None else list(row.outline))
        kind = find(reading.iou_type)
        if kind.column_name == ROTATED:
            for row, outline in zip(self._rows, outlines, strict=True):
                if len(outline) != 8:
                    problem = f"has {len(outline) // 2} points where a rotated box has 4"
                    raise InputError(problem, source=self.source, record=row.place)
            return {kind.argument: np.array(outlines, np.float64).reshape(-1, 4, 2)}
        from detmap.masks import Masks

        given = Sizes(reading.image_sizes)
        sizes = [
            self.sizes[row.image] if all(self.sizes[row.image]) else given.get(row.image.rpartition("/")[2])
            for row in self._rows
        ]
        if None in sizes or (0, 0) in sizes:
            row = self._rows[next(i for i, size in enumerate(sizes) if not size or not all(size))]
            remedy = "give sizes: image_sizes (--image-sizes FILE.csv or 640x480)"
            problem = "masks need the size of their image, which the file does not say"
            raise InputError(problem, source=self.source, record=row.place, value=row.image, remedy=remedy)
        with self._named():
            masks = Masks.from_polygons([[one] for one in outlines], np.array(sizes).reshape(-1, 2), source=self.source)
        return {kind.argument: masks}

    def detections(self, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
        """Return the records as detections under the ids of the ground truth."""
        found: dict[str, Any] = {
            "image_ids": coded([row.image for row in self._rows]),
            "category_ids": self._labels(reading),
            "boxes": self._boxes(),
            "scores": np.array([row.score for row in self._rows], np.float64),
            "box_format": self.box_format,
            "notices": self.notices,
            "source": self.source,
        }
        unscored = np.isnan(found["scores"])
        if unscored.any():
            row = self._rows[int(np.argmax(unscored))]
            raise InputError(
                "there is no score",
                source=self.source,
                record=row.place,
                field="score",
                remedy="are the arguments swapped? The ground truth comes first, and detections alone have scores",
            )
        with self._named():
            found = matched(found, ground_truth, reading.unknown_images, lambda row: self._rows[row].place)
            if self.shares:
                images = found["image_ids"]
                names = images.ids[images.codes].tolist()
                found["boxes"] = found["boxes"] * scales(names, reading.image_sizes, self.source, ground_truth)
            return Detections.from_arrays(**found, invalid_boxes=reading.invalid_boxes)
