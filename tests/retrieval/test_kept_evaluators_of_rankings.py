"""What comes of odd batches, of evaluators that are merged, and of saved states in which one number is another, kept."""

from __future__ import annotations

import itertools
import re

import kept
import numpy as np
import pytest
from test_kept_arguments import PLAIN, defaults, odd_arrays, outcome

from detmap.errors import DetmapError
from detmap.retrieval import Evaluator
from detmap.system.saved_states import seal, unseal

QRELS = {"a": {"x": 1, "y": 0, "z": 3}, "b": {"x": 2, "w": -1}, "c": {"y": 1}, "d": {"u": 1}}
RUN = {
    "a": {"x": 0.5, "y": 0.75, "v": 0.5, "z": 0.5},
    "c": {"y": 0.5, "z": 0.5},
    "b": {"x": 1.0, "w": 0.25},
    "e": {"x": 1.0},
}
PEOPLE = np.array([0, 1, 2, 0, 1])
DISTANCES = np.array([[0.5, 0.25, 0.5, 0.75, 0.0], [0.0, 1.0, 0.25, 0.25, 0.25], [1.0, 0.5, 0.25, 0.75, 0.5]])
FEATURES = np.array([[0.5, 0.0], [0.25, 1.0], [0.5, 0.5], [0.0, 0.0], [1.0, 1.0]])
CAMERAS = np.array([0, 1, 0, 1, 0])

#: The bits of chances of 1, and of the highest that rounding may make and the next number, as whole numbers.
CHANCES = np.array([1.0, 1 + 1e-9, np.nextafter(1 + 1e-9, 2)]).view(np.int64).tolist()

#: By name how an evaluator is made, and the arguments of its batches.
KINDS = {
    "distances": (
        lambda **more: Evaluator(metrics=["mAP", "CMC@1", "mINP"], gallery_ids=PEOPLE, gallery_cameras=CAMERAS, **more),
        [
            {"query_ids": [0, 1, 2], "distances": DISTANCES, "query_cameras": [1, 0, 1]},
            {"query_ids": [1], "distances": DISTANCES[:1], "query_cameras": [1]},
        ],
    ),
    "named distances": (
        lambda **more: Evaluator("sysu", ["mAP", "CMC@2"], gallery_ids=PEOPLE, **more),
        [
            {"query_ids": [0, 1], "distances": DISTANCES[:2], "names": ["m", "k"]},
            {"query_ids": [2, 0], "distances": DISTANCES[1:], "names": ["l", "a"]},
        ],
    ),
    "features": (
        lambda **more: Evaluator(metrics="mAP", gallery_ids=PEOPLE, gallery=FEATURES, metric="dot", **more),
        [
            {"query_ids": [0, 1], "features": FEATURES[1:3], "names": [5, 3]},
            {"query_ids": [2], "features": FEATURES[:1], "names": [4]},
        ],
    ),
    "indices": (
        lambda **more: Evaluator(metrics=["mAP@2", "R@2"], gallery_ids=PEOPLE, **more),
        [{"query_ids": [0, 1], "indices": [[0, 1, 2], [4, 3, -1]]}, {"query_ids": [2], "indices": [[0, 1, -1]]}],
    ),
    "measured indices": (
        lambda **more: Evaluator(metrics=["mAP@2", "R@2"], gallery_ids=PEOPLE, **more),
        [{"query_ids": [0, 1], "indices": [[0, 1, 2], [4, 3, 2]], "distances": [[0, 0.5, 1], [0.25, 0.25, 2]]}],
    ),
    "run": (
        lambda **more: Evaluator(metrics=["mAP", "nDCG@2", "num_ret"], qrels=QRELS, **more),
        [{"run": {"a": RUN["a"], "c": RUN["c"]}}, {"run": {"b": RUN["b"], "e": RUN["e"]}}],
    ),
    "run with options": (
        lambda **more: Evaluator(None, ["mAP", "P@1"], qrels=QRELS, level=2, depth=3, missing="zero", **more),
        [{"run": {"b": RUN["b"]}}, {"run": {"a": RUN["a"], "c": RUN["c"], "d": {"u": 1.0}}}],
    ),
    "samples": (
        lambda **more: Evaluator(metrics=["mAP", "nDCG"], **more),
        [
            {"preds": [0.5, 0.25, 0.75], "target": [1, 0, 1], "indexes": [0, 0, 1]},
            {"preds": [0.5, 0.5], "target": [0, 1], "indexes": [1, 0]},
        ],
    ),
}  # fmt: skip


def made(kind, batches=None, **more):
    make, given = KINDS[kind]
    evaluator = make(**more)
    for batch in given if batches is None else batches:
        evaluator.update(**batch)
    return evaluator


def told(call):
    return re.sub("'[^']*pytest[^']*'", "'…'", outcome(lambda: call().compute(), {}))


@pytest.mark.parametrize("kind", KINDS)
def test_states_in_which_one_number_is_another(kind):
    """Of the header each field, and of each column the first, the middle and the last number, and its size."""
    whole = made(kind)
    assert told(lambda: Evaluator.from_bytes(whole.to_bytes())) == told(lambda: whole)
    header, payload = unseal("retrieval evaluator", whole.to_bytes())
    bits = np.frombuffer(payload, "<i8")
    lines = [f"{len(whole)} queries: {told(lambda: whole)}"]

    def saved(changed, column):
        return Evaluator.from_bytes(seal("retrieval evaluator", {**header, **changed}, column.tobytes()))

    for name, value in header.items():
        others = [None, True, -1, 0, 1, 3, 2**40, 0.5, "a", "", [], ["mAP"], [0], {}, {"a": 1}, {"extra": -1}]
        others += [value[:-1], [*value, *value[-1:]]] if isinstance(value, list) else []
        for other in others if name != "version" else ():
            lines.append(f"{name} {other}: {told(lambda name=name, other=other: saved({name: other}, bits))}")
    lines += [f"no {name}: {told(lambda name=name: saved({name: None}, bits))}" for name in header]
    lines.append(f"one fewer: {told(lambda: saved({}, bits[:-1]))}")
    at = 0
    for name, size in header["layout"]:
        for place in sorted({0, size // 2, size - 1} if size else ()):
            for value in (-1, 0, 1, 2, 3, 4, 50, -(2**63), 2**63 - 1, *CHANCES):
                column = bits.copy()
                column[at + place] = value
                lines.append(f"{name}[{place}] = {value}: {told(lambda column=column: saved({}, column))}")
        at += size
        fewer = [[one, count - (one == name)] for one, count in header["layout"]]
        less = np.delete(bits, at - 1) if size else bits
        lines.append(f"{name} shorter: {told(lambda fewer=fewer, less=less: saved({'layout': fewer}, less))}")
        without = [[one, count] for one, count in header["layout"] if one != name]
        rest = np.delete(bits, np.s_[at - size : at])
        lines.append(f"without {name}: {told(lambda without=without, rest=rest: saved({'layout': without}, rest))}")
        renamed = [["other" if one == name else one, count] for one, count in header["layout"]]
        lines.append(f"{name} renamed: {told(lambda renamed=renamed: saved({'layout': renamed}, bits))}")
    assert at == bits.size
    kept.same(f"evaluators/state-{kind.replace(' ', '-')}", "\n".join(lines) + "\n")


@pytest.mark.parametrize("kind", KINDS)
def test_batches_with_an_odd_argument(kind):
    (batch, *_) = KINDS[kind][1]
    lines = []
    for name in ("preds", "target", "indexes", "query_ids", "distances", "features", "indices", "run", "query_cameras",
                 "ignore", "self_match", "names"):  # fmt: skip
        shape = np.shape(batch[name]) if name in batch and name != "run" else (len(batch.get("query_ids", "ab")),)
        for said, value in {**PLAIN, **odd_arrays(*shape)}.items() if name in batch else list(PLAIN.items())[:9]:
            lines.append(f"{name}, {said}: {told(lambda name=name, value=value: made(kind, [{**batch, name: value}]))}")
    lines += [f"no {name}: {told(lambda name=name: made(kind, [{**batch, name: None}]))}" for name in batch]
    kept.same(f"evaluators/batch-{kind.replace(' ', '-')}", "\n".join(lines) + "\n")


def test_evaluators_that_are_merged():
    """Of the same kind, of other kinds, the same queries twice, and none."""
    lines = []
    for one, other in itertools.product(KINDS, KINDS):
        lines.append(f"{one} + {other}: {told(lambda one=one, other=other: made(one).merge(made(other)))}")
    for kind, duplicates in itertools.product(KINDS, ("error", "first")):
        first, last = (slice(0, 1), slice(1, None))
        halves = [made(kind, KINDS[kind][1][half], duplicates=duplicates) for half in (first, last)]
        lines.append(f"halves of {kind}: {told(lambda halves=halves: halves[0].merge(halves[1]))} {len(halves[0])}")
        lines.append(f"half of {kind}: {told(lambda halves=halves: halves[1])} {halves[1].metrics}")
        twice = [*KINDS[kind][1], KINDS[kind][1][0]]
        lines.append(
            f"{kind} twice: {told(lambda kind=kind, twice=twice, how=duplicates: made(kind, twice, duplicates=how))}"
        )
        lines.append(f"no {kind}: {told(lambda kind=kind: made(kind, []))}")
        empty = made(kind, [], duplicates=duplicates)
        lines.append(f"{kind} into none: {told(lambda kind=kind, empty=empty: empty.merge(made(kind)))} {len(empty)}")
        again = made(kind, [])
        again.load_state_dict(made(kind).state_dict())
        lines.append(f"{kind} loaded: {told(lambda again=again: again)}")
        lines.append(
            f"restored {kind}: {told(lambda kind=kind: Evaluator.from_bytes(made(kind).to_bytes()).merge(made(kind, [])))}"
        )
    with pytest.raises(DetmapError, match="only an Evaluator can be merged, not dict"):
        made("run").merge({})
    kept.same("evaluators/merged", "\n".join(lines) + "\n")


#: Odd arguments of evaluators.
MADE = {
    "qrels": (None, {}, {"a": {}}, {"a": {"x": 0.5}}, [1]), "level": (None, 0, 1, 2, 0.5, "a", True),
    "depth": (None, 0, 1, 2.5), "judged_only": (True, 1), "gallery_ids": ([], [1, 2], ["a"]),
    "gallery_cameras": ([1], [1, 2]), "metric": ("cosine", "x"), "gallery": ([[1.0]], [[1.0], [2.0]]),
    "junk_id": (None, 1, "a"), "duplicates": ("first", "last", None),
    "metrics": (None, [], "mAP", "TPR@FPR=0.1", ["mAP", "map"], "AP@3"),
    "convention": ("trec", "reid", "cuhk03", "gap", "x", 3),
    "ties": ("expected", "x"), "missing": ("zero", None),
}  # fmt: skip


def test_evaluators_of_odd_arguments():
    lines = [f"by default: {defaults(Evaluator)}"]
    for base in ({}, {"qrels": QRELS}, {"gallery_ids": [1, 2]}):
        for name, values in MADE.items():
            for value in values:
                said = outcome(lambda **given: str(Evaluator(**given).metrics), {**base, name: value})
                lines.append(f"{sorted(base)} {name} {value!r}: {said}")
    kept.same("evaluators/made", "\n".join(lines) + "\n")
