"""Files of annotation tools and data sets that list images with their objects: a reader per file.

`recognition` registers them all; a reader is imported when a file of its format is read.
"""
