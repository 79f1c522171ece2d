"""The examples in docstrings print what they show."""

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize("module", ["detmap.hits"])
def test_examples(module):
    outcome = doctest.testmod(import_module(module))
    assert outcome.attempted
    assert not outcome.failed
