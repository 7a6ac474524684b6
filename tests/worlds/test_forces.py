"""External forces on worlds: on bodies and frames, by name, of time and state, in batches."""

import numpy as np
import pytest

import kinetree as kt
from kinetree import geometry as shapes

STILL = {"gravity": (0.0, 0.0, 0.0)}


def chain():
    """Three links with a frame at the end, and a follower of the second."""
    builder = kt.ModelBuilder("chain")
    for k, (on, axis) in enumerate(zip((None, "l0", "l1"), "yzx", strict=True)):
        builder.body(
            f"l{k}", on=on, joint=kt.Revolute(axis), at=(0, 0, 0.3),
            inertia=kt.shapes.box(0.1, 0.2, 0.3, mass=1.0, at=(0, 0, 0.15)),
        )  # fmt: skip
    builder.body("twin", on="l0", joint=kt.Prismatic("x"), at=(0, 0.2, 0.1),
                 inertia=kt.shapes.sphere(0.1, mass=0.5))  # fmt: skip
    builder.coupling("gear", joint="twin_joint", source="l1_joint", coefficients=(0, 0.2))
    return builder.frame("tool", on="l2", at=(0.1, 0.05, 0.2)).build()


def world_of(model, h=1e-3, **options):
    world = kt.World(timestep=h, **options)
    world.add(model, name="robot", prefix="")
    return world


def test_a_force_through_the_origin_accelerates_and_a_moment_spins():
    world = kt.World(**STILL)
    box = world.add(shapes.Box((0.1, 0.2, 0.3)), mass=2.0, name="box")
    world.step(100, forces={"box": (1.0, 0, 0)})
    np.testing.assert_allclose(box.velocity, [0.1, 0, 0], atol=1e-12)
    world.step(100)  # they end with the call
    np.testing.assert_allclose(box.velocity, [0.1, 0, 0], atol=1e-12)
    world.step(50, forces={"box": (0, 0, 0.4, 0, 0, 0)})
    np.testing.assert_allclose(box.spin, [0, 0, 0.04 / (2.0 * 0.05 / 12)], atol=1e-9)


@pytest.mark.parametrize("frame", ["tool", "l2", "twin"])
@pytest.mark.parametrize("coordinates", ["base", "frame"])
def test_forces_are_those_of_simulate(frame, coordinates):
    """Second order: in the middle of a step they act where bodies are then."""
    model, wrench = chain(), (0.1, -0.2, 0.15, 2.0, 1.0, -1.5)
    push = kt.ExternalForce(frame, wrench, coordinates=coordinates)
    zero = np.zeros(model.nv)
    exact = kt.simulate(model, zero, zero, duration=0.3, dt=1e-3, forces=push, integrator="rk4")
    errors = []
    for h in (5e-3, 2.5e-3):
        world = world_of(model, h)
        world.step(round(0.3 / h), forces=[push])
        errors.append(np.abs(world.q - exact.q[-1]).max())
    assert errors[0] < 2e-3
    assert errors[0] / errors[1] > 3.0


def test_functions_of_time_and_of_the_state_are_called_before_every_step():
    model, times = chain(), []

    def drag(m, t, q, qd):
        times.append(float(t))
        return -0.1 * qd

    world = world_of(model)
    world.step(3, forces=[drag, kt.ExternalForce("tool", lambda t: (t, 0.0, 0.0))])
    np.testing.assert_allclose(times, [0.0, 1e-3, 2e-3], atol=1e-15)
    other = world_of(model)
    for k in range(3):
        tau = -0.1 * other.qd
        other.step(1, tau=tau, forces={"tool": (k * 1e-3, 0.0, 0.0)})
    np.testing.assert_allclose(world.q, other.q, atol=1e-15)


def test_worlds_of_a_batch_have_their_own_forces():
    model = chain()
    wrenches = np.array([[0.0, 0, 0], [1.0, 0, 2.0], [0, -3.0, 0]])
    worlds = world_of(model).batch(3)
    worlds.step(50, forces={"tool": wrenches})
    for k, f in enumerate(wrenches):
        single = world_of(model)
        single.step(50, forces={"tool": f})
        np.testing.assert_array_equal(worlds.q[k], single.q)
    worlds.step(50)
    single.step(50)
    np.testing.assert_array_equal(worlds.q[2], single.q)


def test_forces_wake_what_sleeps():
    world = kt.World(sleeping=True)
    world.add_ground()
    box = world.add(shapes.Box((0.1, 0.1, 0.1)), mass=1.0, name="box", on="ground")
    world.step(200)
    assert world.report().asleep == 1
    world.step(10, forces={"box": (12.0, 0, 0)})
    assert box.velocity[0] > 0.01


def test_a_push_against_friction_slides_by_the_rest():
    world = kt.World()
    world.add_ground(friction=0.5)
    box = world.add(shapes.Box((0.1, 0.1, 0.1)), mass=1.0, name="box", on="ground", friction=0.5)
    weight = 9.81
    world.step(500, forces={"box": (0.4 * weight, 0, 0)})
    assert abs(box.velocity[0]) < 1e-9
    world.step(100, forces={"box": (0.7 * weight, 0, 0)})
    assert box.velocity[0] == pytest.approx(0.2 * weight * 0.2, rel=1e-6)


def test_what_is_wrong_with_forces_is_named():
    world = world_of(chain())
    with pytest.raises(kt.KinetreeError, match=r"'tol'.*did you mean 'tool'"):
        world.step(1, forces={"tol": (1, 0, 0)})
    with pytest.raises(kt.KinetreeError, match=r"force on 'tool' must have shape \(3,\).*\(2,\)"):
        world.step(1, forces={"tool": (1, 0)})
    with pytest.raises(kt.KinetreeError, match=r"force on 'tool' .*or \(4, 3\) and \(4, 6\)"):
        world.batch(4).step(1, forces={"tool": np.zeros((3, 3))})
    assert world.time == 0.0
