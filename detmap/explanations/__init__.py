"""Explain why two protocols give different numbers, and find the protocol that gives a quoted number."""

from detmap.explanations.presets import Under, under_presets
from detmap.explanations.quotes import Candidate, Search
from detmap.explanations.ranking_search import Variant, find_ranking_value, rankings_survive
from detmap.explanations.ranking_shares import RankingExplanation, explain_rankings, explain_run
from detmap.explanations.replay import Replay, parse
from detmap.explanations.search import find_value
from detmap.explanations.shares import Example, Explanation, Share, Step, explain
from detmap.explanations.splits import Contrast, Effect, Split, contrast
from detmap.explanations.survival import Claim, Situation, Survival, survives

__all__ = [
    "Candidate", "Claim", "Contrast", "Effect", "Example", "Explanation", "RankingExplanation", "Replay", "Search", "Share",
    "Situation", "Split", "Step", "Survival", "Under", "Variant", "contrast", "explain", "explain_rankings", "explain_run",
    "find_ranking_value", "find_value", "parse", "rankings_survive", "survives", "under_presets"
]  # fmt: skip
