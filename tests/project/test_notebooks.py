"""What a notebook shows of results: small, escaped, and without scripts."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import detmap
from detmap import batch
from detmap.checks import check
from detmap.detection.protocols import resolve
from detmap.explanations import contrast, explain, survives
from detmap.explanations.quotes import Candidate, Search
from detmap.explanations.ranking_shares import explain_run
from detmap.results import fragment
from detmap.retrieval import evaluate_run

HOSTILE_NAME = "<img src=x onerror=alert(1)></script>"
ALLOWED = {"div", "p", "strong", "table", "caption", "thead", "tbody", "tr", "th", "td"}


class Tags(HTMLParser):
    """Collects the tags, and what is open in the end."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.open.append(tag)
        assert [name for name, _ in attrs if name not in ("style", "class")] == []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def tables():
    """Twenty images; classes and models have names that mean harm."""
    rng = np.random.default_rng(0)
    corner = rng.uniform(0, 100, (60, 2))
    truth = {"image_ids": np.arange(60) % 20, "category_ids": np.arange(60) % 3}
    boxes = np.column_stack([corner, corner + 20])
    gt = detmap.GroundTruth.from_arrays(
        **truth, boxes=boxes, images=np.arange(20), categories=np.arange(3), category_names={0: HOSTILE_NAME}
    )
    found = {
        name: detmap.Detections.from_arrays(
            **truth, boxes=boxes + rng.normal(0, noise, (60, 4)), scores=rng.random(60).round(1)
        )
        for name, noise in ((HOSTILE_NAME, 1), ("b", 2))
    }
    return gt, found


@pytest.fixture(scope="module")
def shown(tables):
    gt, found = tables
    one, other = found.values()
    result = detmap.evaluate(gt, one)
    diagnosis = detmap.diagnose(gt, one)
    compared = detmap.compare({name: detmap.match(gt, two) for name, two in found.items()}, 200, permutations=100)
    judged, run = {"q": {"<i>": 1, "y": 1}}, {"q": {"<i>": 2.0, "y": 2.0, "z": 1.0}}
    entry = batch.Entry(HOSTILE_NAME, HOSTILE_NAME)
    search = Search(
        quoted={HOSTILE_NAME: (0.1, 0.2)},
        candidates=[
            Candidate(
                protocol=resolve("coco"),
                base="coco",
                changes=(HOSTILE_NAME,),
                values={HOSTILE_NAME: 0.15},
                by_chance=0.5,
            )
        ],
        matches=1,
        expected=0.7,
        named={"coco": {HOSTILE_NAME: 0.14}},
        idle=(),
        tried=(1, 1, 0),
        evaluations=2,
    )
    failed = batch.FileResult(entry, {"error": HOSTILE_NAME})
    return {
        "result": result,
        "ranking": evaluate_run(judged, run, "map"),
        "comparison": compared,
        "diagnosis": diagnosis,
        **{name: diagnosis.part(name) for name in ("tide", "confusion", "suspects")},
        "explanation": explain(gt, one, "voc2012", "coco"),
        "of rankings": explain_run(judged, run, "trec", "sklearn", "mAP"),
        "search": search,
        "contrast": contrast(gt, one, other, names=(HOSTILE_NAME, "b")),
        "survival": survives(gt, found, replicates=200),
        "file": failed,
        "board": batch.Leaderboard([failed]),
    }


@pytest.mark.slow
def test_every_result_is_a_small_fragment_that_runs_nothing(shown):
    for name, one in shown.items():
        text = one._repr_html_()
        made = Tags(text)
        assert made.open == [], name
        assert made.tags <= ALLOWED, name
        assert "".join(made.text).strip(), name
        assert len(text) < 60_000, name
        assert HOSTILE_NAME not in text


def test_names_that_mean_harm_are_there_as_text(shown):
    for name in ("result", "comparison", "search", "contrast", "survival", "file", "board"):
        assert "onerror" in "".join(Tags(shown[name]._repr_html_()).text), name


def test_a_report_of_checks_is_its_own_fragment(tables):
    gt, found = tables
    made = check(gt, next(iter(found.values())))
    assert made._repr_html_() == made.to_html(level=3)
    assert "<script" not in made._repr_html_()


def test_long_tables_and_texts_are_cut_and_said():
    text = fragment("t", {"": [{"name": "x" * 9999, "value": k / 7} for k in range(1000)], "none": []}, ["note"])
    assert len(re.findall("<tr>", text)) == 41
    assert "960 more rows" in text
    assert len(text) < 40_000
    assert "none" not in text
    assert text.endswith("<p>note</p></div>")
