"""Small files of every input of the commands: detectors, runs, galleries and codes, with ties, gaps and odd records."""

from __future__ import annotations

import json

import numpy as np

#: Names of the classes of `detectors`; one has a crowd alone, and one has no object.
CLASSES = ("cat", "a <b>dog</b>", "bird", "crowd", "none")


def detectors(folder):
    """Write ``truth.json`` of 12 images, detections ``one``, ``two`` and ``three`` of it, and attributes of images."""
    rng = np.random.default_rng(7)
    images = [
        {"id": at, "file_name": f"image {at}.png", "width": 80 + 40 * at, "height": 60 + 30 * at} for at in range(1, 13)
    ]
    objects = []
    for at in range(30):
        image, size = 1 + at % 11, (8, 20, 50, 120)[at % 4]
        x, y = rng.integers(0, 60, 2).tolist()
        objects.append({"image_id": image, "category_id": 1 + at % 3, "bbox": [x, y, size, size // 2 + at % 5]})
    objects.append({"image_id": 2, "category_id": 4, "bbox": [0, 0, 90, 70], "iscrowd": 1})
    for at, one in enumerate(objects, 1):
        one |= {"id": at, "area": one["bbox"][2] * one["bbox"][3], "iscrowd": one.get("iscrowd", 0)}
    categories = [{"id": at, "name": name} for at, name in enumerate(CLASSES, 1)]
    truth = {"images": images, "annotations": objects, "categories": categories}
    (folder / "truth.json").write_text(json.dumps(truth), newline="\n")
    for turn, name in enumerate(("one", "two", "three")):
        found = []
        for at, one in enumerate(objects):
            moved = (rng.integers(-2 - turn, 3 + turn, 4) * (at % 3)).tolist()
            box = [max(a + b, 1) for a, b in zip(one["bbox"], moved, strict=True)]
            if at % 7 != turn:
                score = round(float(rng.random()), 1 + turn)
                category = one["category_id"] if at % 5 else 1 + (at + turn) % 3
                found.append({"image_id": one["image_id"], "category_id": category, "bbox": box, "score": score})
            if found and at % 6 == turn:
                found.append({**found[-1], "score": 0.05})
            if at % 4 == turn:
                place = {"image_id": 1 + at % 12, "bbox": [200 - at, 150 + at, 30, 20 + at]}
                found.append({**place, "category_id": 1 + at % 5, "score": round(float(rng.random()) / 2, 3)})
        (folder / f"{name}.json").write_text(json.dumps(found), newline="\n")
    rows = [f"{one['id']},{('day', 'night')[one['id'] % 2]},{one['id'] // 4}" for one in images]
    (folder / "attributes.csv").write_text("\n".join(["image,light,street", *rows, ""]), newline="\n")


def pictures(folder):
    """Write pictures of all images of `detectors` but the last two, one of them broken."""
    from PIL import Image

    (folder / "pictures").mkdir()
    for at in range(1, 11):
        Image.new("RGB", (80 + 40 * at, 60 + 30 * at), (at * 20, 90, 30)).save(folder / "pictures" / f"image {at}.png")
    (folder / "pictures" / "image 3.png").write_bytes(b"no picture")


def runs(folder):
    """Write judgements of 24 queries, and the runs ``first`` and ``second`` of them and ``part`` of 18, with ties."""
    rng = np.random.default_rng(11)
    documents = [f"d{at}" for at in range(40)]
    judged, lines = [], {"first": [], "second": [], "part": []}
    for at in range(24):
        query = f"q{at:02}"
        count = (1, 2, 5, 12, 35)[at % 5]
        relevant = rng.permutation(documents)[:count].tolist()
        judged += [f"{query} 0 {one} {1 + k % 3}" for k, one in enumerate(relevant)]
        judged += [f"{query} 0 {one} {0 if k % 2 else -1}" for k, one in enumerate(documents) if one not in relevant][
            :4
        ]
        for turn, name in enumerate(lines):
            if name == "part" and at % 4 == 0:
                continue
            for one in rng.permutation(documents)[: 8 + 3 * (at % 9)].tolist():
                score = round(float(rng.random()) + (0.2 + 0.3 * turn) * (one in relevant), 1 if at % 2 else 3)
                lines[name].append(f"{query} Q0 {one} 0 {score} {name}")
    lines["first"] += ["stray Q0 d1 0 1.0 first"]
    (folder / "qrels.txt").write_text("\n".join(judged) + "\nunanswered 0 d3 1\n", newline="\n")
    for name, made in lines.items():
        (folder / f"{name}.run").write_text("\n".join(made) + "\n", newline="\n")


def galleries(folder):
    """Write a gallery of features with cameras and junk, one of codes, and one of distances."""
    rng = np.random.default_rng(13)
    people = np.arange(40) % 9 - 1
    features = rng.integers(-4, 5, (12, 6)), rng.integers(-4, 5, (40, 6)) + 2 * people[:, None]
    cameras = {"query_cameras": np.arange(12) % 3, "gallery_cameras": np.arange(40) % 4}
    ids = {"query_ids": np.arange(12) % 10, "gallery_ids": people}
    named = {
        name: of.astype(np.float64) for name, of in zip(("query_features", "gallery_features"), features, strict=True)
    }
    np.savez(folder / "reid.npz", **named, **ids, **cameras)
    np.savez(folder / "distances.npz", distances=rng.integers(0, 30, (12, 40)) / 4, **ids, **cameras)
    codes = {"query_codes": rng.integers(0, 2, (12, 16)), "gallery_codes": rng.integers(0, 2, (40, 16))}
    labels = {"query_labels": rng.integers(0, 2, (12, 4)), "gallery_labels": rng.integers(0, 2, (40, 4))}
    np.savez(folder / "codes.npz", **codes, **labels)
