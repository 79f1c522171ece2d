"""Fields by which ground truth of other benchmarks is known, and the protocols that score by them.

COCO's rules read none of these fields: the number that they give on such files is not the benchmark's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Benchmark(NamedTuple):
    """A benchmark whose ground truth has fields that its rules read.

    Attributes
    ----------
    name : str
        Its name.
    fields : mapping of str to tuple of str
        The fields of its records, by list of COCO's JSON: images, annotations, categories. Columns of tables go by
        the fields of annotations.
    protocols : tuple of str
        Names of the protocols that read these fields, so that nothing is noted.
    """

    name: str
    fields: Mapping[str, tuple[str, ...]]
    protocols: tuple[str, ...] = ()


BENCHMARKS = (
    Benchmark("LVIS", {"images": ("neg_category_ids", "not_exhaustive_category_ids"), "categories": ("frequency",)}),
    Benchmark("CrowdPose", {"images": ("crowdIndex",)}),
    Benchmark("COCO-WholeBody", {"annotations": ("foot_kpts", "face_kpts", "lefthand_kpts", "righthand_kpts")}),
    Benchmark("Open Images", {"annotations": ("IsGroupOf", "isgroupof", "is_group_of", "IsDepiction", "IsInside")}),
    Benchmark("PoseTrack", {"images": ("ignore_regions_x", "ignore_regions_y")}),
)

#: The only values of a field that are a benchmark's: other data sets use the word too.
VALUES = {"frequency": ("r", "c", "f")}

#: The field that marks a box around several objects.
_GROUP = "isgroupof"


def fields_of(section: str) -> dict[str, str]:
    """Return the fields of a list of COCO's JSON, and whose they are."""
    return {field: one.name for one in BENCHMARKS for field in one.fields.get(section, ())}


def noted(fields: Iterable[str], section: str) -> dict[str, int]:
    """Return a notice for each of these fields of a list that is a benchmark's."""
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
    """Return whether a record has a field, with a value that is the benchmark's."""
    value = record.get(field)
    return field in record and (field not in VALUES or (isinstance(value, str) and value in VALUES[field]))


def noted_of_titles(titles: Iterable[str], flagged: int | None = None) -> dict[str, int]:
    """Return the notices on the columns of a table; of `flagged` rows it is said that they are groups."""
    known = {plain(field): name for field, name in fields_of("annotations").items()}
    found = {_code(title, known[plain(title)]): 1 for title in titles if plain(title) in known}
    return {**found, "group_boxes": flagged} if flagged else found


def is_group(title: str) -> bool:
    """Return whether a column marks boxes around several objects."""
    return plain(title) == _GROUP


def plain(title: str) -> str:
    """Return the letters and digits of a title, in lower case."""
    return re.sub(r"[^a-z0-9]", "", title.lower())


def unread(notices: Mapping[str, int], protocol: str) -> dict[str, int]:
    """Return notices without those on fields that a protocol reads."""
    names = {one.name for one in BENCHMARKS if protocol in one.protocols}
    return {
        code: count
        for code, count in notices.items()
        if not any(code.startswith("foreign_fields:") and code.endswith(f"({name})") for name in names)
        and not (code == "group_boxes" and "Open Images" in names)
    }


def _code(field: str, benchmark: str) -> str:
    return f"foreign_fields:{field} ({benchmark})"
