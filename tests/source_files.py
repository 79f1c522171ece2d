"""Bytes for tests of where they come from: small and large results, pipes, standard input and archives."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tarfile
import threading

import numba
import pytest

UNCOMPILED = bool(numba.config.DISABLE_JIT)
TRUTH = {
    "images": [{"id": i} for i in range(40)],
    "annotations": [
        {"id": i + 1, "image_id": i, "category_id": 1, "bbox": [10, 10, 20, 20], "area": 400, "iscrowd": 0}
        for i in range(40)
    ],
    "categories": [{"id": 1, "name": "cat"}],
}
XML = """<annotation><object><name>cat</name><difficult>0</difficult><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax>
<ymax>5</ymax></bndbox></object></annotation>"""
needs_fifo = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")


def results(count, x=10.0):
    """Detections, of which those at ``x=10`` are hits."""
    return [{"image_id": i % 40, "category_id": 1, "bbox": [x, 10, 20, 20], "score": 0.5} for i in range(count)]


def large(x=10.0):
    """Results that the scanner reads by windows."""
    return json.dumps(results(16_000, x)).encode()


def encoded(value):
    return json.dumps(value).encode()


def same(one, other):
    return (
        one.boxes.tobytes() == other.boxes.tobytes()
        and one.images.values[one.images.codes].tolist() == other.images.values[other.images.codes].tolist()
    )


def write(path, data):
    path.write_bytes(data)
    return path


@contextlib.contextmanager
def piped(path, *contents):
    """Write each content to a named pipe, once, as readers come."""

    def feed():
        for content in contents:
            with contextlib.suppress(BrokenPipeError), path.open("wb") as file:
                file.write(content)

    os.mkfifo(path)
    thread = threading.Thread(target=feed, daemon=True)
    thread.start()
    yield path
    thread.join(20)
    assert not thread.is_alive(), "nobody read the pipe"


def standard_input(monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def packed(members, **links):
    """A tar archive of texts, and of links: ``(kind, target)``."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            if isinstance(text, tuple):
                info.type, info.linkname = text
                tar.addfile(info)
            else:
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()
