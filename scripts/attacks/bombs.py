"""Input that is small, or plain, and would take far more than its size; text that is none; names that command a terminal."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from attacks import REFUSE, Attack, Must

MB = 1 << 20
RECORD = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 0.5}
TRUTH = {
    "images": [{"id": 1}],
    "categories": [{"id": 1, "name": "a"}],
    "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "area": 1, "iscrowd": 0}],
}
COMMANDS = "\0\a\b\n\r\t\x1b\x7f\x9b\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069"


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    """Make one of them."""
    kinds: list[Callable[..., Attack]] = [packed, long_list, spoilt, huge, twice, commanding]
    return kinds[int(rng.integers(len(kinds)))](rng, folder)


def packed(rng: np.random.Generator, folder: Path) -> Attack:
    """Compressed data that grows beyond a limit."""
    import detmap
    from detmap.reading.sources import compressed

    limit = int(rng.integers(20, 80))
    piece = [b" ", b"{},", json.dumps(RECORD).encode() + b",", b"[", b"1,"][int(rng.integers(5))]
    data = b"[" + piece * ((limit + 5) * MB // len(piece))
    ending = str(rng.choice(["gz", "zst"]))
    small = compressed(data, f"x.{ending}")
    if ending == "gz" and rng.random() < 0.3:  # in members
        small = gzip.compress(data[: len(data) // 2]) + gzip.compress(data[len(data) // 2 :])
    path = folder / f"bomb.json.{ending}"
    path.write_bytes(small)
    source: Any = small if rng.random() < 0.5 else path

    def run() -> Any:
        os.environ["DETMAP_MOST_INFLATED"] = f"{limit}M"
        try:
            return str(detmap.read_coco_results(source))
        finally:
            del os.environ["DETMAP_MOST_INFLATED"]

    # Numbers and lists of a bomb of less than 200 times its size are within the limit, and no document.
    most = 2 * max(limit * MB, 200 * len(small)) + MB  # a piece that was inflated, beside what was kept
    return Attack(f"{ending} of {piece[:10]!r} beyond {limit} MiB", run, REFUSE, len(small), most)


def long_list(rng: np.random.Generator, folder: Path) -> Attack:
    """A list of many items where a record has one value, or a box."""
    import detmap

    item = [b"1", b"1.5", b'"a"', b"null", b"-0.1e-9"][int(rng.integers(5))]
    inside = b"[" + (item + b",") * int(rng.integers(100_000, 3_000_000)) + item + b"]"
    of_truth, lines = rng.random() < 0.4, rng.random() < 0.3
    field = str(rng.choice(["image_id", "category_id", "bbox", "area" if of_truth else "score"]))
    kind = str(rng.choice(["bbox", "segm"]))
    if of_truth:
        text = json.dumps({**TRUTH, "annotations": [{**TRUTH["annotations"][0], field: "?"}]}).encode()
    else:
        text = json.dumps({**RECORD, field: "?"} if lines else [{**RECORD, field: "?"}]).encode()
    data = text.replace(b'"?"', inside)
    path = folder / ("long.jsonl" if lines and not of_truth else "long.json")
    path.write_bytes(data)
    read = detmap.read_coco if of_truth else detmap.read_coco_results
    what = f"{field} of {len(data):,} bytes, items {item!r}, {kind}"
    return Attack(what, lambda: str(read(path, iou_type=kind)), REFUSE, len(data), 6 * len(data) + 50 * MB)


def spoilt(rng: np.random.Generator, folder: Path) -> Attack:
    """Bytes that are not UTF-8, where a column reads them or not."""
    import detmap

    bad = [b"\xff", b"\xc3(", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80"][int(rng.integers(5))]
    pad = b"x" * int(rng.choice([0, 100, 2 * MB]))
    more = b'"note": "%b%b",' % (pad, bad) if rng.random() < 0.7 else b'"no%bte": "%b",' % (bad, pad)
    of_truth = rng.random() < 0.5
    text = json.dumps(TRUTH if of_truth else [RECORD]).encode()
    braces = [at for at, byte in enumerate(text) if byte == ord("{")]
    at = braces[int(rng.integers(len(braces)))] + 1
    data = text[:at] + more + text[at:]
    if rng.random() < 0.2:
        data = b"image,category,x1,y1,x2,y2,score,note\na,b,1,1,2,2,.5,%b%b\n" % (pad, bad)
        truth = detmap.GroundTruth.from_arrays(image_ids=["a"], category_ids=["b"], boxes=[[1, 1, 2, 2]])
        path = folder / "spoilt.csv"
        path.write_bytes(data)
        return Attack(f"CSV with {bad!r}", lambda: str(detmap.read(path, "detections", ground_truth=truth)), REFUSE)
    read = detmap.read_coco if of_truth else detmap.read_coco_results
    kind = str(rng.choice(["bbox", "segm"]))
    return Attack(
        f"{bad!r} at {at} of {len(data):,}, {kind}", lambda: str(read(data, iou_type=kind)), REFUSE, len(data)
    )


def huge(rng: np.random.Generator, folder: Path) -> Attack:
    """Numbers, strings, lines and nesting of great length."""
    import detmap
    from detmap.retrieval import evaluate_run

    size = int(rng.choice([5000, 200_000, 4 * MB]))
    inside = [b"1" * size, b'"' + b"a" * size + b'"', b"[" * size, b'{"a":' * size, b"1e" + b"9" * size][
        int(rng.integers(5))
    ]
    if rng.random() < 0.3:
        query = b"q" * size
        run = query + b" Q0 d 1 0.5 t\n"
        kinds = [query + b" 0 d 1\n", b"q 0 d " + b"1" * size + b"\n", b"q 0 " + b"x" * size + b"\n"]
        judged = kinds[int(rng.integers(3))]
        must = Must(value=1.0, refuse=True)
        return Attack(f"TREC, {judged[:10]!r}… of {size:,}", lambda: float(evaluate_run(judged, run)["mAP"]), must)
    field = str(rng.choice(["image_id", "score", "bbox", "more"]))
    data = json.dumps([{**RECORD, field: "?"}]).encode().replace(b'"?"', inside)
    must = REFUSE if field != "more" or inside[:1] in b"[{" else Must(value=1, refuse=True)
    if field == "image_id" and inside[:1] == b'"':
        must = Must(value=1, refuse=True)
    return Attack(f"{field} of {inside[:10]!r}… {size:,}", lambda: len(detmap.read_coco_results(data)), must)


def twice(rng: np.random.Generator, folder: Path) -> Attack:
    """A key twice in an object that is read strictly."""
    from detmap import cards
    from detmap.retrieval import evaluate_run

    count = int(rng.choice([0, 10, 100_000]))
    key = str(rng.choice(["a", "\u00e9", "\x1b[31m", "x" * 1000]))
    inside = ",".join([f"{json.dumps(key)}: 1", *(f'"k{i}": 1' for i in range(count)), f"{json.dumps(key)}: 2"])
    path = folder / "twice.json"
    if rng.random() < 0.5:
        path.write_text('{"card": 1, "more": {' + inside + "}}")
        return Attack(f"a card with {key[:9]!r} twice of {count}", lambda: str(cards.read(path)), REFUSE)
    path.write_text('{"q": {' + inside + "}}")
    return Attack(f"a run with {key[:9]!r} twice of {count}", lambda: str(evaluate_run({"q": {"a": 1}}, path)), REFUSE)


def commanding(rng: np.random.Generator, folder: Path) -> Attack:
    """Names that a terminal or a spreadsheet would obey, as cells."""
    from detmap import results

    letters = [*COMMANDS, *"=+-@ab,;\"'\u00e9\u5206"]
    names = ["".join(rng.choice(letters, int(rng.integers(1, 12)))) for _ in range(3)]

    def run() -> Any:
        out = results.to_csv([{"name": name, name: 1.5} for name in names[:1]] + [{"name": names[1], names[0]: 2.5}])
        rows = list(csv.reader(io.StringIO(out, newline="")))
        cells = [cell for row in rows for cell in row]
        return len(rows), any(c in COMMANDS for c in "".join(cells)), any(cell[:1] in "=+-@" for cell in cells if cell)

    return Attack(f"names {names!r}", lambda: list(run()), Must(value=[3, False, False]))
