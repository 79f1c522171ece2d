"""The result of an evaluation of panoptic segmentation: metrics by name, and a row per category."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.errors import OptionError
from detmap.panoptic.rules import Rules
from detmap.panoptic.tally import METRICS, QUALITIES, PanopticTally
from detmap.results import Intervals, Result, widened


class PanopticResult(Result):
    """Panoptic quality of all categories, of things and of stuff.

    Parameters
    ----------
    tally : PanopticTally
        The outcome of matching.

    Attributes
    ----------
    tally : PanopticTally
        The given tally.
    qualities : ndarray of float64, shape (3, K)
        PQ, SQ and RQ of each category; NaN for a category without segments that count.
    counts : ndarray of int64, shape (K, 4)
        Numbers of matched pairs, false segments, missed segments and ground-truth segments of each category.
    """

    #: Arrays whose hashes an evaluation card holds.
    HASHED = ("qualities", "counts")

    def __init__(self, tally: PanopticTally) -> None:
        self.tally = tally
        sums = tally.sums()
        self.qualities: NDArray[np.float64] = sums.qualities()
        self.counts: NDArray[np.int64] = tally.counts()
        means = sums.means(tally.classes.things).tolist()
        super().__init__(dict(zip(METRICS, means, strict=True)), tally.notices)

    @property
    def rules(self) -> Rules:
        """The decisions of the evaluation."""
        return self.tally.rules

    protocol = rules  # the name by which evaluation cards and pages read the rules

    @property
    def categories(self) -> tuple[tuple[Any, str], ...]:
        """The K categories as (id, name)."""
        return self.tally.categories

    @property
    def intervals(self) -> Intervals | None:
        """Confidence intervals by metric, ``(low, high)``, if requested; else None."""
        return self._intervals

    def add_intervals(self, intervals: Intervals) -> None:
        """Set the confidence intervals, which are computed after the metrics."""
        self._intervals = intervals

    def __repr__(self) -> str:
        return f"<PanopticResult: PQ {self['PQ']:.4f}, {len(self.tally.image_ids):,} images>"

    def _meant(self, name: str) -> str | None:
        plain = name.lower().replace("^", "_").replace("-", "_")
        ends = {"_th": "_things", "_thing": "_things", "_st": "_stuff"}
        head, _, tail = plain.partition("_")
        wanted = head.upper() + (ends.get(f"_{tail}", f"_{tail}") if tail else "")
        return wanted if wanted in METRICS else None

    @cached_property
    def number_of_categories(self) -> dict[str, int]:
        """The number of categories with a defined quality, by the keys ``All``, ``Things`` and ``Stuff``."""
        known, things = ~np.isnan(self.qualities[0]), self.tally.classes.things
        groups = {"All": known, "Things": known & things, "Stuff": known & ~things}
        return {name: int(group.sum()) for name, group in groups.items()}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per category: its name, whether it is a thing, PQ, SQ, RQ, and the counts behind them."""
        rows = []
        for k, (key, name) in enumerate(self.categories):
            row: dict[str, Any] = {"category_id": key, "category": name}
            row["kind"] = "thing" if self.tally.classes.things[k] else "stuff"
            row |= dict(zip(QUALITIES, self.qualities[:, k].tolist(), strict=True))
            matched, false, missed, positives = self.counts[k].tolist()
            row |= {"matched": matched, "false": false, "missed": missed, "positives": positives}
            rows.append(row)
        return rows if self._intervals is None else widened(rows, self._intervals.of_categories(), "PQ")

    def summary(self) -> list[dict[str, Any]]:
        """Return rows for display: a row per metric if there are intervals, else three rows: all categories, things,
        and stuff.
        """
        if self._intervals is not None:
            return self.metric_rows()
        return [
            {
                "": name,
                **{quality: self[f"{quality}{end}"] for quality in QUALITIES},
                "categories": self.number_of_categories[name],
            }
            for name, end in (("All", ""), ("Things", "_things"), ("Stuff", "_stuff"))
        ]

    def class_summary(self) -> list[dict[str, Any]]:
        """Return `rows` without the category ids."""
        return [{name: value for name, value in row.items() if name != "category_id"} for row in self.rows()]

    def _tables(self) -> dict[str, Any]:
        return {"": self.summary()}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dicts, lists, strings and numbers (NaN where undefined)."""
        made = {
            "task": "panoptic",
            "protocol": self.rules.to_dict(),
            "metrics": dict(self),
            "categories": self.number_of_categories,
            "images": len(self.tally.image_ids),
            "per_category": PanopticResult.rows(self),
            "notices": dict(self.notices),
        }
        return made if self._intervals is None else {**made, "bootstrap": self._intervals.to_dict()}

    def to_panopticapi(self) -> dict[str, Any]:
        """Return the result as panopticapi's `pq_compute` does, with keys ``All``, ``Things``, ``Stuff``, ``per_class``.

        Raises
        ------
        OptionError
            If no thing category or no stuff category has segments; panopticapi divides by zero in this case.
        """
        found: dict[str, Any] = {}
        for name, end in (("All", ""), ("Things", "_things"), ("Stuff", "_stuff")):
            if not self.number_of_categories[name]:
                raise OptionError(f"panopticapi has no result where {name} has no category with segments")
            values = {quality.lower(): self[f"{quality}{end}"] for quality in QUALITIES}
            found[name] = {**values, "n": self.number_of_categories[name]}
        found["per_class"] = {
            key: {q.lower(): 0.0 if math.isnan(v) else v for q, v in zip(QUALITIES, own, strict=True)}
            for (key, _), own in zip(self.categories, self.qualities.T.tolist(), strict=True)
        }
        return found
