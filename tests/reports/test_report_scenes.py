"""Pages, titles and checks call what boxes lie on by its name: an image, a video, or a sample of a recording."""

from __future__ import annotations

import re

import numpy as np
import pytest
from pages import ROOT

import detmap
from detmap import cli
from detmap.reports import galleries
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
    assert scene == "image" or "tiny_objects" not in {one.code for one in checked.findings}
    result = detmap.evaluate(FIXTURES / truth, FIXTURES / found, protocol, bootstrap=200)
    assert result.intervals.bootstrap.unit == f"{scene}s"
    pixels = KINDS[result.protocol.iou_type].unit == "pixels"
    assert ('name="size"' in text) == pixels
    if not pixels:
        with pytest.raises(detmap.OptionError, match="not in pixels"):
            detmap.report(FIXTURES / truth, FIXTURES / found, page, protocol, images=tmp_path)


def test_segments_of_time_that_overlap_are_on_lanes_of_their_own():
    rng = np.random.default_rng(0)
    starts = rng.uniform(5, 50, 40).round(1)
    corners = np.stack([starts, np.zeros(40), starts + rng.exponential(6, 40).round(1), np.ones(40)], axis=1)
    marks = [{"label": "found"} for _ in starts]
    height = galleries._timeline(marks, corners).view[3]
    bars = [[float(one) for one in re.findall(r"[0-9.]+", mark["path"])] for mark in marks]
    for k, (left, top, right, bottom, _) in enumerate(bars):
        assert 0 <= left < right
        assert 0 <= top < bottom <= height
        assert all(right <= x or y <= left or top != other for x, other, y, _, _ in bars[:k])
    assert len({top for _, top, *_ in bars}) < 40  # segments that do not overlap share a lane
    assert marks[0]["label"] == f"found, {starts[0]:g} to {corners[0, 2]:g} s"
    assert galleries._timeline([], corners[:0]).view[3] > 0


def test_every_kind_names_its_scene():
    assert {name: kind.scene for name, kind in KINDS.items() if kind.scene != "image"} == {
        "temporal": "video",
        "temporal_span": "video",
        "tracks": "video",
        "centre-distance": "sample",
    }
    assert {kind.a_scene for kind in KINDS.values()} == {"an image", "a video", "a sample"}
