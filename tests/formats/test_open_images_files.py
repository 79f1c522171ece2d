"""Open Images' files as they are published: boxes, masks, verified labels, descriptions, submissions, hierarchies."""

from __future__ import annotations

import base64
import io
import json
import zlib

import naive_open_images
import numpy as np
import open_images_scenes
import pytest
from support import assert_same_result, examples, same_bits
from workloads import REAL_DATA

import detmap
from detmap.cli import main
from detmap.data.hierarchy import Hierarchy, expanded
from detmap.data.notices import describe
from detmap.errors import InputError, OptionError
from detmap.formats import open_images

SAMPLES = REAL_DATA / "formats"

BOXES = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside"
LABELS = "ImageID,Source,LabelName,Confidence"
FOUND = "ImageID,LabelName,Score,XMin,XMax,YMin,YMax"


def packed(mask):
    import pycocotools.mask

    if mask is None:
        return ""
    counts = pycocotools.mask.encode(np.asfortranarray(mask.astype(np.uint8)))["counts"]
    return base64.b64encode(zlib.compress(counts)).decode()


def write(folder, objects, detections, labels, masks=False):
    """Files of a scene, as published."""
    lines = {"boxes.csv": [BOXES], "labels.csv": [LABELS], "found.csv": [FOUND], "submission.csv": []}
    if masks:
        lines["boxes.csv"] = [BOXES + ",Mask,ImageWidth,ImageHeight"]
        lines["found.csv"] = [FOUND + ",Mask,ImageWidth,ImageHeight"]
    for one in objects:
        x1, y1, x2, y2 = one["box"]
        row = f"{one['image']},xclick,{one['label']},1,{x1!r},{x2!r},{y1!r},{y2!r},0,0,{int(one['group'])},0,-1"
        more = f",{packed(one['mask'])},{open_images_scenes.SIDE},{open_images_scenes.SIDE}" if masks else ""
        if masks and one["mask"] is None:  # as the tables of boxes and masks are joined for TensorFlow's tool
            more = ",,,"
        lines["boxes.csv"].append(row + more)
    lines["labels.csv"] += [f"{image},verification,{label},{confidence}" for image, label, confidence in labels]
    strings = {}
    for one in detections:
        x1, y1, x2, y2 = one["box"]
        row = f"{one['image']},{one['label']},{one['score']!r},{x1!r},{x2!r},{y1!r},{y2!r}"
        more = f",{packed(one['mask'])},{open_images_scenes.SIDE},{open_images_scenes.SIDE}" if masks else ""
        lines["found.csv"].append(row + more)
        shape = packed(one["mask"]) if masks else f"{x1!r} {y1!r} {x2!r} {y2!r}"
        strings.setdefault(one["image"], []).append(f"{one['label']} {one['score']!r} {shape}")
    sides = f",{open_images_scenes.SIDE},{open_images_scenes.SIDE}" if masks else ""
    lines["submission.csv"] = [
        "ImageID,ImageWidth,ImageHeight,PredictionString" if masks else "ImageId,PredictionString"
    ]
    lines["submission.csv"] += [f"{image}{sides},{' '.join(parts)}" for image, parts in strings.items()]
    for name, rows in lines.items():
        (folder / name).write_text("\n".join(rows) + "\n")
    return [str(folder / name) for name in ("boxes.csv", "found.csv", "submission.csv", "labels.csv")]


def drawn(seed, masks=False, absent=0.0):
    scene = open_images_scenes.scene(seed, strings=True, masks=masks, absent=absent)
    objects, detections, labels, categories, ids = scene
    boxed = {one["image"] for one in objects} | {image for image, _, _ in labels}
    detections = [one for one in detections if one["image"] in boxed and one["box"][0] <= one["box"][2]]
    return objects, detections, labels, categories, ids


def by_name(result, expected):
    return [result[f"AP_{one}"] for one in expected if f"AP_{one}" in result]


@pytest.mark.parametrize(("masks", "absent"), [(False, 0), (True, 0), (True, 0.4), (True, 1)])
@pytest.mark.parametrize("seed", range(examples(4)))
def test_published_files_give_the_numbers_of_the_twin(seed, masks, absent, tmp_path):
    objects, detections, labels, categories, _ = drawn(seed, masks, absent)
    paths = write(tmp_path, objects, detections, labels, masks)
    expected = naive_open_images.evaluate(objects, detections, labels, categories, masks=masks)
    kind = "segm" if masks else "bbox"
    truth = detmap.read(paths[0], "ground_truth", iou_type=kind, image_labels=paths[3])
    for path in paths[1:3]:
        found = detmap.read(path, "detections", iou_type=kind, ground_truth=truth)
        order = sorted(range(len(detections)), key=lambda k: detections[k]["image"])
        result = detmap.evaluate(truth, found, "auto")
        assert result.protocol.name == "openimages"
        there = [one for one in expected if f"AP_{one}" in result]
        assert {*truth.categories.ids.tolist()} == {*there}
        assert len(order) == len(found)
        if path == paths[1] or len({one["score"] for one in detections}) == len(detections):
            assert same_bits([result[f"AP_{one}"] for one in there], [expected[one] for one in there])


def test_the_samples(tmp_path, capsys):
    folder = SAMPLES / "open_images"
    if not folder.exists():
        pytest.skip("needs ../shared/data")
    expected = json.loads((folder / "expected.json").read_text())
    given = {"image_labels": folder / "validation-annotations-human-imagelabels-boxable.csv"}
    given["classes"] = folder / "class-descriptions-boxable.csv"
    truth = detmap.read(folder / "validation-annotations-bbox.csv", "ground_truth", **given)
    rows = expected["ground_truth"]
    assert [truth.images.ids[code] for code in truth.images.codes] == [one["image"] for one in rows]
    assert [truth.categories.ids[code] for code in truth.categories.codes] == [one["label"] for one in rows]
    assert truth.boxes.tolist() == [one["xyxy"] for one in rows]
    assert truth.group_of.tolist() == [bool(one["group_of"]) for one in rows]
    lists = [
        (image, label, confidence)
        for confidence, own in ((1, truth.present), (0, truth.negatives))
        for image, listed in own.by_image(truth.images.ids, truth.categories.ids).items()
        for label in listed
    ]
    assert lists == [tuple(one) for one in expected["image_labels"]]
    assert "Car" in truth.categories.names
    submission = SAMPLES / "kaggle" / "openimages_submission.csv"
    found = detmap.read(submission)
    assert found.boxes.tolist() == [[0.1, 0.2, 0.5, 0.8], [0, 0, 0.25, 0.5]]
    assert found.scores.tolist() == [0.9, 0.5]


def test_every_command_reads_them(tmp_path, capsys):
    objects, detections, labels, *_ = drawn(3)
    truth, found, submission, listed = write(tmp_path, objects, detections, labels)
    result = detmap.evaluate(detmap.read(truth, "ground_truth", image_labels=listed), found, "openimages")
    assert main(["eval", truth, found, "--protocol", "auto", "--image-labels", listed, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["mAP"] == result["mAP"]
    words = ["batch", truth, found, submission, "--protocol", "auto", "--image-labels", listed, "--format", "json"]
    assert main(words) == 0
    rows = json.loads(capsys.readouterr().out)["models"]
    assert {row["metrics"]["mAP"] for row in rows} == {result["mAP"]}
    assert main(["check", truth, submission, "--format", "json"]) in (0, 1)
    for source in (truth, found, submission):
        target = str(tmp_path / f"{source.rpartition('/')[2]}.converted.csv")
        assert main(["convert", source, target, "--quiet"]) == 0
    again = detmap.read(tmp_path / "boxes.csv.converted.csv", "ground_truth")
    assert again.group_of.tolist() == detmap.read(truth, "ground_truth").group_of.tolist()
    json_path = str(tmp_path / "all.json")
    assert main(["convert", truth, json_path, "--image-labels", listed, "--quiet"]) == 0
    from_json = detmap.read(json_path, "ground_truth")
    assert from_json.present is not None
    assert same_bits(detmap.evaluate(from_json, found, "auto").average_precision.shape, result.average_precision.shape)
    capsys.readouterr()


#: A label with two parents, one of which has two of its own.
TREE = {
    "LabelName": "/m/0bl9f",
    "Subcategory": [
        {
            "LabelName": "animal",
            "Subcategory": [
                {"LabelName": "mammal", "Subcategory": [{"LabelName": "cat"}, {"LabelName": "dog"}]},
                {"LabelName": "pet", "Subcategory": [{"LabelName": "cat"}]},
            ],
        },
        {"LabelName": "toy", "Subcategory": [{"LabelName": "mammal", "Subcategory": [{"LabelName": "cat"}]}]},
        {"LabelName": "wheel", "Part": [{"LabelName": "spoke"}]},
    ],
}


def test_what_a_hierarchy_adds():
    tree = Hierarchy.of(TREE)
    assert tree.above["cat"] == ("mammal", "pet", "animal", "mammal", "toy")
    assert tree.above["dog"] == ("mammal", "animal")
    assert tree.above["animal"] == ()
    assert sorted(tree.below["animal"]) == ["cat", "cat", "dog", "mammal", "pet"]
    assert "spoke" not in tree.above
    truth = detmap.GroundTruth.from_arrays(
        image_ids=["a", "a", "b"],
        category_ids=["cat", "wheel", "other"],
        boxes=[[0, 0, 1, 1], [1, 1, 2, 2], [2, 2, 3, 3]],
        group_of=[True, False, False],
        categories=["cat", "wheel", "other", "dog", "animal"],
        pos_category_ids={"a": ["cat"], "b": []},
        neg_category_ids={"b": ["animal"]},
    )
    made = expanded(truth, tree)
    assert made.categories.ids[made.categories.codes].tolist() == [
        *["cat", "mammal", "pet", "animal", "mammal", "toy"], "wheel", "other",
    ]  # fmt: skip
    assert made.boxes[:, 0].tolist() == [0] * 6 + [1, 2]
    assert made.group_of.tolist() == [True] * 6 + [False] * 2
    ids = made.images.ids, made.categories.ids
    assert made.present.by_image(*ids) == {"a": ["animal", "cat", "mammal", "pet", "toy"], "b": []}
    assert made.negatives.by_image(*ids) == {"b": ["animal", "cat", "dog", "mammal", "pet"]}
    found = detmap.Detections.from_arrays(
        image_ids=["a"] * 2, category_ids=["dog", "x"], boxes=np.ones((2, 4)), scores=[0.5, 0.25]
    )
    both = expanded(found, tree)
    assert both.categories.ids[both.categories.codes].tolist() == ["dog", "mammal", "animal", "x"]
    assert both.scores.tolist() == [0.5, 0.5, 0.5, 0.25]


def test_a_hierarchy_is_read_for_each_side(tmp_path, capsys):
    objects, detections, labels, *_ = drawn(5)
    names = {"/m/00": "cat", "/m/01": "dog", "/m/02": "wheel", "/m/03": "pet"}
    renamed = [[{**one, "label": names[one["label"]]} for one in rows] for rows in (objects, detections)]
    listed = [(image, names[label], confidence) for image, label, confidence in labels]
    truth, found, _, listed_path = write(tmp_path, *renamed, listed)
    tree = tmp_path / "hierarchy.json"
    tree.write_text(json.dumps(TREE))
    given = {"image_labels": listed_path, "hierarchy": tree}
    table = detmap.read(truth, "ground_truth", **given)
    above, below = Hierarchy.of(TREE).above, Hierarchy.of(TREE).below
    every = [{**one, "label": name} for one in renamed[0] for name in (one["label"], *above[one["label"]])]
    all_labels = [
        (image, name, confidence)
        for image, label, confidence in listed
        for name in (label, *(above if confidence else below)[label])
    ]
    categories = table.categories.ids.tolist()
    for with_found in (False, True):
        sought = renamed[1]
        if with_found:
            sought = [{**one, "label": name} for one in sought for name in (one["label"], *above[one["label"]])]
        tables = table, detmap.read(found, ground_truth=table, **({"hierarchy": tree} if with_found else {}))
        result = detmap.evaluate(*tables, "openimages")
        expected = naive_open_images.evaluate(every, sought, all_labels, categories)
        assert same_bits([result[f"AP_{one}"] for one in categories], list(expected.values()))
        words = ["eval", truth, found, "--protocol", "openimages", "--image-labels", listed_path]
        words += ["--gt-hierarchy", str(tree), *(["--hierarchy", str(tree)] if with_found else []), "--format", "json"]
        assert main(words) == 0
        assert json.loads(capsys.readouterr().out)["metrics"]["mAP"] == result["mAP"]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([], "must be an object with a LabelName"),
        ({"Subcategory": [{}]}, "must be an object with a LabelName"),
        ({"LabelName": "a"}, "has no labels below its root"),
        ({"LabelName": "a", "Subcategory": {}}, "must be a list"),
        ({"LabelName": "a", "Subcategory": [{"LabelName": 5}]}, "must be an object with a LabelName"),
    ],
)
def test_what_is_no_hierarchy(document, problem, tmp_path):
    path = tmp_path / "tree.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=problem):
        Hierarchy.of(document)
    (tmp_path / "boxes.csv").write_text(f"{BOXES}\na,x,/m/0,1,0,1,0,1,0,0,0,0,0\n")
    with pytest.raises(InputError, match=problem):
        detmap.read(tmp_path / "boxes.csv", "ground_truth", hierarchy=path)


def test_deep_and_wide_hierarchies_are_refused():
    deep = {"LabelName": "z"}
    for _ in range(200):
        deep = {"LabelName": "z", "Subcategory": [deep]}
    with pytest.raises(InputError, match="deeper than"):
        Hierarchy.of(deep)
    wide = {"LabelName": "z"}
    for k in range(30):
        wide = {"LabelName": f"l{k}", "Subcategory": [wide, wide]}
    with pytest.raises(InputError, match="more than"):
        Hierarchy.of(wide)
    with pytest.raises(InputError, match="categories have numbers"):
        expanded(
            detmap.GroundTruth.from_arrays(image_ids=[1], category_ids=[1], boxes=[[0, 0, 1, 1]]), Hierarchy.of(TREE)
        )


@pytest.mark.parametrize(
    ("value", "group"),
    [(1, True), ("1.0", True), ("True", True), (0, False), ("false", False), (-1, False), ("", False)],
)
def test_flags_of_groups_in_every_spelling(value, group, tmp_path):
    (tmp_path / "boxes.csv").write_text(f"{BOXES}\na,x,/m/0,1,0,1,0,1,0,0,{value},0,0\n")
    assert (detmap.read(tmp_path / "boxes.csv", "ground_truth").group_of is not None) == group


def test_flags_of_groups_that_are_none_in_json_and_frames():
    frame = pytest.importorskip("pandas").DataFrame(
        {"image": ["a"], "category": ["b"], "x1": [0], "y1": [0], "x2": [1], "y2": [1], "IsGroupOf": [2]}
    )
    with pytest.raises(InputError, match="must be 1 or true"):
        detmap.GroundTruth.from_frame(frame)
    one = {
        "id": 1,
        "image_id": 1,
        "category_id": 1,
        "bbox": [0, 0, 1, 1],
        "area": 1,
        "iscrowd": 0,
        "is_group_of": "some",
    }
    document = {"images": [{"id": 1}], "categories": [{"id": 1, "name": "a"}], "annotations": [one]}
    for given in (document, json.dumps(document).encode()):
        with pytest.raises(InputError, match=r"annotation 0.*is_group_of.*must be 1 or true"):
            detmap.read_coco(given if isinstance(given, dict) else io.BytesIO(given))


def test_labels_that_a_hierarchy_does_not_have_are_said(tmp_path):
    (tmp_path / "boxes.csv").write_text(f"{BOXES}\na,x,cat,1,0,1,0,1,0,0,0,0,0\na,x,/m/0,1,0,1,0,1,0,0,0,0,0\n")
    (tmp_path / "tree.json").write_text(json.dumps(TREE))
    truth = detmap.read(tmp_path / "boxes.csv", "ground_truth", hierarchy=tmp_path / "tree.json")
    assert truth.notices["labels_outside_hierarchy"] == 1
    said = describe({"labels_outside_hierarchy": 1})
    assert said == ["1 label without a place in the hierarchy: no label is added for them"]


MASK = base64.b64encode(zlib.compress(b"12")).decode()

WRONG = [
    ("found", f"{FOUND}\na,/m/0,x,0,1,0,1\n", "Score|score"),
    ("found", "ImageId,PredictionString\na,/m/0 0.5 0 0 1\n", "no groups of 6"),
    ("found", "ImageId,PredictionString\na,/m/0 0.5 0 0 1 inf\n", "must be a finite number"),
    ("found", "ImageId,PredictionString\na,/m/0 0.5 0 0 1 1_0\n", "must be a finite number"),
    ("found", "ImageId,PredictionString\nzz,/m/0 0.5 0 0 1 1\n", "is not an image of the ground truth"),
    ("labels", f"{LABELS}\na,v,/m/0,0.5\n", "must be 1"),
    ("labels", f"{LABELS}\na,v,,1\n", "is missing"),
    ("labels", "ImageID,LabelName\na,/m/0\n", "no column"),
    ("labels", f"{BOXES}\na,x,/m/0,1,0,1,0,1,0,0,0,0,0\n", "is of boxes, and not of verified labels"),
    (
        "objects",
        f"{BOXES}\na,x,/m/0,1,0,1,0,1,0,0,0,0,0\na,x,/m/0,1,0,1,0,1,0,0,2,0,0\n",
        "line 3.*IsGroupOf.*must be 1",
    ),
    ("objects", f"{BOXES}\na,x,/m/0,1,0,1,0,1,0,0,maybe,0,0\n", "line 2.*IsGroupOf.*must be 1 or true"),
    ("classes", "/m/0,Car\n/m/0,Bus\n", "another name"),
    ("classes", "/m/0\n", "a label and its name"),
    ("masks", f"{BOXES},Mask,ImageWidth,ImageHeight\na,x,/m/0,1,0,1,0,1,0,0,0,0,0,*,4,4\n", "is not base64"),
    ("masks", f"{BOXES},Mask,ImageWidth,ImageHeight\na,x,/m/0,1,0,1,0,1,0,0,0,0,0,aaaa,4,4\n", "is not base64"),
    ("masks", "ImageID,LabelName,Mask,ImageWidth,ImageHeight\na,/m/0,,4,4\n", "line 2, field 'Mask': is missing"),
    ("masks", f"{BOXES},Mask,ImageWidth,ImageHeight\na,x,/m/0,1,,1,0,1,0,0,0,0,0,,4,4\n", "'XMin': is missing"),
    ("masks", f"{BOXES},Mask,ImageWidth,ImageHeight\na,x,/m/0,1,0,1,0,1,0,0,0,0,0,{MASK},0,4\n", "no size"),
    ("masks", f"{BOXES}\na,x,/m/0,1,0,1,0,1,0,0,0,0,0\n", "no such column"),
    (
        "masks",
        f"{BOXES},Mask,ImageWidth,ImageHeight\na,x,/m/0,1,0,1,0,1,0,0,0,0,0,"
        f"{base64.b64encode(zlib.compress(b'1' * 10_000_000)).decode()},4,4\n",
        "holds more than a mask",
    ),
]


@pytest.mark.parametrize(("what", "text", "problem"), WRONG)
def test_what_is_wrong_is_said_in_a_line(what, text, problem, tmp_path):
    (tmp_path / "boxes.csv").write_text(f"{BOXES}\na,x,/m/0,1,0,1,0,1,0,0,0,0,0\n")
    (tmp_path / "other.csv").write_text(text)

    def read():
        if what == "found":
            truth = detmap.read(tmp_path / "boxes.csv", "ground_truth")
            return detmap.read(tmp_path / "other.csv", ground_truth=truth)
        if what == "objects":
            return detmap.read(tmp_path / "other.csv", "ground_truth")
        if what == "masks":
            return detmap.read(tmp_path / "other.csv", "ground_truth", iou_type="segm")
        given = {"labels": "image_labels", "classes": "classes"}[what]
        return detmap.read(tmp_path / "boxes.csv", "ground_truth", **{given: tmp_path / "other.csv"})

    with pytest.raises(InputError, match=problem):
        read()


def test_odd_ones(tmp_path):
    (tmp_path / "boxes.csv").write_text(f"{BOXES}\n0012,x,/m/0,1,0,1,0,1,0,0,-1,0,0\n34,x,/m/0,1,0,1,0,1,0,0,1,0,0\n")
    truth = detmap.read(tmp_path / "boxes.csv", "ground_truth")
    assert truth.images.ids.tolist() == ["0012", "34"]
    assert truth.group_of.tolist() == [False, True]
    (tmp_path / "all.csv").write_text("ImageId,PredictionString\n34,/m/0 0.5 0 0 1 1\nzz,/m/0 1 0 0 1 1\n0012,\n")
    found = detmap.read(tmp_path / "all.csv", ground_truth=truth, unknown_images="ignore")
    assert (len(found), found.notices["unknown_image"]) == (1, 1)
    with pytest.raises(OptionError, match="descriptions"):
        detmap.read(tmp_path / "boxes.csv", "ground_truth", classes=["a"])
    renamed = detmap.read(tmp_path / "boxes.csv", "ground_truth", columns={"difficult": "IsOccluded"})
    assert (renamed.difficult.any(), renamed.group_of.tolist()) == (False, [False, True])
    plain = detmap.GroundTruth.from_arrays(image_ids=[1], category_ids=[1], boxes=[[0, 0, 1, 1]])
    assert_same_result(*[detmap.evaluate(plain, detmap.Detections.from_arrays(
        image_ids=[1], category_ids=[1], boxes=[[0, 0, 1, 1]], scores=[1]), name) for name in ("auto", "coco")])  # fmt: skip


def test_messages_call_columns_by_their_titles(tmp_path):
    path = tmp_path / "boxes.csv"
    path.write_text(f"{BOXES}\na,x,/m/0,1,,1,0,1,0,0,0,0,0\n")
    with pytest.raises(InputError, match="line 2, field 'XMin': is missing"):
        detmap.read(path, "ground_truth")
    path.write_text("ImageID,LabelName,Confidence\na,/m/0,0.5\n")
    with pytest.raises(InputError, match="field 'Confidence': must be 1"):
        open_images.image_labels(path)


def test_the_notice_of_one_group():
    assert describe({"group_boxes": 1})[0].startswith("1 box stands for groups")


@pytest.mark.parametrize(("masks", "absent"), [(False, 0), (True, 0), (True, 0.4)])
@pytest.mark.parametrize("seed", range(examples(3)))
def test_what_is_written_is_read_with_the_same_bits(seed, masks, absent, tmp_path):
    kind = "segm" if masks else "bbox"
    *paths, _, labels = write(tmp_path, *drawn(seed, masks, absent)[:3], masks=masks)
    truth = detmap.read(paths[0], "ground_truth", iou_type=kind, image_labels=labels)
    found = detmap.read(paths[1], ground_truth=truth, iou_type=kind)
    lost = detmap.write(truth, tmp_path / "again.csv", format="openimages")
    assert set(lost) <= {"category_lists", "empty_categories"}
    assert detmap.write(found, tmp_path / "found.csv", format="openimages", ground_truth=truth) == {}
    again = detmap.read(tmp_path / "again.csv", "ground_truth", iou_type=kind, image_labels=labels)
    assert again.images.ids.tolist() == truth.images.ids.tolist()
    other = detmap.read(tmp_path / "found.csv", ground_truth=again, iou_type=kind)
    result = detmap.evaluate(again, other, "openimages")
    assert_same_result(result, detmap.evaluate(truth, found, "openimages"))
    if not masks:
        assert same_bits(again.boxes, truth.boxes)


def test_boxes_in_pixels_become_shares_where_sizes_are_known(tmp_path):
    given = {"image_ids": [7, 7], "category_ids": [1, 1], "boxes": [[2, 4, 4, 8], [0, 0, 16, 32]]}
    truth = detmap.GroundTruth.from_arrays(
        **given, images=[7, 9], image_sizes=[[32, 16], [8, 8]], category_names={1: "cat"}, crowd=[True, False]
    )
    lost = detmap.write(truth, tmp_path / "truth.csv", format="openimages")
    assert lost == {"crowd": 1, "category_ids": 1, "image_ids": 2, "image_sizes": 2, "sizes": 2}
    lines = (tmp_path / "truth.csv").read_text().splitlines()
    assert lines == ["ImageID,LabelName,XMin,YMin,XMax,YMax,IsGroupOf", "7,cat,0.125,0.125,0.375,0.375,0",
                     "7,cat,0.0,0.0,1.0,1.0,0", "9,,,,,,"]  # fmt: skip
    found = detmap.Detections.from_arrays(**given, scores=[0.5, 0.25])
    with pytest.raises(InputError, match="size is not known"):
        detmap.write(found, tmp_path / "found.csv", format="openimages")
    detmap.write(found, tmp_path / "found.csv", format="openimages", ground_truth=truth)
    again = detmap.read(tmp_path / "truth.csv", "ground_truth")
    assert again.images.ids.tolist() == ["7", "9"]
    assert detmap.evaluate(again, detmap.read(tmp_path / "found.csv", ground_truth=again), "openimages")["mAP"] == 1.0
    infinite = detmap.Detections.from_arrays(
        image_ids=["a"], category_ids=["b"], boxes=[[0, 0, 0.5, 1]], scores=[np.inf]
    )
    with pytest.raises(InputError, match="score must be finite"):
        detmap.write(infinite, tmp_path / "infinite.csv", format="openimages")


def test_objects_with_a_box_and_no_mask_count_as_boxes(tmp_path):
    """By hand: of 2 objects with masks one is found; the third, of a box alone, takes its detection out of the ranking."""
    square = np.zeros((8, 8), bool)
    square[:4, :4] = True
    other = np.roll(square, 4, axis=1)
    rows = [("0", "0.5", "0", "0.5", square), ("0.5", "1", "0", "0.5", None), ("0", "0.5", "0.5", "1", square.T)]
    lines = [BOXES + ",Mask,ImageWidth,ImageHeight"]
    for x1, x2, y1, y2, mask in rows:
        own = f"{packed(mask)},8,8" if mask is not None else ",,"
        lines.append(f"a,x,/m/0,1,{x1},{x2},{y1},{y2},0,0,0,0,0,{own}")
    (tmp_path / "boxes.csv").write_text("\n".join(lines) + "\n")
    found = [FOUND + ",Mask,ImageWidth,ImageHeight"]
    for score, mask in ((0.9, other), (0.8, square), (0.7, other)):
        found.append(f"a,/m/0,{score},0,1,0,1,{packed(mask)},8,8")
    (tmp_path / "found.csv").write_text("\n".join(found) + "\n")
    truth = detmap.read(tmp_path / "boxes.csv", "ground_truth", iou_type="segm")
    dets = detmap.read(tmp_path / "found.csv", ground_truth=truth, iou_type="segm")
    result = detmap.evaluate(truth, dets, "openimages")
    assert result["mAP"] == 1 / 3  # the first is ignored, the second a hit, the third wrong: the box is taken by then
    assert result.notices["boxed_objects"] == 1
    tally = detmap.match(truth, dets, "openimages")
    assert (tally.ignored[:, 0].tolist(), tally.hit[:, 0].tolist()) == ([1, 0, 0], [0, 1, 0])
    assert tally.positive_counts.sum() == 3
    result = detmap.evaluate(truth, dets, "openimages", without_shape="unmatched")
    assert result["mAP"] == (1 / 3) * 0.5
    assert result.notices["absent_masks"] == 1
