"""Options of ``detmap batch`` for organisers of challenges: splits of the images, limits per file, discreet messages."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from detmap.cli.help import add_option
from detmap.errors import OptionError
from detmap.system.limits import size

#: Minimum memory limit in bytes; every process that scores a file needs more.
_LEAST_MEMORY = 1 << 20

if TYPE_CHECKING:
    from detmap.batch import Leaderboard, Limits
    from detmap.data.tables import GroundTruth


def add_challenge_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    group = parser.add_argument_group("challenges")
    add_option(
        group,
        "--splits FILE",
        "score each split of the images too, as public:AP: a CSV file with the columns image and split, or JSON",
    )
    add_option(
        group,
        "--hide SPLIT",
        "show and write no metric of a split, nor of all images, on the leaderboard; may be repeated",
        action="append",
    )
    add_option(
        group, "--publish DIR", "write a public leaderboard.*: no hidden split, notice, path, or number of images"
    )
    add_limits(group)
    add_option(
        group, "--discreet", "messages tell nothing of the ground truth; those for organisers are in results/NAME.json"
    )


def add_limits(group: Any) -> None:
    """Add the options that limit the time and memory for scoring a file."""
    add_option(
        group, "--limit-seconds S", "maximum seconds for a file; a slower one gets an error in its row", type=float
    )
    add_option(
        group,
        "--limit-memory SIZE",
        "stop scoring a file that takes more memory, as 512M or 4G, on top of the ground truth's",
    )


def limits_of(options: argparse.Namespace) -> Limits | None:
    """Return the limits that the options ask for. Raise `OptionError` for an invalid limit."""
    from detmap.batch import Limits

    if options.limit_seconds is None and options.limit_memory is None:
        return None
    memory = None if options.limit_memory is None else size(options.limit_memory, "--limit-memory")
    if memory is not None and memory < _LEAST_MEMORY:
        raise OptionError(
            f"--limit-memory {options.limit_memory} is {memory:,} bytes, less than scoring any file takes; "
            "give a size such as 512M or 4G"
        )
    return Limits(options.limit_seconds, memory)


def add_resume(parser: Any) -> None:
    """Add --resume."""
    add_option(parser, "--resume", "score only what has changed since the results in --out")


def check_resume(options: argparse.Namespace) -> None:
    """Refuse --resume without a folder of earlier results."""
    if options.resume and not options.out:
        raise OptionError("--resume needs --out DIR, which holds the earlier results")


def challenge_of(options: argparse.Namespace, ground_truth: GroundTruth) -> dict[str, Any]:
    """Return the arguments of `detmap.batch.score` that the options ask for."""
    from detmap.batch import Splits

    if options.hide and not options.splits:
        raise OptionError("--hide needs --splits FILE, which says which image is in which split")
    splits = Splits.read(options.splits, ground_truth) if options.splits else None
    return {"splits": splits, "limits": limits_of(options), "discreet": options.discreet}


def published(options: argparse.Namespace, board: Leaderboard, files: int) -> list[str]:
    """Write the public leaderboard and return the notes to print."""
    from detmap.batch.publishing import publish

    if len(board.results) < files or all(one.error for one in board.results):
        return [f"{options.publish} is left as it is: not all files were scored, or none could be"]
    return publish(board, options.publish)
