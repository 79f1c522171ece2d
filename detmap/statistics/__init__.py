"""How sure a score is: bootstrap over images or queries, paired tests, corrections; reweights tallies, matches nothing."""

from detmap.statistics.bootstrap import Bootstrap, HasTally, bootstrap, drawn
from detmap.statistics.comparison import Comparison, Difference, checked_metric, compare
from detmap.statistics.grouping import group_letters
from detmap.statistics.queries import QueryComparison, bootstrap_queries, compare_queries
from detmap.statistics.tests import TESTS, Test, holm, paired_t, randomisation, wilcoxon

__all__ = [
    "TESTS",
    "Bootstrap",
    "Comparison",
    "Difference",
    "HasTally",
    "QueryComparison",
    "Test",
    "bootstrap",
    "bootstrap_queries",
    "checked_metric",
    "compare",
    "compare_queries",
    "drawn",
    "group_letters",
    "holm",
    "paired_t",
    "randomisation",
    "wilcoxon",
]
