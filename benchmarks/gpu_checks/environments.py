"""Environments on a device against the definition of all operations, in double precision."""

import sys
from pathlib import Path

import numpy as np

import kinetree as kt
from kinetree.codegen.inline import evaluate
from kinetree.learning.environment import OUTPUTS

_EXAMPLES = str(Path(__file__).parents[2] / "examples")


@kt.kernel
def see(model, q, qd, load: (), uniform: (2,)):
    return np.concatenate([q, qd, np.array([load]), uniform])


@kt.kernel
def reward(model, q, action, normal: (1,)):
    return q[0] + action[0] + 0.1 * normal[0]


@kt.kernel
def far(model, q):
    return np.abs(q[0]) > 1.5


@kt.kernel
def anywhere(model, uniform: (3,)):
    return {"q": 3 * (uniform[:2] - 0.5), "load": 0.5 + uniform[2]}


@kt.kernel
def push(model, q, qd, action: (2,)):
    return action - 0.1 * qd


def pendulums(worlds, **options):
    """Double pendulums whose masses, starts and observations are random."""
    return kt.learning.Environment(
        kt.samples.double_pendulum(), worlds, observe=see, reward=reward, terminate=far,
        reset=anywhere, act=push, parameters={"mass:lower": "load"}, dt=0.01, decimation=3,
        episode=4, delay=(0, 4), **options,
    )  # fmt: skip


def checks(report, libraries, worlds=70, steps=6):
    """One line for each library and precision; JAX has no environments."""

    def same(kind, library, dtype, bound):
        _, back, _ = library
        env = pendulums(worlds, device="cuda", arrays=kind, dtype=dtype)
        rng, worst, ends = np.random.default_rng(0), 0.0, 0
        for _ in range(steps):
            action = rng.uniform(-1, 1, (worlds, 2)).astype(dtype)
            given = env._seed, env._world, *env.state.values(), *env.arguments.values()
            arrays = [np.asarray(back(a), float) for a in given]
            *_, info = env.step(action)
            program = env._kernels["step"].program
            right = evaluate(program, [*arrays, action.astype(float)])
            names = (*env.state, *OUTPUTS)
            expected = dict(zip(names, right, strict=True))
            over = expected["terminated"] + expected["truncated"] > 0
            ends += int(over.sum())
            for name, x in env.state.items():
                off = np.abs(back(x) - expected[name])
                worst = max(worst, off.max() / max(1, np.abs(expected[name]).max()))
            assert not back(info["failed"]).any(), "worlds failed"
        assert ends > worlds / 2, "too few episodes ended"
        assert worst < bound, f"states differ by {worst:.1e}"
        return f"states differ by {worst:.0e}, {ends} episodes ended"

    for kind, library in libraries.items():
        for dtype, bound in (("float64", 1e-12), ("float32", 1e-4)):
            if kind != "jax":
                report.run(f"{kind} environment, {dtype}", same, kind, library, dtype, bound)


def walking(worlds, device="cuda"):
    """The environment of ``examples/learn_to_walk.py``."""
    if _EXAMPLES not in sys.path:
        sys.path.insert(0, _EXAMPLES)
    import learn_to_walk

    return learn_to_walk.environment(worlds, device)
