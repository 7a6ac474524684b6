"""Findings that need computation: singular inertias, stiff dampers, loops that do not close."""

import os
import warnings

import numpy as np

from kinetree.algorithms import crba
from kinetree.algorithms.closed.rank import rank_policy, scaling
from kinetree.algorithms.closed.scaling import rows_of
from kinetree.algorithms.crba import require_independent_joints
from kinetree.contact import Scene
from kinetree.doctor.findings import finding_of, part_name
from kinetree.errors import AssemblyError, LoadError, MisalignmentWarning, SingularError
from kinetree.integration.registry import INTEGRATORS
from kinetree.integration.stiffness import fastest_motion, seconds
from kinetree.loaders.report import short
from kinetree.loops.kinematics.assembly import assemble
from kinetree.loops.kinematics.constraint import closing, loop_gaps
from kinetree.loops.kinematics.mobility import mobility
from kinetree.model.geometry import Mesh
from kinetree.model.triangles import FORMATS
from kinetree.model.validate import joints_without_inertia

WORST_CONDITION = 1e9
"""Condition number of the inertia matrix, scaled to a unit diagonal, that is worth a warning."""
_CONFIGURATIONS, _MOST_WORK = 8, 20_000


def singular_joints(model, known=()):
    """Findings about joints that move no inertia, besides those ``known``."""
    idle = [name for name in joints_without_inertia(model) if not _is_locked(model, name)]
    for name in idle:
        if name not in known:
            text = "the bodies it moves have no inertia along its axis"
            yield finding_of("joint-without-inertia", part_name("joint", name), text)
    if not idle and _work(model) <= _MOST_WORK:
        try:
            require_independent_joints(model, "forward dynamics")
        except SingularError as error:
            text = str(error).partition(": ")[2].partition(". ")[0]
            yield finding_of("dependent-joints", part_name("model", model.name), text)


def _is_locked(model, name):
    """Whether a joint's variables are singular at its neutral position."""
    joint = model.joint[model.joint_index(name)]
    return abs(float(joint.singularity(joint.neutral()))) < 1e-6


def conditioning(model, seed=0):
    """Finding about an ill-conditioned inertia matrix at random configurations."""
    if model.nv == 0:
        return
    if _work(model) > _MOST_WORK:
        text = f"its inertia matrix of {model.nv} rows was not examined"
        yield finding_of("too-large", part_name("model", model.name), text)
        return
    rng, worst = np.random.default_rng(seed), (0.0, np.zeros(model.nv))
    for _ in range(_CONFIGURATIONS if 8 * _work(model) <= _MOST_WORK else 1):
        H = np.asarray(crba.joint_space_inertia(model, model.random_configuration(rng)), float)
        d = np.sqrt(np.diagonal(H))
        if not np.all(d > 0) or not np.all(np.isfinite(H)):
            return  # a joint without inertia, which has its own finding; or no numbers
        values, vectors = np.linalg.eigh(H / np.outer(d, d))
        condition = values[-1] / max(values[0], np.finfo(float).tiny)
        worst = max(worst, (condition, np.abs(vectors[:, 0])), key=lambda pair: pair[0])
    condition, direction = worst
    if condition > WORST_CONDITION:
        at = model.v_slice
        share = [np.max(direction[at[i]], initial=0.0) for i in range(1, model.body_count + 1)]
        joint = model.joint_names[int(np.argmax(share))]
        text = f"the condition number of its inertia matrix reaches {condition:.1e}; accelerations "
        text += f"of joint {joint!r} keep {max(0, 15 - round(np.log10(condition)))} digits of 15"
        yield finding_of("ill-conditioned", part_name("model", model.name), text)


USUAL_STEP = 1e-3
"""Length of a step [s] for which springs and dampers are too stiff, or not."""


def stiffness(model):
    """Finding about a spring, damper or servo too stiff for usual explicit steps."""
    if _work(model) > _MOST_WORK:
        return
    postures = [p.q for p in model.postures if p.q.size] or None
    q = None if postures is None else np.array(postures, dtype=float)
    if model.is_constrained and q is None:
        try:
            q = assemble(model)
        except AssemblyError:
            return  # which has its own finding
    found_one = fastest_motion(model, INTEGRATORS["rk4"], q, servos=True, step=USUAL_STEP)
    if found_one is not None and found_one.step < USUAL_STEP:
        text = f"{found_one}: explicit steps, those of 'rk4' say, must be shorter than "
        text += f"{seconds(found_one.step)}"
        yield finding_of("stiff", part_name("model", model.name), text)


def _work(model):
    """Number of steps to compute an inertia matrix: body-ancestor pairs.

    Its eigenvalues take as long as one step for every few thousand products of a cubic algorithm.
    """
    return sum(len(support) for support in model.support) + model.nv**3 // 2000


# --- Shapes that overlap -------------------------------------------------------------------------

DEEP = 1e-4
"""Depth up to which shapes just touch [m]."""
_MOST_SHAPES = 400


def overlaps(model):
    """Findings about shapes that overlap in the home posture, the deepest first."""
    solid = [g for g in model.geometry if g.collision]
    if len(solid) > _MOST_SHAPES:
        text = f"whether its {len(solid)} shapes overlap was not computed"
        yield finding_of("too-large", part_name("model", model.name), text)
        return
    where, q = _home(model)
    if q is None or not solid:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing may be able to touch
        pairs = [p for p in Scene(model).pairs if _is_readable(p.first) and _is_readable(p.second)]
        scene = Scene(model, pairs)
    try:
        contacts = scene.contacts(q)
    except (LoadError, ImportError):
        return  # meshes that cannot be opened have their own findings
    except RuntimeError as error:  # of the library of convex shapes, about meshes
        text = f"whether its shapes overlap was not computed: {str(error).splitlines()[-1]}"
        yield finding_of("too-large", part_name("model", model.name), text)
        return
    deepest: dict = {}
    meshes = {
        name
        for name, p in zip(scene.pair_names, scene.pairs, strict=True)
        if isinstance(p.first.shape, Mesh) or isinstance(p.second.shape, Mesh)
    }
    for name, gap in zip(contacts.names, np.asarray(contacts.gap, dtype=float), strict=True):
        pair = name.rpartition(":")[0] or name
        deepest[pair] = min(deepest.get(pair, -DEEP), float(gap))
    for pair, gap in sorted(deepest.items(), key=lambda item: item[1]):
        if gap < -DEEP:
            one, other = pair.split("/", 1) if pair.count("/") == 1 else (pair, "")
            part = f"shapes {short(one)} and {short(other)}" if other else f"shapes {short(one)}"
            hulls = ", as convex hulls" if pair in meshes else ""
            severity = "note" if hulls and not model.postures else None
            text = f"they overlap by {-gap:.3g} m {where}{hulls}"
            yield finding_of("overlap", part, text, severity=severity)


def _home(model):
    """Home posture in words and as a configuration; None where there is none."""
    names = [p.name for p in model.postures if p.q.size]
    if names:
        name = "home" if "home" in names else names[0]
        return f"in posture {name!r}", np.asarray(model.posture(name).q, dtype=float)
    if model.is_constrained:
        try:
            return "where its loops close", np.asarray(assemble(model), dtype=float)
        except AssemblyError:
            return "", None
    q, (lower, upper) = np.asarray(model.neutral(), dtype=float), model.position_limits
    return "at q = 0, or the nearest that its limits allow", np.clip(q, lower, upper)


def _is_readable(shape):
    """Whether a shape has no mesh, or one in a known format that exists."""
    mesh = shape.shape
    return not isinstance(mesh, Mesh) or (
        os.path.isfile(mesh.path) and mesh.path.lower().endswith(FORMATS)
    )


# --- Loops ---------------------------------------------------------------------------------------

CLOSED = 1e-6
"""Largest position error of a closed loop [rad, or fraction of the size of the loop]."""


def loops(model, seed=0):
    """Findings about loops that do not close, or are redundant or locked."""
    if not model.is_constrained:
        return
    part, model = part_name("model", model.name), model.at(0.0)
    policy = rank_policy(model)
    with warnings.catch_warnings():  # it is reported below
        warnings.simplefilter("ignore", MisalignmentWarning)
        slack = policy.slack
    try:
        q = assemble(model, seed=seed)
    except AssemblyError as error:
        yield from _open(model, error.q)
        return
    report = mobility(model, q, seed=seed)
    errors = [_error(model, q) for q in (model.neutral(), *_postures(model))]
    if min(errors) > CLOSED + slack:
        gap = max(loop_gaps(model, model.neutral()).values())
        text = f"the neutral position leaves a gap of {gap:.3g} m or rad in its loops, and no "
        yield finding_of("loop-neutral", part, f"{text}posture closes them")
    left = report.generic_mobility  # a mechanism may be singular where it is closed at first
    count, rank = report.constraints, report.tree_dof - left
    if policy.explanation():
        text = f"{policy.explanation()}; they are left out, and {_freedoms(left)}"
        yield finding_of("loop-misaligned", part, text)
    if left == 0:
        text = f"{rank} independent constraints hold its {model.nv} degrees of freedom"
        yield finding_of("loop-locked", part, text)
    if rank < count and not policy.explanation():
        text = f"{count - rank} of the {count} constraints of its loops and couplings are "
        text += f"redundant; {_freedoms(left)}"
        if not report.is_variable:
            text += f". For example: {_some(report.redundant)}"
        yield finding_of("loop-redundant", part, text)


def _freedoms(left):
    """Remaining degrees of freedom in words."""
    return f"{left} {'degree of freedom remains' if left == 1 else 'degrees of freedom remain'}"


def _error(model, q):
    """Largest scaled closure error of a configuration."""
    return np.max(np.abs(closing(model, q)[0] * scaling(model).rows), initial=0.0)


def _postures(model):
    """Configurations of all postures of a model."""
    return [posture.q for posture in model.postures]


def _some(names, most=6):
    """First few of many names, as text."""
    more = f", and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _open(model, q):
    """Findings about loops that stay open in a configuration."""
    gaps, errors = loop_gaps(model, q), np.abs(closing(model, q)[0] * scaling(model).rows)
    owners = [row.owner for row in rows_of(model)]
    parts = [("loop", "loop joint", loop.name) for loop in model.loops]
    parts += [("constraint", "constraint", c.name) for c in model.constraints]
    for kind, called, name in parts:
        owner = f"{kind} {name!r}"
        gap = gaps.get(owner, 0.0)
        if np.max(errors[[o == owner for o in owners]], initial=0.0) > CLOSED:
            text = f"it stays open by {gap:.3g} m or rad; no position was found that closes it"
            yield finding_of("loop-open", part_name(called, name), text)
