"""Drawn poses in CrowdPose's and COCO-WholeBody's JSON, with the quirks of their files."""

from __future__ import annotations

import numpy as np

CROWDPOSE = {"keypoints": 14}
WHOLE_BODY = {"keypoints": 17, "foot_kpts": 6, "face_kpts": 68, "lefthand_kpts": 21, "righthand_kpts": 21}
SCORES = ("foot_score", "face_score", "lefthand_score", "righthand_score", "wholebody_score")
FLAGS = ("foot_valid", "face_valid", "lefthand_valid", "righthand_valid")


def scene(seed, lists=WHOLE_BODY, *, images=9, categories=2, strings=False, odd=True, fields=1.0):
    """A document of ground truth and a list of results.

    With `odd` counts of labelled points contradict the points, and detections may lack scores of parts. `fields` is the
    share of images with a crowd index. The last category has no objects.
    """
    rng = np.random.default_rng(seed)

    def own(number):
        return f"{number:03d}" if strings else int(number)

    def pose(record, corner, size, of=None, spread=0.0):
        for name, count in lists.items():
            part = name == "keypoints" or rng.random() < 0.75
            scale = 1.0 if name == "keypoints" else 0.3
            points = []
            for i in range(count):
                seen = part and rng.random() < 0.7
                x, y = (corner + rng.random(2) * size * scale).round(1).tolist()
                if of is not None and of[name][3 * i + 2] > 0:
                    x, y = (np.array(of[name][3 * i : 3 * i + 2]) + rng.normal(0, spread, 2)).round(2).tolist()
                if of is not None:
                    points += [x, y, int(rng.random() < 0.8)]
                else:
                    v = rng.choice([1, 2, 0.0124]) if name.endswith("hand_kpts") else int(rng.integers(1, 3))
                    points += [x, y, float(v)] if seen else [0, 0, 0]
            record[name] = points
        if rng.random() < 0.1:
            hidden = rng.choice(list(lists))
            record[hidden] = [0 if i % 3 == 2 else value for i, value in enumerate(record[hidden])]

    order = (rng.permutation(images) + 1).tolist()
    document = {
        "images": [{"id": own(one), "width": 400, "height": 300} for one in order],
        "annotations": [],
        "categories": [{"id": own(one), "name": f"class {one}"} for one in range(1, categories + 1)],
    }
    results = []
    for image, record in zip(order, document["images"], strict=True):
        if len(lists) == 1 and rng.random() < fields:
            record["crowdIndex"] = float(rng.choice([0.0, 0.1, 0.2, 0.5, 0.79, 0.8, 1.0]))
        for _ in range(rng.integers(0, 5)):
            corner, size = rng.random(2) * 200, np.array([rng.choice([9, 40, 120.0]), rng.choice([20, 60, 180.0])])
            person = {"image_id": own(image), "category_id": own(rng.integers(1, max(categories, 2)))}
            pose(person, corner, size)
            person["bbox"] = [*corner.round(1).tolist(), *size.tolist()]
            if len(lists) > 1 or not odd:
                person["area"] = round(float(size.prod() * rng.choice([0.4, 0.7])), 2)
            visible = sum(v > 0 for v in person["keypoints"][2::3])
            person["num_keypoints"] = int(rng.choice([visible, visible, 0, 3])) if odd else visible
            person |= {"iscrowd": int(rng.random() < 0.1), "id": len(document["annotations"]) + 1}
            if len(lists) > 1:
                person |= {flag: bool(rng.random() < 0.8) for flag in FLAGS}
            document["annotations"].append(person)
            for _ in range(rng.integers(0, 4)):
                found = {"image_id": own(image), "category_id": person["category_id"]}
                pose(found, corner, size, person, float(rng.choice([0.3, 2.0, 8.0])))
                results.append(found)
        for _ in range(25 if image == 1 else rng.integers(0, 3)):
            found = {"image_id": own(image), "category_id": own(rng.integers(1, categories + 1))}
            pose(found, rng.random(2) * 200, np.array([60.0, 90.0]), dict.fromkeys(lists, [0] * 3 * 68), 1.0)
            results.append(found)
    for found in results:
        found["score"] = round(float(rng.random()), 1)
        for name in SCORES if len(lists) > 1 else ():
            if not odd or rng.random() < 0.9:
                found[name] = round(float(rng.random()), 1)
    results = [results[i] for i in rng.permutation(len(results)).tolist()]
    document["annotations"] = [
        document["annotations"][i] for i in rng.permutation(len(document["annotations"])).tolist()
    ]
    return document, results
