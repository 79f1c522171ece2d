"""Conventions: named sets of decisions, such as the order of ties. They reproduce how projects score rankings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypedDict, get_args

from detmap import decisions
from detmap.decisions import YES_OR_NO, Flag, decision, decisions_of, default_of
from detmap.errors import OptionError, did_you_mean, shorten
from detmap.hits import INTERPOLATIONS, TIE_RULES, Interpolation, TieRule
from detmap.plugins import Registry, register

Normalizer = Literal["positives", "hits", "smaller"]
Empty = Literal["skip", "zero", "one", "nan", "error"]
CMC = Literal["market", "allshots", "cuhk03", "cuhk03_exact", "sysu"]

_DIVISORS = {"positives": "all relevant", "hits": "hits in the top k", "smaller": "min(relevant, k)"}


def _wrong_digits(digits: Any) -> str | None:
    if digits is None or (type(digits) is int and digits >= 0):
        return None
    return f"digits must be an integer or None, not {shorten(digits)}, and not negative"


@decisions.documented
@dataclass(frozen=True)
class Convention:
    """The decisions that turn a ranking into a metric's value. Instances are frozen; `dataclasses.replace` makes
    variants.
    """

    name: str = field(metadata=decision("Name of the convention."))
    formula: str = field(
        default="sum over hits of j / rank_j, divided by the number of relevant items",
        metadata=decision("Formula of AP in one line."),
    )
    users: str = field(default="", metadata=decision("Projects that follow the convention."))
    interpolation: Interpolation = field(
        default="step",
        metadata=decision(
            "The rule of AP; see `Hits.average_precision`.",
            "curve",
            allowed=INTERPOLATIONS,
            phrase=lambda convention: f"{convention.interpolation} AP / {_DIVISORS[convention.normalizer]}",
            always=True,
            flag=Flag(name="--interpolation", metavar="RULE", help=f"rule of AP: {', '.join(INTERPOLATIONS)}"),
        ),
    )
    normalizer: Normalizer = field(
        default="positives",
        metadata=decision(
            "What the sum of the precisions is divided by: all relevant items, the hits up to the depth, or the smaller of "
            "the relevant items and the depth.",
            "curve",
            allowed=get_args(Normalizer),
            flag=Flag(
                name="--normalizer",
                metavar="RULE",
                help="what the sum of AP is divided by: positives (the relevant items), hits (those up to the depth), or "
                "smaller (of the relevant items and the depth)",
            ),
        ),
    )
    depth: Literal["positives"] | None = field(
        default=None,
        metadata=decision(
            "Depth of AP if the metric's name gives none: None is the whole ranking, positives is rank R, the number of "
            "relevant items.",
            "curve",
            allowed=(None, "positives"),
            phrase=lambda convention: "down to rank R",
        ),
    )
    ties: TieRule = field(
        default="index",
        metadata=decision(
            "The order of items with equal scores: `index` (as given), `reversed`, `docid` (descending, bytewise), "
            "`docid-ascending`, `collapsed` (a tied group is one point at its end), `expected` (mean over all orders), "
            "`best` (hits first), `worst` (hits last).",
            "ranking",
            allowed=tuple(TIE_RULES),
            phrase=lambda convention: f"ties {convention.ties}",
            always=True,
            flag=Flag(
                name="--ties",
                metavar="RULE",
                help="order of equal scores: index, reversed, docid, docid-ascending, collapsed, expected, best or worst",
            ),
        ),
    )
    empty: Empty = field(
        default="skip",
        metadata=decision(
            "How a query without relevant items is treated: left out of the mean, counted as 0, 1 or NaN, or an error.",
            "mean",
            allowed=get_args(Empty),
            phrase=lambda convention: f"empty queries {convention.empty}",
            always=True,
            flag=Flag(
                name="--empty", metavar="RULE", help="queries without relevant items: skip, zero, one, nan or error"
            ),
        ),
    )
    missing: Literal["skip", "zero"] = field(
        default="skip",
        metadata=decision(
            "How a judged query that is not in the run is treated: left out of the mean, or counted as 0.",
            "mean",
            allowed=("skip", "zero"),
            phrase=lambda convention: "missing queries zero",
        ),
    )
    order: Literal["score", "given"] = field(
        default="score",
        metadata=decision(
            "Whether a run is ordered by its scores or kept in the order given.",
            "ranking",
            allowed=("score", "given"),
            phrase=lambda convention: "order as given",
        ),
    )
    single: bool = field(
        default=False,
        metadata=decision(
            "Whether scores are compared in single precision.",
            "ranking",
            allowed=YES_OR_NO,
            phrase=lambda convention: "scores in single precision",
        ),
    )
    positive_scores: bool = field(
        default=False,
        metadata=decision(
            "Whether items with scores of 0 or less are dropped.",
            "ranking",
            allowed=YES_OR_NO,
            phrase=lambda convention: "scores above 0 only",
        ),
    )
    drop_same_id: bool = field(
        default=False,
        metadata=decision("Whether a document with the id of its query is dropped.", "ranking", allowed=YES_OR_NO),
    )
    recall_cutoffs: Literal["ceiling", "nearest"] = field(
        default="ceiling",
        metadata=decision(
            "The hit at which recall *r* of *R* is read: ``int(r * R + 0.9)``, or r * R rounded half away from zero.",
            "curve",
            allowed=("ceiling", "nearest"),
        ),
    )
    relative_rbp: bool = field(
        default=True,
        metadata=decision(
            "Whether RBP's gains are grades over the query's highest grade, or the grades themselves.",
            "curve",
            allowed=YES_OR_NO,
        ),
    )
    cmc: CMC | None = field(
        default=None,
        metadata=decision(
            "Which matches CMC counts. None: as `market`, and `evaluate_rankings` reports CMC only if asked to.",
            "curve",
            allowed=(None, *get_args(CMC)),
            phrase=lambda convention: "" if convention.cmc == "market" else f"CMC {convention.cmc}",
        ),
    )
    together: bool = field(
        default=False,
        metadata=decision(
            "Whether the predictions of all queries form one ranking; the only metric is then "
            "`global_average_precision`.",
            "ranking",
            allowed=YES_OR_NO,
            phrase=lambda convention: "all queries together",
        ),
    )
    names: Literal["detmap", "ranx", "ir_measures"] = field(
        default="detmap",
        metadata=decision(
            "The library whose metric names and default parameters are used: ranx's ``rbp.95`` has p = 0.95; "
            "ir_measures' ``ERR@20`` is gdeval's, for grades up to 4, and its RBP has p = 0.8 (elsewhere 0.9).",
            "names",
            allowed=("detmap", "ranx", "ir_measures"),
        ),
    )
    digits: int | None = field(
        default=None, metadata=decision("Decimals that means are rounded to.", "mean", wrong=_wrong_digits)
    )

    def __post_init__(self) -> None:
        decisions.settle(self)

    @property
    def title(self) -> str:
        """The convention's name, for display beside a metric's value."""
        return self.name

    def describe(self) -> str:
        """Return the decisions in one line, for display beside a metric's value."""
        return decisions.describe(self)


_HITS = "sum over hits up to k of j / rank_j, divided by the hits up to k"
_SMALLER = "sum over hits up to k of j / rank_j, divided by min(relevant, k)"
_TRAPEZOID = "mean over relevant items of (j / rank_j + (j - 1) / (rank_j - 1)) / 2, the second term 1 at rank 1"

#: Every named convention.
CONVENTIONS = Registry(Convention, "convention")
for _convention in (
    Convention("detmap", users="the default: deterministic ties, all relevant items, empty queries counted apart"),
    Convention(
        "trec",
        users="trec_eval 9, pytrec_eval, MTEB",
        ties="docid",
        empty="zero",
        single=True,
    ),
    Convention(
        "trec10",
        users="trec_eval 10: as 9, but recall cutoffs are rounded to the nearest hit",
        ties="docid",
        empty="zero",
        single=True,
        recall_cutoffs="nearest",
    ),
    Convention(
        "ranx",
        users="ranx with a Run object (its dict path reverses ties: ties='reversed')",
        empty="zero",
        missing="zero",
        relative_rbp=False,
        names="ranx",
    ),
    Convention(
        "ir_measures",
        users="ir_measures 0.4.3 where pytrec_eval, MS MARCO's script, gdeval and cwl_eval are what it calls",
        ties="docid",
        empty="zero",
        missing="zero",
        single=True,
        relative_rbp=False,
        names="ir_measures",
    ),
    Convention(
        "beir",
        users="BEIR's pytrec_eval measures (its MRR: ties='index', missing='zero'); identical ids dropped",
        ties="docid",
        empty="zero",
        single=True,
        drop_same_id=True,
        digits=5,
    ),
    Convention(
        "msmarco",
        users="MS MARCO's MRR@10: the order of the file, over all judged queries",
        order="given",
        empty="zero",
        missing="zero",
    ),
    Convention(
        "kaggle",
        formula=_SMALLER,
        users="Kaggle's and ml_metrics' apk, mapk (newer Kaggle notebooks: empty='one')",
        order="given",
        normalizer="smaller",
        empty="zero",
        missing="zero",
    ),
    Convention(
        "min_rk",
        formula=_SMALLER,
        users="DELF and Google Landmarks v2 MeanAveragePrecision, PyG LinkPredMAP",
        normalizer="smaller",
    ),
    Convention(
        "torchmetrics",
        formula=_HITS + ", items with scores of 0 or less dropped",
        users="torchmetrics RetrievalMAP(top_k=k), from 1.7.4",
        normalizer="hits",
        empty="zero",
        single=True,
        positive_scores=True,
    ),
    Convention(
        "hits_topk",
        formula=_HITS,
        users="hashing tutorials, DeepHash CalcTopMap, OML calc_map",
        normalizer="hits",
        empty="zero",
    ),
    Convention(
        "hashnet",
        formula=_HITS,
        users="HashNet, DCH: queries without a hit in the top k left out",
        normalizer="hits",
    ),
    Convention(
        "map_at_r",
        formula="sum over hits up to rank R of j / rank_j, divided by R, the number of relevant items",
        users="pytorch-metric-learning mean_average_precision_at_r, whose k must reach the largest R (mAP@R is the same)",
        depth="positives",
    ),
    Convention(
        "pml_map",
        users="pytorch-metric-learning mean_average_precision, which ranks its k neighbours alone: ask for mAP@k (its "
        "default, max_bin_count, is the number of items in the largest class)",
    ),
    Convention("reid", users="torchreid, fast-reid, AGW, reid-strong-baseline", cmc="market"),
    Convention("allshots", users="open-reid's cmc: each match counts 1 / matches", cmc="allshots"),
    Convention("cuhk03", users="torchreid and fast-reid use_metric_cuhk03: ten seeded draws", cmc="cuhk03"),
    Convention("cuhk03_exact", users="the expectation of cuhk03 over all draws", cmc="cuhk03_exact"),
    Convention("sysu", users="Cross-Modal-ReID eval_sysu, LLCM", cmc="sysu"),
    Convention(
        "layumi",
        formula=_TRAPEZOID,
        users="layumi/Person_reID_baseline_pytorch: empty queries stay in the denominator",
        interpolation="trapezoid",
        ties="reversed",
        empty="zero",
        cmc="market",
    ),
    Convention(
        "oxford",
        formula=_TRAPEZOID,
        users="Oxford compute_ap, Market-1501 compute_AP.m, MARS, DELF",
        interpolation="trapezoid",
        empty="zero",
    ),
    Convention(
        "revisitop",
        formula=_TRAPEZOID,
        users="revisitop, cnnimageretrieval compute_map",
        interpolation="trapezoid",
    ),
    Convention(
        "trapezoid_hits",
        formula="mean over relevant items of (precision at the hit + precision at the hit before) / 2",
        users="a known mistake of ReID scripts, kept to reproduce published numbers",
        interpolation="trapezoid-hits",
    ),
    Convention(
        "sklearn",
        formula="sum over distinct scores of (R_i - R_(i-1)) * P_i",
        users="scikit-learn average_precision_score from 0.19, open-reid mean_ap",
        ties="collapsed",
    ),
    Convention(
        "sklearn018",
        formula="area under the straight lines between the points of distinct scores, from recall 0, precision 1",
        users="scikit-learn before 0.19, and projects that call auc(recall, precision)",
        interpolation="trapezoid",
        ties="collapsed",
    ),
    Convention(
        "voc07",
        formula="mean over recalls 0, 0.1 .. 1 of the largest precision at that recall or more",
        users="VOC2007",
        interpolation="11-point",
        empty="zero",
    ),
    Convention("voc10", formula="area under the envelope", users="VOC2010", interpolation="all-point"),
    Convention(
        "coco101",
        formula="mean over recalls 0, 0.01 .. 1 of the largest precision at that recall or more",
        users="COCO",
        interpolation="101-point",
    ),
    Convention(
        "expected",
        formula="mean of AP over all orders of the tied items, in closed form",
        users="McSherry and Najork, 2008",
        ties="expected",
    ),
    Convention(
        "gap",
        formula="(1 / queries with a positive) * sum over all predictions by score of P(i) * rel(i)",
        users="Google Landmarks GlobalAveragePrecision, DISC21: `global_average_precision`",
        together=True,
    ),
):
    register(_convention)


#: Decisions on the lines of a run; only functions that evaluate runs take them as keywords.
_OF_RUNS = ("missing", "order", "single", "positive_scores", "drop_same_id")


class CommonChoices(TypedDict, total=False):
    """Keywords that replace decisions of a convention, shared by all evaluations of rankings; see `Convention`."""

    names: Literal["detmap", "ranx", "ir_measures"] | None
    interpolation: Interpolation | None
    normalizer: Normalizer | None
    ties: TieRule | None
    empty: Empty | None
    recall_cutoffs: Literal["ceiling", "nearest"] | None
    relative_rbp: bool | None
    cmc: CMC | None
    digits: int | None


class Choices(CommonChoices, total=False):
    """Keywords for rankings that are not runs."""

    depth: Literal["positives"] | None


class RunChoices(CommonChoices, total=False):
    """Keywords for runs; `depth` is a separate parameter of `evaluate_run`."""

    missing: Literal["skip", "zero"] | None
    order: Literal["score", "given"] | None
    single: bool | None
    positive_scores: bool | None
    drop_same_id: bool | None


def convention_of(convention: str | Convention, choices: Mapping[str, Any], *, run: bool = False) -> Convention:
    """Return the given convention (a name or a `Convention`) with the decisions in `choices` replaced. A choice of None
    keeps the decision, except where None is a valid value: ``digits=None`` turns rounding off. If `run` is false,
    decisions on runs get their defaults, and `choices` may not contain them. Raises `OptionError` for an unknown name,
    decision or value.
    """
    if isinstance(convention, str):
        convention = CONVENTIONS.find(convention)
    elif not isinstance(convention, Convention):
        raise OptionError(f"convention must be a name or a Convention, not {type(convention).__name__}")
    if convention.together:
        raise OptionError(
            f"{convention.name} ranks the predictions of all queries together: global_average_precision does"
        )
    defaults = {one.name: default_of(one) for one in fields(Convention)}
    changed = {name: value for name, value in choices.items() if value is not None or defaults.get(name, 0) is None}
    known = {
        name
        for name, made in decisions_of(Convention).items()
        if made.affects and name != "together" and (run or name not in _OF_RUNS)
    }
    if not run:
        unset: dict[str, Any] = {f.name: f.default for f in fields(Convention) if f.name in _OF_RUNS}
        convention = replace(convention, **unset)
    for name in changed:
        if name not in known:
            if name in _OF_RUNS:
                raise OptionError(f"{name} is for runs only, which evaluate_run scores")
            meant = did_you_mean(name, [*known, "convention", "metrics"])
            raise OptionError(f"unknown option {name!r}{meant}; a convention decides: {', '.join(sorted(known))}")
    changed = {name: value for name, value in changed.items() if getattr(convention, name) != value}
    if not changed:
        return convention
    return replace(convention, name=convention.name + "*", **changed)
