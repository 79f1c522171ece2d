"""Writers of all formats: hostile names, extreme numbers, and targets that are inputs, links, or on a full disk.

What is converted is read back as it was, or refused with everything left as it was before.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from attacks import REFUSE, Attack, Must

#: Names of classes and images that a careless writer breaks, confuses, or takes for a path.
_NAMES = [
    *("a", "A", "a ", " a", "a b", "", "b" * 300, "CON", "~", "-", "--to", "=1+1", "#b", "%s", "{}", "é", "e\u0301"),
    *("b\nc", "b\rc", "b\tc", "b\x0bc", "b\x85c", "b\u2028c", "b\0c", "\ufeffb", "\ud800", "\\", "b\\c", "a,b", "a;b"),
    *('a"b', "a'b", '"', "<b>&amp;", "]]>", "<!--", "..", ".", "../b", "../../b", "/b", "/tmp/b", "b/c", "b/../../c", ".b"),
    *("é" * 120, "é" * 130),
    *("nan", "None", "true", "1", "1.0", "01", "1e5", "null", "Ambiguous", "DontCare", "car", "Car", "\U0001f600"),
]  # fmt: skip

_NUMBERS = (0.0, -0.0, 0.1, 1 / 3, 1e-300, 1e15, 2.0**53 + 2, 1e100, 1e300, -1e300, 12345678.25, 99.99999999999999)

#: Formats of folders, and the suffix of a file of each other format.
_FOLDERS = ("voc", "yolo", "text", "dota", "kitti", "thumos14")
_SUFFIXES = {"parquet": ".parquet", "feather": ".feather", "csv": ".csv", "openimages": ".csv"}

_BOXES = ("coco", "voc", "yolo", "csv", "text", "parquet", "feather", "openimages", "kitti", "dota")
_SEGMENTS = ("activitynet", "thumos14")

#: Formats of shares of the sides of images.
_SHARES = ("yolo", "openimages")

#: Ids of videos and categories.
_IDS = (1, 2, 5, 0, -3, 2**53 + 1, 2**63 - 1)

Rows = list[tuple[Any, ...]]


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    folder = folder / f"{rng.integers(1 << 60):x}"
    folder.mkdir()
    return [places, contents, documents][int(rng.choice(3, p=[0.3, 0.5, 0.2]))](rng, folder)


def _some(rng: np.random.Generator, count: int) -> list[str]:
    hostile = rng.random() < 0.8
    return [_NAMES[int(rng.integers(len(_NAMES)))] if hostile and rng.random() < 0.5 else f"n{k}" for k in range(count)]


def _number(rng: np.random.Generator, extreme: bool) -> float:
    return _NUMBERS[int(rng.integers(len(_NUMBERS)))] if extreme else int(rng.integers(400)) / 4


def _box(rng: np.random.Generator, extreme: bool) -> list[float]:
    place = [_number(rng, extreme), _number(rng, extreme)]
    return [*place, *(2 + abs(_number(rng, extreme)) for _ in place)]


def _boxed(rng: np.random.Generator, folder: Path, extreme: bool = False) -> tuple[Path, Path]:
    """Write COCO's ground truth and detections, with hostile names; return both paths."""
    images, classes = list(dict.fromkeys(_some(rng, 3))), list(dict.fromkeys(_some(rng, 3)))
    objects, found = [], []
    for k in range(int(rng.integers(1, 6))):
        of = {"image_id": images[int(rng.integers(len(images)))], "category_id": 1 + int(rng.integers(len(classes)))}
        objects.append({"id": k + 1, **of, "bbox": _box(rng, extreme), "area": 1, "iscrowd": 0})
        score = _number(rng, True) if extreme else int(rng.integers(1, 64)) / 64
        found.append({**of, "bbox": _box(rng, extreme), "score": score})
    sized = [{"id": one, "height": 512, "width": 512} for one in images]
    categories = [{"id": k + 1, "name": one} for k, one in enumerate(classes)]
    truth, results = folder / "truth.json", folder / "found.json"
    truth.write_text(json.dumps({"images": sized, "annotations": objects, "categories": categories}))
    results.write_text(json.dumps(found))
    return truth, results


def _timed(rng: np.random.Generator, folder: Path, extreme: bool) -> tuple[Path, Path]:
    """Write ActivityNet's ground truth and detections, with hostile names; return both paths."""
    videos, classes = list(dict.fromkeys(_some(rng, 3))), _some(rng, 3)
    database, results = {}, {}
    for video in videos:
        segments = []
        for _ in range(int(rng.integers(1, 4))):
            begin = _number(rng, extreme)
            label = classes[int(rng.integers(len(classes)))]
            segments.append({"segment": [begin, begin + abs(_number(rng, extreme))], "label": label})
        database[video] = {"subset": "validation", "annotations": segments}
        results[video] = [{**one, "score": int(rng.integers(1, 64)) / 64} for one in segments]
    truth, found = folder / "truth.json", folder / "found.json"
    truth.write_text(json.dumps({"version": "1.3", "database": database}))
    found.write_text(json.dumps({"version": "1.3", "results": results, "external_data": {}}))
    return truth, found


def _rows(table: Any, truth: Any, format: str) -> Rows:
    """Return what a table holds: name of the class, id of the image, shape, and score."""
    names = dict(zip(truth.categories.values.tolist(), truth.category_names, strict=True))
    if format != "yolo":  # where a class without a name is called by its id, which YOLO's files do not keep
        names = {k: name or str(k) for k, name in names.items()}
    kind = next((one for one in table.kinds if one != "bbox"), "")
    shapes = table.shape(kind).arrays()["ends"] if kind else table.boxes.copy()
    if not kind and table.box_sizes:
        shapes[:, 2:] += shapes[:, :2]
    scores = getattr(table, "scores", np.zeros(len(table)))
    both = (ids.values[ids.codes] for ids in (table.categories, table.images))
    columns = (*both, shapes, scores)
    return [
        (str(names.get(k, k)), str(image), *shape, score)
        for k, image, shape, score in zip(*(one.tolist() for one in columns), strict=True)
    ]


def _alike(rows: Rows, others: Rows, format: str) -> bool:
    """Whether rows are those of other ones, in any order; numbers of formats with shares of a side are rounded."""
    rounded = 6 if format in _SHARES else 12

    def plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
        name = row[0].lower() if format == "kitti" else row[0]
        return (name, row[1], *(float(f"{one:.{rounded}g}") + 0.0 for one in row[2:]))

    return sorted(map(plain, rows)) == sorted(map(plain, others))


def _state(folder: Path, without: Path) -> dict[str, Any]:
    """Return what lies in a folder and above it, except at a target."""
    there = {str(one.relative_to(folder)): one for one in folder.rglob("*") if not _within(one, without)}
    return {name: one.read_bytes() if one.is_file() else "" for name, one in there.items()} | {
        "above": sorted(os.listdir(folder.parent))
    }


def _within(path: Path, target: Path) -> bool:
    return path == target or target in path.parents


def contents(rng: np.random.Generator, folder: Path) -> Attack:
    """Records with hostile names and numbers in any format: read back as they were, or refused and nothing left behind."""
    import detmap

    boxed = rng.random() < 0.8
    format = str(rng.choice(_BOXES if boxed else _SEGMENTS))
    extreme = rng.random() < 0.3 and format not in _SHARES  # which round, and are told from pixels by their size
    truth, found = (_boxed if boxed else _timed)(rng, folder, extreme)
    role: Any = str(rng.choice(["ground_truth", "detections"]))
    source = truth if role == "ground_truth" else found
    target = folder / ("out" if format in _FOLDERS else f"out{_SUFFIXES.get(format, '.json')}")
    before = _state(folder, target)

    def run() -> Any:
        with_truth: dict[str, Any] = {} if role == "ground_truth" else {"ground_truth": truth}
        try:
            detmap.convert(source, target, to=format, role=role, **with_truth)
        except detmap.DetmapError:
            return _untouched(target, folder, before) or _raise()
        if _state(folder, target) != before:
            return "wrote beside the target"
        options: dict[str, Any] = {} if boxed else {"iou_type": "temporal"}
        shares = format == "openimages" or (format == "yolo" and role == "ground_truth")
        sizes: dict[str, Any] = {"image_sizes": "512x512"} if shares else {}
        try:
            table: Any = detmap.read(truth, "ground_truth", **options)
            own = table if role == "ground_truth" else detmap.read(source, role, ground_truth=table, **options)
            options["ground_truth"] = None if role == "ground_truth" else table
            back = detmap.read(target, role, format=format, **options, **sizes)
        except detmap.DetmapError as error:
            return f"written, and refused: {error}"
        was, became = _rows(own, table, format), _rows(back, table if role == "detections" else back, format)
        return "alike" if _alike(was, became, format) else f"{was} became {became}"

    return Attack(f"{role} as {format} in {folder}", run, Must(value="alike", refuse=True))


def documents(rng: np.random.Generator, folder: Path) -> Attack:
    """nuScenes' and YouTube-VIS' JSON in its own format: equal by value but for what is counted as lost, or refused."""
    import detmap

    format = str(rng.choice(["nuscenes", "ytvis"]))
    extreme = rng.random() < 0.3
    truth, found, lost = (_moving if format == "nuscenes" else _tracked)(rng, extreme)
    role: Any = str(rng.choice(["ground_truth", "detections"]))
    document = truth if role == "ground_truth" else found
    source, target = folder / "in.json", folder / "out.json"
    source.write_text(json.dumps(document))
    before = _state(folder, target)

    def run() -> Any:
        try:
            made = detmap.convert(source, target, to=format, role=role, format=format)
        except detmap.DetmapError:
            return _untouched(target, folder, before) or _raise()
        if _state(folder, target) != before:
            return "wrote beside the target"
        expected = lost if role == "ground_truth" else {}
        if made.lost != expected:
            return f"lost {made.lost}, not {expected}"
        was, became = (_plain(one, format) for one in (document, json.loads(target.read_text())))
        again = folder / "again.json"
        try:
            if detmap.convert(target, again, to=format, role=role, format=format).lost:
                return "loses something when converted once more"
        except detmap.DetmapError as error:
            return f"written, and refused: {error}"
        if again.read_bytes() != target.read_bytes():
            return "is another file when converted once more"
        return "alike" if was == became else f"{was} became {became}"

    return Attack(f"{role} as {format} in {folder}", run, Must(value="alike", refuse=True))


def _moving(rng: np.random.Generator, extreme: bool) -> tuple[dict[str, Any], dict[str, Any], dict[str, int]]:
    """Return nuScenes' samples and results with hostile tokens and numbers, and what a conversion loses."""
    import moving_scenes

    truth, results = moving_scenes.scene(int(rng.integers(2**32)), int(rng.integers(1, 5)), decimals=4)
    names = dict(zip((one["token"] for one in truth["samples"]), _some(rng, len(truth["samples"])), strict=True))
    for one in truth["samples"]:
        one["token"] = names[one["token"]]
        if rng.random() < 0.3:
            del one["ego"]
        for box in one["boxes"]:
            box["num_pts"] = int(rng.choice([-1, 0, 7, 1 << 52])) if extreme else box["num_pts"]
    results["results"] = {names[token]: boxes for token, boxes in results["results"].items()}
    for token, boxes in results["results"].items():
        for box in boxes:
            box["sample_token"] = token
    boxes = [box for one in truth["samples"] for box in one["boxes"]]
    for box in [*boxes, *(box for own in results["results"].values() for box in own)]:
        if rng.random() < 0.2:
            name = str(rng.choice(["translation", "size", "rotation", "velocity"]))
            box[name] = [_number(rng, extreme) for _ in box[name]]
        elif rng.random() < 0.1:
            box["velocity"] = [None, 1.5]
        if "detection_score" in box and extreme:
            box["detection_score"] = _number(rng, extreme)
    return truth, results, {}


def _tracked(rng: np.random.Generator, extreme: bool) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, int]]:
    """Return YouTube-VIS' annotations and results with hostile names, ids and areas, and what a conversion loses."""
    import track_scenes

    truth, results = track_scenes.scene(int(rng.integers(2**32)), videos=int(rng.integers(1, 4)))
    places = rng.permutation(len(_IDS)).tolist()
    videos = {number: _IDS[places[number]] if extreme else number for number in range(1, 6)}
    classes = {number: _IDS[places[number]] if extreme else number for number in (1, 2, 5)}
    for video in truth["videos"]:
        video["id"] = videos[video["id"]]
        if rng.random() < 0.4:
            video["file_names"] = []
        if rng.random() < 0.4:
            del video["length"]
        if rng.random() < 0.2:
            video |= {"height": 0, "width": 0}
    for category, name in zip(truth["categories"], _some(rng, 3), strict=True):
        category |= {"id": classes[category["id"]], "name": name}
    for one in [*truth["annotations"], *results]:
        one |= {"video_id": videos[one["video_id"]], "category_id": classes[one["category_id"]]}
        if "score" in one and extreme:
            one["score"] = _number(rng, extreme)
        if "areas" in one and rng.random() < 0.4:
            one["areas"] = [_number(rng, extreme) for _ in one["areas"]][: int(rng.integers(3))]
    if extreme and truth["annotations"]:
        truth["annotations"][0]["id"] = 0
    longest = {video["id"]: 0 for video in truth["videos"]}
    for one in truth["annotations"]:
        longest[one["video_id"]] = max(longest[one["video_id"]], len(one["segmentations"]))
    lost = {
        "frames": sum(bool(one["file_names"]) or one.get("length", 0) > longest[one["id"]] for one in truth["videos"]),
        "frame_areas": sum(len([a for a in one["areas"] if a is not None]) > 1 for one in truth["annotations"]),
        "zero_ids": sum(one["id"] == 0 for one in truth["annotations"]),
    }
    return truth, results, {code: count for code, count in lost.items() if count}


def _plain(document: Any, format: str) -> Any:
    """Return the values of a document that its benchmark reads."""
    if format == "nuscenes":
        if "samples" in document:
            return [
                (
                    one["token"],
                    one.get("ego", [])[:2],
                    [list(rack.items()) for rack in one["racks"]],
                    [_box_in_space(box) for box in one["boxes"]],
                )
                for one in document["samples"]
            ]
        return {token: [_box_in_space(box) for box in boxes] for token, boxes in document["results"].items() if boxes}
    if isinstance(document, list):
        return [[one[name] for name in ("video_id", "category_id", "score", "segmentations")] for one in document]
    areas = [[area for area in one["areas"] if area] for one in document["annotations"]]
    return [
        [(one["id"], one["height"], one["width"]) for one in document["videos"]],
        sorted((one["id"], one["name"] or str(one["id"])) for one in document["categories"]),
        [
            (one["video_id"], one["category_id"], one["iscrowd"], one["segmentations"], sum(own) / max(len(own), 1))
            for one, own in zip(document["annotations"], areas, strict=True)
        ],
    ]


def _box_in_space(box: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a box, the number of points -1 where it is unknown."""
    return {**box, "num_pts": box.get("num_pts", -1)}


def _raise() -> str:
    """Raise the error that is being handled."""
    raise


def _untouched(target: Path, folder: Path, before: dict[str, Any]) -> str:
    """Return what a refused conversion left behind; "" if nothing."""
    if _state(folder, target) != before:
        return "refused, and changed files beside the target"
    left = [str(one) for one in target.rglob("*") if not one.is_dir()] if target.is_dir() else []
    return f"refused, and left {left}" if left else ""


def places(rng: np.random.Generator, folder: Path) -> Attack:
    """Targets that are inputs, links, full folders or on a full disk: refused, and nothing is changed."""
    import detmap

    truth, _ = _boxed(rng, folder)
    data = json.loads(truth.read_text())
    for k, one in enumerate(data["images"]):
        one["id"] = f"i{k}"
    for one in data["annotations"]:
        one["image_id"] = "i0"
    for k, one in enumerate(data["categories"]):
        one["name"] = f"c{k}"
    truth.write_text(json.dumps(data))
    format = str(rng.choice([*_BOXES]))
    target = folder / ("out" if format in _FOLDERS else f"out{_SUFFIXES.get(format, '.json')}")
    deeds: dict[str, Callable[[], None]] = {
        "a link to the input": lambda: target.symlink_to(truth),
        "a hard link of the input": lambda: target.hardlink_to(truth),
        "the input by another way": lambda: None,
        "a link that leads nowhere": lambda: target.symlink_to(folder / "nothing" / "there"),
        "below a file": lambda: None,
        "a folder with a file in it": lambda: (target.mkdir(), (target / "mine").write_text("mine"))[0],
        "a full disk": lambda: None,
    }
    what = str(rng.choice(sorted(deeds)))
    deeds[what]()
    if what == "the input by another way":
        target = folder / ".." / folder.name / "truth.json"
    if what == "below a file":
        target = truth / "out.json"
    mine = target / "mine"
    before = _state(folder, target)

    def run() -> Any:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        try:
            if what == "a full disk":
                sys.dont_write_bytecode = True  # it would be cut off
                resource.setrlimit(resource.RLIMIT_FSIZE, (20, limits[1]))
            detmap.convert(truth, target, to=format, role="ground_truth")
        except detmap.DetmapError:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            with suppress(OSError):
                if mine.exists():
                    return "refused, and took what was there" if mine.read_text() != "mine" else _raise()
            return _untouched(target, folder, before) or _raise()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        return f"written to {what}"

    return Attack(f"{what} as {format} in {folder}", run, REFUSE)
