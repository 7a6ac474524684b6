"""Batches of worlds with numbers of their own, against single worlds made with these numbers."""

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree import geometry as shapes


def sliding(friction=0.4, mass=1.0, size=1.0, restitution=0.0) -> kt.World:
    """A box on a slope, and a ball that falls on the ground."""
    world = kt.World(timestep=2e-3)
    world.add_ground(normal=(0.3, 0, 1), friction=friction, restitution=restitution)
    length = 0.1 * size
    box = kt.roty(np.arctan(0.3))
    world.add(
        shapes.Box((length,) * 3), mass=mass, at=kt.xlt([0, 0, length / 2]) @ box,
        friction=friction, restitution=restitution,
    )  # fmt: skip
    world.add(shapes.Sphere(0.05), mass=0.5, name="ball", at=(0.5, 0, 0.01), friction=friction,
              restitution=restitution)  # fmt: skip
    return world


def test_samples_are_what_single_worlds_are():
    friction, mass = np.array([0.1, 0.2, 0.9]), np.array([0.5, 1.0, 2.0])
    worlds = sliding().batch(3, friction=friction, mass={"box": mass})
    worlds.step(20)
    for k in range(3):
        alone = sliding(friction[k], mass[k])
        alone.step(20)
        np.testing.assert_allclose(worlds.q[k], alone.q, atol=1e-12)
        np.testing.assert_allclose(worlds.qd[k], alone.qd, atol=1e-10)
    assert worlds.qd[0, 3] != worlds.qd[1, 3]
    assert [len(table) for table in worlds.contacts()] == [4, 4, 4]


def test_sizes_and_restitution_of_samples():
    size = np.array([1.0, 1.5])
    worlds = sliding().batch(2, size={"box": size}, restitution=[0.0, 0.7])
    model = worlds[1].model
    assert model.geometry[1].shape.size == pytest.approx((0.15,) * 3)
    I = model.inertia[model.body_index("box")].to_matrix()
    np.testing.assert_allclose(I, kt.shapes.box(0.15, 0.15, 0.15, mass=1.0).to_matrix(), rtol=1e-14)
    assert [worlds[k].scene.restitution.max() for k in range(2)] == [0.0, 0.7]
    with pytest.warns(kt.SimulationWarning, match="world 1: 'ground/box'"):  # it has grown
        worlds.step(30)
    for k in range(2):
        alone = sliding(size=size[k], restitution=(0.0, 0.7)[k])
        alone.q = sliding().q
        with pytest.warns(kt.SimulationWarning) if k else nullcontext():
            alone.step(30)
        np.testing.assert_allclose(worlds.q[k], alone.q, atol=1e-9)


def test_gains_and_controls_of_samples():
    builder = kt.ModelBuilder("arm").body(
        "link", joint=kt.Revolute("y"), inertia=kt.shapes.sphere(0.1, mass=1.0, at=(0, 0, -0.3))
    )
    world = kt.World(gravity=(0, 0, 0))
    world.add(builder.actuator("servo", joint="link_joint", kp=5.0, kv=0.5).build())
    worlds = world.batch(3, gains=[1.0, 2.0, 2.0])
    worlds.step(5, control=[[0.1], [0.1], [0.2]])
    assert worlds.qd[1, 0] > worlds.qd[0, 0] > 0
    worlds.reset([0, 2])
    np.testing.assert_array_equal(worlds.q[[0, 2]], 0)
    assert worlds.q[1, 0] > 0
    states = worlds.state
    worlds.step(2, control=lambda t, q, qd: -q)
    end = worlds.q
    worlds.set_state(states)
    worlds.step(2, control=lambda t, q, qd: -q)
    np.testing.assert_array_equal(worlds.q, end)


def crowd(**options) -> kt.World:
    """A quadruped that lands beside a box on a ball, with servos."""
    world = kt.World(**options)
    world.add_ground(torsion=0.01)
    world.add("quadruped", name="dog", at=(0, 0, 0.02), on="ground")
    world.add(shapes.Sphere(0.1), mass=1.0, name="ball", at=(1, 0, 0.1), spin=(0, 0, 9.0))
    world.add(shapes.Box((0.2, 0.2, 0.1)), mass=2.0, name="box", at=(1.01, 0, 0.26))
    return world


def numbers(n):
    """Of worlds."""
    rng = np.random.default_rng(0)
    return {
        "friction": rng.uniform(0.2, 1, n), "mass": {"box": rng.uniform(1, 3, n)},
        "gains": rng.uniform(0.5, 2, n), "restitution": {"ball": rng.uniform(0, 0.5, n)},
    }  # fmt: skip


@pytest.mark.parametrize("sleeping", [False, True])
def test_batches_are_single_worlds_to_the_bit_on_any_number_of_threads(sleeping):
    world, n = crowd(sleeping=sleeping), 9
    u = np.random.default_rng(1).uniform(-0.2, 0.2, (n, len(world.model.actuators)))
    alone, number = world.batch(n, **numbers(n)), kt.threads()
    single = [alone[k] for k in range(n)]
    for k, x in enumerate(single):
        for steps in (7, 1, 12):
            x.step(steps, control=u[k])
    try:
        for count in (1, 3):
            kt.set_threads(count)
            worlds = world.batch(n, **numbers(n))
            for steps in (7, 1, 12):
                worlds.step(steps, control=u)
            for k, x in enumerate(single):
                np.testing.assert_array_equal(worlds.q[k], x.q)
                np.testing.assert_array_equal(worlds.qd[k], x.qd)
                table, own = worlds.contacts()[k], x.contacts()
                assert table.names == own.names
                np.testing.assert_array_equal(table.force, own.force)
                np.testing.assert_array_equal(table.moment, own.moment)
                assert worlds.reports[k].contacts == x.report().contacts
                np.testing.assert_array_equal(
                    worlds.read_sensors().values[k], x.read_sensors().values
                )
    finally:
        kt.set_threads(number)
    again = worlds[4]
    again.step(5, control=u[4])
    worlds.step(5, control=u)
    np.testing.assert_array_equal(worlds.q[4], again.q)


def test_loops_of_samples_remember_what_is_their_own():
    world = kt.World()
    world.add("four_bar")
    tau = np.array([[0.5, 0.0, 0.0], [-2.0, 0.0, 0.0]])
    worlds, single = world.batch(2), [world.copy() for _ in range(2)]
    for _ in range(3):
        worlds.step(5, tau=tau)
        for k, x in enumerate(single):
            x.step(5, tau=tau[k])
            np.testing.assert_array_equal(worlds.q[k], x.q)


def test_one_world_that_fails_does_not_lose_the_batch():
    world = crowd()
    worlds = world.batch(6)
    tau = np.zeros((6, world.model.nv))
    tau[2, -1] = 1e200
    with pytest.warns(
        kt.SimulationWarning, match=r"1 of 6 worlds 'world' failed .* world 2: its state"
    ):
        worlds.step(4, tau=tau)
    assert worlds.failed.tolist() == [False, False, True, False, False, False]
    assert np.isfinite(worlds.q).all()
    assert "1 failed" in repr(worlds)
    np.testing.assert_array_equal(worlds.q[2], world.q)
    assert worlds.reports[2].steps == 0
    assert worlds.reports[3].steps == 4
    worlds.reset(worlds.failed)
    worlds.step(4)
    world.step(4)
    assert not worlds.failed.any()
    np.testing.assert_array_equal(worlds.q[2], world.q)


def test_laws_of_joints_and_functions_step_all_worlds():
    world = crowd(limits="stiff", joint_friction="smooth")
    worlds = world.batch(3)
    worlds.step(3, control=lambda t, q, qd: np.full((3, 12), t), tau=lambda t, q, qd: 0.1 * qd)
    for _ in range(3):
        world.step(1, control=np.full(12, world.time), tau=0.1 * world.qd)
    np.testing.assert_allclose(worlds.q[1], world.q, rtol=1e-14, atol=1e-14)
    worlds.q = np.full((3, world.model.nq), 2.0)
    np.testing.assert_allclose(np.linalg.norm(worlds.q[:, -4:], axis=1), 1.0, rtol=1e-14)


def test_many_contacts_make_room():
    world = kt.World()
    world.add_ground()
    world.add(shapes.Box((0.1, 0.1, 0.1)), mass=1.0, at=[(0.3 * k, 0, 0.05) for k in range(20)])
    worlds = world.batch(5)
    worlds.step(2)
    world.step(2)
    np.testing.assert_array_equal(worlds.q[3], world.q)
    assert [len(x) for x in worlds.contacts()] == [80] * 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda w: w.batch(0), "a batch needs an integer number of worlds, got 0"),
        (lambda w: w.batch(2, mass=[1, 2]), "mass of a batch must be given by part"),
        (lambda w: w.batch(2, friction=[1, 2, 3]), r"friction of 'a batch' must be 2 numbers"),
        (lambda w: w.batch(2, friction={"bax": 1}), "no part or body 'bax'; did you mean 'box'"),
        (lambda w: w.batch(2, size={"ground": 2.0}), "shape 'ground', which is a Plane"),
        (lambda w: w.batch(2).step(1, tau=np.zeros((3, 12))), r"tau of 2 worlds must be \(2, 12\)"),
    ],
)
def test_messages(call, message):
    with pytest.raises(kt.KinetreeError, match=message):
        call(sliding())


def test_simulations_of_batches_are_those_of_each_to_the_bit():
    """With flight, which the integrator takes, and contact."""
    world = kt.World()
    world.add_ground()
    world.add(shapes.Box((0.1, 0.1, 0.1)), mass=1.0, at=[(0, 0, 0.05), (0.02, 0, 0.16)])
    starts = np.tile(world.q, (4, 1))
    starts[:, [2, 9]] += np.array([0.0, 0.001, 0.01, 0.05])[:, None]
    options = {"duration": 0.08, "dt": 2e-3, "contact": world.contact}
    with kt.tier("general"):
        together = kt.simulate(world.model, starts, **options)
        for k, q in enumerate(starts):
            alone = kt.simulate(world.model, q, **options)
            np.testing.assert_array_equal(together.q[:, k], alone.q)
            np.testing.assert_array_equal(together.work[:, k], alone.work)
            known = [together.contact.names.index(name) for name in alone.contact.names]
            np.testing.assert_array_equal(together.contact.force[:, k, known], alone.contact.force)


def arm_beside_a_box(mass, **laws):
    """An arm that swings into its limit, of some mass, and a box; ``laws`` of its joints."""
    dynamics = kt.JointDynamics(friction=(0.2,))
    builder = kt.ModelBuilder("arm").body(
        "link", joint=kt.Revolute("y"), inertia=kt.shapes.sphere(0.1, mass=mass), dynamics=dynamics,
        limits=kt.Limits((-0.3,), (0.3,)),
    )  # fmt: skip
    world = kt.World(**laws)
    world.add(builder.build(), name="arm", qd=np.array([4.0]))
    world.add(shapes.Box((0.1,) * 3), mass=1.0, name="box", at=(2, 0, 0))
    return world


@pytest.mark.parametrize("laws", [{}, {"limits": "stiff", "joint_friction": "smooth"}])
def test_laws_of_joints_follow_the_masses_of_samples(laws):
    masses = np.array([0.5, 1.0, 3.0])
    worlds = arm_beside_a_box(1.0, **laws).batch(3, mass={"arm": masses})
    rolled = kt.rollout(worlds, steps=150)
    worlds.step(150)
    for k, mass in enumerate(masses):
        alone = arm_beside_a_box(mass, **laws)
        single = kt.rollout(alone, steps=150)
        alone.step(150)
        np.testing.assert_allclose(worlds.q[k], alone.q, atol=1e-13)
        np.testing.assert_allclose(worlds.qd[k], alone.qd, atol=1e-12)
        np.testing.assert_allclose(rolled.q[-1, k], single.q[-1], atol=1e-13)


def test_explicit_starts_of_rollouts_are_checked():
    world = sliding()
    world.step(5)
    before, inside = len(world.contacts()), world.q
    inside[2] -= 0.02
    with pytest.warns(kt.SimulationWarning, match="bodies inside each other: 'ground/box'"):
        kt.rollout(world, inside, steps=2)
    assert len(world.contacts()) == before
    starts = np.array([world.q, inside, world.q])
    with pytest.warns(kt.SimulationWarning, match="1 of 3 worlds .* world 1: 'ground/box'"):
        kt.rollout(world.batch(3), starts, steps=2)
    with pytest.warns(kt.SimulationWarning, match="1 of 3 worlds .* world 1: 'ground/box'"):
        kt.rollout(world, starts, steps=2)


def pressed(speed, **options) -> kt.World:
    """A ball that is thrown at the ground, on which a heavy block lies on a light one."""
    world = kt.World(timestep=5e-3, **options)
    world.add_ground()
    world.add(shapes.Box((0.2, 0.2, 0.1)), mass=0.01, name="light", at=(0, 0, 0.05))
    world.add(shapes.Box((0.2, 0.2, 0.2)), mass=50.0, name="heavy", at=(0, 0, 0.2))
    world.add(shapes.Sphere(0.05), mass=1.0, name="ball", at=(1, 0, 0.5), qd=[0, 0, 0, 0, 0, speed])
    return world


def test_reports_of_samples_are_those_of_single_worlds():
    worlds = pressed(-1.0).batch(3)
    worlds.step(60)
    alone = pressed(-1.0)
    alone.step(60)
    expected, found = alone.report(), worlds.reports
    for report in found:
        assert report._fields == expected._fields
        assert report.steps == expected.steps == 60
        assert (report.unsolved, report.first_unsolved) == (
            expected.unsolved,
            expected.first_unsolved,
        )
        np.testing.assert_allclose(report.residuals, expected.residuals, atol=1e-12)
        np.testing.assert_allclose(report.energy, expected.energy, atol=1e-12)


def test_steps_that_cannot_be_trusted_are_counted_in_every_world(monkeypatch):
    from kinetree.contact.engine import engine

    monkeypatch.setattr(engine, "_SPEED", -1.0)  # no velocity is exact enough
    worlds, alone = pressed(-1.0).batch(2), pressed(-1.0)
    with pytest.warns(kt.SimulationWarning, match="2 of 2 worlds .* world 0 took 20"):
        worlds.step(20)
    with pytest.warns(kt.SimulationWarning, match="cannot be trusted"):
        alone.step(20)
    expected = alone.report()
    assert expected.unsolved == 20
    for report in worlds.reports:
        assert report.unsolved == 20
        assert report.first_unsolved == pytest.approx(expected.first_unsolved)
    worlds.step(5)  # said once
    assert worlds.reports[1].unsolved == 5
    with pytest.raises(kt.SimulationError, match=r"2 of 2 worlds .*strict=False"):
        pressed(-1.0, strict=True).batch(2).step(3)
    strict = pressed(-1.0, strict=True)  # which stays where it was before the call
    with pytest.raises(kt.SimulationError, match=r"step 1 of .*strict=False"):
        strict.step(3)
    assert strict.time == 0.0
    assert strict.report().unsolved == 1
    np.testing.assert_array_equal(strict.q, pressed(-1.0).q)


def pressed_by(steps):
    """Positions of ``pressed`` after some steps."""
    world = pressed(-1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kt.SimulationWarning)
        world.step(steps)
    return world.q


def test_reports_cover_all_steps_of_a_call_with_functions():
    worlds, alone = pressed(-1.0).batch(2), pressed(-1.0)
    worlds.step(30, tau=lambda t, q, qd: np.zeros_like(qd))
    alone.step(30)
    expected = alone.report()
    for report in worlds.reports:
        assert report.steps == 30
        np.testing.assert_allclose(report.residuals, expected.residuals, atol=1e-12)


def test_a_world_that_does_not_stay_finite_can_start_again():
    world = pressed(-1.0)
    start, force = world.q, np.zeros(world.model.nv)
    force[-1] = 1e200
    world.step(2)
    with pytest.raises(kt.SimulationError, match="does not stay finite"):
        world.step(5, tau=force)
    world.reset()
    world.step(1)
    assert world.time == world.timestep
    assert_close(world.q, pressed_by(1))
    assert np.abs(world.q - start).max() < 0.1
