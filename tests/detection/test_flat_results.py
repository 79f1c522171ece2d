"""Results as flat dictionaries."""

from __future__ import annotations

import math

import executed
import pytest

import detmap
from detmap.retrieval import evaluate_run

FILES = [executed.ROOT / "fixtures/coco" / name for name in ("ground_truth.json", "detections.json")]


def test_flat_results():
    result = detmap.evaluate(*FILES)
    assert result.to_flat() == {name: value for name, value in result.items() if not math.isnan(value)}
    flat = result.to_flat("val/", categories=True)
    named = {f"val/AP/{row['category']}": row["AP"] for row in result.per_category if not math.isnan(row["AP"])}
    assert flat == {f"val/{name}": value for name, value in result.to_flat().items()} | named
    assert named


def test_what_is_undefined_is_left_out():
    evaluator = detmap.Evaluator(categories={1: "cat", 2: "dog"})
    evaluator.update(
        {"boxes": [[0, 0, 9, 9]], "scores": [0.5], "labels": [1]}, {"boxes": [[0, 0, 9, 9]], "labels": [1]}
    )
    flat = evaluator.compute().to_flat(categories=True)
    assert "AP_large" not in flat
    assert [name for name in flat if "/" in name] == ["AP/cat"]


def test_rankings():
    result = evaluate_run({"q": {"d": 1}}, {"q": {"d": 0.5, "e": 0.7}}, metrics=["MRR"])
    assert result.to_flat("test/") == {"test/MRR": pytest.approx(0.5)}


def test_the_page_of_training_loops(monkeypatch, tmp_path):
    """It needs no PyTorch."""
    monkeypatch.chdir(tmp_path)
    assert executed.run(executed.ROOT / "docs/integrations/training_loops.md") == 1
