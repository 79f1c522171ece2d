"""The installed distribution: its name, the command that adds an extra, and other packages named detmap."""

from __future__ import annotations

import os
from collections.abc import Iterator

#: Name on the package index, where the name `detmap` belongs to another project (manifold embedding), which is also
#: imported as detmap.
DISTRIBUTION = "detmap-eval"

#: Former name of the distribution.
FORMER = "detmap"

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def is_checkout() -> bool:
    """Return whether detmap runs from a checkout, or an unpacked source distribution."""
    return os.path.isfile(os.path.join(os.path.dirname(_FOLDER), "pyproject.toml"))


def install_command(extra: str) -> str:
    """Return the command that installs an extra, from the checkout if detmap runs from a checkout."""
    if is_checkout():
        import shlex

        checkout = os.path.dirname(_FOLDER)
        return f"pip install -e {shlex.quote(f'{checkout}[{extra}]')}"
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def _named_detmap() -> Iterator[tuple[str, bool, str]]:
    """Yield the version of each distribution named `FORMER`, whether it is this package, and its folder."""
    from importlib.metadata import distributions

    for found in distributions(name=FORMER):
        listed = {str(path) for path in found.files or ()}
        modules = {path for path in listed if path.startswith("detmap/")}
        # editable installations list no modules
        yield found.version, not modules or "detmap/kernels/_numba.py" in modules, str(found.locate_file(""))


def has_former() -> bool:
    """Return whether this package is installed under its former name."""
    return any(own for _, own, _ in _named_detmap())


def find_foreign() -> str | None:
    """Return a sentence about another project's package named detmap; None if there is no such package."""
    for version, own, folder in _named_detmap():
        if not own:
            return (
                f"another project's package named detmap ({version}) is installed in {folder}, in the"
                f" place of {DISTRIBUTION}'s files: pip uninstall detmap, then install {DISTRIBUTION} again"
            )
    return None
