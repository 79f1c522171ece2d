"""Files with a value per image: CSV with a column of images and a column of values, or a JSON object that maps ids to
values."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import locate
from detmap.errors import InputError, is_integer, shorten
from detmap.reading.options import Path
from detmap.reading.sources import read_bytes

#: Matches integers, which may begin with zeros. `int` would also accept "0_1", "+1" and non-ASCII digits.
_WHOLE = re.compile(r"-?[0-9]{1,19}")


def image_values(source: Path | Mapping[Any, Any], column: str) -> tuple[list[tuple[str, Any, Any]], str]:
    """Return the entries as tuples of a name for messages, an image and a value. Also return the source's name."""
    remedy = f'a CSV file has the columns image and {column}; JSON is {{"image": "{column}", …}}'
    import csv

    plural = f"{column}s"
    if isinstance(source, Mapping):
        return [(f"image {shorten(image)}", image, value) for image, value in source.items()], plural
    data, name = read_bytes(source, plural)
    try:
        text = bytes(data).decode("utf-8-sig")
        if text.lstrip()[:1] == "{":
            pairs: list[tuple[str, Any]] = json.loads(text, object_pairs_hook=list)
            return [(f"image {shorten(image)}", image, value) for image, value in pairs], name
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        fields = reader.fieldnames or ()
        key = next((field for field in ("image", "image_id") if field in fields), None)
        if key is None or column not in fields:
            raise InputError(f"has no columns image and {column}", source=name, remedy=remedy)
        return [(f"line {reader.line_num}", row[key], row[column]) for row in reader], name
    except (csv.Error, RecursionError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"is neither a CSV file nor JSON of {plural}", source=name, remedy=remedy) from None


def image_key(image: Any, ids: NDArray[Any]) -> Any:
    """Return an image's id in the type of the ground truth's `ids`; None if unknown."""
    if ids.dtype.kind == "i":
        if isinstance(image, str) and _WHOLE.fullmatch(image):
            image = int(image)
        if not is_integer(image):
            return None
        found = -(2**63) <= image < 2**63 and locate(np.array([image]), ids)[0] >= 0
    else:
        image = str(image)
        found = locate(np.array([image]), ids)[0] >= 0
    return image if found else None
