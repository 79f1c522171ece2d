"""The parser of the command line: one-line errors, and help that fits a screen."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from detmap.errors import did_you_mean

#: Maximum number and width of lines of ``--help``. Longer help is abridged; ``--help-all`` shows the full help.
LINES, WIDTH = 40, 99

#: Maximum length of an error with both a suggestion and a list of choices; longer errors omit the list.
_LONG = 200

#: Width of the column of flags.
_FLAGS = 26


class Parser(argparse.ArgumentParser):
    """A parser whose help is one screen, and whose errors are one line.

    Abridged help explains only the flags in `first`. `asked` is the command whose help an error recommends. `asked` is
    set on the main parser, which also reports unknown options of commands.
    """

    first: Sequence[str] = ()
    asked: str = ""

    def __init__(self, *given: Any, **named: Any) -> None:
        self._prints = False
        self._later: list[tuple[argparse.Action, Callable[[], str]]] = []
        super().__init__(*given, **named)

    def explain_later(self, action: argparse.Action, text: Callable[[], str]) -> None:
        """Set a help text that is computed only when help is printed, because computing it imports modules."""
        self._later.append((action, text))

    def _get_formatter(self, *given: Any) -> argparse.HelpFormatter:
        """Return the formatter of help. The terminal's width is measured only when help is printed, because this
        imports modules.
        """
        if self._prints:
            return super()._get_formatter(*given)
        return argparse.HelpFormatter(self.prog, width=WIDTH)

    def error(self, message: str) -> NoReturn:
        """Print a one-line error about the options, and exit with code 2."""
        from detmap.cli.output import say

        meant = self._meant(message)
        if meant and len(message) > _LONG:  # a list of all choices would hide the suggestion
            message = re.sub(r" \(choose from .+\)$", "", message)
        shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in message + meant)
        say(f"error: {shown}; see {self.asked or self.prog} --help")
        raise SystemExit(2)

    def _meant(self, message: str) -> str:
        """Return the suffix of an argparse error that suggests the most similar command, value or option."""
        chosen = re.search(r"invalid choice: '(.+?)' \(choose from (.+)\)$", message)
        if chosen is not None:
            return did_you_mean(chosen[1], (one.strip(" '") for one in chosen[2].split(",")))
        unknown = re.match(r"unrecognized arguments: (?:.*? )?(--[^ =]+)", message)
        if unknown is None:
            return ""
        below = [one.choices for one in self._actions if isinstance(one, argparse._SubParsersAction)]
        parsers = [self, *(one for choices in below for one in choices.values())]
        return did_you_mean(unknown[1], (flag for one in parsers for flag in one._option_string_actions))

    def format_help(self) -> str:
        """Return help, abridged if it is too long."""
        whole = self.format_help_all()
        return whole if whole.count("\n") <= LINES else "\n".join([*_brief(self), ""])

    def format_help_all(self) -> str:
        """Return help on all options."""
        while self._later:
            action, text = self._later.pop()
            action.help = text()
        self._prints = True
        return super().format_help()


class HelpAll(argparse.Action):
    """The option that prints help on all options."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        """Print all help and exit."""
        assert isinstance(parser, Parser)
        print(parser.format_help_all(), end="")
        raise SystemExit(0)


def _brief(parser: Parser) -> list[str]:
    """Return the lines of abridged help. Each argument and each option in `first` has a line, and only the names of
    other flags are listed.
    """
    from textwrap import wrap

    groups = [(one.title, [action for action in one._group_actions if action.help]) for one in parser._action_groups]
    arguments = [one for _, actions in groups for one in actions if not one.option_strings]
    usage = parser.usage or " ".join([parser.prog, *map(_placed, arguments), "[options]"])
    head = [*f"usage: {usage}".splitlines(), "", *wrap(parser.description or "", WIDTH), ""]
    head += [_line(_placed(one), one) for one in arguments]
    chosen = [one for flag in parser.first if (one := parser._option_string_actions.get(flag))]
    head += ["", *(_line(_flag(one), one) for one in chosen)] if chosen else []
    head += ["", f"further options, which {parser.prog} --help-all explains:"]
    rest = {
        "general" if title == "options" else str(title): [
            one.option_strings[0]
            for one in actions
            if one.option_strings and not (one in chosen or isinstance(one, HelpAll | argparse._HelpAction))
        ]
        for title, actions in groups
    }
    tail = ["", *parser.epilog.strip().splitlines()] if parser.epilog else []
    room = LINES - len(head) - len(tail)
    made: list[str] = []
    for lines in (2, 1):
        made = [
            line for title, flags in rest.items() if flags for line in _listed(f"{title}: {', '.join(flags)}", lines)
        ]
        if len(made) <= room:
            break
    return [*head, *made[: max(room, 0)], *tail]


def _listed(text: str, lines: int) -> list[str]:
    from textwrap import wrap

    return wrap(
        text,
        WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
        break_on_hyphens=False,
        max_lines=lines,
        placeholder=" …",
    )


def _placed(action: argparse.Action) -> str:
    return f"{action.metavar or action.dest}{'...' if action.nargs in ('+', '*') else ''}"


def _flag(action: argparse.Action) -> str:
    few = action.choices and len(list(action.choices)) < 3
    value = action.metavar or (
        "|".join(map(str, action.choices or ())) if few else "NAME" if action.choices else action.dest.upper()
    )
    return action.option_strings[0] + (f" {value}" if action.nargs != 0 else "")


def _line(name: str, action: argparse.Action) -> str:
    """Return a line with an option and as much of its help as fits."""
    from textwrap import shorten

    says = (action.help or "").replace("%%", "%")
    room = WIDTH - _FLAGS - 3
    shown = says if len(says) <= room else shorten(says.partition(";")[0], room, placeholder=" …")
    return f"  {name:<{_FLAGS}} {shown}"


def page_path(text: str) -> str:
    """Return the path of an HTML page; refuse a path with the suffix of another format."""
    suffix = text.rpartition("/")[2].rpartition(".")[1:]
    if suffix[0] and suffix[1].lower() in ("pdf", "json", "csv", "md", "txt", "png", "svg", "docx", "xlsx", "tex"):
        raise argparse.ArgumentTypeError(f"a report is a page of HTML, not .{suffix[1]}: name it .html")
    return text


def add_page(parser: argparse.ArgumentParser) -> Any:
    """Add the options shared by all reports, and return their group."""
    page = parser.add_argument_group("report")
    add_option(
        page, "--out/-o FILE", "where the page goes; default: report.html", default="report.html", type=page_path
    )
    add_option(page, "--quiet", "no notes or progress on stderr")
    return page


def add_option(group: Any, spelled: str, says: str | Callable[[], str], **more: Any) -> None:
    """Add an option or operand with the spelling `spelled`, such as ``--level/-l N``. `says` is the help text. If
    computing the help text imports modules, `says` is a function that returns the text.

    Without a placeholder the option is a flag. The value is a number if the placeholder is N or the default is a number.
    An option that may be repeated gives a list.
    """
    flags, _, metavar = spelled.partition(" ")
    default = more.get("default")
    if metavar:
        more["metavar"] = metavar
    elif flags.startswith("-") and not more.keys() & {"choices", "nargs"}:
        more["action"] = "store_true"
    if metavar == "N" or isinstance(default, int | float):
        more.setdefault("type", float if isinstance(default, float) else int)
    if more.get("action") == "append":
        more.setdefault("default", [])
    action = group.add_argument(*flags.split("/"), help="" if callable(says) else says, **more)
    if callable(says) and isinstance(group, Parser):
        group.explain_later(action, says)
    elif callable(says):
        action.help = says()
