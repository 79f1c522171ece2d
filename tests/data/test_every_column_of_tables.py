"""All columns of tables of ground truth and detections, what is said of them, and what a notebook shows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import detmap
from detmap import columns
from detmap.data import benchmarks, display, ids, notices
from detmap.data.crowding import crowd_index_column
from detmap.data.segments import LabelMap, check_id
from detmap.errors import InputError, OptionError


def said(call, *given, **more):
    with pytest.raises((InputError, OptionError)) as caught:
        call(*given, **more)
    return str(caught.value)


COLUMNS = {
    "image_ids": [7, 5, 5, 9], "category_ids": ["b", "a", "b", "c"],
    "boxes": [[0, 0, 2, 3], [1, 1, -1, 4], [5, 5, 0, 1], [2, 2, 3, 3]],
    "areas": [6, 1, 2.5, 9], "crowd": [0, 1, 0, 0], "difficult": [0, 0, 1, 0], "zero_ids": [1, 0, 0, 1],
    "group_of": [0, 0, 0, 1], "images": [9, 5, 7, 3], "categories": ["c", "b", "a", "z"],
    "category_names": {"a": "Ant", "z": 7}, "invalid_boxes": "drop", "image_sizes": [[9, 90], [5, 50], [7, 70], [3, 30]],
    "crowd_index": {5: 0.5, 3: np.float32(0.25)}, "part_flags": {"foot_valid": [1, 0, 1, 0]},
    "fields": {"level": [1, None, 3, True], "other": np.array([1, 2, None, 4], object)}, "notices": {"dropped_boxes": 2},
    "source": "s",
}  # fmt: skip


def test_every_column_of_ground_truth():
    table = detmap.GroundTruth.from_arrays(**COLUMNS)
    assert table.images.ids.tolist() == [3, 5, 7, 9]
    assert table.images.codes.tolist() == [2, 1, 3]
    assert table.images.sizes.tolist() == [[3, 30], [5, 50], [7, 70], [9, 90]]
    assert table.images.heights.tolist() == [3, 5, 7, 9]
    assert table.images.widths.tolist() == [30, 50, 70, 90]
    assert table.images.order.tolist() == [3, 1, 2, 0]
    assert np.array_equal(table.images.crowd_index, [0.25, 0.5, np.nan, np.nan], equal_nan=True)
    assert table.categories.ids.tolist() == ["a", "b", "c", "z"]
    assert table.categories.codes.tolist() == [1, 1, 2]
    assert table.categories.names == ("Ant", "b", "c", "7")
    assert table.boxes.tolist() == [[0, 0, 2, 3], [5, 5, 0, 1], [2, 2, 3, 3]]
    assert table.areas.tolist() == [6, 2.5, 9]
    assert table.crowd.tolist() == [False, False, False]
    assert table.difficult.tolist() == [False, True, False]
    assert table.zero_ids.tolist() == [True, False, True]
    assert table.group_of.tolist() == [False, False, True]
    assert table.part_flags["foot_valid"].tolist() == [True, True, False]
    assert table.fields["level"].tolist() == [1, 3, 1]
    assert np.array_equal(table.fields["other"], [1, np.nan, 4], equal_nan=True)
    assert table.notices == {"dropped_boxes": 3, "zero_id": 2, "zero_sized_boxes": 1}
    assert repr(table) == "<GroundTruth (bbox): 3 objects, 4 images, 4 categories>"
    part = table.take([2, 0])
    assert part.areas.tolist() == [9, 6]
    assert part.group_of.tolist() == [True, False]
    assert part.zero_ids.tolist() == [True, True]
    assert part.part_flags["foot_valid"].tolist() == [False, True]
    assert part.fields["level"].tolist() == [1, 1]
    plain = detmap.GroundTruth.from_arrays(
        **{**COLUMNS, "invalid_boxes": "miss", "areas": None, "zero_ids": [0] * 4, "group_of": None, "fields": None,
           "part_flags": None, "category_names": None}
    )  # fmt: skip
    assert plain.areas.tolist() == [6, 0, 0, 9]
    assert plain.zero_ids is plain.group_of is None
    assert plain.categories.names == ("a", "b", "c", "z")
    assert plain.notices == {"dropped_boxes": 2, "missed_boxes": 1, "zero_sized_boxes": 1}


FOUND = {
    "image_ids": [7, 5, 5, 9], "labels": [4, 4, 2, 6],
    "boxes": [[0, 0, 2, 3], [1, 1, np.inf, 4], [5, 5, 0, 1], [2, 2, 3, 3]],
    "scores": [0.5, 0.25, 0.75, 0.5], "invalid_boxes": "drop", "notices": {"unread": 1}, "source": "s",
}  # fmt: skip


def test_every_column_of_detections():
    table = detmap.Detections.from_arrays(**FOUND, areas=[1, 2, 3, -4], more_scores={"foot_score": [1, 2, 3, 4]})
    assert table.images.ids.tolist() == [5, 7, 9]
    assert table.images.codes.tolist() == [1, 0, 2]
    assert table.categories.ids.tolist() == [2, 4, 6]
    assert table.categories.codes.tolist() == [1, 0, 2]
    assert table.scores.tolist() == [0.5, 0.75, 0.5]
    assert table.areas.tolist() == [1, 3, -4]
    assert table.more_scores["foot_score"].tolist() == [1, 3, 4]
    assert table.notices == {"unread": 1, "dropped_boxes": 1, "zero_sized_boxes": 1}
    assert repr(table) == "<Detections (bbox): 3 on 3 images>"
    part = table.take([2])
    assert (part.images.ids.tolist(), part.categories.ids.tolist()) == ([9], [6])
    assert (part.areas.tolist(), part.more_scores["foot_score"].tolist()) == ([-4], [4])
    assert detmap.Detections.from_arrays(**FOUND).areas is None
    spans = {**FOUND, "segments": [[0, 1], [0, 2], [0, 3], [0, 4]]}
    assert detmap.Detections.from_arrays(**spans).areas.tolist() == [6, 0, 9]
    assert detmap.Detections.from_arrays(**{**spans, "box_format": "xyxy", "invalid_boxes": "drop"}).areas.tolist() == [
        6,
        1,
    ]
    del spans["boxes"]
    alone = detmap.Detections.from_arrays(**spans)
    assert alone.areas.tolist() == [1, 2, 3, 4]
    assert alone.kinds == ("temporal",)
    assert detmap.Detections.from_arrays(**{**FOUND, "segments": [[0, 1]] * 4}).kinds == ("bbox", "temporal")
    assert detmap.Detections.from_arrays(**spans, kinds=["temporal", "temporal_span"]).kinds == (
        "temporal",
        "temporal_span",
    )


TRUTH = {"image_ids": [1, 2], "category_ids": [1, 1], "boxes": [[0, 0, 1, 1]] * 2, "source": "s"}
WRONG_AREA = (
    "field 'area': an area must be a finite number of 0 or more (got {}); leave out the areas: they are width times"
)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"areas": [1, -1]}, f"s: record 1, {WRONG_AREA.format('-1.0')} height then"),
        ({"areas": [np.inf, 1]}, f"s: record 0, {WRONG_AREA.format('inf')} height then"),
        ({"areas": [1, np.nan]}, f"s: record 1, {WRONG_AREA.format('nan')} height then"),
        ({"areas": [1]}, "s: field 'area': shape (1,) where 2 was expected"),
        ({"boxes": [[0, 0, 1]] * 2}, "s: field 'boxes': shape (2, 3) where 2 x 4 was expected"),
        ({"boxes": []}, "s: field 'boxes': shape (0,) where 2 x 4 was expected"),
        ({"crowd": [1]}, "s: field 'crowd': shape (1,) where 2 was expected"),
        ({"category_ids": None}, "s: field 'category_ids': are missing; give category_ids=..., one per box"),
        ({"labels": [1, 1]}, "category_ids and labels are two names for the same: give one of them"),
        ({"category_names": ["a"]}, "s: field 'category_names': must be a mapping of category id to name, not list"),
        ({"kinds": []}, "s: field 'kinds': must list kinds of shape that are given (got []); these are given: bbox"),
        ({"kinds": "bbox"}, "s: field 'kinds': must list kinds of shape that are given (got 'bbox'); these are given: bbox"),
        ({"kinds": ["segm"]}, "s: field 'kinds': must list kinds of shape that are given (got ['segm']); these are given: "
         "bbox"),
        ({"image_sizes": [[1, 1]], "images": [1, 2]}, "s: field 'image_sizes': shape (1, 2) where 2 x 2 was expected"),
        ({"images": [1]}, "s: record 1, field 'image_id': is not among the images (got 2); list it under images or leave "
         "out the record"),
        ({"crowd_index": [1]}, "s: field 'crowdIndex': must be a mapping of image id to number, not list"),
        ({"crowd_index": {3: 1}}, "s: image 3, field 'crowdIndex': the image is not among the images"),
        ({"crowd_index": {1: np.nan}}, "s: image 1, field 'crowdIndex': must be a finite number (got nan)"),
        ({"crowd_index": {1: True}}, "s: image 1, field 'crowdIndex': must be a finite number (got True)"),
        ({"crowd_index": {1: 2e300}}, "s: image 1, field 'crowdIndex': must be a finite number (got 2e+300)"),
        ({"segments": [[0, 1]] * 2, "shapes": {"temporal": None}},
         "s: field 'segments': is given twice; keep one of the two"),
        ({"shapes": {"segm": 5}}, "s: field \"shapes['segm']\": expected a MaskColumn"),
    ],
)  # fmt: skip
def test_columns_that_are_refused(change, says):
    assert said(detmap.GroundTruth.from_arrays, **{**TRUTH, **change}) == says
    assert len(detmap.GroundTruth.from_arrays(**{**TRUTH, "crowd_index": {1: -1e300}})) == 2


def test_what_detections_refuse():
    says = "s: record 1, field 'score': a score must be a number (got nan); leave out the record: "
    says += "NaN has no place in a ranking"
    assert said(detmap.Detections.from_arrays, **{**FOUND, "scores": [0, np.nan, np.nan, 0]}) == says
    table = detmap.Detections.from_arrays(**FOUND)
    with pytest.raises(IndexError, match=r"^there is no row 3: the table has 3$"):
        table[3]
    with pytest.raises(IndexError, match=r"^there is no row -4: the table has 3$"):
        table[-4]
    assert table[-3] == table[0] == table[np.int8(0)]
    have = "columns are attributes: images.ids, images.codes, categories.ids, categories.codes, boxes, scores, areas"
    assert said(table.__getitem__, "boxes") == f"s: a table is indexed by rows, not by 'boxes'; {have}"
    assert said(table.__getitem__, True).startswith("s: a table is indexed by rows, not by True; ")
    assert table[1:].scores.tolist() == [0.75, 0.5]
    assert table[::-1].scores.tolist() == [0.5, 0.75, 0.5]
    assert table[[True, False, True]].scores.tolist() == [0.5, 0.5]
    for kind, argument, more in (("segm", "masks=...", ", or read the file with iou_type='segm'"),):
        says = "s: there are no shapes of the kind 'segm' here, only: bbox; "
        assert said(table.shape, kind) == f"{says}give them as {argument}{more}, or choose another iou_type"


def test_detections_on_images_of_the_ground_truth():
    found = detmap.Detections.from_arrays(**FOUND)
    truth = detmap.GroundTruth.from_arrays(**{**TRUTH, "image_ids": [5, 7]})
    says = "s: record 2, field 'image_id': is not an image of the ground truth (got 9); are both of one data set? "
    assert said(found.on_images_of, truth).startswith(says)
    kept = found.on_images_of(truth, "ignore")
    assert kept.scores.tolist() == [0.5, 0.75]
    assert kept.notices == {
        "unread": 1,
        "dropped_boxes": 1,
        "zero_sized_boxes": 1,
        "missed_boxes": 0,
        "unknown_image": 1,
    }
    assert found.on_images_of(truth.with_images(np.array([9, 1]))) is found
    named = detmap.GroundTruth.from_arrays(**{**TRUTH, "image_ids": ["a", "b"]})
    for unknown in ("error", "ignore"):
        assert said(found.on_images_of, named, unknown) == (
            "s: field 'image_id': image ids such as 5 never match the ground truth's, such as 'a'; write both as integers, "
            "or both as strings"
        )
    assert said(found.on_images_of, found).startswith("expected GroundTruth, not Detections; read it first: ")
    assert said(found.on_images_of, truth, "drop").startswith("unknown_images must be one of error, ignore, not 'drop'")
    more = truth.with_images(np.array([9, 1, 5]))
    assert (more.images.ids.tolist(), more.images.codes.tolist()) == ([1, 5, 7, 9], [1, 2])
    assert truth.with_images(np.array([5])) is truth.with_images(np.array(["a"])) is truth
    empty = detmap.GroundTruth.from_arrays(image_ids=[], category_ids=[], boxes=[])
    assert empty.with_images(np.array(["b", "a", "b"])).images.ids.tolist() == ["a", "b"]


def test_images_among_more():
    images = detmap.GroundTruth.from_arrays(**{**COLUMNS, "invalid_boxes": "miss"}).with_clusters([4, 2, 2, 9]).images
    more = images.among(np.array([1, 3, 5, 6, 7, 9]))
    assert more.codes.tolist() == [4, 2, 2, 5]
    assert more.sizes.tolist() == [[0, 0], [3, 30], [5, 50], [0, 0], [7, 70], [9, 90]]
    assert more.clusters.tolist() == [10, 4, 2, 11, 2, 9]
    assert np.array_equal(more.crowd_index, [np.nan, 0.25, 0.5] + [np.nan] * 3, equal_nan=True)
    assert more.order is more.names is None
    words = detmap.GroundTruth.from_arrays(**TRUTH).with_clusters({1: "x", 2: "y"}).images
    assert words.among(np.array([1, 2, 30])).clusters.tolist() == ["x", "y", "30"]
    assert words.among(np.array([1, 2, 30])).sizes is None
    table = detmap.GroundTruth.from_arrays(**TRUTH)
    lacking = (
        "clusters: field 'clusters': 1 of 2 images are in no cluster, the first of them 2; give every image a cluster; "
    )
    assert said(table.with_clusters, {1: "x"}) == f"{lacking}one that depends on no other is a cluster of its own"
    assert said(table.with_clusters, [1]) == "clusters: field 'clusters': 1 clusters for 2 images"
    assert table.with_clusters([1, 1]).with_clusters(None).images.clusters is None


@pytest.mark.parametrize("given", [[5, 3, 5, -2], ["b", "a", "b"], [10**9, 0], [0, 10**6 + 15], [0, 10**6 + 16], [7]])
def test_distinct_ids(given):
    made = ids.index_ids(given, source="s", field="f")
    assert made.ids.tolist() == sorted(set(given))
    assert made.ids[made.codes].tolist() == given
    assert made.codes.dtype == np.int32
    unsorted = ids.Ids(made.ids[::-1].copy(), (len(made.ids) - 1 - made.codes).astype(np.int64))
    again = ids.index_ids(unsorted, source="s", field="f")
    assert (again.ids.tolist(), again.codes.tolist()) == (made.ids.tolist(), made.codes.tolist())
    assert ids.locate(made.ids, made.ids).tolist() == list(range(len(made.ids)))
    other = np.array(["zz"]) if isinstance(given[0], str) else np.array([10**12, -(10**12)])
    assert (ids.locate(other, made.ids) == -1).all()
    assert (ids.locate(made.ids, other) == -1).all()
    assert ids.locate(made.ids, np.array([], made.ids.dtype)).tolist() == [-1] * len(made.ids)
    assert ids.locate(np.array([], made.ids.dtype), made.ids).tolist() == []
    assert ids.select(given[:1], made.ids, "f").tolist() == [one == given[0] for one in made.ids.tolist()]
    used = ids.used(made, np.array([0]))
    assert (used.ids.tolist(), used.codes.tolist()) == (given[:1], [0])
    assert ids.used(made, np.array([], int)).ids.dtype == np.int64
    assert repr(made) == f"<Ids: {len(made.ids)}, of {len(given)} records>"


def test_ids_that_are_selected():
    known = np.array([2, 4])
    assert ids.select({4}, known, "f").tolist() == ids.select(iter([4]), known, "f").tolist() == [False, True]
    assert said(ids.select, "ab", known, "f") == "evaluate: field 'f': is a single string; for one write ['ab']"
    assert said(ids.select, 5, known, "f") == "evaluate: field 'f': is not a sequence of ids; for one write [5]"
    assert said(ids.select, [2, 3], known, "f") == "evaluate: field 'f': is not in the ground truth (got 3)"
    for empty in ([], set(), np.array([])):
        says = "evaluate: field 'f': is empty: nothing would be scored; None scores all"
        assert said(ids.check_chosen, empty, "f") == says
    ids.check_chosen(None, "f")
    ids.check_chosen([0], "f")
    assert ids.order_of_images(None, known, "s") is ids.order_of_images([2, 4], known, "s") is None
    assert ids.order_of_images([4], np.array([4]), "s") is None
    assert ids.order_of_images([4, 2, 4], known, "s").tolist() == [1, 0]
    assert ids.order_of_images([2, 2, 4], known, "s").tolist() == [0, 2]


def test_ids_that_become_zero():
    zero = [0, 0.0, False, "0", " -0.0e5 ", "+.0", "1e-400", "0_0", "٠"]
    other = [1, "1", "00x", "", ".", "-", "0x0", "1e-3", "0e", None, "zero", "1_e-400"]
    assert ids.zeros(zero).tolist() == [True] * len(zero)
    assert ids.zeros(other).tolist() == [False] * len(other)


def test_ids_of_many_dense_and_sparse_numbers():
    """A table of flags up to the span is used for dense ids; both ways give the same."""
    rng = np.random.default_rng(0)
    for span in (10, 1000, 64 * 100 - 1, 64 * 100, 10**12):
        given = rng.integers(0, span, 100) - 5
        given[:2] = -5, span - 6
        made = ids.index_ids(given, source="s", field="f")
        distinct, codes = np.unique(given, return_inverse=True)
        assert made.ids.tolist() == distinct.tolist()
        assert made.codes.tolist() == codes.tolist()


# ------------------------------------------------------------------------------------------------------------ display


def test_cells():
    assert display.printable("a b ä") == "a b ä"
    assert display.printable("a\nb\x00é") == "a\\nb\\x00é"
    assert [display.cell(one) for one in (1.23456, float("nan"), 5, "x")] == ["1.2346", "–", "5", "x"]
    assert display.cell(1.23456, 1) == "1.2"
    rows = [{"a": 1, "b": "x"}, {"a": 2, "b": 3}]
    assert [display.is_words(rows, name) for name in "ab"] == [False, True]


def test_fragments_for_notebooks():
    made = display.fragment("t<", {"c&": [{"a": 1.5, "b": "<x>"}], "": [{"n": 2}], "empty": []}, ["note>"])
    assert made == (
        '<div class="detmap"><p><strong>t&lt;</strong></p>'
        '<table><caption>c&amp;</caption><thead><tr><th style="text-align:right">a</th>'
        '<th style="text-align:left">b</th></tr></thead><tbody><tr>'
        '<td style="text-align:right">1.5000</td><td style="text-align:left">&lt;x&gt;</td></tr></tbody>'
        '</table><table><thead><tr><th style="text-align:right">n</th></tr></thead><tbody><tr>'
        '<td style="text-align:right">2</td></tr></tbody></table><p>note&gt;</p></div>'
    )
    for count, more in ((40, ""), (41, "<p>1 more rows</p>"), (1041, "<p>1,001 more rows</p>")):
        made = display.fragment("t", {"": [{"n": n} for n in range(count)]})
        assert made.count("<td") == min(count, 40)
        assert made.endswith(f"</table>{more}</div>")
    for length, shown in ((300, "x" * 300), (301, "x" * 299 + "…")):
        assert f"<strong>{shown}</strong>" in display.fragment("x" * length, {})


@pytest.mark.parametrize(("count", "caption"), [(1, ""), (10, ""), (11, "<caption>the first 10 of 11</caption>")])
def test_the_first_rows_of_tables(count, caption):
    rows = {"image_ids": [3] * count, "category_ids": [1] * count, "boxes": [[1, 2, 3.5, 5]] * count}
    found = detmap.Detections.from_arrays(**rows, scores=np.arange(count) / 16)
    made = display.table_fragment(found)
    assert made.startswith(
        f'<div class="detmap"><p><strong>Detections (bbox): {count} on 1 images</strong></p><table>{caption}'
    )
    head = ["image_id", "category_id", "x", "y", "width", "height", "score"]
    first = ["3", "1", "1.0000", "2.0000", "3.5000", "5.0000", "0.0000"]
    for tag, cells in (("th", head), ("td", first)):
        row = "".join(f'<{tag} style="text-align:right">{cell}</{tag}>' for cell in cells)
        assert f"<tr>{row}</tr>" in made
    assert made.count("<tr>") == 1 + min(count, 10)
    truth = detmap.GroundTruth.from_arrays(**rows, box_format="xyxy", crowd=[1] * count, category_names={1: "cat"})
    made = truth._repr_html_()
    head = ["image_id", "category_id", "category", "x1", "y1", "x2", "y2", "area", "crowd", "difficult"]
    assert [f">{name}</th>" in made for name in head] == [True] * 10
    for cell in (">cat</td>", ">3.5000</td>", ">7.5000</td>", ">True</td>", ">False</td>"):
        assert cell in made
    assert truth[0] == {
        "image_id": 3, "category_id": 1, "category": "cat", "bbox_xyxy": [1, 2, 3.5, 5], "area": 7.5, "crowd": True,
        "difficult": False,
    }  # fmt: skip
    assert found[0] == {"image_id": 3, "category_id": 1, "bbox": [1, 2, 3.5, 5], "score": 0.0}


# ------------------------------------------------------------------------------------------------------------ notices


def test_notices_of_one_and_of_several():
    one, two = (dict.fromkeys(notices.NOTICES, n) for n in (1, 2))
    for code, text in notices.NOTICES.items():
        several = notices.describe({code: 2345})
        said_of_one = notices.describe({code: 1})
        if code == "zero_id":
            sentence = "2345 annotations with id 0, which pycocotools takes for no match: found by default, or "
            assert several == [f"{sentence}--id-zero missed"]
        assert len(several) == len(said_of_one) == 1
        if "{n} " in text:
            assert "2345" in several[0]
            assert " 2345" not in said_of_one[0]
    assert len(notices.describe(one)) == len(notices.describe(two)) == len(notices.NOTICES) - 1
    assert notices.describe({"unknown_image": 0, "no such code": 5}) == []
    assert notices.describe({"unknown_image": 3}) == [
        "3 detections on images that the ground truth does not have: dropped"
    ]
    assert notices.describe({"unknown_image": 3}, "temporal") == [
        "3 detections on videos that the ground truth does not have: dropped"
    ]
    assert notices.describe({"unknown_image": 3}, "no such kind") == notices.describe({"unknown_image": 3})
    assert notices.describe({"zero_sized_boxes": 1}) == ["1 box of no width or height"]
    assert notices.describe({"few_positives": 1, "missing_area": 2}) == [
        "1 metric is of 40 objects or fewer, and cannot reach 100 by KITTI's rule (10 of 10 found give 22.5): ",
        "2 annotations without area: that of their box",
    ]
    for count, more in ((1, ""), (20, ""), (21, " and 1 more"), (25, " and 5 more")):
        made = notices.describe({f"missing_classes:c{n}": 1 for n in range(count)})
        names = ", ".join(f"c{n}" for n in range(min(count, 20)))
        start = "1 class" if count == 1 else f"{count} classes"
        assert made == [f"{start} without a result file, with AP 0: {names}{more}"]
    assert notices.describe({"zero_id": 2, "zero_id_effect:AP": 1}) == [
        "with annotations of id 0 found, or missed as in pycocotools (--id-zero): AP"
    ]
    assert notices.added(None, {"a": 1}) == {"a": 1}
    assert notices.added({"a": 1, "b": 2}, {"b": 3, "c": 4}) == {"a": 1, "b": 5, "c": 4}


def test_fields_of_other_benchmarks():
    lvis = {"foreign_fields:neg_category_ids (LVIS)": 1, "foreign_fields:frequency (LVIS)": 1}
    assert benchmarks.noted(["neg_category_ids", "other"], "images") == dict([next(iter(lvis.items()))])
    document = {
        "images": [{"neg_category_ids": []}, {"crowdIndex": 1}], "categories": [{"frequency": "x"}, {"frequency": "r"}],
        "annotations": [],
    }  # fmt: skip
    crowd = {"foreign_fields:crowdIndex (CrowdPose)": 1}
    assert benchmarks.noted_in(document) == {**lvis, **crowd}
    assert benchmarks.noted_in({"categories": [{"frequency": 5}], "images": None}) == {}
    assert benchmarks.protocol_for({**lvis, **crowd}) == "lvis"
    assert benchmarks.protocol_for(crowd) == "crowdpose"
    assert benchmarks.protocol_for({"other": 1}) is None
    assert benchmarks.advice(["crowdIndex (CrowdPose)", "x (DOTA)"]) == (
        "; CrowdPose's rules: --protocol crowdpose; DOTA's rules: --protocol dota"
    )
    assert benchmarks.advice(["x (Open Images)"]) == "; Open Images' rules: --protocol openimages"
    assert "poseval" in benchmarks.advice(["x (PoseTrack)"])
    assert benchmarks.advice(["nothing"]) == ""
    assert benchmarks.unread({**lvis, "other": 1}, ["frequency"]) == {next(iter(lvis)): 1, "other": 1}
    assert benchmarks.unread(lvis, []) == lvis
    assert benchmarks.converted({**crowd, "group_boxes": 2, benchmarks.LEVELS: 1, "other": 3}) == {
        "converted_fields:crowdIndex (CrowdPose)": 1, "other": 3
    }  # fmt: skip
    assert benchmarks.noted_of_titles(["Is_Group_Of", "x"], 3) == {
        "foreign_fields:Is_Group_Of (Open Images)": 1, "group_boxes": 3
    }  # fmt: skip
    assert benchmarks.noted_of_titles(["x"]) == {}
    assert [benchmarks.is_group(one) for one in ("IsGroupOf", "is group-of", "group")] == [True, True, False]
    assert benchmarks.flagged([[1, 0, "TRUE", "0"], [0, 0, "", " 1 "]]) == 3
    flags = [1, True, "1", " True ", "1.0", 1.0]
    unset = [0, "0", "false", -1, "-1.0", "", None, 0.0]
    assert [benchmarks.is_flag(one) for one in flags + unset] == [True] * 6 + [False] * 8
    assert not any(map(benchmarks.is_no_flag, flags + unset))
    assert all(map(benchmarks.is_no_flag, ["yes", 2, 0.5, -2, [], "01"]))


# --------------------------------------------------------------------------------------------- label maps and columns


def test_arrays_of_label_maps():
    rows = np.array([[1, 1, 2], [2, 0, 0]])
    for given in (rows, rows.tolist(), rows.astype(np.uint8), rows.astype(np.uint32), np.asfortranarray(rows)):
        made = LabelMap.of(given, "n")
        assert made.ends.tolist() == [2, 4, 6]
        assert made.ids.tolist() == [1, 2, 0]
        assert made.shape == (2, 3)
        assert made.pixels().tolist() == rows.tolist()
    for channels in (3, 4):
        colours = np.zeros((1, 2, channels), np.uint8)
        colours[0, 0, :3], colours[0, 1] = (1, 2, 3), 255
        assert LabelMap.of(colours, "n").pixels().tolist() == [[1 + 256 * 2 + 65536 * 3, 2**24 - 1]]
    for value in (0, 2**32 - 1):
        assert LabelMap.of(np.array([[value]]), "n").ids.tolist() == [value]


NO_MAP = "n: is no label map (got '{}'); give integers of shape (H, W), or colours of type uint8 and shape (H, W, 3)"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([[1], [1, 2]], "n: is no label map: its rows differ in length"),
        (np.zeros((2, 2, 2), np.uint8), NO_MAP.format("3-d uint8")),
        (np.zeros((2, 2, 5), np.uint8), NO_MAP.format("3-d uint8")),
        (np.zeros((2, 2, 3), np.int64), NO_MAP.format("3-d int64")),
        (np.zeros(3, np.int64), NO_MAP.format("1-d int64")),
        (np.zeros((2, 2)), NO_MAP.format("2-d float64")),
        (np.array([[5, -1]]), "n: ids of segments lie from 0 to 4294967295 (got -1)"),
        (np.array([[5, 2**32]]), "n: ids of segments lie from 0 to 4294967295 (got 4294967296)"),
        (np.array([[-2, 2**32]]), "n: ids of segments lie from 0 to 4294967295 (got -2)"),
        (np.zeros((0, 3), np.int64), "n: has a size that cannot be (got '3 x 0')"),
        (np.broadcast_to(np.uint32(0), (2**16, 2**15)), "n: has a size that cannot be (got '32768 x 65536')"),
    ],
)
def test_what_is_no_label_map(given, says):
    assert said(LabelMap.of, given, "n") == says


def test_ids_of_segments():
    for good in (1, 2**32 - 1):
        check_id(good, "s", 7)
    for bad, largest in ((0, 2**32 - 1), (2**32, 2**32 - 1), (-1, 9), (10, 9)):
        says = f"s: image 7, field 'id': is no id of a segment (got {bad}); ids lie from 1 to {largest}, and 0 is VOID"
        assert said(check_id, bad, "s", 7, largest) == says


def test_crowd_indices():
    images = np.array([3, 5])
    assert crowd_index_column(None, images, "s") is crowd_index_column({}, images, "s") is None
    assert crowd_index_column({5: np.float64(1e300)}, images, "s").tolist()[1] == 1e300


def test_small_columns_that_need_no_check():
    for dtype, good in ((np.float64, [1.5, 2]), (np.int64, [1, 2]), (np.bool_, [True, False])):
        array = np.array(good, dtype)
        for given in (good, array):
            made = columns.plain(given, dtype)
            assert made.tolist() == array.tolist()
            assert made.dtype == dtype
            assert made is not given
        assert columns.plain(array.astype(array.dtype.newbyteorder()), dtype) is None or array.dtype.itemsize == 1
        assert columns.plain([], dtype) is columns.plain(tuple(good), dtype) is None
    assert columns.plain([1, 2], np.float64) is None
    assert columns.plain([[1.0, 2.0], [3.0]], np.float64) is None
    assert columns.plain([[1.0, 2.0], [3.0, 4.0]], np.float64).shape == (2, 2)
    assert columns.plain([1.0, "2"], np.float64) is None
    assert columns.plain([1, True], np.int64) is None
    assert columns.plain([2**63], np.int64) is None
    assert columns.plain(np.array([1], np.int32), np.int64) is None
    assert columns.plain(pd.Series([1]), np.int64) is None


@pytest.mark.parametrize("kind", [np.int64, np.uint64, object])
def test_integers_at_the_limit_of_floats(kind):
    most = 2**53
    given = np.array([most, 1], kind) if kind is np.uint64 else np.array([most, -most], kind)
    assert columns.numbers(given, source="s").tolist() == [float(most), float(given[1])]
    for bad in [most + 1] if kind is np.uint64 else [most + 1, -most - 1]:
        assert "record 1" in said(columns.numbers, np.array([1, bad], kind), source="s")
    assert "record 0" in said(columns.numbers, np.array([[most + 1, 1], [1, 1]], kind), source="s")
    assert "record 1" in said(columns.numbers, np.array([[1, 1], [1, most + 1]], kind), source="s")


def test_whole_floats_as_ids():
    for kind in (np.float16, np.float32, np.float64):
        assert columns.identifiers(np.array([1, -2], kind)).tolist() == [1, -2]
    assert columns.identifiers(np.array([2.0**53 - 1, 1 - 2.0**53])).tolist() == [2**53 - 1, 1 - 2**53]
    for bad in (2.0**53, -(2.0**53)):
        for given in (np.array([1.0, bad]), np.array([1, bad], object)):
            says = "record 1: an id from 2**53 on must not be a float"
            assert said(columns.identifiers, given).startswith(says)
    assert columns.identifiers(np.array([2**63 - 1], np.uint64)).tolist() == [2**63 - 1]
    assert said(columns.identifiers, np.array([1, 2**63], np.uint64)).startswith("record 1: an id is beyond 64 bits")
    for good, bad in ((-(2**63), -(2**63) - 1), (2**63 - 1, 2**63)):
        assert columns.identifiers(np.array([1, good], object)).tolist() == [1, good]
        assert said(columns.identifiers, np.array([1, bad], object)).startswith("record 1: an id is beyond 64 bits")


def test_one_long_id_among_many(monkeypatch):
    monkeypatch.setenv("DETMAP_MOST_ID_BYTES", "4000")
    for longest, count, good in ((10, 100, True), (11, 100, False), (100, 10, True), (101, 10, False)):
        strings = ["a"] * (count - 1) + ["x" * longest]
        if good or 4 * longest * count <= 32 * sum(map(len, strings)):
            assert columns.texts(strings).tolist() == strings
        else:
            total = (count - 1 + longest) // count
            says = f"s: field 'f': an id has {longest} characters, where {count} have {total} on average: "
            assert said(columns.texts, strings, source="s", field="f").startswith(says)
    assert columns.texts([]).tolist() == []
    dense = ["x" * 200] * 30
    assert columns.texts(dense).tolist() == dense
