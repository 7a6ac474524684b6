"""Every public text × every feature of a model: the right answer, or an error that names both.

A mechanism with gears, prescribed joints, or armature is a plain tree whose joints move
together, ``Q = γ(q)``, ``Qd = G qd + σ``, ``Qdd = G qdd + g``. Both are written down here by hand.
What a text says about the one follows from what it says about the other, by the rule that belongs
to its kind; that texts are right for plain trees is what other tests are about. Loops are added as
equations for a point, and solved for with NumPy. A text that has no rule here fails the test.
"""

import importlib
import inspect
import pkgutil
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from support.states import inertial_parameters

import kinetree as kt
from kinetree import algorithms, textbook
from kinetree.algorithms import centroidal, closed, crba, jacobians, rnea
from kinetree.joints import Prismatic, Revolute, Spherical
from kinetree.joints.prescribed import PrescribedInstant
from kinetree.model import Body, Coupling, JointDynamics, Model
from kinetree.samples.random_mechanisms import random_inertia, random_placement
from kinetree.spatial import Force, Inertia, Motion

# --- the features --------------------------------------------------------------------------------

RNG = np.random.default_rng(18)
PLAIN = Model(
    [
        Body(name, parent, joint, random_placement(RNG), random_inertia(RNG), f"{name}_joint")
        for name, parent, joint in (
            ("root", 0, Revolute("z")),
            ("arm", 1, Revolute("y")),
            ("slide", 2, Prismatic("x")),
            ("finger", 1, Revolute("z")),
            ("tip", 4, Revolute("x")),
        )
    ],
    frames=(kt.Frame("pad", 5, random_placement(RNG)),),
    gravity=np.array([0.0, 0.0, -9.81]) + RNG.normal(size=3),
    name="plain",
)
WEIGHTLESS = PLAIN.replace(gravity=(0.0, 0.0, 0.0))
Q, QD, QDD, TAU = 0.5 * RNG.normal(size=(4, 5))  # slow enough to stand on the ground
F_EXT = [None, *(Force.from_array(f) for f in RNG.normal(size=(5, 6)))]
ARMATURE = np.array([0.0, 0.7, 0.0, 0.4, 0.0])
SPRINGS = {
    name: JointDynamics(stiffness=2.0 + k, damping=0.3, friction=0.2, rest=0.1)
    for k, name in enumerate(PLAIN.joint_names)
}


@dataclass
class Feature:
    """A model with a feature, a state, and how it is one of the plain tree."""

    model: Model
    q: Any = None
    qd: Any = None
    qdd: Any = None
    armature: Any = 0.0
    word: str = "never"

    def __post_init__(self):
        n = self.model.nv
        self.q = Q[:n].copy() if self.q is None else self.q
        self.qd = QD[:n].copy() if self.qd is None else self.qd
        self.qdd, self.tau = QDD[:n].copy(), TAU[:n].copy()
        self.known: dict = {}
        self.A = np.diag(np.broadcast_to(self.armature, 5))

    def full(self, q):
        """``Q`` and ``G``."""
        return q, np.eye(5)

    def bias(self, q, qd):
        """``σ`` and ``g``."""
        return np.zeros(5), np.zeros(5)

    def state(self, q, qd, qdd):
        """``Q, Qd, Qdd``."""
        (Q, G), (sigma, g) = self.full(q), self.bias(q, qd)
        return Q, G @ qd + sigma, G @ qdd + g

    def force(self, q, qd, qdd, f_ext=None, gravity=True):
        """Joint forces ``tau``."""
        key = (q.tobytes(), qd.tobytes(), qdd.tobytes(), f_ext is None, gravity)
        if key not in self.known:
            self.known[key] = self._force(q, qd, qdd, f_ext, gravity)
        return self.known[key]

    def _force(self, q, qd, qdd, f_ext, gravity):
        Q, Qd, Qdd = self.state(q, qd, qdd)
        whole = PLAIN if gravity else WEIGHTLESS
        return self.full(q)[1].T @ (rnea.inverse_dynamics(whole, Q, Qd, Qdd, f_ext) + self.A @ Qdd)

    def H(self, q):
        if q.tobytes() not in self.known:
            self.known[q.tobytes()] = self._inertia(q)
        return self.known[q.tobytes()]

    def _inertia(self, q):
        Q, G = self.full(q)
        return G.T @ (crba.joint_space_inertia(PLAIN, Q) + self.A) @ G

    def C(self, f_ext=None):
        return self.force(self.q, self.qd, 0 * self.qd, f_ext)

    def loop(self, q, qd):
        """``K`` and ``k`` of the loops."""
        return np.zeros((0, len(qd))), np.zeros(0)

    def accelerations(self, tau, q=None, qd=None, f_ext=None):
        q, qd = self.q if q is None else q, self.qd if qd is None else qd
        (K, k), H = self.loop(q, qd), self.H(q)
        left = np.block([[H, K.T], [K, np.zeros((len(K), len(K)))]])
        right = np.concatenate([tau - self.force(q, qd, 0 * qd, f_ext), k])
        return np.linalg.solve(left, right)[: len(H)]

    def inverse(self):
        """``∂qdd/∂tau``."""
        columns = [self.accelerations(self.tau + e) for e in np.eye(self.model.nv)]
        return np.array(columns).T - self.accelerations(self.tau)[:, None]

    def jacobian(self, name, reference="body"):
        Q, G = self.full(self.q)
        return jacobians.frame_jacobian(PLAIN, Q, PLAIN.frame(name), reference) @ G

    def frame_bias(self, name, reference="body"):
        """``Jd qd`` with the terms of prescribed joints."""
        state = self.state(self.q, self.qd, 0 * self.qd)
        return jacobians.frame_acceleration(PLAIN, *state, PLAIN.frame(name), reference)


class Geared(Feature):
    """The tip follows the arm by a polynomial, the finger arm and slide by a differential."""

    def full(self, q):
        _, arm, slide = q
        tip = 0.1 + 0.7 * arm + 0.3 * arm**2
        G = np.zeros((5, 3), np.asarray(q).dtype)
        G[[0, 1, 2], [0, 1, 2]] = 1
        G[3] = 0, 0.5, -0.5
        G[4] = 0, 0.7 + 0.6 * arm, 0
        return np.array([*q, 0.2 + 0.5 * arm - 0.5 * slide, tip]), G

    def bias(self, q, qd):
        return np.zeros(5), np.array([0, 0, 0, 0, 0.6 * qd[1] ** 2])


class Timed(Feature):
    """The finger moves as time tells."""

    moved = (0.3, 0.7, -0.4)

    def full(self, q):
        return np.array([*q[:3], self.moved[0], q[3]]), np.delete(np.eye(5), 3, axis=1)

    def bias(self, q, qd):
        return self.moved[1] * np.eye(5)[3], self.moved[2] * np.eye(5)[3]


class Closed(Feature):
    """A ball between slide and tip."""

    def loop(self, q, qd):
        rows, k = 0, 0
        state = (PLAIN, q, qd, 0 * qd)
        for sign, name in ((1, "ball on the tip"), (-1, "ball on the slide")):
            frame = CLOSED.frame(name)
            J = jacobians.frame_jacobian(PLAIN, q, frame, "aligned")[3:]
            a = jacobians.frame_acceleration(*state, frame, "aligned", "classical")[3:]
            rows, k = rows + sign * J, k - sign * a
        return rows, k


def _closed():
    """The plain tree with a loop that is closed at ``Q``."""
    poses = jacobians.all_poses(PLAIN, Q)
    at = poses[4][:3, 3] + np.array([0.1, -0.2, 0.3])
    inside = [kt.xlt(*(p[:3, :3].T @ (at - p[:3, 3]))) for p in (poses[2], poses[4])]
    loop = kt.Loop("ball", 3, 5, Spherical(), *inside)
    frames = [
        kt.Frame("ball on the slide", 3, inside[0]),
        kt.Frame("ball on the tip", 5, inside[1]),
    ]
    return PLAIN.replace(loops=(loop,), frames=(*PLAIN.frames, *frames), name="closed")


CLOSED = _closed()
GEARS = (
    Coupling("bent", 5, 2, (0.1, 0.7, 0.3)),
    Coupling("differential", 4, sources=(2, 3), weights=(0.5, -0.5), coefficients=(0.2, 1.0)),
)


def _on_the_loop():
    """Velocities that keep the ball together."""
    K, _ = Closed(CLOSED, q=Q).loop(Q, QD)
    return QD - np.linalg.pinv(K) @ (K @ QD)


def _armed(model):
    return model.replace(
        dynamics={f"{n}_joint": JointDynamics(armature=a)
                  for n, a in zip(PLAIN.body_names[1:], ARMATURE, strict=True) if a}
    )  # fmt: skip


FEATURES = {
    "springs and friction": Feature(PLAIN.replace(dynamics=SPRINGS)),
    "armature": Feature(_armed(PLAIN), armature=ARMATURE, word="armature"),
    "gears": Geared(PLAIN.replace(couplings=GEARS), word="coupling"),
    "gears and armature": Geared(
        _armed(PLAIN).replace(couplings=GEARS), armature=ARMATURE, word="coupling|armature"
    ),
    "prescribed": Timed(
        PLAIN.replace(
            joint={"finger_joint": PrescribedInstant(Revolute("z"), *((x,) for x in Timed.moved))}
        ),
        word="prescribed",
    ),
    "loops": Closed(CLOSED, q=Q, qd=_on_the_loop(), word="loop"),
}


# --- the rules -----------------------------------------------------------------------------------


def numbers(x):
    """All numbers of a result, in order."""
    if x is None:
        return np.zeros(0)
    if isinstance(x, (list, tuple)):
        return np.concatenate([np.zeros(0), *(numbers(part) for part in x)])
    if isinstance(x, dict):
        return numbers(list(x.values()))
    for turn in ("to_matrix", "to_array"):
        if hasattr(x, turn):
            return np.ravel(getattr(x, turn)())
    return np.ravel(np.asarray(x, dtype=float))


FRAME = PLAIN.frame("pad")
GIVEN = {
    "frame": FRAME, "reference": "body", "frames": "pad", "i": 5, "body": "tip", "k": 1,
    "point": np.array([0.1, 0.2, 0.3]), "rows": None, "in_body_coordinates": False,
    "I_0": Inertia.from_mass_center(2.0, np.array([0.1, 0.0, 0.2]), np.diag([0.3, 0.4, 0.5])),
    "v_0": Motion(np.array([0.1, -0.3, 0.2]), np.array([0.5, 0.1, -0.2])),
    "a_g": Motion(np.zeros(3), np.array([0.1, 0.2, -9.0])), "force": TAU[:1],
    "acceleration": TAU[:1],
}  # fmt: skip
"""What texts take beside the state, by the name of the argument."""
ONE_ROW = {"rows": ("z",)}  # of a task: gears and loops leave few degrees of freedom


def called(text, model, state, options):
    """The text with arguments by their names."""
    known = {**GIVEN, **state, **options}
    names = [p.name for p in list(inspect.signature(text).parameters.values())[1:]]
    needed = [
        n for n in names
        if n in options or n in state
        or (n in GIVEN and inspect.signature(text).parameters[n].default is inspect.Parameter.empty)
    ]  # fmt: skip
    extra = {n: v for n, v in options.items() if n not in names}
    return text(model, **{n: known[n] for n in needed}, **extra)


class Rule:
    """How to tell what a text must say: a function of a feature and the text on the plain tree."""

    def __init__(self, expected, pick=None, **options):
        self.expected, self.pick, self.options = expected, pick, options

    def check(self, text, f):
        state = {"q": f.q, "qd": f.qd, "qdd": f.qdd, "tau": f.tau}
        named = {"qd": f.qd, "state": np.concatenate([f.q, f.qd])}
        options = {k: named.get(v, v) if isinstance(v, str) else v
                   for k, v in self.options.items()}  # fmt: skip
        found = called(text, f.model, state, options)
        found = found if self.pick is None else self.pick(found)
        expected = numbers(self.expected(f, lambda *state: self._plain(text, *state)))
        found = numbers(found)
        assert found.shape == expected.shape, (found.shape, expected.shape)
        scale = np.max(np.abs(expected), initial=1e-3)
        assert np.max(np.abs(found - expected), initial=0.0) <= 1e-10 * scale

    def _plain(self, text, *state):
        """The text for a state of the plain tree."""
        found = called(
            text, PLAIN, dict(zip(("q", "qd", "qdd"), state, strict=False)), self.options
        )
        return found if self.pick is None else self.pick(found)


def bodies(f, plain):
    """What is about bodies does not know how they came to move."""
    return plain(*f.state(f.q, f.qd, f.qdd))


def at_rest(f, plain):
    """The same without velocities: what a text of ``q`` alone says."""
    return plain(f.full(f.q)[0])


def columns(f, plain):
    """``J G``."""
    return _array(plain(f.full(f.q)[0])) @ f.full(f.q)[1]


def _array(J):
    return J.to_array() if hasattr(J, "to_array") else np.asarray(J)


def moving(f, t):
    """``Q`` and ``G`` a little later; some joints are prescribed."""
    later, G = f.full(f.q + t * f.qd)
    return later + t * f.bias(f.q, f.qd)[0], G


def derivatives(function, *at):
    """Derivatives of a function of arrays with respect to each of them."""
    h, found = 1e-6, []
    for k, x in enumerate(at):
        steps = [[function(*at[:k], x + s * e, *at[k + 1 :]) for s in (h, -h)]
                 for e in np.eye(len(x))]  # fmt: skip
        found.append(np.array([(a - b) / (2 * h) for a, b in steps]).T)
    return found


FREE = (1, 3, 5)
"""Joints whose forces are given in hybrid dynamics."""


def hybrid(f, _):
    """(9.1), solved for what is not given, with the loops that there are."""
    n, loose = f.model.nv, _free_variables(f)
    given = np.setdiff1d(np.arange(n), loose)
    H, C = f.H(f.q), f.C()
    qdd = f.qdd.copy()
    b = f.tau[loose] - C[loose] - H[np.ix_(loose, given)] @ qdd[given]
    qdd[loose] = np.linalg.solve(H[np.ix_(loose, loose)], b)
    return [H @ qdd + C, qdd]


def _free_variables(f):
    at = f.model.v_slice
    return np.array([k for i in FREE for k in range(at[i].start, at[i].stop)], dtype=int)


def response(f, _):
    n, loose = f.model.nv, _free_variables(f)
    R = np.zeros((n, n))
    given = np.setdiff1d(np.arange(n), loose)
    H = f.H(f.q)
    inverse = np.linalg.inv(H[np.ix_(loose, loose)])
    R[np.ix_(loose, loose)] = inverse
    R[np.ix_(loose, given)] = -inverse @ H[np.ix_(loose, given)]
    R[np.ix_(given, loose)] = -R[np.ix_(loose, given)].T
    R[np.ix_(given, given)] = (
        H[np.ix_(given, given)] + H[np.ix_(given, loose)] @ R[np.ix_(loose, given)]
    )
    return R


class Task:
    """The last coordinate of the frame, as a task."""

    def __init__(self, f):
        self.f, self.J = f, f.jacobian("pad")[5:]
        self.Phi = self.J @ f.inverse() @ self.J.T

    def acceleration(self, tau, qd=None):
        f = self.f
        qd = f.qd if qd is None else qd
        qdd = f.accelerations(tau, qd=qd)
        state = f.state(f.q, qd, qdd)
        return jacobians.frame_acceleration(PLAIN, *state, PLAIN.frame("pad"), "body")[5:]


def in_task(of):
    return lambda f, _: of(Task(f))


def _shortest(f, bias):
    """What moves the last coordinate of the frame by the given number, beside a bias."""
    J = f.jacobian("pad")[5:]
    return J.T @ (TAU[:1] - bias[5:]) / (J @ J.T)[0, 0]


def _handle(f):
    J = f.jacobian("pad")
    qdd = f.accelerations(f.tau)
    return J @ f.inverse() @ J.T, J @ qdd + f.frame_bias("pad")


def _symbols(f, _):
    """``C_ijk``: coefficients of the velocity terms, symmetric in ``j`` and ``k``."""
    n, zero = f.model.nv, np.zeros(f.model.nv)

    def c(qd):
        return f.force(f.q, qd, zero, gravity=False)

    e = np.eye(n)
    return np.array([[(c(e[j] + e[k]) - c(e[j]) - c(e[k]) + c(zero)) / 2 for k in range(n)]
                     for j in range(n)]).transpose(2, 0, 1)  # fmt: skip


def _zero(f):
    return np.zeros(f.model.nv)


TAU_RULE = Rule(lambda f, _: f.force(f.q, f.qd, f.qdd))
H_RULE = Rule(lambda f, _: f.H(f.q))
QDD_RULE = Rule(lambda f, _: f.accelerations(f.tau))
C_RULE = Rule(lambda f, _: f.C())


def _gravity(f, _):
    """Forces against gravity; those of prescribed joints are not part of them."""
    at_rest = f.q, _zero(f), _zero(f)
    return f.force(*at_rest) - f.force(*at_rest, gravity=False)


G_RULE = Rule(_gravity)
VELOCITY_RULE = Rule(lambda f, _: f.force(f.q, f.qd, _zero(f), gravity=False))
INVERSE_RULE = Rule(lambda f, _: f.inverse())


def _coriolis(f, _):
    """Skew part of ``dH/dt - 2 C``, zero, and ``C qd``."""
    rest = f.force(f.q, _zero(f), _zero(f), gravity=False)  # what time causes by itself
    moved = f.force(f.q, f.qd, _zero(f), gravity=False)
    return [np.zeros((f.model.nv,) * 2), moved - rest]


class CoriolisRule(Rule):
    """A matrix that is not unique, by what it must do."""

    def check(self, text, f):
        C, h = text(f.model, f.q, f.qd), 1e-6
        H = [_inertia(f, *moving(f, s * h)) for s in (1, -1)]
        skew = (H[0] - H[1]) / (2 * h) - 2 * C
        scale = np.max(np.abs(C))
        assert np.max(np.abs(skew + skew.T)) < 1e-6 * scale
        assert np.max(np.abs(C @ f.qd - _coriolis(f, None)[1])) < 1e-10 * scale


class SkewRule(CoriolisRule):
    """A matrix that is half of ``dH/dt``."""

    def check(self, text, f):
        C, h = text(f.model, f.q, f.qd), 1e-6
        H = [_inertia(f, *moving(f, s * h)) for s in (1, -1)]
        rate = (H[0] - H[1]) / (2 * h)
        assert np.max(np.abs(C + C.T - rate)) < 1e-6 * np.max(np.abs(C))


def _inertia(f, Q, G):
    return G.T @ (crba.joint_space_inertia(PLAIN, Q) + f.A) @ G


def _rate(f, of):
    h = 1e-6
    found = [of(*moving(f, s * h)) for s in (1, -1)]
    return (found[0] - found[1]) / (2 * h)


class DerivativeRule(Rule):
    """Compared with differences."""

    def check(self, text, f):
        state = {"q": f.q, "qd": f.qd, "qdd": f.qdd, "tau": f.tau}
        found = called(text, f.model, state, self.options)
        found = [found] if not isinstance(found, tuple) else found
        expected = [np.asarray(x) for x in self.expected(f, None)]
        assert len(found) == len(expected)
        scale = max(np.max(np.abs(x), initial=1e-3) for x in expected)
        for x, y in zip(found, expected, strict=True):
            x = x.to_array() if hasattr(x, "to_array") else x
            assert np.max(np.abs(x - y)) < 1e-6 * scale


def _energy(f):
    Q, Qd, _ = f.state(f.q, f.qd, f.qdd)
    return (Qd @ (crba.joint_space_inertia(PLAIN, Q) + f.A) @ Qd) / 2


def _potential(f, q):
    return algorithms.energy.potential_energy(PLAIN, f.full(q)[0])


class RegressorRule(Rule):
    """``Y p`` with the parameters of the bodies: what armature adds is apart."""

    def check(self, text, f):
        state = {"q": f.q, "qd": f.qd, "qdd": f.qdd}
        found = called(text, f.model, state, self.options) @ inertial_parameters(PLAIN)
        bare = replace_armature(f)
        expected = numbers(self.expected(bare, None))
        scale = np.max(np.abs(expected), initial=1e-3)
        assert np.max(np.abs(found - expected)) < 1e-10 * scale


def replace_armature(f):
    bare = type(f)(f.model, q=f.q, qd=f.qd)
    bare.qdd, bare.tau = f.qdd, f.tau
    return bare


def _product(L):
    """``LᵀDL`` from its factors."""
    unit = np.tril(L, -1) + np.eye(len(L))
    return unit.T @ np.diag(np.diagonal(L)) @ unit


def _hessian(f):
    found = [(_world(f, f.q + 1e-6 * e) - _world(f, f.q - 1e-6 * e)) / 2e-6
             for e in np.eye(f.model.nv)]  # fmt: skip
    return [np.moveaxis(np.array(found), 0, -1)]


def _world(f, q):
    Q, G = f.full(q)
    return jacobians.frame_jacobian(PLAIN, Q, FRAME, "world") @ G


def _handle_in_base(f):
    Q, G = f.full(f.q)
    frame = PLAIN.frame("tip")
    J = jacobians.frame_jacobian(PLAIN, Q, frame, "world") @ G
    state = f.state(f.q, f.qd, f.accelerations(f.tau))
    b = jacobians.frame_acceleration(PLAIN, *state, frame, "world")
    return [J @ f.inverse() @ J.T, b]


def _allowed(f):
    K, _ = f.loop(f.q, f.qd)
    free = np.linalg.svd(K)[2][len(K) :].T if len(K) else np.eye(f.model.nv)
    return f.jacobian("pad") @ free


def _energy_rate(f):
    """``dT/dt``, the power of all forces, of those that move prescribed joints as well."""
    Q, Qd, Qdd = f.state(f.q, f.qd, f.qdd)
    return Qd @ (rnea.inverse_dynamics(WEIGHTLESS, Q, Qd, Qdd) + f.A @ Qdd)


def _springs(f, friction=True):
    """Joint forces and energy of springs, dampers and friction."""
    Q, Qd, _ = f.state(f.q, f.qd, f.qdd)
    tau, energy = np.zeros(5), 0.0
    for k, name in enumerate(f.model.joint_names):
        d = f.model.bodies[k].dynamics
        if name in SPRINGS and d is not None and d.stiffness:
            away = Q[k] - d.rest[0]
            tau[k] = -d.stiffness[0] * away - d.damping[0] * Qd[k]
            tau[k] -= friction * d.friction[0] * np.sign(Qd[k])
            energy += d.stiffness[0] * away**2 / 2
    return f.full(f.q)[1].T @ tau, energy


def floated(f, what):
    """The base on a free joint at the origin, where its coordinates are those of the world."""
    tree = kt.edit.floating(PLAIN.replace(gravity=GIVEN["a_g"].linear), inertia=GIVEN["I_0"])
    Q, Qd, _ = f.state(f.q, f.qd, f.qdd)
    one, G = np.eye(6), f.full(f.q)[1]
    B = np.block([[one, np.zeros((6, G.shape[1]))], [np.zeros((5, 6)), G]])
    q, v = np.concatenate([[0, 0, 0, 1, 0, 0, 0], Q]), np.concatenate([GIVEN["v_0"].to_array(), Qd])
    A = np.diag(np.concatenate([np.zeros(6), np.diagonal(f.A)]))
    H = crba.joint_space_inertia(tree, q) + A
    g = np.concatenate([np.zeros(6), f.bias(f.q, f.qd)[1]])
    C = B.T @ (rnea.bias_force(tree, q, v) + H @ g)
    H = B.T @ H @ B
    if what == "equation":
        return [H[:6, :6], H[:6, 6:], H[6:, 6:], C[:6], C[6:]]
    if what == "forward":
        K, k = f.loop(f.q, f.qd)
        K = np.hstack([np.zeros((len(K), 6)), K])
        left = np.block([[H, K.T], [K, np.zeros((len(K), len(K)))]])
        right = np.concatenate([np.concatenate([np.zeros(6), f.tau]) - C, k])
        return np.linalg.solve(left, right)[: len(H)]
    a_0 = np.linalg.solve(H[:6, :6], -C[:6] - H[:6, 6:] @ f.qdd)
    return [a_0, H[6:, :6] @ a_0 + H[6:, 6:] @ f.qdd + C[6:]]


RULES = {
    "aba.articulated_bodies": Rule(QDD_RULE.expected, lambda x: x.qdd),
    "aba.forward_dynamics": QDD_RULE,
    "aba_absolute.articulated_bodies": Rule(QDD_RULE.expected, lambda x: x.qdd),
    "aba_absolute.bodies_in_base": Rule(
        lambda f, plain: plain(*f.state(f.q, f.qd, f.qdd)[:2]), lambda x: x.v
    ),
    "aba_absolute.forward_dynamics": QDD_RULE,
    "aba_derivatives.forward_dynamics_derivatives": DerivativeRule(
        lambda f, _: derivatives(lambda q, qd, tau: f.accelerations(tau, q, qd), f.q, f.qd, f.tau)
    ),
    "aba_derivatives.forward_dynamics_derivatives_by_articulated_bodies": DerivativeRule(
        lambda f, _: derivatives(lambda q, qd, tau: f.accelerations(tau, q, qd), f.q, f.qd, f.tau)
    ),
    "aba_variants.body_response": Rule(
        lambda f, _: _handle_in_base(f), lambda x: [x.Phi, x.b]
    ),
    "aba_variants.forward_dynamics_1": QDD_RULE,
    "aba_variants.forward_dynamics_2": QDD_RULE,
    "rnea_derivatives.composite_bodies_in_body_coordinates": Rule(
        lambda f, plain: plain(*f.state(f.q, f.qd, f.qdd)[:2]), lambda x: x.v
    ),
    "centroidal.center_of_mass_acceleration": Rule(bodies),
    "centroidal.center_of_mass_jacobian": Rule(columns),
    "centroidal.center_of_mass_jacobian_rate": DerivativeRule(
        lambda f, _: [_rate(f, lambda Q, G: centroidal.center_of_mass_jacobian(PLAIN, Q) @ G)]
    ),
    "centroidal.center_of_mass_velocity": Rule(bodies),
    "centroidal.centroidal_inertia": Rule(at_rest),
    "centroidal.centroidal_momentum": Rule(bodies),
    "centroidal.centroidal_momentum_bias": Rule(
        lambda f, plain: centroidal.centroidal_momentum_rate(
            PLAIN, *f.state(f.q, f.qd, 0 * f.qd)
        )
    ),
    "centroidal.centroidal_momentum_matrix": Rule(columns),
    "centroidal.centroidal_momentum_matrix_rate": DerivativeRule(
        lambda f, _: [_rate(f, lambda Q, G: centroidal.centroidal_momentum_matrix(PLAIN, Q) @ G)]
    ),
    "centroidal.centroidal_momentum_rate": Rule(bodies),
    "centroidal.momentum_matrix": Rule(columns),
    "centroidal.momentum_rate": Rule(bodies),
    "centroidal.total_inertia": Rule(at_rest),
    "centroidal.zero_moment_point": Rule(bodies),
    "forward_dynamics.constrained_acceleration": Rule(QDD_RULE.expected, lambda x: x.qdd),
    "closed_form.body_accelerations": Rule(bodies),
    "closed_form.body_velocities": Rule(bodies),
    "closed_form.equation_of_motion": Rule(
        lambda f, _: [f.H(f.q), _symbols(f, None), G_RULE.expected(f, None)]
    ),
    "closed_form.velocity_coefficients": Rule(_symbols),
    "coriolis.christoffel": Rule(_symbols),
    "coriolis.christoffel_by_planes": Rule(_symbols),
    "coriolis.coriolis_matrix": CoriolisRule(None),
    "coriolis.half_inertia_rate": SkewRule(None),
    "coriolis.coriolis_matrix_in_root_coordinates": CoriolisRule(None),
    "crba.composite_bodies": Rule(H_RULE.expected, lambda x: x.H),
    "crba.composite_inertias": Rule(at_rest),
    "crba.forward_dynamics": QDD_RULE,
    "crba.inertia_factors": Rule(H_RULE.expected, lambda L: _product(L)),
    "crba.joint_space_inertia": H_RULE,
    "crba_variants.column": Rule(lambda f, _: f.H(f.q)[:, 1], lambda x: x.tau),
    "crba_variants.from_base_coordinates": H_RULE,
    "crba_variants.from_definition": H_RULE,
    "crba_variants.from_jacobians": H_RULE,
    "crba_variants.from_unit_accelerations": H_RULE,
    "divide_and_conquer.divide_and_conquer": Rule(QDD_RULE.expected, lambda x: x.qdd),
    "divide_and_conquer.forward_dynamics": QDD_RULE,
    "energy.elastic_energy": Rule(lambda f, _: _springs(f)[1]),
    "energy.spring_energy": Rule(lambda f, _: _springs(f)[1]),
    "energy.kinetic_energy": Rule(lambda f, _: _energy(f)),
    "energy.potential_energy": Rule(at_rest),
    "energy.total_energy": Rule(lambda f, _: _energy(f) + _potential(f, f.q)),
    "fewest_operations.bias_force": C_RULE,
    "fewest_operations.coriolis_matrix_by_axial_turns": CoriolisRule(None),
    "fewest_operations.coriolis_matrix_in_root_coordinates": CoriolisRule(None),
    "fewest_operations.forward_dynamics_by_articulated_bodies": QDD_RULE,
    "fewest_operations.forward_dynamics_by_inertia_matrix": QDD_RULE,
    "fewest_operations.gravity_force": G_RULE,
    "fewest_operations.forward_dynamics_derivatives": DerivativeRule(
        lambda f, _: derivatives(lambda q, qd, tau: f.accelerations(tau, q, qd), f.q, f.qd, f.tau)
    ),
    "fewest_operations.inertia_factors": Rule(H_RULE.expected, lambda L: _product(L)),
    "fewest_operations.inverse_dynamics_derivatives": DerivativeRule(
        lambda f, _: derivatives(f.force, f.q, f.qd, f.qdd)
    ),
    "floating_base.equation_of_motion": Rule(
        lambda f, _: floated(f, "equation"), lambda x: [x.I0c, x.F, x.H, x.p0c, x.C]
    ),
    "floating_base.forward_dynamics": Rule(lambda f, _: floated(f, "forward")),
    "floating_base.forward_dynamics_by_equation": Rule(lambda f, _: floated(f, "forward")),
    "floating_base.inverse_dynamics": Rule(lambda f, _: floated(f, "inverse")),
    "fewest_operations.inverse_dynamics": TAU_RULE,
    "fewest_operations.inverse_mass_matrix": INVERSE_RULE,
    "fewest_operations.inverse_mass_matrix_by_factors": INVERSE_RULE,
    "fewest_operations.joint_space_inertia": H_RULE,
    "hybrid.free_joint_inertia": Rule(
        lambda f, _: f.H(f.q)[np.ix_(_free_variables(f), _free_variables(f))], free=FREE
    ),
    "hybrid.hybrid_dynamics": Rule(hybrid, free=FREE),
    "hybrid.response": Rule(response, free=FREE),
    "hybrid.response_by_articulated_bodies": Rule(response, free=FREE),
    "hybrid.hybrid_dynamics_by_articulated_bodies": Rule(hybrid, free=FREE),
    "joint_space.forward_dynamics": QDD_RULE,
    "joint_space.solution": Rule(QDD_RULE.expected, lambda x: x.qdd),
    "jacobians.all_jacobians": Rule(columns),
    "jacobians.all_poses": Rule(at_rest),
    "jacobians.body_jacobian": Rule(
        lambda f, plain: Motion.from_array(plain(f.full(f.q)[0]).to_array() @ f.full(f.q)[1])
    ),
    "jacobians.frame_acceleration": Rule(bodies, reference="world"),
    "jacobians.frame_hessian": DerivativeRule(lambda f, _: _hessian(f), reference="world"),
    "jacobians.frame_jacobian": Rule(columns),
    "jacobians.frame_jacobian_rate": DerivativeRule(
        lambda f, _: [_rate(f, lambda Q, G: jacobians.frame_jacobian(PLAIN, Q, FRAME, "body") @ G)],
        reference="body",
    ),
    "jacobians.frame_pose": Rule(at_rest),
    "tendons.tendon_lengths": Rule(at_rest),
    "tendons.tendon_jacobian": Rule(columns),
    "jacobians.frame_velocity": Rule(bodies),
    "jacobians.joint_acceleration": Rule(
        lambda f, _: _shortest(f, f.frame_bias("pad")), rows=(5,), reference="body",
    ),
    "jacobians.joint_velocity": Rule(
        lambda f, _: _shortest(f, jacobians.frame_velocity(
            PLAIN, *f.state(f.q, _zero(f), _zero(f))[:2], FRAME, "body")),
        velocity=TAU[:1], rows=(5,), reference="body",
    ),
    "kinematics.base_velocities": Rule(lambda f, plain: plain(*f.state(f.q, f.qd, f.qdd)[:2])),
    "kinematics.body_accelerations": Rule(bodies),
    "kinematics.body_velocities": Rule(lambda f, plain: plain(*f.state(f.q, f.qd, f.qdd)[:2])),
    "energy.generalized_force": Rule(
        lambda f, plain: f.full(f.q)[1].T @ plain(f.full(f.q)[0]), f_ext=F_EXT
    ),
    "energy.generalized_momentum": Rule(
        lambda f, _: f.full(f.q)[1].T
        @ (crba.joint_space_inertia(PLAIN, f.full(f.q)[0]) + f.A)
        @ f.state(f.q, f.qd, f.qdd)[1]
    ),
    "energy.kinetic_energy_rate": DerivativeRule(lambda f, _: [_energy_rate(f)]),
    "coriolis.inertia_rate": DerivativeRule(
        lambda f, _: [_rate(f, lambda Q, G: _inertia(f, Q, G))]
    ),
    "energy.mass_matrix_rate": DerivativeRule(
        lambda f, _: [_rate(f, lambda Q, G: _inertia(f, Q, G))]
    ),
    "energy.mass_matrix_rate_by_axial_turns": DerivativeRule(
        lambda f, _: [_rate(f, lambda Q, G: _inertia(f, Q, G))]
    ),
    "energy.potential_energy_rate": DerivativeRule(
        lambda f, _: [_rate(f, lambda Q, G: algorithms.energy.potential_energy(PLAIN, Q))]
    ),
    "maximal.forward_dynamics": QDD_RULE,
    "maximal.solution": Rule(QDD_RULE.expected, lambda x: x.qdd),
    "minv.inverse_mass_matrix": INVERSE_RULE,
    "minv.inverse_mass_matrix_by_columns": INVERSE_RULE,
    "minv.inverse_mass_matrix_by_factors": INVERSE_RULE,
    "centroidal.center_of_mass": Rule(at_rest),
    "centroidal.momentum": Rule(bodies),
    "centroidal.total_momentum": Rule(bodies),
    "passive.passive_force": Rule(lambda f, _: _springs(f)[0]),
    "passive.spring_and_damper_force": Rule(lambda f, _: _springs(f, friction=False)[0]),
    "passive.joint_spring_force": Rule(lambda f, _: _springs(f, friction=False)[0]),
    "projection.bias_acceleration": Rule(lambda f, _: _handle(f)[1]),
    "projection.handle_freedom": Rule(
        lambda f, _: [np.linalg.matrix_rank(_allowed(f), tol=1e-9)], lambda x: x[:1]
    ),
    "projection.handle_jacobian": Rule(lambda f, _: f.jacobian("pad")),
    "projection.handle_response": Rule(lambda f, _: _handle(f), lambda x: [x.Phi, x.b]),
    "projection.inverse_inertia": Rule(lambda f, _: _handle(f)[0]),
    "projection.operational_space_dynamics": Rule(
        lambda f, _: [1 / _handle(f)[0][5, 5], -_handle(f)[1][5] / _handle(f)[0][5, 5]],
        lambda x: [x.IA, x.pA], rows=(5,),
    ),
    "projection.operational_space_inertia": Rule(
        lambda f, _: 1 / _handle(f)[0][5, 5], rows=(5,)
    ),
    "regressors.energy_regressor": RegressorRule(
        lambda f, _: [_energy(f) + _potential(f, f.q)]
    ),
    "regressors.kinetic_energy_regressor": RegressorRule(lambda f, _: [_energy(f)]),
    "regressors.momentum_regressor": RegressorRule(
        lambda f, _: algorithms.centroidal.total_momentum(PLAIN, *f.state(f.q, f.qd, f.qdd)[:2])
    ),
    "regressors.potential_energy_regressor": RegressorRule(lambda f, _: [_potential(f, f.q)]),
    "regressors.regressor": RegressorRule(TAU_RULE.expected),
    "regressors.regressor_by_axial_turns": RegressorRule(TAU_RULE.expected),
    "regressors.regressor_in_base_coordinates": RegressorRule(TAU_RULE.expected),
    "rnea.bias_force": C_RULE,
    "rnea.coriolis_force": VELOCITY_RULE,
    "rnea.gravity_force": G_RULE,
    "rnea.inertia_product": Rule(lambda f, _: f.H(f.q) @ f.qdd),
    "rnea.inverse_dynamics": TAU_RULE,
    "rnea.newton_euler": Rule(TAU_RULE.expected, lambda x: x.tau),
    "rnea_3d.inverse_dynamics": TAU_RULE,
    "rnea_3d.newton_euler": Rule(TAU_RULE.expected, lambda x: x.tau),
    "rnea_absolute.inverse_dynamics": TAU_RULE,
    "rnea_absolute.newton_euler": Rule(TAU_RULE.expected, lambda x: x.tau),
    "rnea_derivatives.composite_bodies": Rule(
        lambda f, plain: plain(*f.state(f.q, f.qd, f.qdd)[:2]), lambda x: x.v
    ),
    "rnea_derivatives.inverse_dynamics_derivatives": DerivativeRule(
        lambda f, _: derivatives(f.force, f.q, f.qd, f.qdd)
    ),
    "rnea_tensor.bias_force": C_RULE,
    "rnea_tensor.inverse_dynamics": TAU_RULE,
    "stacked.coriolis_force": VELOCITY_RULE,
    "stacked.global_jacobian": Rule(columns),
    "stacked.gravity_force": G_RULE,
    "stacked.inverse_dynamics": TAU_RULE,
    "stacked.joint_space_inertia": H_RULE,
    "state_space.configuration_rate": Rule(lambda f, _: f.qd, alpha="qd"),
    "state_space.configuration_rate_matrix": Rule(lambda f, _: np.eye(f.model.nv)),
    "state_space.state_derivative": Rule(
        lambda f, _: [f.qd, f.accelerations(f.tau)], x="state"
    ),
    "task_space.bias": Rule(
        in_task(lambda t: -t.acceleration(0 * t.f.tau) / t.Phi[0]), **ONE_ROW
    ),
    "task_space.consistent_inverse": Rule(
        in_task(lambda t: t.f.inverse() @ t.J.T / t.Phi), **ONE_ROW
    ),
    "task_space.gravity": Rule(
        in_task(lambda t: t.J @ t.f.inverse() @ G_RULE.expected(t.f, None) / t.Phi[0]), **ONE_ROW
    ),
    "task_space.inertia": Rule(in_task(lambda t: 1 / t.Phi), **ONE_ROW),
    "task_space.inverse_inertia": Rule(in_task(lambda t: t.Phi), **ONE_ROW),
    "task_space.null_space_projector": Rule(
        in_task(lambda t: np.eye(t.f.model.nv) - t.f.inverse() @ t.J.T / t.Phi @ t.J), **ONE_ROW
    ),
    "task_space.task_forward_dynamics": Rule(
        in_task(lambda t: t.acceleration(t.J.T @ TAU[:1])), **ONE_ROW
    ),
    "task_space.task_inverse_dynamics": Rule(
        in_task(lambda t: t.J.T @ (TAU[:1] - t.acceleration(0 * t.f.tau)) / t.Phi[0]), **ONE_ROW
    ),
}  # fmt: skip

RULES |= {
    name.replace("task_space.", "task_articulated."): rule
    for name, rule in RULES.items()
    if name.startswith("task_space.")
}

PARTS = {
    "aba.accelerations_at_rest", "aba_derivatives.forward_dynamics_by_inertias",
    "rnea_tensor.inertia_forces",
    "actuators.actuator_forces", "actuators.compensation_within_effort",
    "actuators.driving_force", "actuators.force_with_compensation",
    "actuators.integral_motion", "actuators.resistance", "actuators.transmission",
    "actuators.transmission_of",
    "body_collisions.joint_space_impulse", "body_collisions.velocity_step",
    "joint_space.with_own_rows", "passive.compensation_force",
    "fluid.fluid_force", "passive.fluid_joint_force",
    "constrained_body.freedoms", "coupled.all_joints", "coupled.coupling_rows",
    "forward_dynamics.is_closed", "joint_variations.joint_variation",
    "joint_space.constraint", "jacobians.frame_bias_acceleration", "kinematics.joint_transforms",
    "kinematics.subspace_rate", "maximal.equations", "joint_space.joint_constraints",
    "minv.articulated_joints",
    "newton_kinematics.newton_history", "newton_kinematics.newton_step",
    "propagation.require_regular_variables", "reactions.joint_reactions", "reactions.multipliers",
    "reactions.add_loop_forces", "reactions.with_loop_forces", "sensors.readings",
    "stacked.stacked_operators", "stacked.stacked_vectors", "state_space.split_state",
}  # fmt: skip
"""What texts are made of, or what tests of their own look at: no motion, force or inertia."""
OF_LOOPS = (
    "constraint_kinds",
    "constraints",
    "forces",
    "implicit_step",
    "independent",
    "inverse_dynamics",
    "link_variations",
    "links",
    "manifold_linearization",
    "plan",
    "rank",
    "samples",
    "scaling",
)
"""Modules about loops and nothing else."""


def texts():
    """All public functions of a model in some state, by name: of the texts and the textbook."""
    found = {}
    for package in (algorithms, closed, textbook):
        for module in pkgutil.iter_modules(package.__path__):
            text = importlib.import_module(f"{package.__name__}.{module.name}")
            for name, function in vars(text).items():
                if not inspect.isfunction(function) or function.__module__ != text.__name__:
                    continue
                given = list(inspect.signature(function).parameters)
                of_state = given[:1] == ["model"] and {"q", "x"} & set(given)
                if of_state and name[0] != "_" and module.name not in OF_LOOPS:
                    found[f"{module.name}.{name}"] = function
    return found


TEXTS = texts()


def test_every_function_has_a_rule():
    """A new text says here what it must give: one of the rules above, most likely."""
    assert set(TEXTS) - set(RULES) - PARTS == set()
    assert set(RULES) | PARTS == set(TEXTS)
    assert not set(RULES) & PARTS


@pytest.mark.parametrize("name", RULES)
def test_functions_are_right_or_name_what_they_do_not_support(name):
    for feature, f in FEATURES.items():
        try:
            RULES[name].check(TEXTS[name], f)
        except kt.KinetreeError as error:
            message = str(error)
        except AssertionError as error:
            raise AssertionError(f"{name} with {feature}: {error}") from error
        else:
            continue
        texts = (name.split(".")[1], *TEXTS)  # itself, or what it relies on
        assert any(text in message for text in texts), f"{name} with {feature}: {message}"
        assert any(word in message for word in f.word.split("|")), f"{name}, {feature}: {message}"
