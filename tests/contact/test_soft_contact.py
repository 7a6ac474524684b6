"""Soft contact of mechanisms — RBDA §11.8: simulations, rollouts, derivatives."""

import numpy as np
import pytest
from support.backends import cuda_on_cpu
from support.closeness import assert_close

import kinetree as kt
from kinetree.contact.scene import Scene, with_ground
from kinetree.contact.soft.force import SoftContact
from kinetree.contact.soft.laws import Dahl, HuntCrossley, Regularized, Stiction
from kinetree.contact.soft.patch import Patch, TwoSurfaces
from kinetree.model.geometry import Box, Geometry, Sphere
from kinetree.simulation.rollouts.rollout import run_of

RADIUS, G = 0.1, 9.81


def ball(joint=None, **ground):
    inertia = kt.shapes.sphere(RADIUS, mass=1.0)
    m = kt.ModelBuilder("ball").body("ball", joint=joint or kt.Free(), inertia=inertia).build()
    return with_ground(m.replace(geometry=(Geometry(1, Sphere(RADIUS), name="ball"),)), **ground)


def slope(degrees):
    a = np.deg2rad(degrees)
    return np.array([np.sin(a), 0, np.cos(a)]), np.array([np.cos(a), 0, -np.sin(a)])


@pytest.fixture(scope="module")
def resting():
    """A ball that can only go up and down."""
    return ball(kt.Prismatic("z"))


@pytest.mark.covers("RBDA 11.8", by=SoftContact)
@pytest.mark.parametrize("law", ["linear", "patch"])
def test_ball_comes_to_rest_at_its_static_depth(resting, law):
    soft = SoftContact(Scene(resting), stiffness=5000.0, damping=80.0, law=law)
    motion = kt.simulate(resting, [0.12], duration=1.0, dt=1e-3, forces=soft)
    assert_close(motion.q[-1], [RADIUS - G / 5000.0], ulps=1e6)
    assert motion.report.energy_error < 1e-3  # the force jumps where the ball arrives
    again = kt.simulate(resting, [0.12], duration=1.0, dt=1e-3, contact=soft)
    assert np.array_equal(again.q, motion.q)
    force = soft.forces(resting, motion.q[-1], motion.qd[-1])
    assert_close(force, [[G, 0, 0]], ulps=1e7)


@pytest.mark.covers("RBDA 11.8", by=SoftContact)
def test_patch_carried_by_the_simulation_is_the_closed_form_of_a_damped_drop(resting):
    """In contact the ball is a damped oscillator; it leaves where the force crosses zero."""
    K, D, v = 4000.0, 20.0, 1.0
    soft = SoftContact(Scene(resting), stiffness=K, damping=D, law="patch")
    loss = kt.Event(lambda t, q, qd: -K * (q[0] - RADIUS) - D * qd[0], direction=-1, terminal=True)
    motion = kt.simulate(resting, [RADIUS], [-v], duration=1.0, dt=5e-4, forces=soft, events=loss)
    a, w = D / 2, np.sqrt(K - D**2 / 4)
    t, p0 = motion.t[-1], G / K
    A, B = p0, (-v + a * p0) / w  # around the static depth
    p = np.exp(-a * t) * (A * np.cos(w * t) + B * np.sin(w * t)) - p0
    assert motion.q[-1, 0] - RADIUS == pytest.approx(p, abs=1e-9)
    assert p < -1e-4  # still below the surface
    assert abs(motion.events[0].t - t) < 1e-12


@pytest.mark.covers("RBDA 11.8", by=SoftContact)
def test_integrated_and_closed_form_patch_move_alike(resting):
    apart = []
    for dt in (5e-4, 1e-4):
        ends = []
        for integrated in (False, True):
            soft = SoftContact(Scene(resting), law=Patch(4000.0, 20.0, integrated=integrated))
            motion = kt.simulate(resting, [0.13], duration=0.3, dt=dt, forces=soft)
            ends.append(motion.q[:, 0])
        apart.append(np.max(np.abs(ends[0] - ends[1])))
    assert apart[0] < 2e-4
    assert apart[1] < apart[0] / 3  # steps across arrivals and losses are of first order


@pytest.mark.covers("RBDA 11.8", by=SoftContact)
def test_block_on_an_incline_sticks_below_the_cone_and_slides_above():
    """Sticks without creep iff tan(slope) <= mu; slides with g (sin - mu cos)."""
    mu, a = 0.5, 20.0
    normal, down = slope(a)
    inertia = kt.shapes.box(0.4, 0.4, 0.1, mass=1.0)
    m = kt.ModelBuilder("block").body("block", joint=kt.Translation(), inertia=inertia).build()
    m = m.replace(geometry=(Geometry(1, Sphere(0.05), name="block"),))
    m = with_ground(m, normal=normal)
    static = G * np.cos(np.deg2rad(a)) / 5e4
    q0 = normal * (0.05 - static)
    for coefficient, sticks in ((mu, True), (0.3, False)):
        soft = SoftContact(
            Scene(m, friction=coefficient), stiffness=5e4, damping=400.0, law="patch"
        )
        motion = kt.simulate(m, q0, duration=1.0, dt=5e-4, forces=soft)
        along, speed = (motion.q - q0) @ down, motion.qd @ down
        if sticks:
            assert abs(along[-1] - along[-400]) < 1e-12  # no creep
            assert along[-1] == pytest.approx(G * np.sin(np.deg2rad(a)) / 5e4, rel=1e-9)
            assert np.linalg.norm(motion.qd[-1]) < 1e-11
        else:
            expected = G * (np.sin(np.deg2rad(a)) - coefficient * np.cos(np.deg2rad(a)))
            assert (speed[-1] - speed[-500]) / 0.2495 == pytest.approx(expected, rel=1e-6)
    limit, at_rest = np.tan(np.deg2rad(a)), np.zeros(3)
    for part in (1e-6, -1e-6):  # on either side of the limit, in equilibrium
        law = {"stiffness": 5e4, "damping": 400.0, "law": "patch"}
        soft = SoftContact(Scene(m, friction=limit * (1 + part)), **law)
        state = soft.start(m, q0)
        state[0, 1:] = down * G * np.sin(np.deg2rad(a)) / 5e4
        tau, _ = soft.force_and_rate(m, 0.0, q0, at_rest, state, 0.0)
        qdd = kt.forward_dynamics(m, q0, at_rest, tau)
        slides = G * np.sin(np.deg2rad(a)) * max(-part, 0)
        assert_close(qdd, slides * down, scale=G, ulps=1000)


@pytest.mark.covers("RBDA 11.8", by=SoftContact)
@pytest.mark.parametrize("law", ["patch", "hunt_crossley"])
def test_sphere_rolls_down_an_incline(law):
    normal, down = slope(15.0)
    m = ball(normal=normal)
    given = {"patch": (1e5, 300.0), "hunt_crossley": (1e6, 0.5)}[law]
    friction = {"patch": None, "hunt_crossley": Regularized(0.02)}[law]
    depth = G * np.cos(np.deg2rad(15)) / given[0]
    depth = depth ** (1 / 1.5) if law == "hunt_crossley" else depth
    q0 = m.neutral().copy()
    q0[:3] = normal * (RADIUS - depth)
    soft = SoftContact(Scene(m), stiffness=given[0], damping=given[1], law=law, tangential=friction)
    motion = kt.simulate(m, q0, duration=0.5, dt=5e-4, forces=soft)
    travelled = (motion.q[:, :3] - q0[:3]) @ down
    expected = 5 / 7 * G * np.sin(np.deg2rad(15)) * 0.5**2 / 2
    assert travelled[-1] == pytest.approx(expected, rel={"patch": 1e-3, "hunt_crossley": 5e-3}[law])
    assert motion.report.energy_error < 1e-6


def test_moving_dent_takes_energy_from_a_rolling_ball():
    m = ball()
    q0 = m.neutral().copy()
    q0[2] = RADIUS - G / 1e5
    qd0 = np.array([0, 10.0, 0, 1.0, 0, 0])
    ends = []
    for drag in (0.0, 0.1):
        soft = SoftContact(Scene(m), stiffness=1e5, damping=300.0, law="patch", drag=drag)
        motion = kt.simulate(m, q0, qd0, duration=0.5, dt=5e-4, forces=soft)
        ends.append((motion.q[-1] - motion.q[-2])[0] / 5e-4)
        assert motion.report.energy_error < 1e-6
    assert ends[0] == pytest.approx(1.0, rel=1e-3)
    # 7/5 m dv/dt = -drag m g v
    assert ends[1] == pytest.approx(np.exp(-5 / 7 * 0.1 * G * 0.5), rel=1e-3)


@pytest.mark.covers("RBDA 11.8", by=SoftContact)
def test_two_balls_push_each_other_alike():
    """Action and reaction: momentum and angular momentum stay, energy does not grow."""
    builder = kt.ModelBuilder("balls", gravity=(0, 0, 0))
    for name in ("a", "b"):
        inertia = kt.shapes.sphere(RADIUS, mass=1.0)
        builder = builder.body(name, on="base", joint=kt.Planar(), inertia=inertia)
    shapes = tuple(Geometry(i, Sphere(RADIUS), name="ab"[i - 1]) for i in (1, 2))
    m = builder.build().replace(geometry=shapes)
    q0, qd0 = np.array([0, 0, 0, 0, 0.25, 0.05]), np.array([5.0, 1.0, 0, -4.0, -1.0, 0.2])
    soft = SoftContact(Scene(m), stiffness=2e4, damping=20.0, law="patch")
    motion = kt.simulate(m, q0, qd0, duration=0.3, dt=2e-4, forces=soft)
    h = kt.momentum(m, motion.q, motion.qd)
    assert_close(h, np.broadcast_to(h[0], h.shape), ulps=1e8)  # up to the integrator
    assert motion.energy[-1] < motion.energy[0] - 1e-3
    assert np.max(motion.energy) < motion.energy[0] + 1e-9


def test_friction_patch_turns_with_the_surface_that_carries_it():
    """The same motion relative to a base that turns: a ball at rest on a spinning disc."""
    plate = kt.shapes.box(1.0, 1.0, 0.1, mass=50.0)
    builder = kt.ModelBuilder("plate").body("plate", joint=kt.Revolute("z"), inertia=plate)
    builder = builder.body(
        "ball", on="base", joint=kt.Free(), inertia=kt.shapes.sphere(0.1, mass=1.0)
    )
    m = builder.build()
    shapes = (
        Geometry(1, Box((1.0, 1.0, 0.1)), name="plate"),
        Geometry(2, Sphere(0.1), name="ball"),
    )
    m = m.replace(geometry=shapes)
    scene = Scene(m, [("plate", "ball")])
    soft = SoftContact(scene, stiffness=2e4, damping=200.0, law="patch")
    q = np.concatenate([[0.3], m.neutral()[1:]])
    q[1:4] = [0.2, 0.1, 0.1499]
    qd = np.array([2.0, 0, 0, 2.0, -0.2, 0.4, 0])  # all turn together
    state = soft.start(m, q)
    state[..., 1:] = [1e-5, 3e-5, 0]
    _, rate = soft.force_and_rate(m, 0.0, q, qd, state, 0.0)
    assert_close(rate[0, 1:], [-6e-5, 2e-5, 0], scale=1.0)
    many = np.array([q, q, q]), np.array([qd, -qd, 0.5 * qd]), np.array([state, state, state])
    _, rates = soft.force_and_rate(m, 0.0, *many, 0.0)
    turned = [[-6e-5, 2e-5, 0], [6e-5, -2e-5, 0], [-3e-5, 1e-5, 0]]
    assert_close(rates[..., 0, 1:], turned, scale=1.0)
    ends = np.array([m.integrate(q, h * qd) for h in (0.0, 0.1, 0.2)])
    settled = soft.end_states(m, ends, many[2], many[2], 0.1)
    for one, end, before in zip(settled, ends, many[2], strict=True):
        assert_close(one, soft.end_states(m, end, before, before, 0.1))


# --- rollouts and derivatives -------------------------------------------------------------------


@kt.kernel
def place(m, q, qd):
    return q[0] + 0.5 * q[2] + 0.1 * qd[0] + 0.05 * qd[3]


@pytest.mark.covers("RBDA 11.8", by=SoftContact)
def test_gradient_of_a_rollout_through_a_bounce():
    """A ball that falls, bounces with spin and friction; gradients against finite differences."""
    m = ball()
    soft = SoftContact(
        Scene(m, friction=0.4), stiffness=2e4, damping=0.3, tangential=Regularized(0.05)
    )
    q0, qd0 = m.neutral().copy(), np.array([0.5, 1.0, -2.0, 1.0, 0.3, -1.0])
    q0[2] = 0.13
    given = {"steps": 150, "dt": 1e-3, "contact": soft}
    found = kt.rollout_gradient(m, q0, qd0, terminal=place, **given)
    eye, h = np.eye(6), 1e-6

    def value(dq, dqd):
        end = kt.rollout(m, m.integrate(q0, dq), qd0 + dqd, store_every=150, **given)
        return place(m, end.q[-1], end.qd[-1])

    lowest = np.min(kt.rollout(m, q0, qd0, **given).q[:, 2])
    assert lowest < RADIUS - 1e-3  # it did touch
    gradient = [(value(h * e, 0 * e) - value(-h * e, 0 * e)) / (2 * h) for e in eye]
    assert_close(found.q0, gradient, scale=1, ulps=1e8)
    gradient = [(value(0 * e, h * e) - value(0 * e, -h * e)) / (2 * h) for e in eye]
    assert_close(found.qd0, gradient, scale=1, ulps=1e8)


def test_batch_of_rollouts_is_what_single_simulations_are(resting):
    soft = SoftContact(Scene(resting), stiffness=1e4, damping=0.5)
    heights = np.linspace(0.1, 0.2, 5)[:, None]
    many = kt.rollout(resting, heights, steps=200, dt=1e-3, forces=[soft], store_every=200)
    for k in (0, 4):
        one = kt.simulate(resting, heights[k], duration=0.2, dt=1e-3, forces=soft)
        assert_close(many.q[-1, k], one.q[-1], scale=0.1, ulps=1e4)


def test_code_for_gpus_computes_the_same(resting, tmp_path):
    soft = SoftContact(Scene(resting), stiffness=1e4, damping=0.5)
    given = {"steps": 60, "dt": 1e-3, "contact": soft}
    heights = np.linspace(0.098, 0.11, 33)[:, None]
    kernel = run_of(resting, heights, **given).transition.steps()
    still = np.zeros((33, 1))
    numbers = (np.full(33, x) for x in (0.0, 1e-3, 60.0))
    q, *_ = cuda_on_cpu(tmp_path)(kernel.program, "float64")(*numbers, heights, still, still[:, 0])
    assert_close(q, kt.rollout(resting, heights, store_every=60, **given).q[-1], ulps=1e4)


def test_batch_of_simulations_with_a_memory(resting):
    soft = SoftContact(Scene(resting), stiffness=4000.0, damping=20.0, law="patch")
    heights = np.linspace(0.1, 0.15, 3)[:, None]
    many = kt.simulate(resting, heights, duration=0.2, dt=1e-3, forces=soft)
    one = kt.simulate(resting, heights[2], duration=0.2, dt=1e-3, forces=soft)
    assert_close(many.q[:, 2], one.q, scale=0.1, ulps=1e4)


def test_host_forces_adaptive_steps_and_events_go_with_a_memory(resting):
    soft = SoftContact(Scene(resting), stiffness=4000.0, damping=20.0, law="patch")
    given = {"duration": 0.3, "forces": [soft]}
    fixed = kt.simulate(resting, [0.13], dt=1e-4, **given)
    adaptive = kt.simulate(resting, [0.13], dt=1e-2, rtol=1e-8, atol=1e-10, **given)
    assert adaptive.q[-1] == pytest.approx(fixed.q[-1], abs=1e-6)
    given["forces"] = [soft, lambda m, t, q, qd: 0 * qd]
    hosted = kt.simulate(resting, [0.11], dt=1e-3, **given | {"duration": 0.1})
    given["forces"] = [soft]
    same = kt.simulate(resting, [0.11], dt=1e-3, **given | {"duration": 0.1})
    assert_close(hosted.q[-1], same.q[-1], scale=0.1, ulps=1e4)
    top = kt.Event(lambda t, q, qd: qd[0], direction=-1, name="top")
    seen = kt.simulate(resting, [0.13], dt=1e-3, duration=0.3, forces=soft, events=top)
    assert seen.events
    assert seen.q[-1] == pytest.approx(fixed.q[-1], abs=1e-4)
    coarse = kt.simulate(resting, [0.13], dt=1e-3, duration=0.3, forces=soft, store_every=30)
    every = kt.simulate(resting, [0.13], dt=1e-3, duration=0.3, forces=soft)
    assert_close(coarse.q[-1], every.q[-1])


# --- plug-ins -------------------------------------------------------------------------------------


@pytest.mark.covers("RBDA 11.8", by=SoftContact)
def test_friction_law_of_the_user_is_the_built_in_one_to_the_bit():
    from kinetree.contact.soft.laws import cut

    class Mine:
        size, rate = 2, 3000.0 / 40.0

        def __call__(self, x, v, f_n, mu):
            f = cut(-3000.0 * x - 40.0 * v, mu * f_n)
            return f, -(3000.0 * x + f) / 40.0

    m = ball()
    q0, qd0 = m.neutral().copy(), np.array([0, 0, 0, 0.5, 0, 0])
    q0[2] = RADIUS
    ends = []
    for tangential in (Stiction(3000.0, 40.0), Mine()):
        soft = SoftContact(Scene(m), law=Patch(5000.0, 80.0), tangential=tangential)
        ends.append(kt.simulate(m, q0, qd0, duration=0.1, dt=1e-3, forces=soft).q[-1])
    assert np.array_equal(*ends)


@pytest.mark.parametrize(
    "law", [HuntCrossley(1e5, 0.2), TwoSurfaces(Patch(1e4, 50), Patch(2e4, 40))]
)
def test_any_laws_combine(law):
    m = ball()
    q0 = m.neutral().copy()
    q0[2] = 0.12
    soft = SoftContact(Scene(m), law=law, tangential=Dahl(5000.0))
    motion = kt.simulate(m, q0, [0, 0, 0, 0.2, 0, 0], duration=0.3, dt=5e-4, forces=soft)
    assert np.max(motion.energy) < motion.energy[0] + 1e-6
    assert motion.energy[-1] < motion.energy[0]


# --- errors ---------------------------------------------------------------------------------------


def test_named_errors(resting):
    scene = Scene(resting)
    with pytest.raises(kt.UnknownNameError, match=r"no law 'hunt_crosley'.*hunt_crossley"):
        SoftContact(scene, stiffness=1.0, damping=1.0, law="hunt_crosley")
    with pytest.raises(kt.ModelError, match=r"law 'linear' needs stiffness and damping"):
        SoftContact(scene, stiffness=1.0, law="linear")
    with pytest.raises(kt.ModelError, match=r"Patch has its own stiffness"):
        SoftContact(scene, stiffness=1.0, law=Patch(1.0, 1.0))
    with pytest.raises(kt.ModelError, match=r"friction must be a number or one for each of 1"):
        SoftContact(scene, stiffness=1.0, damping=1.0, friction=-0.1)
    with pytest.raises(kt.ModelError, match=r"drag must not be negative"):
        SoftContact(scene, stiffness=1.0, damping=1.0, drag=-1.0)
    patch = SoftContact(scene, stiffness=1e4, damping=50.0, law="patch")
    with pytest.raises(kt.errors.TraceError, match=r"remember what happened before"):
        patch(resting, 0.0, np.array([0.2]), np.zeros(1))
    words = r"contact=EventDriven: its steps end at events.*use TimeStepping.*kinetree.simulate"
    with pytest.raises(kt.errors.TraceError, match=words):
        kt.rollout(resting, [0.2], steps=3, contact=kt.contact.EventDriven(scene))
    with pytest.raises(kt.UnknownNameError, match=r"states are not integrated by implicit steps"):
        kt.simulate(resting, [0.2], duration=0.1, forces=patch, integrator="implicit_midpoint")
    with pytest.raises(kt.SimulationError, match=r"too long for surfaces that recover at 200"):
        kt.simulate(resting, [0.2], duration=0.1, dt=0.05, forces=patch)
    with pytest.raises(kt.UnknownNameError, match=r"Patch has no energy of positions alone"):
        patch.energy(resting, [0.1])
    linear = SoftContact(scene, stiffness=1e4, damping=50.0, law="linear")
    assert_close(linear.energy(resting, np.array([0.09])), 0.5, ulps=1e4)
    stopped = resting.replace(limits={"ball_joint": kt.Limits(lower=(0.0,), upper=(1.0,))})
    with pytest.raises(kt.ModelError, match=r"memory cannot be combined with rigid limits"):
        kt.simulate(
            stopped, [0.2], duration=0.1, limits="rigid",
            forces=SoftContact(Scene(stopped), stiffness=1e4, damping=50.0, law="patch"),
        )  # fmt: skip


def test_a_scene_of_another_mechanism_is_rejected(resting):
    contact = SoftContact(Scene(resting), stiffness=1e6, damping=0.5)
    other = kt.samples.double_pendulum()
    for run in (
        lambda: kt.simulate(other, np.zeros(2), duration=0.01, contact=contact),
        lambda: kt.rollout(other, np.zeros(2), steps=2, contact=contact),
    ):
        with pytest.raises(kt.ModelError, match="which is not the one that is simulated, 'double"):
            run()
