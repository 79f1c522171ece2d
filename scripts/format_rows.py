"""Files of every text format with a number of rows, 20 an image: what `bench_formats.py --rows` reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

PER = 20

#: By name of a folder: the files of ground truth and of detections in it, "" where the folder is the file, None where the
#: format has no such side.
SIDES: dict[str, tuple[str | None, str | None]] = {
    "csv": ("truth.csv", "found.csv"),
    "tf_csv": ("truth.csv", None),
    "bbox_csv": ("truth.csv", None),
    "openimages": ("truth.csv", "found.csv"),
    "kaggle": (None, "found.csv"),
    "text": ("truth", "found"),
    "kitti": ("truth", "found"),
    "kitti_tracking": ("truth", "found"),
    "dota": ("truth", "found"),
    "yolo": (None, "found"),
    "voc": ("truth", "found"),
    "mot": ("truth", "found"),
    "wider_face": ("truth.txt", "found"),
    "bdd100k": ("truth.json", "found.json"),
    "darknet": (None, "found.json"),
    "createml": ("truth.json", None),
    "via": ("truth.json", None),
    "labelme": ("truth", None),
    "cvat": ("truth.xml", None),
}


class _Data:
    """Boxes as x, y, width, height (`sizes`) and as corners, scores and classes of rows; and the images of 20 rows each."""

    def __init__(self, count: int) -> None:
        rng = np.random.default_rng(2)
        sizes = np.round(np.c_[rng.random((count, 2)) * [600, 400], 1 + rng.random((count, 2)) * 100], 2)
        self.sizes = sizes.tolist()
        self.corners = np.round(np.c_[sizes[:, :2], sizes[:, :2] + sizes[:, 2:]], 2).tolist()
        self.scores = np.round(rng.random(count), 4).tolist()
        self.numbers = rng.integers(0, PER, count).tolist()
        self.classes = [f"class{one:02d}" for one in self.numbers]
        self.images = [f"image{one:05d}" for one in range(count // PER)]
        self.of_row = [self.images[row // PER] for row in range(count)]

    def blocks(self) -> Iterator[tuple[str, range]]:
        """Yield each image and its rows."""
        for place, image in enumerate(self.images):
            yield image, range(place * PER, (place + 1) * PER)


def make(folder: Path, count: int) -> None:
    """Write the files."""
    data = _Data(count)

    def write(name: str, text: str) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def lines(name: str, row: Callable[[int], str]) -> None:
        """A file per image."""
        for image, rows in data.blocks():
            write(f"{name}/{image}.txt", "".join(f"{row(k)}\n" for k in rows))

    _tables(data, write)
    _documents(data, write)
    place = [" ".join(map(str, one)) for one in data.corners]
    space = "1.5 1.6 3.5 1 2 10 -1.3"
    lines("text/truth", lambda k: f"{data.classes[k]} {place[k]}")
    lines("text/found", lambda k: f"{data.classes[k]} {data.scores[k]} {place[k]}")
    lines("kitti/truth", lambda k: f"Car 0.00 0 -10 {place[k]} {space}")
    lines("kitti/found", lambda k: f"Car -1 -1 -10 {place[k]} {space} {data.scores[k]}")
    shares = [[round(value / 1000, 6) for value in one] for one in data.sizes]
    lines("yolo/found", lambda k: f"{data.numbers[k]} {' '.join(map(str, shares[k]))} {data.scores[k]}")
    quads = [f"{a} {b} {c} {b} {c} {d} {a} {d}" for a, b, c, d in data.corners]
    lines("dota/truth", lambda k: f"{quads[k]} {data.classes[k]} 0")
    for name in sorted({*data.classes}):
        own = [k for k, one in enumerate(data.classes) if one == name]
        for file, text in ((f"voc/found/comp4_det_test_{name}.txt", place), (f"dota/found/Task1_{name}.txt", quads)):
            write(file, "".join(f"{data.of_row[k]} {data.scores[k]} {text[k]}\n" for k in own))
    rows = range(count)
    tracked = [f"{k // PER} {k % PER} Car 0 0 -10 {place[k]} {space}" for k in rows]
    write("kitti_tracking/truth/0000.txt", "".join(f"{line}\n" for line in tracked))
    scored = zip(tracked, data.scores, strict=True)
    write("kitti_tracking/found/0000.txt", "".join(f"{line} {score}\n" for line, score in scored))
    boxed = [",".join(map(str, one)) for one in data.sizes]
    write("mot/truth/S1/gt/gt.txt", "".join(f"{k // PER + 1},{k % PER + 1},{boxed[k]},1,1,1.0\n" for k in rows))
    write(
        "mot/found/S1/det/det.txt", "".join(f"{k // PER + 1},-1,{boxed[k]},{data.scores[k]},-1,-1,-1\n" for k in rows)
    )
    faces = []
    for image, own_rows in data.blocks():
        sides = {k: " ".join(map(str, data.sizes[k])) for k in own_rows}
        faces.append(f"0--Parade/{image}.jpg\n{PER}\n" + "".join(f"{one} 0 0 0 0 0 0 \n" for one in sides.values()))
        found = "".join(f"{sides[k]} {data.scores[k]}\n" for k in own_rows)
        write(f"wider_face/found/0--Parade/{image}.txt", f"{image}\n{PER}\n{found}")
    write("wider_face/truth.txt", "".join(faces))


def _tables(data: _Data, write: Callable[[str, str], None]) -> None:
    """Write tables of commas."""
    rows = range(len(data.scores))
    sizes, corners = ([",".join(map(str, one)) for one in boxes] for boxes in (data.sizes, data.corners))
    labels = [f"{data.of_row[k]},{data.classes[k]}" for k in rows]
    found = (f"{labels[k]},{data.scores[k]},{sizes[k]}\n" for k in rows)
    write("csv/found.csv", "image,category,score,x,y,width,height\n" + "".join(found))
    write("csv/truth.csv", "image,category,x,y,width,height\n" + "".join(f"{labels[k]},{sizes[k]}\n" for k in rows))
    named = (f"{data.of_row[k]}.jpg,900,700,{data.classes[k]},{corners[k]}\n" for k in rows)
    write("tf_csv/truth.csv", "filename,width,height,class,xmin,ymin,xmax,ymax\n" + "".join(named))
    listed = (f'{data.of_row[k]},900,700,"{data.sizes[k]}",x\n' for k in rows)
    write("bbox_csv/truth.csv", "image_id,width,height,bbox,source\n" + "".join(listed))
    shares = [[f"{value / 1000:.6f}" for value in one] for one in data.corners]
    title = (
        "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside"
    )
    boxes = (f"{data.of_row[k]},x,/m/{data.numbers[k]},1,{','.join(shares[k][i] for i in (0, 2, 1, 3))}" for k in rows)
    write("openimages/truth.csv", f"{title}\n" + "".join(f"{one},0,0,0,0,0\n" for one in boxes))
    strings = {"openimages": "ImageId", "kaggle": "image_id"}
    for name, column in strings.items():
        text = [f"{column},PredictionString\n"]
        for image, own in data.blocks():
            groups = (
                f"{data.scores[k]} {' '.join(map(str, data.sizes[k]))}"
                if name == "kaggle"
                else f"/m/{data.numbers[k]} {data.scores[k]} {' '.join(shares[k])}"
                for k in own
            )
            text.append(f"{image},{' '.join(groups)}\n")
        write(f"{name}/found.csv", "".join(text))


def _documents(data: _Data, write: Callable[[str, str], None]) -> None:
    """Write JSON and XML."""
    bdd: dict[str, list[object]] = {"truth": [], "found": []}
    darknet: list[object] = []
    createml: list[object] = []
    via: dict[str, object] = {}
    cvat: list[str] = []
    for place, (image, rows) in enumerate(data.blocks()):
        file = f"{image}.jpg"
        sides = {k: dict(zip(("x", "y", "width", "height"), data.sizes[k], strict=True)) for k in rows}
        ends = {k: dict(zip(("x1", "y1", "x2", "y2"), data.corners[k], strict=True)) for k in rows}
        for side, frames in bdd.items():
            labels = [
                {"id": str(k), "category": data.classes[k], "box2d": ends[k]}
                | ({"score": data.scores[k]} if side == "found" else {"attributes": {"occluded": False}})
                for k in rows
            ]
            frames.append({"name": file, "timestamp": 1000, "labels": labels})
        objects = []
        for k in rows:
            shares = {
                "center_x": 0.5,
                "center_y": 0.5,
                "width": sides[k]["width"] / 1000,
                "height": sides[k]["height"] / 1000,
            }
            called = {"class_id": data.numbers[k], "name": data.classes[k]}
            objects.append({**called, "relative_coordinates": shares, "confidence": data.scores[k]})
        darknet.append({"frame_id": place + 1, "filename": file, "objects": objects})
        createml.append(
            {"image": file, "annotations": [{"label": data.classes[k], "coordinates": sides[k]} for k in rows]}
        )
        regions = [
            {"shape_attributes": {"name": "rect", **sides[k]}, "region_attributes": {"label": data.classes[k]}}
            for k in rows
        ]
        via[f"{file}1"] = {"filename": file, "size": 1, "regions": regions, "file_attributes": {}}
        shapes = [
            {"label": data.classes[k], "points": [data.corners[k][:2], data.corners[k][2:]], "shape_type": "rectangle"}
            for k in rows
        ]
        document = {
            "version": "5",
            "flags": {},
            "shapes": shapes,
            "imagePath": file,
            "imageHeight": 700,
            "imageWidth": 900,
        }
        write(f"labelme/truth/{image}.json", json.dumps(document))
        boxes, found = [], []
        for k in rows:
            a, b, c, d = data.corners[k]
            boxes.append(
                f'<box label="{data.classes[k]}" occluded="0" xtl="{a}" ytl="{b}" xbr="{c}" ybr="{d}" z_order="0"/>\n'
            )
            corners = f"<xmin>{a}</xmin><ymin>{b}</ymin><xmax>{c}</xmax><ymax>{d}</ymax>"
            flags = "<pose>Unspecified</pose><truncated>0</truncated><difficult>0</difficult>"
            found.append(f"<object><name>{data.classes[k]}</name>{flags}<bndbox>{corners}</bndbox></object>\n")
        cvat.append(f'<image id="{place}" name="{file}" width="900" height="700">{"".join(boxes)}</image>')
        size = "<size><width>900</width><height>700</height><depth>3</depth></size>"
        text = f"<annotation><filename>{file}</filename>{size}{''.join(found)}</annotation>"
        write(f"voc/truth/{image}.xml", text)
    for side, frames in bdd.items():
        write(f"bdd100k/{side}.json", json.dumps(frames))
    write("darknet/found.json", json.dumps(darknet))
    write("createml/truth.json", json.dumps(createml))
    write("via/truth.json", json.dumps(via))
    write("cvat/truth.xml", f'<?xml version="1.0"?><annotations><version>1.1</version>{"".join(cvat)}</annotations>')
