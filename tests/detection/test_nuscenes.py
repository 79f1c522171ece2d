"""The protocol `nuscenes`: against its twin, by laws, and what its decisions mean."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import moving_scenes
import naive_moving
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from legs import examples
from support import assert_same_result, same_bits

import detmap
from detmap.hits import Hits
from detmap.shapes import fused
from detmap.shapes.moving import MovingBoxes

KIND = "centre-distance"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("nuscenes")


def written(folder, samples, results):
    """Both documents as tables, read from files."""
    paths = [folder / "truth.json", folder / "found.json"]
    for path, document in zip(paths, (samples, results), strict=True):
        path.write_text(json.dumps(document))
    truth = detmap.read(paths[0], "ground_truth", iou_type=KIND)
    return truth, detmap.read(paths[1], ground_truth=truth, iou_type=KIND)


def assert_equal(result, expected):
    assert [*result] == [name for name in result if name in expected]
    assert len(result) == len(expected)
    unlike = {name: (result[name], value) for name, value in expected.items() if not same_bits(result[name], value)}
    assert unlike == {}


@pytest.mark.parametrize("seed", range(12))
def test_every_metric_equals_the_twin_to_the_last_bit(seed, folder):
    """Ties of scores and of distances, shuffled samples, racks, unseen objects, unknown velocities, missing attributes."""
    names = moving_scenes.NAMES[seed % 3 :: 3] if seed % 2 else moving_scenes.NAMES
    samples, results = moving_scenes.scene(seed, samples=14, names=names)
    made = detmap.evaluate(*written(folder, samples, results), "nuscenes")
    expected = naive_moving.evaluate(samples, results)
    assert_equal(made, expected)
    assert 0 < expected["mAP"] < 1
    assert 0 < expected["NDS"] < 1


@settings(max_examples=examples(100), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), samples=st.integers(1, 6), names=st.integers(1, 10))
def test_any_scene_equals_the_twin(seed, samples, names, folder):
    documents = moving_scenes.scene(seed, samples, names=moving_scenes.NAMES[-names:])
    if any(documents[1]["results"].values()):
        assert_equal(detmap.evaluate(*written(folder, *documents), "nuscenes"), naive_moving.evaluate(*documents))


@settings(max_examples=examples(500), deadline=None)
@given(
    st.lists(st.tuples(*[st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-6)] * 3), min_size=1, max_size=20),
    st.integers(-3, 3),
)
@example([(2 - 2**-26, 2 - 2**-26, 2**-110), (2 - 2**-26, 2**-26 - 2, -(2**-110))], 0)  # c breaks a tie of a * b
def test_fused_sums_are_rounded_once(rows, near):
    a, b, c = (np.array(column) for column in zip(*rows, strict=True))
    for other in (c, -a * b * (1 + near * 2.0**-52)):  # the second nearly cancels
        expected = [float(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in zip(a, b, other, strict=True)]
        assert fused.multiply_add(a, b, other).tolist() == expected


def changed(document, change):
    """A document of samples or results in which `change` was made to every box."""
    if "samples" in document:
        return {"samples": [{**one, "boxes": [change(box) for box in one["boxes"]]} for one in document["samples"]]}
    return {"meta": {}, "results": {key: [change(box) for box in own] for key, own in document["results"].items()}}


def quarter_turn(box):
    """The box turned about z by 90 degrees, exactly but for its rotation."""
    x, y, z = box["translation"]
    u, v = (None, None) if None in box["velocity"] else (-box["velocity"][1], box["velocity"][0])
    w, _, _, k = box["rotation"]
    half = math.sqrt(0.5)
    return {
        **box,
        "translation": [-y, x, z],
        "velocity": [u, v],
        "rotation": [half * (w - k), 0.0, 0.0, half * (w + k)],
    }


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_nothing_changes_with_the_direction_of_the_axes(seed, folder):
    samples, results = moving_scenes.scene(seed, racks=False)
    one = detmap.evaluate(*written(folder, samples, results), "nuscenes")
    turned = changed(samples, quarter_turn)
    turned = {"samples": [{**own, "ego": [-own["ego"][1], own["ego"][0], 0.0]} for own in turned["samples"]]}
    other = detmap.evaluate(*written(folder, turned, changed(results, quarter_turn)), "nuscenes")
    for name, value in one.items():
        assert other[name] == pytest.approx(value, abs=1e-9, nan_ok=True), name


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), x=st.integers(-512, 512), y=st.integers(-512, 512))
def test_nothing_changes_with_the_origin(seed, x, y, folder):
    """Coordinates are multiples of 1/64, so that sums and differences are exact."""

    def moved(box, by=(x, y, 0)):
        place = [round(value * 64) / 64 + step for value, step in zip(box["translation"], by, strict=True)]
        return {**box, "translation": place}

    def at(document, by):
        made = changed(document, lambda box: moved(box, by))
        for one in made.get("samples", ()):
            one["ego"] = [round(value * 64) / 64 + step for value, step in zip(one["ego"], by, strict=True)]
            one["racks"] = [moved(rack, by) for rack in one["racks"]]
        return made

    documents = moving_scenes.scene(seed)
    here, there = (
        detmap.evaluate(*written(folder, *(at(one, by) for one in documents)), "nuscenes")
        for by in ((0, 0, 0), (x, y, 0))
    )
    assert same_bits(list(here.values()), list(there.values()))


@pytest.mark.slow
@settings(max_examples=examples(80), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), parts=st.integers(2, 4))
def test_merged_tallies_equal_the_whole(seed, parts, folder):
    truth, found = written(folder, *moving_scenes.scene(seed))
    whole = detmap.match(truth, found, "nuscenes")
    side = np.random.default_rng(seed).integers(0, parts, truth.images.ids.size)
    ids = truth.images.ids
    tallies = [
        detmap.match(truth, found, "nuscenes", image_ids=ids[side == at].tolist())
        for at in range(parts)
        if (side == at).any()
    ]
    merged = tallies[-1].merge(*tallies[:-1])
    assert_same_result(detmap.DetectionResult(merged), detmap.DetectionResult(whole))
    again = detmap.Tally.from_bytes(merged.to_bytes())
    assert same_bits(again.errors, whole.errors)


def test_the_example_of_the_clipped_rule():
    """Two objects, a hit, a miss, a hit: between recalls 0.5 and 1 precision rises in a line from 1/2 to 2/3."""
    (ap,) = Hits.from_ranks([[1, 3]], [2]).average_precision("101-clipped")
    read = np.interp(np.linspace(0, 1, 101), [0.5, 0.5, 1], [1, 0.5, 2 / 3])
    assert ap == float(np.mean(read[11:] - 0.1)) / 0.9
    assert Hits.from_ranks([list(range(1, 6))], [5]).average_precision("101-clipped")[0] == 1.0000000000000004
    # A miss behind the last hit counts where the recall that is reached is one of those that are read.
    ranks, tail = [[1]], [[4]]
    short, long = (Hits.from_ranks(ranks, [1], items).average_precision("101-clipped")[0] for items in ([1], tail[0]))
    assert long < short
    assert math.isnan(Hits.from_ranks([[]], [0]).average_precision("101-clipped")[0])
    assert Hits.from_ranks([[]], [3], [5]).average_precision("101-clipped")[0] == 0


def one_box(name="car", at=(0.0, 0.0), **more):
    base = {
        "translation": [*at, 0.0],
        "size": [2.0, 4.0, 1.5],
        "rotation": [1.0, 0.0, 0.0, 0.0],
        "velocity": [0.0, 0.0],
    }
    return {**base, "detection_name": name, "attribute_name": "", **more}


def of(folder, objects, found, **decisions):
    samples = {"samples": [{"token": "a", "ego": [0.0, 0.0, 0.0], "boxes": objects, "racks": []}]}
    results = {"meta": {}, "results": {"a": [{"detection_score": 0.5, **one} for one in found]}}
    return detmap.evaluate(*written(folder, samples, results), "nuscenes", **decisions)


def test_a_distance_at_the_threshold_does_not_match(folder):
    result = of(folder, [one_box()], [one_box(at=(2.0, 0.0))])
    assert [result[f"AP_car_{t}"] for t in ("0.5", "1", "2")] == [0, 0, 0]
    assert result["AP_car_4"] > 0.99
    assert result["ATE_car"] == 1  # nothing matches at 2 m
    assert of(folder, [one_box()], [one_box(at=(2.0, 0.0))], strict=False)["AP_car_2"] > 0.99


def test_of_two_objects_at_one_distance_the_first_is_found(folder):
    """The second detection then finds the other one, or nothing."""
    objects = [one_box(at=(-1.0, 0.0), size=[1.0, 1.0, 1.0]), one_box(at=(1.0, 0.0), size=[2.0, 2.0, 2.0])]
    found = [one_box(size=[1.0, 1.0, 1.0], detection_score=0.9)]
    assert of(folder, objects, found)["ASE_car"] == 0
    assert of(folder, objects[::-1], found)["ASE_car"] == 1 - 1 / 8


def test_of_equal_scores_the_last_in_the_file_comes_first(folder):
    objects = [one_box()]
    near, far = one_box(at=(0.25, 0.0)), one_box(at=(1.0, 0.0))
    assert of(folder, objects, [far, near])["ATE_car"] == 0.25
    assert of(folder, objects, [near, far])["ATE_car"] == 1.0


def test_classes_without_objects_count_0_and_their_errors_1(folder):
    result = of(folder, [one_box()], [one_box()])
    assert result["mAP"] == np.mean([result["AP_car"], *[0.0] * 9])
    assert result["mATE"] == 0.9
    assert dict(result.notices)["zero_categories"] == 9
    other = of(folder, [one_box()], [one_box()], empty_classes="undefined")
    assert other["mAP"] == result["AP_car"]


def test_what_lies_beyond_the_range_of_its_class_is_left_out(folder):
    objects = [one_box("barrier", (29.0, 0.0)), one_box("barrier", (31.0, 0.0)), one_box("car", (31.0, 0.0))]
    tally = of(folder, objects, objects).tally
    assert tally.positives[:, 0].tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert len(tally) == 2
    assert of(folder, objects, objects, class_ranges=()).tally.positives.sum() == 3


def test_a_barrier_has_no_front(folder):
    back = [0.0, 0.0, 0.0, 1.0]
    assert of(folder, [one_box("barrier")], [one_box("barrier", rotation=back)])["AOE_barrier"] < 1e-9
    assert of(folder, [one_box("car")], [one_box("car", rotation=back)])["AOE_car"] == pytest.approx(math.pi)


def test_intervals_of_errors_need_not_lie_between_0_and_1(folder):
    truth, found = written(folder, *moving_scenes.scene(3, samples=40, names=moving_scenes.NAMES[:2], decimals=6))
    result = detmap.evaluate(truth, found, "nuscenes", bootstrap=200)
    for name in ("mAVE", "AVE_car", "NDS"):
        low, high = result.intervals[name]
        assert low < result[name] < high
    assert result.intervals["AVE_car"][1] > 1
    for row in result.summary():  # errors of classes have no row: each of the others has its own interval
        name = row["metric"] if row["metric"] in result else f"AP_{row['metric']}"
        assert np.array_equal((row["low"], row["high"]), result.intervals[name], equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize(("samples", "metrics"), [(18, ("NDS", "AVE_car")), (8, ("mATE", "AP_car_0.5"))])
def test_comparing_models_by_their_errors(folder, samples, metrics, monkeypatch):
    """With few samples all permutations of those that have a class are looked at."""
    monkeypatch.setattr("detmap.statistics.draws.FEWEST_REPLICATES", 5)
    truth, found = written(folder, *moving_scenes.scene(3, samples=samples, decimals=6))
    other = found.take(np.arange(len(found)) % 5 > 0)
    results = {"a": detmap.evaluate(truth, found, "nuscenes"), "b": detmap.evaluate(truth, other, "nuscenes")}
    for metric in metrics:
        (difference,) = detmap.compare(results, 5, metric=metric, permutations=19).differences
        apart = results[difference.second][metric] - results[difference.first][metric]
        assert difference.difference == pytest.approx(apart, abs=1e-12)


def test_arrays_of_users():
    """Rows of translation, size, rotation and velocity; nothing says where the car is, so that no box is too far."""
    rows = np.array([[1.0, 2, 0, 2, 4, 1, 1, 0, 0, 0, 0, 0], [900.0, 2, 0, 2, 4, 1, 1, 0, 0, 0, 0, 0]])
    evaluator = detmap.Evaluator("nuscenes", categories={0: "car"})
    target = {"moving": rows, "labels": [0, 0]}
    evaluator.update({"moving": rows, "scores": [0.5, 0.75], "labels": [0, 0]}, target, image_ids="a")
    result = evaluator.compute()
    assert result["AP_car"] == 1.0000000000000004
    assert result["mATE"] == 0
    assert dict(result.notices)["missing_ego"] == 1
    for bad, says in (
        (rows[:, :11], r"shape \(2, 11\) where n x 12"),
        (np.where(np.arange(12) == 3, 0.0, rows), "width, length and height must be above 0"),
        (np.where(np.arange(12) == 6, 0.0, rows), "a quaternion must have a length"),
        (np.where(np.arange(12) == 0, np.inf, rows), "must be finite numbers"),
    ):
        with pytest.raises(detmap.InputError, match=says):
            detmap.Evaluator("nuscenes").update(
                {"moving": bad, "scores": [1, 1], "labels": [0, 0]}, target, image_ids=1
            )


def test_bounds_never_rule_out_a_pair(folder):
    """What `reach` proposes holds every pair that is near enough."""
    from detmap.shapes import find
    from detmap.shapes.boxes import Boxes

    rng = np.random.default_rng(1)
    for scale in (1.0, 1e3, 1e7):
        places = np.concatenate([rng.normal(0, scale, (50, 2)), np.zeros((50, 1))], axis=1)
        angles = rng.uniform(0, 7, 50)
        others = places + 4.0 * np.stack([np.cos(angles), np.sin(angles), angles], axis=1)
        columns = [MovingBoxes.from_arrays(one, np.ones((50, 3)), np.eye(4)[[0] * 50]) for one in (places, others)]
        one, two = find(KIND).reach(*columns, -4.0)
        assert isinstance(one, Boxes)
        assert (one.table[:, :2] < two.table[:, 2:]).all()
        assert (two.table[:, :2] < one.table[:, 2:]).all()


def test_diagnoses_name_distances_as_such():
    diagnosis = detmap.diagnose("fixtures/nuscenes/samples.json", "fixtures/nuscenes/results.json", "nuscenes", iou=2.0)
    assert "at centre-distance 2 m under" in repr(diagnosis)
    for part in ("cuts", "operating_points"):
        notes = " ".join(getattr(diagnosis, part)().notes)
        assert "at centre-distance 2" in notes
        assert "IoU" not in notes
