"""Policies are learned, in seconds; ``examples/learn_on_a_cpu.py`` goes on for a minute."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch


@pytest.fixture(scope="module")
def example():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
        import learn_on_a_cpu

        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        yield learn_on_a_cpu
        torch.set_num_threads(threads)


def quiet(record):
    """Nothing is printed, and learning goes on."""


def test_a_cart_learns_to_balance_a_pole(example):
    policy, history = example.learn(example.balance, 12, quiet)
    assert history[0]["episode"] < 25  # of 200 steps
    assert history[-1]["episode"] > 90
    env = example.balance(32)
    env.reset(seed=5)
    seen, ends = env.reset(), 0
    with torch.no_grad():
        for _ in range(100):
            seen, _, ended, *_ = env.step(policy(seen))
            ends += int(ended.sum())
    assert ends <= 8  # at first all of them would have fallen, several times each


def test_an_arm_learns_to_reach(example):
    def distance(policy):
        env = example.reach(64)
        seen = env.reset(seed=9)
        with torch.no_grad():
            for _ in range(60):
                seen, *_ = env.step(policy(seen))
        tips = np.array([example.tip(env.model, q) for q in env.state["q"].numpy()])
        return np.linalg.norm(tips - env.state["goal"].numpy(), axis=1)

    policy, history = example.learn(example.reach, 16, quiet)
    untrained = np.median(distance(example.ppo.Policy(policy.mean.numel(), 2)))
    assert np.median(distance(policy)) < 0.4 * untrained  # a tenth after 32 iterations
    assert history[-1]["simulation"] < history[-1]["seconds"]


def test_the_same_seed_learns_the_same_policy(example):
    first, again = (example.learn(example.balance, 2, quiet)[0] for _ in range(2))
    for a, b in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)


def test_advantages_are_discounted_sums_of_errors(example):
    """Against the definition, sum over k of (gamma lambda)^k times the error, up to an end."""
    rng = np.random.default_rng(0)
    reward, value, last = rng.normal(size=(5, 1)), rng.normal(size=(5, 1)), rng.normal(size=1)
    over = np.array([[0.0], [0], [1], [0], [0]])
    found = example.ppo._advantages(*map(torch.tensor, (reward, value, over, last)), 0.9, 0.8)
    ahead = np.append(value[1:], [last], axis=0)
    error = reward + 0.9 * (1 - over) * ahead - value
    for k in range(5):
        total, weight = 0.0, 1.0
        for j in range(k, 5):
            total += weight * error[j, 0]
            weight *= 0.72 * (1 - over[j, 0])
        assert found[k, 0] == pytest.approx(total, rel=1e-12)


def test_training_ends_when_the_report_demands_it(example):
    _, history = example.learn(example.balance, 50, lambda record: record["seconds"] > 0)
    assert len(history) == 1


def test_the_quadruped_stands_and_learns_a_little(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    monkeypatch.chdir(tmp_path)
    import learn_to_walk

    env = learn_to_walk.environment(8)
    for _ in range(50):
        seen, reward, ended, _, info = env.step(torch.zeros(8, 12))
        assert info["error"].max() < 1e-6
    assert seen.shape == (8, 48)
    assert not ended.any()
    assert 0.005 < reward.mean() < 0.03  # stands still, follows no command
    feet = env.state["force"].numpy()[:, :12].reshape(8, 4, 3)  # then bounds of the drives
    weight = feet[:, :, 0].sum(axis=1)
    expected = 9.81 * (sum(I.mass for I in env.model.inertia[1:]) - 6 + env.state["load"].numpy())
    assert np.abs(weight / expected - 1).max() < 0.06  # it still sways a little
    learn_to_walk.main(["--worlds", "8", "--iterations", "1"])
    assert {p.name for p in tmp_path.iterdir()} == {"walk.csv", "walk.npz", "walk.pt"}


def test_kinds_of_objects_are_one_environment(example, tmp_path):
    """Of the example that learns to grasp; and its policy in a file is the one of torch."""
    import learn_to_grasp as grasp
    import ppo

    makers = [partial(grasp.environment, shape, 3, seed=2) for shape in grasp.TRAINED[:2]]
    both, alone = grasp.Several(makers), [make() for make in makers]
    seen = both.reset(5)
    assert torch.equal(seen, torch.cat([alone[0].reset(5), alone[1].reset(6)]))
    times = torch.cat([env.state["steps"] for env in both.each])
    assert len(set(times.tolist())) > 3  # episodes end at different times
    for one, env in zip(alone, both.each, strict=True):
        one.state["steps"][...] = env.state["steps"]
    action = torch.rand(6, 5)
    after, reward, *_ = both.step(action)
    expected = [env.step(part) for env, part in zip(alone, action.split(3), strict=True)]
    assert torch.allclose(after, torch.cat([found[0] for found in expected]), atol=1e-6)
    assert torch.allclose(reward, torch.cat([found[1] for found in expected]), atol=1e-6)
    policy = ppo.Policy(44, 5, (8, 8))
    policy.look(seen)
    grasp.save(policy, tmp_path / "policy.npz")
    actions = grasp.policy_of(tmp_path / "policy.npz")(seen.numpy())
    np.testing.assert_allclose(actions, policy(seen).detach().numpy(), atol=1e-5)
