"""Ground truth and detections from a path, whichever of the detection formats it holds."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, TypeVar, cast, get_args

import numpy as np

from detmap.data.tables import Detections, GroundTruth, MissingClasses
from detmap.errors import InputError, OptionError, shorten
from detmap.formats import registry
from detmap.formats.class_maps import ClassMap, class_map_of, mapped_detections, mapped_ground_truth, without_classes
from detmap.formats.file_names import stem
from detmap.formats.image_clusters import is_file, with_clusters
from detmap.formats.image_clusters import suggested as suggested  # for callers
from detmap.formats.image_sizes import Sizes
from detmap.formats.registry import Path, Reading
from detmap.kernels import readonly
from detmap.reading import sources
from detmap.reading.opening import STANDARD_INPUT, Held, changed
from detmap.reading.opening import noted as noted  # for callers
from detmap.shapes import find
from detmap.shapes.boxes import InvalidBoxes

# They register themselves, and are listed in this order, the best known first.
# isort: off
from detmap.formats.coco import read as _coco  # noqa: F401
from detmap.formats.voc import read as _voc  # noqa: F401
from detmap.formats.yolo import read as _yolo  # noqa: F401
from detmap.formats.delimited import read as _delimited  # noqa: F401
from detmap.formats import text_lines, arrow  # noqa: F401

# isort: on

#: What `held` returns: a path, or the bytes of what can be read only once.
Source = Path | Held


def words(role: registry.Role) -> str:
    """Return what help calls the files and folders of a role."""
    return ", or ".join(one.words[role == "detections"] or one.name for one in registry.able(role))


def is_one_of_detections(path: Path) -> bool:
    """Return whether a file or folder is, as a whole, the detections of one model.

    Of a file the name says so, of a folder what is in it.
    """
    if os.path.isdir(path):
        return registry.recognise(path, "detections") is not None
    return os.fspath(path).endswith(registry.suffixes())


def held(path: Path) -> Path | Held:
    """Return a path, or what it holds where it can be read only once: a pipe, a device, standard input (``-``).

    Raises
    ------
    InputError
        Where a stream cannot be read.
    """
    return sources.held(path)


def once(paths: Iterable[Path | None]) -> None:
    """Make sure that what can be read only once is given once.

    Raises
    ------
    OptionError
        Where standard input, or one pipe, is given twice.
    """
    seen: set[object] = set()
    for path in paths:
        key = None if path is None else _stream(path)
        if key in seen:
            what = "standard input (-)" if path == STANDARD_INPUT else os.fspath(str(path))
            raise OptionError(f"{what} is given twice, and can be read only once: write it to a file")
        if key is not None:
            seen.add(key)


def check_outputs(outputs: Iterable[Path | None], inputs: Iterable[Path | None]) -> None:
    """Refuse to write over what is read, under whatever name.

    Raises
    ------
    OptionError
        Names the first file that is both.
    """
    read: set[object] = set()
    for path in inputs:
        if path is not None and path != STANDARD_INPUT:
            read.update(_identities(path))
    for path in outputs:
        if path is not None and not read.isdisjoint(_identities(path)):
            raise OptionError(
                f"{shorten(os.fspath(path), 300)} would be written over, and is to be read: choose another name"
            )


def _identities(path: Path) -> Iterator[object]:
    """Yield the path without links, and of a file what is the same under each of its names."""
    with suppress(OSError, ValueError):  # nothing is there, or no path can be like this
        yield os.path.realpath(path)
        state = os.stat(path)
        if stat.S_ISREG(state.st_mode):
            yield state.st_dev, state.st_ino


def readable_again(path: Path) -> bool:
    """Return whether a path can be read more than once: a stream cannot."""
    return _stream(path) is None


def _stream(path: Path) -> object:
    """Return what tells a stream (a pipe, a device, standard input) from others; None of files and folders."""
    if path == STANDARD_INPUT:
        return STANDARD_INPUT
    try:
        state = os.stat(path)
    except (OSError, ValueError):  # whoever reads it will say so
        return None
    return None if stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode) else (state.st_dev, state.st_ino)


def fingerprint(source: Path | Held, format: str | None = None) -> str:
    """Return the hash of a file, or of the names and contents of the files of detections in a folder.

    Files beside it that decide how it is read, as YOLO's ``data.yaml``, are counted.

    Raises
    ------
    InputError
        Where there is no such file, or it cannot be read.
    """
    own = sources.fingerprint(*_members(source, format))
    more = [sources.fingerprint(one, "") for one in beside(source, format)]
    return hashlib.sha256("\n".join([own, *more]).encode()).hexdigest() if more else own


def beside(source: Path | Held, format: str | None = None) -> Sequence[str]:
    """Return the paths of files beside detections that decide how these are read, as YOLO's ``data.yaml``.

    There are none of what is of no format that is known: whoever reads it will say so.
    """
    if isinstance(source, Held):
        return ()
    try:
        found = registry.find(source, "detections", format).beside
    except InputError:
        return ()
    return () if found is None else found(source)


def content_of(options: Mapping[str, Any]) -> list[str]:
    """Return what differs after the options of reading have changed, or the files that they name have.

    Raises
    ------
    InputError
        Where such a file cannot be read.
    """
    out = []
    for name, value in sorted(options.items()):
        is_file = isinstance(value, str | os.PathLike) and os.path.isfile(value)
        out.append(f"{name}={sources.fingerprint(value, '') if is_file else repr(value)}")
    return out


def _members(source: Path | Held, format: str | None = None) -> tuple[Path | Held, str]:
    """Return the folder that holds the files of a folder of detections, and how their names end; else the source itself."""
    if isinstance(source, Held) or not os.path.isdir(source):
        return source, ""
    found = registry.find(source, "detections", format)
    inside = os.path.join(source, found.inside)
    return (inside if found.inside and os.path.isdir(inside) else source), found.members


class Unchanged:
    """A context in which a file, or a folder's result files, must not change: they are read more than once in it."""

    def __init__(self, source: Path | Held, format: str | None = None) -> None:
        self._source, self._format = source, format
        self._before = self._stamp()

    def _stamp(self) -> object:
        source, ending = _members(self._source, self._format)
        if isinstance(source, Held):
            return None
        return [sources.stamp(source, ending), *(sources.stamp(one, "") for one in beside(self._source, self._format))]

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if (kind is None or issubclass(kind, InputError)) and self._stamp() != self._before:
            raise changed(str(self._source)) from None


def read(
    path: Path | Held,
    role: registry.Role | None = None,
    *,
    format: str | None = None,
    ground_truth: GroundTruth | None = None,
    iou_type: str = "bbox",
    image_set: Path | None = None,
    unknown_images: Literal["error", "ignore"] = "error",
    invalid_boxes: InvalidBoxes = "error",
    missing_classes: MissingClasses = "zero",
    image_facts: bool = True,
    image_sizes: Path | Mapping[str, Any] | None = None,
    classes: Path | Sequence[str] | None = None,
    class_map: ClassMap | None = None,
    columns: str | Sequence[str] | Mapping[str, str] | None = None,
    box_format: str | None = None,
    clusters: Path | Mapping[Any, Any] | None = None,
) -> GroundTruth | Detections:
    """Read ground truth or detections of any format.

    Parameters
    ----------
    path : path
        A file or a folder, compressed (gzip, zstd) too where the format is text; ``-`` is standard input.
    role : {"ground_truth", "detections"}, optional
        What it is read for. By default detections where `ground_truth` is given, else as its content says.
    format : str, optional
        The name of its format, one of `detmap.formats.FORMATS`; by default its content and its name say that.
    ground_truth : GroundTruth, optional
        With detections: whose images they are on. Formats that hold shares of an image's size, or names in place of ids,
        need it.
    iou_type : str
        Which shapes to read, with the boxes: "bbox", "segm", "keypoints", …
    image_set : path, optional
        With ground truth in VOC's XML: a file that lists the images to read. With YOLO's ``data.yaml``: the split.
    unknown_images, invalid_boxes, missing_classes : str
        As in `detmap.read_coco_results` and `detmap.read_voc_results`.
    image_facts : bool
        Whether ground truth is to say names and sizes of its images as well, where the format has them.
    image_sizes : path or mapping, optional
        Sizes of images, for formats that hold shares of them and no sizes: a table of lines ``name,width,height``, one size
        for all as "640x480" (width first), or a mapping of name to (height, width).
    classes : path or sequence of str, optional
        Names of classes, for formats that hold their numbers: a list, a file with a name a line, or ``data.yaml``.
    class_map : path or mapping, optional
        Which classes become which, by name or id; several may become one, and "" leaves a class out. A file has lines
        ``from,to``, or is a JSON object. Classes that are not in it stay as they are. Of detections that are read with
        ground truth, the classes that they become are those of the ground truth, whose names may stand for ids.
    columns : str, sequence or mapping, optional
        With CSV: names of columns by what they are (`detmap.formats.delimited.read.COLUMNS`), as a mapping or as
        "image=file,score=p"; or, of a file without a header, what its columns are in their order, None or "-" for what is
        not read, as a sequence or as "image,category,score,x1,y1,x2,y2". What is not named goes by its usual names.
    box_format : {"xyxy", "xywh"}, optional
        With lines of text: whether boxes are two corners, or corner and size. By default as the numbers suggest, which a
        notice says.
    clusters : path, str or mapping, optional
        With ground truth: which images depend on each other, as the frames of a video do. A CSV file with the columns
        ``image`` (an id, or the name of its file) and ``cluster``; the name of a field of the images, as ``"video_id"``; or
        the cluster of each image by its id. Intervals and tests then draw and exchange clusters as a whole.

    Returns
    -------
    GroundTruth or Detections

    Raises
    ------
    InputError
        As the reader of the format does, and where the format has no field for the kind of shape.
    OptionError
        For another role or format, for an option that the format does not take, and where content does not say the role.
    """
    source = path if isinstance(path, Held) else held(path)
    if role is None:
        role = "detections" if ground_truth is not None else role_of(source, format)
    check_role(role)
    if clusters is not None and role == "detections":
        raise OptionError("clusters are of the images of ground truth, not of detections")
    found = registry.find(source, role, format)
    registry.check_kind(found, iou_type, sources.name_of(source, role.replace("_", " ")))
    given = {"image_set": image_set, "classes": classes, "columns": columns, "box_format": box_format}
    registry.check_taken([found], given)
    reading = Reading(
        image_set=image_set,
        unknown_images=unknown_images,
        invalid_boxes=invalid_boxes,
        missing_classes=missing_classes,
        iou_type=iou_type,
        image_facts=image_facts,
        image_sizes=image_sizes,
        classes=classes,
        columns=columns,
        box_format=box_format,
    )
    mapping = None if class_map is None else class_map_of(class_map)
    if role == "ground_truth":
        assert found.read_ground_truth is not None
        with registry.asked(found, source):
            table = read_for(found.read_ground_truth(source, reading), iou_type)
        table = table if mapping is None else mapped_ground_truth(table, mapping)
        table = table if clusters is None else with_clusters(table, clusters, source, found.name)
        return table if image_sizes is None else with_sizes(table, image_sizes)
    assert found.read_detections is not None
    among = ground_truth if ground_truth is None or mapping is None else without_classes(ground_truth)
    with registry.asked(found, source):
        own = read_for(found.read_detections(source, among, reading), iou_type)
    return own if mapping is None else mapped_detections(own, mapping, ground_truth)


T = TypeVar("T")


def read_for(table: T, iou_type: str) -> T:
    """Return a table that knows for which kind of shape it was read, if it holds such shapes."""
    kind = find(iou_type)
    if not isinstance(table, GroundTruth | Detections) or table.kinds == (kind.name,):
        return table
    return replace(table, kinds=(kind.name,)) if kind.column_name in table.shapes else table


def concerning(path: Path | Held, role: registry.Role, given: Mapping[str, Any]) -> tuple[Path | Held, dict[str, Any]]:
    """Return what there is to read, and those options of `read` that are given and concern its format.

    Options that one of several sources takes are given for all of them.
    """
    more = {name: value for name, value in given.items() if value is not None}
    if not registry.OPTIONS.keys() & more.keys():
        return path, more
    source = path if isinstance(path, Held) else held(path)
    return source, registry.taken(registry.find(source, role, more.get("format")), more)


def check_concerning(
    sources: Sequence[tuple[Path, registry.Role, str | None]], given: Mapping[str, Any], flags: Mapping[str, str]
) -> None:
    """Refuse an option that concerns none of some sources, each with its role and its format where that is given.

    Raises
    ------
    OptionError
        Names the option.
    """
    if all(value is None for value in given.values()):
        return
    found = [
        registry.recognise(path, role) if format is None else registry.find(path, role, format)
        for path, role, format in sources
        if path != STANDARD_INPUT or format is not None
    ]
    if None not in found and len(found) == len(sources):  # what standard input holds is not known yet
        registry.check_taken([one for one in found if one is not None], given, flags)


def needs_images(path: Path, format: str | None = None) -> bool:
    """Return whether detections are read with the help of the names and sizes of images: ground truth is to say these.

    Of a stream whose format nobody says it is not known yet: it may be so.
    """
    if format is None and not readable_again(path):
        return True
    found = registry.recognise(path, "detections") if format is None else registry.find(path, "detections", format)
    return found is not None and found.needs_images


def with_sizes(table: GroundTruth, image_sizes: Path | Mapping[str, Any]) -> GroundTruth:
    """Return ground truth with the sizes of those images of which it does not know them; `image_sizes` is as in `read`.

    Images are called by the names of their files, or by their ids.
    """
    given = Sizes(image_sizes)
    known = (
        np.zeros((table.images.values.size, 2), np.int64) if table.images.sizes is None else table.images.sizes.copy()
    )
    names = [""] * len(known) if table.images.names is None else table.images.names
    for row, (one, name) in enumerate(zip(table.images.values.tolist(), names, strict=True)):
        if not known[row].all():
            known[row] = (given.get(stem(name)) if name else None) or given.get(str(one)) or (0, 0)
    return replace(table, images=replace(table.images, sizes=readonly(known, np.int64)))


def role_of(source: Source, format: str | None = None) -> registry.Role:
    """Return whether what there is to read is ground truth or detections, by its content.

    Raises
    ------
    OptionError
        Where that is not clear.
    """
    if format is None:
        fits = {role: one for role in get_args(registry.Role) if (one := registry.recognise(source, role)) is not None}
    else:
        named = registry.FORMATS.find(format)
        fits = {role: named for role in get_args(registry.Role) if getattr(named, f"read_{role}") is not None}
    if len(fits) == 1:
        return next(iter(fits))
    told: registry.Role | None = None
    if len({one.name for one in fits.values()}) == 1:
        (found, *_) = fits.values()
        with registry.asked(found, source):
            told = None if found.tell is None else found.tell(registry.Given(source, "detections"))
    if told is None:
        shown = "standard input" if isinstance(source, Held) else os.fspath(source)
        raise OptionError(f"is {shorten(shown, 200)} ground truth, or detections? Say it: role=... (--role)")
    return told


def check_role(role: str) -> None:
    """Refuse what a role cannot be.

    Raises
    ------
    OptionError
        Says what it can be.
    """
    if role not in get_args(registry.Role):
        raise OptionError(f"role must be 'ground_truth' or 'detections', not {shorten(role)}")


def write(
    table: GroundTruth | Detections, path: Path, *, format: str | None = None, ground_truth: GroundTruth | None = None
) -> dict[str, int]:
    """Write ground truth or detections in any format that can be written.

    Parameters
    ----------
    table : GroundTruth or Detections
        What to write.
    path : path
        A file, which is replaced as a whole where it is there; or, for a format of folders, a folder that is empty or not
        there yet. A name that ends in ``.gz`` or ``.zst`` is compressed.
    format : str, optional
        The name of the format; by default the end of the path's name says it.
    ground_truth : GroundTruth, optional
        With detections: what says the names of categories, and the names and sizes of images, where a format needs them.

    Returns
    -------
    dict of str to int
        What the format has no place for: codes of `detmap.formats.LOST`, each with the number of records.

    Raises
    ------
    OptionError
        Where no format is meant, it cannot be written, or the path cannot.
    InputError
        Where the table holds what the format cannot, and would be wrong without.
    """
    if not isinstance(table, GroundTruth | Detections):
        raise InputError(f"expected GroundTruth or Detections, not {type(table).__name__}")
    role: registry.Role = "ground_truth" if isinstance(table, GroundTruth) else "detections"
    found = registry.to_write(path, role, format)
    writing = registry.Writing(ground_truth=ground_truth)
    if isinstance(table, GroundTruth):
        assert found.write_ground_truth is not None
        with registry.asked(found, path):
            lost = dict(found.write_ground_truth(table, path, writing))
        if table.zero_ids is not None:  # a table holds no other ids of annotations, so that no format can write them
            lost["zero_ids"] = int(table.zero_ids.sum())
    else:
        assert found.write_detections is not None
        with registry.asked(found, path):
            lost = dict(found.write_detections(table, path, writing))
    return {code: count for code, count in lost.items() if count}


def read_ground_truth(
    path: Path | Held,
    image_set: Path | None = None,
    *,
    invalid_boxes: InvalidBoxes = "error",
    iou_type: str = "bbox",
    format: str | None = None,
    image_facts: bool = False,
    image_sizes: Path | Mapping[str, Any] | None = None,
    classes: Path | None = None,
    columns: str | None = None,
    box_format: str | None = None,
    clusters: Path | None = None,
) -> GroundTruth:
    """Read ground truth of any format; `image_set` is a file that lists the images, where the format takes one.

    Raises
    ------
    InputError
        As the reader of the format does, and where the format has no field for the kind of shape.
    OptionError
        For an image set that the format does not take. Other options that it does not take are left aside.
    """
    given = {"format": format, "classes": classes, "columns": columns, "box_format": box_format}
    source, own = concerning(path, "ground_truth", given)
    found = read(
        source,
        "ground_truth",
        iou_type=iou_type,
        image_set=image_set,
        invalid_boxes=invalid_boxes,
        image_facts=image_facts or (clusters is not None and is_file(clusters)),  # which may go by names of files
        image_sizes=image_sizes,
        clusters=clusters,
        **own,
    )
    return cast(GroundTruth, found)  # or what a plug-in makes in its place


def read_detections(
    path: Path | Held,
    ground_truth: GroundTruth | None,
    unknown_images: Literal["error", "ignore"] = "error",
    invalid_boxes: InvalidBoxes = "error",
    missing_classes: MissingClasses = "zero",
    iou_type: str = "bbox",
    format: str | None = None,
    image_sizes: Path | None = None,
    classes: Path | None = None,
    class_map: ClassMap | None = None,
    columns: str | None = None,
    box_format: str | None = None,
) -> Detections:
    """Read detections of any format.

    `missing_classes` concerns formats with a file per class; others do not say which classes they are about. Options that
    the format does not take are left aside.

    Raises
    ------
    InputError
        As the reader of the format does, and where the format has no field for the kind of shape.
    """
    given = {"format": format, "classes": classes, "columns": columns, "box_format": box_format}
    source, own = concerning(path, "detections", given)
    found = read(
        source,
        "detections",
        ground_truth=ground_truth,
        iou_type=iou_type,
        unknown_images=unknown_images,
        invalid_boxes=invalid_boxes,
        missing_classes=missing_classes,
        image_sizes=image_sizes,
        class_map=class_map,
        **own,
    )
    return cast(Detections, found)


def read_small(path: Path) -> bytes:
    """Return the bytes of a file of settings.

    Raises
    ------
    InputError
        Where it cannot be read, or is no such file for its size.
    """
    with sources.Opened(path, os.fspath(path)) as opened:
        if len(opened) > 1 << 20:
            raise InputError("is larger than 1 MiB, which no such file is", source=opened.name)
        return bytes(opened.whole())
