"""PASCAL VOC's XML annotations and text files of detections, read and written."""
