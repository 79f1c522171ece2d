"""Lines of words: columns are those that Python's own methods give word by word, bit for bit, and so are the errors."""

from __future__ import annotations

import numpy as np
import pytest
from legs import examples
from support import same_bits

from detmap.errors import InputError
from detmap.reading import lines
from detmap.reading.lines import is_number, read_lines

BREAKS = [b"\n", b"\n", b"\r\n", b"\r", b"\n\n", b"\r\r\n", b"\n\r", b" \n\t\n", b""]
BLANKS = [b" ", b" ", b"\t", b"  ", b" \t ", b"\x0b", b"\x0c"]
NUMBERS = [
    b"0",
    b"-1",
    b"12.25",
    b"0.00",
    b"-0",
    b"-0.0",
    b"-10",
    b"600.125",
    b"1e3",
    b"3E-2",
    b"0.1234567890123456789",
]
#: Numbers that `float` reads and JSON lacks, or that round with difficulty.
ODD = [
    b"+1", b"007", b".5", b"5.", b"-.5e1", b"00.5", b"1e4", b"5e-324", b"2.4703282292062328e-324",
    b"9007199254740993", b"9007199254740993.0", b"1e-400", b"123456789012345678901234567890", b"0" * 40 + b"1.5",
    b"1." + b"3" * 200, b"1.7976931348623157e308", b"8.5e22", b"1e00000000000000000001", b"-0e0", b"4.4501477170144023e-308",
]  # fmt: skip
WRONG = [
    b"1_0", b"inf", b"-Infinity", b"nan", b"NaN", b"1e999", b"0x10", b"Car", b"1,5", b"--1", b"1e", b"e5", b".", b"+",
    b"\xd9\xa1", b"\xef\xbc\x91", b"\xff", b"1\x1c", b"1\x85", b"1.5.2", b"1e5.0", b"-", b"1" + b"9" * 400,
]  # fmt: skip


def split(files):
    """The names, and for each line its file, number and words, or the error."""
    found = []
    for file, (data, name) in enumerate(files):
        if b"\0" in data:
            return InputError("is not a text file", source=name)
        for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
            if words := line.split():
                if max(map(len, words)) > lines.LONGEST:
                    where = {"source": name, "record": f"line {number}"}
                    return InputError("has a field of absurd length", **where, value=b" ".join(words))
                found.append((file, number, words))
    return found


def numbers(rows, files, places):
    """The numbers of lines, word by word, or the error about the first word that is none."""
    values = []
    for file, number, words in rows:
        for word in [words[place] for place in places(words)]:
            if not is_number(word):
                where = {"source": files[file][1], "record": f"line {number}"}
                return InputError("must be a finite number", **where, value=word)
            values.append(float(word))
    return np.array(values, np.float64)


def outcome(call):
    try:
        return call()
    except InputError as error:
        return error


def assert_same(one, other):
    if isinstance(other, InputError):
        assert str(one) == str(other)
    else:
        assert same_bits(one, other)


def drawn(rng, words, count):
    """The bytes of a file of lines."""
    parts = [b"\xef\xbb\xbf"] * (rng.random() < 0.2)
    for _ in range(count):
        own = [words[i] for i in rng.integers(0, len(words), rng.integers(2, 7))]
        line = b"".join(word + BLANKS[i] for word, i in zip(own, rng.integers(0, len(BLANKS), len(own)), strict=True))
        parts += [
            b" " * int(rng.integers(0, 2)),
            line if rng.random() < 0.5 else line.rstrip(),
            BREAKS[rng.integers(8)],
        ]
    return b"".join(parts[: len(parts) - int(rng.integers(0, 2))])


@pytest.mark.parametrize("scanned", [True, False])
def test_words_are_read_as_python_reads_them_one_by_one(scanned, monkeypatch):
    monkeypatch.setattr(lines, "_WORTH_SCANNING", 1 if scanned else 1 << 60)
    rng = np.random.default_rng(7)
    seen = set()
    for turn in range(examples(400)):
        words = [NUMBERS, NUMBERS + ODD, NUMBERS + ODD + WRONG][turn % 3]
        files = [(drawn(rng, words, int(rng.integers(0, 6))), f"{i}.txt") for i in range(rng.integers(1, 5))]
        files.append((b"1 2 3 4", "last.txt"))
        if rng.random() < 0.1:
            files[0] = (files[0][0] + rng.choice(np.array([b"\0", b"9" * 257, b"\n1 \0"], object)), files[0][1])
        expected = split(files)
        found = outcome(lambda files=files: read_lines(files))
        if isinstance(expected, InputError):
            assert str(found) == str(expected)
            continue
        assert found.names == [name for _, name in files]
        assert list(zip(found.files.tolist(), found.numbers.tolist(), found.fields, strict=True)) == expected
        assert found.counts.tolist() == [len(words) for _, _, words in expected]
        for skip in (0, 1, 3):
            reference = numbers(expected, files, lambda words, skip=skip: range(skip, len(words)))
            made = outcome(lambda found=found, skip=skip: found.floats(skip)[0])
            assert_same(made, reference)
            seen.add(type(reference))
        assert_same(
            outcome(lambda found=found: found.table([1, 0]).reshape(-1)), numbers(expected, files, lambda _: (1, 0))
        )
        codes, distinct = found.words(1)
        own = [words[1] for _, _, words in expected]
        assert [distinct[code] for code in codes.tolist()] == own
        assert distinct == list(dict.fromkeys(own))
        rows = rng.permutation(len(found))[: len(found) // 2]
        assert found.take(rows).fields == [found.fields[row] for row in rows.tolist()]
    assert seen == {np.ndarray, InputError}


@pytest.mark.parametrize("scanned", [True, False])
def test_numbers_of_random_digits_have_the_bits_that_float_gives(scanned, monkeypatch):
    monkeypatch.setattr(lines, "_WORTH_SCANNING", 1 if scanned else 1 << 60)
    rng = np.random.default_rng(8)
    words = []
    for _ in range(examples(20_000)):
        digits = "".join(map(str, rng.integers(0, 10, rng.integers(1, 25))))
        point = int(rng.integers(0, len(digits) + 1))
        exponent = f"e{rng.integers(-330, 300)}" if rng.random() < 0.2 else ""
        words.append(f"{'-' * int(rng.random() < 0.3)}{digits[:point]}.{digits[point:]}{exponent}".rstrip(".").encode())
    words = [word for word in words if is_number(word)]
    found = read_lines([(b" ".join(words) + b"\n", "a.txt")])
    assert same_bits(found.floats()[0], np.array([float(word) for word in words]))


def test_words_that_are_not_text_are_named_with_their_line():
    found = read_lines([(b"a 1\n\xff 2\nb 3\n\xff 4\n", "a.txt")])
    with pytest.raises(InputError, match=r"a\.txt: line 2: is not text in UTF-8") as caught:
        found.strings(0)
    assert str(caught.value) == str(found.error(1, "is not text in UTF-8"))
    assert found.strings(0, "replace").values == ["a", "�", "b"]
    assert found.strings(0, "replace").codes.tolist() == [0, 1, 2, 1]


def test_files_after_one_with_a_null_byte_are_not_asked_for():
    def files():
        yield b"1 2\n", "a.txt"
        yield b"1 \0\n", "b.txt"
        raise AssertionError

    with pytest.raises(InputError, match=r"b\.txt: is not a text file"):
        read_lines(files())
