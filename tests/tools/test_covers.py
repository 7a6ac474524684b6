"""Markers that say what a test covers are checked by running it: what counts as called."""

import subprocess
import sys
from pathlib import Path

import numpy as np
from support.entered import Watch, entrances, is_called

import kinetree as kt
from kinetree.algorithms import crba, rnea
from kinetree.joints import AbstractJoint, Cylindrical, Revolute
from kinetree.spatial import Inertia, rotx, vector3


def entered(run):
    with Watch() as watch:
        run()
    return watch.entered


def test_functions_classes_modules_and_overrides_count_when_they_are_entered():
    found = entered(lambda: Revolute("z").loop_error(rotx(0.1)))
    for called in (Revolute.loop_error, AbstractJoint.loop_error, Revolute, rotx):
        assert is_called((called,), found)
    for other in (Cylindrical.loop_error, Inertia.from_mass_center, kt.mass_matrix):
        assert not is_called((other,), found)
    assert is_called((Inertia, Revolute), found)  # one of them will do
    found = entered(lambda: vector3.skew(np.ones(3)))
    assert is_called((vector3,), found)


def test_data_is_not_called():
    assert entrances("integration.explicit.HEUN") == frozenset()
    assert is_called(("integration.explicit.HEUN",), frozenset())


def test_texts_count_when_the_function_of_a_model_before_them_is_called():
    model = kt.samples.chain(2)
    q = np.zeros(2)
    for _ in range(2):  # traced or found on disk, then found in memory
        found = entered(lambda: kt.mass_matrix(model, q))
        assert is_called((kt.mass_matrix,), found)
        assert is_called((crba.joint_space_inertia,), found)
    # What a kernel was traced from cannot be told once it is there.
    assert is_called((rnea.inverse_dynamics,), found)
    assert not is_called(
        (rnea.inverse_dynamics,), entered(lambda: crba.joint_space_inertia(model, q))
    )


def test_watches_within_watches():
    with Watch() as outer:
        vector3.skew(np.ones(3))
        with Watch() as inner:
            rotx(0.1)
        vector3.identity3()
    assert is_called((rotx,), inner.entered)
    assert not is_called((vector3.skew,), inner.entered)
    assert is_called((vector3.skew,), outer.entered)
    assert is_called((vector3.identity3,), outer.entered)


FALSE = """
import pytest
from kinetree.spatial import rotx, roty

@pytest.mark.covers("RBDA 2.8", by=rotx)
@pytest.mark.parametrize("angle", [0.1, 0.2])
def test_true(angle):
    rotx(angle)

@pytest.mark.covers("RBDA 2.8", by=roty)
def test_false():
    rotx(0.1)

@pytest.fixture
def turned():
    return roty(0.1)

@pytest.mark.covers("RBDA 2.8", by=roty)
def test_by_fixture(turned):
    pass
"""


def test_a_false_marker_fails_its_test(tmp_path):
    root = Path(__file__).resolve().parents[2]
    (tmp_path / "test_markers.py").write_text(FALSE)
    (tmp_path / "conftest.py").write_text((root / "tests" / "conftest.py").read_text("utf-8"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += [f"-c={root / 'pyproject.toml'}", f"--rootdir={root}", "--check-covers"]
    command.append(str(tmp_path))
    result = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert "1 failed, 3 passed" in result.stdout, result.stdout
    message = "this test is marked as covering spatial.transform.roty, which it never calls"
    assert message in result.stdout
