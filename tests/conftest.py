"""What every test shares: the legs that skip a marked test, and the profiles of hypothesis."""

from __future__ import annotations

import signal
import threading

import numba
import pytest
from hypothesis import HealthCheck, settings
from workloads import REAL_DATA

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile(
    "ci", deadline=None, derandomize=True, database=None, max_examples=100, suppress_health_check=SLOW, print_blob=True
)
settings.register_profile("interpreted", settings.get_profile("ci"), max_examples=8)
settings.register_profile("explore", settings.get_profile("ci"), derandomize=False, max_examples=500)
settings.load_profile("interpreted" if numba.config.DISABLE_JIT else "ci")


def pytest_configure(config: pytest.Config) -> None:
    # A shell's background jobs ignore Ctrl-C, and so would every command that a test starts and interrupts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if numba.config.DISABLE_JIT:  # integers wrap around and 0 / 0 is NaN in kernels; interpreted, numpy says so
        for what in ("overflow", "invalid value", "divide by zero"):
            config.addinivalue_line("filterwarnings", f"ignore:{what} encountered in scalar:RuntimeWarning")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skips = {}
    if not REAL_DATA.is_dir():
        skips["real_data"] = "../shared/data, beside the checkout, is absent"
    if numba.config.DISABLE_JIT:
        skips["compiled"] = "kernels are interpreted (NUMBA_DISABLE_JIT=1)"
    for item in items:
        for marker, reason in skips.items():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))
