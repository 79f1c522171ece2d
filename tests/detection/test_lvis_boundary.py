"""Boundary IoU under LVIS's rules: every bit against the naive twin, and lvis-api with the overlaps of boundaries."""

from __future__ import annotations

import json

import lvis_scenes
import naive_lvis
import naive_masks
import numpy as np
import pytest
from support import examples, same_bits
from test_lvis import assert_as_the_twin, lvis_api, minus_one

import detmap

HEIGHT, WIDTH = 36, 44
DILATION = 0.05


def scene(seed):
    """A scene whose boxes, made smaller, are masks with a corner cut off; and the pixels of each mask by its string."""
    document, results = lvis_scenes.scene(seed, images=5, crowded=0)
    pixels = {}
    for image in document["images"]:
        image.update(height=HEIGHT, width=WIDTH)
    for one in (*document["annotations"], *results):
        x, y, w, h = (int(side) // 8 for side in one["bbox"])
        mask = {
            (row, column)
            for row in range(max(y, 0), min(y + h, HEIGHT))
            for column in range(max(x, 0), min(x + w, WIDTH))
            if row - y + column - x >= (w + h) // 4
        }
        bitmap = [[(row, column) in mask for column in range(WIDTH)] for row in range(HEIGHT)]
        text = naive_masks.string_of(naive_masks.runs_of(bitmap))
        pixels[text] = mask
        one["segmentation"] = {"size": [HEIGHT, WIDTH], "counts": text}
        one["bbox"], one["area"] = [float(side) for side in naive_masks.box_of(mask)], float(len(mask))
    for one in results:
        del one["bbox"]
    return document, results, pixels


def overlaps_of(pixels):
    """Return a function that measures all pairs of two lists of records: the smaller of the IoU of masks and boundaries."""
    edges = {text: naive_masks.boundary(mask, HEIGHT, WIDTH, DILATION) for text, mask in pixels.items()}

    def measure(found, objects):
        made = np.zeros((len(found), len(objects)))
        for d, one in enumerate(found):
            for g, other in enumerate(objects):
                pair = one["segmentation"]["counts"], other["segmentation"]["counts"]
                made[d, g] = min(naive_masks.iou(*(of[text] for text in pair)) for of in (pixels, edges))
        return made

    return measure


@pytest.mark.parametrize("seed", range(examples(10)))
def test_every_bit_of_drawn_scenes(seed):
    document, results, pixels = scene(seed)
    made = {}
    for name, decisions in (("lvis", {}), ("lvis-fixed", {"max_per_category": 9})):
        made[name] = detmap.evaluate(
            detmap.read_coco(document, iou_type="boundary"),
            detmap.read_coco_results(results, detmap.read_coco(document), iou_type="boundary"),
            name,
            iou_type="boundary",
            dilation=DILATION,
            **decisions,
        )
    expected = naive_lvis.evaluate(document, results, overlaps=overlaps_of(pixels))
    assert_as_the_twin(made["lvis"], expected)
    more = {"per_image": None, "per_category": 9}
    assert_as_the_twin(made["lvis-fixed"], naive_lvis.evaluate(document, results, overlaps=overlaps_of(pixels), **more))


@pytest.mark.filterwarnings("ignore:The 'warn' method is deprecated")
@pytest.mark.parametrize("seed", range(examples(10)))
def test_lvis_api_with_overlaps_of_boundaries(seed, tmp_path, monkeypatch):
    """Its code for masks, with the smaller of both overlaps in place of that of masks."""
    lvis = lvis_api(monkeypatch)
    document, results, pixels = scene(seed)
    (tmp_path / "truth.json").write_text(json.dumps(document))
    measure = overlaps_of(pixels)

    class Boundaries(lvis.LVISEval):
        def compute_iou(self, image, category):
            objects, found = self._get_gt_dt(image, category)
            if not objects and not found:
                return []
            order = np.argsort([-one["score"] for one in found], kind="mergesort")
            return measure([found[i] for i in order], objects)

    truth = lvis.LVIS(str(tmp_path / "truth.json"))
    peer = Boundaries(truth, lvis.LVISResults(truth, [dict(one) for one in results]), "segm")
    for one in (*peer.lvis_gt.anns.values(), *peer.lvis_dt.anns.values()):
        counts = one["segmentation"]["counts"]
        one["segmentation"] = {"counts": counts.decode() if isinstance(counts, bytes) else counts}
    monkeypatch.setattr(peer, "_to_mask", lambda *_: None)
    peer.run()
    made = detmap.evaluate(document, results, "lvis", iou_type="boundary", dilation=DILATION)
    assert same_bits(minus_one(made.precision), peer.eval["precision"])
    assert same_bits(minus_one(made.recall), peer.eval["recall"])
