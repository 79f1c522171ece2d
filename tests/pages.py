"""Files from which the tests of pages make reports; classes, images, queries and models are called what no page may run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
FILES = [ROOT / "fixtures" / "coco" / name for name in ("ground_truth.json", "detections.json")]
HOSTILE = "<img src=x onerror=document.title='owned'></script><script>document.title='owned'</script>{{7*7}}\u2028\"'&`"


def hostile_files(folder):
    """The small data set with classes and images that are called what no page may run, and a second model."""
    truth, found = (json.loads(path.read_text()) for path in FILES)
    for item in truth["categories"]:
        item["name"] = HOSTILE + item["name"]
    for image in truth["images"]:
        image["file_name"] = HOSTILE + image["file_name"]
    moved = [{**one, "bbox": [one["bbox"][0] + 6, *one["bbox"][1:]]} for one in found]
    names = ("truth.json", "<i>before&.json", "after.json")
    for name, content in zip(names, (truth, moved, found), strict=True):
        (folder / name).write_text(json.dumps(content), "utf-8")
    return [folder / name for name in names]


def hostile_runs(folder):
    """Judgements and two runs with tied scores, of queries with such names (which have no blanks)."""
    rng = np.random.default_rng(5)
    name = HOSTILE.replace(" ", "/").replace("\u2028", "")

    def lines(shift):
        rows = [(q, d, rng.normal() + shift * (d < 1 + q % 4)) for q in range(30) for d in range(25)]
        return "".join(f"q{q}{name} Q0 d{d} 0 {s:.1f} run\n" for q, d, s in rows)

    judged = "".join(f"q{q}{name} 0 d{d} {1 + (d == 0)}\n" for q in range(30) for d in range(1 + q % 4))
    names = ("qrels.txt", "<i>before&.run", "after.run")
    for path, text in zip(names, (judged, lines(0.5), lines(1.8)), strict=True):
        (folder / path).write_text(text, "utf-8")
    return [folder / path for path in names]
