"""Diagnoses by operating points, cuts and slices, and what single images cost."""

from __future__ import annotations

import dataclasses

import large_workloads
import numpy as np
import pytest
from diagnosed import ERRORS, made, same, sized, small
from diagnosed import tables as tables
from hypothesis import given, settings
from hypothesis import strategies as st
from support import examples, tables_of_arrays

import detmap
from detmap import HIT, IGNORED, MISS
from detmap.detection.protocols import PRESETS
from detmap.errors import InputError
from detmap.statistics import bootstrap, intervals

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
    truth, found = tables_of_arrays(large_workloads.detector_like(60, 30, 3, seed=1))
    points, quarters = (
        made(truth, dataclasses.replace(found, scores=scores), replicates=200).operating_points(precision=(0.5, 1.0))
        for scores in (found.scores, found.scores / 4)
    )
    for row, other in zip(points.rows(), quarters.rows(), strict=True):
        names = [name for name, value in row.items() if isinstance(value, float)]
        expected = [other[name] * (4 if name.startswith("score") else 1) for name in names]
        same([row[name] for name in names], expected, tolerance=0)
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
    assert cuts.rows()[-1]["kept"] == found.scores.size
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
    named = dataclasses.replace(
        truth, images=dataclasses.replace(truth.images, names=tuple(f"{one}.jpg" for one in ids))
    )
    weather.write_text("image,sky\n" + "".join(f"{a}.jpg,{b}\n" for a, b in zip(ids, sky, strict=True)))
    assert made(named, found).slices(attributes=weather, by="sky").rows() == again[0].rows()
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
    truth, found = tables_of_arrays(large_workloads.detector_like(40, 30, 2, seed=2))
    rows = made(truth, found, replicates=200).slices(by=["area", "aspect"]).rows()
    for row in rows:
        assert row["low"] <= row["AP"] <= row["high"]
        assert row["p"] <= row["p (Holm)"] <= 1
    p = np.array([row["p"] for row in rows])
    assert rows[int(p.argmin())]["p (Holm)"] == pytest.approx(min(1, p.min() * len(rows)))


def test_the_p_value_of_a_difference_is_of_ap_on_the_fewer_images():
    stats = pytest.importorskip("scipy.stats")
    from detmap.diagnostics._resampling import bootstrap_of, p_value

    truth, found = tables_of_arrays(large_workloads.detector_like(40, 30, 2, seed=2))
    found = [found, found.take(np.arange(0, len(found), 2))]
    one, other = (
        bootstrap_of(it, it.matches.outcome, it.counted) for it in (made(truth, of, replicates=200) for of in found)
    )
    error = intervals.standard_error(
        one.replicates[:, 0] - other.replicates[:, 0], one.jackknife[:, 0] - other.jackknife[:, 0], 12
    )
    expected = 2 * stats.t.sf(abs(one.estimate[0] - other.estimate[0]) / error, 11)
    support = np.full(one.support.size, 1)
    for few, more in ((one, other), (other, one)):
        few, more = (dataclasses.replace(it, support=support.copy()) for it in (few, more))
        few.support[0], more.support[0] = 12, 13
        for table in (few.replicates, few.jackknife, few.estimate[None]):
            table[:, 1:] = np.nan
        assert p_value(few, more) == pytest.approx(expected)
        few.support[0] = 9
        assert np.isnan(p_value(few, more))


@pytest.mark.parametrize(("protocol", "iou"), [("coco", 0.5), ("coco", 0.6), ("voc2012", 0.5)])
def test_the_interval_of_a_slice_that_is_the_whole_is_that_of_an_evaluation(protocol, iou):
    truth, found = tables_of_arrays(large_workloads.detector_like(40, 30, 2, seed=2))
    sky = ["grey"] * truth.images.ids.size
    (row,) = (
        made(truth, found, protocol=protocol, iou=iou, replicates=200).slices(attributes={"sky": sky}, by="sky").rows()
    )
    whole = bootstrap(detmap.evaluate(truth, found, protocol, iou_thresholds=iou), 200)
    assert (row["low"], row["high"]) == tuple(whole.interval()[0])


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

    diagnosis = made(*tables_of_arrays(large_workloads.detector_like(80, 40, 3, seed=5)))
    lost = diagnosis.places[diagnosis.matches.missed]
    estimate = _estimate(diagnosis, lost)
    exact = _exact(diagnosis, np.arange(80), lost)
    assert np.corrcoef(estimate, exact)[0, 1] > 0.95
    same(_exact(diagnosis, np.arange(80)[::-1], lost)[::-1], exact)


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
