"""LVIS's protocols: every bit of precision and recall, and all numbers, against a naive twin and lvis-api itself."""

from __future__ import annotations

import copy
import hashlib
import json
import sys
import types
from dataclasses import replace
from pathlib import Path

import lvis_scenes
import naive_lvis
import numpy as np
import pytest
from support import examples, same_bits
from workloads import REAL_DATA

import detmap
from detmap import statistics
from detmap.data.notices import describe
from detmap.detection.protocols import resolve
from detmap.errors import OptionError
from detmap.formats.coco import read as coco
from detmap.statistics.bootstrap import replicated

ROOT = Path(__file__).resolve().parents[2]

#: Names of lvis-api, and where a cap of 300 gives AR its name ours.
NAMES = {
    **{name: name for name in ("AP", "AP50", "AP75", "APr", "APc", "APf")},
    "APs": "AP_small",
    "APm": "AP_medium",
    "APl": "AP_large",
    "AR@300": "AR_300",
    "ARs@300": "AR_small",
    "ARm@300": "AR_medium",
    "ARl@300": "AR_large",
}

#: What a drawn scene may be like.
SCENES = (
    {},
    {"crowded": 0, "images": 14},
    {"strings": True},
    {"categories": 3, "crowded": 2},
    {"fields": 0.6},
    {"fields": 0.0, "crowded": 0},
)


def read(document, results, **more):
    truth = detmap.read_coco(document, **more)
    return truth, detmap.read_coco_results(results, truth, **more)


def minus_one(array):
    return np.where(np.isnan(array), -1.0, array)[..., 0]


def assert_as_the_twin(result, expected):
    precision, recall, numbers, _ = expected
    assert same_bits(minus_one(result.precision), precision)
    assert same_bits(minus_one(result.recall), recall)
    cap = result.protocol.max_per_image or result.protocol.max_per_category
    for name, value in numbers.items():
        own = result[NAMES[name].replace("300", str(cap))]
        assert (-1 if np.isnan(own) else own) == value, name


@pytest.mark.parametrize("kind", SCENES)
@pytest.mark.parametrize("seed", range(examples(10)))
def test_every_bit_of_drawn_scenes(seed, kind):
    document, results = lvis_scenes.scene(seed, **kind)
    tables = read(document, results)
    assert_as_the_twin(detmap.evaluate(*tables, "lvis"), naive_lvis.evaluate(document, results))
    of_image, of_category = ((5, 10_000), (23, 9))[seed % 2]
    made = detmap.evaluate(*tables, "lvis", max_per_image=of_image)
    assert_as_the_twin(made, naive_lvis.evaluate(document, results, per_image=of_image))
    made = detmap.evaluate(*tables, "lvis-fixed", max_per_category=of_category)
    assert_as_the_twin(made, naive_lvis.evaluate(document, results, per_image=None, per_category=of_category))
    both = detmap.evaluate(*tables, "lvis", max_per_image=20, max_per_category=15)
    stay = set(map(id, naive_lvis.kept(results, 20)))
    rest = [one for one in results if id(one) in stay]  # in the order of the file
    expected = naive_lvis.evaluate(document, rest, per_image=None, per_category=15)
    assert same_bits(minus_one(both.precision), expected[0])


@pytest.mark.parametrize("seed", range(examples(10)))
def test_an_annotation_of_id_0_is_missed_where_lvis_misses_it(seed):
    document, results = lvis_scenes.scene(seed)
    document["annotations"][0]["id"] = 0
    tables = read(document, results)
    made = detmap.evaluate(*tables, "lvis", id_zero="missed")
    assert_as_the_twin(made, naive_lvis.evaluate(document, results, missed=(0,)))
    assert_as_the_twin(detmap.evaluate(*tables, "lvis"), naive_lvis.evaluate(document, results))


def test_the_scanner_reads_the_same_fields(tmp_path, monkeypatch):
    """Small files are decoded, large ones scanned."""
    monkeypatch.setattr(coco, "_WORTH_SCANNING", 0)
    document, results = lvis_scenes.scene(3, fields=0.7)
    for indent in (None, 1):
        (tmp_path / "truth.json").write_text(json.dumps(document, indent=indent))
        truth, parsed = detmap.read_coco(tmp_path / "truth.json"), detmap.read_coco(document)
        for name in ("negatives", "not_exhaustive"):
            one, other = getattr(truth, name), getattr(parsed, name)
            assert all(
                np.array_equal(getattr(one, part), getattr(other, part)) for part in ("images", "categories", "listed")
            )
        assert truth.categories.frequencies == parsed.categories.frequencies
        assert truth.notices == parsed.notices
        found = detmap.read_coco_results(results, truth)
        assert_as_the_twin(detmap.evaluate(truth, found, "lvis"), naive_lvis.evaluate(document, results))


def lvis_api(monkeypatch):
    """The package, whose release says `numpy.float`; its drawing of pictures is left aside."""
    monkeypatch.setattr(np, "float", float, raising=False)
    for name in ("cv2", "lvis.vis"):
        monkeypatch.setitem(sys.modules, name, types.SimpleNamespace(LVISVis=None))
    return pytest.importorskip("lvis")


@pytest.mark.filterwarnings("ignore:The 'warn' method is deprecated")
@pytest.mark.parametrize("kind", [kind for kind in SCENES if "fields" not in kind])
@pytest.mark.parametrize("seed", range(examples(10)))
def test_the_twin_equals_lvis_api(seed, kind, tmp_path, monkeypatch):
    lvis = lvis_api(monkeypatch)
    document, results = lvis_scenes.scene(seed, **kind)
    if seed % 2:
        document["annotations"][0]["id"] = 0
    (tmp_path / "truth.json").write_text(json.dumps(document))
    truth = lvis.LVIS(str(tmp_path / "truth.json"))
    found = lvis.LVISResults(truth, copy.deepcopy(results))
    made = lvis.LVISEval(truth, found, "bbox")
    made.run()
    precision, recall, numbers, _ = naive_lvis.evaluate(document, results, missed=(0,))
    assert same_bits(made.eval["precision"], precision)
    assert same_bits(made.eval["recall"], recall)
    assert list(made.get_results().items()) == list(numbers.items())


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(minus_one(array)).tobytes()).hexdigest()


@pytest.mark.parametrize("iou_type", ["bbox", "segm"])
def test_a_hundred_real_images(iou_type):
    folder = REAL_DATA / "lvis_val_100"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    expected = json.loads((folder / "expected.json").read_text())[iou_type]
    truth, found = folder / "lvis_val_100.json", folder / "synthetic_segm_results.json"
    result = detmap.evaluate(truth, found, "lvis", iou_type=iou_type)
    assert digest(result.precision) == expected["precision_sha256"]
    assert digest(result.recall) == expected["recall_sha256"]
    assert {name: result[NAMES[name]] for name in expected["results"]} == expected["results"]
    assert list(result) == [NAMES[name] for name in expected["results"]]
    assert {name: getattr(result, name) for name in expected["results"]} == expected["results"]


@pytest.mark.parametrize(
    ("name", "decisions", "backwards"),
    [
        ("default_300", {"protocol": "lvis"}, False),
        ("fixed_10000", {"protocol": "lvis-fixed"}, False),
        ("fixed_40", {"protocol": "lvis-fixed", "max_per_category": 40}, False),
        ("fixed_40_file_reversed", {"protocol": "lvis-fixed", "max_per_category": 40}, True),
    ],
)
def test_the_published_script_of_fixed_ap(name, decisions, backwards):
    folder = REAL_DATA / "fixed_ap"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    expected = json.loads((folder / "expected.json").read_text())[name]
    results = json.loads((folder / "results.json").read_text())
    truth = detmap.read_coco(folder / "gt.json")
    found = detmap.read_coco_results(results[::-1] if backwards else results, truth)
    result = detmap.evaluate(truth, found, **decisions)
    assert list(result.values()) == list(expected["results"].values())
    if "precision_sha256" in expected:
        assert digest(result.precision) == expected["precision_sha256"]
        assert digest(result.recall) == expected["recall_sha256"]


@pytest.mark.parametrize(
    ("name", "caps"),
    [
        ("pooled_10000", {"max_per_category": 10_000}),
        ("pooled_40_all_areas", {"max_per_category": 40}),
        ("pooled_nocap_maxdets300", {"max_per_category": None, "max_per_image": 300}),
    ],
)
def test_the_published_script_of_pooled_ap(name, caps):
    folder = REAL_DATA / "fixed_ap"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    expected = json.loads((folder / "expected.json").read_text())[name]["results"]
    result = detmap.evaluate(folder / "gt.json", folder / "results.json", "lvis-fixed", pooled=True, **caps)
    assert [result[f"AP_pooled{suffix}"] for suffix in ("", "_r", "_c", "_f")] == list(expected.values())


@pytest.mark.parametrize(("name", "cap"), [("fixed_segm_10000", 10_000), ("fixed_segm_2", 2)])
def test_fixed_ap_of_real_masks(name, cap):
    folder = REAL_DATA / "lvis_val_100"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    files = folder / "lvis_val_100.json", folder / "synthetic_segm_results.json"
    result = detmap.evaluate(*files, "lvis-fixed", iou_type="segm", max_per_category=cap, pooled=True)
    every = json.loads((REAL_DATA / "fixed_ap" / "expected.json").read_text())["on_lvis_val_100"]
    assert digest(result.precision) == every[name]["precision_sha256"]
    assert digest(result.recall) == every[name]["recall_sha256"]
    # Another version of numpy has added them up.
    assert list(result.values())[:13] == pytest.approx(list(every[name]["results"].values()), rel=1e-14)
    if cap == 2:
        pooled = list(every["pooled_segm_2"]["results"].values())
        assert list(result.values())[13:] == pytest.approx(pooled, rel=1e-14)


def test_fixed_ap_at_other_thresholds():
    """The published script writes -1 for AP50 and AP75 then, since it compares a number with a list."""
    folder = REAL_DATA / "fixed_ap"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    expected = json.loads((folder / "expected.json").read_text())["fixed_40_ious_.5_.75"]
    rules = {"max_per_category": 40, "iou_thresholds": [0.5, 0.75]}
    result = detmap.evaluate(folder / "gt.json", folder / "results.json", "lvis-fixed", **rules)
    assert digest(result.precision) == expected["precision_sha256"]
    assert pytest.approx(expected["results"]["AP"], rel=1e-14) == result.AP
    assert list(result.values())[3:] == pytest.approx(list(expected["results"].values())[3:], rel=1e-14)


@pytest.mark.parametrize("seed", range(examples(10)))
def test_pooled_ap_of_drawn_scenes(seed):
    document, results = lvis_scenes.scene(seed, fields=0.8)
    tables = read(document, results)
    result = detmap.evaluate(*tables, "lvis", pooled=True)
    pooled = naive_lvis.evaluate(document, results)[3]
    for pool, curve in pooled.items():
        made = result["AP_pooled" if pool == "all" else f"AP_pooled_{pool}"]
        assert np.isnan(made) if curve is None else made == np.mean(curve[0])
    boot = replicated(result, 3, 1)
    assert same_bits(boot.estimate[: len(boot.metrics)], [result[metric] for metric in boot.metrics])
    copies = np.repeat(np.arange(9), statistics.drawn(9, 1, 2))
    ids = [one["id"] for one in sorted(document["images"], key=lambda one: one["id"])]
    drawn, found = {**document, "images": [], "annotations": []}, []
    for new, old in enumerate(copies.tolist()):
        image = next(one for one in document["images"] if one["id"] == ids[old])
        drawn["images"].append({**image, "id": new})
        own = [one for one in document["annotations"] if one["image_id"] == ids[old]]
        drawn["annotations"] += [{**one, "image_id": new, "id": one["id"] + 1000 * new} for one in own]
        found += [{**one, "image_id": new} for one in results if one["image_id"] == ids[old]]
    expected = detmap.evaluate(*read(drawn, found), "lvis", pooled=True)
    assert same_bits(boot.replicates[2, : len(boot.metrics)], [expected[metric] for metric in boot.metrics])


def test_what_the_rules_are(tmp_path):
    """One of each: not looked for, known not to be there, not exhaustive, without area, a crowd, and a class of none."""
    document = {
        "images": [{"id": 1, "neg_category_ids": [2], "not_exhaustive_category_ids": [1, 3]}],
        "categories": [{"id": one, "name": "abcd"[one - 1], "frequency": "rrcf"[one - 1]} for one in (1, 2, 3, 4)],
        "annotations": [
            {"id": 5, "image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10], "area": 100, "iscrowd": 1},
            {"id": 6, "image_id": 1, "category_id": 4, "bbox": [0, 0, 10, 10], "area": 0},
        ],
    }
    found = [
        {"image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10], "score": 0.9},  # finds it
        {"image_id": 1, "category_id": 1, "bbox": [50, 50, 10, 10], "score": 0.8},  # not exhaustive: ignored
        {"image_id": 1, "category_id": 2, "bbox": [0, 0, 10, 10], "score": 0.7},  # known not to be there: wrong
        {"image_id": 1, "category_id": 3, "bbox": [0, 0, 10, 10], "score": 0.6},  # nobody looked
        {"image_id": 1, "category_id": 4, "bbox": [0, 0, 10, 10], "score": 0.5},  # its object has no area
        {"image_id": 1, "category_id": 2, "bbox": [0, 0, 0, 10], "score": 0.4},  # no area
    ]
    truth, detections = read(document, found)
    matches = detmap.match_pairs(truth, detections, "lvis")
    assert matches.detection.tolist() == [0, 1, 2]
    assert matches.outcome.tolist() == [1, 2, 0]
    kept = detmap.match_pairs(truth, detections, "lvis-fixed")  # where a cap counts what nobody looked for
    assert kept.detection.tolist() == [0, 1, 2, 5, 3, 4]
    assert kept.outcome.tolist() == [1, 2, 0, 2, 2, 2]
    result = detmap.evaluate(truth, detections, "lvis")
    rows = {row["category"]: row for row in result.per_category}
    assert [rows[name]["positives"] for name in "abcd"] == [1, 0, 0, 0]
    assert [rows[name]["detections"] for name in "abcd"] == [2, 1, 0, 0]
    assert result.APr == result.AP == pytest.approx(1)
    assert np.isnan(result.APc)
    assert np.isnan(result.APf)


def test_fields_that_are_missing_are_noticed():
    document, results = lvis_scenes.scene(1, crowded=0)
    for image in document["images"][:2]:
        del image["neg_category_ids"]
    document["images"][0]["not_exhaustive_category_ids"] = None
    present = {one["category_id"] for one in document["annotations"] if one["area"] > 0 and not one.get("ignore")}
    without = next(one for one in document["categories"] if one["id"] in present)
    del without["frequency"]
    tables = read(document, results)
    result = detmap.evaluate(*tables, "lvis")
    assert_as_the_twin(result, naive_lvis.evaluate(document, results))
    said = describe(result.notices)
    assert said[:3] == [
        "2 images without neg_category_ids or verified labels: there only detections of categories with objects are scored",
        "1 image without not_exhaustive_category_ids: taken as exhaustive",
        "1 category with ground truth, but without frequency: in no AP of a group by frequency",
    ]
    assert "foreign" not in str(dict(result.notices))
    assert "missing_iscrowd" not in result.notices
    by_coco = detmap.evaluate(*tables, "coco")
    assert "foreign_fields:frequency (LVIS)" in by_coco.notices
    assert not [code for code in by_coco.notices if code.startswith(("missing_neg", "missing_freq"))]
    part = detmap.evaluate(*tables, "lvis", image_ids=[one["id"] for one in document["images"][1:3]])
    assert part.notices["missing_neg_category_ids"] == 1
    bare, _ = lvis_scenes.scene(1, fields=0.0, crowded=0)
    truth, found = read(bare, results)
    notices = detmap.evaluate(truth, found, "lvis").notices
    assert notices["missing_neg_category_ids"] == notices["missing_not_exhaustive_category_ids"] == 9
    assert notices["missing_frequency"] > 3
    said = next(text for text in describe(notices) if "frequency" in text)
    assert said.endswith("without frequency: in no AP of a group by frequency")  # whatever the protocol calls them


@pytest.mark.parametrize(
    ("lists", "says"),
    [
        ({1: 5}, "record image 1: field 'neg_category_ids': must be a list of category ids, not 5"),
        ({1: [True]}, "record image 1: field 'neg_category_ids': must hold ids, integers or strings"),
        ({1: [1, "a"]}, "field 'neg_category_ids': ids must be all integers or all strings"),
        ({7: [1]}, "record image 7: field 'neg_category_ids': the image is not among the images"),
        ([1], "field 'neg_category_ids': must be a mapping of image id to category ids, not list"),
    ],
)
def test_lists_that_are_none(lists, says):
    with pytest.raises(detmap.InputError) as caught:
        detmap.GroundTruth.from_arrays(image_ids=[1], category_ids=[1], boxes=[[0, 0, 9, 9]], neg_category_ids=lists)
    assert says.split(": ")[-1].split(",")[0] in str(caught.value)


def test_given_as_arrays():
    """Ground truth need not come from a file."""
    truth = detmap.GroundTruth.from_arrays(
        image_ids=["a"],
        category_ids=["x"],
        boxes=[[0, 0, 9, 9]],
        images=["a", "b"],
        categories=["x", "y", "z"],
        neg_category_ids={"b": ["y", "unknown"], "a": np.array([], str)},
        not_exhaustive_category_ids={"a": ("x",)},
        frequencies={"x": "r", "y": "f"},
    )
    assert truth.negatives.by_image(truth.images.ids, truth.categories.ids) == {"a": [], "b": ["y"]}
    assert truth.categories.frequencies == ("r", "f", "")
    found = detmap.Detections.from_arrays(
        image_ids=["a", "a", "b", "b"],
        category_ids=["x", "x", "y", "z"],
        boxes=[[0, 0, 9, 9], [40, 0, 9, 9], [0, 0, 9, 9], [0, 0, 9, 9]],
        scores=[0.3, 0.9, 0.5, 0.4],
    )
    assert detmap.match_pairs(truth, found, "lvis").outcome.tolist() == [2, 1, 0]
    assert detmap.evaluate(truth, found, "lvis").APr == pytest.approx(1)
    with pytest.raises(detmap.InputError, match="must be r, c or f"):
        detmap.GroundTruth.from_arrays(image_ids=[1], category_ids=[1], boxes=[[0, 0, 9, 9]], frequencies={1: "rare"})


@pytest.mark.parametrize("protocol", ["lvis", "lvis-fixed"])
@pytest.mark.parametrize("seed", range(examples(10)))
def test_tallies_of_parts_are_those_of_the_whole(protocol, seed):
    """Also where a cap on all images leaves out other detections of a part than of the whole."""
    document, results = lvis_scenes.scene(seed, fields=0.9)
    truth, found = read(document, results)
    rules = resolve(protocol, **({"max_per_category": 9} if protocol == "lvis-fixed" else {"max_per_image": 7}))
    whole = replace(detmap.match(truth, found, rules), notices={})  # those of a table are in each of its parts
    rng = np.random.default_rng(seed)
    side = rng.integers(0, 3, truth.images.ids.size)
    parts = [detmap.match(truth, found, rules, image_ids=truth.images.ids[side == part].tolist()) for part in range(3)]
    assert replace(parts[2].merge(parts[0], parts[1]), notices={}).to_bytes() == whole.to_bytes()
    # Each part knows its own images alone: what it leaves out the whole leaves out too. Ties at the end of the cap are
    # broken by the file, which then is another one, so that there are none here.
    results = [{**one, "score": one["score"] + place / 1e6} for place, one in enumerate(results)]
    found = detmap.read_coco_results(results, truth)
    tied, whole = whole, detmap.match(truth, found, rules)
    alone = []
    for part in range(3):
        images = truth.images.ids[side == part]
        rows = np.isin(found.images.ids, images)[found.images.codes]
        alone.append(detmap.match(truth, found.take(rows), rules, image_ids=images.tolist()))
    merged = alone[1].merge(alone[2], alone[0])
    one, other = (detmap.DetectionResult(tally) for tally in (merged, whole))
    assert same_bits(one.precision, other.precision)
    assert same_bits(list(one.values()), list(other.values()))
    again = detmap.Tally.from_bytes(tied.to_bytes())
    assert again.frequencies == tied.frequencies
    assert again.to_bytes() == tied.to_bytes()
    other_way = detmap.match(
        detmap.read_coco({**document, "categories": [{**one, "frequency": "r"} for one in document["categories"]]}),
        found,
        rules,
        image_ids=truth.images.ids[side == 0].tolist(),
    )
    with pytest.raises(detmap.StateError, match="the frequency of category"):
        parts[1].merge(other_way)


def test_lists_are_written_and_what_loses_them_says_so(tmp_path):
    document, results = lvis_scenes.scene(4, fields=0.7)
    truth, found = read(document, results)
    assert "category_lists" not in detmap.write(truth, tmp_path / "again.json")
    again = detmap.read_coco(tmp_path / "again.json")
    one, other = (detmap.evaluate(table, found, "lvis") for table in (truth, again))
    assert same_bits(list(one.values()), list(other.values()))
    assert one.notices["missing_neg_category_ids"] == other.notices["missing_neg_category_ids"]
    lost = detmap.write(truth, tmp_path / "truth.csv")
    assert lost["category_lists"] == sum(
        any(image.get(field) is not None for field in ("neg_category_ids", "not_exhaustive_category_ids"))
        for image in document["images"]
    )


def test_classes_that_become_one(tmp_path):
    """A class is known not to be there if none of those is that it was made of, and not exhaustive if one is not."""
    document = {
        "images": [
            {"id": 1, "neg_category_ids": [1, 2], "not_exhaustive_category_ids": []},
            {"id": 2, "neg_category_ids": [1], "not_exhaustive_category_ids": [2]},
        ],
        "categories": [{"id": one, "name": "abc"[one - 1], "frequency": "rcf"[one - 1]} for one in (1, 2, 3)],
        "annotations": [{"id": 1, "image_id": 2, "category_id": 2, "bbox": [0, 0, 9, 9], "area": 81}],
    }
    (tmp_path / "truth.json").write_text(json.dumps(document))
    truth = detmap.read(tmp_path / "truth.json", "ground_truth", class_map={"a": "b", "c": ""})
    ids = truth.images.ids, truth.categories.ids
    assert truth.negatives.by_image(*ids) == {1: [2], 2: []}
    assert truth.not_exhaustive.by_image(*ids) == {1: [], 2: [2]}
    assert truth.categories.frequencies == ("c",)


def test_categories_that_are_one_have_no_groups_and_no_cap_of_their_own():
    document = json.loads((ROOT / "fixtures" / "lvis" / "ground_truth.json").read_text())
    results = json.loads((ROOT / "fixtures" / "coco" / "detections.json").read_text())
    assert not any("frequency" in one for one in describe(detmap.evaluate(document, results, "lvis").notices))
    merged = detmap.evaluate(document, results, "lvis", use_categories=False)
    assert not any("frequency" in one for one in describe(merged.notices))
    with pytest.raises(OptionError, match="max_per_category is a cap on each category"):
        resolve("lvis-fixed", use_categories=False)


def test_frequency_is_not_named_as_unread_under_rules_of_lvis():
    document = json.loads((ROOT / "fixtures" / "lvis" / "ground_truth.json").read_text())
    results = json.loads((ROOT / "fixtures" / "coco" / "detections.json").read_text())
    assert not any("LVIS" in one for one in describe(detmap.evaluate(document, results, "lvis", groups=()).notices))
    assert any("frequency" in one for one in describe(detmap.evaluate(document, results, "coco").notices))


def test_the_fixture():
    document = json.loads((ROOT / "fixtures" / "lvis" / "ground_truth.json").read_text())
    results = json.loads((ROOT / "fixtures" / "coco" / "detections.json").read_text())
    result = detmap.evaluate(document, results, "lvis")
    for one in results:
        one["area"] = one["bbox"][2] * one["bbox"][3]
    assert_as_the_twin(result, naive_lvis.evaluate(document, results))


def test_cards_and_fingerprints_know_the_lists():
    from detmap.batch.workers import fingerprint
    from detmap.cards import table_digest

    document, _ = lvis_scenes.scene(2)
    truth = detmap.read_coco(document)
    others = [replace(truth, negatives=None), replace(truth, not_exhaustive=None)]
    others.append(replace(truth, categories=replace(truth.categories, frequencies=None)))
    for digest_of in (table_digest, fingerprint):
        assert len({digest_of(one) for one in (truth, *others)}) == 4
