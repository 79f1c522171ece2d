"""Pages, titles and checks call what boxes lie on by its name: an image, a video, or a sample of a recording."""

from __future__ import annotations

import re

import pytest
from pages import ROOT

import detmap
from detmap import cli
from detmap.shapes import KINDS

FIXTURES = ROOT / "fixtures"

#: Names of scenes, the files in which they are, and the protocol.
SCENES = [
    ("video", "temporal/activitynet.json", "temporal/activitynet_results.json", "activitynet"),
    ("video", "temporal/thumos14/annotation", "temporal/thumos14/detections.txt", "thumos14"),
    ("video", "ytvis/ground_truth.json", "ytvis/results.json", "ytvis"),
    ("sample", "nuscenes/samples.json", "nuscenes/results.json", "nuscenes"),
    ("image", "coco/ground_truth.json", "coco/detections.json", "coco"),
]


@pytest.mark.compiled
@pytest.mark.parametrize(("scene", "truth", "found", "protocol"), SCENES, ids=[one[-1] for one in SCENES])
def test_scenes_have_their_name(tmp_path, capsys, scene, truth, found, protocol):
    pytest.importorskip("jinja2")
    files = [str(FIXTURES / truth), str(FIXTURES / found), "--protocol", protocol]
    for command in ("eval", "diagnose"):
        assert cli.main([command, *files, "--quiet"]) == 0
        title = capsys.readouterr().out.partition("\n")[0]
        assert re.search(rf"objects, \d+ {scene}s\b", title), title
    page = tmp_path / "a.html"
    assert cli.main(["report", *files, "--out", str(page), "--bootstrap", "200", "--quiet"]) == 0
    text = page.read_text("utf-8")
    assert re.search(rf" · \d+ {scene}s · ", text)
    capital = scene.capitalize()
    for said in (f"<dt>{capital}s</dt>", f">Worst {scene}s<", f"{capital}s that cost most", f"if this {scene} alone"):
        assert said in text
    assert f"objects to be found in the {scene}" in text
    assert re.search(rf"\d of {'an' if scene == 'image' else 'a'} {scene}<", text)
    assert ("--images names the folder" in text) == (scene == "image")
    if "with something to find; estimated bias" in text:
        assert f"; {scene}s are taken as independent" in text
    checked = detmap.check(FIXTURES / truth, FIXTURES / found, iou_type=detmap.PRESETS[protocol].iou_type)
    assert "unknown_sizes" not in {one.code for one in checked.findings}


def test_every_kind_names_its_scene():
    assert {name: kind.scene for name, kind in KINDS.items() if kind.scene != "image"} == {
        "temporal": "video",
        "temporal_span": "video",
        "tracks": "video",
        "centre-distance": "sample",
    }
    assert {kind.a_scene for kind in KINDS.values()} == {"an image", "a video", "a sample"}
