"""Defects of scenes that the writing of results makes: lists that are not cleared, shards, classes and scores."""

from __future__ import annotations

import numpy as np

from planting.scene_defects import frequent, plants, run, some
from planting.scene_exports import _EMPTY

#: What else may be said where some images hold more detections than others, or detections of other images.
_MORE = ("beyond_cap", "cap_reached", "quantised_scores", "uneven_counts", "outside_boxes", *_EMPTY)


@plants("detections_left_over", *_MORE, most=0.5)
def list_of_the_image_before_not_cleared(rng, scene, share):
    there = run(rng, scene, max(share, 6 / len(scene.ids)))
    there[0] = False
    at = np.flatnonzero(np.append(there[1:], False)[scene.d_image])
    scene.add(scene.d_image[at] + 1, scene.d_label[at], scene.d_box[at], scene.d_score[at])
    scene.detections(np.argsort(scene.d_image, kind="stable"))


@plants("detections_in_place", *_MORE, least=0.1, most=0.5)
def logo_on_some_images(rng, scene, share):
    """A class is detected at a logo in the upper left corner, with high scores."""
    at = np.flatnonzero(some(rng, scene, share))
    box = np.array([24.0, 18, 92, 44]) + rng.uniform(-1, 1, (at.size, 4))
    scene.add(at, np.full(at.size, frequent(rng, scene)), box, rng.uniform(0.55, 0.95, at.size))
    scene.detections(np.argsort(scene.d_image, kind="stable"))


@plants("detections_of_two_classes", "unsuppressed_across", "relabelled", *_MORE, "labels_mixed", "classes_disagree",
        classes=2, least=0.1, most=1.0)  # fmt: skip
def class_written_twice(rng, scene, share):
    one = frequent(rng, scene)
    at = np.flatnonzero(some(rng, scene, share)[scene.d_image] & (scene.d_label == one))
    other = (one + 1 + rng.integers(scene.classes - 1)) % scene.classes
    scene.add(scene.d_image[at], np.full(at.size, other), scene.d_box[at], scene.d_score[at])
    scene.detections(np.argsort(scene.d_image, kind="stable"))


@plants("detections_of_two_classes", "unsuppressed_across", "relabelled", *_MORE, "labels_mixed", "classes_disagree",
        classes=6, least=0.1, most=1.0)  # fmt: skip
def three_classes_written_twice(rng, scene, share):
    """Detections on a run of images are written again: each of three classes under one other."""
    there = run(rng, scene, share)[scene.d_image]
    usual = np.argsort(-np.bincount(scene.d_label, minlength=scene.classes), kind="stable")
    to = np.full(scene.classes, -1)
    to[usual[:3]] = usual[3:6]
    at = np.flatnonzero(there & (to[scene.d_label] >= 0))
    scene.add(scene.d_image[at], to[scene.d_label[at]], scene.d_box[at], scene.d_score[at])
    scene.detections(np.argsort(scene.d_image, kind="stable"))


@plants("parts_exchanged misplaced", *_MORE, least=0.1, most=0.5)
def shards_exchanged(rng, scene, share):
    """The detections of two parts, half of `share` each."""
    count = len(scene.ids)
    size = round(share * count / 2)
    first = int(rng.integers(count - 2 * size + 1))
    second = int(rng.integers(first + size, count - size + 1))
    to = np.arange(count)
    to[first : first + size] += second - first
    to[second : second + size] -= second - first
    scene.d_image = to[scene.d_image]
    scene.detections(np.argsort(scene.d_image, kind="stable"))


@plants("scores_rank_nothing inverted_scores", "uneven_scores", *_EMPTY, least=0.1, most=0.5)
def scores_sorted_apart(rng, scene, share):
    """Boxes of each image are listed from left to right, and its scores by size."""
    there = run(rng, scene, share)
    scene.detections(np.lexsort((np.where(there[scene.d_image], scene.d_box[:, 0], 0), scene.d_image)))
    at = np.flatnonzero(there[scene.d_image])
    scene.d_score[at] = scene.d_score[at][np.lexsort((-scene.d_score[at], scene.d_image[at]))]


@plants("relabelled category_ids_shifted", "labels_mixed", "classes_disagree", "misplaced", "undetected", "unlabelled",
        "wrong_labels", "duplicate_detections", *_EMPTY, classes=6, least=0.1, most=0.5)  # fmt: skip
def older_list_of_classes_on_a_shard(rng, scene, share):
    """The first half of the classes is turned by one."""
    there = run(rng, scene, share)[scene.d_image]
    half = scene.classes // 2
    moved = np.where(scene.d_label < half, (scene.d_label + 1) % half, scene.d_label)
    scene.d_label = np.where(there, moved, scene.d_label)
