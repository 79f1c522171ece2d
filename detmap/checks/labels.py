"""Checks of category ids and names: whether ground truth and detections agree on them, and whether each category has
objects and detections.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.checks.agreement import Agreement
from detmap.checks.context import Facts
from detmap.checks.counts import Counts
from detmap.checks.findings import AT_LEAST, Finding, found, names
from detmap.checks.image_ids import by_ids_alone
from detmap.checks.inputs import Side
from detmap.data.ids import locate
from detmap.data.tables import Detections, GroundTruth

#: Codes of causes that leave categories without detections.
_IDS = (
    "category_ids_shifted", "category_ids_positions", "category_ids_type", "category_ids_names", "classes_renamed",
    "classes_permuted"
)  # fmt: skip

#: Codes of causes that concern all categories.
_WHOLE = ("category_ids_shifted", "category_ids_positions")

#: Minimum number of detections on objects for a category to be compared.
_FEWEST = 5

#: Maximum p-value, under random labels, for categories to be reported as moved. A category is moved if most of its
#: detections lie on objects of another category.
_CHANCE = 1e-4


def check(facts: Facts) -> Iterator[Finding]:
    """Check for categories that do not match, and for categories without objects or detections."""
    truth = facts.truth.table
    assert isinstance(truth, GroundTruth)
    yield from _repeated(facts, truth)
    if facts.found is not None:
        yield from _mapped(facts, facts.found, truth)
    objects = np.bincount(truth.categories.codes[~truth.crowd], minlength=truth.categories.ids.size)
    if not facts.schema and (objects == 0).any() and len(truth):
        yield _of_categories("categories_without_objects", truth, objects == 0)
    if facts.found is not None and not facts.caused("detections", *_IDS) and len(facts.found):
        yield from _undetected(facts, truth)


def explained(facts: Facts, findings: list[Finding]) -> list[Finding]:
    """Repeat the check of categories without detections if some categories name the same class as another one; return
    the other findings unchanged.
    """
    truth = facts.truth.table
    if not facts.split or not isinstance(truth, GroundTruth):
        return findings
    made = list(_undetected(facts, truth))
    return [other for one in findings for other in (made if one.code == "categories_without_detections" else [one])]


def _undetected(facts: Facts, truth: GroundTruth) -> Iterator[Finding]:
    """Yield the finding of categories without detections, unless another category names the same class."""
    objects = np.bincount(truth.categories.codes[~truth.crowd], minlength=truth.categories.ids.size)
    place = locate(facts.detections.categories.ids, truth.categories.ids)
    known = place[facts.detections.categories.codes]
    detections = np.bincount(known[known >= 0], minlength=truth.categories.ids.size)
    without = (detections == 0) & ((objects > 0) | facts.schema)
    every = bool(without.all())
    without[list(facts.split)] = False
    if without.any() and not every:
        words = "{many}" if facts.schema else "{many} with objects to find"
        yield _of_categories("categories_without_detections", truth, without, words)


def _of_categories(code: str, truth: GroundTruth, which: NDArray[np.bool_], words: str = "{many}") -> Finding:
    at = np.flatnonzero(which).tolist()
    shown = [truth.categories.names[place] for place in at]
    ids = [truth.categories.ids[place].item() for place in at[:10]]
    return found(code, len(at), "category", records=ids, named="category", more=names(shown), words=words)


def plain(name: str) -> str:
    """Return a normalised name: lower case, without separators of words."""
    # Spaces between digits, signs before digits, and signs at the end (as in "C++") may be the only difference between
    # two classes, so they are kept.
    return re.sub(r"(?<!\d)[\s_]+|[\s_]+(?!\d)|(?<=\w)[-./](?=[^\W\d_])", "", name.casefold())


def _repeated(facts: Facts, truth: GroundTruth) -> Iterator[Finding]:
    """Yield findings of categories that share a name or are listed twice."""
    first: dict[str, int] = {}
    again = []
    for place, name in enumerate(truth.categories.names):
        key = plain(name) or name
        if first.setdefault(key, place) != place:
            again.append(place)
    listed = Counter(facts.truth.inspected.categories if facts.truth.inspected is not None else [])
    own = dict(zip(truth.categories.ids.tolist(), truth.categories.names, strict=True))
    ids = [truth.categories.ids[place].item() for place in again]
    ids += [one for one, times in listed.items() if times > 1 and one not in ids]
    if ids:
        more = names(own.get(one, one) for one in ids)
        yield found("repeated_categories", len(ids), "category", records=ids, named="category", more=more)


def _mapped(facts: Facts, side: Side, truth: GroundTruth) -> Iterator[Finding]:
    """Yield findings of detected categories that the ground truth lacks or has under other ids."""
    table = facts.detections.categories
    counts = np.bincount(table.codes, minlength=table.ids.size)
    own = locate(table.ids, truth.categories.ids)
    unknown = own < 0
    moved = _moved(facts, own)
    weight = int(counts[list(moved)].sum()) if moved else 0
    written = _written_otherwise(side, truth, unknown)
    if written is None and facts.agreement is None and unknown.any():
        alone = by_ids_alone(table.ids, truth.categories.ids, "category_ids")
        written = None if alone is None else (*alone, None)
    if written is not None:
        code, more, strange = written
        facts.causes.add(("detections", code))
        if strange is None:
            yield found(code, table.codes.size, "detection", more=more)
            return
        names_of = _raw(side) or facts.detections
        rows = np.isin(names_of.categories.ids, strange)[names_of.categories.codes]
        # If detections on unknown images were dropped, no records are named, because rows of `names_of` are not rows of
        # `side`.
        where = side.records(rows) if rows.size == len(side) else {}
        yield found(code, int(rows.sum()), "detection", more=more, **where)
        others = [one for one in _strange_names(side, truth, unknown) if one not in strange]
        if others:
            count = int(np.isin(names_of.categories.ids, others)[names_of.categories.codes].sum())
            said = names(others)
            yield found("unknown_categories", count, "detection", records=others, named="category", more=said)
        return
    if moved:
        code, more = _way(facts, truth, moved, own)
        facts.causes.add(("detections", code))
        rows = np.isin(table.codes, list(moved))
        if code in _WHOLE:  # excluding categories whose ids are already right
            rows = ~_settled(facts.agreement, own)[table.codes]
            weight = int(rows.sum())
        yield found(code, weight, "detection", more=more, **side.records(rows))
    left = unknown & ~np.isin(np.arange(table.ids.size), list(moved))
    if left.any() and not facts.caused("detections", *_WHOLE):
        shown = table.ids[left].tolist()
        shown = shown if _raw(side) is None else _strange_names(side, truth, left) or shown
        said = names(shown)
        yield found(
            "unknown_categories", int(counts[left].sum()), "detection", records=shown, named="category", more=said
        )
    if facts.agreement is not None and not facts.caused("detections", *_IDS, "no_agreement"):
        yield from _disagreeing(facts, own)


def _raw(side: Side) -> Detections | None:
    """Return the detections with category names as in the file, if names were converted to numbers; else None."""
    return side.raw if side.raw is not None and side.raw.categories.ids.dtype.kind == "U" else None


def _strange_names(side: Side, truth: GroundTruth, unknown: NDArray[np.bool_]) -> list[Any]:
    """Return the categories that the ground truth lacks, by their names in the file if known."""
    raw = _raw(side)
    if raw is None:
        return list(side.table.categories.ids[unknown].tolist())
    theirs = {*truth.categories.names, *map(str, truth.categories.ids.tolist())}
    return [one for one in raw.categories.ids.tolist() if one not in theirs]


def _written_otherwise(
    side: Side, truth: GroundTruth, unknown: NDArray[np.bool_]
) -> tuple[str, str, list[Any] | None] | None:
    """Return code, detail and categories of a finding if other types or spellings explain unknown categories, else None."""
    known, called = truth.categories.ids.tolist(), truth.categories.names
    ids = _strange_names(side, truth, unknown) if unknown.any() and known else []
    if not ids:
        return None
    text = isinstance(ids[0], str)
    by_text = {str(one): one for one in known}
    by_name = dict(zip(called, known, strict=True))
    ways: list[tuple[str, dict[str, Any], Any]] = []
    if text != isinstance(known[0], str):
        ways.append(("category_ids_type", by_text, str))
        if text:
            ways.append(("category_ids_names", by_name, str))
    elif text:
        ways.append(("category_ids_names", by_name, str))
    if text:
        ways.append(("classes_renamed", {plain(name): one for name, one in by_name.items()}, plain))
    for code, places, key in ways:
        hits = [(one, places[key(one)]) for one in ids if key(one) in places]
        if hits and (2 * len(hits) > len(ids) or code == "classes_renamed"):
            said = ", ".join(f"{names([repr(a)])} is {names([repr(b)])}" for a, b in hits[:3])
            return code, said, [one for one, _ in hits]
    return None


def _moved(facts: Facts, own: NDArray[np.int64]) -> dict[int, int]:
    """Map each category whose detections lie mostly on objects of one other category to that other category."""
    if facts.agreement is None:
        return {}
    matrix = facts.agreement.confusion
    if not matrix.total:
        return {}
    rows, columns, best = matrix.of_rows, matrix.of_columns, matrix.best
    at = np.arange(matrix.shape[0])
    most, right = matrix.at(at, best), matrix.at(at, own)
    moved = (best != own) & (rows >= _FEWEST) & (2 * most >= rows) & (most > 2 * right) & (2 * most >= columns[best])
    # A single class may seem moved by chance or because two classes look alike. Therefore, few detections of the class
    # whose objects are hit may lie on objects of the same class.
    place = {int(code): row for row, code in enumerate(own) if code >= 0}
    for row in np.flatnonzero(moved).tolist():
        other = place.get(int(best[row]))
        if other is not None and 2 * matrix.at(other, best[row]) > most[row]:
            moved[row] = False
    return {row: int(best[row]) for row in _beyond_chance(facts.agreement.distinct, moved, best)}


def _settled(agreement: Agreement | None, own: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mask of the categories whose detections lie mostly on objects of the same category, shape (categories,)."""
    assert agreement is not None
    matrix = agreement.confusion
    right = matrix.at(np.arange(own.size), own)
    return np.asarray((matrix.best == own) & (matrix.of_rows >= _FEWEST) & (2 * right >= matrix.of_rows))


def _beyond_chance(matrix: Counts, moved: NDArray[np.bool_], best: NDArray[np.int64]) -> list[int]:
    """Return the rows in `moved` if random labels do not explain their counts, else an empty list."""
    # Chernoff's bound on the probability of a row's count in one column, times the number of columns, times the number
    # of ways to choose the rows.
    held, share = matrix.of_rows, matrix.of_columns / max(matrix.total, 1)
    at = np.flatnonzero(moved & (held > 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        part, by_chance = matrix.at(at, best[at]) / held[at], share[best[at]]
        apart = part * np.log(part / by_chance) + np.where(
            part < 1, (1 - part) * np.log((1 - part) / (1 - by_chance)), 0
        )
    logs = np.where(part > by_chance, -held[at] * apart, 0.0) + math.log(max(matrix.shape[1], 1))
    at, logs = at[logs < 0], logs[logs < 0]
    count = matrix.shape[0]
    choices = math.lgamma(count + 1) - math.lgamma(at.size + 1) - math.lgamma(count - at.size + 1)
    return at.tolist() if logs.sum() + choices < math.log(_CHANCE) else []


def _way(facts: Facts, truth: GroundTruth, moved: dict[int, int], own: NDArray[np.int64]) -> tuple[str, str]:
    """Return code and detail of the finding of moved categories: ids off by one, positions in a list, renamed, or
    permuted.
    """
    assert facts.agreement is not None
    matrix, table = facts.agreement.confusion, facts.detections.categories
    weights = matrix.at(list(moved), list(moved.values())).tolist()
    ids = table.ids[list(moved)].tolist(), truth.categories.ids[list(moved.values())].tolist()
    pairs = list(zip(*ids, weights, moved.values(), strict=True))
    total = sum(weight for _, _, weight, _ in pairs)
    called = dict(zip(truth.categories.ids.tolist(), truth.categories.names, strict=True))
    if all(isinstance(a, int) and isinstance(b, int) for a, b, _, _ in pairs) and 2 * total > matrix.total:
        for shift in (1, -1):
            if sum(weight for a, b, weight, _ in pairs if b - a == shift) >= 0.8 * total:
                return "category_ids_shifted", f"each {'+' if shift > 0 else '-'} 1 is the one that is meant"
    if all(isinstance(a, int) for a, _, _, _ in pairs) and len(pairs) > 1:
        for first in (0, 1):  # a few classes fit positions in a list by chance, so positions must fit most detections
            places = np.where((table.ids >= first) & (table.ids < matrix.shape[1] + first), table.ids - first, -1)
            whole = 2 * int(matrix.at(np.arange(own.size), places).sum()) > matrix.total
            if whole and sum(weight for a, _, weight, place in pairs if place + first == a) >= 0.8 * total:
                return "category_ids_positions", f"counted from {first}, in the order of the ids"
    shown = [f"{_called(a, called)} is {_called(b, called)}" for a, b, _, _ in sorted(pairs, key=lambda one: -one[2])]
    unknown = sum(own[row] < 0 for row in moved)
    return "classes_renamed" if 2 * unknown >= len(moved) else "classes_permuted", names(shown, 8)


def _called(value: Any, called: dict[Any, str]) -> str:
    name = called.get(value)
    return str(value) if name is None or name == str(value) else f"{value} ({name})"


def _disagreeing(facts: Facts, own: NDArray[np.int64]) -> Iterator[Finding]:
    """Yield a finding if most detections on objects have another category than the object."""
    assert facts.agreement is not None
    matrix = facts.agreement.confusion
    total = int(matrix.of_rows[own >= 0].sum())  # categories that the ground truth lacks are reported elsewhere
    if total < 30 or matrix.shape[1] < 2 or facts.agreement.by_chance:
        return
    right = int(matrix.at(np.arange(own.size), own).sum())
    if 2 * right < total:
        more = f"of {total:,} that were looked at, {right:,} have the category of the object that they lie on"
        facts.causes.add(("detections", "classes_disagree"))
        yield found("classes_disagree", total - right, "detection", more=more, words=AT_LEAST)
