"""Rigid contact without friction, at the level of accelerations — RBDA §11.1–11.5."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.contact_scenes import free_body

import kinetree as kt
from kinetree.contact.complementarity import lcp
from kinetree.contact.contacts import Contacts, bias, contact_axes, jacobian, velocity
from kinetree.contact.rigid import friction, problem
from kinetree.contact.rigid.forward_dynamics import body_contact, forward_dynamics
from kinetree.contact.scene import Scene, with_ground
from kinetree.errors import (
    ContactError,
    InfeasibleContactError,
    ShapeError,
    UnknownNameError,
)
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.kinematics.projection import project_velocity
from kinetree.loops.kinematics.space import tree_inertia
from kinetree.model.geometry import Box, Geometry, Sphere
from kinetree.samples.linkages import five_bar
from kinetree.spatial import Force, Inertia, Motion

G = 9.81
METHODS = friction.METHODS[1:]


def contacts_at(points, normals, *, bodies, **more):
    predecessor, successor = zip(*bodies, strict=True)
    return Contacts(
        np.array(predecessor), np.array(successor), np.array(points, dtype=float),
        np.array(normals, dtype=float), np.zeros(len(points)), **more,
    )  # fmt: skip


BOX = with_ground(free_body(Box((1.0, 0.6, 0.4)), kt.shapes.box(1.0, 0.6, 0.4, mass=3.0)))
ON_GROUND = BOX.integrate(BOX.neutral(), np.array([0, 0, 0, 0, 0, 0.2]))
STILL = np.zeros(6)


# --- one body -------------------------------------------------------------------------------------


def rod(theta, m=2.0, length=1.0):
    """Inertia at the mass centre of a rod at an angle to the ground, and normal at its low end."""
    I = m * length**2 / 12
    axis = np.array([np.cos(theta), 0, np.sin(theta)])
    inertia = Inertia.from_mass_center(m, np.zeros(3), I * (np.eye(3) * 1.1 - np.outer(axis, axis)))
    inertia = Inertia.from_matrix(inertia.to_matrix() - 0.1 * I * np.diag([0, 1, 0, 0, 0, 0]))
    up = np.array([0, 0, 1.0])
    return inertia, np.concatenate([np.cross(-length / 2 * axis, up), up])


@pytest.mark.covers("RBDA 11.1", by=body_contact)
@pytest.mark.parametrize("theta", [0.0, 0.3, 0.7, 1.2, np.pi / 2])
def test_rod_on_a_smooth_floor(theta):
    inertia, n = rod(theta)
    found = body_contact(inertia, Motion.zero(), Force.from_array([0, 0, 0, 0, 0, -2 * G]), [n])
    assert_close(found.lam, [2 * G / (1 + 3 * np.cos(theta) ** 2)], ulps=100)
    assert_close(found.zetadot, [0.0], scale=G, ulps=100)
    if theta == 0.7:
        assert abs(found.lam[0] - 7.1217245005) < 1e-9


@pytest.mark.covers("RBDA 11.1", by=body_contact)
def test_acceleration_is_piecewise_linear_in_the_force():
    inertia, n = rod(0.7)
    lam = []
    for pull in (-1.0, 0.0, 1.0, 2.0):
        f = Force.from_array([0, 0, 0, 0, 0, pull])
        found = body_contact(inertia, Motion.zero(), f, [n])
        lam.append(found.lam[0])
        assert found.lam[0] * found.zetadot[0] == 0 or abs(found.zetadot[0]) < 1e-15
    assert lam[0] > 0
    assert lam[1:] == [0, 0, 0]


@pytest.mark.covers("RBDA 11.1", by=body_contact)
def test_separation_velocity_must_be_zero():
    inertia, n = rod(0.7)
    for speed in (-0.5, 0.5):
        with pytest.raises(ContactError, match=f"separation velocity {speed} m/s"):
            body_contact(inertia, Motion.from_array([0, 0, 0, 0, 0, speed]), Force.zero(), [n])
    normals, falling = [n, -n, 2 * n], Motion.from_array([0, 0, 0, 0, 0, -0.5])
    with pytest.raises(ContactError, match=r"contact 2 has the separation velocity -1 m/s"):
        body_contact(inertia, falling, Force.zero(), normals)
    with pytest.raises(ShapeError, match=r"normals must be forces \(n, 6\)"):
        body_contact(inertia, Motion.zero(), Force.zero(), n)


@pytest.mark.covers("RBDA 11.2", by=body_contact)
def test_moving_normal_enters_the_separation_acceleration():
    """A ball that rolls over a ball without weight: the normal turns, the gap opens as v²/R."""
    inertia = kt.shapes.sphere(0.5, mass=1.0)
    v, up = 2.0, np.array([0, 0, 1.0])
    n = np.concatenate([np.cross([0, 0, -0.5], up), up])
    udot = np.array([v / 2.0, 0, 0])  # of the direction between centres that are 2 m apart
    ndot = np.concatenate([np.cross([0, 0, -0.5], udot), udot])
    found = body_contact(inertia, Motion.from_array([0, 0, 0, v, 0, 0]), Force.zero(), [n], [ndot])
    assert_close(found.zetadot, [v * v / 2.0])
    assert found.lam[0] == 0


# --- several contacts -----------------------------------------------------------------------------


@pytest.mark.covers("RBDA 11.2", by=(forward_dynamics, kt.contact.ContactMotion))
@pytest.mark.parametrize("method", METHODS)
def test_box_on_a_plane(method):
    scene, push = Scene(BOX, friction=0.0), np.array([0.3, -0.2, 0.1, 1.0, 2.0, -3.0])
    found = forward_dynamics(BOX, ON_GROUND, STILL, push, scene, method=method)
    lam, at = found.forces[:, 0], found.contacts.point
    assert_close(lam.sum(), 3 * G + 3.0, ulps=100)
    assert_close(at[:, 1] @ lam, -push[0], scale=30, ulps=100)  # moments about x and y
    assert_close(at[:, 0] @ lam, push[1], scale=30, ulps=100)
    assert_close(found.qdd[3:5], push[3:5] / 3.0, ulps=100)
    assert not found.unique
    assert found.states == ("3",) * 4
    assert found.modes == ("touches",) * 4
    assert max(found.residuals) < 1e-12


@pytest.mark.covers("RBDA 11.3", "RBDA 11.5", by=(forward_dynamics, friction.frictionless_forces))
def test_all_forms_agree_and_are_what_enumeration_finds(rng):
    """A floating chain with contacts everywhere, pushed at random."""
    m = _floating()
    seen = set()
    for _ in range(6):
        q = m.integrate(m.neutral(), rng.normal(size=m.nv))
        tau = 5 * rng.normal(size=m.nv)
        normals = rng.normal(size=(4, 3))
        normals /= np.linalg.norm(normals, axis=1)[:, None]
        contacts = contacts_at(
            rng.normal(size=(4, 3)), normals, bodies=[(0, 2), (0, 3), (1, 3), (0, 1)]
        )
        each = [
            forward_dynamics(m, q, np.zeros(m.nv), tau, contacts, method=method)
            for method in METHODS
        ]
        of = problem.problem_at(m, q, np.zeros(m.nv), tau, contacts, np.zeros(4))
        (only,) = lcp.enumerated(of.M[::3, ::3], of.d[::3])
        for found in each:
            assert_close(found.forces[:, 0], only.lam, scale=10, ulps=1e5)
            assert_close(found.qdd, each[0].qdd, scale=100, ulps=1e5)
            assert found.residuals.complementarity < 1e-10
            assert found.unique
        seen.add(int(np.sum(only.lam > 0)))
    assert len(seen) > 1


def _floating():
    builder = kt.ModelBuilder("floating").body(
        "trunk", joint=kt.Free(), inertia=kt.shapes.box(0.3, 0.2, 0.4, mass=3.0)
    )
    for k in range(2):
        builder = builder.body(
            f"link{k}", on=f"link{k - 1}" if k else "trunk", joint=kt.Revolute("y"),
            at=(0.1, 0, 0.2), inertia=kt.shapes.box(0.05, 0.05, 0.3, mass=0.7),
        )  # fmt: skip
    return builder.build()


@pytest.mark.covers("RBDA 11.3", by=problem.RigidProblem)
def test_columns_are_responses_to_unit_forces(rng):
    m = _floating()
    q, qd = m.integrate(m.neutral(), rng.normal(size=m.nv)), rng.normal(size=m.nv)
    contacts = contacts_at(
        rng.normal(size=(3, 3)), [[0, 0, 1], [0, 1, 0], [1, 0, 0]], bodies=[(0, 2), (1, 3), (2, 3)]
    )
    tau = rng.normal(size=m.nv)
    of = problem.problem_at(m, q, qd, tau, contacts, np.zeros(3))
    J, b = jacobian(m, q, contacts).reshape(9, -1), bias(m, q, qd, contacts).ravel()
    assert_close(of.d, J @ kt.forward_dynamics(m, q, qd, tau) + b, scale=100, ulps=1000)
    for k in range(9):
        pushed = J @ kt.forward_dynamics(m, q, qd, tau + J[k]) + b
        assert_close(of.M[k], pushed - of.d, scale=100, ulps=1e4)
    assert np.linalg.eigvalsh(of.M)[0] > -1e-12


@pytest.mark.covers("RBDA 11.3", by=forward_dynamics)
def test_separation_acceleration_is_the_second_derivative_of_the_gap():
    """A ball that flies past another, without contact force, at the moment of touching."""
    ball = free_body(Sphere(0.3), kt.shapes.sphere(0.3, mass=1.0))
    m = ball.replace(geometry=(Geometry(0, Sphere(0.7), name="dome"), *ball.geometry))
    scene = Scene(m, friction=0.0)
    u = np.array([0.6, 0, 0.8])
    q = m.integrate(m.neutral(), np.concatenate([np.zeros(3), u]))
    qd = np.array([0.4, -0.2, 0.7, 3.2, 1.0, -2.4])  # along the surface, fast
    found = forward_dynamics(m, q, qd, STILL, scene)
    assert found.forces[0, 0] == 0
    gap = [np.linalg.norm(u + t * qd[3:] - [0, 0, G * t * t / 2]) - 1 for t in (-1e-4, 0, 1e-4)]
    assert abs(found.zetadot[0, 0] - (gap[0] - 2 * gap[1] + gap[2]) / 1e-8) < 1e-5


# --- infeasible -----------------------------------------------------------------------------------


def slot(curvature):
    """A disc between two walls with opposite normals, curved by ``curvature`` [1/m] each."""
    normals = np.array([[1.0, 0, 0], [-1.0, 0, 0]])
    parts = [
        [(c * (np.eye(3) - np.outer(n, n)), np.eye(3) - np.outer(n, n)) for c in (k, 2)]
        for n, k in zip(normals, curvature, strict=True)
    ]
    turn, travel = (np.array([[p[i] for p in pair] for pair in parts]) for i in range(2))
    return contacts_at(
        -0.5 * normals, normals, bodies=[(0, 1), (0, 1)], names=("left", "right"), turn=turn,
        travel=travel,
    )  # fmt: skip


@pytest.mark.covers("RBDA Example 11.1", by=(forward_dynamics, InfeasibleContactError))
@pytest.mark.parametrize("method", METHODS)
def test_disc_in_a_slot(method):
    m = kt.ModelBuilder("disc").body(
        "disc", joint=kt.Translation(), inertia=kt.shapes.sphere(0.5, mass=2.0)
    )
    m = m.build()
    v, tau = np.array([0, 3.0, 0]), np.array([4.0, 0, 0])
    d = np.array([9 / 2.5 + 2.0, 9 / 2.5 - 2.0])  # distances of centres of curvature; the push
    widening = forward_dynamics(m, m.neutral(), v, tau, slot((0.5, 0.5)), method=method)
    assert_close(widening.zetadot[:, 0], d, ulps=100)
    bent = forward_dynamics(m, m.neutral(), v, tau, slot((0.5, -0.25)), method=method)
    d = np.array([9 / 2.5 + 2, -9 / 3.5 - 2])
    assert_close(bent.zetadot[:, 0], [d.sum(), 0.0], scale=5.0, ulps=100)
    assert_close(bent.forces[:, 0], [0.0, -2 * d[1]], ulps=100)
    with pytest.raises(InfeasibleContactError, match="'left', 'right' from closing") as caught:
        forward_dynamics(m, m.neutral(), v, tau, slot((0.5, -0.4)), method=method)
    assert caught.value.contacts == ("left", "right")
    assert_close(caught.value.certificate.forces, np.sqrt([0.5, 0.5]), ulps=100)
    straight = forward_dynamics(m, m.neutral(), v, tau, slot((0.0, 0.0)), method=method)
    assert_close(np.diff(straight.forces[:, 0]), [4.0], ulps=100)
    assert not straight.unique


# --- states ---------------------------------------------------------------------------------------


@pytest.mark.covers("RBDA 11.4", by=problem.contact_states)
def test_four_states():
    gap = np.array([1e-3, 1e-3, 0.0, -1e-9, 1e-9, 0.0])
    zeta = np.array([-1.0, 1.0, -1.0, 1.0, 1e-9, -1e-9])
    assert problem.contact_states(gap, zeta) == ("1", "1", "2a", "2b", "3", "3")
    assert problem.contact_states(gap, zeta, 1e-2, 1e-12) == ("2a", "2b", "2a", "2b", "2b", "2a")


@pytest.mark.covers("RBDA 11.4", by=forward_dynamics)
def test_states_decide_who_takes_part():
    scene = Scene(BOX, friction=0.0)
    tilting = np.array([0.0, 1.0, 0, 0, 0, 0.5])  # one edge stays, the other one leaves
    found = forward_dynamics(BOX, ON_GROUND, tilting, STILL, scene)
    assert sorted(found.states) == ["2b", "2b", "3", "3"]
    assert sorted(found.modes) == ["apart", "apart", "touches", "touches"]
    assert np.all(found.forces[[s == "2b" for s in found.states]] == 0)
    above = BOX.integrate(ON_GROUND, np.array([0, 0, 0, 0, 0, 1e-3]))
    assert forward_dynamics(BOX, above, STILL, STILL, scene).states == ()
    with pytest.raises(ContactError, match=r"closes at 0.3 m/s.*kinetree.contact.impact"):
        forward_dynamics(BOX, ON_GROUND, np.array([0, 0, 0, 0, 0, -0.3]), STILL, scene)


def test_separating_contacts_are_reported():
    lift = np.array([0, 0, 0, 0, 0, 4 * G])
    found = forward_dynamics(BOX, ON_GROUND, STILL, lift, Scene(BOX, friction=0.0))
    assert found.modes == ("separates",) * 4
    assert_close(found.zetadot[:, 0], np.full(4, G / 3), ulps=100)
    assert found.unique


# --- loops ----------------------------------------------------------------------------------------


@pytest.mark.covers("RBDA 11.3", by=(forward_dynamics, problem.problem_at))
@pytest.mark.parametrize("push", [0.0, 400.0])
def test_contact_of_a_linkage_keeps_its_loop(push):
    """Against the equations of loops and contacts written down together."""
    m = five_bar()
    q = m.neutral()
    qd = project_velocity(m, q, np.array([1.0, -0.5, 0.3, 0.2]))
    tau = np.array([-push, 0, 0, 0])
    tip = (kt.poses(m, q)[1] @ np.array([1.5, 0, 0, 1.0]))[:3]  # the end of the second link
    level = contacts_at([tip], [[0, 0, 1.0]], bodies=[(0, 2)])
    v = contact_axes(level.normal[0]).T @ velocity(m, q, qd, level)[0]
    up = np.array([-v[2], 0, v[0]]) * np.sign(v[0]) / np.hypot(v[0], v[2])
    contacts = contacts_at([tip], [up], bodies=[(0, 2)])  # the end slides over a flat surface
    found = forward_dynamics(m, q, qd, tau, contacts)
    c, H = constraint(m, q, qd), tree_inertia(m, q)
    J, b = jacobian(m, q, contacts)[:, 0], bias(m, q, qd, contacts)[:, 0]
    pushes = push == 0
    R = np.concatenate([c.K, J]) if pushes else c.K
    right = np.concatenate([c.k, -b]) if pushes else c.k
    whole = np.block([[H, -R.T], [R, np.zeros((len(R), len(R)))]])
    C = kt.inverse_dynamics(m.replace(loops=()), q, qd, np.zeros(4))
    x = np.linalg.lstsq(whole, np.concatenate([tau - C, right]), rcond=1e-12)[0]
    assert_close(found.qdd, x[:4], scale=100, ulps=1e6)
    assert_close(c.K @ found.qdd, c.k, scale=100, ulps=1e5)
    assert_close(found.forces[0, 0], x[-1] if pushes else 0.0, scale=100, ulps=1e6)
    assert found.modes == ("touches" if pushes else "separates",)
    assert max(found.residuals) < 1e-9


# --- refusals -------------------------------------------------------------------------------------


def test_rigid_contact_pretends_no_derivatives():
    scene = Scene(BOX, friction=0.5)

    @kt.kernel
    def accelerations(m, q, qd):
        return forward_dynamics(m, q, qd, 0 * qd, scene).qdd

    @kt.kernel
    def after(m, q, qd):
        return kt.contact.impact(m, q, qd, scene).qd

    for function in (accelerations, after):
        with pytest.raises(kt.errors.TraceError, match="a traced value was turned into a float"):
            kt.differentiate(function, wrt="qd")(BOX, ON_GROUND, STILL)


def test_wrong_arguments():
    scene = Scene(BOX, friction=0.5)
    with pytest.raises(UnknownNameError, match=r"no method 'lemk'.*lemke"):
        forward_dynamics(BOX, ON_GROUND, STILL, STILL, scene, method="lemk")
    with pytest.raises(UnknownNameError, match="'lcp' is for contacts without friction"):
        forward_dynamics(BOX, ON_GROUND, STILL, STILL, scene, method="lcp")
    with pytest.raises(ShapeError, match="friction must be a number or 4 numbers"):
        forward_dynamics(BOX, ON_GROUND, STILL, STILL, scene, friction=-1.0)
    with pytest.raises(ShapeError, match="one sample at a time"):
        forward_dynamics(BOX, np.stack([ON_GROUND] * 2), STILL, STILL, scene)
