"""What the legs of the tests rest on: skips that nobody foresaw fail where they must, and each leg has its files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import legs
import pytest

HERE = Path(__file__).resolve().parents[1]

SKIPS = """
import pytest
pytest.importorskip({module!r})

@pytest.mark.skip(reason={reason!r})
def test_marked():
    pass

def test_called():
    pytest.skip({reason!r})

@pytest.mark.xfail(reason="known")
def test_known():
    raise ValueError
"""


def outcomes(folder, *options, module="json", reason="no Chromium is installed", **environment):
    """Which outcomes the tests of a file have, in a process of its own, and its exit code."""
    file = folder / "test_skips.py"
    file.write_text(SKIPS.format(module=module, reason=reason))
    paths = os.pathsep.join([str(HERE), str(HERE.parent)])
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider", *options, str(file)],
        env={**os.environ, "PYTHONPATH": paths, "DETMAP_ABSENT": "", **environment},
        capture_output=True,
        text=True,
        cwd=folder,
    )
    return run.returncode, run.stdout.strip().splitlines()[-1].partition(" in ")[0]


@pytest.mark.slow
def test_a_skip_that_nobody_foresaw_fails_where_it_must(tmp_path):
    assert outcomes(tmp_path) == (0, "2 skipped, 1 xfailed")
    assert outcomes(tmp_path, "--require") == (1, "1 failed, 1 xfailed, 1 error")
    assert outcomes(tmp_path, "--require", DETMAP_ABSENT="data browser") == (0, "2 skipped, 1 xfailed")


@pytest.mark.slow
def test_a_whole_file_that_is_skipped_for_a_missing_package_fails_where_it_must(tmp_path):
    assert outcomes(tmp_path, module="no_such_package") == (5, "1 skipped")
    assert outcomes(tmp_path, "--require", module="no_such_package") == (2, "1 error")


def test_every_leg_has_files_and_every_name_is_that_of_one():
    names = [path.name for path in HERE.rglob("test_*.py")]
    for leg, files in legs.FILES.items():
        for file in files:
            assert any(name.startswith(f"test_{file}") for name in names), (leg, file)
    assert set(legs.FILES) < set(legs.SHARES)


def test_a_leg_is_the_whole_where_it_has_no_list(monkeypatch):
    monkeypatch.delitem(legs.FILES, "compiled", raising=False)
    monkeypatch.setattr(legs, "LEG", "compiled")
    assert legs.runs("test_cli.py")
    monkeypatch.setattr(legs, "LEG", "interpreted")
    monkeypatch.setattr(legs, "FULL", False)
    assert not legs.runs("test_cli.py")
    assert legs.runs("test_retrieval_runs.py")
    assert legs.runs("support.py")
    assert [legs.examples(count) for count in (1000, 90, 3)] == [50, 5, 3]
    monkeypatch.setattr(legs, "FULL", True)
    assert legs.runs("test_cli.py")
    assert legs.examples(1000) == 200


def test_what_is_absent_must_be_a_known_word(monkeypatch):
    monkeypatch.setenv("DETMAP_ABSENT", "brower")
    with pytest.raises(KeyError):
        legs.foreseen()


def test_quick_runs_take_few_of_many_cases(monkeypatch):
    names = [f"tests/test_some.py::test_this[{case}]" for case in range(400)]
    monkeypatch.setattr(legs, "QUICK", True)
    taken = [place for place, name in enumerate(names) if legs.takes(name, place, len(names))]
    assert taken[0] == 0
    assert 25 < len(taken) < 75
    assert {place % 8 for place in taken} == set(range(8))  # every value of an inner parameter
    assert all(legs.takes(name, place, 3) for place, name in enumerate(names[:3]))
    monkeypatch.setattr(legs, "QUICK", False)
    assert all(legs.takes(name, place, len(names)) for place, name in enumerate(names))
