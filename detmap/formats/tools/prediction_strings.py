"""Kaggle's submissions: an image a row, and its detections as groups of words in the column ``PredictionString``.

A group is ``score x y width height`` (Global Wheat) or ``class score x1 y1 x2 y2`` (VinBigData); which of the two follows
from the numbers, and is noted. `columns` says another order, as ``category,score,x,y,width,height``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from detmap.choices import decimal
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, OptionError
from detmap.formats.delimited.read import UNNAMED, given_columns, read_table
from detmap.formats.tools.collected import Collected
from detmap.reading.options import Reading
from detmap.reading.sources import Source
from detmap.shapes.boxes import BoxFormat

_STRING = "PredictionString"

#: The orders of a group's words, with the notice that says which one it is, and how the box is written.
_ORDERS: dict[tuple[str, ...], tuple[str, BoxFormat]] = {
    ("score", "x", "y", "width", "height"): ("read_as_score_box", "xywh"),
    ("category", "score", "x1", "y1", "x2", "y2"): ("read_as_class_score_box", "xyxy"),
}

_FORMS: dict[BoxFormat, tuple[str, ...]] = {
    "xywh": ("x", "y", "width", "height"),
    "xyxy": ("x1", "y1", "x2", "y2"),
    "cxcywh": ("cx", "cy", "width", "height"),
}


def read_detections(source: Source, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
    """Read a submission; an empty string is an image without detections."""
    table = read_table(source, None, "detections", others=(_STRING,))
    _, images = table.ids(("image_id", "image"), "images")
    if _STRING not in table.others:
        raise table.missing(_STRING, "prediction strings")
    strings = [text.split() for text in table.others[_STRING]]
    order, form = _order(strings, reading, table.source)
    found = Collected(table.source, form)
    if reading.columns is None:
        found.notices[_ORDERS[order][0]] = sum(map(bool, strings))
    only = UNNAMED
    if "category" not in order and ground_truth is not None and ground_truth.categories.ids.size == 1:
        only = ground_truth.category_names[0]
    at = [order.index(name) for name in ("score", *_FORMS[form])]
    label = order.index("category") if "category" in order else None
    for row, (image, words) in enumerate(zip(images, strings, strict=True)):
        place = f"line {table.lines[row]}"
        if len(words) % len(order):
            problem = f"holds {len(words)} words, which are no groups of {len(order)}: {' '.join(order)}"
            raise InputError(problem, source=table.source, record=place, field=_STRING)
        called = found.image(str(image), place)
        for begin in range(0, len(words), len(order)):
            group = words[begin : begin + len(order)]
            score, *box = (_number(group[k], table.source, place) for k in at)
            found.add(place, called, only if label is None else group[label], box, score=score)
    return found.detections(ground_truth, reading)


def _order(strings: Sequence[Sequence[str]], reading: Reading, source: str) -> tuple[tuple[str, ...], BoxFormat]:
    """Return the order of a group's words, and how its box is written; raises `InputError` where that is not clear."""
    if reading.columns is not None:
        order = tuple(given_columns(reading.columns))
        form = next((form for form, names in _FORMS.items() if {"score", *names} <= set(order)), None)
        if form is None or not set(order) <= {"category", "score", "", *_FORMS[form]}:
            raise OptionError(
                "the columns of a prediction string are category, score, and four of a box, in their order"
            )
        return order, form
    fits = [order for order in _ORDERS if _fits(order, strings)]
    if len(fits) != 1:
        problem = "is of no known order" if not fits else "can be read in two ways"
        remedy = "say the order of a group: columns='score,x,y,width,height' (--columns)"
        raise InputError(f"the column {problem}", source=source, field=_STRING, remedy=remedy)
    return fits[0], _ORDERS[fits[0]][1]


def _fits(order: tuple[str, ...], strings: Sequence[Sequence[str]]) -> bool:
    """Return whether strings can be groups of that order: most boxes have sizes, and scores do not exceed 1."""
    size, numbers = len(order), []
    for words in strings:
        if len(words) % size:
            return False
        for begin in range(0, len(words), size):
            try:
                numbers.append([float(word) for word in words[begin + size - 5 : begin + size]])
            except ValueError:
                return False
    table = np.array(numbers).reshape(-1, 5)
    scored = (table[:, 0] >= 0) & (table[:, 0] <= 1)
    sides = table[:, 3:] if order[-1] == "height" else table[:, 3:] - table[:, 1:3]
    return bool(np.count_nonzero(scored & (sides >= 0).all(axis=1)) >= 0.9 * len(table))


def _number(word: str, source: str, place: str) -> float:
    try:
        value = decimal(word)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise InputError("must be a finite number", source=source, record=place, field=_STRING, value=word)
    return value
