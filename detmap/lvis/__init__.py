"""A drop-in for lvis-api: the same names and numbers, with current numpy.

``from detmap.lvis import LVIS, LVISEval, LVISResults`` in place of ``from lvis import …``. The classes include the
additions of the 2021 challenge's branch: caps per category, and boundary IoU.
"""

from detmap.lvis.eval import LVISEval, Params
from detmap.lvis.lvis import LVIS
from detmap.lvis.results import LVISResults

__all__ = ["LVIS", "LVISEval", "LVISResults", "Params"]
