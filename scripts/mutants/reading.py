"""Mutants of reading: numbers, strings, segmentations and lines."""

MUTANTS = [
    # -------------------------------------------------------------------------------------------------------- numbers
    (
        "numbers._plain_numbers",
        "if whole == 0 or (whole > 1 and word & BYTE == NOTHING):",
        "if whole == 0:",
        "poses_and_boundaries::what_is_no_number_is_found_among_plain_ones",
    ),
    (
        "numbers._plain_numbers",
        "if bit == 64 or digits == whole:",
        "if bit == 64:",
        "poses_and_boundaries::what_is_no_number_is_found_among_plain_ones",
    ),
    (
        "numbers._number",
        "wrong |= several & (_byte(data, begin) == 48)",
        "wrong |= False",
        "scanning::other_documents_are_not scanning::hostile_values",
    ),
    (
        "numbers._rounded",
        "if low <= U1 and -4 <= exponent <= 23 and fraction & U3 == U1 and fraction << shift == high:",
        "if False:",
        "scanning_numbers::hard_numbers scanning_numbers::halfway_between_two_doubles",
    ),
    (
        "numbers._rounded",
        "if fraction >= HIDDEN_2:",
        "if fraction > HIDDEN_2:",
        "scanning_numbers::hard_numbers scanning_numbers::powers_of_ten_and_two",
    ),
    (
        "numbers._nearest",
        "if mantissa < EXACT and -HIGHEST_DIVISOR <= exponent <= 0:",
        "if mantissa < EXACT and -HIGHEST_DIVISOR - 5 <= exponent <= 0:",
        "scanning_numbers::hard_numbers scanning_numbers::powers_of_ten_and_two",
    ),
    (
        "numbers._integer",
        "beyond = magnitude > LARGEST_INTEGER + np.uint64(negative)",
        "beyond = magnitude > LARGEST_INTEGER + U1",
        "scanning::hostile_values",
    ),
    # --------------------------------------------------------------------------------------------------- number_lists
    (
        "number_lists._alike",
        "if i < 0 or j < 0 or more != others or more == (count == size):",
        "if i < 0 or j < 0 or more != others:",
        "poses_and_boundaries::lists_of_one_length_are_read_side_by_side",
    ),
    (
        "number_lists._plain_pairs",
        "if other_whole == 0 or (other_whole > 1 and two & BYTE == NOTHING):",
        "if other_whole == 0:",
        "poses_and_boundaries::what_is_no_number_is_found_among_plain_ones",
    ),
    # --------------------------------------------------------------------------------------------------- mask_strings
    (
        "mask_strings._measured_slowly",
        "if k & 1 and length > 0:",
        "if k & 1:",
        "shapes::strings_with_empty_runs_are_measured_as_when_they_are_unpacked",
    ),
    (
        "mask_strings._step",
        "sign = np.int64(16) << (5 * more)",
        "sign = np.int64(16)",
        "shapes_strings::areas_and_boxes_of_strings_are_those_of_their_runs",
    ),
    (
        "mask_strings._four_columns",
        "begins = behind << U16 | line",
        "begins = behind << U16 | np.uint64(_BIAS)",
        "shapes_strings::areas_and_boxes_of_strings_are_those_of_their_runs",
    ),
    # -------------------------------------------------------------------------------------------------- segmentations
    (
        "segmentations._escaped",
        "return c if c == 92 else 1",
        "return c if c == 34 else 1",
        "masks_naive::a_backslash_is_a_character_of_strings",
    ),
    (
        "segmentations._read_lengths",
        "total += value",
        "total = value",
        "masks_naive::segmentations_of_a_file_are_those_of_the_twin",
    ),
    # --------------------------------------------------------------------------------------------------------- values
    (
        "values._string_end",
        "if paired != (0xDC00 <= unit < 0xE000) or unit > 0xFFFF:",
        "if paired != (0xDC00 <= unit <= 0xE000) or unit > 0xFFFF:",
        "scanning::halves_of_a_pair_come_in_pairs",
    ),
    (
        "values._value_end",
        "if depth == MAX_DEPTH:",
        "if depth == MAX_DEPTH + 1:",
        "scanning::plain_documents_are_understood scanning::other_documents_are_not",
    ),
    # ---------------------------------------------------------------------------------------------------------- texts
    (
        "texts._higher",
        "return (part >> shift) & BYTE > (other_part >> shift) & BYTE",
        "return (part >> shift) & BYTE < (other_part >> shift) & BYTE",
        "scanning_lines::documents_are_found_and_ranked",
    ),
    (
        "texts._higher",
        "return length > other_length",
        "return length >= other_length",
        "scanning_lines::strings_of_one_score_are_counted",
    ),
    (
        "texts.count_before",
        "begin = ends[sought.numbers[k] - 1] if sought.numbers[k] > 1 else first",
        "begin = ends[sought.numbers[k] - 1] if sought.numbers[k] > 2 else first",
        "scanning_lines::strings_of_one_score_are_counted",
    ),
    (
        "texts.split",
        "if end - begin > longest:",
        "if end - begin >= longest:",
        "scanning_lines::strings_between_zero_bytes",
    ),
    (
        "texts._same",
        "difference <<= np.uint64(64 - 8 * (length - k))",
        "difference <<= np.uint64(56 - 8 * (length - k))",
        "scanning_lines::a_string_is_compared_to_its_end_and_no_further",
    ),
    (
        "texts.keep",
        "last, copied = word, np.uint64((offset + end) << LENGTH_BITS | length)",
        "last, copied = word, np.uint64(end << LENGTH_BITS | length)",
        "sources_objects::the_kernel_keeps_strings_as_its_twin_does",
    ),
    # ---------------------------------------------------------------------------------------------------------- lines
    (
        "lines.scan_lines",
        "state[LONGER] += token > len(tokens)",
        "state[LONGER] += token >= len(tokens)",
        "scanning_lines::plain_runs retrieval_ids::text_after_the_name_is_counted",
    ),
    (
        "lines.scan_lines",
        "before = ids[at - U1] if kind == REPEATED and row > state[ROW] else ABSENT",
        "before = ids[at - U1] if kind == REPEATED and row >= state[ROW] else ABSENT",
        "scanning_lines::a_block_of_lines_does_not_look_at_the_row_before_it",
    ),
    # -------------------------------------------------------------------------------------------------------- records
    (
        "records._find_field",
        "if data[k] == 92:",
        "if data[k] == 93:",
        "scanning scanning_numbers scanning_ground_truth scanning_drawn scanning_blocks",
    ),
    (
        "records._leave_out",
        "if places[field, 0] == ID or places[field, 0] == LISTS:",
        "if places[field, 0] == ID:",
        "scanning scanning_numbers scanning_ground_truth scanning_drawn scanning_blocks shapes",
    ),
    (
        "records._scan_numbers",
        "return i + 1 if _byte(data, i) == 93 else -1",
        "return i + 1",
        "scanning scanning_numbers scanning_ground_truth scanning_drawn scanning_blocks",
    ),
    (
        "records._scan_value",
        "words[at] = np.uint64(c == 49 or c == 116)",
        "words[at] = np.uint64(c == 49)",
        "scanning scanning_numbers scanning_ground_truth scanning_drawn scanning_blocks",
    ),
    # ----------------------------------------------------------------------------------------------- elements of lists
    (
        "values.list_elements",
        "more = _byte(data, i) != 93",
        "more = True",
        "tracks::elements_of_lists",
    ),
    (
        "values.list_elements",
        "if total < len(out):",
        "if total < len(out) - 1:",
        "tracks::elements_of_lists",
    ),
    (
        "values.list_elements",
        "counts[row] = total - before",
        "counts[row] = total",
        "tracks::elements_of_lists",
    ),
    # --------------------------------------------------------------------------------- masks written like the one before
    (
        "segmentations._may_have_escapes",
        "while begin < end and not found:",
        "while begin + _AT_ONCE <= end and not found:",
        "tracks::escapes_that_make_another_mask",
    ),
    (
        "segmentations.read_segmentations",
        "if not (valid or same):",
        "if not valid:",
        "tracks::elements_of_lists tracks::unusual_results",
    ),
    (
        "segmentations.unescape",
        "if i != begin:",
        "if True:",
        "left_strings::a_column_gives_all_that_one_in_memory_gives",
    ),
]
