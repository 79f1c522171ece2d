"""A kind of shape from outside of the package, growth/spans.py: out of COCO's files by its name, and equal to a twin."""

import json

import naive
import numpy as np
import pytest
from growth import spans
from legs import examples

import detmap
from detmap.cli import main
from detmap.errors import InputError

pytestmark = pytest.mark.plugins("spans")


def scene(seed, images=5, objects=8, detections=30):
    """Ground truth and results, of spans that begin and end at whole seconds, so that the twin is exact."""
    rng = np.random.default_rng(seed)

    def records(count, **more):
        begin = rng.integers(0, 40, count)
        where = {"image_id": rng.integers(0, images, count), "category_id": rng.integers(1, 3, count)}
        columns = where | {"span": np.stack([begin, begin + rng.integers(0, 20, count)], axis=1)} | more
        return [
            dict(zip(columns, row, strict=True)) for row in zip(*map(np.ndarray.tolist, columns.values()), strict=True)
        ]

    size, found = images * objects, images * detections
    truth = {"images": [{"id": i} for i in range(images)], "categories": [{"id": 1}, {"id": 2}]}
    truth["annotations"] = records(size, id=np.arange(1, size + 1), iscrowd=(rng.random(size) < 0.1).astype(int))
    return truth, records(found, score=rng.integers(0, 40, found) / 40)


def evaluated(truth, found):
    truth = detmap.read_coco(truth, iou_type="span")
    return detmap.evaluate(truth, detmap.read_coco_results(found, truth, iou_type="span"), iou_type="span")


def test_spans_equal_the_twin():
    """Boxes a pixel high overlap as their spans do."""
    areas = [row[1:] for row in spans.KIND.decisions["area_ranges"]]
    for seed in range(examples(20)):
        truth, found = scene(seed)
        result = evaluated(truth, found)
        assert 0 < result["AP"] < 1
        assert "missing_area" not in result.notices  # the kind says how large a span is
        for row in truth["annotations"] + found:
            begin, end = row["span"]
            row |= {"bbox": [begin, 0, end - begin, 1], "area": end - begin}
        wanted = naive.coco_evaluate(range(5), [1, 2], truth["annotations"], found, area_ranges=areas, max_dets=[50])
        for name, expected in wanted.items():
            assert np.array_equal(np.nan_to_num(getattr(result, name), nan=-1), expected), (seed, name)


def test_the_evaluator_and_the_command_line_take_spans(tmp_path, capsys):
    truth, found = scene(1)
    expected = evaluated(truth, found)
    evaluator = detmap.Evaluator(iou_type="span", categories=[1, 2])
    for image in range(5):
        own, objects = ([r for r in side if r["image_id"] == image] for side in (found, truth["annotations"]))
        sides = [
            {key: [r[name] for r in side] for key, name in (("spans", "span"), ("labels", "category_id"), more)}
            for side, more in ((own, ("scores", "score")), (objects, ("iscrowd", "iscrowd")))
        ]
        evaluator.update(*sides, image_ids=image)
    assert evaluator.compute()["AP"] == expected["AP"]
    paths = [tmp_path / "truth.json", tmp_path / "found.json"]
    for path, content in zip(paths, (truth, found), strict=True):
        path.write_text(json.dumps(content))
    words = ["--plugin", "growth.spans", "--iou-type", "span", "--format", "json", "--quiet"]
    assert main(["eval", *map(str, paths), *words]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"] == json.loads(expected.to_json())["metrics"]


@pytest.mark.parametrize("value", [[3], [5, 4], ["1", 2], [[1], [2, 3]], [1, 10**400], "12", None])
def test_a_span_that_is_none(value):
    truth, _ = scene(2)
    truth["annotations"][7]["span"] = value
    with pytest.raises(InputError, match="annotation 7, field 'span'"):
        detmap.read_coco(truth, iou_type="span")


def test_large_files_hold_them_too(tmp_path):
    """Of 128 KiB and more, which are scanned where a field is one that the scanner knows."""
    records = [
        {"image_id": 1 + k % 5, "category_id": 1, "span": [k % 90, k % 90 + 2.5], "score": k / 9000}
        for k in range(9000)
    ]
    text = json.dumps(records).encode()
    assert len(text) > 500_000
    found = detmap.read_coco_results(text, iou_type="span")
    assert len(found) == 9000
    assert found.scores.tolist() == [record["score"] for record in records]
