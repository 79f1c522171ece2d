"""Write the public part of a leaderboard to its own folder: `detmap batch --publish`."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from detmap.batch.finding import WRITTEN, PathLike
from detmap.batch.leaderboard import Leaderboard
from detmap.batch.scoring import FileResult
from detmap.errors import OptionError, shorten

#: Files and folders in the folder of `detmap batch --out` that are never published.
_PRIVATE = ("results", "tests.json")

_FAILED = "it could not be scored"


def check(folder: PathLike, out: PathLike | None, splits: Sequence[str], hidden: Sequence[str]) -> None:
    """Raise `OptionError` if a leaderboard must not be published into `folder`. The folder must not contain private
    files or the organisers' folder `out`, and must not be inside `results`. A leaderboard that the folder already
    contains must show the same splits.
    """
    if splits and not hidden:
        raise OptionError(f"--publish needs --hide SPLIT: say which of {', '.join(splits)} must not be seen")
    name = shorten(os.fspath(folder))
    target = os.path.realpath(folder)
    if out is not None and os.path.commonpath([target, os.path.realpath(out)]) == target:
        raise OptionError(f"--publish {name} would hold the results of --out, which are for organisers: choose another")
    inside = next((one for one in (Path(target), *Path(target).parents) if _holds_results(one)), None)
    if inside is not None:
        raise OptionError(
            f"--publish {name} lies among results of every split, which are for organisers: choose another"
        )
    private = [one for one in _PRIVATE if os.path.lexists(os.path.join(folder, one))]
    if private:
        raise OptionError(f"--publish {name} holds {private[0]}, which is for organisers: choose another folder")
    there = [one for one in WRITTEN if os.path.lexists(os.path.join(folder, one))]
    shown = [split for split in splits if split not in hidden]
    if there and _shown(Path(folder)) != shown:
        splits_shown = ", ".join(shown) or "none"
        raise OptionError(
            f"--publish {name} holds a leaderboard of other splits than {splits_shown}: choose another folder"
        )


def _holds_results(folder: Path) -> bool:
    """Return whether a folder is the folder ``results`` of a run with ``--out``, whose files reveal the metrics of
    every split.
    """
    return folder.name == "results" and any(b'"seal"' in path.read_bytes() for path in folder.glob("*.json"))


def _shown(folder: Path) -> list[str] | None:
    """Return the splits that a published leaderboard shows; None if the leaderboard cannot be read."""
    try:
        document = json.loads((folder / "leaderboard.json").read_bytes())
        return list(document.get("splits", [])) if document["models"] else None
    except (OSError, ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return None


def public(board: Leaderboard) -> Leaderboard:
    """Return a copy of a leaderboard for participants. It has no paths, no numbers of images or objects, and no
    notices, because notices also count images of hidden splits.

    Error messages of `detmap batch --discreet` are kept; any other message is replaced by a general message.
    """
    results = []
    for one in board.results:
        document = one.document
        if one.error:
            said = one.error.removeprefix(f"{one.entry.path}: ") if "error_in_full" in document else _FAILED
            document = {"error": said}
        results.append(FileResult(replace(one.entry, path=one.entry.name), document))
    return Leaderboard(results, board.rank_by, board.tests, board.hide, discreet=True)


def publish(board: Leaderboard, folder: PathLike) -> list[str]:
    """Write the public files ``leaderboard.*`` into a folder, see `Leaderboard.write`."""
    return public(board).write(folder)
