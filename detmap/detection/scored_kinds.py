"""The default protocol and kind of shape, derived from the fields and shapes of the tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from detmap.data.benchmarks import protocol_for
from detmap.data.tables import Detections, GroundTruth
from detmap.detection.federated import LISTS, fields_read
from detmap.detection.protocols import AUTO, COCO, Protocol, preset
from detmap.detection.ranges import fields_of
from detmap.errors import InputError
from detmap.plugins import PluginName
from detmap.shapes import find

T = TypeVar("T")


def asked_protocol(protocol: T, ground_truth: GroundTruth) -> T | PluginName:
    """Return `protocol`. If it is "auto", choose a protocol by the fields and geometries of the ground truth, and return
    its name.
    """
    if not (isinstance(protocol, str) and protocol == AUTO):
        return protocol
    asked = protocol_for(ground_truth.notices) or COCO.name
    has = find(preset(asked).iou_type).column_name in ground_truth.shapes
    return PluginName(asked if has else COCO.name)


def readable(presets: Mapping[str, Protocol], ground_truth: GroundTruth) -> dict[str, Protocol]:
    """Drop the protocols that need category lists or object fields that the ground truth lacks."""
    lists = ground_truth.negatives, ground_truth.not_exhaustive, ground_truth.present
    federated = any(one is not None for one in lists)
    return {
        name: one
        for name, one in presets.items()
        if (federated or not {*LISTS} & {*fields_read(one)}) and {*fields_of(one.levels)} <= ground_truth.fields.keys()
    }


def scored_kind(protocol: object, iou_type: str | None, *tables: GroundTruth | Detections) -> str | None:
    """Return the kind of shape to score: the requested one, or the one that all tables were read for. Raises `InputError`
    if the tables were read for different or several kinds, or if the protocol compares another kind.

    If a protocol for boxes is given by name, the kind that the tables were read for is scored. The tables must have
    been read for the kind of any other named protocol, and of any `Protocol` object.
    """
    if iou_type is not None or not isinstance(protocol, str | Protocol):
        return iou_type
    decided = preset(protocol) if isinstance(protocol, str) else protocol
    if isinstance(protocol, Protocol) or decided.iou_type != COCO.iou_type:
        column = find(decided.iou_type).column_name
        for table in tables:
            # If a table lacks the column, the later look-up of the column raises an error.
            if column in table.shapes and column not in (find(kind).column_name for kind in table.kinds):
                said = f"the protocol {decided.name!r} for {decided.iou_type!r}"
                raise InputError(
                    f"is for the iou_type {_either(table.kinds)}, and {said}",
                    source=table.source,
                    remedy=f"read it with iou_type={decided.iou_type!r}, or say which one is scored: iou_type=...",
                )
        return decided.iou_type
    shared = [kind for kind in tables[0].kinds if all(kind in table.kinds for table in tables)]
    if len(shared) == 1:
        return shared[0]
    every = tuple(dict.fromkeys(kind for table in tables for kind in table.kinds))
    raise InputError(
        f"has shapes of several kinds, {' and '.join(shared)}"
        if shared
        else f"is for the iou_type {_either(tables[-1].kinds)}, and {tables[0].source} for {_either(tables[0].kinds)}",
        source=tables[-1].source,
        remedy=f"say which one is scored: iou_type={_either(shared or every)}",
    )


def _either(kinds: Iterable[str]) -> str:
    return " or ".join(map(repr, dict.fromkeys(kinds)))
