"""A digest of the code that determines scores. It is part of the key by which `--resume` finds a result."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import detmap
from detmap import plugins

#: Path prefixes, within the package, of code that does not affect the scores of detections.
_APART = (
    *("checks/", "cli/", "diagnostics/", "explanations/", "integrations/", "lvis/", "pycocotools/"),
    *("pytrec_eval/", "ranx/", "reports/", "retrieval/"),
    *("batch/clusters", "batch/comparing", "batch/discretion", "batch/finding", "batch/leaderboard"),
    *("batch/limited_process", "batch/publishing", "batch/saving", "batch/seen", "batch/shards", "batch/workers"),
    *(
        "cards.py",
        "detection/evaluator.py",
        "detection/updates.py",
        "formats/trec.py",
        "plots.py",
    ),
)

_HOME = Path(detmap.__file__).parent

#: Path prefixes of code that affects intervals and tests, but not scores.
_OF_CONFIDENCE = ("statistics/", "kernels/resampling.py")


def code(*, confidence: bool, explanations: bool = False) -> str:
    """Return the digest of all sources that determine scores, including plug-ins. `confidence` adds the sources of
    intervals and tests, and `explanations` adds the sources of explanations.
    """
    more = [] if not explanations else [_of(tuple(map(str, sorted((_HOME / "explanations").glob("*.py")))))]
    return _digest(_own(confidence), _of(tuple(plugins.sources())), *more)


@cache
def _own(confidence: bool) -> str:
    """Return the digest of the package's sources, or the version of the package if only bytecode is installed."""
    home = Path(detmap.__file__).parent
    found = []
    for path in sorted(home.rglob("*.py")):
        place = path.relative_to(home).as_posix()
        if not place.startswith(_APART) and (confidence or not place.startswith(_OF_CONFIDENCE)):
            found += [place, hashlib.sha256(path.read_bytes()).hexdigest()]
    return _digest(*found) if found else detmap.__version__


@cache
def _of(paths: tuple[str, ...]) -> str:
    """Return the digest of the contents of some files; their paths do not matter."""
    return _digest(*sorted(hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in paths))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
