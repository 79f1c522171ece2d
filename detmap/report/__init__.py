"""Pages of one HTML file that ask for nothing: the leaderboard of a batch, and the report on one detector or several.

`page` puts a template, its styles and its scripts into one file; pages are made of `tables`, `charts` and `pictures`.
"""
