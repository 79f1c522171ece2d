"""Compressed masks of files: measured eight characters at a time, and read by their likeness to the record before."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_masks import string_of
from support import examples

import detmap
from detmap.masks import Masks


def outline(rng, height, width):
    """Run lengths of a mask whose columns have one run, mostly, of a length near that of the column before."""
    lengths, behind = [], 0
    top, size = int(rng.integers(0, height)), int(rng.integers(1, height + 1))
    first, count = int(rng.integers(0, width)), int(rng.integers(1, width + 1))
    step = int(rng.choice([1, 4, 20, height]))
    for column in range(first, min(first + count, width)):
        top = int(np.clip(top + rng.integers(-step, step + 1), 0, height - 1))
        size = int(np.clip(size + rng.integers(-step, step + 1), 1, height - top))
        runs = [(top, top + size)]
        if rng.random() < 0.1 and size > 4:
            cut = int(rng.integers(1, size - 2))
            runs = [(top, top + cut), (top + cut + 1, top + size)]
        for begin, end in runs:
            begin, end = column * height + begin, column * height + end
            if lengths and begin == behind:  # goes on from the column before
                lengths[-1] += end - begin
            else:
                lengths += [begin - behind, end - begin]
            behind = end
    return [*lengths, height * width - behind] if behind < height * width else lengths


def measured(lengths, height):
    """Area and box of a mask from its run lengths."""
    ends = np.cumsum(lengths)
    pixels = np.concatenate([np.arange(end - n, end) for end, n in zip(ends[1::2], lengths[1::2], strict=False)])
    columns, rows = np.divmod(pixels, height)
    left, top = int(columns.min()), int(rows.min())
    return pixels.size, [left, top, int(columns.max()) - left + 1, int(rows.max()) - top + 1]


def read(counts, size):
    """What the reader of files makes of masks of one size."""
    shapes = [{"size": size, "counts": one} for one in counts]
    records = [{"image_id": 1, "category_id": 1, "score": 1, "segmentation": shape} for shape in shapes]
    return detmap.read_coco_results(records, iou_type="segm").shapes["segm"]


#: Heights of images: up to the tallest of which four columns are read at once, and those beyond.
HEIGHTS = (1, 7, 30, 200, 2046, 2047, 2048, 2060, 40_000)


@settings(max_examples=examples(250), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(HEIGHTS), st.integers(1, 40))
def test_areas_and_boxes_of_strings_are_those_of_their_runs(seed, height, width):
    """Of columns with one run or several, and with numbers of one character or more, up to the tallest read at once."""
    rng = np.random.default_rng(seed)
    runs = [outline(rng, height, width) for _ in range(4)]
    column = read([string_of(lengths) for lengths in runs], [height, width])
    expected = [measured(lengths, height) for lengths in runs]
    assert column.areas().tolist() == [area for area, _ in expected]
    assert column.bounds().table.tolist() == [box for _, box in expected]
    assert column.held.regular.all()
    ends = column.unpacked().held
    for row, lengths in enumerate(runs):
        assert ends.ends[ends.spans[row, 0] : ends.spans[row, 1]].tolist() == np.cumsum(lengths).tolist()


@settings(max_examples=examples(250), deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(20, 60))
def test_a_string_with_a_wrong_character_is_a_mask_or_an_error(seed, height):
    """Wherever it stands: what `Masks.from_rle` takes, the reader of files takes, and nothing else."""
    rng = np.random.default_rng(seed)
    counts = string_of(outline(rng, height, 40))
    at = int(rng.integers(0, len(counts)))
    wrong = counts[:at] + chr(int(rng.choice([*range(48, 112), 47, 46, 33, 112, 126, 127, 233]))) + counts[at + 1 :]
    try:
        expected = Masks.from_rle([{"size": [height, 40], "counts": wrong}])
    except detmap.InputError:
        with pytest.raises(detmap.InputError):
            read([wrong], [height, 40])
    else:
        column = read([wrong], [height, 40])
        assert column.masks().to_rle() == expected.to_rle()
        assert column.areas().tolist() == expected.areas().tolist()
        assert column.bounds().table.tolist() == np.where(expected.areas()[:, None] > 0, expected.boxes(), 0).tolist()


GOOD = '{"size": [4, 11], "counts": "\\\\1"}'


@pytest.mark.parametrize(
    "segmentation",
    [
        GOOD,
        '{"counts": "\\u005c1", "size": [4, 11]}',
        '{"size": [4, 11], "counts": "\\\\1", "more": {"a": [1, "}"]}}',
        '{"size": [4, 11], "counts": "\\\\1", "more": "}"}',
        '{"size": [4, 11] "counts": "\\\\1"}',
        '{"size": [4, 11], "counts": "\\\\1" "more": 1}',
        '{"size": [4, 11], "counts": "\\\\1", "more": 01}',
        '{"size": [4, 11], "counts": "\\\\1}',
        '{"size": [4, 11], "counts": "\\\\1", more}',
        '{"size": [4, 11], "counts": "\\\\1",}',
        '{"size": [4, 11], "counts": "\\u005g1"}',
        '{"size": [4, 11], "counts": "\\\\1}"}',
        '{"size": [4, 11], "counts": "\\q1"}',
        '{"size": [4, 11], "counts": "\\"1"}',
        '{"size": [4, 11], "counts": "\t1"}',
        '{"size": [4, 11], "counts": "{"}',
        '{"size": [4, 11], "counts": 1}',
        "{}",
    ],
)
def test_what_stands_between_braces_is_json_or_an_error(segmentation, tmp_path, monkeypatch):
    """Behind a mask like it, which it is compared with, and alone: the outcome, or the error, is the parser's."""

    def outcome(worth):
        monkeypatch.setattr("detmap.formats.coco.read._WORTH_SCANNING", worth)
        try:
            column = detmap.read_coco_results(path, iou_type="segm").shapes["segm"]
        except detmap.InputError as error:
            return str(error)
        return column.masks().to_rle(), column.areas().tolist(), column.bounds().table.tolist()

    path = tmp_path / "file.json"
    for before in ([], [GOOD], [GOOD, GOOD]):
        shapes = [*before, segmentation, GOOD]
        records = [f'{{"image_id": 1, "category_id": 1, "score": 0.5, "segmentation": {one}}}' for one in shapes]
        path.write_text(f"[{', '.join(records)}]")
        scanned = outcome(0)
        assert scanned == outcome(1 << 60)
        if segmentation == GOOD:
            assert json.loads(json.dumps(scanned[0])) == [{"size": [4, 11], "counts": "\\1"}] * len(shapes)


def test_a_mask_has_its_own_size_even_where_only_that_differs(tmp_path, monkeypatch):
    """Ahead of the string or behind it, in as many characters as in the record before."""
    monkeypatch.setattr("detmap.formats.coco.read._WORTH_SCANNING", 0)
    masks = [([4, 11], "\\1"), ([2, 22], "\\1"), ([2, 22], "\\1"), ([4, 11], "44T1")]
    for spelling in ('{{"size": {size}, "counts": {counts}}}', '{{"counts": {counts}, "size": {size}}}'):
        shapes = [spelling.format(size=size, counts=json.dumps(counts)) for size, counts in masks]
        records = [f'{{"image_id": 1, "category_id": 1, "score": 0.5, "segmentation": {one}}}' for one in shapes]
        path = tmp_path / "file.json"
        path.write_text(f"[{', '.join(records)}]")
        column = detmap.read_coco_results(path, iou_type="segm").shapes["segm"]
        assert column.masks().to_rle() == [{"size": size, "counts": counts} for size, counts in masks]
        assert column.areas().tolist() == [0, 0, 0, 4]


@pytest.mark.parametrize("extra", ["", ', "note": "a{b{"', ', "more": {"a": [{"b": 1}]}'])
def test_masks_of_many_blocks_are_those_of_the_parser(extra, tmp_path, monkeypatch):
    """Rows are written where they stay, or moved there where braces that begin no record left room between blocks."""
    rng = np.random.default_rng(5)
    records = []
    for k in range(90):
        mask = {"size": [30, 20], "counts": string_of(outline(rng, 30, 20))}
        shape = [[1, 1, 9.5, 1, 9, 8.25]] if k % 7 == 3 else mask
        text = json.dumps({"image_id": k % 5 + 1, "category_id": 1, "score": k / 100, "segmentation": shape})
        records.append(text[:-1] + (extra if k % 3 == 0 else "") + "}")
    path = tmp_path / "file.json"
    path.write_text(f"[{', '.join(records)}]")
    images = [{"id": k, "height": 30, "width": 20 + (k == 2)} for k in (5, 4, 3, 2, 1)]
    truth = detmap.read_coco(
        {"images": images, "categories": [{"id": 1, "name": "a"}], "annotations": []}, iou_type="segm"
    )
    monkeypatch.setattr("detmap.reading.documents.BLOCK", 700)

    def read_all(worth):
        monkeypatch.setattr("detmap.formats.coco.read._WORTH_SCANNING", worth)
        table = detmap.read_coco_results(path, truth, iou_type="segm")
        column = table.shapes["segm"]
        ids = table.images.ids[table.images.codes].tolist()
        return column.masks().to_rle(), column.areas().tolist(), column.bounds().table.tolist(), ids, table.notices

    assert read_all(0) == read_all(1 << 60)
