"""A drop-in replacement for lvis-api, with the same names and numbers, that works with current numpy.

Use ``from detmap.lvis import LVIS, LVISEval, LVISResults`` in place of ``from lvis import …``. The classes include what
the 2021 challenge's branch of lvis-api adds: a maximum number of detections per category, and boundary IoU.
"""

from detmap.lvis.eval import LVISEval, Params
from detmap.lvis.lvis import LVIS
from detmap.lvis.results import LVISResults

__all__ = ["LVIS", "LVISEval", "LVISResults", "Params"]
