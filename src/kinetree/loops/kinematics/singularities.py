"""Singular configurations: distance to the next one, and the motions it frees.

At a singularity constraints become dependent: the smallest of their singular values vanishes, and a
motion that they forbade is free for an instant — Spencer §3.1, RBDA §8.10. The same measure
shows whether some joints determine all others.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kinetree import errors
from kinetree.algorithms.closed.independent import variable_names, velocity_columns
from kinetree.algorithms.closed.rank import RANK_TOLERANCE, scaling
from kinetree.algorithms.closed.scaling import rows_of
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.codegen.progress import working
from kinetree.errors import LoopError, SingularityWarning
from kinetree.loops.kinematics.all_assemblies import assemblies_nearby, ranks
from kinetree.loops.kinematics.constraint import velocity_matrix
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_model

_SHARE = 0.1  # of the largest entry, from which variables and constraints are named
_WARN = 1e4


@dataclass(frozen=True)
class Singularity:
    """How far constraints are from being dependent, dimensionless (see ``rank``).

    Attributes:
        sigma: smallest singular value of the independent constraints, lengths measured in
            lengths of the mechanism; 0 at a singularity.
        kappa: largest over smallest; infinite at a singularity.
        direction: velocity that the weakest constraint barely prevents, largest entry 1, (nv,).
        joints: variables that take part in it.
        constraints: constraints of which it is a combination.
    """

    sigma: float
    kappa: float
    direction: np.ndarray
    joints: tuple[str, ...]
    constraints: tuple[str, ...]

    @property
    def is_singular(self) -> bool:
        """Whether the smallest singular value is zero up to rounding."""
        return self.kappa > 1 / RANK_TOLERANCE

    def __str__(self):
        return (
            f"condition {self.kappa:.3g}, smallest singular value {self.sigma:.3g}: weakest "
            f"against motion of {', '.join(self.joints)}"
        )


@on_host
def singularity(
    model: Model,
    q: ArrayLike,
    *,
    hold: Sequence[str] = (),
    rank: int | None = None,
    warn: bool = False,
) -> Singularity:
    """``Singularity`` measure of the loops at the configuration ``q``.

    Args:
        model: the mechanism.
        q: closed configuration [m, rad], (nq,).
        hold: names of joints that are held, such as those that are driven: near a singularity of
            the remaining joints, the drives lose control of the mechanism. The joints ``hold``
            determine all others if and only if this is not singular.
        rank: number of constraints that are independent away from singularities; by default the
            largest rank of this configuration and of others beside it.
        warn: give a ``SingularityWarning`` where the condition is worse than 1e4.

    Raises:
        LoopError: there are fewer constraints than variables to be determined.
    """
    found = singularities(model, as_configuration(as_model(model), q)[None], hold=hold, rank=rank)
    if warn and found[0].kappa > _WARN:
        errors.warn(f"model {model.name!r} is near singular: {found[0]}", SingularityWarning)
    return found[0]


@on_host
@working("looking for singularities")
def singularities(
    model: Model, q: ArrayLike, *, hold: Sequence[str] = (), rank: int | None = None
) -> list[Singularity]:
    """``Singularity`` measures for many configurations (count, nq), such as a motion's.

    The number of independent constraints, if it is not given, is the largest rank of ``q`` and of
    configurations beside its first.
    """
    q, scale = as_configuration(as_model(model), q), scaling(model)
    names = [hold] if isinstance(hold, str) else list(hold)
    free = np.setdiff1d(np.arange(model.nv), velocity_columns(model, names, "hold"))
    K = scale.apply(velocity_matrix(model, q))[:, :, free]
    if rank is None:
        near = np.concatenate([q, assemblies_nearby(model, q[0])])
        rank = int(np.max(ranks(model, near, free), initial=0))
    if names and rank < len(free):
        raise LoopError(
            f"holding {', '.join(map(repr, names))} leaves model {model.name!r} "
            f"{len(free) - rank} more degrees of freedom; they do not determine the other joints"
        )
    return [_of_matrix(model, K_n, free, rank) for K_n in K]


@on_host
def determines(model: Model, q: ArrayLike, joints: Sequence[str]) -> bool:
    """Whether the positions of some joints determine those of all others near ``q``.

    With nonholonomic constraints, it is whether their velocities determine those of all others.
    Where they do, other assemblies may have the same positions of these joints: ``assemblies``
    finds them, and ``follow`` stays on one — RBDA §8.10.
    """
    try:
        return not singularity(model, q, hold=joints).is_singular
    except LoopError:
        return False


def stabilization_time(model: Model, dt: float | None = None) -> float:
    """Suitable time constant [s] of constraint stabilisation for the model (RBDA §8.3).

    A fifth of the time in which a body falls by the length of the mechanism: 0.1 s for a large
    industrial robot. Its purpose is stability, not accuracy; a factor of two hardly matters. Much
    smaller values make the equations stiff without any gain. With a step ``dt`` [s], not less than
    ten steps.
    """
    gravity = float(np.linalg.norm(model.gravity.astype(float))) or 9.81
    suited = 0.2 * float(np.sqrt(2 * scaling(model).length / gravity))
    return suited if dt is None else max(suited, 10 * dt)


def _of_matrix(model, K, free, rank):
    """``Singularity`` of a scaled constraint matrix: rank, lost directions and forces."""
    names, columns = variable_names(model), scaling(model).columns
    if rank == 0:
        return Singularity(np.inf, 1.0, np.zeros(model.nv), (), ())
    U, s, Vt = np.linalg.svd(K)
    direction = np.zeros(model.nv)
    direction[free] = Vt[rank - 1]
    size = np.abs(direction) / np.max(np.abs(direction))
    combined = np.abs(U[:, rank - 1]) / np.max(np.abs(U[:, rank - 1]))
    motion = direction * columns
    sigma = float(s[rank - 1])
    return Singularity(
        sigma=sigma,
        kappa=float(s[0]) / sigma if sigma > 0 else np.inf,
        direction=motion / motion[np.argmax(np.abs(motion))],
        joints=tuple(name for name, share in zip(names, size, strict=True) if share > _SHARE),
        constraints=tuple(
            str(row) for row, share in zip(rows_of(model), combined, strict=True) if share > _SHARE
        ),
    )
