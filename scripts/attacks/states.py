"""Saved states: flipped bytes, cuts, and states sealed again after a change."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from attacks import REFUSE, Attack, Must
from attacks.scenes import scene


def numbers(result: Any) -> list[float]:
    return [float(value) for value in result.values()]


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    """A tally's state, damaged: it is refused, or it says what it said."""
    import detmap

    truth, results = scene(rng)
    ours = detmap.read_coco(json.dumps(truth).encode())
    found = detmap.read_coco_results(json.dumps(results).encode(), ours)
    tally = detmap.match(ours, found)
    state = tally.to_bytes()
    value = numbers(detmap.DetectionResult(tally))
    data, kind, must = bytearray(state), int(rng.integers(4)), Must(value=value, refuse=True)
    if kind == 0:
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        must = REFUSE
    elif kind == 1:
        data, must = data[: int(rng.integers(len(data)))], REFUSE
    elif kind == 2:
        data, must = data + bytes(int(rng.integers(1, 9))), REFUSE
    else:
        data, must = bytearray(resealed(rng, state)), Must(value=IN_BOUNDS, refuse=True)

    def run() -> Any:
        result = detmap.DetectionResult(detmap.Tally.from_bytes(bytes(data)))
        said = numbers(result)
        if must.value is IN_BOUNDS:
            sane = [v for v in said if not np.isnan(v)]
            return IN_BOUNDS if all(0 <= v <= 1 for v in sane) else said
        return said

    return Attack(f"state, way {kind}: {bytes(data)[:60]!r}", run, must, len(data))


IN_BOUNDS = "every number lies between 0 and 1"


def resealed(rng: np.random.Generator, state: bytes) -> bytes:
    """Change the columns or the header and write the digest anew, as who knows the format can."""
    magic = state.index(b"\n") + 1
    (length,) = struct.unpack("<Q", state[magic : magic + 8])
    header, columns = state[magic + 8 : magic + 8 + length], bytearray(state[magic + 8 + length : -32])
    if columns and rng.random() < 0.8:
        at = int(rng.integers(len(columns)))
        kind = rng.integers(3)
        if kind == 0:
            columns[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            at -= at % 8
            columns[at : at + 8] = bytes(rng.integers(0, 256, 8).tolist())[: len(columns) - at]
        else:
            other = int(rng.integers(len(columns)))
            columns[at], columns[other] = columns[other], columns[at]
    else:
        text = bytearray(header)
        at = int(rng.integers(len(text)))
        text[at] = int(rng.choice(list(b'0123456789-[]{}",eE.nul')))
        header = bytes(text)
    body = state[:magic] + struct.pack("<Q", len(header)) + header + bytes(columns)
    return body + hashlib.blake2b(body, digest_size=32).digest()
