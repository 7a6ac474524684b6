"""Published operation counts of tree algorithms: what generated code is measured against.

RBDA Table 10.1 gives, for chains of ``n`` revolute joints in general position, what careful authors
have achieved by hand; RBDA §10.3.2 extends the count of the inertia matrix to branched trees. ``m``
are multiplications and divisions, ``a`` additions and subtractions; sines and cosines, assignments
and sign changes are free. The formulas are meant for ``n ≥ 2``: some are negative at 1.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class OperationTotal:
    """Multiplications and additions."""

    m: int
    a: int

    @property
    def total(self) -> int:
        """Sum of multiplications and additions."""
        return self.m + self.a

    def weighted_sum(self, addition: float = 1.0) -> float:
        """Weighted sum of operations; an addition counts as ``addition`` multiplications."""
        return self.m + addition * self.a

    def __add__(self, other):
        return OperationTotal(self.m + other.m, self.a + other.a)

    def __rmul__(self, k):
        return OperationTotal(k * self.m, k * self.a)

    def __str__(self):
        return f"{self.m}m + {self.a}a"


@dataclass(frozen=True)
class PublishedCost:
    """A row of RBDA Table 10.1; calling it with ``n`` gives the cost."""

    algorithm: str
    source: str
    m: Callable
    a: Callable

    def __call__(self, n) -> OperationTotal:
        """The cost for ``n`` joints."""
        return OperationTotal(int(self.m(n)), int(self.a(n)))


_HALF, _SIXTH = Fraction(1, 2), Fraction(1, 6)
_BP88, _BP89, _BP91 = "Balafoutis et al. 1988", "Balafoutis & Patel 1989", "Balafoutis & Patel 1991"
_F87, _LO91 = "Featherstone 1987", "Lilly & Orin 1991"

TABLE_10_1 = (
    PublishedCost("RNEA", _BP91, lambda n: 93 * n - 108, lambda n: 81 * n - 100),
    PublishedCost("RNEA", _BP88, lambda n: 93 * n - 69, lambda n: 81 * n - 66),
    PublishedCost("RNEA", _F87, lambda n: 130 * n - 68, lambda n: 101 * n - 56),
    PublishedCost("RNEA", "Hollerbach 1980", lambda n: 150 * n - 48, lambda n: 131 * n - 48),
    PublishedCost(
        "CRBA", "Featherstone 2005",
        lambda n: 10 * n**2 + 22 * n - 32, lambda n: 6 * n**2 + 37 * n - 43,
    ),
    PublishedCost(
        "CRBA", _F87, lambda n: 10 * n**2 + 31 * n - 41, lambda n: 6 * n**2 + 40 * n - 46
    ),
    PublishedCost(
        "CRBA", _LO91, lambda n: 10 * n**2 + 41 * n - 51, lambda n: 6 * n**2 + 52 * n - 58
    ),
    PublishedCost(
        "CRBA", _BP89,
        lambda n: 11 * n**2 + 11 * n - 42, lambda n: _HALF * (11 * n**2 + 65 * n) - 54,
    ),
    PublishedCost(
        "CRBA", "Walker & Orin 1982",
        lambda n: 12 * n**2 + 56 * n - 27, lambda n: 7 * n**2 + 67 * n - 53,
    ),
    PublishedCost(
        "factorize and solve", "RBDA Table 6.6",
        lambda n: _SIXTH * (n**3 + 9 * n**2 - 4 * n), lambda n: _SIXTH * (n**3 + 6 * n**2 - 7 * n),
    ),
    PublishedCost("ABA", "McMillan et al. 1995", lambda n: 224 * n - 259, lambda n: 205 * n - 248),
    PublishedCost("ABA", "Brandl et al. 1988", lambda n: 250 * n - 222, lambda n: 220 * n - 198),
    PublishedCost("ABA", _F87, lambda n: 300 * n - 267, lambda n: 279 * n - 259),
)  # fmt: skip


def best(algorithm, n, addition=1.0) -> OperationTotal:
    """Lowest published operation count of an algorithm for a chain of ``n`` joints.

    Args:
        algorithm: ``"RNEA"``, ``"CRBA"``, ``"factorize and solve"`` or ``"ABA"``.
        n: number of joints.
        addition: cost of an addition, that of a multiplication being one.
    """
    rows = [row(n) for row in TABLE_10_1 if row.algorithm == algorithm]
    return min(rows, key=lambda cost: cost.weighted_sum(addition))


# What one step of the composite-rigid-body algorithm takes — RBDA §10.3.1, (10.12): adding two
# inertias; moving an inertia and a force vector to the parent, with axial screws along
# Denavit-Hartenberg axes and in general.
_ADD_INERTIAS = OperationTotal(0, 10)
_MOVE_INERTIA, _MOVE_VECTOR = OperationTotal(32, 33), OperationTotal(20, 12)
_MOVE_INERTIA_GENERAL, _MOVE_VECTOR_GENERAL = OperationTotal(47, 48), OperationTotal(24, 18)


def inertia_matrix_cost(parent) -> OperationTotal:
    """Operations of the inertia matrix of a tree — RBDA (10.4), (10.10)–(10.12).

    Only one child of each body can be reached along Denavit-Hartenberg axes; it is taken to be
    the one that carries most bodies. Bodies on the base need no transform.

    Args:
        parent: ``parent[i]`` of bodies 1, 2, ...; ``parent[0]`` is not used.
    """
    size = _subtree_sizes(parent)
    aligned = {}
    for i in range(1, len(parent)):
        p = parent[i]
        if p and (p not in aligned or size[i] > size[aligned[p]]):
            aligned[p] = i
    cost = OperationTotal(0, 0)
    for i in range(1, len(parent)):
        if parent[i]:
            dh = aligned[parent[i]] == i
            inertia = _MOVE_INERTIA if dh else _MOVE_INERTIA_GENERAL
            vector = _MOVE_VECTOR if dh else _MOVE_VECTOR_GENERAL
            cost = cost + _ADD_INERTIAS + inertia + size[i] * vector
    return cost


def factorization_cost(parent) -> OperationTotal:
    """Operations of LTDL factorisation and one solution for a tree — RBDA Table 6.6, (6.28)."""
    n = len(parent) - 1
    depth = [0] * len(parent)  # ancestors other than the base
    for i in range(1, n + 1):
        depth[i] = depth[parent[i]] + 1 if parent[i] else 0
    D1, D2 = sum(depth), sum(d * (d + 1) // 2 for d in depth)
    return OperationTotal(D1 + D2 + n + 2 * D1, D2 + 2 * D1)


def _subtree_sizes(parent):
    """Number of bodies in the subtree of each body."""
    size = [1] * len(parent)
    for i in range(len(parent) - 1, 0, -1):
        size[parent[i]] += size[i]
    return size


def forward_dynamics_cost(n, source="Featherstone 2005") -> OperationTotal:
    """Operations of forward dynamics of a chain by its inertia matrix.

    Args:
        n: number of joints.
        source: author of the formula for the inertia matrix.
    """
    inertia = next(r for r in TABLE_10_1 if r.algorithm == "CRBA" and r.source == source)
    return best("RNEA", n) + inertia(n) + best("factorize and solve", n)


def crossover(first, second, n=range(2, 200), addition=1.0) -> int:
    """First of some sizes at which ``first(n)`` costs more than ``second(n)``.

    Args:
        first: function of the number of joints that returns a ``OperationTotal``.
        second: another.
        n: sizes to try, in ascending order.
        addition: cost of an addition, that of a multiplication being one.
    """
    return next(k for k in n if first(k).weighted_sum(addition) > second(k).weighted_sum(addition))


def cost_curves(
    sizes: Iterable[int], addition: float = 1.0, source: str = "Featherstone 2005"
) -> dict[str, list[float]]:
    """Cost curves of RBDA Fig. 10.4: forward dynamics of chains, and its parts.

    Args:
        sizes: numbers of joints.
        addition: cost of an addition, that of a multiplication being one; the figure has 1, 0.5
            and 0.25, between processors that add and multiply equally fast and those that do not.
        source: author of the formula for the inertia matrix.

    Returns:
        One list each, in the order of ``sizes``, for ``"RNEA"``, ``"CRBA"``, ``"factorize and
        solve"``, their sum ``"inertia matrix"``, and ``"ABA"``.
    """
    sizes = list(sizes)
    inertia = next(r for r in TABLE_10_1 if r.algorithm == "CRBA" and r.source == source)
    parts: dict[str, Callable] = {
        "RNEA": lambda n: best("RNEA", n, addition),
        "CRBA": inertia,
        "factorize and solve": lambda n: best("factorize and solve", n, addition),
        "inertia matrix": lambda n: forward_dynamics_cost(n, source),
        "ABA": lambda n: best("ABA", n, addition),
    }
    return {k: [cost(n).weighted_sum(addition) for n in sizes] for k, cost in parts.items()}
