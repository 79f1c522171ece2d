"""A format of files from outside of the package: a line per record, class@image score x y w h, read and written."""

import os

import numpy as np

from detmap import Detections, GroundTruth, register
from detmap.errors import InputError
from detmap.formats import Format, read_bytes
from detmap.system.whole_files import write


def parse(source, what, reading, truth=None):
    """Return the columns of a file, and its images: a word alone on its line is one."""
    data, name = read_bytes(source, what)
    width = 7 if what == "detections" else 6
    rows, alone, numbers = [], [], []
    for number, line in enumerate(bytes(data).decode("utf-8", "replace").splitlines(), 1):
        words = line.replace("@", " ", 1).split()
        if len(words) not in (width, 1) or (len(words) == 1 and what == "detections"):
            raise InputError(f"has {len(words)} words where {width} are expected", source=name, record=f"line {number}")
        try:
            numbers += [[float(word) for word in words[2:]]] if len(words) > 1 else []
        except ValueError:
            raise InputError("has a word for a number", source=name, record=f"line {number}", value=line) from None
        (rows if len(words) > 1 else alone).append(words)
    table = np.array(numbers, float).reshape(-1, width - 2)
    columns = {"boxes": table[:, -4:], "invalid_boxes": reading.invalid_boxes, "source": name}
    columns |= {"scores": table[:, 0]} if what == "detections" else {}
    columns["category_ids"] = ids([row[0] for row in rows], getattr(truth, "categories", None))
    columns["image_ids"] = ids([row[1] for row in rows], getattr(truth, "images", None))
    return columns, [row[0] for row in alone] + [row[1] for row in rows]


def ids(words, known):
    whole = known is not None and known.ids.dtype.kind == "i" and all(word.isdecimal() for word in words)
    return np.array(words, np.int64 if whole else str)


def read_ground_truth(source, reading):
    columns, images = parse(source, "ground truth", reading)
    return GroundTruth.from_arrays(**columns, images=np.array([*dict.fromkeys(images)], str))


def read_detections(source, ground_truth, reading):
    found = Detections.from_arrays(**parse(source, "detections", reading, ground_truth)[0])
    return found if ground_truth is None else found.on_images_of(ground_truth, reading.unknown_images)


def save(table, path, alone, *scores):
    """Write a table, and return how much of it has no place here."""
    categories, images = ([str(value) for value in one.ids.tolist()] for one in (table.categories, table.images))
    for word in (*categories, *images):
        if "@" in word or word.split() != [word]:
            raise InputError("an id must be a word without @", source=table.source, value=word)
    boxes = table.boxes if table.box_sizes else np.c_[table.boxes[:, :2], table.boxes[:, 2:] - table.boxes[:, :2]]
    lines = [*images] if alone else []
    for c, i, *row in zip(table.categories.codes, table.images.codes, *scores, *boxes.T.tolist(), strict=True):
        lines.append(f"{categories[c]}@{images[i]} {' '.join(map(repr, row))}")
    write(os.fspath(path), "\n".join(lines).encode())
    lost = {"corners": len(table) * (not table.box_sizes), "shapes": len(table) * (len(table.shapes) > 1)}
    if alone:
        areas = table.areas != table.shapes["bbox"].areas()
        lost |= {"crowd": int(table.crowd.sum()), "difficult": int(table.difficult.sum()), "areas": int(areas.sum())}
    return lost


FORMAT = register(
    Format(
        name="records",
        suffixes=(".records",),
        sniff=lambda given: given.name.endswith(".records"),
        tell=lambda given: "detections" if len((given.lines("") or [""])[-1]) == 6 else "ground_truth",
        read_ground_truth=read_ground_truth,
        read_detections=read_detections,
        write_ground_truth=lambda table, path, writing: save(table, path, True),
        write_detections=lambda table, path, writing: save(table, path, False, table.scores.tolist()),
        written=(".records",),
    )
)
