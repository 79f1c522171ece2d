"""A kind of shape from outside of the package: spans of time, begin and end in seconds, as COCO's records hold them."""

import json
from dataclasses import dataclass

import numpy as np

from detmap import register
from detmap.errors import InputError
from detmap.kernels import Frozen, readonly
from detmap.shapes import Boxes, Kind


@dataclass(frozen=True, eq=False)
class Spans(Frozen):
    """Rows of begin and end: seconds; float64, shape (n, 2)."""

    table: np.ndarray

    def __len__(self):
        return len(self.table)

    def take(self, rows):
        return Spans(readonly(self.table[rows], np.float64))

    def bounds(self):
        """Boxes a second high: left, top, width and height."""
        sides = np.zeros(len(self)), self.areas(), np.ones(len(self))
        return Boxes(readonly(np.column_stack([self.table[:, 0], *sides]), np.float64), sizes=True)

    def areas(self):
        return self.table[:, 1] - self.table[:, 0]

    def arrays(self):
        return {"table": self.table}


def given(values, source, record=lambda row: row):
    """What a user or a file gives, checked."""
    for row, value in enumerate(values):
        numbers = [one for one in value if isinstance(one, int | float | np.number)] if np.iterable(value) else []
        if not (len(numbers) == 2 == len(value) and -1e150 <= numbers[0] <= numbers[1] <= 1e150):
            raise InputError("must be begin and end", source=source, record=record(row), field="span", value=value)
    return Spans(readonly(np.reshape(values, (-1, 2)), np.float64))


class Reader:
    """Reads the field "span" of COCO's records."""

    def read(self, data, base, spans):
        return [json.loads(data[begin:end].tobytes()) if begin >= 0 else None for begin, end in spans.tolist()]

    def column(self, parts, place):
        return given([value for part in parts for value in part], place.source, place.record), {}


def refine(detections, ground_truth, pairs, out):
    """Temporal IoU; of a crowd the share of the detection."""
    (a, b), (c, d) = detections.table[pairs.detections].T, ground_truth.table[pairs.ground_truth].T
    shared = np.maximum(np.minimum(b, d) - np.maximum(a, c), 0)
    whole = np.where(pairs.crowd, b - a, (b - a) + (d - c) - shared)
    out[:] = np.divide(shared, whole, out=np.zeros_like(shared), where=shared > 0)


KIND = register(
    Kind(
        name="span",
        column=Spans,
        field="span",
        refine=refine,
        areas=lambda ground_truth, protocol: ground_truth.shape("span").areas(),
        reader=lambda size: Reader(),
        argument="spans",
        given=given,
        join=lambda columns: Spans(readonly(np.concatenate([one.table for one in columns]), np.float64)),
        decisions={"area_ranges": (("all", 0.0, 1e10), ("short", 0.0, 9.0), ("long", 9.0, 1e10)), "max_dets": (50,)},
    )
)
