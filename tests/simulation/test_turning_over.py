"""Variables that must be looked after in long motions: rotation vectors, quaternions."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.joints import Exponential
from kinetree.spatial.vector3 import unskew

INERTIA = kt.shapes.box(0.3, 0.2, 0.1, mass=2.0, at=(0.0, 0.1, 0.0))


def top(joint, **options):
    return kt.ModelBuilder("top").body("body", joint=joint, inertia=INERTIA, **options).build()


VECTOR, QUATERNION = top(kt.joints.Exponential()), top(kt.Spherical())
JOINT = VECTOR.joint[1]
SPIN = np.array([1.0, 9.0, 2.0])


def end_of(model, qd, **options):
    """Orientation and energy after a second, in which it turns more than once."""
    options = {"duration": 1.0, "rtol": 1e-10, "atol": 1e-10, **options}
    motion = kt.simulate(model, model.neutral(), qd, **options)
    return kt.pose(model, motion.q[-1], "body"), motion


def test_a_rotation_vector_goes_round_and_round():
    found, motion = end_of(VECTOR, SPIN)
    expected, other = end_of(QUATERNION, SPIN)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)
    np.testing.assert_allclose(motion.energy, other.energy, rtol=1e-7)
    assert np.linalg.norm(motion.q, axis=-1).max() < np.pi + 0.2
    assert np.abs(np.diff(motion.q, axis=0)).max() > 1  # it did turn over


@pytest.mark.parametrize("watched", [True, False])
def test_a_controller_sees_the_variables_that_it_acts_on(watched):
    given, taken = [], []

    def controller(t, q, qd):
        given.append(np.linalg.norm(q))
        return np.zeros(3)

    hooks = [lambda step: taken.append(np.linalg.norm(step.q0))] if watched else []
    kt.simulate(
        VECTOR, [0.0, 3.3, 0.0], [0.0, 5.0, 0.0], duration=1.0, dt=5e-3, controller=controller,
        hooks=hooks,
    )  # fmt: skip
    assert max(given) <= np.pi  # also at the start, and always before it answers
    if watched:
        assert taken == given[: len(taken)]


def test_rollouts_turn_over_too():
    start = np.array([VECTOR.neutral(), [0.0, 6.0, 0.0]]), np.array([SPIN, SPIN])
    motion = kt.rollout(VECTOR, *start, dt=1e-3, steps=1000, store_every=1000)
    q, qd = motion.q[-1], motion.qd[-1]
    assert np.linalg.norm(q, axis=-1).max() < np.pi + 0.02
    expected, other = end_of(QUATERNION, SPIN)
    np.testing.assert_allclose(kt.pose(VECTOR, q[0], "body"), expected, rtol=0, atol=1e-5)
    energy = kt.kinetic_energy(VECTOR, q, qd) + kt.potential_energy(VECTOR, q)
    np.testing.assert_allclose(energy[0], other.energy[-1], rtol=1e-6)


def test_a_spring_is_about_the_variables_which_then_stay():
    spring = kt.JointDynamics(stiffness=1e-3)
    wound = top(kt.joints.Exponential(), dynamics=spring)
    motion = kt.simulate(wound, [0.0, 2.9, 0.0], [0.0, 6.0, 0.0], duration=0.1)
    assert motion.q[-1, 1] > np.pi


@pytest.mark.parametrize("axis", [(1.0, 0.0, 0.0), (1 / 3, 2 / 3, 2 / 3)])
@pytest.mark.parametrize("function", [kt.forward_dynamics, kt.inverse_mass_matrix])
def test_a_full_turn_is_an_error_that_names_the_joint(axis, function):
    q, z = 2 * np.pi * np.array(axis), np.zeros(3)
    arrays = (z, z + 1) if function is kt.forward_dynamics else ()
    message = "'body_joint' .Exponential. are singular in this configuration.*kinetree.Spherical"
    with pytest.raises(kt.SingularError, match=message):
        function(VECTOR, q, *arrays)
    with pytest.raises(kt.SingularError, match=r"sample \(1,\): .*'body_joint'"):
        function(VECTOR, np.array([z, q]), *arrays)


def test_gimbal_lock_is_called_so():
    angles, q = top(kt.joints.Euler("zyx")), np.array([0.3, np.pi / 2, 0.1])
    with pytest.raises(kt.SingularError, match="gimbal lock"):
        kt.forward_dynamics(angles, q, np.zeros(3), np.zeros(3))


def test_quaternions_stay_of_unit_length_in_single_precision():
    start = QUATERNION.neutral().astype(np.float32), SPIN.astype(np.float32)
    q = kt.rollout(QUATERNION, *start, dt=1e-3, steps=20_000, store_every=1000).q
    assert q.dtype == np.float32
    assert np.abs(np.linalg.norm(q.astype(float), axis=-1) - 1).max() < 4 * np.finfo(np.float32).eps


def test_what_holds_for_a_joint_holds_for_its_reverse():
    q, qd = np.array([1.0, -3.0, 2.0]), np.array([0.3, 0.2, -0.5])
    reverse = kt.joints.Reversed(JOINT)
    assert reverse.turns_over
    assert_close(np.array(reverse.reparameterize(q, qd)), np.array(JOINT.reparameterize(q, qd)))


# --- rotation vectors everywhere -----------------------------------------------------------------


@pytest.mark.covers("Tutorial 5", by=Exponential.reparameterize)
@pytest.mark.parametrize("turns", [1, 2, 5])
def test_many_turns_at_once_are_left_out(turns):
    """TU-44: q -> (1 - 2πk/θ) q before the first step, also next to the singularity at 2πk."""
    axis = np.array([2.0, -1.0, 2.0]) / 3
    q, qd = (2 * np.pi * turns + 1e-3) * axis, np.array([0.3, 0.5, -0.2])
    short, rate = JOINT.reparameterize(q, qd)
    assert_close(short, 1e-3 * axis, scale=2 * np.pi * turns)
    w = [(JOINT.motion_subspace(x) @ v).angular for x, v in ((q, qd), (short, rate))]
    assert_close(w[1], w[0], condition=1e4)
    start = short + 0.7 * axis, q + 0.7 * axis
    ends = [kt.simulate(VECTOR, x, [1.0, 2.0, 3.0], duration=0.02) for x in (short, start[1])]
    assert np.max(np.linalg.norm(ends[1].q, axis=-1)) < np.pi
    many = kt.rollout(VECTOR, np.array(start), np.zeros(3), dt=1e-3, steps=20, store_every=20)
    assert_close(many.q[-1, 1], many.q[-1, 0], condition=1e4)


@pytest.mark.parametrize("integrator", ["rosenbrock", "implicit_midpoint"])
def test_every_integrator_goes_round(integrator):
    ends = []
    for model in (VECTOR, QUATERNION):
        motion = kt.simulate(
            model, model.neutral(), SPIN, duration=1.0, dt=1e-3, integrator=integrator
        )
        ends.append(kt.pose(model, motion.q[-1], "body"))
    accuracy = {"implicit_midpoint": 1e-3, "rosenbrock": 1e-4}[integrator]
    np.testing.assert_allclose(*ends, rtol=0, atol=accuracy)


@pytest.mark.parametrize("constraints", ["baumgarte", "projection"])
def test_a_loop_turns_over_too(constraints):
    """Held at a second point, the body is on a hinge and keeps its spin: two turns about the axis.

    The axis is slanted, gravity is off, and the hinge passes through the mass centre.
    """
    axis = np.array([2.0, -1.0, 2.0]) / 3
    inertia = kt.Inertia.from_mass_center(2.0, np.zeros(3), 0.1 * np.eye(3))
    builder = kt.ModelBuilder("hinge", gravity=(0, 0, 0))
    builder.body("body", joint=kt.joints.Exponential(), inertia=inertia)
    model = builder.loop(
        "pin", predecessor="base", successor="body", joint=kt.Spherical(), at=0.4 * axis,
        successor_at=0.4 * axis,
    ).build()  # fmt: skip
    spin = 4 * np.pi + 0.3
    motion = kt.simulate(
        model, np.zeros(3), spin * axis, duration=1.0, dt=2e-3, constraints=constraints
    )
    R = kt.pose(model, motion.q[-1], "body")[:3, :3]
    angle = np.arctan2(2 * (axis @ unskew(R)), np.trace(R) - 1)
    np.testing.assert_allclose(angle, 0.3, atol=1e-6)
    assert np.linalg.norm(motion.q, axis=-1).max() < np.pi + 0.1


def test_a_trajectory_is_continuous_where_it_turns_over():
    """Samples between stored ones are those of a finer simulation, across the change as well."""
    motion = kt.simulate(VECTOR, VECTOR.neutral(), SPIN, duration=1.0, dt=1e-3, store_every=10)
    jumps = np.flatnonzero(np.linalg.norm(np.diff(motion.q, axis=0), axis=-1) > 1)
    assert len(jumps)
    fine = kt.simulate(VECTOR, VECTOR.neutral(), SPIN, duration=1.0, dt=1e-3)
    times = (motion.t[jumps[0]] + motion.t[jumps[0] + 1]) / 2 + np.array([-2e-3, 0.0, 2e-3])
    found = motion.resample(times)
    k = np.rint(times / 1e-3).astype(int)
    np.testing.assert_allclose(
        kt.pose(VECTOR, found.q, "body"), kt.pose(VECTOR, fine.q[k], "body"), atol=1e-5
    )
    w = [kt.velocity(VECTOR, m.q[i], m.qd[i], "body") for m, i in ((found, slice(None)), (fine, k))]
    np.testing.assert_allclose(*w, atol=1e-2)


def test_derivatives_of_rollouts_go_through_the_change():
    @kt.kernel
    def cost(model, q, qd):
        T = kt.pose(model, q, "body")
        return T[0, 2] + 0.1 * kt.kinetic_energy(model, q, qd)

    q, qd, h = np.array([0.0, 3.05, 0.1]), np.array([0.3, 4.0, 0.2]), 1e-6
    steps = {"dt": 2e-3, "steps": 50}
    found = kt.rollout_gradient(VECTOR, q, qd, terminal=cost, **steps)
    for k, e in enumerate(np.eye(3)):
        values = []
        for s in (h, -h):
            end = kt.rollout(VECTOR, q + s * e, qd, **steps)
            assert np.linalg.norm(end.q[-1] - end.q[0]) > 1  # it did turn over
            values.append(cost(VECTOR, end.q[-1], end.qd[-1]))
        np.testing.assert_allclose(found.q0[k], (values[0] - values[1]) / (2 * h), atol=1e-6)


@pytest.mark.parametrize("method", ["aba", "crba", "implicit", "maximal"])
@pytest.mark.parametrize(
    ("joint", "q"),
    [(kt.joints.Euler("zyx"), [0.3, np.pi / 2, 0.1]), (kt.joints.Euler("zxz"), [0.3, 0.0, 0.1]),
     (kt.joints.Exponential(), [0.0, 4 * np.pi, 0.0])],
    ids=str,
)  # fmt: skip
def test_singular_variables_are_named_by_every_method_and_by_health(joint, q, method):
    model, z = top(joint), np.zeros(3)
    with pytest.raises(kt.SingularError, match=r"'body_joint'.*(gimbal lock|singular)"):
        kt.forward_dynamics(model, np.array(q), z, z, method=method)
    causes = " ".join(map(str, kt.health(model, q).causes))
    assert "'body_joint'" in causes
    assert "singular" in causes


@pytest.mark.parametrize(
    ("joint", "q"),
    [(kt.joints.Euler("zyx"), [0.3, np.pi / 2, 0.1]), (Exponential(), [0.0, 2 * np.pi, 0.0]),
     (kt.joints.Reversed(Exponential()), [0.0, 2 * np.pi, 0.0])],
    ids=str,
)  # fmt: skip
def test_singular_variables_are_named_in_loops_as_well(joint, q):
    """Nearly every motion is allowed there, and looks like one that moves no inertia."""
    at = kt.pose(top(joint), q, "body")[:3, :3] @ [0.4, 0.0, 0.0]
    builder = kt.ModelBuilder("hinge").body("body", joint=joint, inertia=INERTIA)
    builder.loop(
        "pin", predecessor="base", successor="body", joint=kt.Spherical(), at=at,
        successor_at=(0.4, 0.0, 0.0),
    )  # fmt: skip
    model, z = builder.build(), np.zeros(3)
    for solve in (kt.forward_dynamics, kt.loops.solve):
        with pytest.raises(kt.SingularError, match="variables of joint 'body_joint'"):
            solve(model, np.array(q), z, z + 1)


def test_a_simulation_close_to_singular_variables_warns():
    """A spring is about the variables, which then stay, through a full turn."""
    wound = top(kt.joints.Exponential(), dynamics=kt.JointDynamics(stiffness=1e-3))
    message = r"variables of joint 'body_joint' \(Exponential\) are singular"
    with pytest.warns(kt.SimulationWarning, match=message):
        motion = kt.simulate(wound, [0, 5.9, 0.0], [0.3, 6.0, 0.2], duration=0.1, dt=1e-3)
    assert motion.report.smallest_distance < 1e-3
    short = kt.simulate(QUATERNION, QUATERNION.neutral(), duration=0.01)
    assert short.report.smallest_distance is None
    free = kt.simulate(VECTOR, VECTOR.neutral(), SPIN, duration=1.0, dt=1e-3).report
    assert 0.3 < free.smallest_distance < 0.5  # never farther than half a turn
