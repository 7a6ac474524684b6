"""The inertia of a step, and velocities along the axes of bodies that turn."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.contact.scheme.inertia import EffectiveInertia, straight_motion, turning


def bodies():
    """Some that fly for themselves, centres of mass beside their origins."""
    inertia = kt.shapes.box(0.2, 0.3, 0.5, mass=2.0, at=(0.3, -0.2, 0.0))
    ball = kt.shapes.sphere(0.1, mass=1.0, at=(0.2, 0.1, -0.3))
    builder = kt.ModelBuilder("bodies").body("disc", joint=kt.Planar(), inertia=inertia)
    builder = builder.body("ball", on="base", joint=kt.Free(), inertia=ball)
    for name, way in (("brick", "parent"), ("block", "child")):
        builder = builder.body(name, on="base", joint=kt.Free(translation=way), inertia=inertia)
    return builder.body("wheel", on="base", joint=kt.Revolute("z"), inertia=inertia).build()


@pytest.mark.parametrize("h", [0.3, 0.01, 1e-9])
def test_bodies_move_straight_on_while_their_axes_turn(rng, h):
    m = bodies()
    q, qd = m.random_configuration(rng), rng.normal(size=m.nv)
    end, after = straight_motion(m, q, qd, h)
    for i, name in enumerate(m.body_names[1:-1], 1):
        c = m.inertia[i].first_moment / m.inertia[i].mass
        X, Y = (np.asarray(kt.pose(m, at, name)) for at in (q, end))
        u = kt.jacobian(m, q, name, frame="aligned", point=c) @ qd
        v = kt.jacobian(m, end, name, frame="aligned", point=c) @ after
        assert_close(Y[:3, 3] + Y[:3, :3] @ c, X[:3, 3] + X[:3, :3] @ c + h * u[3:], scale=1)
        if name in ("brick", "block"):  # keeps its angular momentum, and its energy
            I = X[:3, :3] @ kt.shapes.box(0.2, 0.3, 0.5, mass=2.0).rotational @ X[:3, :3].T
            turn = Y[:3, :3] @ X[:3, :3].T
            J = turn @ I @ turn.T
            assert_close(J @ v[:3], I @ u[:3], scale=1)
            assert_close(v[:3] @ J @ v[:3], u[:3] @ I @ u[:3], scale=1e10 * h**6 + 1)
            u[:3] = v[:3]
        assert_close(v, u, scale=1)
    assert_close(end[-1], q[-1] + h * qd[-1])


def test_turning_is_the_acceleration_of_bodies_that_nothing_pushes(rng):
    m = bodies().replace(gravity=(0, 0, 0))
    q, qd = m.random_configuration(rng), rng.normal(size=m.nv)
    expected = kt.forward_dynamics(m, q, qd, np.zeros(m.nv))
    H = np.diagonal(
        kt.mass_matrix(m, q)
    )  # products of velocities cancel, seen by the least inertia
    assert_close(turning(m, qd), expected, scale=max(H) * (qd @ qd) / min(H))


@pytest.mark.parametrize(("joint", "place"), [(kt.Planar(), 0), (kt.Revolute("z"), 3)])
def test_joint_that_moves_no_inertia_is_named(joint, place):
    nothing, some = kt.Inertia.zero(), kt.shapes.sphere(0.1, mass=1.0)
    builder = kt.ModelBuilder("m").body(
        "first", joint=kt.Planar(), inertia=some if place else nothing
    )
    m = builder.body("last", on="base", joint=joint, inertia=nothing if place else some).build()
    name = m.joint_names[bool(place)]
    with pytest.raises(
        kt.SingularError, match=rf"joint '{name}' moves none: give body '(first|last)'"
    ):
        EffectiveInertia(m, kt.mass_matrix(m, m.neutral()), np.zeros((m.nv, m.nv)), np.ones(m.nv))


def test_responses_are_those_of_the_inverse(rng):
    m = bodies()
    q, extra, free = m.random_configuration(rng), rng.uniform(0, 1, m.nv), np.ones(m.nv)
    free[2] = 0.0
    H = np.asarray(kt.mass_matrix(m, q))
    M = H + np.diag(extra)
    M[2], M[:, 2] = 0.0, 0.0
    M[2, 2] = 1.0
    found = EffectiveInertia(m, H, np.diag(extra), free)
    G, f, b = rng.normal(size=(4, m.nv)), rng.normal(size=4), rng.normal(size=m.nv)
    Y, rows = found.halves(G), G * free
    assert_close(found.solve(b), np.linalg.solve(M, b), condition=np.linalg.cond(M))
    assert_close(found.mobility(Y), rows @ np.linalg.solve(M, rows.T), condition=np.linalg.cond(M))
    assert_close(found.response(Y, f), np.linalg.solve(M, rows.T @ f), condition=np.linalg.cond(M))
