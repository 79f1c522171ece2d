"""Panoptic segmentation: label maps of all sorts as PNG files and their JSON, as they are or damaged."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from attacks import REFUSE, Attack, Must
from attacks.documents import ANYTHING, damage
from attacks.texts import lay_out

STRATEGIES = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE, zlib.Z_FIXED)

CATEGORIES = [{"id": k, "name": f"c{k}", "isthing": k % 2} for k in (4, 1, 3, 2)]

#: Bytes that a file may add to memory before it is refused: what its header may ask for.
MOST = 400 << 20


def scene(rng: np.random.Generator) -> tuple[Any, list[dict[str, Any]], Any, list[dict[str, Any]]]:
    """Label map and segments of the ground truth, then of predictions that are mostly like it."""
    height, width = (int(side) for side in rng.integers(1, 40, 2))
    ids = rng.choice(2**24 - 1, int(rng.integers(1, 8)), replace=False) + 1
    truth = np.zeros((height, width), np.int64)
    for one in ids:
        y, x = int(rng.integers(height)), int(rng.integers(width))
        truth[y : y + int(rng.integers(1, height + 1)), x : x + int(rng.integers(1, width + 1))] = one
    if rng.random() < 0.2:
        truth = rng.choice([0, *ids.tolist()], (height, width))
    found = np.where(rng.random(truth.shape) < rng.choice([0, 0.05, 0.4]), np.roll(truth, 1, axis=1), truth)
    category = {int(one): int(rng.integers(1, 5)) for one in ids}
    segments = [
        {"id": one, "category_id": k, "area": int((truth == one).sum()), "iscrowd": int(rng.random() < 0.2)}
        for one, k in category.items()
        if rng.random() < 0.9
    ]
    predicted = [
        {"id": int(one), "category_id": category[int(one)] if rng.random() < 0.8 else int(rng.integers(1, 5))}
        for one in np.unique(found)
        if one
    ]
    return truth, segments, found, predicted


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    """Images with any filter and compression; bombs, other sizes and colours, missing and odd files; damage anywhere."""
    import naive_panoptic as twin

    from detmap.panoptic import evaluate

    scenes = [scene(rng) for _ in range(int(rng.integers(1, 5)))]
    parts = int(rng.integers(1, 6))
    files: dict[str, bytes] = {}
    for side, at in (("gt", 0), ("pred", 2)):
        rows = []
        for image, one in enumerate(scenes):
            ids, channels = one[at], int(rng.integers(3, 5))
            filtered = twin.filtered(twin.coloured(ids, channels), rng.integers(0, 5, len(ids)).tolist())
            level, strategy = int(rng.integers(0, 10)), int(rng.choice(STRATEGIES))
            pieces = int(rng.integers(1, 4))
            files[f"{side}/{image}.png"] = twin.png(filtered, *ids.shape, channels, level, strategy, pieces)
            rows.append({"image_id": image, "file_name": f"{image}.png", "segments_info": one[at + 1]})
        document = {"categories": CATEGORIES, "annotations": rows} if side == "gt" else {"annotations": rows}
        files[f"{side}.json"] = json.dumps(document).encode()
    expected = twin.panoptic_quality(CATEGORIES, scenes, parts)
    must: Must = Must(value=[row[name] for row in expected["per_class"].values() for name in ("pq", "sq", "rq")])
    what, choice = "as it is", rng.random()
    image = f"{rng.choice(['gt', 'pred'])}/{int(rng.integers(len(scenes)))}.png"
    if choice < 0.4:
        name = str(rng.choice(list(files)))
        files[name], must, what = damage(rng, files[name]), Must(value=ANYTHING, refuse=True), f"damaged {name}"
    elif choice < 0.7:
        files[image], what = odd(rng, twin), f"odd {image}"
        must = REFUSE
    elif choice < 0.8:
        del files[image]
        must, what = REFUSE, f"no {image}"
    lay_out(folder / "panoptic", files)

    def run() -> Any:
        result = evaluate(folder / "panoptic" / "gt.json", folder / "panoptic" / "pred.json", parts=parts)
        values = [row[name] for row in result.rows() for name in ("PQ", "SQ", "RQ")]
        return [0.0 if value != value else value for value in values]

    return Attack(f"{what}: {files!r}"[:1500], run, must, sum(map(len, files.values())), MOST)


def odd(rng: np.random.Generator, twin: Any) -> bytes:
    """A file that is no label map of the size of the others."""
    rows = bytes(64)
    return (
        lambda: twin.png(bytes(41 * (1 + 41 * 3)), 41, 41),  # another size
        lambda: twin.png(rows, 8, 8, kind=3),  # a palette
        lambda: twin.png(rows, 8, 8, kind=0),  # gray
        lambda: twin.png(rows, 8, 8, depth=16),
        lambda: twin.png(bytes(50_000_000), 30_000, 30_000, level=9),  # a bomb: a large header
        lambda: twin.png(bytes(50_000_000), 2, 2, level=9),  # a bomb: more pixels than the header says
        lambda: twin.png(bytes(3), 40_000, 2_000),
        lambda: twin.png(rows, 2**31 - 1, 2**31 - 1),
        lambda: twin.png(rows, 0, 5),
        lambda: twin.png(rows, 50, 50, way=1),  # interlaced, and too short
        lambda: b"",
        lambda: b"\xff\xd8\xff\xe0 a photograph",
        lambda: rng.bytes(int(rng.integers(1, 200))),
        lambda: b"\x89PNG\r\n\x1a\n" + rng.bytes(int(rng.integers(1, 200))),
    )[int(rng.integers(14))]()
