"""Defects of scenes by causes that are told apart: columns in another order, scores by another rule, ids as text."""

from __future__ import annotations

import numpy as np

from planting.scene_defects import plants, run, some
from planting.scene_exports import _EMPTY, _MOVED, _where
from planting.scenes import suppressed

#: What else may be said where boxes are of whole numbers.
_WHOLE = ("coarse_boxes", "duplicate_detections", "duplicate_objects", "area_misfits")


@plants("mixed_scores", "quantised_scores", *_EMPTY)
def scores_of_a_shard_divided_by_the_highest_of_the_image(rng, scene, share):
    most = np.zeros(len(scene.ids))
    np.maximum.at(most, scene.d_image, scene.d_score)
    most[~run(rng, scene, share)] = 1.0
    scene.d_score = scene.d_score / np.maximum(most, 1e-9)[scene.d_image]


@plants("byte_boxes", *_MOVED, *_WHOLE, least=0.1, most=1.0)
def coordinates_of_a_byte_that_begin_again_on_a_shard(rng, scene, share):
    """Those above 255 begin again at 0."""
    _where(scene, run(rng, scene, share), np.floor(scene.d_box) % 256)


@plants("byte_boxes", *_MOVED, *_WHOLE, "piled_sides", "constant_boxes", least=0.1, most=1.0)
def coordinates_of_objects_of_a_byte_on_a_shard(rng, scene, share):
    """Sizes and corners above 255 are 255."""
    there = run(rng, scene, share)[scene.image]
    scene.box = np.where(there[:, None], np.minimum(np.floor(scene.box), 255), scene.box)


@plants("scores_of_boxes", "unsuppressed_across", "uneven_counts", "quantised_scores", "beyond_cap", "cap_reached",
        classes=4, least=0.1)  # fmt: skip
def one_score_for_two_classes_of_a_box_on_a_shard(rng, scene, share):
    """Each box stands under two classes or three, with scores of their own, but on a shard with one score."""
    first, there = scene.d_label.copy(), run(rng, scene, share)
    at, score = np.arange(first.size), scene.d_score.copy()
    for by in (1, 2):
        chosen = at if by == 1 else at[rng.random(at.size) < 0.5]
        own = np.where(there[scene.d_image[chosen]], 1, rng.uniform(0.1, 0.6, chosen.size))
        label = (first[chosen] + by) % scene.classes
        scene.add(scene.d_image[chosen], label, scene.d_box[chosen], score[chosen] * own)
    scene.detections(suppressed(scene.d_image, scene.d_label, scene.d_box, scene.d_score))
    scene.detections(np.argsort(scene.d_image, kind="stable"))


def _reordered(box, order):
    """Boxes whose corners x1, y1, x2, y2 are written in another order of columns, and read as x1, y1, x2, y2."""
    corners = np.concatenate([box[:, :2], box[:, :2] + box[:, 2:]], axis=1)[:, order]
    return np.concatenate([corners[:, :2], corners[:, 2:] - corners[:, :2]], axis=1)


@plants("inverted_boxes", *_MOVED, most=1.0)
def columns_x1_x2_y1_y2_on_a_shard(rng, scene, share):
    _where(scene, run(rng, scene, share), _reordered(scene.d_box, [0, 2, 1, 3]))


@plants("inverted_boxes", *_MOVED, least=0.1, most=1.0)
def columns_of_the_other_diagonal_anywhere(rng, scene, share):
    """x1, y2, x2, y1: the lower left and the upper right corner."""
    _where(scene, some(rng, scene, share), _reordered(scene.d_box, [0, 3, 2, 1]))


@plants("inverted_boxes", *_MOVED, "area_misfits", "tiny_objects", most=1.0)
def columns_of_objects_x1_x2_y1_y2_on_a_shard(rng, scene, share):
    there = run(rng, scene, share)[scene.image]
    scene.box = np.where(there[:, None], _reordered(scene.box, [0, 2, 1, 3]), scene.box)


@plants("scaled_boxes", *_MOVED, "sizes_cut", most=1.0)
def sides_of_a_shard_scaled_about_the_corner(rng, scene, share):
    """Width and height were scaled back, x and y were right already."""
    _where(scene, run(rng, scene, share), scene.d_box * [1, 1, 0.6, 0.6])


@plants("scaled_boxes uneven_boxes", *_MOVED, "sizes_cut", most=1.0)
def sides_of_a_shard_a_little_larger(rng, scene, share):
    _where(scene, run(rng, scene, share), scene.d_box * [1, 1, 1.25, 1.25])


@plants("relabelled", "labels_mixed", "wrong_labels", "classes_disagree", "unlabelled", "misplaced", "undetected",
        classes=6)  # fmt: skip
def labels_of_the_next_row_on_a_shard(rng, scene, share):
    """Boxes and labels are lists of their own, and one of them begins a row later."""
    at = np.flatnonzero(run(rng, scene, share)[scene.image])
    scene.label[at] = np.roll(scene.label[at], -1)


@plants("misplaced parts_exchanged image_ids_rotated image_ids_shifted", "outside_boxes", *_EMPTY)
def ids_as_text_on_a_shard(rng, scene, share):
    """The n-th result, in the order of ids as text, is written under the n-th id: 100 is ahead of 99."""
    count = len(scene.ids)
    size = max(round(share * count), 4)
    scene.ids = np.arange(1, count + 1)
    edge = 10 ** int(np.log10(count))  # the first id of more digits
    first = int(np.clip(edge - 1 - rng.integers(size // 4, size - size // 4), 0, count - size))
    part = np.arange(first, first + size)
    to = np.arange(count)
    to[part] = np.array(sorted(part.tolist(), key=lambda at: str(at + 1)))
    scene.d_image = to[scene.d_image]
    scene.detections(np.argsort(scene.d_image, kind="stable"))


@plants("image_ids_shifted image_ids_positions", "outside_boxes", *_EMPTY)
def objects_of_a_shard_on_images_of_another(rng, scene, share):
    """Both shards number their images from 1."""
    count = len(scene.ids)
    scene.ids = np.arange(1, count + 1)
    first = count - max(round(share * count), 8)
    scene.image = np.where(scene.image >= first, scene.image - first, scene.image)
    order = np.argsort(scene.image, kind="stable")
    place = np.argsort(order)
    scene.of = np.where(scene.of >= 0, place[scene.of], -1)
    for name in ("image", "label", "box", "crowd"):
        setattr(scene, name, getattr(scene, name)[order])


@plants("image_ids_shifted image_ids_positions", "outside_boxes", *_EMPTY)
def detections_of_a_shard_on_images_of_another(rng, scene, share):
    count = len(scene.ids)
    scene.ids = np.arange(1, count + 1)
    first = count - max(round(share * count), 8)
    scene.d_image = np.where(scene.d_image >= first, scene.d_image - first, scene.d_image)
    scene.detections(np.argsort(scene.d_image, kind="stable"))


@plants("single_category relabelled", "duplicate_detections", "beyond_cap", "wrong_labels", "unsuppressed", classes=4)
def one_class_for_each_image_anywhere(rng, scene, share):
    """That of its best detection."""
    there = some(rng, scene, share)[scene.d_image]
    best = np.lexsort((scene.d_score, scene.d_image))
    label = np.zeros(len(scene.ids), int)
    label[scene.d_image[best]] = scene.d_label[best]  # the last of each image stays
    scene.d_label = np.where(there, label[scene.d_image], scene.d_label)


@plants("shifted_boxes outside_boxes", "uneven_boxes", "misplaced", "drawn_unevenly")
def objects_shifted_on_images_anywhere(rng, scene, share):
    there = some(rng, scene, share)[scene.image]
    scene.box = np.where(there[:, None], scene.box + np.array([12, 12, 0, 0]), scene.box)


@plants("row_lost misplaced", "images_without_detections", "missing_shard", "undetected", "uneven_scores", least=0.1)
def best_detection_of_each_image_lost_on_a_shard(rng, scene, share):
    """The first row of each image, as its list is sorted."""
    there = run(rng, scene, share)
    order = np.lexsort((-scene.d_score, scene.d_image))
    first = np.zeros(order.size, bool)
    first[order[np.diff(scene.d_image[order], prepend=-1) != 0]] = True
    scene.detections(~(first & there[scene.d_image]))
