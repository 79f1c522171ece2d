"""Larger clean data sets of three kinds (crowded, sparse, one class), as columns, with what real detectors do.

Classes differ in how well they are found, small objects are found less often, images differ in difficulty, classes stay
for some images in a row, overlapping detections of one class are suppressed, classes are confused at low scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planting.data import Data

#: Images, mean objects of an image, classes, and false detections of an image.
KINDS = {"crowded": (400, 18.0, 8, 15), "sparse": (1500, 1.6, 12, 6), "one class": (500, 6.0, 1, 8)}

_NAMES = ("person", "car", "dog", "chair", "bottle", "bird", "boat", "cow", "horse", "sheep", "train", "sofa")


@dataclass
class Scene:
    """Objects and detections as columns; `of` is the object that a detection was made of, -1 for none."""

    sizes: np.ndarray
    ids: np.ndarray
    names: list
    image: np.ndarray
    label: np.ndarray
    box: np.ndarray
    d_image: np.ndarray
    d_label: np.ndarray
    d_box: np.ndarray
    d_score: np.ndarray
    of: np.ndarray
    classes: int = 1
    train: dict | None = None
    #: Flags of the objects that are crowds.
    crowd: np.ndarray = None
    #: Factors of the areas of objects.
    areas: np.ndarray = 1.0

    def __post_init__(self):
        self.crowd = np.zeros(len(self.image), bool)

    @classmethod
    def of_objects(cls, sizes, ids, names, image, label, box, classes):
        """A scene without detections."""
        none = np.zeros(0, int)
        return cls(sizes, ids, names, image, label, box, none, none, np.zeros((0, 4)), np.zeros(0), none, classes)

    def objects(self, keep):
        """Keep some objects."""
        new = np.cumsum(keep) - 1
        self.of = np.where((self.of >= 0) & keep[self.of], new[self.of], -1)
        for name in ("image", "label", "box", "crowd"):
            setattr(self, name, getattr(self, name)[keep])

    def detections(self, keep):
        """Keep some detections, given as flags or rows."""
        for name in ("d_image", "d_label", "d_box", "d_score", "of"):
            setattr(self, name, getattr(self, name)[keep])

    def add(self, image, label, box, score, of=None):
        """Add detections."""
        of = np.full(len(image), -1) if of is None else of
        for name, more in (("d_image", image), ("d_label", label), ("d_box", box), ("d_score", score), ("of", of)):
            setattr(self, name, np.concatenate([getattr(self, name), more]))

    def add_objects(self, image, label, box):
        """Add objects."""
        none = np.zeros(len(image), bool)
        for name, more in (("image", image), ("label", label), ("box", box), ("crowd", none)):
            setattr(self, name, np.concatenate([getattr(self, name), more]))

    def data(self):
        """The documents of COCO."""
        box, found = np.round(self.box, 2), np.round(self.d_box, 3)
        ids = self.ids.tolist()
        areas = np.broadcast_to(self.areas, len(self.image))
        truth = {
            "images": [
                {"id": one, "file_name": name, "width": int(w), "height": int(h)}
                for one, name, (w, h) in zip(ids, self.names, self.sizes.tolist(), strict=True)
            ],
            "categories": [
                {"id": i + 1, "name": _NAMES[i] if i < len(_NAMES) else f"class {i}"} for i in range(self.classes)
            ],
            "annotations": [
                {"id": at + 1, "image_id": ids[i], "category_id": int(c) + 1, "bbox": b,
                 "area": abs(b[2] * b[3]) * 0.7 * float(areas[at]), "iscrowd": int(self.crowd[at])}
                for at, (i, c, b) in enumerate(zip(self.image, self.label, box.tolist(), strict=True))
            ],
        }  # fmt: skip
        results = [
            {"image_id": ids[i], "category_id": int(c) + 1, "bbox": b, "score": s}
            for i, c, b, s in zip(self.d_image, self.d_label, found.tolist(), self.d_score.tolist(), strict=True)
        ]
        return Data(truth, results, self.train)


def scene(seed, kind, share=1.0):
    """A clean scene, of a share of the images of its kind."""
    images, per_image, classes, false = KINDS[kind]
    images = round(images * share)
    rng = np.random.default_rng([seed, len(kind)])
    shapes = np.array([(640, 480), (480, 640), (500, 375), (1280, 720)])
    sizes = shapes[rng.integers(4, size=images)]
    ids = np.sort(rng.choice(np.arange(10, 600_000), images, replace=False))
    hard = rng.normal(0, 0.5, images)
    # Classes of an image: a mixture that stays for a dozen images.
    mixtures = rng.dirichlet(np.full(classes, 0.7), images // 12 + 1) if classes > 1 else np.ones((images // 12 + 1, 1))
    usual = rng.dirichlet(np.full(classes, 5.0))
    counts = np.maximum(rng.negative_binomial(3, 3 / (3 + per_image), images), rng.random(images) < 0.9)
    image = np.repeat(np.arange(images), counts)
    weights = 0.5 * mixtures[image // 12] + 0.5 * usual
    label = (weights.cumsum(axis=1) < rng.random((image.size, 1)) * weights.sum(axis=1, keepdims=True)).sum(axis=1)
    box = boxes(rng, sizes[image])
    names = [f"{one:012d}.jpg" for one in ids]
    # How well an object is found: by class, size and image; its score goes with it.
    side = np.sqrt(box[:, 2] * box[:, 3])
    ease = rng.normal(2.6, 0.6, classes)[label] + 0.7 * np.log(side / 60) - hard[image] + rng.normal(0, 0.7, image.size)
    return detected(rng, Scene.of_objects(sizes, ids, names, image, label, box, classes), ease, usual, false)


def detected(rng, made, ease, usual, false):
    """Put detections on the objects of a scene, as well as each is found, and beside them, in the mean so many an image."""
    image, label, box, sizes, classes = made.image, made.label, made.box, made.sizes, made.classes
    found = np.flatnonzero(rng.random(image.size) < 1 / (1 + np.exp(-ease)))
    near = jittered(rng, box[found], 0.05, sizes[image[found]])
    score = 1 / (1 + np.exp(-(ease[found] - 1.2 + rng.normal(0, 0.8, found.size))))
    made.add(image[found], label[found], near, score, found)
    again = found[rng.random(found.size) < 0.12]  # beside the first, of less overlap than suppression leaves
    moved = jittered(rng, box[again], 0.22, sizes[image[again]])
    made.add(image[again], label[again], moved, 0.3 * rng.beta(2, 3, again.size), again)
    if classes > 1:
        other = found[rng.random(found.size) < 0.1]
        confused = (label[other] + 1 + rng.integers(classes - 1, size=other.size)) % classes
        boxes_of = jittered(rng, box[other], 0.06, sizes[image[other]])
        made.add(image[other], confused, boxes_of, 0.5 * rng.beta(1.5, 3, other.size))
    count = rng.poisson(false, len(made.ids))
    at = np.repeat(np.arange(len(made.ids)), count)
    made.add(at, rng.choice(classes, at.size, p=usual), boxes(rng, sizes[at]), 0.001 + 0.99 * rng.beta(0.6, 6, at.size))
    made.detections(suppressed(made.d_image, made.d_label, made.d_box, made.d_score))
    made.d_score = np.round(made.d_score, 9)
    made.detections(np.argsort(made.d_image, kind="stable"))
    return made


def boxes(rng, sizes):
    """Boxes anywhere on their images."""
    side = sizes * np.exp(rng.normal(np.log(0.13), 0.75, (len(sizes), 1)) + rng.normal(0, 0.3, (len(sizes), 2)))
    least, most = np.maximum(0.012 * sizes, 5), 0.95 * sizes
    side = np.where(
        side > most, most**2 / side, np.where(side < least, least**2 / side, side)
    )  # clipped, many were equal
    return np.concatenate([rng.random((len(sizes), 2)) * (sizes - side), side], axis=1)


def jittered(rng, box, by, sizes):
    """Boxes nearby, clipped to their images."""
    noise = rng.normal(0, by, box.shape)
    near = box[:, :2] + noise[:, :2] * box[:, 2:]
    far = near + box[:, 2:] * np.exp(noise[:, 2:])
    near = np.clip(near, 0, sizes - 3)
    return np.concatenate([near, np.maximum(np.minimum(far, sizes) - near, 2)], axis=1)


def suppressed(image, label, box, score, least=0.6):
    """Rows that are left once better ones of the same image and class suppress what overlaps them."""
    order = np.lexsort((-score, label, image))
    keep, kept = [], []
    last = None
    for row in order.tolist():
        if last != (image[row], label[row]):
            last, kept = (image[row], label[row]), []
        if not any(overlap(box[row], box[other]) > least for other in kept):
            kept.append(row)
            keep.append(row)
    return np.array(keep)


def overlap(a, b):
    """The IoU of two boxes."""
    w = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    h = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    both = max(w, 0) * max(h, 0)
    return both / (a[2] * a[3] + b[2] * b[3] - both)
