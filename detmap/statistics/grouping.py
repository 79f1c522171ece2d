"""Letters for groups of models: models that share one cannot be told apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def group_letters(models: Sequence[str], apart: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return letters for every model: two that are `apart` share none, any other two share at least one.

    A letter is a largest set of models none of which are apart; sets are taken until every pair is in one. (The fewest sets
    take exponential time; of models on a line, which these nearly are, this finds them.)
    """
    place = {name: i for i, name in enumerate(models)}
    size = len(models)
    alike = [(1 << size) - 1] * size  # sets of models as bits
    for first, second in apart:
        alike[place[first]] &= ~(1 << place[second])
        alike[place[second]] &= ~(1 << place[first])
    together = [0] * size  # who is in a set with whom already
    groups = []
    for i in range(size):
        while missing := (alike[i] & ~together[i]) >> i << i:
            members = 1 << i | 1 << (missing.bit_length() - 1)  # as far along the line as it goes
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
    """Return a, b, …, z, aa, ab, … ."""
    text = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        text = chr(97 + rest) + text
    return text
