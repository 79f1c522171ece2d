"""Naive twins of the scanner: json, float() and str.split, record by record. Imports nothing of detmap."""

from __future__ import annotations

import json
import math
import re
from typing import Any

INT64 = range(-(2**63), 2**63)
MAX_DEPTH = 64


class NotPlain(Exception):
    """The document is not JSON, or one of its records is not plain."""


class Number(str):
    """A JSON number as it was written."""

    @property
    def integral(self) -> bool:
        return not set(self) & set(".eE")


class Object(list):
    """A JSON object as its pairs in order."""


def refuse(text: str) -> None:
    raise NotPlain(text)


def parse(data: bytes) -> Any:
    """Parse strict JSON; numbers stay text and objects pairs."""
    try:
        return json.loads(
            data.decode(), parse_int=Number, parse_float=Number, parse_constant=refuse, object_pairs_hook=Object
        )
    except (ValueError, RecursionError) as problem:
        raise NotPlain from problem


def depth(value: Any) -> int:
    if isinstance(value, Object):
        return 1 + max([depth(item) for _, item in value], default=0)
    if isinstance(value, list):
        return 1 + max([depth(item) for item in value], default=0)
    return 0


def identifier(value: Any) -> int | str:
    if isinstance(value, Number) and value.integral and int(value) in INT64:
        return int(value)
    if type(value) is str:
        return value
    raise NotPlain(value)


def integer(value: Any) -> int | str:
    if type(value) is str:
        raise NotPlain(value)
    return identifier(value)


def number(value: Any) -> float:
    if not isinstance(value, Number) or float(value) in (float("inf"), float("-inf")):
        raise NotPlain(value)
    return float(int(value)) if value == "-0" else float(value)  # an integer, which has no sign


def box(value: Any) -> tuple[float, ...]:
    if type(value) is not list or len(value) != 4:
        raise NotPlain(value)
    return tuple(map(number, value))


def flag(value: Any) -> int:
    if value is True or value is False or (isinstance(value, Number) and value in ("0", "1")):
        return int(value)
    raise NotPlain(value)


def anything(value: Any) -> Any:
    return value


def name(value: Any) -> str:
    if type(value) is not str:
        raise NotPlain(value)
    return value


RESULT = {
    "image_id": identifier,
    "category_id": identifier,
    "bbox": box,
    "score": number,
    "segmentation": anything,
    "keypoints": anything,
}
ANNOTATION = {
    "id": identifier,
    "image_id": identifier,
    "category_id": identifier,
    "bbox": box,
    "area": number,
    "iscrowd": flag,
    "ignore": flag,
    "num_keypoints": integer,
    "segmentation": anything,
    "keypoints": anything,
}
IMAGE = {"id": identifier}
CATEGORY = {"id": identifier, "name": name}


def records(values: Any, fields: dict[str, Any], required: tuple[str, ...]) -> list[dict[str, Any]]:
    """Read the known fields of plain records."""
    if type(values) is not list:
        raise NotPlain(values)
    rows = []
    for value in values:
        if not isinstance(value, Object):
            raise NotPlain(value)
        row: dict[str, Any] = {}
        for key, item in value:
            if depth(item) > MAX_DEPTH:
                raise NotPlain("deep")
            if key in fields:
                if key in row:
                    raise NotPlain("twice")
                row[key] = fields[key](item)
        if not all(key in row for key in required):
            raise NotPlain("missing")
        rows.append(row)
    for key, read in fields.items():
        if read in (identifier, integer):
            if len({type(row[key]) for row in rows if key in row}) > 1:
                raise NotPlain("ids of two types")
            if any(key in row for row in rows) and not all(key in row for row in rows):
                raise NotPlain("some records have no id")
    return rows


def results(data: bytes, lines: bool = False) -> list[dict[str, Any]] | None:
    """Read COCO results; None where they are not plain."""
    try:
        parts = [line for line in data.split(b"\n") if line.strip(b" \t\r")]
        values = [parse(part) for part in parts] if lines else parse(data)
        rows = records(values, RESULT, ("image_id", "category_id", "score"))
    except (NotPlain, UnicodeDecodeError):
        return None
    return rows if all(row.keys() & {"bbox", "segmentation", "keypoints"} for row in rows) else None


def ground_truth(data: bytes) -> dict[str, list[dict[str, Any]]] | None:
    """Read COCO ground truth; None where it is not plain."""
    try:
        value = parse(data)
        if not isinstance(value, Object):
            return None
        tables: dict[str, list[dict[str, Any]]] = {}
        kinds = {
            "images": (IMAGE, ("id",)),
            "annotations": (ANNOTATION, ("image_id", "category_id")),
            "categories": (CATEGORY, ("id", "name")),
        }
        for key, item in value:
            if key in tables or (key not in kinds and depth(item) > MAX_DEPTH):
                return None
            if key in kinds:
                tables[key] = records(item, *kinds[key])
    except (NotPlain, UnicodeDecodeError):
        return None
    return tables if len(tables) == len(kinds) else None


DECIMAL = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
INTEGER = re.compile(rb"-?(0|[1-9][0-9]*)")


NUMBERS_BEGIN = [bytes([byte]) for byte in b"0123456789+-.iInN"]


def is_comment(tokens: list[bytes], count: int, value: int, more: bool) -> bool:
    """Say whether a line that begins with ``#`` is no record; where the scanner does not tell, it is not plain."""
    if len(tokens) > value and tokens[value][:1] not in NUMBERS_BEGIN:
        return True
    if len(tokens) > value and not more and not INTEGER.fullmatch(tokens[value]):
        raise NotPlain(tokens)
    if len(tokens) < count:
        return True
    if len(tokens) > count:
        if more and tokens[1][:1] in b"Qq0":
            raise NotPlain(tokens)
        return True
    return False


def token_lines(data: bytes, least: int, most: int, value: int) -> tuple[list[list[bytes]], int]:
    """Split the lines of a TREC file that are neither empty nor comments, and count the comments."""
    rows, comments = [], 0
    for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        line = line.removesuffix(b"\r")
        if any(byte < 32 and byte != 9 for byte in line):
            raise NotPlain(line)
        tokens = line.replace(b"\t", b" ").split(b" ")
        tokens = [token for token in tokens if token]
        if not tokens:
            continue
        if tokens[0].startswith(b"#") and is_comment(tokens, least, value, most > least):
            comments += 1
            continue
        if not least <= len(tokens) <= most:
            raise NotPlain(line)
        rows.append(tokens)
    return rows, comments


def run(data: bytes) -> tuple[list[tuple[bytes, bytes, float, bool]], int] | None:
    """Read a TREC run, and say of each line whether words follow the name; and how many comments it has.

    None where it is not plain.
    """
    rows = []
    try:
        lines, comments = token_lines(data, 6, 9, 4)
        for query, _, document, _, score, _, *further in lines:
            if not DECIMAL.fullmatch(score) or math.isinf(float(score)):
                return None
            rows.append((query, document, float(score), bool(further)))
    except NotPlain:
        return None
    return rows, comments


def qrels(data: bytes) -> tuple[list[tuple[bytes, bytes, int]], int] | None:
    """Read TREC judgements, and say how many comments they have; None where they are not plain."""
    rows = []
    try:
        lines, comments = token_lines(data, 4, 4, 3)
        for query, _, document, relevance in lines:
            if not INTEGER.fullmatch(relevance) or int(relevance) not in INT64:
                return None
            rows.append((query, document, int(relevance)))
    except NotPlain:
        return None
    return rows, comments
