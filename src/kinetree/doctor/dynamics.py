"""What only shows when the robot is computed: singular and ill-conditioned inertia matrices."""

import numpy as np

from kinetree.algorithms import crba
from kinetree.algorithms.crba import require_independent_joints
from kinetree.doctor.finding import found, named
from kinetree.errors import SingularError
from kinetree.model.validate import joints_without_inertia

__all__ = ["conditioning", "singular_joints"]

WORST_CONDITION = 1e9
"""Condition number of the inertia matrix, scaled to a unit diagonal, that is worth a warning."""
_CONFIGURATIONS, _MOST_WORK = 8, 20_000


def singular_joints(model, known=()):
    """Joints that move no inertia, alone or together, besides those already ``known``."""
    idle = [name for name in joints_without_inertia(model) if not _is_locked(model, name)]
    for name in idle:
        if name not in known:
            text = "the bodies it moves have no inertia along its axis"
            yield found("joint-without-inertia", named("joint", name), text)
    if not idle and _work(model) <= _MOST_WORK:
        try:
            require_independent_joints(model, "forward dynamics")
        except SingularError as error:
            text = str(error).partition(": ")[2].partition(". ")[0]
            yield found("dependent-joints", named("model", model.name), text)


def _is_locked(model, name):
    """Whether the variables of a joint are singular at its neutral position, such as Euler's."""
    joint = model.joint[model.joint_index(name)]
    return abs(float(joint.singularity(joint.neutral()))) < 1e-6


def conditioning(model, seed=0):
    """The worst inertia matrix at a few random configurations."""
    if model.nv == 0:
        return
    if _work(model) > _MOST_WORK:
        text = f"its inertia matrix of {model.nv} rows was not examined"
        yield found("too-large", named("model", model.name), text)
        return
    rng, worst = np.random.default_rng(seed), (0.0, np.zeros(model.nv))
    for _ in range(_CONFIGURATIONS if 8 * _work(model) <= _MOST_WORK else 1):
        H = np.asarray(crba.joint_space_inertia(model, model.random_configuration(rng)), float)
        d = np.sqrt(np.diagonal(H))
        if not np.all(d > 0) or not np.all(np.isfinite(H)):
            return  # a joint without inertia, which has a finding of its own; or no numbers
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
        yield found("ill-conditioned", named("model", model.name), text)


def _work(model):
    """Steps that an inertia matrix takes: one for each body and each of its ancestors.

    Its eigenvalues take as long as one step for every few thousand products of a cubic algorithm.
    """
    return sum(len(support) for support in model.support) + model.nv**3 // 2000
