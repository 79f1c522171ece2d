"""A drop-in for pycocotools: the same names, the same numbers, the same inside.

``from detmap.pycocotools.coco import COCO`` and ``from detmap.pycocotools.cocoeval import COCOeval``; or
`detmap.patch_pycocotools` for code that imports pycocotools itself.
"""
