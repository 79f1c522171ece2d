"""A kind of shape from outside of the package: circles, of which two overlap as discs do, and files of them."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from detmap import Detections, GroundTruth, register
from detmap.formats import Format, read_bytes
from detmap.kernels import Frozen, readonly
from detmap.shapes import Boxes, Kind
from growth import circles_kernels


@dataclass(frozen=True, eq=False)
class Circles(Frozen):
    """Rows of centre and radius: x, y, r in pixels; float64, shape (n, 3)."""

    table: np.ndarray

    @classmethod
    def of(cls, rows, source=""):
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


def join(columns):
    return Circles.of(np.concatenate([column.table for column in columns]))


KIND = register(
    Kind(name="circle", column=Circles, field="circle", refine=refine, argument="circles", given=Circles.of, join=join)
)


def columns(source):
    """Read columns by name: lists of images, categories, circles, and what else there is."""
    data, name = read_bytes(source, "circles")
    found = json.loads(bytes(data))
    return {"shapes": {"circle": Circles.of(found.pop("circles"))}, "source": name, **found}


def read_detections(source, ground_truth, reading):
    return Detections.from_arrays(**columns(source)).on_images_of(ground_truth, reading.unknown_images)


FORMAT = register(
    Format(
        name="circles",
        suffixes=(".circles",),
        sniff=lambda given: given.name.endswith(".circles"),
        read_ground_truth=lambda source, reading: GroundTruth.from_arrays(**columns(source)),
        read_detections=read_detections,
        holds=("circle",),
    )
)
