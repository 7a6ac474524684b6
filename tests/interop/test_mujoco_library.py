"""MuJoCo is optional: what one sees without it, and that the example in the docs runs."""

import doctest
import subprocess
import sys
import types

import pytest

from kinetree import samples
from kinetree.errors import InteropError
from kinetree.interop import mujoco as M


@pytest.mark.filterwarnings("ignore::kinetree.errors.ModelWarning")
def test_the_example_in_the_documentation_runs():
    failed, attempted = doctest.testmod(M)
    assert attempted >= 10
    assert failed == 0


def test_without_mujoco_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(M.MissingLibraryError, match=r'pip install "kinetree\[mjcf\]"') as caught:
        M.to_model(samples.chain(2))
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, InteropError)


def test_a_namesake_is_not_taken_for_mujoco(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", types.ModuleType("mujoco"))
    with pytest.raises(M.MissingLibraryError, match=r"older than 3.3, or a namesake"):
        M.to_model(samples.chain(2))


def test_importing_kinetree_interop_does_not_import_mujoco():
    code = "import sys, kinetree.interop.mujoco; assert 'mujoco' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
