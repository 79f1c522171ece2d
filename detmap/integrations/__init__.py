"""detmap inside other packages: a module per package, which is imported by its name and translates, but computes nothing."""
