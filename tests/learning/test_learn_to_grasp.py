"""The example of learning to grasp, without its learning: a hand that follows a script."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import kinetree as kt


@pytest.fixture
def grasp(monkeypatch):
    """The example; tensors and the policy are not wanted here."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    for name in ("torch", "ppo"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    yield importlib.import_module("learn_to_grasp")
    sys.modules.pop("learn_to_grasp", None)


def joints_above(grasp, height):
    """Positions of the arm's joints with the fingertips at a height above the object."""
    target = np.diag([1.0, -1.0, -1.0, 1.0])
    target[:3, 3] = *grasp.REACH, height
    found = kt.inverse_kinematics(kt.samples.panda(), "grasp", target, grasp.HOME)
    return found.require()[:7]


@pytest.mark.parametrize("which", [0, -2])
def test_a_script_lifts_what_is_held_out(grasp, which):
    """A box and a ball: down, close, up, by the actions that a policy has."""
    shape = grasp.HELD_OUT[which]
    env = grasp.environment(shape, 4, arrays="numpy", spread=0.0)
    env.reset()
    middle = grasp.sizes(shape)[2] / 2
    low, high = joints_above(grasp, middle), joints_above(grasp, 0.2)
    for k in range(grasp.EPISODE - 1):
        goal = np.concatenate([low if k < 90 else high, [0.04 if k < 60 else 0.0]])
        away = (goal - env.state["aim"][:, :8]) / (grasp.STEP * grasp.FASTEST[:8])
        _, _, ended, _, info = env.step(np.clip(away, -1, 1))
        assert not ended.any()
        assert np.max(info["error"]) < 1e-3
    assert np.all(env.state["q"][:, 11] - middle > grasp.HIGH / 2)
