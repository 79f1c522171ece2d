"""Defects of scenes that tools make of the ground truth: lists that are not cleared, labels made of detections, parts."""

from __future__ import annotations

import numpy as np

from planting.scene_defects import frequent, plants, run, some

#: What else may be said where objects are missed that are none.
_MISSED = ("outside_boxes", "duplicate_objects", "misplaced", "undetected", "same_image_twice")


def _of_the_image_before(scene, there):
    """Put the objects of the image before beside those of some images, cut off at the edges."""
    there[0] = False
    at = np.flatnonzero(np.append(there[1:], False)[scene.image])
    box, size = scene.box[at], scene.sizes[scene.image[at] + 1]
    near, far = np.maximum(box[:, :2], 0), np.minimum(box[:, :2] + box[:, 2:], size)
    kept = (far - near >= 2).all(axis=1)
    scene.add_objects(scene.image[at][kept] + 1, scene.label[at][kept], np.concatenate([near, far - near], 1)[kept])


@plants("objects_left_over", *_MISSED, least=0.1)
def boxes_of_the_image_before_not_cleared(rng, scene, share):
    _of_the_image_before(scene, run(rng, scene, share))


@plants("objects_left_over", *_MISSED, least=0.1)
def boxes_of_the_image_before_on_some_images(rng, scene, share):
    _of_the_image_before(scene, some(rng, scene, share))


@plants("copied_boxes", "missing_labels", "unlabelled", "quantised_scores", "images_without_objects", least=0.1)
def detections_accepted_as_labels(rng, scene, share):
    """On a shard the confident detections are the labels, cut off at the edges and rounded to one decimal."""
    there = run(rng, scene, share)
    scene.d_box = scene.d_box + rng.normal(0, 0.02, scene.d_box.shape)
    at = np.flatnonzero(there[scene.d_image] & (scene.d_score >= 0.4))
    scene.objects(~there[scene.image])
    box, size = scene.d_box[at], scene.sizes[scene.d_image[at]]
    near, far = np.maximum(box[:, :2], 0), np.minimum(box[:, :2] + box[:, 2:], size)
    scene.of[at] = len(scene.image) + np.arange(at.size)
    scene.add_objects(scene.d_image[at], scene.d_label[at], np.round(np.concatenate([near, far - near], 1), 1))


@plants("square_boxes", "misplaced", "outside_boxes", "unlabelled", "drawn_unevenly", "uneven_boxes", "duplicate_objects",
        least=0.1, most=1.0)  # fmt: skip
def objects_made_square(rng, scene, share):
    """A tool makes the boxes of a shard as wide as high, around their middle, and cuts them at the edges of the image."""
    there = run(rng, scene, share)[scene.image]
    size = scene.sizes[scene.image]
    side = scene.box[:, 2:].max(axis=1, keepdims=True)
    near = scene.box[:, :2] + (scene.box[:, 2:] - side) / 2
    far = np.minimum(near + side, size)
    near = np.maximum(near, 0)
    scene.box = np.where(there[:, None], np.concatenate([near, far - near], 1), scene.box)


@plants("parts_as_objects", "misplaced", "undetected", "outside_boxes", "strict_suppression", "tiny_objects", "sizes_missed",
        least=0.5, most=1.0)  # fmt: skip
def parts_read_as_objects(rng, scene, share):
    """On images anywhere the head and the hands of what is high enough are objects of its class."""
    at = np.flatnonzero(some(rng, scene, share)[scene.image] & (scene.box[:, 3] > 100))
    box = scene.box[at]
    head = np.c_[box[:, 0] + box[:, 2] * rng.uniform(0.25, 0.4, at.size), box[:, 1], box[:, 2] * 0.35, box[:, 3] * 0.2]
    hand = np.c_[box[:, :2] + box[:, 2:] * rng.uniform(0.3, 0.6, (at.size, 2)), np.maximum(box[:, 2:] * [0.15, 0.1], 6)]
    for part in (head, hand):
        scene.add_objects(scene.image[at], scene.label[at], part)


@plants("grouped_objects", "misplaced", "unlabelled", "missing_labels", "rarely_labelled", "objects_of_many",
        "drawn_otherwise", "uneven_boxes", least=0.5)  # fmt: skip
def groups_in_one_box_on_a_shard(rng, scene, share):
    """An annotator draws one box around two neighbours of a class that touch, or nearly so."""
    there = run(rng, scene, share)
    kept = np.ones(len(scene.image), bool)
    cell = scene.image * scene.classes + scene.label
    for rows in np.split(np.argsort(cell, kind="stable"), np.flatnonzero(np.diff(np.sort(cell))) + 1):
        for a in rows.tolist() if there[scene.image[rows[0]]] else ():
            for b in rows.tolist():
                near = np.maximum(scene.box[a, :2], scene.box[b, :2])
                far = np.minimum(scene.box[a, :2] + scene.box[a, 2:], scene.box[b, :2] + scene.box[b, 2:])
                if a < b and kept[a] and kept[b] and (far - near > -40).all() and (far - near < 10).any():
                    low = np.minimum(scene.box[a, :2], scene.box[b, :2])
                    high = np.maximum(scene.box[a, :2] + scene.box[a, 2:], scene.box[b, :2] + scene.box[b, 2:])
                    scene.box[a] = [*low, *(high - low)]
                    kept[b] = False
    scene.objects(kept)


@plants("area_misfits", least=0.1, most=1.0)
def areas_at_another_size(rng, scene, share):
    """Areas of a shard are those of images whose longer side is 1024 pixels."""
    there = run(rng, scene, share)[scene.image]
    scene.areas = np.where(there, (1024 / scene.sizes.max(axis=1)[scene.image]) ** 2, 1.0)


@plants("crowds_misplaced", "images_without_objects", "categories_without_objects", "unlabelled", "missing_labels",
        "rarely_labelled", "images_without_detections", "missing_shard", least=0.1)  # fmt: skip
def truncated_objects_flagged_as_crowds(rng, scene, share):
    there = run(rng, scene, share)[scene.image]
    scene.crowd = scene.crowd | (there & (rng.random(len(there)) < 0.6))


@plants("class_of_two_names categories_without_detections", "labels_mixed", "relabelled", "wrong_labels", "undetected",
        "rarely_detected", "misplaced", classes=2, least=0.5)  # fmt: skip
def second_name_of_a_class(rng, scene, share):
    """Two lists of annotations are merged, and a class has another name in the second one."""
    there = run(rng, scene, share)[scene.image]
    scene.label = np.where(there & (scene.label == frequent(rng, scene)), scene.classes, scene.label)
    scene.classes += 1
