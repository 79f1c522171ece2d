"""What is written of small tables in every format: the files, and what is lost, or the message.

`fixtures/kept/written` has a file for each table.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import kept
import numpy as np
import pyarrow as pa
import pyarrow.parquet
from altered import shown
from more_samples import _world
from samples import SAMPLES, TRUTHS
from support import facts

import detmap
from detmap.errors import DetmapError
from detmap.formats import FORMATS
from detmap.formats.inputs import Input
from detmap.reading.options import Reading

_ENDING = {"parquet": ".parquet", "feather": ".feather", "csv": ".csv", "openimages": ".csv"}
_ENDING |= dict.fromkeys(("coco", "activitynet", "nuscenes", "ytvis"), ".json") | {"thumos14": ".txt"}


def _truth(**more):
    given = {
        "image_ids": ["b", "a", "b"],
        "category_ids": ["dog", "car", "car"],
        "boxes": [[1, 2, 30, 40], [0.5, 0.25, 10, 20], [5, 5, 1, 1]],
        "images": ["b", "a", "c"],
        "categories": ["dog", "car", "hen"],
    }
    return detmap.GroundTruth.from_arrays(**{**given, **more})


def _found(**more):
    given = {
        "image_ids": ["b", "a", "b", "b"],
        "category_ids": ["dog", "car", "car", "dog"],
        "boxes": [[1, 2, 30, 40], [0.5, 0.25, 10, 20], [5, 5, 1, 1], [0.1, 0.2, 0.7, 0.1]],
        "scores": [0.5, 1e-9, 1, 0.1],
    }
    return detmap.Detections.from_arrays(**{**given, **more})


_SIZES = {"image_sizes": [[480, 640]] * 3}
_NUMBERS = {"image_ids": [7, 2, 7], "category_ids": [5, 1, 1], "images": [7, 2, 3], "categories": [5, 1, 9]}
_FOUND_NUMBERS = {"image_ids": [7, 2, 7, 2], "category_ids": [5, 1, 1, 4]}


def _tables():
    """Return by name a table, and for detections the ground truth that is given with it."""
    sized = _truth(**_SIZES)
    made = {
        "plain": _truth(),
        "sized": sized,
        "corners": _truth(box_format="xyxy", boxes=[[1, 2, 30, 40], [0.1, 0.2, 0.7, 0.9], [5, 5, 6, 6]], **_SIZES),
        "flags": _truth(**_SIZES, crowd=[1, 0, 0], difficult=[0, 1, 0], group_of=[0, 0, 1], areas=[9, 200, 1.5]),
        "fields": _truth(
            **_SIZES, fields={"occlusion": [0, 2, np.nan], "truncation": [0.5, -1, 0], "other": [1, 2, 3]}
        ),
        "numbers": _truth(**_NUMBERS, **_SIZES, category_names={5: "dog", 1: "car", 9: "hen"}),
        "nameless": _truth(**_NUMBERS, **_SIZES),
        "files": detmap.data.frames.with_image_names(
            _truth(**_NUMBERS, **_SIZES, category_names={5: "dog", 1: "car", 9: "a hen"}),
            {7: "x/b.jpg", 2: "a.png", 3: "c"},
        ),
        "lists": _world(image_sizes=[[48, 64]] * 4),
        "endings": _truth(image_ids=["b.jpg", "a.jpg", "b.jpg"], images=["b.jpg", "a.jpg", "x.png"], **_SIZES),
        "folders": _truth(image_ids=["x/b.jpg", "a", "a"], images=["x/b.jpg", "a", "c"], **_SIZES),
        "spaced": _truth(category_ids=["a dog", "car", "car"], categories=["a dog", "car", "hen"], **_SIZES),
        "odd": _truth(category_ids=['a,"b"', "é", "é"], categories=['a,"b"', "é", "hen"], **_SIZES),
        "anywhere": _truth(category_ids=["DontCare", "Car", "Car"], categories=["DontCare", "Car", "hen"], **_SIZES),
        "shares": _truth(boxes=[[0.1, 0.2, 0.5, 0.25], [0.5, 0.25, 0.1, 0.2], [0.5, 0.5, 0.25, 0.5]], **_SIZES),
        "negative": _truth(boxes=[[1, 2, -3, 4], [0, 0, 1, 1], [2, 2, 2, 2]], invalid_boxes="miss", **_SIZES),
        "empty": _truth(image_ids=[], category_ids=[], boxes=[], **_SIZES),
        "nothing": detmap.GroundTruth.from_arrays(image_ids=[], category_ids=[], boxes=[]),
    }
    found = {
        "plain-found": (_found(), None),
        "given-found": (_found(), sized),
        "corners-found": (
            _found(box_format="xyxy", boxes=[[1, 2, 30, 40], [0, 0, 1, 2], [5, 5, 6, 6], [0.1, 0.2, 0.7, 0.9]]), sized,
        ),
        "numbers-found": (_found(**_FOUND_NUMBERS), made["files"]),
        "numbers-alone-found": (_found(**_FOUND_NUMBERS), None),
        "scores-found": (_found(more_scores={"foot_score": [0.5, 0.25, np.nan, 1]}), sized),
        "infinite-found": (_found(scores=[0.5, np.inf, 1, 1]), sized),
        "unknown-found": (_found(image_ids=["b", "a", "z", "b"]), sized),
        "endings-found": (_found(image_ids=["b.jpg", "a.jpg", "b.jpg", "b.jpg"]), made["endings"]),
        "ordered-found": (_found(image_ids=["a", "b", "b", "b"], category_ids=["car", "car", "car", "dog"]), sized),
        "empty-found": (_found(image_ids=[], category_ids=[], boxes=[], scores=[]), sized),
        "many-found": (
            _found(image_ids=[f"i{k % 7}" for k in range(9)], category_ids=["dog"] * 9,
                   boxes=[[k, k, 3, 4] for k in range(9)], scores=[k / 8 for k in range(9)]),
            None,
        ),
    }  # fmt: skip
    everything = {name: (table, None) for name, table in made.items()} | found
    for name in ("coco-masks", "coco-poses", "kitti-space", "dota", "activitynet", "thumos14", "ytvis", "nuscenes"):
        for suffix in ("", "-found"):
            if f"{name}{suffix}" in SAMPLES:
                sample = SAMPLES[f"{name}{suffix}"]
                everything[f"{name}{suffix}"] = (sample, None)
    return everything


def _read(sample, folder):
    """Return the table of a sample."""
    from altered import write

    write(sample.files, folder)
    role, options = sample.role, {**sample.options, "format": sample.format}
    return detmap.read(folder / sample.path, role, ground_truth=TRUTHS[sample.truth], **options)


TABLES = _tables()


def lines_of(name):
    """Return what is kept of a table."""
    table, truth = TABLES[name]
    with tempfile.TemporaryDirectory() as place:
        root = Path(place).resolve()
        if not isinstance(table, detmap.GroundTruth | detmap.Detections):
            (root / "sample").mkdir()
            table = _read(table, root / "sample")
        role = "ground_truth" if isinstance(table, detmap.GroundTruth) else "detections"
        made = []
        for format in sorted(FORMATS):
            if getattr(FORMATS[format], f"write_{role}") is None or not FORMATS.is_shipped(format):
                continue
            path = root / f"{format}{_ENDING.get(format, '')}"
            try:
                lost = detmap.write(table, path, format=format, ground_truth=truth)
            except DetmapError as error:
                if "there are no shapes of the kind" in str(error) and not name.startswith("plain"):
                    continue
                made.append(f"{format}: {type(error).__name__}: {kept.told(error).replace(f'{root}/', '')}")
                continue
            made.append(f"{format}: {dict(sorted(lost.items()))}")
            made += [f"  {line}" for line in _content(path, path.name)]
            made += [f"  again: {line}" for line in _again(path, role, table, truth, format, root)]
        return made


def _content(path, name):
    if path.is_dir():
        files = sorted(one for one in path.rglob("*"))
        return [line for one in files if one.is_file() for line in _content(one, str(one.relative_to(path)))]
    if path.suffix in (".parquet", ".feather"):
        held = pyarrow.parquet.read_table(path) if path.suffix == ".parquet" else pa.ipc.open_file(path).read_all()
        return [f"{name} {field.name}: {held.column(field.name).to_pylist()!r}" for field in held.schema]
    return [f"{name}: {line!r}" for line in path.read_text("utf-8", "replace").splitlines(keepends=True)] or [
        f"{name}: nothing"
    ]


def _again(path, role, table, truth, format, root):
    """Return what differs in the table that is read of what is written."""
    holds = FORMATS[format].holds
    kind = table.kinds[-1] if holds is None or table.kinds[-1] in holds else holds[0]
    given = {"format": format, "iou_type": kind, "image_sizes": "640x480", "invalid_boxes": "miss"}
    try:
        again = detmap.read(path, role, ground_truth=truth, **given)
    except DetmapError as error:
        return [f"{type(error).__name__}: {kept.told(error).replace(f'{root}/', '')}"]
    before = set(shown(replace(table, source="", notices={})))
    plain = [line.replace(f"{root}/", "") for line in shown(replace(again, source=""))]
    more = [line for line in plain if line not in before]
    facts_of = Input(path, role, Reading(format=format, iou_type=kind))
    try:
        more += [f"kinds: {facts_of.kinds()}"]
        if role == "ground_truth":
            more += [f"{key}: {text}" for key, text in facts(facts_of.facts() or {}, "facts").items()]
            unkept = FORMATS[format].unkept
            more += [] if unkept is None else [f"unkept: {dict(unkept(path))}"]
    except DetmapError as error:
        more += [kept.told(error).replace(f"{root}/", "")]
    return [f"{len(again)} rows", *more]
