"""What is required of contact, control, edits, identification, and functions of functions."""

import tempfile
from pathlib import Path

import numpy as np
from feature_matrix.checks import Coordinates, kinetic_rate, max_of, parameters, passive  # noqa: F401
from feature_matrix.features import made_once
from feature_matrix.loop_checks import acceleration_derivatives, projector
from feature_matrix.reference import Reference
from feature_matrix.walk import check, not_of_a_model, numbers

import kinetree as kt
from kinetree.contact import Contacts, contact_states
from kinetree.identification.base import allowed_states
from kinetree.model.geometry import Geometry, Sphere
from kinetree.spatial import Inertia

# --- contact -------------------------------------------------------------------------------------


class Touch:
    """The tip touches a flat wall that is fixed to the base; the wall is in its way."""

    def __init__(self, c):
        self.body, (_, self.p), lever = c.ref.frame(c.name)
        self.J = (c.ref.shift(lever) @ c.ref.J[self.body])[3:]
        a = c.ref.J[self.body] @ (0 * c.qd) + c.ref.a_bias[self.body]
        w = c.ref.v[self.body, :3]
        self.bias = a[3:] + np.cross(a[:3], lever) + np.cross(w, np.cross(w, lever))
        self.v = (c.ref.shift(lever) @ c.ref.v[self.body])[3:]
        free = c.ref.accelerations(c.tau) if not c.singular else c.qdd
        n = -(self.J @ free + self.bias) + 0.1 * c.vector
        self.n = n / (np.linalg.norm(n) or 1.0) if np.any(n) else np.array([0.0, 0.0, 1.0])
        self.contacts = Contacts(
            np.array([0]), np.array([self.body]), self.p[None], self.n[None], np.zeros(1), ("tip",)
        )


def sliding(c):
    """The case with a velocity along the wall, and the touch."""
    import copy

    t = Touch(c)
    K = np.concatenate([c.ref.rows[0], (t.n @ t.J)[None]])
    _, s, Vt = np.linalg.svd(K)
    rank = int(np.sum(s > 1e-7 * max(s, default=0.0)))
    N = Vt[rank:].T
    other = copy.copy(c)
    other.qd = N @ (N.T @ c.qd)
    other.__dict__.pop("ref", None)
    u = Touch(other)
    u.n, u.contacts = t.n, t.contacts
    return other, u


@check("contact.jacobian")
def _(f, c):
    t = Touch(c)
    J = f(c.model, c.q, t.contacts)[0]
    f.same(J[0], t.n @ t.J, scale=max_of(t.J))
    f.same(J.T @ J, t.J.T @ t.J, scale=max_of(t.J.T @ t.J))


@check("contact.velocity")
def _(f, c):
    t = Touch(c)
    v = f(c.model, c.q, c.qd, t.contacts)[0]
    f.same(v[0], t.n @ t.v, scale=max_of(t.v))
    f.same(v @ v, t.v @ t.v, scale=max_of(t.v @ t.v))


@check("contact.bias")
def _(f, c):
    t = Touch(c)
    b = f(c.model, c.q, c.qd, t.contacts)[0]
    f.same(b[0], t.n @ t.bias, scale=max_of(t.bias, t.v))


@check("contact.forward_dynamics")
def _(f, c):
    c, t = sliding(c) if not c.singular else (c, Touch(c))
    if abs(t.n @ t.v) > 1e-9:  # driven into the wall: no velocity of the joints avoids it
        return f.holds(True)
    found = f(c.model, c.q, c.qd, c.tau, t.contacts, friction=0.0)
    qdd = c.ref.accelerations(c.tau)
    row = (t.n @ t.J)[None]
    if row @ qdd + t.n @ t.bias < 0 and np.max(np.abs(row @ c.ref.null), initial=0.0) > 1e-9:
        K, k = c.ref.rows
        rows = np.concatenate([K, row]), np.append(k, -t.n @ t.bias)
        held = Reference(c.plain, c.q, c.qd)
        held.__dict__["rows"] = rows
        qdd = held.accelerations(c.tau)
    f.same(found.qdd, qdd, scale=max_of(qdd, c.qd), tolerance=1e-8)
    return None


def impulse(c, rows, right):
    """Velocity after an impact that makes ``rows @ qd = right``, loops kept."""
    N = c.ref.null
    A = rows @ N
    M = N.T @ c.ref.H @ N
    start = np.linalg.pinv(N) @ c.qd
    k = right - rows @ c.qd
    size = max_of(A)
    Mi = np.linalg.inv(M)
    return c.qd + N @ (Mi @ A.T @ np.linalg.pinv(A @ Mi @ A.T, rcond=1e-10) @ k), start, size


@check("contact.impact")
def _(f, c):
    t = Touch(c)
    if t.n @ t.v > 0:
        t.n = -t.n
        t.contacts = t.contacts._replace(normal=t.n[None])
    found = f(c.model, c.q, c.qd, t.contacts, restitution=0.4, friction=0.0)
    drift = t.n @ (t.v - t.J @ c.qd)
    row = (t.n @ t.J)[None]
    if np.max(np.abs(row @ c.ref.null), initial=0.0) < 1e-9:
        return f.same(found.qd, c.qd, scale=1.0)
    expected, *_ = impulse(c, row, np.array([-0.4 * (t.n @ t.v) - drift]))
    return f.same(found.qd, expected, scale=max_of(expected, c.qd), tolerance=1e-8)


@check("contact.capture")
def _(f, c):
    t = Touch(c)
    if t.n @ t.v > 0:
        t.n = -t.n
        t.contacts = t.contacts._replace(normal=t.n[None])
    found = f(c.model, c.q, c.qd, t.contacts)
    if np.max(np.abs(t.J @ c.ref.null), initial=0.0) < 1e-9:
        return f.same(found.qd, c.qd, scale=1.0)
    expected, *_ = impulse(c, t.J, -(t.v - t.J @ c.qd))
    return f.same(found.qd, expected, scale=max_of(expected, c.qd), tolerance=1e-7)


@check("contact.contact_changes")
def _(f, c):
    t = Touch(c)
    none = t.contacts.chosen(np.array([], int))
    contacts = t.contacts._replace(names=("wall/tip:0",))
    found = f(c.model, c.q, c.qd, none, contacts)
    f.holds(found[0] == ("wall/tip",) and not found[1] and not found[2], f"{found}")
    lost = f(c.model, c.q, c.qd, contacts, none)
    parts = bool(t.n @ t.v > 1e-6)
    f.holds((lost[1], lost[2])[not parts] == ("wall/tip",), f"{lost}")


@check("contact.with_ground")
def _(f, c):
    found = f(c.model, point=(0, 0, -50.0))
    f.holds(found.geometry[-1].name == "ground", "a plane")
    f.holds(found.replace(geometry=c.model.geometry) == c.model, "all else is as it was")


@made_once
def ball_and_target(c):
    """The model with a ball at a moving body's origin and one far away, and where they are."""
    body, (_, p), lever = c.ref.frame(c.name)
    shapes = [
        Geometry(body, Sphere(0.1), name="ball"),
        Geometry(0, Sphere(0.2), kt.xlt((30.0, 0.0, 0.0)), name="target"),
    ]
    return c.model.replace(geometry=shapes), p - lever, np.array([30.0, 0, 0])


@check("contact.distance")
def _(f, c):
    model, ball, target = ball_and_target(c)
    found, way = f(model, c.q, "ball", "target"), target - ball
    length = np.linalg.norm(way)
    f.same(found.gap, length - 0.3, scale=30)
    f.same(found.normal, way / length)
    f.same(found.points, [ball + 0.1 * way / length, target - 0.2 * way / length], scale=30)


@check("contact.ray_cast")
def _(f, c):
    model, ball, target = ball_and_target(c)
    found, way = f(model, c.q, target, ball - target, ignore=["target"]), ball - target
    length = np.linalg.norm(way)
    f.same(found.distance, length - 0.1, scale=30)
    f.same(found.normal, -way / length)
    f.holds(found.shape == 0, f"{found}")


# --- control -------------------------------------------------------------------------------------


@check("linearize")
def _(f, c):
    tau = c.tau
    found = f(c.model, c.q, c.qd, tau)
    p = c.ref.nv - c.ref.rank
    nonholonomic = [own for own in c.plain.constraints if not own.holonomic]
    n = p + sum(own.rows for own in nonholonomic)
    f.same(found.A.shape, (n + p, n + p))
    N = c.ref.null
    response = N @ np.linalg.solve(N.T @ c.ref.H @ N, N.T)
    if not c.model.is_constrained:
        f.same(found.B[p:], response, scale=max_of(response), tolerance=1e-8)
        some = np.eye(p) if p < 4 else np.stack([c.y, c.qdd])  # directions
        d = acceleration_derivatives(c, some) if p else np.zeros((0, 0))
        f.same(found.A[p:, p:] @ some.T, d, scale=max_of(d, response), tolerance=1e-6)
        moved = [c.ref.difference(lambda s, e=e: moved_acceleration(c, s, e)) for e in some] or [
            np.zeros(0)
        ]
        derivative = np.stack(moved, -1) if p else np.zeros((0, 0))
        f.same(
            found.A[p:, :p] @ some.T, derivative, scale=max_of(derivative, response), tolerance=1e-6
        )
    else:
        G = found.G_u if nonholonomic else found.G
        f.same(G @ found.B[n:], response, scale=max_of(response), tolerance=1e-8)


def moved_acceleration(c, s, e):
    from feature_matrix.loop_checks import smooth

    r = c.moving(q=c.ref.moved(c.q, e, s))
    return r.accelerations(c.tau + smooth(c, r))


@check("control.equilibrium")
def _(f, c):
    found = f(c.model, c.q)
    r = c.moving(q=np.asarray(found.q, float), qd=0 * c.qd)
    from feature_matrix.loop_checks import smooth

    rest = r.null.T @ (np.asarray(found.tau) + smooth(c, r) - r.C)
    f.same(rest, 0 * rest, scale=max_of(r.C, r.H), tolerance=1e-7)


not_of_a_model(
    "of matrices", "control.continuous_lyapunov", "control.continuous_riccati",
    "control.discrete_lyapunov", "control.discrete_riccati", "control.lqr_gain",
    "control.pose_error",
)  # fmt: skip
not_of_a_model("of names of feet; tests/control", "control.gait", "control.trot")


# --- floating bases ------------------------------------------------------------------------------


class Afloat:
    """The state of a floating case as its base sees it, and the world's answer."""

    def __init__(self, c, f):
        f.makers = ("floating base",)
        self.base = kt.floating.of(c.model)
        self.R = c.ref.T[1][0]
        self.q, self.v_0, self.qd = c.q[7:], c.qd[:6], c.qd[6:]
        self.gravity = self.R.T @ c.ref.gravity
        self.args = (self.base, self.q, self.v_0, self.qd)

    def coordinates(self, c):
        """Of base and joints: those of the base are all independent."""
        if not c.model.loops:
            return Coordinates(c)
        base = (f"{c.model.joint_names[0]}[{k}]" for k in range(6))
        return Coordinates(c, (*base, *kt.loops.independent(self.base.tree)))


@check("floating.of")
def _(f, c):
    base = f(c.model)
    f.same(base.inertia.parameters(), c.plain.bodies[0].inertia.parameters())
    f.same(base.tree.body_count, c.ref.count - 1)


@check("floating.base_state")
def _(f, c):
    f_ext = np.ones((c.ref.count, 6))
    q, v_0, qd, gravity, forces = f(c.model, c.q, c.qd, f_ext)
    a = Afloat(c, f)
    f.same(forces[..., 3:], f_ext[..., 3:] @ a.R)
    f.same(np.concatenate([q, v_0, qd]), np.concatenate([a.q, a.v_0, a.qd]))
    f.same(gravity, a.gravity)


@check("floating.joint_state")
def _(f, c):
    if not isinstance(c.model.joint[1] if c.ref.count else None, kt.Free):
        q, qd = f(np.zeros(7), c.q, np.zeros(6), c.qd)
        f.same(q[7:], c.q)
        return f.same(qd[6:], c.qd)
    q, qd = f(c.q[:7], c.q[7:], c.qd[:6], c.qd[6:])
    f.same(q, c.q)
    return f.same(qd, c.qd)


@check("floating.forward_dynamics")
def _(f, c):
    a = Afloat(c, f)
    a_0, qdd = f(*a.args, c.tau[6:], a.gravity)
    tau = c.tau.copy()
    tau[:6] = 0
    expected = c.ref.accelerations(tau)
    f.same(qdd, expected[6:], scale=max_of(expected), tolerance=1e-8)
    f.same(a_0, expected[:6], scale=max_of(expected), tolerance=1e-8)


@check("floating.inverse_dynamics")
def _(f, c):
    a = Afloat(c, f)
    qdd = c.ref.accelerations(c.tau)[6:] if c.model.loops else c.qdd[6:]
    a_0, tau = f(*a.args, qdd, a.gravity)
    forces = c.ref.required(np.concatenate([a_0, qdd]))
    f.same(forces[:6], np.zeros(6), scale=max_of(c.ref.C), tolerance=1e-8)
    N = c.ref.null[6:]  # along which the forces of loops do no work
    f.same(N.T @ tau, N.T @ forces[6:], scale=max_of(c.ref.C), tolerance=1e-8)


@check("floating.equation_of_motion")
def _(f, c):
    a = Afloat(c, f)
    found, y = f(*a.args, a.gravity), a.coordinates(c)
    H = np.block([[found.I0c, found.F], [found.F.T, found.H]])
    f.same(H, y.G.T @ c.ref.H @ y.G)
    f.same(np.concatenate([found.p0c, found.C]), y.force(c.ref.C), tolerance=1e-8)


@check("floating.reduced_equation")
def _(f, c):
    a = Afloat(c, f)
    H, C = f(*a.args, a.gravity)
    tau = c.tau.copy()
    tau[:6] = 0
    y = a.coordinates(c)
    ydd = c.ref.accelerations(tau)[y.columns][6:]
    f.same(H @ ydd + C, (y.G.T @ tau)[6:], scale=max_of(C, c.tau), tolerance=1e-8)


@check("floating.momentum")
def _(f, c):
    a = Afloat(c, f)
    h, p = c.ref.momentum_at(c.q, c.qd), c.ref.T[1][1]
    L = h[:3] - np.cross(p, h[3:])
    f.same(f(*a.args), np.concatenate([a.R.T @ L, a.R.T @ h[3:]]))


@check("floating.generalized_jacobian")
def _(f, c):
    a = Afloat(c, f)
    J = f(a.base, a.q, c.name)
    H = c.ref.H
    recoil = np.concatenate([-np.linalg.solve(H[:6, :6], H[:6, 6:]), np.eye(c.ref.nv - 6)])
    body, (_, p), lever = c.ref.frame(c.name)
    world = c.ref.shift(lever) @ c.ref.J[body] @ recoil
    d = c.ref.shift(c.ref.T[1][1] - p) @ world  # of the point at the origin of the base
    f.same(J, np.concatenate([a.R.T @ d[:3], a.R.T @ d[3:]]))


# --- gears ---------------------------------------------------------------------------------------


@check("gears.ratios")
def _(f, c):
    f.same(f(c.model, c.q), c.ref.G)


@check("gears.rotors")
def _(f, c):
    f.holds(f(c.model) == (("j3_rotor",) if c.feature == "rotor" else ()), f"{f(c.model)}")


@check("gears.by_armature")
def _(f, c):
    found = f(c.model)
    if c.feature != "rotor":
        return f.holds(found.replace(postures=c.model.postures) == c.model, "nothing to change")
    i = c.model.body_index("j3_rotor")
    I = 20.0**2 * float(c.model.inertia[i].rotational[0, 0])
    f.same(found.armature[2], I)
    return f.holds(not found.couplings, "no gear is left")


@check("gears.armature_error")
def _(f, c):
    found = f(c.model, c.q, c.qd)
    H = Reference(kt.gears.by_armature(c.model), c.q, c.qd).H
    d = np.sqrt(np.outer(np.diagonal(c.ref.H), np.diagonal(c.ref.H)))
    f.same(found.inertia, np.max(np.abs(H - c.ref.H) / d), scale=1.0)


@check("gears.add_rotor")
def _(f, c):
    lead = [c.plain.joint_names[i - 1] for i in c.ref.leaders if c.plain.joint[i].nv == 1]
    name = lead[0] if lead else (c.plain.joint_names or ("j1",))[0]
    I = Inertia.from_mass_center(0.1, np.zeros(3), np.diag([1e-3, 1e-3, 2e-3]))
    found = f(c.model, name, ratio=30.0, inertia=I)
    if c.plain is c.model:
        H = Reference(found, c.q, c.qd).H - c.ref.H
        at = c.plain.v_slice[c.plain.joint_index(name)].start
        f.holds(H[at, at] > 0 and np.all(np.linalg.eigvalsh(H) > -1e-9), "inertia is added")
    f.holds(found.body_count == c.ref.count + 1, "one more body")


# --- edits ---------------------------------------------------------------------------------------


def numeric(model, c):
    """An edited model with numbers for symbols, and at the instant."""
    prescribed = {
        b.joint_name: b.joint.at(0.0) for b in model.bodies if isinstance(b.joint, kt.Prescribed)
    }
    return model.replace(joint=prescribed) if prescribed else model


@check("edit.lump_fixed")
def _(f, c):
    found = numeric(f(c.model), c)
    if c.symbols:
        return f.holds(found == c.model, "nothing to merge")
    r = Reference(found, c.q, c.qd)
    f.same(r.H, c.ref.H)
    return f.same(r.C, c.ref.C, scale=max_of(c.ref.C, c.ref.H))


@check("edit.lock")
def _(f, c):
    if c.free_joint is None:
        return f.holds(f(c.model, {}) == c.model, "nothing to lock")
    name = c.free_joint
    i = c.plain.joint_index(name)
    found = f(c.model, {name: c.q[c.plain.q_slice[i]]})
    if c.symbols:
        return f.holds(found.nv == c.ref.nv - c.plain.joint[i].nv, "locked")
    found = numeric(found, c)
    q = np.delete(c.q, np.arange(len(c.q))[c.plain.q_slice[i]])
    v = np.delete(np.arange(c.ref.nv), np.arange(c.ref.nv)[c.plain.v_slice[i]])
    return f.same(Reference(found, q, c.qd[v]).H, c.ref.H[v][:, v])


@check("edit.floating")
def _(f, c):
    I = Inertia.from_mass_center(1.0, np.zeros(3), np.eye(3))
    found = f(c.model, inertia=I, world="outer", joint_name="outer_joint")
    if c.symbols:
        return f.holds(found.nv == c.ref.nv + 6, "six more")
    q = np.concatenate([np.zeros(3), [1, 0, 0, 0], c.q])
    r = Reference(numeric(found, c), q, np.concatenate([np.zeros(6), c.qd]))
    return f.same(r.H[6:, 6:], c.ref.H)


@check("edit.grounded")
def _(f, c):
    found = f(c.model)
    if c.symbols:
        return f.holds(found.body_count == c.ref.count - 1, "one less")
    q, v = (
        np.delete(x, np.arange(len(x))[at[1]])
        for x, at in ((c.q, c.plain.q_slice), (c.qd, c.plain.v_slice))
    )
    rest = np.delete(np.arange(c.ref.nv), np.arange(c.ref.nv)[c.plain.v_slice[1]])
    return f.same(Reference(numeric(found, c), q, v).H, c.ref.H[rest][:, rest])


@check("edit.reroot")
def _(f, c):
    found = f(c.model, c.model.body_names[-1])
    r = Reference(found, found.neutral(), np.zeros(found.nv))
    old = Reference(c.model, c.model.neutral(), np.zeros(c.model.nv))
    f.same(r.mass, old.mass)
    # the same bodies: inertia of the joints that are not the root, up to the motion of the whole
    H, H_old = r.H, old.H
    reduced = [A[6:, 6:] - A[6:, :6] @ np.linalg.solve(A[:6, :6], A[:6, 6:]) for A in (H, H_old)]
    f.same(np.sort(np.linalg.eigvalsh(reduced[0])), np.sort(np.linalg.eigvalsh(reduced[1])))


@check("edit.extract")
def _(f, c):
    if c.model.loops:  # a loop is taken whole: with the body that carries all of it, or the base
        root = 1 if c.feature == "loop that floats" else 0
        found = f(c.model, c.model.body_names[root])
        f.same(found.body_count, c.ref.count)
        return f.same(Reference(found, c.q, c.qd).H, c.ref.H)
    body = c.model.body_names[-1]
    found = f(c.model, body)
    f.holds(found.body_names[-1] == body, "it is there")
    return f.same(found.body_count, 1 if c.ref.count else 0)


@check("edit.attach")
def _(f, c):
    other = kt.ModelBuilder("load").body(
        "load", joint=kt.Fixed(), inertia=Inertia.from_mass_center(0.5, np.zeros(3), np.eye(3))
    )
    found = f(c.model, other.build(), on=c.name, prefix="x_")
    if c.symbols:
        return f.holds(found.body_count == c.ref.count + 1, "one more")
    r = Reference(numeric(found, c), c.q, c.qd)
    body, _, lever = c.ref.frame(c.name)
    J = c.ref.shift(lever) @ c.ref.J[body]
    R = c.ref.frame(c.name)[1][0]
    return f.same(r.H, c.ref.H + 0.5 * J[3:].T @ J[3:] + J[:3].T @ R @ R.T @ J[:3])


@check("model.to_poe")
def _(f, c):
    screws, home = f(c.model)
    r = c.moving(q=c.plain.neutral(), qd=0 * c.qd)
    for i in range(1, c.ref.count + 1):
        R, p = r.T[i]
        f.same(home[i - 1][:3, :3], R)
        f.same(home[i - 1][:3, 3], p, scale=max_of(p, c.length))
        at = c.plain.v_slice[i]
        if at.stop > at.start:
            V = r.J[i][:, at.start]
            f.same(screws[i - 1], np.concatenate([V[:3], V[3:] + np.cross(p, V[:3])]))
    f.holds(len(home) == c.ref.count, "all bodies")


@check("model.dh_from_model")
def _(f, c):
    table = f(c.model)
    made = kt.from_dh(table.rows, base=table.base, tool=table.tool)
    f.same(len(table.rows), c.ref.count)
    # joint axes where all variables are zero, up to their sense
    r0 = c.moving(q=c.plain.neutral(), qd=0 * c.qd)
    r1 = Reference(made, made.neutral(), np.zeros(made.nv))
    whole, q = c.plain.uncoupled, c.plain.uncoupled.neutral()
    r0 = Reference(whole, q, np.zeros(whole.nv))
    for i in range(1, c.ref.count + 1):
        lines = []
        for r in (r0, r1):
            V, p = r.J[i][:, i - 1], r.T[i][1]
            lines.append(np.concatenate([V[:3], V[3:] + np.cross(p, V[:3])]))
        f.same(*lines, scale=max_of(*lines), tolerance=1e-7)


# --- equivalence ---------------------------------------------------------------------------------


@check("equivalence.lumped")
def _(f, c):
    found = f(c.model)
    if c.symbols or c.plain is not c.model:
        return f.holds(found.joint_names == c.model.joint_names, "joints")
    tree = found.spanning_tree  # masses may be negative there: no bodies for the reference
    f.same(kt.mass_matrix(tree, c.q + 0j).real, c.ref.H, tolerance=1e-8)
    C = kt.bias_force(tree, c.q + 0j, c.qd + 0j).real
    return f.same(C, c.ref.C, scale=max_of(c.ref.C), tolerance=1e-8)


@check("equivalence.compare")
def _(f, c):
    found = f(c.model, c.model, samples=1)
    f.same(np.array(found[:3]), np.zeros(3), scale=1.0)


@check("equivalence.augmented_bodies")
def _(f, c):
    found = f(c.model)
    children = {i: [k for k in range(1, c.ref.count + 1) if c.ref.parent[k] == i] for i in
                range(c.ref.count + 1)}  # fmt: skip

    def carried(i):
        return c.ref.inertias[i - 1][0] + sum(carried(k) for k in children[i])

    for i, I in enumerate(found, start=1):
        f.same(float(I.mass), c.ref.inertias[i - 1][0] + sum(carried(k) for k in children[i]))
    f.same(len(found), c.ref.count)


@check("equivalence.savings")
def _(f, c):
    found = f(c.model)
    f.holds(all(s.plain >= 0 and s.lumped >= 0 for s in found.values()), f"{found}")


not_of_a_model("of a joint", "equivalence.invariant_inertias", "equivalence.is_invariant")


# --- identification ------------------------------------------------------------------------------


@check("base_parameters")
def _(f, c):
    base = f(c.model, rotors=True)
    p = base.combinations @ np.concatenate([parameters(c), c.ref.armature])
    y = Coordinates(c)
    qdd = allowed_acceleration(c, y)
    Y = np.asarray(base.regressor(c.q, c.qd, qdd))
    f.same(Y @ p, y.G.T @ c.ref.required(qdd), scale=max_of(c.ref.C, p), tolerance=1e-6)


def allowed_acceleration(c, y):
    """One that loops allow."""
    return y.G @ c.qdd[y.columns] + y.g if c.model.is_constrained else c.qdd


@check("identify")
def _(f, c):
    rng = np.random.default_rng(1)
    # more rows than parameters, of which four bodies have forty
    count = 16 if c.model.is_constrained else 4 + 40 // max(c.ref.nv, 1)
    if c.model.is_constrained:
        q, qd, qdd, _ = allowed_states(c.model, count, rng)
    else:
        q = np.array([c.plain.random_configuration(rng) for _ in range(count)])
        q = q.reshape(count, len(c.q))
        qd, qdd = rng.standard_normal((2, count, c.ref.nv))
    moving = [(Reference(c.plain, *s[:2]), s[2]) for s in zip(q, qd, qdd, strict=True)]
    tau = np.array([r.required(a) for r, a in moving])
    found = f(c.model, q, qd, qdd, tau)
    base = kt.base_parameters(c.model)
    Y = np.asarray(base.regressor(q, qd, qdd))
    armature = np.array([r.G.T @ (r.armature * (r.G @ a + r.g)) for r, a in moving])
    expected = tau - armature
    if c.model.is_constrained:
        G = [c.ref.coordinates_at(x, Coordinates(c).columns) for x in q]
        expected = np.einsum("snp,sn->sp", G, expected)
    f.same(Y @ found.values, expected, scale=max_of(tau), tolerance=1e-6)


@check("identification.inertial_parameters")
def _(f, c):
    f.same(numbers(np.asarray(f(c.model)), c), parameters(c))


@check("identification.parameter_names")
def _(f, c):
    found = f(c.model, rotors=True)
    f.holds(len(set(found)) == len(found), "all different")
    f.same(len(found), 10 * c.ref.count + c.ref.whole.nv)


@check("identification.exciting_trajectory")
def _(f, c):
    count = 60 if c.model.is_constrained else 12
    found = f(c.model, samples=count, candidates=1, harmonics=1, rng=0)
    f.same(found.q.shape, (count, len(c.q)))
    h = found.t[1] - found.t[0]
    for k in (3, 5):
        rate = c.plain.difference(found.q[k - 1], found.q[k + 1]) / (2 * h)
        f.same(found.qd[k], rate, scale=max_of(found.qd), tolerance=0.2)
    f.holds(not c.model.loops or closes_all(c, found.q), "closed")


def closes_all(c, q):
    return np.max(np.abs(kt.loops.closure_error(c.plain, q))) < 1e-9


not_of_a_model("of times and coefficients", "identification.fourier_trajectory")


# --- functions of functions ----------------------------------------------------------------------


@check("compile")
def _(f, c):
    f.makers = ("kinetic_energy",)
    f.same(f(kt.kinetic_energy, c.model)(c.q, c.qd), c.ref.kinetic())


@check("differentiate")
def _(f, c):
    f.makers = ("kinetic_energy",)
    f.same(f(kt.kinetic_energy, wrt="qd")(c.model, c.q, c.qd), c.ref.p)


@check("jvp")
def _(f, c):
    f.makers = ("kinetic_energy",)
    found = f(kt.kinetic_energy, wrt="qd")(c.model, c.q, c.qd, tangents=c.y)
    found = found[-1] if isinstance(found, tuple) else found
    f.same(found, c.ref.p @ c.y, scale=max_of(c.ref.p))


@check("vjp")
def _(f, c):
    f.makers = ("kinetic_energy",)
    found = f(kt.kinetic_energy, wrt="qd")(c.model, c.q, c.qd, cotangent=2.0)
    found = found[-1] if isinstance(found, tuple) else found
    f.same(found, 2 * c.ref.p)


@check("kernel")
def _(f, c):
    f.makers = ("twice", "kinetic_energy")

    @f
    def twice(m, q, qd):
        return 2 * kt.kinetic_energy(m, q, qd)

    f.same(twice(c.model, c.q, c.qd), 2 * c.ref.kinetic())


@check("listing")
def _(f, c):
    f.makers = ("kinetic_energy",)
    f.holds("kinetic_energy" in f(kt.kinetic_energy, c.model), "its name")


@check("to_numpy")
def _(f, c):
    f.makers = ("kinetic_energy",)
    f.same(f(kt.kinetic_energy, c.model)(c.q, c.qd), c.ref.kinetic())


@check("export_c")
def _(f, c):
    f.makers = ("kinetic_energy",)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(f(c.model, [kt.kinetic_energy], Path(folder) / "out"))
        text = "".join(p.read_text() for p in path.rglob("*.[ch]"))
    f.holds("kinetic_energy" in text and "nan" not in text.lower(), "code")


@check("operation_counts")
def _(f, c):
    found = f(c.model)
    f.holds(all(k.total >= 0 for k in found.texts.values()), "counts")


@check("tier_of")
def _(f, c):
    f.holds(f(c.model, kt.kinetic_energy) in ("general", "specialised"), "the tier")


@check("warm_up")
def _(f, c):
    f.makers = ("kinetic_energy",)
    f(c.model, kt.kinetic_energy, batch=False)
    f.holds(kt.tier_of(c.model, kt.kinetic_energy) == "specialised", "the tier")
    f.same(kt.kinetic_energy(c.model, c.q, c.qd), c.ref.kinetic())


@check("quasi_velocity_dynamics")
def _(f, c):
    def same_variables(m, q):
        return np.eye(m.nv) + 0 * np.sum(q[:1])

    if c.model.is_constrained:
        y = Coordinates(c)
        found = f(c.model, c.q, c.qd[y.columns], lambda m, q: kt.loops.null_space(m, q, 0 * c.qd).G)
        f.same(found.inertia, y.G.T @ c.ref.H @ y.G)
        return f.same(found.bias, y.force(c.ref.C), tolerance=1e-8)
    found = f(c.model, c.q, c.qd, same_variables)
    f.same(found.inertia, c.ref.H)
    f.same(found.bias, c.ref.C, scale=max_of(c.ref.C, c.ref.H))


@check("equations_of_motion")
def _(f, c):
    # one joint that moves: formulas of several with placements at random take minutes
    keep = c.free_joint
    held = {
        c.plain.joint_names[i - 1]: c.q[c.plain.q_slice[i]]
        for i in c.ref.leaders
        if c.plain.joint[i].nv and c.plain.joint_names[i - 1] != keep
    }
    if c.model.is_constrained:
        return closed_equations(f, c)
    model = kt.edit.lock(c.model, held)
    found = f(model)
    at = (
        np.arange(0)
        if keep is None
        else np.arange(c.ref.nv)[c.plain.v_slice[c.plain.joint_index(keep)]]
    )
    qd = np.zeros(c.ref.nv)
    qd[at] = c.qd[at]
    q = c.q if keep is None else c.q[c.plain.q_slice[c.plain.joint_index(keep)]]
    values = dict(zip((*found.q, *found.qd), (*q, *qd[at]), strict=True))
    values |= dict(c.symbols.values())

    def number(M):
        M = M.subs(values)
        return np.array([float(x) for x in M]).reshape(M.shape)

    r = c.moving(qd=qd)
    f.same(number(found.H), r.H[at][:, at], tolerance=1e-8)
    bias = number(found.C + found.g).ravel()
    return f.same(bias, r.C[at], scale=max_of(r.C[at], r.H), tolerance=1e-8)


def closed_equations(f, c):
    """Of a linkage, whose formulas are short: the floating one on the ground, as it is there."""
    if c.feature == "loop that floats":
        model = kt.edit.grounded(c.model)
        q, qd = c.q[7:], c.qd[6:]
        r = Reference(model, q, qd)
        qd = r.null @ (r.null.T @ qd)
        r = r.at_velocity(qd)
    elif c.model.constraints:  # of bodies whose formulas are short
        bar = Inertia.from_mass_center(1.0, (0.3, 0.0, 0.0), np.diag([0.0, 0.02, 0.02]))
        model = c.model.replace(inertia=dict.fromkeys(c.model.body_names[1:], bar), strict=False)
        q, qd, r = c.q, c.qd, Reference(model, c.q, c.qd)
    else:
        model, q, qd, r = c.model, c.q, c.qd, c.ref
    found = f(model)
    values = dict(zip((*found.q, *found.qd), (*q, *qd), strict=True))

    def number(M):
        M = M.subs(values)
        return np.array([float(x) for x in M]).reshape(M.shape)

    f.same(number(found.H), r.H, tolerance=1e-8)
    f.same(number(found.C + found.g).ravel(), r.C, scale=max_of(r.C, r.H), tolerance=1e-8)
    K, k = r.rows
    f.same(projector(number(found.K)), projector(K), tolerance=1e-8)
    qdd = np.linalg.pinv(K) @ k
    scale = max_of(found_k := number(found.k), qdd)
    f.same(number(found.K) @ qdd, found_k.ravel(), scale=scale, tolerance=1e-8)
    f.same(number(found.closure), 0 * number(found.closure), scale=1.0, tolerance=1e-8)
    f.same(len(found.lam), r.rank)


@check("health")
def _(f, c):
    found = f(c.model, c.q, c.qd)
    H = c.ref.H
    if c.model.is_constrained:
        size = kt.loops.scaling(c.plain).columns
        _, _, Vt = np.linalg.svd(c.ref.rows[0] * size)
        N = size[:, None] * Vt[c.ref.rank :].T
        H = N.T @ H @ N
    if c.singular:
        return f.holds(found.condition > 1e12 and found.causes, "it reports the causes")
    f.same(found.condition, np.linalg.cond(H) if len(H) else 1.0, tolerance=1e-6)
    return f.holds(np.isfinite(found.round_trip), "a number")


@check("check")
def _(f, c):
    found = f(c.model)
    f.holds(all(x.code and x.message for x in found), "findings")


@check("inverse_kinematics")
def _(f, c):
    from feature_matrix.checks import homogeneous

    target = homogeneous(c.ref.frame(c.name)[1])
    found = f(c.model, c.name, target, c.plain.integrate(c.q, 0.01 * c.y))
    r = c.moving(q=np.asarray(found.q, float), qd=0 * c.qd)
    f.holds(found.success, found.reason)
    f.same(homogeneous(r.frame(c.name)[1]), target, scale=max_of(target), tolerance=1e-6)
    everything = f(c.model, c.name, target, found.q, joints=c.model.joint_names)
    f.same(everything.q, found.q)


@check("save")
def _(f, c):
    with tempfile.TemporaryDirectory() as folder:
        path = f(c.model, Path(folder) / "model.toml")
        again = kt.load(path)
    if c.plain is not c.model:
        return f.holds(again.joint_names == c.model.joint_names, "names")
    r = Reference(again, c.q, c.qd)
    f.same(r.H, c.ref.H)
    return f.same(r.C, c.ref.C, scale=max_of(c.ref.C, c.ref.H))


not_of_a_model("makes a model", "from_arrays", "from_dh", "from_poe", "load", "loads",
               "model.dh_from_axes")  # fmt: skip
not_of_a_model("of numbers or arrays", "repeat", "rotx", "roty", "rotz", "xlt", "select",
               "support_margin", "symbolic.lagrange_equations")  # fmt: skip
not_of_a_model("a setting", "set_threads", "set_tier", "threads", "tier")
not_of_a_model("draws; tests/viewer, tests/rendering", "view", "render", "camera")
not_of_a_model("of shapes; tests/contact/test_decomposition.py", "edit.decompose")
not_of_a_model("of shapes, as forces of fluids; tests/model", "edit.immerse")
not_of_a_model(
    "of contacts or shapes, whatever they belong to", "contact.body_contact",
    "contact.contact_states", "contact.convex_distance", "contact.disc_corners", "contact.lumped",
    "contact.positive_dependence", "contact.reduced", "contact.spatial_normals",
)  # fmt: skip
_ = contact_states, projector, kinetic_rate
