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


def test_a_drawn_mutant_is_killed_where_its_tests_pass_without_the_change():
    names = ["tests/a.py::test_first", "tests/a.py::test_second", "tests/a.py::test_third"]
    asked = []

    def unchanged(word):
        def run(some):
            asked.append(some)
            return word, ""

        return run

    failed = "killed", "..\nFAILED tests/a.py::test_second - assert 1 == 2\n1 failed, 1 passed in 0.1s\n"
    assert mutate.judged(names, ("survived", "3 passed"), unchanged("killed")) == "survived"
    assert not asked
    assert mutate.judged(names, failed, unchanged("survived")) == "killed"
    assert asked.pop() == names[:2]
    assert mutate.judged(names, failed, unchanged("killed")) == "untested"
    for word in ("no test ran", "no end"):
        assert mutate.judged(names, (word, ""), unchanged("survived")) == "killed"
        assert asked.pop() == names
        assert mutate.judged(names, (word, ""), unchanged(word)) == "untested"


def test_the_outcome_of_a_run_says_whether_a_test_ran(tmp_path):
    for name, body in {"pass": "pass", "fail": "assert False", "skip": "__import__('pytest').skip()"}.items():
        (tmp_path / f"test_{name}.py").write_text(f"def test_{name}():\n    {body}\n")

    def word(*names):
        return mutate.outcome([*mutate.PYTEST[:3], "-q", "-p", "no:cacheprovider", *names], tmp_path, 60)[0]

    assert word("test_pass.py") == "survived"
    assert word("test_pass.py", "test_fail.py") == "killed"
    assert word("test_skip.py") == word("test_absent.py") == "no test ran"
