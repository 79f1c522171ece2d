"""The mutants of scripts/mutate.py fit the kernels as they stand; whether tests kill them, ``scripts/mutate.py`` says."""

import shutil
import subprocess
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
        assert [mutate.code(old) for old, new in zip(before, after, strict=True) if old != new] == [one.old]


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


@pytest.mark.slow
def test_a_drawn_mutant_is_killed_by_the_tests_that_carry_its_line_out(tmp_path):
    root, source, tests = tmp_path / "root", "detmap/things.py", "tests/things/test_things.py"
    for path, text in {
        source: "def half(x):\n    return x / 2\n\n\ndef odd(x):\n    return x % 2\n\n\ndef unused(x):\n    return x + 1\n",
        "detmap/__init__.py": "",
        "tests/conftest.py": "from hypothesis import settings\n\nsettings.register_profile('mutants')\n",
        tests: "from detmap.things import half, odd\n\n\ndef test_half():\n    assert half(4) == 2\n\n\n"
        "def test_odd():\n    odd(0)\n\n\ndef test_never():\n    half(1)\n    assert False\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    shutil.copytree(root, tree := tmp_path / "tree")
    program = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); from mutants import drawn, forked\n"
        "root, records, tree = map(Path, sys.argv[2:])\n"
        "chosen = drawn.draw(root, ['detmap'], 99, 0)\n"
        "forked.PRELOADED = ()\n"
        "for one, result in forked.Trial(root, records, ['tests'], [tree]).of(chosen): print(f'{one}: {result}')\n"
    )
    command = [sys.executable, "-c", program, ROOT / "scripts", root, tmp_path / "records", tree]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert run.stdout.splitlines()[0].startswith(f"{tests}: exit status 1")  # one fails without a change
    name = f"{tests}::test"
    assert sorted(line for line in run.stdout.splitlines() if line.startswith(source)) == [
        f"{source}:10: 1  ->  2: untested",
        f"{source}:10: x + 1  ->  (x - 1): untested",
        f"{source}:2: 2  ->  3: killed ({name}_half)",
        f"{source}:2: x / 2  ->  (x * 2): killed ({name}_half)",
        f"{source}:6: 2  ->  3: survived (1 tests, 0 left out)",
        f"{source}:6: x % 2  ->  (x * 2): survived (1 tests, 0 left out)",
    ]


@pytest.mark.slow
def test_the_outcome_of_a_run_says_whether_a_test_ran(tmp_path):
    for name, body in {"pass": "pass", "fail": "assert False", "skip": "__import__('pytest').skip()"}.items():
        (tmp_path / f"test_{name}.py").write_text(f"def test_{name}():\n    {body}\n")

    def word(*names):
        return mutate.outcome([*mutate.PYTEST[:3], "-q", "-p", "no:cacheprovider", *names], tmp_path, 60)[0]

    assert word("test_pass.py") == "survived"
    assert word("test_pass.py", "test_fail.py") == "killed"
    assert word("test_skip.py") == word("test_absent.py") == "no test ran"
