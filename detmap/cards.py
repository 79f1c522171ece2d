"""Evaluation cards: files with the inputs, decisions and numbers of an evaluation, for verification.

A card holds hashes of the inputs, every decision, versions, counts, notices, and all numbers as decimal and hexadecimal
floats. A card is not a signature: only verification against the inputs detects a changed number with a recomputed
digest.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import detmap
from detmap.data.notices import describe
from detmap.decisions import decisions_of, default_of
from detmap.errors import InputError, shorten
from detmap.kernels import _ahead
from detmap.results import Result, to_markdown
from detmap.shapes import find
from detmap.shapes.kinds import BOXES

#: Version of the card format; earlier versions can be read.
FORM = 1

#: Members derived from the rest of a card, and recomputed when a card is checked.
_MADE = ("markdown", "bibtex", "digest")

#: Absolute tolerance for metrics of poses, because numpy's exp in OKS differs in the last bit between processors.
_POSES = 1e-9


class Difference(NamedTuple):
    """A difference between a card and its reproduction: the section of the card, the name, and both values."""

    part: str
    what: str
    card: str
    found: str


@dataclass(frozen=True)
class Numbers:
    """The parts of a card of several results."""

    rules: Any
    numbers: Mapping[str, float]
    notices: Mapping[str, int]
    arrays: Mapping[str, str]


def number(value: float) -> dict[str, str]:
    """Return a number in the form that cards use."""
    value = float(value)
    return {"decimal": repr(value), "hex": value.hex()}


def table_digest(table: Any) -> str:
    """Return the hash (SHA-256) of all scored columns of a table, independent of the file's format."""
    whole = hashlib.sha256()

    def add(name: str, value: Any) -> None:
        array = np.ascontiguousarray(value)
        kind = array.dtype.newbyteorder("<") if array.dtype.kind in "iuf" else array.dtype
        text = json.dumps([name, str(array.shape), array.tolist()]) if array.dtype.kind in "OU" else ""
        whole.update(f"{name}\0{array.shape}\0".encode())
        whole.update(text.encode() if text else array.astype(kind, copy=False).tobytes())

    for of in ("images", "categories"):
        ids = getattr(table, of)
        add(f"{of}.ids", ids.ids)
        add(f"{of}.codes", ids.codes)
    add("categories.names", np.array(getattr(table.categories, "names", ()), object))
    for name in ("scores", "areas", "crowd", "difficult", "group_of"):
        column = getattr(table, name, None)
        if column is not None:
            add(name, column)
    if getattr(table.categories, "frequencies", None) is not None:
        add("categories.frequencies", np.array(table.categories.frequencies, object))
    if getattr(table.images, "crowd_index", None) is not None:
        add("images.crowd_index", table.images.crowd_index)
    for named in ("more_scores", "part_flags"):
        for name, column in sorted(getattr(table, named, {}).items()):
            add(f"{named}.{name}", column)
    for name in ("negatives", "not_exhaustive", "present"):
        lists = getattr(table, name, None)
        for part in () if lists is None else ("images", "categories", "listed"):
            add(f"{name}.{part}", getattr(lists, part))
    for name, values in sorted(getattr(table, "fields", {}).items()):
        add(f"fields.{name}", values)
    for name, column in sorted(table.shapes.items()):
        for part, array in sorted(column.arrays().items()):
            add(f"{name}.{part}", array)
    return whole.hexdigest()


def beside_digest(source: Any, opened: Iterable[str]) -> str:
    """Return the hash (SHA-256) of further files that were opened to read the input `source`; "" if there are none.

    Further files are neither the input file nor in the input folder. The hash covers their contents and their paths
    relative to their common folder.
    """
    if isinstance(source, bytes):
        return ""
    root = os.path.realpath(source)
    paths = []
    for path in {os.path.realpath(one) for one in opened}:
        inside = os.path.isdir(root) and os.path.commonpath([path, root]) == root
        if path != root and not inside and os.path.isfile(path):
            paths.append(path)
    if not paths:
        return ""
    folder = os.path.commonpath([os.path.dirname(path) for path in paths])
    found = sorted((Path(os.path.relpath(path, folder)).as_posix(), file_digest(path)) for path in paths)
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()


def file_digest(source: Any) -> str:
    """Return the hash (SHA-256) of a file's bytes; for a folder, of the names and contents of all files in it."""
    if isinstance(source, bytes):
        return hashlib.sha256(source).hexdigest()
    whole, root = hashlib.sha256(), Path(source)
    listed = sorted(path for path in root.rglob("*") if path.is_file()) if root.is_dir() else [root]
    try:
        for path in listed:
            if path is not root:
                place = path.relative_to(root).as_posix().encode("utf-8", "surrogateescape")
                whole.update(b"%d %s %d\0" % (len(place), place, path.stat().st_size))
            with open(path, "rb") as file:
                while part := file.read(1 << 20):
                    whole.update(part)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=str(source)) from None
    return whole.hexdigest()


def input_of(role: str, path: str, source: Any, table: Any = None, opened: Iterable[str] = ()) -> dict[str, str]:
    """Return the card's entry for an input.

    `source` is the path of the input, or its bytes if it is a stream, which can be read only once. `opened` are the
    files that were read for the input.
    """
    made = {"role": role, "name": "standard input" if path == "-" else os.path.basename(str(path).rstrip("/")) or "/"}
    made["sha256"] = file_digest(source)
    if beside := beside_digest(source, opened):
        made["beside"] = beside
    return made if table is None else {**made, "content": table_digest(table)}


def make(
    command: str,
    result: Result | Numbers,
    inputs: Sequence[Mapping[str, Any]],
    options: Mapping[str, Any],
    counts: Mapping[str, int],
) -> dict[str, Any]:
    """Return the card of the result of a command.

    The entry of an input has ``role``, ``name`` and ``sha256``. The entry of a table also has ``content``, the hash of the
    data read. ``beside`` is the hash of further files that were read, such as YOLO's labels beside their ``data.yaml``.
    `options` are the other options of the command; `counts` are the numbers of detections, objects, images and so on.
    """
    if not isinstance(result, Numbers):
        rules = _rules(result)
        arrays = _arrays(result) if _same_bits(getattr(rules, "iou_type", None)) else {}
        result = Numbers(rules, dict(result), result.notices, arrays)
    rules = result.rules
    card: dict[str, Any] = {
        "card": FORM,
        "command": command,
        "versions": versions(),
        "inputs": [dict(one) for one in inputs],
        "options": _plain(options),
        "decisions": _plain({field.name: getattr(rules, field.name) for field in fields(rules)}),
        "counts": {name: int(count) for name, count in counts.items()},
        "notices": dict(sorted(result.notices.items())),
        "numbers": {name: number(value) for name, value in result.numbers.items()},
        "arrays": dict(result.arrays),
    }
    return finished(card)


def finished(card: dict[str, Any]) -> dict[str, Any]:
    """Return a card with its derived members: the digest, and the texts in Markdown and BibTeX."""
    card = {name: value for name, value in card.items() if name not in _MADE}
    digest = hashlib.sha256(_canonical(card)).hexdigest()
    return {**card, "digest": digest, "markdown": _markdown(card, digest), "bibtex": _bibtex(card, digest)}


def versions() -> dict[str, str]:
    """Return the versions of packages that can change a metric; for numba, the version that compiled the kernels."""
    found = {"detmap": detmap.__version__, "python": platform.python_version()}
    return {**found, "numpy": np.__version__, "numba": _ahead.numba_version()}


def to_json(card: Mapping[str, Any]) -> bytes:
    """Return the content of a card's file."""
    return (json.dumps(card, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def read(path: Any) -> dict[str, Any]:
    """Return the card in a file; raises `InputError` if this version cannot read a card in the file."""
    from detmap.reading.sources import held
    from detmap.reading.strict_json import parsed

    source, name = held(path), str(path)
    try:
        data = source if isinstance(source, bytes) else Path(source).read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=name) from None
    card = parsed(data, name)
    if not isinstance(card, dict) or type(card.get("card")) is not int:
        raise InputError("is no evaluation card", source=name, remedy="detmap eval … --card card.json writes one")
    if not 1 <= card["card"] <= FORM:
        problem = f"is a card of form {card['card']}, and this version reads forms up to {FORM}"
        raise InputError(problem, source=name, remedy="verify it with a newer version of detmap")
    shape = {"command": str, **dict.fromkeys(("versions", "options", "decisions", "counts", "notices"), dict)}
    shape |= {"inputs": list, "numbers": dict, "arrays": dict, **dict.fromkeys(_MADE, str)}
    for part, kind in shape.items():
        if not isinstance(card.get(part), kind):
            raise InputError(f"is no evaluation card: {part} is missing or of another kind", source=name)
    _check_keys(card, {"card", *shape}, name, None)
    _check_keys(card["versions"], set(versions()), name, "versions")
    for what, parts, known in (
        ("input", card["inputs"], _OF_INPUT),
        ("number", card["numbers"].values(), set(number(0.0))),
    ):
        for part in parts:
            if not isinstance(part, dict) or not all(isinstance(value, str) for value in part.values()):
                raise InputError("is no evaluation card: an input or number is not written as one", source=name)
            _check_keys(part, known, name, what)
    return card


def compare(card: Mapping[str, Any], again: Mapping[str, Any]) -> list[Difference]:
    """Return every difference between a card and a new card of the same evaluation, `again`.

    Names of inputs and versions of packages are not compared, because they do not change a result by themselves.
    """
    found = other_inputs(card["inputs"], again["inputs"])
    known = {**_defaults(again), **card["decisions"]}
    if card["command"] != again["command"]:
        found.append(Difference("command", "", card["command"], again["command"]))
    for part, mine in (("options", card["options"]), ("decisions", known)):
        found += _unequal(part, mine, again[part])
    for part in ("counts", "notices"):
        found += _unequal(part, card[part], again[part])
    rounded = not _same_bits(again["decisions"].get("iou_type"))
    for name in {**card["numbers"], **again["numbers"]}:
        mine, theirs = card["numbers"].get(name), again["numbers"].get(name)
        if mine != theirs and not (rounded and mine and theirs and _near(mine, theirs)):
            found.append(Difference("numbers", name, _shown(mine), _shown(theirs)))
    found += [
        one._replace(card=one.card[:20], found=one.found[:20])
        for one in _unequal("arrays", card["arrays"], again["arrays"])
    ]
    made = finished(dict(card))
    for part in _MADE:
        if card[part] != made[part]:
            found.append(
                Difference("card", part, "does not follow from the rest", "the card was changed after it was made")
            )
    return found


def incomparable(card: Mapping[str, Any], rules: Any, truth: Mapping[str, str]) -> list[Difference]:
    """Return the differences in decisions and ground truth between a card and an evaluation by `rules` on `truth`."""
    again = {"decisions": _plain({field.name: getattr(rules, field.name) for field in fields(rules)})}
    known = {**_defaults(again), **card["decisions"]}
    own = [one for one in card["inputs"] if one.get("role") == truth["role"]]
    same = "content" if "content" in truth and all("content" in one for one in own) else "sha256"
    return [*_unequal("decision", known, again["decisions"]), *other_inputs(own, [truth], (same,))]


def other_versions(card: Mapping[str, Any], again: Mapping[str, Any]) -> list[Difference]:
    """Return the differences in versions between a card and a new card, `again`."""
    return _unequal("versions", card["versions"], again["versions"])


def _rules(result: Any) -> Any:
    """Return the protocol or convention of a result."""
    return result.protocol if hasattr(result, "tally") else result.convention


def _arrays(result: Any) -> dict[str, str]:
    """Return the hashes of all arrays from which the metrics are computed."""
    found: dict[str, Any] = {}
    if hasattr(result, "tally"):
        found = {name: getattr(result, name) for name in result.HASHED}
    else:
        found = {f"per_query {name}": values for name, values in dict(result.per_query).items()}
    digests = {}
    for name, values in found.items():
        column = np.array(values, "<f8", order="C")
        column[np.isnan(column)] = np.nan  # normalise all NaN to one bit pattern
        digests[name] = hashlib.sha256(f"{column.shape}".encode() + column.tobytes()).hexdigest()
    return digests


def _plain(value: Any) -> Any:
    """Return a value for JSON, with floats as exact hexadecimal text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return value if value is None or isinstance(value, bool | int | str) else repr(value)


def _canonical(card: Mapping[str, Any]) -> bytes:
    return json.dumps(card, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def _defaults(again: Mapping[str, Any]) -> dict[str, Any]:
    """Return the decisions that older cards may lack, with their defaults."""
    from detmap.decisions import FIRST
    from detmap.detection.protocols import Protocol
    from detmap.retrieval.conventions import Convention

    of: Any = Protocol if "iou_thresholds" in again["decisions"] else Convention
    declared = decisions_of(of)
    return {one.name: _plain(default_of(one)) for one in fields(of) if declared[one.name].since != FIRST}


#: The compared members of an input, mapped to text for messages. A message consists of the role of the input, such as
#: "detections", and this text.
_COMPARED = {"sha256": "", "beside": " (files beside it)", "content": " (what was read of it)"}

#: Known members of an input.
_OF_INPUT = {"role", "name", *_COMPARED}

#: Members and roles of inputs that older cards lack; compared only if a card has them.
_LATER, _LATER_ROLES = ("beside",), ("manifest", "gallery")


def other_inputs(
    mine: Sequence[Mapping[str, str]], theirs: Sequence[Mapping[str, str]], keys: Iterable[str] = tuple(_COMPARED)
) -> list[Difference]:
    """Return the differences between the inputs of a card (`mine`) and other inputs (`theirs`). Only the members in
    `keys` are compared.
    """
    found = []
    roles = dict.fromkeys(str(one.get("role")) for one in (*mine, *theirs))
    for role in roles:
        left, right = ([one for one in side if str(one.get("role")) == role] for side in (mine, theirs))
        if role in _LATER_ROLES and not left:
            continue
        for at in range(max(len(left), len(right))):
            one, other = (side[at] if at < len(side) else {} for side in (left, right))
            for key in keys:
                if one.get(key) != other.get(key) and (key in one or key not in _LATER):
                    what = role.replace("_", " ") + _COMPARED[key]
                    shown = (str(side.get(key, "none"))[:20] for side in (one, other))
                    found.append(Difference("inputs", what, *shown))
    return found


def _unequal(part: str, mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[Difference]:
    return [
        Difference(part, name, _shown(mine.get(name)), _shown(theirs.get(name)))
        for name in {**theirs, **mine}
        if name not in mine or name not in theirs or _canonical({"": mine[name]}) != _canonical({"": theirs[name]})
    ]


def _near(mine: Mapping[str, str], theirs: Mapping[str, str]) -> bool:
    """Return whether two numbers of poses are equal up to the rounding of exp."""
    try:
        one, other = (float.fromhex(side["hex"]) for side in (mine, theirs))
        return mine == number(one) and abs(one - other) <= _POSES
    except (KeyError, ValueError, OverflowError):
        return False


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, Mapping) and set(value) == {"decimal", "hex"}:
        return f"{value['decimal']} ({value['hex']})"
    return value if isinstance(value, str) else json.dumps(value)


def _check_keys(part: Mapping[str, Any], known: Collection[str], source: str, record: str | None) -> None:
    """Raise for unknown keys, which verification would ignore."""
    for key in part:
        if key not in known:
            remedy = "take it out, or make the card anew with --card"
            raise InputError("is no field of a card", source=source, record=record, field=key, remedy=remedy)


def _markdown(card: Mapping[str, Any], digest: str) -> str:
    """Return the card's Markdown block for a README or an issue."""
    rows = [
        {"metric": name, "value": _rounded(value), "hexadecimal": value.get("hex", "")}
        for name, value in list(card["numbers"].items())[:12]
    ]
    inputs = ", ".join(
        f"{str(one.get('role')).replace('_', ' ')} `{shorten(str(one.get('name')))[1:-1]}` "
        f"(SHA-256 {str(one.get('sha256'))[:16]}…)"
        for one in card["inputs"]
    )
    counts = ", ".join(f"{count:,} {name}" for name, count in card["counts"].items() if type(count) is int)
    said = {code: count for code, count in card["notices"].items() if type(count) is int}
    scored = f"`detmap {card['command']}` {card['versions'].get('detmap')}"
    lines = [
        f"**{_rules_named(card)}**, scored by {scored}: {counts}.",
        to_markdown(rows),
        f"Inputs: {inputs}. Card: `{digest[:16]}`; `detmap verify card.json …` checks it.",
        *(f"* {sentence}" for sentence in describe(said, card["decisions"].get("iou_type"))),
    ]
    return "\n\n".join(lines[:3]) + ("\n\n" + "\n".join(lines[3:]) if lines[3:] else "")


def _same_bits(iou_type: str | None) -> bool:
    """Return whether overlaps have the same bits on every machine; True for rankings, which have no overlaps."""
    return iou_type is None or find(iou_type).same_bits


def _rules_named(card: Mapping[str, Any]) -> str:
    """Return the name of the protocol or convention, followed by the IoU type unless boxes are compared."""
    name, kind = (card["decisions"].get(key) for key in ("name", "iou_type"))
    return f"{name} {kind}" if kind not in (None, BOXES) else str(name)  # older cards of boxes have no IoU type


def _rounded(value: Mapping[str, str]) -> str:
    try:
        found = float(value["decimal"])
    except (KeyError, ValueError):
        return str(value.get("decimal"))
    return "–" if math.isnan(found) else f"{found:.4f}"


def _bibtex(card: Mapping[str, Any], digest: str) -> str:
    """Return the card's BibTeX entry."""
    version, name = card["versions"].get("detmap"), _rules_named(card)
    values = [f"{metric} = {_rounded(value)}" for metric, value in card["numbers"].items()]
    note = f"Protocol {name}, {next(iter(values), 'no number')}, evaluation card {digest[:16]}"
    author = "{The detmap developers}"
    return f"@misc{{detmap-{digest[:8]}, title = {{detmap {version}}}, author = {{{author}}}, note = {{{note}}}}}"
