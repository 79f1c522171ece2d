"""What `check` says of each planted defect, in one cell of kind and severity each, word for word.

Small data sets have a cell for each defect, too, and of some of them the distributions are kept.
"""

from __future__ import annotations

import copy
import functools
import json
import pickle
import tempfile
from pathlib import Path

import numpy as np
import planting

import detmap

#: Shares of what a defect concerns. The lowest is close to what is seen at all, where limits decide.
_SHARES = (0.02, 0.1, 0.5)

#: Seeds of small data sets, and the number of cells of them of which one shows the distributions.
_SEEDS, _SHOWN = (5, 6, 7), 6

#: Defects of which scenes with a tenth of the images say the same.
_OF_A_TENTH = """
a_box_that_the_tool_put_there a_cap_on_some_images a_class_with_smaller_boxes a_default_category a_least_side_of_the_tool
a_level_of_the_pyramid_displaced a_pixel_too_wide anchors_in_place_of_boxes_on_a_shard axes_swapped_anywhere
best_of_each_class border_left_on_a_shard boxes_of_a_least_size boxes_of_the_image_before_on_some_images boxes_on_a_grid
boxes_under_two_classes centres_on_a_shard class_written_twice classes_after_a_gap_one_off classes_one_off_anywhere
clicks_by_accident columns_of_objects_x1_x2_y1_y2_on_a_shard columns_x1_x2_y1_y2_on_a_shard coordinates_of_a_byte
coordinates_of_a_byte_that_begin_again_on_a_shard corners_anywhere corners_taken_for_centres
detections_of_a_shard_on_images_of_another frames_late_by_five images_under_two_ids_detected_once
labels_among_the_detections labels_as_shares_anywhere labels_by_corners_anywhere labels_end_early labels_of_images_as_boxes
labels_of_the_next_row_on_a_shard labels_saved_twice list_of_the_image_before_not_cleared
mirrored_images_of_the_training_set objects_flagged_as_crowds objects_of_a_shard_on_images_of_another one_class_on_a_shard
one_score_for_two_classes_of_a_box_on_a_shard resized_images_of_the_training_set score_of_one_anywhere scores_of_a_byte
scores_of_a_class_halved scores_of_a_shard_divided_by_the_highest_of_the_image scores_of_two_digits_on_a_shard
scores_shuffled shares_of_images_anywhere sides_swapped_on_a_shard sizes_of_images_swapped_anywhere
suppression_across_classes suppression_too_strict three_of_an_image_on_a_shard turned_by_a_quarter_anywhere
two_classes_merged upper_parts_on_a_shard whole_pixels
"""

#: Defects of which scenes with a fifth of the images say the same.
_OF_A_FIFTH = """
a_band_of_scores_lost batches_in_reverse_order_on_a_shard buffer_of_the_image_before class_lost_by_every_third_worker
coordinates_of_objects_of_a_byte_on_a_shard detections_accepted_as_labels groups_in_one_box
images_of_the_training_set_anywhere images_under_two_ids objects_made_square parts_read_as_objects rows_of_padding
scores_of_a_shard_scaled scores_of_half_precision shards_exchanged two_labels_swapped_anywhere two_models_on_images_anywhere
"""

#: Defects of scenes that are left out: every sentence that is said of them is said of others too, with other figures.
_LEFT_OUT = """
a_cap_on_all_images a_level_of_the_pyramid_lost a_shard_in_percent a_shard_of_two_models a_shard_with_loose_labels
an_annotator_with_loose_boxes areas_at_another_size augmented_results_not_merged both_halves_of_tiles
boxes_of_the_input_on_a_shard boxes_too_large class_lost_on_a_shard class_lost_on_half_of_the_images
class_unlabelled_anywhere class_unlabelled_on_a_shard class_without_suppression classes_of_a_shard_in_another_order
classes_of_a_shard_one_on clipped_to_one_size clipped_to_sides_that_are_swapped columns_of_the_other_diagonal_anywhere
detections_of_other_images_anywhere every_other_frame_labelled every_other_shard_missing flips_not_undone_anywhere
groups_in_one_box_on_a_shard half_sizes_from_the_middle height_for_width_on_a_shard heights_scaled_like_widths
ids_as_text_on_a_shard ids_of_a_shard_rotated images_of_annotations_alone images_of_one_name_in_two_folders
images_without_labels labelled_points_at_another_size labels_at_random labels_by_centres_on_a_shard
labels_counted_from_below_on_a_shard labels_missing_anywhere labels_of_a_class_under_another
labels_of_a_shard_at_another_size labels_of_a_shard_one_image_on labels_of_other_images_on_a_shard
labels_of_the_image_before labels_of_two_annotators labels_one_off_on_a_shard labels_up_to_a_limit large_detections_filtered
large_objects_lost_on_a_shard large_objects_unlabelled_on_a_shard last_batch_dropped
left_and_right_swapped_in_labels_of_a_shard left_and_right_swapped_on_a_shard logits_on_a_shard masks_shifted
middle_of_the_image_alone no_point_visible nothing_at_the_edge nothing_on_the_right_side objects_shifted_on_images_anywhere
offset_of_tiles_lost older_list_of_classes_on_a_shard one_annotator_leaves_a_class_out one_class_for_each_image_anywhere
one_class_lost_at_the_end one_of_two_scales_not_undone padding_left_on_a_shard points_as_shares_of_the_image
points_at_half_of_the_size points_of_the_crop polygons_shifted resized_and_renamed_images_of_the_training_set
results_joined_twice scores_clipped scores_inverted_on_a_shard scores_multiplied_twice_on_a_shard scores_of_a_class_scaled
scores_of_a_shard_halved scores_of_a_shard_shuffled scores_of_half_of_the_images_scaled scores_of_two_digits
scores_sorted_apart scores_sorted_without_their_boxes second_name_of_a_class shard_at_another_size shard_mirrored
shard_of_other_images sides_of_a_shard_a_little_larger sides_of_a_shard_scaled_about_the_corner sigmoid_twice_on_a_shard
sizes_of_the_image_before small_detections_filtered small_objects_lost_on_a_shard small_objects_unlabelled_on_a_shard
ten_of_an_image three_classes_written_twice truncated_objects_flagged_as_crowds two_classes_swapped_on_a_shard
width_stretched_on_a_shard x_times_the_height_of_the_image
"""

#: The same of small data.
_LEFT_OUT_OF_SMALL = """
a_part_is_missing a_part_joined_twice an_image_under_two_names areas_of_another_unit classes_at_random classes_nobody_found
classes_that_nobody_asked_for detections_as_fractions detections_at_another_size detections_at_the_shorter_side
detections_beyond_the_edge detections_by_centres detections_by_corners detections_by_corners_rows_first
detections_counted_from_one detections_in_a_padded_square detections_inverted detections_of_mirrored_images detections_twice
detections_with_axes_swapped detections_with_sides_swapped detections_without_a_side files_with_and_without_ending
ids_are_text images_turned_as_exif_says images_with_sides_swapped masks_of_others names_in_another_spelling
objects_as_fractions objects_beyond_the_edge objects_by_corners objects_flagged_as_crowds objects_inverted
objects_nearly_twice objects_twice other_images points_miscounted points_of_other_boxes scores_ahead_of_the_sigmoid
scores_in_percent_in_part scores_of_few_digits so_many_per_image some_ids_are_text
"""

_PARTS = dict.fromkeys(_OF_A_TENTH.split(), 0.1) | dict.fromkeys(_OF_A_FIFTH.split(), 0.2)


def cells():
    """Return by name of a cell what makes its data, and whether distributions are shown."""
    made = {name: (functools.partial(_planted, *of), False) for name, of in _scenes().items()}
    for kind in ("boxes", "masks", "poses"):
        made[f"small {kind}, clean"] = functools.partial(_small, _SEEDS[0], kind, None), True
    for turn, (_, name, _, kind, plant) in enumerate(planting.DEFECTS):
        if name in _LEFT_OUT_OF_SMALL.split():
            continue
        seed = _SEEDS[turn % len(_SEEDS)]
        made[f"small {kind}, {name}"] = functools.partial(_small, seed, kind, plant), turn % _SHOWN == 0
    return made


def _scenes():
    """Return by name the kind of a scene, a defect (None for a clean scene), and its share."""
    made = {f"{kind}, clean": (kind, None, 0.0) for kind in (*planting.KINDS, *planting.SHAPED_KINDS)}
    turns = [("", one) for one in planting.SCENE_DEFECTS] + planting.SHAPED_DEFECTS
    for turn, (kind, one) in enumerate(turns):
        if one.name in _LEFT_OUT.split():
            continue
        kinds = (
            [kind] if kind else [name for name, (_, _, classes, _) in planting.KINDS.items() if classes >= one.classes]
        )
        shares = [share for share in _SHARES if one.least <= share <= one.most] or [one.most]
        kind, share = kinds[turn % len(kinds)], shares[turn // 3 % len(shares)]
        made[f"{kind}, {share:.0%}, {one.name}"] = kind, one, share
    return made


@functools.cache
def _clean(kind, part):
    return planting.shaped(3, kind) if kind in planting.SHAPED_KINDS else planting.scene(3, kind, part)


@functools.cache
def _clean_small(seed, kind):
    return pickle.dumps(planting.clean(seed, kind))


def _small(seed, kind, plant):
    """Return a small data set with a defect, or a clean one."""
    data = pickle.loads(_clean_small(seed, kind))
    if plant is not None:
        plant(np.random.default_rng([seed, 1]), data)
    return data


def _planted(kind, defect, share):
    """Return the data of a scene with a defect."""
    scene = copy.deepcopy(_clean(kind, 1.0 if defect is None else _PARTS.get(defect.name, 1.0)))
    if defect is not None:
        defect.plant(np.random.default_rng([3, 1]), scene, share)
    return scene.data()


def said(make, shown):
    """Return a line for each finding of the data that `make` returns and, where it is `shown`, for each distribution."""
    data = make()
    with tempfile.TemporaryDirectory() as folder:
        documents = {"truth": data.truth, "found": data.found, "train": data.train}
        paths = {name: Path(folder, f"{name}.json") for name, content in documents.items() if content is not None}
        for name, path in paths.items():
            path.write_text(json.dumps(documents[name]))
        report = detmap.check(paths["truth"], paths.get("found"), train=paths.get("train"))
    lines = [report.subject]
    for one in report.findings:
        records = " ".join(map(str, one.records))
        lines.append(f"{one.severity} {one.code}, {one.count} {one.unit}: {one.says} [{one.named} {records}]")
    for one in report.figures if shown else ():
        numbers = " ".join(f"{value:.9g}" for value in (one.low, one.quarter, one.median, one.three_quarters, one.high))
        bars = " ".join(map(str, one.bars))
        lines.append(f"{one.name}, {one.count}: {numbers}; bars {bars} of {one.edges[0]:.9g} to {one.edges[-1]:.9g}")
    return lines
