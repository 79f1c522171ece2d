"""What reports say of protocols whose means are over other classes than those with objects."""

from __future__ import annotations

import re

import numpy as np
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
    detmap.report(f"fixtures/{truth}", f"fixtures/{found}", tmp_path / "page.html", protocol=protocol, bootstrap=0)
    page = (tmp_path / "page.html").read_text()
    assert note in page
    assert f"the mean of {classes} classes, AP" in page


def test_errors_of_nuscenes_are_those_of_the_benchmark(tmp_path):
    """Errors of true positives are of matches at 2 m, with which the page names them, whatever --iou is."""
    files = "fixtures/nuscenes/samples.json", "fixtures/nuscenes/results.json"
    detmap.report(*files, tmp_path / "page.html", protocol="nuscenes", bootstrap=0)
    page = (tmp_path / "page.html").read_text()
    assert "translation in m, matches at 2 m, less is better" in page
    assert '<div class="short stacked">' in page  # beside seven metrics three cards would leave a gap
    assert "ATE to AAE: the benchmark&#39;s errors, of matches at centre-distance 2 m" in page
    result = detmap.evaluate(*files, "nuscenes")
    row = page.partition('data-show="class=0">car<')[2].partition("</tr>")[0]
    for name in ("ATE", "ASE", "AOE", "AVE", "AAE"):
        assert f">{result[f'{name}_car']:.4f}<" in row
        assert f"{result[f'm{name}']:.4f}" in page


def test_bars_of_metrics_in_percent_end_at_100(tmp_path):
    files = "fixtures/kitti/label_2", "fixtures/kitti/results"
    detmap.report(*files, tmp_path / "page.html", protocol="kitti", bootstrap=200)
    page = (tmp_path / "page.html").read_text()
    assert ">0 to 100<" in page
    assert "<span>car_moderate</span> <strong>" in page  # by which KITTI ranks
    head = page.partition('aria-label="Values and intervals">')[2].partition("</table>")[0]
    assert head.count('<svg class="interval"') == head.count("<tr>") - 1 > 0


def test_objects_without_a_box_in_space_do_not_shrink_the_pictures(tmp_path):
    """KITTI's regions have their box at -1000 metres."""
    files = "fixtures/kitti/label_2", "fixtures/kitti/results"
    detmap.report(*files, tmp_path / "page.html", protocol="kitti-3d", bootstrap=0)
    views = re.findall('viewBox="([^"]*)" class="bare up"', (tmp_path / "page.html").read_text())
    assert views
    assert all(abs(float(number)) < 200 for view in views for number in view.split())


def test_a_page_on_one_class_says_one_class(tmp_path):
    detmap.report(
        "fixtures/poses/crowdpose.json",
        "fixtures/poses/crowdpose_results.json",
        tmp_path / "page.html",
        protocol="crowdpose",
        bootstrap=0,
    )
    assert " · 1 class · " in (tmp_path / "page.html").read_text()


def test_groups_of_lvis_are_named_in_words(tmp_path):
    files = "fixtures/lvis/ground_truth.json", "fixtures/coco/detections.json"
    detmap.report(*files, tmp_path / "page.html", protocol="lvis", bootstrap=0)
    page = (tmp_path / "page.html").read_text()
    for name, group in (("APr", "rare"), ("APc", "common"), ("APf", "frequent")):
        assert f'{name} <span class="of">IoU 0.5 to 0.95 · {group} classes</span>' in page


def test_of_classes_with_equal_ap_the_one_with_the_most_objects_is_first(tmp_path):
    """Otherwise the six worst of many classes that are never found are those of the first letters."""
    classes = np.repeat(np.arange(9), np.arange(1, 10))
    truth = detmap.GroundTruth.from_arrays(
        image_ids=np.arange(classes.size),
        category_ids=classes,
        boxes=np.tile([0.0, 0.0, 9.0, 9.0], (classes.size, 1)),
        category_names={k: f"class-{k}" for k in range(9)},
    )
    found = detmap.Detections.from_arrays(image_ids=[0], category_ids=[0], boxes=[[0, 0, 9, 9]], scores=[0.5])
    detmap.report(truth, found, tmp_path / "page.html", bootstrap=0)
    page = (tmp_path / "page.html").read_text()
    card = page.partition("<h2>Worst classes</h2>")[2].partition("</dl>")[0]
    assert re.findall("class-[0-9]", card) == [f"class-{k}" for k in (8, 7, 6, 5, 4, 3)]
    rows = page.partition("AP by class, worst first")[2].partition("</table>")[0]
    assert re.findall(">(class-[0-9])", rows) == [f"class-{k}" for k in (8, 7, 6, 5, 4, 3, 2, 1, 0)]
