"""What commands print of small files, in every format, and the files that they write, kept word for word."""

from __future__ import annotations

import kept
import pytest
import tiny

from detmap import cli

FIXTURES = kept.FOLDER.parent
PANOPTIC = [str(FIXTURES / "panoptic" / f"{name}.json") for name in ("ground_truth", "before", "after")]
PEOPLE = [str(FIXTURES / "people" / f"{name}.json") for name in ("ground_truth", "poses")]

#: The words of commands by the name of what is kept of them.
COMMANDS = {
    "eval": [
        "eval truth.json one.json --per-class",
        "eval truth.json one.json --bootstrap 200 --confidence 0.9 --out result.json --card card.json",
        "verify card.json truth.json one.json",
        "verify card.json truth.json two.json",
        "verify card.json truth.json two.json --format json",
        "eval truth.json two.json --format csv --per-class",
        "eval truth.json two.json --format csv",
        "eval truth.json two.json --format latex --bootstrap 200 --per-class",
        "eval truth.json two.json --format markdown --bootstrap 200 --clusters street.csv",
        "eval truth.json two.json --format json --max-dets 1,3 --area-range tiny:0:200 --iou-thresholds 0.5,0.75",
        "eval truth.json one.json --protocol voc2007 --fail-under mAP=0.5 --junit tests.xml --gate-summary gates.md",
        "eval truth.json two.json --against card.json --max-drop AP=0.01 --max-drop AP50=0.5",
        "eval truth.json two.json --against card.json --max-drop AP=0.01 --unless-chance --bootstrap 200",
        "eval truth.json none.json",
        "eval truth.json one.json --unheard",
        "eval truth.json one.json --max-dets many",
        "eval truth.json one.json --class-thresholds 1",
    ],
    "batch": [
        "batch truth.json one.json two.json broken.json --bootstrap 200 --out scored",
        "batch truth.json one.json two.json broken.json --out scored --resume --format csv",
        "batch truth.json one.json two.json --metrics AP50,AR_100 --rank-by AP50 --format markdown",
        "batch truth.json one.json two.json three.json --format json --confidence 0.9 --bootstrap 200 --permutations 200",
    ],
    "compare": [
        "compare truth.json one.json two.json three.json --bootstrap 200 --permutations 200",
        "compare truth.json one.json two.json --bootstrap 200 --permutations 200 --metric AP50 --format csv --correction bh",
        "compare truth.json one.json two.json --bootstrap 200 --permutations 200 --format json --out compared.json",
        "compare truth.json one.json two.json --bootstrap 200 --under all",
        "compare --trec qrels.txt first.run second.run part.run --under all",
        "compare truth.json one.json two.json --why",
        "compare --pq {panoptic} --bootstrap 200 --permutations 200",
    ],
    "diagnose": [
        "diagnose truth.json one.json --all --attributes attributes.csv --bootstrap 200",
        "diagnose truth.json two.json --iou 0.75 --rows 2 --score 0.4",
        "diagnose truth.json two.json --parts tide,confusion --format csv",
        "diagnose truth.json two.json --parts tide,calibration,lrp --format json",
        "diagnose truth.json two.json --parts tide,images --format markdown --rows 3 --out diagnosed.json",
        "diagnose truth.json two.json --parts unheard",
    ],
    "explain": [
        "explain truth.json one.json --from coco --to voc2007",
        "explain truth.json one.json --from coco --to voc2012 --format json",
        "explain truth.json one.json --from coco --to ultralytics --metric AP50 --format csv",
        "explain truth.json one.json",
        "explain --trec qrels.txt first.run --from trec --to ranx",
    ],
    "check": [
        "check truth.json one.json",
        "check truth.json one.json --format json --train truth.json",
        "check truth.json",
        "check --trec qrels.txt first.run",
        "check --trec qrels.txt first.run --format csv",
        "check truth.json broken.json",
    ],
    "convert": [
        "convert truth.json voc --to voc",
        "convert one.json found.csv --ground-truth truth.json",
        "convert one.json found --ground-truth truth.json --to yolo",
    ],
    "pq": [
        "pq {panoptic} --per-class",
        "pq {panoptic} --bootstrap 200 --format csv",
        "pq {panoptic} --format markdown --per-class --card pq.json",
        "pq {panoptic} --fail-under PQ=0.99 --parts 3",
        "batch --pq {panoptic} --bootstrap 200",
    ],
    "trec": [
        "trec qrels.txt first.run",
        "trec qrels.txt first.run --metrics map,ndcg@10,recall@20,bpref --per-query --depth 30 --level 2",
        "trec qrels.txt part.run --format csv --per-query --complete --judged-only",
        "trec qrels.txt part.run --format json --out trec.json --card trec-card.json",
        "verify trec-card.json qrels.txt part.run",
        "trec qrels.txt first.run second.run part.run --compare --tests randomisation,t,wilcoxon --metrics map,P_5",
        "trec qrels.txt first.run second.run --format markdown --metrics map,rr",
        "trec qrels.txt first.run second.run --format latex --ties best --metrics map --compare",
        "trec qrels.txt first.run --format trec_eval --per-query -m map -m P.5,10 -m all_trec",
        "trec qrels.txt second.run --format trec_eval",
        "trec qrels.txt first.run --fail-under map=0.9 --metrics map,ndcg",
        "trec qrels.txt first.run --metrics unheard",
        "trec qrels.txt truth.json",
    ],
    "reid": [
        "reid reid.npz",
        "reid reid.npz --metric cosine --per-query --metrics mAP,CMC@1,CMC@5,mINP",
        "reid distances.npz --convention sysu --card reid.json",
        "reid distances.npz --format csv",
        "reid codes.npz",
        "hashing codes.npz",
        "hashing codes.npz --k 7 --per-query --format csv",
        "hashing codes.npz --k 7 --format json --metrics mAP,P@5",
        "hashing reid.npz",
    ],
    "listed": [
        "conventions",
        "protocols --format markdown",
        "check --codes",
    ],
    "poses": ["eval {people} --iou-type keypoints --bootstrap 200", "diagnose {people} --iou-type keypoints --rows 4"],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for write in (tiny.detectors, tiny.runs, tiny.galleries):
        write(tmp_path)
    (tmp_path / "broken.json").write_text('[{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3], "score": 0.5}]')
    (tmp_path / "street.csv").write_text("image,cluster\n" + "".join(f"{at},{at // 3}\n" for at in range(1, 13)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys, command):
    """Return a command, its exit code, and what it prints."""
    words = [
        word
        for one in command.split()
        for word in {"{panoptic}": PANOPTIC[: 3 if command[0] in "cb" else 2], "{people}": PEOPLE}.get(one, [one])
    ]
    try:
        code = cli.main(words)
    except SystemExit as stop:
        code = stop.code
    printed = capsys.readouterr()
    errors = "".join(f"! {line}\n" for line in printed.err.splitlines())
    return f"$ detmap {command}\n{printed.out}{errors}= {code}\n".replace(str(FIXTURES), "fixtures")


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(folder, capsys, name):
    before = set(folder.rglob("*"))
    told = [said(capsys, command) for command in COMMANDS[name]]
    for path in sorted({*folder.rglob("*")} - before):
        if path.suffix in (".json", ".csv", ".md", ".xml", ".txt") and path.is_file():
            told.append(f"# {path.relative_to(folder).as_posix()}\n{path.read_text('utf-8')}\n")
    kept.same(f"commands/{name}", "".join(told))


@pytest.mark.parametrize("command", [name for name in cli._HOMES if name not in ("protocols", "conventions", "warm")])
def test_help(capsys, command):
    """Help that is abridged to a screen, which argparse of any version leaves alone."""
    with pytest.raises(SystemExit) as stop:
        cli.main([command, "--help"])
    assert stop.value.code == 0
    kept.same(f"help/{command}", capsys.readouterr().out)
