"""The VOC protocols against their naive twin, a published detector and the rules of the devkit."""

from __future__ import annotations

import dataclasses
import json
import math
from functools import partial
from pathlib import Path

import naive
import numpy as np
import pytest
import workloads
from hypothesis import given, settings
from hypothesis import strategies as st
from support import assert_same_result, examples, same_bits, voc2007_annotations, voc2007_detections

import detmap
from detmap.detection.protocols import PRESETS, VOC2007, VOC2012
from detmap.errors import InputError

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "voc"
RULES = [(VOC2007, "ap_11"), (VOC2012, "ap_all_point")]


def tables(classes, ground_truth, detections):
    """What `naive.voc_evaluate` takes, as tables; detections in the order of the classes, then of the file."""
    objects = [(image, item) for image, listed in ground_truth.items() for item in listed if item["name"] in classes]
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[image for image, _ in objects],
        category_ids=[item["name"] for _, item in objects],
        boxes=np.array([item["box"] for _, item in objects], float).reshape(-1, 4),
        box_format="xyxy",
        difficult=[item["difficult"] for _, item in objects],
        images=list(ground_truth),
        categories=list(classes),
    )
    rows = [(name, *row) for name in classes for row in zip(*detections.get(name, ([], [], [])), strict=True)]
    found = detmap.Detections.from_arrays(
        image_ids=[image for _, image, _, _ in rows],
        category_ids=[name for name, *_ in rows],
        boxes=np.array([box for *_, box in rows], float).reshape(-1, 4),
        box_format="xyxy",
        scores=[score for _, _, score, _ in rows],
    )
    return truth, found


def assert_equals_twin(classes, ground_truth, detections, *, threshold=0.5, strict=False, inclusive=True):
    """Both presets, every class: AP to the last bit, and TP, FP, FN and counts."""
    truth, found = tables(classes, ground_truth, detections)
    twin = naive.voc_evaluate(classes, ground_truth, detections, threshold, strict, inclusive)
    results = []
    for preset, key in RULES:
        protocol = dataclasses.replace(preset, iou_thresholds=(threshold,), strict=strict, inclusive_pixels=inclusive)
        result = detmap.evaluate(truth, found, protocol)
        assert [name for _, name in result.categories] == sorted(classes)
        for row in result.per_category:
            expected = twin[row["category"]]
            assert same_bits(row["AP"], expected[key]), (row["category"], row["AP"], expected[key])
            assert same_bits(result[f"AP_{row['category']}"], expected[key])
            assert row["positives"] == expected["positives"]
            assert row["detections"] == expected["detections"]
            outcome = expected["outcome"]
            assert row["true_positives"] == [outcome.count("TP")]
            assert row["false_positives"] == [outcome.count("FP")]
            assert row["false_negatives"] == [expected["positives"] - outcome.count("TP")]
        defined = [twin[name][key] for name in sorted(classes) if not math.isnan(twin[name][key])]
        assert same_bits(result["mAP"], np.mean(defined) if defined else math.nan)
        results.append(result)
    return twin, results


def fixtures():
    ground_truth = {
        image: naive.read_voc_xml((FIXTURES / "Annotations" / f"{image}.xml").read_text())
        for image in (FIXTURES / "ImageSets" / "test.txt").read_text().split()
    }
    detections = {
        path.stem.split("_test_")[1]: naive.read_voc_results(path.read_text())
        for path in (FIXTURES / "results").glob("*.txt")
    }
    return sorted(detections), ground_truth, detections


@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("threshold", [0.5, 0.3])
def test_fixtures(threshold, strict, inclusive):
    twin, _ = assert_equals_twin(*fixtures(), threshold=threshold, strict=strict, inclusive=inclusive)
    outcomes = [what for row in twin.values() for what in row["outcome"]]
    assert {"TP", "FP", "ignored"} == set(outcomes)


@pytest.mark.parametrize("preset", ["voc2007", "voc2012"])
def test_fixtures_through_the_readers(preset):
    truth = detmap.read_voc(FIXTURES / "Annotations", image_set=FIXTURES / "ImageSets" / "test.txt")
    result = detmap.evaluate(truth, detmap.read_voc_results(FIXTURES / "results"), preset)
    other = detmap.evaluate(*tables(*fixtures()), preset)
    assert list(result) == list(other)
    assert same_bits(list(result.values()), list(other.values()))


# ------------------------------------------------------------------------------------------------------------ made up

corner = st.integers(0, 6)
box = st.tuples(corner, corner, st.integers(0, 5), st.integers(0, 5)).map(
    lambda b: [b[0], b[1], b[0] + b[2], b[1] + b[3]]
)
objects = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["cat", "dog"]), "difficult": st.booleans(), "box": box}), max_size=7
)
found = st.lists(st.tuples(st.sampled_from(["1", "2", "x"]), st.integers(0, 4).map(lambda v: v / 4), box), max_size=14)


@settings(max_examples=examples(400))
@given(
    st.fixed_dictionaries(dict.fromkeys(("2", "1", "x"), objects)),
    st.fixed_dictionaries({"cat": found, "dog": found}),
    st.sampled_from([0.5, 1 / 3, 0.25, 1.0]),
    st.booleans(),
    st.booleans(),
)
def test_any_workload(ground_truth, rows, threshold, strict, inclusive):
    detections = {
        name: ([row[0] for row in listed], [row[1] for row in listed], [row[2] for row in listed])
        for name, listed in rows.items()
    }
    if not inclusive:  # a box of one point has no area, and two such overlap by 0 / 0 in the twin
        for listed in ground_truth.values():
            listed[:] = [item for item in listed if item["box"][0] < item["box"][2] and item["box"][1] < item["box"][3]]
    assert_equals_twin(
        ["dog", "cat"], ground_truth, detections, threshold=threshold, strict=strict, inclusive=inclusive
    )


def one_class(objects, detections, difficult=None):
    """One image and class: boxes of the ground truth, and (score, box) of the detections."""
    difficult = difficult or [False] * len(objects)
    ground_truth = {"1": [{"name": "cat", "difficult": d, "box": b} for d, b in zip(difficult, objects, strict=True)]}
    images, scores, boxes = ["1"] * len(detections), [s for s, _ in detections], [b for _, b in detections]
    return ["cat"], ground_truth, {"cat": (images, scores, boxes)}


@pytest.mark.parametrize(("strict", "expected"), [(False, 1.0), (True, 0.0)])
def test_an_overlap_that_equals_the_threshold(strict, expected):
    """10 x 10 pixels against 10 x 5 within it: exactly one half."""
    workload = one_class([[1, 1, 10, 10]], [(0.9, [1, 1, 10, 5])])
    _, results = assert_equals_twin(*workload, strict=strict)
    assert [result["mAP"] for result in results] == pytest.approx([expected] * 2, abs=1e-15)


@pytest.mark.parametrize(("inclusive", "expected"), [(True, 1.0), (False, 0.0)])
def test_the_last_pixel_counts(inclusive, expected):
    """3 x 1 pixels against 2 x 1 of them: 2/3 with both ends inside, and nothing at all between points."""
    workload = one_class([[1, 1, 3, 1]], [(0.9, [1, 1, 2, 1])])
    _, results = assert_equals_twin(*workload, inclusive=inclusive)
    assert [result["mAP"] for result in results] == pytest.approx([expected] * 2, abs=1e-15)


def test_what_a_difficult_object_does():
    """It is no positive, and what overlaps it most is neither right nor wrong, however often."""
    workload = one_class(
        [[1, 1, 10, 10], [21, 21, 30, 30]],
        [(0.9, [1, 1, 10, 10]), (0.8, [1, 1, 10, 10]), (0.7, [21, 21, 30, 30])],
        [True, False],
    )
    twin, (_, result) = assert_equals_twin(*workload)
    assert twin["cat"]["outcome"] == ["ignored", "ignored", "TP"]
    assert result["mAP"] == 1.0
    protocol = dataclasses.replace(VOC2012, ignore=())
    assert detmap.evaluate(*tables(*workload), protocol)["mAP"] == pytest.approx(5 / 6, abs=1e-15)  # TP FP TP of 2


def test_the_best_overlap_only():
    """The second detection overlaps the taken object most: a miss, though another object is free and near enough."""
    workload = one_class([[1, 1, 10, 10], [1, 3, 10, 12]], [(0.9, [1, 1, 10, 10]), (0.8, [1, 1, 10, 10])])
    twin, _ = assert_equals_twin(*workload)
    assert twin["cat"]["outcome"] == ["TP", "FP"]
    protocol = dataclasses.replace(VOC2012, matching="best-free")
    result = detmap.evaluate(*tables(*workload), protocol)
    assert result.counts(iou=0.5, score=0).true_positives.tolist() == [2]


def test_the_first_of_equal_overlaps():
    """Two equal objects, the first difficult: the detection is ignored, not right."""
    workload = one_class([[1, 1, 10, 10]] * 2, [(0.9, [1, 1, 10, 10])], [True, False])
    twin, _ = assert_equals_twin(*workload)
    assert twin["cat"]["outcome"] == ["ignored"]


def test_the_worked_example():
    """TP FP TP FP FP TP FP of 3 positives: 8/11 and 13/18; a strict comparison gives 7.5/11."""
    far = [[100 * i, 0, 100 * i + 9, 9] for i in range(1, 8)]
    workload = one_class([far[0], far[2], far[5]], [(1 - rank / 10, box) for rank, box in enumerate(far)])
    _, (eleven, every) = assert_equals_twin(*workload)
    assert eleven["mAP"] == pytest.approx(8 / 11, abs=1e-15)
    assert every["mAP"] == pytest.approx(13 / 18, abs=1e-15)


def test_ties_stand_in_file_order():
    """Not by image id: the first line of the file comes first, though its image is the last."""
    ground_truth = {image: [{"name": "cat", "difficult": False, "box": [1, 1, 10, 10]}] for image in ("b", "a")}
    hit, miss = [1, 1, 10, 10], [50, 50, 60, 60]
    for rows, expected in (
        ([("b", hit), ("a", miss), ("a", hit)], (1 + 2 / 3) / 2),
        ([("b", miss), ("a", hit), ("b", hit)], (2 / 3 + 2 / 3) / 2),
    ):
        detections = {"cat": ([image for image, _ in rows], [0.5] * 3, [box for _, box in rows])}
        _, (_, result) = assert_equals_twin(["cat"], ground_truth, detections)
        assert result["mAP"] == pytest.approx(expected, abs=1e-15)


RANGES = {"all": (0, 1e10), "small": (0, 1024), "middle": (1024, 9216), "large": (9216, 1e10)}


@pytest.mark.parametrize("protocol", ["coco", "voc2012", "padilla"])
def test_areas_of_boxes_count_pixels_as_the_protocol_does_in_every_source(protocol, tmp_path):
    """XML has no areas: one of 31.5 is small in coordinates, and of medium size where pixels are inclusive."""
    corners = [[10.0, 10.0, 41.5, 41.5], [0.0, 0.0, 12.0, 9.0], [100.0, 80.0, 195.5, 175.5], [50.0, 60.0, 80.0, 95.0]]
    objects = "".join(
        "<object><name>cat</name><bndbox>"
        + "".join(f"<{k}>{v}</{k}>" for k, v in zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True))
        + "</bndbox></object>"
        for box in corners
    )
    (tmp_path / "truth").mkdir()
    (tmp_path / "truth" / "a.xml").write_text(f"<annotation>{objects}</annotation>")
    ids = {"image_ids": ["a"] * 4, "category_ids": ["cat"] * 4, "boxes": corners, "box_format": "xyxy"}
    found = detmap.Detections.from_arrays(**ids, scores=[0.9, 0.8, 0.7, 0.6])
    read = detmap.read_voc(tmp_path / "truth")
    detmap.write(read, tmp_path / "truth.csv")
    evaluator = detmap.Evaluator(protocol=PRESETS[protocol], box_format="xyxy", area_ranges=RANGES)
    evaluator.update(
        {"boxes": corners, "scores": found.scores, "labels": [0] * 4}, {"boxes": corners, "labels": [0] * 4}
    )
    options = {"protocol": protocol, "area_ranges": RANGES}
    plus = float(PRESETS[protocol].inclusive_pixels)
    sides = np.array(corners)[:, 2:] - np.array(corners)[:, :2] + plus
    expected = [
        int(((low <= sides.prod(axis=1)) & (sides.prod(axis=1) <= high)).sum()) for low, high in RANGES.values()
    ]
    assert expected == ([4, 2, 2, 0] if protocol == "coco" else [4, 1, 2, 1])
    for truth in (read, detmap.read(tmp_path / "truth.csv", "ground_truth"), detmap.GroundTruth.from_arrays(**ids)):
        result = detmap.evaluate(truth, found, **options)
        assert result.tally.positive_counts.sum(axis=0).tolist() == expected
        precision = result.precision[..., -1]  # but for COCO's epsilon it is 1: areas of detections are counted alike
        assert (precision[..., np.array(expected) > 0] > 0.999).all()
        of_shapes = dataclasses.replace(PRESETS[protocol], object_areas="shape")
        shapes = detmap.evaluate(truth, found, of_shapes, area_ranges=RANGES)
        assert shapes.tally.positive_counts.sum(axis=0).tolist() == expected
    assert evaluator.compute().tally.positive_counts.sum(axis=0).tolist() == expected


def test_areas_survive_a_conversion_to_voc(tmp_path):
    """Areas that are those of the boxes are none that get lost, also where corners are rounded; others are."""
    boxes = [[0.1, 0.2, 31.7, 31.9], [5, 5, 40, 50]]
    truth = detmap.GroundTruth.from_arrays(image_ids=["a", "a"], category_ids=["cat", "dog"], boxes=boxes)
    for form in ("voc", "text"):
        assert detmap.write(truth, tmp_path / form, format=form).get("areas", 0) == 0
        own = dataclasses.replace(truth, areas=np.array([truth.areas[0], 7.0]))
        assert detmap.write(own, tmp_path / f"{form}-own", format=form)["areas"] == 1


# --------------------------------------------------------------------------------------------------------- real data


def real(which):
    ground_truth = {image: naive.read_voc_xml(text) for image, text in voc2007_annotations().items()}
    detections = {name: naive.read_voc_results(text) for name, text in voc2007_detections(which).items()}
    return ground_truth, detections


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.compiled
@pytest.mark.parametrize("which", ["a", pytest.param("b", marks=pytest.mark.long)])
def test_a_real_detector_against_the_twin_and_published_numbers(which):
    """AP per class as it was published (11-point, strict comparison), but for unstable ties in two classes."""
    ground_truth, detections = real(which)
    assert sum(len(rows[0]) for rows in detections.values()) == {"a": 254_590, "b": 631_583}[which]
    twin, (eleven, _) = assert_equals_twin(sorted(detections), ground_truth, detections)
    if which == "b":
        return
    expected = json.loads((workloads.REAL_DATA / "voc2007" / "expected.json").read_text())
    assert sorted(expected["classes"]) == sorted(twin)
    assert len(twin) == 20
    truth, found = tables(sorted(twin), ground_truth, detections)
    assert (len(truth), int(truth.difficult.sum()), len(found)) == (14_976, 2_944, 254_590)
    strict = detmap.evaluate(truth, found, dataclasses.replace(VOC2007, strict=True))
    assert_same_result(strict, eleven)  # no IoU is exactly 1/2
    for name, numbers in expected["classes"].items():
        made = twin[name]
        assert (made["positives"], made["detections"]) == (numbers["positives"], numbers["detections"])
        assert same_bits(made["ap_11"], numbers["stable"]), name
        assert made["ap_all_point"] == pytest.approx(numbers["all_point"], abs=1e-12)  # summed in pairs there
        if name not in ("chair", "train"):
            assert same_bits(made["ap_11"], numbers["published"]), name
    assert strict["mAP"] == pytest.approx(expected["mean_published"], abs=1e-6)


def test_results_fit_ground_truth_of_coco_by_the_names_of_its_images_and_classes(tmp_path):
    truth = {
        "images": [{"id": 1891, "file_name": "000000001891.jpg"}, {"id": 7, "file_name": "train/seven.jpg"}],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
        "annotations": [
            {"id": 1, "image_id": 1891, "category_id": 1, "bbox": [10, 10, 21, 31], "area": 651, "iscrowd": 0},
            {"id": 2, "image_id": 7, "category_id": 2, "bbox": [5, 5, 11, 11], "area": 121, "iscrowd": 0},
        ],
    }
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    results = tmp_path / "results"
    results.mkdir()
    (results / "comp4_det_test_cat.txt").write_text("000000001891 0.9 10 10 31 41\n")
    (results / "comp4_det_test_dog.txt").write_text("seven 0.8 5 5 16 16\n")
    ground_truth = detmap.read(tmp_path / "truth.json", "ground_truth", image_facts=True)
    found = detmap.read(results, "detections", ground_truth=ground_truth)
    assert found.images.ids[found.images.codes].tolist() == [1891, 7]
    assert found.categories.ids[found.categories.codes].tolist() == [1, 2]
    assert detmap.evaluate(ground_truth, found)["AP50"] == pytest.approx(1)
    (results / "comp4_det_test_dog.txt").unlink()
    (results / "comp4_det_test_cat.txt").write_text("000000001891 0.9 10 10 31 41\nother 0.9 10 10 31 41\n")
    with pytest.raises(InputError, match=r"comp4_det_test_cat\.txt: line 2.*'other'"):
        detmap.read(results, "detections", ground_truth=ground_truth)
    found = detmap.read(results, "detections", ground_truth=ground_truth, unknown_images="ignore")
    assert detmap.evaluate(ground_truth, found).notices == {"missing_classes:dog": 1, "unknown_image": 1}
    with pytest.raises(InputError, match="1 class of the ground truth has no result file: dog"):
        detmap.read(results, "detections", ground_truth=ground_truth, unknown_images="ignore", missing_classes="error")


def test_other_names_than_ids_are_found_and_a_file_is_its_class_by_either(tmp_path):
    """Strings too can be ids of COCO: names of files, and ids of categories that are called otherwise."""
    truth = {
        "images": [{"id": "seven.jpg"}, {"id": "8.png"}],
        "categories": [{"id": "c1", "name": "cat"}, {"id": "c2", "name": "dog"}],
        "annotations": [
            {"id": 1, "image_id": "seven.jpg", "category_id": "c1", "bbox": [5, 5, 11, 11], "area": 121, "iscrowd": 0},
            {"id": 2, "image_id": "8.png", "category_id": "c2", "bbox": [5, 5, 11, 11], "area": 121, "iscrowd": 0},
        ],
    }
    results = tmp_path / "results"
    results.mkdir()
    (results / "comp4_det_test_cat.txt").write_text("seven 0.8 5 5 16 16\n")
    (results / "comp4_det_test_c2.txt").write_text("train/8 0.8 5 5 16 16\nnine 0.8 5 5 16 16\n")
    (results / "notes.txt").write_text("of the run")
    ground_truth = detmap.read_coco(truth)
    read = partial(detmap.read_voc_results, results, missing_classes="error")
    found = read(ground_truth, unknown_images="ignore")
    assert found.images.ids[found.images.codes].tolist() == ["8.png", "seven.jpg"]
    assert found.categories.ids[found.categories.codes].tolist() == ["c2", "c1"]
    scored = detmap.evaluate(ground_truth, found)
    assert scored["AP50"] == pytest.approx(1)
    assert scored.notices == {"unread_files": 1, "unknown_image": 1}
    for record in [*truth["categories"], *truth["annotations"]]:  # integers likewise
        name = "id" if "name" in record else "category_id"
        record[name] = int(record[name][1:])
    (results / "comp4_det_test_c2.txt").rename(results / "comp4_det_test_2.txt")
    found = read(detmap.read_coco(truth), unknown_images="ignore")
    assert found.categories.ids[found.categories.codes].tolist() == [2, 1]
    with pytest.raises(InputError) as caught:
        read(ground_truth)
    assert str(caught.value).startswith(
        f"{results / 'comp4_det_test_2.txt'}: line 2: is not an image of the ground truth"
    )


_ODD_LINES = [
    b"000001 0.5 1 2 30 40",
    b"  000002\t0.25  1e1 2. +30 .4e2 ",
    b"000001 -1.5 1 2 30 40\r",
    b"im\xc3\xa4ge 1e-400 0.1000000000000000055511151231257827 2 3 9007199254740993",
    b"",
    b"#7 0.5 1 2 3 4",
    b"000003 1_0 1 2 3 4",
    b"000003 nan 1 2 3 4",
    b"000003 0.5 1 2 3 1e999",
    b"000003 0.5 1 2 3",
    b"000003 0.5 1 2 3 4 5",
    b"\xff 0.5 1 2 3 4",
    b"\xef\xbb\xbf000003 0.5 1 2 3 4",
    b"000003 0.5 1 2\x0b3 4",
    b"000003\x00 0.5 1 2 3 4",
    b"n" * 300 + b" 0.5 1 2 3 4",
    b"000003 0.5 9 9 3 4",
    b"000003 0." + b"5" * 300 + b" 1 2 3 4",
]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""], ids=["feed", "return", "open"])
@pytest.mark.parametrize("odd", range(len(_ODD_LINES)))
def test_a_scanned_file_is_what_is_read_word_by_word(odd, end, monkeypatch):
    """Each line among plain ones, first, in the middle and last: the same columns, or the same error."""
    plain = [b"%06d 0.%d %d 2.5 30 40" % (i % 7, i, i) for i in range(1, 20)]
    for place in (0, 7, len(plain)):
        lines = [*plain[:place], _ODD_LINES[odd], *plain[place:]]
        data = (end or b"\n").join(lines) + end
        made = []
        for worth in (0, 1 << 40):
            monkeypatch.setattr("detmap.formats.voc.read._WORTH_SCANNING", worth)
            try:
                found = detmap.read_voc_results({"comp4_det_test_dog.txt": data, "comp4_det_test_cat.txt": plain[0]})
                images = found.images.ids[found.images.codes].tolist()
                made.append([images, found.boxes.tolist(), found.scores.tolist(), found.notices])
            except InputError as error:
                made.append(str(error))
        assert made[0] == made[1]


def test_plain_results_are_scanned(monkeypatch):
    """What the test above compares is not the same way twice."""
    monkeypatch.setattr("detmap.formats.voc.read._WORTH_SCANNING", 0)
    monkeypatch.setattr("detmap.formats.voc.read._split", None)
    found = detmap.read_voc_results({"comp4_det_test_dog.txt": b"b 0.5 1 2 3 4\na\t1e-1 1 2 3.5 4\n"})
    assert found.scores.tolist() == [0.5, 0.1]
    assert found.boxes[:, 2].tolist() == [3.0, 3.5]


@pytest.mark.compiled
@pytest.mark.parametrize("exact", [0, 2, 4])
def test_lines_of_many_numbers_that_only_float_can_read(exact, monkeypatch):
    """More of them than a block of the scanner has room for, five, three or one to a line."""
    rng = np.random.default_rng(exact)
    numbers = rng.random((3000, 5)) * 100 + [[0, 0, 0, 100, 100]]
    lines = [
        f"{i % 50:06d} " + " ".join(f"{x:.3f}" if k < exact else f"+{x:.24f}" for k, x in enumerate(row))
        for i, row in enumerate(numbers.tolist())
    ]
    monkeypatch.setattr("detmap.formats.voc.read._split", None)
    found = detmap.read_voc_results({"comp4_det_test_dog.txt": "\n".join(lines).encode()})
    read = [[float(word) for word in line.split()[1:]] for line in lines]
    assert np.column_stack([found.scores, found.boxes]).tolist() == read
