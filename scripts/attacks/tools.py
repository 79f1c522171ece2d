"""Files of annotation tools and data sets, as they are or damaged anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from attacks import Attack, Must
from attacks.documents import ANYTHING, damage

_Rows = list[tuple[str, str, float, float, float, float]]


def _texts(rows: _Rows) -> dict[str, str]:
    """Return the files of a scene by name, each in another format."""
    frames, createml, regions, cvat, faces, strings = [], [], {}, [], [], ["image_id,PredictionString"]
    for image in ("a.jpg", "b.jpg"):
        own = [row[1:] for row in rows if row[0] == image]
        labels = [
            {"category": label, "box2d": {"x1": x, "y1": y, "x2": x + w - 1, "y2": y + h - 1}}
            for label, x, y, w, h in own
        ]
        frames.append({"name": image, "attributes": {}, "labels": labels})
        sides = [{"x": x + w / 2, "y": y + h / 2, "width": w, "height": h} for _, x, y, w, h in own]
        things = [{"label": row[0], "coordinates": one} for row, one in zip(own, sides, strict=True)]
        createml.append({"image": image, "annotations": things})
        shapes = [
            {
                "shape_attributes": {"name": "rect", "x": x, "y": y, "width": w, "height": h},
                "region_attributes": {"label": label},
            }
            for label, x, y, w, h in own
        ]
        regions[image] = {"filename": image, "size": 1, "regions": shapes}
        boxes = [f'<box label="{n}" xtl="{x}" ytl="{y}" xbr="{x + w}" ybr="{y + h}"/>' for n, x, y, w, h in own]
        cvat.append(f'<image id="0" name="{image}" width="64" height="64">{"".join(boxes)}</image>')
        faces += [f"p/{image}", str(len(own)), *(f"{x} {y} {w} {h} 0 0 0 0 0 0" for _, x, y, w, h in own)]
        faces += [] if own else ["0 0 0 0 0 0 0 0 0 0"]
        strings.append(f"{image},{' '.join(f'1 {x} {y} {w} {h}' for _, x, y, w, h in own)}")
    tracks = [
        f"{1 + (image == 'b.jpg')},{k},{x + 1},{y + 1},{w},{h},1,1,1" for k, (image, _, x, y, w, h) in enumerate(rows)
    ]
    return {
        "bdd100k": json.dumps(frames),
        "createml": json.dumps(createml),
        "via": json.dumps(regions),
        "cvat": f"<annotations><version>1.1</version>{''.join(cvat)}</annotations>",
        "wider_face": "\n".join(faces) + "\n",
        "mot": "\n".join(tracks) + "\n",
        "kaggle": "\n".join(strings) + "\n",
    }


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    """Boxes in a file of any of these formats: they come out bit for bit, or the file is refused."""
    import detmap

    rows: _Rows = []
    for _ in range(int(rng.integers(1, 9))):
        x, y, w, h = (int(v) / 4 for v in (*rng.integers(0, 200, 2), *rng.integers(1, 60, 2)))
        rows.append((str(rng.choice(["a.jpg", "b.jpg"])), str(rng.choice(["cat", "dog"])), x, y, w, h))
    texts = _texts(rows)
    name = str(rng.choice(sorted(texts)))
    data = texts[name].encode()
    must, what = Must(value=[value for one in sorted(row[2:] for row in rows) for value in one]), f"tools {name}"
    if rng.random() < 0.7:
        data, must, what = damage(rng, data), Must(value=ANYTHING, refuse=True), f"{what} damaged"
    path = folder / "file"
    path.write_bytes(data)
    role: Any = "detections" if name == "kaggle" else "ground_truth"

    def run() -> Any:
        table = detmap.read(path, role, format=name)
        boxes = table.boxes.copy()
        if not table.box_sizes:
            boxes[:, 2:] -= boxes[:, :2]
        return [value for one in sorted(map(tuple, boxes.tolist())) for value in one]

    return Attack(what, run, must, len(data))
