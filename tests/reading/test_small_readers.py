"""What is read of sources, lines and markup, compared with plain Python; and messages about what cannot be read."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import tarfile
import zipfile
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest

from detmap.errors import InputError
from detmap.reading import lines, opening, sources, strict_json, typed_json, unlike, zstd
from detmap.reading.lines import read_lines
from detmap.reading.markup import Elements
from detmap.reading.opening import Held, open_path
from detmap.system import limits


def said(call, *given, **more):
    with pytest.raises(InputError) as caught:
        call(*given, **more)
    return str(caught.value)


# ------------------------------------------------------------------------------------------------------------ sources


def test_how_far_data_may_grow(monkeypatch):
    monkeypatch.setenv("DETMAP_MOST_INFLATED", "1000")
    assert [sources.most_inflated(n) for n in (0, 4, 5, 6, 1000)] == [1000, 1000, 1000, 1200, 200_000]
    for pack in (gzip.compress, zstd.compress):
        # Of an incompressible part and zeros, so that the size is at either side of 200 times the compressed one.
        for count in (990, 1000):
            packed = pack(b"\0" * count)
            assert sources.inflate(packed, "s") == b"\0" * count
        packed = pack(b"\0" * 100_000)
        most = max(1000, 200 * len(packed))
        assert most < 100_000
        text = f"s: grows beyond 0 MiB when decompressed; decompress it first, or {limits.INFLATED.advice()}"
        assert said(sources.inflate, packed, "s") == text
        noise, low, high = np.random.default_rng(0).bytes(800), 0, 400_000
        while high - low > 1:  # the largest number of zeros that 200 times the compressed size allows
            middle = (low + high) // 2
            fits = 800 + middle <= 200 * len(pack(noise + b"\0" * middle))
            low, high = (middle, high) if fits else (low, middle)
        assert sources.inflate(pack(noise + b"\0" * low), "s") == noise + b"\0" * low
        assert said(sources.inflate, pack(noise + b"\0" * high), "s") == text


def test_the_first_bytes_of_a_source(tmp_path):
    content = bytes(range(256)) * 40
    for name, data in (("plain", content), ("a.gz", gzip.compress(content)), ("a.zst", zstd.compress(content))):
        (tmp_path / name).write_bytes(data)
        assert sources.head(tmp_path / name) == content[:4096]
        assert sources.head(tmp_path / name, 700) == content[:700]
        assert sources.is_packed(data) is (name != "plain")
    assert sources.head(Held.of(content, "n")) == content[:4096]
    assert sources.head(tmp_path) == sources.head(tmp_path / "absent") == sources.head("a\0b") == b""
    (tmp_path / "cut.gz").write_bytes(gzip.compress(content)[:40])
    assert content.startswith(sources.head(tmp_path / "cut.gz"))
    (tmp_path / "bad.gz").write_bytes(b"\x1f\x8bnothing of it")
    assert sources.head(tmp_path / "bad.gz") == b""


def test_sources_that_are_opened(tmp_path):
    path, content = tmp_path / "a", b"0123456789"
    path.write_bytes(content)
    packed = tmp_path / "b"
    packed.write_bytes(gzip.compress(content))
    for source, name in (
        (path, str(path)), (str(packed), str(packed)), (content, "n"), (bytearray(content), "n"),
        (memoryview(content), "n"), (io.BytesIO(content), "n"), (io.StringIO(content.decode()), "n"),
        (Held.of(content, "held"), "held"), (gzip.compress(content), "n"), (io.BytesIO(gzip.compress(content)), "n"),
    ):  # fmt: skip
        with sources.Opened(source, "n") as opened:
            assert len(opened) == 10
            assert opened.name == name
            assert bytes(opened.whole()) == content
            for size in (1, 3, 10, 20):
                assert [bytes(piece) for piece in opened.pieces(size)] == [
                    content[i : i + size] for i in range(0, 10, size)
                ]
        assert sources.read_bytes(source if not hasattr(source, "seek") else content, "n")[0] == content
    with open(path, "rb") as file:
        assert sources.read_bytes(file, "n") == (content, str(path))
    assert said(sources.read_bytes, 5, "n") == "n: cannot read a int; give a path, bytes or a file"
    closed = io.BytesIO(content)
    closed.close()
    assert said(sources.read_bytes, closed, "n") == "n: cannot be read: I/O operation on closed file.; give a path"
    odd = type("Odd", (), {"read": lambda self: [1], "name": 7})()
    assert said(sources.read_bytes, odd, "n") == "7: holds a list where text or bytes belong"
    assert bytes(sources.unmarked(b"\xef\xbb\xbfab")) == b"ab"
    assert bytes(sources.unmarked(b"\xef\xbbab")) == b"\xef\xbbab"
    assert sources.name_of(path, "o") == str(path)
    assert sources.name_of(Held.of(b"", "held"), "o") == "held"
    assert sources.name_of(io.BytesIO(), "o") == "o"
    for name, back in (("a.gz", gzip.decompress), ("a.zst", lambda data: zstd.decompress(data, 99)), ("a.json", bytes)):
        assert back(sources.compressed(content, name)) == content


def test_stamps_and_hashes_of_files_and_folders(tmp_path):
    folder = tmp_path / "labels"
    folder.mkdir()
    (folder / "b.TXT").write_text("two")
    (folder / "a.txt").write_text("one")
    (folder / "a.json").write_text("other")
    (folder / "._a.txt").write_text("of a Mac")
    (folder / "c.txt").mkdir()
    assert list(sources.members(folder, ".txt", "n")) == [
        ("a.txt", b"one", str(folder / "a.txt")), ("b.txt", b"two", str(folder / "b.TXT")),
    ]  # fmt: skip
    stamp = sources.stamp(folder, ".txt")
    assert list(stamp) == ["a.txt", "b.txt"]
    assert stamp["a.txt"] == sources.stamp(folder / "a.txt", ".txt")
    found = (folder / "a.txt").stat()
    assert stamp["a.txt"] == (found.st_ino, 3, found.st_mtime_ns, found.st_ctime_ns)
    assert sources.stamp(tmp_path / "absent", ".txt") is sources.stamp("a\0b", ".txt") is None
    whole = hashlib.sha256(b"a.txt\x003\x00oneb.TXT\x003\x00two").hexdigest()
    assert sources.fingerprint(folder, ".txt") == whole
    assert sources.fingerprint(folder / "a.txt", ".txt") == hashlib.sha256(b"one").hexdigest()
    assert sources.fingerprint(Held.of(b"one", "n"), ".txt") == hashlib.sha256(b"one").hexdigest()
    for size in (0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1):
        data = b"x" * size
        (tmp_path / "sized").write_bytes(data)
        assert sources.fingerprint(tmp_path / "sized", "") == hashlib.sha256(data).hexdigest()
    (folder / "A.TXT").write_text("again")
    (folder / "a.TXT").write_text("again")
    twice = f"{folder}: holds two files of one name: 'a.TXT' and 'a.txt'; keep one of them"
    assert said(list, sources.members(folder, ".txt", "n")) == twice
    assert said(list, sources.members(tmp_path / "absent", ".txt", "n")).endswith(
        "absent: no such file; check the path"
    )
    ending = "; is it the right folder, and the ground truth first?"
    assert said(list, sources.members(folder, ".xml", "n")) == f"{folder}: holds no file that ends in .xml{ending}"


def test_members_of_mappings_and_archives(tmp_path):
    given = {"b.TXT": "two", "a.txt": b"one", "c.json": b"no", "._d.txt": b"no"}
    assert list(sources.members(given, ".txt", "n")) == [("a.txt", b"one", "n[a.txt]"), ("b.txt", b"two", "n[b.TXT]")]
    assert said(list, sources.members({"a.json": b""}, ".txt", "n")) == "n: no name ends in .txt"
    twice = "n: holds two files of one name: 'a.txt' and 'a.TXT'; keep one of them"
    assert said(list, sources.members({"a.txt": b"", "a.TXT": b""}, ".txt", "n")) == twice
    assert said(list, sources.members({"a.txt": 5}, ".txt", "n")) == "n[a.txt]: holds a int where text or bytes belong"

    def packed(*members):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            for name, content in members:
                info = tarfile.TarInfo(name)
                if isinstance(content, bytes):
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))
                else:
                    info.type, info.linkname = content
                    archive.addfile(info)
        return out.getvalue()

    data = packed(("x/b.txt", b"two"), ("x/A.TXT", b"one"), ("x/c.json", b""), ("d.txt", (tarfile.DIRTYPE, "")))
    wanted = [("A.txt", b"one", "n/A.txt"), ("b.txt", b"two", "n/b.txt")]
    assert list(sources.members(data, ".txt", "n")) == wanted
    assert list(sources.members(gzip.compress(data), ".txt", "n")) == wanted
    two = packed(("x/a.txt", b""), ("y/a.txt", b""))
    says = "n: holds two files of one name: 'x/a.txt' and 'y/a.txt'; pack one folder only"
    assert said(list, sources.members(two, ".txt", "n")) == says
    assert said(list, sources.members(b"no archive" * 99, ".txt", "n")) == "n: is neither a folder nor a tar archive"
    assert said(list, sources.members(packed(("a.json", b"")), ".txt", "n")) == (
        "n: holds no file that ends in .txt; is it the right folder, and the ground truth first?"
    )
    chained = [("l0.txt", b"at last"), *((f"l{n}.txt", (tarfile.SYMTYPE, f"l{n - 1}.txt")) for n in range(1, 41))]
    made = {key: content for key, content, _ in sources.members(packed(*chained[:40]), ".txt", "n")}
    assert set(made.values()) == {b"at last"}
    assert len(made) == 40
    circle = "n/l40.txt: is a link to 'l39.txt', which leads in a circle, or through too many links; "
    assert said(list, sources.members(packed(*chained), ".txt", "n")).startswith(circle)


def test_what_is_no_file_and_what_is_beside_it(tmp_path, monkeypatch):
    (tmp_path / "results.json").write_text("[]")
    near = f"{tmp_path}/result.json: no such file; check the path; did you mean 'results.json'?"
    assert said(open_path, tmp_path / "result.json") == near
    assert said(open_path, tmp_path / "zzz.json") == f"{tmp_path}/zzz.json: no such file; check the path"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    assert said(open_path, "results") == "results: is a folder; give a file; did you mean 'results.json'?"
    assert said(open_path, "results/") == "results/: is a folder; give a file; did you mean 'results.json'?"
    assert said(open_path, "resultz.json").endswith("check the path; did you mean 'results'?")
    assert said(open_path, tmp_path) == f"{tmp_path}: is a folder; give a file"
    assert said(open_path, "a\0b").startswith("a\\x00b: cannot be read: ")
    gone = opening.unreadable("p", OSError(errno.ENXIO, "no such device"))
    assert str(gone) == "p: is a socket or a device that is not there; give a file"
    assert (
        str(opening.unreadable("p", PermissionError(13, "Permission denied"))) == "p: cannot be read: Permission denied"
    )
    assert str(opening.unreadable("p", OSError("text"))) == "p: cannot be read: text"
    for target, remedy in (
        ("x/.git/annex/y", "fetch the file with git annex get"), ("a/annex/objects/b", "fetch the file with git annex get"),
        ("cache/dvc/b", "fetch the file with dvc pull"), ("gone", "fetch what it points to, or remove the link"),
    ):  # fmt: skip
        link = tmp_path / "link"
        link.symlink_to(target)
        assert said(open_path, link) == f"{link}: is a link to '{target}', which is not there; {remedy}"
        link.unlink()


def test_reading_by_position(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(bytes(range(100)))
    with open_path(path) as file:
        assert file.size == 100
        assert file.start(4) == bytes(range(4))
        assert file.start(200) == bytes(range(100))
        out = bytearray(10)
        file.read_into(out, 50)
        assert out == bytes(range(50, 60))
        assert bytes(file.read()) == bytes(range(100))
        room = file.read_before(7)
        assert room.size == 107
        assert room[:100].tobytes() == bytes(range(100))
        with file.stream() as stream:
            assert stream.read() == bytes(range(100))
        other = file.duplicate()
        assert other.start(3) == bytes(range(3))
        other.close()
        assert (
            said(file.read_into, bytearray(10), 95)
            == f"{path}: changed while it was read; wait until it is written, and try again"
        )
    with opening.noted() as outer:
        with opening.noted() as inner:
            open_path(path).close()
        open_path(str(path)).close()
        (tmp_path / "g").write_bytes(b"x")
        open_path(tmp_path / "g").close()
    assert inner == {str(path)}
    assert outer == {str(path), str(tmp_path / "g")}


def test_how_much_is_read_of_streams(monkeypatch):
    monkeypatch.delenv("DETMAP_MOST_STREAMED", raising=False)
    memory = {"SC_PAGE_SIZE": 1 << 12, "SC_PHYS_PAGES": 1 << 18}
    monkeypatch.setattr(opening.os, "sysconf", memory.get)
    assert opening.most_streamed() == 1 << 28
    memory["SC_PHYS_PAGES"] = 1 << 24
    assert opening.most_streamed() == 4 << 30
    memory["SC_PHYS_PAGES"] = -1
    assert opening.most_streamed() == 4 << 30

    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr(opening.os, "sysconf", unknown)
    assert opening.most_streamed() == 4 << 30
    monkeypatch.setenv("DETMAP_MOST_STREAMED", "7")
    assert opening.most_streamed() == 7
    assert opening._drained(io.BytesIO(b"1234567"), "n") == b"1234567"
    says = "n: goes on after 6.67572e-06 MiB, the most that is read from what is no regular file; "
    says += f"write it to a file first, or {limits.STREAM.advice()}"
    assert said(opening._drained, io.BytesIO(b"12345678"), "n") == says
    nothing = type("Raw", (), {"read": lambda self, size: None})()
    assert said(opening._drained, nothing, "n") == "n: cannot be read: it does not wait for data (O_NONBLOCK)"
    monkeypatch.setenv("DETMAP_MOST_STREAMED", "1K")
    with open("/dev/zero", "rb", buffering=0) as zero:
        says = "n: goes on after 1 MiB, the most that is read from a device; write it to a file first"
        assert said(opening._drained, zero, "n") == says


# ----------------------------------------------------------------------------------------------------- lines of words


def drawn(seed, count):
    rng = np.random.default_rng(seed)
    words = ["1", "-2.5", "3e2", "word", "ä", "0x", "nan", "1_0", "1e999", "x" * 256]
    blanks, ends = [" ", "\t", "  ", "\x0b "], ["\n", "\r\n", "\r", "\n\n", " \n"]
    made = []
    for _ in range(count):
        made.append(rng.choice(["", " "]))
        for _ in range(rng.integers(0, 5)):
            made += [str(rng.choice(words)), str(rng.choice(blanks))]
        made.append(str(rng.choice(ends)))
    return "".join(made).encode()


def plain_lines(data):
    """The words of each line that has any, and its number."""
    text = data.decode().replace("\r\n", "\n").replace("\r", "\n")
    split = [(n, line.encode().split()) for n, line in enumerate(text.split("\n"), 1)]
    return [(n, words) for n, words in split if words]


@pytest.mark.parametrize("worth", [0, 1 << 12])
@pytest.mark.parametrize("seed", range(5))
def test_lines_of_files_are_those_of_python(seed, worth, monkeypatch):
    monkeypatch.setattr(lines, "_WORTH_SCANNING", worth)
    files = [(drawn(10 * seed + n, count), f"f{n}") for n, count in enumerate((9, 0, 1, 5))]
    files.append((b"\xef\xbb\xbf" + drawn(seed + 77, 3).lstrip(), "marked"))
    wanted = [
        (n, number, words)
        for n, (data, _) in enumerate(files)
        for number, words in plain_lines(data.removeprefix(b"\xef\xbb\xbf"))
    ]
    made = read_lines(files)
    assert len(made) == len(wanted)
    assert made.names == [name for _, name in files]
    assert list(zip(made.files.tolist(), made.numbers.tolist(), made.fields, strict=True)) == wanted
    assert made.counts.tolist() == [len(words) for _, _, words in wanted]
    some = [row for row in range(len(made)) if made.counts[row] >= 2][::-1]
    if not some:
        return
    taken = made.take(some)
    assert taken.fields == [wanted[row][2] for row in some]
    for place in (0, 1):
        codes, distinct = taken.words(place)
        column = [wanted[row][2][place] for row in some]
        assert [distinct[code] for code in codes.tolist()] == column
        assert distinct == list(dict.fromkeys(column))
        assert taken.strings(place).values == [word.decode() for word in distinct]
    numbers = [row for row in range(len(made)) if all(lines.is_number(word) for word in wanted[row][2])]
    plain = made.take(numbers)
    for skip in (0, 1, 3):
        values, edges = plain.floats(skip)
        rows = [[float(word) for word in wanted[row][2][skip:]] for row in numbers]
        assert values.tolist() == [value for row in rows for value in row]
        assert edges.tolist() == [0, *np.cumsum([len(row) for row in rows]).tolist()]
    both = [row for row in numbers if made.counts[row] >= 2]
    assert made.take(both).table([1, 0]).tolist() == [[float(w) for w in wanted[row][2][1::-1]] for row in both]
    assert made.take(both).table([1]).tolist() == [[float(wanted[row][2][1])] for row in both]


@pytest.mark.parametrize("worth", [0, 1 << 12])
def test_lines_that_are_refused(worth, monkeypatch):
    monkeypatch.setattr(lines, "_WORTH_SCANNING", worth)
    made = read_lines([(b"1 2\n\n3 x\n", "a"), (b"4 1_0\r5 inf 6", "b")])
    assert said(made.floats) == "a: line 3: must be a finite number (got 'x')"
    assert said(made.take([0, 3]).floats) == "b: line 2: must be a finite number (got 'inf')"
    assert said(made.take([0, 2]).table, [0, 1]) == "b: line 1: must be a finite number (got '1_0')"
    assert made.take([0, 2]).table([0]).tolist() == [[1.0], [4.0]]
    assert (
        said(made.check_counts, 2, "where 2 belong", "r") == "b: line 2: has 3 fields where 2 belong (got '5 inf 6'); r"
    )
    made.check_counts(np.array([2, 2, 2, 3]), "", "r")
    bad = np.array([False, True, False, True])
    assert said(made.refuse, bad, "is odd") == "a: line 3: is odd (got '3 x')"
    assert said(made.refuse, bad, "is odd", 1) == "a: line 3: is odd (got 'x')"
    assert said(made.refuse, bad, "is odd", 0) == "a: line 3: is odd (got '3')"
    made.refuse(~bad & bad, "is odd")

    def raised(record, rows=None):
        with made.named(rows):
            raise InputError("is odd", source="s", record=record, field="f", value=1)

    assert said(raised, 1) == "a: line 3, field 'f': is odd (got 1)"
    assert said(raised, 0, np.array([3])) == "b: line 2, field 'f': is odd (got 1)"
    assert said(raised, "named") == "s: named, field 'f': is odd (got 1)"
    text = read_lines([(b"a \xff\nb c\nd \xff", "f")])
    assert (
        said(text.strings, 1)
        == "f: line 1: is not text in UTF-8 (got 'a \ufffd')".encode("utf-8", "backslashreplace").decode()
    )
    assert text.strings(1, "replace").values == ["\ufffd", "c"]
    for longest, good in ((256, True), (257, False)):
        data = [(b"a\nb " + b"x" * longest + b"\n", "f")]
        if good:
            assert read_lines(data).counts.tolist() == [1, 2]
        else:
            assert said(read_lines, data).startswith("f: line 2: has a field of absurd length (got 'b xxx")
    assert said(read_lines, [(b"a\n", "f"), (b"b\0", "g"), (b"\0", "h")]) == "g: is not a text file"
    assert len(read_lines([])) == len(read_lines([(b"", "f"), (b"\n \r\n", "g")])) == 0
    for word, good in (
        (b"1", True),
        (b"-1e5", True),
        (b"1_0", False),
        (b"nan", False),
        (b"-inf", False),
        (b"x", False),
    ):
        assert lines.is_number(word) is good


# ------------------------------------------------------------------------------------------------------------- markup


XML = (
    '<?xml version="1.0" encoding="utf-8"?>\n<annotation a="1">\n <object id="7">\n  <name> cat </name>\r\n'
    "  <box><x>1.5</x><y>two</y></box>\n </object>\r <object>\n  <name>ä</name><name>dog</name></object>\n</annotation>"
)


def test_elements_are_those_of_another_parser():
    files = [XML.encode(), b"<annotation><object/></annotation>", XML.replace("cat", "cow").encode()]
    made = Elements(files)
    trees = [ElementTree.fromstring(data) for data in files]
    roots = made.roots("annotation")
    assert made.files(roots).tolist() == [0, 1, 2]
    objects = made.inside("object", roots)
    assert made.files(objects).tolist() == [0, 0, 1, 2, 2]
    assert len(objects) == sum(len(tree.findall("object")) for tree in trees)
    names = made.inside("name", objects)
    assert [made.text(row) for row in names] == ["cat", "ä", "dog", "cow", "ä", "dog"]
    assert made.strings(names).values == ["cat", "ä", "dog", "cow"]
    assert made.strings(names).codes.tolist() == [0, 1, 2, 3, 1, 2]
    owners = made.parents[names]
    firsts = made.first(names, owners, objects)
    assert [made.text(row) if row >= 0 else None for row in firsts.tolist()] == ["cat", "ä", None, "cow", "ä"]
    ids = made.attribute("id", objects)
    assert [made.text(row) if row >= 0 else None for row in ids.tolist()] == ["7", None, None, "7", None]
    assert made.attribute("absent", objects).tolist() == [-1] * 5
    assert [made.text(row) for row in made.attribute("a", roots[[0, 2]]).tolist()] == ["1", "1"]
    sides = np.concatenate([made.inside(name, made.inside("box", objects)) for name in ("x", "y")])
    values, good = made.numbers(sides)
    assert good.tolist() == [True, True, False, False]
    assert values[:2].tolist() == [1.5, 1.5]
    assert made.have_text(names).all()
    assert not made.have_text(made.inside("box", objects)).any()
    assert [made.name(row) for row in (*roots[:1], *objects[:1], *ids[:1])] == ["annotation", "object", "id"]
    before = XML.count("\n") + XML.count("\r") - XML.count("\r\n")
    assert [made.line(row) for row in roots.tolist()] == [2, before + 2, before + 4]
    assert [made.line(row) for row in objects.tolist()] == [3, 7, before + 2, before + 5, before + 9]
    assert made.named("absent").tolist() == made.roots("object").tolist() == []
    assert made.among(roots).sum() == 3


@pytest.mark.parametrize(
    ("start", "plain"),
    [("", True), ("<?xml version='1.0'?>", True), ('<?xml version="1.0" standalone="no" ?>', True),
     ('\ufeff<?xml version="1.0" encoding="UTF-8" standalone="yes"?>', True), ("\ufeff", True),
     ('<?xml version="1.1"?>', False), ('<?xml version="1.0" encoding="latin-1"?>', False), ("\ufffe", False)],
)  # fmt: skip
def test_declarations_of_plain_files(start, plain):
    made = Elements([f"{start}<a><b>ä</b></a>".encode(), b"<a/>"])
    assert np.diff(made.firsts).tolist() == [2 if plain else 0, 1]
    assert Elements([b"<a>\xff</a>"]).firsts.tolist() == [0, 0]
    assert Elements(["<a>\uffff</a>".encode()]).firsts.tolist() == [0, 0]
    assert Elements([]).firsts.tolist() == [0]


# ---------------------------------------------------------------------------------------------- files of another kind


def zipped(*names):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, b"")
    return out.getvalue()


IMAGES = "is an image"


@pytest.mark.parametrize(
    ("head", "name", "what"),
    [
        (b"{}", "a.PT", "holds weights of a model, no predictions"),
        (b"\x20\0\0\0\0\0\0\0{" + b'"a": {"dtype"', "a", "holds weights of a model, no predictions"),
        (b"\x20\0\0\0\1\0\0\0{" + b'"a": {"dtype"', "a", "is binary data of no known form"),
        (b"\x20\0\0\0\0\0\0\0{" + b'"a": {"type"', "a", "is binary data of no known form"),
        (b"\x89PNG\r\n\x1a\n", "a", IMAGES),
        (b"RIFF1234WEBP", "a", IMAGES),
        (b"RIFF1234WAVE\0", "a", "is binary data of no known form"),
        (b"RIFX1234WEBP", "a", None),
        (b"%PDF-1.4", "a", "is a PDF"),
        (b"\xff\xfe1\0", "a", "is text in UTF-16"),
        (b"\xfe\xff\0a", "a", "is text in UTF-16"),
        (b"  <!DOCTYPE HTML>", "a", "is a page of HTML"),
        (b"\n<html>", "a", "is a page of HTML"),
        (b"[1, 2]", "a.json", None),
        (b"a\0b", "a", "is binary data of no known form"),
        (b"", "a", None),
    ],
)
def test_files_that_hold_no_records(head, name, what):
    found = unlike.described(head, name)
    assert found is None if what is None else found[0] == what


@pytest.mark.parametrize(
    ("names", "what", "remedy"),
    [
        (
            ["a/data.pkl", "b"],
            "holds weights of a model, no predictions",
            "give the file that its predictions were written to",
        ),
        (["xl/sheet.xml"], "is a workbook of Excel", "save the sheet as CSV"),
        (["a.npy"], "holds the numpy arrays a", None),
        (["a.npy", "b.npy"], "holds the numpy arrays a and b", None),
        (["a.npy", "b.npy", "c.npy"], "holds the numpy arrays a, b and c", None),
        (["a.npy", "b.npy", "c.npy", "d.npy"], "holds the numpy arrays a, b, c and 1 more", None),
        (["a.npy", "b"], "is a zip archive that holds a.npy and b", "unpack it, and give the file or folder in it"),
        (["a/", "a/b.json"], "is a zip archive that holds a/b.json", "unpack it, and give the file or folder in it"),
        ([], "is a zip archive", "unpack it, and give the file or folder in it"),
    ],
)
def test_archives_that_hold_no_records(names, what, remedy):
    data = zipped(*names)
    head = b"PK\x03\x04" + data[4:]
    found = unlike.described(head, "a", lambda: io.BytesIO(data))
    assert found[0] == what
    assert remedy is None or found[1] == remedy
    assert unlike.described(head, "a")[0] == "is a zip archive"
    assert unlike.described(head, "a", lambda: io.BytesIO(b"PK\x03\x04nothing"))[0] == "is a zip archive"


def test_foreign_data_is_refused():
    unlike.refuse_foreign(b"[1]", "n")
    assert said(unlike.refuse_foreign, b"a\0b", "n") == "n: is binary data of no known form; write JSON, CSV or Parquet"
    assert said(unlike.refuse_foreign, b"a\0b", "n", "other") == "n: is binary data of no known form; other"
    assert said(unlike.refuse_foreign, b"%PDF", "n", "other") == "n: is a PDF; give the file that it was made from"
    assert unlike.listed([]) == ""
    assert unlike.listed(["a", "b"], 1) == "a and 1 more"


# --------------------------------------------------------------------------------------------------------- small JSON


def test_strict_json():
    assert strict_json.parsed(b'\xef\xbb\xbf{"a": [1, 2.5]}', "n") == {"a": [1, 2.5]}
    assert said(strict_json.parsed, b'{"a": 1, "b": 2, "a": 3}', "n") == (
        "n: is there twice in one object (got 'a'); keep the one that is meant"
    )
    assert said(strict_json.parsed, b'{"b": 1, "a": 2, "a": 3, "b": 4}', "n").count("'b'") == 1
    assert said(strict_json.parsed, b"[NaN]", "n", "f") == "n: field 'f': is not valid JSON: NaN is no number of JSON"
    assert said(strict_json.parsed, b"[", "n").startswith("n: is not valid JSON: Expecting value")
    assert said(strict_json.parsed, b"[" * 100_000, "n").startswith("n: is not valid JSON: ")


def test_typed_json():
    form = dict[str, list[int]]
    assert typed_json.decoded(b'\xef\xbb\xbf{"a": [1]}', form, "n") == {"a": [1]}
    rows = list[dict[str, int]]
    for data, kind, place, says in (
        (b'{"a": [1, "x"]}', form, "[...][1]", "expected `int`, got `str`; r"),
        (b'[{"a": 1}, {"a": "x"}]', rows, "[1][...]", "expected `int`, got `str`; r"),
        (b'[{"a": 1}, 5]', rows, "record 1", "expected `object`, got `int`; r"),
        (b"5", form, "", "expected `object`, got `int`; r"),
        (b"{", form, "", "is not valid JSON: Input data was truncated; is the file complete?"),
    ):
        where = f"{place}: " if place else ""
        assert said(typed_json.decoded, data, kind, "n", None, "r") == f"n: {where}{says}"
        where = f"line 3, {place}: " if place else "line 3: "
        assert said(typed_json.decoded, data, kind, "n", "line 3", "r") == f"n: {where}{says}"
    assert said(typed_json.decoded, b"%PDF", form, "n") == "n: is a PDF; give the file that it was made from"
    assert said(typed_json.decoded, b"%PDF", form, "n", "line 3").startswith("n: line 3: is not valid JSON: ")
    assert str(typed_json.refused(RecursionError(), "n", "line 3")) == "n: line 3: is nested too deeply"
    of_field = typed_json.refused(msgspec.ValidationError("Expected `int` - at `$.images[3].id`"), "n")
    assert (of_field.record, of_field.field) == ("images[3]", "id")
