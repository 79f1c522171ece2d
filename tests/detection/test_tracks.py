"""Tracks of masks: YouTube-VIS' rules against a naive twin, real expectations, laws, and files that cannot be read."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import naive_tracks
import numpy as np
import pytest
import track_scenes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from naive_masks import string_of
from support import examples, same_bits

import detmap
from detmap.formats import ytvis
from detmap.masks import Masks
from detmap.reading.options import Reading
from detmap.reading.scanner import scan_tracks
from detmap.shapes import Pairs, find

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "ytvis"
SEEDS = range(examples(12))


@pytest.fixture(autouse=True)
def scanned(monkeypatch):
    """Results are scanned, however small they are."""
    monkeypatch.setattr(ytvis, "_WORTH_SCANNING", 0)


def written(folder, document, results):
    paths = folder / "truth.json", folder / "found.json"
    for path, made in zip(paths, (document, results), strict=True):
        path.write_text(json.dumps(made))
    return paths


def shown(result):
    """The arrays of a result as pycocotools has them, -1 for what is undefined."""
    return {name: np.nan_to_num(getattr(result, name), nan=-1.0) for name in ("precision", "recall", "scores")}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("odd", [False, True])
def test_ytvis(seed, odd, tmp_path):
    """Every bit of precision, recall and scores; also of all categories together, and with ranges that split the objects."""
    document, results = track_scenes.scene(seed, odd=odd)
    paths = written(tmp_path, document, results)
    for more in ({}, {"use_categories": False}, {"max_dets": (1, 2, 3)}):
        expected = naive_tracks.evaluate(document, results, **more)
        made = shown(detmap.evaluate(*paths, "ytvis", **more))
        for name, values in expected.items():
            assert same_bits(made[name], values), (name, more)
    ranges = {"all": (0, 1e10), "small": (0, 40), "large": (40, 1e10)}
    expected = naive_tracks.evaluate(document, results, list(ranges.values()))
    made = shown(detmap.evaluate(*paths, "ytvis", area_ranges=ranges))
    assert same_bits(made["precision"], expected["precision"])


@pytest.mark.compiled
@pytest.mark.real_data
@pytest.mark.skipif(not DATA.exists(), reason="real data is not there: ../shared/data")
def test_expected_values():
    expected = json.loads((DATA / "expected.json").read_text())
    for name, more in (
        ("default", {}),
        ("useCats0", {"use_categories": False}),
        ("maxDets_1_2_3", {"max_dets": (1, 2, 3)}),
    ):
        result = detmap.evaluate(DATA / "instances.json", DATA / "results.json", "ytvis", **more)
        for array, values in shown(result).items():
            digest = hashlib.sha256(np.ascontiguousarray(values, "<f8").tobytes()).hexdigest()
            assert digest == expected[name][f"{array}_sha256"], (name, array)
        skipped = 1 if name == "maxDets_1_2_3" else 0  # AP is -1 there, since no cap is 100
        assert list(result.values())[skipped:12] == expected[name]["stats"][skipped:]


SQUARE = track_scenes.code(np.pad(np.ones((10, 10), np.uint8), 2))


@pytest.mark.parametrize(
    ("found", "truth", "expected"),
    [
        ([SQUARE, SQUARE, None], [SQUARE, SQUARE, None], 1.0),
        ([SQUARE, None, None], [SQUARE, SQUARE, SQUARE], 1 / 3),
        ([SQUARE, SQUARE], [SQUARE, None], 1 / 2),
        ([SQUARE], [SQUARE, SQUARE, SQUARE], 1.0),
        ([None, None], [None, None], 0.0),
        ([SQUARE, None], [None, SQUARE], 0.0),
        ([{"size": [20, 20], "counts": [0, 400]}, SQUARE], [SQUARE, SQUARE], 1.0),
        ([], [SQUARE], 0.0),
    ],
)
def test_overlaps(found, truth, expected):
    """The worked examples: frames without an object, lists that are cut, masks of another size."""
    assert overlaps([found], [truth]) == [expected]


def overlaps(found, truth, crowd=False, lowest=0.0):
    ids = {"image_ids": np.zeros(len(found), int), "category_ids": np.zeros(len(found), int)}
    tables = (
        detmap.Detections.from_arrays(**ids, tracks=found, scores=np.zeros(len(found))),
        detmap.GroundTruth.from_arrays(**ids, tracks=truth),
    )
    kind = find("tracks")
    *sides, _ = kind.prepare(*tables, None)
    rows, out = np.arange(len(found)), np.full(len(found), 7.0)
    rows.setflags(write=False)
    kind.refine(*sides, Pairs(rows, rows, np.full(len(found), crowd), lowest), out)
    return out.tolist()


tracks = st.lists(st.none() | st.tuples(*[st.integers(0, 6)] * 4).map(lambda box: square(*box)), min_size=1, max_size=4)


def square(x, y, width, height):
    mask = np.zeros((8, 9), np.uint8)
    mask[y : y + height, x : x + width] = 1
    return track_scenes.code(mask)


@settings(max_examples=examples(100), deadline=None)
@given(tracks, tracks, st.randoms(use_true_random=False))
def test_laws(one, other, random):
    """An overlap is symmetric, does not depend on the order of frames nor on frames without either, and is no less than 0,
    no more than 1. A track whose box does not touch the other's does not overlap it.
    """
    length = max(len(one), len(other))
    one, other = ([*track, *[None] * (length - len(track))] for track in (one, other))
    (value,) = overlaps([one], [other])
    assert 0.0 <= value <= 1.0
    assert value == overlaps([other], [one])[0] == overlaps([one], [other], crowd=True)[0]
    order = random.sample(range(length), length)
    assert value == overlaps([[one[at] for at in order]], [[other[at] for at in order]])[0]
    assert value == overlaps([[None, *one, None]], [[None, *other, None]])[0]
    assert value == naive_tracks.overlap(*(naive_tracks.track(track, 8, 9) for track in (one, other)))
    columns = [find("tracks").given([track], "tracks") for track in (one, other)]
    (x, y, w, h), (p, q, v, u) = (column.bounds().table[0].tolist() for column in columns)
    touch = min(x + w, p + v) > max(x, p) and min(y + h, q + u) > max(y, q)
    assert touch or value == 0.0


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(tracks, tracks), min_size=1, max_size=5), st.sampled_from([0.1, 1 / 3, 0.5, 0.75, 1.0]))
def test_lowest(pairs, lowest):
    """Overlaps from the lowest threshold on are exact, and all others stay below it."""
    found, truth = zip(*pairs, strict=True)
    exact, made = overlaps(found, truth), overlaps(found, truth, lowest=lowest)
    for one, other in zip(exact, made, strict=True):
        assert one == other or max(one, other) < lowest


def test_irregular_masks_with_lowest():
    """The area and box of a mask with empty runs do not bound what it shares."""
    odd = {"size": [4, 4], "counts": [0, 0, 4, 0, 0, 4, 8]}
    for track in ([odd], [odd, odd]):
        assert overlaps([track], [track], lowest=0.5) == overlaps([track], [track])


@pytest.mark.parametrize(
    "segmentations",
    [
        [],
        [None, None],
        [None] * 200,
        [{**SQUARE, "note": "}, null, {"}, None],
        [{**SQUARE, "note": "}]"}, None],
        [None, {"note": {"a": [{"b": "]}"}]}, **SQUARE}, SQUARE],
        [[[2.0, 2.0, 9.0, 2.0, 9.0, 9.0]], None, SQUARE],
        [SQUARE, {**SQUARE, "note": '\\"}'}, SQUARE],
        [SQUARE, {**SQUARE, "note": "0"}, SQUARE],
    ],
)
@pytest.mark.parametrize("separators", [None, (",", ":"), (" ,\n", "\t: ")])
@pytest.mark.parametrize("block", [1, 1 << 20])
def test_elements_of_lists(segmentations, separators, block, tmp_path, monkeypatch):
    """Braces, quotes and blanks anywhere, many frames without a mask, and several blocks of records."""
    plain = [one if not isinstance(one, dict) else {key: one[key] for key in SQUARE} for one in segmentations]
    codes = [one if isinstance(one, dict) or one is None else SQUARE for one in plain]
    expected = overlaps([codes], [codes])[0] if codes else 0.0
    record = {"video_id": 1, "category_id": 1, "segmentations": segmentations}
    document = {
        "videos": [{"id": 1, "width": 14, "height": 14, "file_names": []}],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": [{**record, "areas": [100], "iscrowd": 0, "id": 1}],
    }
    paths = tmp_path / "truth.json", tmp_path / "found.json"
    for path, made in zip(paths, (document, [{**record, "score": 1 - k / 9} for k in range(3)]), strict=True):
        path.write_text(json.dumps(made, separators=separators))
    monkeypatch.setattr(ytvis, "_BLOCK", block)
    of = {"format": "ytvis", "iou_type": "tracks"}
    found = detmap.read(paths[1], ground_truth=detmap.read(paths[0], "ground_truth", **of), **of)
    column = found.shapes["tracks"]
    there = [frame for frame, one in enumerate(segmentations) if one is not None]
    assert column.lengths.tolist() == [len(segmentations)] * 3
    assert column.frames.tolist() == there * 3
    result = detmap.evaluate(*paths, "ytvis", iou_thresholds=[0.5])
    assert result.recall[0, 0, 0, -1] == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_blocks_of_records_make_no_difference(seed, tmp_path, monkeypatch):
    """Masks lie track by track however many records are read at a time, compressed strings and polygons alike."""
    paths = written(tmp_path, *track_scenes.scene(seed, odd=True))
    columns = []
    for block in (1, 500, 1 << 20):
        monkeypatch.setattr(ytvis, "_BLOCK", block)
        truth = detmap.read(paths[0], "ground_truth", iou_type="tracks")
        tables = truth, detmap.read(paths[1], ground_truth=truth, iou_type="tracks")
        columns.append([table.shapes["tracks"].arrays() for table in tables])
        columns[-1] += [{"bounds": table.boxes, "areas": table.shapes["tracks"].areas()} for table in tables]
    for made in columns[1:]:
        for one, other in zip(columns[0], made, strict=True):
            assert one.keys() == other.keys()
            assert all(same_bits(one[name], other[name]) for name in one)


@pytest.mark.parametrize("block", [1, 1 << 20])
def test_strings_of_a_file_stay_in_its_bytes(block, tmp_path, monkeypatch):
    """But for those with escapes, and where there is no room behind the document; bytes that a user gives are copied."""
    codes = [
        Masks.from_bitmaps(np.arange(64)[None, :, None] % 64 >= np.full((1, 1, 3), top)).to_rle()[0] for top in (8, 44)
    ]
    assert ["\\" in code["counts"] for code in codes] == [False, True]
    segmentations = [*codes, None, *codes[::-1]]
    escaped = json.dumps(segmentations[0]).replace(codes[0]["counts"][0], f"\\u{ord(codes[0]['counts'][0]):04x}")
    lists = [json.dumps(segmentations), f"[null, {escaped}]"]
    record = '{"video_id": 1, "category_id": 1, "score": 0.5, "segmentations": %s}'
    path = tmp_path / "found.json"
    path.write_text(f"[{', '.join(record % one for one in lists)}]")
    monkeypatch.setattr(ytvis, "_BLOCK", block)
    from_file, from_bytes = (
        ytvis.read_detections(source, None, Reading()).shapes["tracks"] for source in (path, path.read_bytes())
    )
    expected = [Masks.from_rle([one]).to_bitmaps()[0].tolist() for one in [*codes, *codes[::-1], codes[0]]]
    for column in (from_file, from_bytes):
        assert column.spans.tolist() == [[0, 4], [4, 5]]
        assert column.frames.tolist() == [0, 1, 3, 4, 1]
        assert [one.tolist() for one in column.masks.masks().to_bitmaps()] == expected
    places = from_file.masks.held.spans[:, 0]
    size = path.stat().st_size
    if block > 1:
        assert (places < size).tolist() == [True, False, False, True, False]


def test_escapes_that_make_another_mask(tmp_path):
    """With each backslash twice, as JSON has it, the strings would be other masks that fill the image too."""
    size = 800_000
    runs = [[100, 12_000] * lead + [100, 11_628] + [100, 12_024] * 15 for lead in range(3, 45)]
    strings = [string_of([*one, size - sum(one)]) for one in runs]
    codes = [{"size": [size, 1], "counts": one} for one in strings if one.count("\\") == 2]
    assert len(codes) > 30
    masks = Masks.from_rle(codes)
    others = Masks.from_rle([{**one, "counts": one["counts"].replace("\\", 2 * "\\")} for one in codes])
    assert same_bits(masks.areas(), others.areas())
    assert same_bits(masks.boxes()[:, 2:], others.boxes()[:, 2:])
    path = tmp_path / "found.json"
    record = {"video_id": 1, "category_id": 1, "score": 0.5, "segmentations": codes}
    path.write_text(json.dumps([record], separators=(",", ":")))
    column = ytvis.read_detections(path, None, Reading()).shapes["tracks"]
    assert column.masks.masks().to_rle() == masks.to_rle()


ESCAPED = track_scenes.code(np.arange(100)[:, None] < np.array([10] * 20 + [54] + [10] * 20))
RESULTS = json.dumps(
    [
        {"video_id": 2, "category_id": 1, "score": 0.5, "segmentations": [SQUARE, None, SQUARE, ESCAPED, SQUARE]},
        {"video_id": 1, "category_id": 2, "score": 1, "segmentations": [None, {**SQUARE, "note": "z"}, None]},
        {"segmentations": [], "video_id": 2, "score": 0.25, "category_id": 2, "note": ["\u00e9", {"a": None}]},
        {"video_id": 2, "category_id": 1, "score": 1e-3, "segmentations": [ESCAPED, ESCAPED, SQUARE]},
    ],
    separators=(",", ":"),
)


def outcome(data, folder, worth):
    """What becomes of results: a table's arrays, or the line that refuses them."""
    path = folder / "found.json"
    path.write_bytes(data)
    ytvis._WORTH_SCANNING = worth
    try:
        found = ytvis.read_detections(path, None, Reading())
    except detmap.InputError as error:
        return str(error)
    finally:
        ytvis._WORTH_SCANNING = 0
    column = found.shapes["tracks"]
    columns = {**column.arrays(), "scores": found.scores, "images": found.images.ids[found.images.codes]}
    columns |= {"categories": found.categories.ids[found.categories.codes], "areas": column.areas()}
    return {name: one.tolist() for name, one in columns.items()}, found.notices


def test_results_are_scanned_or_parsed(tmp_path):
    """The columns are the same; and they were scanned indeed."""
    found, records = scan_tracks(RESULTS.encode()), json.loads(RESULTS)
    assert found is not None
    lists = [json.loads(RESULTS[begin:end]) for begin, end in found.segmentations.tolist()]
    assert lists == [record["segmentations"] for record in records]
    made = outcome(RESULTS.encode(), tmp_path, 0)
    assert isinstance(made, tuple)
    assert made == outcome(RESULTS.encode(), tmp_path, 1 << 40)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"note":"z"', '"note":"}]"'),
        ('"note":"z"', '"note":"}],\\"z\\":1,\\"'),
        ('"note":"z"', '"note":"}],",":5,":"z"'),
        ('"note":"z"', '"note":"}]'),
        ('"note":"z"', '"counts":"0"'),
        ('"note":"z"', '"size":[14,14]'),
        ("null,{", "null null,{"),
        ("null,{", "null{"),
        ("null,{", "nul,{"),
        ("null,{", "null,,{"),
        ("null,{", "[[1 2]],{"),
        ("null,{", "[[1,2,3,4,5,6]],{"),
        ("null,{", '"a",{'),
        ("null,{", "1,{"),
        ("}]}", "},]}"),
        ("}]}", "}}"),
        ("[]", "[}]"),
        ("[]", "{}"),
        ("[]", "null"),
        ("[]", "[null,null]"),
        ('"score":1,', '"score":1,"score":0.75,'),
        ('"score":1,', '"sc\\u006fre":1,'),
        ('"score":1,', '"score":"1",'),
        ('"score":1,', '"score":1e999,'),
        ('"score":1,', ""),
        ('"video_id":1,', '"video_id":1.0,'),
        ('"video_id":1,', '"video_id":"1",'),
        ('"video_id":1,', '"video_id":9223372036854775808,'),
        ('"video_id":1,', '"video_id":null,'),
        ('"a":null', '"a":[1 2]'),
        ("\\u00e9", "\xff"),
        ("\\u00e9", "é"),
        ("[{", "\ufeff[{"),
    ],
)
def test_unusual_results(old, new, tmp_path):
    """Results that JSON allows and the scanner does not, and those that it does not allow: both ways end in the same."""
    assert old in RESULTS
    for count in (1, -1):
        data = RESULTS.replace(old, new, count).encode("latin-1" if new == "\xff" else "utf-8")
        assert outcome(data, tmp_path, 0) == outcome(data, tmp_path, 1 << 40)


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_results(data, tmp_path):
    """Some bytes that mean something to JSON or to a mask are put in, taken out or exchanged."""
    text = bytearray(RESULTS.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.sampled_from([b"", *map(bytes, zip(b'{}[]",:\\ n01\n'))])
        )
    assert outcome(bytes(text), tmp_path, 0) == outcome(bytes(text), tmp_path, 1 << 40)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(tracks, max_size=5), st.randoms(use_true_random=False))
def test_bounds_and_areas_of_some_tracks(rows, random):
    """Of tracks in another order, some left out, they are those of the same tracks; of one without a pixel they are 0."""
    column = find("tracks").given(rows, "here")
    order = np.array(random.sample(range(len(rows)), random.randint(0, len(rows))), np.int64)
    some = column.take(order)
    assert same_bits(some.bounds().table, column.bounds().table[order])
    assert same_bits(some.areas(), column.areas()[order])
    for row, track in enumerate(rows):
        masks = [Masks.from_rle([one]).to_bitmaps()[0] for one in track if one is not None]
        pixels = [int(one.sum()) for one in masks if one.any()]
        assert column.areas()[row] == (sum(pixels) / len(pixels) if pixels else 0)
        if pixels:
            down, across = np.nonzero(np.any(masks, axis=0))
            corner, far = [across.min(), down.min()], [across.max() + 1, down.max() + 1]
            assert column.bounds().table[row].tolist() == [*corner, *np.subtract(far, corner)]
        else:
            assert not column.bounds().table[row].any()


@pytest.mark.parametrize(
    ("side", "record", "expected"),
    [
        ("truth", {"areas": None}, "annotations[0], field 'areas': expected `array`"),
        ("truth", {"segmentations": [{"size": [4, 4], "counts": "~"}]}, "annotation 0, frame 0, field 'segmentation'"),
        ("truth", {"video_id": 9}, "field 'image_id'"),
        ("found", {"score": "1"}, "record 0, field 'score': expected `float`, got `str`"),
        ("found", {"segmentations": [None, {"size": [4, 4]}]}, "record 0, frame 1"),
        ("found", {"segmentations": [None, 7]}, "must be polygons, or an object with size and counts"),
        ("found", {"segmentations": {}}, "record 0, field 'segmentations': must be a list"),
        ("truth", {"segmentations": None}, "annotation 0, field 'segmentations': must be a list"),
        ("found", {"video_id": 9}, "is not an image of the ground truth"),
        ("found", {"video_id": 1 << 63}, "record 0, field 'video_id': expected `int` <= 9223372036854775807"),
        ("truth", {"category_id": -1 << 70}, "annotations[0], field 'category_id': "),
    ],
)
def test_bad_json(side, record, expected, tmp_path):
    track = {"video_id": 1, "category_id": 1, "segmentations": [SQUARE]}
    annotation, result = {**track, "areas": [100], "iscrowd": 0, "id": 1}, {**track, "score": 0.5}
    (annotation if side == "truth" else result).update(record)
    videos = [{"id": 1, "width": 14, "height": 14, "file_names": ["a"]}]
    document = {"videos": videos, "categories": [{"id": 1, "name": "a"}], "annotations": [annotation]}
    with pytest.raises(detmap.InputError) as error:
        detmap.evaluate(*written(tmp_path, document, [result]), "ytvis")
    assert expected in str(error.value)
    assert "\n" not in str(error.value)
