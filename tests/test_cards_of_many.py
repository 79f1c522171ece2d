"""Cards of several files: batch, comparisons, shards; and cards whose further inputs were moved."""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from legs import FULL
from test_cards import COCO, ROOT, run

from detmap import cards

TRUTH = COCO / "ground_truth.json"


@pytest.fixture
def models(tmp_path):
    records = json.loads((COCO / "detections.json").read_text())
    (tmp_path / "models").mkdir()
    paths = [tmp_path / "models" / f"{name}.json" for name in ("one", "two")]
    paths[0].write_text(json.dumps(records))
    paths[1].write_text(json.dumps([one for one in records if one["score"] >= 0.2]))
    return paths


COMMANDS = {"batch": [], "compare": ["--bootstrap", "200", "--permutations", "200", "--seed", "4"]}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_card_of_many_files(command, models, tmp_path, capsys):
    """The same bits from the same files, wherever they lie; one changed byte, or number, and the card is refuted."""
    path = tmp_path / "c.json"
    assert run(command, TRUTH, *models, *COMMANDS[command], "--card", path, "--quiet") == 0
    made = cards.read(path)
    assert [one["role"] for one in made["inputs"]] == ["ground_truth", "detections", "detections"]
    if command == "batch":
        assert {"one: AP", "two: AP", "one: AR_100"} <= set(made["numbers"])
    else:
        assert {"one: AP", "two: low", "one to two: p", "one to two person: difference"} <= set(made["numbers"])
    capsys.readouterr()
    moved = shutil.copytree(tmp_path / "models", tmp_path / "elsewhere")
    there = [moved / "one.json", moved / "two.json"]
    assert run("verify", path, TRUTH, *there, "--threads", 1) == 0
    assert "the same bits in all" in capsys.readouterr().out
    for name in random.Random(1).sample(sorted(made["numbers"]), 3):
        if made["numbers"][name]["decimal"] == "nan":
            continue
        changed = copy.deepcopy(made)
        near = np.nextafter(float(made["numbers"][name]["decimal"]), 2.0)
        changed["numbers"][name] = cards.number(near)
        assert cards.compare(cards.finished(changed), made)
    (moved / "two.json").write_text((moved / "two.json").read_text().replace("[", "[ ", 1))
    assert run("verify", path, TRUTH, *there, "--quiet") == 1
    assert "detections" in capsys.readouterr().out
    assert run("verify", path, TRUTH) == 2
    assert f"a card of detmap {command} needs 2 inputs or more: ground_truth predictions" in capsys.readouterr().err


def test_what_is_drawn_counts_in_a_comparison(models, tmp_path, capsys):
    """Seed and number of draws decide intervals, so that they stand on the card."""
    path = tmp_path / "c.json"
    assert run("compare", TRUTH, *models, *COMMANDS["compare"], "--card", path, "--quiet") == 0
    made = cards.read(path)
    assert (made["options"]["seed"], made["options"]["bootstrap"]) == (4, 200)
    made["options"]["seed"] = 5
    path.write_bytes(cards.to_json(cards.finished(made)))
    capsys.readouterr()
    assert run("verify", path, TRUTH, *models) == 1
    assert "one to two bottle: adjusted" in capsys.readouterr().out


def test_a_file_that_cannot_be_scored_is_on_the_card(models, tmp_path, capsys):
    models[1].write_text("nothing")
    assert run("batch", TRUTH, *models, "--card", tmp_path / "c.json", "--quiet") == 3
    made = cards.read(tmp_path / "c.json")
    assert (made["counts"]["files"], made["counts"]["files with errors"]) == (2, 1)
    assert run("verify", tmp_path / "c.json", TRUTH, *models) == 0


@pytest.mark.parametrize("text", ["1 0 0.5 0.5 0.1 0.1", "q1 Q0 a 1 0.9 x"])
def test_text_of_no_known_form_is_on_the_card_too(text, models, tmp_path, capsys):
    """Nothing is read for the card but bytes: the row that says why it has no score is shown, and the others."""
    bad, path = tmp_path / "bad.txt", tmp_path / "c.json"
    bad.write_text(text + "\n")
    assert run("batch", TRUTH, models[0], bad, "--card", path) == 3
    told = capsys.readouterr()
    assert "is text of no format that is known by its lines" in told.out + told.err
    assert [one["name"] for one in cards.read(path)["inputs"]] == ["ground_truth.json", "one.json", "bad.txt"]
    assert run("verify", path, TRUTH, models[0], bad) == 0


def test_a_file_that_cannot_be_read_hides_no_other_that_differs(models, tmp_path, capsys):
    path = tmp_path / "c.json"
    assert run("compare", TRUTH, *models, *COMMANDS["compare"], "--card", path, "--quiet") == 0
    models[0].write_text("[]")
    models[1].unlink()
    capsys.readouterr()
    assert run("verify", path, TRUTH, *models, "--format", "json") == 1
    *changed, last = json.loads(capsys.readouterr().out)["differences"]
    assert [(one["of"], one["found"] == "none") for one in changed] == [("detections", False), ("detections", True)]
    assert last["part"] == "evaluation"


@pytest.mark.parametrize("pattern", ["shards", "shards/*.json"])
def test_a_card_of_shards(pattern, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shards").mkdir()
    records = json.loads((COCO / "detections.json").read_text())
    for part in range(2):
        some = [one for one in records if one["image_id"] % 2 == part]
        (tmp_path / "shards" / f"{part}.json").write_text(json.dumps(some))
    assert run("eval", TRUTH, pattern, "--sharded", "--card", "c.json", "--quiet") == 0
    assert len(cards.read("c.json")["inputs"]) == 3
    assert run("verify", "c.json", TRUTH, pattern) == 0
    capsys.readouterr()
    one = tmp_path / "shards" / "1.json"
    one.write_text(one.read_text().replace("[", "[ ", 1))
    assert run("verify", "c.json", TRUTH, pattern) == 1
    assert "detections" in capsys.readouterr().out
    one.write_text(one.read_text()[:-9])
    assert run("verify", "c.json", TRUTH, pattern) in (1, 2)
    assert run("eval", TRUTH, "-", "--sharded", "--card", "c.json") == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("batch", "GT", "-", "--card", "c.json"), "--card needs files"),
        (("batch", "GT", "ONE", "--card", "c.json", "--discreet"), "it goes with neither --hide nor --discreet"),
        (("compare", "GT", "ONE", "ONE", "--why", "--card", "c.json"), "it goes with neither --under nor --why"),
    ],
)
def test_cards_that_cannot_be(words, says, models, capsys):
    assert run(*({"GT": TRUTH, "ONE": models[0]}.get(word, word) for word in words)) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(("option", "flag"), [("--sigmas", "--sigmas"), ("--class-map", "--class-map")])
def test_a_file_that_was_moved(option, flag, tmp_path, capsys):
    """Where a further input is gone, the message names the option that says where it lies now."""
    given = ROOT / "fixtures/people/ground_truth.json", ROOT / "fixtures/people/poses.json"
    more = tmp_path / "more"
    more.write_text(json.dumps([0.05] * 17) if option == "--sigmas" else "person,person\n")
    path = tmp_path / "c.json"
    assert run("eval", *given, "--iou-type", "keypoints", option, more, "--card", path, "--quiet") == 0
    capsys.readouterr()
    moved = tmp_path / "moved"
    os.rename(more, moved)
    assert run("verify", path, *given) == 2
    err = capsys.readouterr().err
    assert "that is not there" in err
    assert f"give {flag} FILE, where it lies now" in err
    assert run("verify", path, *given, flag, moved) == 0
    moved.write_text(moved.read_text() + "\n")
    assert run("verify", path, *given, flag, moved) == 1


def test_another_processor_gives_the_same_bits(tmp_path):
    """A card made here verifies without the vector instructions that numpy would choose, and with one thread.

    In full numba compiles the kernels without them too, which takes a minute.
    """
    path = tmp_path / "c.json"
    inputs = [str(TRUTH), str(COCO / "detections.json")]
    assert run("eval", *inputs, "--card", path, "--quiet") == 0
    environment = {**os.environ, "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX2 FMA3", "PYTHONPATH": str(ROOT)}
    if FULL:
        plain = {"DETMAP_KERNELS": "jit", "NUMBA_CPU_NAME": "generic", "DETMAP_PLAIN_NUMBA": "1"}
        environment |= {**plain, "NUMBA_CACHE_DIR": str(tmp_path)}
    words = [sys.executable, "-W", "ignore", "-m", "detmap", "verify", str(path), *inputs, "--threads", "1", "--quiet"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=500, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the same bits in all 12 numbers" in done.stdout


def test_the_form_of_cards_stays_readable():
    """A card as the first version wrote it, kept word for word, is read and verifies as far as its inputs are."""
    first = Path(__file__).with_name("first_card.json")
    assert cards.read(first)["card"] == 1
    assert run("verify", first, TRUTH, COCO / "detections.json") == 0
