"""YOLO's folders, CSV, and lines of text per image: blanks, line ends, quotes, stray files, and damage anywhere."""

from __future__ import annotations

import csv
import io
import shutil
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from attacks import Attack, Must
from attacks.documents import ANYTHING, damage

Row = tuple[str, str, float, tuple[float, float, float, float]]  # image, class, score, four numbers


def scene(rng: np.random.Generator) -> tuple[list[str], list[str], list[Row]]:
    """Return images, classes, and detections, whose four numbers are shares: centre and size."""
    images = [f"{'é a-0x'[i % 6]}{i}" for i in range(int(rng.integers(1, 5)))]
    images = [name.strip() for name in images]
    classes = ["cat", "dog", "0", "é"][: int(rng.integers(1, 5))]
    rows = []
    for _ in range(int(rng.integers(1, 12))):
        w, h = (int(v) / 64 for v in rng.integers(1, 32, 2))
        x, y = (int(v) / 64 for v in rng.integers(16, 48, 2))
        rows.append((str(rng.choice(images)), str(rng.choice(classes)), int(rng.integers(1, 9)) / 8, (x, y, w, h)))
    return images, classes, rows


def png(width: int, height: int) -> bytes:
    """An image that says its size, and holds no pixels."""
    out = b"\x89PNG\r\n\x1a\n"
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    for name, data in ((b"IHDR", head), (b"IDAT", b""), (b"IEND", b"")):
        out += struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    return out


def yolo(images: list[str], classes: list[str], rows: list[Row], scored: bool) -> dict[str, bytes]:
    """A data set, or predictions."""
    files: dict[str, bytes] = {}
    for name in images:
        own = [row for row in rows if row[0] == name]
        lines = [" ".join(map(repr, [classes.index(row[1]), *row[3], *([row[2]] if scored else [])])) for row in own]
        if lines or not scored:
            files[f"labels/{name}.txt"] = "\n".join(lines).encode()
        if not scored:
            files[f"images/{name}.png"] = png(128, 64)
    listed = "".join(f"  {i}: '{name}'\n" for i, name in enumerate(classes))
    files["data.yaml"] = f"val: images\nnames:\n{listed}".encode()
    return files


def pixels(row: Row) -> list[float]:
    """Left, top, width and height on an image of 128 x 64: shares of 64ths, so that nothing is rounded."""
    x, y, w, h = row[3]
    return [(x - w / 2) * 128, (y - h / 2) * 64, w * 128, h * 64]


def table(rows: list[Row], rng: np.random.Generator, scored: bool) -> bytes:
    """CSV, with another delimiter, line ends, order of columns and quotes now and then."""
    names = ["image", "class", "x", "y", "width", "height", *(["score"] if scored else [])]
    order = rng.permutation(len(names)).tolist()
    out = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if rng.random() < 0.3 else csv.QUOTE_MINIMAL
    end = "\r\n" if rng.random() < 0.3 else "\n"
    writer = csv.writer(out, delimiter=str(rng.choice([*",;\t"])), quoting=quoting, lineterminator=end)
    writer.writerow([names[i] for i in order])
    for row in rows:
        cells = [row[0], row[1], *map(repr, pixels(row)), *([row[2]] if scored else [])]
        writer.writerow([cells[i] for i in order])
    return (b"\xef\xbb\xbf" if rng.random() < 0.2 else b"") + out.getvalue().encode()


def lines(images: list[str], rows: list[Row], scored: bool) -> dict[str, bytes]:
    """A file per image of class, score and corners."""
    files = {}
    for name in images:
        own = []
        for row in (row for row in rows if row[0] == name):
            x, y, w, h = pixels(row)
            corners = " ".join(map(repr, (x, y, x + w, y + h)))
            own.append(f"{row[1]} {f'{row[2]!r} ' if scored else ''}{corners}")
        files[f"{name}.txt"] = "\n\n".join(own).encode()
    return files


def lay_out(folder: Path, files: dict[str, bytes]) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    """A scene in one of the formats, as it is or damaged: scores and boxes come out bit for bit, or it is refused."""
    import detmap

    images, classes, rows = scene(rng)
    kind = str(rng.choice(["yolo", "csv", "text"]))
    sides: list[dict[str, bytes]]
    if kind == "yolo":
        sides = [yolo(images, classes, rows, scored) for scored in (False, True)]
    elif kind == "csv":
        sides = [{"table.csv": table(rows, rng, scored)} for scored in (False, True)]
    else:
        sides = [lines(images, rows, scored) for scored in (False, True)]
    expected = sorted([row[2], *pixels(row)] for row in rows)
    must, what = Must(value=[value for one in expected for value in one]), kind
    if rng.random() < 0.7:
        side = int(rng.integers(2))
        name = str(rng.choice(list(sides[side])))
        sides[side][name] = damage(rng, sides[side][name])
        must, what = Must(value=ANYTHING, refuse=True), f"{kind} damaged {name} of {side}"
    paths = [lay_out(folder / f"side{i}", files) for i, files in enumerate(sides)]
    if kind == "csv":
        paths = [path / "table.csv" for path in paths]
    elif kind == "yolo":
        paths[0] = paths[0] / "data.yaml" if rng.random() < 0.5 else paths[0]

    def run() -> Any:
        truth = detmap.read(paths[0], "ground_truth", format=kind, box_format="xyxy" if kind == "text" else None)
        found = detmap.read(paths[1], "detections", format=kind, ground_truth=truth)
        boxes = found.boxes if found.box_sizes else np.c_[found.boxes[:, :2], found.boxes[:, 2:] - found.boxes[:, :2]]
        listed = sorted([score, *box] for score, box in zip(found.scores.tolist(), boxes.tolist(), strict=True))
        return [value for one in listed for value in one]

    return Attack(what, run, must, sum(len(data) for files in sides for data in files.values()))
