"""Integrations with other packages: a module per package that only translates."""
