"""Integrations with other packages: a module per package, which translates between its interface and detmap's."""
