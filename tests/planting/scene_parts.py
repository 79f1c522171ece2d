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


@plants("sizes_cut", *_EMPTY, "uneven_counts", "undetected", least=0.1, most=0.5)
def large_objects_lost_on_a_shard(rng, scene, share):
    """The detections of the largest sizes are left out, as where a level of the model is not exported."""
    there = run(rng, scene, share)[scene.d_image]
    area = scene.d_box[:, 2:].prod(axis=1)
    scene.detections(~there | (area <= np.quantile(scene.box[:, 2:].prod(axis=1), rng.uniform(0.6, 0.8))))


@plants("sizes_cut", *_EMPTY, "uneven_counts", "undetected", least=0.5, most=0.5)
def small_objects_lost_on_a_shard(rng, scene, share):
    there = run(rng, scene, share)[scene.d_image]
    width = scene.d_box[:, 2]
    scene.detections(~there | (width >= np.quantile(scene.box[:, 2], rng.uniform(0.2, 0.4))))


@plants(
    "anchor_boxes", *_EMPTY, "duplicate_detections", "outside_boxes", "beyond_cap", "sizes_missed", least=0.1, most=1.0
)
def anchors_in_place_of_boxes_on_a_shard(rng, scene, share):
    """Boxes are the anchors of the model, with centres on a grid: its regression was not applied."""
    there = run(rng, scene, share)[scene.d_image]
    step = int(rng.choice([8, 16, 32]))
    anchors = np.array([(42, 55), (60, 34), (100, 130), (180, 260), (310, 160)])
    centre = (np.floor((scene.d_box[:, :2] + scene.d_box[:, 2:] / 2) / step) + 0.5) * step
    apart = np.abs(np.log(scene.d_box[:, None, 2:] / anchors)).sum(axis=2)
    size = anchors[apart.argmin(axis=1)]
    scene.d_box = np.where(there[:, None], np.concatenate([centre - size / 2, size], axis=1), scene.d_box)


@plants("batches_reversed misplaced", "uneven_counts", "outside_boxes", *_EMPTY, least=0.1, most=0.5)
def batches_in_reverse_order_on_a_shard(rng, scene, share):
    """A worker returns the results of each batch in reverse order."""
    there = np.flatnonzero(run(rng, scene, share))
    batch = int(rng.choice([8, 16, 32]))
    there = there[: max(there.size // batch, 1) * batch]
    to = np.arange(len(scene.ids))
    for first in range(0, there.size, batch):
        to[there[first : first + batch]] = there[first : first + batch][::-1]
    scene.d_image = to[scene.d_image]
    scene.detections(np.argsort(scene.d_image, kind="stable"))


@plants("crowded_images_lost", "images_without_detections", "uneven_counts", "undetected", most=0.1)
def time_out_on_crowded_images(rng, scene, share):
    """Images with the most detections have none."""
    held = np.bincount(scene.d_image, minlength=len(scene.ids))
    scene.detections((held <= np.quantile(held, 1 - share))[scene.d_image])
