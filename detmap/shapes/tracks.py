"""Columns of tracks, which have a mask for each frame of a video, with the overlap of two tracks over all frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.errors import InputError
from detmap.kernels import Frozen, readonly
from detmap.kernels import tracks as kernels
from detmap.shapes import masks as library
from detmap.shapes.boxes import Boxes
from detmap.shapes.kinds import TRACKS, Kind, Pairs
from detmap.shapes.masks import MaskColumn
from detmap.system import parallel

if TYPE_CHECKING:
    from detmap.data.tables import Detections, GroundTruth
    from detmap.detection.protocols import Protocol

#: Name of the argument for tracks in the ``from_arrays`` of tables, and in messages.
_ARGUMENT = "tracks"


@dataclass(frozen=True, eq=False)
class Tracks(Frozen):
    """The tracks of a table, with the masks of all tracks in one column; a `detmap.shapes.Column`.

    Attributes
    ----------
    masks : MaskColumn
        The m masks of all tracks; a track has no mask in frames where it is absent.
    frames : ndarray of int64, shape (m,)
        The frame of each mask, from 0; ascending within a track.
    spans : ndarray of int64, shape (n, 2)
        Track *i* has the masks from ``spans[i, 0]`` to ``spans[i, 1]``.
    lengths : ndarray of int64, shape (n,)
        The number of frames of each track, including frames without the track.
    """

    masks: MaskColumn
    frames: NDArray[np.int64]
    spans: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, masks: MaskColumn, present: NDArray[np.bool_], lengths: Sequence[int] | NDArray[np.int64]) -> Tracks:
        """Return a column of tracks. The masks are ordered by track and frame; `present` concatenates a flag for each
        frame of each track: whether the track has a mask.
        """
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
        """Return some of the tracks, without copying the masks."""
        spans, lengths = readonly(self.spans[rows], np.int64), readonly(self.lengths[rows], np.int64)
        return replace(self, spans=spans, lengths=lengths)

    def bounds(self) -> Boxes:
        """Return the box around all masks of each track; zeros for a track without pixels."""
        return Boxes(self._measures[1], sizes=True)

    def areas(self) -> NDArray[np.float64]:
        """Return the mean number of pixels of each track's nonempty masks, shape (n,); 0 if all are empty."""
        return self._measures[0]

    @cached_property
    def _measures(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        areas, boxes = np.empty(len(self)), np.empty((len(self), 4))
        kernels.measure_tracks(self.held(), areas, boxes)
        return readonly(areas, np.float64), readonly(boxes, np.float64)

    def held(self) -> kernels.Tracks:
        """Return the arrays that kernels read."""
        return kernels.Tracks(*self.masks.held, self.frames, self.spans, self.lengths)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return by name the masks in order of tracks, the frames of the masks, and the tracks' lengths."""
        starts, counts = self.spans[:, 0], self.spans[:, 1] - self.spans[:, 0]
        mask = np.arange(int(counts.sum())) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
        held = self.masks.take(mask).arrays()
        return {**held, "frames": self.frames[mask], "counts": counts, "lengths": self.lengths}


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
    """Return a column from a user's argument. Each track is a list with a run-length code, or None, for each frame."""
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
    """Unpack the masks of the ground truth. Count the detections whose number of frames differs from objects in the
    same video.
    """
    found, truth = detections.shape(TRACKS), ground_truth.shape(TRACKS)
    assert isinstance(found, Tracks)
    assert isinstance(truth, Tracks)
    longest = np.zeros(ground_truth.images.ids.size + 1, np.int64)
    np.maximum.at(longest, ground_truth.images.codes, truth.lengths)
    place = np.searchsorted(ground_truth.images.ids, detections.images.ids)  # indices of unknown images are not used
    expected = longest[place][detections.images.codes]
    odd = int(np.count_nonzero((expected > 0) & (found.lengths != expected)))
    return found, replace(truth, masks=truth.masks.unpacked()), {"track_lengths": odd} if odd else {}


def _refine(detections: Tracks, ground_truth: Tracks, pairs: Pairs, out: NDArray[np.float64]) -> None:
    """Write the pixels shared in all frames, divided by the pixels of the union of both tracks. Crowds are no
    exception, as in YouTube-VIS' program.
    """
    rows = pairs.detections, pairs.ground_truth
    kernels.track_overlaps(detections.held(), ground_truth.held(), *rows, pairs.lowest, parallel.stop_flag(), out)


KIND = Kind(
    name=TRACKS,
    column=Tracks,
    field=_ARGUMENT,
    prepare=_prepare,
    refine=_refine,
    argument=_ARGUMENT,
    given=_given,
    join=_join,
    scene="video",
)
