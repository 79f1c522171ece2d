"""The recipe of docs/integrations/training_loops.md for experiment trackers, run by them."""

from __future__ import annotations

from unittest.mock import MagicMock

import executed
import pytest

import detmap

pytestmark = pytest.mark.filterwarnings("default")  # of the trackers


def logged(**trackers):
    """Run the lines of the page for the result of a validation, at step 3, with some trackers; return the metrics."""
    evaluator = detmap.Evaluator(categories={1: "cat", 2: "dog"})
    prediction = {"boxes": [[10, 10, 50, 50]], "scores": [0.9], "labels": [1]}
    evaluator.update([prediction], [{"boxes": [[10, 10, 50, 48]], "labels": [1], "image_id": 7}])
    names = {
        "result": evaluator.compute(),
        "step": 3,
        "writer": MagicMock(),
        "wandb": MagicMock(),
        "mlflow": MagicMock(),
    }
    page = executed.ROOT / "docs/integrations/training_loops.md"
    exec(executed.lines_of(page, "TensorBoard, Weights & Biases, MLflow"), names | trackers)
    metrics = names["result"].to_flat("val/", categories=True)
    assert metrics["val/AP/cat"] == pytest.approx(1)
    return metrics


def test_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        metrics = logged(writer=writer)
    events = EventAccumulator(str(tmp_path)).Reload()
    assert set(events.Tags()["scalars"]) == set(metrics)
    for name, value in metrics.items():
        (event,) = events.Scalars(name)
        assert event.step == 3
        assert event.value == pytest.approx(value, rel=1e-6)


def test_mlflow(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    mlflow.create_experiment("detmap", artifact_location=tmp_path.as_uri())
    mlflow.set_experiment("detmap")
    with mlflow.start_run() as run:
        metrics = logged(mlflow=mlflow)
    assert mlflow.get_run(run.info.run_id).data.metrics == pytest.approx(metrics)


def test_wandb(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with wandb.init(mode="offline", dir=tmp_path, project="detmap") as run:
        metrics = logged(wandb=wandb)
        run.log({"next": 1}, step=4, commit=True)  # a step is written when the next one begins
        kept = {name: run.summary[name] for name in metrics}
    assert kept == pytest.approx(metrics)
