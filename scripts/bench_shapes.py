#!/usr/bin/env python
"""Masks, poses and boundaries from files to the numbers, detmap and its peers by turns, a process each.

The workloads, made with fixed seeds (the hash of each file is printed):

masks      5,000 images of 640 x 480, about 35,000 objects of 80 categories, 495,000 detections (99 an image, placed as
           `large_workloads.detector_like` does), 127 MB. A mask is a slightly wobbly outline of 24 to 40 points within its
           box. Ground truth is polygons, crowds are lists of run lengths; detections are compressed strings. vernier asks
           for boxes of detections, and reads a file that has them too.
keypoints  5,000 images, about 35,000 people, 135,000 poses (27 an image) of 17 points, coordinates with three decimals,
           55 MB.
boundary   100 images of 640 x 480, 10,000 detections; masks as above.
tracks     421 videos of 480 x 640, as many as YouTube-VIS 2021 has for validation, with 25 frames each; 3 objects and 54
           tracks of 40 classes in a video, 600,000 masks as above, which move; ground truth and results are compressed
           strings, 140 MB. The peer is YouTube-VIS' program, where the folder of its ytvos.py and ytvoseval.py is on
           PYTHONPATH, with pycocotools' mask functions.
rotated    450 images of 4,000 x 4,000, 28,000 rotated boxes of 15 classes, 100,000 detections (222 an image), in DOTA's
           files, 8 MB. Peers are DOTA's development kit, where its folder with the compiled polyiou is on PYTHONPATH, and
           detmap with shapely's vectorised intersection of the same candidates. "AP" is mAP of the protocol dota.

    scripts/bench_shapes.py                      all; or: scripts/bench_shapes.py masks keypoints
    scripts/bench_shapes.py --quick              small inputs: does it run
    scripts/bench_shapes.py --repeats 7          measurements of each program
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [os.environ.get("DETMAP_TREE", str(ROOT)), str(ROOT / "tests"), str(ROOT / "scripts")]

HEIGHT, WIDTH = 480, 640
KINDS = {"masks": "segm", "keypoints": "keypoints", "boundary": "boundary", "rotated": "rotated", "tracks": "tracks"}
KIT, VIDEOS = "dota_evaluation_task1", "ytvoseval"
PEERS = {
    "masks": ("hotcoco", "vernier"),
    "keypoints": ("hotcoco", "vernier"),
    "boundary": ("vernier",),
    "rotated": (KIT, "shapely"),
    "tracks": (VIDEOS,),
}

# ------------------------------------------------------------------------------------------------------------ workloads


def outlines(boxes: np.ndarray, seed: int) -> list[list[float]]:
    """A polygon within each box."""
    rng = np.random.default_rng(seed)
    made = []
    for x, y, w, h in boxes.tolist():
        count = int(rng.integers(24, 41))
        angle = np.arange(count) * (2 * np.pi / count)
        reach = np.clip(0.85 + rng.normal(0, 0.01, count), 0.5, 1) / 2
        points = np.stack([x + w * (0.5 + reach * np.cos(angle)), y + h * (0.5 + reach * np.sin(angle))], axis=1)
        made.append(np.round(np.clip(points, 0, [WIDTH, HEIGHT]), 2).reshape(-1).tolist())
    return made


def write_masks(folder: Path, images: int, per_image: int) -> None:
    """Write ground truth and detections with masks."""
    from large_workloads import detector_like

    from detmap.masks import Masks

    arrays = detector_like(images, per_image, 80, seed=1)
    annotations = []
    polygons = outlines(arrays["gt_boxes"], 2)
    drawn = Masks.from_polygons([[p] for p in polygons], (HEIGHT, WIDTH))
    areas, boxes, runs = drawn.areas().tolist(), drawn.boxes().tolist(), drawn.arrays()
    for i, polygon in enumerate(polygons):
        crowd = int(arrays["gt_crowd"][i])
        first, stop = runs["spans"][i, :2]
        lengths = np.diff(runs["ends"][first:stop].astype(np.int64), prepend=0).tolist()
        annotations.append(
            {
                "segmentation": {"counts": lengths, "size": [HEIGHT, WIDTH]} if crowd else [polygon],
                "area": float(areas[i]),
                "iscrowd": crowd,
                "image_id": int(arrays["gt_image_ids"][i]),
                "bbox": boxes[i],
                "category_id": int(arrays["gt_category_ids"][i]),
                "id": i + 1,
            }
        )
    drawn = Masks.from_polygons([[p] for p in outlines(arrays["dt_boxes"], 3)], (HEIGHT, WIDTH))
    results = [
        {"image_id": image, "category_id": category, "segmentation": mask, "score": score}
        for image, category, mask, score in zip(
            arrays["dt_image_ids"].tolist(),
            arrays["dt_category_ids"].tolist(),
            drawn.to_rle(),
            arrays["dt_scores"].tolist(),
            strict=True,
        )
    ]
    write(folder, arrays, annotations, results, drawn.boxes())


def write_poses(folder: Path, images: int, per_image: int) -> None:
    """Write ground truth and detections with poses."""
    from large_workloads import detector_like

    arrays = detector_like(images, per_image, 1, seed=1)
    rng = np.random.default_rng(5)

    def poses(boxes: np.ndarray) -> np.ndarray:
        inside = rng.beta(2, 2, (len(boxes), 17, 2)) if len(boxes) else np.empty((0, 17, 2))
        return np.round(boxes[:, None, :2] + inside * boxes[:, None, 2:], 3)

    truth = poses(arrays["gt_boxes"])
    labels = rng.choice([0, 1, 2], truth.shape[:2], p=[0.3, 0.1, 0.6])
    annotations = [
        {
            "num_keypoints": int((v > 0).sum()),
            "area": area,
            "iscrowd": crowd,
            "keypoints": np.column_stack([np.round(points), v]).astype(int).ravel().tolist(),
            "image_id": image,
            "bbox": box,
            "category_id": 1,
            "id": i + 1,
        }
        for i, (points, v, area, crowd, image, box) in enumerate(
            zip(
                truth,
                labels,
                arrays["gt_areas"].tolist(),
                arrays["gt_crowd"].tolist(),
                arrays["gt_image_ids"].tolist(),
                arrays["gt_boxes"].tolist(),
                strict=True,
            )
        )
    ]
    # A detection near an object has the object's pose, moved a little; any other a pose of its own.
    own = poses(arrays["dt_boxes"])
    first = np.searchsorted(arrays["gt_image_ids"], arrays["dt_image_ids"])
    place = np.tile(np.arange(per_image), images)
    nearest = np.minimum(first + place, max(len(truth) - 1, 0))
    near = (arrays["gt_image_ids"][nearest] == arrays["dt_image_ids"])[:, None, None]
    moved = truth[nearest] + rng.normal(0, 3, own.shape).round(3)
    points = np.round(np.where(near, moved, own), 3)
    flat = np.concatenate([points, np.ones((*points.shape[:2], 1))], axis=2).reshape(len(points), -1)
    results = [
        {"image_id": image, "category_id": 1, "keypoints": numbers, "score": score}
        for image, numbers, score in zip(
            arrays["dt_image_ids"].tolist(),
            flat.tolist(),
            arrays["dt_scores"].tolist(),
            strict=True,
        )
    ]
    write(folder, arrays, annotations, results, arrays["dt_boxes"].round(2))


def write_tracks(folder: Path, videos: int, frames: int, objects: int, found: int) -> None:
    """Write YouTube-VIS' files: `objects` and `found` tracks in each video; most tracks are near an object."""
    from detmap.masks import Masks

    rng = np.random.default_rng(8)
    speed = rng.normal(0, 3, (videos, objects, 2))
    start = np.concatenate(
        [rng.uniform(40, [400, 260], (videos, objects, 2)), rng.uniform(40, 200, (videos, objects, 2))], 2
    )
    kinds = rng.integers(1, 41, (videos, objects))
    nearest = rng.integers(0, objects, (videos, found))
    rows = np.arange(videos)[:, None]
    near = rng.random((videos, found)) < 0.6
    own = np.concatenate([rng.uniform(40, [400, 260], (videos, found, 2)), rng.uniform(40, 200, (videos, found, 2))], 2)
    begin = np.where(near[..., None], start[rows, nearest] + rng.normal(0, 4, (videos, found, 4)), own)
    moves = np.where(near[..., None], speed[rows, nearest], rng.normal(0, 3, (videos, found, 2)))
    classes = np.where(near & (rng.random(near.shape) < 0.9), kinds[rows, nearest], rng.integers(1, 41, near.shape))
    scores = rng.random(near.shape).round(6)

    def tracks(first: np.ndarray, step: np.ndarray, seed: int) -> tuple[list[Any], list[Any]]:
        boxes = np.repeat(first.reshape(-1, 1, 4), frames, axis=1)
        boxes[..., :2] += step.reshape(-1, 1, 2) * np.arange(frames)[:, None]
        boxes[..., 2:] = np.maximum(boxes[..., 2:], 8)
        drawn = Masks.from_polygons([[p] for p in outlines(boxes.reshape(-1, 4), seed)], (HEIGHT, WIDTH))
        codes, areas = drawn.to_rle(), drawn.areas().tolist()
        cuts = range(0, len(codes), frames)
        return [codes[at : at + frames] for at in cuts], [areas[at : at + frames] for at in cuts]

    codes, areas = tracks(start, speed, 2)
    annotations = [
        {"id": i + 1, "video_id": i // objects + 1, "category_id": int(kinds.ravel()[i]), "iscrowd": 0}
        | {"segmentations": codes[i], "areas": areas[i], "bboxes": [None] * frames}
        for i in range(len(codes))
    ]
    codes, _ = tracks(begin, moves, 3)
    results = [
        {"video_id": i // found + 1, "category_id": int(classes.ravel()[i]), "segmentations": codes[i]}
        | {"score": float(scores.ravel()[i])}
        for i in range(len(codes))
    ]
    size = {"height": HEIGHT, "width": WIDTH, "length": frames}
    document = {
        "videos": [{"id": i + 1, **size, "file_names": [f"{i}/{k}.jpg" for k in range(frames)]} for i in range(videos)],
        "categories": [{"id": i + 1, "name": f"c{i}"} for i in range(40)],
        "annotations": annotations,
    }
    save(folder, {"ground_truth": document, "detections": results})


def write_rotated(folder: Path, images: int, per_image: int) -> None:
    """Write DOTA's files: boxes of a detector, larger and turned; a detection near an object lies nearly as it does."""
    from large_workloads import detector_like

    arrays = detector_like(images, per_image, 15, seed=1, objects_per_image=63.0)
    rng = np.random.default_rng(6)
    of_truth = rng.uniform(-np.pi / 2, np.pi / 2, len(arrays["gt_boxes"]))
    # `detector_like` sorts detections by score, so that the object of each is searched for.
    centres = [arrays[f"{side}_boxes"][:, :2] + arrays[f"{side}_boxes"][:, 2:] / 2 for side in ("gt", "dt")]
    of_found = rng.uniform(-np.pi / 2, np.pi / 2, len(arrays["dt_boxes"]))
    for image in arrays["image_ids"].tolist():
        there, here = arrays["gt_image_ids"] == image, np.flatnonzero(arrays["dt_image_ids"] == image)
        if there.any():
            apart = np.linalg.norm(centres[1][here, None] - centres[0][None, there], axis=2)
            near = apart.min(axis=1) < 10
            of_found[here[near]] = of_truth[there][apart.argmin(axis=1)[near]] + rng.normal(0, 0.05, near.sum())
    (folder / "labelTxt").mkdir(parents=True)
    (folder / "Task1").mkdir()
    names = [f"class-{i}" for i in range(15)]
    lines: dict[str, list[str]] = {f"labelTxt/P{i:04d}.txt": [] for i in arrays["image_ids"].tolist()}
    lines |= {f"Task1/Task1_{name}.txt": [] for name in names}
    for side, angles in (("gt", of_truth), ("dt", of_found)):
        quads = turned(arrays[f"{side}_boxes"] * [6, 8, 1.5, 1.5], angles)
        rows = zip(
            arrays[f"{side}_image_ids"].tolist(), (arrays[f"{side}_category_ids"] - 1).tolist(), quads, strict=True
        )
        for place, (image, category, quad) in enumerate(rows):
            corners = " ".join(f"{value:.1f}" for value in quad.tolist())
            if side == "gt":
                lines[f"labelTxt/P{image:04d}.txt"].append(f"{corners} {names[category]} {int(place % 20 == 0)}")
            else:
                score = arrays["dt_scores"][place]
                lines[f"Task1/Task1_{names[category]}.txt"].append(f"P{image:04d} {score:.9f} {corners}")
    for name, own in lines.items():
        (folder / name).write_text("".join(f"{line}\n" for line in own))
    (folder / "imageset.txt").write_text("".join(f"P{i:04d}\n" for i in arrays["image_ids"].tolist()))
    digest = hashlib.sha256("".join(line for own in lines.values() for line in own).encode()).hexdigest()[:16]
    print(f"  {len(of_truth):,} objects, {len(of_found):,} detections, sha256 {digest}…", file=sys.stderr)


def turned(boxes: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """The corners of boxes x, y, width, height that are turned, shape (n, 8)."""
    from detmap.shapes.rotated import Rotated

    five = np.concatenate([boxes[:, :2] + boxes[:, 2:] / 2, boxes[:, 2:], angles[:, None]], axis=1)
    return Rotated.from_angles(five).corners


def write(folder: Path, arrays: dict[str, Any], annotations: list[Any], results: list[Any], boxes: np.ndarray) -> None:
    """Write ground truth and detections, the latter with boxes too, and say what they are."""
    folder.mkdir(parents=True)
    categories = int(max(arrays["gt_category_ids"].max(), arrays["dt_category_ids"].max()))
    document = {
        "images": [{"id": int(i), "height": HEIGHT, "width": WIDTH} for i in arrays["image_ids"]],
        "categories": [{"id": i + 1, "name": f"c{i}"} for i in range(categories)],
        "annotations": annotations,
    }
    boxed = [one | {"bbox": box} for one, box in zip(results, boxes.tolist(), strict=True)]
    save(folder, {"ground_truth": document, "detections": results, "boxed_detections": boxed})


def save(folder: Path, files: dict[str, Any]) -> None:
    """Write files of JSON, and say what they are."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        data = json.dumps(content, separators=(",", ":")).encode()
        (folder / f"{name}.json").write_bytes(data)
        count = len(content["annotations"] if name == "ground_truth" else content)
        digest = hashlib.sha256(data).hexdigest()[:16]
        print(f"  {name}: {count:,} records, {len(data) / 1e6:.0f} MB, sha256 {digest}…", file=sys.stderr)


def title(folder: Path) -> str:
    """What a workload is, and how much: by the file of its detections."""
    if folder.name == "rotated":
        data = b"".join(path.read_bytes() for path in sorted((folder / "Task1").iterdir()))
        return f"{data.count(10):,} rotated boxes, {len(data) / 1e6:.0f} MB"
    data = (folder / "detections.json").read_bytes()
    count, nouns = (
        data.count(b"score"),
        {"masks": "masks", "keypoints": "poses", "boundary": "masks by their boundaries", "tracks": "tracks of masks"},
    )
    return f"{count:,} {nouns[folder.name]}, {len(data) / 1e6:.0f} MB"


# ------------------------------------------------------------------------------------------------------------- programs


def score(program: str, kind: str, folder: Path) -> float:
    """AP of the two files, by one program."""
    if kind == "rotated":
        return score_rotated(program, folder)
    if kind == "tracks":
        return score_tracks(program, folder)
    names = ("ground_truth", "boxed_detections" if program == "vernier" else "detections")
    truth, found = (folder / f"{name}.json" for name in names)
    iou_type = KINDS[kind]
    if program == "detmap":
        import detmap

        return detmap.evaluate(truth, found, iou_type=iou_type)["AP"]
    if program == "vernier":
        from vernier import instance

        shape = {"masks": instance.Segm, "keypoints": instance.Keypoints, "boundary": instance.Boundary}[kind]()
        evaluator = instance.Evaluator(iou=shape, parity_mode="strict")
        return float(evaluator.evaluate(truth.read_bytes(), found.read_bytes()).stats[0])
    if program == "hotcoco":
        from hotcoco import COCO, COCOeval
    else:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval
    both = COCO(str(truth))
    evaluation = COCOeval(both, both.loadRes(str(found)), iou_type)
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return float(evaluation.stats[0])


def score_tracks(program: str, folder: Path) -> float:
    """AP of YouTube-VIS' files, by one program."""
    files = [str(folder / f"{name}.json") for name in ("ground_truth", "detections")]
    if program == "detmap":
        import detmap

        return detmap.evaluate(*files, "ytvis")["AP"]
    import importlib.util
    from types import ModuleType

    # Its files are modules of a package beside pycocotools' own `mask`, and of a Python and numpy of 2019.
    package = ModuleType("youtube_vis")
    spec = importlib.util.find_spec(VIDEOS)
    assert spec is not None
    package.__path__ = [str(Path(str(spec.origin)).parent)]
    sys.modules["youtube_vis"] = package
    import pycocotools.mask

    sys.modules["youtube_vis.mask"] = package.mask = pycocotools.mask  # type: ignore[attr-defined]
    vars(np)["float"] = float
    linspace = np.linspace
    np.linspace = lambda start, stop, count, **options: linspace(start, stop, int(count), **options)  # type: ignore[assignment]
    from youtube_vis.ytvos import YTVOS
    from youtube_vis.ytvoseval import YTVOSeval

    truth = YTVOS(files[0])
    evaluation = YTVOSeval(truth, truth.loadRes(files[1]), "segm")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    np.linspace = linspace
    return float(evaluation.stats[0])


def score_rotated(program: str, folder: Path) -> float:
    """MAP of DOTA's files, by one program."""
    if program == KIT:
        from types import ModuleType

        sys.modules.setdefault("matplotlib.pyplot", ModuleType("pyplot"))
        sys.modules.setdefault("matplotlib", ModuleType("matplotlib"))
        from dota_evaluation_task1 import voc_eval

        names = sorted(path.stem.removeprefix("Task1_") for path in (folder / "Task1").iterdir())
        paths = (
            str(folder / "Task1" / "Task1_{}.txt"),
            str(folder / "labelTxt" / "{}.txt"),
            str(folder / "imageset.txt"),
        )
        return float(np.mean([voc_eval(*paths, name, 0.5, True)[2] for name in names]))
    from dataclasses import replace

    import detmap
    from detmap.shapes import KINDS as KNOWN

    protocol = detmap.PRESETS["dota"]
    if program == "shapely":
        if program not in KNOWN:
            detmap.register(replace(KNOWN["rotated"], name=program, stored="rotated", refine=shapely_overlaps))
        protocol = replace(protocol, iou_type=program)
    truth = detmap.read(folder / "labelTxt", "ground_truth", iou_type="rotated")
    return detmap.evaluate(truth, detmap.read(folder / "Task1", ground_truth=truth, iou_type="rotated"), protocol)[
        "mAP"
    ]


def shapely_overlaps(detections: Any, ground_truth: Any, pairs: Any, out: np.ndarray) -> None:
    """Write overlaps by shapely, all pairs at once."""
    import shapely

    sides = (detections, pairs.detections), (ground_truth, pairs.ground_truth)
    left, right = (shapely.polygons(column.corners.reshape(-1, 4, 2)[rows]) for column, rows in sides)
    shared = shapely.area(shapely.intersection(left, right))
    out[:] = shared / (shapely.area(left) + shapely.area(right) - shared)


def worker(program: str, kind: str, folder: str) -> None:
    """Score whenever a line comes in; answer with seconds and AP."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the peers print
    for _ in sys.stdin:
        start = time.perf_counter()
        value = score(program, kind, Path(folder))
        print(json.dumps([time.perf_counter() - start, value]), file=answers, flush=True)


LAUNCHER = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
print(os.wait4(process.pid, 0)[2].ru_maxrss * 1024)
"""


def peak(*command: str) -> int:
    """Peak bytes of a process. A small one starts it: Linux counts what a process was before."""
    launch = [sys.executable, "-c", LAUNCHER, sys.executable, *command]
    return int(subprocess.run(launch, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)


def measure(kind: str, folder: Path, repeats: int, peers: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """Seconds of warm processes; and memory of new ones, above one that has only imported numpy."""
    programs = ("detmap", *peers)
    processes = {
        program: subprocess.Popen(
            [sys.executable, __file__, "--worker", program, kind, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for program in programs
    }
    times: dict[str, list[float]] = {program: [] for program in programs}
    values: dict[str, float] = {}
    for turn in range(repeats + 1):
        for program, process in processes.items():
            process.stdin.write("\n")
            process.stdin.flush()
            seconds, values[program] = json.loads(process.stdout.readline())
            if turn:
                times[program].append(seconds)
    for process in processes.values():
        process.stdin.close()
        process.wait()
    base = statistics.median(peak(__file__, "--whole", "nothing", kind, str(folder)) for _ in range(3))
    out = {}
    for program in programs:
        peaks = [peak(__file__, "--whole", program, kind, str(folder)) for _ in range(3)]
        out[program] = {
            "seconds": statistics.median(times[program]),
            "least": min(times[program]),
            "memory": statistics.median(peaks) - base,
            "AP": values[program],
        }
    return out


def write_workload(kind: str, place: Path, quick: bool) -> None:
    """Write the files of a workload into a folder that is not there."""
    if kind == "rotated":
        write_rotated(place, 20 if quick else 450, 222)
    elif kind == "tracks":
        write_tracks(place, 8 if quick else 421, 25, 3, 54)
    elif kind == "keypoints":
        write_poses(place, 100 if quick else 5000, 27)
    else:
        images = {"masks": 5000, "boundary": 100}[kind]
        write_masks(place, 20 if quick else images, 99 if kind == "masks" else 100)


def rows(kind: str, folder: Path, quick: bool = False, repeats: int = 5) -> dict[str, dict[str, float]]:
    """Write a workload and measure it."""
    import importlib.util

    print(kind, file=sys.stderr)
    place = folder / kind
    if not place.exists():
        write_workload(kind, place, quick)
    peers = tuple(peer for peer in PEERS[kind] if importlib.util.find_spec(peer))
    return measure(kind, place, 2 if quick else repeats, peers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join(KINDS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="small inputs")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", help="keep the workloads there, or use those that are there")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--whole", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        worker(*arguments.worker)
        return
    if arguments.whole:
        program, kind, folder = arguments.whole
        if program != "nothing":
            score(program, kind, Path(folder))
        return
    if set(arguments.kinds) - set(KINDS):
        parser.error(f"kinds are {', '.join(KINDS)}")
    with tempfile.TemporaryDirectory() as temporary:
        for kind in arguments.kinds or KINDS:
            found = rows(kind, Path(arguments.folder or temporary), arguments.quick, arguments.repeats)
            ours = found["detmap"]
            for program, one in found.items():
                print(
                    f"{kind:10} {program:12} {one['seconds']:7.3f} s (least {one['least']:.3f}, "
                    f"{one['seconds'] / ours['seconds']:.1f}x)  "
                    f"memory {one['memory'] / 1e6:5.0f} MB ({one['memory'] / ours['memory']:.1f}x)  AP {one['AP']:.6f}"
                )
            if max(abs(one["AP"] - ours["AP"]) for one in found.values()) > 1e-9:
                sys.exit(f"{kind}: not all agree on AP")


if __name__ == "__main__":
    main()
