"""Mutants of rankings: sorting, ties, ranks of hits, hashes and codes."""

MUTANTS = [
    # -------------------------------------------------------------------------------------------------------- sorting
    (
        "sorting._descending_key",
        "if bits & sign and magnitude:",
        "if bits & sign:",
        "kernels_sorting::sort_of_sizes_around_the_switch kernels_sorting::sort_rows",
    ),
    (
        "sorting._descending_key",
        "if magnitude > np.uint64(0x7FF0000000000000):",
        "if magnitude >= np.uint64(0x7FF0000000000000):",
        "kernels_sorting::sort_of_sizes_around_the_switch kernels_sorting::sort_rows",
    ),
    (
        "sorting._by_insertion",
        "while j > 0 and keys[j - 1] > key:",
        "while j > 0 and keys[j - 1] >= key:",
        "kernels_sorting::sort_of_sizes_around_the_switch",
    ),
    (
        "sorting._by_insertion",
        "if limit < 0:",
        "if limit <= 0:",
        "kernels_sorting::an_insertion_sort_that_takes_too_long_gives_up",
    ),
    (
        "sorting._sort",
        "_by_bytes(rows, first, size, differing, np.int64(0), spare, counts)",
        "_by_bytes(rows, first, size, differing, np.int64(1), spare, counts)",
        "kernels_sorting::sort_of_scores_that_share_the_upper_half_of_their_bits",
    ),
    (
        "sorting.arrange_cells",
        "in_order &= keys[i - 1] <= keys[i]",
        "in_order &= keys[i - 1] >= keys[i]",
        "kernels_sorting::rows_of_one_category_by_falling_score",
    ),
    (
        "sorting.arrange_cells",
        "last, rank = -1, 0",
        "last, rank = 0, 0",
        "kernels_sorting::arrange_cells",
    ),
    (
        "sorting.join",
        "elif left_group[i] < right_group[j] or (left_group[i] == right_group[j] and left_key[i] < right_key[j]):",
        "elif left_group[i] < right_group[j] or left_key[i] < right_key[j]:",
        "kernels_sorting::join",
    ),
    # -------------------------------------------------------------------------------------------------------- ranking
    (
        "ranking._sort_by_value",
        "if i < middle and (j >= high or values[order[i]] <= values[order[j]]):",
        "if i < middle and (j >= high or values[order[i]] < values[order[j]]):",
        "retrieval_examples::equal_distances_rank_by_index",
    ),
    (
        "ranking._search_for_each",
        "if j < groups.bounds[low + 1] and mine[order[j]] == first + i:",
        "if j < groups.bounds[low + 1] and mine[order[j]] == i:",
        "retrieval_kernels::places_of_relevant_items_equal_sorting",
    ),
    (
        "ranking._fill",
        "starts[b + 1] += starts[b]",
        "starts[b + 1] += 0 * starts[b]",
        "retrieval_kernels::places_of_relevant_items_equal_sorting",
    ),
    (
        "ranking._place",
        "if steps[middle] < x:",
        "if steps[middle] <= x:",
        "retrieval_galleries::many_relevant_items_take_the_other_path",
    ),
    (
        "ranking._take_out",
        "if mine[order[j]] > junk[t]:",
        "if mine[order[j]] < junk[t]:",
        "retrieval_galleries::market_protocol_equals_twin",
    ),
    (
        "ranking._count_for_each",
        "nearer[g] -= nearer[g - 1] + equal[g - 1]",
        "nearer[g] -= nearer[g - 1]",
        "retrieval_galleries::market_protocol_equals_twin",
    ),
    (
        "ranking._write_hits",
        "out.radius[q, d, 0] = total",
        "out.radius[q, d, 0] = ahead[d]",
        "retrieval_examples::hashing_within_a_radius",
    ),
    (
        "ranking._write_hits",
        "out.ranks[at] = ahead[d] + (hit >> shift) + 1",
        "out.ranks[at] = ahead[d] + (hit >> shift)",
        "retrieval_examples::hashing",
    ),
    (
        "ranking._alike",
        "count = np.uint8(count + np.uint8((strip[i] == d) & (_PLACES[i] < end)))",
        "count = np.uint8(count + np.uint8((strip[i] == d) & (_PLACES[i] <= end)))",
        "retrieval_codes::every_hit_is_counted_as_by_sorting",
    ),
    (
        "ranking._stream_many",
        "if relevant[np.uint64(j)] >= first + size:",
        "if relevant[np.uint64(j)] > first + size:",
        "retrieval_codes::every_hit_is_counted_as_by_sorting",
    ),
    (
        "ranking.rank_samples",
        "while upto > 0 and negative[upto - 1] > x:",
        "while upto > 0 and negative[upto - 1] >= x:",
        "retrieval_samples::exact_values",
    ),
    (
        "ranking.tally_intervals",
        "if g < steps.size and steps[g] == row[at]:",
        "if g < steps.size and steps[g] < row[at]:",
        "retrieval_galleries::true_positive_rates_equal_fast_reid",
    ),
    # ----------------------------------------------------------------------------------------------------------- ties
    (
        "ties._group_end",
        "while end < stop and ahead[end] == ahead[j]:",
        "while end < stop and ahead[end] >= ahead[j]:",
        "retrieval_galleries::collapsed_equals_twin",
    ),
    (
        "ties.break_ties",
        "out_ranks[i] = 2 * ahead[j] + tied[j] + 1 - ranks[source]",
        "out_ranks[i] = 2 * ahead[j] + tied[j] - ranks[source]",
        "retrieval_galleries::market_protocol_equals_twin",
    ),
    (
        "ties.collapsed_average_precision",
        "value = (value + ((j - starts[q]) / ahead[j] if ahead[j] else 1.0)) / 2",
        "value = (value + ((j - starts[q]) / ahead[j] if ahead[j] else 0.0)) / 2",
        "retrieval_galleries::collapsed_equals_twin",
    ),
    (
        "ties.expected_average_precision",
        "share = (hits - 1) / (n - 1) if n > 1 else 0.0",
        "share = hits / n if n > 1 else 0.0",
        "retrieval_examples::hashing",
    ),
    (
        "ties.expected_average_precision",
        "n, hits, inside = tied[j], stop - j, min(tied[j], depth[q] - ahead[j])",
        "n, hits, inside = tied[j], stop - j, min(tied[j], depth[q] - ahead[j] + 1)",
        "retrieval_examples::hashing",
    ),
    (
        "ties._group_mean",
        "return hits / places * (alone + ((hits - 1) / (places - 1) * gained if places > 1 else 0.0))",
        "return hits / places * (alone + (hits / places * gained if places > 1 else 0.0))",
        "retrieval_galleries::expected_is_the_mean_over_all_orders_and_the_band_their_extremes",
    ),
    (
        "ties.tie_band",
        "for x in range(1, fewest + 1):",
        "for x in range(1, fewest):",
        "retrieval_galleries::expected_is_the_mean_over_all_orders_and_the_band_their_extremes",
    ),
    (
        "ties.expected_first",
        "for i in range(1, min(n - r + 1, depth - s) + 1):",
        "for i in range(1, min(n - r + 1, depth - s)):",
        "retrieval_galleries::expected_is_the_mean_over_all_orders_and_the_band_their_extremes",
    ),
    # ------------------------------------------------------------------------------------------------------------ cmc
    (
        "cmc._expect",
        "share = ahead[p] / size[p]",
        "share = ahead[p] / (size[p] + 1)",
        "retrieval_galleries::cmc_variants_equal_twins retrieval_galleries::cuhk03_worked_by_hand",
    ),
    # -------------------------------------------------------------------------------------------------------- hashing
    (
        "hashing._unsigned",
        "return np.uint64(0) if word == np.uint64(0x8000000000000000) else word",
        "return word",
        "retrieval_duplicates::the_hash_of_a_row_knows_only_its_values",
    ),
    # -------------------------------------------------------------------------------------------------------- packing
    (
        "packing.pack_bytes",
        "same |= np.uint64(value != 1 and value != 255)",
        "same |= np.uint64(value != 1 and value < 254)",
        "retrieval_codes::codes_are_told_and_packed_alike_in_one_part_and_in_many",
    ),
]
