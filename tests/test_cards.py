"""Evaluation cards: what stands in them, and that no single change of an input, a decision or a number goes unnoticed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from test_decisions import GIVEN

import detmap
from detmap import cards, cli

ROOT = Path(__file__).resolve().parent.parent
COCO = ROOT / "fixtures" / "coco"
VOC = ROOT / "fixtures" / "voc"


def run(*words):
    try:
        return cli.main([str(word) for word in words])
    except SystemExit as ended:
        return ended.code


@pytest.fixture
def folder(tmp_path):
    for name in ("ground_truth", "detections"):
        shutil.copy(COCO / f"{name}.json", tmp_path / f"{name}.json")
    return tmp_path


def inputs(folder):
    return folder / "ground_truth.json", folder / "detections.json"


@pytest.fixture
def card(folder, capsys):
    assert run("eval", *inputs(folder), "--card", folder / "card.json", "--quiet") == 0
    capsys.readouterr()
    return folder / "card.json"


def test_what_a_card_says(card, folder):
    made, truth = json.loads(card.read_text()), detmap.read_coco(inputs(folder)[0])
    result = detmap.evaluate(truth, detmap.read_coco_results(inputs(folder)[1], truth))
    assert {name: float.fromhex(value["hex"]) for name, value in made["numbers"].items()} == dict(result)
    assert all(float(value["decimal"]) == float.fromhex(value["hex"]) for value in made["numbers"].values())
    assert set(made["decisions"]) == set(detmap.Protocol.__dataclass_fields__)
    assert [one["role"] for one in made["inputs"]] == ["ground_truth", "detections"]
    assert made["counts"]["detections"] == len(result.tally)
    assert made["notices"] == dict(result.notices)
    assert made["digest"][:16] in made["markdown"]
    assert made["digest"][:8] in made["bibtex"]
    assert f"| AP | {result['AP']:.4f} |" in made["markdown"]


def test_the_same_again(card, folder, capsys):
    assert run("verify", card, *inputs(folder)) == 0
    assert "the same bits in all" in capsys.readouterr().out
    for name in ("a", "b"):  # what the files are called says nothing
        (folder / name).mkdir()
    for name, path in zip(("a", "b"), inputs(folder), strict=True):
        shutil.move(path, folder / name / "other.json")
    assert (
        run("verify", card, folder / "a/other.json", folder / "b/other.json", "--threads", 1, "--format", "json") == 0
    )
    assert json.loads(capsys.readouterr().out) == {"verified": True, "differences": [], "versions": []}


@pytest.mark.parametrize(
    "words", [("--protocol", "voc2012"), ("--max-dets", "1,7"), ("--iou-thresholds", "0.5:0.7:0.1")]
)
def test_options_are_kept(words, folder, capsys):
    assert run("eval", *inputs(folder), *words, "--card", folder / "c.json", "--quiet") == 0
    assert run("verify", folder / "c.json", *inputs(folder)) == 0
    changed = json.loads((folder / "c.json").read_text())
    changed["options"] = {"protocol": "coco"}
    (folder / "c.json").write_text(json.dumps(changed))
    assert run("verify", folder / "c.json", *inputs(folder)) == 1
    assert "decisions" in capsys.readouterr().out


OF_BOXES = [name for name in GIVEN if name not in ("iou_type", "sigmas")]


@pytest.mark.parametrize("name", OF_BOXES)
def test_every_decision_is_kept(name, folder, capsys, monkeypatch):
    """Also one that says no to what is so by default, as --ignore-categories."""
    monkeypatch.setattr("detmap.cli.ineffective.check_effective", lambda *_: None)  # under COCO some have no effect
    words, _ = GIVEN[name]
    assert run("eval", *inputs(folder), *words, "--card", folder / "c.json", "--quiet") == 0
    assert run("verify", folder / "c.json", *inputs(folder)) == 0, capsys.readouterr()
    decided = json.loads((folder / "c.json").read_text())["options"]
    assert [option for option in decided if option.startswith("decision_")] == [f"decision_{name}"]


def test_folders_are_inputs(tmp_path, capsys):
    """Of a folder every file counts; what lists the images is an input too."""
    shutil.copytree(VOC, tmp_path / "voc")
    found = tmp_path / "voc/Annotations", tmp_path / "voc/results"
    listed = tmp_path / "voc/ImageSets/test.txt"
    words = ("--protocol", "voc2007", "--image-set", listed, "--card", tmp_path / "c.json", "--quiet")
    assert run("eval", *found, *words) == 0
    assert run("verify", tmp_path / "c.json", *found) == 0
    one = sorted(found[1].glob("*.txt"))[0]
    one.write_text(one.read_text() + "\n")  # says the same, and is another file
    assert run("verify", tmp_path / "c.json", *found) == 1
    assert "detections" in capsys.readouterr().out
    one.write_text(one.read_text()[:-1])
    listed.write_text("\n".join(listed.read_text().split()[1:]) + "\n")
    assert run("verify", tmp_path / "c.json", *found) == 1


def test_each_kind_of_change_on_the_command_line(card, folder, capsys):
    text, (truth, found) = card.read_text(), inputs(folder)
    number = json.loads(text)["numbers"]["AP50"]["hex"]
    for old, new, says in (
        (number, float.fromhex(number).hex().replace("p-", "1p-"), "AP50"),
        ('"matching": "best-free"', '"matching": "best"', "matching"),
    ):
        assert old in text
        card.write_text(text.replace(old, new))
        assert run("verify", card, truth, found) == 1
        assert says in capsys.readouterr().out
    card.write_text(text)
    found.write_text(found.read_text().replace("[", "[ ", 1))
    assert run("verify", card, truth, found) == 1
    out = capsys.readouterr().out
    assert out.count("detections") == 1
    assert "numbers" not in out
    found.write_text(found.read_text()[:-9])  # which cannot be scored any more
    assert run("verify", card, truth, found, "--format", "json") == 1
    assert {row["part"] for row in json.loads(capsys.readouterr().out)["differences"]} == {"inputs", "evaluation"}


def test_another_version_is_a_note(card, folder, capsys):
    """Versions differ in a card of another machine: where all numbers have the same bits that is no difference."""
    made = cards.read(card)
    made["versions"]["numpy"] = "1.0"
    card.write_bytes(cards.to_json(cards.finished(made)))
    assert run("verify", card, *inputs(folder)) == 0
    assert "numpy 1.0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("of", "says"),
    [
        (lambda made: made, "field 'more'"),
        (lambda made: made["versions"], "versions, field 'more'"),
        (lambda made: made["inputs"][0], "input, field 'more'"),
        (lambda made: made["numbers"]["AP"], "number, field 'more'"),
        (lambda made: made["options"], "field 'more'"),
    ],
)
def test_what_no_card_holds_is_refused_though_the_card_is_sealed_anew(card, folder, capsys, of, says):
    made = json.loads(card.read_text())
    of(made)["more"] = "reviewed"
    card.write_bytes(cards.to_json(cards.finished(made)))
    assert run("verify", card, *inputs(folder)) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("part", ["decisions", "counts", "notices", "arrays"])
def test_a_name_more_in_what_is_compared_is_a_difference(card, folder, capsys, part):
    made = json.loads(card.read_text())
    made[part]["more"] = 1
    card.write_bytes(cards.to_json(cards.finished(made)))
    assert run("verify", card, *inputs(folder)) == 1
    assert "more" in capsys.readouterr().out


def test_a_card_of_an_earlier_version_lacks_later_decisions(card, folder, capsys):
    made = cards.read(card)
    for name in ("min_score", "left_out", "oks_area"):
        del made["decisions"][name]
    card.write_bytes(cards.to_json(cards.finished(made)))
    assert run("verify", card, *inputs(folder)) == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not valid JSON"),
        ("[1]", "is no evaluation card"),
        ('{"card": 99}', "is a card of form 99"),
        ('{"card": 1}', "command is missing"),
        ('{"card": 1, "card": 1}', "is there twice in one object (got 'card')"),
        ('{"card": NaN}', "NaN is no number of JSON"),
    ],
)
def test_what_is_no_card(folder, text, says, capsys):
    (folder / "card.json").write_text(text)
    assert run("verify", folder / "card.json", *inputs(folder)) == 2
    assert says in capsys.readouterr().err
    assert run("verify", folder / "absent.json", *inputs(folder)) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"protocol": 5},
        {"decision_max_dets": 5},
        {"decision_area_ranges": "a:0:1"},
        {"decision_use_categories": "no"},
        {"threads": 2},
        {"card": "x"},
        {"no_such": "x"},
        {"image_set": ["x"]},
    ],
)
def test_options_that_no_card_has(card, folder, options, capsys):
    made = cards.read(card)
    made["options"] |= options
    card.write_bytes(cards.to_json(cards.finished(made)))
    assert run("verify", card, *inputs(folder)) == 2
    assert f"field '{next(iter(options))}': is no option" in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "found"), [("segm", "masks"), ("keypoints", "poses")])
def test_cards_of_masks_and_poses(kind, found, tmp_path):
    """Numbers of poses go through numpy's exp: they may differ in their last bits, and no more."""
    given = ROOT / "fixtures/people/ground_truth.json", ROOT / f"fixtures/people/{found}.json"
    path = tmp_path / "card.json"
    assert run("eval", *given, "--iou-type", kind, "--card", path, "--quiet") == 0
    assert run("verify", path, *given) == 0
    for change, code in ((1e-12, int(kind == "segm")), (1e-6, 1)):
        made = cards.read(path)
        made["numbers"]["AP"] = cards.number(float(made["numbers"]["AP"]["decimal"]) + change)
        (tmp_path / "changed.json").write_bytes(cards.to_json(cards.finished(made)))
        assert run("verify", tmp_path / "changed.json", *given) == code


def test_inputs_of_another_number(card, folder, capsys):
    assert run("verify", card, inputs(folder)[0]) == 2
    assert "needs 2 inputs: ground_truth detections" in capsys.readouterr().err


def test_cards_of_rankings(tmp_path, capsys):
    qrels, ranked = tmp_path / "qrels", tmp_path / "run"
    qrels.write_text("q1 0 a 1\nq1 0 b 0\nq2 0 c 2\n")
    ranked.write_text("q1 Q0 b 1 0.9 x\nq1 Q0 a 2 0.8 x\nq2 Q0 c 1 0.7 x\n")
    made = tmp_path / "c.json"
    assert run("trec", qrels, ranked, "--metrics", "map", "--level", "1.5", "--card", made) == 0
    assert run("verify", made, qrels, ranked) == 0
    assert run("trec", qrels, ranked, "--metrics", "map,ndcg@10", "--card", made) == 0
    assert run("verify", made, qrels, ranked) == 0
    ranked.write_text(ranked.read_text().replace("0.9", "0.1"))
    assert run("verify", made, qrels, ranked) == 1
    assert "per_query" in capsys.readouterr().out
    assert run("trec", qrels, ranked, ranked, "--card", made) == 2
    rng = np.random.default_rng(0)
    reid, codes = tmp_path / "reid.npz", tmp_path / "codes.npz"
    np.savez(reid, distances=rng.random((4, 9)), query_ids=[0, 1, 2, 0], gallery_ids=rng.integers(0, 3, 9))
    labels = {"query_labels": [0, 1, 1], "gallery_labels": rng.integers(0, 2, 8)}
    np.savez(codes, query_codes=rng.integers(0, 2, (3, 16)), gallery_codes=rng.integers(0, 2, (8, 16)), **labels)
    for command, path in (("reid", reid), ("hashing", codes)):
        assert run(command, path, "--card", made) == 0
        assert run("verify", made, path) == 0
        path.write_bytes(path.read_bytes() + b" ")
        assert run("verify", made, path) == 1
