"""The recipe of docs/integrations/training_loops.md for Lightning, run by Lightning."""

from __future__ import annotations

import pytest
import torch

import detmap

lightning = pytest.importorskip("pytorch_lightning")
pytestmark = pytest.mark.filterwarnings("default")  # of Lightning: no loggers, few workers

BOXES = torch.tensor([[10.0, 10, 50, 50]])


class Detector(lightning.LightningModule):
    def on_validation_epoch_start(self):
        self.evaluator = detmap.Evaluator(duplicates="first")

    def validation_step(self, batch, index):
        images, targets = batch
        self.evaluator.update(self(images), targets)

    def on_validation_epoch_end(self):
        self.log_dict(self.evaluator.compute().to_flat("val/"))

    def forward(self, images):
        return [
            {"boxes": BOXES + image, "scores": torch.tensor([0.9]), "labels": torch.tensor([1])} for image in images
        ]


def test_lightning(tmp_path):
    images = [
        ([0.0, 1.0], [{"boxes": BOXES, "labels": torch.tensor([1]), "image_id": torch.tensor([i])} for i in (1, 2)]),
        ([9.0], [{"boxes": BOXES, "labels": torch.tensor([1]), "image_id": torch.tensor([2])}]),  # seen before
    ]
    data = torch.utils.data.DataLoader(images, batch_size=None)
    options = {"logger": False, "enable_progress_bar": False, "enable_checkpointing": False, "accelerator": "cpu"}
    trainer = lightning.Trainer(**options, enable_model_summary=False, default_root_dir=tmp_path)
    (logged,) = trainer.validate(Detector(), data, verbose=False)
    assert logged["val/AP50"] == pytest.approx(1)
    assert 0.9 < logged["val/AP"] <= 1
