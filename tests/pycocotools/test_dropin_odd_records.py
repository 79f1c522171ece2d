"""The drop-in against pycocotools on records with odd values."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from dropin import compare, load, shown
from dropin_workloads import INF, NAN, PLAIN, run


def odd(**changes):
    """A data set of three objects and four detections with some records changed: name "gt" or "dt" to index to fields."""
    box = [10.0, 10.0, 20.0, 20.0]
    gts = [{"id": i, "image_id": 1, "category_id": 1, "bbox": box, "area": 400.0, "iscrowd": 0} for i in (1, 2, 3)]
    gts[2] |= {"image_id": 2, "iscrowd": 1}
    dts = [
        {"image_id": i, "category_id": 1, "bbox": box, "score": s} for i, s in ((1, 0.9), (1, 0.8), (2, 0.7), (2, 0.9))
    ]
    for records, change in ((gts, changes.get("gt", {})), (dts, changes.get("dt", {}))):
        for i, fields in change.items():
            records[i] = {k: v for k, v in {**records[i], **fields}.items() if v is not ...}
    images = [{"id": 1, "height": 60, "width": 60}, {"id": 2, "height": 60, "width": 60}]
    return {"images": images, "annotations": gts, "categories": [{"id": 1, "name": "a"}]}, dts


ODD = {
    "no iscrowd": {"gt": {0: {"iscrowd": ...}}},
    "no area": {"gt": {0: {"area": ...}}},
    "no bbox": {"gt": {0: {"bbox": ...}}},
    "no id": {"gt": {0: {"id": ...}}},
    "no image": {"gt": {0: {"image_id": ...}}},
    "no category": {"gt": {0: {"category_id": ...}}},
    "iscrowd 2": {"gt": {0: {"iscrowd": 2}}},
    "iscrowd true": {"gt": {0: {"iscrowd": True}}},
    "iscrowd a half": {"gt": {0: {"iscrowd": 0.5}}},
    "iscrowd none": {"gt": {0: {"iscrowd": None}}},
    "iscrowd 300": {"gt": {0: {"iscrowd": 300}}},
    "id a word": {"gt": {0: {"id": "a"}}},
    "ids are digits": {"gt": {0: {"id": "17"}, 1: {"id": "18"}}},
    "id a fraction": {"gt": {0: {"id": 1.5}}},
    "id none": {"gt": {0: {"id": None}}},
    "id negative": {"gt": {0: {"id": -4}}},
    "id beyond 64 bits": {"gt": {0: {"id": 2**70}}},
    "area nan": {"gt": {0: {"area": NAN}}},
    "area infinite": {"gt": {0: {"area": INF}}},
    "area negative": {"gt": {0: {"area": -3}}},
    "area a word": {"gt": {0: {"area": "big"}}},
    "gt box nan": {"gt": {0: {"bbox": [10, 10, NAN, 20]}}},
    "gt box infinite": {"gt": {0: {"bbox": [10, 10, INF, INF]}}},
    "gt box negative": {"gt": {0: {"bbox": [30, 30, -20, -20]}}},
    "gt box a tuple": {"gt": {0: {"bbox": (10, 10, 20, 20)}}},
    "gt box an array": {"gt": {0: {"bbox": np.array([10, 10, 20, 20])}}},
    "gt box of three": {"gt": {0: {"bbox": [1, 2, 3]}}},
    "boxes that vanish": {"gt": {0: {"bbox": [1, 1, 1e-200, 1e-200]}}, "dt": {0: {"bbox": [1, 1, 1e-200, 1e-200]}}},
    "boxes that overflow": {"gt": {0: {"bbox": [1, 1, 1e200, 1e200]}}, "dt": {0: {"bbox": [1, 1, 1e200, 1e200]}}},
    "score nan": {"dt": {1: {"score": NAN}}},
    "score infinite": {"dt": {1: {"score": INF}, 0: {"score": -INF}}},
    "score missing": {"dt": {1: {"score": ...}}},
    "score a word": {"dt": {1: {"score": "high"}}},
    "score none": {"dt": {1: {"score": None}}},
    "scores integers": {"dt": {i: {"score": i} for i in range(4)}},
    "scores true": {"dt": {i: {"score": True} for i in range(4)}},
    "scores single precision": {"dt": {i: {"score": np.float32(0.1 * i)} for i in range(4)}},
    "scores unsigned": {"dt": {i: {"score": np.uint8(i)} for i in range(4)}},
    "scores huge": {"dt": {i: {"score": 2**60 + i} for i in range(4)}},
    "dt box nan": {"dt": {0: {"bbox": [10, 10, NAN, 20]}}},
    "dt box infinite": {"dt": {0: {"bbox": [10, 10, INF, INF]}}},
    "dt box negative": {"dt": {0: {"bbox": [30, 30, -20, -20]}}},
    "dt box a tuple": {"dt": {2: {"bbox": (10, 10, 20, 20)}}},
    "dt box an array": {"dt": {0: {"bbox": np.array([10.0, 10, 20, 20])}}},
    "dt box single precision": {"dt": {0: {"bbox": [10, 10, np.float32(0.1), np.float32(10240)]}}},
    "dt box integers": {"dt": {0: {"bbox": [10, 10, 20, 20]}}},
    "dt box huge integers": {"dt": {0: {"bbox": [10, 10, 2**40 + 1, 2**40 + 1]}}},
    "dt box of three": {"dt": {1: {"bbox": [1, 2, 3]}}},
    "dt box of five": {"dt": {1: {"bbox": [1, 2, 3, 4, 5]}}},
    "dt box of words": {"dt": {1: {"bbox": ["a", "b", "c", "d"]}}},
    "first dt box empty": {"dt": {0: {"bbox": []}}},
    "later dt box empty": {"dt": {1: {"bbox": []}}},
    "dt box missing": {"dt": {1: {"bbox": ...}}},
    "dt category missing": {"dt": {1: {"category_id": ...}}},
    "dt category unknown": {"dt": {1: {"category_id": 5}}},
    "dt category a word": {"dt": {1: {"category_id": "1"}}},
    "dt image unknown": {"dt": {1: {"image_id": 5}}},
    "dt image a fraction": {"dt": {1: {"image_id": 1.0}}},
    "dt image numpy": {"dt": {1: {"image_id": np.int64(1)}}},
    "dt image true": {"dt": {1: {"image_id": True}}},
    "dt image missing": {"dt": {1: {"image_id": ...}}},
}


#: Refused when the results are evaluated; by pycocotools when they are loaded.
LATE = {"dt box missing", "dt box of three", "dt box of words", "later dt box empty", "dt category missing"}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_odd_records(name):
    data = odd(**ODD[name])
    compare(lambda api: shown(run(api.COCOeval(*load(api, *data), "bbox"))), text=name not in LATE)


def test_ids_that_are_strings():
    dataset, results = copy.deepcopy(PLAIN)
    for record in [*dataset["annotations"], *results]:
        record["image_id"] = f"image {record['image_id']}"
        record["category_id"] = f"category {record['category_id']}"
    for kind in ("images", "categories"):
        for record in dataset[kind]:
            record["id"] = f"{'image' if kind == 'images' else 'category'} {record['id']}"
    value = compare(lambda api: shown(run(api.COCOeval(*load(api, dataset, results), "bbox"))))
    assert isinstance(value, dict)


@pytest.mark.parametrize("kind", ["bbox", "segm", "keypoints"])
@pytest.mark.parametrize(
    "zero", ["0", "00", "-0", "0.0", " 0", "0e5", "0_0", "٠", "1e-400", "nan", "1", "", "abc", "0x0"]
)
def test_ids_of_annotations_that_are_strings(zero, kind):
    """Read as 0 such an id is a miss; what is no number is an error in `evaluate`, if it is matched at all."""
    points = [5, 5, 2] * 17
    shapes = [
        {"bbox": [x, 0, 10, 10], "segmentation": [[x, 0, x, 10, x + 10, 10, x + 10, 0]], "keypoints": points}
        for x in (0, 20)
    ]
    fields = [{"image_id": i, "category_id": 1, **shape} for i, shape in enumerate(shapes, 1)]
    more = {"area": 100, "iscrowd": 0, "num_keypoints": 17}
    dataset = {
        "images": [{"id": i, "height": 40, "width": 40} for i in (1, 2)],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": [{**one, **more, "id": own} for one, own in zip(fields, (zero, "17"), strict=True)],
    }
    shape = {"bbox": "bbox", "keypoints": "keypoints"}.get(kind, "bbox")
    results = [{**{name: one[name] for name in ("image_id", "category_id", shape)}, "score": 0.9} for one in fields]

    def client(api):
        evaluation = api.COCOeval(*load(api, dataset, results), kind)
        try:
            evaluation.evaluate()
        except ValueError as error:
            return str(error)
        evaluation.accumulate()
        evaluation.summarize()
        return evaluation.stats

    value = compare(client)
    assert isinstance(value, str) == (zero in ("", "abc", "0x0"))
    if not isinstance(value, str):
        assert (value[0] > 0.9) == (zero in ("nan", "1"))


def test_ids_that_are_no_numbers_and_match_nothing():
    dataset, results = odd(
        gt={i: {"id": f"a{i}"} for i in range(3)}, dt={i: {"bbox": [50, 50, 5, 5]} for i in range(4)}
    )
    value = compare(lambda api: shown(run(api.COCOeval(*load(api, dataset, results), "bbox"))))
    assert isinstance(value, dict)
