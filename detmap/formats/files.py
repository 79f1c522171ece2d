"""Read and write ground truth and detections in any format."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from detmap.data.benchmarks import protocol_for
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, OptionError, shorten
from detmap.formats import registry
from detmap.formats.inputs import Input, Source, is_stream
from detmap.reading import sources
from detmap.reading.opening import STANDARD_INPUT
from detmap.reading.opening import noted as noted  # re-exported
from detmap.reading.options import Options, Path, Reading, Role, made_of, takes_options
from detmap.shapes.kinds import BOXES, KEYPOINTS

if TYPE_CHECKING:
    from typing_extensions import Unpack


def words(role: Role) -> str:
    """List the supported files and folders of a role, in a phrase for help texts."""
    return ", or ".join(one.words[role == "detections"] or one.name for one in registry.able(role))


def once(paths: Iterable[Path | None]) -> None:
    """Refuse streams that are given twice."""
    seen: set[object] = set()
    for path in paths:
        key = None if path is None else sources.stream(path)
        if key in seen:
            what = "standard input (-)" if path == STANDARD_INPUT else os.fspath(str(path))
            raise OptionError(f"{what} is given twice, and can be read only once: write it to a file")
        if key is not None:
            seen.add(key)


def check_outputs(outputs: Iterable[Path | None], inputs: Iterable[Path | None]) -> None:
    """Refuse outputs that overwrite an input, even if the paths differ."""
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
    """Yield the resolved path, and for a file its device and inode."""
    with suppress(OSError, ValueError):  # nothing is there, or the path is invalid
        yield os.path.realpath(path)
        state = os.stat(path)
        if stat.S_ISREG(state.st_mode):
            yield state.st_dev, state.st_ino


@takes_options(image_facts=True)
def read(
    path: Path | bytes,
    role: Role | None = None,
    *,
    ground_truth: GroundTruth | None = None,
    **options: Unpack[Options],
) -> GroundTruth | Detections:
    """Read ground truth or detections of any format.

    Parameters
    ----------
    path : path or bytes
        A file or a folder, or the content of a file; files of text formats may be compressed (gzip, zstd). ``-`` is
        standard input.
    role : {"ground_truth", "detections"}, optional
        The role. By default detections if `ground_truth` is given, else the content decides.
    ground_truth : GroundTruth, optional
        For detections: the ground truth that lists their images. Formats with normalised boxes, or with names in place
        of ids, need ground truth.
    **options

    Returns
    -------
    GroundTruth or Detections

    Raises
    ------
    InputError
        If the content is invalid, or the format cannot hold the kind of shape.
    OptionError
        For an unknown role or format, for an option that the format does not take, and if the role is not clear from
        the content.
    """
    role = "detections" if role is None and ground_truth is not None else role
    found = Input(path, role, made_of(options, "detmap.read"))
    found.check_taken()
    if found.role == "detections":
        return found.detections(ground_truth)
    return found.ground_truth(image_facts=options.get("image_facts", True))


def read_ground_truth(path: Path | bytes, **options: Unpack[Options]) -> GroundTruth:
    """Read ground truth of any format. Options that the format does not take are ignored, except `image_set` and
    `fields`, which raise an error.
    """
    return Input(path, "ground_truth", made_of(options, "read_ground_truth")).ground_truth()


def read_detections(
    path: Path | bytes, ground_truth: GroundTruth | None = None, **options: Unpack[Options]
) -> Detections:
    """Read detections of any format; options that the format does not take are ignored."""
    return Input(path, "detections", made_of(options, "read_detections")).detections(ground_truth)


def asked_protocol(path: Source, format: str | None = None) -> str:
    """Return the protocol of the benchmark whose format or fields the ground truth has. Return "coco" if no benchmark
    is recognised, or if the ground truth cannot be read. Raises `OptionError` for a stream, which cannot be read twice.
    """
    if is_stream(path):
        raise OptionError("the protocol auto needs ground truth in a file, which is read twice")
    given = Input(path, "ground_truth", Reading(format=format, invalid_boxes="miss"))
    with suppress(InputError):
        if given.known is not None and given.known.protocol:
            return given.known.protocol
    for kind in (BOXES, KEYPOINTS):  # annotations of poses may lack boxes
        with suppress(InputError):  # the reader raises the error again later
            table = given.read_as(replace(given.reading, iou_type=kind)).ground_truth()
            return protocol_for(table.notices) or "coco"
    return "coco"


def write(
    table: GroundTruth | Detections, path: Path, *, format: str | None = None, ground_truth: GroundTruth | None = None
) -> dict[str, int]:
    """Write ground truth or detections in any format that can be written.

    Parameters
    ----------
    table : GroundTruth or Detections
        The table to write.
    path : path
        A file, which is replaced atomically; or, for a format of folders, a folder that is empty or not there yet. A
        name that ends in ``.gz`` or ``.zst`` is compressed.
    format : str, optional
        The name of the format; by default the path's suffix decides.
    ground_truth : GroundTruth, optional
        For detections: the source of category names, and of names and sizes of images, if a format needs these.

    Returns
    -------
    dict of str to int
        Number of records that lose content, for each kind of content (keys of `detmap.formats.LOST`).

    Raises
    ------
    OptionError
        If no format is given or recognised, or the format or path cannot be written.
    InputError
        If the format cannot hold content without which the file would be wrong.
    """
    if not isinstance(table, GroundTruth | Detections):
        raise InputError(f"expected GroundTruth or Detections, not {type(table).__name__}")
    role: Role = "ground_truth" if isinstance(table, GroundTruth) else "detections"
    found = registry.to_write(path, role, format)
    writing = registry.Writing(ground_truth=ground_truth)
    if isinstance(table, GroundTruth):
        assert found.write_ground_truth is not None
        with registry.asked(found, path):
            lost = dict(found.write_ground_truth(table, path, writing))
        if table.zero_ids is not None:  # annotation ids are not kept, and pycocotools treats the id 0 specially
            lost["zero_ids"] = int(table.zero_ids.sum())
        if table.group_of is not None and not found.grouped:
            lost["groups"] = int(table.group_of.sum())
        without = [
            values for name, values in table.fields.items() if found.fields is not None and name not in found.fields
        ]
        if without:
            # -1 means unknown in KITTI and Open Images
            known = [np.isfinite(values) & (values != -1) for values in without]
            lost["fields"] = int(np.any(known, axis=0).sum())
        if not found.federated:
            lists = [
                one.listed.tolist() for one in (table.negatives, table.not_exhaustive, table.present) if one is not None
            ]
            lost["category_lists"] = sum(map(any, zip(*lists, strict=True)))
            lost["part_flags"] = len(table) if table.part_flags else 0
            crowding = table.images.crowd_index
            lost["crowd_index"] = 0 if crowding is None else int((crowding == crowding).sum())
    else:
        assert found.write_detections is not None
        with registry.asked(found, path):
            lost = dict(found.write_detections(table, path, writing))
        if not found.federated:
            lost["part_scores"] = len(table) if table.more_scores else 0
    return {code: count for code, count in lost.items() if count}


def read_small(path: Path) -> bytes:
    """Return the bytes of a settings file."""
    with sources.Opened(path, os.fspath(path)) as opened:
        if len(opened) > 1 << 20:
            raise InputError("is larger than 1 MiB, which no such file is", source=opened.name)
        return bytes(opened.whole())
