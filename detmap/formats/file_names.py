"""Helpers for formats that identify images by file name and categories by name or list index.

If the ground truth has integer ids, an image is found by its file name, without folder and suffix. A name that is an
integer is taken for an id if no file has this name. Categories are found by name.
"""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from detmap import columns
from detmap.data.ids import OF_ONE_DATA_SET, Ids, Strings, index_ids, unknown_image
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, OptionError, shorten
from detmap.reading.options import Path
from detmap.shapes import find
from detmap.shapes.kinds import BOXES

#: Suffixes of image files.
ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp", ".gif")

#: Suffix of a file name; a suffix that begins with a digit, as in frame_7.25, belongs to the name.
_ENDING = re.compile(r"(?<=.)\.[A-Za-z][A-Za-z0-9]{0,7}$")


def stem(name: str) -> str:
    """Return the name of a file without folder and suffix."""
    return _ENDING.sub("", name.replace("\\", "/").rpartition("/")[2])


def stems_of(table: GroundTruth | Detections, ground_truth: GroundTruth | None) -> list[str]:
    """Return the name of the file to write for each image of a table, without folder and suffix."""
    known = ground_truth if isinstance(table, Detections) else table
    ids = table.images.values.tolist()
    names = [str(one) for one in ids]
    if table.images.values.dtype.kind != "i":
        shorter = _short_names((table if known is None else known).images.ids.tolist())
        names = [shorter.get(one, one) for one in names]
    elif known is not None:
        own = _own_stems(known)
        names = [own.get(one, name) for one, name in zip(ids, names, strict=True)]
    seen: dict[str, Any] = {}
    for one, name in zip(ids, names, strict=True):
        if not name or "/" in name or "\0" in name or name.startswith(".") or name != name.strip():
            raise InputError("an image's id cannot be the name of a file", source=table.source, value=one)
        if name in seen:
            raise InputError(
                f"the images {shorten(seen[name])} and {shorten(one)} would both be called {shorten(name)}",
                source=table.source,
            )
        seen[name] = one
    return names


def _short_names(ids: Sequence[Any]) -> dict[Any, str]:
    """Map each id to the id without the suffix of an image file; empty if no id has such a suffix, or two ids would
    become equal.
    """
    if not any(isinstance(one, str) and one.lower().endswith(ENDINGS) for one in ids):
        return {}
    pairs = [(one, stem(one) if one.lower().endswith(ENDINGS) else one) for one in ids]
    return dict(pairs) if len({name for _, name in pairs}) == len(pairs) else {}


def _own_stems(table: GroundTruth) -> dict[Any, str]:
    """Return the file names of images, without folder and suffix, by image id; empty if two images have the same file
    name.
    """
    if table.images.names is None:
        return {}
    pairs = [
        (one, stem(name)) for one, name in zip(table.images.values.tolist(), table.images.names, strict=True) if name
    ]
    return dict(pairs) if len({name for _, name in pairs}) == len(pairs) else {}


def category_names(table: GroundTruth | Detections, ground_truth: GroundTruth | None) -> list[str]:
    """Return the name of each category. Categories of detections without a name in the ground truth are named by id."""
    if isinstance(table, GroundTruth):
        names = list(table.category_names)
    else:
        known = (
            {}
            if ground_truth is None
            else dict(zip(ground_truth.categories.values.tolist(), ground_truth.category_names, strict=True))
        )
        names = [known.get(one, str(one)) for one in table.categories.values.tolist()]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError("is the name of more than one category", source=table.source, field="name", value=twice)
    return names


def resolve_images(
    names: Sequence[str], ground_truth: GroundTruth, unknown: Literal["error", "ignore"], source: str
) -> list[Any]:
    """Return the id of the image that each file is named after; None if the ground truth has no such image."""
    ids = ground_truth.images.values.tolist()
    found: list[Any]
    if ground_truth.images.values.dtype.kind == "i":
        places: dict[str, Any] = {name: one for one, name in _own_stems(ground_truth).items()}
        numbers = set(ids)

        def find(name: str) -> Any:
            return places.get(name, _number(name, numbers))

        found = [find(name) if find(name) is not None else find(stem(name)) for name in names]
    else:
        known = set(ids)
        files = {name: one for one, name in _short_names(ids).items()}
        found = [
            next((one for one in (name, stem(name), files.get(name), files.get(stem(name))) if one in known), None)
            for name in names
        ]
    if unknown == "error" and None in found:
        problem = "is not the name of an image of the ground truth"
        raise InputError(problem, source=source, value=names[found.index(None)], remedy=OF_ONE_DATA_SET)
    return found


def match_images(distinct: list[Any], ground_truth: GroundTruth, source: str) -> list[Any]:
    """Return the ground truth's image id for each given id or file name; None for unknown images."""
    if distinct and isinstance(distinct[0], int) and ground_truth.images.values.dtype.kind == "i":
        known = set(ground_truth.images.values.tolist())
        return [one if one in known else None for one in distinct]
    return resolve_images([str(one) for one in distinct], ground_truth, "ignore", source)


def match_categories(distinct: list[Any], ground_truth: GroundTruth, source: str) -> list[Any]:
    """Return the ground truth's category id for each given id or name of a category."""
    categories = ground_truth.categories
    if distinct and isinstance(distinct[0], int) and categories.ids.dtype.kind == "i":
        return distinct
    if categories.ids.dtype.kind != "i":
        ids = categories.ids.tolist()
        named = {name: one for one, name in zip(ids, categories.names, strict=True)}
        both = next((one for one in map(str, distinct) if one in ids and named.get(one, one) != one), None)
        if both is not None:
            raise InputError(
                f"is the id of one category of the ground truth, and the name of another, {shorten(named[both])}",
                source=source,
                value=both,
                remedy="rename that category",
            )
    return resolve_categories([str(one) for one in distinct], ground_truth)


def matched(
    found: dict[str, Any],
    ground_truth: GroundTruth | None,
    unknown: Literal["error", "ignore"],
    place: Callable[[int], int | str] = int,
) -> dict[str, Any]:
    """Return the arguments of `Detections.from_arrays` with image and category ids of the ground truth. Raises
    `InputError` for an unknown image; if `unknown` is "ignore", drops the detections on unknown images instead.
    ``place(row)`` returns the record's name for messages.
    """
    if ground_truth is None:
        return found
    images, categories = found["image_ids"], found["category_ids"]
    if isinstance(categories, Ids) or ground_truth.categories.ids.dtype.kind != "i":
        known, codes = _distinct(categories, "category_id", found["source"])
        found["category_ids"] = recoded(match_categories(known, ground_truth, found["source"]), codes)
    known, codes = _distinct(images, "image_id", found["source"])
    ids = match_images(known, ground_truth, found["source"])
    missing = np.array([one is None for one in ids], np.bool_)[codes]
    if not missing.any():
        return {**found, "image_ids": recoded(ids, codes)}
    if unknown == "error":
        row = int(np.argmax(missing))
        raise unknown_image(found["source"], place(row), known[codes[row]])
    rows = np.flatnonzero(~missing)
    made: dict[str, Any] = {name: np.asarray(found[name])[rows] for name in ("boxes", "scores")}
    made["image_ids"] = recoded(ids, codes[rows])
    kept, of_row = _distinct(found["category_ids"], "category_id", found["source"])
    made["category_ids"] = recoded(kept, of_row[rows])
    return {**found, **made, "notices": {**found.get("notices", {}), "unknown_image": int(missing.sum())}}


def _distinct(ids: Any, field: str, source: str) -> tuple[list[Any], NDArray[Any]]:
    """Return the distinct ids, and for each row the index of its id."""
    if not isinstance(ids, Ids):
        ids = index_ids(ids, source=source, field=field)
    return ids.ids.tolist(), ids.codes


def recoded(ids: Sequence[Any], codes: NDArray[Any]) -> Ids:
    """Return a column with the id ``ids[code]`` for each code; `ids` may contain repeated or unused ids."""
    used = np.flatnonzero(np.bincount(codes, minlength=len(ids)))
    place: dict[Any, int] = {}
    target = np.zeros(max(len(ids), 1), np.int32)
    target[used] = [place.setdefault(ids[one], len(place)) for one in used.tolist()]
    distinct = list(place)
    if distinct and isinstance(distinct[0], str):
        return Ids(columns.texts(distinct, field="id"), target[codes])
    return Ids(np.array(distinct, None if distinct else np.int64), target[codes])


def renamed(strings: Strings, name: Callable[[str], Any]) -> Strings:
    """Return a column with ``name(string)`` for each string; strings that become equal are merged."""
    places: dict[Any, int] = {}
    codes = np.array([places.setdefault(name(one), len(places)) for one in strings.values], np.int32)
    return Strings(codes[strings.codes] if len(codes) else strings.codes, list(places))


def _number(name: str, known: set[int]) -> int | None:
    number = int(name) if name.isascii() and name.isdigit() and len(name) < 20 else None
    return number if number in known else None


def resolve_categories(names: Sequence[str], ground_truth: GroundTruth) -> list[Any]:
    """Return the ground truth's id for each category, given its name or its id as text. If ids are integers, an unknown
    category gets an unused integer, otherwise its name. Detections of unknown categories are counted, but not scored.
    Raises `InputError` for a name of several categories.
    """
    by_name = dict(zip(ground_truth.category_names, ground_truth.categories.values.tolist(), strict=True))
    if len(by_name) < ground_truth.categories.ids.size:
        count = Counter(ground_truth.category_names)
        twice = next((name for name in names if count[name] > 1), None)
        if twice is not None:
            raise InputError(
                "is the name of more than one category", source=ground_truth.source, field="name", value=twice
            )
    if ground_truth.categories.values.dtype.kind != "i":
        return [by_name.get(name, name) for name in names]
    known = set(ground_truth.categories.ids.tolist())
    free = (number for number in itertools.count(1) if number not in known)
    out: list[int] = []
    for name in names:
        found = by_name.get(name)
        if found is None:
            found = _number(name, known)
        out.append(next(free) if found is None else found)
    return out


def write_folder(path: Path, files: Mapping[str, Callable[[], bytes]]) -> None:
    """Write files and subfolders into an empty or new folder. After an error, written files are removed again."""
    from detmap.system.whole_files import write

    folder = os.fspath(path)
    known = os.path.isdir(folder)
    empty_folder(folder)
    made: set[str] = set()
    written: list[str] = []
    try:
        for name, content in files.items():
            target = os.path.join(folder, name)
            inside = os.path.dirname(target)
            if inside not in made:
                _make(inside)
                made.add(inside)
            write(target, content())
            written.append(target)
    except BaseException:
        for target in written:
            with suppress(OSError):
                os.unlink(target)
        _remove_empty(folder, keep=known)
        raise


def _remove_empty(folder: str, *, keep: bool) -> None:
    """Remove the empty folders in a folder, and the folder itself unless it is to be kept."""
    for place, _, _ in os.walk(folder, topdown=False):
        if place != folder or not keep:
            with suppress(OSError):  # another process may have written into it
                os.rmdir(place)


def empty_folder(folder: str) -> None:
    """Make a folder; refuse a folder that is not empty."""
    _make(folder)
    try:
        if os.listdir(folder):
            raise OptionError(f"the folder {shorten(folder, 200)} is not empty: choose a new one")
    except OSError as error:
        raise OptionError(f"cannot write {shorten(folder, 200)}: {error.strerror}") from None


def _make(folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except FileExistsError:
        raise OptionError(f"cannot write {shorten(folder, 200)}: it is a file, where a folder is to be made") from None
    except OSError as error:
        raise OptionError(f"cannot write {shorten(folder, 200)}: {error.strerror}") from None


def shapes_lost(table: GroundTruth | Detections, held: Sequence[str]) -> int:
    """Return the number of records with shapes that a format cannot hold."""
    others = [(name, column) for name, column in table.shapes.items() if name not in (BOXES, *held)]
    there = np.zeros(len(table), np.bool_)
    for name, column in others:
        absent = find(name).absent
        there |= np.ones(len(table), np.bool_) if absent is None else ~absent(column)[0]
    return int(there.sum())


def lost_areas(table: GroundTruth) -> int:
    """Return the number of objects whose area differs from the area of their box, for formats without areas."""
    return int(np.count_nonzero(table.areas != table.shapes[BOXES].areas()))


def lost_names(table: GroundTruth) -> int:
    """Return the number of images whose id is neither their file name nor the file name without suffix."""
    pairs = zip(table.images.ids.tolist(), table.images.names or (), strict=False)
    return sum(bool(name) and one not in (name, stem(name)) for one, name in pairs)


def lost_ids(values: NDArray[Any], names: Sequence[str]) -> int:
    """Return the number of ids that differ from the names written in their place."""
    return sum(one != name for one, name in zip(values.tolist(), names, strict=True))


def unused(codes: NDArray[Any], count: int) -> int:
    """Return the number of images or categories, `count` in all, that occur in no row."""
    return int(np.count_nonzero(np.bincount(codes, minlength=count) == 0))


def lost_order(names: Sequence[str], codes: NDArray[Any]) -> int:
    """Return the number of categories that change position when the categories with objects are sorted by name."""
    used = [names[code] for code in np.unique(codes).tolist()]
    return sum(one != other for one, other in zip(used, sorted(used), strict=True))


def lost_sizes(table: GroundTruth) -> int:
    """Return the number of images with a size, for formats without sizes."""
    return 0 if table.images.sizes is None else int(table.images.sizes.all(axis=1).sum())


def lost_by_names(table: GroundTruth, names: Sequence[str], stems: Sequence[str]) -> dict[str, int]:
    """Count what is lost in formats that identify images and categories by name: their ids, the order of categories, and
    categories without objects.
    """
    return {
        "empty_categories": unused(table.categories.codes, len(names)),
        "category_ids": lost_ids(table.categories.ids, names),
        "category_order": lost_order(names, table.categories.codes),
        "image_ids": lost_ids(table.images.ids, stems),
    }


def moved(codes: NDArray[Any], names: Sequence[str]) -> int:
    """Return the number of rows that move if rows are grouped by name, in the order of names."""
    rank = np.argsort(np.argsort(np.array(names, object), kind="stable"), kind="stable") if names else codes
    order = np.argsort(rank[codes], kind="stable") if len(codes) else codes
    return int(np.count_nonzero(order != np.arange(len(codes))))


def corners(table: GroundTruth | Detections) -> tuple[NDArray[np.float64], int]:
    """Return boxes as corners, and the number of boxes whose size changes by rounding."""
    boxes = table.boxes
    if not table.box_sizes:
        return boxes, 0
    out = boxes.copy()
    out[:, 2:] += boxes[:, :2]
    return out, int(np.count_nonzero((out[:, 2:] - out[:, :2] != boxes[:, 2:]).any(axis=1)))


def check_scores(table: Detections) -> None:
    """Refuse scores that are not finite, which no reader accepts."""
    infinite = ~np.isfinite(table.scores)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise InputError("a score must be finite", source=table.source, record=row, value=float(table.scores[row]))


def by_image(table: GroundTruth | Detections) -> list[NDArray[np.int64]]:
    """Return the rows of each image, ascending."""
    order = np.argsort(table.images.codes, kind="stable")
    edges = np.searchsorted(table.images.codes[order], np.arange(table.images.values.size + 1))
    return [order[edges[i] : edges[i + 1]] for i in range(table.images.values.size)]


def grouped_by_image(table: GroundTruth | Detections) -> tuple[list[NDArray[np.int64]], int]:
    """Return the rows of each image, and the number of rows that change position. Images are in the order of their first
    rows.
    """
    codes = table.images.codes
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first[inverse.reshape(-1)], kind="stable")
    edges = np.flatnonzero(np.diff(codes[order], prepend=-1))
    rows = np.split(order, edges[1:]) if order.size else []
    return rows, int(np.count_nonzero(order != np.arange(order.size)))


def images_as_given(table: GroundTruth) -> list[int]:
    """Return the codes of images in the order in which the images were given."""
    given = table.images.order
    order: list[int] = (np.arange(table.images.ids.size) if given is None else np.argsort(given)).tolist()
    return order


def over_classes(labels: Strings, everywhere: Collection[str]) -> tuple[NDArray[np.int64], Ids, NDArray[np.bool_]]:
    """Replace each object of a class in `everywhere`, such as KITTI's DontCare, by one crowd for each other class. For
    each resulting object, return its original row, its class, and whether it is a crowd.
    """
    distinct = np.array([label in everywhere for label in labels.values], np.bool_)
    regions = distinct[labels.codes]
    plain, every = np.flatnonzero(~regions), np.flatnonzero(regions)
    known = np.flatnonzero(~distinct)
    rows = np.concatenate([plain, np.repeat(every, len(known))])
    codes = np.concatenate([labels.codes[plain], np.tile(known, len(every))])
    return rows, recoded(labels.values, codes), np.arange(len(rows)) >= len(plain)


def lost_facts(table: GroundTruth, areas: NDArray[np.float64]) -> dict[str, int]:
    """Count facts that formats without boxes cannot hold, such as flags of objects and file names of images. An area is
    counted if it differs from the area of the object's shape, given in `areas`.
    """
    return {
        "crowd": int(table.crowd.sum()),
        "difficult": int(table.difficult.sum()),
        "areas": int(np.count_nonzero(table.areas != areas)),
        "image_names": lost_names(table),
        "image_sizes": lost_sizes(table),
    }


def write_json(path: Path, document: Any, source: str) -> None:
    """Write a JSON document; numbers have the fewest digits that round-trip."""
    import msgspec

    from detmap.reading.sources import compressed
    from detmap.system.whole_files import write

    try:
        data = msgspec.json.encode(document)
    except UnicodeEncodeError:
        raise InputError("an id or a name is no text that UTF-8 can hold", source=source) from None
    name = os.fspath(path)
    write(name, compressed(data + b"\n", name))
