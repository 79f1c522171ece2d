"""The recipe of docs/integrations/training_loops.md for experiment trackers, run by them."""

from __future__ import annotations

import pytest

import detmap

pytestmark = pytest.mark.filterwarnings("default")  # of the trackers


@pytest.fixture
def metrics():
    """What a validation leaves: flat, with the names of categories."""
    evaluator = detmap.Evaluator(categories={1: "cat", 2: "dog"})
    prediction = {"boxes": [[10, 10, 50, 50]], "scores": [0.9], "labels": [1]}
    evaluator.update([prediction], [{"boxes": [[10, 10, 50, 48]], "labels": [1], "image_id": 7}])
    flat = evaluator.compute().to_flat("val/", categories=True)
    assert flat["val/AP/cat"] == pytest.approx(1)
    return flat


def test_tensorboard(metrics, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        for name, value in metrics.items():
            writer.add_scalar(name, value, 3)
    events = EventAccumulator(str(tmp_path)).Reload()
    assert set(events.Tags()["scalars"]) == set(metrics)
    for name, value in metrics.items():
        (event,) = events.Scalars(name)
        assert event.step == 3
        assert event.value == pytest.approx(value, rel=1e-6)


def test_mlflow(metrics, tmp_path):
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    mlflow.create_experiment("detmap", artifact_location=tmp_path.as_uri())
    mlflow.set_experiment("detmap")
    with mlflow.start_run() as run:
        mlflow.log_metrics(metrics, step=3)
    assert mlflow.get_run(run.info.run_id).data.metrics == pytest.approx(metrics)


def test_wandb(metrics, tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with wandb.init(mode="offline", dir=tmp_path, project="detmap") as run:
        run.log(metrics, step=3, commit=True)
        kept = {name: run.summary[name] for name in metrics}
    assert kept == pytest.approx(metrics)
