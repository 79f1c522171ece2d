"""Files larger than what is read at once: records, numbers and letters that lie across the edges of blocks and windows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from attacks import Attack, Must, lines
from attacks.documents import damage, expected
from attacks.scenes import average_precision, evaluated, scene

#: Where a reader may cut a file: powers of two, and their multiples.
EDGES = [1 << 20, 1 << 21, 3 << 20, 1 << 22, 1 << 23]
FILLINGS = ["x", "é", "\U0001f600", '\\"', "\\\\", "\\u00e9", "}{", "]},{", '\\",\\"image_id\\": 1', " "]


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    return trec(rng, folder) if rng.random() < 0.3 else coco(rng, folder)


def filler(rng: np.random.Generator, size: int) -> str:
    """A string's inside, of about so many bytes."""
    one = FILLINGS[int(rng.integers(len(FILLINGS)))]
    return one * max(size // len(one.encode()), 1)


def coco(rng: np.random.Generator, folder: Path) -> Attack:
    """A scene of which some record begins just before an edge, in one of the forms that results have."""
    import detmap

    truth, results = scene(rng)
    of_truth = bool(rng.random() < 0.3)
    records = truth["annotations"] if of_truth else results
    edge = int(rng.choice(EDGES))
    texts = [json.dumps(one) for one in records]
    kind = ["list", "annotations", "lines"][int(rng.integers(3))] if not of_truth else "truth"
    if texts:
        before = int(rng.integers(len(texts)))
        size = edge - sum(map(len, texts[:before])) - int(rng.integers(0, 400))
        many = kind != "lines" and not of_truth and rng.random() < 0.3
        if many:  # small records of a category that nobody asks for
            plain = '{"image_id": %d, "category_id": 99, "bbox": [1.25, 2, 3, 4e0], "score": 0.%d}'
            image = truth["images"][0]["id"]
            texts[before:before] = [plain % (image, i) for i in range(size // 78)]
        else:
            texts[before] = texts[before][:-1] + f', "more": "{filler(rng, size)}"}}'
    separator = (
        ["\n", "\n\n", "\r\n"][int(rng.integers(3))] if kind == "lines" else [",", ", ", ",\n "][int(rng.integers(3))]
    )
    body = separator.join(texts)
    rest = {key: truth[key] for key in ("images", "categories")}
    text = {
        "list": f"[{body}]",
        "annotations": f'{{"annotations": [{body}], "info": {{"é": "]}}"}}}}',
        "lines": body + separator,
        "truth": f'{{"annotations": [{body}], {json.dumps(rest)[1:]}',
    }[kind]
    data = text.encode()
    must = Must(value=average_precision(truth, results))
    damaged = bool(texts and rng.random() < 0.4)
    if damaged:  # near the edge, or in the last bytes
        at = min(edge, len(data)) - 200 if rng.random() < 0.7 else len(data) - 200
        at = max(at, 0)
        data = data[:at] + damage(rng, data[at : at + 400]) + data[at + 400 :]
        must = expected(truth, data, of_truth, results, kind == "lines")
    path = folder / ("large.jsonl" if kind == "lines" else "large.json")
    path.write_bytes(data)
    source: Any = data if kind != "lines" and rng.random() < 0.3 else path
    other = json.dumps(results if of_truth else truth).encode()

    def run() -> Any:
        first = detmap.read_coco(source if of_truth else other)
        return evaluated(first, detmap.read_coco_results(other if of_truth else source, first))

    return Attack(f"{kind} of {len(data)} bytes, edge {edge}, damaged={damaged}", run, must, len(data))


def trec(rng: np.random.Generator, folder: Path) -> Attack:
    """A run whose lines lie across an edge, after comments and queries that nobody judged."""
    judged, run_of = lines.scene(rng)
    edge, end = int(rng.choice(EDGES[1:])), ["\n", "\r\n"][int(rng.integers(2))]
    rows = [f"{q} Q0 {d} 1 {s!r} tag" for q, of in run_of.items() for d, s in of.items()]
    place = int(rng.integers(len(rows)))
    size = edge - sum(len(row) + len(end) for row in rows[:place]) - int(rng.integers(0, 60))
    if rng.random() < 0.5:
        rows[place:place] = ["#" + "é" * (size // 2)]
    else:
        rows[place:place] = [f"nobody Q0 d{i:07d} 1 {i % 1000}.5 tag" for i in range(size // 31)]
    text = end.join(rows) + end * int(rng.integers(2))
    qrels = "".join(f"{q} 0 {d} {g}\n" for q, of in judged.items() for d, g in of.items()).encode()
    hopeless = not any(grade for query in set(judged) & set(run_of) for grade in judged[query].values())
    value = lines.mean_average_precision(judged, run_of)
    path = folder / "large.txt"
    path.write_text(text, newline="")
    what = f"run of {len(text)} characters, edge {edge}, end {end!r}"
    return Attack(what, lambda: lines.evaluated(qrels, path), Must(value=value, refuse=hopeless), len(text))
