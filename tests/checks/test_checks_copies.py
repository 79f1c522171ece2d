"""Detections with the box of the object that they find: numbers are counted again, limits are tested on both sides."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_parts import iou, planted, within

from detmap.checks import limits
from detmap.checks.copies import copies_of, steps
from detmap.checks.evidence import Evidence


@pytest.mark.parametrize("kind", ["sparse", "one class"])
def test_labels_that_are_detections_are_counted_again(kind):
    data, made = planted("detections_accepted_as_labels", kind, 0.2)
    one = made["copied_boxes"]
    sizes = {i["id"]: (i["width"], i["height"]) for i in data.truth["images"]}
    held = {}
    for d in data.found:
        held.setdefault((d["image_id"], d["category_id"]), []).append(d)
    objects = {}
    for o in data.truth["annotations"]:
        objects.setdefault((o["image_id"], o["category_id"]), []).append(o)
    exact = rounded = inside = found = 0
    there = within(one.says)
    for cell, own in objects.items():
        best = {}
        for d in held.get(cell, ()):
            values = [iou(o["bbox"], d["bbox"]) for o in own]
            at = int(np.argmax(values))
            if values[at] >= 0.5 and (at not in best or d["score"] > best[at]["score"]):
                best[at] = d
        for at, d in best.items():
            found += 1
            x, y, w, h = d["bbox"]
            width, height = sizes[cell[0]]
            cut = [max(x, 0), max(y, 0), min(x + w, width) - max(x, 0), min(y + h, height) - max(y, 0)]
            decimals = max(len(str(v).partition(".")[2].rstrip("0")) for v in own[at]["bbox"])
            equal = np.allclose(d["bbox"], own[at]["bbox"], rtol=0, atol=1e-6)
            near = [
                np.abs(np.subtract(b, own[at]["bbox"])).max() <= 0.5 / 10**decimals + 1e-6 for b in (d["bbox"], cut)
            ]
            alike = not equal and any(near) and min(own[at]["bbox"][2:]) >= 100 / 10**decimals
            exact, rounded = exact + equal, rounded + alike
            inside += (equal or alike) and there(cell[0])
    assert one.count == exact + rounded > 20
    assert re.search(r"of ([\d,]+) objects that are found", one.says)[1] == f"{found:,}"
    assert f"; {rounded:,} of them once they are rounded, or cut off at the edges of their image, as" in one.says
    assert f"; {inside:,} of them on images " in one.says
    assert "trained_on" not in made


@pytest.mark.parametrize(
    ("box", "step"),
    [((1, 2, 30, 40), 1), ((1, 2, 30, 40.5), 0.1), ((1, 2.25, 30, 40), 0.01), ((0.12345, 1, 2, 3), 1e-5),
     ((1 / 3, 1, 2, 3), 0),     ((1234.1, 2345.7, 300.3, 400.9), 0.1)],
)  # fmt: skip
def test_steps_to_which_boxes_are_rounded(box, step):
    assert steps(np.array([box], float))[0] == pytest.approx(step, abs=1e-12)


def copies(box, true, size=(400, 300)):
    made = copies_of(*(np.array([one], float) for one in (box, true, size)))
    return next((name for name in ("exact", "same", "unsure") if getattr(made, name)[0]), "")


@pytest.mark.parametrize(
    ("box", "true", "said"),
    [
        ((10.12, 20, 100, 120), (10.12, 20, 100, 120), "exact"),
        ((10.125, 20.12, 100.4, 120.3), (10.12, 20.12, 100.4, 120.3), "same"),
        ((10.126, 20.12, 100.4, 120.3), (10.12, 20.12, 100.4, 120.3), ""),
        ((10.4, 20.4, 100.4, 120.4), (10, 20, 100, 120), "same"),
        ((10.4, 20.4, 100.4, 120.4), (10, 20, 101, 121), "same"),  # corners are rounded, and not sides
        ((10.4, 20.4, 101.6, 120.4), (10, 20, 101, 121), ""),
        ((10.4, 20.4, 99.4, 120.4), (10, 20, 99, 120), "unsure"),  # less than a hundred steps
        ((10.4, 20.4, 100.4, 99.4), (10, 20, 100, 99), "unsure"),
        ((-5.3, 20, 120, 290), (0, 20, 114.7, 280), "same"),  # cut off
        ((-5.3, 20, 120, 290), (0.1, 20, 114.6, 280), ""),
    ],
)
def test_either_side_of_copies(box, true, said):
    assert copies(box, true) == said


def test_without_the_size_of_the_image_nothing_is_cut_off():
    assert copies((-5.3, 20, 120, 290), (0, 20, 114.7, 280), (np.inf, np.inf)) == ""


@pytest.mark.parametrize("kind", ["crowded", "sparse", "one class"])
def test_whole_pixels_make_no_copies(kind):
    """Rounded to whole pixels, small objects have the box of the detection that finds them by chance."""
    from planting import scene

    from detmap.checks import check

    data = scene(0, kind).data()
    for o in data.truth["annotations"]:
        o["bbox"] = [round(v) for v in o["bbox"]]
    assert "copied_boxes" not in {one.code for one in check(data.truth, data.found).findings}


@pytest.mark.parametrize(("count", "said"), [(19, False), (20, True), (19.5, False)])
def test_either_side_of_copied_boxes(count, said):
    """20 of 400, and 5 % of the objects that are found: not of 401."""
    rows = np.arange(401 if count == 19.5 else 400)
    true = np.random.default_rng(0).uniform(10, 90, (rows.size, 4))
    own = true + 0.01 * (rows >= round(count))[:, None]
    sizes = np.full((rows.size, 2), np.inf)
    found = SimpleNamespace(boxes=own, sizes=sizes, records=lambda at: {})
    evidence = SimpleNamespace(finders=(rows, rows), found=found, object_box=true, object_image=rows, images=rows.size)
    evidence.copies = Evidence.copies.func(evidence)
    facts = SimpleNamespace(gathered=lambda flags, known: None)
    assert bool(list(limits._copied(facts, evidence))) is said
