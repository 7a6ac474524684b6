"""Impact — RBDA §11.7: impulses of bodies, handles and mechanisms; laws of restitution."""

import re
from itertools import product

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms import aba
from kinetree.contact.contacts import Contacts, jacobian
from kinetree.contact.impacts import several
from kinetree.contact.impacts.impact import capture, impact
from kinetree.contact.impacts.patches import patch_impacts
from kinetree.contact.impacts.single import LAWS, single_impact
from kinetree.contact.mobility import mobility
from kinetree.contact.scene import Scene, with_ground
from kinetree.errors import ImpactError
from kinetree.loops.kinematics.projection import project_velocity
from kinetree.model.geometry import Geometry, Sphere
from kinetree.spatial import Force, Motion
from kinetree.textbook import body_collisions
from kinetree.textbook.body_collisions import arrested_collision, frictionless_collision


def contacts_at(points, normals, *, bodies, **more):
    predecessor, successor = zip(*bodies, strict=True)
    normals = np.array(normals, dtype=float)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return Contacts(
        np.array(predecessor), np.array(successor), np.array(points, dtype=float), normals,
        np.zeros(len(points)), **more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def ball():
    inertia = kt.shapes.sphere(0.5, mass=1.0)
    return kt.ModelBuilder("ball").body("ball", joint=kt.Free(), inertia=inertia).build()


FLOOR = contacts_at([[0, 0, -0.5]], [[0, 0, 1]], bodies=[(0, 1)])
FALLING = np.array([0, 0, 0, 1.0, 0, -2.0])


# --- impulses -------------------------------------------------------------------------------------


@pytest.mark.covers("RBDA 11.7", by=body_collisions.velocity_change)
def test_impulse_is_the_change_of_momentum(rng):
    I = kt.shapes.box(0.2, 0.3, 0.5, mass=2.0, at=kt.xlt([0.1, -0.2, 0.3]))
    iota = Force.from_array(rng.normal(size=6))
    dv = body_collisions.velocity_change(I, iota)
    assert_close((I @ dv).to_array(), iota.to_array())
    assert_close(body_collisions.velocity_change(None, iota).to_array(), np.zeros(6))


@pytest.mark.covers("RBDA 11.7", by=body_collisions.velocity_step)
def test_stiff_force_tends_to_its_impulse(ball):
    """The shorter a force of the same integral acts, the less anything else matters."""
    iota = np.array([0.3, -0.2, 0.1, 0.5, 0.4, 2.0])
    qd0 = np.array([1.0, 2.0, -1.0, 0.5, 0.2, 0.1])
    u = body_collisions.joint_space_impulse(ball, ball.neutral(), "ball", Force.from_array(iota))
    expected = qd0 + body_collisions.velocity_step(ball, ball.neutral(), u)
    errors = []
    for h in (1e-2, 1e-3):
        push = kt.ExternalForce("ball", iota / h)
        motion = kt.simulate(ball, ball.neutral(), qd0, duration=h, dt=h / 20, forces=push)
        errors.append(np.max(np.abs(motion.qd[-1] - expected)))
    assert errors[1] < 0.12 * errors[0] < 0.1


@pytest.mark.covers("RBDA 11.7", by=body_collisions.velocity_change)
def test_handle_responds_with_its_articulated_inertia(rng):
    """``Iᴬ = (J H⁻¹ Jᵀ)⁻¹`` of the free-floating system, in the coordinates of the handle."""
    m = _floating()
    q = m.integrate(m.neutral(), rng.normal(size=m.nv))
    bodies_ = aba.articulated_bodies(m, q, np.zeros(m.nv), np.zeros(m.nv))
    I_A = bodies_.IA[1]
    J = kt.jacobian(m, q, "trunk", frame="body")
    inverse = J @ kt.inverse_mass_matrix(m, q) @ J.T
    assert_close(I_A.to_matrix() @ inverse, np.eye(6), ulps=1e4)
    iota = rng.normal(size=6)
    dv = J @ body_collisions.velocity_step(m, q, J.T @ iota)
    assert_close(
        body_collisions.velocity_change(I_A, Force.from_array(iota)).to_array(), dv, ulps=1e4
    )


def _floating():
    builder = kt.ModelBuilder("floating").body(
        "trunk", joint=kt.Free(), inertia=kt.shapes.box(0.3, 0.2, 0.4, mass=3.0)
    )
    for k in range(3):
        builder = builder.body(
            f"link{k}", on=f"link{k - 1}" if k else "trunk", joint=kt.Revolute("y"),
            at=kt.xlt([0.1, 0, 0.2]),
            inertia=kt.shapes.box(0.05, 0.05, 0.3, mass=0.7, at=kt.xlt([0, 0.02, 0.15])),
        )  # fmt: skip
    return builder.build()


# --- two bodies -----------------------------------------------------------------------------------


@pytest.mark.covers("RBDA 11.7", by=frictionless_collision)
def test_frictionless_collision_of_two_bodies(rng):
    I1 = kt.shapes.box(0.2, 0.3, 0.5, mass=2.0)
    I2 = kt.shapes.box(0.4, 0.1, 0.2, mass=0.7, at=kt.xlt([0.5, 0, 0]))
    v1, v2 = Motion.from_array(rng.normal(size=6)), Motion.from_array(rng.normal(size=6))
    n, point = np.array([1.0, 0, 0]), np.array([0.2, 0.05, 0.1])
    spatial = np.concatenate([np.cross(point, n), n])
    zeta = spatial @ (v2 - v1).to_array()
    if zeta > 0:
        v1, v2, zeta = -v1, -v2, -zeta
    M = spatial @ sum(np.linalg.inv(I.to_matrix()) for I in (I1, I2)) @ spatial
    for e in (0.0, 0.4, 1.0):
        found = frictionless_collision(I1, v1, I2, v2, point, n, e)
        after = spatial @ (v2 + found.dv2 - v1 - found.dv1).to_array()
        assert_close(after, -e * zeta, scale=abs(zeta))
        energy = [_energy(I1, v1, I2, v2), _energy(I1, v1 + found.dv1, I2, v2 + found.dv2)]
        assert_close(found.energy_change, -(1 - e**2) * zeta**2 / (2 * M), scale=energy[0])
        assert_close(energy[1] - energy[0], found.energy_change, scale=energy[0], ulps=1000)


def _energy(I1, v1, I2, v2):
    return sum(v.to_array() @ (I @ v).to_array() / 2 for I, v in ((I1, v1), (I2, v2)))


@pytest.mark.covers("RBDA 11.7", by=frictionless_collision)
def test_equal_spheres_swap_velocities():
    I = kt.shapes.sphere(0.5, mass=2.0)
    other = kt.shapes.sphere(0.5, mass=2.0, at=kt.xlt([1.0, 0, 0]))
    v = Motion.from_array([0, 0, 0, 3.0, 0, 0])
    found = frictionless_collision(I, v, other, v * 0, [0.5, 0, 0], [1, 0, 0], 1.0)
    assert_close((v + found.dv1).to_array(), np.zeros(6), scale=3)
    assert_close(found.dv2.to_array(), v.to_array())
    apart = frictionless_collision(I, v * 0, other, v, [0.5, 0, 0], [1, 0, 0], 1.0)
    assert apart.energy_change == 0
    assert np.all(apart.impulse == 0)


@pytest.mark.covers("RBDA 11.7", by=arrested_collision)
def test_arrested_collision_of_a_ball_with_the_ground():
    I, still = kt.shapes.sphere(0.5, mass=1.0), Motion.from_array(np.zeros(6))
    v = Motion.from_array(FALLING)
    where = ([0, 0, -0.5], [0, 0, 1], 0.6)
    found = arrested_collision(None, still, I, v, *where)
    assert_close(found.impulse, [3.2, -2 / 7, 0])
    assert_close((v + found.dv2).to_array()[3:], [5 / 7, 0, 1.2])
    assert_close(found.energy_change, -1.4228571428571428)
    with pytest.raises(
        ImpactError, match=r"takes a coefficient of friction of 0.0892857, there is"
    ):
        arrested_collision(None, still, I, v, *where, friction=0.05)
    with pytest.raises(kt.ShapeError, match=r"must be able to move"):
        arrested_collision(None, still, None, v, *where)
    with pytest.raises(kt.ShapeError, match=r"restitution must be from 0 to 1, got 1.5"):
        frictionless_collision(None, still, I, v, [0, 0, -0.5], [0, 0, 1], 1.5)
    away = arrested_collision(None, still, I, -v, *where)
    assert away.energy_change == 0


def test_arresting_impulse_that_would_pull_is_rejected():
    """A slanted rod that slides fast over the point that it digs into."""
    rod = kt.Inertia.from_mass_center(1.0, np.zeros(3), np.diag([1.0, 1e-3, 1.0]))
    still, v = Motion.from_array(np.zeros(6)), Motion.from_array([0, 0, 0, -4.0, 0, -0.1])
    tip = [0.5, 0, -0.5]
    with pytest.raises(ImpactError, match=r"would have to pull"):
        arrested_collision(None, still, rod, v, tip, [0, 0, 1], 0.0)


# --- mechanisms -----------------------------------------------------------------------------------


@pytest.mark.covers("RBDA 11.7", by=impact)
@pytest.mark.parametrize("law", LAWS)
def test_ball_on_the_ground(ball, law):
    after = impact(ball, ball.neutral(), FALLING, FLOOR, law=law, restitution=0.6, friction=0.8)
    assert_close(after.impulse, [[3.2, -2 / 7, 0]])
    assert_close(after.qd, [0, 10 / 7, 0, 5 / 7, 0, 1.2])
    assert_close(after.energy_change, -1.4228571428571428)
    assert max(after.residuals) < 1e-14
    sliding = impact(ball, ball.neutral(), FALLING, FLOOR, law=law, restitution=0.6, friction=0.05)
    assert_close(sliding.impulse, [[3.2, -0.16, 0]])
    away = impact(ball, ball.neutral(), -FALLING, FLOOR, law=law, restitution=0.6, friction=0.8)
    assert_close(away.qd, -FALLING)
    arrested = impact(ball, ball.neutral(), FALLING, FLOOR, restitution=0.6, arrested=True)
    assert_close(arrested.impulse, after.impulse)


@pytest.mark.covers("RBDA 11.7", by=impact)
def test_hit_on_a_body_of_a_mechanism(rng):
    """``λ = -(1 + e) ζ / (tᵀ H⁻¹ t)``, and the loss that goes with it."""
    m = _floating()
    q = m.integrate(m.neutral(), rng.normal(size=m.nv))
    c = contacts_at([rng.normal(size=3)], [rng.normal(size=3)], bodies=[(0, 3)])
    t, A = jacobian(m, q, c)[0, 0], kt.inverse_mass_matrix(m, q)
    qd = rng.normal(size=m.nv)
    qd = qd if t @ qd < 0 else -qd
    for e in (0.0, 0.5, 1.0):
        after = impact(m, q, qd, c, restitution=e)
        zeta, M = t @ qd, t @ A @ t
        assert_close(after.impulse[0, 0], -(1 + e) * zeta / M, ulps=1e4)
        assert_close(t @ after.qd, -e * zeta, scale=abs(zeta), ulps=1e4)
        energy = kt.kinetic_energy(m, q, qd)
        assert_close(after.energy_change, -(1 - e**2) * zeta**2 / (2 * M), scale=energy, ulps=1e4)
        change = kt.kinetic_energy(m, q, after.qd) - energy
        assert_close(after.energy_change, change, scale=energy, ulps=1e4)


@pytest.mark.covers("RBDA 11.7", by=(impact, mobility))
def test_loops_answer_with_impulses_of_their_own(rng):
    m = kt.samples.four_bar()
    q = np.array(m.posture("home").q) if m.postures else m.neutral()
    qd = project_velocity(m, q, np.ones(m.nv))
    body = m.body_count
    p = kt.pose(m, q, m.body_names[body])[:3, 3] + [0.02, 0.01, 0.03]
    v = kt.velocity(m, q, qd, m.body_names[body])
    normal = -(v[3:] + np.cross(v[:3], p)) + np.array([0.1, 0.05, 0.02])
    c = contacts_at([p], [normal], bodies=[(0, body)])
    zeta = (jacobian(m, q, c)[0] @ qd)[0]
    if zeta > 0:
        qd, zeta = -qd, -zeta
    after = impact(m, q, qd, c, restitution=0.7, friction=0.1)
    assert after.velocity[0, 0] == pytest.approx(-0.7 * zeta)
    assert after.residuals.loops < 1e-12
    assert after.residuals.momentum < 1e-12
    assert len(after.loop_impulse)
    assert after.energy_change < 0
    with pytest.raises(kt.LoopError, match=r"opens the loops"):
        impact(m, q, qd + rng.normal(size=m.nv), c)


# --- laws -----------------------------------------------------------------------------------------


@pytest.mark.covers("RBDA 11.7", by=impact)
def test_laws_differ_where_sliding_stops_and_agree_elsewhere():
    """A slanted rod; closed forms of the planar impact, slip that reverses included."""
    inertia = kt.Inertia.from_mass_center(1.0, np.zeros(3), np.diag([1 / 12, 1 / 12, 1e-4]))
    m = kt.ModelBuilder("rod").body("rod", joint=kt.Free(), inertia=inertia).build()
    c = contacts_at([[0.25, 0, -0.45]], [[0, 0, 1]], bodies=[(0, 1)])
    fast = np.array([0, 0, 0, 40.0, 0, -1.0])
    same = [impact(m, m.neutral(), fast, c, law=k, restitution=0.5, friction=0.2) for k in LAWS]
    for other in same[1:]:
        assert_close(other.qd, same[0].qd, ulps=1000)
    J = jacobian(m, m.neutral(), c)[0]
    W = (J @ kt.inverse_mass_matrix(m, m.neutral()) @ J.T)[:2, :2]
    for v, mu in ((-0.2, 0.2), (0.2, 0.6)):  # slides back; sticks
        hit = (m, m.neutral(), np.array([0, 0, 0, v, 0, -1.0]), c)
        found = {k: impact(*hit, law=k, restitution=0.5, friction=mu) for k in LAWS}
        assert found["newton"].velocity[0, 0] == pytest.approx(0.5)
        assert np.ptp([found[k].impulse[0, 0] for k in LAWS]) > 1e-3
        expected = _planar_poisson(W, np.array([-1.0, v]), 0.5, mu)
        assert_close(found["poisson"].impulse[0, :2], expected, ulps=1000)
        total = found["energetic"].impulse[0, :2]
        assert_close(_planar_work(W, np.array([-1.0, v]), total[0], mu), 0.0, scale=1, ulps=1000)
        for after in found.values():
            assert after.energy_change < 0


def _planar_poisson(W, zeta, e, mu):
    """Routh's construction in the plane, with the sliding that stops before compression ends."""
    c = np.array([1.0, -mu * np.sign(zeta[1])])
    stop = -zeta[1] / (W @ c)[1]
    at_stop = zeta + W @ c * stop
    assert stop > 0 > at_stop[0]
    stick = -W[0, 1] / W[1, 1]
    on = np.array([1.0, stick if abs(stick) <= mu else mu * np.sign(stick)])
    compression = stop - at_stop[0] / (W @ on)[0]
    return c * stop + on * ((1 + e) * compression - stop)


def _planar_work(W, zeta, total, mu, e=0.5):
    """Work of restitution and ``e²`` times that of compression: zero by Stronge's law."""
    pressed = _planar_poisson(W, zeta, 0.0, mu)[0]
    p = np.linspace(0, total, 200_001)
    stop = -zeta[1] / (W @ [1.0, -mu * np.sign(zeta[1])])[1]
    stick = -W[0, 1] / W[1, 1]
    on = stick if abs(stick) <= mu else mu * np.sign(stick)
    first, then = W @ [1.0, -mu * np.sign(zeta[1])], W @ [1.0, on]
    speed = zeta[0] + first[0] * np.minimum(p, stop) + then[0] * np.maximum(p - stop, 0)
    exact = [_integral(speed, p, p <= pressed), _integral(speed, p, p >= pressed)]
    return round(exact[1] + e**2 * exact[0], 9)


def _integral(y, x, where):
    y, x = y[where], x[where]
    return float(np.sum((y[1:] + y[:-1]) * np.diff(x)) / 2)


@pytest.mark.covers("RBDA 11.7", by=single_impact)
def test_poisson_and_energetic_laws_never_create_energy(rng):
    for _ in range(15):
        B, zeta = rng.normal(size=(3, 5)), rng.normal(size=3)
        W, e, mu = B @ B.T, rng.uniform(), rng.uniform(0, 1.5)
        zeta[0] = -abs(zeta[0])
        for law in LAWS:
            lam = single_impact(W, zeta, e, mu, law)
            after = zeta + W @ lam
            assert after[0] >= -1e-12
            assert np.hypot(*lam[1:]) <= mu * lam[0] * (1 + 1e-12)
            if law == "newton":
                assert_close(after[0], -e * zeta[0], scale=1, ulps=1000)
            else:
                assert lam @ (zeta + after) <= 1e-14


@pytest.mark.covers("RBDA 11.7", by=impact)
def test_double_pendulum_with_friction_gains_energy_by_newtons_law():
    """The example of Kane and Levinson: two rods, the lower one hits the ground with its tip."""
    rod = kt.Inertia.from_mass_center(1.0, [0, 0, -0.5], np.diag([1 / 12, 1 / 12, 1e-6]))
    rods = kt.ModelBuilder("rods").body("upper", joint=kt.Revolute("y"), inertia=rod)
    rods = rods.body(
        "lower", on="upper", joint=kt.Revolute("y"), at=kt.xlt([0, 0, -1.0]), inertia=rod
    ).build()
    q = -np.deg2rad([20.0, 10.0])
    qd = np.array([0.1, 0.1])
    tip = kt.pose(rods, q, "lower") @ [0, 0, -1.0, 1]
    c = contacts_at([tip[:3]], [[0, 0, 1]], bodies=[(0, 2)])
    hit = {"restitution": 0.9, "friction": 0.7}
    with pytest.raises(ImpactError, match=r"'newton' would create .* use law='energetic'"):
        impact(rods, q, qd, c, law="newton", **hit)
    for law in LAWS[1:]:
        assert impact(rods, q, qd, c, law=law, **hit).energy_change < 0


def test_wedged_mechanism_is_reported():
    """A rod on a hinge that hits the ground within the cone of friction cannot bounce."""
    rod = kt.Inertia.from_mass_center(1.0, [0, 0, -0.5], np.diag([1 / 12, 1 / 12, 1e-6]))
    m = kt.ModelBuilder("rod").body("rod", joint=kt.Revolute("y"), inertia=rod).build()
    q, qd = np.array([-np.deg2rad(30)]), np.array([1.0])
    tip = kt.pose(m, q, "rod") @ [0, 0, -1.0, 1]
    c = contacts_at([tip[:3]], [[0, 0, 1]], bodies=[(0, 1)])
    for law in ("newton", "energetic"):
        with pytest.raises(ImpactError, match=r"no normal impulse can part them"):
            impact(m, q, qd, c, law=law, restitution=0.5, friction=0.7)
    stuck = impact(m, q, qd, c, law="poisson", restitution=0.5, friction=0.7)
    assert_close(stuck.qd, [0.0], scale=1)
    free = impact(m, q, qd, c, law="newton", restitution=0.5, friction=0.4)
    assert_close(free.velocity[0, 0], 0.5 * np.sin(np.deg2rad(30)))


def test_turning_slip_does_not_depend_on_the_axes_of_the_tangents(rng):
    """The same impact in turned base coordinates."""
    inertia = kt.Inertia.from_mass_center(1.0, np.zeros(3), np.diag([0.1, 0.02, 0.08]))
    m = kt.ModelBuilder("body").body("body", joint=kt.Free(), inertia=inertia).build()
    point, normal, qd = rng.normal(size=3), np.array([0.1, 0.2, 1.0]), rng.normal(size=6)
    qd[5] -= 5
    results = []
    for turn in (np.eye(3), kt.rotx(0.7).E, kt.rotz(2.0).E):
        turned = _rebuilt(_turned(inertia, turn))
        c = contacts_at([turn @ point], [turn @ normal], bodies=[(0, 1)])
        v = np.concatenate([turn @ qd[:3], turn @ qd[3:]])
        after = impact(turned, m.neutral(), v, c, law="energetic", restitution=0.5, friction=0.3)
        results.append(np.concatenate([turn.T @ after.qd[:3], turn.T @ after.qd[3:]]))
    assert_close(results[1], results[0], scale=10, ulps=1e6)
    assert_close(results[2], results[0], scale=10, ulps=1e6)


def _turned(inertia, E):
    return kt.Inertia.from_mass_center(1.0, np.zeros(3), E @ inertia.rotational @ E.T)


def _rebuilt(inertia):
    return kt.ModelBuilder("body").body("body", joint=kt.Free(), inertia=inertia).build()


# --- patches --------------------------------------------------------------------------------------


@pytest.mark.covers("RBDA 11.7", by=impact)
def test_tangential_and_torsional_restitution(ball):
    q = ball.neutral()
    superball = impact(
        ball, q, FALLING, FLOOR, restitution=1.0, friction=10.0, tangential_restitution=1.0
    )
    assert_close(superball.qd, [0, 20 / 7, 0, 3 / 7, 0, 2.0])
    assert superball.energy_change == pytest.approx(0, abs=1e-14)
    spinning = np.array([0, 0, 3.0, 0, 0, -2.0])
    gripped = impact(
        ball, q, spinning, FLOOR, restitution=0.5, torsional_friction=1.0, torsional_restitution=0.4
    )
    assert gripped.qd[2] == pytest.approx(-1.2)
    assert_close(gripped.couple, [[-4.2 * 0.1]])
    slipping = impact(ball, q, spinning, FLOOR, restitution=0.5, torsional_friction=0.01)
    assert_close(slipping.couple, [[-0.01 * 3.0]])
    slides = impact(
        ball, q, FALLING, FLOOR, restitution=0.6, friction=0.05, tangential_restitution=0.3
    )
    assert_close(slides.impulse, [[3.2, -0.16, 0]])
    assert slides.energy_change < 0


# --- several points -------------------------------------------------------------------------------


def cradle(n):
    builder = kt.ModelBuilder("cradle")
    for k in range(n):
        inertia = kt.shapes.sphere(0.5, mass=2.0)
        builder = builder.body(f"ball{k}", on="base", joint=kt.Prismatic("x"), inertia=inertia)
    points = [[k + 0.5, 0, 0] for k in range(n - 1)]
    touching = contacts_at(
        points, [[1, 0, 0]] * (n - 1), bodies=[(k, k + 1) for k in range(1, n)]
    )  # fmt: skip
    return builder.build(), np.arange(float(n)), touching


@pytest.mark.covers("RBDA 11.7", by=impact)
@pytest.mark.parametrize("law", LAWS)
def test_newtons_cradle(law):
    m, q, c = cradle(3)
    one = impact(m, q, [1.0, 0, 0], c, law=law, restitution=1.0, order="sequential")
    assert_close(one.qd, [0, 0, 1.0])
    two = impact(m, q, [1.0, 1.0, 0], c, law=law, restitution=1.0, order="sequential")
    assert_close(two.qd, [0, 1.0, 1.0])
    together = impact(m, q, [1.0, 0, 0], c, law=law, restitution=1.0)
    assert_close(together.qd, [-1 / 3, 2 / 3, 2 / 3], ulps=1e4)
    assert together.energy_change == pytest.approx(0, abs=1e-12)
    lossy = impact(m, q, [1.0, 0, 0], c, law=law, restitution=0.5)
    assert_close(lossy.qd, [0, 0.5, 0.5], ulps=1e4)
    m, q, c = cradle(5)
    plastic = impact(m, q, np.eye(5)[0], c, law=law, restitution=0.0)
    assert_close(plastic.qd, np.full(5, 0.2), ulps=1e5)
    after = impact(m, q, np.eye(5)[0], c, law=law, restitution=0.0, order="sequential")
    assert_close(after.qd, np.full(5, 0.2), scale=1e6)
    assert after.residuals.solver < 1e-10


@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
@pytest.mark.parametrize("law", LAWS)
def test_several_impacts_with_friction_obey_cones_and_create_no_energy(law, order, rng):
    box = kt.ModelBuilder("box").body(
        "box", joint=kt.Free(), inertia=kt.shapes.box(0.4, 0.3, 0.2, mass=2.0)
    ).build()  # fmt: skip
    corners = [[x, y, -0.1] for x in (-0.2, 0.2) for y in (-0.15, 0.15)]
    c = contacts_at(corners, [[0, 0, 1]] * 4, bodies=[(0, 1)] * 4)
    refused = []
    for _ in range(3):
        qd = rng.normal(size=6) - [0, 0, 0, 0, 0, 2]
        try:
            after = impact(
                box, box.neutral(), qd, c, law=law, restitution=0.5, friction=0.3, order=order
            )
        except ImpactError as error:
            refused.append((law, str(error)))
            continue
        assert after.energy_change < 0
        assert after.residuals.approach < 1e-8
        assert after.residuals.cone < 1e-8
        assert after.residuals.momentum < 1e-12
    assert all(law == "newton" and "would create" in message for law, message in refused)


def test_flat_landing_is_the_same_whatever_the_law(rng):
    """A box that falls flat and slides: all contacts share the load, and slip keeps its way."""
    box = kt.ModelBuilder("box").body(
        "box", joint=kt.Free(), inertia=kt.shapes.box(2.0, 2.0, 0.01, mass=2.0)
    ).build()  # fmt: skip
    corners = [[x, y, 0.0] for x in (-1, 1) for y in (-1, 1)]
    c = contacts_at(corners, [[0, 0, 1]] * 4, bodies=[(0, 1)] * 4)
    qd = np.array([0, 0, 0, 5.0, 0, -1.0])
    for law in LAWS:
        after = impact(box, box.neutral(), qd, c, law=law, restitution=0.5, friction=0.2)
        assert_close(after.qd, [0, 0, 0, 5 - 0.2 * 1.5, 0, 0.5], ulps=1e6)


def test_points_that_do_not_feel_one_another_are_impacts_of_their_own(ball):
    two = kt.ModelBuilder("two")
    for name in ("a", "b"):
        two = two.body(
            name, on="base", joint=kt.Free(), inertia=kt.shapes.sphere(0.5, mass=1.0)
        )  # fmt: skip
    m = two.build()
    c = contacts_at([[0, 0, -0.5]] * 2, [[0, 0, 1]] * 2, bodies=[(0, 1), (0, 2)])
    qd = np.concatenate([FALLING, [0, 0, 0, 0, 3.0, -1.0]])
    after = impact(m, m.neutral(), qd, c, law="energetic", restitution=[0.6, 0.2], friction=0.8)
    alone = impact(ball, ball.neutral(), FALLING, FLOOR, restitution=0.6, friction=0.8)
    assert_close(after.qd[:6], alone.qd)
    assert after.qd[11] == pytest.approx(0.2)
    assert after.residuals.solver == 0


# --- capture --------------------------------------------------------------------------------------


def test_capture_takes_all_relative_motion():
    m = kt.ModelBuilder("pair")
    for name in ("a", "b"):
        m = m.body(name, on="base", joint=kt.Free(), inertia=kt.shapes.sphere(0.5, mass=1.0))
    m = m.build()
    q = m.neutral().copy()
    q[7] = 1.0
    c = contacts_at([[0.5, 0, 0]], [[1, 0, 0]], bodies=[(1, 2)])
    leaving = np.zeros(12)
    leaving[9] = 2.0
    for weld in (False, True):
        after = capture(m, q, leaving, c, weld=weld)
        assert_close(after.velocity, np.zeros((1, 3)), scale=1)
        assert after.impulse[0, 0] < 0  # it pulls
        assert after.energy_change < 0
        p = kt.momentum(m, q, leaving), kt.momentum(m, q, after.qd)
        assert_close(p[1], p[0], scale=2)
        assert max(after.residuals) < 1e-12


# --- errors ---------------------------------------------------------------------------------------


def test_named_errors(ball):
    q, hit = ball.neutral(), (FALLING, FLOOR)
    with pytest.raises(kt.UnknownNameError, match=r"no law of restitution 'newtom'.*newton"):
        impact(ball, q, *hit, law="newtom")
    with pytest.raises(kt.UnknownNameError, match=r"order must be one of simultaneous, sequential"):
        impact(ball, q, *hit, order="first")
    with pytest.raises(kt.ShapeError, match=r"restitution must be a number or 1 numbers, from 0"):
        impact(ball, q, *hit, restitution=1.2)
    with pytest.raises(
        kt.ShapeError, match=r"friction must be a number or 1 numbers, not negative"
    ):
        impact(ball, q, *hit, friction=-0.1)
    with pytest.raises(kt.ShapeError, match=r"an impact takes one sample"):
        impact(ball, q, np.zeros((3, 6)), FLOOR)
    with pytest.raises(
        ImpactError, match=r"takes a coefficient of 0.0892857, and friction has 0.05"
    ):
        impact(ball, q, *hit, restitution=0.6, friction=0.05, arrested=True)
    with pytest.raises(kt.ShapeError, match=r"torsional friction not negative"):
        impact(ball, q, *hit, torsional_friction=-1.0)
    with pytest.raises(kt.ShapeError, match=r"an impulse is a Force or six numbers"):
        body_collisions.joint_space_impulse(ball, q, "ball", np.zeros(3))


def test_what_solvers_did_not_find_is_said(monkeypatch):
    m, q, c = cradle(3)
    hit = (m, q, [1.0, 0, 0], c)
    monkeypatch.setattr(several, "_ROUNDS", 1)
    with pytest.raises(ImpactError, match=r"1 impacts one after the other at 2 .*'simultaneous'"):
        impact(*hit, restitution=1.0, order="sequential")
    solve = several.cones.solve

    def lazy(*args, **options):
        found = solve(*args, **options)
        return found._replace(converged=False, residuals=found.residuals._replace(scaled=0.1))

    monkeypatch.setattr(several.cones, "solve", lazy)
    with pytest.raises(ImpactError, match=r"no impulses were found for 2 .*use order='sequential'"):
        impact(*hit, restitution=0.0)


def test_scene_says_where_and_how_rough():
    m = kt.ModelBuilder("ball").body(
        "ball", joint=kt.Free(), inertia=kt.shapes.sphere(0.5, mass=1.0)
    ).build()  # fmt: skip
    m = with_ground(m.replace(geometry=(Geometry(1, Sphere(0.5), name="ball"),)))
    q = m.neutral().copy()
    q[2] = 0.5
    scene = Scene(m, friction=0.8, restitution=0.6)
    after = impact(m, q, FALLING, scene)
    assert_close(after.impulse, [[3.2, -2 / 7, 0]])
    q[2] = 0.6
    assert impact(m, q, FALLING, scene).contacts.size == 0


def test_open_contacts_take_no_part(ball):
    above = FLOOR._replace(gap=np.array([1e-3]))
    after = impact(ball, ball.neutral(), FALLING, above, restitution=0.6)
    assert_close(after.qd, FALLING)
    assert after.impulse.shape == (0, 3)


def test_arrested_impacts_are_of_all_contacts_at_once(ball):
    with pytest.raises(kt.errors.ImpactError, match=r"arrested=True.*order='simultaneous' only"):
        impact(ball, ball.neutral(), FALLING, FLOOR, arrested=True, order="sequential")


def corners(half, up=0.0):
    """Contacts of the corners of a rectangle with half sides, ``up`` below the mass centre."""
    n = len(half)
    points = np.array([[i * half[0], j * half[1], -up] for i in (1, -1) for j in (1, -1)])
    normal = np.tile([0, 0, 1.0], (4, 1))
    assert n == 2
    return Contacts(np.zeros(4, int), np.ones(4, int), points, normal, np.zeros(4))


@pytest.mark.covers("RBDA 11.7", by=(impact, patch_impacts))
@pytest.mark.parametrize("law", LAWS)
def test_superball_reverses_its_spin_under_every_law(ball, law):
    """The normal and the tangents do not feel each other, so that all laws say the same."""
    options = {"friction": 10.0, "tangential_restitution": 1.0, "law": law}
    after = impact(ball, ball.neutral(), FALLING, FLOOR, restitution=1.0, **options)
    assert_close(after.qd, [0, 20 / 7, 0, 3 / 7, 0, 2.0], ulps=100)
    assert abs(after.energy_change) < 1e-12


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("e", [1.0, 0.5])
def test_plate_on_four_rough_points_goes_back_the_way_it_came(law, e):
    """Coupled contacts in one plane with the mass centre: all velocities are reversed, times e."""
    plate = kt.ModelBuilder("plate").body(
        "plate", joint=kt.Free(), inertia=kt.shapes.box(0.4, 0.3, 0.02, mass=2.0)
    )
    m, qd = plate.build(), np.array([0, 0, 3.0, 0.7, -0.2, -2.0])
    after = impact(
        m, m.neutral(), qd, corners((0.2, 0.15)), law=law, restitution=e, friction=50.0,
        tangential_restitution=e,
    )  # fmt: skip
    assert_close(after.qd, -e * qd, scale=3, ulps=1e5)
    kinetic = kt.kinetic_energy(m, m.neutral(), qd)
    assert abs(after.energy_change + (1 - e * e) * kinetic) < 1e-10


@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
@pytest.mark.parametrize("law", LAWS)
def test_patches_that_feel_one_another_keep_all_laws(law, order, rng):
    m = kt.ModelBuilder("box").body(
        "box", joint=kt.Free(), inertia=kt.shapes.box(0.4, 0.3, 0.2, mass=2.0)
    ).build()  # fmt: skip
    found = 0
    for _ in range(4):
        qd = rng.normal(size=6) - [0, 0, 0, 0, 0, 2.0]
        mu, mu_r, e, e_t, e_r = *rng.uniform([0.1, 0.01], [1.0, 0.1]), *rng.uniform(0, 0.8, 3)
        try:
            after = impact(
                m, m.neutral(), qd, corners((0.2, 0.15), 0.1), law=law, order=order, restitution=e,
                friction=mu, tangential_restitution=e_t, torsional_friction=mu_r,
                torsional_restitution=e_r,
            )  # fmt: skip
        except ImpactError:  # what would create energy is refused
            assert law != "energetic"
            continue
        found += 1
        assert after.contact_work <= 1e-12
        assert np.all(after.velocity[:, 0] > -1e-8)
        assert after.residuals.cone < 1e-9
        assert after.residuals.momentum < 1e-12
        normal = after.impulse[:, 0]
        assert np.all(np.abs(after.couple[:, 0]) <= mu_r * normal * (1 + 1e-6) + 1e-9)
    assert found


@pytest.mark.parametrize("law", LAWS)
def test_arrested_impacts_follow_every_law(law, ball):
    """A smooth sphere: all laws agree. A leaning beam: each its own normal impulse, no sliding."""
    after = impact(ball, ball.neutral(), FALLING, FLOOR, restitution=0.6, arrested=True, law=law)
    assert_close(after.qd, [0, 10 / 7, 0, 5 / 7, 0, 1.2], ulps=100)
    inertia = kt.shapes.box(0.1, 0.2, 1.0, mass=1.0)
    beam = kt.ModelBuilder("beam").body("beam", joint=kt.Free(), inertia=inertia)
    m, lean = beam.build(), np.array([0.3, 0, -0.4])
    tip = FLOOR._replace(point=lean[None])
    qd = np.array([0, 0, 0, 0.5, 0, -1.0])
    pressed = impact(m, m.neutral(), qd, tip, restitution=0.0, arrested=True, law=law)
    after = impact(m, m.neutral(), qd, tip, restitution=0.5, arrested=True, law=law)
    assert_close(after.velocity[0, 1:], [0, 0], scale=1)
    more = after.impulse[0] - pressed.impulse[0]
    absorbed = pressed.impulse[0, 0] / 2  # at 1 m/s to begin with
    restored = {
        "newton": (after.velocity[0, 0], 0.5),
        "poisson": (more[0], 0.5 * pressed.impulse[0, 0]),
        "energetic": (more[0] * after.velocity[0, 0] / 2, 0.25 * absorbed),
    }
    assert_close(*restored[law], ulps=1e4)
    assert after.contact_work < 0


def test_arrested_sliding_and_its_restitution_contradict_each_other(ball):
    with pytest.raises(
        kt.errors.ImpactError, match=r"arrested=True.*tangential_restitution.*leave out"
    ):
        impact(ball, ball.neutral(), FALLING, FLOOR, arrested=True, tangential_restitution=0.5)


def _rocking_block():
    """Of a block that rocks from one edge onto the other: ``W``, velocities, restitution."""
    half = np.array([0.1, 0.15, 0.2])
    corners = np.array([[i, j, -1] for i in (1, -1) for j in (1, -1)]) * half
    J = np.array([np.hstack([np.cross(np.eye(3), p), np.eye(3)])[[2, 0, 1]] for p in corners])
    mobility = np.diag([*(3 / (half**2 @ (1 - np.eye(3)))), 1, 1, 1])
    W = np.einsum("nav,vw,mbw->namb", J, mobility, J)
    qd = np.array([-1.0, 0, 0, 0, -0.2, -0.15])  # about the edge at y = -0.15, which is at rest
    zeta = J @ qd
    return W, zeta, np.where(np.abs(zeta[:, 0]) > 1e-4, 0.3, 0.0)


@pytest.mark.parametrize("law", ["poisson", "energetic"])
def test_contacts_are_counted_without_the_twins_of_restitution(monkeypatch, law):
    W, zeta, e = _rocking_block()
    assert_close(np.sort(zeta[:, 0]), [-0.3, -0.3, 0, 0], scale=1.0)
    solve, tried = several.cones.solve, []

    def stuck(A, b, mu, **options):
        """The solver without an end where the friction of restitution has rows of its own."""
        tried.append(options.get("method", "newton"))
        found = solve(A, b, mu, **options)
        if len(mu) == 4:
            return found
        return found._replace(
            converged=False, residuals=found.residuals._replace(scaled=1.0), certificate=None
        )

    monkeypatch.setattr(several.cones, "solve", stuck)
    with pytest.raises(kt.errors.ImpactError, match=r"found for 4 contacts that are hit together"):
        several.simultaneous_impacts(W, zeta, e, np.full(4, 0.5), law)
    assert {"newton", "admm", "pgs"} <= set(tried)


def test_where_newtons_method_has_no_end_other_methods_find_the_impulses(monkeypatch):
    W, zeta, e = _rocking_block()
    expected, _ = several.simultaneous_impacts(W, zeta, e, np.full(4, 0.5), "poisson")
    solve = several.cones.solve

    def fails_at_first(A, b, mu, **options):
        found = solve(A, b, mu, **options)
        if options:
            return found
        bad = found.residuals._replace(scaled=1.0)
        return found._replace(lam=0 * found.lam, converged=False, residuals=bad, certificate=None)

    monkeypatch.setattr(several.cones, "solve", fails_at_first)
    found, error = several.simultaneous_impacts(W, zeta, e, np.full(4, 0.5), "poisson")
    after = [zeta + np.einsum("namb,mb->na", W, lam) for lam in (expected, found)]
    np.testing.assert_allclose(after[1], after[0], atol=1e-8)
    assert error <= 1e-9


# --- against the differential equation of the course, and against all active sets -----------------


def _by_small_steps(W, zeta, e, mu, law, least=1e-7):
    """The course with friction ``-μ ζ_t/√(ζ_t² + least²)``, by an implicit method."""

    def rates(p, y):
        v = zeta + W @ y[:3]
        c = np.array([1.0, *(-mu * v[1:] / np.sqrt(v[1:] @ v[1:] + least**2))])
        return [*c, v[0]]

    def rest(p, y):
        return (zeta + W @ y[:3])[0]

    def end(p, y):
        if law == "newton":
            return rest(p, y) + e * zeta[0]
        return p - stop if law == "poisson" else y[3] - stop

    rest.terminal = end.terminal = True
    options = {"method": "Radau", "rtol": 1e-8, "atol": 1e-10}
    far = 100 * abs(zeta[0]) / W[0, 0]
    half = solve_ivp(rates, (0, far), np.zeros(4), events=rest, **options)
    y, p = half.y[:, -1], half.t[-1]
    stop = (1 + e) * p if law == "poisson" else (1 - e**2) * y[3]
    if e == 0:
        return y[:3]
    return solve_ivp(rates, (p, p + far), y, events=end, **options).y[:3, -1]


LEVEL = [[1.0, 0.3, -0.2], [0.3, 2.0, 0.4], [-0.2, 0.4, 1.0]]
STEEP = [[1.0, -0.6, 0.5], [-0.6, 2.0, 0.4], [0.5, 0.4, 1.5]]
COURSES = {
    "turns, then sticks": (LEVEL, [-1, 0.3, 0.4], 0.9),
    "slides on": (LEVEL, [-1, 2.0, 1.4], 0.3),
    "stops and slides off": (STEEP, [-1, 0.1, 0.15], 0.3),
    "begins at rest": (STEEP, [-1, 0.0, 0.0], 0.2),
    "in a plane": ([[1.0, 0.7, 0.0], [0.7, 2.0, 0.0], [0.0, 0.0, 1.0]], [-1, 0.2, 0.0], 0.25),
}


@pytest.mark.parametrize("name", COURSES)
@pytest.mark.parametrize("law", LAWS)
def test_single_impacts_follow_the_differential_equation_of_friction(name, law):
    W, zeta, mu = (np.array(x) for x in COURSES[name])
    for size in (1.0, 1e3):  # heavier bodies, faster ones
        lam = single_impact(W / size, 2 * zeta, 0.6, float(mu), law)
        expected = 2 * size * _by_small_steps(W, zeta, 0.6, mu, law)
        np.testing.assert_allclose(lam, expected, atol=2e-6 * np.max(expected))


def _every_active_set(W, b):
    """``λ ≥ 0``, ``W λ + b ≥ 0``, complementary, by trying; the velocities are unique."""
    for active in product([False, True], repeat=len(b)):
        at, lam = np.flatnonzero(active), np.zeros(len(b))
        lam[at] = np.linalg.lstsq(W[np.ix_(at, at)], -b[at], rcond=None)[0]
        if min(lam) >= -1e-12 and min(W @ lam + b) >= -1e-12:
            return lam
    raise AssertionError


def test_simultaneous_impacts_without_friction_are_the_linear_problem(rng):
    """Newton's law, Poisson's and the energetic one, also where some bodies part already."""
    parting = 0
    for _ in range(12):
        n = int(rng.integers(2, 5))
        J = rng.normal(size=(n, 3, 6))
        W, zeta = np.einsum("nav,mbv->namb", J, J), J @ rng.normal(size=6)
        e, N = rng.uniform(0, 1, n), W[:, 0, :, 0]
        if np.all(zeta[:, 0] >= 0):
            continue
        parting += np.any(zeta[:, 0] > 0)
        none, v = np.zeros(n), zeta[:, 0]
        newton, _ = several.simultaneous_impacts(W, zeta, e, none, "newton")
        expected = _every_active_set(N, v + e * np.minimum(v, 0))
        assert_close(newton[:, 0], expected, ulps=1e6)
        assert_close(newton[:, 1:], np.zeros((n, 2)))
        pressed = _every_active_set(N, v)
        poisson, _ = several.simultaneous_impacts(W, zeta, e, none, "poisson")
        given = (1 + e) * pressed
        assert_close(poisson[:, 0], given + _every_active_set(N, v + N @ given), ulps=1e6)
        energetic, _ = several.simultaneous_impacts(W, zeta, e, none, "energetic")
        half, after = v + N @ pressed, v + N @ energetic[:, 0]
        released = energetic[:, 0] - pressed
        target = max(np.sum(e**2 * -pressed * (v + half) / 2), 0.0)
        assert_close(released @ (half + after) / 2, target, ulps=1e6, scale=1)
        assert min(after) >= -1e-9
    assert parting > 3


def test_sequential_impacts_are_single_ones_in_the_order_of_approach(rng):
    for law in LAWS[1:]:
        J = rng.normal(size=(3, 3, 6))
        W, zeta = np.einsum("nav,mbv->namb", J, J), J @ rng.normal(size=6)
        zeta[:, 0] = -np.abs(zeta[:, 0])
        e, mu = np.array([0.3, 0.5, 0.1]), np.array([0.2, 0.0, 0.4])
        impulse, now = np.zeros((3, 3)), zeta.copy()
        while np.min(now[:, 0]) < -1e-9 * np.max(-zeta[:, 0]):
            k = int(np.argmin(now[:, 0]))
            step = single_impact(W[k, :, k], now[k], e[k], mu[k], law)
            impulse[k] += step
            now += W[:, :, k] @ step
        found, _ = several.sequential_impacts(W, zeta, e, mu, law)
        assert_close(found, impulse, ulps=1e8)


def test_prescribed_motion_takes_part_in_the_energy(ball):
    """On a lift that rises: of the bodies' energy before and after, the drive gives the rest."""
    lift = kt.ModelBuilder("lift").body(
        "lift", joint=kt.Prismatic("z"), inertia=kt.shapes.sphere(0.5, mass=3.0)
    )
    m = lift.body(
        "ball",
        on="lift",
        joint=kt.Prismatic("z"),
        at=kt.xlt([0, 0, 1.0]),
        inertia=kt.shapes.sphere(0.5, mass=2.0),
    ).build()
    c = contacts_at([[0, 0, 0.5]], [[0, 0, 1]], bodies=[(1, 2)])
    q, qd = np.zeros(2), np.array([1.5, -2.0])
    after = impact(m, q, qd, c, restitution=0.5, given=m.joint_names[0])
    assert_close(after.qd, [1.5, 1.0])
    assert_close(after.impulse, [[6.0, 0, 0]])
    before, then = (kt.kinetic_energy(m, q, v) for v in (qd, after.qd))
    assert_close(after.energy_change, then - before)
    assert_close(after.contact_work, 2.0 * (1.0**2 - 2.0**2) / 2)
    assert after.residuals.approach == 0
    assert after.residuals.momentum < 1e-14
    with pytest.raises(ImpactError, match=r"contact '0' closes at 2 m/s, and no impulse stops it"):
        impact(m, q, qd, c, given=m.joint_names)
    named = c._replace(names=("deck",))
    with pytest.raises(ImpactError, match=r"contact 'deck' closes at 2 m/s"):
        impact(m, q, qd, named, given=m.joint_names)


def test_arrested_and_patch_impacts_of_many_points_are_those_of_each(rng):
    """Bodies apart, some of which part already; with coefficients of their own."""
    builder = kt.ModelBuilder("balls")
    for k in range(3):
        builder = builder.body(
            f"b{k}", on="base", joint=kt.Free(), inertia=kt.shapes.sphere(0.5, mass=1.0 + k)
        )
    m, one = builder.build(), contacts_at([[0, 0, -0.5]], [[0, 0, 1]], bodies=[(0, 1)])
    c = contacts_at([[0, 0, -0.5]] * 3, [[0, 0, 1]] * 3, bodies=[(0, 1), (0, 2), (0, 3)])
    qd = rng.normal(size=(3, 6))
    qd[:, 5] = [-2.0, 0.5, -1.0]
    e, mu = [0.2, 0.5, 0.7], [0.9, 0.1, 0.05]
    patch = {
        "tangential_restitution": 0.4,
        "torsional_friction": 0.02,
        "torsional_restitution": 0.3,
    }
    for options in ({"friction": mu, **patch}, {"friction": [9.0, 0.0, 9.0], "arrested": True}):
        after = impact(m, m.neutral(), qd.ravel(), c, restitution=e, **options)
        for k in range(3):
            alone = (
                kt.ModelBuilder("ball")
                .body("b", joint=kt.Free(), inertia=kt.shapes.sphere(0.5, mass=1.0 + k))
                .build()
            )
            single = {**options, "friction": options["friction"][k]}
            found = impact(alone, alone.neutral(), qd[k], one, restitution=e[k], **single)
            assert_close(after.qd[6 * k : 6 * k + 6], found.qd, ulps=1000)
            assert_close(after.impulse[k], found.impulse[0], ulps=1000)
    assert_close(after.qd[6:12], qd[1])
    assert_close(after.velocity[[0, 2], 1:], np.zeros((2, 2)), scale=1)


def test_collisions_of_two_bodies_at_their_limits():
    """Slow parting needs no impulse; friction that is just enough is enough."""
    ball = kt.shapes.sphere(0.5, mass=1.0)
    here = (None, Motion.zero(), ball)
    apart = Motion.from_array([0, 0, 0, 1.0, 0, 0.5])
    for collide in (frictionless_collision, arrested_collision):
        found = collide(*here, apart, [0, 0, -0.5], [0, 0, 1], 0.5)
        assert_close(found.impulse, np.zeros(3))
        assert found.energy_change == 0
    hit = (*here, Motion.from_array(FALLING), [0, 0, -0.5], [0, 0, 1], 0.6)
    lam = arrested_collision(*hit).impulse
    needed = np.hypot(lam[1], lam[2]) / lam[0]
    assert_close(arrested_collision(*hit, friction=needed).impulse, lam)
    with pytest.raises(ImpactError, match=r"friction of 0.0892857, there is 0.0892"):
        arrested_collision(*hit, friction=0.9999 * needed)


def test_opening_of_loops_is_measured_in_lengths_of_the_mechanism():
    """The same angles and rates at ten times the size: the same velocity, and the same refusal."""
    found = []
    for size in (1.0, 10.0):
        m = kt.samples.parallel_four_bar(0.5 * size, 0.4 * size)
        q, c = (
            kt.loops.assemble(m, m.neutral()),
            contacts_at([[0, 0, 0]], [[0, 0, 1]], bodies=[(0, 1)]),
        )
        with pytest.raises(
            kt.LoopError, match=r"qd opens the loops .* per second, .*project_vel"
        ) as error:
            impact(m, q, np.arange(1.0, m.nv + 1), c)
        found.append(re.search(r"at (\S+) per second", str(error.value)).group(1))
    assert found[0] == found[1]
