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


def test_bars_of_metrics_in_percent_end_at_100(tmp_path):
    detmap.report("fixtures/kitti/label_2", "fixtures/kitti/results", tmp_path / "page.html", protocol="kitti")
    page = (tmp_path / "page.html").read_text()
    assert ">0 to 100<" in page
    head = page.partition('aria-label="Values and intervals">')[2].partition("</table>")[0]
    assert head.count('<svg class="interval"') == head.count("<tr>") - 1 > 0


def test_a_page_on_one_class_says_one_class(tmp_path):
    detmap.report(
        "fixtures/poses/crowdpose.json",
        "fixtures/poses/crowdpose_results.json",
        tmp_path / "page.html",
        protocol="crowdpose",
    )
    assert " · 1 class · " in (tmp_path / "page.html").read_text()
