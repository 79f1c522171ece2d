"""Is the convention behind a quoted number found? Plants conventions and searches for them with `detmap.find_value`.

scripts/plant_conventions.py [--plants N] [--seed S] [--small]

The plants share nothing with the search. They are ways in which programs really differ, collected from their sources, and
most are carried out on the records themselves: detections are cut, capped, rounded and shifted, annotations dropped or
unflagged, images left out. Then the benchmark of the drawn program scores what is left. Up to two ways are drawn for each,
and each must move AP or AP50. Only their four leading decimals are told to the search, which sees the records as they were.

A plant counts as found where one of the first five candidates gives its number to twelve digits: what gives the very same
number cannot be told apart. Data: the COCO API's own example and VOC2007 where ../shared/data is, and generated sets.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
DATA = ROOT.parent / "shared" / "data"

#: The programs whose numbers are quoted.
PROGRAMS = [
    "coco", "voc2007", "voc2012", "ultralytics", "ultralytics-8.3", "torchmetrics", "supervision",
    "padilla", "cartucho", "mmeval-voc", "detectron2-voc",
]  # fmt: skip


class Records:
    """What is scored: COCO's two documents, and what the program is told besides."""

    def __init__(self, truth: dict[str, Any], found: list[dict[str, Any]]) -> None:
        self.truth, self.found = truth, found
        self.rules: dict[str, Any] = {}

    def value(self, program: str, metric: str) -> float:
        """Return the metric by the rules of a program."""
        import detmap
        from detmap.detection.protocols import PRESETS

        ground_truth = detmap.read_coco(self.truth)
        difficult = np.array([bool(one.get("difficult")) for one in self.truth["annotations"]], bool)
        difficult.setflags(write=False)
        ground_truth = dataclasses.replace(ground_truth, difficult=difficult)
        found = detmap.read_coco_results(self.found, ground_truth)
        protocol = dataclasses.replace(PRESETS[program], **self.rules)
        if metric == "AP50":
            protocol = dataclasses.replace(protocol, iou_thresholds=(0.5,))
        return float(next(iter(detmap.evaluate(ground_truth, found, protocol).values())))


# ------------------------------------------------------------------------------------- the ways in which programs differ


def cut(records: Records, rng: np.random.Generator) -> str:
    """Validators keep 0.001, detectors ship with 0.05, demos and plots with 0.25, 0.3 or 0.5."""
    least = float(rng.choice([0.01, 0.05, 0.1, 0.25, 0.3, 0.5]))
    records.found = [one for one in records.found if one["score"] >= least]
    return f"scores from {least:g}"


def cap_images(records: Records, rng: np.random.Generator) -> str:
    """Detectors keep the best 100 or 300 of an image, small ones 50 or 10."""
    most = int(rng.choice([10, 50, 100, 300]))
    kept, counts = set(), dict[Any, int]()
    for at in sorted(range(len(records.found)), key=lambda at: -records.found[at]["score"]):
        image = records.found[at]["image_id"]
        counts[image] = counts.get(image, 0) + 1
        if counts[image] <= most:
            kept.add(at)
    records.found = [one for at, one in enumerate(records.found) if at in kept]
    return f"the best {most} of an image"


def cap_classes(records: Records, rng: np.random.Generator) -> str:
    """COCO's AP is at 100 of a class and image; AR, and those who confuse them, at 1 and 10."""
    records.rules["max_dets"] = (int(rng.choice([1, 10])),)
    return f"max_dets {records.rules['max_dets'][0]}"


def drop_crowds(records: Records, rng: np.random.Generator) -> str:
    """Converters to other formats leave crowds out."""
    records.truth["annotations"] = [one for one in records.truth["annotations"] if not one.get("iscrowd")]
    return "crowds left out"


def count_flagged(records: Records, rng: np.random.Generator) -> str:
    """Programs that know neither crowds nor difficult objects count them as any other."""
    for one in records.truth["annotations"]:
        one["iscrowd"] = one["difficult"] = 0
    return "crowds and difficult objects counted"


def decimals_of_scores(records: Records, rng: np.random.Generator) -> str:
    """Results are written with two or three decimals."""
    digits = int(rng.choice([2, 3]))
    records.found = [{**one, "score": round(one["score"], digits)} for one in records.found]
    return f"scores with {digits} decimals"


def whole_pixels(records: Records, rng: np.random.Generator) -> str:
    """Boxes are drawn, and stored, in whole pixels: corners, or one decimal of them."""
    digits = int(rng.choice([0, 1]))
    for one in records.found:
        x, y, w, h = one["bbox"]
        near, far = [round(x, digits), round(y, digits)], [round(x + w, digits), round(y + h, digits)]
        one["bbox"] = [*near, far[0] - near[0], far[1] - near[1]]
    return f"corners of boxes with {digits} decimals"


def shift(records: Records, rng: np.random.Generator) -> str:
    """Pixels counted from 1 by one program, and from 0 by the other."""
    by = float(rng.choice([-1, 1]))
    for one in records.found:
        x, y, w, h = one["bbox"]
        near, far = [x + by, y + by], [x + w + by, y + h + by]
        one["bbox"] = [*near, far[0] - near[0], far[1] - near[1]]
    return f"boxes moved by {by:+g}"


def one_class(records: Records, rng: np.random.Generator) -> str:
    """Proposals, and class-agnostic detectors."""
    records.rules["use_categories"] = False
    return "one class of all"


def seen_images(records: Records, rng: np.random.Generator) -> str:
    """A loop over the files of results never opens an image without one."""
    seen = {one["image_id"] for one in records.found}
    records.truth["annotations"] = [one for one in records.truth["annotations"] if one["image_id"] in seen]
    return "only images with detections"


def pixels(records: Records, rng: np.random.Generator) -> str:
    """The "+ 1" of the devkit in a program that has none, or its lack."""
    records.rules["inclusive_pixels"] = bool(rng.integers(2))
    return f"inclusive pixels {records.rules['inclusive_pixels']}"


def overlap(records: Records, rng: np.random.Generator) -> str:
    """The threshold of a paper's table; KITTI's cars have 0.7, old detectors of pedestrians 0.5 or 0.4."""
    records.rules["iou_thresholds"] = (float(rng.choice([0.4, 0.5, 0.7, 0.75])),)
    return f"IoU {records.rules['iou_thresholds'][0]:g}"


def curve(records: Records, rng: np.random.Generator) -> str:
    """Whether AP is the area under the envelope, read at 11 recalls, or the sum at the hits."""
    rule = str(rng.choice(["all-point", "11-point", "step"]))
    records.rules |= {"interpolation": rule, "epsilon": 0.0}
    return f"{rule} AP"


def matching(records: Records, rng: np.random.Generator) -> str:
    """Does a detection look at its best object alone (the devkit), or at the best that is still free (COCO)?"""
    records.rules["matching"] = str(rng.choice(["best", "best-free"]))
    return f"matching {records.rules['matching']}"


#: Those of files first, and those of programs after them.
WAYS = [
    drop_crowds, count_flagged, decimals_of_scores, shift, whole_pixels, cut, cap_images, cap_classes, one_class,
    seen_images, pixels, overlap, curve, matching,
]  # fmt: skip

# ------------------------------------------------------------------------------------------------------------- the data


def generated(rng: np.random.Generator, images: int) -> Records:
    """Objects, some of them crowds or difficult; detections near them with an error of their own, and stray ones."""
    classes, annotations, found = int(rng.integers(2, 7)), [], []
    quality = rng.uniform(0.05, 0.14)
    for image in range(1, images + 1):
        boxes = []
        for _ in range(rng.poisson(4)):
            w, h = np.exp(rng.uniform(2.2, 5.2, 2)).tolist()
            box = [round(float(v), 2) for v in (rng.uniform(0, 500), rng.uniform(0, 380), w, h)]
            crowd, difficult = int(rng.random() < 0.06), int(rng.random() < 0.1)
            kind = int(rng.integers(1, classes + 1))
            annotations.append(
                {"id": len(annotations) + 1, "image_id": image, "category_id": kind, "bbox": box}
                | {"area": box[2] * box[3] * 0.7, "iscrowd": crowd, "difficult": difficult}
            )
            boxes.append((kind, box))
        if rng.random() < 0.05:
            continue
        for kind, (x, y, w, h) in boxes:
            for again in range(1 + int(rng.random() < 0.4)):
                if rng.random() < 0.12:
                    continue
                error = rng.normal(0, quality * (1 + again), 4)
                box = [x + error[0] * w, y + error[1] * h, w * np.exp(error[2]), h * np.exp(error[3])]
                of = kind if rng.random() < 0.9 else int(rng.integers(1, classes + 1))
                found.append((image, of, box, float(rng.beta(4, 2) * (1 - 0.3 * again))))
        for _ in range(rng.poisson(6)):
            box = [rng.uniform(0, 500), rng.uniform(0, 380), *np.exp(rng.uniform(2, 5, 2))]
            found.append((image, int(rng.integers(1, classes + 1)), box, float(rng.beta(1, 3))))
    records = [
        {"image_id": i, "category_id": c, "bbox": [round(float(v), 3) for v in box], "score": round(score, 5)}
        for i, c, box, score in found
    ]
    listed = [{"id": i, "width": 640, "height": 480} for i in range(1, images + 1)]
    named = [{"id": c, "name": f"class {c}"} for c in range(1, classes + 1)]
    return Records({"images": listed, "categories": named, "annotations": annotations}, records)


def example() -> Records | None:
    """The COCO API's own example: 100 images of val2014."""
    paths = [DATA / "coco" / f"instances_val2014_{name}.json" for name in ("100", "fakebbox100_results")]
    if not all(path.exists() for path in paths):
        return None
    truth, found = (json.loads(path.read_text()) for path in paths)
    for one in truth["annotations"]:
        one.pop("segmentation", None)
    return Records(truth, found)


def voc(rng: np.random.Generator, images: int) -> Records | None:
    """Some images of VOC2007's test set, and what a real detector found on them."""
    import tarfile

    paths = DATA / "voc2007" / "pascal_test2007.json", DATA / "voc2007" / "detections_a.tar.gz"
    if not all(path.exists() for path in paths):
        return None
    truth, found = json.loads(paths[0].read_text()), []
    chosen = set(rng.choice(sorted(one["id"] for one in truth["images"]), images, replace=False).tolist())
    truth = {**truth, "images": [one for one in truth["images"] if one["id"] in chosen]}
    truth["annotations"] = [one for one in truth["annotations"] if one["image_id"] in chosen]
    numbers = {one["name"]: one["id"] for one in truth["categories"]}
    with tarfile.open(paths[1]) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name.endswith(".txt") else None
            kind = numbers.get(Path(member.name).stem.rpartition("_")[2])
            if file is None or kind is None:
                continue
            for line in file.read().decode().splitlines():
                image, score, *corners = line.split()
                if int(image) in chosen:
                    x1, y1, x2, y2 = map(float, corners)
                    box = [x1, y1, x2 - x1 + 1, y2 - y1 + 1]
                    found.append({"image_id": int(image), "category_id": kind, "bbox": box, "score": float(score)})
    return Records(truth, found)


# ----------------------------------------------------------------------------------------------------------- the planting


METRICS = ("AP", "AP50")


def plant(records: Records, rng: np.random.Generator) -> tuple[str, list[float], list[str]] | None:
    """Return a program, its numbers with up to two ways carried out, and these; None where one moves nothing."""
    program = str(rng.choice(PROGRAMS))
    changed, said = copy.deepcopy(records), []
    before = [changed.value(program, metric) for metric in METRICS]
    # What was done when the file was written comes first, and what the program does with it then.
    for at in sorted(rng.choice(len(WAYS), int(rng.integers(0, 3)), replace=False).tolist()):
        said.append(WAYS[at](changed, rng))
        if not changed.found:
            return None
        after = [changed.value(program, metric) for metric in METRICS]
        if after == before or not min(after) > 0:
            return None
        before = after
    return program, before, said


def find(records: Records, values: list[float]) -> tuple[bool, Any]:
    """Search for numbers told in four decimals; return whether they are among the first five, and the search."""
    import detmap

    ground_truth = detmap.read_coco(records.truth)
    difficult = np.array([bool(one.get("difficult")) for one in records.truth["annotations"]], bool)
    difficult.setflags(write=False)
    ground_truth = dataclasses.replace(ground_truth, difficult=difficult)
    found = detmap.read_coco_results(records.found, ground_truth)
    quoted = {metric: f"{value:.4f}" for metric, value in zip(METRICS, values, strict=True)}
    made = detmap.find_value(ground_truth, found, quoted, most=5)
    offered = [np.array(list(one.values.values())) for one in made.candidates]
    return any(np.abs(one - values).max() < 1e-12 for one in offered), made


def planted(count: int, seed: int, images: int = 60) -> list[tuple[bool, str]]:
    """Plant so many conventions and search for each; return whether each was found, and a line about it."""
    rng, done = np.random.default_rng(seed), list[tuple[bool, str]]()
    real = [one for one in (example(), voc(rng, images * 2)) if one is not None]
    while len(done) < count:
        data = real[int(rng.integers(len(real)))] if real and rng.random() < 0.5 else generated(rng, images)
        made = plant(data, rng)
        if made is None:
            continue
        program, values, said = made
        start = time.perf_counter()
        good, search = find(data, values)
        first = ", ".join(one.name for one in search.candidates[:5])
        took = time.perf_counter() - start
        line = f"AP {values[0]:.4f}, AP50 {values[1]:.4f} {program}: {'; '.join(said) or 'as it is'} ({took:.0f} s)"
        done.append((good, line if good else f"{line}; offered: {first or 'nothing'}"))
        print(f"{len(done):4d} {'found' if good else 'NOT FOUND'} {done[-1][1]}", file=sys.stderr, flush=True)
    return done


def main() -> int:
    """Plant, search and count."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--plants", type=int, default=100, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--small", action="store_true", help="small data sets")
    options = parser.parse_args()
    done = planted(options.plants, options.seed, 20 if options.small else 60)
    good = sum(found for found, _ in done)
    print(f"{good} of {len(done)} planted conventions are among the first five candidates")
    return 0 if good >= 0.95 * len(done) else 1


if __name__ == "__main__":
    sys.exit(main())
