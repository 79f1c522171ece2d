"""The mutants of scripts/mutate.py, which says what a row holds; a file per theme of the kernels that they change."""

from __future__ import annotations

from mutants import curves, matching, panoptic, rankings, reading, shapes

MUTANTS = [*matching.MUTANTS, *curves.MUTANTS, *rankings.MUTANTS, *shapes.MUTANTS, *reading.MUTANTS, *panoptic.MUTANTS]
