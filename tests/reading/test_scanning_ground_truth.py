"""The scanner on ground truth: what it understands, and what it leaves to the parser."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from scanner import check_ground_truth
from scanner_documents import PLAIN_TRUTHS, TRUTH

from detmap.data import benchmarks
from detmap.kernels import records
from detmap.reading import scanned_columns


def test_a_field_that_the_first_record_does_not_have() -> None:
    """Once a record has it, those that are like the first one again lack it."""
    plain = '{"id": 7, "image_id": 1, "category_id": 3, "bbox": [1.5, 2, 3, 4]%s}'
    for extra in (', "area": 5.5', ', "iscrowd": 1', ', "segmentation": [[1, 2]]'):
        annotations = ", ".join(plain % (extra if k == 2 else "") for k in range(6))
        assert check_ground_truth(TRUTH % annotations.encode()) is not None


@pytest.mark.parametrize("data", PLAIN_TRUTHS)
def test_plain_ground_truth_is_understood(data: bytes) -> None:
    assert check_ground_truth(data) is not None


@pytest.mark.parametrize("data", PLAIN_TRUTHS)
@pytest.mark.compiled
def test_no_beginning_of_ground_truth_is_understood(data: bytes) -> None:
    for end in range(len(data.rstrip())):
        assert check_ground_truth(data[:end]) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"{",
        b"}",
        b"{,}",
        b'{"images":[],"annotations":[]}',
        b'{"images":[],"annotations":[],"categories":[],}',
        b'{"images":[],"annotations":[],"categories":[]}}',
        b'{"images":[],"annotations":[],"categories":[]},',
        b'{"images":[],"images":[],"annotations":[],"categories":[]}',
        b'{"images":[],"annotations":null,"categories":[]}',
        b'{"images":[],"annotations":{},"categories":[]}',
        b'{"images":[] "annotations":[],"categories":[]}',
        b'{"images":[],"annotations" [],"categories":[]}',
        b'{"images":[],"annotations":[],categories:[]}',
        b'{"images":[],"annotations":[],"categories":[],"x":tru}',
        b'{"images":[],"annotations":[],"categories":[],"x":"\xff"}',
        b'{"images":[],"annotations":[],"categories":[],"\\ud800":1}',
        b'{"images":[],"annotations":[],"categories":[],"x":' + b"[" * 65 + b"]" * 65 + b"}",
        b'{"images":[{}],"annotations":[],"categories":[]}',
        b'{"images":[{"id":null}],"annotations":[],"categories":[]}',
        b'{"images":[{"id":1},{"id":"1"}],"annotations":[],"categories":[]}',
        b'{"images":[],"annotations":[],"categories":[{"id":1}]}',
        b'{"images":[],"annotations":[],"categories":[{"id":1,"name":1}]}',
        b'{"images":[],"annotations":[],"categories":[{"id":1,"name":null}]}',
        TRUTH % b'{"category_id": 3}',
        TRUTH % b'{"image_id": 3}',
        TRUTH % b'{"image_id": 1, "category_id": 3, "id": 1},{"image_id": 1, "category_id": 3}',
        TRUTH % b'{"image_id": 1, "category_id": 3, "iscrowd": 2}',
        TRUTH % b'{"image_id": 1, "category_id": 3, "iscrowd": 1.0}',
        TRUTH % b'{"image_id": 1, "category_id": 3, "iscrowd": "1"}',
        TRUTH % b'{"image_id": 1, "category_id": 3, "iscrowd": null}',
        TRUTH % b'{"image_id": 1, "category_id": 3, "ignore": 01}',
        TRUTH % b'{"image_id": 1, "category_id": 3, "ignore": -0}',
        TRUTH % b'{"image_id": 1, "category_id": 3, "ignore": truee}',
        TRUTH % b'{"image_id": 1, "category_id": 3, "area": null}',
        TRUTH % b'{"image_id": 1, "category_id": 3, "num_keypoints": "1"}',
        TRUTH % b'{"image_id": 1, "category_id": 3, "num_keypoints": 1.0}',
    ],
)
def test_other_ground_truth_is_not(data: bytes) -> None:
    assert check_ground_truth(data) is None


def test_keys_are_looked_up_by_the_bit_that_the_kernel_sets() -> None:
    """The hash of a key is written twice: in the kernel that scans records, and in the table that is asked."""
    keys = [field for section in ("images", "annotations", "categories") for field in benchmarks.fields_of(section)]
    key_bit = getattr(records._key_bit, "py_func", records._key_bit)  # a helper without a wrapper for Python
    for key in [*keys, "a", "id", "zz", "~" * 300]:
        name = key.encode()
        bit = int(key_bit(name[0], name[-1], len(name)))
        assert scanned_columns.Table.may_have(SimpleNamespace(unread=bit), key)  # type: ignore[arg-type]
        assert not scanned_columns.Table.may_have(SimpleNamespace(unread=~bit), key)  # type: ignore[arg-type]
