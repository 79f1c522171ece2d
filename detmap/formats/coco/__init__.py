"""COCO's JSON: ground truth and lists of results, read, written, checked and salvaged."""
