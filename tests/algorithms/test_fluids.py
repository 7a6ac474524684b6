"""Forces of fluids: against MuJoCo on random models, by derivatives, and through every door."""

from typing import Any

import mujoco
import numpy as np
import pytest
from support.mujoco_mechanisms import loaded
from support.spatial_tendons import numbers

import kinetree as kt
from kinetree.algorithms import passive
from kinetree.errors import ModelError
from kinetree.interop import mujoco as M
from kinetree.model.fluid import added_volumes
from kinetree.writers.mjcf import to_mjcf


def random_mjcf(rng, *, bodies=4, shaped=0.5, fixed=0.2, option=""):
    """A random tree in a fluid; some bodies are ellipsoids for it, some have no joint."""
    sizes = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}

    def body(i):
        kind = rng.choice(list(sizes))
        shape = ""
        if rng.random() < shaped:
            coefficients = numbers(rng.uniform(0.1, 1.5, 5))
            shape = f'fluidshape="ellipsoid" fluidcoef="{coefficients}"'
        geom = (
            f'<geom type="{kind}" size="{numbers(rng.uniform(0.1, 0.3, sizes[kind]))}" '
            f'pos="{numbers(rng.normal(size=3) * 0.1)}" quat="{numbers(rng.normal(size=4))}" '
            f'contype="0" conaffinity="0" {shape}/>'
        )
        joint = rng.choice(["hinge", "slide", "ball"])
        axis = "" if joint == "ball" else f'axis="{numbers(rng.normal(size=3))}"'
        joint = f'<joint type="{joint}" {axis}/>' if rng.random() >= fixed else ""
        if not i:
            joint = "<freejoint/>"
        inside = joint + geom + (body(i + 1) if i + 1 < bodies else "")
        return f'<body pos="{numbers(rng.normal(size=3) * 0.3)}">{inside}</body>'

    wind = numbers(rng.normal(size=3))
    return (
        f'<mujoco><option density="900" viscosity="2" wind="{wind}" {option}/>'
        f"<worldbody>{body(0)}</worldbody></mujoco>"
    )


def states(text, rng):
    """Our model and MuJoCo's with its data, in the same random state."""
    mj_model, model = mujoco.MjModel.from_xml_string(text), loaded(text)
    q, qd = model.random_configuration(rng), rng.normal(size=model.nv)
    data = mujoco.MjData(mj_model)
    data.qpos[:], data.qvel[:] = M.to_q(model, mj_model, q), M.to_v(model, mj_model, q, qd)
    mujoco.mj_forward(mj_model, data)
    return model, q, qd, mj_model, data


def test_forces_are_those_of_mujoco(rng):
    for _ in range(30):
        model, q, qd, mj_model, data = states(random_mjcf(rng), rng)
        ours = passive.passive_force(model, q, qd)
        theirs = M.from_tau(model, mj_model, data.qpos, data.qfrc_fluid)
        scale = max(np.max(np.abs(theirs)), 1.0)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10 * scale)


@pytest.mark.parametrize("flags", ["", 'spring="disable"', 'damper="disable"'])
def test_flags_are_those_of_mujoco(rng, flags):
    text = random_mjcf(rng).replace("/><world", f"><flag {flags}/></option><world", 1)
    model, q, qd, mj_model, data = states(text, rng)
    theirs = M.from_tau(model, mj_model, data.qpos, data.qfrc_passive)
    ours = passive.passive_force(model, q, qd)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10 * max(1, np.abs(theirs).max()))


def test_compiled_forces_and_their_derivatives(rng):
    model, q, qd, *_ = states(random_mjcf(rng, bodies=3), rng)
    force = kt.passive_force(model, q, qd)
    size = np.abs(force).max()
    np.testing.assert_allclose(
        force, passive.passive_force(model, q, qd), rtol=0, atol=1e-12 * size
    )
    by_q, by_v = kt.differentiate(kt.passive_force, wrt=("q", "qd"))(model, q, qd)
    h, e = 1e-6, rng.normal(size=model.nv)
    for D, ahead, behind in (
        (by_q, (model.integrate(q, h * e), qd), (model.integrate(q, -h * e), qd)),
        (by_v, (q, qd + h * e), (q, qd - h * e)),
    ):
        rate = (passive.passive_force(model, *ahead) - passive.passive_force(model, *behind)) / 2
        np.testing.assert_allclose(D @ e, rate / h, rtol=0, atol=1e-6 * size)
    still = kt.differentiate(kt.passive_force, wrt="qd")(
        model.replace(fluid_forces=[kt.FluidForce(f.body, f.shape, f.placement, 1e3, 1.0)
                                    for f in model.fluid_forces]), q, 0 * qd
    )  # fmt: skip
    assert np.all(np.isfinite(still))  # at rest, where nothing has a direction


def test_added_volumes(rng):
    """A sphere takes half of its volume along; MuJoCo has the integrals by quadrature."""
    mass, inertia = added_volumes((0.2, 0.2, 0.2))
    assert mass == pytest.approx([0.5 * 4 / 3 * np.pi * 0.2**3] * 3, rel=1e-12)
    assert inertia == (0.0, 0.0, 0.0)
    radii = rng.uniform(0.1, 0.5, 3)
    text = (
        f'<mujoco><worldbody><body><freejoint/><geom type="ellipsoid" size="{numbers(radii)}" '
        'fluidshape="ellipsoid"/></body></worldbody></mujoco>'
    )
    theirs = mujoco.MjModel.from_xml_string(text).geom_fluid[0]
    mass, inertia = added_volumes(radii)
    np.testing.assert_allclose(mass, theirs[6:9], rtol=1e-5)
    np.testing.assert_allclose(inertia, theirs[9:12], rtol=1e-4)


# --- motions -------------------------------------------------------------------------------------

SPAN = 0.2


@pytest.fixture(scope="module")
def swimming():
    """A chain that swims, and where MuJoCo's Runge–Kutta steps lead."""
    rng = np.random.default_rng(3)
    text = random_mjcf(rng, bodies=3, option='timestep="1e-4" integrator="RK4"')
    model, q, qd, mj_model, data = states(text, rng)
    mujoco.mj_step(mj_model, data, round(SPAN / 1e-4))
    end = M.from_q(model, mj_model, data.qpos)
    return model, q, qd, (end, M.from_v(model, mj_model, data.qpos, data.qvel))


def error(model, found, end):
    return max(np.abs(model.difference(end[0], found[0])).max(), np.abs(found[1] - end[1]).max())


def test_simulations_move_as_in_mujoco(swimming):
    model, q, qd, end = swimming
    found = kt.simulate(model, q, qd, duration=SPAN, dt=1e-4, integrator="rk4")
    assert error(model, (found.q[-1], found.qd[-1]), end) < 1e-9
    many = kt.rollout(model, np.tile(q, (2, 1)), np.tile(qd, (2, 1)), steps=20, dt=1e-4,
                      integrator="rk4")  # fmt: skip
    np.testing.assert_allclose(many.q[-1][0], found.q[20], rtol=0, atol=1e-12)


def test_worlds_are_of_second_order(swimming):
    model, q, qd, end = swimming
    errors = []
    for h in (2e-3, 1e-3):
        world = kt.World(timestep=h)
        world.add(model, q=q, qd=qd)
        world.step(round(SPAN / h))
        assert not world.report().unsolved
        errors.append(error(model, (world.q, world.qd), end))
    assert errors[1] < 1e-3
    assert errors[0] / errors[1] > 3.5


def test_both_steps_with_contact_take_the_same_way():
    """A ball that slides on the ground: in worlds, in batches, simulated and unrolled."""
    slippery = kt.geometry.Surface(friction=0.0)
    ball = (
        kt.ModelBuilder("ball")
        .body("ball", joint=kt.Free(), inertia=kt.shapes.sphere(0.1, mass=9.0))
        .geometry(kt.geometry.Sphere(0.1), on="ball", surface=slippery)
        .fluid_force(
            kt.geometry.Ellipsoid((0.1, 0.1, 0.1)), on="ball", density=1000.0, viscosity=0.1
        )
        .geometry(kt.geometry.Plane((0, 0)), surface=slippery)
        .build()
    )
    q, qd = np.array([0, 0, 0.1, 1, 0, 0, 0]), np.array([0, 3.0, 0, 0.5, 0, 0])
    world = kt.World(timestep=2e-3)
    world.add(ball, q=q, qd=qd)
    worlds = world.batch(2)
    world.step(200)
    worlds.step(200)
    np.testing.assert_array_equal(worlds.q[1], world.q)
    assert not world.report().unsolved
    contact = kt.contact.TimeStepping(kt.contact.Scene(ball), flight=False)
    found = kt.simulate(ball, q, qd, duration=0.4, dt=2e-3, contact=contact)
    np.testing.assert_allclose(found.q[-1], world.q, rtol=0, atol=1e-9)
    gaps = []
    for steps in (200, 400):
        motions = [
            kt.rollout(ball, q, qd, steps=steps, dt=0.4 / steps, contact=contact)
            for _ in _both_tiers()
        ]
        gaps.append(np.abs(motions[0].q[-1] - motions[1].q[-1]).max())
    assert gaps[1] < 3e-6
    assert gaps[0] / gaps[1] > 3.5


def _both_tiers():
    """General code, and then code that is unrolled for a scene."""
    for tier in ("general", "specialised"):
        with kt.tier(tier):
            yield tier


def test_terminal_velocity():
    """Drag and weight balance: ``m g = ρ/2 A v²`` of a box."""
    box = kt.ModelBuilder("box").body(
        "box", joint=kt.Free(), inertia=kt.shapes.box(0.2, 0.3, 0.4, mass=2.0)
    )
    model = kt.edit.immerse(box.build(), density=500.0)
    world = kt.World(timestep=5e-3)
    world.add(model)
    world.step(1000)
    assert world.qd[5] == pytest.approx(-np.sqrt(2 * 9.81 * 2 / (500 * 0.06)), rel=1e-6)


@kt.kernel
def _square(model, q, qd):
    return q @ q + qd @ qd


@pytest.mark.parametrize("integrator", ["rk4", "rosenbrock_w"])
def test_gradients_go_through_fluids(rng, integrator):
    model = loaded(random_mjcf(rng, bodies=3).replace("<freejoint/>", '<joint axis="1 0 0"/>'))
    q, qd = model.random_configuration(rng), rng.normal(size=model.nv)
    options: dict[str, Any] = {"steps": 20, "dt": 1e-3, "integrator": integrator}
    gradient = kt.rollout_gradient(model, q, qd, terminal=_square, **options)
    h, e = 1e-5, rng.normal(size=model.nv)

    def cost(v):
        end = kt.rollout(model, q, v, **options)
        return end.q[-1] @ end.q[-1] + end.qd[-1] @ end.qd[-1]

    rate = (cost(qd + h * e) - cost(qd - h * e)) / (2 * h)
    assert gradient.qd0 @ e == pytest.approx(rate, rel=1e-6)
    A = kt.linearize(model, q, qd).A
    forces = [kt.passive_force(model, q, qd + s * h * e) for s in (1, -1)]
    ahead, behind = (
        kt.forward_dynamics(model, q, qd + s * h * e, f)
        for s, f in zip((1, -1), forces, strict=True)
    )
    expected = (ahead - behind) / (2 * h)
    np.testing.assert_allclose(
        A[model.nv :, model.nv :] @ e, expected, rtol=0, atol=1e-5 * np.abs(expected).max()
    )


# --- files and edits -----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".toml", ".json", ".xml"])
def test_files_keep_fluids(rng, tmp_path, suffix):
    model, q, qd, *_ = states(random_mjcf(rng, fixed=0.0), rng)
    file = tmp_path / f"swimmer{suffix}"
    kt.save(model, file)
    again = kt.load(file)
    assert len(again.geometry) == len(model.geometry)
    expected = passive.passive_force(model, q, qd)
    np.testing.assert_allclose(
        passive.passive_force(again, q, qd), expected, rtol=0, atol=1e-9 * np.abs(expected).max()
    )


def test_boxes_that_mjcf_cannot_have_are_named():
    box = kt.geometry.Box((0.1, 0.1, 0.1))
    model = (
        kt.ModelBuilder("m")
        .body("a", joint=kt.Free(), inertia=kt.shapes.box(1, 1, 1, mass=1))
        .fluid_force(box, on="a", density=1.0)
        .build()
    )
    with pytest.warns(kt.errors.ModelWarning, match="the fluid around body 'a', whose box is not"):
        to_mjcf(model)


def test_edits_keep_fluids(rng):
    model, q, qd, *_ = states(random_mjcf(rng, bodies=2), rng)
    expected = passive.passive_force(model, q, qd)
    two = kt.edit.attach(model, model, prefix="b_")
    found = passive.passive_force(two, np.tile(q, 2), np.tile(qd, 2))
    np.testing.assert_allclose(found, np.tile(expected, 2), rtol=0, atol=1e-12)
    dry = kt.edit.immerse(model, density=0.0)
    assert not np.any(passive.passive_force(dry, q, qd))
    assert "fluid around" in model.summary()


def test_broken_fluids_are_refused():
    box = kt.geometry.Box((0.1, 0.1, 0.1))

    def builder():
        return kt.ModelBuilder("m").body(
            "a", joint=kt.Free(), inertia=kt.shapes.box(1, 1, 1, mass=1)
        )

    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"density": -1.0}, "density of the fluid force of body 'a' must be a number that is not"),
        ({"wind": (1.0,)}, "wind of a fluid force must be 3 numbers"),
        ({"coefficients": "abcde"}, "coefficients of a fluid force must be 5 numbers"),
        ({"buoyancy": 1.0}, "a fluid force has no 'buoyancy'"),
    )
    for given, message in wrong:
        with pytest.raises(kt.errors.KinetreeError, match=message):
            builder().fluid_force(box, on="a", **given).build()
    with pytest.raises(ModelError, match=r"needs a geometry.Box or geometry.Ellipsoid, got Sphere"):
        builder().fluid_force(kt.geometry.Sphere(0.1), on="a")
    with pytest.raises(ModelError, match="the base does not move, and no fluid flows around it"):
        builder().fluid_force(box, on="base").build()
