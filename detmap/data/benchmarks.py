"""Fields that identify ground truth of benchmarks other than COCO.

COCO's rules read none of these fields, so COCO's AP on such files is not the benchmark's own metric.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Benchmark(NamedTuple):
    """A benchmark whose ground truth has specific fields."""

    name: str
    #: The benchmark-specific fields in each list of COCO's JSON: images, annotations and categories. Tables such as CSV
    #: may have the fields of annotations as columns.
    fields: Mapping[str, tuple[str, ...]]
    #: The protocol that reads these fields; "" if there is none.
    protocol: str = ""
    #: Advice to the user if there is no protocol.
    remedy: str = ""


BENCHMARKS = (
    Benchmark(
        "LVIS",
        {"images": ("neg_category_ids", "not_exhaustive_category_ids"), "categories": ("frequency",)},
        protocol="lvis",
    ),
    Benchmark("CrowdPose", {"images": ("crowdIndex",)}, protocol="crowdpose"),
    Benchmark(
        "COCO-WholeBody",
        {"annotations": ("foot_kpts", "face_kpts", "lefthand_kpts", "righthand_kpts")},
        protocol="wholebody",
    ),
    Benchmark(
        "Open Images",
        {
            "images": ("pos_category_ids",),
            "annotations": ("IsGroupOf", "isgroupof", "is_group_of", "IsDepiction", "IsInside"),
        },
        protocol="openimages",
    ),
    Benchmark(
        "PoseTrack",
        {"images": ("ignore_regions_x", "ignore_regions_y")},
        remedy="no protocol has PoseTrack's rules, its own code has (poseval)",
    ),
    Benchmark("DOTA", {}, protocol="dota"),
    Benchmark("KITTI", {}, protocol="kitti"),
)

#: The benchmark's values of fields whose names are common. A field with other values does not belong to the benchmark.
VALUES = {"frequency": ("r", "c", "f")}

#: Prefix of the code of notices on foreign fields.
_FOREIGN = "foreign_fields:"

#: Notice on DOTA's corners, which are read as enclosing boxes.
ROTATED_BOXES = f"{_FOREIGN}corners of rotated boxes (DOTA)"

#: Notice on KITTI's levels of difficulty, which only KITTI's protocols use.
LEVELS = f"{_FOREIGN}levels of difficulty (KITTI)"

#: The field that marks a box around several objects.
_GROUP = "isgroupof"

#: Spellings of a set flag in text, in lower case.
_TRUE = ("1", "1.0", "true")

#: Spellings of an unset or unknown flag in text, in lower case.
_NOT_TRUE = ("0", "0.0", "false", "-1", "-1.0", "")

#: Error text for a cell that is not a flag in any spelling.
NO_FLAG = "must be 1 or true, 0 or false, or -1 where it is not known"


def fields_of(section: str) -> dict[str, str]:
    """Return a dict from each benchmark-specific field to the name of the benchmark. `section` is the key of a list in
    COCO's JSON, such as "images".
    """
    return {field: one.name for one in BENCHMARKS for field in one.fields.get(section, ())}


def protocol_for(notices: Mapping[str, int]) -> str | None:
    """Return the protocol that reads most of the fields in `notices`. Of protocols that read equally many, return the
    first; if no protocol reads any, return None.
    """
    counts = {one.protocol: sum(_of_benchmark(code, one) for code in notices) for one in BENCHMARKS if one.protocol}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else None


def advice(names: Iterable[str]) -> str:
    """Return advice on protocols for the named fields, such as "; LVIS's rules: --protocol lvis"."""
    codes = [_FOREIGN + name for name in names]
    known = [one for one in BENCHMARKS if any(_of_benchmark(code, one) for code in codes)]
    return "".join(f"; {one.remedy or _protocol_of(one)}" for one in known)


def _protocol_of(one: Benchmark) -> str:
    return f"{one.name}'{'' if one.name[-2:] == 'es' else 's'} rules: --protocol {one.protocol}"


def unread(notices: Mapping[str, int], fields: Iterable[str]) -> dict[str, int]:
    """Drop the notices on `fields`, which the selected protocol reads."""
    read = tuple(f"{_FOREIGN}{field} (" for field in fields)
    return {code: count for code, count in notices.items() if not (read and code.startswith(read))}


def converted(notices: Mapping[str, int]) -> dict[str, int]:
    """Return the notices of a conversion, without advice on scoring. Notices on groups are dropped, because a conversion
    keeps groups or reports them as lost.
    """
    plain = {code: count for code, count in notices.items() if code not in ("group_boxes", LEVELS)}
    return {code.replace(_FOREIGN, "converted_fields:", 1): count for code, count in plain.items()}


def _of_benchmark(code: str, one: Benchmark) -> bool:
    return code.startswith(_FOREIGN) and code.endswith(f" ({one.name})")


def noted(fields: Iterable[str], section: str) -> dict[str, int]:
    """Return a notice for each benchmark-specific field among `fields`; `section` is as in `fields_of`."""
    known = fields_of(section)
    return {_code(field, known[field]): 1 for field in fields if field in known}


def noted_in(document: Mapping[str, Any]) -> dict[str, int]:
    """Return the notices on the fields of parsed COCO JSON."""
    found: dict[str, int] = {}
    for section in ("images", "annotations", "categories"):
        fields = fields_of(section)
        records = [record for record in document.get(section) or () if not fields.keys().isdisjoint(record)]
        found |= noted([field for field in fields if any(has_field(record, field) for record in records)], section)
    return found


def has_field(record: Mapping[str, Any], field: str) -> bool:
    """Return whether a record has a field, with one of the benchmark's values."""
    value = record.get(field)
    return field in record and (field not in VALUES or (isinstance(value, str) and value in VALUES[field]))


def noted_of_titles(titles: Iterable[str], groups: int = 0) -> dict[str, int]:
    """Return the notices on columns of other benchmarks, and one on `groups` boxes around several objects."""
    known = {plain(field): name for field, name in fields_of("annotations").items()}
    found = {_code(title, known[plain(title)]): 1 for title in titles if plain(title) in known}
    return {**found, "group_boxes": groups} if groups else found


def is_group(title: str) -> bool:
    """Return whether a column marks boxes around several objects."""
    return plain(title) == _GROUP


def flagged(columns: Iterable[Iterable[Any]]) -> int:
    """Return the number of rows in which at least one of these columns is true, in any spelling."""
    return sum(any(map(is_flag, row)) for row in zip(*columns, strict=True))


def is_flag(value: Any) -> bool:
    """Return whether a cell is 1 or true, in any spelling."""
    return value.strip().lower() in _TRUE if isinstance(value, str) else value == 1


def is_no_flag(value: Any) -> bool:
    """Return whether a cell is not a spelling of true, of false or of unknown."""
    if isinstance(value, str):
        return value.strip().lower() not in (*_TRUE, *_NOT_TRUE)
    return value is not None and not (isinstance(value, int | float) and value in (1, 0, -1))


def plain(title: str) -> str:
    """Return the letters and digits of a title in lower case."""
    return re.sub(r"[^a-z0-9]", "", title.lower())


def _code(field: str, benchmark: str) -> str:
    return f"{_FOREIGN}{field} ({benchmark})"
