"""Small files of parts of bodies, archives, and tables of Arrow."""

from __future__ import annotations

import io
import tarfile

import pyarrow as pa
import pyarrow.parquet
from samples import SAMPLES, Sample, _dumped

#: The points of each list of COCO-WholeBody.
_POINTS = {"keypoints": 17, "foot_kpts": 6, "face_kpts": 68, "lefthand_kpts": 21, "righthand_kpts": 21}

PACKED: dict[str, Sample] = {}


def _add(name, role, format, files, truth="", tried=(), **options):
    PACKED[name] = Sample(files, next(iter(files)), role, format, truth, options, tried, False)


def _poses(**more):
    lists = {name: [k % 7 for k in range(3 * count)] for name, count in _POINTS.items()}
    return {"category_id": 1, "bbox": [1, 2, 10, 4], **lists, **more}


_BODIES = {
    "images": [{"id": 1}],
    "categories": [{"id": 1, "name": "person"}],
    "annotations": [
        _poses(id=1, image_id=1, area=40, iscrowd=0, num_keypoints=12, foot_valid=True, face_valid=1, lefthand_valid=0),
        _poses(id=2, image_id=1, area=9, iscrowd=0, num_keypoints=12, foot_valid=False),
    ],
}
_WHOLE = {"iou_type": "keypoints_wholebody"}
_add("wholebody", "ground_truth", "coco", {"a.json": _dumped(_BODIES)}, **_WHOLE)
_RESULT = [_poses(image_id=1, score=0.5, foot_score=0.25, wholebody_score=1), _poses(image_id=1, score=0.25)]
_add("wholebody-found", "detections", "coco", {"a.json": _dumped(_RESULT)}, **_WHOLE)


def _archive(name):
    """The folder of a sample as an archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path, text in SAMPLES[name].files.items():
            data = text if isinstance(text, bytes) else text.encode()
            member = tarfile.TarInfo(path)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


for _name in ("voc", "voc-found", "text", "text-found", "kitti", "kitti-found", "dota", "dota-found", "yolo-found"):
    _sample = SAMPLES[_name]
    _tar = {"a.tar": _archive(_name)}
    _add(f"{_name}-archive", _sample.role, _sample.format, _tar, _sample.truth, (), **_sample.options)

_COLUMNS = {
    "image_id": [7, 2, 7],
    "file_name": ["x/a.jpg", "b.jpg", "x/a.jpg"],
    "category_id": [5, 1, 1],
    "category": ["dog", "car", "car"],
    "bbox": [[1.0, 2.0, 10.0, 4.0], [0.0, 0.0, 3.0, 4.0], [4.0, 4.0, 8.0, 9.0]],
    "iscrowd": [False, True, False],
    "occluded": [1, None, 3],
    "p": [0.5, 0.25, 1.0],
}
_SCORED = {**{key: _COLUMNS[key] for key in ("image_id", "category_id", "bbox")}, "score": _COLUMNS["p"]}
_CORNERS = {
    "image": ["a", "b"],
    "label": ["car", "dog"],
    "x1": [1, 2],
    "y1": [3, 4],
    "x2": [5, 6],
    "y2": [7.5, 8],
    "conf": [1, 0.5],
}


def _stored(columns, form):
    out, table = pa.BufferOutputStream(), pa.table(columns)
    if form == "parquet":
        pyarrow.parquet.write_table(table, out)
    else:
        with pa.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
    return out.getvalue().to_pybytes()


_TRIED = [
    ("columns", {"category": "file_name"}),
    ("columns", "category=file_name"),
    ("columns", "category=nothing"),
    ("columns", "image,category"),
    ("columns", ["image", "category"]),
    ("box_format", "xyxy"),
    ("box_format", "cxcywh"),
    ("fields", ["occluded"]),
    ("fields", ["occluded", "nothing"]),
    ("fields", ["category"]),
]
for _form in ("parquet", "feather"):
    for _name, _columns, _truth in (
        ("", _COLUMNS, ""),
        ("-found", _SCORED, "numbers"),
        ("-corners", _CORNERS, "words"),
    ):
        _role = "ground_truth" if not _name else "detections"
        _add(f"{_form}{_name}", _role, _form, {f"a.{_form}": _stored(_columns, _form)}, _truth, _TRIED)
