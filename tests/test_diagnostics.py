"""Diagnoses: their laws, their naive twins, and the numbers of the programs that they repeat."""

from __future__ import annotations

import dataclasses
import json

import naive_diagnostics
import numpy as np
import pytest
import workloads
from hypothesis import given, settings
from hypothesis import strategies as st
from shape_workloads import mask_workload, pose_workload
from support import detections_of, examples, ground_truth_of, tables_of_arrays
from workloads import REAL_DATA

import detmap
from detmap import HIT, IGNORED, MISS
from detmap.diagnostics import PARTS
from detmap.errors import InputError, OptionError
from detmap.protocols import PRESETS

ERRORS = ("Cls", "Loc", "Both", "Dupe", "Bkg")
PRESET = st.sampled_from(["coco", "voc2007", "voc2012"])
VAL, MINI = "coco/instances_val2014_100.json", "coco/instances_val2017_COCO-MINI.json"
BOXES, MASKS = "coco/instances_val2014_fakebbox100_results.json", "coco/instances_val2014_fakesegm100_results.json"
SYNTHETIC = "segm_mini/synthetic_segm_results.json"


def read(truth, found, kind="bbox"):
    paths = [REAL_DATA / name for name in (truth, found)]
    for path in paths:
        if not path.exists():
            pytest.skip(f"{path} is not here")
    ground_truth = detmap.read(paths[0], "ground_truth", iou_type=kind)
    return ground_truth, detmap.read(paths[1], "detections", ground_truth=ground_truth, iou_type=kind)


def expected(folder):
    path = REAL_DATA / folder / "expected.json"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def tables():
    """A made-up detector's output: a few hundred detections of four classes."""
    return tables_of_arrays(workloads.detector_like(12, 60, 4, seed=3))


def made(truth, found, **options):
    return detmap.diagnose(truth, found, **options)


@st.composite
def small(draw):
    dataset, results, _ = draw(workloads.coco_workloads())
    return ground_truth_of(dataset), detections_of(results)


def same(a, b, tolerance=1e-12):
    assert a == pytest.approx(b, abs=tolerance, nan_ok=True)


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
        "operating_points",
        "operating_points: drawing images anew",
        "slices",
        *(f"slices: {at} of 3" for at in (1, 2, 3)),
    ]


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


def test_scores_beyond_one_cannot_be_calibrated(tables):
    truth, found = tables
    loud = dataclasses.replace(found, scores=found.scores * 9)
    with pytest.raises(OptionError, match="only scores between 0 and 1 can be calibrated; these reach from"):
        made(truth, loud).calibration()


# ------------------------------------------------------------------------------------------- operating points, cuts, slices


@settings(max_examples=examples(40), deadline=None)
@given(small(), st.sampled_from([0.3, 0.6, 0.9]))
def test_operating_points_are_those_of_a_plain_search(tables, wanted):
    diagnosis = made(*tables)
    points = diagnosis.operating_points(precision=wanted, recall=wanted)
    matches, positives = diagnosis.matches, int(diagnosis.positives.sum())
    table = []
    for score in sorted(set(matches.score[matches.outcome != IGNORED].tolist()), reverse=True):
        kept = matches.score >= score
        hits, misses = (int((kept & (matches.outcome == what)).sum()) for what in (HIT, MISS))
        table.append((score, hits / (hits + misses), hits / positives if positives else np.nan,
                      2 * hits / (hits + misses + positives) if positives else np.nan))  # fmt: skip
    best = max(table, key=lambda row: row[3]) if table and positives else (np.nan,) * 4
    precise = [row for row in table if row[1] >= wanted]
    complete = [row for row in table if row[2] >= wanted]
    chosen = [best, precise[-1] if precise else (np.nan,) * 4, complete[0] if complete else (np.nan,) * 4]
    for row, expect in zip(points.rows(), chosen, strict=True):
        same([row[name] for name in ("score", "precision", "recall", "f1")], list(expect))


def test_operating_points_have_intervals(tables):
    truth, found = tables_of_arrays(workloads.detector_like(60, 30, 3, seed=1))
    points = made(truth, found, replicates=200).operating_points(precision=(0.5, 1.0))
    for row in points.rows():
        for name in ("score", "precision", "recall"):
            if not np.isnan(row[f"{name} low"]):
                assert row[f"{name} low"] <= row[name] <= row[f"{name} high"]
    assert not np.isnan(points.rows()[0]["score low"])


def test_cuts_are_evaluations_of_what_is_kept(tables):
    truth, found = tables
    protocol = dataclasses.replace(PRESETS["coco"], iou_thresholds=(0.5,), max_dets=(1, 5))
    cuts = made(truth, found, protocol=protocol, score=0.4).cuts(scores=[0.1], caps=[1, 3])
    ap = {row["cut"]: row["AP"] for row in cuts.rows()}
    for score in (0.1, 0.4):
        kept = found.take(found.scores >= score)
        same(ap[f"scores of {score} or more"], detmap.evaluate(truth, kept, protocol)["AP"])
    for cap in (1, 3):
        same(ap[f"{cap} of a class in an image"], detmap.evaluate(truth, found, protocol, max_dets=cap)["AP"])
    rows = [np.flatnonzero(found.images.codes == at) for at in range(found.images.ids.size)]
    three = np.concatenate([one[np.argsort(-found.scores[one], kind="stable")[:3]] for one in rows])
    same(ap["3 of an image"], detmap.evaluate(truth, found.take(np.sort(three)), protocol)["AP"])
    same(ap["no cap"], detmap.evaluate(truth, found, protocol, max_dets=[None])["AP"])
    same(cuts["dAP_duplicates"], made(truth, found, protocol=protocol).tide()["dAP_Dupe"])


@settings(max_examples=examples(40), deadline=None)
@given(small())
def test_slices_by_area_are_area_ranges(tables):
    """With COCO's edges, which belong to both sides, a slice has the AP and counts of the area range."""
    areas = {name: (low, np.nextafter(high, np.inf)) for name, low, high in PRESETS["coco"].area_ranges}
    rows = made(*tables).slices(by="area", ranges={"area": areas}).rows()
    result = detmap.evaluate(*tables, iou_thresholds=0.5)
    for row, (name, _, _) in zip(rows, PRESETS["coco"].area_ranges, strict=True):
        same(row["AP"], result["AP" if name == "all" else f"AP_{name}"])
        matches = detmap.match_pairs(*tables, area=name)
        assert row["missed"] == matches.missed.size
        assert [row[key] for key in ("hits", "false positives", "ignored")] == [
            int((matches.outcome == what).sum()) for what in (HIT, MISS, IGNORED)
        ]
        assert sum(row[key] for key in ERRORS) == row["false positives"]


def sized(truth, size):
    images = dataclasses.replace(truth.images, sizes=np.full((truth.images.ids.size, 2), size))
    return dataclasses.replace(truth, images=images)


def test_slices_by_everything(tables):
    truth, found = sized(tables[0], (480, 640)), tables[1]
    diagnosis = made(truth, found)
    slices = diagnosis.slices()
    by = {}
    for row in slices.rows():
        by.setdefault(row["by"], []).append(row)
    assert list(by) == ["area", "relative_area", "aspect", "crowding", "position", "truncation"]
    for rows in by.values():
        assert sum(row["objects"] for row in rows) == int(diagnosis.positives.sum())
    assert "not shown: relative_area, position, truncation" in " ".join(made(*tables).slices().notes)


def test_an_object_outside_of_a_slice_is_ignored_and_not_missing():
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[1, 1], category_ids=[1, 1], boxes=[[0, 0, 10, 10], [100, 0, 200, 200]]
    )
    found = detmap.Detections.from_arrays(
        image_ids=[1, 1, 1], category_ids=[1] * 3, boxes=[[100, 0, 200, 199], [0, 0, 10, 10], [300, 300, 9, 9]],
        scores=[0.9, 0.8, 0.7],
    )  # fmt: skip
    small = made(truth, found).slices(by="area").rows()[0]
    assert (small["AP"], small["hits"], small["false positives"], small["missed"]) == (pytest.approx(1), 1, 1, 0)
    assert small["ignored"] == 1


def test_slices_by_attributes(tables, tmp_path):
    truth, found = tables
    ids = truth.images.ids.tolist()
    sky = ["wet" if one % 2 else "dry" for one in ids]
    seen = ["full" if at % 3 else "" for at in range(len(truth))]
    given = made(truth, found).slices(attributes={"sky": sky, "seen": seen}, by=["sky", "seen"])
    weather = tmp_path / "weather.csv"
    weather.write_text("image_id,sky\n" + "".join(f"{a},{b}\n" for a, b in zip(ids, sky, strict=True)))
    objects = tmp_path / "objects.csv"
    objects.write_text("seen,object\n" + "".join(f"{value},{at}\n" for at, value in enumerate(seen)))
    again = [made(truth, found).slices(attributes=path, by=by) for path, by in ((weather, "sky"), (objects, "seen"))]
    assert [row for one in again for row in one.rows()] == given.rows()
    assert [row["slice"] for row in given.rows()] == ["dry", "wet", "full"]
    wet = [one for one, what in zip(ids, sky, strict=True) if what == "wet"]
    same(given.rows()[1]["AP"], detmap.evaluate(truth, found, iou_thresholds=0.5, image_ids=wet)["AP"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sky\nwet\n", "needs a first line with image_id, image or object"),
        ("", "needs a first line"),
        ("image_id,sky\n1\n", "line 2: has 1 values where 2 are expected"),
        ("image_id,sky\n999,wet\n", "line 2, field 'image_id': is not an image of the ground truth"),
        ("object,sky\n-1,wet\n", "is not an object of the ground truth"),
        ("image_id,sky\n1,\xff\n", "is not a CSV file"),
    ],
)
def test_files_of_attributes_that_cannot_be_read(tables, tmp_path, text, message):
    path = tmp_path / "attributes.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=message):
        made(*tables).slices(attributes=path)


def test_slices_have_intervals_and_corrected_p_values():
    truth, found = tables_of_arrays(workloads.detector_like(40, 30, 2, seed=2))
    rows = made(truth, found, replicates=200).slices(by=["area", "aspect"]).rows()
    for row in rows:
        assert row["low"] <= row["AP"] <= row["high"]
        assert row["p"] <= row["p (Holm)"] <= 1
    p = np.array([row["p"] for row in rows])
    assert rows[int(p.argmin())]["p (Holm)"] == pytest.approx(min(1, p.min() * len(rows)))


# -------------------------------------------------------------------------------------------------------- images, suspects


def perfected(truth, found, diagnosis, image):
    """The detections if one image alone were perfect: without its misses, and with every missed object found first."""
    matches = diagnosis.matches
    wrong = matches.detection[(matches.image == image) & (matches.outcome == MISS)]
    kept = np.ones(len(found), bool)
    kept[wrong] = False
    lost = matches.missed[truth.images.codes[matches.missed] == image]
    boxes = np.concatenate((found.boxes[kept], truth.boxes[lost]))
    return detmap.Detections.from_arrays(
        image_ids=np.append(found.images.ids[found.images.codes[kept]], truth.images.ids[truth.images.codes[lost]]),
        category_ids=np.append(
            found.categories.ids[found.categories.codes[kept]], truth.categories.ids[truth.categories.codes[lost]]
        ),
        boxes=boxes,
        scores=np.append(found.scores[kept], np.full(lost.size, 2.0)),
    )


@pytest.mark.parametrize("protocol", ["coco", "voc2012"])
def test_what_an_image_costs_is_what_perfecting_it_gains(tables, protocol):
    truth, found = tables
    diagnosis = made(truth, found, protocol=protocol)
    rows = diagnosis.images().rows()
    assert len(rows) == truth.images.ids.size
    assert [row["dAP"] for row in rows] == sorted((row["dAP"] for row in rows), reverse=True)
    for row in rows:
        image = truth.images.ids.tolist().index(row["image_id"])
        better = detmap.evaluate(truth, perfected(truth, found, diagnosis, image), protocol, iou_thresholds=0.5)
        same(row["dAP"], next(iter(better.values())) - diagnosis.ap)


def test_the_first_order_estimate_ranks_images_as_their_costs(tables):
    from detmap.diagnostics.images import _estimate, _exact

    diagnosis = made(*tables_of_arrays(workloads.detector_like(80, 40, 3, seed=5)))
    lost = diagnosis.places[diagnosis.matches.missed]
    estimate = _estimate(diagnosis, lost)
    exact = _exact(diagnosis, np.arange(80), lost)
    assert np.corrcoef(estimate, exact)[0, 1] > 0.95


def test_suspects_by_hand():
    """A confident detection of nothing, a flipped class, an object that nothing touches, and an object labelled twice."""
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[1, 1, 1, 2, 2],
        category_ids=[1, 1, 1, 1, 2],
        boxes=[[0, 0, 10, 10], [100, 0, 10, 10], [200, 0, 10, 10], [0, 0, 50, 50], [0, 0, 50, 49]],
        category_names={1: "cat", 2: "dog"},
    )
    found = detmap.Detections.from_arrays(
        image_ids=[1, 1, 1, 2, 2],
        category_ids=[1, 2, 1, 1, 2],
        boxes=[[0, 0, 10, 10], [100, 0, 10, 10], [300, 0, 10, 10], [0, 0, 50, 50], [0, 0, 50, 49]],
        scores=[0.9, 0.8, 0.7, 0.95, 0.94],
    )
    suspects = made(truth, found, score=0.5).suspects()
    rows = {row["kind"]: row for row in suspects.rows()}
    assert dict(suspects) == {"no label": 1, "other class": 1, "never found": 1, "labelled twice": 1}
    assert rows["no label"]["reason"] == "cat found with score 0.7 where no label is"
    assert (rows["no label"]["detection"], rows["no label"]["object"]) == (2, -1)
    assert rows["other class"]["reason"] == "labelled cat, found as dog with score 0.8"
    assert (rows["other class"]["object"], rows["other class"]["detection"]) == (1, 1)
    assert rows["never found"]["object"] == 2
    assert (rows["labelled twice"]["object"], rows["labelled twice"]["other object"]) == (3, 4)
    ranked = [row["suspicion"] for row in suspects.rows()]
    assert ranked == sorted(ranked, reverse=True)


# -------------------------------------------------------------------------------------------------------- order of images


def test_images_remember_the_order_in_which_they_were_listed():
    def order_of(images):
        truth = detmap.GroundTruth.from_arrays(image_ids=[3], category_ids=[1], boxes=[[0, 0, 1, 1]], images=images)
        return None if truth.images.order is None else truth.images.order.tolist()

    assert order_of([1, 2, 3]) is None
    assert order_of([3, 1, 2]) == [1, 2, 0]
    assert order_of([3, 1, 3, 2]) == [1, 3, 0]
    assert order_of(None) is None
