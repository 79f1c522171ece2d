"""What messages say: the place in the file, the names that there are, and advice that can be followed where it is given."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from batches import FIXTURES, TRUTH, run, write

import detmap
from detmap.cli import main
from detmap.data.notices import NOTICES, describe
from detmap.errors import InputError, OptionError, StateError
from detmap.retrieval import average_precision_score, evaluate_run

RECORDS = json.loads((FIXTURES / "detections.json").read_text())[:40]
BOXES = [[0, 0, 1, 1]]


@pytest.fixture(scope="module")
def result():
    truth = detmap.read_coco(TRUTH)
    return detmap.evaluate(
        truth, detmap.read_coco_results(FIXTURES / "detections.json", truth), iou_thresholds=[0.6, 0.7]
    )


def test_advice_about_inverted_boxes_holds_on_the_command_line(tmp_path, capsys):
    """COCO's files have no such choice, and its flag is another one."""
    path = write(tmp_path, "dt.json", json.dumps([{**RECORDS[0], "bbox": [50, 50, 10, -10]}]))
    code, _, err = run(capsys, "eval", TRUTH, path)
    assert code == 2
    assert "COCO's files hold sizes; box_format='xyxy' (--box-format xyxy) where the format has a choice" in err


@pytest.mark.parametrize("unknown", ["error", "ignore"])
def test_image_ids_of_another_type_are_that_and_are_not_all_dropped(unknown):
    truth = detmap.read_coco(TRUTH)
    found = detmap.Detections.from_arrays(image_ids=["1"], category_ids=[1], boxes=BOXES, scores=[0.5])
    message = (
        r"detections: field 'image_id': image ids such as '1' never match the ground truth's, such as \d+; write both"
    )
    with pytest.raises(InputError, match=message):
        found.on_images_of(truth, unknown)
    with pytest.raises(InputError, match=message):
        detmap.evaluate(truth, found)


def test_a_curve_where_half_was_not_evaluated_is_at_the_first_threshold(result):
    category = result.categories[0][0]
    assert np.array_equal(result.curve(category).precision, result.curve(category, 0.6).precision)
    assert np.array_equal(result.counts().true_positives, result.counts(0.6).true_positives)
    with pytest.raises(OptionError, match=r"IoU 0.5 was not evaluated; these were: 0.6, 0.7"):
        result.curve(category, 0.5)


def test_a_category_that_was_not_evaluated_is_told_with_those_that_were(result):
    with pytest.raises(OptionError, match=r"category 'unicorn' was not evaluated; these were: person, "):
        result.curve("unicorn")
    many = detmap.GroundTruth.from_arrays(image_ids=[1] * 30, category_ids=list(range(30)), boxes=BOXES * 30)
    none = detmap.Detections.from_arrays(image_ids=[], category_ids=[], boxes=[], scores=[])
    with pytest.raises(OptionError, match=r"these were: 0, 1, .*, 19 and 10 more$"):
        detmap.evaluate(many, none).curve(99)


def test_values_of_other_types_are_one_line(result):
    with pytest.raises(InputError, match="field 'category_names': must be a mapping of category id to name, not list"):
        detmap.GroundTruth.from_arrays(image_ids=[1], category_ids=[1], boxes=BOXES, category_names=["a"])
    for merge in (result.tally.merge, detmap.Evaluator().merge):
        with pytest.raises(StateError, match=r"only an? \w+ can be merged, not NoneType"):
            merge(None)
    for given in ("cat", b"cat"):
        with pytest.raises(InputError, match="field 'categories': is a single string; for one category write"):
            detmap.Evaluator(categories=given)
    truth = detmap.GroundTruth.from_arrays(image_ids=["a"], category_ids=["b"], boxes=BOXES)
    none = detmap.Detections.from_arrays(image_ids=["a"], category_ids=["b"], boxes=BOXES, scores=[1])
    with pytest.raises(InputError, match="field 'category_ids': is a single string"):
        detmap.evaluate(truth, none, category_ids="b")


@pytest.mark.parametrize("categories", [5, [["a"]], 1.5])
def test_categories_that_are_no_ids_are_one_line(categories):
    """They were TypeErrors of Python."""
    with pytest.raises(InputError, match="field 'categories': must be integers or strings"):
        detmap.Evaluator(categories=categories)


def test_a_box_of_a_pixel_is_no_box_of_no_width():
    """Under VOC, whose corners are pixels of the box."""
    truth = detmap.GroundTruth.from_arrays(image_ids=[1], category_ids=[1], boxes=[[5, 5, 5, 9]], box_format="xyxy")
    found = detmap.Detections.from_arrays(
        image_ids=[1], category_ids=[1], boxes=[[5, 5, 5, 9]], scores=[1], box_format="xyxy"
    )
    assert detmap.evaluate(truth, found, "voc2012")["mAP"] == 1
    assert dict(detmap.evaluate(truth, found, "voc2012").notices) == {}
    assert describe(detmap.evaluate(truth, found).notices) == ["2 boxes of no width or height"]


def test_one_of_a_kind_is_told_so():
    said = {code: describe({code: 1})[0] for code in NOTICES}
    assert said["zero_sized_boxes"] == "1 box of no width or height"
    assert said["duplicate_annotation_ids"].startswith("1 annotation repeats an id: ")
    assert said["short_rankings"].startswith("1 query has fewer neighbours")
    assert said["boxes_read_as_xyxy"].startswith("1 box is taken for left")
    assert said["normalised_detections"].startswith("1 detection lies within about 0 to 1")
    plural = re.compile(r"\b1 (annotations|boxes|categories|classes|files|detections|queries|records|results|lines)\b")
    assert not [text for text in said.values() if plural.search(text)]
    assert describe({"zero_sized_boxes": 11}) == ["11 boxes of no width or height"]


# ------------------------------------------------------------------------------------------------- the place in a file


@pytest.mark.compiled
def test_text_that_is_not_utf_8_is_told_with_its_place():
    """In a field that is not read, too: JSON is UTF-8."""
    data = json.dumps([{**RECORDS[0], "segmentation": [[0, 0, 9, 0, 9, 9]]}], indent=1).encode()
    odd = data.replace(b'"score"', b'"x": "\xff", "score"')
    for iou_type in ("bbox", "segm"):
        with pytest.raises(InputError, match=r"is not UTF-8 at byte \d+, in line \d+; JSON is UTF-8: write the file"):
            detmap.read_coco_results(odd, iou_type=iou_type)


@pytest.mark.compiled
def test_an_unknown_image_in_a_file_of_a_class_is_told_with_file_and_line(tmp_path, capsys):
    box = "<bndbox><xmin>5</xmin><ymin>5</ymin><xmax>9</xmax><ymax>9</ymax></bndbox>"
    write(tmp_path, "ann/1.xml", f"<annotation><object><name>dog</name>{box}</object></annotation>")
    write(tmp_path, "res/comp4_det_test_dog.txt", "1 0.5 5 5 9 9\n")
    write(tmp_path, "res/comp4_det_test_unicorn.txt", "1 0.5 5 5 9 9\n\n77 0.5 5 5 9 9\n")
    code, _, err = run(capsys, "eval", tmp_path / "ann", tmp_path / "res", "--protocol", "voc2012")
    assert code == 2
    assert "comp4_det_test_unicorn.txt: line 3, field 'image_id': is not an image of the ground truth (got '77')" in err
    write(tmp_path, "res/comp4_det_test_dog.txt", "1 0.5 5 5 9 9\n78 0.4 1 1 2 2\n")
    code, _, err = run(capsys, "eval", tmp_path / "ann", tmp_path / "res", "--protocol", "voc2012")
    assert "comp4_det_test_dog.txt: line 2, field 'image_id'" in err


@pytest.mark.compiled
def test_errors_about_runs_and_judgements_name_file_and_line(tmp_path, capsys):
    qrels = write(tmp_path, "qrels.txt", "q1 0 d1 1\nq1 0 d2 0\n")
    ranked = write(tmp_path, "run.txt", "q1 Q0 d1 1 0.5 x\nq1 Q0 d2 2 0.4 x\n")
    twice = write(tmp_path, "twice.txt", "q1 Q0 d1 1 0.5 x\n# \nq2 Q0 d1 1 0.5 x\nq1 Q0 d1 2 0.4 x\n")
    judged = write(tmp_path, "judged.txt", "q1 0 d1 1\nq1 0 d1 2\n")
    other = write(tmp_path, "other.txt", "q9 Q0 d1 1 0.5 x\n")
    for arguments, message in (
        ((qrels, twice), f"{twice}: line 4, query q1: document 'd1' is there twice"),
        ((judged, ranked), f"{judged}: line 2, query q1: document 'd1' is judged twice"),
        ((qrels, other), f"{other}: no query of the run is judged (got 'q9'); the judgements' queries are like 'q1'"),
    ):
        code, _, err = run(capsys, "trec", *arguments)
        assert code == 2
        assert message in err
    with pytest.raises(InputError, match=r"^run: query q1: document 'd1' is there twice"):
        evaluate_run(qrels, twice.read_bytes())


# ------------------------------------------------------------------------------------------------------- scikit-learn's


def test_errors_that_code_for_scikit_learn_catches():
    """The same types, and the words that it looks for."""
    sklearn = pytest.importorskip("sklearn.metrics")
    remedy = "Do not set pos_label or set pos_label to 1."
    cases = [
        (([0, 1], [0.1]), {}, "inconsistent numbers of samples: [2, 1]"),
        (([0, 1], [0.1, np.nan]), {}, "Input contains NaN"),
        (([0, 1], [0.1, np.inf]), {}, "Input contains infinity"),
        (([0, 1], [0.1, 0.2]), {"pos_label": 5}, "pos_label=5 is not a valid label. It should be one of [0 1]"),
        (([0, 1], [0.1, 0.2]), {"sample_weight": [1.0]}, "inconsistent numbers of samples: [2, 2, 1]"),
        (
            ([0, 1, 2], np.ones((3, 3))),
            {"pos_label": 2},
            f"Parameter pos_label is fixed to 1 for multiclass y_true. {remedy}",
        ),
        (
            ([[0, 1], [1, 0]], np.ones((2, 2))),
            {"pos_label": 0},
            f"Parameter pos_label is fixed to 1 for multilabel-indicator y_true. {remedy}",
        ),
        (([0, 1, 2], np.array([0.1, 0.2, 0.3])), {}, "`y_score` needs to be of shape `(n_samples, n_classes)`"),
        (([0, 1], [0.1, 0.2]), {"average": 3}, ""),
        (([0, 1], [0.1, 0.2]), {"pos_label": [1]}, ""),
    ]
    for given, options, words in cases:
        kinds = []
        for score in (average_precision_score, sklearn.average_precision_score):
            with pytest.raises((ValueError, TypeError)) as caught:
                score(*given, **options)
            assert words in str(caught.value), words
            kinds.append({kind for kind in (ValueError, TypeError) if isinstance(caught.value, kind)})
        assert kinds[0] == kinds[1], words
    for score in (average_precision_score, sklearn.average_precision_score):
        with pytest.warns(UserWarning, match="No positive class found in y_true"):
            assert score([0, 0], [0.1, 0.2]) == 0


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["evl"], "eval"),
        (["eval", "a", "b", "--protcol", "coco"], "--protocol"),
        (["eval", "a", "b", "more", "--per-clss"], "--per-class"),
        (["trec", "a", "b", "--metrcs=map"], "--metrics"),
        (["eval", "a", "b", "--protocol", "cocoo"], "coco"),
        (["eval", "a", "b", "--format", "jsn"], "json"),
        (["eval", "a", "b", "--zzzz"], None),
        (["retrieval", "a", "b"], None),
        (["rep", "a", "b"], "report"),
        (["eval", "a", "b", "--format", "zzzz"], None),
    ],
)
def test_commands_options_and_values_that_are_nearly_right(words, meant, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert ("did you mean" in said) == (meant is not None)
    assert meant is None or f"did you mean {meant!r}?; see detmap" in said


def test_out_has_a_short_name(tmp_path):
    path = tmp_path / "truth.csv"
    path.write_text("image_id,category_id,x1,y1,x2,y2\n1,1,1,1,5,5\n")
    assert main(["check", str(path), "--quiet", "-o", str(tmp_path / "check.json")]) == 0
    assert (tmp_path / "check.json").is_file()


@pytest.mark.parametrize(
    ("truth", "found", "protocol"),
    [
        ("nuscenes/samples.json", "nuscenes/results.json", "nuscenes"),
        ("temporal/activitynet.json", "temporal/activitynet_results.json", "activitynet"),
        ("temporal/thumos14/annotation", "temporal/thumos14/detections.txt", "thumos14"),
        ("ytvis/ground_truth.json", "ytvis/results.json", "ytvis"),
    ],
)
def test_files_of_a_benchmark_name_its_protocol_where_another_one_is_asked_for(truth, found, protocol, capsys):
    files = [str(FIXTURES.parent / truth), str(FIXTURES.parent / found)]
    assert main(["eval", *files]) == 2
    assert f"its benchmark's rules: --protocol {protocol}; otherwise choose a kind of shape" in capsys.readouterr().err
    assert main(["check", *files]) in (0, 1)  # which asks for no rules
    assert " objects, " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("eval coco/ground_truth.json coco/detections.json --iou-type box3d", "hold no shapes of the kind 'box3d'"),
        ("eval ytvis/ground_truth.json coco/detections.json --protocol ytvis", "files of these formats do: ytvis"),
        (
            "eval temporal/activitynet.json no/there.json --protocol activitynet",
            "there.json: no such file; check the path",
        ),
        (
            "eval coco/ground_truth.json coco/detections.json --protocol kitti",
            "which levels or ranges of the rules ask for",
        ),
        ("eval coco/ground_truth.json coco/detections.json --iou-thresholds 50", "at most 1; did you mean 0.5?"),
        ("pq panoptic/ground_truth.json panoptic/before", "is a folder; give a file; did you mean '"),
        ("report coco/ground_truth.json coco/detections.json -o a.pdf", "a page of HTML, not .pdf: name it .html"),
        ("report --pq panoptic/ground_truth.json panoptic/before.json -o a.json", "not .json: name it .html"),
        ("batch coco/ground_truth.json EMPTY", "is an empty folder; is it the right one?"),
        ("trec RUN QRELS", "are the arguments swapped? The qrels come first"),
        ("reid ARRAYS", "no array distances, query_features and gallery_features, or indices"),
        ("convert temporal/activitynet.json EMPTY --to thumos14", "(got 'Long jump'); rename the class: --class-map"),
    ],
)
def test_mistakes_of_new_users_name_the_remedy(words, says, tmp_path, capsys):
    (tmp_path / "EMPTY").mkdir()
    (tmp_path / "RUN").write_text("q1 Q0 d1 0 1.5 x\n")
    (tmp_path / "QRELS").write_text("q1 0 d1 1\n")
    with (tmp_path / "ARRAYS").open("wb") as file:
        np.savez(file, query=np.ones((2, 2)), query_ids=[1, 2], gallery_ids=[1, 2])
    given = [
        str(tmp_path / one if one.isupper() else FIXTURES.parent / one if "/" in one else one) for one in words.split()
    ]
    try:
        code = main(given)
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_panoptic_files_are_sent_to_their_command(capsys):
    folder = FIXTURES.parent / "panoptic"
    assert main(["eval", str(folder / "ground_truth.json"), str(folder / "before.json")]) == 2
    assert "'category_id': is missing; panoptic segmentation is scored by detmap pq" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["eval", "a", "b", "--iou-type", "mask"], "unknown iou_type 'mask'; did you mean 'segm'? one of: "),
        (
            ["eval", "a", "b", "--protocol", "coca"],
            "invalid choice: 'coca'; did you mean 'coco'?; see detmap eval --help",
        ),
        (["trec", "a", "b", "--metrics", "mpa"], "unknown metric 'mpa'; did you mean 'map'? one of: "),
        (["trec", "a", "b", "--metrics", "ndgc@10"], "unknown metric 'ndgc@10'; did you mean 'ndcg'? one of: "),
        (["trec", "a", "b", "--convention", "trek"], "unknown convention 'trek'; did you mean 'trec'? one of: "),
        (
            ["explain", "a", "b", "--from", "ultralitics"],
            "unknown protocol 'ultralitics'; did you mean 'ultralytics'? ",
        ),
        (["eval", "found.jsn", "b"], "found.jsn: no such file; check the path; did you mean 'found.json'?"),
        (["eval", "zzz", "b"], "zzz: no such file; check the path"),
        (["eval", "a", "b", "--interpolation", "101point"], "not '101point'; did you mean '101-point'?"),
    ],
)
def test_values_that_are_nearly_right_name_what_may_be_meant(words, says, capsys, monkeypatch, tmp_path):
    (tmp_path / "found.json").write_text("[]")
    monkeypatch.chdir(tmp_path)
    try:
        code = main(words)
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    error = capsys.readouterr().err
    assert says in error
    assert ("did you mean" in error) == ("did you mean" in says)
