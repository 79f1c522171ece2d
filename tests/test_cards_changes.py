"""No single change goes unnoticed: of a byte of any input, of a decision, of a number, on the card of every command."""

from __future__ import annotations

import argparse
import contextlib
import copy
import csv
import json
import random
from pathlib import Path

import numpy as np
import pytest
from legs import FULL
from test_cards import run

from detmap import cards
from detmap.cli.cards import files as named_files
from detmap.cli.verifying import _again

#: Changes of each sort to each card; all of them in the full tests.
CHANGES = 1000 if FULL else 25


def boxes_of(seed, images=4, classes=2):
    rng = np.random.default_rng(seed)
    truth, found = [], []
    for image in range(1, images + 1):
        for _ in range(3):
            corner, size, kind = rng.integers(0, 60, 2), rng.integers(8, 36, 2), int(rng.integers(1, classes + 1))
            truth.append((image, kind, [*corner.tolist(), *size.tolist()]))
            moved = [*(corner + rng.integers(-3, 4, 2)).tolist(), *size.tolist()]
            found.append((image, kind, moved, round(float(rng.random()), 3)))
    return truth, found


def coco(folder):
    """COCO's JSON, and two models that found something."""
    truth, found = boxes_of(1)
    document = {
        "images": [{"id": i, "file_name": f"{i}.jpg", "width": 100, "height": 100} for i in range(1, 5)],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
        "annotations": [
            {"id": i, "image_id": image, "category_id": kind, "bbox": box, "area": box[2] * box[3], "iscrowd": i == 3}
            for i, (image, kind, box) in enumerate(truth, 1)
        ],
    }
    rows = [{"image_id": i, "category_id": k, "bbox": box, "score": score} for i, k, box, score in found]
    (folder / "gt.json").write_text(json.dumps(document))
    (folder / "models").mkdir()
    for name, some in (("one", rows), ("two", rows[2:])):
        (folder / "models" / f"{name}.json").write_text(json.dumps(some))
    return "gt.json", "models/one.json", "models/two.json"


def eval_coco(folder):
    truth, one, two = coco(folder)
    (folder / two).unlink()
    (folder / "map.csv").write_text("cat,dog\n")
    return ["eval", truth, one, "--class-map", "map.csv"], [truth, one]


def eval_poses(folder):
    truth, found = boxes_of(2)

    def pose(box, shown):
        x, y, w, h = box
        return [n for k in range(17) for n in (x + w * (k % 4) / 4, y + h * k / 17, shown)]

    document = {
        "images": [{"id": i, "width": 100, "height": 100} for i in range(1, 5)],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [
            {"id": i, "image_id": image, "category_id": 1, "bbox": box, "area": box[2] * box[3], "iscrowd": 0,
             "keypoints": pose(box, 2), "num_keypoints": 17}
            for i, (image, _, box) in enumerate(truth, 1)
        ],
    }  # fmt: skip
    rows = [{"image_id": i, "category_id": 1, "keypoints": pose(box, 1), "score": s} for i, _, box, s in found]
    (folder / "gt.json").write_text(json.dumps(document))
    (folder / "dt.json").write_text(json.dumps(rows))
    return ["eval", "gt.json", "dt.json", "--iou-type", "keypoints"], ["gt.json", "dt.json"]


def eval_voc(folder):
    truth, found = boxes_of(3)
    (folder / "Annotations").mkdir()
    (folder / "results").mkdir()
    for image in range(1, 5):
        objects = "".join(
            f"<object><name>c{kind}</name><difficult>0</difficult><bndbox><xmin>{x}</xmin><ymin>{y}</ymin>"
            f"<xmax>{x + w}</xmax><ymax>{y + h}</ymax></bndbox></object>\n"
            for i, kind, (x, y, w, h) in truth
            if i == image
        )
        (folder / f"Annotations/{image}.xml").write_text(f"<annotation>\n{objects}</annotation>\n")
    for kind in (1, 2):
        lines = [f"{i} {s} {x} {y} {x + w} {y + h}\n" for i, k, (x, y, w, h), s in found if k == kind]
        (folder / f"results/comp4_det_test_c{kind}.txt").write_text("".join(lines))
    (folder / "test.txt").write_text("1\n2\n3\n4\n")
    words = ["eval", "Annotations", "results", "--protocol", "voc2012", "--image-set", "test.txt"]
    return words, ["Annotations", "results"]


def eval_yolo(folder):
    """Labels lie beside the data.yaml that is given, and the names of predicted classes beside the predictions."""
    truth, found = boxes_of(4)
    for name in ("set/labels/val", "out/run/labels"):
        (folder / name).mkdir(parents=True)
    for image in range(1, 5):
        lines = [(k, box, "") for i, k, box in truth if i == image]
        scored = [(k, box, f" {s}") for i, k, box, s in found if i == image]
        for place, rows in (("set/labels/val", lines), ("out/run/labels", scored)):
            text = "".join(
                f"{k - 1} {(x + w / 2) / 100} {(y + h / 2) / 100} {w / 100} {h / 100}{score}\n"
                for k, (x, y, w, h), score in rows
            )
            (folder / place / f"{image}.txt").write_text(text)
    (folder / "set/data.yaml").write_text("val: images/val\nnames:\n- cat\n- dog\n")
    (folder / "out/classes.txt").write_text("cat\ndog\n")
    return ["eval", "set/data.yaml", "out/run", "--image-sizes", "100x100"], ["set/data.yaml", "out/run"]


def shards(folder):
    truth, *models = coco(folder)
    rows = json.loads((folder / models[0]).read_text())
    for name in models:
        (folder / name).unlink()
    (folder / "parts").mkdir()
    for part in range(2):
        (folder / f"parts/{part}.json").write_text(json.dumps([row for row in rows if row["image_id"] % 2 == part]))
    return ["eval", truth, "parts", "--sharded"], [truth, "parts"]


def batch(folder):
    truth, *_ = coco(folder)
    (folder / "models.csv").write_text("path,name,tag\nmodels/one.json,first,a\nmodels/two.json,second,b\n")
    return ["batch", truth, "models.csv"], [truth, "models.csv"]


def compare(folder):
    truth, *models = coco(folder)
    words = ["compare", truth, *models, "--bootstrap", "200", "--permutations", "200", "--seed", "3"]
    return words, [truth, *models]


def trec(folder):
    rng = np.random.default_rng(5)
    qrels = [f"q{q} 0 d{d} {rng.integers(0, 3)}\n" for q in range(4) for d in range(5)]
    ranked = [f"q{q} Q0 d{d} 1 {rng.random():.4f} x\n" for q in range(4) for d in range(7)]
    (folder / "qrels").write_text("".join(qrels))
    (folder / "run").write_text("".join(ranked))
    return ["trec", "qrels", "run", "--metrics", "map,ndcg@3", "--level", "1.5"], ["qrels", "run"]


def reid(folder):
    rng = np.random.default_rng(6)
    ids = {"query_ids": [0, 1, 2, 0], "gallery_ids": rng.integers(0, 3, 9)}
    np.savez(folder / "reid.npz", distances=rng.random((4, 9)), **ids)
    return ["reid", "reid.npz"], ["reid.npz"]


def neighbors(folder):
    """Neighbours as tables: the gallery is a file of its own."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(7)
    found = {"query_id": [0, 1, 2], "indices": [rng.permutation(6)[:4].tolist() for _ in range(3)]}
    parquet.write_table(arrow.table(found), folder / "found.parquet")
    parquet.write_table(arrow.table({"id": [0, 1, 2, 0, 1, 2]}), folder / "gallery.parquet")
    return ["reid", "found.parquet", "--gallery", "gallery.parquet"], ["found.parquet"]


def hashing(folder):
    rng = np.random.default_rng(8)
    labels = {"query_labels": [0, 1, 1], "gallery_labels": rng.integers(0, 2, 8)}
    np.savez(
        folder / "codes.npz",
        query_codes=rng.integers(0, 2, (3, 16)),
        gallery_codes=rng.integers(0, 2, (8, 16)),
        **labels,
    )
    return ["hashing", "codes.npz", "--k", "5"], ["codes.npz"]


KINDS = (eval_coco, eval_poses, eval_voc, eval_yolo, shards, batch, compare, trec, reid, neighbors, hashing)


@pytest.fixture(params=KINDS, ids=lambda make: make.__name__)
def made(request, tmp_path, monkeypatch, capsys):
    """The card of a command, what there was before it, and the words that verify it."""
    monkeypatch.chdir(tmp_path)
    words, given = request.param(tmp_path)
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert run(*words, "--card", "card.json", "--quiet") == 0, capsys.readouterr()
    assert run("verify", "card.json", *given, "--threads", 1) == 0, capsys.readouterr()
    capsys.readouterr()
    return files, ["verify", "card.json", *given, "--threads", 1, "--quiet"], given


def test_a_changed_byte_of_an_input(made, capsys):
    """A byte of any file that was there to read; the verdict is that an input is another one, also where it is damaged."""
    files, words, _ = made
    draw, missed, codes = random.Random(1), [], set()
    for at in range(CHANGES):
        path = files[at % len(files)]
        data = path.read_bytes()
        place, mask = draw.randrange(len(data)), draw.randrange(1, 256)
        path.write_bytes(data[:place] + bytes([data[place] ^ mask]) + data[place + 1 :])
        code = run(*words)
        out, _ = capsys.readouterr()
        codes.add(code)
        if not code or (code == 1 and "inputs" not in out):
            missed.append((path.name, place, data[place], mask))
        path.write_bytes(data)
    assert missed == []
    assert run(*words) == 0


def anew(given):
    """The card that verification makes, to compare with."""
    options = argparse.Namespace(verified="card.json", inputs=given, threads=1, **dict.fromkeys(named_files()))
    again = _again(cards.read("card.json"), options)
    assert isinstance(again, dict)
    return again


def parts_of(differences):
    return {one.part for one in differences}


def test_a_changed_decision(made):
    """A decision that says something else, of another type, or that is gone; whoever changes it makes the rest follow."""
    card, again, draw = cards.read("card.json"), anew(made[2]), random.Random(2)
    assert cards.compare(card, again) == []
    missed = []
    for at in range(CHANGES):
        changed = copy.deepcopy(card)
        name = draw.choice(sorted(changed["decisions"]))
        value = changed["decisions"][name]
        text = json.dumps(value)
        place = draw.randrange(len(text) + 1)
        if at % 2:
            other = f"{text[:place]}{draw.choice('0123456789abc')}{text[place + (at % 4 == 1) :]}"
            with contextlib.suppress(ValueError):
                other = json.loads(other)
        else:
            other = draw.choice([v for v in (None, True, False, 0, 1, "0", "coco", [], [1], {}, [value]) if v != value])
        changed["decisions"][name] = other
        if json.dumps(other) == text:
            continue
        for one in (changed, cards.finished(changed)):
            if "decisions" not in parts_of(cards.compare(one, again)):
                missed.append((name, value, other))
    assert missed == []


def test_a_changed_number(made):
    """A digit of a number, its last bit, or both its forms at once; of poses by more than processors differ."""
    card, again, draw = cards.read("card.json"), anew(made[2]), random.Random(3)
    poses = card["decisions"].get("iou_type") == "keypoints"
    missed = []
    for at in range(CHANGES):
        changed = copy.deepcopy(card)
        name = draw.choice(sorted(changed["numbers"]))
        held = changed["numbers"][name]
        if at % 3 == 0 and held["decimal"] != "nan":
            value = float(held["decimal"])
            held.update(cards.number(value + 2e-9 if poses else np.nextafter(value, draw.choice([-9.0, 9.0]))))
        else:
            key = draw.choice(["decimal", "hex"])
            place = draw.randrange(len(held[key]))
            other = draw.choice([one for one in "0123456789abcdef.-px" if one != held[key][place]])
            held[key] = held[key][:place] + other + held[key][place + 1 :]
        for one in (changed, cards.finished(changed)):
            if "numbers" not in parts_of(cards.compare(one, again)):
                missed.append((name, card["numbers"][name], held))
    assert missed == []


def test_a_changed_byte_of_the_card(made, capsys):
    """Whatever byte of the file it is: it is found, or says the same, or is one of white space, or of what is only told."""
    _, _, given = made
    text, again, draw, missed = Path("card.json").read_bytes(), anew(given), random.Random(4), []
    before = cards.read("card.json")
    for _ in range(CHANGES):
        place = draw.randrange(len(text))
        changed = text[:place] + bytes([text[place] ^ (1 << draw.randrange(8))]) + text[place + 1 :]
        Path("changed.json").write_bytes(changed)
        try:
            card = cards.read("changed.json")
        except ValueError:
            continue
        if card != before and not cards.compare(card, again):
            missed.append((place, text[place], changed[place]))
    assert missed == []


def test_a_list_of_files_is_an_input(tmp_path, monkeypatch, capsys):
    """A manifest whose tags change scores the same files, and is another input all the same."""
    monkeypatch.chdir(tmp_path)
    words, given = batch(tmp_path)
    assert run(*words, "--card", "card.json", "--quiet") == 0
    roles = [one["role"] for one in cards.read("card.json")["inputs"]]
    assert roles == ["ground_truth", "manifest", "detections", "detections"]
    with open("models.csv", newline="") as file:
        rows = list(csv.reader(file))
    rows[1][2] = "c"
    with open("models.csv", "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    capsys.readouterr()
    assert run("verify", "card.json", *given, "--format", "json") == 1
    (difference,) = json.loads(capsys.readouterr().out)["differences"]
    assert (difference["part"], difference["of"]) == ("inputs", "manifest")


def test_a_gallery_that_was_moved(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words, given = neighbors(tmp_path)
    assert run(*words, "--card", "card.json", "--quiet") == 0
    Path("gallery.parquet").rename("moved.parquet")
    capsys.readouterr()
    assert run("verify", "card.json", *given) == 2
    assert "give --gallery FILE, where it lies now" in capsys.readouterr().err
    assert run("verify", "card.json", *given, "--gallery", "moved.parquet") == 0


def test_files_beside_an_input(tmp_path, monkeypatch, capsys):
    """YOLO's labels lie beside the data.yaml that is given: a blank in one of them makes another input."""
    monkeypatch.chdir(tmp_path)
    words, given = eval_yolo(tmp_path)
    assert run(*words, "--card", "card.json", "--quiet") == 0
    label = Path("set/labels/val/2.txt")
    label.write_text(label.read_text() + "\n")
    capsys.readouterr()
    assert run("verify", "card.json", *given, "--format", "json") == 1
    (difference,) = json.loads(capsys.readouterr().out)["differences"]
    assert difference["of"] == "ground truth (files beside it)"
    label.write_text(label.read_text()[:-1])
    names = Path("out/classes.txt")
    names.write_text(names.read_text() + "\n")
    assert run("verify", "card.json", *given) == 1
    assert "detections (files beside it)" in capsys.readouterr().out
    Path("set").rename("moved")
    names.write_text(names.read_text()[:-1])
    assert run("verify", "card.json", "moved/data.yaml", "out/run") == 0


def without(path, keys, roles=()):
    """A card as versions wrote it that knew neither these parts of an input nor inputs of these roles."""
    made = json.loads(path.read_text())
    inputs = [one for one in made["inputs"] if one["role"] not in roles]
    made["inputs"] = [{key: value for key, value in one.items() if key not in keys} for one in inputs]
    path.write_bytes(cards.to_json(cards.finished(made)))
    return path


def test_a_card_from_before_files_beside_an_input_counted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words, given = eval_yolo(tmp_path)
    assert run(*words, "--card", "card.json", "--quiet") == 0
    assert run("verify", without(Path("card.json"), ["beside"]), *given) == 0


def test_a_card_from_before_lists_and_galleries_counted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words, given = batch(tmp_path)
    assert run(*words, "--card", "card.json", "--quiet") == 0
    assert run("verify", without(Path("card.json"), [], ["manifest"]), *given) == 0
    words, given = neighbors(tmp_path)
    assert run(*words, "--card", "other.json", "--quiet") == 0
    assert run("verify", without(Path("other.json"), [], ["gallery"]), *given) == 0


def test_settings_that_name_their_labels_from_the_root_may_lie_elsewhere(tmp_path, monkeypatch, capsys):
    """Not one byte of what is read differs."""
    monkeypatch.chdir(tmp_path)
    words, given = eval_yolo(tmp_path)
    settings = Path("set/data.yaml")
    Path("near").mkdir()
    Path("near/data.yaml").write_text(f"path: {tmp_path / 'set'}\n" + settings.read_text())
    words = ["near/data.yaml" if word == given[0] else word for word in words]
    assert run(*words, "--card", "card.json", "--quiet") == 0
    Path("far/away").mkdir(parents=True)
    Path("near/data.yaml").rename("far/away/data.yaml")
    assert run("verify", "card.json", "far/away/data.yaml", given[1]) == 0
    label = Path("set/labels/val/2.txt")
    label.write_text(label.read_text() + "\n")
    assert run("verify", "card.json", "far/away/data.yaml", given[1]) == 1


def test_a_file_beside_an_input_counts_by_its_own_name(tmp_path):
    for name in ("a/in.json", "b/c/in.json", "b/classes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    beside = [str(tmp_path / "b/classes.txt")]
    near, far = (cards.beside_digest(tmp_path / one, beside) for one in ("a/in.json", "b/c/in.json"))
    assert near == far != ""
    (tmp_path / "b/classes.txt").rename(tmp_path / "b/names.txt")
    assert cards.beside_digest(tmp_path / "a/in.json", [str(tmp_path / "b/names.txt")]) != near
