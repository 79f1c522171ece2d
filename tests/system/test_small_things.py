"""Patches of other packages, saved states as bytes, progress, forks and interrupts, each by itself."""

from __future__ import annotations

import hashlib
import json
import signal
import struct
import sys
import threading
from importlib import _bootstrap
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from detmap.errors import OptionError, StateError
from detmap.system import fork_safety, interrupts, limits, progress
from detmap.system.patching import Patch
from detmap.system.saved_states import _gathered, seal, state_of, unseal


@pytest.fixture
def package(monkeypatch):
    """A package with a class and a function, both imported by another package, by detmap, and by what is no module."""
    made = {name: ModuleType(name) for name in ("pkg", "pkg.inner", "user", "detmap.user", "detmapped")}
    made["pkg.inner"].Thing, made["pkg.inner"].other = type("Thing", (), {}), object()
    made["pkg"].inner = made["pkg.inner"]
    for name in ("user", "detmap.user", "detmapped"):
        made[name].Called, made[name].other = made["pkg.inner"].Thing, made["pkg.inner"].other
    made["odd"] = SimpleNamespace(Thing=made["pkg.inner"].Thing)
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    return SimpleNamespace(**{name.replace(".", "_"): module for name, module in made.items()})


def test_a_patch_replaces_what_others_have_imported(package):
    own, theirs = type("Own", (), {}), package.pkg_inner.Thing
    patch = Patch({("pkg.inner", "Thing"): own, ("pkg.inner", "absent"): own, ("no_such_package", "Thing"): own})
    assert patch.replaced == ("detmapped.Called", "pkg.inner.Thing", "user.Called")
    assert repr(patch) == "<Patch: detmapped.Called, pkg.inner.Thing, user.Called>"
    assert package.pkg_inner.Thing is package.user.Called is package.detmapped.Called is own
    assert package.detmap_user.Called is package.odd.Thing is theirs
    again = Patch({("pkg.inner", "Thing"): own})
    assert again.replaced == ()
    assert repr(again) == "<Patch: nothing to replace>"
    again.undo()
    assert package.user.Called is own
    with patch as entered:
        assert entered is patch
    assert package.pkg_inner.Thing is package.user.Called is theirs
    patch.undo()
    assert package.user.Called is theirs


def test_a_patch_stands_in_for_a_package_that_is_missing(package):
    module = ModuleType("anything")
    stand_ins = {"lacking": None, "lacking.inner": None, "lacking.inner.deep": module}
    with Patch({}, stand_ins) as patch:
        import lacking.inner.deep

        assert lacking.inner.deep is module
        assert sys.modules["lacking"].__doc__ == "detmap's modules under another name"
        assert patch.replaced == ("lacking", "lacking.inner", "lacking.inner.deep")
    assert not [name for name in sys.modules if name.startswith("lacking")]
    with Patch({}, {"pkg": None, "pkg.inner": None}) as patch:
        assert sys.modules["pkg"] is package.pkg
        assert patch.replaced == ()
    assert sys.modules["pkg.inner"] is package.pkg_inner
    patch = Patch({}, {"lacking": None})
    other = sys.modules["lacking"] = ModuleType("lacking")
    patch.undo()
    assert sys.modules.pop("lacking") is other


def test_a_sealed_state_is_what_was_put_in():
    column = np.arange(6, dtype=np.int32)
    state = seal("tally", {"n": np.int64(3), "text": "ä"}, column, b"", np.empty(0), b"xy")
    text = json.dumps({"kind": "tally", "version": 1, "n": 3, "text": "ä"}, separators=(",", ":")).encode()
    body = b"\x93detmap\n" + struct.pack("<Q", len(text)) + text + column.tobytes() + b"xy"
    assert state == body + hashlib.blake2b(body, digest_size=32).digest()
    for given in (state, bytearray(state), memoryview(state)):
        header, columns = unseal("tally", given)
        assert header == {"n": 3, "text": "ä"}
        assert bytes(columns) == column.tobytes() + b"xy"
    assert bytes(unseal("tally", seal("tally", {}))[1]) == b""


def sealed(text, length=None, magic=b"\x93detmap\n", rest=b""):
    body = magic + struct.pack("<Q", len(text) if length is None else length) + text + rest
    return body + hashlib.blake2b(body, digest_size=32).digest()


SHORT = b"\x93detmap\n" + b"\0" * 7
GOOD = seal("tally", {"n": 3}, b"column")


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("text", "a saved state is bytes, not str"),
        (None, "a saved state is bytes, not NoneType"),
        (b"", "not a saved state of detmap"),
        (sealed(b"{}", magic=b"\x93DETMAP\n"), "not a saved state of detmap"),
        (GOOD[:8], "the saved state is damaged or cut short"),
        (GOOD[:-1], "the saved state is damaged or cut short"),
        (GOOD[:30] + bytes([GOOD[30] ^ 1]) + GOOD[31:], "the saved state is damaged or cut short"),
        (SHORT + hashlib.blake2b(SHORT, digest_size=32).digest(), "the saved state is damaged or cut short"),
        (sealed(b""), "the saved state has no header"),
        (sealed(b"{"), "the saved state has no header"),
        (sealed(b"[1]"), "the saved state has no header"),
        (sealed(b"[" * 100_000), "the saved state has no header"),
        (sealed(b'{"version":1,"kind":"tally"}', 29), "the saved state has no header"),
        (sealed(b'{"version":2,"kind":"tally"}'), "the saved state is of another version of detmap"),
        (sealed(b'{"kind":"tally"}'), "the saved state is of another version of detmap"),
        (sealed(b'{"version":1,"kind":"evaluator"}'), "the saved state is not of a tally but of a evaluator"),
        (sealed(b'{"version":1,"kind":7}'), "the saved state is not of a tally"),
        (sealed(b'{"version":1}'), "the saved state is not of a tally"),
    ],
    ids=map(str, range(18)),
)
def test_states_that_are_refused(state, says):
    with pytest.raises(StateError) as caught:
        unseal("tally", state)
    assert str(caught.value) == says


def test_the_header_may_end_where_the_state_does():
    assert unseal("tally", sealed(b'{"version":1,"kind":"tally"}', 28)) == ({}, b"")
    header, rest = unseal("tally", sealed(b'{"version":1,"kind":"tally","a":[]}', rest=b"abc"))
    assert (header, bytes(rest)) == ({"a": []}, b"abc")


def test_states_of_all_processes(monkeypatch):
    def gather(into, own):
        into[:] = [own + bytes([n]) for n in range(len(into))]

    assert _gathered(b"s", gather, 2) == [b"s\0", b"s\1"]
    monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)
    with pytest.raises(OptionError) as caught:
        _gathered(b"s", gather, None)
    assert str(caught.value) == "say how many processes there are: sync(all_gather_object, world_size)"
    monkeypatch.setitem(sys.modules, "torch.distributed", SimpleNamespace(get_world_size=lambda: 3))
    assert len(_gathered(b"s", gather, None)) == 3
    assert state_of({"state": b"s"}) == b"s"
    for bad in ({}, b"s", None, {"other": b"s"}):
        with pytest.raises(StateError, match=r"^not what state_dict returned: there is no 'state'$"):
            state_of(bad)


def test_progress_of_parts():
    said = []
    with progress.counting(("unheard", 2)):
        progress.advance(1)
    with progress.listening(said.append):
        progress.advance(1)
        with progress.counting(("first", 3), ("none", 0), ("second", 2000)):
            for steps in (1, 1, 1, 1500, 499, 1):
                progress.advance(steps)
        assert list(progress.counted("items", "ab")) == ["a", "b"]
    progress.advance(1)
    assert said == [
        "first 0 of 3 (0 %)", "first 1 of 3 (33 %)", "first 2 of 3 (66 %)", "second 0 of 2,000 (0 %)",
        "second 1,500 of 2,000 (75 %)", "second 1,999 of 2,000 (99 %)", "", "",
        "items 0 of 2 (0 %)", "items 1 of 2 (50 %)", "", "",
    ]  # fmt: skip
    said.clear()
    with progress.listening(said.append), progress.counting(("outer", 2)):
        with progress.counting(("inner", 1)):
            pass
        progress.advance(1)
    assert said == ["outer 0 of 2 (0 %)", "inner 0 of 1 (0 %)", "outer 0 of 2 (0 %)", "outer 1 of 2 (50 %)", ""]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("1000000", 10**6),
        (" 512M ", 512 << 20),
        ("4GiB", 4 << 30),
        ("3kb", 3 << 10),
        ("2T", 2 << 40),
        ("7B", 7),
        ("7iB", 7),
        ("9" * 18, int("9" * 18)),
    ],
)
def test_sizes(text, size):
    assert limits.size(text, "it") == size


@pytest.mark.parametrize("text", ["", "0", "0G", "-1", "1.5G", "1P", "G", "9" * 19, "1 G", "1GG", "٣"])
def test_what_is_no_size(text):
    with pytest.raises(OptionError) as caught:
        limits.size(text, "it")
    assert str(caught.value) == f"it must be a size above 0, such as 512M or 4G, not {text!r}"


def test_a_limit_is_read_from_the_environment(monkeypatch):
    limit = limits.Limit("DETMAP_SOME_LIMIT", 5)
    monkeypatch.delenv("DETMAP_SOME_LIMIT", raising=False)
    assert limit.value() == 5
    monkeypatch.setenv("DETMAP_SOME_LIMIT", "")
    assert limit.value() == 5
    monkeypatch.setenv("DETMAP_SOME_LIMIT", "2K")
    assert limit.value() == 2048
    assert limit.advice() == "the environment variable DETMAP_SOME_LIMIT sets another limit"


def lock(owner):
    made = SimpleNamespace(owner=owner)
    return lambda: made


def test_a_fork_waits_for_imports_of_some_packages_by_other_threads(monkeypatch):
    own, other = threading.get_ident(), threading.get_ident() + 1
    locks = {
        "numpy.linalg": lock(other), "numba": lock(own), "detmap.cli": lock(None), "detmapped": lock(other),
        "msgspec": lambda: None, "llvmlite.binding": lock(other),
    }  # fmt: skip
    monkeypatch.setattr(_bootstrap, "_module_locks", locks)
    assert fork_safety._imported_elsewhere() == ["numpy.linalg", "llvmlite.binding"]
    monkeypatch.delattr(_bootstrap, "_module_locks")
    assert fork_safety._imported_elsewhere() == []


def test_a_fork_holds_the_locks_of_the_compiler(monkeypatch):
    compiler, linker = threading.Lock(), threading.Lock()
    names = "numba.core.compiler_lock", "llvmlite.binding.ffi"
    monkeypatch.setitem(sys.modules, names[0], SimpleNamespace(global_compiler_lock=compiler))
    monkeypatch.setitem(
        sys.modules, names[1], SimpleNamespace(lib=SimpleNamespace(_lock=SimpleNamespace(_lock=linker)))
    )
    waits = [["numpy"], []]
    asked = []

    def elsewhere():
        asked.append((compiler.locked(), linker.locked()))
        return waits.pop(0)

    monkeypatch.setattr(fork_safety, "_imported_elsewhere", elsewhere)
    monkeypatch.setattr(fork_safety.importlib, "import_module", lambda name: asked.append((name, compiler.locked())))
    fork_safety._before()
    assert asked == [(True, True), ("numpy", False), (True, True)]
    assert (compiler.locked(), linker.locked()) == (True, True)
    fork_safety._release()
    assert (compiler.locked(), linker.locked()) == (False, False)
    for name in names:
        monkeypatch.delitem(sys.modules, name)
    waits[:] = [["numpy"]] * 100
    asked.clear()
    fork_safety._before()
    assert len(asked) == 200
    fork_safety._release()
    monkeypatch.setitem(sys.modules, names[1], SimpleNamespace(lib=None))
    waits[:] = [[]]
    fork_safety._before()
    assert fork_safety._held == []


def test_handlers_of_interrupts_that_are_not_pythons_stay(monkeypatch):
    set_to = []
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.SIG_IGN)
    monkeypatch.setattr(signal, "signal", lambda *given: set_to.append(given))
    monkeypatch.setattr(signal, "set_wakeup_fd", lambda *given, **more: set_to.append(given))
    interrupts.watch()
    assert set_to == []
    interrupts.leave()
    assert set_to == [(signal.SIGINT, signal.SIG_IGN)]
    set_to.clear()
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.default_int_handler)
    interrupts.leave()
    assert set_to == []


@pytest.mark.parametrize(("before", "handlers"), [(-1, 0), (0, 1), (5, 1)])
def test_pythons_handler_comes_back_where_it_was_replaced(before, handlers, monkeypatch):
    set_to, wakeups = [], []
    monkeypatch.setattr(signal, "signal", lambda *given: set_to.append(given))
    monkeypatch.setattr(signal, "set_wakeup_fd", lambda number: wakeups.append(number) or before)
    interrupts.unwatch()
    assert wakeups == [-1]
    assert set_to == [(signal.SIGINT, signal.default_int_handler)] * handlers
    thread = threading.Thread(target=interrupts.unwatch)
    thread.start()
    thread.join()
    assert wakeups == [-1]
