"""Random texts: loops as they are recorded, fused, freed of what nobody reads, and differentiated.

A text walks over a robot several times and mixes numbers of bodies, their parents and all bodies
above; on one robot it is plain Python, and so the reference.
"""

import numpy as np
import pytest

import kinetree as kt
from kinetree.codegen.loops.derivatives import gradients, rates
from kinetree.codegen.loops.meaning import interpret
from kinetree.codegen.program import Argument
from kinetree.codegen.runtime.loops import LoopKernel
from kinetree.errors import TraceError
from kinetree.model.general.model import AXES, Source
from kinetree.model.general.tables import BODIES, data_of
from kinetree.samples.trees import random_tree

JOINTS = [kt.Revolute("x"), kt.Revolute("z"), kt.Prismatic("y"), kt.Revolute((1.0, 2.0, 2.0))]
TABLES = 4


def random_text(seed):
    """A function of a model and ``q``: what it does is a list of walks and statements."""
    rng = np.random.default_rng(seed)

    def statement():
        return rng.integers(6), rng.integers(TABLES, size=3), rng.uniform(-0.5, 0.5, 3).round(3)

    walks = [(rng.random() < 0.5, [statement() for _ in range(rng.integers(1, 4))])
             for _ in range(rng.integers(3, 8))]  # fmt: skip

    def text(model, q):
        lam, out = model.parent, model.table(model.zero_velocity[:0])
        t = [model.table(np.array([0.1 * (k + 1)])) for k in range(TABLES)]
        total = model.total(0)
        for i in model.outward():
            for k in range(TABLES):
                t[k][i] = q[model.q_slice[i]][:1] * (k + 1) + 0.5 * t[k][lam[i]]
        t[0] = model.copied(t[1])
        for inward, statements in walks:
            for i in model.inward() if inward else model.outward():
                for what, (a, b, c), (x, y, z) in statements:
                    if what == 0:
                        t[a][i] = x * t[b][i] + y * t[c][i] * model.inertia[i].mass + z
                    elif what == 1:
                        t[a][i] = t[a][i] + x * t[b][lam[i]]
                    elif what == 2 and lam[i] != 0:
                        t[a][lam[i]] = t[a][lam[i]] + x * t[b][i] * t[c][i]
                    elif what == 3:
                        total.add(x * t[a][i][0] * t[b][i][0])
                    elif what == 4:
                        t[a][i] = np.array([x])
            what, (a, b, c), (x, y, z) = statements[0]
            if what == 5 and a != b:
                for i in model.inward() if inward else model.outward():
                    for j in model.above(i):
                        t[a][i] = t[a][i] + x * t[b][j] if c % 2 else t[a][i] * y + z
                    t[b][i] = t[a][i] + x
        for i in model.outward():
            out[i] = t[TABLES - 1][i] * np.ones(model.joint[i].nv, dtype=int)
        return model.joined(out), total.value

    return text


def recorded(seed):
    """Text, robot, data, source and program."""
    text, model = random_text(seed), random_tree(6, seed, joints=JOINTS)
    source, data = Source(text, {"q": AXES["q"]}, f"random text {seed}"), data_of(model)
    return text, model, data, source, source.program({BODIES: data.domains[BODIES].kinds})


def close(found, expected):
    scale = max(1.0, np.max(np.abs(expected)))
    return np.max(np.abs(np.asarray(found) - expected)) <= 1e-13 * scale


@pytest.mark.parametrize("first", range(0, 30, 10))
def test_random_texts_mean_what_they_say(first):
    for seed in range(first, first + 10):
        text, model, data, _, program = recorded(seed)
        rng = np.random.default_rng(seed)
        q, dq = rng.standard_normal((2, model.nq))
        for found, expected in zip(interpret(program, data, q), text(model, q), strict=True):
            assert close(found, expected), seed
        ahead = [np.imag(x) / 1e-30 for x in text(model, q + 1e-30j * dq)]
        for found, expected in zip(
            interpret(rates(program, (0,)), data, q, dq), ahead, strict=True
        ):
            assert close(found, expected), seed
        try:
            derived = gradients(program, (0,))
        except TraceError:
            continue  # a row changes after it was read
        weights = [rng.standard_normal(np.shape(x)) for x in ahead]
        (gradient,) = interpret(derived, data, q, *weights)
        expected = sum(np.sum(w * x) for w, x in zip(weights, ahead, strict=True))
        assert close(gradient @ dq, expected), seed


@pytest.mark.parametrize("seed", [3, 8])
def test_random_texts_as_machine_code(seed):
    text, model, data, source, _ = recorded(seed)
    outputs = [Argument("out0", (model.nv,)), Argument("out1", ())]
    kernel = LoopKernel(
        source.name, [Argument("q", (model.nq,))], outputs, source, data,
        reference=lambda arrays: text(model, *arrays), validate=lambda arrays: None,
    )  # fmt: skip
    q = np.random.default_rng(seed).standard_normal((5, model.nq))
    found = kernel.call(q)
    for k in range(5):
        for x, expected in zip(found, text(model, q[k]), strict=True):
            assert close(x[k], expected)
