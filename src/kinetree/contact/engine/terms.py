"""Terms of the equations of motion for steps with contact, in linear size — RBDA §4.4, §5.3, §6.2.

Motion subspaces ``S`` and the forces ``F = I_c S`` that accelerate the composite bodies beyond a
joint are in world axes, about the origin of the first body of each tree: so far from the world's
origin nothing is lost. With them the mass matrix is ``H_kl = F_k · S_l`` for variables ``l`` above
``k``, and the velocity of any point is a sum over the variables above its body. The texts are
recorded once for every robot; a model that general code does not serve has them traced.
"""

import numpy as np

from kinetree.algorithms import armature
from kinetree.algorithms.actuators import transmission_of
from kinetree.algorithms.closed.constraints import function_rows, loop_rows, stack_constraints
from kinetree.algorithms.closed.forces import loop_joint_motion
from kinetree.algorithms.fluid import fluid_force
from kinetree.algorithms.kinematics import base_transforms, body_velocities
from kinetree.algorithms.passive import compensation_force, joint_spring_force, stretch
from kinetree.algorithms.rnea import newton_euler
from kinetree.codegen.program import Argument, trace
from kinetree.contact.scheme.inertia import ballistic_motion, flying, turning_part
from kinetree.model.general.kernels import loop_kernel, record_text
from kinetree.model.general.tables import data_of
from kinetree.model.kernels import kernel_for
from kinetree.model.limits import has_dynamics
from kinetree.model.memo import remember
from kinetree.model.tendon_paths import tendon_motion
from kinetree.spatial import Plucker
from kinetree.spatial.vector3 import ZERO3


def inertia_terms(model, q):
    """Body poses ``[R | p]`` (bodies, 12), joint columns ``S`` and forces ``F``, (nv, 6) each.

    The point that ``S`` and ``F`` are about is the origin of the first body of the tree.
    """
    lam, at, X_T = model.parent, model.v_slice, model.tree_transform
    X_0, o = model.table(model.identity_transform), model.table(ZERO3)
    pose, IC, S = model.table(), model.table(), model.table()
    columns, forces = (model.zeros(("nv", 6), q) for _ in range(2))
    for i in model.outward():
        X_J, S_i, _, _ = model.jcalc(i, q, model.zero_velocity)
        X = X_J @ X_T[i]
        X_0[i] = X @ X_0[lam[i]] if lam[i] != 0 else Plucker(X.E, ZERO3)
        o[i] = o[lam[i]] if lam[i] != 0 else X.r
        pose[i] = np.column_stack([X_0[i].E.T, o[i] + X_0[i].r]).reshape(12)
        S[i], IC[i] = X_0[i].inv_apply(S_i), X_0[i].T @ model.inertia[i] @ X_0[i]
        columns[at[i], :] = S[i].to_array().T
    for i in model.inward():
        forces[at[i], :] = (IC[i] @ S[i]).to_array().T
        if lam[i] != 0:
            IC[lam[i]] = IC[lam[i]] + IC[i]
    return model.stack_rows(pose, 12), columns, forces


def poses(model, q):
    """Body poses ``[R | p]`` (bodies, 12), equal to those of ``inertia_terms``."""
    lam, X_T = model.parent, model.tree_transform
    X_0, o = model.table(model.identity_transform), model.table(ZERO3)
    pose = model.table()
    for i in model.outward():
        X_J, _, _, _ = model.jcalc(i, q, model.zero_velocity)
        X = X_J @ X_T[i]
        X_0[i] = X @ X_0[lam[i]] if lam[i] != 0 else Plucker(X.E, ZERO3)
        o[i] = o[lam[i]] if lam[i] != 0 else X.r
        pose[i] = np.column_stack([X_0[i].E.T, o[i] + X_0[i].r]).reshape(12)
    return model.stack_rows(pose, 12)


def straight_bias(model, q, qd, qdd, alone):
    """Joint forces ``H qdd + C`` without the gyroscopic part of freely turning bodies.

    Bodies that are alone turn without forces, whatever their velocity.
    """
    a, v = model.table(model.zero_velocity[:0]), model.table(model.zero_velocity[:0])
    for i in model.outward():
        at, body = model.v_slice[i], flying(model.inertia[i], (0,))
        v[i] = (1 - alone[at]) * qd[at]
        a[i] = qdd[at] + turning_part(model.joint[i], body, v[i])
    return newton_euler(model, q, _ByJoint(model, v), _ByJoint(model, a)).tau


class _ByJoint:
    """A table of arrays, one per joint, read like a vector of all variables."""

    def __init__(self, model, rows):
        self.model, self.table = model, rows

    def __getitem__(self, at):
        return self.table[at.row] if hasattr(at, "row") else self.model.join_rows(self.table)[at]


def energies(model, q, qd):
    """Kinetic and potential energy of every body, (body_count, 1) each [J]."""
    X, v = body_velocities(model, q, qd)
    X_0, T, V = base_transforms(model, X), model.table(), model.table()
    for i in model.outward():
        I = model.inertia[i]
        T[i] = np.array([armature.power(model, i, v[i].dot(I @ v[i]), qd, qd) / 2])
        V[i] = np.array([-(model.gravity @ (I.mass * X_0[i].r + X_0[i].E.T @ I.first_moment))])
    return model.stack_rows(T, 1), model.stack_rows(V, 1)


TEXTS = {
    "terms": (inertia_terms, ("q",), (("body_count", 12), ("nv", 6), ("nv", 6))),
    "poses": (poses, ("q",), (("body_count", 12),)),
    "bias": (straight_bias, ("q", "qd", "qdd", "alone"), (("nv",),)),
    "moved": (ballistic_motion, ("q", "qd", "x", "h", "alone"), (("nq",), ("nv",))),
    "energies": (energies, ("q", "qd"), (("body_count", 1), ("body_count", 1))),
    "springs": (joint_spring_force, ("q", "qd"), (("nv",),)),
}
"""Name of a kernel: its text, its arguments and the shapes of its results."""

SHAPES = {"q": ("nq",), "qd": ("nv",), "qdd": ("nv",), "x": ("nv",), "h": (1,), "alone": ("nv",)}


def term_kernel(model, name):
    """Compiled kernel of one of ``TEXTS`` for a tree, made once per model."""
    return remember(model, ("engine.term_kernel", name), lambda: (_term_kernel_of(model, name),))[0]


def _term_kernel_of(model, name):
    """New compiled kernel of one of ``TEXTS``, by general code where the model allows."""
    text, names, results = TEXTS[name]
    inputs = [Argument(n, _sizes(model, SHAPES[n])) for n in names]
    outputs = [Argument(f"out{k}", _sizes(model, shape)) for k, shape in enumerate(results)]
    data = data_of(model)

    def reference(arrays):
        return text(model, *arrays)

    if data is not None:
        shapes = {n: SHAPES[n] for n in names}
        source = record_text(text, ("contact.engine", name), shapes, configurations=[])
        doors = {"reference": reference, "validate": lambda arrays: None}
        return loop_kernel(source, f"contact {name}", inputs, outputs, data, **doors)
    return kernel_for(
        model,
        f"contact {name}",
        inputs,
        outputs,
        lambda: trace(lambda *arrays: text(model, *arrays), inputs, name),
        reference=reference,
        validate=lambda arrays: None,
        key=("contact.engine", name),
    )


def _kernel_of_text(model, name, text, inputs):
    """Kernel traced from a function ``text`` for one model, with its result's shapes."""
    zeros = [np.zeros(i.shape) for i in inputs]
    zeros[0] = model.uncoupled.neutral()
    found = text(*zeros)
    shapes = [np.shape(x) for x in (found if isinstance(found, tuple) else (found,))]
    return kernel_for(
        model,
        f"contact {name}",
        inputs,
        [Argument(f"out{k}", x) for k, x in enumerate(shapes)],
        lambda: trace(text, inputs, name),
        reference=lambda arrays: text(*arrays),
        validate=lambda arrays: None,
        key=("contact.engine", name),
    )


def constraint_kernel(model, loops, others):
    """Kernel of rows ``K`` (m, nv) and errors (m,) of loops and constraints, or None.

    Both are in the variables of all joints: those of ``model.uncoupled``.

    Args:
        model: the mechanism.
        loops: those that are not tables, each with numbers of its rows, -1 where they do not count.
        others: numbers of the rows of user-defined constraints, in the same way.
    """
    numbers = [*(s for _, own in loops for s in own), *others]
    which = np.flatnonzero(np.array(numbers, dtype=int) >= 0)
    if not (len(which) or model.couplings):
        return None
    full, (of_q, of_v) = model.uncoupled, _independent(model)

    def text(q):
        parts, errors = [np.zeros((0, full.nv))], [np.zeros(0)]
        if len(which):
            rest = q[of_q], model.zero_velocity
            rows = [loop_rows(model, loop, *rest, "loop") for loop, _ in loops]
            found = stack_constraints(model, [*rows, *function_rows(model, *rest)])
            K = np.zeros((len(which), full.nv), dtype=np.asarray(found.K).dtype)
            K[:, of_v] = found.K[which]
            parts, errors = [*parts, K], [*errors, found.error[which]]
        for c in model.couplings_in_order:
            x = [q[full.q_slice[i].start] for i in c.leaders]
            first, _ = c.derivatives(x)
            row = np.zeros((1, full.nv), dtype=np.asarray(q).dtype)
            row[0, full.v_slice[c.joint].start] = 1
            for i, d in zip(c.leaders, first, strict=True):
                row[0, full.v_slice[i].start] = -d
            parts.append(row)
            errors.append(np.array([q[full.q_slice[c.joint].start] - c.position(x)]))
        return np.concatenate(parts), np.concatenate(errors)

    return _kernel_of_text(model, "constraints", text, [Argument("q", (full.nq,))])


def springs_of_loops(model) -> list:
    """Loops of a model whose joints have stiffness or damping."""
    names = ("stiffness", "damping")
    return [x for x in model.uncoupled.loops if any(has_dynamics(x, name) for name in names)]


def springs_of_paths(model) -> list:
    """Tendons along a path in space that have stiffness or damping."""
    return [t for t in model.uncoupled.tendons if t.path and t.has("stiffness", "damping")]


def moving_spring_kernel(model):
    """Kernel of lengths (n,) and arms (n, nv) of springs whose arms change, or None.

    Tendons through space; then stretches of loop joints, one for each of their velocity variables.
    All in the variables of all joints of the tree.
    """
    full, tendons, loops = model.uncoupled, springs_of_paths(model), springs_of_loops(model)
    if not (tendons or loops):
        return None

    def text(q):
        lengths, arms = _of_tendons(full, tendons, q)
        for loop in loops:
            q_k, _, B = loop_joint_motion(full, q, full.zero_velocity, [loop])
            lengths.append(stretch(loop, q_k))
            arms.append(B.T)
        return np.concatenate(lengths), np.concatenate(arms)

    return _kernel_of_text(model, "moving springs", text, [Argument("q", (full.nq,))])


def moving_row_kernel(model, *, loops):
    """Kernel of lengths (n,) and arms (n, nv) of tendons along paths, or None without any.

    Args:
        model: the mechanism.
        loops: whether all velocity variables of loop joints follow; their positions are zero where
            velocities are not their rates.
    """
    full = model.uncoupled
    tendons, joints = [t for t in full.tendons if t.path], full.loops if loops else ()
    if not (tendons or joints):
        return None

    def text(q):
        places, arms = _of_tendons(full, tendons, q)
        for loop in joints:
            at = loop_joint_motion(full, q, full.zero_velocity, [loop])
            rates = loop.joint.rates_are_velocities
            places.append(at.q if rates else np.zeros(loop.joint.nv))
            arms.append(at.B.T)
        return np.concatenate(places), np.concatenate(arms)

    return _kernel_of_text(model, "moving rows", text, [Argument("q", (full.nq,))])


def _of_tendons(full, tendons, q):
    """Lengths and moment arms of tendons at ``q``, as two lists."""
    found = [tendon_motion(full, t, q) for t in tendons]
    return [np.array([L]) for L, _ in found], [J[None] for _, J in found]


def carrying_kernel(model):
    """Kernel of gravity-compensation forces from positions; None if the model has none."""
    if not model.gravity_compensation:
        return None
    full = model.uncoupled
    inputs = [Argument("q", (full.nq,))]
    return _kernel_of_text(
        model, "gravity compensation", lambda q: compensation_force(full, q), inputs
    )


def fluid_kernel(model):
    """Kernel of fluid forces from positions and velocities; None if the model has none."""
    if not model.fluid_forces:
        return None
    full = model.uncoupled
    inputs = [Argument("q", (full.nq,)), Argument("qd", (full.nv,))]
    return _kernel_of_text(model, "fluid", lambda q, qd: fluid_force(full, q, qd), inputs)


def arm_kernel(model, which):
    """Kernel of lengths (n,) and moment arms (n, nv) of numbered actuators, or None.

    Args:
        model: the mechanism.
        which: numbers of the actuators.
    """
    if not which:
        return None
    full = model.uncoupled

    def text(q):
        found = [transmission_of(full, full.actuators[k], q, full.zero_velocity) for k in which]
        return np.array([x for x, _ in found]), np.array([r for _, r in found])

    return _kernel_of_text(model, "arms of actuators", text, [Argument("q", (full.nq,))])


def _independent(model):
    """Indices or slices of the independent position and velocity variables."""
    return model.independent_variables if model.couplings else (slice(None), slice(None))


def _sizes(model, shape):
    """Shape with names such as ``"nv"`` replaced by the model's counts."""
    return tuple(getattr(model, n) if isinstance(n, str) else n for n in shape)
