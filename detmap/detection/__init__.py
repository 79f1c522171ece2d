"""Detections against ground truth: protocols, arrangement, tally, precisions, matches, evaluator."""
