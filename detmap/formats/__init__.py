"""One file per format, each with its own read_* and write_*."""
