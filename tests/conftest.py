"""What every test shares: the files of a leg, skips, the profiles of hypothesis, and registries without plug-ins."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Generator
from importlib import import_module
from pathlib import Path

import legs
import numba
import pytest
from hypothesis import HealthCheck, Phase, settings
from workloads import REAL_DATA

from detmap import plugins

# The date on pages, also of processes that tests start.
os.environ["SOURCE_DATE_EPOCH"] = "1767225600"

# Tests of one folder use what those of another one define.
sys.path += [str(folder) for folder in sorted(Path(__file__).parent.iterdir()) if folder.is_dir()]

# An assertion that fails in these says what it compared, as one of a test does.
pytest.register_assert_rewrite("diagnosed", "kernel_caches", "scanner", "source_files")

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=legs.examples(100),
    suppress_health_check=SLOW,
    print_blob=True,
)
settings.register_profile("explore", settings.get_profile("ci"), derandomize=False, max_examples=500)
# For scripts/mutate.py: that a test fails is all it asks, and to make the example smaller takes minutes.
settings.register_profile("mutants", settings.get_profile("ci"), phases=[Phase.explicit, Phase.generate])
settings.load_profile("ci")


# Plug-ins of tests: a file that marks itself with ``pytest.mark.plugins("circles")`` has those named registered.
for _name in ("circles", "clutter", "kitti", "lenient", "records", "spans", "rules"):
    import_module(f"growth.{_name}")


def _registries() -> list[tuple[plugins.Registry, dict, dict]]:
    return [(one, dict(one), dict(one._modules)) for one in plugins._REGISTRIES]


def _restore(before: list[tuple[plugins.Registry, dict, dict]]) -> None:
    """Leave in the registries what was there before, and what detmap's own modules have registered since."""
    for one, things, owners in before:
        new = {name: thing for name, thing in one._shipped.items() if name not in things}
        owners |= {name: one._modules[name] for name in new}
        one.clear()
        one.update({**things, **new})
        one._modules = owners


# A module registers on its first import alone, so the plug-ins are taken out here, before a file is collected.
REGISTERED = [
    (registry, thing, registry._modules[name])
    for registry in plugins._REGISTRIES
    for name, thing in dict(registry).items()
    if not registry.is_shipped(name)
]
for _registry, _thing, _ in REGISTERED:
    del _registry[_thing.name], _registry._modules[_thing.name]
plugins._MODULES.clear()


@pytest.fixture(scope="module", autouse=True)
def _plugins_of_a_file(request: pytest.FixtureRequest) -> Generator[None]:
    """Register the plug-ins that the file's mark names, for its tests."""
    before, modules = _registries(), dict(plugins._MODULES)
    named = {f"growth.{name}" for mark in request.node.iter_markers("plugins") for name in mark.args}
    for registry, thing, module in REGISTERED:
        if module in named:
            registry.add(thing, module)
            plugins._MODULES[module] = None
    yield
    _restore(before)
    plugins._MODULES.clear()
    plugins._MODULES.update(modules)


@pytest.fixture(autouse=True)
def _plugins_of_a_test() -> Generator[None]:
    """Forget after a test what it has registered, loaded and imported for it, so that the next one can load it again."""
    before, modules, installed = _registries(), dict(plugins._MODULES), list(plugins._installed)
    imported = set(sys.modules)
    yield
    _restore(before)
    for name in plugins._MODULES.keys() - imported:
        sys.modules.pop(name, None)
    plugins._MODULES.clear()
    plugins._MODULES.update(modules)
    plugins._installed[:] = installed


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require", action="store_true", help="fail where a test is skipped for a reason not in tests/legs.py"
    )


def pytest_configure(config: pytest.Config) -> None:
    # A shell's background jobs ignore Ctrl-C, and so would every command that a test starts and interrupts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if numba.config.DISABLE_JIT:  # integers wrap around and 0 / 0 is NaN in kernels; interpreted, numpy says so
        for what in ("overflow", "invalid value", "divide by zero"):
            config.addinivalue_line("filterwarnings", f"ignore:{what} encountered in scalar:RuntimeWarning")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the files of other legs; one that is named on the command line runs in any."""
    return None if collection_path.is_dir() or legs.runs(collection_path.name) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left = [one for one in items if legs.has_jit_alone(one.path.name) and not one.get_closest_marker("jit")]
    of_tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        of_tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in of_tests.values():
        left += [one for place, one in enumerate(cases) if not legs.takes(one.nodeid, place, len(cases))]
    if left:
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [one for one in items if one not in gone]
    skips = {}
    if not REAL_DATA.is_dir():
        skips["real_data"] = "../shared/data, beside the checkout, is absent"
    if numba.config.DISABLE_JIT:
        skips["compiled"] = "kernels are interpreted (NUMBA_DISABLE_JIT=1)"
    if legs.LEG == "ahead":
        skips["jit"] = "numba compiles nothing here (DETMAP_KERNELS=ahead)"
    if not legs.FULL:
        skips["long"] = "long (without DETMAP_TESTS=full)"
    if legs.QUICK:
        skips["slow"] = "slow (DETMAP_TESTS=quick)"
    for item in items:
        for marker, reason in skips.items():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish() -> None:
    """Let the collector of garbage leave out what stays: all tests, and the modules that they import."""
    gc.collect()
    gc.freeze()


Report = pytest.TestReport | pytest.CollectReport


def _required(report: Report, config: pytest.Config) -> Report:
    """With ``--require`` a test that is skipped for a reason that nobody foresaw has failed."""
    if config.getoption("--require") and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reason = reason.removeprefix("Skipped: ")
        if not reason.startswith(tuple(legs.foreseen())):
            report.outcome = "failed"
            report.longrepr = f"skipped, which tests/legs.py does not foresee: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, Report]:
    return _required((yield), item.config)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, Report]:
    return _required((yield), collector.config)
