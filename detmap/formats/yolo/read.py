"""YOLO's text files: a file per image, a line per object, normalised by the image's width and height.

A line holds the number of the class, followed by a box (centre x, centre y, width, height), a polygon (x, y, x, y and so
on), or a box and keypoints. An oriented box is a polygon of four points. In predictions the score comes last, optionally
followed by a track number, as written by Ultralytics' tools.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.choices import decimal
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, OptionError
from detmap.formats.file_names import recoded, resolve_categories, resolve_images
from detmap.formats.image_sizes import Sizes, size_of_image
from detmap.formats.registry import Format, Given
from detmap.formats.yolo import folders
from detmap.formats.yolo.folders import Entry, Settings
from detmap.plugins import later, register
from detmap.reading.lines import Lines, read_lines
from detmap.reading.options import Reading, Role
from detmap.reading.sources import name_of
from detmap.shapes import find
from detmap.shapes.kinds import BOUNDARIES, BOXES, KEYPOINTS, MASKS, PROBIOU, ROTATED

if TYPE_CHECKING:
    from detmap.masks import Masks

#: Maximum normalised coordinate; if most lines exceed this coordinate, numbers are taken for pixels.
_FARTHEST = 2.0


#: Minimum number of boxes outside of their images for the notice that scores seem to come before boxes.
_FEWEST_OUTSIDE = 2

#: Minimum number of lines to tell poses from polygons.
_FEWEST_POSES = 3

_AS_SCORED = "is the sixth a score? Then these are detections"


class _Parsed(NamedTuple):
    """Records in pixels. `shapes` are columns of tables, `unread` is the number of polygons and poses that are read as
    boxes, and `numbers` are all numbers of the lines.
    """

    classes: NDArray[np.int64]
    scores: NDArray[np.float64]
    shapes: dict[str, Any]
    unread: int = 0
    numbers: NDArray[np.float64] | None = None


def _parse(
    lines: Lines,
    sizes: NDArray[np.int64],
    points: tuple[int, int] | None,
    iou_type: str,
    scored: bool,
    settled: bool = False,
) -> _Parsed:
    """Parse lines, given the image sizes. If `settled` is true, ``data.yaml`` says whether lines hold keypoints."""
    values, edges = lines.floats()
    counts, starts = np.diff(edges), edges[:-1]
    classes = _classes(lines, values, starts, counts)
    if iou_type == KEYPOINTS:
        points = _points(lines, counts, points, scored)
    posed = 0 if points is None else 5 + points[0] * points[1]
    body, scores = _without_scores(lines, values, edges, posed, scored)
    flat = body - 1
    is_box, is_pose = flat == 4, body == posed
    is_outline = ~is_box & ~is_pose & (flat >= 6) & (flat % 2 == 0)
    wrong = ~(is_box | is_pose | is_outline)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise lines.error(
            row,
            f"has {counts[row]} numbers, which are neither a box nor a polygon"
            + ("" if not posed else f" nor a box and {points[0] if points else 0} keypoints"),
            remedy=None if posed else _AS_SCORED if counts[row] == 6 else "keypoints need kpt_shape in data.yaml",
        )
    if not settled and iou_type == BOXES and is_outline.any() and is_outline.all():
        _check_not_poses(lines, values, starts, flat)
    places = np.arange(values.size) - np.repeat(starts, counts)  # index of each number within its line
    owner = np.repeat(np.arange(len(counts)), counts)
    inside = (places > 0) & (places < body[owner]) & ~(is_pose[owner] & (places > 4))
    far = np.zeros(len(counts), np.bool_)
    far[owner[inside & (np.abs(values) > _FARTHEST)]] = True
    if 2 * np.count_nonzero(far) > far.size:  # a minority may lie far outside of their image
        raise lines.error(int(np.argmax(far)), "must be shares of the image's width and height, which pixels are not")
    wanted = {MASKS: is_outline, KEYPOINTS: is_pose, ROTATED: is_outline & (flat == 8)}.get(iou_type)
    if wanted is not None and not wanted.all():
        what = {MASKS: "a polygon", KEYPOINTS: "a box and keypoints", ROTATED: "the four corners of a box"}[iou_type]
        raise lines.error(
            int(np.argmin(wanted)), f"is not {what}", remedy="iou_type='bbox' (--iou-type bbox) scores the boxes"
        )
    scale = sizes[:, ::-1].astype(np.float64)
    if iou_type == MASKS:
        masks = _masks(values[inside].reshape(-1, 2), flat // 2, sizes, scale, lines.names)
        return _Parsed(classes, scores, {"masks": masks})
    if iou_type == ROTATED:
        corners = values[inside].reshape(-1, 4, 2) * scale[:, None, :]
        return _Parsed(classes, scores, {find(ROTATED).argument: corners})
    boxes, written = np.zeros((len(counts), 4)), ~is_outline
    for column in range(4):
        boxes[written, column] = values[starts[written] + 1 + column]
    boxes[:, :2] -= boxes[:, 2:] / 2
    if is_outline.any():
        outlines = values[inside & is_outline[owner]].reshape(-1, 2)
        boxes[is_outline] = _boxes_around(outlines, flat[is_outline] // 2)
    boxes *= np.concatenate([scale, scale], axis=1)
    shapes: dict[str, Any] = {"boxes": boxes}
    if iou_type == KEYPOINTS and points is not None:
        numbers = values[(places > 4) & (places < body[owner])]
        shapes[find(KEYPOINTS).argument] = _poses(numbers.reshape(len(counts), *points), scale)
    unread = int(np.count_nonzero(~is_box)) if iou_type == BOXES else 0
    return _Parsed(classes, scores, shapes, unread, values)


def _classes(
    lines: Lines, values: NDArray[np.float64], starts: NDArray[np.int64], counts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the number of the class of each line."""
    if (counts < 5).any():
        row = int(np.argmax(counts < 5))
        raise lines.error(row, f"has {counts[row]} numbers; a line is at least: class, x, y, width, height")
    classes = values[starts] if len(starts) else np.empty(0)
    bad = (classes < 0) | (classes != np.floor(classes)) | (classes > 1e6)
    lines.refuse(bad, "the number of a class must be an integer of 0 or more")
    return classes.astype(np.int64)


def _masks(
    outlines: NDArray[np.float64],
    points: NDArray[np.int64],
    sizes: NDArray[np.int64],
    scale: NDArray[np.float64],
    names: Sequence[str],
) -> Masks:
    """Draw polygons on images of the given sizes. `outlines` holds the points of one polygon after the other, and `points`
    the number of points of each polygon.
    """
    from detmap.masks import Masks

    if not len(points):
        return Masks.from_polygons([], (1, 1))
    polygons = np.split(outlines * np.repeat(scale, points, axis=0), np.cumsum(points)[:-1])
    return Masks.from_polygons([[one] for one in polygons], sizes, source=names[0])


def _boxes_around(outlines: NDArray[np.float64], points: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the boxes around polygons, given as in `_masks`."""
    first = np.concatenate([[0], np.cumsum(points)])[:-1]
    low, high = np.minimum.reduceat(outlines, first), np.maximum.reduceat(outlines, first)
    return np.concatenate([low, high - low], axis=1)


def _poses(table: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return keypoints in pixels. In files without visibilities, a keypoint with a negative coordinate is absent."""
    width = table.shape[2]
    poses = np.full((*table.shape[:2], 3), 2.0)
    poses[:, :, :width] = table
    poses[:, :, :2] *= scale[:, None, :]
    if width == 2:
        poses[(table < 0).any(axis=2)] = 0.0
    return poses


def _check_not_poses(
    lines: Lines, values: NDArray[np.float64], starts: NDArray[np.int64], flat: NDArray[np.int64]
) -> None:
    """Refuse lines of polygons that could also be poses."""
    meant = _as_poses(values, starts, flat)
    if meant is not None:
        raise lines.error(
            0,
            f"can be a polygon of {flat[0] // 2} points, or a box and {meant[0]} keypoints of {meant[1]} numbers",
            remedy="say kpt_shape in data.yaml, and give it as classes (--classes data.yaml): without kpt_shape they "
            "are polygons",
        )


def _as_poses(
    values: NDArray[np.float64], starts: NDArray[np.int64], flat: NDArray[np.int64]
) -> tuple[int, int] | None:
    """Return the numbers of keypoints and of values per keypoint if polygons can also be read as poses, else None."""
    # Poses have equally many numbers on all lines, and the keypoints of most poses lie within their box and fill part
    # of it. If polygons are read as poses, their first two points become the centre and size of a box, and the other
    # points rarely lie within this box. The last number may be a score or belong to the pose, so both are tried.
    counts = np.diff([*starts, values.size])
    if len(flat) < _FEWEST_POSES or (counts != counts[0]).any():
        return None
    whole = values.reshape(len(flat), -1)[:, 1:]
    for rest in {int(flat[0]) - 4, *range(int(flat[0]) - 5, whole.shape[1] - 3)}:
        for width in (3, 2):
            if rest <= 0 or rest % width:
                continue
            box, points = whole[:, None, :4], whole[:, 4 : 4 + rest].reshape(len(whole), -1, width)
            seen = points[:, :, 2] > 0 if width == 3 else (points != 0).any(axis=2)
            flagged = width == 3 and bool(np.isin(points[:, :, 2], (0, 1, 2)).all())
            within = (np.abs(points[:, :, :2] - box[:, :, :2]) <= 0.55 * box[:, :, 2:]).all(axis=2) | ~seen
            shown = np.where(seen[:, :, None], points[:, :, :2], np.nan)
            shown[~seen.any(axis=1)] = 0.0
            fills = (np.nanmax(shown, axis=1) - np.nanmin(shown, axis=1) >= 0.3 * box[:, 0, 2:]).all(axis=1)
            alike = within.all(axis=1) & (fills | flagged)
            telling = alike & seen.any(axis=1)  # a line without visible points is no evidence
            if np.count_nonzero(telling) >= _FEWEST_POSES and np.count_nonzero(alike) >= 0.7 * len(alike):
                return rest // width, width
    return None


def _points(
    lines: Lines, counts: NDArray[np.int64], points: tuple[int, int] | None, scored: bool
) -> tuple[int, int] | None:
    """Return `points`. If None, return the numbers of keypoints and of values per keypoint in the first line."""
    if points is not None or not len(counts):
        return points
    rest = int(counts[0]) - 5 - scored
    fits = [size for size in (3, 2) if rest > 0 and rest % size == 0]
    if len(fits) != 1:
        raise lines.error(
            0,
            f"has {counts[0]} numbers: how many keypoints these are is not clear",
            remedy="say it as kpt_shape in data.yaml, and give that as classes (--classes data.yaml)",
        )
    return rest // fits[0], fits[0]


def _without_scores(
    lines: Lines, values: NDArray[np.float64], edges: NDArray[np.int64], posed: int, scored: bool
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return how many numbers precede the score on each line, and the scores."""
    counts = np.diff(edges)
    if not scored:
        return counts, np.empty(0)
    body = counts - 1
    # Lines with a score have 6 numbers for a box, a known count for a pose, and an even count for a polygon.
    known = (counts == 6) | ((counts % 2 == 0) & (counts >= 8)) if not posed else (counts == 6) | (counts == posed + 1)
    tracked = ~known & ((counts == 7) | (counts == posed + 2)) if posed else ~known & (counts == 7)
    body[tracked] -= 1
    if posed:
        outline = ~known & ~tracked & (counts % 2 == 0) & (counts >= 8)
        known |= outline
    without = ~known & ~tracked
    if without.any():
        row = int(np.argmax(without))
        raise lines.error(
            row,
            f"has {counts[row]} numbers, of which none is a score",
            remedy="save predictions with their confidence: save_conf=True in Ultralytics (and without numbers of tracks, "
            "where they are polygons); of keypoints kpt_shape in data.yaml says how many there are",
        )
    return body, values[edges[:-1] + body] if len(body) else np.empty(0)


def read_yolo(source: Any, reading: Reading) -> GroundTruth:
    """Read the labels of a data set, which is given by ``data.yaml``, by its folder, or by a folder of labels."""
    name = name_of(source, "labels")
    if not isinstance(source, str | os.PathLike):
        raise InputError("YOLO's labels need their folder: a stream does not say where the images are", source=name)
    path = os.fspath(source)
    sizes = Sizes(reading.image_sizes)
    notices: dict[str, int] = {}
    inside = folders.settings_in(path) if os.path.isdir(path) else path
    if inside is not None and not os.path.isfile(inside):
        raise InputError("no such file", source=path, remedy="check the path")
    if inside is not None and folders.is_settings(inside):
        settings = folders.read_settings(inside)
        split = str(reading.image_set) if reading.image_set is not None else next(iter(settings.splits), "val")
        paths, outside = folders.resolved(settings, split, inside)
        notices.update({f"outside_paths:{one}": 1 for one in outside})
        if reading.image_set is None and split != "val":
            notices[f"other_split:{split}"] = 1
        sizes = sizes or folders.sizes_beside(settings.own) or sizes
    else:
        if reading.image_set is not None:
            raise OptionError("--image-set goes with a data.yaml, of which it is a split, and with VOC's XML")
        folder = os.path.dirname(path) if os.path.isfile(path) else path
        settings, paths = folders.near(folder, reading.classes), [path]
        sizes = sizes or folders.sizes_beside(settings.own) or sizes
    entries: list[Entry] = []
    for one in paths:
        if os.path.isfile(one):
            entries += folders.in_list(one, settings.root)
        else:
            found, stray = folders.in_folder(one, sizes)
            entries += found
            if stray:
                notices["stray_labels"] = notices.get("stray_labels", 0) + stray
    entries.sort(key=lambda one: one.name)
    for before, after in pairwise(entries):
        if before.name == after.name:
            raise InputError("is the name of two images", source=name, value=after.name, remedy="rename one of them")
    if not entries:
        raise InputError("holds neither images nor labels", source=name, remedy="give the folder of labels")
    settings = folders.with_classes(settings, reading.classes)
    return _ground_truth(entries, settings, sizes, reading, notices, name)


def _ground_truth(
    entries: list[Entry], settings: Settings, sizes: Sizes, reading: Reading, notices: Mapping[str, int], name: str
) -> GroundTruth:
    labelled = [(i, one.labels) for i, one in enumerate(entries) if one.labels is not None]
    lines = read_lines(content for _, content in labelled)
    image = np.array([i for i, _ in labelled], np.int64)[lines.files]
    table = np.array([_size(one, sizes, name) for one in entries], np.int64).reshape(-1, 2)
    kind = find(reading.iou_type).column_name
    parsed = _parse(lines, table[image], settings.points, kind, scored=False, settled=settings.settled)
    known = settings.names
    highest = int(parsed.classes.max()) if parsed.classes.size else -1
    unnamed = np.array([number not in known for number in parsed.classes.tolist()], np.bool_) if known else np.zeros(0)
    if unnamed.any():
        row = int(np.argmax(unnamed))
        listed = f"{min(known)} to {max(known)}" if len(known) == max(known) - min(known) + 1 else str(len(known))
        raise lines.error(row, f"the class {parsed.classes[row]} has no name; there are names of {listed}")
    if not known and settings.classes is not None and highest >= settings.classes:
        row = int(np.argmax(parsed.classes >= settings.classes))
        raise lines.error(row, f"the class {parsed.classes[row]} is not below nc of data.yaml, {settings.classes}")
    categories = sorted(known) if known else list(range(max(highest + 1, settings.classes or 0)))
    images = np.array([one.name for one in entries], str)
    made = GroundTruth.from_arrays(
        image_ids=images[image] if image.size else np.empty(0, str),
        category_ids=parsed.classes,
        **parsed.shapes,
        images=images,
        categories=np.array(categories, np.int64),
        category_names=known,
        image_sizes=table,
        invalid_boxes=reading.invalid_boxes,
        notices={**notices, **_unread(parsed)},
        source=name,
    )
    files = tuple("" if one.image is None else os.path.basename(one.image) for one in entries)
    order = np.argsort(images, kind="stable").tolist()
    return replace(made, images=replace(made.images, names=tuple(files[i] for i in order))) if any(files) else made


def _size(entry: Entry, sizes: Sizes, name: str) -> tuple[int, int]:
    known = sizes.get(entry.name)
    if known is None and entry.image is not None:
        known = size_of_image(entry.image)
    if known is None:
        raise _no_size(entry.name, name)
    return known


def _no_size(image: str, name: str) -> InputError:
    return InputError(
        "the size of the image is not known, and boxes are shares of it",
        source=name,
        value=image,
        remedy="put the folder images beside labels, or give sizes: image_sizes (--image-sizes FILE.csv or 640x480)",
    )


def read_yolo_results(source: Any, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
    """Read predictions from a folder of text files, from its subfolder ``labels``, or from an archive."""
    name = name_of(source, "predictions")
    folder, settings = source, Settings({}, None, {}, "", "")
    if isinstance(source, str | os.PathLike) and os.path.isdir(source):
        folder = folders.results_in(os.fspath(source))
        settings = folders.near(folder, reading.classes)
    settings = folders.with_classes(settings, reading.classes)
    files = folders.read_labels(folder)
    stems = sorted(files)
    sizes = Sizes(reading.image_sizes)
    ids: list[Any] = list(stems)
    if ground_truth is not None:
        ids = resolve_images(stems, ground_truth, reading.unknown_images, name)
    kept = [i for i, one in enumerate(ids) if one is not None]
    dropped = len(read_lines(files[stems[i]] for i, one in enumerate(ids) if one is None))
    lines = read_lines(files[stems[i]] for i in kept)
    of_truth = _sizes_of(ground_truth)
    table = np.array([_result_size(stems[i], ids[i], of_truth, sizes, name) for i in kept], np.int64).reshape(-1, 2)
    place = lines.files
    kind = find(reading.iou_type).column_name
    parsed = _parse(lines, table[place], settings.points, kind, scored=True, settled=settings.settled)
    categories, notices = _categories(parsed.classes, settings.names, ground_truth, lines)
    notices.update(_doubtful_order(lines, parsed.numbers))
    return Detections.from_arrays(
        image_ids=recoded([ids[i] for i in kept], place),
        category_ids=categories,
        **parsed.shapes,
        scores=parsed.scores,
        invalid_boxes=reading.invalid_boxes,
        notices={**notices, **_unread(parsed), **({"unknown_image": dropped} if dropped else {})},
        source=name,
    )


def _unread(parsed: _Parsed) -> dict[str, int]:
    return {"unread_shapes": parsed.unread} if parsed.unread else {}


def _doubtful_order(lines: Lines, numbers: NDArray[np.float64] | None) -> dict[str, int]:
    """Return a notice if the score seems to come before the box, as in other tools' files."""
    # If scores come before boxes, many boxes lie outside of the image in the usual order, and far fewer in the other
    # order. Boxes outside of the image are no error, because some detectors do not clip boxes.
    if numbers is None or not len(lines) or (lines.counts != 6).any():
        return {}
    table = numbers.reshape(-1, 6)

    def outside(boxes: NDArray[np.float64]) -> NDArray[np.bool_]:
        half = boxes[:, 2:] / 2
        return np.asarray(((boxes[:, :2] - half < -0.02) | (boxes[:, :2] + half > 1.02)).any(axis=1))

    behind, ahead = (int(np.count_nonzero(outside(table[:, at : at + 4]))) for at in (1, 2))
    doubtful = behind >= _FEWEST_OUTSIDE and 10 * behind > len(table) and behind > 4 * ahead
    return {"score_before_box": behind} if doubtful else {}


def _sizes_of(truth: GroundTruth | None) -> dict[Any, tuple[int, int]] | None:
    """Return the known sizes of the ground truth's images by id; None without ground truth."""
    if truth is None:
        return None
    if truth.images.sizes is None:
        return {}
    pairs = zip(truth.images.ids.tolist(), truth.images.sizes.tolist(), strict=True)
    return {one: (height, width) for one, (height, width) in pairs if height and width}


def _result_size(
    name: str, image: Any, truth: Mapping[Any, tuple[int, int]] | None, sizes: Sizes, source: str
) -> tuple[int, int]:
    known = sizes.get(name)
    if known is None and truth is not None:
        known = truth.get(image)
    if known is None:
        raise InputError(
            "the size of the image is not known, and boxes are shares of it",
            source=source,
            value=name,
            remedy="the ground truth says no sizes: give them as image_sizes (--image-sizes FILE.csv or 640x480)"
            if truth is not None
            else "read the ground truth first and give it, or give sizes: image_sizes (--image-sizes)",
        )
    return known


def _categories(
    classes: NDArray[np.int64], names: Mapping[int, str], truth: GroundTruth | None, lines: Lines
) -> tuple[Any, dict[str, int]]:
    """Return the category ids of class numbers, and notices."""
    used = np.unique(classes).tolist()
    if truth is None:
        return classes, {}
    known = truth.categories.values
    if not known.size and not names:  # there are no categories to match
        return classes, {}
    by_number = known.dtype.kind == "i" and known.tolist() == list(range(known.size))
    if names:
        missing = [number for number in used if number not in names]
        if missing:
            raise lines.error(int(np.argmax(classes == missing[0])), f"the class {missing[0]} has no name")
        found = resolve_categories([names[number] for number in used], truth)
    elif by_number:
        return classes, {}
    else:
        beyond = classes >= known.size
        if beyond.any():
            row = int(np.argmax(beyond))
            raise lines.error(
                row,
                f"the class {classes[row]} is beyond the {known.size} categories of the ground truth",
                remedy="give the names of the classes: classes (--classes FILE, data.yaml or a name a line)",
            )
        found = [known[number].item() for number in used]
    codes = np.searchsorted(np.array(used, np.int64), classes)
    ids = [found[code] for code in codes.tolist()]
    return ids, {} if names else {"classes_by_order": len(used)}


def _tell(given: Given) -> Role:
    """Return "detections" if every line ends with a score, else "ground_truth"."""
    if not given.is_folder or {"data.yaml", "dataset.yaml", "data.yml"} & set(given.names):
        return "ground_truth"
    lines = given.lines("labels" if "labels" in given.names else "", folders.NO_LABELS)
    return "detections" if all(len(words) % 2 == 0 for words in lines) else "ground_truth"


_WHOLE = re.compile(rb"\d+(\.0*)?")


def _sniff(given: Given) -> bool:
    """Recognise a data set by the names of its files and folders, or by a list of images. Recognise other labels and
    predictions by lines with a class and a normalised box.
    """
    truth = given.role == "ground_truth"
    if not given.is_folder and (truth or not given.is_archive):
        listed = given.name.lower().endswith(".txt") and folders.lists_images(given.head)
        return truth and (folders.is_settings(given.name) or listed)
    names = set(given.names)
    if truth and ({"data.yaml", "dataset.yaml", "data.yml"} & names or {"images", "labels"} <= names):
        return True
    if truth and not any(name.lower().endswith((".txt", ".xml")) for name in names):
        inside = given.name in ("images", "labels") and folders.holds_folders(given.path)
        return inside or folders.is_of_images(given.path)
    lines = given.lines("labels" if "labels" in names else "", folders.NO_LABELS)
    if not lines and given.role == "ground_truth":  # files of labels may be empty
        return given.name == "labels" and any(name.endswith(".txt") for name in names)
    return fits(lines, given.role == "detections")


def fits(lines: list[list[bytes]], scored: bool) -> bool:
    """Return whether lines can be YOLO's."""
    if not lines:
        return False
    for words in lines:
        if len(words) < 5 + scored or not _WHOLE.fullmatch(words[0]):
            return False
        try:
            box = [decimal(word) for word in words[1:5]]
        except ValueError:
            return False
        if not all(-1 <= value <= _FARTHEST for value in box):
            return False
    return True


FORMAT = register(
    Format(
        name="yolo",
        takes=("image_set", "classes"),
        suffixes=(),
        sniff=_sniff,
        read_ground_truth=read_yolo,
        read_detections=read_yolo_results,
        write_ground_truth=later("detmap.formats.yolo.write", "write_ground_truth"),
        write_detections=later("detmap.formats.yolo.write", "write_detections"),
        holds=(BOXES, MASKS, BOUNDARIES, KEYPOINTS, ROTATED, PROBIOU),
        words=("YOLO's data.yaml or folder of labels", "a folder of YOLO's predictions with scores"),
        members=".txt",
        inside="labels",
        beside=folders.beside_results,
        needs_images=True,
        tell=_tell,
    )
)
