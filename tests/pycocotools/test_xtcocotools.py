"""The drop-in for xtcocotools gives what its protocols give."""

from __future__ import annotations

import json

import numpy as np
import pose_scenes
import pytest
from support import examples, same_bits

import detmap
from detmap.detection.protocols import PRESETS, parts_of
from detmap.pycocotools.xtcocotools import COCO, COCOeval


def evaluated(tmp_path, document, results, kind, sigmas, **how):
    (tmp_path / "truth.json").write_text(json.dumps(document))
    (tmp_path / "found.json").write_text(json.dumps(results))
    truth = COCO(str(tmp_path / "truth.json"))
    made = COCOeval(truth, truth.loadRes(str(tmp_path / "found.json")), kind, np.array(sigmas), **how)
    made.evaluate()
    made.accumulate()
    made.summarize()
    return made


def minus_one(values):
    return np.where(np.isnan(values), -1.0, values)


@pytest.mark.parametrize("part", parts_of("wholebody"))
@pytest.mark.parametrize("seed", range(examples(2)))
def test_parts_of_whole_bodies(seed, part, tmp_path, capsys):
    document, results = pose_scenes.scene(seed)
    protocol = parts_of("wholebody")[part]
    made = evaluated(tmp_path, document, results, f"keypoints_{part}", protocol.sigmas)
    result = detmap.evaluate(document, results, protocol)
    assert same_bits(made.eval["precision"], minus_one(result.precision))
    assert same_bits(made.eval["recall"], minus_one(result.recall))
    assert made.stats.tolist() == pytest.approx(minus_one(list(result.values())).tolist(), abs=0)
    assert "Average Precision" in capsys.readouterr().out


@pytest.mark.parametrize("seed", range(examples(3)))
def test_crowds(seed, tmp_path, capsys):
    document, results = pose_scenes.scene(seed, pose_scenes.CROWDPOSE)
    made = evaluated(tmp_path, document, results, "keypoints_crowd", PRESETS["crowdpose"].sigmas, use_area=False)
    result = detmap.evaluate(document, results, "crowdpose", unseen="dropped")
    names = ("AP", "AP50", "AP75", "AR_20", "AR50", "AR75", "AP_easy", "AP_medium", "AP_hard")
    assert made.stats.tolist() == minus_one([result[name] for name in names]).tolist()
    assert "easy" in capsys.readouterr().out


def test_boxes(tmp_path):
    document, results = pose_scenes.scene(1)
    boxes = [
        {"image_id": one["image_id"], "category_id": 1, "bbox": [9, 9, 40, 60], "score": one["score"]}
        for one in results
    ]
    made = evaluated(tmp_path, document, boxes, "bbox", [0.1])
    assert same_bits(made.eval["precision"], minus_one(detmap.evaluate(document, boxes).precision))
