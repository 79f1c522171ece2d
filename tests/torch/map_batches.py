"""Made-up predictions and targets in torchmetrics' form, with what is odd in them: empty images, crowds, absent areas."""

from __future__ import annotations

import numpy as np
import torch
from shape_workloads import blob


def batches(seed, *, masks=False, boxes=True, most=140, images=12):
    """Predictions and targets by image; of every class and image at most `most` predictions."""
    rng = np.random.default_rng(seed)
    predictions, targets = [], []
    for _ in range(images):
        size = tuple(rng.integers(8, 40, 2).tolist())
        true, found = int(rng.integers(0, 6)), int(rng.integers(0, 9 if masks else most))
        if rng.random() < 0.2:
            true = 0
        if rng.random() < 0.2:
            found = 0
        targets.append(side(rng, true, size, masks, boxes))
        prediction = side(rng, found, size, masks, boxes)
        if boxes and true:  # most lie on objects
            near = rng.integers(0, true, found)
            moved = targets[-1]["boxes"][near] + torch.from_numpy(rng.normal(0, 2, (found, 4)).astype(np.float32))
            moved[:, 2:] = torch.maximum(moved[:, 2:], moved[:, :2])
            same = torch.from_numpy(rng.random(found) < 0.5)
            prediction["boxes"] = moved if found else prediction["boxes"]
            prediction["labels"] = torch.where(same, targets[-1]["labels"][near], prediction["labels"])
        if masks and true and found:
            near = torch.from_numpy(rng.integers(0, true, found))
            prediction["masks"] = torch.where(
                torch.from_numpy(rng.random(found) < 0.6)[:, None, None],
                targets[-1]["masks"][near],
                prediction["masks"],
            )
            prediction["labels"] = targets[-1]["labels"][near]
        prediction["scores"] = torch.from_numpy(np.round(rng.random(found), 2).astype(np.float32))
        targets[-1]["iscrowd"] = torch.from_numpy((rng.random(true) < 0.15).astype(np.int64))
        if rng.random() < 0.6:
            areas = np.where(rng.random(true) < 0.3, 0, rng.uniform(1, 20000, true))
            targets[-1]["area"] = torch.from_numpy(areas.astype(np.float32))
        predictions.append(prediction)
    return predictions, targets


def side(rng, count, size, masks, boxes):
    made = {"labels": torch.from_numpy(rng.integers(0, 4, count))}
    if boxes:
        corners = rng.uniform(0, 100, (count, 2))
        table = np.concatenate([corners, corners + np.exp(rng.uniform(1, 5, (count, 2)))], axis=1)
        made["boxes"] = torch.from_numpy(table.astype(np.float32)) if count else torch.tensor([])
    if masks:
        drawn = np.array([blob(rng, *size) for _ in range(count)], bool).reshape(count, *size)
        made["masks"] = torch.from_numpy(drawn)
    return made


def assert_same(found, expected):
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert found[name].dtype == value.dtype, name
        assert found[name].shape == value.shape, name
        assert torch.equal(found[name], value), (name, found[name], value)
