"""Variables that must be looked after in long motions: rotation vectors, quaternions."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt

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
