"""trec_eval's measures: names, order, parameters, nicknames, and the corresponding names in the metric table.

trec_eval prints measures in a fixed order, independent of the order of the request. A family such as ``P`` has a value
for each cutoff. Versions 9.0.8 (which pytrec_eval contains) and 10.0 are supported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.errors import OptionError, shorten
from detmap.hits import Hits
from detmap.retrieval.conventions import Convention
from detmap.retrieval.ranked import Request

_RANKS = ("5", "10", "15", "20", "30", "100", "200", "500", "1000")


@dataclass(frozen=True)
class Measure:
    """A measure of trec_eval, or a family of measures."""

    #: trec_eval's name, an alias in the metric table.
    name: str
    #: The type of the parameters. A measure with "ranks" or "shares" is a family with a value for each parameter; other
    #: measures have one value.
    takes: Literal["nothing", "ranks", "shares", "numbers", "pairs"] = "nothing"
    #: The default parameters.
    defaults: tuple[str, ...] = ()
    #: For parameters of type "numbers", the name of the metric's option that each parameter sets. If empty, the
    #: parameters are the options.
    options: tuple[str, ...] = ()
    #: Whether the value is printed as an integer.
    counts: bool = False
    #: Whether the value is text, for which pytrec_eval returns 0.0.
    text: bool = False
    #: Whether trec_eval prints the measure for single queries, for all queries together, or both.
    shown: Literal["both", "summary", "queries"] = "both"
    #: The first version of trec_eval that has the measure.
    since: int = 9

    @property
    def family(self) -> bool:
        """Whether the measure has a value for each parameter."""
        return self.takes in ("ranks", "shares")


class Value(NamedTuple):
    """A value of a measure: its `name` in trec_eval, such as ``P_5``, and its name in the metric table (None for text)."""

    name: str
    metric: str | None


#: Every measure for standard judgements, in the order in which trec_eval prints measures.
MEASURES = (
    Measure("runid", text=True, shown="summary"),
    Measure("num_q", counts=True, shown="summary"),
    Measure("num_ret", counts=True),
    Measure("num_rel", counts=True),
    Measure("num_rel_ret", counts=True),
    Measure("map"),
    Measure("gm_map", shown="summary"),
    Measure("Rprec"),
    Measure("bpref"),
    Measure("recip_rank"),
    Measure("iprec_at_recall", "shares", tuple(f"{r / 10:.1f}" for r in range(11))),
    Measure("P", "ranks", _RANKS),
    Measure("relstring", "numbers", ("10",), text=True, shown="queries"),
    Measure("recall", "ranks", _RANKS),
    Measure("infAP"),
    Measure("gm_bpref", shown="summary"),
    Measure("Rprec_mult", "shares", tuple(f"{m / 5:.1f}" for m in range(1, 11))),
    Measure("utility", "numbers", options=("hit", "wrong", "lost", "left")),
    Measure("11pt_avg", "numbers"),
    Measure("binG"),
    Measure("G", "pairs"),
    Measure("ndcg", "pairs"),
    Measure("ndcg_rel", "pairs"),
    Measure("Rndcg", "pairs"),
    Measure("ndcg_cut", "ranks", _RANKS),
    Measure("map_cut", "ranks", _RANKS),
    Measure("relative_P", "ranks", _RANKS),
    Measure("success", "ranks", ("1", "5", "10")),
    Measure("set_P"),
    Measure("set_relative_P"),
    Measure("set_recall"),
    Measure("set_map"),
    Measure("set_F", "numbers", options=("beta",)),
    Measure("num_nonrel_judged_ret", counts=True),
    Measure("rbp", "pairs", since=10),
    Measure("rbp_resid", "pairs", since=10),
    Measure("unj", "ranks", ("5", "10", "20"), since=10),
)

_BY_NAME = {measure.name: measure for measure in MEASURES}
_PLACE = {measure.name: place for place, measure in enumerate(MEASURES)}

_OFFICIAL = (
    "runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "map", "gm_map", "Rprec", "bpref", "recip_rank",
    "iprec_at_recall", "P",
)  # fmt: skip
_SET = (
    "runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "utility", "set_P", "set_recall", "set_relative_P", "set_map",
    "set_F",
)  # fmt: skip

#: Unsupported nicknames with their measures, which need preferences or judgements by several assessors.
ABSENT: Mapping[str, tuple[str, ...]] = {
    "all_prefs": (
        "runid", "num_q", "prefs_num_prefs_poss", "prefs_num_prefs_ful", "prefs_num_prefs_ful_ret", "prefs_simp",
        "prefs_pair", "prefs_avgjg", "prefs_avgjg_Rnonrel", "prefs_simp_ret", "prefs_pair_ret", "prefs_avgjg_ret",
        "prefs_avgjg_Rnonrel_ret", "prefs_simp_imp", "prefs_pair_imp", "prefs_avgjg_imp",
    ),
    "prefs": (
        "runid", "num_q", "prefs_num_prefs_poss", "prefs_num_prefs_ful", "prefs_num_prefs_ful_ret", "prefs_simp",
        "prefs_pair", "prefs_avgjg",
    ),
    "qrels_jg": ("runid", "num_q", "map_avgjg", "P_avgjg", "Rprec_mult_avgjg"),
}  # fmt: skip


def nicknames(version: int = 9) -> dict[str, tuple[str, ...]]:
    """Return the nicknames of a version of trec_eval, each with the measures that it stands for."""
    every = tuple(measure.name for measure in MEASURES if measure.since <= version)
    return {"official": _OFFICIAL, "set": _SET, "all_trec": every, **ABSENT}


def ordered(names: Iterable[str]) -> list[Measure]:
    """Return the named measures, without repetition, in trec_eval's order."""
    return [_BY_NAME[name] for name in sorted(set(names), key=_PLACE.__getitem__)]


def known(name: str, version: int = 9) -> bool:
    """Return whether a version of trec_eval and the metric table both have a measure."""
    return name in _BY_NAME and _BY_NAME[name].since <= version


def values_of(measure: Measure, parameters: Sequence[str] = ()) -> list[Value]:
    """Return the values of a measure, in trec_eval's order. As in trec_eval, `parameters` are ignored for a measure
    without parameters. Raises `OptionError` for parameters that trec_eval or the metric refuses.
    """
    if measure.text:
        return [Value(measure.name, None)]
    if measure.family:
        return _family(measure, parameters or measure.defaults)
    if not parameters or measure.takes == "nothing":
        return [Value(measure.name, measure.name)]
    given = ",".join(parameters)
    if measure.takes == "pairs":
        if measure.name.startswith("rbp") and re.fullmatch(r"p=[0-9.]+", given):
            return [Value(measure.name, f"{measure.name}({given})")]
        if measure.name == "ndcg" and re.fullmatch(r"([1-9][0-9]*=[0-9.]+,?)+", given):
            return [Value(measure.name, f"ndcg({given})")]
        raise OptionError(
            f"{measure.name}.{shorten(given)[1:-1]}: detmap takes gains of grades above 0 for ndcg, as in ndcg.1=3,2=9"
        )
    numbers = [_number(measure, text) for text in parameters]
    if measure.name == "utility" and len(numbers) != 4:
        raise OptionError(f"utility takes four numbers, as in utility.1,-1,0,0, and there are {len(numbers)}")
    if not measure.options:
        if sorted(numbers) != numbers:
            raise OptionError(f"{measure.name}: the recalls must ascend: {given}")
        return [Value(measure.name, f"{measure.name}({given})")]
    options = zip(measure.options, parameters, strict=False)  # surplus parameters are ignored
    return [Value(measure.name, f"{measure.name}({','.join(f'{name}={text}' for name, text in options)})")]


def undefined(hits: Hits, request: Request, convention: Convention) -> NDArray[np.bool_]:
    """Mask, shape (q,), of the queries whose value is 0 / 0 in trec_eval, but 0 in detmap. This happens only to
    interpolated precision, if nothing was ranked and the recall requires no hit.
    """
    if request.metric.name not in ("iprec", "11pt"):
        return np.zeros(len(hits), np.bool_)
    lowest = request.depth if request.depth is not None else min(map(float, request.options), default=0.0)
    needed = lowest * hits.positives + (0.9 if convention.recall_cutoffs == "ceiling" else 0.5)
    return np.asarray((hits.items == 0) & (needed < 1))


def _family(measure: Measure, parameters: Sequence[str]) -> list[Value]:
    """Return the values of a family, in ascending order of parameters."""
    numbers = sorted(_number(measure, text) for text in parameters)
    if measure.takes == "ranks":  # a fraction is truncated
        numbers = [float(int(number)) for number in numbers]
        if numbers[0] < 1:
            raise OptionError(f"{measure.name}: a cutoff must be at least 1, not {parameters[0]}")
    if len(set(numbers)) < len(numbers):
        raise OptionError(f"{measure.name}: a cutoff is there twice: {','.join(parameters)}")
    if measure.takes == "ranks":
        return [Value(f"{measure.name}_{number:.0f}", f"{measure.name}@{number:.0f}") for number in numbers]
    return [Value(f"{measure.name}_{number:3.2f}", f"{measure.name}@{number!r}") for number in numbers]


def _number(measure: Measure, text: str) -> float:
    """Return a parameter as a number."""
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)", text):
        raise OptionError(f"{measure.name}: {shorten(text)} is no number")
    return float(text)
