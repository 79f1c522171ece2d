"""Folders of YOLO as tools of Ultralytics write them: pictures, labels and settings."""

from __future__ import annotations

import pytest
from PIL import Image

NAMES = "names:\n  0: cat\n  1: dog\n"


def picture(path, width, height, turned=None):
    """A small image; `turned` is EXIF's number for how it is to be turned."""
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    if turned:
        exif[274] = turned
    Image.new("RGB", (width, height)).save(path, **({"exif": exif} if turned else {}))


def labels(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def dataset(tmp_path):
    """A data set as training takes it: data.yaml, images and labels of two splits; one image has no objects."""
    root = tmp_path / "set"
    for name, size in (("a", (200, 100)), ("b", (64, 48)), ("empty", (10, 10))):
        picture(root / f"images/val/{name}.png", *size)
    picture(root / "images/train/c.jpg", 20, 40, turned=6)
    labels(root / "labels/val/a.txt", "0 0.5 0.5 0.25 0.5\n1 0.1 0.2 0.1 0.2\n")
    labels(root / "labels/val/b.txt", "1 0.25 0.25 0.5 0.5\n\n")
    labels(root / "labels/train/c.txt", "0 0.5 0.5 0.5 0.5\n")
    labels(root / "data.yaml", f"path: .\ntrain: images/train\nval: images/val\n{NAMES}")
    return root


def boxes_of(table):
    """Rows of image, category and box."""
    ids = zip(table.images.codes.tolist(), table.categories.codes.tolist(), strict=True)
    names = table.images.values.tolist(), table.categories.values.tolist()
    return [
        (names[0][i], names[1][c], [round(float(v), 6) for v in box])
        for (i, c), box in zip(ids, table.boxes, strict=True)
    ]


def settings_of(dataset, text):
    """Write data.yaml, and return its path."""
    (dataset / "data.yaml").write_text(text)
    return dataset / "data.yaml"
