"""Diagnoses of odd data, held to the laws, and files of attributes as people write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import detmap
from detmap.detection.matches import HIT, IGNORED
from detmap.diagnostics import PARTS
from detmap.errors import InputError, OptionError

ROOT = Path(__file__).resolve().parents[2]


def boxes(rng, count, scale=1.0):
    corner = rng.integers(0, 6, (count, 2)) * 8.0
    side = rng.choice([8.0, 12.0, 16.0, 300.0], (count, 2), p=[0.4, 0.3, 0.2, 0.1])
    return np.column_stack([corner, corner + side]) * scale


def tables(rng, objects=30, found=40, classes=3, of_truth=None, of_found=None, **odd):
    ids = np.array(odd.get("ids", np.arange(5)))
    scale = odd.get("scale", 1.0)
    truth = detmap.GroundTruth.from_arrays(
        image_ids=ids[rng.integers(0, ids.size, objects)],
        category_ids=rng.integers(0, classes, objects),
        boxes=boxes(rng, objects, scale),
        images=ids,
        categories=np.arange(classes),
        **(of_truth(objects) if of_truth else {}),
    )
    given = {"scores": rng.random(found), "boxes": boxes(rng, found, scale)} | (of_found(found) if of_found else {})
    detections = detmap.Detections.from_arrays(
        image_ids=ids[rng.integers(0, ids.size, found)],
        category_ids=rng.integers(0, odd.get("found_classes", classes), found),
        **given,
    )
    return truth, detections


ODD = {
    "one class": {"classes": 1},
    "no detections": {"found": 0},
    "no objects": {"objects": 0},
    "nothing at all": {"objects": 0, "found": 0},
    "crowds alone": {"of_truth": lambda n: {"crowd": np.ones(n, np.bool_)}},
    "ids of images are texts": {"ids": ["b/ü", 'a"b', "c,d", "<i>"]},
    "all scores equal": {"of_found": lambda n: {"scores": np.full(n, 0.5)}},
    "scores without bounds": {"of_found": lambda n: {"scores": np.linspace(-9, 1e300, n)}},
    "endless scores": {"of_found": lambda n: {"scores": np.where(np.arange(n) % 5, 0.5, np.inf)}},
    "boxes beyond every area range": {"scale": 1e6},
    "boxes without area": {"of_found": lambda n: {"boxes": np.zeros((n, 4))}},
    "more classes than the ground truth has": {"found_classes": 6},
    "many classes with few objects": {"classes": 300, "objects": 100, "found": 200},
    "classes of one name": {"of_truth": lambda n: {"category_names": dict.fromkeys(range(3), "cat")}},
}


@pytest.mark.compiled
@pytest.mark.parametrize("odd", ODD)
def test_laws_hold_of_odd_data(odd):
    truth, found = tables(np.random.default_rng(0), **ODD[odd])
    made = detmap.diagnose(truth, found)
    result = detmap.evaluate(truth, found, iou_thresholds=[0.5])
    tide, matches = made.tide(), made.matches
    # Hits, ignored ones and errors are all detections there are, and AP is that of `evaluate`.
    parts = np.count_nonzero(matches.outcome == HIT), np.count_nonzero(matches.outcome == IGNORED)
    assert sum(parts) + np.count_nonzero(tide.error) == len(matches) == len(result.tally)
    assert parts[0] == result.tally.hit_counts[:, 0, 0].sum()
    assert tide["AP"] == pytest.approx(result["AP50"], abs=1e-12, nan_ok=True)
    if matches.outcome.size and (matches.outcome == HIT).any():  # else no object is left once all errors are mended
        assert tide["AP"] + sum(row["progressive"] for row in tide.rows()) == pytest.approx(1, abs=1e-12)
    matrix = made.confusion().matrix
    assert matrix[:-1].sum(axis=1).tolist() == made.positives.tolist()
    if not np.isnan(made.score):
        counts = result.counts(score=made.score)
        assert matrix[:, :-1].sum(axis=0).tolist() == (counts.true_positives + counts.false_positives).tolist()
    for name in PARTS:
        if name == "calibration" and len(matches) and not 0 <= found.scores.min() <= found.scores.max() <= 1:
            with pytest.raises(OptionError, match="only scores between 0 and 1 can be calibrated"):
                made.part(name)
        else:
            made.part(name).to_json()
    made.tide(rules="tidecv")


@pytest.mark.compiled
@pytest.mark.parametrize("scale", [1.0, 3e4, 1e6])
def test_a_slice_of_all_objects_is_all_there_is(scale):
    """Also of objects and detections beyond the area range of all objects, which end at 1e10 in COCO."""
    rng = np.random.default_rng(1)
    truth, found = tables(rng, 200, 300, 2, scale=scale)
    made = detmap.diagnose(truth, found)
    (row,) = made.slices(by="area", ranges={"area": {"every": (0, np.inf)}}).rows()
    outcome = made.matches.outcome
    assert (row["objects"], row["AP"]) == (int(made.positives.sum()), pytest.approx(made.ap, abs=0, nan_ok=True))
    assert (row["hits"], row["ignored"]) == (int((outcome == HIT).sum()), int((outcome == IGNORED).sum()))


@pytest.fixture(scope="module")
def small():
    files = [ROOT / "fixtures/coco" / name for name in ("ground_truth.json", "detections.json")]
    truth = detmap.read(files[0], "ground_truth", image_facts=True)
    return detmap.diagnose(truth, detmap.read(files[1], "detections", ground_truth=truth))


@pytest.mark.compiled
def test_a_file_of_attributes_is_read_again_when_asked_for_again(small, tmp_path):
    first, second = small.ground_truth.images.ids.tolist()[:2]
    path = tmp_path / "a.csv"
    found = []
    for text in (f'image_id,weather\r\n{first},"rain, ""heavy"""\r\n', f"\ufeffimage_id,weather\n{second},sun\n"):
        path.write_text(text, "utf-8")
        made = small.slices(by="weather", attributes=path)
        found.append([(row["slice"], row["objects"]) for row in made.rows()])
        left = int(small.positives.sum()) - made.rows()[0]["objects"]
        assert f"weather: {left} objects have no value, and are in no slice" in made.notes
    assert [name for rows in found for name, _ in rows] == ['rain, "heavy"', "sun"]


@pytest.mark.compiled
def test_attributes_without_a_value_are_in_no_slice(small):
    count = small.ground_truth.images.ids.size
    for values in ([None, "a"], [np.nan, 1.5], ["", "a"], np.array([np.nan, "a"], object)):
        column = [values[k % 2] for k in range(count)]
        made = small.slices(by="w", attributes={"w": column})
        assert [row["slice"] for row in made.rows()] == [str(values[1])]


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("image_id,w\nA,a\nB,b\nA,c\n", "line 4, field 'image_id': has been said in line 2"),
        ("image_id,\nA,a\n", "none empty"),
        ("image_id,w\x1b\nA,a\nC\x1b,b\n", r"is not an image of the ground truth \(got 'C\\x1b'\)"),
        ('image_id,w\nA,"a\nB,b\n', "is not a CSV file: unexpected end of data"),
        ("image_id;w\nA;a\n", "needs a first line"),
        ("object,w\n-1,a\n", "is not an object of the ground truth"),
        ("image_id,w\nA\n", "line 2: has 1 values where 2 are expected"),
        ("image_id,w,w\nA,a,b\n", "each once"),
    ],
)
def test_files_of_attributes_that_are_refused(small, tmp_path, text, said):
    first, second = map(str, small.ground_truth.images.ids.tolist()[:2])
    path = tmp_path / "a.csv"
    path.write_text(text.replace("A", first).replace("B", second), "utf-8")
    with pytest.raises(InputError, match=said) as caught:
        small.slices(attributes=path)
    assert "\x1b" not in str(caught.value)
    assert "\n" not in str(caught.value)
