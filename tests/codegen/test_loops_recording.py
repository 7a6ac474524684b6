"""Texts recorded on a general model, run by the interpreter: the numbers of the plain text."""

from dataclasses import replace

import numpy as np
import pytest
from support.general_texts import AXES, outlined, record

import kinetree as kt
from kinetree.algorithms import aba, crba, rnea
from kinetree.codegen.loops.derivatives import rates
from kinetree.codegen.loops.language import Clear, Code, Walk
from kinetree.codegen.loops.meaning import interpret
from kinetree.errors import TraceError
from kinetree.model.general.kernels import _with_frames
from kinetree.model.general.model import Source
from kinetree.model.general.tables import BODIES, data_of
from kinetree.samples.random_mechanisms import random_tree

JOINTS = [
    kt.Revolute("x"), kt.Revolute("y"), kt.Revolute("z"), kt.Revolute("-y"),
    kt.Revolute((1.0, 2.0, -3.0)), kt.Prismatic("x"), kt.Prismatic("z"),
    kt.Prismatic((2.0, -1.0, 2.0)), kt.Fixed(), kt.Spherical(), kt.Helical(pitch=0.3),
    kt.Universal(),
]  # fmt: skip


def energy(model, q, qd):
    """Kinetic energy of the bodies, a sum over all of them."""
    lam, v, E = model.parent, model.table(model.zero_motion), model.total()
    for i in model.outward():
        X_J, _, v_J, _ = model.jcalc(i, q, qd)
        v[i] = X_J @ model.tree_transform[i] @ v[lam[i]] + v_J
    for i in model.outward():
        E.add((model.inertia[i] @ v[i]).dot(v[i]))
    return E.value / 2


def mean_height(model, q):
    """Two sums, the first of which is used when the second is known."""
    lam, X_0, mass = model.parent, model.table(model.identity_transform), model.total()
    for i in model.outward():
        mass.add(model.inertia[i].mass)
    share = 1 / mass.value
    height = model.total()
    for i in model.outward():
        X_J, *_ = model.jcalc(i, q, model.zero_velocity)
        X_0[i] = X_J @ model.tree_transform[i] @ X_0[lam[i]]
    for i in model.outward():
        height.add(model.inertia[i].mass * X_0[i].r[2])
    return share * height.value


TEXTS = {
    "inverse": (rnea.inverse_dynamics, ("q", "qd", "qdd")),
    "inverse with forces": (rnea.inverse_dynamics, ("q", "qd", "qdd", "f_ext")),
    "forward": (aba.forward_dynamics, ("q", "qd", "tau")),
    "forward with forces": (aba.forward_dynamics, ("q", "qd", "tau", "f_ext")),
    "gravity": (rnea.gravity_force, ("q",)),
    "mass matrix": (crba.joint_space_inertia, ("q",)),
    "energy": (energy, ("q", "qd")),
    "mean height": (mean_height, ("q",)),
}


def robot(seed, bodies=9):
    """A random tree, half of them with a floating base, some joints with armature."""
    model = random_tree(bodies, seed, joints=JOINTS, floating_base=seed % 2 == 0)
    rng = np.random.default_rng(seed)
    changed = [
        replace(b, dynamics=kt.JointDynamics(armature=float(rng.uniform(0.1, 1))))
        if b.joint.nv == 1 and rng.random() < 0.5 else b
        for b in model.bodies
    ]  # fmt: skip
    return model.replace(bodies=changed)


def arguments(model, names, seed=0, samples=2):
    rng = np.random.default_rng(seed)
    sizes = {"f_ext": (model.body_count, 6)}
    found = [rng.standard_normal((samples, *sizes.get(n, (model.nv,)))) for n in names]
    found[0] = np.array([model.random_configuration(rng) for _ in range(samples)])
    return found


def by_text(text, model, arrays):
    """The plain text, sample by sample."""

    def sample(x):
        return [None, *map(kt.Force.from_array, x)] if x.ndim == 2 else x

    return np.array([text(model, *map(sample, at)) for at in zip(*arrays, strict=True)], float)


def agrees(found, expected):
    scale = np.max(np.abs(expected))
    return np.max(np.abs(found - expected)) <= 2e-13 * scale


@pytest.mark.parametrize("name", TEXTS)
def test_the_loops_of_a_text_give_its_numbers(name):
    text, names = TEXTS[name]
    outline = outlined(text, names)
    for seed in range(3):
        model = robot(seed)
        data = data_of(model)
        program = record(text, names, data.domains[BODIES].kinds, name, outline)
        arrays = arguments(model, names, seed)
        (found,) = interpret(program, data, *arrays)
        assert agrees(found, by_text(text, model, arrays))


@pytest.mark.parametrize("joint", [kt.Revolute("z"), kt.Spherical(), kt.Prismatic((1.0, 2.0, 2.0))])
def test_robots_with_a_single_kind_of_joint(joint):
    """One body on the base: nothing shows that children would add to its inertia."""
    model = random_tree(1, 0, joints=[joint])
    data = data_of(model)
    for text, names in TEXTS.values():
        program = record(text, names, data.domains[BODIES].kinds)
        arrays = arguments(model, names)
        assert agrees(interpret(program, data, *arrays)[0], by_text(text, model, arrays))


@pytest.mark.parametrize("name", ["forward with forces", "mass matrix", "energy"])
def test_a_kind_is_recorded_the_same_alone_and_with_others(name):
    text, names = TEXTS[name]
    kinds = data_of(robot(2)).domains[BODIES].kinds
    outline = outlined(text, names)
    together = record(text, names, kinds, name, outline)
    for kind in kinds:
        alone = record(text, names, (kind,), name, outline)
        assert alone.shared == together.shared
        cleared = [[r for r in p.body if isinstance(r, Clear)] for p in (alone, together)]
        assert cleared[0] == cleared[1]
        assert alone.rows[BODIES, kind] == together.rows[BODIES, kind]
        for (one, _), (all_, _) in zip(alone.codes(), together.codes(), strict=True):
            for key, case in one.cases.items():
                other = all_.cases[key]
                assert (case.outputs, case.inputs) == (other.outputs, other.inputs)
                assert (case.graph.nodes, case.roots) == (other.graph.nodes, other.roots)


def test_walks_that_follow_each_other_become_one():
    """RNEA with external forces walks outward four times in the text, and once in the code."""
    text, names = TEXTS["inverse with forces"]
    program = record(text, names, data_of(robot(0)).domains[BODIES].kinds)
    walks = [region for region in program.body if isinstance(region, Walk)]
    assert [w.backwards for w in walks] == [False, True]
    assert all(isinstance(region, Code) for w in walks for region in w.body)


def test_sums_onto_the_parent_are_stores_that_add():
    text, names = TEXTS["inverse"]
    kinds = [k for k in data_of(robot(1)).domains[BODIES].kinds if not k.at_base]
    program = record(text, names, kinds)
    for case in program.body[1].body[0].cases.values():
        added = [o.name for o in case.outputs if o.name.startswith("+")]
        assert len(added) == 6
        assert all("@i.parent" in name for name in added)


# --- constants that are set again for some rows ---------------------------------------------------


@pytest.mark.parametrize("again", [lambda q: 2, lambda q: 2 + q], ids=["constant", "number"])
@pytest.mark.parametrize("nested", [True, False])
def test_constants_that_a_chain_sets_again_stay_where_it_does_not_pass(again, nested):
    def text(model, q):
        mark, found = model.table(np.array([0])), model.table(np.array([0]))
        for i in model.outward():
            mark[i] = np.array([1])
        for i in model.chain(model.frame("tip").body):
            mark[i] = again(q[model.q_slice[i]]) * np.array([1])
        for i in model.inward():
            found[i] = mark[i] + 0.5 * model.inertia[i].mass
            for j in model.above(i) if nested else ():
                found[i] = found[i] + mark[j]
        return model.stack_rows(found, 1)

    model = random_tree(7, 4, joints=JOINTS[:3])
    model = model.replace(frames=[kt.Frame("tip", 5, kt.xlt(0, 0, 0.1))])
    data = _with_frames(data_of(model), {"tip": model.frame("tip")})
    source = Source(text, {"q": AXES["q"]}, "marks", frames={"tip": False})
    q = model.random_configuration(np.random.default_rng(0))
    program, dq = source.program(data.domains[BODIES].kinds), np.cos(np.arange(model.nq))
    assert agrees(interpret(program, data, q)[0], np.array(text(model, q), float))
    ahead = np.imag(text(model, q + 1e-30j * dq)) / 1e-30
    assert agrees(interpret(rates(program, (0,)), data, q, dq)[0], ahead)


def test_a_kind_that_sets_again_what_others_take_for_a_constant_is_rejected():
    def text(model, q):
        mark, found = model.table(np.array([0])), model.table(np.array([0]))
        for i in model.outward():
            mark[i] = np.array([1])
        for i in model.outward():
            found[i] = np.array([0.5]) * model.inertia[i].mass
            for j in model.above(i):
                found[i] = found[i] + mark[j]
            if model.joint[i].nv == 3:
                mark[i] = np.array([5])
        return model.stack_rows(found, 1)

    kinds = (
        data_of(random_tree(6, 2, joints=[kt.Revolute("x"), kt.Spherical()])).domains[BODIES].kinds
    )
    source = Source(text, {"q": AXES["q"]}, "marks")
    assert {kind.joint.nv for kind in kinds} == {1, 3}
    with pytest.raises(TraceError, match=r"a kind of row sets table t0 again where no represent"):
        source.program(kinds)
