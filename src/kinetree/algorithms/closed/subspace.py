"""Subspaces of motion, force and coordinate spaces — RBDA §3.3, Table 3.1.

A constraint is a subspace; the matrix that spans it is one of many that would do. Motions and
forces live in different spaces, so the orthogonal complement of a motion subspace is a force
subspace. (Treating six-dimensional vectors as Euclidean gives a complement that changes with the
coordinate system.) CPU only: ranks are decided with NumPy's singular values.
"""

import numpy as np

from kinetree.errors import ShapeError, SingularError, SpatialTypeError
from kinetree.spatial.vector import Force, Motion

RANK_TOLERANCE = 1e-10
"""Singular values below this times the largest count as zero."""

_DUAL = {"motion": "force", "force": "motion", "coordinate": "coordinate"}
_TYPE = {"motion": Motion, "force": Force}


class Subspace:
    """A subspace of M^n, F^n or E^n, whatever matrix it came from.

    Make one with ``Subspace.span(S)`` or ``Subspace.null(K, kind)``. ``S1 == S2`` compares the
    subspaces and not the bases; ``S1 <= S2`` is inclusion, and ``v in S`` membership.

    Attributes:
        basis: orthonormal columns, (n, dim).
        kind: ``"motion"``, ``"force"``, or ``"coordinate"`` for a Euclidean, self-dual space.
    """

    __slots__ = ("basis", "kind")
    __hash__ = None  # type: ignore[assignment]  # equality is up to rounding

    def __init__(self, basis, kind):
        if kind not in _DUAL:
            raise SpatialTypeError(f"kind of a subspace must be one of {list(_DUAL)}, got {kind!r}")
        self.basis, self.kind = basis, kind

    @classmethod
    def span(cls, S, kind=None, *, tolerance=RANK_TOLERANCE):
        """Range of a matrix (n, m), or of ``Motion`` or ``Force`` columns; m may be 0."""
        S, kind = _columns(S, kind)
        U, s, _ = np.linalg.svd(S, full_matrices=False)
        return cls(U[:, : _rank(s, tolerance)], kind)

    @classmethod
    def null(cls, K, kind, *, tolerance=RANK_TOLERANCE):
        """Null space of a matrix (m, n): the velocities that ``K qd = 0`` allows."""
        K = np.asarray(K, dtype=float)
        if K.ndim != 2:
            raise ShapeError(f"a null space needs a matrix of shape (m, n), got {K.shape}")
        _, s, Vt = np.linalg.svd(K)
        return cls(Vt[_rank(s, tolerance) :].T, kind)

    @classmethod
    def whole(cls, n, kind):
        """Whole space of dimension ``n`` as a subspace."""
        return cls(np.eye(n), kind)

    @property
    def dim(self) -> int:
        """Dimension of the subspace, 0 to n."""
        return self.basis.shape[1]

    @property
    def space_dim(self) -> int:
        """Dimension n of the space it lies in."""
        return self.basis.shape[0]

    def columns(self):
        """The basis as ``Motion`` or ``Force`` columns, of a subspace of M⁶ or F⁶."""
        if self.kind not in _TYPE or self.space_dim != 6:
            raise SpatialTypeError(f"{self!r} has no spatial vectors; use its basis")
        return _TYPE[self.kind].from_array(self.basis)

    def coordinates(self, v):
        """Coordinates ``alpha`` with ``v = basis @ alpha``; least squares if ``v`` lies outside."""
        return self.basis.T @ self._array(v)

    def __contains__(self, v):
        v = self._array(v)
        return bool(_norm(v - self.basis @ (self.basis.T @ v)) <= RANK_TOLERANCE * _norm(v))

    def __le__(self, other):
        self._same_space(other)
        outside = self.basis - other.basis @ (other.basis.T @ self.basis)
        return bool(np.all(np.abs(outside) <= RANK_TOLERANCE))

    def __eq__(self, other):
        return self.dim == other.dim and self <= other

    def __add__(self, other):
        """Span of the union."""
        self._same_space(other)
        return Subspace.span(np.hstack([self.basis, other.basis]), self.kind)

    def __and__(self, other):
        """Intersection, by way of the complements: ``(S1⊥ + S2⊥)⊥``."""
        return (self.complement() + other.complement()).complement()

    def complement(self):
        """Orthogonal complement ``S⊥`` in the dual space, of zero work — RBDA Table 3.1."""
        return Subspace.null(self.basis.T, _DUAL[self.kind])

    def is_orthogonal(self, other):
        """Whether ``S1ᵀ S2 = 0``; the other subspace must lie in the dual space."""
        if (other.kind, other.space_dim) != (_DUAL[self.kind], self.space_dim):
            raise SpatialTypeError(f"{self!r} and {other!r} have no scalar product")
        return bool(np.all(np.abs(self.basis.T @ other.basis) <= RANK_TOLERANCE))

    def image(self, A, kind):
        """Image under the linear map ``A``, such as ``I S`` for an inertia; of the kind given."""
        return Subspace.span(_matrix(A) @ self.basis, kind)

    def transformed(self, X):
        """Subspace of M⁶ or F⁶ in the coordinates that ``X`` leads to."""
        return Subspace.span(X.apply(self.columns()))

    def _array(self, v):
        """Vector as an array; an error if it belongs to the dual space."""
        if self.kind in _TYPE and isinstance(v, (Motion, Force)):
            if not isinstance(v, _TYPE[self.kind]):
                raise SpatialTypeError(f"a {type(v).__name__} cannot lie in {self!r}")
            return v.to_array()
        v = np.asarray(v, dtype=float)
        if v.shape != (self.space_dim,):
            raise ShapeError(f"{self!r} holds vectors of shape ({self.space_dim},), got {v.shape}")
        return v

    def _same_space(self, other):
        """Raise an error unless both subspaces lie in one space."""
        if (self.kind, self.space_dim) != (other.kind, other.space_dim):
            raise SpatialTypeError(f"{self!r} and {other!r} lie in different spaces")

    def __repr__(self):
        return f"<{self.dim}-dimensional {self.kind} subspace of {self.space_dim} dimensions>"


def is_direct_sum(*subspaces) -> bool:
    """Whether every vector has exactly one decomposition into elements of these — RBDA (3.24)."""
    S = _stack_bases(subspaces)
    return S.shape[0] == S.shape[1] and np.linalg.matrix_rank(S, RANK_TOLERANCE) == len(S)


def decompose(v, *subspaces):
    """The components of ``v`` in subspaces whose direct sum is the whole space — RBDA (3.27).

    Returns:
        one component for each subspace, of the type of ``v``; they add up to ``v``.
    """
    if not is_direct_sum(*subspaces):
        dims, n = [S.dim for S in subspaces], subspaces[0].space_dim
        why = "they overlap" if sum(dims) >= n else "they leave room"
        raise SingularError(
            f"no unique decomposition: subspaces of dimensions {dims} are not a direct sum of "
            f"the {n}-dimensional space; {why}"
        )
    alpha = np.linalg.solve(_stack_bases(subspaces), subspaces[0]._array(v))
    parts = np.split(alpha, np.cumsum([S.dim for S in subspaces])[:-1])
    components = [S.basis @ part for S, part in zip(subspaces, parts, strict=True)]
    return [type(v).from_array(c) if isinstance(v, (Motion, Force)) else c for c in components]


def _stack_bases(subspaces):
    """Bases of subspaces side by side, as one matrix."""
    for S in subspaces[1:]:
        subspaces[0]._same_space(S)
    return np.hstack([S.basis for S in subspaces])


def _columns(S, kind):
    """Float matrix of columns and the kind of space that they span."""
    if isinstance(S, (Motion, Force)):
        own = "motion" if isinstance(S, Motion) else "force"
        if kind not in (None, own):
            raise SpatialTypeError(f"{type(S).__name__} columns do not span a {kind} subspace")
        S, kind = S.to_array(), own
    S = np.asarray(S, dtype=float)
    if S.ndim != 2:
        raise ShapeError(f"a subspace is spanned by the columns of a matrix, got shape {S.shape}")
    return S, kind or "coordinate"


def _matrix(A):
    """Float matrix of an array or a spatial operator."""
    return A.to_matrix() if hasattr(A, "to_matrix") else np.asarray(A, dtype=float)


def _rank(s, tolerance):
    """Number of singular values above a tolerance."""
    return int(np.sum(s > tolerance * s[0])) if len(s) else 0


def _norm(v):
    """Euclidean norm of a vector of numbers of any kind."""
    return float(np.linalg.norm(v))
