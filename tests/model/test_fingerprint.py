"""Equal content, equal fingerprint; other content, another."""

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
import sympy
from support.mechanisms import gripper

from kinetree import samples
from kinetree.expr.node import Graph
from kinetree.joints import CustomJoint, Fixed, Free, Helical, Prescribed, Reversed, Revolute
from kinetree.model import Frame, JointDynamics, Limits, Loop, ModelBuilder
from kinetree.model.fingerprint import is_plain
from kinetree.samples import humanoid, panda, random_tree
from kinetree.spatial import Inertia, xlt


def test_equal_content_is_equal_and_hashes_alike():
    one, other = panda(), panda()
    assert one is not other
    assert one == other
    assert hash(one) == hash(other)
    assert {one: "kernel"}[other] == "kernel"
    assert one != humanoid()
    assert one != "panda"


def test_another_process_finds_the_same_fingerprint():
    code = (
        "from kinetree.samples import panda, random_tree\n"
        "print(panda().fingerprint, random_tree(30, 5).fingerprint)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={"PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert found.stdout.split() == [panda().fingerprint, random_tree(30, 5).fingerprint]


def test_every_change_changes_it():
    m = panda().replace(geometry=(), actuators=(), postures=())
    changed = [
        m.replace(name="other"),
        m.replace(base_name="ground"),
        m.replace(gravity=(0, 0, 9.81)),
        m.replace(inertia={"link3": m.inertia[3] * 1.0000001}),
        m.replace(placement={"link3_joint": xlt(0, 0, 1e-9) @ m.tree_transform[3]}),
        m.replace(joint={"link3_joint": Revolute("-z")}),
        m.replace(joint={"link3_joint": Helical("z", pitch=0.0)}),
        m.replace(joint={"link3_joint": Helical("z", pitch=1e-9)}),
        m.replace(limits={"link3_joint": None}),
        m.replace(limits={"link3_joint": Limits(-1, 1)}),
        m.replace(frames=m.frames[:-1]),
        m.replace(frames=(*m.frames, Frame("eye", 3))),
        m.replace(loops=(Loop("tie", 1, 2),)),
        m.replace(loops=(Loop("tie", 1, 2, Revolute("x")),)),
        m.replace(bodies=[*m.bodies[:-1], replace(m.bodies[-1], name="claw")]),
        m.replace(bodies=m.bodies[:-1]),
    ]
    assert len({m.fingerprint, *(c.fingerprint for c in changed)}) == len(changed) + 1


def test_how_a_number_is_written_does_not_matter():
    def pendulum(mass, zero):
        inertia = Inertia(mass, np.array([zero, 0, 0]), np.eye(3))
        return ModelBuilder(gravity=(0, 0, zero)).body("a", joint=Fixed(), inertia=inertia).build()

    models = [
        pendulum(1, 0),
        pendulum(1.0, -0.0),
        pendulum(np.float64(1), 0.0),
        pendulum(np.int64(1), 0),
    ]
    assert len({m.fingerprint for m in models}) == 1


def test_functions_count_by_their_text():
    def model(motion):
        return ModelBuilder().body("a", joint=Prescribed(Revolute("z"), motion)).build()

    def driven(speed):
        return lambda t: ([speed * t], [speed], [0])

    assert model(driven(2)) == model(driven(2))
    assert model(driven(2)) != model(driven(3))
    assert model(lambda t: ([np.sin(t)], [1], [0])) != model(lambda t: ([np.cos(t)], [1], [0]))


def test_joints_that_are_no_dataclasses_count_by_their_attributes():
    class Plain(Fixed.__mro__[1]):
        nq = nv = 0

        def __init__(self, size):
            self.size = size

        jcalc, constraint_subspace, coordinates = (
            Fixed.jcalc, Fixed.constraint_subspace, Fixed.coordinates,
        )  # fmt: skip

    def model(size):
        return ModelBuilder().body("a", joint=Plain(size)).build()

    assert model(1) == model(1)
    assert model(1) != model(2)


def test_joint_kinds_with_the_same_numbers_differ():
    @dataclass(frozen=True)
    class Weld(Fixed):
        pass

    def model(joint):
        return ModelBuilder().body("a", joint=joint).build()

    assert model(Fixed()) != model(Weld())


@pytest.mark.parametrize("seed", range(3))
def test_random_trees_differ(seed):
    assert random_tree(5, seed) != random_tree(5, seed + 1)


class TestPlain:
    @pytest.mark.parametrize("name", samples.names())
    def test_our_joints_and_numbers_are(self, name):
        assert is_plain(getattr(samples, name)())

    def test_numbers_of_any_exact_kind_are(self):
        assert is_plain(
            ModelBuilder(gravity=(0, 0, Fraction(-981, 100))).body("a", joint=Fixed()).build()
        )

    @pytest.mark.parametrize(
        "joint",
        [
            Prescribed(Revolute("z"), lambda t: ([t], [1], [0])),
            Reversed(Prescribed(Revolute("z"), lambda t: ([t], [1], [0]))),
            CustomJoint(lambda q: xlt(0, 0, q[0]), 1),
            type("OfAUser", (Fixed,), {})(),
        ],
        ids=["prescribed", "nested", "custom", "class"],
    )
    def test_what_runs_a_users_code_is_not(self, joint):
        assert not is_plain(ModelBuilder().body("a", joint=joint).build())
        loop = Loop("tie", 0, 1, joint, xlt(1, 0, 0))
        assert not is_plain(ModelBuilder().body("a", joint=Fixed()).build().replace(loops=(loop,)))

    def test_symbols_are_not(self):
        symbolic = panda().map_numbers(lambda x: sympy.Symbol("x") * x)
        assert not is_plain(symbolic)
        traced = panda().map_numbers(lambda x: Graph().input("x", ()) * x)
        assert not is_plain(traced)


def test_a_model_that_has_nothing_new_keeps_the_fingerprint_it_always_had():
    """Compiled code in caches is found again."""
    I = Inertia.from_mass_center(2.0, (0.1, 0.0, 0.3), np.diag([0.02, 0.03, 0.04]))
    model = (
        ModelBuilder("golden")
        .body("a", joint=Free(), inertia=I)
        .body("b", on="a", joint=Revolute("y"), at=(0, 0, 0.5), inertia=I,
              limits=Limits(lower=-1, upper=1))
        .frame("tip", on="b", at=(0, 0, 1))
        .loop("L", predecessor="a", successor="b")
        .build()
    )  # fmt: skip
    assert model.fingerprint == "2ae4704d9c423c288fcec9bbfefbd18527a1bda0bbb29be411e99c2a6b4ff886"


@pytest.mark.parametrize("kind", ["couplings", "geometry", "actuators", "postures"])
def test_attachments_count(kind, rng):
    model = gripper(rng)
    other = model.replace(**{kind: getattr(model, kind)[1:]})
    assert other != model
    assert is_plain(model)
    assert is_plain(other)


@pytest.mark.parametrize("name", ["armature", "damping", "friction", "stiffness", "rest"])
def test_dynamics_counts(name, rng):
    model = gripper(rng)
    changed = replace(model.bodies[1].dynamics, **{name: 0.123})
    assert model.replace(dynamics={"lead": changed}) != model


def test_a_formula_in_the_dynamics_is_not_plain(rng):
    model = gripper(rng)
    symbol = JointDynamics(armature=[Graph().input("x", ())])
    assert not is_plain(model.replace(dynamics={"lead": symbol}))
