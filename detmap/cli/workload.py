"""Calls of every kernel on small data, from which `detmap warm` collects the kernels' signatures.

A new kernel needs a call in this module; `tests/kernels/test_kernel_cache_warm.py` names kernels without a call.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from detmap.errors import DetmapError
from detmap.plugins import PluginName
from detmap.shapes import KINDS
from detmap.shapes.kinds import BOX_FIELD, BOXES, ROTATED

if TYPE_CHECKING:
    from detmap.data.tables import Detections, GroundTruth


#: Ground truth in COCO's format, and results; ids of images stand between apostrophes. "BOX" is the name of the field.
_TRUTH = """{"info": {"year": 2020}, "images": [{"id": '1'}, {"id": '2'}, {"id": '3'}],
"categories": [{"id": 1, "name": "1"}, {"id": 2, "name": "2"}],
"annotations": [
{"id": 1, "image_id": '1', "category_id": 1, "BOX": [0, 5.5, 9, 12.25], "area": 100.5, "iscrowd": 0, "ignore": 0},
{"id": 2, "image_id": '1', "category_id": 1, "BOX": [8.5, 5.5, 9, 12.25], "area": 100.5, "iscrowd": 1, "ignore": 0},
{"id": 3, "image_id": '2', "category_id": 2, "BOX": [8.5, 5.5, 9, 12.25], "area": 100.5, "iscrowd": 0, "ignore": 0}]}"""
_RESULTS = """[{"image_id": '1', "category_id": 1, "BOX": [0, 5.5, 9, 12.25], "score": 0.5},
{"image_id": '1', "category_id": 1, "BOX": [8.5, 5.5, 9, 12.25], "score": 0.25},
{"image_id": '2', "category_id": 1, "BOX": [8.5, 5.5, 9, 12.25], "score": 0.25},
{"image_id": '2', "category_id": 2, "BOX": [8.5, 5.5, 9, 12.25], "score": 0.125}]"""

#: Corners of a rectangle.
_CORNERS = [1.0, 1.0, 4.0, 1.0, 4.0, 5.0, 1.0, 5.0]

#: A PNG file of one pixel, in base 64.
_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNgZGAAAAAHAALpEtlMAAAAAElFTkSuQmCC"


def _coco(quote: str) -> tuple[bytes, bytes]:
    """Return the ground truth and the results, with ids of images between `quote`."""
    given, found = (one.replace("'", quote).replace("BOX", BOX_FIELD).encode() for one in (_TRUTH, _RESULTS))
    return given, found


def run() -> None:
    """Call every kernel with all argument types that occur in detmap."""
    _detections()
    _shapes()
    _drop_in()
    _hits_and_samples()
    _galleries()
    _runs()
    _segments()


def _detections() -> None:
    import numpy as np

    from detmap import evaluate, match_pairs, read_coco, read_coco_results
    from detmap.detection.arrangement import Arrangement
    from detmap.detection.protocols import PRESETS, resolve
    from detmap.kernels import keypoints, lines, readonly, segmentations, texts
    from detmap.reading import cells, markup
    from detmap.reading.scanner import scan_ground_truth, scan_results
    from detmap.shapes.reading import powers
    from detmap.statistics import bootstrap, permute
    from detmap.statistics.draws import FEWEST_REPLICATES
    from detmap.statistics.resampled import PairedDetections

    # Called directly, because only files that are read in parts need these kernels.
    texts.keep(readonly(np.zeros(8), np.uint8), np.empty(0, np.uint64), np.empty(0, np.uint8), 0)
    texts.kept_size(readonly(np.empty(0), np.uint64))
    # Called directly, because the small files below do not need these kernels.
    segmentations.unescape(np.zeros(8, np.uint8), readonly(np.zeros(1), np.int64), np.full((1, 4), -1))
    keypoints.drop_flags(np.empty(0, np.uint64), np.zeros(1, np.int64), np.zeros(1, np.int64))
    keypoints.corners(readonly(np.empty((0, 4)), np.float64), 0, 0, np.empty((0, 4)))
    markup.Elements([b"<a b='1'><c/></a>"])
    nothing = readonly(np.empty(0), np.uint64)
    lines.read_words(readonly(np.zeros(8), np.uint8), nothing, powers(), np.empty(0, np.uint64), np.empty(0, np.int64))
    for quote, protocol in (("", PRESETS["coco"]), ('"', PRESETS["voc2007"])):
        given, detections = _coco(quote)
        scan_ground_truth(given, None)  # readers use the scanner for large files only
        scan_results(detections, None)
        cells.scan(b"1,2,0.5\n1,3,0.25\n", 0, ",", ("a", "b", "c"), ("a", "b"), ("a", "b"))
        tables = read_coco(given), read_coco_results(detections)
        match_pairs(*tables, protocol, across_categories=True)
        arranged = Arrangement.of(*tables, resolve(protocol))
        refined = replace(arranged, kind=replace(arranged.kind, refine=lambda *_: None))
        refined.candidates(refined.cells, 0.5, 0, len(refined.cells.detection_starts))
        result = evaluate(*tables, protocol=protocol)
        bootstrap(result, FEWEST_REPLICATES)
        permute(result.tally, result.tally, 2, categories=True)
        if quick := PairedDetections(result.tally, result.tally, None, False, None).quick():
            quick(np.zeros((1, result.tally.image_ids.size), np.uint8))
        evaluate(*tables, matching="by-object-twice", interpolation="sampled-40")
        result.counts(iou=0.5, score=0.1)
        result.class_summary()


def _segments() -> None:
    from base64 import b64decode

    import numpy as np

    from detmap.panoptic import evaluate
    from detmap.reading.png import label_maps

    segments = [{"id": 1, "category_id": 1}]
    annotations = [{"image_id": 1, "segments_info": segments}]
    document = {"categories": [{"id": 1, "isthing": 1}], "annotations": annotations}
    maps = {1: np.ones((2, 2), np.uint8)}
    evaluate(document, {"annotations": annotations}, maps, maps)
    label_maps([(b64decode(_PIXEL), "sample")])


def tables(kind: str) -> tuple[GroundTruth, Detections]:
    """Return small ground truth and detections with sample geometries of the IoU type `kind`."""
    from detmap import read_coco, read_coco_results

    sample = KINDS[kind].sample
    assert sample is not None
    records = [{"image_id": 1, "category_id": 1, **one, "score": 0.5} for one in sample()]
    document = {
        "images": [{"id": 1, "height": 6, "width": 7}],
        "categories": [{"id": 1, "name": "1"}],
        "annotations": [{**row, "id": 1, "area": 9.0, "iscrowd": 0} for row in records],
    }
    truth = read_coco(document, iou_type=kind)
    return truth, read_coco_results(records, truth, iou_type=kind)


def _shapes() -> None:
    from detmap import Detections, GroundTruth, evaluate
    from detmap.formats.ytvis import read_detections
    from detmap.masks import Masks
    from detmap.reading.options import Reading

    Masks.from_polygons([[_CORNERS]], (6, 7)).to_rle()
    for name, kind in KINDS.items():
        if kind.sample is not None:
            evaluate(*tables(name), iou_type=PluginName(name))
    some: dict[str, Any] = {"image_ids": [1], "category_ids": [1], KINDS[ROTATED].argument: [_CORNERS]}
    evaluate(GroundTruth.from_arrays(**some), Detections.from_arrays(**some, scores=[0.5]))
    masks = [{"size": [6, 7], "counts": "742000a0"}, None]
    track = {"video_id": 1, "category_id": 1, "score": 0.5, "segmentations": masks}
    found = read_detections(json.dumps([track]).encode(), None, Reading())
    evaluate(GroundTruth.from_arrays(image_ids=[1], category_ids=[1], tracks=[masks]), found, "ytvis")


def _drop_in() -> None:
    import numpy as np

    from detmap.masks import Masks, iou
    from detmap.pycocotools import cocoeval, mask

    row = {**json.loads(_coco("")[0])["annotations"][0], "score": 0.5}
    box = row[BOX_FIELD]
    cells = {(1, 1): [row]}
    params = cocoeval.Params(iouType=BOXES)
    cocoeval._evaluate_cell(params, cells, cells, {(1, 1): np.ones((1, 1))}, 1, 1, params.areaRng, 100)
    mask.iou([box], [box], [0])
    square, other = mask.frPyObjects([_CORNERS, _CORNERS], 6, 7)
    mask.iou([square], [other], [0])
    mask.merge([square, other])
    mask.area(mask.encode(mask.decode([square])))
    mask.toBbox([square])
    mask.frPyObjects({"size": [6, 7], "counts": [8, 4, 30]}, 6, 7)
    masks = Masks.from_rle([square, other])
    iou(masks, masks)
    Masks.from_polygons(masks.boundary().to_polygons(), (6, 7)).merge()
    Masks.from_bitmaps(masks.to_bitmaps())


def _hits_and_samples() -> None:
    import detmap
    from detmap.retrieval import average_precision_score, evaluate_rankings

    for interpolation in ("step", "101-point", "101-linear", "sampled-40"):
        detmap.average_precision([1, 0, 1], [3, 2, 1], interpolation=interpolation)
    detmap.precision_recall_curve([1, 0, 1], [3, 2, 1]).best_f1(2)
    for weights in (None, [1.0, 2.0, 0.5, 1.0]):
        average_precision_score([0, 1, 1, 0], [0.1, 0.5, 0.5, 0.9], sample_weight=weights)
    evaluate_rankings([[1, 0, 1], [0, 2]])


def _galleries() -> None:
    import numpy as np

    from detmap.retrieval import CONVENTIONS, evaluate_codes, evaluate_distances, evaluate_features

    rng = np.random.default_rng(0)
    distances, ours, theirs = rng.random((2, 7)), np.arange(2), np.arange(7) % 3
    cameras, bits = np.arange(2), rng.integers(2, size=(7, 6))
    for name in CONVENTIONS:
        with suppress(DetmapError):  # not every convention supports galleries
            result = evaluate_distances(distances, ours, theirs, cameras, theirs, convention=name)
            result.tie_bands()
        with suppress(DetmapError):
            evaluate_codes(bits[:2], bits, ours, theirs, 3, convention=name)
    evaluate_distances(distances, ours, theirs, metrics=["TPR@FPR=0.1"])
    evaluate_features(bits[:2], bits, ours, theirs)
    evaluate_codes(bits[:2], bits.astype(np.int8), bits[:2, :3], bits[:, :3], 3)


def _runs() -> None:
    from detmap.hits import TieRule
    from detmap.pytrec_eval import RelevanceEvaluator
    from detmap.reading.scanner import scan_qrels, scan_run
    from detmap.retrieval import evaluate_run
    from detmap.retrieval.metrics import METRICS

    kinds = {"never": "{}", "may": "{}", "must": "{}@1"}
    judged = b"1 0 a 1\n1 0 b 2\n1 0 c 0\n2 0 a 2\n2 0 b 0\n2 0 c 1\n"
    ranked = b"1 Q0 a 1 0.5 x\n1 Q0 d 1 0.5 x\n1 Q0 b 1 0.25 x\n2 Q0 a 1 0.5 x\n2 Q0 b 1 0.5 x\n2 Q0 d 1 0.25 x\n"
    rules: tuple[tuple[str, TieRule | None], ...] = (
        ("trec", None), ("trec", "expected"), ("detmap", "collapsed"), ("detmap", "best")
    )  # fmt: skip
    for convention, ties in rules:
        for metric in (None, *(kinds[metric.depth].format(metric.name) for metric in METRICS)):
            with suppress(DetmapError):  # not every metric is defined under every rule
                evaluate_run(judged, ranked, None if metric is None else [metric], convention, ties=ties)
    # calls the kernel that looks up documents
    RelevanceEvaluator({"1": {"a": 1}}, ["map"]).evaluate({"1": {"a": 0.5, "b": 0.5}})
    scan_qrels(judged)
    scan_run(ranked)
