"""A format of files from outside of the package: a line per record, class@image score x y w h, read and written."""

from __future__ import annotations

import os

import numpy as np

from detmap import Detections, GroundTruth, register
from detmap.errors import InputError
from detmap.formats import Format, read_bytes
from detmap.writing import write


def parse(source, what, width):
    """Return the words of each line, and what messages call the file."""
    data, name = read_bytes(source, what)
    rows = [line.replace("@", " ", 1).split() for line in bytes(data).decode("utf-8", "replace").splitlines()]
    for number, row in enumerate(rows, 1):
        if len(row) not in (width, 1) or (len(row) == 1 and what == "detections"):
            raise InputError(f"has {len(row)} words where {width} are expected", source=name, record=f"line {number}")
    return rows, name


def read_ground_truth(source, reading):
    """A word alone on its line is an image."""
    rows, name = parse(source, "ground truth", 6)
    objects = [row for row in rows if len(row) > 1]
    return GroundTruth.from_arrays(
        image_ids=np.array([row[1] for row in objects], str),
        category_ids=np.array([row[0] for row in objects], str),
        boxes=np.array([row[2:] for row in objects], float).reshape(-1, 4),
        images=np.array([*dict.fromkeys([*(r[0] for r in rows if len(r) == 1), *(r[1] for r in objects)])], str),
        source=name,
    )


def read_detections(source, ground_truth, reading):
    rows, name = parse(source, "detections", 7)
    found = Detections.from_arrays(
        image_ids=np.array([row[1] for row in rows], str),
        category_ids=np.array([row[0] for row in rows], str),
        scores=np.array([row[2] for row in rows], float),
        boxes=np.array([row[3:] for row in rows], float).reshape(-1, 4),
        source=name,
    )
    return found if ground_truth is None else found.on_images_of(ground_truth, reading.unknown_images)


def lines(table, *columns):
    ids = [one.values[one.codes].tolist() for one in (table.categories, table.images)]
    return [f"{c}@{i} {' '.join(map(repr, row))}" for c, i, *row in zip(*ids, *columns, strict=True)]


def write_ground_truth(table, path, writing):
    rows = [*map(str, table.images.values.tolist()), *lines(table, *table.boxes.T.tolist())]
    write(os.fspath(path), "\n".join(rows).encode())
    return {"crowd": int(table.crowd.sum())}


def write_detections(table, path, writing):
    write(os.fspath(path), "\n".join(lines(table, table.scores.tolist(), *table.boxes.T.tolist())).encode())
    return {}


FORMAT = register(
    Format(
        name="records",
        suffixes=(".records",),
        sniff=lambda given: given.name.endswith(".records"),
        tell=lambda given: "detections" if len(given.lines("")[-1]) == 6 else "ground_truth",
        read_ground_truth=read_ground_truth,
        read_detections=read_detections,
        write_ground_truth=write_ground_truth,
        write_detections=write_detections,
        written=(".records",),
    )
)
