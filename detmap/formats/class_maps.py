"""Class maps: rename, merge or drop the classes of a file, by name or id."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.federated import CategoryLists
from detmap.data.ids import Categories, index_ids
from detmap.data.mismatches import classes_without_results
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, OptionError, is_id
from detmap.formats.file_names import recoded, resolve_categories
from detmap.kernels import readonly
from detmap.reading.options import Path
from detmap.reading.sources import read_bytes

#: Maps the name or id of a class to the name or id of its replacement. The value "" drops the class.
ClassMap = Path | Mapping[Any, Any]

_MOST = 1 << 20
_HEADERS = ("from", "source", "class", "name")


def class_map_of(given: ClassMap) -> dict[str, str]:
    """Return a class map from a mapping or a file. Raises `InputError` for an invalid file or a repeated class,
    `OptionError` for other types.

    A file holds a JSON object, or text with a line ``from,to`` per class. A semicolon or tab may replace the comma.
    """
    if isinstance(given, Mapping):
        return {str(one): "" if other is None else str(other) for one, other in given.items()}
    if not isinstance(given, str | os.PathLike):
        raise OptionError(f"class_map must be a mapping or the path of a file, not {type(given).__name__}")
    data, name = read_bytes(given, "class map")
    if len(data) > _MOST:
        raise InputError("is larger than 1 MiB, which no class map is", source=name)
    try:
        text = bytes(data).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("is not a text file in UTF-8", source=name) from None
    pairs = _of_json(text, name) if text.lstrip()[:1] == "{" else _of_lines(text, name)
    out: dict[str, str] = {}
    for place, one, other in pairs:
        if one in out:
            raise InputError("is named twice", source=name, record=place, value=one, remedy="keep one of them")
        out[one] = other
    if not out:
        raise InputError("is empty", source=name, remedy="write a line per class: from,to")
    return out


def _of_json(text: str, name: str) -> list[tuple[str, str, str]]:
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not valid JSON: {error}", source=name) from None
    good = all(other is None or is_id(other) for _, other in pairs)
    if not good:
        raise InputError("is no class map: every value must be a name or an id", source=name)
    return [(f"class {one}", one, "" if other is None else str(other)) for one, other in pairs]


def _of_lines(text: str, name: str) -> list[tuple[str, str, str]]:
    out = []
    for number, line in enumerate(text.splitlines(), 1):
        parts = [part.strip() for part in re.split("[,;\t]", line)]
        if not line.strip() or (number == 1 and parts[0].lower() in _HEADERS and parts[-1].lower() in ("to", "target")):
            continue
        if len(parts) != 2 or not parts[0]:
            raise InputError(
                "is not a class and the class that it becomes",
                source=name,
                record=f"line {number}",
                value=line,
                remedy="write from,to on each line (nothing behind the comma leaves a class out); names with commas: "
                "as JSON",
            )
        out.append((f"line {number}", parts[0], parts[1]))
    return out


def without_classes(ground_truth: GroundTruth) -> GroundTruth:
    """Remove the categories from ground truth, so that detections read with it keep their own class names."""
    none = ground_truth.take(np.empty(0, np.int64))
    names: Any = np.empty(0, "U1")
    categories = Categories(readonly(names, names.dtype), readonly((), np.int32), ())
    return replace(none, categories=categories, negatives=None, not_exhaustive=None, present=None)


def mapped_detections(table: Detections, class_map: Mapping[str, str], ground_truth: GroundTruth | None) -> Detections:
    """Return detections with mapped classes; with ground truth, the classes become category ids of the ground truth."""
    names: dict[str, str] = {}
    if ground_truth is not None:
        own_ids = map(str, ground_truth.categories.values.tolist())
        names = dict(zip(own_ids, ground_truth.category_names, strict=True))

    def key(one: Any) -> str:
        """Return the key of a class for the class map: its id or, if the map lacks the id, its name in the ground
        truth.
        """
        text = str(one)
        return text if text in class_map else names.get(text, text)

    before = table.categories.ids.tolist()
    if before and not any(key(one) in class_map for one in before):
        table = replace(table, notices={**table.notices, "unused_class_map": len(class_map)})
    target = [class_map.get(key(one), str(one)) for one in before]
    out = np.array([not one for one in target], np.bool_)[table.categories.codes] if target else np.zeros(0, np.bool_)
    if out.any():
        notices = {**table.notices, "dropped_classes": int(out.sum())}
        kept = table.take(~out)
        target = [class_map.get(key(one), str(one)) for one in kept.categories.ids.tolist()]
        table = replace(kept, notices=notices)
    ids: list[Any] = target
    if ground_truth is not None:
        ids = resolve_categories(target, ground_truth)
        own = table.categories.ids
        if own.dtype.kind == ground_truth.categories.ids.dtype.kind == "i":  # ids that the map lacks are unchanged
            ids = [other if key(one) in class_map else one for one, other in zip(own.tolist(), ids, strict=True)]
    elif target and all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", one) for one in target):
        ids = [int(one) for one in target]
    made = index_ids(recoded(ids, table.categories.codes), source=table.source, field="category_id")
    table = replace(table, categories=made)
    if table.classes is not None:
        table = replace(table, classes=tuple(dict.fromkeys(filter(None, (class_map.get(c, c) for c in table.classes)))))
        if ground_truth is not None:
            classes_without_results(ground_truth, table)  # raises an error if missing classes are not allowed
    return table


def mapped_ground_truth(table: GroundTruth, class_map: Mapping[str, str]) -> GroundTruth:
    """Return ground truth with mapped classes; a class whose target is the name or id of another class is merged into
    that class.
    """
    ids, names = table.categories.ids.tolist(), table.categories.names
    target = [class_map.get(name, class_map.get(str(one), name)) for one, name in zip(ids, names, strict=True)]
    there = {name: i for i, name in enumerate(names)}
    for i, one in enumerate(ids):
        there.setdefault(str(one), i)
    made: dict[str, Any] = {}  # category ids by name
    of_category: list[Any] = []
    strings = table.categories.ids.dtype.kind != "i"
    for i, wanted in enumerate(target):
        if not wanted:
            of_category.append(None)
            continue
        place = there.get(wanted)
        name = names[place] if place is not None else wanted
        own = ids[place] if place is not None else wanted if strings else ids[i]
        of_category.append(made.setdefault(name, own))
    if len(set(made.values())) < len(made):
        raise InputError("gives two classes one id", source=table.source, field="class_map")
    out = np.array([one is None for one in of_category], np.bool_)[table.categories.codes] if ids else np.zeros(0, bool)
    notices = {**table.notices, **({"dropped_classes": int(out.sum())} if out.any() else {})}
    kept = table.take(~out)
    listed = sorted(made.values())
    place_of = {one: i for i, one in enumerate(listed)}
    codes = np.array([-1 if one is None else place_of[one] for one in of_category], np.int32)[kept.categories.codes]
    by_id = {one: name for name, one in made.items()}
    column: Any = np.array(listed, str if strings else np.int64)
    places = np.array([-1 if one is None else place_of[one] for one in of_category], np.int64)

    def mapped(attribute: tuple[Any, ...] | None, unknown: Any) -> Any:
        """Return an attribute for the new classes. A new class has the value of the old class with the same id."""
        known = dict(zip(ids, attribute or (), strict=False))
        return None if attribute is None else tuple(known.get(one, unknown) for one in listed)

    categories = Categories(
        readonly(column, column.dtype),
        readonly(codes, np.int32),
        tuple(by_id[one] for one in listed),
        mapped(table.categories.frequencies, ""),
        mapped(table.categories.limbs, ()),
    )
    # A merged class is known to be absent from an image only if all of its source classes are known to be absent.
    return replace(
        kept,
        categories=categories,
        notices=notices,
        negatives=_mapped_lists(table.negatives, places, len(listed), every=True),
        not_exhaustive=_mapped_lists(table.not_exhaustive, places, len(listed), every=False),
        present=_mapped_lists(table.present, places, len(listed), every=False),
    )


def _mapped_lists(
    lists: CategoryLists | None, places: NDArray[np.int64], count: int, *, every: bool
) -> CategoryLists | None:
    """Replace the categories in the category lists of images by merged categories. A merged category is listed if any
    (with `every`: all) of its source categories are listed. `places` holds the new index of each category, negative for
    a dropped category.
    """
    if lists is None:
        return None
    to = places[lists.categories]
    images, to = lists.images[to >= 0].astype(np.int64), to[to >= 0]
    cells, times = np.unique(images * max(count, 1) + to, return_counts=True)
    if every:
        cells = cells[times == np.bincount(places[places >= 0], minlength=count)[cells % max(count, 1)]]
    return CategoryLists.of_pairs(*np.divmod(cells, max(count, 1)), count, lists.listed)
