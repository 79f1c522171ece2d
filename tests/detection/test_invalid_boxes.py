"""Boxes of negative width or height: refused, kept as what overlaps nothing, or left out."""

from __future__ import annotations

import json
import pickle

import naive
import numpy as np
import pytest
import workloads
from support import assert_equal_arrays, assert_same_result, same_bits

import detmap
from detmap.batch import evaluate_shards, score
from detmap.cli import main
from detmap.errors import InputError, OptionError

FORMATS = {
    "xywh": np.copy,
    "xyxy": lambda b: np.column_stack([b[:, :2], b[:, :2] + b[:, 2:]]),
    "cxcywh": lambda b: np.column_stack([b[:, :2] + b[:, 2:] / 2, b[:, 2:]]),
}
BOXES = np.array([[10.0, 10, 20, 20], [30, 10, -20, 20], [30, 30, -20, -20], [10, 30, 20, -20]])
IDS = {"image_ids": [1, 1, 2, 2], "category_ids": [1] * 4}


def truth(**columns):
    return detmap.GroundTruth.from_arrays(**{**IDS, "boxes": BOXES, **columns})


def found(**columns):
    return detmap.Detections.from_arrays(**{**IDS, "boxes": BOXES, "scores": [0.4, 0.9, 0.8, 0.7], **columns})


def turned(seed, records, share=0.3, sides=("w", "h", "both")):
    """The records with some boxes turned round, so that width, height or both are negative."""
    rng = np.random.default_rng(seed)
    out = []
    for record in records:
        x, y, w, h = record["bbox"]
        if rng.random() < share and w > 0 and h > 0:
            side = rng.choice(sides)
            x, w = (x + w, -w) if side in ("w", "both") else (x, w)
            y, h = (y + h, -h) if side in ("h", "both") else (y, h)
        out.append({**record, "bbox": [x, y, w, h]})
    return out


@pytest.mark.parametrize("box_format", FORMATS)
@pytest.mark.parametrize("table", [truth, found])
def test_by_default_they_are_an_error_that_counts_them_and_says_what_to_do(table, box_format):
    boxes = FORMATS[box_format](BOXES)
    with pytest.raises(InputError) as caught:
        table(boxes=boxes, box_format=box_format)
    text = str(caught.value)
    assert "record 1, field 'bbox': " in text
    assert "here and in 2 more of 4 boxes" in text
    assert f"(got {boxes[1].tolist()}); " in text
    assert "invalid_boxes='miss'" in text
    assert "--invalid-boxes" in text


@pytest.mark.parametrize("box_format", FORMATS)
def test_dropped_boxes_leave_the_result_of_what_remains(box_format):
    boxes = FORMATS[box_format](BOXES)
    boxes[3] = np.nan, 1, np.inf, 1
    more = {"box_format": box_format, "boxes": boxes, "invalid_boxes": "drop"}
    dets, objects = found(**more), truth(**more, areas=[7.0, 1, 2, 3], crowd=[0, 1, 1, 1], images=[1, 2, 3])
    assert dets.notices["dropped_boxes"] == objects.notices["dropped_boxes"] == 3
    assert (dets.scores.tolist(), dets.images.values.tolist()) == ([0.4], [1])
    assert (objects.areas.tolist(), objects.crowd.tolist()) == ([7.0], [False])
    assert objects.images.values.tolist() == [1, 2, 3]  # they are there, if without objects
    first = {name: column[:1] for name, column in IDS.items()}
    expected = detmap.evaluate(
        detmap.GroundTruth.from_arrays(**first, boxes=BOXES[:1], areas=[7.0], images=[1, 2, 3]),
        detmap.Detections.from_arrays(**first, boxes=BOXES[:1], scores=[0.4]),
    )
    result = detmap.evaluate(objects, dets)
    assert_same_result(result, expected)
    assert result.notices["dropped_boxes"] == 6


def test_all_boxes_dropped():
    dets = found(boxes=-BOXES[[0, 0, 0, 0]], invalid_boxes="drop")
    assert (len(dets), dets.notices["dropped_boxes"], dets.boxes.shape) == (0, 4, (0, 4))
    result = detmap.evaluate(truth(boxes=np.abs(BOXES)), dets)
    assert (result["AP"], result.notices["no_detections"]) == (0.0, 1)


@pytest.mark.parametrize("invalid_boxes", ["error", "miss"])
def test_what_is_not_finite_is_an_error_unless_it_is_dropped(invalid_boxes):
    boxes = BOXES.copy()
    boxes[2, 1] = np.nan
    with pytest.raises(InputError, match=r"record 2, field 'bbox': a box must be four finite numbers .*'drop'"):
        found(boxes=boxes, invalid_boxes=invalid_boxes)


@pytest.mark.parametrize("table", [truth, found])
def test_an_option_that_is_none(table):
    with pytest.raises(OptionError, match="invalid_boxes must be one of error, miss, drop, not 'ignore'"):
        table(boxes=np.abs(BOXES), invalid_boxes="ignore")
    with pytest.raises(OptionError, match="invalid_boxes must be one of error, miss, drop, not 'ignore'"):
        detmap.Evaluator(invalid_boxes="ignore")
    with pytest.raises(OptionError, match="invalid_boxes must be"):
        detmap.read_voc({}, invalid_boxes="ignore")


@pytest.mark.parametrize("seed", range(40))
def test_misses_have_every_bit_of_pycocotools(seed):
    """There, too, they overlap nothing; a negative area (one side negative) lies in no range, so that it is ignored."""
    dataset, results = workloads.make_coco(seed, images=6, crowded_cell=seed % 2, over_100=seed % 5 == 0)
    results = turned(seed, results)
    dataset = {**dataset, "annotations": turned(seed + 1, dataset["annotations"], share=0.2 * (seed % 2))}
    objects = detmap.read_coco(dataset, invalid_boxes="miss")
    dets = detmap.read_coco_results(results, objects, invalid_boxes="miss")
    assert dets.notices["missed_boxes"] == sum(min(record["bbox"][2:]) < 0 for record in results) > 0
    thresholds = [0.0, 0.5, 0.75] if seed % 4 == 0 else None
    for use_categories in (True, False):
        options = {"use_categories": use_categories, "iou_thresholds": thresholds}
        reference = workloads.pycocotools_evaluate(dataset, results, **options)
        assert_equal_arrays(detmap.evaluate(objects, dets, **options), reference)


def test_a_miss_counts_against_the_detector():
    """Both sides turned: the area is that of any box, and the detection a false positive at its score."""
    objects = truth(boxes=np.abs(BOXES), image_ids=[1, 2, 3, 4])
    right = {"boxes": np.abs(BOXES), "image_ids": [1, 2, 3, 4], "scores": [0.9, 0.8, 0.7, 0.6]}
    assert detmap.evaluate(objects, found(**right))["AP"] == pytest.approx(1.0)
    right["boxes"] = np.array([BOXES[2], *np.abs(BOXES[1:])])
    result = detmap.evaluate(objects, found(**right, invalid_boxes="miss"))
    row = result.per_category[0]
    assert (row["true_positives"][0], row["false_positives"][0], row["false_negatives"][0]) == (3, 1, 1)
    assert result.notices["missed_boxes"] == 1


def test_an_object_of_negative_size_is_one_that_nobody_finds():
    objects = truth(invalid_boxes="miss")
    assert objects.areas.tolist() == [400.0, 0.0, 0.0, 0.0]
    result = detmap.evaluate(objects, found(boxes=np.abs(BOXES)))
    assert result.per_category[0]["positives"] == 4
    assert result.counts().false_negatives.tolist() == [3]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("inclusive", [True, False])
def test_misses_are_those_of_the_development_kit(seed, inclusive):
    """Its formula, box by box, on corners that may stand in any order."""
    import dataclasses

    rng = np.random.default_rng(seed)
    objects, files = {}, {"a": ([], [], []), "b": ([], [], [])}
    for image in ("1", "2", "3"):
        objects[image] = []
        for _ in range(12):
            name = str(rng.choice(["a", "b"]))
            box = np.sort(rng.integers(0, 60, (2, 2)), axis=0).ravel() + rng.choice([0, 0.25])
            objects[image].append({"name": name, "difficult": bool(rng.random() < 0.2), "box": box.tolist()})
            near = box + rng.integers(-2, 3, 4)
            near = near[
                [[0, 1, 2, 3], [2, 1, 0, 3], [0, 3, 2, 1], [2, 3, 0, 1]][rng.integers(4) * (rng.random() < 0.5)]
            ]
            for column, value in zip(files[name], (image, round(rng.random(), 1), near.tolist()), strict=True):
                column.append(value)
    twin = naive.voc_evaluate(["a", "b"], objects, files, inclusive=inclusive)
    listed = [(image, item) for image in objects for item in objects[image]]
    table = detmap.GroundTruth.from_arrays(
        image_ids=[image for image, _ in listed],
        category_ids=[item["name"] for _, item in listed],
        boxes=[item["box"] for _, item in listed],
        box_format="xyxy",
        difficult=[item["difficult"] for _, item in listed],
    )
    text = {
        f"comp4_det_test_{name}.txt": "".join(
            " ".join([image, str(sure), *map(repr, map(float, box))]) + "\n"
            for image, sure, box in zip(*files[name], strict=True)
        )
        for name in files
    }
    dets = detmap.read_voc_results(text, table, invalid_boxes="miss")
    assert dets.notices["missed_boxes"] > 0
    for preset, key in (("voc2007", "ap_11"), ("voc2012", "ap_all_point")):
        protocol = dataclasses.replace(detmap.detection.protocols.PRESETS[preset], inclusive_pixels=inclusive)
        result = detmap.evaluate(table, dets, protocol)
        for row in result.per_category:
            expected = twin[row["category"]]
            assert same_bits(row["AP"], expected[key])
            assert row["false_positives"][0] == expected["outcome"].count("FP")


def test_misses_stay_misses_where_other_detections_are_dropped():
    """Detections on unknown images are left out; the rest is counted anew, not refused."""
    dets = found(invalid_boxes="miss").on_images_of(truth(image_ids=[2] * 4, boxes=np.abs(BOXES)), "ignore")
    assert (len(dets), dets.notices["missed_boxes"], dets.notices["unknown_image"]) == (2, 2, 2)


XML = (
    "<annotation><object><name>cat</name><bndbox><xmin>{}</xmin><ymin>2</ymin><xmax>{}</xmax><ymax>5</ymax></bndbox>"
    "</object></annotation>"
)


def test_voc_annotations_whose_corners_are_swapped():
    files = {
        "a.xml": XML.format(1, 3),
        "b.xml": XML.format(9, 3),
        "c.xml": XML.format(8, 3),
        "d.xml": XML.format("nan", 3),
    }
    with pytest.raises(InputError, match=r"d\.xml.*object 0, field 'xmin': must be a finite number"):
        detmap.read_voc(files, invalid_boxes="miss")
    dropped = detmap.read_voc(files, invalid_boxes="drop")
    assert (len(dropped), dropped.notices["dropped_boxes"], dropped.images.values.size) == (1, 3, 4)
    del files["d.xml"]
    with pytest.raises(InputError) as caught:
        detmap.read_voc(files)
    assert str(caught.value).startswith(
        "annotations[b.xml]: object 0, field 'bndbox': the far corner lies before the near one, "
        "here and in 1 more of 3 boxes (got [9.0, 2.0, 3.0, 5.0]); invalid_boxes='miss'"
    )
    kept = detmap.read_voc(files, invalid_boxes="miss")
    assert kept.areas.tolist() == [6.0, 0.0, 0.0]
    found = detmap.read_voc_results({"comp4_det_test_cat.txt": "a .5 1 2 3 5\nb .4 3 2 9 5\n"}, kept)
    result = detmap.evaluate(kept, found, "voc2012")
    assert result["mAP"] == 1 / 3
    assert result.notices["missed_boxes"] == 2


def test_voc_lines_whose_corners_are_swapped():
    lines = "a .5 1 2 3 5\n\na .4 9 2 3 5\nb .3 3 2 1 5\n"
    with pytest.raises(InputError) as caught:
        detmap.read_voc_results({"comp4_det_test_cat.txt": lines, "comp4_det_test_dog.txt": lines})
    assert str(caught.value).startswith(
        "results[comp4_det_test_cat.txt]: line 3: the far corner lies before the near one, "
        "here and in 3 more of 6 boxes (got [9.0, 2.0, 3.0, 5.0]); invalid_boxes='miss'"
    )
    lines += "b .2 nan 2 inf 5\n"
    with pytest.raises(InputError, match="line 5, field 'xmin': must be a finite number"):
        detmap.read_voc_results({"comp4_det_test_cat.txt": lines}, invalid_boxes="miss")
    kept = detmap.read_voc_results({"comp4_det_test_cat.txt": lines}, invalid_boxes="drop")
    assert (kept.scores.tolist(), kept.notices["dropped_boxes"]) == ([0.5], 3)
    with pytest.raises(InputError, match="line 6, field 'score': must be a finite number"):
        detmap.read_voc_results({"comp4_det_test_cat.txt": lines + "b nan 1 2 3 4"}, invalid_boxes="drop")
    with pytest.raises(InputError, match="line 6, field 'ymax': must be a finite number"):
        detmap.read_voc_results({"comp4_det_test_cat.txt": lines + "b .1 1 2 3 x"}, invalid_boxes="drop")


# ----------------------------------------------------------------------------------------------------- the evaluator


def images_of(dataset, results):
    """Every image's id, prediction and target."""
    for image in dataset["images"]:
        mine = [record for record in results if record["image_id"] == image["id"]]
        objects = [record for record in dataset["annotations"] if record["image_id"] == image["id"]]
        prediction = {
            "boxes": np.array([r["bbox"] for r in mine], float).reshape(-1, 4),
            "scores": [float(r["score"]) for r in mine],
            "labels": [r["category_id"] for r in mine],
        }
        target = {
            "boxes": np.array([r["bbox"] for r in objects], float).reshape(-1, 4),
            "labels": [r["category_id"] for r in objects],
            "area": [float(r["area"]) for r in objects],
            "iscrowd": [r["iscrowd"] for r in objects],
        }
        yield image["id"], prediction, target


@pytest.mark.parametrize("protocol", ["coco", "voc2012"])
@pytest.mark.parametrize("invalid_boxes", ["miss", "drop"])
@pytest.mark.parametrize("seed", [1, 2])
def test_an_evaluator_gives_every_bit_of_evaluate(seed, invalid_boxes, protocol):
    dataset, results = workloads.make_coco(seed, images=6)
    results = turned(seed, results)
    dataset = {**dataset, "annotations": turned(seed + 1, dataset["annotations"])}
    # By file order ties go by image there, as the evaluator is given them.
    results.sort(key=lambda record: record["image_id"])
    objects = detmap.read_coco(dataset, invalid_boxes=invalid_boxes)
    expected = detmap.evaluate(
        objects, detmap.read_coco_results(results, objects, invalid_boxes=invalid_boxes), protocol
    )
    categories = dict(zip(objects.categories.values.tolist(), objects.category_names, strict=True))
    evaluator = detmap.Evaluator(protocol, box_format="xywh", categories=categories, invalid_boxes=invalid_boxes)
    for i, (identity, prediction, target) in enumerate(images_of(dataset, results)):
        evaluator.update(prediction, target, identity)
        if i == 2:
            evaluator = pickle.loads(pickle.dumps(evaluator))  # which keeps what becomes of the next
            assert evaluator.invalid_boxes == invalid_boxes
    result = evaluator.compute()
    assert_same_result(result, expected)
    code = {"miss": "missed_boxes", "drop": "dropped_boxes"}[invalid_boxes]
    assert result.notices[code] == expected.notices[code] > 0


def test_an_evaluator_refuses_them_by_default_and_says_what_to_do():
    good = {"boxes": [[0, 0, 9, 9]], "labels": [1]}
    bad = {"boxes": [[0, 0, 9, 9], [9, 9, 0, 0], [5, 5, 9, 0]], "labels": [1, 1, 1], "scores": [0.5, 0.4, 0.3]}
    says = r"image 0, field 'boxes\[1\]': .* here and in 1 more of 3 boxes \(got \[9.0, 9.0, 0.0, 0.0\]\); .*'miss'"
    with pytest.raises(InputError, match=says):
        detmap.Evaluator().update(bad, good)
    bad["boxes"][1][0] = float("nan")
    with pytest.raises(InputError, match=r"boxes\[1\].*invalid_boxes='drop'"):
        detmap.Evaluator(invalid_boxes="miss").update(bad, good)
    evaluator = detmap.Evaluator(invalid_boxes="drop")
    evaluator.update(bad, good)
    assert evaluator.compute()["AP50"] == pytest.approx(1.0)
    assert evaluator.compute().notices["dropped_boxes"] == 2


def test_an_evaluator_of_before_is_read_as_one_that_refuses():
    """States that were saved before there was a choice say nothing about it."""
    from detmap.system.saved_states import seal, unseal

    evaluator = detmap.Evaluator()
    evaluator.update({"boxes": [], "scores": [], "labels": []}, {"boxes": [[0, 0, 9, 9]], "labels": [1]})
    header, payload = unseal("evaluator", evaluator.to_bytes())
    assert header.pop("invalid_boxes") == "error"
    assert detmap.Evaluator.from_bytes(seal("evaluator", header, bytes(payload))).invalid_boxes == "error"


# ------------------------------------------------------------------------------------------------------ command line


@pytest.fixture
def files(tmp_path):
    dataset, results = workloads.make_coco(3, images=6)
    (tmp_path / "gt.json").write_text(json.dumps(dataset))
    (tmp_path / "dt.json").write_text(json.dumps(turned(3, results)))
    (tmp_path / "good.json").write_text(json.dumps(results))
    return tmp_path, dataset, results


@pytest.mark.compiled
def test_the_command_line_passes_it_on(files, capsys):
    folder, dataset, results = files
    paths = [str(folder / name) for name in ("gt.json", "dt.json")]
    assert main(["eval", *paths]) == 2
    message = capsys.readouterr().err
    assert "width and height must not be negative, here and in" in message
    assert "--invalid-boxes" in message
    objects = detmap.read_coco(dataset)
    for choice, words in (("miss", "they overlap nothing"), ("drop", "dropped")):
        assert main(["eval", *paths, "--format", "json", "--invalid-boxes", choice]) == 0
        out, err = capsys.readouterr()
        expected = detmap.evaluate(objects, detmap.read_coco_results(turned(3, results), objects, invalid_boxes=choice))
        assert json.loads(out)["metrics"]["AP"] == expected["AP"]
        assert words in err
        assert main(["batch", *paths, str(folder / "good.json"), "--format", "json", "--invalid-boxes", choice]) == 0
        models = {row["model"]: row for row in json.loads(capsys.readouterr().out)["models"]}
        assert models["dt"]["metrics"]["AP"] == expected["AP"]
        more = ["--bootstrap", "200", "--format", "json", "--invalid-boxes", choice]
        assert main(["compare", *paths, str(folder / "good.json"), *more]) == 0
        compared = {row["model"]: row for row in json.loads(capsys.readouterr().out)["models"]}
        assert compared["dt"]["AP"] == expected["AP"]


def test_a_batch_does_not_resume_what_was_read_otherwise(files):
    folder, _, _ = files
    arguments = (folder / "gt.json", [folder / "dt.json"])
    outcomes = {}
    for choice in ("error", "miss", "drop"):
        (outcomes[choice],) = score(*arguments, out=folder / "out", resume=True, invalid_boxes=choice)
    assert "invalid_boxes='miss'" in outcomes["error"].error
    assert outcomes["miss"].document["notices"]["missed_boxes"] > 0
    assert outcomes["drop"].document["notices"]["dropped_boxes"] > 0


def test_shards_pass_it_on(files):
    folder, dataset, results = files
    bad = turned(3, results)
    half = sorted({record["image_id"] for record in bad})[:3]
    for name, there in (("1", True), ("2", False)):
        rows = [record for record in bad if (record["image_id"] in half) == there]
        (folder / f"shard{name}.json").write_text(json.dumps(rows))
    objects = detmap.read_coco(dataset)
    expected = detmap.evaluate(objects, detmap.read_coco_results(bad, objects, invalid_boxes="miss"))
    shards = evaluate_shards(folder / "gt.json", [folder / "shard*.json"], invalid_boxes="miss")
    assert_same_result(shards, expected)
    assert shards.notices["missed_boxes"] == expected.notices["missed_boxes"]


@pytest.mark.slow
@workloads.needs_real_data
def test_real_detections_with_swapped_corners():
    """A real detector, every hundredth box turned round: what the development kit's formula makes of it."""
    objects = workloads.real_voc_ground_truth()
    rng = np.random.default_rng(0)
    classes, files = workloads.real_voc_detections("a"), {}
    for name in ("car", "cow"):
        images, scores, boxes = classes[name]
        boxes = np.array(boxes, float)
        for columns in ([2, 1, 0, 3], [2, 3, 0, 1]):
            rows = rng.random(len(boxes)) < 0.01
            boxes[rows] = boxes[rows][:, columns]
        files[name] = images, scores, boxes
    twin = naive.voc_evaluate(list(files), objects, files)
    listed = [(image, item) for image in sorted(objects) for item in objects[image] if item["name"] in files]
    table = detmap.GroundTruth.from_arrays(
        image_ids=[image for image, _ in listed],
        category_ids=[item["name"] for _, item in listed],
        boxes=[item["box"] for _, item in listed],
        box_format="xyxy",
        difficult=[item["difficult"] for _, item in listed],
        images=sorted(objects),
    )
    found = detmap.Detections.from_arrays(
        image_ids=np.concatenate([np.array(files[name][0]) for name in files]),
        category_ids=[name for name in files for _ in files[name][0]],
        boxes=np.concatenate([files[name][2] for name in files]),
        scores=np.concatenate([np.array(files[name][1], float) for name in files]),
        box_format="xyxy",
        invalid_boxes="miss",
    )
    assert found.notices["missed_boxes"] > 100
    for row in detmap.evaluate(table, found, "voc2007").per_category:
        assert same_bits(row["AP"], twin[row["category"]]["ap_11"])


@pytest.mark.parametrize("box_format", ["xyxy", "xywh", "cxcywh"])
def test_boxes_that_are_too_far_are_refused_where_they_come(box_format):
    far, near = (
        {"boxes": [[0, 0, 1e200, 9.0]], "scores": [0.5], "labels": [1]},
        {"boxes": [[0, 0, 9, 9]], "labels": [1]},
    )
    for invalid_boxes in ("error", "miss"):
        evaluator = detmap.Evaluator(box_format=box_format, invalid_boxes=invalid_boxes)
        with pytest.raises(
            InputError, match=r"image 0, field 'boxes\[0\]': a box must be four finite numbers of at most"
        ):
            evaluator.update(far, near)
        assert len(evaluator) == 0
        evaluator.compute()  # goes on
    evaluator = detmap.Evaluator(box_format=box_format, invalid_boxes="drop")
    evaluator.update(far, near)
    assert evaluator.compute().notices["dropped_boxes"] == 1
