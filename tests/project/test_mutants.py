"""The mutants of scripts/mutate.py fit the kernels as they stand; whether tests kill them, ``scripts/mutate.py`` says."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import mutate

ROOT = mutate.ROOT


def test_every_line_that_a_mutant_changes_is_there_once():
    assert len(mutate.MUTANTS) >= 30
    for row in mutate.MUTANTS:
        one = mutate.Mutant(*row)
        text = (ROOT / one.path).read_text("utf-8")
        before, after = text.split("\n"), one.applied(text).split("\n")
        assert [old.strip() for old, new in zip(before, after, strict=True) if old != new] == [one.old]


def test_the_tests_of_a_mutant_are_there():
    for row in mutate.MUTANTS:
        for name in mutate.Mutant(*row).names():
            file, _, test = name.partition("::")
            assert (f"def {test}(" if test else "") in (ROOT / file).read_text("utf-8"), name


@pytest.mark.parametrize(
    ("where", "old", "says"),
    [
        ("curves._envelope", "best = 1.0", "has 0 lines 'best = 1.0'; it must have one"),
        ("ranking._write_hits", "if ahead[d] < depth:", "has 2 lines"),
        ("curves.nothing", "best = 0.0", "has 0 functions 'nothing'"),
    ],
)
def test_a_line_that_is_no_longer_there_is_an_error(where, old, says):
    one = mutate.Mutant(where, old, "pass", "hits")
    with pytest.raises(SystemExit, match=says):
        one.applied((ROOT / one.path).read_text("utf-8"))
