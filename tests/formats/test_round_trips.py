"""What is written is read again as it was: tables of every kind, through every format that can hold them."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from legs import examples
from shape_workloads import mask_workload, pose_workload
from support import assert_same, assert_same_result, same_bits
from workloads import REAL_DATA, make_coco, needs_real_data, pycocotools_evaluate

import detmap
from detmap.errors import InputError, OptionError
from detmap.formats.coco import read as coco
from detmap.shapes import find


def assert_same_table(one, other):
    """Every column of two tables, bit for bit, without what a file does not keep, or says of its own."""
    assert_same(one, other, ("source", "kinds", "notices", "images.order", "images.sizes"))
    if isinstance(one, detmap.GroundTruth):
        assert np.array_equal(known_sizes(one), known_sizes(other))


def measured(table):
    """What area ranges look at: NaN stands for the area of the shape."""
    return np.where(np.isnan(table.areas), table.shapes["segm"].areas(), table.areas)


def known_sizes(table):
    """Heights and widths, zeros where there are none."""
    return np.zeros((table.images.values.size, 2)) if table.image_sizes is None else table.image_sizes


NUMBERS = st.one_of(
    st.integers(0, 600).map(float),
    st.floats(0, 600, allow_nan=False),
    st.floats(0, 1e-3, allow_nan=False),
    st.floats(0, 600, width=32),
)
PLACES = st.one_of(NUMBERS, NUMBERS.map(lambda x: -x))
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
FILES = st.text("abcXYZ019_-é", min_size=1, max_size=6)


@st.composite
def worlds(draw, *, kind="bbox", files=False, sizes=None):
    """Ground truth and detections on the same images, with ids of integers or strings.

    With `files` the ids are such that files and classes can be called after them. With `sizes` every image has a size.
    """
    words = FILES if files else WORDS
    ids = [
        draw(st.lists(draw(st.sampled_from([words, st.integers(0, 2**40)])), min_size=1, max_size=5, unique=True))
        for _ in range(2)
    ]
    if files:
        ids = [[f"i{one}" if isinstance(one, str) else one for one in part] for part in ids]
    images, categories = ids
    count, found = draw(st.integers(0, 8)), draw(st.integers(0, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))

    def columns(rows):
        shape = (rows, 4)
        boxes = np.abs(np.array(draw(st.lists(NUMBERS, min_size=4 * rows, max_size=4 * rows)), float).reshape(shape))
        out = {
            "image_ids": [images[i] for i in rng.integers(0, len(images), rows)],
            "category_ids": [categories[i] for i in rng.integers(0, len(categories), rows)],
            "boxes": boxes,
        }
        if kind == "segm":
            out["masks"] = rng.random((rows, 7, 9)) < rng.choice([0.1, 0.5, 1.0])
        if kind == "keypoints":
            out["keypoints"] = np.dstack([rng.random((rows, 3, 2)) * 500, rng.integers(0, 3, (rows, 3))])
        return out

    given = columns(count)
    truth = detmap.GroundTruth.from_arrays(
        **given,
        areas=draw(st.lists(NUMBERS, min_size=count, max_size=count)),
        crowd=rng.random(count) < 0.3,
        difficult=rng.random(count) < 0.3,
        images=images,
        categories=categories,
        category_names={one: draw(words) for one in categories},
        image_sizes=rng.integers(600 if sizes else 1, 900, (len(images), 2)) if sizes or draw(st.booleans()) else None,
    )
    if draw(st.booleans()) and not files:
        truth = replace(truth, images=replace(truth.images, names=tuple(f"{i}.jpg" for i in range(len(images)))))
    scores = draw(st.lists(st.floats(-1e3, 1e3, allow_nan=False), min_size=found, max_size=found))
    return truth, detmap.Detections.from_arrays(**columns(found), scores=scores)


def law(**settings_of_worlds):
    """A test that holds for every world."""

    def wrap(test):
        quiet = settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
        return quiet(given(world=worlds(**settings_of_worlds))(test))

    return wrap


def through(table, path, *, ground_truth=None, iou_type="bbox", format=None):
    """What is read again of a table that is written, and what was said to be lost."""
    lost = detmap.write(table, path, format=format, ground_truth=ground_truth)
    role = "ground_truth" if isinstance(table, detmap.GroundTruth) else "detections"
    return detmap.read(path, role, iou_type=iou_type, ground_truth=ground_truth, format=format), lost


# ------------------------------------------------------------------------------------------------------------------ COCO


@pytest.mark.parametrize("kind", ["bbox", "segm", "keypoints"])
def test_coco_json_holds_every_table(kind, tmp_path, monkeypatch):
    """Also through the scanner, which reads what is large."""

    @law(kind=kind)
    def holds(world):
        truth, found = world
        for least in (1 << 20, 0):
            monkeypatch.setattr(coco, "_WORTH_SCANNING", least)
            again, lost = through(truth, tmp_path / "truth.json", iou_type=kind)
            assert lost == {}
            assert_same_table(truth, again)
            for name in ("found.json", "found.jsonl", "found.ndjson.gz"):
                again, lost = through(found, tmp_path / name, iou_type=kind)
                assert lost == {}
                assert_same_table(found, again)
                assert (found.areas is None) == (again.areas is None)
                assert found.areas is None or same_bits(found.areas, again.areas)

    holds()


def test_results_without_boxes_of_their_own_get_none(tmp_path):
    """The area of a result is that of its box where it has one: a box must not come up on the way, nor go."""
    masks = np.zeros((3, 20, 20), bool)
    masks[0, 2:9, 3:12] = masks[1, 4:6, 4:19] = masks[2, 1:3, 1:3] = True
    masks[0, 3, 4] = False
    given = {"image_ids": [1, 1, 2], "category_ids": [1, 2, 1], "scores": [0.5, 0.25, 0.125]}
    without = detmap.Detections.from_arrays(**given, masks=masks)
    with_boxes = detmap.Detections.from_arrays(**given, masks=masks, boxes=[[0, 0, 20, 20]] * 3)
    for table, boxes in ((without, 0), (with_boxes, 3)):
        again, lost = through(table, tmp_path / "found.json", iou_type="segm")
        assert lost == {}
        assert sum("bbox" in record for record in json.loads((tmp_path / "found.json").read_bytes())) == boxes
        assert_same_table(table, again)
        assert same_bits(table.areas, again.areas)
    records = json.loads((tmp_path / "found.json").read_bytes())
    for missing in ([0], [1], [0, 2]):
        some = [{k: v for k, v in r.items() if k != "bbox" or i not in missing} for i, r in enumerate(records)]
        table = detmap.read_coco_results(some, iou_type="segm")
        again, lost = through(table, tmp_path / "some.json", iou_type="segm")
        assert lost == {}
        assert same_bits(measured(table), measured(again))
        assert same_bits(table.boxes, again.boxes)
    own = replace(with_boxes, areas=detmap.kernels.readonly([1.0, 2.0, 3.0], np.float64))
    assert detmap.write(own, tmp_path / "own.json") == {"areas": 3}


def test_boxes_by_their_corners_are_counted_where_they_change(tmp_path):
    """x1 + (x2 - x1) is x2 for integers, and not always otherwise."""
    boxes = [[1, 2, 3, 5], [-0.7, 0, 0.1, 1], [0, 0, 1e-3, 1e17]]
    table = detmap.Detections.from_arrays(
        image_ids=[1, 1, 1], category_ids=[1, 1, 1], boxes=boxes, scores=[1, 1, 1], box_format="xyxy"
    )
    expected = sum(any(a + (b - a) != b for a, b in zip(box[:2], box[2:], strict=True)) for box in boxes)
    assert expected == 1
    again, lost = through(table, tmp_path / "found.json")
    assert lost == {"rounded_boxes": expected, "corners": 3}
    assert again.boxes[0].tolist() == [1, 2, 2, 3]


@pytest.mark.parametrize("kind", ["bbox", "segm", "keypoints"])
def test_written_tables_score_the_same(kind, tmp_path):
    make = {"bbox": make_coco, "segm": mask_workload, "keypoints": pose_workload}[kind]
    dataset, results = make(5)[:2]
    truth = detmap.read_coco(dataset, iou_type=kind)
    found = detmap.read_coco_results(results, truth, iou_type=kind)
    again, lost = through(truth, tmp_path / "truth.json.gz", iou_type=kind)
    results, more = through(found, tmp_path / "found.json", iou_type=kind, ground_truth=again)
    assert lost == more == {}
    assert_same_table(truth, again)
    expected = detmap.evaluate(truth, found, iou_type=kind)
    assert expected["AP"] > 0
    assert_same_result(detmap.evaluate(again, results, iou_type=kind), expected)


def test_pycocotools_reads_what_is_written(tmp_path):
    """The reference itself gives the same numbers for a document that was written."""
    dataset, results = make_coco(3, images=6)
    truth = detmap.read_coco(dataset)
    detmap.write(truth, tmp_path / "truth.json")
    detmap.write(detmap.read_coco_results(results, truth), tmp_path / "found.json")
    again = [json.loads((tmp_path / name).read_bytes()) for name in ("truth.json", "found.json")]
    expected = pycocotools_evaluate(dataset, results)
    got = pycocotools_evaluate(*again)
    for name in ("precision", "recall", "scores"):
        assert np.array_equal(expected[name], got[name])


# ------------------------------------------------------------------------------------------------------------------- VOC


def test_vocs_files_hold_boxes_by_their_corners(tmp_path_factory):
    """Names take the place of ids, and what VOC has no field for is counted."""

    @law(files=True)
    def holds(world):
        truth, found = world
        folder = tmp_path_factory.mktemp("voc")
        names = [str(one) for one in truth.category_names]
        if len(set(names)) < len(names):
            with pytest.raises(InputError, match="the name of more than one category"):
                detmap.write(truth, folder / "xml", format="voc")
            return
        again, lost = through(truth, folder / "xml", format="voc")
        corners = truth.boxes + np.pad(truth.boxes[:, :2], ((0, 0), (2, 0)))
        order = np.argsort(np.array(list(map(str, truth.images.values)))[truth.images.codes], kind="stable")
        assert same_bits(again.boxes, corners[order])
        assert again.difficult.tolist() == truth.difficult[order].tolist()
        assert [again.category_names[i] for i in again.categories.codes] == [
            names[i] for i in truth.categories.codes[order]
        ]
        assert lost.get("crowd", 0) == truth.crowd.sum()
        assert lost.get("empty_categories", 0) == len(names) - len(set(truth.categories.codes.tolist()))
        once_more, _ = through(again, folder / "again", format="voc")
        assert_same_table(again, once_more)
        detmap.write(found, folder / "results", format="voc", ground_truth=truth)
        results = detmap.read(folder / "results", "detections", format="voc")
        assert sorted(results.classes) == sorted(names)
        if len(results):
            once_more, _ = through(results, folder / "more", format="voc")
            assert_same_table(results, once_more)
        assert sorted(results.scores.tolist()) == sorted(found.scores.tolist())

    holds()


@needs_real_data
@pytest.mark.slow
def test_voc2007_scores_the_same_as_coco_json_and_written_anew(tmp_path):
    """A part of VOC2007. As JSON its integers become sizes and the area stays: by COCO's rule no bit changes."""
    truth = detmap.read(REAL_DATA / "voc2007/Annotations.tar.gz", "ground_truth")
    found = detmap.read(REAL_DATA / "voc2007/detections_a.tar.gz", "detections", ground_truth=truth)
    some = truth.take(truth.images.codes % 40 == 0)
    truth = detmap.GroundTruth.from_arrays(
        image_ids=some.images.values[some.images.codes],
        category_ids=some.categories.values[some.categories.codes],
        boxes=some.boxes,
        box_format="xyxy",
        areas=some.areas,
        difficult=some.difficult,
        images=truth.images.values[::40],
    )
    found = replace(found, classes=None).on_images_of(truth, "ignore")
    expected = detmap.evaluate(truth, found, "voc2007")
    assert expected["mAP"] > 0.5
    again, lost = through(truth, tmp_path / "xml", format="voc")
    assert lost == {}
    assert_same_table(truth, again)
    results, _ = through(found, tmp_path / "results", format="voc", ground_truth=truth)
    assert_same_result(detmap.evaluate(again, results, "voc2007"), expected)
    as_coco, lost = through(truth, tmp_path / "truth.json")
    found_too, more = through(found, tmp_path / "found.json", ground_truth=as_coco)
    assert lost == {"corners": len(truth)}
    assert set(more) == {"rounded_boxes", "corners"}
    assert len(found_too) == len(found)
    assert_same_result(detmap.evaluate(as_coco, found), detmap.evaluate(truth, found))


# ------------------------------------------------------------------------------------------------- what cannot be written


def simple(**more):
    given = {"image_ids": [1], "category_ids": [1], "boxes": [[1, 2, 3, 4]], "scores": [0.5], **more}
    return detmap.Detections.from_arrays(**given)


def test_a_path_that_says_no_format_is_refused(tmp_path):
    with pytest.raises(OptionError, match=r"'found\.bin' does not say a format .*\.json.* choose one of: .*coco"):
        detmap.write(simple(), tmp_path / "found.bin")
    with pytest.raises(OptionError, match=r"unknown format 'nonsense';.* one of: .*coco"):
        detmap.write(simple(), tmp_path / "found.json", format="nonsense")
    with pytest.raises(OptionError, match="role must be 'ground_truth' or 'detections', not 'truth'"):
        detmap.read(tmp_path, "truth")
    with pytest.raises(InputError, match="expected GroundTruth or Detections, not dict"):
        detmap.write({}, tmp_path / "x.json")


def test_ground_truth_is_no_json_lines(tmp_path):
    truth = detmap.GroundTruth.from_arrays(image_ids=[1], category_ids=[1], boxes=[[1, 2, 3, 4]])
    with pytest.raises(OptionError, match="JSON Lines hold detections"):
        detmap.write(truth, tmp_path / "truth.jsonl")
    assert not (tmp_path / "truth.jsonl").exists()


@pytest.mark.parametrize("format", ["coco", "voc"])
def test_a_score_that_is_infinite_is_refused(format, tmp_path):
    with pytest.raises(InputError, match=r"record 0.*a score must be finite"):
        detmap.write(simple(scores=[np.inf]), tmp_path / "found", format=format)
    assert not (tmp_path / "found").exists()


def test_a_folder_that_holds_something_is_not_written_to(tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "notes.txt").write_text("mine")
    with pytest.raises(OptionError, match="is not empty: choose a new one"):
        detmap.write(simple(), tmp_path / "results", format="voc")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OptionError, match="it is a file, where a folder is to be made"):
        detmap.write(simple(), tmp_path / "file", format="voc")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("name", ["a/b", "..", "", " x", "a\0b", ".hidden"])
def test_an_id_that_is_no_name_of_a_file_is_refused(name, tmp_path):
    """Nothing is ever written outside of the folder."""
    table = replace(simple(image_ids=["x"]), images=detmap.data.tables.Ids(np.array([name]), np.array([0], np.int32)))
    expected = name.rstrip("\0")
    with pytest.raises(InputError, match=r"cannot be the name of a file|cannot be written as a name"):
        detmap.write(table, tmp_path / "results", format="voc")
    assert not (tmp_path / "results").exists(), expected


def test_names_and_sizes_of_images_come_along(tmp_path):
    document = {
        "images": [
            {"id": 7, "file_name": "a/seven.jpg", "height": 20, "width": 30},
            {"id": 3, "file_name": 5, "height": 2.5, "width": 30},
            {"id": 5, "height": "20", "width": 30},
        ],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [],
    }
    (tmp_path / "truth.json.gz").write_bytes(gzip.compress(b"\xef\xbb\xbf" + json.dumps(document).encode()))
    table = detmap.read(tmp_path / "truth.json.gz", "ground_truth")
    assert table.images.names == ("", "", "a/seven.jpg")
    assert table.image_sizes.tolist() == [[0, 0], [0, 0], [20, 30]]
    assert detmap.read(tmp_path / "truth.json.gz", "ground_truth", image_facts=False).images.names is None
    again, lost = through(table, tmp_path / "again.json")
    assert lost == {}
    assert_same_table(table, again)


def test_every_kind_that_coco_reads_is_written_too():
    assert all(find(name).records for name in ("segm", "keypoints"))
