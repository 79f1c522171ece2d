"""Convert arguments to tables; an argument is a table, a path, or COCO's JSON as returned by ``json.load``."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

from detmap.data.mismatches import check_pair
from detmap.data.tables import Detections, GroundTruth
from detmap.detection.protocols import AUTO, COCO, Protocol, preset, resolve
from detmap.detection.ranges import fields_of, plain_levels
from detmap.errors import OptionError, shorten
from detmap.reading.opening import Held
from detmap.reading.options import Reading

#: Ground truth: a table, the path of a file or folder of any format, or COCO's dictionary.
Truth = GroundTruth | str | os.PathLike[str] | Mapping[str, Any]

#: Detections: a table, the path of a file or folder of any format, or COCO's list of results.
Found = Detections | str | os.PathLike[str] | Sequence[Mapping[str, Any]]

#: Detections of several models: by name, or in a sequence.
Models = Mapping[str, Found] | Sequence[Found]

#: Fields that may hold COCO's results, if the JSON document is an object rather than a list.
_WRAPPED = ("annotations", "predictions")


def by_name(detections: Found | Models) -> dict[str, Found]:
    """Return detections by model name. Raises `OptionError` if a file is given twice.

    Models in a sequence are named after their files, as in `detmap batch`. A model without a file is called "model 1" and
    so on, or "detections" if it is the only one.
    """
    if _is_one(detections):
        listed: list[Any] = [detections]
    elif isinstance(detections, Mapping):
        return {str(name): found for name, found in detections.items()}
    else:
        listed = list(cast("Sequence[Found]", detections))
    paths = [_path_of(one) for one in listed]
    twice = next((path for path, count in Counter(filter(None, paths)).items() if count > 1), None)
    if twice is not None:
        raise OptionError(f"{shorten(twice)} is given twice: give each model once, or by name as {{'a': …, 'b': …}}")
    from detmap.formats.model_names import distinct

    names = iter(distinct([path for path in paths if path]))
    plain = "detections" if len(listed) == 1 else "model {}"
    return {
        next(names) if path else plain.format(place): one
        for place, (path, one) in enumerate(zip(paths, listed, strict=True), 1)
    }


def _is_one(detections: object) -> bool:
    """Return whether detections are of one model: a table, a path or COCO's results."""
    if isinstance(detections, Mapping):
        return any(isinstance(detections.get(name), list | tuple) and _is_one(detections[name]) for name in _WRAPPED)
    if isinstance(detections, list | tuple):
        if not detections:
            return True
        first = detections[0]  # a mapping is either a single detection or a wrapper of all results of one model
        return isinstance(first, Mapping) and not hasattr(first, "tally") and not _is_one(first)
    return True


def _path_of(given: object) -> str:
    """Return the path of the file of detections; "" if there is none."""
    if isinstance(given, str | os.PathLike):
        return os.fspath(given)
    return given.source if isinstance(given, Detections) and given.source != _UNNAMED else ""


#: Name of detections without a known file.
_UNNAMED = "detections"


class Owned:
    """Holds detections until `take` is called, so that their memory can be freed after matching."""

    def __init__(self, held: Found) -> None:
        self._held = [held]

    @property
    def held(self) -> Any:
        """The detections, if they were not taken before."""
        return self._held[0]

    def take(self) -> Any:
        """Return the detections and drop the reference to them; raise if they were taken before."""
        return self._held.pop()


def owned(detections: Found | Owned) -> Owned:
    """Return detections wrapped in `Owned`."""
    return detections if isinstance(detections, Owned) else Owned(detections)


def tables_of(
    ground_truth: Truth,
    detections: Found | Owned,
    protocol: str | Protocol,
    iou_type: str | None,
    levels: Any = None,
    *,
    once: bool = False,
) -> tuple[GroundTruth, Detections]:
    """Return tables of ground truth and detections. Raises `InputError` for other types and for swapped arguments.

    From files and dictionaries, only the scored geometries and the object fields that `levels` use are read. By default
    `levels` are those of the protocol. For `once` see `Input.detections`.
    """
    detections = detections.take() if isinstance(detections, Owned) else detections
    if isinstance(ground_truth, GroundTruth) and isinstance(detections, Detections):
        return ground_truth, detections
    kind = iou_type
    if kind is not None and isinstance(protocol, str) and protocol != AUTO:
        resolve(protocol, iou_type=kind)  # raises before files are read
    if kind is None:
        tables = [one for one in (ground_truth, detections) if isinstance(one, GroundTruth | Detections)]
        if protocol == AUTO:
            protocol = _asked(ground_truth)
        decided = protocol if isinstance(protocol, Protocol) else preset(protocol)
        kind = tables[0].kinds[0] if tables and len(tables[0].kinds) == 1 else decided.iou_type
    if levels is None and protocol != AUTO:
        levels = (protocol if isinstance(protocol, Protocol) else preset(protocol)).levels
    fields = fields_of(plain_levels(levels or ()))
    truth, found = _truth(ground_truth, kind, fields), detections
    if isinstance(truth, GroundTruth):
        found = _found(detections, truth, kind, once)
    check_pair(truth, found)
    assert isinstance(truth, GroundTruth)
    assert isinstance(found, Detections)
    return truth, found


def _asked(given: Truth) -> str:
    """Return the name of the protocol that the fields of the ground truth suggest. For a pipe, which can be read only
    once, return COCO's.
    """
    if not isinstance(given, str | os.PathLike | Mapping):
        return COCO.name
    from detmap.formats.files import asked_protocol
    from detmap.formats.inputs import is_stream

    return COCO.name if is_stream(given) else asked_protocol(given)


def _truth(given: Truth, kind: str, fields: tuple[str, ...]) -> Truth:
    """Read ground truth from a path or COCO's dictionary; any other argument is returned unchanged."""
    if not isinstance(given, str | os.PathLike | Held | Mapping):
        return given
    from detmap.formats.inputs import Input

    return Input(given, "ground_truth", Reading(iou_type=kind, image_facts=True, fields=fields)).ground_truth()


def _found(given: Found, truth: GroundTruth, kind: str, once: bool) -> Found:
    """Read detections from a path or COCO's results; any other argument is returned unchanged."""
    if not isinstance(given, str | os.PathLike | Held | list | tuple | Mapping):
        return given
    from detmap.formats.inputs import Input

    if isinstance(given, list | tuple) and given and isinstance(given[0], str | os.PathLike | Detections):
        raise OptionError("several models are given: detmap.compare(ground_truth, [detections, others]) scores each")
    return Input(given, "detections", Reading(iou_type=kind)).detections(truth, once=once)
