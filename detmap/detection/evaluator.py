"""The streaming evaluator, which turns batches of images into a tally."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from detmap.data.federated import frequency_column
from detmap.data.tables import Detections, GroundTruth
from detmap.detection.evaluate import match
from detmap.detection.federated import fields_read
from detmap.detection.protocols import COCO, AnyProtocol, Decisions, Protocol, resolve
from detmap.detection.ranges import fields_of, needs
from detmap.detection.result import DetectionResult
from detmap.detection.tally import Tally
from detmap.detection.updates import (
    FOUND,
    TRUE,
    Image,
    ids_of_targets,
    kind_of_images,
    kinds_given,
    notices_of,
    read_categories,
    read_ids,
    read_image,
)
from detmap.errors import InputError, StateError, check_allowed
from detmap.kernels import readonly
from detmap.plugins import PluginName
from detmap.shapes import Column, IouType, find
from detmap.shapes.boxes import BOX_FORMATS, INVALID_BOXES, BoxFormat, InvalidBoxes
from detmap.shapes.boxes import areas as box_areas
from detmap.system.saved_states import Accumulator, seal, state_of, unseal

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

#: Limits on the numbers of collected images and of their boxes; the images are matched when one limit is reached.
_IMAGES, _BOXES = 512, 100_000


class Evaluator(Accumulator):
    """Scores detections incrementally, over batches and processes.

    Parameters
    ----------
    protocol : {"coco", "voc2007", "voc2012"} or Protocol
        The rules of evaluation; `decisions` can replace individual rules.
    categories : sequence of int or str, or mapping of id to name, optional
        The categories to score; by default all categories of the targets.
    box_format : {"xyxy", "xywh", "cxcywh"}
        The format of predictions and targets: two corners, near corner and size, or centre and size.
    duplicates : {"error", "first"}
        Whether an image that is seen twice is an error, or only its first update counts. Samplers that pad the last batch
        need ``"first"``.
    invalid_boxes : {"error", "miss", "drop"}
        How boxes of negative width or height are treated, see `Detections.from_arrays` and `GroundTruth.from_arrays`.
    iou_type : {"bbox", "segm", "keypoints", "boundary", "rotated", "probiou"}, optional
        See `detmap.evaluate`. "segm" and "boundary" require ``masks`` in every update, "keypoints" requires
        ``keypoints``, "rotated" and "probiou" require ``rotated``. By default boxes are scored if predictions and targets
        have them; a notice counts images that also have masks or keypoints. If all images have only masks, masks are
        scored; if all have only keypoints, keypoints are. Images with and without boxes cannot be mixed.
    frequencies : mapping of category id to {"r", "c", "f"}, optional
        Whether a category is rare, common or frequent, for the metrics APr, APc and APf of LVIS.
    threads : int, optional
        One per processor by default. The result does not depend on it.
    **decisions
        Any other decision of `Protocol`, as for `detmap.evaluate`.

    Notes ----- With image ids, neither the order nor the number of updates and merges matters: the result equals, bit
    for bit, the result of one call of `detmap.evaluate` on all images. Without image ids, images are numbered in the
    order of the updates. A merge numbers the images of this evaluator first, then the images of the other one.
    Detections of equal score are ranked by image id, and within an image in the given order. This is also the order for
    protocols that break ties by file order.

    Threads may share an evaluator: its state is protected by a lock, and `compute` scores the images seen when it was
    called.

    Examples
    --------
    >>> evaluator = Evaluator()
    >>> prediction = {"boxes": [[0, 0, 9, 9]], "scores": [0.8], "labels": [1]}
    >>> evaluator.update([prediction], [{"boxes": [[0, 0, 10, 10]], "labels": [1]}], image_ids=[42])
    >>> round(evaluator.compute()["AP50"], 6)
    1.0
    """

    def __init__(
        self,
        protocol: AnyProtocol = "coco",
        *,
        categories: Sequence[int] | Sequence[str] | Mapping[Any, str] | None = None,
        box_format: BoxFormat = "xyxy",
        duplicates: Literal["error", "first"] = "error",
        invalid_boxes: InvalidBoxes = "error",
        iou_type: IouType | None = None,
        frequencies: Mapping[Any, str] | None = None,
        threads: int | None = None,
        **decisions: Unpack[Decisions],
    ) -> None:
        self.protocol = decided = resolve(protocol, iou_type=iou_type, caller=Evaluator, **decisions)
        self._inferred = iou_type is None and isinstance(protocol, str) and decided.iou_type == COCO.iou_type
        self._undecided = self._inferred
        # `resolve` has consumed iterables among the decisions, so keep their normalised values.
        own: dict[str, Any] = {
            name: known
            for name, value in decisions.items()
            if (known := getattr(decided, name)) is None or value is not None
        }
        if own.get("area_ranges") is not None:
            own["area_ranges"] = decided.area_ranges
        self._rules = partial(resolve, protocol, **own) if self._undecided else None
        check_allowed("box_format", box_format, BOX_FORMATS)
        check_allowed("duplicates", duplicates, ("error", "first"))
        check_allowed("invalid_boxes", invalid_boxes, INVALID_BOXES)
        self.box_format: BoxFormat = box_format
        self.invalid_boxes: InvalidBoxes = invalid_boxes
        self.duplicates = duplicates
        self.threads = threads
        self._names = read_categories(categories)
        self._frequencies = dict(frequencies or {})
        frequency_column(self._frequencies, np.empty(0, np.int64), "evaluator")  # raises for invalid frequencies
        # Reading the state needs the lock, too, because the collected images may have to be matched first.
        self._lock = threading.RLock()
        self.reset()

    def _forget(self) -> None:
        if self._rules is not None:
            self.protocol, self._undecided = self._rules(), True
        self._tally = Tally.empty(self.protocol, self._categories())
        self._parts: list[Tally] = []
        self._waiting: dict[Any, Image] = {}
        self._boxes = 0
        self._seen: set[Any] = set()
        self._noted: dict[Any, dict[str, int]] = {}  # the notices of each matched image
        self._numbered: bool | None = None
        self._label_kind: str | None = None

    def __len__(self) -> int:
        """Return the number of images seen."""
        return len(self._seen)

    def __repr__(self) -> str:
        rules = self.protocol.name if self._undecided else self.protocol.title
        return f"<Evaluator: {len(self)} images under {rules}>"

    def _categories(self) -> tuple[tuple[Any, str], ...]:
        if not self.protocol.use_categories:
            return ((None, "all"),)
        return tuple((self._names or {}).items())

    # -------------------------------------------------------------------------------------------------------- input

    def update(
        self,
        predictions: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        targets: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        image_ids: Any = None,
    ) -> None:
        """Add a batch of images, or one image.

        Parameters
        ----------
        predictions : mapping or sequence of mappings
            For each image ``boxes`` (n, 4), ``scores`` (n,) and ``labels`` (n,): lists, arrays, or tensors on any device.
            ``category_ids`` is another name of ``labels``.
            Where masks are scored, also ``masks``: bool or uint8 of shape (n, height, width), a `detmap.masks.Masks`, or a
            list of run-length codes. Where poses are scored, also ``keypoints`` (n, k, 3): x, y and visibility. Where
            rotated boxes are scored, also ``rotated`` (n, 5), (n, 8) or (n, 4, 2), as for `Detections.from_arrays`. With
            masks, keypoints or rotated boxes, ``boxes`` may be left out.
        targets : mapping or sequence of mappings
            For each image ``boxes`` (m, 4) and ``labels`` (m,), and ``masks``, ``keypoints`` or ``rotated`` as in
            predictions. Optional fields of objects are ``iscrowd``, ``difficult`` and ``group_of`` (m,), False by default,
            and ``area`` (m,), by default the area of the box, or else of the mask or pose. Optional lists of labels are
            LVIS's ``neg_category_ids`` and ``not_exhaustive_category_ids``, or Open Images' verified labels in
            ``neg_category_ids`` and ``pos_category_ids``. CrowdPose's ``crowdIndex`` is a number. Levels of difficulty
            require the fields that they name, (m,). Ranges in percent require ``image_size`` (height, width). KITTI's
            similarity of orientation requires ``alpha``, in radians, in all predictions (n,) and targets (m,).
        image_ids : int, str, or sequence or tensor of them, optional
            The id of each image; by default the ``image_id`` of its target, as in torchvision's data sets. Ids must be
            given with every update, or with none.

        Raises
        ------
        InputError
            For data that cannot be scored, or an image seen before; the batch is then ignored as a whole.
        """
        alone = isinstance(predictions, Mapping) and isinstance(targets, Mapping)
        if isinstance(predictions, Mapping) and isinstance(targets, Mapping):
            predictions, targets = [predictions], [targets]
        for name, batch in (("predictions", predictions), ("targets", targets)):
            if not hasattr(batch, "__len__"):
                problem = f"expected a sequence of mappings, one per image, not {type(batch).__name__}"
                raise InputError(problem, source="update", field=name)
        if isinstance(predictions, Mapping) or isinstance(targets, Mapping) or len(predictions) != len(targets):
            raise InputError("predictions and targets must be of the same images", source="update")
        with self._lock:
            self._update(predictions, targets, image_ids, alone)

    def _update(
        self,
        predictions: Sequence[Mapping[str, Any]],
        targets: Sequence[Mapping[str, Any]],
        image_ids: Any,
        alone: bool,
    ) -> None:
        image_ids = ids_of_targets(targets) if image_ids is None else image_ids
        if image_ids is None and not len(targets):
            return
        numbered = image_ids is None
        if numbered:
            ids: list[Any] = list(range(len(self._seen), len(self._seen) + len(predictions)))
        else:
            ids = read_ids(image_ids, alone)
            if len(ids) != len(predictions):
                raise InputError(f"{len(ids)} image ids for {len(predictions)} images", source="update")
        if self._numbered not in (None, numbered):
            raise InputError(
                "image ids must be given with every update, or with none", source="update", field="image_ids"
            )
        fresh: dict[Any, int] = {}
        for i, identity in enumerate(ids):
            if identity in self._seen or identity in fresh:
                if self.duplicates == "error":
                    raise InputError(
                        "the image was seen before",
                        source="update",
                        record=f"image {i}",
                        field="image_ids",
                        value=identity,
                        remedy="if a sampler pads the last batch, say duplicates='first'",
                    )
                continue
            fresh[identity] = i
        given = {i: kinds_given(predictions[i], targets[i]) for i in fresh.values()} if self._inferred else {}
        protocol = self._protocol_of(given)
        kind = find(protocol.iou_type)
        how = kind, self.box_format, self.invalid_boxes, self._names, needs(protocol)
        batch: dict[Any, Image] = {}
        for identity, i in fresh.items():
            image = read_image(predictions[i], targets[i], i, *how)
            batch[identity] = image._replace(unscored=1) if len(given.get(i, ())) > 1 else image
        self._check_kind(batch)
        if batch:
            self._numbered = numbered
            self._decide(protocol)
        self._waiting.update(batch)
        self._seen.update(batch)
        self._boxes += sum(image.scores.size + image.areas.size for image in batch.values())
        if len(self._waiting) >= _IMAGES or self._boxes >= _BOXES:
            self._match()

    def _protocol_of(self, given: Mapping[int, list[str]]) -> Protocol:
        """Return the protocol for an update. `given` maps the index of each image to its kinds of shape, such as boxes."""
        if not given:
            return self.protocol
        kind = kind_of_images(given, None if self._undecided else find(self.protocol.iou_type).column_name)
        return self._rules(iou_type=kind) if self._undecided and self._rules is not None else self.protocol

    def _rules_for(self, like: Protocol) -> Protocol:
        """Return this evaluator's protocol; if its kind of shape is undecided, use the kind of `like`."""
        if not self._undecided:
            return self.protocol
        if self._rules is not None:
            return self._rules(iou_type=like.iou_type)
        # a restored evaluator does not know its original arguments
        names = ("iou_type", *find(like.iou_type).decisions)
        return replace(self.protocol, **{name: getattr(like, name) for name in names})

    def _decide(self, protocol: Protocol) -> None:
        if self._undecided:
            self.protocol, self._undecided = protocol, False
            self._tally = Tally.empty(protocol, self._categories())

    def _check_kind(self, batch: Mapping[Any, Image]) -> None:
        """Refuse a mixture of integers and strings in image ids or in labels."""
        ids = set(map(type, batch))
        for seen in self._seen:
            ids.add(type(seen))
            break
        labels = {self._label_kind} if self._label_kind else set[str]()
        for image in batch.values():
            for column in (image.labels, image.true_labels):
                if column.size:
                    labels.add(column.dtype.kind)
        for name, kinds in (("image_ids", ids), ("labels", labels)):
            if len(kinds) > 1:
                raise InputError("all must be integers, or all strings", source="update", field=name)
        self._label_kind = next(iter(labels), None)

    def _match(self) -> None:
        """Match the collected images into a tally."""
        if not self._waiting:
            return
        ids, images = list(self._waiting), list(self._waiting.values())
        kind = find(self.protocol.iou_type)
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(image, name) for image in images]) for name in (*FOUND, *TRUE)
        }
        joined = Image(
            **columns,
            dropped=sum(image.dropped for image in images),
            unscored=sum(image.unscored for image in images),
        )
        shapes: tuple[dict[str, Column], ...] = ({}, {})
        areas: Any = None
        if kind.given is not None and kind.join is not None:
            shapes = tuple(
                {kind.column_name: kind.join(columns)}
                for columns in ([image.shapes for image in images], [image.true_shapes for image in images])
            )
            areas = joined.own_areas
        elif angles := [image.angles for image in images if image.angles is not None]:
            from detmap.shapes.boxes3d import seen

            if len(angles) == len(images):
                shapes = tuple(seen(np.concatenate(side)) for side in zip(*angles, strict=True))
        counts = [image.scores.size for image in images]
        true_counts = [image.areas.size for image in images]
        labels = np.unique(np.concatenate([joined.labels, joined.true_labels]))
        given = np.array(ids)
        invalid: InvalidBoxes = "miss" if self.invalid_boxes == "miss" else "error"
        truth = GroundTruth.from_arrays(
            image_ids=np.repeat(given, true_counts),
            category_ids=joined.true_labels,
            boxes=joined.true_boxes,
            shapes=shapes[1],
            box_format=self.box_format,
            areas=np.where(
                np.isnan(joined.areas), box_areas(joined.true_boxes, self.box_format != "xyxy"), joined.areas
            ),
            crowd=joined.crowd,
            difficult=joined.difficult,
            group_of=joined.group_of,
            images=given,
            categories=labels if self._names is None else list(self._names),
            category_names=self._names,
            invalid_boxes=invalid,
            frequencies=self._frequencies,
            neg_category_ids=self._listed("neg_category_ids"),
            not_exhaustive_category_ids=self._listed("not_exhaustive_category_ids"),
            crowd_index={
                identity: image.crowd_index
                for identity, image in self._waiting.items()
                if image.crowd_index is not None
            },
            pos_category_ids=self._listed("pos_category_ids"),
            fields={
                name: np.concatenate([image.fields[name] for image in images])
                for name in fields_of(self.protocol.levels)
            },
            image_sizes=[image.size for image in images] if "image_facts" in needs(self.protocol) else None,
            source="targets",
        )
        found = Detections.from_arrays(
            image_ids=np.repeat(given, counts),
            category_ids=joined.labels,
            boxes=joined.boxes,
            shapes=shapes[0],
            areas=areas,
            scores=joined.scores,
            box_format=self.box_format,
            invalid_boxes=invalid,
            # Detections are ranked by the given scores even if the protocol names another score field.
            more_scores={self.protocol.score_field: joined.scores},
            notices={"dropped_boxes": joined.dropped, "unscored_shapes": joined.unscored},
            source="predictions",
        )
        tally = match(truth, found, self.protocol, iou_type=PluginName(kind.name), threads=self.threads)
        notices = {code: count for code, count in tally.notices.items() if code != "no_detections"}
        if notices:
            noted = {identity: self._noted_of(image) for identity, image in self._waiting.items()}
            self._noted.update((identity, counts) for identity, counts in noted.items() if counts)
        if tally.order.size:  # convert indices among all detections to indices within the image
            first = np.cumsum([0, *counts])[np.argsort(given, kind="stable")]
            tally = replace(tally, order=tally.order - first[tally.image])
        self._parts.append(replace(tally, notices=notices).by_image_and_order())
        self._waiting, self._boxes = {}, 0

    def _listed(self, name: str) -> dict[Any, list[Any]]:
        """Return the category ids in the list `name` of each collected image, by image id; images may lack the list."""
        return {identity: image.lists[name] for identity, image in self._waiting.items() if name in image.lists}

    def _noted_of(self, image: Image) -> dict[str, int]:
        fields = fields_read(self.protocol)
        return notices_of(image, self.box_format, self._names, self.protocol.inclusive_pixels, fields)

    # ------------------------------------------------------------------------------------------------------- output

    def compute(self) -> DetectionResult:
        """Return the result of all images seen so far; further updates may follow.

        Without ``categories`` the categories of all targets are scored, and a notice counts predictions of other
        categories.
        """
        with self._lock:
            whole = tally = self._merged()
        notices = dict(tally.notices)
        if self._names is None and self.protocol.use_categories:
            wanted = np.zeros(len(tally.categories), np.bool_)
            wanted[tally.positive_category] = True
            tally = tally.of_categories(wanted)
            notices["unknown_category"] = len(whole) - len(tally)
        notices["no_detections"] = int(not len(tally))
        notices = {code: count for code, count in notices.items() if count}
        return DetectionResult(replace(tally, notices=notices), threads=self.threads)

    def _merged(self) -> Tally:
        self._match()
        if self._parts:
            parts = [part for part in (self._tally, *self._parts) if part.image_ids.size]
            listed = self._categories()
            if self._names is None and self.protocol.use_categories:
                listed = tuple(sorted({pair for part in parts for pair in part.categories}, key=lambda pair: pair[0]))
            empty = Tally.empty(self.protocol, listed)
            merged = empty.merge(*(part.among(listed) for part in parts))
            self._tally = merged.by_image_and_order().in_ranking_order(self.threads)
            self._parts = []
        return self._tally

    def merge(self, other: Evaluator) -> Self:
        """Merge the images seen by another evaluator into this one, and return this one; the other stays unchanged.

        Raises
        ------
        StateError
            If protocols or categories differ, if only one of the evaluators has image ids, or if both have seen the same
            image and duplicates are errors.
        """
        if not isinstance(other, Evaluator):
            raise StateError(f"only an Evaluator can be merged, not {type(other).__name__}")
        protocol = self.protocol if other._undecided else self._rules_for(other.protocol)
        if other._rules_for(protocol) != protocol:
            raise StateError("evaluators of different protocols cannot be merged")
        if other._names != self._names:
            raise StateError("evaluators of different categories cannot be merged")
        if other._frequencies != self._frequencies:
            raise StateError("evaluators of different frequencies of categories cannot be merged")
        with other._lock:
            theirs, numbered, label_kind, noted = (
                other._merged(),
                other._numbered,
                other._label_kind,
                dict(other._noted),
            )
        with self._lock:
            if not other._undecided:
                self._decide(protocol)
            self._add(theirs, numbered, label_kind, noted)
        return self

    def _add(
        self, theirs: Tally, numbered: bool | None, label_kind: str | None, noted: dict[Any, dict[str, int]]
    ) -> None:
        """Merge the state of another evaluator."""
        if not theirs.image_ids.size:
            return
        if self._numbered not in (None, numbered):
            raise StateError("one evaluator has image ids and the other has not")
        if numbered:
            theirs = replace(theirs, image_ids=readonly(theirs.image_ids + len(self), np.int64))
            noted = {identity + len(self): counts for identity, counts in noted.items()}
        ids = theirs.image_ids.tolist()
        known = np.array([identity in self._seen for identity in ids])
        if known.any() and self.duplicates == "error":
            raise StateError(
                f"image {ids[int(np.argmax(known))]!r} was seen by both; duplicates='first' takes such an image once"
            )
        if self._seen and type(ids[0]) is not type(next(iter(self._seen))):
            raise StateError("image ids are integers in one evaluator and strings in the other")
        if self._label_kind and label_kind and self._label_kind != label_kind:
            raise StateError("labels are integers in one evaluator and strings in the other")
        if known.any():
            twice = (noted.pop(identity, {}) for identity, seen in zip(ids, known.tolist(), strict=True) if seen)
            again = sum(map(Counter, twice), Counter[str]())
            notices = {code: count - again[code] for code, count in theirs.notices.items() if count > again[code]}
            theirs = replace(theirs.on_images(~known), notices=notices)
        self._noted.update(noted)
        self._parts.append(theirs)
        self._seen.update(ids)
        self._numbered = numbered
        self._label_kind = self._label_kind or label_kind

    # -------------------------------------------------------------------------------------------------------- state

    def to_bytes(self) -> bytes:
        """Serialise the evaluator; `from_bytes` reads the result on any machine."""
        with self._lock:
            tally, numbered, noted = self._merged(), self._numbered, sorted(self._noted.items())
        header = {
            "box_format": self.box_format,
            "duplicates": self.duplicates,
            "invalid_boxes": self.invalid_boxes,
            "numbered": numbered,
            "categories": None if self._names is None else list(self._names.items()),
            **({"noted": noted} if noted else {}),
            **({"frequencies": sorted(self._frequencies.items())} if self._frequencies else {}),
            **({"inferred": True} if self._inferred else {}),
            **({"undecided": True} if self._undecided else {}),
        }
        return seal("evaluator", header, tally.to_bytes())

    @classmethod
    def from_bytes(cls, data: bytes, protocol: Protocol | None = None) -> Evaluator:
        """Return the evaluator that `to_bytes` saved.

        Parameters
        ----------
        data : bytes
            May come from an untrusted source, see `Tally.from_bytes`.
        protocol : Protocol, optional
            The only protocol that is accepted; by default any.

        Raises
        ------
        StateError
            If the data is damaged, cut short, of another version, or of another protocol.
        """
        content, payload = unseal("evaluator", data)
        try:
            header = msgspec.convert(content, _Header, strict=True)
        except msgspec.ValidationError as error:
            raise StateError(f"not an evaluator: {error}") from None
        tally = Tally.from_bytes(bytes(payload), protocol)
        categories = None if header.categories is None else dict(header.categories)
        try:
            made = object.__new__(cls)  # `cls` may be a subclass, whose own arguments are not saved
            Evaluator.__init__(
                made,
                tally.protocol,
                categories=categories,
                box_format=header.box_format,
                duplicates=header.duplicates,
                invalid_boxes=header.invalid_boxes,
                frequencies=dict(header.frequencies),
            )
        except InputError as error:
            raise StateError(f"not an evaluator: {error}") from None
        ids = tally.image_ids.tolist()
        if (header.numbered is None) != (not ids) or (header.numbered and ids != list(range(len(ids)))):
            raise StateError("not an evaluator: its images are not those that it says")
        if (made._names is not None or not tally.protocol.use_categories) and made._categories() != tally.categories:
            raise StateError("not an evaluator: its tally is of other categories")
        if (tally.order >> 32 != tally.image[: tally.order.size]).any():
            raise StateError("not an evaluator: its detections are not in the order of their images")
        noted = dict(header.noted)
        total = sum(map(Counter, noted.values()), Counter[str]())
        negative = any(count < 0 for counts in noted.values() for count in counts.values())
        if negative or not noted.keys() <= set(ids) or any(n > tally.notices.get(code, 0) for code, n in total.items()):
            raise StateError("not an evaluator: it notes more of its images than its tally does")
        if header.undecided and ids:
            raise StateError("not an evaluator: it has seen images, and does not know what to compare")
        made._take(tally, header.numbered, noted)
        made._undecided = header.undecided
        made._inferred = header.inferred or header.undecided
        return made

    def _take(self, tally: Tally, numbered: bool | None, noted: Mapping[Any, dict[str, int]] | None = None) -> None:
        self._noted = dict(noted or {})
        self._tally, self._numbered, self._seen = tally, numbered, set(tally.image_ids.tolist())
        kinds = {"U" if isinstance(identity, str) else "i" for identity, _ in tally.categories if identity is not None}
        self._label_kind = next(iter(kinds), None)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace the evaluator's state by a state that `state_dict` returned.

        Raises
        ------
        StateError
            If the state is damaged, or of another protocol or other categories.
        """
        saved = Evaluator.from_bytes(state_of(state))
        fresh = self._fresh()
        wanted = fresh.protocol if saved._undecided else fresh._rules_for(saved.protocol)
        if saved._rules_for(wanted) != wanted:
            Evaluator.from_bytes(state_of(state), wanted)  # raises, because the protocols differ
        if saved._names != self._names:
            raise StateError("the saved state has other categories")
        if saved._frequencies != self._frequencies:
            raise StateError("the saved state has other frequencies of categories")
        with self._lock:
            self._forget()
            if not saved._undecided:
                self._decide(wanted)
            self._take(saved._tally, saved._numbered, saved._noted)

    def __reduce__(self) -> Any:
        data = self.to_bytes()
        own = vars(Evaluator()).keys() - {"threads", "_rules"}  # attributes that `from_bytes` restores
        return _revived, (type(self), data, {name: value for name, value in vars(self).items() if name not in own})


def _revived(kind: type[Evaluator], data: bytes, rest: dict[str, Any]) -> Evaluator:
    """Return an unpickled evaluator, perhaps of a subclass, with the attributes that the subclass added."""
    made = object.__new__(kind)
    made.__dict__.update(vars(Evaluator.from_bytes(data)), **rest)
    return made


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    """Header of a saved evaluator; its tally is saved separately."""

    box_format: Literal["xyxy", "xywh", "cxcywh"]
    duplicates: Literal["error", "first"]
    numbered: bool | None
    categories: list[tuple[int | str, str]] | None
    invalid_boxes: Literal["error", "miss", "drop"] = "error"
    noted: list[tuple[int | str, dict[str, int]]] = []
    inferred: bool = False
    undecided: bool = False
    frequencies: list[tuple[int | str, Literal["r", "c", "f"]]] = []
