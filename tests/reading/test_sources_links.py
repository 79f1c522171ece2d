"""Where bytes come from: links in archives and folders, and the names of files."""

from __future__ import annotations

import gzip
import os
import tarfile

import pytest
from source_files import XML, needs_fifo, packed, write

import detmap
from detmap.errors import InputError
from detmap.formats.inputs import Input
from detmap.reading import sources

HARD, SYMBOLIC, DEVICE = tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE


def test_links_in_an_archive_are_followed():
    members = {
        "d/1.xml": XML,
        "d/2.xml": (HARD, "d/1.xml"),
        "d/3.xml": (SYMBOLIC, "1.xml"),
        "d/4.xml": (SYMBOLIC, "../e/f/x"),
        "e/f": (SYMBOLIC, "../g"),
        "g/x": (SYMBOLIC, "../d/2.xml"),
        "h/1.xml": (HARD, "./d/1.xml"),  # the same file again
        "./d/5.XML": XML,
    }
    for data in (packed(members), gzip.compress(packed(members))):
        truth = detmap.read_voc(data)
        assert truth.images.values.tolist() == ["1", "2", "3", "4", "5"]
        assert len(truth) == 5


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ((SYMBOLIC, "none.xml"), "is a link to 'none.xml', which is not in the archive"),
        ((HARD, "d/none.xml"), "is a link to 'd/none.xml', which is not in the archive"),
        ((SYMBOLIC, "../../etc/1.xml"), "which lies outside of the archive"),
        ((SYMBOLIC, "/etc/1.xml"), "which lies outside of the archive"),
        ((SYMBOLIC, "2.xml"), "which leads in a circle"),
        ((HARD, "d/2.xml"), "which leads in a circle"),
        ((SYMBOLIC, "../d"), "which is not in the archive"),
        ((SYMBOLIC, "dev"), "which is no file"),
        ((DEVICE, ""), "is neither a file nor a link"),
    ],
)
def test_links_of_an_archive_that_lead_nowhere(link, message):
    with pytest.raises(InputError) as caught:
        detmap.read_voc(packed({"d/1.xml": XML, "d/dev": (DEVICE, ""), "d/2.xml": link}))
    assert message in str(caught.value)
    assert "annotations/d/2.xml" in str(caught.value)


def test_an_archive_of_links_is_no_bomb(monkeypatch):
    monkeypatch.setenv("DETMAP_MOST_INFLATED", "1000")
    monkeypatch.setattr(sources, "_FACTOR", 1)
    big = XML + " " * 20_000
    with pytest.raises(InputError, match="so many links"):
        detmap.read_voc(packed({"1.xml": big, **{f"{i}.xml": (HARD, "1.xml") for i in range(2, 100)}}))


def test_an_archive_that_is_cut_is_an_error():
    data = packed({f"{i}.xml": XML + " " * 3000 for i in range(4)})
    with pytest.raises(InputError, match="is a damaged tar archive"):
        detmap.read_voc(data[:6000])


def linked(path, target):
    try:
        path.symlink_to(target)
    except OSError:
        pytest.skip("the system has no symbolic links")


@pytest.mark.parametrize(
    ("target", "remedy"),
    [
        ("../.git/annex/objects/a/b/c", "git annex get"),
        ("/home/dvc/cache/01/23", "dvc pull"),
        ("none", "or remove the link"),
    ],
)
def test_dangling_links_are_named_with_the_remedy(tmp_path, target, remedy):
    write(tmp_path / "1.xml", XML.encode())
    linked(tmp_path / "2.xml", target)
    linked(tmp_path / "dt.json", target)
    for read in (detmap.read_voc, sources.fingerprint):
        with pytest.raises(InputError) as caught:
            read(tmp_path) if read is detmap.read_voc else sources.fingerprint(tmp_path, ".xml")
        assert "2.xml: is a link to" in str(caught.value)
        assert remedy in str(caught.value)
    with pytest.raises(InputError, match=r"dt\.json: is a link to .*, which is not there"):
        detmap.read_coco_results(tmp_path / "dt.json")


def test_links_of_a_folder(tmp_path):
    write(tmp_path / "there", XML.encode())
    linked(tmp_path / "1.xml", "there")
    assert len(detmap.read_voc(tmp_path)) == 1
    linked(tmp_path / "2.xml", "2.xml")
    with pytest.raises(InputError, match=r"2\.xml"):
        detmap.read_voc(tmp_path)


def test_suffixes_in_any_case(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("i1.xml", "i2.XML", "i3.Xml"):
        write(folder / name, XML.encode())
    (folder / "i4.XML").mkdir()
    by_name = dict.fromkeys(("i1.xml", "i2.XML", "i3.Xml"), XML)
    for source in (folder, by_name, packed(by_name)):
        assert detmap.read_voc(source).images.values.tolist() == ["i1", "i2", "i3"]
    (folder / "i4.XML").rmdir()
    lines = {"comp4_det_test_cat.TXT": "i1 .5 1 2 3 5\n"}
    write(tmp_path / "comp4_det_test_cat.TXT", lines["comp4_det_test_cat.TXT"].encode())
    for source in (tmp_path, lines, packed(lines)):
        assert len(detmap.read_voc_results(source)) == 1
    assert Input(str(tmp_path), "detections").known.name == "voc"
    for source in ({"a.xml": XML, "a.XML": XML}, packed({"a.xml": XML, "a.XML": XML})):
        with pytest.raises(InputError, match=r"holds two files of one name: 'a\.xml' and 'a\.XML'"):
            detmap.read_voc(source)
    write(folder / "i1.XML", XML.encode())
    if len(list(folder.iterdir())) == 4:  # not on a file system that makes them one
        with pytest.raises(InputError, match=r"holds two files of one name: 'i1\.XML' and 'i1\.xml'"):
            detmap.read_voc(folder)


@needs_fifo
def test_a_pipe_in_a_folder_is_named(tmp_path):
    os.mkfifo(tmp_path / "1.xml")
    with pytest.raises(InputError, match=r"1\.xml: is neither a file nor a folder"):
        detmap.read_voc(tmp_path)
