#!/usr/bin/env python3
"""Score the fixture with the detmap that is installed: scripts/test-wheel calls this in a clean environment.

The current folder holds README.md and the fixtures. ``--page`` runs what README.md shows instead, and those of its commands
that are on files of users, on files made of the fixtures. The page takes the extras `report` and `yolo`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path = [path for path in sys.path if Path(path or ".").resolve() != ROOT / "scripts"]

import detmap  # noqa: E402 - the installed one

COMMAND = Path(sysconfig.get_path("scripts"), "detmap")


def check_place() -> None:
    """The package comes from the environment, and is whole."""
    folder = Path(detmap.__file__).resolve().parent
    assert folder.is_relative_to(Path(sys.prefix).resolve()), f"detmap was imported from {folder}"
    assert (folder / "py.typed").is_file()
    assert any((folder / "reports" / "templates").iterdir())


def run(*arguments: str) -> str:
    """Run the command as a process, and return what it prints."""
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, (
        f"detmap {' '.join(arguments)} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


def _clock() -> float:
    """Seconds of processor time of all processes that have ended, or of the clock where the system counts none."""
    times = os.times()
    if os.name != "posix":
        return time.perf_counter()
    return times.children_user + times.children_system


def score_fixture() -> None:
    """Score the fixture, and say what the first run after the installation and later ones take, and what is installed."""
    arguments = ("eval", "fixtures/coco/ground_truth.json", "fixtures/coco/detections.json")
    times = []
    for _ in range(6):
        begin = _clock()
        out = run(*arguments)
        times.append(_clock() - begin)
    assert "0.4181" in out
    later = sorted(times[1:])[2]
    print(
        f"first run after installation {times[0]:.2f} s of processor time, later ones {later:.2f} s (median), "
        f"{times[0] / later:.2f} times"
    )
    print(run("--version", "--verbose"), end="")


def run_page() -> None:
    """Run the blocks of README, and compare what they print with what it shows."""
    sys.path.append(str(ROOT / "tests"))
    import executed

    print(f"{executed.run(Path('README.md'))} blocks of README.md print what it shows")


def stage() -> None:
    """Make the files that README's examples name in the current folder."""
    coco, people, voc = (ROOT / "fixtures" / name for name in ("coco", "people", "voc"))
    for folder in ("runs", "teams", "shards", "masks"):
        Path(folder).mkdir()
    for name in ("instances_val.json", "gt.json", "truth.json"):
        shutil.copy(coco / "ground_truth.json", name)
    for name in ("detections.json", "dt.json", "a.json", "runs/one.json", "runs/two.json", "teams/one.json"):
        shutil.copy(coco / "detections.json", name)
    shutil.copy(people / "ground_truth.json", "masks/instances_val.json")
    shutil.copy(people / "masks.json", "masks")
    records = json.loads(Path("dt.json").read_bytes())
    other = [{**one, "score": one["score"] * (place % 2)} for place, one in enumerate(records)]
    Path("b.json").write_text(json.dumps(other))
    for number in range(2):
        part = [one for one in records if one["image_id"] % 2 == number]
        Path("shards", f"{number}.json").write_text(json.dumps(part))
    for name in ("Annotations", "results"):
        shutil.copytree(voc / name, name)
    Path("models.csv").write_text("name,path\none,a.json\ntwo,b.json\n")
    run("convert", "gt.json", "dataset", "--to", "yolo")
    run("convert", "dt.json", "runs/labels", "--to", "yolo", "--ground-truth", "gt.json")
    images = [one["id"] for one in json.loads(Path("gt.json").read_bytes())["images"]]
    rows = "".join(f"{one},{'private' if place % 2 else 'public'}\n" for place, one in enumerate(images))
    Path("splits.csv").write_text(f"image,split\n{rows}")
    Path("qrels.txt").write_text("q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 1\n")
    for name, first in (("a", 0.9), ("b", 0.1)):
        Path(f"{name}.run").write_text(f"q1 Q0 d1 1 {first} x\nq1 Q0 d2 2 0.5 x\nq2 Q0 d1 1 0.7 x\n")


def run_commands() -> None:
    """Run the commands of README that are shown without output, in a shell."""
    path = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"
    page, home = Path("README.md").read_text("utf-8"), Path.cwd()
    blocks = re.findall(r"^<!-- not run: files of users -->\n```console\n(.*?)^```$", page, re.M | re.S)
    for place, block in enumerate(blocks):
        Path(f"users{place}").mkdir()
        os.chdir(f"users{place}")
        stage()
        for line in re.findall(r"^\$ (detmap .*?)(?: +#.*)?$", block, re.M):
            done = subprocess.run(
                ["bash", "-c", line],
                cwd="masks" if "masks.json" in line else ".",
                env=os.environ | {"PATH": path},
                capture_output=True,
                text=True,
            )
            print(f"$ {line}", flush=True)
            failed = done.returncode != 0 or "Traceback" in done.stderr
            assert not failed, f"it ended with {done.returncode}\n{done.stdout}{done.stderr}"
        os.chdir(home)
    assert blocks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--page", action="store_true", help="run what README.md shows")
    page = parser.parse_args().page
    check_place()
    if not page:
        score_fixture()
        return
    run_page()
    run_commands()


if __name__ == "__main__":
    main()
