# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportIndexIssue=false
# pyright: reportInvalidTypeArguments=false, reportCallIssue=false, reportOperatorIssue=false
"""One instant of whole-body control in compiled code: from a state to torques.

The quantities of the state come from kernels. Here are the rows that they make: equations of
motion of what no motor drives, contacts that stay, tasks, limits; and the torques of the solution.
Unknowns are the accelerations and the forces of the closed contacts.
"""

from kinetree.codegen.procedures import procedure, record, view
from kinetree.control.levels import Levels, solve_levels
from kinetree.control.whole_body_quantities import Codes, run_all

NOT_COMPUTED = 4
"""The quantities of this state are not finite; other results are those of ``levels``."""


@record
class StanceInstant:
    """Tables of a stance, and the quantities of a state.

    Quantities, from the kernels:
        H, h: inertia and bias forces.  J, drift: of all contacts.  arms: Jacobians of all points.
        Jt, e, v, c: Jacobians, errors, velocities and bias accelerations of tasks.

    References:
        v_r: velocities, of the tasks that move.  a_r: accelerations or forces, of all rows.

    Tables:
        nv, forces: numbers of accelerations, and of force components.  moving, jacobians: of the
            rows of tasks, how many have an error, and a Jacobian of the state; they come first.
        kp, kd: gains (moving,), or matrices where ``coupled``.
        idle: velocity variables without a motor.  driven: those with one.  ``idles``, ``drivens``,
            ``contacts``, ``joints`` and ``motors`` count these and the following.
        column: numbers of the forces of closed contacts, in ``arms``.
        contact: numbers of the rows of closed contacts, in ``J``.
        soft_contacts: whether these rows are tasks, the last ones, instead of equations.
        joint, position, joint_low, joint_high, speed, rate: limits of joints, whose rows of bounds
            are the first; ``position`` is -1 for joints whose position has no limit.
        motor, least, most: limits of motors, whose rows follow.

    Out:
        tau: forces of the motors.
    """

    nv: int
    forces: int
    moving: int
    jacobians: int
    tasks: int
    coupled: bool
    soft_contacts: bool
    idles: int
    drivens: int
    contacts: int
    joints: int
    motors: int
    rate: float
    q: "float[:]"
    qd: "float[:]"
    H: "float[:]"
    h: "float[:]"
    J: "float[:]"
    drift: "float[:]"
    arms: "float[:]"
    Jt: "float[:]"
    e: "float[:]"
    v: "float[:]"
    c: "float[:]"
    v_r: "float[:]"
    a_r: "float[:]"
    kp: "float[:]"
    kd: "float[:]"
    idle: "int[:]"
    driven: "int[:]"
    column: "int[:]"
    contact: "int[:]"
    joint: "int[:]"
    position: "int[:]"
    joint_low: "float[:]"
    joint_high: "float[:]"
    speed: "float[:]"
    motor: "int[:]"
    least: "float[:]"
    most: "float[:]"
    tau: "float[:]"


@procedure
def control(codes: Codes, s: StanceInstant, p: Levels) -> int:
    """Control step: compute the state's quantities, solve for forces and torques."""
    if not run_all(codes):
        return NOT_COMPUTED
    return control_with(s, p)


@procedure
def control_with(s: StanceInstant, p: Levels) -> int:
    """Control step with known quantities."""
    prepare(s, p)
    found = solve_levels(p)
    find_torques(s, p)
    return found


@procedure
def prepare(s: StanceInstant, p: Levels) -> None:
    """Set up the least-squares problem of a control step."""
    _make_tasks(s, p)
    _make_equations(s, p)
    _limit_joints(s, p)
    _limit_motors(s, p)


@procedure
def _make_tasks(s: StanceInstant, p: Levels) -> None:
    """Task rows of a control step: ``b = a_r + kd (v_r - v) + kp e - c``."""
    nv = s.nv
    for i in range(s.tasks):
        p.b[i] = s.a_r[i]
    for i in range(s.moving):
        total = p.b[i] - s.c[i]
        if s.coupled:
            for k in range(s.moving):
                at = i * s.moving + k
                total += s.kd[at] * (s.v_r[k] - s.v[k]) + s.kp[at] * s.e[k]
        else:
            total += s.kd[i] * (s.v_r[i] - s.v[i]) + s.kp[i] * s.e[i]
        p.b[i] = total
    for i in range(s.jacobians):
        row = view(p.A, i * p.n)
        source = view(s.Jt, i * nv)
        for j in range(nv):
            row[j] = source[j]
    if s.soft_contacts:
        for i in range(s.contacts):
            k = s.contact[i]
            row = view(p.A, (s.tasks + i) * p.n)
            source = view(s.J, k * nv)
            for j in range(nv):
                row[j] = source[j]
            p.b[s.tasks + i] = -s.drift[k]


@procedure
def _make_equations(s: StanceInstant, p: Levels) -> None:
    """Equations of a control step: undriven dynamics and contacts at rest."""
    nv = s.nv
    wide = p.n + 1
    for i in range(s.idles):
        k = s.idle[i]
        row = view(p.E, i * wide)
        for j in range(nv):
            row[j] = s.H[k * nv + j]
        for j in range(s.forces):
            row[nv + j] = -s.arms[s.column[j] * nv + k]
        row[p.n] = -s.h[k]
    if not s.soft_contacts:
        for i in range(s.contacts):
            k = s.contact[i]
            row = view(p.E, (s.idles + i) * wide)
            for j in range(nv):
                row[j] = s.J[k * nv + j]
            for j in range(nv, p.n):
                row[j] = 0.0
            row[p.n] = -s.drift[k]


@procedure
def _limit_joints(s: StanceInstant, p: Levels) -> None:
    """Bounds of accelerations that keep joints within their limits.

    The distance ``d`` to a limit obeys ``d̈ + 2 r ḋ + r² d >= 0``: joints that approach it no faster
    than ``r d`` never pass it. Speeds likewise: ``qdd <= r (limit - qd)``.
    """
    r = s.rate
    for i in range(s.joints):
        q = 0.0 if s.position[i] < 0 else s.q[s.position[i]]
        qd = s.qd[s.joint[i]]
        high = min(r * r * (s.joint_high[i] - q) - 2.0 * r * qd, r * (s.speed[i] - qd))
        low = max(r * r * (s.joint_low[i] - q) - 2.0 * r * qd, -r * (s.speed[i] + qd))
        p.low[i] = min(low, high)
        p.high[i] = high


@procedure
def _limit_motors(s: StanceInstant, p: Levels) -> None:
    """Bounds of motor torques, in terms of accelerations and contact forces."""
    nv = s.nv
    for i in range(s.motors):
        k = s.motor[i]
        row = view(p.G, (s.joints + i) * p.n)
        for j in range(nv):
            row[j] = s.H[k * nv + j]
        for j in range(s.forces):
            row[nv + j] = -s.arms[s.column[j] * nv + k]
        p.low[s.joints + i] = s.least[i] - s.h[k]
        p.high[s.joints + i] = s.most[i] - s.h[k]


@procedure
def find_torques(s: StanceInstant, p: Levels) -> None:
    """Motor torques by inverse dynamics of the solution."""
    nv = s.nv
    for i in range(nv):
        s.tau[i] = 0.0
    for i in range(s.drivens):
        k = s.driven[i]
        total = s.h[k]
        for j in range(nv):
            total += s.H[k * nv + j] * p.x[j]
        for j in range(s.forces):
            total -= s.arms[s.column[j] * nv + k] * p.x[nv + j]
        s.tau[k] = total
