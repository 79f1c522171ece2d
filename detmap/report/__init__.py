"""Pages of one HTML file that ask for nothing: the leaderboard of a batch, and the report on one detector or several.

`page` puts a template, its styles and its scripts into one file; `tables`, `charts` and `pictures` are what pages are made of.
"""
