"""A search for the rules of quoted numbers: what chance would give, several numbers at once, and rules beyond protocols."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest
from batches import run
from test_explain import FOUND, ROOT, TRUTH
from test_ranking_search import QRELS, RUN

import detmap
from detmap.detection.protocols import COCO, PRESETS
from detmap.errors import InputError
from detmap.explanations import find_ranking_value, quotes, search, tries, vocabulary
from detmap.explanations.chance import Chance
from detmap.explanations.replay import Replay, trimmed
from detmap.retrieval import evaluate_run


@pytest.fixture(scope="module")
def pair():
    truth = detmap.read_coco(TRUTH)
    return truth, detmap.read_coco_results(FOUND, truth)


@pytest.fixture
def few(monkeypatch):
    """A vocabulary of few rows, over two named protocols."""
    monkeypatch.setattr(search, "GRID", {name: search.GRID[name] for name in ("min_score", "crowds")})
    wider = {name: vocabulary.WIDER[name] for name in ("nms", "twice", "mean", "other cuts")}
    monkeypatch.setattr(search, "WIDER", wider)
    monkeypatch.setattr(search, "PRESETS", {name: PRESETS[name] for name in ("coco", "ultralytics")})
    monkeypatch.setattr(tries, "_COMBINED", {1: 20, 2: 120, 3: 200})


def quoted(values):
    return {name: f"{value:.4f}" for name, value in values.items()}


# -------------------------------------------------------------------------------------------------------------- chance


@pytest.mark.parametrize("shape", ["one", "two", "line", "equal", "mixed"])
def test_as_many_agree_by_chance_as_are_expected(shape):
    """Over random numbers the expected count is the mean count, for one number, two, and two that move together."""
    rng = np.random.default_rng(0)
    expected, found = [], []
    for _ in range(150):
        first, second = rng.normal(0.5, 0.05, (2, 3001))
        values = {
            "one": first[:, None],
            "two": np.column_stack((first, second)),
            "line": np.column_stack((first, 0.2 + first / 2 + (second - 0.5) / 500)),
            "equal": np.column_stack((first, first)),
            "mixed": np.column_stack((first, np.where(np.arange(3001) % 2, first, second))),
        }[shape]
        width = {"two": 4e-3, "line": 4e-4, "mixed": 2e-3}.get(shape, 1e-4)
        # A value of the same kind that is not among those that were tried.
        ends = np.column_stack((values[0] - width / 2, values[0] + width / 2))
        inside = ((values[1:] >= ends[:, 0]) & (values[1:] <= ends[:, 1])).all(axis=1)
        expected.append(Chance(values[1:], ends).expected(np.ones(3000, np.bool_)))
        found.append(inside.sum())
    assert np.mean(found) > 0.3
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(expected) - np.mean(found)) < 3 * error + 0.25 * np.mean(found)


def test_what_agrees_is_not_expected_for_it():
    """A value that is found stands among few that are as usual: chance would hardly have given it."""
    values = np.array([[0.5], [0.3], [0.4], [0.6], [0.7]])
    ends = np.array([[0.49995, 0.50005]])
    chance = Chance(values, ends)
    assert 0 < chance.expected(np.ones(5, np.bool_)) < 0.01
    assert chance.expected(np.zeros(5, np.bool_)) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_a_random_number_is_called_chance(pair):
    """Where the only candidates are two unusual changes, none of them is called found."""
    rng, verdicts, expected, found = np.random.default_rng(1), [], [], []
    for value in rng.uniform(0.39, 0.42, 5):
        made = detmap.find_value(*pair, f"{value:.4f}")
        verdicts.append(made.verdict)
        expected.append(made.expected)
        found.append(made.matches)
    assert verdicts.count("found") <= 1
    assert any(found)
    assert 0.3 < np.mean(expected) / np.mean(found) < 3


def test_what_is_said_of_chance(pair):
    made = detmap.find_value(*pair, "0.4", most=2)
    assert made.verdict == "chance"
    assert made.matches > len(made.candidates) == 2
    told = " ".join(made.sentences())
    assert "This may be chance: none of these is shown to be the rule." in told
    assert "Another number tells them apart: --value AP50=…, or a class's AP, --value CLASS=…." in told
    assert f"There are {made.matches}." in told
    assert [float(row["by chance"]) > tries.FOUND for row in made.rows()] == [True, True]


# ------------------------------------------------------------------------------------------------------ several numbers


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("text", ["coco+min_score=0.25", "ultralytics+min_score=0.37", "coco"])
def test_two_numbers_find_the_rules(pair, text):
    rules = detmap.explanations.parse(text)
    result = detmap.evaluate(*pair, rules)
    values = {"AP": result["AP"], "AP50": result["AP50"]}
    made = detmap.find_value(*pair, quoted(values))
    first = made.candidates[0]
    assert first.values == pytest.approx(values, abs=1e-12)
    assert made.verdict == "found"
    assert made.expected < 0.1
    assert detmap.evaluate(*pair, first.protocol)["AP50"] == pytest.approx(values["AP50"], abs=1e-12)


@pytest.mark.usefixtures("few")
def test_a_class_is_a_number(pair):
    result = detmap.evaluate(*pair)
    by_class = dict(zip(pair[0].categories.names, result._by_category(None), strict=True))
    of_50 = dict(zip(pair[0].categories.names, result._by_category(0.5), strict=True))
    given = {"AP": result["AP"], "person": by_class["person"], "AP/cat": by_class["cat"], "AP50/cat": of_50["cat"]}
    made = detmap.find_value(*pair, quoted(given), most=1)
    assert made.candidates[0].base == "coco"
    assert made.candidates[0].values == pytest.approx(given, abs=1e-12)
    assert made.named["coco"] == pytest.approx(given, abs=1e-12)
    # One of them is off: then no rule fits.
    assert not detmap.find_value(*pair, quoted({**given, "person": given["person"] + 0.01})).candidates
    key = str(pair[0].categories.ids[pair[0].categories.names.index("person")])
    assert search._number(key, "AP", pair[0]) == search._number("person", "AP", pair[0])


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_three_changes_need_two_numbers(pair, monkeypatch):
    monkeypatch.setattr(search, "PRESETS", {"coco": COCO})
    looked = search._Looked(pair, [search.Number("AP", None), search.Number("AP50", None)], 1)
    changes = (("min_score", 5), ("nms", 2), ("mean", 2))
    values = [looked.value("coco", changes, at) for at in (0, 1)]
    both = detmap.find_value(*pair, quoted(dict(zip(("AP", "AP50"), values, strict=True))))
    assert len(both.tried) == 4
    assert values == pytest.approx(list(both.candidates[0].values.values()), abs=1e-12)
    assert sorted(both.candidates[0].changes) == sorted(("min_score 0.25", "nms 0.5", "mean by objects"))
    one = detmap.find_value(*pair, "0.9")
    assert (len(one.tried), one.tried[2] > 0) == (3, True)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({}, "value must hold a number"),
        ({"AP": "0.4", "ape": "0.5"}, "'ape' is neither a metric .* nor a class of the ground truth"),
        ({"AP50": "many"}, "the value must be a number"),
        ({"AP_huge": "0.4"}, "AP_huge"),
    ],
)
def test_numbers_that_cannot_be(pair, value, says):
    with pytest.raises(detmap.OptionError, match=says):
        detmap.find_value(*pair, value)


def test_a_class_without_objects_has_no_number(pair):
    truth = pair[0].take(np.flatnonzero(pair[0].categories.codes != 0))
    with pytest.raises(detmap.InputError, match="has no objects of that class"):
        detmap.find_value(truth, pair[1], {"AP": 0.4, truth.categories.names[0]: 0.4})


def test_the_command_takes_several_numbers(capsys, pair):
    result = detmap.evaluate(*pair)
    words = ["--value", f"{result['AP']:.4f}", "--value", f"AP50={result['AP50']:.4f}", "--most", 1]
    code, out, _ = run(capsys, "explain", TRUTH, FOUND, *words)
    assert code == 0
    assert out.startswith(f"AP {result['AP']:.4f} and AP50 {result['AP50']:.4f}: 1 candidate")
    assert "coco agrees better than chance" in out
    document = json.loads(run(capsys, "explain", TRUTH, FOUND, *words, "--format", "json", "--quiet")[1])
    assert document["verdict"] == "found"
    assert document["candidates"][0]["by_chance"] < 1e-3
    code, _, err = run(capsys, "explain", TRUTH, FOUND, "--value", "0.4", "--value", "AP=0.4")
    assert (code, "--value gives 'AP' twice" in err) == (2, True)


@pytest.mark.slow
def test_rankings_take_several_numbers():
    """A second metric leaves fewer conventions, and what is expected by chance says so."""

    @functools.cache  # the two searches score by the same conventions
    def score(convention):
        return evaluate_run(QRELS, RUN, ["mAP", "nDCG"], convention)

    value = score("oxford")
    one = find_ranking_value(score, f"{value['mAP']:.4f}", run=True)
    both = find_ranking_value(score, {name: f"{value[name]:.4f}" for name in ("mAP", "nDCG")}, run=True)
    assert both.matches <= one.matches
    assert both.expected < one.expected
    assert both.candidates[0].values == pytest.approx({name: value[name] for name in ("mAP", "nDCG")}, abs=1e-12)
    assert "conventions" in both.sentences()[-1]


# ------------------------------------------------------------------------------------------------- rules beyond protocols


def overlap(one, other):
    """Return the IoU of two boxes x, y, width, height."""
    sides = [min(one[at] + one[at + 2], other[at] + other[at + 2]) - max(one[at], other[at]) for at in (0, 1)]
    shared = max(sides[0], 0) * max(sides[1], 0)
    return shared / (one[2] * one[3] + other[2] * other[3] - shared)


@pytest.mark.parametrize("how", ["0.5", "0.6", "0.5 among all classes"])
def test_suppression_is_the_greedy_one(pair, how):
    """The tables say who is kept: the best of all, then each that no better one that is kept overlaps by more."""
    found = pair[1]
    rows = sorted(range(len(found)), key=lambda row: -found.scores[row])
    images, classes = found.images.codes, found.categories.codes
    kept, of_image = [], {}
    for row in rows:
        own = rivals = of_image.setdefault(images[row], [])
        if not how.endswith("classes"):
            rivals = [one for one in rivals if classes[one] == classes[row]]
        if all(overlap(found.boxes[one], found.boxes[row]) <= float(how.split()[0]) for one in rivals):
            own.append(row)
            kept.append(row)
    made = vocabulary.treated(pair, "nms", how)[1]
    assert len(made) < len(found)
    assert np.array_equal(made.boxes, found.boxes[sorted(kept)])
    assert vocabulary.treated((pair[0], made), "nms", how)[1] is made


def test_ways_to_make_files(pair):
    truth, found = pair
    for how, whole in (("xywh rounded", np.round), ("xywh truncated", np.trunc)):
        made = vocabulary.treated(pair, "boxes", how)[1]
        assert np.array_equal(made.boxes, whole(found.boxes))
    assert len(vocabulary.treated(pair, "twice", "detections")[1]) == 2 * len(found)
    assert len(vocabulary.treated(pair, "twice", "objects")[0]) == 2 * len(truth)
    areas = [one.boxes[:, 2] * one.boxes[:, 3] for one in pair]
    made = vocabulary.treated(pair, "least_area", "1024 of both")
    assert [len(one) for one in made] == [int((area >= 1024).sum()) for area in areas]
    assert len(made[0]) < len(truth)
    assert vocabulary.treated(pair, "least_area", "1024 of objects")[1] is found


@pytest.mark.parametrize("metric", ["AP", "AP50"])
def test_means_of_classes(pair, metric):
    """Each mean is what its definition gives of the AP of the classes, or of the images, scored by themselves."""
    truth, found = pair
    keep = truth.categories.codes != 0  # a class without objects, which has detections
    truth = truth.take(np.flatnonzero(keep))
    names = [metric, "AP"][: 1 + (metric != "AP")]
    looked = search._Looked((truth, found), [search.Number(name, None) for name in names], 1)
    value = {
        looked.grid["mean"][at]["mean"]: looked.value("coco", (("mean", at),), 0)
        for at in range(len(looked.grid["mean"]))
    }
    at = None if metric == "AP" else 0.5
    by_class = detmap.evaluate(truth, found)._by_category(at)
    assert np.isnan(by_class[0])
    assert value["absent classes 0"] == pytest.approx(np.nansum(by_class) / by_class.size)
    assert value["absent classes 0 if detected"] == pytest.approx(np.nansum(by_class) / by_class.size)
    objects = np.bincount(truth.categories.codes[~truth.crowd], minlength=by_class.size)
    assert value["by objects"] == pytest.approx(np.nansum(by_class * objects) / objects.sum())
    means = []
    for image in range(truth.images.ids.size):
        one = truth.take(np.flatnonzero(truth.images.codes == image))
        own = found.take(np.flatnonzero(found.images.ids[found.images.codes] == truth.images.ids[image]))
        of_image = detmap.evaluate(one, own)._by_category(at)
        if not np.isnan(of_image).all():
            means.append(np.nanmean(of_image))
    assert value["over images"] == pytest.approx(np.mean(means))


def test_numbers_of_one_evaluation_are_those_of_their_own(pair):
    """AP50 that is read from the evaluation of AP is AP50; its name says the threshold, whatever AP takes."""
    numbers = [search.Number("AP", None), search.Number("AP50", None)]
    looked = search._Looked(pair, numbers, 1)
    for name in looked.bases:
        own = Replay(*pair, "AP50").value(trimmed(PRESETS[name], "AP50")).value
        assert looked.value(name, (), 1) == pytest.approx(own, abs=1e-12)
        at = next(at for at, change in enumerate(looked.grid["iou_thresholds"]) if change["iou_thresholds"] == (0.75,))
        assert looked.value(name, (("iou_thresholds", at),), 1) == looked.value(name, (), 1)


def test_every_row_of_the_table_is_a_row(pair):
    """What is said of how usual rows are names rows that are there, and each change has a share of its own."""
    looked = search._Looked(pair, [search.Number("AP", None)], 1)
    assert set(looked.usual) <= set(looked.grid)
    assert sum(looked.usual.values()) <= 100
    made = tries.Tries(looked, [], [(0.1, 0.2)])
    assert (
        made.usual((("min_score", 0),)) > made.usual((("other cuts", 0),)) > made.usual((("other cuts", 0), ("nms", 0)))
    )
    page = (ROOT / "docs/explain.md").read_text()
    for label in looked.grid:
        assert f"| {label} | {looked.usual.get(label, tries._OTHERWISE):g} |" in page
        for at in range(len(looked.grid[label])):
            assert all(looked.words("coco", ((label, at),))) or not looked._decisions(looked.grid[label][at]).keys()


@pytest.mark.slow
def test_a_small_sample_of_the_calibration(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import calibrate_explain

    counts = calibrate_explain.Counts()
    rng = np.random.default_rng(3)
    counts.ask(calibrate_explain.generated(rng, 10), rng, 1)
    assert (counts.wrong, counts.first) == ([False], [True])


def test_a_value_is_quoted_once():
    assert quotes.read_values(["0.4", "AP50=61.2", "a=b=0.5"], "AP") == {"AP": "0.4", "AP50": "61.2", "a=b": "0.5"}
    with pytest.raises(detmap.OptionError, match="--value gives 'AP' twice"):
        quotes.read_values(["0.4", "AP=0.5"], "AP")


def test_tables_for_other_shapes_than_boxes_are_not_searched():
    where = "fixtures/people"
    truth = detmap.read_coco(f"{where}/ground_truth.json", iou_type="segm")
    found = detmap.read_coco_results(f"{where}/masks.json", truth, iou_type="segm")
    said = r"for the iou_type 'segm', and only rules for boxes are searched; read the files without iou_type, or give"
    with pytest.raises(InputError, match=said):
        detmap.find_value(truth, found, "0.5")
    square = np.zeros((4, 8, 8), bool)
    square[:, :4, :4] = True
    rows = {"image_ids": [1, 2, 3, 4], "category_ids": [1] * 4, "masks": square}
    scores = {"scores": [0.1, 0.2, 0.3, 0.4]}
    with pytest.raises(InputError, match=said):
        detmap.find_value(
            detmap.GroundTruth.from_arrays(**rows), detmap.Detections.from_arrays(**rows, **scores), "0.5"
        )
    searches = []
    for masks in (square, None):
        rows |= {"boxes": [[0, 0, 8, 4]] * 4, "masks": masks}
        tables = detmap.GroundTruth.from_arrays(**rows), detmap.Detections.from_arrays(**rows, **scores)
        searches.append(detmap.find_value(*tables, "0.5"))
    assert searches[0].candidates == searches[1].candidates != []
