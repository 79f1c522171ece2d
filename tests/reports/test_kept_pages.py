"""Pages of small files, kept with every sentence, number, table and curve that is on them."""

from __future__ import annotations

import inspect
from datetime import datetime, timezone

import kept
import numpy as np
import pytest
import tiny

import detmap
from detmap import cli, retrieval
from detmap.reports import rankings

FIXTURES = kept.FOLDER.parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("pages")
    for write in (tiny.detectors, tiny.pictures, tiny.runs, tiny.galleries):
        write(made)
    return made


def fixture(*names):
    return [str(FIXTURES / name) for name in names]


#: The words of each page.
PAGES = {
    "one-detector": [
        *("truth.json", "one.json", "--attributes", "attributes.csv", "--images", "pictures"),
        *("--bootstrap", 200, "--all-intervals"),
    ],
    "two-detectors": [
        *("truth.json", "two.json", "three.json", "--bootstrap", 250, "--confidence", 0.9, "--interval", "percentile"),
        *("--iou", 0.75, "--score", 0.3, "--images", "pictures", "--correction", "bh", "--permutations", 300),
    ],
    "masks": [*fixture("people/ground_truth.json", "people/masks.json"), "--iou-type", "segm", "--bootstrap", 0],
    "poses": [*fixture("people/ground_truth.json", "people/poses.json"), "--iou-type", "keypoints", "--bootstrap", 0],
    "segments-of-time": [
        *fixture("temporal/activitynet.json", "temporal/activitynet_results.json"),
        *("--protocol", "activitynet", "--bootstrap", 0),
    ],
    "samples": [*fixture("nuscenes/samples.json", "nuscenes/results.json"), "--protocol", "nuscenes", "--bootstrap", 0],
    "panoptic": ["--pq", *fixture("panoptic/ground_truth.json", "panoptic/before.json"), "--bootstrap", 200],
    "panoptic-two": [
        *("--pq", *fixture("panoptic/ground_truth.json", "panoptic/before.json", "panoptic/after.json")),
        *("--bootstrap", 200, "--permutations", 200, "--confidence", 0.9),
    ],
    "run": [
        *("--trec", "qrels.txt", "first.run", "--bootstrap", 200, "--level", 2),
        *("--metrics", "map,ndcg@10,P_5,num_ret,rr,recall@20"),
    ],
    "two-runs": [
        "--trec",
        "qrels.txt",
        "first.run",
        "second.run",
        "--bootstrap",
        200,
        "--ties",
        "best",
        "--metrics",
        "ndcg,map",
    ],
    "runs-of-other-queries": [
        *("--trec", "qrels.txt", "part.run", "second.run", "first.run", "--bootstrap", 200, "--confidence", 0.8),
        *("--metrics", "map@10,ndcg@5", "--depth", 20),
    ],
    "people": ["--reid", "reid.npz", "distances.npz", "--bootstrap", 200],
    "codes": ["--hashing", "codes.npz", "--k", 10, "--bootstrap", 0],
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page(folder, monkeypatch, name):
    pytest.importorskip("jinja2")
    monkeypatch.chdir(folder)
    out = folder / f"{name}.html"
    assert cli.main(["report", *map(str, PAGES[name]), "--out", str(out), "--quiet"]) == 0
    kept.same(f"pages/{name}", kept.outlined(out.read_text("utf-8")))


def defaults(call):
    """Return the values that arguments have by default."""
    given = inspect.signature(call).parameters.values()
    return {one.name: one.default for one in given if one.default is not one.empty}


def page_of(results, **more):
    pytest.importorskip("jinja2")
    models = [one if isinstance(one, rankings.Model) else rankings.Model(name, one) for name, one in results.items()]
    return kept.outlined(rankings.html(models, [], datetime(2026, 1, 2, 3, 4, tzinfo=timezone.utc), **more))


def test_a_page_of_many_queries_with_deep_rankings():
    """More queries than a table lists, ranks beyond the last that is drawn, and no relevant item for some."""
    rng = np.random.default_rng(3)
    flags = rng.random((130, 1200)) < 0.01
    flags[:, 1001:] = False
    flags[::13] = False
    found = retrieval.evaluate_rankings(
        [row[: 1200 - 9 * at].tolist() for at, row in enumerate(flags)], flags.sum(axis=1), metrics=["mAP", "P@10"]
    )
    kept.same("pages/deep-rankings", page_of({"deep": found}, level=0.9))


def test_a_page_of_many_systems():
    """More than have colours of their own, some with other metrics; the last has no interval, for it has few queries."""
    rng = np.random.default_rng(4)
    metrics = [f"{name}@{at}" for name in ("P", "R") for at in range(1, 9)]
    found = {
        f"m{at}": retrieval.evaluate_rankings(
            (rng.random((12 - at, 7)) < 0.3).tolist(), [7] * (12 - at), metrics=["mAP", *metrics[: 16 - at], "num_ret"]
        )
        for at in range(8)
    }
    made = [rankings.intervals(found["m0"], 200, 0, "t"), *[None] * 7]
    models = {
        name: rankings.Model(name, one, draws, f"{name} was not read.", {"trec": len(one)})
        for (name, one), draws in zip(found.items(), made, strict=True)
    }
    kept.same("pages/many-systems", page_of(models))


@pytest.mark.parametrize("convention", ["detmap", "cuhk03", "sysu"])
def test_a_page_of_a_convention(folder, convention):
    """Curves, ties and cards: without CMC, and with CMC that is no share of queries."""
    with np.load(folder / "distances.npz") as arrays:
        given = [arrays[name] for name in ("distances", "query_ids", "gallery_ids", "query_cameras", "gallery_cameras")]
    found = retrieval.evaluate_distances(*given, convention=convention)
    text = page_of({"a": found})
    kept.same(
        f"pages/convention-{convention}",
        "\n".join(line for line in text.splitlines() if "<path" in line or "<p" in line),
    )


def test_a_page_of_many_detectors(folder):
    """Tables in memory; what the first screen says of each model, and what was evaluated."""
    pytest.importorskip("jinja2")
    truth = detmap.read(folder / "truth.json", "ground_truth", image_facts=True)
    found = [detmap.read(folder / f"{name}.json", "detections", ground_truth=truth) for name in ("one", "two", "three")]
    given = dict(zip("abc", found, strict=True))
    out = detmap.report(truth, given, folder / "many.html", bootstrap=0)
    text = kept.outlined(out.read_text("utf-8"))
    assert defaults(detmap.report) == {
        "protocol": "coco", "iou_type": None, "iou": 0.5, "score": None, "images": None, "attributes": None,
        "bootstrap": 1000, "seed": 0, "level": 0.95, "method": "t", "permutations": None,
        "correction": "holm", "all_intervals": False, "threads": None, "path": "report.html",
    }  # fmt: skip
    kept.same("pages/many-detectors", text[: text.index("<section>")] + text[text.rindex("<h2>What was evaluated") :])


def arrays(on, classes, size=9.0, **more):
    """Return arrays of boxes, one beside the other."""
    left = np.arange(len(on)) * 20.0
    boxes = np.stack([left, left * 0, np.full(len(on), size), np.full(len(on), size)], axis=1)
    return {"image_ids": np.array(on, int), "category_ids": np.array(classes, int), "boxes": boxes, **more}


MANY = np.arange(60) % 25
EDGES = {
    "perfect": (arrays([1, 1, 2], [1, 2, 1]), arrays([1, 1, 2], [1, 2, 1], scores=[0.5, 0.75, 0.25]), {}),
    "no-detections": (arrays([1, 2], [1, 1]), arrays([], [], scores=[]), {}),
    "scores-above-1": (arrays([1, 1, 2], [1, 2, 1]), arrays([1, 1, 2], [1, 1, 2], 8.0, scores=[1.5, 1.0, 0.5]), {}),
    "many-classes": (
        arrays(np.arange(60) % 9, MANY),
        arrays(np.arange(60) % 9, np.where(np.arange(60) % 4, MANY, MANY // 2), 8.0, scores=np.arange(60) % 7 / 7),
        {"protocol": "voc2007"},
    ),
    "two-thresholds": (
        arrays([1, 1, 2, 2], [1, 2, 1, 1], 40.0),
        arrays([1, 1, 2, 2], [1, 2, 1, 2], 33.0, scores=[0.5, 0.25, 0.75, 0.5]),
        {"iou_thresholds": (0.6, 0.7), "max_dets": (1, 2), "iou": 0.65, "score": 0.3},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EDGES)
def test_a_page_of_an_unusual_detector(tmp_path, name):
    """One that finds all, or nothing, with other scores, of many classes, at other thresholds."""
    pytest.importorskip("jinja2")
    truth, found, options = EDGES[name]
    tables = detmap.GroundTruth.from_arrays(**truth), detmap.Detections.from_arrays(**found)
    out = detmap.report(*tables, tmp_path / "page.html", bootstrap=0, **options)
    kept.same(f"pages/{name}", kept.outlined(out.read_text("utf-8")))
