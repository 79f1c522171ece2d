"""Columns of tracks, with a mask for each frame of a video, and their overlap over all frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.errors import InputError
from detmap.kernels import Frozen, mask_pairs, readonly
from detmap.shapes import masks as library
from detmap.shapes.boxes import Boxes
from detmap.shapes.kinds import TRACKS, Kind, Pairs
from detmap.shapes.masks import MaskColumn
from detmap.system import parallel

if TYPE_CHECKING:
    from detmap.data.tables import Detections, GroundTruth
    from detmap.detection.protocols import Protocol

#: Name of the argument of tables.
_ARGUMENT = "tracks"

#: Number of pairs of masks compared between two checks for cancellation.
_PAIRS = 1 << 18


@dataclass(frozen=True, eq=False)
class Tracks(Frozen):
    """Tracks as a table keeps them, by the masks of all of them; a `detmap.shapes.Column`.

    Attributes
    ----------
    masks : MaskColumn
        The masks of all tracks, m of them; a track has none in frames where it is absent.
    frames : ndarray of int64, shape (m,)
        The frame of each mask, from 0; ascending within a track.
    spans : ndarray of int64, shape (n, 2)
        The masks of track *i* are those from ``spans[i, 0]`` to ``spans[i, 1]``.
    lengths : ndarray of int64, shape (n,)
        The number of frames of each track, including those where it is absent.
    """

    masks: MaskColumn
    frames: NDArray[np.int64]
    spans: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, masks: MaskColumn, present: NDArray[np.bool_], lengths: Sequence[int] | NDArray[np.int64]) -> Tracks:
        """Return a column from masks track by track, and flags of the frames of each track with a mask."""
        frames = np.asarray(lengths, np.int64)
        stops = np.cumsum(frames)
        before = np.concatenate([[0], np.cumsum(present)])
        spans = np.stack([before[stops - frames], before[stops]], axis=1)
        at = np.flatnonzero(present) - np.repeat(stops - frames, spans[:, 1] - spans[:, 0])
        return cls(masks, readonly(at, np.int64), readonly(spans, np.int64), readonly(frames, np.int64))

    def __len__(self) -> int:
        """Return the number of tracks."""
        return len(self.spans)

    def take(self, rows: NDArray[Any]) -> Tracks:
        """Return some of the tracks; they share the masks."""
        spans, lengths = readonly(self.spans[rows], np.int64), readonly(self.lengths[rows], np.int64)
        return replace(self, spans=spans, lengths=lengths)

    def bounds(self) -> Boxes:
        """Return the box around all masks of each track; zeros for empty ones."""
        return self._bounds

    @cached_property
    def _bounds(self) -> Boxes:
        areas, boxes, number = self._measures
        seen = areas > 0
        if not seen.all():
            number = np.bincount(np.repeat(np.arange(len(self)), number), seen, len(self)).astype(np.int64)
            boxes = boxes[seen]
        around = np.zeros((len(self), 4))
        if len(boxes):  # boxes are grouped by track
            first = (np.cumsum(number) - number)[number > 0]
            low = np.minimum.reduceat(boxes[:, :2], first)
            around[number > 0, :2] = low
            around[number > 0, 2:] = np.maximum.reduceat(boxes[:, :2] + boxes[:, 2:], first) - low
        return Boxes(readonly(around, np.float64), sizes=True)

    @property
    def _measures(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """Area and box of each mask, track by track, and the number of masks of each track."""
        held, number = self.masks.held, self.spans[:, 1] - self.spans[:, 0]
        if (self.spans[:, 0] == np.cumsum(number) - number).all():  # the usual order of files
            stop = int(number.sum())
            return held.areas[:stop], held.boxes[:stop], number
        _, mask = _expanded(self, np.arange(len(self)))
        return held.areas[mask], held.boxes[mask], number

    def areas(self) -> NDArray[np.float64]:
        """Return the mean number of pixels of non-empty masks, shape (n,); 0 without any."""
        areas, _, number = self._measures
        track = np.repeat(np.arange(len(self)), number)
        total = np.bincount(track, areas, len(self))
        return np.asarray(total / np.maximum(np.bincount(track, areas > 0, len(self)), 1))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all content by name: the masks of one track after the other, and their frames."""
        _, mask = _expanded(self, np.arange(len(self)))
        counts = self.spans[:, 1] - self.spans[:, 0]
        held = self.masks.take(mask).arrays()
        return {**held, "frames": self.frames[mask], "counts": counts, "lengths": self.lengths}


def _expanded(tracks: Tracks, rows: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each mask of some tracks the index of its track among these, and the mask."""
    starts, stops = tracks.spans[rows].T
    counts = stops - starts
    place = np.repeat(np.arange(len(counts)), counts)
    before = np.cumsum(counts) - counts
    return place, np.arange(place.size) + (starts - before)[place]


def _join(given_columns: Sequence[Tracks]) -> Tracks:
    """Return the concatenation of several columns."""
    before = np.cumsum([0, *(len(one.masks) for one in given_columns)])
    none = np.empty((0, 2), np.int64)
    spans = [one.spans + start for one, start in zip(given_columns, before, strict=False)]
    return Tracks(
        library.join([one.masks for one in given_columns]),
        readonly(np.concatenate([*(one.frames for one in given_columns), none[:, 0]]), np.int64),
        readonly(np.concatenate([*spans, none]), np.int64),
        readonly(np.concatenate([*(one.lengths for one in given_columns), none[:, 0]]), np.int64),
    )


def _given(values: Any, source: str) -> Tracks:
    """Return a column from a user's argument: for each track a list with a run-length code, or None, for each frame."""
    if isinstance(values, Tracks):
        return values
    rows = list(values)
    for row, one in enumerate(rows):
        if not isinstance(one, list | tuple) or not all(code is None or isinstance(code, Mapping) for code in one):
            problem = "a track must be a list with a run-length code, or None, for each frame"
            raise InputError(problem, source=source, record=row, field=_ARGUMENT)
    present = np.array([code is not None for one in rows for code in one], np.bool_)
    masks = library.given([code for one in rows for code in one if code is not None], source)
    return Tracks.of(masks, present, [len(one) for one in rows])


def _prepare(
    detections: Detections, ground_truth: GroundTruth, protocol: Protocol
) -> tuple[Tracks, Tracks, dict[str, int]]:
    """Unpack the masks of the ground truth, and count detections whose number of frames differs from the objects'."""
    found, truth = detections.shape(TRACKS), ground_truth.shape(TRACKS)
    assert isinstance(found, Tracks)
    assert isinstance(truth, Tracks)
    longest = np.zeros(ground_truth.images.ids.size + 1, np.int64)
    np.maximum.at(longest, ground_truth.images.codes, truth.lengths)
    place = np.searchsorted(ground_truth.images.ids, detections.images.ids)  # only ids in use
    expected = longest[place][detections.images.codes]
    odd = int(np.count_nonzero((expected > 0) & (found.lengths != expected)))
    return found, replace(truth, masks=truth.masks.unpacked()), {"track_lengths": odd} if odd else {}


def _refine(detections: Tracks, ground_truth: Tracks, pairs: Pairs, out: NDArray[np.float64]) -> None:
    """Write the pixels shared in all frames over those of either; also for crowds, as in YouTube-VIS."""
    spans = detections.spans[pairs.detections]
    masks = np.cumsum(spans[:, 1] - spans[:, 0])
    cuts = np.searchsorted(masks, np.arange(_PAIRS, int(masks[-1]) if masks.size else 0, _PAIRS)) + 1
    bounds = np.unique(np.concatenate([[0], cuts, [len(out)]]))
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if parallel.stop_flag()[0]:
            return
        rows = pairs.detections[begin:end], pairs.ground_truth[begin:end]
        out[begin:end] = _overlaps(detections, ground_truth, *rows, pairs.lowest)


def _overlaps(
    detections: Tracks, ground_truth: Tracks, left: NDArray[np.int64], right: NDArray[np.int64], lowest: float
) -> NDArray[np.float64]:
    """Return overlaps of pairs of tracks over their common frames, without frames whose masks have different sizes.
    Pairs whose areas and boxes already imply less than `lowest` get 0. Areas are whole numbers, exact as floats: only
    the quotient is rounded.
    """
    count = len(left)
    # YouTube-VIS' program stops at the end of the shorter list.
    lengths = np.minimum(detections.lengths[left], ground_truth.lengths[right])
    sides = []
    for tracks, rows in ((detections, left), (ground_truth, right)):
        pair, mask = _expanded(tracks, rows)
        frame = tracks.frames[mask]
        kept = frame < lengths[pair]
        sides.append((pair[kept], mask[kept], frame[kept], tracks.masks.held.areas[mask[kept]]))
    (pair, mask, frame, areas), (other_pair, other_mask, other_frame, other_areas) = sides
    either = np.bincount(pair, areas, count) + np.bincount(other_pair, other_areas, count)
    most = int(lengths.max(initial=0)) + 1
    keys, others = pair * most + frame, other_pair * most + other_frame
    at = np.minimum(np.searchsorted(others, keys), max(others.size - 1, 0))
    both = np.flatnonzero(others[at] == keys) if others.size else np.empty(0, np.int64)
    at = at[both]
    own, theirs = mask[both], other_mask[at]
    sizes = detections.masks.held.spans[own, 2:], ground_truth.masks.held.spans[theirs, 2:]
    differ = (sizes[0] != sizes[1]).any(axis=1)
    either -= np.bincount(pair[both], differ * (areas[both] + other_areas[at]), count)
    same = np.flatnonzero(~differ)
    held = detections.masks.held, ground_truth.masks.held
    most_shared = np.bincount(pair[both][same], _most_shared(*held, own[same], theirs[same]), count)
    with np.errstate(invalid="ignore"):
        hopeless = most_shared / (either - most_shared) < lowest
    same = same[~hopeless[pair[both][same]]]
    same = same[np.argsort(own[same], kind="stable")]  # unpack a mask once for all that it is compared with
    shares = np.zeros(same.size)
    crowd = readonly(np.ones(same.size, np.bool_), np.bool_)
    mine, others = readonly(own[same], np.int64), readonly(theirs[same], np.int64)
    mask_pairs.mask_overlaps(*held, mine, others, crowd, parallel.stop_flag(), shares)
    # For crowds the kernel returns the share of the detection's area; times that area it is exact up to less than a
    # pixel.
    shared = np.bincount(pair[both][same], np.rint(shares * areas[both][same]), count)
    either -= shared
    return np.asarray(np.divide(shared, either, out=np.zeros(count), where=either > 0))


def _most_shared(
    detections: mask_pairs.Masks, ground_truth: mask_pairs.Masks, left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return upper bounds of the shared pixels of pairs of masks by areas and boxes; infinity if unknown."""
    most = np.minimum(detections.areas[left], ground_truth.areas[right])
    boxes, others = detections.boxes[left].T, ground_truth.boxes[right].T
    width, height = (
        np.minimum(boxes[k] + boxes[k + 2], others[k] + others[k + 2]) - np.maximum(boxes[k], others[k]) for k in (0, 1)
    )
    most = np.minimum(most, np.maximum(width, 0) * np.maximum(height, 0))
    return np.where(detections.regular[left] & ground_truth.regular[right], most, np.inf)


KIND = Kind(
    name=TRACKS,
    column=Tracks,
    field=_ARGUMENT,
    prepare=_prepare,
    refine=_refine,
    argument=_ARGUMENT,
    given=_given,
    join=_join,
)
