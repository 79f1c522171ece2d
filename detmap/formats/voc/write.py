"""Write VOC's formats: a folder of XML annotations, and a folder of results ``comp4_det_test_{class}.txt``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError
from detmap.formats.file_names import (
    by_image,
    category_names,
    check_scores,
    corners,
    lost_areas,
    lost_by_names,
    lost_ids,
    moved,
    shapes_lost,
    stems_of,
    write_folder,
)
from detmap.formats.registry import Writing
from detmap.reading.lines import LONGEST
from detmap.reading.options import Path


def write_ground_truth(table: GroundTruth, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write an XML file per image. Corners are written as they are, without adding a pixel to the far corner."""
    from html import escape

    stems, names = stems_of(table, None), category_names(table, None)
    check_names(names, table.source)
    check_names(stems, table.source)
    boxes, rounded = corners(table)
    label = [escape(names[code]) for code in table.categories.codes.tolist()]
    difficult = table.difficult.tolist()

    def content(image: int, rows: list[int]) -> bytes:
        lines = ["<annotation>"]
        name = "" if table.images.names is None else table.images.names[image]
        if name:
            lines.append(f"\t<filename>{escape(name)}</filename>")
        if table.images.sizes is not None and table.images.sizes[image].all():
            height, width = table.images.sizes[image].tolist()
            lines.append(f"\t<size><width>{width}</width><height>{height}</height></size>")
        for row in rows:
            places = zip(("xmin", "ymin", "xmax", "ymax"), boxes[row].tolist(), strict=True)
            inside = "".join(f"<{corner}>{digits(value)}</{corner}>" for corner, value in places)
            lines.append(
                f"\t<object><name>{label[row]}</name><difficult>{int(difficult[row])}</difficult>"
                f"<bndbox>{inside}</bndbox></object>"
            )
        return "\n".join([*lines, "</annotation>\n"]).encode()

    of_image = by_image(table)
    write_folder(path, {f"{name}.xml": partial(content, i, of_image[i].tolist()) for i, name in enumerate(stems)})
    return {
        "crowd": int(table.crowd.sum()),
        "rounded_boxes": rounded,
        "areas": lost_areas(table),
        "shapes": shapes_lost(table, ()),
        **lost_by_names(table, names, stems),
        "sizes": len(table) if table.box_sizes else 0,
    }


def write_detections(table: Detections, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write a file ``comp4_det_test_{class}.txt`` per class. If there is ground truth, classes without
    detections get an empty file.
    """
    boxes, rounded = corners(table)
    lost = {"rounded_boxes": rounded, "shapes": shapes_lost(table, ()), "sizes": len(table) if table.box_sizes else 0}
    return {**lost, **write_results(table, path, writing, "comp4_det_test_{}.txt", boxes)}


def write_results(
    table: Detections, path: Path, writing: Writing, called: str, places: NDArray[np.float64]
) -> dict[str, int]:
    """Write a file per class. A line has the image, the score and the corners of a detection. `places` has a row of
    corners for each detection. Return counts of what the format cannot hold.
    """
    truth = writing.ground_truth
    stems, names = stems_of(table, truth), category_names(table, truth)
    known = [] if truth is None else category_names(truth, None)
    check_names([*names, *known], table.source, file=True)
    check_names(stems, table.source, words=True)
    check_scores(table)
    images, scores, numbers = table.images.codes.tolist(), table.scores.tolist(), places.tolist()

    def content(rows: list[int]) -> bytes:
        return "".join(f"{stems[images[i]]} {' '.join(map(digits, (scores[i], *numbers[i])))}\n" for i in rows).encode()

    codes = table.categories.codes
    rows = {name: np.flatnonzero(codes == code).tolist() for code, name in enumerate(names)}
    everything: dict[str, list[int]] = {**{name: [] for name in known}, **rows}
    write_folder(path, {called.format(name): partial(content, own) for name, own in everything.items()})
    return {
        "category_ids": lost_ids(table.categories.values, names),
        "image_ids": lost_ids(table.images.values, stems),
        "order": moved(codes, names),
    }


def digits(value: float) -> str:
    """Return the shortest digits that round-trip; whole numbers have no point."""
    return str(int(value)) if value == int(value) and abs(value) < 2**53 and str(value) != "-0.0" else repr(value)


def check_names(names: list[str], source: str, *, file: bool = False, words: bool = False) -> None:
    """Refuse names that would not round-trip."""
    for name in names:
        # XML 1.0 excludes control characters, and readers strip names.
        length = len(name.encode(errors="replace")) if words else len(name)
        good = name.isprintable() and name == name.strip() and 0 < length <= LONGEST
        if not good or (file and ("/" in name or "\0" in name)) or (words and len(name.split()) != 1):
            raise InputError("cannot be written as a name in this format", source=source, value=name)
