"""Writes the fixtures: small data sets with a plausible detector's results, the same bytes every time.

    python scripts/make_fixtures.py [DIRECTORY]

`coco` holds boxes, `people` masks and poses, `lvis` other ground truth for the detections of `coco`, `poses` CrowdPose's and
COCO-WholeBody's JSON, `voc` and `dota` the folders of PASCAL VOC and DOTA, `nuscenes` samples and results, `panoptic` label
maps and their JSON, `temporal` and `ytvis` videos. Only sums, products and quotients of `random.Random.random()` go into
them, so that neither a platform's libm nor a version of Python or numpy shows. The files `expected*.json` hold pycocotools'
numbers; without pycocotools they are left as they are.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import struct
import sys
import zlib
from pathlib import Path

import video_fixtures

DIRECTORY = Path(__file__).resolve().parent.parent / "fixtures"

METRICS = [
    *("AP", "AP50", "AP75", "AP_small", "AP_medium", "AP_large"),
    *("AR_1", "AR_10", "AR_100", "AR_small", "AR_medium", "AR_large"),
]
METRICS_OF_POSES = [
    *("AP", "AP50", "AP75", "AP_medium", "AP_large"),
    *("AR_20", "AR50", "AR75", "AR_medium", "AR_large"),
]

# id, name, supercategory, how often, shortest and longest usual side in pixels, height over width
COCO_CLASSES = [
    (1, "person", "person", 26, 24, 260, 2.1),
    (2, "bicycle", "vehicle", 8, 40, 220, 0.8),
    (3, "car", "vehicle", 18, 18, 180, 0.6),
    (17, "cat", "animal", 7, 70, 280, 0.9),
    (18, "dog", "animal", 8, 60, 260, 0.9),
    (44, "bottle", "kitchen", 10, 12, 90, 2.4),
    (47, "cup", "kitchen", 8, 14, 80, 1.1),
    (62, "chair", "furniture", 12, 28, 190, 1.3),
]
CONFUSED = {1: 18, 2: 3, 3: 2, 17: 18, 18: 17, 44: 47, 47: 44, 62: 1}
VOC_CLASSES = [
    ("bicycle", 12, 60, 220, 0.8),
    ("car", 22, 40, 230, 0.6),
    ("cat", 20, 90, 260, 0.9),
    ("dog", 20, 80, 260, 0.9),
    ("person", 30, 50, 300, 2.0),
]
DOTA_CLASSES = [
    ("harbor", 8, 60, 260, 0.25),
    ("plane", 20, 40, 150, 1.0),
    ("ship", 34, 18, 110, 0.35),
    ("small-vehicle", 38, 12, 40, 0.5),
]
# name, how often, width, length, height in metres, fastest in metres per second, attributes
NUSCENES_CLASSES = [
    ("car", 34, 1.9, 4.6, 1.7, 9.0, ("vehicle.moving", "vehicle.parked")),
    ("truck", 8, 2.5, 7.0, 2.9, 7.0, ("vehicle.moving", "vehicle.stopped")),
    ("bus", 4, 2.9, 11.0, 3.5, 7.0, ("vehicle.moving", "vehicle.stopped")),
    ("pedestrian", 26, 0.7, 0.7, 1.8, 1.5, ("pedestrian.moving", "pedestrian.standing")),
    ("bicycle", 6, 0.6, 1.7, 1.3, 4.0, ("cycle.with_rider", "cycle.without_rider")),
    ("traffic_cone", 12, 0.4, 0.4, 1.1, 0.0, ("",)),
    ("barrier", 12, 2.5, 0.5, 1.0, 0.0, ("",)),
]


class Dice(random.Random):
    """Draws made of `random()` by arithmetic alone."""

    def between(self, low, high):
        return low + (high - low) * self.random()

    def whole(self, low, high):
        """An integer from `low` to `high`, both included."""
        return low + int(self.random() * (high - low + 1))

    def bell(self, spread):
        """Nearly normal around 0: six draws summed."""
        total = -3.0
        for _ in range(6):  # not `sum`, which rounds differently from Python 3.12 on
            total += self.random()
        return spread * total / 0.7071

    def chance(self, probability):
        return self.random() < probability

    def pick(self, rows, weight):
        point = self.random() * sum(row[weight] for row in rows)
        for row in rows:
            point -= row[weight]
            if point < 0:
                return row
        return rows[-1]


def place(dice, smallest, largest, ratio, width, height):
    """A box (x, y, w, h) within the image; small ones are the more frequent."""
    side = smallest + (largest - smallest) * dice.random() * dice.random()
    w = min(side * dice.between(0.75, 1.3), width * 0.9)
    h = min(side * ratio * dice.between(0.8, 1.2), height * 0.9)
    return dice.between(0, width - w), dice.between(0, height - h), w, h


def jitter(dice, box, spread):
    x, y, w, h = box
    return (
        x + dice.bell(spread) * w,
        y + dice.bell(spread) * h,
        w * (1 + max(dice.bell(spread), -0.6)),
        h * (1 + max(dice.bell(spread), -0.6)),
    )


def clip(box, width, height):
    x, y = max(box[0], 0.0), max(box[1], 0.0)
    return x, y, max(min(box[0] + box[2], width) - x, 1.0), max(min(box[1] + box[3], height) - y, 1.0)


def detect(dice, box, size):
    """What becomes of an object of `size` 0 (tiny) to 1 (huge): `(box, score)` once, more often or not at all."""
    found = []
    if dice.chance(0.66 + 0.3 * size):
        spread = dice.between(0.006, 0.082) * (1.45 - size)
        sure = 0.2 + 0.6 * (1 - spread / 0.15) * dice.between(0.5, 1.15) + 0.14 * dice.random()
        found.append((jitter(dice, box, spread), sure * (dice.between(0.1, 0.5) if dice.chance(0.12) else 1)))
        while dice.chance(0.38):
            found.append((jitter(dice, box, 0.22), found[0][1] * dice.between(0.15, 0.85)))
    return [(where, min(max(score, 0.011), 0.998)) for where, score in found]


# ------------------------------------------------------------------------------------------------------------- COCO


def outline(box):
    """The box with its corners cut, as one polygon, and the polygon's area."""
    x, y, w, h = box
    a, b = w / 6, h / 6
    corners = [(a, 0), (w - a, 0), (w, b), (w, h - b), (w - a, h), (a, h), (0, h - b), (0, b)]
    return [[round(v, 2) for dx, dy in corners for v in (x + dx, y + dy)]], round(w * h - 2 * a * b, 4)


def run_lengths(box, width, height):
    """The box of whole pixels as an uncompressed mask, column by column, as crowds have it."""
    x, y, w, h = box
    counts = [x * height + y]
    for column in range(w):
        counts += [h, height - h if column < w - 1 else (width - x - w) * height + height - y - h]
    return {"counts": counts, "size": [height, width]}


def make_coco():
    dice = Dice(20240229)
    images, annotations, detections = [], [], []
    numbers = {dice.whole(1000, 581929) for _ in range(60)}
    while len(numbers) < 60:
        numbers.add(dice.whole(1000, 581929))
    for image_id in sorted(numbers, key=lambda number: (number * 7919) % 104729):
        width, height = [(640, 480), (640, 427), (480, 640), (500, 375)][dice.whole(0, 3)]
        position = len(images)
        images.append(
            {
                "license": 1,
                "file_name": f"{image_id:012d}.jpg",
                "height": height,
                "width": width,
                "date_captured": f"2024-02-29 {10 + position // 6:02d}:{position % 6 * 10:02d}:00",
                "id": image_id,
            }
        )
        found = []
        scene = [dice.pick(COCO_CLASSES, 3) for _ in range(3)]
        for _ in range(0 if position in (11, 37) else dice.whole(2, 13)):
            category, _, _, _, smallest, largest, ratio = scene[dice.whole(0, 2)]
            box = tuple(round(v, 2) for v in place(dice, smallest, largest, ratio, width, height))
            crowd = dice.chance(0.025)
            if crowd:
                box = tuple(int(v) for v in clip((box[0], box[1], box[2] * 2 + 40, box[3] + 20), width, height))
                segmentation, area = run_lengths(box, width, height), box[2] * box[3]
            else:
                segmentation, area = outline(box)
            annotations.append(
                {
                    "segmentation": segmentation,
                    "area": area,
                    "iscrowd": int(crowd),
                    "image_id": image_id,
                    "bbox": list(box),
                    "category_id": category,
                    "id": 0,
                }
            )
            if crowd:  # several members are found, each by itself
                for _ in range(dice.whole(2, 6)):
                    member = (box[0] + box[2] * dice.between(0, 0.7), box[1], box[2] * 0.3, box[3])
                    found.append((category, jitter(dice, member, 0.1), dice.between(0.1, 0.7)))
                continue
            for where, score in detect(dice, box, min(area / 20000, 1.0)):
                wrong = dice.chance(0.08)
                found.append((CONFUSED[category] if wrong else category, where, score * (0.8 if wrong else 1)))
        for _ in range(0 if position == 23 else dice.whole(20, 44)):  # background
            category, _, _, _, smallest, largest, ratio = (
                scene[dice.whole(0, 2)] if dice.chance(0.5) else dice.pick(COCO_CLASSES, 3)
            )
            score = 0.011 + 0.5 * dice.random() * dice.random() * dice.random()
            found.append((category, place(dice, smallest, largest, ratio, width, height), score))
        if position == 23:
            found = []
        found = [(category, clip(where, width, height), round(score, 3)) for category, where, score in found]
        for category, where, score in sorted(found, key=lambda item: -item[2]):
            bbox = [round(v, 2) for v in where]
            detections.append({"image_id": image_id, "category_id": category, "bbox": bbox, "score": score})
    # ids in another order than the file's
    for position, annotation in enumerate(annotations):
        annotation["id"] = 100000 + (position * 7919) % 10007
    ground_truth = {
        "info": {
            "description": "Made-up objects for detmap's tests and demo",
            "version": "1.0",
            "year": 2024,
            "contributor": "scripts/make_fixtures.py",
            "date_created": "2024/02/29",
        },
        "licenses": [{"id": 1, "name": "MIT License", "url": "https://opensource.org/license/mit"}],
        "images": images,
        "annotations": annotations,
        "categories": [{"supercategory": row[2], "id": row[0], "name": row[1]} for row in COCO_CLASSES],
    }
    return ground_truth, detections


# ------------------------------------------------------------------------------------------------ people: masks and poses

# Where COCO's 17 points lie on somebody who stands: shares of the box's width and height.
POINTS = [
    ("nose", 0.5, 0.09),
    ("left_eye", 0.54, 0.07),
    ("right_eye", 0.46, 0.07),
    ("left_ear", 0.59, 0.08),
    ("right_ear", 0.41, 0.08),
    ("left_shoulder", 0.72, 0.24),
    ("right_shoulder", 0.28, 0.24),
    ("left_elbow", 0.84, 0.4),
    ("right_elbow", 0.16, 0.4),
    ("left_wrist", 0.88, 0.54),
    ("right_wrist", 0.12, 0.54),
    ("left_hip", 0.62, 0.54),
    ("right_hip", 0.38, 0.54),
    ("left_knee", 0.65, 0.76),
    ("right_knee", 0.35, 0.76),
    ("left_ankle", 0.66, 0.96),
    ("right_ankle", 0.34, 0.96),
]
BONES = [
    *([16, 14], [14, 12], [17, 15], [15, 13], [12, 13], [6, 12], [7, 13], [6, 7], [6, 8], [7, 9], [8, 10], [9, 11]),
    *([2, 3], [1, 2], [1, 3], [2, 4], [3, 5], [4, 6], [5, 7]),
]
# id, name, shortest and longest usual width in pixels
PEOPLE = [(1, "adult", 14, 120), (2, "child", 10, 60)]


def parts(box):
    """The boxes of head and body of somebody in a box; a polygon each, see `outline`."""
    x, y, w, h = box
    return [(x + 0.3 * w, y, 0.4 * w, 0.2 * h), (x, y + 0.2 * h, w, 0.8 * h)]


def drawn(box, width, height):
    """The pixels of both outlines as a compressed mask: COCO's string of run lengths."""
    columns = [[] for _ in range(width)]
    for x, y, w, h in parts(box):
        for column in range(max(int(x), 0), min(int(x + w) + 1, width)):
            u = column + 0.5 - x
            inside = min(u, w - u)
            if inside < 0:
                continue
            inset = max(h / 6 * (1 - inside / (w / 6)), 0.0)
            top, bottom = max(int(y + inset + 0.5), 0), min(int(y + h - inset + 0.5), height)
            if top < bottom:
                columns[column].append((top, bottom))
    counts, end = [], 0  # of zeros and ones by turns, column by column
    for column, spans in enumerate(columns):
        for top, bottom in spans:
            start, stop = column * height + top, column * height + bottom
            if counts and start == end:
                counts[-1] += stop - start
            else:
                counts += [start - end, stop - start]
            end = stop
    return {"size": [height, width], "counts": compressed([*counts, width * height - end])}


def compressed(counts):
    """COCO's string: from the third on each count less the one two before, in groups of five bits, the lowest first."""
    text = ""
    for position, count in enumerate(counts):
        rest = count - counts[position - 2] if position > 2 else count
        more = True
        while more:
            bits, rest = rest & 31, rest >> 5
            more = rest != (-1 if bits & 16 else 0)
            text += chr(48 + bits + 32 * more)
    return text


def stand(dice, box, spread):
    """Points (x, y) of somebody in a box, each off by about `spread` of the box."""
    x, y, w, h = box
    return [(x + w * (u + dice.bell(spread)), y + h * (v + dice.bell(spread / 2))) for _, u, v in POINTS]


def posed(points):
    """Points as a result has them; the third number is not read."""
    return [number for x, y in points for number in (round(x, 1), round(y, 1), 1)]


def make_people():
    """Ground truth with masks and poses, masks that were detected, and poses that were."""
    dice = Dice(17)
    images, annotations, masks, poses = [], [], [], []
    for position in range(20):
        image_id = 700 + position * 367 % 1009
        width, height = [(320, 240), (240, 320)][dice.whole(0, 1)]
        images.append({"file_name": f"{image_id:012d}.jpg", "height": height, "width": width, "id": image_id})
        for _ in range(0 if position == 7 else dice.whole(1, 5)):
            category, _, narrow, wide = PEOPLE[int(dice.chance(0.3))]
            box = tuple(round(v, 2) for v in place(dice, narrow, wide, 2.4, width, height))
            crowd = dice.chance(0.05)
            if crowd:
                box = tuple(int(v) for v in clip((box[0], box[1], box[2] * 2 + 40, box[3] + 20), width, height))
                segmentation, area = run_lengths(box, width, height), box[2] * box[3]
            else:
                outlines = [outline(part) for part in parts(box)]
                segmentation, area = [polygon for (polygon,), _ in outlines], round(sum(a for _, a in outlines), 4)
            hidden = crowd or dice.chance(0.08)  # then no point is labelled, and nobody need find the pose
            points, labelled = stand(dice, box, 0.03), []
            for x, y in points:
                seen = 0 if hidden or dice.chance(0.1) else 1 + dice.chance(0.8)
                labelled += [int(x + 0.5), int(y + 0.5), seen] if seen else [0, 0, 0]
            annotations.append(
                {
                    "segmentation": segmentation,
                    "num_keypoints": sum(seen > 0 for seen in labelled[2::3]),
                    "area": area,
                    "iscrowd": int(crowd),
                    "keypoints": labelled,
                    "image_id": image_id,
                    "bbox": list(box),
                    "category_id": category,
                    "id": 9000 + len(annotations) * 17 % 101,
                }
            )
            size = min(area / 9000, 1.0)
            found = {"image_id": image_id, "category_id": 3 - category if dice.chance(0.06) else category}
            for where, score in detect(dice, box, size)[:2]:
                masks.append({**found, "segmentation": drawn(where, width, height), "score": round(score, 3)})
            for where, score in detect(dice, box, size)[:2]:
                near = [(x + dice.bell(0.04) * where[2], y + dice.bell(0.02) * where[3]) for x, y in points]
                guess = near if dice.chance(0.85) else stand(dice, where, 0.05)
                poses.append({**found, "keypoints": posed(guess), "score": round(score, 3)})
        for _ in range(dice.whole(0, 2)):  # background
            category, _, narrow, wide = PEOPLE[dice.whole(0, 1)]
            box = place(dice, narrow, wide, 2.4, width, height)
            found = {"image_id": image_id, "category_id": category}
            score = round(0.02 + 0.5 * dice.random() * dice.random(), 3)
            masks.append({**found, "segmentation": drawn(box, width, height), "score": score})
            poses.append({**found, "keypoints": posed(stand(dice, box, 0.05)), "score": score})
    names = [name for name, _, _ in POINTS]
    ground_truth = {
        "info": {
            "description": "Made-up people with masks and poses for detmap's tests and demo",
            "version": "1.0",
            "year": 2024,
            "contributor": "scripts/make_fixtures.py",
            "date_created": "2024/02/29",
        },
        "images": images,
        "annotations": annotations,
        "categories": [
            {"supercategory": "person", "id": row[0], "name": row[1], "keypoints": names, "skeleton": BONES}
            for row in PEOPLE
        ],
    }
    return ground_truth, masks, poses


# ---------------------------------------------------------------------------------------------------------- as files


def expected(ground_truth, detections, iou_type="bbox"):
    """pycocotools' numbers by name, or None where it is not installed."""
    try:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval
    except ImportError:
        return None
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = json.loads(json.dumps(ground_truth))
        truth.createIndex()
        evaluation = COCOeval(truth, truth.loadRes(json.loads(json.dumps(detections))), iou_type)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    names = METRICS_OF_POSES if iou_type == "keypoints" else METRICS
    return {
        "protocol": "coco",
        **({} if iou_type == "bbox" else {"iou_type": iou_type}),
        "metrics": dict(zip(names, evaluation.stats.tolist(), strict=True)),
    }


def lines(records):
    """A JSON list with one record a line."""
    return "[\n" + ",\n".join(json.dumps(record, separators=(",", ":")) for record in records) + "\n]"


def as_text(ground_truth):
    parts = [
        f'"{name}":{lines(value) if isinstance(value, list) else json.dumps(value, separators=(",", ":"))}'
        for name, value in ground_truth.items()
    ]
    return "{" + ",\n".join(parts) + "}\n"


# -------------------------------------------------------------------------------------------------------------- VOC


def voc_object(dice, name, box, difficult, truncated):
    x1, y1, x2, y2 = box
    bndbox = [f"<xmin>{x1}</xmin>", f"<ymin>{y1}</ymin>", f"<xmax>{x2}</xmax>", f"<ymax>{y2}</ymax>"]
    if dice.chance(0.2):  # the order of the four is not fixed
        bndbox = [bndbox[2], bndbox[0], bndbox[3], bndbox[1]]
    parts = []
    if name == "person" and dice.chance(0.4):
        for part in ("head", "hand", "foot")[: dice.whole(1, 3)]:
            px, py = dice.whole(x1, (x1 + x2) // 2), dice.whole(y1, (y1 + y2) // 2)
            parts += [
                "\t\t<part>",
                f"\t\t\t<name>{part}</name>",
                f"\t\t\t<bndbox><xmin>{px}</xmin><ymin>{py}</ymin>",
                f"\t\t\t<xmax>{px + 12}</xmax><ymax>{py + 12}</ymax></bndbox>",
                "\t\t</part>",
            ]
    pose = ("Unspecified", "Left", "Right", "Frontal", "Rear")[dice.whole(0, 4)]
    own = [
        f"\t\t<name>{name}</name>",
        f"\t\t<pose>{pose}</pose>",
        f"\t\t<truncated>{truncated}</truncated>",
        f"\t\t<difficult>{difficult}</difficult>",
    ]
    box_line = [f"\t\t<bndbox>{''.join(bndbox)}</bndbox>"]
    # a part may come before the box of its object
    inner = own + (parts + box_line if dice.chance(0.5) else box_line + parts)
    return ["\t<object>", *inner, "\t</object>"]


def make_voc():
    """The files by their path below `voc/`."""
    dice = Dice(2012)
    files, names = {}, []
    results = {row[0]: [] for row in VOC_CLASSES}
    number = 0
    for position in range(40):
        number += dice.whole(1, 9)
        image = f"{number:06d}"
        names.append(image)
        width, height = [(500, 375), (375, 500), (500, 333)][dice.whole(0, 2)]
        text = [
            "<annotation>",
            "\t<folder>VOC2012</folder>",
            f"\t<filename>{image}.jpg</filename>",
            "\t<source><database>made up</database></source>",
            f"\t<size><width>{width}</width><height>{height}</height><depth>3</depth></size>",
            "\t<segmented>0</segmented>",
        ]
        scene = [dice.pick(VOC_CLASSES, 1) for _ in range(2)]
        found = []
        for _ in range(0 if position == 17 else dice.whole(1, 6)):
            name, _, smallest, largest, ratio = scene[dice.whole(0, 1)]
            x, y, w, h = place(dice, smallest, largest, ratio, width, height)
            box = int(x) + 1, int(y) + 1, int(x + w) + 1, int(y + h) + 1  # pixels are counted from 1
            difficult = int(dice.chance(0.15))
            text += voc_object(dice, name, box, difficult, int(dice.chance(0.3)))
            exact = (box[0], box[1], box[2] - box[0], box[3] - box[1])
            for where, score in detect(dice, exact, 0.1 if difficult else 0.4):
                found.append((name, where, score * (0.6 if difficult else 1)))
        for _ in range(dice.whole(4, 14)):
            name, _, smallest, largest, ratio = dice.pick(VOC_CLASSES, 1)
            score = 0.011 + 0.6 * dice.random() * dice.random()
            found.append((name, place(dice, smallest, largest, ratio, width, height), score))
        files[f"Annotations/{image}.xml"] = "\n".join([*text, "</annotation>", ""])
        for name, where, score in found:
            x, y, w, h = clip(where, width - 1, height - 1)
            digits = 2 if score < 0.2 else 6  # low scores tie
            results[name].append(
                f"{image} {round(score, digits):.6f} {x + 1:.6f} {y + 1:.6f} {x + w + 1:.6f} {y + h + 1:.6f}"
            )
    for name, rows in results.items():
        files[f"results/comp4_det_test_{name}.txt"] = "\n".join([*rows, ""])
    files["ImageSets/test.txt"] = "\n".join([*names, ""])
    return files


# ------------------------------------------------------------------------------------------------------------- LVIS

FREQUENCIES = {1: "f", 2: "r", 3: "f", 17: "r", 18: "c", 44: "c", 47: "c", 62: "f"}


def make_lvis(coco):
    """COCO's ground truth as a federated data set has it: not every class was looked for on every image."""
    dice = Dice(1203)
    images, annotations = [], []
    for image in coco["images"]:
        own = [row for row in coco["annotations"] if row["image_id"] == image["id"] and not row["iscrowd"]]
        negative, partly = [], []
        for category in coco["categories"]:
            there = [row for row in own if row["category_id"] == category["id"]]
            if there and dice.chance(0.75):
                if len(there) > 2 and dice.chance(0.5):
                    partly.append(category["id"])
                    there = there[:-1]
                annotations += there
            elif not there and dice.chance(0.3):
                negative.append(category["id"])
        listed = {"neg_category_ids": negative, "not_exhaustive_category_ids": partly}
        images.append({**{field: image[field] for field in ("id", "file_name", "height", "width")}, **listed})
    fields = ("id", "image_id", "category_id", "bbox", "area")
    return {
        "images": images,
        "categories": [{**row, "frequency": FREQUENCIES[row["id"]]} for row in coco["categories"]],
        "annotations": [{field: row[field] for field in fields} for row in annotations],
    }


# ------------------------------------------------------------------------------------------------------------ poses

#: The lists of points of CrowdPose and of COCO-WholeBody: how many points, and where in a box: left, top, width, height.
CROWD_LISTS = {"keypoints": (14, 0.1, 0.1, 0.8, 0.85)}
WHOLE_LISTS = {
    "keypoints": (17, 0.1, 0.05, 0.8, 0.9),
    "foot_kpts": (6, 0.2, 0.9, 0.6, 0.1),
    "face_kpts": (68, 0.35, 0.02, 0.3, 0.15),
    "lefthand_kpts": (21, 0.8, 0.45, 0.15, 0.08),
    "righthand_kpts": (21, 0.05, 0.45, 0.15, 0.08),
}


def make_poses(seed, lists, number):
    """Ground truth and results in the JSON of CrowdPose (one list of points) or of COCO-WholeBody (five)."""
    dice, whole = Dice(seed), len(lists) > 1
    images, annotations, results = [], [], []
    for position in range(number):
        image = {"file_name": f"{position:06d}.jpg", "id": 100 + 7 * position, "height": 480, "width": 640}
        crowded = position % 5 / 4
        images.append(image if whole else {**image, "crowdIndex": crowded})
        for _ in range(dice.whole(1, 2) + int(4 * crowded) * (not whole)):
            box = tuple(int(v) for v in place(dice, 60, 260, 2.2, 640, 480))
            x, y, w, h = box
            person, found = {}, {}
            miss = 0.01 + 0.05 * crowded * dice.random()
            for name, (count, left, top, wide, high) in lists.items():
                valid = name == "keypoints" or dice.chance(0.75)
                points, guesses = [], []
                for _ in range(count):
                    u, v = left + wide * dice.random(), top + high * dice.random()
                    seen = valid and dice.chance(0.85)
                    points += [int(x + u * w), int(y + v * h), 1 + dice.chance(0.5)] if seen else [0, 0, 0]
                    spread = miss * (1 if name == "keypoints" else 0.3)
                    guesses += [round(x + (u + dice.bell(spread)) * w), round(y + (v + dice.bell(spread)) * h), 1]
                person[name], found[name] = points, guesses
                if name != "keypoints":
                    person[name.replace("kpts", "valid")] = valid
            labelled = sum(seen > 0 for seen in person["keypoints"][2::3])
            own = {"id": 500 + len(annotations), "image_id": image["id"], "category_id": 1, "iscrowd": 0}
            area = {"area": round(0.55 * w * h, 1)} if whole else {}
            annotations.append({**own, "bbox": list(box), **area, "num_keypoints": labelled, **person})
            if dice.chance(0.95 - 0.3 * crowded):
                results.append(scored(dice, {"image_id": image["id"], "category_id": 1, **found}, whole, 0.3))
            if dice.chance(0.2):
                moved = {name: [value + 40 for value in values] for name, values in found.items()}
                results.append(scored(dice, {"image_id": image["id"], "category_id": 1, **moved}, whole, 0.0))
    return {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "person"}]}, results


def scored(dice, record, whole, least):
    """A result with a score, and with one of each part."""
    fields = ("foot_score", "face_score", "lefthand_score", "righthand_score", "wholebody_score") if whole else ()
    return {**record, **{field: round(least + 0.7 * dice.random(), 3) for field in ("score", *fields)}}


# ------------------------------------------------------------------------------------------------------------- DOTA


def turned(box, tangent):
    """The corners of a box that is turned by twice the angle of a tangent."""
    x, y, w, h = box
    cosine, sine = (1 - tangent * tangent) / (1 + tangent * tangent), 2 * tangent / (1 + tangent * tangent)
    sides = [(a * w / 2, b * h / 2) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    return [value for p, q in sides for value in (x + w / 2 + p * cosine - q * sine, y + h / 2 + p * sine + q * cosine)]


def make_dota():
    """The files by their path below `dota/`."""
    dice = Dice(99388551)
    files, results = {}, {row[0]: [] for row in DOTA_CLASSES}
    for number in range(12):
        image = f"P{number * 7 + 3:04d}"
        text = ["imagesource:made up", f"gsd:{dice.between(0.1, 0.9):.6f}"]
        common = dice.between(-1, 1)  # what is parked lies side by side
        for _ in range(dice.whole(3, 14)):
            name, _, smallest, largest, ratio = dice.pick(DOTA_CLASSES, 1)
            box = place(dice, smallest, largest, ratio, 1024, 1024)
            tangent = common if dice.chance(0.6) else dice.between(-1, 1)
            difficult = int(dice.chance(0.1))
            corners = " ".join(str(int(value + 0.5)) for value in turned(box, tangent))
            text.append(f"{corners} {name} {difficult}")
            for where, score in detect(dice, box, 0.1 if difficult else 0.5):
                corners = " ".join(f"{value:.2f}" for value in turned(where, tangent + dice.bell(0.02)))
                results[name].append(f"{image} {round(score, 2 if score < 0.2 else 4)} {corners}")
        for _ in range(dice.whole(1, 6)):
            name, _, smallest, largest, ratio = dice.pick(DOTA_CLASSES, 1)
            stray = turned(place(dice, smallest, largest, ratio, 1024, 1024), dice.between(-1, 1))
            corners = " ".join(f"{value:.2f}" for value in stray)
            results[name].append(f"{image} {round(0.011 + 0.6 * dice.random() * dice.random(), 4)} {corners}")
        files[f"labelTxt/{image}.txt"] = "\n".join([*text, ""])
    for name, rows in results.items():
        files[f"Task1/Task1_{name}.txt"] = "\n".join([*rows, ""])
    return files


# --------------------------------------------------------------------------------------------------------- nuScenes


def quaternion(tangent):
    """The turn about z by four times the angle of a tangent."""
    return [(1 - tangent * tangent) / (1 + tangent * tangent), 0.0, 0.0, 2 * tangent / (1 + tangent * tangent)]


def make_nuscenes():
    """A JSON of samples, and results as they are submitted."""
    dice = Dice(650019)
    samples, results = [], {}
    for number in range(20):
        token = f"{number % 7}{number * number * 7919 + 104729:08x}"
        ego = [round(dice.between(300, 1800), 3), round(dice.between(500, 2200), 3), 0.0]
        boxes, found = [], []
        for _ in range(dice.whole(8, 24)):
            name, _, *usual, fastest, attributes = dice.pick(NUSCENES_CLASSES, 1)
            size = [round(side * dice.between(0.85, 1.15), 3) for side in usual]
            centre = [round(middle + dice.between(-48, 48), 3) for middle in ego[:2]]
            tangent, speed = dice.between(-1, 1), fastest * dice.random()
            attribute = attributes[0] if speed > 0.5 else attributes[-1]
            forward = quaternion(tangent)
            box = {
                "translation": [*centre, round(size[2] / 2, 3)],
                "size": size,
                "rotation": [round(value, 6) for value in forward],
                "velocity": [round(speed * dice.between(-1, 1), 4), round(speed * dice.between(-1, 1), 4)],
                "detection_name": name,
                "attribute_name": attribute,
                "num_pts": dice.whole(0, 30) if dice.chance(0.2) else dice.whole(1, 200),
            }
            boxes.append(box)
            for at in range(1 if dice.chance(0.8) else 0 if dice.chance(0.7) else 2):
                spread = 0.25 if dice.chance(0.7) else 1.2
                guess = {
                    "sample_token": token,
                    "translation": [*(round(value + dice.bell(spread), 4) for value in centre), box["translation"][2]],
                    "size": [round(side * (1 + dice.bell(0.06)), 4) for side in size],
                    "rotation": quaternion(tangent + dice.bell(0.04)),
                    "velocity": [round(value + dice.bell(0.3), 4) for value in box["velocity"]],
                    "detection_name": name if dice.chance(0.93) else dice.pick(NUSCENES_CLASSES, 1)[0],
                    "detection_score": round((0.35 if at else 0.6) + 0.4 * dice.random() * dice.between(-1, 1), 4),
                    "attribute_name": attribute if dice.chance(0.85) else attributes[0],
                }
                found.append(guess)
        for _ in range(dice.whole(4, 16)):
            name, _, *usual, _, attributes = dice.pick(NUSCENES_CLASSES, 1)
            found.append(
                {
                    "sample_token": token,
                    "translation": [*(round(middle + dice.between(-50, 50), 4) for middle in ego[:2]), 1.0],
                    "size": usual,
                    "rotation": quaternion(dice.between(-1, 1)),
                    "velocity": [0.0, 0.0],
                    "detection_name": name,
                    "detection_score": round(0.05 + 0.5 * dice.random() * dice.random(), 4),
                    "attribute_name": attributes[-1],
                }
            )
        samples.append({"token": token, "ego": ego, "boxes": boxes, "racks": []})
        results[token] = found
    meta = {f"use_{sensor}": sensor == "lidar" for sensor in ("camera", "lidar", "radar", "map", "external")}
    return {"samples": samples}, {"meta": meta, "results": results}


# -------------------------------------------------------------------------------------------------------------- all


#: id, name, whether it is a thing, how often a thing is there.
PANOPTIC_CLASSES = [(1, "person", 1, 5), (3, "car", 1, 3), (18, "dog", 1, 2), (100, "sky", 0, 0), (149, "road", 0, 0),
                    (193, "grass", 0, 0)]  # fmt: skip
PANOPTIC_SIZE = 48, 32


def png(ids):
    """A PNG file of rows of ids; it is not compressed, so that it is the same with every zlib."""
    height, width = len(ids), len(ids[0])
    rows = b"".join(b"\0" + b"".join(value.to_bytes(3, "little") for value in row) for row in ids)
    data = b"\x78\x01\x01" + struct.pack("<HH", len(rows), len(rows) ^ 0xFFFF) + rows
    data += struct.pack(">I", zlib.adler32(rows))
    out = b"\x89PNG\r\n\x1a\n"
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    for kind, content in ((b"IHDR", head), (b"IDAT", data), (b"IEND", b"")):
        out += struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return out


def painted(segments):
    """Rows of ids: each segment is a rectangle or an ellipse, which hides what is behind it."""
    width, height = PANOPTIC_SIZE
    ids = [[0] * width for _ in range(height)]
    for number, _, (x, y, w, h), is_round in segments:
        for row in range(max(int(y), 0), min(int(y + h), height)):
            for column in range(max(int(x), 0), min(int(x + w), width)):
                dx, dy = (column + 0.5 - x) / w - 0.5, (row + 0.5 - y) / h - 0.5
                if not is_round or dx * dx + dy * dy <= 0.25:
                    ids[row][column] = number
    return ids


def make_panoptic():
    """Sixteen small street scenes, and the predictions of a model before and after it has learnt to outline."""
    dice, files, (width, height) = Dice(2026), {}, PANOPTIC_SIZE
    names = ("ground_truth", "before", "after")
    annotations = {name: [] for name in names}
    things = [number for number, _, is_thing, often in PANOPTIC_CLASSES for _ in range(often) if is_thing]
    for image in range(1, 17):
        horizon = 8 + dice.random() * 8
        lower = 149 if dice.random() < 0.6 else 193
        truth = [
            (65793 * 2, 100, (0, 0, width, horizon), False),
            (65793 * 3, lower, (0, horizon + 1, width, height), False),
        ]
        for place in range(2 + int(dice.random() * 4)):
            w, h = 5 + dice.random() * 10, 6 + dice.random() * 12
            box = dice.random() * (width - w), horizon - 4 + dice.random() * (height - horizon - h), w, h
            truth.append(
                (1000 * (place + 1) + image, things[int(dice.random() * len(things))], box, dice.random() < 0.7)
            )
        sides = {"ground_truth": truth}
        for name, spread, slips in (("before", 3.6, 0.3), ("after", 2.0, 0.22)):
            sides[name] = []
            for number, category, (x, y, w, h), is_round in truth:
                slip, moved = dice.random(), [spread * (dice.random() - 0.5) for _ in range(4)]
                if category < 100 and slip < slips / 2:
                    continue
                if slips / 2 <= slip < slips:
                    category = {1: 18, 3: 1, 18: 1, 100: 100, 149: 193, 193: 149}[category]
                box = x + moved[0], y + moved[1], max(w + moved[2], 2), max(h + moved[3], 2)
                sides[name].append((number + 7, category, box, is_round))
        for name, segments in sides.items():
            ids, file = painted(segments), f"{image:03}.png"
            files[f"panoptic/{name}/{file}"] = png(ids)
            rows = []
            for number, category, _, _ in segments:
                area = sum(row.count(number) for row in ids)
                row = {"id": number, "category_id": category}
                if name == "ground_truth":
                    crowd = int(category == 1 and area > 90)
                    row |= {"area": area, "iscrowd": crowd}
                if area:
                    rows.append(row)
            annotations[name].append({"image_id": image, "file_name": file, "segments_info": rows})
    categories = [{"id": number, "name": name, "isthing": thing} for number, name, thing, _ in PANOPTIC_CLASSES]
    images = [{"id": n, "file_name": f"{n:03}.jpg", "width": width, "height": height} for n in range(1, 17)]
    for name in names:
        document = {"images": images, "categories": categories} if name == "ground_truth" else {}
        text = json.dumps({**document, "annotations": annotations[name]}, indent=1) + "\n"
        files[f"panoptic/{name}.json"] = text.encode()
    return files


def make():
    """Every fixture: its path below the fixtures' directory -> its bytes."""
    ground_truth, detections = make_coco()
    people, masks, poses = make_people()
    texts = {"coco/ground_truth.json": as_text(ground_truth), "people/ground_truth.json": as_text(people)}
    texts["lvis/ground_truth.json"] = as_text(make_lvis(ground_truth))
    for truth, found, iou_type, results, numbers in (
        (ground_truth, detections, "bbox", "coco/detections.json", "coco/expected.json"),
        (people, masks, "segm", "people/masks.json", "people/expected_masks.json"),
        (people, poses, "keypoints", "people/poses.json", "people/expected_poses.json"),
    ):
        texts[results] = lines(found) + "\n"
        reference = expected(truth, found, iou_type)
        if reference is not None:
            texts[numbers] = json.dumps(reference, indent=1) + "\n"
    for name, (seed, lists, number) in {"crowdpose": (29, CROWD_LISTS, 25), "wholebody": (31, WHOLE_LISTS, 10)}.items():
        truth, found = make_poses(seed, lists, number)
        texts[f"poses/{name}.json"] = as_text(truth)
        texts[f"poses/{name}_results.json"] = lines(found) + "\n"
    samples, submitted = make_nuscenes()
    texts["nuscenes/samples.json"] = json.dumps(samples, separators=(",", ":")) + "\n"
    texts["nuscenes/results.json"] = json.dumps(submitted, separators=(",", ":")) + "\n"
    texts.update({f"voc/{path}": text for path, text in make_voc().items()})
    texts.update({f"dota/{path}": text for path, text in make_dota().items()})

    def encode(box):
        code = run_lengths(box, *video_fixtures.SIZE)
        return {**code, "counts": compressed(code["counts"])}

    texts.update(video_fixtures.make(Dice(2014), encode))
    return {**{path: text.encode("ascii") for path, text in texts.items()}, **make_panoptic()}


def main(directory=DIRECTORY):
    files = make()
    folders = ["voc/Annotations", "voc/results", "dota/labelTxt", "dota/Task1"]
    folders += [f"panoptic/{name}" for name in ("ground_truth", "before", "after")]
    for stale in [path for folder in folders for path in Path(directory, folder).glob("*.*")]:
        stale.unlink()
    for path, content in files.items():
        target = Path(directory) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    print(f"{len(files)} files, {sum(map(len, files.values())):,} bytes, in {directory}")
    if "coco/expected.json" not in files:
        print("the files expected*.json were left as they were: pycocotools is not installed")


if __name__ == "__main__":
    main(*sys.argv[1:2])
