"""The worst images by cost in AP, by false positives, and by missed objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from detmap.detection.matches import HIT, IGNORED, MISS
from detmap.diagnostics._ranking import Ranking
from detmap.diagnostics._registry import Finding, Part, Rows
from detmap.errors import check_integer
from detmap.hits import Hits

if TYPE_CHECKING:
    from detmap.diagnostics._diagnosis import Diagnosis

#: Number of images for which the gain in AP is computed exactly; their estimated gains are the largest.
CANDIDATES = 200

#: Number of hits for which AP is computed at once; it limits the memory in use.
_ROOM = 4_000_000


def images(diagnosis: Diagnosis, *, most: int = 50) -> Finding:
    """Return the images with the worst errors.

    Parameters
    ----------
    most : int
        Maximum number of rows of each table.

    Returns
    -------
    Finding
        `rows` are the images that cost the most AP: ``dAP`` is the gain in AP if this image alone were perfect, without
        false positives and with each missed object found ahead of all other detections. This gain is computed exactly
        for the 200 images with the largest first-order estimates, and the worst of these images are listed. Two more
        tables list the images with the most false positives (of at least the diagnosis's score), and with the most
        missed objects.
    """
    check_integer("most", most, 1)
    matches, truth = diagnosis.matches, diagnosis.arranged.truth
    size = matches.image_ids.size
    lost = diagnosis.places[matches.missed]
    missed = np.bincount(truth.image[lost], minlength=size)
    shown = (matches.outcome == MISS) & (matches.score >= diagnosis.score)
    wrong = np.bincount(matches.image[shown], minlength=size)
    objects = np.bincount(truth.image[diagnosis.counted], minlength=size)
    estimate = _estimate(diagnosis, lost)
    chosen = np.argsort(-estimate, kind="stable")[:CANDIDATES]
    chosen = chosen[estimate[chosen] > 0]
    diagnosis.say(f"images: {chosen.size} of {size} measured exactly")
    gain = _exact(diagnosis, chosen, lost)
    order = np.lexsort((chosen, -gain))[:most]

    def row(image: int, **more: float) -> dict[str, object]:
        counts = {"objects": objects, "missed": missed, "false positives": wrong}
        return {
            "image": str(diagnosis.image_name(image)),
            "image_id": matches.image_ids[image].item(),
            **more,
            **{name: int(column[image]) for name, column in counts.items()},
        }

    tables: dict[str, Rows] = {
        "worst images by lost AP": [row(int(chosen[at]), dAP=float(gain[at])) for at in order.tolist()]
    }
    for title, column in (("most false positives", wrong), ("most missed objects", missed)):
        first = np.argsort(-column, kind="stable")[:most]
        tables[title] = [row(at) for at in first[column[first] > 0].tolist()]
    at_least = f"{diagnosis.score:.4g}"
    metrics = {
        "images with errors": int(np.count_nonzero((missed > 0) | (wrong > 0))),
        "dAP_worst": float(gain.max(initial=0.0)),
    }
    notes = [
        f"dAP: what AP gains if this {diagnosis.scene} alone were perfect",
        f"false positives: those of score {at_least} or more",
    ]
    return Finding("images", {"most": most}, metrics, tables, notes)


def _places(ranking: Ranking) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two arrays by ranking position: rank, and cumulative number of hits, both within the category."""
    first = ranking.starts[:-1][ranking.category]
    made = []
    for flags in (ranking.outcome != IGNORED, ranking.outcome == HIT):
        total = np.concatenate(([0], np.cumsum(flags)))
        made.append((total[1:] - total[first]).astype(np.float64))
    return made[0], made[1]


def _estimate(diagnosis: Diagnosis, lost: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return, for each image, a first-order estimate of the gain in AP if the image were perfect. The estimate
    assumes that AP is the mean of the precisions at the hits.
    """
    # Removing a false positive raises the precision j / R of the j-th hit, at a later rank R, by about j / R². A new
    # hit at rank 1 adds a precision of 1, and raises the precision of each other hit by (R - j) / (R (R + 1)).
    ranking, matches, truth = diagnosis.ranking, diagnosis.matches, diagnosis.arranged.truth
    positives = np.maximum(ranking.positives, 1)
    classes = max(int(np.count_nonzero(ranking.positives)), 1)
    rank, hits = _places(ranking)
    hit = ranking.outcome == HIT
    some = np.maximum(rank, 1.0)
    growth = np.concatenate(([0.0], np.cumsum(np.where(hit, hits / (some * some), 0.0))))
    ends = growth[ranking.starts[1:]]
    later = ends[ranking.category] - growth[1:]
    of_wrong = np.where(ranking.outcome == MISS, later / positives[ranking.category], 0.0)
    size = matches.image_ids.size
    gain = np.bincount(matches.image[ranking.order], of_wrong, minlength=size)
    shift = np.bincount(
        ranking.category[hit], ((rank - hits) / (some * (some + 1)))[hit], minlength=ranking.positives.size
    )
    of_lost = (1 + shift) / positives
    gain = gain + np.bincount(truth.image[lost], of_lost[truth.category[lost]], minlength=size)
    return gain / classes


def _exact(diagnosis: Diagnosis, chosen: NDArray[np.int64], lost: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return for each chosen image the gain in AP if this image alone were perfect."""
    ranking, matches, truth = diagnosis.ranking, diagnosis.matches, diagnosis.arranged.truth
    size, protocol = ranking.positives.size, matches.protocol
    slot = np.full(matches.image_ids.size, -1)
    slot[chosen] = np.arange(chosen.size)
    rank, _ = _places(ranking)
    hits_of = [rank[begin:end][ranking.outcome[begin:end] == HIT] for begin, end in _ranges(ranking.starts)]
    items = [int(rank[end - 1]) if end > begin else 0 for begin, end in _ranges(ranking.starts)]
    # For each chosen image and category: the ranks of its false positives, and the number of missed objects.
    at = np.flatnonzero(ranking.outcome == MISS)
    at = at[slot[matches.image[ranking.order[at]]] >= 0]
    key = slot[matches.image[ranking.order[at]]] * size + ranking.category[at]
    order = np.argsort(key, kind="stable")
    key, away = key[order], rank[at[order]]
    here = slot[truth.image[lost]]
    more = np.bincount(here[here >= 0] * size + truth.category[lost][here >= 0], minlength=chosen.size * size)
    cells = np.union1d(key, np.flatnonzero(more))
    cells = cells[ranking.positives[cells % size] > 0]
    gain, ap = np.zeros(chosen.size), ranking.ap
    starts = np.searchsorted(key, cells), np.searchsorted(key, cells, "right")
    parts: list[NDArray[np.int64]] = []
    held, first = 0, 0
    for i, cell in enumerate(cells.tolist()):
        k, new = cell % size, int(more[cell])
        removed = away[starts[0][i] : starts[1][i]]
        moved = hits_of[k] - np.searchsorted(removed, hits_of[k]) + new
        parts.append(np.concatenate((np.arange(1, new + 1), moved.astype(np.int64))))
        held += parts[-1].size
        if held > _ROOM or i + 1 == cells.size:
            some = cells[first : i + 1]
            kinds = some % size
            lengths = np.array([part.size for part in parts])
            gone = (starts[1] - starts[0])[first : i + 1]
            made = Hits(
                np.concatenate(([0], np.cumsum(lengths))),
                np.concatenate(parts),
                ranking.positives[kinds],
                np.array(items)[kinds] - gone + more[some],
            )
            if protocol.interpolation == "grid":
                now = made.interpolate(protocol.recall_thresholds, protocol.epsilon)[0].mean(axis=1)
            else:
                now = made.average_precision(protocol.interpolation, protocol.epsilon)
            gain += np.bincount(some // size, np.nan_to_num(now - ap[kinds]), minlength=chosen.size)
            parts, held, first = [], 0, i + 1
    return gain / max(int(np.count_nonzero(~np.isnan(ap))), 1)  # AP is the mean over classes with objects


def _ranges(starts: NDArray[np.int64]) -> list[tuple[int, int]]:
    return list(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True))


PART = Part("images", "the images whose errors cost most", images)
