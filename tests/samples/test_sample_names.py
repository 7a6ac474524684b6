"""What samples there are, and how to get one."""

import inspect

import pytest

from kinetree import samples
from kinetree.errors import UnknownNameError
from kinetree.model import Model


def test_names_are_functions_of_the_module():
    assert set(samples.names()) < set(samples.__all__)
    for name in samples.names():
        function = getattr(samples, name)
        assert all(
            p.default is not p.empty for p in inspect.signature(function).parameters.values()
        )
        assert function.__doc__


def test_load_makes_the_same_model_every_time():
    assert samples.load("panda") == samples.panda() == samples.panda()
    assert isinstance(samples.load("bennett"), Model)


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(UnknownNameError, match=r"no sample model is called 'pand.'; did you mean"):
        samples.load("pandy")
    with pytest.raises(UnknownNameError, match=r"called 'xyzzy'; there are pendulum, double_pend"):
        samples.load("xyzzy")
    with pytest.raises(UnknownNameError, match="called None"):
        samples.load(None)  # type: ignore[arg-type]
