"""Kinds of shapes: one file per kind."""
