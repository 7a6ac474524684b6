"""Quantities of mechanisms with loops, in their independent coordinates or without any."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms.closed.allowed_motion import (
    SMALLEST_INERTIA,
    AllowedMotion,
    _require_inertia,
    require_unmoved,
)
from kinetree.algorithms.closed.elimination import orthogonal_solution
from kinetree.algorithms.closed.forces import loop_joint_motion
from kinetree.algorithms.closed.forward_dynamics import SMALLEST_PIVOT
from kinetree.algorithms.closed.independent import (
    allowed_motion,
    allowed_motion_at,
    coordinate_plan,
)
from kinetree.algorithms.closed.rank import closed_configurations
from kinetree.spatial import Inertia

SAMPLES = ("five_bar", "excavator")


def states(name, rng, count=4):
    """A model and states of it with closed loops, and joint forces."""
    model = getattr(kt.samples, name)()
    q = closed_configurations(model, 4 * count)
    K = kt.loops.scaling(model).apply(kt.loops.constraint(model, q, np.zeros(model.nv)).K)
    s = np.linalg.svd(K, compute_uv=False)[:, : model.nv - len(kt.loops.independent(model))]
    q = q[s[:, -1] > 0.1 * s[:, 0]][:count]  # far from singularities
    assert len(q) == count
    qd = np.array([kt.loops.project_velocity(model, x, rng.standard_normal(model.nv)) for x in q])
    return model, q, qd, rng.standard_normal(qd.shape)


def coordinates(model, names=None):
    names = kt.loops.independent(model) if names is None else names
    return [model.v_slice[model.joint_index(name)].start for name in names]


@pytest.mark.covers("RBDA 8.5", by=(kt.mass_matrix, kt.bias_force, kt.loops.null_space))
@pytest.mark.parametrize("name", SAMPLES)
def test_the_equation_of_motion_of_the_coordinates(name, rng):
    model, q, qd, tau = states(name, rng)
    f_ext = rng.standard_normal((len(q), model.body_count, 6))
    qdd = kt.forward_dynamics(model, q, qd, tau, f_ext, method="implicit")
    y = coordinates(model)
    G, g, names = kt.loops.null_space(model, q, qd)
    H, C = kt.mass_matrix(model, q), kt.bias_force(model, q, qd, f_ext)
    assert names == kt.loops.independent(model)
    assert H.shape == (len(q), len(y), len(y))
    size = np.max(np.abs(H)) * np.max(np.abs(qdd)) + np.max(np.abs(tau))
    load = np.einsum("...ny,...n->...y", G, tau)
    found = np.einsum("...ij,...j->...i", H, qdd[:, y]) + C
    assert_close(found, load, scale=size, condition=1e4)
    moved = np.einsum("...ny,...y->...n", G, qdd[:, y]) + g
    assert_close(moved, qdd, condition=1e4)
    energy = np.einsum("...i,...ij,...j->...", qd[:, y], H, qd[:, y]) / 2
    assert_close(energy, kt.kinetic_energy(model, q, qd), condition=100)


@pytest.mark.parametrize("name", SAMPLES)
def test_christoffel_symbols_are_those_of_the_inertia_matrix(name, rng):
    model, q, qd, _ = states(name, rng)
    G, g, _ = kt.loops.null_space(model, q, qd)
    dH = kt.differentiate(kt.mass_matrix, wrt="q")(model, q) @ G[:, None]  # [i, j, k] along y_k
    symbols = (dH + np.swapaxes(dH, -1, -2) - np.moveaxis(dH, -1, -3)) / 2
    scale = float(np.max(np.abs(dH)) + np.max(np.abs(kt.mass_matrix(model, q))))
    assert_close(kt.christoffel(model, q), symbols, scale=scale, condition=1e5)
    yd = qd[:, coordinates(model)]
    C = kt.coriolis_matrix(model, q, qd)
    speed = float(np.max(np.abs(qd)))
    assert_close(
        C, np.einsum("...ijk,...k->...ij", symbols, yd), scale=scale * speed, condition=1e5
    )
    rate = np.einsum("...ijk,...k->...ij", dH, yd)
    assert_close(kt.mass_matrix_rate(model, q, qd), rate, scale=scale * speed, condition=1e5)
    G_rate = kt.loops.null_space_rate(model, q, qd)
    assert_close(np.einsum("...ny,...y->...n", G_rate, yd), g, scale=speed**2, condition=1e5)


def test_other_coordinates_in_the_order_they_are_named(rng):
    model, q, qd, _ = states("five_bar", rng)
    names = model.joint_names[2:0:-1]
    G, _, found = kt.loops.null_space(model, q, qd, independent=names)
    assert found == tuple(names)
    y = coordinates(model, names)
    np.testing.assert_allclose(G[:, y], np.broadcast_to(np.eye(2), (len(q), 2, 2)), atol=1e-12)
    H = kt.mass_matrix(model, q, independent=names)
    R = kt.loops.null_space(model, q, qd).G[:, y]  # from the default coordinates to these
    assert_close(np.swapaxes(R, -1, -2) @ H @ R, kt.mass_matrix(model, q), condition=1e4)


@pytest.mark.parametrize("name", ["four_bar", "excavator"])
def test_joints_that_close_loops_are_coordinates(name, rng):
    """As for ``linearize``, which finds ``G`` and ``ydd`` on the CPU, by singular values."""
    model, q, qd, tau = states(name, rng, 2)
    names = (*kt.loops.independent(model)[1:], model.loop_names[0])
    options, p = {"independent": names}, len(names)
    linear = kt.linearize(model, q, qd, tau, independent=list(names))
    G, g, found = kt.loops.null_space(model, q, qd, **options)
    assert found == names
    assert_close(G, linear.G, condition=1e4)
    yd, ydd = linear.rate[:, :p, None], linear.rate[:, p:, None]
    H, C = kt.mass_matrix(model, q, **options), kt.bias_force(model, q, qd, **options)
    load = np.swapaxes(G, -1, -2) @ (tau + kt.passive_force(model, q, qd))[..., None]
    size = float(np.max(np.abs(H)) * np.max(np.abs(ydd)) + np.max(np.abs(load)))
    assert_close(H @ ydd + C[..., None], load, scale=size, condition=1e5)
    assert_close((G @ ydd)[..., 0] + g, linear.qdd, condition=1e5)
    rate, C = (
        kt.mass_matrix_rate(model, q, qd, **options),
        kt.coriolis_matrix(model, q, qd, **options),
    )
    size = float(np.max(np.abs(rate)) + np.max(np.abs(H)))
    assert_close(rate - 2 * C, np.swapaxes(2 * C - rate, -1, -2), scale=size, condition=1e4)
    along = kt.jvp(kt.mass_matrix, wrt="q")(model, q, tangents=qd, **options)
    assert_close(rate, along, scale=size, condition=1e5)
    G_rate = kt.loops.null_space_rate(model, q, qd, **options)
    assert_close(
        (G_rate @ yd)[..., 0], g, scale=size + float(np.max(np.abs(qd))) ** 2, condition=1e5
    )


def test_accelerations_for_unit_forces_do_not_depend_on_coordinates(rng):
    model, q, qd, tau = states("five_bar", rng)
    A = kt.inverse_mass_matrix(model, q)
    for n in range(len(q)):
        columns = [
            kt.forward_dynamics(model, q[n], qd[n], tau[n] + e, method="implicit")
            - kt.forward_dynamics(model, q[n], qd[n], tau[n], method="implicit")
            for e in np.eye(model.nv)
        ]
        assert_close(A[n], np.array(columns).T, condition=1e5)


def test_gravity_is_held_by_the_actuated_joints(rng):
    model, q, _, _ = states("excavator", rng)
    tau, rest = kt.gravity_force(model, q), np.zeros(model.nv)
    assert_close(tau, kt.inverse_dynamics(model, q, rest, rest))
    fall = kt.forward_dynamics(model, q, rest, rest)
    held = kt.forward_dynamics(model, q, rest, tau)
    assert np.max(np.abs(held)) < 1e-9 * np.max(np.abs(fall))


@pytest.mark.parametrize("text", [kt.mass_matrix, kt.inverse_mass_matrix])
def test_samples_that_the_plan_does_not_suit_are_right_too(text, monkeypatch, rng):
    """The same numbers by pivots, by orthogonal columns, and by singular values."""
    model, q, _, _ = states("excavator", rng)
    expected = text(model, q)
    monkeypatch.setattr("kinetree.algorithms.closed.independent.SMALLEST_PIVOT", 1e3)
    weak = model.replace(name="another, whose kernels are its own")
    assert_close(text(weak, q), expected, condition=1e4)


@pytest.mark.covers("RBDA 8.5", by=(allowed_motion, allowed_motion_at, orthogonal_solution))
@pytest.mark.parametrize("name", [*SAMPLES, "bennett", "parallel_four_bar"])
def test_three_ways_to_the_motions_that_loops_allow(name, rng):
    model, q, qd, _ = states(name, rng, 1)
    plan = coordinate_plan(model)
    numeric = allowed_motion_at(model, q[0], qd[0], plan.columns, every=True)
    for anywhere in (False, True):
        at, health = allowed_motion(model, q[0], qd[0], plan, anywhere=anywhere)
        assert health() >= 1
        for quantity in (lambda a: a.G, lambda a: a.g, AllowedMotion.coriolis):
            assert_close(quantity(at), quantity(numeric), condition=1e5)


def test_inside_kernels_and_derivatives(rng):
    model, q, qd, tau = states("five_bar", rng)

    @kt.kernel
    def ydd(m, q, qd, tau):
        G = kt.loops.null_space(m, q, qd).G
        return kt.mass_matrix(m, q), G.T @ tau - kt.bias_force(m, q, qd)

    H, b = ydd(model, q, qd, tau)
    found = np.linalg.solve(H, b[..., None])[..., 0]
    qdd = kt.forward_dynamics(model, q, qd, tau)
    assert_close(found, qdd[:, coordinates(model)], condition=1e4)
    rate = kt.jvp(kt.mass_matrix, wrt="q")(model, q, tangents=qd)
    assert_close(rate, kt.mass_matrix_rate(model, q, qd), condition=1e5)
    w = rng.standard_normal(rate.shape)
    pulled = kt.vjp(kt.mass_matrix, wrt="q")(model, q, cotangent=w)
    assert_close((pulled * qd).sum(-1), (w * rate).sum((-1, -2)), condition=1e5)


def test_derivatives_where_a_pivot_of_the_plan_is_zero():
    """Inside kernels no pivots are chosen beforehand: there is nothing to fall back to."""
    crank = kt.samples.four_bar()
    plan = coordinate_plan(crank)
    q, i = kt.samples.four_bar().neutral(), plan.columns[0]
    rate, inertia = kt.jvp(kt.mass_matrix, wrt="q"), []
    for angle in np.linspace(0, 2 * np.pi, 25):
        goal = q.copy()
        goal[i] = q[i] + angle
        q_n = kt.loops.assemble(crank, goal, hold=[crank.joint_names[i]])
        G = kt.loops.null_space(crank, q_n, np.zeros(crank.nv)).G
        qd = G[:, 0]
        inertia.append((rate(crank, q_n, tangents=qd), kt.mass_matrix_rate(crank, q_n, qd)))
    found, expected = (np.array(x) for x in zip(*inertia, strict=True))
    assert_close(found, expected, condition=1e5)


def test_derivatives_where_coordinates_hardly_determine_the_motion():
    """Forward dynamics has a derivative all the same; what is written in coordinates says no."""
    model, rest = kt.samples.five_bar(), np.zeros(4)
    near = np.array([5.75085989, -0.65728796, -0.77982014, -2.21941135])
    q = kt.loops.assemble(model, near, hold=["link1_joint"])
    assert np.max(np.abs(kt.loops.null_space(model, q, rest).G)) > 1e3
    columns = kt.differentiate(kt.forward_dynamics, wrt="tau")(model, q, rest, rest)
    by_ranks = [kt.forward_dynamics(model, q, rest, e, method="implicit") for e in np.eye(4)]
    fall = kt.forward_dynamics(model, q, rest, rest, method="implicit")
    assert_close(columns, (np.array(by_ranks) - fall).T, scale=10.0, condition=10)
    assert_close(columns, kt.inverse_mass_matrix(model, q), condition=1e3)
    with pytest.raises(kt.SingularError, match=r"inverse_mass_matrix is lost .* model 'five-bar'"):
        kt.differentiate(kt.inverse_mass_matrix, wrt="q")(model, q)


def planar(constraint):
    """A plate that slides in the plane and turns, under a user-defined constraint."""
    small = Inertia.from_mass_center(0.1, np.zeros(3), 0.01 * np.eye(3))
    b = kt.ModelBuilder("plate")
    b.body("x", joint=kt.Prismatic("x"), inertia=small)
    b.body("y", on="x", joint=kt.Prismatic("y"), inertia=small)
    plate = Inertia.from_mass_center(1.0, (0.2, 0.0, 0.0), 0.1 * np.eye(3))
    b.body("plate", on="y", joint=kt.Revolute("z"), inertia=plate)
    return b.build().replace(constraints=(constraint,))


def edge(q, qd):
    """A skate moves along its edge: no function of the position says so."""
    return [np.cos(q[2]) * qd[1] - np.sin(q[2]) * qd[0]]


def guide(q, t):
    """A guide that moves."""
    return [q[0] - np.sin(t)]


@pytest.mark.parametrize("constraint", [{"rate": edge}, {"position": guide}])
def test_constraints_of_ones_own_have_coordinates_too(constraint, rng):
    model = planar(kt.ConstraintFunction("own", **constraint))
    q, tau = np.array([0.0, 0.2, 0.3]), rng.standard_normal(3)
    qd = kt.loops.project_velocity(model, q, rng.standard_normal(3))
    qdd, y = kt.forward_dynamics(model, q, qd, tau), coordinates(model)
    G, g, _ = kt.loops.null_space(model, q, qd)
    H, C = kt.mass_matrix(model, q), kt.bias_force(model, q, qd)
    assert_close(H @ qdd[y] + C, G.T @ tau, scale=10.0)
    assert_close(G @ qdd[y] + g, qdd, scale=10.0)
    if constraint == {"position": guide}:
        for call in (
            lambda: kt.coriolis_matrix(model, q, qd),
            lambda: kt.gravity_force(model, q),
            lambda: kt.quasi_velocity_dynamics(model, q, qd[:1], lambda m, q: np.eye(3)[:, :1]),
        ):
            with pytest.raises(kt.errors.JointError, match=r"no meaning .* 'own' moves by itself"):
                call()
        return
    C, rate = kt.coriolis_matrix(model, q, qd), kt.mass_matrix_rate(model, q, qd)
    assert_close(C @ qd[y], kt.bias_force(model, q, qd), scale=10.0)  # gravity does no work
    assert_close(rate - 2 * C, (2 * C - rate).T, scale=10.0)
    assert_close(rate, kt.jvp(kt.mass_matrix, wrt="q")(model, q, tangents=qd), scale=10.0)


# --- hybrid dynamics -----------------------------------------------------------------------------


@pytest.mark.covers("RBDA 9.1", by=(kt.hybrid_dynamics, kt.hybrid_response))
@pytest.mark.parametrize("name", ["five_bar", "excavator"])
def test_prescribed_joints_inside_a_loop(name, rng):
    """X-02: what is given is a coordinate, and the forces give the acceleration again."""
    model, q, qd, tau = states(name, rng)
    given = kt.loops.independent(model)[-1]
    at, wanted = coordinates(model, [given]), rng.standard_normal(qd.shape)
    found, qdd = kt.hybrid_dynamics(model, q, qd, tau, wanted, given)
    assert_close(qdd[:, at], wanted[:, at])
    rest = np.setdiff1d(np.arange(model.nv), at)
    assert_close(found[:, rest], tau[:, rest])
    again = kt.forward_dynamics(model, q, qd, found, method="implicit")
    assert_close(again, qdd, condition=1e5)
    R = kt.hybrid_response(model, q, given)
    step = rng.standard_normal(model.nv)
    found_2, qdd_2 = kt.hybrid_dynamics(model, q, qd, tau + step, wanted + step, given)
    change = qdd_2 - qdd
    change[:, at] = (found_2 - found)[:, at]
    assert_close(change, R @ step, condition=1e5)


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "stewart"])
def test_accelerations_that_a_loop_ties_are_given_together(name, rng):
    """All joints of a tree but one, with accelerations that the loops allow."""
    model, q, qd, tau = states(name, rng)
    f_ext = rng.standard_normal((model.body_count, 6))
    wanted = kt.forward_dynamics(model, q, qd, tau, f_ext, method="implicit")
    given = list(model.joint_names[1:])
    at = np.arange(model.nv)[model.v_slice[1].stop :]
    assert len(at) > model.nv - kt.loops.mobility(model, q[0]).rank
    found, qdd = kt.hybrid_dynamics(model, q, qd, tau, wanted, given, f_ext)
    assert_close(qdd, wanted, condition=1e6)
    rest = np.setdiff1d(np.arange(model.nv), at)
    assert_close(found[:, rest], tau[:, rest])
    again = kt.forward_dynamics(model, q, qd, found, f_ext, method="implicit")
    assert_close(again, wanted, condition=1e6)
    size = [np.linalg.norm(x[:, at], axis=1) for x in (found, tau)]
    assert np.all(size[0] <= size[1] * (1 + 1e-9))  # as any forces that do it
    off = np.array(wanted)
    off[:, at[0]] += 0.1
    with pytest.raises(kt.SingularError, match="given accelerations differ from those that the"):
        kt.hybrid_dynamics(model, q, qd, tau, off, given, f_ext)


def test_accelerations_that_a_loop_ties_cannot_all_be_given(rng):
    model, q, qd, tau = states("four_bar", rng)
    given = list(model.joint_names[:2])
    message = (
        r"hybrid_dynamics: sample \(0,\): the loops of model 'four-bar', which has 1 degrees of "
        r"freedom here, tie the variables 'crank_joint', 'coupler_joint' .* nor all be given"
    )
    with pytest.raises(kt.SingularError, match=message):
        kt.hybrid_dynamics(model, q, qd, tau, tau, given)
    with pytest.raises(kt.LoopError, match=r"hybrid_dynamics by method 'aba' is for trees"):
        kt.hybrid_dynamics(model, q, qd, tau, tau, given[:1], method="aba")


# --- tasks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["five_bar", "excavator"])
def test_tasks_of_a_closed_mechanism(name, rng):
    model, q, qd, _ = states(name, rng)
    frame = {"five_bar": "link3", "excavator": "bucket"}[name]
    task, rows = {"frame": "aligned", "rows": ("x", "z")}, [3, 5]
    J = kt.jacobian(model, q, frame, frame="aligned")[:, rows]
    bias = kt.bias_acceleration(model, q, qd, frame, frame="aligned", kind="classical")[:, rows]
    wanted = rng.standard_normal((len(q), 2))
    tau = kt.task_space_inverse_dynamics(model, q, qd, wanted, frame, **task)
    qdd = kt.forward_dynamics(model, q, qd, tau, method="implicit")
    size = float(np.max(np.abs(qdd)))
    reached = np.einsum("...kn,...n->...k", J, qdd) + bias
    assert_close(reached, wanted, scale=size, condition=1e6)
    Lambda, mu, p = kt.operational_space_dynamics(model, q, qd, frame, **task)
    force = np.einsum("...ij,...j->...i", Lambda, wanted) + mu + p
    found = kt.task_space_forward_dynamics(model, q, qd, force, frame, **task)
    assert_close(found, wanted, scale=size, condition=1e6)
    J_bar = kt.dynamically_consistent_inverse(model, q, frame, **task)
    assert_close(J @ J_bar, np.broadcast_to(np.eye(2), (len(q), 2, 2)), condition=1e6)
    K = kt.loops.constraint(model, q, qd).K
    assert_close(K @ J_bar, 0 * (K @ J_bar), scale=np.max(np.abs(J_bar)), condition=1e4)
    N = kt.null_space_projector(model, q, frame, **task)
    push = np.einsum("...mn,...m->...n", N, rng.standard_normal(qd.shape))
    still = kt.forward_dynamics(model, q, qd, tau + push, method="implicit")
    assert_close(
        np.einsum("...kn,...n->...k", J, still - qdd), 0 * wanted, scale=size, condition=1e6
    )


def test_a_task_that_the_loops_forbid_is_named():
    model = kt.samples.four_bar()
    with pytest.raises(kt.SingularError, match=r"'coupler' does not exist.* 3 rows but rank 1"):
        kt.operational_space_inertia(
            model, model.neutral(), "coupler", frame="aligned", rows="linear"
        )


# --- velocities of one's own ---------------------------------------------------------------------


def test_quasi_velocities_that_loops_allow(rng):
    model, q, qd, _ = states("five_bar", rng)

    def columns(m, q):
        return kt.loops.null_space(m, q, m.zero_velocity).G

    y = qd[:, coordinates(model)]
    found = kt.quasi_velocity_dynamics(model, q, y, columns)
    assert_close(found.inertia, kt.mass_matrix(model, q), condition=1e4)
    assert_close(found.bias, kt.bias_force(model, q, qd), condition=1e5)
    with pytest.raises(
        kt.LoopError, match=r"column 0 of B .* build B of kinetree.loops.null_space"
    ):
        kt.quasi_velocity_dynamics(model, q, qd, lambda m, q: np.eye(m.nv) + 0 * q[0])


# --- messages ------------------------------------------------------------------------------------


def test_coordinates_that_make_no_sense_are_rejected():
    bar = kt.samples.four_bar()
    q, rest = bar.neutral(), np.zeros(bar.nv)
    with pytest.raises(kt.LoopError, match=r"1 degrees of freedom; .* got 2: 'crank_joint'"):
        kt.mass_matrix(bar, q, independent=bar.joint_names[:2])
    five = kt.samples.five_bar()
    names = (five.joint_names[0], f"{five.loop_names[0]}[0]")
    with pytest.raises(
        kt.LoopError, match=r"closes a loop .* not the derivatives of its positions"
    ):
        kt.mass_matrix(five, five.neutral(), independent=names)
    with pytest.raises(kt.UnknownNameError, match="crank"):
        kt.mass_matrix(bar, q, independent="crnk_joint")
    with pytest.raises(kt.LoopError, match=r"has no loops.*got independent='crank_joint'"):
        kt.mass_matrix(bar.spanning_tree, q, independent="crank_joint")
    for function in (kt.loops.independent, kt.loops.null_space, kt.loops.null_space_rate):
        arrays = () if function is kt.loops.independent else (q, rest)
        with pytest.raises(kt.LoopError, match=rf"{function.__name__}.* has no loops: all its"):
            function(bar.spanning_tree, *arrays)


def test_a_loop_joint_that_follows_from_other_coordinates_is_named():
    model, rest = kt.samples.excavator(), np.zeros(4)
    names = ("boom_joint", "rod_eye")  # of one loop with one freedom; the stick is free
    message = (
        r"coordinates 'boom_joint', 'rod_eye' do not determine the motion of model 'excavator'"
    )
    with pytest.raises(kt.SingularError, match=message):
        kt.loops.null_space(model, model.neutral(), rest, independent=names)


def test_states_that_open_loops_are_rejected(rng):
    model, q, qd, _ = states("five_bar", rng)
    q[2], qd[1] = q[2] + 0.3, qd[1] + 1.0
    with pytest.raises(kt.ShapeError, match=r"sample \(2,\): q does not close loop"):
        kt.mass_matrix(model, q)
    with pytest.raises(kt.ShapeError, match=r"sample \(1,\): qd tears loop"):
        kt.bias_force(model, q, qd)


def test_coordinates_that_do_not_determine_the_motion_are_named():
    """The piston of an engine stands still at its dead centre, while the crank turns."""
    engine = kt.samples.slider_crank()
    q = np.array([np.pi / 2, 0.0, 0.0])
    dead = kt.loops.assemble(engine, q, hold=["main bearing"])
    G = kt.loops.null_space(engine, dead, np.zeros(3)).G
    assert abs(G[2, 0]) < 1e-12
    message = r"tie the variables 'cylinder'.*|'cylinder' do not determine the motion.*"
    with pytest.raises(kt.SingularError, match=message):
        kt.mass_matrix(engine, dead, independent="cylinder")


# --- how far to trust a plan ---------------------------------------------------------------------


@pytest.mark.parametrize("anywhere", [False, True])
def test_health_is_that_of_the_weakest_part(anywhere, rng):
    model, q, qd, _ = states("bennett", rng, 1)
    plan, (q,), (qd,) = coordinate_plan(model), q, qd
    qd = 3 * qd  # velocity products count
    at, health = allowed_motion(model, q, qd, plan, anywhere=anywhere)
    good = health()
    assert 1 <= good <= 1 / SMALLEST_PIVOT
    at.solve(np.ones(len(plan.columns)))
    assert health() == good
    for part, unit in (("pivots", SMALLEST_INERTIA), ("ratios", 1.0)):
        for ratio in (0.3, 0.9, 1e9):
            setattr(at, part, [1e9 * unit, ratio * unit])
            assert_close(health(), min(good, ratio))
        setattr(at, part, [])
    at.g = at.g + 1e-3 * np.max(np.abs(at.g))  # a motion that the rows left out forbid
    assert health() == 0
    assert at.G.shape == (model.nv, 1)


def test_open_loops_have_no_health(rng):
    model, (q,), (qd,), _ = states("five_bar", rng, 1)
    plan, off = coordinate_plan(model), np.zeros(model.nv)
    off[-1] = 0.1
    assert allowed_motion(model, q, qd, plan)[1]() >= 1
    assert allowed_motion(model, q + off, 0 * qd, plan)[1]() == 0
    assert allowed_motion(model, q, qd + 10 * off, plan)[1]() == 0
    assert allowed_motion(model, q, None, plan)[1]() >= 1
    assert allowed_motion(model, q + off, None, plan)[1]() == 0


def test_rates_of_other_coordinates_are_those_of_differences(rng):
    """``G`` of two coordinates, one of them of a loop joint, along a motion of closed loops."""
    model, (q,), (qd,), _ = states("five_bar", rng, 1)
    pin = int(np.argmax(np.abs(loop_joint_motion(model, q, qd).qd)))
    columns = (coordinate_plan(model).columns[0], model.nv + pin)

    def G(h):
        moved = kt.loops.assemble(model, q + h * qd)
        return allowed_motion_at(model, moved, 0 * qd).in_coordinates(columns).G

    at = allowed_motion_at(model, q, qd).in_coordinates(columns)
    h = 1e-3
    rate = (8 * (G(h) - G(-h)) - (G(2 * h) - G(-2 * h))) / (12 * h)
    size = np.max(np.abs(at.G)) * (1 + np.max(np.abs(qd))) ** 4
    assert np.max(np.abs(at.rate_along(qd) - rate)) < 1e-7 * size
    loops = [loop_joint_motion(model, q, column).qd[pin] for column in at.G.T]
    assert_close([at.G[columns[0]], loops], np.eye(2), condition=1e4)


def turning_guide(t):
    """A carriage on a line that turns with time: ``K = (cos t, sin t, 0)``."""
    line = kt.ConstraintFunction(
        "line", position=lambda q, t: [q[0] * np.cos(t) + q[1] * np.sin(t)]
    )
    return planar(line).at(t)


def test_a_constraint_that_time_moves_has_rates_of_its_coordinates():
    t, q = 0.6, np.zeros(3)
    model = turning_guide(t)
    for qd in (np.zeros(3), 2 * np.array([-np.sin(t), np.cos(t), 0.3])):
        at = allowed_motion_at(model, q, qd)
        rate = at.rate_along(qd)
        K, dK = np.array([np.cos(t), np.sin(t), 0]), np.array([-np.sin(t), np.cos(t), 0])
        assert_close(K @ rate + dK @ at.G, np.zeros(2), scale=1.0)
        assert_close(rate[list(at.columns)], np.zeros((2, 2)), scale=1.0)
    # at rest on a line that moves: no velocity of the state, but positions and G
    q = 1.5 * np.array([-np.sin(t), np.cos(t), 0])
    assert_close(K @ allowed_motion_at(model, q, None).G, np.zeros(2), scale=1.0)
    with pytest.raises(kt.errors.ShapeError, match="qd does not satisfy constraint 'line'"):
        allowed_motion_at(model, q, np.zeros(3))


@pytest.mark.parametrize("unit", [1.0, 1e-12, 1e12])
def test_inertia_is_singular_whatever_the_units_of_coordinates(unit):
    D, model = np.diag([1.0, unit]), kt.samples.five_bar()
    _require_inertia(model, D @ np.array([[2.0, 1.0], [1.0, 2.0]]) @ D)
    _require_inertia(model, np.zeros((0, 0)))
    for H in ([[1.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]], [[4.0, 2.0], [2.0, 0.9]]):
        with pytest.raises(kt.errors.SingularError, match="moves no inertia"):
            _require_inertia(model, D @ np.array(H) @ D)


def test_factors_and_solutions_report_their_pivots(rng):
    model, (q,), (qd,), _ = states("five_bar", rng, 1)
    at = allowed_motion_at(model, q, qd)
    H, L = at.inertia, at.factors()
    D, L_ = np.diag(np.diag(L)), np.tril(L, -1) + np.eye(2)
    assert_close(L_.T @ D @ L_, H, condition=10)
    assert_close(at.pivots, np.diag(L) / np.diag(H))
    b = rng.standard_normal((2, 3))
    assert_close(H @ at.solve(b), b, condition=100)
    assert_close(at.solve(b[:1], rows=[1]), b[:1] / H[1, 1])
    assert_close(at.response(np.eye(model.nv)), at.G @ np.linalg.solve(H, at.G.T), condition=100)
    at.inertia = np.array([[1.0, 1.0], [1.0, 1.0]])
    for call in (at.factors, lambda: at.solve(b)):
        with pytest.raises(kt.errors.SingularError, match="some motion that its loops allow"):
            call()


def test_pivots_are_compared_with_their_usual_sizes(rng):
    model, (q,), (qd,), _ = states("five_bar", rng, 1)
    plan = coordinate_plan(model)
    found = [
        allowed_motion(model, q, qd, plan._replace(usual=size * plan.usual))[1]()
        for size in (1e4, 2e4, 1e-4)
    ]
    assert_close(found[1], found[0] / 2)
    assert found[0] < 1
    assert_close(found[2], 1 / SMALLEST_PIVOT)


def test_what_time_moves_is_named():
    drive = kt.Prescribed(kt.Revolute("z"), lambda t: ([np.sin(t)], [np.cos(t)], [-np.sin(t)]))
    I = Inertia.from_mass_center(1.0, np.ones(3), np.eye(3))
    for last in range(4):
        builder = kt.ModelBuilder("arm")
        for n in range(3):
            joint = drive if n == last else kt.Revolute("y")
            builder.body(f"link{n}", joint=joint, joint_name=f"j{n}", inertia=I)
        moved = builder.build()
        if last == 3:
            require_unmoved(moved, "a map")
            continue
        with pytest.raises(kt.errors.JointError) as raised:
            require_unmoved(moved, "a map")
        assert "a map has no meaning for model 'arm'" in str(raised.value)
        assert f"constraint 'j{last}' moves by itself" in str(raised.value)
    guided = turning_guide(0.1)
    require_unmoved(guided, "a map", constraints=False)
    with pytest.raises(kt.errors.JointError, match="'line' moves by itself"):
        require_unmoved(guided, "a map")
