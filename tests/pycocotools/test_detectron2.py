"""Detectron2's evaluator in C++, written anew as a client of pycocotools or the drop-in: what it takes out, and puts in."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import shape_workloads as made
from dropin import REAL, compare, load
from workloads import make_coco

WORKLOADS = {
    "bbox": make_coco(31, images=11, categories=5, crowds=0.15, over_100=True),
    "segm": made.ample(made.mask_workload),
    "keypoints": made.ample(made.pose_workload),
}


def instances(records, *, found):
    """What is handed over of each record: id, score, area, crowd, ignored."""
    return [
        (
            int(one["id"]),
            one["score"] if found else one.get("score", 0.0),
            float(one["area"]),
            bool(one.get("iscrowd", 0)),
            bool(one.get("ignore", 0)),
        )
        for one in records
    ]


# pycocotools has no poses without classes.
@pytest.mark.parametrize(("kind", "classes"), [*((kind, 1) for kind in WORKLOADS), ("bbox", 0), ("segm", 0)])
def test_what_is_handed_over_and_what_comes_back(kind, classes):
    """`evaluate` and `accumulate` are its own: it reads cells and overlaps, and assigns ``eval`` for `summarize`."""
    dataset, results = WORKLOADS[kind]
    reference = REAL.COCOeval(*load(REAL, dataset, results), kind)
    reference.params.useCats = classes
    reference.evaluate()
    reference.accumulate()
    arrays = {name: reference.eval[name] for name in ("precision", "recall", "scores")}

    def client(api):
        class Compiled(api.COCOeval):
            def evaluate(self):
                p = self.params
                if p.useSegm is not None:
                    p.iouType = "segm" if p.useSegm == 1 else "bbox"
                p.imgIds = list(np.unique(p.imgIds))
                if p.useCats:
                    p.catIds = list(np.unique(p.catIds))
                p.maxDets = sorted(p.maxDets)
                self.params = p
                self._prepare()
                categories = p.catIds if p.useCats else [-1]
                overlap = self.computeOks if p.iouType == "keypoints" else self.computeIoU
                self.ious = {(i, k): overlap(i, k) for i in p.imgIds for k in categories}
                self.given = (
                    [[self.ious[i, k] for k in categories] for i in p.imgIds],
                    [[instances(self._gts[i, k], found=False) for k in p.catIds] for i in p.imgIds],
                    [[instances(self._dts[i, k], found=True) for k in p.catIds] for i in p.imgIds],
                    (p.areaRng, p.maxDets[-1], list(p.iouThrs)),
                )
                self._evalImgs_cpp, self._evalImgs = [], None
                self._paramsEval = copy.deepcopy(self.params)

            def accumulate(self):
                shape = arrays["precision"].shape
                self.eval = {"params": self._paramsEval, "counts": list(shape), "date": ""}
                self.eval |= {name: np.array(values.ravel().tolist()) for name, values in arrays.items()}
                self.eval["recall"] = self.eval["recall"].reshape(shape[:1] + shape[2:])
                for name in ("precision", "scores"):
                    self.eval[name] = self.eval[name].reshape(shape)

        evaluation = Compiled(*load(api, dataset, results), kind)
        evaluation.params.useCats = classes
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
        return evaluation.given, evaluation.stats, evaluation.eval

    given, stats, _ = compare(client)
    assert any(instance for row in given[1] for cell in row for instance in cell)
    assert (stats > 0).any()
