"""Rigid contact with friction, at the level of accelerations: sticking, sliding, Painlevé."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.contact.complementarity import lcp
from kinetree.contact.contacts import Contacts
from kinetree.contact.rigid import friction
from kinetree.contact.rigid.forward_dynamics import forward_dynamics
from kinetree.contact.rigid.problem import RigidProblem, require_solution
from kinetree.contact.scene import Scene, with_ground
from kinetree.errors import InfeasibleContactError, PainleveError
from kinetree.model.geometry import Box, Geometry, Sphere
from kinetree.spatial import Inertia

G, MU = 9.81, 0.3
STILL = np.zeros(6)


def on_slope(shape, inertia, height, angle):
    """A body on a slope that falls along x, and its configuration."""
    body = kt.ModelBuilder("body").body("body", joint=kt.Free(), inertia=inertia).build()
    n = np.array([np.sin(angle), 0, np.cos(angle)])
    m = with_ground(body.replace(geometry=(Geometry(1, shape, name="body"),)), normal=n)
    q = m.integrate(m.neutral(), np.concatenate([np.zeros(3), height * n]))
    return m, m.integrate(q, np.array([0, angle, 0, 0, 0, 0]))


def block(angle):
    """A block on a slope."""
    return on_slope(Box((0.4, 0.3, 0.2)), kt.shapes.box(0.4, 0.3, 0.2, mass=2.0), 0.1, angle)


def ball(angle):
    """A ball on a slope."""
    return on_slope(Sphere(0.1), kt.shapes.sphere(0.1, mass=1.0), 0.1, angle)


# --- sticking and sliding -------------------------------------------------------------------------


@pytest.mark.covers("RBDA 11.5", by=friction.solve)
@pytest.mark.parametrize("beyond", [-1e-6, 1e-6])
def test_block_on_a_slope_slides_above_the_angle_of_friction_only(beyond):
    angle = np.arctan(MU * (1 + beyond))
    m, q = block(angle)
    found = forward_dynamics(m, q, STILL, STILL, Scene(m, friction=MU))
    expected = max(G * (np.sin(angle) - MU * np.cos(angle)), 0.0)
    assert_close(found.qdd, [0, 0, 0, expected, 0, 0], scale=G, ulps=1e4)
    assert found.modes == ("sticks" if beyond < 0 else "slides",) * 4
    assert max(found.residuals) < 1e-11
    assert not found.unique


def test_block_slides_with_the_textbook_acceleration_both_ways():
    angle = 0.5
    m, q = block(angle)
    for speed in (0.0, 2.0, -2.0):
        found = forward_dynamics(
            m, q, np.array([0, 0, 0, speed, 0, 0]), STILL, Scene(m, friction=MU)
        )
        a = G * (np.sin(angle) - (np.sign(speed) or 1) * MU * np.cos(angle))
        assert_close(found.qdd, [0, 0, 0, a, 0, 0], scale=G, ulps=1e4)
        assert found.modes == ("slides",) * 4
        assert_close(found.forces[:, 0].sum(), 2 * G * np.cos(angle), ulps=1e4)
        assert max(found.residuals) < 1e-11


@pytest.mark.covers("RBDA 11.5", by=friction.solve)
def test_ball_rolls_or_skids_down_a_slope():
    angle = 0.4
    m, q = ball(angle)
    limit = 2 / 7 * np.tan(angle)
    rolls = forward_dynamics(m, q, STILL, STILL, Scene(m, friction=1.01 * limit))
    assert_close(np.linalg.norm(rolls.qdd[3:]), 5 / 7 * G * np.sin(angle), ulps=1e4)
    assert rolls.modes == ("sticks",)
    assert rolls.unique
    skids = forward_dynamics(m, q, STILL, STILL, Scene(m, friction=0.5 * limit))
    a = G * (np.sin(angle) - 0.5 * limit * np.cos(angle))
    assert_close(np.linalg.norm(skids.qdd[3:]), a, ulps=1e4)
    assert skids.modes == ("slides",)


def test_friction_opposes_sliding_in_three_dimensions(rng):
    m, q = ball(0.0)
    for _ in range(5):
        qd = np.concatenate([5 * rng.normal(size=3), rng.normal(size=2), [0]])
        found = forward_dynamics(m, q, qd, STILL, Scene(m, friction=0.4))
        v = qd[3:] + np.cross(qd[:3], [0, 0, -0.1])
        a = found.qdd[3:] + np.cross(qd[:3], qd[3:])  # of the centre, in base coordinates
        assert_close(a, -0.4 * G * v / np.linalg.norm(v), scale=G, ulps=1e4)


def test_one_block_slides_while_another_one_rests():
    """Two blocks under a common load: rows that slide and rows that may stick, coupled."""
    builder = kt.ModelBuilder("pair")
    for name, x in (("a", 0.0), ("b", 1.0)):
        builder.body(f"{name}x", joint=kt.Prismatic("x"), at=(x, 0, 0), inertia=Inertia.zero())
        builder.body(
            name, on=f"{name}x", joint=kt.Prismatic("z"), inertia=kt.shapes.sphere(0.1, mass=2.0)
        )
    m = builder.build()
    contacts = Contacts(
        np.array([0, 0, 2]), np.array([2, 4, 4]),
        np.array([[0, 0, -0.1], [1, 0, -0.1], [0.5, 0, 0]]),
        np.array([[0, 0, 1.0], [0, 0, 1.0], [1.0, 0, 0]]), np.zeros(3), ("a", "b", "between"),
    )  # fmt: skip
    mu = np.array([0.5, 0.5, 0.2])
    qd = np.zeros(4)
    tau = np.array([30.0, 0, 0, 0])
    together = forward_dynamics(m, m.neutral(), qd, tau, contacts, friction=mu)
    assert_close(together.qdd[[0, 2]], np.full(2, (30 - 0.5 * 4 * G) / 4), ulps=1e4)
    assert together.modes == ("slides", "slides", "sticks")
    # a slides away from b, which rests against it no more but under its own weight
    away = forward_dynamics(
        m, m.neutral(), np.array([-1.0, 0, 0, 0]), -tau / 10, contacts, friction=mu
    )
    assert away.modes == ("slides", "sticks", "apart")
    assert_close(away.qdd[[0, 2]], [(-3 + 0.5 * 2 * G) / 2, 0.0], scale=G, ulps=1e4)
    # a and b touch, b slides down along a, which rests: its friction loads the floor under a
    sliding = np.array([0, 0, 0, 1.0])
    floor = contacts.chosen([0, 2])
    mixed = forward_dynamics(
        m, m.neutral(), sliding, np.array([0, 0, -20.0, 0]), floor, friction=mu[[0, 2]]
    )
    assert mixed.modes == ("slides", "slides")
    assert max(mixed.residuals) < 1e-9
    push, rub = mixed.forces[1, 0], 0.2 * mixed.forces[1, 0]
    load = 2 * G - rub  # b drags a upwards
    assert_close(mixed.forces[0, 0], load, ulps=1e5)
    a = (push - 0.5 * load) / 2
    assert_close(mixed.qdd[0], -a, ulps=1e5)
    assert_close(mixed.qdd[2], -(20 - push) / 2, ulps=1e5)
    assert_close(mixed.qdd[3], -G - rub / 2, ulps=1e5)


def test_friction_can_jam_what_would_be_free_to_move():
    """No normal force is small enough where dependent normals close: friction does not help."""
    m = kt.ModelBuilder("disc").body(
        "disc", joint=kt.Translation(), inertia=kt.shapes.sphere(0.5, mass=2.0)
    )
    m = m.build()
    walls = Contacts(
        np.zeros(2, int), np.ones(2, int), np.array([[-0.5, 0, 0], [0.5, 0, 0]]),
        np.array([[1.0, 0, 0], [-1.0, 0, 0]]), np.zeros(2), ("left", "right"),
    )  # fmt: skip
    held = forward_dynamics(
        m, m.neutral(), np.zeros(3), np.array([50.0, 0, 0]), walls, friction=0.9
    )
    assert held.modes == ("sticks", "sticks")
    assert_close(held.qdd, np.zeros(3), scale=G, ulps=1e5)
    loose = forward_dynamics(
        m, m.neutral(), np.zeros(3), np.array([5.0, 0, 0]), walls, friction=0.1
    )
    assert max(loose.residuals) < 1e-9


# --- Painlevé -------------------------------------------------------------------------------------


def sliding_rod(theta, speed, spin=0.0, mu=1.5, m=2.0, half=0.5):
    """A rod at an angle to the ground with its lower end at the origin, in the plane x-z."""
    I = m * half**2 / 3
    model = (
        kt.ModelBuilder("rod")
        .body("x", joint=kt.Prismatic("x"), inertia=Inertia.zero())
        .body("z", on="x", joint=kt.Prismatic("z"), inertia=Inertia.zero())
        .body(
            "rod", on="z", joint=kt.Revolute("y"),
            inertia=Inertia.from_mass_center(m, np.zeros(3), np.diag([I / 10, I, I])),
        )
        .build()
    )  # fmt: skip
    c = half * np.array([np.cos(theta), np.sin(theta)])
    q = np.array([c[0], c[1], -theta])
    qd = np.array([speed + spin * c[1], -spin * c[0], spin])  # the lower end slides along x
    tip = Contacts(
        np.zeros(1, int),
        np.array([3]),
        np.zeros((1, 3)),
        np.array([[0, 0, 1.0]]),
        np.zeros(1),
        ("tip",),
    )
    return model, q, qd, tip, mu


def resistance(theta, mu, direction, m=2.0):
    """Of the textbook: with the friction of a rod that slides with its upper end behind (-1)."""
    return (1 + 3 * np.cos(theta) ** 2 + direction * 3 * mu * np.sin(theta) * np.cos(theta)) / m


@pytest.mark.covers("RBDA 11.5", by=friction.sliding_forces)
@pytest.mark.parametrize("direction", [1, -1])
def test_sliding_rod_below_the_critical_friction(direction):
    theta, mu, spin = np.arctan(2.0), 1.3, 1.5
    model, q, qd, tip, _ = sliding_rod(theta, direction * 2.0, spin)
    found = forward_dynamics(model, q, qd, np.zeros(3), tip, friction=mu)
    d = -G + 0.5 * np.sin(theta) * spin**2
    assert_close(found.forces[0, 0], -d / resistance(theta, mu, direction), ulps=1e5)
    assert_close(found.forces[0, 1], -direction * mu * found.forces[0, 0])
    assert found.modes == ("slides",)
    assert max(found.residuals) < 1e-10


@pytest.mark.covers("RBDA 11.5", by=(friction.sliding_forces, PainleveError))
def test_painleve_rod_has_no_motion():
    theta = np.arctan(2.0)
    model, q, qd, tip, mu = sliding_rod(theta, -2.0)
    with pytest.raises(PainleveError, match=r"contact 'tip': no motion obeys") as caught:
        forward_dynamics(model, q, qd, np.zeros(3), tip, friction=mu)
    error = caught.value
    assert (error.kind, error.contact) == ("inconsistent", "tip")
    assert_close(error.critical_friction, 4 / 3, ulps=1e4)
    assert_close(error.resistance, resistance(theta, mu, -1), ulps=1e5)
    assert_close(error.acceleration, -G, ulps=1e4)
    for number in ("1.5", "1.33333", "-0.1", "-9.81"):
        assert number in str(error)
    forward_dynamics(model, q, -qd, np.zeros(3), tip, friction=mu)  # the other way it drags


@pytest.mark.covers("RBDA 11.5", by=(friction.sliding_forces, PainleveError))
def test_painleve_rod_has_two_motions():
    theta, spin = np.arctan(2.0), 8.0
    model, q, qd, tip, mu = sliding_rod(theta, -2.0, spin)
    with pytest.raises(PainleveError, match="2 motions obey the laws") as caught:
        forward_dynamics(model, q, qd, np.zeros(3), tip, friction=mu)
    d = -G + 0.5 * np.sin(theta) * spin**2
    assert caught.value.kind == "indeterminate"
    assert_close(caught.value.acceleration, d, ulps=1e4)
    solutions = np.sort(caught.value.solutions.ravel())
    assert_close(solutions, [0.0, -d / resistance(theta, mu, -1)], ulps=1e5)


def test_painleve_among_contacts_that_rest():
    """The rod beside a ball that rests: found, too."""
    theta = np.arctan(2.0)
    rod, q, qd, _, mu = sliding_rod(theta, -2.0)
    model = rod.replace(bodies=(*rod.bodies, *_ball_body(rod)))
    contacts = Contacts(
        np.zeros(2, int), np.array([3, 4]), np.array([[0, 0, 0], [5.0, 0, -0.1]]),
        np.array([[0, 0, 1.0]] * 2), np.zeros(2), ("tip", "ball"),
    )  # fmt: skip
    q, qd = np.concatenate([q, [5.0, 0, 0]]), np.concatenate([qd, np.zeros(3)])
    with pytest.raises(PainleveError, match="contact 'tip': no motion") as caught:
        forward_dynamics(model, q, qd, np.zeros(6), contacts, friction=mu)
    assert_close(caught.value.critical_friction, 4 / 3, ulps=1e4)
    less = forward_dynamics(model, q, qd, np.zeros(6), contacts, friction=1.0)
    assert less.modes == ("slides", "sticks")
    assert_close(less.forces[0, 0], G / resistance(theta, 1.0, -1), ulps=1e5)


def _ball_body(rod):
    ball = kt.ModelBuilder("ball").body(
        "ball", joint=kt.Translation(), inertia=kt.shapes.sphere(0.1, mass=1.0)
    )
    return ball.build().bodies


def test_dependent_normals_that_close_while_sliding_are_infeasible():
    m = kt.ModelBuilder("disc").body(
        "disc", joint=kt.Translation(), inertia=kt.shapes.sphere(0.5, mass=2.0)
    )
    m = m.build()
    tilt = 1e-9
    walls = Contacts(
        np.zeros(2, int), np.ones(2, int), np.array([[-0.5, 0, 0], [0.5, 0, 0]]),
        np.array([[1.0, 0, 0], [-1.0, 0, 0]]), np.zeros(2), ("left", "right"),
        turn=np.zeros((2, 2, 3, 3)), travel=np.zeros((2, 2, 3, 3)),
    )  # fmt: skip
    across = np.diag([0, 1.0, 1.0])
    turn, travel = walls.turn.copy(), walls.travel.copy()
    turn[:, 0], travel[:, 0] = -0.5 * across, across  # concave walls, and a disc of 0.5 m
    turn[:, 1], travel[:, 1] = 2.0 * across, across
    walls = walls._replace(turn=turn, travel=travel)
    with pytest.raises(InfeasibleContactError, match="from closing"):
        forward_dynamics(m, m.neutral(), np.array([0, 3.0, tilt]), np.zeros(3), walls, friction=0.3)


def test_jammed_disc_beside_a_ball_at_rest_is_infeasible():
    """Contacts that slide, jammed, and one that rests: no forces, and no proof either."""
    builder = kt.ModelBuilder("two")
    for name, x in (("disc", 0.0), ("ball", 5.0)):
        inertia = kt.shapes.sphere(0.5, mass=2.0)
        builder.body(name, joint=kt.Translation(), at=(x, 0, 0), inertia=inertia)
    across = np.diag([0, 1.0, 1.0])
    turn, travel = np.zeros((3, 2, 3, 3)), np.zeros((3, 2, 3, 3))
    turn[:2, 0], travel[:2, 0], turn[:2, 1], travel[:2, 1] = (
        -0.5 * across,
        across,
        2 * across,
        across,
    )
    turn[2, 1], travel[2, 0] = np.diag([1.0, 1, 0]), np.diag([1.0, 1, 0])
    contacts = Contacts(
        np.zeros(3, int), np.array([1, 1, 2]), np.array([[-0.5, 0, 0], [0.5, 0, 0], [5, 0, -0.5]]),
        np.array([[1.0, 0, 0], [-1.0, 0, 0], [0, 0, 1.0]]), np.zeros(3), ("left", "right", "below"),
        turn=turn, travel=travel,
    )  # fmt: skip
    m, qd = builder.build(), np.array([0, 3.0, 0, 0, 0, 0])
    with pytest.raises(InfeasibleContactError, match="with 2 contacts sliding and 1 at rest"):
        forward_dynamics(m, m.neutral(), qd, np.zeros(6), contacts, friction=0.3)


def test_solver_that_ends_with_neither_solution_nor_proof_is_reported():
    found = lcp.lemke(np.array([[-1.0]]), np.array([-1.0]))._replace(certificate=None)
    with pytest.raises(InfeasibleContactError, match="no contact forces were found") as caught:
        require_solution(found, ["tip"])
    assert caught.value.certificate is None
    assert caught.value.residuals is found.residuals


# --- many contacts that slide ---------------------------------------------------------------------


def _sliding_problem(rng, n, mu):
    """Contacts of one body around it, all of which slide; not of any mechanism."""
    J = rng.normal(size=(n, 3, 6))
    B = rng.normal(size=(6, 6))
    zeta = np.concatenate([np.zeros((n, 1)), rng.normal(size=(n, 2))], axis=1)
    J[:, 0, 5] = np.abs(J[:, 0, 5])  # a common way out
    names = tuple(f"c{k}" for k in range(n))
    return RigidProblem(J, B @ B.T, rng.normal(size=6), rng.normal(size=(n, 3)), zeta, mu, names)


@pytest.mark.parametrize(("n", "thorough"), [(4, True), (4, False), (8, True), (12, True)])
def test_forces_of_sliding_contacts_obey_their_laws_however_many(rng, n, thorough):
    """With more contacts than freedoms matrices are singular; above ten there is no enumeration."""
    for _ in range(4):
        problem = _sliding_problem(rng, n, np.full(n, 0.01))
        lam = friction.solve(problem, 1e-9, thorough=thorough)
        w = (problem.M @ lam.ravel() + problem.d).reshape(n, 3)[:, 0]
        size = np.max(np.abs(problem.d)) + np.max(np.abs(problem.M)) * np.max(lam)
        slip = problem.zeta[:, 1:] / np.linalg.norm(problem.zeta[:, 1:], axis=1, keepdims=True)
        assert_close(lam[:, 1:], -0.01 * lam[:, :1] * slip)
        assert np.min(lam[:, 0]) >= 0
        assert np.min(w) >= -1e-9 * size
        assert np.max(np.abs(lam[:, 0] * w)) <= 1e-9 * size * np.max(lam)


def test_of_many_distributions_of_a_load_the_smallest_is_taken():
    legs = np.array([[1.0, x, y] for x in (-1, 1.1) for y in (-1, 1.2)])
    J = np.zeros((4, 3, 4))
    J[:, 0, :3], J[:, 1, 3] = legs, 1.0
    zeta = np.array([[0, 1.0, 0]] * 4)
    problem = RigidProblem(
        J,
        np.eye(4),
        np.array([-1.0, 0, 0, 0]),
        np.zeros((4, 3)),
        zeta,
        np.full(4, 0.1),
        tuple("abcd"),
    )
    lam = friction.solve(problem, 1e-9)[:, 0]
    every = lcp.enumerated(legs @ legs.T, legs @ [-1.0, 0, 0])
    sizes = sorted(float(s.lam @ s.lam) for s in every)
    assert sizes[0] < 0.99 * sizes[-1]
    assert_close(lam @ lam, sizes[0])


@pytest.mark.parametrize("way", ["x", "y"])
def test_forces_across_a_rail_are_not_unique_unless_the_block_slides(way):
    """A block on a rail: while it sticks, any force across would do; where it slides, one."""
    block = kt.shapes.sphere(0.1, mass=1.0)
    builder = kt.ModelBuilder("block").body("rail", joint=kt.Prismatic(way), inertia=block)
    m = builder.body("block", on="rail", joint=kt.Prismatic("z"), inertia=block).build()
    m = with_ground(m.replace(geometry=(Geometry(2, Sphere(0.1), name="block"),)))
    scene, q, still = Scene(m, friction=0.5), np.array([0, 0.1]), np.zeros(2)
    for push, mode in ((0.4, "sticks"), (0.6, "slides"), (-0.6, "slides")):
        found = forward_dynamics(m, q, still, np.array([push * G, 0]), scene)
        assert found.modes == (mode,)
        assert found.unique == (mode == "slides")
        assert_close(found.qdd[0], np.sign(push) * max(abs(push) - 0.5, 0) * G / 2, scale=G)
