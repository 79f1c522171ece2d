"""Options shared by commands, and their values."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from detmap.cli.help import HelpAll, Parser, add_option
from detmap.errors import DetmapError, OptionError, check_integer

if TYPE_CHECKING:
    from detmap.detection.protocols import Protocol


class Command(NamedTuple):
    """A command. `help` is its line in the list of commands, and `fill` adds its options to a parser.

    `run` executes the command. `says` is the first and `epilog` the last paragraph of its help. If help is abridged, only
    the flags in `first` are explained. `extensible` is whether the command takes ``--plugin``. ``settle(words)`` rewrites
    words of the command line that argparse would misread. If a command also takes other kinds of files, `instead` maps
    flags such as ``--pq`` to functions that replace `fill`. If `computes` is true, the command may call kernels, and
    their compilation is announced. `multiplies` is whether the command needs the threads of BLAS for large matrices.
    """

    help: str
    fill: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int | None]
    says: str
    epilog: str = ""
    first: str = ""
    extensible: bool = True
    settle: Callable[[list[str]], list[str]] = list
    instead: Mapping[str, Callable[[argparse.ArgumentParser], None]] = {}
    computes: bool = True
    multiplies: bool = False

    def add_to(self, parser: Parser, words: Sequence[str]) -> None:
        """Add help and options to a parser. A flag on the command line, such as ``--pq``, may select another set of
        options.
        """
        parser.description, parser.epilog, parser.first = self.says, self.epilog, tuple(self.first.split())
        parser.add_argument("--help-all", action=HelpAll, nargs=0, help="show help on all options, and exit")
        if self.epilog:
            parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.set_defaults(run=self.run)
        next((self.instead[word] for word in words if word in self.instead), self.fill)(parser)


def add_plugins(parser: argparse.ArgumentParser) -> None:
    """Add the option that names plug-ins; `detmap.cli.main` loads the plug-ins before it adds other options."""
    add_option(
        parser,
        "--plugin MODULE",
        "first load a plug-in (a module or a .py file), also in the workers of a cluster; may be repeated",
        action="append",
    )


def said_of_formats(text: str) -> str:
    """Return help text with each role, such as ``{detections}``, replaced by a list of its file formats."""
    from detmap.formats.files import words
    from detmap.reading.options import ROLES

    return text.format(**{role: words(role) for role in ROLES})


def add_ground_truth(parser: argparse.ArgumentParser, apart: Sequence[str] = ()) -> None:
    """Add the argument that names the ground truth, and its reading options except the options in `apart`."""
    says = "{ground_truth} (.gz, .zst too); - is standard input"
    add_option(parser, "ground_truth GT", lambda: said_of_formats(says))
    add_reading(parser, "images")
    add_reading(parser, "subsets", apart=apart)


def add_detections(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names the detections."""
    add_option(parser, "detections DETECTIONS", lambda: said_of_formats("{detections}; - is standard input"))


def add_input_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the formats of files."""
    add_reading(parser.add_argument_group("formats of the input"), "formats")


def add_reading(group: Any, of: str, role: str | None = None, apart: Sequence[str] = ()) -> None:
    """Add the flags of the reading options in the group `of`, except the options in `apart`. If `role` is given, only
    options for this role are added.
    """
    from detmap.reading.options import Reading, flags

    for dest, one in flags(of).items():
        if one.name in apart or (role is not None and role not in one.roles):
            continue
        default = getattr(Reading, one.name)
        allowed = tuple(value for value in one.option.allowed if value is not None)
        more: dict[str, Any] = {"choices": allowed} if allowed else {"metavar": one.flag.metavar}
        more["type"] = one.flag.read or str
        group.add_argument(one.flag.name, dest=dest, default=default, help=one.flag.help, **more)


def add_detection_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that decide how detections are scored."""
    from detmap.detection.protocols import AUTO, PRESETS, Protocol

    rules = parser.add_argument_group("rules")
    add_option(
        rules,
        "--protocol",
        "rules of a benchmark, as `detmap protocols` lists them; default: coco; auto: those that the ground truth asks "
        "for by its fields, as LVIS's do",
        choices=(*PRESETS, AUTO),
        default="coco",
    )
    add_decisions(rules, Protocol, _COMMON)
    add_reading_options(rules)
    others = parser.add_argument_group("further decisions of the protocol")
    add_decisions(others, Protocol, _COMMON, others=True)


def add_reading_options(rules: Any) -> None:
    """Add the options for invalid and unknown records, and for the number of threads, to a group."""
    add_reading(rules, "records")
    add_option(rules, "--threads N", "number of threads; default: one per processor; the result is the same")


#: The most frequently changed decisions of a protocol.
_COMMON = ("iou_type", "iou_thresholds", "area_ranges", "max_dets", "use_categories")


def add_decisions(group: Any, of: type, names: tuple[str, ...], *, others: bool = False) -> None:
    """Add the flags of those decisions of the class `of` that are in `names` or, if `others` is true, that are not."""
    from detmap.decisions import decisions_of

    for name, made in decisions_of(of).items():
        flag = made.flag
        if flag is None or (name in names) == others:
            continue
        given: dict[str, Any] = {"dest": _dest(name), "help": (flag.help or made.says).replace("%", "%%")}
        if flag.value is not None:
            group.add_argument(flag.name, action="store_const", const=flag.value, **given)
        else:
            allowed = [f"'{one}'" if " " in str(one) else str(one) for one in made.allowed]  # quoted for a shell
            metavar = flag.metavar or "{" + ",".join(allowed) + "}"
            action = "append" if flag.repeated else "store"
            group.add_argument(flag.name, action=action, metavar=metavar, **given)


def decided(options: argparse.Namespace, of: type) -> dict[str, Any]:
    """Return by name the decisions that the flags of `add_decisions` set."""
    from detmap.decisions import decisions_of

    found = {}
    for name, made in decisions_of(of).items():
        given = getattr(options, _dest(name), None)
        if given is None or made.flag is None:
            continue
        try:
            given = _content_of(given, made.flag.name) if made.flag.is_file else given
            found[name] = given if made.flag.read is None else made.flag.read(given)
        except DetmapError:
            raise
        except ValueError as error:
            raise OptionError(f"{made.flag.name} {error}") from None
    return found


def _content_of(path: str, flag: str) -> Any:
    """Return the content of a JSON file."""
    from detmap.formats.files import read_small
    from detmap.reading.strict_json import parsed

    return parsed(read_small(path), path, flag)


def _dest(name: str) -> str:
    return f"decision_{name}"


def protocol_of(options: argparse.Namespace) -> Protocol:
    """Return the requested protocol. Called before files are read, so that typos raise at once."""
    from detmap.detection.protocols import AUTO, COCO, Protocol, resolve

    check_threads(options)
    check_confidence(options)
    decisions = decided(options, Protocol)
    if options.protocol != AUTO:
        return _effective(resolve(options.protocol, **decisions), decisions)
    resolve(COCO, **decisions)
    from detmap.formats.files import asked_protocol

    return _effective(resolve(asked_protocol(options.ground_truth, options.gt_format), **decisions), decisions)


def _effective(protocol: Protocol, decisions: dict[str, Any]) -> Protocol:
    """Return the protocol after refusing flags that have no effect with this protocol."""
    if decisions:
        from detmap.cli.ineffective import check_effective

        check_effective(decisions, protocol)
    return protocol


def check_threads(options: argparse.Namespace) -> None:
    """Refuse fewer than one thread."""
    if options.threads is not None and options.threads < 1:
        raise OptionError(f"--threads must be at least 1, not {options.threads}")


def check_confidence(options: argparse.Namespace) -> None:
    """Refuse invalid values of the options of `add_bootstrap_options`."""
    replicated = options.bootstrap or options.bootstrap_needed
    permutations = getattr(options, "permutations", None)
    if replicated or options.seed != 0 or permutations is not None:
        # this import takes 15 ms, which most runs do not need
        from detmap.statistics.draws import check_replicates, check_seed

        if replicated:
            check_replicates(options.bootstrap)
        check_seed(options.seed)
        if permutations is not None:
            check_integer("--permutations", permutations, 1)
    if not 0 < options.confidence < 1:
        raise OptionError("--confidence must lie between 0 and 1")
    usual = {"clusters": None, "permutations": None, "interval": "t", "seed": 0, "confidence": 0.95}
    tested = getattr(options, "unless_chance", None)  # --unless-chance runs a test, which uses the seed and the level
    for name, default in usual.items():
        if (
            not (replicated or (tested and name in ("seed", "confidence")))
            and getattr(options, name, default) != default
        ):
            raise OptionError(f"--{name} needs --bootstrap N")


def draws_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the number of resamplings, the seed and the level given by the options of `add_bootstrap_options`."""
    return {"replicates": options.bootstrap, "seed": options.seed, "level": options.confidence}


def tests_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of paired tests given by the options of `add_bootstrap_options`."""
    return {"permutations": options.permutations, "correction": options.correction}


def add_intervals(result: Any, options: argparse.Namespace, stage: Callable[[str], None]) -> None:
    """Add confidence intervals to a result, if they are requested."""
    if options.bootstrap:
        from detmap.statistics import result_intervals

        stage("drawing images anew")
        drawn = options.bootstrap, options.seed, options.interval, options.confidence
        result_intervals.add_intervals(result, *drawn, options.threads)


def add_bootstrap_options(
    parser: argparse.ArgumentParser, replicates: int = 0, *, tests: bool = False, unit: str = "images"
) -> None:
    """Add the options of bootstrap confidence intervals; `unit` names what is resampled. If `tests` is true, also add the
    options of paired tests.
    """
    group = parser.add_argument_group("confidence")
    parser.set_defaults(bootstrap_needed=bool(replicates))
    default = f"at least 200; default: {replicates}" if replicates else "at least 200, usually 1000; none by default"
    add_option(
        group,
        "--bootstrap N",
        f"show confidence intervals and the estimated bias, from N resamplings of the {unit}: {default}",
        default=replicates,
    )
    add_option(
        group,
        "--interval",
        "Student's t with the standard error of bootstrap and jackknife (default), "
        "or quantiles of the resampled values: bias-corrected and accelerated (bca) or as they are (percentile)"
        + ("; differences of models have the interval of their test by default" if tests else ""),
        choices=("t", "bca", "percentile"),
        default="t",
    )
    add_option(group, "--seed N", "seed of the random draws, 0 to 2**64 - 1; default: 0", default=0)
    add_option(
        group,
        "--confidence LEVEL",
        "confidence level of intervals; tests are at 1 - LEVEL; default: 0.95",
        default=0.95,
    )
    if unit == "images":
        add_reading(group, "clusters")
    if tests:
        add_option(
            group,
            "--permutations N",
            "number of permutations per pair of models; default: 5000, or more if there are many hypotheses",
        )
        add_correction(group)


#: The corrections for multiple tests, with their names in the titles of columns.
CORRECTED = {"holm": "Holm", "bh": "BH"}


def add_score(group: Any) -> None:
    """Add the option --score."""
    says = "minimum score of detections that users see; default: best F1 over all classes"
    add_option(group, "--score SCORE", says, type=float)


def add_correction(group: Any) -> None:
    """Add the option for the correction for multiple tests."""
    add_option(
        group,
        "--correction",
        "correction for many hypotheses: Holm's (holm, default) limits the probability of any false claim in a "
        "family, Benjamini and Hochberg's (bh) the expected share of false claims among the claims",
        choices=tuple(CORRECTED),
        default="holm",
    )


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """Add the option that runs tasks on a cluster."""
    add_option(parser, "--scheduler ADDRESS", "run on a Dask cluster, as tcp://host:8786 (extra: dask)")


def add_format(parser: argparse.ArgumentParser, *more: str) -> Any:
    """Add the output options of commands that show tables, and return their group; `more` are further formats."""
    output = parser.add_argument_group("output")
    add_option(
        output,
        "--format",
        "how the result is printed; default: table",
        choices=("table", "json", "csv", "markdown", "latex", *more),
        default="table",
    )
    add_option(
        output, "--wide", "do not narrow tables; default: at most 100 characters, and columns left out are named"
    )
    add_option(output, "--quiet", "no notes or progress on stderr")
    return output


def add_list_format(parser: argparse.ArgumentParser) -> None:
    """Add the format option of commands that print a list."""
    add_option(
        parser,
        "--format",
        "how the result is printed; default: table",
        choices=("table", "json", "csv", "markdown"),
        default="table",
    )


def add_output_options(parser: argparse.ArgumentParser, *more: str, rows: str | tuple[str, ...], what: str) -> None:
    """Add the output options. `more` are further formats. The flags `rows` request additional rows, and the text `what`
    describes these rows in help.
    """
    output = add_format(parser, *more)
    output.add_argument(
        *([rows] if isinstance(rows, str) else rows), dest="rows", action="store_true", help=f"show {what} too"
    )
    add_option(output, "--out/-o FILE", "write everything as JSON")
    add_option(output, "--plot FILE", "draw the curves, as .svg, .pdf or .png (extra: plots)")
