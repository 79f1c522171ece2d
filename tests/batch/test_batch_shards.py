"""Results in shards: merged in any order they are the whole, and shards that cannot be are refused."""

from __future__ import annotations

import json
from dataclasses import replace

import large_workloads
import numpy as np
import pytest
import workloads
from batches import FIXTURES, TRUTH, Forgetful, cut, run, shards_of_fixture, write
from batches import few_permutations as few_permutations
from hypothesis import given, settings
from hypothesis import strategies as st
from support import assert_same_result, examples, same_bits, tables_of_arrays

import detmap
from detmap import batch
from detmap.batch import shards as shards_module
from detmap.detection.packed import PackedTally, ShardedTally
from detmap.detection.protocols import PRESETS, resolve
from detmap.detection.tally import COLUMNS
from detmap.formats.inputs import Input
from detmap.kernels import readonly


@settings(max_examples=examples(30))
@given(workloads.coco_workloads(), st.integers(1, 4), st.sampled_from(["coco", "voc2007"]), st.sampled_from([1, 10**6]))
def test_shards_are_the_whole(tmp_path_factory, workload, parts, name, together):
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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("detmap.detection.packed.TOGETHER", together)
        made = batch.evaluate_shards(truth, [folder / "shards"], protocol)
    assert_same_result(made, expected)
    assert made.to_json() == expected.to_json()
    for column in ("category", "image", "rank", "order", "scores", "hit", "ignored"):
        assert np.array_equal(getattr(made.tally, column), getattr(expected.tally, column)), column


def packed(leaves):
    """The shards as one, each behind those before it."""
    records = [leaf.records for leaf in leaves]
    return ShardedTally([leaf.tally for leaf in leaves], [sum(records[:i]) for i in range(len(leaves))], {})


def merged(truth, paths, protocol):
    """The merged tallies of shards, whose positions are behind those of the shards before."""
    parts, before = [], 0
    for path in paths:
        found = Input(path, "detections").detections(truth)
        part = detmap.match(truth, found, protocol, image_ids=found.images.ids)
        parts.append(replace(part, order=readonly(part.order + before * (part.order.size > 0), np.int64)))
        before += len(found)
    return parts[0].merge(*parts[1:])


#: The columns of a tally that have a row per detection.
PER_DETECTION = [column.name for column in COLUMNS if column.per == "detection"]

PROTOCOLS = [
    PRESETS["coco"],
    PRESETS["voc2007"],
    replace(PRESETS["coco"], name="reversed", ties="reversed"),
    replace(PRESETS["coco"], name="file-reversed", ties="file-reversed"),
    replace(PRESETS["coco"], name="capped", max_per_category=20),
    replace(PRESETS["coco"], name="words", iou_thresholds=tuple(np.linspace(0.05, 0.95, 37).tolist())),
]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda one: one.name)
@pytest.mark.parametrize("together", [1, 300])
def test_packed_shards_are_their_merged_tallies(tmp_path, monkeypatch, protocol, together):
    """Also where no two categories are unpacked together; positions go on from shard to shard."""
    monkeypatch.setattr("detmap.detection.packed.TOGETHER", together)
    truth, paths = detmap.read_coco(TRUTH), shards_of_fixture(tmp_path, 7)
    leaves = [shards_module._match_shard(truth, protocol, Input(path, "detections")) for path in paths]
    expected = merged(truth, paths, protocol)
    made = packed(leaves)
    assert made.whole().to_bytes() == replace(expected, notices={}).to_bytes()
    result, plain = detmap.DetectionResult(packed(leaves)), detmap.DetectionResult(replace(expected, notices={}))
    assert_same_result(result, plain)
    assert result.to_json() == plain.to_json()
    assert result.tally.to_bytes() == plain.tally.to_bytes()


@pytest.mark.compiled
@pytest.mark.parametrize("together", [1, 10**6])
def test_shards_on_the_command_line(tmp_path, capsys, monkeypatch, together):
    """Also where the intervals ask for the tally that was not unpacked before."""
    monkeypatch.setattr("detmap.detection.packed.TOGETHER", together)
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


def test_a_large_result_keeps_no_tally_until_it_is_asked_for(tmp_path, monkeypatch):
    """Metrics, tables and arrays come from a few categories at a time; the packed tallies go when the tally is made."""
    monkeypatch.setattr("detmap.detection.packed.TOGETHER", 1)
    whole = ShardedTally.whole
    made = []
    monkeypatch.setattr(ShardedTally, "whole", lambda *given: made.append(1) or whole(*given))
    result = batch.evaluate_shards(TRUTH, shards_of_fixture(tmp_path))
    assert result.AP50
    assert result.to_json()
    assert result.rows()
    assert result.class_summary()
    assert result.scores.size
    assert not made
    truth = detmap.read_coco(TRUTH)
    expected = detmap.evaluate(truth, detmap.read_coco_results(FIXTURES / "detections.json", truth))
    for name in ("person", "car"):
        assert same_bits(result.curve(name).precision, expected.curve(name).precision)
    assert len(result.tally) == len(expected.tally)
    assert made == [1]
    assert result.tally is result.tally


@pytest.mark.parametrize("protocol", [PRESETS["coco"], PROTOCOLS[-1]], ids=["coco", "words"])
def test_a_packed_detection_takes_two_thirds_of_its_memory(protocol):
    """Of COCO's 40 pairs of area range and threshold, two bits each; nothing of the tally's own columns is kept."""
    arrays = large_workloads.detector_like(200, 100, 10, 1)
    tally = detmap.match(*tables_of_arrays(arrays), protocol)
    made = PackedTally.of(tally)
    of_detections = sum(owner(column).nbytes for column in made.columns.values())
    bits = len(protocol.iou_thresholds) * len(protocol.range_names)
    assert of_detections <= len(tally) * (8 + 2 + 1 + 2 * -(-bits // 8))
    assert not any(owner(getattr(made.frame, name)).nbytes for name in PER_DETECTION)


def owner(array):
    """The array that holds the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


@pytest.mark.parametrize("ranges", range(1, 19))
def test_packed_words_are_those_of_the_tally(ranges):
    """Of any number of bits, in whole bytes, and of no detection."""
    levels = [(f"r{i}", 0.0, 10.0 * i + 60) for i in range(ranges)]
    protocol = resolve("coco", area_ranges=levels, iou_thresholds=[0.5, 0.6, 0.7, 0.8, 0.9])
    for count in (0, 1, 50):
        rng = np.random.default_rng(count)
        ids, boxes = rng.integers(1, 4, (2, count)), rng.random((count, 4)) * 10 + 1
        truth = detmap.GroundTruth.from_arrays(
            image_ids=ids[0], category_ids=ids[1], boxes=boxes, images=[1, 2, 3], categories=[1, 2, 3]
        )
        found = detmap.Detections.from_arrays(
            image_ids=ids[0], category_ids=ids[1], boxes=boxes + 0.3, scores=rng.random(count).round(1)
        )
        tally = detmap.match(truth, found, protocol)
        whole = ShardedTally([PackedTally.of(tally)], [0], {}).whole()
        assert PackedTally.of(tally).columns["hit"].shape == (count, -(-5 * ranges // 8))
        for name in ("hit", "ignored", "scores", "image", "category", "rank"):
            assert same_bits(getattr(whole, name), getattr(tally, name)), name
        assert count < 50 or tally.hit.any()
