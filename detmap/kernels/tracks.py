"""Overlaps, areas and bounding boxes of tracks. A track is a sequence of masks, at most one per frame of a video."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel
from detmap.kernels.mask_pairs import _by_runs, _most_runs, _shared, _unpack

Array = NDArray[Any]


class Tracks(NamedTuple):
    """Tracks, stored as masks (see `detmap.kernels.mask_pairs.Masks`) and the range of masks of each track.

    Track *i* has the masks ``tracks[i, 0]:tracks[i, 1]``; ``frames`` has the frame of each mask, ascending within a
    track. Track *i* covers ``lengths[i]`` frames, some without a mask.
    """

    text: Array
    ends: Array
    spans: Array
    areas: Array
    boxes: Array
    regular: Array
    frames: Array
    tracks: Array
    lengths: Array


class _Pairs(NamedTuple):
    """Objects to compare detections with, output for overlaps, and buffers for the pairs of one detection."""

    right: Array
    out: Array
    #: For each object compared with the detection: the index of the object's next mask, the number of pixels of both
    #: tracks, and the number of shared pixels.
    at: Array
    pixels: Array
    shared: Array
    #: Buffers for the runs of the detection's mask, and for the runs of two masks with their spans.
    ours: Array
    both: Array
    spans: Array


@helper
def _most_pixels(found: Tracks, truth: Tracks, m: int, n: int) -> Any:
    """Return an upper bound of the pixels that two masks share, from their areas and boxes; infinity if a mask is not
    regular (see `detmap.kernels.masks`).
    """
    if not (found.regular[m] and truth.regular[n]):
        return np.inf
    sides = np.float64(1.0)
    for k in range(2):
        end = min(found.boxes[m, k] + found.boxes[m, 2 + k], truth.boxes[n, k] + truth.boxes[n, 2 + k])
        sides *= max(end - max(found.boxes[m, k], truth.boxes[n, k]), 0.0)
    return min(min(found.areas[m], truth.areas[n]), sides)


@helper
def _of_one_size(found: Tracks, truth: Tracks, m: int, n: int) -> Any:
    return found.spans[m, 2] == truth.spans[n, 2] and found.spans[m, 3] == truth.spans[n, 3]


@helper
def _limits(found: Tracks, truth: Tracks, d: int, g: int) -> Any:
    """Return the total number of pixels of both tracks, and an upper bound of the pixels that they share.

    Like YouTube-VIS' program, stop at the end of the shorter track, and ignore frames with masks of different sizes.
    """
    last = min(found.lengths[d], truth.lengths[g])
    pixels, most = np.float64(0.0), np.float64(0.0)
    m, m_stop, n, n_stop = found.tracks[d, 0], found.tracks[d, 1], truth.tracks[g, 0], truth.tracks[g, 1]
    while True:
        one = min(found.frames[m], last) if m < m_stop else last
        other = min(truth.frames[n], last) if n < n_stop else last
        if one == last and other == last:
            return pixels, most
        if one < other:
            pixels += found.areas[m]
        elif other < one:
            pixels += truth.areas[n]
        elif _of_one_size(found, truth, m, n):
            pixels += found.areas[m] + truth.areas[n]
            most += _most_pixels(found, truth, m, n)
        m, n = m + (one <= other), n + (other <= one)


@helper
def _pixels_shared(found: Any, truth: Any, m: int, n: int, pairs: _Pairs, count: int) -> Any:
    """Return the number of pixels that two masks share; the first mask has the runs ``pairs.ours[:count]``."""
    if found.regular[m] and truth.regular[n]:
        return np.float64(_shared(pairs.ours, count, truth.ends, truth.spans[n, 0], truth.spans[n, 1]))
    # `_by_runs` returns the number of shared pixels divided by the detection's area. Multiplied by that area, the quotient
    # is off by less than half a pixel, so rounding gives the exact number.
    area = found.areas[m]
    return np.float64(
        np.int64(_by_runs(pairs.ours, count, truth, n, np.int64(area), pairs.both, pairs.spans) * area + 0.5)
    )


@helper
def _compare(found: Any, truth: Any, d: int, begin: int, end: int, lowest: float, pairs: _Pairs) -> None:
    """Write overlaps of one detection with the objects ``right[begin:end]``; each mask is unpacked once for all objects."""
    hopeful = False
    for i in range(end - begin):
        g = pairs.right[begin + i]
        pairs.pixels[i], most = _limits(found, truth, d, g)
        rest = pairs.pixels[i] - most
        hopeless = rest > 0.0 and most / rest < lowest
        pairs.at[i], pairs.shared[i] = truth.tracks[g, 1] if hopeless else truth.tracks[g, 0], 0.0
        hopeful |= not hopeless
    for m in range(found.tracks[d, 0], found.tracks[d, 1] if hopeful else found.tracks[d, 0]):
        frame, count = found.frames[m], -1
        for i in range(end - begin):
            g = pairs.right[begin + i]
            n, stop = pairs.at[i], truth.tracks[g, 1]
            while n < stop and truth.frames[n] < frame:
                n += 1
            pairs.at[i] = n
            if n == stop or truth.frames[n] != frame or frame >= min(found.lengths[d], truth.lengths[g]):
                continue
            if not _of_one_size(found, truth, m, n) or _most_pixels(found, truth, m, n) == 0.0:
                continue
            if count < 0:
                count = _unpack(found, m, pairs.ours, 0)
            pairs.shared[i] += _pixels_shared(found, truth, m, n, pairs, count)
    for i in range(end - begin):
        either = pairs.pixels[i] - pairs.shared[i]
        pairs.out[begin + i] = pairs.shared[i] / either if either > 0.0 else 0.0


@helper
def _longest(tracks: Any, track: int) -> Any:
    """Return an upper bound of the number of runs in any mask of a track."""
    most = 0
    for m in range(tracks.tracks[track, 0], tracks.tracks[track, 1]):
        most = max(most, _most_runs(tracks, m))
    return most


@kernel
def track_overlaps(
    found: Tracks, truth: Tracks, left: Array, right: Array, lowest: float, stop: Array, out: Array
) -> None:
    """Write the overlap of pairs of tracks over the frames that both cover. The pairs of a detection must be consecutive.

    The overlap is 0 if areas and boxes show that it is below `lowest`. The masks of the ground truth must be unpacked.
    Areas are integers, exact as doubles, so only the quotient is rounded. The kernel returns early once `stop` is set.
    """
    count, most, longest, other = 0, 0, 0, 0
    for i in range(len(left)):
        same = i > 0 and left[i] == left[i - 1]
        count = count + 1 if same else 1
        most, other = max(most, count), max(other, _longest(truth, right[i]))
        if not same:
            longest = max(longest, _longest(found, left[i]))
    ours, both, spans = np.empty(longest, np.uint32), np.empty(longest + other, np.uint32), np.zeros((2, 4), np.int64)
    pairs = _Pairs(right, out, np.empty(most, np.int64), np.empty(most), np.empty(most), ours, both, spans)
    begin = 0
    while begin < len(left) and not stop[0]:
        end = begin + 1
        while end < len(left) and left[end] == left[begin]:
            end += 1
        _compare(found, truth, left[begin], begin, end, lowest, pairs)
        begin = end


@kernel
def measure_tracks(masks: Tracks, out_areas: Array, out_boxes: Array) -> None:
    """Write for each track the mean area of its nonempty masks, and their common bounding box; 0 if all are empty."""
    for track in range(len(masks.tracks)):
        count, total = 0, np.float64(0.0)
        left, top, right, bottom = np.inf, np.inf, -np.inf, -np.inf
        for m in range(masks.tracks[track, 0], masks.tracks[track, 1]):
            if masks.areas[m] > 0:
                count += 1
                total += masks.areas[m]
                left, top = min(left, masks.boxes[m, 0]), min(top, masks.boxes[m, 1])
                right = max(right, masks.boxes[m, 0] + masks.boxes[m, 2])
                bottom = max(bottom, masks.boxes[m, 1] + masks.boxes[m, 3])
        seen = count > 0
        out_areas[track] = total / max(count, 1)
        out_boxes[track, 0], out_boxes[track, 1] = left if seen else 0.0, top if seen else 0.0
        out_boxes[track, 2] = right - left if seen else 0.0
        out_boxes[track, 3] = bottom - top if seen else 0.0
