"""Defects of scenes that annotators, their tools and conversions make: what is written of the objects."""

from __future__ import annotations

import numpy as np

from planting.scene_defects import frequent, plants, run, some
from planting.scenes import boxes, jittered

_MOVED = ("outside_boxes", "misplaced", "no_agreement", "zero_sized_boxes", "inverted_boxes", "area_misfits")


def _where(scene, there, made):
    """Put other boxes on some images."""
    scene.box = np.where(there[scene.image][:, None], made, scene.box)


@plants("duplicate_objects", most=1.0)
def labels_saved_twice(rng, scene, share):
    at = np.flatnonzero(some(rng, scene, share)[scene.image])
    scene.add_objects(scene.image[at], scene.label[at], scene.box[at])


@plants("duplicate_objects", "misplaced", "unsuppressed", "strict_suppression", most=1.0)
def labels_of_two_annotators(rng, scene, share):
    at = np.flatnonzero(some(rng, scene, share)[scene.image])
    box = jittered(rng, scene.box[at], 0.02, scene.sizes[scene.image[at]])
    scene.add_objects(scene.image[at], scene.label[at], box)


@plants("corners_as_sizes", *_MOVED, most=1.0)
def labels_by_corners_anywhere(rng, scene, share):
    _where(scene, some(rng, scene, share), np.concatenate([scene.box[:, :2], scene.box[:, :2] + scene.box[:, 2:]], 1))


@plants("normalised_boxes", *_MOVED, "sizes_cut", most=1.0)
def labels_as_shares_anywhere(rng, scene, share):
    """With six digits, as YOLO has them; written with two they would be lost."""
    size = np.concatenate([scene.sizes, scene.sizes], 1)[scene.image]
    _where(scene, some(rng, scene, share), scene.box / size)


@plants("centres_as_corners misplaced", *_MOVED, most=1.0)
def labels_by_centres_on_a_shard(rng, scene, share):
    middle = scene.box[:, :2] + scene.box[:, 2:] / 2
    _where(scene, run(rng, scene, share), np.concatenate([middle, scene.box[:, 2:]], 1))


@plants("turned_boxes misplaced", *_MOVED, most=1.0)
def labels_counted_from_below_on_a_shard(rng, scene, share):
    y = scene.sizes[scene.image, 1] - scene.box[:, 1] - scene.box[:, 3]
    _where(scene, run(rng, scene, share), np.concatenate([scene.box[:, :1], y[:, None], scene.box[:, 2:]], 1))


@plants("image_sizes_swapped", *_MOVED, "scaled_boxes", "unknown_sizes", least=0.1, most=1.0)
def sizes_of_images_swapped_anywhere(rng, scene, share):
    there = some(rng, scene, share)
    scene.sizes = np.where(there[:, None], scene.sizes[:, ::-1], scene.sizes)


@plants(
    "relabelled wrong_labels misplaced category_ids_shifted", "classes_disagree", "labels_mixed", classes=2, most=0.5
)
def labels_one_off_on_a_shard(rng, scene, share):
    there = run(rng, scene, share)[scene.image]
    scene.label = np.where(there, (scene.label + 1) % scene.classes, scene.label)


@plants("default_category", "relabelled", "wrong_labels", "labels_mixed", "rarely_detected", "duplicate_objects", classes=3,
        least=0.1, most=0.5)  # fmt: skip
def a_default_category(rng, scene, share):
    """All objects of some images have the first category of the tool's list."""
    scene.label = np.where(some(rng, scene, share)[scene.image], 0, scene.label)


@plants("labels_mixed wrong_labels relabelled", "classes_disagree", classes=2, least=0.1, most=0.5)
def two_labels_swapped_anywhere(rng, scene, share):
    one, other = np.argsort(-np.bincount(scene.label, minlength=scene.classes))[:2]
    wrong = rng.random(scene.label.size) < share
    swapped = np.where(scene.label == one, other, np.where(scene.label == other, one, scene.label))
    scene.label = np.where(wrong, swapped, scene.label)


@plants("drawn_unevenly", "uneven_boxes", "misplaced", "biased_boxes", "outside_boxes", least=0.1, most=0.5)
def an_annotator_with_loose_boxes(rng, scene, share):
    """A margin of an eighth of the object at each edge."""
    near = np.maximum(scene.box[:, :2] - scene.box[:, 2:] / 8, 0)
    far = np.minimum(scene.box[:, :2] + scene.box[:, 2:] * 9 / 8, scene.sizes[scene.image])
    _where(scene, some(rng, scene, share), np.concatenate([near, far - near], 1))


@plants("uneven_boxes misplaced biased_boxes drawn_unevenly", "duplicate_objects", least=0.1, most=0.5)
def an_annotator_with_tight_boxes(rng, scene, share):
    """Whose images stand together in the file of labels, and anywhere by their ids."""
    there = some(rng, scene, share)
    small = np.concatenate([scene.box[:, :2] + 0.1 * scene.box[:, 2:], 0.8 * scene.box[:, 2:]], 1)
    _where(scene, there, small)
    order = np.argsort(there[scene.image], kind="stable")
    new = np.argsort(order)
    scene.of = np.where(scene.of >= 0, new[scene.of], -1)
    scene.image, scene.label, scene.box = scene.image[order], scene.label[order], scene.box[order]


@plants("constant_boxes", "duplicate_objects", "misplaced", "undetected", "sizes_cut", most=0.5)
def a_box_that_the_tool_put_there(rng, scene, share):
    at = np.flatnonzero(some(rng, scene, share))
    label = rng.integers(scene.classes, size=at.size)
    scene.add_objects(at, label, np.tile([10.0, 10.0, 90.0, 90.0], (at.size, 1)))


@plants("piled_sides", "misplaced", "sizes_missed", "drawn_unevenly", "uneven_boxes", least=0.1, most=0.5)
def a_least_side_of_the_tool(rng, scene, share):
    """Sides of less than 48 pixels are 48 pixels, around the same centre."""
    there = some(rng, scene, share)[scene.image]
    side = np.maximum(scene.box[:, 2:], 48)
    near = scene.box[:, :2] + scene.box[:, 2:] / 2 - side / 2
    near = np.clip(near, 0, scene.sizes[scene.image] - side)
    scene.box = np.where(there[:, None], np.concatenate([near, side], 1), scene.box)


@plants("stray_objects tiny_objects sizes_cut", "misplaced", "undetected", least=0.02, most=0.1)
def clicks_by_accident(rng, scene, share):
    count = max(round(share * len(scene.image)), 12)
    at = rng.integers(len(scene.ids), size=count)
    near = rng.random((count, 2)) * (scene.sizes[at] - 3)
    scene.add_objects(
        at, rng.integers(scene.classes, size=count), np.concatenate([near, rng.uniform(0.3, 2, (count, 2))], 1)
    )


@plants(
    "objects_of_many grouped_objects",
    "misplaced",
    "area_misfits",
    "undetected",
    "duplicate_objects",
    least=0.02,
    most=0.1,
)
def crowds_as_objects(rng, scene, share):
    """Regions of many objects without the flag: a box around all objects of a class."""
    cell = scene.image * scene.classes + scene.label
    held = np.bincount(cell)
    many = np.flatnonzero(held >= 4)
    many = rng.permutation(many)[: max(round(share * many.size), 12)]
    near = np.full((held.size, 2), np.inf)
    far = np.zeros((held.size, 2))
    np.minimum.at(near, cell, scene.box[:, :2])
    np.maximum.at(far, cell, scene.box[:, :2] + scene.box[:, 2:])
    scene.add_objects(many // scene.classes, many % scene.classes, np.concatenate([near, far - near], 1)[many])


@plants("same_image_twice", "duplicate_objects", "outside_boxes", "images_without_detections", "missing_shard", "misplaced",
        "undetected", least=0.02, most=0.1)  # fmt: skip
def labels_of_the_image_before(rng, scene, share):
    """A tool that goes on with the boxes of the image before."""
    held = np.bincount(scene.image, minlength=len(scene.ids))
    stale = some(rng, scene, share)
    stale[0] = False
    stale[1:] &= ~stale[:-1] & (held[:-1] >= 3)
    scene.objects(~stale[scene.image])
    at = np.flatnonzero(np.append(stale[1:], False)[scene.image])
    scene.add_objects(scene.image[at] + 1, scene.label[at], scene.box[at])


@plants("unlabelled missing_labels rarely_labelled", "images_without_objects", least=0.1, most=0.5)
def small_objects_unlabelled_on_a_shard(rng, scene, share):
    side = np.sqrt(scene.box[:, 2] * scene.box[:, 3])
    scene.objects(~(run(rng, scene, share)[scene.image] & (side < np.quantile(side, 0.6))))


@plants("rarely_labelled missing_labels unlabelled", "images_without_objects", classes=2, least=0.5, most=0.5)
def one_annotator_leaves_a_class_out(rng, scene, share):
    gone = np.arange(len(scene.ids)) % 2 == 1
    scene.objects(~((scene.label == frequent(rng, scene)) & gone[scene.image]))


@plants("misplaced no_agreement", "unlabelled", "outside_boxes", most=0.5)
def labels_of_other_images_on_a_shard(rng, scene, share):
    _where(scene, run(rng, scene, share), boxes(rng, scene.sizes[scene.image]))


@plants("objects_capped missing_labels", "images_without_objects", least=0.1, most=0.5)
def labels_up_to_a_limit(rng, scene, share):
    """The first of each image, as an export with a limit writes them."""
    held = np.bincount(scene.image, minlength=len(scene.ids))
    most = max(int(np.quantile(held[held > 0], 1 - share)) - 1, 3)
    order = np.argsort(scene.image, kind="stable")
    rank = np.empty(order.size, int)
    rank[order] = np.arange(order.size) - np.repeat(np.cumsum(held) - held, held)
    scene.objects(rank < most)


@plants(
    "grouped_objects",
    "misplaced",
    "unlabelled",
    "rarely_labelled",
    "missing_labels",
    "objects_of_many",
    least=0.5,
    most=0.5,
)
def groups_in_one_box(rng, scene, share):
    """An annotator draws one box around all objects of a class."""
    cell = scene.image * scene.classes + scene.label
    some_of = some(rng, scene, share)[scene.image]
    cells, first, at = np.unique(cell, return_index=True, return_inverse=True)
    near, far = np.full((cells.size, 2), np.inf), np.zeros((cells.size, 2))
    np.minimum.at(near, at, scene.box[:, :2])
    np.maximum.at(far, at, scene.box[:, :2] + scene.box[:, 2:])
    scene.box = np.where(some_of[:, None], np.concatenate([near, far - near], 1)[at], scene.box)
    kept = ~some_of
    kept[first] = True
    scene.objects(kept)


@plants("whole_image_objects", "unlabelled", "missing_labels", "rarely_labelled", least=0.1, most=0.5)
def labels_of_images_as_boxes(rng, scene, share):
    there = some(rng, scene, share)[scene.image]
    cell = scene.image * scene.classes + scene.label
    kept = ~there
    kept[np.unique(cell, return_index=True)[1]] = True
    scene.box = np.where(there[:, None], np.concatenate([0 * scene.sizes, scene.sizes], 1)[scene.image], scene.box)
    scene.objects(kept)


@plants(
    "drawn_otherwise misplaced",
    "area_misfits",
    "sizes_cut",
    "uneven_boxes",
    "unlabelled",
    "sizes_missed",
    least=0.1,
    most=0.5,
)
def upper_parts_on_a_shard(rng, scene, share):
    """Labels of another rule: the upper two fifths of each object."""
    _where(scene, run(rng, scene, share), scene.box * [1, 1, 1, 0.4])


@plants("unlabelled missing_labels rarely_labelled", "images_without_objects", least=0.1, most=0.5)
def large_objects_unlabelled_on_a_shard(rng, scene, share):
    side = np.sqrt(scene.box[:, 2] * scene.box[:, 3])
    scene.objects(~(run(rng, scene, share)[scene.image] & (side > np.quantile(side, 0.6))))


@plants("objects_capped missing_labels unlabelled", least=0.1, most=0.5)
def two_largest_objects_of_a_shard(rng, scene, share):
    """A vendor labels no more than two objects of an image."""
    there = run(rng, scene, share)[scene.image]
    order = np.lexsort((-scene.box[:, 2] * scene.box[:, 3], scene.image))
    rank = np.empty(order.size, int)
    rank[order] = np.arange(order.size) - np.searchsorted(scene.image[order], scene.image[order])
    scene.objects(~there | (rank < 2))
