"""Random tracks of masks, in YouTube-VIS' JSON, and their pixels for a naive twin."""

from __future__ import annotations

import numpy as np
from naive_masks import runs_of, string_of

HEIGHT, WIDTH = 24, 32


def code(mask):
    """The compressed run-length code of a bitmap."""
    return {"size": list(mask.shape), "counts": string_of(runs_of(mask))}


def scene(seed, *, videos=6, odd=False):
    """Return ground truth and results: near, double and stray tracks, crowds, absent frames, tied scores.

    With `odd` some lists are short, some masks are empty or of another size, some areas are not those of the masks, and one
    annotation has polygons.
    """
    rng = np.random.default_rng(seed)
    document = {"videos": [], "annotations": [], "categories": [{"id": k, "name": f"class {k}"} for k in (1, 2, 5)]}
    results = []
    for video in rng.permutation(np.arange(1, videos + 1)).tolist():
        length = int(rng.integers(1, 5))
        names = [f"{video}/{frame}.jpg" for frame in range(length)]
        size = {"height": HEIGHT, "width": WIDTH, "length": length}
        document["videos"].append({"id": video, **size, "file_names": names})
        for _ in range(rng.integers(0, 4)):
            category, track = int(rng.choice([1, 2])), path(rng, length)
            areas = [None if one is None else int(one.sum()) for one in track]
            if odd and rng.random() < 0.2:
                areas = [area and area * 100 for area in areas]
            codes = [None if one is None else code(one) for one in track]
            if odd and rng.random() < 0.2:
                codes[0] = [[2.0, 2.0, 9.0, 2.0, 9.0, 9.0, 2.0, 9.0]]
            document["annotations"].append(
                {
                    "id": len(document["annotations"]) + 1,
                    "video_id": video,
                    "category_id": category,
                    "iscrowd": int(rng.random() < 0.15),
                    "segmentations": codes,
                    "areas": areas,
                    "bboxes": [None] * length,
                }
            )
            for _ in range(rng.integers(0, 4)):
                near = [one if one is None else np.roll(one, rng.integers(-2, 3), axis=1) for one in track]
                near = [path(rng, 1)[0] if rng.random() < 0.15 else one for one in near]
                of = category if rng.random() < 0.85 else int(rng.choice([1, 2, 5]))
                results.append(result(rng, video, of, near, odd))
        for _ in range(rng.integers(0, 3)):
            results.append(result(rng, video, int(rng.choice([1, 2, 5])), path(rng, length), odd))
    rng.shuffle(results)
    return document, results


def path(rng, length):
    """A rectangle on its way, absent in some frames."""
    x, y, w, h = (int(rng.integers(*span)) for span in ((0, 20), (0, 14), (3, 12), (3, 10)))
    track = []
    for frame in range(length):
        mask = np.zeros((HEIGHT, WIDTH), np.uint8)
        mask[y : y + h, x + frame : x + frame + w] = 1
        track.append(None if rng.random() < 0.2 else mask)
    return track


def result(rng, video, category, track, odd):
    """A result of a track."""
    codes = [None if one is None else code(one) for one in track]
    if odd and rng.random() < 0.15:
        codes = codes[: int(rng.integers(1, len(codes) + 1))]
    if odd and rng.random() < 0.15:
        codes[0] = code(np.zeros((HEIGHT, WIDTH), np.uint8))
    if odd and rng.random() < 0.15:
        codes[-1] = code(np.ones((HEIGHT - 4, WIDTH), np.uint8))
    return {"video_id": video, "category_id": category, "score": round(float(rng.random()), 1), "segmentations": codes}
