"""Defects of scenes, each at a severity: the share of images, of objects of a class, or of detections that it concerns."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from planting.scenes import boxes, jittered, suppressed


class Defect(NamedTuple):
    """A defect of scenes."""

    #: What may be said of it (any of them is a success), a name, and what else is true then.
    codes: frozenset
    name: str
    also: frozenset
    #: The fewest classes of a scene, and the least and the largest severity.
    classes: int
    least: float
    most: float
    plant: Callable
    #: The first of the codes, by which recall is reported.
    code: str


SCENE_DEFECTS = []


def plants(codes, *also, classes=1, least=0.02, most=0.5):
    """Register a defect for scenes of at least so many classes, and for some severities."""

    def register(function):
        SCENE_DEFECTS.append(
            Defect(
                frozenset(codes.split()),
                function.__name__,
                frozenset(also),
                classes,
                least,
                most,
                function,
                codes.split()[0],
            )
        )
        return function

    return register


def run(rng, scene, share):
    """Flags of images that follow one another."""
    count = len(scene.ids)
    size = max(round(share * count), 2)
    first = int(rng.integers(count - size + 1))
    out = np.zeros(count, bool)
    out[first : first + size] = True
    return out


def some(rng, scene, share):
    """Flags of images anywhere."""
    count = len(scene.ids)
    out = np.zeros(count, bool)
    out[rng.choice(count, max(round(share * count), 2), replace=False)] = True
    return out


def frequent(rng, scene):
    """One of the three most frequent classes."""
    order = np.argsort(-np.bincount(scene.label, minlength=scene.classes))
    return int(order[rng.integers(min(3, scene.classes))])


@plants("image_ids_rotated", "outside_boxes", "missing_shard", "images_without_detections")
def ids_of_a_shard_rotated(rng, scene, share):
    at = np.flatnonzero(run(rng, scene, share))
    to = np.arange(len(scene.ids))
    to[at] = np.roll(at, 1)
    scene.d_image = to[scene.d_image]
    order = np.argsort(scene.d_image, kind="stable")
    scene.detections(order)


@plants("undetected missing_shard", "images_without_detections", "missing_shard", "categories_without_detections")
def class_lost_on_a_shard(rng, scene, share):
    label, gone = frequent(rng, scene), run(rng, scene, share)
    scene.detections(~((scene.d_label == label) & gone[scene.d_image]))


@plants("undetected rarely_detected missing_shard", "images_without_detections", "missing_shard", least=0.4)
def class_lost_on_half_of_the_images(rng, scene, share):
    label, gone = frequent(rng, scene), some(rng, scene, share)
    scene.detections(~((scene.d_label == label) & gone[scene.d_image]))


@plants("unsuppressed duplicate_detections", "beyond_cap", "quantised_scores")
def class_without_suppression(rng, scene, share):
    label = frequent(rng, scene)
    at = np.flatnonzero((scene.d_label == label) & (scene.of >= 0))
    at = np.repeat(at, 3)
    box = jittered(rng, scene.d_box[at], 0.03, scene.sizes[scene.d_image[at]])
    scene.add(
        scene.d_image[at], scene.d_label[at], box, scene.d_score[at] * rng.uniform(0.8, 0.999, at.size), scene.of[at]
    )


@plants("unlabelled rarely_labelled missing_labels", "images_without_objects")
def class_unlabelled_on_a_shard(rng, scene, share):
    label, gone = frequent(rng, scene), run(rng, scene, share)
    scene.objects(~((scene.label == label) & gone[scene.image]))


@plants("unlabelled rarely_labelled missing_labels", "images_without_objects", least=0.1)
def class_unlabelled_anywhere(rng, scene, share):
    label, gone = frequent(rng, scene), some(rng, scene, share)
    scene.objects(~((scene.label == label) & gone[scene.image]))


@plants("relabelled labels_mixed", "unlabelled", classes=2, least=0.1)
def labels_of_a_class_under_another(rng, scene, share):
    one = frequent(rng, scene)
    other = (one + 1 + rng.integers(scene.classes - 1)) % scene.classes
    scene.label = np.where((scene.label == one) & (rng.random(scene.label.size) < share), other, scene.label)


@plants("relabelled misplaced classes_permuted category_ids_shifted", "classes_disagree", classes=2)
def classes_of_a_shard_in_another_order(rng, scene, share):
    there = run(rng, scene, share)[scene.d_image]
    scene.d_label = np.where(there, (scene.d_label + 1) % scene.classes, scene.d_label)


@plants("scaled_boxes misplaced", "outside_boxes")
def shard_at_another_size(rng, scene, share):
    there = run(rng, scene, share)[scene.d_image]
    scene.d_box = np.where(there[:, None], scene.d_box * 1.6, scene.d_box)


@plants("turned_boxes misplaced", "outside_boxes")
def shard_mirrored(rng, scene, share):
    there = run(rng, scene, share)[scene.d_image]
    x = scene.sizes[scene.d_image, 0] - scene.d_box[:, 0] - scene.d_box[:, 2]
    scene.d_box[:, 0] = np.where(there, x, scene.d_box[:, 0])


@plants("misplaced no_agreement", "outside_boxes")
def shard_of_other_images(rng, scene, share):
    there = run(rng, scene, share)[scene.d_image]
    scene.d_box = np.where(there[:, None], boxes(rng, scene.sizes[scene.d_image]), scene.d_box)


@plants("sizes_cut", "images_without_detections")
def small_detections_filtered(rng, scene, share):
    areas = scene.d_box[:, 2] * scene.d_box[:, 3]
    scene.detections(areas >= np.quantile(scene.box[:, 2] * scene.box[:, 3], share))


@plants("sizes_cut", "images_without_detections")
def large_detections_filtered(rng, scene, share):
    areas = scene.d_box[:, 2] * scene.d_box[:, 3]
    scene.detections(areas < np.quantile(scene.box[:, 2] * scene.box[:, 3], 1 - share))


@plants("category_cap", "images_without_detections", "cap_reached", least=0.5)
def best_of_each_class(rng, scene, share):
    order = np.lexsort((-scene.d_score, scene.d_label, scene.d_image))
    first = np.ones(order.size, bool)
    first[1:] = (np.diff(scene.d_image[order]) != 0) | (np.diff(scene.d_label[order]) != 0)
    scene.detections(np.sort(order[first]))


@plants("uneven_scores mixed_scores")
def scores_of_a_shard_scaled(rng, scene, share):
    there = run(rng, scene, share)[scene.d_image]
    scene.d_score = np.where(there, 0.1 * scene.d_score, scene.d_score)


@plants("uneven_scores mixed_scores", least=0.5)
def scores_of_half_of_the_images_scaled(rng, scene, share):
    there = some(rng, scene, share)[scene.d_image]
    scene.d_score = np.where(there, 0.1 * scene.d_score, scene.d_score)


@plants("uneven_scores", classes=2, least=0.5)
def scores_of_a_class_scaled(rng, scene, share):
    scene.d_score = np.where(scene.d_label == frequent(rng, scene), 0.1 * scene.d_score, scene.d_score)


@plants("cut_boxes", "misplaced", "sizes_cut")
def both_halves_of_tiles(rng, scene, share):
    """Two tiles, side by side: what lies across the border is found in two pieces."""
    middle = scene.sizes[scene.d_image, 0] / 2
    x, w = scene.d_box[:, 0], scene.d_box[:, 2]
    across = (x < middle - 4) & (x + w > middle + 4) & some(rng, scene, max(share, 0.1))[scene.d_image]
    at = np.flatnonzero(across)
    right = scene.d_box[at].copy()
    right[:, 0], right[:, 2] = middle[at], (x + w - middle)[at]
    scene.d_box[at, 2] = (middle - x)[at]
    scene.add(scene.d_image[at], scene.d_label[at], right, scene.d_score[at] * 0.97)


@plants("coarse_boxes", "duplicate_detections", "biased_boxes", "uneven_boxes", "zero_sized_boxes", "misplaced")
def boxes_on_a_grid(rng, scene, share):
    there = some(rng, scene, share)[scene.d_image]
    near = np.round(scene.d_box[:, :2] / 8) * 8
    far = np.maximum(np.round((scene.d_box[:, :2] + scene.d_box[:, 2:]) / 8) * 8, near + 8)
    scene.d_box = np.where(there[:, None], np.concatenate([near, far - near], axis=1), scene.d_box)


@plants("part_score_cut uneven_counts score_cut", "images_without_detections", "uneven_scores", "missing_shard")
def a_threshold_on_a_shard(rng, scene, share):
    there = run(rng, scene, share)[scene.d_image]
    scene.detections(~there | (scene.d_score >= 0.5))


@plants("category_score_cut", "images_without_detections", classes=2, least=0.5)
def a_threshold_on_a_class(rng, scene, share):
    scene.detections((scene.d_label != frequent(rng, scene)) | (scene.d_score >= 0.4))


@plants("biased_boxes", "misplaced", "shifted_boxes", least=0.5)
def boxes_too_large(rng, scene, share):
    grown = scene.d_box[:, 2:] * 0.13
    scene.d_box = np.concatenate([scene.d_box[:, :2] - grown / 2, scene.d_box[:, 2:] + grown], axis=1)
    near = np.clip(scene.d_box[:, :2], 0, None)
    far = np.minimum(scene.d_box[:, :2] + scene.d_box[:, 2:], scene.sizes[scene.d_image])
    scene.d_box = np.concatenate([near, far - near], axis=1)


@plants("copied_boxes", least=0.1)
def labels_among_the_detections(rng, scene, share):
    at = rng.choice(len(scene.image), round(share * len(scene.image)), replace=False)
    scene.add(scene.image[at], scene.label[at], np.round(scene.box[at], 2), rng.uniform(0.7, 0.99, at.size), at)
    gone = np.zeros(len(scene.d_image), bool)
    gone[: len(gone) - at.size] = np.isin(scene.of[: len(gone) - at.size], at)
    scene.detections(~gone)


@plants("categories_of_labels", "images_without_detections", classes=2, least=0.5)
def classes_of_labels_alone(rng, scene, share):
    cells = set(zip(scene.image.tolist(), scene.label.tolist(), strict=True))
    keep = [one in cells for one in zip(scene.d_image.tolist(), scene.d_label.tolist(), strict=True)]
    scene.detections(np.array(keep))


@plants("leakage")
def resized_images_of_the_training_set(rng, scene, share):
    """Some of the images, at 0.6 of the size, whole pixels, of the same names."""
    _train(rng, scene, share, lambda names: names)


@plants("leakage")
def resized_and_renamed_images_of_the_training_set(rng, scene, share):
    _train(rng, scene, share, lambda names: [f"part_{at}.png" for at in range(len(names))])


@plants("leakage")
def mirrored_images_of_the_training_set(rng, scene, share):
    _train(rng, scene, share, lambda names: [f"flip_{at}.png" for at in range(len(names))], mirrored=True)


def _train(rng, scene, share, rename, mirrored=False):
    """Put a copy of some images, those with three objects at least first, into another ground truth."""
    held = np.bincount(scene.image, minlength=len(scene.ids))
    full = rng.permutation(np.flatnonzero(held >= 3))
    chosen = full[: max(round(share * len(scene.ids)), 3)]
    sizes = np.round(scene.sizes * 0.6).astype(int)
    names = rename([scene.names[at] for at in chosen.tolist()])
    train = {"images": [], "annotations": [], "categories": scene.data().truth["categories"]}
    for number, (at, name) in enumerate(zip(chosen.tolist(), names, strict=True)):
        w, h = sizes[at].tolist()
        train["images"].append({"id": number, "file_name": name, "width": w, "height": h})
        for row in np.flatnonzero(scene.image == at).tolist():
            x, y, bw, bh = scene.box[row] * 0.6
            x = w - x - bw if mirrored else x
            box = [round(v) for v in (x, y, bw, bh)]
            train["annotations"].append(
                {"id": len(train["annotations"]) + 1, "image_id": number, "category_id": int(scene.label[row]) + 1,
                 "bbox": box, "area": box[2] * box[3], "iscrowd": 0}
            )  # fmt: skip
    scene.train = train


@plants("relabelled labels_mixed", classes=2)
def two_classes_swapped_on_a_shard(rng, scene, share):
    one, other = np.argsort(-np.bincount(scene.label, minlength=scene.classes))[:2]
    there = run(rng, scene, share)[scene.d_image]
    swapped = np.where(scene.d_label == one, other, np.where(scene.d_label == other, one, scene.d_label))
    scene.d_label = np.where(there, swapped, scene.d_label)


@plants("unsuppressed", "uneven_counts", "biased_boxes")
def a_shard_of_two_models(rng, scene, share):
    at = np.flatnonzero(run(rng, scene, share)[scene.d_image])
    box = jittered(rng, scene.d_box[at], 0.02, scene.sizes[scene.d_image[at]])
    scene.add(scene.d_image[at], scene.d_label[at], box, scene.d_score[at] * rng.uniform(0.8, 1, at.size), scene.of[at])


@plants("misplaced uneven_boxes scaled_boxes")
def labels_of_a_shard_at_another_size(rng, scene, share):
    there = run(rng, scene, share)[scene.image]
    scene.box = np.where(there[:, None], scene.box * 0.7, scene.box)


@plants("undetected missing_shard", "images_without_detections", "missing_shard", least=0.1)
def class_lost_by_every_third_worker(rng, scene, share):
    gone = np.arange(len(scene.ids)) % 3 == 1
    scene.detections(~((scene.d_label == frequent(rng, scene)) & gone[scene.d_image]))


@plants("scores_rank_nothing inverted_scores", "uneven_scores", least=0.1)
def scores_of_a_shard_shuffled(rng, scene, share):
    at = np.flatnonzero(run(rng, scene, share)[scene.d_image])
    scene.d_score[at] = scene.d_score[rng.permutation(at)]


@plants("scores_rank_nothing inverted_scores", "uneven_scores", least=0.5)
def scores_shuffled(rng, scene, share):
    scene.d_score = rng.permutation(scene.d_score)


@plants("sizes_cut", "images_without_detections", least=0.5)
def nothing_on_the_right_side(rng, scene, share):
    middle = (scene.d_box[:, 0] + scene.d_box[:, 2] / 2) / scene.sizes[scene.d_image, 0]
    scene.detections(middle < 0.75)


@plants("sizes_cut", "images_without_detections", "biased_boxes", least=0.5)
def nothing_at_the_edge(rng, scene, share):
    far = scene.sizes[scene.d_image] - scene.d_box[:, :2] - scene.d_box[:, 2:]
    scene.detections((np.minimum(scene.d_box[:, :2], far) > 12).all(axis=1))


@plants("rarely_found biased_boxes misplaced", classes=2, least=0.5)
def a_class_with_smaller_boxes(rng, scene, share):
    of = (scene.d_label == frequent(rng, scene))[:, None]
    small = np.concatenate([scene.d_box[:, :2] + 0.2 * scene.d_box[:, 2:], 0.6 * scene.d_box[:, 2:]], axis=1)
    scene.d_box = np.where(of, small, scene.d_box)


@plants("wrong_labels labels_mixed", "classes_disagree", classes=2, least=0.1)
def labels_at_random(rng, scene, share):
    wrong = rng.random(scene.label.size) < share
    scene.label = np.where(wrong, rng.integers(scene.classes, size=scene.label.size), scene.label)


@plants("missing_labels rarely_labelled", least=0.1)
def labels_missing_anywhere(rng, scene, share):
    scene.objects(rng.random(scene.label.size) >= share)


@plants("missing_labels rarely_labelled unlabelled", "images_without_objects", least=0.1)
def images_without_labels(rng, scene, share):
    scene.objects(~some(rng, scene, share)[scene.image])


@plants("piled_scores quantised_scores", least=0.02)
def scores_clipped(rng, scene, share):
    most = np.quantile(scene.d_score, 1 - share)
    scene.d_score = np.minimum(scene.d_score, round(float(most), 6))


@plants("uneven_scores", classes=2, least=0.5)
def scores_of_a_class_halved(rng, scene, share):
    scene.d_score = np.where(scene.d_label == frequent(rng, scene), 0.5 * scene.d_score, scene.d_score)


@plants("uneven_scores")
def scores_of_a_shard_halved(rng, scene, share):
    there = run(rng, scene, share)[scene.d_image]
    scene.d_score = np.where(there, 0.5 * scene.d_score, scene.d_score)


@plants("uneven_boxes misplaced biased_boxes drawn_unevenly", "duplicate_objects")
def a_shard_with_loose_labels(rng, scene, share):
    there = run(rng, scene, share)[scene.image]
    grown = scene.box[:, 2:] * 0.2
    box = np.concatenate([scene.box[:, :2] - grown / 2, scene.box[:, 2:] + grown], axis=1)
    near = np.clip(box[:, :2], 0, None)
    box = np.concatenate([near, np.minimum(box[:, :2] + box[:, 2:], scene.sizes[scene.image]) - near], axis=1)
    scene.box = np.where(there[:, None], box, scene.box)


@plants("biased_boxes", "shifted_boxes", "outside_boxes", least=0.5)
def a_pixel_too_wide(rng, scene, share):
    """A detector that is good to a pixel, and counts the last pixel."""
    at = np.flatnonzero(scene.of >= 0)
    scene.d_box[at] = scene.box[scene.of[at]] + rng.normal(0, 0.6, (at.size, 4))
    keep = suppressed(scene.d_image, scene.d_label, scene.d_box, scene.d_score)
    scene.detections(np.sort(keep))
    scene.d_box[:, 2:] = np.maximum(scene.d_box[:, 2:] + 1, 2)


@plants("cap_reached uneven_counts", "category_cap", "images_without_detections")
def a_cap_on_all_images(rng, scene, share):
    most = max(int(np.quantile(np.bincount(scene.d_image), 1 - max(share, 0.1))), 3)
    order = np.lexsort((-scene.d_score, scene.d_image))
    held = np.bincount(scene.d_image, minlength=len(scene.ids))
    rank = np.arange(order.size) - np.repeat(np.cumsum(held) - held, held)
    scene.detections(np.sort(order[rank < most]))
