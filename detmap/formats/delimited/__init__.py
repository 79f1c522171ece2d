"""CSV and TSV files of boxes, read and written."""
