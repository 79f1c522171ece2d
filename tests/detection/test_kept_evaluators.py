"""What evaluators make of records in every form, and what they refuse, is the text that is kept."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from kept import Kept, said, told
from kept_scenes import boxes

import detmap
from detmap import Evaluator
from detmap.detection.protocols import PRESETS, resolve

KEPT = Kept("evaluators")

FORMS = ("xyxy", "xywh", "cxcywh")


def formed(corners, form):
    """Boxes in a form, from their corners."""
    corners = np.asarray(corners, float).reshape(-1, 4)
    near, size = corners[:, :2], corners[:, 2:] - corners[:, :2]
    if form == "xyxy":
        return corners
    return np.concatenate([near if form == "xywh" else near + size / 2, size], axis=1)


def records(form="xyxy", lists=False, **more):
    """Predictions and targets of three images, the last of them without objects."""
    truth = [[[0, 0, 10, 10], [20, 20, 60, 60], [5, 5, 30, 30]], [[0, 0, 100, 100], [3, 3, 9, 11]], []]
    found = [
        [[0, 0, 10, 9], [20, 20, 60, 55], [21, 21, 60, 60], [5, 6, 30, 30]],
        [[0, 0, 100, 90], [0, 0, 90, 100], [3, 3, 9, 11], [50, 50, 50, 60]],
        [[1, 1, 4, 4]],
    ]
    labels = ([[1, 2, 1], [2, 1], []], [[1, 2, 2, 3], [2, 2, 1, 1], [2]])
    scores = [[0.9, 0.8, 0.8, 0.3], [0.7, 0.9, 0.2, 0.1], [0.8]]
    made = lambda column: column if lists else np.array(column)  # noqa: E731
    predictions = [
        {"boxes": made(formed(box, form).tolist()), "scores": made(score), "labels": made(label)}
        for box, score, label in zip(found, scores, labels[1], strict=True)
    ]
    targets = [
        {"boxes": made(formed(box, form).tolist()), "labels": made(label) if label else []}
        for box, label in zip(truth, labels[0], strict=True)
    ]
    for name, columns in more.items():
        for target, column in zip(targets, columns, strict=True):
            target[name] = column
    return predictions, targets


def state(evaluator):
    """All that an evaluator holds and says."""
    result = evaluator.compute()
    tally = result.tally
    return {
        "repr": f"{evaluator!r} {len(evaluator)}",
        "metrics": said(dict(result)),
        "per_category": said(result.per_category),
        "notices": result.described_notices(),
        "images": said(tally.image_ids),
        "order": said(tally.order),
        "rank": said(tally.rank),
        "state": hashlib.sha256(evaluator.to_bytes()).hexdigest()[:16],
    }


def fed(predictions, targets, image_ids=None, together=True, protocol="coco", **options):
    evaluator = Evaluator(protocol, **options)
    if together:
        evaluator.update(predictions, targets, image_ids)
    else:
        for at, (prediction, target) in enumerate(zip(predictions, targets, strict=True)):
            evaluator.update(prediction, target, None if image_ids is None else image_ids[at])
    return state(evaluator)


NAMES = {1: "one", 2: "two", 7: "seven"}
MORE = {
    "iscrowd": [[0, 1, 0], [0, 0], []],
    "difficult": [[1, 0, 0], [0, 1], []],
    "group_of": [[0, 0, 0], [1, 0], []],
    "area": [[99.0, 1500.0, 2000.0], [9216.0, 48.0], []],
    "neg_category_ids": [[2], [], [1]],
    "not_exhaustive_category_ids": [[], [1], [2]],
    "pos_category_ids": [[1], [2], []],
    "crowdIndex": [0.1, 0.5, 3],
    "image_size": [(200, 100), (120, 130), (50, 50)],
    "occlusion": [[0, 2, 1], [1.0, None], []],
}

for _form in FORMS:
    for _lists in (False, True):
        KEPT.add(
            f"{_form}, lists {_lists}",
            lambda form, lists: fed(*records(form, lists), box_format=form, together=lists),
            _form,
            _lists,
        )
for _field, _values in MORE.items():
    for _protocol in ("coco", "voc2012", "lvis", "openimages"):
        KEPT.add(
            f"{_field}, {_protocol}",
            lambda field, values, protocol: fed(
                *records(**{field: values}), [4, 9, 5], protocol=protocol, categories=NAMES,
                frequencies={1: "r", 2: "c", 7: "f"},
            ),
            _field,
            _values,
            _protocol,
        )  # fmt: skip
LEVELS = resolve(
    "coco",
    area_ranges={"all": (0, 1e10), "tiny": (0, "2%"), "low": ("height", 0, 60)},
    levels={"hard": "occlusion>1", "easy": "occlusion<=1,object.height>5"},
)
KEPT.add("levels", lambda: fed(*records(**MORE), protocol=LEVELS))
CROWDED = resolve("coco", crowd_groups=(("easy", 0.2), ("hard", 1.0)))
KEPT.add("groups of images", lambda: fed(*records(**MORE), ["a", "b", "c"], protocol=CROWDED))
KEPT.add("groups of images without index", lambda: fed(*records(), ["a", "b", "c"], protocol=CROWDED))
KEPT.add("torchvision's ids", lambda: fed(*records(image_id=[np.array([7]), np.array([3]), np.array([5])])))
for _ids in ([9, 2, 5], ["b", "a", "c"], np.array([[4], [1], [2]]), (np.int64(3), 1, 2)):
    for _together in (True, False):
        if _together or not isinstance(_ids, np.ndarray):
            KEPT.add(f"ids {_ids!r} {_together}", lambda ids, how: fed(*records(), ids, how), _ids, _together)
for _names in (["1"], {2: "two"}, [2, 1], None):
    KEPT.add(f"categories {_names}", lambda names: fed(*records(), categories=names), _names)
for _protocol in ("coco", "voc2007", "ultralytics", "torchmetrics", "supervision", "cartucho", "padilla"):
    KEPT.add(f"protocol {_protocol}", lambda name: fed(*records(), protocol=name), _protocol)
KEPT.add("no categories", lambda: fed(*records(), use_categories=False))
KEPT.add("nothing", lambda: fed([], []))


def wrong_boxes(form, how, side):
    predictions, targets = records(form, **{name: MORE[name] for name in ("iscrowd", "area", "occlusion")})
    for record, rows in ((predictions[0], [1, 3]), (targets[1], [1])):
        if side in ("both", "found" if record is predictions[0] else "true"):
            for row in rows:
                record["boxes"][row, 2:] = -record["boxes"][row, 2:] if form != "xyxy" else record["boxes"][row, :2] - 1
    return fed(predictions, targets, box_format=form, invalid_boxes=how, protocol="coco")


for _form in FORMS:
    for _how in ("error", "miss", "drop"):
        for _side in ("found", "true", "both"):
            KEPT.add(f"inverted boxes, {_form} {_how} {_side}", wrong_boxes, _form, _how, _side)


def masks(form, with_boxes, **options):
    """Masks of the boxes of the records, in one form."""
    predictions, targets = records()
    for record in (*predictions, *targets):
        shapes = np.zeros((len(record["boxes"]), 110, 110), bool)
        for shape, (x, y, right, low) in zip(shapes, np.asarray(record["boxes"], int).tolist(), strict=True):
            shape[y:low, x:right] = True
            shape[y, x : x + 1] = False
        record["masks"] = shapes if form == "bool" else shapes.astype(np.uint8)
        if not with_boxes:
            del record["boxes"]
    return fed(predictions, targets, **options)


for _with in (False, True):
    for _kind in (None, "segm", "boundary"):
        for _form in ("bool", "uint8"):
            KEPT.add(f"masks {_form}, boxes {_with}, {_kind}", masks, _form, _with, iou_type=_kind)


def rotated(**options):
    predictions, targets = records()
    for record in (*predictions, *targets):
        box = formed(record.pop("boxes"), "cxcywh")
        record["rotated"] = np.concatenate([box, np.arange(len(box))[:, None] / 10], axis=1)
    return fed(predictions, targets, **options)


for _kind in ("rotated", "probiou"):
    KEPT.add(f"turned boxes, {_kind}", lambda kind: rotated(iou_type=kind), _kind)


def twice(how):
    evaluator = Evaluator("coco", duplicates=how)
    predictions, targets = records()
    evaluator.update(predictions, targets, [1, 2, 3])
    evaluator.update(predictions[::-1], targets[::-1], [3, 4, 1])
    return state(evaluator)


for _how in ("first", "error"):
    KEPT.add(f"images seen twice, {_how}", twice, _how)


def merged(protocol, ids):
    parts = [Evaluator(protocol, categories=NAMES), Evaluator(protocol, categories=NAMES)]
    predictions, targets = records(**MORE)
    parts[0].update(predictions[:1], targets[:1], ids[:1])
    parts[1].update(predictions[1:], targets[1:], ids[1:])
    whole = parts[1].merge(parts[0])
    again = Evaluator.from_bytes(whole.to_bytes())
    return {**state(whole), "again": said(state(again) == state(whole)), "left": said(state(parts[0]))}


for _protocol in ("coco", "voc2012", "openimages", "lvis"):
    for _ids in ([3, 1, 2], ["c", "a", "b"]):
        KEPT.add(f"merged {_protocol} {_ids}", merged, _protocol, _ids)


#: One change of the first prediction (0) or target (1), which is refused or taken: the field, and its value.
CHANGES = [
    (side, field, value)
    for side in (0, 1)
    for field, values in {
        "boxes": (
            [[0, 0, 1]], [], [[0, 0, np.nan, 1]] * 4, [[0, 0, 1e300, 1]] * 4, "box", None, np.zeros((2, 4)),
            [[0, 0, 1, 1]] * 3,
        ),
        "labels": ([1, 2], [1.5] * 4, ["a"] * 4, [9, 9, 9], [9, 9, 9, 9], None, [True] * 4),
        "scores": ([0.1], [0.1, 0.2, 0.3, np.nan], [0.1, 0.2, 0.3, np.inf], ["x"] * 4, [2, 3, 4, -1]),
        "category_ids": ([1, 1, 2, 2], [1, 1, 2]),
        "area": ([1, 2, 3], [0, 0, 0], [-1, 2, 3], [1, np.inf, 3], [1, np.nan, 3], [1, 2]),
        "iscrowd": ([0, 1, 0], [0, 2, 0], [True, False, True], [0, 1]),
        "difficult": ([0.5, 1, 0],),
        "crowdIndex": (-1, "high", np.nan, None),
        "neg_category_ids": ([1.5], [[1]], None, ["a"], ()),
        "image_size": ((0, 5), (1, 1), (5.5, 4), (5, 4, 3), "large", (5.0, 4.0)),
        "occlusion": ([1, None, np.nan], [True, False, True], np.array([True, False, True]), [1, 2], ["a", "b", "c"]),
    }.items()
    for value in values
]  # fmt: skip


def changed(side, field, value, protocol="coco", **options):
    pair = records(**({name: MORE[name] for name in ("image_size", "occlusion")} if protocol is LEVELS else {}))
    pair[side][0][field] = value
    if field == "category_ids":
        del pair[side][0]["labels"]
    return fed(*pair, protocol=protocol, **options)


for _side, _field, _value in CHANGES:
    _protocol = LEVELS if _field in ("image_size", "occlusion") else "coco"
    if _side or _field in ("boxes", "labels", "scores", "category_ids"):
        _name = f"{('prediction', 'target')[_side]} with {_field} {_value!r}".replace("\n", " ")
        KEPT.add(_name, changed, _side, _field, _value, protocol=_protocol)
        if _field in ("labels", "boxes"):
            KEPT.add(
                f"{_name}, categories given", changed, _side, _field, _value, categories=NAMES, invalid_boxes="drop"
            )
for _field in ("boxes", "labels", "scores"):
    for _side in (0, 1):

        def lacking(side, field):
            pair = records()
            pair[side][1].pop(field, None)
            return fed(*pair)

        KEPT.add(f"{('prediction', 'target')[_side]} without {_field}", lacking, _side, _field)


def given(predictions, targets, image_ids=None, **options):
    evaluator = Evaluator("coco", **options)
    evaluator.update(predictions, targets, image_ids)
    return state(evaluator)


for _name, _options in {
    "other lengths": {"targets": records()[1][:2]},
    "a mapping and a sequence": {"predictions": records()[0][0]},
    "no sequence": {"predictions": 5},
    "texts": {"targets": ["a", "b", "c"]},
    "too few ids": {"image_ids": [1, 2]},
    "one id for three": {"image_ids": 7},
    "ids that are no numbers": {"image_ids": [1.5, 2, 3]},
    "ids of two kinds": {"image_ids": [1, "2", 3]},
    "ids twice": {"image_ids": [1, 2, 1]},
    "ids in a table": {"image_ids": np.zeros((3, 2), int)},
    "large ids": {"image_ids": [1 << 63, 2, 3]},
    "largest ids": {"image_ids": [(1 << 63) - 1, 2, -5]},
}.items():
    KEPT.add(_name, given, **{**dict(zip(("predictions", "targets"), records(), strict=True)), **_options})
KEPT.add(
    "one of the ids",
    lambda: given(records()[0], [{**one, **({"image_id": 3} if at else {})} for at, one in enumerate(records()[1])]),
)
for _options in (
    {"box_format": "xy"}, {"duplicates": "last"}, {"invalid_boxes": "keep"}, {"categories": "cat"}, {"categories": 5},
    {"categories": [1, "a"]}, {"categories": [1, 1]}, {"frequencies": {1: "often"}}, {"iou_type": "box"}, {"strict": 3},
):  # fmt: skip
    KEPT.add(f"Evaluator({_options})", lambda options: repr(Evaluator(**options)), _options)


def in_turn(*updates):
    """Updates with ids and without, of integers and of texts."""
    evaluator = Evaluator("coco")
    predictions, targets = records()
    for at, ids in enumerate(updates):
        evaluator.update(predictions[at], targets[at], ids)
    return state(evaluator)


for _turns in ((1, None), (None, 1), (1, "a"), ("a", 1), (None, None), (1, 1), (2, 1, 5)):
    KEPT.add(f"ids in turn {_turns}", in_turn, *_turns)


def altered(name):
    """States of a tally with one number of a column changed, which are refused or taken."""
    tally = detmap.match(*boxes(7), PRESETS[name]).in_ranking_order()
    said_of = {}
    for column in (
        "category", "image", "rank", "order", "scores", "hit", "ignored", "positive_category", "positive_image",
        "positive_counts", "image_ids",
    ):  # fmt: skip
        values = getattr(tally, column)
        for at in sorted({0, len(values) // 2, len(values) - 1}) if len(values) else ():
            for change in (-1, 1, 10**6):
                other = values.copy()
                if column in ("hit", "ignored"):
                    other[at] ^= np.uint64({-1: 1, 1: 1 << 39, 10**6: 1 << 40}[change])
                else:
                    other[at] += change
                try:
                    made = detmap.Tally.from_bytes(replace(tally, **{column: other}).to_bytes())
                    values_of = said(dict(detmap.DetectionResult(made)))
                except detmap.DetmapError as error:
                    values_of = told(error)
                said_of[f"{column} {at} {change}"] = values_of
    return said_of


for _name in ("coco", "voc2007", "ultralytics", "openimages"):
    KEPT.add(f"altered states of {_name}", altered, _name)


@pytest.mark.parametrize("name", KEPT.cells)
def test_what_is_kept(name):
    KEPT.holds(name)
