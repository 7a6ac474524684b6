"""Operation counts: additions and multiplications of the dynamics of a model — RBDA §10.3.

    print(kt.operation_counts(model))

Sines and cosines, assignments and changes of sign are free, as in the published counts; a division
counts as a multiplication.
"""

from dataclasses import dataclass

import numpy as np

from kinetree.algorithms import aba, crba, ltl, rnea
from kinetree.algorithms.closed import elimination
from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.algorithms.closed.forward_dynamics import constrained_acceleration, ways
from kinetree.algorithms.closed.plan import EliminationPlan, make_plan
from kinetree.algorithms.closed.rank import closed_configurations
from kinetree.algorithms.sparsity import pattern, sparsity
from kinetree.codegen.program import Argument, cheapest, trace
from kinetree.diagnosis.published import OperationTotal, factorization_cost, inertia_matrix_cost
from kinetree.errors import names_itself
from kinetree.expr.counting import count_operations
from kinetree.loops.dynamics.clusters import clusters
from kinetree.model import Model
from kinetree.model.arrays import as_model
from kinetree.quantities import closed_chains
from kinetree.quantities.dynamics import BY_METHOD, forward_dynamics, inverse_dynamics, mass_matrix


def _factor_and_solve(model, H, b):
    """Solution ``H⁻¹ b`` by sparse factors with the model's structural zeros."""
    return ltl.solve_ltdl(ltl.ltdl(H, model.expanded_parent), model.expanded_parent, b)


_TEXTS = {
    "inverse dynamics (RNEA)": (rnea.inverse_dynamics, ("q", "qd", "qdd"), inverse_dynamics),
    "inertia matrix (CRBA)": (crba.joint_space_inertia, ("q",), mass_matrix),
    "factorize and solve (LTDL)": (_factor_and_solve, ("H", "b"), None),
    "forward dynamics (ABA)": (aba.forward_dynamics, ("q", "qd", "tau"), BY_METHOD["aba"]),
    "forward dynamics (CRBA, LTDL)": (
        crba.forward_dynamics, ("q", "qd", "tau"), BY_METHOD["crba"],
    ),
}  # fmt: skip


_METHODS = {
    "forward dynamics (ABA)": "aba",
    "forward dynamics (CRBA, LTDL)": "crba",
    "forward dynamics (null space)": "null_space",
    "forward dynamics (range space)": "range_space",
}


@dataclass(frozen=True)
class Costs:
    """Operations of the main algorithms for one model.

    Attributes:
        model: its name.
        bodies, depth: how many, and how many of them are in line at most.
        D1, D2: entries of the inertia matrix below its diagonal, and what factorising it adds —
            RBDA (6.28), (10.6).
        texts: of the algorithm as it is written, traced for the model, by name. With loops, RNEA
            and CRBA are those of the spanning tree, and there are the constraints ``K, k`` and
            what solves for ``qdd``, from ``H``, ``K`` and ``k`` on, with a block of ``G`` for each
            cluster of loops and with one for all — RBDA §8.9.
        generated: of the code that is compiled, after choosing the leanest formulation, by name.
        published: what the book's formulas give for a tree of as many revolute joints, by name.
    """

    model: str
    bodies: int
    depth: int
    D1: int
    D2: int
    texts: dict
    generated: dict
    published: dict

    @property
    def cheapest_forward_dynamics(self) -> str:
        """Forward dynamics method with the fewest operations.

        ``"aba"`` or ``"crba"``; with loops, ``"null_space"`` or ``"range_space"``.
        """
        named = {m: self.texts[text].total for text, m in _METHODS.items() if text in self.texts}
        return min(named, key=lambda method: named[method])

    def __str__(self):
        header = f"{self.model}: {self.bodies} bodies, {self.depth} in line"
        lines = [header, f"  {'':32}{'as written':>16}{'compiled':>16}{'published':>16}"]
        for name in {**self.texts, **self.generated}:
            cells = [part.get(name, "") for part in (self.texts, self.generated, self.published)]
            lines.append(f"  {name:32}" + "".join(f"{cell!s:>16}" for cell in cells))
        lines.append(f"  H has {self.D1} entries below its diagonal; factors touch {self.D2}")
        return "\n".join(lines)


@names_itself
def operation_counts(model: Model) -> Costs:
    """Additions and multiplications of the main algorithms for a model."""
    tree, constrained = as_model(model).spanning_tree, model.is_constrained
    texts, generated = {}, {}
    for name, (text, arrays, public) in _TEXTS.items():
        if constrained and name in _METHODS:
            continue
        texts[name] = _count(_trace(tree, text, arrays))
        if public is not None:
            generated[name] = _count(_program(tree, public))
    if constrained:
        texts |= _closed_texts(model)
        program = closed_chains.forward_dynamics_program(model)
    else:
        program = _program(model, forward_dynamics)
    generated["forward dynamics (leanest)"] = _count(program)
    zeros = sparsity(model.expanded_parent)
    depth = max((len(s) for s in model.support), default=0)
    return Costs(
        model.name,
        model.body_count,
        depth,
        zeros.D1,
        zeros.D2,
        texts,
        generated,
        _published_costs(model),
    )


def _closed_texts(model):
    """Algorithms for loops whose operations are counted."""
    found = {
        "loop constraints (K, k)": _count(
            _trace(model, lambda m, q, qd: loop_constraints(m, q, qd)[:2], ("q", "qd"))
        )
    }
    plan = make_plan(model, None, closed_configurations(model))
    for name, blocks in (
        ("null space (all loops at once)", False),
        ("null space (cluster by cluster)", True),
    ):
        found[name] = null_space_cost(model, plan, blocks)
    for way in ways(model):

        def solve(m, q, qd, tau, way=way):
            return constrained_acceleration(m, q, qd, tau, way=way)[:2]

        count = _count(_trace(model, solve, ("q", "qd", "tau")))
        found[f"forward dynamics ({way.method})"] = count
    return found


def null_space_cost(model, plan: EliminationPlan, blocks: bool) -> OperationTotal:
    """Operations of the null-space method, given ``H``, ``K`` and ``k`` — RBDA (8.40), §8.9.

    Args:
        model: the mechanism.
        plan: an order of elimination of its constraints as they are, along no other axes.
        blocks: whether zeros of ``K`` outside the blocks of the clusters are known.
    """
    n, rows = model.nv, len(plan.pivots) + len(plan.redundant)
    known = np.full((rows, n), not blocks)
    for cluster in clusters(model) if blocks else ():
        known[np.ix_(cluster.rows, cluster.columns)] = True
    inertia = pattern(model.expanded_parent)

    def text(m, H, b, K, k):
        H, K = np.where(inertia, H, 0), np.where(known, K, 0)
        return elimination.null_space(H, b, K, k, plan.pivots)[0]

    return _count(_trace(model, text, ("H", "b", "K", "k"), rows))


def _trace(model, text, arrays, rows=0):
    """Program of an algorithm with the fewest operations."""
    sizes = {"q": (model.nq,), "H": (model.nv, model.nv), "K": (rows, model.nv), "k": (rows,)}
    inputs = [Argument(name, sizes.get(name, (model.nv,))) for name in arrays]
    return cheapest([trace(lambda *state: text(model, *state), inputs)])


def _count(program):
    """Additions and multiplications of a program."""
    found = count_operations(program.graph, program.roots)
    m = found.multiplications + found.divisions + found.square_roots
    return OperationTotal(m, found.additions)


def _published_costs(model):
    """Published operation counts for a tree, by algorithm."""
    parent = list(model.parent)
    return {
        "inertia matrix (CRBA)": inertia_matrix_cost(parent),
        "factorize and solve (LTDL)": factorization_cost(parent),
    }


def _program(model, function):
    """Program that is compiled for a public function."""
    return function.definition.kernel(model).program
