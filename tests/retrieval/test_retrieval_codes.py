"""Hash codes against naive twins: every form of codes and labels, tie rules, radii, depths, blocks."""

from __future__ import annotations

import naive_retrieval as naive
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from legs import examples

from detmap.errors import InputError, OptionError
from detmap.kernels import ranking
from detmap.retrieval import codes as of_codes
from detmap.retrieval import evaluate_codes


def made(seed, queries=4, items=40, bits=5, labels=3):
    rng = np.random.default_rng(seed)
    return (
        rng.integers(0, 2, (queries, bits)),
        rng.integers(0, 2, (items, bits)),
        (rng.random((queries, labels)) < 0.4).astype(int),
        (rng.random((items, labels)) < 0.3).astype(int),
    )


@pytest.mark.compiled  # wrap-around multiplication
@given(st.integers(0, 2**32), st.sampled_from([1, 5, 64, 70, 130]), st.sampled_from(["index", "reversed"]))
@settings(max_examples=examples(80))
def test_equals_twin(seed, bits, ties):
    query, gallery, query_labels, gallery_labels = data = made(seed, bits=bits)
    metrics = ["AP", "AP@7", "AP(positives)@7", "AP(smaller)@7", "P@7", "P(radius=1)", "R(radius=1)"]
    try:
        result = evaluate_codes(*data, metrics=metrics, ties=ties)
    except InputError:
        assert not (query_labels @ gallery_labels.T).any()
        return
    distances = (query[:, None] != gallery[None]).sum(axis=2)
    radius_precision = []
    for q, row in enumerate(distances):
        relevant = query_labels[q] @ gallery_labels.T > 0
        positives = int(relevant.sum())
        flags = [int(relevant[i]) for i in naive.order_by_distance(row, ties=ties)]
        near = row <= 1
        if not positives:
            radius_precision.append(0.0)  # the convention's value of an empty query, also within a radius
            continue
        wanted = [
            naive.step_ap(flags, positives, None, "hits"),
            naive.step_ap(flags, positives, 7, "hits") or 0,
            naive.step_ap(flags, positives, 7),
            naive.step_ap(flags, positives, 7, "smaller"),
            sum(flags[:7]) / 7,
            (near & relevant).sum() / max(near.sum(), 1),
            (near & relevant).sum() / positives,
        ]
        got = [result.per_query[name][q] for name in metrics]
        assert got == pytest.approx([float(w) for w in wanted], abs=1e-14)
        radius_precision.append(wanted[5])
    assert result.radius_precision[1] == pytest.approx(np.mean(radius_precision), abs=1e-14)
    assert result.radius_precision[1] == result["P(radius=1)"]
    assert result.radius_recall[1] == result["R(radius=1)"]
    assert result.radius_recall[-1] == pytest.approx(1 - result.queries["empty"] / len(query), abs=1e-15)


@pytest.mark.compiled  # wrap-around multiplication
def test_every_form_of_codes_and_labels_is_the_same():
    query, gallery, _, _ = made(1, queries=6, bits=70)
    rng = np.random.default_rng(1)
    names = (rng.integers(0, 4, 6), rng.integers(0, 4, 40))
    wanted = dict(evaluate_codes(query, gallery, *names))

    def packed(codes):
        bits = np.zeros((len(codes), 128), np.uint8)
        bits[:, :70] = codes
        return np.packbits(bits, axis=1).view(np.uint64)

    one_hot = [np.eye(4, dtype=bool)[ids] for ids in names]
    text = [np.array(["label " + str(i) for i in ids]) for ids in names]
    for forms in (
        (2.0 * query - 1, (2 * gallery - 1).astype(np.int8), *names),
        (query == 1, gallery == 1, *one_hot),
        (packed(query), packed(gallery), *text),
        (query.astype(np.float32).tolist(), gallery, *names),
    ):
        assert dict(evaluate_codes(*forms)) == wanted


def test_blocks_and_threads_change_nothing(monkeypatch):
    data = made(2, queries=30, items=200, bits=6)
    names = (np.arange(30) % 4, np.arange(200) % 4)
    for labels in (data[2:], names):
        wanted = evaluate_codes(*data[:2], *labels)
        for cores in (1, 3):
            monkeypatch.setattr("detmap.system.parallel.cores", lambda n=cores: n)
            monkeypatch.setattr("detmap.retrieval.codes._BLOCK_ITEMS", 300)
            again = evaluate_codes(*data[:2], *labels)
            assert dict(again) == dict(wanted)
            assert np.array_equal(again.per_query["AP"], wanted.per_query["AP"], equal_nan=True)
            monkeypatch.undo()


def test_a_depth_keeps_what_the_metrics_read(monkeypatch):
    data = made(3, queries=5, items=300, bits=4)
    whole = evaluate_codes(*data, metrics=["AP@9", "P@9", "R@9", "mINP"])
    assert evaluate_codes(*data, metrics=["AP@9"]).tie_band == whole.tie_band
    monkeypatch.setattr("detmap.retrieval.codes.KEPT_HITS", 0)
    top = evaluate_codes(*data, metrics=["AP@9", "P@9", "R@9"])
    for name in top.per_query:
        assert np.array_equal(top.per_query[name], whole.per_query[name])
    assert top.hits is None  # what lies beyond the depth was not written
    with pytest.raises(OptionError, match="kept for evaluations"):
        _ = top.tie_band
    names = ["mP@9", "iprec@0.5", "P@9", "AP@9"]
    cut = evaluate_codes(*data, metrics=names)
    monkeypatch.undo()
    assert dict(cut) == dict(evaluate_codes(*data, metrics=names))
    full = evaluate_codes(*data, metrics=["CMC@9"]).cmc
    monkeypatch.setattr("detmap.retrieval.codes.KEPT_HITS", 0)
    assert np.array_equal(evaluate_codes(*data, metrics=["CMC@9"]).cmc, full[:9])
    monkeypatch.undo()
    for ties in ("best", "worst", "expected", "reversed"):
        a = evaluate_codes(*data, metrics=["AP@9", "RR"], ties=ties)
        b = evaluate_codes(*data, metrics=["AP@9"], ties=ties)
        assert np.array_equal(a.per_query["AP@9"], b.per_query["AP@9"])
        assert a.tie_band_at(9) == b.tie_band_at(9)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([[0, 1], [1, 1]], "0 and 1 where the other side has -1 and 1"),
        ([[0.5, 1]], "all of -1 and 1"),
        ([[1, -1, 1]], "3 bits where the queries have 2"),
        (np.zeros((2, 1), np.uint64), "bits where the queries"),
        ([1, 1], "expected a matrix"),
    ],
)
def test_bad_codes(codes, message):
    with pytest.raises(InputError, match=message):
        evaluate_codes([[1, -1]], codes, [1], [1] * len(codes))


class Sparse:
    """What numpy takes for one element, as scipy's sparse matrices are."""

    def toarray(self):
        return np.eye(2)


def test_what_is_no_array_is_named():
    with pytest.raises(
        InputError, match=r"gallery_codes: expected an array, not Sparse; give a dense array: x.toarray"
    ):
        evaluate_codes([[1, -1]], Sparse(), [1], [1, 2])
    with pytest.raises(InputError, match=r"query_labels: expected an array, not set$"):
        evaluate_codes([[1, -1]], [[1, -1]], {1}, [1])


def test_bad_labels_and_options():
    with pytest.raises(InputError, match="nothing in common"):
        evaluate_codes([[1, -1]], [[1, -1]], [1], [2])
    with pytest.raises(InputError, match="another shape"):
        evaluate_codes([[1, -1]], [[1, -1]], [1], [[1, 0]])
    with pytest.raises(InputError, match="expected labels of 1 items"):
        evaluate_codes([[1, -1]], [[1, -1]], [1, 2], [1])
    with pytest.raises(OptionError, match="k must be"):
        evaluate_codes([[1, -1]], [[1, -1]], [1], [1], k=0)


@pytest.mark.compiled  # wrap-around multiplication
@pytest.mark.parametrize("count", [1, 3, 255, 256, 300])
@pytest.mark.parametrize("gap", [1, 1000])
def test_items_listed_by_label_and_labels_compared_are_the_same(monkeypatch, count, gap):
    """Labels in a small range list their items, which changes nothing; with negative, own and unknown ones."""
    rng = np.random.default_rng(count)
    data = rng.integers(0, 2, (20, 9)), rng.integers(0, 2, (500, 9))
    theirs = (np.resize(np.arange(count), 500) - 2) * gap
    names = np.append(rng.choice(theirs, 18), [-2 * gap, 10**9]), theirs
    options = {"metrics": ["AP", "AP@9", "P(radius=2)"], "self_match": [-1] * 10 + [3] * 10}
    wanted = [evaluate_codes(*data, *names, **options, ties=ties) for ties in ("index", "worst")]
    # The twin: rows of one label each, which are compared bit by bit.
    rows = [np.unique(names[1], return_inverse=True)[0] == column[:, None] for column in names]
    for one in wanted:
        ties = one.convention.ties
        for again in (
            evaluate_codes(*data, *(row.astype(int) for row in rows), **options, ties=ties),
            evaluate_codes(*data, *(np.array([f"l{n}" for n in column]) for column in names), **options, ties=ties),
        ):
            assert dict(again) == dict(one)
            for name in one.per_query:
                assert np.array_equal(again.per_query[name], one.per_query[name], equal_nan=True)
        monkeypatch.setattr(of_codes, "_SPREAD", 0)
        assert np.array_equal(evaluate_codes(*data, *names, **options, ties=ties).hits.ranks, one.hits.ranks)
        monkeypatch.undo()


def counted(distances, relevant, own):
    """The twin: rank, items ahead and items tied of each relevant item, by sorting; without the query's own item."""
    rows = []
    for q, row in enumerate(distances):
        kept = np.delete(np.arange(row.size), own[q] if own[q] >= 0 else [])
        order = kept[np.argsort(row[kept], kind="stable")]
        ranked, hits = row[order], np.flatnonzero(relevant[q, order])
        ahead, until = (np.searchsorted(ranked, ranked[hits], side) for side in ("left", "right"))
        rows.append(np.column_stack((hits + 1, ahead, until - ahead)))
    return np.concatenate(rows)


THOUSANDS = [pytest.param(count, marks=pytest.mark.compiled) for count in (4097, 8300)]


@pytest.mark.parametrize("classes", [2, 40])
@pytest.mark.parametrize("bits", [8, 64, 192, 193])
@pytest.mark.parametrize("items", [2, 64, 65, 300, *THOUSANDS])
def test_every_hit_is_counted_as_by_sorting(monkeypatch, bits, items, classes):
    """At the edges of strips and tiles, with distances of a byte and of more, own items, codes that are all alike, and many
    or few relevant items."""
    if numba.config.DISABLE_JIT:  # compiled kernels have their constants in them
        monkeypatch.setattr(ranking, "TILE", 64)
    rng = np.random.default_rng(bits * items)
    query, gallery = rng.integers(0, 2, (9, bits)), rng.integers(0, 2, (items, bits))
    if bits == 8:
        gallery[:] = 1  # all at one distance
    edges = np.array([0, 63, 64, 65, 127, 4095, 4096, items - 1, -1])
    own = np.where(edges < items, edges, -1)
    theirs = rng.integers(5, 5 + classes, items)
    asked = np.append(theirs[own[:-1]], 6)
    distances = (query[:, None] != gallery[None]).sum(axis=2)
    wanted = counted(distances, asked[:, None] == theirs, own)
    if not wanted.size:
        pytest.skip("no query has another item")
    several = np.arange(5, 5 + classes)
    rows = asked[:, None] == several, theirs[:, None] == several
    for spread, labels in ((4, (asked, theirs)), (0, (asked, theirs)), (4, rows)):
        monkeypatch.setattr(of_codes, "_SPREAD", spread)
        hits = evaluate_codes(query, gallery, *labels, metrics=["AP"], self_match=own).hits
        assert np.array_equal(np.stack((hits.ranks, hits.ahead, hits.tied), axis=1), wanted), spread


def test_codes_are_told_and_packed_alike_in_one_part_and_in_many(monkeypatch):
    """Parts of a matrix are looked at one by one: what the whole is, and its bits, do not depend on how it is cut."""
    rng = np.random.default_rng(4)
    monkeypatch.setattr("detmap.system.parallel.cores", lambda: 3)
    for case in range(60):
        bits = rng.random((rng.integers(1, 40), rng.choice([1, 7, 8, 64, 70]))) < rng.choice([0.5, 1.0])
        dtype = rng.choice([np.bool_, np.uint8, np.int8, np.int64, np.float32])
        signs = dtype in (np.int8, np.int64, np.float32) and case % 2
        codes = np.where(bits, 1, -1 if signs else 0).astype(dtype)
        monkeypatch.setattr(of_codes, "_PART", int(rng.choice([1, 100, 1 << 18])))
        words, count, form = of_codes._pack(codes, "codes", packed=False)
        assert count == bits.shape[1]
        assert form == ("signs" if signs and not bits.all() else "bits")
        got = np.unpackbits(words.view(np.uint8), axis=1)
        assert np.array_equal(got[:, :count], bits)
        assert not got[:, count:].any()
        if dtype is not np.bool_ and (codes.size > 1 or not signs):
            row, column = rng.integers(len(codes)), rng.integers(count)
            codes[row, column] = rng.choice([2, -2] if signs else [2])
            with pytest.raises(InputError, match="all of -1 and 1"):
                of_codes._pack(codes, "codes", packed=False)
            codes[row, column] = 0 if signs else 1
            if signs and (np.delete(codes.ravel(), row * count + column) == -1).any():
                with pytest.raises(InputError, match="all of -1 and 1"):
                    of_codes._pack(codes, "codes", packed=False)
    with pytest.raises(InputError, match="all of -1 and 1"):
        of_codes._pack(np.full((3, 9), 255, np.uint8), "codes", packed=False)  # -1 only where bytes have a sign


def test_labels_farther_apart_than_32_bits_hold_are_not_listed_by_their_distance(monkeypatch):
    """However many items there are: their distances would not fit into the numbers that list them."""
    monkeypatch.setattr(of_codes, "_SPREAD", 1 << 40)
    monkeypatch.setattr(of_codes.sorting, "group_by", lambda *_: pytest.fail("they are"))
    for far in (2**31 - 1, 2**31, 2**40):
        labels = np.array([[0], [far], [0]], np.uint64)
        _, positives = of_codes._relevant(labels, np.array([[0], [far], [1]], np.uint64), several=False)
        assert positives.tolist() == [2, 1, 0]


def test_words_of_zeros_and_ones_that_are_not_packed_are_bits():
    """``packed=False`` holds for uint64 as for any other kind of number."""
    rng = np.random.default_rng(3)
    query, gallery = rng.integers(0, 2, (5, 70)), rng.integers(0, 2, (20, 70))
    expected = of_codes._both(query, gallery, False)
    for one, other in ((np.uint64, np.uint64), (np.uint64, np.uint8)):
        made = of_codes._both(query.astype(one), gallery.astype(other), False)
        assert made[2] == expected[2] == 70
        assert all(np.array_equal(a, b) for a, b in zip(made[:2], expected[:2], strict=True))
