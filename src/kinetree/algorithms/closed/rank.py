"""Rank of the loop constraints: which of them are independent, decided once for all functions.

Singular values of ``K``, scaled by ``scaling``, are of three kinds:

    up to RANK_TOLERANCE        rounding errors: the constraint is redundant
    up to ALIGNMENT_TOLERANCE   ambiguous: see below
    above                       the constraint is independent

An ambiguous singular value means one of two things. Either the configuration is close to a singular
one, and the constraint is independent. Or it is redundant up to the digits of a file: the axes of a
planar linkage written by a CAD program with seven digits are parallel to 1e-7 rad, and taken
literally the linkage would lock. A single configuration cannot tell which. The decision is made
once for a model, from configurations all over the manifold of closed loops: constraints that are
ambiguous in all of them are *nearly redundant*. They are dropped, with a ``MisalignmentWarning``,
and the others determine the motion. The loops then stay closed up to the misalignment,
``RankPolicy.slack``. ``Loop.misalignment`` sets the limit; with 0 every constraint is kept.

Off the manifold, drift makes redundant constraints look independent, so there the rank is at most
the one on the manifold. CPU only, since ranks need branches.
"""

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.algorithms.closed.samples import CLOSED, SAMPLES, Manifold, sampled_manifold
from kinetree.algorithms.closed.scaling import Scaling, rows_of, units_of
from kinetree.algorithms.closed.subspace import RANK_TOLERANCE
from kinetree.errors import MisalignmentWarning
from kinetree.model.memo import remember, warn_once

if TYPE_CHECKING:
    from kinetree.model import Model

ALIGNMENT_TOLERANCE = 1e-3
"""Misalignment [rad, or fraction of the size of the loop] up to which a constraint that is
ambiguous in all configurations is dropped, unless ``Loop.misalignment`` sets another limit."""


def scaling(model: "Model") -> Scaling:
    """Scaling of a model's constraint rows and columns for ranks and errors; remembered."""

    def make():
        units = units_of(model.numeric)
        units.policy = RankPolicy(model.numeric)
        return units

    return remember(model.numeric, "scaling of loops", make)


def rank_policy(model: "Model") -> "RankPolicy":
    """Rank policy of a model, which decides about nearly redundant constraints."""
    return scaling(model).policy


def count_values(s, units: Scaling | None, tolerance=None):
    """Rank of matrices from singular values ``s`` (..., k), descending, by the model's policy.

    Args:
        s: singular values of the scaled matrix.
        units: scaling of the matrix; None for a dimensionless matrix without a model.
        tolerance: singular values below this times the largest count as zero, and no other rule
            applies; None for the policy.
    """
    largest = np.max(s, axis=-1, keepdims=True, initial=0.0 if units is None else 1.0)
    if tolerance is not None or units is None:
        return np.sum(s > (RANK_TOLERANCE if tolerance is None else tolerance) * largest, axis=-1)
    most, least = _bounds(s, largest, units)
    if np.array_equal(most, least):
        return most
    generic = units.generic_rank()
    return most if generic is None else np.maximum(least, np.minimum(most, generic))


def doubtful(s, units: Scaling):
    """Whether some singular values ``s`` (..., k) lie between the two rank tolerances."""
    largest = np.max(s, axis=-1, keepdims=True, initial=1.0)
    return np.not_equal(*_bounds(s, largest, units))


def _bounds(s, largest, units):
    """Largest and smallest rank that singular values allow, by the two tolerances."""
    most = np.sum(s > RANK_TOLERANCE * largest, axis=-1)
    return most, np.minimum(most, np.sum(s > units.alignment_tolerance, axis=-1))


def rank_at(model, K):
    """Number of independent rows of the constraint matrix ``K`` of a model, (..., nc, nv)."""
    units = scaling(model)
    return count_values(np.linalg.svd(units.apply(K), compute_uv=False), units)


def kept_rows(model, K):
    """Independent rows of ``K``, (nc, nv), if some are nearly redundant; otherwise None.

    None means all rows: rows that are redundant up to rounding errors are detected by every
    method.
    """
    units = scaling(model)
    A = units.apply(K)
    s = np.linalg.svd(A, compute_uv=False)
    if not doubtful(s, units):
        return None
    size, most = int(count_values(s, units)), int(count_values(s, units, RANK_TOLERANCE))
    return None if size == most else independent(A, size)


def kept_rows_at(model, q):
    """Independent constraint rows in the configuration ``q``, (nq,); None for all."""
    if not model.is_constrained:
        return None
    return kept_rows(model, loop_constraints(model, q, model.zero_velocity).K)


def counting_part(A, units: Scaling):
    """Projectors onto well-determined combinations of rows, (..., nc, nc); None if all are.

    None for a mechanism without misalignment, or without any sign of it.

    Args:
        A: scaled constraint matrices, (..., nc, nv).
        units: their scaling.
    """
    U, s, _ = np.linalg.svd(A)
    policy = units.policy
    if policy is None or not (policy.is_known or np.any(doubtful(s, units))):
        return None
    if not policy.misalignment:
        return None
    kept = np.arange(A.shape[-2]) < np.asarray(count_values(s, units))[..., None]
    return (U * kept[..., None, :]) @ np.swapaxes(U, -1, -2)


def independent(A, size):
    """Indices of ``size`` independent rows of ``A``, ascending, chosen greedily.

    The next row is the one farthest from the span of the rows already chosen; ties go to the first.
    """
    rest, chosen = np.array(A, dtype=float), []
    for _ in range(size):
        lengths = np.linalg.norm(rest, axis=1)
        lengths[chosen] = -1.0
        best = int(np.argmax(lengths >= lengths.max() * (1 - 1e-9)))
        direction = rest[best] / lengths[best]
        chosen.append(best)
        for _ in range(2):  # twice is enough, once is not
            rest = rest - np.outer(rest @ direction, direction)
    return np.array(sorted(chosen), dtype=int)


# --- rank policy of a model ----------------------------------------------------------------------


class RankPolicy:
    """Rank decisions for a model, made when first needed.

    Attributes:
        model: the mechanism; its parameters are numbers.
        tolerance: misalignment up to which constraints can be nearly redundant: the smallest of
            ``Loop.misalignment``, or ``ALIGNMENT_TOLERANCE``.
    """

    def __init__(self, model):
        given = [loop.misalignment for loop in model.loops if loop.misalignment is not None]
        self.model, self.tolerance = model, float(min(given, default=ALIGNMENT_TOLERANCE))

    @cached_property
    def _manifold(self) -> Manifold:
        """Sampled closed configurations with scaled constraint matrices, without the warning."""
        return sampled_manifold(self.model, self.tolerance)

    @property
    def manifold(self) -> Manifold:
        """Sampled closed configurations of the model; warns once of misaligned loops."""
        if self._manifold.misalignment > RANK_TOLERANCE:
            warn_once(self.model, self._warning, MisalignmentWarning)
        return self._manifold

    @property
    def is_known(self) -> bool:
        """Whether the manifold has been sampled, so that misalignment is known."""
        return "_manifold" in self.__dict__

    @property
    def misalignment(self) -> float:
        """Misalignment of nearly redundant constraints [rad, or fraction of a loop's size]."""
        return self.manifold.misalignment

    @property
    def slack(self) -> float:
        """Additional scaled error up to which loops count as closed: ten times the misalignment."""
        return 10 * self.misalignment

    @cached_property
    def rows(self):
        """Independent rows of a mechanism with misalignment, the same everywhere; None for all.

        For equations that are traced before the configuration is known.
        """
        if not self.is_known and self._all_count():
            return None
        matrices, rank = self.manifold.matrices, self.generic_rank()
        if not self.misalignment or matrices is None or rank is None:
            return None
        choices = {tuple(independent(K, rank)) for K in matrices}

        def worst(rows):
            s = np.linalg.svd(matrices[:, list(rows)], compute_uv=False)
            return np.min(s[:, -1], initial=np.inf)

        return np.array(max(choices, key=worst), dtype=int)

    def _all_count(self):
        """Whether some known closed posture shows that all constraints are independent.

        One is enough, and the manifold of a net of many loops takes long to sample.
        """
        model, units = self.model, scaling(self.model)
        for q in (model.neutral(), *(posture.q for posture in model.postures)):
            c = loop_constraints(model, np.asarray(q, dtype=float), model.zero_velocity)
            error = np.abs(np.asarray(c.error, dtype=float)) * units.rows
            K = units.apply(np.asarray(c.K, dtype=float))
            if np.max(error, initial=0.0) <= CLOSED and len(K) <= K.shape[1]:
                s = np.linalg.svd(K, compute_uv=False)
                if np.min(s, initial=np.inf) > max(self.tolerance, ALIGNMENT_TOLERANCE):
                    return True
        return False

    def generic_rank(self, part=None):
        """Rank of the constraints, or of a block, in regular configurations; None if unknown."""
        return self._rank(self.manifold, part)

    def _rank(self, found, part=None):
        """Largest rank of sampled constraint matrices, or of a block; None without samples."""
        K = found.matrices
        if K is None:
            return None
        if part is not None:
            K = K[:, part[0]][:, :, part[1]]
        s = np.linalg.svd(K, compute_uv=False)
        return int(np.max(np.sum(s > self.tolerance, axis=-1), initial=0))

    def misalignments(self):
        """Names of the loops with nearly redundant constraints, and their misalignment [rad], [m].

        Determined from the dropped rows in the sampled configurations.
        """
        found, units = self._manifold, scaling(self.model)
        rank = self._rank(found)
        if not found.misalignment or rank is None or found.matrices is None:
            return (), 0.0, 0.0
        rows, names, size = rows_of(self.model), [], {"rad": 0.0, "m": 0.0}
        for K, error in zip(found.matrices, found.errors, strict=True):
            U, s, _ = np.linalg.svd(K)
            s = np.concatenate([s, np.zeros(len(U) - len(s))])[rank:]
            size_of_row = np.abs(U[:, rank:]) @ s + np.abs(U[:, rank:] @ (U[:, rank:].T @ error))
            for row, x, factor in zip(rows, size_of_row, units.inverse_rows, strict=True):
                if x > RANK_TOLERANCE:
                    names.append(row.owner)
                    size[row.unit] = max(size[row.unit], x * factor)
        return tuple(dict.fromkeys(names)), size["rad"], size["m"]

    def explanation(self) -> str:
        """Names of nearly redundant constraints, and by how much they are; empty without any."""
        names, angle, length = self.misalignments()
        if not names:
            return ""
        sizes = [f"{x:.2g} {unit}" for x, unit in ((angle, "rad"), (length, "m")) if x > 0]
        count = len(rows_of(self.model)) - (self._rank(self._manifold) or 0)
        return (
            f"{count} {'constraint' if count == 1 else 'constraints'} of "
            f"{' and '.join(names)} {'is' if count == 1 else 'are'} nearly redundant, misaligned "
            f"by up to {' and '.join(sizes)}"
        )

    @cached_property
    def _warning(self):
        """Text of the warning about constraints that are dropped as redundant."""
        return (
            f"model {self.model.name!r}: {self.explanation()}. They are dropped as redundant, and "
            f"the loops stay closed up to this error. Write placements with all digits; or silence "
            f"this warning if the file is only imprecise; or, if the misalignment is real and "
            f"should act on the mechanism, kinetree.loops.with_misalignment(model, 0) keeps every "
            f"constraint"
        )


def closed_configurations(model, count=SAMPLES):
    """Configurations that close the loops, (count, nq): the model's postures and random ones.

    If none is found, configurations that do not close them.
    """
    return _closed_manifold(model, count).q


def regular_configurations(model, count=SAMPLES):
    """Closed configurations that are not singular, and whether the loops close exactly there.

    They do not where the mechanism is misaligned, or where no closed configuration was found.
    """
    found, units = _closed_manifold(model, count), scaling(model)
    if found.matrices is None:
        K = [loop_constraints(model, q, model.zero_velocity).K for q in found.q]
        matrices = units.apply(np.array(K, dtype=float))
    else:
        matrices = found.matrices
    ranks = count_values(np.linalg.svd(matrices, compute_uv=False), units)
    exact = found.matrices is not None and not found.misalignment
    return found.q[ranks == np.max(ranks)], exact


def _closed_manifold(model, count):
    """Closed configurations with their scaled constraint matrices; computed once."""
    policy = rank_policy(model)
    if count == SAMPLES:
        return policy.manifold
    return sampled_manifold(policy.model, policy.tolerance, count)
