"""`detmap.pycocotools.mask` by hotcoco's names too: ``to_bbox`` and ``fr_py_objects``."""

from detmap.pycocotools.mask import area, decode, encode, frPyObjects, iou, merge, toBbox

__all__ = ["area", "decode", "encode", "frPyObjects", "fr_py_objects", "iou", "merge", "toBbox", "to_bbox"]

to_bbox, fr_py_objects = toBbox, frPyObjects
