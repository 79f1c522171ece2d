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
    names: tuple[list[Any], ...] = ([1, 2, 3, 4], ["a", "b", "c", "d"])
    for images, protocol in zip(names, (PRESETS["coco"], PRESETS["voc2007"]), strict=True):
        found: list[dict[str, Any]] = [
            {
                "image_id": images[i % 3],
                "category_id": i % 2 + 1,
                BOX_FIELD: [8.5 * i, 5.5, 9, 12.25],
                "score": 1 / (i + 2),
            }
            for i in range(12)
        ]
        document = {
            "info": {"year": 2020},
            "images": [{"id": image} for image in images],
            "categories": [{"id": i, "name": str(i)} for i in (1, 2, 3)],
            "annotations": [{**row, "id": i, "area": 100.5, "iscrowd": int(i == 7)} for i, row in enumerate(found)],
        }
        given, detections = json.dumps(document).encode(), json.dumps(found).encode()
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
    import struct
    import zlib

    import numpy as np

    from detmap.panoptic import evaluate
    from detmap.reading.png import label_maps

    segments = [{"id": 1, "category_id": 1}]
    annotations = [{"image_id": 1, "segments_info": segments}]
    document = {"categories": [{"id": 1, "isthing": 1}], "annotations": annotations}
    maps = {1: np.ones((2, 2), np.uint8)}
    evaluate(document, {"annotations": annotations}, maps, maps)
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(b"\0\1\0\0")),
        (b"IEND", b""),
    ]
    data = b"".join(struct.pack(">I", len(b)) + a + b + struct.pack(">I", zlib.crc32(a + b)) for a, b in chunks)
    label_maps([(b"\x89PNG\r\n\x1a\n" + data, "sample")])


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

    Masks.from_polygons([[[1, 1, 4, 1, 4, 5, 1, 5]]], (6, 7)).to_rle()
    for name, kind in KINDS.items():
        if kind.sample is not None:
            evaluate(*tables(name), iou_type=PluginName(name))
    some: dict[str, Any] = {"image_ids": [1], "category_ids": [1], KINDS[ROTATED].argument: [[1, 1, 4, 1, 4, 5, 1, 5]]}
    evaluate(GroundTruth.from_arrays(**some), Detections.from_arrays(**some, scores=[0.5]))
    masks = [{"size": [6, 7], "counts": "742000a0"}, None]
    track = {"video_id": 1, "category_id": 1, "score": 0.5, "segmentations": masks}
    found = read_detections(json.dumps([track]).encode(), None, Reading())
    evaluate(GroundTruth.from_arrays(image_ids=[1], category_ids=[1], tracks=[masks]), found, "ytvis")


def _drop_in() -> None:
    import numpy as np

    from detmap.masks import Masks, iou
    from detmap.pycocotools import cocoeval, mask

    box = [0.0, 0.0, 5.0, 5.0]
    row = {
        "id": 1,
        "image_id": 1,
        "category_id": 1,
        BOX_FIELD: box,
        "area": 25.0,
        "iscrowd": 0,
        "ignore": 0,
        "score": 0.5,
    }
    cells = {(1, 1): [row]}
    params = cocoeval.Params(iouType=BOXES)
    cocoeval._evaluate_cell(params, cells, cells, {(1, 1): np.ones((1, 1))}, 1, 1, params.areaRng, 100)
    mask.iou([box], [box], [0])
    square, other = mask.frPyObjects([[0, 0, 0, 5, 5, 5], [1, 1, 3, 1, 3, 3]], 6, 7)
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

    ours, theirs, cameras = np.arange(2) % 3, np.arange(7) % 3, np.arange(7) % 2
    distances = (np.arange(14) * 5 % 11 / 4).reshape(2, 7)
    bits = np.arange(7 * 6).reshape(7, 6) * 5 % 7 % 2
    for name in CONVENTIONS:
        with suppress(DetmapError):  # not every convention supports galleries
            result = evaluate_distances(distances, ours, theirs, cameras[:2], cameras, convention=name)
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
    judged = b"".join(b"%d 0 d%d %d\n" % (q, d, (d + q) % 3) for q in (1, 2) for d in range(3))
    ranked = b"".join(b"%d Q0 d%d %d %f x\n" % (q, d, d, 1 - d // 2 / 8) for q in (1, 2) for d in range(4))
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
