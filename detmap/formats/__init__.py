"""Readers and writers: one file per format, bytes in and columns out."""
