"""The bootstrap of TIDE's gains in AP. The outcome of a detection, its error and its fix depend only on the detection's
image. Therefore nothing is matched again, and a bootstrap draw only changes the weights of images.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from detmap.detection.tally import Tally
from detmap.diagnostics._errors import ERRORS, MISSED, errors
from detmap.diagnostics._ranking import mean
from detmap.diagnostics._resampling import tally_of, units_of
from detmap.diagnostics.tide import Mending
from detmap.kernels import readonly
from detmap.statistics import Bootstrap, intervals
from detmap.statistics.bootstrap import samples
from detmap.statistics.clusters import balanced
from detmap.statistics.reweighting import Reweighted

if TYPE_CHECKING:
    from detmap.diagnostics._diagnosis import Diagnosis


def redrawn(diagnosis: Diagnosis) -> Bootstrap:
    """Return the bootstrap of ``AP``, and of the gain in AP if errors of one kind are fixed: ``dAP_Cls`` and so on.

    Every replicate is bit-identical to the result of `detmap.diagnostics.tide` for a data set with the drawn images.
    """
    mend = Mending(diagnosis, errors(diagnosis))
    units = units_of(diagnosis)
    count, copies = samples(units, diagnosis.replicates, diagnosis.seed)

    def by_class(tally: Tally) -> NDArray[np.float64]:
        return Reweighted(tally, (), ("AP",)).score(count, copies, diagnosis.threads)[:, 0]

    tally = _tally(diagnosis, mend, set())
    columns = [np.array(list(map(mean, by_class(tally))))]
    for code in range(1, len(ERRORS) + 1):
        values = by_class(_tally(diagnosis, mend, {code}))
        columns.append(np.array(list(map(mean, values))) - columns[0])
    table = np.stack(columns, axis=1)
    names = ("AP", *(f"dAP_{name}" for name in ERRORS))
    classes = np.unique(tally.positive_category[tally.positive_counts[:, 0] > 0]).size
    objects = units.totals(tally.positive_image, tally.positive_counts[:, 0])
    return Bootstrap(
        metrics=names,
        columns={name: at for at, name in enumerate(names)},
        estimate=table[0],
        replicates=table[1 : 1 + diagnosis.replicates],
        jackknife=table[1 + diagnosis.replicates :],
        support=readonly(np.full(len(names), np.count_nonzero(objects)), np.int64),
        near=np.array([intervals.nearest(1, classes), *[(0.0, 0.0)] * len(ERRORS)]),
        balance=None if units.of is None else np.full(len(names), balanced(objects)),
        seed=diagnosis.seed,
        unit=units.name,
    )


def _tally(diagnosis: Diagnosis, mend: Mending, mended: set[int]) -> Tally:
    """Return the tally, in ranking order, at the diagnosis's threshold after errors of the kinds `mended` are fixed."""
    hit, counts = mend.outcomes(mended)
    order = mend.order_of(hit)
    counted = diagnosis.counted
    if MISSED in mended:
        counted = counted.copy()
        counted[diagnosis.places[mend.missed]] = False
    tally = tally_of(diagnosis, diagnosis.matches.outcome, counted)  # the rows are those of `diagnosis.matches`
    return replace(
        tally.take(mend.rows[order], slice(None)),
        category=readonly(np.repeat(np.arange(len(tally.categories)), np.diff(mend.starts)), np.int32),
        hit=readonly((hit & counts)[order, None], np.uint64),
        ignored=readonly(~counts[order, None], np.uint64),
        ranked=True,
    )
