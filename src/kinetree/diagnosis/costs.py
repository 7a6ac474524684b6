"""Operation counts: additions and multiplications of the dynamics of a model — RBDA §10.3.

    print(kt.operation_counts(model))

Sines and cosines, assignments and changes of sign are free, as in the published counts; a division
counts as a multiplication.
"""

from dataclasses import dataclass

from kinetree.algorithms import aba, crba, ltl, rnea
from kinetree.algorithms.sparsity import sparsity
from kinetree.codegen.program import Argument, cheapest, trace
from kinetree.diagnosis.published import Cost, factorization_cost, inertia_matrix_cost
from kinetree.errors import names_itself
from kinetree.expr.count import count_operations
from kinetree.model import Model
from kinetree.model.arrays import as_model
from kinetree.model.define import require_tree
from kinetree.quantities.dynamics import (
    BY_METHOD,
    forward_dynamics,
    inverse_dynamics,
    mass_matrix,
)


def _factor_and_solve(model, H, b):
    """``H⁻¹ b`` for a matrix with the zeros of the model."""
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


@dataclass(frozen=True)
class Costs:
    """Operations of the main algorithms for one model.

    Attributes:
        model: its name.
        bodies, depth: how many, and how many of them are in line at most.
        D1, D2: entries of the inertia matrix below its diagonal, and what factorising it adds —
            RBDA (6.28), (10.6).
        texts: of the algorithm as it is written, traced for the model, by name.
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
        """``"aba"`` or ``"crba"``: the method whose text takes fewer operations."""
        articulated = self.texts["forward dynamics (ABA)"].total
        matrix = self.texts["forward dynamics (CRBA, LTDL)"].total
        return "aba" if articulated <= matrix else "crba"

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
    """Additions and multiplications of the main algorithms for a model without loops."""
    require_tree(as_model(model), "operation_counts")
    texts, generated = {}, {}
    for name, (text, arrays, public) in _TEXTS.items():
        texts[name] = _count(_traced(model, text, arrays))
        if public is not None:
            generated[name] = _count(_program(model, public))
    generated["forward dynamics (leanest)"] = _count(_program(model, forward_dynamics))
    zeros = sparsity(model.expanded_parent)
    depth = max((len(s) for s in model.support), default=0)
    return Costs(
        model.name, model.body_count, depth, zeros.D1, zeros.D2, texts, generated,
        _published(model),
    )  # fmt: skip


def _traced(model, text, arrays):
    sizes = {"q": (model.nq,), "H": (model.nv, model.nv)}
    inputs = [Argument(name, sizes.get(name, (model.nv,))) for name in arrays]
    return cheapest([trace(lambda *state: text(model, *state), inputs)])


def _count(program):
    found = count_operations(program.graph, program.roots)
    m = found.multiplications + found.divisions + found.square_roots
    return Cost(m, found.additions)


def _published(model):
    parent = list(model.parent)
    return {
        "inertia matrix (CRBA)": inertia_matrix_cost(parent),
        "factorize and solve (LTDL)": factorization_cost(parent),
    }


def _program(model, function):
    """The program that is compiled for a public function."""
    return function.definition.kernel(model).program
