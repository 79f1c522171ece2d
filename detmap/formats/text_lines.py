"""A text file per image, a line per record: ``class [score] a b c d``, in pixels.

Cartucho's tools write two corners (left, top, right, bottom), and the word ``difficult`` after objects that need not be
found. Padilla's tool accepts three formats: two corners; near corner and size; normalised centre and size. Unless the
caller gives the box format, it is guessed from the numbers, and a notice says so.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from detmap.formats.line_files import line_format
from detmap.plugins import register
from detmap.reading.lines import Lines
from detmap.shapes.boxes import seem_shares

#: Minimum share of boxes with inverted corners at which the numbers are read as corner and size. Below this share,
#: inverted boxes are errors.
_FEW = 0.05


def _form(lines: Lines, boxes: NDArray[np.float64], given: str | None) -> tuple[str, dict[str, int]]:
    """Return the box format, and a notice if the format was guessed because none was `given`."""
    if given is not None:
        return given, {}
    if seem_shares(boxes):
        return "cxcywh", {"boxes_read_as_shares": len(boxes)}
    inverted = (boxes[:, 2] < boxes[:, 0]) | (boxes[:, 3] < boxes[:, 1])
    count = int(np.count_nonzero(inverted))
    if 0 < count < _FEW * len(boxes):  # if these were corner and size, more boxes would look inverted
        raise lines.error(
            int(np.argmax(inverted)),
            f"is one of {count:,} boxes of {len(boxes):,} that are inverted as left, top, right, bottom: these can be "
            "corners, some of them wrong, or left, top, width, height",
            remedy="say which: box_format='xyxy' or 'xywh' (--box-format; of ground truth --gt-box-format)",
        )
    form = "xywh" if count else "xyxy"
    return form, {f"boxes_read_as_{form}": len(boxes)} if len(boxes) else {}


FORMAT = register(
    line_format(
        "text",
        ground_truth="{class} {a} {b} {c} {d} [difficult]",
        detections="{class} {score} {a} {b} {c} {d}",
        box_format=_form,
        takes=("box_format", "classes"),
        words=(
            "a folder of text files of lines class left top right bottom",
            "a folder of text files of lines class score left top right bottom",
        ),
    )
)
