"""COCO's JSON, JSON Lines and gzip: other spellings of the same values, and damage at any byte."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from attacks import REFUSE, Attack, Must
from attacks.scenes import Records, average_precision, evaluated, scene


class Unlike(Exception):
    """The document says something that this file does not look into."""


def spell(rng: np.random.Generator, value: Any, style: int) -> str:
    """Write a value in one of the many ways that JSON has for it."""
    blank = ["", " ", "\n", "\t", "\r\n  "][int(rng.integers(5))] if style else ""
    if isinstance(value, dict):
        items = list(value.items())
        if style and rng.random() < 0.3:
            rng.shuffle(items)  # type: ignore[arg-type]
        inside = ",".join(f'{blank}"{escape(rng, k, style)}"{blank}:{blank}{spell(rng, v, style)}' for k, v in items)
        return "{" + inside + blank + "}"
    if isinstance(value, list):
        return "[" + blank + f"{blank},".join(spell(rng, one, style) for one in value) + blank + "]"
    if isinstance(value, str):
        return f'"{escape(rng, value, style)}"'
    if isinstance(value, bool) or value is None or isinstance(value, int):
        return json.dumps(value)
    return number(rng, float(value), style)


def number(rng: np.random.Generator, value: float, style: int) -> str:
    """Write a float so that it reads back as the same one."""
    spellings = [repr(value), f"{value:.17g}", f"{value:.20e}", f"{value:.25f}", f"{value:E}", repr(value) + "0" * 30]
    text = spellings[int(rng.integers(len(spellings)))] if style else spellings[0]
    if "e" in text.lower() and text.endswith("0" * 30):
        text = repr(value)
    try:
        same = float(text) == value and json.loads(text) == value
    except ValueError:  # such as 1e5000 zeros
        same = False
    return text if same else repr(value)


def escape(rng: np.random.Generator, text: str, style: int) -> str:
    if style and rng.random() < 0.1:
        return "".join(
            f"\\u{ord(c):04x}" if ord(c) < 0x10000 and rng.random() < 0.5 else json.dumps(c)[1:-1] for c in text
        )
    return json.dumps(text)[1:-1]


def strange_fields(rng: np.random.Generator, record: dict[str, Any]) -> dict[str, Any]:
    """Add a field that no reader asks for, or one that tells of another benchmark."""
    odd = [
        '}],{"score": 1}',
        "\\",
        '"',
        "a\nb",
        {"bbox": [1, 2]},
        [[[]]],
        None,
        True,
        -0.0,
        10**30,
        "é\U0001f600\u2028",
        "r",
    ]
    names = ["x0", "x1", "", "frequency", "neg_category_ids", "crowdIndex", "IsGroupOf", "foot_kpts"]
    return {**record, names[int(rng.integers(len(names)))]: odd[int(rng.integers(len(odd)))]}


def damage(rng: np.random.Generator, data: bytes) -> bytes:
    """Change a few bytes anywhere."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        if not out:
            break
        at, to = sorted(int(v) for v in rng.integers(0, len(out) + 1, 2))
        kind = rng.integers(7)
        if kind == 0 and at < len(out):
            out[at] = int(rng.integers(256))
        elif kind == 1:
            out[at : at + int(rng.integers(1, 9))] = b""
        elif kind == 2:
            out[at:at] = bytes(rng.choice(list(b'{}[],:"\\0123456789.eE+- \n\0\xff'), int(rng.integers(1, 4))).tolist())
        elif kind == 3:
            out = out[:at]
        elif kind == 4:
            out[at:at] = out[at : min(to, at + 60)]
        elif kind == 5:
            del out[at : min(to, at + 60)]
        elif at < len(out):
            out[at] ^= 1 << int(rng.integers(8))
    return bytes(out)


def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in items}) < len(items):
        raise Unlike
    return dict(items)


def strictly(data: bytes) -> Any:
    """Parse JSON as its standard has it, or raise ValueError. Bytes that are no UTF-8 pass: nobody may look at them."""

    def no_constant(text: str) -> None:
        raise ValueError(text)

    return json.loads(data.decode("utf-8", "surrogateescape"), object_pairs_hook=pairs, parse_constant=no_constant)


def listed(data: bytes, lines: bool) -> Any:
    """The records of a list, of an object that holds one, or of `lines`."""
    if lines:
        return [strictly(line) for line in data.split(b"\n") if line.strip()]
    found = strictly(data)
    if isinstance(found, dict):
        keys = [key for key in ("annotations", "predictions") if key in found]
        if len(keys) != 1:
            raise Unlike
        found = found[keys[0]]
    if not isinstance(found, list):
        raise Unlike
    return found


def plain(records: Any, wanted: dict[str, type | tuple[type, ...]]) -> None:
    """Raise Unlike where a record is not of the ordinary types; what detmap makes of it is another test's affair."""
    for one in records:
        if not isinstance(one, dict):
            raise Unlike
        for key, kinds in wanted.items():
            if key not in one or not isinstance(one[key], kinds) or isinstance(one[key], bool):
                raise Unlike
        box = one.get("bbox")
        if box is not None and (
            len(box) != 4
            or not all(isinstance(v, int | float) and not isinstance(v, bool) and abs(v) < 1e6 for v in box)
            or min(box[2:]) < 0
        ):
            raise Unlike


RESULT = {"image_id": int, "category_id": int, "bbox": list, "score": (int, float)}
OBJECT = {"id": int, "image_id": int, "category_id": int, "bbox": list, "area": (int, float)}


def expected(truth: dict[str, Any], data: bytes, of_truth: bool, results: Records, lines: bool = False) -> Must:
    """What must come of `data`, the ground truth or the results, beside the other side as it is."""
    try:
        if of_truth:
            truth = strictly(data)
            if not isinstance(truth, dict):
                return REFUSE
            plain(truth["images"], {"id": int})
            plain(truth["categories"], {"id": int})
            plain(truth["annotations"], OBJECT)
            if any(one.get("iscrowd", 0) not in (0, 1) or not 0 <= one["area"] < 1e12 for one in truth["annotations"]):
                raise Unlike
            # Records that ask to be ignored or are of strange kinds are not looked into here.
            if any({"ignore", "segmentation", "num_keypoints"} & set(one) for one in truth["annotations"]):
                raise Unlike
            truth["annotations"] = [{"iscrowd": 0, **one} for one in truth["annotations"]]
        else:
            results = listed(data, lines)
            plain(results, RESULT)
    except (ValueError, RecursionError):
        return REFUSE
    except (Unlike, KeyError, TypeError):
        return Must(value=ANYTHING, refuse=True)
    ids = {one["id"] for one in truth["images"]}, {one["id"] for one in truth["categories"]}
    sane = all(len(one) == len(truth[key]) for one, key in zip(ids, ("images", "categories"), strict=True))
    known = all(one["image_id"] in ids[0] and one["category_id"] in ids[1] for one in truth["annotations"])
    if not sane or not known or any(one["image_id"] not in ids[0] for one in results):
        return REFUSE if sane else Must(value=ANYTHING, refuse=True)
    try:
        return Must(value=average_precision(truth, results), refuse=True)
    except OverflowError:
        return Must(value=ANYTHING, refuse=True)


class _Anything:
    """Equal to whatever comes out: the number is not this file's affair."""

    def __repr__(self) -> str:
        return "anything"


ANYTHING = _Anything()


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    """Write a scene in an unusual way, often damaged, and read it from bytes or from a file."""
    import detmap

    truth, results = scene(rng)
    style = int(rng.random() < 0.7)
    of_truth = rng.random() < 0.4
    records = [strange_fields(rng, one) if style and rng.random() < 0.2 else one for one in results]
    wrapped, as_lines = rng.random() < 0.15, bool(not of_truth and rng.random() < 0.2 and records)
    if of_truth:
        lists = {
            key: [strange_fields(rng, one) if style and rng.random() < 0.2 else one for one in truth[key]]
            for key in ("images", "annotations", "categories")
        }
        text = spell(rng, {**truth, **lists}, style)
    elif as_lines:
        text = "\n".join(spell(rng, one, 0) for one in records) + "\n" * int(rng.integers(3))
    elif wrapped:
        text = spell(rng, {["annotations", "predictions"][int(rng.integers(2))]: records}, style)
    else:
        text = spell(rng, records, style)
    data = text.encode("utf-8", "surrogatepass")
    if (of_truth or (wrapped and not as_lines)) and rng.random() < 0.1:  # a list twice: which one is meant?
        name = str(rng.choice(["images", "annotations", "categories"])) if of_truth else next(iter(json.loads(text)))
        letter = int(rng.integers(len(name)))
        key = f"{name[:letter]}\\u{ord(name[letter]):04x}{name[letter + 1 :]}" if rng.random() < 0.5 else name
        twice = b'{"%b": [],%b' % (key.encode(), data.lstrip()[1:])
        return Attack(
            f"{name} twice: {twice[:400]!r}", lambda: str(reader(detmap, of_truth)(twice)), REFUSE, len(twice)
        )
    damaged = rng.random() < 0.7
    if damaged:
        data = damage(rng, data)
        must = expected(truth, data, of_truth, results, as_lines)
    else:
        must = Must(value=average_precision(truth, results))
    what, size = f"{'truth' if of_truth else 'results'}{' damaged' if damaged else ''}", len(data)
    if rng.random() < 0.3:
        data, must, packing = pack(rng, data, must)
        what += packing
    source: Any = data
    if as_lines or rng.random() < 0.5:  # only a name tells lines from a list
        source = folder / ("attacked.jsonl" if as_lines else "attacked.json")
        source.write_bytes(data)
    other = json.dumps(results if of_truth else truth).encode()

    def run() -> Any:
        first = detmap.read_coco(source if of_truth else other)
        found = detmap.read_coco_results(other if of_truth else source, first)
        return evaluated(first, found)

    return Attack(f"{what}: {data[:400]!r}", run, must, size)


def reader(detmap: Any, of_truth: bool) -> Callable[[bytes], Any]:
    return detmap.read_coco if of_truth else detmap.read_coco_results


def pack(rng: np.random.Generator, data: bytes, must: Must) -> tuple[bytes, Must, str]:
    """Compress, in members, and damage that."""
    cut = int(rng.integers(0, len(data) + 1))
    packed = gzip.compress(data[:cut]) + gzip.compress(data[cut:])
    kind = rng.integers(4)
    if kind == 0:
        return packed, must, " gzip"
    if kind == 1:
        return packed[: int(rng.integers(3, len(packed)))], Must(must.value, True), " gzip cut"
    if kind == 2:
        return (
            packed + bytes(rng.integers(0, 256, int(rng.integers(1, 9))).tolist()),
            Must(must.value, True),
            " gzip tail",
        )
    spoilt = bytearray(packed)
    spoilt[int(rng.integers(2, len(spoilt)))] ^= 1 << int(rng.integers(8))
    return bytes(spoilt), Must(unpacked(bytes(spoilt), data, must), True), " gzip flipped"


def unpacked(packed: bytes, data: bytes, must: Must) -> Any:
    """The value if the damage left the content as it was; else only a refusal is right (a checksum tells)."""
    try:
        same = gzip.decompress(packed) == data
    except (OSError, EOFError, zlib.error):
        same = False
    return must.value if same else None


Family = Callable[[np.random.Generator, Path], Attack]
