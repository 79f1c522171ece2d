"""Defects of scenes that one of several workers makes: what it writes for its images."""

from __future__ import annotations

import numpy as np

from planting.scene_defects import plants, run, some
from planting.scene_exports import _EMPTY


@plants("constant_scores", "quantised_scores", *_EMPTY, most=0.5)
def hard_labels_on_a_shard(rng, scene, share):
    """Detections from a score on, all with a score of 1."""
    there = run(rng, scene, share)
    scene.detections(~there[scene.d_image] | (scene.d_score >= rng.uniform(0.1, 0.5)))
    scene.d_score = np.where(there[scene.d_image], 1.0, scene.d_score)


@plants("single_category", "duplicate_detections", "beyond_cap", classes=2, most=0.5)
def one_class_on_a_shard(rng, scene, share):
    there = run(rng, scene, share)[scene.d_image]
    scene.d_label = np.where(there, rng.integers(scene.classes), scene.d_label)


@plants("trained_on", "uneven_scores", "uneven_boxes", "outside_boxes", "quantised_scores", least=0.1, most=0.5)
def images_of_the_training_set_anywhere(rng, scene, share):
    """All objects are found there, within a pixel, and nothing else has a high score."""
    there = some(rng, scene, share)
    scene.d_score = np.where(there[scene.d_image], scene.d_score / 10, scene.d_score)
    at = np.flatnonzero(there[scene.image])
    own = (scene.of >= 0) & (scene.label[scene.of] == scene.d_label) & there[scene.d_image]
    scene.detections(~own)
    box = scene.box[at] + rng.uniform(-0.7, 0.7, (at.size, 4))
    scene.add(scene.image[at], scene.label[at], box, rng.uniform(0.97, 0.9999, at.size), at)
    scene.detections(np.argsort(scene.d_image, kind="stable"))


@plants("scaled_boxes misplaced", "outside_boxes", "no_agreement", "zero_sized_boxes", "inverted_boxes", "uneven_boxes")
def height_for_width_on_a_shard(rng, scene, share):
    """Boxes are scaled back to (height, width), taken for (width, height), and clipped."""
    there = run(rng, scene, share)[scene.d_image]
    size = scene.sizes[scene.d_image]
    near = np.minimum(scene.d_box[:, :2] * size[:, ::-1] / size, size)
    far = np.minimum((scene.d_box[:, :2] + scene.d_box[:, 2:]) * size[:, ::-1] / size, size)
    scene.d_box = np.where(there[:, None], np.concatenate([near, far - near], axis=1), scene.d_box)
    scene.detections((scene.d_box[:, 2:] > 0).all(axis=1))
