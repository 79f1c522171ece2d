"""A kind of shape from outside of the package: circles, of which two overlap as discs do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from detmap.kernels import Frozen, readonly
from detmap.shapes import Boxes, Kind, register
from growth import circles_kernels


@dataclass(frozen=True, eq=False)
class Circles(Frozen):
    """Rows of centre and radius: x, y, r in pixels; float64, shape (n, 3)."""

    table: np.ndarray

    @classmethod
    def of(cls, rows):
        return cls(readonly(np.reshape(rows, (-1, 3)), np.float64))

    def __len__(self):
        return len(self.table)

    def take(self, rows):
        return Circles(readonly(self.table[rows], np.float64))

    def bounds(self):
        x, y, r = self.table.T
        return Boxes(readonly(np.stack([x - r, y - r, x + r, y + r], axis=1), np.float64), sizes=False)

    def areas(self):
        return np.pi * self.table[:, 2] ** 2

    def arrays(self):
        return {"table": self.table}


def refine(detections, ground_truth, pairs, out):
    circles_kernels.overlaps(detections.table, ground_truth.table, *pairs[:3], out)


KIND = register(Kind(name="circle", column=Circles, field="circle", propose="touch", refine=refine))
