"""Formats of annotation tools and data sets that list images with their objects. `recognition` registers them; the
modules of readers are imported lazily.
"""
