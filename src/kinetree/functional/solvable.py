"""Refuse what is singular in every configuration, as the public functions do.

Before it is compiled, as far as that is known; what depends on parameters, when the code runs.
"""

from dataclasses import replace

import numpy as np

from kinetree.algorithms import crba, ltl
from kinetree.algorithms.crba import require_independent_joints
from kinetree.algorithms.propagation import has_full_inertia, joint_inertia_bound
from kinetree.functional.parameters import parameter, with_parameters
from kinetree.model import Model
from kinetree.quantities import FUNCTIONS
from kinetree.spatial.ops import check_pivot

__all__ = ["require_independent", "require_solvable"]


def require_solvable(name, model, parameters=()):
    """Raise SingularError when joints move no inertia together, whatever the inputs.

    Args:
        name: of a public function.
        model: the mechanism.
        parameters: names of parameters of the model that are inputs: they could have any value.
    """
    if not _inverts_inertia(name) or not model.nv:
        return
    if model.loops:  # what moves no inertia may be carried along
        return
    rng = np.random.default_rng(0)
    values = {p: _typical(parameter(model, p), model, rng) for p in parameters}
    require_independent_joints(with_parameters(model, values), name)


def require_independent(name, model, q, parameters):
    """Make the compiled code check that no joints move without inertia, for any parameters.

    A motion that needs no force leaves bodies with full inertia where they are. So it is enough to
    look at the other ones, hung up at their parents, with bodies of full inertia at their ends. The
    pivots of their inertia matrix are held against its rounding errors: these are proportional to
    the inertia beyond each joint about any axis, not just its own.

    Args:
        name: of a public function.
        model: the mechanism, with traced parameters.
        q: joint positions, traced.
        parameters: the names of these parameters.
    """
    if not _inverts_inertia(name) or not parameters:
        return
    part, q = _without_full_inertia(model, q)
    H, IC, S = crba.composite_bodies(part, q)
    lam, one = part.expanded_parent, np.eye(part.nv, dtype=int)
    L = ltl.ltdl(H, lam)
    bound = np.array(
        [
            joint_inertia_bound(IC[i], S[i], k)
            for i, at in enumerate(part.v_slice)
            for k in range(at.stop - at.start)
        ]
    )
    for k in range(part.nv):
        x = ltl.solve_l(L, lam, one[k], unit=True)  # D[k] is the least inertia with x[k] = 1
        scale = part.nv * (x * x) @ bound
        check_pivot(L[k, k], scale, lambda: f"{name} is singular for all parameters")


def _inverts_inertia(name):
    definition = getattr(FUNCTIONS.get(name), "definition", None)
    return definition is not None and definition.inverts_inertia


def _without_full_inertia(model, q):
    """The bodies whose inertia is unknown or not full, and what they carry; with its positions."""
    lam = model.parent
    weak = [False, *(not has_full_inertia(I) for I in model.inertia[1:])]
    kept = [i for i in range(1, len(weak)) if weak[i] or weak[lam[i]]]
    number = {old: new for new, old in enumerate(kept, start=1)}
    bodies = [
        replace(model.bodies[i - 1], parent=number[lam[i]] if weak[lam[i]] else 0) for i in kept
    ]
    part = Model(tuple(bodies), gravity=np.zeros(3, dtype=int))
    return part, np.concatenate([np.zeros(0, dtype=object), *(q[model.q_slice[i]] for i in kept)])


def _typical(p, model, rng):
    """A value that no coincidence distinguishes."""
    kind = p.name.partition(":")[0]
    if kind == "inertia":
        ball = np.array([1, 0, 0, 0, 1, 0, 1, 0, 0, 1.0])
        return np.broadcast_to(ball, p.shape)
    if kind == "placement":
        T = np.eye(4)
        T[:3, :3] = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        T[:3, :3] *= np.sign(np.linalg.det(T[:3, :3]))
        T[:3, 3] = rng.standard_normal(3)
        return T
    return p.value(model)
