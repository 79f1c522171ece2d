"""The report, written by the command: what it says. That it can be looked at is in test_report_pages.py."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import sys
from datetime import datetime, timezone
from functools import partial

import numpy as np
import pytest
from growth import clutter  # a part from outside, which every report shows
from pages import FILES, ROOT, hostile_files

import detmap
from detmap import cli, explanations
from detmap.checks import check
from detmap.data.notices import describe
from detmap.detection.protocols import PRESETS
from detmap.diagnostics import PARTS
from detmap.errors import MissingDependencyError, OptionError
from detmap.formats.coco import read as coco
from detmap.installation import install_command
from detmap.reports import charts, detectors, diagnosis, galleries, pictures, rules, sections, tables
from detmap.reports.pictures import Pictures

pytestmark = pytest.mark.plugins("clutter")

MADE = datetime(2026, 1, 2, 3, 4, tzinfo=timezone.utc)


def run(capsys, *words):
    try:
        code = cli.main(["report", *map(str, words)])
    except SystemExit as stop:
        code = stop.code
    return code, *capsys.readouterr()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The page about two models, as the command writes it."""
    folder = tmp_path_factory.mktemp("report")
    out = folder / "report.html"
    words = [*hostile_files(folder), "--out", out, "--bootstrap", 200, "--permutations", 200, "--quiet"]
    assert cli.main(["report", *map(str, words)]) == 0
    return out


# ---------------------------------------------------------------------------------------------------------- what it says


@pytest.mark.slow
def test_the_first_screen(written):
    text = written.read_text("utf-8")
    truth = detmap.read(written.parent / "truth.json", "ground_truth", image_facts=True)
    found = detmap.read(written.parent / "after.json", "detections", ground_truth=truth)
    result, made = detmap.evaluate(truth, found), detmap.diagnose(truth, found)
    assert f'<strong title="the best">{result["AP"]:.4f}</strong>' in text
    for name in result:  # the names that detmap eval prints, and what each is of
        assert f'<th scope="row" class="text">{name} <span class="of">' in text
    assert 'AP_small <span class="of">IoU 0.5 to 0.95 · small, area to 32²</span>' in text
    assert 'AR_10 <span class="of">IoU 0.5 to 0.95 · 10 an image</span>' in text
    assert text.index("this is more than chance") < text.index('<section id="differences"')
    tide = made.tide()
    assert f"would be {tide['AP'] + tide['dAP_Miss']:.4f} instead of {tide['AP']:.4f}" in text
    assert f"score {made.score:.3f} or more" in text
    order = [text.index(f'<section id="{name}"') for name in ("differences", "errors", "ap", "images")]
    assert order == sorted(order)
    assert text.count("SHA-256") == 3
    assert made.protocol.describe() in text
    assert f"with detmap {detmap.__version__}" in text


def test_a_part_from_outside_is_shown(written):
    assert clutter.CLUTTER.says.capitalize() in written.read_text("utf-8")
    assert "by number of objects" in written.read_text("utf-8")


def test_a_part_from_outside_that_refuses_is_a_sentence(monkeypatch):
    def refuse(_):
        raise OptionError("there is nothing <b>")

    monkeypatch.setattr(PARTS, "find", lambda name, find=PARTS.find: refusing if name == "clutter" else find(name))
    refusing = dataclasses.replace(clutter.CLUTTER, make=refuse)
    text = diagnosis.html([model(*some_tables(3, 0.5))], [], MADE)
    assert "This cannot be told: there is nothing &lt;b&gt;." in text


@pytest.mark.parametrize(
    ("count", "permutations", "said"),
    [
        (3, 200, "there are too few images to tell"),
        (40, 200, "this may well be chance"),
        (40, 1, "this may well be chance"),  # on one image they differ: there is one permutation
    ],
)
def test_what_is_said_of_models_that_cannot_be_told_apart(count, permutations, said):
    """The better one misses an object less."""
    truth, found = some_tables(count, 0.5)
    results = {
        name: detmap.evaluate(truth, found.take(np.arange(count - fewer))) for name, fewer in (("a", 1), ("b", 0))
    }
    made = sections.compared(detmap.compare(results, 200, permutations=permutations))
    assert said in made.panels[0][1][0].text


def test_too_few_permutations_are_not_called_chance():
    truth, found = some_tables(40, 0.5)
    results = {name: detmap.evaluate(truth, found.take(np.arange(many))) for name, many in (("a", 40), ("b", 20))}
    made = sections.compared(detmap.compare(results, 200, permutations=9))
    assert "there are too few permutations to tell whether this is chance" in made.panels[0][1][0].text
    assert "No test of a class could be significant." in [getattr(one, "text", "") for one in made.panels[0][1]]


def test_other_conventions(written):
    """AP under each named protocol, and which rule moves it most: what detmap explain and detmap eval say."""
    text = written.read_text("utf-8")
    truth = detmap.read(written.parent / "truth.json", "ground_truth")
    found = detmap.read(written.parent / "after.json", "detections", ground_truth=truth)
    assert ">Under other conventions</h2>" in text
    made = {one.name: one for one in explanations.under_presets(truth, found)}
    for name, protocol in PRESETS.items():
        if name not in made:
            continue
        if name in ("voc2007", "ultralytics", "torchmetrics"):
            explained = explanations.explain(truth, found, "coco", protocol)
            assert made[name].value == explained.target_value
            assert made[name].difference == explained.target_value - explained.source_value
        assert f'>{name}</td><td data-value="{made[name].value:.9g}">{made[name].value:.4f}' in text
    assert len(made) >= 8
    assert made["voc2012"].reason == "iou_thresholds: 0.5"
    alone = detmap.evaluate(truth, found, iou_thresholds=[0.5])["AP"] - detmap.evaluate(truth, found)["AP"]
    assert made["voc2012"].alone == alone
    plain = explanations.under_presets(truth, found, reasons=False)
    assert {one.name: one.value for one in plain} == {name: one.value for name, one in made.items()}
    assert {one.reason for one in plain} == {""}
    assert "detmap explain does that" in str(rules.under_others("m", "coco", 0.5, plain))


def test_whether_an_order_survives(written):
    text = written.read_text("utf-8")
    assert ">Does it survive</h2>" in text
    assert "That after is above &lt;i&gt;before&amp; (" in text
    assert "Which of after and &lt;i&gt;before&amp; is above" in text


def test_what_ends_an_order_is_named():
    """Two models of which each is better by other rules."""
    truth, found = some_tables(40, 0.5)
    boxes = truth.shapes["bbox"].arrays()["table"]
    loose = detmap.Detections.from_arrays(
        image_ids=np.arange(40), category_ids=np.arange(40) % 3, boxes=boxes * [1, 1, 1, 1.4], scores=np.full(40, 0.5)
    )
    models = {"few": found.take(np.arange(28)), "loose": loose}
    made = explanations.survives(truth, models, replicates=200)
    assert made.claims[0].against
    section = rules.survival(made)
    titles = [block.title for _, blocks in section.panels for block in blocks if block.kind == "table"]
    assert titles == ["Which of few and loose is above", "What ends the order of few and loose, least changes first"]


@pytest.mark.slow
def test_what_takes_long_is_left_out_and_said(capsys, tmp_path, monkeypatch):
    words = [FILES[0], *two_copies(tmp_path), "--out", tmp_path / "a.html", "--quiet", "--bootstrap"]
    assert run(capsys, *words, 0) == (0, "", "")
    assert "Without draws of images this is left out" in (tmp_path / "a.html").read_text("utf-8")
    monkeypatch.setattr(detectors, "SURVIVAL", 10)
    monkeypatch.setattr(detectors, "REASONS", 10)
    assert run(capsys, *words, 200) == (0, "", "")
    text = (tmp_path / "a.html").read_text("utf-8")
    assert "detections this is left out: detmap compare --under all tells it" in text
    assert "detmap explain does that" in text


def two_copies(folder):
    found = json.loads(FILES[1].read_text())
    for name, part in (("one.json", found), ("two.json", found[::2])):
        (folder / name).write_text(json.dumps(part))
    return folder / "one.json", folder / "two.json"


def test_models_are_compared(written):
    text = written.read_text("utf-8")
    for title in ("Differences", "Difference of AP, 95 % interval and test", "AP after", "AP &lt;i&gt;before&amp;"):
        assert title in text
    assert "than &lt;i&gt;before&amp;, 95 % interval 0." in text
    assert "this is more than chance" in text
    models, classes, _ = text.partition('<section id="differences"')[2].split("<tbody>", 2)
    assert ("<button>category</button>" in models, "<button>category</button>" in classes) == (False, True)


def test_one_model_without_interval_but_with_attributes(capsys, tmp_path):
    attributes = tmp_path / "a.csv"
    attributes.write_text("image_id,weather\n65464,rain\n")
    words = [*FILES, "--out", tmp_path / "a.html", "--bootstrap", 0, "--attributes", attributes]
    code, out, err = run(capsys, *words)
    assert (code, out) == (0, "")
    assert f"wrote {tmp_path / 'a.html'}" in err
    text = (tmp_path / "a.html").read_text("utf-8")
    assert "no interval was asked for" in text
    assert "weather" in text
    assert "Differences" not in text


@pytest.mark.parametrize(
    ("files", "words", "said"),
    [
        (FILES, ["--ignore-categories"], "<dt>Classes</dt><dd>1</dd>"),
        (("people/ground_truth.json", "people/masks.json"), ["--iou-type", "segm"], "Worst images"),
        (("people/ground_truth.json", "people/poses.json"), ["--iou-type", "keypoints"], "Worst images"),
        (("voc/Annotations", "voc/results"), ["--protocol", "voc2007"], "mAP"),
    ],
    ids=["one class", "masks", "poses", "folders of VOC"],
)
def test_other_kinds_and_protocols(capsys, tmp_path, files, words, said):
    paths = [ROOT / "fixtures" / one for one in files]
    code, _, err = run(capsys, *paths, *words, "--out", tmp_path / "a.html", "--bootstrap", 0, "--quiet")
    assert (code, err) == (0, "")
    text = (tmp_path / "a.html").read_text("utf-8")
    assert said in text
    assert "costs most" in text


def test_all_intervals(capsys, tmp_path):
    """Of scores to cut at, and of slices."""
    words = [*FILES, "--out", tmp_path / "a.html", "--bootstrap", 200, "--all-intervals", "--quiet"]
    assert run(capsys, *words) == (0, "", "")
    text = (tmp_path / "a.html").read_text("utf-8")
    assert "on other images it might be 0." in text
    for column in ("score low", "precision high", "p (Holm)"):
        assert f"<button>{column}</button>" in text


def test_what_was_dropped_is_said(capsys, tmp_path):
    found = json.loads(FILES[1].read_text())
    found[0]["image_id"] = 99999999
    (tmp_path / "odd.json").write_text(json.dumps(found))
    words = [FILES[0], tmp_path / "odd.json", "--unknown-images", "ignore", "--bootstrap", 0, "--quiet"]
    assert run(capsys, *words, "--out", tmp_path / "a.html")[0] == 0
    text = (tmp_path / "a.html").read_text("utf-8")
    truth = detmap.read(FILES[0], "ground_truth")
    read = detmap.read(tmp_path / "odd.json", "detections", ground_truth=truth, unknown_images="ignore")
    said = describe(detmap.evaluate(truth, read).notices)
    assert said
    assert [one for one in said if f"<li>{one}</li>" not in text] == []


def model(ground_truth, detections):
    return diagnosis.Model(
        "m",
        detmap.diagnose(ground_truth, detections),
        detmap.evaluate(ground_truth, detections),
        checked=check(ground_truth, detections),
    )


def some_tables(count, score):
    """Images with an object and a detection each."""
    boxes = np.tile([0.0, 0.0, 10.0, 10.0], (count, 1))
    ids = np.arange(count)
    truth = {"image_ids": ids, "category_ids": ids % 3, "boxes": boxes}
    return (
        detmap.GroundTruth.from_arrays(**truth, images=np.arange(max(count, 3)), categories=np.arange(3)),
        detmap.Detections.from_arrays(**truth, scores=np.full(count, score)),
    )


@pytest.mark.parametrize(("count", "said"), [(0, "There is no score to cut at"), (3, "No error costs any AP")])
def test_nothing_at_all_and_nothing_wrong(count, said):
    assert said in diagnosis.html([model(*some_tables(count, 0.5))], [], MADE)


def test_what_cannot_be_told_is_a_sentence():
    """Scores above 1 cannot be calibrated: the rest is there."""

    text = diagnosis.html([model(*some_tables(3, 7.0))], [], MADE)
    assert "This cannot be told: only scores between 0 and 1 can be calibrated" in text
    assert "2026-01-02 03:04 UTC" in text


@pytest.mark.slow
@pytest.mark.compiled
def test_two_megabytes_are_enough_at_the_size_of_coco():
    """80 classes and long tables everywhere; what is on the page does not grow with images and detections."""
    rng = np.random.default_rng(1)
    images, objects = 400, 6_000
    corner = rng.uniform(0, 500, (objects, 2))
    truth = {
        "image_ids": rng.integers(0, images, objects),
        "category_ids": np.arange(objects) % 80,
        "boxes": np.column_stack([corner, corner + rng.uniform(8, 120, (objects, 2))]),
    }
    names = [f"class number {k}" for k in range(80)]
    gt = detmap.GroundTruth.from_arrays(
        **truth, images=np.arange(images), categories=np.arange(80), category_names=dict(enumerate(names))
    )
    found = {name: np.repeat(column, 4, axis=0) for name, column in truth.items()}
    found["boxes"] = found["boxes"] + rng.normal(0, 6, (4 * objects, 1))
    wrong = rng.random(4 * objects) < 0.3
    found["category_ids"] = np.where(wrong, rng.integers(0, 80, 4 * objects), found["category_ids"])
    text = diagnosis.html([model(gt, detmap.Detections.from_arrays(**found, scores=rng.random(4 * objects)))], [], MADE)
    assert len(text.encode()) < 2_000_000
    assert "56 others" in text


# --------------------------------------------------------------------------------------------------------------- its pieces


def test_bars_and_cells_of_a_table():
    rows = [{"class": "a", "AP": 0.25, "n": 1200}, {"class": "b" * 70, "AP": math.nan, "n": 300}]
    made = tables.table("t", rows, bars={"AP": 1.0, "n": None}, most=1, note="dAP: so it is")
    assert [cell["bar"] for cell in made.rows[0]] == [None, 25.0, 100.0]
    assert [cell["shown"] for cell in made.rows[0]] == ["a", "0.2500", "1,200"]
    assert (made.rows[0][2]["value"], made.more, made.note) == ("1200", 1, "dAP: so it is.")
    whole = tables.table("t", rows, bars={"AP": None})
    assert (whole.rows[1][1]["bar"], whole.rows[1][1]["value"], whole.broad) == (0, "", False)
    assert tables.table("t", []).columns == []
    assert [tables.table("t", [{"d": d}]).rows[0][0]["shown"] for d in (-1e-9, -0.5, -0.0)] == [
        "0.0000",
        "-0.5000",
        "0.0000",
    ]


def test_a_heat_table_keeps_all_counts():
    rng = np.random.default_rng(0)
    matrix = rng.integers(0, 9, (41, 41))
    made = charts.heat("t", [f"c{k}" for k in range(40)], matrix, most=10)
    shown = [[int(cell["shown"].replace(",", "") or 0) for cell in cells] for _, cells in made.rows]
    assert np.sum(shown) == matrix.sum()
    assert (len(made.columns), made.columns[10:]) == (12, ["30 others", "not found"])
    assert shown[-1][-1] == matrix[-1, -1]
    assert sum(shown[-1]) == matrix[-1].sum()


def test_a_curve_has_gaps_where_it_is_undefined():
    x = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    assert charts.line("l", x, np.array([1, 1, np.nan, 0, 0]), "main")["path"].count("M") == 2


# ----------------------------------------------------------------------------------------------------------------- pictures


def test_pictures_of_the_worst_images(capsys, tmp_path):
    """Those that are there and can be read; a name never leads out of the folder."""
    image = pytest.importorskip("PIL.Image")
    truth = json.loads(FILES[0].read_text())
    names = [one["file_name"] for one in truth["images"]]
    (tmp_path / "images").mkdir()
    for name in names[:-5]:
        image.new("RGB", (640, 480), "grey").save(tmp_path / "images" / name)
    (tmp_path / "images" / names[0]).write_bytes(b"no picture")
    out = tmp_path / "a.html"
    code, _, err = run(capsys, *FILES, "--out", out, "--bootstrap", 0, "--images", tmp_path / "images", "--quiet")
    assert (code, err) == (0, "")
    text = out.read_text("utf-8")
    assert text.count('<img src="data:image/jpeg;base64,') >= 20
    for style in ("hit", "wrong", "missed"):
        assert f'class="box {style}"' in text
    assert text.count("<figure") > 24  # suspicious labels too
    said = re.findall("[0-9]+ of these images [^.]+", text)
    assert said[:2] == ["5 of these images are not in the folder of images", "1 of these images cannot be read"]


def shapes_of(kind):
    """A circle and a shifted one that finds it, a circle of another class that nothing finds, and one without a label."""
    circles = [(100, 100), (104, 101), (300, 200), (420, 300)]
    grid = np.mgrid[:400, :520][::-1]
    if kind == "segm":
        masks = np.stack([np.hypot(grid[0] - x, grid[1] - y) < 60 for x, y in circles])
        return {"masks": masks[[0, 2]]}, {"masks": masks[[1, 3]]}
    angle = np.linspace(0, 6, 17)
    poses = [np.column_stack([x + 60 * np.cos(angle), y + 60 * np.sin(angle), np.full(17, 2.0)]) for x, y in circles]
    return {"keypoints": np.stack([poses[0], poses[2]])}, {"keypoints": np.stack([poses[1], poses[3]])}


@pytest.mark.parametrize("kind", ["segm", "keypoints"])
def test_masks_are_outlines_and_poses_are_points(tmp_path, kind):
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (520, 400), "grey").save(tmp_path / "7.jpg")
    truth, found = shapes_of(kind)
    given = {"image_ids": [7, 7], "category_ids": [0, 1]}
    gt = detmap.GroundTruth.from_arrays(**given, **truth, images=np.array([7]), categories=np.arange(2))
    given = {name: [*values, values[1]] for name, values in given.items()}  # one more, below the score
    found = {name: shapes[[0, 1, 1]] for name, shapes in found.items()}
    dt = detmap.Detections.from_arrays(**given, **found, scores=[0.9, 0.8, 0.05])
    made = detmap.diagnose(gt, dt, iou_type=kind, score=0.1)
    errors = galleries.Errors(made.tide(), made.confusion())
    rows = [{"image": "7", "image_id": 7, "dAP": 0.5}]
    worst = galleries.images(made, errors, rows, Pictures(tmp_path), 1)
    (picture,) = worst.pictures
    assert picture["says"] == "costs 0.5000 AP; found 1, missed 1, false positives 1 (1 Bkg)"
    assert picture["view"] == (0, 0, 520, 400)
    assert [mark["style"] for mark in picture["marks"]] == ["hit", "wrong", "missed"]
    suspicious = galleries.suspects(made, made.suspects().rows(), Pictures(tmp_path))
    marks = [mark for one in (worst, suspicious) for picture in one.pictures for mark in picture["marks"]]
    assert {mark["label"] for mark in marks} >= {"label", "detection", "missed: 1"}
    for mark in marks:
        if kind == "segm":
            corners = np.array([one.split() for one in mark["path"][1:-1].split("L")], float)
            assert 8 <= len(corners) <= 60
            middle = (corners.min(axis=0) + corners.max(axis=0)) / 2
            assert np.hypot(*(corners - middle).T) == pytest.approx(60, abs=3)
        else:
            assert mark["path"].count("M") == 17
    for one in suspicious.pictures:
        x, y, width, height = one["view"]
        assert 0 <= x < x + width <= 520
        assert 0 <= y < y + height <= 400
        assert width < 520


HUMAN = [[1, 2], [2, 3], [1, 4]]


def posed(folder, skeleton, points, found=None):
    """The marks of a pose that is found, in a picture without pixels, read from files with a skeleton."""
    person = {"image_id": 7, "category_id": 3, "keypoints": points, "bbox": [0, 0, 99, 99], "area": 9801, "iscrowd": 0}
    category = {"id": 3, "name": "person", "skeleton": skeleton}
    images = [{"id": 7, "file_name": "7.jpg", "width": 100, "height": 100}]
    truth = {"images": images, "annotations": [{"id": 1, "num_keypoints": 4, **person}], "categories": [category]}
    result = {"image_id": 7, "category_id": 3, "keypoints": found or points, "score": 0.9}
    for name, content in (("truth.json", truth), ("found.json", [result])):
        (folder / name).write_text(json.dumps(content), "utf-8")
    gt = detmap.read(folder / "truth.json", "ground_truth", iou_type="keypoints", image_facts=True)
    dt = detmap.read(folder / "found.json", "detections", ground_truth=gt, iou_type="keypoints")
    made = detmap.diagnose(gt, dt, "coco", sigmas=[0.1] * 4, score=0.1)
    return pictures.Shapes(made)


SQUARE = [10, 10, 2, 90, 10, 2, 90, 90, 2, 10, 90, 2]


def test_poses_have_the_limbs_of_their_skeleton(tmp_path):
    hidden = [10, 10, 2, 90, 10, 0, 90, 90, 2, 10, 90, 1]
    shapes = posed(tmp_path, HUMAN, hidden, found=SQUARE)
    assert shapes.limbs("detections", 0).tolist() == [
        [[10, 10], [90, 10]],
        [[90, 10], [90, 90]],
        [[10, 10], [10, 90]],
    ]
    assert shapes.limbs("ground_truth", 0).tolist() == [[[10, 10], [10, 90]]]  # its second point is not labelled
    mark = shapes.mark("detections", 0, "hit", "found", 1.0)
    bars = [one for one in mark["path"].split("Z") if "L" in one]
    assert bars == ["M10.0 10.9L90.0 10.9L90.0 9.1L10.0 9.1", "M89.1 10.0L89.1 90.0L90.9 90.0L90.9 10.0",
                    "M9.1 10.0L9.1 90.0L10.9 90.0L10.9 10.0"]  # fmt: skip
    assert mark["path"].count("a2.5") == 8  # four circles


def test_limbs_of_poses_without_a_labelled_point_are_all_drawn(tmp_path):
    unlabelled = [value if i % 3 < 2 else 0 for i, value in enumerate(SQUARE)]
    assert len(posed(tmp_path, HUMAN, SQUARE, found=unlabelled).limbs("detections", 0)) == 3


@pytest.mark.parametrize(
    "skeleton",
    [
        [],
        None,
        "<script>",
        {"1": 2},
        [[1, 2], [2, 5]],  # of a pose with more points, as in CrowdPose's file
        [[0, 1]],
        [[1, -2]],
        [[1, 2.5]],
        [[1, 2, 3]],
        [[1, "</path><script>"]],
        [[1, True]],
        [[1, 1e99]],
        [1, 2],
        [[1, 2]] * 501,
    ],
)
def test_a_skeleton_that_is_none_of_these_points_draws_nothing(tmp_path, skeleton):
    shapes = posed(tmp_path, skeleton, SQUARE)
    assert len(shapes.limbs("detections", 0)) == 0
    assert set(re.sub(r"[\d.]+", "", shapes.mark("detections", 0, "hit", "found", 1.0)["path"])) <= set("Ma -")


@pytest.mark.parametrize("least", [1 << 40, 0], ids=["parsed", "scanned"])
def test_skeletons_are_read_with_the_sizes_of_images(tmp_path, monkeypatch, least):
    """Scanned files have theirs as parsed ones do, under a map of classes and of some classes too; 2**32 is no size."""
    monkeypatch.setattr(coco, "_WORTH_SCANNING", least)
    truth = json.loads((ROOT / "fixtures/people/ground_truth.json").read_text())
    truth["categories"][1]["skeleton"] = HUMAN
    truth["images"][0]["height"], truth["images"][1]["height"] = 2**32, 2**32 - 1
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(truth), "utf-8")
    read = partial(detmap.read, path, "ground_truth", iou_type="keypoints")
    heights = read(image_facts=True, iou_type="bbox").images.sizes[:, 0]
    assert (heights.min(), heights.max()) == (0, 2**32 - 1)
    limbs = read(image_facts=True).categories.limbs
    assert [len(one) for one in limbs] == [19, 3]
    assert limbs[1] == ((0, 1), (1, 2), (0, 3))
    assert read(image_facts=False).categories.limbs is None
    assert read(image_facts=True, categories=["child"]).categories.limbs == limbs[1:]
    assert read(image_facts=True, class_map={"adult": "child"}).categories.limbs == limbs[1:]
    assert read(image_facts=True, class_map={"adult": "grown-up"}).categories.limbs == limbs


def test_a_simpler_outline_is_near_the_whole_one():
    """No corner that was left out is farther from the line than the tolerance; what closes it is kept."""
    rng = np.random.default_rng(3)
    walk = np.cumsum(rng.integers(-1, 2, (400, 2)), axis=0).astype(float)
    kept = pictures._simpler(walk, 2.0)
    assert len(kept) < len(walk) / 3
    starts, ends = kept, np.roll(kept, -1, axis=0)
    along = ends - starts
    share = ((walk[:, None] - starts) * along).sum(axis=2) / np.maximum((along**2).sum(axis=1), 1e-12)
    nearest = starts + np.clip(share, 0, 1)[..., None] * along
    ahead = np.hypot(*(walk[:, None] - nearest).transpose(2, 0, 1)).min(axis=1)
    assert ahead.max() <= 3.5
    assert pictures._simpler(walk[:4], 99.0).shape == (4, 2)


def test_names_of_images_stay_in_the_folder(tmp_path):
    pytest.importorskip("PIL.Image")
    inside = tmp_path / "in"
    (inside / "sub").mkdir(parents=True)
    for path in (tmp_path / "out.jpg", inside / "a.jpg", inside / "sub" / "b.png"):
        path.write_bytes(b"")
    folder = Pictures(inside)
    assert folder.find("a") == folder.find("a.jpg") == folder.find("/elsewhere/a.jpg") == inside / "a.jpg"
    assert folder.find("sub/b.png") == inside / "sub" / "b.png"
    for name in ("../out.jpg", str(tmp_path / "out.jpg"), "", "..", "x" * 5000, "\0"):
        assert folder.find(name) is None
    with pytest.raises(OptionError, match="the images must lie in a folder"):
        Pictures(inside / "a.jpg")


# ------------------------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "a.html", "--iou", "0.01"], "iou must be above 0.1"),
        (["--out", "a.html", "--images", "nowhere"], "the images must lie in a folder"),
        (["--out", "a.html", "--attributes", "nowhere.csv"], "nowhere.csv"),
        (["--out", "a.html", "--bootstrap", "7"], "200"),
    ],
)
def test_refusals_are_one_line(capsys, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *FILES, "--bootstrap", "0", "--quiet", *words)
    assert (code, out) == (2, "")
    assert message in err.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_without_out_the_page_is_called_report(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(capsys, *FILES, "--bootstrap", "0", "--quiet")[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize(("module", "extra"), [("jinja2", "report"), ("PIL.Image", "images")])
def test_what_is_not_installed_is_named_at_once(capsys, tmp_path, monkeypatch, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    words = [*FILES, "--out", tmp_path / "a.html", "--images", tmp_path, "--quiet"]
    code, out, err = run(capsys, *words)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert install_command(extra) in err


def test_the_library_says_so_too(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(
        MissingDependencyError, match=rf"the report needs jinja2: {re.escape(install_command('report'))}"
    ):
        diagnosis.html([model(*some_tables(3, 0.5))], [], MADE)


@pytest.mark.parametrize("categories", [[], [{"id": 1, "name": "a"}]])
def test_a_report_needs_something_to_find(tmp_path, categories):
    document = {"images": [{"id": 1, "width": 10, "height": 10}], "categories": categories, "annotations": []}
    (tmp_path / "truth.json").write_text(json.dumps(document))
    (tmp_path / "found.json").write_text("[]")
    with pytest.raises(detmap.InputError, match=r"truth.json: has nothing to find under coco, so that AP is undefined"):
        detmap.report(tmp_path / "truth.json", tmp_path / "found.json", tmp_path / "page.html")
