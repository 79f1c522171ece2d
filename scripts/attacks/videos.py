"""Segments of time and tracks of masks, as they are or damaged: every AP comes out bit for bit, or it is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from attacks import Attack, Must
from attacks.documents import ANYTHING, damage
from attacks.texts import lay_out

THRESHOLDS = np.linspace(0.5, 0.95, 10)


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    """Files of ActivityNet, THUMOS14 or YouTube-VIS."""
    import detmap

    name = str(rng.choice(["activitynet", "thumos14", "ytvis"]))
    files, expected = {"activitynet": activitynet, "thumos14": thumos, "ytvis": ytvis}[name](rng)
    must, what = Must(value=expected), name
    if rng.random() < 0.6:
        chosen = str(rng.choice(list(files)))
        files[chosen] = damage(rng, files[chosen])
        must, what = Must(value=ANYTHING, refuse=True), f"{name}, damaged {chosen}"
    lay_out(folder / "videos", files)

    def run() -> Any:
        paths = [folder / "videos" / one for one in ("truth", "found.json" if name != "thumos14" else "found.txt")]
        kind = detmap.PRESETS[name].iou_type
        truth = detmap.read(
            paths[0] if name == "thumos14" else f"{paths[0]}.json", "ground_truth", format=name, iou_type=kind
        )
        found = detmap.read(paths[1], ground_truth=truth, format=name, iou_type=kind)
        result = detmap.evaluate(truth, found, name)
        values = np.nan_to_num(result.average_precision[:, :, 0, -1], nan=-1.0)
        if name == "ytvis":
            values = np.nan_to_num(result.precision[..., 0, -1], nan=-1.0)
        return values.ravel().tolist()

    return Attack(f"{what}: {files!r}"[:1500], run, must, sum(map(len, files.values())))


def activitynet(rng: np.random.Generator) -> tuple[dict[str, bytes], list[float]]:
    """A database and results, with ties, segments without length, and unlisted videos."""
    import naive_temporal
    import temporal_scenes

    while True:
        seed = int(rng.integers(2**32))
        truth, results = temporal_scenes.scene(
            seed, videos=int(rng.integers(1, 5)), unknown=True, whole=rng.random() < 0.5
        )
        if any(one["annotations"] for video, one in truth.items() if video[0] == "v"):
            break
    _, table = naive_temporal.activitynet(truth, results, THRESHOLDS)
    files = {
        "truth.json": {"version": "", "taxonomy": [], "database": truth},
        "found.json": {"version": "", "results": results},
    }
    return {name: json.dumps(made).encode() for name, made in files.items()}, table.ravel().tolist()


def thumos(rng: np.random.Generator) -> tuple[dict[str, bytes], list[float]]:
    """Annotations with ambiguous segments, and detections without ties."""
    import naive_temporal

    objects, ambiguous, found = [("v0", 1.0, 2.0, 7), ("v0", 1.0, 2.0, 26)], [], []
    scores = iter(rng.permutation(1000) / 1000)
    for video in range(int(rng.integers(1, 5))):
        for label in rng.choice([0, 7, 26], int(rng.integers(1, 9))).tolist():
            start, length = int(rng.integers(0, 30)), int(rng.integers(1, 9))
            (objects if label else ambiguous).append((f"v{video}", float(start), float(start + length), label))
            for _ in range(int(rng.integers(0, 3))):
                ends = start + int(rng.integers(-1, 1)), start + length + int(rng.integers(0, 2))
                found.append((f"v{video}", *map(float, ends), label or 7, float(next(scores))))
    end = str(rng.choice(["\n", "\r\n", " \n", "\n\n"]))
    files = {
        "truth/detclasslist.txt": "7 A\n26 B\n",
        "found.txt": "".join(f"{' '.join(map(str, one))}{end}" for one in found),
    }
    for name, label in (("A", 7), ("B", 26), ("Ambiguous", 0)):
        rows = [one for one in (*objects, *ambiguous) if one[3] == label]
        files[f"truth/{name}_test.txt"] = "".join(f"{one[0]}  {one[1]} {one[2]}{end}" for one in rows)
    table = [naive_temporal.thumos(objects, ambiguous, found, (7, 26), tenths / 10) for tenths in range(1, 8)]
    return {name: text.encode() for name, text in files.items()}, np.array(table).ravel().tolist()


def ytvis(rng: np.random.Generator) -> tuple[dict[str, bytes], list[float]]:
    """Tracks with absent frames, empty and unequal masks, short lists, polygons and crowds."""
    import naive_tracks
    import track_scenes

    document, results = track_scenes.scene(int(rng.integers(2**32)), videos=int(rng.integers(1, 4)), odd=True)
    expected = naive_tracks.evaluate(document, results)["precision"][..., 0, -1]
    files = {"truth.json": json.dumps(document).encode(), "found.json": json.dumps(results).encode()}
    return files, expected.ravel().tolist()
