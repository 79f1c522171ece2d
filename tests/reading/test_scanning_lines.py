"""The scanner on lines of runs and judgements, and how their ids are found and ranked."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scanner import UNCOMPILED, check_qrels, check_run, document_ids, query_ids, same
from scanner_documents import HARD, QRELS, RUN

from detmap.kernels import readonly, scanning
from detmap.kernels.lines import scan_lines
from detmap.kernels.texts import LENGTH_BITS, Grouped, Tied, count_before, factorise, find_strings, rank_rows, split
from detmap.reading import documents, lists, scanned_columns, scanner
from detmap.shapes.reading import powers


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"\n \n\t\r\n# comment\n  # another\r\n#",
        RUN,
        RUN + b"\n",
        RUN.replace(b"\n", b"\r\n"),
        RUN.replace(b"\n", b" more 1e5 #\n\n"),
        RUN.replace(b"tag", b"tag\t "),
        b"\n".join(b"a 0 b 0 %b c" % text.encode() for text in HARD),
        b"\n".join(
            b"a 0 b 0 %b c" % text for text in [b"+1", b".5", b"5.", b"-.5e3", b"007", b"+00.10E+01", b"1" * 50]
        ),
        b"q" * 100 + b" 0 " + b"d" * 1000 + b" 0 1 t\n" + b"q" * 99 + b"r 0 " + b"d" * 1000 + b" 0 1 t\n",
        b"\xff\xfe 0 \x80 0 1 \xff",
    ],
)
def test_plain_runs(data: bytes) -> None:
    assert check_run(data) is not None


def test_a_run_with_four_words_after_the_name_is_not_plain() -> None:
    assert check_run(RUN + b" one two three") is not None
    assert check_run(RUN + b" one two three four") is None


BAD_SCORES = "nan|inf|-inf|NaN|Infinity|1_0|0x10|1e|1e+|-|+|.|e5|1e999|-1e999|1,5|1..2|1.5f|\u0661"


@pytest.mark.parametrize("score", BAD_SCORES.split("|"))
def test_scores_that_are_not_plain(score: str) -> None:
    assert check_run(b"a 0 b 0 1 c\na 0 b 0 " + score.encode() + b" c\n") is None


def test_a_byte_order_mark_ahead_of_lines_is_passed_and_another_is_part_of_an_id() -> None:
    columns = check_run(b"\xef\xbb\xbf" + RUN)
    assert columns is not None
    assert columns.queries == [b"q1", b"q2"]
    again = check_run(b"\xef\xbb\xbf\xef\xbb\xbf" + RUN)
    assert again is not None
    assert again.queries[0] == b"\xef\xbb\xbfq1"


def test_plain_qrels() -> None:
    assert check_qrels(QRELS) is not None
    assert check_qrels(b"") is not None
    for relevance in (b"1.0", b"01", b"+1", b"9223372036854775808", b"x", b"1 1", b"", b"-", b"1_0"):
        assert check_qrels(b"q 0 d " + relevance) is None


@pytest.mark.compiled
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("block", [1, 8, 33, 1 << 22])
def test_every_byte_of_a_run_replaced_and_cut(block: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every place where blocks of 8 bytes have every place at their edges, and in one block; at some in others."""
    monkeypatch.setattr(documents, "BLOCK", block)
    for place in range(0, len(RUN) + 1, 11 if UNCOMPILED or threads > 1 or block in (1, 33) else 1):
        check_run(RUN[:place], threads)
        check_qrels(QRELS[:place], threads)
        for byte in b"\x00\t\n\x0b\x0c\r\x1f #1.e-\x7f\x80\xff":
            check_run(RUN[:place] + bytes([byte]) + RUN[place + 1 :], threads)
            check_qrels(QRELS[:place] + bytes([byte]) + QRELS[place + 1 :], threads)


@pytest.mark.parametrize("end", [b"\n", b"", b"\r"])
def test_rows_of_lines_stay_where_they_were_scanned(end: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block begins with the row behind the last one of the block before: no column is moved together afterwards."""
    monkeypatch.setattr(documents, "BLOCK", 100)
    blocks: list[tuple[int, int]] = []

    class Seen(scanned_columns.Table):
        def __init__(self, *arguments: Any) -> None:
            blocks.extend((int(p.state[scanning.FIRST]), int(p.state[scanning.ROW])) for p in arguments[-1])
            super().__init__(*arguments)

    monkeypatch.setattr(lists, "Table", Seen)
    data = b"\n".join(b"q%d Q0 d%d %d %.3f name" % (k // 7, k, k, 1 / (k + 1)) for k in range(100)) + end
    columns = scanner.scan_run(data)
    assert columns is not None
    assert len(columns.score) == 100
    assert len(blocks) > 10
    assert [first for first, _ in blocks] == [0, *(row for _, row in blocks[:-1])]


TOKEN = st.sampled_from(
    [b"a", b"b", b"ab", b"abcdefgh", b"abcdefghi", b"abcdefghj", b"\xff", b"#", b"1", b"-2.5e3", b".5"]
) | st.binary(min_size=1, max_size=3)
BLANK = st.sampled_from([b" ", b"\t", b"  ", b" \t "])


@st.composite
def token_lines(draw: st.DrawFn) -> bytes:
    lines = []
    for _ in range(draw(st.integers(0, 5))):
        tokens = draw(st.lists(TOKEN, min_size=4, max_size=10))
        if len(tokens) > 5:
            tokens[4] = draw(st.floats(allow_nan=False).map(lambda value: repr(value).encode()) | st.just(tokens[4]))
        elif len(tokens) == 4:
            tokens[3] = draw(st.integers(-(2**65), 2**65).map(lambda value: str(value).encode()) | st.just(tokens[3]))
        if draw(st.integers(0, 3)) == 0:
            tokens[0] = draw(st.sampled_from([b"#", b"#q", b"##"]))
            tokens[1] = draw(st.sampled_from([b"Q0", b"0", b"q", b"run"]))
        lines.append(b"".join(token + draw(BLANK) for token in tokens)[: -1 if draw(st.booleans()) else None])
    return draw(st.sampled_from([b"\n", b"\r\n", b"\n\n"])).join(lines) + draw(
        st.sampled_from([b"", b"\n", b"\r", b" "])
    )


@given(token_lines(), st.sampled_from([1, 8, 20, 1 << 22]), st.sampled_from([1, 2]))
def test_any_lines(data: bytes, block: int, threads: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "BLOCK", block)
        check_run(data, threads)
        check_qrels(data, threads)


def random_run(
    count: int, queries: int, documents: int, scores: int, seed: int, contiguous: bool
) -> tuple[bytes, bytes]:
    """Make a run and judgements with many ties, and document ids that begin alike."""
    generator = random.Random(seed)
    names = [b"document-" * generator.randrange(3) + b"%d" % generator.randrange(10**6) for _ in range(documents)]
    names = sorted({*names, *(name[: len(name) // 2 + 1] for name in names), *(name + b"0" for name in names)})
    pairs = sorted({(generator.randrange(queries), generator.choice(names)) for _ in range(count)})
    judged = sorted({(generator.randrange(queries + 2), generator.choice(names)) for _ in range(count // 2)})
    if not contiguous:
        generator.shuffle(pairs)
        generator.shuffle(judged)
    run = b"\n".join(b"%d Q0 %b 0 %d t" % (query, name, generator.randrange(scores)) for query, name in pairs)
    return run, b"\n".join(b"%d 0 %b %d" % (query, name, generator.randrange(3)) for query, name in judged)


def grouped(columns: scanner.RunColumns | scanner.QrelsColumns, queries: list[bytes]) -> tuple[Any, Any, Any]:
    """Return the rows query by query, the words that locate their documents, and where each of `queries` starts."""
    codes = np.array([queries.index(query) for query in query_ids(columns)], np.int64)
    rows = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(queries)))])
    return rows, readonly(columns.document[rows], np.uint64), readonly(starts, np.int64)


def found_strings(own: Any, starts: Any, others: Any, other_starts: Any, step: int) -> tuple[list[int], list[int]]:
    """Call the kernel for `step` groups at a time."""
    found = np.full(len(others[1]), -2, np.int64)
    both = Grouped(*own, starts), Grouped(*others, other_starts)
    with np.errstate(over="ignore"):
        repeated = [
            find_strings(*both, k, min(k + step, len(starts) - 1), np.uint64(step), found)
            for k in range(0, len(starts) - 1, step)
        ]
    return found.tolist(), repeated


@pytest.mark.parametrize("contiguous", [True, False])
@pytest.mark.parametrize("scores", [1, 5, 10**6])
@pytest.mark.parametrize("count", [1, 2, 60, 600, pytest.param(5000, marks=pytest.mark.compiled)])
def test_documents_are_found_and_ranked(
    count: int, scores: int, contiguous: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = min(count, 200) if UNCOMPILED else count
    run_data, qrels_data = random_run(count, 7, 2 * count, scores, count, contiguous)
    run, qrels = check_run(run_data), check_qrels(qrels_data)
    assert run is not None
    assert qrels is not None
    queries = list(dict.fromkeys([*run.queries, *qrels.queries]))
    rows, words, starts = grouped(run, queries)
    judged_rows, judged_words, judged_starts = grouped(qrels, queries)

    ranked = np.arange(len(rows), dtype=np.int32)
    score = readonly(run.score[rows], np.float64)
    for query in range(len(queries)):
        rank_rows(run.data, words, score, starts, query, query + 1, ranked)
    ids = document_ids(run)
    naively = sorted(range(len(rows)), key=lambda k: (score[k], ids[rows[k]]), reverse=True)
    group = np.repeat(np.arange(len(queries)), np.diff(starts))
    assert ranked.tolist() == sorted(naively, key=lambda k: group[k])

    place: dict[tuple[int, bytes], int] = {}
    for k, row in enumerate(rows.tolist()):
        place[int(group[k]), ids[row]] = k - int(starts[group[k]])
    judged_ids, judged_group = document_ids(qrels), np.repeat(np.arange(len(queries)), np.diff(judged_starts))
    wanted = [
        place.get((int(query), judged_ids[row]), -1) for query, row in zip(judged_group, judged_rows, strict=True)
    ]
    for step in (1, 3, len(queries)):
        found, repeated = found_strings((run.data, words), starts, (qrels.data, judged_words), judged_starts, step)
        assert found == wanted
        assert set(repeated) == {-1}
    monkeypatch.setattr(documents, "BLOCK", 64)
    for threads in (1, 2, 3):
        assert same(scanner.scan_run(run_data, threads), run)


def test_repeated_documents_are_found() -> None:
    run = scanner.scan_run(b"q 0 a 0 1 t\np 0 a 0 1 t\nq 0 b 0 1 t\nx 0 d 0 1 t\nx 0 c 0 1 t\nx 0 d 0 1 t\n")
    assert run is not None
    _, words, starts = grouped(run, run.queries)
    none = readonly([], np.uint64), readonly(np.zeros(4), np.int64)
    assert found_strings((run.data, words), starts, (run.data, none[0]), none[1], 3) == ([], [5])
    assert found_strings((run.data, words), starts, (run.data, none[0]), none[1], 1) == ([], [-1, -1, 5])


def test_a_string_is_compared_to_its_end_and_no_further() -> None:
    data = readonly(np.frombuffer(b"abcX abcY abd ", np.uint8), np.uint8)
    words = readonly([at << LENGTH_BITS | 3 for at in (0, 5, 10)], np.uint64)
    codes, firsts = np.empty(3, np.int32), np.empty(3, np.uint64)
    assert factorise(data, words, np.uint64(1), codes, firsts) == 2
    assert codes.tolist() == [0, 0, 1]


def test_a_block_of_lines_does_not_look_at_the_row_before_it() -> None:
    """Another thread writes that one, perhaps later; within the block a repeated id has the place of the first."""
    ids, state = np.empty(4, np.uint64), np.zeros(scanning.STATE_SIZE, np.int64)
    ids[0] = 3 << LENGTH_BITS | 2
    state[scanning.FIRST] = state[scanning.ROW] = 1
    state[scanning.LIMIT] = 4
    data, tokens = readonly(np.frombuffer(b"aa\naa\nbb\n", np.uint8), np.uint8), readonly([0], np.int64)
    places = readonly([[scanning.REPEATED, 1, 0]], np.int64)
    nothing, doubts = np.empty(0, np.uint64), np.empty((8, 3), np.int64)
    scan_lines(data, 9, tokens, False, powers(), scanning.Columns(places, ids, nothing, doubts), state)
    assert [(int(word) >> LENGTH_BITS, int(word) & 255) for word in ids[1:]] == [(0, 2), (0, 2), (6, 2)]


#: Strings that differ in their first or last byte, behind eight or sixteen equal ones, in length, or not at all.
HARD_IDS = [
    *(b"", b"a", b"b", b"\xff", b"abcdefgh", b"abcdefgi", b"bbcdefgh", b"abcdefgha", b"abcdefgh\x01", b"abcdefg\x80"),
    *(b"abcdefgh" * 2, b"abcdefgh" * 2 + b"x", b"abcdefgh" * 3, b"doc1234567", b"doc1234568", b"doc12345", b"doc\x7f"),
]


def in_a_buffer(names: list[bytes]) -> tuple[Any, Any]:
    """Locate strings that zero bytes separate."""
    joined = b"\0".join(names)
    data = readonly(np.frombuffer(joined.ljust(8, b"\0"), np.uint8), np.uint8)
    words = np.empty(len(names), np.uint64)
    assert split(data, len(joined), 1 << 20, words) == len(names)
    return data, readonly(words, np.uint64)


@given(st.lists(st.sampled_from(HARD_IDS) | st.binary(max_size=20).map(lambda b: b.replace(b"\0", b"0")), min_size=1))
def test_strings_between_zero_bytes(names: list[bytes]) -> None:
    data, words = in_a_buffer(names)
    begins, lengths = (words >> np.uint64(LENGTH_BITS)).tolist(), (words & np.uint64(2**LENGTH_BITS - 1)).tolist()
    assert [data[a : a + n].tobytes() for a, n in zip(begins, lengths, strict=True)] == names
    longest, size = max(map(len, names)), len(b"\0".join(names))
    row = [len(name) for name in names].index(longest)
    assert longest == 0 or split(data, size, longest - 1, np.empty(len(names), np.uint64)) == -1 - row
    few = np.full(1, 7, np.uint64)
    assert split(data, size, longest, few) == len(names)  # further rows are not written to
    assert few[0] == words[0]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_strings_of_one_score_are_counted(seed: int, descending: bool) -> None:
    rng = random.Random(seed)
    names = [*HARD_IDS, *(bytes(rng.choices(range(1, 256), k=rng.randint(1, 20))) for _ in range(40))]
    names = list(dict.fromkeys(names))
    groups = [rng.sample(names, rng.choice([0, 1, 5, 16, 17, 50])) for _ in range(rng.randint(1, 4))] + [names]
    pool = rng.choice([[0.0, -0.0, 0.5, float("inf")], [*map(float, range(30))]])  # in the latter, few are tied
    scores = [[rng.choice(pool) for _ in group] for group in groups]
    wanted, sought, own, ends = [], [], [], [0]
    for group, numbers in zip(groups, scores, strict=True):
        for at in rng.sample(range(len(group)), rng.randint(0, len(group))):
            tied = [name for name, number in zip(group, numbers, strict=True) if number == numbers[at]]
            wanted.append((sorted(tied, reverse=True) if descending else tied).index(group[at]))
            sought.append(group[at])
            own.append(sorted(set(numbers)).index(numbers[at]) + 1)
        ends.append(len(sought))
    starts = readonly(np.cumsum([0, *map(len, groups)]), np.int64)
    numbered = [sorted(set(row)).index(one) + 1 for row in scores for one in row]
    listed = Tied(*in_a_buffer([name for group in groups for name in group]), starts, readonly(numbered, np.int32))
    if sought:
        some = Tied(*in_a_buffer(sought), readonly(ends, np.int64), readonly(own, np.int32))
        before = np.empty(len(sought), np.int64)
        count_before(listed, some, descending, before)
        assert before.tolist() == wanted
