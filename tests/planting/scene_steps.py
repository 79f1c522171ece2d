"""Defects of scenes that single steps make: tiles, resizing, post-processing, and the choice of what is written."""

from __future__ import annotations

import numpy as np

from planting.scene_defects import plants, run, some
from planting.scene_exports import _EMPTY, _MOVED, _where
from planting.scenes import jittered


@plants("shifted_boxes misplaced", *_MOVED, "duplicate_detections", "sizes_cut", "cut_boxes", "missing_labels",
        least=0.1, most=1.0)  # fmt: skip
def offset_of_tiles_lost(rng, scene, share):
    """Two tiles, side by side, of some images: what lies in the right one is written as if in the left one."""
    there = some(rng, scene, share)[scene.d_image]
    middle = scene.sizes[scene.d_image, 0] / 2
    right = there & (scene.d_box[:, 0] + scene.d_box[:, 2] / 2 > middle)
    scene.d_box[right, 0] = np.maximum(scene.d_box[right, 0] - middle[right], 0)


@plants("centres_as_corners misplaced", *_MOVED, most=1.0)
def corners_taken_for_centres(rng, scene, share):
    """Half of the size was taken off once more."""
    _where(
        scene,
        run(rng, scene, share),
        np.concatenate([scene.d_box[:, :2] - scene.d_box[:, 2:] / 2, scene.d_box[:, 2:]], 1),
    )


@plants("scaled_boxes axes_swapped misplaced", *_MOVED, most=1.0)
def x_times_the_height_of_the_image(rng, scene, share):
    """Shares of the image, scaled back by the sides in the wrong order."""
    w, h = scene.sizes[scene.d_image].T
    _where(scene, run(rng, scene, share), scene.d_box * np.stack([h / w, w / h, h / w, w / h], 1))


@plants("crowds_misplaced", *_EMPTY, "images_without_objects", "unlabelled", "rarely_labelled", "missing_labels",
        "categories_without_objects", most=1.0)  # fmt: skip
def objects_flagged_as_crowds(rng, scene, share):
    """Difficult objects, which another tool leaves out."""
    chosen = rng.random(len(scene.image)) < share
    scene.crowd = scene.crowd | chosen


@plants("inverted_scores scores_rank_nothing uneven_scores", "score_cut", most=0.5)
def scores_inverted_on_a_shard(rng, scene, share):
    there = run(rng, scene, share)[scene.d_image]
    scene.d_score = np.where(there, 1 - scene.d_score, scene.d_score)


@plants("square_boxes", *_MOVED, "duplicate_detections", "biased_boxes", "sizes_cut", "uneven_boxes", most=1.0)
def squares_around_the_middle(rng, scene, share):
    """A model of faces, or a tracker, whose boxes have one side."""
    side = scene.d_box[:, 2:].max(axis=1, keepdims=True)
    near = scene.d_box[:, :2] + scene.d_box[:, 2:] / 2 - side / 2
    _where(scene, some(rng, scene, share), np.concatenate([near, side, side], 1))


@plants("detections_of_labels", *_EMPTY, "categories_of_labels", least=1.0, most=1.0)
def matched_detections_alone(rng, scene, share):
    """What a tool writes of its matches: no detection without an object."""
    scene.detections(scene.of >= 0)


@plants("empty_images_skipped", *_EMPTY, "images_without_objects", least=0.1, most=0.5)
def images_of_annotations_alone(rng, scene, share):
    """The list of images was made of the annotations, which some images have none of."""
    bare = some(rng, scene, share)
    scene.detections(~(bare[scene.d_image] & (scene.of >= 0)))
    scene.objects(~bare[scene.image])
    held = np.bincount(scene.image, minlength=len(scene.ids))
    scene.detections(held[scene.d_image] > 0)


@plants("unlabelled missing_labels rarely_labelled images_without_objects", "scores_rank_nothing", "inverted_scores",
        least=0.5, most=0.5)  # fmt: skip
def every_other_frame_labelled(rng, scene, share):
    scene.objects(scene.image % 2 == 0)


@plants("unlabelled missing_labels rarely_labelled images_without_objects", "scores_rank_nothing", "inverted_scores",
        most=0.5)  # fmt: skip
def labels_end_early(rng, scene, share):
    scene.objects(scene.image < len(scene.ids) - max(round(share * len(scene.ids)), 8))


@plants("cut_boxes misplaced sizes_cut", *_MOVED, "duplicate_detections", "uneven_boxes", "biased_boxes", "scaled_boxes",
        "piled_sides", least=0.1, most=1.0)  # fmt: skip
def coordinates_of_a_byte(rng, scene, share):
    """Corners above 255 are 255."""
    near = np.minimum(scene.d_box[:, :2], 255)
    far = np.minimum(scene.d_box[:, :2] + scene.d_box[:, 2:], 255)
    _where(scene, some(rng, scene, share), np.concatenate([near, far - near], 1))


@plants("scaled_boxes misplaced", *_MOVED, "uneven_counts", "missing_labels", most=1.0)
def one_of_two_scales_not_undone(rng, scene, share):
    """Each image of a shard was seen at two sizes, and the boxes of the larger one are as they were there."""
    at = np.flatnonzero(run(rng, scene, share)[scene.d_image])
    box = jittered(rng, scene.d_box[at], 0.02, scene.sizes[scene.d_image[at]]) * 1.5
    scene.add(scene.d_image[at], scene.d_label[at], box, scene.d_score[at] * rng.uniform(0.8, 1, at.size))


@plants("shifted_boxes misplaced uneven_boxes", *_MOVED, most=1.0)
def border_left_on_a_shard(rng, scene, share):
    """24 pixels were cut off on the left and at the top."""
    _where(scene, run(rng, scene, share), scene.d_box - [24, 24, 0, 0])


@plants("missing_shard misplaced uneven_counts", *_EMPTY, "beyond_cap", "unlabelled", "outside_boxes",
        "missing_labels", most=0.5)  # fmt: skip
def images_of_one_name_in_two_folders(rng, scene, share):
    """Detections of some images stand at others, beside those of these."""
    there = run(rng, scene, share)
    count = len(scene.ids)
    scene.d_image = np.where(there[scene.d_image], (scene.d_image + count // 2) % count, scene.d_image)
    scene.detections(np.argsort(scene.d_image, kind="stable"))


@plants("sizes_cut piled_sides uneven_boxes biased_boxes", *_MOVED, "duplicate_detections", least=1.0, most=1.0)
def boxes_of_a_least_size(rng, scene, share):
    """No side below 48 pixels."""
    size = np.maximum(scene.d_box[:, 2:], 48)
    _where(scene, np.ones(len(scene.ids), bool), np.concatenate([scene.d_box[:, :2], size], 1))


@plants("cut_boxes sizes_cut misplaced", *_EMPTY, "undetected", "uneven_boxes", "piled_sides", least=0.5, most=1.0)
def middle_of_the_image_alone(rng, scene, share):
    """The model saw the largest square in the middle."""
    size = scene.sizes[scene.d_image]
    side = size.min(axis=1, keepdims=True)
    low, high = (size - side) / 2, (size + side) / 2
    near = np.maximum(scene.d_box[:, :2], low)
    far = np.minimum(scene.d_box[:, :2] + scene.d_box[:, 2:], high)
    there = some(rng, scene, share)[scene.d_image]
    inside = (far - near > 4).all(axis=1)
    scene.d_box = np.where((there & inside)[:, None], np.concatenate([near, far - near], 1), scene.d_box)
    scene.detections(inside | ~there)


@plants("scores_rank_nothing inverted_scores uneven_scores", most=1.0)
def scores_sorted_without_their_boxes(rng, scene, share):
    """On a shard the scores of each image descend, and the boxes are in the order of the model's grid."""
    there = run(rng, scene, share)[scene.d_image]
    order = np.lexsort((-scene.d_score, scene.d_image))
    grid = np.lexsort((scene.d_box[:, 0], scene.d_image))
    made = scene.d_score.copy()
    made[grid] = scene.d_score[order]
    scene.d_score = np.where(there, made, scene.d_score)


@plants("image_ids_rotated misplaced", "outside_boxes", *_EMPTY, "images_without_objects", "unlabelled", most=1.0)
def labels_of_a_shard_one_image_on(rng, scene, share):
    there = run(rng, scene, share)
    scene.image = np.where(there[scene.image], np.minimum(scene.image + 1, len(scene.ids) - 1), scene.image)


@plants("misplaced no_agreement scaled_boxes", *_MOVED, "classes_disagree", "sizes_cut", most=1.0)
def half_sizes_from_the_middle(rng, scene, share):
    """A half of width and height, about the same middle: an extent that was taken for a size."""
    _where(
        scene,
        run(rng, scene, share),
        np.concatenate([scene.d_box[:, :2] + scene.d_box[:, 2:] / 4, scene.d_box[:, 2:] / 2], 1),
    )


@plants("relabelled classes_permuted labels_mixed category_ids_shifted", "classes_disagree", "misplaced",
        "categories_without_detections", classes=4, least=1.0, most=1.0)  # fmt: skip
def classes_after_a_gap_one_off(rng, scene, share):
    gap = scene.classes // 2
    scene.d_label = np.where(scene.d_label >= gap, np.minimum(scene.d_label + 1, scene.classes - 1), scene.d_label)


@plants("scaled_boxes misplaced", *_MOVED, "sizes_cut", "uneven_boxes", least=0.1, most=1.0)
def heights_scaled_like_widths(rng, scene, share):
    """Shares of a square input, scaled back by the width alone."""
    w, h = scene.sizes[scene.d_image].T
    one = np.ones(w.size)
    _where(scene, some(rng, scene, share), scene.d_box * np.stack([one, w / h, one, w / h], 1))


@plants("scaled_boxes misplaced", *_MOVED, "sizes_cut", "uneven_boxes", least=0.1, most=1.0)
def sizes_of_the_image_before(rng, scene, share):
    """A batch whose list of sizes is out of step."""
    factor = np.roll(scene.sizes, 1, axis=0)[scene.d_image] / scene.sizes[scene.d_image]
    _where(scene, run(rng, scene, share), scene.d_box * np.concatenate([factor, factor], 1))


@plants("mixed_scores", "score_cut")
def sigmoid_twice_on_a_shard(rng, scene, share):
    there = run(rng, scene, share)[scene.d_image]
    scene.d_score = np.where(there, 1 / (1 + np.exp(-scene.d_score)), scene.d_score)


@plants("cap_reached", "uneven_counts", "category_cap", least=0.5)
def a_cap_on_some_images(rng, scene, share):
    """The best of each image, of an older version of the tool."""
    most = int(np.quantile(np.bincount(scene.d_image), 0.3)) + 1
    order = np.lexsort((-scene.d_score, scene.d_image))
    image = scene.d_image[order]
    place = np.arange(image.size) - np.searchsorted(image, image)
    scene.detections(np.sort(order[~(some(rng, scene, share)[image] & (place >= most))]))


@plants("unsuppressed", "uneven_counts", "biased_boxes", least=0.1)
def two_models_on_images_anywhere(rng, scene, share):
    at = np.flatnonzero(some(rng, scene, share)[scene.d_image])
    box = jittered(rng, scene.d_box[at], 0.05, scene.sizes[scene.d_image[at]])
    score = scene.d_score[at] * np.exp(-np.abs(rng.normal(0, 0.2, at.size)))
    scene.add(scene.d_image[at], scene.d_label[at], box, score, scene.of[at])


@plants("piled_scores uneven_scores", "quantised_scores", "scores_rank_nothing", least=0.1, most=1.0)
def scores_divided_by_the_highest_of_the_image(rng, scene, share):
    most = np.zeros(len(scene.ids))
    np.maximum.at(most, scene.d_image, scene.d_score)
    most[~some(rng, scene, share)] = 1.0
    scene.d_score = scene.d_score / np.maximum(most, 1e-9)[scene.d_image]


@plants("category_ids_shifted relabelled", "classes_disagree", "misplaced", "labels_mixed", *_EMPTY, classes=4)
def classes_of_a_shard_one_on(rng, scene, share):
    """A worker with a background class; detections of the last class were dropped."""
    there = run(rng, scene, share)[scene.d_image]
    scene.d_label = scene.d_label + there
    scene.detections(scene.d_label < scene.classes)
