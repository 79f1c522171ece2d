"""Ground truth and results that do not go together: classes without a file, stray files, boxes in other units."""

from __future__ import annotations

import json
import re
import tarfile

import numpy as np
import pytest
import workloads
from support import assert_same_result

import detmap
from detmap.batch import Leaderboard, compare_files, evaluate_shards, score
from detmap.cli import main
from detmap.data.notices import NOTICES, describe
from detmap.errors import InputError, OptionError
from detmap.formats.files import read_detections
from detmap.statistics import permute

LINE = "i1 0.9 0 0 9 9\n"


def file_of(name):
    return f"comp4_det_test_{name}.txt"


@pytest.fixture
def truth():
    return detmap.GroundTruth.from_arrays(
        image_ids=["i1", "i1", "i2"], category_ids=["cat", "dog", "eel"], boxes=[[0, 0, 9, 9]] * 3
    )


@pytest.fixture
def folder(tmp_path):
    """The XML of the same ground truth, and results of cats alone."""
    (tmp_path / "Annotations").mkdir()
    for image, names in (("i1", ["cat", "dog"]), ("i2", ["eel"])):
        box = "<bndbox><xmin>0</xmin><ymin>0</ymin><xmax>9</xmax><ymax>9</ymax></bndbox>"
        objects = "".join(f"<object><name>{name}</name>{box}</object>" for name in names)
        (tmp_path / "Annotations" / f"{image}.xml").write_text(f"<annotation>{objects}</annotation>")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / file_of("cat")).write_text(LINE)
    return tmp_path


def test_classes_without_a_file_are_named_and_count_as_0(truth):
    found = detmap.read_voc_results({file_of("cat"): LINE}, truth)
    result = detmap.evaluate(truth, found, "voc2012")
    assert dict(result) == {"mAP": 1 / 3, "AP_cat": 1.0, "AP_dog": 0.0, "AP_eel": 0.0}
    assert result.notices == {"missing_classes:dog": 1, "missing_classes:eel": 1}
    assert describe(result.notices) == ["2 classes without a result file, with AP 0: dog, eel"]
    alone = detmap.evaluate(truth, detmap.read_voc_results({file_of("cat"): LINE}), "voc2012")
    assert alone.notices == result.notices  # the ground truth need not be there when they are read


def test_an_empty_file_is_a_file(truth):
    found = detmap.read_voc_results({file_of("cat"): LINE, file_of("dog"): "", file_of("eel"): ""}, truth)
    assert detmap.evaluate(truth, found, "voc2012").notices == {}


def test_classes_without_objects_are_not_missed():
    truth = detmap.GroundTruth.from_arrays(
        image_ids=["i1"], category_ids=["cat"], boxes=[[0, 0, 9, 9]], categories=["cat", "dog"]
    )
    found = detmap.read_voc_results({file_of("cat"): LINE}, truth, missing_classes="error")
    assert detmap.evaluate(truth, found, "voc2012").notices == {"empty_categories": 1}


def test_classes_without_a_file_as_an_error(truth):
    says = r"^results: 2 classes of the ground truth have no result file: dog, eel; .*'zero' .*'skip'"
    with pytest.raises(InputError, match=says):
        detmap.read_voc_results({file_of("cat"): LINE}, truth, missing_classes="error")
    found = detmap.read_voc_results({file_of("cat"): LINE}, missing_classes="error")
    with pytest.raises(InputError, match=says):
        detmap.evaluate(truth, found)
    with pytest.raises(InputError, match="results: 1 class of the ground truth has no result file: eel; "):
        detmap.read_voc_results({file_of("cat"): LINE, file_of("dog"): ""}, truth, missing_classes="error")
    with pytest.raises(OptionError, match="missing_classes must be one of zero, error, skip, not 'no'"):
        detmap.read_voc_results({file_of("cat"): LINE}, missing_classes="no")


@pytest.mark.parametrize("protocol", ["voc2012", "coco"])
@pytest.mark.parametrize("use_categories", [True, False])
def test_skipped_classes_leave_the_result_of_the_others(truth, protocol, use_categories):
    found = detmap.read_voc_results({file_of("cat"): LINE, file_of("eel"): ""}, truth, missing_classes="skip")
    options = {"use_categories": use_categories}
    result = detmap.evaluate(truth, found, protocol, **options)
    zero = detmap.read_voc_results({file_of("cat"): LINE, file_of("eel"): ""}, truth)
    expected = detmap.evaluate(truth, zero, protocol, category_ids=["cat", "eel"], **options)
    assert_same_result(result, expected)
    assert result.notices == {"skipped_classes:dog": 1}
    some = detmap.evaluate(truth, found, protocol, category_ids=["dog", "eel"], **options)
    assert_same_result(some, detmap.evaluate(truth, zero, protocol, category_ids=["eel"], **options))


@pytest.mark.parametrize("choice", ["zero", "error", "skip"])
def test_classes_that_are_not_selected_are_not_missed(truth, choice):
    """Without a file for dogs and eels, cats alone are scored as if they had files; with dogs, only these are missed."""
    found = detmap.read_voc_results({file_of("cat"): LINE}, missing_classes=choice)
    alone = detmap.evaluate(truth, found, "voc2012", category_ids=["cat"])
    assert (dict(alone), alone.notices) == ({"mAP": 1.0, "AP_cat": 1.0}, {})
    assert detmap.match_pairs(truth, found, "voc2012", category_ids=["cat"]).notices == {}
    if choice == "error":
        with pytest.raises(InputError, match=r"1 class of the ground truth has no result file: dog;"):
            detmap.evaluate(truth, found, "voc2012", category_ids=["cat", "dog"])
        return
    both = detmap.evaluate(truth, found, "voc2012", category_ids=["cat", "dog"])
    numbers = {"mAP": 0.5, "AP_cat": 1.0, "AP_dog": 0.0} if choice == "zero" else {"mAP": 1.0, "AP_cat": 1.0}
    assert dict(both) == numbers
    assert both.notices == {"missing_classes:dog" if choice == "zero" else "skipped_classes:dog": 1}


def test_what_is_said_of_classes_outlives_dropped_detections(truth):
    found = detmap.read_voc_results({file_of("cat"): LINE + "other .5 0 0 9 9\n"}, missing_classes="skip")
    assert found.on_images_of(truth, "ignore").classes == ("cat",)
    assert list(detmap.evaluate(truth, found.on_images_of(truth, "ignore"), "voc2012")) == ["mAP", "AP_cat"]


def test_a_long_list_of_classes_is_cut():
    notices = {f"missing_classes:{k:02}": 1 for k in range(23)}
    assert describe(notices)[0].endswith("18, 19 and 3 more")
    assert describe({"missing_classes:a\nb": 1}) == ["1 class without a result file, with AP 0: a\\nb"]


def test_one_of_something_is_said_in_the_singular():
    said = [sentence for code in NOTICES for sentence in describe({code: 1})]
    assert [sentence for sentence in said if re.match(r"1 (?!class\b)\w+s\b", sentence)] == []


def test_stray_files_are_left_aside_and_counted(truth):
    stray = {"notes.txt": "hello", "cat.txt": LINE, "README": "", "table.csv": "1,2"}
    found = detmap.read_voc_results({file_of("cat"): LINE, **stray}, truth)
    assert (len(found), found.notices["unread_files"]) == (1, 2)
    with pytest.raises(InputError, match=r"cat\.txt.*: the file's name does not say its class; call it comp4_det"):
        detmap.read_voc_results({"cat.txt": LINE, "notes.txt": ""}, truth)


@pytest.mark.parametrize("packed", [False, True])
def test_stray_files_in_folders_and_archives(folder, truth, packed):
    (folder / "results" / "notes.txt").write_bytes(b"\xff\0 not results")
    path = folder / "results"
    if packed:
        path = folder / "results.tar"
        with tarfile.open(path, "w") as archive:
            archive.add(folder / "results", "results")
    found = read_detections(path, truth)
    assert (len(found), found.notices["unread_files"]) == (1, 1)


def test_the_file_of_one_class_is_read_by_itself(folder, truth):
    path = folder / "results" / file_of("cat")
    found = read_detections(path, truth, missing_classes="skip")
    assert (found.source, found.classes) == (str(path), ("cat",))
    assert dict(detmap.evaluate(truth, found, "voc2012")) == {"mAP": 1.0, "AP_cat": 1.0}
    assert len(detmap.read_voc_results(path)) == 1
    path.write_text("i1 0.9 0 0 9\n")
    with pytest.raises(InputError, match=r"comp4_det_test_cat\.txt: line 1: has 5 fields where 6 are expected"):
        read_detections(path, truth)
    with pytest.raises(InputError, match="no such file"):
        read_detections(folder / file_of("dog"), truth)


def test_the_command_line_says_it(folder, capsys):
    paths = [str(folder / "Annotations"), str(folder / "results")]
    more = ["--protocol", "voc2012", "--format", "json"]
    (folder / "results" / "notes.txt").write_text("x")
    for command in (["eval", *paths], ["eval", paths[0], str(folder / "results" / file_of("cat"))]):
        assert main([*command, *more]) == 0
        out, err = capsys.readouterr()
        assert "2 classes without a result file, with AP 0: dog, eel" in err
        assert ("1 file whose names do not say a class" in err) == (command[-1] == paths[1])
        assert json.loads(out)["metrics"]["mAP"] == 1 / 3
        assert main([*command, *more, "--missing-classes", "error"]) == 2
        assert "2 classes of the ground truth have no result file: dog, eel; " in capsys.readouterr().err
        assert main([*command, *more, "--missing-classes", "skip"]) == 0
        out, err = capsys.readouterr()
        assert "2 classes without a result file, left out: dog, eel" in err
        assert json.loads(out)["metrics"] == {"mAP": 1.0, "AP_cat": 1.0}


def test_batches_and_comparisons_pass_it_on(folder, capsys):
    (folder / "all").mkdir()
    for name in ("cat", "dog", "eel"):
        (folder / "all" / file_of(name)).write_text(LINE)
    ground_truth, paths = str(folder / "Annotations"), [str(folder / "all"), str(folder / "results")]
    found = {}
    for choice in ("zero", "error", "skip"):
        for one in score(ground_truth, paths, "voc2012", missing_classes=choice, out=folder / "out", resume=True):
            found[choice, one.entry.name] = one
    assert found["zero", "results"]["mAP"] == 1 / 3
    assert "no result file: dog, eel" in found["error", "results"].error
    assert dict(found["skip", "results"]) == {"mAP": 1.0, "AP_cat": 1.0}
    assert found["zero", "all"]["mAP"] == found["error", "all"]["mAP"] == found["skip", "all"]["mAP"] == 2 / 3
    more = ["--protocol", "voc2012", "--format", "json"]
    assert main(["batch", ground_truth, *paths, *more, "--missing-classes", "skip"]) == 0
    models = json.loads(capsys.readouterr().out)["models"]
    assert {row["model"]: row["metrics"]["mAP"] for row in models} == {"all": 2 / 3, "results": 1.0}
    assert main(["compare", ground_truth, *paths, "--bootstrap", "200", "--missing-classes", "skip"]) == 2
    assert "different categories" in capsys.readouterr().err
    assert main(["compare", ground_truth, *paths, "--bootstrap", "200", "--missing-classes", "error"]) == 2
    assert "no result file: dog, eel" in capsys.readouterr().err


def test_shards_are_of_the_same_classes(folder):
    shards = (folder / "Annotations", [folder / "results"])
    assert evaluate_shards(*shards, "voc2012").notices == {"missing_classes:dog": 1, "missing_classes:eel": 1}
    with pytest.raises(InputError, match="no result file: dog, eel"):
        evaluate_shards(*shards, "voc2012", missing_classes="error")
    with pytest.raises(OptionError, match="cannot be combined with shards"):
        evaluate_shards(*shards, "voc2012", missing_classes="skip")


def test_a_class_is_missing_where_no_shard_has_a_file_of_it(truth, tmp_path):
    lines = {"0": {"cat": "i1 0.9 0 0 9 9\n", "dog": "i1 0.8 0 0 9 9\n"}, "1": {"cat": "i2 0.7 0 0 5 5\n"}}
    for shard, found in lines.items():
        (tmp_path / shard).mkdir()
        for name, text in found.items():
            (tmp_path / shard / file_of(name)).write_text(text)
    result = evaluate_shards(truth, [tmp_path / "0", tmp_path / "1"], "voc2012")
    assert result["AP_dog"] == 1
    assert result.notices == {"missing_classes:eel": 1}


@pytest.fixture
def unlike(truth, tmp_path):
    """Results of two models on 12 images: files of cats and dogs, and of cats and eels."""
    images = [f"i{i:02}" for i in range(12) for _ in range(3)]
    truth = detmap.GroundTruth.from_arrays(
        image_ids=images, category_ids=["cat", "dog", "eel"] * 12, boxes=[[0, 0, 9, 9]] * 36
    )
    lines = "".join(f"i{i:02} 0.{i + 10} 0 0 9 9\n" for i in range(12))
    for model, names in (("dogs", ("cat", "dog")), ("eels", ("cat", "eel")), ("more", ("cat", "eel"))):
        (tmp_path / model).mkdir()
        for name in names:
            kept = lines if model != "more" else lines.replace("0 0 9 9", "50 50 90 90")
            (tmp_path / model / file_of(name)).write_text(kept if name == names[1] else lines)
    return truth, [tmp_path / model for model in ("dogs", "eels", "more")]


def test_models_of_other_classes_are_not_tested_against_each_other(unlike, tmp_path):
    truth, paths = unlike
    scored = list(score(truth, paths, "voc2012", missing_classes="skip", replicates=200))
    out = tmp_path / "out"
    out.mkdir()
    tests = compare_files(truth, scored, "voc2012", missing_classes="skip", permutations=1000, out=out)
    defined = {frozenset(pair) for pair, p in tests.p.items() if not np.isnan(p)}
    assert defined == {frozenset(("eels", "more"))}
    assert tests.sentences()[1:] == [
        "family: 1 pair; Holm's correction: the probability of any false claim in a family is at most 5 %",
        "not tested, so that they share a letter: 2 pairs of models scored on different classes",
    ]
    first, second = (
        detmap.match(truth, detmap.read_voc_results(path, truth, missing_classes="skip"), "voc2012")
        for path in paths[:2]
    )
    with pytest.raises(OptionError, match="first and second were scored on different categories"):
        permute(first, second)


def test_a_leaderboard_has_the_classes_of_all_models_in_their_columns(unlike):
    truth, paths = unlike
    scored = list(score(truth, paths, "voc2012", missing_classes="skip"))
    for results in (scored, scored[::-1]):
        board = Leaderboard(results, "AP_dog")  # which not every model has
        assert [(row["model"], row["rank"]) for row in board.rows()] == [("dogs", 1), ("eels", ""), ("more", "")]
        rows = {row["model"]: {key[3:]: row[key] for key in row if key.startswith("AP_")} for row in board.rows()}
        assert rows["dogs"] == {"cat": 1, "dog": 1, "eel": pytest.approx(np.nan, nan_ok=True)}
        page = board._html().decode()
        data = json.loads(re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S)[1])
        rows = [dict(zip(data["categories"], row, strict=True)) for row in data["values"]]
        values = dict(zip(data["models"], rows, strict=True))
        assert values["dogs"] == {"cat": 1, "dog": 1, "eel": None}
        assert values["eels"] == {"cat": 1, "dog": None, "eel": 1}


# -------------------------------------------------------------------------------------------------------------- units


def tables(truth_scale, found_scale, box_format="xywh", **columns):
    boxes = np.array([[0.1, 0.1, 0.5, 0.6], [0.25, 0.25, 0.5, 0.5], [0.0, 0.0, 1.0, 1.0]])
    ids = {"image_ids": [1, 1, 2], "category_ids": [1, 2, 1], "box_format": box_format}
    return (
        detmap.GroundTruth.from_arrays(**ids, boxes=boxes * truth_scale, **columns),
        detmap.Detections.from_arrays(**ids, boxes=boxes * found_scale, scores=[0.5, 0.4, 0.3]),
    )


@pytest.mark.parametrize("box_format", ["xywh", "xyxy", "cxcywh"])
def test_fractions_against_pixels_are_noticed(box_format):
    assert detmap.evaluate(*tables(500, 1, box_format)).notices == {"normalised_detections": 3}
    assert detmap.evaluate(*tables(1, 500, box_format)).notices == {"normalised_ground_truth": 3}
    assert detmap.evaluate(*tables(1, 1, box_format)).notices == {"shares_of_images": 3}
    assert detmap.evaluate(*tables(500, 500, box_format)).notices == {}


def test_fractions_that_leave_the_image_a_little_are_none_of_pixels():
    """Rounding puts a corner at 1.0000001; that makes no pixels of the others."""
    assert detmap.evaluate(*tables(1, 1.0001)).notices == {"shares_of_images": 3}
    assert detmap.evaluate(*tables(1.0001, 1)).notices == {"shares_of_images": 3}
    assert detmap.evaluate(*tables(500, 1.0001)).notices == {"normalised_detections": 3}


def shares_of(world, rng):
    """Real-looking shares: of detections some reach beyond their image, and one far beyond."""
    boxes = rng.uniform(0, 0.6, (60, 4)) + np.array([0.0, 0.0, 0.02, 0.02])
    near = boxes + rng.uniform(-0.03, 0.03, boxes.shape) * [1, 1, 0, 0]
    near[7] = [0.4, -0.2, 1.7, 1.3]
    scale = {"shares": np.ones(4), "pixels": np.array([640, 480, 640, 480])}
    return boxes * scale[world[0]], near * scale[world[1]]


SHARES = {
    ("pixels", "shares"): "normalised_detections",
    ("shares", "pixels"): "normalised_ground_truth",
    ("shares", "shares"): "shares_of_images",
    ("pixels", "pixels"): None,
}


@pytest.mark.parametrize("world", SHARES)
@pytest.mark.parametrize("form", ["json", "csv", "parquet", "voc", "arrays"])
def test_shares_of_an_image_are_noticed_on_either_side_in_every_format(world, form, tmp_path):
    if form == "parquet":
        pytest.importorskip("pyarrow")
    true, near = shares_of(world, np.random.default_rng(5))
    ids = {"image_ids": [f"i{k % 20}" for k in range(60)], "category_ids": ["cat"] * 60}
    truth = detmap.GroundTruth.from_arrays(**ids, boxes=true)
    found = detmap.Detections.from_arrays(**ids, boxes=near, scores=np.linspace(0.1, 0.9, 60))
    if form != "arrays":
        kind = {"json": "coco"}.get(form, form)
        ending = "" if form == "voc" else f".{form}"
        detmap.write(truth, tmp_path / f"truth{ending}", format=kind)
        detmap.write(found, tmp_path / f"found{ending}", format=kind, ground_truth=truth)
        truth = detmap.read(tmp_path / f"truth{ending}", "ground_truth")
        found = detmap.read(tmp_path / f"found{ending}", "detections", ground_truth=truth)
    said = [code for code in detmap.evaluate(truth, found).notices if "normalised" in code or "shares" in code]
    assert said == ([] if SHARES[world] is None else [SHARES[world]])
    (sentence, *_) = [*describe(dict.fromkeys(said, 60)), "multiply x and width by the image's width"]
    assert "multiply x and width by the image's width" in sentence
    codes = {one.code for one in detmap.check(truth, found).findings}
    wanted = {"shares_of_images": {"shares_of_images"}, None: set()}.get(SHARES[world], {"normalised_boxes"})
    assert codes & {"normalised_boxes", "shares_of_images"} == wanted


@pytest.mark.parametrize("role", ["ground_truth", "detections"])
def test_shares_in_lines_of_text_need_sizes_on_either_side(role, tmp_path):
    """Also where detections reach beyond their images."""
    _, near = shares_of(("shares", "shares"), np.random.default_rng(6))
    (tmp_path / "lines").mkdir()
    score = " 0.5" if role == "detections" else ""
    lines = "".join(f"cat{score} {' '.join(map(repr, box))}\n" for box in near.tolist())
    (tmp_path / "lines" / "a.txt").write_text(lines)
    with pytest.raises(InputError, match=r"the size of the image is not known, and boxes are shares of it \(got 'a'\)"):
        detmap.read(tmp_path / "lines", role)
    assert detmap.read(tmp_path / "lines", role, image_sizes="64x64").notices["boxes_read_as_shares"] == len(near)


def test_tiny_boxes_in_pixels_are_no_shares():
    """Whole numbers are pixels, and so are a few fractions among larger boxes."""
    ids = {"image_ids": [1] * 20, "category_ids": [1] * 20}
    boxes = np.array([[k % 2, 0, 1, 1] for k in range(20)], float)
    scores = np.linspace(0, 1, 20)
    tiny = detmap.Detections.from_arrays(**ids, boxes=boxes, scores=scores)
    for other in (boxes, boxes * 50):
        truth = detmap.GroundTruth.from_arrays(**ids, boxes=other)
        assert not [code for code in detmap.evaluate(truth, tiny).notices if "normalised" in code or "shares" in code]
    boxes[:15] = [0.25, 0.25, 0.5, 0.5]
    boxes[15:] = [3, 4, 50, 60]
    mixed = detmap.Detections.from_arrays(**ids, boxes=boxes, scores=scores)
    assert not [code for code in detmap.evaluate(truth, mixed).notices if "normalised" in code or "shares" in code]
    none = detmap.Detections.from_arrays(**ids, boxes=np.zeros((20, 4)), scores=scores)
    assert not [code for code in detmap.evaluate(truth, none).notices if "normalised" in code or "shares" in code]


def test_nothing_is_said_of_nothing():
    truth, found = tables(500, 1)
    empty = detmap.Detections.from_arrays(image_ids=[], category_ids=[], boxes=[], scores=[])
    assert "normalised_detections" not in detmap.evaluate(truth, empty).notices
    none = detmap.GroundTruth.from_arrays(image_ids=[], category_ids=[], boxes=[], images=[1, 2], categories=[1, 2])
    assert detmap.evaluate(none, found).notices == {"empty_categories": 2}


def test_fractions_are_noticed_where_other_images_are_dropped():
    truth, found = tables(500, 1, "cxcywh")
    truth = detmap.GroundTruth.from_arrays(image_ids=[1], category_ids=[1], boxes=[[0, 0, 500, 300]])
    assert detmap.evaluate(truth, found.on_images_of(truth, "ignore")).notices["normalised_detections"] == 2


def test_an_evaluator_notices_fractions_too():
    evaluator = detmap.Evaluator()
    for i in range(3):
        evaluator.update(
            {"boxes": [[0.1, 0.1, 0.5, 0.6]], "scores": [0.5], "labels": [1]},
            {"boxes": [[10, 10, 50, 60]], "labels": [1]},
            image_ids=i,
        )
    assert evaluator.compute().notices == {"normalised_detections": 3}
    assert "3 detections lie within about 0 to 1" in describe(evaluator.compute().notices)[0]


@pytest.mark.slow
@workloads.needs_real_data
@pytest.mark.compiled
def test_real_results_without_two_classes():
    """Detector b comes without files for chair and person."""
    path = workloads.REAL_DATA / "voc2007" / "detections_b.tar.gz"
    truth = detmap.read_voc(workloads.REAL_DATA / "voc2007" / "Annotations.tar.gz")
    zero = detmap.evaluate(truth, read_detections(path, truth), "voc2007")
    assert zero.notices.keys() >= {"missing_classes:chair", "missing_classes:person"}
    assert zero["AP_chair"] == zero["AP_person"] == 0.0
    skip = detmap.evaluate(truth, read_detections(path, truth, missing_classes="skip"), "voc2007")
    assert list(skip) == [name for name in zero if name not in ("AP_chair", "AP_person")]
    assert all(skip[name] == zero[name] for name in skip if name != "mAP")
    assert skip["mAP"] == np.mean([value for name, value in skip.items() if name != "mAP"])
    with pytest.raises(InputError, match="have no result file: chair, person"):
        read_detections(path, truth, missing_classes="error")


def polygons(sides, number=3):
    """Ground truth and results of masks, in pixels where a side is 100, and in shares of the image where it is 1."""

    def drawn(side):
        return [[at * side / 100 for at in (10, 10, 50, 10, 50, 50, 10, 50)]]

    images = [{"id": n, "width": 100, "height": 100} for n in range(1, number + 1)]
    common = [{"image_id": n, "category_id": 1} for n in range(1, number + 1)]
    objects = [
        {
            **one,
            "id": one["image_id"],
            "iscrowd": 0,
            "area": 1600,
            "bbox": [10, 10, 40, 40],
            "segmentation": drawn(sides[0]),
        }
        for one in common
    ]
    results = [{**one, "score": 0.5, "segmentation": drawn(sides[1])} for one in common]
    return {"images": images, "categories": [{"id": 1, "name": "a"}], "annotations": objects}, results


@pytest.mark.slow
@pytest.mark.parametrize("number", [3, 20_000])  # the latter is scanned
def test_polygons_that_are_shares_of_images_are_noticed(number):
    for sides, sum_of in (((100, 1), 1), ((1, 100), 1), ((1, 1), 2), ((100, 100), 0), ((100, 4), 0)):
        dataset, results = polygons(sides, number)
        truth = detmap.read_coco(json.dumps(dataset).encode(), iou_type="segm")
        found = detmap.read_coco_results(json.dumps(results).encode(), truth, iou_type="segm")
        notices = detmap.evaluate(truth, found).notices
        assert notices.get("normalised_polygons", 0) == sum_of * number
    [said] = describe({"normalised_polygons": 3})
    assert said.startswith(
        "3 records have polygons within about 0 to 1, as shares of an image do: drawn as pixels, these"
    )
    few = detmap.read_coco(polygons((1, 1), 2)[0], iou_type="segm")  # tiny polygons may be meant
    assert not few.notices.get("normalised_polygons")
