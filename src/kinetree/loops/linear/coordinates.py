"""Independent coordinates of a closed mechanism: their choice — Spencer 2.3, A.3.2.

A mechanism with ``p`` degrees of freedom is described by ``p`` of its joint variables ``y``, whose
rates are ``yd = R qd``; ``velocity_basis`` has the others. The variables of loop joints, no part of
``q``, may be chosen as well. CPU only: ranks are decisions.
"""

from dataclasses import dataclass, replace

import numpy as np

from kinetree.algorithms.closed.independent import variable_names
from kinetree.algorithms.closed.links import ClosedChain
from kinetree.algorithms.closed.rank import scaling
from kinetree.errors import LoopError, ShapeError, SingularError, UnknownNameError
from kinetree.loops.kinematics.constraint import rank
from kinetree.model.arrays import as_numbers, check_finite
from kinetree.model.memo import remember


@dataclass(frozen=True)
class Coordinates:
    """Choice of coordinates that describe a mechanism."""

    names: tuple
    """One for each coordinate: of the joint, with ``[k]`` for one of several variables."""
    rows: np.ndarray
    """``R`` of the variables of tree joints and of directions in general, (p, nv); zero for those
    of loop joints."""
    loops: tuple = ()
    """Pairs of a row of ``R`` and the number of a variable of a loop joint."""
    flat: bool = True
    """Whether ``yd`` is the derivative of ``y``."""

    def at(self, sample) -> "Coordinates":
        """``Coordinates`` of one sample of a batch."""
        return self if self.rows.ndim == 2 else replace(self, rows=self.rows[sample])


def coordinates(model, K, independent=None) -> Coordinates:
    """``Coordinates`` from joint names, "tangent", a matrix ``R``, or None for a default choice.

    Args:
        model: the mechanism.
        K: its constraint matrix, (..., nc, nv).
        independent: names of joints, of the tree or closing loops, whose variables are the
            coordinates, or of single variables; ``"tangent"`` for orthonormal directions of the
            tangent space; a matrix ``R``, (p, nv) or one for each sample, for ``yd = R qd``; None
            for variables of the tree that are, in the first sample, far from dependent.
    """
    freedom = _freedom(model, K)
    if freedom == 0:
        raise LoopError(f"model {model.name!r} cannot move here: it has no degree of freedom")
    if isinstance(independent, str):
        if independent != "tangent":
            raise UnknownNameError(
                f"independent must be a list of names of joints, a matrix, 'tangent' or None, got "
                f"{independent!r}"
            )
        names = tuple(f"tangent[{k}]" for k in range(freedom))
        flat = all(joint.rates_are_velocities for joint in model.joint[1:])
        return Coordinates(names, _null_rows(K, freedom), flat=flat)
    if independent is None:
        return far_from_dependent(model, np.swapaxes(_null_rows(K, freedom), -1, -2))
    if not are_names(independent):
        return _from_matrix(model, independent, freedom, K.shape[:-2])
    return _from_names(model, independent, freedom)


def _freedom(model, K):
    """Number of degrees of freedom; SingularError if it differs between configurations."""
    ranks = np.unique(rank(K, scaling(model)))
    if len(ranks) > 1:
        raise SingularError(
            f"model {model.name!r} has {', '.join(str(model.nv - r) for r in ranks)} degrees of "
            f"freedom in these configurations; treat them apart: coordinates for one mobility are "
            f"none for another"
        )
    return model.nv - int(ranks[0])


def _null_rows(K, freedom):
    """Orthonormal rows that span the null space of ``K``."""
    return np.linalg.svd(K)[2][..., K.shape[-1] - freedom :, :]


def far_from_dependent(model, G) -> Coordinates:
    """``Coordinates`` of well-conditioned variables, by pivoted Gram-Schmidt of ``G``.

    ``G`` is any basis of the velocities that the constraints allow, (..., nv, p).
    """
    first = G[(0,) * (G.ndim - 2)]
    rest = np.linalg.qr(first / scaling(model).columns[:, None])[0].T
    chosen = []
    for _ in range(len(rest)):
        lengths = np.linalg.norm(rest, axis=0)
        lengths[chosen] = -1.0
        best = int(np.argmax(lengths >= lengths.max() * (1 - 1e-9)))
        chosen.append(best)
        direction = rest[:, best] / lengths[best]
        rest = rest - np.outer(direction, direction @ rest)
    columns = tuple(sorted(chosen))
    return remember(model, ("coordinates", columns), lambda: _from_columns(model, columns))


def are_names(independent):
    """Whether coordinates are given as names of joints or variables."""
    return not isinstance(independent, np.ndarray) and all(isinstance(n, str) for n in independent)


def _from_matrix(model, R, freedom, batch):
    """``Coordinates`` ``yd = R qd`` from their matrix, named ``y[0]``, ``y[1]``, ..."""
    R = check_finite(as_numbers(R, "independent"), "independent").astype(float)
    fits = R.shape[-2:] == (freedom, model.nv) and R.shape[:-2] in ((), batch)
    if not fits:
        raise ShapeError(
            f"independent as a matrix must have shape ({freedom}, {model.nv}), a row for each "
            f"degree of freedom that model {model.name!r} has here and a column for each velocity "
            f"variable, or one such matrix for each sample; got {R.shape}"
        )
    used = np.any(R != 0, axis=tuple(range(R.ndim - 1)))
    owners = [joint for joint in model.joint[1:] for _ in range(joint.nv)]
    flat = all(joint.rates_are_velocities for joint, u in zip(owners, used, strict=True) if u)
    return Coordinates(tuple(f"y[{k}]" for k in range(freedom)), R, flat=flat)


def coordinates_by_name(model, names) -> Coordinates:
    """``Coordinates`` from names, regardless of the number of degrees of freedom."""
    return _from_columns(model, _columns(model, names))


def _from_names(model, names, freedom):
    """``Coordinates`` from names of joints or variables; LoopError if too few or many."""
    columns = _columns(model, names)
    if len(columns) != freedom:
        given = [_labels(model)[at] for at in columns]
        raise LoopError(
            f"model {model.name!r} has {freedom} degrees of freedom here; as many independent "
            f"variables are needed, got {len(columns)}: {', '.join(given) or 'none'}"
        )
    return _from_columns(model, columns)


def _columns(model, names):
    """Indices of variables given by joint name or label, tree joints before loop joints."""
    chain, labels = ClosedChain(model), _labels(model)
    joints, columns = (*model.joint_names, *model.loop_names), []
    for name in names:
        if name in joints or name not in labels:
            i = joints.index(name) + 1 if name in joints else model.joint_index(name)
            columns += range(chain.nv)[chain.v_slice[i]]
        else:
            columns.append(labels.index(name))
    return columns


def _from_columns(model, columns):
    """``Coordinates`` from indices of variables, tree joints before loop joints."""
    chain, labels = ClosedChain(model), _labels(model)
    owners = [joint for joint in chain.joint[1:] for _ in range(joint.nv)]
    rows, loops = np.zeros((len(columns), model.nv)), []
    for row, at in enumerate(columns):
        if at < model.nv:
            rows[row, at] = 1
        elif owners[at].rates_are_velocities:
            loops.append((row, at - model.nv))
        else:
            raise LoopError(
                f"{labels[at]!r}, which closes a loop of model {model.name!r}, cannot be a "
                f"coordinate: its velocity variables are not the derivatives of its positions"
            )
    flat = all(owners[at].rates_are_velocities for at in columns)
    return Coordinates(tuple(labels[at] for at in columns), rows, tuple(loops), flat)


def _labels(model):
    """Labels of all velocity variables: of the tree, then of the loop joints."""
    loops = [(loop.name, loop.joint.nv) for loop in model.loops]
    virtual = [name if n == 1 else f"{name}[{k}]" for name, n in loops for k in range(n)]
    return [*variable_names(model), *virtual]
