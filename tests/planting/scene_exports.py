"""Defects of scenes that models, their tools and the joining of files make: what is written of the detections."""

from __future__ import annotations

import numpy as np

from planting.scene_defects import frequent, plants, run, some
from planting.scenes import boxes, jittered, overlap

_MOVED = ("outside_boxes", "misplaced", "no_agreement", "zero_sized_boxes", "inverted_boxes")
_EMPTY = ("images_without_detections", "missing_shard", "categories_without_detections")


def _where(scene, there, made):
    """Put other boxes on some images."""
    scene.d_box = np.where(there[scene.d_image][:, None], made, scene.d_box)


def _mirrored(scene):
    x = scene.sizes[scene.d_image, 0] - scene.d_box[:, 0] - scene.d_box[:, 2]
    return np.concatenate([x[:, None], scene.d_box[:, 1:]], axis=1)


@plants("duplicate_detections", "uneven_counts", "quantised_scores", "beyond_cap", most=1.0)
def results_joined_twice(rng, scene, share):
    at = np.flatnonzero(run(rng, scene, share)[scene.d_image])
    scene.add(scene.d_image[at], scene.d_label[at], scene.d_box[at], scene.d_score[at], scene.of[at])


@plants("unsuppressed", "uneven_counts", "biased_boxes", "beyond_cap", most=1.0)
def augmented_results_not_merged(rng, scene, share):
    """Each image was seen as it is and mirrored, and both are there, on images anywhere."""
    at = np.flatnonzero(some(rng, scene, share)[scene.d_image])
    box = jittered(rng, scene.d_box[at], 0.015, scene.sizes[scene.d_image[at]])
    scene.add(scene.d_image[at], scene.d_label[at], box, scene.d_score[at] * rng.uniform(0.9, 1, at.size), scene.of[at])


@plants(
    "relabelled misplaced classes_permuted category_ids_shifted wrong_labels classes_disagree",
    "unknown_categories",
    classes=2,
    least=0.1,
    most=1.0,
)
def classes_one_off_anywhere(rng, scene, share):
    there = some(rng, scene, share)[scene.d_image]
    scene.d_label = np.where(there, (scene.d_label + 1) % scene.classes, scene.d_label)


@plants("corners_as_sizes", *_MOVED, most=1.0)
def corners_anywhere(rng, scene, share):
    _where(
        scene, some(rng, scene, share), np.concatenate([scene.d_box[:, :2], scene.d_box[:, :2] + scene.d_box[:, 2:]], 1)
    )


@plants("centres_as_corners misplaced", *_MOVED, most=1.0)
def centres_on_a_shard(rng, scene, share):
    middle = scene.d_box[:, :2] + scene.d_box[:, 2:] / 2
    _where(scene, run(rng, scene, share), np.concatenate([middle, scene.d_box[:, 2:]], 1))


@plants("normalised_boxes", *_MOVED, most=1.0)
def shares_of_images_anywhere(rng, scene, share):
    size = np.concatenate([scene.sizes, scene.sizes], 1)[scene.d_image]
    _where(scene, some(rng, scene, share), scene.d_box / size)


@plants("sides_swapped misplaced", *_MOVED, most=1.0)
def sides_swapped_on_a_shard(rng, scene, share):
    _where(scene, run(rng, scene, share), scene.d_box[:, [0, 1, 3, 2]])


@plants("axes_swapped misplaced image_sizes_swapped", *_MOVED, most=1.0)
def axes_swapped_anywhere(rng, scene, share):
    _where(scene, some(rng, scene, share), scene.d_box[:, [1, 0, 3, 2]])


@plants("scaled_boxes shifted_boxes misplaced", *_MOVED, most=1.0)
def padding_left_on_a_shard(rng, scene, share):
    """The image lay in the middle of a square."""
    size = scene.sizes[scene.d_image]
    padding = (size.max(axis=1, keepdims=True) - size) / 2
    _where(scene, run(rng, scene, share), np.concatenate([scene.d_box[:, :2] + padding, scene.d_box[:, 2:]], 1))


@plants("scaled_boxes misplaced", *_MOVED, most=1.0)
def boxes_of_the_input_on_a_shard(rng, scene, share):
    """Boxes of the square of 640 pixels to which the image was stretched."""
    by = 640 / np.concatenate([scene.sizes, scene.sizes], 1)[scene.d_image]
    _where(scene, run(rng, scene, share), scene.d_box * by)


@plants("scaled_boxes misplaced uneven_boxes", *_MOVED, most=1.0)
def width_stretched_on_a_shard(rng, scene, share):
    _where(scene, run(rng, scene, share), scene.d_box * [0.75, 1, 0.75, 1])


@plants("turned_boxes misplaced", *_MOVED, most=1.0)
def turned_by_a_quarter_anywhere(rng, scene, share):
    """As EXIF has it, on images anywhere."""
    h = scene.sizes[scene.d_image, 1]
    x, y, bw, bh = scene.d_box.T
    _where(scene, some(rng, scene, share), np.stack([h - y - bh, x, bh, bw], 1))


@plants("turned_boxes misplaced", *_MOVED, most=1.0)
def flips_not_undone_anywhere(rng, scene, share):
    _where(scene, some(rng, scene, share), _mirrored(scene))


@plants("mixed_scores logit_scores uneven_scores", most=1.0)
def logits_on_a_shard(rng, scene, share):
    there = run(rng, scene, share)[scene.d_image]
    p = np.clip(scene.d_score, 1e-6, 1 - 1e-6)
    scene.d_score = np.where(there, np.log(p / (1 - p)), scene.d_score)


@plants("logit_scores percentage_scores", "quantised_scores", "piled_scores", least=1.0, most=1.0)
def scores_of_a_byte(rng, scene, share):
    scene.d_score = np.round(255 * scene.d_score)


@plants("mixed_scores uneven_scores", most=0.5)
def a_shard_in_percent(rng, scene, share):
    scene.d_score = np.where(run(rng, scene, share)[scene.d_image], 100 * scene.d_score, scene.d_score)


@plants("uneven_scores", least=0.1, most=0.5)
def scores_multiplied_twice_on_a_shard(rng, scene, share):
    """The score of the class times that of the object, twice."""
    scene.d_score = np.where(run(rng, scene, share)[scene.d_image], scene.d_score**2, scene.d_score)


@plants("quantised_scores coarse_scores", "piled_scores", "score_cut", "tied", least=0.5, most=1.0)
def scores_of_two_digits(rng, scene, share):
    there = some(rng, scene, share)[scene.d_image]
    scene.d_score = np.where(there, np.round(scene.d_score, 2), scene.d_score)


@plants("coarse_boxes", "uneven_boxes", "duplicate_detections", "biased_boxes", "shifted_boxes", most=1.0)
def whole_pixels(rng, scene, share):
    """Corners without their digits."""
    near = np.floor(scene.d_box[:, :2])
    far = np.maximum(np.floor(scene.d_box[:, :2] + scene.d_box[:, 2:]), near + 1)
    _where(scene, some(rng, scene, share), np.concatenate([near, far - near], 1))


@plants("missing_shard", *_EMPTY)
def last_batch_dropped(rng, scene, share):
    count = len(scene.ids)
    scene.detections(scene.d_image < count - max(round(share * count), 8))


@plants("missing_shard", *_EMPTY, "uneven_counts", least=0.5, most=0.5)
def every_other_shard_missing(rng, scene, share):
    scene.detections(scene.d_image // 20 % 2 == 0)


@plants("score_cut", *_EMPTY, least=1.0, most=1.0)
def a_threshold_for_pictures(rng, scene, share):
    scene.detections(scene.d_score >= 0.5)


@plants("score_cut score_gap uneven_counts", *_EMPTY, most=1.0)
def a_band_of_scores_lost(rng, scene, share):
    """One of the parts by score into which a file was sorted, of more or fewer scores."""
    low = np.sort(scene.d_score)[int(0.6 * scene.d_score.size)]
    high = np.sort(scene.d_score)[
        min(int((0.6 + 0.35 * max(share, 0.05)) * scene.d_score.size), scene.d_score.size - 1)
    ]
    scene.detections((scene.d_score < low) | (scene.d_score >= high))


@plants("cap_reached", "category_cap", *_EMPTY, least=1.0, most=1.0)
def ten_of_an_image(rng, scene, share):
    scene.detections(_first(scene, scene.d_image, 10 if scene.d_image.size > 10 * len(scene.ids) else 4))


@plants("uneven_counts cap_reached misplaced undetected", "category_cap", *_EMPTY, most=0.5)
def three_of_an_image_on_a_shard(rng, scene, share):
    there = run(rng, scene, share)[scene.d_image]
    scene.detections(~there | _first(scene, scene.d_image, 3))


def _first(scene, of, most):
    """Flags of the best detections of each value."""
    order = np.lexsort((-scene.d_score, of))
    held = np.bincount(of)
    rank = np.arange(order.size) - np.repeat(np.cumsum(held) - held, held)
    out = np.zeros(order.size, bool)
    out[order[rank < most]] = True
    return out


def _suppressed(scene, least, of):
    """Rows that better ones of the same value leave."""
    order = np.lexsort((-scene.d_score, of))
    keep, kept, last = [], [], None
    for row in order.tolist():
        if of[row] != last:
            last, kept = of[row], []
        if not any(overlap(scene.d_box[row], scene.d_box[other]) > least for other in kept):
            kept.append(row)
            keep.append(row)
    return np.sort(keep)


def _side_by_side(rng, scene):
    """Objects of one class that overlap by about a half, found both, on a fifth of the images."""
    held = np.flatnonzero(some(rng, scene, 0.2)[scene.image])
    moved = scene.box[held] * 1.0
    room = scene.sizes[scene.image[held], 0] - moved[:, 0] - moved[:, 2]
    right = room > 0.35 * moved[:, 2]
    moved[:, 0] += np.where(right, 0.3, -0.3) * moved[:, 2]
    good = moved[:, 0] >= 0
    held, moved = held[good], moved[good]
    first = len(scene.image)
    scene.add_objects(scene.image[held], scene.label[held], moved)
    near = jittered(rng, moved, 0.03, scene.sizes[scene.image[held]])
    scene.add(scene.image[held], scene.label[held], near, rng.beta(5, 2, held.size), first + np.arange(held.size))


@plants("strict_suppression misplaced", "missing_shard", least=1.0, most=1.0)
def suppression_too_strict(rng, scene, share):
    _side_by_side(rng, scene)
    scene.detections(_suppressed(scene, 0.3, scene.d_image * scene.classes + scene.d_label))


@plants("suppressed_across", *_EMPTY, "undetected", classes=2, least=1.0, most=1.0)
def suppression_across_classes(rng, scene, share):
    """On a fifth of the images an object lies on one of another class: a rider on a horse."""
    held = np.flatnonzero(some(rng, scene, 0.2)[scene.image])
    of = (scene.label[held] + 1) % scene.classes
    moved = scene.box[held] + scene.box[held][:, [2, 3, 2, 3]] * [0.02, 0.02, -0.04, -0.04]
    first = len(scene.image)
    scene.add_objects(scene.image[held], of, moved)
    near = jittered(rng, moved, 0.03, scene.sizes[scene.image[held]])
    scene.add(scene.image[held], of, near, rng.beta(5, 2, held.size), first + np.arange(held.size))
    scene.detections(_suppressed(scene, 0.5, scene.d_image))


@plants("cut_boxes", "misplaced", "uneven_boxes", "biased_boxes", "zero_sized_boxes", "sizes_cut", "piled_sides", most=1.0,
        least=0.1)  # fmt: skip
def clipped_to_sides_that_are_swapped(rng, scene, share):
    size = scene.sizes[scene.d_image][:, ::-1]
    near = np.minimum(scene.d_box[:, :2], size - 1)
    far = np.minimum(scene.d_box[:, :2] + scene.d_box[:, 2:], size)
    _where(scene, some(rng, scene, share), np.concatenate([near, np.maximum(far - near, 0)], 1))


@plants("class_of_two_names categories_without_detections labels_mixed classes_permuted", "classes_disagree", "relabelled",
        classes=2, least=1.0, most=1.0)  # fmt: skip
def two_classes_merged(rng, scene, share):
    one, other = np.argsort(-np.bincount(scene.label, minlength=scene.classes))[:2]
    scene.d_label = np.where(scene.d_label == one, other, scene.d_label)


@plants("same_detections", "misplaced", "outside_boxes", "quantised_scores", "image_ids_rotated", most=0.5)
def buffer_of_the_image_before(rng, scene, share):
    """On some images stand the detections of the one before."""
    held = np.bincount(scene.d_image, minlength=len(scene.ids))
    stale = some(rng, scene, share)
    stale[0] = False
    stale[1:] &= ~stale[:-1] & (held[:-1] >= 2)
    scene.detections(~stale[scene.d_image])
    at = np.flatnonzero(np.append(stale[1:], False)[scene.d_image])
    scene.add(scene.d_image[at] + 1, scene.d_label[at], scene.d_box[at], scene.d_score[at])
    scene.detections(np.argsort(scene.d_image, kind="stable"))


@plants("constant_boxes zero_sized_boxes", "piled_scores", "quantised_scores", "uneven_counts", "duplicate_detections",
        "beyond_cap", "cap_reached", most=1.0)  # fmt: skip
def rows_of_padding(rng, scene, share):
    """Arrays of one length for all images: what is left of them is filled with one box."""
    at = np.repeat(np.flatnonzero(some(rng, scene, share)), 3)
    scene.add(at, np.zeros(at.size, int), np.tile([0.0, 0.0, 1.0, 1.0], (at.size, 1)), np.full(at.size, 0.0))


@plants("sizes_missed", *_EMPTY, "rarely_detected", "undetected", "sizes_cut", least=1.0, most=1.0)
def a_level_of_the_pyramid_lost(rng, scene, share):
    side = np.sqrt(scene.d_box[:, 2] * scene.d_box[:, 3])
    scene.detections((side < 64) | (side >= 128))


@plants("sizes_missed misplaced uneven_boxes biased_boxes", "outside_boxes", least=1.0, most=1.0)
def a_level_of_the_pyramid_displaced(rng, scene, share):
    side = np.sqrt(scene.d_box[:, 2] * scene.d_box[:, 3])
    there = (side >= 64) & (side < 128)
    scene.d_box[there, :2] += 0.35 * scene.d_box[there, 2:]


@plants("image_ids_rotated misplaced", "outside_boxes", *_EMPTY, most=1.0)
def frames_late_by_five(rng, scene, share):
    there = run(rng, scene, share)
    late = np.minimum(scene.d_image + 5, len(scene.ids) - 1)
    scene.d_image = np.where(there[scene.d_image], late, scene.d_image)
    scene.detections(np.argsort(scene.d_image, kind="stable"))


@plants("misplaced no_agreement", "outside_boxes", "unlabelled", "missing_labels", most=0.5)
def detections_of_other_images_anywhere(rng, scene, share):
    there = some(rng, scene, share)
    _where(scene, there, boxes(rng, scene.sizes[scene.d_image]))


@plants("piled_scores quantised_scores constant_scores", "uneven_scores", "scores_rank_nothing", most=1.0)
def score_of_one_anywhere(rng, scene, share):
    """Detections of a tracker, whose scores are 1."""
    there = some(rng, scene, share)[scene.d_image]
    scene.d_score = np.where(there, 1.0, scene.d_score)


@plants("undetected missing_shard rarely_detected categories_without_detections", *_EMPTY, classes=2, most=1.0)
def one_class_lost_at_the_end(rng, scene, share):
    count = len(scene.ids)
    gone = np.arange(count) >= count - max(round(share * count), 8)
    scene.detections(~((scene.d_label == frequent(rng, scene)) & gone[scene.d_image]))


@plants("coarse_scores", "quantised_scores", most=1.0)
def scores_of_half_precision(rng, scene, share):
    there = run(rng, scene, share)[scene.d_image]
    scene.d_score = np.where(there, scene.d_score.astype(np.float16).astype(float), scene.d_score)


@plants("coarse_scores quantised_scores", "quantised_scores", "piled_scores", "score_cut", most=1.0)
def scores_of_two_digits_on_a_shard(rng, scene, share):
    there = run(rng, scene, share)[scene.d_image]
    scene.d_score = np.where(there, np.round(scene.d_score, 2), scene.d_score)


@plants("cut_boxes", "sizes_cut", "misplaced", "uneven_boxes", "biased_boxes", "zero_sized_boxes", "duplicate_detections",
        "coarse_boxes", "piled_sides", least=0.1, most=1.0)  # fmt: skip
def clipped_to_one_size(rng, scene, share):
    """To that of the smallest images, whatever the image has."""
    size = np.minimum([500, 375], scene.sizes[scene.d_image])
    near = np.minimum(scene.d_box[:, :2], size - 1)
    far = np.minimum(scene.d_box[:, :2] + scene.d_box[:, 2:], size)
    _where(scene, some(rng, scene, share), np.concatenate([near, np.maximum(far - near, 0)], 1))


def _again(scene, at):
    """Add images to the list again, with their objects, under ids beyond all others; return their places."""
    first = len(scene.ids)
    scene.ids = np.append(scene.ids, scene.ids.max() + 1 + np.arange(at.size))
    scene.sizes = np.concatenate([scene.sizes, scene.sizes[at]])
    scene.names = [*scene.names, *(f"{one:012d}.jpg" for one in scene.ids[first:])]
    new = np.full(first, -1)
    new[at] = first + np.arange(at.size)
    rows = np.flatnonzero(new[scene.image] >= 0)
    scene.add_objects(new[scene.image[rows]], scene.label[rows], scene.box[rows])
    return new


@plants("same_image_twice", *_EMPTY, "quantised_scores", "same_detections", "strict_suppression", most=0.5)
def images_under_two_ids(rng, scene, share):
    """The detector saw both."""
    new = _again(scene, np.flatnonzero(some(rng, scene, share)))
    rows = np.flatnonzero(new[scene.d_image] >= 0)
    scene.add(new[scene.d_image[rows]], scene.d_label[rows], scene.d_box[rows], scene.d_score[rows])


@plants("same_image_twice", *_EMPTY, "undetected", most=0.5)
def images_under_two_ids_detected_once(rng, scene, share):
    _again(scene, np.flatnonzero(some(rng, scene, share)))


@plants("unsuppressed_across", "uneven_counts", "relabelled", "beyond_cap", classes=2, least=0.1, most=1.0)
def boxes_under_two_classes(rng, scene, share):
    """The best two classes of each box, with scores that are hardly apart."""
    at = np.flatnonzero(some(rng, scene, share)[scene.d_image])
    other = (scene.d_label[at] + 1 + rng.integers(scene.classes - 1, size=at.size)) % scene.classes
    scene.add(scene.d_image[at], other, scene.d_box[at], scene.d_score[at] * rng.uniform(0.8, 1, at.size))
