"""Pinocchio is optional: what one sees without it, and that the example in the docs runs."""

import doctest
import subprocess
import sys
import types

import numpy as np
import pytest

from kinetree import samples
from kinetree.errors import InteropError
from kinetree.interop import pinocchio as P


def test_the_example_in_the_documentation_runs():
    failed, attempted = doctest.testmod(P)
    assert attempted >= 5
    assert failed == 0


def test_without_pinocchio_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pinocchio", None)
    with pytest.raises(
        P.MissingLibraryError, match=r'pip install "kinetree\[pinocchio\]"'
    ) as caught:
        P.to_model(samples.chain(2))
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, InteropError)


def test_a_namesake_is_not_taken_for_pinocchio(monkeypatch):
    namesake = types.ModuleType("pinocchio")
    namesake.__file__ = "/somewhere/pinocchio.py"
    monkeypatch.setitem(sys.modules, "pinocchio", namesake)
    with pytest.raises(
        P.MissingLibraryError, match=r"/somewhere/pinocchio.py is not the rigid-body"
    ):
        P.to_model(samples.chain(2))


def test_importing_kinetree_interop_does_not_import_pinocchio():
    code = "import sys, kinetree.interop.pinocchio; assert 'pinocchio' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_states_need_pinocchio_models_but_not_the_module(monkeypatch):
    m = samples.chain(3)
    theirs = P.to_model(m)
    monkeypatch.setitem(sys.modules, "pinocchio", None)
    np.testing.assert_array_equal(P.to_q(m, theirs, [1.0, 2.0, 3.0]), [1, 2, 3])
