"""Every named protocol through all that scores: tallies, evaluator, batch, shards, statistics, diagnosis, pages, cards."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import kitti_scenes
import lvis_scenes
import moving_scenes
import numpy as np
import pose_scenes
import pytest
import temporal_scenes
import track_scenes
from support import assert_same_result, same_bits

import detmap
from detmap import batch, statistics
from detmap.cli import main
from detmap.detection.packed import PackedTally, ShardedTally
from detmap.detection.protocols import BY_FILE, PRESETS, resolve
from detmap.diagnostics import PARTS
from detmap.explanations.replay import trimmed
from detmap.formats import files as written
from detmap.shapes import KINDS
from detmap.statistics.bootstrap import replicated

#: Ranges in percent and by height, and levels by a field of the annotations, of the size of boxes and of a flag.
LEVELS = resolve(
    "coco",
    area_ranges={"all": (0, 1e10), "tiny": (0, "2%"), "low": ("height", 0, 60)},
    levels={"hard": "occlusion>1", "easy": "occlusion<=1,object.height>60,detection.height>=60,iscrowd=0"},
)
#: COCO's rules for the kinds of shape that no named protocol implies, plug-ins' too.
KIND_PRESETS = {f"coco-{kind}": kind for kind in KINDS if kind not in {one.iou_type for one in PRESETS.values()}}
PROTOCOLS = (*PRESETS, "levels", *KIND_PRESETS)

#: The kinds that `made_files` writes files for; those of DOTA's files are in one folder.
DOTA = ("rotated", "probiou")
MASKS = ("segm", "boundary")
TEMPORAL = ("temporal", "temporal_span")
SPACE = ("bev", "box3d")
MOVING = "centre-distance"
SCENES = ("bbox", "keypoints", "keypoints_wholebody", *MASKS, *DOTA, *SPACE, MOVING, *TEMPORAL, "tracks")


@pytest.fixture(scope="module", autouse=True)
def with_levels():
    """The protocols of this file are named ones, as those of a plug-in, until tests/conftest.py restores the registries."""
    made = [replace(LEVELS, name="levels")]
    made += [
        replace(resolve("coco", iou_type=kind, max_dets=(1, 2, 3)), name=name) for name, kind in KIND_PRESETS.items()
    ]
    for one in made:
        detmap.register(one)


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """No test looks at how many there are."""
    monkeypatch.setattr("detmap.statistics.draws.FEWEST_REPLICATES", 5)


BOXES = "bbox"


def made_files(folder):
    """Write for each kind of shape ground truth with every field that a protocol reads, and the results of two models."""
    document, results = lvis_scenes.scene(5, images=12, categories=5, crowded=1)
    document["annotations"] = [one for one in document["annotations"] if one["area"] > 0]
    for place, one in enumerate(document["annotations"]):
        one["is_group_of"] = int(place % 4 == 0)
        one["occlusion"] = place % 3
    for place, one in enumerate(document["images"]):
        one["pos_category_ids"] = [1 + place % 5]
    for one in document["categories"]:
        one["name"] = one["name"].replace(" ", "-")  # DOTA's classes are words
    results = [one for one in results if one["area"] > 0]
    for place, one in enumerate(results):
        del one["area"]
        one["score"] = round(one["score"] / 2 + place / 1e4, 6)  # shards of a file have no ties with each other
    write(folder / BOXES, document, results)
    for kind, lists in (("keypoints", pose_scenes.CROWDPOSE), ("keypoints_wholebody", pose_scenes.WHOLE_BODY)):
        document, results = pose_scenes.scene(5, lists, images=12, odd=False)
        for place, one in enumerate(results):
            one |= {name: round(one[name] / 2 + place / 1e4, 6) for name in one if name.endswith("score")}
        write(folder / kind, document, results)
    write_masks(folder)
    for kind in DOTA:
        write_dota(folder / kind, folder / BOXES)
    kitti_scenes.write(folder / "kitti", 5, images=40)
    write_moving(folder / MOVING)
    for kind in TEMPORAL:
        write_segments(folder / kind)
    document, results = track_scenes.scene(5, videos=12)
    for place, one in enumerate(results):
        one["score"] = round(one["score"] / 2 + place / 1e4, 6)
    write(folder / "tracks", document, results, "video_id")
    return folder


def write_moving(folder):
    """Samples in space, and results of two models."""
    samples, results = moving_scenes.scene(5, far=30.0, names=moving_scenes.NAMES[:4], decimals=6)
    folder.mkdir()
    (folder / "truth.json").write_text(json.dumps(samples))
    (folder / "one.json").write_text(json.dumps(results))
    for boxes in results["results"].values():
        for one in boxes:
            one["detection_score"] = 1 - one["detection_score"]
    (folder / "two.json").write_text(json.dumps(results))


def write_masks(folder):
    """Some of the boxes, cut at a corner, as polygons."""
    document, results = (json.loads((folder / BOXES / f"{name}.json").read_text()) for name in ("truth", "one"))
    document["images"] = document["images"][:6]
    images = {one["id"] for one in document["images"]}
    document["annotations"] = [one for one in document["annotations"] if one["image_id"] in images]
    results = [one for one in results if one["image_id"] in images]
    for one in (*document["annotations"], *results):
        x, y, width, height = one["bbox"]
        right, low = x + width, y + height
        one["segmentation"] = [[x, y, right, y, right, low, x + width / 3, low, x, y + height / 2]]
    for one in results:
        del one["bbox"]
    for kind in MASKS:
        write(folder / kind, document, results)


def write(folder, document, results, image="image_id"):
    folder.mkdir()
    (folder / "truth.json").write_text(json.dumps(document))
    (folder / "one.json").write_text(json.dumps(results))
    other = [{**one, **{name: 1 - one[name] for name in one if name.endswith("score")}} for one in results]
    (folder / "two.json").write_text(json.dumps(other))
    (folder / "shards").mkdir()
    for side in (0, 1):
        part = [one for one in results if one[image] % 2 == side]
        (folder / "shards" / f"{side}.json").write_text(json.dumps(part))


def write_dota(folder, boxes):
    """The same boxes as DOTA's files have them."""
    folder.mkdir()
    truth = detmap.read(boxes / "truth.json", "ground_truth")
    written.write(truth, folder / "labelTxt", format="dota")
    for name in ("one", "two"):
        found = detmap.read(boxes / f"{name}.json", ground_truth=truth)
        written.write(found, folder / name, format="dota", ground_truth=truth)


def write_segments(folder):
    """Segments of time in ActivityNet's JSON, without ties between shards."""
    truth, results = temporal_scenes.scene(5, videos=12)
    flat = [one for own in results.values() for one in own]
    for place, one in enumerate(flat):
        one["score"] = round(one["score"] / 2 + place / 1e4, 6)
    folder.mkdir()
    (folder / "shards").mkdir()
    (folder / "truth.json").write_text(json.dumps({"database": truth}))
    other = {video: [{**one, "score": 1 - one["score"]} for one in own] for video, own in results.items()}
    halves = ({video: own for video, own in results.items() if int(video[1:]) % 2 == side} for side in (0, 1))
    parts = {"one": results, "two": other, **{f"shards/{side}": own for side, own in enumerate(halves)}}
    for name, own in parts.items():
        (folder / f"{name}.json").write_text(json.dumps({"results": own}))


def folder_of(name):
    """The folder of `made_files` with the files for a protocol."""
    return "kitti" if PRESETS[name].class_levels else PRESETS[name].iou_type


def sources(files, name):
    """The paths of ground truth and of two models' detections that hold what a protocol compares."""
    if folder_of(name) == "kitti":
        return [files / one for one in ("label_2", "one", "two")]
    if PRESETS[name].iou_type in DOTA:
        return [files / one for one in ("labelTxt", "one", "two")]
    return [files / f"{one}.json" for one in ("truth", "one", "two")]


#: A protocol for each kind of shape in each form of files.
ONE_OF_EACH_KIND = [*{(folder_of(name), PRESETS[name].iou_type): name for name in PRESETS}.values(), *KIND_PRESETS]


@pytest.fixture(scope="module")
def all_files(tmp_path_factory):
    return made_files(tmp_path_factory.mktemp("every"))


@pytest.fixture
def files(name, all_files):
    """The folder with files for a protocol's kind of shape."""
    return all_files / folder_of(name)


@pytest.fixture(scope="module")
def all_tables(all_files):
    made = {}
    for name in PRESETS:
        kind, key = PRESETS[name].iou_type, (folder_of(name), PRESETS[name].iou_type)
        if key not in made:
            truth, *found = sources(all_files / key[0], name)
            fields = ["occlusion"] if kind == BOXES else []
            truth = detmap.read(truth, "ground_truth", image_facts=True, iou_type=kind, fields=fields)
            made[key] = truth, *(detmap.read(one, ground_truth=truth, iou_type=kind) for one in found)
    return made


@pytest.fixture
def tables(name, all_tables):
    return all_tables[folder_of(name), PRESETS[name].iou_type]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_kind_has_files(name):
    kind = PRESETS[name].iou_type
    assert kind in SCENES, f"no files for the kind {kind!r}: let made_files write some, and add it to SCENES"


@pytest.mark.parametrize("name", PROTOCOLS)
def test_tallies(name, tables):
    truth, found, _ = tables
    whole = detmap.match(truth, found, name)
    result = detmap.DetectionResult(whole)
    assert not np.isnan(next(iter(result.values())))
    assert_same_result(detmap.DetectionResult(detmap.Tally.from_bytes(whole.to_bytes())), result)
    side = np.arange(truth.images.ids.size) % 2 == 0
    parts = [detmap.match(truth, found, name, image_ids=truth.images.ids[rows].tolist()) for rows in (side, ~side)]
    merged = parts[1].merge(parts[0])
    assert merged.class_starts.tolist() == whole.class_starts.tolist()
    assert_same_result(detmap.DetectionResult(merged), result)
    assert detmap.Tally.empty(whole.protocol, whole.categories).merge(whole).to_bytes() == whole.to_bytes()


@pytest.mark.parametrize("name", PROTOCOLS)
def test_packed_tallies(name, tables, monkeypatch):
    """In narrow columns, each category unpacked by itself, some together, or all at once."""
    truth, found, _ = tables
    side = np.arange(truth.images.ids.size) % 2 == 0
    parts = [detmap.match(truth, found, name, image_ids=truth.images.ids[rows].tolist()) for rows in (side, ~side)]
    merged = parts[0].merge(parts[1])
    expected = detmap.DetectionResult(merged)
    for together in (1, len(merged) // 3, 10**9):
        monkeypatch.setattr("detmap.detection.packed.TOGETHER", together)
        made = ShardedTally([PackedTally.of(part) for part in parts], [0, 0], merged.notices)
        assert made.whole().to_bytes() == merged.to_bytes()
        result = detmap.DetectionResult(made)
        assert result.to_json() == expected.to_json()
        assert_same_result(result, expected)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_evaluator(name, tables):
    truth, found, _ = tables
    result = detmap.evaluate(truth, found, name)
    names = dict(zip(truth.categories.ids.tolist(), truth.categories.names, strict=True))
    kind = result.protocol.iou_type
    frequencies, lists = None, {}
    if kind == BOXES and folder_of(name) == BOXES:
        frequencies = dict(zip(truth.categories.ids.tolist(), truth.categories.frequencies, strict=True))
        lists = {
            "neg_category_ids": truth.negatives.by_image(truth.images.ids, truth.categories.ids),
            "not_exhaustive_category_ids": truth.not_exhaustive.by_image(truth.images.ids, truth.categories.ids),
            "pos_category_ids": truth.present.by_image(truth.images.ids, truth.categories.ids),
        }
    elif truth.images.crowd_index is not None:
        lists = {"crowdIndex": dict(zip(truth.images.ids.tolist(), truth.images.crowd_index.tolist(), strict=True))}

    def shapes(table):
        if kind in (*DOTA, *MASKS, MOVING, *TEMPORAL, "tracks"):
            return {KINDS[kind].argument: table.shape(kind)}
        if folder_of(name) == "kitti":
            more = {"alpha": table.shape("box3d").angles(kind)} if kind == BOXES else {"boxes3d": table.shape(kind)}
            return {"boxes": table.boxes, **more}
        if kind == BOXES:
            return {"boxes": table.boxes}
        points = table.shape(kind).arrays()["values"]
        return {
            "boxes": table.boxes,
            "keypoints": points.reshape(len(table), -1, 3) if len(table) else np.empty((0, 3, 3)),
        }

    how = {"categories": names, "box_format": "xywh" if truth.box_sizes else "xyxy", "frequencies": frequencies}
    first, second = (detmap.Evaluator(name, **how) for _ in range(2))
    if result.protocol.ties in BY_FILE:  # an evaluator takes images in the order of their ids
        found = found.take(np.argsort(found.images.codes, kind="stable"))
        result = detmap.evaluate(truth, found, name)
    for n, image in enumerate(truth.images.ids.tolist()):
        own = found.take(found.images.ids[found.images.codes] == image)
        sought = truth.take(truth.images.codes == n)
        target = {
            **shapes(sought),
            "labels": sought.categories.ids[sought.categories.codes],
            "area": sought.areas,
            "iscrowd": sought.crowd,
            "difficult": sought.difficult,
            **({} if sought.group_of is None else {"group_of": sought.group_of}),
            **{field: by_image[image] for field, by_image in lists.items()},
            **sought.fields,
            "image_size": (400, 400),
        }
        labels = own.categories.ids[own.categories.codes]
        scores = own.more_scores.get(result.protocol.score_field, own.scores)
        prediction = {**shapes(own), "scores": scores, "labels": labels}
        (first, second)[n % 2].update(prediction, target, image_ids=image)
    merged = first.merge(pickle.loads(pickle.dumps(second)))
    made = merged.compute()
    assert same_bits(list(made.values()), list(result.values()))
    assert same_bits(made.precision, result.precision)
    assert not {"missing_neg_category_ids", "missing_crowdIndex"} & {*made.notices}
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
    first, *others = results["a"]
    for metric in [first, *(one for one in others if "_easy" in one)][:2]:
        compared = detmap.compare(results, 5, metric=metric, permutations=9)
        (difference,) = compared.differences
        apart = results[difference.second][metric] - results[difference.first][metric]
        assert difference.difference == pytest.approx(apart, abs=1e-12)


def repeated(tally, copies):
    """The tally of a data set in which an image is there as often as it was drawn."""
    parts = []
    for new, old in enumerate(copies.tolist()):
        own = tally.on_images(np.arange(tally.image_ids.size) == old)
        parts.append(replace(own, image_ids=np.array([new])))
    merged = parts[0].beside(parts[1:], [np.full(1, new) for new in range(len(parts))])
    ids = np.arange(len(parts))
    crowding = None if tally.crowd_index is None else tally.crowd_index[copies]
    return replace(merged, image_ids=ids, crowd_index=crowding)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_matches_and_diagnoses(name, tables):
    truth, found, _ = tables
    tally = detmap.match(truth, found, name)
    for area, label in enumerate(tally.protocol.range_names):
        matches = detmap.match_pairs(truth, found, name, iou=tally.protocol.iou_thresholds[0], area=label)
        rows = np.lexsort((tally.rank, tally.category, tally.image))
        assert np.array_equal(matches.score, tally.scores[rows])
        bit = area * len(tally.protocol.iou_thresholds)
        hit, ignored = ((words[rows, 0] >> np.uint64(bit)) & np.uint64(1) for words in (tally.hit, tally.ignored))
        assert np.array_equal(matches.outcome, hit + 2 * ignored)
    diagnosis = detmap.diagnose(truth, found, name)
    document = diagnosis.to_dict()
    assert list(document["parts"]) == list(PARTS)
    result = detmap.evaluate(truth, found, name, iou_thresholds=[0.5], class_levels=False)
    # Parts of a diagnosis rank the outcomes of the first pass, where others match anew at each score.
    near = 0.05 if tally.protocol.matching == "by-object-twice" else 1e-12
    assert diagnosis.tide()["AP"] == pytest.approx(next(iter(result.values())), abs=near)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_explanations(name, tables):
    truth, found, _ = tables
    kind = PRESETS[name].iou_type
    base = replace(PRESETS["coco"], iou_type=kind)
    if PRESETS[name].sigmas is not None:  # by other sigmas poses of as many points cannot be scored
        base = replace(PRESETS[name], name="other", max_dets=(2,), labelled="field", unseen="scored")
    made = detmap.explain(truth, found, base, name, metric="AP", iou_type=kind, orders=4)
    of = [trimmed(one, "AP") for one in (base, PRESETS[name])]
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
    folders = folder_of(name) == "kitti" or result.protocol.iou_type in DOTA  # which are no shards
    if result.protocol.ties not in BY_FILE and not folders:
        assert_same_result(batch.evaluate_shards(files / "truth.json", [files / "shards"], name), result)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_cards_and_pages(name, files, tmp_path, capsys):
    given = [*map(str, sources(files, name)[:2]), "--protocol", name]
    card = str(tmp_path / "card.json")
    assert main(["eval", *given, "--card", card, "--quiet"]) == 0
    assert main(["verify", card, *given[:2]]) == 0
    page = tmp_path / "page.html"
    assert main(["report", *given, "--out", str(page), "--bootstrap", "5", "--quiet"]) == 0
    assert name in page.read_text("utf-8")
    capsys.readouterr()


@pytest.mark.parametrize("name", ONE_OF_EACH_KIND)
def test_a_batch_is_resumed(name, files, tmp_path, capsys):
    """`test_batch_and_shards` scores by every protocol what the command scores."""
    words = ["batch", *map(str, sources(files, name)), "--protocol", name, "--out", str(tmp_path / "out"), "--quiet"]
    assert main(words) == 0
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "results").glob("*.json")}
    assert len(before) == 2
    assert main([*words, "--resume"]) == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    capsys.readouterr()
