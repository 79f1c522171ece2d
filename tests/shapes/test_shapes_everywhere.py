"""Masks and poses through everything that scores: evaluator, states, batch, shards, comparison, the command line."""

from __future__ import annotations

import dataclasses
import json
import pickle

import numpy as np
import pytest
import shape_workloads as made
from support import assert_same_result, same_bits

import detmap
from detmap import batch
from detmap.cli import main
from detmap.detection.protocols import resolve
from detmap.masks import Masks

KINDS = ("segm", "keypoints", "boundary")


def workload(kind, seed=7, **options):
    """A data set and results that a seed makes, with enough of both."""
    make = made.pose_workload if kind == "keypoints" else made.mask_workload
    while True:
        dataset, results = make(seed, **options)
        if len({r["image_id"] for r in results}) > 1 and len(dataset["annotations"]) > 5:
            return dataset, results
        seed += 1


def tables(kind, dataset, results):
    truth = detmap.read_coco(dataset, iou_type=kind)
    return truth, detmap.read_coco_results(results, truth, iou_type=kind)


def evaluated(kind, dataset, results):
    return detmap.evaluate(*tables(kind, dataset, results), iou_type=kind)


def shape_of(kind, rows, size=None):
    """What users have of some rows of a table: bitmaps or an array of points."""
    column = rows.shapes["keypoints" if kind == "keypoints" else "segm"]
    if kind == "keypoints":
        return column.arrays()["values"].reshape(len(column), 17, 3)
    return column.masks().to_bitmaps() if len(column) else np.zeros((0, *size), bool)


def updates(kind, dataset, results):
    """Image by image what an evaluator is given."""
    truth, found = tables(kind, dataset, results)
    name = {"keypoints": "keypoints"}.get(kind, "masks")
    for image in dataset["images"]:
        size = image.get("height", 1), image.get("width", 1)
        there = truth.images.values[truth.images.codes] == image["id"]
        here = found.images.values[found.images.codes] == image["id"] if len(found) else np.zeros(0, bool)
        own, sought = found.take(here), truth.take(there)
        target = {
            "boxes": sought.boxes,
            name: shape_of(kind, sought, size),
            "labels": sought.categories.values[sought.categories.codes],
            "area": sought.areas,
            "iscrowd": sought.crowd,
        }
        prediction = {
            name: shape_of(kind, own, size),
            "scores": own.scores,
            "labels": own.categories.values[own.categories.codes] if len(own) else np.empty(0, int),
        }
        yield image["id"], prediction, target


@pytest.mark.parametrize("kind", KINDS)
def test_the_evaluator_equals_evaluate(kind):
    dataset, results = workload(kind)
    for annotation in dataset["annotations"]:  # an evaluator counts visible points itself
        if kind == "keypoints":
            annotation["num_keypoints"] = sum(v > 0 for v in annotation["keypoints"][2::3])
    whole = evaluated(kind, dataset, results)
    names = {c["id"]: c["name"] for c in dataset["categories"]}
    first, second = (detmap.Evaluator(categories=names, box_format="xywh", iou_type=kind) for _ in range(2))
    for n, (identity, prediction, target) in enumerate(updates(kind, dataset, results)):
        (first, second)[n % 2].update(prediction, target, image_ids=identity)
    merged = first.merge(pickle.loads(pickle.dumps(second)))
    assert_same_result(merged.compute(), whole)
    again = detmap.Evaluator.from_bytes(merged.to_bytes(), resolve("coco", iou_type=kind))
    assert_same_result(again.compute(), whole)
    assert again.protocol.iou_type == kind


def test_the_evaluator_takes_masks_in_every_form_and_says_what_is_wrong():
    region = np.zeros((6, 7), bool)
    region[2:4, 3:5] = True
    target = {"masks": [region], "labels": [1]}
    for masks in ([region], region[None].astype(np.uint8), Masks.from_bitmaps(region[None]), [made.compressed(region)]):
        evaluator = detmap.Evaluator(iou_type="segm")
        evaluator.update({"masks": masks, "scores": [0.5], "labels": [1]}, target)
        assert evaluator.compute()["AP"] == pytest.approx(1)
    evaluator = detmap.Evaluator(iou_type="segm", invalid_boxes="drop")
    two = {"masks": [region, region], "boxes": [[0, 0, 1, 1], [5, 5, 1, 1]], "scores": [1, 0.5], "labels": [1, 1]}
    evaluator.update(two, target)
    assert evaluator.compute().notices["dropped_boxes"] == 1
    for bad, message in (
        ({"boxes": [[0, 0, 1, 1]]}, r"predictions: image 0, field 'masks': there is no 'masks'"),
        ({"masks": region[None] * 0.5}, r"predictions: image 0, field 'masks': bitmaps must be bool or uint8"),
        ({"masks": [region], "boxes": np.zeros((2, 4))}, r"field 'boxes': 1 shapes where there are 2 boxes"),
        ({"masks": [{"size": [2, 2], "counts": "1"}]}, r"field 'masks\[0\]': the runs add up to 1 pixels"),
    ):
        with pytest.raises(detmap.InputError, match=message):
            evaluator.update({"scores": [0.5], "labels": [1], **bad}, target)
    poses = detmap.Evaluator(iou_type="keypoints", sigmas=[0.1, 0.1])
    pose = {"keypoints": [[[1, 2, 2], [3, 9, 2]]], "labels": [1]}
    poses.update({**pose, "scores": [0.5]}, pose)
    assert poses.compute()["AP"] == pytest.approx(1)
    with pytest.raises(detmap.InputError, match=r"image 0, field 'keypoints': shape \(1, 2, 2\)"):
        poses.update({**pose, "keypoints": [[[1, 2], [3, 9]]], "scores": [0.5]}, pose)


@pytest.mark.compiled
@pytest.mark.parametrize("kind", KINDS)
def test_batch_shards_bootstrap_and_comparison(kind, tmp_path):
    dataset, results = workload(kind)
    truth, images = tmp_path / "truth.json", [image["id"] for image in dataset["images"]]
    truth.write_text(json.dumps(dataset))
    whole, others = tmp_path / "whole.json", tmp_path / "others.json"
    whole.write_text(json.dumps(results))
    others.write_text(json.dumps([{**r, "score": round(1 - r["score"], 3)} for r in results]))
    expected = evaluated(kind, dataset, results)
    protocol = resolve("coco", iou_type=kind)
    by_name = {one.entry.name: one for one in batch.score(truth, [whole, others], protocol)}
    assert same_bits(list(by_name["whole"].values()), list(expected.values())), by_name["whole"].error
    assert by_name["whole"].document["protocol"]["iou_type"] == kind
    shards = tmp_path / "shards"
    shards.mkdir()
    for n in range(2):
        part = [r for r in results if images.index(r["image_id"]) % 2 == n]
        (shards / f"{n}.json").write_text(json.dumps(part))
    assert_same_result(batch.evaluate_shards(truth, [shards], protocol), expected)
    read = detmap.read_coco(truth, iou_type=kind)
    tallies = [
        detmap.match(read, detmap.read_coco_results(path, read, iou_type=kind), protocol) for path in (whole, others)
    ]
    assert detmap.Tally.from_bytes(tallies[0].to_bytes(), protocol).to_bytes() == tallies[0].to_bytes()
    from detmap.statistics import bootstrap

    assert bootstrap(detmap.DetectionResult(tallies[0]), 200, 0).interval()[0].size
    assert detmap.compare(dict(zip("ab", tallies, strict=True)), 200, 0).differences


@pytest.mark.parametrize("kind", KINDS)
def test_threads_and_order_of_images_change_no_bit(kind):
    dataset, results = workload(kind, 30)
    both = tables(kind, dataset, results)
    expected = detmap.evaluate(*both, iou_type=kind, threads=1)
    assert_same_result(detmap.evaluate(*both, iou_type=kind, threads=4), expected)
    moved = {**dataset, "annotations": dataset["annotations"][::-1], "images": dataset["images"][::-1]}
    assert_same_result(evaluated(kind, moved, results), expected)
    assert pickle.loads(pickle.dumps(both[1])).shapes.keys() == both[1].shapes.keys()


def run(capsys, *arguments):
    code = main([str(one) for one in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_command_line(tmp_path, capsys):
    dataset, results = workload("keypoints", points=3)
    truth, found, sigmas = (tmp_path / f"{name}.json" for name in ("truth", "found", "sigmas"))
    truth.write_text(json.dumps(dataset))
    found.write_text(json.dumps(results))
    sigmas.write_text(json.dumps([0.1, 0.05, 0.2]))
    code, out, _ = run(capsys, "eval", truth, found, "--iou-type", "keypoints", "--sigmas", sigmas, "--format", "json")
    assert code == 0
    expected = detmap.evaluate(*tables("keypoints", dataset, results), iou_type="keypoints", sigmas=[0.1, 0.05, 0.2])
    document = json.loads(out)
    assert document["metrics"]["AP"] == expected["AP"]
    assert document["protocol"]["sigmas"] == [0.1, 0.05, 0.2]
    code, _, error = run(capsys, "eval", truth, found, "--iou-type", "keypoints")
    assert code == 2
    assert "3 keypoints where sigmas are of 17" in error
    code, _, error = run(capsys, "eval", truth, found, "--iou-type", "segm")
    assert code == 2
    assert "no record has masks" in error
    code, _, error = run(capsys, "eval", truth, found, "--iou-type", "oval")
    assert code == 2
    assert "unknown iou_type 'oval'; one of: bbox, segm, keypoints, boundary" in error
    sigmas.write_text('{"person": [0.1, 0.05')
    code, _, error = run(capsys, "eval", truth, found, "--iou-type", "keypoints", "--sigmas", sigmas)
    assert code == 2
    assert error.count("\n") == 1
    assert "is not valid JSON" in error


def test_a_protocol_with_sigmas_is_saved_and_found_again():
    dataset, results = workload("keypoints", points=3)
    protocol = resolve("coco", iou_type="keypoints", sigmas={"person": [0.1, 0.05, 0.2]}, oks_area="bbox*0.53")
    tally = detmap.match(*tables("keypoints", dataset, results), protocol)
    again = detmap.Tally.from_bytes(tally.to_bytes())
    assert again.protocol == protocol
    assert again.protocol.sigmas == (("person", (0.1, 0.05, 0.2)),)
    other = dataclasses.replace(protocol, sigmas=(0.1, 0.05, 0.2))
    with pytest.raises(detmap.StateError):
        tally.merge(detmap.match(*tables("keypoints", dataset, results), other))


@pytest.mark.parametrize("kind", KINDS)
def test_the_fingerprint_of_ground_truth_is_that_of_its_masks(kind, tmp_path):
    """It is the same however often a file is read, whatever lies between the runs in memory; other masks, another one."""
    from detmap.batch.workers import fingerprint

    dataset, _ = workload(kind, 40)
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(dataset))
    made_of = {fingerprint(detmap.read_coco(source, iou_type=kind)) for source in (path, path, dataset)}
    names = {fingerprint(detmap.read_coco(path, iou_type=kind).take(np.arange(len(dataset["annotations"]))))}
    assert len(made_of | names) == 1
    field = "keypoints" if kind == "keypoints" else "segmentation"
    first, last = dataset["annotations"][0], dataset["annotations"][-1]
    first[field], last[field] = last[field], first[field]
    assert fingerprint(detmap.read_coco(dataset, iou_type=kind)) not in made_of


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_have_the_outcomes_of_the_tally(kind):
    """At every threshold and area range; each leaves out other pairs, those below its lowest threshold."""
    dataset, results = workload(kind, 50)
    both, protocol = tables(kind, dataset, results), resolve("coco", iou_type=kind)
    tally = detmap.match(*both, protocol)
    rows = np.lexsort((tally.rank, tally.category, tally.image))
    for a, (area, _, _) in enumerate(protocol.area_ranges):
        for t, iou in enumerate(protocol.iou_thresholds):
            matches = detmap.match_pairs(*both, protocol, iou=iou, area=area)
            hit, ignored = (tally.bit(words, a, t)[rows] for words in (tally.hit, tally.ignored))
            assert matches.outcome.tolist() == np.where(hit, detmap.HIT, 2 * ignored).tolist()
