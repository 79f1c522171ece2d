"""Clean data sets, and the shapes and run lengths in them."""

from __future__ import annotations

import string
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Data:
    """Ground truth and results as COCO has them, another ground truth, and judgements and a run as lines."""

    truth: dict
    found: list
    train: dict | None = None
    more: dict = field(default_factory=dict)


def clean(seed, kind="boxes"):
    """A data set without a defect; every image, category and detection is of its own making."""
    rng = np.random.default_rng(seed)
    many = kind == "boxes"
    images = int(rng.integers(60, 220)) if many else int(rng.integers(25, 50))
    classes = int(rng.integers(4, 15)) if many else int(rng.integers(2, 5))
    shapes = (
        [(640, 480), (480, 640), (500, 375), (1280, 720), (612, 612)] if many else [(160, 120), (120, 160), (144, 96)]
    )
    ids = np.sort(rng.choice(np.arange(10, 600_000), images, replace=False))
    numbers = np.sort(rng.choice(np.arange(3, 200), classes, replace=False))
    weights = rng.dirichlet(np.full(classes, 4.0))
    truth = {
        "images": [
            {"id": int(one), "file_name": f"{int(rng.integers(1e9)):012d}_{place}.jpg", "width": w, "height": h}
            for place, one in enumerate(ids)
            for w, h in [shapes[rng.integers(len(shapes))]]
        ],
        "categories": [
            {
                "id": int(one),
                "name": "".join(rng.choice(list(string.ascii_lowercase), 7)) + " " + string.ascii_uppercase[i],
            }
            for i, one in enumerate(numbers)
        ],
        "annotations": [],
    }
    found = []
    for image in truth["images"]:
        w, h = image["width"], image["height"]
        for _ in range(int(rng.negative_binomial(3, 0.3)) + int(rng.random() < 0.8)):
            number = int(numbers[rng.choice(classes, p=weights)])
            crowd = many and rng.random() < 0.012
            box = _box(rng, w, h, 0.75 if crowd else 0.3)
            record = {"id": len(truth["annotations"]) + 1, "image_id": image["id"], "category_id": number}
            record |= {"bbox": box, "iscrowd": int(crowd), "area": round(box[2] * box[3] * rng.uniform(0.5, 0.8), 3)}
            _with_shape(rng, record, kind, image)
            truth["annotations"].append(record)
            if not crowd and rng.random() < 0.88:
                for again in range(1 + (rng.random() < 0.25)):
                    jitter = rng.normal(0, 0.05 + 0.1 * again, 4)
                    x, y, bw, bh = record["bbox"]
                    near = [x + jitter[0] * bw, y + jitter[1] * bh, bw * np.exp(jitter[2]), bh * np.exp(jitter[3])]
                    label = number if rng.random() < 0.95 else int(numbers[rng.integers(classes)])
                    score = float(rng.beta(5, 2)) * (0.4 if again else 1.0)
                    found.append(_result(rng, image, label, _clipped(near, w, h), score, kind, record))
        for _ in range(rng.poisson(6)):
            label = int(numbers[rng.choice(classes, p=weights)])
            found.append(_result(rng, image, label, _box(rng, w, h, 0.3), float(rng.beta(0.5, 6)), kind))
    order = rng.permutation(len(found))
    return Data(truth, [found[i] for i in order])


def _box(rng, w, h, share):
    """A box within an image of w x h, with fractions of pixels."""
    bw = float(np.clip(w * share * rng.lognormal(-0.3, 0.6), 6, 0.95 * w))
    bh = float(np.clip(h * share * rng.lognormal(-0.3, 0.6), 6, 0.95 * h))
    return [round(float(v), 2) for v in (rng.uniform(0, w - bw), rng.uniform(0, h - bh), bw, bh)]


def _clipped(box, w, h):
    x1, y1 = max(box[0], 0.0), max(box[1], 0.0)
    x2, y2 = min(box[0] + box[2], w), min(box[1] + box[3], h)
    return [round(float(v), 3) for v in (x1, y1, max(x2 - x1, 2.0), max(y2 - y1, 2.0))]


def _result(rng, image, label, box, score, kind, of=None):
    record = {"image_id": image["id"], "category_id": label, "bbox": box, "score": score}
    if kind == "masks":
        record["segmentation"] = rectangle(image, box)
    if kind == "poses":
        record["keypoints"] = _points(rng, box, 5, confidence=True)
        for at, flag in enumerate(of["keypoints"][2::3] if of else ()):
            if flag:  # near the object's
                near = rng.normal(of["keypoints"][3 * at : 3 * at + 2], 0.03 * np.sqrt(box[2] * box[3]))
                record["keypoints"][3 * at : 3 * at + 2] = np.round(near, 2).tolist()
    return record


def _with_shape(rng, record, kind, image):
    x, y, w, h = record["bbox"]
    if kind == "masks":
        if rng.random() < 0.3:
            record["segmentation"] = rectangle(image, record["bbox"])
            record["area"] = float(sum(_counts(image, record["bbox"])[1::2]))
        else:
            angle = np.sort(rng.uniform(0, 2 * np.pi, 24))
            angle[:4] = (0, np.pi / 2, np.pi, 3 * np.pi / 2)
            angle = np.sort(angle)
            px, py = x + w / 2 + w / 2 * np.cos(angle), y + h / 2 + h / 2 * np.sin(angle)
            record["segmentation"] = [np.round(np.stack([px, py], 1), 2).ravel().tolist()]
            record["area"] = float(0.5 * abs(np.dot(px, np.roll(py, 1)) - np.dot(py, np.roll(px, 1))))
    if kind == "poses":
        record["keypoints"] = _points(rng, record["bbox"], 5)
        record["num_keypoints"] = sum(v > 0 for v in record["keypoints"][2::3])


def _points(rng, box, count, confidence=False):
    x, y, w, h = box
    out = []
    for _ in range(count):
        flag = 1.0 if confidence else int(rng.integers(3))
        point = [x + w * rng.uniform(0.05, 0.95), y + h * rng.uniform(0.05, 0.95)] if flag else [0, 0]
        out += [round(float(point[0]), 2), round(float(point[1]), 2), flag]
    return out


def _counts(image, box):
    """Run lengths, column by column, of a rectangle."""
    h, w = image["height"], image["width"]
    x1, y1 = round(box[0]), round(box[1])
    x2, y2 = min(max(round(box[0] + box[2]), x1 + 1), w), min(max(round(box[1] + box[3]), y1 + 1), h)
    x1, y1 = min(x1, x2 - 1), min(y1, y2 - 1)
    mask = np.zeros((w, h), np.uint8)
    mask[x1:x2, y1:y2] = 1
    flat = mask.ravel()
    edges = np.flatnonzero(np.diff(flat)) + 1
    runs = np.diff([0, *edges, flat.size]).tolist()
    return runs if flat[0] == 0 else [0, *runs]


def rectangle(image, box):
    """A rectangle as COCO's compressed run lengths."""
    return {"size": [image["height"], image["width"]], "counts": compressed(_counts(image, box))}


def compressed(counts):
    """Run lengths as COCO's string: five bits a character, low ones first, differences from the fourth on."""
    out = []
    for place, value in enumerate(counts):
        left = int(value) - (int(counts[place - 2]) if place > 2 else 0)
        more = True
        while more:
            bits = left & 31
            left >>= 5
            more = left != (-1 if bits & 16 else 0)
            out.append(chr(48 + (bits | 32 if more else bits)))
    return "".join(out)
