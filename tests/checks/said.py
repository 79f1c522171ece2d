"""What `check` says of each planted defect, in one cell of kind and severity each, word for word.

Small data sets have a cell for each defect, too, and of some of them the distributions are kept.
"""

from __future__ import annotations

import copy
import functools
import json
import pickle
import tempfile
from pathlib import Path

import numpy as np
import planting

import detmap

#: Shares of what a defect concerns. The lowest is close to what is seen at all, where limits decide.
_SHARES = (0.02, 0.1, 0.5)


#: Seeds of small data sets, and the number of cells of them of which one shows the distributions.
_SEEDS, _SHOWN = (5, 6, 7), 6


def cells():
    """Return by name of a cell what makes its data, and whether distributions are shown."""
    made = {name: (functools.partial(_planted, *of), False) for name, of in _scenes().items()}
    for kind in ("boxes", "masks", "poses"):
        made[f"small {kind}, clean"] = functools.partial(_small, _SEEDS[0], kind, None), True
    for turn, (_, name, _, kind, plant) in enumerate(planting.DEFECTS):
        seed = _SEEDS[turn % len(_SEEDS)]
        made[f"small {kind}, {name}"] = functools.partial(_small, seed, kind, plant), turn % _SHOWN == 0
    return made


def _scenes():
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


@functools.cache
def _clean_small(seed, kind):
    return pickle.dumps(planting.clean(seed, kind))


def _small(seed, kind, plant):
    """Return a small data set with a defect, or a clean one."""
    data = pickle.loads(_clean_small(seed, kind))
    if plant is not None:
        plant(np.random.default_rng([seed, 1]), data)
    return data


def _planted(kind, defect, share):
    """Return the data of a scene with a defect."""
    scene = copy.deepcopy(_clean(kind))
    if defect is not None:
        defect.plant(np.random.default_rng([3, 1]), scene, share)
    return scene.data()


def said(make, shown):
    """Return a line for each finding of the data that `make` returns and, where it is `shown`, for each distribution."""
    data = make()
    with tempfile.TemporaryDirectory() as folder:
        documents = {"truth": data.truth, "found": data.found, "train": data.train}
        paths = {name: Path(folder, f"{name}.json") for name, content in documents.items() if content is not None}
        for name, path in paths.items():
            path.write_text(json.dumps(documents[name]))
        report = detmap.check(paths["truth"], paths.get("found"), train=paths.get("train"))
    lines = [report.subject]
    for one in report.findings:
        records = " ".join(map(str, one.records))
        lines.append(f"{one.severity} {one.code}, {one.count} {one.unit}: {one.says} [{one.named} {records}]")
    for one in report.figures if shown else ():
        numbers = " ".join(f"{value:.9g}" for value in (one.low, one.quarter, one.median, one.three_quarters, one.high))
        bars = " ".join(map(str, one.bars))
        lines.append(f"{one.name}, {one.count}: {numbers}; bars {bars} of {one.edges[0]:.9g} to {one.edges[-1]:.9g}")
    return lines
