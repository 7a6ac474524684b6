"""``health``: one call, one page."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kinetree.algorithms.closed.rank import RANK_TOLERANCE, rank_at, scaling
from kinetree.algorithms.crba import joint_space_inertia
from kinetree.algorithms.jacobians import all_poses
from kinetree.algorithms.kinematics import base_velocities
from kinetree.algorithms.regressors import regressor
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ShapeError, SingularError
from kinetree.loops.kinematics.assembly import assemble
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.kinematics.singularities import singularity
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model
from kinetree.quantities.dynamics import forward_dynamics, inverse_dynamics

_ALL_DIGITS = 15.9


@dataclass(frozen=True)
class Health:
    """Accuracy of the dynamics of a model at one state."""

    model: str
    """Its name."""
    condition: float
    """Condition number of the inertia matrix; with loops, along the motions that they allow, in
    radians and lengths of the loops."""
    worst_chain: float
    """What a straight chain of as many equal links would have."""
    round_trip: float
    """Relative error of accelerations after inverse and forward dynamics; infinite where there are
    no accelerations, in a singular configuration."""
    digits_lost: tuple
    """Decimal digits that rounding takes from inverse and from forward dynamics."""
    influence: dict
    """Relative change of accelerations per relative change of a body's inertia, by name, the
    largest first."""
    causes: tuple
    """What costs digits, and what to do about it."""
    notes: tuple = ()
    """What costs at most one or two: frames farther than two radii of gyration from a mass centre,
    neighbours of unlike inertia."""

    @property
    def is_good(self) -> bool:
        """Whether no cause of larger rounding errors was found."""
        return not self.causes

    def __str__(self):
        inverse, forward = self.digits_lost
        most = list(self.influence.items())[:3]
        found = len(self.causes) + len(self.notes)
        lines = [
            f"{self.model}: {f'{found} found' if found else 'nothing found'}",
            f"  condition of the inertia matrix   {self.condition:.3g}"
            f" (equal links in a straight line: {self.worst_chain:.3g})",
            f"  inverse, then forward dynamics    {self.round_trip:.1e}",
            f"  digits lost to rounding           {inverse:.1f} inverse, {forward:.1f} forward,"
            f" of {_ALL_DIGITS}",
            "  1 % of a body's inertia changes accelerations by "
            + (", ".join(f"{x:.2g} % ({name})" for name, x in most) or "nothing"),
        ]
        return "\n".join([*lines, *(f"  - {cause}" for cause in (*self.causes, *self.notes))])


@on_host
def health(model: Model, q: ArrayLike | None = None, qd: ArrayLike | None = None) -> Health:
    """Accuracy of a model's dynamics at a state, and causes of rounding errors.

    Args:
        model: the mechanism.
        q: joint positions, (nq,); by default neutral, or a closed configuration near that.
        qd: joint velocities, (nv,); at rest by default.
    """
    if q is None:
        q = assemble(model) if as_model(model).is_constrained else model.neutral()
    q = np.asarray(as_configuration(as_model(model), q))
    qd = np.zeros(model.nv) if qd is None else as_joint_vector(model, qd, "qd")
    if q.ndim != 1 or qd.ndim != 1:
        raise ShapeError(
            f"health is about one state, q (nq,) and qd (nv,), got {q.shape} and {qd.shape}"
        )
    found = []
    try:
        round_trip, lost = round_trip_error(model, q, qd), digits_lost(model, q, qd)
        weights = influence(model, q, qd).tolist()
    except (SingularError, np.linalg.LinAlgError) as error:
        found.append(singular_motion(error))
        round_trip, lost = np.inf, (0.0, _ALL_DIGITS)
        weights = [np.inf] * model.body_count
    found += [*singular_variables(model, q), *singular_loops(model, q)]
    if not found:
        found += sensitive_chain(model, q, condition_number(model, q, scaled=True))
    found += [
        *far_frames(model),
        *far_from_origin(model, q),
        *fast_flight(model, q, qd),
        *inertia_ratios(model),
    ]
    if not found and lost[1] > MANY_DIGITS:
        found.append(unexplained_loss(lost[1]))
    condition = condition_number(model, q)
    notes = [*near_frames(model), *unlike_neighbours(model)]
    if not found and condition > ILL:
        notes.append(unlike_joints(model, q, condition))
    by_name = zip(model.body_names[1:], weights, strict=True)
    return Health(
        model.name,
        condition,
        worst_chain(max((len(s) for s in model.support), default=0)),
        round_trip,
        lost,
        dict(sorted(by_name, key=lambda item: -item[1])),
        tuple(found),
        tuple(notes),
    )


# --- What makes rounding errors large, and what to do — the four causes of RBDA §10.1 ------------

NEAR, FAR = 2.0, 20.0  # radii of gyration
FAST = 1e3
UNLIKE = 1e5
UNLIKE_MASS, UNLIKE_INERTIA = 1e3, 1e5  # bodies of one material, one ten times as large
ILL = 1e8
SENSITIVE = 1e4
SINGULAR = 1e-3
CLOSURE = 1e3  # condition number of the constraints of loops
MANY_DIGITS = 8.0


class Cause(NamedTuple):
    """Something that costs digits."""

    what: str
    """The finding, with its number."""
    advice: str
    """Advice."""

    def __str__(self):
        return f"{self.what}; {self.advice}"


def far_frames(model):
    """Warning about bodies whose frame is over ``FAR`` gyration radii from their mass centre.

    Rounding errors of an inertia grow with the square of that distance, beginning at about two
    radii — RBDA Fig. 10.2. At ten times as far they have cost two digits; links of robots whose
    numbers are fine come to a dozen radii.
    """
    return [
        _distant(
            name,
            ratio,
            "put the joint, and with it the frame, closer to the body, or check the units",
        )
        for ratio, name in _frame_distances(model, FAR, np.inf)
    ]


def near_frames(model):
    """Note about bodies whose frame is two to ``FAR`` gyration radii from their mass centre."""
    return [
        _distant(
            name,
            ratio,
            f"that costs up to {2 * np.log10(ratio / NEAR):.1f} digits of its "
            "inertia, and nothing need be done unless every digit counts",
        )
        for ratio, name in _frame_distances(model, NEAR, FAR)
    ]


def _distant(name, ratio, advice):
    """Text about a mass centre far from its frame."""
    what = f"the mass centre of body {name!r} is {ratio:.3g} radii of gyration from its frame"
    return Cause(what, advice)


def _frame_distances(model, least, most):
    """Largest distances between mass centres and frames, with body names; at most three."""
    named = zip(model.body_names[1:], model.inertia[1:], strict=True)
    found = [(frame_distance(I), name) for name, I in named]
    return sorted((f for f in found if least < f[0] <= most), reverse=True)[:3]


def frame_distance(I) -> float:
    """Distance of a mass centre from its frame's origin, in radii of gyration."""
    if not I.mass > 0:
        return 0.0
    distance = float(np.linalg.norm(np.asarray(I.first_moment, float))) / I.mass
    spread = float(np.trace(np.asarray(I.rotational_at_center, float))) / (2 * I.mass)
    if distance == 0 or spread <= 0:  # a particle has no size to compare with
        return 0.0
    return distance / float(np.sqrt(spread))


def far_from_origin(model, q):
    """Warning about a mechanism far from the base origin, where base coordinates lose digits."""
    if not model.body_count:
        return []
    places = np.asarray(all_poses(model, q))[:, :3, 3]
    distance = float(np.linalg.norm(places.mean(axis=0)))
    size = float(np.max(np.linalg.norm(places - places.mean(axis=0), axis=-1), initial=0.0))
    if distance < 1e3 * max(size, 1e-3):
        return []
    digits = 2 * np.log10(distance / max(size, 1e-3))
    return [
        Cause(
            f"the mechanism is {distance:.3g} m from the origin and {size:.3g} m large",
            f"quantities in base coordinates lose up to {min(digits, 16):.0f} digits: move the "
            f"origin near it, or use those in coordinates of a body (frame='body')",
        )
    ]


def fast_flight(model, q, qd):
    """Warning about bodies that all move much faster than relative to each other."""
    if not model.body_count or not np.any(qd):
        return []
    X_0, v = base_velocities(model, q, qd)
    v = np.array([at.linear + np.cross(at.angular, X.r) for X, at in zip(X_0, v, strict=True)][1:])
    mean = float(np.linalg.norm(v.mean(axis=0)))
    relative = float(np.max(np.linalg.norm(v - v.mean(axis=0), axis=-1), initial=0.0))
    if mean < FAST * max(relative, 1e-3):
        return []
    return [
        Cause(
            f"all bodies fly at about {mean:.3g} m/s, and at {relative:.3g} m/s against each other",
            "describe the motion in a frame that flies with them",
        )
    ]


def inertia_ratios(model):
    """Warning about heavy bodies carried by light ones, which cost digits."""
    mass = [float(I.mass) if I is not None else 0.0 for I in model.inertia]
    pairs = [(mass[i], mass[p], i, p) for i, p in enumerate(model.parent) if i and p]
    worst = [(m / M, i, p) for m, M, i, p in pairs if M > 0 and m / M > UNLIKE]
    names = model.body_names
    return [
        Cause(
            f"body {names[i]!r} is {ratio:.3g} times as heavy as {names[p]!r}, which carries it",
            "join bodies that are too light to matter to their neighbours (edit.lump_fixed)",
        )
        for ratio, i, p in sorted(worst, reverse=True)[:3]
    ]


def unlike_neighbours(model):
    """Warning about neighbouring bodies with very different masses or moments of inertia.

    A body ten times as large as another of the same material has a thousand times its mass, and
    1e5 times its moments of inertia — RBDA §10.1.
    """
    names, found = model.body_names, []
    for i, p in enumerate(model.parent):
        if not (i and p):
            continue
        pairs = [_mass_and_inertia(model.inertia[k]) for k in (i, p)]
        mass, moment = (_ratio(a, b) for a, b in zip(*pairs, strict=True))
        carried = pairs[0][0] / pairs[1][0] > UNLIKE if pairs[1][0] > 0 else False
        if not carried and (mass >= UNLIKE_MASS or moment >= UNLIKE_INERTIA):
            order = (i, p) if pairs[0] > pairs[1] else (p, i)
            found.append((mass, moment, *(names[k] for k in order)))
    return [
        Cause(
            f"body {large!r} has {mass:.3g} times the mass and {moment:.3g} times the moments of "
            f"inertia of its neighbour {small!r}",
            "errors of forces count in the units of the smaller one: give each joint its own "
            "tolerance, or join bodies that are too light to matter (edit.lump_fixed)",
        )
        for mass, moment, large, small in sorted(found, reverse=True)[:3]
    ]


def _mass_and_inertia(I):
    """Mass and trace of the rotational inertia about the mass centre."""
    m = float(I.mass)
    about = I.rotational_at_center if m else I.rotational  # a massless body has no centre
    return m, float(np.trace(np.asarray(about, float)))


def _ratio(a, b):
    """Ratio of the larger to the smaller number; 1 if one is zero."""
    return max(a / b, b / a) * (1 + 1e-9) if min(a, b) > 0 else 1.0


def unlike_joints(model, q, condition):
    """Warning about a condition number that scaling of the variables would reduce."""
    own = np.diagonal(joint_space_inertia(model, q))
    most, least = (_owner(model, int(k)) for k in (np.argmax(own), np.argmin(own)))
    names = model.joint_names
    return Cause(
        f"the inertia matrix has the condition number {condition:.3g}: joint {names[most - 1]!r} "
        f"moves {np.max(own):.3g}, joint {names[least - 1]!r} {np.min(own):.3g} (kg or kg·m²)",
        "that is a matter of units and costs no digits by itself; errors of forces count relative "
        "to each joint, not to the largest force",
    )


def singular_variables(model, q):
    """Warning about joints close to a singularity of their position variables."""
    found = []
    for name, joint, at in zip(model.joint_names, model.joint[1:], model.q_slice[1:], strict=True):
        distance = abs(float(joint.singularity(q[at])))
        if distance < SINGULAR:
            found.append(
                Cause(
                    f"the variables of joint {name!r} ({type(joint).__name__}) are close to "
                    f"singular: the determinant of its motion subspace is {distance:.2g} of what "
                    f"it can be",
                    "rates of the variables become as large as this is small; take other variables "
                    "for the same state (joint.reparameterize), or a Spherical joint",
                )
            )
    return found


def singular_loops(model, q):
    """Warning about loops whose constraints are nearly dependent — RBDA §10.1.

    There accelerations and loop forces are small differences of large numbers.
    """
    if not model.is_constrained:
        return []
    near = singularity(model, q)
    if near.kappa < CLOSURE:
        return []
    return [
        Cause(
            f"the closure of the loops is close to singular: the condition number of the "
            f"constraints is {near.kappa:.3g}, and they hardly forbid a motion of "
            f"{', '.join(map(repr, near.joints))}",
            "errors grow by as much in accelerations and in the forces of the loops; keep away "
            "from this configuration, or pass it with what is made for it (kt.loops.SVDForm, "
            "simulate(constraints=...))",
        )
    ]


def unexplained_loss(digits):
    """Warning about digits that forward dynamics lost for unknown reasons."""
    return Cause(
        f"rounding takes {digits:.1f} decimal digits from forward dynamics",
        "inertias of the joints differ widely: look at units, and at bodies that hardly matter",
    )


def singular_motion(error):
    """Warning that forward dynamics fails at this state."""
    return Cause(str(error), "no accelerations can be computed at this state")


def sensitive_chain(model, q, condition):
    """Warning about accelerations that depend on small differences of forces.

    Args:
        model: the mechanism.
        q: joint positions, (nq,).
        condition: scaled condition number of the inertia matrix.
    """
    if condition < SENSITIVE:
        return []
    N = allowed_velocities(model, q)
    H = N.T @ joint_space_inertia(model, q) @ N
    if not np.all(np.diagonal(H) > 0):  # then nothing moves as it should, see ``singular_motion``
        return []
    d = np.sqrt(np.diagonal(H))
    _, shapes = np.linalg.eigh(H / np.outer(d, d))
    joint = model.joint_names[_owner(model, int(np.argmax(np.abs(N @ (shapes[:, 0] / d))))) - 1]
    depth = max(len(s) for s in model.support)
    return [
        Cause(
            f"{depth} bodies in line give the inertia matrix the condition number {condition:.3g}, "
            f"felt most at joint {joint!r}",
            "errors of forces may grow by as much in accelerations; a spanning tree of less depth, "
            "or armature that the real joints have, lowers it",
        )
    ]


def _owner(model, k):
    """Number of the joint that a velocity variable belongs to."""
    return next(i for i, at in enumerate(model.v_slice) if at.start <= k < at.stop)


# --- How errors of forces become errors of accelerations — RBDA §10.2 ----------------------------
# One-off evaluations run on the texts of the algorithms; only inverse and forward dynamics, whose
# own errors are wanted, run as everybody calls them.


def allowed_velocities(model, q) -> np.ndarray:
    """Basis (nv, p) of the velocities that loops allow, orthonormal in scaled units.

    Without loops, the unit matrix.
    """
    if not model.is_constrained:
        return np.eye(model.nv)
    K, units = constraint(model, q, np.zeros(model.nv)).K, scaling(model)
    _, _, Vt = np.linalg.svd(units.apply(K))
    return units.columns[:, None] * Vt[int(rank_at(model, K)) :].T


def trial_acceleration(model, q, qd) -> np.ndarray:
    """Test acceleration (nv,): 1 along every direction that loops allow."""
    if not model.is_constrained:
        return np.ones(model.nv)
    N, c, units = allowed_velocities(model, q), constraint(model, q, qd), scaling(model)
    A = units.apply(c.K)
    least = np.linalg.pinv(A, rcond=RANK_TOLERANCE) @ (units.rows * c.k)
    return units.columns * least + np.sum(N, axis=1)


def condition_number(model, q, *, scaled=False) -> float:
    """Condition number of the inertia matrix, which amplifies errors from ``tau`` to ``qdd``.

    Infinite where a variable has no inertia at all.

    Args:
        model: the mechanism.
        q: joint positions, (nq,).
        scaled: measure every variable such that its own inertia is one; the number then does not
            depend on units, and armature and light links at the tip count for what they are.
    """
    N = allowed_velocities(model, q)
    if not N.shape[1]:
        return 1.0
    H = N.T @ joint_space_inertia(model, q) @ N
    if not np.all(np.diagonal(H) > 0):
        return np.inf
    d = np.sqrt(np.diagonal(H)) if scaled else np.ones(len(H))
    return float(np.linalg.cond(H / np.outer(d, d)))


def worst_chain(links: int) -> float:
    """Typical condition number of a straight chain of equal links, ``4 n⁴``."""
    return 4.0 * links**4


def round_trip_error(model, q, qd) -> float:
    """Largest relative error of accelerations after inverse and forward dynamics."""
    if not model.nv:
        return 0.0
    qdd = trial_acceleration(model, q, qd)
    tau = inverse_dynamics(model, q, qd, qdd)
    error = np.max(np.abs(forward_dynamics(model, q, qd, tau) - qdd))
    return float(error / max(np.max(np.abs(qdd)), np.finfo(float).tiny))


def digits_lost(model, q, qd):
    """Decimal digits that inverse and forward dynamics lose to rounding at a state.

    Measured: the same code is run in single precision, whose errors are large enough to be seen in
    double precision. Inputs are rounded beforehand, so that both start from the same numbers.
    """
    single = [np.asarray(x, np.float32) for x in (q, qd, trial_acceleration(model, q, qd))]
    single[0] = _on_the_manifold(model, single[0])
    double = [x.astype(np.float64) for x in single]
    found = []
    for function in (inverse_dynamics, forward_dynamics):
        rough, exact = (function(model, x[0], x[1], x[2]) for x in (single, double))
        scale = np.max(np.abs(exact), initial=0.0)
        if not scale > 0:
            found.append(0.0)
            continue
        error = np.max(np.abs(rough - exact)) / (scale * np.finfo(np.float32).eps)
        found.append(float(np.log10(max(error, 1.0))))
    return tuple(found)


def _on_the_manifold(model, q):
    """Configuration with quaternions normalised again after rounding."""
    return model.integrate(q.astype(np.float64), np.zeros(model.nv)).astype(np.float32)


def influence(model, q, qd):
    """Relative sensitivity of the accelerations to each body's inertia, (bodies,).

    ``tau = Y π`` is linear in the inertias ``π``, so ``H δqdd = -Y δπ`` at equal forces, along the
    motions that loops allow.
    """
    qdd, N = trial_acceleration(model, q, qd), allowed_velocities(model, q)
    Y = regressor(model.spanning_tree, q, qd, qdd).reshape(model.nv, model.body_count, 10)
    parameters = np.reshape([I.parameters() for I in model.inertia[1:]], (model.body_count, 10))
    forces = np.einsum("ikp,kp->ik", Y, parameters)
    H = joint_space_inertia(model, q)
    changes = N @ np.linalg.solve(N.T @ H @ N, N.T @ forces)
    size = max(np.max(np.abs(qdd), initial=0.0), np.finfo(float).tiny)
    return np.max(np.abs(changes), axis=0, initial=0.0) / size
