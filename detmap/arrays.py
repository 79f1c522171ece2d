"""Anything like an array, as arrays of numpy: lists, tensors on any device, and lists of either."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.errors import InputError


def image_ids_of(image_ids: Any, alone: bool) -> list[Any]:
    """Return image ids as Python's own integers or strings; the one of an image `alone` need not be in a list."""
    if isinstance(image_ids, list | tuple):
        image_ids = [one if type(one) in (int, str) else _single(one) for one in image_ids]
        kinds = {next((kind for kind in (bool, int, str) if isinstance(one, kind)), None) for one in image_ids}
        if not (kinds <= {int} or kinds <= {str}):
            raise InputError("must be all integers or all strings", source="update", field="image_ids")
    ids = array_of(image_ids)
    if ids.ndim == 2 and ids.shape[1] == 1:  # a batch of tensors of one element each
        ids = ids[:, 0]
    if alone and ids.ndim == 0:
        ids = ids.reshape(1)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iuU"):
        raise InputError("must be integers or strings, one for each image", source="update", field="image_ids")
    if too_big(ids):
        raise InputError("is beyond 64 bits", source="update", field="image_ids")
    return list(ids.tolist())


def _single(value: Any) -> Any:
    """Return the integer or string of an array or tensor of one element; anything else as it is."""
    if not (hasattr(value, "detach") or hasattr(value, "__array__") or hasattr(value, "__dlpack__")):
        return value
    array = array_of(value)
    return array.item() if array.size == 1 and array.dtype.kind in "iuU" else value


def too_big(ids: NDArray[Any]) -> bool:
    """Return whether an id is beyond 64 bits with a sign."""
    return bool(ids.dtype.kind == "u" and ids.size and ids.max() > np.iinfo(np.int64).max)


def array_of(value: Any) -> NDArray[Any]:
    """Return anything like an array as an array of numpy, tensors from their device."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":
            value = value.float()
    elif not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    return np.asarray(value)
