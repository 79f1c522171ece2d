"""YOLO's text files: folders, labels and predictions, read and written."""
