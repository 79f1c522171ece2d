"""What `check` says of each planted defect, in one cell of kind and severity each, word for word, as `SAID` keeps it.

A change that is meant is written by ``scripts/check_the_checks.py --said``, and is seen in the difference of that file.
"""

from __future__ import annotations

import copy
import functools
import json
import tempfile
from pathlib import Path

import numpy as np
import planting

import detmap

SAID = Path(__file__).resolve().parent.parent.parent / "fixtures" / "checks" / "said.txt"

#: Shares of what a defect concerns. The lowest is close to what is seen at all, where limits decide.
_SHARES = (0.02, 0.1, 0.5)


def cells():
    """Return by name the kind of a scene, a defect (None for a clean scene), and its share."""
    made = {f"{kind}, clean": (kind, None, 0.0) for kind in (*planting.KINDS, *planting.SHAPED_KINDS)}
    turns = [("", one) for one in planting.SCENE_DEFECTS] + planting.SHAPED_DEFECTS
    for turn, (kind, one) in enumerate(turns):
        kinds = (
            [kind] if kind else [name for name, (_, _, classes, _) in planting.KINDS.items() if classes >= one.classes]
        )
        shares = [share for share in _SHARES if one.least <= share <= one.most] or [one.most]
        kind, share = kinds[turn % len(kinds)], shares[turn // 3 % len(shares)]
        made[f"{kind}, {share:.0%}, {one.name}"] = kind, one, share
    return made


@functools.lru_cache(maxsize=2)
def _clean(kind):
    return planting.shaped(3, kind) if kind in planting.SHAPED_KINDS else planting.scene(3, kind)


def said(kind, defect, share):
    """Return a line for each finding of a scene with a defect."""
    scene = copy.deepcopy(_clean(kind))
    if defect is not None:
        defect.plant(np.random.default_rng([3, 1]), scene, share)
    data = scene.data()
    with tempfile.TemporaryDirectory() as folder:
        documents = {"truth": data.truth, "found": data.found, **({"train": data.train} if data.train else {})}
        paths = {name: Path(folder, f"{name}.json") for name in documents}
        for name, content in documents.items():
            paths[name].write_text(json.dumps(content))
        report = detmap.check(paths["truth"], paths["found"], train=paths.get("train"))
    lines = [f"  {report.subject}"]
    for one in report.findings:
        records = " ".join(map(str, one.records))
        lines.append(f"  {one.severity} {one.code}, {one.count} {one.unit}: {one.says} [{one.named} {records}]")
    return lines


def sections():
    """Return by name of a cell the lines that `SAID` has of it."""
    found: dict[str, list[str]] = {}
    for line in SAID.read_text("utf-8").splitlines():
        if not line.startswith("  "):
            lines = found[line] = []
        else:
            lines.append(line)
    return found


def write():
    """Write `SAID` anew."""
    text = "".join(f"{name}\n{chr(10).join(said(*cell))}\n" for name, cell in cells().items())
    SAID.write_text(text, "utf-8")
