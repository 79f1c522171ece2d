"""Confusion matrices equal those of Ultralytics' and supervision's own classes."""

from __future__ import annotations

import os

import large_workloads
import numpy as np
import pytest
from support import tables_of_arrays

import detmap


def images_of(truth, found):
    """Of each image: boxes as corners and classes of the objects, and boxes, classes and scores of the detections."""
    places = {key: at for at, key in enumerate(truth.categories.ids.tolist())}
    for image in truth.images.ids.tolist():
        sides = []
        for table in (truth, found):
            rows = np.flatnonzero(table.images.ids[table.images.codes] == image)
            boxes = table.boxes[rows].copy()
            boxes[:, 2:] += boxes[:, :2]
            kinds = [places[key] for key in table.categories.ids[table.categories.codes[rows]].tolist()]
            sides += [boxes, np.array(kinds, int), rows]
        yield *sides[:2], *sides[3:5], found.scores[sides[5]]


@pytest.fixture(params=[3, 4])
def tables(request):
    return tables_of_arrays(large_workloads.detector_like(25, 60, 5, seed=request.param))


@pytest.mark.parametrize("options", [{}, {"score": 0.1, "iou": 0.6}])
def test_ultralytics(tables, options):
    """Theirs has what is predicted in rows."""
    os.environ.setdefault("YOLO_OFFLINE", "true")
    torch = pytest.importorskip("torch")
    pytest.importorskip("ultralytics")
    from ultralytics.utils.metrics import ConfusionMatrix

    theirs = ConfusionMatrix({k: str(k) for k in range(len(tables[0].categories.ids))})
    limits = {"conf": options["score"], "iou_thres": options["iou"]} if options else {}
    for boxes, kinds, own, own_kinds, scores in images_of(*tables):
        theirs.process_batch(
            {"bboxes": torch.tensor(own), "cls": torch.tensor(own_kinds), "conf": torch.tensor(scores)},
            {"bboxes": torch.tensor(boxes), "cls": torch.tensor(kinds)},
            **limits,
        )
    ours = detmap.diagnose(*tables).confusion(match="ultralytics", **options)
    assert ours.matrix.T.tolist() == theirs.matrix.tolist()
    assert ours.matrix[:-1, :-1].sum() > 50


@pytest.mark.parametrize("options", [{}, {"score": 0.1, "iou": 0.6}])
def test_supervision(tables, options):
    supervision = pytest.importorskip("supervision")
    limits = {"conf_threshold": options["score"], "iou_threshold": options["iou"]} if options else {}
    images = list(images_of(*tables))
    theirs = supervision.ConfusionMatrix.from_tensors(
        predictions=[np.column_stack((own, own_kinds, scores)) for _, _, own, own_kinds, scores in images],
        targets=[np.column_stack((boxes, kinds)) for boxes, kinds, *_ in images],
        classes=[str(key) for key in tables[0].categories.ids],
        **limits,
    )
    ours = detmap.diagnose(*tables).confusion(match="supervision", **options)
    assert ours.matrix.tolist() == theirs.matrix.tolist()
    assert ours.matrix[:-1, :-1].sum() > 50
