"""Models are compared from files, tables and COCO's JSON as from their results."""

import json
from pathlib import Path

import pytest

import detmap
from detmap.errors import InputError, OptionError

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "coco"
TRUTH, FOUND = FIXTURES / "ground_truth.json", FIXTURES / "detections.json"
DRAWS = {"replicates": 200, "permutations": 49}


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """A file of another model's detections: half of the first one's."""
    path = tmp_path_factory.mktemp("models") / "half.json"
    path.write_text(json.dumps(json.loads(FOUND.read_text())[::2]))
    return path


@pytest.fixture(scope="module")
def wanted(other):
    models = {"detections": detmap.evaluate(TRUTH, FOUND), "half": detmap.evaluate(TRUTH, other)}
    return repr(detmap.compare(models, 200, permutations=49).to_dict())


def _parsed(path):
    return json.loads(path.read_text())


@pytest.mark.slow
def test_files_are_compared_as_their_results(other, wanted):
    for models in ([FOUND, other], (str(FOUND), str(other)), {"detections": FOUND, "half": _parsed(other)}):
        assert repr(detmap.compare(TRUTH, models, **DRAWS).to_dict()) == wanted
    tables = [detmap.read(path, ground_truth=detmap.read(TRUTH)) for path in (FOUND, other)]
    assert repr(detmap.compare(_parsed(TRUTH), tables, **DRAWS).to_dict()) == wanted  # by the names of their files
    unnamed = detmap.compare(TRUTH, [_parsed(FOUND), _parsed(other)], **DRAWS)
    assert list(unnamed.bootstraps) == ["model 1", "model 2"]
    assert repr(unnamed.to_dict()).replace("model 1", "detections").replace("model 2", "half") == wanted


def test_protocol_and_decisions_are_those_of_evaluate(other):
    made = detmap.compare(TRUTH, [FOUND, other], "voc2012", min_score=0.3, metric="mAP", **DRAWS)
    results = {
        name: detmap.evaluate(TRUTH, path, "voc2012", min_score=0.3)
        for name, path in (("detections", FOUND), ("half", other))
    }
    assert repr(made.to_dict()) == repr(detmap.compare(results, metric="mAP", **DRAWS).to_dict())
    by_place = detmap.compare(results, 200, 7, permutations=49)
    assert repr(by_place.to_dict()) == repr(detmap.compare(results, seed=7, **DRAWS).to_dict())
    assert by_place.bootstraps["half"].seed == 7


@pytest.mark.parametrize("method", ["t", "percentile"])
def test_a_metric_of_one_category_is_compared_as_the_category(other, method):
    """VOC names the AP of a category after it. Alone in its family, its p-value is not corrected."""
    results = {"all": detmap.evaluate(TRUTH, FOUND, "voc2012"), "half": detmap.evaluate(TRUTH, other, "voc2012")}
    for category in ("bicycle", "car"):
        made = detmap.compare(results, metric=f"AP_{category}", method=method, **DRAWS)
        (found,) = made.differences
        assert found.difference == results["half"][f"AP_{category}"] - results["all"][f"AP_{category}"] < 0
        (own,) = (one for one in made.categories if one.category == category)
        assert found == own._replace(metric=f"AP_{category}", category=None, adjusted=own.p)


#: What is no comparison, and what the error says.
REFUSED = [
    (lambda one, two, path: (TRUTH, FOUND), "two models or more: compare\\(ground_truth, \\[detections, others\\]\\)"),
    (lambda one, two, path: (TRUTH, FOUND, path), "two models or more: compare\\(ground_truth, "),
    (lambda one, two, path: (TRUTH, _parsed(path)), "two models or more: compare\\(ground_truth, "),
    (lambda one, two, path: (TRUTH, {"annotations": _parsed(path)}), "two models or more: compare\\(ground_truth, "),
    (lambda one, two, path: (TRUTH, []), "two models or more: compare\\(ground_truth, "),
    (lambda one, two, path: (one, two), "results are given by name, .*compare\\({'a': result, 'b': other}\\)"),
    (lambda one, two, path: (TRUTH, [one, two]), "results are given by name, .*compare\\({'a': result"),
    (lambda one, two, path: ([one, two],), "is not scored: compare\\(ground_truth, .* or compare\\({'a': result"),
    (lambda one, two, path: (TRUTH,), "is not scored: compare\\(ground_truth, \\[detections, others\\]\\)"),
    (lambda one, two, path: (_parsed(TRUTH),), "is not scored: compare\\(ground_truth, \\[detections, others\\]\\)"),
    (lambda one, two, path: ({"a": FOUND, "b": path},), "is not scored: compare\\(ground_truth, "),
    (lambda one, two, path: (TRUTH, [FOUND, path], 3), "is not scored: compare\\(ground_truth, "),
    (lambda one, two, path: (TRUTH, [FOUND, FOUND]), "is given twice: give each model once, or by name"),
    (lambda one, two, path: ({"a": one},), "needs two models or more"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED, ids=[str(at) for at in range(len(REFUSED))])
def test_what_is_no_comparison_is_refused_with_the_call_that_is(given, message, other):
    one, two = detmap.evaluate(TRUTH, FOUND), detmap.evaluate(TRUTH, other)
    with pytest.raises(OptionError, match=message) as caught:
        detmap.compare(*given(one, two, other))
    assert "\n" not in str(caught.value)


def test_other_errors_are_those_of_reading_and_scoring(other):
    with pytest.raises(InputError, match="no_such"):
        detmap.compare(TRUTH, [FOUND, "no_such.json"], **DRAWS)
    with pytest.raises(OptionError, match="did you mean 'min_score'"):
        detmap.compare(TRUTH, [FOUND, other], min_scor=0.5, **DRAWS)
    with pytest.raises(OptionError, match="are scored already"):
        detmap.compare({"a": detmap.match(TRUTH, FOUND), "b": detmap.match(TRUTH, other)}, min_score=0.5)
    for wrong in ({"replicates": 10}, {"seed": -1}, {"level": 2}):
        with pytest.raises(OptionError):  # ahead of reading
            detmap.compare("no_such.json", [FOUND, other], **wrong)
