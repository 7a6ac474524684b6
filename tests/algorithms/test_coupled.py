"""Every quantity of a model with couplings is that of the tree, reduced by hand to the leaders."""

import dataclasses

import numpy as np
import pytest
from support.mechanisms import Reduction, geared_robot, spherical_root, with_sensors

import kinetree as kt
from kinetree.algorithms import coupled
from kinetree.algorithms.task_space import task_rows
from kinetree.expr.interpret import run
from kinetree.model.define import DEFINITIONS, kernel_of

FRAME = {"name": "pad", "frame": "aligned"}
ROWS = ("rx", "y", "z")
TASK = {**FRAME, "rows": ROWS}
REACTION = {"part": "bearing", "frame": "aligned", "joint": None}
POINT = {"at": "center_of_mass"}
FREE = (1, 4, 7)  # root, left, finger


class ByHand:
    """The quantities of the catalogue, of a tree with a variable for every joint and ``G``."""

    def __init__(self, model, q, qd=None, qdd=None, **others):
        self.full, self.others = model.uncoupled, others
        self.r = r = Reduction(model, q, qd)
        self.q, self.G = r.q, r.G
        self.y = others
        if qd is not None:
            self.qd, self.g, self.Gd, self.yd = r.qd, r.g, r.Gd, qd
        if qdd is not None:
            self.qdd, self.ydd = r.G @ qdd + r.g, qdd
        self.model, self.q_y = model, q

    def tree(self, quantity, *arrays, **options):
        """A quantity of the tree."""
        return kernel_of(self.full, quantity, **options).reference([np.asarray(a) for a in arrays])

    @property
    def H(self):
        return self.G.T @ self.tree("mass_matrix", self.q) @ self.G

    @property
    def C(self):
        return self.G.T @ self.tree("inverse_dynamics", self.q, self.qd, self.g)

    @property
    def gravity(self):
        return self.G.T @ self.tree("gravity_force", self.q)

    @property
    def J(self):
        return self.tree("jacobian", self.q, **FRAME) @ self.G

    @property
    def Jd_yd(self):
        J, Jd = (self.tree(n, *s, **FRAME) for n, s in (("jacobian", (self.q,)),
                 ("jacobian_rate", (self.q, self.qd))))  # fmt: skip
        return Jd @ self.qd + J @ self.g

    @property
    def second(self):
        """Derivatives of ``G`` along each of its columns, (nv of the tree, nv, nv)."""
        e = np.eye(self.G.shape[1])
        return np.stack([Reduction(self.model, self.q_y, e_k).Gd for e_k in e], axis=-1)

    def coriolis(self):
        C = self.tree("coriolis_matrix", self.q, self.qd)
        return self.G.T @ (C @ self.G + self.tree("mass_matrix", self.q) @ self.Gd)

    def christoffel(self):
        G, full = self.G, self.tree("christoffel", self.q)
        bent = np.einsum("ai,ab,bjk->ijk", G, self.tree("mass_matrix", self.q), self.second)
        return np.einsum("abc,ai,bj,ck->ijk", full, G, G, G) + bent

    def hybrid(self):
        H, C, free, tau = self.H, self.C, self.free, self.others["tau"]
        rest = np.setdiff1d(np.arange(len(tau)), free)
        qdd = self.ydd.astype(C.dtype)
        b = tau[free] - C[free] - H[np.ix_(free, rest)] @ qdd[rest]
        qdd[free] = np.linalg.solve(H[np.ix_(free, free)], b)
        return np.stack([H @ qdd + C, qdd])

    @property
    def free(self):
        at = self.model.v_slice
        return np.concatenate([np.arange(at[i].start, at[i].stop) for i in FREE])

    def response(self):
        free, H = self.free, self.H
        rest = np.setdiff1d(np.arange(len(H)), free)
        A, B, D = H[np.ix_(free, free)], H[np.ix_(free, rest)], H[np.ix_(rest, rest)]
        R = np.zeros_like(H)
        R[np.ix_(free, free)] = np.linalg.inv(A)
        R[np.ix_(free, rest)] = -np.linalg.solve(A, B)
        R[np.ix_(rest, free)] = np.linalg.solve(A, B).T
        R[np.ix_(rest, rest)] = D - B.T @ np.linalg.solve(A, B)
        return R

    def rate(self, rate, matrix, **options):
        """``Ad G + A Gd``."""
        A = self.tree(matrix, self.q, **options)
        return self.tree(rate, self.q, self.qd, **options) @ self.G + A @ self.Gd

    # --- tasks ---

    @property
    def task(self):
        J = self.J[list(task_rows(ROWS))]
        return J, np.linalg.inv(self.H)

    def shortest(self, V):
        """The smallest joint vector that moves the rows of the frame by ``V``."""
        J, _ = self.task
        return J.T @ np.linalg.solve(J @ J.T, V)

    def task_bias(self, C):
        J, H_inv = self.task
        return self.Jd_yd[list(task_rows(ROWS))] - J @ H_inv @ C


def _over(name):
    """A quantity of bodies, which the state of all joints determines."""
    return lambda x, *state: x.tree(name, *state)


def within_a_turn(model, q):
    """The same configuration with angles within ±π and no negative real part of a quaternion."""
    q = q.copy()
    for joint, part in zip(model.joint[1:], model.q_slice[1:], strict=True):
        x = q[part]  # a view
        for k in joint.angles:
            x[k] -= 2 * np.pi * np.round(np.real(x[k]) / (2 * np.pi))
        for unit in joint.unit_parts:
            x[unit] *= np.sign(np.real(x[unit][0]))
    return q


def _task(value):
    def of(x):
        J, H_inv = x.task
        return value(x, J, H_inv, np.linalg.inv(J @ H_inv @ J.T))

    return of


EXPECTED = {
    "inverse_dynamics": lambda x: x.G.T @ x.tree("inverse_dynamics", x.q, x.qd, x.qdd),
    **dict.fromkeys(
        ("forward_dynamics", "_forward_dynamics_aba", "_forward_dynamics_crba"),
        lambda x: np.linalg.solve(x.H, x.others["tau"] - x.C),
    ),
    **dict.fromkeys(("_hybrid", "_hybrid_aba", "_hybrid_crba"), ByHand.hybrid),
    "_hybrid_response": ByHand.response,
    "mass_matrix": lambda x: x.H,
    "inverse_mass_matrix": lambda x: np.linalg.inv(x.H),
    "bias_force": lambda x: x.C,
    "gravity_force": lambda x: x.gravity,
    "passive_force": lambda x: x.G.T @ x.tree("passive_force", x.q, x.qd),
    "tendon_lengths": lambda x: x.tree("tendon_lengths", x.q),
    "tendon_jacobian": lambda x: x.tree("tendon_jacobian", x.q) @ x.G,
    "actuator_forces": lambda x: x.tree("actuator_forces", x.q, x.qd, x.others["controls"]),
    "driving_force": lambda x: x.G.T @ x.tree("driving_force", x.q, x.qd, x.others["controls"]),
    "coriolis_matrix": ByHand.coriolis,
    "christoffel": ByHand.christoffel,
    "pose": lambda x: x.tree("pose", x.q, name="pad"),
    "jacobian": lambda x: x.J,
    "jacobian_rate": lambda x: x.rate("jacobian_rate", "jacobian", **FRAME),
    "hessian": lambda x: (
        np.einsum("abc,bj,ck->ajk", x.tree("hessian", x.q, **FRAME), x.G, x.G)
        + np.einsum("ab,bjk->ajk", x.tree("jacobian", x.q, **FRAME), x.second)
    ),
    "velocity": lambda x: x.tree("velocity", x.q, x.qd, **FRAME),
    "acceleration": lambda x: x.tree("acceleration", x.q, x.qd, x.qdd, **FRAME),
    "bias_acceleration": lambda x: x.tree("acceleration", x.q, x.qd, x.g, **FRAME),
    "poses": lambda x: x.tree("poses", x.q),
    "jacobians": lambda x: x.tree("jacobians", x.q, frame="aligned") @ x.G,
    "kinetic_energy": lambda x: x.yd @ x.H @ x.yd / 2,
    "potential_energy": lambda x: x.tree("potential_energy", x.q),
    "momentum": lambda x: x.tree("momentum", x.q, x.qd),
    "center_of_mass": lambda x: x.tree("center_of_mass", x.q),
    "generalized_momentum": lambda x: x.H @ x.yd,
    "mass_matrix_rate": lambda x: x.coriolis() + x.coriolis().T,
    "kinetic_energy_rate": lambda x: x.tree("kinetic_energy_rate", x.q, x.qd, x.qdd),
    "potential_energy_rate": lambda x: x.yd @ x.gravity,
    "generalized_force": lambda x: x.G.T @ x.tree("generalized_force", x.q, x.others["f_ext"]),
    "center_of_mass_velocity": lambda x: x.tree("center_of_mass_velocity", x.q, x.qd),
    "center_of_mass_acceleration": lambda x: x.tree(
        "center_of_mass_acceleration", x.q, x.qd, x.qdd
    ),
    "center_of_mass_jacobian": lambda x: x.tree("center_of_mass_jacobian", x.q) @ x.G,
    "center_of_mass_jacobian_rate": lambda x: x.rate(
        "center_of_mass_jacobian_rate", "center_of_mass_jacobian"
    ),
    "centroidal_momentum": lambda x: x.tree("centroidal_momentum", x.q, x.qd),
    "centroidal_momentum_rate": lambda x: x.tree("centroidal_momentum_rate", x.q, x.qd, x.qdd),
    "centroidal_momentum_bias": lambda x: x.tree("centroidal_momentum_rate", x.q, x.qd, x.g),
    "centroidal_momentum_matrix": lambda x: x.tree("centroidal_momentum_matrix", x.q) @ x.G,
    "centroidal_momentum_matrix_rate": lambda x: x.rate(
        "centroidal_momentum_matrix_rate", "centroidal_momentum_matrix"
    ),
    "centroidal_inertia": lambda x: x.tree("centroidal_inertia", x.q),
    "zero_moment_point": lambda x: x.tree("zero_moment_point", x.q, x.qd, x.qdd, x.others["point"]),
    "operational_space_inertia": _task(lambda x, J, H_inv, Lambda: Lambda),
    "inverse_operational_space_inertia": _task(lambda x, J, H_inv, Lambda: J @ H_inv @ J.T),
    "operational_space_bias": _task(lambda x, J, H_inv, Lambda: -Lambda @ x.task_bias(x.C)),
    "operational_space_gravity": _task(lambda x, J, H_inv, Lambda: Lambda @ J @ H_inv @ x.gravity),
    "dynamically_consistent_inverse": _task(lambda x, J, H_inv, Lambda: H_inv @ J.T @ Lambda),
    "null_space_projector": _task(
        lambda x, J, H_inv, Lambda: np.eye(len(H_inv)) - H_inv @ J.T @ Lambda @ J
    ),
    "task_space_inverse_dynamics": _task(
        lambda x, J, H_inv, Lambda: J.T @ Lambda @ (x.others["acceleration"] - x.task_bias(x.C))
    ),
    "task_space_forward_dynamics": _task(
        lambda x, J, H_inv, Lambda: J @ H_inv @ J.T @ x.others["force"] + x.task_bias(x.C)
    ),
    "regressor": lambda x: x.G.T @ x.tree("regressor", x.q, x.qd, x.qdd),
    "momentum_regressor": lambda x: x.tree("momentum_regressor", x.q, x.qd),
    "kinetic_energy_regressor": lambda x: x.tree("kinetic_energy_regressor", x.q, x.qd),
    "potential_energy_regressor": lambda x: x.tree("potential_energy_regressor", x.q),
    "energy_regressor": lambda x: x.tree("energy_regressor", x.q, x.qd),
    "joint_velocity": lambda x: x.shortest(x.others["velocity"]),
    "joint_acceleration": lambda x: x.shortest(
        x.others["acceleration"] - x.Jd_yd[list(task_rows(ROWS))]
    ),
    # all leaders are independent: G of the loops is one
    "allowed_velocities": lambda x: np.eye(len(x.yd), len(x.yd) + 1),
    "allowed_velocity_rate": lambda x: np.zeros((len(x.yd), len(x.yd))),
    "_constraint_matrix": lambda x: np.zeros((0, x.G.shape[1])),
    # what joints transmit belongs to the motion of the bodies: gears push along the joints
    "joint_reactions": lambda x: x.tree("_under", x.q, x.qd, x.qdd, **REACTION),
    "_under": lambda x: x.tree("joint_reactions", x.q, x.qd, x.qdd, **REACTION, extra=("qdd",)),
    "sensor_readings": lambda x: x.tree("sensor_readings", x.q, x.qd, x.qdd, extra=("qd", "qdd")),
    "integral_motion": lambda x: x.tree("integral_motion", x.q, x.qd),
    "_bodies": lambda x: x.tree("_bodies", x.q, x.qd, **POINT),
    "_joint_by_joint": lambda x: within_a_turn(x.full, x.q),
    "_turned_over": lambda x: x.q_y,
    "_offsets": lambda x: x.tree("_offsets", x.q, x.others["poses"]),
}


TEXTS = (
    "integrate", "difference", "configuration_rate", "normalize", "expand", "expand_velocity",
    "expand_acceleration", "reduce", "reduce_velocity", "ratios", "_applied_force",
    "forces_of_joint_torques", "activation_after", "states_after",
)  # fmt: skip
"""What concerns one joint or body at a time, or is the coupling itself."""

NAMES = [name for name in DEFINITIONS if name not in TEXTS]


def _options(name):
    known = {**REACTION, **TASK, **POINT, "free": FREE}
    found = {n: known[n] for n in DEFINITIONS[name].options if n in known}
    extra = {"joint_reactions": ("qdd",), "sensor_readings": ("qd", "qdd")}
    return found | ({"extra": extra[name]} if name in extra else {})


def _arguments(model, name, rng):
    inputs = kernel_of(model, name, **_options(name)).inputs
    found = {a.name: rng.normal(size=a.shape) for a in inputs}
    for configuration in {"q", "near"} & set(found):
        found[configuration] = model.random_configuration(rng)
    if "poses" in found:
        found["poses"] = kt.poses(model, model.random_configuration(rng))
    return found


def _by_hand(model, arguments):
    """Of the same state; poses alone tell which."""
    if "q" not in arguments:
        q = kt.generalized_position(model, arguments["poses"]).q
        return ByHand(model, q, **arguments)
    return ByHand(model, **arguments)


@pytest.fixture(scope="module")
def robot():
    return with_sensors(_driven(geared_robot(np.random.default_rng(3), root=spherical_root())))


@pytest.fixture(scope="module")
def plain_robot():
    """Without quaternions, whose derivatives would need care here."""
    return with_sensors(_driven(geared_robot(np.random.default_rng(4))))


def _driven(model):
    """With a servo at every joint, those that follow included."""
    joints = enumerate(model.uncoupled.joint[1:], start=1)
    law = {"gain": (2.0, 0.3, -0.1), "bias": (0.2, -3.0, -0.4)}
    servos = [kt.Actuator(f"s{i}", i, (0.5 * i,) * j.nv, **law) for i, j in joints if j.nv]
    servos[2] = dataclasses.replace(servos[2], integral=0.7)
    return model.replace(actuators=servos)


@pytest.mark.covers("RBDA 9.6", by=coupled.for_all_joints)
@pytest.mark.parametrize("name", NAMES)
def test_every_quantity_is_that_of_the_tree_reduced_by_hand(robot, name, rng):
    arguments, options = _arguments(robot, name, rng), _options(name)
    expected = EXPECTED[name](_by_hand(robot, arguments))
    kernel = kernel_of(robot, name, **options)
    arrays = list(arguments.values())
    for found in (run(kernel.program, *arrays)[0], kernel.reference(arrays)):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11 * _size(expected))


def test_no_quantity_is_left_out():
    assert set(EXPECTED) == set(NAMES)


def _size(x):
    return max(np.max(np.abs(x), initial=0.0), 1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_are_those_of_the_reduction_by_hand(plain_robot, name, rng):
    """By complex steps of either: every text takes complex numbers."""
    model, options = plain_robot, _options(name)
    arguments, kernel = _arguments(model, name, rng), kernel_of(plain_robot, name, **options)
    for argument in {"q", "qd"} & set(arguments):
        direction = rng.normal(size=np.shape(arguments[argument]))
        moved = arguments | {argument: arguments[argument] + 1e-30j * direction}
        found = np.imag(kernel.reference([np.asarray(a) for a in moved.values()])) / 1e-30
        expected = np.imag(EXPECTED[name](ByHand(model, **moved))) / 1e-30
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11 * _size(expected))


@pytest.mark.parametrize(
    ("function", "wrt"),
    [(kt.inverse_dynamics, "q"), (kt.forward_dynamics, "qd"), (kt.mass_matrix, "q")],
)
def test_derivatives_of_public_functions_are_those_of_the_reduction(
    plain_robot, function, wrt, rng
):
    model, name = plain_robot, function.__name__
    arguments = _arguments(model, name, rng)
    found = kt.differentiate(function, wrt=wrt)(model, *arguments.values())
    for k, e_k in enumerate(np.eye(model.nv)):
        moved = arguments | {wrt: arguments[wrt] + 1e-30j * e_k}
        expected = np.imag(EXPECTED[name](ByHand(model, **moved))) / 1e-30
        size = 1e-11 * _size(expected)
        np.testing.assert_allclose(found[..., k], expected, rtol=1e-10, atol=size)
