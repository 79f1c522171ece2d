"""Drawn mutants, each tried in forks of a process that has numba loaded, with the tests that carry its line out."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import cached_property, partial
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any, TypeVar

import pytest

from mutants.drawn import Drawn

T = TypeVar("T")

#: Packages that tests load, loaded once; none of them may import detmap.
PRELOADED = ("numba", "hypothesis", "msgspec", "yaml", "scipy.stats", "scipy.ndimage", "pandas", "pyarrow", "PIL.Image")
#: Seconds that the tests of a mutant take without a change, at most, by default.
SECONDS = 90.0
#: Those of the first tests to be tried; each further group takes four times as long.
FIRST = 3.0
#: What tests may take: this many times what they did without a change, and the seconds to load them.
SLOWER, LOADING = 5, 90
#: The files of tests/project that test the package.
OF_PROJECT = ("test_growth", "test_plugins")
#: The exit status of pytest where it has run nothing.
NO_TEST = 5
#: Of pytest; what is loaded before it has no assertions that it could rewrite.
OPTIONS = ["-q", "--tb=line", "--hypothesis-profile=mutants", "-Wignore::pytest.PytestAssertRewriteWarning"]
OPTIONS += [f"-pno:{name}" for name in ("cacheprovider", "xdist", "cov")]


def forked(tree: Path, tests: list[str], plugin: object, limit: float) -> tuple[int | None, str]:
    """Return the exit status of pytest in a child of this process, None where time is up, and what was printed."""
    printed = tree / "printed.txt"
    sys.stdout.flush()
    if not (pid := os.fork()):
        status = 3
        try:
            os.setsid()
            for stream, name, mode in ((0, os.devnull, os.O_RDONLY), (1, printed, os.O_RDWR | os.O_CREAT | os.O_TRUNC)):
                os.dup2(os.open(name, mode), stream)
            os.dup2(1, 2)
            os.chdir(tree)
            sys.path.insert(0, str(tree))
            os.environ["PYTHONPATH"] = str(tree)
            sys.dont_write_bytecode = False
            options = [*OPTIONS, f"--basetemp={tree.parent}/temporary-{tree.name}"]
            status = int(pytest.main([*options, *tests], plugins=[plugin]))
            sys.stdout.flush()
        finally:
            os._exit(status)
    end = time.monotonic() + limit
    while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0 and time.monotonic() < end:
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # processes that tests have started, too
    if ended[0]:
        return os.waitstatus_to_exitcode(ended[1]), printed.read_text("utf-8", "replace")
    os.waitpid(pid, 0)
    return None, ""


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Recorder:
    """Writes of each file of tests how long its tests take, which start a process, and which lines they carry out."""

    def __init__(self, tree: Path, folder: Path) -> None:
        from coverage import Coverage  # mutants of kernels do without

        self.tree, self.folder, self.test = tree, folder, ""
        self.seconds: dict[str, float] = {}
        self.starting: set[str] = set()
        self.failed: set[str] = set()
        self.coverage = Coverage(
            data_file=None, source=[str(tree / "detmap")], omit=["*/detmap/kernels/*"], config_file=False
        )

    def pytest_sessionstart(self) -> None:
        self.coverage.start()
        sys.addaudithook(lambda event, _: self.starting.add(self.test) if event == "subprocess.Popen" else None)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self.test, begin = item.nodeid, time.monotonic()
        self.coverage.switch_context(self.test)
        try:
            return (yield)
        finally:
            self.seconds[self.test] = round(time.monotonic() - begin, 3)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef) -> Generator[None, Any, Any]:
        """Record what a shared fixture carries out for all tests of the file."""
        if fixturedef.scope != "function":
            self.coverage.switch_context(self.test.partition("::")[0])
        try:
            return (yield)
        finally:
            self.coverage.switch_context(self.test)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        data, files = self.coverage.get_data(), {name.partition("::")[0] for name in self.seconds}
        passed = {name: taken for name, taken in self.seconds.items() if name not in self.failed}
        made: dict[str, dict[str, Any]] = {
            file: {
                "digest": digest(self.tree / file),
                "seconds": {name: taken for name, taken in passed.items() if name.startswith(f"{file}::")},
                "starting": sorted(name for name in self.starting if name.startswith(f"{file}::")),
                "lines": {},
            }
            for file in files
        }
        for measured in sorted(data.measured_files()):
            path = Path(measured)
            name, text = path.relative_to(self.tree).as_posix(), digest(path)
            for line, contexts in data.contexts_by_lineno(measured).items():
                for context in filter(None, contexts):
                    lines = made[context.partition("::")[0]]["lines"]
                    source = lines.setdefault(name, {"digest": text, "of": {}})
                    source["of"].setdefault(context, []).append(line)
        for file, record in made.items():
            (self.folder / file.replace("/", "-")).with_suffix(".json").write_text(json.dumps(record))


class Chosen:
    """Runs some tests in their order, until one fails, whose name it writes into a file."""

    def __init__(self, tests: list[str], failed: Path) -> None:
        self.failed = failed
        self.order = {name: at for at, name in enumerate(tests)}

    @cached_property
    def files(self) -> list[str]:
        return list(dict.fromkeys(name.partition("::")[0] for name in self.order))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        self.session = session
        items[:] = sorted((one for one in items if one.nodeid in self.order), key=lambda one: self.order[one.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.write_text(report.nodeid, "utf-8")
            self.session.shouldfail = "a test has failed"


class Records:
    """What `Recorder` has written of all files of tests."""

    def __init__(self, tree: Path, folder: Path, tests: list[str], seconds: float) -> None:
        self.tree, self.folder, self.most = tree, folder, seconds
        self.files = [
            path.relative_to(tree).as_posix()
            for name in tests
            for path in sorted((tree / name).rglob("test_*.py") if (tree / name).is_dir() else [tree / name])
            if "torch" not in path.parts and ("project" not in path.parts or path.stem in OF_PROJECT)
        ]

    def _of(self, file: str) -> dict[str, Any]:
        path = (self.folder / file.replace("/", "-")).with_suffix(".json")
        record = json.loads(path.read_text()) if path.exists() else {}
        return record if record.get("digest") == digest(self.tree / file) else {}

    def missing(self) -> list[list[str]]:
        """Return by folder the files of tests that are to be recorded."""
        found: dict[str, list[str]] = {}
        for file in self.files:
            if not self._of(file):
                found.setdefault(str(Path(file).parent), []).append(file)
        return list(found.values())

    @cached_property
    def _all(self) -> list[dict[str, Any]]:
        return [record for file in self.files if (record := self._of(file))]

    def of(self, one: Drawn) -> tuple[list[dict[str, float]], int]:
        """Return in groups the tests of a mutant with their seconds, and how many are left out for the time they take.

        Those that carry the line out come first, then those that carry out lines of the functions around it; outside of
        functions, and of a file that has changed since, those that carry out any of its lines. Where there are none, those
        that start a process.
        """
        spans = functions(self.tree / one.path, one.line)
        ranks: dict[str, int] = {}
        starting: list[str] = []
        seconds: dict[str, float] = {}
        for record in self._all:
            seconds |= record["seconds"]
            source = record["lines"].get(one.path, {"digest": "", "of": {}})
            known = source["digest"] == digest(self.tree / one.path)
            for context, lines in source["of"].items():
                if not (ranked := [at for at, span in enumerate(spans) if not known or not span.isdisjoint(lines)]):
                    continue
                rank = ranked[0]
                for name in [context] if "::" in context else record["seconds"]:
                    ranks[name] = min(rank, ranks.get(name, rank))
            starting += record["starting"]
        files: dict[tuple[int, str], list[str]] = {}
        for name, rank in (ranks or dict.fromkeys(starting, 0)).items():
            if name in seconds:
                files.setdefault((rank, name.partition("::")[0]), []).append(name)
        own = f"tests/{Path(one.path).parts[1]}/"

        def soonest(group: tuple[tuple[int, str], list[str]]) -> tuple[int, bool, float]:
            (rank, file), names = group
            return rank, not file.startswith(own), sum(seconds[name] for name in names)

        groups: list[dict[str, float]] = [{}]
        left = self.most
        for _, names in sorted(files.items(), key=soonest):
            for name in sorted(names, key=seconds.__getitem__):
                if left > 0:
                    groups[-1][name] = seconds[name]
                left -= seconds[name]
            if sum(groups[-1].values()) > FIRST * 4 ** (len(groups) - 1):
                groups.append({})
        chosen = [one for one in groups if one]
        return chosen, sum(map(len, files.values())) - sum(map(len, chosen))


def functions(path: Path, line: int) -> list[set[int]]:
    """Return the line, and the lines of the functions around it, the innermost first; outside of functions all lines."""
    text = path.read_text("utf-8")
    found = [
        {*range(node.body[0].lineno, (node.end_lineno or 0) + 1)}
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.body[0].lineno <= line <= (node.end_lineno or 0)
    ]
    return [{line}, *sorted(found, key=len)] if found else [{*range(1, text.count("\n") + 2)}]


class Trial:
    """Tries mutants in copies of a checkout, each used by a process."""

    def __init__(self, root: Path, folder: Path, tests: list[str], trees: list[Path], seconds: float = SECONDS) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.root, self.folder, self.trees = root, folder.resolve(), trees
        self.records = Records(root, self.folder, tests, seconds)
        for name in PRELOADED:
            with suppress(ImportError):
                import_module(name)

    def of(self, chosen: list[Drawn]) -> Iterator[tuple[Drawn, str]]:
        """Yield each mutant and what came of it, which begins with "killed", "survived" or "untested"."""
        for files, error in self._spread(Trial._record, self.records.missing()):
            if error:
                print(f"{' '.join(files)}: {error}", flush=True)
        yield from self._spread(Trial._tried, chosen)

    def _spread(self, work: Callable[[Trial, T], str], things: list[T]) -> Iterator[tuple[T, str]]:
        """Yield each thing with what was made of it, by a process for each tree."""
        forks = get_context("fork")
        trees = forks.SimpleQueue()
        for tree in self.trees:
            trees.put(tree)
        with ProcessPoolExecutor(len(self.trees), forks, self._start, (trees,)) as pool:
            yield from zip(things, pool.map(partial(_here, work), things), strict=True)

    def _start(self, trees: SimpleQueue[Path]) -> None:
        global _trial
        _trial, self.tree, self.turn, self.passing = self, trees.get(), 0, dict[frozenset[str], bool]()

    def _record(self, files: list[str]) -> str:
        status, printed = forked(self.tree, files, Recorder(self.tree, self.folder), 3600)
        return "" if status == 0 else f"exit status {status}: {printed[-2000:]}"

    def _put(self, path: str, text: str) -> None:
        """Write a file with a time that none of its texts has had: Python keeps bytecode by the file's second and size."""
        self.turn += 1
        (self.tree / path).write_text(text, "utf-8")
        os.utime(self.tree / path, (self.turn, self.turn))

    def _failed(self) -> Path:
        return self.tree / "failed.txt"

    def _run(self, tests: dict[str, float]) -> int | None:
        self._failed().write_text("")
        plugin = Chosen(list(tests), self._failed())
        return forked(self.tree, plugin.files, plugin, LOADING + SLOWER * sum(tests.values()))[0]

    def _tried(self, one: Drawn) -> str:
        text = (self.root / one.path).read_text("utf-8")
        groups, left = self.records.of(one)
        for tests in groups:
            while tests:
                self._put(one.path, one.applied(text))
                status = self._run(tests)
                self._put(one.path, text)
                if status in (0, NO_TEST):
                    break
                failed = self._failed().read_text("utf-8")  # none where pytest, or a kernel, did not get so far
                suspected = {failed: tests[failed]} if failed else dict(tests)
                if (key := frozenset(suspected)) not in self.passing:
                    self.passing[key] = self._run(suspected) == 0
                if self.passing[key]:
                    return f"killed ({failed or ('no end' if status is None else 'error')})"
                for name in suspected:
                    del tests[name]
        count = sum(map(len, groups))
        return f"survived ({count} tests, {left} left out)" if count else "untested"


#: Of a process that `Trial` has started.
_trial: Trial


def _here(work: Callable[[Trial, T], str], thing: T) -> str:
    return work(_trial, thing)
