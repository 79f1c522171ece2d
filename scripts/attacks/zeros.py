"""Attacks with ids of annotations that are 0, or nearly: ``id_zero``, and the two numbers of its notice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from attacks import Attack, Must
from attacks.scenes import average_precision, evaluated, scene

#: What pycocotools takes for 0 when it writes an id into an array of numbers, and what looks like it.
_ZEROS = (0, 0, 0, "0", "00", "-0", "0.0", " 0", "0e7", "1e-999", "\uff10")
_OTHERS = (1, -1, 2**53, "0x0", "", "o", "nil", "0 0", "1e-300")


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    import detmap

    truth, results = scene(rng)
    rows = truth["annotations"]
    missed = []
    for row in rows:
        if rng.random() < 0.4:
            kind = _ZEROS if rng.random() < 0.6 else _OTHERS
            row["id"] = kind[int(rng.integers(len(kind)))]
        if row["id"] in _ZEROS:
            missed.append(row["id"])
    worth = int(rng.choice([1, 1 << 20]))
    data: Any = json.dumps(truth, ensure_ascii=bool(rng.random() < 0.5)).encode() if rng.random() < 0.8 else truth
    found, other = average_precision(truth, results), average_precision(truth, results, missed)

    def run() -> Any:
        from unittest import mock

        with mock.patch("detmap.formats.coco.read._WORTH_SCANNING", worth):
            tables = detmap.read_coco(data), detmap.read_coco_results(results)
        out = [evaluated(*tables, id_zero=how) for how in ("found", "missed")]
        said = [detmap.evaluate(*tables, id_zero=how) for how in ("found", "missed")]
        if missed and results and rows:
            codes = {code for one in said for code in one.notices if code.startswith("zero_id_effect:")}
            wanted = " or ".join(f"{one['AP']:.4f}" for one in said)
            if codes and codes != {f"zero_id_effect:AP {wanted}"} and len({f"{one['AP']:.4f}" for one in said}) > 1:
                return f"the notice says {codes}, and must say {wanted}"
            if not codes and said[0]["AP"] != said[1]["AP"]:
                return "no notice has both numbers"
        return out

    return Attack(f"ids {[row['id'] for row in rows]!r}", run, Must([found, other]))
