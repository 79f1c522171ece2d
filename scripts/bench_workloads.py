"""The workloads of bench.py and bench_commits.py: made with fixed seeds, and written as every program can load them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np


def write_case(folder: Path, arrays: dict[str, np.ndarray]) -> int:
    """Write a workload as every program can load it; return the number of detections."""
    from large_workloads import to_coco

    none = {name: column[:0] for name, column in arrays.items() if name.startswith("dt_")}
    folder.mkdir()
    (folder / "ground_truth.json").write_text(json.dumps(to_coco({**arrays, **none})[0]))
    columns = ("dt_image_ids", "dt_boxes", "dt_scores", "dt_category_ids")
    np.save(folder / "detections.npy", np.column_stack([arrays[name] for name in columns]).astype(np.float64))
    return len(arrays["dt_scores"])


def write_files(folder: Path, images: int, quick: bool) -> tuple[Path, str]:
    """Write a workload as two files of JSON; return their folder and what they are."""
    from large_workloads import detector_like, to_coco

    dataset, results = to_coco(detector_like(images // (50 if quick else 1), 100, 80, seed=1))
    folder.mkdir()
    (folder / "ground_truth.json").write_text(json.dumps(dataset))
    (folder / "detections.json").write_text(json.dumps(results))
    size = (folder / "detections.json").stat().st_size
    return folder, f"{len(results):,} detections, {size / 1e6:.0f} MB"


def detector(images: int, detections: int, categories: int, quick: bool) -> dict[str, np.ndarray]:
    from large_workloads import detector_like

    return detector_like(images // (50 if quick else 1), detections, categories, seed=1)


def dense(quick: bool) -> dict[str, np.ndarray]:
    from large_workloads import dense_scene

    return dense_scene(2, 300, 500, seed=1, canvas=1300.0) if quick else dense_scene(40, 3000, 5000, seed=1)


def write_batch(folder: Path, arrays: dict[str, np.ndarray], files: int) -> list[str]:
    """Write a workload and so many files of detections, each noisier than the one before; return their paths."""
    from large_workloads import to_coco

    write_case(folder, arrays)
    rng = np.random.default_rng(2)
    paths = []
    for i in range(files):
        scores = np.round(
            np.clip(arrays["dt_scores"] + rng.normal(0, 0.2 * i / files, arrays["dt_scores"].size), 0, 1), 5
        )
        paths.append(str(folder / f"{i}.json"))
        noisy = {**arrays, "dt_scores": scores, "dt_boxes": np.round(arrays["dt_boxes"], 2)}
        Path(paths[-1]).write_text(json.dumps(to_coco(noisy)[1]))
    return paths
