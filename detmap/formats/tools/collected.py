"""Collects objects or detections one by one, and builds a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import coded
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, OptionError, relocated
from detmap.formats.delimited.read import UNNAMED
from detmap.formats.file_names import matched
from detmap.formats.image_sizes import Sizes, scales
from detmap.formats.yolo.folders import names_given
from detmap.reading.options import Reading
from detmap.shapes import find
from detmap.shapes.boxes import BoxFormat
from detmap.shapes.kinds import BOXES, ROTATED

_LONGEST = 256  # maximum number of characters of an id
_AT_ONCE = 1 << 9  # number of added records that are moved to the columns at once


class _Rows(NamedTuple):
    """Columns of records. `places` holds the name of each record for messages, or a function and an argument that
    give the name.
    """

    places: list[str | tuple[Callable[[int], str], int]]
    images: list[str]
    labels: list[str]
    scores: list[float]
    boxes: list[Sequence[float]]
    outlines: list[Sequence[float] | None]
    crowds: list[bool]

    def place(self, row: int) -> str:
        """Return a record's name for messages."""
        found = self.places[row]
        return found if isinstance(found, str) else found[0](found[1])


class Collected:
    """The images and records of a file. `source` is the file's name for messages. If `shares` is true, boxes of
    detections are normalised.
    """

    def __init__(self, source: str, box_format: BoxFormat, *, shares: bool = False) -> None:
        self.source, self.box_format, self.shares = source, box_format, shares
        self.sizes: dict[str, tuple[int, int]] = {}
        self.notices: dict[str, int] = {}
        self._columns = _Rows([], [], [], [], [], [], [])
        #: Records that are not in `_columns` yet, because moving many at once is faster.
        self._added: list[tuple[Any, ...]] = []
        #: The valid names of classes among the records.
        self._classes: set[str] = set()

    def __len__(self) -> int:
        return len(self._rows.images)

    @property
    def _rows(self) -> _Rows:
        """All records."""
        self._move()
        return self._columns

    def _move(self) -> None:
        """Move added records to the columns."""
        for column, values in zip(self._columns, zip(*self._added, strict=True), strict=False):
            column.extend(values)  # type: ignore[attr-defined]
        self._added.clear()

    def image(self, name: str, place: str, height: Any = None, width: Any = None) -> str:
        """Add an image, and return its name; raise `InputError` for an invalid name."""
        if not name or len(name) > _LONGEST or "\0" in name:
            problem = "is missing" if not name else "has more than 256 characters, or a null"
            raise InputError(f"the name of the image {problem}", source=self.source, record=place)
        size = (height, width) if height and width and 0 < height < 1 << 24 and 0 < width < 1 << 24 else (0, 0)
        if not self.sizes.get(name, (0, 0))[0]:
            self.sizes[name] = size
        return name

    def count(self, notice: str) -> None:
        """Count a record that is left out, or read in an unexpected way."""
        self.notices[notice] = self.notices.get(notice, 0) + 1

    def check_class(self, label: str, place: str) -> None:
        """Raise `InputError` for an invalid name of a class."""
        if not label or len(label) > _LONGEST or "\0" in label:
            problem = "is missing" if not label else "has more than 256 characters, or a null"
            raise InputError(f"the class {problem}", source=self.source, record=place)
        self._classes.add(label)

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
        """Add a record on an image; a record without a `box` gets the box around its `outline`."""
        if label not in self._classes:
            self.check_class(label, place)
        if outline is not None and not len(box):
            xs, ys = outline[0::2], outline[1::2]
            near, far = (min(xs), min(ys)), (max(xs), max(ys))
            box = (*near, *far) if self.box_format == "xyxy" else (*near, far[0] - near[0], far[1] - near[1])
        self._added.append((place, image, label, np.nan if score is None else score, box, outline, crowd))
        if len(self._added) == _AT_ONCE:
            self._move()

    def extend(
        self,
        place: Callable[[int], str],
        images: Sequence[str],
        labels: Sequence[str],
        boxes: NDArray[np.float64],
        *,
        scores: NDArray[np.float64] | None = None,
        crowd: NDArray[np.bool_] | None = None,
    ) -> None:
        """Add records with boxes. Images must be known, and classes valid. ``place(row)`` names a record in an error."""
        rows, count = self._rows, len(images)
        rows.places.extend(zip(repeat(place, count), range(count), strict=True))
        rows.images.extend(images)
        rows.labels.extend(labels)
        rows.scores.extend(repeat(np.nan, count) if scores is None else scores.tolist())
        rows.boxes.extend(boxes.tolist())
        rows.outlines.extend(repeat(None, count))
        rows.crowds.extend(repeat(False, count) if crowd is None else crowd.tolist())

    def _named(self) -> AbstractContextManager[None]:
        """Add the place of the record in the file to errors about a row that are raised within this context."""
        return relocated(lambda row: (self.source, self._rows.place(row)))

    def _boxes(self) -> NDArray[np.float64]:
        """Return boxes in the file's format."""
        return np.array(self._rows.boxes, np.float64).reshape(-1, 4)

    def _labels(self, reading: Reading) -> Any:
        """Return the class of each record. If the file has no classes, use the only class in the option `classes`."""
        if reading.classes is None or not {*self._rows.labels} <= {UNNAMED}:
            return coded(self._rows.labels)
        names = list(names_given(reading.classes).values())
        if len(names) != 1:
            raise OptionError(f"{self.source} names no classes, and {len(names)} are given (--classes): give one")
        return coded(names * len(self))

    def ground_truth(self, reading: Reading, fields: Mapping[str, NDArray[np.float64]] | None = None) -> GroundTruth:
        """Return the records as ground truth, with further `fields`; images without records are included."""
        shapes: dict[str, Any] = {"boxes": self._boxes(), "box_format": self.box_format}
        if reading.iou_type != BOXES:
            shapes = self._outlines(reading)
        sizes = np.array([*self.sizes.values()], np.int64).reshape(-1, 2)
        with self._named():
            return GroundTruth.from_arrays(
                image_ids=coded(self._rows.images),
                category_ids=self._labels(reading),
                **shapes,
                crowd=np.array(self._rows.crowds, np.bool_),
                images=np.array([*self.sizes], str),
                image_sizes=sizes if sizes.any() else None,
                fields=fields,
                invalid_boxes=reading.invalid_boxes,
                notices=self.notices,
                source=self.source,
            )

    def _outlines(self, reading: Reading) -> dict[str, Any]:
        """Return rotated boxes or masks from outlines. A record without an outline gets the outline of its box."""
        outlines = []
        for box, outline in zip(self._rows.boxes, self._rows.outlines, strict=True):
            x, y, far, bottom = box
            if self.box_format == "xywh":
                far, bottom = x + far, y + bottom
            outlines.append([x, y, far, y, far, bottom, x, bottom] if outline is None else list(outline))
        kind = find(reading.iou_type)
        if kind.column_name == ROTATED:
            for at, corners in enumerate(outlines):
                if len(corners) != 8:
                    problem = f"has {len(corners) // 2} points where a rotated box has 4"
                    raise InputError(problem, source=self.source, record=self._rows.place(at))
            return {kind.argument: np.array(outlines, np.float64).reshape(-1, 4, 2)}
        from detmap.masks import Masks

        given = Sizes(reading.image_sizes)
        sizes = [
            self.sizes[image] if all(self.sizes[image]) else given.get(image.rpartition("/")[2])
            for image in self._rows.images
        ]
        if None in sizes or (0, 0) in sizes:
            row = next(i for i, size in enumerate(sizes) if not size or not all(size))
            remedy = "give sizes: image_sizes (--image-sizes FILE.csv or 640x480)"
            problem = "masks need the size of their image, which the file does not say"
            place, image = self._rows.place(row), self._rows.images[row]
            raise InputError(problem, source=self.source, record=place, value=image, remedy=remedy)
        with self._named():
            masks = Masks.from_polygons([[one] for one in outlines], np.array(sizes).reshape(-1, 2), source=self.source)
        return {kind.argument: masks}

    def detections(self, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
        """Return the records as detections with ids of the ground truth."""
        found: dict[str, Any] = {
            "image_ids": coded(self._rows.images),
            "category_ids": self._labels(reading),
            "boxes": self._boxes(),
            "scores": np.array(self._rows.scores, np.float64),
            "box_format": self.box_format,
            "notices": self.notices,
            "source": self.source,
        }
        unscored = np.isnan(found["scores"])
        if unscored.any():
            raise InputError(
                "there is no score",
                source=self.source,
                record=self._rows.place(int(np.argmax(unscored))),
                field="score",
                remedy="are the arguments swapped? The ground truth comes first, and detections alone have scores",
            )
        with self._named():
            found = matched(found, ground_truth, reading.unknown_images, self._rows.place)
            if self.shares:
                images = found["image_ids"]
                names = images.ids[images.codes].tolist()
                found["boxes"] = found["boxes"] * scales(names, reading.image_sizes, self.source, ground_truth)
            return Detections.from_arrays(**found, invalid_boxes=reading.invalid_boxes)
