"""What pipelines hand over to rankings, and what they ask of the command line: tensors, packed codes, paths, plots."""

from __future__ import annotations

import json
import pathlib
import re

import naive_retrieval as naive
import numba
import numpy as np
import pytest

import detmap
from detmap import cli
from detmap.errors import InputError, OptionError
from detmap.kernels import ranking
from detmap.retrieval import (
    average_precision_score,
    evaluate_codes,
    evaluate_distances,
    evaluate_rankings,
    evaluate_run,
    multi_query,
    scoring,
)
from detmap.retrieval import codes as of_codes
from detmap.statistics import compare_queries, wilcoxon


class Tensor:
    """What matters of a tensor that requires a gradient: numpy cannot read it, and its elements equal only themselves."""

    def __init__(self, values, dtype="torch.float32", attached=True):
        self.values, self.dtype, self.attached = np.asarray(values), dtype, attached

    def detach(self):
        return Tensor(self.values, self.dtype, attached=False)

    def cpu(self):
        return self

    def float(self):
        return Tensor(self.values, "torch.float32", self.attached)

    def __array__(self, dtype=None, copy=None):
        if self.attached:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.values if dtype is None else self.values.astype(dtype)

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return (Tensor(value, self.dtype, self.attached) for value in self.values)

    def __getitem__(self, at):
        return Tensor(self.values[at], self.dtype, self.attached)


def half(values):
    return Tensor(values, "torch.bfloat16")


@pytest.mark.parametrize("tensor", [Tensor, half])
def test_tensors_that_require_gradients_or_are_bfloat16(tensor):
    relevance, given_scores = [0, 1, 1], [0.125, 0.25, 0.5]
    assert detmap.average_precision(tensor(relevance), tensor(given_scores)) == 1.0
    assert detmap.precision_recall_curve(tensor(relevance), tensor(given_scores)).recall.tolist() == [0.5, 1.0, 1.0]
    assert average_precision_score(tensor(relevance), tensor(given_scores)) == 1.0
    assert detmap.Hits.from_ranks([tensor([1, 3])], Tensor([2])).average_precision()[0] == (1 + 2 / 3) / 2
    assert evaluate_rankings(tensor([[1, 0], [0, 1]]), metrics="mAP")["mAP"] == 0.75
    assert evaluate_rankings([tensor([7, 8])], query_ids=tensor([8]), metrics="mAP")["mAP"] == 0.5
    assert evaluate_rankings([tensor([7, 8])], relevant=[tensor([8])], metrics="mAP")["mAP"] == 0.5
    assert evaluate_rankings([list(tensor([7, 8]))], relevant=[list(tensor([8]))], metrics="mAP")["mAP"] == 0.5
    signs = [[-1, 1, 1], [1, 1, -1]]
    found = evaluate_codes(tensor(np.ones((1, 3))), tensor(signs), tensor([1]), tensor([1, 2]), metrics="mAP")
    assert found["mAP"] == 1.0
    features, people, cameras = multi_query(tensor([[1.0, 2.0], [3.0, 4.0]]), tensor([5, 5]), tensor([0, 0]))
    assert (features.tolist(), people.tolist(), cameras.tolist()) == ([[2.0, 3.0]], [5], [0])


def test_multi_query_keeps_the_types_of_ids_and_refuses_one_dimension():
    features, people, cameras = multi_query(np.arange(8.0).reshape(4, 2), [2, 1, 2, 1], ["b", "a", "b", "c"])
    assert (people.tolist(), cameras.tolist()) == ([1, 1, 2], ["a", "c", "b"])
    assert features.tolist() == [[2.0, 3.0], [6.0, 7.0], [2.0, 3.0]]
    with pytest.raises(InputError, match="expected a matrix of numbers"):
        multi_query([1.0, 2.0], [1, 2], [0, 0])
    with pytest.raises(InputError, match="ids must be a flat sequence"):
        multi_query([[1.0], [2.0]], 1, [0, 0])


def test_tuples_as_ids_are_one_line_or_taken():
    assert evaluate_rankings([[("a", 1), ("b", 2)]], relevant=[{("b", 2)}], metrics="mAP")["mAP"] == 0.5
    for call in (
        lambda: evaluate_rankings([[("a", 1), ("b", 2)]], query_ids=[("a", 1)]),
        lambda: evaluate_rankings([[("a", 1), "b"]], query_ids=["b"]),
        lambda: evaluate_run({("a", 1): {"x": 1}}, {("a", 1): {"x": 1.0}}),
        lambda: evaluate_run({"a": {("x", 1): 1, "y": 1}}, {"a": {"x": 1.0}}),
        lambda: evaluate_distances([[1.0, 2.0]], [(1, 2)], [1, 2]),
        lambda: evaluate_distances([[1.0, 2.0]], [("a", 1)], ["a", "b"]),
    ):
        with pytest.raises(InputError) as error:
            call()
        assert "\n" not in str(error.value)


def test_sparse_labels_are_rows_as_in_scikit_learn():
    sparse = pytest.importorskip("scipy.sparse")
    labels, given_scores = [[0, 1], [1, 0], [1, 1]], [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]
    for form in (sparse.csr_matrix, sparse.coo_array, sparse.lil_matrix):
        assert average_precision_score(form(labels), given_scores) == average_precision_score(labels, given_scores)


def test_conventions_refuse_what_they_cannot_mean():
    with pytest.raises(OptionError, match="global_average_precision does"):
        evaluate_rankings([[1, 0]], convention="gap")
    with pytest.raises(OptionError, match="not negative"):
        evaluate_rankings([[1, 0]], digits=-3)


# ---------------------------------------------------------------------------------------------------------- hash codes


def coded(seed, queries=7, items=40, bits=20):
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, 2, (count, bits)) for count in (queries, items)]
    return *codes, rng.integers(0, 3, queries), rng.integers(0, 3, items)


def test_codes_packed_in_bytes_are_those_of_their_bits():
    query, gallery, ours, theirs = coded(0)
    whole = evaluate_codes(query, gallery, ours, theirs, 5)
    packed = [np.packbits(side, axis=1) for side in (query, gallery)]
    again = evaluate_codes(*packed, ours, theirs, 5)
    assert dict(again) == dict(whole)
    ones = [np.uint8([[1], [0]]), np.uint8([[1], [1]])]  # each may be bits, or eight of them
    assert evaluate_codes(*ones, [1, 2], [1, 2], packed=True).radius_precision.size == 9
    assert evaluate_codes(*ones, [1, 2], [1, 2]).radius_precision.size == 2
    with pytest.raises(InputError, match="uint8 or uint64"):
        evaluate_codes(query, gallery, ours, theirs, packed=True)
    with pytest.raises(InputError, match="query_codes: record 0: codes must be all of -1 and 1"):
        evaluate_codes(*[np.uint8([[3, 5]])] * 2, [1], [1], packed=False)


@pytest.mark.parametrize("bytes_of", ["query", "gallery"])
def test_codes_are_packed_where_the_bytes_of_either_side_say_so(bytes_of):
    few, more = np.uint8([[0, 1], [1, 1]]), np.uint8([[2, 1], [1, 0], [255, 7]])
    query, gallery = (more, few) if bytes_of == "query" else (few, more)
    labels = [0, 1, 0]
    found = evaluate_codes(query, gallery, labels[: len(query)], labels[: len(gallery)])
    bits = [np.unpackbits(side, axis=1) for side in (query, gallery)]
    assert dict(found) == dict(evaluate_codes(*bits, labels[: len(query)], labels[: len(gallery)]))
    assert found.radius_precision.size == 17


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("bits", [20, 130])
def test_the_query_itself_leaves_the_ranking_of_codes(several, bits):
    query, gallery, ours, theirs = coded(1, bits=bits)
    own = np.array([0, 39, 7, -1, 3, 3, 20])
    query[[0, 1, 2]] = gallery[[0, 39, 7]]
    labels = (np.eye(3)[ours], np.eye(3)[theirs]) if several else (ours, theirs)
    names = ["mAP", "mINP", "P@5", "R@5", "num_ret", "num_rel"]
    found = evaluate_codes(
        query, gallery, *labels, metrics=[*names, "P(radius=9)"], convention="detmap", self_match=own
    )
    distances = (query[:, None] != gallery[None]).sum(axis=2)
    wanted = evaluate_distances(
        distances, ours, theirs, metrics=names, convention="detmap", self_match=own, junk_id=None
    )
    for name in names:
        assert np.array_equal(found.per_query[name], wanted.per_query[name]), name
    assert found.junk == wanted.junk == 6
    for q, mine in enumerate(own):
        near = [i for i in range(40) if distances[q, i] <= 9 and i != mine]
        share = sum(theirs[i] == ours[q] for i in near) / len(near) if near else 0
        assert found.per_query["P(radius=9)"][q] == pytest.approx(share)
    itself = evaluate_codes(gallery, gallery, labels[1], labels[1], metrics=names, self_match=True)
    assert itself["num_ret"] == 40 * 39
    for bad in ([40] * 7, [0.5] * 7, [1, 2]):
        with pytest.raises(InputError, match="self_match"):
            evaluate_codes(query, gallery, *labels, self_match=bad)


def test_packed_codes_of_another_byte_order_and_a_flag_of_numpy():
    """Words saved on another machine are the same codes, and numpy.True_ is True."""
    query, gallery, ours, theirs = coded(3, bits=64)
    packed = [np.packbits(side, axis=1).view(np.uint64) for side in (query, gallery)]
    wanted = dict(evaluate_codes(*packed, ours, theirs, 5))
    assert dict(evaluate_codes(*(side.astype(">u8") for side in packed), ours, theirs, 5)) == wanted
    assert dict(evaluate_codes(*packed, ours, theirs, 5, self_match=np.False_)) == wanted
    itself = [evaluate_codes(*packed, ours, theirs, 5, self_match=given) for given in (True, np.True_)]
    assert dict(itself[0]) == dict(itself[1]) != wanted


def test_codes_equal_their_distances_across_tiles_and_groups(monkeypatch):
    rng = np.random.default_rng(2)
    few = numba.config.DISABLE_JIT
    if few:  # compiled kernels have their constants in them
        monkeypatch.setattr(ranking, "TILE", 64)
    query, gallery, ours, theirs = coded(2, queries=19, items=150 if few else 9001, bits=24)
    names = ["mAP", "P@10", "mINP"]
    distances = (query[:, None] != gallery[None]).sum(axis=2)
    wanted = evaluate_distances(distances, ours, theirs, metrics=names, convention="detmap", junk_id=None)
    for kept in (1 << 21, 100):  # with all that is known of hits, and with their ranks alone
        monkeypatch.setattr(of_codes, "KEPT_HITS", kept)
        monkeypatch.setattr(of_codes, "_PASSING_ITEMS", 150 if few else 9000)
        for ties in ("index", "best"):
            found = evaluate_codes(query, gallery, ours, theirs, metrics=names, convention="detmap", ties=ties)
            one = (
                wanted
                if ties == "index"
                else evaluate_distances(
                    distances, ours, theirs, metrics=names, convention="detmap", junk_id=None, ties=ties
                )
            )
            for name in names:
                assert np.array_equal(found.per_query[name], one.per_query[name]), (kept, ties, name)
    q = int(rng.integers(19))
    order = naive.order_by_distance(distances[q].tolist())
    flags = [int(theirs[i] == ours[q]) for i in order]
    assert found.per_query["mAP"].size == 19
    assert wanted.per_query["mAP"][q] == pytest.approx(float(naive.step_ap(flags, sum(flags))), abs=1e-12)


# ------------------------------------------------------------------------------------------------------- command line


@pytest.fixture
def files(tmp_path, monkeypatch):
    (tmp_path / "qrels").write_text("1 0 a 1\n1 0 b 0\n2 0 c 2\n2 0 d 1\n9 0 a 1\n")
    (tmp_path / "run").write_text("1 Q0 b 1 0.9 x\n1 Q0 a 2 0.8 x\n2 Q0 c 1 5 x\n2 Q0 z 2 4 x\n2 Q0 d 3 3 x\n")
    (tmp_path / "other").write_text("1 Q0 b 1 0.7 x\n1 Q0 a 2 0.8 x\n2 Q0 c 1 5 x\n2 Q0 d 3 3 x\n")
    (tmp_path / "apart").write_text("9 Q0 a 1 0.7 x\n")
    rng = np.random.default_rng(0)
    labels = {"query_ids": np.arange(4), "gallery_ids": np.arange(20) % 5}
    np.savez(tmp_path / "reid.npz", distances=rng.random((4, 20)), **labels)
    codes = {"query_codes": rng.integers(0, 2, (4, 8)), "gallery_codes": rng.integers(0, 2, (20, 8))}
    np.savez(tmp_path / "codes.npz", **codes, query_labels=np.arange(4), gallery_labels=np.arange(20) % 5)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def called(capsys, *arguments):
    code = cli.main([str(a) for a in arguments])
    out = capsys.readouterr()
    return code, out.out, out.err


@pytest.mark.parametrize(
    ("command", "over", "flag"),
    [
        ("reid reid.npz", "reid.npz", "--out"),
        ("hashing codes.npz", "codes.npz", "--out"),
        ("trec qrels run", "run", "--out"),
        ("trec qrels run", "qrels", "--out"),
        ("trec qrels run.svg", "run.svg", "--out"),
        ("trec qrels run.svg", "run.svg", "--plot"),
    ],
)
def test_nothing_is_written_over_the_input(capsys, files, command, over, flag):
    (files / "run.svg").write_bytes((files / "run").read_bytes())
    before = (files / over).read_bytes()
    code, out, err = called(capsys, *command.split(), flag, f"./{over}")
    assert (code, out) == (2, "")
    assert re.fullmatch(
        rf"detmap: error: './{over}' would be written over, and is to be read: choose another name\n", err
    )
    assert (files / over).read_bytes() == before


def test_metrics_are_not_cut_within_parentheses(capsys, files):
    code, out, _ = called(capsys, "trec", "qrels", "run", "--metrics", "AP(step,hits)@5,P_1", "--format", "csv")
    assert (code, [line.partition(",")[0] for line in out.splitlines()][:2]) == (0, ["metric", '"mAP(hits'])
    assert "P@1" in out


def test_default_metrics_are_those_that_the_tie_rule_has(capsys, files):
    for command in ("trec qrels run", "reid reid.npz", "hashing codes.npz", "hashing codes.npz --k 5"):
        code, out, err = called(capsys, *command.split(), "--ties", "expected", "--quiet")
        assert (code, err) == (0, ""), command
        assert "mAP" in out


def test_compare_may_stand_anywhere(capsys, files):
    words = ["trec", "qrels", "run", "other", "--metrics", "map,P_1", "--format", "json", "--quiet"]
    wanted = called(capsys, *words, "--compare")
    assert wanted[0] == 0
    for at in range(1, len(words)):
        if not words[at - 1].startswith("--"):
            assert called(capsys, *words[:at], "--compare", *words[at:]) == wanted, at
    words = ["trec", "--compare", "P_1", *words[1:]]
    by_precision = called(capsys, *words)
    assert json.loads(by_precision[1])["comparisons"][0]["metric"] == "P_1"


def test_small_p_values_are_not_shown_as_zero(capsys, tmp_path, monkeypatch):
    """A test that leaves no doubt: the table says below what, and CSV and JSON hold the number."""
    monkeypatch.chdir(tmp_path)
    queries = range(60)
    pathlib.Path("qrels").write_text("".join(f"{q} 0 a 1\n" for q in queries))
    for name, order in (("best", "abc"), ("worst", "cba")):
        lines = [f"{q} Q0 {d} {i} {9 - i} x\n" for q in queries for i, d in enumerate(order)]
        pathlib.Path(name).write_text("".join(lines))
    words = ["trec", "qrels", "best", "worst", "--compare=RR", "--metrics", "RR", "--tests", "wilcoxon", "--quiet"]
    table = called(capsys, *words)[1]
    assert "<0.0001" in table
    assert "0.0000" not in table.split("p wilcoxon")[1]
    p = json.loads(called(capsys, *words, "--format", "json")[1])["comparisons"][0]["p wilcoxon"]
    assert 0 < p < 1e-8
    assert str(p) in called(capsys, *words, "--format", "csv")[1]


def test_runs_without_a_common_query_cannot_be_compared(capsys, files):
    code, _, err = called(capsys, "trec", "qrels", "run", "apart", "--compare", "--metrics", "map", "--quiet")
    assert (code, err) == (2, "detmap: error: 'run' and 'apart' have no query in common: there is nothing to compare\n")
    with pytest.raises(OptionError, match="no query in common"):
        compare_queries({"a": [1.0, np.nan], "b": [np.nan, 1.0]}, ["wilcoxon"])
    assert np.isnan(wilcoxon([np.nan], [1.0]).p)


def test_the_help_promises_what_there_is(capsys):
    with pytest.raises(SystemExit):
        cli.main(["trec", "--help-all"])
    text = " ".join(capsys.readouterr().out.split())
    assert "bootstrap" not in text
    assert "randomisation (default), t, wilcoxon" in text


def test_a_long_metric_name_is_not_echoed_whole(capsys, files):
    for name in ("x" * 9999, "AP(" + "x" * 9999 + ")", "P@" + "1" * 9999, "TPR@FPR=" + "2" * 9999):
        code, _, err = called(capsys, "reid", "reid.npz", "--metrics", name)
        assert (code, err.count("\n")) == (2, 1)
        assert len(err) < 800


@pytest.mark.compiled
def test_many_hits_are_drawn_and_counted(capsys, files, monkeypatch):
    """Beyond a number of hits these are not kept; the mean curve is, where a plot is asked for."""
    code, out, _ = called(capsys, "hashing", "codes.npz", "--k", "5", "--plot", "all.svg")
    with np.load("codes.npz") as given:
        arrays = [given[name] for name in ("query_codes", "gallery_codes", "query_labels", "gallery_labels")]
    before = evaluate_codes(*arrays, 5).line().interpolated
    monkeypatch.setattr(scoring, "KEPT_HITS", 3)
    monkeypatch.setattr(of_codes, "KEPT_HITS", 3)
    assert called(capsys, "hashing", "codes.npz", "--k", "5", "--plot", "many.svg")[:2] == (code, out) != (2, "")
    assert (files / "many.svg").read_text().count("<svg") == 1
    for command in ("reid reid.npz --metrics mAP", "trec qrels run", "trec qrels run other"):
        assert called(capsys, *command.split(), "--plot", "more.svg", "--quiet")[0] == 0
    result = evaluate_codes(*arrays, 5, keep_curve=True)
    assert result.hits is None
    assert np.allclose(result.line().interpolated, before, atol=1e-15)
    with pytest.raises(OptionError, match="keep_curve=True"):
        evaluate_codes(*arrays, 5).line()
