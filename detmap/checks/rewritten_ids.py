"""Image ids that were changed as text or as numbers, such as 5 instead of 50, so that they name unknown images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.checks.rates import tail

#: A change is tried on the ids of at most `_IMAGES` images without detections, and of as many with detections. Factors
#: and constants are derived from at most `_LOOKED_AT` unknown ids.
_IMAGES, _LOOKED_AT = 20_000, 40

#: Maximum p-value of the number of unknown ids that a change explains. The number expected by chance is twice the
#: number that follows from the images with detections. The expected number is at least 0.5, so that a change must
#: explain seven ids.
_CHANCE = 1e-5

#: Maximum number of characters that are cut off.
_CUT = 4

#: Maximum factor by which written ids differ from the right ids.
_FACTOR = 1_000

Change = Callable[[str], str | None]


class Rewritten(NamedTuple):
    """Unknown ids that are changed ids of images without detections."""

    #: The change in words.
    says: str
    #: The right image id for each unknown id; if several images have the same changed id, the first of them.
    meant: dict[Any, Any]
    #: All unknown ids that the change explains, including changed ids of images that have other detections.
    ids: set[Any]
    #: Ids of the images without detections whose changed id is in the file, even if it is the id of another image.
    images: set[Any]


def rewritten(
    strange: Sequence[Any], empty: Sequence[Any], full: Sequence[Any], written: Iterable[Any]
) -> Rewritten | None:
    """Return the change that explains most of the unknown ids `strange`; None if chance explains all changes.

    `empty` and `full` are the ids of the images without and with detections, and `written` are all ids in the file. A
    change is likely if it turns many ids of `empty` into unknown ids, but few ids of `full`.
    """
    rng = np.random.default_rng(0)
    empty, full = (_some(rng, ids, _IMAGES) for ids in (empty, full))
    of_text = {str(one): one for one in strange}
    present = {str(one) for one in written}
    numbers = all(isinstance(one, int) for one in (*strange[:1], *empty[:1]))
    best: Rewritten | None = None
    for says, change in _changes(list(of_text), [str(one) for one in empty], numbers):
        changed = [(one, change(str(one))) for one in empty]
        meant: dict[Any, Any] = {}
        for one, text in changed:
            if text in of_text:
                meant.setdefault(of_text[text], one)
        if 2 * len(meant) <= len(of_text) or (best is not None and len(meant) <= len(best.meant)):
            continue
        others = {change(str(one)) for one in full} & set(of_text)
        if tail(len(meant), 2 * len(others) * len(empty) / max(len(full), 1) + 0.5) <= _CHANCE:
            ids = {*meant, *(of_text[text] for text in others if text is not None)}
            best = Rewritten(says, meant, ids, {one for one, text in changed if text in present})
    return best


def _some(rng: np.random.Generator, ids: Sequence[Any], most: int) -> list[Any]:
    """Return the ids, or a random sample of `most` ids, in the given order."""
    if len(ids) <= most:
        return list(ids)
    return [ids[at] for at in np.sort(rng.permutation(len(ids))[:most]).tolist()]


def _changes(strange: list[str], empty: list[str], numbers: bool) -> Iterator[tuple[str, Change]]:
    """Yield changes of image ids, each with a description of the written ids. Numbers are returned without leading
    zeros.
    """

    def number(text: str) -> str | None:
        if not numbers:
            return text or None
        return str(int(text)) if text.isdigit() else None

    yield "zeros at the end are missing", lambda one: number(one.rstrip("0"))
    if not numbers:
        yield "zeros at the beginning are missing", lambda one: one.lstrip("0") or None
        yield "zeros at both ends are missing", lambda one: one.strip("0") or None
    for more, less, says in ((strange, empty, "too many"), (empty, strange, "missing")):
        whole = set(less)
        ahead, behind = Counter[tuple[str, int]](), Counter[str]()
        for one in more:
            for at in range(1, len(one)):
                rest = number(one[at:])
                if rest in whole:
                    ahead[one[:at], len(one) - at if rest != one[at:] else 0] += 1
                if number(one[:at]) in whole:
                    behind[one[at:]] += 1
        for (text, width), _ in ahead.most_common(2):
            yield f"{text!r} ahead of them is {says}", _ahead(text, width, number, more is strange)
        for text, _ in behind.most_common(2):
            yield f"{text!r} at the end of them is {says}", _behind(text, number, more is strange)
    if numbers:
        yield from _of_numbers(np.array([int(one) for one in strange]), np.array([int(one) for one in empty]))
    for count in range(1, _CUT + 1):
        said = "the last character is" if count == 1 else f"the last {count} characters are"
        yield f"{said} missing", lambda one, count=count: number(one[:-count])  # type: ignore[misc]


def _ahead(text: str, width: int, number: Change, added: bool) -> Change:
    """Return the change that adds (or removes) `text` ahead of an id that is filled with zeros to `width` characters."""
    if added:
        return lambda one: text + one.zfill(width)
    return lambda one: number(one[len(text) :]) if one.startswith(text) else None


def _behind(text: str, number: Change, added: bool) -> Change:
    """Return the change that adds (or removes) `text` at the end of an id."""
    if added:
        return lambda one: one + text
    return lambda one: number(one[: -len(text)]) if one.endswith(text) else None


def _of_numbers(strange: NDArray[np.int64], empty: NDArray[np.int64]) -> Iterator[tuple[str, Change]]:
    """Yield the multiplication, the division and the addition that explain the most ids in a sample of the unknown ids."""
    some = np.random.default_rng(0).permutation(strange)[:_LOOKED_AT, None]
    below, above = np.maximum(np.abs(empty), 1), np.maximum(np.abs(some), 1)
    factor = _most((some // below)[(some % below == 0) & (some // below > 1) & (some // below <= _FACTOR)])
    if factor is not None:
        yield f"they are {factor} times the ids that are meant", lambda one: str(int(one) * factor)
    share = _most((empty // above)[(empty % above == 0) & (empty // above > 1) & (empty // above <= _FACTOR)])
    if share is not None:
        yield (
            f"the ids that are meant are {share} times these",
            lambda one: str(int(one) // share) if int(one) % share == 0 else None,
        )
    constant = _most(some - empty)
    if constant:
        sign = "-" if constant > 0 else "+"
        yield f"each {sign} {abs(constant):,} is the one that is meant", lambda one: str(int(one) + constant)


def _most(values: NDArray[np.int64]) -> int | None:
    """Return the most frequent value; None if there is none."""
    if not values.size:
        return None
    numbers, held = np.unique(values, return_counts=True)
    return int(numbers[held.argmax()])
