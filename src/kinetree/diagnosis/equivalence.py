"""Mechanisms that move alike although their inertias differ — RBDA §9.7.

    lean = kt.equivalence.lumped(model)
    print(kt.equivalence.compare(model, lean))

Part of a body's inertia can belong to its parent without anything in the equation of motion
noticing. ``lumped`` moves as much as possible towards the base; generated code does the same by
itself wherever that saves operations.
Forces inside the mechanism, and inertias of single bodies, are not those of the real mechanism
afterwards.
"""

import warnings
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kinetree.algorithms import aba, crba, rnea
from kinetree.algorithms.closed import joint_space
from kinetree.algorithms.closed.forward_dynamics import constrained_acceleration, ways
from kinetree.algorithms.closed.rank import regular_configurations
from kinetree.arguments import guard_module
from kinetree.codegen.program import Argument, trace
from kinetree.errors import ModelError, ModelWarning, names_itself
from kinetree.expr.counting import count_operations
from kinetree.joints import AbstractJoint
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.linear.coordinates import coordinates
from kinetree.loops.linear.velocity_basis import velocity_basis
from kinetree.model import Model
from kinetree.model.arrays import as_model
from kinetree.model.views import lumped_inertias
from kinetree.spatial import Inertia, crf

__all__ = [
    "Comparison", "Savings", "augmented_bodies", "compare", "invariant_inertias", "is_invariant",
    "lumped", "savings",
]  # fmt: skip


class Comparison(NamedTuple):
    """Differences of the dynamics of two models."""

    inertia: float
    """Largest difference of the inertia matrices, relative to their size."""
    forces: float
    """Largest difference of joint forces for equal motions, relative to their size."""
    accelerations: float
    """Largest difference of accelerations for equal forces, relative to their size."""

    def __str__(self):
        worst = max(self)
        verdict = "equivalent" if worst < 1e-9 else "not equivalent"
        return (
            f"{verdict}: inertia matrices differ by {self.inertia:.1e}, inverse dynamics by "
            f"{self.forces:.1e}, forward dynamics by {self.accelerations:.1e}, relatively"
        )


@names_itself
def lumped(model: Model) -> Model:
    """Model with equal dynamics whose inertia is moved from bodies to their parents.

    Inertia moved to a fixed base is dropped. Masses may become negative: the model is meant for
    computing its motion, not for building it.
    """
    inertias = lumped_inertias(as_model(model))[1:]
    bodies = [replace(b, inertia=I) for b, I in zip(model.bodies, inertias, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # of inertias that no solid body has
        return model.replace(bodies=bodies, strict=False)


@names_itself
def compare(
    a: Model, b: Model, *, samples: int = 5, rng: int | np.random.Generator = 0
) -> Comparison:
    """Largest relative differences of two models' dynamics at random states.

    With loops, the states are those that these allow, and inertias and forces count along the
    motions that they allow: two linkages may be equivalent although their spanning trees are not.

    Args:
        a: a model.
        b: another, with the same joints and loops.
        samples: number of states.
        rng: a random generator, or a seed.
    """
    joints = [[body.joint for body in m.bodies] for m in (as_model(a), as_model(b))]
    loops = [[_geometry(loop) for loop in m.loops] for m in (a, b)]
    constraints = [m.constraints for m in (a, b)]
    for what, (one, other) in (("joints", joints), ("loops", loops), ("constraints", constraints)):
        if one != other:
            raise ModelError(
                f"models {a.name!r} and {b.name!r} do not have the same {what}, so their motions "
                f"cannot be compared variable by variable"
            )
    rng = np.random.default_rng(rng)
    forward = joint_space.forward_dynamics if a.is_constrained else aba.forward_dynamics
    worst = np.zeros(3)
    for q, G, qd, qdd in _states(a, samples, rng):
        tau = rng.standard_normal(a.nv)
        pairs = (
            [G.T @ crba.joint_space_inertia(m, q) @ G for m in (a, b)],
            [G.T @ rnea.inverse_dynamics(m, q, qd, qdd) for m in (a, b)],
            [forward(m, q, qd, tau) for m in (a, b)],
        )
        found = [_difference(*pair) for pair in pairs]
        worst = np.maximum(worst, found)
    return Comparison(*map(float, worst))


def _geometry(loop):
    """Joints that a loop consists of, with placements, for comparison."""
    placements = (loop.predecessor_placement, loop.successor_placement)
    where = [np.asarray(x).tolist() for X in placements for x in (X.E, X.r)]
    return loop.predecessor, loop.successor, loop.joint, where


def _states(model, samples, rng):
    """Random states of a model: positions, basis of allowed motions, velocities, accelerations."""
    if not model.is_constrained:
        for _ in range(samples):
            yield (
                model.random_configuration(rng),
                np.eye(model.nv),
                *rng.standard_normal((2, model.nv)),
            )
        return
    closed, _ = regular_configurations(model)  # at a singularity, the motion is not determined
    for q in closed[rng.integers(len(closed), size=samples)]:
        still = constraint(model, q, np.zeros(model.nv))
        G, inverse = velocity_basis(model, q, still.K, coordinates(model, still.K))
        yd, ydd = rng.standard_normal((2, G.shape[1]))
        drift = inverse[:, G.shape[1] :]  # of constraints that move with time
        qd = G @ yd - drift @ still.rate
        yield q, G, qd, G @ ydd + drift @ constraint(model, q, qd).k


def _difference(x, y):
    """Largest difference of two arrays relative to the largest entry."""
    x = np.asarray(x, dtype=float)
    return np.max(np.abs(x - y), initial=0.0) / np.max(np.abs(x), initial=np.finfo(float).tiny)


# --- inertias that a joint does not feel ---------------------------------------------------------


def invariant_inertias(joint: AbstractJoint) -> np.ndarray:
    """Basis (k, 10) of inertias that can move across a joint without changing the dynamics.

    They satisfy ``I S = 0``, are the same on both sides of the joint in every position, and exert
    no force on it at any velocity — RBDA (9.30). A revolute joint has three, a prismatic one
    six, a spherical one one, a free joint none — RBDA Table 9.7. Parameters as in
    ``Inertia.parameters``.
    """
    units = [Inertia.from_parameters(e) for e in np.eye(10)]
    A = np.stack([_residuals(joint, I) for I in units], axis=1)
    _, s, Vt = np.linalg.svd(A)
    rank = int(np.sum(s > 1e-10 * max(s[0], 1.0)))
    return Vt[rank:]


def is_invariant(joint: AbstractJoint, inertia: Inertia, tolerance: float = 1e-10) -> bool:
    """Whether an inertia can move across a joint without effect — RBDA (9.30)."""
    scale = float(np.max(np.abs(inertia.parameters()), initial=0.0))
    return bool(np.max(np.abs(_residuals(joint, inertia)), initial=0.0) <= tolerance * scale)


def _residuals(joint, I):
    """Residuals that vanish if an inertia can move across a joint, at sampled states."""
    rng = np.random.default_rng(0)
    parts = []
    for _ in range(4):
        q = joint.random(rng)
        X, S, *_ = joint.jcalc(q, np.zeros(joint.nv))
        M = I.to_matrix()
        parts += [(I @ S).to_array().ravel(), (X.to_matrix().T @ M @ X.to_matrix() - M).ravel()]
        for v in rng.standard_normal((3, 6)):
            motion = type(S).from_array(v)
            parts.append(S.T @ crf(motion, I @ motion))
    return np.concatenate([np.ravel(p) for p in parts])


# --- augmented bodies ----------------------------------------------------------------------------


@names_itself
def augmented_bodies(model: Model, *, floating: bool = False) -> list[Inertia]:
    """Augmented bodies: each with the masses it carries as particles at its joints.

    They are constant, and occur in equations of motion about the joints. On a fixed base a
    body gets a particle at each joint to a child, as heavy as all that the child carries; on a
    floating base also one at its own joint, as heavy as everything else in the mechanism.
    """
    NB, carried = (
        model.body_count,
        [float(I.mass) if I else 0.0 for I in (None, *model.inertia[1:])],
    )
    for i in range(NB, 0, -1):
        carried[model.parent[i]] += carried[i]
    augmented = []
    for i in range(1, NB + 1):
        masses = [carried[c] for c in model.children[i]]
        places = [model.tree_transform[c].r for c in model.children[i]]
        if floating:
            masses, places = [*masses, carried[0] - carried[i]], [*places, np.zeros(3)]
        particles = Inertia.from_particles(masses, places) if masses else Inertia.zero()
        augmented.append(model.bodies[i - 1].inertia + particles)
    return augmented


# --- what it saves -------------------------------------------------------------------------------


class Savings(NamedTuple):
    """Operations of one algorithm, traced and simplified, for a model and for its lumped form."""

    plain: int
    lumped: int

    @property
    def percent(self) -> float:
        """Operations saved, in percent."""
        return 100.0 * (1 - self.lumped / self.plain) if self.plain else 0.0


@names_itself
def savings(model: Model) -> dict:
    """Operations that lumping inertia saves in RNEA, CRBA and ABA, by algorithm.

    With loops, the first two are those of the spanning tree, and in place of ABA there is
    ``"closed loops"``: their forward dynamics by the null space or the range space.
    """
    texts: dict = {"RNEA": (rnea.inverse_dynamics, 3), "CRBA": (crba.joint_space_inertia, 1)}
    if as_model(model).is_constrained:
        way = next(ways(model))
        texts["closed loops"] = (lambda m, *s: constrained_acceleration(m, *s, way=way).qdd, 3)
    else:
        texts["ABA"] = (aba.forward_dynamics, 3)
    lean, found = lumped(model), {}
    for name, (text, count) in texts.items():
        sizes = [("q", (model.nq,)), ("qd", (model.nv,)), ("u", (model.nv,))][:count]
        inputs = [Argument(*size) for size in sizes]
        totals = []
        for m in (model, lean):
            program = trace(lambda *state, m=m, text=text: text(m, *state), inputs)
            totals.append(count_operations(program.graph, program.roots).total)
        found[name] = Savings(*totals)
    return found


guard_module(__name__)
