"""Parse, normalise, check and describe the values of a protocol's decisions. A cap is a maximum number of detections."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from detmap.errors import OptionError, shorten

#: Cap that stands for no limit.
UNLIMITED = 2**31 - 1

#: COCO's area range named "all". Objects above its maximum are ignored.
WHOLE = ("all", 0.0, 1e10)

#: Area range of protocols that do not limit areas. No box with coordinates up to 1e150 has a larger area.
UNBOUNDED = ("all", 0.0, 1e301)


def parse_thresholds(spec: str | float | Iterable[float]) -> tuple[float, ...]:
    """Return thresholds from ``"start:stop:step"``, ``"a,b,c"``, a number, or numbers. Raises `OptionError` for
    anything else.

    A range includes its stop and is computed by `numpy.linspace`, as in pycocotools, so that ``"0.5:0.95:0.05"`` has
    exactly the thresholds of COCO.
    """
    if not isinstance(spec, str):
        if isinstance(spec, int | float | np.number):
            return (float(spec),)
        if isinstance(spec, np.ndarray) and np.any(getattr(spec, "mask", False)):
            raise OptionError("thresholds must not be masked")
        return tuple(float(value) for value in spec)
    try:
        if ":" not in spec:
            return tuple(decimal(part) for part in spec.split(","))
        start, stop, step = (decimal(part) for part in spec.split(":"))
        count = round((stop - start) / step) + 1
    except (ValueError, ZeroDivisionError, OverflowError):
        raise OptionError(f"thresholds must be start:stop:step or a,b,c, not {spec!r}") from None
    if not 1 <= count <= 10_000 or abs(start + (count - 1) * step - stop) > 1e-9:
        raise OptionError(f"{spec!r} does not reach its stop in whole steps")
    return tuple(np.linspace(start, stop, count).tolist())


def decimal(text: str | bytes) -> float:
    """Convert ASCII text without underscores to a float, as `float` does; raise `ValueError` for any other text."""
    plain = text.isascii() and (b"_" not in text if isinstance(text, bytes) else "_" not in text)
    if not plain:
        raise ValueError
    return float(text)


def is_decimal(text: str | bytes) -> bool:
    """Return whether text is a number, as `decimal` reads it."""
    try:
        decimal(text)
    except ValueError:
        return False
    return True


def whole(text: str | bytes) -> int:
    """Convert ASCII text without underscores to an integer; surrounding blanks are accepted as by `int`."""
    decimal(text)
    return int(text)


def is_number(value: object) -> bool:
    """Return whether a value is a number of Python or numpy, and not a boolean."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def plain_number(value: Any) -> Any:
    """Return a number as a float, any other value unchanged."""
    return float(value) if is_number(value) else value


def plain_pairs(of: Callable[[Any], Any], given: Any) -> tuple[tuple[str, Any], ...]:
    """Convert a mapping, or pairs of names and values, to a tuple of pairs; `of` normalises a value."""
    pairs = given.items() if isinstance(given, Mapping) else given
    return tuple((str(name), of(value)) for name, value in pairs)


def parse_pairs(of: Callable[[str], Any], sign: str, form: str, text: str) -> tuple[tuple[str, Any], ...]:
    """Parse pairs of names and values, such as ``car:0.7,cyclist:0.5``. `sign` separates a name from its value, and
    `of` converts the value. The text ``none`` gives no pairs. `form` describes the expected text in the error message.
    """
    if text == "none":
        return ()
    try:
        parts = [part.rpartition(sign) for part in text.split(",")]
        if not all(name.strip() and value.strip() for name, _, value in parts):
            raise ValueError
        return tuple((name.strip(), of(value)) for name, _, value in parts)
    except ValueError:
        raise ValueError(f"must be {form}, not {shorten(text)}") from None


def parse_caps(text: str) -> list[int]:
    """Return caps from text: integers separated by commas."""
    try:
        return [whole(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"must be integers with commas between, not {shorten(text)}") from None


def plain_caps(given: Any) -> tuple[Any, ...]:
    """Return caps as a tuple of Python integers; a single cap may be given as a number."""
    caps = (given,) if isinstance(given, int | np.integer) else given
    return tuple(int(cap) if isinstance(cap, np.integer) else cap for cap in caps)


def parse_number(text: str) -> float:
    """Return a number from text."""
    try:
        return decimal(text)
    except ValueError:
        raise ValueError(f"must be a number, not {shorten(text)}") from None


def parse_names(text: str) -> tuple[str, ...]:
    """Return names from text, separated by commas; ``none`` gives no names."""
    return () if text == "none" else tuple(part.strip() for part in text.split(","))


def wrong_thresholds(name: str, values: tuple[float, ...]) -> str | None:
    """Return an error message if thresholds are invalid, else None."""
    if not values or not all(math.isfinite(value) for value in values):
        return f"{name} must be one or more finite numbers, not {values!r}"
    if name == "iou_thresholds" and len(set(values)) != len(values):
        return f"{name} repeat a value"
    return None


def wrong_caps(caps: tuple[Any, ...]) -> str | None:
    """Return an error message if caps are invalid, else None."""
    if not caps or not all(type(cap) is int and 1 <= cap <= UNLIMITED for cap in caps):
        return f"max_dets must be positive integers up to {UNLIMITED}, not {list(caps)!r}"
    return "max_dets must ascend without repeats" if list(caps) != sorted(set(caps)) else None


def wrong_epsilon(value: Any) -> str | None:
    """Return an error message if an epsilon is invalid, else None."""
    return None if math.isfinite(value) else f"epsilon must be a finite number, not {value!r}"


def plain_sigmas(given: Any) -> Any:
    """Return sigmas as tuples; raises `OptionError` if they are not positive numbers."""
    if given is None:
        return None
    pairs = isinstance(given, Mapping) or (
        isinstance(given, list | tuple) and bool(given) and isinstance(given[0], list | tuple)
    )
    try:
        if pairs:
            listed = given.items() if isinstance(given, Mapping) else given
            made: Any = tuple((str(key), tuple(map(float, numbers))) for key, numbers in listed)
        else:
            made = tuple(map(float, given))
    except (TypeError, ValueError):
        made = ()
    numbers = [number for _, own in made for number in own] if pairs else list(made)
    if (
        not numbers
        or not all(0 < number < math.inf for number in numbers)
        or (pairs and not all(own for _, own in made))
    ):
        raise OptionError(f"sigmas must be positive numbers, or those of each category, not {shorten(given)}")
    return made


def parse_sigmas(found: Any) -> Any:
    """Return sigmas from the parsed content of a JSON file."""
    if not isinstance(found, list | dict):
        raise ValueError("must be a list of numbers, or an object of them by category")
    return found


def wrong_dilation(value: Any) -> str | None:
    """Return an error message if a dilation is invalid, else None."""
    good = isinstance(value, float) and 0 < value < math.inf
    return None if good else f"dilation must be a positive number, not {value!r}"


def say_thresholds(values: tuple[float, ...]) -> str:
    """Describe thresholds, as a range if they are evenly spaced."""
    steps = np.diff(values)
    if len(values) > 2 and np.allclose(steps, steps[0], rtol=0, atol=1e-6):
        even = np.allclose(steps, steps[0], rtol=0, atol=1e-9)
        return f"{values[0]:g}:{values[-1]:g}:{steps.mean():g}" + ("" if even else " in single precision")
    return "/".join(f"{value:g}" for value in values)


def say_caps(caps: tuple[int, ...]) -> str:
    """Describe caps."""
    return "/".join("no cap" if cap == UNLIMITED else str(cap) for cap in caps)


def say_flags(flags: tuple[str, ...]) -> str:
    """Describe flags."""
    return "/".join(flags) or "none"
