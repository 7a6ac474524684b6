"""Couplings, geometry, actuators and postures by name, in builders and graphs."""

import re

import numpy as np
import pytest
from support.mechanisms import assert_same_parts, gripper

from kinetree.errors import ModelError, UnknownNameError
from kinetree.joints import Free, Prismatic, Revolute
from kinetree.model import JointDynamics, MechanismGraph, ModelBuilder, Posture, geometry
from kinetree.samples import random_inertia
from kinetree.spatial import roty, xlt


def test_builder_puts_numbers_to_names_in_any_order(rng):
    b = ModelBuilder().coupling("c", joint="B", source="A", coefficients=(0, 2))
    b.actuator("m", joint="A", gear=3).geometry(geometry.Sphere(0.1), on="b", at=(1, 2, 3))
    b.posture("up", q={"A": 0.3}).body("b", on="a", joint=Revolute("x"), joint_name="B")
    model = b.body("a", joint=Prismatic("y"), joint_name="A").build()
    (c,), (a,), (g,), (p,) = model.couplings, model.actuators, model.geometry, model.postures
    assert (c.joint, c.source, c.coefficients) == (2, 1, (0.0, 2.0))
    assert (a.joint, a.gear) == (1, (3.0,))
    assert g.body == 2
    assert g.placement.r.tolist() == [1, 2, 3]
    assert (p.q.tolist(), p.qd.tolist()) == ([0.3], [])  # the other joint follows
    assert model.posture("up") is p
    assert model.actuation.tolist() == [[3.0]]
    assert model.uncoupled.actuation.tolist() == [[3.0], [0.0]]
    assert model.uncoupled.posture("up").q.tolist() == [0.3, 0.6]


def test_a_posture_is_arrays_that_stay_and_compares_by_content():
    up, same, thrown = (
        Posture("up", [1, 2]),
        Posture("up", (1.0, 2.0)),
        Posture("up", (1, 2), (3, 4)),
    )
    assert (up.q + 0.5).tolist() == [1.5, 2.5]
    assert (up.moves, thrown.moves) == (False, True)
    assert up == same
    assert len({up, same, thrown}) == 2
    assert up != "up"
    with pytest.raises(ValueError, match="read-only"):
        up.q[0] = 0.0
    given = np.array([1.0, 2.0])
    kept = Posture("up", given)
    given[0] = 5.0
    assert kept == up


def test_postures_that_couplings_deny_are_rejected():
    b = ModelBuilder().body("a", joint=Prismatic("y"), joint_name="A")
    b.body("b", on="a", joint=Revolute("x"), joint_name="B")
    b.coupling("c", joint="B", source="A", coefficients=(0, 2)).posture("up", q={"B": 0.3})
    message = "posture 'up' puts joint 'B' at 0.3, where coupling 'c' does not .* belongs at 0;"
    with pytest.raises(ModelError, match=message):
        b.build()


def test_graph_moves_geometry_with_the_body_frame(rng):
    """A joint that sits on the far body turns round; its dynamics and the shapes stay put."""
    graph = MechanismGraph().body("bar", inertia=random_inertia(rng))
    X = roty(0.4) @ xlt(1, 2, 3)
    ends, sticky = {"predecessor": "bar", "successor": "base"}, JointDynamics(damping=2.0)
    graph.joint("pin", Revolute("z"), **ends, at=X, dynamics=sticky)
    graph.geometry(geometry.Box((1, 1, 1)), on="bar", at=(1, 2, 3))
    graph.frame("here", on="bar", at=(1, 2, 3))
    model = graph.to_model()
    assert model.bodies[0].dynamics.damping == (2.0,)
    frame = model.frame("here")
    assert np.array_equal(model.geometry[0].placement.E, frame.placement.E)
    assert np.array_equal(model.geometry[0].placement.r, frame.placement.r)


def test_a_model_goes_through_a_graph_with_all_it_has(rng):
    model = gripper(rng)
    assert_same_parts(MechanismGraph.from_model(model).to_model(model.joint_names), model)


def test_joints_left_out_take_what_they_have_along(rng):
    model = gripper(rng)
    graph = MechanismGraph().add_model(model, without=("lead", "string"))
    rest = graph.joint("weld", Free(), predecessor="base", successor="left").to_model()
    assert not rest.couplings
    assert [a.name for a in rest.actuators] == ["muscle"]
    assert rest.posture("home").q[rest.q_slice[rest.joint_index("follow")]] == pytest.approx(
        (-0.825,)
    )


def _triangle():
    graph = MechanismGraph()
    for name in "ab":
        graph.body(name).joint(name.upper(), Revolute("x"), predecessor="base", successor=name)
    return graph.joint("C", Revolute("x"), predecessor="a", successor="b")


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda g: g.coupling("c", joint="C", source="A"), ModelError,
         "joint of coupling 'c' is 'C', which closes a loop and has no variables"),
        (lambda g: g.coupling("c", joint="A", source="D"), UnknownNameError,
         "source of coupling 'c' is 'D', which the mechanism does not have"),
        (lambda g: g.posture("p", q={"C": 1}), ModelError, "joint of posture 'p' is 'C', which cl"),
        (lambda g: g.actuator("m", joint="a"), UnknownNameError, "joint of actuator 'm' is 'a'"),
        (lambda g: g.geometry(geometry.Plane(), on="c"), UnknownNameError, "body of geometry ''"),
        (lambda g: g.posture("p", q={"A": (1, 2)}), ModelError,
         "position of joint 'A' in posture 'p' needs 1 entries, got 2"),
        (lambda g: g.posture("p", q=[1, 2]), ModelError, "must be given by joint name"),
        (lambda g: g.posture("p", q={"A": "up"}), ModelError, "must hold numbers, got 'up'"),
        (lambda g: g.joint("D", Revolute("x"), predecessor="a", successor="b",
                           at=(0, 0, 1), dynamics=JointDynamics(armature=1)), ModelError,
         "loop joint 'D' has armature, which would be inertia outside the inertia matrix"),
    ],
)  # fmt: skip
def test_messages(build, error, message):
    with pytest.raises(error, match=re.escape(message)):
        build(_triangle()).to_model(["A", "B"])


def test_loops_of_a_builder_have_no_variables_either():
    b = ModelBuilder().body("a", joint=Revolute("x")).loop("L", predecessor="a", successor="base")
    with pytest.raises(ModelError, match="is 'L', which closes a loop"):
        b.posture("p", q={"L": 0}).build()


def test_joints_that_need_variables_get_them_where_the_tree_is_free():
    assert _triangle().to_model().loop_names == ("C",)
    for attach in (
        lambda g: g.coupling("c", joint="C", source="A"),
        lambda g: g.posture("p", q={"C": 1}),
        lambda g: g.actuator("m", joint="C"),
    ):
        model = attach(_triangle()).to_model()
        assert "C" in model.joint_names
        assert model.loops
