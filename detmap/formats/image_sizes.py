"""Image sizes for formats with normalised boxes: from image headers, from a table, or from the caller."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Container, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.tables import GroundTruth
from detmap.errors import InputError, MissingDependencyError, OptionError, shorten
from detmap.formats.file_names import ENDINGS, stem
from detmap.reading.options import Path
from detmap.reading.sources import read_bytes

_FORMATS = ("JPEG", "PNG", "BMP", "TIFF", "WEBP", "GIF")
_ONE_SIZE = re.compile(r"(\d{1,7})x(\d{1,7})")
_ORIENTATION = 274  # EXIF tag; for values of 5 or more, width and height are swapped

Size = tuple[int, int]


class Sizes:
    """Heights and widths by image name, with or without suffix, from the reading option `image_sizes`."""

    def __init__(self, given: Path | Mapping[str, Any] | None) -> None:
        self._all: Size | None = None
        self.known: dict[str, Size] = {}
        if isinstance(given, Mapping):
            for name, size in given.items():
                self._add(str(name), *_pair(size, str(name)), source="image_sizes", record=None)
        elif given is not None:
            if not isinstance(given, str | os.PathLike):
                kind = type(given).__name__
                raise OptionError(f"image_sizes must be a mapping of names to sizes, a path or '640x480', not {kind}")
            match = _ONE_SIZE.fullmatch(os.fspath(given))
            if match and not os.path.exists(given):
                self._all = int(match[2]), int(match[1])
            else:
                self._read(given)

    def _read(self, path: Path) -> None:
        data, source = read_bytes(path, "image sizes")
        try:
            lines = bytes(data).decode("utf-8-sig").splitlines()
        except UnicodeDecodeError:
            raise InputError("is not a text file", source=source) from None
        for number, line in enumerate(lines, 1):
            parts = [part.strip().strip('"') for part in re.split("[,;\t]", line)]
            if not line.strip() or (number == 1 and not parts[-1].isdigit()):
                continue
            if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) < 8 for part in parts[1:]):
                raise InputError(
                    "is not image, width and height",
                    source=source,
                    record=f"line {number}",
                    value=line,
                    remedy="write a line per image: name,width,height",
                )
            self._add(parts[0], int(parts[2]), int(parts[1]), source=source, record=f"line {number}")

    def _add(self, name: str, height: int, width: int, *, source: str, record: str | None) -> None:
        key = name.replace("\\", "/").rpartition("/")[2]
        if not height or not width or self.known.get(key, (height, width)) != (height, width):
            problem = "has two sizes" if height and width else "must have a width and height of 1 or more"
            raise InputError(f"{shorten(name)} {problem}", source=source, record=record)
        self.known[key] = height, width

    def __bool__(self) -> bool:
        """Return whether any size is known."""
        return bool(self.known) or self._all is not None

    def get(self, name: str) -> Size | None:
        """Return height and width by the image's name without suffix; None if unknown."""
        return self.known.get(name, self._short.get(name, self._all))

    def names(self, labelled: Container[str]) -> set[str]:
        """Return the names of the images of known size. The suffix is removed unless the name is in `labelled`."""
        return {one if one in labelled else short_name(one) for one in self.known}

    @cached_property
    def _short(self) -> dict[str, Size]:
        """The sizes by names without suffix, where unambiguous."""
        out: dict[str, Size] = {}
        unclear = set()
        for name, size in self.known.items():
            if out.setdefault(short_name(name), size) != size:
                unclear.add(short_name(name))
        return {name: size for name, size in out.items() if name not in unclear}


def scales(
    images: Sequence[Any], given: Path | Mapping[str, Any] | None, source: str, ground_truth: GroundTruth | None = None
) -> NDArray[np.float64]:
    """Return the factors that scale normalised boxes to pixels, shape (n, 4): width, height, width and height of each
    record's image. Raises `InputError` for an image whose size is neither in `given` nor in the ground truth. `images`
    are ids of the ground truth or, without ground truth, file names.
    """
    sizes, known = Sizes(given), {}
    if ground_truth is not None and ground_truth.images.sizes is not None:
        pairs = zip(ground_truth.images.ids.tolist(), ground_truth.images.sizes.tolist(), strict=True)
        known = {str(one): (height, width) for one, (height, width) in pairs if height and width}
    distinct = list(dict.fromkeys(images))
    table = {}
    for one in distinct:
        name = str(one).replace("\\", "/").rpartition("/")[2]
        size = sizes.get(name) or sizes.get(short_name(name)) or known.get(str(one))
        if size is None:
            raise InputError(
                "the size of the image is not known, and boxes are shares of it",
                source=source,
                value=one,
                remedy="give sizes: image_sizes (--image-sizes FILE.csv or 640x480)",
            )
        table[one] = size
    sides = np.array([table[one][::-1] for one in images], np.float64).reshape(-1, 2)
    return np.concatenate([sides, sides], axis=1)


def short_name(name: str) -> str:
    """Return a name without the suffix of an image file; other names are unchanged."""
    return stem(name) if name.lower().endswith(ENDINGS) else name


def _pair(size: Any, name: str) -> Size:
    try:
        height, width = (int(side) for side in size)
    except (TypeError, ValueError):
        raise InputError("must be (height, width)", source="image_sizes", record=name, value=size) from None
    return max(height, 0), max(width, 0)


def size_of_image(path: Path) -> Size:
    """Return an image's height and width from its header, with the EXIF orientation applied."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingDependencyError("pillow", "yolo", "reading the sizes of images") from None
    try:
        with warnings.catch_warnings():
            # Pillow warns about large images, which are not decoded here, and about odd EXIF data.
            warnings.simplefilter("ignore")
            with Image.open(path, formats=_FORMATS) as image:
                width, height = image.size
                turned = (
                    image.format == "JPEG"
                    and "exif" in image.info
                    and image.getexif().get(_ORIENTATION, 1) in range(5, 9)
                )
    except FileNotFoundError:
        raise InputError(
            "there is no such image, and boxes are shares of its size",
            source=os.fspath(path),
            remedy="put the images there, or give their sizes: image_sizes (--image-sizes FILE.csv or 640x480)",
        ) from None
    except Exception as error:  # Pillow raises any exception for damaged headers
        raise InputError(
            f"the size of the image cannot be read from its header: {shorten(str(error), 100)[1:-1]}",
            source=os.fspath(path),
            remedy="is it complete? Otherwise give the sizes: image_sizes (--image-sizes)",
        ) from None
    return (width, height) if turned else (height, width)
