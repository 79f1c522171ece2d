"""Uncertainty of metrics: confidence intervals, paired tests, and corrections for multiple tests. Detections are
matched only once, before images are resampled or detections exchanged.

* `bootstrap` resamples the images, to estimate how a metric varies over data sets of this size.
* `permute` exchanges the detections of two models, to test whether the models differ by more than chance.
* `compare` does both for two or more models, and corrects for the number of hypotheses.
* `bootstrap_queries` and `compare_queries` do the same for rankings, with one value per query.
"""

from detmap.statistics.bootstrap import Bootstrap, HasTally, bootstrap
from detmap.statistics.comparison import Comparison, Difference, Family, PairTests, pair_tests
from detmap.statistics.draws import drawn, exchanged
from detmap.statistics.grouping import group_letters
from detmap.statistics.models import compare
from detmap.statistics.permutation import Permutations, permutations_needed, permute, testable
from detmap.statistics.queries import QueryComparison, bootstrap_queries, compare_queries
from detmap.statistics.result_intervals import Intervals
from detmap.statistics.reweighting import metric_names, support
from detmap.statistics.tests import TESTS, Test, benjamini_hochberg, holm, paired_t, randomisation, wilcoxon

__all__ = [
    "TESTS", "Bootstrap", "Comparison", "Difference", "Family", "HasTally", "Intervals", "PairTests",
    "Permutations", "QueryComparison", "Test", "benjamini_hochberg", "bootstrap", "bootstrap_queries", "compare",
    "compare_queries", "drawn", "exchanged", "group_letters", "holm", "metric_names", "pair_tests", "paired_t",
    "permutations_needed", "permute", "randomisation", "support", "testable", "wilcoxon"
]  # fmt: skip
