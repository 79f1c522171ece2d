"""Scenes of boxes in space as nuScenes' files have them, drawn from a seed."""

from __future__ import annotations

import math

import numpy as np

NAMES = ["car", "truck", "bus", "trailer", "construction_vehicle", "pedestrian", "motorcycle", "bicycle"]
NAMES += ["traffic_cone", "barrier"]
ATTRIBUTES = ["", "vehicle.moving", "vehicle.parked", "pedestrian.moving", "cycle.with_rider"]


def box(rng, name, centre, size=None, yaw=None, velocity=True):
    yaw = rng.uniform(-4, 4) if yaw is None else yaw
    size = rng.uniform(0.5, 4, 3) if size is None else size
    turn = np.array([math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)]) * rng.choice([1.0, 1.5])
    return {
        "translation": [round(float(value), 2) for value in centre],
        "size": [float(value) for value in size],
        "rotation": turn.tolist(),
        "velocity": [float(value) for value in rng.normal(size=2)] if velocity else [None, None],
        "detection_name": name,
        "attribute_name": str(rng.choice(ATTRIBUTES)),
    }


def scene(seed, samples=12, names=NAMES, far=45.0, racks=True, decimals=1):
    """Samples and results as documents; scores are rounded, so that ties occur, and samples are shuffled."""
    rng = np.random.default_rng(seed)
    truth, results = [], {}
    for number in range(samples):
        token = f"sample{number:02d}"
        ego = rng.uniform(-5e3, 5e3, 3)
        objects, found = [], []
        for _ in range(rng.integers(0, 14)):
            name = str(rng.choice(names))
            centre = ego + np.append(rng.uniform(-far, far, 2), 0)
            one = box(rng, name, centre, velocity=rng.random() < 0.8)
            objects.append({**one, "num_pts": int(rng.integers(0, 5))})
            for _ in range(rng.integers(0, 4)):
                near = centre + np.append(rng.normal(0, rng.choice([0.2, 1.0, 3.0]), 2), rng.normal())
                guess = box(
                    rng, name, near, np.array(one["size"]) * rng.uniform(0.7, 1.3, 3), velocity=rng.random() < 0.9
                )
                found.append({"sample_token": token, **guess, "detection_score": round(float(rng.random()), decimals)})
        for _ in range(rng.integers(0, 5)):
            guess = box(rng, str(rng.choice(names)), ego + np.append(rng.uniform(-far, far, 2), 0))
            found.append({"sample_token": token, **guess, "detection_score": round(float(rng.random()), decimals)})
        rack = {
            "translation": [*ego[:2].tolist(), float(ego[2])],
            "size": [15.0, 25.0, 9.0],
            "rotation": [0.9, 0.0, 0.0, 0.3],
        }
        own = [rack] if racks and rng.random() < 0.4 else []
        truth.append({"token": token, "ego": ego.tolist(), "boxes": objects, "racks": own})
        order = rng.permutation(len(found))
        results[token] = [found[at] for at in order]
    shuffled = [truth[at]["token"] for at in rng.permutation(samples)]
    return {"samples": truth}, {"meta": {}, "results": {token: results[token] for token in shuffled}}
