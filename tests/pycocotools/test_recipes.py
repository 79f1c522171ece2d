"""How frameworks call pycocotools, written anew as clients of either it or the drop-in; and detmap's own recipes."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import shape_workloads as made
from dropin import BOTH, REAL, assert_same, compare, load, shown
from dropin_workloads import DATA
from large_workloads import detector_like, to_coco
from support import assert_same_result, evaluate

import detmap
from detmap import Evaluator

BIGGER = to_coco(detector_like(24, 30, 6, 4))


def predictions_of(results):
    """Image id to a model's output: corners, scores, labels."""
    out = {}
    for image in dict.fromkeys(r["image_id"] for r in results):
        own = [r for r in results if r["image_id"] == image]
        boxes = np.array([r["bbox"] for r in own], float)
        out[image] = {
            "boxes": np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1),
            "scores": np.array([r["score"] for r in own]),
            "labels": np.array([r["category_id"] for r in own]),
        }
    return out


def records_of(predictions):
    """A model's output as result records."""
    records = []
    for image, prediction in predictions.items():
        near, far = prediction["boxes"][:, :2], prediction["boxes"][:, 2:]
        boxes = np.concatenate([near, far - near], axis=1).tolist()
        for box, score, label in zip(boxes, prediction["scores"].tolist(), prediction["labels"].tolist(), strict=True):
            records.append({"image_id": image, "category_id": label, "bbox": box, "score": score})
    return records


# -------------------------------------------------------------------------- torchvision's reference scripts, and DETR


class BatchedEvaluation:
    """The pattern of torchvision's references: `evalImgs` of every batch kept, merged over processes, assigned.

    `by_hand` takes the steps of `evaluate` from outside, as DETR does.
    """

    def __init__(self, api, truth, by_hand, kind="bbox"):
        self.api, self.truth, self.by_hand = api, copy.deepcopy(truth), by_hand
        self.evaluation = api.COCOeval(self.truth, iouType=kind)
        self.image_ids, self.cells = [], []

    def update(self, images, records):
        ids = list(np.unique(images))
        self.image_ids.extend(ids)
        self.evaluation.cocoDt = self.api.COCO.loadRes(self.truth, records) if records else self.api.COCO()
        self.evaluation.params.imgIds = list(ids)
        p = self.evaluation.params
        if self.by_hand:
            p.imgIds, p.catIds = list(np.unique(p.imgIds)), list(np.unique(p.catIds))
            p.maxDets = sorted(p.maxDets)
            self.evaluation._prepare()
            overlap = self.evaluation.computeOks if p.iouType == "keypoints" else self.evaluation.computeIoU
            self.evaluation.ious = {(i, c): overlap(i, c) for i in p.imgIds for c in p.catIds}
            cells = [
                self.evaluation.evaluateImg(i, c, area, p.maxDets[-1])
                for c in p.catIds
                for area in p.areaRng
                for i in p.imgIds
            ]
            self.evaluation._paramsEval = copy.deepcopy(p)
        else:
            self.evaluation.evaluate()
            cells = self.evaluation.evalImgs
        self.cells.append(np.asarray(cells).reshape(-1, len(p.areaRng), len(p.imgIds)))

    def synchronize(self, gathered):
        """Merge what every process has: pairs of image ids and cells."""
        ids = np.array([i for ids, _ in gathered for i in ids])
        cells = np.concatenate([cells for _, cells in gathered], 2)
        ids, first = np.unique(ids, return_index=True)
        self.evaluation.evalImgs = list(cells[..., first].flatten())
        self.evaluation.params.imgIds = list(ids)
        self.evaluation._paramsEval = copy.deepcopy(self.evaluation.params)

    def held(self):
        return self.image_ids, np.concatenate(self.cells, 2)


def assert_batches_equal_the_whole(dataset, records, by_hand, kind="bbox"):
    """Evaluate batch by batch in two processes, merged, and at once; demand equality of all."""
    images = [item["id"] for item in dataset["images"]]

    def batched(api):
        truth = load(api, dataset)
        processes = [BatchedEvaluation(api, truth, by_hand, kind) for _ in range(2)]
        for rank, process in enumerate(processes):
            own = images[rank::2]
            own += images[: -(-len(images) // 2) - len(own)]  # the last batch is padded
            for at in range(0, len(own), 4):
                batch = own[at : at + 4]
                process.update(batch, copy.deepcopy([r for i in batch for r in records if r["image_id"] == i]))
        gathered = [process.held() for process in processes]
        out = []
        for process in processes:
            process.synchronize(gathered)
            process.evaluation.accumulate()
            process.evaluation.summarize()
            out.append((process.evaluation.eval, process.evaluation.stats))
        return out

    def at_once(api):
        evaluation = api.COCOeval(*load(api, dataset, records), kind)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
        return evaluation

    merged = compare(batched)
    expected = at_once(REAL)
    for arrays, stats in merged:
        for name in ("precision", "recall", "scores", "counts"):
            assert_same(arrays[name], expected.eval[name])
        assert_same(stats, expected.stats)


@pytest.mark.parametrize("by_hand", [False, True], ids=["torchvision", "DETR"])
@pytest.mark.parametrize("data", [DATA, BIGGER], ids=["peculiar", "detector-like"])
def test_batches_merged_over_processes(data, by_hand):
    dataset, results = data
    assert_batches_equal_the_whole(dataset, records_of(predictions_of(results)), by_hand)


@pytest.mark.parametrize("by_hand", [False, True], ids=["torchvision", "DETR"])
@pytest.mark.parametrize(("kind", "make"), [("segm", made.mask_workload), ("keypoints", made.pose_workload)])
def test_batches_of_masks_and_poses_merged_over_processes(kind, make, by_hand):
    for seed in range(4):
        dataset, results = make(seed)
        dataset["images"].sort(key=lambda image: image["id"])
        assert_batches_equal_the_whole(dataset, results, by_hand, kind)


# --------------------------------------------------------------------------------------------------------- Detectron2


def test_detectron2(tmp_path):
    """Results by way of a file, more caps than COCO's, a summary of its own, and AP by category from `precision`."""
    path = tmp_path / "gt.json"
    dataset = copy.deepcopy(DATA[0])
    dataset.pop("info", None)
    path.write_text(json.dumps(dataset))

    def client(api):
        class ManyDetections(api.COCOeval):
            def summarize(self):
                stats = np.zeros(12)

                def one(ap, threshold=None, area="all", cap=100):
                    a, m = self.params.areaRngLbl.index(area), self.params.maxDets.index(cap)
                    values = self.eval["precision" if ap else "recall"]
                    if threshold is not None:
                        values = values[np.where(threshold == self.params.iouThrs)[0]]
                    values = values[..., a, m]
                    return np.mean(values[values > -1]) if (values > -1).any() else -1

                caps = self.params.maxDets
                stats[:3] = one(1, cap=caps[2]), one(1, 0.5, cap=caps[2]), one(1, 0.75, cap=caps[2])
                stats[3:6] = [one(1, area=area, cap=caps[2]) for area in ("small", "medium", "large")]
                stats[6:9] = [one(0, cap=cap) for cap in caps]
                stats[9:] = [one(0, area=area, cap=caps[2]) for area in ("small", "medium", "large")]
                self.stats = stats

            def __str__(self):
                self.summarize()

        truth = api.COCO(str(path))
        out = []
        for evaluate_class, caps in ((api.COCOeval, [1, 10, 100]), (ManyDetections, [1, 100, 1000])):
            found = truth.loadRes(json.loads(json.dumps(DATA[1])))
            evaluation = evaluate_class(truth, found, "bbox")
            evaluation.params.maxDets = caps
            evaluation.params.imgIds = [item["id"] for item in truth.dataset["images"]][:9]
            evaluation.evaluate()
            evaluation.accumulate()
            evaluation.summarize()
            precisions = evaluation.eval["precision"]
            by_category = []
            for k in range(len(truth.getCatIds())):
                own = precisions[:, :, k, 0, -1]
                own = own[own > -1]
                by_category.append(float(np.mean(own)) if own.size else float("nan"))
            out.append((evaluation.stats, [repr(x) for x in by_category], precisions.flags.c_contiguous))
        return out

    def proposals(api):
        """Recall of boxes without classes reads the annotations by image."""
        truth = api.COCO(str(path))
        out = []
        for image in truth.getImgIds():
            annotations = truth.loadAnns(truth.getAnnIds(imgIds=image))
            out.append([a["bbox"] for a in annotations if a["iscrowd"] == 0])
        return out

    compare(client)
    compare(proposals)


# -------------------------------------------------------------------------------------------------------- MMDetection


def test_mmdetection():
    """A subclass of `COCO` with other names, selected ids, caps that descend, proposals, and a summary by index."""
    dataset, results = DATA

    def client(api):
        class Renamed(api.COCO):
            def __init__(self, annotation_file=None):
                super().__init__(annotation_file=annotation_file)
                self.img_ann_map, self.cat_img_map = self.imgToAnns, self.catToImgs

            def get_ann_ids(self, img_ids=(), cat_ids=(), area_rng=(), iscrowd=None):
                return self.getAnnIds(img_ids, cat_ids, area_rng, iscrowd)

            def load_anns(self, ids):
                return self.loadAnns(ids)

        truth = Renamed()
        truth.dataset = copy.deepcopy(dataset)
        truth.createIndex()
        predictions = copy.deepcopy(results)
        ids = [item["id"] for item in dataset["images"]][1:]
        categories = truth.getCatIds(catNms=["class 1", "class 8", "class 15"])
        out = [truth.load_anns(truth.get_ann_ids(img_ids=[ids[0]]))]
        for metric in ("bbox", "proposal"):
            found = truth.loadRes(predictions)
            evaluation = api.COCOeval(truth, found, "bbox")
            evaluation.params.catIds, evaluation.params.imgIds = categories, ids
            evaluation.params.maxDets = [1000, 300, 100]
            evaluation.params.iouThrs = np.linspace(0.5, 0.95, 10)
            if metric == "proposal":
                evaluation.params.useCats = 0
            evaluation.evaluate()
            evaluation.accumulate()
            evaluation.summarize()
            by_category = []
            if metric == "bbox":
                precisions = evaluation.eval["precision"]
                assert len(categories) == precisions.shape[2]
                for k, category in enumerate(categories):
                    own = precisions[:, :, k, 0, -1]
                    own = own[own > -1]
                    name = truth.loadCats(category)[0]["name"]
                    by_category.append((name, repr(float(np.mean(own))) if own.size else "nan"))
            out += [evaluation.stats, by_category, evaluation.eval]
        return out

    compare(client)


# --------------------------------------------------------------------------------------- RF-DETR, Hugging Face, loops


def test_caps_of_rf_detr():
    def client(api):
        evaluation = api.COCOeval(*load(api, *DATA), "bbox")
        evaluation.params.maxDets = [1, 10, 500]
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
        return shown(evaluation)

    value = compare(client)
    assert value["stats"][0] == -1
    result = evaluate(*DATA, {"max_dets": [1, 10, 500]})
    assert result["AP50"] == value["stats"][1]
    assert result["AR_500"] == value["stats"][8]


def test_compute_metrics():
    """Hugging Face's trainers hand over a batch of predictions and targets and want a dict of floats."""
    dataset, results = DATA
    predictions = predictions_of(results)

    def compute_metrics(outputs, targets):
        evaluator = Evaluator()
        evaluator.update(outputs, targets, image_ids=[target["image_id"] for target in targets])
        return dict(evaluator.compute())

    none = {"boxes": np.empty((0, 4)), "scores": np.empty(0), "labels": np.empty(0, int)}
    outputs, targets = [], []
    for item in dataset["images"]:
        own = [a for a in dataset["annotations"] if a["image_id"] == item["id"]]
        boxes = np.array([a["bbox"] for a in own], float).reshape(-1, 4)
        boxes[:, 2:] += boxes[:, :2]
        target = {"image_id": item["id"], "boxes": boxes, "area": [a["area"] for a in own]}
        target |= {"labels": [a["category_id"] for a in own], "iscrowd": [a["iscrowd"] for a in own]}
        targets.append(target)
        outputs.append(predictions.get(item["id"], none))
    metrics = compute_metrics(outputs, targets)
    assert all(type(value) is float for value in metrics.values())
    corners = detmap.GroundTruth.from_arrays(
        image_ids=[a["image_id"] for a in dataset["annotations"]],
        category_ids=[a["category_id"] for a in dataset["annotations"]],
        boxes=[[x, y, x + w, y + h] for x, y, w, h in (a["bbox"] for a in dataset["annotations"])],
        areas=[a["area"] for a in dataset["annotations"]],
        crowd=[bool(a["iscrowd"]) for a in dataset["annotations"]],
        box_format="xyxy",
        images=[item["id"] for item in dataset["images"]],
    )
    found = detmap.Detections.from_arrays(
        image_ids=[r["image_id"] for r in results],
        category_ids=[r["category_id"] for r in results],
        boxes=[[x, y, x + w, y + h] for x, y, w, h in (r["bbox"] for r in results)],
        scores=[r["score"] for r in results],
        box_format="xyxy",
    )
    expected = detmap.evaluate(corners, found)
    assert metrics == dict(expected)


# --------------------------------------------------------------------------------------------------------- both sides


def test_both_sides_are_what_they_say():
    assert [api.COCO.__module__.split(".")[0] for api in BOTH] == ["pycocotools", "detmap"]
    assert_same_result(evaluate(*DATA), evaluate(*DATA))
