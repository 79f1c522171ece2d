"""Mutants of panoptic segmentation: deflate, filters of PNG files, counts of pairs, and matches."""

_TWIN = "panoptic_quality::it_equals_the_naive_twin"
_FILTERS = "kernels_label_maps::every_filter_and_compression_gives_the_same_ids"
_ZLIB = "kernels_label_maps::what_zlib_has_compressed_is_inflated"

MUTANTS = [
    # -------------------------------------------------------------------------------------------------------- inflate
    (
        "inflate._long_symbol",
        "first = (first + count) << 1",
        "first = first + count << 2",
        "kernels_label_maps::long_codes",
    ),
    (
        "inflate._block",
        "if distance > i:",
        "if distance > i + 1:",
        "kernels_label_maps::a_copy_from_before_the_beginning",
    ),
    ("inflate._block", "if i + length > end:", "if i + length >= end:", _ZLIB),
    (
        "inflate._copy",
        "elif distance >= 8:",
        "elif distance >= 7:",
        "kernels_label_maps::every_distance_and_length_of_copies",
    ),
    (
        "inflate._copy",
        "elif distance >= _AT_ONCE:",
        "elif distance >= _AT_ONCE - 1:",
        "kernels_label_maps::every_distance_and_length_of_copies",
    ),
    (
        "inflate._fixed",
        "codes.lengths[k] = 8 if k < 144 or k >= 280 else 9 if k < 256 else 7",
        "codes.lengths[k] = 8 if k < 144 or k >= 281 else 9 if k < 256 else 7",
        _ZLIB,
    ),
    # ------------------------------------------------------------------------------------------------------------ png
    (
        "png._nearest",
        "value = a if of_a <= of_b and of_a <= of_c else b if of_b <= of_c else c",
        "value = a if of_a <= of_b and of_a <= of_c else b if of_b < of_c else c",
        "kernels_label_maps::each_filter_of_noise",
    ),
    (
        "png._nearest",
        "of_a, of_b, of_c = abs(b - c), abs(a - c), abs(a + b - 2 * c)",
        "of_a, of_b, of_c = abs(b - c), abs(a - c), abs(a + b - c)",
        "kernels_label_maps::each_filter_of_noise",
    ),
    ("png._expected", "return left if upper == corner else _nearest(left, upper, corner)", "return left", _FILTERS),
    ("png._unfilter", "if kind <= LEFT:", "if kind <= UPPER:", _FILTERS),
    ("png._unfilter", "left, corner = value, upper", "left, corner = value, corner", _FILTERS),
    (
        "png._unfilter",
        "if kind > NEAREST:",
        "if kind > NEAREST + 1:",
        "kernels_label_maps::what_is_no_label_map_is_told_in_one_line",
    ),
    ("png._unfilter", "if clear < x:", "if clear < x - 1:", _FILTERS),
    (
        "png._decode",
        "moved = max(min(begin, i - HISTORY), 0)",
        "moved = max(min(begin, i - HISTORY // 2), 0)",
        "kernels_label_maps::maps_larger_than_the_window",
    ),
    (
        "png._zeros",
        "return min(i + (_lowest_bit(word) >> 3), end)",
        "return min(i + (_lowest_bit(word) >> 2), end)",
        _FILTERS,
    ),
    # ------------------------------------------------------------------------------------------------------- panoptic
    (
        "panoptic._place",
        "return low if low < len(ids) and np.int64(ids[low]) == wanted else -1",
        "return low if low < len(ids) else -1",
        "panoptic_quality::an_id_that_is_not_listed_is_no_other_segment",
    ),
    (
        "panoptic._row",
        "if seen[slot] != value:",
        "if seen[slot] == -1:",
        "kernels_label_maps::ids_that_share_a_slot_of_the_table_of_recent_ids",
    ),
    ("panoptic._count_pairs", "shared = min(end, own_end)", "shared = end", _TWIN),
    ("panoptic._match", "if iou > 0.5:", "if iou >= 0.5:", "panoptic_quality::worked_examples"),
    (
        "panoptic._match",
        "union = np.float64(areas[p]) + area - np.float64(shared) - np.float64(counts[0, p + 1])",
        "union = np.float64(areas[p]) + area - np.float64(shared)",
        _TWIN,
    ),
    (
        "panoptic._match",
        "if truth.last[own + g] and truth.category[own + g] == found.category[other + p]:",
        "if truth.crowd[own + g] and truth.category[own + g] == found.category[other + p]:",
        "panoptic_quality::worked_examples",
    ),
    (
        "panoptic._match",
        "out.found[other + p] = IGNORED if np.float64(left_out) / np.float64(areas[p]) > 0.5 else MISSED",
        "out.found[other + p] = IGNORED if np.float64(left_out) / np.float64(areas[p]) >= 0.5 else MISSED",
        "panoptic_quality::worked_examples",
    ),
    (
        "panoptic._match",
        "if union == 0.0:",
        "if union == 1.0:",
        "panoptic_quality::what_cannot_be_scored_is_told_in_one_line",
    ),
]
