"""Panoptic quality equals that of panopticapi and of a naive twin, bit by bit, whatever the number of parts and threads."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from legs import examples
from naive_panoptic import panoptic_quality
from panoptic_scenes import CATEGORIES, documents, images, write
from workloads import REAL_DATA

import detmap
from detmap.errors import InputError, OptionError
from detmap.panoptic import PanopticResult, evaluate, match

PANOPTIC = REAL_DATA / "panoptic"

QUALITIES = ("PQ", "SQ", "RQ")


def plain(result):
    """A result as panopticapi returns it, None in place of the means of a group without categories."""
    number, out = result.number_of_categories, {}
    for name, end in (("All", ""), ("Things", "_things"), ("Stuff", "_stuff")):
        values = {one.lower(): result[one + end] for one in QUALITIES}
        out[name] = {**values, "n": number[name]} if number[name] else None
        assert number[name] or all(np.isnan(value) for value in values.values())
    rows = {row["category_id"]: {one.lower(): row[one] for one in QUALITIES} for row in result.rows()}
    out["per_class"] = {
        key: {name: 0.0 if np.isnan(value) else value for name, value in row.items()} for key, row in rows.items()
    }
    return out


@settings(max_examples=examples(300), deadline=None)
@given(scenes=st.lists(images(), min_size=1, max_size=4), parts=st.integers(1, 6), threads=st.integers(1, 3))
def test_it_equals_the_naive_twin(scenes, parts, threads):
    truth, found, truth_maps, found_maps = documents(scenes)
    try:
        expected = panoptic_quality(CATEGORIES, scenes, parts)
    except ZeroDivisionError:  # an area so wrong that the union is empty
        with pytest.raises(InputError, match="area that its pixels do not fit"):
            evaluate(truth, found, truth_maps, found_maps)
        return
    result = evaluate(truth, found, truth_maps, found_maps, parts=parts, threads=threads)
    assert plain(result) == expected
    if all(expected[name] for name in ("All", "Things", "Stuff")):
        assert result.to_panopticapi() == expected


@settings(max_examples=examples(30), deadline=None)
@given(scenes=st.lists(images(), min_size=1, max_size=3), kind=st.integers(0, 4))
def test_files_give_what_arrays_give(scenes, kind, tmp_path_factory):
    truth, found, truth_maps, found_maps = documents(scenes)
    try:
        expected = dict(evaluate(truth, found, truth_maps, found_maps))
    except InputError:
        assume(False)
    paths = write(tmp_path_factory.mktemp("files"), scenes, kind)
    np.testing.assert_equal(dict(evaluate(*paths)), expected)
    np.testing.assert_equal(dict(evaluate(paths[0].read_bytes(), found, truth_maps, str(paths[1])[:-5])), expected)


@settings(max_examples=examples(60), deadline=None)
@given(scenes=st.lists(images(), min_size=2, max_size=5), cut=st.integers(1, 4))
def test_tallies_of_some_images_merge_to_that_of_all(scenes, cut):
    truth, found, truth_maps, found_maps = documents(scenes)

    def of(begin, end):
        some = {**truth, "annotations": truth["annotations"][begin:end]}
        return match(some, found, truth_maps, found_maps)

    try:
        whole = of(0, None)
    except InputError:
        assume(False)
    cut = min(cut, len(scenes) - 1)
    merged = of(0, cut).merge(of(cut, None))
    one, other = PanopticResult(merged), PanopticResult(whole)
    np.testing.assert_equal(dict(one), dict(other))
    np.testing.assert_equal(one.rows(), other.rows())
    assert merged.image_ids.tolist() == whole.image_ids.tolist()
    with pytest.raises(OptionError, match="is in two of the tallies"):
        whole.merge(of(0, 1))


def shift(values):
    """The same ids, each plus 1; 0 stays."""
    return np.where(values > 0, values + 1, 0)


@settings(max_examples=examples(60), deadline=None)
@given(scene=images())
def test_ids_turns_and_predictions_that_are_the_truth(scene):
    truth, segments, found, predicted = scene
    segments = [{**one, "area": int((truth == one["id"]).sum())} for one in segments]

    def score(*made):
        return dict(evaluate(*documents([made])))

    before = score(truth, segments, found, predicted)
    moved = [[{**one, "id": one["id"] + 1} for one in rows] for rows in (segments, predicted)]
    np.testing.assert_equal(score(shift(truth), moved[0], shift(found), moved[1]), before)
    np.testing.assert_equal(score(truth.T.copy(), segments, found.T.copy(), predicted), before)
    counted = [one for one in segments if one["category_id"] != 99 and (truth == one["id"]).any()]
    listed = np.where(np.isin(truth, [one["id"] for one in counted]), truth, 0)
    perfect = score(listed, counted, listed, counted)
    expected = 1.0 if any(not one["iscrowd"] for one in counted) else np.nan
    np.testing.assert_equal([perfect[one] for one in QUALITIES], [expected] * 3)


def worked(truth, found, segments, predicted):
    """Evaluate two label maps of 10 x 10 from the ids of their rows."""
    own, theirs = (np.repeat(rows, 10).reshape(10, 10) for rows in (truth, found))
    for one in segments:
        one.setdefault("area", int((own == one["id"]).sum()))
    return evaluate(*documents([(own, segments, theirs, predicted)]))


def test_worked_examples():
    cat, grass = {"id": 1, "category_id": 7}, {"id": 2, "category_id": 40}
    halves = [1] * 5 + [2] * 5
    result = worked(halves, [8] * 10, [dict(cat), dict(grass)], [{"id": 8, "category_id": 7}])
    assert result.counts[[0, 2], :3].tolist() == [[0, 1, 1], [0, 0, 1]]  # an IoU of one half is no match
    result = worked([0] * 5 + [2] * 5, [8] * 10, [dict(grass)], [{"id": 8, "category_id": 7}])
    assert result.counts[0].tolist() == [0, 1, 0, 0]  # half on VOID is not more than half
    result = worked([0] * 5 + [2] * 5, [8] * 6 + [9] * 4, [dict(grass)], [
        {"id": 8, "category_id": 7}, {"id": 9, "category_id": 40},
    ])  # fmt: skip
    assert result.counts[0].tolist() == [0, 0, 0, 0]
    assert result["PQ"] == 0.8
    wrong = worked(halves, halves, [{**cat, "area": 80}, dict(grass)], [dict(cat), dict(grass)])
    assert wrong["PQ_things"] == 0.625
    assert wrong.notices["wrong_areas"] == 1
    # Of two crowd regions of a category the last one alone excuses predictions.
    crowds = [{"id": 1, "category_id": 7, "iscrowd": 1}, {"id": 3, "category_id": 7, "iscrowd": 1}, dict(grass)]
    predicted = [{"id": 1, "category_id": 7}, {"id": 3, "category_id": 7}, dict(grass)]
    result = worked([1] * 3 + [3] * 3 + [2] * 4, [1] * 3 + [3] * 3 + [2] * 4, crowds, predicted)
    assert result.counts[0].tolist() == [0, 1, 0, 0]


def test_an_id_that_is_not_listed_is_no_other_segment():
    """The id 1 lies before the listed one: its pixels are neither that segment's nor VOID."""
    grass = {"id": 2, "category_id": 40}
    result = worked([1] * 5 + [2] * 5, [2] * 10, [dict(grass)], [dict(grass)])
    assert result.counts[2].tolist() == [0, 1, 1, 1]
    assert result.notices["unlisted_pixels"] == 1


def test_names_of_metrics_and_undefined_means():
    cat = [{"id": 1, "category_id": 7}]
    result = worked([1] * 10, [1] * 10, [dict(one) for one in cat], cat)
    assert list(result) == [f"{one}{end}" for end in ("", "_things", "_stuff") for one in QUALITIES]
    assert np.isnan(result["PQ_stuff"])
    assert result["pq_th"] == result["PQ^th"] == result["PQ_things"] == 1
    with pytest.raises(detmap.errors.UnknownMetricError):
        result["AP"]
    with pytest.raises(OptionError, match="no result where Stuff has no category"):
        result.to_panopticapi()
    assert json.loads(result.to_json())["metrics"]["PQ_stuff"] is None


def test_what_is_odd_is_noticed_and_counted_as_in_panopticapi():
    truth, found, _, _ = documents([])
    ids = np.repeat([1, 2], [60, 40]).reshape(10, 10)
    one = {"image_id": 1, "file_name": "a.png", "segments_info": [{"id": 1, "category_id": 7, "area": 60}]}
    truth["annotations"] = [{**one, "segments_info": [*one["segments_info"], {"id": 1, "category_id": 40, "area": 60}]}]
    own = {**one, "segments_info": [{"id": 1, "category_id": 40}, {"id": 2, "category_id": 40}]}
    found["annotations"] = [{**own, "segments_info": []}, own, {**own, "image_id": 5}]
    result = evaluate(truth, found, {1: ids}, {1: ids})
    assert dict(result.notices) == {
        "missing_iscrowd": 1,
        "repeated_images": 1,
        "repeated_segments": 1,
        "unread_predictions": 1,
        "unlisted_pixels": 1,
    }
    assert result["PQ_stuff"] == 1 / 1.5


def pair():
    """A ground truth and predictions of one image that can be scored."""
    truth = {
        "categories": [{"id": 7, "isthing": 1}],
        "annotations": [
            {"image_id": 1, "file_name": "1.png", "segments_info": [{"id": 1, "category_id": 7, "area": 4}]}
        ],
    }
    found = {"annotations": [{"image_id": 1, "segments_info": [{"id": 1, "category_id": 7}]}]}
    return truth, found


def changed(document, *path, to):
    """Put a value into a document."""
    for step in path[:-1]:
        document = document[step]
    document[path[-1]] = to


SEGMENT = ("annotations", 0, "segments_info", 0)


@pytest.mark.parametrize(
    ("side", "path", "to", "says"),
    [
        (0, (*SEGMENT, "id"), 0, "image 1, field 'id': is no id of a segment (got 0)"),
        (0, (*SEGMENT, "id"), -1, "is no id of a segment (got -1)"),
        (0, (*SEGMENT, "id"), 2**32, "is no id of a segment (got 4294967296)"),
        (0, (*SEGMENT, "id"), 2**70, "is no id of a segment (got 1180591620717411303424)"),
        (0, (*SEGMENT, "id"), "1", "annotations[0].segments_info[0], field 'id': expected `int`, got `str`"),
        (0, (*SEGMENT, "area"), -4, "segment 1 has an area that is no number from 0 on (got -4"),
        (0, (*SEGMENT, "area"), "x", "annotations[0].segments_info[0], field 'area'"),
        (0, (*SEGMENT, "area"), float("nan"), "segment 1 has an area"),
        (0, (*SEGMENT, "area"), float("inf"), "segment 1 has an area"),
        (0, (*SEGMENT, "area"), 0, "segment 1 has an area that its pixels do not fit (got 0.0); it has 4 pixels"),
        (0, ("categories", 0, "isthing"), None, "category 7, field 'isthing': is missing"),
        (0, ("annotations", 0, "segments_info"), {}, "annotations[0], field 'segments_info'"),
        (0, ("annotations",), 5, "annotations: expected `array`, got `int`"),
        (1, ("annotations",), [], "predictions: image 1: there is no prediction for it"),
        (1, (*SEGMENT, "id"), 2, "(predictions): holds segment 1, which the JSON does not list"),
        (1, (*SEGMENT, "category_id"), 8, "image 1: segment 1 has category 8, which the ground truth does not list"),
        (1, ("annotations", 0, "segments_info"), [{"id": n, "category_id": 7} for n in (1, 2)], "segment 2 has no pixels"),
        (1, ("annotations", 0, "image_id"), 1.5, "annotations[0], field 'image_id'"),
    ],
)  # fmt: skip
def test_what_cannot_be_scored_is_told_in_one_line(side, path, to, says):
    documents = pair()
    changed(documents[side], *path, to=to)
    ids = np.ones((2, 2), int)
    with pytest.raises(InputError) as error:
        evaluate(*documents, {1: ids}, {1: ids})
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_other_errors(tmp_path):
    truth, found = pair()
    ids = np.ones((2, 2), int)
    with pytest.raises(InputError, match="has 3 x 2 pixels, and the ground truth 2 x 2"):
        evaluate(truth, found, {1: ids}, {1: np.ones((2, 3), int)})
    with pytest.raises(InputError, match=r"label map of image 1 \(predictions\): is missing"):
        evaluate(truth, found, {1: ids}, {})
    with pytest.raises(OptionError, match="the label maps of the ground truth are needed"):
        evaluate(truth, found, None, {1: ids})
    with pytest.raises(OptionError, match="there is no folder"):
        evaluate(truth, found, tmp_path / "none", {1: ids})
    with pytest.raises(OptionError, match="parts must be an integer of at least 1"):
        evaluate(truth, found, {1: ids}, {1: ids}, parts=0)
    twice = {**truth, "annotations": truth["annotations"] * 2}
    with pytest.raises(InputError, match="image 1: is annotated twice"):
        evaluate(twice, found, {1: ids}, {1: ids})
    (tmp_path / "gt.json").write_text("{")
    with pytest.raises(InputError, match="is not valid JSON"):
        evaluate(tmp_path / "gt.json", found, {1: ids}, {1: ids})
    for name in ("../x.png", "/etc/passwd", "", "a/../../b.png", "a\0"):
        truth["annotations"][0]["file_name"] = name
        with pytest.raises(InputError, match="is no file in the folder of label maps"):
            evaluate(truth, found, tmp_path, {1: ids})
    truth["annotations"][0]["file_name"] = found["annotations"][0]["file_name"] = "1.png"
    for folders, side, flag in (
        ((tmp_path, {1: ids}), "ground truth", "--gt-folder"),
        (({1: ids}, tmp_path), "predictions", "--pred-folder"),
    ):
        with pytest.raises(InputError, match=rf"1\.png: no such label map of the {side}; .*Else name it \({flag}\)"):
            evaluate(truth, found, *folders)
    (tmp_path / "1.png").mkdir()
    with pytest.raises(InputError, match="is not a file"):
        evaluate(truth, found, tmp_path, {1: ids})
    found["annotations"].append({**found["annotations"][0], "image_id": "1"})
    with pytest.raises(InputError, match="integers and strings"):
        evaluate(truth, found, {1: ids}, {1: ids})


@pytest.mark.slow
def test_bytes_that_damage_a_file_are_refused_or_change_nothing_else(tmp_path):
    """Each byte of the JSON and of a label map is replaced: a number or a line, and never anything else."""
    ids = np.repeat([3, 4, 0], [3, 3, 3]).reshape(3, 3)
    rows = [{"id": 3, "category_id": 7, "area": 3, "iscrowd": 0}, {"id": 4, "category_id": 40, "area": 3}]
    paths = write(tmp_path, [(ids, rows, ids, [{"id": 3, "category_id": 7}, {"id": 4, "category_id": 40}])])
    expected = dict(evaluate(*paths))
    for path in (*paths, tmp_path / "gt" / "0.png", tmp_path / "pred" / "0.png"):
        data = path.read_bytes()
        for at in range(0, len(data), max(1, len(data) // examples(100))):
            for byte in (0, 255, data[at] ^ 1):
                path.write_bytes(data[:at] + bytes([byte]) + data[at + 1 :])
                try:
                    result = evaluate(*paths)
                except (InputError, OptionError) as error:
                    assert "\n" not in str(error)  # noqa: PT017 - a number will do too
                else:
                    assert set(result) == set(expected)
            path.write_bytes(data[:at])
            with pytest.raises(InputError):
                evaluate(*paths)
        path.write_bytes(data)
    assert dict(evaluate(*paths)) == expected


@pytest.mark.compiled
@pytest.mark.real_data
@pytest.mark.skipif(not PANOPTIC.exists(), reason=f"{PANOPTIC} is absent")
@pytest.mark.parametrize("name", ["synthetic", "real"])
@pytest.mark.parametrize("cores", [1, 2, 3, 8, 64])
def test_real_data_give_what_panopticapi_gives(name, cores):
    expected = json.loads((PANOPTIC / "expected.json").read_text())[name][f"cores_{cores}"]
    result = evaluate(PANOPTIC / f"{name}_gt.json", PANOPTIC / f"{name}_pred.json", parts=cores).to_panopticapi()
    result["per_class"] = {str(key): row for key, row in result["per_class"].items()}
    assert result == expected


def pixels_of(given):
    """A label map of the edge cases: ids, or the pixels of a PNG file."""
    return np.array(given["png_array"], np.uint8) if isinstance(given, dict) else np.array(given)


@pytest.mark.real_data
@pytest.mark.skipif(not PANOPTIC.exists(), reason=f"{PANOPTIC} is absent")
def test_edge_cases_give_what_panopticapi_gives():
    """Where panopticapi divides by zero the other means are there; where it refuses so does detmap.

    Without iscrowd it does not, and a gray picture is refused where it is a file, see `test_kernels_label_maps`.
    """
    refused = 0
    for name, case in json.loads((PANOPTIC / "edge_cases.json").read_text()).items():
        reference = case["results"]["ref"]
        one = {"image_id": 1, "file_name": "1.png"}
        truth = {
            "categories": case["categories"],
            "annotations": [{**one, "segments_info": case["gt_segments"]}],
        }
        found = {"annotations": [{**one, "segments_info": case["pred_segments"]}]}
        maps = [{1: pixels_of(case[side])} for side in ("gt_map", "pred_map")]
        if isinstance(reference, dict) and name != "gt_segment_id_0":
            result = plain(evaluate(truth, found, *maps))
            assert {key: result[key]["pq"] for key in ("All", "Things", "Stuff")} == reference["pq"], name
        elif name not in ("no_iscrowd", "gray_png") and not str(reference).startswith("ZeroDivisionError"):
            refused += 1
            with pytest.raises(InputError):
                evaluate(truth, found, *maps)
    assert refused >= 5
