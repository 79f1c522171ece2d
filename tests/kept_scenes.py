"""Tables for every protocol, of which the texts in fixtures/kept are."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import test_every_protocol as every
from support import detections_of, ground_truth_of
from workloads import make_coco

import detmap
from detmap.detection.protocols import PRESETS, resolve

#: Protocols by name: all that ship, and rules of COCO for the other kinds of shape.
PROTOCOLS = {
    **PRESETS,
    "levels": every.LEVELS,
    **{name: resolve("coco", iou_type=kind, max_dets=(1, 2, 3)) for name, kind in every.KIND_PRESETS.items()},
}


def key(protocol):
    """The folder and the kind of shape of a protocol's files."""
    return "kitti" if protocol.class_levels else protocol.iou_type, protocol.iou_type


@functools.cache
def _read():
    """Ground truth and two models' detections, as files have them, by folder and kind of shape."""
    made = {}
    with tempfile.TemporaryDirectory() as name:
        files = every.made_files(Path(name))
        for folder, kind in {key(one) for one in PROTOCOLS.values()}:
            if folder == "kitti":
                paths = [files / folder / one for one in ("label_2", "one", "two")]
            elif kind in every.DOTA:
                paths = [files / folder / one for one in ("labelTxt", "one", "two")]
            else:
                paths = [files / folder / f"{one}.json" for one in ("truth", "one", "two")]
            fields = ["occlusion"] if kind == "bbox" else []
            truth = detmap.read(paths[0], "ground_truth", image_facts=True, iou_type=kind, fields=fields)
            made[folder, kind] = truth, [detmap.read(one, ground_truth=truth, iou_type=kind) for one in paths[1:]]
    return made


def tables(name):
    """Ground truth and two models' detections for a protocol."""
    return _read()[key(PROTOCOLS[name])]


@functools.cache
def boxes(seed, **options):
    dataset, results = make_coco(seed, **options)[:2]
    return ground_truth_of(dataset), detections_of(results)
