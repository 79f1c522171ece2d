"""What a conversion says to be lost is what is lost: ground truth and detections through all pairs of formats."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from legs import FULL
from support import assert_same_result

import detmap
from detmap.errors import InputError
from detmap.formats import LOST

WRITTEN = ("coco", "voc", "yolo", "csv", "text", "parquet", "feather", "dota", "openimages", "kitti")
#: Which keep fields of objects under any name.
FIELDS_OF = {form: form in ("coco", "csv", "parquet", "feather") for form in WRITTEN}
ENDING = {"coco": ".json", "csv": ".csv", "parquet": ".parquet", "feather": ".feather", "openimages": ".csv"}
NAMES = ["zebra", "cat", "hen", "ant"]
#: Every pair of formats, with ids that are numbers or names, in full with both.
WAYS = [
    (first, second, numbers)
    for (i, first), (j, second), numbers in product(enumerate(WRITTEN), enumerate(WRITTEN), (True, False))
    if FULL or (i + j) % 2 == numbers
]

#: Those that do not say the sizes of their images; the last has shares of these.
SIZELESS = ("text", "dota", "kitti", "openimages")
SIZES = {"image_sizes": "1024x512"}


def world(numbers):
    """Ground truth with all that some format holds, and detections; with `numbers` for ids, sizes of boxes and names."""
    rng = np.random.default_rng(3)
    images, ids = ([30, 7, 12, 100, 55], [3, 1, 9, 20]) if numbers else (["b", "a", "d", "c", "e"], NAMES)

    def columns(count):
        boxes = np.concatenate([rng.integers(0, 300, (count, 2)), rng.integers(1, 200, (count, 2))], axis=1)
        if not numbers:
            boxes[:, 2:] += boxes[:, :2]
        return {
            "image_ids": [images[i] for i in rng.integers(0, 4, count)],
            "category_ids": [ids[i] for i in rng.integers(0, 3, count)],
            "boxes": boxes,
            "box_format": "xywh" if numbers else "xyxy",
        }

    fields = {"occlusion": rng.integers(0, 4, 30).astype(float), "truncation": rng.integers(0, 3, 30) / 2}
    truth = detmap.GroundTruth.from_arrays(
        **columns(30),
        images=images,
        categories=ids,
        category_names=dict(zip(ids, NAMES, strict=True)),
        image_sizes=[[512, 1024]] * 5,
        areas=rng.integers(1, 100, 30),
        crowd=rng.random(30) < 0.2,
        difficult=rng.random(30) < 0.3,
        group_of=rng.random(30) < 0.2,
        fields=fields,
    )
    if numbers:
        files = tuple(f"n{one}.jpg" for one in truth.images.ids.tolist())
        truth = replace(truth, images=replace(truth.images, names=files))
    return truth, detmap.Detections.from_arrays(**columns(60), scores=np.round(rng.random(60), 1))


def corners(table):
    boxes = table.boxes
    return np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1) if table.box_sizes else boxes


def named(table, truth):
    """The file's name of each image, and the name of each category, by id."""
    files = truth.images.names or [str(one) for one in truth.images.ids.tolist()]
    images = {one: name.removesuffix(".jpg") for one, name in zip(truth.images.ids.tolist(), files, strict=True)}
    classes = dict(zip(truth.categories.ids.tolist(), truth.category_names, strict=True))
    return (
        [of[one] for one in column.ids.tolist()] for of, column in ((images, table.images), (classes, table.categories))
    )


def rows(table, truth):
    """Each row in words that every format keeps, and the rows in an order by them."""
    images, classes = named(table, truth)
    pairs = zip(table.images.codes.tolist(), table.categories.codes.tolist(), corners(table).tolist(), strict=True)
    made = [(images[image], classes[label], *box) for image, label, box in pairs]
    if isinstance(table, detmap.Detections):
        made = [(*one, score) for one, score in zip(made, table.scores.tolist(), strict=True)]
    return made, sorted(range(len(made)), key=made.__getitem__)


def flagged(column, order):
    return np.zeros(len(order), bool) if column is None else np.asarray(column)[order]


def really_lost(one, other, form):
    """How many of what differs between ground truth and what was read again, by code."""
    (first, order), (second, again) = rows(one, one), rows(other, other)
    assert [first[row] for row in order] == [second[row] for row in again]
    lost = {}
    for code, name in (("crowd", "crowd"), ("difficult", "difficult"), ("groups", "group_of")):
        lost[code] = int((flagged(getattr(one, name), order) != flagged(getattr(other, name), again)).sum())
    lost["areas"] = int((one.areas[order] != other.areas[again]).sum())
    missing = [values[order] for name, values in one.fields.items() if name not in other.fields]
    for name in {*one.fields} & {*other.fields}:
        assert (one.fields[name][order] == other.fields[name][again]).all()
    known = [np.isfinite(values) & (values != -1) for values in missing]  # -1 is how KITTI says that it is unknown
    lost["fields"] = int(np.any(known, axis=0).sum()) if known else 0
    lost["sizes"] = len(one) if one.box_sizes and not other.box_sizes else 0
    lost["corners"] = len(one) if other.box_sizes and not one.box_sizes else 0
    ids = [dict(zip(table.category_names, table.categories.ids.tolist(), strict=True)) for table in (one, other)]
    lost["empty_categories"] = len({*ids[0]} - {*ids[1]})
    # The id of a category that is not written is lost with it where ids are not kept, and not counted where they are.
    kept = all(ids[0][name] == key for name, key in ids[1].items())
    lost["category_ids"] = 0 if kept else sum(key != ids[1].get(name, name) for name, key in ids[0].items())
    used = [[table.category_names[code] for code in np.unique(table.categories.codes)] for table in (one, other)]
    lost["category_order"] = sum(name != again for name, again in zip(*used, strict=True))
    lost["image_ids"] = len({*one.images.ids.tolist()} - {*other.images.ids.tolist()})
    known = [0 if table.images.sizes is None else int(table.images.sizes.all(axis=1).sum()) for table in (one, other)]
    lost["image_sizes"] = known[0] if form in SIZELESS else max(known[0] - known[1], 0)
    if one.images.names is not None and other.images.names is None:
        stems = {*other.images.ids.tolist()}
        lost["image_names"] = sum(name.removesuffix(".jpg") not in stems for name in one.images.names)
    return {code: count for code, count in lost.items() if count}


def read(path, form, **more):
    """Ground truth with the fields of its objects, where it has them."""
    fields = ["truncation", "occlusion"]
    if FIELDS_OF[form]:
        with suppress(InputError):
            return detmap.read(path, "ground_truth", format=form, fields=fields, **more)
    return detmap.read(path, "ground_truth", format=form, **more)


def target(folder, form, what):
    return folder / f"{what}-{form}{ENDING.get(form, '')}"


@pytest.mark.parametrize(("first", "second", "numbers"), WAYS)
def test_there_and_back(first, second, numbers, tmp_path):
    truth, _ = world(numbers)
    path = target(tmp_path, first, "truth")
    detmap.write(truth, path, format=first)
    for step, (before, after) in enumerate(((first, second), (second, first))):
        more = SIZES if before in SIZELESS else {}
        written = target(tmp_path, after, f"truth{step}")
        made = detmap.convert(path, written, to=after, role="ground_truth", format=before, **more)
        one, again = read(path, before, **more), read(written, after, **(SIZES if after == "openimages" else {}))
        expected = really_lost(one, again, after)
        if before == "dota" and after == "yolo":  # the lines of both are four corners
            expected.pop("corners")
        elif before == "dota" and after != "dota":
            expected["shapes"] = len(one)
        assert {**made.lost} == expected, (before, after)
        assert {*made.lost} <= {*LOST}
        path = written


@pytest.mark.parametrize(("first", "second", "numbers"), WAYS)
def test_detections_there_and_back(first, second, numbers, tmp_path):
    """Their scores, boxes and names stay, and order and form of boxes are counted where they do not."""
    truth, found = world(numbers)
    expected = detmap.evaluate(truth, found)
    path = target(tmp_path, first, "found")
    detmap.write(found, path, format=first, ground_truth=truth)
    one = detmap.read(path, "detections", format=first, ground_truth=truth, **shares_of(first))
    for step, (before, after) in enumerate(((first, second), (second, first))):
        written = target(tmp_path, after, f"found{step}")
        given = {"role": "detections", "format": before, "ground_truth": truth, **shares_of(before)}
        lost = {**detmap.convert(path, written, to=after, **given).lost}
        again = detmap.read(written, "detections", format=after, ground_truth=truth, **shares_of(after))
        (first_rows, order), (second_rows, other) = rows(one, truth), rows(again, truth)
        assert [first_rows[row] for row in order] == [second_rows[row] for row in other]
        assert lost.get("sizes", 0) == (len(one) if one.box_sizes and not again.box_sizes else 0)
        if (before, after) != ("dota", "yolo"):  # the lines of both are four corners
            assert lost.get("corners", 0) == (len(one) if again.box_sizes and not one.box_sizes else 0)
        place = {row: at for at, row in enumerate(first_rows)}
        if len(place) == len(first_rows):
            moved = sum(place[row] != at for at, row in enumerate(second_rows))
            assert lost.get("order", 0) == moved, (before, after)
        assert_same_result(detmap.evaluate(truth, again), expected)
        path, one = written, again


def shares_of(form):
    return SIZES if form == "openimages" else {}


def test_boxes_in_space_stay_behind_and_those_of_the_image_go_on(tmp_path):
    """KITTI's labels become COCO's JSON and come back with their fields; a label without a box in space loses none."""
    (tmp_path / "label_2").mkdir()
    lines = (
        "Car 0.50 2 -0.70 0.00 190.50 400.00 373.00 1.50 1.60 3.50 -2.50 1.70 4.00 -1.30",
        "Cyclist 0 3 -10 1 2 30.25 40 -1 -1 -1 -1000 -1000 -1000 -10",
    )
    (tmp_path / "label_2" / "000000.txt").write_text("\n".join(lines))
    made = detmap.convert(tmp_path / "label_2", tmp_path / "truth.json")
    assert made.lost == {"shapes": 1, "corners": 2}
    table = detmap.read(tmp_path / "truth.json", "ground_truth", fields=["truncation", "occlusion"])
    assert (table.fields["truncation"].tolist(), table.fields["occlusion"].tolist()) == ([0.5, 0], [2, 3])
    assert detmap.convert(tmp_path / "truth.json", tmp_path / "again", to="kitti").lost == {"sizes": 2}
    written = (tmp_path / "again" / "000000.txt").read_text().splitlines()
    assert written[1] == "cyclist 0 3 -10 1.0 2.0 30.25 40.0 -1 -1 -1 -1000 -1000 -1000 -10"
    back = detmap.read(tmp_path / "again", "ground_truth")
    assert back.fields["occlusion"].tolist() == [2, 3]
    assert back.boxes.tolist() == [[0, 190.5, 400, 373], [1, 2, 30.25, 40]]


def test_shapes_without_boxes_of_the_image_are_refused_with_a_remedy(tmp_path):
    table = detmap.GroundTruth.from_arrays(image_ids=[1], category_ids=[1], segments=[[0.0, 2.0]], images=[1])
    with pytest.raises(InputError, match=r"no field for shapes of the kind 'temporal'.*formats that hold them"):
        detmap.write(table, tmp_path / "truth.json")


def test_fields_that_are_words_stay_behind(tmp_path):
    (tmp_path / "a.json").write_text(
        '{"images": [{"id": 1}], "categories": [{"id": 1, "name": "x"}], "annotations": [{"id": 1, "image_id": 1, '
        '"category_id": 1, "bbox": [1, 2, 3, 4], "area": 12, "iscrowd": 0, "truncated": "no"}]}'
    )
    assert detmap.convert(tmp_path / "a.json", tmp_path / "b.json").lost == {}
