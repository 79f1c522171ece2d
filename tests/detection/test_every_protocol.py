"""Every named protocol through all that scores: tallies, evaluator, batch, shards, statistics, diagnosis, pages, cards."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import lvis_scenes
import numpy as np
import pytest
from support import assert_same_result, same_bits

import detmap
from detmap import batch, statistics
from detmap.cli import main
from detmap.detection.protocols import PRESETS
from detmap.diagnostics import PARTS
from detmap.explanations.replay import trimmed
from detmap.formats import files as written
from detmap.statistics.bootstrap import replicated

PROTOCOLS = tuple(PRESETS)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Ground truth with every field that a protocol reads, and the results of two models."""
    folder = tmp_path_factory.mktemp("every")
    document, results = lvis_scenes.scene(5, images=12, categories=5, crowded=1)
    document["annotations"] = [one for one in document["annotations"] if one["area"] > 0]
    for place, one in enumerate(document["annotations"]):
        one["is_group_of"] = int(place % 4 == 0)
    for place, one in enumerate(document["images"]):
        one["pos_category_ids"] = [1 + place % 5]
    for one in document["categories"]:
        one["name"] = one["name"].replace(" ", "-")  # DOTA's classes are words
    (folder / "truth.json").write_text(json.dumps(document))
    results = [one for one in results if one["area"] > 0]
    for place, one in enumerate(results):
        del one["area"]
        one["score"] = round(one["score"] / 2 + place / 1e4, 6)  # shards of a file have no ties with each other
    (folder / "one.json").write_text(json.dumps(results))
    (folder / "two.json").write_text(json.dumps([{**one, "score": 1 - one["score"]} for one in results]))
    (folder / "shards").mkdir()
    for side in (0, 1):
        part = [one for one in results if one["image_id"] % 2 == side]
        (folder / "shards" / f"{side}.json").write_text(json.dumps(part))
    truth = detmap.read(folder / "truth.json", "ground_truth")
    written.write(truth, folder / "labelTxt", format="dota")
    for name in ("one", "two"):
        found = detmap.read(folder / f"{name}.json", ground_truth=truth)
        written.write(found, folder / name, format="dota", ground_truth=truth)
    return folder


def sources(files, name):
    """The paths of ground truth and of two models' detections that hold what a protocol compares."""
    if PRESETS[name].iou_type == "bbox":
        return [files / f"{one}.json" for one in ("truth", "one", "two")]
    return [files / one for one in ("labelTxt", "one", "two")]


@pytest.fixture(scope="module")
def every_table(files):
    made = {}
    for name in ("coco", "dota"):
        how = {"iou_type": PRESETS[name].iou_type}
        truth, *found = sources(files, name)
        truth = detmap.read(truth, "ground_truth", image_facts=True, **how)
        made[how["iou_type"]] = truth, *(detmap.read(one, ground_truth=truth, **how) for one in found)
    return made


@pytest.fixture
def tables(every_table, name):
    return every_table[PRESETS[name].iou_type]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_tallies(name, tables):
    truth, found, _ = tables
    whole = detmap.match(truth, found, name)
    result = detmap.DetectionResult(whole)
    assert not np.isnan(next(iter(result.values())))
    assert_same_result(detmap.DetectionResult(detmap.Tally.from_bytes(whole.to_bytes())), result)
    side = np.arange(truth.images.ids.size) % 2 == 0
    parts = [detmap.match(truth, found, name, image_ids=truth.images.ids[rows].tolist()) for rows in (side, ~side)]
    assert_same_result(detmap.DetectionResult(parts[1].merge(parts[0])), result)
    assert detmap.Tally.empty(whole.protocol, whole.categories).merge(whole).to_bytes() == whole.to_bytes()


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_evaluator(name, tables):
    truth, found, _ = tables
    result = detmap.evaluate(truth, found, name)
    names = dict(zip(truth.categories.ids.tolist(), truth.categories.names, strict=True))
    kind, lists, frequencies = result.protocol.iou_type, {}, None
    if truth.negatives is not None:
        frequencies = dict(zip(truth.categories.ids.tolist(), truth.categories.frequencies, strict=True))
        lists = {
            "neg_category_ids": truth.negatives.by_image(truth.images.ids, truth.categories.ids),
            "not_exhaustive_category_ids": truth.not_exhaustive.by_image(truth.images.ids, truth.categories.ids),
            "pos_category_ids": truth.present.by_image(truth.images.ids, truth.categories.ids),
        }

    def shapes(table):
        return {"boxes": table.boxes} if kind == "bbox" else {kind: table.shape(kind)}

    how = {"categories": names, "box_format": "xywh", "frequencies": frequencies}
    first, second = (detmap.Evaluator(name, **how) for _ in range(2))
    if result.protocol.ties == "file":  # an evaluator takes images in the order of their ids
        found = found.take(np.argsort(found.images.codes, kind="stable"))
        result = detmap.evaluate(truth, found, name)
    for n, image in enumerate(truth.images.ids.tolist()):
        own, sought = found.take(found.images.codes == n), truth.take(truth.images.codes == n)
        target = {
            **shapes(sought),
            "labels": sought.categories.ids[sought.categories.codes],
            "area": sought.areas,
            "iscrowd": sought.crowd,
            "difficult": sought.difficult,
            "group_of": sought.group_of,
            **{field: by_image[image] for field, by_image in lists.items()},
        }
        labels = own.categories.ids[own.categories.codes]
        prediction = {**shapes(own), "scores": own.scores, "labels": labels}
        (first, second)[n % 2].update(prediction, target, image_ids=image)
    merged = first.merge(pickle.loads(pickle.dumps(second)))
    made = merged.compute()
    assert same_bits(list(made.values()), list(result.values()))
    assert same_bits(made.precision, result.precision)
    assert "missing_neg_category_ids" not in made.notices
    assert_same_result(detmap.Evaluator.from_bytes(merged.to_bytes()).compute(), made)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_statistics(name, tables):
    truth, *found = tables
    results = {model: detmap.evaluate(truth, one, name) for model, one in zip("ab", found, strict=True)}
    made = replicated(results["a"], 3, 5)
    named = {metric: made.estimate[column] for metric, column in made.columns.items() if metric in results["a"]}
    assert named.keys() >= set(made.metrics)
    assert all(same_bits(value, results["a"][metric]) for metric, value in named.items())
    images = truth.images.ids
    copies = np.repeat(np.arange(images.size), statistics.drawn(images.size, 5, 0))
    drawn = detmap.DetectionResult(repeated(results["a"].tally, copies))
    assert same_bits(made.replicates[0, : len(made.metrics)], [drawn[metric] for metric in made.metrics])
    compared = detmap.compare(results, 200, permutations=9)
    assert compared.to_dict()


def repeated(tally, copies):
    """The tally of a data set in which an image is there as often as it was drawn."""
    parts = []
    for new, old in enumerate(copies.tolist()):
        own = tally.on_images(np.arange(tally.image_ids.size) == old)
        parts.append(replace(own, image_ids=np.array([new])))
    merged = parts[0].beside(parts[1:], [np.full(1, new) for new in range(len(parts))])
    ids = np.arange(len(parts))
    return replace(merged, image_ids=ids)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_matches_and_diagnoses(name, tables):
    truth, found, _ = tables
    tally = detmap.match(truth, found, name)
    for area, (label, _, _) in enumerate(tally.protocol.area_ranges):
        matches = detmap.match_pairs(truth, found, name, iou=tally.protocol.iou_thresholds[0], area=label)
        rows = np.lexsort((tally.rank, tally.category, tally.image))
        assert np.array_equal(matches.score, tally.scores[rows])
        bit = area * len(tally.protocol.iou_thresholds)
        hit, ignored = ((words[rows, 0] >> np.uint64(bit)) & np.uint64(1) for words in (tally.hit, tally.ignored))
        assert np.array_equal(matches.outcome, hit + 2 * ignored)
    diagnosis = detmap.diagnose(truth, found, name)
    document = diagnosis.to_dict()
    assert list(document["parts"]) == list(PARTS)
    result = detmap.evaluate(truth, found, name, iou_thresholds=[0.5])
    assert diagnosis.tide()["AP"] == pytest.approx(next(iter(result.values())), abs=1e-12)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_explanations(name, tables):
    truth, found, _ = tables
    kind = PRESETS[name].iou_type
    made = detmap.explain(truth, found, "coco", name, metric="AP", iou_type=kind)
    of = [trimmed(replace(PRESETS[one], iou_type=kind), "AP") for one in ("coco", name)]
    assert made.source_value == detmap.evaluate(truth, found, of[0])["AP"]
    assert made.target_value == detmap.evaluate(truth, found, of[1])["AP"]
    total = sum(share.value for share in made.shares)
    assert total == pytest.approx(made.target_value - made.source_value, abs=1e-9)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_batch_and_shards(name, files, tables):
    truth, found, _ = tables
    result = detmap.evaluate(truth, found, name)
    gt, dt, _ = sources(files, name)
    (scored,) = batch.score(gt, [dt], name)
    assert same_bits(list(scored.values()), list(result.values()))
    assert scored.notices == dict(result.notices)
    if result.protocol.ties != "file":
        assert_same_result(batch.evaluate_shards(files / "truth.json", [files / "shards"], name), result)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_cards_and_pages(name, files, tmp_path, capsys):
    paths = [str(path) for path in sources(files, name)]
    given = [*paths[:2], "--protocol", name]
    card = str(tmp_path / "card.json")
    assert main(["eval", *given, "--card", card, "--quiet"]) == 0
    assert main(["verify", card, *given[:2]]) == 0
    page = tmp_path / "page.html"
    assert main(["report", *given, "--out", str(page), "--quiet"]) == 0
    assert name in page.read_text("utf-8")
    out = tmp_path / "out"
    for resumed in ([], ["--resume"]):
        words = ["batch", *paths, "--protocol", name, "--out", str(out), *resumed, "--quiet"]
        assert main(words) == 0
    capsys.readouterr()
