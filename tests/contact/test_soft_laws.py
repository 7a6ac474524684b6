"""Laws of soft contact — RBDA §11.8, (11.73)-(11.79)."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.contact.scene import Scene, with_ground
from kinetree.contact.soft.force import LAWS, NORMAL_LAWS, TANGENTIAL_LAWS, SoftContact
from kinetree.contact.soft.laws import Dahl, HuntCrossley, Linear, Regularized, Stiction
from kinetree.contact.soft.patch import (
    NonlinearPatch,
    Patch,
    SeriesSpring,
    TwoSurfaces,
    lumped,
)
from kinetree.model.geometry import Geometry, Sphere

K, D = 2000.0, 5.0


def drop(law, *, h=4e-4, steps=500, speed=1.0, mass=0.5, gravity=9.81, p0=0.0):
    """Mass on the surface of a law, by Heun's method: gaps, velocities, forces, states."""
    p, v, z, rows = np.array([p0]), np.array([-speed]), law.start(np.array([p0])), []
    for _ in range(steps):
        f, zd = law(z, p, v, 0.0)
        rows.append((p[0], v[0], f[0], *z[0]))
        a = f / mass - gravity
        p1, v1, z1 = p + h * v, v + h * a, z + h * zd
        f1, zd1 = law(z1, p1, v1, h)
        z1 = z + h / 2 * (zd + zd1)
        p, v = p + h / 2 * (v + v1), v + h / 2 * (a + f1 / mass - gravity)
        z = law.end_states(z, z1, p, h)
    return np.array(rows).T


@pytest.mark.covers("RBDA 11.8", by=Patch)
def test_static_depth_and_force_of_a_patch():
    p, v, f, z = drop(Patch(K, 4 * D), speed=0.0, steps=2500)
    assert_close(p[-1], -0.5 * 9.81 / K, ulps=1e8)
    assert abs(v[-1]) < 1e-9
    assert_close(f[-1], 0.5 * 9.81, ulps=1e8)
    assert np.all(f >= 0)
    assert_close(z[1:], p[1:], scale=1e-3)


@pytest.mark.covers("RBDA 11.8", by=Patch)
def test_contact_ends_while_the_body_is_still_below_the_surface():
    """Where ``-K z - D pd`` crosses zero; the patch then recovers on its own, exponentially."""
    p, v, f, z = drop(Patch(K, D), h=1e-4, steps=900, gravity=0.0)
    lost = int(np.flatnonzero(f[1:] == 0)[0]) + 1
    assert p[lost] < -1e-4
    assert (-K * p - D * v)[lost - 1] > 0 >= (-K * p - D * v)[lost]
    t = 1e-4 * np.arange(len(z) - lost - 1)
    assert_close(z[lost + 1 :], z[lost + 1] * np.exp(-K / D * t), scale=1e-4, ulps=1e5)
    assert np.all(p[lost + 1 :] >= z[lost + 1 :])


@pytest.mark.covers("RBDA 11.8", by=Patch)
def test_patch_without_integration_is_the_integrated_one():
    errors = []
    for h in (4e-4, 1e-4):
        laws = Patch(K, D), Patch(K, D, integrated=True)
        (p, v, _, z), (p_i, v_i, _, z_i) = (drop(k, h=h, steps=round(0.1 / h)) for k in laws)
        errors.append([np.max(np.abs(x)) for x in (p - p_i, v - v_i, z - z_i)])
    assert np.all(errors[0] < np.array([1e-5, 1e-3, 2e-4]))
    assert np.all(errors[1] <= 0.5 * np.array(errors[0]))  # at the loss: a step sooner or later


@pytest.mark.covers("RBDA 11.8", by=lumped)
def test_two_surfaces_are_one_where_their_ratios_agree():
    soft, hard = Patch(1000.0, 2.0), Patch(3000.0, 6.0)
    both, one = drop(TwoSurfaces(soft, hard)), drop(Patch(750.0, 1.5, integrated=True))
    assert isinstance(lumped(soft, hard), Patch)
    assert lumped(soft, hard) == Patch(750.0, 1.5)
    assert np.max(np.abs(both[:2] - one[:2])) < 1e-9
    other = drop(TwoSurfaces(soft, Patch(3000.0, 20.0)))
    assert np.max(np.abs(other[:2] - both[:2])) > 1e-3
    with pytest.raises(kt.ModelError, match=r"500 and 150 1/s.*cannot be lumped; use TwoSurfaces"):
        lumped(soft, Patch(3000.0, 20.0))


@pytest.mark.covers("RBDA 11.8", by=NonlinearPatch)
def test_nonlinear_patch_with_linear_elements_is_a_patch():
    law = NonlinearPatch(lambda d: K * d, lambda d: D + 0 * d)
    ours, linear = drop(law), drop(Patch(K, D, integrated=True))
    assert np.max(np.abs(ours - linear)[:2]) < 1e-9
    hard = NonlinearPatch(lambda d: K * d + 1e7 * d**3, lambda d: D + 100 * d)
    assert np.min(drop(hard)[0]) > np.min(linear[0])
    with pytest.raises(kt.ModelError, match=r"must be positive at depth 0"):
        NonlinearPatch(lambda d: K * d, lambda d: D * d)


@pytest.mark.covers("RBDA 11.8", by=SeriesSpring)
def test_series_spring_tends_to_the_patch_and_loses_energy():
    law = SeriesSpring(K, D, 1e5)
    stiff, patch = (drop(k, h=2e-5, steps=2500, gravity=0.0) for k in (law, Patch(K, D)))
    assert np.max(np.abs(stiff[0] - patch[0])) < 5e-4
    p, v, f, z = drop(SeriesSpring(K, D, 4000.0), h=1e-4, steps=1000, gravity=0.0)
    assert np.all(f >= 0)
    assert f[0] == 0
    energy = 0.25 * v**2 + SeriesSpring(K, D, 4000.0).energy(z[:, None], p)
    assert np.all(np.diff(energy) < 1e-5)
    assert abs(v[-1]) < 0.95


@pytest.mark.covers("RBDA 11.8", by=HuntCrossley)
def test_restitution_of_hunt_and_crossley():
    """``e = 1 - α v`` for slow impacts, to first order; never above one."""
    alpha = 0.1
    for v in (0.05, 0.1, 0.2):
        out = drop(HuntCrossley(1e5, alpha), h=2e-4, steps=900, speed=v, gravity=0.0)
        e = out[1][-1] / v
        assert out[2][-1] == 0
        assert e == pytest.approx(1 - alpha * v, abs=2 * (alpha * v) ** 2)
        assert e < 1
    elastic = drop(HuntCrossley(1e5, 0.0, exponent=2), h=2e-4, steps=600, gravity=0.0)
    assert elastic[1][-1] == pytest.approx(1.0, abs=1e-4)
    energy = HuntCrossley(1e5).energy(np.array([-0.01, 0.2]))
    assert_close(energy, [1e5 * 0.01**2.5 / 2.5, 0.0])


@pytest.mark.covers("RBDA 11.8", by=(Linear, Patch))
def test_forces_never_pull_and_never_create_energy(rng):
    """Whatever the motion of the body: the work done on it is not more than it did."""
    laws = (Linear(K, D), Patch(K, D), HuntCrossley(1e5, 0.3), Patch(K, D, integrated=True))
    h = 2e-4
    t = h * np.arange(3000)
    w, c = rng.uniform(5, 60, size=(6, 20)), rng.uniform(0, 7, size=(6, 20))
    p = 0.002 * np.sum(np.sin(w * t[:, None, None] + c), axis=1)
    p = p - p[0] + 0.002  # nothing is stored at the start
    v = 0.002 * np.sum(w * np.cos(w * t[:, None, None] + c), axis=1)
    for law in laws:
        z, work, most = law.start(p[0]), np.zeros(20), np.full(20, -np.inf)
        for p_k, v_k in zip(p, v, strict=True):
            f, zd = law(z, p_k, v_k, 0.0)
            assert np.all(f >= 0)
            work = work + h * f * v_k
            most = np.maximum(most, work)
            z = law.end_states(z, z + h * zd, p_k, h)
        assert np.all(most <= 1e-4)
        assert np.all(work <= 0)


# --- friction -------------------------------------------------------------------------------------


@pytest.mark.covers("RBDA 11.8", by=Stiction)
def test_stiction_clamps_to_the_cone():
    law, f_n, mu = Stiction(1000.0, 2.0), np.array([3.0]), 0.5
    x, v = np.array([[1e-3, 0.0]]), np.array([[0.1, 0.0]])
    f, xd = law(x, v, f_n, mu)
    assert_close(f, [[-1.2, 0]])
    assert_close(xd, v)  # the patch goes with the body
    f, xd = law(2 * x, v, f_n, mu)
    assert_close(f, [[-1.5, 0]])  # the limit, along the axis as (11.79)
    assert_close(xd, [[-(2.0 - 1.5) / 2.0, 0]])
    f, xd = law(x, v, 0 * f_n, mu)
    assert_close(f, [[0, 0]])  # nothing without a normal force
    assert_close(xd, -1000.0 / 2.0 * x)  # and the patch relaxes


@pytest.mark.covers("RBDA 11.8", by=(Stiction, Regularized, Dahl))
@pytest.mark.parametrize("law", [Stiction(1000.0, 2.0), Regularized(1e-2), Dahl(1000.0)])
def test_friction_is_isotropic_within_the_cone_and_against_the_motion(law, rng):
    x = 2e-3 * rng.normal(size=(50, 2))
    v, f_n, mu = rng.normal(size=(50, 2)), rng.uniform(0, 5, size=50), 0.6
    x = x if law.size else np.zeros((50, 0))
    f, xd = law(x, v, f_n, mu)
    assert np.all(np.hypot(*f.T) <= mu * f_n * (1 + 1e-12))
    c, s = np.cos(0.7), np.sin(0.7)
    R = np.array([[c, -s], [s, c]])
    turned = law(x @ R.T if law.size else x, v @ R.T, f_n, mu)
    assert_close(turned[0], f @ R.T, scale=5)
    if law.size:
        assert_close(turned[1], xd @ R.T, scale=100)
    else:
        assert np.all(np.sum(f * v, axis=1) <= 0)


@pytest.mark.covers("RBDA 11.8", by=Stiction)
def test_friction_patch_passes_energy_on_and_creates_none(rng):
    law, h = Stiction(1000.0, 2.0), 1e-4
    x, work, start = np.zeros((1, 2)), 0.0, 0.0
    for k in range(3000):
        v = np.array([[np.cos(0.01 * k), 0.5 * np.sin(0.02 * k)]]) * 0.3
        f, xd = law(x, v, np.array([2.0 + np.sin(0.004 * k)]), 0.5)
        work += h * float(np.sum(f * v))
        x = x + h * xd
        assert work + 500 * float(np.sum(x * x)) <= start + 1e-5
    assert work < 0


def test_named_errors():
    with pytest.raises(kt.ModelError, match=r"stiffness of Patch must be positive and finite"):
        Patch(-1.0, 1.0)
    with pytest.raises(kt.ModelError, match=r"damping of Linear must not be negative and finite"):
        Linear(1.0, -1.0)
    with pytest.raises(kt.ModelError, match=r"must be 1, 1.5, 2, 2.5, \.\.\., got 1.3"):
        HuntCrossley(1e5, 0.1, exponent=1.3)
    with pytest.raises(kt.ModelError, match=r"velocity of Regularized must be positive"):
        Regularized(0.0)
    with pytest.raises(kt.ModelError, match=r"damping differ, 0\.5 and 0\.9 1/s, .* TwoSurfaces"):
        lumped(Patch(1.0, 2.0), Patch(1.8, 2.0))


# --- formulas, contact by contact -----------------------------------------------------------------

GAPS = np.array([[-3e-3, -1e-3, 0.0], [5e-4, 0.4, -2e-3]])
RATES = np.array([[0.8, -0.5, -1.0], [-1.0, -2.0, 0.1]])
STATES = np.array([[-2e-3, -2e-3, -1e-3], [0.0, -3e-3, -2e-3]])


def _one_by_one(formula):
    """A formula of one contact at each of (2, 3) of them."""
    each = [formula(*x) for x in zip(STATES.flat, GAPS.flat, RATES.flat, strict=True)]
    return [np.reshape(part, (2, 3)) for part in zip(*each, strict=True)]


def _pushed(p, pd, k=K, d=D):
    return max(0.0, -k * p - d * pd)


def _pressed(there, p, pd):
    return _pushed(p, pd) if p < there else 0.0


FORMULAS = {
    "linear": (Linear(K, D), lambda z, p, pd: (_pushed(p, pd) if p < 0 else 0.0, 0.0)),
    "hunt_crossley": (
        HuntCrossley(K, 0.9, 2.5),
        lambda z, p, pd: (K * max(-p, 0.0) ** 2.5 * max(0.0, 1 - 1.35 * pd), 0.0),
    ),
    "patch": (
        Patch(K, D),
        lambda z, p, pd: (_pressed(z * np.exp(-K / D * 1e-3) + 1e-10, p, pd), 0.0),
    ),
    "integrated": (
        Patch(K, D, integrated=True),
        lambda z, p, pd: ((f := _pressed(z + 1e-10, p, pd)), -(K * z + f) / D),
    ),
    "nonlinear": (
        NonlinearPatch(lambda s: K * s**2, lambda s: D + s),
        lambda z, p, pd: (
            f := max(0.0, K * max(-p, 0) ** 2 - (D + max(-p, 0)) * pd) if p < z + 1e-10 else 0.0,
            (K * z**2 - f) / (D - z),
        ),
    ),
    "series": (
        SeriesSpring(K, D, 3 * K),
        lambda z, p, pd: ((f := max(0.0, 3 * K * (z - p))), -(K * z + f) / D),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_forces_and_rates_are_those_of_the_formulas(name):
    law, formula = FORMULAS[name]
    f, zd = law(STATES[..., None][..., : law.size], GAPS, RATES, 1e-3)
    force, rate = _one_by_one(formula)
    assert_close(f, force, ulps=10)
    assert_close(zd, rate[..., None] if law.size else np.zeros((2, 3, 0)), ulps=10)
    none, _ = law(np.zeros((3, law.size)), np.full(3, 0.5), np.array([-9.0, 0.0, 9.0]), 0.0)
    assert np.array_equal(none, np.zeros(3))  # in the air, however fast


def test_patches_settle_on_the_body_or_where_they_are_by_themselves():
    after = np.array([[-2.5e-3, -5e-4, 1e-4], [2e-4, -1e-3, -2e-3]])
    decay = np.exp(-K / D * 1e-3)
    for law, own in (
        (Patch(K, D), STATES * decay),
        (Patch(K, D, integrated=True), after),
        (NonlinearPatch(lambda s: K * s, lambda s: D), np.minimum(after, 0.0)),
    ):
        expected = np.where((own + 1e-10 > GAPS) & (GAPS < 0), GAPS, own)
        found = law.end_states(STATES[..., None], after[..., None], GAPS, 1e-3)
        assert_close(found, expected[..., None], ulps=10)
        assert_close(law.start(GAPS), np.minimum(GAPS, 0.0)[..., None])
    two = TwoSurfaces(Patch(K, D), Patch(3 * K, D))
    z = np.stack([after, STATES], axis=-1)
    z[0] /= 4
    settled = two.end_states(z, z, GAPS, 1e-3)
    touch = (GAPS < 0) & (z.sum(-1) > GAPS - 1e-10)
    assert touch.any()
    assert not touch.all()
    assert_close(settled.sum(-1)[touch], GAPS[touch], ulps=10)
    assert_close(settled[~touch], z[~touch])
    assert_close(settled[..., 0] - settled[..., 1], z[..., 0] - z[..., 1], ulps=10)


def test_stored_energy_is_the_work_of_the_static_force():
    """``∫ f dδ`` by Gauss and Legendre, exactly for polynomials."""
    depth, (x, w) = 2e-3, np.polynomial.legendre.leggauss(20)
    s = depth * (x + 1) / 2
    for law in (Linear(K, D), HuntCrossley(K, 0.5, 2.0), HuntCrossley(K, 0.5, 1.0)):
        f, _ = law(np.zeros((20, 0)), -s, 0 * s, 0.0)
        stored = law.energy(np.array([-depth, 0.3]))
        assert_close(stored, [depth / 2 * (w @ f), 0.0], ulps=100)
    assert_close(Patch(K, D).energy(np.array([[-depth], [0.0]])), [K * depth**2 / 2, 0.0])
    z, p = np.array([[-1e-3]]), np.array([-3e-3])
    assert_close(SeriesSpring(K, D, 5.0).energy(z, p), [(K * 1e-6 + 5.0 * 4e-6) / 2])


def test_friction_forces_and_rates_are_those_of_the_formulas(rng):
    x, v = 1e-3 * rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 3, 2))
    f_n, mu = rng.uniform(0.5, 5, size=(2, 3)), rng.uniform(0.2, 1, size=(2, 3))
    f_n[0, 1] = 0.0
    found = {law: law(x, v, f_n, mu) for law in (Regularized(0.3), Stiction(K, D), Dahl(K, 70.0))}
    for at in np.ndindex(2, 3):
        most, speed = mu[at] * f_n[at], np.hypot(*v[at])
        (plain, _), (stuck, xd), (bent, yd) = ((f[at], r[at]) for f, r in found.values())
        assert_close(plain, -most * v[at] / np.hypot(speed, 0.3))
        free, spring = -K * x[at] - D * v[at], -K * x[at]
        assert_close(stuck, free * min(1.0, most / np.hypot(*free)))
        assert_close(xd, -(K * x[at] + stuck) / D)
        assert_close(bent, spring * min(1.0, most / np.hypot(*spring)))
        assert_close(yd, v[at] - speed * K / most * x[at] if most else -70.0 * x[at])


def test_forces_are_those_of_the_state_itself_unless_time_has_passed():
    """A patch that was left 10 mm deep has not come up to a ball at 5 mm yet; later it has."""
    ball = kt.shapes.sphere(0.1, mass=1.0)
    m = kt.ModelBuilder("ball").body("ball", joint=kt.Prismatic("z"), inertia=ball).build()
    m = with_ground(m.replace(geometry=(Geometry(1, Sphere(0.1), name="ball"),)))
    soft = SoftContact(Scene(m, friction=0.0), stiffness=K, damping=D, law="patch")
    q, still = np.array([0.095]), np.zeros(1)
    left = np.zeros_like(soft.start(m, q))
    left[..., 0] = -0.01
    assert_close(soft.forces(m, q, still, left), [[0.0, 0, 0]])
    assert_close(soft.forces(m, q, still, left, 1.0), [[0.005 * K, 0, 0]], ulps=1e3)


# --- every law, found by the registry ------------------------------------------------------------

_OF_SIZES = {
    NonlinearPatch: lambda: NonlinearPatch(lambda z: K * z, lambda z: D),
    SeriesSpring: lambda: SeriesSpring(K, D, 3 * K),
    TwoSurfaces: lambda: TwoSurfaces(Patch(K, D), Patch(2 * K, 3 * D)),
}
"""Laws that are not made of a stiffness and a damping."""


def an_example(law):
    """A law with ordinary numbers."""
    return _OF_SIZES[law]() if law in _OF_SIZES else law(K, D)


@pytest.mark.parametrize("law", NORMAL_LAWS, ids=lambda law: law.__name__)
def test_every_normal_law_pushes_while_bodies_overlap_and_never_pulls(law):
    law = an_example(law)
    p = np.array([-3e-3, -1e-3, 2e-3])
    f, zd = law(law.start(p), p, np.zeros(3), 0.0)
    assert np.all(f[:2] > 0)
    assert f[0] > f[1]
    assert f[2] == 0
    assert np.shape(zd) == (3, law.size)
    for speed in (-1.0, 1.0):
        assert np.all(law(law.start(p), p, np.full(3, speed), 0.0)[0] >= 0)


HOLDING = {"hunt_crossley": (2e4, 3.0)}
"""Stiffness and damping with which a ball of 1 kg comes to rest in a second, if not 2e4 and 200."""


@pytest.mark.parametrize("law", LAWS)
def test_every_named_law_holds_a_ball(law):
    """At rest the force is the weight, and the message of missing numbers suggests some."""
    m = with_ground(
        kt.ModelBuilder("m")
        .body("b", joint=kt.Prismatic("z"), at=(0, 0, 0.2), inertia=kt.shapes.sphere(0.1, mass=1.0))
        .geometry(Sphere(0.1), on="b")
        .build()
    )
    scene = Scene(m)
    soft = SoftContact(
        scene,
        law=law,
        **dict(zip(("stiffness", "damping"), HOLDING.get(law, (2e4, 200.0)), strict=True)),
    )
    t = kt.simulate(m, np.zeros(1), np.zeros(1), duration=1.5, dt=1e-3, contact=soft)
    assert abs(t.qd[-1, 0]) < 2e-2
    depth = -(t.q[-1, 0] + 0.1)
    f, _ = soft.normal(soft.normal.start(np.array([-depth])), np.array([-depth]), np.zeros(1), 0.0)
    assert f[0] == pytest.approx(9.81, rel=0.05)
    with pytest.raises(kt.ModelError, match=f"law '{law}' needs stiffness and damping, say 1e"):
        SoftContact(scene, law=law)


@pytest.mark.parametrize("law", TANGENTIAL_LAWS, ids=lambda law: law.__name__)
def test_every_law_of_friction_stays_in_the_cone_and_opposes_sliding(law, rng):
    law = law() if law is Regularized else law(K, D)
    v, f_n = rng.normal(size=(20, 2)), rng.uniform(0.1, 5, 20)
    x = np.zeros((20, law.size))
    for _ in range(2000 if law.size else 1):
        f, xd = law(x, v, f_n, 0.7)
        x = x + 1e-4 * xd
    assert np.all(np.linalg.norm(f, axis=1) <= 0.7 * f_n * (1 + 1e-12))
    assert np.all(np.sum(f * v, axis=1) < 0)
