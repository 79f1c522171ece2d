"""That kernels are compiled is said once, on stderr, by whatever command compiles the first one; and never where none is."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from kernel_caches import ROOT, compiled, tricks
from kernel_caches import environment as environment

import detmap.kernels
from detmap import cli
from detmap.cli import output
from detmap.kernels import _numba

COCO = [ROOT / "fixtures/coco" / name for name in ("ground_truth.json", "detections.json")]
PEOPLE = ROOT / "fixtures/people"

#: By command, a small kernel that it calls.
KERNELS = {
    ("eval", *COCO): "sorting.join",
    ("eval", PEOPLE / "ground_truth.json", PEOPLE / "masks.json", "--iou-type", "segm"): "masks.measure_runs",
    ("eval", PEOPLE / "ground_truth.json", PEOPLE / "masks.json", "--iou-type", "boundary"): "mask_pairs.unpack",
    ("eval", PEOPLE / "ground_truth.json", PEOPLE / "poses.json", "--iou-type", "keypoints"): "keypoints.means",
    ("trec", "judged.txt", "run.txt"): "curves.bpref",
    ("reid", "distances.npz"): "curves.average_precision",
    ("hashing", "codes.npz"): "curves.average_precision",
    ("report", *COCO, "--out", "page.html"): "resampling.count_positives",
    ("report", "--trec", "judged.txt", "run.txt", "--out", "runs.html"): "curves.bpref",
    ("diagnose", *COCO): "overlap.box_areas",
    ("batch", *COCO): "sorting.place_by",
    ("batch", *COCO, "--limit-seconds", "600"): "matching.match",
    ("check", *COCO): "values.skip_value",
    ("convert", "large.json", "made.csv"): "values.skip_value",
    ("compare", *COCO, "other.json"): "sorting.group_by",
    ("explain", *COCO, "--from", "voc2007"): "pairs.rows_of",
}

#: Commands whose numba is started in ways of their own: in this process, in tasks under limits, ahead of a page. The others
#: start it as one of these does.
OFTEN = {
    ("eval", *COCO),
    ("trec", "judged.txt", "run.txt"),
    ("batch", *COCO, "--limit-seconds", "600"),
    ("check", *COCO),
}
OFTEN |= {("report", *COCO, "--out", "page.html")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compiling")
    (folder / "judged.txt").write_text("1 0 a 1\n1 0 b 0\n2 0 a 1\n")
    (folder / "run.txt").write_text("1 Q0 a 1 0.5 x\n1 Q0 b 2 0.4 x\n2 Q0 a 1 0.4 x\n")
    shutil.copy(COCO[1], folder / "other.json")
    rng, ids = np.random.default_rng(0), np.arange(9) % 3
    np.savez(folder / "distances.npz", distances=rng.random((5, 9)), query_ids=ids[:5], gallery_ids=ids)
    codes = rng.integers(0, 2, (9, 16))
    np.savez(folder / "codes.npz", query_codes=codes[:5], gallery_codes=codes, query_labels=ids[:5], gallery_labels=ids)
    truth = json.loads(COCO[0].read_bytes())
    (folder / "large.json").write_text(json.dumps({**truth, "note": "x" * (1 << 20)}))
    return folder


@compiled
@tricks
@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [pytest.param(one, marks=() if one in OFTEN else pytest.mark.long) for one in KERNELS],
    ids=lambda command: " ".join(Path(word).stem for word in command),
)
def test_a_command_that_compiles_says_so_once(command, folder, tmp_path, environment):
    """With the cache of this process but for one kernel, and not when nothing is compiled.

    Of --quiet all commands are told in one place, so that one of them is run with it.
    """
    home = Path(detmap.kernels.__file__).parent
    kept = tmp_path / "kept" / _numba._folder_name(home)
    kept.mkdir(parents=True)
    for one in _numba._folders(home):
        for path in one.glob("*.nbc"):
            shutil.copy(path, kept)
    settings = {**environment, "NUMBA_CACHE_DIR": str(tmp_path / "kept")}

    def run(*more):
        words = [sys.executable, "-m", "detmap", *map(str, command), *more]
        done = subprocess.run(words, env=settings, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr
        assert "compiling" not in done.stdout
        return done.stderr.count("detmap: compiling the kernels")

    run()  # compiles what this machine has not kept yet
    assert run() == 0
    files = [path for path in kept.iterdir() if path.name.startswith(KERNELS[command] + "-")]
    assert files
    for more, said in (((), 1), (("--quiet",), 0))[: 2 if command == ("check", *COCO) else 1]:
        for path in files:
            path.unlink(missing_ok=True)  # of two, one is for another processor: this one writes only its own
        assert run(*more) == said
        assert any(path.name.startswith(KERNELS[command] + "-") for path in kept.iterdir())


@compiled
def test_it_is_said_once_by_whichever_thread(capsys):
    import numba

    def compile_one():
        numba.njit(lambda value: value + 1)(1)

    compile_one()
    assert capsys.readouterr().err == ""  # those who call functions hear nothing
    with output.compiling_told(False):
        threads = [threading.Thread(target=compile_one) for _ in range(3)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        compile_one()
    assert capsys.readouterr().err.count("compiling the kernels") == 1
    compile_one()
    with output.compiling_told(True):
        compile_one()
    assert capsys.readouterr().err == ""


def test_workers_are_spoken_for_where_nothing_is_kept(capsys, monkeypatch):
    monkeypatch.setattr(detmap.kernels, "compiled_before", lambda kernel: False)
    output.tell_of_workers()
    with output.compiling_told(False):
        output.tell_of_workers()
        output.tell_of_workers()
    assert capsys.readouterr().err.count("compiling the kernels") == 1


@pytest.mark.parametrize("command", cli._HOMES)
def test_only_what_lists_or_warms_computes_nothing(command):
    """Numba is loaded before any other command runs."""
    assert cli.command(command).computes is (command not in ("protocols", "conventions", "warm"))
