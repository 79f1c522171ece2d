"""PASCAL VOC: XML annotations and ``comp4_det_*_{class}.txt`` detections."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from os.path import basename, isdir
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from detmap.choices import decimal
from detmap.data.ids import Ids, coded
from detmap.data.mismatches import classes_without_results
from detmap.data.tables import Detections, GroundTruth, MissingClasses
from detmap.errors import InputError, check_allowed, relocated
from detmap.formats.file_names import ENDINGS, matched, recoded
from detmap.formats.registry import ARCHIVES, Format, Given
from detmap.plugins import later, register
from detmap.reading.options import Reading
from detmap.reading.sources import Source, members, name_of, read_bytes
from detmap.shapes.boxes import INVALID_BOXES, InvalidBoxes, inverted, negative

_DEEPEST = 64  # maximum depth of nested elements
_LONGEST = 256  # maximum number of characters of a field, because columns are as wide as their widest element
_WORTH_SCANNING = 1 << 17  # minimum size of a file in bytes for the scanner
_BLOCK = 1 << 22  # minimum number of bytes of annotations that are read at once
_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_RESULTS = re.compile(r"comp\d+_det_[^_]+_(?P<name>.+)\.txt")
_FIELDS = {"name", "difficult", *(f"bndbox/{corner}" for corner in _CORNERS)}

_FACTS = [["annotation", "filename"], ["annotation", "size", "height"], ["annotation", "size", "width"]]

Folder = Source | Mapping[str, bytes | str]

T = TypeVar("T")


def read_voc(
    annotations: Folder,
    image_set: str | PathLike[str] | Iterable[str] | None = None,
    *,
    invalid_boxes: InvalidBoxes = "error",
) -> GroundTruth:
    """Read VOC's annotations.

    Parameters
    ----------
    annotations : path, bytes, file object, or mapping of file name to XML
        The folder ``Annotations`` with one XML file per image, a tar archive of this folder (``.tar``, ``.tar.gz``), or
        the files by name. The id of an image is the name of its file without ``.xml``.
    image_set : path or iterable of str, optional
        The images to read: a file of ``ImageSets/Main``, whose first column is read, or the ids. All by default.
    invalid_boxes : {"error", "miss", "drop"}
        How boxes whose far corner lies before the near corner are treated, see `GroundTruth.from_arrays`.

    Returns
    -------
    GroundTruth
        Boxes by their corners. The protocol decides whether corners are inclusive, which changes areas. One row per
        ``object`` that is a child of ``annotation``, in the order of image ids; parts of objects are left out.

    Raises
    ------
    InputError
        For invalid XML, XML with a document type or entities, or an image of the set without a file.
    """
    wanted = None if image_set is None else image_set_of(image_set)
    check_allowed("invalid_boxes", invalid_boxes, INVALID_BOXES)
    images: list[str] = []
    places: list[str] = []
    facts: list[dict[str, str]] = []
    parts: list[_Objects] = []
    classes: dict[str, int] = {}
    for block in _blocks(annotations, wanted):
        parts.append(_read_block(block, len(images), invalid_boxes != "drop", classes, facts))
        images += [file for file, _, _ in block]
        places += [place for _, _, place in block]
    if wanted is not None and len(images) < len(wanted):
        missing = sorted(wanted - set(images))
        raise InputError(
            f"{len(missing)} images of the image set have no annotation",
            source=name_of(annotations, "annotations"),
            value=missing[0],
        )
    files, codes, corners, difficult = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    bad = negative(corners, "xyxy")
    if bad.any() and invalid_boxes == "error":
        first = int(np.argmax(bad))
        source, record = places[files[first]], f"object {first - np.searchsorted(files, files[first])}"
        count = int(np.count_nonzero(bad))
        raise inverted(corners[first], count, len(corners), None, source=source, record=record, field="bndbox")
    sizes = np.array([_size(one) for one in facts], np.int64).reshape(-1, 2)
    file_names = tuple(one.get("filename", "") for one in facts)
    made = GroundTruth.from_arrays(
        image_ids=recoded(images, files),
        category_ids=recoded(list(classes), codes),
        boxes=corners,
        box_format="xyxy",
        difficult=difficult,
        images=np.array(images, str),
        image_sizes=sizes if sizes.any() else None,
        invalid_boxes=invalid_boxes,
        source=name_of(annotations, "annotations"),
    )
    if not any(file_names):
        return made
    order = np.argsort(np.array(images, str), kind="stable").tolist()
    return replace(made, images=replace(made.images, names=tuple(file_names[i] for i in order)))


class _Objects(NamedTuple):
    """Objects in the order of their files: file and class as indices, corners, and the flag difficult."""

    files: NDArray[np.int64]
    classes: NDArray[np.int64]
    corners: NDArray[np.float64]
    difficult: NDArray[np.bool_]


#: An annotation: the image, the content of the file, and its name for messages.
_Annotation = tuple[str, bytes, str]


def _blocks(annotations: Folder, wanted: set[str] | None) -> Iterator[list[_Annotation]]:
    """Yield annotations of the `wanted` images in blocks of about `_BLOCK` bytes."""
    block: list[_Annotation] = []
    size = 0
    try:
        for file, data, place in members(annotations, ".xml", "annotations"):
            image = file[: -len(".xml")]
            if wanted is not None and image not in wanted:
                continue
            block.append((image, data, place))
            size += len(data)
            if size >= _BLOCK:
                yield block
                block, size = [], 0
    except InputError:
        yield block  # so that an error about an earlier file comes first
        raise
    yield block


def _read_block(
    block: Sequence[_Annotation], first: int, finite: bool, classes: dict[str, int], facts: list[dict[str, str]]
) -> _Objects:
    """Read annotations; `first` is the index of the block's first file among all files. Append the facts about each
    image to `facts`, and number new `classes`.
    """
    found, plain, own_facts = _plain_objects(block, classes)
    rows = []
    for file in np.flatnonzero(~plain).tolist():
        _, data, place = block[file]
        own_facts[file].clear()
        rows += [(file, *one) for one in _objects(data, place, finite, own_facts[file])]
    facts += own_facts
    if rows:
        files, names, corners, difficult = zip(*rows, strict=True)
        others = _Objects(
            np.array(files, np.int64),
            np.array([classes.setdefault(name, len(classes)) for name in names], np.int64),
            np.array(corners, np.float64),
            np.array(difficult, np.bool_),
        )
        order = np.argsort(np.concatenate([found.files, others.files]), kind="stable")
        found = _Objects._make(np.concatenate(pair)[order] for pair in zip(found, others, strict=True))
    return found._replace(files=found.files + first)


def _plain_objects(
    block: Sequence[_Annotation], classes: dict[str, int]
) -> tuple[_Objects, NDArray[np.bool_], list[dict[str, str]]]:
    """Read the annotations that are plain XML with usual values. Return their objects, a mask of the annotations that
    were read, and the facts about each image. `_objects` reads all other annotations, and raises their errors.
    """
    from detmap.reading.markup import Elements  # imports the scanner

    elements = Elements([data for _, data, _ in block])
    roots = elements.roots("annotation")
    objects = elements.inside("object", roots)
    sizes, boxes = elements.inside("size", roots), elements.inside("bndbox", objects)
    facts_at = [elements.inside("filename", roots), *(elements.inside(side, sizes) for side in ("height", "width"))]
    fact_rows = np.sort(np.concatenate(facts_at))
    leaves, fields = [fact_rows], {}
    for name in ("name", "difficult"):
        rows = elements.inside(name, objects)
        fields[name] = elements.first(rows, elements.parents[rows], objects)
        leaves.append(rows)
    for name in _CORNERS:
        rows = elements.inside(name, boxes)
        fields[name] = elements.first(rows, elements.parents[elements.parents[rows]], objects)
        leaves.append(rows)
    plain = np.zeros(len(block), np.bool_)
    plain[elements.files(roots)] = True

    def usual(good: NDArray[np.bool_], rows: NDArray[np.int64]) -> None:
        plain[elements.files(rows[~good])] = False

    for rows in leaves:
        usual(elements.have_text(rows), rows)
    for name, rows in fields.items():
        if name != "difficult":
            usual(rows >= 0, objects)
    owned = plain[elements.files(objects)]
    objects, fields = objects[owned], {name: rows[owned] for name, rows in fields.items()}
    corners = np.empty((len(objects), 4))
    for k, name in enumerate(_CORNERS):
        corners[:, k], good = elements.numbers(fields[name])
        usual(good, objects)
    names = elements.strings(fields["name"])
    called = [name.strip() for name in names.values]
    usual(np.array([0 < len(name) <= _LONGEST for name in called], np.bool_)[names.codes], objects)
    difficult = np.zeros(len(objects), np.bool_)
    flagged = np.flatnonzero(fields["difficult"] >= 0)
    flags = elements.strings(fields["difficult"][flagged])
    stripped = [flag.strip() for flag in flags.values]
    usual(np.array([flag in ("", "0", "1") for flag in stripped], np.bool_)[flags.codes], objects[flagged])
    difficult[flagged] = np.array([flag == "1" for flag in stripped], np.bool_)[flags.codes]
    files = elements.files(objects)
    kept = plain[files]
    of_name = np.array([classes.setdefault(name, len(classes)) for name in called], np.int64)
    found = _Objects(files[kept], of_name[names.codes[kept]], corners[kept], difficult[kept])
    facts: list[dict[str, str]] = [{} for _ in block]
    usable = fact_rows[plain[elements.files(fact_rows)]]
    for row, file in zip(usable.tolist(), elements.files(usable).tolist(), strict=True):
        facts[file].setdefault(elements.name(row), elements.text(row).strip()[:_LONGEST])
    return found, plain, facts


def image_set_of(image_set: str | PathLike[str] | Iterable[str]) -> set[str]:
    """Return the images listed in a file, one per line, or given by id."""
    if not isinstance(image_set, str | PathLike):
        wanted = list(image_set) if isinstance(image_set, Iterable) else [None]
        if not all(isinstance(image, str) for image in wanted):
            raise InputError("expected a path, or the ids of images, which are strings", source="image_set")
        return {image for image in wanted if image is not None}
    data, name = read_bytes(Path(image_set), "image set")
    try:
        lines = bytes(data).decode().splitlines()
    except UnicodeDecodeError:
        raise InputError("is not a text file", source=name) from None
    return {line.split()[0] for line in lines if line.strip()}


def among_image_set(files: dict[str, T], reading: Reading, source: str) -> dict[str, T]:
    """Return the files of the images in the image set, or all files if none is given. Each image must have a file."""
    if reading.image_set is None:
        return files
    wanted = image_set_of(reading.image_set)
    missing = sorted(wanted - files.keys())
    if missing:
        raise InputError(f"{len(missing)} images of the image set have no labels", source=source, value=missing[0])
    return {image: held for image, held in files.items() if image in wanted}


def _size(facts: Mapping[str, str]) -> tuple[int, int]:
    """Return height and width of an image, zeros if unknown."""
    height, width = (facts.get(side, "") for side in ("height", "width"))
    good = all(side.isascii() and side.isdigit() and len(side) < 10 for side in (height, width))
    return (int(height), int(width)) if good else (0, 0)


def _objects(data: bytes, source: str, finite: bool, facts: dict[str, str]) -> list[tuple[str, list[float], bool]]:
    """Return name, corners and difficult flag of every object of one file, and store facts about its image."""
    path: list[str] = []
    text: list[str] = []
    fields: dict[str, str] = {}
    found: list[tuple[str, list[float], bool]] = []

    def refuse(*_: Any) -> None:
        raise InputError(
            "declares a document type or entities", source=source, remedy="annotations need neither: remove them"
        )

    def start(tag: str, _: Any) -> None:
        if "/".join(path[2:]) in _FIELDS and path[:2] == ["annotation", "object"]:
            raise InputError("holds an element where text belongs", source=source, field=path[-1], value=tag)
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
                found.append(_object(fields, source, len(found), finite))
            elif len(path) <= 4 and (field := "/".join(path[2:])) in _FIELDS:
                fields.setdefault(field, "".join(text).strip())
        elif path in _FACTS:
            facts.setdefault(path[-1], "".join(text).strip()[:_LONGEST])
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
    except (expat.ExpatError, LookupError, ValueError, Warning) as error:  # LookupError: unknown encodings
        raise InputError(f"is not valid XML: {error}", source=source, remedy="is the file complete?") from None
    return found


def _object(fields: Mapping[str, str], source: str, record: int, finite: bool) -> tuple[str, list[float], bool]:
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
        corners.append(_number(value, source, f"object {record}", corner, finite))
    difficult = fields.get("difficult", "0")
    if difficult not in ("", "0", "1"):
        raise InputError("must be 0 or 1", source=source, record=f"object {record}", field="difficult", value=difficult)
    return fields["name"], corners, difficult == "1"


def _number(text: str | bytes, source: str, record: str, field: str, finite: bool = True) -> float:
    try:
        value = decimal(text)
    except ValueError:
        value = None
    if value is None or (finite and not np.isfinite(value)):
        raise InputError("must be a finite number", source=source, record=record, field=field, value=text)
    return value


def class_of(path: str) -> str | None:
    """Return the class that is part of the name of a file of results; None if the name has another form."""
    match = _RESULTS.fullmatch(basename(path))
    return match["name"] if match else None


def read_voc_results(
    results: Folder,
    ground_truth: GroundTruth | None = None,
    *,
    unknown_images: Literal["error", "ignore"] = "error",
    invalid_boxes: InvalidBoxes = "error",
    missing_classes: MissingClasses = "zero",
) -> Detections:
    """Read VOC's detections, one file per class.

    Parameters
    ----------
    results : path, bytes, file object, or mapping of file name to text
        The folder with a file ``comp4_det_test_{class}.txt`` per class, a tar archive of this folder (``.tar``,
        ``.tar.gz``), the files by name, or the path of one file. Each line holds image id, score, xmin, ymin, xmax,
        ymax. Other files with the suffix ``.txt`` are ignored and counted.
    ground_truth, unknown_images
        As in `detmap.read_coco_results`.
    invalid_boxes : {"error", "miss", "drop"}
        How boxes whose far corner lies before the near corner are treated, see `Detections.from_arrays`.
    missing_classes : {"zero", "error", "skip"}
        How classes with objects but without a file of results are treated: "zero" gives AP 0, "skip" leaves them out of
        the result, both with a notice.

    Returns
    -------
    Detections
        Boxes by their corners. One row per line. The order of the lines is kept, and breaks ties of scores.

    Raises
    ------
    InputError
        For an invalid line, if no file has such a name, or for a missing class if `missing_classes` is "error".
    """
    check_allowed("invalid_boxes", invalid_boxes, INVALID_BOXES)
    check_allowed("missing_classes", missing_classes, get_args(MissingClasses))
    files: dict[str, str] = {}
    unread: list[str] = []
    read: list[tuple[str, _Results]] = []
    first: tuple[str, str, Any] | None = None  # the first box of negative size: file, line, corners
    inversions = 0
    for file, data, place in _result_files(results):
        name = class_of(file)
        if name is None:
            unread.append(place)
            continue
        if name in files:
            raise InputError(
                f"is a second file for class {name}, after {files[name]}",
                source=place,
                remedy="keep the results of one competition and image set in the folder",
            )
        files[name] = file
        # The scanner reads large and plain files; other files are read word by word, so that errors name the line.
        scanned = _scanned(data) if len(data) >= _WORTH_SCANNING else None
        found = _split(data, place, invalid_boxes != "drop") if scanned is None else scanned
        inversion = negative(found.numbers[:, 1:], "xyxy")
        if inversion.any():
            inversions += int(np.count_nonzero(inversion))
            row = int(np.argmax(inversion))
            first = first or (*_line([(place, found)], row), found.numbers[row, 1:])
        read.append((place, found))
    if unread and not files:
        raise InputError(
            "the file's name does not say its class", source=unread[0], remedy="call it comp4_det_test_{class}.txt"
        )
    table = np.concatenate([found.numbers for _, found in read])
    if first and invalid_boxes == "error":
        raise inverted(first[2], inversions, len(table), None, source=first[0], record=first[1])
    rows = {name: len(found.numbers) for name, (_, found) in zip(files, read, strict=True) if len(found.numbers)}
    names = coded(list(rows))
    columns: dict[str, Any] = {
        "image_ids": _images(found for _, found in read),
        "category_ids": Ids(names.ids, np.repeat(names.codes, list(rows.values()))),
        "boxes": table[:, 1:],
        "scores": table[:, 0],
        "notices": {"unread_files": len(unread)},
        "source": name_of(results, "results"),
    }
    if ground_truth is not None and not _of_voc(ground_truth):  # resolve images and classes by name
        with relocated(partial(_line, read)):
            columns = matched(columns, ground_truth, unknown_images)
    made = Detections.from_arrays(**columns, box_format="xyxy", invalid_boxes=invalid_boxes)
    detections = replace(made, classes=tuple(files), missing_classes=missing_classes)
    if ground_truth is None:
        return detections
    with relocated(partial(_line, read)) if len(detections) == len(table) else nullcontext():
        detections = detections.on_images_of(ground_truth, unknown_images)
    classes_without_results(ground_truth, detections)  # raises an error if missing classes are not allowed
    return detections


def _of_voc(ground_truth: GroundTruth) -> bool:
    """Return whether ids are like VOC's: names of classes, and names of images without suffix."""
    images, categories = ground_truth.images.ids, ground_truth.categories
    if "i" in (images.dtype.kind, categories.ids.dtype.kind) or categories.ids.tolist() != list(categories.names):
        return False
    return not any(one.lower().endswith(ENDINGS) for one in images.tolist())


class _Results(NamedTuple):
    """The lines of a file of results."""

    #: The image of each line as an index into `images`; shape (n,).
    codes: NDArray[np.int32]
    #: The ids of the images in order of first appearance.
    images: list[str]
    #: Score and corners; shape (n, 5).
    numbers: NDArray[np.float64]
    #: The number of each line, from 1; None for consecutive numbers, as in files without blank lines.
    lines: list[int] | None


def _scanned(data: bytes) -> _Results | None:
    """Return the scanner's result; None if a line is blank, too long, or not plain."""
    from detmap.reading.scanner import scan_voc_results

    feeds = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
    lengths = np.diff(feeds, prepend=-1, append=len(data)) - 1
    if lengths.max() > _LONGEST:  # a word of the line may be too long
        return None
    found = scan_voc_results(data)
    if found is None or len(found.numbers) != feeds.size + (lengths[-1] > 0):
        return None
    try:
        return _Results(found.image, [image.decode() for image in found.images], found.numbers, None)
    except UnicodeDecodeError:
        return None


def _split(data: bytes, source: str, finite: bool) -> _Results:
    """Read a file of results word by word."""
    lines = [line.split() for line in data.splitlines()]
    rows = [line for line in lines if line]
    finite_columns = slice(None) if finite else slice(1)  # else check only the score
    places: dict[str, int] = {}
    try:
        if max((len(part) for row in rows for part in row), default=0) > _LONGEST:
            raise ValueError
        numbers = np.array([row[1:] for row in rows], np.bytes_).reshape(len(rows), 5).astype(np.float64)
        codes = np.array([places.setdefault(row[0].decode(), len(places)) for row in rows], np.int32)
        bad = (
            b"\0" in data
            or not np.isfinite(numbers[:, finite_columns]).all()
            or b"_" in b"".join(part for row in rows for part in row[1:])
        )
    except ValueError:
        bad = True
    if bad:
        raise _bad_line(lines, source, finite)
    numbered = None if len(rows) == len(lines) else [n for n, line in enumerate(lines, 1) if line]
    return _Results(codes, list(places), numbers, numbered)


def _images(files: Iterable[_Results]) -> Ids:
    """Return the image of every line of all files."""
    places: dict[str, int] = {}
    codes = [
        np.array([places.setdefault(image, len(places)) for image in one.images], np.int32)[one.codes] for one in files
    ]
    return Ids(coded(list(places)).ids, np.concatenate(codes))


def _line(files: list[tuple[str, _Results]], row: int) -> tuple[str, str]:
    """Return the file and the line of a row; rows are counted over all files."""
    for place, found in files:
        if row < len(found.numbers):
            return place, f"line {row + 1 if found.lines is None else found.lines[row]}"
        row -= len(found.numbers)
    raise IndexError(row)


def _result_files(results: Folder) -> Iterator[tuple[str, bytes, str]]:
    """Yield name, content and path of the files of results, or of a single given file."""
    if isinstance(results, str | PathLike) and class_of(fspath(results)) is not None and not isdir(results):
        data, name = read_bytes(results, "results")
        yield basename(name), bytes(data), name
    else:
        yield from members(results, ".txt", "results")


def _bad_line(lines: list[list[bytes]], source: str, finite: bool) -> InputError:
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
                _number(text, source, f"line {number}", field, finite or field == "score")
            except InputError as error:
                return error
    return InputError("is not a text file", source=source)


_IN_FOLDER = {
    "ground_truth": re.compile(r".*\.xml", re.IGNORECASE),
    "detections": re.compile(r"comp.*_det_.*\.txt", re.IGNORECASE),
}


def _sniff(given: Given) -> bool:
    if given.is_folder or given.is_archive:
        named = any(map(_IN_FOLDER[given.role].fullmatch, given.names))
        # The first files of an archive may be images, so that no XML is among the names.
        return named or (given.is_archive and not any(name.lower().endswith(".txt") for name in given.names))
    return class_of(given.name) is not None


def _read_detections(source: Source, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
    return read_voc_results(
        source,
        ground_truth,
        unknown_images=reading.unknown_images,
        invalid_boxes=reading.invalid_boxes,
        missing_classes=reading.missing_classes,
    )


FORMAT = register(
    Format(
        name="voc",
        takes=("image_set", "missing_classes"),
        suffixes=ARCHIVES,
        sniff=_sniff,
        read_ground_truth=lambda source, reading: read_voc(
            source, reading.image_set, invalid_boxes=reading.invalid_boxes
        ),
        read_detections=_read_detections,
        write_ground_truth=later("detmap.formats.voc.write", "write_ground_truth"),
        write_detections=later("detmap.formats.voc.write", "write_detections"),
        words=("a folder or tar archive of VOC's XML", "VOC's comp4_det_*_{class}.txt: a folder, archive or one file"),
        needs_images=True,
        members=".txt",
    )
)
