"""Clients that know pycocotools or faster_coco_eval only, while detmap is patched in."""

from __future__ import annotations

import sys
import types

import pytest
from dropin import OURS, REAL, assert_same, load
from dropin_workloads import DATA

from detmap import patch_pycocotools


def evaluated_by_name():
    """A client that knows pycocotools only."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval, Params

    api = types.SimpleNamespace(COCO=COCO, COCOeval=COCOeval)
    evaluation = COCOeval(*load(api, *DATA), "bbox")
    assert type(evaluation.params) is Params
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return evaluation


def test_patch_is_reversible(capsys):
    import pycocotools.coco
    import pycocotools.cocoeval
    import pycocotools.mask

    framework = types.ModuleType("framework")
    framework.COCOeval = REAL.COCOeval
    framework.own = 5
    sys.modules["framework"] = framework
    try:
        expected = evaluated_by_name()
        with patch_pycocotools() as patch:
            assert {"pycocotools.coco.COCO", "pycocotools.cocoeval.COCOeval", "pycocotools.cocoeval.Params"} <= set(
                patch.replaced
            )
            assert "framework.COCOeval" in patch.replaced
            assert framework.COCOeval is OURS.COCOeval
            assert "pycocotools.coco.COCO" in repr(patch)
            found = evaluated_by_name()
            assert type(found) is OURS.COCOeval
            assert_same(found.eval, expected.eval)
            assert pycocotools.mask is REAL.mask
            with patch_pycocotools() as again:
                assert again.replaced == ()
            assert framework.COCOeval is OURS.COCOeval
        assert pycocotools.coco.COCO is REAL.COCO
        assert pycocotools.cocoeval.COCOeval is REAL.COCOeval
        assert framework.COCOeval is REAL.COCOeval
        assert type(evaluated_by_name()) is REAL.COCOeval
        patch = patch_pycocotools()
        patch.undo()
        patch.undo()
        assert pycocotools.cocoeval.COCOeval is REAL.COCOeval
        with pytest.raises(ZeroDivisionError), patch_pycocotools():
            raise ZeroDivisionError
        assert pycocotools.cocoeval.COCOeval is REAL.COCOeval
    finally:
        del sys.modules["framework"]


def test_masks_and_keypoints_under_the_patch():
    from dropin_workloads import with_keypoints, with_masks

    def client(api):
        out = []
        for data, kind in ((with_masks(), "segm"), (with_keypoints(), "keypoints")):
            evaluation = api.COCOeval(*load(api, *data), kind)
            evaluation.evaluate()
            evaluation.accumulate()
            out.append(evaluation.eval)
        return out

    expected = client(REAL)
    with patch_pycocotools():
        found = client(OURS)
    assert_same(found, expected)


def test_patch_of_faster_coco_eval(monkeypatch):
    from detmap.pycocotools import faster

    package = types.ModuleType("faster_coco_eval")
    package.COCO, package.COCOeval_faster = type("COCO", (), {}), type("COCOeval_faster", (), {})
    monkeypatch.setitem(sys.modules, "faster_coco_eval", package)
    theirs = package.COCOeval_faster
    with patch_pycocotools() as patch:
        assert package.COCO is faster.COCO
        assert package.COCOeval_faster is faster.COCOeval_faster
        assert "faster_coco_eval.COCOeval_faster" in patch.replaced
    assert package.COCOeval_faster is theirs


def test_patch_where_pycocotools_is_not_installed(monkeypatch):
    from importlib import util

    import detmap.system.patching as home

    for name in [name for name in sys.modules if name.split(".")[0] == "pycocotools"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(home, "find_spec", lambda name: None if name == "pycocotools" else util.find_spec(name))
    with patch_pycocotools() as patch:
        assert "pycocotools.cocoeval" in patch.replaced
        assert type(evaluated_by_name()) is OURS.COCOeval
        assert "pycocotools._mask" in patch.replaced
        assert OURS.mask.area({"size": [2, 2], "counts": b"04"}) == 4
    assert not [name for name in sys.modules if name.split(".")[0] == "pycocotools"]
