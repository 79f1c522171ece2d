"""KITTI's protocols against a naive twin, the benchmark's own numbers, and their laws."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import kitti_scenes
import naive_kitti as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import same_bits

import detmap
from detmap import batch
from detmap.data.notices import describe
from detmap.shapes import find

CLASSES, LEVELS = ("car", "pedestrian", "cyclist"), ("easy", "moderate", "hard")
DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "kitti"
real_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"needs {DATA}")


def read(folder):
    names = sorted(path.name for path in (folder / "one").iterdir())
    return [(naive.read(folder / "label_2" / name), naive.read(folder / "one" / name, scored=True)) for name in names]


def same(one, other):
    return one == other or (math.isnan(one) and math.isnan(other))


@pytest.mark.parametrize("seed", range(12))
def test_every_number_is_that_of_the_twin(seed, tmp_path):
    """Cars, vans and people; small detections of any class, regions, tied scores, sizes on the limits."""
    folder = kitti_scenes.write(tmp_path / "k", seed, images=6 + 4 * (seed % 5), tied=seed % 2 == 0)
    images = read(folder)
    results = {
        rule: detmap.evaluate(folder / "label_2", folder / "one", name)
        for rule, name in ((40, "kitti"), (11, "kitti-r11"))
    }
    for name in CLASSES:
        for level in LEVELS:
            expected = naive.evaluate(images, name, level)
            known = [one for _, one in results[40].categories]
            if expected is None or not any(one.name == name for _, found in images for one in found):
                assert name not in known or math.isnan(results[40][f"{name}_{level}"])
                continue
            for rule, result in results.items():
                assert same(result[f"{name}_{level}"], naive.average(expected[0], rule)), (name, level, rule)
                assert same(result[f"{name}_orientation_{level}"], naive.average(expected[1], rule)), (
                    name,
                    level,
                    rule,
                )
            place = result.protocol.range_names.index(level)
            t = result.protocol.iou_thresholds.index(naive.LEAST[name])
            assert same_bits(result.precision[t, :, known.index(name), place, 0], expected[0])


@real_data
@pytest.mark.parametrize(("name", "key"), [("kitti", "image"), ("kitti-bev", "ground"), ("kitti-3d", "3d")])
@pytest.mark.real_data
def test_the_numbers_of_the_benchmarks_program(name, key):
    expected = json.loads((DATA / "expected.json").read_text())["results"]
    for suffix, points in (("", "40"), ("-r11", "11")):
        result = detmap.evaluate(DATA / "label_2", DATA / "results", name + suffix)
        assert result.protocol.iou_type == {"image": "bbox", "ground": "bev", "3d": "box3d"}[key]
        categories = [one for _, one in result.categories]
        for one in CLASSES:
            t, k = result.protocol.iou_thresholds.index(naive.LEAST[one]), categories.index(one)
            for level in LEVELS:
                own, a = expected[f"{one}/{level}/{key}"], result.protocol.range_names.index(level)
                assert result[f"{one}_{level}"] == own[f"AP{points}_float64"]
                assert same_bits(result.precision[t, :, k, a, 0], own["precision"])
                scores = result.scores[t, :, k, a, 0]
                assert scores[: len(own["thresholds"])].tolist() == own["thresholds"]
                assert not scores[len(own["thresholds"]) :].any()
                assert result.tally.positives[k, a] == own["n_gt"]
                if points == "40":
                    turned = next(own[name] for name in own if name.startswith("a") and name.endswith("40_float64"))
                    assert result[f"{one}_orientation_{level}"] == turned


@real_data
@pytest.mark.real_data
def test_overlaps_are_those_of_the_benchmarks_functions():
    """Up to what Boost 1.74 rounds: 1e-6."""
    from detmap.shapes.boxes3d import Boxes3D
    from detmap.shapes.kinds import Pairs

    for row, values in json.loads((DATA / "expected.json").read_text())["overlaps"]["rows"]:
        if values == "crash":
            with pytest.raises(detmap.InputError, match="width and length must not be negative, unless both are"):
                Boxes3D.of([row[:7]])
            continue
        one, two = Boxes3D.of([row[:7]]), Boxes3D.of([row[7:]])
        for kind, crowd, expected in (("bev", False, values[0]), ("box3d", False, values[1]), ("bev", True, values[2])):
            out = np.empty(1)
            find(kind).refine(
                one, two, Pairs(np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([crowd]), 0.0), out
            )
            assert out[0] == pytest.approx(0.0 if "nan" in expected else float(expected), abs=1e-6), (row, kind)


def overlaps_of(kind, one, two):
    from detmap.shapes.boxes3d import Boxes3D
    from detmap.shapes.kinds import Pairs

    rows = np.arange(len(one))
    out = np.empty(len(one))
    find(kind).refine(Boxes3D.of(one), Boxes3D.of(two), Pairs(rows, rows, np.zeros(len(one), np.bool_), 0.0), out)
    return out


LENGTHS = st.floats(0.25, 12)
PLACES = st.floats(-80, 80)
BOXES = st.tuples(LENGTHS, LENGTHS, LENGTHS, PLACES, PLACES, PLACES, st.floats(-4, 4))
NEAR = st.tuples(*[st.floats(0.8, 1.2)] * 3, *[st.floats(-1, 1)] * 3, st.floats(-4, 4))


@given(BOXES, NEAR)
def test_laws_of_overlaps(box, near):
    """A box is itself; exchange, half a turn, and a translation by powers of two change nothing or hardly anything."""
    a = np.array(box)
    b = np.array([*(a[:3] * near[:3]), *(a[3:6] + near[3:6]), near[6]])
    for kind in ("bev", "box3d"):
        assert overlaps_of(kind, [a], [a])[0] == 1.0
        value = overlaps_of(kind, [a], [b])[0]
        assert 0.0 <= value <= 1.0
        assert value == pytest.approx(overlaps_of(kind, [b], [a])[0], abs=1e-13)
        turned = [[*a[:6], a[6] + math.pi]]
        assert value == pytest.approx(overlaps_of(kind, turned, [b])[0], abs=1e-12)
        mirrored = [one * [1, 1, 1, -1, 1, 1, -1] for one in (a, b)]
        assert value == pytest.approx(overlaps_of(kind, mirrored[:1], mirrored[1:])[0], abs=1e-11)
        quarter = [
            one[[0, 1, 2, 5, 4, 3, 6]] * [1, 1, 1, 1, 1, -1, 1] + [0, 0, 0, 0, 0, 0, math.pi / 2] for one in (a, b)
        ]
        assert value == pytest.approx(overlaps_of(kind, quarter[:1], quarter[1:])[0], abs=1e-11)


@pytest.mark.parametrize("where", [(17.43, 1.65, 37.12, 1.3), (9.95, 1.65, 51.81, -2.78)])
def test_a_box_within_another_whose_sides_lie_on_its_sides(where):
    """Boxes that the benchmark's program, with Boost 1.74, takes for disjoint."""
    for kind in ("bev", "box3d"):
        for one, other in ((1.8, 1.81), (1.81, 1.8)):
            value = overlaps_of(kind, [[1.7, 0.6, one, *where]], [[1.7, 0.6, other, *where]])[0]
            assert value == pytest.approx(1.8 / 1.81, abs=1e-13)


@given(BOXES, st.floats(0, 1))
def test_boxes_above_each_other(box, share):
    """Of equal boxes, one lifted by a share of its height, the overlap is that of two intervals."""
    lifted = np.array(box) - [0, 0, 0, 0, share * box[0], 0, 0]
    assert overlaps_of("bev", [box], [lifted])[0] == 1.0
    assert overlaps_of("box3d", [box], [lifted])[0] == pytest.approx((1 - share) / (1 + share), abs=1e-11)


@pytest.mark.parametrize("name", ["bev", "box3d"])
def test_columns_are_joined_without_a_row_of_their_own(name):
    kind = find(name)
    column = kind.given(np.arange(16.0).reshape(2, 8) + 1, "")
    assert same_bits(kind.join([column, column.take(np.array([], int))]).table, column.table)
    assert len(kind.join([])) == 0


def made(rows, truth=False, **more):
    """A table of cars: box, score."""
    columns = {
        "image_ids": [1] * len(rows),
        "category_ids": [name for name, *_ in rows],
        "boxes": [box for _, box, *_ in rows],
    }
    if truth:
        fields = {"occlusion": [0] * len(rows), "truncation": [0.0] * len(rows)}
        return detmap.GroundTruth.from_arrays(**columns, box_format="xyxy", fields=fields, **more)
    return detmap.Detections.from_arrays(**columns, box_format="xyxy", scores=[score for *_, score in rows])


def test_the_example_worked_by_hand():
    """A surer detection finds the scores, and the nearer one is taken at the lower of them."""
    truth = made([("car", (100, 0, 180, 60)), ("car", (300, 0, 380, 60))], truth=True)
    found = [("car", (110, 0, 190, 60), 0.9), ("car", (100, 0, 180, 60), 0.5), ("car", (300, 0, 380, 60), 0.7)]
    assert detmap.evaluate(truth, made(found), "kitti")["car_moderate"] == 2.5
    assert detmap.evaluate(truth, made(found), "kitti-r11")["car_moderate"] == pytest.approx(100 / 11)
    found[1] = ("car", (100, 0, 180, 60), 0.8)
    result = detmap.evaluate(truth, made(found), "kitti")
    assert result.precision[1, :3, 0, 2, 0].tolist() == [1.0, 2 / 3, 0.0]


def test_the_order_of_objects_and_small_detections():
    van, car = ("van", (0, 0, 100, 60)), ("car", (2, 0, 102, 60))
    detection = made([("car", (1, 0, 101, 60), 0.9)])
    for first, value in (([van, car], 0.0), ([car, van], 1.0)):
        result = detmap.evaluate(made(first, truth=True), detection, "kitti-r11", class_levels=False)
        assert result.tally.hit_counts[[name for _, name in result.categories].index("car"), 2, 1] == value
    truth = made([("car", (0, 0, 80, 26)), ("cyclist", (500, 0, 580, 60))], truth=True)
    both = [("cyclist", (0, 0, 80, 24.9), 0.9), ("car", (0, 0, 80, 26), 0.8)]
    for absorbing, hits in ((True, 0), (False, 1)):
        result = detmap.evaluate(truth, made(both), replace(detmap.PRESETS["kitti"], absorbing=absorbing))
        assert result.tally.hit_counts[[name for _, name in result.categories].index("car"), 2, 1] == hits


@pytest.mark.parametrize(
    ("objects", "r40", "r11"), [(1, 0.0, 100 / 11), (10, 22.5, None), (40, 97.5, None), (41, 100.0, 100.0)]
)
def test_few_objects_cannot_reach_100(objects, r40, r11):
    boxes = [(200.0 * n, 0.0, 200.0 * n + 80, 60.0) for n in range(objects)]
    truth = made([("car", box) for box in boxes], truth=True)
    found = made([("car", box, 1 - n / 100) for n, box in enumerate(boxes)])
    result = detmap.evaluate(truth, found, "kitti")
    assert result["car_easy"] == pytest.approx(r40, abs=1e-12)
    if r11 is not None:
        assert detmap.evaluate(truth, found, "kitti-r11")["car_easy"] == pytest.approx(r11, abs=1e-12)


def test_classes_of_other_names_are_said():
    boxes = [(0.0, 0.0, 80.0, 60.0)]
    found = made([("lorry", box, 0.9) for box in boxes])
    other = detmap.evaluate(made([("lorry", box) for box in boxes], truth=True), found, "kitti")
    assert math.isnan(other["car_easy"])
    assert dict(other.notices)["unnamed_classes:car/pedestrian/cyclist"] == 1
    assert any("car/pedestrian/cyclist: all of its numbers" in line for line in describe(other.notices))
    known = detmap.evaluate(made([("Car", box) for box in boxes], truth=True), made([("Car", boxes[0], 0.9)]), "kitti")
    assert not [code for code in known.notices if code.startswith("unnamed")]


def test_images_without_a_file_of_results_are_counted(tmp_path):
    """The benchmark's program leaves them out; an image without detections has an empty file, which is written too."""
    folder = kitti_scenes.write(tmp_path / "k", 3)
    truth = detmap.read(folder / "label_2", "ground_truth")
    whole = detmap.evaluate(truth, folder / "one", "kitti")
    assert "images_without_file" not in whole.notices
    for name in ("000001.txt", "000006.txt"):
        (folder / "one" / name).unlink()
    found = detmap.read(folder / "one", ground_truth=truth)
    cut = detmap.evaluate(truth, found, "kitti")
    assert dict(cut.notices)["images_without_file"] == 2
    detmap.write(found, tmp_path / "written", format="kitti", ground_truth=truth)
    assert {one.name for one in (tmp_path / "written").iterdir()} == {f"{n:06d}.txt" for n in range(8)}
    assert (tmp_path / "written" / "000006.txt").read_bytes() == b""
    again = detmap.evaluate(truth, tmp_path / "written", "kitti")
    assert "images_without_file" not in again.notices
    assert same_bits(list(again.values()), list(cut.values()))


def test_folders_as_shards(tmp_path):
    folder = kitti_scenes.write(tmp_path / "k", 4)
    whole = detmap.evaluate(folder / "label_2", folder / "one", "kitti")
    shards = [tmp_path / name for name in "ab"]
    for n, path in enumerate(sorted((folder / "one").iterdir())):
        shards[n % 2].mkdir(exist_ok=True)
        (shards[n % 2] / path.name).write_bytes(path.read_bytes())
    made = batch.evaluate_shards(folder / "label_2", shards, "kitti")
    assert same_bits(list(made.values()), list(whole.values()))
    assert dict(made.notices) == dict(whole.notices)
    (shards[1] / "000003.txt").unlink()
    assert dict(batch.evaluate_shards(folder / "label_2", shards, "kitti").notices)["images_without_file"] == 1


def test_an_image_without_objects_leaves_the_orientation_known(tmp_path):
    """Whether it is scored with others or alone; a detection without an angle makes it unknown."""
    folder = kitti_scenes.write(tmp_path / "k", 5)
    (folder / "label_2" / "000002.txt").write_text("")
    truth = detmap.read(folder / "label_2", "ground_truth")
    found = detmap.read(folder / "one", ground_truth=truth)
    whole = detmap.evaluate(truth, found, "kitti")
    assert not math.isnan(whole["car_orientation_hard"])

    def record(table, rows, **more):
        own = table.take(rows)
        angles = own.shape("box3d").angles("bbox")
        return {"boxes": own.boxes, "labels": own.categories.ids[own.categories.codes], "alpha": angles, **more}

    def merged(unknown=None):
        merged, alone = (detmap.Evaluator("kitti", categories=truth.categories.ids.tolist()) for _ in range(2))
        for place, image in enumerate(truth.images.ids.tolist()):
            own, rows = found.images.ids[found.images.codes] == image, truth.images.codes == place
            fields = {name: values[rows] for name, values in truth.fields.items()}
            prediction = record(found, own, scores=found.scores[own])
            if image == unknown:
                del prediction["alpha"]
            (alone if image == "000002" else merged).update(
                prediction, record(truth, rows, iscrowd=truth.crowd[rows], **fields), image_ids=image
            )
        return merged.merge(alone).compute()

    assert same_bits(list(merged().values()), list(whole.values()))
    other = merged(unknown="000003")
    assert math.isnan(other["car_orientation_hard"])
    assert other["car_hard"] == whole["car_hard"]


def test_diagnoses_are_over_the_classes_that_have_a_limit():
    """Vans are in the table, but have no AP: neither do they count where errors are mended."""
    boxes = [(200.0 * n, 0.0, 200.0 * n + 80, 60.0) for n in range(45)]
    rows = [("car", box) for box in boxes[:42]] + [("van", box) for box in boxes[42:]]
    found = [(name, box, 1 - n / 100) for n, (name, box) in enumerate(rows)]
    diagnosis = detmap.diagnose(made(rows, truth=True), made(found), "kitti")
    values = dict(diagnosis.tide())
    assert values.pop("AP") == 1
    assert {name: value for name, value in values.items() if value} == {}
    del found[10]
    diagnosis = detmap.diagnose(made(rows, truth=True), made(found), "kitti")
    lost = 1 - diagnosis.ap
    assert lost > 0
    assert diagnosis.images()["dAP_worst"] == pytest.approx(lost, abs=1e-12)
    assert diagnosis.tide()["dAP_Miss"] == pytest.approx(lost, abs=1e-12)
