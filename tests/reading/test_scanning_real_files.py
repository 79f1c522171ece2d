"""The scanner on real files, and its kernels compiled for one signature each."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from scanner import UNCOMPILED, check_ground_truth, check_qrels, check_results, check_run

from detmap.kernels import records as record_kernels
from detmap.kernels.lines import scan_lines
from detmap.kernels.texts import factorise, find_strings, rank_rows
from detmap.kernels.values import skip_value
from detmap.kernels.words import survey


@pytest.mark.compiled
@pytest.mark.real_data
@pytest.mark.parametrize("name", ["instances_val2014_fakebbox100_results", "instances_val2014_fakesegm100_results"])
def test_real_results(name: str, real_data: Path) -> None:
    assert check_results((real_data / "coco" / f"{name}.json").read_bytes()) is not None


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.parametrize(
    "name", ["coco/instances_val2014_100", "coco/instances_val2017_COCO-MINI", "voc2007/pascal_test2007"]
)
@pytest.mark.compiled
def test_real_ground_truth(name: str, real_data: Path) -> None:
    assert check_ground_truth((real_data / f"{name}.json").read_bytes()) is not None


@pytest.mark.real_data
@pytest.mark.compiled
def test_real_runs(real_data: Path) -> None:
    folder = real_data / "trec"
    for name in ("results.test", "results.trunc"):
        assert check_run((folder / name).read_bytes()) is not None
    assert check_run(gzip.decompress((folder / "results.comment.test.gz").read_bytes())) is not None
    for name in ("qrels.test", "qrels.rel_level", "qrels.comment.test"):
        assert check_qrels((folder / name).read_bytes()) is not None


@pytest.fixture
def real_data() -> Path:
    folder = Path(__file__).resolve().parents[3] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("../shared/data is absent")
    return folder


@pytest.mark.compiled
@pytest.mark.jit
@pytest.mark.skipif(UNCOMPILED, reason="kernels are not compiled")
def test_one_signature_per_kernel() -> None:
    for kernel in (survey, skip_value, record_kernels.scan_records, scan_lines, factorise, find_strings, rank_rows):
        assert len(kernel.signatures) <= 1, kernel.py_func.__name__
