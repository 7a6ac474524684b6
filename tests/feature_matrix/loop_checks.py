"""What is required of ``kinetree.loops``: with loops, and of mechanisms that have none."""

import numpy as np
from feature_matrix.checks import Coordinates, kinetic_rate, max_of, passive, tendon_length
from feature_matrix.walk import check, not_of_a_model

import kinetree as kt
from kinetree.spatial import Plucker

L = kt.loops


def slow_row_space(K):
    """Orthonormal rows."""
    _, s, Vt = np.linalg.svd(np.asarray(K, float))
    return Vt[: int(np.sum(s > 1e-7 * max(s, default=0.0)))]


def projector(K):
    rows = slow_row_space(K)
    return rows.T @ rows


def allowed(c, tau=None):
    """An acceleration that the loops allow."""
    return c.qdd if c.singular else c.ref.accelerations(c.tau if tau is None else tau)


# --- constraints ---------------------------------------------------------------------------------


@check("loops.constraint")
def _(f, c):
    for coordinates in ("loop", "base"):
        found = f(c.model, c.q, c.qd, coordinates=coordinates)
        f.same(projector(found.K), projector(c.ref.rows[0]))
        K, k = c.ref.rows
        qdd = np.linalg.pinv(K) @ k
        f.same(found.K @ qdd, found.k, scale=max_of(found.K, found.k))
        f.same(found.error, 0 * found.error, scale=c.length)
        f.same(found.rate, 0 * found.rate, scale=max_of(c.ref.v))


@check("loops.error", "loops.closure_error")
def _(f, c):
    found = f(c.model, c.q)
    f.same(found, 0 * found, scale=c.length)
    own = sum(p.rows for p in c.plain.constraints)
    f.same(len(found), own + sum(6 - p.joint.nv for p in c.plain.loops))


@check("loops.loop_gaps")
def _(f, c):
    found = f(c.model, c.q)
    count = len(c.model.loops) + len(c.model.constraints)
    f.holds(len(found) == count, "a gap for every loop and constraint")
    f.same(list(found.values()), np.zeros(len(found)), scale=c.length)


@check("loops.loop_positions")
def _(f, c):
    found = f(c.model, c.q)
    f.holds(set(found) == set(c.model.loop_names), "all loop joints")
    for name, expected in c.ref.loop_positions().items():
        f.same(found[name], expected, scale=1.0)


@check("loops.loop_velocities")
def _(f, c):
    found = f(c.model, c.q, c.qd)
    f.holds(set(found) == set(c.model.loop_names), "all loop joints")
    for name, expected in c.ref.loop_rates().items():
        f.same(found[name], expected, scale=max_of(c.qd))


@check("loops.loop_joint_forces")
def _(f, c):
    forces = {p.name: np.arange(1.0, p.joint.nv + 1) for p in c.model.loops}
    expected = c.ref.loop_forces(forces)
    f.same(f(c.model, c.q, forces), expected, scale=max_of(expected))


@check("loops.limit_distances")
def _(f, c):
    found = f(c.model, c.q)
    f.holds(set(found) <= {*c.model.loop_names, *c.model.joint_names}, "joints")
    for lower, upper in found.values():
        f.holds(not np.any(np.isnan([lower, upper])), "no NaN")


@check("loops.scaling")
def _(f, c):
    found = f(c.model)
    f.holds(found.length > 0, "a length")
    f.same(len(found.columns), c.ref.nv)
    f.same(found.rows.shape, (len(c.ref.rows[0]),))


@check("loops.mobilities")
def _(f, c):
    f.same(f(c.model, np.stack([c.q, c.q])), [c.ref.nv - c.ref.rank] * 2)


@check("loops.mobility")
def _(f, c):
    found = f(c.model, c.q)
    f.same((found.tree_dof, found.rank), (c.ref.nv, c.ref.rank))
    f.same(found.constraints - len(found.redundant), found.rank)
    f.holds(c.ref.nv - c.ref.rank in found.nearby, "it moves on")


@check("loops.determines")
def _(f, c):
    lead = [c.plain.joint_names[i - 1] for i in c.ref.leaders if c.plain.joint[i].nv]
    for names in (lead, lead[:1]):
        at = np.concatenate(
            [[], *(np.arange(c.ref.nv)[c.plain.v_slice[c.plain.joint_index(n)]] for n in names)]
        ).astype(int)
        whole = np.concatenate([c.ref.rows[0], np.eye(c.ref.nv)[at]])
        expected = bool(np.linalg.matrix_rank(whole, tol=1e-7) == c.ref.nv)
        f.holds(f(c.model, c.q, names) is expected, f"{expected}")


@check("loops.singularity", "loops.singularities")
def _(f, c):
    many = f.name == "loops.singularities"
    found = f(c.model, c.q[None])[0] if many else f(c.model, c.q)
    s = np.linalg.svd(L.scaling(c.plain).apply(c.ref.rows[0]), compute_uv=False)[: c.ref.rank]
    f.holds(not found.is_singular, "it is not singular")
    f.same(found.kappa, max(s) / min(s) if len(s) else 1.0)


# --- configurations ------------------------------------------------------------------------------


def closes(f, c, q):
    r = c.moving(q=np.asarray(q, float), qd=0 * c.qd)
    for loop in c.plain.loops:
        p, s = r._ends(loop, r.poses(r.q))
        at, _ = r._relative(loop, r.q)
        X = loop.joint.jcalc(at, np.zeros(loop.joint.nv))[0]
        R, d = p[0].T @ s[0], p[0].T @ (s[1] - p[1])
        f.same(X.E.T, R, scale=1.0)
        f.same(X.r, d, scale=1.0)
    f.holds(np.all(np.isfinite(q)), "numbers")


@check("loops.assemble")
def _(f, c):
    q = f(c.model, c.plain.integrate(c.q, 0.05 * c.y) if c.plain.nv else c.q)
    closes(f, c, q)


@check("loops.assemblies")
def _(f, c):
    hold = [c.free_joint] if c.model.loops else list(c.model.joint_names)
    if c.feature == "loop that floats":
        hold = ["floating", "cran"]
    elif not c.model.loops:
        hold = [c.plain.joint_names[i - 1] for i in c.ref.leaders if c.plain.joint[i].nv]
        hold = hold[c.ref.rank :]
    found = f(c.model, hold, q=c.q, starts=8)
    f.holds(len(found) >= 1, "one is where it stands")
    for q in found:
        closes(f, c, q)
    f.same(c.plain.difference(c.q, found[0]), 0 * c.qd, scale=1.0, tolerance=1e-6)


@check("loops.project_configuration")
def _(f, c):
    closes(f, c, f(c.model, c.plain.integrate(c.q, 1e-3 * c.y)))


@check("loops.project_velocity")
def _(f, c):
    found = f(c.model, c.q, c.y, weights="plain")
    expected = c.ref.null @ (c.ref.null.T @ c.y) + c.ref.moving
    f.same(found, expected, scale=max_of(c.y))


@check("loops.project_state")
def _(f, c):
    q, qd = f(c.model, c.plain.integrate(c.q, 1e-3 * c.y), c.qd + 1e-3 * c.y)
    closes(f, c, q)
    r = c.moving(q=q, qd=qd)
    f.same(r.rows[0] @ (qd - r.moving), 0 * r.rows[1], scale=max_of(r.rows[0]) * max_of(qd))


@check("loops.follow")
def _(f, c):
    names = ["floating", "cran"] if c.feature == "loop that floats" else None
    if names is None:
        names = [c.plain.joint_names[i - 1] for i in c.ref.leaders if c.plain.joint[i].nv]
        names = names[:1] if c.model.loops else names[c.ref.rank :]
    path = {}
    for n in names:
        i = c.plain.joint_index(n)
        start, joint = c.q[c.plain.q_slice[i]], c.plain.joint[i]
        path[n] = np.stack([start, joint.integrate(start, np.full(joint.nv, 0.01))])
    found = f(c.model, c.q, path)
    closes(f, c, found.q[-1])
    for n in names:
        at = c.plain.q_slice[c.plain.joint_index(n)]
        f.same(found.q[-1][at], path[n][-1], scale=1.0)


@check("loops.weld_loops")
def _(f, c):
    welded = f(c.model)
    q, qd = kt.loops.welded_state(c.model, c.q, c.qd) if c.model.loops else (c.q, c.qd)
    if c.symbols or c.plain is not c.model:
        return f.holds(welded == c.model, "nothing to weld")
    tau = np.concatenate([c.tau, np.zeros(welded.nv - c.model.nv)])
    if not c.singular:
        found = kt.forward_dynamics(welded, q, qd, tau, method="implicit")
        f.same(found[: c.ref.nv], allowed(c), tolerance=1e-7)
    f.holds(all(isinstance(p.joint, kt.Fixed) for p in welded.loops), "welds")


@check("loops.welded_state")
def _(f, c):
    q, qd = f(c.model, c.q, c.qd)
    f.same(q, np.concatenate([c.q, *c.ref.loop_positions().values()]), scale=1.0)
    f.same(qd, np.concatenate([c.qd, *c.ref.loop_rates().values()]), scale=max_of(c.qd))


# --- motion --------------------------------------------------------------------------------------


@check("loops.solve")
def _(f, c):
    massless = any(not I[0] for I in c.ref.inertias)  # "sparse" inverts the inertia of each body
    for forces in (None, c.f_ext):
        for method in ("auto", "kkt", *(() if massless else ("sparse",))):
            found = f(c.model, c.q, c.qd, c.tau, forces, method=method)
            qdd = c.ref.accelerations(c.tau, forces)
            f.same(found.qdd, qdd, tolerance=1e-8)
            external = 0.0 if forces is None else c.ref.forces(forces)
            balance = c.ref.required(qdd) - c.tau - external
            f.same(found.tau_c, balance, scale=max_of(balance, c.tau, c.ref.C), tolerance=1e-8)
            f.same(found.rank, c.ref.rank)


@check("loops.solve_bodies")
def _(f, c):
    X_0 = [Plucker(R.T, p) for R, p in c.ref.T]
    v = [kt.Motion(V[:3], V[3:] + np.cross(p, V[:3])) for V, (_, p) in
         zip(c.ref.v, c.ref.T, strict=True)]  # fmt: skip
    found = f(c.model, X_0, v, c.tau)
    a = c.ref.J @ allowed(c) + c.ref.a_bias
    for i in range(1, c.ref.count + 1):
        w, p = c.ref.v[i, :3], c.ref.T[i][1]
        dw = a[i, :3]
        # spatial acceleration at the origin of the base, of the point of the body that passes it
        v_0 = c.ref.v[i, 3:] - np.cross(w, p)
        linear = a[i, 3:] - np.cross(dw, p) + np.cross(w, np.cross(w, -p)) - np.cross(w, v_0)
        f.same(found.a[i].to_array(), np.concatenate([dw, linear]), scale=max_of(a), tolerance=1e-8)
    f.holds(found.rank > 0 or not c.ref.count, "constraints of joints")


@check("loops.inverse_dynamics")
def _(f, c):
    qdd = allowed(c) if not c.singular else c.qdd
    found = f(c.model, c.q, c.qd, qdd)
    f.same(c.ref.null.T @ found.tau, c.ref.null.T @ c.ref.required(qdd), tolerance=1e-8,
           scale=max_of(c.ref.required(qdd), c.ref.C))  # fmt: skip


@check("loops.actuation")
def _(f, c):
    found = f(c.model, c.q)
    f.same(found.mobility, c.ref.nv - c.ref.rank)
    f.same(found.rank, c.ref.nv - c.ref.rank)


@check("loops.actuation_matrix")
def _(f, c):
    f.same(f(c.model, c.q).shape, (c.ref.nv, 0))
    lead = c.free_joint
    if lead is None:
        return
    joint = c.model.joint_index(lead)
    gear = tuple(np.arange(2.0, 2.0 + c.model.joint[joint].nv))
    motor = c.model.replace(actuators=(kt.Actuator("motor", joint, gear),))
    B = np.zeros((c.ref.nv, 1))
    B[c.model.v_slice[joint], 0] = gear
    f.same(f(motor, c.q), B)


def acceleration_derivatives(c, directions, tau=None):
    """Derivatives of the accelerations by velocities, springs and dampers included."""

    def qdd(s, e):
        r = c.moving(qd=c.qd + s * e)
        return r.accelerations((c.tau if tau is None else tau) + smooth(c, r))

    columns = [c.ref.difference(lambda s, e=e: qdd(s, e)) for e in directions]
    return np.stack(columns, -1)


def smooth(c, r):
    """Passive forces in another state."""
    import copy

    other = copy.copy(c)
    other.__dict__["ref"], other.q, other.qd = r, r.q, r.qd
    return passive(other)


@check("loops.linearize_in_coordinates")
def _(f, c):
    tau = c.tau
    found = f(c.model, c.q, c.qd, tau)
    p = c.ref.nv - c.ref.rank
    f.same(found.A.shape, (2 * p, 2 * p))
    f.same(projector(found.G.T), projector(c.ref.null.T))
    f.same(found.qdd, c.ref.accelerations(tau + passive(c)), tolerance=1e-8)
    # forces: dqdd = G ydd for a change of tau
    N = c.ref.null
    response = N @ np.linalg.solve(N.T @ c.ref.H @ N, N.T)
    f.same(found.G @ found.B[p:], response, tolerance=1e-8)
    # accelerations of the independent variables, whose rows of G are those of the unit matrix
    rows = [int(np.argmin(np.abs(found.G - e).sum(axis=1))) for e in np.eye(p)]
    f.same(found.G[rows], np.eye(p))
    d = acceleration_derivatives(c, found.G.T)
    f.same(found.A[p:, p:], d[rows], scale=max_of(d, response), tolerance=1e-6)


@check("loops.linearize_on_manifold")
def _(f, c):
    found = f(c.model, c.q, c.qd, c.tau)
    n = c.ref.nv
    qdd = c.ref.accelerations(c.tau + passive(c))
    f.same(found.rate, np.concatenate([c.qd, qdd]), tolerance=1e-8)
    N = c.ref.null
    f.same(found.B[n:], N @ np.linalg.solve(N.T @ c.ref.H @ N, N.T), tolerance=1e-8)
    f.same(projector(found.tangent[:n, : N.shape[1]].T), projector(N.T))


@check("loops.implicit_step")
def _(f, c):
    dt = 1e-6 if c.feature == "tiny" else 1e-4  # small mechanisms are quick
    found = f(c.model, c.q, c.qd, c.tau, dt)
    closes(f, c, found.q)
    a = c.ref.accelerations(c.tau + passive(c))
    f.same(found.qd, c.qd + dt * a, scale=max_of(c.qd), tolerance=1e-5)
    moved = c.ref.moved(c.q, c.qd, dt)
    f.same(found.q, moved, scale=1.0, tolerance=1e-5)


@check("loops.coordinate_motion")
def _(f, c):
    names = ["floating", "cran"] if c.feature == "loop that floats" else ["cran"]
    if not c.model.loops:
        names = [c.plain.joint_names[i - 1] for i in c.ref.leaders if c.plain.joint[i].nv]
        names = names[c.ref.rank :]
    qdd = allowed(c)
    columns = np.concatenate(
        [np.arange(c.ref.nv)[c.plain.v_slice[c.plain.joint_index(n)]] for n in names] or [[]]
    ).astype(int)
    y = c.plain.difference(c.plain.neutral(), c.q)[columns]
    found = f(c.model, c.q, y, c.qd[columns], qdd[columns], independent=names)
    f.same(found.q, c.q, scale=1.0)
    f.same(found.qd, c.qd, scale=max_of(c.qd))
    f.same(found.qdd, qdd, scale=max_of(qdd), tolerance=1e-8)


@check("loops.torque_derivatives")
def _(f, c):
    names = ["cran"] if c.feature != "loop that floats" else ["floating", "cran"]
    if not c.model.loops:
        names = [c.plain.joint_names[i - 1] for i in c.ref.leaders if c.plain.joint[i].nv]
        names = names[c.ref.rank :]
    qdd = allowed(c)
    found = f(c.model, c.q, c.qd, qdd, actuated=names)
    at = np.concatenate(
        [np.arange(c.ref.nv)[c.plain.v_slice[c.plain.joint_index(n)]] for n in names] or [[]]
    ).astype(int)
    N = c.ref.null
    wanted = N.T @ (c.ref.required(qdd) - passive(c))
    f.same(N[at].T @ found.tau, wanted, scale=max_of(wanted, c.ref.C), tolerance=1e-8)


@check("loops.mechanical_energy")
def _(f, c):
    total = c.ref.kinetic() + c.ref.potential_at(c.q) + passive_energy(c.ref)
    f.same(f(c.model, c.q, c.qd), total)


def passive_energy(r):
    """Of the springs in joints and tendons, and of weight that is carried."""
    q, at = r.full(r.q), r.loop_positions()
    energy = sum(spring_energy(body, q[i]) for i, body in enumerate(r.whole.bodies, start=1))
    energy += sum(spring_energy(p, at[p.name]) for p in r.model.loops)
    for t in r.whole.tendons:
        L = tendon_length(t, q)
        energy += t.stiffness * (L - np.clip(L, *t.rest)) ** 2 / 2
    for g in r.model.gravity_compensation:
        R, p = r.T[g.body]
        energy += g.mass * r.gravity @ (p + R @ g.center)
    return energy


def spring_energy(part, q):
    if not part.dynamics or not part.dynamics.stiffness:
        return 0.0
    stretch = np.asarray(q) - np.array(part.dynamics.rest or (0.0,))
    return float(np.array(part.dynamics.stiffness) @ stretch**2) / 2


@check("loops.stabilization_time")
def _(f, c):
    f.holds(f(c.model) > 0 and np.isfinite(f(c.model)), "a time")


# --- structure -----------------------------------------------------------------------------------


@check("loops.clusters")
def _(f, c):
    found = f(c.model)
    f.same(sum(len(k.loops) for k in found), len(c.model.loops) + len(c.model.constraints))
    K = c.ref.rows[0]
    inside = np.zeros(c.ref.nv, bool)
    for k in found:
        inside[k.columns] = True
    f.same(K[:, ~inside], 0 * K[:, ~inside], scale=1.0)


@check("loops.renumber")
def _(f, c):
    found = f(c.model)
    if c.plain is c.model and not c.singular:
        qdd = kt.forward_dynamics(
            found.model, c.q[found.q], c.qd[found.v], c.tau[found.v], method="implicit"
        )
        f.same(qdd, allowed(c)[found.v], tolerance=1e-8)
    f.holds(sorted(found.order) == list(range(c.ref.count + 1)), "a permutation")


@check("loops.order_of")
def _(f, c):
    found = f(c.model)
    bodies = {n for kind, n in found.nodes if kind == "body"}
    f.holds(bodies == set(range(1, c.ref.count + 1)), "every body once")
    f.same(len(found.nodes), len(set(found.nodes)))


@check("loops.system_of")
def _(f, c):
    system = f(c.model, c.tau)
    f.same(system.M(c.q), c.ref.H)
    G, Gdot = system.G(c.q), system.Gdot_v(c.q, c.qd)
    f.same(projector(G), projector(c.ref.rows[0]))
    qdd = c.ref.accelerations(c.tau + passive(c)) if not c.singular else 0 * c.qdd
    f.same(G @ qdd, -Gdot, scale=max_of(G, Gdot), tolerance=1e-8)
    rest = system.M(c.q) @ qdd - system.F(0.0, c.q, c.qd)
    if not c.singular:
        f.same(
            c.ref.null.T @ rest,
            np.zeros(c.ref.nv - c.ref.rank),
            scale=max_of(c.ref.C),
            tolerance=1e-8,
        )
    if system.energy is not None:
        power = kinetic_rate(c, qdd) + c.ref.along(c.ref.potential_at)
        h = 1e-4
        ahead = [system.energy(c.ref.moved(c.q, c.qd, s), c.qd + s * qdd) for s in (h, -h)]
        rate = (ahead[0] - ahead[1]) / (2 * h)
        f.same(rate, power, scale=max_of(power, c.ref.kinetic(), c.ref.weight), tolerance=1e-5)


@check("loops.dimensions")
def _(f, c):
    f.makers = ("system_of",)
    found = f(kt.loops.system_of(c.model), c.q)
    f.same((found.n, found.rank), (c.ref.nv, c.ref.rank))


@check("loops.drift")
def _(f, c):
    f.makers = ("system_of",)
    found = f(kt.loops.system_of(c.model), c.q[None], c.qd[None])
    f.same((found.position[0], found.velocity[0]), (0.0, 0.0), scale=max_of(c.ref.v, c.length))


@check("loops.integrate_system")
def _(f, c):
    f.makers = ("system_of",)
    system = kt.loops.system_of(c.model)
    h = 1e-5 * min(1.0, np.sqrt(c.length))
    found = f(system, c.q, c.qd, 2 * h, h)
    a = c.ref.accelerations(passive(c))
    f.same(found.v[-1], c.qd + 2 * h * a, scale=max_of(c.qd), tolerance=1e-5)
    closes(f, c, found.q[-1])


@check("loops.linearize_system")
def _(f, c):
    f.makers = ("system_of",)
    found = f(kt.loops.system_of(c.model), c.q, c.qd)
    n, N = c.ref.nv, c.ref.null
    f.same(found.rate[n:], c.ref.accelerations(passive(c)), tolerance=1e-8)
    f.same(projector(found.tangent[:n, : N.shape[1]].T), projector(N.T))
    # accelerations by velocities that the constraints allow
    d = acceleration_derivatives(c, N.T, np.zeros(n))
    f.same(found.A[n:, n:] @ N, d, scale=max_of(d, found.A), tolerance=1e-6)


@check("loops.compare_forms")
def _(f, c):
    f.makers = ("system_of",)
    system = kt.loops.system_of(c.model)
    h = 1e-5 * min(1.0, np.sqrt(c.length))
    found = f(system, c.q, c.qd, 2 * h, h, forms=("svd", "regularized"), holds=("ascher_chin",))
    f.same(len(found.motions), 2)
    a = c.ref.accelerations(passive(c))
    for motion in found.motions.values():
        f.same(motion.v[-1], c.qd + 2 * h * a, scale=max_of(c.qd), tolerance=1e-5)
        closes(f, c, motion.q[-1])


@check("loops.independent")
def _(f, c):
    y = Coordinates(c, f(c.model))
    f.same(np.linalg.matrix_rank(c.ref.null[y.columns]), c.ref.nv - c.ref.rank)


@check("loops.null_space")
def _(f, c):
    found, y = f(c.model, c.q, c.qd), Coordinates(c, L.independent(c.model))
    f.same(found.G, y.G)
    f.same(found.g, y.g, scale=max_of(y.g, c.qd), tolerance=1e-8)
    f.holds(found.coordinates == L.independent(c.model), "names")


@check("loops.null_space_rate")
def _(f, c):
    found, y = f(c.model, c.q, c.qd), Coordinates(c, L.independent(c.model))
    rate = c.ref.along(lambda q, t: c.ref.coordinates_at(q, y.columns, t))
    f.same(found, rate, scale=max_of(rate, y.G), tolerance=1e-8)


@check("loops.block_null_space")
def _(f, c):
    found = f(c.model, c.q, c.qd)
    f.same(projector(found.G.T), projector(c.ref.null.T))
    K, k = c.ref.rows
    f.same(K @ found.g, k, scale=max_of(K, k))


@check("loops.rank_policy")
def _(f, c):
    policy = f(c.model)
    f.same(policy.tolerance, 1e-3)
    f.same(policy.misalignment, 0.0, scale=1e-9, tolerance=1.0)  # they are made with all digits
    rank = policy.generic_rank()
    f.holds(rank in (None, c.ref.rank), f"rank {rank}, not {c.ref.rank}")


@check("loops.with_misalignment")
def _(f, c):
    found = f(c.model, 0.01)
    f.same([loop.misalignment for loop in found.loops], [0.01] * len(c.model.loops))
    f.holds(found.replace(loops=c.model.loops) == c.model, "nothing else changes")
    f.same(kt.loops.rank_policy(found).tolerance, 0.01 if c.model.loops else 1e-3)


not_of_a_model("of a matrix", "loops.rank", "loops.dependencies", "loops.independent_rows")
not_of_a_model("of a graph", "loops.elimination_order")
