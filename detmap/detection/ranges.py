"""Area ranges and levels of difficulty. They decide which objects a metric covers and which unmatched detections count.
Ranges and levels are decisions, declared here. They share an axis of a tally: first the area ranges, then the levels.
Objects outside of a range are ignored in that range. So are unmatched detections whose size is outside of the range.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.choices import WHOLE, decimal
from detmap.decisions import Flag, decision
from detmap.errors import OptionError, shorten

if TYPE_CHECKING:
    from detmap.detection.protocols import Protocol

#: Measures of boxes that ranges and levels can limit. The length of a box is its longer side.
MEASURES = ("area", "height", "width", "length")

#: Flags that every table of ground truth has as columns, by the field names that levels of difficulty use.
FLAGS = {"iscrowd": "crowd", "crowd": "crowd", "difficult": "difficult", "ignore": "difficult"}

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}
_CONDITION = re.compile(
    r"(?:(object|detection)\.)?([^\s<>=!,:%][^<>=!,:%]*?)\s*(<=|>=|!=|==|<|>|=)\s*([^<>=!,%]+?)\s*(%?)"
)
_WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}


class Condition(NamedTuple):
    """A comparison such as ``height>=25``: a measure or field (`of`), an operator, and a number. `share` tells whether
    the number is a percentage of the same measure of the image. `objects` and `detections` tell whether the condition
    applies to objects and to detections. Conditions on fields apply to objects only.
    """

    of: str
    operator: str
    value: float
    share: bool = False
    objects: bool = True
    detections: bool = True

    @property
    def measures(self) -> bool:
        """Whether the condition is about a size rather than a field."""
        return self.of in MEASURES

    def holds(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return a mask of the values for which the condition holds; False for unknown values (NaN)."""
        return np.asarray(_OPERATORS[self.operator](values, self.value) & ~np.isnan(values))

    def __str__(self) -> str:
        side = "" if self.objects and (self.detections or not self.measures) else "object."
        side = side if self.objects else "detection."
        return f"{side}{self.of}{self.operator}{_number(self.value)}{'%' * self.share}"


def _number(value: float) -> str:
    return repr(value).removesuffix(".0")


# ---------------------------------------------------------------------------------------------------------- area ranges


def parse_area_ranges(given: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Return area ranges from texts like ``"NAME:LO:HI"``. The first range is the range of all areas, which AP covers."""
    ranges: dict[str, tuple[Any, ...]] = {}
    for text in given:
        try:
            name, low, high = text.rsplit(":", 2)
            rest, colon, of = name.rpartition(":")
            name, of = (rest, of) if colon else (name, MEASURES[0])
            if ":" in name or of not in MEASURES:
                raise ValueError
            limits = _limits(low, high, of)
        except ValueError:
            ways = "NAME:LO:HI, as small:0:1024 or tiny:0:1%, or NAME:height:LO:HI (width, length)"
            raise ValueError(f"must be {ways}, not {shorten(text)}") from None
        if not name or name in ranges:
            raise ValueError(f"{shorten(text)} has {'a name given before' if name else 'no name'}")
        ranges[name] = limits
    return ranges if next(iter(ranges)) == "all" else {"all": WHOLE[1:], **ranges}


def _limits(low: Any, high: Any, of: str) -> tuple[Any, ...]:
    """Return minimum, maximum and measure of a range. The measure is left out if it is the area in square pixels."""
    ends = [one.strip() if isinstance(one, str) else one for one in (low, high)]
    share = of.endswith("%") or any(isinstance(one, str) and one.endswith("%") for one in ends)
    of = of.removesuffix("%")
    if of not in MEASURES:
        raise OptionError(f"a range can be of {', '.join(MEASURES)}, not of {shorten(of)}")
    values = [decimal(one.removesuffix("%")) if isinstance(one, str) else float(one) for one in ends]
    return (*values, *([] if of == MEASURES[0] and not share else [of + "%" * share]))


def plain_area_ranges(given: Any) -> tuple[tuple[Any, ...], ...]:
    """Return area ranges as tuples of name, minimum, maximum and measure. The measure is left out if it is the area in
    square pixels. A range is given by two limits, which are numbers or texts such as ``"1%"``, and optionally a
    measure. A text such as ``"height:0:32"`` gives measure and limits.
    """
    made: list[tuple[Any, ...]] = []
    for name, limits in given.items() if isinstance(given, Mapping) else ((one, rest) for one, *rest in given):
        if isinstance(limits, str):
            made.append((str(name), *parse_area_ranges([f"{name}:{limits}"])[str(name)]))
            continue
        if not isinstance(limits, Iterable):
            raise OptionError(
                f"area range {name!r}: must be least and largest area, as (0, 1024), not {shorten(limits)}"
            )
        parts = list(limits)
        if len(parts) == 3 and isinstance(parts[0], str) and not isinstance(parts[2], str):
            parts = [*parts[1:], parts[0]]
        if len(parts) not in (2, 3):
            raise ValueError(f"range {name!r} must be least and largest area, with what they measure if not that")
        low, high, of = (*parts, MEASURES[0])[:3]
        made.append((str(name), *_limits(low, high, str(of))))
    return tuple(made)


def wrong_area_ranges(ranges: tuple[tuple[Any, ...], ...]) -> str | None:
    """Return an error message if the area ranges are invalid, else None."""
    if not ranges:
        return "at least one area range is needed; the first one must hold all objects"
    for name, low, high, *_ in ranges:
        if not low <= high:
            return f"area range {name!r} must be low:high with low <= high, not {low}:{high}"
        if not name or name.isdigit():
            return f"an area range cannot be called {name!r}: caps give metrics such names"
    if len(ranges[0]) > 3:
        return (
            f"the first area range must hold all objects, in square pixels, and {ranges[0][0]!r} is of another measure"
        )
    return "two area ranges have one name" if len({name for name, *_ in ranges}) != len(ranges) else None


def say_area_ranges(ranges: tuple[tuple[Any, ...], ...]) -> str:
    """Format area ranges as `parse_area_ranges` reads them."""
    return "/".join(_say(*one) for one in ranges)


def _say(name: str, low: float, high: float, of: str = MEASURES[0]) -> str:
    share = "%" * of.endswith("%")
    of = of.removesuffix("%")
    return f"{name}:{f'{of}:' if of != MEASURES[0] else ''}{low:g}:{high:g}{share}"


AREA_RANGES = decision(
    "Tuples of a name and the smallest and largest area in square pixels, both included. The first range must hold all "
    "objects; its metrics have no suffix (AP, not AP_all). The limits of further ranges may be in percent of the image's "
    'area, ``"1%"``, and a fourth value may name another measure of the box than its area: "height", "width", or '
    '"length" (the longer side).',
    "matching",
    plain=plain_area_ranges,
    wrong=wrong_area_ranges,
    words=say_area_ranges,
    phrase=lambda protocol: f"areas {'/'.join(name for name, *_ in protocol.area_ranges)}",
    flag=Flag(
        name="--area-range",
        metavar="NAME:LO:HI",
        help="an area range in square pixels, reported as AP_NAME; tiny:0:1% is a share of the image's area, "
        "small:height:0:32 a range of the height of the box (or of width, or length, its longer side); may be repeated; "
        "replaces small, medium and large",
        read=parse_area_ranges,
        repeated=True,
    ),
)


# --------------------------------------------------------------------------------------------------------------- levels


def conditions_of(text: str, level: str = "") -> tuple[Condition, ...]:
    """Return the conditions of a level from text such as ``"a<=1,height>=25"``; raise `OptionError` for other text."""
    made = []
    for part in text.split(","):
        found = _CONDITION.fullmatch(part.strip())
        side, of, sign, value, share = found.groups() if found else ("", "", "", "", "")
        try:
            number = _WORDS[value.lower()] if value.lower() in _WORDS else decimal(value)
            if not math.isfinite(number):
                raise ValueError
        except ValueError:
            raise OptionError(
                f"level {level!r}: a condition is like occlusion<=1, height>=25 or truncated=0, not {shorten(part)}"
            ) from None
        one = Condition(of, "=" if sign == "==" else sign, number, bool(share), side != "detection", side != "object")
        if (side or share) and not one.measures:
            what = f"{side}." if side else "%"
            raise OptionError(
                f"level {level!r}: {what} goes with {', '.join(MEASURES)}, not with the field {shorten(of)}"
            )
        made.append(one)
    return tuple(made)


def parse_levels(given: Sequence[str]) -> dict[str, str]:
    """Return levels from text such as ``"NAME:CONDITION,CONDITION"``."""
    levels: dict[str, str] = {}
    for text in given:
        name, colon, conditions = text.partition(":")
        if not colon or not name.strip():
            raise ValueError(f"must be NAME:CONDITIONS, as hard:occlusion>1, not {shorten(text)}")
        if name.strip() in levels:
            raise ValueError(f"{shorten(text)} has a name given before")
        levels[name.strip()] = conditions
    return levels


def plain_levels(given: Any) -> tuple[tuple[str, str], ...]:
    """Return levels as names with normalised conditions."""
    made = []
    try:
        pairs = [(name, conditions) for name, conditions in (given.items() if isinstance(given, Mapping) else given)]
    except (TypeError, ValueError):
        raise OptionError(
            f"levels are names with conditions, as {{'hard': 'occlusion>1'}}, not {shorten(given)}"
        ) from None
    for name, conditions in pairs:
        if not isinstance(conditions, Iterable):
            raise OptionError(f"level {name!r}: conditions are text, as 'occlusion>1', not {shorten(conditions)}")
        text = conditions if isinstance(conditions, str) else ",".join(map(str, conditions))
        made.append((str(name), ",".join(map(str, conditions_of(text, str(name))))))
    return tuple(made)


def wrong_levels(levels: tuple[tuple[str, str], ...]) -> str | None:
    """Return an error message if the levels are invalid, else None."""
    for name, text in levels:
        if not name or name.isdigit():
            return f"a level cannot be called {name!r}: caps give metrics such names"
        made = conditions_of(text, name)
        for side in ("objects", "detections"):
            own = [one for one in made if getattr(one, side)]
            for of in dict.fromkeys((one.of, one.share) for one in own):
                if _empty([one for one in own if (one.of, one.share) == of]):
                    return f"level {name!r} is empty: no {of[0]} can be {text}"
    return "two levels have one name" if len({name for name, _ in levels}) != len(levels) else None


def _empty(conditions: Iterable[Condition]) -> bool:
    """Return whether these conditions on one field exclude every number."""
    bounds = [one.value for one in conditions]
    tried = {value for one in bounds for value in (one, math.nextafter(one, math.inf), math.nextafter(one, -math.inf))}
    return not any(all(_OPERATORS[one.operator](value, one.value) for one in conditions) for value in tried)


LEVELS = decision(
    'Levels of difficulty: pairs of a name and conditions joined by commas, such as ``{"hard": "occlusion>1"}``. Each '
    "level has the metrics AP_NAME and AR_NAME, for which objects that do not meet all conditions are ignored. A "
    "condition is on a field of the annotations, or on the area, height, width or length of the box in pixels (with %, "
    "in percent of the image). A condition on the box also ignores unmatched detections that do not meet it, unless it "
    "is written ``object.height>25``; ``detection.height>=25`` is on detections alone.",
    "matching",
    plain=plain_levels,
    wrong=wrong_levels,
    words=lambda levels: "/".join(f"{name}:{text}" for name, text in levels) or "none",
    phrase=lambda protocol: f"levels {'/'.join(name for name, _ in protocol.levels)}",
    flag=Flag(
        name="--level",
        metavar="NAME:CONDITIONS",
        help="a level of difficulty, reported as AP_NAME, in which objects that do not meet all conditions are ignored: "
        "'hard:occlusion>1' or 'moderate:occlusion<=1,truncation<=0.3,height>=25'; conditions on area, height, width or "
        "length of the box also ignore unmatched detections; may be repeated",
        read=parse_levels,
        repeated=True,
    ),
    since="0.2",
)


def names_of(protocol: Protocol) -> tuple[str, ...]:
    """Return the names of a protocol's area ranges, then of its levels."""
    return (*(name for name, *_ in protocol.area_ranges), *(name for name, _ in protocol.levels))


def fields_of(levels: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the annotation fields that levels read, without the columns that every table has."""
    named = (one.of for name, text in levels for one in conditions_of(text, name) if not one.measures)
    return tuple(dict.fromkeys(field for field in named if field not in FLAGS))


def needs(protocol: Protocol) -> dict[str, Any]:
    """Return the options for reading the ground truth that a protocol's ranges and levels need."""
    fields = fields_of(protocol.levels)
    sizes = any(one.share for own in conditions(protocol) for one in own)
    return {**({"fields": fields} if fields else {}), **({"image_facts": True} if sizes else {})}


def conditions(protocol: Protocol) -> list[tuple[Condition, ...]]:
    """Return the conditions of each range that is not given in square pixels."""
    made: list[tuple[Condition, ...]] = []
    for _, low, high, *of in protocol.area_ranges:
        if of:
            measure = of[0].removesuffix("%"), of[0].endswith("%")
            made.append(
                tuple(Condition(measure[0], sign, end, measure[1]) for sign, end in ((">=", low), ("<=", high)))
            )
    return made + [conditions_of(text, name) for name, text in protocol.levels]
