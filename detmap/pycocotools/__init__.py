"""A drop-in for pycocotools: the same names, numbers and attributes.

Use ``from detmap.pycocotools.coco import COCO`` and ``from detmap.pycocotools.cocoeval import COCOeval``, or
`detmap.patch_pycocotools` for code that imports pycocotools itself. `detmap.pycocotools.faster` stands in for
faster_coco_eval. `detmap.pycocotools.peers` also has the names of hotcoco and ultrafast-pycocotools.
"""
