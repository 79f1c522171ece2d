"""nuScenes' files: results as they are submitted, and ground truth as a JSON of samples or as the tables of the data
set.

Results are ``{"meta": {…}, "results": {token: [box, …]}}``. A box has ``translation``, ``size`` (width, length, height),
``rotation`` (w, x, y, z), ``velocity``, ``detection_name``, ``detection_score`` and ``attribute_name``. A JSON of samples is
``{"samples": [{"token", "ego": [x, y, z], "boxes": [box with num_pts, …], "racks": [{translation, size, rotation}, …]}]}``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap import columns
from detmap.data.ids import Ids, locate
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, shorten
from detmap.formats.file_names import (
    category_names,
    check_scores,
    grouped_by_image,
    images_as_given,
    lost_facts,
    lost_ids,
    shapes_lost,
    write_json,
)
from detmap.formats.registry import Format, Given, Writing, packed
from detmap.formats.voc.read import image_set_of
from detmap.kernels import readonly
from detmap.plugins import register
from detmap.reading.options import Path, Reading, Role
from detmap.reading.sources import name_of, read_bytes
from detmap.reading.typed_json import UNREADABLE, decoded, refused
from detmap.shapes.kinds import DISTANCE, Surroundings
from detmap.shapes.moving import NO_ATTRIBUTE, MovingBoxes

#: The classes, in the order in which means are computed; the id of a class is its index.
CLASSES = (
    *("car", "truck", "bus", "trailer", "construction_vehicle"),
    *("pedestrian", "motorcycle", "bicycle", "traffic_cone", "barrier"),
)

ATTRIBUTES = (
    *("pedestrian.moving", "pedestrian.sitting_lying_down", "pedestrian.standing"),
    *("cycle.with_rider", "cycle.without_rider"),
    *("vehicle.moving", "vehicle.parked", "vehicle.stopped"),
)

#: Maximum number of boxes of a sample, over all classes, as in the development kit.
MOST_BOXES = 500

#: First keys of results, and of a JSON of samples.
_RESULTS = re.compile(rb'\s*\{\s*("meta"\s*:\s*\{[^{}]*\}\s*,\s*)?"results"\s*:\s*\{')
_SAMPLES = re.compile(rb'\s*\{\s*"samples"\s*:\s*\[')

#: NaN in place of a JSON value.
_NAN = re.compile(rb"(?<=[\[,:\s])-?NaN(?=[\],}\s])")

#: Name of the field that holds the number of lidar and radar points in each box; -1 if unknown.
_POINTS = "num_pts"

_CLASS = {name: place for place, name in enumerate(CLASSES)}
_ATTRIBUTE = {"": NO_ATTRIBUTE, **{name: place for place, name in enumerate(ATTRIBUTES)}}


_Three = tuple[float, float, float]
_Four = tuple[float, float, float, float]

#: Number of points in a box, limited to integers that float64 holds exactly.
_Points = Annotated[int, msgspec.Meta(ge=-(1 << 52), le=1 << 52)]


class _Box(msgspec.Struct, gc=False):
    """A box of results, or of a JSON of samples; a null velocity is unknown."""

    translation: _Three
    size: _Three
    rotation: _Four
    detection_name: str
    velocity: tuple[float | None, float | None] | None = None
    detection_score: float | None = None
    attribute_name: str = ""
    num_pts: _Points = -1
    sample_token: str | None = None


class _Rack(msgspec.Struct, gc=False):
    translation: _Three
    size: _Three
    rotation: _Four


class _Sample(msgspec.Struct, gc=False):
    token: str
    boxes: msgspec.Raw
    ego: list[float] | None = None
    racks: list[_Rack] = []


class _Scene(NamedTuple):
    """A sample: boxes (JSON or decoded), position of the ego vehicle, and bicycle racks."""

    token: str
    boxes: msgspec.Raw | list[_Box]
    ego: list[float] | None
    racks: list[_Rack]


class _Samples(msgspec.Struct):
    samples: list[_Sample]


class _Results(msgspec.Struct):
    results: dict[str, msgspec.Raw]


class _Read(NamedTuple):
    """The boxes of all samples: the index of each box's sample, and the columns of the boxes."""

    samples: NDArray[np.int64]
    classes: NDArray[np.int64]
    scores: NDArray[np.float64]
    points: NDArray[np.float64]
    column: MovingBoxes


def _document(source: Any, kind: str, form: type) -> tuple[Any, str]:
    """Return the decoded content of a JSON file, and the file's name; Python's ``NaN`` is read as null."""
    data, name = read_bytes(source, kind)
    return _decoded(data, name, form), name


def _decoded(data: Any, name: str, form: Any) -> Any:
    try:
        return decoded(data, form, name)
    except InputError:
        plain = _NAN.sub(b"null", data)
        if plain == data:
            raise
    return decoded(plain, form, name)


def _read(boxes: Iterable[tuple[str, Any]], name: str, scored: bool) -> _Read:
    """Read the boxes of samples, given as pairs of token and JSON."""
    decoder = msgspec.json.Decoder(list[_Box])
    counts: list[int] = []
    read: dict[str, list[Any]] = {
        one: [] for one in ("translation", "size", "rotation", "velocity", "classes", "scores", "attributes", "points")
    }
    for token, raw in boxes:
        try:
            found = decoder.decode(raw) if isinstance(raw, msgspec.Raw) else raw
        except UNREADABLE as error:
            raise refused(error, name, f"sample {shorten(token)}") from None
        if scored and len(found) > MOST_BOXES:
            raise InputError(
                f"has {len(found)} boxes, and a submission at most {MOST_BOXES}",
                source=name,
                record=f"sample {shorten(token)}",
                remedy="keep those of the best scores",
            )
        for place, box in enumerate(found):
            _check(box, f"sample {shorten(token)}, box {place}", token, name, scored)
        counts.append(len(found))
        read["translation"] += [box.translation for box in found]
        read["size"] += [box.size for box in found]
        read["rotation"] += [box.rotation for box in found]
        read["velocity"] += [box.velocity or (None, None) for box in found]
        read["classes"] += [_CLASS[box.detection_name] for box in found]
        read["scores"] += [box.detection_score for box in found]
        read["attributes"] += [_ATTRIBUTE[box.attribute_name] for box in found]
        read["points"] += [box.num_pts for box in found]
    points = np.array(read["points"], np.float64)
    samples = np.repeat(np.arange(len(counts)), counts)
    try:
        column = MovingBoxes.from_arrays(
            read["translation"],
            read["size"],
            read["rotation"],
            np.array(read["velocity"], np.float64).reshape(-1, 2),
            np.array(read["attributes"], np.int64),
            points == 0,
            source=name,
        )
    except InputError as error:
        row = error.record if isinstance(error.record, int) else 0
        place = row - sum(counts[: samples[row]])
        raise error.elsewhere(name, f"sample {samples[row]} of the file, box {place}") from None
    scores = np.array(read["scores"] if scored else [], np.float64)
    return _Read(samples, np.array(read["classes"], np.int64), scores, points, column)


def _check(box: _Box, record: str, token: str, name: str, scored: bool) -> None:
    """Refuse a box with an unknown class, an unknown attribute, the token of another sample, or no score."""
    if box.detection_name not in _CLASS:
        problem, field, value, remedy = "is no class", "detection_name", box.detection_name, ", ".join(CLASSES)
    elif box.attribute_name not in _ATTRIBUTE:
        problem, field, value, remedy = "is no attribute", "attribute_name", box.attribute_name, ", ".join(ATTRIBUTES)
    elif box.sample_token not in (None, token):
        problem, field, value, remedy = "is another sample", "sample_token", str(box.sample_token), f"it is {token!r}"
    elif scored and box.detection_score is None:
        raise InputError("is missing", source=name, record=record, field="detection_score")
    else:
        return
    raise InputError(problem, source=name, record=record, field=field, value=value, remedy=remedy)


def read_detections(source: Any, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
    """Read detections in nuScenes' submission format."""
    document, name = _document(source, "detections", _Results)
    tokens = list(document.results)
    found = _read(document.results.items(), name, scored=True)
    wrong = np.isnan(found.scores)
    assert not wrong.any()  # valid JSON has no NaN
    made = Detections.from_arrays(
        image_ids=_coded(tokens, found.samples, name),
        category_ids=found.classes,
        scores=found.scores,
        shapes={DISTANCE: found.column},
        source=name,
    )
    if ground_truth is None:
        return made
    made = made.on_images_of(ground_truth, reading.unknown_images)
    missing = len(set(ground_truth.images.ids.tolist()).difference(tokens))
    return replace(made, notices={**made.notices, "missing_samples": missing} if missing else made.notices)


def _coded(tokens: Sequence[str], samples: NDArray[np.int64], name: str) -> Ids:
    """Return the token of each box's sample as a column of ids; samples without boxes are left out."""
    seen = np.zeros(len(tokens), np.bool_)
    seen[samples] = True
    place = np.cumsum(seen) - 1
    ids = columns.texts([token for token, there in zip(tokens, seen.tolist(), strict=True) if there], source=name)
    return Ids(ids if seen.any() else np.empty(0, "U1"), place[samples].astype(np.int32))


def read_ground_truth(source: Any, reading: Reading) -> GroundTruth:
    """Read a JSON of samples, or the tables of the data set. The option `image_set` selects samples by token or scene."""
    wanted = None if reading.image_set is None else image_set_of(reading.image_set)
    if isinstance(source, str | os.PathLike) and os.path.isdir(source):
        name = name_of(source, "ground truth")
        samples = _of_tables(source, wanted)
    else:
        document, name = _document(source, "ground truth", _Samples)
        samples = [
            _Scene(one.token, one.boxes, one.ego, one.racks)
            for one in document.samples
            if wanted is None or one.token in wanted
        ]
    if not samples:
        raise InputError("has no samples" if wanted is None else "has no samples of the image set", source=name)
    tokens = [one.token for one in samples]
    if len(set(tokens)) < len(tokens):
        twice = next(token for at, token in enumerate(tokens) if token in tokens[:at])
        raise InputError("is there twice", source=name, field="token", value=twice)
    found = _read(((one.token, one.boxes) for one in samples), name, scored=False)
    made = GroundTruth.from_arrays(
        image_ids=_coded(tokens, found.samples, name),
        category_ids=found.classes,
        images=columns.texts(tokens, source=name),
        categories=np.arange(len(CLASSES)),
        category_names=dict(enumerate(CLASSES)),
        shapes={DISTANCE: found.column},
        fields={_POINTS: found.points},
        source=name,
    )
    around = _surroundings(samples, made.images.ids, name)
    return replace(made, images=replace(made.images, surroundings=around))


def _surroundings(samples: Sequence[_Scene], images: NDArray[Any], name: str) -> Surroundings:
    """Return the position of the ego vehicle in each sample, and the bicycle racks."""
    place = locate(columns.texts([one.token for one in samples], source=name), images)
    places = np.full((len(samples), 2), np.nan)
    for at, one in zip(place.tolist(), samples, strict=True):
        if one.ego is not None:
            if len(one.ego) < 2:
                raise InputError(
                    "must be x and y", source=name, record=f"sample {one.token!r}", field="ego", value=one.ego
                )
            places[at] = one.ego[:2]
    racks = [(at, rack) for at, one in zip(place.tolist(), samples, strict=True) for rack in one.racks]
    boxes = MovingBoxes.from_arrays(
        [rack.translation for _, rack in racks],
        [rack.size for _, rack in racks],
        [rack.rotation for _, rack in racks],
        source=f"{name}, racks",
    )
    return Surroundings(
        readonly(places, np.float64),
        readonly([at for at, _ in racks], np.int64),
        *(readonly(column, np.float64) for column in (boxes.centres, boxes.sizes, boxes.rotations)),
    )


# ------------------------------------------------------------------------------------------------------------------ tables


class _Named(msgspec.Struct, gc=False):
    token: str
    name: str


class _SampleRow(msgspec.Struct, gc=False):
    token: str
    timestamp: int
    scene_token: str


class _Instance(msgspec.Struct, gc=False):
    token: str
    category_token: str


class _Annotation(msgspec.Struct, gc=False):
    token: str
    sample_token: str
    instance_token: str
    attribute_tokens: list[str]
    translation: _Three
    size: _Three
    rotation: _Four
    prev: str
    next: str
    num_lidar_pts: _Points
    num_radar_pts: _Points


class _Pose(msgspec.Struct, gc=False):
    token: str
    translation: _Three


class _Data(msgspec.Struct, gc=False):
    sample_token: str
    ego_pose_token: str
    calibrated_sensor_token: str
    is_key_frame: bool


class _Calibrated(msgspec.Struct, gc=False):
    token: str
    sensor_token: str


class _Sensor(msgspec.Struct, gc=False):
    token: str
    channel: str


#: The scored categories of the tables, and the class of each category.
_SCORED = {
    "movable_object.barrier": "barrier",
    "movable_object.trafficcone": "traffic_cone",
    "vehicle.bicycle": "bicycle",
    "vehicle.bus.bendy": "bus",
    "vehicle.bus.rigid": "bus",
    "vehicle.car": "car",
    "vehicle.construction": "construction_vehicle",
    "vehicle.motorcycle": "motorcycle",
    "vehicle.trailer": "trailer",
    "vehicle.truck": "truck",
    **{f"human.pedestrian.{one}": "pedestrian" for one in ("adult", "child", "construction_worker", "police_officer")},
}
_RACK = "static_object.bicycle_rack"

#: The sensor whose poses give the position of the ego vehicle.
_CHANNEL = "LIDAR_TOP"

#: Maximum time in seconds over which a velocity is computed, with one neighbouring sample (False) or two (True).
_LONGEST = {False: 1.5, True: 3.0}

_TABLES = ("sample", "sample_annotation", "sample_data", "ego_pose", "scene", "attribute", "instance", "category")


class _Tables:
    """The rows of the tables in a folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = os.fspath(folder)

    def name(self, table: str) -> str:
        return os.path.join(self.folder, f"{table}.json")

    def rows(self, table: str, form: Any) -> list[Any]:
        """Return the rows of a table."""
        found: list[Any] = _document(self.name(table), "ground truth", list[form])[0]
        return found

    def look_up(self, known: dict[str, Any], token: str, table: str, row: int, field: str) -> Any:
        """Return the row of a token; raise `InputError` if there is none."""
        if token not in known:
            raise InputError(
                "is no token of the other table", source=self.name(table), record=row, field=field, value=token
            )
        return known[token]


def _of_tables(folder: Any, wanted: set[str] | None) -> list[_Scene]:
    """Return the samples of the tables; unless `wanted` is None, only samples whose token or scene name is in `wanted`."""
    tables = _Tables(folder)
    scenes = {one.token: one.name for one in tables.rows("scene", _Named)}
    rows = tables.rows("sample", _SampleRow)
    names = [tables.look_up(scenes, one.scene_token, "sample", row, "scene_token") for row, one in enumerate(rows)]
    times = {one.token: 1e-6 * one.timestamp for one in rows}
    chosen = [one.token for one, name in zip(rows, names, strict=True) if wanted is None or {one.token, name} & wanted]
    boxes: dict[str, list[_Box]] = {token: [] for token in chosen}
    racks: dict[str, list[_Rack]] = {token: [] for token in chosen}
    categories = {one.token: one.name for one in tables.rows("category", _Named)}
    of_instance = {one.token: one.category_token for one in tables.rows("instance", _Instance)}
    attributes = {one.token: one.name for one in tables.rows("attribute", _Named)}
    annotations = tables.rows("sample_annotation", _Annotation)
    known = {one.token: one for one in annotations}
    for row, one in enumerate(annotations):
        if one.sample_token not in boxes:
            continue
        token = tables.look_up(of_instance, one.instance_token, "sample_annotation", row, "instance_token")
        category = tables.look_up(categories, token, "instance", row, "category_token")
        if category == _RACK:
            racks[one.sample_token].append(_Rack(one.translation, one.size, one.rotation))
        if category not in _SCORED:
            continue
        if len(one.attribute_tokens) > 1:
            problem = "has more than one attribute"
            raise InputError(problem, source=tables.name("sample_annotation"), record=row, field="attribute_tokens")
        said = [
            tables.look_up(attributes, own, "sample_annotation", row, "attribute_tokens")
            for own in one.attribute_tokens
        ]
        boxes[one.sample_token].append(
            _Box(
                one.translation,
                one.size,
                one.rotation,
                _SCORED[category],
                velocity=_velocity(tables, row, one, known, times),
                attribute_name=said[0] if said else "",
                num_pts=one.num_lidar_pts + one.num_radar_pts,
            )
        )
    places = _places(tables, set(chosen))
    return [_Scene(token, boxes[token], places.get(token), racks[token]) for token in chosen]


def _velocity(
    tables: _Tables, row: int, one: _Annotation, known: dict[str, _Annotation], times: dict[str, float]
) -> tuple[float, float] | None:
    """Return an object's velocity from its positions in the previous and next sample; None if both samples are too far
    apart in time.
    """
    if not one.prev and not one.next:
        return None
    table = "sample_annotation"
    first = tables.look_up(known, one.prev, table, row, "prev") if one.prev else one
    last = tables.look_up(known, one.next, table, row, "next") if one.next else one
    begin, end = (tables.look_up(times, other.sample_token, table, row, "sample_token") for other in (first, last))
    elapsed = end - begin
    if elapsed > _LONGEST[bool(one.prev and one.next)]:
        return None
    if elapsed <= 0:
        problem = "the samples of an object's annotations do not follow each other in time"
        raise InputError(problem, source=tables.name(table), record=row, field="next", value=one.next)
    x, y = ((last.translation[axis] - first.translation[axis]) / elapsed for axis in (0, 1))
    return x, y


def _places(tables: _Tables, chosen: set[str]) -> dict[str, list[float]]:
    """Return the position of the ego vehicle in each sample."""
    sensors = {one.token for one in tables.rows("sensor", _Sensor) if one.channel == _CHANNEL}
    lidars = {one.token for one in tables.rows("calibrated_sensor", _Calibrated) if one.sensor_token in sensors}
    poses = {one.token: one.translation for one in tables.rows("ego_pose", _Pose)}
    found = {}
    for row, one in enumerate(tables.rows("sample_data", _Data)):
        if one.is_key_frame and one.sample_token in chosen and one.calibrated_sensor_token in lidars:
            found[one.sample_token] = list(
                tables.look_up(poses, one.ego_pose_token, "sample_data", row, "ego_pose_token")
            )
    return found


# ----------------------------------------------------------------------------------------------------------------- writing


def write_ground_truth(table: GroundTruth, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write a JSON of samples."""
    boxes, lost = _written(table, None)
    points = np.nan_to_num(table.fields.get(_POINTS, np.zeros(len(table))))
    points = np.where(_column(table).unseen, 0, np.where(points > 0, points, -1)).astype(np.int64)
    for box, count in zip(boxes, points.tolist(), strict=True):
        box |= {} if count < 0 else {_POINTS: count}
    tokens, around = list(map(str, table.images.ids.tolist())), table.images.surroundings
    samples: list[dict[str, Any]] = [{"token": token, "boxes": [], "racks": []} for token in tokens]
    for code, box in zip(table.images.codes.tolist(), boxes, strict=True):
        samples[code]["boxes"].append(box)
    if around is not None:
        for sample, ego in zip(samples, around.places.tolist(), strict=True):
            sample |= {} if np.isnan(ego).any() else {"ego": ego}
        racks = zip(
            around.rack_centres.tolist(), around.rack_sizes.tolist(), around.rack_rotations.tolist(), strict=True
        )
        for image, rack in zip(around.rack_images.tolist(), racks, strict=True):
            samples[image]["racks"].append(dict(zip(_PLACE, rack, strict=True)))
    write_json(path, {"samples": [samples[code] for code in images_as_given(table)]}, table.source)
    return {**lost, **lost_facts(table, _column(table).areas())}


def write_detections(table: Detections, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write results; samples of the ground truth without detections are listed too."""
    check_scores(table)
    boxes, lost = _written(table, writing.ground_truth)
    tokens = list(map(str, table.images.ids.tolist()))
    rows, moved = grouped_by_image(table)
    scores, results = table.scores.tolist(), {}
    for own in map(np.ndarray.tolist, rows):
        token = tokens[table.images.codes[own[0]]]
        if len(own) > MOST_BOXES:
            problem = f"has {len(own)} boxes, and a submission at most {MOST_BOXES}"
            raise InputError(problem, source=table.source, record=f"sample {shorten(token)}")
        results[token] = [{"sample_token": token, **boxes[row], "detection_score": scores[row]} for row in own]
    if writing.ground_truth is not None:
        for token in map(str, writing.ground_truth.images.ids.tolist()):
            results.setdefault(token, [])
    write_json(path, {"meta": {}, "results": results}, table.source)
    return {**lost, "order": moved}


#: Fields with the position and size of a box.
_PLACE = ("translation", "size", "rotation")


def _column(table: GroundTruth | Detections) -> MovingBoxes:
    column = table.shape(DISTANCE)
    assert isinstance(column, MovingBoxes)
    return column


def _written(table: GroundTruth | Detections, truth: GroundTruth | None) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return the fields that objects and detections share, and counts of what the format cannot hold."""
    column = _column(table)
    names = _class_names(table, truth)
    attributes = column.attributes
    bad = (attributes < NO_ATTRIBUTE) | (attributes >= len(ATTRIBUTES))
    if bad.any():
        row = int(np.argmax(bad))
        problem = f"is no number of an attribute, from 0 to {len(ATTRIBUTES) - 1}, or {NO_ATTRIBUTE} for none"
        raise InputError(problem, source=table.source, record=row, field="attributes", value=int(attributes[row]))
    place = zip(column.centres.tolist(), column.sizes.tolist(), column.rotations.tolist(), strict=True)
    boxes: list[dict[str, Any]] = [dict(zip(_PLACE, one, strict=True)) for one in place]
    columns = column.velocities.tolist(), table.categories.codes.tolist(), attributes.tolist()
    for box, velocity, code, attribute in zip(boxes, *columns, strict=True):
        box["velocity"] = [None if one != one else one for one in velocity]
        box["detection_name"] = names[code]
        box["attribute_name"] = ATTRIBUTES[attribute] if attribute >= 0 else ""
    values = table.categories.ids.tolist()
    known = [_CLASS.get(name) for name in names]
    used = np.unique(table.categories.codes).tolist()
    ranks = [known[code] for code in used]
    return boxes, {
        "shapes": shapes_lost(table, (DISTANCE,)),
        "image_ids": lost_ids(table.images.ids, list(map(str, table.images.ids.tolist()))),
        "category_ids": sum(one != place for one, place in zip(values, known, strict=True)),
        "category_order": sum(one != other for one, other in zip(ranks, sorted(map(int, ranks)), strict=True)),
        "empty_categories": sum(place is None for place in known),
    }


def _class_names(table: GroundTruth | Detections, truth: GroundTruth | None) -> list[str]:
    """Return the name of each category. Raises `InputError` if a category with boxes is no class of nuScenes."""
    if isinstance(table, Detections) and truth is None and table.categories.ids.dtype.kind == "i":
        of = dict(enumerate(CLASSES))
        names = [of.get(one, str(one)) for one in table.categories.ids.tolist()]
    else:
        names = category_names(table, truth)
    for code in np.unique(table.categories.codes).tolist():
        if names[code] not in _CLASS:
            raise InputError(
                "is no class of nuScenes", source=table.source, value=names[code], remedy=f"one of {', '.join(CLASSES)}"
            )
    return names


def _sniff(given: Given) -> bool:
    """Recognise a folder of tables, or JSON by its first key."""
    if given.is_folder:
        return given.role == "ground_truth" and {f"{table}.json" for table in _TABLES} <= {*given.names}
    if given.role == "detections" and b'"segment"' in given.head:  # ActivityNet's results have the same first key
        return False
    return bool((_RESULTS if given.role == "detections" else _SAMPLES).match(given.head))


def _tell(given: Given) -> Role:
    return "detections" if _RESULTS.match(given.head) else "ground_truth"


FORMAT = register(
    Format(
        name="nuscenes",
        takes=("image_set",),
        suffixes=packed(".json"),
        sniff=_sniff,
        read_ground_truth=read_ground_truth,
        read_detections=read_detections,
        write_ground_truth=write_ground_truth,
        write_detections=write_detections,
        holds=(DISTANCE,),
        fields=(_POINTS,),
        protocol="nuscenes",
        words=("nuScenes' JSON of samples, or folder of tables", "nuScenes' results"),
        members=".json",
        tell=_tell,
    )
)
