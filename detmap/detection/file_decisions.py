"""Decisions of a protocol about the input: which records are left out, how numbers are rounded, and how boxes are moved.

A tool that drops low scores, or rounds boxes to one decimal, can change the result as much as another matching rule.
Each decision is declared here; `detmap.detection.protocols.Protocol` has a field for each, and
`detmap.detection.preparation` implements them.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from detmap.choices import parse_names, parse_number, plain_number, say_flags, whole
from detmap.decisions import Flag, decision
from detmap.errors import shorten

_SINCE = "0.2"

#: Declares a decision about the input.
_in_files = partial(decision, since=_SINCE, reads=True)


def _plain_integer(value: Any) -> Any:
    return int(value) if isinstance(value, np.integer) else value


def _wrong_score(value: Any) -> str | None:
    good = value is None or (isinstance(value, float) and math.isfinite(value))
    return None if good else f"min_score must be a finite number or None, not {shorten(value)}"


def _wrong_cap(value: Any, name: str = "max_per_image") -> str | None:
    good = value is None or (type(value) is int and 1 <= value < 2**31)
    return None if good else f"{name} must be a positive integer or None, not {shorten(value)}"


def _wrong_offset(value: Any) -> str | None:
    good = isinstance(value, float) and abs(value) <= 1e6
    return None if good else f"box_offset must be a number of pixels, not {shorten(value)}"


def _wrong_decimals(value: Any) -> str | None:
    good = value is None or (type(value) is int and 0 <= value <= 15)
    return None if good else f"decimals must be an integer from 0 to 15 or None, not {shorten(value)}"


def _parse_integer(text: str) -> int:
    try:
        return whole(text)
    except ValueError:
        raise ValueError(f"must be an integer, not {shorten(text)}") from None


def _say_cut(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


MIN_SCORE = _in_files(
    "Detections of a lower score are left out. None: all count.",
    "ranking",
    plain=plain_number,
    wrong=_wrong_score,
    words=_say_cut,
    phrase=lambda protocol: f"scores from {protocol.min_score:g}",
    flag=Flag(name="--min-score", metavar="SCORE", help="leave out detections of a lower score", read=parse_number),
)

MAX_PER_IMAGE = _in_files(
    "A cap on the detections of an image, of all categories together: those of the best scores stay, of equal ones the "
    "first. None: no cap.",
    "matching",
    "ranking",
    plain=_plain_integer,
    wrong=_wrong_cap,
    words=lambda value: "no cap" if value is None else str(value),
    phrase=lambda protocol: f"at most {protocol.max_per_image} detections per image",
    flag=Flag(
        name="--max-per-image",
        metavar="N",
        help="a cap on the detections of an image, of all categories together",
        read=_parse_integer,
    ),
)

MAX_PER_CATEGORY = _in_files(
    "A cap on the detections of a category on all images together: those of the best scores stay, of equal ones the first. "
    "Only those within `max_per_image` are counted. None: no cap.",
    "matching",
    "ranking",
    plain=_plain_integer,
    wrong=partial(_wrong_cap, name="max_per_category"),
    words=lambda value: "no cap" if value is None else str(value),
    phrase=lambda protocol: f"at most {protocol.max_per_category} detections per category",
    flag=Flag(
        name="--max-per-category",
        metavar="N",
        help="a cap on the detections of a category on all images together",
        read=_parse_integer,
    ),
)

LEFT_OUT = decision(
    "Ground truth with one of these flags is removed, so that detections of it are false positives. Boxes in space have "
    'two more flags: "unseen" is an object without a lidar or radar point; "racked" is a bicycle or motorcycle in a '
    "bicycle rack, and racked detections are removed too.",
    "matching",
    allowed=("crowd", "difficult", "unseen", "racked"),
    plain=tuple,
    words=say_flags,
    phrase=lambda protocol: f"left out {say_flags(protocol.left_out)}",
    flag=Flag(
        name="--leave-out",
        metavar="LIST",
        help="leave out ground truth with these flags, as if it were not in the file: crowd,difficult; of "
        "boxes in space unseen,racked",
        read=parse_names,
    ),
    since=_SINCE,
    group="crowds",
    reads=True,
)

SCORED_IMAGES = _in_files(
    "Whether all images of the ground truth are scored, or only those with a detection that is not cut off by its score.",
    "matching",
    allowed=("all", "detected"),
    phrase=lambda protocol: "only images with detections",
    flag=Flag(name="--scored-images", help="score all images (default), or only those with detections"),
)

NUMBERS = _in_files(
    "Whether corners of boxes and scores are taken as they are, or rounded to single precision, as tensors hold them.",
    "matching",
    "ranking",
    allowed=("float64", "float32"),
    phrase=lambda protocol: "boxes and scores in single precision",
    flag=Flag(
        name="--numbers", help="boxes and scores as they are (default), or in single precision, as tensors have them"
    ),
)

BOX_DECIMALS = _in_files(
    "Number of decimals to which the corners of detected boxes are rounded; 0 means whole pixels. None: no rounding.",
    "matching",
    plain=_plain_integer,
    wrong=_wrong_decimals,
    words=lambda value: "as given" if value is None else str(value),
    phrase=lambda protocol: f"decimals of detected boxes {protocol.box_decimals}",
    flag=Flag(
        name="--box-decimals",
        metavar="N",
        help="round the corners of detected boxes; 0: whole pixels",
        read=_parse_integer,
    ),
)

SCORE_DECIMALS = _in_files(
    "Number of decimals to which scores are rounded. None: no rounding.",
    "ranking",
    "matching",
    plain=_plain_integer,
    wrong=_wrong_decimals,
    words=lambda value: "as given" if value is None else str(value),
    phrase=lambda protocol: f"decimals of scores {protocol.score_decimals}",
    flag=Flag(name="--score-decimals", metavar="N", help="round scores to N decimals", read=_parse_integer),
)

BOX_OFFSET = _in_files(
    "Number of pixels by which detected boxes are moved right and down: 1 if detections count pixels from 0 and the "
    "ground truth from 1.",
    "matching",
    plain=plain_number,
    wrong=_wrong_offset,
    words=lambda value: f"{value:g}",
    phrase=lambda protocol: f"detected boxes moved by {protocol.box_offset:g} pixels",
    flag=Flag(
        name="--box-offset",
        metavar="PIXELS",
        help="move detected boxes right and down: 1 if they count pixels from 0 and the ground truth from 1",
        read=parse_number,
    ),
)

FAR_CORNER = decision(
    "With inclusive pixels: how the far corner of a box given by x and w is computed. The last pixel inside is x + w - "
    "1; programs that take x + w make the box one pixel wider and higher.",
    "matching",
    allowed=("x+w-1", "x+w"),
    phrase=lambda protocol: f"far corner {protocol.far_corner}",
    flag=Flag(name="--far-corner", help="with inclusive pixels: the far corner of a box given by its size"),
    since=_SINCE,
    group="pixels",
)

OBJECT_AREAS = decision(
    "The area of an object that area ranges look at: the annotation's own, or that of its shape.",
    "matching",
    allowed=("own", "shape"),
    phrase=lambda protocol: "areas of objects those of their shapes",
    flag=Flag(name="--object-areas", help="area of an object: the annotation's own (default), or that of its shape"),
    since=_SINCE,
)
