"""The task of the example that learns to grasp, without its learning: a hand follows a script."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import kinetree as kt


@pytest.fixture
def grasping(monkeypatch):
    """The task of the example."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    yield importlib.import_module("grasping")
    sys.modules.pop("grasping", None)


def script(grasping, env):
    """A policy by hand: over the object, down, close, up."""
    count = 0

    def policy(seen):
        nonlocal count
        hand = kt.pose(env.model, env.state["q"], "arm.grasp")
        away = env.state["q"][:, 9:12] - hand[:, :3, 3]
        above = np.linalg.norm(away[:, :2], axis=1) > 0.015
        away[:, 2] += np.where(above, 0.06, 0.0)
        turn = np.arctan2(seen[:, 4], seen[:, 3]) / 2  # of the object in the hand, by quarters
        turn = (turn + np.pi / 4) % (np.pi / 2) - np.pi / 4
        move = np.column_stack([12 * away, -1.5 * turn, np.ones(len(seen))])
        if count >= 70:
            move[:, 4] = -1.0
        if count >= 85:
            rises = np.where(grasping.lift_of(env) < grasping.HIGH, 0.4, 0.0)
            move[:, :4] = np.column_stack([*np.zeros((2, len(seen))), rises, np.zeros(len(seen))])
        count += 1
        return move

    return policy


def test_a_script_lifts_a_ball_that_was_held_out(grasping):
    """Anywhere, of any mass and friction, by the actions that a policy has."""
    shape = next(s for s in grasping.held_out(40) if isinstance(s, grasping.Ball))
    env = grasping.environment(shape, 8, seed=7, arrays="numpy")
    assert grasping.success(script(grasping, env), env).all()


def test_rewards_of_a_box_grow_from_reaching_to_holding(grasping):
    env = grasping.environment(grasping.TRAINED[0], 8, seed=3, arrays="numpy")
    policy, seen, rewards = script(grasping, env), env.reset(), []
    for _ in range(grasping.EPISODE - 1):
        seen, reward, ended, _, info = env.step(policy(seen))
        rewards.append(reward.mean() / grasping.STEP)
        assert not ended.any()
        assert np.max(info["error"]) < 1e-3
    assert np.all(grasping.lift_of(env) > grasping.HIGH / 2)
    far, hovers, presses, holds = (np.mean(rewards[k : k + 5]) for k in (0, 60, 80, 140))
    assert far < hovers - 0.2
    assert hovers < presses - 0.2
    assert presses < holds - 1.5
    begins_near(env)


def begins_near(env):
    """Check that a part of the episodes begins with the object in the hand, as ``help`` says."""
    far = np.linalg.norm(env.reset(5)[:, :3] / 10, axis=1)
    assert np.all(far > 0.05)
    env.arguments["help"][...] = 1.0
    seen = np.concatenate([env.reset(k) for k in range(10)])
    near = np.linalg.norm(seen[:, :3] / 10, axis=1) < 0.002
    assert 0.1 < near.mean() < 0.4
    widths = seen[near, 24:26].sum(axis=1) + 0.08  # what the fingers are apart
    assert np.all((widths > 0.079) | (np.abs(widths - 0.03) < 1e-3))
    assert 0.2 < np.mean(widths < 0.04) < 0.8


def test_a_policy_in_a_file_is_a_function_of_arrays(grasping, tmp_path):
    rng = np.random.default_rng(0)
    first, last = rng.standard_normal((8, 44)), rng.standard_normal((5, 8))
    stored = {"mean": np.ones(44), "spread": 2 * np.ones(44), "weight0": first, "bias0": np.ones(8)}
    np.savez(tmp_path / "policy.npz", **stored, weight1=last, bias1=np.zeros(5))
    seen = rng.standard_normal((3, 44))
    x = (seen - 1) / 2 @ first.T + 1
    expected = np.where(x > 0, x, np.exp(x) - 1) @ last.T
    policy = grasping.policy_of(tmp_path / "policy.npz")
    np.testing.assert_allclose(policy(seen), expected, rtol=1e-12)
