"""What reports say of protocols whose means are over other classes than those with objects."""

from __future__ import annotations

import pytest

import detmap


@pytest.mark.parametrize(
    ("protocol", "truth", "found", "classes", "note"),
    [
        ("kitti", "kitti/label_2", "kitti/results", 3, "– where a class has no AP of its own by the protocol"),
        (
            "nuscenes",
            "nuscenes/samples.json",
            "nuscenes/results.json",
            10,
            "mAP is the mean over all classes; 0 where a class has no objects",
        ),
        (
            "ytvis",
            "ytvis/ground_truth.json",
            "ytvis/results.json",
            3,
            "AP is the mean over the classes with objects; – where a class has none",
        ),
    ],
)
def test_pages_say_which_classes_are_averaged(protocol, truth, found, classes, note, tmp_path):
    detmap.report(f"fixtures/{truth}", f"fixtures/{found}", tmp_path / "page.html", protocol=protocol)
    page = (tmp_path / "page.html").read_text()
    assert note in page
    assert f"the mean of {classes} classes, AP" in page
