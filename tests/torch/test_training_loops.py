"""The recipes of docs/integrations/training_loops.md, line by line, run by Lightning, Hugging Face's Trainer and SAHI."""

from __future__ import annotations

import json
from collections import namedtuple
from types import SimpleNamespace

import executed
import numpy as np
import pytest
import torch

import detmap

pytestmark = pytest.mark.filterwarnings("default")  # of the libraries: no loggers, few workers, deprecations

PAGE = executed.ROOT / "docs/integrations/training_loops.md"
BOXES = torch.tensor([[10.0, 10, 50, 50]])


def names_of(title, **given):
    """What the lines of a section define."""
    names = {"detmap": detmap, "torch": torch, "np": np, "namedtuple": namedtuple, **given}
    exec(executed.lines_of(PAGE, title), names)
    return names


def test_lightning(tmp_path):
    lightning = pytest.importorskip("pytorch_lightning")

    class Detector(names_of("Lightning", LightningModule=lightning.LightningModule)["Detector"]):
        def forward(self, images):
            return [
                {"boxes": BOXES + image, "scores": torch.tensor([0.9]), "labels": torch.tensor([1])} for image in images
            ]

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


def test_hugging_face_trainer(tmp_path):
    transformers = pytest.importorskip("transformers")
    from transformers.image_transforms import center_to_corners_format

    class YolosForObjectDetection(transformers.YolosForObjectDetection):  # its name decides the loss
        """Finds the objects of even images, of the right class, and no others."""

        def forward(self, pixel_values, labels):
            outputs = super().forward(pixel_values, labels=labels)
            logits, boxes = torch.full_like(outputs.logits, -9.0), outputs.pred_boxes.clone()
            logits[..., -1] = 9.0
            for image, target in enumerate(labels):
                if target["image_id"] % 2 == 0:
                    for place, label in enumerate(target["class_labels"]):
                        logits[image, place, label], boxes[image, place] = 12.0, target["boxes"][place]
            outputs.logits, outputs.pred_boxes = logits, boxes
            return outputs

    small = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    model = YolosForObjectDetection(
        transformers.YolosConfig(**small, image_size=[32, 32], patch_size=16, num_detection_tokens=4, num_labels=2)
    )
    images = [
        {
            "pixel_values": torch.zeros(3, 32, 32),
            "labels": {
                "boxes": torch.tensor([[0.5, 0.5, 0.2, 0.4], [0.3, 0.2, 0.1, 0.1]])[: i + 1],
                "class_labels": torch.tensor([0, 1])[: i + 1],
                "orig_size": torch.tensor([60, 100]),
                "image_id": torch.tensor([i]),
            },
        }
        for i in range(4)
    ]

    def collated(some):
        pixels = torch.stack([one["pixel_values"] for one in some])
        return {"pixel_values": pixels, "labels": [one["labels"] for one in some]}

    processor = transformers.YolosImageProcessor()
    names = names_of("Hugging Face Trainer", processor=processor, center_to_corners_format=center_to_corners_format)
    options = {"eval_do_concat_batches": False, "remove_unused_columns": False, "report_to": "none", "use_cpu": True}
    trainer = transformers.Trainer(
        model,
        transformers.TrainingArguments(str(tmp_path), per_device_eval_batch_size=2, disable_tqdm=True, **options),
        eval_dataset=images,
        data_collator=collated,
        compute_metrics=names["compute_metrics"],
    )
    found = trainer.evaluate()
    # Of 4 objects of class 0 two are found, of 3 of class 1 one is.
    assert found["eval_AP50"] == pytest.approx((51 / 101 + 34 / 101) / 2)
    assert found["eval_AR_100"] == pytest.approx((1 / 2 + 1 / 3) / 2)


def test_sahi(tmp_path, monkeypatch):
    pytest.importorskip("sahi")
    from sahi.models.base import DetectionModel
    from sahi.predict import get_sliced_prediction
    from sahi.prediction import ObjectPrediction

    class Model(DetectionModel):
        """Finds the bright pixels of a slice."""

        def load_model(self):
            pass

        def perform_inference(self, image):
            rows, columns = np.nonzero(image[..., 0] > 127)
            self._original_predictions = (columns.min(), rows.min(), columns.max(), rows.max()) if rows.size else None

        def _create_object_prediction_list_from_original_predictions(
            self, shift_amount_list=None, full_shape_list=None
        ):
            found = []
            if self._original_predictions is not None:
                x1, y1, x2, y2 = (int(side) for side in self._original_predictions)
                shift, shape = shift_amount_list[0], full_shape_list[0] if full_shape_list else None
                given = {"bbox": [x1, y1, x2 + 1, y2 + 1], "score": 0.9, "shift_amount": shift, "full_shape": shape}
                found = [ObjectPrediction(category_id=1, category_name="lamp", **given)]
            self._object_prediction_list_per_image = [found]

    truth = {"images": [], "annotations": [], "categories": [{"id": 1, "name": "lamp"}]}
    images = []
    for i in (1, 2):
        image = np.zeros((120, 160, 3), np.uint8)
        image[20 * i : 20 * i + 16, 100:124] = 255
        path = tmp_path / f"{i}.png"
        pytest.importorskip("PIL.Image").fromarray(image).save(path)
        images.append(SimpleNamespace(id=i, path=str(path)))
        truth["images"].append({"id": i, "width": 160, "height": 120})
        box = {"bbox": [100, 20 * i, 24, 16], "area": 24 * 16, "iscrowd": 0}
        truth["annotations"].append({"id": i, "image_id": i, "category_id": 1, **box})
    (tmp_path / "instances_val.json").write_text(json.dumps(truth))
    monkeypatch.chdir(tmp_path)
    names = names_of("SAHI", images=images, model=Model(), get_sliced_prediction=get_sliced_prediction)
    assert [one["bbox"] for one in names["found"]] == [one["bbox"] for one in truth["annotations"]]
    assert detmap.evaluate("instances_val.json", names["found"])["AP"] == pytest.approx(1)
