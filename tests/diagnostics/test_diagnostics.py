"""Diagnoses: their laws, their naive twins, and the numbers of the programs that they repeat."""

from __future__ import annotations

import dataclasses
import json

import naive_diagnostics
import numpy as np
import pytest
import workloads
from diagnosed import BOXES, ERRORS, MASKS, MINI, PRESET, SYNTHETIC, VAL, expected, made, read, same, sized, small
from diagnosed import tables as tables
from hypothesis import given, settings
from hypothesis import strategies as st
from shape_workloads import mask_workload, pose_workload
from support import detections_of, examples, ground_truth_of

import detmap
from detmap import MISS
from detmap.detection.protocols import PRESETS
from detmap.diagnostics import PARTS
from detmap.errors import InputError, OptionError

# --------------------------------------------------------------------------------------------------------------- the whole


def test_parts_are_made_when_asked_for_and_once(tables):
    diagnosis = made(*tables)
    assert list(PARTS)[:9] == [
        "tide", "confusion", "calibration", "lrp", "operating_points", "slices", "images", "suspects", "cuts"
    ]  # fmt: skip
    assert not diagnosis._findings
    assert diagnosis.tide() is diagnosis.tide()
    assert diagnosis.tide() is not diagnosis.tide(rules="tidecv")
    assert list(diagnosis._findings) == [("tide", ()), ("tide", (("rules", "tidecv"),))]
    assert "tide" in dir(diagnosis)
    assert "six errors" in diagnosis.tide.__doc__
    with pytest.raises(AttributeError, match="no attribute or part 'shoe'; parts: tide, "):
        _ = diagnosis.shoe
    with pytest.raises(OptionError, match="unknown part of a diagnosis 'shoe'; one of: tide"):
        diagnosis.part("shoe")


def test_every_part_becomes_rows_json_and_a_frame(tables):
    pytest.importorskip("pandas")
    diagnosis = made(*tables)
    document = json.loads(diagnosis.to_json())
    assert list(document["parts"]) == list(PARTS)
    same(document["AP"], detmap.evaluate(*tables, iou_thresholds=0.5)["AP"])
    for name in PARTS:
        finding = diagnosis.part(name)
        for title, rows in document["parts"][name]["tables"].items():
            assert len({tuple(row) for row in rows}) <= 1, f"{name}, {title}: rows have other columns"
            assert json.loads(finding.to_json())["tables"][title] == rows
        for title in finding.tables:
            assert len(finding.to_frame(title)) == len(finding.rows(title))
        assert len(finding.to_frame()) == len(finding.rows())
        with pytest.raises(OptionError, match="unknown table 'shoe'; one of: "):
            finding.rows("shoe")
        assert name in repr(finding)
    assert len(diagnosis.to_frame()) == len(diagnosis.rows()) > 30
    assert "parts: tide" in repr(diagnosis)


@settings(max_examples=examples(40), deadline=None)
@given(small(), PRESET, st.booleans(), st.booleans())
def test_every_part_can_be_made_of_anything(tables, protocol, use_categories, sizes):
    truth, found = (sized(tables[0], (200, 300)), tables[1]) if sizes else tables
    decided = dataclasses.replace(PRESETS[protocol], use_categories=use_categories)
    found = dataclasses.replace(found, scores=1 / (1 + np.exp(-found.scores)))
    diagnosis = made(truth, found, protocol=decided)
    for name in PARTS:
        diagnosis.part(name)
    diagnosis.tide(rules="tidecv")
    for match in ("ultralytics", "supervision"):
        assert diagnosis.confusion(match=match).matrix[:-1].sum() == len(truth)
    json.loads(diagnosis.to_json())


def test_steps_are_told(tables):
    diagnosis, said = made(*tables, replicates=200), []
    diagnosis.progress = said.append
    diagnosis.operating_points()
    diagnosis.slices(by="aspect")
    assert said == [
        PARTS.find("operating_points").says,
        "drawing images anew, for scores to cut at",
        PARTS.find("slices").says,
        *(f"slices: {at} of 3" for at in (1, 2, 3)),
    ]
    assert [text for text in said if "_" in text] == []  # in the user's words, not the names of calls


@pytest.mark.parametrize("empty", ["detections", "objects", "both"])
def test_nothing_there_is_no_error(tables, empty):
    truth, found = tables
    if empty != "detections":
        truth = truth.take(np.zeros(len(truth), bool))
    if empty != "objects":
        found = found.take(np.zeros(len(found), bool))
    diagnosis = made(truth, found)
    for name in PARTS:
        diagnosis.part(name)
    diagnosis.tide(rules="tidecv")
    diagnosis.confusion(match="ultralytics")
    json.loads(diagnosis.to_json())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iou": 0.05}, "iou must be above 0.1 and at most 1, not 0.05"),
        ({"iou": float("nan")}, "iou must be one finite number"),
        ({"score": "high"}, "score must be one finite number, not 'high'"),
        ({"replicates": 7}, "too few for an interval"),
    ],
)
def test_options_that_cannot_be(tables, options, message):
    with pytest.raises(OptionError, match=message):
        made(*tables, **options)


def test_swapped_arguments(tables):
    with pytest.raises(InputError, match="swapped"):
        detmap.diagnose(*tables[::-1])


@pytest.mark.parametrize(
    ("part", "options"),
    [
        ("tide", {"rules": "mine"}),
        ("confusion", {"match": "mine"}),
        ("confusion", {"iou": 0}),
        ("calibration", {"bins": 0}),
        ("calibration", {"tau": 2}),
        ("lrp", {"iou": 1}),
        ("operating_points", {"precision": 1.5}),
        ("slices", {"by": "shoe"}),
        ("slices", {"by": "position"}),
        ("slices", {"ranges": {"shoe": {}}}),
        ("slices", {"ranges": {"area": {"none": (2, 1)}}}),
        ("slices", {"attributes": {"area": ["a"]}}),
        ("slices", {"attributes": {"sky": ["a"]}}),
        ("images", {"most": 0}),
        ("suspects", {"most": True}),
        ("suspects", {"duplicate": 0}),
        ("cuts", {"caps": [0]}),
        ("cuts", {"scores": ["a"]}),
    ],
)
def test_options_of_parts_that_cannot_be(tables, part, options):
    with pytest.raises(OptionError):
        made(*tables).part(part, **options)


def test_options_of_parts_at_their_limits(tables):
    diagnosis = made(*tables)
    for part, options in (
        ("confusion", {"iou": 1.0}),
        ("calibration", {"bins": 1, "la_bins": 1}),
        ("calibration", {"tau": 0}),
        ("calibration", {"tau": 1}),
        ("operating_points", {"precision": 1.0, "recall": 1e-9}),
        ("images", {"most": 1}),
        ("suspects", {"most": 1, "duplicate": 1.0}),
        ("cuts", {"caps": [1]}),
    ):
        found = diagnosis.part(part, **options)
        assert all(found.settings[name] in (value, [value]) for name, value in options.items())
        if "most" in options:
            assert len(found.rows()) == 1


# -------------------------------------------------------------------------------------------------------------------- tide


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "found", "stored", "kind"),
    [
        ("val2014_100_box", MASKS, "segm", "bbox"),
        ("val2014_100_bbox_file", BOXES, "bbox", "bbox"),
        ("val2014_100_mask", MASKS, "segm", "segm"),
        ("mini_mask", SYNTHETIC, "segm", "segm"),
    ],
)
def test_tidecv_equals_tidecv(name, found, stored, kind):
    wanted = expected("tide")[name]
    truth = MINI if found == SYNTHETIC else VAL
    tide = made(*read(truth, found, stored), iou_type=kind).tide(rules="tidecv")
    same(100 * tide["AP"], wanted["ap"], 1e-9)
    assert {row["error"]: row["count"] for row in tide.rows()} == wanted["counts"]
    for column, there in (("dAP", "main"), ("progressive", "progressive")):
        same({row["error"]: 100 * row[column] for row in tide.rows()}, wanted[there], 1e-9)
    same({name: 100 * tide[f"dAP_{name}"] for name in ("FalsePos", "FalseNeg")}, wanted["special"], 1e-9)


@settings(max_examples=examples(60), deadline=None)
@given(workloads.coco_workloads(), st.sampled_from([0.3, 0.5]))
def test_tidecv_equals_its_twin(workload, iou):
    """Also with ties, crowds, images in any order, more than 100 detections, and classes that only detections have."""
    dataset, results, _ = workload
    truth, found = ground_truth_of(dataset), detections_of(results)
    wanted = naive_diagnostics.tidecv(truth, found, [item["id"] for item in dataset["images"]], iou)
    tide = made(truth, found, iou=iou).tide(rules="tidecv")
    same(tide["AP"], wanted["AP"])
    assert {row["error"]: row["count"] for row in tide.rows()} == wanted["counts"]
    same({row["error"]: row["dAP"] for row in tide.rows()}, wanted["main"])
    same({row["error"]: row["progressive"] for row in tide.rows()}, wanted["progressive"])
    same([tide["dAP_FalsePos"], tide["dAP_FalseNeg"]], [wanted["FalsePos"], wanted["FalseNeg"]])


@settings(max_examples=examples(60), deadline=None)
@given(small(), PRESET, st.sampled_from([0.3, 0.5, 0.75]))
def test_laws_of_tide(tables, protocol, iou):
    """Hits, ignored and errors are all detections; sums agree with the tally; with all errors mended AP is 1."""
    diagnosis = made(*tables, protocol=protocol, iou=iou)
    tide, matches = diagnosis.tide(), diagnosis.matches
    assert ((tide.error > 0) == (matches.outcome == MISS)).all()
    counts = {row["error"]: row["count"] for row in tide.rows()}
    result = detmap.evaluate(*tables, protocol, iou_thresholds=iou)
    found = result.counts(iou)
    assert sum(counts[name] for name in ERRORS) == found.false_positives.sum()
    by_class = tide.rows("categories")
    assert [sum(row[name] for name in ERRORS) for row in by_class] == found.false_positives.tolist()
    assert [row["hits"] for row in by_class] == found.true_positives.tolist()
    assert set(tide.missed) <= set(matches.missed)
    assert counts["Miss"] == tide.missed.size
    same([row["AP"] for row in by_class], [row["AP"] for row in result.per_category])
    if not np.isnan(tide["AP"]):
        same(tide["AP"] + sum(row["progressive"] for row in tide.rows()), 1.0)
        assert all(tide[f"dAP_{name}"] > -1e-12 for name in (*ERRORS, "FalsePos"))


@settings(max_examples=examples(30), deadline=None)
@given(small(), PRESET)
def test_a_perfect_model_has_no_errors(tables, protocol):
    truth, _ = tables
    rule = PRESETS[protocol]
    rows = np.flatnonzero(~(truth.crowd | truth.difficult) & (truth.boxes[:, 2:] > 0).all(axis=1))
    rows = rows[np.unique(np.column_stack((truth.images.codes, truth.boxes))[rows], axis=0, return_index=True)[1]]
    truth = truth.take(rows)
    found = detmap.Detections.from_arrays(
        image_ids=truth.images.ids[truth.images.codes],
        category_ids=truth.categories.ids[truth.categories.codes],
        boxes=truth.boxes,
        scores=np.linspace(1, 0.5, len(truth)),
    )
    tide = made(truth, found, protocol=dataclasses.replace(rule, max_dets=(2**31 - 1,))).tide()
    assert not tide.error.any()
    assert all(row["count"] == 0 for row in tide.rows())
    if len(truth):
        assert tide["AP"] == pytest.approx(1, abs=1e-12)


def test_errors_by_hand():
    """One of each: class, place, both, duplicate, background, miss; what mending gives can be counted."""
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[1] * 5,
        category_ids=[1, 1, 1, 2, 2],
        boxes=[[0, 0, 10, 10], [100, 0, 10, 10], [200, 0, 10, 10], [300, 0, 10, 10], [400, 0, 10, 10]],
    )
    found = detmap.Detections.from_arrays(
        image_ids=[1] * 7,
        category_ids=[1, 1, 1, 1, 1, 1, 1],
        boxes=[
            [0, 0, 10, 10], [0, 0, 10, 9], [100, 0, 10, 4], [300, 0, 10, 9], [400, 0, 10, 3], [900, 0, 10, 10],
            [100, 0, 10, 3],
        ],
        scores=[0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3],
    )  # fmt: skip
    diagnosis = made(truth, found)
    tide = diagnosis.tide()
    codes = dict(zip(diagnosis.matches.detection.tolist(), tide.error.tolist(), strict=True))
    assert codes == {0: 0, 1: 4, 2: 2, 3: 1, 4: 3, 5: 5, 6: 2}
    assert tide.missed.tolist() == [2, 4]
    # Class 1 has a hit of 3; class 2 none. The class mended, class 2 has one of 2 ahead of all: 51 of 101 recalls.
    same(tide["AP"], 34 / 101 / 2)
    same(tide["dAP_Cls"], 51 / 101 / 2)


@pytest.mark.parametrize(("make", "kind"), [(mask_workload, "segm"), (pose_workload, "keypoints")])
def test_masks_and_poses_are_diagnosed_alike(make, kind):
    dataset, results = make(5)[:2]
    truth = detmap.read_coco(dataset, iou_type=kind)
    found = detmap.read_coco_results(results, ground_truth=truth, iou_type=kind)
    diagnosis = made(truth, found, iou_type=kind)
    result = detmap.evaluate(truth, found, iou_type=kind, iou_thresholds=0.5)
    same(diagnosis.ap, result["AP"])
    tide = diagnosis.tide()
    assert ((tide.error > 0) == (diagnosis.matches.outcome == MISS)).all()
    assert tide["AP"] + sum(row["progressive"] for row in tide.rows()) == pytest.approx(1, abs=1e-12)
    for name in PARTS:
        diagnosis.part(name)


# --------------------------------------------------------------------------------------------------------------- confusion


@settings(max_examples=examples(60), deadline=None)
@given(small(), PRESET, st.sampled_from([None, 0.0, 0.3, 0.5]), st.sampled_from([0.05, 0.5, 0.75]))
def test_the_matrix_agrees_with_ap(tables, protocol, score, iou):
    """Rows sum to the objects, columns to true and false positives, and the diagonal are the true ones."""
    diagnosis = made(*tables, protocol=protocol)
    confusion = diagnosis.confusion(score=score, iou=iou)
    result = detmap.evaluate(*tables, protocol, iou_thresholds=iou)
    counts = result.counts(iou, confusion.score if confusion.score == confusion.score else np.inf)
    matrix = confusion.matrix
    assert matrix.dtype == np.int64
    assert matrix[:-1].sum(axis=1).tolist() == (counts.true_positives + counts.false_negatives).tolist()
    assert matrix[:, :-1].sum(axis=0).tolist() == (counts.true_positives + counts.false_positives).tolist()
    assert np.diag(matrix)[:-1].tolist() == counts.true_positives.tolist()
    assert matrix[-1, -1] == 0
    hits, detected, objects = (int(part.sum()) for part in (np.diag(matrix)[:-1], matrix[:, :-1], matrix[:-1]))
    for value, share, whole in (
        ("precision", hits, detected),
        ("recall", hits, objects),
        ("F1", 2 * hits, detected + objects),
    ):
        assert confusion[value] == share / whole if whole else np.isnan(confusion[value])


@settings(max_examples=examples(60), deadline=None)
@given(small(), st.sampled_from(["ultralytics", "supervision"]), st.booleans())
def test_matrices_of_other_tools_equal_their_twins(tables, match, default):
    options = {} if default else {"score": 0.5, "iou": 0.7}
    confusion = made(*tables).confusion(match=match, **options)
    score, iou = (0.5, 0.7) if options else {"ultralytics": (0.25, 0.45), "supervision": (0.3, 0.5)}[match]
    assert (confusion.score, confusion.iou) == (score, iou)
    assert confusion.matrix.tolist() == naive_diagnostics.matrix(*tables, match, score, iou).tolist()


def test_most_confused_pairs_come_with_images():
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[1, 2, 3], category_ids=[1, 1, 2], boxes=[[0, 0, 9, 9]] * 3, category_names={1: "cat", 2: "dog"}
    )
    found = detmap.Detections.from_arrays(
        image_ids=[1, 2, 3], category_ids=[2, 2, 2], boxes=[[0, 0, 9, 9]] * 3, scores=[0.9, 0.8, 0.7]
    )
    confusion = made(truth, found).confusion()
    assert confusion.rows() == [
        {"object": "cat", "found as": "dog", "count": 2, "share": 1.0, "for example on": "1, 2"}
    ]
    assert confusion.matrix.tolist() == [[0, 2, 0], [0, 1, 0], [0, 0, 0]]
    assert confusion.categories == ("cat", "dog")
    assert confusion.to_dict()["matrix"] == confusion.matrix.tolist()
    assert confusion.rows("categories")[1]["of another"] == 2


# ------------------------------------------------------------------------------------------------------ calibration, LRP


@pytest.mark.real_data
@pytest.mark.parametrize("kind", ["bbox", "segm"])
def test_calibration_and_lrp_equal_the_authors_programs(kind):
    wanted = expected("calibration")
    diagnosis = made(*read(MINI, SYNTHETIC, "segm"), iou_type=kind)
    for tau, name in ((0.0, "tau0"), (0.1, "tau01")):
        found = diagnosis.calibration(tau=tau)
        same(found["LaECE"], wanted[f"LaECE_{name}_25_{kind}"])
        same(found["ECE"], wanted[f"D_ECE_10_tau05_{kind}"])
    same(diagnosis.calibration(tau=0.0)["LaACE"], wanted[f"LaACE_tau0_{kind}"])
    assert 0 < found["D-ECE"] < 1
    lrp = diagnosis.lrp(iou=0.0)
    for ours, theirs in (("LRP", "lrp"), ("LRP_Loc", "lrp_loc"), ("LRP_FP", "lrp_fp"), ("LRP_FN", "lrp_fn")):
        same(lrp[ours], wanted[f"LRP_tau0_{kind}"][theirs])


@pytest.mark.real_data
@pytest.mark.parametrize("kind", ["bbox", "segm"])
def test_olrp_equals_the_authors_program(kind):
    wanted = expected("segm_mini")[f"olrp_{kind}"]
    diagnosis = made(*read(MINI, SYNTHETIC, "segm"), iou_type=kind)
    lrp = diagnosis.lrp()
    columns = {"olrp": "oLRP", "loc": "oLRP_Loc", "fp": "oLRP_FP", "fn": "oLRP_FN", "threshold": "threshold"}
    for theirs, ours in columns.items():
        values = [np.nan if value in (None, -1) else value for value in wanted[theirs]]
        same([row[ours] for row in lrp.rows()], values)
    same([lrp[name] for name in ("oLRP", "oLRP_Loc", "oLRP_FP", "oLRP_FN")], wanted["stats"][12:16])
    areas = [diagnosis.lrp(area=area)["oLRP"] for area in ("small", "medium", "large")]
    same(areas, wanted["stats"][16:19])


def test_lrp_by_hand():
    """Overlaps of the detections in order of score: 0.75, none, a crowd, 0.625, none."""
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[1] * 6,
        category_ids=[1] * 5 + [2],
        boxes=[[x, 0, 8, 8] for x in (0, 20, 40, 60, 80, 0)],
        crowd=[False] * 4 + [True, False],
    )
    found = detmap.Detections.from_arrays(
        image_ids=[1] * 5,
        category_ids=[1] * 5,
        boxes=[[0, 0, 8, 6], [200, 0, 8, 8], [80, 0, 8, 8], [20, 0, 8, 5], [300, 0, 8, 8]],
        scores=[0.9, 0.8, 0.75, 0.7, 0.6],
    )
    lrp = made(truth, found).lrp()
    first, second = lrp.rows()
    # At 0.5 an error of place counts twice: (0.5 + 0.75 + 1 false positive + 2 objects not found) / 5.
    best = {"oLRP": 0.85, "oLRP_Loc": 0.3125, "oLRP_FP": 1 / 3, "oLRP_FN": 0.5, "threshold": 0.7}
    assert first == {"category": first["category"], "objects": 4, **best, "LRP": (0.5 + 0.75 + 2 + 2) / 6}
    same([second[name] for name in best], [1, np.nan, np.nan, 1, np.nan])
    same([lrp[name] for name in ("oLRP", "oLRP_Loc", "oLRP_FP", "oLRP_FN")], [0.925, 0.3125, 1 / 3, 0.75])
    same([lrp[name] for name in ("LRP", "LRP_Loc", "LRP_FP", "LRP_FN")], [(0.875 + 1) / 2, 0.3125, 0.5, 0.75])


def test_calibration_in_one_bin_compares_the_mean_score_with_the_share_of_hits(tables):
    diagnosis = made(*tables)
    matches = diagnosis.matches
    counts = (matches.outcome != detmap.IGNORED) & (diagnosis.positives > 0)[matches.category]
    gap = abs(matches.score[counts].mean() - (matches.outcome[counts] == detmap.HIT).mean())
    found = diagnosis.calibration(bins=1, la_bins=1, position_bins=1)
    same([found["ECE"], found["MCE"], found["ACE"]], [gap] * 3)


def test_scores_beyond_one_cannot_be_calibrated(tables):
    truth, found = tables
    loud = dataclasses.replace(found, scores=found.scores * 9)
    with pytest.raises(OptionError, match="only scores between 0 and 1 can be calibrated; these reach from"):
        made(truth, loud).calibration()


# -------------------------------------------------------------------------------------------------------- order of images


def test_images_remember_the_order_in_which_they_were_listed():
    def order_of(images):
        truth = detmap.GroundTruth.from_arrays(image_ids=[3], category_ids=[1], boxes=[[0, 0, 1, 1]], images=images)
        return None if truth.images.order is None else truth.images.order.tolist()

    assert order_of([1, 2, 3]) is None
    assert order_of([3, 1, 2]) == [1, 2, 0]
    assert order_of([3, 1, 3, 2]) == [1, 3, 0]
    assert order_of(None) is None
