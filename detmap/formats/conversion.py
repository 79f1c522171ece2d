"""Convert files from one format to another, and count what the new format cannot hold."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from detmap.data.benchmarks import converted
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, OptionError, shorten
from detmap.formats import files, registry
from detmap.formats.inputs import Input
from detmap.formats.registry import Format
from detmap.reading.options import FormatOptions, Path, Reading, Role, made_of, options_of, takes_options
from detmap.reading.sources import Opened
from detmap.shapes import find
from detmap.shapes.kinds import BOXES

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True)
class Converted:
    """The outcome of a conversion.

    Attributes
    ----------
    role : {"ground_truth", "detections"}
        The role of the converted source.
    format : str
        The name of the format that was written.
    written : int
        Number of objects or detections.
    images : int
        Number of images; for ground truth including images without objects.
    lost : mapping of str to int
        Number of records that lose content, for each kind of content (keys of `detmap.formats.LOST`).
    notices : mapping of str to int
        Counts of unusual input in the source, by code; see `detmap.data.notices.NOTICES`.
    """

    role: Role
    format: str
    written: int
    images: int
    lost: Mapping[str, int]
    notices: Mapping[str, int]

    def sentences(self) -> list[str]:
        """Return a sentence for each kind of lost content."""
        return registry.describe_lost(self.lost)


@takes_options(
    "format", "image_sizes", "classes", "class_map", "columns", "box_format", "image_set", "image_labels", "hierarchy"
)
def convert(
    source: Path,
    target: Path,
    *,
    to: str | None = None,
    role: Role | None = None,
    iou_type: str | None = None,
    ground_truth: GroundTruth | Path | None = None,
    **options: Unpack[FormatOptions],
) -> Converted:
    """Read ground truth or detections of one format, and write them in another.

    Parameters
    ----------
    source : path
        A file or folder; ``-`` is standard input.
    target : path
        A file, or a folder that is empty or not there yet. It must not be an input.
    to : str, optional
        The name of the format to write; by default the target's suffix decides.
    role : {"ground_truth", "detections"}, optional
        The role of the source; by default its content decides.
    iou_type : str, optional
        The shapes to convert besides the boxes. By default every kind that all records have and the format can hold.
    ground_truth : GroundTruth or path, optional
        For detections: the source of category names, and of names and sizes of images, if a format needs these.
    **options

    Returns
    -------
    Converted
        Counts, and `lost` content.

    Raises
    ------
    OptionError
        If the role or a format is unclear, or the target is an input or cannot be written.
    InputError
        If the source is invalid, or the target format cannot hold essential content.
    """
    reading = made_of(options, "detmap.convert")
    named = (getattr(reading, name) for name, made in options_of().items() if made.is_path)
    _refuse_inputs(target, [one for one in (source, ground_truth, *named) if isinstance(one, str | os.PathLike)])
    if role is None and ground_truth is not None:
        role = "detections"
    given = Input(source, role, reading)
    role = given.role
    written = registry.to_write(target, role, to)
    given.check_taken()
    if ground_truth is not None and not isinstance(ground_truth, GroundTruth):
        truth = Input(ground_truth, "ground_truth", Reading(image_facts=True, image_sizes=reading.image_sizes))
        ground_truth = truth.read_as(replace(truth.reading, iou_type=_first_kind(truth.format))).ground_truth()
    kinds, unread = _kinds(given, iou_type, written)
    reading = replace(reading, image_facts=True)
    tables: list[GroundTruth | Detections] = []
    fields = _fields(given) if role == "ground_truth" else ()
    with suppress(InputError):  # fields that are not numbers are not carried over
        if fields:
            with_fields = replace(reading, fields=fields)
            tables = [given.read_as(replace(with_fields, iou_type=kind)).table() for kind in kinds]
    if not tables:
        tables = [given.read_as(replace(reading, iou_type=kind)).table(ground_truth) for kind in kinds]
    table = tables[0]
    for other in tables[1:]:
        table = replace(table, shapes={**other.shapes, **table.shapes}, kinds=tuple(kinds))
        if isinstance(table, Detections) and isinstance(other, Detections):
            table = replace(table, more_scores={**other.more_scores, **table.more_scores})
        elif isinstance(table, GroundTruth) and isinstance(other, GroundTruth):
            table = replace(table, part_flags={**other.part_flags, **table.part_flags})
    lost = files.write(table, target, format=written.name, ground_truth=ground_truth)
    if unread:
        lost["shapes"] = max(lost.get("shapes", 0), unread)
    if role == "ground_truth" and given.format.unkept is not None:
        lost |= {code: count for code, count in given.format.unkept(given.source).items() if count}
    return Converted(
        role,
        written.name,
        len(table),
        int(table.images.values.size),
        lost,
        converted({code: count for code, count in table.notices.items() if count}),
    )


def _kinds(given: Input, iou_type: str | None, target: Format) -> tuple[list[str], int]:
    """Return the kinds of shape to read, and the number of records that lose a shape."""
    counts = given.kinds()
    if counts is None:
        own = _first_kind(given.format)
        if iou_type is None and own != BOXES and target.holds is not None and own not in target.holds:
            writable = (one for one in registry.FORMATS.values() if one.write_ground_truth)
            able = ", ".join(one.name for one in writable if own in (one.holds or ()))
            raise InputError(
                f"holds shapes of the kind {own}, which the format {target.name} has no place for",
                source=given.name,
                remedy=f"formats that hold them and can be written: {able or 'none'} (--to)",
            )
        return [iou_type or own], 0
    total = counts.pop("", 0)
    if iou_type is not None:
        kinds = [iou_type]
    else:
        kinds = [kind for kind, count in counts.items() if count and count == total and _holds(target, kind)]
        # COCO-WholeBody's keypoints include COCO's. Do not read COCO's keypoints a second time.
        whole = [find(kind).column_name for kind in kinds if find(kind).lists]
        kinds = [kind for kind in kinds if find(kind).lists or kind not in whole]
    counts = {kind: count for kind, count in counts.items() if kind in kinds or kind not in map(_column, kinds)}
    left = [count for kind, count in counts.items() if kind not in kinds]
    return kinds or [BOXES], max(left, default=0)


def _first_kind(form: Format) -> str:
    """Return the kind of shape to read from a format: boxes if it holds boxes, else its first kind."""
    return BOXES if form.holds is None or BOXES in form.holds else form.holds[0]


#: Fields of objects that a conversion keeps, in the spellings of all formats.
_CARRIED = ("truncation", "occlusion", "truncated", "occluded", "IsTruncated", "IsOccluded")


def _fields(given: Input) -> tuple[str, ...]:
    """Return the names in `_CARRIED` that occur in the source."""
    if given.format.fields is not None or not isinstance(given.source, str | os.PathLike):
        return ()
    with Opened(given.source, "ground truth") as opened:
        text = memoryview(opened.whole())
        return tuple(name for name in _CARRIED if re.search(rb"(?<![A-Za-z])" + name.encode() + rb"(?![A-Za-z])", text))


def _column(kind: str) -> str:
    return find(kind).column_name


def _holds(target: Format, kind: str) -> bool:
    """Return whether a format can hold a kind of shape; COCO's format can if the kind has a field in COCO's records."""
    return find(kind).records is not None if target.holds is None else kind in target.holds


def _refuse_inputs(target: Path, inputs: Sequence[Path]) -> None:
    """Refuse to overwrite inputs."""
    for one in inputs:
        try:
            same = os.path.samefile(one, target)
        except (OSError, ValueError):  # one of the paths does not exist
            same = False
        if same or os.path.abspath(one) == os.path.abspath(target):
            raise OptionError(
                f"{shorten(os.fspath(target), 200)} is read here, and is not written over: choose another name"
            )
