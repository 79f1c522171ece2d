"""Letters for groups of models: models that share a letter do not differ significantly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def group_letters(models: Sequence[str], apart: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return letters for every model. Two models that are a pair of `apart` share no letter; any other two models share
    a letter.

    Each letter stands for a maximal set of models in which no two are a pair of `apart`. Sets are added until every
    pair outside `apart` is in a set. Finding the smallest number of sets takes exponential time, so the method is
    greedy. Greedy sets are the fewest in the usual case that two models differ significantly if and only if their
    values are far enough apart.
    """
    place = {name: i for i, name in enumerate(models)}
    size = len(models)
    alike = [(1 << size) - 1] * size  # for each model, the models that may share its letter, as bits
    for first, second in apart:
        alike[place[first]] &= ~(1 << place[second])
        alike[place[second]] &= ~(1 << place[first])
    together = [0] * size  # for each model, the models that already share its letter, as bits
    groups = []
    for i in range(size):
        while missing := (alike[i] & ~together[i]) >> i << i:
            members = 1 << i | 1 << (missing.bit_length() - 1)  # start from the pair with the most distant ranks
            fits = alike[i] & alike[missing.bit_length() - 1]
            for k in range(size):
                if fits >> k & 1:
                    members |= 1 << k
                    fits &= alike[k]
            groups.append(members)
            for k in range(size):
                if members >> k & 1:
                    together[k] |= members
    return {name: "".join(letter(g) for g, group in enumerate(groups) if group >> i & 1) for name, i in place.items()}


def letter(index: int) -> str:
    """Return the letters for an index: a, b, …, z, aa, ab, …"""
    text = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        text = chr(97 + rest) + text
    return text
