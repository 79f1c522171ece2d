"""Mutants of overlap and matching: which detections hit which objects."""

MUTANTS = [
    # ------------------------------------------------------------------------------------------------------- matching
    (
        "matching.mark_misses",
        "outside |= np.uint64((value < ranges.limits[a, 0]) | (value > ranges.limits[a, 1])) * bits[a, w]",
        "outside |= np.uint64((value < ranges.limits[a, 0]) | (value >= ranges.limits[a, 1])) * bits[a, w]",
        "kernels_matching::the_ends_of_an_area_range_belong_to_it",
    ),
    (
        "matching._worse",
        "candidates.iou[a] == candidates.iou[b] and candidates.ground_truth[a] < candidates.ground_truth[b]",
        "candidates.iou[a] == candidates.iou[b] and candidates.ground_truth[a] > candidates.ground_truth[b]",
        "kernels_matching::many_candidates_are_offered_from_the_best_down",
    ),
    (
        "matching._rise",
        "if not _worse(candidates, rising[root], rising[child]):",
        "if _worse(candidates, rising[root], rising[child]):",
        "kernels_matching::many_candidates_are_offered_from_the_best_down",
    ),
    (
        "matching._rise",
        "if child + 1 < size and _worse(candidates, rising[child], rising[child + 1]):",
        "if child + 1 < size and _worse(candidates, rising[child + 1], rising[child]):",
        "kernels_matching::many_candidates_are_offered_from_the_best_down",
    ),
    (
        "matching._threshold_bits",
        "row = bit % thresholds if thresholds <= 64 else bit & 63",
        "row = bit % thresholds if thresholds <= 64 else bit % 63",
        "coco_equality::many_thresholds_and_areas_need_several_words statistics::more_than_64_thresholds",
    ),
    (
        "matching._range_bits",
        "for bit in range(a * thresholds, (a + 1) * thresholds):",
        "for bit in range(a * thresholds + 1, (a + 1) * thresholds):",
        "kernels_matching::match_by_the_best_that_is_free",
    ),
    (
        "matching._best_of",
        "if candidates.iou[i] == candidates.iou[found] and earlier:",
        "if candidates.iou[i] == candidates.iou[found] and not earlier:",
        "voc::the_first_of_equal_overlaps kernels_matching::match_by_the_best_alone",
    ),
    (
        "matching.match",
        "if not candidates.iou[i] < thresholds[t]:",
        "if candidates.iou[i] > thresholds[t]:",
        "voc::an_overlap_that_equals_the_threshold",
    ),
    (
        "matching._free",
        "if objects.ignored[start + g] or value < ranges.limits[a, 0] or value > ranges.limits[a, 1]:",
        "if objects.ignored[start + g] or value <= ranges.limits[a, 0] or value > ranges.limits[a, 1]:",
        "kernels_matching::the_ends_of_an_area_range_belong_to_it",
    ),
    (
        "matching.match",
        "if not (objects.crowd[start + g] or (levels.only_best and not real)):",
        "if not objects.crowd[start + g]:",
        "voc::what_a_difficult_object_does kernels_matching::match_by_the_best_alone",
    ),
    (
        "matching.match",
        "offered = ~outside[g, w] if real else outside[g, w]",
        "offered = ~outside[g, w] if real else ~outside[g, w]",
        "kernels_matching::match_by_the_best_that_is_free",
    ),
    (
        "matching.match",
        "out.ignored[d, w] &= ~done",
        "out.ignored[d, w] &= ~passed",
        "kernels_matching::the_ends_of_an_area_range_belong_to_it",
    ),
    (
        "matching.match",
        "for j in range(count - 1, -1, -1):",
        "for j in range(count - 1, 0, -1):",
        "kernels_matching::match_by_the_best_that_is_free",
    ),
    (
        "matching.match",
        "skip = 64 * w if thresholds.shape[0] > 64 else 0",
        "skip = 0",
        "statistics::more_than_64_thresholds coco_equality::many_thresholds_and_areas_need_several_words",
    ),
    (
        "matching.count_bits",
        "rest, bit = words[row, w], 64 * w",
        "rest, bit = words[row, w], 63 * w",
        "kernels_matching::count_bits",
    ),
    (
        "matching.collect_hits",
        "if ranks[d] >= caps[m]:",
        "if ranks[d] > caps[m]:",
        "kernels_matching::collect_hits",
    ),
    (
        "matching.collect_hits",
        "within += np.uint64(ranks[d] < caps[m])",
        "within += np.uint64(ranks[d] <= caps[m])",
        "kernels_matching::collect_hits",
    ),
    (
        "matching._items",
        "for m in range(pair // thresholds + 1):",
        "for m in range(pair // thresholds):",
        "kernels_matching::collect_hits",
    ),
    # -------------------------------------------------------------------------------------------------------- overlap
    (
        "overlap._corners",
        "return x, y, p, q, (p - x + boxes.pixel) * (q - y + boxes.pixel)",
        "return x, y, p, q, (p - x) * (q - y)",
        "kernels_overlap::box_areas",
    ),
    (
        "overlap._compare_all",
        "if value >= least[0] or (bounds and np.isnan(value)):  # of an unknown area nothing is known",
        "if value > least[0] or (bounds and np.isnan(value)):",
        "kernels_overlap::swept_cells kernels_overlap::box_candidates",
    ),
    (
        "overlap.box_candidates",
        "hopeless = lowest * (1.0 - 1e-6) if lowest > 1e-300 else 0.0",
        "hopeless = lowest * (1.0 + 1e-6) if lowest > 1e-300 else 0.0",
        "kernels_overlap::swept_cells",
    ),
    (
        "overlap._swept",
        "if right[active[i], 2] - x1 + pixel > 0.0:  # else no later detection meets it either",
        "if right[active[i], 2] - x1 > 0.0:",
        "kernels_overlap::pixels_that_touch_only_when_inclusive",
    ),
    (
        "overlap._swept",
        "while beyond < objects and not x2 - right[beyond, 0] + pixel <= 0.0:",
        "while beyond < objects and not x2 - right[beyond, 0] <= 0.0:",
        "kernels_overlap::pixels_that_touch_only_when_inclusive kernels_overlap::candidates_of_corners",
    ),
    (
        "overlap.box_candidates",
        "sweep = objects >= 8 and count * objects >= 512 and lowest > 0.0",
        "sweep = objects >= 8 and count * objects >= 512 and lowest >= 0.0",
        "kernels_overlap::swept_cells",
    ),
    (
        "overlap._overlap",
        "return inter / (area if truth.weights[g] == 0.0 else area + truth.boxes[g, 4] - inter)",
        "return inter / (area if truth.weights[g] == 1.0 else area + truth.boxes[g, 4] - inter)",
        "kernels_overlap::swept_cells",
    ),
    (
        "overlap._sort_by_left",
        "if keys[root] >= keys[child]:",
        "if keys[root] <= keys[child]:",
        "kernels_overlap::swept_cells",
    ),
    (
        "overlap.candidates",
        "names[:used], overlaps[:used] = found.ground_truth[:used], found.iou[:used]",
        "names[:used], overlaps[:used] = found.ground_truth[:used], found.iou[used : 2 * used]",
        "kernels_overlap::swept_cells",
    ),
    # ---------------------------------------------------------------------------------------------------------- pairs
    (
        "pairs._better",
        "return (candidates.ground_truth[a] < candidates.ground_truth[b]) == first",
        "return (candidates.ground_truth[a] < candidates.ground_truth[b]) != first",
        "matches",
    ),
    (
        "pairs.assign",
        "if candidates.iou[i] < rule.overlap or (grouped and objects.group[g]):",
        "if candidates.iou[i] <= rule.overlap or (grouped and objects.group[g]):",
        "matches",
    ),
    (
        "pairs.assign",
        "elif objects.ignored[g]:",
        "elif not objects.ignored[g]:",
        "matches::a_real_object_is_preferred_to_one_that_is_ignored",
    ),
    (
        "pairs.nearest",
        "if objects.ignored[g] or candidates.iou[i] < search.floor:",
        "if objects.ignored[g] or candidates.iou[i] <= search.floor:",
        "matches",
    ),
    # ----------------------------------------------------------------------------------------------------- assignment
    (
        "assignment.assign",
        "best, chosen = min(thresholds[t], 1 - 1e-10), -1",
        "best, chosen = thresholds[t], -1",
        "kernels_matching::assignment_by_hand",
    ),
    (
        "assignment.assign",
        "if ious[d, g] < best:",
        "if ious[d, g] <= best:",
        "kernels_matching::assignment_by_hand",
    ),
    (
        "assignment.assign",
        "if taker >= 0 and keeps[taker] and not crowd[g]:",
        "if taker > 0 and keeps[taker] and not crowd[g]:",
        "kernels_matching::assignment_by_hand",
    ),
]
