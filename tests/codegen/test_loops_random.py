"""Random texts: loops as they are recorded, fused, freed of what nobody reads, and differentiated.

A text walks over a robot several times and mixes numbers of bodies, their parents and all bodies
above; on one robot it is plain Python, and so the reference.
"""

import numpy as np
import pytest
from support.general_texts import AXES

import kinetree as kt
from kinetree.codegen.loops.derivatives import gradients, rates
from kinetree.codegen.loops.meaning import interpret
from kinetree.codegen.program import Argument
from kinetree.codegen.runtime.loops import LoopKernel
from kinetree.model.general.model import Source
from kinetree.model.general.tables import BODIES, data_of
from kinetree.samples.random_mechanisms import random_tree

JOINTS = [kt.Revolute("x"), kt.Revolute("z"), kt.Prismatic("y"), kt.Revolute((1.0, 2.0, 2.0))]
TABLES = 4


def random_text(seed):
    """A function of a model and ``q``: what it does is a list of walks and statements."""
    rng = np.random.default_rng(seed)

    def statement():
        return rng.integers(8), rng.integers(TABLES, size=3), rng.uniform(-0.5, 0.5, 3).round(3)

    walks = [(rng.random() < 0.5, [statement() for _ in range(rng.integers(1, 4))])
             for _ in range(rng.integers(3, 8))]  # fmt: skip

    def text(model, q):
        lam, out = model.parent, model.table(model.zero_velocity[:0])
        t = [model.table(np.array([0.1 * (k + 1)])) for k in range(TABLES)]
        total = model.total(0)
        for i in model.outward():
            for k in range(TABLES):
                t[k][i] = q[model.q_slice[i]][:1] * (k + 1) + 0.5 * t[k][lam[i]]
        t[0] = model.copy_table(t[1])
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
                    elif what == 5:
                        t[a][i] = t[a][i] * y + x * total.value
            what, (a, b, c), (x, y, z) = statements[0]
            if what == 6:
                sums = model.copy_table(t[b])
                for i in model.outward() if inward else model.inward():
                    for j in model.above(i):
                        sums[j] = sums[j] + x * t[c][i]
                    sums[i] = sums[i] + y
                t[a] = sums
            if what == 7 and a != b:
                for i in model.inward() if inward else model.outward():
                    for j in model.above(i):
                        t[a][i] = t[a][i] + x * t[b][j] if c % 2 else t[a][i] * y + z
                    t[b][i] = t[a][i] + x
        for i in model.outward():
            out[i] = t[TABLES - 1][i] * np.ones(model.joint[i].nv, dtype=int)
        return model.join_rows(out), total.value

    return text


def random_smooth_text(seed):
    """The same of tables that are filled once, so that it has gradients."""
    rng = np.random.default_rng(seed)
    passes = [(rng.integers(5), rng.random(3), rng.uniform(-0.8, 0.8, 3).round(3))
              for _ in range(rng.integers(2, 7))]  # fmt: skip

    def text(model, q):
        lam, known, E = model.parent, [model.table(np.array([0.3]))], model.total(0)
        for i in model.outward():
            known[0][i] = q[model.q_slice[i]][:1] * model.inertia[i].mass + 0.5
        for what, chosen, (x, y, z) in passes:
            a, b, c = (known[int(k * len(known))] for k in chosen)
            new = model.copy_table(a) if what == 1 else model.table(np.array([z]))
            if what == 1:
                for i in model.inward():
                    if lam[i] != 0:
                        new[lam[i]] = new[lam[i]] + x * new[i] * b[i]
            elif what == 2:
                for i in model.inward():
                    new[i] = y * b[i]
                    for j in model.above(i):
                        new[i] = new[i] + x * c[j] * a[i]
            elif what == 3:
                total = model.total(0)
                for i in model.outward():
                    total.add(x * a[i][0] * b[i][0])
                for i in model.outward():
                    new[i] = a[i] + y * c[i] * total.value
            else:
                for i in model.outward():
                    new[i] = x * a[i] * b[lam[i]] + y * new[lam[i]] + z
            known.append(new)
        for i in model.outward():
            E.add(known[-1][i][0] * known[-1][i][0])
        return model.stack_rows(known[-1], 1), E.value

    return text


def recorded(seed, make=random_text):
    """Text, robot, data, source and program."""
    text, model = make(seed), random_tree(6, seed, joints=JOINTS)
    source, data = Source(text, {"q": AXES["q"]}, f"random text {seed}"), data_of(model)
    return text, model, data, source, source.program({BODIES: data.domains[BODIES].kinds})


def close(found, expected):
    scale = max(1.0, np.max(np.abs(expected)))
    return np.max(np.abs(np.asarray(found) - expected)) <= 1e-13 * scale


def along(text, model, q, dq):
    """Rates of the results of a text, by the complex step."""
    return [np.imag(x) / 1e-30 for x in text(model, q + 1e-30j * dq)]


@pytest.mark.parametrize("first", range(0, 30, 10))
def test_random_programs_compute_what_they_define(first):
    for seed in range(first, first + 10):
        text, model, data, _, program = recorded(seed)
        q, dq = np.random.default_rng(seed).standard_normal((2, model.nq))
        for found, expected in zip(interpret(program, data, q), text(model, q), strict=True):
            assert close(found, expected), seed
        derived = interpret(rates(program, (0,)), data, q, dq)
        for found, expected in zip(derived, along(text, model, q, dq), strict=True):
            assert close(found, expected), seed


def test_random_texts_have_gradients():
    for seed in range(20):
        text, model, data, _, program = recorded(seed, random_smooth_text)
        rng = np.random.default_rng(seed)
        q, dq = rng.standard_normal((2, model.nq))
        ahead = along(text, model, q, dq)
        weights = [rng.standard_normal(np.shape(x)) for x in ahead]
        (gradient,) = interpret(gradients(program, (0,)), data, q, *weights)
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
