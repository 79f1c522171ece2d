"""Does `detmap explain --value` tell what it found from chance? Plants rules, draws numbers, and counts verdicts.

scripts/calibrate_explain.py [--sets N] [--each N] [--images N] [--seed S]

On every set of data three things are asked, `--each` times:

* a number drawn at random between those of the named protocols, four digits of AP: how many candidates does the search print
  as expected by chance, and how many are there? The means over all draws must agree;
* a rule that the search does not know, carried out on the records or on the values of classes (WAYS), AP and AP50 in four
  digits: is a candidate called found? At most 5% may be;
* one or two changes drawn from the vocabulary of the search, AP and AP50 in four digits, which must be two numbers: is the
  rule named first? 95% must be. Rules that give the very same numbers count as one.

Data: generated sets, and of real ones the COCO API's own example and images of VOC2007, where ../shared/data is.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from plant_conventions import PROGRAMS, Records, example, generated, voc  # noqa: E402

Rng = np.random.Generator

# ------------------------------------------------------------------------------------- rules that the search does not know


def widen(records: Records, rng: Rng) -> None:
    """Boxes are enlarged about their centres."""
    by = rng.uniform(1.02, 1.12)
    for one in records.found:
        x, y, w, h = one["bbox"]
        one["bbox"] = [x - w * (by - 1) / 2, y - h * (by - 1) / 2, w * by, h * by]


def clip(records: Records, rng: Rng) -> None:
    """Boxes are clipped to a smaller canvas."""
    width, height = rng.uniform(300, 560), rng.uniform(240, 420)
    for one in records.found:
        x, y, w, h = one["bbox"]
        right, low = min(x + w, width), min(y + h, height)
        x, y = min(x, width - 1), min(y, height - 1)
        one["bbox"] = [x, y, max(right - x, 1.0), max(low - y, 1.0)]


def stride(records: Records, rng: Rng) -> None:
    """Corners lie on a grid of some pixels."""
    step = float(rng.choice([2, 4, 8]))
    for one in records.found:
        x, y, w, h = one["bbox"]
        near = [round(x / step) * step, round(y / step) * step]
        far = [round((x + w) / step) * step, round((y + h) / step) * step]
        one["bbox"] = [*near, far[0] - near[0], far[1] - near[1]]


def forget_objects(records: Records, rng: Rng) -> None:
    """Some annotations are missing."""
    rows = records.truth["annotations"]
    kept = rng.random(len(rows)) > rng.uniform(0.01, 0.08)
    records.truth["annotations"] = [one for one, stays in zip(rows, kept, strict=True) if stays]


def some_images(records: Records, rng: Rng) -> None:
    """Only a part of the images was scored."""
    kept = {one["id"] for one in records.truth["images"] if rng.random() < 0.85}
    records.truth["annotations"] = [one for one in records.truth["annotations"] if one["image_id"] in kept]
    records.found = [one for one in records.found if one["image_id"] in kept]


def decay(records: Records, rng: Rng) -> None:
    """Scores are multiplied by a power of the box's size."""
    power = rng.uniform(0.03, 0.3)
    for one in records.found:
        one["score"] *= min(1.0, (one["bbox"][2] * one["bbox"][3] / 1e5)) ** power


def steps(records: Records, rng: Rng) -> None:
    """Scores are kept in a byte, or less."""
    levels = int(rng.choice([7, 15, 20]))
    for one in records.found:
        one["score"] = round(one["score"] * levels) / levels


def confuse(records: Records, rng: Rng) -> None:
    """Two classes are counted as one."""
    first, second = rng.choice([one["id"] for one in records.truth["categories"]], 2, replace=False).tolist()
    for one in (*records.truth["annotations"], *records.found):
        if one["category_id"] == second:
            one["category_id"] = first


def border(records: Records, rng: Rng) -> None:
    """Detections that touch the border are dropped."""
    by = rng.uniform(2, 25)
    records.found = [one for one in records.found if min(one["bbox"][:2]) > by]


def tall(records: Records, rng: Rng) -> None:
    """Objects and detections below a height are left out, as pedestrians are."""
    least = rng.uniform(12, 40)
    records.truth["annotations"] = [one for one in records.truth["annotations"] if one["bbox"][3] >= least]
    records.found = [one for one in records.found if one["bbox"][3] >= least]


def thresholds(records: Records, rng: Rng) -> None:
    """The mean over other overlaps, of which AP50 has the least that are not below 0.5."""
    stop = float(rng.choice([0.7, 0.8, 0.9]))
    records.rules["iou_thresholds"] = tuple(np.arange(0.5, stop + 1e-9, 0.05).round(2).tolist())


def recalls(records: Records, rng: Rng) -> None:
    """Precision at another number of recalls."""
    count = int(rng.choice([5, 21, 51]))
    records.rules |= {"interpolation": "grid", "recall_thresholds": tuple(np.linspace(0, 1, count).tolist())}


def near_classes(values: Any) -> float:
    """The median of the classes."""
    return float(np.nanmedian(values))


def root_of_classes(values: Any) -> float:
    """The geometric mean of the classes."""
    return float(np.exp(np.nanmean(np.log(np.maximum(values, 1e-3)))))


WAYS: list[Callable[[Records, Rng], None]] = [
    widen, clip, stride, forget_objects, some_images, decay, steps, confuse, border, tall, thresholds, recalls,
]  # fmt: skip


def tables(records: Records) -> tuple[Any, Any]:
    """Both tables, with the flags of difficult objects."""
    import detmap

    truth = detmap.read_coco(records.truth)
    difficult = np.array([bool(one.get("difficult")) for one in records.truth["annotations"]], bool)
    difficult.setflags(write=False)
    truth = dataclasses.replace(truth, difficult=difficult)
    return truth, detmap.read_coco_results(records.found, truth)


def numbers(records: Records, program: str, mean: Callable[[Any], float] | None) -> list[float]:
    """AP and AP50 by the rules of a program."""
    from detmap.detection.protocols import PRESETS
    from detmap.explanations.replay import Replay, trimmed

    made = []
    for metric in ("AP", "AP50"):
        rules = {name: value for name, value in records.rules.items() if metric == "AP" or name != "iou_thresholds"}
        value = Replay(*tables(records), metric).value(trimmed(dataclasses.replace(PRESETS[program], **rules), metric))
        made.append(value.value if mean is None else mean(value.classes))
    return made


def outside(records: Records, rng: Rng) -> tuple[str, list[float]] | None:
    """Return a rule that the search does not know, and its numbers; None where it moves none."""
    program = str(rng.choice(PROGRAMS))
    changed, mean = copy.deepcopy(records), None
    at = int(rng.integers(len(WAYS) + 2))
    if at < len(WAYS):
        WAYS[at](changed, rng)
    else:
        mean = (near_classes, root_of_classes)[at - len(WAYS)]
    name = WAYS[at].__name__ if mean is None else mean.__name__
    if not changed.found or not changed.truth["annotations"]:
        return None
    before, after = numbers(records, program, None), numbers(changed, program, mean)
    moved = any(f"{one:.4f}" != f"{two:.4f}" for one, two in zip(before, after, strict=True))
    return (f"{program}, {name}", after) if moved else None


def inside(looked: Any, rng: Rng) -> tuple[str, list[float]] | None:
    """Return one or two changes of the vocabulary, each of which moves a number; None where one does not."""
    labels, name = list(looked.grid), str(rng.choice(list(looked.bases)))
    chosen = rng.choice(len(labels), int(rng.integers(1, 3)), replace=False).tolist()
    changes = tuple((labels[at], int(rng.integers(len(looked.grid[labels[at]])))) for at in chosen)
    keys = [key for label, at in changes for key in looked.grid[label][at]]
    if len(set(keys)) < len(keys):
        return None
    seen = []
    for some in (changes[:at] + changes[at + 1 :] for at in range(len(changes))):
        seen.append([looked.value(name, some, at) for at in (0, 1)])
    seen.append([looked.value(name, (), at) for at in (0, 1)])
    made = [looked.value(name, changes, at) for at in (0, 1)]
    if made[0] == made[1]:  # one threshold: one number, however often it is told
        return None
    if not all(value > 0 for value in made) or any(
        all(f"{one:.4f}" == f"{two:.4f}" for one, two in zip(made, other, strict=True)) for other in seen
    ):
        return None
    return f"{name} with {' and '.join(looked.words(name, changes))}", made


def searcher(records: Records, metrics: list[str]) -> Any:
    """What `find_value` looks up values in: kept for all numbers of a set of data."""
    from detmap.explanations.search import Number, _Looked

    return _Looked(tables(records), [Number(metric, None) for metric in metrics], 1)


def search(looked: Any, values: list[float], digits: int = 4) -> Any:
    """Search for numbers of which some digits are told."""
    from detmap.explanations.quotes import interval, searched

    names = [one.metric for one in looked.numbers]
    quoted = {name: interval(f"{value:.{digits}f}") for name, value in zip(names, values, strict=True)}
    return searched(looked, list(looked.bases), quoted, 10)


def drawn(make: Callable[[], Any], turns: int = 200) -> Any:
    """Draw until a rule moves something."""
    return next((made for _ in range(turns) if (made := make()) is not None), None)


class Counts:
    """What became of each question."""

    def __init__(self) -> None:
        self.expected: list[float] = []
        self.matches: list[int] = []
        self.wrong: list[bool] = []
        self.first: list[bool] = []

    def ask(self, records: Records, rng: Rng, each: int) -> None:
        """Ask every question of a set of data."""
        one = searcher(records, ["AP"])
        ends = sorted(one.value(name, (), 0) for name in one.bases)
        for _ in range(each):
            made = search(one, [rng.uniform(ends[0], ends[-1])])
            self.expected.append(made.expected)
            self.matches.append(made.matches)
        self.report("random numbers", f"{np.mean(self.expected):.3f} expected, {np.mean(self.matches):.3f} found")
        both = searcher(records, ["AP", "AP50"])
        for _ in range(each):
            rule = drawn(lambda: outside(records, rng))
            if rule is not None:
                made = search(both, rule[1])
                same = made.candidates and np.abs(np.array(list(made.candidates[0].values.values())) - rule[1]).max()
                self.wrong.append(made.verdict == "found" and not same < 1e-9)
                if self.wrong[-1]:
                    one_ = made.candidates[0]
                    self.report("WRONG", f"{rule}: {one_.name} {one_.values} {one_.by_chance:.3g}")
        for _ in range(each):
            rule = drawn(lambda: inside(both, rng))
            if rule is not None:
                made = search(both, rule[1])
                values = [np.array(list(one_.values.values())) for one_ in made.candidates]
                places = [at for at, value in enumerate(values) if np.abs(value - rule[1]).max() < 1e-9]
                self.first.append(places[:1] == [0])
                if not self.first[-1]:
                    before = made.candidates[0].name if made.candidates else "nothing"
                    self.report("NOT FIRST", f"{rule}: at {places[:1]} of {made.matches}, first {before}")
        self.report(
            "all",
            f"wrongly found {sum(self.wrong)} of {len(self.wrong)}, named first {sum(self.first)} of {len(self.first)}",
        )

    @staticmethod
    def report(what: str, text: str) -> None:
        """Say how far it is."""
        print(f"{time.strftime('%H:%M:%S')} {what}: {text}", file=sys.stderr, flush=True)


def main() -> int:
    """Ask, and count."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--sets", type=int, default=12, metavar="N", help="sets of data; default: 12")
    parser.add_argument("--each", type=int, default=10, metavar="N", help="questions of each kind and set; default: 10")
    parser.add_argument("--images", type=int, default=40, metavar="N", help="images of generated sets; default: 40")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    options = parser.parse_args()
    rng, counts = np.random.default_rng(options.seed), Counts()
    real = [example, lambda: voc(rng, 60)]
    for at in range(options.sets):
        records = real[at // 3 % 2]() if at % 3 == 2 else None
        counts.ask(records or generated(rng, options.images), rng, options.each)
    expected, matches = float(np.mean(counts.expected)), float(np.mean(counts.matches))
    wrong, first = float(np.mean(counts.wrong)), float(np.mean(counts.first))
    print(f"{len(counts.expected)} random numbers: {expected:.2f} candidates expected by chance, {matches:.2f} there")
    print(f"{len(counts.wrong)} rules that the search does not know: {wrong:.1%} called found")
    print(f"{len(counts.first)} rules of one or two changes: {first:.1%} named first")
    return 0 if wrong <= 0.05 and first >= 0.95 and 0.7 <= expected / max(matches, 1e-9) <= 1.4 else 1


if __name__ == "__main__":
    sys.exit(main())
