"""What type checkers find in calls: misspelt names, and nothing in what plug-ins may do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from detmap import PRESETS
from detmap.detection.protocols import ProtocolName
from detmap.shapes import KINDS
from detmap.shapes.kinds import IouType

pytest.importorskip("mypy")
ROOT = Path(__file__).resolve().parents[2]

#: Lines that are right, and lines with the text that mypy must say of each.
RIGHT = [
    'detmap.evaluate(truth, found, "voc2007", iou_type="segm", ties="file", min_score=None)',
    'detmap.evaluate(truth, found, PluginName("mine"), iou_type=PluginName("spans"))',
    'detmap.evaluate(truth, found, detmap.PRESETS["mine"], max_dets=[1, 10])',
    'detmap.Evaluator(iou_type="keypoints", box_format="cxcywh")',
    'detmap.Protocol(name="mine", iou_thresholds=(0.5,), iou_type=PluginName("spans"))',
    'detmap.read("x.json", "ground_truth", invalid_boxes="drop", columns={"image": "file"})',
    'detmap.convert("a.csv", "b.json", columns="image=file", box_format="xyxy")',
    'detmap.check("a.json", gt_format="coco", class_map={"a": "b"})',
]
WRONG = {
    'detmap.evaluate(truth, found, "cocoo")': "cocoo",
    'detmap.evaluate(truth, found, protocol="cocoo")': "cocoo",
    'detmap.evaluate(truth, found, iou_type="mask")': "mask",
    'detmap.evaluate(truth, found, matching="greedy")': "greedy",
    "detmap.evaluate(truth, found, min_scores=0.5)": "min_scores",
    'detmap.Evaluator(iou_type="mask")': "mask",
    'detmap.Evaluator(box_format="zz")': "zz",
    'detmap.match(truth, found, iou_type="mask")': "mask",
    'detmap.diagnose(truth, found, "cocoo")': "cocoo",
    'detmap.Protocol(name="mine", iou_thresholds=(0.5,), iou_type="mask")': "mask",
    'detmap.read("x.json", invalid_boxes="no")': "invalid_boxes",
    "detmap.read('x.json', colour=1)": "colour",
    'detmap.convert("a", "b", box_format="zz")': "box_format",
    "detmap.check('a.json', class_maps={})": "class_maps",
}


def test_the_names_that_type_checkers_know_are_those_that_ship():
    assert set(get_args(ProtocolName)) == {"auto", *(name for name in PRESETS if PRESETS.is_shipped(name))}
    assert set(get_args(get_args(IouType)[0])) == {name for name in KINDS if KINDS.is_shipped(name)}


@pytest.mark.slow
def test_mypy_finds_misspelt_names_and_lets_those_of_plug_ins_pass(tmp_path):
    head = [
        "import detmap",
        "from detmap.plugins import PluginName",
        'truth, found = detmap.read_coco("a.json"), detmap.read_coco_results("b.json")',
    ]
    (tmp_path / "calls.py").write_text("\n".join([*head, *RIGHT, *WRONG]) + "\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context"]
    command += ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(tmp_path / "cache")]
    run = subprocess.run(
        [*command, str(tmp_path / "calls.py")], cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )
    said: dict[int, list[str]] = {}
    for line in run.stdout.splitlines():
        place, _, text = line.partition(": error: ")
        if text:
            said.setdefault(int(place.rpartition(":")[2]), []).append(text)
    first = len(head) + len(RIGHT) + 1
    assert sorted(said) == list(range(first, first + len(WRONG))), run.stdout + run.stderr
    for number, word in enumerate(WRONG.values(), first):
        assert any(word in text for text in said[number]), said[number]
