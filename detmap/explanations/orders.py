"""Test whether the order of neighbouring models on a leaderboard survives other rules. Each model is scored separately."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from detmap.data.tables import Detections, GroundTruth
from detmap.detection.protocols import Protocol
from detmap.errors import InputError
from detmap.explanations.replay import Replay, trimmed
from detmap.explanations.survival import _KINDS, changed_decisions, other_conventions


def values_under(
    ground_truth: GroundTruth,
    detections: Detections,
    protocol: Protocol,
    metric: str = "AP",
    *,
    threads: int | None = None,
) -> dict[str, Any]:
    """Return a model's metric under each of the rules that `detmap.explanations.survives` tries, as plain values.

    The result has ``metric``, ``value`` and ``situations``. ``situations`` maps the name of each variant of the rules
    to the variant's kind, number of changed decisions, and minimum and maximum value. Variants without positives are
    left out. There are no variants without suspicious labels or with resampled images, because these variants need all
    models at once.
    """
    base = trimmed(protocol, metric)
    replay = Replay(ground_truth, detections, metric, threads)
    value = replay.value(base).value
    low, high = replay.band(base)
    found: dict[str, list[Any]] = {"any order of equal scores": [_KINDS["ties"], 0, low, high]}
    for kind, name, changes, changed in (*changed_decisions(base), *other_conventions(base, metric, ground_truth)):
        if name and changed != base:
            try:
                other = replay.value(changed).value
            except InputError:
                continue
            found[name] = [kind, changes, other, other]
    return {"metric": metric, "value": value, "situations": found}


def orders(models: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Test for each pair of neighbours on the leaderboard whether their order survives, and return a row per pair.
    `models` has the outcome of `values_under` for each model, the best first. A row has these items:

    * ``first``, ``second``: the names of the two models;
    * ``equal``: whether their values are equal, so that there is no order;
    * ``tried``: the number of rules that change any model's value;
    * ``held``: the number of these rules under which the order holds;
    * ``survives``: whether the order holds under all of these rules;
    * ``against``: the rules under which the first model is not above the second. Each rule has a name, a kind, its number
      of changes, and both values. Rules with fewer changes come first.
    """
    names = list(models)
    every = list(dict.fromkeys(name for one in models.values() for name in one["situations"]))
    tried: dict[tuple[Any, ...], str] = {}
    for name in every:
        ends = tuple(_ends(one, name) for one in models.values())
        if ends != tuple((one["value"], one["value"]) for one in models.values()):
            tried.setdefault(ends, name)  # rules that give the same values to all models count once
    made = []
    for first, second in itertools.pairwise(names):
        one, other = models[first], models[second]
        against = []
        for name in tried.values():
            low, high = _ends(one, name)[0], _ends(other, name)[1]
            if not low > high:
                kind, changes = next(m["situations"][name][:2] for m in models.values() if name in m["situations"])
                moved = sum(max(abs(end - model["value"]) for end in _ends(model, name)) for model in (one, other))
                against.append(
                    (changes, moved, {"name": name, "kind": kind, "changes": changes, "values": [low, high]})
                )
        against.sort(key=lambda row: row[:2])
        made.append(
            {
                "first": first,
                "second": second,
                "equal": one["value"] == other["value"],
                "tried": len(tried),
                "held": len(tried) - len(against),
                "survives": not against and one["value"] > other["value"],
                "against": [row for _, _, row in against],
            }
        )
    return made


def _ends(model: Mapping[str, Any], name: str) -> tuple[float, float]:
    """Return the minimum and maximum of a model's metric under the rules `name`. If the model was not scored under
    these rules, both equal the model's value.
    """
    found: Sequence[Any] | None = model["situations"].get(name)
    return (model["value"], model["value"]) if found is None else (found[2], found[3])
