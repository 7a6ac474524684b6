"""What is required of the functions of ``kinetree`` itself."""

import numpy as np
from feature_matrix.features import made_once
from feature_matrix.reference import Reference, cross_matrix
from feature_matrix.walk import check

import kinetree as kt

FRAMES = ("world", "body", "aligned")
ROWS = {"rx": 0, "ry": 1, "rz": 2, "x": 3, "y": 4, "z": 5}
TASK = {"frame": "aligned", "rows": ("z",)}

# --- positions and velocities --------------------------------------------------------------------


def homogeneous(pose):
    return np.block([[pose[0], pose[1][:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])


@check("pose")
def _(f, c):
    f.same(f(c.model, c.q, c.name), homogeneous(c.ref.frame(c.name)[1]))
    if "tip" in c.model.frame_names:
        a, b = (homogeneous(c.ref.frame(n)[1]) for n in ("tip", c.model.body_names[1]))
        f.same(f(c.model, c.q, "tip", relative_to=c.model.body_names[1]), np.linalg.inv(b) @ a)


@check("poses")
def _(f, c):
    expected = [homogeneous(T) for T in c.ref.T[1:]]
    f.same(f(c.model, c.q), np.reshape(expected, (-1, 4, 4)))


def jacobian(c, frame, q, point=None, t=0.0):
    """Of the last frame, at some configuration."""
    r = c.moving(q=q)
    r.__dict__["T"] = r.poses(q, t)
    body = r.frame(c.name)[0]
    return placed(c, r, r.jacobians_at(q, t)[body], frame, point)


def placed(c, r, x, frame, point=None):
    """Columns of velocities of the last body, in coordinates of ``frame``."""
    x = r.in_frame(c.name, x, frame)
    if point is None:
        return x
    R = r.frame(c.name)[1][0]
    lever = R @ point if frame == "aligned" else point
    return r.shift(lever) @ x


@check("jacobian")
def _(f, c):
    for frame in FRAMES:
        f.same(f(c.model, c.q, c.name, frame=frame), jacobian(c, frame, c.q))
    actual = f(c.model, c.q, c.name, frame="body", point=c.point)
    f.same(actual, jacobian(c, "body", c.q, c.point))


@check("jacobians")
def _(f, c):
    aligned = c.ref.J[1:]
    f.same(f(c.model, c.q, frame="aligned"), aligned)
    world = [c.ref.shift(-p) @ J for J, (_, p) in zip(aligned, c.ref.T[1:], strict=True)]
    f.same(f(c.model, c.q, frame="world"), np.reshape(world, aligned.shape))


@check("jacobian_rate")
def _(f, c):
    for frame in FRAMES:
        rate = c.ref.difference(
            lambda s, frame=frame: jacobian(c, frame, c.ref.moved(c.q, c.qd, s), t=s)
        )
        size = np.max(np.abs(rate), initial=np.max(np.abs(c.ref.J), initial=0.0))
        f.same(f(c.model, c.q, c.qd, c.name, frame=frame), rate, scale=size)


@check("hessian")
def _(f, c):
    derivatives = [
        c.ref.difference(lambda s, e=e: jacobian(c, "aligned", c.ref.moved(c.q, e, s)))
        for e in np.eye(c.ref.nv)
    ]
    expected = np.stack(derivatives, -1) if derivatives else np.zeros((6, 0, 0))
    f.same(f(c.model, c.q, c.name, frame="aligned"), expected, scale=max_of(c.ref.J, expected))


def max_of(*arrays):
    return max(np.max(np.abs(a), initial=0.0) for a in arrays) or 1.0


@check("velocity")
def _(f, c):
    V = c.ref.v[c.ref.frame(c.name)[0]]
    for frame in FRAMES:
        f.same(f(c.model, c.q, c.qd, c.name, frame=frame), placed(c, c.ref, V, frame))


def accelerations(c, qdd, frame, kind):
    """Of the last frame: derivatives of its pose, and of the given point."""
    r = c.ref
    body, (R, p), lever = r.frame(c.name)
    a = r.J[body] @ qdd + r.a_bias[body]
    w, dw = r.v[body][:3], a[:3]
    at = lever - p if frame == "world" else lever  # of the body's origin
    v = r.v[body][3:] + np.cross(w, at)
    linear = a[3:] + np.cross(dw, at) + np.cross(w, np.cross(w, at))
    if kind == "spatial":
        linear = linear - np.cross(w, v)
    if frame == "body":
        dw, linear = R.T @ dw, R.T @ linear
    return np.concatenate([dw, linear])


@check("acceleration", "bias_acceleration")
def _(f, c):
    biased = f.name == "bias_acceleration"
    arrays = (c.q, c.qd) if biased else (c.q, c.qd, c.qdd)
    for frame in FRAMES:
        for kind in ("spatial", "classical"):
            expected = accelerations(c, 0 * c.qdd if biased else c.qdd, frame, kind)
            actual = f(c.model, *arrays, c.name, frame=frame, kind=kind)
            f.same(actual, expected, scale=max_of(expected, c.ref.v))


@check("joint_velocity", "joint_acceleration")
def _(f, c):
    """One coordinate that can change in any case, and comes out as it was asked for."""
    reached = kt.velocity if f.name == "joint_velocity" else kt.acceleration
    J = jacobian(c, "aligned", c.q)
    J = J @ c.ref.null if c.plain.is_constrained else J
    k = int(np.argmax(np.max(np.abs(J), axis=1, initial=0.0)))
    rows = {"frame": "aligned", "rows": (list(ROWS)[k],)}
    state = () if f.name == "joint_velocity" else (c.qd,)
    kind = {} if f.name == "joint_velocity" else {"kind": "classical"}
    x = f(c.model, c.q, *state, np.array([0.3]), c.name, **rows)
    found = reached(c.plain, c.q, *state, x, c.name, frame="aligned", **kind)
    f.same(found[k], 0.3, scale=max_of(c.ref.a_bias, c.ref.v, 1.0), tolerance=1e-9)


# --- dynamics ------------------------------------------------------------------------------------


class Coordinates:
    """The independent coordinates of a mechanism, whose equation of motion has coefficients.

    Attributes:
        columns: velocity variables; all of a tree.
        G, g: of ``qdd = G ydd + g``.
    """

    def __init__(self, c, names=None):
        self.r = r = c.ref
        self.columns = np.arange(r.nv)
        if c.model.is_constrained:
            joints = zip(c.model.joint_names, c.model.joint[1:], strict=True)
            own = [n if j.nv == 1 else f"{n}[{k}]" for n, j in joints for k in range(j.nv)]
            self.columns = [own.index(n) for n in names or kt.loops.independent(c.model)]
        K, k = r.rows
        self.G = r.coordinates_at(c.q, self.columns)
        self.g = np.linalg.pinv(K) @ k
        self.g = self.g - self.G @ self.g[self.columns]

    def force(self, tau):
        """``Gᵀ (tau + H g)``."""
        return self.G.T @ (tau + self.r.H @ self.g)

    def inertia_at(self, q, t=0.0):
        G = self.r.coordinates_at(q, self.columns, t)
        return G.T @ self.r.mass_matrix_at(q, t) @ G


@check("mass_matrix")
def _(f, c):
    y = Coordinates(c)
    f.same(f(c.model, c.q), y.G.T @ c.ref.H @ y.G)
    if c.model.loops:
        y = Coordinates(c, others(c))
        f.same(f(c.model, c.q, independent=others(c)), y.G.T @ c.ref.H @ y.G)


def others(c):
    """Coordinates other than those that a linkage would have chosen."""
    return (*kt.loops.independent(c.model)[:-1], "rock")


@check("inverse_mass_matrix")
def _(f, c):
    A, N = f(c.model, c.q), c.ref.null
    f.same(N.T @ (c.ref.H @ A - np.eye(c.ref.nv)), 0 * N.T, scale=1.0)
    f.same(A, N @ N.T @ A, scale=max_of(A))


@check("bias_force")
def _(f, c):
    y = Coordinates(c)
    f.same(f(c.model, c.q, c.qd), y.force(c.ref.C), tolerance=1e-8)
    loaded = c.ref.C - c.ref.forces(c.f_ext)
    f.same(f(c.model, c.q, c.qd, c.f_ext), y.force(loaded), tolerance=1e-8)


@check("gravity_force")
def _(f, c):
    if c.model.is_constrained:  # many forces do, as those of inverse_dynamics
        tau = kt.gravity_force(c.model, c.q)
        return f.same(c.ref.null.T @ tau, c.ref.null.T @ c.ref.weight)
    f.same(f(c.model, c.q), c.ref.weight, scale=max_of(c.ref.weight, c.ref.H))


@check("inverse_dynamics")
def _(f, c):
    if c.model.is_constrained:  # many forces do; what counts is what they do along allowed motions
        qdd = c.qdd if c.singular else c.ref.accelerations(c.tau)
        for forces in (None, c.f_ext):
            tau = kt.inverse_dynamics(c.model, c.q, c.qd, qdd, forces)
            expected = c.ref.required(qdd) - (0 if forces is None else c.ref.forces(forces))
            scale = max_of(expected, c.ref.C)
            f.same(c.ref.null.T @ tau, c.ref.null.T @ expected, tolerance=1e-8, scale=scale)
        return
    expected = c.ref.required(c.qdd)
    f.same(f(c.model, c.q, c.qd, c.qdd), expected)
    f.same(f(c.model, c.q, c.qd, c.qdd, c.f_ext), expected - c.ref.forces(c.f_ext))


@check("forward_dynamics")
def _(f, c):
    for forces in (None, c.f_ext):
        expected = [] if c.singular else c.ref.accelerations(c.tau, forces)
        f.same(f(c.model, c.q, c.qd, c.tau, forces), expected)
        for method in ("implicit", "maximal") if not c.symbols else ():
            actual = kt.forward_dynamics(c.model, c.q, c.qd, c.tau, forces, method=method)
            f.same(actual, expected, tolerance=1e-8)


@made_once
def with_sensors(c):
    """A case's model with sensors of a frame, and of the force that carries it."""
    kinds = ["framepos", "framelinvel", "frameangvel", "accelerometer"]
    kinds += [] if c.plain.is_constrained else ["force"]
    return c.model.replace(sensors=[kt.Sensor(kind, kind, c.name) for kind in kinds])


@check("sensor_readings")
def _(f, c):
    r = c.ref
    body, (R, p), _ = r.frame(c.name)
    v = placed(c, r, r.v[body], "aligned")
    a = accelerations(c, c.qdd, "aligned", "classical")[3:] - r.gravity
    expected = [p, v[3:], v[:3], R.T @ a]
    if not c.plain.is_constrained:
        beyond = [i - 1 for i in c.plain.subtree[body] if i]
        expected.append(R.T @ r.body_forces(c.qdd)[beyond].sum(axis=0)[3:])
    found = f(with_sensors(c), c.q, c.qd, c.qdd)
    for k, its in enumerate(expected):
        scale = max_of(its, r.v[body] * 1e-3, np.ones(1) * c.length * c.force)
        f.same(found[3 * k : 3 * k + 3], its, scale=scale)


@check("sensors")
def _(f, c):
    table = f(with_sensors(c))
    f.holds(table.names[:2] == ("framepos", "framelinvel"), table)
    f.holds(table.size == 3 * len(table), table)


@check("joint_reactions")
def _(f, c):
    """Newton's and Euler's equations of every body, and the work along every joint."""
    r, m, along = c.ref, c.plain, {"frame": "world", "f_ext": c.f_ext}
    if c.singular:
        given, qdd = {"qdd": c.qdd}, c.qdd
    else:
        given, qdd = {"tau": c.tau}, r.accelerations(c.tau, c.f_ext)
    found = f(c.model, c.q, c.qd, **given, **along)
    acting = np.zeros((m.body_count + 1, 6))
    ends = [*((b.parent, i) for i, b in enumerate(m.bodies, 1)),
            *((p.predecessor, p.successor) for p in m.loops)]  # fmt: skip
    for (p, s), force in zip(ends, found, strict=True):
        acting[s], acting[p] = acting[s] + force, acting[p] - force
    needed, scale = r.body_forces(qdd) - c.f_ext, max_of(found, c.f_ext)
    f.same(acting[1:], needed, scale=scale)
    bearing, drive = (f(c.model, c.q, c.qd, **given, **along, part=p) for p in ("bearing", "drive"))
    f.same(bearing + drive, found, scale=scale)
    q = r.full(c.q)
    for i, b in enumerate(m.bodies, 1):
        R, p = r.T[i]
        S = np.kron(np.eye(2), R) @ r._subspace(b.joint, q[i]) if b.joint.nv else np.zeros((6, 0))
        n = bearing[i - 1, :3] - np.cross(p, bearing[i - 1, 3:])
        power = S.T @ np.concatenate([n, bearing[i - 1, 3:]])
        f.same(power, 0 * power, scale=scale * c.length)


@check("unique_reactions")
def _(f, c):
    found = f(c.model, c.q)
    redundant = len(c.ref.rows[0]) > c.ref.rank
    f.same(found.shape, (len(c.model.joint_names) + len(c.model.loops), 6))
    f.holds(found.all() != redundant, "unique unless constraints are redundant")


@check("passive_force")
def _(f, c):
    f.same(f(c.model, c.q, c.qd), passive(c))


def passive(c):
    """Springs, dampers, friction, tendons and carried weight, as the leaders feel them."""
    r, whole = c.ref, c.ref.whole
    q, qd = r.full(c.q), r.G @ c.qd
    tau = np.zeros(whole.nv)
    for i, body in enumerate(whole.bodies, start=1):
        if body.dynamics:
            tau[whole.v_slice[i]] = of_joint(body, q[i], qd[whole.v_slice[i]])
    for t in whole.tendons:
        c_t, rows = np.array(t.coefficients), [whole.v_slice[i].start for i in t.joints]
        L, Ld = tendon_length(t, q), c_t @ qd[rows]
        stretch = L - np.clip(L, *t.rest)
        tau[rows] -= c_t * (t.stiffness * stretch + t.damping * Ld + t.friction * np.sign(Ld))
    tau, at, rates = r.G.T @ tau, r.loop_positions(), r.loop_rates()
    forces = {
        p.name: of_joint(p, at[p.name], rates[p.name]) if p.dynamics else np.zeros(p.joint.nv)
        for p in c.plain.loops
    }
    return tau + r.loop_forces(forces) + (carried(r) if whole.gravity_compensation else 0)


@made_once
def servos(c):
    """The model with a servo at every joint; controls, forces before gears, and joint forces."""
    r, whole = c.ref, c.ref.whole
    q, qd = r.full(c.q), r.G @ c.qd
    actuators, forces, tau = [], [], np.zeros(whole.nv)
    for i in range(1, whole.body_count + 1):
        n, at = whole.joint[i].nv, whole.v_slice[i]
        if not n:
            continue
        gear, stiff = np.linspace(2.0, -1.0, n), 3.0 if n == 1 else 0.0
        law = {"gain": (2.0, 0.5 * stiff, 0.3), "bias": (0.1, -stiff, -0.4)}
        actuators.append(kt.Actuator(f"servo {i}", i, tuple(gear), **law))
        l, ld, u = gear[0] * q[i][0] if n == 1 else 0.0, gear @ qd[at], 0.7 - 0.2 * i
        force = (2 + 0.5 * stiff * l + 0.3 * ld) * u + 0.1 - stiff * l - 0.4 * ld
        forces.append(force)
        tau[at] = gear * force
    controls = np.array([0.7 - 0.2 * a.joint for a in actuators])
    return c.model.replace(actuators=actuators), controls, np.array(forces), r.G.T @ tau


@check("actuator_forces")
def _(f, c):
    model, u, forces, _ = servos(c)
    f.same(f(model, c.q, c.qd, u), forces)


@check("driving_force")
def _(f, c):
    model, u, _, tau = servos(c)
    f.same(f(model, c.q, c.qd, u), tau)


def roped(c):
    """The model with one tendon, from the base to a frame; its length and moment arms."""
    model = c.model.replace(
        actuators=(), tendons=(kt.Tendon("rope", path=(c.model.base_name, c.name)),)
    )
    p = c.ref.frame(c.name)[1][1]
    length = np.sqrt(p @ p)
    along = p / length if length else p  # without bodies the frame is on the base
    return model, length, along @ jacobian(c, "aligned", c.q)[3:]


@check("tendon_lengths")
def _(f, c):
    model, length, _ = roped(c)
    f.same(f(model, c.q), np.array([length]))


@check("tendon_jacobian")
def _(f, c):
    model, _, arms = roped(c)
    f.same(f(model, c.q), arms[None])


def tendon_length(t, q):
    return t.offset + sum(k * q[i][0] for i, k in zip(t.joints, t.coefficients, strict=True))


def carried(r):
    """Joint forces of gravity compensation: a force through a point of each body."""
    f = np.zeros((r.count, 6))
    for g in r.model.gravity_compensation:
        R, p = r.T[g.body]
        push = -g.mass * r.gravity
        f[g.body - 1] += [*np.cross(p + R @ g.center, push), *push]
    return r.forces(f)


def of_joint(part, q, qd):
    """Of a hinge, or of any other joint with one variable."""
    d = {n: np.array(getattr(part.dynamics, n) or (0.0,)) for n in
         ("stiffness", "damping", "friction", "rest")}  # fmt: skip
    return -d["stiffness"] * (q - d["rest"]) - d["damping"] * qd - d["friction"] * np.sign(qd)


@check("coriolis_matrix")
def _(f, c):
    C, y = f(c.model, c.q, c.qd), Coordinates(c)
    expected = y.force(c.ref.required(0 * c.qd, np.zeros(3)) - prescribed_force(c))
    f.same(C @ c.qd[y.columns], expected, scale=size_of_H(c))
    rate = c.ref.along(y.inertia_at)
    skew = rate - 2 * C
    f.same(skew, -skew.T, scale=max_of(rate, C, c.ref.H), tolerance=1e-8)


def prescribed_force(c):
    """Velocity terms in which the rates of prescribed joints are a factor: ``C_12 qd_2``.

    Christoffel symbols of the mechanism in which these joints are free, by differences of ``H``.
    """
    if c.feature != "prescribed, at an instant":
        return c.moving(qd=0 * c.qd).required(0 * c.qd, np.zeros(3))
    prescribed = c.plain.joint[2]
    free = c.plain.replace(joint={"j2": prescribed.joint})
    r = Reference(free, np.insert(c.q, 1, prescribed.q), np.insert(c.qd, 1, prescribed.qd))
    dH = np.stack(
        [r.difference(lambda s, e=e: r.mass_matrix_at(r.moved(r.q, e, s))) for e in np.eye(r.nv)]
    )
    # dH[k, i, j]: C_ij = Σ_k (∂H_ij/∂q_k + ∂H_ik/∂q_j - ∂H_jk/∂q_i) qd_k / 2
    by = [np.einsum(form, dH, r.qd) for form in ("kij,k->ij", "jik,k->ij", "ijk,k->ij")]
    C = (by[0] + by[1] - by[2]) / 2
    moved = r.H[:, 1] * prescribed.qdd[0]  # what it takes to accelerate them
    return (C[:, 1] * prescribed.qd[0] + moved)[[0, 2]]


@check("christoffel")
def _(f, c):
    c3, y = f(c.model, c.q), Coordinates(c)
    for yd in (c.qd[y.columns], c.qdd[y.columns]):
        qd = y.G @ yd
        moving = c.moving(qd=qd)
        K, k = moving.rows
        g = np.linalg.pinv(K) @ k
        expected = y.G.T @ (symmetric_part(c, qd) + c.ref.H @ (g - y.G @ g[y.columns]))
        f.same(np.einsum("ijk,k->ij", c3, yd) @ yd, expected, scale=max_of(size_of_H(c), expected))
    if c.model.loops and all(j.rates_are_velocities for j in c.model.joint[1:]):
        f.same(c3, np.swapaxes(c3, 1, 2), scale=max_of(c3))


def size_of_H(c):
    return max_of(c.ref.H, c.ref.C - c.ref.weight)


def symmetric_part(c, qd):
    """Velocity products: quadratic in ``qd``, so that prescribed motion drops out."""
    plus, minus, none = (c.moving(qd=s * qd).required(0 * qd, np.zeros(3)) for s in (1, -1, 0))
    return (plus + minus) / 2 - none


@check("kinetic_energy")
def _(f, c):
    f.same(f(c.model, c.q, c.qd), c.ref.kinetic())


@check("potential_energy")
def _(f, c):
    f.same(f(c.model, c.q), c.ref.potential_at(c.q))


def given_joints(c):
    """A joint whose acceleration is given: in a loop, if there is one."""
    return (("rock" if c.model.loops else c.free_joint),) if c.free_joint else ()


@check("hybrid_dynamics")
def _(f, c):
    given = given_joints(c)
    mask = np.zeros(c.ref.nv, bool)
    for name in given:
        mask[c.plain.v_slice[c.plain.joint_index(name)]] = True
    tau, qdd = f(c.model, c.q, c.qd, c.tau, c.qdd, given)
    if not c.singular:
        expected = c.ref.accelerations(c.tau, given=(mask, c.qdd))
        f.same(qdd, expected)
    f.same(qdd[mask], c.qdd[mask])
    N = c.ref.null  # along which the forces of loops do no work
    total = c.ref.required(qdd)
    f.same(N.T @ tau, N.T @ total, scale=max_of(total, c.ref.C), tolerance=1e-8)
    f.same(tau[~mask], c.tau[~mask], scale=max_of(tau))


@check("hybrid_response")
def _(f, c):
    given = given_joints(c)
    prescribed = np.zeros(c.ref.nv, bool)
    for name in given:
        prescribed[c.plain.v_slice[c.plain.joint_index(name)]] = True
    R, H = f(c.model, c.q, given), c.ref.H
    # of a free variable the column is its force, of a prescribed one its acceleration
    qdd = np.where(prescribed[:, None], np.eye(len(H)), R)
    tau = np.where(prescribed[:, None], R, np.eye(len(H)))
    N = c.ref.null
    f.same(N.T @ (H @ qdd - tau), 0 * N.T, scale=max_of(H, tau))
    f.same(qdd, N @ N.T @ qdd, scale=max_of(qdd))


# --- energy, momentum, the whole -----------------------------------------------------------------


@check("generalized_momentum")
def _(f, c):
    f.same(f(c.model, c.q, c.qd), c.ref.p)


@check("mass_matrix_rate")
def _(f, c):
    rate = c.ref.along(Coordinates(c).inertia_at)
    f.same(f(c.model, c.q, c.qd), rate, scale=max_of(rate, c.ref.H), tolerance=1e-8)


def kinetic_rate(c, qdd):
    """``dT/dt`` along the motion."""

    def energy(s):
        r = c.moving(q=c.ref.moved(c.q, c.qd, s))
        r.__dict__["T"] = r.poses(r.q, s)
        r.__dict__["v"] = r.twists(r.q, r.qd, 1.0, s)
        r.__dict__["G"] = r.gearing_at(r.q)
        return r.kinetic()

    return c.ref.difference(energy) + c.ref.p @ qdd


@check("kinetic_energy_rate")
def _(f, c):
    expected = kinetic_rate(c, c.qdd)
    f.same(f(c.model, c.q, c.qd, c.qdd), expected, scale=max_of(expected, c.ref.kinetic()))


@check("potential_energy_rate")
def _(f, c):
    expected = c.ref.along(c.ref.potential_at)
    f.same(f(c.model, c.q, c.qd), expected, scale=max_of(expected, c.ref.weight))


@check("generalized_force")
def _(f, c):
    f.same(f(c.model, c.q, c.f_ext), c.ref.forces(c.f_ext))


@check("power_balance")
def _(f, c):
    for forces in (None, c.f_ext):
        balance = f(c.model, c.q, c.qd, c.tau, forces)
        qdd = c.ref.accelerations(c.tau, forces)
        external = 0.0 if forces is None else c.ref.forces(forces) @ c.qd
        expected = (
            c.tau @ c.qd, external, kinetic_rate(c, qdd), c.ref.along(c.ref.potential_at)
        )  # fmt: skip
        size = max_of(expected, c.ref.kinetic(), c.ref.weight)
        f.same(np.array(balance[:4]), np.array(expected), scale=size, tolerance=1e-8)


@check("momentum")
def _(f, c):
    f.same(f(c.model, c.q, c.qd), c.ref.momentum_at(c.q, c.qd))


@check("center_of_mass")
def _(f, c):
    f.same(f(c.model, c.q), c.ref.center)


@check("center_of_mass_velocity")
def _(f, c):
    f.same(f(c.model, c.q, c.qd), c.ref.momentum_at(c.q, c.qd)[3:] / c.ref.mass)


def momentum_rate(c, qdd, about=True):
    """Of the momentum about the mass centre, along the motion."""

    def momentum(s):
        return c.ref.momentum_at(c.ref.moved(c.q, c.qd, s), c.qd + s * qdd, s, about)

    return c.ref.difference(momentum)


@check("center_of_mass_acceleration")
def _(f, c):
    actual = f(c.model, c.q, c.qd, c.qdd)
    expected = momentum_rate(c, c.qdd)[3:] / c.ref.mass
    f.same(actual, expected, scale=max_of(expected, c.ref.J[..., 3:, :]))


@check("center_of_mass_jacobian")
def _(f, c):
    f.same(f(c.model, c.q), c.ref.momentum_matrix_at(c.q)[3:] / c.ref.mass)


@check("center_of_mass_jacobian_rate")
def _(f, c):
    actual = f(c.model, c.q, c.qd)
    A = c.ref.momentum_matrix_at(c.q)[3:] / c.ref.mass
    rate = c.ref.along(c.ref.momentum_matrix_at)[3:] / c.ref.mass
    f.same(actual, rate, scale=max_of(A, rate))


@check("centroidal_momentum")
def _(f, c):
    f.same(f(c.model, c.q, c.qd), c.ref.momentum_at(c.q, c.qd, about=True))


@check("centroidal_momentum_rate")
def _(f, c):
    actual = f(c.model, c.q, c.qd, c.qdd)
    expected, size = momentum_rate(c, c.qdd), c.ref.momentum_at(c.q, c.qd, about=True)
    f.same(actual, expected, scale=max_of(expected, size))


@check("centroidal_momentum_bias")
def _(f, c):
    actual = f(c.model, c.q, c.qd)
    expected, size = momentum_rate(c, 0 * c.qdd), c.ref.momentum_at(c.q, c.qd, about=True)
    f.same(actual, expected, scale=max_of(expected, size))


@check("centroidal_momentum_matrix")
def _(f, c):
    f.same(f(c.model, c.q), c.ref.momentum_matrix_at(c.q))


@check("centroidal_momentum_matrix_rate")
def _(f, c):
    actual = f(c.model, c.q, c.qd)
    A, rate = c.ref.momentum_matrix_at(c.q), c.ref.along(c.ref.momentum_matrix_at)
    f.same(actual, rate, scale=max_of(A, rate))


@check("centroidal_inertia")
def _(f, c):
    I = np.zeros((6, 6))
    I[3:, 3:] = c.ref.mass * np.eye(3)
    for _, m, p, d, own in c.ref.centers():
        r = cross_matrix(p + d - c.ref.center)
        I[:3, :3] += own - m * r @ r
    actual = f(c.model, c.q)
    f.same(actual[:3], I[:3])
    f.same(actual[3:], I[3:])


@check("zero_moment_point")
def _(f, c):
    point = c.point
    actual = f(c.model, c.q, c.qd, c.qdd, point=point)
    rate = momentum_rate(c, c.qdd)
    force = rate[3:] - c.ref.mass * c.ref.gravity
    moment = rate[:3] + np.cross(c.ref.center - point, force)  # about the point
    up = -c.ref.gravity / np.linalg.norm(c.ref.gravity)
    expected = point + np.cross(up, moment) / (up @ force)
    f.same(actual, expected, tolerance=1e-8)


# --- tasks ---------------------------------------------------------------------------------------


class Task:
    """One coordinate of the motion of the last frame."""

    def __init__(self, c):
        rows = [ROWS[r] for r in task_of(c)["rows"]]
        self.J = jacobian(c, "aligned", c.q)[rows]
        self.bias = accelerations(c, 0 * c.qdd, "aligned", "classical")[rows]
        N = c.ref.null  # of a tree, all motions
        self.Hi = N @ np.linalg.inv(N.T @ c.ref.H @ N) @ N.T
        self.inverse = self.J @ self.Hi @ self.J.T
        self.own = self.J @ c.ref.accelerations(0 * c.tau) + self.bias  # acceleration without force
        still = c.moving(qd=0 * c.qd)
        self.fall = -self.Hi @ c.ref.weight
        if c.model.is_constrained:
            self.fall = still.accelerations(0 * c.tau)

    @property
    def inertia(self):
        return np.linalg.inv(self.inverse)

    @property
    def eta(self):
        return -self.inertia @ self.own

    @property
    def gravity(self):
        return -self.inertia @ self.J @ self.fall


def task_of(c):
    """Options of the task: out of their plane linkages do not move."""
    return TASK | {"rows": ("x",)} if c.model.loops else TASK


def of_task(name):
    """A check of a function of a task, with the task at hand unless it cannot be."""

    def register(require):
        @check(name)
        def _(f, c):
            possible = not c.singular and c.ref.nv
            require(f, c, Task(c) if possible else None)

        return require

    return register


@of_task("operational_space_inertia")
def _(f, c, task):
    actual = f(c.model, c.q, c.name, **task_of(c))
    f.same(actual, task.inertia)


@of_task("inverse_operational_space_inertia")
def _(f, c, task):
    actual = f(c.model, c.q, c.name, **task_of(c))
    f.same(actual, task.inverse if task else np.zeros((1, 1)))


@of_task("operational_space_bias")
def _(f, c, task):
    actual = f(c.model, c.q, c.qd, c.name, **task_of(c))
    f.same(actual, task.eta, scale=max_of(task.eta, task.inertia))


@of_task("operational_space_gravity")
def _(f, c, task):
    actual = f(c.model, c.q, c.name, **task_of(c))
    f.same(actual, task.gravity, scale=max_of(task.gravity, task.inertia))


@of_task("operational_space_dynamics")
def _(f, c, task):
    actual = f(c.model, c.q, c.qd, c.name, **task_of(c))
    gravity, bias = task.gravity, task.eta
    f.same(actual.inertia, task.inertia)
    f.same(actual.gravity, gravity, scale=max_of(gravity, bias, task.inertia))
    f.same(actual.coriolis, bias - gravity, scale=max_of(gravity, bias, task.inertia))


@of_task("ik.dynamics_at_pose")
def _(f, c, task):
    target = homogeneous(c.ref.frame(c.name)[1])
    found = f(c.model, c.name, target, np.array([0.3]), c.q, limits=False, **task_of(c))
    f.same(found.inertia, task.inertia, tolerance=1e-6)
    f.same(found.gravity, task.gravity, scale=max_of(task.gravity, task.inertia), tolerance=1e-6)
    reached = kt.velocity(c.plain, c.q, found.qd, c.name, frame="aligned")
    f.same(reached[ROWS[task_of(c)["rows"][0]]], 0.3, tolerance=1e-6)


@of_task("dynamically_consistent_inverse")
def _(f, c, task):
    actual = f(c.model, c.q, c.name, **task_of(c))
    f.same(actual, task.Hi @ task.J.T @ task.inertia)


@of_task("null_space_projector")
def _(f, c, task):
    actual = f(c.model, c.q, c.name, **task_of(c))
    f.same(actual, np.eye(c.ref.nv) - task.Hi @ task.J.T @ task.inertia @ task.J)


@of_task("task_space_inverse_dynamics")
def _(f, c, task):
    a = c.vector[:1]
    actual = f(c.model, c.q, c.qd, a, c.name, **task_of(c))
    qdd = c.ref.accelerations(actual)
    f.same(task.J @ qdd + task.bias, a, scale=max_of(a, task.bias, task.J @ qdd))
    f.same(actual, task.J.T @ (task.inertia @ a + task.eta))


@of_task("task_space_forward_dynamics")
def _(f, c, task):
    force = c.vector[:1] * c.force
    actual = f(c.model, c.q, c.qd, force, c.name, **task_of(c))
    if task is None:
        return f.same(actual, np.zeros(1))
    expected = task.J @ c.ref.accelerations(task.J.T @ force) + task.bias
    f.same(actual, expected)


@check("task_freedom")
def _(f, c):
    found = f(c.model, c.q, c.name, frame="aligned")
    J = jacobian(c, "aligned", c.q) @ c.ref.null
    H = c.ref.null.T @ c.ref.H @ c.ref.null
    L = np.linalg.cholesky(H)
    U, s, _ = np.linalg.svd(J @ np.linalg.inv(L).T)
    rank = int(np.sum(s > 1e-8 * max(s, default=0.0)))
    f.same(found.rank, rank)
    f.same(found.free @ found.free.T, U[:, :rank] @ U[:, :rank].T)
    f.same(found.blocked @ found.blocked.T, U[:, rank:] @ U[:, rank:].T)
    f.same(found.inertia, (U[:, :rank] / s[:rank] ** 2) @ U[:, :rank].T)


# --- bodies and joints ---------------------------------------------------------------------------


@check("applied_force")
def _(f, c):
    _, (R, p), _ = c.ref.frame(c.name)
    force, torque, at = c.vector, c.point, c.point
    expected = np.concatenate([R @ torque + np.cross(p + R @ at, R @ force), R @ force])
    f.same(f(c.model, c.q, c.name, force=force, torque=torque, at=at, frame="body"), expected)


def bodies_of(c):
    """State of all bodies from the reference: about mass centres, or origins of massless ones."""
    R, p = (np.reshape([T[k] for T in c.ref.T[1:]], (-1, *s)) for k, s in ((0, (3, 3)), (1, (3,))))
    masses = [I if c.value(I.mass) else None for I in c.model.inertia[1:]]
    points = [np.zeros(3) if I is None else [c.value(x) for x in I.center_of_mass] for I in masses]
    lever = (R @ np.reshape(points, (-1, 3, 1)))[..., 0]
    V = np.reshape(c.ref.v[1:], (-1, 6))
    return p + lever, R, V[:, 3:] + np.cross(V[:, :3], lever), V[:, :3]


@check("maximal_state")
def _(f, c):
    found = f(c.model, c.q, c.qd)
    for actual, expected in zip(found[:4], bodies_of(c), strict=True):
        f.same(actual, expected, scale=max_of(expected, c.length * 1.0))


@check("generalized_position")
def _(f, c):
    expected = np.reshape([homogeneous(T) for T in c.ref.T[1:]], (-1, 4, 4))
    found = f(c.model, expected, near=c.q)
    f.same(found.q, c.q, scale=max_of(c.q, 1.0), tolerance=1e-8)


@check("generalized_state")
def _(f, c):
    found = f(c.model, bodies_of(c), near=c.q)
    f.same(found.q, c.q, scale=max_of(c.q, 1.0), tolerance=1e-8)
    f.same(found.qd, c.qd, tolerance=1e-7)


@check("generalized_velocity")
def _(f, c):
    V = c.ref.J[1:] @ c.qd
    for method in ("least_squares", "joints"):
        found = f(c.model, c.q, V, frame="aligned", method=method)
        f.same(found.qd, c.qd)
        f.same(found.residual, 0.0, scale=max_of(V))


@check("cartesian_forces")
def _(f, c):
    found, tau = f(c.model, c.q, c.tau), np.zeros(c.ref.nv)
    rows = [np.zeros((0, c.ref.nv))]
    for i, _, _, d, _ in c.ref.centers():
        J = c.ref.shift(d) @ c.ref.J[i]
        tau = tau + J[:3].T @ found.torque[i - 1] + J[3:].T @ found.force[i - 1]
        rows.append(J)
    f.same(tau, c.tau)
    whole = np.concatenate(rows)
    smallest = np.linalg.pinv(whole.T) @ c.tau
    f.same(np.concatenate([found.torque, found.force], -1).ravel(), smallest)


@check("joint_torques")
def _(f, c):
    torques = f(c.model, c.q, c.tau)
    expected = np.zeros((c.ref.count, 3))
    f.same(work_of(c, torques), c.tau, scale=max_of(c.tau, expected))


def work_of(c, torques):
    """Joint forces of a torque in every joint, in coordinates of the parent."""
    tau = np.zeros(c.ref.nv)
    for i, (n, lam) in enumerate(zip(torques, c.ref.parent[1:], strict=True), start=1):
        tau = tau + (c.ref.J[i] - c.ref.J[lam])[:3].T @ (c.ref.T[lam][0] @ n)
    return tau


@check("forces_of_joint_torques")
def _(f, c):
    torques = c.f_ext[:, :3]
    f.same(c.ref.forces(f(c.model, c.q, torques)), work_of(c, torques), scale=max_of(torques))


# --- regressors ----------------------------------------------------------------------------------


def parameters(c):
    return np.concatenate(
        [[], *(np.asarray(b.inertia.parameters(), float) for b in c.plain.bodies)]
    )


@check("regressor")
def _(f, c):
    along = Coordinates(c).G.T
    bodies = f(c.model, c.q, c.qd, c.qdd) @ parameters(c)
    armature = along @ c.ref.G.T @ (c.ref.armature * (c.ref.G @ c.qdd + c.ref.g))
    f.same(bodies + armature, along @ c.ref.required(c.qdd))
    Y = f(c.model, c.q, c.qd, c.qdd, rotors=True)
    f.same(Y @ np.concatenate([parameters(c), c.ref.armature]), along @ c.ref.required(c.qdd))


@check("momentum_regressor")
def _(f, c):
    f.same(f(c.model, c.q, c.qd) @ parameters(c), c.ref.momentum_at(c.q, c.qd))


def body_energy(c):
    return c.ref.kinetic() - np.sum(c.ref.armature * (c.ref.G @ c.qd) ** 2) / 2


@check("kinetic_energy_regressor")
def _(f, c):
    f.same(f(c.model, c.q, c.qd) @ parameters(c), body_energy(c))


@check("potential_energy_regressor")
def _(f, c):
    f.same(f(c.model, c.q) @ parameters(c), c.ref.potential_at(c.q))


@check("energy_regressor")
def _(f, c):
    expected = body_energy(c) + c.ref.potential_at(c.q)
    f.same(f(c.model, c.q, c.qd) @ parameters(c), expected)
