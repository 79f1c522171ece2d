"""Self-contained HTML pages: the leaderboard of a batch, and reports on one model or several.

``page.py`` combines a template, its styles and scripts in one file; ``tables.py``, ``charts.py`` and ``pictures.py``
make the content of the page.
"""
