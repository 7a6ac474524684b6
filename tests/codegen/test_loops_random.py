"""Random texts: loops as they are recorded, fused, freed of what nobody reads, and differentiated.

A text walks over a robot several times and mixes numbers of bodies, their parents and all bodies
above; on one robot it is plain Python, and so the reference.
"""

import numpy as np
import pytest
from support.backends import all_loops_in_c, loops_in_cuda
from support.general_texts import AXES

import kinetree as kt
from kinetree.codegen.loops.derivatives import gradients, rates
from kinetree.codegen.loops.meaning import interpret
from kinetree.codegen.loops.recomputed import recompute
from kinetree.codegen.program import Argument
from kinetree.codegen.runtime.loops import LoopKernel
from kinetree.model.general.model import Source
from kinetree.model.general.tables import BODIES, data_of
from kinetree.samples.random_mechanisms import random_tree
from kinetree.spatial import ops

JOINTS = [kt.Revolute("x"), kt.Revolute("z"), kt.Prismatic("y"), kt.Revolute((1.0, 2.0, 2.0))]
TABLES = 4


def bounded(x):
    """An array of integers, with 1 for large ones: products of few of them are exact."""
    return np.array([ops.select(a * a < 4096, a, 1) for a in x])


def random_text(seed, exact=False):
    """A function of a model and ``q``: what it does is a list of walks and statements.

    ``exact``: of integers it computes integers without rounding.
    """
    rng = np.random.default_rng(seed)
    kinds, first, half, read = (9, 1.0, 1.0, bounded) if exact else (8, 0.1, 0.5, lambda x: x)

    def numbers():
        return rng.integers(-2, 3, 3).astype(float) if exact else rng.uniform(-0.5, 0.5, 3).round(3)

    def statement():
        return rng.integers(kinds), rng.integers(TABLES, size=3), numbers()

    walks = [(rng.random() < 0.5, [statement() for _ in range(rng.integers(1, 4))])
             for _ in range(rng.integers(3, 8))]  # fmt: skip

    def text(model, q):
        lam, out = model.parent, model.table(model.zero_velocity[:0])
        t = [model.table(np.array([first * (k + 1)])) for k in range(TABLES)]
        total = model.total(0)
        for i in model.outward():
            for k in range(TABLES):
                t[k][i] = q[model.q_slice[i]][:1] * (k + 1) + half * t[k][lam[i]]
        t[0] = model.copy_table(t[1])
        for inward, statements in walks:
            for i in model.inward() if inward else model.outward():
                for what, (a, b, c), (x, y, z) in statements:
                    if what == 0:
                        mass = model.inertia[i].mass
                        t[a][i] = x * read(t[b][i]) + y * read(t[c][i]) * mass + z
                    elif what == 1:
                        t[a][i] = t[a][i] + x * read(t[b][lam[i]])
                    elif what == 2 and lam[i] != 0:
                        t[a][lam[i]] = t[a][lam[i]] + x * read(t[b][i]) * read(t[c][i])
                    elif what == 3:
                        total.add(x * read(t[a][i])[0] * read(t[b][i])[0])
                    elif what == 4:
                        t[a][i] = np.array([x])
                    elif what == 5:
                        t[a][i] = read(t[a][i]) * y + x * read([total.value])[0]
                    elif what == 8:
                        t[a][i], t[b][i] = t[b][i], t[a][i]
            what, (a, b, c), (x, y, z) = statements[0]
            if what == 6:
                sums = model.copy_table(t[b])
                for i in model.outward() if inward else model.inward():
                    for j in model.above(i):
                        sums[j] = sums[j] + x * read(t[c][i])
                    sums[i] = sums[i] + y
                t[a] = sums
            if what == 7 and a != b:
                for i in model.inward() if inward else model.outward():
                    for j in model.above(i):
                        if c % 2:
                            t[a][i] = t[a][i] + x * read(t[b][j])
                        else:
                            t[a][i] = read(t[a][i]) * y + z
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


def recorded(seed, make=random_text, **options):
    """Text, robot, data, source and program."""
    text, model = make(seed, **options), random_tree(6, seed, joints=JOINTS)
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


def machine_code(text, model, data, source):
    """The kernel of a text for a robot."""
    outputs = [Argument("out0", (model.nv,)), Argument("out1", ())]
    return LoopKernel(
        source.name, [Argument("q", (model.nq,))], outputs, source, data,
        reference=lambda arrays: text(model, *arrays), validate=lambda arrays: None,
    )  # fmt: skip


@pytest.mark.parametrize("seed", [3, 8])
def test_random_texts_as_machine_code(seed):
    text, model, data, source, _ = recorded(seed)
    q = np.random.default_rng(seed).standard_normal((5, model.nq))
    found = machine_code(text, model, data, source).call(q)
    for k in range(5):
        for x, expected in zip(found, text(model, q[k]), strict=True):
            assert close(x[k], expected)


def test_all_writers_compute_the_same_bits_of_random_programs(tmp_path):
    """Of integers, which nothing rounds, so that any difference is a wrong place or order."""
    cases = {f"run{seed}": recorded(seed, exact=True) for seed in range(30)}
    for _, _, data, *_ in cases.values():
        for tables in data.numbers.values():
            tables.update({name: np.rint(2 * np.asarray(x)) for name, x in tables.items()})
    in_c = all_loops_in_c(tmp_path, {n: (p, data) for n, (_, _, data, _, p) in cases.items()})
    different = set()
    for n, (name, (text, model, data, source, program)) in enumerate(cases.items()):
        q = np.random.default_rng(n).integers(-3, 4, (5, model.nq)).astype(float)
        runs = [in_c[name]]
        if n % 5 == 0:  # each of them takes a second to compile
            runs += [machine_code(text, model, data, source).call]
            runs += [loops_in_cuda(tmp_path, recompute(program), data)]
        expected = interpret(program, data, q)
        assert max(np.abs(x).max() for x in expected) < 2**40
        different.update(np.abs(expected[0]).ravel())
        for run in runs:
            for found, x in zip(run(q), expected, strict=True):
                np.testing.assert_array_equal(found, x, err_msg=name)
    assert len(different) > 100
