"""Integrations with other packages: each module translates between a package and detmap."""
