"""Results in shards: merged in any order they are the whole, and shards that cannot be are refused."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import large_workloads
import numpy as np
import pytest
import workloads
from batches import FIXTURES, TRUTH, Forgetful, cut, run, shards_of_fixture, write
from batches import few_permutations as few_permutations
from hypothesis import given, settings
from hypothesis import strategies as st
from support import assert_same_result, examples, tables_of_arrays

import detmap
from detmap import batch
from detmap.batch import shards as shards_module
from detmap.detection.protocols import resolve
from detmap.formats.inputs import Input
from detmap.kernels import readonly


@settings(max_examples=examples(30))
@given(workloads.coco_workloads(), st.integers(1, 4), st.sampled_from(["coco", "voc2007"]))
def test_shards_are_the_whole(tmp_path_factory, workload, parts, name):
    dataset, records, params = workload
    folder = tmp_path_factory.mktemp("shards")
    shards = cut(records, parts, 1)
    truth = write(
        folder,
        "truth/gt.json",
        json.dumps(
            dataset
            | {
                "annotations": [
                    a for a in dataset["annotations"] if a["category_id"] < 99_999 or a["category_id"] > 10**6
                ]
            }
        ),
    )
    for i, shard in enumerate(shards):
        write(folder, f"shards/{i}.json", json.dumps(shard))
    whole = write(folder, "whole.json", json.dumps([row for shard in shards for row in shard]))
    protocol = resolve(name, iou_thresholds=params["iou_thresholds"], use_categories=params["use_categories"])
    ground_truth = detmap.read_coco(truth)
    expected = detmap.evaluate(ground_truth, detmap.read_coco_results(whole, ground_truth), protocol)
    made = batch.evaluate_shards(truth, [folder / "shards"], protocol)
    assert_same_result(made, expected)
    assert made.to_json() == expected.to_json()
    for column in ("category", "image", "rank", "order", "scores", "hit", "ignored"):
        assert np.array_equal(getattr(made.tally, column), getattr(expected.tally, column)), column


def test_shards_are_merged_with_their_neighbours_in_any_order_of_arrival(tmp_path):
    truth = detmap.read_coco(TRUTH)
    paths = shards_of_fixture(tmp_path, 7)
    leaves = [shards_module._match_shard(truth, resolve("voc2007"), Input(path, "detections")) for path in paths]
    assert all(leaf.records for leaf in leaves)
    expected, before = leaves[0].tally, leaves[0].records
    for count in range(1, 8):
        if count > 1:
            last = leaves[count - 1]
            expected = expected.merge(replace(last.tally, order=readonly(last.tally.order + before, np.int64)))
            before += last.records
        for seed in range(10):
            tree = shards_module._Tree(count)
            for i in random.Random(seed).sample(range(count), count):
                tree.add(i, leaves[i].records, leaves[i].tally)
            (made,) = tree.merged()
            assert made.to_bytes() == expected.to_bytes()


@pytest.mark.compiled
def test_shards_on_the_command_line(tmp_path, capsys):
    shards_of_fixture(tmp_path / "shards")
    expected = run(capsys, "eval", TRUTH, FIXTURES / "detections.json", "--bootstrap", 200, "--format", "json")
    assert (
        run(capsys, "eval", TRUTH, tmp_path / "shards/*.json", "--sharded", "--bootstrap", 200, "--format", "json")
        == expected
    )
    assert run(capsys, "eval", TRUTH, FIXTURES / "detections.json", "--scheduler", "x")[0] == 2


def test_a_shard_given_twice(tmp_path):
    shards = shards_of_fixture(tmp_path)
    twin = write(tmp_path, "twin.json", shards[1].read_bytes())
    with pytest.raises(
        detmap.InputError,
        match=r"twin.json: is the same shard as .*part-1.json|part-1.json: is the same shard as .*twin.json",
    ):
        batch.evaluate_shards(TRUTH, [*shards, twin])


def test_shards_that_share_an_image(tmp_path):
    shards = shards_of_fixture(tmp_path)
    row = json.loads(shards[0].read_text())[0]
    stray = write(tmp_path, "stray.json", json.dumps([{**row, "score": 0.123}]))
    with pytest.raises(
        detmap.InputError, match=r"stray.json: field 'image_id'|stray.json.*shares an image with .*part-0.json"
    ) as caught:
        batch.evaluate_shards(TRUTH, [*shards, stray])
    assert "part-0.json" in str(caught.value)
    assert str(row["image_id"]) in str(caught.value)


def test_empty_and_broken_shards(tmp_path):
    shards = shards_of_fixture(tmp_path)
    empty = [write(tmp_path, f"empty-{i}.json", "[]") for i in range(2)]
    truth = detmap.read_coco(TRUTH)
    expected = detmap.evaluate(truth, detmap.read_coco_results(FIXTURES / "detections.json", truth))
    assert_same_result(batch.evaluate_shards(truth, [*shards, *empty]), expected)
    nothing = batch.evaluate_shards(truth, empty)
    assert nothing.notices["no_detections"] == 1
    assert nothing["AP"] == 0
    bad = write(tmp_path, "bad.json", "{")
    with pytest.raises(detmap.InputError, match=r"bad.json"):
        batch.evaluate_shards(truth, [*shards, bad])


def test_shards_on_any_executor(tmp_path):
    arrays = large_workloads.detector_like(30, 20, 4, 1)
    dataset, records = large_workloads.to_coco(arrays)
    truth, found = tables_of_arrays(arrays)
    paths = [write(tmp_path, f"{i}.json", json.dumps(shard)) for i, shard in enumerate(cut(records, 4, 2))]
    assert_same_result(batch.evaluate_shards(truth, paths, executor=Forgetful()), detmap.evaluate(truth, found))
    assert len(dataset["images"]) == 30
