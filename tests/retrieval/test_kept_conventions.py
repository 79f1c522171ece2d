"""Numbers of small rankings under every convention, every rule of ties and every decision, kept."""

from __future__ import annotations

import kept
import numpy as np
import pytest

from detmap.errors import DetmapError
from detmap.hits import TIE_RULES
from detmap.retrieval import CONVENTIONS, evaluate_codes, evaluate_distances, evaluate_run
from detmap.retrieval.conventions import Choices, RunChoices

RNG = np.random.default_rng(17)
#: Distances with many ties to a gallery of five people and of junk, seen by three cameras.
DISTANCES = RNG.integers(0, 8, (9, 24)) / 4
IDS = np.arange(9) % 6, np.arange(24) % 6 - 1
CAMERAS = np.arange(9) % 4, np.arange(24) % 3 + 1
CODES = RNG.integers(0, 2, (5, 8)), RNG.integers(0, 2, (14, 8))
LABELS = np.arange(5) % 4, np.arange(14) % 3
#: Judgements with grades, and a run of other queries and documents too.
QRELS = {f"q{q}": {f"d{d}": int(RNG.integers(-1, 4)) for d in RNG.permutation(20)[: 3 + 2 * q]} for q in range(8)}
RUN = {
    f"q{q}": {f"d{d}": round(float(RNG.normal()), int(q % 2)) for d in RNG.permutation(20)[: 14 - q]}
    for q in range(1, 9)
}
RUN["q3"]["q3"] = 0.5

#: Decisions of a convention, one changed at a time.
DECISIONS = {
    "interpolation": ("step", "all-point", "trapezoid", "trapezoid-hits", "11-point", "101-point"),
    "normalizer": ("positives", "hits", "smaller"),
    "ties": tuple(TIE_RULES),
    "empty": ("skip", "zero", "one", "nan", "error"),
    "missing": ("skip", "zero"),
    "order": ("score", "given"),
    "single": (False, True),
    "positive_scores": (False, True),
    "drop_same_id": (False, True),
    "recall_cutoffs": ("ceiling", "nearest"),
    "relative_rbp": (False, True),
    "cmc": ("market", "allshots", "cuhk03", "cuhk03_exact", "sysu"),
    "depth": ("positives",),
    "digits": (0, 3),
}


def said(call, *given, **more):
    try:
        result = call(*given, **more)
    except DetmapError as error:
        return kept.told(error)
    band = None
    if result.hits is not None:
        try:
            band = result.tie_band
        except DetmapError as error:
            band = kept.told(error)
    cmc = None if result.cmc is None else result.cmc.tolist()
    told = [dict(result), {name: values.tolist() for name, values in result.per_query.items()}, band, cmc]
    told += [result.queries, result.junk, result.described_notices(), result.summary()[0]]
    return " ".join(map(str, told))


@pytest.mark.parametrize("name", CONVENTIONS)
def test_numbers_under_a_convention(name):
    """Of a gallery, of codes and of a run."""
    lines = [
        said(evaluate_distances, DISTANCES, *IDS, *CAMERAS, convention=name),
        said(evaluate_distances, DISTANCES, *IDS, convention=name, metrics=["AP@3", "P@4", "RR", "CMC@2", "nDCG@5"]),
        said(evaluate_codes, *CODES, *LABELS, 3, convention=name),
        said(evaluate_codes, *CODES, *LABELS, convention=name),
        said(evaluate_run, QRELS, RUN, ["AP", "nDCG@5", "R@4"], name),
        said(evaluate_run, QRELS, RUN, ["AP@4", "RR@2", "P@3"], name, level=2, depth=6, judged_only=True),
        CONVENTIONS[name].describe(),
    ]
    kept.same(f"conventions/{name}", "\n".join(lines) + "\n")


def test_no_decision_must_be_given():
    assert Choices.__required_keys__ | RunChoices.__required_keys__ == set()


@pytest.mark.parametrize("decision", DECISIONS)
def test_numbers_under_a_decision(decision):
    metrics = ["AP", "AP@3", "P@4", "R@4", "RR", "nDCG", "iprec@0.3", "RBP(p=0.5)", "CMC@2"]
    lines = []
    for value in DECISIONS[decision]:
        lines += [
            f"{decision} {value}",
            said(evaluate_distances, DISTANCES, *IDS, *CAMERAS, metrics=metrics[:7], **{decision: value}),
            said(evaluate_codes, *CODES, *LABELS, metrics=metrics[:5], **{decision: value}),
            said(evaluate_run, QRELS, RUN, metrics, "detmap", **{decision: value}),
            said(evaluate_run, QRELS, RUN, metrics[:1], **{decision: value}),
        ]
    kept.same(f"conventions/decision-{decision}", "\n".join(lines) + "\n")
