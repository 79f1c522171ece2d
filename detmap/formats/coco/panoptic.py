"""COCO's panoptic format: a JSON file with the segments of every image, beside a folder of label maps as PNG files."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.data.segments import Classes, LabelMap, SegmentedImages, check_id
from detmap.errors import InputError, OptionError, shorten
from detmap.formats.image_clusters import clusters_of
from detmap.reading.options import Path
from detmap.reading.png import label_maps
from detmap.reading.sources import name_of, read_bytes
from detmap.reading.typed_json import UNREADABLE, read_json, refused

#: The source of label maps: a folder of PNG files, or arrays by image id.
Maps = str | os.PathLike[str] | Mapping[Any, Any]

#: Largest segment id that three bytes can hold.
_LARGEST_IN_PNG = 2**24 - 1


class _Segment(msgspec.Struct, gc=False):
    id: int
    category_id: int | str
    area: float | None = None
    iscrowd: int | None = None


class _Annotation(msgspec.Struct, gc=False):
    image_id: int | str
    segments_info: list[_Segment]
    file_name: str | None = None


class _Category(msgspec.Struct, gc=False):
    id: int | str
    isthing: int | None = None
    name: str = ""


class _GroundTruth(msgspec.Struct, gc=False):
    annotations: list[_Annotation]
    categories: list[_Category]


class _Predictions(msgspec.Struct, gc=False):
    annotations: list[_Annotation]


def read_panoptic(source: Any, maps: Maps | None = None, *, predictions: bool = False) -> SegmentedImages:
    """Read a panoptic file.

    Parameters
    ----------
    source : path, bytes, or mapping
        The JSON: a file, bytes, or the parsed document.
    maps : path or mapping of image id to array, optional
        The folder of the label maps, or a label map for each image id. A label map holds segment ids, as integers of
        shape (H, W), or colours, as uint8 of shape (H, W, 3). By default the folder that is named like the JSON file,
        without ``.json``.
    predictions : bool
        Whether the file holds predictions, which have no categories.

    Returns
    -------
    SegmentedImages
        Label maps are read lazily.

    Raises
    ------
    InputError
        For JSON of another format, or if the ground truth repeats an image.
    OptionError
        If the folder does not exist.
    """
    role = "predictions" if predictions else "ground truth"
    name = name_of(source, role)
    document = _document(source, name, _Predictions if predictions else _GroundTruth)
    notices: dict[str, int] = {}
    rows = _by_image(document.annotations, name, predictions, notices)
    if isinstance(maps, Mapping):
        files: Mapping[Any, Any] | list[str] = maps
        largest = None
    else:
        folder = folder_of(source, maps, predictions)
        files = [_path(folder, row, name) for row in rows]
        largest = _LARGEST_IN_PNG
    segments = [_distinct(row, name, largest, notices) for row in rows]
    flat = [one for found in segments for one in found]
    crowd = np.array([one.iscrowd == 1 for one in flat], np.bool_)
    if not predictions and (missing := sum(one.iscrowd is None for one in flat)):
        notices["missing_iscrowd"] = missing
    ids = tuple(row.image_id for row in rows)
    return SegmentedImages(
        source=name,
        image_ids=ids,
        starts=np.cumsum([0, *map(len, segments)], dtype=np.int64),
        ids=np.array([one.id for one in flat], np.int64),
        category_ids=tuple(one.category_id for one in flat),
        areas=_areas(flat, segments, rows, name) if not predictions else np.full(len(flat), np.nan),
        crowd=crowd,
        label_maps=_Arrays(files, ids, role) if isinstance(files, Mapping) else _Files(files, role),
        classes=None if predictions else _classes(document.categories, name),
        notices=notices,
    )


def is_panoptic(path: Path) -> bool:
    """Return whether a file begins like COCO's panoptic JSON; False if the file cannot be read."""
    try:
        with open(path, "rb") as file:
            head = file.read(1 << 20)
    except OSError:
        return False
    return b'"segments_info"' in head and head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{"


def with_clusters(images: SegmentedImages, clusters: Path | Mapping[Any, Any]) -> SegmentedImages:
    """Add clusters of images to ground truth, from a file or from a mapping of image ids to clusters."""
    return replace(images, clusters=clusters_of(clusters, np.array(images.image_ids), {}))


def content_of(images: SegmentedImages) -> str:
    """Return the hash (SHA-256) of the segments and the label maps; label maps in files are hashed by their bytes."""
    label_maps: Any = images.label_maps
    whole = hashlib.sha256(repr((images.image_ids, images.category_ids, images.notices)).encode())
    columns = [images.starts, images.ids, images.areas, images.crowd]
    if images.classes is not None:
        whole.update(repr(images.classes[:2]).encode())
        columns.append(images.classes.things)
    if images.clusters is not None:
        whole.update(repr(images.clusters.tolist()).encode())
    for column in columns:
        whole.update(column.tobytes())
    for image in range(len(images.image_ids)):
        whole.update(label_maps.content(image))
    return whole.hexdigest()


class _Files:
    """Label maps from PNG files."""

    def __init__(self, paths: Sequence[str], role: str) -> None:
        self.paths, self.role = paths, role

    def __call__(self, images: Sequence[int]) -> Callable[[], list[tuple[LabelMap, str]]]:
        files = [self._read(image) for image in images]
        return lambda: list(zip(label_maps(files), [name for _, name in files], strict=True))

    def content(self, image: int) -> bytes:
        """Return the hash of the file of an image."""
        return hashlib.sha256(self._read(image)[0]).digest()

    def _read(self, image: int) -> tuple[Any, str]:
        path = self.paths[image]
        if os.path.isfile(path):
            return read_bytes(path, "label map")
        if not os.path.exists(path):
            flag = "--gt-folder" if self.role == "ground truth" else "--pred-folder"
            raise InputError(
                f"no such label map of the {self.role}",
                source=path,
                remedy=f"is this their folder? Else name it ({flag})",
            )
        raise InputError(
            "is not a file", source=path, remedy="label maps are PNG files"
        )  # reading a pipe may never end


class _Arrays:
    """Label maps from arrays by image id."""

    def __init__(self, maps: Mapping[Any, Any], image_ids: Sequence[Any], role: str) -> None:
        self.maps, self.image_ids, self.role = maps, image_ids, role

    def __call__(self, images: Sequence[int]) -> Callable[[], list[tuple[LabelMap, str]]]:
        return lambda: [self._made(image) for image in images]

    def _made(self, image: int) -> tuple[LabelMap, str]:
        name = f"label map of image {shorten(self.image_ids[image])} ({self.role})"
        if self.image_ids[image] not in self.maps:
            raise InputError("is missing", source=name, remedy="give an array for each image id")
        return LabelMap.of(self.maps[self.image_ids[image]], name), name

    def content(self, image: int) -> bytes:
        """Return the hash of an image's run-length encoded label map."""
        made = self._made(image)[0]
        return hashlib.sha256(repr(made.shape).encode() + made.ends.tobytes() + made.ids.tobytes()).digest()


def _document(source: Any, name: str, of: Any) -> Any:
    """Return the decoded JSON."""
    remedy = "see COCO's panoptic format"
    if of is _GroundTruth:
        remedy += "; predictions alone have no categories: are the arguments swapped?"
    if not isinstance(source, Mapping):
        return read_json(source, of, name, remedy)[0]
    try:
        return msgspec.convert(source, of)
    except UNREADABLE as error:
        raise refused(error, name, remedy=remedy) from None


def _by_image(
    annotations: Sequence[_Annotation], name: str, predictions: bool, notices: dict[str, int]
) -> list[_Annotation]:
    """Return one annotation per image; of several predictions, the last one is taken, as in panopticapi."""
    found = {row.image_id: row for row in annotations}
    twice = len(annotations) - len(found)
    if twice and not predictions:
        times = Counter(row.image_id for row in annotations)
        image = next(image for image, number in times.items() if number > 1)
        raise InputError("is annotated twice", source=name, record=f"image {shorten(image)}", remedy="keep one of them")
    if len({isinstance(image, str) for image in found}) > 1:
        raise InputError(
            "ids of images are integers and strings", source=name, field="image_id", remedy="write one kind"
        )
    notices["repeated_images"] = twice
    return list(found.values())


def _distinct(row: _Annotation, name: str, largest: int | None, notices: dict[str, int]) -> list[_Segment]:
    """Return the segments of an image; if two segments have the same id, the last segment is taken, as in panopticapi."""
    found = {one.id: one for one in row.segments_info}
    for extreme in (min(found), max(found)) if found else ():
        check_id(extreme, name, row.image_id, *([] if largest is None else [largest]))
    if len(found) < len(row.segments_info):
        notices["repeated_segments"] = notices.get("repeated_segments", 0) + len(row.segments_info) - len(found)
    return list(found.values())


def _areas(
    flat: Sequence[_Segment], segments: Sequence[Sequence[_Segment]], rows: Sequence[_Annotation], name: str
) -> NDArray[np.float64]:
    """Return the areas, NaN if missing; raise `InputError` for a negative or non-finite area."""
    areas = np.array([np.nan if one.area is None else one.area for one in flat], np.float64)
    said = np.array([one.area is not None for one in flat], np.bool_)
    bad = np.flatnonzero(said & ~((areas >= 0) & (areas < np.inf)))
    if bad.size:
        image = int(np.searchsorted(np.cumsum([len(found) for found in segments]), bad[0], "right"))
        raise InputError(
            f"segment {flat[bad[0]].id} has an area that is no number from 0 on",
            source=name,
            record=f"image {shorten(rows[image].image_id)}",
            field="area",
            value=flat[bad[0]].area,
        )
    return areas


def _classes(categories: Sequence[_Category], name: str) -> Classes:
    """Return the categories; if two categories have the same id, the last category is taken, as in panopticapi."""
    found = {one.id: one for one in categories}
    for one in found.values():
        if one.isthing is None:
            raise InputError(
                "is missing",
                source=name,
                record=f"category {shorten(one.id)}",
                field="isthing",
                remedy="write 1 for things, 0 for stuff",
            )
    names = tuple(one.name or str(one.id) for one in found.values())
    things = np.array([one.isthing == 1 for one in found.values()], np.bool_)
    return Classes(tuple(found), names, things)


def folder_of(source: Any, given: str | os.PathLike[str] | None, predictions: bool) -> str:
    """Return the folder of the label maps; raise `OptionError` if there is none."""
    flag, role = ("--pred-folder", "predictions") if predictions else ("--gt-folder", "ground truth")
    if given is None and not isinstance(source, str | os.PathLike):
        raise OptionError(f"the label maps of the {role} are needed: a folder, or a mapping of image ids to arrays")
    folder = os.fspath(source).replace(".json", "") if given is None else os.fspath(given)
    if not os.path.isdir(folder):
        raise OptionError(f"there is no folder {shorten(folder)} with the label maps of the {role}; name it ({flag})")
    return folder


def _path(folder: str, row: _Annotation, name: str) -> str:
    """Return the path of an image's label map; raise `InputError` if the path leads out of the folder."""
    file = row.file_name
    problem = None
    if file is None:
        problem = "is missing"
    elif os.path.isabs(file) or ".." in file.replace("\\", "/").split("/") or "\0" in file or not file:
        problem = "is no file in the folder of label maps"
    if problem is not None or file is None:
        raise InputError(
            problem or "is missing", source=name, record=f"image {shorten(row.image_id)}", field="file_name", value=file
        )
    return os.path.join(folder, file)
