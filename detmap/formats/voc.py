"""PASCAL VOC: XML annotations and ``comp4_det_*_{class}.txt`` detections."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal
from xml.parsers import expat

import numpy as np

from detmap.errors import InputError
from detmap.formats._source import Source, members, name_of, read_bytes
from detmap.tables import Detections, GroundTruth, coded

_DEEPEST = 64  # elements within elements
_LONGEST = 256  # characters of a field: columns are as wide as their widest
_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_RESULTS = re.compile(r"comp\d+_det_[^_]+_(?P<name>.+)\.txt")
_FIELDS = {"name", "difficult", *(f"bndbox/{corner}" for corner in _CORNERS)}

Folder = Source | Mapping[str, bytes | str]


def read_voc(annotations: Folder, image_set: str | PathLike[str] | Iterable[str] | None = None) -> GroundTruth:
    """Read VOC's annotations.

    Parameters
    ----------
    annotations : path, bytes, file object, or mapping of file name to XML
        The folder ``Annotations`` of one XML file per image, a tar archive of it (``.tar``, ``.tar.gz``), or its
        files. An image's id is its file's name without ``.xml``.
    image_set : path or iterable of str, optional
        The images to read: a file of ``ImageSets/Main`` (its first column), or the ids. All by default.

    Returns
    -------
    GroundTruth
        Boxes by their corners, which are inclusive pixels; `areas` count pixels. One row per ``object`` that is a child of
        ``annotation``, in the order of image ids; the parts of an object are no objects.

    Raises
    ------
    InputError
        Where a file is not such XML, declares a document type or entities, or an image of the set has none.
    """
    wanted = None if image_set is None else _image_set(image_set)
    images, image_ids, names, boxes, difficult = [], [], [], [], []
    for file, data, place in members(annotations, ".xml", "annotations"):
        image = file[: -len(".xml")]
        if wanted is not None and image not in wanted:
            continue
        images.append(image)
        for name, box, hard in _objects(data, place):
            image_ids.append(image)
            names.append(name)
            boxes.append(box)
            difficult.append(hard)
    if wanted is not None and len(images) < len(wanted):
        missing = sorted(wanted - set(images))
        raise InputError(
            f"{len(missing)} images of the image set have no annotation",
            source=name_of(annotations, "annotations"),
            value=missing[0],
        )
    corners = np.array(boxes, np.float64).reshape(-1, 4)
    return GroundTruth.from_arrays(
        image_ids=coded(image_ids),
        category_ids=coded(names),
        boxes=corners,
        box_format="xyxy",
        areas=(corners[:, 2] - corners[:, 0] + 1) * (corners[:, 3] - corners[:, 1] + 1),
        difficult=np.array(difficult, np.bool_),
        images=np.array(images, str),
        source=name_of(annotations, "annotations"),
    )


def _image_set(image_set: str | PathLike[str] | Iterable[str]) -> set[str]:
    if not isinstance(image_set, str | PathLike):
        return set(image_set)
    data, name = read_bytes(Path(image_set), "image set")
    try:
        lines = bytes(data).decode().splitlines()
    except UnicodeDecodeError:
        raise InputError("is not a text file", source=name) from None
    return {line.split()[0] for line in lines if line.strip()}


def _objects(data: bytes, source: str) -> list[tuple[str, list[float], bool]]:
    """Return name, corners and difficult of every object of one file."""
    path: list[str] = []
    text: list[str] = []
    fields: dict[str, str] = {}
    found: list[tuple[str, list[float], bool]] = []

    def refuse(*_: Any) -> None:
        raise InputError(
            "declares a document type or entities", source=source, remedy="annotations need neither: remove them"
        )

    def start(tag: str, _: Any) -> None:
        path.append(tag)
        text.clear()
        if len(path) > _DEEPEST:
            raise InputError("nested too deeply", source=source)
        if path[0] != "annotation":
            raise InputError(
                "is not a VOC annotation", source=source, field=path[0], remedy="its root must be annotation"
            )
        if path == ["annotation", "object"]:
            fields.clear()

    def end(_: str) -> None:
        if path[:2] == ["annotation", "object"]:
            if len(path) == 2:
                found.append(_object(fields, source, len(found)))
            elif len(path) <= 4 and (field := "/".join(path[2:])) in _FIELDS:
                fields.setdefault(field, "".join(text).strip())
        path.pop()
        text.clear()

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text.append
    try:
        parser.Parse(data, True)
    except InputError:
        raise
    except (expat.ExpatError, LookupError, ValueError) as error:  # the latter two: encodings that are none
        raise InputError(f"is not valid XML: {error}", source=source, remedy="is the file complete?") from None
    return found


def _object(fields: Mapping[str, str], source: str, record: int) -> tuple[str, list[float], bool]:
    corners = []
    if not fields.get("name"):
        raise InputError("is missing", source=source, record=f"object {record}", field="name")
    if len(fields["name"]) > _LONGEST:
        raise InputError(
            f"is longer than {_LONGEST} characters", source=source, record=f"object {record}", field="name"
        )
    for corner in _CORNERS:
        value = fields.get(f"bndbox/{corner}")
        if value is None:
            raise InputError("is missing", source=source, record=f"object {record}", field=corner)
        corners.append(_number(value, source, f"object {record}", corner))
    if corners[2] < corners[0] or corners[3] < corners[1]:
        raise InputError(
            "the far corner lies before the near one",
            source=source,
            record=f"object {record}",
            field="bndbox",
            value=corners,
        )
    difficult = fields.get("difficult", "0")
    if difficult not in ("", "0", "1"):
        raise InputError("must be 0 or 1", source=source, record=f"object {record}", field="difficult", value=difficult)
    return fields["name"], corners, difficult == "1"


def _number(text: str | bytes, source: str, record: str, field: str) -> float:
    try:
        value = float(text) if not set(text) & {"_", ord("_")} else float("nan")  # float() takes 1_000
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise InputError("must be a finite number", source=source, record=record, field=field, value=text)
    return value


def read_voc_results(
    results: Folder, ground_truth: GroundTruth | None = None, *, unknown_images: Literal["error", "ignore"] = "error"
) -> Detections:
    """Read VOC's detections, one file per class.

    Parameters
    ----------
    results : path, bytes, file object, or mapping of file name to text
        The folder of ``comp4_det_test_{class}.txt``, a tar archive of it (``.tar``, ``.tar.gz``), or its files;
        each line holds image id, score, xmin, ymin, xmax, ymax.
    ground_truth, unknown_images
        As in `detmap.read_coco_results`.

    Returns
    -------
    Detections
        Boxes by their corners. One row per line; a class's rows in the order of its lines, which breaks ties.

    Raises
    ------
    InputError
        Where a name or a line is not of that form.
    """
    ids: list[str] = []
    names: list[str] = []
    numbers = []
    files: dict[str, str] = {}
    for file, data, place in members(results, ".txt", "results"):
        match = _RESULTS.fullmatch(file)
        if not match:
            raise InputError(
                "the file's name does not say its class", source=place, remedy="call it comp4_det_test_{class}.txt"
            )
        if match["name"] in files:
            raise InputError(
                f"is a second file for class {match['name']}, after {files[match['name']]}",
                source=place,
                remedy="keep the results of one competition and image set in the folder",
            )
        files[match["name"]] = file
        lines = [line.split() for line in data.splitlines()]
        rows = [line for line in lines if line]
        try:
            if max((len(part) for row in rows for part in row), default=0) > _LONGEST:
                raise ValueError
            column = np.array([row[1:] for row in rows], np.bytes_).reshape(len(rows), 5).astype(np.float64)
            ids += [row[0].decode() for row in rows]
            bad = (
                b"\0" in data
                or not np.isfinite(column).all()
                or (column[:, 3:] < column[:, 1:3]).any()
                or b"_" in b"".join(part for row in rows for part in row[1:])
            )
        except ValueError:
            bad = True
        if bad:
            raise _bad_line(lines, place)
        numbers.append(column)
        names += [match["name"]] * len(rows)
    table = np.concatenate(numbers)
    detections = Detections.from_arrays(
        image_ids=coded(ids),
        category_ids=coded(names),
        boxes=table[:, 1:],
        scores=table[:, 0],
        box_format="xyxy",
        source=name_of(results, "results"),
    )
    return detections if ground_truth is None else detections.on_images_of(ground_truth, unknown_images)


def _bad_line(lines: list[list[bytes]], source: str) -> InputError:
    for number, line in enumerate(lines, 1):
        if any(len(part) > _LONGEST or b"\0" in part for part in line):
            return InputError("has a field of absurd length or content", source=source, record=f"line {number}")
        if line and len(line) != 6:
            return InputError(
                f"has {len(line)} fields where 6 are expected",
                source=source,
                record=f"line {number}",
                remedy="a line is: image score xmin ymin xmax ymax",
            )
        for field, text in zip(("score", *_CORNERS), line[1:], strict=False):
            try:
                _number(text, source, f"line {number}", field)
            except InputError as error:
                return error
        if line and (float(line[4]) < float(line[2]) or float(line[5]) < float(line[3])):
            return InputError("the far corner lies before the near one", source=source, record=f"line {number}")
    return InputError("is not a text file", source=source)
