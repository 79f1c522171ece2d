"""Defects of scenes that one of several workers makes: what it writes for its images."""

from __future__ import annotations

import numpy as np

from planting.scene_defects import plants, run
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
