"""User-defined constraints as parts of a model."""

import pickle

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.errors import ModelError, TraceError


def level(q):
    return q[0] + 2 * q[1]


def arm(**parts):
    model = kt.samples.double_pendulum()
    return model.with_constraint("level", position=level, unit="rad").replace(**parts)


def test_a_model_says_what_it_has():
    model = arm()
    assert model.is_constrained
    assert not model.is_rheonomic
    assert not kt.samples.double_pendulum().is_constrained
    assert kt.samples.four_bar().is_constrained
    assert "1 constraint)" in repr(model)
    assert "constraint level: holonomic, scleronomic, 1 row" in model.summary()
    assert model.spanning_tree == kt.samples.double_pendulum()
    assert model.spanning_tree.spanning_tree is model.spanning_tree
    assert model.replace(constraints=()) == model.spanning_tree
    with pytest.raises(ModelError, match="constraint name 'level' is used 2 times"):
        model.with_constraint("level", position=level)
    with pytest.raises(ModelError, match="a model needs ConstraintFunction objects here"):
        model.replace(constraints=[level])


def test_a_builder_takes_them():
    built = (
        kt.ModelBuilder("cart")
        .body("cart", joint=kt.Prismatic("x"), inertia=kt.shapes.sphere(0.1, mass=1.0))
        .constraint("brake", rate=lambda qd, t: qd[0] - np.cos(t))
        .build()
    )
    (brake,) = built.constraints
    assert brake.kind == "equality, nonholonomic, rheonomic"
    assert built.is_rheonomic
    assert (built.instant, built.at(2.0).instant) == (0.0, 2.0)
    assert built.at(2.0).timeless is built
    assert_close(kt.forward_dynamics(built.at(0.5), [0.0], [np.cos(0.5)], [0.0]), [-np.sin(0.5)])


def test_fingerprints_tell_functions_apart():
    def along(k):
        return arm().with_constraint("other", position=lambda q: q[0] - k)

    def by_default(k):
        return arm().with_constraint("other", position=lambda q, k=k: q[0] - k)

    def inside(k):
        return arm().with_constraint("other", position=lambda q: (lambda x: x - k)(q[0]))

    assert arm() == arm()
    assert arm() != arm().spanning_tree
    for make in (along, by_default, inside):
        assert make(1.0) == make(1.0)
        assert make(1.0) != make(2.0)
    assert arm().with_constraint("t", position=lambda q, t: q[0] - t).at(1.0) != arm()


def test_models_travel_with_functions_that_have_a_name():
    model = pickle.loads(pickle.dumps(arm()))
    assert model == arm()
    q = np.array([0.4, -0.2])
    assert_close(kt.loops.constraint(model, q, 0 * q).error, [0.0], scale=1)


def test_no_file_holds_them(tmp_path):
    model = arm()
    for name in ("arm.toml", "arm.urdf", "arm.xml"):
        with pytest.raises(ModelError, match=r"constraint 'level' .* cannot hold: write model.rep"):
            kt.save(model, tmp_path / name)
    with pytest.raises(ModelError, match="functions, which a dictionary cannot hold"):
        model.to_dict()


def test_edits_that_change_variables_reject_them():
    model, q = arm(), {"elbow": 0.1}
    joint = model.joint_names[1]
    for edit in (
        lambda: kt.edit.lock(model, {joint: q["elbow"]}),
        lambda: kt.edit.attach(kt.samples.pendulum(), model, prefix="other "),
        lambda: kt.edit.extract(model, model.body_names[2]),
        lambda: kt.edit.floating(model),
        lambda: kt.model.MechanismGraph("graph").add_model(model),
    ):
        with pytest.raises(ModelError, match=r"constraint 'level' of model .* is written"):
            edit()
    assert kt.edit.lump_fixed(model).constraints == model.constraints  # variables stay


def test_functions_for_plain_numbers_alone_are_named():
    import math

    model = kt.samples.pendulum().with_constraint("curve", position=lambda q: math.sin(q[0]))
    with pytest.raises(TraceError, match="position of constraint 'curve' takes plain numbers"):
        kt.loops.constraint(model, [0.1], [0.0])


def test_functions_may_be_kernels_and_choose():
    @kt.kernel
    def bent(q):
        return kt.select(q[0] < 0.2, q[0] - 0.1, 3 * abs(q[0]) - 0.5) + np.arctan2(q[1], 1.0)

    model = kt.samples.double_pendulum().with_constraint("bent", position=bent)
    for q in (np.array([0.1, 0.3]), np.array([0.5, -0.3])):
        c = kt.loops.constraint(model, q, np.array([1.0, 2.0]))
        slope = 1.0 if q[0] < 0.2 else 3.0
        assert_close(c.K, [[slope, 1 / (1 + q[1] ** 2)]], ulps=10)
        assert_close(c.k, [4 * 2 * q[1] / (1 + q[1] ** 2) ** 2], ulps=100)


# --- beside couplings and loops ------------------------------------------------------------------


def geared():
    """Three hinges, the third of which follows the first; the second must follow, too."""
    rng = np.random.default_rng(3)
    b = kt.ModelBuilder("geared")
    for k, axis in enumerate("xyz"):
        on = f"b{k - 1}" if k else None
        inertia = kt.samples.random_inertia(rng)
        b.body(f"b{k}", on=on, joint=kt.Revolute(axis), at=(0.1, 0.2, 0.3), inertia=inertia)
    b.coupling("gear", joint="b2_joint", source="b0_joint", coefficients=(0.1, -2.0, 0.5))
    return b.constraint("own", position=lambda q: np.sin(q[0]) - q[1] ** 2, unit="rad").build()


def test_variables_are_those_that_follow_nothing(rng):
    model = geared()
    q = kt.loops.assemble(model, [0.5, 0.7])
    qd = kt.loops.project_velocity(model, q, [1.0, 2.0])
    tau = rng.standard_normal(2)
    c = kt.loops.constraint(model, q, qd)
    assert_close(c.K, [[np.cos(q[0]), -2 * q[1]]])
    found = kt.forward_dynamics(model, q, qd, tau)
    assert_close(c.K @ found, c.k, ulps=1e3)
    for method in ("implicit", "maximal"):
        assert_close(kt.forward_dynamics(model, q, qd, tau, method=method), found, ulps=1e5)
    for method in ("null_space", "kkt", "range_space", "sparse"):
        assert_close(kt.loops.solve(model, q, qd, tau, method=method).qdd, found, ulps=1e5)


def test_a_constraint_may_do_what_a_coupling_does(rng):
    """A mimic joint as a coupling, and as a constraint of all joints."""
    tree = geared().uncoupled
    law = (0.1, -2.0, 0.5)

    def gear(q):
        return q[2] - law[0] - law[1] * q[0] - law[2] * q[0] ** 2

    model, coupled = tree.with_constraint("gear", position=gear), geared().replace(constraints=())
    y, yd, tau = rng.standard_normal((3, 2))
    q, qd = coupled.expand(y), coupled.expand_velocity(y, yd)
    forces = np.array([tau[0], tau[1], 0.0])
    found = kt.forward_dynamics(model, q, qd, forces)
    expected = coupled.expand_acceleration(y, yd, kt.forward_dynamics(coupled, y, yd, tau))
    assert_close(found, expected, ulps=1e5)


def test_loops_and_constraints_together(rng):
    """A five-bar whose crank is held by a constraint moves as one whose crank is held."""
    model = kt.samples.five_bar()
    q = kt.loops.assemble(model)
    first = model.with_constraint("hold", position=lambda q, a=float(q[0]): q[0] - a, unit="rad")
    qd = kt.loops.project_velocity(first, q, rng.standard_normal(model.nv))
    tau = rng.standard_normal(model.nv)
    found = kt.forward_dynamics(first, q, qd, tau)
    for method in ("null_space", "kkt", "range_space", "sparse"):
        moved = kt.loops.solve(first, q, qd, tau, method=method)
        assert_close(moved.qdd, found, ulps=1e6, scale=1 + np.abs(found).max())
    held = kt.hybrid_dynamics(model, q, qd, tau, 0 * tau, given=model.joint_names[0])
    assert_close(held.qdd, found, ulps=1e6, scale=1 + np.abs(found).max())
    motion = kt.simulate(first, q, qd, duration=0.2, dt=0.01)
    assert np.max(np.abs(motion.q[:, 0] - q[0])) < 1e-13
    assert motion.loop_error.max() < 1e-12
