"""Open Images' CSV files of boxes, masks and image labels, submissions to its challenges, and its hierarchy of labels.

Ids are always strings, because image ids are hexadecimal and some look decimal. Boxes are normalised corners, and are
compared without conversion to pixels, because overlaps are the same up to rounding.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.data.hierarchy import Hierarchy
from detmap.data.ids import Ids, coded, locate, unknown_image
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, OptionError, shorten
from detmap.formats.delimited.read import ENDINGS, Table, read_csv_detections, read_csv_ground_truth, read_table
from detmap.formats.file_names import (
    category_names,
    check_scores,
    corners,
    lost_areas,
    lost_ids,
    lost_order,
    lost_sizes,
    match_categories,
    match_images,
    recoded,
    shapes_lost,
    stems_of,
    unused,
)
from detmap.formats.registry import Format, Given, Writing
from detmap.formats.tools.prediction_strings import numbers_of
from detmap.kernels import readonly
from detmap.plugins import register
from detmap.reading.options import Path, Reading, Role
from detmap.reading.sources import Source, compressed, read_bytes
from detmap.reading.typed_json import read_json
from detmap.shapes import find
from detmap.shapes.boxes import seem_shares
from detmap.shapes.kinds import BOXES, MASKS
from detmap.system.whole_files import write

_BOXES = {"image": "ImageID", "category": "LabelName", "x1": "XMin", "y1": "YMin", "x2": "XMax", "y2": "YMax"}
_SCORED = {**_BOXES, "score": "Score"}

_MASKED = "masks stand in a column Mask or PredictionString, and need ImageWidth and ImageHeight"

#: Maximum number of pixels of a mask, which also limits the size of its decompressed code.
_PIXELS = 1 << 28


def titles_of(given: Given) -> list[str]:
    """Return the titles in the first line of a file."""
    first = given.head.partition(b"\n")[0].decode("utf-8", "replace").strip("\r")
    return [title.strip(' "') for title in first.split(",")]


def _sniff(given: Given) -> bool:
    """Recognise a file whose first line has Open Images' titles."""
    there = {*titles_of(given)}
    named = bool({"ImageID", "ImageId"} & there) and "PredictionString" in there
    boxed = {"ImageID", "LabelName"} <= there and ("Mask" in there or {"XMin", "YMax"} <= there)
    return not given.is_folder and (named or boxed)


def _tell(given: Given) -> Role:
    """Return "detections" for a file with scores, else "ground_truth"."""
    return "detections" if {"Score", "PredictionString"} & {*titles_of(given)} else "ground_truth"


def _titles(source: Source) -> list[str]:
    """Return the titles of an opened file."""
    return titles_of(Given(source, "detections"))  # type: ignore[arg-type]


def _columns(titles: Sequence[str], wanted: Mapping[str, str]) -> dict[str, str]:
    return {role: title for role, title in wanted.items() if title in titles}


def read_ground_truth(source: Source, reading: Reading) -> GroundTruth:
    """Read the boxes of annotations, or with ``iou_type="segm"`` the column of masks."""
    if reading.columns is not None:
        return read_csv_ground_truth(source, reading)
    columns = _columns(_titles(source), _BOXES)
    if reading.iou_type == BOXES:
        table = read_csv_ground_truth(source, replace(reading, columns=columns))
    else:
        table = _masked_ground_truth(source, reading, columns)
    return table if reading.classes is None else _named(table, descriptions(reading.classes))


def _masked_ground_truth(source: Source, reading: Reading, columns: Mapping[str, str]) -> GroundTruth:
    """Read objects with masks, from a table with the published annotations and a column ``Mask``."""
    found = read_table(source, columns, "ground truth", others=("Mask", "ImageWidth", "ImageHeight"))
    _, images = found.ids(("image_id", "image"), "images")
    told = [found.columns.get("category", images), *found.others.values()]
    # a row with only an image id stands for an image without objects
    rows = [row for row in range(len(images)) if any(cells[row] for cells in told)]
    part = found.take(rows)
    _, categories = part.ids(("category_id", "category"), "categories")
    column, boxes, absent = _masks_or_boxes(found, part, [images[row] for row in rows], rows)
    return GroundTruth.from_arrays(
        image_ids=coded([images[row] for row in rows], found.source, "image_id"),
        category_ids=coded(categories, found.source, "category_id"),
        boxes=boxes,
        areas=None if boxes is None else np.where(column.areas() > 0, column.areas(), boxes[:, 2] * boxes[:, 3]),
        shapes={MASKS: column},
        kinds=(MASKS,),
        group_of=part.groups(),
        images=coded(list(dict.fromkeys(images)), found.source, "image_id"),
        notices={**found.notices, **({"absent_masks": absent} if absent else {})},
        source=found.source,
    )


def _masks_or_boxes(
    found: Table, part: Table, images: Sequence[str], rows: Sequence[int]
) -> tuple[Any, NDArray[np.float64] | None, int]:
    """Return masks, boxes, and the number of objects without a mask. Boxes are None if all objects have masks. As in
    TensorFlow's tool, an object without a mask gets an empty mask. The empty mask has the size of another mask on the
    image or, without another mask, of a single pixel.
    """
    _check_masked(found)
    codes = found.others["Mask"]
    absent = np.array([not codes[row] for row in rows], np.bool_)
    sizes: dict[str, dict[str, Any]] = {}
    made: list[dict[str, Any]] = []
    for image, row in zip(images, rows, strict=True):
        made.append(_code(found, row) if codes[row] else {})
        if codes[row]:
            sizes.setdefault(image, made[-1])
    if not absent.any():
        return find(MASKS).given(made, found.source), None, 0  # type: ignore[misc]
    if not {"x1", "y1", "x2", "y2"} <= {*part.columns}:
        row = int(np.argmax(absent))
        place = {"source": found.source, "record": f"line {found.lines[rows[row]]}", "field": "Mask"}
        raise InputError("is missing", **place, remedy="an object needs a mask, or a box (XMin, YMin, XMax, YMax)")
    for at in np.flatnonzero(absent).tolist():
        height, width = sizes[images[at]]["size"] if images[at] in sizes else (1, 1)
        made[at] = {"size": [height, width], "counts": [height * width]}
    column: Any = find(MASKS).given(made, found.source)  # type: ignore[misc]
    boxed = part.take(np.flatnonzero(absent).tolist())
    shares = np.full((len(rows), 4), np.nan)
    shares[absent] = np.stack([boxed.numbers(name) for name in ("x1", "y1", "x2", "y2")], axis=1)
    pixels = shares[absent] * np.tile(column.sizes()[absent][:, ::-1], 2)
    boxes = np.array(column.bounds().table)
    boxes[absent] = np.concatenate((pixels[:, :2], pixels[:, 2:] - pixels[:, :2]), axis=1)
    return replace(column, shares=readonly(shares, np.float64)), boxes, int(absent.sum())


def _check_masked(found: Table, titles: Sequence[str] = ("Mask", "ImageWidth", "ImageHeight")) -> None:
    for title in titles:
        if title not in found.others:
            raise InputError("there is no such column", source=found.source, field=title, remedy=_MASKED)


def _code(found: Table, row: int) -> dict[str, Any]:
    """Return the run-length code of a row."""
    width, height, code = (found.others[title][row] for title in ("ImageWidth", "ImageHeight", "Mask"))
    return _mask(code, width, height, found.source, f"line {found.lines[row]}")


def _masks(found: Table, rows: Sequence[int]) -> list[dict[str, Any]]:
    """Return the run-length codes of some rows."""
    _check_masked(found)
    return [_code(found, row) for row in rows]


def _mask(code: str, width: str, height: str, source: str, record: str) -> dict[str, Any]:
    """Decode a mask: COCO's compressed counts, which are compressed again by zlib and encoded in base64."""
    import base64
    import zlib

    sides = [int(side) if side.isascii() and side.isdigit() and len(side) < 7 else 0 for side in (height, width)]
    if min(sides) < 1 or sides[0] * sides[1] > _PIXELS:
        value = f"{shorten(width)} x {shorten(height)}"
        raise InputError("is no size of an image", source=source, record=record, field="ImageWidth", value=value)
    place = {"source": source, "record": record, "field": "Mask"}
    if not code:
        raise InputError("is missing", **place, remedy="detections without masks are scored as boxes: --iou-type bbox")
    try:
        packed = base64.b64decode(code, validate=True)
        opened = zlib.decompressobj()
        # No valid code exceeds this limit, which protects from decompression bombs.
        counts = opened.decompress(packed, 2 * sides[0] * sides[1] + 64)
        whole = opened.eof and not opened.unused_data
        text = counts.decode("ascii")
    except (zlib.error, ValueError) as error:
        raise InputError(f"is not base64 of zlib's data: {error}", **place) from None
    if not whole:
        raise InputError("is cut short, or holds more than a mask of that size can", **place)
    return {"size": sides, "counts": text}


def read_detections(source: Source, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
    """Read detections from a table with TensorFlow's columns, or from a submission to a challenge."""
    if reading.columns is not None:
        return read_csv_detections(source, ground_truth, reading)
    titles = _titles(source)
    if "PredictionString" in titles:
        return _submission(source, titles, ground_truth, reading)
    columns = _columns(titles, _SCORED)
    if reading.iou_type == BOXES:
        return read_csv_detections(source, ground_truth, replace(reading, columns=columns))
    found = read_table(source, columns, "detections", others=("Mask", "ImageWidth", "ImageHeight"))
    _, images = found.ids(("image_id", "image"), "images")
    _, categories = found.ids(("category_id", "category"), "categories")
    if "score" not in found.columns:
        raise found.missing("score", "scores")
    rows = _Rows(images, categories, found.numbers("score"), found.lines)
    return _masked(rows, _masks(found, range(len(found.lines))), found.source, ground_truth, reading)


class _Rows(NamedTuple):
    """Columns of detections in file order: images, labels, scores and line numbers."""

    images: list[str]
    labels: list[str]
    scores: NDArray[np.float64]
    lines: Sequence[int]


def _submission(
    source: Source, titles: Sequence[str], ground_truth: GroundTruth | None, reading: Reading
) -> Detections:
    """Read a submission to a challenge: a string per image that holds, for each detection, the label, the score, and
    either XMin YMin XMax YMax or a mask.
    """
    image = "ImageID" if "ImageID" in titles else "ImageId"
    others = ("PredictionString", "ImageWidth", "ImageHeight")
    found = read_table(source, {"image": image}, "detections", others=others)
    masks = reading.iou_type != BOXES
    length = 3 if masks else 6
    _, images = found.ids(("image_id", "image"), "images")
    flat: list[str] = []
    rows: list[int] = []
    for row, text in enumerate(found.others["PredictionString"]):
        parts = text.split()
        if len(parts) % length:
            problem = f"holds {len(parts)} words, which are no groups of {length}: " + (
                "label, score and mask" if masks else "label, score, XMin, YMin, XMax, YMax"
            )
            raise InputError(problem, source=found.source, record=f"line {found.lines[row]}", field="PredictionString")
        flat += parts
        rows += [row] * (len(parts) // length)
    lines = [found.lines[row] for row in rows]
    numbers = numbers_of([flat[at::length] for at in range(1, 2 if masks else length)], lines, found.source)
    made = _Rows([images[row] for row in rows], flat[::length], numbers[:, 0], lines)
    if not masks:
        boxes = {"boxes": numbers[:, 1:], "box_format": "xyxy", "invalid_boxes": reading.invalid_boxes}
        return _detections(made, boxes, found.source, ground_truth, reading)
    _check_masked(found, ("ImageWidth", "ImageHeight"))
    sizes = [found.others[title] for title in ("ImageWidth", "ImageHeight")]
    codes = [
        _mask(code, sizes[0][row], sizes[1][row], found.source, f"line {line}")
        for code, row, line in zip(flat[2::length], rows, lines, strict=True)
    ]
    return _masked(made, codes, found.source, ground_truth, reading)


def _masked(
    rows: _Rows, masks: list[dict[str, Any]], source: str, ground_truth: GroundTruth | None, reading: Reading
) -> Detections:
    return _detections(rows, {"masks": masks}, source, ground_truth, reading)


def _detections(
    rows: _Rows, shapes: Mapping[str, Any], source: str, ground_truth: GroundTruth | None, reading: Reading
) -> Detections:
    """Return detections with image and category ids of the ground truth."""
    images, labels = coded(rows.images, source, "image_id"), coded(rows.labels, source, "category_id")
    kept = np.arange(len(rows.images))
    notices = {}
    if ground_truth is not None:
        names = match_images(images.ids.tolist(), ground_truth, source)
        missing = np.array([one is None for one in names], np.bool_)[images.codes] if names else np.zeros(0, np.bool_)
        if missing.any() and reading.unknown_images == "error":
            row = int(np.argmax(missing))
            raise unknown_image(source, f"line {rows.lines[row]}", rows.images[row])
        kept = np.flatnonzero(~missing)
        notices = {"unknown_image": int(missing.sum())} if missing.any() else {}
        images = recoded(names, images.codes[kept])
        labels = recoded(match_categories(labels.ids.tolist(), ground_truth, source), labels.codes[kept])
    taken: dict[str, Any] = {
        name: value
        if isinstance(value, str)
        else value[kept]
        if isinstance(value, np.ndarray)
        else [value[row] for row in kept.tolist()]
        for name, value in shapes.items()
    }
    if "boxes" in taken:
        taken["boxes"] = np.array(taken["boxes"], np.float64).reshape(-1, 4)
    return Detections.from_arrays(
        image_ids=images, category_ids=labels, scores=rows.scores[kept], notices=notices, source=source, **taken
    )


def _lines(source: Path, what: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line of a CSV file; blank lines are skipped."""
    data, name = read_bytes(source, what)
    try:
        text = bytes(data).decode("utf-8-sig")
        for number, row in enumerate(csv.reader(text.splitlines(), strict=True), 1):
            if any(row):
                yield number, [cell.strip() for cell in row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"is not CSV in UTF-8: {error}", source=name) from None


def descriptions(given: Any) -> dict[str, str]:
    """Return the name of each label from a file of lines ``/m/0k4j,Car`` without a header, as published."""
    if not isinstance(given, str) and not hasattr(given, "__fspath__"):
        raise OptionError("classes of Open Images must be the file of their descriptions, lines of label,name")
    made: dict[str, str] = {}
    for number, row in _lines(given, "class descriptions"):
        if row == ["LabelName", "DisplayName"]:
            continue
        place = {"source": str(given), "record": f"line {number}"}
        if len(row) != 2 or not row[0]:
            raise InputError("must be a label and its name", **place, value=",".join(row))
        if made.setdefault(row[0], row[1]) != row[1]:
            raise InputError("is another name of the label than before", **place, value=row[1])
    return made


def _named(table: GroundTruth, names: Mapping[str, str]) -> GroundTruth:
    """Return ground truth with these names of categories."""
    categories = table.categories
    called = tuple(names.get(one, name) for one, name in zip(categories.ids.tolist(), categories.names, strict=True))
    return replace(table, categories=replace(categories, names=called))


def image_labels(path: Path) -> tuple[Ids, Ids, NDArray[np.bool_]]:
    """Read a file of verified image labels. Return each line's image and label, and whether the label is present."""
    columns = {"image": "ImageID", "category": "LabelName", "score": "Confidence"}
    found = read_table(path, columns, "image labels")
    boxed = [title for title in found.titles if title in _BOXES.values() and title not in columns.values()]
    if boxed:
        raise InputError(
            "is of boxes, and not of verified labels of images",
            source=found.source,
            field=boxed[0],
            remedy="labels of images have a file of their own, as validation-annotations-human-imagelabels-boxable.csv",
        )
    _, images = found.ids(("image_id", "image"), "images")
    _, labels = found.ids(("category_id", "category"), "categories")
    if "score" not in found.columns:
        raise found.missing("score", "confidences")
    confidence = found.numbers("score")
    wrong = (confidence != 0) & (confidence != 1)
    if wrong.any():
        raise found.error(int(np.argmax(wrong)), "score", "must be 1 (verified to be there) or 0 (not to be there)")
    return coded(images, found.source, "image_id"), coded(labels, found.source, "category_id"), confidence == 1


def hierarchy(path: Path) -> Hierarchy:
    """Return the published hierarchy of labels."""
    return Hierarchy.of(*read_json(path, object, "hierarchy"))


# ---------------------------------------------------------------------------------------------------------------
# writing


def write_ground_truth(table: GroundTruth, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write a row per object, with its mask if the table has masks, and a row per image without objects."""
    columns, lost = _written(table, table)
    groups = np.zeros(len(table), np.bool_) if table.group_of is None else table.group_of
    columns["IsGroupOf"] = list(map(str, groups.astype(int).tolist()))
    alone = np.flatnonzero(np.bincount(table.images.codes, minlength=table.images.values.size) == 0)
    empty = [_cell(table, stem) for stem in np.array(stems_of(table, table), object)[alone].tolist()]
    _write(
        path, {title: cells + (empty if title == "ImageID" else [""] * len(empty)) for title, cells in columns.items()}
    )
    return {
        **lost,
        "crowd": int(table.crowd.sum()),
        "difficult": int(table.difficult.sum()),
        "areas": lost_areas(table) if MASKS not in table.shapes else 0,
        "empty_categories": unused(table.categories.codes, table.categories.ids.size),
        "image_sizes": lost_sizes(table),
    }


def write_detections(table: Detections, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write a row per detection in the columns of TensorFlow's tool, with its mask if the table has masks."""
    columns, lost = _written(table, writing.ground_truth)
    columns["Score"] = list(map(repr, table.scores.tolist()))
    check_scores(table)
    _write(path, columns)
    return lost


def _written(table: GroundTruth | Detections, truth: GroundTruth | None) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Return the columns that objects and detections share, and counts of what the format cannot hold."""
    stems = stems_of(table, truth)
    plain = table.categories.values.dtype.kind != "i"
    labels = [str(one) for one in table.categories.values.tolist()] if plain else category_names(table, truth)
    boxes, rounded = corners(table)
    columns = {
        "ImageID": [_cell(table, stems[code]) for code in table.images.codes.tolist()],
        "LabelName": [_cell(table, labels[code]) for code in table.categories.codes.tolist()],
    }
    masks = table.shapes.get(MASKS)
    if masks is not None:
        sizes = masks.sizes()  # type: ignore[attr-defined]
        own = getattr(masks, "shares", None)
        absent = np.zeros(len(table), np.bool_) if own is None else ~np.isnan(own[:, 0])
        codes = masks.masks().to_rle()  # type: ignore[attr-defined]
        columns["Mask"] = [
            "" if empty else _packed(code["counts"]) for code, empty in zip(codes, absent.tolist(), strict=True)
        ]
        columns["ImageWidth"], columns["ImageHeight"] = (list(map(str, sizes[:, at].tolist())) for at in (1, 0))
    else:
        sizes = _sizes(table, truth)
    if sizes is not None:
        shares = boxes / np.tile(sizes[:, ::-1], 2)
        rounded = int(np.count_nonzero((shares * np.tile(sizes[:, ::-1], 2) != boxes).any(axis=1)))
        boxes = shares if masks is None or own is None else np.where(absent[:, None], own, shares)
    for title, column in zip(("XMin", "YMin", "XMax", "YMax"), boxes.T, strict=True):
        columns[title] = list(map(repr, column.tolist()))
    called = isinstance(table, GroundTruth) and plain and table.category_names != tuple(labels)
    return columns, {
        "rounded_boxes": 0 if masks is not None else rounded,
        "sizes": len(table) if table.box_sizes and masks is None else 0,
        "shapes": shapes_lost(table, (MASKS,)),
        "image_ids": lost_ids(table.images.values, stems),
        "category_ids": lost_ids(table.categories.values, labels),
        "category_order": lost_order(labels, table.categories.codes) if isinstance(table, GroundTruth) else 0,
        "category_names": len(labels) if called else 0,
    }


def _sizes(table: GroundTruth | Detections, truth: GroundTruth | None) -> NDArray[np.int64] | None:
    """Return height and width of the image of each row, to normalise pixels; None if boxes are normalised already."""
    if not len(table) or seem_shares(corners(table)[0]):
        return None
    known = None if truth is None else truth.images.sizes
    own = np.zeros((len(table), 2), np.int64)
    if truth is not None and known is not None:
        place = locate(table.images.values, truth.images.values)
        own = np.where((place >= 0)[:, None], known[np.maximum(place, 0)], 0)[table.images.codes]
    if not own.all():
        boxes = corners(table)[0]
        if ((boxes >= 0) & (boxes <= 1)).all():
            return None
        row = int(np.argmin(own.all(axis=1)))
        raise InputError(
            "is of an image whose size is not known, and the format has shares of images",
            source=table.source,
            record=row,
            value=table.images.values[table.images.codes[row]].item(),
            remedy="give the sizes of images: --image-sizes, or with detections ground truth that has them",
        )
    return own


def _packed(counts: Any) -> str:
    import base64
    import zlib

    return base64.b64encode(zlib.compress(counts if isinstance(counts, bytes) else counts.encode())).decode()


def _cell(table: GroundTruth | Detections, text: str) -> str:
    """Return text for a cell; refuse text that would not round-trip."""
    if text != text.strip() or not text.isprintable() or not 1 <= len(text) <= 256:
        raise InputError("cannot be written as a cell", source=table.source, value=text)
    return text


def _write(path: Path, columns: Mapping[str, Sequence[str]]) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    name = os.fspath(path)
    write(name, compressed(out.getvalue().encode(), name))


FORMAT = register(
    Format(
        name="openimages",
        takes=("columns", "classes", "fields"),
        suffixes=ENDINGS,
        sniff=_sniff,
        read_ground_truth=read_ground_truth,
        read_detections=read_detections,
        write_ground_truth=write_ground_truth,
        write_detections=write_detections,
        grouped=True,
        tell=_tell,
        holds=(BOXES, MASKS),
        words=("Open Images' CSV", "Open Images' CSV or a submission"),
        needs_images=True,
    )
)
