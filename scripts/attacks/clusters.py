"""Which images depend on each other: files and fields of clusters, whole and damaged."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from attacks import REFUSE, Attack, Must
from attacks.documents import ANYTHING, damage
from attacks.scenes import scene

NAMES = ["a", "video 1", "é\u202e", "=1+1", "0", "-1", '"', "a,b", "two\nlines", " ", "nan", "x" * 300]
VALUES: list[Any] = [0, 1, -1, 2**62, "a", "0", "é"]
ODD: list[Any] = [None, True, 1.5, [1], {}, 2**70]


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    truth, _ = scene(rng)
    for number, image in enumerate(truth["images"]):
        image["file_name"] = f"frame_{number:03}.jpg"
    return file(rng, folder, truth) if rng.random() < 0.6 else field(rng, folder, truth)


def read(path: Path, clusters: str) -> Any:
    import detmap

    column = detmap.read(path, "ground_truth", clusters=clusters).images.clusters
    return [] if column is None else [str(one) for one in column.tolist()]


def file(rng: np.random.Generator, folder: Path, truth: dict[str, Any]) -> Attack:
    """A CSV file or JSON that says the cluster of each image, with a defect or without."""
    truth_path, path = folder / "truth.json", folder / "clusters.csv"
    truth_path.write_text(json.dumps(truth))
    rows = [
        [one["file_name"] if rng.random() < 0.3 else str(one["id"]), str(rng.choice(NAMES))] for one in truth["images"]
    ]
    must = Must(value=[rows[at][1] for at in np.argsort([one["id"] for one in truth["images"]])])
    rng.shuffle(rows)
    rows = [list(map(str, row)) for row in rows]
    defect = str(rng.choice(["", "", "", "twice", "unknown", "lacking", "empty", "short", "header"]))
    if defect == "twice":
        rows.append(rows[0])
    elif defect == "unknown":
        rows.append(["9999", "a"])
    elif defect == "lacking":
        rows.pop()
    elif defect == "empty":
        rows[0][1] = ""
    elif defect == "short":
        rows[0].pop()
    header = ["image", "cluster"] if defect != "header" else ["picture", "cluster"]
    out = io.StringIO(newline="")
    more = rng.random() < 0.2
    writer = csv.writer(out, lineterminator="\r\n" if rng.random() < 0.3 else "\n")
    writer.writerows([[*row, *(["x"] if more and len(row) == 2 else [])] for row in (header, *rows)])
    data = out.getvalue().encode()
    if defect not in ("header", "short", "twice") and rng.random() < 0.3:
        data = json.dumps(dict(rows)).encode()
    if rng.random() < 0.2:
        data = b"\xef\xbb\xbf" + data
    must = must if not defect else REFUSE
    if rng.random() < 0.2:
        data, must, defect = damage(rng, data), Must(value=ANYTHING, refuse=True), "damaged"
    path.write_bytes(data)
    return Attack(f"clusters {defect or 'whole'}: {data[:200]!r}", lambda: read(truth_path, str(path)), must, len(data))


def field(rng: np.random.Generator, folder: Path, truth: dict[str, Any]) -> Attack:
    """A field of the images that says their clusters: integers or strings, all of them."""
    name = str(rng.choice(["video_id", 'a "b"', "é", "id ", "cluster"]))
    odd = rng.random() < 0.4
    for image in truth["images"]:
        choice = [*VALUES, *ODD] if odd else VALUES[:4] if rng.random() < 0.95 else VALUES
        image[name] = choice[int(rng.integers(len(choice)))]
        if odd and rng.random() < 0.2:
            del image[name]
    path = folder / "truth.json"
    path.write_text(json.dumps(truth))
    given = [one.get(name) for one in sorted(truth["images"], key=lambda one: int(one["id"]))]
    kinds = {type(one) for one in given}
    fine = kinds in ({int}, {str}) and not any(isinstance(one, int) and one >= 2**63 for one in given)
    must = Must(value=list(map(str, given))) if fine else REFUSE
    return Attack(f"field {name}: {given}", lambda: read(path, name), must)
