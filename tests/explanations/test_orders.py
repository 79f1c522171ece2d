"""Which orders of a leaderboard survive other rules: values of each model by itself say what `survives` says of pairs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import detmap
from detmap import batch, cli
from detmap.detection.protocols import resolve
from detmap.errors import OptionError
from detmap.explanations import survives
from detmap.explanations.orders import orders, values_under

ROOT = Path(__file__).resolve().parents[2]
TRUTH = ROOT / "fixtures/coco/ground_truth.json"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Three models of which each moves its boxes a little more; the first two are close to each other."""
    rng = np.random.default_rng(0)
    records = json.loads((ROOT / "fixtures/coco/detections.json").read_text())
    folder = tmp_path_factory.mktemp("runs")
    for k in range(3):
        moved = [{**one, "bbox": [one["bbox"][0] + rng.normal(0, k), *one["bbox"][1:]]} for one in records]
        (folder / f"m{k}.json").write_text(json.dumps(moved))
    (folder / "bad.json").write_text("[{")
    return folder


@pytest.fixture(scope="module")
def tables(files):
    truth = detmap.read(TRUTH, "ground_truth")
    return truth, {k: detmap.read(files / f"{k}.json", "detections", ground_truth=truth) for k in ("m0", "m1", "m2")}


@pytest.mark.compiled
@pytest.mark.parametrize(("protocol", "metric"), [("coco", "AP"), ("voc2012", "AP50")])
def test_orders_are_those_that_are_told_of_pairs(tables, protocol, metric):
    """But for labels and draws of images, which take all models at once."""
    truth, models = tables
    models = {name: models[name] for name in ("m0", "m1")}
    decided = resolve(protocol)
    made = {name: values_under(truth, one, decided, metric) for name, one in models.items()}
    made = dict(sorted(made.items(), key=lambda item: -item[1]["value"]))
    for found in orders(made):
        pair = {name: models[name] for name in (found["first"], found["second"])}
        (claim,) = survives(truth, pair, decided, metric=metric, replicates=200).claims
        ends = {
            tuple(one.lowest.values()) + tuple(one.highest.values()) for one in claim.against if one.kind != "labels"
        }
        names = [one.name for one in claim.against if one.kind != "labels"]
        assert bool(found["against"]) == bool(ends)
        if found["against"]:
            assert found["against"][0]["name"] == names[0]
        assert len(found["against"]) <= len(names)
        assert found["held"] + len(found["against"]) == found["tried"]


def test_orders_of_values_by_hand():
    def model(value, **situations):
        rows = {name: ["other decisions", 1, low, high] for name, (low, high) in situations.items()}
        return {"metric": "AP", "value": value, "situations": rows}

    made = orders(
        {
            "a": model(0.5, same=(0.5, 0.5), less=(0.2, 0.2), loose=(0.4, 0.6), twin=(0.2, 0.2)),
            "b": model(0.4, same=(0.4, 0.4), less=(0.3, 0.3), loose=(0.3, 0.5), twin=(0.3, 0.3)),
            "c": model(0.1, same=(0.1, 0.1), less=(0.1, 0.1)),
            "d": model(0.1),
        }
    )
    assert [(one["first"], one["second"], one["held"], one["tried"], one["survives"]) for one in made] == [
        ("a", "b", 0, 2, False),
        ("b", "c", 2, 2, True),
        ("c", "d", 0, 2, False),
    ]
    assert [one["equal"] for one in made] == [False, False, True]
    assert [one["name"] for one in made[0]["against"]] == ["loose", "less"]
    assert made[0]["against"][0]["values"] == [0.4, 0.5]
    assert orders({}) == []


@pytest.mark.compiled
def test_the_leaderboard_marks_them(files, tmp_path, capsys):
    arguments = ["batch", str(TRUTH), str(files), "--under", "all", "--out", str(tmp_path)]
    assert cli.main(arguments) == 3
    out, _ = capsys.readouterr()
    assert "survives" in out
    board = json.loads((tmp_path / "leaderboard.json").read_text())
    for one, model in zip(board["orders"], board["models"], strict=False):
        assert one["first"] == model["model"]
    doubtful = [one for one in board["orders"] if not one["survives"]]
    page = (tmp_path / "leaderboard.html").read_text()
    assert page.count(' doubt"') == len(doubtful) > 0
    first = doubtful[0]["against"][0]["name"]
    for text in (out, (tmp_path / "leaderboard.md").read_text().replace("\\", ""), page):
        assert first in text
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.*")}
    assert cli.main([*arguments, "--resume"]) == 3  # nothing is scored again
    assert before == {path.name: path.read_bytes() for path in tmp_path.glob("*.*")}
    capsys.readouterr()
    assert cli.main(arguments[:3]) == 3
    assert "survives" not in capsys.readouterr().out


@pytest.mark.compiled
def test_equal_models_have_no_order_that_could_survive(files, tmp_path):
    """They are called equal, and their order is no doubtful one."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_bytes((files / "m0.json").read_bytes())
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    board = batch.Leaderboard(list(batch.score(TRUTH, paths, under="AP")), "AP")
    assert [row["survives"] for row in board.table()] == ["equal", ""]
    assert board.doubts() == []
    assert "equal: there is no order" in board.sentences()[-1]
    page = board._html().decode()
    assert "orders of neighbours" not in page
    assert "Every order" not in page


@pytest.mark.compiled
def test_other_rules_are_part_of_a_results_key(files, tmp_path):
    more = {"out": tmp_path, "resume": True}
    keys = [
        next(iter(batch.score(TRUTH, [files / "m0.json"], **more, **rules))).document["key"]
        for rules in ({}, {"under": "AP"}, {"under": "AP50"}, {"under": "AP"})
    ]
    assert keys[1] == keys[3]
    assert len(set(keys)) == 3


def test_what_cannot_be_scored_under_other_rules(files):
    with pytest.raises(OptionError, match="is no AP of coco that can be explained"):
        batch.score(TRUTH, [files / "m0.json"], under="AR_100")
    with pytest.raises(OptionError, match="does not go with splits"):
        batch.score(TRUTH, [files / "m0.json"], under="AP", splits={})
