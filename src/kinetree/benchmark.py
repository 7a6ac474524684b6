"""kinetree against Pinocchio and MuJoCo: the same robot, the same states, one process.

A peer runs through its own batch function on one thread where it has one, otherwise through its
Python call in a loop. Both sides get finished arguments: every sample of the peer is its own array,
and nothing is indexed, converted or looked up within the time that is taken. Times of both sides
are processor times, taken in turn, and the answers are compared.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

import kinetree as kt
from kinetree.codegen import tiers
from kinetree.interop.pinocchio.leaves import pinocchio
from kinetree.loaders.mjcf.values import mujoco as mujoco_library

PEER_SAMPLES = 256  # of a function that the peer has no batch form of


@dataclass(frozen=True)
class Result:
    """One function at one batch size.

    Attributes:
        function: one of ``FUNCTIONS``.
        batch: samples per call; 1 is a single call from Python.
        ours, peer: median seconds per sample.
        ratio: median of ``peer / ours``.
        spread: range of the ratios over their median.
        error: largest difference of the answers over the largest number, on a few samples.
        library: the peer.
    """

    function: str
    batch: int
    ours: float
    peer: float
    ratio: float
    spread: float
    error: float
    library: str = "Pinocchio"


@dataclass(frozen=True)
class TimedCase:
    """Functions to time on either side, the samples that the peer runs, and the difference."""

    ours: Callable
    peer: Callable
    peer_samples: int
    answers: Callable


def is_too_large(model, function, n):
    """Whether a function's results for ``n`` samples exceed half a gigabyte."""
    columns = {"RNEA": 1, "ABA": 1, "regressor": 10 * model.body_count}.get(function, model.nv)
    return 8 * n * model.nv * columns > 5e8


def at_full_speed() -> None:
    """Context in which all code is specialised and optimised from the first call on."""
    tiers.set_tier("specialised")
    os.environ["KINETREE_OPTIMIZATION"] = "1"


def measure(function, n, case, repeats):
    """Measured times of one case as a ``Result``."""
    if tiers.setting() == "general":
        error = case.answers()
    else:
        with tiers.settling():
            error = case.answers()
    calls = [_calls(case.ours), _calls(case.peer)]
    times = np.array(
        [
            [_seconds(case.ours, calls[0]) / n, _seconds(case.peer, calls[1]) / case.peer_samples]
            for _ in range(repeats)
        ]
    )
    ratios = times[:, 1] / times[:, 0]
    ours, peer = np.median(times, axis=0)
    middle = float(np.median(ratios))
    return Result(
        function, n, float(ours), float(peer), middle, float(np.ptp(ratios) / middle), error
    )


def _calls(function, least=0.02):
    """Number of calls for a measurement of at least ``least`` seconds."""
    function()
    return max(1, int(least / max(_seconds(function, 1), 1e-9)))


def _seconds(function, calls):
    """Processor time of one thread for some calls [s]."""
    start = time.thread_time()
    for _ in range(calls):
        function()
    return (time.thread_time() - start) / calls


def difference(ours, one, arguments, answer, samples=3):
    """Largest difference of two libraries' results relative to the largest number."""
    ours = ours if isinstance(ours, tuple) else (ours,)
    worst, n = 0.0, len(arguments)
    for k in range(min(n, samples)):
        peer = answer(k, one(*arguments[k]))
        peer = peer if isinstance(peer, list) else [peer]
        for a, b in zip(ours, peer, strict=True):
            a = a if n == 1 else a[k]
            size = max(float(np.max(np.abs(b))), np.finfo(float).tiny)
            worst = max(worst, float(np.max(np.abs(a - b))) / size)
    return worst


FUNCTIONS = (
    "RNEA", "ABA", "ABA, f_ext", "CRBA", "inverse of H", "dRNEA", "dABA", "Coriolis", "centroidal",
    "regressor", "pose", "Jacobian", "velocity", "integrate", "difference",
)  # fmt: skip
_ANGULAR_FIRST = [3, 4, 5, 0, 1, 2]


def compare(pin_model, batches=(1, 16, 256, 4096), functions=FUNCTIONS, repeats=7, seed=0):
    """Measured times against Pinocchio, a ``Result`` per function and batch size."""
    model = kt.interop.pinocchio.from_model(pin_model)
    cases = partial(peer_cases, model, pin_model, seed=seed)
    yield from _compare(model, cases, batches, functions, repeats)


def _compare(model, cases, batches, functions, repeats):
    """Measured times against a peer library, a ``Result`` per function and batch size."""
    for n in batches:
        for function, case in cases(n).items():
            if function in functions and not is_too_large(model, function, n):
                yield measure(function, n, case, repeats)


def _states(model, library, theirs, n, seed):
    """Random samples ``q, qd, x``, the peer's samples, and the random generator."""
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng) for _ in range(n)])
    qd, x = rng.standard_normal((2, n, model.nv))
    peers = (
        library.to_q(model, theirs, q),
        library.to_v(model, theirs, q, qd),
        library.to_a(model, theirs, q, qd, x),
        library.to_tau(model, theirs, q, x),
    )
    return (q, qd, x) if n > 1 else (q[0], qd[0], x[0]), peers, rng


def _case(ours, one, arguments, answer, batch=None):
    """Case to time: our call, the peer's call ``one``, its arguments, its result as ours."""
    n = len(arguments)
    samples = n if batch else min(n, PEER_SAMPLES)
    some = arguments[:samples]

    def loop():
        for finished in some:
            one(*finished)

    call = partial(one, *arguments[0]) if n == 1 else loop
    check = partial(_difference_of, ours, one, arguments, answer)
    return TimedCase(ours, batch or call, samples, check)


def _difference_of(ours, one, arguments, answer):
    """Difference of both libraries' results for the same arguments."""
    return difference(ours(), one, arguments, answer)


def _arguments_of_samples(*before, rows):
    """Arguments of each sample: shared ones, then a row of every array."""
    return [(*before, *(np.array(row) for row in sample)) for sample in zip(*rows, strict=True)]


def peer_cases(model, pin_model, n, seed=0):
    """Cases to time against Pinocchio for ``n`` samples, by function name."""
    both = _Both(model, pin_model, n, seed)
    return both.motions() | both.frames() | both.manifold() | both.matrices()


class _Both:
    """States for kinetree, ``q, qd, x``, and finished arguments for Pinocchio with the same."""

    def __init__(self, model, pin_model, n, seed):
        P = kt.interop.pinocchio
        self.model, self.theirs, self.n, self.P, self.pin = model, pin_model, n, P, pinocchio()
        ours, peers, self.rng = _states(model, P, pin_model, n, seed)
        self.q, self.qd, self.x = ours
        self.pq, self.pv, self.pa, self.pt = peers
        self.data, self.order = pin_model.createData(), _velocity_order(P, model, pin_model)
        self.last, self.joint = model.body_names[-1], pin_model.getJointId(model.joint_names[-1])
        given = partial(_arguments_of_samples, pin_model, self.data)
        self.at_q, self.at_v = given(rows=(self.pq,)), given(rows=(self.pq, self.pv))
        self.at_a = given(rows=(self.pq, self.pv, self.pa))
        self.at_tau = given(rows=(self.pq, self.pv, self.pt))

    def square(self, k, M):
        """Square matrix of Pinocchio in kinetree's variable order."""
        n = self.model.nv
        return np.reshape(M, (n, n))[np.ix_(self.order, self.order)]

    def symmetric(self, k, M):
        """Symmetric matrix of Pinocchio, given its upper half, in kinetree's order."""
        return self.square(k, np.triu(M) + np.triu(M, 1).T)

    def from_tau(self, k, tau):
        """Joint forces of state ``k`` in Pinocchio's order."""
        return self.P.from_tau(self.model, self.theirs, self.pq[k], tau)

    def from_a(self, k, a):
        """Accelerations of state ``k`` in Pinocchio's order."""
        return self.P.from_a(self.model, self.theirs, self.pq[k], self.pv[k], a)

    def motions(self):
        """Cases of inverse and forward dynamics."""
        pin, m, state = self.pin, self.model, (self.q, self.qd, self.x)
        q, v, a, tau = (np.asfortranarray(x.T) for x in (self.pq, self.pv, self.pa, self.pt))
        out, pool = np.zeros((self.theirs.nv, self.n), order="F"), pin.ModelPool(self.theirs, 1)
        rnea = partial(pin.rneaInParallel, 1, pool, q, v, a, out)
        aba = partial(pin.abaInParallel, 1, pool, q, v, tau, out)
        wrench = self.rng.standard_normal((self.n, 6))
        forces = _joint_forces(self.theirs, self.data, self.pq, self.joint, wrench)
        loaded = [(*given, f) for given, f in zip(self.at_tau, forces, strict=True)]
        f_ext = {self.last: wrench if self.n > 1 else wrench[0]}
        forward = kt.forward_dynamics
        return {
            "RNEA": _case(
                partial(kt.inverse_dynamics, m, *state),
                pin.rnea,
                self.at_a,
                self.from_tau,
                rnea if self.n > 1 else None,
            ),
            "ABA": _case(
                partial(forward, m, *state),
                pin.aba,
                self.at_tau,
                self.from_a,
                aba if self.n > 1 else None,
            ),
            "ABA, f_ext": _case(partial(forward, m, *state, f_ext), pin.aba, loaded, self.from_a),
        }

    def frames(self):
        """Cases of pose, velocity and Jacobian of the last body."""
        pin, m, q, last, joint = self.pin, self.model, self.q, self.last, self.joint

        def pose(pin_model, data, q):
            pin.forwardKinematics(pin_model, data, q)
            return data.oMi[joint]

        def velocity(pin_model, data, q, v):
            pin.forwardKinematics(pin_model, data, q, v)
            return pin.getVelocity(pin_model, data, joint)

        return {
            "pose": _case(
                partial(kt.pose, m, q, last), pose, self.at_q, lambda k, T: T.homogeneous
            ),
            "velocity": _case(
                partial(kt.velocity, m, q, self.qd, last, frame="body"),
                velocity,
                self.at_v,
                lambda k, v: v.vector[_ANGULAR_FIRST],
            ),
            "Jacobian": _case(
                partial(kt.jacobian, m, q, last, frame="body"),
                pin.computeJointJacobian,
                [(*given, joint) for given in self.at_q],
                lambda k, J: np.reshape(J, (6, -1))[_ANGULAR_FIRST][:, self.order],
            ),
        }

    def manifold(self):
        """Cases of integration and difference on the configuration manifold."""
        m, theirs, P, q = self.model, self.theirs, self.P, self.q
        ends = m.integrate(q, self.x)
        p_ends = np.atleast_2d(P.to_q(m, theirs, ends))
        px = P.to_v(m, theirs, np.atleast_2d(q), np.atleast_2d(self.x))
        return {
            "integrate": _case(
                partial(m.integrate, q, self.x),
                self.pin.integrate,
                _arguments_of_samples(theirs, rows=(self.pq, px)),
                lambda k, end: P.from_q(m, theirs, end),
            ),
            "difference": _case(
                partial(m.difference, q, ends),
                self.pin.difference,
                _arguments_of_samples(theirs, rows=(self.pq, p_ends)),
                lambda k, dv: P.from_v(m, theirs, self.pq[k], dv),
            ),
        }

    def matrices(self):
        """Cases of inertia and other matrices, derivatives and regressor."""
        pin, m, state = self.pin, self.model, (self.q, self.qd, self.x)
        d_rnea = kt.differentiate(kt.inverse_dynamics, wrt=("q", "qd"))
        d_aba = kt.differentiate(kt.forward_dynamics, wrt=("q", "qd", "tau"))
        numbers = np.arange(10.0 * (self.theirs.njoints - 1))
        parameters = self.P.from_parameters(m, self.theirs, numbers).astype(int)
        return {
            "CRBA": _case(partial(kt.mass_matrix, m, self.q), pin.crba, self.at_q, self.symmetric),
            "inverse of H": _case(
                partial(kt.inverse_mass_matrix, m, self.q),
                pin.computeMinverse,
                self.at_q,
                self.symmetric,
            ),
            "dRNEA": _case(
                partial(d_rnea, m, *state),
                pin.computeRNEADerivatives,
                self.at_a,
                lambda k, d: [self.square(k, M) for M in d[:2]],
            ),
            "dABA": _case(
                partial(d_aba, m, *state),
                pin.computeABADerivatives,
                self.at_tau,
                lambda k, d: [self.square(k, M) for M in d[:3]],
            ),
            "Coriolis": _case(
                partial(kt.coriolis_matrix, m, *state[:2]),
                pin.computeCoriolisMatrix,
                self.at_v,
                self.square,
            ),
            "centroidal": _case(
                partial(kt.centroidal_momentum_matrix, m, self.q),
                pin.ccrba,
                self.at_v,
                lambda k, _: np.reshape(self.data.Ag, (6, -1))[_ANGULAR_FIRST][:, self.order],
            ),
            "regressor": _case(
                partial(kt.regressor, m, *state),
                pin.computeJointTorqueRegressor,
                self.at_a,
                lambda k, Y: np.reshape(Y, (m.nv, -1))[self.order][:, parameters],
            ),
        }


def _joint_forces(pin_model, data, pq, joint, wrenches):
    """External forces on one body as Pinocchio takes them: per joint, in its frame."""
    pin, found = pinocchio(), []
    for q, wrench in zip(pq, wrenches, strict=True):
        pin.forwardKinematics(pin_model, data, q)
        found.append(pin.StdVec_Force([pin.Force.Zero() for _ in range(pin_model.njoints)]))
        found[-1][joint] = data.oMi[joint].actInv(pin.Force(wrench[_ANGULAR_FIRST]))
    return found


def _velocity_order(P, model, pin_model):
    """Indices of kinetree's velocity variables among Pinocchio's."""
    q = model.neutral()
    unit = [P.to_tau(model, pin_model, q, e) for e in np.eye(model.nv)]
    return [int(np.argmax(np.abs(u))) for u in unit]


# --- MuJoCo --------------------------------------------------------------------------------------

MUJOCO_FUNCTIONS = ("RNEA", "ABA", "CRBA")
_MUJOCO_OFF = (
    "ACTUATION", "CONSTRAINT", "CONTACT", "DAMPER", "EQUALITY", "FRICTIONLOSS", "ISLAND", "LIMIT",
    "SENSOR", "SPRING",
)  # fmt: skip


def compare_mujoco(
    model, batches=(1, 16, 256, 4096), functions=MUJOCO_FUNCTIONS, repeats=7, seed=0
):
    """Measured times against MuJoCo, a ``Result`` per function and batch size."""
    mj_model = kt.interop.mujoco.to_model(model)
    cases = partial(mujoco_cases, model, mj_model, seed=seed)
    for result in _compare(model, cases, batches, functions, repeats):
        yield replace(result, library="MuJoCo")


def mujoco_cases(model, mj_model, n, seed=0):
    """Cases to time against MuJoCo for ``n`` samples, by function name.

    ``mj_inverse`` and ``mj_forward`` are MuJoCo's inverse and forward dynamics; what they do beyond
    that (contact, constraints, sensors, springs and dampers) is switched off.
    """
    mujoco, M = mujoco_library(), kt.interop.mujoco
    for name in _MUJOCO_OFF:
        mj_model.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}", 0))
    (q, qd, x), (pq, pv, pa, pt), _ = _states(model, M, mj_model, n, seed)
    data, H = mujoco.MjData(mj_model), np.zeros((mj_model.nv, mj_model.nv))

    def inverse(q, v, a):
        data.qpos, data.qvel, data.qacc = q, v, a
        mujoco.mj_inverse(mj_model, data)
        return data.qfrc_inverse

    def forward(q, v, tau):
        data.qpos, data.qvel, data.qfrc_applied = q, v, tau
        mujoco.mj_forward(mj_model, data)
        return data.qacc_smooth

    def inertia(q):
        data.qpos = q
        mujoco.mj_kinematics(mj_model, data)
        mujoco.mj_comPos(mj_model, data)
        mujoco.mj_crb(mj_model, data)
        mujoco.mj_fullM(mj_model, data, H)
        return H

    def in_our_order(k, H):
        rows = M.from_tau(model, mj_model, pq[k], H)
        return M.from_tau(model, mj_model, pq[k], rows.T)

    return {
        "RNEA": _case(
            partial(kt.inverse_dynamics, model, q, qd, x),
            inverse,
            _arguments_of_samples(rows=(pq, pv, pa)),
            lambda k, tau: M.from_tau(model, mj_model, pq[k], tau),
        ),
        "ABA": _case(
            partial(kt.forward_dynamics, model, q, qd, x),
            forward,
            _arguments_of_samples(rows=(pq, pv, pt)),
            lambda k, a: M.from_a(model, mj_model, pq[k], pv[k], a),
        ),
        "CRBA": _case(
            partial(kt.mass_matrix, model, q),
            inertia,
            _arguments_of_samples(rows=(pq,)),
            in_our_order,
        ),
    }
