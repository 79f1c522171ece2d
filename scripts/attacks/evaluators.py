"""`Evaluator`: images in any order and split, some of them refused, with copies, merges and threads in between."""

from __future__ import annotations

import copy
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np

from attacks import Attack, Must
from attacks.arrays import Stranger
from attacks.scenes import THRESHOLDS, average_precision, scene

Image = tuple[int, dict[str, Any], dict[str, Any]]


def images_of(truth: dict[str, Any], results: list[dict[str, Any]]) -> list[Image]:
    """Each image's id, predictions and targets, as a training loop has them."""
    found = []
    for image in (one["id"] for one in truth["images"]):
        ours = [one for one in truth["annotations"] if one["image_id"] == image]
        theirs = [one for one in results if one["image_id"] == image]
        targets = {
            "boxes": [one["bbox"] for one in ours],
            "labels": [one["category_id"] for one in ours],
            "iscrowd": [one["iscrowd"] for one in ours],
            "area": [one["area"] for one in ours],
        }
        predictions = {
            "boxes": [one["bbox"] for one in theirs],
            "labels": [one["category_id"] for one in theirs],
            "scores": [one["score"] for one in theirs],
        }
        found.append((image, predictions, targets))
    return found


def spoilt(rng: np.random.Generator, image: Image, seen: list[int]) -> tuple[str, list[Any]]:
    """A batch that must be refused, and what is wrong with it."""
    name, predictions, targets = 10**6, dict(image[1]), dict(image[2])
    good = {"boxes": [[1.0, 2.0, 3.0, 4.0]], "labels": [1], "scores": [0.5]}
    odd = [np.nan, np.inf, -np.inf, None, "x", 1j, 1e200, np.datetime64("2020"), [1], np.ma.masked, 10**400]
    kind = str(rng.choice(["value", "lengths", "missing", "stranger", "uneven", "none", "again", "id"]))
    field = str(rng.choice(list(good)))
    batch = [[{**good}], [{"boxes": [], "labels": []}], [name]]
    if kind == "value":
        value = odd[int(rng.integers(len(odd)))]
        if field == "scores" and value in (np.inf, -np.inf, 1e200):
            value = np.nan
        if field == "labels" and value == "x":
            value = None
        batch[0][0][field] = [[1.0, value, 3.0, 4.0]] if field == "boxes" else [value]
    elif kind == "lengths":
        batch[0][0][field] = batch[0][0][field] * 2
    elif kind == "missing":
        del batch[0][0][field]
    elif kind == "stranger":
        batch[0][0][field] = Stranger(rng)
    elif kind == "uneven":
        batch[1] = []
    elif kind == "none":
        batch[int(rng.integers(2))] = None  # type: ignore[call-overload]
    elif kind == "again" and seen:
        batch[2] = [seen[int(rng.integers(len(seen)))]]
    else:
        batch[2] = [[None, np.nan, 1.5, "text", 2**70, True][int(rng.integers(6))]]
    # A good image before the bad one must not be taken in either.
    if kind != "none" and rng.random() < 0.5:
        batch = [[predictions, *batch[0]], [targets, *batch[1]], [name + 1, *batch[2]]]
    return f"{kind} {field}", batch


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    import detmap
    from detmap.errors import DetmapError

    truth, results = scene(rng)
    images = images_of(truth, results)
    rng.shuffle(images)  # type: ignore[arg-type]
    categories = [one["id"] for one in truth["categories"]]
    steps: list[tuple[str, Any]] = []
    seen: list[int] = []
    together = bool(rng.random() < 0.2)
    for image in images:
        if seen and not together and rng.random() < 0.6:
            steps.append(("bad", spoilt(rng, image, seen)))
        steps.append(("good", image))
        seen.append(image[0])
        if not together and rng.random() < 0.5:
            steps.append((str(rng.choice(["compute", "pickle", "copy", "bytes", "merge", "state"])), None))

    def made() -> Any:
        return detmap.Evaluator(
            iou_thresholds=THRESHOLDS,
            area_ranges={"all": (0, 1e10)},
            max_dets=[100],
            box_format="xywh",
            categories=categories,
        )

    def turned(evaluator: Any, kind: str) -> Any:
        if kind == "compute":
            evaluator.compute()
        elif kind in ("pickle", "copy"):
            evaluator = pickle.loads(pickle.dumps(evaluator)) if kind == "pickle" else copy.deepcopy(evaluator)
        elif kind == "bytes":
            evaluator = detmap.Evaluator.from_bytes(evaluator.to_bytes())
        elif kind == "state":
            other = made()
            other.load_state_dict(evaluator.state_dict())
            evaluator = other
        else:
            evaluator = made().merge(evaluator)
        return evaluator

    def run() -> Any:
        evaluator = made()
        if together:
            threads = [threading.Thread(target=evaluator.update, args=([p], [t], [i])) for _, (i, p, t) in steps] + [
                threading.Thread(target=evaluator.compute) for _ in range(2)
            ]
            for one in threads:
                one.start()
            for one in threads:
                one.join()
        for kind, what in steps if not together else []:
            if kind == "good":
                evaluator.update([what[1]], [what[2]], [what[0]])
            elif kind == "bad":
                before = evaluator.to_bytes()
                try:
                    evaluator.update(*what[1])
                    return f"took {what}"
                except DetmapError:
                    if evaluator.to_bytes() != before:
                        return f"changed by what it refused: {what}"
            else:
                evaluator = turned(evaluator, kind)
        precision = evaluator.compute().precision
        values = [one[~np.isnan(one)] for one in precision]
        return [float(np.mean(one)) if one.size else float("nan") for one in values]

    what = f"evaluator together={together} {[kind if kind != 'bad' else what[0] for kind, what in steps]}"
    return Attack(what, run, Must(value=average_precision(truth, results)))
