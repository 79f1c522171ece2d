"""A preset that decides a kind of shape other than boxes implies it: files are read for it, and no other is taken."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from support import assert_same_result

import detmap
from detmap.cli import main
from detmap.data import benchmarks
from detmap.detection.protocols import COCO, PRESETS
from detmap.errors import OptionError

POSES = replace(COCO, name="poses", iou_type="keypoints", area_ranges=(("all", 0.0, 1e10),), max_dets=(20,))
REFUSED = r"the protocol 'poses' compares keypoints, not bbox: leave out the iou_type \(--iou-type\), or name another"


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Poses of 17 points, in ground truth with a field that asks for the protocol "poses"."""
    asking = benchmarks.Benchmark("CrowdPose", {"images": ("crowdIndex",)}, protocol="poses")
    others = [one for one in benchmarks.BENCHMARKS if one.name != asking.name]
    monkeypatch.setattr(benchmarks, "BENCHMARKS", (*others, asking))
    monkeypatch.setitem(PRESETS, "poses", POSES)
    monkeypatch.setitem(PRESETS._modules, "poses", None)
    points = [n for k in range(17) for n in (10 + k, 10 + 2 * k, 2)]
    truth = {
        "images": [{"id": 1, "width": 64, "height": 64, "crowdIndex": 0.5}],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": [5, 5, 40, 50], "area": 1500, "iscrowd": 0}
            | {"keypoints": points, "num_keypoints": 17}
        ],
    }
    moved = [n + 1 if place % 3 < 2 else n for place, n in enumerate(points)]
    results = [{"image_id": 1, "category_id": 1, "bbox": [20, 5, 40, 50], "keypoints": moved, "score": 0.5}]
    paths = tmp_path / "truth.json", tmp_path / "results.json"
    for path, document in zip(paths, (truth, results), strict=True):
        path.write_text(json.dumps(document))
    return [str(path) for path in paths]


def test_files_are_read_for_the_kind_of_the_preset(files):
    expected = detmap.evaluate(*files, POSES)
    assert expected.protocol.iou_type == "keypoints"
    assert expected["AP"] > 0
    assert_same_result(detmap.evaluate(*files, "poses"), expected)
    assert_same_result(detmap.evaluate(*files, "poses", iou_type="keypoints"), expected)
    assert_same_result(detmap.evaluate(*files, "auto"), expected)


def test_another_kind_is_refused_in_one_line(files, capsys):
    with pytest.raises(OptionError, match=REFUSED):
        detmap.evaluate(*files, "poses", iou_type="bbox")
    with pytest.raises(OptionError, match=REFUSED):
        detmap.Evaluator("poses", iou_type="bbox")
    with pytest.raises(OptionError, match=REFUSED):
        detmap.evaluate("absent.json", "absent.json", "poses", iou_type="bbox")
    assert detmap.evaluate(*files, POSES, iou_type="bbox").protocol.iou_type == "bbox"  # a Protocol is no preset
    for protocol in ("poses", "auto"):
        assert main(["eval", *files, "--protocol", protocol, "--iou-type", "bbox"]) == 2
        assert "compares keypoints, not bbox" in capsys.readouterr().err


def test_tables_of_boxes_are_refused(files):
    truth = detmap.read(files[0], "ground_truth")
    found = detmap.read(files[1], ground_truth=truth)
    with pytest.raises(detmap.InputError, match="keypoints"):
        detmap.evaluate(truth, found, "poses")
