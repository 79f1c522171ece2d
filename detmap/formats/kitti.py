"""KITTI's text files of objects, one per image: labels (``label_2``) and results.

A line is ``type truncated occluded alpha x1 y1 x2 y2 h w l x y z rotation_y``, in results followed by a score. Types are
case-insensitive. Regions ``DontCare`` become crowds of every class, so that detections in them are ignored. A line that
is too short is an error; the benchmark's program silently skips it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.tables import Detections, GroundTruth
from detmap.formats.line_files import More, line_format
from detmap.plugins import register
from detmap.reading.options import Role
from detmap.shapes import find
from detmap.shapes.kinds import BEV, BOX3D, BOXES

#: The columns of a 3D box, in the order of `detmap.shapes.boxes3d.Boxes3D`.
_SPACE = ("h", "w", "l", "x3d", "y3d", "z3d", "rotation", "alpha")

#: Values in files for a missing 3D box.
_NONE = (-1.0, -1.0, -1.0, -1000.0, -1000.0, -1000.0, -10.0, -10.0)

#: Fields of objects by which the benchmark assigns levels of difficulty.
_FIELDS = ("truncation", "occlusion")

_LABEL = "{class} {truncation} {occlusion} {alpha} {x1} {y1} {x2} {y2} {h} {w} {l} {x3d} {y3d} {z3d} {rotation}"


def _read(numbers: Mapping[str, NDArray[np.float64]], role: Role) -> dict[str, Any]:
    """Return the 3D boxes, and for ground truth the truncation and occlusion of objects."""
    given = find(BOX3D).given
    assert given is not None
    column = given(np.stack([numbers[name] for name in _SPACE], axis=1), role.replace("_", " "))
    fields = {name: numbers[name] for name in _FIELDS if role == "ground_truth"}
    return {"shapes": {BOX3D: column}, **({"fields": fields} if fields else {})}


def _write(table: GroundTruth | Detections) -> tuple[dict[str, NDArray[np.float64]], dict[str, int]]:
    """Return the columns of a table; missing 3D boxes have the values in `_NONE`, unknown fields -1."""
    column = table.shapes.get(BOX3D)
    space = np.tile(_NONE, (len(table), 1)) if column is None else column.arrays()["table"]
    space = np.where(np.isnan(space), _NONE[-1], space)
    fields = table.fields if isinstance(table, GroundTruth) else {}
    unknown = np.full(len(table), -1.0)
    made = {name: np.nan_to_num(fields.get(name, unknown), nan=-1.0) for name in _FIELDS}
    return {**dict(zip(_SPACE, space.T, strict=True)), **made}, {}


FORMAT = register(
    line_format(
        "kitti",
        ground_truth=_LABEL,
        detections=f"{_LABEL} {{score}}",
        everywhere=["dontcare"],
        besides=More(
            columns=(*_SPACE, *_FIELDS),
            read=_read,
            write=_write,
            holds=(BOX3D,),
            folded=True,
            inside="data",
            every_image=True,
        ),
        takes=("image_set", "fields"),
        protocol="kitti",
        leveled=True,
        holds=(BOXES, BEV, BOX3D),
        fields=_FIELDS,
        inside="data",
        words=("KITTI's folder label_2", "KITTI's folder of results, an image each"),
    )
)
