"""The formats of annotation tools and data sets, and their recognition. Readers are imported lazily."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import NamedTuple

from detmap.formats.registry import Format, Given
from detmap.plugins import later, register
from detmap.reading.options import ROLES, Role
from detmap.reading.sources import HEAD
from detmap.shapes.kinds import BOUNDARIES, BOXES, MASKS, PROBIOU, ROTATED

_OUTLINED = (BOXES, MASKS, BOUNDARIES)

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]:]')


class _Keys(NamedTuple):
    """The beginning of a JSON document. `listed` is true for a list, `own` has the keys of the first object, and `inner`
    has the keys of the first object within that object.
    """

    listed: bool
    own: frozenset[bytes]
    inner: frozenset[bytes]


def first_keys(head: bytes) -> _Keys:
    """Return the keys of the top-level object or first record, and of the first object nested in it."""
    listed = head.lstrip()[:1] == b"["
    depth, level, inside, last = 0, 2 if listed else 1, 0, b""
    own: set[bytes] = set()
    inner: set[bytes] = set()
    for match in _TOKEN.finditer(head):
        token = match[0]
        if token in (b"{", b"["):
            depth += 1
            if not inside and token == b"{" and depth > level:
                inside = depth
        elif token in (b"}", b"]"):
            depth -= 1
            if depth < level:
                break
            if inside and depth < inside:
                inside = -1  # only the first nested object counts
        elif token == b":" and depth in (level, inside):
            (own if depth == level else inner).add(last)
        last = token.strip(b'"')
    return _Keys(listed, frozenset(own), frozenset(inner))


#: Fields of a record, for each format whose files are JSON lists.
RECORDS = {
    "bdd100k": frozenset({"name", "labels"}),
    "createml": frozenset({"image", "annotations"}),
    "darknet": frozenset({"frame_id", "filename", "objects"}),
}


def json_format(head: bytes) -> str | None:
    """Return the format of a JSON document of an annotation tool, given its first bytes; None for other documents."""
    if head.lstrip()[:1] not in (b"{", b"["):
        return None
    listed, own, inner = first_keys(head)
    if listed:
        if b"image_id" in own:
            return None
        if b"relative_coordinates" in head or {b"frame_id", b"filename", b"objects"} <= own:
            return "darknet"
        if {b"image", b"imagefilename"} & own and {b"annotations", b"annotation"} & own:
            return "createml"
        return "bdd100k" if b"name" in own and {b"labels", b"attributes", b"timestamp"} & own else None
    if b"frames" in own and b"name" in inner:
        return "bdd100k"
    if b"shapes" in own and {b"version", b"flags", b"imagePath", b"imageData"} & own:
        return "labelme"
    of_via = b"_via_img_metadata" in own or b"_via_settings" in own
    return "via" if of_via or {b"filename", b"regions"} <= inner else None


def _is_json(name: str, given: Given) -> bool:
    return not given.is_folder and json_format(given.head) == name


def _scored(given: Given) -> Role:
    """Return "detections" for a file with scores, else "ground_truth"."""
    return "detections" if b'"score"' in given.head else "ground_truth"


def _is_labelme(given: Given) -> bool:
    """Recognise a labelme file, or a folder whose first JSON files are mostly labelme's."""
    if not given.is_folder:
        return _is_json("labelme", given)
    names = [name for name in given.names if name.lower().endswith(".json")][:5]
    found = [json_format(Given(os.path.join(given.path, name), given.role).head) == "labelme" for name in names]
    return 2 * sum(found) > len(found)


def _is_via(given: Given) -> bool:
    first = given.head.partition(b"\n")[0]
    return _is_json("via", given) or (b"region_shape_attributes" in first and b"filename" in first)


def _is_kaggle(given: Given) -> bool:
    titles = given.head.partition(b"\n")[0].replace(b'"', b"").strip().split(b",")
    return not given.is_folder and b"PredictionString" in titles and not {b"ImageID", b"ImageId"} & {*titles}


def _is_cvat(given: Given) -> bool:
    head = given.head.lstrip()
    return not given.is_folder and head[:1] == b"<" and re.search(rb"<annotations[\s>]", head) is not None


def _is_wider_face(given: Given) -> bool:
    """Recognise a file that begins with the path of an image and a number, or a folder of such files."""
    if given.role == "ground_truth" and not given.is_folder:
        return _begins_block(given.head, b".")
    if not given.is_folder or given.role == "ground_truth":
        return False
    for folder in [given.path, *(os.path.join(given.path, name) for name in given.names[:3])]:
        inside = Given(folder, given.role)
        first = next((name for name in inside.names if name.lower().endswith(".txt")), None)
        if first is not None:
            return _begins_block(Given(os.path.join(folder, first), given.role).head, first[:-4].encode())
    return False


def _begins_block(head: bytes, name: bytes) -> bool:
    lines = [line.split() for line in head.splitlines()[:3]]
    return len(lines) > 1 and len(lines[0]) == len(lines[1]) == 1 and lines[1][0].isdigit() and name in lines[0][0]


def _is_mot(given: Given) -> bool:
    """Recognise a folder of sequences, a sequence, or a file whose lines are a frame and six to nine further numbers."""
    side = "gt" if given.role == "ground_truth" else "det"
    if given.is_folder:
        inside = [given.path, *(os.path.join(given.path, name) for name in given.names[:3])]
        if given.name == side:
            inside.append(os.path.dirname(os.path.abspath(given.path)))
        return any(os.path.isfile(os.path.join(one, side, f"{side}.txt")) for one in inside)
    if not given.name.lower().endswith(".txt"):  # a CSV file without titles may have such lines
        return False
    lines = given.head.splitlines()[:-1] if len(given.head) == HEAD else given.head.splitlines()
    rows = [line.split(b",") for line in lines[:100] if line.strip()]
    if not rows or not all(7 <= len(row) <= 10 for row in rows):
        return False
    with suppress(ValueError, OverflowError):
        numbers = [[float(cell) for cell in row] for row in rows]
        counted = all(row[0] == int(row[0]) >= 1 and row[1] == int(row[1]) for row in numbers)
        flagged = all(row[6] in (0, 1) and (len(row) == 9 or row[1] >= 0) for row in numbers)
        return counted and flagged == (given.role == "ground_truth")
    return False


def _is_kitti_tracking(given: Given) -> bool:
    """Recognise files with lines of frame, track, type and numbers. Results have one number more than labels."""
    if not given.is_folder and not given.name.lower().endswith(".txt"):
        return False
    lines = given.lines("")
    width = 17 if given.role == "ground_truth" else 18
    return bool(lines) and all(len(words) == width and _tracked(words) for words in lines)


def _tracked(words: list[bytes]) -> bool:
    whole = all(re.fullmatch(rb"-?[0-9]+", word) for word in words[:2])
    return whole and re.fullmatch(rb"[A-Za-z_]+", words[2]) is not None


def _reader(name: str, role: str) -> object:
    module = {"kaggle": "prediction_strings"}.get(name, name)
    return later(f"detmap.formats.tools.{module}", f"read_{role}")


def _add(name: str, words: tuple[str, str], **more: object) -> None:
    """Register a format. `words` describe its ground truth and its detections; "" for a role that it cannot read."""
    readers = {f"read_{role}": _reader(name, role) for role, one in zip(ROLES, words, strict=True) if one}
    more = {"suffixes": (), "takes": (), "needs_images": bool(words[1]), **more}
    register(Format(name=name, words=words, **readers, **more))  # type: ignore[arg-type]


_add(
    "bdd100k",
    ("BDD100K's JSON", "BDD100K's JSON with scores"),
    sniff=lambda given: _is_json("bdd100k", given),
    tell=_scored,
)
_add(
    "mot",
    ("MOTChallenge's gt.txt or folder of sequences", "MOTChallenge's det.txt or folder of sequences"),
    sniff=_is_mot,
)
_add(
    "kitti_tracking",
    ("KITTI's folder label_02 of tracking", "KITTI's folder of results of tracking"),
    sniff=_is_kitti_tracking,
    fields=("truncation", "occlusion"),
    takes=("fields",),
)
_add(
    "wider_face",
    ("WIDER FACE's list of faces", "WIDER FACE's folder of events"),
    sniff=_is_wider_face,
)
_add(
    "darknet",
    ("", "darknet's result.json"),
    sniff=lambda given: _is_json("darknet", given),
    takes=("classes",),
)
_add("kaggle", ("", "Kaggle's CSV of prediction strings"), sniff=_is_kaggle, takes=("columns", "classes"))
_add("labelme", ("labelme's folder of JSON", ""), sniff=_is_labelme, holds=_OUTLINED)
_add("cvat", ("CVAT's XML for images", ""), sniff=_is_cvat, holds=(*_OUTLINED, ROTATED, PROBIOU))
_add("via", ("VIA's JSON or CSV", ""), sniff=_is_via, holds=_OUTLINED, takes=("classes",))
_add("createml", ("CreateML's JSON", ""), sniff=lambda given: _is_json("createml", given))
