"""Why two protocols give different numbers, and which protocol gives a number: every rule is replayed."""

from detmap.explanations.replay import Replay, parse
from detmap.explanations.search import Candidate, Search, find_value
from detmap.explanations.shares import Example, Explanation, Share, Step, explain

__all__ = [
    "Candidate", "Example", "Explanation", "Replay", "Search", "Share", "Step", "explain", "find_value", "parse"
]  # fmt: skip
