"""Drawn scenes in LVIS's JSON, with the quirks of its files: ties, crowds of detections, categories that nobody judged."""

from __future__ import annotations

import numpy as np


def scene(seed, *, images=9, categories=7, crowded=1, strings=False, fields=1.0):
    """A document of ground truth and a list of results.

    `crowded` images have more than 300 detections. With `strings` ids of images and categories are strings. `fields` is
    the share of images and categories that have LVIS's fields.
    """
    rng = np.random.default_rng(seed)

    def own(number):
        return f"{number:03d}" if strings else int(number)

    def box():
        size = rng.choice([4.0, 20.0, 60.0, 140.0], 2) + rng.integers(0, 8, 2)
        return [*rng.integers(0, 200, 2).astype(float).tolist(), *size.tolist()]

    listed = rng.permutation(categories) + 1
    document = {"images": [], "annotations": [], "categories": []}
    for category in listed.tolist():
        record = {"id": own(category), "name": f"class {category}"}
        if rng.random() < fields:
            record["frequency"] = "rcf"[category % 3]
        document["categories"].append(record)
    results, number = [], 0
    for image in (rng.permutation(images) + 1).tolist():
        # The last category has no objects at all.
        present = rng.choice(np.arange(1, categories), rng.integers(0, min(4, categories)), replace=False).tolist()
        others = [one for one in range(1, categories + 1) if one not in present]
        record = {"id": own(image), "width": 400, "height": 400}
        if rng.random() < fields:
            record["neg_category_ids"] = [
                own(one) for one in rng.choice(others, min(2, len(others)), replace=False).tolist()
            ]
        if rng.random() < fields:
            lenient = [one for one in present if rng.random() < 0.4] + [one for one in others if rng.random() < 0.1]
            record["not_exhaustive_category_ids"] = [own(one) for one in lenient]
        document["images"].append(record)
        for category in present:
            for _ in range(rng.integers(1, 5)):
                number += 1
                where = box()
                flat = rng.random() < 0.08
                document["annotations"].append(
                    {
                        "id": number,
                        "image_id": own(image),
                        "category_id": own(category),
                        "bbox": [*where[:3], 0.0] if flat else where,
                        "area": 0.0 if flat else where[2] * where[3] * rng.choice([1.0, 0.7]),
                        **({"iscrowd": 1} if rng.random() < 0.1 else {}),
                        **({"ignore": int(rng.integers(0, 2))} if rng.random() < 0.2 else {}),
                    }
                )
                for _ in range(rng.integers(0, 4)):
                    near = (np.array(where) + rng.integers(-3, 4, 4)).tolist()
                    near[2:] = np.abs(near[2:]).tolist()
                    of = category if rng.random() < 0.8 else rng.integers(1, categories + 1)
                    score = rng.integers(0, 12) / 10
                    results.append({"image_id": own(image), "category_id": own(of), "bbox": near, "score": score})
        count = 340 if image <= crowded else rng.integers(0, 9)
        for _ in range(count):
            of, where = own(rng.integers(1, categories + 1)), box()
            if rng.random() < 0.05:
                where[2] = 0.0
            score = rng.integers(0, 10) / 10
            results.append({"image_id": own(image), "category_id": of, "bbox": where, "score": score})
    order = rng.permutation(len(results)).tolist()
    results = [results[i] for i in order]
    for one in results:
        one["area"] = one["bbox"][2] * one["bbox"][3]
    document["annotations"] = [document["annotations"][i] for i in rng.permutation(number).tolist()]
    return document, results
