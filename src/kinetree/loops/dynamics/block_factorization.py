"""Symmetric indefinite systems by blocks, in a given order — RBDA §8.13.

``A = L D Lᵀ`` with blocks of ``A``, ``L`` and ``D`` where the order of elimination has them, and
nowhere else. Every pivot block is either positive definite or negative semidefinite; the rank of
the latter is decided here.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms.handles import generalised_inverse
from kinetree.errors import SingularError

__all__ = ["BlockSolution", "BlockSystem"]


_NO_INERTIA = 64 * np.finfo(float).eps
"""Relative pivot below which a body counts as massless."""


class BlockSolution(NamedTuple):
    """Solution of a block system."""

    x: dict
    """By node."""
    rank: int
    """Number of independent constraints."""
    redundancy: int
    """Number of constraints whose pivots vanish."""


class BlockSystem:
    """``A x = b`` in blocks by node: positive ones for bodies, constraints for all others.

    Attributes:
        order: the order of elimination.
        diagonal: blocks on the diagonal; those of constraints start from zero.
        right: right-hand sides.
        size: for each constraint, the diagonal that its pivot is a remainder of.
        pushes: for each constraint, which of its rows are forces and not moments alone.
    """

    def __init__(self, order):
        self.order = order
        self.diagonal, self.right, self.size, self.pushes = {}, {}, {}, {}
        self.off = {node: {} for node in order.nodes}

    def add(self, u, v, block):
        """Add to the block in row ``u`` and column ``v`` and to its mirror image."""
        _add(self.diagonal, self.off, u, v, block)

    def solution(self, describe) -> BlockSolution:
        """Factorise, substitute, and once more for what rounding errors left over.

        Args:
            describe: what to call a node whose pivot should be positive definite and is not.
        """
        factors = self._factors(describe)
        x = factors.substitute(self.order, self.right)
        correction = factors.substitute(self.order, self._remainder(x))
        x = {node: x[node] + correction[node] for node in x}
        return BlockSolution(x, factors.rank, factors.redundancy)

    def _factors(self, describe):
        diagonal, off = dict(self.diagonal), {v: dict(column) for v, column in self.off.items()}
        sizes = {v: np.abs(np.diagonal(A)) for v, A in diagonal.items()}
        pivots, lower, rank, redundancy = {}, {}, 0, 0
        for v, neighbours in zip(self.order.nodes, self.order.neighbours, strict=True):
            if v[0] == "body":
                pivots[v] = _inverse(diagonal[v], sizes[v], v, describe)
            else:
                inverse, r = generalised_inverse(-diagonal[v], self.size[v], self.pushes.get(v))
                pivots[v] = -inverse
                rank, redundancy = rank + r, redundancy + len(inverse) - r
            lower[v] = [(u, off[v][u]) for u in neighbours if u in off[v]]
            for n, (u, B) in enumerate(lower[v]):
                W = -B @ pivots[v]
                for w, other in lower[v][n:]:
                    block = W @ other.T
                    _add(diagonal, off, u, w, block)
                    if u == w:
                        sizes[u] = sizes[u] + np.abs(np.diagonal(block))
        return _Factors(pivots, lower, rank, redundancy)

    def _remainder(self, x):
        """``b - A x``."""
        return {
            v: sum(
                (-(B.T @ x[u]) for u, B in self.off[v].items()),
                start=self.right[v] - self.diagonal[v] @ x[v],
            )
            for v in self.order.nodes
        }


class _Factors(NamedTuple):
    """``L D Lᵀ``: inverses of the blocks of ``D``, and columns of ``L D``."""

    pivots: dict
    lower: dict
    rank: int
    redundancy: int

    def substitute(self, order, right):
        """``A⁻¹ b``, forwards and backwards."""
        right, x = dict(right), {}
        for v in order.nodes:
            b = self.pivots[v] @ right[v]
            for u, B in self.lower[v]:
                right[u] = right[u] - B @ b
        for v in reversed(order.nodes):
            b = right[v]
            for u, B in self.lower[v]:
                b = b - B.T @ x[u]
            x[v] = self.pivots[v] @ b
        return x


def _add(diagonal, off, u, v, block):
    if u == v:
        diagonal[u] = diagonal[u] + block
        return
    known = off[v].get(u)
    off[v][u] = block if known is None else known + block
    off[u][v] = off[v][u].T


def _inverse(A, size, node, describe):
    """``A⁻¹``; ``size`` is what the diagonal is a remainder of, so that rounding is no inertia."""
    scale = np.where(size > 0, 1 / np.sqrt(np.where(size > 0, size, 1.0)), 0.0)
    if np.linalg.eigvalsh(A * scale * scale[:, None])[0] <= _NO_INERTIA:
        raise SingularError(
            f"the sparse method needs an invertible inertia for every single body, and "
            f"{describe(node)} has none: give it mass and rotational inertia, or use null_space, "
            f"which lets bodies be massless"
        )
    return np.linalg.inv(A)
