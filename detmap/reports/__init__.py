"""Pages of one HTML file that ask for nothing: the leaderboard of a batch, and the report on one detector or several.

``page.py`` puts a template, its styles and its scripts into one file; ``tables.py``, ``charts.py`` and ``pictures.py`` make
what stands on it.
"""
