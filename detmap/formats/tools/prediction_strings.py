"""Kaggle's submissions: a row per image, with detections as groups of words in the column ``PredictionString``.

A group is ``score x y width height`` (Global Wheat) or ``class score x1 y1 x2 y2`` (VinBigData). The order is guessed
from the numbers, and a notice names it. The option `columns` gives another order, such as
``category,score,x,y,width,height``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from detmap.choices import decimal
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, OptionError
from detmap.formats.delimited.read import UNNAMED, given_columns, read_table
from detmap.formats.tools.collected import Collected
from detmap.reading.options import Reading
from detmap.reading.sources import Source
from detmap.shapes.boxes import BoxFormat

#: The column of strings.
STRING = "PredictionString"

_LONGEST = 256  # maximum number of characters of an id

#: The notice and the box format for each known order of a group's words.
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
    table = read_table(source, None, "detections", others=(STRING,))
    _, images = table.ids(("image_id", "image"), "images")
    if STRING not in table.others:
        raise table.missing(STRING, "prediction strings")
    strings = [text.split() for text in table.others[STRING]]
    order, form, guessed = _order(strings, reading, table.source)
    found = Collected(table.source, form)
    if reading.columns is None:
        found.notices[_ORDERS[order][0]] = sum(map(bool, strings))
    only = UNNAMED
    if "category" not in order and ground_truth is not None and ground_truth.categories.ids.size == 1:
        only = ground_truth.category_names[0]
    of_group: list[str] = []
    rows: list[int] = []
    for row, (image, words) in enumerate(zip(images, strings, strict=True)):
        place = f"line {table.lines[row]}"
        if len(words) % len(order):
            problem = f"holds {len(words)} words, which are no groups of {len(order)}: {' '.join(order)}"
            raise InputError(problem, source=table.source, record=place, field=STRING)
        called, count = found.image(str(image), place), len(words) // len(order)
        of_group += [called] * count
        rows += [row] * count
    flat = list(chain.from_iterable(strings))
    columns = [flat[order.index(name) :: len(order)] for name in ("score", *_FORMS[form])]
    numbers = numbers_of(columns, [table.lines[row] for row in rows], table.source, guessed)
    labels = flat[order.index("category") :: len(order)] if "category" in order else [only] * len(rows)
    if max(map(len, labels), default=0) > _LONGEST or "\0" in "".join(labels):
        raise InputError("the class has more than 256 characters, or a null", source=table.source, field=STRING)
    place_of = partial(_place, table.lines, rows)
    found.extend(place_of, of_group, labels, numbers[:, 1:], scores=numbers[:, 0])
    return found.detections(ground_truth, reading)


def _place(lines: Sequence[int], rows: Sequence[int], group: int) -> str:
    """Return the name of a detection's line for messages."""
    return f"line {lines[rows[group]]}"


def _order(
    strings: Sequence[Sequence[str]], reading: Reading, source: str
) -> tuple[tuple[str, ...], BoxFormat, NDArray[np.float64] | None]:
    """Return the order of a group's words, the box format, and the numbers of each group if the order was guessed from
    them. Raises `InputError` if the order is ambiguous.
    """
    if reading.columns is not None:
        order = tuple(given_columns(reading.columns))
        form = next((form for form, names in _FORMS.items() if {"score", *names} <= set(order)), None)
        if form is None or not set(order) <= {"category", "score", "", *_FORMS[form]}:
            raise OptionError(
                "the columns of a prediction string are category, score, and four of a box, in their order"
            )
        return order, form, None
    fits = {order: table for order in _ORDERS if (table := _fitting(order, strings)) is not None}
    if len(fits) != 1:
        problem = "is of no known order" if not fits else "can be read in two ways"
        remedy = "say the order of a group: columns='score,x,y,width,height' (--columns)"
        raise InputError(f"the column {problem}", source=source, field=STRING, remedy=remedy)
    [(order, table)] = fits.items()
    return order, _ORDERS[order][1], table


def _fitting(order: tuple[str, ...], strings: Sequence[Sequence[str]]) -> NDArray[np.float64] | None:
    """Return the score and the box of each group in this order; None unless most groups have a score from 0 to 1 and no
    negative size.
    """
    size = len(order)
    if any(len(words) % size for words in strings):
        return None
    flat = list(chain.from_iterable(strings))
    try:
        table = _floats([flat[k::size] for k in range(size - 5, size)])
    except ValueError:
        return None
    scored = (table[:, 0] >= 0) & (table[:, 0] <= 1)
    sides = table[:, 3:] if order[-1] == "height" else table[:, 3:] - table[:, 1:3]
    return table if np.count_nonzero(scored & (sides >= 0).all(axis=1)) >= 0.9 * len(table) else None


def _floats(columns: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """Return columns of words as numbers, shape (n, columns)."""
    return np.stack([np.fromiter(map(float, words), np.float64, len(words)) for words in columns], axis=1)


def numbers_of(
    columns: Sequence[Sequence[str]], lines: Sequence[int], source: str, made: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return columns of words as finite numbers, shape (n, columns); `lines` are the numbers of lines for errors.
    `made` holds the numbers if the words are already converted.
    """
    with suppress(ValueError):
        made = _floats(columns) if made is None else made
        text = "".join(chain.from_iterable(columns))
        if np.isfinite(made).all() and text.isascii() and "_" not in text:
            return np.asarray(made)
    for line, words in zip(lines, zip(*columns, strict=True), strict=True):
        for word in words:
            with suppress(ValueError):
                if np.isfinite(decimal(word)):
                    continue
            problem = "must be a finite number"
            raise InputError(problem, source=source, record=f"line {line}", field=STRING, value=word)
    raise AssertionError  # unreachable, because one of the words is invalid
