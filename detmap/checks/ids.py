"""Ids of images: whether both sides mean the same images, and each image once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.checks.facts import Facts
from detmap.checks.findings import Finding, found, names
from detmap.checks.sides import Side
from detmap.formats._names import resolve_images, stem
from detmap.ids import locate
from detmap.tables import Detections, GroundTruth

#: What may be wrong with ids of images.
CAUSES = ("image_ids_shifted", "image_ids_positions", "image_ids_type", "image_ids_names")

#: So many ids must be explained to explain them all.
_FEWEST = 3

#: Objects that two images must share, box by box, to be one image.
_SHARED = 3


def check(facts: Facts) -> Iterator[Finding]:
    """Look for ids of images that do not match, and for images that are there twice."""
    if facts.found is not None:
        yield from _unmatched(facts, facts.found)
    yield from _twice(facts)
    if facts.train is not None:
        yield from _leakage(facts, facts.train)


def _unmatched(facts: Facts, side: Side) -> Iterator[Finding]:
    table = side.table if side.raw is None or not side.unknown else side.raw
    strange = _strange(table, facts.truth.on, named=table is side.raw)
    unknown = max(side.unknown, 0 if table is side.raw else int(strange[table.images.codes].sum()))
    gain = facts.agreement.of_images if facts.agreement is not None else None
    if gain is not None:
        facts.causes.add(("detections", gain.code))
        estimate = max(gain.gained.size, unknown)
        yield found(gain.code, estimate, "detection", more=gain.more, **side.records(np.sort(gain.gained)))
    elif unknown:
        ids = table.images.ids[strange].tolist()
        said = _other_ids(ids, table.images.ids.size, facts.truth)
        if said is None and facts.agreement is None:  # else boxes would have said it
            said = by_ids_alone(table.images.ids, facts.truth.on.images.ids, "image_ids")
        code, more = said or ("unknown_images", "")
        facts.causes.add(("detections", code))
        yield found(code, unknown, "detection", more=more, records=ids, named="image")


def _strange(table: Detections | GroundTruth, truth: GroundTruth, named: bool) -> NDArray[np.bool_]:
    """Return which ids of images the ground truth does not have; `named`: looked up as formats do that go by names."""
    ids = table.images.ids
    unknown = locate(ids, truth.images.ids) < 0
    if named and ids.dtype.kind == "U" and unknown.any():
        resolved = resolve_images(ids.tolist(), truth, "ignore", table.source)
        unknown &= np.array([one is None for one in resolved], np.bool_)
    return np.asarray(unknown)


def _other_ids(strange: list[Any], count: int, truth: Side) -> tuple[str, str] | None:
    """Return why ids are not among those of the images, if most of those that are not are among something else.

    One or two of many may be so by chance.
    """
    known = truth.on.images.ids.tolist()
    if not strange or not known:
        return None
    ways: list[tuple[str, dict[Any, Any], Callable[[Any], Any]]] = []
    if isinstance(strange[0], str) != isinstance(known[0], str):
        ways.append(("image_ids_type", {_canonical(one): one for one in known}, _canonical))
    file_names = truth.on.images.names
    if file_names is not None:
        pairs = [(name, one) for name, one in zip(file_names, known, strict=True) if name]
        ways.append(("image_ids_names", {_base(name): one for name, one in pairs}, _base))
        ways.append(("image_ids_names", {stem(name): one for name, one in pairs}, _stem))
        ways.append(("image_ids_names", {_number(name): one for name, one in pairs}, _number))
    if isinstance(known[0], str):
        ways.append(("image_ids_names", {stem(one): one for one in known}, _stem))
        ways.append(("image_ids_names", {_number(one): one for one in known}, _number))
    else:
        ways.append(("image_ids_names", {str(one): one for one in known}, _number))
    for code, places, key in ways:
        places.pop(None, None)
        hits = [(one, places[key(one)]) for one in strange if key(one) in places]
        if 2 * len(hits) > len(strange) and (len(hits) >= _FEWEST or len(strange) == count or code == "image_ids_type"):
            return code, f"{names([repr(hits[0][0])])} is {names([repr(hits[0][1])])}"
    return None


def by_ids_alone(ids: NDArray[Any], known: NDArray[Any], what: str) -> tuple[str, str] | None:
    """Return how ids would all be known if they were meant otherwise, where not all are: off by one, or places."""
    if ids.dtype.kind != "i" or known.dtype.kind != "i" or min(ids.size, known.size) < _FEWEST:
        return None
    for shift in (1, -1):
        if (locate(ids + shift, known) >= 0).all():
            return f"{what}_shifted", f"each {'+' if shift > 0 else '-'} 1 is one that is there"
    for first in (0, 1):
        inside = (ids >= first) & (ids < known.size + first)
        if inside.all() and 2 * np.count_nonzero(locate(ids, known) < 0) > ids.size:
            return f"{what}_positions", f"counted from {first}, in the order of the ids"
    return None


def _canonical(value: Any) -> str:
    """Return an id as text, "7" for 7, "007" and " 7"."""
    text = str(value).strip()
    return str(int(text)) if text.isascii() and text.isdigit() and len(text) < 30 else text


def _base(value: Any) -> str:
    return str(value).replace("\\", "/").rpartition("/")[2]


def _stem(value: Any) -> str:
    return stem(str(value))


def _number(value: Any) -> str | None:
    """Return the last number in a name, without zeros ahead, as text."""
    text = stem(str(value))
    digits = ""
    for letter in reversed(text):
        if letter.isascii() and letter.isdigit():
            digits = letter + digits
        elif digits:
            break
    return str(int(digits)) if digits and len(digits) < 30 else None


# ------------------------------------------------------------------------------------------------------------ the same image


def signatures(side: Side) -> NDArray[np.uint64]:
    """Return a number for each image that two images share whose objects are the same; 0 where there are too few to say."""
    count = side.on.images.ids.size
    category = side.table.categories.codes.astype(np.uint64)
    mixed = mix(category + np.uint64(1))
    for column in side.columns:
        mixed = mix(mixed ^ (column + 0.0).view(np.uint64))
    total = np.zeros(count, np.uint64)
    np.add.at(total, side.image, mixed)
    different = np.bincount(side.image, minlength=count)
    total[different < _SHARED] = 0
    return total


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers in which every bit depends on every bit (the finaliser of splitmix64)."""
    values = values ^ (values >> np.uint64(30))
    with np.errstate(over="ignore"):
        values *= np.uint64(0xBF58476D1CE4E5B9)
        values ^= values >> np.uint64(27)
        values *= np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
    return np.asarray(values)


def _clean(name: str) -> str:
    """Return the name of a file without what changes nothing of its place."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    return "/".join(parts)


def _twice(facts: Facts) -> Iterator[Finding]:
    """Images of one file name, or with the same objects."""
    images = facts.truth.on.images
    again: dict[int, str] = {}
    if images.names is not None:
        first: dict[str, int] = {}
        for place, name in enumerate(map(_clean, images.names)):
            if name and first.setdefault(name, place) != place:
                again[place] = name
    if len(facts.truth):
        marks = signatures(facts.truth)
        _, inverse = np.unique(marks, return_inverse=True)
        order = np.argsort(inverse, kind="stable")
        repeated = np.zeros(marks.size, np.bool_)
        repeated[order[1:]] = inverse[order[1:]] == inverse[order[:-1]]
        for place in np.flatnonzero(repeated & (marks > 0)).tolist():
            again.setdefault(place, "")
    if again:
        shown = [images.ids[place].item() for place in sorted(again)]
        named = [name for _, name in sorted(again.items()) if name]
        more = f"files {names(named)}" if named else "by their objects, which are the same box by box"
        yield found("same_image_twice", len(again), "image", records=shown, named="image", more=more)
    inspected = facts.truth.inspected
    if inspected is not None:
        repeated_ids = _repeated(inspected.images)
        if repeated_ids:
            extra = sum(count - 1 for count in repeated_ids.values())
            yield found("repeated_image_ids", extra, "image", records=list(repeated_ids), named="image")
    repeats = facts.truth.table.notices.get("duplicate_annotation_ids", 0)
    if repeats:
        yield found("repeated_ids", repeats, "annotation")


def _repeated(values: Sequence[Any]) -> dict[Any, int]:
    if len(set(values)) == len(values):
        return {}
    return {value: count for value, count in Counter(values).items() if count > 1}


def _leakage(facts: Facts, train: Side) -> Iterator[Finding]:
    """Images that another ground truth has too, by the names of their files or by their objects."""
    own, others = facts.truth.on.images, train.on.images
    shared: dict[int, str] = {}
    here, there = _file_names(facts.truth), _file_names(train)
    folders = all(any("/" in name for name in side.values()) for side in (here, there))
    known = {name if folders else _base(name): place for place, name in there.items()}
    for place, name in here.items():
        other = known.get(name if folders else _base(name))
        if other is not None and _one_size(own.sizes, place, others.sizes, other):
            shared[place] = name
    if len(facts.truth) and len(train):
        mine, theirs = signatures(facts.truth), signatures(train)
        same = np.isin(mine, theirs[theirs > 0]) & (mine > 0)
        same &= facts.truth.on.categories.names == train.on.categories.names
        for place in np.flatnonzero(same).tolist():
            shared.setdefault(place, "")
    if shared:
        named = [name for _, name in sorted(shared.items()) if name]
        more = f"files {names(named)}" if named else "by their objects, which are the same box by box"
        ids = [own.ids[place].item() for place in sorted(shared)]
        yield found("leakage", len(shared), "image", records=ids, named="image", more=more)


def _file_names(side: Side) -> dict[int, str]:
    """Return the name of each image's file by its place; ids that are names stand for them."""
    images = side.on.images
    listed = images.names
    if listed is None and images.ids.dtype.kind == "U":
        listed = tuple(images.ids.tolist())
    return {place: _clean(name) for place, name in enumerate(listed or ()) if name}


def _one_size(own: NDArray[Any] | None, place: int, others: NDArray[Any] | None, other: int) -> bool:
    """Return whether two images can be one: nothing says that their sizes differ."""
    if own is None or others is None or not own[place].all() or not others[other].all():
        return True
    return bool((own[place] == others[other]).all())
