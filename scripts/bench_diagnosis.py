"""Diagnosis and report: seconds of each, and TIDE against tidecv. Part of bench.py; by itself it prints its rows.

scripts/bench_diagnosis.py [--quick]
scripts/bench_diagnosis.py --tidecv PYTHON   TIDE in turns with tidecv 1.0.1, which that Python has installed
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent

#: Intervals are timed apart, with so many draws of images.
REPLICATES = 1000


def write_case(folder: Path, images: int, per_image: int) -> None:
    """Write a workload of 80 categories as files that detmap and tidecv read."""
    from large_workloads import detector_like, to_coco

    dataset, results = to_coco(detector_like(images, per_image, 80, seed=3, objects_per_image=7.2))
    for image in dataset["images"]:
        image.update(file_name=f"{image['id']}.jpg", width=640, height=480)
    for one in dataset["annotations"]:
        x, y, w, h = one["bbox"]
        one["segmentation"] = [[x, y, x + w, y, x + w, y + h]]  # tidecv wants one, and looks at boxes
    (folder / "ground_truth.json").write_text(json.dumps(dataset))
    (folder / "detections.json").write_text(json.dumps(results))


def read_case(folder: Path) -> tuple[Any, Any]:
    import detmap

    truth = detmap.read(folder / "ground_truth.json", "ground_truth")
    return truth, detmap.read(folder / "detections.json", "detections", ground_truth=truth)


def rows(quick: bool) -> dict[str, float]:
    """Return the median seconds of each row, by its title: tables in memory, kernels compiled; the report from files."""
    import detmap
    from detmap.diagnostics import PARTS

    later = ("images", "suspects")
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_case(folder, 20 if quick else 5000, 100)
        truth, detections = read_case(folder)

        def parts(names: list[str], ready: bool, replicates: int = 0) -> Callable[[], Callable[[], None]]:
            def prepare() -> Callable[[], None]:
                made = detmap.diagnose(truth, detections, replicates=replicates)
                for one in PARTS if ready else ():
                    if one not in names:
                        made.part(one)
                return lambda: [made.part(one) for one in names]

            return prepare

        def report(replicates: int) -> Callable[[], Callable[[], None]]:
            command = [
                sys.executable,
                "-m",
                "detmap",
                "report",
                folder / "ground_truth.json",
                folder / "detections.json",
            ]
            command += ["--out", folder / "report.html", "--bootstrap", str(replicates), "--quiet"]
            return lambda: lambda: subprocess.run(command, cwd=ROOT, check=True)

        most = [one for one in PARTS if one not in later]
        size = f"{len(detections):,} detections"
        replicates = 200 if quick else REPLICATES
        tasks = {
            f"diagnose, {size}: every part but images and suspects": parts(most, False),
            "… images and suspects, after these": parts(list(later), True),
            f"… every part but these with intervals, {replicates:,} draws": parts(most, False, replicates),
            f"`detmap report`, {size}: a whole process, --bootstrap 0": report(0),
            f"… with intervals of AP, {replicates:,} draws": report(replicates),
        }
        for title, prepare in tasks.items():
            times = []
            for _ in range(2 if quick else 4):  # the first compiles
                task = prepare()
                start = time.perf_counter()
                task()
                times.append(time.perf_counter() - start)
            found[title] = statistics.median(times[1:])
    return found


# ------------------------------------------------------------------------------------------------------ TIDE and tidecv


def work(program: str, folder: Path) -> None:
    """Answer each line of standard input with the processor time of one TIDE, and the AP and the counts that it gives."""
    if program == "peer":
        from tidecv import TIDE, datasets

        files = datasets.COCO(str(folder / "ground_truth.json")), datasets.COCOResult(str(folder / "detections.json"))

        def run() -> list[float]:
            made = TIDE().evaluate(*files, mode=TIDE.BOX)
            gains = made.fix_main_errors()
            made.fix_special_errors()
            return [made.ap / 100, *(value / 100 for value in gains.values())]
    else:
        import detmap

        tables = read_case(folder)

        def run() -> list[float]:
            found = detmap.diagnose(*tables, threads=1).tide(rules=program)
            return [found["AP"], *(row["dAP"] for row in found.rows())]

    for _ in sys.stdin:
        start = time.process_time()
        values = run()
        print(json.dumps([time.process_time() - start, values]), flush=True)


def against_tidecv(python: str, turns: int = 5) -> None:
    """Print how much longer tidecv takes than TIDE under either rules: processes of their own, by turns, one thread each."""
    programs = {"peer": python, "tidecv": sys.executable, "detmap": sys.executable}  # the latter two are names of rules
    with tempfile.TemporaryDirectory() as name:
        write_case(Path(name), 1000, 100)
        workers = {
            program: subprocess.Popen(
                [command, __file__, "--work", program, name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for program, command in programs.items()
        }
        times: dict[str, list[float]] = {program: [] for program in workers}
        values: dict[str, list[float]] = {}
        for turn in range(turns + 1):  # the first compiles
            for program, worker in workers.items():
                worker.stdin.write("\n")
                worker.stdin.flush()
                seconds, values[program] = json.loads(worker.stdout.readline())
                if turn:
                    times[program].append(seconds)
        for worker in workers.values():
            worker.stdin.close()
            worker.wait()
    for program, seconds in times.items():
        ratio = [theirs / ours for theirs, ours in zip(times["peer"], seconds, strict=True)]
        told = f"{statistics.median(ratio):.1f} ({min(ratio):.1f} … {max(ratio):.1f})"
        title = "tidecv" if program == "peer" else f"detmap, rules {program}"
        print(f"{statistics.median(seconds):9.3f} s  {title:20} tidecv takes {told} times as long")
    apart = np.abs(np.subtract(values["peer"], values["tidecv"])).max()
    print(f"AP and gains agree within {apart:.1g}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        sys.path[:0] = [str(ROOT)]
        work(sys.argv[2], Path(sys.argv[3]))
    else:
        sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
        if sys.argv[1:2] == ["--tidecv"]:
            against_tidecv(sys.argv[2])
        else:
            for row, seconds in rows("--quick" in sys.argv[1:]).items():
                print(f"{seconds:9.2f} s  {row}")
