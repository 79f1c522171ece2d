"""Tables from arrays: layouts, types, masks, and values that must not pass."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import numpy as np

from attacks import REFUSE, Attack, Must
from attacks.documents import ANYTHING
from attacks.scenes import average_precision, evaluated, scene


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    """The columns of a scene, laid out or typed otherwise, or with one value spoilt."""
    import detmap

    truth, results = scene(rng)
    if not truth["annotations"] or not results:
        results, truth["annotations"] = [], []
    must = Must(value=average_precision(truth, results))
    given = {
        "truth": {
            "image_ids": np.array([a["image_id"] for a in truth["annotations"]], np.int64),
            "category_ids": np.array([a["category_id"] for a in truth["annotations"]], np.int64),
            "boxes": np.array([a["bbox"] for a in truth["annotations"]], np.float64).reshape(-1, 4),
            "crowd": np.array([a["iscrowd"] for a in truth["annotations"]], np.int64),
            "images": [one["id"] for one in truth["images"]],
            "categories": [one["id"] for one in truth["categories"]],
        },
        "found": {
            "image_ids": np.array([r["image_id"] for r in results], np.int64),
            "category_ids": np.array([r["category_id"] for r in results], np.int64),
            "boxes": np.array([r["bbox"] for r in results], np.float64).reshape(-1, 4),
            "scores": np.array([r["score"] for r in results], np.float64),
        },
    }
    side = "truth" if rng.random() < 0.5 else "found"
    columns = given[side]
    name = str(rng.choice([key for key in columns if key not in ("images", "categories")]))
    spoil = rng.random() < 0.5 and len(columns[name])
    change = spoilt if spoil else otherwise
    what, columns[name], refuse = change(rng, columns[name], name)
    if spoil:
        must = REFUSE if refuse else Must(value=ANYTHING, refuse=True)
    elif refuse:
        must = Must(must.value, True)

    def run() -> Any:
        one = detmap.GroundTruth.from_arrays(**given["truth"])
        other = detmap.Detections.from_arrays(**given["found"])
        return evaluated(one, other)

    return Attack(f"{side} {name}: {what} {columns[name]!r}"[:1500], run, must)


def otherwise(rng: np.random.Generator, column: np.ndarray, name: str) -> tuple[str, Any, bool]:
    """The same values in another layout or type; whether it may be refused too."""
    import pandas

    whole = bool(np.array_equal(column, np.round(column)))
    small = bool(whole and (not column.size or (column.min() >= 0 and column.max() < 128)))
    kinds = ["strided", "fortran", "reversed", "swapped", "readonly", "list", "masked", "object", "subclass"]
    kinds += ["float"] * (name != "boxes" and whole) + ["series"] * (column.ndim == 1)
    kinds += ["int8", "uint64"] * small + ["half"] * (small and name != "boxes")
    kinds += ["categorical"] * name.endswith("_ids") + ["bool"] * (name == "crowd")
    kind = str(rng.choice(kinds))
    if kind == "strided":
        wide = np.full((2 * len(column) + 1, *column.shape[1:]), 7, column.dtype)
        wide[1::2] = column
        return kind, wide[1::2], False
    if kind == "reversed":
        return kind, np.ascontiguousarray(column[::-1])[::-1], False
    made: Any = {
        "fortran": lambda: np.asfortranarray(column),
        "swapped": lambda: column.astype(column.dtype.newbyteorder()),
        "readonly": lambda: frozen(column),
        "list": column.tolist,
        "masked": lambda: np.ma.masked_array(column, mask=False),
        "object": lambda: column.astype(object),
        "subclass": lambda: column.view(np.recarray) if column.ndim == 1 else column,
        "float": lambda: column.astype(np.float64),
        "series": lambda: pandas.Series(column, index=np.arange(len(column))[::-1]),
        "half": lambda: column.astype(np.float16),
        "int8": lambda: column.astype(np.int8),
        "uint64": lambda: column.astype(np.uint64),
        "categorical": lambda: pandas.Series(column).astype("category"),
        "bool": lambda: column.astype(bool),
    }[kind]()
    return kind, made, kind in ("object", "subclass")


class Stranger:
    """What another library calls an array, and fails to hand over."""

    def __init__(self, rng: np.random.Generator) -> None:
        errors = [KeyError("no"), ZeroDivisionError("two\nlines"), BufferError("elsewhere"), RuntimeError("CUDA\n!")]
        self.error = errors[int(rng.integers(len(errors)))]
        self.shape, self.dtype, self.ndim = (1,), np.dtype(float), 1

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise self.error

    def __dlpack__(self, **_: Any) -> Any:
        raise self.error

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


def frozen(column: np.ndarray) -> np.ndarray:
    copy = column.copy()
    copy.setflags(write=False)
    return copy


def spoilt(rng: np.random.Generator, column: np.ndarray, name: str) -> tuple[str, Any, bool]:
    """One value that says nothing, in the type that lets it in; whether it must be refused."""
    at = int(rng.integers(len(column)))
    bad: dict[str, Any] = {
        "nan": float("nan"),
        "inf": float("-inf"),
        "none": None,
        "complex": 1 + 2j,
        "date": np.datetime64("2020-01-01"),
        "span": np.timedelta64(1, "s"),
        "text": "False",
        "word": "x",
        "list": [1],
        "dict": {},
        "python date": datetime.date(2020, 1, 1),
        "signal": decimal.Decimal("sNaN"),
        "huge": 10**400,
        "masked": np.ma.masked,
        "records": None,
        "stranger": None,
        "whole": None,
    }
    kind = str(rng.choice(list(bad)))
    if kind == "stranger":
        return kind, Stranger(rng), True
    if kind == "records":
        return kind, np.zeros(column.shape, [("a", float)]), True
    if kind == "whole":
        whole = ["abc", {1: 2}, {1, 2}, iter([1]), np.array(None), column[..., None], object()]
        if column.size > 1:  # a number is a column of one
            whole += [5, np.array(5.0)]
        return kind, whole[int(rng.integers(len(whole)))], True
    if kind == "masked":
        made = np.ma.masked_array(column.copy(), mask=np.zeros(column.shape, bool))
        made[at] = np.ma.masked
        return kind, made, True
    if kind in ("nan", "inf"):
        floats = column.astype(np.float64)
        floats[at] = bad[kind]
        return kind, floats, not (name == "scores" and kind == "inf")  # an infinite score has its place in a ranking
    if kind == "complex":
        numbers = column.astype(complex)
        numbers[at] = numbers[at] + 2j
        return kind, numbers, True
    if kind in ("date", "span") and column.ndim == 1:
        return kind, column.astype(np.int64).astype("datetime64[s]" if kind == "date" else "timedelta64[s]"), True
    listed = column.tolist()
    if column.ndim == 2:
        listed[at][int(rng.integers(column.shape[1]))] = bad[kind]
    else:
        listed[at] = bad[kind]
    as_object = rng.random() < 0.5
    if as_object:
        made = np.empty(column.shape, object)
        for i, row in enumerate(listed):
            for j, value in enumerate(row if column.ndim == 2 else [row]):
                made[(i, j) if column.ndim == 2 else i] = value
        return f"{kind} as object", made, True
    return kind, listed, True
