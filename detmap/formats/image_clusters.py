"""Clusters of images from a file, a field of the images, or a mapping; and hints that images are clustered."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import cluster_column
from detmap.data.tables import GroundTruth
from detmap.errors import InputError, is_id, shorten
from detmap.formats.image_values import image_key, image_values
from detmap.reading.options import Path

#: A function that takes the name of an image field and returns its values by image id; None if images have no fields.
FieldOf = Callable[[str], Mapping[Any, Any] | None]

#: Field with the video of an image, as in YouTube-VIS, TAO and BDD100K.
VIDEO = "video_id"

#: Minimum number of frames of a video, and minimum number of videos, for images whose names look like frames of videos.
_FEWEST_FRAMES, _FEWEST_VIDEOS = 3, 2

#: Minimum share of equal steps between the numbers in image names, for images that look like frames of a video.
_RUNNING = 0.9

_NUMBERED = re.compile(r"(.*?)(\d+)\D*")


def is_file(clusters: Path) -> bool:
    """Return whether clusters are given by a file rather than by a field of the images."""
    path = os.fspath(clusters)
    return isinstance(clusters, os.PathLike) or os.path.exists(path) or "/" in path or path.endswith((".csv", ".json"))


def with_clusters(table: GroundTruth, clusters: Path | Mapping[Any, Any], field_of: FieldOf) -> GroundTruth:
    """Return ground truth with clusters of images, given by the reading option `clusters`. ``field_of(name)`` returns
    the values of a field by image id; None if images have no fields. Raises `InputError` for a missing file or field,
    and for unknown, repeated or missing images.
    """
    if not isinstance(clusters, Mapping) and not is_file(clusters):
        return _by_field(table, os.fspath(clusters), field_of)
    ids = table.images.ids
    names = dict(zip(table.images.names or (), ids.tolist(), strict=True)) if table.images.names else {}
    return replace(table, images=replace(table.images, clusters=clusters_of(clusters, ids, names)))


def clusters_of(clusters: Path | Mapping[Any, Any], ids: NDArray[Any], names: Mapping[Any, Any]) -> NDArray[Any]:
    """Return each image's cluster, shape (i,), from a file or a mapping. Images are given by id, or by a name that
    `names` maps to an id.
    """
    rows, name = image_values(clusters, "cluster")
    found = dict[Any, Any]()
    for place, image, cluster in rows:
        known = image_key(image, ids)
        known = names.get(image) if known is None and image else known
        if known is None:
            raise InputError(
                "is not an image of the ground truth", source=name, record=place, field="image", value=image,
                remedy="leave out the line",
            )  # fmt: skip
        if known in found:
            raise InputError("is given twice", source=name, record=place, field="image", value=image)
        if cluster is None or cluster == "":
            raise InputError(
                "is empty", source=name, record=place, field="cluster",
                remedy="an image that depends on no other is a cluster of its own",
            )  # fmt: skip
        found[known] = cluster
    return cluster_column(found, ids, name)


def _clustered(table: GroundTruth, found: Mapping[Any, Any], name: str) -> GroundTruth:
    return replace(table, images=replace(table.images, clusters=cluster_column(found, table.images.ids, name)))


def _by_field(table: GroundTruth, field: str, field_of: FieldOf) -> GroundTruth:
    """Return ground truth with the values of an image field as clusters."""
    values = field_of(field) or {}
    if not any(value is not None for value in values.values()):
        raise InputError(
            f"{shorten(field)} is neither a file that is there nor a field of the images",
            source=table.source,
            field="clusters",
            remedy="give a CSV file with the columns image and cluster, or a field such as video_id",
        )
    for image, value in values.items():
        if not is_id(value):
            raise InputError(
                "must be an integer or a string, to say the cluster of an image",
                source=table.source, record=f"image {shorten(image)}", field=field, value=value,
                remedy="give a CSV file with the columns image and cluster",
            )  # fmt: skip
    return _clustered(table, values, table.source)


def suggested(table: GroundTruth, field_of: FieldOf) -> dict[str, int]:
    """Return notices if images look like frames of videos, and no clusters were given."""
    names: Any = table.images.names or table.images.ids.tolist()
    of_video = field_of(VIDEO)
    if of_video is not None:
        values = [value for value in of_video.values() if value is not None]
        if len(set(map(str, values))) < len(values):
            return {f"clusters_by_field:{VIDEO}": 1}
        if table.images.names is None:
            names = list((field_of("file_name") or {}).values())
    count = _frames([name for name in names if isinstance(name, str)])
    return {"clusters_by_name": count} if count else {}


def _frames(names: list[str]) -> int:
    """Return the number of images named by a prefix and a running number, like frames of videos; 0 if there are few."""
    numbers: dict[str, list[int]] = {}
    for name in names:
        parts = _NUMBERED.fullmatch(os.path.splitext(name)[0])
        if parts is not None:
            numbers.setdefault(parts[1], []).append(int(parts[2][-18:]))
    running = [len(own) for own in numbers.values() if len(own) >= _FEWEST_FRAMES and _is_running(own)]
    count = sum(running)
    return count if len(running) >= _FEWEST_VIDEOS and 2 * count > len(names) else 0


def _is_running(numbers: list[int]) -> bool:
    """Return whether numbers have a constant step, except for a few gaps."""
    steps = np.diff(np.unique(numbers))
    if steps.size + 1 < len(numbers):
        return False
    _, counts = np.unique(steps, return_counts=True)
    return bool(counts.max() >= _RUNNING * steps.size)
