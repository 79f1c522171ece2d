"""`detmap.evaluate(..., bootstrap=N)`: the intervals of `detmap.statistics.bootstrap`, and of `detmap eval --bootstrap`."""

import json
import pickle
from pathlib import Path

import pytest

import detmap
from detmap import statistics
from detmap.cli import main
from detmap.errors import OptionError, UnknownMetricError

ROOT = Path(__file__).resolve().parents[1]
TRUTH, FOUND = (str(ROOT / "fixtures" / "coco" / name) for name in ("ground_truth.json", "detections.json"))
HOW = {"bootstrap": 200, "seed": 3, "level": 0.9, "method": "percentile"}
FLAGS = ["--bootstrap", "200", "--seed", "3", "--confidence", "0.9", "--interval", "percentile"]


@pytest.fixture(scope="module")
def result():
    return detmap.evaluate(TRUTH, FOUND, **HOW)


def test_the_intervals_are_those_of_statistics(result):
    made = statistics.bootstrap(detmap.match(TRUTH, FOUND), 200, 3, method="percentile")
    ends = made.interval(0.9)
    assert list(result.intervals) == list(made.columns)
    assert [result.intervals[name] for name in result] == [tuple(ends[made.columns[name]]) for name in result]
    assert result.intervals.bootstrap.support.tolist() == made.support.tolist()
    assert result.intervals["AP"][0] < result["AP"] < result.intervals["AP"][1]
    assert dict(result) == dict(detmap.evaluate(TRUTH, FOUND))
    assert repr(result.intervals) == "<Intervals: 90 % of 12 metrics, 200 replicates>"
    with pytest.raises(UnknownMetricError, match="there are: AP, AP50"):
        result.intervals["foo"]
    again = pickle.loads(pickle.dumps(result))
    assert str(again) == str(result)


@pytest.mark.parametrize("more", [[], ["--per-class"]])
@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown"])
def test_they_stand_in_every_form_as_the_command_shows_them(result, form, more, capsys):
    assert main(["eval", TRUTH, FOUND, *FLAGS, "--format", form, *more, "--quiet"]) == 0
    shown = capsys.readouterr().out
    if form == "json":
        assert shown == result.to_json() + "\n"
        assert json.loads(shown)["bootstrap"]["intervals"]["AP"] == list(result.intervals["AP"])
    elif form == "csv" and more:
        assert shown == result.to_csv()
    elif form == "markdown":
        assert shown.startswith(result.to_markdown() + "\n")
    elif form == "table":
        table, _, sentences = str(result).partition("\n\n")[2].rpartition("\n\n")
        assert table in shown
        assert sentences in shown
        assert "90 % confidence interval" in sentences
        assert "metric      value     low    high     bias  images" in table


def test_without_it_there_are_none_and_nothing_changes(result):
    plain = detmap.evaluate(TRUTH, FOUND)
    assert plain.intervals is None
    assert "bootstrap" not in plain.to_dict()
    assert "low" not in str(plain) + plain.to_csv() + plain.to_latex()
    for text in (str(result), result.to_csv(), result.to_latex(), result._repr_html_(), str(result.to_frame().columns)):
        assert "low" in text
        assert "bias" in text
    assert [row["low"] for row in result.class_summary()] == [row["low"] for row in result.rows()]


def test_clusters_are_drawn_as_a_whole():
    truth = detmap.read(TRUTH).with_clusters(list(range(10)) * 6)
    assert detmap.evaluate(truth, FOUND, bootstrap=200).intervals.bootstrap.unit == "clusters"


@pytest.mark.parametrize("wrong", [{"bootstrap": 20}, {"bootstrap": True}, {"level": 2}, {"method": "x"}, {"seed": -1}])
def test_intervals_that_cannot_be_made_are_refused_ahead_of_reading(wrong):
    with pytest.raises(OptionError):
        detmap.evaluate("no_such.json", FOUND, **{**HOW, **wrong})
    with pytest.raises(OptionError, match="did you mean 'bootstrap'"):
        detmap.evaluate(TRUTH, FOUND, bootstap=200)
