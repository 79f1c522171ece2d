#!/usr/bin/env python
"""Compares every output of this checkout with another commit's, byte for byte, by their hashes.

What is looked at: standard output and files of every command in every format, saved states, and the arrays of the drop-in;
of the fixtures, of ``../shared/data`` where it is there, and of generated workloads.

    scripts/golden.py --against COMMIT
    scripts/golden.py --against COMMIT --only "trec" --workloads 20
    scripts/golden.py --write FILE.json        the hashes of this checkout
    scripts/golden.py --check FILE.json        against those
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [os.environ.get("DETMAP_TREE", str(ROOT)), str(ROOT / "tests"), str(ROOT / "scripts")]

from _trees import checkout, environment  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
FORMATS = ("table", "json", "csv", "markdown")
Made = Iterator[tuple[str, bytes]]

#: The key and the seal of a result in a file of ``detmap batch``, and the keys of the tests of pairs.
_KEYS = re.compile(rb'"(?:key|seal)": "[0-9a-f]{64}"|"[0-9a-f]{64}":')


def command(*words: str) -> bytes:
    """Run a command in this process and return its exit code and what it prints."""
    from detmap.cli import main

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
        try:
            code: object = main(words)
        except SystemExit as ended:
            code = ended.code
    return f"{code}\n{said.getvalue()}".encode("utf-8", "backslashreplace")


def in_formats(name: str, *words: str) -> Made:
    for form in FORMATS:
        yield f"{name} {form}", command(*words, "--format", form)


def array(value: Any) -> bytes:
    """An array's shape and bits; all NaN are one."""
    column = np.array(value, np.float64)
    column[np.isnan(column)] = np.nan
    return repr(column.shape).encode() + column.tobytes()


def files(folder: Path) -> Made:
    """Everything below a folder, but for what holds times or is packed anew, and keys, which tell versions apart."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix not in (".parquet", ".npz", ".png") and path.name != ".index":
            yield f"file {path.relative_to(folder)}", _KEYS.sub(b"", path.read_bytes())


def detections() -> Made:
    """`eval`, `batch` and `compare` of the fixtures."""
    fixtures = Path(os.environ["DETMAP_GOLDEN"]) / "fixtures"
    truth, found = (str(fixtures / "coco" / f"{name}.json") for name in ("ground_truth", "detections"))
    voc = [str(fixtures / "voc" / name) for name in ("Annotations", "results")]
    images = ["--image-set", str(fixtures / "voc" / "ImageSets" / "test.txt")]
    yield from in_formats("eval coco", "eval", truth, found, "--per-class")
    yield from in_formats("eval options", "eval", truth, found, "--max-dets", "1,10,500", "--area-range", "tiny:0:256")
    for year in ("voc2007", "voc2012"):
        yield from in_formats(f"eval {year}", "eval", *voc, "--protocol", year, *images, "--per-class")
    yield "eval one class", command("eval", truth, found, "--no-categories")
    out = Path("out")
    yield "eval to files", command("eval", truth, found, "--out", "out.json", "--arrays", "out.npz")
    yield "eval json", Path("out.json").read_bytes()
    for name, column in sorted(np.load("out.npz").items()):
        yield f"eval arrays {name}", array(column)
    records = json.loads(Path(found).read_text())
    rng = np.random.default_rng(0)
    for model in range(3):
        for one in records:
            one["score"] = round(min(1.0, max(0.0, one["score"] + rng.normal(0, 0.05))), 4)
        Path(f"model{model}.json").write_text(json.dumps(records))
    Path("broken.json").write_text("[{]")
    models = [f"model{model}.json" for model in range(3)]
    yield from in_formats("batch", "batch", truth, *models, "broken.json")
    yield "batch to files", command("batch", truth, *models, "--out", str(out))
    yield from files(out)
    yield from in_formats("batch bootstrap", "batch", truth, *models, "--bootstrap", "200")
    yield from in_formats("compare", "compare", truth, *models, "--bootstrap", "200")
    yield "sharded", command("eval", truth, "model[01].json", "--sharded")


def shapes() -> Made:
    """`eval` and `check` of the fixtures of masks, boundaries, poses and tracks."""
    fixtures = Path(os.environ["DETMAP_GOLDEN"]) / "fixtures"
    for name, truth, found, *options in (
        ("masks", "people/ground_truth", "people/masks", "--iou-type", "segm"),
        ("boundary", "people/ground_truth", "people/masks", "--iou-type", "boundary"),
        ("poses", "people/ground_truth", "people/poses", "--iou-type", "keypoints"),
        ("tracks", "ytvis/ground_truth", "ytvis/results", "--protocol", "ytvis"),
    ):
        files = [str(fixtures / f"{one}.json") for one in (truth, found)]
        yield from in_formats(f"shapes {name}", "eval", *files, *options, "--per-class")
        if "--iou-type" in options:
            yield f"shapes check {name}", command("check", *files, *options)


def rankings() -> Made:
    """`trec`, `reid` and `hashing` of made-up data, and of trec_eval's own tests."""
    rng = np.random.default_rng(1)
    people = {"query_ids": rng.integers(0, 8, 20), "gallery_ids": rng.integers(0, 8, 60)}
    cameras = {"query_cameras": rng.integers(0, 3, 20), "gallery_cameras": rng.integers(0, 3, 60)}
    classes = {"query_labels": rng.integers(0, 4, 20), "gallery_labels": rng.integers(0, 4, 60)}
    np.savez("reid.npz", distances=np.round(rng.random((20, 60)), 2), **people, **cameras)
    features = {"query_features": rng.standard_normal((20, 8)), "gallery_features": rng.standard_normal((60, 8))}
    np.savez("features.npz", **features, **people)
    codes = {"query_codes": rng.integers(0, 2, (20, 16)), "gallery_codes": rng.integers(0, 2, (60, 16))}
    np.savez("codes.npz", **codes, **classes)
    yield from in_formats("reid", "reid", "reid.npz", "--per-query")
    yield from in_formats("reid features", "reid", "features.npz")
    yield from in_formats("hashing", "hashing", "codes.npz", "--k", "20")
    for name in ("market", "layumi", "allshots", "cuhk03_exact", "sysu", "oxford", "sklearn", "map_at_r"):
        yield f"reid {name}", command("reid", "reid.npz", "--convention", name, "--format", "json")
    for ties in ("index", "reversed", "collapsed", "expected", "best", "worst"):
        yield f"hashing {ties}", command("hashing", "codes.npz", "--ties", ties, "--format", "json")
    yield "conventions", command("conventions", "--format", "json")
    run = [f"q{q} Q0 d{d} 1 {round(float(s), 2)} tag" for q in range(8) for d, s in enumerate(rng.random(30))]
    other = [f"q{q} Q0 d{d} 1 {round(float(s), 2)} tag" for q in range(8) for d, s in enumerate(rng.random(30))]
    judged = [f"q{q} 0 d{d} {g}" for q in range(8) for d, g in enumerate(rng.integers(0, 3, 20).tolist())]
    for name, lines in (("one.run", run), ("two.run", other), ("qrels.txt", judged)):
        Path(name).write_text("\n".join(lines) + "\n")
    yield from in_formats(
        "trec", "trec", "qrels.txt", "one.run", "--per-query", "--metrics", "map,ndcg@10,bpref,infap,P@5"
    )
    yield from in_formats("trec compare", "trec", "qrels.txt", "one.run", "two.run", "--compare")
    if (DATA / "trec").is_dir():
        for path in sorted((DATA / "trec").iterdir()):
            if path.name.startswith("results"):
                yield (
                    f"trec {path.name}",
                    command("trec", str(DATA / "trec" / "qrels.test"), str(path), "--format", "json"),
                )


def real() -> Made:
    """COCO's own example, and VOC 2007 with a real detector."""
    if not DATA.is_dir():
        return
    coco = DATA / "coco"
    truth, found = coco / "instances_val2014_100.json", coco / "instances_val2014_fakebbox100_results.json"
    yield from in_formats("real coco", "eval", str(truth), str(found), "--per-class")
    voc = [str(DATA / "voc2007" / f"{name}.tar.gz") for name in ("Annotations", "detections_a")]
    for protocol in ("voc2007", "voc2012"):
        yield f"real {protocol}", command("eval", *voc, "--protocol", protocol, "--format", "json", "--per-class")


def generated(count: int) -> Made:
    """Arrays and states of workloads, through the library and through the drop-in."""
    from workloads import make_coco

    import detmap
    from detmap.pycocotools.coco import COCO
    from detmap.pycocotools.cocoeval import COCOeval

    for seed in range(count):
        rng = np.random.default_rng(seed)
        dataset, results, *_ = make_coco(
            seed,
            scores=["tenths", "continuous", "all equal", "logits"][seed % 4],
            over_100=seed % 10 == 0,
            crowded_cell=seed % 7 == 0,
        )
        if not results:
            continue
        truth = detmap.read_coco(json.dumps(dataset).encode())
        found = detmap.read_coco_results(json.dumps(results).encode(), truth)
        for protocol in ("coco", "voc2007", "voc2012"):
            tally = detmap.match(truth, found, protocol)
            result = detmap.DetectionResult(tally)
            for name in ("precision", "recall", "scores", "average_precision"):
                yield f"{seed} {protocol} {name}", array(getattr(result, name))
            yield f"{seed} {protocol} metrics", json.dumps([list(result), array(list(result.values())).hex()]).encode()
            yield f"{seed} {protocol} state", tally.to_bytes()
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            original = COCO()
            original.dataset = dataset
            original.createIndex()
            evaluation = COCOeval(original, original.loadRes([dict(one) for one in results]), "bbox")
            evaluation.params.useCats = int(rng.random() < 0.8)
            evaluation.evaluate()
            evaluation.accumulate()
            evaluation.summarize()
        for name in ("precision", "recall", "scores"):
            yield f"{seed} drop-in {name}", array(evaluation.eval[name])
        text = said.getvalue().splitlines()
        yield f"{seed} drop-in text", "\n".join(line for line in text if "t=" not in line).encode()


def hashes(workloads: int, only: str) -> dict[str, str]:
    """Everything that the package of this process makes."""
    os.environ["COLUMNS"] = "160"
    os.environ["NO_COLOR"] = "1"
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for part in (detections(), shapes(), rankings(), real(), generated(workloads)):
            for name, data in part:
                if only in name:
                    found[name] = hashlib.sha256(data.replace(os.fsencode(str(ROOT)), b"")).hexdigest()
        os.chdir(ROOT)
    return found


def of_tree(tree: Path, workloads: int, only: str) -> dict[str, str]:
    """The hashes of another tree's package, from a process of its own; the scripts and the fixtures are these."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        given = {**environment(tree), "DETMAP_GOLDEN": str(ROOT)}
        words = ["--write", file.name, "--workloads", str(workloads), "--only", only]
        subprocess.run([sys.executable, __file__, *words], env=given, check=True)
        made: dict[str, str] = json.loads(Path(file.name).read_text())
        return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--against", metavar="COMMIT", help="compare with a commit")
    parser.add_argument("--write", metavar="FILE", help="write the hashes of this checkout")
    parser.add_argument("--check", metavar="FILE", help="compare with hashes that were written before")
    parser.add_argument("--workloads", type=int, default=300, metavar="N", help="generated workloads; default: 300")
    parser.add_argument("--only", default="", metavar="TEXT", help="outputs whose name holds this")
    options = parser.parse_args()
    os.environ.setdefault("DETMAP_GOLDEN", str(ROOT))
    if options.write:
        Path(options.write).write_text(json.dumps(hashes(options.workloads, options.only), indent=1))
        return 0
    if options.against:
        with checkout(options.against) as tree:
            before = of_tree(tree, options.workloads, options.only)
    elif options.check:
        before = json.loads(Path(options.check).read_text())
    else:
        parser.error("one of --against, --write and --check is needed")
    now = of_tree(ROOT, options.workloads, options.only)
    different = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    for name in different[:40]:
        print(
            f"different: {name}"
            if name in before and name in now
            else f"only {'before' if name in before else 'now'}: {name}"
        )
    print(f"{len(now)} outputs, {len(different)} differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
