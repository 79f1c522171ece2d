"""Mutants of shapes: masks, polygons and poses."""

MUTANTS = [
    # ---------------------------------------------------------------------------------------------------------- masks
    (
        "masks._read_string",
        "outside = (value + (outside if m > at + 2 else 0)) & _WORD",
        "outside = (value + (outside if m > at else 0)) & _WORD",
        "masks::strings_by_hand",
    ),
    (
        "masks._number",
        "value |= -((c >> 4) & 1) << shift",
        "value |= -((c >> 4) & 1) << (shift - 5)",
        "masks_naive::any_string_is_read_as_pycocotools_reads_it",
    ),
    (
        "masks._number",
        "shift = (shift + 5) & 31",
        "shift = (shift + 5) & 63",
        "masks_naive::any_string_is_read_as_pycocotools_reads_it",
    ),
    (
        "masks._write_string",
        "while value > 15 or value < -16:",
        "while value > 16 or value < -16:",
        "masks::strings_by_hand",
    ),
    (
        "masks._write_string",
        "value = length - (before if m > first + 2 else 0)",
        "value = length - (before if m > first + 1 else 0)",
        "masks::strings_by_hand",
    ),
    (
        "masks._measure_slowly",
        "if start_column < last_column:",
        "if start_column <= last_column:",
        "masks_naive::outlines_by_hand",
    ),
    (
        "masks._measure_regular",
        "if bottom > height:  # a run goes on in the next column",
        "if bottom >= height:",
        "masks_naive::any_string_is_read_as_pycocotools_reads_it masks::every_function_on_random_masks",
    ),
    (
        "masks._measure_regular",
        "left = min(left, span[3])",
        "left = left + 0",
        "masks_naive::any_string_is_read_as_pycocotools_reads_it",
    ),
    (
        "masks._measure_regular",
        "least = min(least, min(length, gap))",
        "least = min(least, length)",
        "masks::masks_with_empty_runs masks_naive::any_string_is_read_as_pycocotools_reads_it",
    ),
    (
        "masks._intersection",
        "shared += max(inside, 0)",
        "shared += max(inside, 1)",
        "masks::every_function_on_random_masks",
    ),
    (
        "masks._iou_by_runs",
        "shared += step * (in_a and in_b)",
        "shared += step * (in_a or in_b)",
        "masks::masks_with_empty_runs",
    ),
    (
        "masks._unite",
        "if np.int64(new_start) > end:",
        "if np.int64(new_start) >= end:",
        "masks_naive::masks_of_few_runs_are_merged_run_by_run",
    ),
    (
        "masks._paint",
        "if low == high:",
        "if low + 1 == high:",
        "masks_naive::merged_strings_are_sets_of_pixels",
    ),
    (
        "masks._painted",
        "if position < total:",
        "if position <= total:",
        "masks_naive::merged_strings_are_sets_of_pixels",
    ),
    (
        "masks._words",
        "return words if words <= runs else np.int64(0)",
        "return words if words <= 0 else words - 1",
        "masks_naive::merged_strings_are_sets_of_pixels",
    ),
    # ----------------------------------------------------------------------------------------------------- boundaries
    (
        "boundaries.boundary_runs",
        "height, reach = span[2], 2 * distance + 1",
        "height, reach = span[2], 2 * distance",
        "masks::masks_and_naive_twins",
    ),
    (
        "boundaries._in_all",
        "rows[k] &= rows[k + (reach - common) * size]",
        "rows[k] &= rows[k]",
        "masks::masks_and_naive_twins poses_and_boundaries::boundaries_of_tall_masks",
    ),
    (
        "boundaries._set_bits",
        "for w in range(first + 1, last):",
        "for w in range(first + 2, last):",
        "poses_and_boundaries::boundaries_of_tall_masks",
    ),
    (
        "boundaries._add_rest",
        "row = (row | 63) + 1",
        "row = row + 64",
        "poses_and_boundaries::boundaries_of_tall_masks",
    ),
    # -------------------------------------------------------------------------------------------- compressed masks
    (
        "compressed_masks.boxes_of_strings",
        "if area and spans[i, 2] == 0:",
        "if spans[i, 2] == 0:",
        "masks_naive::masks_without_pixels_may_have_no_height",
    ),
    (
        "compressed_masks._find_changes",
        "differ |= words[np.uint64(k + j)] ^ alike",
        "differ = words[np.uint64(k + j)] ^ alike",
        "masks_naive::bitmaps_anywhere_in_memory_are_encoded masks_naive::room_is_made_for_runs_and_strings",
    ),
    (
        "compressed_masks._find_changes",
        "if pixels[p] != before:",
        "if pixels[p] > before:",
        "masks::every_function_on_random_masks",
    ),
    (
        "compressed_masks.strings_of_polygons",
        "out_stops[i] = 7 * (crossings + 1)",
        "out_stops[i] = crossings + 1",
        "masks_naive::a_zigzag_needs_more_room_than_is_made_at_first",
    ),
    # -------------------------------------------------------------------------------------------------------- bitmaps
    (
        "bitmaps._find_turns",
        "edges[0] = pixels[0, 0] != 0",
        "edges[0] = pixels[0, 0]",
        "masks_naive::bitmaps_of_any_width_become_runs",
    ),
    (
        "bitmaps._find_turns",
        "_changes(pixels[height - 1, : width - 1], pixels[0, 1:], edges[1:])",
        "_changes(pixels[height - 1, 1:], pixels[0, 1:], edges[1:])",
        "masks_naive::bitmaps_of_any_width_become_runs",
    ),
    (
        "bitmaps._changes",
        "out[np.uint64(c)] = min(above[np.uint64(c)], np.uint8(1)) ^ min(row[np.uint64(c)], np.uint8(1))",
        "out[np.uint64(c)] = min(above[np.uint64(c)] ^ row[np.uint64(c)], np.uint8(1))",
        "masks_naive::bitmaps_of_any_width_become_runs",
    ),
    # ------------------------------------------------------------------------------------------------------- outlines
    (
        "outlines._next_edge",
        "if t == len(segments) or segments[t, 0] != column + 1 or segments[t, 1] >= bottom:",
        "if t == len(segments) or segments[t, 0] != column + 1 or segments[t, 1] > bottom:",
        "masks_naive::outlines_draw_their_mask_again masks_naive::outlines_by_hand",
    ),
    (
        "outlines._next_edge",
        "if segments[t, 2] > bottom and below and segments[s + 1, 1] < segments[t, 2]:",
        "if segments[t, 2] > bottom and below and segments[s + 1, 1] <= segments[t, 2]:",
        "masks_naive::outlines_draw_their_mask_again masks_naive::outlines_by_hand",
    ),
    (
        "outlines._join_holes",
        "if area < 0:",
        "if area < -1:",
        "masks_naive::outlines_draw_their_mask_again masks_naive::outlines_by_hand",
    ),
    (
        "outlines._join_holes",
        "lowest = min(lowest, e)",
        "lowest = e",
        "masks_naive::outlines_by_hand",
    ),
    # ----------------------------------------------------------------------------------------------------- mask_pairs
    (
        "mask_pairs._unpack",
        "if m > at + 2:",
        "if m > at + 1:",
        "masks_naive::overlaps_of_pairs_are_those_of_sets_of_pixels",
    ),
    (
        "overlap._overlap",
        "inter = min(inter, min(area, truth.boxes[g, 4]))",
        "inter = min(inter, min(area, truth.boxes[g, 4])) - 1",
        "masks_naive::pairs_are_left_out_where_areas_are_too_small_for_the_lowest_overlap",
    ),
    (
        "mask_pairs.mask_overlaps",
        "if width <= 0.0 or height <= 0.0:",
        "if width <= 1.0 or height <= 0.0:",
        "masks_naive::overlaps_of_pairs_are_those_of_sets_of_pixels",
    ),
    (
        "mask_pairs.mask_overlaps",
        "out[i] = shared / (own if crowd[i] else own + ground_truth.areas[g] - shared)",
        "out[i] = shared / (own if crowd[i] else own + ground_truth.areas[g])",
        "masks_naive::overlaps_of_pairs_are_those_of_sets_of_pixels",
    ),
    # ------------------------------------------------------------------------------------------------------- polygons
    (
        "polygons._fifth",
        "return np.int32(5.0 * value + 0.5)  # towards zero, as in C",
        "return np.int32(np.floor(5.0 * value + 0.5))",
        "masks::polygons_are_drawn_alike",
    ),
    (
        "polygons._column",
        "return min(max(np.int32(np.floor((np.float64(fifth) + 2.5) * 0.2)), np.int32(0)), np.int32(min(width, _BEYOND)))",
        "return min(max(np.int32(np.floor((np.float64(fifth) + 3.5) * 0.2)), np.int32(0)), np.int32(min(width, _BEYOND)))",
        "masks::polygons_on_a_grid_are_drawn_alike",
    ),
    (
        "polygons._along",
        "ahead = centre - x + (slope < 0)",
        "ahead = centre - x",
        "masks::polygons_are_drawn_alike",
    ),
    (
        "polygons._down",
        "behind = (x + slope * t + 0.5 >= to + x + 0.5) == rising",
        "behind = (x + slope * t + 0.5 > to + x + 0.5) == rising",
        "masks::polygons_on_a_grid_are_drawn_alike",
    ),
    (
        "polygons._far_down",
        "while (new >= centre + 1.0) != rising:",
        "while (new >= centre) != rising:",
        "masks::polygons_around_the_exact_range_are_drawn_alike",
    ),
    (
        "polygons._row",
        "row = (fifth + 2.5) * 0.2",
        "row = (fifth + 3.5) * 0.2",
        "masks::polygons_are_drawn_alike",
    ),
    (
        "polygons._write_run",
        "if begin == behind:",
        "if begin == behind + 1:",
        "masks::polygons_are_drawn_alike",
    ),
    (
        "polygons._write_simple",
        "one, other = rows[np.uint64(c)], rows[np.uint64(2 * columns - 1 - c)]",
        "one, other = rows[np.uint64(c)], rows[np.uint64(columns + c)]",
        "masks::polygons_are_drawn_alike",
    ),
    (
        "polygons._sort_by_column",
        "while place >= starts[c] + gap and out[place - gap] > row:",
        "while place > starts[c] + gap and out[place - gap] > row:",
        "masks::polygons_are_drawn_alike",
    ),
    # ------------------------------------------------------------------------------------------------------ keypoints
    (
        "keypoints.exponents",
        "counts = np.int64(truth.values[g + _XYV * k + _V] > 0)",
        "counts = np.int64(truth.values[g + _XYV * k + _V] >= 0)",
        "masks_naive::likeness_of_poses_is_that_of_the_twin",
    ),
    (
        "keypoints.exponents",
        "area, variances = objects.areas[row] + _EPSILON, objects.variances[objects.first[row] :]",
        "area, variances = objects.areas[row], objects.variances[objects.first[row] :]",
        "masks_naive::likeness_of_poses_is_that_of_the_twin",
    ),
    (
        "keypoints._sum",
        "while k < count - count % 8:",
        "while k < count - 8 - count % 8:",
        "masks_naive::likeness_of_poses_is_that_of_the_twin",
    ),
    (
        "keypoints.extents",
        "labelled += v > 0",
        "labelled += v != 0",
        "masks_naive::extents_of_poses",
    ),
    (
        "keypoints._doubled",
        "return min(near - size, near + size * 2), max(near - size, near + size * 2)",
        "return min(near - size, near + size), max(near - size, near + size)",
        "poses_and_boundaries::without_visible_points_a_box_as_long_again_on_both_sides_is_within_reach",
    ),
    (
        "keypoints.reaches",
        "widest = max(widest, objects.variances[objects.first[i] + k])",
        "widest = objects.variances[objects.first[i] + k]",
        "poses_and_boundaries::the_point_that_may_be_farthest_says_how_far_an_object_reaches",
    ),
]
