"""The garbage collector is as before where it was paused, also by several at a time."""

from __future__ import annotations

import gc

import pytest

from detmap.system import collector


@pytest.mark.parametrize("enabled", [True, False])
def test_it_is_as_before(enabled):
    (gc.enable if enabled else gc.disable)()
    try:
        first, second = collector.paused(), collector.paused()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)  # those of threads do not end in the order in which they begin
        assert not gc.isenabled()
        second.__exit__(None, None, None)
        assert gc.isenabled() == enabled
        with pytest.raises(KeyError), collector.paused():
            raise KeyError
        assert gc.isenabled() == enabled
    finally:
        gc.enable()
