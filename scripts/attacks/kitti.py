"""KITTI's folders of invented scenes, as they are or damaged: AP comes out bit for bit, or it is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from attacks import Attack, Must
from attacks.documents import ANYTHING, damage
from attacks.texts import lay_out

CLASSES, LEVELS = ("car", "pedestrian", "cyclist"), ("easy", "moderate", "hard")


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    """Scenes with ties, regions and sizes on the limits; half of them with some bytes of a file changed."""
    import kitti_scenes
    import naive_kitti as twin

    import detmap

    files: dict[str, bytes] = {}
    for image in range(int(rng.integers(1, 7))):
        labels, found = kitti_scenes.scene(rng)
        for name, lines in (("label_2", labels), ("results/data", found)):
            end = str(rng.choice(["\n", "\r\n", " \n", "\n\n"]))
            files[f"{name}/{image:06d}.txt"] = "".join(f"{line}{end}" for line in lines).encode()
    protocol = str(rng.choice(["kitti", "kitti-r11"]))
    lay_out(folder / "kitti", files)
    names = sorted(name for name in files if name.startswith("results"))
    images = []
    for name in names:
        label = folder / "kitti" / name.replace("results/data", "label_2")
        images.append((twin.read(label), twin.read(folder / "kitti" / name, scored=True)))
    detected = {one.name for _, found in images for one in found}
    expected = []
    for one in CLASSES:
        for level in LEVELS:
            made = twin.evaluate(images, one, level) if one in detected else None
            expected.append(math.nan if made is None else twin.average(made[0], 11 if protocol.endswith("r11") else 40))
    must, what = Must(value=[value for value in expected if value == value]), protocol
    if not any(lines.strip() for name, lines in files.items() if name.startswith("label_2")) or not detected:
        must = Must(value=ANYTHING, refuse=True)  # no lines say what the files are
    if rng.random() < 0.5:
        name = str(rng.choice(list(files)))
        files[name] = damage(rng, files[name])
        must, what = Must(value=ANYTHING, refuse=True), f"{protocol}, damaged {name}"
        lay_out(folder / "damaged", files)
    root = folder / ("damaged" if "damaged" in what else "kitti")

    def run() -> Any:
        truth = detmap.read(root / "label_2", "ground_truth", format="kitti")
        found = detmap.read(root / "results", ground_truth=truth, format="kitti")
        result = detmap.evaluate(truth, found, protocol)
        made = [result[f"{one}_{level}"] for one in CLASSES for level in LEVELS]
        return [value for value in made if value == value]

    return Attack(f"{what}: {files!r}"[:1500], run, must, sum(map(len, files.values())))
