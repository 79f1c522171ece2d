"""Write YOLO's text files: labels with ``data.yaml`` and the sizes of images, or predictions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError
from detmap.formats.file_names import by_image, lost_ids, moved, shapes_lost, stems_of, write_folder
from detmap.formats.registry import Writing
from detmap.formats.yolo.folders import check_names
from detmap.formats.yolo.outlines import outlines
from detmap.masks import Masks
from detmap.reading.options import Path
from detmap.shapes.keypoints import Keypoints
from detmap.shapes.kinds import KEYPOINTS, MASKS, ROTATED, SHIPPED_FIELDS
from detmap.shapes.masks import MaskColumn


def write_ground_truth(table: GroundTruth, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write a file per image into ``labels/``. Also write ``data.yaml`` and the sizes of the images. The
    images themselves are not copied.
    """
    stems = stems_of(table, None)
    names = list(table.category_names)
    sizes = _sizes(table, table)
    made = _Lines(table, sizes)
    of_image = by_image(table)
    numbers = table.categories.codes.tolist()
    files: dict[str, Callable[[], bytes]] = {"data.yaml": lambda: _settings(names, made.points, table.source)}
    files["image_sizes.csv"] = lambda: _table_of_sizes(stems, sizes, table)
    for i, name in enumerate(stems):
        files[f"labels/{name}.txt"] = partial(made.content, of_image[i].tolist(), numbers, None)
    check_names(stems, of_image, table.source)
    files["data.yaml"]()  # raises for invalid names before anything is written
    files["image_sizes.csv"]()
    write_folder(path, files)
    return {
        "crowd": int(table.crowd.sum()),
        "difficult": int(table.difficult.sum()),
        "areas": int(np.count_nonzero(made.areas != table.areas)),
        **made.lost(table),
        "category_ids": lost_ids(table.categories.values, range(len(names))),  # type: ignore[arg-type]
        "image_ids": lost_ids(table.images.values, stems),
    }


def write_detections(table: Detections, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write a file per image: predictions as Ultralytics' tools save them with ``save_txt`` and ``save_conf``."""
    truth = writing.ground_truth
    stems = stems_of(table, truth)
    ids = table.categories.values.tolist()
    if truth is None:
        raise InputError(
            "YOLO's lines hold shares of the image's size, and numbers of classes, which detections do not say",
            source=table.source,
            remedy="give the ground truth (ground_truth=..., --ground-truth)",
        )
    place = {one: i for i, one in enumerate(truth.categories.values.tolist())}
    unknown = [one for one in ids if one not in place]
    if unknown:
        raise InputError(
            "is not a category of the ground truth, and gets no number", source=table.source, value=unknown[0]
        )
    sizes = _sizes(table, truth)
    made = _Lines(table, sizes)
    of_image = by_image(table)
    numbers = [place[ids[code]] for code in table.categories.codes.tolist()]
    scores = table.scores.tolist()
    files = {
        f"{name}.txt": partial(made.content, of_image[i].tolist(), numbers, scores) for i, name in enumerate(stems)
    }
    write_folder(path, files)
    return {
        **made.lost(table),
        "category_ids": sum(one != place[one] for one in ids),
        "image_ids": lost_ids(table.images.values, stems),
        "order": moved(table.images.codes, stems),
    }


def _sizes(table: GroundTruth | Detections, truth: GroundTruth) -> NDArray[np.int64]:
    """Return heights and widths of a table's images; raise `InputError` for an unknown size."""
    known = np.zeros((truth.images.values.size, 2), np.int64) if truth.images.sizes is None else truth.images.sizes
    if isinstance(table, Detections):
        place = {one: i for i, one in enumerate(truth.images.values.tolist())}
        known = np.append(known, [[0, 0]], axis=0)
        known = known[[place.get(one, -1) for one in table.images.values.tolist()]]
    bad = (known < 1).any(axis=1)
    if bad.any():
        raise InputError(
            "the size of the image is not known, and YOLO's boxes are shares of it",
            source=truth.source,
            value=table.images.values[np.argmax(bad)].item(),
            remedy="the ground truth must say sizes: width and height of COCO's images, size of VOC's; "
            "or give them: image_sizes (--image-sizes FILE.csv or 640x480)",
        )
    return known


class _Lines:
    """The lines to write for a table's records, and the areas of the written shapes."""

    def __init__(self, table: GroundTruth | Detections, sizes: NDArray[np.int64]) -> None:
        scale = sizes[table.images.codes][:, ::-1].astype(np.float64)
        self.points: tuple[int, int] | None = None
        self.masks = self.boxes = self.rounded = self.points_rounded = 0
        boxes = table.boxes
        if not table.box_sizes:
            boxes = np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1)
        column = table.shapes.get(MASKS)
        if isinstance(column, MaskColumn):
            self.others = shapes_lost(table, (MASKS,))
            self._columns: list[list[float]] = self._outlines(table, column, scale)
            self.boxes = int(np.count_nonzero((column.bounds().table != boxes).any(axis=1)))
            self.areas = np.asarray(column.areas(), np.float64)
        elif ROTATED in table.shapes:
            quads = table.shapes[ROTATED]
            self.others = shapes_lost(table, (ROTATED,))
            corners, sides = quads.arrays()["corners"], np.tile(scale, (1, 4))
            self.rounded = int(np.count_nonzero((corners / sides * sides != corners).any(axis=1)))
            self.areas = np.asarray(quads.areas(), np.float64)
            self._columns = (corners / sides).tolist()
        else:
            both = np.concatenate([scale, scale], axis=1)
            shares = np.concatenate([boxes[:, :2] + boxes[:, 2:] / 2, boxes[:, 2:]], axis=1) / both
            again = np.concatenate([shares[:, :2] - shares[:, 2:] / 2, shares[:, 2:]], axis=1) * both
            self.rounded = int(np.count_nonzero((again != boxes).any(axis=1)))
            self.areas = np.maximum(boxes[:, 2], 0) * np.maximum(boxes[:, 3], 0)
            self._columns = shares.tolist()
            poses = table.shapes.get(KEYPOINTS)
            self.others = shapes_lost(table, (KEYPOINTS,))
            if isinstance(poses, Keypoints) and len(table):
                self._add_points(poses, scale, table.source)

    def _add_points(self, poses: Keypoints, scale: NDArray[np.float64], source: str) -> None:
        counts = poses.sizes() // 3
        if (counts != counts[0]).any():
            raise InputError("objects have different numbers of keypoints", source=source)
        table = poses.arrays()["values"].reshape(len(counts), int(counts[0]), 3)
        pixels = table[:, :, :2].copy()
        table[:, :, :2] /= scale[:, None, :]
        self.points_rounded = int(np.count_nonzero((table[:, :, :2] * scale[:, None, :] != pixels).any(axis=(1, 2))))
        self.points = int(counts[0]), 3
        for line, more in zip(self._columns, table.reshape(len(counts), -1).tolist(), strict=True):
            line += more

    def _outlines(
        self, table: GroundTruth | Detections, column: MaskColumn, scale: NDArray[np.float64]
    ) -> list[list[float]]:
        masks = column.masks()
        shares = [one / scale[i] for i, one in enumerate(outlines(masks))]
        empty = [i for i, one in enumerate(shares) if not len(one)]
        if empty:
            raise InputError(
                "a mask without pixels has no outline",
                source=table.source,
                record=empty[0],
                field=SHIPPED_FIELDS[MASKS],
            )
        if shares:
            drawn = Masks.from_polygons([[one * scale[i]] for i, one in enumerate(shares)], masks.sizes)
            pairs = zip(masks.to_rle(), drawn.to_rle(), strict=True)
            self.masks = sum(one != other for one, other in pairs)
        return [one.ravel().tolist() for one in shares]

    def lost(self, table: GroundTruth | Detections) -> dict[str, int]:
        """Return counts of what the format cannot hold."""
        return {
            "corners": 0 if table.box_sizes or ROTATED in table.shapes else len(table),
            "rounded_boxes": self.rounded,
            "rounded_points": self.points_rounded,
            "boxes": self.boxes,
            "masks": self.masks,
            "shapes": self.others,
        }

    def content(self, rows: list[int], numbers: list[int], scores: list[float] | None) -> bytes:
        """Return the lines of some records."""
        lines = []
        for row in rows:
            values: list[Any] = [numbers[row], *self._columns[row]]
            if scores is not None:
                values.append(scores[row])
            lines.append(" ".join(map(repr, values)) + "\n")
        return "".join(lines).encode()


def _settings(names: list[str], points: tuple[int, int] | None, source: str) -> bytes:
    lines = ["path: .", "train: images", "val: images", "names:"]
    for i, name in enumerate(names):
        if not name.isprintable():
            raise InputError("cannot be written as a name in data.yaml", source=source, value=name)
        lines.append(f"  {i}: {json.dumps(name, ensure_ascii=False)}")
    if not names:
        lines[-1] = "names: {}"
    if points is not None:
        lines.append(f"kpt_shape: [{points[0]}, {points[1]}]")
    return ("\n".join(lines) + "\n").encode()


def _table_of_sizes(stems: list[str], sizes: NDArray[np.int64], table: GroundTruth) -> bytes:
    lines = ["image,width,height"]
    for name, (height, width) in zip(stems, sizes.tolist(), strict=True):
        if any(mark in name for mark in ',;\t"\n\r') or not name.isprintable():
            raise InputError("cannot be written as a name in image_sizes.csv", source=table.source, value=name)
        lines.append(f"{name},{width},{height}")
    return ("\n".join(lines) + "\n").encode()
