"""Effect on AP of a score threshold, a cap (maximum number of detections per image), and duplicates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from detmap.detection.arrangement import Arrangement
from detmap.detection.matches import matches_of
from detmap.detection.protocols import UNLIMITED
from detmap.diagnostics._errors import DUPE, errors
from detmap.diagnostics._ranking import Ranking, mean
from detmap.diagnostics._registry import Finding, Part, Rows, number
from detmap.errors import OptionError, is_integer
from detmap.shapes import find

if TYPE_CHECKING:
    from detmap.diagnostics._diagnosis import Diagnosis


def cuts(
    diagnosis: Diagnosis,
    *,
    scores: Iterable[float] = (0.01, 0.05, 0.1, 0.25, 0.5),
    caps: Iterable[int] = (1, 10, 100, 300),
) -> Finding:
    """Return AP after detections are removed, or after the cap on detections is lifted.

    Parameters
    ----------
    scores : iterable of float
        Minimum scores; the score of the diagnosis is added.
    caps : iterable of int
        Numbers of best detections to keep per class and image, and per image over all classes.

    Returns
    -------
    Finding
        ``AP``; ``dAP_score``: the change in AP if detections below the diagnosis's score are removed; ``dAP_cap``: the
        change without a cap; ``dAP_duplicates``: the change if duplicate detections are removed.
    """
    wanted = sorted({number("a score", value) for value in scores} | ({diagnosis.score} - {np.nan}))
    limits = list(caps)
    if not all(is_integer(cap) and cap >= 1 for cap in limits):
        raise OptionError(f"caps must be integers of at least 1, not {limits!r}")
    ranking, matches, ap = diagnosis.ranking, diagnosis.matches, diagnosis.ap
    rows: Rows = []

    def add(what: str, kept: NDArray[np.bool_]) -> float:
        """Add a table row with AP of the detections in the mask `kept`, and return the change in AP."""
        at = kept[ranking.order]
        now = mean(ranking.ap_of(ranking.outcome, kept=at))
        rows.append({"cut": what, "kept": int(np.count_nonzero(kept)), "AP": now, "dAP": now - ap})
        return now - ap

    least = {score: add(f"scores of {score:.4g} or more", matches.score >= score) for score in wanted if score == score}
    of_score = least.get(diagnosis.score, float("nan"))
    cap, scene = diagnosis.protocol.max_dets[-1], find(diagnosis.protocol.iou_type).a_scene
    rank = diagnosis.arranged.found.rank
    for limit in limits:
        if limit < cap:
            add(f"{limit} of a class in {scene}", rank < limit)
    order = np.lexsort((matches.detection, -matches.score, matches.image))
    ahead = np.empty(order.size, np.int64)
    ahead[order] = np.arange(order.size) - np.searchsorted(matches.image, matches.image)
    for limit in limits:
        add(f"{limit} of {scene}", ahead < limit)
    duplicates = add("no duplicates", errors(diagnosis) != DUPE)
    more = _without_cap(diagnosis)
    rows.append({"cut": "no cap", "kept": more[0], "AP": more[1], "dAP": more[1] - ap})
    metrics = {"AP": ap, "dAP_score": of_score, "dAP_cap": more[1] - ap, "dAP_duplicates": duplicates}
    said = "no cap" if cap == UNLIMITED else f"{cap} detections of a class in {scene}"
    notes = [f"the protocol keeps {said}; AP is {ap:.4f} at {diagnosis.at}"]
    return Finding("cuts", {"scores": wanted, "caps": limits}, metrics, {"cuts": rows}, notes)


def _without_cap(diagnosis: Diagnosis) -> tuple[int, float]:
    """Return the number of detections and AP without a cap."""
    matches = diagnosis.matches
    cap = diagnosis.protocol.max_dets[-1]
    if cap == UNLIMITED or not (diagnosis.arranged.found.rank == cap - 1).any():
        return len(matches), diagnosis.ap
    protocol = replace(diagnosis.protocol, max_dets=(UNLIMITED,))
    arranged = Arrangement.of(diagnosis.ground_truth, diagnosis.detections, protocol, threads=diagnosis.threads)
    every = matches_of(arranged, diagnosis.iou, matches.area, threads=diagnosis.threads)
    return len(every), mean(Ranking.of(every, diagnosis.positives).ap)


PART = Part("cuts", "what a score cut, a cap and duplicates cost or would gain", cuts)
