"""Parts of diagnoses on scenes with ties, crowds and many errors, and attributes from files, are the text that is kept."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from kept import Kept, said, told
from kept_scenes import boxes
from test_kept_diagnostics import diagnosis, scene
from test_presets import tables as tables_of

import detmap
from detmap.diagnostics import PARTS, _pairs, _ranking

KEPT = Kept("parts", digits=12)


@functools.cache
def crowded(seed, scores=5, images=4, classes=3):
    """Many boxes on a small grid, whose scores are often equal: errors of all kinds, several per object."""
    rng = np.random.default_rng(seed)

    def some(count):
        corner, size = rng.integers(0, 6, (count, 2)) * 10.0, rng.choice([10.0, 12.0, 18.0], (count, 2))
        return np.concatenate([corner, corner + size], axis=1)

    truth, found = [], []
    for image in range(images):
        for box in some(rng.integers(0, 12)):
            truth.append((image, int(rng.integers(1, classes + 1)), tuple(box), rng.random() < 0.1, False))
        for box in some(rng.integers(5, 40)):
            found.append(
                (image, int(rng.integers(1, classes + 2)), tuple(box), int(rng.integers(1, scores + 1)) / scores)
            )
    return tables_of(truth, found, images=images, categories=classes + 1)


def parts(seed, scores, iou, protocol="coco", **options):
    made = detmap.diagnose(*crowded(seed, scores), protocol, iou=iou, **options)
    other = {"tidecv": made.part("tide", rules="tidecv")}
    for match in ("ultralytics", "supervision"):
        other[match] = made.part("confusion", match=match)
    every = {name: made.part(name) for name in PARTS} | other
    return {
        name: said({"metrics": dict(one), "document": one.to_dict(), "notes": one.notes}, 12)
        for name, one in every.items()
    } | {"counts": said([made.score, made.ap, made.found, made.positives, made.counted], 12)}


for _seed in range(6):
    for _scores, _iou in ((3, 0.5), (1000, 0.3), (20, 0.75)):
        KEPT.add(f"crowded {_seed} {_scores} {_iou}", parts, _seed, _scores, _iou)
for _protocol in ("voc2007", "ultralytics", "torchmetrics", "cartucho", "supervision"):
    KEPT.add(f"crowded, {_protocol}", parts, 2, 10, 0.5, _protocol)
KEPT.add("crowded, drawn", parts, 1, 10, 0.5, replicates=200)
KEPT.add("crowded, one class", parts, 3, 10, 0.5, use_categories=False)
KEPT.add("crowded, a score", parts, 3, 10, 0.5, score=0.4)
for _seed in (5, 6):
    KEPT.add(
        f"tidecv of boxes {_seed}",
        lambda seed: said(detmap.diagnose(*boxes(seed)).part("tide", rules="tidecv").to_dict(), 12),
        _seed,
    )


def attributes(text):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "attributes.csv")
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        try:
            made = diagnosis().part("slices", attributes=str(path))
        except detmap.DetmapError as error:
            return told(error).replace(folder, "")
    return {"rows": [said(row, 12) for row in made.rows()], "notes": list(made.notes)}


FILES = (
    "image_id,weather\n0,sun\n1,rain\n2,sun\n",
    "weather,image_id,time\nsun,0,day\n\nrain,1,\n,2,night\n",
    "object,size\n0,big\n1,small\n",
    "image,weather\n0,sun\n1,sun\n",
    " image_id , weather \n 0 , sun \n",
    "weather\nsun\n",
    "image_id\n0\n",
    "image_id,a,a\n0,1,2\n",
    "image_id,,a\n0,1,2\n",
    "image_id,a\n0\n",
    "image_id,a\n0,1\n0,2\n",
    "image_id,a\n99,1\n",
    "object,a\n9999,1\n",
    "",
    b"\xff\xfe,",
    'image_id,a\n"0,1\n',
    "image_id,area\n0,1\n",
    "image_id,a\n" + "".join(f"{at},{at}\n" for at in range(10)),
)
for _text in FILES:
    KEPT.add(f"attributes {_text!r}"[:100], attributes, _text)
for _given in (
    {"weather": ["sun"] * 9}, {"weather": [None, "a", float("nan"), "b"] + ["a"] * 6}, {"speed": np.arange(10) / 4},
    {"speed": np.array([np.nan, 1] * 5)}, {"area": ["a"] * 10}, {"w": np.zeros((10, 2))}, {},
):  # fmt: skip
    KEPT.add(
        f"attributes given {_given}".replace("\n", " "),
        lambda given: said(diagnosis().part("slices", attributes=given).rows(), 12),
        _given,
    )
KEPT.add("fifty values", lambda: len(diagnosis().part("slices", attributes={"x": _values(50)}).rows()))
KEPT.add("fifty-one values", lambda: len(diagnosis().part("slices", attributes={"x": _values(51)}).rows()))


def _values(count):
    """A value per object, of which some number are distinct."""
    return np.arange(len(scene()[0])) % count


REFUSED = {
    "slices": [
        {"by": "colour"},
        {"by": []},
        {"ranges": {"colour": {}}},
        {"ranges": {"area": {"a": (5, 1)}}},
        {"ranges": {"area": {"a": (1,)}}},
        {"ranges": {"area": {"a": (1, 1)}}},
        {"ranges": {"area": {"a": (float("nan"), 1)}}},
        {"ranges": {"area": {}}},
    ],
    "tide": [{"rules": "other"}],
    "confusion": [
        {"match": "other"},
        {"iou": 0},
        {"iou": 0.1},
        {"iou": 0.11},
        {"iou": 1},
        {"iou": 1.01},
        {"score": "a"},
        {"score": float("nan")},
    ],
    "calibration": [
        {"bins": 0},
        {"bins": 1},
        {"bins": 2.5},
        {"tau": 0},
        {"tau": 1.0},
        {"tau": 0.99},
        {"la_bins": 0},
        {"position_bins": 0},
        {"position_bins": 1},
    ],
    "lrp": [{"iou": 0}, {"iou": 1}, {"iou": 0.95}, {"area": "huge"}, {"iou": float("nan")}],
    "operating_points": [{"precision": 0}, {"precision": 1}, {"recall": 1.1}, {"recall": 0.0}, {"precision": []}],
    "images": [{"most": 0}, {"most": 1}, {"most": 2.5}],
    "suspects": [{"most": 0}, {"most": -1}, {"duplicate": 0.0}, {"duplicate": 1.0}, {"duplicate": 1.1}],
    "cuts": [{"scores": []}, {"caps": [0]}, {"caps": [1.5]}, {"scores": [float("nan")]}, {"caps": [5, 5]}],
    "other": [{}],
}
for _part, _every in REFUSED.items():
    for _options in _every:
        KEPT.add(
            f"options {_part} {_options}",
            lambda of, options: said(dict(diagnosis().part(of, **options)), 12),
            _part,
            _options,
        )
for _options in (
    {"iou": 0.1}, {"iou": 0.1001}, {"iou": 1.0}, {"iou": 1.0001}, {"iou": "a"}, {"score": float("inf")}, {"score": -1},
    {"replicates": 0}, {"replicates": 1}, {"replicates": 199}, {"replicates": 2.5}, {"seed": -1}, {"protocol": "other"},
    {"iou_type": "segm"}, {"other": 3},
):  # fmt: skip
    KEPT.add(f"options {_options}", lambda options: repr(detmap.diagnose(*scene(), **options)), _options)


def cuts(seed):
    """Operating points of a ranking with ties, at and around every precision and recall."""
    rng = np.random.default_rng(seed)
    score = np.sort(rng.integers(0, 6, 14) / 5)[::-1].copy()
    made = _ranking.Cuts.of(score, rng.integers(0, 3, 14).astype(np.uint8), 6)
    wanted = [*np.unique(made.precision).tolist(), 0.1, 0.99, 1.0]
    return {
        "columns": said([made.precision, made.recall, made.f1]),
        "best": said([made.best(), made.row(made.best()), made.row(None)]),
        "precision": said([made.with_precision(one) for one in wanted]),
        "recall": said([made.with_recall(one) for one in [*np.unique(made.recall).tolist(), 0.01, 0.999, 1.0]]),
    }


for _seed in range(8):
    KEPT.add(f"cuts {_seed}", cuts, _seed)
for _found, _truth in (
    ([], []), ([0], [0]), ([0, 0, 1, 1], [0, 1, 0, 1]), ([1, 0, 2, 2], [0, 0, 1, 0]), ([2, 1, 0], [1, 1, 1]),
):  # fmt: skip
    KEPT.add(
        f"taken {_found} {_truth}", lambda found, truth: said(_pairs.take_in_order(found, truth, 3, 2)), _found, _truth
    )


@pytest.mark.parametrize("name", KEPT.cells)
def test_what_is_kept(name):
    KEPT.holds(name)
