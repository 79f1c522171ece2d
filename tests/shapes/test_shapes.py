"""Masks, poses and boundaries against the real pycocotools and boundary-iou-api: every bit, on real and made-up data."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import shape_workloads as made
from hypothesis import given, settings
from hypothesis import strategies as st
from support import assert_equal_arrays, examples, same_bits
from workloads import REAL_DATA, needs_real_data

import detmap
from detmap.masks import Masks
from detmap.shapes.boxes import seem_shares

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
SEGM = {
    "segm_val2014_100": ("coco/instances_val2014_100.json", "coco/instances_val2014_fakesegm100_results.json"),
    "segm_mini": ("coco/instances_val2017_COCO-MINI.json", "segm_mini/synthetic_segm_results.json"),
}
POSES = {
    "keypoints_mini": (
        "keypoints_mini/person_keypoints_val2017_COCO-MINI.json",
        "keypoints_mini/synthetic_keypoints_results.json",
    ),
    "keypoints_fce": ("keypoints_fce/gt_dataset.json", "keypoints_fce/dt_dataset.json"),
}


def tables(truth, results, iou_type):
    read = detmap.read_coco(truth, iou_type=iou_type)
    return read, detmap.read_coco_results(results, read, iou_type=iou_type)


def assert_as_published(result, expected):
    """The arrays' hashes, and the numbers, of a reference program."""
    for name in ("precision", "recall", "scores"):
        array = getattr(result, name)
        array = np.ascontiguousarray(np.where(np.isnan(array), -1.0, array), "<f8")
        assert hashlib.sha256(array.tobytes()).hexdigest() == expected[f"{name}_sha256"], name
    numbers = [-1.0 if np.isnan(value) else value for value in dict(result).values()]
    assert numbers[: len(expected["stats"])] == expected["stats"] or expected["stats"][0] == -1


def expected_of(folder):
    return json.loads((REAL_DATA / folder / "expected.json").read_text())


# --------------------------------------------------------------------------------------------------------- real data


def computed(folders, kinds):
    """The kinds of numbers that a set comes with; all where the data are absent."""
    return [
        (folder, kind) for folder in folders for kind in kinds if not REAL_DATA.exists() or kind in expected_of(folder)
    ]


@pytest.mark.compiled
@needs_real_data
@pytest.mark.parametrize(("folder", "kind"), computed(SEGM, ["segm", "bbox", "boundary_0.02", "segm_useCats0"]))
def test_masks_of_real_data_equal_the_reference(folder, kind):
    expected = expected_of(folder)
    both = tables(*(REAL_DATA / path for path in SEGM[folder]), "segm")
    iou_type, _, rest = kind.partition("_")
    result = detmap.evaluate(*both, iou_type=iou_type, use_categories=rest != "useCats0")
    assert_as_published(result, expected[kind])


@pytest.mark.compiled
@needs_real_data
@pytest.mark.parametrize(("folder", "kind"), computed(POSES, ["default", "maxDets5", "sigmas_01"]))
def test_poses_of_real_data_equal_the_reference(folder, kind):
    expected = expected_of(folder)
    both = tables(*(REAL_DATA / path for path in POSES[folder]), "keypoints")
    options = {"default": {}, "maxDets5": {"max_dets": 5}, "sigmas_01": {"sigmas": [0.1] * 17}}[kind]
    result = detmap.evaluate(*both, iou_type="keypoints", **options)
    assert_as_published(result, expected[kind])
    if kind == "default":
        assert list(result) == [
            *("AP", "AP50", "AP75", "AP_medium", "AP_large", "AR_20", "AR50", "AR75", "AR_medium", "AR_large")
        ]


@pytest.mark.compiled
@needs_real_data
@pytest.mark.parametrize("folder", SEGM)
def test_the_scanner_and_the_parser_read_the_same_masks(folder, monkeypatch):
    paths = [REAL_DATA / path for path in SEGM[folder]]
    monkeypatch.setattr("detmap.formats.coco.read._WORTH_SCANNING", 1 << 40)
    parsed = tables(*paths, "segm")
    monkeypatch.setattr("detmap.formats.coco.read._WORTH_SCANNING", 0)
    scanned = tables(*paths, "segm")
    for one, other in zip(parsed, scanned, strict=True):
        ours, theirs = (table.shapes["segm"].unpacked().held for table in (one, other))
        for name in ("areas", "boxes", "regular"):
            assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
        assert one.shapes["segm"].masks().to_rle() == other.shapes["segm"].masks().to_rle()
        assert np.array_equal(one.boxes, other.boxes)
        assert np.array_equal(one.areas, other.areas)


# ----------------------------------------------------------------------------------------------------------- made up


def assert_equal(dataset, results, iou_type, **params):
    """A workload with pycocotools and with detmap: all arrays and numbers."""
    reference = made.pycocotools_reference(dataset, results, iou_type, **params)
    both = tables(dataset, results, iou_type)
    result = detmap.evaluate(*both, iou_type=iou_type, sigmas=params.get("kpt_oks_sigmas"))
    assert_equal_arrays(result, reference)
    assert same_bits(list(dict(result).values()), np.where(reference["stats"] == -1, np.nan, reference["stats"]))
    return result, both, reference


def results_of_each_kind(count):
    """Polygons one by one or several together, lists of runs, and boxes alone; after the first polygon runs for long."""
    rng = np.random.default_rng(7)
    made = []
    for i in range(count):
        x, y = (int(value) for value in rng.integers(0, 30, 2))
        w, h = (int(value) for value in rng.integers(3, 15, 2))
        corners = [x, y, x + w, y, x + w, y + h, x, y + h, x - 1, y + 1]
        one = [corners[: int(rng.integers(6, 11))]]  # some end in half a point
        record = {"image_id": 1, "category_id": 1, "bbox": [x, y, w, h], "score": 0.5}
        runs = {"counts": [x * 48 + y, h, 48 * 64 - x * 48 - y - h], "size": [48, 64]}
        shape = (runs, one, [*one, [1, 1, 9, 1, 9, 9]], None)[
            0 if i in range(1, count // 4) else int(rng.integers(4)) if i else 1
        ]
        made.append(record if shape is None else {**record, "segmentation": shape})
    return made


@pytest.mark.compiled
@pytest.mark.parametrize("alone", [False, True])
def test_polygons_are_drawn_alike_however_a_file_is_cut(alone, monkeypatch, tmp_path):
    """Also where there are more than the first lets expect, so that memory for coordinates is taken several times."""
    results = results_of_each_kind(400)
    if alone:  # a polygon each: drawn without a look at what belongs together
        results = [
            one for one in results if isinstance(one.get("segmentation"), list) and len(one["segmentation"]) == 1
        ]
    images, categories = [{"id": 1, "height": 48, "width": 64}], [{"id": 1, "name": "c"}]
    truth = detmap.read_coco({"images": images, "annotations": [], "categories": categories}, iou_type="segm")
    path = tmp_path / "results.json"
    path.write_text(json.dumps(results))
    expected = detmap.read_coco_results(results, truth, iou_type="segm")
    monkeypatch.setattr("detmap.formats.coco.read._WORTH_SCANNING", 0)
    for block in (1500, 20_000, 1 << 20):
        monkeypatch.setattr("detmap.reading.documents.BLOCK", block)
        read = detmap.read_coco_results(path, truth, iou_type="segm")
        assert read.notices == expected.notices
        own, other = read.shape("segm"), expected.shape("segm")
        assert all(same_bits(own.arrays()[name], other.arrays()[name]) for name in ("ends", "stops", "sizes"))
        assert same_bits(own.held.boxes, other.held.boxes)
        assert same_bits(own.areas(), other.areas())


@pytest.mark.parametrize(("iou_type", "results"), [("segm", "masks"), ("keypoints", "poses")])
def test_the_fixture_of_people_equals_pycocotools(iou_type, results):
    truth, found = (FIXTURES / "people" / f"{name}.json" for name in ("ground_truth", results))
    result, _, _ = assert_equal(json.loads(truth.read_text()), json.loads(found.read_text()), iou_type)
    expected = json.loads((FIXTURES / "people" / f"expected_{results}.json").read_text())
    assert expected["iou_type"] == iou_type
    assert dict(result) == expected["metrics"]
    assert dict(detmap.evaluate(*tables(truth, found, iou_type), iou_type=iou_type)) == expected["metrics"]


@settings(max_examples=examples(60), deadline=None)
@given(made.seeds(), st.sampled_from(["none", "all"]))
def test_any_workload_of_masks_equals_pycocotools(seed, boxes):
    dataset, results = made.mask_workload(seed, boxes)
    if not results or ("bbox" not in results[0] and boxes == "all") or all("segmentation" not in r for r in results):
        return
    assert_equal(dataset, results, "segm")


@settings(max_examples=examples(60), deadline=None)
@given(made.seeds(), st.sampled_from([1, 7, 8, 17, 133]), st.booleans())
def test_any_workload_of_poses_equals_pycocotools(seed, points, boxes):
    dataset, results = made.pose_workload(seed, points, boxes)
    if results:
        sigmas = np.random.default_rng(seed).uniform(0.02, 0.2, points)
        assert_equal(dataset, results, "keypoints", kpt_oks_sigmas=sigmas)


@settings(max_examples=examples(25), deadline=None)
@given(made.seeds())
def test_overlaps_of_matches_are_those_of_pycocotools(seed):
    """What `match_pairs` says of a pair is exact, also where many pairs are left out by their bounds."""
    dataset, results = made.mask_workload(seed)
    if not results:
        return
    reference = made.pycocotools_reference(dataset, results, "segm")
    both = tables(dataset, results, "segm")
    matches = detmap.match_pairs(*both, iou=0.5, iou_type="segm")
    truth = dataset["annotations"]
    for d, g, overlap in zip(
        matches.detection.tolist(), matches.ground_truth.tolist(), matches.overlap.tolist(), strict=True
    ):
        if g < 0:
            continue
        cell = truth[g]["image_id"], truth[g]["category_id"]
        column = [i for i, one in enumerate(truth) if (one["image_id"], one["category_id"]) == cell].index(g)
        assert overlap in reference["ious"][cell][:, column].tolist()
        assert results[d]["image_id"] == cell[0]


def test_arrays_bitmaps_and_codes_give_the_same_result():
    rng = np.random.default_rng(4)
    regions = np.stack([made.blob(rng, 20, 30) for _ in range(24)])
    truth = {"image_ids": np.arange(12) // 4, "category_ids": [1] * 12}
    found = {"image_ids": np.arange(12) // 4, "category_ids": [1] * 12, "scores": rng.random(12)}
    results = []
    for masks in (
        (regions[:12], regions[12:]),
        (Masks.from_bitmaps(regions[:12]), Masks.from_bitmaps(regions[12:])),
        (list(regions[:12]), list(regions[12:])),
        ([made.compressed(r) for r in regions[:12]], [made.uncompressed(r) for r in regions[12:]]),
    ):
        both = (
            detmap.GroundTruth.from_arrays(**truth, masks=masks[0]),
            detmap.Detections.from_arrays(**found, masks=masks[1]),
        )
        results.append([*dict(detmap.evaluate(*both, iou_type="segm")).values()])
        assert both[0].areas.tolist() == regions[:12].sum(axis=(1, 2)).tolist()
    assert all(same_bits(one, results[0]) for one in results)


def test_the_area_of_a_result_is_its_box_s_unless_the_protocol_says_otherwise():
    region = np.zeros((200, 200), bool)
    region[:10, :10] = True
    truth = detmap.GroundTruth.from_arrays(image_ids=[1], category_ids=[1], masks=[np.roll(region, 100, 0)])
    found = detmap.Detections.from_arrays(
        image_ids=[1], category_ids=[1], masks=[region], boxes=[[0, 0, 150, 150]], scores=[1]
    )
    for areas, ignored in (("own", True), ("shape", False)):
        result = detmap.evaluate(truth, found, iou_type="segm", result_areas=areas)
        assert result.tally.bit(result.tally.ignored, 1, 0).tolist() == [ignored]  # the small ones


def test_dilation_and_bbox_areas_decide():
    dataset, results = made.mask_workload(11)
    both = tables(dataset, results, "boundary")
    wide, narrow = (detmap.evaluate(*both, iou_type="boundary", dilation=d)["AP"] for d in (10.0, 0.02))
    assert wide == detmap.evaluate(*both, iou_type="segm")["AP"] >= narrow  # all of a mask is its boundary
    dataset, results = made.pose_workload(3)
    for annotation in dataset["annotations"]:
        del annotation["area"]
    both = tables(dataset, results, "keypoints")
    assert both[0].notices["missing_area"] == len(dataset["annotations"])
    with pytest.raises(detmap.InputError, match=r"without area.*--oks-area"):
        detmap.evaluate(*both, iou_type="keypoints")
    for annotation in dataset["annotations"]:
        annotation["area"] = annotation["bbox"][2] * annotation["bbox"][3] * 0.53
    reference = made.pycocotools_reference(dataset, results, "keypoints")
    assert_equal_arrays(detmap.evaluate(*both, iou_type="keypoints", oks_area="bbox*0.53"), reference)


def test_sigmas_of_each_category_by_name():
    dataset, results = made.pose_workload(3, points=5)
    both = tables(dataset, results, "keypoints")
    sigmas = [0.05, 0.1, 0.02, 0.07, 0.1]
    same = [
        dict(detmap.evaluate(*both, iou_type="keypoints", sigmas=one))
        for one in (sigmas, {"person": sigmas}, {1: sigmas})
    ]
    assert str(same[0]) == str(same[1]) == str(same[2])
    with pytest.raises(detmap.InputError, match=r"5 keypoints where sigmas are of 17.*sigmas="):
        detmap.evaluate(*both, iou_type="keypoints")
    with pytest.raises(detmap.InputError, match=r"no sigmas of the category 'person'"):
        detmap.evaluate(*both, iou_type="keypoints", sigmas={"dog": sigmas})
    with pytest.raises(detmap.OptionError, match="sigmas must be positive numbers"):
        detmap.evaluate(*both, iou_type="keypoints", sigmas=[0.1, 0])


# --------------------------------------------------------------------------------------------------------- bad input

GOOD = {"size": [4, 5], "counts": "52207"}
BAD = {
    "runs that do not add up": ({"size": [4, 6], "counts": "52207"}, "do not add up"),
    "a list that does not add up": ({"size": [4, 5], "counts": [3, 4]}, "do not add up"),
    "a string that is cut off": ({"size": [4, 5], "counts": "522P"}, "within a number"),
    "a foreign character": ({"size": [4, 5], "counts": "52 07"}, "outside '0' to 'o'"),
    "a null character": ({"size": [4, 5], "counts": "52\0" + "07"}, "outside '0' to 'o'"),
    "a huge size": ({"size": [10**9, 10**9], "counts": "52207"}, "less than 2\\*\\*32 pixels"),
    "a size of one": ({"size": [4], "counts": "52207"}, "size must be two positive integers"),
    "a fractional size": ({"size": [4.5, 5], "counts": "52207"}, "size must be two positive integers"),
    "a negative run": ({"size": [4, 5], "counts": [-1, 21]}, "integers of 0 or more"),
    "a fractional run": ({"size": [4, 5], "counts": [1.5, 18.5]}, "integers of 0 or more"),
    "counts of another type": ({"size": [4, 5], "counts": {}}, "string, or a list"),
    "no counts": ({"size": [4, 5]}, "an object with size and counts"),
    "no size": ({"counts": "52207"}, "an object with size and counts"),
    "a number": (7, "must be polygons, or an object"),
    "a string": ("52207", "must be polygons, or an object"),
    "no polygon": ([], "has no polygon"),
    "a short polygon": ([[1, 2, 3, 4]], "fewer than three points"),
    "a polygon of strings": ([["1", 2, 3, 4, 5, 6]], "list of numbers"),
    "numbers that are no polygon": ([1, 2, 3, 4, 5, 6], "list of numbers"),
    "a polygon with null": ([[1, 2, None, 4, 5, 6]], "list of numbers"),
    "a polygon with NaN": ([[1, 2, float("nan"), 4, 5, 6]], "list of numbers"),
    "a polygon far away": ([[1, 2, 3e9, 4, 5, 6]], "too far away"),
}


@pytest.mark.parametrize(
    ("name", "worth"),
    # NaN is not JSON: only Python's own objects hold it, which are not scanned.
    [
        pytest.param(name, worth, id=f"{name}, {reader}")
        for name in BAD
        for reader, worth in (("scanner", 0), ("parser", 1 << 40))
        if worth or "NaN" not in name
    ],
)
def test_a_bad_mask_is_one_line(name, worth, monkeypatch, tmp_path):
    """Of results and of ground truth, read from a file by either reader: file, record, field, and what is wrong."""
    monkeypatch.setattr("detmap.formats.coco.read._WORTH_SCANNING", worth)
    value, problem = BAD[name]
    image = {"id": 1, "height": 4, "width": 5}
    record = {"image_id": 1, "category_id": 1, "score": 0.5, "bbox": [0, 0, 1, 1], "area": 4, "iscrowd": 0}
    listed = [{**record, "segmentation": one} for one in (GOOD, GOOD, value)]
    truth = {"images": [image], "categories": [{"id": 1, "name": "a"}], "annotations": listed}
    good = detmap.read_coco({**truth, "annotations": listed[:1]}, iou_type="segm")
    path = tmp_path / "file.json"
    for document, read, place in (
        (listed, lambda source: detmap.read_coco_results(source, good, iou_type="segm"), "record 2"),
        (truth, lambda source: detmap.read_coco(source, iou_type="segm"), "annotation 2"),
    ):
        if "NaN" in name:
            source, file = document, "detections|ground truth"
        else:
            path.write_text(json.dumps(document))
            source, file = path, "file.json"
        with pytest.raises(
            detmap.InputError, match=rf"(?s)({file}).*{place}, field 'segmentation': .*{problem}"
        ) as error:
            read(source)
        assert "\n" not in str(error.value)


def test_files_that_lack_what_is_asked_for():
    record = {"image_id": 1, "category_id": 1, "score": 0.5, "bbox": [0, 0, 1, 1], "area": 4, "iscrowd": 0}
    truth = {"images": [{"id": 1}], "categories": [{"id": 1, "name": "a"}], "annotations": [record]}
    for kind, what in (("segm", "masks"), ("keypoints", "keypoints")):
        for read, document in ((detmap.read_coco, truth), (detmap.read_coco_results, [record])):
            with pytest.raises(detmap.InputError, match=rf"no record has {what}.*It holds boxes.*--iou-type bbox"):
                read(document, iou_type=kind)
    with pytest.raises(detmap.InputError, match=r"no shapes of the kind 'segm'.*masks=.*iou_type='segm'"):
        detmap.evaluate(detmap.read_coco(truth), detmap.read_coco_results([record]), iou_type="segm")
    polygons = [{**record, "segmentation": [[0, 0, 0, 3, 3, 3]]}]
    with pytest.raises(detmap.InputError, match="height and width"):
        detmap.read_coco({**truth, "annotations": polygons}, iou_type="segm")
    with pytest.raises(detmap.InputError, match="read the ground truth first"):
        detmap.read_coco_results(polygons, iou_type="segm")
    for bad, problem in (
        ([1, 2], "three for each point; there are 2"),
        ([1, 2, "x"], "must be numbers"),
        (None, "is missing"),
    ):
        with pytest.raises(detmap.InputError, match=rf"record 1, field 'keypoints': .*{problem}"):
            detmap.read_coco_results(
                [{**record, "keypoints": [1, 2, 3]}, {**record, "keypoints": bad}], iou_type="keypoints"
            )


def test_unusual_records_are_counted():
    record = {"image_id": 1, "category_id": 1, "score": 0.5, "bbox": [0, 0, 1, 1]}
    masked, bare = {**record, "segmentation": GOOD}, {k: v for k, v in record.items() if k != "bbox"}
    truth = detmap.read_coco(
        {
            "images": [{"id": 1, "height": 5, "width": 4}],
            "categories": [{"id": 1, "name": "a"}],
            "annotations": [
                {**masked, "area": 4, "iscrowd": 0},
                {**record, "area": 4, "iscrowd": 0, "segmentation": [[0, 0, 0, 3, 3, 3, 1], [1, 2]]},
            ],
        },
        iou_type="segm",
    )
    assert truth.notices["mask_sizes"] == 1
    assert truth.notices["odd_polygons"] == 2
    mixed = detmap.read_coco_results([masked, record, {**bare, "segmentation": GOOD}], truth, iou_type="segm")
    assert (mixed.notices["box_masks"], mixed.notices["boxless_results"]) == (1, 1)
    assert mixed.areas.tolist()[:2] == [1, 1]
    assert np.isnan(mixed.areas[2])
    other = detmap.read_coco_results([{**bare, "segmentation": GOOD}, masked], truth, iou_type="segm")
    assert other.notices["unused_boxes"] == 1
    assert np.isnan(other.areas).all()


def test_a_kind_is_named_by_no_table_format_or_evaluator():
    """Tables, formats, evaluator, batch and statistics look kinds up."""
    package = Path(detmap.__file__).parent
    for name in (
        "data/tables.py",
        "detection/arrangement.py",
        "detection/evaluator.py",
        "detection/updates.py",
        "detection/tally.py",
        "reading/documents.py",
        "reading/lists.py",
        "reading/scanner.py",
        "formats/coco/shapes.py",
        "reading/scanned_columns.py",
    ):
        text = (package / name).read_text()
        for kind in ('== "segm"', '== "keypoints"', '== "boundary"'):
            assert kind not in text, name


# -------------------------------------------------------------------------------------------------------- the drop-in


@pytest.mark.compiled
@needs_real_data
@pytest.mark.parametrize("folder", SEGM)
def test_the_stand_in_evaluates_boundaries(folder):
    """The arrays of boundary-iou-api; each record gets its boundary, and the summary has its usual numbers."""
    from detmap.pycocotools import cocoeval, faster

    truth = faster.COCO(str(REAL_DATA / SEGM[folder][0]), print_function=lambda text: None)
    evaluation = faster.COCOeval_faster(
        truth, truth.loadRes(str(REAL_DATA / SEGM[folder][1])), "boundary", print_function=lambda text: None
    )
    evaluation.run()
    expected = expected_of(folder)["boundary_0.02"]
    for name in ("precision", "recall", "scores"):
        array = np.ascontiguousarray(evaluation.eval[name], "<f8")
        assert hashlib.sha256(array.tobytes()).hexdigest() == expected[f"{name}_sha256"], name
    assert list(evaluation.stats) == expected["stats"]
    assert all(isinstance(ann["boundary"]["counts"], bytes) for ann in truth.dataset["annotations"])
    with pytest.raises(Exception, match="iouType not supported"):
        cocoeval.COCOeval(truth, truth, "boundary")


@settings(max_examples=examples(40), deadline=None)
@given(made.seeds(), st.sampled_from([1, 7, 17, 40]), st.booleans())
def test_similarities_of_the_drop_in_equal_pycocotools(seed, points, whole):
    """Every bit of ``ious``, of fractions and of whole numbers."""
    import contextlib
    import copy
    import io

    from detmap.pycocotools.coco import COCO
    from detmap.pycocotools.cocoeval import COCOeval

    dataset, results = made.pose_workload(seed, points)
    if not results:
        return
    if whole:
        for record in [*dataset["annotations"], *results]:
            record["keypoints"] = [int(value) for value in record["keypoints"]]
    sigmas = np.random.default_rng(seed).uniform(0.02, 0.2, points)
    reference = made.pycocotools_reference(dataset, results, "keypoints", kpt_oks_sigmas=sigmas)
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = copy.deepcopy(dataset)
        truth.createIndex()
        evaluation = COCOeval(truth, truth.loadRes(copy.deepcopy(results)), "keypoints")
        evaluation.params.kpt_oks_sigmas = sigmas
        evaluation.evaluate()
    for cell, expected in reference["ious"].items():
        assert np.array_equal(evaluation.ious[cell], expected), cell


# --------------------------------------------------------------------------------------------- strings, odd ones too


def string_of(lengths):
    """The compressed string of run lengths, in plain Python."""
    out = ""
    for i, length in enumerate(lengths):
        value = length - (lengths[i - 2] if i > 2 else 0)
        more = True
        while more:
            group, value = value & 31, value >> 5
            more = value != (-1 if group & 16 else 0)
            out += chr(48 + group + 32 * more)
    return out


def read_alone(counts, size):
    """What the reader of files makes of one mask: a column, or the error."""
    record = {"image_id": 1, "category_id": 1, "score": 1, "segmentation": {"size": size, "counts": counts}}
    return detmap.read_coco_results([record], iou_type="segm").shapes["segm"]


@settings(max_examples=examples(400), deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.data())
def test_strings_with_empty_runs_are_measured_as_when_they_are_unpacked(height, width, data):
    """Area, box and regularity from the string alone, for any runs that fill the image, empty ones among them."""
    cuts = sorted(data.draw(st.lists(st.integers(0, height * width), max_size=14)))
    lengths = np.diff([0, *cuts, height * width]).tolist()
    counts = string_of(lengths)
    column = read_alone(counts, [height, width])
    masks = Masks.from_rle([{"size": [height, width], "counts": counts}])
    assert column.masks().to_rle() == masks.to_rle()
    assert column.areas().tolist() == masks.areas().tolist() == [sum(lengths[1::2])]
    assert column.bounds().table.tolist() == masks.boxes().tolist()
    regular = all(length > 0 for length in lengths[1:])
    assert column.held.regular.tolist() == column.unpacked().held.regular.tolist() == [regular]


@pytest.mark.parametrize("padding", range(7))
def test_numbers_may_be_longer_than_they_need(padding):
    """Groups of zeros behind a number change nothing, in the first run and in those read two at a time."""
    for counts in ("d" + "P" * padding + "0", "5" + "U" + "P" * padding + "0" + ":"):
        mask = Masks.from_rle([{"size": [4, 5], "counts": counts}])
        assert mask.areas().tolist() == [0 if counts[0] == "d" else 5]
        assert read_alone(counts, [4, 5]).masks().to_rle() == mask.to_rle()


@settings(max_examples=examples(400), deadline=None)
@given(st.text(st.characters(min_codepoint=46, max_codepoint=130), max_size=9), st.integers(1, 40), st.integers(1, 40))
def test_any_string_is_a_mask_or_an_error(counts, height, width):
    """The reader of files takes a string where `Masks.from_rle` does, and both are the same mask."""
    record = {"size": [height, width], "counts": counts}
    try:
        expected = Masks.from_rle([record])
    except detmap.InputError:
        with pytest.raises(detmap.InputError):
            read_alone(counts, [height, width])
    else:
        assert read_alone(counts, [height, width]).masks().to_rle() == expected.to_rle()


@pytest.mark.parametrize(
    ("boxes", "expected"),
    [
        ([[0.5, 0.5, 0.25, 0.25]] * 9 + [[9, 9, 9.5, 9]], True),  # nine of ten
        ([[0.5, 0.5, 0.25, 0.25]] * 8 + [[9, 9, 9.5, 9]], False),
        ([[-0.5, 1.5, -0.5, 1.5]], True),
        ([[-0.501, 1.5, -0.5, 1.5]], False),
        ([[-0.5, 1.501, -0.5, 1.5]], False),
        ([[0, 1, 0, 1]], False),  # integers are pixels
        ([[0, 1, 0, 1]] * 9 + [[0, 0, 0.5, 1]], True),
        ([[0, 1, 0, 1]] * 9 + [[7.5, 7.5, 7.5, 7.5]], False),
        (np.zeros((0, 4)), False),
    ],
)
def test_either_side_of_boxes_that_seem_to_be_shares(boxes, expected):
    assert seem_shares(np.array(boxes, np.float64)) is expected


def test_columns_of_another_kind_and_boxes_are_no_shapes():
    table = detmap.read_coco(made.mask_workload(3)[0], iou_type="segm")
    masks, boxes = table.shapes["segm"], detmap.shapes.find("bbox").column(table.boxes, sizes=True)
    ids = {"image_ids": np.zeros(len(masks), int), "category_ids": np.ones(len(masks), int)}
    made_again = detmap.GroundTruth.from_arrays(**ids, shapes={"segm": masks})
    assert same_bits(made_again.boxes, masks.bounds().table)
    for name, column in (("segm", boxes), ("boundary", masks), ("bbox", boxes), ("keypoints", masks)):
        of = detmap.shapes.find(name).column.__name__
        with pytest.raises(detmap.InputError, match=rf"field \"shapes\['{name}'\]\": expected a {of}$"):
            detmap.GroundTruth.from_arrays(**ids, shapes={name: column})
