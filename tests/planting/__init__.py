"""Clean data sets, and defects that are planted in them at random severities, for what `detmap check` should find.

Nothing here imports the library under test, nor shares a constant with it. A defect is a function of a random generator
and a data set, which it changes; it is registered under the code that should be found. What it brings along and is true
as well (a class of which no detection is left) is named beside it.
"""

from __future__ import annotations

from planting import (  # noqa: F401, each registers its defects
    boxes,
    classes,
    images,
    records,
    scene_causes,
    scene_exports,
    scene_labels,
    scene_parts,
    scene_steps,
    scene_truth,
    scene_writers,
    scores,
    shapes,
)
from planting.boxes import _corners as _corners
from planting.data import clean as clean
from planting.natural import NATURAL_KINDS as NATURAL_KINDS
from planting.natural import natural as natural
from planting.registry import DEFECTS as DEFECTS
from planting.registry import make as make
from planting.scene_defects import SCENE_DEFECTS as SCENE_DEFECTS
from planting.scenes import KINDS as KINDS
from planting.scenes import scene as scene
from planting.shaped import EXCHANGED as EXCHANGED
from planting.shaped import SHAPED_DEFECTS as SHAPED_DEFECTS
from planting.shaped import SHAPED_KINDS as SHAPED_KINDS
from planting.shaped import shaped as shaped
