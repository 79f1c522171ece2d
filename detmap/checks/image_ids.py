"""Checks of image ids: whether ground truth and detections use the same ids, and repeated images."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.checks.context import Facts
from detmap.checks.findings import AT_LEAST, Finding, found, names
from detmap.checks.inputs import Side
from detmap.checks.rewritten_ids import rewritten
from detmap.data.ids import locate
from detmap.data.tables import Detections, GroundTruth
from detmap.formats.file_names import resolve_images, stem
from detmap.shapes.kinds import TEMPORAL

#: Codes of findings about image ids that do not match.
CAUSES = ("image_ids_shifted", "image_ids_positions", "image_ids_rotated", "image_ids_type", "image_ids_names")

#: Minimum number of ids that an explanation must cover, because a few ids fit by chance.
_FEWEST = 3

#: Minimum number of equal boxes for two images to be considered the same.
_SHARED = 3

#: A box that occurs at least this number of times, such as a tool's default, is ignored when images are compared. The
#: same image is rarely listed this often.
_EVERYWHERE = 20


def check(facts: Facts) -> Iterator[Finding]:
    """Check for ids of images that do not match, and for repeated images."""
    if facts.found is not None:
        yield from _unmatched(facts, facts.found)
    yield from _twice(facts)


def _unmatched(facts: Facts, side: Side) -> Iterator[Finding]:
    table = side.table if side.raw is None or not side.unknown else side.raw
    strange = _strange(table, facts.truth.on, named=table is side.raw)
    unknown = max(side.unknown, 0 if table is side.raw else int(strange[table.images.codes].sum()))
    gain = facts.agreement.of_images if facts.agreement is not None else None
    if gain is not None:
        facts.causes.add(("detections", gain.code))
        rows, more = facts.rows_of(gain)
        estimate = max(rows.size, unknown)
        words = AT_LEAST if estimate < len(side) + side.unknown else "{many}"
        yield found(gain.code, estimate, "detection", more=more, words=words, **side.records(rows))
    elif unknown:
        counts = np.bincount(table.images.codes, minlength=strange.size)
        held = dict(zip(table.images.ids[strange].tolist(), counts[strange].tolist(), strict=True))
        # If `facts.agreement` exists, the boxes were compared and shifted ids would have been found there.
        alone = (
            by_ids_alone(table.images.ids, facts.truth.on.images.ids, "image_ids") if facts.agreement is None else None
        )
        said = _other_ids(list(held), table.images.ids.size, facts.truth, partial(_borne_out, facts, side, table))
        if said is None and alone is not None:
            facts.causes.add(("detections", alone[0]))
            every = len(table) + (0 if table is side.raw else side.unknown)
            yield found(alone[0], every, "detection", more=alone[1], records=held, named="image")
            return
        changed = _changed(facts, side, table, list(held))
        if changed is not None and len(changed[2]) > (0 if said is None else len(said[2])):
            said, facts.renamed = changed[:3], changed[3]
        code, more, those = said or ("", "", set[Any]())
        left = [one for one in held if one not in those]
        explained = sum(held[one] for one in those) if left or said is None else unknown
        others = "unknown_videos" if TEMPORAL in facts.truth.on.kinds else "unknown_images"
        for name, about, ids in ((code, explained, sorted(those)), (others, unknown - explained, left)):
            if about:
                facts.causes.add(("detections", name))
                yield found(name, about, "detection", more=more if name == code else "", records=ids, named="image")


def _strange(table: Detections | GroundTruth, truth: GroundTruth, named: bool) -> NDArray[np.bool_]:
    """Mask of the image ids that the ground truth lacks, shape (ids,); with `named`, ids are also looked up as file
    names.
    """
    ids = table.images.ids
    unknown = locate(ids, truth.images.ids) < 0
    if named and ids.dtype.kind == "U" and unknown.any():
        resolved = resolve_images(ids.tolist(), truth, "ignore", table.source)
        unknown &= np.array([one is None for one in resolved], np.bool_)
    return np.asarray(unknown)


def _other_ids(
    strange: list[Any], count: int, truth: Side, borne_out: Callable[[dict[Any, Any]], bool]
) -> tuple[str, str, set[Any]] | None:
    """Return code and detail of a finding, and the unknown ids that it explains; None if most unknown ids stay
    unexplained.
    """
    # One or two of many ids can fit by chance. Different ids must map to different images. Numbers in names can come from
    # another data set, so boxes must confirm a mapping by numbers.
    known = truth.on.images.ids.tolist()
    if not strange or not known:
        return None
    ways: list[tuple[str, dict[Any, Any], Callable[[Any], Any]]] = []
    if isinstance(strange[0], str) != isinstance(known[0], str):
        ways.append(("image_ids_type", {_canonical(one): one for one in known}, _canonical))
    file_names = truth.on.images.names
    if file_names is not None:
        pairs = [(name, one) for name, one in zip(file_names, known, strict=True) if name]
        ways.append(("image_ids_names", {base_name(name): one for name, one in pairs}, base_name))
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
        if code == "image_ids_names" and len({one for _, one in hits}) < len(hits):
            continue
        if key is _number and not (_numbered_alike(strange) and borne_out(dict(hits))):
            continue
        if 2 * len(hits) > len(strange) and (len(hits) >= _FEWEST or len(strange) == count or code == "image_ids_type"):
            return code, f"{names([repr(hits[0][0])])} is {names([repr(hits[0][1])])}", {one for one, _ in hits}
    return None


def _changed(
    facts: Facts, side: Side, table: Detections | GroundTruth, strange: list[Any]
) -> tuple[str, str, set[Any], NDArray[np.bool_]] | None:
    """Return the finding of unknown ids that are changed ids of images without detections, else None. The finding
    consists of its code, its detail, the unknown ids that it explains, and a mask of the images that it explains.
    """
    known = facts.truth.on.images.ids
    none = np.bincount(side.image[side.image >= 0], minlength=known.size) == 0
    made = rewritten(strange, known[none].tolist(), known[~none].tolist(), table.images.ids.tolist())
    if made is None or not _borne_out(facts, side, table, made.meant):
        return None
    one = next(iter(made.meant))
    count, ids = f"{len(made.meant):,} of {len(strange):,}", "are ids of images without detections"
    more = f"{made.says}: {count} unknown ids {ids} then, as {names([repr(one)])} is {names([repr(made.meant[one])])}"
    others = len(made.images) - len(made.meant)
    if others > 0:
        more += f"; {others:,} more images without detections would have the id of another image"
    return "image_ids_rewritten", more, made.ids, np.isin(known, np.array(list(made.images), known.dtype))


def by_ids_alone(ids: NDArray[Any], known: NDArray[Any], what: str) -> tuple[str, str] | None:
    """Return code and detail of a finding if all ids are off by one, or are positions in the list of known ids; else
    None.
    """
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
    """Return an id as canonical text: "7" for 7, "007" and " 7"."""
    text = str(value).strip()
    return str(int(text)) if text.isascii() and text.isdigit() and len(text) < 30 else text


def base_name(value: Any) -> str:
    """Return a path without its folders."""
    return str(value).replace("\\", "/").rpartition("/")[2]


def _stem(value: Any) -> str:
    return stem(str(value))


#: Pattern of a name that ends in a number; the groups are the prefix, and the number without leading zeros.
_NUMBERED = re.compile(r"(.*?)0*([0-9]{1,29})", re.ASCII | re.DOTALL)


def _number(value: Any) -> str | None:
    """Return the number at the end of a name as text without leading zeros; None if text without letters precedes it."""
    match = _NUMBERED.fullmatch(stem(str(value)))
    if match is None or match[1][-1:].isdigit() or (match[1] and not re.search(r"[^\W\d_]", match[1])):
        return None  # in "0_1" neither number identifies the image
    return match[2]


def _borne_out(facts: Facts, side: Side, table: Detections | GroundTruth, images: dict[Any, Any]) -> bool:
    """Return whether boxes confirm a mapping of image ids; True if there are no boxes to compare."""
    if facts.agreement is None or table is not side.table:
        return True
    known = facts.truth.on.images.ids
    places = np.full(table.images.ids.size, -1)
    listed = table.images.ids.tolist()
    at = [place for place, one in enumerate(listed) if one in images]
    places[at] = locate(np.array([images[listed[place]] for place in at], known.dtype), known)
    rows = facts.agreement.rows
    on = places[table.images.codes[rows]]
    return facts.agreement.lies_on(on[on >= 0], side.boxes[rows[on >= 0]])


def _numbered_alike(ids: Sequence[Any]) -> bool:
    """Return whether most names consist of the same prefix and a number, unlike "cat1_1" and "cat2_1"."""
    matches = [_NUMBERED.fullmatch(stem(str(one))) for one in ids]
    ahead = Counter(match[1] for match in matches if match is not None)
    return max(ahead.values(), default=0) * 2 > len(ids)


# ------------------------------------------------------------------------------------------------------------ the same image


def signatures(
    side: Side,
    fewest: int = _SHARED,
    more: NDArray[np.uint64] | None = None,
    rows: NDArray[np.bool_] | None = None,
    columns: NDArray[np.float64] | None = None,
) -> NDArray[np.uint64]:
    """Return a hash for each image, equal for images with equal records; 0 for images with fewer than `fewest` records.

    `more` is an additional column to compare. If the mask `rows` is given, other records are ignored. If `columns` are
    given, they are compared instead of the boxes.
    """
    count = side.on.images.ids.size
    mixed = _marks(side, columns)
    mixed = mixed if more is None else mix(mixed ^ more)
    image = side.image
    if rows is not None:
        mixed, image = mixed[rows], image[rows]
    total = np.zeros(count, np.uint64)
    np.add.at(total, image, mixed)
    total[np.bincount(image, minlength=count) < fewest] = 0
    return total


def _marks(side: Side, columns: NDArray[np.float64] | None = None) -> NDArray[np.uint64]:
    """Return a hash of the category and the box (or other columns) of each record."""
    mixed = mix(side.table.categories.codes.astype(np.uint64) + np.uint64(1))
    for column in side.columns if columns is None else columns:
        mixed = mix(mixed ^ (column + 0.0).view(np.uint64))
    return mixed


def tells(side: Side) -> NDArray[np.bool_]:
    """Mask of the records by which images are compared. Boxes that cover the whole image, or that many images share, are
    excluded.
    """
    marks = _marks(side)
    ascending = np.sort(marks)
    last = ascending[_EVERYWHERE - 1 :]
    often = last[last == ascending[: last.size]]
    return np.asarray(~side.whole & ~np.isin(marks, often) if often.size else ~side.whole)


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers whose every bit depends on every input bit (the finaliser of splitmix64)."""
    values = values ^ (values >> np.uint64(30))
    with np.errstate(over="ignore"):
        values *= np.uint64(0xBF58476D1CE4E5B9)
        values ^= values >> np.uint64(27)
        values *= np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
    return np.asarray(values)


def clean_name(name: str) -> str:
    """Return a normalised file name, without parts such as ``./``."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    return "/".join(parts)


def _same_records(facts: Facts) -> NDArray[np.bool_]:
    """Mask of the images with exactly the objects of an earlier image, shape (images,).

    Two equal objects suffice if exactly two images have them and the images are not consecutive, because objects at rest
    in a video are equal on many consecutive images. One equal object suffices if all detections of the two images are
    equal, too.
    """
    count = facts.truth.on.images.ids.size
    out = np.zeros(count, np.bool_)
    if not len(facts.truth):
        return out
    telling = tells(facts.truth)
    for fewest in (_SHARED, _SHARED - 1, 1):
        marks = signatures(facts.truth, fewest, rows=None if fewest == 1 else telling)
        if fewest == 1:
            if facts.found is None or not len(facts.found):
                break
            scores = facts.detections.scores
            found_on = signatures(facts.found, 1, (scores + 0.0).view(np.uint64), facts.found.image >= 0)
            marks = np.where((marks > 0) & (found_on > 0), mix(marks ^ mix(found_on)), np.uint64(0))
        order = np.argsort(marks, kind="stable")
        order = order[marks[order] > 0]
        same = marks[order[1:]] == marks[order[:-1]]
        if fewest == _SHARED - 1:  # only pairs of images that are not consecutive
            beside = np.concatenate([[False], same, [False]])
            same = same & ~beside[:-2] & ~beside[2:] & (np.diff(order) > 1)
        out[order[1:][same]] = True
    return out


def _mirrored(side: Side) -> NDArray[np.bool_]:
    """Mask of the images with the mirrored objects of an earlier image. Only objects in `tells` are compared, at least
    two per image.
    """
    x, y, w, h = side.columns
    width = side.sizes[:, 0] + side.inclusive
    known = tells(side) & np.isfinite(width)
    if not known.any():
        return np.zeros(side.on.images.ids.size, np.bool_)
    turned = np.where(known, width, 0) - x - w
    own, other = (
        signatures(side, _SHARED - 1, rows=known, columns=np.stack([np.round(at, 2), y, w, h])) for at in (x, turned)
    )
    order = np.argsort(own, kind="stable")
    at = np.minimum(np.searchsorted(own[order], other), own.size - 1)
    return np.asarray((other > 0) & (own[order[at]] == other) & (order[at] < np.arange(own.size)))


def _twice(facts: Facts) -> Iterator[Finding]:
    """Yield findings of images with the same file name or the same objects."""
    images = facts.truth.on.images
    again: dict[int, str] = {}
    if images.names is not None:
        first: dict[str, int] = {}
        for place, name in enumerate(map(clean_name, images.names)):
            if name and first.setdefault(name, place) != place:
                again[place] = name
    same = _same_records(facts)
    mirrored = _mirrored(facts.truth) & ~same if len(facts.truth) else same & False
    for place in np.flatnonzero(same | mirrored).tolist():
        again.setdefault(place, "")
    if again:
        shown = [images.ids[place].item() for place in sorted(again)]
        named = [name for _, name in sorted(again.items()) if name]
        more = f"files {names(named)}" if named else "by their objects, which are the same box by box"
        if mirrored.any():
            said = f"{np.count_nonzero(mirrored):,} by their objects, which are mirrored"
            more = f"{more}; {said}" if named or same.any() else said
        yield found("same_image_twice", len(again), "image", records=shown, named="image", more=more)
    inspected = facts.truth.inspected
    if inspected is not None:
        repeated_ids = [one for one, count in Counter(inspected.images).items() if count > 1]
        if repeated_ids:
            yield found("repeated_image_ids", len(repeated_ids), "image", records=repeated_ids, named="image")
    repeats = facts.truth.table.notices.get("duplicate_annotation_ids", 0)
    if repeats:
        yield found("repeated_ids", repeats, "annotation")
